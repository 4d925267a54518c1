"""Whether the first line of a table is a header: names that look like cells would be published as names."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Final

SEVERAL: Final = 2
"""Names that look like numbers or dates; one alone may well be a name."""

NO_HEADER: Final = (
    "the table seems to have no header: most names of its columns look like numbers or dates. Then they are "
    "cells of its first row, and a release would publish them. Add a first line with the names of the columns"
)
"""Without the names themselves, which may be somebody's values."""

_CELL: Final = re.compile(
    r"[+\-−]?\s*[$€£]?\s*[0-9][0-9\s.,:/'’_\-]*(?:[eE][+\-]?[0-9]+|\s*[%€$£])?"
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}[Tt ][0-9:.+\-]+[Zz]?"
    r"|[0-9]{1,2}[ \-][A-Za-z]{3,9}[ \-][0-9]{2,4}"
)


def look_like_cells(names: Iterable[str]) -> bool:
    """Whether half of the names or more look like numbers or dates, and not like years or places in a row.

    >>> from dpgram.sources.headers import look_like_cells
    >>> look_like_cells(["34", "no", "27.5", "2020-01-31"])
    True
    >>> look_like_cells(["country", "1990", "2000", "2010"])
    False
    """
    given = [name.strip() for name in names if name.strip()]
    cells = [name for name in given if _CELL.fullmatch(name)]
    return len(cells) >= SEVERAL and 2 * len(cells) >= len(given) and not _evenly_spaced(cells)


def _evenly_spaced(words: Sequence[str]) -> bool:
    """Whole numbers in equal steps: years, weeks, or the numbers that programs give to columns."""
    if len(words) < 3 or not all(word.isascii() and word.isdigit() and len(word) < 10 for word in words):
        return False
    numbers = [int(word) for word in words]
    steps = {after - before for before, after in pairwise(numbers)}
    return len(steps) == 1 and steps != {0}

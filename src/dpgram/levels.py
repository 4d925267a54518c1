"""Frequent levels of a categorical column: only levels that are there are counted, few enough stay hidden.

Each level's count gets noise, and a level is published when its noisy count reaches T. One row can bring one
new level to each of m columns, so T = 1 + (what noise exceeds with probability δ/m) keeps the chance that any
level of one row alone is published at most δ. Everything else goes to `other`. proofs/levels.md
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.counts import CountNoise
from dpgram.release_parts import LearntLevels

if TYPE_CHECKING:
    from dpgram.privacy.entropy import Entropy

LONGEST_LEVEL: Final = 200
"""Longer texts are never levels: they go to `other`."""


@final
class LevelCounts:
    """How many rows have each level of one column. Exact, hence not private."""

    def __init__(self, column: str) -> None:
        self.column = column
        self.counts: Counter[str] = Counter()

    def add(self, cells: pa.Array) -> None:
        """Count one batch; nulls, NaN and texts that are not UTF-8 count as no level."""
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        write = _writer(cells.type, self.column)
        found = cells.value_counts()
        values, counts = found.field(0), found.field(1)
        if write is _text_of_bytes:
            # Readers do not look at the bytes of a text, and Arrow's own decoder would raise.
            wide = pa.types.is_large_string(values.type)
            values = values.view(pa.large_binary() if wide else pa.binary())
        for value, count in zip(values.to_pylist(), counts.to_pylist(), strict=True):
            text = None if value is None else write(value)
            if text is not None and text and len(text) <= LONGEST_LEVEL:
                self.counts[text] += count


def level_threshold(noise: CountNoise, delta: float, columns: int) -> int:
    """The least noisy count, in lattice units, at which a level is published; rounded up.

    Proof: proofs/levels.md#levels-claim.
    """
    return math.ceil(ROW_NORM_SQUARED * (1.0 + noise.exceeded(delta / columns)))


def kept_levels(
    counts: LevelCounts, noise: CountNoise, threshold: int, entropy: Entropy, *, at_most: int
) -> LearntLevels:
    """The levels whose noisy counts reach the threshold, the fullest first, at most so many.

    Proof: proofs/levels.md#levels-claim.
    """
    # In sorted order: the order of the rows must not show in what a seeded draw gives to whom.
    names = sorted(counts.counts)
    exact = np.array([counts.counts[name] for name in names], np.int64)
    cells = noise.draw(exact, entropy)
    found = sorted(
        ((int(cell), name) for cell, name in zip(cells, names, strict=True) if cell >= threshold),
        key=lambda pair: (-pair[0], pair[1]),
    )[:at_most]
    return LearntLevels(
        column=counts.column,
        threshold=str(threshold),
        levels=tuple(name for _, name in found),
        counts=tuple(str(cell) for cell, _ in found),
    )


def refuse_no_levels(kind: pa.DataType, column: str) -> None:
    """Refuse a type whose values cannot be levels."""
    _writer(kind.value_type if pa.types.is_dictionary(kind) else kind, column)


def _writer(kind: pa.DataType, column: str) -> Callable[[Any], str | None]:
    write = next((write for test, write in _TEXTS if test(kind)), None)
    if write is None:
        raise SourceError(
            f"column {column!r} is declared categorical but the data has another type in it",
            got=str(kind),
            limit="text, integers, floats or booleans",
            remedy="Convert the column before, or declare it as another kind",
        )
    return write


def _text_of_float(value: float) -> str | None:
    """As the reader writes it: whole numbers without a point, NaN as nothing."""
    if not math.isfinite(value):
        return None
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _text_of_bytes(letters: bytes) -> str | None:
    try:
        return letters.decode()
    except UnicodeDecodeError:
        return None


def _text_of_truth(value: bool) -> str:
    return "true" if value else "false"


_TEXTS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], str | None]], ...]] = (
    (pa.types.is_string, _text_of_bytes),
    (pa.types.is_large_string, _text_of_bytes),
    (pa.types.is_integer, str),
    (pa.types.is_floating, _text_of_float),
    (pa.types.is_boolean, _text_of_truth),
)

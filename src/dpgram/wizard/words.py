"""Messages of the library in the words of the pages, and beside which field they belong."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from dpgram.errors import DpgramError
from dpgram.job.words import OPTIONS, as_key, reworded

FIELDS: Final[Mapping[str, str]] = {
    "epsilon": "ε",
    "delta": "δ",
    "unit": "the column that says whose row it is",
    "unit_rows": "the number of rows of a person that count",
    "expected": "the expected number of rows, or persons",
    "sheet": "the sheet",
    "ledger": "the ledger",
    "missing": "what becomes of rows with a gap",
}
"""How the pages call what the library calls a parameter."""


def as_field(name: str, value: str) -> str:
    """`ε = 1`; what no page asks for keeps its key in the job file."""
    if value.strip("'") in ("", "…", "None"):
        return FIELDS.get(name, OPTIONS[name].key)
    return f"{FIELDS[name]} = {value}" if name in FIELDS else as_key(name, value)


def told(problem: DpgramError) -> str:
    """The whole message, in the words of the pages; which job file it is about, they know."""
    text = re.sub(r"^.*?\.toml: ", "", reworded(str(problem), as_field))
    return re.sub(r"\bdelta\b", "δ", re.sub(r"\bepsilon\b", "ε", text))


def beside(problem: DpgramError, fields: Mapping[str, str], otherwise: str) -> dict[str, str]:
    """The message, by the field that it is about: the first whose word it names."""
    said = f"{problem.what} {problem.limit or ''}".lower()
    place = next((field for word, field in fields.items() if word in said), otherwise)
    return {place: told(problem)}

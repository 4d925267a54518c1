"""Values of new rows, given by an analyst to predict from → numbers in original units, or texts of levels."""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dpgram.errors import AnalysisError, shown
from dpgram.schema.reading import Reading

Floats = npt.NDArray[np.float64]
MISSING: Final = ("nan", "NaN", "NaT", "<NA>")
"""How cells that are missing are written, whatever library they are of."""


def numbers(given: npt.NDArray[Any], name: str) -> Floats:
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise _unread(given, name, np.dtype(np.float64), "numbers") from None


def truths(given: npt.NDArray[Any], name: str, reading: Reading) -> Floats:
    """1 for true and 0 for false, by the words that the table's cells are read by; shares between as such."""
    if given.dtype.kind in "bfiu" and not reading.true:
        return _shares(given.astype(np.float64), given, name, reading)
    found = np.empty(len(given))
    known: dict[tuple[type, str], bool | None] = {}
    for place, value in enumerate(given.tolist()):
        own = (type(value), str(value))  # 1 and True are equal, and may mean different things
        if own not in known:
            known[own] = reading.truth(value)
        said = known[own]
        try:
            found[place] = float(value if said is None else said)
        except (TypeError, ValueError):
            raise _neither(value, name, reading) from None
    return _shares(found, given, name, reading)


def _shares(found: Floats, given: npt.NDArray[Any], name: str, reading: Reading) -> Floats:
    beyond = (found < 0.0) | (found > 1.0)
    if beyond.any():
        raise _neither(given.tolist()[beyond.argmax()], name, reading)
    return found


def _neither(value: object, name: str, reading: Reading) -> AnalysisError:
    true, false = reading.truth_words
    return AnalysisError(
        f"the new rows' column {name!r} has a value that is neither true nor false",
        got=shown(value),
        limit=f"{', '.join(true)} for true; {', '.join(false)} for false",
        remedy="Give one of these words, True or False, or 1 or 0",
    )


def days(given: npt.NDArray[Any], name: str) -> Floats:
    """Days since 1970-01-01; numbers are taken as such."""
    if given.dtype.kind in "fiu":
        return numbers(given, name)
    try:
        since = given.astype("datetime64[us]") - np.datetime64("1970-01-01", "us")
        return np.asarray(since / np.timedelta64(1, "D"), dtype=np.float64)
    except (TypeError, ValueError):
        wanted = "dates, such as '2026-01-31', or days since 1970-01-01"
        raise _unread(given, name, np.dtype("datetime64[us]"), wanted) from None


def _unread(given: npt.NDArray[Any], name: str, kind: np.dtype[Any], wanted: str) -> AnalysisError:
    """With the first value that is not of this kind."""
    first = next((value for value in given.ravel().tolist() if not _is_one(value, kind)), given.dtype)
    return AnalysisError(
        f"the new rows' column {name!r} must hold {wanted}",
        got=shown(first),
        remedy="Convert its values before asking for predictions",
    )


def _is_one(value: object, kind: np.dtype[Any]) -> bool:
    try:
        np.asarray(value).astype(kind)
    except (TypeError, ValueError):
        return False
    return True


def levels(
    given: npt.NDArray[Any], name: str, known: tuple[str, ...], other: str | None
) -> npt.NDArray[np.object_]:
    """The schema's texts; unknown ones go to `other`, else they are refused."""
    listed = frozenset(known)
    texts = []
    for value in given.tolist():
        if value is None or (not isinstance(value, str) and str(value) in MISSING):
            raise AnalysisError(
                f"the new rows' column {name!r} has a missing cell",
                got=shown(value),
                limit=", ".join(known[:20]),
                remedy="Leave such rows out, or give them a level",
            )
        text = _level_text(value)
        if text not in listed and other is None:
            raise AnalysisError(
                f"the new rows' column {name!r} has a level the schema does not know",
                got=repr(text),
                limit=", ".join(known[:20]),
            )
        texts.append(text if text in listed else other)
    return np.array(texts, dtype=object)


def _level_text(value: object) -> str:
    """Levels are compared by text, as in the schema: booleans as true/false, whole floats as integers."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)

"""Values of new rows, given by an analyst to predict from → numbers in original units, or texts of levels."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from dpgram.errors import AnalysisError

Floats = npt.NDArray[np.float64]


def numbers(given: npt.NDArray[Any], name: str) -> Floats:
    try:
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise _not_numeric(name) from None


def days(given: npt.NDArray[Any], name: str) -> Floats:
    """Days since 1970-01-01; numbers are taken as such."""
    if given.dtype.kind in "fiu":
        return numbers(given, name)
    try:
        since = given.astype("datetime64[us]") - np.datetime64("1970-01-01", "us")
        return np.asarray(since / np.timedelta64(1, "D"), dtype=np.float64)
    except (TypeError, ValueError):
        raise _not_numeric(name) from None


def _not_numeric(name: str) -> AnalysisError:
    return AnalysisError(f"the new rows' column {name!r} is not numeric")


def levels(
    given: npt.NDArray[Any], name: str, known: tuple[str, ...], other: str | None
) -> npt.NDArray[np.object_]:
    """The schema's texts; unknown ones go to `other`, else they are refused."""
    listed = frozenset(known)
    texts = []
    for value in given.tolist():
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

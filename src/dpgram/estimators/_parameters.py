"""Every kind of parameter, checked in one place: before a row is read, and so before anything is charged."""

from __future__ import annotations

from collections.abc import Collection
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from dpgram.errors import GuaranteeError, real, shown, whole
from dpgram.rows.encoder import LEAST_RADIUS

Word = TypeVar("Word", bound=str)


def number(name: str, value: object) -> float:
    """A real number, and no truth value; one beyond the floats is infinite, which no range has inside."""
    found = real(value)
    if found is None:
        raise GuaranteeError(f"{name} must be a number", got=repr(value)[:100], remedy=f"Try {name}=1.0")
    return found


def size(name: str, value: object) -> float:
    """A positive number within the range of the lattice."""
    found = number(name, value)
    if not LEAST_RADIUS <= found <= 1.0 / LEAST_RADIUS:
        raise GuaranteeError(
            f"{name} is out of range", got=found, limit=f"{LEAST_RADIUS:g} ≤ {name} ≤ {1 / LEAST_RADIUS:g}"
        )
    return found


def public_bound(name: str, value: object) -> float:
    """A bound within the range of the lattice; None is refused, with a reason."""
    if value is None:
        raise GuaranteeError(
            f"{name} is needed: a public bound, not one read off the data",
            remedy=f"Give {name}=1.0 after scaling by public facts; longer rows are shortened to it.",
        )
    return size(name, value)


def count_of(name: str, value: object, *, least: int, most: int) -> int:
    """A whole number between the two, which 2.0 is not: places are counted by it."""
    count = whole(value)
    if count is None or not least <= count <= most:
        raise GuaranteeError(
            f"{name} must be a whole number in its range",
            got=repr(value)[:100] if count is None else f"{real(count):g}",
            limit=f"{least} ≤ {name} ≤ {most}",
        )
    return count


def flag(name: str, value: object) -> bool:
    """True or False, of Python or numpy; no text, which would be true whatever it says."""
    if not isinstance(value, bool | np.bool_):
        raise GuaranteeError(f"{name} must be True or False", got=shown(value))
    return bool(value)


def one_of(name: str, value: object, words: Collection[Word]) -> Word:
    """One of these words."""
    for word in words:
        if isinstance(value, str) and value == word:
            return word
    raise GuaranteeError(
        f"unknown {name}", got=repr(value)[:100], limit=" or ".join(repr(word) for word in words)
    )


def for_each(name: str, value: object, width: int) -> npt.NDArray[np.float64]:
    """One finite number, or one for each column."""
    single = real(value)
    try:
        numbers = np.asarray(value if single is None else single, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full((), np.nan)
    if isinstance(value, str) or numbers.shape not in ((), (width,)) or not np.isfinite(numbers).all():
        raise GuaranteeError(
            f"{name} must be a finite number, or one for each column",
            got=f"{len(numbers)} for {width} columns" if numbers.ndim == 1 else repr(value)[:100],
        )
    return np.broadcast_to(numbers, (width,)).astype(np.float64)


def pair(name: str, value: object) -> tuple[object, object]:
    """(low, high), whatever the two are."""
    if isinstance(value, tuple | list | np.ndarray) and len(value) == 2:
        return value[0], value[1]
    raise GuaranteeError(
        f"{name} must be a pair (low, high)", got=repr(value)[:100], remedy=f"Write {name}=(0, 100)"
    )

"""The least number for which something holds: bisection, and an answer that was itself seen to hold."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dpgram.errors import GuaranteeError

TOLERANCE: Final = 2.0**-50
_WIDENINGS: Final = 1100  # doublings from the smallest to the largest float


def least(holds: Callable[[float], bool], *, start: float = 1.0, tolerance: float = TOLERANCE) -> float:
    """inf {x > 0 : holds(x)} from above, to 15 digits, for a `holds` that stays true once it is true.

    The answer itself has been tested: where `holds` is not perfectly monotone in the last digits, the answer
    is still a point where it is true. Raises `GuaranteeError` when no float makes it true.
    """
    low, high = _bracket(holds, start)
    while high - low > tolerance * high:
        middle = math.sqrt(low) * math.sqrt(high) if high > 2.0 * low else 0.5 * (low + high)
        if not low < middle < high:
            break
        if holds(middle):
            high = middle
        else:
            low = middle
    return high


def greatest(holds: Callable[[float], bool], *, start: float = 1.0, tolerance: float = TOLERANCE) -> float:
    """sup {x > 0 : holds(x)} from below, to 15 digits, for a `holds` that stays false once it is false."""
    return 1.0 / least(lambda inverse: holds(1.0 / inverse), start=1.0 / start, tolerance=tolerance)


def least_integer(holds: Callable[[int], bool], *, start: int, limit: int) -> int:
    """The least integer in [start, limit] for which `holds`, which stays true once it is true; it was tested.

    Raises `GuaranteeError` when it is false up to the limit.
    """
    low, high = start - 1, start
    while not holds(high):
        if high >= limit:
            raise GuaranteeError(
                "no number of degrees of freedom meets this guarantee",
                got=f"every number up to {limit:g} fails",
                remedy="Ask for a larger epsilon or delta, or scale the noise up.",
            )
        low, high = high, min(2 * high + 1, limit)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high


def _bracket(holds: Callable[[float], bool], start: float) -> tuple[float, float]:
    """(low, high) with holds(high), and not holds(low) unless low is the smallest positive float."""
    factor = 2.0
    if holds(start):
        high = start
        for _ in range(_WIDENINGS):
            low = high / factor
            if low < 1e-300 or not holds(low):
                return max(low, 1e-300), high
            high, factor = low, factor * factor if factor < 1e8 else factor
        return low, high
    low = start
    for _ in range(_WIDENINGS):
        high = low * factor
        if high > 1e300:
            break
        if holds(high):
            return low, high
        low, factor = high, factor * factor if factor < 1e8 else factor
    raise GuaranteeError(
        "no level of noise meets this guarantee",
        got="a search that ran out of numbers",
        limit="below 1e300",
        remedy="Ask for a larger epsilon or delta.",
    )

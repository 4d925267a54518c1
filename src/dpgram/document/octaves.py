"""Signed powers of two: 4197 cells that hold every float, and the bounds that a run of them stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

from dpgram.core import GREATEST_EXPONENT, LEAST_EXPONENT, ZERO

_LEAST_HALF_WIDTH: Final = 1e-274


def octave_edges(place: int) -> tuple[float, float]:
    """The least and greatest value of an octave."""
    if place == ZERO:
        return 0.0, 0.0
    exponent = abs(place - ZERO) + LEAST_EXPONENT - 1
    low = math.ldexp(1.0, exponent)
    high = math.nextafter(math.inf, 0.0) if exponent == GREATEST_EXPONENT else math.ldexp(1.0, exponent + 1)
    return (low, high) if place > ZERO else (-high, -low)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OctaveRun:
    """The run of octaves found, as places of the histogram, and the bounds it stands for."""

    first: int
    last: int

    @property
    def bounds(self) -> tuple[float, float]:
        """From the least value of the first to the greatest of the last octave; never a single point."""
        low, high = octave_edges(self.first)[0], octave_edges(self.last)[1]
        if low == high:
            return -1.0, 1.0  # zeros only: any scale will do
        spread = _LEAST_HALF_WIDTH if high - low < 2 * _LEAST_HALF_WIDTH else 0.0
        return low - spread, high + spread

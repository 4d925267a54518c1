"""Signed powers of two: 4197 cells that hold every float, and the bounds that a run of them stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LEAST_EXPONENT: Final = -1074
GREATEST_EXPONENT: Final = 1023
ZERO: Final = GREATEST_EXPONENT - LEAST_EXPONENT + 1
"""The place of the cell that counts zeros; 2^k ≤ x < 2^(k+1) is k − LEAST_EXPONENT + 1 above it."""
OCTAVES: Final = 2 * ZERO + 1
_LEAST_HALF_WIDTH: Final = 1e-274


def octave_places(values: Floats) -> Integers:
    """The place of each value's octave in the histogram; −1 where it is not finite.

    Proof: proofs/bounds.md#bounds-parts.
    """
    finite = np.isfinite(values)
    held = np.where(finite, values, 0.0)
    _, exponents = np.frexp(np.abs(held))
    steps = exponents.astype(np.int64) - LEAST_EXPONENT
    return np.where(finite, ZERO + np.sign(held).astype(np.int64) * steps, -1)


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

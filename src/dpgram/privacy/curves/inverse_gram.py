"""The sensitivity of the inverse Gram matrix, (G + L·I)⁻¹ on its public grid, in reciprocal lattice units."""

from __future__ import annotations

import math
from typing import Final

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.spectral import ROWS_AT_MOST

GRID_BITS: Final = 36
"""The public grid is 2^36 times finer than the sensitivity: the discrete noise follows the Gaussian curve."""


def inverse_exponent(ridge: float) -> int:
    """⌊log₂(s/(L(L + s)))⌋ less the bits of the grid: cells are whole multiples of 2 to this power.

    Proof: proofs/inverse-noise.md#inverse-noise-grid.
    """
    return math.floor(math.log2(ROW_NORM_SQUARED / (ridge * (ridge + ROW_NORM_SQUARED)))) - GRID_BITS


def inverse_sensitivity(adjacency: Adjacency, width: int, ridge: float, *, unit_rows: int = 1) -> float:
    """Δ of the exact inverse, plus twice what rounding and a backward-stable float inverse can move it.

    Proof: proofs/inverse-noise.md#inverse-noise-grid.
    """
    exact = adjacency.inverse_frobenius(float(ROW_NORM_SQUARED), ridge, rank=min(unit_rows, width))
    condition = 1.0 + ROWS_AT_MOST * ROW_NORM_SQUARED / ridge
    floats = 4.0 * width**1.5 * 2.0**-53 * condition / ridge
    rounding = 0.5 * width * 2.0 ** inverse_exponent(ridge)
    return up(exact + 2.0 * (floats + rounding))

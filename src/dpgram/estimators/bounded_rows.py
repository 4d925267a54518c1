"""(x, y) ↦ (q, t) ∈ ℤ^d × ℤ with |q|² ≤ 2^30 and |t| ≤ 2^15: rows inside public bounds, on the lattice.

x is scaled by min(1, B_x/|x|), y clamped to [−B_y, B_y], and both are rounded to steps of B_x/2^15 and
B_y/2^15. One row then moves Σ q qᵀ by at most 2^30 in trace and Frobenius norm and Σ q t by at most 2^30 in
length: facts about integers, whatever floats did before.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.gram import EXACT_ROWS
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

SCALED_AT_MOST: Final = 1e150
"""Beyond it squares overflow; a row is shrunk to this size first, which no radius can tell."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class BoundedRows:
    """Lattice rows, held as floats with integer values. **Not private.**

    Proof: proofs/adassp.md#adassp-lattice.
    """

    x: Floats
    """q, one row a line."""
    y: Floats
    """t."""

    @classmethod
    def of(cls, x: Floats, y: Floats, *, x_norm: float, y_bound: float) -> Self:
        """Rows with a number that is not finite are left out: whether fitting succeeds depends on no row."""
        finite = np.isfinite(x).all(axis=1) & np.isfinite(y)
        kept = clipped(x[finite], x_norm)
        target = np.rint(np.clip(y[finite], -y_bound, y_bound) / y_bound * ROW_NORM)
        return cls(x=_on_lattice(kept / x_norm), y=target)

    def moments(self) -> tuple[Integers, Integers]:
        """(Σ q qᵀ, Σ q t), exactly: floats add up integers below 2^53 without an error."""
        width = self.x.shape[1]
        second, first = np.zeros((width, width), np.int64), np.zeros(width, np.int64)
        for start in range(0, len(self.x), EXACT_ROWS):
            piece, target = self.x[start : start + EXACT_ROWS], self.y[start : start + EXACT_ROWS]
            second += (piece.T @ piece).astype(np.int64)
            first += (piece.T @ target).astype(np.int64)
        return second, first


def clipped(x: Floats, radius: float) -> Floats:
    """Each row scaled by min(1, radius/|x|)."""
    largest = np.abs(x).max(axis=1, initial=0.0, keepdims=True)
    tame = x * np.minimum(1.0, SCALED_AT_MOST / np.maximum(largest, SCALED_AT_MOST))
    length = np.linalg.norm(tame, axis=1, keepdims=True)
    shrunk: Floats = tame * np.minimum(1.0, radius / np.maximum(length, radius))
    return shrunk


def _on_lattice(unit: Floats) -> Floats:
    """Rows of norm about 1 at most as integers with |q|² ≤ 2^30, exactly."""
    scaled = unit * ROW_NORM
    rounded = np.rint(scaled)
    over = (rounded**2).sum(axis=1) > ROW_NORM_SQUARED
    rounded[over] = np.trunc(scaled[over])
    # Truncation shortens; only a row whose float norm itself was above 2^15 can still be over.
    over = (rounded**2).sum(axis=1) > ROW_NORM_SQUARED
    while over.any():
        rows = np.flatnonzero(over)
        columns = np.abs(rounded[rows]).argmax(axis=1)
        rounded[rows, columns] -= np.sign(rounded[rows, columns])
        over = (rounded**2).sum(axis=1) > ROW_NORM_SQUARED
    return rounded

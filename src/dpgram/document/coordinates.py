"""u = T v: the coordinates in which a matrix was measured, where these are not the encoded columns.

T is lower triangular with a positive diagonal, and its entries are multiples of 2^−shift. Encoded rows are
rounded to multiples of weight / 2^20 before it is applied. So u is a whole number of known units, every
partial sum of it is an integer below 2^53, and no order of adding can change a bit of it: a row's u depends
on that row alone, however rows are batched and whatever computes the product (proofs/adaptive.md).
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Final, Self

import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from dpgram.errors import MechanismError

Matrix = npt.NDArray[np.float64]

VALUE_BITS: Final = 20
"""An encoded cell is rounded to this many binary digits before T is applied."""
ROW_SUM_BITS: Final = 32
"""Σ_j |T_ij| is at most 2^32 in its units: with cells up to 2^20 every partial sum stays below 2^53."""
LARGEST: Final = 1 << ROW_SUM_BITS


class Coordinates(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """T as integers: `cells` row by row up to the diagonal, in units of 2^−shift.

    Proof: proofs/adaptive.md#adaptive-rows.
    """

    shift: Annotated[int, Meta(ge=-32, le=128)]
    cells: Annotated[
        tuple[Annotated[int, Meta(ge=-LARGEST, le=LARGEST)], ...], Meta(min_length=1, max_length=1 << 22)
    ]

    def __post_init__(self) -> None:
        width = self.width
        if width * (width + 1) // 2 != len(self.cells):
            raise ValueError("the coordinates are not those of a triangular matrix")
        if (np.diagonal(self.integers) <= 0.0).any() or np.abs(self.integers).sum(axis=1).max() > LARGEST:
            raise ValueError(
                "the coordinates have a row that is too large, or a diagonal that is not positive"
            )

    @classmethod
    def nearest(cls, transform: Matrix) -> Self:
        """The grid point nearest to a lower triangular matrix; its diagonal stays positive.

        >>> import numpy as np
        >>> from dpgram.document import Coordinates
        >>> Coordinates.nearest(np.array([[1.0, 0.0], [0.5, 0.25]])).matrix
        array([[1.  , 0.  ],
               [0.5 , 0.25]])
        """
        lower = np.tril(transform)
        size = float(np.abs(lower).sum(axis=1).max())
        if not (np.isfinite(size) and size > 0.0):
            raise MechanismError(
                "the coordinates of the second matrix are not finite",
                remedy="This is a bug: please report it",
            )
        # One digit is left for what rounding adds to a row of at most 2^16 entries.
        shift = min(max(ROW_SUM_BITS - 1 - int(np.ceil(np.log2(size))), -32), 128)
        units = np.rint(np.ldexp(lower, shift))
        diagonal = np.diag_indices(len(units))
        units[diagonal] = np.maximum(units[diagonal], 1.0)
        cells = tuple(int(cell) for cell in units[np.tril_indices(len(units))])
        return cls(shift=shift, cells=cells)

    @cached_property
    def width(self) -> int:
        """d: the number of encoded columns."""
        return (int(np.sqrt(8.0 * len(self.cells) + 1.0)) - 1) // 2

    @cached_property
    def integers(self) -> Matrix:
        """T in its units: whole numbers, held as floats."""
        matrix = np.zeros((self.width, self.width))
        matrix[np.tril_indices(self.width)] = self.cells
        return matrix

    @cached_property
    def matrix(self) -> Matrix:
        """T."""
        return np.ldexp(self.integers, -self.shift)

    @cached_property
    def inverse(self) -> Matrix:
        """L = T⁻¹: v = L u, so that a function f·v of the encoded row is (Lᵀf)·u."""
        from scipy.linalg import solve_triangular

        found: Matrix = solve_triangular(self.matrix, np.eye(self.width), lower=True)
        return np.tril(found)

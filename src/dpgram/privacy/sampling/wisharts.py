"""Wishart and inverse-Wishart matrices rounded to integers, exact in law: Bartlett's factor in balls.

T is lower triangular, normal numbers below the diagonal and T_ii² ~ χ²_{r−i+1}: T Tᵀ ~ Wishart_d(I, r).
With Σ = L Lᵀ, L T Tᵀ Lᵀ ~ Wishart_d(Σ, r) and L (T Tᵀ)⁻¹ Lᵀ ~ InvWishart_d(Σ, r).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from dpgram.core.balls import (
    START_BITS,
    ChiSquared,
    RandomBytes,
    RevealedTogether,
    Uniforms,
    decided,
    nearest_integers,
)

if TYPE_CHECKING:
    from flint import arb, arb_mat

Integers = npt.NDArray[np.object_]


@final
class BartlettFactor:
    """T of Wishart_d(I, r), known through its bits: d rows, and r columns where r < d.

    Proof: proofs/entropy.md#entropy-wishart.
    """

    def __init__(
        self, width: int, degrees: int, random_bytes: RandomBytes, start_bits: int = START_BITS
    ) -> None:
        self._width = width
        self._squares = [
            ChiSquared(degrees - i, random_bytes, start_bits) for i in range(min(width, degrees))
        ]
        below = sum(min(i, degrees) for i in range(width))
        self._below = Uniforms(below + below % 2, random_bytes, start_bits)
        self.revealed = RevealedTogether(self._below, *self._squares)

    def ball(self) -> arb_mat:
        """T."""
        from flint import arb, arb_mat

        normals = iter(self._below.normals())
        columns = len(self._squares)
        rows: list[list[arb]] = []
        for i in range(self._width):
            row = [next(normals) for _ in range(min(i, columns))]
            if i < columns:
                row += [self._squares[i].ball().sqrt(), *[arb(0)] * (columns - i - 1)]
            rows.append(row)
        return arb_mat(rows)


def wishart(
    gram: npt.NDArray[np.int64],
    ridge: float,
    degrees: int,
    random_bytes: RandomBytes,
    *,
    start_bits: int = START_BITS,
) -> Integers:
    """round(W/r), W ~ Wishart_d(G + ridge·I, r): a sketch of r random combinations of rows.

    Proof: proofs/entropy.md#entropy-wishart.
    """
    from flint import arb

    def drawn(root: arb_mat, factor: arb_mat) -> arb_mat:
        half = root * factor
        return half * half.transpose() * (1 / arb(degrees))

    return _around(gram, ridge, BartlettFactor(len(gram), degrees, random_bytes, start_bits), drawn)


def inverse_wishart(
    gram: npt.NDArray[np.int64],
    prior: float,
    degrees: int,
    random_bytes: RandomBytes,
    *,
    start_bits: int = START_BITS,
) -> Integers:
    """round((ν − d − 1)·S), S ~ InvWishart_d(G + prior·I, ν): one draw of the posterior.

    Proof: proofs/entropy.md#entropy-wishart.
    """
    width = len(gram)

    def drawn(root: arb_mat, factor: arb_mat) -> arb_mat | None:
        half = _solved(factor, root.transpose())
        return None if half is None else half.transpose() * half * (degrees - width - 1)

    return _around(gram, prior, BartlettFactor(width, degrees, random_bytes, start_bits), drawn)


def added_rows(
    width: int, scale: float, degrees: int, random_bytes: RandomBytes, *, start_bits: int = START_BITS
) -> Integers:
    """round(W), W ~ Wishart_d(scale·I, k): the second moments of k random rows.

    Proof: proofs/entropy.md#entropy-wishart.
    """
    from flint import arb

    rows = BartlettFactor(width, degrees, random_bytes, start_bits)

    def cells() -> Integers | None:
        factor = rows.ball()
        return nearest_integers(factor * factor.transpose() * arb(scale))

    return decided(rows.revealed, cells)


def _around(
    gram: npt.NDArray[np.int64],
    ridge: float,
    factor: BartlettFactor,
    drawn: Callable[[arb_mat, arb_mat], arb_mat | None],
) -> Integers:
    """The integers nearest to what `drawn` makes of L, L Lᵀ = G + ridge·I, and of the random factor T."""

    def cells() -> Integers | None:
        root = _cholesky(gram, ridge)
        found = None if root is None else drawn(root, factor.ball())
        return None if found is None else nearest_integers(found)

    return decided(factor.revealed, cells)


def _cholesky(gram: npt.NDArray[np.int64], ridge: float) -> arb_mat | None:
    """L with L Lᵀ = G + ridge·I; only the lower triangle is read. None if it needs more precision."""
    from flint import arb, arb_mat

    width = len(gram)
    shift = arb(ridge)
    lower: list[list[arb]] = []
    for i, cells in enumerate(gram.tolist()):
        row: list[arb] = []
        for j in range(i + 1):
            left = arb(cells[j])
            for a, b in zip(row, lower[j] if j < i else row, strict=False):
                left -= a * b
            if j < i:
                row.append(left / lower[j][j])
        left += shift
        if not left > 0:
            return None
        row.append(left.sqrt())
        lower.append(row)
    return arb_mat([[*row, *[arb(0)] * (width - len(row))] for row in lower])


def _solved(factor: arb_mat, right: arb_mat) -> arb_mat | None:
    """factor⁻¹·right, or None if the balls of `factor` are too wide to tell that it is regular."""
    try:
        return factor.solve(right)
    except ZeroDivisionError:
        return None

"""Whether a Gram matrix from elsewhere can be one of lattice rows: a forged file may state any integers.

A true sum Σ q qᵀ passes every test here whatever its rows are: that none is refused is argued at each.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.sums.exact_gram import ExactGram

if TYPE_CHECKING:
    from flint import arb_mat

Floats = npt.NDArray[np.float64]

SHIFT: Final = 2.0**-20
"""Added to the diagonal where exact arithmetic decides. Mechanisms that need G + ψI > 0 have ψ ≥ 1."""
_START_BITS, _MOST_BITS = 256, 2048
"""With conditions below 2^84 each halving loses about 84 bits, of at most 16: true sums need less than 1,500.
All that were tried, of up to 500 columns, are decided at the first. A doubt at the last is refused."""


def counts_agree(gram: ExactGram) -> bool:
    """Every row that was read was used or dropped, and no part is more than the whole."""
    counts = gram.counts
    dropped = (
        counts.rows_without_unit,
        counts.rows_over_unit_limit,
        counts.rows_without_group,
        counts.rows_without_weight,
        counts.rows_left_out,
    )
    return (
        counts.rows_used == gram.rows
        and counts.rows_read == counts.rows_used + counts.rows_dropped
        and counts.rows_clipped <= counts.rows_used
        and max(dropped) <= counts.rows_dropped
    )


def cells_agree(gram: ExactGram) -> bool:
    """Squares on the diagonal, of at most 2^30 for each row together, and Cauchy–Schwarz for each cell.

    All in integers, without rounding.
    """
    squares = [int(cell) for cell in gram.cells.diagonal()]
    if min(squares, default=0) < 0 or sum(squares) > gram.rows * ROW_NORM_SQUARED:
        return False
    return all(
        cell * cell <= square * other
        for square, line in zip(squares, gram.cells, strict=True)
        for cell, other in zip(line.tolist(), squares, strict=True)
    )


def clearly_indefinite(gram: ExactGram) -> bool:
    """Whether some direction has a negative sum of squares, by more than rounding explains."""
    return not _factored(_correlations(gram), 1)


def semidefinite(gram: ExactGram) -> bool:
    """Whether G + 2⁻²⁰·I is positive definite: in floats where they leave no doubt, else in ball arithmetic.

    Sums of rows are positive semidefinite, so this eigenvalue is 2⁻²⁰ at least and enough bits show it.
    """
    correlations = _correlations(gram)
    if _factored(correlations, -1):
        return True
    return _factored(correlations, 1) and _shifted_is_definite(gram)


def _correlations(gram: ExactGram) -> Floats:
    """K = D^−½ G D^−½ without columns of zeros; of cells that `cells_agree` has seen."""
    cells = gram.cells
    (there,) = np.nonzero(cells.diagonal())
    roots = np.sqrt(cells.diagonal()[there].astype(np.float64))
    found: Floats = cells[np.ix_(there, there)] / roots[:, None] / roots
    np.fill_diagonal(found, 1.0)
    return found


def _factored(correlations: Floats, sign: int) -> bool:
    """Whether Cholesky's algorithm goes through for K + sign·m·I, m = d(d + 10)·2⁻⁵².

    With u = 2⁻⁵³: a cell of K is off by less than 8u, as |K_ij| ≤ 1, and K by 8du in the spectral norm. By
    Demmel's theorem (Higham, Accuracy and Stability of Numerical Algorithms, Theorems 10.5 and 10.7; any
    order of adding) the algorithm goes through for a matrix with unit diagonal whose least eigenvalue is
    above dγ/(1 − γ), γ = (d + 1)u/(1 − (d + 1)u), and where it goes through that eigenvalue is above
    −dγ/(1 − γ). m − 8du − 2u is twice d(d + 1)u at least, which covers 1/(1 − γ) and a diagonal of 1 ± m for
    d ≤ 2^20: +m goes through for every positive semidefinite K, −m for no other.
    """
    width = len(correlations)
    margin = width * (width + 10) * 2.0**-52
    try:
        np.linalg.cholesky(correlations + sign * margin * np.eye(width))
    except np.linalg.LinAlgError:
        return False
    return True


def _shifted_is_definite(gram: ExactGram) -> bool:
    from flint import arb, arb_mat, ctx

    bits = _START_BITS
    while bits <= _MOST_BITS:
        with ctx.workprec(bits):
            shifted = arb_mat([[arb(cell) for cell in line] for line in gram.cells.tolist()])
            for place in range(gram.width):
                shifted[place, place] += arb(SHIFT)
            found = _definite(shifted)
        if found is not None:
            return found
        bits *= 2
    return False


def _definite(matrix: arb_mat) -> bool | None:
    """Whether a symmetric matrix is positive definite: its first half, and the Schur complement of that.

    None where the balls are too wide to tell.
    """
    from flint import arb_mat

    lines = matrix.tolist()
    if len(lines) == 1:
        return None if lines[0][0].contains(0) else bool(lines[0][0] > 0)
    half = len(lines) // 2
    first = arb_mat([line[:half] for line in lines[:half]])
    beside = arb_mat([line[:half] for line in lines[half:]])
    last = arb_mat([line[half:] for line in lines[half:]])
    found = _definite(first)
    if not found:
        return found
    try:
        complement = last - beside * first.solve(beside.transpose())
    except ZeroDivisionError:
        return None
    return _definite(complement)

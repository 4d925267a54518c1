"""Errors of a declared linear model that allow for unequal variances, and for persons with several rows.

With A = Σ xxᵀ and e the residual, Cov θ̂ = A⁻¹ M A⁻¹ with M = Σ a aᵀ, a = e·x summed over the rows of a unit:
the sandwich of Eicker, Huber and White, clustered by what is protected. The classical errors take s²A for M.
A declared model has M in the release, with noise of known law N. Where C = s²A is the classical M,

    W = C^−½ M̃ C^−½ = m·I + D,   M̂ = C^½(m·I + λD)C^½,   λ = max(0, 1 − E|C^−½NC^−½|²/|D|²),

so that noise which hides the differences between directions leaves what it does not hide: their mean m. For
the noise left in M̂ the variance of a coefficient is enlarged by what a t-quantile of as many degrees of
freedom would add. Whether |D|² is larger than noise and chance make it is the test for unequal variances.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

from dpgram.analysis.unshrunken import Unshrunken
from dpgram.document.model_units import DIRECTION_BITS
from dpgram.lattice import ROW_NORM

if TYPE_CHECKING:
    from dpgram.analysis.moments import Moments
    from dpgram.document.fields import MeasuredProducts

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

AGREES: Final = 1e-5
"""How far the fit of a release may be from the directions that were written into it, by rounding."""
SURE: Final = 3.0
"""Deviations of its noise that the mean of all variances must have."""
WIDENED: Final = 1.21
"""t² of ν degrees of freedom is about z²(1 + (z² + 1)/(2ν)), and 2/ν the relative variance of a variance."""
SMALLEST: Final = 0.02
"""Of the mean: no direction has less."""
REJECTED: Final = 1e-3
"""Chance below which variances count as unequal."""
DIAGONAL_CHANCE, OFF_CHANCE = 8.0, 3.0
"""n times the sampling variance of W's cells where features and errors are normal."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class UnequalVariance:
    """A test that the classical errors are right: that variances do not go with the features."""

    statistic: float
    """χ² of `degrees` where they do not, and noise hides more than chance does."""
    degrees: int
    pvalue: float
    ratio: float
    """The largest ratio of a standard error that allows for it to a classical one, over all directions."""

    @property
    def rejected(self) -> bool:
        return self.pvalue < REJECTED

    def __str__(self) -> str:
        return f"χ²({self.degrees}) = {self.statistic:.4g}, p = {self.pvalue:.2g}"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Robust:
    """M of a declared model in the coordinates of its solution, as far as the noise lets it be seen."""

    middle: Matrix
    """M̂."""
    test: UnequalVariance


def residual_direction(solution: Unshrunken) -> Vector:
    """r/|r|."""
    length = float(np.linalg.norm(solution.residual))
    return np.asarray(solution.residual / length if length > 0.0 else solution.residual)


def largest_product(solution: Unshrunken) -> float:
    """The largest |r·u||Vᵀu| of unit vectors r and u: (1 + |Vᵀr|)/2."""
    inside = float(np.linalg.norm(solution.basis.T @ residual_direction(solution)))
    return min(0.5 * (1.0 + inside) * (1.0 + 1e-6), 1.0)


def usual_product(solution: Unshrunken, rows: float) -> float:
    """√(E|a|²) of rows whose errors do not go with their features, in the units of u²; noisy."""
    spread = float(np.trace(np.linalg.inv(solution.resolvent))) / rows
    size = float(solution.residual @ solution.residual)
    error = max(solution.residual_sum, 0.0) / rows / size if size > 0.0 else 0.0
    return math.sqrt(max(spread, 0.0) * error)


def products_of(moments: Moments, solution: Unshrunken) -> MeasuredProducts | None:
    """What was measured for the model with this solution; nothing where it was not declared."""
    unit = residual_direction(solution)
    for each in moments.products:
        basis = np.ldexp(np.array(each.basis, dtype=np.float64).T, -DIRECTION_BITS)
        residual = np.ldexp(np.array(each.residual, dtype=np.float64), -DIRECTION_BITS)
        if basis.shape != solution.basis.shape:
            continue
        outside = basis - solution.basis @ (solution.basis.T @ basis)
        if np.abs(outside).max() < AGREES and np.abs(residual - unit).max() < AGREES:
            return each
    return None


def robust(moments: Moments, solution: Unshrunken, classical: float) -> Robust | None:
    """M̂; nothing where the model was not declared, or noise hides M altogether.

    `classical` is s² with everything that multiplies A for the classical M. An approximation, and of what:
    proofs/models.md#models-errors.
    """
    measured = products_of(moments, solution)
    rows = moments.rows
    if measured is None or rows is None or classical <= 0.0 or not len(solution.theta):
        return None
    values, vectors = np.linalg.eigh(solution.resolvent)
    if values[0] <= 0.0:
        return None
    unit = (measured.bound * moments.radius**2 / ROW_NORM) ** 2 * float(solution.residual @ solution.residual)
    turn = solution.basis.T @ np.ldexp(np.array(measured.basis, dtype=np.float64).T, -DIRECTION_BITS)
    width = len(measured.basis)
    cells = np.zeros((width, width))
    cells[np.tril_indices(width)] = [float(int(cell)) for cell in measured.cells]
    cells = cells + np.tril(cells, -1).T
    with np.errstate(all="ignore"):  # numbers of a forged file may be beyond floats
        noisy = turn @ (cells * unit) @ turn.T
    if not np.isfinite(noisy).all() or not math.isfinite(measured.noise.sigma * unit):
        return None
    sizes = classical / values
    """Eigenvalues of C."""
    halves = np.sqrt(sizes)
    standard = (vectors.T @ noisy @ vectors) / np.outer(halves, halves)
    variance = 0.5 * (measured.noise.sigma * unit) ** 2
    inverse = 1.0 / sizes
    mean = float(np.trace(standard)) / width
    mean_sd = math.sqrt(2.0 * variance * float(inverse @ inverse)) / width
    if mean <= SURE * mean_sd:
        return None
    apart = standard - mean * np.eye(width)
    energy = float(np.sum(apart**2))
    hidden = variance * (float(inverse.sum()) ** 2 + float(inverse @ inverse)) - width * mean_sd**2
    left = max(0.0, 1.0 - hidden / energy) if energy > 0.0 else 0.0
    levels, axes = np.linalg.eigh(mean * np.eye(width) + left * apart)
    levels = np.maximum(levels, SMALLEST * mean)
    shape = (axes * levels) @ axes.T
    middle = vectors @ (shape * np.outer(halves, halves)) @ vectors.T
    typical = mean * float(np.mean(sizes))
    middle += WIDENED * 2.0 * variance * left / typical * np.eye(width)
    chance = mean**2 * (DIAGONAL_CHANCE * width + OFF_CHANCE * width * (width - 1.0)) / max(rows, 1.0)
    degrees = width * (width + 1) // 2 - 1
    statistic = degrees * energy / (hidden + chance) if degrees else 0.0
    test = UnequalVariance(
        statistic=statistic,
        degrees=degrees,
        pvalue=float(chdtrc(degrees, statistic)) if degrees else 1.0,
        ratio=math.sqrt(float(levels[-1])),
    )
    return Robust(middle=(middle + middle.T) / 2.0, test=test)

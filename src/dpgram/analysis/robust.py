"""The spread of a declared model's scores, for errors that allow for unequal variances and dependent rows.

With H the Hessian matrix, Cov θ̂ = H⁻¹ M H⁻¹ with M = Σ s sᵀ, s the scores of units: the sandwich of Eicker,
Huber and White, clustered by what is protected. The classical errors take a multiple C of H for M. A declared
linear model or model of counts has M in the release, with noise of known law N. Then

    W = C^−½ M̃ C^−½ = m·I + D,   M̂ = C^½(m·I + λD)C^½,   λ = max(0, 1 − E|C^−½NC^−½|²/|D|²),

so that noise which hides the differences between directions leaves what it does not hide: their mean m. Where
|D|² is clearly larger than noise and chance make it, which is the test for unequal variances, λ = 1: what was
measured is taken as it is, since a part of it would leave errors too small. For the noise left in M̂ the
variance of a coefficient is enlarged by what a t-quantile of as many degrees of freedom would add.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc

Matrix = npt.NDArray[np.float64]

SURE: Final = 3.0
"""Deviations of its noise that the mean of all variances must have."""
WIDENED: Final = 1.21
"""t² of ν degrees of freedom is about z²(1 + (z² + 1)/(2ν)), and 2/ν the relative variance of a variance."""
SMALLEST: Final = 0.02
"""Of the mean: no direction has less."""
REJECTED: Final = 1e-3
"""Chance below which variances count as unequal."""
LEAST_PVALUE: Final = 1e-4
"""Smaller ones are not told: the law of the statistic is an approximation there."""
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
        chance = f"p = {self.pvalue:.2g}" if self.pvalue >= LEAST_PVALUE else f"p < {LEAST_PVALUE:g}"
        return f"χ²({self.degrees}) = {self.statistic:.4g}, {chance}"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Robust:
    """M of a declared model in the coordinates of its solution, as far as the noise lets it be seen."""

    middle: Matrix
    """M̂."""
    widened: Matrix
    """The same, enlarged for the noise left in it: for the spread of scores."""
    test: UnequalVariance


def repaired(
    noisy: Matrix, variance: float, classical: Matrix, *, rows: float, clipped: float
) -> Robust | None:
    """M̂ from M̃ with noise of this variance off the diagonal; nothing where noise hides M altogether.

    `classical` is C, positive definite. `clipped` is the part of a direction's M that a clip may have taken
    while leaving that of others: so far apart they may be without a word on variances. An approximation, and
    of what: proofs/models.md#models-errors.
    """
    sizes, vectors = np.linalg.eigh(classical)
    if not len(sizes) or sizes[0] <= 0.0 or not np.isfinite(noisy).all() or not math.isfinite(variance):
        return None
    width, halves = len(sizes), np.sqrt(sizes)
    standard = (vectors.T @ noisy @ vectors) / np.outer(halves, halves)
    inverse = 1.0 / sizes
    mean = float(np.trace(standard)) / width
    mean_sd = math.sqrt(2.0 * variance * float(inverse @ inverse)) / width
    if mean <= SURE * mean_sd:
        return None
    apart = standard - mean * np.eye(width)
    energy = float(np.sum(apart**2))
    hidden = variance * (float(inverse.sum()) ** 2 + float(inverse @ inverse)) - width * mean_sd**2
    chance = mean**2 * (DIAGONAL_CHANCE * width + OFF_CHANCE * width * (width - 1.0)) / max(rows, 1.0)
    chance += width * (clipped * mean) ** 2
    degrees = width * (width + 1) // 2 - 1
    statistic = degrees * energy / (hidden + chance) if degrees else 0.0
    pvalue = float(chdtrc(degrees, statistic)) if degrees else 1.0
    left = max(0.0, 1.0 - hidden / energy) if energy > 0.0 else 0.0
    if pvalue < REJECTED:
        left = 1.0
    levels, axes = np.linalg.eigh(mean * np.eye(width) + left * apart)
    levels = np.maximum(levels, SMALLEST * mean)
    shape = (axes * levels) @ axes.T
    middle = vectors @ (shape * np.outer(halves, halves)) @ vectors.T
    middle = (middle + middle.T) / 2.0
    typical = mean * float(np.mean(sizes))
    return Robust(
        middle=middle,
        widened=middle + WIDENED * 2.0 * variance * left / typical * np.eye(width),
        test=UnequalVariance(
            statistic=statistic, degrees=degrees, pvalue=pvalue, ratio=math.sqrt(float(levels[-1]))
        ),
    )

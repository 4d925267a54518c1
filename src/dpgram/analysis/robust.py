"""The spread of a declared model's scores, for errors that allow for unequal variances and dependent rows.

With H the Hessian matrix, Cov θ̂ = H⁻¹ M H⁻¹ with M = Σ s sᵀ, s the scores of units: the sandwich of Eicker,
Huber and White, clustered by what is protected. The classical errors take a multiple C of H for M. A declared
linear model or model of counts has M in the release, with noise of known law N. Then

    W = C^−½ M̃ C^−½ = m·I + D,   M̂ = C^½(m·I + λD)C^½,   λ = max(0, 1 − E|C^−½NC^−½|²/|D|²),

so that noise which hides the differences between directions leaves what it does not hide: their mean m. Where
|D|² is clearly larger than noise and chance make it, which is the test for unequal variances, λ = 1: what was
measured is taken as it is, since a part of it would leave errors too small. For the noise left in M̂ the
variance of a coefficient is enlarged by what a t-quantile of as many degrees of freedom would add.

The Hessian matrix is drawn in the same way towards what the matrix of the release tells of it, always by λ:
it multiplies a step, and should be as near to the true one as can be. Were the cells of D normal and of the
same variance, then given D̃ that of each would be λ times that of its noise: so much is left unknown.
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


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Drawn:
    """H of a declared model, drawn towards what else is known of it."""

    middle: Matrix
    """Ĥ."""
    left: float
    """λ: of the variance of the noise, what is left in Ĥ,"""
    scale_variance: float
    """and that of Ĥ as a whole, relative to it, beside that."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Standard:
    """W = C^−½ M̃ C^−½ = m·I + D, in the eigenvectors of C: proofs/models.md#models-errors."""

    sizes: npt.NDArray[np.float64]
    """The eigenvalues of C,"""
    vectors: Matrix
    """and its eigenvectors."""
    mean: float
    mean_variance: float
    """Of the noise of m."""
    apart: Matrix
    """D."""
    hidden: float
    """E|D|² of noise alone."""

    @classmethod
    def of(cls, noisy: Matrix, variance: float, classical: Matrix) -> _Standard | None:
        """Nothing where noise hides M̃ altogether. Noise has this variance off the diagonal."""
        sizes, vectors = np.linalg.eigh(classical)
        if not len(sizes) or sizes[0] <= 0.0 or not np.isfinite(noisy).all() or not math.isfinite(variance):
            return None
        width, halves = len(sizes), np.sqrt(sizes)
        standard = (vectors.T @ noisy @ vectors) / np.outer(halves, halves)
        inverse = 1.0 / sizes
        mean = float(np.trace(standard)) / width
        mean_variance = 2.0 * variance * float(inverse @ inverse) / width**2
        if mean <= SURE * math.sqrt(mean_variance):
            return None
        hidden = variance * (float(inverse.sum()) ** 2 + float(inverse @ inverse)) - width * mean_variance
        return cls(
            sizes=sizes,
            vectors=vectors,
            mean=mean,
            mean_variance=mean_variance,
            apart=standard - mean * np.eye(width),
            hidden=hidden,
        )

    @property
    def energy(self) -> float:
        """|D|²."""
        return float(np.sum(self.apart**2))

    @property
    def left(self) -> float:
        """λ: of D, what noise does not hide."""
        return max(0.0, 1.0 - self.hidden / self.energy) if self.energy > 0.0 else 0.0

    def drawn(self, left: float) -> tuple[Matrix, float]:
        """C^½(m·I + λD)C^½, and its largest eigenvalue in units of C."""
        levels, axes = np.linalg.eigh(self.mean * np.eye(len(self.sizes)) + left * self.apart)
        levels = np.maximum(levels, SMALLEST * self.mean)
        halves = np.sqrt(self.sizes)
        shape = (axes * levels) @ axes.T * np.outer(halves, halves)
        middle = self.vectors @ shape @ self.vectors.T
        return (middle + middle.T) / 2.0, float(levels[-1])


def repaired(
    noisy: Matrix, variance: float, classical: Matrix, *, rows: float, clipped: float
) -> Robust | None:
    """M̂ from M̃ with noise of this variance off the diagonal; nothing where noise hides M altogether.

    `classical` is C, positive definite. `clipped` is the part of a direction's M that a clip may have taken
    while leaving that of others: so far apart they may be without a word on variances. An approximation, and
    of what: proofs/models.md#models-errors.
    """
    seen = _Standard.of(noisy, variance, classical)
    if seen is None:
        return None
    width, mean = len(seen.sizes), seen.mean
    chance = mean**2 * (DIAGONAL_CHANCE * width + OFF_CHANCE * width * (width - 1.0)) / max(rows, 1.0)
    chance += width * (clipped * mean) ** 2
    degrees = width * (width + 1) // 2 - 1
    statistic = degrees * seen.energy / (seen.hidden + chance) if degrees else 0.0
    pvalue = float(chdtrc(degrees, statistic)) if degrees else 1.0
    left = 1.0 if pvalue < REJECTED else seen.left
    middle, largest = seen.drawn(left)
    typical = mean * float(np.mean(seen.sizes))
    return Robust(
        middle=middle,
        widened=middle + WIDENED * 2.0 * variance * left / typical * np.eye(width),
        test=UnequalVariance(statistic=statistic, degrees=degrees, pvalue=pvalue, ratio=math.sqrt(largest)),
    )


def drawn_towards(noisy: Matrix, variance: float, classical: Matrix) -> Drawn | None:
    """Ĥ from H̃ with noise of this variance off the diagonal; nothing where noise hides H altogether.

    Where λ < 1 the noise of m is left beside it, (1 − λ)·Var m/m² of it: with λ = 1 it is part of all noise.
    An approximation, and of what: proofs/models.md#models-errors.
    """
    seen = _Standard.of(noisy, variance, classical)
    if seen is None:
        return None
    left = seen.left
    return Drawn(
        middle=seen.drawn(left)[0],
        left=left,
        scale_variance=(1.0 - left) * seen.mean_variance / seen.mean**2,
    )

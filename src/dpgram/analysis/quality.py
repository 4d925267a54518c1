"""R² and residual variance of the un-shrunken regression, each with its own uncertainty.

Both are smooth functions of quadratic forms rᵀG r with r the residual as a function of the row; the noise
moves rᵀG̃ r by rᵀN r to first order, because the residual is orthogonal to the features. The sampling part
uses normal errors: Var s² = 2s⁴/(n−k) and Var R² = 4R²(1−R²)²/n.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

import numpy as np
from scipy import stats

from dpgram.analysis.design import Design
from dpgram.analysis.inference import Kind, refusal_of, residual_degrees
from dpgram.analysis.moments import Moments
from dpgram.analysis.problem import orthonormal
from dpgram.analysis.unshrunken import solve, unshrunken
from dpgram.errors import AnalysisError


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """An estimate with a standard error and the range it must lie in."""

    name: str
    estimate: float
    std_error: float
    low: float
    high: float
    raw: float
    """The estimate before it was cut to the possible range."""

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """A normal interval, cut to the possible range."""
        reach = float(stats.norm.isf(0.5 * (1.0 - level))) * self.std_error
        return max(self.low, self.estimate - reach), min(self.high, self.estimate + reach)

    def __str__(self) -> str:
        return f"{self.name} = {self.estimate:.4g} (standard error {self.std_error:.2g})"


def residual_variance(moments: Moments, design: Design, kind: Kind = "population") -> Quantity:
    """s² = Σ residual² / (n̂ − k) in original units."""
    solution = unshrunken(moments, design)
    degrees = _degrees(moments, design)
    _refuse(refusal_of(solution, moments))
    scale = design.target_scale**2
    raw = solution.residual_sum / degrees
    estimate = max(raw, 0.0)
    shape = np.outer(solution.residual, solution.residual)
    variance = moments.noise.functional_variance(shape) / degrees**2
    if kind == "population":
        variance += 2.0 * estimate**2 / degrees
    return Quantity(
        name="residual variance",
        estimate=estimate * scale,
        std_error=variance**0.5 * scale,
        low=0.0,
        high=np.inf,
        raw=raw * scale,
    )


def plausible_variance(found: Quantity) -> float:
    """E(s² | ŝ²) for ŝ² ~ N(s², τ²) and a flat prior on s² ≥ 0: ŝ² + τ·φ(a)/Φ(a), a = ŝ²/τ.

    For predictions: where noise hides the error variance, an estimate of zero would promise certainty.
    """
    if found.std_error == 0.0:
        return found.estimate
    ratio = found.raw / found.std_error
    hazard = float(np.exp(stats.norm.logpdf(ratio) - stats.norm.logcdf(ratio)))
    return found.raw + found.std_error * hazard


def r_squared(moments: Moments, design: Design, kind: Kind = "population") -> Quantity:
    """1 − Σ residual² / Σ (y − ȳ)²; without an intercept the total is Σ y²."""
    solution = unshrunken(moments, design)
    _refuse(refusal_of(solution, moments))
    gram, target = moments.consistent_gram, moments.project(design.target_vector)
    columns = design.vectors[:, :1] if design.intercept else design.vectors[:, :0]
    total = solve(gram, orthonormal(moments.project(columns)), target, moments.noise)
    if total.residual_sum <= 2.0 * moments.noise.diagonal_sd * float(total.residual @ total.residual):
        raise AnalysisError(
            "no R²: the variance of the target does not stand clear of the noise",
            remedy="Publish more rows, or with a larger epsilon.",
        )
    ratio = solution.residual_sum / total.residual_sum
    shape = np.outer(solution.residual, solution.residual) - ratio * np.outer(total.residual, total.residual)
    variance = moments.noise.functional_variance(shape) / total.residual_sum**2
    estimate = float(np.clip(1.0 - ratio, 0.0, 1.0))
    if kind == "population":
        variance += 4.0 * estimate * (1.0 - estimate) ** 2 / _degrees(moments, design)
    return Quantity(name="R²", estimate=estimate, std_error=variance**0.5, low=0.0, high=1.0, raw=1.0 - ratio)


def _degrees(moments: Moments, design: Design) -> float:
    degrees = residual_degrees(moments, design)
    if degrees is None or degrees < 1.0:
        raise AnalysisError(
            "the number of rows is unknown or not larger than the number of coefficients",
            remedy="Use a release with a constant column and more rows.",
        )
    return degrees


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise AnalysisError("the fit of this regression cannot be judged", got=reason)

"""R² and residual variance of the un-shrunken regression, each with its own uncertainty.

Both are smooth functions of quadratic forms rᵀG r with r the residual as a function of the row; the noise
moves rᵀG̃ r by rᵀN r to first order, because the residual is orthogonal to the features. s² is divided by the
noisy n̂ = cᵀG̃c as well, c the constant, so it moves by (rᵀNr − s²·cᵀNc)/(n − k). The sampling part of R²
uses normal errors: Var R² = 4R²(1−R²)²/n. That of s² is (m₄ − s⁴)/n with the errors' fourth moment m₄, of
which second moments tell nothing (2s⁴/n holds for normal errors only), so there is no interval for it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
from scipy.special import log_ndtr

from dpgram.analysis._fieller import fieller_interval
from dpgram.analysis.asked import quantile
from dpgram.analysis.design import Design
from dpgram.analysis.estimand import MOVED_REFUSAL, Kind, moved_columns
from dpgram.analysis.inference import NO_DEGREES, check_kind, residual_degrees
from dpgram.analysis.moments import Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.analysis.trust import refusal_of
from dpgram.analysis.unshrunken import solve, unshrunken
from dpgram.document.terminal import one_line
from dpgram.errors import AnalysisError

NO_FOURTH_MOMENT: Final = (
    "how far a sample's error variance lies from the population's depends on the fourth moment of the "
    'errors, which second moments do not give; kind="table" has an interval, for the privacy noise alone'
)
SIGNAL_TO_NOISE: Final = 6.0
"""A sum of squares below this many standard deviations of its noise is not divided by: whether it passes
would then hang on the noise, and what passed would be too large."""


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
    slope: float = 0.0
    curvature: float = 0.0
    """How the variance moves with the hypothesis (analysis/_fieller.py)."""
    refusal: str | None = None
    """Why there is no interval; nothing where there is one."""

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """The interval around the estimate, cut to the possible range."""
        if self.refusal is not None:
            raise AnalysisError(f"no interval for the {self.name}", got=self.refusal)
        low, high = fieller_interval(
            np.array([self.raw]),
            np.array([self.std_error**2]),
            np.array([self.slope]),
            np.array([self.curvature]),
            quantile(level),
        )
        low, high = np.clip([low[0], high[0]], self.low, self.high)
        return float(low), float(high)

    def __str__(self) -> str:
        return f"{one_line(self.name)} = {self.estimate:.4g} (standard error {self.std_error:.2g})"


def residual_variance(moments: Moments, design: Design, kind: Kind = "population") -> Quantity:
    """s² = Σ residual² / (n̂ − k) in original units; `std_error` is that of the privacy noise alone.

    For the table that is all, and gives an interval; for the population there is none.
    """
    check_kind(kind)
    solution = unshrunken(moments, design)
    degrees = _degrees(moments, design)
    _refuse(refusal_of(solution, moments, design))
    scale = design.target_scale**2
    raw = solution.residual_sum / degrees
    estimate = max(raw, 0.0)
    shape = np.outer(solution.residual, solution.residual)
    constant = moments.constant_vector()
    if constant is not None:  # else the number of rows is public, and has no noise
        one = moments.project(constant)
        shape -= estimate * np.outer(one, one)
    variance = solution.inflation * moments.noise.functional_variance(shape) / degrees**2
    return Quantity(
        name="residual variance",
        estimate=estimate * scale,
        std_error=variance**0.5 * scale,
        low=0.0,
        high=np.inf,
        raw=raw * scale,
        refusal=NO_FOURTH_MOMENT if kind == "population" else None,
    )


def plausible_variance(found: Quantity) -> float:
    """E(s² | ŝ²) for ŝ² ~ N(s², τ²) and a flat prior on s² ≥ 0: ŝ² + τ·φ(a)/Φ(a), a = ŝ²/τ.

    For predictions: where noise hides the error variance, an estimate of zero would promise certainty.
    """
    if found.std_error == 0.0:
        return found.estimate
    ratio = found.raw / found.std_error
    log_density = -0.5 * ratio**2 - 0.5 * math.log(2.0 * math.pi)
    hazard = float(np.exp(log_density - log_ndtr(ratio)))
    return found.raw + found.std_error * hazard


def r_squared(moments: Moments, design: Design, kind: Kind = "population") -> Quantity:
    """1 − Σ residual² / Σ (y − ȳ)²; without an intercept the total is Σ y²."""
    check_kind(kind)
    solution = unshrunken(moments, design)
    _refuse(refusal_of(solution, moments, design))
    if kind == "population" and moved_columns(moments, design):
        _refuse(MOVED_REFUSAL)
    gram, target = moments.consistent_gram, moments.project(design.target_vector)
    columns = design.vectors[:, :1] if design.intercept else design.vectors[:, :0]
    total = solve(gram, orthonormal(moments.project(columns)), target, moments.noise)
    noise_sd = moments.noise.diagonal_sd * float(total.residual @ total.residual)
    if total.residual_sum <= SIGNAL_TO_NOISE * noise_sd:
        raise AnalysisError(
            "the variance of the target does not stand clear of the noise, so its explained share is unknown",
            remedy="Publish more rows, or with a larger epsilon.",
        )
    ratio = solution.residual_sum / total.residual_sum
    left, whole = (np.outer(r, r) for r in (solution.residual, total.residual))
    noise, scale = moments.noise, total.residual_sum**2
    variance = solution.inflation * noise.functional_variance(left - ratio * whole) / scale
    # Var(left − ρ·whole) is a quadratic in ρ; its slope by the polarisation identity.
    mixed = 0.25 * (noise.functional_variance(left + whole) - noise.functional_variance(left - whole))
    curvature = noise.functional_variance(whole)
    estimate = float(np.clip(1.0 - ratio, 0.0, 1.0))
    if kind == "population":
        variance += 4.0 * estimate * (1.0 - estimate) ** 2 / _degrees(moments, design)
    return Quantity(
        name="R²",
        estimate=estimate,
        std_error=variance**0.5,
        low=0.0,
        high=1.0,
        raw=1.0 - ratio,
        slope=2.0 * (mixed - ratio * curvature) / scale,
        curvature=curvature / scale,
    )


def _degrees(moments: Moments, design: Design) -> float:
    degrees = residual_degrees(moments, design)
    if degrees is None or degrees < 1.0:
        raise AnalysisError(
            NO_DEGREES,
            remedy="Use a release with a constant column and more rows.",
        )
    return degrees


def _refuse(reason: str | None) -> None:
    if reason is not None:
        raise AnalysisError("the fit of this regression cannot be judged", got=reason)

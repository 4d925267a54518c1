"""A declared linear model: one Newton step from the fit of the release back to weighted least squares.

The matrix of an adaptive release shortens rows by their length, target included, so that its fit is one of
bounded influence. The step is measured with rows shortened by their features alone, and residuals that are
limited far from where most of them are:

    θ̂ = θ₀ + H̃⁻¹s̃,   s = Σ w²x ψ(y − θ₀·x),   H = Σ w²xxᵀ·1[|y − θ₀·x| ≤ E],   ψ limits to ±E.

What it estimates: proofs/models.md#models-linear.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import INTERCEPT, Design
from dpgram.analysis.estimand import NOT_INCLUDED
from dpgram.analysis.glm import FeatureSpace, NewtonStep, taken, weight_left
from dpgram.analysis.moments import Moments
from dpgram.analysis.robust import UnequalVariance, drawn_towards, repaired
from dpgram.analysis.trust import refusal_of
from dpgram.analysis.unshrunken import unshrunken
from dpgram.document.fields import MeasuredStep
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

AGREES: Final = 1e-5
"""How far the coefficients in a release may lie outside a design that has all of its terms, by rounding."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LinearStep:
    """Coefficients in original units, with what noise and chance do to them."""

    estimate: Vector
    privacy_covariance: Matrix
    covariance: Matrix
    """Sampling and privacy noise; unequal variances and dependent rows of a unit allowed for."""
    unequal_variance: UnequalVariance | None
    """None where noise hides the spread of scores: then variances are taken for equal."""
    limit: float | None
    """What residuals were limited to; none where public bounds leave no longer ones."""
    taken: str
    """The part of all rows that is beyond it, or shortened by features: ends of an interval."""

    @property
    def cautions(self) -> tuple[str, ...]:
        """How what the limit takes may move coefficients; nothing where it takes nothing."""
        if self.limit is None:
            return ()
        beyond = (
            f"residuals beyond ±{self.limit:.3g} count as ±{self.limit:.3g}: coefficients are those of least "
            f"squares only where errors are symmetric given the features{NOT_INCLUDED}. By noisy sums such "
            f"residuals, and rows shortened by their features, are {self.taken} of all rows; a release with "
            "a larger `limit` of this model has fewer"
        )
        return (beyond,)


@lru_cache(maxsize=4)
def linear_step(moments: Moments, design: Design) -> LinearStep | None:
    """The step of the declared model with these terms; nothing where there is none, or noise hides it.

    What it estimates: proofs/models.md#models-linear.
    """
    measured = declared_step(moments, design)
    if measured is None:
        return None
    try:
        with np.errstate(all="ignore"):  # numbers of a forged file may be beyond floats
            space = FeatureSpace.of(moments, design, measured.on, measured.coordinates)
            step = NewtonStep.of(measured, space)
            if not step.finite or not _within(measured, space, step):
                return None
            return _stepped(moments, measured, space, step)
    except (AnalysisError, np.linalg.LinAlgError, OverflowError, ValueError):
        return None


def declared_step(moments: Moments, design: Design) -> MeasuredStep | None:
    """What was measured for the model of this target and these columns."""
    columns = {term.source for term in design.terms} - {INTERCEPT}
    for each in moments.linear_steps:
        if design.intercept and each.target == design.target and set(each.on) == columns:
            return each
    return None


def _within(measured: MeasuredStep, space: FeatureSpace, step: NewtonStep) -> bool:
    """Whether the design has all terms of the coefficients at which it was measured."""
    inside = float(np.linalg.norm(step.start))
    return bool(measured.size - inside <= AGREES * measured.size) and space.design.intercept


def _stepped(
    moments: Moments, measured: MeasuredStep, space: FeatureSpace, step: NewtonStep
) -> LinearStep | None:
    design, original = space.design, space.to_original
    rows = max(moments.rows or 1.0, 1.0)
    solution = unshrunken(moments, design)
    if refusal_of(solution, moments, design) is not None:
        return None
    turn = solution.basis.T @ moments.project(design.vectors) @ space.to_terms
    known = turn.T @ np.linalg.inv(solution.resolvent) @ turn
    beyond = taken(step, space, moments)
    held = drawn_towards(step.hessian, step.hessian_sd**2, known)
    if held is None:
        return None
    step = replace(
        step,
        hessian=held.middle,
        hessian_sd=math.sqrt(held.left) * step.hessian_sd,
        scale_variance=held.scale_variance,
    )
    residual = max(solution.residual_sum, 0.0) * design.target_scale**2 / rows
    classical = (residual if residual > 0.0 else measured.limit**2) * step.hessian
    found = None
    if step.spread is not None:
        clipped = 1.0 - weight_left(measured.radius, len(step.start))
        found = repaired(step.spread, step.spread_sd**2, classical, rows=rows, clipped=clipped)
    small = rows / max(rows - len(step.start), 1.0)
    sampling = classical if found is None else found.widened
    target = moments.schema.encoded[moments.schema.indices(design.target)[0]]
    whole = 2.0 * target.half_width if target.kind == "numeric" else 1.0
    return LinearStep(
        estimate=original @ (step.start + step.step()),
        privacy_covariance=original @ step.covariance(np.zeros_like(classical)) @ original.T,
        covariance=original @ step.covariance(small * sampling) @ original.T,
        unequal_variance=None if found is None else found.test,
        limit=None if measured.limit >= whole else measured.limit,
        taken=beyond,
    )

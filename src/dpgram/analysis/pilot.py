"""Where the Newton steps of a declared model begin: coefficients that follow from the matrix alone.

    linear              the fit of the release
    logistic, probit    discriminant analysis
    poisson             slopes b/ȳ, b those of least squares: right where features are normal, E xe^(β·x)
                        being then proportional to Σβ; the intercept log ȳ − β·x̄ − ½βᵀΣβ

Wherever noise hides something the next best is taken: it is only a beginning, which further steps forget.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpgram.analysis.design import Design
from dpgram.analysis.glm import FeatureSpace
from dpgram.analysis.moments import Moments
from dpgram.document.model_units import Curve
from dpgram.errors import AnalysisError

Vector = npt.NDArray[np.float64]

LEAST_SHARE: Final = 0.02
"""Of both values of the target: the first coefficients begin no nearer to 0 and 1."""
LEAST_ERROR: Final = 0.15
"""Of the target's variance: first coefficients are those of features that tell no more than this leaves."""
STEEPEST: Final = 12.0
"""Largest size of first coefficients, in deviations of the index."""
STEEPEST_RATE: Final = 1.0
"""The same of the logarithm of a count, which varies by a factor of e."""
LEAST_COUNT: Final = 1e-3
"""The mean of counts that is begun with, at least."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Pilot:
    """First coefficients, and the sizes by which what comes after is limited. All from what is published."""

    theta: Vector
    deviation: float | None
    """Of the residual, in units of the target; none where it is at most 1 by itself."""
    range: float
    """The width of the target's public bounds: no residual that makes sense is longer."""
    mean: float
    """Of the target."""


def target_mean(moments: Moments, design: Design) -> float:
    """The noisy mean of the target, in its own units."""
    constant, rows = moments.constant_vector(), moments.rows
    if constant is None or rows is None or rows <= 0.0:
        raise AnalysisError("the noisy number of rows does not stand clear of its noise")
    y = design.target_scale * design.target_vector + design.offset[0] * constant
    return float(moments.form(constant[:, None], y[:, None])[0, 0]) / rows


def pilot(moments: Moments, space: FeatureSpace, family: Curve) -> Pilot:
    """From a regression that is shrunken as far as its noise demands."""
    from dpgram.analysis.regress import regress

    design = space.design
    constant, rows = moments.constant_vector(), moments.rows
    if constant is None or rows is None or rows <= 0.0:
        raise AnalysisError("the noisy number of rows does not stand clear of its noise")
    mean = target_mean(moments, design)
    y = design.target_scale * design.target_vector + design.offset[0] * constant
    names = list(dict.fromkeys(term.source for term in design.terms[1:]))
    fit = regress(moments, design.target, names, reference=dict(design.references))
    slopes: Vector = np.asarray(design.target_scale * np.linalg.solve(design.to_original, fit.values))
    """(a, b) of the target on the design's terms, the intercept first."""
    error = y - design.vectors @ slopes
    # Noise could make features tell too much, and coefficients too steep: two deviations of it are allowed.
    held = moments.project(error[:, None])
    left = max(float(moments.form(error[:, None], error[:, None])[0, 0]), 0.0) / rows
    left += 2.0 * moments.noise.diagonal_sd * float(np.sum(held**2)) / rows
    target = moments.schema.encoded[moments.schema.indices(design.target)[0]]
    whole = 2.0 * target.half_width if target.kind == "numeric" else 1.0
    if family in ("logistic", "probit"):
        theta = space.from_terms(_of_two_values(slopes, mean, left, family))
        size = float(np.linalg.norm(theta))
        theta = theta * min(1.0, STEEPEST / size) if size else theta
        return Pilot(theta=theta, deviation=None, range=1.0, mean=mean)
    deviation = math.sqrt(left)
    if family == "poisson":
        mean = max(mean, LEAST_COUNT)
        slopes = _of_counts(moments, space, slopes, mean, rows)
        deviation = max(deviation, math.sqrt(mean))
    return Pilot(
        theta=space.from_terms(slopes),
        deviation=max(deviation, SMALLEST_PART * whole),
        range=whole,
        mean=mean,
    )


SMALLEST_PART: Final = 1e-6
"""Of the target's public range: a residual varies by no less, so that its limit is a number."""


def _of_two_values(slopes: Vector, mean: float, left: float, family: Curve) -> Vector:
    """By discriminant analysis."""
    share = min(max(mean, LEAST_SHARE), 1.0 - LEAST_SHARE)
    spread = share * (1.0 - share)
    left = min(max(left, LEAST_ERROR * spread), spread)
    if family == "logistic":
        factor = 1.0 / left
        shift = math.log(share / (1.0 - share)) - share * factor - (0.5 - share) * (factor - 1.0 / spread)
    else:
        place = float(ndtri(share))
        density = math.exp(-0.5 * place**2) / math.sqrt(2.0 * math.pi)
        tells = max(1.0 - (spread - left) / density**2, LEAST_ERROR)
        factor = 1.0 / (density * math.sqrt(tells))
        shift = place / math.sqrt(tells) - share * factor
    coefficients = factor * slopes
    coefficients[0] += shift
    return np.asarray(coefficients)


def _of_counts(moments: Moments, space: FeatureSpace, slopes: Vector, mean: float, rows: float) -> Vector:
    """Slopes over the mean, no steeper than counts that vary by a factor of e."""
    vectors = space.design.vectors
    rate = np.concatenate([[0.0], slopes[1:] / mean])

    def moments_of(coefficients: Vector) -> tuple[float, float]:
        index, constant = (vectors @ coefficients)[:, None], moments.constant_vector()
        centre = 0.0 if constant is None else float(moments.form(constant[:, None], index)[0, 0]) / rows
        return centre, max(float(moments.form(index, index)[0, 0]) / rows - centre**2, 0.0)

    deviation = math.sqrt(moments_of(rate)[1])
    if deviation > STEEPEST_RATE:
        rate = rate * (STEEPEST_RATE / deviation)
    centre, variance = moments_of(rate)
    rate[0] = math.log(mean) - centre - 0.5 * min(variance, STEEPEST_RATE**2)
    return rate

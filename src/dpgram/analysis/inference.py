"""Standard errors, intervals and tests of the un-shrunken regression: sampling plus privacy noise.

Two questions are kept apart. `kind="table"`: the regression of the very table behind the release; only the
privacy noise is uncertain. `kind="population"`: the regression of the population the table was sampled from;
the sampling error of least squares, s²A⁻¹ (equal error variance for all rows), is added. Where rows were
clipped, weighted or moved, both are about rows so treated, and `meaning` says so (estimand.py). Whatever
method made the point fit, intervals belong to the un-shrunken functional and are centred at its
noise-corrected estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc, ndtr, ndtri, stdtr, stdtrit

from dpgram.analysis._fieller import fieller_interval
from dpgram.analysis.design import Design
from dpgram.analysis.estimand import (
    EQUAL_VARIANCE,
    KINDS,
    MOVED_CAUTION,
    MOVED_REFUSAL,
    Kind,
    difference_cautions,
    meaning_of,
    moved_columns,
)
from dpgram.analysis.moments import Moments
from dpgram.analysis.trust import LOST, noise_cautions, refusal_of, trusted, untrusted_caution
from dpgram.analysis.unshrunken import Unshrunken, unshrunken
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Reference = Literal["t", "normal"]

FOLLOWING: Final = 0.5
"""Where simulated pivots keep their quantiles to 5% for 5 to 24 features; with two they can be 10% wide."""

NO_DEGREES: Final = "the number of rows is unknown or not larger than the number of coefficients"
NOISE_REMEDY: Final = "Ask for fewer features, or for a release with more rows or a larger epsilon."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointTest:
    """A Wald test that several coefficients are all zero."""

    names: tuple[str, ...]
    statistic: float
    """dᵀC⁻¹d / q."""
    numerator: int
    denominator: float | None
    """Degrees of freedom of F; nothing means χ²_q / q."""
    p_value: float


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inference:
    """Estimates of the un-shrunken coefficients in original units with their covariance."""

    kind: Kind
    meaning: str
    """What is estimated, in words."""
    names: tuple[str, ...]
    estimate: Vector
    covariance: Matrix
    level: Vector
    """c₀,"""
    slope: Vector
    """c₁ and"""
    curvature: Vector
    """c₂ of Var(β̂_j) = c₀ + c₁δ + c₂δ² at the hypothesis β_j = β̂_j + δ; c₀ is C_jj or a little more."""
    degrees: float | None
    """n̂ − k for the population; nothing (normal) for the table."""
    inflation: float
    """κ of the noise correction: 1 is no noise."""
    refusal: str | None
    """Why no interval is given at all; nothing when they are trustworthy."""
    trusted: npt.NDArray[np.bool_]
    """Which coefficients have an interval: the others lean on directions that the noise could have made."""
    cautions: tuple[str, ...] = ()

    @property
    def assumption(self) -> str | None:
        """What the sampling error rests on; nothing for the table, whose only error is noise of known law."""
        return EQUAL_VARIANCE if self.kind == "population" else None

    @property
    def std_errors(self) -> Vector:
        """Square roots of the covariance's diagonal, NaN where not trusted; refuses like the intervals."""
        self.check()
        variances = np.diagonal(self.covariance)  # rounding may take one that is nearly nothing below zero
        return np.sqrt(np.where(self.trusted & (variances >= 0.0), variances, np.nan))

    def conf_int(self, level: float = 0.95) -> Matrix:
        """Lower and upper ends, one row for each coefficient: all β_j with (β̂_j − β_j)² ≤ q²·Var at β_j.

        The noise of a coefficient grows with its size, so the variance is taken at the hypothesis (Fieller),
        which makes the ends a little asymmetric; without privacy noise they are β̂ ± q·se.

        >>> fit.inference().conf_int(0.9).round()
        array([[-1920., -1470.],
               [  121.,   130.],
               [10845., 11209.]])
        """
        if not 0.0 < level < 1.0:
            raise AnalysisError("the level of an interval is a probability", got=level, limit="0 < level < 1")
        return self.ends(self._quantile(0.5 * (1.0 - level)))

    def ends(self, quantile: float | Vector) -> Matrix:
        """The β_j with |ratio| ≤ quantile; the whole line when the noise excludes no value.

        >>> fit.inference().ends(2.0).round()
        array([[-1969., -1421.],
               [  120.,   131.],
               [10806., 11248.]])
        """
        self.check()
        low, high = fieller_interval(self.estimate, self.level, self.slope, self.curvature, quantile)
        return np.column_stack([np.where(self.trusted, low, -np.inf), np.where(self.trusted, high, np.inf)])

    def ratios(self, hypothesis: float | Vector = 0.0) -> Vector:
        """(β̂_j − β_j) over its standard error under the hypothesis β_j: behind intervals and tests.

        >>> fit.inference().ratios(0.0).round(1)
        array([-12.5,  48.2,  99. ])
        """
        delta = np.asarray(hypothesis - self.estimate)
        variance = self.level + self.slope * delta + self.curvature * delta**2
        errors = np.sqrt(np.maximum(variance, 0.0))
        infinite = np.copysign(np.inf, -delta)
        return np.divide(-delta, errors, out=infinite, where=errors > 0.0)

    def p_values(self, reference: Reference | None = None) -> Vector:
        """Two-sided, of each coefficient being zero: `"normal"` is Wald's, `"t"` has n̂ − k degrees.

        >>> fit.inference().p_values("normal") < 0.05
        array([ True,  True,  True])
        """
        self.check()
        if reference == "t" and self.degrees is None:
            raise AnalysisError(
                "the regression of the table has no degrees of freedom: its only error is noise of known law",
                remedy='Use reference="normal" or kind="population".',
            )
        ratio = np.where(self.trusted, np.abs(self.ratios()), np.nan)
        if reference == "normal" or self.degrees is None:
            return np.asarray(2.0 * ndtr(-ratio))
        return np.asarray(2.0 * stdtr(self.degrees, -ratio))

    def joint_test(self, positions: tuple[int, ...]) -> JointTest:
        """H₀: all coefficients at `positions` are zero.

        >>> found = fit.inference().joint_test((1, 2))
        >>> found.names, found.p_value < 0.05
        (('age', 'smoker=yes'), True)
        """
        self.check()
        chosen = list(positions)
        if not self.trusted[chosen].all():
            raise AnalysisError(
                "no joint test", got=untrusted_caution([self.names[i] for i in chosen if not self.trusted[i]])
            )
        estimate, covariance = self.estimate[chosen], self.covariance[np.ix_(chosen, chosen)]
        scale = np.sqrt(np.diagonal(covariance))
        statistic = float(
            (estimate / scale) @ np.linalg.solve(covariance / np.outer(scale, scale), estimate / scale)
        )
        count = len(chosen)
        if self.degrees is None:
            p_value = float(chdtrc(count, statistic))
        else:
            p_value = float(fdtrc(count, self.degrees, max(statistic / count, 0.0)))
        return JointTest(
            names=tuple(self.names[i] for i in chosen),
            statistic=statistic / count,
            numerator=count,
            denominator=self.degrees,
            p_value=p_value,
        )

    def _quantile(self, tail: float) -> float:
        if self.degrees is None:
            return float(-ndtri(tail))
        return float(-stdtrit(self.degrees, tail))

    def check(self) -> None:
        """Raise where the noise, or what was done to the rows, makes all inference meaningless.

        >>> fit.inference().check()  # nothing to complain about
        """
        if self.refusal is not None:
            raise AnalysisError(
                "no standard errors or intervals for this regression",
                got=self.refusal,
                remedy=None if self.refusal == MOVED_REFUSAL else NOISE_REMEDY,
            )


def infer(moments: Moments, design: Design, kind: Kind = "population") -> Inference:
    """Estimates and covariance of the design's un-shrunken coefficients, in original units."""
    check_kind(kind)
    solution = unshrunken(moments, design)
    jacobian = design.to_original @ np.linalg.inv(solution.basis.T @ moments.project(design.vectors))
    covariance = solution.privacy_covariance
    moved = bool(moved_columns(moments, design))
    degrees, refusal = None, refusal_of(solution, moments)
    if kind == "population":
        refusal = refusal or (MOVED_REFUSAL if moved else None)
        degrees = residual_degrees(moments, design)
        if degrees is None or degrees < 1.0:
            refusal = refusal or NO_DEGREES
            degrees = None
        else:
            sampling = moments.sampling_factor * max(solution.residual_sum, 0.0) / degrees
            covariance = covariance + sampling * solution.resolvent
    clear = trusted(solution, jacobian, moments)
    cautions = [*noise_cautions(moments, solution), *difference_cautions(moments, kind)]
    if moved and kind == "table":
        cautions.append(MOVED_CAUTION)
    if refusal is None and not clear.all():
        cautions.append(untrusted_caution([n for n, ok in zip(design.names, clear, strict=True) if not ok]))
    level, slope, curvature = at_hypothesis(solution, jacobian, covariance, moments.noise.offdiagonal_sd)
    return Inference(
        kind=kind,
        meaning=meaning_of(moments, kind, moved=moved),
        names=design.names,
        estimate=jacobian @ solution.theta + design.offset,
        covariance=jacobian @ covariance @ jacobian.T,
        level=level,
        slope=slope,
        curvature=curvature,
        degrees=degrees,
        inflation=solution.inflation,
        refusal=refusal,
        trusted=clear,
        cautions=tuple(cautions),
    )


def at_hypothesis(
    solution: Unshrunken, functionals: Matrix, covariance: Matrix, off: float
) -> tuple[Vector, Vector, Vector]:
    """(c₀, c₁, c₂) for each functional a: at β + δ the solution is θ̂ + δh, h = Ca/(aᵀCa).

    The part v(aᵀRθ)² of the variance follows the hypothesis fully. The part v|Ra|²(|t|² + |θ|²) does so by
    `FOLLOWING`: with one feature all of it should, with many the noise of R itself takes some of it back.
    What follows need not be deflated for the noise in the coefficient's own share of |θ̂|². Beside a lost
    direction, along which θ̂ + δh could run anywhere, nothing of this part follows.
    """
    toward = functionals @ covariance
    sizes = np.einsum("ij,ij->i", toward, functionals)
    ahead = toward / np.where(sizes > 0.0, sizes, np.inf)[:, None]
    rotated = functionals @ solution.resolvent
    own = np.einsum("ij,ij->i", rotated, ahead)
    following = FOLLOWING if (solution.shares <= LOST).all() else 0.0
    reach = following * off**2 * np.sum(rotated**2, axis=1)
    squares = np.sum(ahead**2, axis=1)
    share = np.minimum(squares * sizes / max(float(np.trace(covariance)), np.finfo(np.float64).tiny), 1.0)
    level = sizes + reach * solution.deflated * share
    slope = 2.0 * (off**2 * (rotated @ solution.slopes) * own + reach * (ahead @ solution.slopes))
    return level, slope, off**2 * own**2 + reach * squares


def check_kind(kind: object) -> None:
    """Refuse what is neither of the two questions."""
    if kind not in KINDS:
        raise AnalysisError("unknown kind of inference", got=repr(kind), limit=", ".join(KINDS))


def residual_degrees(moments: Moments, design: Design) -> float | None:
    """n̂ − k."""
    rows = moments.rows
    return None if rows is None else rows - len(design.terms)

"""Standard errors, intervals and tests of the un-shrunken regression: sampling plus privacy noise.

Two questions are kept apart. `kind="table"`: the regression of the very table behind the release; only the
privacy noise is uncertain. `kind="population"`: the regression of the population the table was sampled from;
the sampling error of least squares, s²A⁻¹ (equal error variance for all rows), is added. Where rows were
clipped, weighted or moved, both are about rows so treated, and `meaning` says so (estimand.py). Whatever
method made the point fit, intervals belong to the un-shrunken functional and are centred at its
noise-corrected estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt
from scipy.special import chdtrc, fdtrc, ndtr, stdtr

from dpgram.analysis._fieller import fieller_interval
from dpgram.analysis.asked import quantile
from dpgram.analysis.design import Design, build_design
from dpgram.analysis.estimand import (
    EQUAL_VARIANCE,
    KINDS,
    MOVED_CAUTION,
    MOVED_REFUSAL,
    Kind,
    assumptions_of,
    difference_cautions,
    meaning_of,
    meaning_of_step,
    moved_columns,
)
from dpgram.analysis.linear_step import LinearStep, declared_step, linear_step
from dpgram.analysis.moments import Moments
from dpgram.analysis.robust import UnequalVariance
from dpgram.analysis.trust import LOST, noise_cautions, refusal_of, trusted, untrusted_caution
from dpgram.analysis.unshrunken import Unshrunken, unshrunken
from dpgram.document.terminal import one_line
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
Reference = Literal["t", "normal"]

FOLLOWING: Final = 0.5
"""Where simulated pivots keep their quantiles to 5% for 5 to 24 features; with two they can be 10% wide."""

NO_DEGREES: Final = "the number of rows is unknown or not larger than the number of coefficients"
STEP_HIDDEN: Final = (
    "noise hides what was measured for this declared model, so that the fit is that of the matrix, with "
    "errors that take variances for equal"
)
NOISE_REMEDY: Final = "Ask for fewer features, or for a release with more rows or a larger epsilon."


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class WaldTest:
    """A test that several linear combinations of coefficients have the values they are said to have."""

    hypothesis: tuple[str, ...]
    statistic: float
    """F = dᵀC⁻¹d / q of q and `df_denom` degrees of freedom; χ² = dᵀC⁻¹d where `df_denom` is nothing."""
    df_num: int
    df_denom: float | None
    pvalue: float

    def __str__(self) -> str:
        law = f"χ²({self.df_num})" if self.df_denom is None else f"F({self.df_num}, {self.df_denom:.0f})"
        return f"{one_line('; '.join(self.hypothesis))}: {law} = {self.statistic:.4g}, p = {self.pvalue:.2g}"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Combined:
    """What the noise does to linear combinations of the coefficients, one entry for each."""

    level: Vector
    slope: Vector
    curvature: Vector
    trusted: npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
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
    combine: Callable[[Matrix], Combined]
    """The same for linear combinations of the coefficients, which the rows of a matrix say."""
    unscaled: Callable[[Matrix], Vector]
    """The diagonal of M(XᵀX)⁻¹Mᵀ, corrected for the noise: for the variance inflation factors."""
    cautions: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    """What the sampling error rests on; nothing for the table, whose only error is noise of known law."""
    unequal_variance: UnequalVariance | None = None
    """The test for unequal variances of a declared model, whose errors allow for them; nothing for others."""

    @property
    def robust(self) -> bool:
        """Whether errors allow for unequal variances: those of a declared model do."""
        return self.unequal_variance is not None

    def bounded(self, level: float = 0.95) -> npt.NDArray[np.bool_]:
        """Which coefficients have an interval with two ends: what has none has no standard error either.

        >>> fit.inference().bounded()
        array([ True,  True,  True])
        """
        return np.asarray(self.trusted & (self.quantile(level) ** 2 * self.curvature < 1.0))

    @property
    def std_errors(self) -> Vector:
        """Roots of the covariance's diagonal, NaN without a 95% interval; refuses like the intervals."""
        self.check()
        variances = np.diagonal(self.covariance)  # rounding may take one that is nearly nothing below zero
        return np.sqrt(np.where(self.bounded() & (variances >= 0.0), variances, np.nan))

    def combined(self, matrix: Matrix, names: tuple[str, ...], less: Vector | None = None) -> Inference:
        """L β̂ − c for the rows of L: contrasts, marginal effects, predictions at given rows.

        >>> import numpy as np
        >>> found = fit.inference().combined(np.array([[1.0, 40.0, 0.0]]), ("at 40",))
        >>> found.estimate.round(), found.std_errors.round()
        (array([3320.]), array([42.]))
        """
        values = matrix @ self.estimate
        found = self.combine(matrix)
        return replace(
            self,
            names=names,
            estimate=values if less is None else values - less,
            covariance=matrix @ self.covariance @ matrix.T,
            level=found.level,
            slope=found.slope,
            curvature=found.curvature,
            trusted=found.trusted,
            combine=lambda rows: self.combine(rows @ matrix),
            unscaled=lambda rows: self.unscaled(rows @ matrix),
        )

    def conf_int(self, level: float = 0.95) -> Matrix:
        """Lower and upper ends, one row for each coefficient: all β_j with (β̂_j − β_j)² ≤ q²·Var at β_j.

        The noise of a coefficient grows with its size, so the variance is taken at the hypothesis (Fieller),
        which makes the ends a little asymmetric; without privacy noise they are β̂ ± q·se.

        >>> fit.inference().conf_int(0.9).round()
        array([[-1920., -1470.],
               [  121.,   130.],
               [10845., 11209.]])
        """
        return self.ends(self.quantile(level))

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

    def p_values(self, reference: Reference | None = None, hypothesis: float | Vector = 0.0) -> Vector:
        """Two-sided, of each coefficient being as said: `"normal"` is Wald's, `"t"` has n̂ − k degrees.

        >>> fit.inference().p_values("normal") < 0.05
        array([ True,  True,  True])
        """
        self.check()
        if reference == "t" and self.degrees is None:
            raise AnalysisError(
                "the regression of the table has no degrees of freedom: its only error is noise of known law",
                remedy='Use reference="normal" or kind="population".',
            )
        ratio = np.where(self.bounded(), np.abs(self.ratios(hypothesis)), np.nan)
        if reference == "normal" or self.degrees is None:
            return np.asarray(2.0 * ndtr(-ratio))
        return np.asarray(2.0 * stdtr(self.degrees, -ratio))

    def wald_test(self, hypothesis: tuple[str, ...] = (), *, chi2: bool = False) -> WaldTest:
        """H₀: all of them are zero; by F where there are degrees of freedom, unless `chi2`.

        >>> import numpy as np
        >>> fit.inference().combined(np.eye(3)[1:], ("age", "smoker=yes")).wald_test().pvalue < 0.05
        True
        """
        self.check()
        if not self.trusted.all():
            raise AnalysisError(
                "no joint test",
                got=untrusted_caution([n for n, ok in zip(self.names, self.trusted, strict=True) if not ok]),
            )
        scale = np.sqrt(np.maximum(np.diagonal(self.covariance), np.finfo(np.float64).tiny))
        standard = self.covariance / np.outer(scale, scale)
        count = len(self.names)
        if np.linalg.matrix_rank(standard, hermitian=True) < count:
            raise AnalysisError(
                "the hypotheses of a joint test repeat each other",
                got="; ".join(hypothesis or self.names),
                remedy="Leave out what follows from the others.",
            )
        ratio = self.estimate / scale
        statistic = max(float(ratio @ np.linalg.solve(standard, ratio)), 0.0)
        by_f = self.degrees is not None and not chi2
        p_value = fdtrc(count, self.degrees, statistic / count) if by_f else chdtrc(count, statistic)
        return WaldTest(
            hypothesis=hypothesis or tuple(f"{name} = 0" for name in self.names),
            statistic=statistic / count if by_f else statistic,
            df_num=count,
            df_denom=self.degrees if by_f else None,
            pvalue=float(p_value),
        )

    def quantile(self, level: float) -> float:
        """How many standard errors an interval of this level reaches to either side.

        >>> round(fit.inference().quantile(0.95), 2)
        1.96
        """
        return quantile(level, self.degrees)

    def __repr__(self) -> str:
        return f"<Inference: {len(self.names)} estimates, {self.kind}>"

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
    unscaled = partial(_unscaled, solution.resolvent, jacobian / design.target_scale)
    moved = bool(moved_columns(moments, design))
    degrees = residual_degrees(moments, design) if kind == "population" else None
    step = linear_step(moments, design)
    if step is not None and not moved and (kind == "table" or (degrees is not None and degrees >= 1.0)):
        return _by_step(moments, design, kind, step, degrees, unscaled)
    covariance, refusal = solution.privacy_covariance, refusal_of(solution, moments, design)
    if kind == "population":
        refusal = refusal or (MOVED_REFUSAL if moved else None)
        if degrees is None or degrees < 1.0:
            refusal = refusal or NO_DEGREES
            degrees = None
        else:
            sampling = moments.sampling_factor * max(solution.residual_sum, 0.0) / degrees
            covariance = covariance + sampling * solution.resolvent
    combine = partial(_combined, moments, solution, jacobian, covariance)
    own = _combined_by(moments, solution, covariance, jacobian)
    cautions = [*noise_cautions(moments, solution, refused=refusal is not None)]
    cautions += difference_cautions(moments, kind, refused=refusal is not None)
    if moved and kind == "table":
        cautions.append(MOVED_CAUTION)
    if step is None and declared_step(moments, design) is not None:
        cautions.append(STEP_HIDDEN)
    if kind == "population" and refusal is None:
        cautions += _variance_cautions(moments, design)
    if refusal is None and not own.trusted.all():
        cautions.append(
            untrusted_caution([n for n, ok in zip(design.names, own.trusted, strict=True) if not ok])
        )
    return Inference(
        kind=kind,
        meaning=meaning_of(moments, kind, moved=moved),
        names=design.names,
        estimate=jacobian @ solution.theta + design.offset,
        covariance=jacobian @ covariance @ jacobian.T,
        level=own.level,
        slope=own.slope,
        curvature=own.curvature,
        degrees=degrees,
        inflation=solution.inflation,
        refusal=refusal,
        trusted=own.trusted,
        combine=combine,
        unscaled=unscaled,
        cautions=tuple(cautions),
        assumptions=assumptions_of(moments, kind),
    )


def _by_step(
    moments: Moments,
    design: Design,
    kind: Kind,
    step: LinearStep,
    degrees: float | None,
    unscaled: Callable[[Matrix], Vector],
) -> Inference:
    """Of a declared model whose step stands clear of its noise."""
    covariance = step.covariance if kind == "population" else step.privacy_covariance
    combine = partial(_combined_linearly, covariance)
    own = combine(np.eye(len(design.names)))
    return Inference(
        kind=kind,
        meaning=meaning_of_step(moments, kind, step.limit),
        names=design.names,
        estimate=step.estimate,
        covariance=covariance,
        level=own.level,
        slope=own.slope,
        curvature=own.curvature,
        degrees=degrees,
        inflation=1.0,
        refusal=None,
        trusted=own.trusted,
        combine=combine,
        unscaled=unscaled,
        cautions=(*difference_cautions(moments, kind, declared=True), *step.cautions),
        assumptions=() if kind == "table" or step.unequal_variance is not None else (EQUAL_VARIANCE,),
        unequal_variance=step.unequal_variance if kind == "population" else None,
    )


@lru_cache(maxsize=8)
def _variance_cautions(moments: Moments, design: Design) -> tuple[str, ...]:
    """Where a declared model of the same target shows unequal variances, errors without it may be wrong."""
    for each in moments.linear_steps:
        if each.target != design.target:
            continue
        try:
            step = linear_step(moments, build_design(moments, each.target, each.on))
        except AnalysisError:
            continue
        test = None if step is None else step.unequal_variance
        if test is not None and test.rejected:
            caution = (
                f"the declared model of {each.target} shows errors of unequal variance ({test}): those of "
                "other models, which take them for equal, may be too small by a factor of "
                f"{test.ratio:.2g} or more"
            )
            return (caution,)
    return ()


def _combined_linearly(covariance: Matrix, matrix: Matrix) -> Combined:
    """Of an estimate whose covariance is the same whatever the coefficients are."""
    level = np.maximum(np.einsum("ij,ij->i", matrix @ covariance, matrix), 0.0)
    nothing = np.zeros(len(level))
    return Combined(level=level, slope=nothing, curvature=nothing, trusted=np.ones(len(level), np.bool_))


def _combined(
    moments: Moments, solution: Unshrunken, jacobian: Matrix, covariance: Matrix, matrix: Matrix
) -> Combined:
    return _combined_by(moments, solution, covariance, matrix @ jacobian)


def _combined_by(moments: Moments, solution: Unshrunken, covariance: Matrix, functionals: Matrix) -> Combined:
    """The same for combinations of the solution's coordinates."""
    level, slope, curvature = at_hypothesis(solution, functionals, covariance, moments.noise.offdiagonal_sd)
    clear = trusted(solution, functionals, moments)
    return Combined(level=level, slope=slope, curvature=curvature, trusted=clear)


def _unscaled(resolvent: Matrix, jacobian: Matrix, matrix: Matrix) -> Vector:
    functionals = matrix @ jacobian
    return np.asarray(np.einsum("ij,ij->i", functionals @ resolvent, functionals))


def at_hypothesis(
    solution: Unshrunken, functionals: Matrix, covariance: Matrix, off: float
) -> tuple[Vector, Vector, Vector]:
    """(c₀, c₁, c₂) for each functional a: at β + δ the solution is θ̂ + δh, h = Ca/(aᵀCa).

    The part v(aᵀRθ)² of the variance follows the hypothesis fully. The part v|Ra|²(|t|² + |θ|²) does so by
    `FOLLOWING`: with one feature all of it should, with many the noise of R itself takes some of it back.
    What follows need not be deflated for the noise in the coefficient's own share of |θ̂|². Beside a lost
    direction, along which θ̂ + δh could run anywhere, nothing of this part follows, and h stays within the
    directions that are not lost: else an empty level would take the ends off every other interval.
    """
    toward = functionals @ covariance
    sizes = np.einsum("ij,ij->i", toward, functionals)
    ahead = _ahead(solution, functionals, covariance, off)
    rotated = functionals @ solution.resolvent
    own = np.einsum("ij,ij->i", rotated, ahead)
    following = FOLLOWING if (solution.shares <= LOST).all() else 0.0
    reach = following * off**2 * np.sum(rotated**2, axis=1)
    squares = np.sum(ahead**2, axis=1)
    share = np.minimum(squares * sizes / max(float(np.trace(covariance)), np.finfo(np.float64).tiny), 1.0)
    level = sizes + reach * solution.deflated * share
    slope = 2.0 * (off**2 * (rotated @ solution.slopes) * own + reach * (ahead @ solution.slopes))
    return level, slope, off**2 * own**2 + reach * squares


def _ahead(solution: Unshrunken, functionals: Matrix, covariance: Matrix, off: float) -> Matrix:
    """h of each functional, C confined to the directions that are not lost."""
    if (solution.shares > LOST).any():
        values, vectors = np.linalg.eigh(solution.resolvent)
        kept = vectors[:, off**2 * values**2 <= LOST]
        covariance = kept @ (kept.T @ covariance @ kept) @ kept.T
    toward = functionals @ covariance
    sizes = np.einsum("ij,ij->i", toward, functionals)
    return np.asarray(toward / np.where(sizes > 0.0, sizes, np.inf)[:, None])


def check_kind(kind: object) -> None:
    """Refuse what is neither of the two questions."""
    if kind not in KINDS:
        raise AnalysisError("unknown kind of inference", got=repr(kind), limit=", ".join(KINDS))


def residual_degrees(moments: Moments, design: Design) -> float | None:
    """n̂ − k."""
    rows = moments.rows
    return None if rows is None else rows - len(design.terms)

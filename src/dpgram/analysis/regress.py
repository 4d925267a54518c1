"""θ from A θ ≈ b, A and b blocks of the noisy Gram matrix: any target on any columns, at no further cost.

`auto` shrinks by what the noise law demands and is the one to use for prediction. `ols` solves the noisy
normal equations as they are. `ridge`, `lasso` and `elastic-net` take a penalty, in encoded units with
scikit-learn's meaning, or set one from the noise. The intercept is never penalised.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final, get_args

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import Design, build_design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.formulas import asked_question
from dpgram.analysis.inference import check_kind
from dpgram.analysis.moments import Moments
from dpgram.analysis.noise_aware import NoiseAwareFit, noise_aware
from dpgram.analysis.normal_equations import Problem, by_column, isotropic, too_noisy
from dpgram.analysis.repair import Policy
from dpgram.analysis.results import Regression
from dpgram.analysis.sparse import LassoPath, elastic_net
from dpgram.errors import AnalysisError, real

if TYPE_CHECKING:
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
ROUNDING: Final = 1e-10
"""Part of the largest factor below which a factor is a rounding error."""
SMALLEST_ALPHA: Final = 1e-3
"""The last penalty of a path, as part of the first."""
MOST_ALPHA: Final = 1e100
"""No coefficient is left long before, and sums with it are still numbers."""
Method = Literal["auto", "ols", "ridge", "lasso", "elastic-net"]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Options:
    """What the caller set; nothing means: from the noise."""

    alpha: float | None
    l1_ratio: float
    repair: Policy | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Fitted:
    """The fitted function of the encoded row, and what was used on the way."""

    function: Vector
    penalty: float
    repair: Policy
    penalty_by_noise: bool = False
    effective: float | None = None
    cautions: tuple[str, ...] = ()
    coefficients: Vector | None = None
    """In original units, where the method knows which of them are exactly zero."""


def check_alpha(alpha: object) -> float | None:
    """A penalty as a float; refused before anything is computed or, by an estimator, charged."""
    if alpha is None:
        return None
    number = real(alpha)
    if number is None or not 0.0 <= number <= MOST_ALPHA:
        raise AnalysisError(
            "alpha must be a number, and must not be negative",
            got=repr(alpha)[:100] if number is None else number,
            limit=f"0 ≤ alpha ≤ {MOST_ALPHA:g}",
            remedy="Leave it out to have it set by the noise",
        )
    return number


def regress(
    release: Document | Moments,
    target: str,
    on: Sequence[str] | None = None,
    *,
    method: Method = "auto",
    alpha: float | None = None,
    l1_ratio: float = 0.5,
    intercept: bool = True,
    repair: Policy | None = None,
    reference: Mapping[str, str] | None = None,
    kind: Kind = "population",
) -> Regression:
    """Fit `target` on the columns `on` (all others by default); results are in original units.

    `target` may be a whole formula instead, "charges ~ age * bmi + C(region)": see the extra `formula`.
    `repair=None` lets the method decide what to do about negative eigenvalues; `reference` names the
    reference level of categorical columns (otherwise the most frequent one by the noisy counts). `kind` says
    what errors and intervals are for: the population, or this very table (privacy noise only).

    >>> from dpgram.analysis import regress
    >>> regress(release, "charges", ["age"], method="ols").names
    ('(intercept)', 'age')
    """
    if method not in METHODS:
        raise AnalysisError("unknown method", got=repr(method), limit=", ".join(METHODS))
    if alpha is not None and method in ("auto", "ols"):
        raise AnalysisError(
            f"method {method!r} takes no alpha", remedy='Use method="ridge", or leave alpha out'
        )
    alpha = check_alpha(alpha)
    if not 0.0 <= l1_ratio <= 1.0:
        raise AnalysisError("l1_ratio must lie between 0 (ridge) and 1 (lasso)", got=l1_ratio)
    if repair is not None and repair not in get_args(Policy):
        raise AnalysisError("unknown repair policy", got=repr(repair), limit=", ".join(get_args(Policy)))
    check_kind(kind)
    moments = Moments.of(release)
    asked = asked_question(moments.schema, target, on, intercept=intercept, reference=reference)
    design = build_design(
        moments, asked.target, asked.on, intercept=asked.intercept, reference=asked.reference
    )
    fitted = METHODS[method](moments, design, _Options(alpha=alpha, l1_ratio=l1_ratio, repair=repair))
    values = fitted.coefficients
    if values is None:
        values = design.coefficients(design.from_measured(fitted.function, moments))
    return Regression(
        design=design,
        moments=moments,
        method=method,
        penalty=fitted.penalty,
        penalty_by_noise=fitted.penalty_by_noise,
        repair=fitted.repair,
        effective_parameters=fitted.effective,
        values=values,
        function=fitted.function,
        cautions=(*fitted.cautions, *_wide_cautions(moments, design), *design.empty_cautions),
        kind=kind,
    )


def _wide_cautions(moments: Moments, design: Design) -> tuple[str, ...]:
    used = {design.target, *(term.source for term in design.terms)}
    wide = [column.name for column in moments.schema.columns if column.name in moments.wide_bounds & used]
    if not wide:
        return ()
    caution = (
        f"the learnt bounds of {', '.join(wide)} are far wider than the values, which the noise then hides: "
        "their coefficients shrink to almost nothing. Public bounds would help"
    )
    return (caution,)


def _auto(moments: Moments, design: Design, options: _Options) -> _Fitted:
    repair: Policy = options.repair or "subtract-mean"
    problem = isotropic(moments, design, repair)
    fit = _default_rule(problem)
    return _Fitted(
        function=problem.function(fit.theta),
        penalty=0.0,
        repair=repair,
        effective=fit.effective_parameters + float(problem.centred),
        cautions=_centring_cautions(problem, design),
    )


def _default_rule(problem: Problem) -> NoiseAwareFit:
    """The one place that says which estimator `auto` is."""
    return noise_aware(
        problem.gram_xx,
        problem.gram_xy,
        problem.gram_yy,
        noise=problem.noise,
        target_norm=problem.target_norm,
    )


def _ols(moments: Moments, design: Design, options: _Options) -> _Fitted:
    repair: Policy = options.repair or "subtract-mean"
    problem = isotropic(moments, design, repair)
    theta = _least_squares(problem.gram_xx, problem.gram_xy)
    return _Fitted(
        function=problem.function(theta),
        penalty=0.0,
        repair=repair,
        cautions=_centring_cautions(problem, design),
    )


def _ridge(moments: Moments, design: Design, options: _Options) -> _Fitted:
    repair: Policy = options.repair or "zero-negative"
    problem = by_column(moments, design, repair)
    width = len(problem.gram_xx)
    penalty = moments.noise.expected_norm(width) if options.alpha is None else options.alpha
    # A penalty from the noise follows its shape; one that was given is the same for every encoded column.
    shape = np.eye(width) if options.alpha is not None else problem.basis.T @ problem.basis
    penalised = problem.gram_xx + penalty * (np.eye(width) if moments.lift is None else shape)
    theta = _least_squares(penalised, problem.gram_xy)
    return _Fitted(function=problem.function(theta), penalty=penalty, repair=repair)


def _least_squares(matrix: Matrix, right: Vector) -> Vector:
    """The solution of least norm: a repaired matrix may be singular."""
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=1e-13)[0], dtype=np.float64)


def _lasso(moments: Moments, design: Design, options: _Options) -> _Fitted:
    return _sparse(moments, design, options, l1_ratio=1.0)


def _elastic_net(moments: Moments, design: Design, options: _Options) -> _Fitted:
    return _sparse(moments, design, options, l1_ratio=options.l1_ratio)


def _sparse(moments: Moments, design: Design, options: _Options, *, l1_ratio: float) -> _Fitted:
    repair: Policy = options.repair or "zero-negative"
    problem = by_column(moments, design, repair)
    if problem.rows is None or problem.rows <= 0.0:
        raise too_noisy()
    alpha, scales = options.alpha, np.ones(len(problem.gram_xy))
    if alpha is None:
        alpha, scales = _penalties_of_noise(moments, design, problem)
    gram, right = problem.gram_xx / np.outer(scales, scales), problem.gram_xy / scales
    theta = elastic_net(gram, right, rows=problem.rows, alpha=alpha, l1_ratio=l1_ratio) / scales
    return _Fitted(
        function=problem.function(theta),
        penalty=alpha,
        penalty_by_noise=options.alpha is None,
        repair=repair,
        coefficients=_ToCoefficients.of(moments, design, problem)(theta),
    )


def _penalties_of_noise(moments: Moments, design: Design, problem: Problem) -> tuple[float, Vector]:
    """α, and how many times of it each column gets: αn·scale is what noise may add to that column's score.

    About the largest of p noisy scores whose true value is zero, at the residual of `auto`. What noise adds
    goes with the length of a column where the matrix was measured: in an adaptive release, its deviation.
    """
    beside = isotropic(moments, design)
    left = moments.project(design.target_vector) - beside.function(_default_rule(beside).theta)
    lengths = np.sum(problem.basis**2, axis=0)
    spread = lengths * float(left @ left) + (problem.basis.T @ left) ** 2
    noise = problem.noise.offdiagonal_sd * np.sqrt(spread)
    # Levels add up to one: were their penalties a little apart, minima would hang on the last digits.
    sources = np.array([moments.schema.encoded[place].source for place in design.members])
    for source in set(sources.tolist()):
        own = sources == source
        noise[own] = np.sqrt(np.mean(noise[own] ** 2))
    typical = float(np.sqrt(np.mean(noise**2))) if len(noise) else 0.0
    alpha = typical * math.sqrt(2.0 * math.log(2.0 * max(len(noise), 1))) / (problem.rows or 1.0)
    return alpha, np.where(noise > 0.0, noise, 1.0) / (typical if typical > 0.0 else 1.0)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _ToCoefficients:
    """θ ↦ coefficients in original units, by a matrix whose zeros are zeros: what θ lacks, they lack."""

    matrix: Matrix
    offset: Vector

    @classmethod
    def of(cls, moments: Moments, design: Design, problem: Problem) -> _ToCoefficients:
        matrix = design.to_original @ design.from_measured(problem.basis, moments)
        largest = np.abs(matrix).max(axis=1, keepdims=True, initial=0.0)
        matrix = np.where(np.abs(matrix) > ROUNDING * largest, matrix, 0.0)
        free = design.to_original @ design.from_measured(problem.free, moments) + design.offset
        if design.intercept:
            free[1:] = 0.0  # what was eliminated is the intercept's alone
        return cls(matrix, free)

    def __call__(self, theta: Vector) -> Vector:
        return np.asarray(self.matrix @ theta + self.offset)


def lasso_path(
    release: Document | Moments,
    target: str,
    on: Sequence[str] | None = None,
    *,
    alphas: Sequence[float] | None = None,
    count: int = 50,
    l1_ratio: float = 1.0,
    intercept: bool = True,
    reference: Mapping[str, str] | None = None,
) -> LassoPath:
    """Coefficients of the lasso for falling penalties, from the least that leaves nothing.

    `alphas` has scikit-learn's meaning, on encoded columns; otherwise `count` of them, down to a thousandth.

    >>> from dpgram.analysis import lasso_path
    >>> active = lasso_path(release, "charges").active()
    >>> active[0], active[-1]
    ((), ('age', 'smoker=yes'))
    """
    if not 0.0 < l1_ratio <= 1.0:
        raise AnalysisError("l1_ratio must lie between 0 (not included) and 1 (lasso)", got=l1_ratio)
    moments = Moments.of(release)
    design = build_design(moments, target, on, intercept=intercept, reference=reference)
    problem = by_column(moments, design, "zero-negative")
    if problem.rows is None or problem.rows <= 0.0:
        raise too_noisy()
    if alphas is None:
        largest = float(np.abs(problem.gram_xy).max(initial=0.0)) / problem.rows / l1_ratio
        alphas = (largest * np.geomspace(1.0, SMALLEST_ALPHA, count)).tolist()
    told = _ToCoefficients.of(moments, design, problem)
    every = sorted(alphas, reverse=True)
    found = [
        told(elastic_net(problem.gram_xx, problem.gram_xy, rows=problem.rows, alpha=alpha, l1_ratio=l1_ratio))
        for alpha in every
    ]
    return LassoPath(
        names=design.names, alphas=np.array(every), coefficients=np.array(found), intercept=design.intercept
    )


def _centring_cautions(problem: Problem, design: Design) -> tuple[str, ...]:
    if not design.intercept or problem.centred:
        return ()
    caution = (
        "the noisy number of rows does not stand clear of its noise, so the intercept was shrunk with the "
        "rest: treat every number here as a guess"
    )
    return (caution,)


METHODS: Final[Mapping[str, Callable[[Moments, Design, _Options], _Fitted]]] = {
    "auto": _auto,
    "ols": _ols,
    "ridge": _ridge,
    "lasso": _lasso,
    "elastic-net": _elastic_net,
}

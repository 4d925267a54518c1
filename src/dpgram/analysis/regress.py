"""θ from A θ ≈ b, A and b blocks of the noisy Gram matrix: any target on any columns, at no further cost.

`auto` shrinks by what the noise law demands and is the one to use for prediction. `ols` solves the noisy
normal equations as they are. `ridge`, `lasso` and `elastic-net` take a penalty, in encoded units with
scikit-learn's meaning, or set one from the noise. The intercept is never penalised.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final, get_args

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import Design, build_design
from dpgram.analysis.moments import Moments
from dpgram.analysis.noise_aware import NoiseAwareFit, noise_aware
from dpgram.analysis.normal_equations import Problem, by_column, isotropic, too_noisy
from dpgram.analysis.repair import Policy
from dpgram.analysis.results import Regression
from dpgram.analysis.sparse import elastic_net, noise_level_alpha
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]
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
    effective: float | None = None
    cautions: tuple[str, ...] = ()


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
) -> Regression:
    """Fit `target` on the columns `on` (all others by default); results are in original units.

    `repair=None` lets the method decide what to do about negative eigenvalues; `reference` names the
    reference level of categorical columns (otherwise the first one listed in the schema).

    >>> from dpgram.analysis import regress
    >>> regress(release, "charges", ["age"], method="ols").names
    ('(intercept)', 'age')
    """
    if method not in METHODS:
        raise AnalysisError("unknown method", got=repr(method), limit=", ".join(METHODS))
    if alpha is not None and method in ("auto", "ols"):
        raise AnalysisError(f"method {method!r} takes no alpha", remedy='Use method="ridge".')
    if alpha is not None and not alpha >= 0.0:
        raise AnalysisError("alpha must not be negative", got=alpha)
    if not 0.0 <= l1_ratio <= 1.0:
        raise AnalysisError("l1_ratio must lie between 0 (ridge) and 1 (lasso)", got=l1_ratio)
    if repair is not None and repair not in get_args(Policy):
        raise AnalysisError("unknown repair policy", got=repr(repair), limit=", ".join(get_args(Policy)))
    moments = Moments.of(release)
    design = build_design(moments, target, on, intercept=intercept, reference=reference)
    fitted = METHODS[method](moments, design, _Options(alpha=alpha, l1_ratio=l1_ratio, repair=repair))
    return Regression(
        design=design,
        moments=moments,
        method=method,
        penalty=fitted.penalty,
        repair=fitted.repair,
        effective_parameters=fitted.effective,
        values=design.coefficients(design.from_measured(fitted.function, moments)),
        function=fitted.function,
        cautions=(*fitted.cautions, *_wide_cautions(moments, design)),
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
    alpha = options.alpha
    if alpha is None:
        start = _default_rule(problem).theta
        size = float(np.linalg.norm(start))
        alpha = noise_level_alpha(len(start), problem.noise.offdiagonal_sd, size, problem.rows)
    theta = elastic_net(problem.gram_xx, problem.gram_xy, rows=problem.rows, alpha=alpha, l1_ratio=l1_ratio)
    return _Fitted(function=problem.function(theta), penalty=alpha, repair=repair)


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

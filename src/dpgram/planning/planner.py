"""plan(): what every mechanism would give, before any budget is spent, from public facts only."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING, Final

import numpy as np

from dpgram.errors import AnalysisError, DpgramError, shown, whole
from dpgram.mechanisms import MECHANISMS, Auto, Mechanism, MechanismLike, as_mechanism
from dpgram.models import Model
from dpgram.planning._adaptive import AdaptiveSetting
from dpgram.planning._advice import advised
from dpgram.planning._assumption import Assumption, Matrix
from dpgram.planning._payer import Payer
from dpgram.planning._plan import Plan
from dpgram.planning._regression import AssumedRegression
from dpgram.planning.forecast import Forecast, Setting, forecast, tick_count
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.sampling.bars import bar, on_terminal
from dpgram.publishing.compatibility import MODELS, mechanism_option, refuse_clashes
from dpgram.publishing.expected_models import ExpectedModel, expected_models
from dpgram.publishing.request import LedgerLike, check_request, check_rows, open_ledger, requested
from dpgram.publishing.split import Adaptive, BudgetSplit, budget_split
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import Rows
from dpgram.schema import KINDS, Schema

if TYPE_CHECKING:
    from dpgram.release import Release

UNKNOWN_BOUNDS: Final = (-1.0, 1.0)
TYPICAL: Final = Assumption()


def plan(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    rows: Rows,
    adaptive: bool | Adaptive = True,
    adjacency: str = "add-remove",
    target: str | None = None,
    on: Sequence[str] | None = None,
    assume: Assumption | Release | Matrix = TYPICAL,
    target_se_ratio: float | None = None,
    mechanisms: Sequence[MechanismLike] | Auto | None = None,
    models: Sequence[Model] = (),
    simulate: bool = True,
    ledger: LedgerLike | None = None,
) -> Plan:
    """Forecast what every mechanism would give for a regression on a table of `rows.expected` rows.

    With `rows.unit` these are persons: each counts as one row.

    Takes what `publish` takes, reads no data and spends nothing. `target` is the last number declared, unless
    named, and is regressed on all other columns or on those in `on`. `assume` says what the table may look
    like: an `Assumption`, a release of a similar table, or its second moments E aaᵀ; none of them may come
    from the rows to be published. `adaptive` says which share of the budget learning bounds would take.
    `mechanisms` are names or objects of `dpgram.mechanisms`, all by default; `Auto(semidefinite=True)`: all
    that give a positive semidefinite matrix. `models` are declared beforehand, as for `publish`: what each
    costs and how closely its coefficients should be known. With a `ledger` nothing is recommended that it
    would refuse, nor what would cost it much more than another mechanism of the same guarantee.

    >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000))
    >>> forecast.recommended.mechanism, forecast.recommended.verdict
    ('matrix-laplace', 'good')
    >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), ledger=ledger)
    >>> forecast.recommended.mechanism, "matrix-laplace" in forecast.left_out
    ('gaussian', True)
    """
    check_rows(rows)
    count = _whole("the expected number of rows", rows.expected)
    bounds_share, clip = _bounds_share(adaptive), rows.radius
    asked, _ = check_request(epsilon, delta, count)
    bounded, unknown = _with_some_bounds(schema)
    if bounded.width < 2:
        raise AnalysisError("a regression needs a target and something to regress it on", got=bounded.names)
    radius = Encoder(bounded, clip=clip).radius
    name = _default_target(bounded) if target is None else target
    regression = _assumed_regression(bounded, name, on, assume)
    if not regression.names:
        raise AnalysisError(
            "a regression needs something to regress on beside the constant",
            got=f"only {name!r}",
            remedy="Declare another column, or name some in `on`",
        )
    setting = Setting(
        regression=regression,
        rows=count,
        adjacency=adjacency_named(adjacency),
        radius=radius,
    )
    declared: tuple[ExpectedModel, ...] = ()
    if models:
        request = requested(
            schema,
            epsilon=epsilon,
            delta=delta,
            rows=rows,
            adaptive=adaptive,
            adjacency=setting.adjacency.name,
            models=models,
        )
        declared = expected_models(request, float(count), _shares_of_ones(regression))
    taken = sum(each.share for each in declared)
    own = _adaptive_setting(setting, budget_split(schema, adaptive, models=taken), rows)
    halved = _halved(bounded, setting, on, clip=clip)
    candidates = _candidates(mechanisms)
    book = open_ledger(ledger)
    payer = None if book is None else Payer(book, setting, rows.unit)
    semidefinite = all(each.semidefinite for each in candidates.values())
    work = sum(tick_count(each, bounded.width, simulate=simulate) for each in candidates.values())
    found: list[Forecast] = []
    left_out: dict[str, str] = {}
    with _one_thread(), _ticking(work) as tick:
        for each in candidates.values():
            try:
                if models:
                    refuse_clashes([MODELS, mechanism_option(each)])
                if payer is not None:
                    payer.check(each, asked)
                found.append(
                    forecast(
                        each,
                        asked,
                        setting,
                        halved=halved,
                        bounds_share=bounds_share,
                        simulate=simulate,
                        tick=tick,
                    )
                )
            except DpgramError as problem:
                left_out[each.name] = problem.what
    if payer is not None:
        found = payer.cheap(found, left_out)
    order = {n: i for i, n in enumerate(MECHANISMS)}
    found.sort(key=lambda f: (not f.works, round(f.se_ratio, 3) if f.works else f.noise, order[f.mechanism]))
    advice = None
    if target_se_ratio is not None:
        advice = advised(
            setting,
            asked.delta,
            target_se_ratio,
            own,
            semidefinite=semidefinite,
            models=bool(models),
            payer=payer,
        )
    return Plan(
        rows=count,
        epsilon=asked.epsilon,
        delta=asked.delta,
        adjacency=adjacency,
        width=bounded.width,
        target=name,
        features=len(regression.names),
        assumption=str(assume) if isinstance(assume, Assumption) else "second moments of a similar table",
        bounds_share=bounds_share,
        adaptive=None if own is None else own.forecast(asked),
        adaptive_setting=own,
        bounds_unknown=unknown,
        forecasts=tuple(found),
        left_out=left_out,
        advice=advice,
        semidefinite=semidefinite,
        asked=candidates,
        setting=setting,
        models=declared,
    )


def _shares_of_ones(regression: AssumedRegression) -> dict[str, float]:
    """The assumed variance of every column with two values, 0 and 1."""
    second, found = regression.second, {}
    if not regression.schema.constant:
        return {}
    for place, column in enumerate(regression.schema.encoded):
        if column.kind in ("boolean", "level"):
            spread = second[place, place] - second[0, place] ** 2 / second[0, 0]
            found[column.name] = float(np.clip(spread * (column.half_width / column.weight) ** 2, 1e-3, 0.25))
    return found


def _assumed_regression(
    schema: Schema,
    target: str,
    on: Sequence[str] | None,
    assume: Assumption | Release | Matrix,
) -> AssumedRegression:
    if not isinstance(assume, Assumption):
        return AssumedRegression.of(schema, _known_moments(schema, assume), target, on)
    # The design needs a matrix to be laid out, and the matrix needs the design's features: any will do first.
    from dpgram.analysis.design import build_design
    from dpgram.analysis.moments import EncodedNoise, Moments
    from dpgram.noise import SymmetricGaussian

    blank = Moments(
        gram=np.eye(schema.width),
        schema=schema,
        noise=EncodedNoise.of(SymmetricGaussian(sigma=0.0)),
        radius=1.0,
    )
    design = build_design(blank, target, on, intercept=schema.constant)
    second = assume.second_moments(schema, schema.indices(target)[0], design.members)
    return AssumedRegression.of(schema, second, target, on)


def _known_moments(schema: Schema, like: Release | Matrix) -> Matrix:
    """E aaᵀ of a release, noise removed as far as it goes, or the matrix itself."""
    if isinstance(like, np.ndarray):
        second = np.asarray(like, dtype=np.float64)
    else:
        from dpgram.analysis.moments import Moments

        moments = Moments.of(like)
        if moments.schema.names != schema.names:
            raise AnalysisError("the release in `like` has other columns than the schema")
        if moments.rows is None or moments.rows <= 0.0:
            raise AnalysisError("the release in `like` does not tell its number of rows")
        values, vectors = np.linalg.eigh(moments.encoded_gram / moments.rows)
        second = (vectors * np.maximum(values, 0.0)) @ vectors.T
    if second.shape != (schema.width, schema.width) or not np.isfinite(second).all():
        raise AnalysisError(
            "second moments need a row and a column for each encoded column",
            got=second.shape,
            limit=f"{schema.width} × {schema.width}",
        )
    return second


def _halved(
    schema: Schema, setting: Setting, on: Sequence[str] | None, *, clip: float | None
) -> Setting | None:
    """The same regression on the first half of its features, with the other half left out of the release."""
    target = setting.regression.target
    own = schema.encoded[schema.indices(target)[0]].source
    used = [c for c in schema.columns if c.name != own and own not in c.factors]
    used = [c for c in used if on is None or c.name in on]
    base = [c for c in used if not c.factors]
    if len(base) < 2:
        return None
    names = {c.name for c in base[: (len(base) + 1) // 2]} | {own}
    kept = [
        c for c in schema.columns if c.name in names or (c in used and c.factors and set(c.factors) <= names)
    ]
    smaller = Schema(*kept, constant=schema.constant)
    at = [schema.names.index(name) for name in smaller.names]
    regression = AssumedRegression.of(smaller, setting.regression.second[np.ix_(at, at)], target)
    radius = Encoder(smaller, clip=None if clip is None else min(clip, smaller.max_norm_squared**0.5)).radius
    return Setting(
        regression=regression,
        rows=setting.rows,
        adjacency=setting.adjacency,
        radius=radius,
    )


def _with_some_bounds(schema: Schema) -> tuple[Schema, tuple[str, ...]]:
    if not isinstance(schema, Schema):
        raise AnalysisError("plan needs a Schema", got=f"a {type(schema).__name__}")
    unknown = schema.unbounded
    return (schema.with_bounds(dict.fromkeys(unknown, UNKNOWN_BOUNDS)) if unknown else schema), unknown


def _default_target(schema: Schema) -> str:
    """The last number declared, else the last boolean, else the last level of all."""
    numbers = [column for column in schema.columns_read if not column.group_levels]
    for kind in KINDS:
        named = [column.name for column in numbers if column.kind == kind]
        if named:
            return named[-1]
    return schema.columns_read[-1].encoded_names[-1]


def _candidates(asked: Sequence[MechanismLike] | Auto | None) -> dict[str, Mechanism]:
    if asked is None or isinstance(asked, Auto):
        only = asked is not None and asked.semidefinite
        return {name: kind() for name, kind in MECHANISMS.items() if kind.semidefinite or not only}
    listed = isinstance(asked, Sequence) and not isinstance(asked, str)
    found = [as_mechanism(each) for each in asked] if listed else []
    named = {each.name: each for each in found if isinstance(each, Mechanism)}
    if not named or len(named) < len(found):
        raise AnalysisError(
            "mechanisms must be a list of mechanisms, each of them once",
            got=repr(asked),
            limit=f"names or objects of {', '.join(MECHANISMS)}",
            remedy="Leave it out to compare all, or write mechanisms=Auto(semidefinite=True)",
        )
    return named


def _whole(what: str, value: object) -> int:
    count = whole(value)
    if count is None or count < 1:
        raise AnalysisError(
            f"{what} must be a whole number above zero",
            got=shown(value),
            remedy="Give a public guess, as Rows(expected=10_000)",
        )
    return count


def _adaptive_setting(setting: Setting, split: BudgetSplit, rows: Rows) -> AdaptiveSetting | None:
    if not split.histograms or rows.radius is not None:
        return None
    return AdaptiveSetting(
        schema=setting.regression.schema,
        split=split,
        adjacency=setting.adjacency,
        rows=setting.rows,
        regression=setting.regression,
    )


def _bounds_share(adaptive: bool | Adaptive) -> float:
    if adaptive is False:
        return 0.0
    share = (Adaptive() if adaptive is True else adaptive).bounds
    if not 0.0 <= share < 1.0:
        raise AnalysisError("Adaptive(bounds=…) is a part of the budget", got=share, limit="0 ≤ share < 1")
    return share


def _one_thread() -> AbstractContextManager[object]:
    """Of matrices this small threads of linear algebra take turns, and twice the processor time.

    What tells them so comes with the extra for curators; without it a plan takes longer.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ImportError:
        return nullcontext()
    limits: AbstractContextManager[object] = threadpool_limits(1, user_api="blas")
    return limits


@contextmanager
def _ticking(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not on_terminal():
        yield lambda: None
        return
    ticks = itertools.count(1)
    with bar("forecasts", total) as show:
        yield lambda: show(next(ticks))

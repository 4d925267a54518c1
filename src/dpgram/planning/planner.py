"""plan(): what every mechanism would give, before any budget is spent, from public facts only."""

from __future__ import annotations

import itertools
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
from scipy.special import ndtri

from dpgram.errors import AnalysisError, DpgramError
from dpgram.mechanisms import MECHANISMS, Auto, Mechanism, MechanismLike, as_mechanism
from dpgram.models import Model
from dpgram.planning._adaptive import AdaptiveSetting
from dpgram.planning._assumption import (
    Assumption,
    Matrix,
)
from dpgram.planning._payer import Payer
from dpgram.planning._regression import AssumedRegression
from dpgram.planning._text import WIDTH, header, plan_text, table_rows
from dpgram.planning.forecast import WORTH_IT, Forecast, Setting, forecast, tick_count
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.curves.search import least
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.bars import bar, on_terminal
from dpgram.publishing.compatibility import MODELS, clash_of, mechanism_option, refuse_clashes
from dpgram.publishing.expected import ExpectedAdaptive
from dpgram.publishing.expected_models import ExpectedModel, expected_models
from dpgram.publishing.request import LedgerLike, check_request, check_rows, open_ledger, requested
from dpgram.publishing.split import Adaptive, BudgetSplit, budget_split
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import Rows
from dpgram.schema import KINDS, Schema

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpgram.release import Release

LARGEST_EPSILON: Final = 100.0
CURVE_POINTS: Final = 9
UNKNOWN_BOUNDS: Final = (-1.0, 1.0)
TYPICAL: Final = Assumption()
ADAPTIVE: Final = "adaptive"
"""How figures and advice call the adaptive release, beside the mechanisms of one plain matrix."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """The least ε that reaches a wanted standard-error ratio, and with which mechanism."""

    se_ratio: float
    epsilon: float | None
    """Nothing where not even ε = 100 reaches it, or where the ledger would refuse whatever does."""
    mechanism: str | None
    refused: bool = False
    """Whether it could be reached, but not with what the ledger has left."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Plan:
    """Forecasts for one table that nobody has looked at."""

    rows: int
    epsilon: float
    delta: float
    adjacency: str
    width: int
    target: str
    features: int
    assumption: str
    bounds_share: float
    adaptive: ExpectedAdaptive | None
    """What the adaptive release should give; nothing where one plain matrix was asked about."""
    bounds_unknown: tuple[str, ...]
    """Numeric columns without bounds: these will have to be learnt."""
    forecasts: tuple[Forecast, ...]
    """From the least standard error to the largest."""
    left_out: Mapping[str, str]
    """Mechanism → why it cannot serve."""
    advice: Advice | None
    semidefinite: bool
    """Whether only positive semidefinite matrices were asked for."""
    asked: Mapping[str, Mechanism] = field(repr=False)
    """Every mechanism that was asked about, by name."""
    setting: Setting = field(repr=False)
    adaptive_setting: AdaptiveSetting | None = field(repr=False, default=None)
    models: tuple[ExpectedModel, ...] = ()
    """What every declared model should give."""

    def __repr__(self) -> str:
        return f"<Plan: {len(self.forecasts)} forecasts for {self.target}, {self.rows:,} rows>"

    @property
    def recommended(self) -> Forecast | None:
        """The best that works; nothing when none does."""
        return next((found for found in self.forecasts if found.works), None)

    @property
    def works(self) -> bool:
        """Whether the adaptive release, or any mechanism with one plain matrix, would give intervals."""
        return self.recommended is not None or (self.adaptive is not None and self.adaptive.works)

    @property
    def adaptive_rows_needed(self) -> int | None:
        """How many rows an adaptive release takes to be worth a quarter of them."""
        if self.adaptive_setting is None:
            return None
        return self.adaptive_setting.rows_needed(Guarantee(self.epsilon, self.delta), WORTH_IT)

    @property
    def adaptive_is_best(self) -> bool:
        """Whether the adaptive release should do as well as the best plain matrix, or better."""
        plain = math.inf if self.recommended is None else self.recommended.se_ratio
        return self.adaptive is not None and self.adaptive.works and self.adaptive.se_ratio <= 1.02 * plain

    def forecast(self, mechanism: str) -> Forecast:
        """The forecast for one mechanism, by its name.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> forecast.forecast("gaussian").verdict
        'usable'
        """
        for found in self.forecasts:
            if found.mechanism == mechanism:
                return found
        raise AnalysisError(
            f"no forecast for {mechanism!r}", got=self.left_out.get(mechanism), limit=", ".join(MECHANISMS)
        )

    def table(self) -> str:
        """One line for each mechanism, aligned.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> print(forecast.table())
        mechanism       noise  SE ×  worst  rows    2ε  ½ col.  bounds  verdict
        matrix-laplace   2.45  1.14   1.23  1869  1.04    1.05    1.17     good
        gaussian         4.22  1.37   1.58  5568  1.12     1.2     1.4   usable
        """
        rows = table_rows(self)
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        between = "  " if sum(widths) + 2 * len(widths) <= WIDTH else " "
        lines = [
            between.join(
                [row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))]
            )
            for row in rows
        ]
        return "\n".join(line.rstrip() for line in lines)

    def __str__(self) -> str:
        return plan_text(self)

    def headline(self) -> str:
        """What was asked and what is assumed.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> print(forecast.headline())
        Regression of charges on 2 terms: about 20,000 rows, 5 encoded columns, ε = 1, δ = 1e-06, add-remove
        Assumed, not looked up: spread 0.333 of half the range, correlation 0.2, R² 0.5
        """
        return header(self)

    def to_json(self) -> dict[str, object]:
        """Plain values; an infinite ratio (no interval at all) is null.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> forecast.to_json()["recommended"]
        'matrix-laplace'
        """
        form: dict[str, object] = {
            "rows": self.rows,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "adjacency": self.adjacency,
            "encoded_columns": self.width,
            "target": self.target,
            "assumption": self.assumption,
            "bounds_share": self.bounds_share,
            "adaptive": None if self.adaptive is None else asdict(self.adaptive),
            "adaptive_is_best": self.adaptive_is_best,
            "bounds_unknown": list(self.bounds_unknown),
            "works": self.works,
            "recommended": None if self.recommended is None else self.recommended.mechanism,
            "advice": None if self.advice is None else asdict(self.advice),
            "left_out": dict(self.left_out),
            "models": [asdict(found) for found in self.models],
            "forecasts": [{**asdict(found), "verdict": found.verdict} for found in self.forecasts],
        }
        return {key: _finite(value) for key, value in form.items()}

    def curves(self) -> Mapping[str, tuple[Sequence[float], Sequence[float]]]:
        """Mechanism → (ε, median ratio) from a tenth of ε to ten times it; leaves out what does not work.

        The adaptive release has a line of its own, "adaptive".

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> epsilons, ratios = forecast.curves()["gaussian"]
        >>> round(epsilons[-1]), round(ratios[-1], 2)
        (10, 1.01)
        """
        lines: dict[str, tuple[Sequence[float], Sequence[float]]] = {}
        grid = self.epsilon * np.geomspace(0.1, 10.0, CURVE_POINTS)
        for name in (found.mechanism for found in self.forecasts):
            pairs = [(float(epsilon), self._ratio(name, float(epsilon))) for epsilon in grid]
            lines[name] = _finite_line(pairs)
        if self.adaptive_setting is not None:
            own = [(float(epsilon), self._adaptive_ratio(float(epsilon))) for epsilon in grid]
            lines[ADAPTIVE] = _finite_line(own)
        return lines

    def margins(self, epsilon: float | None = None) -> dict[str, float]:
        """How closely each coefficient should be known at that ε: half the width of its 95% interval.

        In units of the target for a unit of the column, on the assumed table and with the assumed spread of
        the target: a release that is adaptive where that was asked about, else with the best plain matrix.
        Infinite where no interval would be given. Without columns whose bounds are not known, which have no
        unit yet.

        >>> asked = ["gaussian"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> forecast.margins()["age"] > forecast.margins(epsilon=5)["age"]
        True
        """
        if self.target in self.bounds_unknown:
            return {}
        spent = self.epsilon if epsilon is None else epsilon
        if self.adaptive_setting is not None:
            ratio = self._adaptive_ratio(spent)
        else:
            ratio = min((self._ratio(name, spent) for name in self.asked), default=math.inf)
        regression = self.setting.regression
        errors = np.sqrt(regression.variance / max(self.rows - len(regression.spectrum), 1))
        return {
            name: float(ndtri(0.975)) * ratio * float(error)
            for name, error in zip(regression.names, errors, strict=True)
            if name not in self.bounds_unknown
        }

    def plot(self, path: str | os.PathLike[str] | None = None) -> Figure:
        """The ratio against ε, a line for each mechanism; written to `path` if one is given.

        >>> asked = ["gaussian", "matrix-laplace"]
        >>> forecast = dg.plan(schema, epsilon=1, delta=1e-6, rows=dg.Rows(expected=20_000), mechanisms=asked)
        >>> figure = forecast.plot("plan.png")
        """
        from dpgram.planning._figure import accuracy_plot

        return accuracy_plot(self, path=None if path is None else Path(path))

    def _adaptive_ratio(self, epsilon: float) -> float:
        if self.adaptive_setting is None:
            return math.inf
        return self.adaptive_setting.forecast(Guarantee(epsilon, self.delta)).se_ratio

    def _ratio(self, name: str, epsilon: float) -> float:
        try:
            mechanism = self.setting.calibrated(self.asked[name], Guarantee(epsilon, self.delta))
        except DpgramError:
            return float("inf")
        return self.setting.outcome(mechanism).typical


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
    with _ticking(work) as tick:
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
        advice = _advice(
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


def _advice(
    setting: Setting,
    delta: float,
    wanted: float,
    adaptive: AdaptiveSetting | None,
    *,
    semidefinite: bool,
    models: bool,
    payer: Payer | None,
) -> Advice:
    """Of the quick ones, among which is the best of all, or nearly so for a semidefinite matrix."""
    if not wanted > 1.0:
        raise AnalysisError(
            "no private release is as accurate as least squares on the table",
            got=wanted,
            limit="target_se_ratio > 1",
        )
    best: tuple[float, str] | None = None
    refused = False
    for name, kind in MECHANISMS.items():
        if not kind.quick or kind.semidefinite != semidefinite or (delta == 0.0 and not kind.pure):
            continue
        if models and clash_of(MODELS, mechanism_option(kind)) is not None:
            continue
        asked = kind()

        def reached(epsilon: float, asked: Mechanism = asked) -> bool:
            if epsilon > LARGEST_EPSILON:
                return True
            try:
                mechanism = setting.calibrated(asked, Guarantee(epsilon, delta))
            except DpgramError:
                return False
            return setting.outcome(mechanism).typical <= wanted

        epsilon = least(reached, start=1.0, tolerance=1e-3)
        if epsilon > LARGEST_EPSILON:
            continue
        if payer is not None and not payer.pays(asked, Guarantee(epsilon, delta)):
            refused = True
        elif best is None or epsilon < best[0]:
            best = (epsilon, name)
    if adaptive is not None and not semidefinite:
        enough = partial(_reaches, adaptive, delta, wanted)
        epsilon = least(enough, start=1.0, tolerance=1e-3)
        noise = MECHANISMS["gaussian" if delta else "matrix-laplace"]()
        if epsilon <= LARGEST_EPSILON and (best is None or epsilon < best[0]):
            if payer is None or payer.pays(noise, Guarantee(epsilon, delta)):
                best = (epsilon, ADAPTIVE)
            else:
                refused = True
    return Advice(
        se_ratio=wanted,
        epsilon=None if best is None else best[0],
        mechanism=None if best is None else best[1],
        refused=refused and best is None,
    )


def _reaches(adaptive: AdaptiveSetting, delta: float, wanted: float, epsilon: float) -> bool:
    return epsilon > LARGEST_EPSILON or adaptive.forecast(Guarantee(epsilon, delta)).se_ratio <= wanted


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
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise AnalysisError(
            f"{what} must be a whole number above zero",
            got=repr(value),
            remedy="Give a public guess, as Rows(expected=10_000)",
        )
    return int(value)


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


def _finite_line(pairs: Sequence[tuple[float, float]]) -> tuple[Sequence[float], Sequence[float]]:
    finite = [(epsilon, ratio) for epsilon, ratio in pairs if math.isfinite(ratio)]
    return [epsilon for epsilon, _ in finite], [ratio for _, ratio in finite]


def _bounds_share(adaptive: bool | Adaptive) -> float:
    if adaptive is False:
        return 0.0
    share = (Adaptive() if adaptive is True else adaptive).bounds
    if not 0.0 <= share < 1.0:
        raise AnalysisError("Adaptive(bounds=…) is a part of the budget", got=share, limit="0 ≤ share < 1")
    return share


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value


@contextmanager
def _ticking(total: int) -> Iterator[Callable[[], None]]:
    """A bar on a terminal, nothing elsewhere."""
    if not on_terminal():
        yield lambda: None
        return
    ticks = itertools.count(1)
    with bar("forecasts", total) as show:
        yield lambda: show(next(ticks))

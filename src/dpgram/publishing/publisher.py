"""publish(): request → calibration → first pass → charge → draw → further passes → Release.

Everything a person can get wrong is found before a row is read; `publication` has the order from there on.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, Never, Unpack, final

from dpgram import __version__
from dpgram.core.noise import Entropy, SystemEntropy
from dpgram.core.units import PolicyCounts
from dpgram.document.fields import AdjacencyName, Group, Measurements
from dpgram.document.measurements import unresolved
from dpgram.engines.find import find_engine
from dpgram.errors import DpgramError, OptionsError, tell_caller
from dpgram.mechanisms import MechanismLike
from dpgram.models import Model
from dpgram.privacy.accountant import Event, describe
from dpgram.privacy.count_noise import CountNoise
from dpgram.publishing._adaptive import adapt, noisy_stop
from dpgram.publishing._adaptive_prices import AdaptiveCalibration, adaptive_family, calibrate_adaptive
from dpgram.publishing._journal import interrupted_before
from dpgram.publishing._learning import (
    LearningCalibration,
    LearntFacts,
    calibrate_learning,
    learn,
    learnt_terms,
    refuse_few_rows,
)
from dpgram.publishing._model_steps import ModelsBudget
from dpgram.publishing._models import measured_models, refuse_pure_models, unmeasured
from dpgram.publishing.losses import WatchedEngine
from dpgram.publishing.measurements.each_group import by_group
from dpgram.publishing.measurements.gram import MeasuredGram
from dpgram.publishing.publication import (
    Account,
    Answer,
    Program,
    RowsAtMost,
    Stage,
    key_of,
    publication,
    warn_of_delta,
)
from dpgram.publishing.request import (
    Asked,
    LedgerLike,
    Options,
    Request,
    Unsaid,
    check_rows,
    check_schema,
    open_ledger,
    refuse_undecided,
    requested,
    said_ledger,
)
from dpgram.publishing.split import Adaptive
from dpgram.publishing.terms import ReleaseTerms, matrix_terms, plain_price
from dpgram.release import Release
from dpgram.rows.rules import EVERY_ROW, RowRules, Rows
from dpgram.schema import Schema
from dpgram.schema.columns import Categorical

if TYPE_CHECKING:
    from dpgram.engines.base import Engine
    from dpgram.engines.passes import Sums
    from dpgram.engines.threads import Progress
    from dpgram.privacy.ledger import Ledger


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CuratorReport:
    """For the curator's eyes only: the counts are exact, so they must not leave with the release."""

    counts: PolicyCounts
    mechanism: str
    reason: str
    price: str
    seconds: float
    """How long reading and adding up took."""
    measured: Measurements = ()
    """What was measured before the matrix; this part is in the release as well."""
    part: str | None = None
    """Which of several releases this is about: its group or block."""


def publish(
    data: object,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    ledger: LedgerLike | Unsaid | None = Unsaid.UNSAID,
    rows: Rows = EVERY_ROW,
    adaptive: bool | Adaptive = True,
    mechanism: MechanismLike = "auto",
    adjacency: AdjacencyName = "add-remove",
    models: Sequence[Model] = (),
    engine: str | Engine = "auto",
    note: str = "",
    report: Callable[[CuratorReport], None] | None = None,
    progress: Progress = None,
    **others: Never,
) -> Release:
    """One (epsilon, delta)-differentially private release of the Gram matrix of `data` under `schema`.

    `ledger` is charged before noise is drawn; `ledger=None` says that nothing shall keep count of what was
    spent. Where neither is said, a warning asks, once in a process. `rows` says
    who is protected and how rows count: see `Rows`. `adaptive=True` spends shares of the
    budget on histograms and a rough matrix, by which the matrix is measured where noise hides least, and on
    the bounds and levels that the schema leaves open; `Adaptive` sets the shares. `adaptive=False` draws one
    matrix of the columns as declared (docs/explanation/how-it-works.md, docs/how-to/no-bounds.md).
    `mechanism` is an object of `dpgram.mechanisms` with its parameters, such as `Sketch(degrees=400)`, or a
    name, for its defaults (docs/reference/mechanisms.md); "auto" takes the one of least forecast error,
    `Auto(semidefinite=True)` that of those which give a positive semidefinite matrix. `models` are
    declared beforehand, such as `linear("cost")`: what they need beyond the matrix is measured too, each
    with a share of the budget (docs/how-to/models.md). `engine` says where rows are read and added up:
    "local", "dask", "spark", an engine object with its options, or "auto", by the type of `data`
    (docs/how-to/engines.md). `note` stays in the ledger. `report` receives, after the last draw, what the
    curator may know and nobody else: all counts, and what was measured. What does not go together is in
    docs/reference/options.md.

    A call that is interrupted after its charge, by whatever, is taken up again by the same call: what was
    drawn is kept beside the ledger until then, and nothing is charged or drawn twice.

    >>> ledger = dg.Ledger.create("insurance.ledger", name="insurance", epsilon=3, delta=1e-6)
    >>> dg.publish(table, schema, epsilon=1, delta=1e-6, ledger=ledger)
    <Release: 5 columns, gaussian, epsilon=1, delta=1e-06, add-remove>
    >>> print(ledger.left())
    87% of the budget is left: enough for 6 more like the last release, or for one release of ε = 2.77 ...
    """
    paying = said_ledger(ledger)
    with _telling_what_was_spent(paying):
        check_schema(schema, data)
        _refuse_several(schema, rows)
    (release,) = publish_with(
        data,
        schema,
        entropy=SystemEntropy(),
        epsilon=epsilon,
        delta=delta,
        ledger=paying,
        rows=rows,
        adaptive=adaptive,
        mechanism=mechanism,
        adjacency=adjacency,
        models=models,
        engine=engine,
        note=note,
        report=report,
        progress=progress,
        **others,
    )
    return release


def publish_each(
    data: object, schema: Schema, *, epsilon: float, delta: float, **options: Unpack[Options]
) -> dict[str, Release]:
    """A release for each level of `Rows(by=…)`, at the price of one, or for each block of the schema.

    Takes what `publish` takes. Groups are named by their level, blocks "block 1", "block 2" and so on; blocks
    share the budget.

    >>> rows = dg.Rows(by="smoker")
    >>> releases = dg.publish_each(table, schema, epsilon=1, delta=1e-6, ledger=None, rows=rows)
    >>> sorted(releases)
    ['no', 'yes']
    >>> releases["yes"].columns
    ('(constant)', 'age', 'charges')
    """
    options["ledger"] = said_ledger(options.get("ledger", Unsaid.UNSAID))
    releases = publish_with(data, schema, entropy=SystemEntropy(), epsilon=epsilon, delta=delta, **options)
    return named(releases)


def publish_with(
    data: object,
    schema: Schema,
    *,
    entropy: Entropy,
    epsilon: float,
    delta: float,
    **options: Unpack[Options],
) -> tuple[Release, ...]:
    """All releases of one call, in order, with noise from `entropy`: for audits, tests and experiments.

    Releases with seeded noise say so, and no ledger pays for them.
    """
    with _telling_what_was_spent(options.get("ledger")):
        check_schema(schema, data)
        chosen = find_engine(options.pop("engine", "auto"), data)
        ledger, progress = options.pop("ledger", None), options.pop("progress", None)
        report = options.pop("report", None)
        asked: Asked = options
        request = requested(schema, epsilon=epsilon, delta=delta, beside=form_of(data, chosen), **asked)
        with published(
            data,
            request,
            engine=chosen,
            ledger=ledger,
            entropy=entropy,
            progress=progress,
            report=report,
        ) as releases:
            return releases


@contextlib.contextmanager
def _telling_what_was_spent(ledger: LedgerLike | None) -> Iterator[None]:
    """Whoever has a ledger is told after every stop that it was left alone, where it was."""
    try:
        yield
    except DpgramError as problem:
        if ledger is not None:
            problem.say_nothing_was_spent()
        raise


def named(releases: Sequence[Release]) -> dict[str, Release]:
    """Releases of one call by group or block."""
    return {_portion_name(release): release for release in releases}


def _portion_name(release: Release) -> str:
    if release.group is not None:
        return release.group.level
    return "all" if release.block is None else f"block {release.block.number}"


def _refuse_several(schema: Schema, rows: Rows) -> None:
    check_rows(rows)
    if rows.by is not None or schema.blocks is not None:
        raise OptionsError(
            "groups and blocks make several releases, and publish makes one",
            got="Rows(by=…)" if rows.by is not None else "a schema with blocks",
            remedy="Call publish_each, which takes the same and returns one release for each",
        )


@contextlib.contextmanager
def published(
    data: object,
    request: Request,
    *,
    engine: Engine,
    ledger: LedgerLike | None,
    entropy: Entropy,
    progress: Progress = None,
    report: Callable[[CuratorReport], None] | None = None,
) -> Iterator[tuple[Release, ...]]:
    """The releases of a request. Until the block ends they are safe beside the ledger: save them in it."""
    if report is not None and not callable(report):
        raise OptionsError(
            "report must be a function, which receives what the curator may know",
            got=repr(report)[:100],
            remedy="Write report=print, say; a report to read is made by release.report(path)",
        )
    refuse_undecided(request.schema)
    book = open_ledger(ledger)
    currency = None if book is None else book.currency
    family, stop, most = adaptive_family(request, currency), None, None
    order = _Order(request=request, entropy=entropy.label, report=report)
    if family is not None:
        refuse_pure_models(request, pure=family == "pure")
        adaptive = calibrate_adaptive(request, family)
        stop = noisy_stop(adaptive)
        order.price, order.octaves = adaptive.price, adaptive.octaves
        program = order.adaptive(adaptive)
    elif request.split:
        calibration = calibrate_learning(request, currency)
        order.price, order.octaves = calibration.price, calibration.octaves
        if calibration.rows_at_most is not None:
            most = RowsAtMost(mechanism=calibration.mechanism.name, rows=calibration.rows_at_most)
        program = order.learning(calibration)
    else:
        refuse_pure_models(request, pure=currency == "epsilon")
        terms = matrix_terms(request, currency)
        order.price = plain_price(request, terms)
        limits = [one.mechanism for one in terms if one.mechanism.kind.rows_at_most is not None]
        if limits:
            most = RowsAtMost(mechanism=limits[0].name, rows=limits[0].kind.rows_at_most or 0)
        program = order.plain(terms)
    _refuse_expected(request, order.octaves)
    account = None
    if book is not None:
        account = Account(
            ledger=book,
            adjacency=request.adjacency,
            unit=request.rules.unit,
            note=request.note,
            request=request.key,
        )
    with publication(
        program,
        data=data,
        engine=WatchedEngine(engine=engine, rules=request.rules, tell=tell_caller, stop=stop),
        entropy=entropy,
        adjacency=request.adjacency,
        price=order.price,
        promise=request.guarantee,
        account=account,
        public=order.public,
        rows_at_most=most,
        report=order.tell,
        progress=progress,
    ) as releases:
        yield releases


def _refuse_expected(request: Request, octaves: CountNoise | None) -> None:
    """Units are never more than rows: too few rows are too few units as well."""
    if request.expected is not None:
        refuse_few_rows(request, octaves, float(request.expected), paid=None)


def interrupted(request: Request, ledger: Ledger) -> bool:
    """Whether such a publication has begun and was interrupted: the same one goes on with it."""
    return interrupted_before(ledger.path, key_of(ledger, request.key))


def form_of(data: object, engine: Engine) -> list[str]:
    """How often the data can be read, as the table of what goes together names it."""
    from dpgram.sources import read_once

    forms = ["partial sums"] if getattr(engine, "passes", None) == 1 else []
    return [*forms, "a stream"] if engine.name == "local" and read_once(data) else forms


@final
@dataclass(slots=True, kw_only=True)
class _Order:
    """From a request to its releases: the programs that `publication` carries out."""

    request: Request
    entropy: Literal["system", "seeded"]
    report: Callable[[CuratorReport], None] | None
    price: Event = field(init=False)
    octaves: CountNoise | None = None
    """By which the bounds of open columns are learnt."""
    parts: list[tuple[ReleaseTerms, str | None]] = field(default_factory=list)
    """Of the releases, in order: known when they are drawn."""
    started: float = 0.0

    def __post_init__(self) -> None:
        self.started = time.perf_counter()

    def plain(self, terms: tuple[ReleaseTerms, ...]) -> Program[tuple[Release, ...]]:
        """Everything is public but the matrix: one stage, and those of declared models."""
        answer = yield self._matrices(terms, self.request.rules)
        parts = self._parts(terms)
        drawn = list(chain.from_iterable(answer.published))
        releases = self._releases(parts, drawn, [()] * len(parts), answer)
        if self.request.models:  # groups and blocks are refused: there is one release
            budget = ModelsBudget.of(self.request)
            beside = yield from measured_models(budget, terms[0], releases[0], self.request.rules)
            releases = self._releases(parts, drawn, [beside], answer)
        return releases

    def learning(self, calibration: LearningCalibration) -> Program[tuple[Release, ...]]:
        """What the schema leaves open is measured first."""
        learnt: LearntFacts = yield from learn(calibration)
        terms = learnt_terms(calibration, learnt)
        rules = replace(self.request.rules, schema=learnt.schema)
        answer = yield self._matrices(terms, rules)
        parts = self._parts(terms)
        beside = [each for each in learnt.measured for _ in self.request.rules.groups]
        releases = self._releases(parts, chain.from_iterable(answer.published), beside, answer)
        for name in unresolved(releases[0]):
            tell_caller(
                f"the bounds learnt for {name!r} are far wider than its values, so that noise will hide it: "
                "give public bounds, or subtract a public constant"
            )
        return releases

    def adaptive(self, calibration: AdaptiveCalibration) -> Program[tuple[Release, ...]]:
        """Histograms, a rough matrix, and the matrix in coordinates that follow from them."""
        adapted = yield from adapt(calibration)
        matrices, clips = adapted.matrices, [clip for clip in adapted.clips if clip is not None]
        rules = replace(self.request.rules, schema=adapted.schema)
        answer = yield Stage(rules=rules, measurements=(*matrices, *clips), shown=True)
        found = [by_group(one, each) for one, each in zip(matrices, answer.published, strict=False)]
        left = iter(answer.published[len(matrices) :])
        counted = [
            (None,) * len(own) if clip is None else by_group(clip, next(left))
            for clip, own in zip(adapted.clips, found, strict=True)
        ]
        measured = [
            before if taken is None else (*before, taken)
            for before, taken in zip(adapted.measured, chain.from_iterable(counted), strict=True)
        ]
        parts = self.parts = list(zip(adapted.terms, self.request.rules.groups * len(matrices), strict=True))
        drawn = [gram for each in found for (gram,) in each]
        releases = self._releases(parts, drawn, measured, answer)
        if self.request.models:  # groups and blocks are refused: there is one release
            beside: Measurements = unmeasured(self.request.models)
            if adapted.terms[0].encoder.coordinates is not None:
                budget = ModelsBudget(request=self.request, whole=calibration.whole)
                beside = yield from measured_models(budget, adapted.terms[0], releases[0], rules)
            releases = self._releases(parts, drawn, [(*measured[0], *beside)], answer)
        return releases

    def _matrices(self, terms: Sequence[ReleaseTerms], rules: RowRules) -> Stage:
        """The matrices of all blocks and groups."""
        return Stage(rules=rules, measurements=tuple(one.measurement for one in terms), shown=True)

    def public(self, rows: int) -> None:
        """Under replace-one the number of rows, or units, is public: too few of them cost nothing."""
        if self.request.split:
            refuse_few_rows(self.request, self.octaves, float(rows), paid=None)
        if self.request.expected is None:
            warn_of_delta(self.request.guarantee.delta, rows, self.request.rules.unit)

    def _parts(self, terms: Sequence[ReleaseTerms]) -> list[tuple[ReleaseTerms, str | None]]:
        """Every release: a block, and in it a group."""
        self.parts = [(one, level) for one in terms for level in self.request.rules.groups]
        return self.parts

    def _releases(
        self,
        parts: Sequence[tuple[ReleaseTerms, str | None]],
        matrices: Iterable[MeasuredGram],
        measured: Iterable[Measurements],
        answer: Answer,
    ) -> tuple[Release, ...]:
        rules = self.request.rules
        releases = []
        for (one, level), found, beside in zip(parts, matrices, measured, strict=True):
            releases.append(
                Release(
                    library=__version__,
                    schema=one.schema,
                    radius=one.radius,
                    policy=one.policy,
                    adjacency=self.request.adjacency.name,
                    unit=rules.unit,
                    public_rows=None if self.request.rows_private else answer.public_rows,
                    mechanism=one.used(),
                    noise=found.noise,
                    guarantee=one.stated(),
                    entropy=self.entropy,
                    published=found.matrix,
                    receipt=answer.receipt,
                    unit_rule=rules.unit_rule,
                    group=_group(rules.by, level),
                    block=one.block,
                    survey_weight=rules.weight,
                    measurements=beside or None,
                    coordinates=one.encoder.coordinates,
                )
            )
        return tuple(releases)

    def tell(self, releases: tuple[Release, ...], sums: Sums) -> None:
        """The exact counts, for the curator alone, once all is drawn."""
        if self.report is None:
            return
        try:
            for (one, level), found in zip(self.parts, sums, strict=False):
                told = self._report(one, level, found.counts)
                self.report(replace(told, measured=releases[0].measured))
        except Exception as problem:  # noqa: BLE001  (whatever it is: the release has been paid for)
            tell_caller(f"report failed after the charge ({type(problem).__name__}); the release is whole")

    def _report(self, terms: ReleaseTerms, level: str | None, counts: PolicyCounts) -> CuratorReport:
        group, block = _group(self.request.rules.by, level), terms.block
        part = None if block is None else f"block {block.number} of {block.of}"
        return CuratorReport(
            counts=counts,
            mechanism=terms.mechanism.name,
            reason=terms.reason,
            price=describe(self.price),
            seconds=time.perf_counter() - self.started,
            part=part if group is None else f"{group.column} = {group.level}",
        )


def _group(by: Categorical | None, level: str | None) -> Group | None:
    return None if by is None or level is None else Group(column=by.name, level=level)

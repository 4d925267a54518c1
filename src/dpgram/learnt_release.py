"""publish() where the schema leaves something open: validate → price → first pass → charge → learn → draw.

The first pass reads the whole table before the charge, so what is wrong with it is found for nothing. After
the charge each part draws its noise and the table is read again under what is known by then. Whether it goes
on is decided from public facts before the charge, or from noisy counts after it; never from the table itself.
With a unit, all parts but the matrix see one row of each (`representatives`), the matrix all of them.
"""

from __future__ import annotations

import contextlib
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, final

from dpgram.choice import AUTO
from dpgram.curator import Report, check_request, published_matrix
from dpgram.encoding import Encoder, PolicyCounts
from dpgram.engines.local import Progress, gram, portions
from dpgram.errors import DpgramError, DpgramWarning, GuaranteeError, LearningError, MechanismError
from dpgram.learning import Learner, Plan, planned, refuse_few_rows
from dpgram.learning_table import Table, refuse_streams
from dpgram.learnt_checks import unresolved
from dpgram.mechanisms import Facts, Gaussian, MatrixLaplace
from dpgram.portions import Portions
from dpgram.privacy.accountant import GaussianEvent, describe
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.counts import CountLaw
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.release import Release
from dpgram.release_display import in_words
from dpgram.release_parts import (
    AdjacencyName,
    Learnt,
    MechanismUsed,
    MissingPolicy,
    Policy,
    StatedGuarantee,
)
from dpgram.shares import Sharing, sharing
from dpgram.wishes import Wishes

if TYPE_CHECKING:
    from dpgram.gram import ExactGram
    from dpgram.privacy.entropy import Entropy
    from dpgram.privacy.ledger import Ledger
    from dpgram.schema import Schema


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What was asked of `publish`, where something is to be learnt."""

    schema: Schema
    asked: Wishes
    guarantee: Guarantee
    adjacency: AdjacencyName
    clip: float | None
    mechanism: str
    missing: MissingPolicy
    rows: int | None
    note: str
    unit: str | None = None

    @property
    def shared(self) -> Sharing:
        """How the rows of a unit count in the matrix; refuses a unit that is also published."""
        return sharing(self.schema, adjacency=self.adjacency, unit=self.unit)

    def terms(self, book: Ledger | None) -> Plan:
        """The noise of every part; checked against the ledger, if there is one. Reads no data."""
        facts = Facts(
            width=self.schema.width,
            adjacency=adjacency_named(self.adjacency),
            rows=self.rows,
            unit_rows=self.shared.unit_rows,
        )
        pure = self.guarantee.pure or (book is not None and book.currency == "epsilon")
        laws: dict[str, CountLaw] = {
            AUTO: "discrete-laplace" if pure else "discrete-gaussian",
            Gaussian.name: "discrete-gaussian",
            MatrixLaplace.name: "discrete-laplace",
        }
        if self.mechanism not in laws:
            raise MechanismError(
                "bounds, levels and a radius can be learnt beside two mechanisms only",
                got=repr(self.mechanism),
                limit=", ".join(laws),
                remedy="Give public bounds and levels, and a public clip or none",
            )
        law = laws[self.mechanism]
        if law == "discrete-gaussian" and self.guarantee.pure:
            raise MechanismError(
                "gaussian noise cannot give a pure guarantee", got="delta = 0", limit="delta > 0"
            )
        plan = planned(self.schema, self.asked, self.guarantee, facts, law=law)
        # An encoder is made of the open schema as far as it is known, so that its mistakes show now.
        known = self.schema.with_bounds(dict.fromkeys(self.schema.unbounded, (-1.0, 1.0)))
        known = known.with_levels(dict.fromkeys(self.schema.without_levels, ()))
        Encoder(known, clip=self.clip, missing=self.missing)
        if self.rows is not None:
            # Units are never more than rows: too few rows are too few units as well.
            refuse_few_rows(plan, self.schema, float(self.rows), paid=False, unit=self.unit)
        if book is not None:
            book.check(plan.event, adjacency=facts.adjacency, unit=self.unit, note=self.note)
        return plan


def publish_learnt(
    data: object,
    request: Request,
    *,
    source: Entropy,
    book: Ledger | None,
    threads: int | None,
    progress: Progress,
    report: Callable[[Report], None] | None,
) -> Release:
    """A release whose event also paid for learning what the schema leaves open.

    Proof: proofs/bounds.md#bounds-order.
    """
    refuse_streams(data)
    plan = request.terms(book)
    source.rehearse()
    started = time.perf_counter()
    table = Table.of(data, request.schema, request.missing, request.unit)
    tally = table.first_pass()
    public_rows = tally.rows_read if request.adjacency == "replace-one" else None
    if public_rows is not None:
        refuse_few_rows(plan, request.schema, float(public_rows), paid=False, unit=request.unit)

    def told(counts: PolicyCounts, learnt: Learnt | None) -> Report:
        return Report(
            counts=counts,
            mechanism=plan.mechanism.name,
            reason=_reason(request),
            price=describe(plan.event),
            seconds=time.perf_counter() - started,
            learnt=learnt,
        )

    if report is not None:
        # Before the charge: a report that fails must not cost a release that was paid for.
        report(told(PolicyCounts(rows_read=table.rows_of(tally)), None))
    receipt = None
    if book is not None:
        relation = adjacency_named(request.adjacency)
        receipt = book.charge(plan.event, adjacency=relation, unit=request.unit, note=request.note)
    learner = Learner(table=table, plan=plan, entropy=source, public_rows=public_rows)
    with _paid(plan):
        schema = learner.run(tally)
        clip = request.clip if learner.radius is None else learner.radius
        encoder = Encoder(schema, clip=clip, missing=request.missing)
        with warnings.catch_warnings(record=True) as cautions:
            warnings.simplefilter("always")
            exact = _matrix(data, request, encoder, threads, progress)
    learnt = learner.record()
    drawn = plan.mechanism.draw(exact.cells, source)
    release = Release(
        library=version("dpgram"),
        schema=schema,
        radius=encoder.radius,
        policy=Policy(missing=request.missing, strict=False),
        adjacency=request.adjacency,
        unit=request.unit,
        unit_rule=request.shared.rule,
        public_rows=public_rows,
        mechanism=MechanismUsed(
            name=plan.mechanism.name, parameters=_parameters(plan), choice=_reason(request)
        ),
        noise=drawn.noise,
        guarantee=_stated(plan, request),
        entropy=source.label,
        published=published_matrix(drawn),
        receipt=receipt,
        learnt=learnt,
    )
    for caution in cautions:
        _warn(str(caution.message))
    for name in unresolved(release):
        _warn(
            f"the bounds learnt for {name!r} are far wider than its values, so that noise will hide it: give "
            "public bounds, or subtract a public constant"
        )
    if report is not None:
        try:
            report(told(exact.counts, learnt))
        except Exception as problem:  # noqa: BLE001  (whatever it is: the release has been paid for)
            _warn(f"the report after the charge failed ({type(problem).__name__}); the release is whole")
    return release


@contextlib.contextmanager
def _paid(plan: Plan) -> Iterator[None]:
    """A table that can no longer be read after the charge: the message says what that has cost."""
    try:
        yield
    except LearningError:
        raise
    except DpgramError as problem:
        raise LearningError(
            "the table could not be read again after the charge",
            got=problem,
            remedy="Mend the source and publish again, which is charged again",
            spent=plan.event,
            cost=describe(plan.event),
        ) from problem


def _matrix(
    data: object, request: Request, encoder: Encoder, threads: int | None, progress: Progress
) -> ExactGram:
    """The exact matrix under what was learnt. Not private."""
    shown = _harmless(progress) if callable(progress) else progress
    rule = request.shared.rule
    if rule is None:
        return gram(
            data, encoder.schema, encoder.clip, missing=encoder.missing, threads=threads, progress=shown
        )
    plan = Portions(whole=encoder, blocks=(encoder,), unit=request.unit, rule=rule)
    (exact,) = portions(data, plan, threads=threads, progress=shown)
    return exact


def _harmless(progress: Callable[[int], None]) -> Callable[[int], None]:
    """A bar that breaks must not cost what was paid for: it is left alone from then on."""
    broken = False

    def show(rows: int) -> None:
        nonlocal broken
        if not broken:
            try:
                progress(rows)
            except Exception:  # noqa: BLE001  (whatever it is, it is not worth a release)
                broken = True

    return show


def _warn(text: str) -> None:
    """Warn; where warnings are errors, keep quiet: the release is paid for, and its fits say it again."""
    with contextlib.suppress(DpgramWarning):
        warnings.warn(text, DpgramWarning, stacklevel=4)


def refuse_beside(asked: Wishes, **others: object) -> None:
    """Refuse what cannot go together with learning yet."""
    for name, value in others.items():
        if asked and value not in (None, False):
            raise GuaranteeError(
                f"bounds, levels or a radius cannot be learnt together with {name}",
                got=f"{name} = {value!r}",
                remedy="Give public bounds and levels, and a public clip or none",
            )


def requested(
    schema: Schema,
    asked: Wishes,
    *,
    epsilon: float,
    delta: float,
    clip: Any,
    rows: int | None,
    **rest: Any,
) -> Request:
    """The request, its numbers checked as `publish` checks them."""
    guarantee, known_rows = check_request(epsilon, delta, rows)
    return Request(
        schema=schema,
        asked=asked,
        guarantee=guarantee,
        clip=None if clip == "private" else clip,
        rows=known_rows,
        **rest,
    )


def _parameters(plan: Plan) -> dict[str, float | int | str]:
    mechanism = plan.mechanism
    return {"sigma": mechanism.sigma} if isinstance(mechanism, Gaussian) else {"theta": mechanism.theta}


def _reason(request: Request) -> str:
    if request.mechanism != AUTO:
        return "asked for by name"
    return "auto: its noise composes exactly with that of the parts that learn"


def _stated(plan: Plan, request: Request) -> StatedGuarantee:
    promised = plan.guarantee
    gaussian = GaussianDP(plan.event.mu) if isinstance(plan.event, GaussianEvent) else None
    return StatedGuarantee(
        epsilon=promised.epsilon,
        delta=promised.delta,
        mu=None if gaussian is None else gaussian.mu,
        rho=None if gaussian is None else gaussian.rho_at_least(),
        statement=in_words(
            epsilon=promised.epsilon,
            delta=promised.delta,
            adjacency=request.adjacency,
            unit=request.unit,
        ),
    )

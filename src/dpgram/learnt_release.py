"""publish() where the schema leaves something open: validate → price → first pass → charge → learn → draw.

The first pass reads the whole table before the charge, so what is wrong with it is found for nothing. After
the charge each part draws its noise and the table is read again under what is known by then. Whether it goes
on is decided from public facts before the charge, or from noisy counts after it; never from the table itself.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, final

from dpgram.choice import AUTO
from dpgram.curator import Report, check_request, published_matrix
from dpgram.encoding import Encoder
from dpgram.engines.local import Progress, gram
from dpgram.errors import DpgramWarning, GuaranteeError, MechanismError
from dpgram.learning import Learner, Plan, Table, planned, refuse_few_rows, refuse_streams
from dpgram.learnt_checks import unresolved
from dpgram.mechanisms import Facts, Gaussian, MatrixLaplace
from dpgram.privacy.accountant import GaussianEvent, describe
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.counts import CountLaw
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.release import Release
from dpgram.release_display import in_words
from dpgram.release_parts import AdjacencyName, MechanismUsed, MissingPolicy, Policy, StatedGuarantee
from dpgram.wishes import Wishes

if TYPE_CHECKING:
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

    def terms(self, book: Ledger | None) -> Plan:
        """The noise of every part; checked against the ledger, if there is one. Reads no data."""
        facts = Facts(width=self.schema.width, adjacency=adjacency_named(self.adjacency), rows=self.rows)
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
            refuse_few_rows(plan, self.schema, float(self.rows), spent=None)
        if book is not None:
            book.check(plan.event, adjacency=facts.adjacency, unit=None, note=self.note)
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
    """A release whose event also paid for learning what the schema leaves open."""
    refuse_streams(data)
    plan = request.terms(book)
    source.rehearse()
    started = time.perf_counter()
    table = Table(data=data, schema=request.schema, missing=request.missing)
    tally = table.first_pass()
    public_rows = tally.rows_read if request.adjacency == "replace-one" else None
    if public_rows is not None:
        refuse_few_rows(plan, request.schema, float(public_rows), spent=None)
    receipt = None
    if book is not None:
        relation = adjacency_named(request.adjacency)
        receipt = book.charge(plan.event, adjacency=relation, unit=None, note=request.note)
    learner = Learner(table=table, plan=plan, entropy=source, public_rows=public_rows)
    schema = learner.run(tally)
    clip = request.clip if learner.radius is None else learner.radius
    exact = gram(data, schema, clip, missing=request.missing, threads=threads, progress=progress)
    learnt = learner.record()
    if report is not None:
        report(
            Report(
                counts=exact.counts,
                mechanism=plan.mechanism.name,
                reason=_reason(request),
                price=describe(plan.event),
                seconds=time.perf_counter() - started,
                learnt=learnt,
            )
        )
    drawn = plan.mechanism.draw(exact.cells, source)
    release = Release(
        library=version("dpgram"),
        schema=schema,
        radius=Encoder(schema, clip=clip, missing=request.missing).radius,
        policy=Policy(missing=request.missing, strict=False),
        adjacency=request.adjacency,
        public_rows=public_rows,
        mechanism=MechanismUsed(
            name=plan.mechanism.name, parameters=_parameters(plan), choice=_reason(request)
        ),
        noise=drawn.noise,
        guarantee=_stated(plan, request.adjacency),
        entropy=source.label,
        published=published_matrix(drawn),
        receipt=receipt,
        learnt=learnt,
    )
    for name in unresolved(release):
        warnings.warn(
            f"the bounds learnt for {name!r} are far wider than its values, so that noise will hide it: give "
            "public bounds, or subtract a public constant",
            DpgramWarning,
            stacklevel=3,
        )
    return release


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


def _stated(plan: Plan, adjacency: AdjacencyName) -> StatedGuarantee:
    promised = plan.guarantee
    gaussian = GaussianDP(plan.event.mu) if isinstance(plan.event, GaussianEvent) else None
    return StatedGuarantee(
        epsilon=promised.epsilon,
        delta=promised.delta,
        mu=None if gaussian is None else gaussian.mu,
        rho=None if gaussian is None else gaussian.rho_at_least(),
        statement=in_words(epsilon=promised.epsilon, delta=promised.delta, adjacency=adjacency, unit=None),
    )

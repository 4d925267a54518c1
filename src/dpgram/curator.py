"""publish(): validate → price → aggregate → charge → draw → Release. The order is the guarantee.

Everything a person can get wrong is found before the ledger is touched; the charge is durable before noise is
drawn; after it nothing is left that could fail for a reason of the user's. No decision looks at a row, at a
count or at anything else in the data: whether `publish` succeeds, and everything it says but the cells,
follows from public facts alone.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version
from numbers import Integral, Real
from typing import Final, TypeAlias, final

import msgspec
import numpy as np

from dpgram.choice import choose
from dpgram.encoding import Encoder, PolicyCounts
from dpgram.engines.local import Progress, gram
from dpgram.errors import DpgramWarning, GuaranteeError, LedgerError, MechanismError, SchemaError
from dpgram.lattice import cell_unit
from dpgram.mechanisms import Drawn, Facts, Mechanism
from dpgram.privacy.accountant import Event, GaussianEvent, describe
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.entropy import Entropy, SystemEntropy
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release
from dpgram.release_display import in_words
from dpgram.release_parts import (
    AdjacencyName,
    MechanismUsed,
    MissingPolicy,
    Policy,
    PublishedMatrix,
    StatedGuarantee,
)
from dpgram.schema import Schema

LedgerLike: TypeAlias = Ledger | str | os.PathLike[str]
LEAST_EPSILON: Final = 1e-6
"""Here the noise of a single cell already outweighs a million rows."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Everything that is settled before a row is read: public facts only."""

    schema: Schema
    radius: float
    facts: Facts
    guarantee: Guarantee
    mechanism: Mechanism
    event: Event
    reason: str
    policy: Policy
    unit: str | None

    def used(self) -> MechanismUsed:
        """The mechanism as the release records it."""
        parameters = msgspec.to_builtins(self.mechanism)
        return MechanismUsed(name=self.mechanism.name, parameters=parameters, choice=self.reason)

    def stated(self) -> StatedGuarantee:
        """The guarantee as the release records it, in numbers and words."""
        promised, relation = self.guarantee, self.facts.adjacency.name
        gaussian = GaussianDP(self.event.mu) if isinstance(self.event, GaussianEvent) else None
        numerical_delta = self.mechanism.numerical_delta(self.facts)
        return StatedGuarantee(
            epsilon=promised.epsilon,
            delta=promised.delta,
            numerical_delta=numerical_delta,
            mu=None if gaussian is None else gaussian.mu,
            rho=None if gaussian is None else gaussian.rho_at_least(),
            statement=in_words(
                epsilon=promised.epsilon,
                delta=promised.delta,
                numerical_delta=numerical_delta,
                adjacency=relation,
                unit=self.unit,
            ),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """For the curator's eyes only: the counts are exact, so they must not leave with the release."""

    counts: PolicyCounts
    mechanism: str
    reason: str
    price: str
    seconds: float
    """How long reading and adding up took."""


def publish(
    data: object,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    adjacency: AdjacencyName = "add-remove",
    clip: float | None = None,
    mechanism: str = "auto",
    ledger: LedgerLike | None = None,
    missing: MissingPolicy = "drop",
    strict: bool = False,
    unit: str | None = None,
    rows: int | None = None,
    ridge: float | None = None,
    rank: int | None = None,
    degrees: int | None = None,
    threads: int | None = None,
    entropy: Entropy | None = None,
    progress: Progress = None,
    report: Callable[[Report], None] | None = None,
    note: str = "",
) -> Release:
    """One (epsilon, delta)-differentially private release of the Gram matrix of `data` under `schema`.

    `clip` is a public row radius (none: the largest norm the schema allows, so nothing is clipped). `ledger`
    is charged before noise is drawn; without one nothing keeps count of what was spent. `missing` and
    `strict` say what happens to values outside the schema. `rows` is a public guess of the number of rows,
    for warnings and forecasts. `ridge` (in encoded units), `rank` and `degrees` are public parameters of the
    mechanisms that have them: see docs/reference/mechanisms.md. `report` receives, before the charge, what
    the curator may know and nobody else; `note` stays in the ledger.
    """
    source = SystemEntropy() if entropy is None else entropy
    book = _opened(ledger)
    if book is not None and source.label != "system":
        raise MechanismError(
            "seeded noise can be removed by whoever knows the seed, so no ledger pays for it",
            remedy="Leave entropy out; or, for an experiment, leave the ledger out",
        )
    terms = agree(
        schema,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        clip=clip,
        mechanism=mechanism,
        ledger=book,
        missing=missing,
        strict=strict,
        unit=unit,
        rows=rows,
        ridge=ridge,
        rank=rank,
        degrees=degrees,
        note=note,
    )
    # A broken installation must be found before the charge, not after it.
    source.rehearse()
    started = time.perf_counter()
    exact = gram(data, schema, clip, missing=missing, strict=strict, threads=threads, progress=progress)
    # Rows before any was dropped: under replace-one that number is public, that of the kept ones is not.
    public_rows = exact.counts.rows_read if adjacency == "replace-one" else None
    if rows is None and public_rows is not None and terms.guarantee.delta * public_rows > 1.0:
        warnings.warn(
            f"delta = {delta:g} is above one in the {public_rows} rows: it would allow one to be told",
            DpgramWarning,
            stacklevel=2,
        )
    _refuse_too_many_rows(terms.mechanism, exact.counts.rows_used)
    if report is not None:
        # Before the charge: a report that fails must not cost a release that was paid for.
        report(
            Report(
                counts=exact.counts,
                mechanism=terms.mechanism.name,
                reason=terms.reason,
                price=describe(terms.event),
                seconds=time.perf_counter() - started,
            )
        )
    receipt = None
    if book is not None:
        receipt = book.charge(terms.event, adjacency=terms.facts.adjacency, unit=unit, note=note)
    drawn = terms.mechanism.draw(exact.cells, source)
    return Release(
        library=version("dpgram"),
        schema=schema,
        radius=terms.radius,
        policy=terms.policy,
        adjacency=adjacency,
        unit=unit,
        public_rows=public_rows,
        mechanism=terms.used(),
        noise=drawn.noise,
        guarantee=terms.stated(),
        entropy=source.label,
        published=_published(drawn),
        receipt=receipt,
    )


def agree(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    adjacency: str = "add-remove",
    clip: float | None = None,
    mechanism: str = "auto",
    ledger: LedgerLike | None = None,
    missing: MissingPolicy = "drop",
    strict: bool = False,
    unit: str | None = None,
    rows: int | None = None,
    ridge: float | None = None,
    rank: int | None = None,
    degrees: int | None = None,
    note: str = "",
) -> Terms:
    """Validate everything and price it. Reads no data, spends nothing, raises what `publish` would raise."""
    if not isinstance(schema, Schema):
        raise SchemaError(
            "publish needs a Schema",
            got=f"a {type(schema).__name__}",
            remedy="Write Schema(numeric(...), ...), or read one with Schema.from_file(path)",
        )
    _refuse_unit(unit)
    asked = Guarantee.checked(_number("epsilon", epsilon), _number("delta", delta), _count("rows", rows))
    if asked.epsilon < LEAST_EPSILON:
        raise GuaranteeError(
            "epsilon is too small for any table to survive the noise",
            got=asked.epsilon,
            limit=f"epsilon ≥ {LEAST_EPSILON:g}",
        )
    encoder = Encoder(schema, clip=clip, missing=missing, strict=strict)
    facts = Facts(
        width=schema.width,
        adjacency=adjacency_named(adjacency),
        rows=rows,
        ridge=None if ridge is None else _number("ridge", ridge) / cell_unit(encoder.radius),
        rank=_count("rank", rank),
        degrees=_count("degrees", degrees),
    )
    book = _opened(ledger)
    chosen = choose(mechanism, asked, facts, None if book is None else book.currency)
    event = chosen.mechanism.event(facts)
    if book is not None:
        book.check(event, adjacency=facts.adjacency, unit=unit, note=note)
    return Terms(
        schema=schema,
        radius=encoder.radius,
        facts=facts,
        guarantee=chosen.guarantee,
        mechanism=chosen.mechanism,
        event=event,
        reason=chosen.reason,
        policy=Policy(missing=missing, strict=strict),
        unit=unit,
    )


def _published(drawn: Drawn) -> PublishedMatrix:
    """The lower triangle, row by row, as decimal strings."""
    rows, columns = np.tril_indices(len(drawn.cells))
    cells = tuple(str(int(cell)) for cell in drawn.cells[rows, columns])
    return PublishedMatrix(kind=drawn.kind, exponent=drawn.exponent, cells=cells)


def _opened(ledger: LedgerLike | None) -> Ledger | None:
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise LedgerError("ledger must be a Ledger or the path of one", got=f"a {type(ledger).__name__}")
    return Ledger.open(ledger)


def _refuse_unit(unit: str | None) -> None:
    if unit is not None:
        raise GuaranteeError(
            "privacy of a unit with several rows is not offered yet",
            got=f"unit = {unit!r}",
            limit="unit = None: one row is one person",
            remedy="Reduce the table to one row for each person before publishing",
        )


def _refuse_too_many_rows(mechanism: Mechanism, rows: int) -> None:
    """Like the overflow of the sums: a limit of the arithmetic, public and far away (docs/limits.md)."""
    if mechanism.rows_at_most is not None and rows > mechanism.rows_at_most:
        raise MechanismError(
            f"{mechanism.name} draws in floats, whose rounding is bounded for fewer rows only",
            limit=f"{mechanism.rows_at_most:,} rows",
            remedy="Use gaussian or matrix-laplace, which draw integers",
        )


def _number(what: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise GuaranteeError(f"{what} must be a number", got=repr(value), remedy=f"Give {what}=1e-6, say")
    return float(value)


def _count(what: str, value: object) -> int | None:
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise GuaranteeError(f"{what} must be a whole number above zero", got=repr(value))
    return int(value)

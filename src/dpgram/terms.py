"""The terms of a release: everything that is validated, chosen and priced before a row is read."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final, TypeAlias, TypedDict, Unpack, final

import msgspec

from dpgram.choice import choose
from dpgram.columns import Categorical, Numeric
from dpgram.encoding import Encoder
from dpgram.errors import GuaranteeError, LedgerError, SchemaError
from dpgram.lattice import cell_unit
from dpgram.mechanisms import Facts, Mechanism
from dpgram.privacy.accountant import Event, GaussianEvent, composed, curve_of, parts_of
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.rounding import up
from dpgram.release_display import in_words
from dpgram.release_parts import AdjacencyName, Block, MechanismUsed, MissingPolicy, Policy, StatedGuarantee
from dpgram.schema import Schema
from dpgram.shares import BlockTerms, Sharing, block_schemas, sharing, split_budget

if TYPE_CHECKING:
    from dpgram.portions import Portions

LedgerLike: TypeAlias = Ledger | str | os.PathLike[str]
LEAST_EPSILON: Final = 1e-6
"""Here the noise of a single cell already outweighs a million rows."""


class Asked(TypedDict, total=False):
    """What a curator may settle beside the schema, ε, δ, groups and blocks: public facts only."""

    adjacency: AdjacencyName
    mechanism: str
    ledger: LedgerLike | None
    missing: MissingPolicy
    strict: bool
    unit: str | None
    unit_rows: int | None
    weight: str | Numeric | None
    rows: int | None
    ridge: float | None
    rank: int | None
    degrees: int | None
    psd: bool
    note: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """Everything that is settled before a row is read: public facts only."""

    encoder: Encoder
    facts: Facts
    guarantee: Guarantee
    mechanism: Mechanism
    event: Event
    reason: str
    sharing: Sharing
    block: Block | None = None

    @property
    def schema(self) -> Schema:
        """The columns of the matrix."""
        return self.encoder.schema

    @property
    def radius(self) -> float:
        """R: no row is longer."""
        return self.encoder.radius

    @property
    def policy(self) -> Policy:
        """What happens to values outside the schema, as the release records it."""
        return Policy(missing=self.encoder.missing, strict=self.encoder.strict)

    @property
    def unit(self) -> str | None:
        """The column whose values are protected as a whole; None: the row."""
        return self.sharing.unit

    def used(self) -> MechanismUsed:
        """The mechanism as the release records it."""
        parameters = msgspec.to_builtins(self.mechanism)
        return MechanismUsed(name=self.mechanism.name, parameters=parameters, choice=self.reason)

    def stated(self) -> StatedGuarantee:
        """The guarantee as the release records it, in numbers and words."""
        gaussian = GaussianDP(self.event.mu) if isinstance(self.event, GaussianEvent) else None
        return _stated(self.guarantee, self.facts, self.unit, gaussian)


def _stated(
    promised: Guarantee, facts: Facts, unit: str | None, gaussian: GaussianDP | None
) -> StatedGuarantee:
    return StatedGuarantee(
        epsilon=promised.epsilon,
        delta=promised.delta,
        mu=None if gaussian is None else gaussian.mu,
        rho=None if gaussian is None else gaussian.rho_at_least(),
        statement=in_words(
            epsilon=promised.epsilon,
            delta=promised.delta,
            adjacency=facts.adjacency.name,
            unit=unit,
        ),
    )


def portions(terms: Sequence[Terms]) -> Portions | None:
    """How rows are counted into the matrices of `terms`; None for one matrix of plain rows."""
    first = terms[0]
    if first.sharing.plain and first.block is None:
        return None
    from dpgram.portions import Portions

    used = first.encoder
    whole = Encoder(first.sharing.schema, clip=used.clip, missing=used.missing, strict=used.strict)
    return Portions(
        whole=whole,
        blocks=tuple(one.encoder for one in terms),
        unit=first.sharing.unit,
        rule=first.sharing.rule,
        by=first.sharing.by,
        weight=first.sharing.weight,
    )


def agree(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    clip: float | None = None,
    by: str | Categorical | None = None,
    **asked: Unpack[Asked],
) -> Terms:
    """Validate everything and price it. Reads no data, spends nothing, raises what `publish` would raise."""
    (terms,) = agree_all(schema, epsilon=epsilon, delta=delta, clip=clip, by=by, **asked)
    return terms


def agree_all(
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
    unit_rows: int | None = None,
    by: str | Categorical | None = None,
    blocks: Sequence[Sequence[str]] | None = None,
    weight: str | Numeric | None = None,
    rows: int | None = None,
    ridge: float | None = None,
    rank: int | None = None,
    degrees: int | None = None,
    psd: bool = False,
    note: str = "",
) -> tuple[Terms, ...]:
    """The same for every block of columns; one where they are not split."""
    check_schema(schema)
    asked, _ = check_request(epsilon, delta, rows)
    relation = adjacency_named(adjacency)
    shared = sharing(schema, adjacency=adjacency, unit=unit, unit_rows=unit_rows, by=by, weight=weight)
    encoder = Encoder(shared.schema, clip=clip, missing=missing, strict=strict)
    facts = Facts(
        width=shared.schema.width,
        adjacency=relation,
        rows=rows,
        ridge=None if ridge is None else _number("ridge", ridge) / cell_unit(encoder.radius),
        rank=_count("rank", rank),
        degrees=_count("degrees", degrees),
        unit_rows=shared.unit_rows,
    )
    book = opened(ledger)
    currency = None if book is None else book.currency
    if blocks is None:
        shared.refuse_unproven(mechanism)
        chosen = choose(mechanism, asked, facts, currency, psd=psd)
        shared.refuse_unproven(chosen.mechanism.name)
        terms: tuple[Terms, ...] = (
            Terms(
                encoder=encoder,
                facts=facts,
                guarantee=chosen.guarantee,
                mechanism=chosen.mechanism,
                event=chosen.mechanism.event(facts),
                reason=chosen.reason,
                sharing=shared,
            ),
        )
    else:
        if by is not None or facts.options or psd:
            raise SchemaError(
                "blocks go with neither groups nor psd, ridge, rank or degrees", remedy="Leave one out"
            )
        encoders = [
            Encoder(one, clip=clip, missing=missing, strict=strict)
            for one in block_schemas(shared.schema, blocks)
        ]
        pairs = [(one, replace(facts, width=one.schema.width)) for one in encoders]
        terms = _in_blocks(split_budget(mechanism, asked, pairs, currency), asked, shared)
    if book is not None:
        event = composed(one.event for one in terms)
        book.check(event, adjacency=relation, unit=unit, note=note)
    return terms


def _in_blocks(split: Sequence[BlockTerms], asked: Guarantee, shared: Sharing) -> tuple[Terms, ...]:
    """The terms of every block, each with what all of them promise together."""
    events = [one.mechanism.event(one.facts) for one in split]
    whole = composed(events)
    squares = sum(part.mu**2 for part in parts_of(whole) if isinstance(part, GaussianEvent))
    gaussian = GaussianDP(up(math.sqrt(squares))) if squares else None
    joint = Guarantee(asked.epsilon, asked.delta if gaussian else 0.0)
    if not curve_of(whole).within(joint.epsilon, joint.delta):
        raise GuaranteeError("the blocks together would promise less than was asked", got=asked)
    stated = _stated(joint, split[0].facts, shared.unit, gaussian)
    return tuple(
        Terms(
            encoder=one.encoder,
            facts=one.facts,
            guarantee=one.guarantee,
            mechanism=one.mechanism,
            event=event,
            reason=one.reason,
            sharing=shared,
            block=Block(number=number, of=len(split), joint=stated),
        )
        for number, (one, event) in enumerate(zip(split, events, strict=True), start=1)
    )


def check_request(epsilon: float, delta: float, rows: int | None) -> tuple[Guarantee, int | None]:
    """The guarantee and the public row count that were asked for, refused where they make no sense."""
    public_rows = _count("rows", rows)
    asked = Guarantee.checked(_number("epsilon", epsilon), _number("delta", delta), public_rows)
    if asked.epsilon < LEAST_EPSILON:
        raise GuaranteeError(
            "epsilon is too small for any table to survive the noise",
            got=asked.epsilon,
            limit=f"epsilon ≥ {LEAST_EPSILON:g}",
        )
    return asked, public_rows


def check_schema(schema: object) -> None:
    """Refuse what is no schema."""
    if not isinstance(schema, Schema):
        raise SchemaError(
            "publish needs a Schema",
            got=f"a {type(schema).__name__}",
            remedy="Write Schema(numeric(...), ...), or read one with Schema.from_file(path)",
        )


def opened(ledger: LedgerLike | None) -> Ledger | None:
    """The ledger itself, or the one at this path."""
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise LedgerError("ledger must be a Ledger or the path of one", got=f"a {type(ledger).__name__}")
    return Ledger.open(ledger)


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

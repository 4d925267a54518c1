"""What is asked of `publish`, beside the data: checked once, from public facts alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Integral, Real
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, TypedDict, final

import msgspec

from dpgram.document.fields import AdjacencyName, MissingPolicy
from dpgram.errors import GuaranteeError, LedgerError, SchemaError
from dpgram.mechanisms import Auto, Mechanism, MechanismLike, PublicFacts, as_mechanism
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.publishing.blocks import block_schemas
from dpgram.publishing.compatibility import mechanism_option, refuse_clashes
from dpgram.publishing.split import BudgetSplit, budget_split
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules, row_rules
from dpgram.schema import Schema
from dpgram.schema.columns import Categorical, Numeric

if TYPE_CHECKING:
    from dpgram.engines.base import Engine
    from dpgram.engines.threads import Progress
    from dpgram.privacy.sampling.entropy import Entropy
    from dpgram.publishing.publisher import Report

LedgerLike: TypeAlias = Ledger | str | os.PathLike[str]
LEAST_EPSILON: Final = 1e-6
"""Here the noise of a single cell already outweighs a million rows."""


class Asked(TypedDict, total=False):
    """What a curator may settle beside the schema, ε, δ, groups and blocks: public facts only."""

    adjacency: AdjacencyName
    mechanism: MechanismLike
    ledger: LedgerLike | None
    missing: MissingPolicy
    strict: bool
    unit: str | None
    unit_rows: int | None
    weight: str | Numeric | None
    rows: int | None
    note: str


class Options(Asked, total=False):
    """What `publish` takes beside the data, the schema, ε and δ, and how rows and columns are split."""

    clip: float | Literal["private"] | None
    bounds_budget: float | None
    levels_budget: float | None
    engine: str | Engine
    threads: int | None
    entropy: Entropy | None
    progress: Progress
    report: Callable[[Report], None] | None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Everything that was asked for: public facts that make sense by themselves and together."""

    schema: Schema
    """As it was given, with the columns that group and weigh."""
    guarantee: Guarantee
    adjacency: Adjacency
    rules: RowRules
    """Which rows count; its schema is what is published."""
    clip: float | None
    split: BudgetSplit
    """What is learnt privately; nothing, where everything is public."""
    mechanism: Mechanism | Auto
    blocks: tuple[tuple[str, ...], ...] | None
    rows: int | None
    note: str

    @property
    def options(self) -> frozenset[str]:
        """The options that were used, as the table of what goes together names them."""
        rules, split = self.rules, self.split
        several = rules.unit_rows > 1
        used = {
            "strict": rules.strict,
            "bounds_budget": split.bounds > 0.0,
            "levels_budget": split.levels > 0.0,
            "clip='private'": split.radius > 0.0,
            "delta=0": self.guarantee.pure,
            "adjacency='replace-one'": self.adjacency.name == "replace-one",
            "by": rules.by is not None,
            "blocks": self.blocks is not None,
            "several rows a unit": several,
            "units in several groups": several and rules.by is not None,
            mechanism_option(self.mechanism): True,
        }
        return frozenset(name for name, given in used.items() if given)

    def facts(self, encoder: Encoder) -> PublicFacts:
        """What a mechanism is calibrated from, for the matrix of this encoder."""
        return PublicFacts(
            width=encoder.schema.width,
            adjacency=self.adjacency,
            rows=self.rows,
            unit_rows=self.rules.unit_rows,
            radius=encoder.radius,
        )

    def encoders(self, schema: Schema, clips: Sequence[float | None] = ()) -> tuple[Encoder, ...]:
        """One for each block under a schema that leaves nothing open, each with its radius."""
        schemas = (schema,) if self.blocks is None else block_schemas(schema, self.blocks)
        radii = clips or [self.clip] * len(schemas)
        return tuple(
            Encoder(one, clip=clip, missing=self.rules.missing, strict=self.rules.strict)
            for one, clip in zip(schemas, radii, strict=True)
        )

    @property
    def key(self) -> dict[str, object]:
        """All of it as plain values: two requests for the same release have the same."""
        rules, split = self.rules, self.split
        return {
            "schema": self.schema.to_dict(),
            "published": rules.schema.to_dict(),
            "epsilon": self.guarantee.epsilon,
            "delta": self.guarantee.delta,
            "adjacency": self.adjacency.name,
            "missing": rules.missing,
            "strict": rules.strict,
            "unit": rules.unit,
            "rule": None if rules.rule is None else msgspec.to_builtins(rules.rule),
            "by": None if rules.by is None else rules.by.to_dict(),
            "weight": None if rules.weight is None else msgspec.to_builtins(rules.weight),
            "clip": self.clip,
            "split": [split.bounds, split.levels, split.radius],
            "mechanism": {"name": self.mechanism.name, **self.mechanism.parameters},
            "blocks": None if self.blocks is None else [list(block) for block in self.blocks],
            "rows": self.rows,
            "note": self.note,
        }


def requested(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    adjacency: AdjacencyName = "add-remove",
    clip: float | Literal["private"] | None = None,
    bounds_budget: float | None = None,
    levels_budget: float | None = None,
    mechanism: MechanismLike = Auto.name,
    missing: MissingPolicy = "drop",
    strict: bool = False,
    unit: str | None = None,
    unit_rows: int | None = None,
    by: str | Categorical | None = None,
    blocks: Sequence[Sequence[str]] | None = None,
    weight: str | Numeric | None = None,
    rows: int | None = None,
    note: str = "",
    beside: Sequence[str] = (),
) -> Request:
    """Check everything; raises what is wrong with it. `beside` are facts about the data's own form."""
    check_schema(schema)
    guarantee, known_rows = check_request(epsilon, delta, rows)
    rules = row_rules(
        schema, unit=unit, unit_rows=unit_rows, by=by, weight=weight, missing=missing, strict=strict
    )
    request = Request(
        schema=schema,
        guarantee=guarantee,
        adjacency=adjacency_named(adjacency),
        rules=rules,
        clip=None if clip == "private" else clip,
        split=budget_split(rules.schema, bounds_budget=bounds_budget, levels_budget=levels_budget, clip=clip),
        mechanism=as_mechanism(mechanism),
        blocks=None if blocks is None else _blocks(blocks),
        rows=known_rows,
        note=note,
    )
    refuse_clashes([*request.options, *beside])
    # An encoder is made of the schema as far as it is known, so that its mistakes show now.
    known = rules.schema.with_bounds(dict.fromkeys(rules.schema.unbounded, (-1.0, 1.0)))
    request.encoders(known.with_levels(dict.fromkeys(rules.schema.without_levels, ())))
    return request


def _blocks(blocks: Sequence[Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    if isinstance(blocks, str) or any(isinstance(names, str) for names in blocks):
        raise SchemaError(
            "blocks are two or more lists of column names", remedy='Write blocks=[["a", "b"], ["a", "c"]]'
        )
    return tuple(tuple(names) for names in blocks)


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


def open_ledger(ledger: LedgerLike | None) -> Ledger | None:
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

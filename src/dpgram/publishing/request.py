"""What is asked of `publish`, beside the data: checked once, from public facts alone."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Final, Never, TypeAlias, TypedDict, final

import msgspec

from dpgram.document.fields import AdjacencyName
from dpgram.errors import GuaranteeError, LedgerError, OptionsError, SchemaError, shown, warn_caller, whole
from dpgram.mechanisms import Auto, Mechanism, MechanismLike, PublicFacts, as_mechanism
from dpgram.models import Model
from dpgram.models.declared import checked_models
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import Guarantee, as_number
from dpgram.privacy.ledger import Ledger
from dpgram.publishing.compatibility import REPLACED_IN_GROUPS, mechanism_option, refuse_clashes
from dpgram.publishing.split import Adaptive, BudgetSplit, budget_split
from dpgram.rows.encoder import Encoder, checked_radius
from dpgram.rows.rules import EVERY_ROW, RowRules, Rows, row_rules
from dpgram.schema import Schema
from dpgram.sums.exact_gram import MAX_ROWS

if TYPE_CHECKING:
    from dpgram.engines.base import Engine
    from dpgram.engines.threads import Progress
    from dpgram.publishing.publisher import CuratorReport

LedgerLike: TypeAlias = Ledger | str | os.PathLike[str]
LEAST_EPSILON: Final = 1e-6
"""Here the noise of a single cell already outweighs a million rows."""


class Unsaid(Enum):
    """In place of a ledger where nobody spoke of one; None says that none shall pay."""

    UNSAID = "unsaid"


class Asked(TypedDict, total=False):
    """What a curator may choose beside the schema, ε and δ: public facts only."""

    rows: Rows
    adaptive: bool | Adaptive
    mechanism: MechanismLike
    adjacency: AdjacencyName
    models: Sequence[Model]
    note: str


class Options(Asked, total=False):
    """What `publish` takes beside the data, the schema, ε and δ."""

    ledger: LedgerLike | None
    engine: str | Engine
    progress: Progress
    report: Callable[[CuratorReport], None] | None


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
    radius: float | None
    split: BudgetSplit
    """What is learnt privately; nothing, where everything is public."""
    mechanism: Mechanism | Auto
    expected: int | None
    """A public guess of the number of rows."""
    note: str
    models: tuple[Model, ...] = ()
    """What is declared beforehand, with features named."""

    @property
    def options(self) -> frozenset[str]:
        """The options that were used, as the table of what goes together names them."""
        rules, split = self.rules, self.split
        several = rules.unit_rows > 1
        used = {
            "strict": rules.strict is True,
            "learnt bounds": split.bounds > 0.0,
            "learnt levels": split.levels > 0.0,
            "adaptive=True": split.histograms > 0.0,
            "learning in one matrix": split.learning_in_one_matrix,
            "models": bool(self.models),
            "delta=0": self.guarantee.pure,
            "adjacency='replace-one'": self.adjacency.name == "replace-one",
            "by": rules.by is not None,
            "blocks": self.rules.schema.blocks is not None,
            "several rows per unit": several,
            "units in several groups": several and rules.by is not None,
            REPLACED_IN_GROUPS: self.two_matrices,
            mechanism_option(self.mechanism): True,
        }
        return frozenset(name for name, given in used.items() if given)

    @property
    def two_matrices(self) -> bool:
        """Whether a replaced unit may leave one group for another: neighbours then differ in two matrices.

        Proof: proofs/units.md#units-groups.
        """
        return self.rules.by is not None and self.adjacency.name == "replace-one"

    @property
    def rows_private(self) -> bool:
        """Whether the number of rows of a release is private: under add/remove, and of a group always.

        Proof: proofs/units.md#units-groups.
        """
        return self.rules.by is not None or self.adjacency.name == "add-remove"

    def facts(self, encoder: Encoder) -> PublicFacts:
        """What a mechanism is calibrated from, for the matrix of this encoder."""
        return PublicFacts(
            width=encoder.schema.width,
            adjacency=self.adjacency,
            rows=self.expected,
            unit_rows=self.rules.unit_rows,
            two_matrices=self.two_matrices,
            radius=encoder.radius,
        )

    @property
    def blocks(self) -> int:
        """Into how many blocks the columns are split; 1 where they are not."""
        return len(self.rules.schema.blocks or (None,))

    def encoders(self, schema: Schema, radii: Sequence[float | None] = ()) -> tuple[Encoder, ...]:
        """One for each block under a schema that leaves nothing open, each with its radius."""
        schemas = schema.in_blocks()
        given = radii or [self.radius] * len(schemas)
        return tuple(
            Encoder(one, clip=radius, missing=self.rules.missing, strict=self.rules.strict)
            for one, radius in zip(schemas, given, strict=True)
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
            "strict": rules.strict is True,
            "unit": rules.unit,
            "rule": None if rules.unit_rule is None else msgspec.to_builtins(rules.unit_rule),
            "by": None if rules.by is None else rules.by.to_dict(),
            "weight": None if rules.weight is None else msgspec.to_builtins(rules.weight),
            "radius": self.radius,
            "split": [
                split.bounds,
                split.levels,
                split.histograms,
                split.first,
                split.clip,
                split.loss_at_most,
            ],
            "mechanism": {"name": self.mechanism.name, **self.mechanism.parameters},
            "expected": self.expected,
            "note": self.note,
            **({"models": msgspec.to_builtins(self.models)} if self.models else {}),
        }


def requested(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    rows: Rows = EVERY_ROW,
    adaptive: bool | Adaptive = True,
    mechanism: MechanismLike = Auto.name,
    adjacency: AdjacencyName = "add-remove",
    models: Sequence[Model] = (),
    note: str = "",
    beside: Sequence[str] = (),
    **others: Never,
) -> Request:
    """Check everything; raises what is wrong with it. `beside` are facts about the data's own form."""
    refuse_others(others)
    check_schema(schema)
    check_rows(rows)
    guarantee, expected = check_request(epsilon, delta, rows.expected)
    rules = row_rules(schema, rows)
    one_matrix = _one_matrix(as_mechanism(mechanism), rows)
    before = budget_split(rules.schema, adaptive, one_matrix=one_matrix)
    declared = checked_models(models, rules.schema, left=before.left_for_models)
    request = Request(
        schema=schema,
        guarantee=guarantee,
        adjacency=adjacency_named(adjacency),
        rules=rules,
        radius=checked_radius(rows.radius),
        split=budget_split(
            rules.schema,
            adaptive,
            one_matrix=one_matrix,
            models=sum(model.share or 0.0 for model in declared),
        ),
        mechanism=as_mechanism(mechanism),
        expected=expected,
        note=check_note(note),
        models=declared,
    )
    refuse_clashes([*request.options, *beside])
    # An encoder is made of the schema as far as it is known, so that its mistakes show now.
    known = rules.schema.with_bounds(dict.fromkeys(rules.schema.unbounded, (-1.0, 1.0)))
    request.encoders(known.with_levels(dict.fromkeys(rules.schema.without_levels, ())))
    return request


def _one_matrix(mechanism: Mechanism | Auto, rows: Rows) -> bool:
    """Sampled matrices, and rows clipped at a public radius, are measured once and as they are."""
    capable = not mechanism.semidefinite if isinstance(mechanism, Auto) else mechanism.adaptive
    return not capable or rows.radius is not None


def check_request(epsilon: float, delta: float, rows: int | None) -> tuple[Guarantee, int | None]:
    """The guarantee and the public row count that were asked for, refused where they make no sense."""
    public_rows = _count("the expected number of rows", rows)
    asked = Guarantee.checked(as_number("epsilon", epsilon), as_number("delta", delta), public_rows)
    if asked.epsilon < LEAST_EPSILON:
        raise GuaranteeError(
            "epsilon is too small for any table to survive the noise",
            got=asked.epsilon,
            limit=f"epsilon ≥ {LEAST_EPSILON:g}",
        )
    return asked, public_rows


def check_note(note: object) -> str:
    """What a ledger keeps must be text that a file can hold; how long it may be the ledger says."""
    if not isinstance(note, str) or any("\ud800" <= character <= "\udfff" for character in note):
        raise LedgerError(
            "a note is not usable",
            got=repr(note)[:60],
            limit="text without halves of surrogate pairs",
            remedy="Write it in plain words",
        )
    return note


def refuse_others(others: Mapping[str, object]) -> None:
    """Arguments that no publication has: fields of `Rows` and `Adaptive` are said to be such."""
    for name, value in others.items():
        for argument, home in (("rows", Rows), ("adaptive", Adaptive)):
            if name in {field.name for field in fields(home)}:
                raise OptionsError(
                    f"{name!r} is a field of {home.__name__} and no argument beside it",
                    remedy=f"Write {argument}={home.__name__}({name}={shown(value)})",
                )
        raise TypeError(f"publish() got an unexpected keyword argument {name!r}")


def check_schema(schema: object, data: object = None) -> None:
    if isinstance(data, Schema):
        raise SchemaError(
            "the schema stands where the table belongs", remedy="Write publish(table, schema, …)"
        )
    if not isinstance(schema, Schema):
        raise SchemaError(
            "publish needs a Schema",
            got=f"a {type(schema).__name__}",
            remedy="Write Schema(numeric(...), ...), or read one with Schema.from_file(path)",
        )


def refuse_undecided(schema: Schema) -> None:
    """Nothing is learnt, and no budget spent on it, because a starter schema was left as it was."""
    names = schema.undecided
    if names:
        more = f" and {len(names) - 5} more" if len(names) > 5 else ""
        raise SchemaError(
            "columns of the schema have neither bounds nor levels, and it does not say that they are learnt",
            got=", ".join(map(repr, names[:5])) + more,
            remedy="Fill them in from public knowledge, delete the columns that nobody needs, or write "
            "learn = true below a column to pay for learning them",
        )


def check_rows(rows: object) -> None:
    """Refuse what does not say how rows count, first of all a number, which is meant as a guess."""
    if not isinstance(rows, Rows):
        raise SchemaError(
            "rows must be a Rows, which says who is protected and how rows count",
            got=repr(rows)[:100],
            remedy="Write rows=Rows(expected=10_000) for a guess of their number, or Rows(unit='id')",
        )


def said_ledger(ledger: LedgerLike | Unsaid | None) -> LedgerLike | None:
    """The ledger, with a warning where nobody said whether one pays, once in a process."""
    if not isinstance(ledger, Unsaid):
        return ledger
    warn_of_no_ledger()
    return None


@cache
def warn_of_no_ledger() -> None:
    warn_caller(
        "no ledger keeps count of what this release spends: give ledger=…, or ledger=None if that is meant"
    )


def open_ledger(ledger: LedgerLike | None) -> Ledger | None:
    if ledger is None or isinstance(ledger, Ledger):
        return ledger
    if not isinstance(ledger, str | os.PathLike):
        raise LedgerError("ledger must be a Ledger or the path of one", got=f"a {type(ledger).__name__}")
    return Ledger.open(ledger)


def _count(what: str, value: object) -> int | None:
    if value is None:
        return None
    count = whole(value)
    if count is None or count < 1:
        raise GuaranteeError(f"{what} must be a whole number above zero", got=shown(value))
    if count > MAX_ROWS:
        raise GuaranteeError(f"{what} is more than any table can have", limit=f"{MAX_ROWS} rows")
    return count

"""Who and what shares one charge: units, groups, blocks of columns and survey weights, from public facts.

Blocks: min Σ_b d_b·σ_b² for noise σ_b in encoded units. Gaussian, σ_b = Δ_b/μ_b with Δ_b = R_b² and
Σ μ_b² = μ²: μ_b² ∝ R_b²·√d_b. Matrix Laplace, σ_b = √(d_b+1)·R_b²/ε_b with Σ ε_b = ε: ε_b³ ∝ d_b(d_b+1)·R_b⁴.
Both by Lagrange. Proofs: proofs/blocks.md, proofs/units.md.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from numbers import Integral
from typing import Final, final

from dpgram.columns import Categorical, DerivedColumn, Numeric
from dpgram.encoding import Encoder
from dpgram.errors import GuaranteeError, MechanismError, SchemaError
from dpgram.lattice import LARGEST_UNIT_LIMIT, UNIT_ROWS_AT_MOST
from dpgram.mechanisms import Facts, Gaussian, MatrixLaplace
from dpgram.privacy.accountant import Currency
from dpgram.privacy.calibrate import DISCRETE_SLACK
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.rounding import down, up
from dpgram.release_checks import JOINT_UNITS, ONE_ROW_ONLY
from dpgram.release_parts import SurveyWeight, UnitRule
from dpgram.schema import Schema

GROUPS_AT_MOST: Final = 10_000
"""Each has sums of its own in memory, for every thread."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sharing:
    """How the rows of a table count in what is published. Public facts only."""

    schema: Schema
    """What is published: without the columns that group and weigh."""
    unit: str | None = None
    rule: UnitRule | None = None
    by: Categorical | None = None
    weight: SurveyWeight | None = None

    @property
    def plain(self) -> bool:
        """Whether every row counts alike and by itself, in one matrix."""
        return self.rule is None and self.by is None and self.weight is None

    @property
    def unit_rows(self) -> int:
        """Most rows of a unit: the largest rank of what one unit contributes."""
        return 1 if self.rule is None else self.rule.rows_at_most

    def refuse_unproven(self, mechanism: str) -> None:
        """Refuse a mechanism whose guarantee is not proven for units of several rows, or for such groups.

        Proofs: proofs/sketch.md#sketch-several, proofs/units.md#units-mechanisms.
        """
        if self.unit_rows == 1 or mechanism == "auto":  # what auto takes is looked at once it is known
            return
        if mechanism in ONE_ROW_ONLY:
            raise MechanismError(
                f"the guarantee of {mechanism} is proven for units of one row only: several rows change the "
                "matrix by more than one direction, and could tell more",
                got=f"up to {self.unit_rows} rows a unit",
                limit="unit_rows=1",
                remedy="Use gaussian or matrix-laplace, or unit_rows=1",
            )
        if self.by is not None and mechanism not in JOINT_UNITS:
            raise MechanismError(
                f"{mechanism} cannot serve several groups at the price of one where a unit has rows in "
                "several of them",
                limit=f"one of {', '.join(sorted(JOINT_UNITS))}",
                remedy="Use one of these, or unit_rows=1",
            )


def sharing(
    schema: Schema,
    *,
    adjacency: str,
    unit: str | None = None,
    unit_rows: int | None = None,
    by: str | Categorical | None = None,
    weight: str | Numeric | None = None,
) -> Sharing:
    """Everything checked; columns that group or weigh leave the schema that is published."""
    rule = _rule(unit, unit_rows)
    levels, survey = _by(schema, by, adjacency), _weight(schema, weight)
    helpers = {column for column in (by, weight) if isinstance(column, str)}
    rest = without(schema, helpers)
    extra = [None if levels is None else levels.name, None if survey is None else survey.column]
    named = [name for name in (unit, *extra) if name is not None]
    if len(set(named)) < len(named):
        raise SchemaError("unit, by and weight need a column each", got=", ".join(map(repr, named)))
    for name in named:
        if name in rest.source_columns:
            raise SchemaError(
                f"column {name!r} identifies, groups or weighs rows: it cannot be published as well",
                remedy="Leave it out of the schema" if name == unit else "Name it, or leave it out",
            )
    return Sharing(schema=rest, unit=unit, rule=rule, by=levels, weight=survey)


def without(schema: Schema, names: Iterable[str]) -> Schema:
    """The schema without these columns; nothing else may be made from them."""
    gone = set(names)
    for column in schema.columns:
        if isinstance(column, DerivedColumn) and column.name not in gone and gone & set(column.factors):
            raise SchemaError(f"{column.name!r} is made from a column that groups or weighs rows")
    if not gone:
        return schema
    kept = [column for column in schema.columns if column.name not in gone]
    if not kept:
        raise SchemaError("no column is left to publish", remedy="Declare those that shall be published")
    return Schema(*kept, constant=schema.constant)


def block_schemas(schema: Schema, blocks: Sequence[Sequence[str]]) -> tuple[Schema, ...]:
    """One schema for each list of names; columns that products need must be named with them."""
    if isinstance(blocks, str) or len(blocks) < 2:
        raise SchemaError(
            "blocks are two or more lists of column names", remedy='Write blocks=[["a", "b"], ["a", "c"]]'
        )
    schemas = []
    for names in blocks:
        if isinstance(names, str) or not names:
            raise SchemaError("each block is a list of column names", got=repr(names))
        asked = {schema.column(name).name for name in names}
        if len(asked) < len(names):
            raise SchemaError("a block names a column twice", got=", ".join(map(repr, names)))
        columns = [column for column in schema.columns if column.name in asked]
        schemas.append(Schema(*columns, constant=schema.constant))
    return tuple(schemas)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class BlockTerms:
    """One block: its encoder, its calibrated noise and what it promises by itself."""

    encoder: Encoder
    facts: Facts
    mechanism: Gaussian | MatrixLaplace
    guarantee: Guarantee
    reason: str


def split_budget(
    name: str, guarantee: Guarantee, blocks: Sequence[tuple[Encoder, Facts]], currency: Currency | None
) -> tuple[BlockTerms, ...]:
    """The noise of each block, all together within `guarantee`, with the least Σ d_b·σ_b².

    Proof: proofs/blocks.md#blocks-split.
    """
    if name not in ("auto", "gaussian", "matrix-laplace"):
        raise MechanismError(
            "blocks share a budget with gaussian or matrix-laplace noise only",
            got=repr(name),
            limit="auto, gaussian or matrix-laplace",
        )
    pure = guarantee.pure or name == "matrix-laplace" or (name == "auto" and currency == "epsilon")
    if pure and name == "gaussian":
        raise MechanismError("gaussian noise cannot give a pure guarantee", limit="delta > 0")
    return _pure_blocks(guarantee, blocks) if pure else _gaussian_blocks(guarantee, blocks)


def _gaussian_blocks(guarantee: Guarantee, blocks: Sequence[tuple[Encoder, Facts]]) -> tuple[BlockTerms, ...]:
    """μ_b² ∝ R_b²√d_b, so that Σ μ_b² is the μ² of the whole guarantee.

    Proof: proofs/blocks.md#blocks-gaussian.
    """
    joint = Gaussian.calibrated(guarantee, blocks[0][1])
    costs = [encoder.radius**2 * math.sqrt(facts.width) for encoder, facts in blocks]
    terms = []
    for (encoder, facts), share in zip(blocks, _shares(costs), strict=True):
        # Δ is the same for every block in lattice units, so μ_b = μ·√share is σ_b = σ/√share.
        mechanism = Gaussian(sigma=up(joint.sigma / math.sqrt(share)))
        # What integers and continuous noise differ by, as in the calibration of a single release.
        slack = DISCRETE_SLACK
        own = mechanism.curve(facts).epsilon(guarantee.delta * (1.0 - slack)) + slack
        terms.append(
            BlockTerms(
                encoder=encoder,
                facts=facts,
                mechanism=mechanism,
                guarantee=Guarantee(min(own, guarantee.epsilon), guarantee.delta),
                reason=f"blocks: {share:.1%} of μ², for the least sum of d·σ² over all blocks",
            )
        )
    return tuple(terms)


def _pure_blocks(guarantee: Guarantee, blocks: Sequence[tuple[Encoder, Facts]]) -> tuple[BlockTerms, ...]:
    """ε_b ∝ (d_b(d_b + 1)R_b⁴)^{1/3}, so that Σ ε_b = ε. Proof: proofs/blocks.md#blocks-pure."""
    costs = [(facts.width * (facts.width + 1) * encoder.radius**4) ** (1 / 3) for encoder, facts in blocks]
    terms = []
    for (encoder, facts), share in zip(blocks, _shares(costs), strict=True):
        own = Guarantee(down(guarantee.epsilon * share))
        terms.append(
            BlockTerms(
                encoder=encoder,
                facts=facts,
                mechanism=MatrixLaplace.calibrated(own, facts),
                guarantee=own,
                reason=f"blocks: {share:.1%} of ε, for the least sum of d·σ² over all blocks",
            )
        )
    return tuple(terms)


def _shares(costs: Sequence[float]) -> list[float]:
    """Proportional shares that add up to at most 1 in exact arithmetic.

    Proof: proofs/blocks.md#blocks-split.
    """
    whole = sum(costs)
    shares = [cost / whole for cost in costs]
    excess = sum(map(Fraction, shares)) - 1
    return shares if excess <= 0 else [share * (1.0 - 2.0**-48) for share in shares]


def _rule(unit: str | None, unit_rows: object) -> UnitRule | None:
    if unit is None:
        if unit_rows is not None:
            raise GuaranteeError("unit_rows needs a unit", got=f"unit_rows = {unit_rows!r}, unit = None")
        return None
    if not isinstance(unit, str) or not 1 <= len(unit) <= 1000:
        raise GuaranteeError("unit must be the name of a column", got=repr(unit)[:100])
    if unit_rows is None:
        return UnitRule(counts="units", rows_at_most=UNIT_ROWS_AT_MOST)
    whole = isinstance(unit_rows, Integral) and not isinstance(unit_rows, bool)
    most = int(str(unit_rows)) if whole else 0
    if not 1 <= most <= LARGEST_UNIT_LIMIT:
        raise GuaranteeError(
            "unit_rows must be the most rows that may count for one unit",
            got=repr(unit_rows),
            limit=f"1 ≤ unit_rows ≤ {LARGEST_UNIT_LIMIT:,}",
        )
    return UnitRule(counts="rows", rows_at_most=most)


def _by(schema: Schema, by: str | Categorical | None, adjacency: str) -> Categorical | None:
    if by is None:
        return None
    column = schema.column(by) if isinstance(by, str) else by
    if not isinstance(column, Categorical):
        raise SchemaError(
            "rows are grouped by a column with public levels",
            got=f"a {getattr(column, 'kind', type(column).__name__)} column",
            remedy='Declare categorical("region", [...]) in the schema, or give it as by=',
        )
    if adjacency != "add-remove":
        raise GuaranteeError(
            "groups at the price of one need add/remove neighbours: a replaced row can leave one group and "
            "enter another, and so change two releases",
            got=f"adjacency = {adjacency!r}",
            remedy="Publish with adjacency='add-remove'",
        )
    if len(column.all_levels) > GROUPS_AT_MOST:
        raise SchemaError("too many groups", got=len(column.all_levels), limit=f"{GROUPS_AT_MOST:,}")
    return column


def _weight(schema: Schema, weight: str | Numeric | None) -> SurveyWeight | None:
    if weight is None:
        return None
    column = schema.column(weight) if isinstance(weight, str) else weight
    if not isinstance(column, Numeric) or column.dates or not column.bounded or column.bounds[0] < 0:
        raise SchemaError(
            "survey weights come from a numeric column with public bounds from 0 to the largest weight",
            remedy='Declare numeric("wgt", 0, 10) in the schema, or give it as weight=',
        )
    return SurveyWeight(column=column.name, at_most=column.bounds[1])

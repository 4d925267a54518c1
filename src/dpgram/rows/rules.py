"""Which rows count, for whom and how much: policies, units, groups and survey weights. Public facts only."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, final

from dpgram.document.fields import SurveyWeight, UnitRule
from dpgram.errors import GuaranteeError, SchemaError, shown, whole
from dpgram.lattice import LARGEST_UNIT_LIMIT, UNIT_ROWS_AT_MOST
from dpgram.rows.encoder import Missing
from dpgram.schema import Schema
from dpgram.schema.columns import Categorical, Numeric, SourceColumn, numeric
from dpgram.schema.reading import AS_WRITTEN, Reading

if TYPE_CHECKING:
    from dpgram.rows.participation import LeftOut

GROUPS_AT_MOST: Final = 10_000
"""Each has sums of its own in memory, for every thread."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Who is protected and how rows count: the public rules for the rows of a table.

    `unit` names the column that says whose row it is: the guarantee then covers all rows of a person, who
    counts as one; with `unit_rows=k` every row counts alike, and at most k rows of a person count. `weight`
    names a column of survey weights with public bounds, `by` one of public groups, each of which gets a
    release of its own at the price of one (`publish_each`). `missing` says what happens to a row with a
    missing cell: "drop", or "midpoint" of the column's range. `strict` stops at the first value outside the
    schema. `radius` is a public limit on the length of an encoded row (none: the largest that the schema
    allows, so that nothing is clipped), `expected` a public guess of the number of rows, for warnings,
    forecasts and the choice of a mechanism; with `unit` it is the number of persons, each of whom
    counts as one row (with `unit_rows=k` that of the rows which count, divided by k).

    >>> Rows(unit="patient_id", weight="w").missing
    'drop'
    """

    unit: str | None = None
    unit_rows: int | None = None
    weight: str | Numeric | None = None
    by: str | Categorical | None = None
    missing: Missing = "drop"
    strict: bool = False
    radius: float | None = None
    expected: int | None = None


EVERY_ROW: Final = Rows()
"""Each row is a person of its own and counts once."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """How the rows of a table are read and counted. Its schema may leave bounds and levels open."""

    schema: Schema
    """The columns of the table that count: without those that identify, group or weigh."""
    missing: Missing = "drop"
    strict: bool = False
    unit: str | None = None
    unit_rule: UnitRule | None = None
    by: Categorical | None = None
    weight: SurveyWeight | None = None
    weight_reading: Reading = AS_WRITTEN
    """How the cells of the weights are written."""
    left_out: LeftOut | None = None
    """Persons who do not count in this period of a series: not public, unlike all the rest."""

    @property
    def plain(self) -> bool:
        """Whether every row counts alike and by itself, in one matrix."""
        return self.unit_rule is None and self.by is None and self.weight is None

    @property
    def unit_rows(self) -> int:
        """Most rows of a unit: the largest rank of what one unit contributes."""
        return 1 if self.unit_rule is None else self.unit_rule.rows_at_most

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The levels of `by`; a single None where rows are not split."""
        return (None,) if self.by is None else self.by.all_levels

    @property
    def extra(self) -> tuple[SourceColumn, ...]:
        """What is read beside the schema's columns: the group and the weight, as columns."""
        weight = None
        if self.weight is not None:
            weight = replace(numeric(self.weight.column, 0, self.weight.at_most), reading=self.weight_reading)
        return tuple(column for column in (self.by, weight) if column is not None)

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read of the table, in order: the schema's columns, group, weight, unit."""
        extra = [column.name for column in self.extra]
        named = [*self.schema.source_columns, *extra, *([] if self.unit is None else [self.unit])]
        return tuple(dict.fromkeys(named))


def row_rules(schema: Schema, rows: Rows = EVERY_ROW) -> RowRules:
    """Everything checked; columns that group or weigh leave the schema that is published."""
    unit = rows.unit
    rule = _rule(unit, rows.unit_rows)
    levels, survey = _by(schema, rows.by), _weight(schema, rows.weight)
    helpers = {column for column in (rows.by, rows.weight) if isinstance(column, str)}
    rest = without_columns(schema, helpers)
    extra = [None if levels is None else levels.name, None if survey is None else survey.column]
    named = [name for name in (unit, *extra) if name is not None]
    if len(set(named)) < len(named):
        raise SchemaError("unit, by and weight must be different columns", got=", ".join(map(repr, named)))
    for name in named:
        if name in rest.source_columns:
            raise SchemaError(
                f"column {name!r} identifies, groups or weighs rows: it cannot be published as well",
                remedy="Leave it out of the schema" if name == unit else "Name it, or leave it out",
            )
    return RowRules(
        schema=rest,
        missing=rows.missing,
        strict=rows.strict,
        unit=unit,
        unit_rule=rule,
        by=levels,
        weight=survey,
        weight_reading=AS_WRITTEN if rows.weight is None else _numeric(schema, rows.weight).reading,
    )


def without_columns(schema: Schema, names: Iterable[str]) -> Schema:
    """The schema without these columns; nothing else may be made from them."""
    gone = set(names)
    for column in schema.columns:
        if column.name not in gone and gone & set(column.factors):
            raise SchemaError(f"{column.name!r} is made from a column that groups or weighs rows")
    if not gone:
        return schema
    kept = [column for column in schema.columns if column.name not in gone]
    if not kept:
        raise SchemaError("no column is left to publish", remedy="Declare the columns to publish")
    return schema.with_columns(kept)


def _rule(unit: str | None, unit_rows: object) -> UnitRule | None:
    if unit is None:
        if unit_rows is not None:
            raise GuaranteeError(
                "rows of a unit are limited, and no unit is named",
                got=f"unit_rows={shown(unit_rows)}",
                remedy="Give unit='id', the column that identifies a person, or leave unit_rows=… out",
            )
        return None
    if not isinstance(unit, str) or not 1 <= len(unit) <= 1000:
        raise GuaranteeError("unit must be the name of a column", got=shown(unit))
    if unit_rows is None:
        return UnitRule(counts="units", rows_at_most=UNIT_ROWS_AT_MOST)
    most = whole(unit_rows)
    if most is None or not 1 <= most <= LARGEST_UNIT_LIMIT:
        raise GuaranteeError(
            "unit_rows must be the most rows that may count for one unit",
            got=shown(unit_rows),
            limit=f"1 ≤ unit_rows ≤ {LARGEST_UNIT_LIMIT:,}",
        )
    return UnitRule(counts="rows", rows_at_most=most)


def _by(schema: Schema, by: str | Categorical | None) -> Categorical | None:
    if by is None:
        return None
    column = schema.column(by) if isinstance(by, str) else by
    if not isinstance(column, Categorical) or not column.listed:
        raise SchemaError(
            "rows are grouped by a column with public levels",
            got=_named(by, column),
            remedy='Declare categorical("region", [...]) in the schema, or give it as Rows(by=…)',
        )
    if len(column.all_levels) > GROUPS_AT_MOST:
        raise SchemaError("too many groups", got=len(column.all_levels), limit=f"{GROUPS_AT_MOST:,}")
    return column


def _named(by: object, column: object) -> str:
    kind = f"a {getattr(column, 'kind', type(column).__name__)} column"
    return f"{by!r}, {kind}" if isinstance(by, str) else kind


def _weight(schema: Schema, weight: str | Numeric | None) -> SurveyWeight | None:
    if weight is None:
        return None
    column = _numeric(schema, weight)
    if column.dates or not column.bounded or column.bounds[0] < 0:
        raise _not_a_weight()
    return SurveyWeight(column=column.name, at_most=column.bounds[1])


def _numeric(schema: Schema, weight: str | Numeric) -> Numeric:
    column = schema.column(weight) if isinstance(weight, str) else weight
    if not isinstance(column, Numeric):
        raise _not_a_weight()
    return column


def _not_a_weight() -> SchemaError:
    return SchemaError(
        "survey weights come from a numeric column with public bounds from 0 to the largest weight",
        remedy='Declare numeric("wgt", 0, 10) in the schema, or give it as Rows(weight=…)',
    )

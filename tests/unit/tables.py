"""Hypothesis strategies for schemas with tables that fit them, adversarial floats included."""

from __future__ import annotations

import math
from dataclasses import dataclass

import pyarrow as pa
from hypothesis import strategies as st

from dpgram.schema import (
    Boolean,
    Categorical,
    Column,
    Numeric,
    Ordinal,
    Schema,
    boolean,
    categorical,
    legendre,
    numeric,
    ordinal,
    product,
)

NAMES = ("a", "b", "c", "d", "e")
LEVELS = ("x", "y", "z")
WEIGHTS = st.sampled_from([1.0, 0.5, 3.0])


@dataclass(frozen=True)
class Table:
    schema: Schema
    rows: list[dict[str, object]]

    def column(self, name: str) -> list[object]:
        return [row[name] for row in self.rows]

    def batch(self) -> pa.RecordBatch:
        return pa.record_batch(
            [pa.array(self.column(c.name), arrow_type(c)) for c in plain_columns(self.schema)],
            names=[c.name for c in plain_columns(self.schema)],
        )


def plain_columns(schema: Schema) -> list[Column]:
    return [schema.column(name) for name in schema.source_columns]


def arrow_type(column: Column) -> pa.DataType:
    return {Numeric: pa.float64(), Boolean: pa.bool_(), Categorical: pa.string(), Ordinal: pa.string()}[
        type(column)
    ]


@st.composite
def declarations(draw: st.DrawFn, name: str) -> Column:
    kind = draw(st.sampled_from(["numeric", "numeric", "categorical", "ordinal", "boolean"]))
    weight = draw(WEIGHTS)
    if kind == "numeric":
        low, high = draw(
            st.sampled_from(
                [(-1.0, 1.0), (0.0, 1.0), (18, 90), (-1e300, 1e300), (1e-270, 1e-269), (0, 5e-279)]
            )
        )
        return numeric(name, low, high, weight=weight)
    if kind == "categorical":
        levels = LEVELS[: draw(st.integers(1, 3))]
        return categorical(name, levels, draw(st.sampled_from([None, "else", levels[0]])), weight=weight)
    if kind == "ordinal":
        return ordinal(name, LEVELS[: draw(st.integers(2, 3))], weight=weight)
    return boolean(name, weight=weight)


@st.composite
def schemas(draw: st.DrawFn) -> Schema:
    columns = [draw(declarations(name)) for name in NAMES[: draw(st.integers(1, 5))]]
    numbers = [column.name for column in columns if isinstance(column, Numeric | Ordinal)]
    factors = numbers + [column.name for column in columns if isinstance(column, Boolean)]
    if numbers and draw(st.booleans()):
        columns.append(legendre(numbers[0], draw(st.integers(2, 6)), weight=draw(WEIGHTS)))
    if factors and draw(st.booleans()):
        columns.append(product(factors[0], factors[-1], weight=draw(WEIGHTS)))
    groups = [column.name for column in columns if isinstance(column, Categorical)]
    if groups and draw(st.booleans()):
        others = [name for name in (*factors, *groups[1:]) if name != groups[0]]
        if others:
            pair = draw(st.permutations([groups[0], draw(st.sampled_from(others))]))
            columns.append(product(*pair, weight=draw(WEIGHTS)))
    return Schema(*columns, constant=draw(st.booleans()))


def cells(column: Column) -> st.SearchStrategy[object]:
    """Values of every sort: inside, outside, a step of the floats from a bound, missing, unknown."""
    if isinstance(column, Numeric):
        low, high = column.bounds
        edges = [low, high, *(math.nextafter(b, s) for b in (low, high) for s in (-math.inf, math.inf))]
        odd = [0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1.7e308, math.nan, math.inf, -math.inf, None]
        return st.one_of(
            st.floats(low, high), st.sampled_from(edges), st.sampled_from(odd), st.floats(width=64)
        )
    if isinstance(column, Boolean):
        return st.sampled_from([True, False, True, False, None])
    if isinstance(column, Ordinal):
        return st.sampled_from([*column.levels, *column.levels, "unheard of", "", None])
    assert isinstance(column, Categorical)
    return st.sampled_from([*column.all_levels, *column.all_levels, "unheard of", "", None])


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 12) -> Table:
    schema = draw(schemas())
    row = st.fixed_dictionaries({column.name: cells(column) for column in plain_columns(schema)})
    return Table(schema, draw(st.lists(row, max_size=max_rows)))


CLIPS = st.sampled_from([None, None, 1e-9, 0.25, 1.0, 1.5, 2.0, 10.0])

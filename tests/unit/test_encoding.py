"""Encoding: the integer bound on every row, the slow reference, policies, strictness, privacy units."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.core.lattice import settle
from dpgram.core.units import PolicyCounts
from dpgram.errors import DataError, DpgramError, SchemaError, SourceError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

from . import slow_encoder
from .tables import CLIPS, Table, tables

POLICIES = st.sampled_from(["drop", "midpoint"])


def squared_norms(rows: np.ndarray) -> list[int]:
    """Exactly, in Python integers; fails where a cell is not an integer."""
    cells = [[int(cell) for cell in row] for row in rows]
    assert all(int(cell) == cell for row in rows for cell in row)
    return [sum(cell * cell for cell in row) for row in cells]


@settings(deadline=None, max_examples=150)
@given(tables(), CLIPS, POLICIES)
def test_every_row_is_an_integer_vector_within_the_bound(
    table: Table, clip: float | None, missing: str
) -> None:
    encoded = Encoder(table.schema, clip=clip, missing=missing).encode(table.batch())
    assert all(norm <= ROW_NORM_SQUARED for norm in squared_norms(encoded.rows))
    assert encoded.rows.flags.c_contiguous
    assert encoded.rows.shape == (encoded.counts.rows_used, table.schema.width)


@settings(deadline=None, max_examples=150)
@given(tables(), CLIPS, POLICIES)
def test_equals_the_slow_reference(table: Table, clip: float | None, missing: str) -> None:
    encoded = Encoder(table.schema, clip=clip, missing=missing).encode(table.batch())
    expected = [slow_encoder.lattice_row(row, table.schema, clip=clip, missing=missing) for row in table.rows]
    assert encoded.rows.tolist() == [row for row in expected if row is not None]


@settings(deadline=None, max_examples=100)
@given(tables(), CLIPS, st.data())
def test_rows_of_a_unit_weigh_no_more_than_one_row(
    table: Table, clip: float | None, data: st.DataObject
) -> None:
    many = st.integers(1, 7) | st.sampled_from([10**3, 2**30, 2**30 + 1, 2**40])
    units = np.array(data.draw(st.lists(many, min_size=len(table.rows), max_size=len(table.rows))), np.int64)
    encoder = Encoder(table.schema, clip=clip, missing="midpoint")
    encoded = encoder.encode(table.batch(), unit_rows=units)
    for norm, size in zip(squared_norms(encoded.rows), units.tolist(), strict=True):
        assert norm <= ROW_NORM_SQUARED // size
    expected = [
        slow_encoder.lattice_row(row, table.schema, clip=clip, missing="midpoint", unit_rows=size)
        for row, size in zip(table.rows, units.tolist(), strict=True)
    ]
    assert encoded.rows.tolist() == expected


def test_the_per_row_bound_alone_would_not_bound_a_unit() -> None:
    """Three rows of norm 2^15/√3, each rounded up: together above 2^30 unless each keeps to ⌊2^30/3⌋."""
    schema = Schema(numeric("a", -1, 1), constant=False)
    batch = pa.record_batch({"a": [1.0, 1.0, 1.0]})
    naive = 3 * round(ROW_NORM / math.sqrt(3)) ** 2
    assert naive > ROW_NORM_SQUARED
    encoded = Encoder(schema).encode(batch, unit_rows=np.array([3, 3, 3]))
    assert sum(squared_norms(encoded.rows)) <= ROW_NORM_SQUARED


def test_rounding_errors_of_the_bounds_cannot_break_the_bound() -> None:
    """Bounds so close that their middle is rounded give |z| = 1 + 10⁻⁷, which truncation would let pass."""
    low, high = 565185129088056.2, 565185130276354.4
    column = numeric("a", low, high, weight=2**15)
    assert (high - column.centre) / column.half_width > 1 + 1e-8
    schema = Schema(column, numeric("b", low, high), constant=False)
    encoded = Encoder(schema).encode(pa.record_batch({"a": [high], "b": [high]}))
    assert squared_norms(encoded.rows) == [(ROW_NORM - 1) ** 2]  # clipped, and truncated


@pytest.mark.parametrize("units", [np.array([1]), np.array([1, 0]), np.array([[1, 1]])])
def test_unit_rows_must_fit(units: np.ndarray) -> None:
    with pytest.raises(DpgramError, match="unit_rows"):
        Encoder(Schema(boolean("a"))).encode(pa.record_batch({"a": [True, False]}), unit_rows=units)


@settings(deadline=None, max_examples=100)
@given(tables(max_rows=6))
def test_rounding_moves_no_cell_further_than_one_step(table: Table) -> None:
    """Against the definition in exact terms, polynomials by their explicit sums."""
    schema = table.schema
    encoder = Encoder(schema, missing="midpoint")
    encoded = encoder.encode(table.batch())
    for row, q in zip(table.rows, encoded.rows, strict=True):
        middle = {column.name: column for column in schema.columns}
        for name, value in row.items():
            if name in middle and middle[name].kind == "numeric":
                index = schema.indices(name)[0]
                z = _definition(value, middle[name].low, middle[name].high)
                assert abs(q[index] - z * middle[name].weight * ROW_NORM / encoder.radius) <= 1.0 + 1e-6
                for column in schema.columns:
                    if column.kind == "legendre" and column.column == name:
                        exact = np.polynomial.legendre.Legendre.basis(column.degree)(z)
                        target = exact * column.weight * ROW_NORM / encoder.radius
                        assert abs(q[schema.indices(column.name)[0]] - target) <= 1.0 + 1e-6


def _definition(value: object, low: float, high: float) -> float:
    if value is None or not math.isfinite(value):
        return 0.0
    return min(max((value - low / 2 - high / 2) / (high / 2 - low / 2), -1.0), 1.0)


def test_the_radius_is_the_largest_norm_unless_clipped() -> None:
    schema = Schema(numeric("a", 0, 1), categorical("b", ["x", "y"]), boolean("c", weight=2))
    assert Encoder(schema).radius == math.sqrt(1 + 1 + 1 + 4)
    assert Encoder(schema, clip=2).radius == 2.0
    assert Encoder(schema, clip=100).radius == Encoder(schema).radius


def test_clipping_scales_the_whole_row() -> None:
    schema = Schema(numeric("a", -1, 1), numeric("b", -1, 1))
    batch = pa.record_batch({"a": [1.0, 0.0, 0.1], "b": [0.5, 0.0, 0.1]})
    free, clipped = Encoder(schema).encode(batch), Encoder(schema, clip=1.0).encode(batch)
    assert clipped.counts.rows_clipped == 2
    assert free.counts.rows_clipped == 0
    ratio = clipped.rows[0] / free.rows[0]
    np.testing.assert_allclose(ratio, ratio[0], rtol=1e-3)
    np.testing.assert_allclose(np.linalg.norm(clipped.rows, axis=1), [2**15, 2**15, 2**15], atol=3)


@pytest.mark.parametrize("clip", [0, -1, math.nan, math.inf, 1e-10, True, "2"])
def test_bad_radius(clip: object) -> None:
    with pytest.raises(SchemaError, match="clip radius"):
        Encoder(Schema(boolean("a")), clip=clip)


def test_bad_policy_and_open_bounds() -> None:
    with pytest.raises(
        SchemaError, match="missing values is unknown; got 'ignore'; limit: 'drop' or 'midpoint'"
    ):
        Encoder(Schema(boolean("a")), missing="ignore")
    with pytest.raises(SchemaError, match="'income' has no bounds"):
        Encoder(Schema(numeric("income")))
    with pytest.raises(SchemaError, match="strict must be True or False; got 'no'"):
        Encoder(Schema(boolean("a")), strict="no")


SCHEMA = Schema(numeric("age", 18, 90), boolean("insured"), categorical("smoker", ["no", "yes"]))
BATCH = pa.record_batch(
    {
        "age": [18.0, 54.0, None, 120.0, math.inf, 60.0],
        "insured": [True, False, True, True, False, None],
        "smoker": ["no", "yes", "no", "maybe", None, "yes"],
    }
)


def test_rows_with_missing_cells_are_dropped() -> None:
    encoded = Encoder(SCHEMA).encode(BATCH)
    step = Encoder(SCHEMA).encode(BATCH.slice(0, 1)).rows[0, 0]
    assert encoded.rows.tolist() == [[step, -step, step, step, 0], [step, 0, -step, 0, step]]
    assert encoded.counts == PolicyCounts(
        rows_read=6, rows_used=2, rows_dropped=4, cells_clamped=1, cells_missing=4, cells_unknown=1
    )


def test_missing_cells_at_the_middle() -> None:
    encoded = Encoder(SCHEMA, missing="midpoint").encode(BATCH)
    step, half = ROW_NORM / 2, ROW_NORM / 4
    assert encoded.rows.tolist() == [
        [step, -step, step, step, 0],
        [step, 0, -step, 0, step],
        [step, 0, step, step, 0],
        [step, step, step, half, half],
        [step, 0, -step, half, half],
        [step, pytest.approx(step / 6, abs=0.5), 0, 0, step],
    ]
    assert encoded.counts.rows_used == encoded.counts.rows_read == 6


def test_a_whole_group_sums_to_the_constant() -> None:
    """Missing or not, the levels of a row add up to its constant: the columns stay exactly collinear."""
    schema = Schema(categorical("a", ["x", "y"]), constant=True)
    rows = Encoder(schema, missing="midpoint").encode(pa.record_batch({"a": ["x", None, "?"]})).rows
    assert (rows[:, 1] + rows[:, 2] == rows[:, 0]).all()


def test_unknown_levels_go_to_other() -> None:
    schema = Schema(categorical("a", ["x"], other="rest"), constant=False)
    encoded = Encoder(schema).encode(pa.record_batch({"a": ["x", "q", "rest", None]}))
    assert (encoded.rows > 0).tolist() == [[True, False], [False, True], [False, True]]
    assert encoded.counts.cells_unknown == 0
    assert encoded.counts.cells_missing == 1


@pytest.mark.parametrize(
    ("column", "values", "what"),
    [
        ("age", [20.0, None, 20.0], "missing"),
        ("age", [20.0, math.nan, 20.0], "missing"),
        ("age", [20.0, -math.inf, 20.0], "missing"),
        ("age", [18.0, math.nextafter(18, 0), 90.0], "outside the declared bounds"),
        ("age", [18.0, math.nextafter(90, 100), 90.0], "outside the declared bounds"),
        ("insured", [True, None, False], "missing"),
        ("insured", [0, 7, 1], "none of the declared"),
        ("smoker", ["no", None, "yes"], "missing"),
        ("smoker", ["no", "perhaps", "yes"], "none of the declared"),
    ],
)
def test_strict_mode_names_the_row_and_column_but_no_value(column: str, values: list, what: str) -> None:
    cells = {"age": [20.0] * 3, "insured": [True] * 3, "smoker": ["no"] * 3, column: values}
    batch = pa.record_batch(cells)
    with pytest.raises(DataError, match=what) as raised:
        Encoder(SCHEMA, strict=True).encode(batch, first_row=1000)
    assert raised.value.column == column
    assert raised.value.row == 1001
    assert not any(text in str(raised.value) for text in ("perhaps", "7", "17.9", "90.0"))
    assert Encoder(SCHEMA).encode(batch).counts.rows_read == 3


def test_strict_mode_accepts_the_bounds_themselves() -> None:
    batch = pa.record_batch({"age": [18.0, 90.0], "insured": [True, False], "smoker": ["no", "yes"]})
    assert Encoder(SCHEMA, strict=True).encode(batch).counts.rows_used == 2


def test_strict_mode_finds_the_first_row_in_later_blocks() -> None:
    ages = np.full(9000, 20.0)
    ages[[8500, 8600]] = 1000.0
    with pytest.raises(DataError) as raised:
        Encoder(Schema(numeric("age", 18, 90)), strict=True).encode(pa.record_batch({"age": ages}))
    assert raised.value.row == 8500


def test_absent_and_repeated_columns() -> None:
    with pytest.raises(SourceError, match="no column 'insured'"):
        Encoder(SCHEMA).encode(pa.record_batch({"age": [1.0], "smoker": ["no"]}))
    twice = pa.RecordBatch.from_arrays([pa.array([True])] * 2, names=["a", "a"])
    with pytest.raises(SourceError, match="several of that name"):
        Encoder(Schema(boolean("a"))).encode(twice)


def test_empty_batch() -> None:
    encoded = Encoder(SCHEMA).encode(BATCH.slice(0, 0))
    assert encoded.rows.shape == (0, 5)
    assert encoded.counts == PolicyCounts()


def test_counts_add_up() -> None:
    encoder = Encoder(SCHEMA, clip=1.2)
    parts = [encoder.encode(BATCH.slice(start, 2)).counts for start in (0, 2, 4)]
    assert sum(parts, PolicyCounts()) == encoder.encode(BATCH).counts


def test_long_batches_with_scattered_missing_cells() -> None:
    """Rows are dropped inside and across chunks, in order."""
    rng = np.random.default_rng(1)
    values = rng.uniform(-1, 1, (20_011, 3))
    values[rng.random(values.shape) < 0.01] = np.nan
    values[4_000:8_000] = np.nan
    schema = Schema(*(numeric(name, -1, 1) for name in "abc"))
    batch = pa.RecordBatch.from_arrays([pa.array(line) for line in values.T], names=list("abc"))
    encoded = Encoder(schema).encode(batch)
    kept = values[np.isfinite(values).all(axis=1)]
    assert len(kept) == len(encoded.rows)
    np.testing.assert_array_equal(encoded.rows[:, 1:], np.rint(np.rint(kept * 2.0**26) / 2.0**12))


def test_wide_schema() -> None:
    width = 700
    rng = np.random.default_rng(2)
    values = rng.uniform(-1, 1, (300, width))
    names = [f"x{j}" for j in range(width)]
    schema = Schema(*(numeric(name, -1, 1) for name in names), product("x0", "x1"), legendre("x2", 2))
    batch = pa.RecordBatch.from_arrays([pa.array(line) for line in values.T.copy()], names=names)
    encoded = Encoder(schema).encode(batch)
    unit = ROW_NORM / Encoder(schema).radius
    np.testing.assert_allclose(encoded.rows[:, 1:-2], values * unit, atol=0.5001)
    np.testing.assert_allclose(encoded.rows[:, -2], values[:, 0] * values[:, 1] * unit, atol=0.5001)


def rounded(lines: np.ndarray, limit: int = ROW_NORM_SQUARED) -> np.ndarray:
    held = np.array(lines, dtype=np.float64)
    settle(held, limit)
    return held


def slowly_settled(row: list[float], limit: int) -> list[int]:
    """The rule in words: round; where that is too long truncate."""
    cells = [int(np.rint(value)) for value in row]
    if sum(cell * cell for cell in cells) > limit:
        cells = [math.trunc(value) for value in row]
    assert sum(cell * cell for cell in cells) <= limit
    return cells


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.lists(st.floats(-1.0, 1.0), min_size=3, max_size=3), min_size=1, max_size=8),
    st.integers(1, ROW_NORM_SQUARED),
)
def test_lines_of_other_sums_are_rounded_by_the_same_rule(rows: list[list[float]], limit: int) -> None:
    table = np.array(rows)
    longest = np.maximum(np.sqrt((table**2).sum(axis=1, keepdims=True)), 1e-9)
    table = table / longest * math.sqrt(limit) * (1 + 1e-13)  # a little too long, as after rounding errors
    found = rounded(table.T, limit=limit).T
    assert found.tolist() == [slowly_settled(row, limit) for row in table.tolist()]
    assert max(squared_norms(found)) <= limit


def test_the_encoder_rounds_by_that_rule() -> None:
    """Whole numbers before the clip, scaled and rounded by themselves, are the encoded rows."""
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(5)), constant=False)
    table = np.random.default_rng(1).uniform(-1, 1, (2345, 5))
    table[::3] = np.sign(table[::3])  # of full length, so that rounding passes the limit
    encoded = Encoder(schema).encode(pa.table(dict(zip(schema.names, table.T, strict=True))).to_batches()[0])
    step = ROW_NORM / Encoder(schema).radius
    assert np.array_equal(rounded(np.rint(table.T * 2.0**26) * (step / 2.0**26)), encoded.rows.T)


def test_a_row_is_settled_alike_wherever_it_stands() -> None:
    lines = np.random.default_rng(2).normal(0, 0.6, (3, 2100)) * ROW_NORM
    lines *= np.minimum(1.0, ROW_NORM / np.sqrt((lines**2).sum(axis=0)))
    whole = rounded(lines)
    for start, stop in ((0, 1), (1, 1000), (999, 1001), (1500, 2100)):
        assert np.array_equal(rounded(lines[:, start:stop]), whole[:, start:stop])
    assert rounded(lines[:, :0]).shape == (3, 0)

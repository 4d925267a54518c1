"""Rows in other coordinates: whole numbers, each row's bits its own, in any batch."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpgram as dg
from dpgram.core.sums import NODES, STEPS, count_levels, count_nodes, length_bins
from dpgram.document.coordinates import LARGEST, Coordinates
from dpgram.document.reach import BEYOND, CLIP_SQUARES, REACH_SQUARES, WITHIN
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows import row_map
from dpgram.rows.encoder import Encoder


def wide_schema(width: int) -> dg.Schema:
    return dg.Schema(*(dg.numeric(f"x{i}", -3, 5, weight=1.0 + 0.5 * (i % 2)) for i in range(width)))


def mixed_schema() -> dg.Schema:
    return dg.Schema(
        dg.numeric("a", 0, 10),
        dg.numeric("b", -1, 1),
        dg.boolean("c"),
        dg.categorical("d", ["x", "y", "z"]),
        dg.product("a", "b"),
        dg.legendre("a", 2),
    )


def mixed_table(rows: int, seed: int = 0) -> pa.RecordBatch:
    generator = np.random.default_rng(seed)
    a = generator.normal(5, 4, rows)
    a[::97] = np.nan
    return pa.record_batch(
        {
            "a": a,
            "b": generator.uniform(-1.2, 1.2, rows),
            "c": generator.random(rows) < 0.3,
            "d": np.array(["x", "y", "z", "w"])[generator.integers(0, 4, rows)],
        }
    )


def random_coordinates(width: int, seed: int = 1, size: float = 3.0) -> Coordinates:
    generator = np.random.default_rng(seed)
    lower = np.tril(generator.normal(0, size, (width, width)))
    lower[np.diag_indices(width)] = np.abs(lower[np.diag_indices(width)]) + 0.1
    return Coordinates.nearest(lower)


def encoder(schema: dg.Schema, coordinates: Coordinates, radius: float, missing: str = "drop") -> Encoder:
    return Encoder(schema, clip=radius, coordinates=coordinates, missing=missing)


@pytest.mark.parametrize("missing", ["drop", "midpoint"])
def test_lattice_rows_are_those_of_exact_arithmetic(missing: str) -> None:
    """q is the rounding of min(1, R/|u|)·u·2^15/R, u = T·v in rationals, up to the last digit of a float."""
    schema = mixed_schema()
    coordinates, radius = random_coordinates(schema.width), 12.0
    batch = mixed_table(300)
    q = encoder(schema, coordinates, radius, missing).encode(batch).rows
    plain = Encoder(schema, clip=None, missing=missing)  # the same rows on a lattice of its own
    v = plain.encode(batch).rows * (plain.radius / ROW_NORM)
    assert len(q) == len(v) > 100
    T = [
        [Fraction(int(cell), 1) / Fraction(2) ** coordinates.shift for cell in row]
        for row in coordinates.integers
    ]
    exact = np.array(
        [[float(sum(t * Fraction(x) for t, x in zip(row, line, strict=True))) for row in T] for line in v]
    )
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    wanted = exact * np.minimum(1.0, radius / lengths) * (ROW_NORM / radius)
    # Plain lattice rows are themselves rounded to R/2^15, which T enlarges.
    slack = 1.0 + plain.radius * np.abs(coordinates.matrix).sum(axis=1).max() / radius
    assert np.abs(q - wanted).max() <= slack
    assert (lengths > radius).any()
    assert (lengths < radius).any()


def test_no_row_is_longer_than_the_lattice_allows() -> None:
    schema = wide_schema(50)
    rows = np.random.default_rng(3).uniform(-9, 9, (5000, 50))
    for radius in (0.3, 7.0, 500.0):
        q = (
            encoder(schema, random_coordinates(51), radius)
            .encode(
                pa.RecordBatch.from_arrays(
                    [pa.array(line) for line in rows.T], names=[f"x{i}" for i in range(50)]
                )
            )
            .rows
        )
        squares = (q.astype(np.int64) ** 2).sum(axis=1)
        assert np.array_equal(q, np.rint(q))
        assert squares.max() <= ROW_NORM_SQUARED
        assert squares.max() > 0.9 * ROW_NORM_SQUARED or radius == 500.0


def test_removing_a_row_leaves_the_bits_of_all_others() -> None:
    """With a product of floats this failed at fifty columns for a tenth of all batch sizes."""
    schema, width = wide_schema(50), 51
    one = encoder(schema, random_coordinates(width), 9.0)
    rows = np.random.default_rng(4).uniform(-3, 5, (200, 50))
    names = [f"x{i}" for i in range(50)]

    def encoded(chosen: np.ndarray) -> np.ndarray:
        return one.encode(
            pa.RecordBatch.from_arrays([pa.array(line) for line in rows[chosen].T], names=names)
        ).rows

    whole = encoded(np.arange(200))
    for size in range(1, 200):
        assert np.array_equal(encoded(np.arange(size)), whole[:size])
    without = np.delete(np.arange(200), 117)
    assert np.array_equal(encoded(without), whole[without])


def test_units_and_weights_scale_rows_in_these_coordinates_too() -> None:
    schema = wide_schema(4)
    one = encoder(schema, random_coordinates(5), 3.0)
    rows = np.random.default_rng(5).uniform(-3, 5, (60, 4))
    units = np.full(60, 4)
    weights = np.random.default_rng(6).uniform(0, 1, 60)
    plain = np.concatenate([c.lines[:5].T.copy() for c in one.batch_encoder().encode_array(rows.copy())])
    scaled = np.concatenate(
        [
            c.lines[:5].T.copy()
            for c in one.batch_encoder().encode_array(rows.copy(), unit_rows=units, weights=weights)
        ]
    )
    assert np.abs(scaled - plain * (0.5 * weights)[:, None]).max() <= 1.0
    assert ((scaled.astype(np.int64) ** 2).sum(axis=1) <= ROW_NORM_SQUARED // 4).all()


def test_lengths_are_those_before_the_clip() -> None:
    schema = wide_schema(3)
    coordinates = random_coordinates(4)
    one = encoder(schema, coordinates, 2.0)
    rows = np.random.default_rng(7).uniform(-3, 5, (500, 3))
    rows[::7] = np.nan
    (chunk,) = list(one.batch_encoder().encode_array(rows.copy()))
    kept = rows[np.isfinite(rows).all(axis=1)]
    weights = np.array([1.0, 1.0, 1.5, 1.0])
    v = np.column_stack([np.ones(len(kept)), (kept - 1.0) / 4.0]) * weights
    u = v @ coordinates.matrix.T
    assert chunk.lengths is not None
    assert np.allclose(chunk.lengths, (u**2).sum(axis=1) / 4.0, rtol=1e-5)


def test_the_grid_holds_the_matrix_to_thirty_digits() -> None:
    generator = np.random.default_rng(8)
    for size in (1e-6, 1.0, 1e6):
        lower = np.tril(generator.normal(0, size, (20, 20)))
        lower[np.diag_indices(20)] = np.abs(lower[np.diag_indices(20)]) + size
        found = Coordinates.nearest(lower)
        assert np.abs(found.integers).sum(axis=1).max() <= LARGEST
        assert np.abs(found.matrix - lower).max() <= 2.0**-30 * np.abs(lower).sum(axis=1).max()
        assert np.allclose(found.inverse @ found.matrix, np.eye(20), atol=1e-9)


@pytest.mark.parametrize(
    "cells",
    [(1, 2), (1, 0, 0), (-1,), (LARGEST + 1,), (1, LARGEST, 1)],
    ids=["no triangle", "zero", "negative", "cell", "row"],
)
def test_other_grids_are_refused(cells: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="coordinates"):
        Coordinates(shift=0, cells=cells)


def test_whole_numbers_at_their_largest_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """Row sums of 2^32 and cells of 2^20: every partial sum is below 2^53, so the product is exact."""
    monkeypatch.setattr(row_map, "FINE_BITS", -99)  # T as it is, of no line in finer steps
    width = 40
    generator = np.random.default_rng(10)
    lower = np.tril(generator.integers(-(2**27), 2**27, (width, width)).astype(np.float64))
    lower[-1] = np.append(np.full(width - 1, 2.0**32 // width), 2.0**32 - (width - 1) * (2**32 // width))
    lower[np.diag_indices(width)] = np.abs(lower[np.diag_indices(width)]) + 1.0
    lower[-1, -1] -= 1.0
    coordinates = Coordinates(shift=0, cells=tuple(int(cell) for cell in lower[np.tril_indices(width)]))
    assert np.abs(coordinates.integers).sum(axis=1).max() == LARGEST
    schema = dg.Schema(*(dg.numeric(f"x{i}", -1, 1) for i in range(width)), constant=False)
    rows = generator.choice([-1.0, 1.0, 0.123456789], (97, width))
    rows[:5] = 1.0
    one = encoder(schema, coordinates, 1e3)
    working = one.batch_encoder()
    (chunk,) = list(working.encode_array(rows.copy()))
    cells = [[round(x * 2**20) for x in row] for row in rows.tolist()]
    integers = coordinates.integers.astype(np.int64).tolist()
    exact = [[sum(map(int.__mul__, line, row)) for line in integers] for row in cells]
    assert max(abs(cell) for row in exact for cell in row) == 2**52
    scale = Fraction(2) ** 15 / (Fraction(1e3) * 2**20)
    lengths = [float(sum(cell * cell for cell in row) * scale**2 / 2**30) for row in exact]
    assert chunk.lengths is not None
    # Squares are added up in floats: a few units in the last place, where a lost bit of u would be as much.
    assert np.allclose(chunk.lengths, lengths, rtol=1e-14)
    assert np.array_equal(working._work._u[:, :97].T, np.array(exact, np.float64))


def test_standardised_rows_are_their_own() -> None:
    """Where only the constant is added to a column, rows are made elementwise: the same bits in any batch."""
    schema = dg.Schema(dg.numeric("a", 0, 10), dg.numeric("b", -1e6, 1e-3), dg.boolean("c"))
    lower = np.diag([1.0, 7.3, 0.21, 3.0])
    lower[1:, 0] = (-2.2, 0.19, 1.1)
    one = encoder(schema, Coordinates.nearest(lower), 3.0)
    working = one.batch_encoder()
    assert working._work.rowmap.transform is None
    generator = np.random.default_rng(11)
    rows = np.column_stack(
        [generator.normal(5, 4, 301), -(10.0 ** generator.uniform(-4, 7, 301)), generator.integers(0, 2, 301)]
    )
    whole = np.concatenate([c.lines[:4].T.copy() for c in working.encode_array(rows.copy())])
    assert ((whole.astype(np.int64) ** 2).sum(axis=1) <= ROW_NORM_SQUARED).all()
    for first, last in ((0, 1), (0, 7), (13, 200), (300, 301)):
        part = [c.lines[:4].T.copy() for c in one.batch_encoder().encode_array(rows[first:last].copy())]
        assert np.array_equal(np.concatenate(part), whole[first:last])
    z = np.clip(rows[:, :2], [0.0, -1e6], [10.0, 1e-3])
    z = (z - [5.0, (1e-3 - 1e6) / 2]) / [5.0, (1e6 + 1e-3) / 2]
    u = np.column_stack([np.ones(301), z, 2.0 * rows[:, 2] - 1.0]) @ one.coordinates.matrix.T
    u *= np.minimum(1.0, 3.0 / np.linalg.norm(u, axis=1, keepdims=True)) * (ROW_NORM / 3.0)
    # To the nearest integers, or towards zero where these would be too long.
    assert np.abs(whole - u).max() <= 1.0 + 1e-6
    assert np.median(np.abs(whole - u)) < 0.5


def test_whatever_a_cell_holds_it_counts_once() -> None:
    """Whatever the bounds that a schema may have, with and without weights: as in Python's integers."""
    generator = np.random.default_rng(12)
    ends = [(0.0, 1.0), (-8e307, 8e307), (1.0, 1.0 + 2e-9), (0.0, 2e-300)]
    odd = [0.0, 1.0, 0.5, 1 / 3, -1.0, 2.0, 1e-300, 1e308, -1e308, 1.7e308, np.nan, np.inf, -np.inf]
    for low, high in ends:
        x = np.concatenate(
            [
                generator.choice(odd, 700),
                low + generator.uniform(0, 1, 700) * (high - low),
                [np.nextafter(high, np.inf), np.nextafter(low, -np.inf)],
                low + np.arange(17) / 16 * (high - low),
            ]
        )
        for shares in (None, generator.integers(0, ROW_NORM_SQUARED + 1, len(x)).astype(float)):
            cells = np.zeros(NODES + 4, np.int64)
            count_nodes(cells, x, shares, low, high)
            assert cells.tolist() == slowly_counted(x, shares, low, high)
            assert (cells >= 0).all()
    levels = np.concatenate([generator.choice(odd, 300), [0.0, 1.0, 2.0, 3.0, -1.0]])
    cells = np.zeros(3 + 4, np.int64)
    count_levels(cells, levels, None, 3)
    known = [int(np.sum(levels == level)) for level in range(3)]
    missing = int(np.isnan(levels).sum())
    lost = [missing, len(levels) - missing - sum(known), 0, 0]
    assert cells.tolist() == [count * ROW_NORM_SQUARED for count in (*known, *lost)]


def slowly_counted(x: np.ndarray, shares: np.ndarray | None, low: float, high: float) -> list[int]:
    cells = [0] * (NODES + 4)
    every = [float(ROW_NORM_SQUARED)] * len(x) if shares is None else shares.tolist()
    for value, share in zip(x.tolist(), every, strict=True):
        if np.isnan(value):
            cells[NODES] += int(share)
        elif np.isinf(value):
            cells[NODES + 1] += int(share)
        elif not low <= value <= high:
            cells[NODES + (2 if value < low else 3)] += int(share)
        else:
            position = min((value * 0.5 - low * 0.5) * (STEPS / (high * 0.5 - low * 0.5)), float(STEPS))
            first = min(int(position), STEPS - 1)
            beyond = int((position - first) * share)
            cells[first] += int(share) - beyond
            cells[first + 1] += beyond
    return cells


def test_every_length_has_one_bin() -> None:
    """By comparison with ends that grow."""
    lengths = np.array([0.0, 5e-324, 0.02, 1.0, np.nextafter(1.0, 2.0), 1.5, 16.0, 1e300])
    for ends in (CLIP_SQUARES, REACH_SQUARES):
        bins = length_bins(lengths, ends)
        assert (np.diff(ends) > 0).all()
        assert (np.diff(bins) >= 0).all()
        assert bins[0] == 0
        assert bins[-1] == len(ends)
        many = np.sort(np.concatenate([ends, np.nextafter(ends, 0), np.nextafter(ends, 99), ends * 0.7]))
        assert length_bins(many, ends).tolist() == [sum(end <= length for end in ends) for length in many]
    assert length_bins(np.array([1.0, np.nextafter(1.0, 2.0)]), CLIP_SQUARES).tolist() == [47, 48]
    assert len(CLIP_SQUARES) + 1 == WITHIN + BEYOND

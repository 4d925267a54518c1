"""Rows in other coordinates: whole numbers, each row's bits its own, the same by both forms of the kernel."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import dpgram as dg
from dpgram.document.coordinates import LARGEST, Coordinates
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows import kernel
from dpgram.rows.encoder import Encoder

pytestmark = pytest.mark.usefixtures("kernel_form")


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


def test_both_forms_of_the_kernel_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    schema, batch = mixed_schema(), mixed_table(9000, seed=9)
    one = encoder(schema, random_coordinates(schema.width), 2.5)
    found = []
    for after in (0, 2**62):
        monkeypatch.setattr(kernel, "COMPILE_AFTER", after)
        found.append(one.encode(batch))
    assert np.array_equal(found[0].rows, found[1].rows)
    assert found[0].counts == found[1].counts
    assert found[0].counts.rows_clipped > 0

"""Attacks on floating point, after Mironov (2012), Haney et al. (2022) and Casacuberta et al. (2022).

Each attack breaks a naive form and nothing of ours. Seeds are fixed; tests of evenness have α = 10⁻⁶.
"""

from __future__ import annotations

import json
import math
from functools import partial

import msgspec
import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pytest
from assurance import floating_point as attack
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import publish

from dpgram.core.noise import SeededEntropy
from dpgram.core.units import PolicyCounts
from dpgram.engines.local import gram
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, CalibratedSketch, PublicFacts, Sketch
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.schema import Schema, numeric
from dpgram.sums.exact_gram import MAX_ROWS, ExactGram

Floats = npt.NDArray[np.float64]
VALUES = st.floats() | st.sampled_from(attack.EXTREMES)
"""Any float at all: infinities, NaN, subnormals and both zeros included."""


def sketch() -> CalibratedSketch:
    facts = PublicFacts(width=1, adjacency=adjacency("add-remove"))
    return Sketch(degrees=1000).calibrated(Guarantee(1.0, 1e-6), facts)


class TestLowBits:
    @pytest.mark.parametrize("name", MECHANISMS)
    def test_cells_fill_one_public_grid_whatever_the_data(self, name: str) -> None:
        made = attack.mechanism(name)
        assert attack.on_one_grid(made.draw, attack.grams(made.kind.rows_at_most), 40)

    def test_a_draw_in_floats_is_caught(self) -> None:
        """With many rows lattice units are finer than a float: low bits tell how large sums are."""
        facts = PublicFacts(width=3, adjacency=adjacency("add-remove"))
        made = Sketch(degrees=1000).calibrated(Guarantee(1.0, 1e-6), facts)
        assert not attack.on_one_grid(partial(attack.sketch_in_floats, made), attack.grams(1 << 27), 40)

    def test_last_digits_do_not_give_the_table_away(self) -> None:
        """Mironov's attack on a sketch of 2^27 − 1 rows: drawn in floats, a twentieth of outputs tell."""
        made = sketch()
        *_, chance = attack.given_away(made.draw, made, 150)
        assert chance > attack.ALPHA
        own, other, caught = attack.given_away(partial(attack.sketch_in_floats, made), made, 500)
        assert own > 0.02
        assert other == 0.0
        assert caught < attack.ALPHA

    def test_the_attack_breaks_laplace_noise_in_floats(self) -> None:
        generator = np.random.default_rng(1)
        values = [attack.naive_laplace(1.0, generator) for _ in range(200)]
        assert all(attack.naive_reachable(value, 1.0) for value in values)
        assert sum(not attack.naive_reachable(value, 0.0) for value in values) > 20

    @pytest.mark.parametrize("name", ["gaussian", "matrix-laplace", "laplace"])
    def test_integer_noise_reaches_the_same_values_from_neighbours(self, name: str) -> None:
        """All whole numbers, whatever is added: the noise that gives one output from one table is as good
        a number of the same law for the other."""
        made, tables = attack.mechanism(name), attack.grams(None)
        one, other = tables["the limit"].astype(object), tables["the limit and a row"].astype(object)
        drawn = made.draw(tables["the limit"], SeededEntropy(4)).cells
        for exact in (one, other):
            noise = drawn - exact
            assert all(type(cell) is int for cell in noise.ravel())
            assert (exact + noise == drawn).all()

    def test_the_text_of_a_release_is_the_same_but_for_the_cells(self) -> None:
        assert attack.text_says_nothing()

    def test_floats_of_a_release_follow_from_public_facts(self) -> None:
        """Every float in the file, to the last digit, from an empty table and from a full one."""
        schema = Schema(numeric("x", -1, 1), numeric("y", 0, 3))
        texts = []
        for rows in (1, 1000):
            table = pa.table({"x": np.linspace(-1, 1, rows), "y": np.full(rows, 1 / 3)})
            release = publish(
                table,
                schema,
                epsilon=0.3,
                delta=1e-7,
                entropy=SeededEntropy(1),
                threads=1,
                progress=False,
                adaptive=False,
            )
            form = json.loads(release.to_json())
            form["matrix"]["cells"] = form["digest"] = None
            texts.append(json.dumps(form))
            again = msgspec.json.decode(release.to_json())
            assert all(str(int(cell)) == cell for cell in again["matrix"]["cells"])
        assert texts[0] == texts[1]


class TestSums:
    @settings(max_examples=40, deadline=None)
    @given(st.lists(st.tuples(VALUES, VALUES), min_size=2, max_size=12), st.randoms(use_true_random=False))
    def test_no_order_moves_a_bit(self, rows: list[tuple[float, float]], random: object) -> None:
        table = np.array(rows)
        shuffled = np.array(random.sample(rows, len(rows)))
        usable = np.array([[0.5, 0.5]])  # so that some row always is
        one, other = (attack.lattice_gram(np.concatenate([usable, part])) for part in (table, shuffled))
        assert (one == other).all()

    def test_a_naive_sum_is_moved_by_the_order_and_ours_is_not(self) -> None:
        assert attack.moved_by_order(attack.lattice_gram) == 0.0
        assert attack.moved_by_order(attack.naive_gram) > 1e-3

    def test_repeated_rows_add_up_and_never_saturate(self) -> None:
        """n copies of a row are n times its square; in single precision they stop growing."""
        copies = 70_000
        row = np.array([[1.0, attack.TINY]])
        one = attack.lattice_gram(row).astype(object)
        many = attack.lattice_gram(np.repeat(row, copies, axis=0)).astype(object)
        assert (many == copies * one).all()
        saturated = attack.naive_gram(attack.order_attack(copies))
        assert float(saturated[0, 0]) == 1.0, "70,000 squares were lost"

    @settings(max_examples=60, deadline=None)
    @given(VALUES, VALUES, st.sampled_from([None, 1e-6, 0.3, 1.0, 1e6]))
    def test_no_row_moves_a_sum_by_more_than_its_share(self, x: float, y: float, clip: float | None) -> None:
        """Whatever the floats do inside, the contribution is an integer matrix of trace at most 2^30."""
        base = pa.table({"x": [0.3, -0.1], "y": [0.2, 0.9]})
        more = pa.table({"x": [0.3, -0.1, x], "y": [0.2, 0.9, y]})
        exact = [gram(table, attack.SCHEMA, clip, threads=1, progress=False).cells for table in (more, base)]
        step = exact[0].astype(object) - exact[1].astype(object)
        assert 0 <= step.trace() <= ROW_NORM_SQUARED
        assert int(step[0, 1]) ** 2 <= int(step[0, 0]) * int(step[1, 1])

    def test_a_naive_scaling_passes_the_bound_and_ours_does_not(self) -> None:
        """x·R/|x| rounded to nearest is longer than R for some rows; the lattice row never is."""
        rows = np.random.default_rng(2).uniform(-1, 1, (2000, 2))
        rows = rows[np.linalg.norm(rows, axis=1) > 0.3]
        scaled = np.rint(rows * (ROW_NORM * 0.3 / np.linalg.norm(rows, axis=1))[:, None] / 0.3)
        assert ((scaled**2).sum(axis=1) > ROW_NORM_SQUARED).any()
        for row in rows[:60]:
            table = pa.table({"x": row[:1], "y": row[1:]})
            assert (
                np.trace(gram(table, attack.SCHEMA, 0.3, threads=1, progress=False).cells) <= ROW_NORM_SQUARED
            )


class TestExtremes:
    def test_none_moves_a_sum_by_more_than_a_row(self) -> None:
        assert attack.extremes_are_bounded()

    @pytest.mark.parametrize(
        ("value", "like"),
        [
            (1e308, 1.0),
            (-1e308, -1.0),
            (-0.0, 0.0),
            (5e-324, 0.0),
            (math.nextafter(1.0, 2.0), 1.0),
        ],
    )
    def test_out_of_range_is_the_end_of_the_range_to_the_bit(self, value: float, like: float) -> None:
        one, other = (attack.lattice_gram(np.array([[x, 0.5], [0.1, 0.1]])) for x in (value, like))
        assert (one == other).all()

    @pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
    def test_what_is_no_number_is_missing(self, value: float) -> None:
        one = attack.lattice_gram(np.array([[value, 0.5], [0.1, 0.1]]))
        assert (one == attack.lattice_gram(np.array([[0.1, 0.1]]))).all()

    def test_overflow_is_refused_and_not_wrapped(self) -> None:
        most = ExactGram(np.full((1, 1), MAX_ROWS * ROW_NORM_SQUARED, np.int64), MAX_ROWS, PolicyCounts())
        one = ExactGram(np.full((1, 1), ROW_NORM_SQUARED, np.int64), 1, PolicyCounts())
        assert int(most.cells[0, 0]) < 2**63
        with pytest.raises(DpgramError, match="too many rows"):
            most | one

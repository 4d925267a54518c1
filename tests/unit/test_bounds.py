"""The histograms behind learnt bounds and radii: every float has a place, decoding finds what is there."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram.bounds import (
    BINS,
    GREATEST_REACH,
    LEAST_REACH,
    OCTAVES,
    ZERO,
    bin_counts,
    coarse_bounds,
    fine_bounds,
    octave_counts,
    octave_edges,
    reach_for,
    rows_needed,
)
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.counts import CountLaw, CountNoise, price_of_counts, projected, scale_of_counts
from dpgram.radius import LENGTHS, chosen_radius, length_counts

QUIET = CountNoise(law="discrete-gaussian", scale=5.0 * ROW_NORM_SQUARED)
LAWS = ["discrete-gaussian", "discrete-laplace"]


class TestOctaves:
    @given(st.floats(allow_nan=False, allow_infinity=False))
    def test_every_float_is_in_exactly_one_octave_and_within_its_edges(self, x: float) -> None:
        counts = octave_counts(np.array([x]))
        assert len(counts) == OCTAVES
        assert counts.sum() == 1
        low, high = octave_edges(int(np.argmax(counts)))
        assert low <= x <= high

    @pytest.mark.parametrize("x", [5e-324, sys.float_info.max, -5e-324, -sys.float_info.max, 0.0, -0.0])
    def test_the_ends_of_the_floats_have_a_place(self, x: float) -> None:
        assert octave_counts(np.array([x])).sum() == 1

    def test_what_is_not_finite_is_not_counted(self) -> None:
        assert octave_counts(np.array([np.nan, np.inf, -np.inf])).sum() == 0

    def test_signs_are_mirrored(self) -> None:
        values = np.array([1.0, 3.0, 1e-9, 700.0])
        assert np.array_equal(octave_counts(values), octave_counts(-values)[::-1])

    @given(st.lists(st.floats(allow_nan=True, allow_infinity=True), max_size=20), st.floats())
    def test_one_row_moves_one_cell_by_one(self, values: list[float], more: float) -> None:
        step = octave_counts(np.array([*values, more])) - octave_counts(np.array(values))
        assert step.min() >= 0
        assert step.sum() == (1 if math.isfinite(more) else 0)


class TestBins:
    @given(
        st.floats(-1e308, 1e308),
        st.floats(-1e300, 1e300),
        st.floats(1e-290, 1e300),
    )
    def test_one_row_is_in_one_bin_whatever_its_value(self, x: float, low: float, width: float) -> None:
        high = low + max(width, 1e-9 * abs(low))
        counts = bin_counts(np.array([x]), low, high)
        assert len(counts) == BINS
        assert counts.sum() == 1

    def test_values_outside_count_at_the_ends(self) -> None:
        counts = bin_counts(np.array([-5.0, 0.0, 0.5, 1.0, 9.0]), 0.0, 1.0)
        assert counts[0] == 2
        assert counts[-1] == 2
        assert counts[BINS // 2] == 1


class TestDecoding:
    def test_a_clean_histogram_gives_its_octaves(self) -> None:
        values = np.concatenate([np.full(500, 20.0), np.full(500, 300.0)])
        found = coarse_bounds(octave_counts(values).astype(float), QUIET, 1)
        assert found is not None
        assert found.bounds == (16.0, 512.0)

    def test_zeros_and_one_sign(self) -> None:
        values = np.concatenate([np.zeros(500), np.full(500, -3.0)])
        found = coarse_bounds(octave_counts(values).astype(float), QUIET, 1)
        assert found is not None
        assert found.bounds == (-4.0, 0.0)

    def test_a_constant_zero_still_has_bounds(self) -> None:
        found = coarse_bounds(octave_counts(np.zeros(500)).astype(float), QUIET, 1)
        assert found is not None
        assert found.bounds == (-1.0, 1.0)

    def test_noise_alone_gives_nothing(self) -> None:
        draw = np.random.default_rng(5)
        for _ in range(40):
            assert coarse_bounds(5.0 * draw.standard_normal(OCTAVES), QUIET, 1) is None

    def test_a_gap_of_three_octaves_is_bridged_only_by_what_is_significant(self) -> None:
        octaves = np.zeros(OCTAVES)
        octaves[ZERO + 1100] = 500.0
        octaves[ZERO + 1102] = 30.0  # six deviations: significant, below the mark of a lone octave
        octaves[ZERO + 1106] = 9.0
        found = coarse_bounds(octaves, QUIET, 1000)
        assert found is not None
        assert (found.first, found.last) == (ZERO + 1100, ZERO + 1102)

    @given(st.lists(st.floats(-50, 500), min_size=2, max_size=40), st.floats(1, 1000))
    def test_the_projection_is_a_histogram_of_the_total(self, counts: list[float], total: float) -> None:
        found = projected(np.array(counts), total)
        assert found.min() >= 0.0
        assert found.sum() == pytest.approx(total)

    def test_fine_bounds_follow_location_and_scale(self) -> None:
        draw = np.random.default_rng(1)
        values = draw.normal(100.0, 5.0, 100_000)
        low, high = fine_bounds(
            bin_counts(values, 64.0, 128.0).astype(float), 64.0, 128.0, rows=100_000.0, reach=3.0
        )
        assert low == pytest.approx(85.0, abs=1.0)
        assert high == pytest.approx(115.0, abs=1.0)

    @given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(0, 1000))
    def test_fine_bounds_stay_inside_the_coarse_ones(self, low: float, width: float, seed: int) -> None:
        bins = np.random.default_rng(seed).normal(0.0, 30.0, BINS)
        first, last = fine_bounds(bins, low, low + width, rows=100.0, reach=2.0)
        assert low <= first < last <= low + width

    def test_more_rows_reach_farther(self) -> None:
        reaches = [reach_for(20.0, rows) for rows in (100.0, 1e3, 1e4, 1e6)]
        assert reaches == sorted(reaches)
        assert min(reaches) >= LEAST_REACH
        assert max(reaches) <= GREATEST_REACH

    def test_the_rows_needed_follow_the_noise(self) -> None:
        loud = CountNoise(law="discrete-gaussian", scale=10.0 * ROW_NORM_SQUARED)
        assert rows_needed(loud, 3) == pytest.approx(2 * rows_needed(QUIET, 3), rel=1e-6)
        assert rows_needed(QUIET, 30) > rows_needed(QUIET, 3)


class TestRadius:
    def test_lengths_are_counted_on_the_lattice(self) -> None:
        full = math.isqrt(ROW_NORM_SQUARED)
        counts = length_counts(np.array([[float(full), 0.0, 10.0]]))
        assert counts[-1] == 1
        assert counts[0] == 2
        assert counts.sum() == 3

    def test_many_rows_clip_few_and_few_rows_clip_more(self) -> None:
        lengths = np.zeros(LENGTHS)
        lengths[20:40] = 1.0 / 20
        radii = [
            chosen_radius(lengths * rows, max_norm_squared=10.0, width=10, noise_norm=20.0, rows=rows)
            for rows in (300.0, 3e3, 1e6)
        ]
        assert radii == sorted(radii)
        assert radii[-1] ** 2 == pytest.approx(10.0 * 40 / LENGTHS, rel=0.03)
        assert radii[0] < radii[-1]


class TestPrices:
    @pytest.mark.parametrize("law", LAWS)
    @given(price=st.floats(1e-6, 10.0), histograms=st.integers(1, 300), steps=st.integers(1, 2))
    def test_a_scale_never_costs_more_than_its_price(
        self, law: CountLaw, price: float, histograms: int, steps: int
    ) -> None:
        scale = scale_of_counts(law, price, histograms=histograms, steps=steps)
        paid = price_of_counts(law, scale, histograms=histograms, steps=steps)
        assert Fraction(price) * Fraction(999_999_999, 10**9) < paid <= Fraction(price)

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("tail", [0.3, 1e-3])
    def test_the_tail_is_not_exceeded_more_often(self, law: CountLaw, tail: float) -> None:
        from dpgram.privacy.entropy import SeededEntropy

        noise = CountNoise(law=law, scale=30.0 * ROW_NORM_SQUARED)
        drawn = noise.draw(np.zeros(200_000, np.int64), SeededEntropy(3)).astype(float) / ROW_NORM_SQUARED
        over = float((drawn >= noise.exceeded(tail)).mean())
        # The Laplace bound is twice the tail; α = 10⁻⁶ on 200,000 draws.
        slack = 5.0 * math.sqrt(tail / len(drawn))
        assert over <= tail + slack
        assert over >= 0.4 * tail - slack

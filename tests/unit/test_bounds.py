"""The histograms behind learnt bounds: every float has a place, decoding finds what is there."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.core import OCTAVES, ZERO
from dpgram.core.sums import bin_places, octave_places
from dpgram.document.fields import LearntLook
from dpgram.document.measurements import crowded, latest
from dpgram.document.octaves import octave_edges
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.count_noise import (
    CountLaw,
    CountNoise,
    price_of_counts,
    projected_counts,
    scale_of_counts,
)
from dpgram.publishing._bounds import (
    GREATEST_REACH,
    LEAST_REACH,
    coarse_bounds,
    fine_bounds,
    reach_for,
    rows_needed,
)
from dpgram.sums.zoom import BINS, FINEST, ZOOM_STEPS, Window, zoom_steps

QUIET = CountNoise(law="discrete-gaussian", scale=5.0 * ROW_NORM_SQUARED)


def counted(places: npt.NDArray[np.int64], cells: int) -> npt.NDArray[np.int64]:
    """How many values have each place; −1 is none."""
    return np.bincount(places[places >= 0], minlength=cells)


def octave_counts(values: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return counted(octave_places(values), OCTAVES)


def finest_counts(values: npt.NDArray[np.float64], low: float, high: float) -> npt.NDArray[np.int64]:
    return counted(bin_places(values, low, high, FINEST), FINEST)


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


def windows(places: list[int]) -> list[Window]:
    """The whole, then closer to the bins at these places."""
    found = [Window()]
    for place in places[: ZOOM_STEPS - 1]:
        found.append(found[-1].closer(place))
    return found


def look(counts: npt.ArrayLike, low: float = 0.0, high: float = 1.0) -> LearntLook:
    cells = (np.asarray(counts) * ROW_NORM_SQUARED).astype(np.int64)
    return LearntLook(low=low, high=high, bins=tuple(map(str, cells.tolist())))


class TestBins:
    @settings(deadline=None)
    @given(
        st.floats(-1e308, 1e308),
        st.floats(-1e300, 1e300),
        st.floats(1e-290, 1e300),
        st.lists(st.integers(0, BINS - 2), max_size=ZOOM_STEPS - 1),
    )
    def test_one_row_is_in_one_bin_whatever_its_value(
        self, x: float, low: float, width: float, places: list[int]
    ) -> None:
        """Of the finest bins, and of every look that is made of them."""
        high = low + max(width, 1e-9 * abs(low))
        finest = finest_counts(np.array([x]), low, high)
        assert len(finest) == FINEST
        for counts in (finest, *(window.counts(finest) for window in windows(places))):
            assert counts.min() == 0
            assert counts.sum() == 1

    def test_values_outside_count_at_the_ends(self) -> None:
        finest = finest_counts(np.array([-5.0, 0.0, 0.5, 1.0, 9.0]), 0.0, 1.0)
        counts = Window().counts(finest)
        assert counts[0] == 2
        assert counts[-1] == 2
        assert counts[BINS // 2] == 1
        middle = Window().closer(7).counts(finest)
        assert middle[[0, BINS // 2, -1]].tolist() == [2, 1, 2]

    @settings(deadline=None)
    @given(st.lists(st.integers(0, BINS - 2), max_size=ZOOM_STEPS - 1), st.integers(0, 2**32 - 1))
    def test_a_window_counts_what_lies_between_its_edges(self, places: list[int], seed: int) -> None:
        values = np.random.default_rng(seed).random(200)
        window = windows(places)[-1]
        low, high = window.edges(0.0, 1.0)
        edges = np.linspace(low, high, BINS + 1)
        edges[[0, -1]] = -np.inf, np.inf
        assert np.array_equal(window.counts(finest_counts(values, 0.0, 1.0)), np.histogram(values, edges)[0])

    def test_the_last_look_is_at_the_finest_bins(self) -> None:
        found = windows([3, 0, 14])
        assert [window.closest for window in found] == [False] * (ZOOM_STEPS - 1) + [True]
        assert found[-1].width == BINS
        assert found[-1].first + found[-1].width <= FINEST


class TestLooks:
    ROWS = 1_000.0
    PAIR = (5, 6)

    def spread(self, inside: float, elsewhere: tuple[int, ...]) -> npt.NDArray[np.float64]:
        counts = np.zeros(BINS)
        counts[list(self.PAIR)] = inside / 2
        counts[list(elsewhere)] = (self.ROWS - inside) / len(elsewhere)
        return counts

    def test_a_column_within_two_bins_is_crowded(self) -> None:
        assert crowded([look(self.spread(1_000.0, (0,)))], self.ROWS, QUIET) == self.PAIR[0]

    @pytest.mark.parametrize(("inside", "elsewhere"), [(700.0, tuple(range(7, BINS))), (970.0, (15,))])
    def test_a_column_with_a_tail_is_not(self, inside: float, elsewhere: tuple[int, ...]) -> None:
        """A long one outweighs the two bins, a rare value stands out of the noise."""
        assert crowded([look(self.spread(inside, elsewhere))], self.ROWS, QUIET) is None

    def test_a_tail_below_the_noise_is_seen_by_more_looks(self) -> None:
        """Sixteen rows beside a deviation of five stand out of the average of four looks only."""
        one = look(self.spread(984.0, (15,)))
        assert crowded([one], self.ROWS, QUIET) == self.PAIR[0]
        assert crowded([one] * 4, self.ROWS, QUIET) is None

    def test_only_looks_at_the_last_bins_are_averaged(self) -> None:
        zeros, ones, twos = (np.full(BINS, value) for value in (0.0, 1.0, 2.0))
        counts, averaged = latest([look(twos), look(zeros, 0.5), look(ones, 0.5)])
        assert averaged == 2
        assert np.array_equal(counts, 0.5 * ones)

    def test_averaging_costs_nothing_with_gaussian_noise(self) -> None:
        """k looks at a k-th of the price, averaged, have the variance of one look at the whole price."""
        law: CountLaw = "discrete-gaussian"
        looks = zoom_steps(law)
        one, each = (scale_of_counts(law, 0.1, histograms=m, units_changed=1) for m in (3, 3 * looks))
        assert each / math.sqrt(looks) == pytest.approx(one)
        assert zoom_steps("discrete-laplace") == 1


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

    @pytest.mark.parametrize("full", [(ZERO + 1080,), (ZERO, ZERO + 1080), (ZERO - 1080, ZERO + 1081)])
    def test_noise_far_beyond_a_column_does_not_widen_it(self, full: tuple[int, ...]) -> None:
        """One release in a hundred had bounds such as (-5e11, 64), from which no fit recovers."""
        draw = np.random.default_rng(7)
        alarms = 0
        for _ in range(3000):
            octaves = 5.0 * draw.standard_normal(OCTAVES)
            octaves[list(full)] += 5000.0
            beyond = np.abs(np.arange(OCTAVES) - ZERO) > 1081 + 10
            alarms += bool((octaves[beyond] > 24.0).any())  # what one column's octaves are found from
            found = coarse_bounds(octaves, QUIET, 1)
            assert found is not None
            assert max(map(abs, found.bounds)) <= 2.0**20
        assert alarms >= 5

    @pytest.mark.parametrize("place", [ZERO + 1120, ZERO - 1120, ZERO + 2000])
    def test_what_is_there_is_found_however_far(self, place: int) -> None:
        octaves = np.zeros(OCTAVES)
        octaves[ZERO + 1080] = 5000.0
        octaves[place] = 40.0  # eight deviations
        found = coarse_bounds(octaves, QUIET, 1)
        assert found is not None
        assert {found.first, found.last} == {ZERO + 1080, place}

    def test_zeros_do_not_say_how_large_the_others_are(self) -> None:
        octaves = np.zeros(OCTAVES)
        octaves[ZERO] = 100_000.0
        octaves[ZERO + 1090] = 26.0  # five deviations: enough for a column by itself
        found = coarse_bounds(octaves, QUIET, 1)
        assert found is not None
        assert (found.first, found.last) == (ZERO, ZERO + 1090)

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
        found = projected_counts(np.array(counts), total)
        assert found.min() >= 0.0
        assert found.sum() == pytest.approx(total)

    def test_fine_bounds_follow_location_and_scale(self) -> None:
        draw = np.random.default_rng(1)
        values = draw.normal(100.0, 5.0, 100_000)
        counts = Window().counts(finest_counts(values, 80.0, 120.0)).astype(float)
        low, high = fine_bounds(counts, 80.0, 120.0, rows=100_000.0, reach=3.0)
        assert low == pytest.approx(85.0, abs=1.0)
        assert high == pytest.approx(115.0, abs=1.0)

    @settings(deadline=None)
    @given(st.floats(-1e6, 1e6), st.floats(1e-3, 1e6), st.integers(0, 1000))
    def test_fine_bounds_are_around_a_place_inside(self, low: float, width: float, seed: int) -> None:
        bins = np.random.default_rng(seed).normal(0.0, 30.0, BINS)
        first, last = fine_bounds(bins, low, low + width, rows=100.0, reach=2.0)
        assert low < 0.5 * (first + last) < low + width
        assert 2.0 * width / (math.sqrt(12.0) * BINS) <= 0.5 * (last - first) * (1.0 + 1e-6)

    def test_noise_far_out_counts_little(self) -> None:
        """Two per cent of the rows ten bins away: squares would more than double the scale."""
        counts = np.zeros(BINS)
        counts[3:6] = 300.0, 400.0, 300.0
        clean, noisy = (
            fine_bounds(counts + spike, 0.0, 1.0, rows=1_000.0 + spike.sum(), reach=1.0)
            for spike in (np.zeros(BINS), 20.0 * (np.arange(BINS) == 14))
        )
        assert (noisy[1] - noisy[0]) / (clean[1] - clean[0]) < 1.5

    def test_bounds_at_the_end_of_the_floats_are_finite(self) -> None:
        most = sys.float_info.max
        bins = np.full(BINS, 10.0)
        assert fine_bounds(bins, -most, most, rows=160.0, reach=5.0) == (-most, most)

    def test_more_rows_reach_farther(self) -> None:
        reaches = [reach_for(20.0, rows) for rows in (100.0, 1e3, 1e4, 1e6)]
        assert reaches == sorted(reaches)
        assert reaches[0] < reaches[-1]
        assert min(reaches) >= LEAST_REACH
        assert max(reaches) <= GREATEST_REACH

    def test_the_rows_needed_follow_the_noise(self) -> None:
        loud = CountNoise(law="discrete-gaussian", scale=10.0 * ROW_NORM_SQUARED)
        assert rows_needed(loud, 3) == pytest.approx(2 * rows_needed(QUIET, 3), rel=1e-6)
        assert rows_needed(QUIET, 30) > rows_needed(QUIET, 3)


class TestPrices:
    @pytest.mark.parametrize("law", LAWS)
    @given(price=st.floats(1e-6, 10.0), histograms=st.integers(1, 300), steps=st.integers(1, 2))
    def test_a_scale_never_costs_more_than_its_price(
        self, law: CountLaw, price: float, histograms: int, steps: int
    ) -> None:
        scale = scale_of_counts(law, price, histograms=histograms, units_changed=steps)
        paid = price_of_counts(law, scale, histograms=histograms, units_changed=steps)
        assert Fraction(price) * Fraction(999_999_999, 10**9) < paid <= Fraction(price)

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("tail", [0.3, 1e-3])
    def test_the_tail_is_not_exceeded_more_often(self, law: CountLaw, tail: float) -> None:
        from dpgram.core.noise import SeededEntropy

        noise = CountNoise(law=law, scale=30.0 * ROW_NORM_SQUARED)
        drawn = noise.draw(np.zeros(200_000, np.int64), SeededEntropy(3)).astype(float) / ROW_NORM_SQUARED
        over = float((drawn >= noise.upper_quantile(tail)).mean())
        # The Laplace bound is twice the tail; α = 10⁻⁶ on 200,000 draws.
        slack = 5.0 * math.sqrt(tail / len(drawn))
        assert over <= tail + slack
        assert over >= 0.4 * tail - slack

    @pytest.mark.parametrize("law", LAWS)
    @pytest.mark.parametrize("cells", [1, 2, 20])
    def test_the_noise_of_several_cells_together_has_its_tail(self, law: CountLaw, cells: int) -> None:
        """Chernoff's bound holds, and is not far off: within a factor of 12 here."""
        from dpgram.core.noise import SeededEntropy

        noise, tail, sums = CountNoise(law=law, scale=30.0 * ROW_NORM_SQUARED), 0.02, 40_000
        drawn = noise.draw(np.zeros((sums, cells), np.int64), SeededEntropy(4)).sum(axis=1).astype(float)
        over = float((drawn / ROW_NORM_SQUARED > noise.sum_quantile(cells, tail)).mean())
        slack = 5.0 * math.sqrt(tail / sums)
        assert tail / 12 - slack / 3 <= over <= tail + slack
        assert noise.sum_quantile(cells, 1e-300) > noise.sum_quantile(cells, 1e-5) > 0.0

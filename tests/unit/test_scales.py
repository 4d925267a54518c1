"""What follows from published histograms and a first matrix: scales of levels, and the last radius."""

from __future__ import annotations

import math

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from dpgram import Release, Schema, boolean, categorical, numeric
from dpgram.core.noise import SeededEntropy
from dpgram.document.fields import (
    MeasuredHistograms,
    MeasuredMatrix,
    MeasuredReach,
    MeasuredZoom,
    NumberHistogram,
)
from dpgram.document.measurements import histogram_rows
from dpgram.engines.local import LocalEngine
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.count_noise import CountNoise
from dpgram.publishing import publish_with
from dpgram.publishing._coordinates import REACH_FROM, last_radius, radius, rank, signal, whitening
from dpgram.publishing._scales import NARROW, scales, window

SCHEMA = Schema(
    numeric("x", -5, 5), categorical("g", ["common", "rare", "rarest"]), boolean("b"), numeric("y", -5, 5)
)
LEVELS = ["g=common", "g=rare", "g=rarest"]


@pytest.fixture(scope="module")
def release() -> Release:
    generator = np.random.default_rng(1)
    rows = 4_000
    x = generator.normal(size=rows)
    columns = {
        "x": x,
        "g": generator.choice(["common", "rare", "rarest"], rows, p=[0.85, 0.12, 0.03]),
        "b": generator.random(rows) < 0.1,
        "y": 0.9 * x + 0.4 * generator.normal(size=rows),
    }
    (found,) = publish_with(
        pa.table(columns),
        SCHEMA,
        epsilon=0.5,
        delta=1e-6,
        entropy=SeededEntropy(2),
        engine=LocalEngine(threads=1),
        progress=False,
    )
    return found


def measured(release: Release, kind: type) -> object:
    (found,) = [each for each in release.measured if isinstance(each, kind)]
    return found


def test_levels_are_scaled_alike_where_rows_are_few(release: Release) -> None:
    """All levels of a column together then vary by one, and false and true stay at −1 and 1."""
    histograms = measured(release, MeasuredHistograms)
    assert isinstance(histograms, MeasuredHistograms)
    few, many = (scales(release.schema, histograms, told) for told in (1.0, 1e18))
    assert few["g=common"].deviation == few["g=rare"].deviation == few["g=rarest"].deviation
    assert sum((many[name].deviation / few[name].deviation) ** 2 for name in LEVELS) == pytest.approx(1.0)
    assert few["b"].deviation == 1.0
    assert [few[name].centre for name in LEVELS] == [many[name].centre for name in LEVELS]
    assert few["x"] == many["x"]


def test_many_rows_give_every_level_its_own_deviation(release: Release) -> None:
    histograms = measured(release, MeasuredHistograms)
    assert isinstance(histograms, MeasuredHistograms)
    between, many = (scales(release.schema, histograms, told) for told in (100.0, 1e18))
    share = 2.0 / math.sqrt(100.0)
    together = sum(many[name].deviation ** 2 for name in LEVELS)
    for name in LEVELS:
        own = many[name]
        assert own.deviation == pytest.approx(math.sqrt(own.centre * (1.0 - own.centre)), rel=1e-5)
        mixed = (1.0 - share) * own.deviation**2 + share * together
        assert between[name].deviation == pytest.approx(math.sqrt(mixed), rel=1e-5)


def test_the_last_radius_follows_the_mean_length_of_rows(release: Release) -> None:
    """E|u|² in the last coordinates, by the noisy first matrix, stands for the number of columns."""
    histograms, first = measured(release, MeasuredHistograms), measured(release, MeasuredMatrix)
    reach = measured(release, MeasuredReach)
    assert isinstance(histograms, MeasuredHistograms)
    assert isinstance(first, MeasuredMatrix)
    assert isinstance(reach, MeasuredReach)
    rows, width = histogram_rows(histograms), rank(release.schema)
    mu = 5.0 * width**1.5 / rows
    assert signal(rows, mu, width) < REACH_FROM
    found = last_radius(first, reach, rows=rows, mu=mu, width=width)
    # The mean of |u|² if rows were what the first matrix shows, without the ridge f.
    unit = first.radius**2 / 2.0**30
    size = first.coordinates.width
    gram = np.zeros((size, size))
    gram[np.tril_indices(size)] = [int(cell) for cell in first.cells]
    values, vectors = np.linalg.eigh((gram + np.tril(gram, -1).T) * unit / rows)
    shown = (vectors * np.maximum(values, 0.0)) @ vectors.T
    turn = whitening(first, rows).matrix @ np.linalg.inv(first.coordinates.matrix)
    mean = float(np.trace(turn @ shown @ turn.T))
    assert mean < width - 0.1
    assert found == pytest.approx(radius(rows, mu, mean), rel=1e-6)
    assert found < 0.99 * radius(rows, mu, width)
    assert last_radius(first, None, rows=rows, mu=100.0 * mu, width=width) == pytest.approx(
        radius(rows, 100.0 * mu, mean), rel=1e-6
    )


NOISE = CountNoise(law="discrete-gaussian", scale=10.0 * ROW_NORM_SQUARED)


def histogram(low: float, high: float, counts: dict[int, float]) -> NumberHistogram:
    cells = tuple(str(round(counts.get(node, 0.0) * ROW_NORM_SQUARED)) for node in range(17))
    return NumberHistogram(column="x", low=low, high=high, counts=cells, lost=("0",) * 4)


def looked_at(found: NumberHistogram) -> tuple[float, float] | None:
    return window(found, found, NOISE, 1_000.0, by_noise=True, narrow=NARROW)


def test_values_beyond_the_bounds_count_at_their_ends() -> None:
    """They are moved there: a column whose upper end was learnt too low is looked at all the same."""
    found = histogram(0.0, 16.0, {15: 300.0, 16: 600.0})
    beyond = msgspec.structs.replace(found, lost=("0", "0", "0", str(100 * ROW_NORM_SQUARED)))
    assert looked_at(found) is None
    assert looked_at(beyond) == (14.0, 16.0)


def test_a_column_within_a_step_is_looked_at_around_its_middle() -> None:
    assert looked_at(histogram(0.0, 16.0, {5: 500.0, 6: 500.0})) == (4.5, 6.5)


@pytest.mark.parametrize(
    "counts",
    [
        dict.fromkeys(range(17), 1000.0 / 17),
        {5: 500.0, 6: 350.0, 12: 150.0},
        {4: 60.0, 5: 240.0, 6: 400.0, 7: 240.0, 8: 60.0},
    ],
    ids=["flat", "many at one value and some far away", "a bell of one step"],
)
def test_others_are_not(counts: dict[int, float]) -> None:
    assert looked_at(histogram(0.0, 16.0, counts)) is None


def test_nor_is_a_column_that_is_mostly_zero() -> None:
    """No other node stands out, but all of them together hold more than noise makes."""
    found = histogram(0.0, 16.0, {0: 9_850.0} | dict.fromkeys(range(1, 17), 150.0 / 16))
    assert window(found, found, NOISE, 10_000.0, by_noise=True, narrow=NARROW) is None
    assert (
        window(histogram(0.0, 16.0, {0: 9_850.0}), found, NOISE, 10_000.0, by_noise=True, narrow=NARROW)
        is not None
    )


def test_nor_are_so_few_rows_that_noise_alone_is_as_narrow() -> None:
    found = histogram(0.0, 16.0, {5: 50.0, 6: 50.0})
    assert window(found, found, NOISE, 100.0, by_noise=True, narrow=NARROW) is None


@given(
    low=st.floats(-1e12, 1e12),
    width=st.floats(1e-12, 1e12),
    place=st.integers(0, 16),
    part=st.floats(0.0, 1.0),
)
def test_ends_are_within_the_bounds_and_never_too_close(
    low: float, width: float, place: int, part: float
) -> None:
    high = low + width
    assume(high > low)
    counts = {place: 1_000.0 * (1.0 - part)}
    if place < 16:
        counts[place + 1] = 1_000.0 * part
    ends = looked_at(histogram(low, high, counts))
    if ends is not None:
        assert low <= ends[0] < ends[1] <= high
        half = ends[1] / 2.0 - ends[0] / 2.0
        assert half >= 1e-9 * max(map(abs, ends))
        assert half >= 1e-300


def test_rows_outside_of_a_closer_look_are_seen_in_the_one_before() -> None:
    """Where they are more than noise makes: its tails tell the scale."""
    schema = Schema(numeric("x", 0.0, 16.0))
    whole = histogram(0.0, 16.0, {5: 500.0, 6: 500.0})
    closer = histogram(4.5, 6.5, {8: 1_000.0})
    every = MeasuredHistograms(law=NOISE.law, scale=NOISE.scale, share=0.1, columns=(whole,))

    def deviation(above: int) -> float:
        lost = ("0", "0", "0", str(above * ROW_NORM_SQUARED))
        look = MeasuredZoom(
            law=NOISE.law, scale=NOISE.scale, share=0.1, columns=(msgspec.structs.replace(closer, lost=lost),)
        )
        return 8.0 * scales(schema, every, 10.0, [look])["x"].deviation

    assert deviation(0) == deviation(20) == pytest.approx(2.0 / (16.0 * math.sqrt(12.0)))
    assert deviation(100) == 8.0 * scales(schema, every, 10.0)["x"].deviation > 2.0 * deviation(0)


def test_the_widest_floats_do_no_harm() -> None:
    schema = Schema(numeric("x", -1.6e308, 1.6e308))
    whole = histogram(-1.6e308, 1.6e308, {8: 1_000.0})
    ends = looked_at(whole)
    assert ends == pytest.approx((-2e307, 2e307))
    every = MeasuredHistograms(law=NOISE.law, scale=NOISE.scale, share=0.1, columns=(whole,))
    look = MeasuredZoom(
        law=NOISE.law, scale=NOISE.scale, share=0.1, columns=(histogram(*ends, {7: 500.0, 9: 500.0}),)
    )
    found = scales(schema, every, 10.0, [look])["x"]
    assert found.centre == pytest.approx(0.0, abs=1e-12)
    assert 0.005 < found.deviation < 0.02

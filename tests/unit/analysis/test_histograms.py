"""What a histogram tells by itself: by hand, in any units, and for numbers that only a forged file has."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpgram as dg
from dpgram.analysis.histograms import Histogram
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with

NODES = 5
COUNTS = np.array([10.0, 40.0, 30.0, 15.0, 5.0])
LOST = {"missing": 3.0, "unreadable": 0.0, "below": 2.0, "above": 8.0}


def histogram(low: float, high: float, noise_sd: float = 1.5) -> Histogram:
    values = tuple(np.linspace(low, high, NODES).tolist())
    return Histogram(column="x", values=values, counts=COUNTS, lost=LOST, noise_sd=noise_sd)


def test_mean_and_deviation_by_hand() -> None:
    found = histogram(20.0, 60.0)
    places = np.array([20.0, 30.0, 40.0, 50.0, 60.0, 20.0, 60.0])
    cells = np.array([*COUNTS, LOST["below"], LOST["above"]])
    mean = cells @ places / cells.sum()
    spread = math.sqrt(cells @ (places - mean) ** 2 / cells.sum() - 10.0**2 / 6.0)
    noise = 1.5 * math.sqrt(float(((places - mean) ** 2).sum())) / cells.sum()
    assert found.deviation() == pytest.approx(spread)
    assert found.mean("table").estimate == pytest.approx(mean)
    assert found.mean("table").std_error == pytest.approx(noise)
    assert found.mean().std_error == pytest.approx(math.sqrt(noise**2 + spread**2 / cells.sum()))


def test_share_by_hand() -> None:
    levels = ("a", "b", "c", "d", "e")
    found = Histogram(column="t", values=levels, counts=COUNTS, lost=LOST, noise_sd=1.5)
    noise = 1.5 * math.sqrt(0.6**2 + 4 * 0.4**2) / 100.0
    assert found.share("b", "table").estimate == pytest.approx(0.4)
    assert found.share("b", "table").std_error == pytest.approx(noise)
    assert found.share("b").std_error == pytest.approx(math.sqrt(noise**2 + 0.4 * 0.6 / 100.0))


@pytest.mark.parametrize("unit", [1e-300, 1e-20, 1e20, 1e300])
def test_units_do_not_matter(unit: float) -> None:
    """Squares of some of these are beyond the floats."""
    plain, scaled = histogram(20.0, 60.0), histogram(20.0 * unit, 60.0 * unit)
    assert scaled.deviation() == pytest.approx(unit * plain.deviation(), rel=1e-9, abs=0.0)
    for kind in ("population", "table"):
        one, other = plain.mean(kind), scaled.mean(kind)
        assert other.estimate == pytest.approx(unit * one.estimate, rel=1e-9, abs=0.0)
        assert other.std_error == pytest.approx(unit * one.std_error, rel=1e-9, abs=0.0)


def test_noise_beyond_all_numbers_is_an_interval_without_ends() -> None:
    assert histogram(-1e300, 1e300, noise_sd=1e200).mean("table").std_error == math.inf
    levels = ("a", "b", "c", "d", "e")
    wide = Histogram(column="t", values=levels, counts=COUNTS, lost=LOST, noise_sd=1e200)
    assert wide.share("b").std_error > 1e190


def test_intervals_of_weighted_rows_hold_for_the_population() -> None:
    """The sum of survey weights stood for the number of rows: of 20,000 people for 400 asked, say."""
    dice = np.random.default_rng(5)
    nodes = tuple(np.linspace(0.0, 10.0, 21).tolist())
    lost, hits = dict.fromkeys(LOST, 0.0), []
    for _ in range(400):
        values = dice.integers(0, 21, 400)
        weights = dice.uniform(1.0, 100.0, 400)
        counts = np.bincount(values, weights, 21)
        numbers = Histogram(
            column="x", values=nodes, counts=counts, lost=lost, noise_sd=1e-9, at_most=100.0
        ).mean()
        share = Histogram(
            column="x", values=("no", "yes"), counts=np.array([counts[:6].sum(), counts[6:].sum()]),
            lost=lost, noise_sd=1e-9, at_most=100.0,
        ).share("yes")  # fmt: skip
        for found, truth in ((numbers, 5.0), (share, 15 / 21)):
            low, high = found.conf_int()
            hits.append(low <= truth <= high)
    assert np.mean(hits) >= 0.93


def test_a_weighted_release_knows_what_a_row_may_count() -> None:
    dice = np.random.default_rng(3)
    table = {
        "x": dice.uniform(0, 1, 4_000), "ill": dice.random(4_000) < 0.3, "w": dice.uniform(1, 100, 4_000)
    }  # fmt: skip
    schema = dg.Schema(dg.numeric("x", 0, 1), dg.boolean("ill"), dg.numeric("w", 0, 100))
    asked = {"epsilon": 8.0, "delta": 1e-6, "entropy": SeededEntropy(1), "progress": False}
    (release,) = publish_with(table, schema, rows=dg.Rows(weight="w"), **asked)
    square = np.square(table["w"]).sum() / table["w"].sum() ** 2
    for name, variance in (("x", np.var(table["x"])), ("ill", 0.21)):
        own = release.histogram(name)
        found = (own.mean() if own.numbers else own.share("true")).std_error
        assert own.at_most == 100.0
        assert np.sqrt(variance * square) < found < 2.0 * np.sqrt(variance * square)
        told = release.describe([name])[name].mean
        assert told.std_error == pytest.approx(found)

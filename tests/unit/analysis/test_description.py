"""Counts, means and deviations: numpy's without noise, honest intervals with it."""

from __future__ import annotations

import dataclasses
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import binom
from tests.flat import publish
from tests.unit.analysis.tables import encode, insurance, insurance_schema

import dpgram as dg
from dpgram.analysis.description import Description, _centred, _column, _level_count, describe
from dpgram.analysis.forms import residuals
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.regress import regress
from dpgram.analysis.row_sets import matrix_count
from dpgram.cli import run
from dpgram.demo import insurance as demo
from dpgram.errors import AnalysisError
from dpgram.explorer.facts import page_facts
from dpgram.noise import SymmetricGaussian
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with
from dpgram.release import Release
from dpgram.schema import Schema, categorical, numeric, product

VECTORS = Path(__file__).resolve().parents[3] / "conformance" / "vectors"
ROWS = 4_000
TABLE = insurance(ROWS)
SCHEMA = insurance_schema()


@pytest.fixture(scope="module")
def release() -> Release:
    return publish(TABLE, SCHEMA, epsilon=2.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(1))


def truth(name: str) -> np.ndarray:
    if "=" in name:
        column, level = name.split("=")
        return (TABLE[column] == level).astype(float)
    return TABLE[name].astype(float)


def test_without_noise_it_is_numpys(release: Release) -> None:
    rows = encode(SCHEMA, TABLE)
    quiet = Moments(
        gram=rows.T @ rows,
        schema=SCHEMA,
        noise=EncodedNoise.of(SymmetricGaussian(sigma=1e-9)),
        radius=release.radius,
    )
    constant = quiet.constant_vector()
    places = range(1, SCHEMA.width)
    found = _centred(quiet, constant, places)
    for k, place in enumerate(places):
        column = _column(quiet, constant, place, found, k, 1.96, "population", 1.0)
        values = truth(column.name)
        assert column.mean.estimate == pytest.approx(values.mean(), rel=1e-9)
        assert column.mean.std_error == pytest.approx(values.std(ddof=1) / ROWS**0.5, rel=1e-6)
        assert column.deviation.estimate == pytest.approx(values.std(ddof=1), rel=1e-9)
        if column.count is not None:
            assert column.count.estimate == pytest.approx(values.sum())
    assert matrix_count(quiet, constant)[0] == pytest.approx(ROWS)
    assert _level_count(quiet, constant, SCHEMA.names.index("active"))[0] == pytest.approx(
        TABLE["active"].sum()
    )


def test_intervals_for_the_table_cover() -> None:
    """150 releases: every number of the table is inside its 95% interval in 93 to 97 of 100 cases."""
    hits: list[bool] = []
    for seed in range(150):
        found = describe(
            publish(
                TABLE, SCHEMA, epsilon=2.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(seed)
            ),
            kind="table",
        )
        hits.append(found.rows.low <= ROWS <= found.rows.high)
        for column in found.columns:
            values = truth(column.name)
            hits.append(column.mean.low <= values.mean() <= column.mean.high)
            hits.append(column.deviation.low <= values.std(ddof=1) <= column.deviation.high)
            if column.count is not None:
                hits.append(column.count.low <= values.sum() <= column.count.high)
    assert len(hits) > 4_000
    assert 0.93 <= np.mean(hits) <= 0.97


class TestDeviationsInOwnCoordinates:
    """There the noise of the number of rows moves a variance as much as that of the sum of squares does."""

    DRAWS = 400
    NAMES = ("age", "bmi", "charges")

    @pytest.fixture(scope="class")
    @classmethod
    def again(cls) -> list[tuple[Moments, Moments]]:
        """The clipped rows of an adaptive release without noise, and with new noise many times."""
        (found,) = publish_with(
            TABLE, SCHEMA, epsilon=3.0, delta=1e-6, entropy=SeededEntropy(2), progress=False
        )
        assert found.coordinates is not None
        rows = encode(SCHEMA, TABLE) @ np.asarray(found.coordinates.matrix).T
        rows *= np.minimum(1.0, found.radius / np.linalg.norm(rows, axis=1))[:, None]
        moments, generator = Moments.of(found), np.random.default_rng(7)
        exact = dataclasses.replace(moments, gram=rows.T @ rows)
        draws = [moments.noise.redraw(exact.gram, generator) for _ in range(cls.DRAWS)]
        return [(exact, dataclasses.replace(moments, gram=drawn)) for drawn in draws]

    @staticmethod
    def too_few(hits: list[bool]) -> bool:
        """So few that intervals which cover in 92.5% of all cases show it once in a million tests."""
        return bool(binom.cdf(sum(hits), len(hits), 0.925) < 1e-6)

    @pytest.mark.parametrize("name", NAMES)
    def test_deviations_cover_those_of_the_clipped_table(self, name: str, again: Any) -> None:
        hits, blind = [], []
        for exact, noisy in again:
            truth = describe(exact, [name])[name].deviation.estimate
            told = describe(noisy, [name])[name].deviation
            hits.append(told.low <= truth <= told.high)
            reach = 1.96 * told.std_error * self.blindness(noisy, name)
            blind.append(abs(told.estimate - truth) <= reach)
        assert not self.too_few(hits)
        assert self.too_few(blind), "without the noise of the count this is too narrow"

    @pytest.mark.parametrize("target", NAMES)
    def test_so_does_the_residual_variance(self, target: str, again: Any) -> None:
        hits = []
        for exact, noisy in again:
            on = [name for name in self.NAMES if name != target]
            truth = regress(exact, target, on).residual_variance("table").estimate
            low, high = regress(noisy, target, on).residual_variance("table").conf_int()
            hits.append(low <= truth <= high)
        assert not self.too_few(hits)

    @staticmethod
    def blindness(moments: Moments, name: str) -> float:
        """The error from rᵀNr alone, as a part of that which is told."""
        constant, place = moments.constant_vector(), moments.schema.names.index(name)
        axis = np.eye(moments.schema.width)[:, [place]] / moments.weights[place]
        residual = residuals(moments, constant[:, None], axis)
        alone = moments.noise.functional_variance(
            np.outer(residual.functions[:, 0], residual.functions[:, 0])
        )
        both = _centred(moments, constant, [place]).square_noise[0] / residual.inflation
        return float(np.sqrt(alone / both))


def test_what_it_says(release: Release) -> None:
    found = describe(release)
    told = str(found)
    assert "smoker=yes" in told
    assert "for the population" in told
    assert "<table>" in found._repr_html_()
    assert found["smoker=yes"].count is not None
    assert found["age"].count is None
    frame = found.to_frame()
    assert frame.shape == (len(SCHEMA.encoded) - 1, 12)
    assert frame["count"].null_count() == 3
    table = describe(release, ["age"], kind="table")
    assert table["age"].mean.std_error < found["age"].mean.std_error
    assert table.notes()[0] == "95% intervals: for the table (privacy noise only)."
    assert isinstance(dataclasses.replace(table, level=0.9), Description)


def test_it_fits_a_terminal(release: Release) -> None:
    """Counts go below means and deviations where all three are too wide side by side."""
    table, schema = demo.table(20_000, 1), demo.schema()
    wide = publish(table, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(0))
    found = describe(wide)
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 80
    told = " ".join(str(found).split())
    for column in found.columns:
        if column.count is not None:
            assert f"{column.name} {column.count.estimate:,.0f} {column.count.low:,.0f}" in told
        assert f"{column.name} {column.mean.estimate:.5g} {column.mean.low:.5g}" in told
    narrow = str(describe(release, ["active"]))
    assert "deviation" in narrow.splitlines()[2]
    assert "count" in narrow.splitlines()[2]


def test_refusals(release: Release) -> None:
    with pytest.raises(AnalysisError, match="no column 'height'"):
        describe(release)["height"]
    with pytest.raises(AnalysisError, match="must be a probability"):
        describe(release, level=95)
    with pytest.raises(AnalysisError, match="list of column names"):
        describe(release, "age")
    schema = Schema(numeric("a", 0, 1), numeric("b", 0, 1), product("a", "b"))
    table = {"a": np.linspace(0, 1, 2_000), "b": np.linspace(1, 0, 2_000)}
    derived = publish(table, schema, epsilon=5.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(0))
    with pytest.raises(AnalysisError, match="products and polynomials"):
        describe(derived, [schema.names[-1]])
    assert [column.name for column in describe(derived).columns] == ["a", "b"]


def dated(**options: Any) -> Release:
    """One level has no rows: its noisy count may be negative."""
    draw = np.random.default_rng(4)
    table = {
        "visit": np.datetime64("2024-01-01") + draw.integers(0, 365, ROWS),
        "g": draw.choice(["a", "b"], ROWS),
        "id": np.arange(ROWS),
    }
    levels = ["a", "b", *(f"none {i}" for i in range(12))]
    schema = Schema(numeric("visit", "2024-01-01", "2024-12-31"), categorical("g", levels))
    return publish(table, schema, epsilon=3.0, delta=1e-6, entropy=SeededEntropy(1), **options)


def test_means_of_dates_are_dates(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    release = dated(adaptive=True)
    found = release.describe()
    assert found["visit"].dates
    assert 19_700 < found["visit"].mean.estimate < 20_100  # numbers stay days
    (line,) = (line for line in str(found).splitlines() if line.startswith("visit"))
    mean, low, high, deviation = line.split()[1:5]
    assert date(2024, 6, 20) < date.fromisoformat(low) <= date.fromisoformat(mean) <= date.fromisoformat(high)
    assert date.fromisoformat(high) < date(2024, 7, 12)
    assert float(deviation) == pytest.approx(105.4, rel=0.05)
    assert "Deviations in days: visit." in found.notes()
    assert mean in found._repr_html_()
    path = release.save(tmp_path / "dated.dpgram.json")
    assert run(["show", str(path)]) == 0
    (shown,) = (line for line in capsys.readouterr().out.splitlines() if line.split()[:1] == ["visit"])
    assert shown.split()[1] == mean
    assert page_facts(release)["description"]["columns"][0]["dates"] is True


def test_what_is_shown_lies_within_its_interval() -> None:
    found = dated(adaptive=True).describe()
    counts = [column.count for column in found.columns if column.count is not None]
    below = [count for count in counts if count.estimate < 0.0]
    assert below  # else this says nothing
    assert all(count.shown == (0.0, 0.0, count.high) for count in below)
    assert all(str(count).startswith("0 (") for count in below)
    for count in counts:
        value, low, high = count.shown
        assert low <= value <= high
        assert value == count.estimate or count in below
    cells = [cell for row in found._cells()[1:] for cell in row[1:]]
    assert not any(cell.startswith("-") for cell in cells)


def test_what_is_counted_is_named() -> None:
    assert str(dated().describe()).startswith("rows: ")
    assert str(dated(unit="id").describe()).startswith("units ('id'): ")
    assert str(dated(unit="id", unit_rows=2).describe()).startswith("rows: ")
    weighed = Moments.of(dg.load(VECTORS / "weighted.dpgram.json"))
    assert str(describe(weighed)).startswith(f"weight ({weighed.survey_weight!r}): ")


@pytest.mark.parametrize(("bound", "rough"), [(400.0, False), (40_000.0, True)])
def test_a_rough_mean_of_a_histogram_is_told_with_the_closer_one(bound: float, rough: bool) -> None:
    """Between far bounds a histogram's mean is mostly noise; the matrix of the same release tells it."""
    dice = np.random.default_rng(3)
    table = {"wage": dice.normal(200.0, 40.0, 6_000).clip(0, 400), "age": dice.uniform(18, 90, 6_000)}
    schema = Schema(numeric("wage", 0, bound), numeric("age", 18, 90))
    asked = {"epsilon": 2.0, "delta": 1e-6, "entropy": SeededEntropy(1), "progress": False}
    found = publish_with(table, schema, **asked)[0].describe()
    told = [caution for caution in found.cautions if "is rough" in caution]
    assert len(told) == rough
    if rough:
        low, high = map(float, told[0].rpartition("(")[2].rstrip(")").split(" to "))
        assert told[0].startswith("the mean of wage comes from a histogram between far bounds")
        assert low < table["wage"].mean() < high
        assert 4 * (high - low) < found["wage"].mean.high - found["wage"].mean.low


def test_days_that_no_calendar_has_stay_numbers() -> None:
    from dpgram.document.labels import written

    days = (0.4, 1e9, -1e300, float("inf"))
    assert [written(day, dates=True) for day in days] == ["1970-01-01", "1e+09", "-1e+300", "inf"]

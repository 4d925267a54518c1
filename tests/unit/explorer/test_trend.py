"""The page's trends are Python's: estimates, errors, intervals, changes and slopes, computed by Node."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from msgspec.structs import replace
from tests.node import NODE, in_node
from tests.unit.series.streams import ENGINE
from tests.unit.series.test_files import edited

import dpgram as dg
from dpgram import explorer
from dpgram.analysis import Trend
from dpgram.explorer.facts import page_facts
from dpgram.explorer.trend_facts import offered_windows, trend_facts
from dpgram.privacy import SeededEntropy
from dpgram.series import Series
from dpgram.series._curate import create, publish
from dpgram.series.stream import Stream

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="Node.js is not installed"),
    pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning"),
]

DIGITS = 1e-6
ON = ["age", "smoker", "region"]
SCHEMA = dg.Schema(
    dg.numeric("age", 18, 90),
    dg.numeric("cost", 0, 400),
    dg.boolean("smoker"),
    dg.categorical("region", ["north", "south", "east", "nowhere"]),
)

HARNESS = """
const { facts, questions } = JSON.parse(require("fs").readFileSync(0, "utf-8"));
const moments = dpgram.moments.momentsOf(facts);
const series = dpgram.trend.seriesOf(moments);
const told = questions.map(({ length, running, target, ...asked }) => {
  const found = dpgram.trend.trend(moments, series, {
    ...asked, target: moments.columns.findIndex((column) => column.name === target),
    ends: series.ends(length, running), running,
  });
  const coefficients = found.names.map((name) => {
    const own = found.coefficient(name);
    const changes = own.rows.length > 1 ? [own.change(), own.change(own.rows.length - 2)] : [];
    const covariance = Array.from(own.covariance.cells);
    return { name, rows: own.rows, changes, slope: own.slope(), covariance };
  });
  return { cautions: found.cautions, coefficients, csv: dpgram.trend.trendCsv(found) };
});
const named = (_, value) => (typeof value === "number" && !Number.isFinite(value) ? String(value) : value);
console.log(JSON.stringify(told, named));
"""


def month(number: int, rows: int) -> pa.Table:
    draw = np.random.default_rng([5, number])
    age, smoker = draw.uniform(20, 80, rows), draw.random(rows) < 0.3
    # The most frequent region of the last months is another one than before.
    shares = [0.5, 0.3, 0.2] if number < 5 else [0.3, 0.5, 0.2]
    region = draw.choice(["north", "south", "east"], rows, p=shares)
    cost = 40 + (1.5 + 0.05 * number) * age + 30 * smoker + draw.normal(0, 20, rows)
    ids = np.arange(100_000 * number, 100_000 * number + rows)
    return pa.table({"id": ids, "age": age, "cost": cost.clip(0, 400), "smoker": smoker, "region": region})


def made(path: Path, **options: Any) -> Series:
    """Seven months, of which the fourth is nearly empty."""
    noise = SeededEntropy(4)
    asked = {"epsilon": 3.0, "delta": 1e-6, "periods": 12, "rows": dg.Rows(unit="id"), **options}
    create(path, SCHEMA, entropy=noise, **asked)
    for number in range(1, 8):
        table = month(number, 60 if number == 4 else 4_000)
        publish(path, table, f"m{number}", engine=ENGINE, progress=False, entropy=noise)
    return Series.open(path)


def page_data(series: Series) -> dict[str, object]:
    stream = Stream.read(series.path)
    count = len(stream.labels)
    windows = [stream.release(*ends) for ends in offered_windows(count)]
    facts = trend_facts(windows, [each.cells for each in stream.periods], stream.labels)
    return json.loads(json.dumps({**page_facts(stream.release(1, count)), "series": facts}, allow_nan=False))


def ask(series: Series, *questions: dict[str, object]) -> list[dict[str, Any]]:
    program = "\n".join([*map(explorer.script, explorer.ARITHMETIC), HARNESS])
    return json.loads(in_node(program, {"facts": page_data(series), "questions": questions}))


def same(told: dict[str, Any], found: Trend, level: float) -> None:
    assert [each["name"] for each in told["coefficients"]] == list(found.names)
    assert sorted(told["cautions"]) == sorted(found.cautions)
    for each in told["coefficients"]:
        name, rows = each["name"], each["rows"]
        assert [row["window"] for row in rows] == list(found.labels)
        assert [row["place"] for row in rows] == found.places.tolist()
        assert [row["estimate"] for row in rows] == pytest.approx(found.estimates(name), rel=DIGITS)
        assert [row["error"] for row in rows] == pytest.approx(found.std_errors(name), rel=DIGITS)
        for row, (low, high) in zip(rows, found.conf_int(name, level), strict=True):
            if np.isnan(low):
                assert (row["low"], row["high"]) == (None, None)
            else:
                ends = [float(row["low"]), float(row["high"])]
                assert ends == pytest.approx([low, high], rel=DIGITS, abs=DIGITS * row["error"])
        size = np.sqrt(np.outer(found.std_errors(name), found.std_errors(name)))
        covariance = np.array(each["covariance"]).reshape(size.shape)
        assert np.abs((covariance - found.covariances[name]) / size**2).max() < DIGITS
        count = len(found.labels)
        wanted = [found.change(name), found.change(name, count - 2)] if count > 1 else []
        wanted += [found.slope(name)] if count > 2 else []
        for own, change in zip([*each["changes"], *filter(None, [each["slope"]])], wanted, strict=True):
            assert own["what"] == change.what
            assert own["estimate"] == pytest.approx(change.estimate, rel=DIGITS, abs=DIGITS * own["error"])
            assert own["error"] == pytest.approx(change.std_error, rel=DIGITS)
            ends = change.conf_int(level)
            assert [own["low"], own["high"]] == pytest.approx(ends, rel=DIGITS, abs=DIGITS * own["error"])
            assert own["p"] == pytest.approx(change.pvalue, rel=1e-4, abs=1e-12)
            assert own["cautions"] == list(change.cautions)


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return made(tmp_path_factory.mktemp("trend") / "a.series")


def question(**options: Any) -> dict[str, Any]:
    usual = {"target": "cost", "on": ON, "kind": "population", "level": 0.95, "length": 1, "running": False}
    return {**usual, **options}


def test_trends_are_those_of_python(series: Series) -> None:
    asked = [
        question(length=length, running=running, kind=kind, level=level, on=on)
        for length, running, kind, level, on in (
            (1, False, "population", 0.95, ON),
            (1, False, "table", 0.9, ["age"]),
            (2, False, "population", 0.99, ON),
            (3, False, "table", 0.95, ON),
            (1, True, "population", 0.95, ON),
            (1, True, "table", 0.99, ["age", "region"]),
        )
    ]
    refused = 0
    for one, told in zip(asked, ask(series, *asked), strict=True):
        options = {"every": one["length"], "running": one["running"], "kind": one["kind"]}
        found = series.trend("cost", one["on"], **options)
        same(told, found, one["level"])
        refused += int(np.isnan(found.conf_int("age")).any())
    assert 0 < refused < len(asked)  # some windows are too noisy, and that is the same there


def test_the_reference_is_that_of_the_last_window_or_the_one_asked_for(series: Series) -> None:
    usual, asked = ask(series, question(length=2), question(length=2, references={"region": "east"}))
    same(usual, series.trend("cost", ON, every=2), 0.95)
    same(asked, series.trend("cost", ON, every=2, reference={"region": "east"}), 0.95)
    assert "region=south" not in [each["name"] for each in usual["coefficients"]]


def test_a_level_that_some_windows_lack_is_left_out_and_it_is_said(tmp_path: Path) -> None:
    noise, path = SeededEntropy(4), tmp_path / "a.series"
    create(path, SCHEMA, entropy=noise, epsilon=8.0, delta=1e-6, periods=4, rows=dg.Rows(unit="id"))
    for number in range(1, 4):
        table = month(number, 4_000)
        if number < 3:
            table = table.filter(pc.not_equal(table["region"], "east"))
        publish(path, table, f"m{number}", engine=ENGINE, progress=False, entropy=noise)
    series = Series.open(path)
    found = series.trend("cost", ["age", "region"])
    assert "region=east" not in found.names
    told = "some of the windows show no rows to speak of with region=east: left out of the trend"
    assert any(told in caution for caution in found.cautions)
    (answer,) = ask(series, question(on=["age", "region"]))
    same(answer, found, 0.95)


def test_persons_in_several_windows_are_told_of(tmp_path: Path) -> None:
    series = made(tmp_path / "b.series", participations=2, adaptive=False)
    (told,) = ask(series, question(on=["age"]))
    same(told, series.trend("cost", ["age"]), 0.95)
    assert any("may count in several windows" in caution for caution in told["cautions"])


@pytest.mark.parametrize(("seed", "known"), [(0, False), (1, False), (4, True)])
def test_no_straight_line_where_one_window_decides_alone(seed: int, known: bool, tmp_path: Path) -> None:
    """Forged files, whose later windows tell nothing at all, or by chance a second one does."""
    series, draw = made(tmp_path / "c.series", adaptive=False), np.random.default_rng(seed)

    def forged(each: Any) -> Any:
        if getattr(each, "number", 1) == 1:
            return each
        far = draw.integers(-(10**15), 10**15, len(each.cells)).tolist()
        return replace(each, cells=tuple(str(10**10 * cell) for cell in far))

    series.path.write_bytes(edited(Stream.read(series.path), forged))
    again = Series.open(series.path)
    found = again.trend("cost", ["age"])
    (told,) = ask(again, question(on=["age"]))
    for each in told["coefficients"]:
        assert (each["slope"] is not None) is known
        if not known:
            with pytest.raises(dg.errors.AnalysisError, match="no straight line"):
                found.slope(each["name"])


def test_the_csv_is_the_frame_of_python(series: Series) -> None:
    (told,) = ask(series, question())
    head, *lines = told["csv"].splitlines()
    frame = series.trend("cost", ON).to_frame()
    assert head.split(",") == list(frame.columns)
    for line, row in zip(lines, frame.to_dicts(), strict=True):
        name, window, *numbers = line.split(",")
        assert (name, window) == (row["name"], row["window"])
        wanted = [row[field] for field in ("estimate", "std_error", "low", "high")]
        assert [cell == "" for cell in numbers] == [bool(np.isnan(number)) for number in wanted]
        assert [float(cell) for cell in numbers if cell] == pytest.approx(
            [number for number in wanted if not np.isnan(number)], rel=DIGITS, abs=1e-9
        )


def test_every_window_is_offered_once() -> None:
    found = offered_windows(7)
    assert len(found) == len(set(found))
    assert {(1, last) for last in range(1, 8)} <= set(found)
    assert {(1, 3), (4, 6)} <= set(found)
    assert (7, 9) not in found


def test_a_series_without_a_period_has_no_page(tmp_path: Path) -> None:
    create(tmp_path / "a.series", SCHEMA, epsilon=1.0, delta=1e-6, periods=12, entropy=SeededEntropy(1))
    with pytest.raises(dg.errors.AnalysisError, match="no period of this series was published"):
        Series.open(tmp_path / "a.series").explore(tmp_path / "page.html")

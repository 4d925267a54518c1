"""The page of a series in a real browser: its trends are Python's, on every screen and on paper."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.browser.axe import violations
from tests.browser.conftest import (
    Camera,
    Driver,
    Opener,
    after,
    choice,
    downloaded,
    numbers,
    ready,
    table,
    value,
)
from tests.unit.explorer.test_trend import ON, made

from dpgram.analysis import Trend
from dpgram.series import Series

pytestmark = pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")

DIGITS = 1e-6


@pytest.fixture(scope="module")
def series(tmp_path_factory: pytest.TempPathFactory) -> Series:
    return made(tmp_path_factory.mktemp("series") / "a.series")


@pytest.fixture(scope="module")
def page(series: Series, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return series.explore(tmp_path_factory.mktemp("pages") / "series.html")


def same(driver: Driver, trend: Trend, name: str, level: float = 0.95) -> None:
    found = table(driver, "trend-table")
    assert list(found) == list(trend.labels)
    ends = trend.conf_int(name, level)
    wanted = np.column_stack([trend.estimates(name), trend.std_errors(name), ends])
    for told, row in zip(found.values(), wanted, strict=True):
        assert told == [None if np.isnan(number) else pytest.approx(number, rel=DIGITS) for number in row]
    for identity, change in (("trend-change", trend.change(name)), ("trend-slope", trend.slope(name))):
        told = [value(driver, identity, key) for key in ("value", "low", "high")]
        assert told == pytest.approx([change.estimate, *change.conf_int(level)], rel=1e-5)
        assert value(driver, identity, "p") == pytest.approx(change.pvalue, rel=1e-4, abs=1e-12)


def test_the_trend(series: Series, page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    reference = {"region": driver.execute_script("return document.querySelector('#references select').value")}
    same(driver, series.trend("cost", ON, reference=reference), "age")
    assert "1 of 7 windows are too noisy" in driver.find_element("id", "trend-notices").text
    after(driver, "document.querySelector('#trend-notices button').click()")  # two periods in each window
    same(driver, series.trend("cost", ON, every=2, reference=reference), "age")
    after(driver, choice("windows"), "running")
    after(driver, choice("coefficient"), "smoker")
    after(driver, choice("level"), "0.9")
    after(driver, "document.querySelector('input[name=kind][value=table]').click()")
    running = series.trend("cost", ON, running=True, kind="table", reference=reference)
    same(driver, running, "smoker", 0.9)
    saved = numbers(driver, "release-trend.json")
    assert saved["coefficient"] == "smoker"
    assert saved["slope"]["estimate"] == pytest.approx(running.slope("smoker").estimate, rel=DIGITS)
    own = next(each for each in saved["coefficients"] if each["name"] == "age")
    assert [row["estimate"] for row in own["windows"]] == pytest.approx(running.estimates("age"), rel=DIGITS)
    path = downloaded(driver, "save-trend-csv", "release-cost-trend.csv")
    assert path.read_text(encoding="utf-8").splitlines()[0] == "name,window,estimate,std_error,low,high"
    address = driver.execute_script("return location.hash")
    same(ready(opened(page, address[1:])), running, "smoker", 0.9)


def test_what_cannot_be_answered_is_told(series: Series, page: Path, opened: Opener) -> None:
    driver = ready(opened(page, "x="))
    assert driver.execute_script("return document.getElementById('coefficient').value") == "(intercept)"
    after(driver, "document.getElementById('tab-regression').click()")
    assert len(table(driver, "coefficients")) == 1  # the other views are those of the running total
    assert (
        driver.execute_script("return document.getElementById('title').textContent")
        == "Explore a private series"
    )


@pytest.mark.parametrize(
    ("width", "dark", "media"), [(1280, False, ""), (390, True, ""), (720, False, "print")]
)
def test_everybody_can_use_it(
    width: int, dark: bool, media: str, page: Path, opened: Opener, photograph: Camera
) -> None:
    for view in ("windows=1", "windows=running&coefficient=smoker"):
        driver = ready(opened(page, view, width=width, dark=dark, media=media))
        if media == "":
            assert violations(driver) == []
        beyond = driver.execute_script(
            "return [...document.querySelectorAll('#trend-chart svg text')]"
            ".map((text) => text.getBoundingClientRect())"
            ".filter((box) => box.right > innerWidth + 1 || box.left < -1).length"
        )
        assert beyond == 0
        assert driver.execute_script("return document.documentElement.scrollWidth <= innerWidth + 1")
        photograph(driver, f"trend-{width}-{view[8:12]}")

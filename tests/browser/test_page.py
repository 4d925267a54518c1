"""Explorer and report as pages: addresses, empty and refused states, keyboard, paper, hostile names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.browser.axe import violations
from tests.browser.conftest import Camera, Driver, Opener, after, choice, ready, seeded, table, until, wait
from tests.declared import every_family

import dpgram as dg
from dpgram.demo import insurance
from dpgram.release import Release

VIEWS = ("regression", "person", "instruments", "columns", "correlations", "components", "promise")


@pytest.fixture(scope="module")
def release() -> Release:
    return seeded(insurance.table(20_000), insurance.schema(), epsilon=1.0, delta=1e-6)


@pytest.fixture(scope="module")
def page(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.explore(tmp_path_factory.mktemp("pages") / "insurance.html")


@pytest.fixture(scope="module")
def declared_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of a release that has the view of declared models too."""
    return every_family().explore(tmp_path_factory.mktemp("pages") / "declared.html")


def text_of(driver: Driver, identity: str) -> str:
    return str(driver.execute_script(f"return document.getElementById('{identity}').innerText"))


def test_an_address_brings_a_view_back(page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    assert driver.execute_script("return location.hash") == ""
    pick = "const list = document.getElementById('target');"
    pick += "list.value = [...list.options].find((o) => o.textContent === 'bmi').value;"
    after(driver, pick + "list.dispatchEvent(new Event('change'))")
    after(driver, "document.getElementById('none').click()")
    for name in ("age", "region"):
        click = (
            "[...document.querySelectorAll('#features label')].find((l) => l.dataset.column === arguments[0])"
        )
        after(driver, click + ".querySelector('input').click()", name)
    pick = "const list = document.querySelector('#references select');"
    after(driver, pick + "list.value = 'south'; list.dispatchEvent(new Event('change'))")
    after(driver, choice("level"), "0.9")
    shown = table(driver, "coefficients")
    assert "region=south" not in shown
    address = driver.execute_script("return location.hash")
    again = ready(opened(page, address.removeprefix("#")))
    assert table(again, "coefficients") == shown
    assert text_of(again, "asked") == "bmi from age, region; noise-aware; 90% intervals for the population"
    assert again.title == "bmi: Regression – a private release"
    # What an address says that is not true of this release is left aside.
    ready(opened(page, "view=nonsense&y=nobody&x=age&x=nothing&level=7&person=broken&lambda=x"))
    assert text_of(driver, "asked").startswith("charges from age;")


def test_empty_and_refused_states_say_what_to_do(
    page: Path, tmp_path: Path, opened: Opener, photograph: Camera
) -> None:
    driver = ready(opened(page, "x="))
    assert "No column is chosen" in text_of(driver, "notices")
    assert driver.execute_script("return document.getElementById('coefficient-chart').hidden")
    after(driver, "document.querySelector('#notices button').click()")
    assert len(table(driver, "coefficients")) > 5
    driver = ready(opened(page, "view=person&x="))
    assert "No column is chosen, so everybody has the same prediction" in text_of(driver, "person-notices")
    after(driver, "document.querySelector('#person-notices button').click()")
    assert "Who is it?" in text_of(driver, "person")
    driver.execute_script(
        "const s = document.getElementById('search'); s.value = 'xyz'; s.dispatchEvent(new Event('input'))"
    )
    assert "No column has “xyz”" in text_of(driver, "no-hit")
    drowned = seeded(insurance.table(2_000), insurance.schema(), epsilon=0.05, delta=1e-6)
    driver = ready(opened(drowned.explore(tmp_path / "noisy.html")))
    assert "No intervals are given: the privacy noise is too large" in text_of(driver, "notices")
    heads = "return document.querySelectorAll('#coefficients thead th, #coefficients thead td').length"
    assert driver.execute_script(heads) == 2, "no columns of dashes"
    before = len(table(driver, "coefficients"))
    after(driver, "document.querySelector('#notices button').click()")
    assert 0 < len(table(driver, "coefficients")) < before
    photograph(driver, "explorer-refused")
    models = [dg.logistic("smoker=yes", on=["age"])]
    drowned = seeded(
        insurance.table(2_000), insurance.schema(), epsilon=0.1, delta=1e-6, adaptive=True, models=models
    )
    driver = ready(opened(drowned.explore(tmp_path / "drowned.html"), "view=models"))
    assert "noise hides the coefficients of this model" in text_of(driver, "model-notices")
    assert table(driver, "model-coefficients") == table(driver, "model-meaning") == {}
    assert driver.execute_script("return document.getElementById('model-predicted') !== null")
    learnt = dg.Schema(dg.numeric("age", 18, 90), dg.numeric("bmi"), dg.numeric("charges"))
    release = seeded(insurance.table(20_000), learnt, epsilon=3.0, delta=1e-6, adaptive=True)
    driver = ready(opened(release.explore(tmp_path / "learnt.html")))
    after(driver, "document.querySelector('#notices button').click()")
    assert driver.execute_script("return document.querySelector('input[value=table]').checked")
    assert "No intervals" not in text_of(driver, "notices")


HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script><script>window.hacked = 2</script>",
    '"><img src=x onerror="window.hacked=3">',
    "<b>bold</b><a href='javascript:window.hacked=4'>x</a>",
    'it\'s "quoted" \\ back`tick ${window.hacked=5}',
    "\U0001f600 emoji \U0001f468\u200d\U0001f469\u200d\U0001f467",
    "\u202eright to left\u202c \u05e9\u05dc\u05d5\u05dd",
    "{{scripts}} %{x} $\\alpha$ &lt;i&gt;",
    "__proto__",
    "line\u2028separator\nnewline",
    "long " * 800,
]


def test_hostile_names_show_as_text_and_run_nothing(
    tmp_path: Path, opened: Opener, photograph: Camera
) -> None:
    rng = np.random.default_rng(1)
    rows = {name: rng.uniform(0, 1, 3000) for name in HOSTILE}
    schema = dg.Schema(
        *(dg.numeric(name, 0, 1) for name in HOSTILE[:-1]), dg.categorical(HOSTILE[-1], ["<i>a", "b"])
    )
    rows[HOSTILE[-1]] = rng.choice(["<i>a", "b"], 3000)
    release = seeded(rows, schema, epsilon=5.0, delta=1e-6, adaptive=True)
    driver = ready(opened(release.explore(tmp_path / "hostile.html"), width=390))
    names = driver.execute_script(
        "return [...document.querySelectorAll('#features label')].map((line) => line.textContent)"
    )
    assert set(HOSTILE) - set(names) == {HOSTILE[-2]}  # the target
    assert table(driver, "coefficients").keys() == set(release.regress(HOSTILE[-2]).names)
    for view in VIEWS:
        after(driver, f"document.getElementById('tab-{view}').click()")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 390, view
    # An image that fails calls its handler a while later: one that is asked for now is the last to do so.
    assert driver.get_log("browser") == []
    failing = "const image = new Image(); image.onerror = () => arguments[0](); image.src = 'x'"
    driver.execute_async_script(failing)
    driver.get_log("browser")  # of this one
    assert driver.execute_script("return window.hacked") is None
    foreign = "return document.querySelectorAll('img, iframe, b, i, main a, svg a').length"
    assert driver.execute_script(foreign) == 0
    photograph(driver, "hostile-390")


def test_many_columns_keep_their_names_and_respond(
    tmp_path: Path, opened: Opener, photograph: Camera
) -> None:
    rng = np.random.default_rng(2)
    names = [f"A long name that differs from the others near its end only, {i} of all" for i in range(120)]
    rows = rng.uniform(-1, 1, (4000, 120))
    rows[:, -1] = 0.5 * rows[:, 0] - 0.3 * rows[:, 1] + 0.1 * rows[:, -1]
    schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in names))
    release = seeded(dict(zip(names, rows.T, strict=True)), schema, epsilon=10.0, delta=1e-6)
    written = release.explore(tmp_path / "wide.html")
    assert written.stat().st_size < 2_000_000
    driver = ready(opened(written))
    answers = "return Number(document.documentElement.dataset.answers)"
    before = driver.execute_script(answers)
    after(driver, "document.getElementById('all').click()")
    assert driver.execute_script(answers) == before + 1  # not one for each of 119 boxes
    found = [values[0] for values in table(driver, "coefficients").values()]
    assert found == pytest.approx(release.regress(names[-1]).values.tolist(), rel=1e-6, abs=1e-12)
    labels = (
        "return [...document.querySelectorAll(`#${arguments[0]} .named`)].map((text) => text.textContent)"
    )
    shown = driver.execute_script(labels, "coefficient-chart")
    assert len(set(shown)) == len(shown) == 40, "the clearest, none like another"
    after(driver, "document.getElementById('show-whole').click()")
    assert len(set(driver.execute_script(labels, "coefficient-chart"))) == 119
    after(driver, "document.getElementById('tab-correlations').click()")
    assert len(set(driver.execute_script(labels, "correlation-chart"))) == 120
    photograph(driver, "wide-1280")


def test_a_wide_interval_does_not_flatten_the_chart(tmp_path: Path, opened: Opener) -> None:
    """It is cut off at the edge, with its number; the others stay legible."""
    rng = np.random.default_rng(3)
    rows = {f"x{i}": rng.uniform(-1, 1, 20_000) for i in range(6)}
    rows["rare"] = rng.uniform(-0.05, 0.05, 20_000)
    rows["y"] = np.clip(sum(rows[f"x{i}"] for i in range(6)) / 10 + rng.normal(0, 0.1, 20_000), -1, 1)
    schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in rows))
    release = seeded(rows, schema, epsilon=8.0, delta=1e-6, adaptive=False)
    frame = {row["name"]: row for row in release.regress("y").to_frame().to_dicts()}
    assert frame["rare"]["high"] - frame["rare"]["low"] > 4 * (frame["x0"]["high"] - frame["x0"]["low"])
    driver = ready(opened(release.explore(tmp_path / "rare.html")))
    told = driver.execute_script(
        "return [...document.querySelectorAll('#coefficient-chart .cut + text.small')]"
        ".map((text) => text.textContent)"
    )
    assert [float(text.replace("−", "-")) for text in told] == pytest.approx(
        [2 * frame["rare"]["low"]], rel=1e-2
    )


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        (1280, False),
        (390, True),
        pytest.param(1280, True, marks=pytest.mark.full),
        pytest.param(390, False, marks=pytest.mark.full),
    ],
    ids=["desktop, light", "phone, dark", "desktop, dark", "phone, light"],
)
def test_everybody_can_use_it(
    release: Release,
    page: Path,
    declared_page: Path,
    opened: Opener,
    photograph: Camera,
    tmp_path: Path,
    width: int,
    dark: bool,
) -> None:
    """Every view and the report fit the screen, and axe-core finds nothing that hinders anybody."""
    shade = "dark" if dark else "light"
    driver = ready(opened(page, width=width, dark=dark))
    for view in VIEWS:
        after(driver, f"document.getElementById('tab-{view}').click()")
        assert driver.execute_script("return document.documentElement.scrollWidth") <= width, view
        assert violations(driver) == [], view
        if view in ("regression", "columns"):
            ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
            assert (max(json.loads(ground.replace("rgb(", "[").replace(")", "]"))) < 64) == dark
    photograph(driver, f"explorer-{width}-{shade}")
    driver = ready(opened(declared_page, "view=models", width=width, dark=dark))
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert len(table(driver, "model-coefficients")) == 3
    assert violations(driver) == []
    photograph(driver, f"models-{width}-{shade}")
    driver = opened(release.report(tmp_path / "report.html"), width=width, dark=dark)
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    assert violations(driver) == []
    photograph(driver, f"report-{width}-{shade}")


def test_the_keyboard_reaches_everything(page: Path, opened: Opener) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    driver = ready(opened(page))
    driver.find_element(By.ID, "tab-regression").send_keys(Keys.ARROW_RIGHT)
    wait(driver, "document.body.dataset.view === 'person'")
    assert driver.switch_to.active_element.get_attribute("id") == "tab-person"
    driver.switch_to.active_element.send_keys(Keys.HOME)
    wait(driver, "document.body.dataset.view === 'regression'")
    driver.find_element(By.ID, "target").send_keys(Keys.TAB)
    seen = []
    for _ in range(3):
        active = driver.switch_to.active_element
        seen.append(active.get_attribute("id"))
        active.send_keys(Keys.TAB)
    assert seen == ["search", "all", "none"]
    box = driver.find_element(By.CSS_SELECTOR, "#features input")
    answers = int(driver.execute_script("return document.documentElement.dataset.answers"))
    box.send_keys(Keys.SPACE)
    wait(driver, f"Number(document.documentElement.dataset.answers) > {answers}")
    assert not box.is_selected()


def test_paper_and_narrow_windows(page: Path, opened: Opener) -> None:
    """On paper the question is told in words and the controls are gone; charts follow a window's width."""
    driver = ready(opened(page, media="print"))
    shown = "return getComputedStyle(document.getElementById(arguments[0])).display !== 'none'"
    assert driver.execute_script(shown, "controls") is False
    assert driver.execute_script(shown, "views") is False
    assert "charges from" in text_of(driver, "asked")
    for view in VIEWS:  # nothing is cut off at the edge of a sheet
        driver = ready(opened(page, f"view={view}", width=720, media="print"))
        assert driver.execute_script("return document.documentElement.scrollWidth") <= 720, view
        if view == "instruments":  # only what was chosen
            ticked = "#instrument-boxes label"
            tall = f"return [...document.querySelectorAll('{ticked}')].filter((box) => box.clientHeight)"
            assert driver.execute_script(tall) == []
    driver = ready(opened(page))
    sizes = (
        "return ['coefficient-chart'].map((id) => document.getElementById(id)).map((place) =>"
        " [Number(place.querySelector('svg').getAttribute('width')), place.clientWidth])"
    )
    wide = driver.execute_script(sizes)
    size = {"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    def drawn_again() -> bool:
        found = driver.execute_script(sizes)
        return found != wide and all(width == place for width, place in found)

    until(drawn_again, "the chart is as wide as its place, which is narrower")
    # On a phone the results come first, below the question in words.
    driver = ready(opened(page, width=390, height=844))
    top = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
    assert driver.execute_script("return document.getElementById('question').open") is False
    assert driver.execute_script(top, "quality") < 844


def test_charts_leave_room_for_a_scrollbar(page: Path, opened: Opener) -> None:
    """It takes some of the page's width, and no window is told: what stands at the edge would be cut off."""
    driver = ready(opened(page, "view=correlations", width=1100))
    driver.execute_script("document.documentElement.style.paddingRight = '40px'")
    over = """
      const place = document.getElementById('correlation-chart');
      const edge = place.getBoundingClientRect().left + place.clientWidth;
      const ends = [...place.querySelectorAll('text')].map((text) => text.getBoundingClientRect().right);
      return ends.filter((end) => end > edge).length
    """
    until(lambda: driver.execute_script(over) == 0, "no text of the chart is cut off")


def test_the_policy_lets_nothing_in(page: Path, opened: Opener, driver: Driver) -> None:
    ready(opened(page))
    script = """
      const done = arguments[0];
      const extra = document.createElement("script");
      extra.textContent = "window.hacked = 6";
      document.body.append(extra);
      fetch("http://127.0.0.1:9/").then(() => done("reached"), () => done(String(window.hacked)));
    """
    assert driver.execute_async_script(script) == "undefined"
    refused = [entry["message"] for entry in driver.get_log("browser")]
    assert any("Content Security Policy" in message for message in refused)

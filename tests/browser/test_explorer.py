"""The explorer in a real browser: numbers are Python's, nothing foreign runs, it works on a phone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from tests.browser.conftest import Camera, Driver, Opener, seeded

import dpgram as dg
from dpgram.demo import insurance
from dpgram.release import Release

DIGITS = 1e-6


@pytest.fixture(scope="module")
def release() -> Release:
    return seeded(insurance.table(50_000), insurance.schema(), epsilon=1.0, delta=1e-6)


@pytest.fixture(scope="module")
def page(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.explore(tmp_path_factory.mktemp("pages") / "insurance.html")


def until(condition: Callable[[], object], what: str) -> None:
    """Five minutes are for ever, on the busiest machine."""
    end = time.monotonic() + 300
    while not condition():
        assert time.monotonic() < end, f"never true: {what}"
        time.sleep(0.02)


def wait(driver: Driver, condition: str) -> None:
    until(lambda: driver.execute_script(f"return {condition}"), condition)


def ready(driver: Driver) -> Driver:
    wait(driver, "document.documentElement.dataset.ready === 'true'")
    return driver


def after(driver: Driver, action: str, *arguments: object) -> None:
    """Do something in the page and wait for the next answer."""
    before = int(driver.execute_script("return document.documentElement.dataset.answers"))
    driver.execute_script(action, *arguments)
    wait(driver, f"Number(document.documentElement.dataset.answers) > {before}")


def choose(driver: Driver, target: str, features: list[str]) -> None:
    """By clicking, as a person does: the target in the list, None, then each box."""
    pick = (
        "const list = document.getElementById('target');"
        "list.value = [...list.options].find((o) => o.textContent === arguments[0]).value;"
        "list.dispatchEvent(new Event('change'));"
    )
    after(driver, pick, target)
    after(driver, "document.getElementById('none').click()")
    for name in features:
        click = (
            "[...document.getElementById('features').children]"
            ".find((line) => line.dataset.column === arguments[0]).querySelector('input').click()"
        )
        after(driver, click, name)


def coefficients(driver: Driver) -> dict[str, list[float | None]]:
    script = """
      return [...document.querySelectorAll("#coefficients tbody tr")].map((line) => [
        line.cells[0].textContent,
        [...line.cells].slice(1).map((cell) => (cell.dataset.value ? Number(cell.dataset.value) : null)),
        [...line.cells].slice(1).map((cell) => cell.textContent),
      ]);
    """
    rows = driver.execute_script(script)
    for _, values, texts in rows:
        for value, text in zip(values[:5], texts[:5], strict=True):
            if value is not None:  # what is shown is what is meant
                assert float(text.replace("−", "-")) == pytest.approx(value, rel=5e-3)
    return {name: values for name, values, _ in rows}


def same(driver: Driver, fit: object, level: float = 0.95, kind: str = "population") -> None:
    frame = fit.to_frame(level, kind)
    found = coefficients(driver)
    assert list(found) == list(fit.names)
    fields = ("fitted", "estimate", "std_error", "low", "high", "p_value")
    for row in frame.to_dicts():
        wanted = [row[field] for field in fields]
        if wanted[-1] is not None and wanted[-1] < 1e-300:
            wanted, found[row["name"]] = wanted[:-1], found[row["name"]][:-1]
        told = found[row["name"]]
        assert [value is None for value in told] == [value is None for value in wanted]
        numbers = [value for value in wanted if value is not None]
        assert [value for value in told if value is not None] == pytest.approx(numbers, rel=DIGITS)


def test_choosing_by_clicks_gives_pythons_numbers(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    same(driver, release.regress("charges"))
    for target, features in (
        ("charges", ["age", "smoker"]),
        ("bmi", ["exercise", "sex", "age"]),
        ("smoker=yes", ["age", "exercise"]),
    ):
        choose(driver, target, features)
        fit = release.regress(target, [n for n in insurance.schema().source_columns if n in features])
        same(driver, fit)
        shown = driver.execute_script("return document.getElementById('r-squared').dataset.value")
        assert float(shown) == pytest.approx(fit.rsquared_estimate().estimate, rel=DIGITS)
        shown = driver.execute_script("return document.getElementById('error-sd').dataset.value")
        assert float(shown) == pytest.approx(fit.residual_variance().estimate, rel=DIGITS)


def test_methods_levels_and_kinds(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    choose(driver, "charges", ["age", "bmi", "region"])
    on = ["age", "bmi", "region"]
    click = "document.querySelector(`input[value='${arguments[0]}']`).click()"
    after(driver, click, "ols")
    same(driver, release.regress("charges", on, method="ols"))
    after(driver, click, "ridge")
    same(driver, release.regress("charges", on, method="ridge"))  # the slider starts at the size of the noise
    move = (
        "const slider = document.getElementById('lambda'); slider.value = arguments[0];"
        "slider.dispatchEvent(new Event('input'))"
    )
    for place in (2.0, -4):
        after(driver, move, place)
        penalty = float(driver.execute_script("return document.getElementById('fit').dataset.penalty"))
        assert (penalty == 0.0) == (place == -4)
        same(driver, release.regress("charges", on, method="ridge", alpha=penalty))
    after(driver, click, "auto")
    after(driver, click, "table")
    level = (
        "const l = document.getElementById('level'); l.value = '0.99'; l.dispatchEvent(new Event('change'))"
    )
    after(driver, level)
    same(driver, release.regress("charges", on), 0.99, "table")


def test_the_release_is_told_and_kept_whole(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    text = driver.execute_script("return document.body.innerText")
    assert "changes the probability of any outcome" in text
    assert release.digest in text
    driver.execute_script("document.getElementById('save-release').click()")
    driver.execute_script("document.getElementById('save-python').click()")
    saved = driver.downloads / "release.dpgram.json"
    code = driver.downloads / "fit.py"
    until(lambda: saved.exists() and code.exists(), "both files are saved")
    assert saved.read_bytes() == release.to_json()
    namespace: dict[str, object] = {}
    exec(code.read_text(encoding="utf-8"), namespace)
    assert namespace["TARGET"] == "charges"


def test_components_and_correlations(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    values = driver.execute_script(
        "return [...document.querySelectorAll('#components tbody tr')]"
        ".map((line) => Number(line.cells[1].dataset.value))"
    )
    assert values == pytest.approx(release.pca().variances.tolist(), rel=DIGITS)
    correlations = release.correlation()
    matrix, (low, high) = correlations.estimate, correlations.conf_int()
    told = driver.execute_script(POINTED_AT_CELLS, len(matrix))
    names = release.columns[1:]  # without the constant
    for i, left in enumerate(names):
        for j, right in enumerate(names):
            *two, value, ends = (
                told[i][j].replace("\u2068", "").replace("\u2069", "").replace("−", "-").split("\n")
            )
            assert two == [left, right]
            numbers = [float(text) for text in (value, *ends.split(" to "))]
            assert numbers == pytest.approx([matrix[i, j], low[i, j], high[i, j]], rel=5e-3)
    listed = driver.execute_script(
        "return [...document.querySelectorAll('#correlations tbody tr')].map((line) =>"
        "[...line.querySelectorAll('.name')].map((name) => name.textContent).sort())"
    )
    assert listed == [sorted([pair.left, pair.right]) for pair in correlations.strongest()]


POINTED_AT_CELLS = """
  const cells = document.querySelector("#correlation-chart image");
  cells.scrollIntoView({ block: "center" });
  const box = cells.getBoundingClientRect();
  const tip = document.querySelector("#correlation-chart .tip");
  const places = [...Array(arguments[0]).keys()].map((k) => (k + 0.5) / arguments[0]);
  return places.map((down) => places.map((along) => {
    const at = { clientX: box.left + along * box.width, clientY: box.top + down * box.height, bubbles: true };
    cells.dispatchEvent(new PointerEvent("pointermove", at));
    return tip.innerText;
  }));
"""


def test_the_chart_of_coefficients_is_to_scale(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    choose(driver, "charges", ["age", "bmi", "exercise", "smoker"])
    drawn = driver.execute_script(
        "const all = (kind) => [...document.querySelectorAll(`#coefficient-chart svg > ${kind}`)];"
        "const lines = all('line.interval').map((line) => [line.x1.baseVal.value, line.x2.baseVal.value]);"
        "const dots = all('circle').map((dot) => dot.cx.baseVal.value).slice(1);"  # the first is the legend's
        "const diamonds = all('path.fitted').map((mark) => mark.getBBox()).slice(1);"
        "return lines.map((ends, i) => [...ends, dots[i], diamonds[i].x + diamonds[i].width / 2]);"
    )
    fit = release.regress("charges", ["age", "bmi", "exercise", "smoker"])
    widths = {"age": 72, "bmi": 50, "exercise": 20, "smoker=yes": 1}  # effects over the public ranges
    rows = {row["name"]: row for row in fit.to_frame().to_dicts()}
    wanted = [
        [widths[name] * rows[name][field] for field in ("low", "high", "estimate", "fitted")]
        for name in widths
    ]
    slope, start = np.polyfit(np.ravel(wanted), np.ravel(drawn), 1)
    assert slope > 0
    np.testing.assert_allclose(drawn, start + slope * np.array(wanted), atol=0.05)


def test_charts_follow_the_width_of_the_window(page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    wide = driver.execute_script(CHART_WIDTHS)
    size = {"width": 700, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    until(lambda: driver.execute_script(CHART_WIDTHS) != wide, "the charts are drawn again")
    assert all(width == place for width, place in driver.execute_script(CHART_WIDTHS))


CHART_WIDTHS = """
  return [...document.querySelectorAll(".chart")].map((place) => [
    Number(place.querySelector("svg").getAttribute("width")), place.clientWidth,
  ]);
"""


def test_drowned_questions_are_refused_in_words(tmp_path: Path, opened: Opener) -> None:
    release = seeded(insurance.table(2_000), insurance.schema(), epsilon=0.05, delta=1e-6)
    driver = ready(opened(release.explore(tmp_path / "noisy.html")))
    notices = driver.execute_script("return document.getElementById('notices').innerText")
    assert "No intervals are given: the privacy noise is too large" in notices
    same(driver, release.regress("charges"))


def test_a_declared_model_is_pointed_out(tmp_path: Path, opened: Opener) -> None:
    """Its robust errors are Python's; the page says which ones it shows."""
    release = seeded(
        insurance.table(5_000),
        insurance.schema(),
        epsilon=5.0,
        delta=1e-6,
        adaptive=True,
        models=[dg.linear("charges")],
    )
    driver = ready(opened(release.explore(tmp_path / "declared.html")))
    notices = "return document.getElementById('notices').innerText"
    assert "A model of this column was declared" in driver.execute_script(notices)
    choose(driver, "age", ["charges"])
    assert "was declared" not in driver.execute_script(notices)


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
    "long " * 2000,
]


def test_hostile_names_show_as_text_and_run_nothing(
    tmp_path: Path, opened: Opener, photograph: Camera
) -> None:
    rng = np.random.default_rng(1)
    table = {name: rng.uniform(0, 1, 3000) for name in HOSTILE}
    schema = dg.Schema(
        *(dg.numeric(name, 0, 1) for name in HOSTILE[:-1]), dg.categorical(HOSTILE[-1], ["<i>a", "b"])
    )
    table[HOSTILE[-1]] = rng.choice(["<i>a", "b"], 3000)
    release = seeded(table, schema, epsilon=5.0, delta=1e-6)
    driver = ready(opened(release.explore(tmp_path / "hostile.html"), width=390))
    time.sleep(0.2)  # an image that fails to load would call its handler by now
    assert driver.execute_script("return window.hacked") is None
    assert (
        driver.execute_script("return document.querySelectorAll('img, iframe, b, i, main a, svg a').length")
        == 0
    )
    names = driver.execute_script(
        "return [...document.getElementById('features').children].map((line) => line.textContent)"
    )
    assert set(HOSTILE) - set(names) == {HOSTILE[-2]}  # the target
    assert driver.execute_script("return document.documentElement.scrollWidth") <= 390
    same(driver, release.regress(HOSTILE[-2]))
    photograph(driver, "hostile-390")


def test_two_hundred_columns_respond(tmp_path: Path, opened: Opener, photograph: Camera) -> None:
    rng = np.random.default_rng(2)
    names = [f"column {i}" for i in range(200)]
    rows = rng.uniform(-1, 1, (4000, 200))
    rows[:, -1] = 0.5 * rows[:, 0] - 0.3 * rows[:, 1] + 0.1 * rows[:, -1]
    schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in names))
    release = seeded(dict(zip(names, rows.T, strict=True)), schema, epsilon=10.0, delta=1e-6)
    driver = ready(opened(release.explore(tmp_path / "wide.html")))
    same(driver, release.regress(names[-1], names[:10]))
    answers = "return Number(document.documentElement.dataset.answers)"
    before = driver.execute_script(answers)
    after(driver, "document.getElementById('all').click()")
    assert driver.execute_script(answers) == before + 1  # not one for each of 189 boxes
    fit = release.regress(names[-1])
    found = coefficients(driver)
    assert [values[0] for values in found.values()] == pytest.approx(
        fit.values.tolist(), rel=DIGITS, abs=1e-12
    )
    photograph(driver, "wide-1280")


def test_twenty_columns_stay_under_a_megabyte(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    names = [f"x{i}" for i in range(20)]
    schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in names))
    table = dict(zip(names, rng.uniform(-1, 1, (20, 3000)), strict=True))
    release = seeded(table, schema, epsilon=1.0, delta=1e-6)
    assert release.explore(tmp_path / "x.html").stat().st_size < 1_000_000


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_it_fits_the_screen(page: Path, opened: Opener, photograph: Camera, width: int, dark: bool) -> None:
    driver = ready(opened(page, width=width, dark=dark))
    assert driver.execute_script("return document.documentElement.scrollWidth") <= width
    ground = driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    channels = json.loads(ground.replace("rgb(", "[").replace(")", "]"))
    assert (max(channels) < 64) == dark
    photograph(driver, f"explorer-{width}-{'dark' if dark else 'light'}")


def test_every_control_has_a_name_and_a_contrast(page: Path, opened: Opener) -> None:
    """Labels for screen readers; texts at least 4.5 : 1 against their ground, in both colours."""
    script = """
      const unnamed = [...document.querySelectorAll("input, select, button")].filter((control) =>
        !control.labels?.length && !control.getAttribute("aria-label") && !control.textContent.trim());
      const light = (colour) => {
        const [r, g, b] = colour.match(/[\\d.]+/g).map((x) => x / 255).map((x) =>
          x <= 0.04045 ? x / 12.92 : ((x + 0.055) / 1.055) ** 2.4);
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
      };
      const ground = (node) => {
        const colour = getComputedStyle(node).backgroundColor;
        return colour !== "rgba(0, 0, 0, 0)" ? colour : ground(node.parentElement);
      };
      const kinds = "h1, h2, p, label, legend, dt, dd, small, th, td, button, caption";
      const texts = [...document.querySelectorAll(kinds)];
      const low = texts.filter((node) => node.offsetParent && node.textContent.trim()).map((node) => {
        const [a, b] = [light(getComputedStyle(node).color), light(ground(node))].sort((x, y) => y - x);
        return [(a + 0.05) / (b + 0.05), node.outerHTML.slice(0, 80)];
      }).filter(([ratio]) => ratio < 4.5);
      return [unnamed.map((control) => control.outerHTML), low];
    """
    for dark in (False, True):
        driver = ready(opened(page, dark=dark))
        assert driver.execute_script(script) == [[], []]


def test_the_keyboard_reaches_the_features(page: Path, opened: Opener) -> None:
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    driver = ready(opened(page))
    driver.find_element(By.ID, "target").send_keys(Keys.TAB)
    seen = []
    for _ in range(5):
        active = driver.switch_to.active_element
        seen.append(active.get_attribute("id") or active.get_attribute("type"))
        active.send_keys(Keys.TAB)
    assert seen[:3] == ["search", "all", "none"]
    box = driver.find_element(By.CSS_SELECTOR, "#features input")
    answers = int(driver.execute_script("return document.documentElement.dataset.answers"))
    box.send_keys(Keys.SPACE)
    wait(driver, f"Number(document.documentElement.dataset.answers) > {answers}")
    assert not box.is_selected()


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

"""Every view of the explorer in a real browser: its numbers are Python's, and its files hold them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.browser.conftest import (
    Driver,
    Opener,
    after,
    choice,
    downloaded,
    numbers,
    ready,
    seeded,
    table,
    value,
)
from tests.declared import CURVED, every_family

import dpgram as dg
from dpgram.demo import insurance
from dpgram.release import Release

DIGITS = 1e-6
CHARGES = ["age", "smoker", "region", "smoker*age"]


@pytest.fixture(scope="module")
def release() -> Release:
    schema = dg.Schema(*insurance.schema().columns, dg.product("smoker", "age"))
    made = seeded(insurance.table(30_000), schema, epsilon=4.0, delta=1e-6, adaptive=True)
    return made.described(title="Insured people, 2025")


@pytest.fixture(scope="module")
def page(release: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return release.explore(tmp_path_factory.mktemp("pages") / "insurance.html")


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
            "[...document.querySelectorAll('#features label')]"
            ".find((line) => line.dataset.column === arguments[0]).querySelector('input').click()"
        )
        after(driver, click, name)


def same(driver: Driver, fit: object, level: float = 0.95, kind: str = "population") -> None:
    found = table(driver, "coefficients")
    assert list(found) == list(fit.names)
    fields = ("fitted", "estimate", "std_error", "low", "high", "p_value")
    for row in fit.to_frame(level, kind).to_dicts():
        same_numbers(found[row["name"]], [row[field] for field in fields])


def same_numbers(told: list[float | None], wanted: list[float | None]) -> None:
    if wanted[-1] is not None and wanted[-1] < 1e-300:  # a p-value that is nothing in floats
        told, wanted = told[:-1], wanted[:-1]
    assert [number is None for number in told] == [number is None for number in wanted]
    known = [number for number in wanted if number is not None]
    assert [number for number in told if number is not None] == pytest.approx(known, rel=1e-5)


@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
def test_the_regression(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page))
    same(driver, release.regress("charges"))
    assert "noisy; in weight: long rows count less" in driver.find_element("id", "rows").text
    for target, features in (("bmi", ["exercise", "sex", "age"]), ("charges", CHARGES)):
        choose(driver, target, features)
        fit = release.regress(target, [c.name for c in release.schema.columns if c.name in features])
        same(driver, fit)
        assert value(driver, "r-squared") == pytest.approx(fit.rsquared_estimate().estimate, rel=DIGITS)
        assert value(driver, "error-sd") == pytest.approx(fit.residual_variance().estimate, rel=DIGITS)
    tests = table(driver, "tests")
    assert tests["all of them"][1] == pytest.approx(fit.fvalue, rel=DIGITS)
    assert tests["region"][1] == pytest.approx(fit.f_test("region").statistic, rel=DIGITS)
    saved = numbers(driver, "Insured-people-2025-regression.json")
    assert [row["estimate"] for row in saved["coefficients"]] == pytest.approx(
        list(fit.params.values()), rel=DIGITS
    )
    assert saved["tests"][0]["statistic"] == pytest.approx(fit.fvalue, rel=DIGITS)
    for box in ("age", "region=north"):
        driver.execute_script(
            "[...document.querySelectorAll('#tested label')]"
            ".find((line) => line.dataset.column === arguments[0]).querySelector('input').click()", box
        )  # fmt: skip
    assert value(driver, "own-result") == pytest.approx(
        fit.f_test(["age", "region=north"]).statistic, rel=DIGITS
    )
    slopes = driver.execute_script(
        "return [...document.querySelectorAll('#margins tbody tr')].map((line) =>"
        " [line.cells[0].textContent, line.cells[1].textContent, Number(line.cells[2].dataset.value)])"
    )
    wanted = [
        [name, f"smoker = {level}", dict(zip(told.names, told.effect, strict=True))[name]]
        for level in ("no", "yes")
        for name in ("age",)
        for told in (fit.marginal_effects({"smoker": level}),)
    ]
    assert slopes == [[*words, pytest.approx(effect, rel=DIGITS)] for *words, effect in wanted]
    pick = "const list = document.querySelector('#references select[data-column=region]');"
    after(driver, pick + "list.value = 'east'; list.dispatchEvent(new Event('change'))")
    same(
        driver,
        release.regress("charges", CHARGES, reference={"region": "east"}),
    )


def test_methods_levels_and_kinds(release: Release, page: Path, opened: Opener) -> None:
    on = ["age", "bmi", "region"]
    driver = ready(opened(page, "y=charges&x=age&x=bmi&x=region"))
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
        penalty = value(driver, "fit", "penalty")
        assert (penalty == 0.0) == (place == -4)
        same(driver, release.regress("charges", on, method="ridge", alpha=penalty))
    after(driver, click, "auto")
    after(driver, click, "table")
    after(driver, choice("level"), "0.99")
    same(driver, release.regress("charges", on), 0.99, "table")


@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
def test_one_person(release: Release, page: Path, opened: Opener) -> None:
    fit = release.regress("charges", ["age", "smoker", "region"])
    person = {"age": [61], "smoker": ["yes"], "region": ["south"]}
    asked = "&".join(f"person={json.dumps([name, got[0]])}" for name, got in person.items())
    driver = ready(opened(page, f"view=person&y=charges&x=age&x=smoker&x=region&level=0.9&{asked}"))
    found = fit.get_prediction(person)
    saved = numbers(driver, "Insured-people-2025-person.json")
    assert saved["person"] == {name: got[0] for name, got in person.items()}
    assert saved["prediction"]["low"] == pytest.approx(found.conf_int(0.9)[0, 0], rel=DIGITS)
    assert value(driver, "predicted") == pytest.approx(fit.predict(person)[0], rel=DIGITS)
    assert value(driver, "expected") == pytest.approx(found.predicted_mean[0], rel=DIGITS)
    for card, ends in (("expected", found.conf_int(0.9)), ("observed", found.conf_int(0.9, obs=True))):
        shown = [value(driver, card, end) for end in ("low", "high")]
        assert shown == pytest.approx(ends[0].tolist(), rel=DIGITS)
    cautions = [*fit.cautions, *fit.inference().cautions]
    assert cautions
    told = driver.execute_script("return document.getElementById('person-notices').innerText")
    assert all(f"Caution: {caution}." in told for caution in cautions)
    assert saved["cautions"] == cautions
    after(
        driver,
        "const labels = [...document.querySelectorAll('#person-form label')];"
        "const field = labels.find((label) => label.textContent === 'age');"
        "const input = document.getElementById(field.htmlFor); input.value = '40';"
        "input.dispatchEvent(new Event('input'))",
    )
    assert value(driver, "predicted") == pytest.approx(fit.predict(person | {"age": [40]})[0], rel=DIGITS)


def test_instruments(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page, "view=instruments&y=charges&x=age&x=smoker"))
    assert "Choose the column" in driver.execute_script(
        "return document.getElementById('iv-notices').innerText"
    )
    after(driver, choice("endogenous"), "bmi")
    after(
        driver,
        "[...document.querySelectorAll('#instrument-boxes label')]"
        ".find((line) => line.dataset.column === 'exercise').querySelector('input').click()",
    )
    found = release.iv("charges", "bmi", "exercise", ["age", "smoker"])
    shown = table(driver, "iv-coefficients")
    assert list(shown) == list(found.names)
    for row in found.as_rows():
        fields = ("estimate", "std_error", "low", "high", "p_value")
        same_numbers(shown[row["name"]], [row[field] for field in fields])
    saved = numbers(driver, "Insured-people-2025-instruments.json")
    assert [row["estimate"] for row in saved["coefficients"]] == pytest.approx(
        list(found.params.values()), rel=DIGITS
    )
    stage = driver.execute_script("return Number(document.querySelector('.stage').dataset.value)")
    assert stage == pytest.approx(found.first_stage[0].f_statistic, rel=1e-5)
    pieces = json.loads(driver.execute_script("return document.getElementById('rubin').dataset.pieces"))
    assert pieces == [pytest.approx(piece, rel=1e-5) for piece in found.anderson_rubin().pieces]


def test_what_is_computed_from_an_instrument_is_no_control(
    release: Release, page: Path, opened: Opener
) -> None:
    """It would hold a part of what the instrument moves fixed."""
    driver = ready(opened(page, "view=instruments&y=charges&x=smoker&x=smoker*age&x=exercise"))
    after(driver, choice("endogenous"), "bmi")
    after(
        driver,
        "[...document.querySelectorAll('#instrument-boxes label')]"
        ".find((line) => line.dataset.column === 'age').querySelector('input').click()",
    )
    found = release.iv("charges", "bmi", "age", ["smoker", "exercise"])
    stage = driver.execute_script("return Number(document.querySelector('.stage').dataset.value)")
    assert stage == pytest.approx(found.first_stage[0].f_statistic, rel=1e-5)
    told = driver.execute_script("return document.getElementById('iv-reading').innerText")
    assert "from an instrument: smoker*age." in told


@pytest.fixture(scope="module")
def declared() -> Release:
    return every_family().described(title="Patients")


@pytest.fixture(scope="module")
def declared_page(declared: Release, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return declared.explore(tmp_path_factory.mktemp("pages") / "patients.html")


def test_declared_models(declared: Release, declared_page: Path, opened: Opener) -> None:
    person = {"age": [61], "sex": ["m"]}
    asked = "&".join(f"person={json.dumps([name, got[0]])}" for name, got in person.items())
    driver = ready(opened(declared_page, f"view=models&level=0.99&{asked}"))
    for place, (family, target, on) in enumerate(CURVED):
        after(driver, choice("model"), str(place))
        fit = declared.regress(target, on, family=family)
        shown, ends = table(driver, "model-coefficients"), fit.conf_int(0.99)
        saved = numbers(driver, "Patients-models.json")
        assert (saved["family"], saved["target"], saved["on"]) == (family, target, on)
        assert list(shown) == [row["name"] for row in saved["coefficients"]] == list(fit.names)
        for row in saved["coefficients"]:
            name = row["name"]
            wanted = [fit.params[name], fit.bse[name], *ends[name], fit.pvalues[name]]
            same_numbers(shown[name], wanted)
            same_numbers([row[field] for field in ("estimate", "error", "low", "high", "p")], wanted)
        effects = fit.marginal_effects(0.99)
        ratios = {"logistic": fit.odds_ratios, "poisson": fit.rate_ratios}.get(family)
        wanted = {
            name: [*([] if ratios is None else ratios(0.99)[name]), *effect]
            for name, effect in effects.items()
        }
        assert table(driver, "model-meaning") == {
            name: pytest.approx(line, rel=DIGITS) for name, line in wanted.items()
        }
        predicted = [fit.predict(person)[0], *fit.predict_interval(person, 0.99)[0]]
        told = [value(driver, "model-predicted"), value(driver, "model-expected")]
        told += [value(driver, "model-expected", end) for end in ("low", "high")]
        assert told == pytest.approx(predicted, rel=DIGITS)
        fields = ("fitted", "mean", "low", "high")
        assert [saved["prediction"][field] for field in fields] == pytest.approx(predicted, rel=DIGITS)


def test_a_declared_linear_model(declared: Release, declared_page: Path, opened: Opener) -> None:
    """It has robust errors and their test; another model of its target says that its own are not."""
    driver = ready(opened(declared_page, "y=cost&x=age&x=sex"))
    fit = declared.regress("cost", ["age", "sex"])
    same(driver, fit)
    test = fit.inference().unequal_variance
    assert value(driver, "unequal-variance") == pytest.approx(test.statistic, rel=DIGITS)
    saved = numbers(driver, "Patients-regression.json")
    assert [row["std_error"] for row in saved["coefficients"]] == pytest.approx(
        fit.to_frame()["std_error"].to_list(), rel=DIGITS
    )
    other = ready(opened(declared_page, "y=cost&x=age"))
    same(other, declared.regress("cost", ["age"]))
    assert "unequal variance" in other.execute_script("return document.getElementById('notices').innerText")
    assert other.execute_script("return document.getElementById('unequal-variance')") is None


def test_columns(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page, "view=columns&column=bmi&kind=table"))
    for name in ("bmi", "region"):
        after(driver, choice("column"), name)
        histogram = release.histogram(name)
        drawn = json.loads(
            driver.execute_script("return document.getElementById('column-chart').dataset.counts")
        )
        counts = [count for word, count in drawn if word not in histogram.lost]
        assert counts == pytest.approx(histogram.counts.tolist(), rel=DIGITS)
        lost = {word: count for word, count in drawn if word in histogram.lost}
        assert lost == pytest.approx(dict(histogram.lost), rel=DIGITS)
        bars = driver.execute_script("return document.querySelectorAll('#column-chart rect').length")
        assert bars == len(drawn)
    saved = numbers(driver, "Insured-people-2025-columns.json")
    assert saved["histogram"]["counts"] == pytest.approx(histogram.counts.tolist(), rel=DIGITS)
    described = release.describe(kind="table")
    shown = table(driver, "description")
    assert list(shown) == [column.name for column in described.columns]
    for column in described.columns:
        wanted = [column.mean, column.deviation, *([column.count] if column.count else [])]
        ends = [end for told in wanted for end in (told.estimate, told.low, told.high)]
        assert [number for number in shown[column.name] if number is not None] == pytest.approx(
            ends, rel=DIGITS
        )


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


def test_correlations_and_components(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page, "view=correlations&pair=bmi&pair=charges"))
    correlations = release.correlation()
    matrix, (low, high) = correlations.estimate, correlations.conf_int()
    told = driver.execute_script(POINTED_AT_CELLS, len(matrix))
    names = list(correlations.names)
    assert names == [name for name in release.columns[1:] if "*" not in name]  # without products
    for i, left in enumerate(names):
        for j, right in enumerate(names):
            *two, number, ends = (
                told[i][j].replace("\u2068", "").replace("\u2069", "").replace("−", "-").split("\n")
            )
            assert two == [left, right]
            shown = [float(text) for text in (number, *ends.split(" to "))]
            assert shown == pytest.approx([matrix[i, j], low[i, j], high[i, j]], rel=5e-3)
    pair = json.loads(driver.execute_script("return document.getElementById('pair-told').dataset.value"))
    i, j = names.index("bmi"), names.index("charges")
    assert pair == pytest.approx([matrix[i, j], low[i, j], high[i, j]], rel=DIGITS)
    listed = driver.execute_script(
        "return [...document.querySelectorAll('#strongest tbody tr')].map((line) =>"
        "[...line.querySelectorAll('.name')].map((name) => name.textContent).sort())"
    )
    offered = "return [...document.getElementById('pair-left').options].map((option) => option.textContent)"
    assert driver.execute_script(offered) == names
    # Two levels are equally strong, but for the last digit.
    assert sorted(listed) == sorted(sorted([pair.left, pair.right]) for pair in correlations.strongest())
    saved = numbers(driver, "Insured-people-2025-correlations.json")
    np.testing.assert_allclose(saved["low"], low, rtol=DIGITS)
    assert saved["cautions"] == list(correlations.cautions)
    assert correlations.cautions[0] in driver.find_element("id", "correlation-notices").text
    after(driver, "document.getElementById('tab-components').click()")
    saved = numbers(driver, "Insured-people-2025-components.json")
    (bounded,) = release.pca().cautions
    assert saved["cautions"] == [bounded]
    assert bounded in driver.find_element("id", "pca-notices").text
    wanted = release.pca().variances.tolist()
    assert [component["variance"] for component in saved["list"]] == pytest.approx(wanted, rel=DIGITS)
    shown = driver.execute_script(
        "return [...document.querySelectorAll('#component-table tbody tr')]"
        ".map((line) => Number(line.cells[1].dataset.value))"
    )
    assert shown == pytest.approx(release.pca().variances[:20].tolist(), rel=DIGITS)


def test_the_files_it_saves(release: Release, page: Path, opened: Opener) -> None:
    driver = ready(opened(page, "view=promise"))
    text = driver.execute_script("return document.body.innerText")
    assert "changes the probability of any outcome" in text
    assert release.digest in text
    assert driver.title == "The promise – Insured people, 2025"
    whole = downloaded(driver, "save-release", "Insured-people-2025.dpgram.json")
    assert whole.read_bytes() == release.to_json()
    after(driver, "document.getElementById('tab-regression').click()")
    code = downloaded(driver, "save-python", "Insured-people-2025-charges.py")
    fitted = downloaded(driver, "save-json", "Insured-people-2025-charges.json")
    namespace: dict[str, object] = {}
    exec(code.read_text(encoding="utf-8"), namespace)
    assert namespace["TARGET"] == "charges"
    model, frame = json.loads(fitted.read_text(encoding="utf-8")), release.regress("charges").to_frame()
    for field in ("fitted", "estimate", "std_error", "low", "high"):
        told = [coefficient[field] for coefficient in model["coefficients"]]
        assert told == pytest.approx(frame[field].to_list(), rel=DIGITS)


def test_the_chart_of_coefficients_is_to_scale(release: Release, page: Path, opened: Opener) -> None:
    on = ["age", "bmi", "exercise", "smoker"]
    driver = ready(opened(page, "y=charges&" + "&".join(f"x={name}" for name in on)))
    drawn = driver.execute_script(
        "const all = (kind) => [...document.querySelectorAll(`#coefficient-chart svg > ${kind}`)];"
        "const lines = all('line.interval').map((line) => [line.x1.baseVal.value, line.x2.baseVal.value]);"
        "const dots = all('circle').map((dot) => dot.cx.baseVal.value).slice(1);"  # the first is the legend's
        "const diamonds = all('path.fitted').map((mark) => mark.getBBox()).slice(1);"
        "return lines.map((ends, i) => [...ends, dots[i], diamonds[i].x + diamonds[i].width / 2]);"
    )
    fit = release.regress("charges", on)
    widths = {"age": 72, "bmi": 50, "exercise": 20, "smoker=yes": 1}  # effects over the public ranges
    rows = {row["name"]: row for row in fit.to_frame().to_dicts()}
    wanted = [
        [widths[name] * rows[name][field] for field in ("low", "high", "estimate", "fitted")]
        for name in widths
    ]
    slope, start = np.polyfit(np.ravel(wanted), np.ravel(drawn), 1)
    assert slope > 0
    np.testing.assert_allclose(drawn, start + slope * np.array(wanted), atol=0.05)
    words = driver.execute_script("return document.getElementById('coefficient-chart').textContent")
    assert "over the column's public range" in words

"""Mistakes that people make: each is told beside its field with the remedy, and mended on the same page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest
from tests.unit.wizard.browsing import Browser, started
from tests.unit.wizard.conftest import write_visits
from tests.unit.wizard.test_flow import BY_HAND, COLUMNS, to_budget, to_columns, to_review

import dpgram as dg
from dpgram.privacy.ledger import Ledger


def told(browser: Browser, field: str, *words: str) -> None:
    """One message, beside that field, in the summary above too, and easy to find for a screen reader."""
    assert list(browser.errors) == [field], browser.errors
    for word in words:
        assert word in browser.errors[field]
    assert (
        f'aria-describedby="{field}-hint {field}-error"' in browser.text or f"{field}-error" in browser.text
    )
    assert f'<a href="#{field}">' in browser.text
    assert "Nothing was spent" in browser.text


@pytest.fixture(scope="module")
def settled(tmp_path_factory: pytest.TempPathFactory) -> Browser:
    """Every step is in order; each test breaks one and mends it again."""
    folder = write_visits(tmp_path_factory.mktemp("visits"))
    (folder / "taken.html").write_text("somebody's page")
    browser = started(folder)
    to_budget(browser)
    browser.send("budget")
    assert browser.address == "outputs"
    return browser


class TestTheData:
    def test_no_file_is_chosen(self, visits: Path) -> None:
        browser = started(visits)
        browser.send("data", press="do=read")
        told(browser, "file", "no file is named")

    def test_a_file_that_is_not_there(self, visits: Path) -> None:
        browser = started(visits)
        browser.send("data", {"path": "vists.csv"}, press="do=read")
        told(browser, "path", "there is no file 'vists.csv'", "Choose one from the list")

    def test_a_file_that_is_no_table(self, visits: Path) -> None:
        (visits / "letter.docx").write_text("Dear all")
        browser = started(visits)
        browser.send("data", {"path": "letter.docx"}, press="do=read")
        told(browser, "path", "format")


COLUMN_MISTAKES = [
    ({"c0.low": "90", "c0.high": "18"}, "c0.low", "reversed"),
    ({"c0.low": ""}, "c0.low", "one bound only"),
    ({"c0.low": "eighteen"}, "c0.low", "'eighteen' is no number in the form of this column"),
    ({"c0.high": "1e400"}, "c0.low", "finite"),
    ({"c1.levels": "no\nno"}, "c1.levels", "lists a level twice"),
    ({"c1.level_labels": "does not smoke"}, "c1.level_labels", "another number of labels"),
    ({"c1.kind": "ordinal", "c1.levels": ""}, "c1.levels", "levels"),
    ({"c2.decimal": ",", "c2.thousands": ","}, "c2.low", "must differ"),
    ({"c0.low": "", "c0.high": ""}, "c0.low", "'age' is not filled in"),
    ({"c1.levels": ""}, "c1.levels", "tick that a part of the budget learns it"),
    ({"c2.decimal": ",", "c2.high": "50.000"}, "c2.high", "in which the decimal mark is ','"),
    ({"c2.decimal": "x"}, "c2.decimal", "mark is not one"),
    ({"c2.kind": "date"}, "c2.low", "dates"),
    ({"c1.kind": "boolean", "c1.true": "yes"}, "c1.true", "given together"),
]


class TestTheColumns:
    @pytest.mark.parametrize(("changes", "field", "word"), COLUMN_MISTAKES, ids=str)
    def test_a_mistake(self, settled: Browser, changes: dict[str, str], field: str, word: str) -> None:
        settled.open("columns")
        before = dict(settled.form("columns").fields)
        settled.send("columns", dict(changes))
        told(settled, field, word)
        settled.send("columns", {name: before[name] for name in changes})
        assert settled.address == "people", settled.errors

    def test_bounds_beside_the_tick_that_they_are_learnt(self, visits: Path) -> None:
        browser = started(visits)
        to_columns(browser)
        browser.send("columns", {**COLUMNS, "c0.learn": "on"})
        told(browser, "c0.learn", "nothing of it is left open")

    def test_everything_is_left_out(self, visits: Path) -> None:
        browser = started(visits)
        to_columns(browser)
        browser.send("columns", {f"c{number}.kind": "" for number in range(3)})
        told(browser, "columns", "every column is left out")

    def test_a_kind_that_is_none(self, visits: Path) -> None:
        browser = started(visits)
        to_columns(browser)
        fields = [(name, value) for name, value in browser.form("columns").fields if name != "c0.kind"]
        browser.post("columns", [*fields, ("c0.kind", "secret")])
        told(browser, "c0.kind", "no kind of column")


class TestRemedies:
    """What the check proposes is one click: how cells are written, never a bound or a level of the data."""

    @pytest.fixture
    def messy(self, tmp_path: Path) -> Browser:
        rows = "".join(
            f"{20 + i % 60};{i % 9}.{i % 10}00,50;{'k.A.' if i % 30 == 0 else ('ja', 'nein')[i % 2]};"
            f"{('Süd ', 'NORD')[i % 2]};{-999 if i % 40 == 0 else i % 30}\n"
            for i in range(600)
        )
        (tmp_path / "messy.csv").write_bytes(f"alter;kosten;raucher;region;wert\n{rows}".encode("latin-1"))
        browser = started(tmp_path)
        browser.send("data", {"file": "messy.csv"}, press="do=read")
        browser.follow("columns")
        changes = {
            "c0.low": "18", "c0.high": "90", "c1.low": "0", "c1.high": "20000", "c1.decimal": "",
            "c1.thousands": "", "c2.kind": "boolean", "c3.kind": "categorical", "c3.levels": "süd\nnord",
            "c4.low": "0", "c4.high": "40",
        }  # fmt: skip
        browser.send("columns", dict(changes), press="do=check")
        assert browser.address == "columns", browser.errors
        return browser

    def test_all_are_mended_by_clicks(self, messy: Browser) -> None:
        found = messy.session.found
        assert found is not None
        assert found.much_is_lost
        assert {cause.column for cause in found.causes} == {"kosten", "raucher", "region", "wert"}
        assert "Mend it: <bdi>take “k.A.” for a missing value</bdi>" in messy.text
        assert "Mend it: <bdi>read “ja” as yes; read “nein” as no</bdi>" in messy.text
        pressed = 0
        while buttons := [each for each in messy.form("columns").buttons if each[0] == "remedy"]:
            messy.send("columns", press=f"remedy={buttons[0][1]}")
            pressed += 1
            assert pressed < 10
        found = messy.session.found
        assert found is not None
        assert not found.much_is_lost
        columns = {entry["name"]: entry for entry in messy.session.form["columns"]}
        assert columns["kosten"] | {"thousands": ".", "decimal": ","} == columns["kosten"]
        assert columns["raucher"]["true"] == ["ja"]
        assert columns["raucher"]["missing"] == ["k.A."]
        assert columns["region"] | {"case": "lower", "trim": True} == columns["region"]
        assert columns["region"]["levels"] == ["süd", "nord"]
        assert columns["wert"]["missing"] == ["-999"] or columns["wert"]["missing"] == [-999]
        assert (columns["wert"]["low"], columns["wert"]["high"]) == (0, 40)

    def test_a_remedy_that_nobody_proposed(self, messy: Browser) -> None:
        before = messy.session.form
        for made_up in ("99", "-1", "x", "0; epsilon = 100"):
            messy.post("columns", [*messy.form("columns").fields, ("remedy", made_up)])
            assert messy.session.form == before

    def test_exact_counts_do_not_reach_the_job_file(self, messy: Browser) -> None:
        text = messy.session.job_path.read_text()
        assert "600" not in text


class TestThePeople:
    @pytest.mark.parametrize(
        ("changes", "field", "word"),
        [
            ({"expected": ""}, "expected", "public guess"),
            ({"expected": "many"}, "expected", "number"),
            ({"expected": "-5"}, "expected", "above zero"),
            ({"expected": "2.5"}, "expected", "number"),
            ({"expected": "1" + 400 * "0"}, "expected", "up to 8,589,934,591"),
            ({"who": "person"}, "unit", "Choose the one that says whose row it is"),
            ({"who": "person", "unit": "age"}, "unit", "cannot be published as well"),
            ({"who": "person", "unit": "patient", "count": "rows"}, "unit_rows", "whole number"),
            ({"who": "person", "unit": "patient", "count": "rows", "unit_rows": "0"}, "unit_rows", ""),
        ],
        ids=str,
    )
    def test_a_mistake(self, tmp_path: Path, changes: dict[str, str], field: str, word: str) -> None:
        rows = "".join(f"P{i % 100:05d},{20 + i % 60},{i % 90}\n" for i in range(300))
        (tmp_path / "visits.csv").write_text(f"patient,age,cost\n{rows}")
        browser = started(tmp_path)
        to_columns(browser)
        bounds = {"c1.low": "18", "c1.high": "90", "c2.low": "0", "c2.high": "90"}
        browser.send("columns", {"c0.kind": "", **bounds})
        browser.send("people", {"expected": "300", **changes})
        told(browser, field, word)
        good = {"who": "person", "unit": "patient", "count": "rows", "unit_rows": "5", "expected": "300"}
        browser.send("people", dict(good))
        assert browser.address == "budget", browser.errors
        assert browser.session.form["rows"] == {"unit": "patient", "unit_rows": 5, "expected": 300}


def test_a_guess_that_no_table_has_in_a_job_file(visits: Path) -> None:
    (visits / "old.toml").write_text(BY_HAND.replace("expected = 2000", f"expected = 1{400 * '0'}"))
    browser = started(visits, "old.toml")
    browser.send("data", press="do=read")
    browser.open("budget")
    assert browser.status == 200
    assert "No forecast: the expected number of rows is more than any table can have" in browser.text


def test_the_forecast_knows_the_adjacency(visits: Path) -> None:
    told_of = []
    for adjacency in ("add-remove", "replace-one"):
        text = BY_HAND.replace("delta = 1e-7", f'delta = 1e-7\nadjacency = "{adjacency}"')
        (visits / "old.toml").write_text(text)
        browser = started(visits, "old.toml")
        browser.send("data", press="do=read")
        told_of.append(browser.open("budget").split('<table id="forecast">')[1].split("</table>")[0])
    assert told_of[0] != told_of[1]


class TestTheBudget:
    @pytest.mark.parametrize(
        ("changes", "field", "word"),
        [
            ({"epsilon": ""}, "epsilon", "Type a number"),
            ({"epsilon": "much"}, "epsilon", "Type a number"),
            ({"epsilon": "0"}, "epsilon", "ε"),
            ({"epsilon": "5"}, "epsilon", "budget"),
            ({"delta": "2"}, "delta", ""),
            ({"total_epsilon": "three"}, "total_epsilon", "Type a number"),
            ({"name": ""}, "name", "Type one"),
            ({"path": ""}, "path", "Type a name"),
            ({"path": "nowhere/x.ledger"}, "path", "folder does not exist"),
            ({"path": "visits.csv"}, "path", "there already"),
            ({"pays": "existing"}, "existing", "no ledger is chosen"),
        ],
        ids=str,
    )
    def test_a_mistake(self, settled: Browser, changes: dict[str, str], field: str, word: str) -> None:
        settled.open("budget")
        before = dict(settled.form("budget").fields)
        settled.send("budget", dict(changes))
        told(settled, field, word)
        settled.send("budget", {name: before[name] for name in changes})
        assert settled.address == "outputs", settled.errors

    def test_a_ledger_with_too_little_left(self, visits: Path) -> None:
        book = Ledger.create(visits / "year.ledger", name="year", epsilon=1, delta=1e-6)
        schema = dg.Schema(dg.numeric("age", 0, 1))
        dg.publish({"age": [0.5] * 5_000}, schema, epsilon=0.8, delta=1e-6, ledger=book)
        browser = started(visits)
        to_budget(browser)
        assert "of the budget is left" in browser.text
        browser.send(
            "budget", {"pays": "existing", "existing": "year.ledger", "epsilon": "1", "delta": "1e-6"}
        )
        told(browser, "epsilon", "left")
        browser.send("budget", {"epsilon": "0.1"})
        assert browser.address == "outputs", browser.errors


class TestTheFiles:
    @pytest.mark.parametrize(
        ("changes", "field", "word"),
        [
            ({"release": ""}, "release", "Type one"),
            ({"release": "visits.json"}, "release", "must end in .dpgram.json"),
            ({"explorer": "visits-report.html"}, "report", "same name"),
            ({"report": "nowhere/r.html"}, "report", "folder does not exist"),
            ({"explorer": "taken.html"}, "explorer", "there already"),
            ({"sign": "existing", "key": "visits.csv"}, "key", ""),
            ({"sign": "new", "key": "visits.csv"}, "key", "never replaced"),
            ({"family": "logistic", "target": "charges"}, "target", "more than two values"),
            ({"family": "linear"}, "target", ""),
        ],
        ids=str,
    )
    def test_a_mistake(self, settled: Browser, changes: dict[str, str], field: str, word: str) -> None:
        settled.open("outputs")
        before = dict(settled.form("outputs").fields)
        settled.send("outputs", dict(changes), press="do=stay")
        told(settled, field, word)
        settled.send("outputs", {name: before[name] for name in changes}, press="do=stay")
        assert (settled.address, settled.errors) == ("outputs", {})


class TestBoxesAfterAMistake:
    """A box that is not ticked is not sent: it must not come back, nor tick another."""

    def test_columns_of_a_model(self, tmp_path: Path) -> None:
        rows = "".join(f"{20 + i % 60},{i % 5},{i % 90}\n" for i in range(300))
        (tmp_path / "visits.csv").write_text(f"age,age_group,cost\n{rows}")
        browser = started(tmp_path)
        to_columns(browser)
        bounds = {
            f"c{number}.{end}": value for number in range(3) for end, value in (("low", "0"), ("high", "90"))
        }
        browser.send("columns", {**{f"c{number}.kind": "number" for number in range(3)}, **bounds})
        browser.send("people", {"expected": "300"})
        browser.send("budget")
        model = {"family": "linear", "target": "cost"}
        browser.send("outputs", dict(model), press="do=stay")
        assert len(browser.session.form["models"]) == 1
        mistake = {"family": "linear", "on": ["age_group"], "drop": ["0"]}
        browser.send("outputs", dict(mistake), press="do=stay")
        assert list(browser.errors) == ["target"]
        sent = browser.form("outputs").fields
        assert [value for name, value in sent if name == "on"] == ["age_group"]
        assert ("drop", "0") in sent
        browser.send("outputs", {"target": "cost"}, press="do=stay")
        assert browser.session.form["models"] == [{**model, "on": ["age_group"]}]

    def test_blanks_around_a_text(self, visits: Path) -> None:
        browser = started(visits)
        to_columns(browser)
        browser.send("columns", {**COLUMNS, "c1.trim": ["on"]})
        browser.open("columns")
        assert ("c1.trim", "on") in browser.form("columns").fields
        browser.send("columns", {"c1.trim": [], "c0.low": "99"})
        assert list(browser.errors) == ["c0.low"]
        assert ("c1.trim", "on") not in browser.form("columns").fields
        browser.send("columns", {"c0.low": "18"})
        assert "trim" not in browser.session.form["columns"][1]


def test_an_output_that_appears_meanwhile(visits: Path) -> None:
    """Refused by the job itself before anything is charged, and told on a page."""
    browser = started(visits)
    to_review(browser)
    (visits / "visits.html").write_text("somebody's page")
    browser.send("review", press="do=publish")
    assert "exists already" in browser.text
    assert "Nothing was spent" in browser.text
    assert Ledger.open(visits / "visits.ledger").left().share == 1
    (visits / "visits.html").unlink()
    browser.open("review")
    browser.send("review", press="do=review")
    browser.send("review", press="do=publish")
    assert browser.address == "done"


def test_a_review_of_something_incomplete(visits: Path) -> None:
    browser = started(visits)
    to_columns(browser)
    browser.open("review")
    assert "is missing" in browser.text
    assert "Publish" not in browser.text


class TestTheFormOfTheFile:
    """A bound is typed as the cells beside it are written, and read so."""

    @pytest.fixture
    def german(self, tmp_path: Path) -> Browser:
        rows = "".join(
            f"P{i // 2:06d};{i % 40}.{i % 10}00,50;{1 + i % 28:02d}.03.2024;{i % 50}\n" for i in range(400)
        )
        (tmp_path / "besuche.csv").write_text(f"Patienten-Nr;Kosten;Besuch;Alter\n{rows}", encoding="utf-8")
        browser = started(tmp_path)
        browser.send("data", {"file": "besuche.csv"}, press="do=read")
        browser.follow("columns")
        return browser

    TYPED: Final = {
        "c1.low": "0", "c1.high": "50.000", "c2.low": "01.01.2024", "c2.high": "2024-12-31", "c3.low": "0",
        "c3.high": "110", "c1.source": "tariff of 2024",
    }  # fmt: skip

    def test_marks_and_dates(self, german: Browser) -> None:
        german.send("columns", dict(self.TYPED))
        assert german.address == "people", german.errors
        cost, visit, _ = german.session.form["columns"]
        assert (cost["low"], cost["high"]) == (0, 50_000)
        assert (visit["low"], visit["high"]) == ("2024-01-01", "2024-12-31")
        german.open("columns")
        fields = dict(german.form("columns").fields)
        assert (fields["c1.high"], fields["c2.high"]) == ("50000", "31.12.2024")
        german.send("columns", {"c1.high": "1.250,5"})
        german.open("columns")
        assert dict(german.form("columns").fields)["c1.high"] == "1250,5"
        german.send("columns", {"c1.decimal": "", "c1.thousands": ""})
        assert german.session.form["columns"][0]["high"] == 1250.5, "what nobody typed stays"

    def test_where_a_column_looks_like_an_id_nobody_decides_for_the_person(self, german: Browser) -> None:
        german.send("columns", dict(self.TYPED))
        assert "who" not in dict(german.form("people").fields)
        assert "Patienten-Nr</bdi> looks like an id" in german.text
        german.send("people", {"expected": "200"})
        told(german, "who", "not said who is protected")
        german.send("people", {"who": "person", "unit": "Patienten-Nr"})
        assert german.address == "budget", german.errors
        german.open("people")
        assert dict(german.form("people").fields)["who"] == "person"

    def test_the_review_is_a_table_of_the_columns(self, german: Browser) -> None:
        german.send("columns", {**self.TYPED, "c3.low": "", "c3.high": "", "c3.learn": "on"})
        german.send("people", {"who": "person", "unit": "Patienten-Nr", "expected": "20000"})
        german.send("budget")
        german.send("outputs")
        assert german.address == "review", german.errors
        lines = [re.sub(r"<[^>]*>", "|", line) for line in german.text.splitlines() if 'scope="row"' in line]
        found = [[part for part in line.split("|") if part] for line in lines]
        assert found == [
            ["Patienten-Nr", "left out: it says whose row it is"],
            ["Kosten", "a number", "0 to 50000", "tariff of 2024"],
            ["Besuch", "a date", "01.01.2024 to 31.12.2024", "not stated"],
            ["Alter", "a number", "to be learnt", "a part of the budget"],
        ]

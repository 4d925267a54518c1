"""A workbook with several sheets: which one is meant is asked in step 1."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.unit.wizard.browsing import Browser, started
from tests.unit.wizard.test_flow import COLUMNS

from dpgram.job import Job

SHEETS = ("Cover", "Visits 2025", "Visits 2024 ")


@pytest.fixture
def book(tmp_path: Path) -> Path:
    openpyxl = pytest.importorskip("openpyxl")
    written = openpyxl.Workbook()
    written.remove(written.active)
    for number, name in enumerate(SHEETS):
        sheet = written.create_sheet(name)
        sheet.append(["Report"] if number == 0 else ["age", "smoker", "charges"])
        for row in range(300 if number else 3):
            sheet.append([20 + row % 60, "yes" if row % 3 else "no", 100 * (row % 90)])
    written.save(tmp_path / "visits.xlsx")
    return tmp_path


def read(browser: Browser, sheet: str) -> None:
    browser.send("data", {"file": "visits.xlsx", "sheet": sheet}, press="do=read")


def test_a_sheet_is_chosen(book: Path) -> None:
    browser = started(book)
    read(browser, "")
    told = browser.errors["sheet"]
    assert "has several sheets; got 'Cover', 'Visits 2025'" in told
    assert told.endswith("Say which one is meant: the sheet")
    read(browser, "Visits 2023")
    assert "no such sheet" in browser.errors["sheet"]
    read(browser, "Visits 2025")
    assert not browser.errors
    browser.follow("columns")
    browser.send("columns", dict(COLUMNS))
    browser.send("people", {"expected": "300"})
    browser.send("budget")
    browser.send("outputs")
    assert "300 of 300 rows can be used" in browser.text
    assert Job.from_file(book / "visits-job.toml").schema.layout.sheet == "Visits 2025"


def test_a_job_goes_on_with_its_sheet_and_another_sheet_is_another_job(book: Path) -> None:
    browser = started(book)
    read(browser, "Visits 2025")
    browser.follow("columns")
    browser.send("columns", dict(COLUMNS))
    again = started(book, "visits-job.toml")
    again.send("data", {"file": "visits.xlsx"}, press="do=read")
    assert again.session.job_path.name == "visits-job.toml"
    assert again.session.form["columns"][0]["low"] == 18
    read(again, "Visits 2024 ")  # as on the tab, blank and all
    assert again.session.job_path.name == "visits-job-2.toml"
    assert again.session.form["data"]["sheet"] == "Visits 2024 "


def test_a_file_without_sheets_has_none(book: Path) -> None:
    (book / "visits.csv").write_text("age\n31\n")
    browser = started(book)
    browser.send("data", {"file": "visits.csv", "sheet": "Visits 2025"}, press="do=read")
    assert "only the file of a workbook has sheets" in browser.errors["sheet"]


@pytest.fixture
def titled(tmp_path: Path) -> Path:
    """A title above the names, and a total below the table."""
    openpyxl = pytest.importorskip("openpyxl")
    written = openpyxl.Workbook()
    rows = [[20 + row % 60, "yes" if row % 3 else "no", 100 * (row % 90)] for row in range(300)]
    for row in (["Visits of 2025"], ["age", "smoker", "charges"], *rows, ["Total", None, 12_345]):
        written.active.append(row)
    written.save(tmp_path / "visits.xlsx")
    return tmp_path


def rows_of(browser: Browser) -> dict[str, str]:
    return {
        name: value for name, value in browser.form("data").fields if name in ("skip", "header", "footer")
    }


def test_where_the_table_stands_is_guessed_said_and_corrected(titled: Path) -> None:
    browser = started(titled)
    browser.send("data", {"file": "visits.xlsx"}, press="do=read")
    assert "seems to hold more than its table" in browser.text
    assert rows_of(browser) == {"skip": "1", "header": "", "footer": "1"}
    assert [column["name"] for column in browser.session.form["columns"]] == ["age", "smoker", "charges"]
    browser.send("data", {"footer": "0"}, press="do=read")
    assert browser.session.section("data")["footer"] == 0
    browser.send("data", {"footer": ""}, press="do=read")
    assert rows_of(browser)["footer"] == "0", "the guess does not come back"
    browser.send("data", {"footer": "1", "skip": "two"}, press="do=read")
    assert "must be a number of rows" in browser.errors["skip"]
    browser.send("data", {"skip": "1"}, press="do=read")
    browser.follow("columns")
    browser.send("columns", dict(COLUMNS))
    browser.send("people", {"expected": "300"})
    browser.send("budget")
    browser.send("outputs")
    assert "300 of 300 rows can be used" in browser.text
    layout = Job.from_file(titled / "visits-job.toml").schema.layout
    assert (layout.skip, layout.header, layout.footer) == (1, None, 1)
    again = started(titled, "visits-job.toml")
    again.send("data", {"file": "visits.xlsx"}, press="do=read")
    assert again.session.form["columns"][0]["low"] == 18

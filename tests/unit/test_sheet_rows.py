"""Sheets that hold more than a table: titles, rows of names, totals. Guessed, said, and read by rules."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from typer.testing import CliRunner

import dpgram as dg
from dpgram.cli import app
from dpgram.errors import DpgramError
from dpgram.job import Job
from dpgram.publishing.starter import guessed_layout, starter_schema
from dpgram.schema import Schema
from dpgram.schema.reading import FileLayout
from dpgram.sources import column_types, open_source

openpyxl = pytest.importorskip("openpyxl", reason="the extra 'test' is not installed")

PEOPLE = [[i, 110 + i % 40, 60 + i % 30, ("ja", "nein")[i % 2], 100.5 * (i % 60)] for i in range(200)]
NAMES = ["Nr", "Blutdruck sys", "Blutdruck dia", "Raucher", "Kosten"]


def book(path: Path, rows: list[list[Any]], *merged: str) -> Path:
    written = openpyxl.Workbook()
    for row in rows:
        written.active.append(row)
    for cells in merged:
        written.active.merge_cells(cells)
    written.save(path)
    return path


def messy(tmp_path: Path) -> Path:
    """A title, two rows of names with merged cells, a total behind a blank row, and a note."""
    head = [["Haushalte 2025"], [], ["Nr", "Blutdruck", None, "Raucher", "Kosten"], [None, "sys", "dia"]]
    tail = [[], ["Summe", None, None, None, 1e6], ["Quelle: Erhebung"]]
    return book(tmp_path / "h.xlsx", head + PEOPLE + tail, "A1:E1", "B3:C3", "A3:A4", "D3:D4", "E3:E4")


def test_what_is_not_of_the_table_is_guessed_and_left_out(tmp_path: Path) -> None:
    path = messy(tmp_path)
    layout = guessed_layout(path)
    assert layout == FileLayout(skip=2, header=2, footer=3)
    assert list(column_types(path, layout)) == NAMES
    rows = pa.Table.from_batches(open_source(path, NAMES, layout=layout, batch_rows=7).batches())
    assert rows.num_rows == len(PEOPLE)
    assert rows.column("Nr").to_pylist()[-1] == "199"
    text = starter_schema(path)
    assert {"skip": 2, "header": 2, "footer": 3}.items() <= tomllib.loads(text).items()
    assert "# guessed: rows below the table" in text


@pytest.mark.parametrize(
    ("head", "tail", "expected"),
    [
        ([NAMES], [], FileLayout()),
        ([["Title", "2025-01-01"], NAMES], [], FileLayout(skip=1)),
        ([["Nr", "Blutdruck", None, "Raucher", "Kosten"], [None, "sys", "dia"]], [], FileLayout(header=2)),
        ([NAMES], [["Total 2025:", None, None, None, 7.0]], FileLayout(footer=1)),
        ([NAMES], [[], ["a note"], []], FileLayout(footer=2)),
        ([NAMES], [[7, None, None, "nein", 3.0], []], FileLayout()),
        ([NAMES], [["Total hip replacement", 120, 80, "ja", 1.0]], FileLayout()),
    ],
    ids=str,
)
def test_guesses(head: list[Any], tail: list[Any], expected: FileLayout, tmp_path: Path) -> None:
    assert guessed_layout(book(tmp_path / "t.xlsx", head + PEOPLE + tail)) == expected


def test_words_below_a_merged_cell_are_names(tmp_path: Path) -> None:
    """Where all columns hold words only the merged cell tells a row of names from a row of the table."""
    head = [["Ort", "Antwort", None], [None, "erste", "zweite"]]
    words = [[("Bern", "Chur")[i % 2], "ja", "nein"] for i in range(30)]
    path = book(tmp_path / "w.xlsx", head + words, "B1:C1")
    assert guessed_layout(path) == FileLayout(header=2)
    assert list(column_types(path, guessed_layout(path))) == ["Ort", "Antwort erste", "Antwort zweite"]
    assert guessed_layout(book(tmp_path / "p.xlsx", [["Ort", "a", "b"], *words])) == FileLayout()


def described(**rows: int) -> Schema:
    return Schema(dg.numeric("Kosten", 0, 6_000), dg.boolean("Raucher", true="ja", false="nein"), **rows)


def test_rules_are_recorded_and_stay(tmp_path: Path) -> None:
    schema = described(skip=2, header=2, footer=3)
    assert Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    release = dg.publish(messy(tmp_path), schema, epsilon=1, delta=1e-6, ledger=None)
    assert dg.load(release.save(tmp_path / "r.dpgram.json")).schema.to_dict()["footer"] == 3
    assert schema.with_blocks(None).layout.header == 2
    columns = schema.to_toml().split("footer = 3")[1]
    text = f'[data]\nfile = "h.xlsx"\nskip = 2\nheader = 2\nfooter = 3\n{columns}'
    budget = '[privacy]\nepsilon = 1\ndelta = 1e-6\nledger = false\n[outputs]\nrelease = "x.json"\n'
    (tmp_path / "job.toml").write_text(text + budget)
    job = Job.from_file(tmp_path / "job.toml")
    assert job.schema == schema
    assert job.check(progress=False).counts["all"].rows_used == len(PEOPLE)


def test_a_check_says_what_the_schema_does_not(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", [NAMES, *PEOPLE, ["Summe", 1, 1, "ja", 9.0]])
    described().to_file(tmp_path / "s.toml")
    told = CliRunner().invoke(app, ["check", str(path), "-s", str(tmp_path / "s.toml")]).output
    assert "write footer = 1 at the top of the schema" in " ".join(told.split())
    described(footer=0).to_file(tmp_path / "no.toml")
    told = CliRunner().invoke(app, ["check", str(path), "-s", str(tmp_path / "no.toml")]).output
    assert "at the top of the schema" not in " ".join(told.split())


def test_a_publication_says_so_on_the_curators_screen(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", [NAMES, *PEOPLE, ["Summe", 1, 1, "ja", 9.0]])
    with pytest.warns(dg.DpgramWarning, match="write footer = 1 at the top of the schema"):
        dg.publish(path, described(), epsilon=1, delta=1e-6, ledger=None, adaptive=False)


def test_names_that_are_not_found_below_a_title(tmp_path: Path) -> None:
    with pytest.raises(DpgramError, match="has no column") as caught:
        dg.check(messy(tmp_path), described(), progress=False)
    assert "write skip = 2, header = 2, footer = 3" in str(caught.value)
    with pytest.raises(DpgramError, match="has no column 'Raucher'") as caught:
        dg.check(book(tmp_path / "p.xlsx", [["Kosten", "Ort"], [1, "Bern"]]), described(), progress=False)
    assert "at the top of the schema" not in str(caught.value)


@pytest.mark.parametrize(
    "rows", [{"skip": -1}, {"header": 0}, {"footer": 1.5}, {"skip": True}, {"header": 11}]
)
def test_numbers_that_count_no_rows(rows: dict[str, Any]) -> None:
    with pytest.raises(DpgramError, match="must be a number of rows"):
        Schema(dg.boolean("x"), **rows)


@pytest.mark.parametrize("form", ["csv", "frame"])
def test_tables_without_sheets_have_no_such_rows(form: str, tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("x\n1\n")
    data = {"csv": tmp_path / "t.csv", "frame": {"x": [1]}}[form]
    with pytest.raises(DpgramError, match="'skip' counts rows of a workbook's sheet"):
        dg.check(data, Schema(dg.numeric("x", 0, 1), skip=1), progress=False)


def test_a_footer_longer_than_the_table_leaves_no_row(tmp_path: Path) -> None:
    path = book(tmp_path / "t.xlsx", [NAMES, *PEOPLE[:3]])
    found = dg.check(path, described(footer=9), progress=False)
    assert found.counts["all"].rows_read == 0

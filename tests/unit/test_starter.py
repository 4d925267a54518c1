"""`dpgram schema`, `dpgram codebook` and queries on the command line."""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dpgram as dg
from dpgram.cli import app
from dpgram.errors import DpgramWarning, SourceError
from dpgram.publishing.starter import starter_schema
from dpgram.schema import Schema
from dpgram.sources.headers import look_like_cells

ROWS = 300
WORDS = ("the", "patient", "was", "seen", "again", "after", "some", "weeks", "and", "felt", "better", "than")
TABLE = {
    "patient_id": [f"{10_000 + i}" for i in range(ROWS)],
    "code": [f"a{i:05x}-{i * 7919 % 10_007}" for i in range(ROWS)],
    "age": [str(18 + i % 70) for i in range(ROWS)],
    "charges": [f"{1 + i % 40},{100 + i:03d}.50" for i in range(ROWS)],
    "share": [f"{i % 9},{i % 10}5" for i in range(ROWS)],
    "seen": [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2021" for i in range(ROWS)],
    "born": [f"19{10 + i % 80}-03-01" for i in range(ROWS)],
    "smoker": [("yes", "no", "NA")[i % 3] for i in range(ROWS)],
    "city": [("Zürich", "Bern", "Genève")[i % 3] for i in range(ROWS)],
    "notes": [" ".join(WORDS[i % 5 : 6 + i % 7]) + f" {i}" for i in range(ROWS)],
}


@pytest.mark.parametrize("form", ["csv", "semicolons", "latin-1", "jsonl", "parquet", "frame"])
def test_kinds_are_guessed_and_no_value_is_shown(form: str, tmp_path: Path) -> None:
    frame = pl.DataFrame(TABLE)
    forms: dict[str, Any] = {
        "csv": tmp_path / "t.csv",
        "semicolons": tmp_path / "s.csv",
        "latin-1": tmp_path / "l.csv",
        "jsonl": tmp_path / "t.jsonl",
        "parquet": tmp_path / "t.parquet",
        "frame": frame,
    }
    frame.write_csv(forms["csv"])
    frame.write_csv(forms["semicolons"], separator=";")
    forms["latin-1"].write_bytes(frame.write_csv().encode("latin-1"))
    frame.write_ndjson(forms["jsonl"])
    frame.write_parquet(forms["parquet"])
    text = starter_schema(forms[form])
    read = tomllib.loads(text)
    found = {column["name"]: column for column in read["columns"]}
    kinds = {name: column["kind"] for name, column in found.items()}
    assert kinds == {
        "age": "numeric",
        "charges": "numeric",
        "share": "numeric",
        "seen": "numeric",
        "born": "numeric",
        "smoker": "boolean",
        "city": "categorical",
    }
    assert '# left out: "patient_id" looks like an id' in text
    assert '# left out: "code" looks like an id' in text
    assert '# left out: "notes" looks like free text' in text
    assert found["charges"]["thousands"] == ","
    assert found["share"]["decimal"] == ","
    assert "a date, dd.mm.yyyy" in text
    assert read.get("separator") == (";" if form == "semicolons" else None)
    assert read.get("encoding") == ("latin-1" if form == "latin-1" else None)
    secrets = {cell for cells in TABLE.values() for cell in cells if len(cell) > 2} - {"yes"}
    assert not [secret for secret in secrets if f'"{secret}"' in text or f" {secret} " in text]


def _typed(rows: int) -> pa.Table:
    """Ids of three types in 300 persons or rows, and columns that are none."""
    return pa.table(
        {
            "id": pa.array(range(rows)),
            "patient_nr": pa.array([1_000.0 + i // 2 for i in range(rows)]),
            "case_key": pa.array([f"k{i}" for i in range(rows)]).dictionary_encode(),
            "no": pa.array([i % 3 for i in range(rows)]),
            "cost": pa.array([float(i) if i % 7 else None for i in range(rows)]),
            "ward": pa.array([("east", "west")[i % 2] for i in range(rows)]).dictionary_encode(),
        }
    )


@pytest.mark.parametrize("form", ["parquet", "arrow file", "pandas", "table", "duckdb"])
def test_ids_are_found_among_columns_with_a_type(form: str, tmp_path: Path) -> None:
    table = _typed(ROWS)
    pq.write_table(table, tmp_path / "t.parquet")
    pa.feather.write_feather(table, str(tmp_path / "t.arrow"))
    forms: dict[str, Any] = {
        "parquet": tmp_path / "t.parquet",
        "arrow file": tmp_path / "t.arrow",
        "pandas": table.to_pandas(),
        "table": table,
        "duckdb": (":memory:", f"FROM '{tmp_path / 't.parquet'}'"),
    }
    if form == "duckdb":
        pytest.importorskip("duckdb", reason="the extra 'duckdb' is not installed")
    text = starter_schema(forms[form])
    assert [column["name"] for column in tomllib.loads(text)["columns"]] == ["no", "cost", "ward"]
    assert text.count("looks like an id") == 3
    assert "The first 1,000 rows were looked at." in text


class TestNobodyFilledItIn:
    def folder(self, tmp_path: Path, learn: str = "") -> list[str]:
        table = pa.table({"age": [20.0 + i % 60 for i in range(5_000)], "smoker": [True, False] * 2_500})
        pq.write_table(table, tmp_path / "t.parquet")
        text = starter_schema(tmp_path / "t.parquet").replace("# high = \n", f"# high = \n{learn}")
        (tmp_path / "s.toml").write_text(text, encoding="utf-8")
        dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=3, delta=1e-5)
        budget = f'epsilon = 1\ndelta = 1e-6\nledger = "{tmp_path / "l.ledger"}"'
        (tmp_path / "job.toml").write_text(
            f'[data]\nfile = "t.parquet"\nschema = "s.toml"\n[privacy]\n{budget}\n'
            f'[outputs]\nrelease = "{tmp_path / "r.dpgram.json"}"\n'
        )
        return [str(tmp_path / "t.parquet"), "-s", str(tmp_path / "s.toml")]

    def asked(self, way: str, given: list[str], tmp_path: Path) -> list[str]:
        out, ledger = str(tmp_path / "r.dpgram.json"), str(tmp_path / "l.ledger")
        return {
            "publish": ["publish", *given, "--epsilon", "1", "--delta", "1e-6", "-l", ledger, "-o", out],
            "run": ["run", str(tmp_path / "job.toml"), "--yes"],
        }[way]

    @pytest.mark.parametrize("way", ["publish", "run"])
    def test_it_is_refused_and_nothing_is_spent(self, way: str, tmp_path: Path) -> None:
        given = self.folder(tmp_path)
        result = CliRunner().invoke(app, self.asked(way, given, tmp_path))
        assert "have neither bounds nor levels" in str(result.exception)
        assert "'age'" in str(result.exception)
        assert dg.Ledger.open(tmp_path / "l.ledger").entries == 0
        with pytest.raises(dg.DpgramError, match="learn = true"):
            dg.publish(given[0], Schema.from_file(given[2]), epsilon=1, delta=1e-6, ledger=None)

    def test_a_check_says_so(self, tmp_path: Path) -> None:
        given = self.folder(tmp_path)
        result = CliRunner().invoke(app, ["check", *given])
        assert result.exit_code == 0
        assert "! not filled in, so that publish will refuse the schema: 'age'" in " ".join(
            result.output.split()
        )

    @pytest.mark.parametrize("way", ["publish", "run"])
    def test_learn_is_a_decision(self, way: str, tmp_path: Path) -> None:
        given = self.folder(tmp_path, "learn = true\n")
        result = CliRunner().invoke(app, self.asked(way, given, tmp_path))
        assert result.exit_code == 0, result.output
        found = dg.load(tmp_path / "r.dpgram.json")
        assert "learn" not in found.schema.to_dict()["columns"][0]
        again = CliRunner().invoke(app, self.asked("run", given, tmp_path))
        assert "finished before" in again.output, again.output


def test_a_filled_in_starter_is_checked_without_a_loss(tmp_path: Path) -> None:
    path = tmp_path / "s.csv"
    pl.DataFrame(TABLE).write_csv(path, separator=";")
    text = starter_schema(path)
    for name, bounds in {"age": ("0", "100"), "charges": ("0", "99999"), "share": ("0", "10")}.items():
        low, high = bounds
        head, tail = text.split(f'name = "{name}"\n# low = \n# high = \n')
        text = f'{head}name = "{name}"\nlow = {low}\nhigh = {high}\n{tail}'
    text = text.replace(
        '# low = "YYYY-MM-DD"\n# high = "YYYY-MM-DD"', 'low = "1900-01-01"\nhigh = "2030-01-01"'
    )
    text = text.replace('# format = "', 'format = "').replace(
        "# levels = []  # fill in", 'levels = ["Bern", "Zürich", "Genève"]'
    )
    text = text.replace("# missing = []", 'missing = ["NA"]')
    (tmp_path / "s.toml").write_text(text, encoding="utf-8")
    found = dg.check(path, Schema.from_file(tmp_path / "s.toml"), progress=False)
    assert not found.causes
    assert all(column.lost == 0 and column.clamped == 0 for column in found.table)


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_labels_of_statistical_files_become_a_schema(ending: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'office' is not installed")
    frame = pd.DataFrame(
        {
            "age": [31.0, 45.0],
            "sex": [1, 2],
            "since": [dt.date(2020, 1, 2), dt.date(2021, 1, 2)],
            "note": ["secret-one", "secret-two"],
        }
    )
    path = tmp_path / f"survey{ending}"
    write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav}[ending]
    labels = ["Age in years", "Sex of the respondent", "Member since", ""]
    write(frame, str(path), column_labels=labels, variable_value_labels={"sex": {1: "male", 2: "female"}})
    text = starter_schema(path)
    found = {column["name"]: column for column in tomllib.loads(text)["columns"]}
    assert found["age"]["label"] == "Age in years"
    assert found["sex"] == {
        "kind": "categorical",
        "name": "sex",
        "levels": ["1", "2"],
        "level_labels": ["male", "female"],
        "source": "labels in the file",
        "label": "Sex of the respondent",
    }
    assert found["since"]["kind"] == "numeric"
    assert "YYYY-MM-DD" in text
    assert "secret" not in text
    sex = Schema.from_dict({"columns": [found["sex"]]})
    assert dg.check(path, sex, progress=False).counts["all"].rows_used == 2


def described() -> Schema:
    return Schema(
        dg.numeric("age", 18, 90, label="Age", units="years", source="rules of admission, §4"),
        dg.categorical("sex", [1, 2], level_labels=["male", "female"], missing=9, label="Sex <b>|x|</b>"),
        dg.numeric("seen", "2000-01-01", "2030-01-01", format="%d/%m/%Y", description="First visit"),
        dg.numeric("open"),
        dg.product("age", "seen"),
        encoding="latin-1",
    )


def test_a_codebook_says_what_the_schema_says(tmp_path: Path) -> None:
    text = described().codebook()
    for words in (
        "age: Age", "units: years", "source: rules of admission, §4", "level 1: male", "level 2: female",
        "missing '9'", "format '%d/%m/%Y'", "description: First visit", "range: to be learnt privately",
        "age*seen", "encoding 'latin-1'",
    ):  # fmt: skip
        assert words in text
    marked = described().codebook("markdown")
    assert "<b>" not in marked
    assert "\\<b\\>\\|x\\|" in marked
    described().to_file(tmp_path / "s.toml")
    shown = CliRunner().invoke(app, ["codebook", str(tmp_path / "s.toml")])
    assert shown.exit_code == 0
    assert shown.stdout.strip() == text.strip()
    with pytest.raises(dg.DpgramError, match="form of a codebook"):
        described().codebook("html")


def test_a_release_has_its_codebook(tmp_path: Path) -> None:
    schema = Schema(dg.numeric("age", 18, 90, label="Age", units="years", source="§4"))
    dg.publish({"age": [40.0] * 100}, schema, epsilon=1, delta=1e-6).save(tmp_path / "r.dpgram.json")
    shown = CliRunner().invoke(app, ["codebook", str(tmp_path / "r.dpgram.json"), "--markdown"])
    assert "| units | years |" in shown.stdout


@pytest.mark.parametrize(
    ("entries", "words"),
    [
        ({"label": ""}, "`label` must be text"),
        ({"units": 3}, "`units` must be text"),
        ({"level_labels": ["one"]}, "another number of labels"),
        ({"level_labels": "one"}, "list of texts"),
        ({"description": "x" * 4_001}, "characters"),
    ],
)
def test_words_about_a_column_are_checked(entries: dict[str, Any], words: str) -> None:
    with pytest.raises(dg.DpgramError, match=words):
        dg.categorical("x", ["a", "b"], **entries)


class TestQueries:
    """--query: the address of the database comes from the environment and goes nowhere."""

    SECRET = "very-secret-password"

    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / self.SECRET
        folder.mkdir()
        with sqlite3.connect(folder / "clinic.db") as connection:
            pd.DataFrame({"age": [str(20 + i % 60) for i in range(200)]}).to_sql(
                "visits", connection, index=False
            )
        connection.close()
        Schema(dg.numeric("age", 0, 100)).to_file(tmp_path / "s.toml")
        return folder

    def test_check_and_publish(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder = self.folder(tmp_path)
        monkeypatch.setenv("CLINIC_DB", f"sqlite:///{folder / 'clinic.db'}")
        ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=3, delta=1e-5)
        given = ["env:CLINIC_DB", "--query", "SELECT age FROM visits", "-s", str(tmp_path / "s.toml")]
        checked = CliRunner().invoke(app, ["check", *given])
        assert checked.exit_code == 0, checked.output
        assert "rows used      200" in checked.output
        out = tmp_path / "r.dpgram.json"
        spent = ["--epsilon", "1", "--delta", "1e-6", "-o", str(out), "--ledger", str(ledger.path)]
        made = CliRunner().invoke(app, ["publish", *given, *spent])
        assert made.exit_code == 0, made.output
        for text in (
            checked.output,
            made.output,
            out.read_text(),
            ledger.path.read_bytes().decode("latin-1"),
        ):
            assert self.SECRET not in text
        started = CliRunner().invoke(app, ["schema", "env:CLINIC_DB", "--query", "SELECT age FROM visits"])
        assert 'name = "age"' in started.stdout

    @pytest.mark.parametrize(
        ("given", "words"),
        [
            (["env:NOT_SET_ANYWHERE", "--query", "SELECT 1"], "NOT_SET_ANYWHERE' is not set"),
            (["env:CLINIC_DB"], "needs a query"),
            (["postgresql://me:very-secret-password@host/db", "--query", "SELECT 1"], "may hold a password"),
        ],
    )
    def test_mistakes(self, given: list[str], words: str, tmp_path: Path) -> None:
        self.folder(tmp_path)
        told = CliRunner().invoke(app, ["check", *given, "-s", str(tmp_path / "s.toml")])
        assert words in str(told.exception)
        assert self.SECRET not in str(told.exception)


def test_the_starter_of_a_stream_reads_no_row() -> None:
    stream = pa.table({"x": ["secret"]}).to_reader()
    assert "No row of the data was read" in starter_schema(stream)
    assert stream.read_all().num_rows == 1


def test_the_screen_shows_the_starter_as_json_too(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pl.DataFrame(TABLE).write_csv(path)
    told = CliRunner().invoke(app, ["schema", str(path), "--json"])
    assert json.loads(told.stdout)["columns"]["age"] == "text"


HEADLESS = "34,27.5,yes,2020-01-31,11500.25\n51,30.1,no,2020-02-03,9800\n"


def test_a_file_without_a_header_is_told_without_its_cells(tmp_path: Path) -> None:
    path, schema = tmp_path / "t.csv", tmp_path / "t.toml"
    path.write_text(HEADLESS)
    with pytest.warns(DpgramWarning, match="seems to have no header") as told:
        text = starter_schema(path)
    assert "None of the values is in it" not in text
    assert "# WARNING: the table seems to have no header" in text
    assert not any(cell in str(told[0].message) for cell in ("34", "27.5", "2020-01-31", "11500.25"))
    schema.write_text(text.replace("# low = \n# high = \n", "low = 0\nhigh = 99999\n"))
    found = CliRunner().invoke(app, ["check", str(path), "-s", str(schema), "--json"])
    assert "seems to have no header" in json.loads(found.stdout)["curator_only"]["warnings"][0]
    shown = CliRunner().invoke(app, ["check", str(path), "-s", str(schema)])
    assert "! the table seems to have no header" in shown.stdout


def test_cells_that_stand_twice_in_the_first_line_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("347,347,no,12\n1,2,yes,3\n")
    with pytest.raises(SourceError, match="a row of the table and not a header") as told:
        starter_schema(tmp_path / "t.csv")
    assert "347" not in str(told.value)


@pytest.mark.parametrize(
    ("names", "cells"),
    [
        (("34", "27.5"), True),
        (("1,250.00", "-3", "north"), True),
        (("12/03/2020", "31 Jan 2020", "yes", "no"), True),
        (("$12", "40%", "a"), True),
        (("34", "north", "no", "yes"), False),
        (("age", "34"), False),
        (("country", "1990", "1991", "1992"), False),
        (("0", "1", "2", "3"), False),
        (("q1", "q2", "v001", "x-3"), False),
        (("2020q1", "2020q2", "1st", "2nd"), False),
        (("", " "), False),
    ],
)
def test_names_that_look_like_cells(names: tuple[str, ...], cells: bool) -> None:
    assert look_like_cells(names) == cells


def test_a_sheet_of_several_is_named(tmp_path: Path) -> None:
    pytest.importorskip("python_calamine")
    book = pytest.importorskip("openpyxl").Workbook()
    book.active.title = "Notes"
    sheet = book.create_sheet("Daten 2020")
    for row in (["age", "smoker"], [31, "yes"], [42, "no"]):
        sheet.append(row)
    path = tmp_path / "t.xlsx"
    book.save(path)
    read = tomllib.loads(starter_schema(path, sheet="Daten 2020"))
    assert read["sheet"] == "Daten 2020"
    assert [column["name"] for column in read["columns"]] == ["age", "smoker"]
    written = CliRunner().invoke(app, ["schema", str(path), "--sheet", "Daten 2020", "--json"])
    assert list(json.loads(written.stdout)["columns"]) == ["age", "smoker"]
    for given in (None, "Daten"):
        with pytest.raises(SourceError, match="'Notes', 'Daten 2020'") as told:
            starter_schema(path, sheet=given)
        assert "sheet='…'" in str(told.value)
    with pytest.raises(SourceError, match="workbook"):
        starter_schema({"age": [31]}, sheet="Notes")


def test_the_columns_that_are_told_are_those_of_the_starter(tmp_path: Path) -> None:
    pl.DataFrame(TABLE).write_csv(tmp_path / "t.csv", separator=";")
    told = CliRunner().invoke(app, ["schema", str(tmp_path / "t.csv"), "--json"])
    assert list(json.loads(told.stdout)["columns"]) == list(TABLE)


@pytest.mark.parametrize(
    ("cells", "rules"),
    [
        (["1.234,50 EUR", "12.000,00 EUR", "7,25 EUR"], {"thousands": ".", "decimal": ",", "suffix": "EUR"}),
        (["12%", "7 %", "30.5%"], {"suffix": "%"}),
        (["$12", "$1,250.50"], {"thousands": ",", "prefix": "$"}),
        (["E11", "E10", "E11"], None),
        (["12B", "13B"], None),
        (["Grade 1", "Grade 2"], None),
    ],
)
def test_signs_and_units_beside_numbers(cells: list[str], rules: dict[str, str] | None) -> None:
    column = tomllib.loads(starter_schema({"x": cells * 10}))["columns"][0]
    assert column["kind"] == ("categorical" if rules is None else "numeric")
    found = {key: column[key] for key in ("thousands", "decimal", "prefix", "suffix") if key in column}
    assert found == (rules or {})


def test_a_header_alone_has_no_rows_to_look_at(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,bmi\n")
    text = starter_schema(tmp_path / "t.csv")
    assert "rows were looked at" not in text
    assert "Its first rows hold no value." in text


PERSONS = [i // 3 for i in range(900)]


@pytest.mark.parametrize(
    ("name", "cells", "said"),
    [
        ("Patienten-Nr", [f"{i:06d}" for i in PERSONS], "an id."),
        ("Fallnummer", [str(i) for i in PERSONS], "an id."),
        ("PatNr", [str(i) for i in PERSONS], "an id."),
        ("patientId", [f"P{i}" for i in PERSONS], "an id."),
        ("x", [f"{i:05d}" for i in PERSONS], "an id or a code: whole numbers with leading zeros."),
    ],
)
def test_ids_of_several_rows_are_left_out(name: str, cells: list[str], said: str) -> None:
    text = starter_schema({name: cells, "y": ["1"] * len(cells)})
    assert f'# left out: "{name}" looks like {said}\n# To protect all rows of a person' in text
    assert [column["name"] for column in tomllib.loads(text)["columns"]] == ["y"]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("month", [f"{1 + i % 12:02d}" for i in PERSONS]),
        ("room_no", [str(i % 9) for i in PERSONS]),
        ("flow_no", [f"{i}.5" for i in PERSONS]),
        ("paid", [str(i % 120) for i in PERSONS]),
    ],
)
def test_numbers_stay_numbers(name: str, cells: list[str]) -> None:
    (column,) = tomllib.loads(starter_schema({name: cells}))["columns"]
    assert column["kind"] == "numeric"


def test_dates_in_several_forms_are_pointed_out() -> None:
    first = [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2024" for i in range(240)]
    second = [f"{1 + i % 28:02d}/{1 + i % 12:02d}/24" for i in range(60)]
    text = starter_schema({"seen": first + second + ["k.A."], "y": ["1"] * 301})
    assert '# left out: "seen" looks like dates in several forms (dd.mm.yyyy, dd/mm/yy).' in text
    assert "# Write them in one form first" in text
    mixed = starter_schema(
        {"seen": [f"{word} {i}" for i, word in enumerate(first)] + first, "y": ["1"] * 480}
    )
    assert "several forms" not in mixed

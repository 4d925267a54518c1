"""check and publish name the columns of which much is lost, with the cause and the line for the schema."""

from __future__ import annotations

import contextlib
import json
import math
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import dpgram as dg
from dpgram.cli import app
from dpgram.engines.local import LocalEngine
from dpgram.errors import DpgramWarning, LearningError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.count_noise import CountNoise
from dpgram.publishing._adaptive import _doubt
from dpgram.publishing.column_checks import check_columns
from dpgram.publishing.losses import losses_of
from dpgram.publishing.starter import starter_schema
from dpgram.rows import Rows
from dpgram.rows.rules import row_rules

ROWS = 400
PLACES = range(ROWS)


def messy(name: str, text: list[Any], folder: Path, encoding: str = "utf-8") -> Path:
    frame = pl.DataFrame({"x": text, "y": [str(i % 7) for i in range(len(text))]}, strict=False)
    path = folder / f"{name}.csv"
    path.write_bytes(frame.write_csv().encode(encoding))
    return path


Y = dg.numeric("y", 0, 10)
CASES: dict[str, tuple[Any, list[str], str, str]] = {
    "thousands": (
        dg.numeric("x", 0, 60_000),
        [f"{1000 + 17 * i:,}.50" for i in PLACES],
        "comma as thousands separator",
        'thousands = ","',
    ),
    "decimal comma": (
        dg.numeric("x", 0, 10),
        [f"{i % 10},5" for i in PLACES],
        "decimal comma",
        'decimal = ","',
    ),
    "both": (
        dg.numeric("x", 0, 60_000),
        [f"{1 + i % 9}.{100 + i},25" for i in PLACES],
        "point as thousands separator, decimal comma",
        'thousands = ".", decimal = ","',
    ),
    "per cent": (dg.numeric("x", 0, 100), [f"{i % 100} %" for i in PLACES], "'%' after", 'suffix = "%"'),
    "euro": (
        dg.numeric("x", 0, 9_999),
        [f"€{1 + i % 9},{100 + i}.00" for i in PLACES],
        "'€' before",
        'thousands = ",", prefix = "€"',
    ),
    "trailing blanks": (dg.numeric("x", 0, 500), [f"{i} " for i in PLACES], "trailing blanks", "trim = true"),
    "minus 999": (
        dg.numeric("x", 0, 120),
        ["-999" if i % 8 == 0 else str(i % 90) for i in PLACES],
        "−999 looks like a missing code",
        "missing = [-999]",
    ),
    "NA": (
        dg.numeric("x", 0, 120),
        ["N/A" if i % 8 == 0 else str(i % 90) for i in PLACES],
        "'N/A' looks like a missing code",
        'missing = ["N/A"]',
    ),
    "day first": (
        dg.numeric("x", "2000-01-01", "2030-01-01"),
        [f"{1 + i % 28:02d}/{1 + i % 12:02d}/2020" for i in PLACES],
        "looks like dd/mm/yyyy",
        'format = "%d/%m/%Y"',
    ),
    "month first": (
        dg.numeric("x", "2000-01-01", "2030-01-01"),
        [f"{1 + i % 12:02d}/{1 + i % 28:02d}/2020" for i in PLACES],
        "looks like mm/dd/yyyy",
        'format = "%m/%d/%Y"',
    ),
    "dates as numbers": (
        dg.numeric("x", 0, 1),
        [f"{1 + i % 28:02d}.{1 + i % 12:02d}.2020" for i in PLACES],
        "dd.mm.yyyy",
        'format = "%d.%m.%Y"',
    ),
    "yes as a number": (dg.numeric("x", 0, 1), ["yes", "no"] * (ROWS // 2), "yes/no", 'kind = "boolean"'),
    "ja": (dg.boolean("x"), ["ja", "nein"] * (ROWS // 2), "ja/nein", 'true = ["ja"], false = ["nein"]'),
    "capital letters": (
        dg.categorical("x", ["no", "yes"]),
        ["No", "YES"] * (ROWS // 2),
        "capital or small letters",
        'case = "lower"',
    ),
    "levels with blanks": (
        dg.categorical("x", ["no", "yes"]),
        ["no ", "yes  "] * (ROWS // 2),
        "trailing blanks",
        "trim = true",
    ),
    "giant integers": (
        dg.numeric("x", 0, 100),
        [str(10**15 + i) for i in PLACES],
        "giant integers",
        "; leave the column out if it is an id",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_column_the_cause_and_the_line_are_named(case: str, tmp_path: Path) -> None:
    column, text, cause, line = CASES[case]
    path = messy("t", text, tmp_path)
    found = dg.check(path, dg.Schema(column, Y), progress=False)
    (warning,) = found.warnings if len(found.warnings) == 1 else found.warnings[1:]
    assert "column 'x'" in warning
    assert cause in warning
    assert line in warning
    assert "column 'y'" not in warning
    clamped = case in ("minus 999", "giant integers")
    assert found.much_is_lost is not clamped


@pytest.mark.parametrize(
    "case", [case for case in CASES if CASES[case][3].count(" = ") and "kind" not in CASES[case][3]]
)
def test_the_line_mends_it(case: str, tmp_path: Path) -> None:
    """What is proposed is put into the schema as it stands; then nothing is lost."""
    column, text, _, line = CASES[case]
    if case == "dates as numbers":
        column = dg.numeric("x", "2000-01-01", "2030-01-01")
    entries = dg.Schema(column, Y)
    toml = entries.to_toml().replace('name = "x"\n', 'name = "x"\n' + line.replace(", ", "\n") + "\n")
    (tmp_path / "s.toml").write_text(toml, encoding="utf-8")
    found = dg.check(messy("t", text, tmp_path), dg.Schema.from_file(tmp_path / "s.toml"), progress=False)
    assert found.table[0].lost == 0
    assert found.table[0].clamped == 0
    assert not found.causes
    assert not found.much_is_lost


def test_latin_text(tmp_path: Path) -> None:
    path = messy("t", ["München", "Bern"] * 200, tmp_path, "latin-1")
    column = dg.categorical("x", ["München", "Bern"])
    found = dg.check(path, dg.Schema(column, Y), progress=False)
    assert 'looks like Latin-1 text; write encoding = "latin-1"' in found.warnings[-1]
    assert not dg.check(path, dg.Schema(column, Y, encoding="latin-1"), progress=False).warnings


def test_counts_are_exact_for_typed_columns_units_weights_and_groups() -> None:
    table = pa.table(
        {
            "a": pa.array([0.5, 2.0, None, -3.0, float("nan"), 1e300]),
            "g": pa.array(["n", "s", None, "x", "n", "n"]),
            "w": pa.array([1, 1, None, 1, 99, 1]),
            "id": pa.array(["p", "q", None, "", "r", "r"]),
            "f": pa.array([1, 0, 2, None, 1, 0]),
        }
    )
    schema = dg.Schema(
        dg.numeric("a", 0, 1),
        dg.boolean("f"),
        dg.categorical("g", ["n", "s"]),
        dg.numeric("w", 0, 5, missing=[99]),
    )
    found = dg.check(table, schema, rows=dg.Rows(unit="id", weight="w", by="g"), progress=False)
    by_name = {column.name: column for column in found.table}
    facts = {
        name: (one.role, one.readable, one.missing, one.unreadable, one.unknown, one.below, one.above)
        for name, one in by_name.items()
    }
    assert facts == {
        "a": ("numeric", 4, 2, 0, 0, 1, 2),
        "f": ("boolean", 4, 1, 0, 1, 0, 0),
        "g": ("group", 4, 1, 0, 1, 0, 0),
        "w": ("weight", 4, 2, 0, 0, 0, 0),
        "id": ("unit", 4, 2, 0, 0, 0, 0),
    }
    assert all(one.cells == 6 for one in found.table)


def test_open_bounds_and_levels_are_not_pictured() -> None:
    table = {"a": [1.0, None, "x"], "c": ["u", None, ""]}
    found = dg.check(table, dg.Schema(dg.numeric("a"), dg.categorical("c")), progress=False)
    numbers, levels = found.table
    assert (numbers.readable, numbers.missing, numbers.unreadable, numbers.bins) == (1, 1, 1, ())
    assert (levels.readable, levels.missing, levels.bins) == (1, 2, ())


def test_the_picture_shows_where_the_cells_lie() -> None:
    found = dg.check({"a": np.linspace(0, 1, 241)[:-1]}, dg.Schema(dg.numeric("a", 0, 2)), progress=False)
    assert found.table[0].bins == (20,) * 12 + (0,) * 12
    assert "0 |████████████            | 2" in found.summary()
    assert all(len(line) <= 80 for line in found.summary().splitlines())


def test_batches_of_any_size_count_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpgram.publishing import column_checks

    table = pl.DataFrame({"a": [str(i % 13) if i % 5 else "x" for i in range(1_003)]})
    whole = dg.check(table, dg.Schema(dg.numeric("a", 0, 10)), progress=False).table
    monkeypatch.setattr(column_checks, "ROWS_TOGETHER", 7)
    assert dg.check(table, dg.Schema(dg.numeric("a", 0, 10)), progress=False).table == whole
    assert dg.check(table.lazy(), dg.Schema(dg.numeric("a", 0, 10)), progress=False).table == whole


def test_streams_are_counted_without_columns() -> None:
    stream = pa.table({"a": [0.5, 2.0]}).to_reader()
    found = dg.check(stream, dg.Schema(dg.numeric("a", 0, 1)), progress=False)
    assert found.losses is None
    assert found.counts["all"].cells_clamped == 1


def warned(data: object, schema: dg.Schema, **options: Any) -> list[str]:
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        dg.publish(data, schema, epsilon=1, delta=1e-6, progress=False, **options)
    return [str(one.message) for one in seen if issubclass(one.category, DpgramWarning)]


@pytest.mark.parametrize("columns", [1, 5, 40])
def test_noise_alone_stops_one_publication_in_a_hundred_thousand_at_most(columns: int) -> None:
    """In few rows too. Counts of a pure release have long tails: four deviations were too few there."""

    def stopped(doubt: float) -> float:
        """The chance that a sum of two Laplace variables of scale 1 exceeds the doubt, for any column."""
        return columns * (2.0 + doubt) / 4.0 * math.exp(-doubt)

    noise = CountNoise(law="discrete-laplace", scale=float(ROW_NORM_SQUARED))
    assert stopped(_doubt(noise, 1, columns)) <= 1e-5
    assert stopped(0.75 * _doubt(noise, 1, columns)) > 1e-5  # a third more than is needed, at most
    assert stopped(4.0 * math.sqrt(2.0) * noise.deviation) > 8e-4


@pytest.mark.parametrize("adaptive", [True, False])
def test_publish_warns_by_column_before_it_charges(tmp_path: Path, adaptive: bool) -> None:
    column, text, cause, line = CASES["thousands"]
    path = messy("t", text * 4, tmp_path)  # so many that no noise hides the loss
    ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=5, delta=1e-5)
    entries: list[int] = []

    def note(message: Any, *_: Any, **__: Any) -> None:
        if "column 'x'" in str(message):
            entries.append(ledger.entries)
            assert cause in str(message)
            assert line in str(message)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        asked = {"epsilon": 1, "delta": 1e-6, "ledger": ledger, "adaptive": adaptive, "progress": False}
        if adaptive:  # noisy counts show the same, and stop it
            with pytest.raises(LearningError, match="column 'x'"):
                dg.publish(path, dg.Schema(column, Y), **asked)
        else:
            release = dg.publish(path, dg.Schema(column, Y), **asked)
            assert "thousands" not in json.dumps(release.schema.to_dict())
    assert entries == [0]
    assert len(ledger.history()) == 1


@pytest.mark.parametrize(
    ("rows", "adaptive", "words"),
    [
        (40, True, "with so few rows noisy counts cannot tell this loss from their noise"),
        (40, False, "nothing is counted before the matrix that could stop this publication"),
        (4_000, False, "nothing is counted before the matrix that could stop this publication"),
    ],
)
def test_it_is_said_where_noisy_counts_cannot_stop(
    rows: int, adaptive: bool, words: str, tmp_path: Path
) -> None:
    """The release is made and charged: the exact loss decides nothing."""
    ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=5, delta=1e-5)
    told = warned({"x": ["1,5"] * rows}, dg.Schema(dg.numeric("x", 0, 9)), ledger=ledger, adaptive=adaptive)
    (found,) = (text for text in told if "it goes on, and all of it is charged" in text)
    assert words in found
    assert any("column 'x'" in text for text in told)
    assert len(ledger.history()) == 1


def test_where_they_can_nothing_is_said_of_it() -> None:
    table = {"x": ["1,5"] * 4_000}
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: told.append(str(message))
        with pytest.raises(LearningError, match=r" (9[5-9]|100)% unreadable"):
            dg.publish(table, dg.Schema(dg.numeric("x", 0, 9)), epsilon=1, delta=1e-6, progress=False)
    assert not [text for text in told if "goes on" in text]
    some = {"x": ["1,5" if i % 4 == 0 else "1" for i in range(40)]}  # less than may be lost
    assert not [text for text in warned(some, dg.Schema(dg.numeric("x", 0, 9))) if "goes on" in text]


def test_learning_warns_as_well() -> None:
    table = {"x": [f"{i % 9},{i % 10}" for i in range(2_000)], "y": [float(i % 7) for i in range(2_000)]}
    told: list[str] = []
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = lambda message, *_, **__: told.append(str(message))
        # It may stop for want of rows, which it has measured by then; the warning comes first.
        with contextlib.suppress(dg.DpgramError):
            dg.publish(
                table, dg.Schema(dg.numeric("x"), Y), epsilon=1, delta=1e-6, adaptive=True, progress=False
            )
    assert any('decimal = ","' in text for text in told)


def test_publish_is_quiet_where_little_is_lost() -> None:
    table = {"x": ["x", *map(str, range(99))]}
    assert not [text for text in warned(table, dg.Schema(dg.numeric("x", 0, 100))) if "column" in text]


def test_losses_beyond_the_first_rows_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpgram.publishing import losses

    monkeypatch.setattr(losses, "ROWS_LOOKED_AT", 50)
    table = {"x": ["1"] * 1000 + ["1,5"] * 200}  # far from where noisy counts would refuse
    texts = warned(table, dg.Schema(dg.numeric("x", 0, 100)))
    assert any('decimal = ","' in text for text in texts)


def gaps(rows: int = 5_000) -> tuple[dict[str, Any], dg.Schema]:
    """No column lacks half of its cells, and few rows have all of theirs."""
    places = np.arange(rows)
    table = {
        "a": np.where(places < 0.44 * rows, np.nan, places % 7),
        "b": np.where(places >= 0.6 * rows, np.nan, places % 5),
    }
    return table, dg.Schema(dg.numeric("a", 0, 10), dg.numeric("b", 0, 10))


@pytest.mark.parametrize("adaptive", [True, False])
def test_publish_says_that_rows_are_dropped_before_it_charges(adaptive: bool, tmp_path: Path) -> None:
    """Gaps in different rows: 84% of the table went without a word."""
    ledger = dg.Ledger.create(tmp_path / "l.ledger", name="l", epsilon=5, delta=1e-5)
    table, schema = gaps()
    entries: list[int] = []

    def note(message: Any, *_: Any, **__: Any) -> None:
        if str(message) == "84.0% of the rows are dropped":
            entries.append(ledger.entries)

    with warnings.catch_warnings():
        warnings.simplefilter("always")
        warnings.showwarning = note
        asked = {"epsilon": 1, "delta": 1e-6, "ledger": ledger, "adaptive": adaptive, "progress": False}
        dg.publish(table, schema, **asked)
    assert entries == [0]
    assert "84.0% of the rows are dropped" in dg.check(table, schema, progress=False).warnings


def test_rows_lost_by_many_columns_with_few_gaps_each_are_noticed() -> None:
    rows = 1_000
    table = {f"c{k}": np.where(np.arange(rows) % 25 == k, np.nan, 1.0) for k in range(12)}
    told = warned(table, dg.Schema(*(dg.numeric(name, 0, 10) for name in table)))
    assert "48.0% of the rows are dropped" in told


def test_of_the_first_rows_nothing_is_said_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpgram.publishing import losses

    monkeypatch.setattr(losses, "ROWS_LOOKED_AT", 1_000)
    told = warned(*gaps())
    assert "100.0% of the rows (in the first 1,000 rows) are dropped" in told


def test_of_a_stream_they_are_told_too() -> None:
    table, schema = gaps()
    stream = pa.RecordBatchReader.from_batches(
        (made := pa.table(table)).schema, made.to_batches(max_chunksize=900)
    )
    assert "84.0% of the rows are dropped" in warned(stream, schema, adaptive=False)


def test_where_warnings_are_errors_rows_decide_nothing() -> None:
    table, schema = gaps()
    assert dg.publish(table, schema, epsilon=1, delta=1e-6, progress=False).count() > 0.0


def test_the_rows_of_each_block_are_counted() -> None:
    table, schema = gaps()
    rules = row_rules(schema.with_blocks([["a"], ["b"]]), Rows())
    _, counts = check_columns(table, rules)
    assert [each.rows_used for each in counts.values()] == [2_800, 3_000]
    _, counts = check_columns(table, row_rules(schema, Rows(missing="midpoint")))
    assert counts["all"].rows_used == 5_000


def test_a_look_that_fails_stops_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpgram.publishing import losses

    def fail(*_: Any, **__: Any) -> None:
        raise RuntimeError("a look that fails")

    monkeypatch.setattr(losses, "check_columns", fail)
    assert not [
        text
        for text in warned({"x": ["a"] * 9 + ["1"]}, dg.Schema(dg.numeric("x", 0, 1)))
        if "column" in text
    ]


def test_dask_tables_are_looked_at() -> None:
    dd = pytest.importorskip("dask.dataframe")
    import pandas as pd

    frame = dd.from_pandas(pd.DataFrame({"x": ["1,5"] * 100}), npartitions=3)
    found = dg.check(frame, dg.Schema(dg.numeric("x", 0, 10)), progress=False)
    assert 'decimal = ","' in found.warnings[-1]


def test_the_command_exits_with_3_and_writes_no_cell(tmp_path: Path) -> None:
    column, text, _, line = CASES["thousands"]
    path = messy("t", text, tmp_path)
    schema = tmp_path / "s.toml"
    dg.Schema(column, Y).to_file(schema)
    told = CliRunner().invoke(app, ["check", str(path), "-s", str(schema)])
    assert told.exit_code == 3
    assert "! column 'x': 100.0% of its cells cannot be read" in told.output
    assert line in told.output
    asked = CliRunner().invoke(app, ["check", str(path), "-s", str(schema), "--json"])
    assert asked.exit_code == 3
    found = json.loads(asked.stdout)["curator_only"]
    assert found["much_is_lost"] is True
    assert found["columns"][0]["unreadable"] == ROWS
    assert text[0] not in asked.stdout
    dg.Schema(dg.numeric("x", 0, 60_000, thousands=","), Y).to_file(schema, overwrite=True)
    assert CliRunner().invoke(app, ["check", str(path), "-s", str(schema)]).exit_code == 0


def check_of(text: list[str], column: Any, folder: Path) -> Any:
    return dg.check(messy("t", text, folder), dg.Schema(column, Y), progress=False)


MIXED: dict[str, tuple[Any, list[str], str]] = {
    "decimal marks": (
        dg.numeric("x", 0, 200),
        ["50,5" if i % 10 == 0 else f"{50 + i % 9}.5" for i in PLACES],
        (
            "written in two ways: 90.0% of its cells as declared, 10.0% otherwise, "
            "which looks like a decimal comma"
        ),
    ),
    "dates": (
        dg.numeric("x", "2000-01-01", "2030-01-01", format="%d.%m.%Y"),
        [f"{1 + i % 28:02d}/{1 + i % 12:02d}/24" if i % 5 == 0 else "07.03.2024" for i in PLACES],
        "written in two ways: 80.0% of its cells as declared, 20.0% otherwise, which looks like dd/mm/yy",
    ),
    "numbers and dates": (
        dg.numeric("x", 0, 9_999),
        [f"{1 + i % 28:02d}.03.2024" if i % 4 == 0 else str(2000 + i % 20) for i in PLACES],
        "written in two ways: 75.0% of its cells as declared, 25.0% otherwise, which looks like dd.mm.yyyy",
    ),
    "numbers and answers": (
        dg.numeric("x", 0, 99),
        ["yes" if i % 4 == 0 else str(2 + i % 20) for i in PLACES],
        "written in two ways: 75.0% of its cells as declared, 25.0% otherwise, which looks like yes/no",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", MIXED)
def test_no_rule_is_proposed_that_loses_what_is_read_now(case: str, tmp_path: Path) -> None:
    column, text, said = MIXED[case]
    found = check_of(text, column, tmp_path)
    (cause,) = found.causes
    assert cause.looks_like == said
    assert cause.entries is None
    assert "; a column is read by one rule: write all of its cells in one way first" in found.warnings[-1]


def test_the_advice_does_not_go_round_in_circles(tmp_path: Path) -> None:
    """Each of two formats reads a part of the dates; whichever is declared, the other is not proposed."""
    _, text, _ = MIXED["dates"]
    for form in ("%d.%m.%Y", "%d/%m/%y"):
        column = dg.numeric("x", "2000-01-01", "2030-01-01", format=form)
        assert [cause.entries for cause in check_of(text, column, tmp_path).causes] == [None]


def test_words_for_yes_and_no_are_added_to_those_read_now(tmp_path: Path) -> None:
    text = [("yes", "no", "Yes", "ja", "nein")[i % 5] for i in PLACES]
    (cause,) = check_of(text, dg.boolean("x"), tmp_path).causes
    assert cause.entries is not None
    mended = dg.boolean("x", **cause.entries)
    assert check_of(text, mended, tmp_path).table[0].readable == ROWS
    own = dg.boolean("x", true=["si"], false=["no"])
    (cause,) = check_of([("si", "no", "ja")[i % 3] for i in PLACES], own, tmp_path).causes
    assert cause.entries == {"true": ["si", "ja"], "false": ["no", "nein"]}


def test_two_beside_nought_and_one_is_no_word_for_no(tmp_path: Path) -> None:
    assert not check_of([str(i % 3) for i in PLACES], dg.boolean("x"), tmp_path).causes
    (cause,) = check_of([str(1 + i % 2) for i in PLACES], dg.boolean("x"), tmp_path).causes
    assert cause.looks_like == "looks like 1/2"


def test_a_few_words_make_no_column_of_words(tmp_path: Path) -> None:
    text = ["Summe" if i == 7 else f"{i:06d}" for i in PLACES]
    assert not check_of(text, dg.numeric("x", 0, 500), tmp_path).causes
    text = ["many" if i % 3 else "1" for i in PLACES]
    (cause,) = check_of(text, dg.numeric("x", 0, 500), tmp_path).causes
    assert cause.looks_like == "looks like words, not numbers"


def test_a_slip_does_not_hide_the_rule_of_all_others(tmp_path: Path) -> None:
    text = ["52.5" if i == 7 else f"{i % 90},5" for i in PLACES]
    (cause,) = check_of(text, dg.numeric("x", 0, 100), tmp_path).causes
    assert cause.entries == {"decimal": ","}
    assert cause.looks_like == "looks like a decimal comma, but for 0.2% of its cells, which are read now"


def test_nought_comma_something_is_no_group_of_thousands(tmp_path: Path) -> None:
    (cause,) = check_of([f"0,{100 + i}" for i in PLACES], dg.numeric("x", 0, 1), tmp_path).causes
    assert cause.entries == {"decimal": ","}


def test_latin_text_in_a_table_of_utf8_is_no_reason_to_read_all_of_it_so(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    lines = [f"{'München' if i % 4 else 'Genf'},{i % 7}\n".encode() for i in PLACES]
    path.write_bytes(b"x,y\n" + b"".join(lines) + "Zürich,1\n".encode("latin-1") * 40)
    schema = dg.Schema(dg.categorical("x", ["München", "Genf", "Zürich"]), Y)
    (cause,) = dg.check(path, schema, progress=False).causes
    assert cause.entries is None
    assert "otherwise, which looks like Latin-1 text" in cause.looks_like


def test_codes_of_both_sorts_are_proposed_together(tmp_path: Path) -> None:
    text = ["n/a" if i % 8 == 0 else "-999" if i % 9 == 0 else str(i % 90) for i in PLACES]
    first, second = check_of(text, dg.numeric("x", 0, 100), tmp_path).causes
    assert first.entries == {"missing": ["n/a"]}
    assert second.entries == {"missing": ["n/a", -999]}


NUMBERS = ["12.5", "12,5", "1.234,5", "1,234.5", "1 234", "12 %", "7 ", "70", "n/a", "-999", "Summe", "yes"]
DATES = ["2020-02-01", "01.02.2020", "13/02/2020", "02/13/2020", "01/02/20", "20200201", "?"]
TRUTHS = ["yes", "no", "ja", "nein", "Ja", "oui", "non", "0", "1", "2", "k.A."]
LEVELS = ["north", "North", "NORTH", "south", "south ", "South", "1", "1.0", "none"]
MARKED = {"thousands": ".", "decimal": ",", "missing": ["n/a"]}
DECLARED: list[tuple[dict[str, Any], list[str]]] = [
    ({"kind": "numeric", "low": 0, "high": 2_000}, NUMBERS),
    ({"kind": "numeric", "low": 0, "high": 2_000, "decimal": ","}, NUMBERS),
    ({"kind": "numeric", "low": 0, "high": 2_000, **MARKED}, NUMBERS),
    ({"kind": "numeric", "low": "2000-01-01", "high": "2030-01-01"}, DATES),
    ({"kind": "numeric", "low": "2000-01-01", "high": "2030-01-01", "format": "%d.%m.%Y"}, DATES),
    ({"kind": "boolean"}, TRUTHS),
    ({"kind": "boolean", "true": ["ja"], "false": ["nein"]}, TRUTHS),
    ({"kind": "categorical", "levels": ["north", "south"]}, LEVELS),
    ({"kind": "categorical", "levels": ["North", "South", "1", "2"], "trim": True}, LEVELS),
]


@settings(max_examples=200, deadline=None, derandomize=True)
@given(st.sampled_from(DECLARED), st.data())
def test_a_proposed_line_never_makes_fewer_cells_readable(
    case: tuple[dict[str, Any], list[str]], data: st.DataObject
) -> None:
    """Cells within the bounds: those beyond, such as −999, may be proposed as missing ones."""
    declared, words = case
    cell = st.tuples(st.sampled_from(words), st.integers(1, 60))
    drawn = data.draw(st.lists(cell, min_size=1, max_size=4))
    table = {"x": [word for word, count in drawn for _ in range(count)]}

    def checked(entries: dict[str, Any]) -> Any:
        schema = dg.Schema.from_dict({"columns": [{"name": "x", **entries}]})
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that no row can be used
            return dg.check(table, schema, progress=False)

    found = checked(declared)
    before = found.table[0]
    for cause in found.causes:
        if cause.entries is None or cause.of_the_file:
            continue
        kept = {} if "kind" in cause.entries else declared
        after = checked({**kept, **cause.entries}).table[0]
        assert after.readable - after.below - after.above >= before.readable - before.below - before.above
        assert after.lost < before.lost or after.missing > before.missing


ONE_CELL = {
    "a word before a number": "AnnaMeier 12",
    "a word after a number": "12 HIV+",
    "a word after, without a blank": "12HIV+",
    "two words": ("AnnaMeier", "HIV+"),
    "a number of a person": "-8977979",
}


@pytest.mark.parametrize("column", [dg.numeric("x"), dg.numeric("x", 0, 99), dg.boolean("x")])
@pytest.mark.parametrize("case", ONE_CELL)
@pytest.mark.parametrize("rows", [15_001, 30_001])
def test_no_guess_quotes_one_persons_cell(rows: int, case: str, column: Any, tmp_path: Path) -> None:
    odd = ONE_CELL[case]
    odd = (odd,) if isinstance(odd, str) else odd
    usual = "1" if column.kind == "boolean" else "50"
    # Twice, as a person may have two rows.
    path = messy("t", [*odd, *odd, *[usual] * (rows - 2 * len(odd))], tmp_path)
    schema = dg.Schema(column, Y)
    found = dg.check(path, schema, progress=False)
    said = [found.summary(), repr(found.causes)]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        dg.publish(path, schema, epsilon=1, delta=1e-6, ledger=None)
    said += [str(one.message) for one in caught]
    words = {part for one in odd for part in (one, *re.findall(r"[^\d\s-]{2,}", one))}
    assert not [word for word in words for text in said if word in text]


def test_frequent_words_are_quoted_once_all_cells_were_looked_at(tmp_path: Path) -> None:
    text = ["12 Flux" if i % 15 == 0 else "50" for i in PLACES]
    found = check_of(text, dg.numeric("x", 0, 99), tmp_path)
    assert "looks like 'Flux' after the number" in found.warnings[0]
    # A unit of the list needs no look at all of them, and no share.
    few = check_of(["12 kg", *["50"] * (ROWS - 1)], dg.numeric("x", 0, 99), tmp_path)
    assert "looks like 'kg' after the number" in few.warnings[0]
    # By the first rows alone it is not said.
    rules = row_rules(dg.Schema(dg.numeric("x", 0, 99), Y), Rows())
    first = losses_of(messy("t", text, tmp_path), LocalEngine(), rules, most_rows=ROWS)
    assert first is not None
    assert first.warnings == ("column 'x': 6.8% of its cells (in the first 400 rows) cannot be read",)


def test_a_starter_quotes_public_words_alone() -> None:
    """It looks at the first rows, and these may be one person's."""
    starter = starter_schema({"x": [f"{i} HIV+" for i in range(60)], "y": [f"{i} kg" for i in range(60)]})
    assert "HIV" not in starter
    assert 'suffix = "kg"' in starter

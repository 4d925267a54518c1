"""Reading rules: what they make of text, the same from every source; what they refuse."""

from __future__ import annotations

import gzip
import json
import sqlite3
import zipfile
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.cells import UNREADABLE, cells_of

import dpgram as dg
from dpgram.analysis.pooling import union
from dpgram.core.noise import SeededEntropy
from dpgram.engines.federated import Partials, partial_gram
from dpgram.engines.local import LocalEngine, gram
from dpgram.engines.partials import PartialsEngine
from dpgram.errors import SchemaError, SourceError
from dpgram.publishing import publish_with
from dpgram.rows.units import unit_ids
from dpgram.schema import Schema, boolean, categorical, numeric, ordinal
from dpgram.schema.reading import Reading
from dpgram.sources import declared_kinds, declared_readings, open_source
from dpgram.sources.plain_columns import plain_columns
from dpgram.testing import gram_by

openpyxl = pytest.importorskip("openpyxl")

TIDY = {
    "charges": [1234.5, 0.25, -1_234_567.0, None, 12.0, None],
    "share": [12.5, 7.0, 0.0, 100.0, None, 3.0],
    "smoker": [True, False, True, None, False, True],
    "city": ["bern", "basel", "bern", None, "basel", "bern"],
    "since": ["2020-02-01", "1999-12-31", None, "2001-01-01", "2000-02-29", "2020-02-01"],
    "grade": ["low", "high", "mid", "low", None, "high"],
}
MESSY = {
    "charges": ["$1,234.50", " 0.25 ", "-$1,234,567", "NA", "12", "-999"],
    "share": ["12,5 %", "7%", "0", "100,0%", "k.A.", "3"],
    "smoker": ["ja", "Nein", "JA ", "weiß nicht", "nein", "ja"],
    "city": ["Bern ", "BASEL", "bern", "?", " Basel", "Bern"],
    "since": ["01/02/2020", "31/12/1999", "31/02/2020", "1/1/2001", "29/02/2000", "01/02/2020"],
    "grade": ["low", "high", "mid", "low", "99", "high"],
}
RULES = Schema(
    numeric("charges", -2_000_000, 2_000_000, prefix="$", thousands=",", missing=[-999, "NA"]),
    numeric("share", 0, 100, decimal=",", suffix="%"),
    boolean("smoker", true="ja", false="nein"),
    categorical("city", ["bern", "basel"], trim=True, case="lower", missing="?"),
    numeric("since", "1990-01-01", "2030-01-01", format="%d/%m/%Y"),
    ordinal("grade", ["low", "mid", "high"], missing=99),
)
PLAIN = Schema(
    numeric("charges", -2_000_000, 2_000_000),
    numeric("share", 0, 100),
    boolean("smoker"),
    categorical("city", ["bern", "basel"]),
    numeric("since", "1990-01-01", "2030-01-01"),
    ordinal("grade", ["low", "mid", "high"]),
)


def tidy() -> pa.Table:
    table = pa.table(TIDY)
    since = table["since"].cast(pa.date32())
    return table.set_column(4, "since", since)


def _csv(folder: Path, name: str = "t.csv", separator: str = ",", encoding: str = "utf-8") -> Path:
    rows = [list(MESSY), *zip(*MESSY.values(), strict=True)]
    text = "\n".join(separator.join(f'"{cell}"' for cell in row) for row in rows) + "\n"
    (folder / name).write_bytes(text.encode(encoding))
    return folder / name


def _json_lines(folder: Path) -> Path:
    rows = [dict(zip(MESSY, row, strict=True)) for row in zip(*MESSY.values(), strict=True)]
    (folder / "t.jsonl").write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    return folder / "t.jsonl"


def _workbook(folder: Path) -> Path:
    book = openpyxl.Workbook()
    for row in [list(MESSY), *zip(*MESSY.values(), strict=True)]:
        book.active.append(row)
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


def _sqlite(folder: Path) -> tuple[sqlite3.Connection, str]:
    connection = sqlite3.connect(folder / "t.db")
    pd.DataFrame(MESSY).to_sql("t", connection, index=False)
    connection.commit()
    return connection, "SELECT * FROM t"


def _duckdb(folder: Path) -> Any:
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE t AS SELECT * FROM read_csv('{_csv(folder)}', all_varchar = true)")
    return connection.table("t")


def _parquet(folder: Path) -> Path:
    pq.write_table(pa.table(MESSY), folder / "t.parquet")
    return folder / "t.parquet"


FORMS: dict[str, Callable[[Path], object]] = {
    "csv": _csv,
    "json lines": _json_lines,
    "workbook": _workbook,
    "SQLite": _sqlite,
    "DuckDB": _duckdb,
    "Parquet": _parquet,
    "lists": lambda _: MESSY,
    "pandas objects": lambda _: pd.DataFrame(MESSY).astype(object),
    "pandas strings": lambda _: pd.DataFrame(MESSY),
    "pandas categories": lambda _: pd.DataFrame(MESSY).astype("category"),
    "polars": lambda _: pl.DataFrame(MESSY),
    "polars categories": lambda _: pl.DataFrame(MESSY).with_columns(pl.all().cast(pl.Categorical)),
    "lazy": lambda _: pl.LazyFrame(MESSY),
    "arrow": lambda _: pa.table(MESSY),
    "arrow dictionaries": lambda _: pa.table({n: pa.array(c).dictionary_encode() for n, c in MESSY.items()}),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_source_reads_messy_text_as_the_tidy_table(form: str, tmp_path: Path) -> None:
    wanted = gram_by(LocalEngine(), tidy(), PLAIN, missing="midpoint")
    found = gram_by(LocalEngine(), FORMS[form](tmp_path), RULES, missing="midpoint")
    assert found.to_bytes() == wanted.to_bytes()
    assert found.counts.rows_used == len(TIDY["charges"])


@pytest.mark.filterwarnings("ignore:no row of the data was usable")
@pytest.mark.parametrize("form", FORMS)
def test_without_the_rules_rows_are_lost(form: str, tmp_path: Path) -> None:
    wanted = gram_by(LocalEngine(), tidy(), PLAIN)
    found = gram_by(LocalEngine(), FORMS[form](tmp_path), PLAIN)
    assert found.counts.rows_used == 0
    assert wanted.counts.rows_used > 0


@pytest.mark.parametrize("form", ["csv", "pandas objects", "lists", "SQLite"])
def test_rules_hold_for_units_weights_and_groups(form: str, tmp_path: Path) -> None:
    """The columns that group and weigh have rules of their own, and an id has none."""
    extra = {"id": ["7", " 7", "07", "7.0", "8", "9"], "w": ["1,5", "2", "0,5", "1", "n", "1"]}
    extra |= {"g": ["N", "n", "S", "s", "S", "x"]}
    messy, table = {**MESSY, **extra}, tidy()
    table = table.append_column("id", pa.array(["7", " 7", "07", "7", "8", "9"]))
    table = table.append_column("w", pa.array([1.5, 2.0, 0.5, 1.0, None, 1.0]))
    table = table.append_column("g", pa.array(["n", "n", "s", "s", "s", None]))
    rows = dg.Rows(unit="id", by="g", weight="w", missing="midpoint")
    rules = RULES.with_columns(
        [*RULES.columns, numeric("w", 0, 2, decimal=","), categorical("g", ["n", "s"], case="lower")]
    )
    plain = PLAIN.with_columns([*PLAIN.columns, numeric("w", 0, 2), categorical("g", ["n", "s"])])
    path = tmp_path / "u.csv"
    pd.DataFrame(messy).to_csv(path, index=False)
    connection = sqlite3.connect(tmp_path / "u.db")
    pd.DataFrame(messy).to_sql("t", connection, index=False)
    connection.commit()
    forms: dict[str, object] = {
        "csv": path,
        "pandas objects": pd.DataFrame(messy).astype(object),
        "lists": messy,
        "SQLite": (connection, "SELECT * FROM t"),
    }
    wanted = dg.check(table, plain, rows=rows)
    found = dg.check(forms[form], rules, rows=rows)
    assert found.counts == wanted.counts
    assert found.counts["n"].rows_used == 2


def values(data: object, column: Any) -> list[object]:
    schema = Schema(column)
    source = open_source(
        data,
        [column.name],
        kinds=declared_kinds(schema),
        readings=declared_readings(schema),
        layout=schema.layout,
    )
    return [cell for batch in source.batches() for cell in cells_of(batch.column(0))]


@pytest.mark.parametrize(
    ("rules", "text", "number"),
    [
        ({"thousands": ","}, "1,234.50", 1234.5),
        ({"thousands": ","}, "12,34,567", 1_234_567.0),
        (
            {"thousands": ","},
            "1,5",
            UNREADABLE,
        ),  # a decimal comma: 15 would be a wrong number, not a missing one
        ({"thousands": ","}, "1234", 1234.0),
        ({"thousands": ".", "decimal": ","}, "1.234,5", 1234.5),
        ({"thousands": ".", "decimal": ","}, "1234.50", UNREADABLE),
        ({"thousands": ".", "decimal": ","}, "-1.234.567", -1_234_567.0),
        ({"decimal": ","}, "0,1", 0.1),
        ({"decimal": ","}, "0.1", UNREADABLE),
        ({"decimal": ","}, ",5", 0.5),
        ({"decimal": ","}, "1,5e3", 1500.0),
        ({"thousands": " "}, "1 234\u202f567\u00a0890", 1_234_567_890.0),
        ({"thousands": "'"}, "1’234", 1234.0),
        ({"suffix": "€", "decimal": ",", "thousands": "."}, "−1.234,56 €", -1234.56),
        ({"prefix": "CHF"}, "CHF 12.5", 12.5),
        ({"prefix": "$"}, "-$12.5", -12.5),
        ({"suffix": "%"}, "%", UNREADABLE),
        ({"trim": True}, " 12 ", 12.0),
        ({"trim": True}, "1 2", UNREADABLE),
        ({"missing": [-999]}, "-999", None),
        ({"missing": ["N/A"]}, "N/A", None),
        ({"missing": ["N/A"]}, " N/A ", None),
        ({"missing": ["N/A"]}, "N/B", UNREADABLE),
        ({"missing": ["N/A"], "thousands": ","}, "N/A", None),
        ({"missing": ["N/A"], "thousands": ","}, "N/B", UNREADABLE),
        ({"thousands": ","}, "  ", None),
        ({"missing": [-999]}, "-999.0", None),
        ({"missing": ["-999,0"], "decimal": ","}, "-999", None),
    ],
)
def test_numbers(rules: dict[str, Any], text: str, number: object, tmp_path: Path) -> None:
    column = numeric("x", -1e10, 1e10, **rules)
    path = tmp_path / "x.csv"
    path.write_text(f'x\n"{text}"\n', encoding="utf-8")
    for data in ({"x": [text]}, pa.table({"x": [text]}), pd.DataFrame({"x": [text]}, dtype=object), path):
        assert values(data, column) == [number]


@pytest.mark.parametrize(
    ("form", "text", "day"),
    [
        ("%d/%m/%Y", "31/12/2020", "2020-12-31"),
        ("%d/%m/%Y", "31/12/20", UNREADABLE),  # not the year 20
        ("%d.%m.%y", "31.12.99", "1999-12-31"),
        ("%m/%d/%Y", "12/31/2020", "2020-12-31"),
        ("%d %b %Y", "31 Dec 2020", "2020-12-31"),
        ("%Y%m%d", "20201231", "2020-12-31"),
        ("%Y%j", "2020366", "2020-12-31"),
        ("%d/%m/%Y", "2020-12-31", "2020-12-31"),
        ("%Y-%d-%m", "2020-12-31", UNREADABLE),
    ],
)
def test_dates(form: str, text: str, day: str) -> None:
    column = numeric("x", "1900-01-01", "2030-01-01", format=form)
    (found,) = values({"x": [text]}, column)
    assert (found if found == UNREADABLE else str(found)[:10]) == day


def test_times_of_day_count() -> None:
    column = numeric("x", "1900-01-01", "2030-01-01", format="%d/%m/%Y %I:%M %p")
    found = column.read(pa.array(values({"x": ["01/01/1970 6:00 PM"]}, column), pa.timestamp("us")))
    assert found.tolist() == [0.75]


@pytest.mark.parametrize(
    "data",
    [
        pa.table({"x": pa.array([1, -999, 3], pa.int16())}),
        pa.table({"x": pa.array([1.0, -999.0, 3.0])}),
        pa.table({"x": pa.array([1.0, -999.0, 3.0], pa.float32())}),
        pa.table({"x": pa.array([1, -999, 3]).cast(pa.decimal128(30, 2))}),
        pd.DataFrame({"x": [1, -999, 3]}),
        pl.DataFrame({"x": [1, -999, 3]}),
        {"x": np.array([1, -999, 3])},
        np.array([[1.0], [-999.0], [3.0]]),
        {"x": [1, "-999", 3.0]},
    ],
    ids=lambda data: type(data).__name__,
)
def test_missing_codes_hold_for_numbers_of_every_type(data: object) -> None:
    found = gram_by(LocalEngine(), data, Schema(numeric("x", 0, 10, missing=[-999])))
    assert found.counts.rows_used == 2
    assert found.counts.cells_missing == 1
    assert found.counts.cells_clamped == 0


@pytest.mark.parametrize(
    "column", [numeric("v", 0, 9, missing=["7"]), categorical("v", ["a"], missing=["7"])]
)
def test_a_type_without_codes_is_refused_as_without_rules(column: Any) -> None:
    """Arrow cannot take single cells out of such a column."""
    cells = pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([1, 2]), pa.array(["a", "b"])])
    with pytest.raises(SourceError, match=r"'v' is declared .* but the data has another type in it"):
        gram(pa.table({"v": cells}), Schema(column))


def test_missing_codes_hold_for_typed_levels_dates_and_truth_values() -> None:
    codes = pa.table({"x": pa.array([1, 2, 9, 1], pa.int8())})
    assert (
        gram_by(LocalEngine(), codes, Schema(categorical("x", [1, 2], missing=9))).counts.cells_unknown == 0
    )
    assert values(codes, boolean("x", true=1, false=2, missing=9)) == [True, False, None, True]
    days = pa.table({"x": pa.array(["2020-01-01", "9999-12-31"]).cast(pa.date32())})
    found = values(days, numeric("x", "2000-01-01", "2030-01-01", missing="9999-12-31"))
    assert [str(day) for day in found] == ["2020-01-01", "None"]


@pytest.mark.parametrize("text", ["\ud800", "\x00", "9" * 5000, "1e999", "1,,,2", "٣", "%", "−", "", " "])
@pytest.mark.parametrize("column", RULES.columns_read, ids=lambda column: column.name)
def test_no_cell_stops_the_reading_or_changes_its_neighbour(column: Any, text: str) -> None:
    good = MESSY[column.name][0]
    (alone,) = values({column.name: [good]}, column)
    beside, odd = values({column.name: [good, text]}, column)
    assert beside == alone
    assert odd == (UNREADABLE if text.strip() else None) or column.kind in ("categorical", "ordinal")


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16", "utf-8"])
@pytest.mark.parametrize("packed", ["", ".gz", ".zst", ".zip"])
def test_encodings_and_packed_files(encoding: str, packed: str, tmp_path: Path) -> None:
    path = _csv(tmp_path, separator=";", encoding=encoding)
    raw, place = path.read_bytes(), tmp_path / f"p.csv{packed}"
    if packed == ".zip":
        with zipfile.ZipFile(place, "w") as archive:
            archive.writestr("inside.csv", raw)
    elif packed == ".zst":
        with pa.output_stream(str(place), compression="zstd") as stream:
            stream.write(raw)
    else:
        place.write_bytes(gzip.compress(raw) if packed else raw)
    schema = Schema(*RULES.columns, encoding=encoding, separator=";")
    wanted = gram_by(LocalEngine(), tidy(), PLAIN, missing="midpoint")
    assert gram_by(LocalEngine(), place, schema, missing="midpoint").to_bytes() == wanted.to_bytes()


@pytest.mark.parametrize("encoding", ["latin-1", "windows-1252", "utf-16"])
def test_ids_of_a_declared_encoding_are_the_letters_that_they_mean(encoding: str, tmp_path: Path) -> None:
    people = ["Müller", "Muller", "M?ller", "Ärzte", "7.0", "07"]
    path = tmp_path / "ids.csv"
    path.write_bytes(("id,x\n" + "".join(f"{one},1\n" for one in people)).encode(encoding))
    layout = Schema(numeric("x", 0, 1), encoding=encoding).layout
    source = open_source(path, ["id"], kinds={"id": "id"}, layout=layout)
    ids = [unit_ids(batch.column(0), "id").to_pylist() for batch in source.batches()]
    assert ids == [["Müller", "Muller", "M?ller", "Ärzte", "7", "07"]]


def test_bytes_without_a_meaning_stay_apart_in_ids(tmp_path: Path) -> None:
    path = tmp_path / "ids.csv"
    path.write_bytes(b"id,x\nA\x81,1\nA\x8d,1\nA\xc3\x81,1\nA,1\n")
    layout = Schema(numeric("x", 0, 1), encoding="windows-1252").layout
    source = open_source(path, ["id"], kinds={"id": "id"}, layout=layout)
    (batch,) = source.batches()
    ids = unit_ids(batch.column(0), "id").to_pylist()
    assert len(set(ids)) == 4
    assert "Á" not in ids[0]


def test_the_separator_is_told_by_the_message(tmp_path: Path) -> None:
    path = _csv(tmp_path, separator=";")
    with pytest.raises(SourceError, match='separator = ";" at the top of the schema'):
        gram_by(LocalEngine(), path, RULES)


def test_rules_are_kept_in_toml_and_json(tmp_path: Path) -> None:
    schema = Schema(*RULES.columns, encoding="latin-1", separator=";", sheet="Daten")
    schema.to_file(tmp_path / "s.toml")
    assert Schema.from_file(tmp_path / "s.toml") == schema
    assert Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    assert RULES.column("charges").to_dict()["missing"] == ["-999", "NA"]


def test_a_schema_without_rules_says_nothing_of_them() -> None:
    assert Schema(numeric("x", 0, 1), boolean("b"), categorical("c", ["a"])).to_dict() == {
        "constant": True,
        "columns": [
            {"kind": "numeric", "name": "x", "low": 0.0, "high": 1.0},
            {"kind": "boolean", "name": "b"},
            {"kind": "categorical", "name": "c", "levels": ["a"]},
        ],
    }


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: numeric("x", 0, 1, decimal=","), None),
        (lambda: numeric("x", 0, 1, decimal="x"), "`decimal` mark"),
        (lambda: numeric("x", 0, 1, thousands="."), "must differ"),
        (lambda: numeric("x", 0, 1, format="%d/%m/%Y"), "bounds are dates"),
        (lambda: numeric("x", "2000-01-01", "2001-01-01", decimal=","), "those of numbers"),
        (lambda: numeric("x", "2000-01-01", "2001-01-01", format="%Y"), "year, month and day"),
        (lambda: numeric("x", "2000-01-01", "2001-01-01", format="%d/%m/%Q"), "not understood"),
        (lambda: numeric("x", 0, 1, suffix="12"), "without digits"),
        (lambda: boolean("x", true="ja"), "together"),
        (lambda: boolean("x", true="ja", false="ja"), "one word stands in"),
        (lambda: boolean("x", true="1", false="2", missing=[2]), "one word stands in"),
        (lambda: boolean("x", true="ja", false="JA"), "one word stands in"),
        (lambda: boolean("x", true="ja", false=["nein", " Ja "]), "one word stands in"),
        (lambda: boolean("x", true="1", false="1.0"), "one word stands in"),
        (lambda: boolean("x", true="ja", false="nein", missing=["ja "]), "one word stands in"),
        (lambda: boolean("x", true="n", false="y", missing="N"), None),  # codes are compared as they are
        (lambda: categorical("x", ["A"], case="lower"), "can never occur"),
        (lambda: categorical("x", ["a "], trim=True), "can never occur"),
        (lambda: categorical("x", ["9"], missing=9), "can never occur"),
        (lambda: categorical("x", ["na", "a"], case="lower", missing="NA"), "can never occur"),
        (lambda: categorical("x", [" NA", "a"], missing="NA"), "can never occur"),
        (lambda: ordinal("x", ["na", "a"], case="lower", missing="NA"), "can never occur"),
        (lambda: categorical("x", ["a"], case="title"), "`case` is unknown"),
        (lambda: Schema(numeric("x", 0, 1), encoding="klingon"), "encoding"),
        (lambda: Schema(numeric("x", 0, 1), separator="ab"), "separator"),
        (lambda: Schema(numeric("x", 0, 1), separator="."), "separator"),
        (
            lambda: Schema.from_dict({"columns": [{"kind": "boolean", "name": "x", "decimal": ","}]}),
            "does not know",
        ),
    ],
)
def test_what_contradicts_itself_is_refused(make: Callable[[], object], words: str | None) -> None:
    if words is None:
        make()
        return
    with pytest.raises(SchemaError, match=words):
        make()


def test_a_release_records_the_rules(tmp_path: Path) -> None:
    table = pa.table({"x": ["1,5", "0,25"] * 50})
    schema = Schema(numeric("x", 0, 2, decimal=",", label="Ertrag", units="t/ha", source="Agrarbericht 2020"))
    release = dg.publish(table, schema, epsilon=1, delta=1e-6)
    release.save(tmp_path / "r.dpgram.json")
    column = dg.load(tmp_path / "r.dpgram.json").schema.column("x")
    assert column == schema.column("x")
    assert column.reading == Reading(decimal=",")


def test_sites_may_write_their_tables_differently(tmp_path: Path) -> None:
    """How cells are written is each site's own: sums and releases still go together."""
    point = Schema(numeric("x", 0, 10), boolean("b"))
    comma = Schema(
        numeric("x", 0, 10, decimal=",", label="Wert"), boolean("b", true="ja", false="nein"), separator=";"
    )
    first = {"x": [1.5, 2.5] * 50, "b": [True, False] * 50}
    second = {"x": ["3,5", "4,5"] * 50, "b": ["ja", "nein"] * 50}
    whole = {"x": [1.5, 2.5] * 50 + [3.5, 4.5] * 50, "b": [True, False] * 100}
    partial_gram(first, point).save(tmp_path / "first")
    partial_gram(second, comma).save(tmp_path / "second")
    both = Partials(files=[tmp_path / "first", tmp_path / "second"])
    assert (
        gram_by(PartialsEngine(), both, point).to_bytes() == gram_by(LocalEngine(), whole, point).to_bytes()
    )
    asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "adaptive": False}
    together = union([dg.publish(first, point, **asked), dg.publish(second, comma, **asked)])
    assert together.schema.names == point.names


def test_tables_of_dask_and_spark_are_read_by_the_rules() -> None:
    dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
    from dpgram.engines.dask import DaskEngine
    from dpgram.engines.passes import gram_pass
    from dpgram.engines.spark import _frame_batches
    from dpgram.rows.encoder import Encoder

    wanted = gram_by(LocalEngine(), tidy(), PLAIN, missing="midpoint")
    frame = dd.from_pandas(pd.DataFrame(MESSY), npartitions=2)
    found = gram_by(DaskEngine(scheduler="threads"), frame, RULES, missing="midpoint")
    assert found.to_bytes() == wanted.to_bytes()
    # What a task of Spark does with the batches that Spark sends it.
    work = gram_pass(Encoder(RULES, missing="midpoint"))
    outcome = work.sums(_frame_batches(work, iter(pa.table(MESSY).to_batches(max_chunksize=4))))
    assert isinstance(outcome, tuple)
    assert outcome[0].to_bytes() == wanted.to_bytes()


CELLS = st.one_of(
    st.text(max_size=12),
    st.from_regex(r"[ $€−+-]{0,2}[0-9]{1,4}([., '][0-9]{1,3}){0,3}[ %€]{0,2}", fullmatch=True),
    st.from_regex(r"[0-3]?[0-9][/.-][0-1]?[0-9][/.-](19|20)?[0-9]{2}", fullmatch=True),
    st.sampled_from(
        ["NA", "na ", "-999", "-999,0", "Ja", "nein", "inf", "nan", "1e5", "1e999", "\x00", "İ", "ẞ"]
    ),
)
ANY_COLUMN: st.SearchStrategy[Any] = st.one_of(
    st.builds(
        lambda marks, affix, codes, trim: numeric("x", -1e6, 1e6, missing=codes, trim=trim, **marks, **affix),
        st.sampled_from(
            [{}, {"decimal": ","}, {"thousands": ","}, {"decimal": ",", "thousands": "."}, {"thousands": " "}]
        ),
        st.sampled_from([{}, {"suffix": "%"}, {"prefix": "$"}, {"suffix": " €"}]),
        st.sampled_from([[-999], ["NA"], [-999, "NA", 5]]),
        st.booleans(),
    ),
    st.builds(
        lambda form, codes: numeric("x", "1950-01-01", "2050-01-01", format=form, missing=codes),
        st.sampled_from(["%d/%m/%Y", "%m-%d-%y", "%d.%m.%Y", "%Y-%m-%d"]),
        st.sampled_from([["NA"], ["01/01/2000"], ["2000-01-01"]]),
    ),
    st.builds(
        lambda case, trim, codes: categorical("x", ["1"], other="rest", case=case, trim=trim, missing=codes),
        st.sampled_from(["lower", "upper"]),
        st.booleans(),
        st.sampled_from([["NA"], ["na"], [" x "]]),
    ),
    st.just(boolean("x", true=["ja", 1], false=["nein", 2], missing=["NA"])),
)


@pytest.mark.parametrize("case", ["lower", "upper"])
def test_a_missing_code_is_one_in_either_case(case: str) -> None:
    column = categorical("x", ["1"], other="rest", case=case, missing=["NA"])
    assert values({"x": ["NA", "na", " Na ", "nab"]}, column)[:3] == [None, None, None]
    batch = pa.record_batch({"x": ["NA", "na", " Na ", "nab"]})
    (lost,) = dg.check(batch, Schema(column)).losses.columns
    assert lost.missing == 3


@settings(max_examples=150, deadline=None)
@given(cells=st.lists(CELLS, min_size=1, max_size=6), column=ANY_COLUMN)
def test_cells_are_read_one_by_one_and_once(cells: list[str], column: Any) -> None:
    """No cell raises or changes another; objects are read as columns are; reading twice changes nothing."""
    kinds, readings = declared_kinds(Schema(column)), declared_readings(Schema(column))
    texts = pa.array([cell.encode("utf-8", "replace").decode() for cell in cells], pa.string())
    once = plain_columns(pa.record_batch({"x": texts}), kinds, readings)
    assert cells_of(plain_columns(once, kinds, readings)[0]) == cells_of(once[0])
    alone = [
        plain_columns(pa.record_batch({"x": texts[i : i + 1]}), kinds, readings)[0] for i in range(len(texts))
    ]
    assert [cell for each in alone for cell in cells_of(each)] == cells_of(once[0])
    objects = values({"x": texts.to_pylist()}, column)
    assert objects == cells_of(once[0])
    column.read(once[0])


NUMBERS_AMONG_OBJECTS: dict[str, Callable[[list[Any]], Any]] = {
    "arrow": lambda cells: pa.table({"x": cells}),
    "list": lambda cells: {"x": cells},
    "objects": lambda cells: {"x": np.array(cells, object)},
    "text": lambda cells: {"x": [None if cell is None else str(cell) for cell in cells]},
    "floats": lambda cells: {"x": [None if cell is None else float(cell) for cell in cells]},
    "pandas": lambda cells: pd.DataFrame({"x": pd.Series(cells, dtype=object)}),
}


@pytest.mark.parametrize("form", NUMBERS_AMONG_OBJECTS)
@pytest.mark.parametrize("code", [0, 1, 9])
def test_numbers_that_stand_for_missing_truths_do_so_in_every_form(form: str, code: int) -> None:
    """Among Python objects they were true, false or unreadable before anybody asked for codes."""
    cells = [1, 0, 1, 1, 0, 9, None]
    found = gram(NUMBERS_AMONG_OBJECTS[form](cells), Schema(boolean("x", missing=[code])), progress=False)
    read = [cell for cell in cells if cell in (0, 1) and cell != code]
    assert found.counts.rows_used == len(read)
    # true is 1, false −1, beside the constant
    assert found.cells[0, 1] / found.cells[0, 0] == pytest.approx(np.mean([2 * cell - 1 for cell in read]))


@pytest.mark.parametrize("cells", [[date(2001, 1, 1), 9999], ["2001-01-01", "9999"]], ids=["objects", "text"])
def test_a_number_that_stands_for_no_date(cells: list[Any]) -> None:
    declared = Schema(numeric("x", "2000-01-01", "2010-01-01", missing=["9999"]))
    counts = gram({"x": cells}, declared, progress=False).counts
    assert (counts.rows_used, counts.cells_missing, counts.cells_unknown) == (1, 1, 0)


@pytest.mark.parametrize("levels", [[], ["1", "inf"]], ids=["open", "declared"])
def test_an_infinite_number_is_a_level_in_every_form(levels: list[str]) -> None:
    cells = [1.0] * 400 + [float("inf")] * 300 + [float("nan")] * 5
    declared = Schema(categorical("x", levels) if levels else categorical("x"), numeric("z", 0, 1))
    forms = [pa.array(cells), cells, np.array(cells, np.float32), np.array(cells, object)]
    releases = [
        publish_with(
            {"x": form, "z": [0.5] * len(cells)},
            declared,
            epsilon=8.0,
            delta=1e-6,
            entropy=SeededEntropy(1),
            progress=False,
        )
        for form in forms
    ]
    assert all(release == releases[0] for release in releases)
    assert "x=inf" in releases[0][0].schema.names

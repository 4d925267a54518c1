"""Bad input: one clear SourceError each, that names columns and files and never a value of the data."""

from __future__ import annotations

import gzip
import math
import os
import re
import sys
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.fs as fs
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dpgram.errors import MissingExtra, SourceError
from dpgram.schema.reading import AS_USUAL
from dpgram.sources import Source, column_types, open_source
from dpgram.sources import _quotes as quotes

UNCHECKED = (HealthCheck.function_scoped_fixture, HealthCheck.too_slow)
SECRET = "secret4711"


def read_all(data: object, columns: tuple[str, ...], feeds: int) -> None:
    source = open_source(data, columns, kinds=dict.fromkeys(columns, "number"), batch_rows=100)
    for stream in source.feeds(feeds) if feeds else [source.batches()]:
        for _ in stream:
            pass


def refusal(data: object, columns: tuple[str, ...] = ("age",), feeds: int = 0) -> SourceError:
    """The error of opening and reading `data`; it must be clean whatever went wrong."""
    with pytest.raises(SourceError) as caught:
        read_all(data, columns, feeds)
    error = caught.value
    assert error.__cause__ is None
    assert error.__context__ is None
    assert SECRET not in "".join(traceback.format_exception(error))
    assert len(str(error).splitlines()) == 1
    return error


def wide(**extra: object) -> pa.Table:
    return pa.table({"age": [1.0, 2.0], "Income": [3.0, 4.0], "smoker": ["no", SECRET], **extra})


def written(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "table.parquet")
    return folder / "table.parquet"


NAMED: dict[str, Callable[[pa.Table, Path], object]] = {
    "table": lambda table, _: table,
    "reader": lambda table, _: table.to_reader(),
    "dataset": lambda table, _: ds.dataset(table),
    "pandas": lambda table, _: table.to_pandas(),
    "polars": lambda table, _: pl.from_arrow(table),
    "polars query": lambda table, _: pl.from_arrow(table).lazy(),
    "mapping": lambda table, _: table.to_pydict(),
    "structured": lambda table, _: table.to_pandas().to_records(index=False),
    "parquet": written,
    "csv": lambda table, folder: text(folder, "age,Income,smoker\n1,3,no\n2,4,secret4711\n"),
    "relation": lambda table, folder: duckdb.connect().from_parquet(str(written(table, folder))),
    "query": lambda table, folder: (":memory:", f"FROM '{written(table, folder)}'"),
}


def text(folder: Path, content: str | bytes, name: str = "table.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("form", NAMED)
def test_a_missing_column_is_named_with_its_near_names(form: str, tmp_path: Path) -> None:
    error = refusal(NAMED[form](wide(), tmp_path), ("age", "income", "smokes"))
    assert "'income'" in str(error)
    assert "'smokes'" in str(error)
    assert "Near names: 'Income', 'smoker'" in str(error)


def test_only_some_of_many_missing_columns_are_listed() -> None:
    error = refusal(wide(), tuple(f"column{i}" for i in range(100_000)))
    assert len(str(error)) < 400
    assert "'column0', 'column1'" in str(error)


def test_a_table_of_very_many_columns_is_searched_quickly() -> None:
    table = pa.table({f"column{i}": [1.0] for i in range(30_000)})
    assert "no column 'Column7'" in str(refusal(table, ("Column7",)))


TWICE: dict[str, Callable[[Path], object]] = {
    "table": lambda _: pa.Table.from_arrays([pa.array([1.0])] * 2, names=["age", "age"]),
    "reader": lambda _: pa.Table.from_arrays([pa.array([1.0])] * 2, names=["age", "age"]).to_reader(),
    "pandas": lambda _: pd.DataFrame([[1.0, 2.0]], columns=["age", "age"]),
    "csv": lambda folder: text(folder, "age,age\n1,2\n"),
    "parquet": lambda folder: written(
        pa.Table.from_arrays([pa.array([1.0])] * 2, names=["age", "age"]), folder
    ),
    "relation": lambda _: duckdb.connect().sql("SELECT 1 AS age, 2 AS age"),
}


@pytest.mark.parametrize("form", TWICE)
def test_a_duplicate_name_is_refused(form: str, tmp_path: Path) -> None:
    assert "several columns named 'age'" in str(refusal(TWICE[form](tmp_path)))


@pytest.mark.parametrize("form", TWICE)
def test_a_duplicate_name_that_is_not_asked_for_does_no_harm(form: str, tmp_path: Path) -> None:
    twice = {
        "table": lambda: pa.Table.from_arrays([pa.array([1.0])] * 3, names=["x", "x", "age"]),
        "reader": lambda: pa.Table.from_arrays([pa.array([1.0])] * 3, names=["x", "x", "age"]).to_reader(),
        "pandas": lambda: pd.DataFrame([[2.0, 3.0, 1.0]], columns=["x", "x", "age"]),
        "csv": lambda: text(tmp_path, "x,x,age\n2,3,1\n"),
        "parquet": lambda: written(
            pa.Table.from_arrays([pa.array([1.0])] * 3, names=["x", "x", "age"]), tmp_path
        ),
        "relation": lambda: duckdb.connect().sql("SELECT 2 AS x, 3 AS x, 1 AS age"),
    }[form]()
    (batch,) = open_source(twice, ["age"], kinds={"age": "number"}).batches()
    assert batch.to_pydict() == {"age": [1.0]}


def test_the_request_itself_is_checked() -> None:
    assert "several columns named 'age'" in str(refusal(wide(), ("age", "age")))
    assert "no column was asked for" in str(refusal(wide(), ()))
    with pytest.raises(SourceError, match="batch_rows"):
        open_source(wide(), ["age"], batch_rows=0)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ("nowhere.parquet", "no file or folder 'nowhere.parquet'"),
        (Path("nowhere.csv"), "no file or folder 'nowhere.csv'"),
        ("nowhere/*.parquet", "no file matches"),
        (["nowhere.parquet"], "no file or folder"),
        ([], "list of files is empty"),
        ([1, 2.5], "a list must hold paths"),
        ("nowhere://bucket/table.parquet", "the nowhere:// address cannot be opened"),
        (object(), "data of this type cannot be read"),
        (None, "the data are None"),
        (iter([1]), "list_iterator"),
    ],
)
def test_what_cannot_be_opened(data: object, words: str) -> None:
    assert words in str(refusal(data))


def test_files_of_unknown_or_mixed_formats(tmp_path: Path) -> None:
    sheet = text(tmp_path, b"x", "table.docx")
    assert "format of the file 'table.docx'" in str(refusal(sheet))
    packed = text(tmp_path, b"x", "visits.zip")
    assert "Say in its name what is packed: visits.csv.zip" in str(refusal(packed))
    database = text(tmp_path, b"x", "visits.sqlite")
    assert "A database needs a query" in str(refusal(database))
    mixed = [written(wide(), tmp_path), text(tmp_path, "age\n1\n")]
    assert "several formats; got delimited, parquet" in str(refusal(mixed))
    (tmp_path / "empty").mkdir()
    said = str(refusal(tmp_path / "empty"))
    assert "holds no Parquet file" in said
    assert 'give a pattern in quotes, such as "folder/*.csv"' in said


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.tsv", "t.csv.gz"])
def test_an_empty_file(name: str, tmp_path: Path) -> None:
    assert "is empty: it does not even have column names" in str(refusal(text(tmp_path, b"", name)))


def test_an_empty_gzip_stream(tmp_path: Path) -> None:
    assert "is empty" in str(refusal(text(tmp_path, gzip.compress(b""), "t.csv.gz")))


@pytest.mark.parametrize("name", ["t.parquet", "t.csv", "t.csv.gz"])
def test_a_file_of_noise(name: str, tmp_path: Path) -> None:
    noise = np.random.default_rng(3).bytes(5_000)
    assert "t." in str(refusal(text(tmp_path, noise, name)))


def big_table() -> pa.Table:
    generator = np.random.default_rng(1)
    return pa.table({"age": generator.uniform(size=50_000), "word": [SECRET] * 50_000})


@pytest.mark.parametrize("keep", [0.3, 0.9, 0.9999])
def test_a_truncated_parquet_file(keep: float, tmp_path: Path) -> None:
    whole = written(big_table(), tmp_path).read_bytes()
    cut = text(tmp_path, whole[: int(len(whole) * keep)], "cut.parquet")
    assert "damaged, cut short, or not what its name says" in str(refusal(cut))


@pytest.mark.parametrize("feeds", [0, 1, 2])
def test_a_parquet_file_damaged_in_the_middle(feeds: int, tmp_path: Path) -> None:
    path = tmp_path / "damaged.parquet"
    pq.write_table(big_table(), path, row_group_size=10_000, compression="zstd", use_dictionary=False)
    content = bytearray(path.read_bytes())
    content[200_000:240_000] = b"\xab" * 40_000
    path.write_bytes(content)
    assert "cannot be read" in str(refusal(path, feeds=feeds))


def test_a_damaged_file_of_a_folder_is_named(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        pq.write_table(wide(), tmp_path / f"{name}.parquet")
    text(tmp_path, (tmp_path / "b.parquet").read_bytes()[:-9], "b.parquet")
    assert "b.parquet" in str(refusal(tmp_path))


def test_a_file_of_a_folder_that_lacks_a_column_is_named(tmp_path: Path) -> None:
    pq.write_table(wide(), tmp_path / "a.parquet")
    pq.write_table(wide().drop_columns(["age"]), tmp_path / "b.parquet")
    assert "the file 'b.parquet' has no column 'age'" in str(refusal(tmp_path))


def test_a_file_that_vanishes_after_opening(tmp_path: Path) -> None:
    source = open_source(written(wide(), tmp_path), ["age"])
    (tmp_path / "table.parquet").unlink()
    with pytest.raises(SourceError, match="is gone"):
        list(source.batches())


@pytest.mark.parametrize("name", ["a.xlsx", "a.ods", "a.sav", "a.dta", "a.sas7bdat"])
def test_a_file_that_may_not_be_read_is_not_called_damaged(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some readers say no more than that they failed."""
    path = text(tmp_path, b"\x00\xff" * 600, name)
    really = os.open

    def closed(asked: object, *rest: Any, **more: Any) -> int:
        if str(asked) == str(path):
            raise PermissionError(13, "Permission denied", str(path))
        return really(asked, *rest, **more)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", closed)
    said = f"the file {str(path)!r} may not be read. Check the permissions of the file"
    assert said in str(refusal(path))


def zipped() -> bytes:
    lines = "".join(f"{i}.5,{SECRET}\n" for i in range(100_000))
    return gzip.compress(f"age,word\n{lines}".encode(), 1)


@pytest.mark.parametrize(
    "damage", [lambda z: z[: len(z) // 2], lambda z: z[:-6], lambda z: z[:3000] + b"\0" * 50 + z[3050:]]
)
def test_a_damaged_gzip_file_is_noticed_while_reading(
    damage: Callable[[bytes], bytes], tmp_path: Path
) -> None:
    path = text(tmp_path, damage(zipped()), "t.csv.gz")
    assert "t.csv.gz" in str(refusal(path))


@pytest.mark.parametrize("column", ["age", "word", "last"])
@pytest.mark.parametrize("at", [5, 3_000, 5_999])
@pytest.mark.parametrize("name", ["open.csv", "open.csv.gz"])
def test_a_quote_that_would_swallow_rows_is_noticed(column: str, at: int, name: str, tmp_path: Path) -> None:
    row = {"age": "30", "word": SECRET, "last": "z"}
    broken = row | {column: '"' + row[column]}
    lines = [",".join((broken if i == at else row).values()) for i in range(6_000)]
    content = "\n".join(["age,word,last", *lines]).encode()
    path = text(tmp_path, gzip.compress(content) if name.endswith("gz") else content, name)
    assert f"{name}' ends inside a quoted cell" in str(refusal(path))


@pytest.mark.parametrize(
    "cell", ['5" pipe', 'x""y', '"closed" early', ' "padded"', '""""', '"', '"a""', '""b', '"two", three"']
)
def test_a_stray_quote_is_refused_with_its_line(cell: str, tmp_path: Path) -> None:
    path = text(tmp_path, f'age,word,last\n1,"two\nlines",x\n2,{cell},{SECRET}\n3,c,x\n')
    if cell == '""""':  # a doubled quote: well set
        assert sum(batch.num_rows for batch in open_source(path, ["age"]).batches()) == 3
    elif cell in ('"', '"a""'):
        assert "ends inside a quoted cell" in str(refusal(path))
    else:
        assert f"a quote in line 4 of {str(path)!r} neither opens nor closes" in str(refusal(path))


def test_well_set_quotes_are_read(tmp_path: Path) -> None:
    words = ['5" pipe', '"', '""', "two\nlines", "a, b", ' "padded" ', "plain", 'end"', '"start']
    path = tmp_path / "quoted.csv"
    pl.DataFrame({"word": words, "age": range(len(words))}).write_csv(path)
    (batch,) = open_source(path, ["age", "word"], kinds={"age": "number"}).batches()
    assert batch.to_pydict() == {"age": [float(i) for i in range(len(words))], "word": words}


def well_set(content: str) -> bool:
    """The reference: a cell is plain without a quote, or opens with one and closes before a separator."""
    cell = r'(?:[^",\n]*|"(?:[^"]|"")*")'
    return re.fullmatch(rf"{cell}(?:[,\n]{cell})*", content) is not None


@settings(max_examples=400, deadline=None, suppress_health_check=UNCHECKED)
@given(content=st.text('a,"\n', max_size=14), block=st.integers(1, 4), mark=st.booleans())
def test_quotes_are_judged_as_a_grammar_does(
    content: str, block: int, mark: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(quotes, "BLOCK", block)
    path = text(tmp_path, b"\xef\xbb\xbf" * mark + content.encode())
    try:
        quotes.check_quotes(path, ",", AS_USUAL)
        accepted = True
    except SourceError:
        accepted = False
    assert accepted == well_set(content)


def test_a_csv_file_without_header_does_not_show_its_first_row(tmp_path: Path) -> None:
    path = text(tmp_path, f"{SECRET},31\nother,32\n")
    error = refusal(path, ("secret4712", "age"))  # a near name, if cells were taken for names
    assert "names none of the columns" in str(error)
    assert "2 cells separated by commas" in str(error)


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("Word,AGE", "only in capital letters:"),
        (" word ,age ", "only in blanks at their ends"),
        (" Word ,AGE ", "only in capital letters and blanks"),
    ],
)
def test_names_that_differ_in_their_spelling_alone(tmp_path: Path, header: str, words: str) -> None:
    error = refusal(text(tmp_path, f"{header}\na,1\n"), ("word", "age"))
    assert words in str(error)
    assert "Word" not in str(error)
    assert "AGE" not in str(error)


def test_names_in_another_encoding_are_told(tmp_path: Path) -> None:
    error = refusal(text(tmp_path, "région,age\na,1\n".encode("latin-1")), ("région", "age"))
    assert 'encoding = "latin-1" at the top of the schema' in str(error)
    assert "encoding" not in str(refusal(text(tmp_path, "regio,age\na,1\n"), ("region", "age")))


def test_lines_of_wrong_length_follow_the_missing_policy(tmp_path: Path) -> None:
    path = text(tmp_path, "word,age\na,1\nb\n\nc,3,4,5\nd,x\n\xff,6".encode("latin-1"))
    (batch,) = open_source(path, ["age", "word"], kinds={"age": "number", "word": "text"}).batches()
    assert batch.column("age").to_pylist() == [1.0, None, None, 3.0, math.inf, 6.0]
    assert batch.column("word").to_pylist() == ["a", "b", None, "c", "d", "\N{REPLACEMENT CHARACTER}"]


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_byte_order_marks_and_line_ends(prefix: bytes, end: bytes, tmp_path: Path) -> None:
    path = text(tmp_path, prefix + end.join([b"age,word", b"1,a", b"2,b", b""]))
    (batch,) = open_source(path, ["age", "word"], kinds={"age": "number"}).batches()
    assert batch.to_pydict() == {"age": [1.0, 2.0], "word": ["a", "b"]}


@pytest.mark.parametrize(
    "data", [pa.table({"age": pa.array([], pa.float64())}), {"age": []}, np.empty((0, 1))]
)
def test_a_table_without_rows_is_no_error(data: object) -> None:
    source = open_source(data, ["age"])
    assert [batch.num_rows for batch in source.batches()] == [0]
    assert sum(batch.num_rows for feed in source.feeds(2) for _, batch in feed) == 0


def test_files_without_rows_are_no_error(tmp_path: Path) -> None:
    for path in (text(tmp_path, "age\n"), written(wide().slice(0, 0), tmp_path)):
        assert [batch.num_rows for batch in open_source(path, ["age"]).batches()] == [0]


def failing_stream() -> Iterator[pa.RecordBatch]:
    yield wide().to_batches()[0]
    raise ValueError(f"cannot convert {SECRET}")


@pytest.mark.parametrize("feeds", [0, 1, 2])
def test_a_stream_that_fails_midway(feeds: int) -> None:
    reader = pa.RecordBatchReader.from_batches(wide().schema, failing_stream())
    assert "cannot be read to its end" in str(refusal(reader, feeds=feeds))


def test_a_stream_is_read_once() -> None:
    source = open_source(wide().to_reader(), ["age"])
    assert sum(batch.num_rows for batch in source.batches()) == 2
    with pytest.raises(SourceError, match="was read already"):
        list(source.batches())


@pytest.mark.parametrize("feeds", [0, 2])
def test_a_polars_query_that_fails_midway(feeds: int) -> None:
    query = pl.from_arrow(wide()).lazy().with_columns(age=pl.col("smoker").cast(pl.Int64))
    assert "the Polars query cannot be read" in str(refusal(query, feeds=feeds))


def test_a_polars_query_that_cannot_be_planned(tmp_path: Path) -> None:
    assert "the Polars query" in str(refusal(pl.scan_parquet(tmp_path / "none.parquet")))
    assert "the Polars query" in str(refusal(pl.LazyFrame({"a": [1]}).select("b")))


def test_an_object_whose_stream_is_no_table() -> None:
    assert "'ChunkedArray'" in str(refusal(pa.chunked_array([[1.0]])))
    assert "a polars Series is one column" in str(refusal(pl.Series([1.0])))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ("SELEC 1", "a mistake near 'SELEC'"),
        ("SELECT * FROM nowhere", "does not have; got 'nowhere'"),
        ("SELECT nothing FROM range(3)", "does not have; got 'nothing'"),
        ("DROP TABLE people", "single SELECT; got DROP"),
        ("SELECT 1 AS age; SELECT 2 AS age", "single SELECT; got SELECT and SELECT"),
        ("INSERT INTO people VALUES (1) RETURNING *", "single SELECT; got INSERT"),
        ("", "got no statement"),
        (f"SELECT CAST(w AS INT) AS age FROM (VALUES ('1'), ('{SECRET}')) t(w)", "ConversionException"),
    ],
)
def test_sql_errors(query: str, words: str) -> None:
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people AS SELECT 1 AS age")
    assert words in str(refusal((connection, query)))
    assert connection.sql("FROM people").fetchall() == [(1,)]  # nothing was changed, and it is free again


def test_a_relation_that_fails_midway() -> None:
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE t AS SELECT CASE WHEN i < 90000 THEN '1' ELSE '{SECRET}' END AS w "
        "FROM range(100000) r(i)"
    )
    relation = connection.sql("SELECT CAST(w AS INT) AS age FROM t")
    assert "DuckDB cannot run the query to its end" in str(refusal(relation))


def test_databases_that_cannot_be_opened(tmp_path: Path) -> None:
    assert "no database file" in str(refusal((tmp_path / "none.db", "SELECT 1")))
    assert not (tmp_path / "none.db").exists()
    assert "DuckDB" in str(refusal((text(tmp_path, "noise" * 5_000, "bad.db"), "SELECT 1 AS age")))
    assert "a database of type int" in str(refusal((1, "SELECT 1")))
    assert "a query of type int" in str(refusal((":memory:", 1)))
    assert "(database, query); got 3 items" in str(refusal((1, 2, 3)))
    path = tmp_path / "busy.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1.0 AS age")
        assert "(connection, query)" in str(refusal((path, "FROM t")))
        (batch,) = open_source((connection, "FROM t"), ["age"]).batches()
    assert batch.num_rows == 1


def test_a_database_is_opened_for_reading_only(tmp_path: Path) -> None:
    path = tmp_path / "people.db"
    with duckdb.connect(str(path)) as connection:
        connection.execute('CREATE TABLE t AS SELECT 1.0 AS "we""ird", 2 AS age')
    before = path.read_bytes()
    (batch,) = open_source((path, "FROM t"), ['we"ird', "age"]).batches()
    assert batch.schema.names == ['we"ird', "age"]
    assert path.read_bytes() == before


def test_duckdb_is_an_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(MissingExtra, match=r"dpgram\[duckdb\]"):
        open_source((":memory:", "SELECT 1 AS age"), ["age"])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros(3), "two dimensions, rows and columns"),
        (np.zeros((3, 2)), "got 2 columns; limit: 1 columns"),
        (np.zeros((2, 1), complex), "complex128"),
        ({"age": np.zeros((2, 2))}, "the column 'age' must have one dimension"),
        ({"age": np.zeros(2, "m8[s]")}, "timedelta64"),
        ({"age": 5}, "the column 'age' cannot be read"),
        (np.zeros(2, [("age", float, (2,))]), "the column 'age' must have one dimension"),
        (np.zeros((2, 2), [("age", float)]), "one dimension"),
    ],
)
def test_arrays_of_the_wrong_shape_or_type(data: object, words: str) -> None:
    assert words in str(refusal(data))


def test_columns_of_unequal_length_are_named() -> None:
    error = refusal({"age": [1, 2], "bmi": [1, 2, 3]}, ("age", "bmi"))
    assert "'age' and 'bmi' differ in length" in str(error)


def test_pandas_columns_that_arrow_cannot_hold() -> None:
    frame = pd.DataFrame({"age": pd.array([1 + 2j, 2], dtype="complex128")})
    assert "the column 'age' cannot be read" in str(refusal(frame))


class StoppedError(Exception):
    """A consumer's own failure."""


def test_the_failure_of_a_consumer_ends_the_other_feeds() -> None:
    source: Source = open_source({"age": np.zeros(10_000)}, ["age"], batch_rows=10)
    first, second = source.feeds(2)
    next(first)
    next(second)
    with pytest.raises(StoppedError):
        first.throw(StoppedError)
    assert len(list(second)) == 0


FIRST_LINES: dict[str, tuple[bytes, str]] = {
    "blank": (b"\nage,word\n31,a\n", "is blank; limit: a header with the names of the columns. Delete the"),
    "no names": (b" , \nage,word\n31,a\n", "is blank; limit: a header"),
    "returns": (b"age,word\r31,a\r32,b\r", "got carriage returns alone"),
    "returns without a row": (b"age,word\r", "got carriage returns alone"),
    "sep": (b"sep=;\r\nage;word\r\n31;a\r\n", 'got sep=;. Delete this line, and write separator = ";" at'),
    "sep of commas": (b'"sep=,"\nage,word\n31,a\n', "got sep=,. Delete this line."),
    "title": (b"Report 2024\n\nage,word\n31,a\n", "The header stands in line 3: delete the lines above it"),
    "utf-16": ("age,word\n31,a\n".encode("utf-16"), 'It is UTF-16 text: write encoding = "utf-16" at the'),
}


@pytest.mark.parametrize("case", FIRST_LINES)
def test_a_first_line_that_is_no_header_is_told_as_what_it_is(case: str, tmp_path: Path) -> None:
    content, words = FIRST_LINES[case]
    assert words in str(refusal(text(tmp_path, content), ("age", "word")))


def test_names_in_another_encoding(tmp_path: Path) -> None:
    path = text(tmp_path, "größe,age\n1,2\n".encode("latin-1"))
    for columns in (("größe",), ("größe", "age")):
        assert 'It is Latin-1 text: write encoding = "latin-1" at the top' in str(refusal(path, columns))


@pytest.mark.parametrize("mark", [",", ";"])
def test_a_title_is_told_by_the_starter_schema(mark: str, tmp_path: Path) -> None:
    from dpgram.publishing.starter import starter_schema

    path = text(tmp_path, f"Report 2024{mark * 2}\n\nage{mark}word{mark}z\n31{mark}a{mark}b\n")
    with pytest.raises(SourceError, match="seems to be a title and not a header; got one cell, and more"):
        starter_schema(path)
    assert "age" in starter_schema(text(tmp_path, "age\n31\n32\n"))


def test_quoted_returns_in_a_name_are_part_of_it(tmp_path: Path) -> None:
    assert list(column_types(text(tmp_path, b'"a\rb",c\r\n1,2\r\n'))) == ["a\rb", "c"]


def below(path: Path) -> ds.Dataset:
    """The file by its place in a folder that counts as a file system."""
    return ds.dataset(path.name, filesystem=fs.SubTreeFileSystem(str(path.parent), fs.LocalFileSystem()))


def row_groups(path: Path, *numbers: int) -> ds.Dataset:
    """These groups of a file, each by itself."""
    (file,) = ds.dataset(path).get_fragments()
    groups = file.split_by_row_group()
    return ds.FileSystemDataset(
        [groups[number] for number in numbers], file.physical_schema, file.format, file.filesystem
    )


class TestTheSameFileTwice:
    """All its rows would count twice: refused by its identity, before anything is read."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        (tmp_path / "parts").mkdir()
        for name in ("one", "two"):
            (tmp_path / "parts" / f"{name}.csv").write_text("age\n1\n2\n")
            pq.write_table(pa.table({"age": [1.0, 2.0]}), tmp_path / "parts" / f"{name}.parquet")
        return tmp_path / "parts"

    @pytest.mark.parametrize(
        ("given", "said"),
        [
            (["one.csv", "one.csv"], "one.csv' twice"),
            (["two.csv", "one.csv", "../parts/two.csv"], "which are one file"),
            (["one.csv", "*.csv"], "one.csv' twice"),
            ([".", "one.parquet"], "one.parquet' twice"),
        ],
    )
    def test_in_a_list(self, given: list[str], said: str, folder: Path) -> None:
        error = refusal([f"{folder}/{name}" for name in given])
        assert error.what == "the same rows would be counted twice"
        assert said in str(error.got)

    @pytest.mark.parametrize("link", [os.link, os.symlink])
    @pytest.mark.parametrize("given", ["", "/*.parquet", "/*.csv"])
    def test_by_a_link(self, link: Callable[[Path, Path], None], given: str, folder: Path) -> None:
        for ending in ("csv", "parquet"):
            link(folder / f"one.{ending}", folder / f"three.{ending}")
        assert "which are one file" in str(refusal(f"{folder}{given}"))

    def test_behind_addresses(self, folder: Path) -> None:
        address = f"file://{folder}/one.parquet"
        assert "counted twice" in str(refusal([address, address]))
        assert "counted twice" in str(refusal([address, f"file://{folder}/*.parquet"]))
        read_all([address, f"file://{folder}/two.parquet"], ("age",), 0)

    @pytest.mark.parametrize(
        ("make", "said"),
        [
            (lambda one, two: ds.dataset([one, two, one]), "one.parquet' twice"),
            (lambda one, two: ds.dataset([two, one, one]).filter(ds.field("age") > 1), "one.parquet' twice"),
            (lambda one, two: ds.dataset([ds.dataset(one), ds.dataset([two, one])]), "one.parquet' twice"),
            (lambda one, _: ds.dataset([ds.dataset(one), below(one)]), "which are one file"),
            (lambda one, _: row_groups(one, 0, 1, 0), "one.parquet' twice"),
            (lambda one, two: pl.scan_parquet([two, one, one]), "one.parquet' twice"),
            (
                lambda one, two: pl.concat([pl.scan_parquet([one, one]).head(1), pl.scan_parquet(two)]),
                "one.parquet' twice",
            ),
            (
                lambda one, _: pl.scan_parquet([one.with_name("*.parquet"), one]).group_by("age").len(),
                "one.parquet' twice",
            ),
        ],
    )
    def test_in_datasets_and_queries(
        self, make: Callable[[Path, Path], object], said: str, folder: Path
    ) -> None:
        pq.write_table(pa.table({"age": [1.0, 2.0]}), folder / "one.parquet", row_group_size=1)
        error = refusal(make(folder / "one.parquet", folder / "two.parquet"))
        assert error.what == "the same rows would be counted twice"
        assert said in str(error.got)

    @pytest.mark.parametrize("link", [os.link, os.symlink])
    @pytest.mark.parametrize("read", [ds.dataset, pl.scan_parquet])
    def test_in_datasets_and_queries_by_a_link(
        self, link: Callable[[Path, Path], None], read: Callable[[list[Path]], object], folder: Path
    ) -> None:
        link(folder / "one.parquet", folder / "three.parquet")
        assert "which are one file" in str(refusal(read(sorted(folder.glob("*.parquet")))))

    def test_what_is_read_once_is_not_refused(self, folder: Path) -> None:
        one, two = folder / "one.parquet", folder / "two.parquet"
        pq.write_table(pa.table({"age": [1.0, 2.0]}), one, row_group_size=1)
        scanned = pl.scan_parquet(one)
        halves = (scanned.filter(pl.col("age") <= 1), scanned.filter(pl.col("age") > 1))
        inside = [
            ds.ParquetFileFormat().make_fragment(pa.py_buffer(each.read_bytes())) for each in (one, two)
        ]
        for data, rows in (
            (ds.dataset([one, two]), 4),
            (row_groups(one, 1, 0), 2),
            (ds.FileSystemDataset(inside, inside[0].physical_schema, ds.ParquetFileFormat()), 4),
            (pl.scan_parquet([one, two]), 4),
            (pl.concat(halves), 2),
            (scanned.join(scanned.group_by("age").len(), on="age"), 2),
        ):
            source = open_source(data, ("age",), kinds={"age": "number"})
            assert sum(batch.num_rows for batch in source.batches()) == rows

    def test_copies_are_other_files(self, folder: Path) -> None:
        read_all([str(folder / "one.csv"), str(folder / "two.csv")], ("age",), 2)

    def test_a_value_in_the_name_of_a_folder_is_not_shown(self, tmp_path: Path) -> None:
        place = tmp_path / f"name={SECRET}"
        place.mkdir()
        file = written(wide(), place)
        assert "name=…" in str(refusal([file, file]))

"""Ids map one to one to units, from every source: neither do two persons become one, nor one person two."""

from __future__ import annotations

import datetime as dt
import json
import os
import re
import sqlite3
import sys
import tempfile
import zipfile
from collections.abc import Callable, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import dask.dataframe as dd
import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.flat import publish
from tests.flat import rules as row_rules

from dpgram.document.fields import UnitRule
from dpgram.engines.dask import DaskEngine
from dpgram.engines.local import LocalEngine, add_up
from dpgram.engines.passes import Pass, gram_pass
from dpgram.errors import SourceError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.ledger import Ledger
from dpgram.rows.encoder import Encoder
from dpgram.rows.units import unit_ids
from dpgram.schema import Schema, categorical, numeric
from dpgram.sources import column_types, delimited, open_source
from dpgram.sums.counts import ExactCounts, OctavesStatistic
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.levels import ExactLevels, LevelsStatistic

SCHEMA = Schema(numeric("x", -1, 1), numeric("y", -1, 1))
RULE = UnitRule(counts="units", rows_at_most=1024)


def plan() -> Pass:
    return gram_pass(Encoder(SCHEMA), unit="id", rule=RULE)


def read(data: object, batch_rows: int = 65536) -> list[str | None]:
    source = open_source(data, ["id"], kinds={"id": "id"}, batch_rows=batch_rows)
    return [text for batch in source.batches() for text in unit_ids(batch.column(0), "id").to_pylist()]


def number(text: str) -> int | None:
    """The whole number that a text spells as programs do: digits, 7.0, 1e+16 or 1.2E7."""
    if re.fullmatch(r"-?(0|[1-9]\d*)(\.0+)?", text, re.ASCII) and text != "-0":
        return int(text.partition(".")[0])
    if re.fullmatch(r"-?[1-9](\.\d+)?[eE]\+?\d{1,3}", text, re.ASCII) and ("." in text or "+" in text):
        value = Decimal(text)
        return int(value) if value == int(value) else None
    return None


def person(cell: Any) -> tuple[str, object] | None:
    """Who this is, by the words of docs/how-to/persons.md: the reference for all sources."""
    if cell is None or cell == "" or cell == b"" or cell != cell:
        return None
    if isinstance(cell, str):
        whole = number(cell)
        return ("text", cell.encode("utf-8", "surrogatepass")) if whole is None else ("number", whole)
    if isinstance(cell, bytes):
        return ("bytes", cell)
    if isinstance(cell, bool):
        return ("text", str(cell).lower().encode())
    if isinstance(cell, float | Decimal | int):
        exact = Decimal(repr(cell)) if isinstance(cell, float) else Decimal(cell)
        if not exact.is_finite():
            return ("text", str(float(exact)).encode())
        if exact == exact.to_integral_value():
            return ("number", int(cell))
        return ("text", f"{exact:f}".rstrip("0").encode())
    return ("text", str(cell).removesuffix(" 00:00:00").encode())


def assert_one_to_one(cells: Sequence[Any], texts: Sequence[str | None]) -> None:
    assert len(cells) == len(texts)
    persons = [person(cell) for cell in cells]
    assert [who is None for who in persons] == [text is None for text in texts]
    pairs = {(who, text) for who, text in zip(persons, texts, strict=True)}
    assert len(pairs) == len(set(persons)) == len(set(texts))


def csv(cells: Sequence[bytes], folder: Path) -> Path:
    path = folder / "people.csv"
    quoted = b"".join(b'"' + cell.replace(b'"', b'""') + b'",x\r\n' for cell in cells)
    path.write_bytes(b"id,other\n" + quoted)
    return path


def stray(cells: Sequence[bytes | None], kind: pa.DataType) -> pa.Array:
    """Arrow text of any bytes: readers of files make such without a look."""
    binary = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
    return pa.array(cells, binary).view(kind)


def parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "people.parquet", row_group_size=3)
    return folder / "people.parquet"


def sqlite(cells: Sequence[Any], folder: Path) -> tuple[sqlite3.Connection, str]:
    connection = sqlite3.connect(folder / "people.sqlite")
    connection.execute("CREATE TABLE people (id)")
    connection.executemany("INSERT INTO people VALUES (?)", [(cell,) for cell in cells])
    connection.commit()
    return connection, "SELECT id FROM people"


def duck(cells: Sequence[Any], kind: str) -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE people (id {kind})")
    if cells:
        connection.executemany("INSERT INTO people VALUES (?)", [(cell,) for cell in cells])
    return connection, "SELECT id FROM people"


TEXT_LIKE = ["7", "7.0", "7.00", "07", " 7", "7.50", "7.5", "-0.0", "0", "-0", "1e16", "1e+16", "1.0E16",
             "10000000000000000", "1.5e+0", "1.25E2", "1.25e+1", "M\udcfcller", "M\udcf6ller", "M�ller",
             "Müller", "Möller", "a\x00fc", "a\udcfc", "a\x00", "a", "\x00x61", "true", "inf", "nan", "NA",
             "1e+999", "x" * 300]  # fmt: skip
TEXTS = st.lists(
    st.one_of(st.sampled_from(TEXT_LIKE), st.text(st.characters(), max_size=5)), min_size=1, max_size=8
)
VALID = TEXTS.map(lambda cells: [cell.encode("utf-8", "replace").decode() for cell in cells])
BYTES = st.lists(
    st.one_of(
        st.binary(max_size=4),
        st.sampled_from([b"a", b"\xfc", b"\xf6", b"\xef\xbf\xbd", b"7", b"\x00a", b'"', b"\n"]),
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip
FLOATS = st.one_of(
    st.sampled_from(
        [7.0, 7.5, -0.0, 0.0, 1e16, 2.0**53, 2.0**53 + 2, 1e300, 1e23, 1e-7, 5e-324, float("inf")]
    ),
    st.floats(allow_nan=False),
)
INTEGERS = st.one_of(
    st.sampled_from([7, 0, -7, 10**16, 2**53, 2**53 + 1, 2**63 - 1]), st.integers(-(2**63), 2**63 - 1)
)
DECIMALS = st.one_of(
    st.sampled_from([Decimal(word) for word in ("7", "7.0", "7.5", "7.50", "0E-10", "1E+16", "1E-7", "-0")]),
    st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**12), max_value=10**12, places=6),
)
STORED = st.lists(
    st.one_of(
        st.sampled_from([text for text in TEXT_LIKE if text.isprintable()]),
        st.binary(max_size=3),
        FLOATS,
        INTEGERS,
    ),
    min_size=1,
    max_size=8,
)
moment = dt.datetime.fromisoformat
NAIVE = st.datetimes(max_value=moment("2200-01-01"), min_value=moment("1700-01-01"))
OBJECTS = st.lists(
    st.one_of(
        st.sampled_from(TEXT_LIKE), st.binary(max_size=3), FLOATS, INTEGERS, st.integers(), DECIMALS,
        st.booleans(), NAIVE, st.dates(), st.uuids(), st.none(), st.just(float("nan")),
    ),
    min_size=1,
    max_size=8,
)  # fmt: skip


def with_folder(make: Callable[[Sequence[Any], Path], Any], cells: Sequence[Any]) -> list[str | None]:
    with tempfile.TemporaryDirectory() as folder:
        data = make(cells, Path(folder))
        try:
            return read(data, batch_rows=3)
        finally:
            if isinstance(data, tuple):
                data[0].close()


ANY_TEXT: dict[str, Callable[[Sequence[str], Path], Any]] = {
    "list": lambda cells, _: {"id": list(cells)},
    "objects": lambda cells, _: {"id": np.array(cells, object)},
    "numpy U": lambda cells, _: {"id": np.array([cell.rstrip("\x00") for cell in cells], "U")},
    "plain array": lambda cells, _: np.array(cells, object).reshape(-1, 1),
    "pandas objects": lambda cells, _: pd.DataFrame({"id": pd.Series(cells, dtype=object)}),
    "polars objects": lambda cells, _: pl.DataFrame({"id": pl.Series(cells, dtype=pl.Object)}),
    "a series of pandas": lambda cells, _: {"id": pd.Series(cells, dtype=object)},
    "a series of polars": lambda cells, _: {"id": pl.Series(cells, dtype=pl.Object)},
}  # fmt: skip
VALID_TEXT: dict[str, Callable[[Sequence[str], Path], Any]] = {
    "pandas str": lambda cells, _: pd.DataFrame({"id": pd.Series(cells, dtype="str")}),
    "pandas string": lambda cells, _: pd.DataFrame({"id": pd.Series(cells, dtype="string")}),
    "pandas categories": lambda cells, _: pd.DataFrame({"id": pd.Categorical(cells)}),
    "polars": lambda cells, _: pl.DataFrame({"id": list(cells)}),
    "a typed series of pandas": lambda cells, _: {"id": pd.Series(cells, dtype="str")},
    "a typed series of polars": lambda cells, _: {"id": pl.Series(list(cells))},
    "polars lazy": lambda cells, _: pl.LazyFrame({"id": list(cells)}),
    "polars categories": lambda cells, _: pl.DataFrame({"id": pl.Series(cells, dtype=pl.Categorical)}),
    "arrow": lambda cells, _: pa.table({"id": pa.array(cells)}),
    "arrow views": lambda cells, _: pa.table({"id": pa.array(cells, pa.string_view())}),
    "arrow dictionary": lambda cells, _: pa.table({"id": pa.array(cells).dictionary_encode()}),
    "arrow runs": lambda cells, _: pa.table({"id": pa.compute.run_end_encode(pa.array(cells))}),
    "parquet": lambda cells, folder: parquet(pa.table({"id": pa.array(cells)}), folder),
    "csv": lambda cells, folder: csv([cell.encode() for cell in cells], folder),
    "sqlite": sqlite,
    "duckdb": lambda cells, _: duck(cells, "VARCHAR"),
}
ANY_BYTES: dict[str, Callable[[Sequence[bytes], Path], Any]] = {
    "list": lambda cells, _: {"id": list(cells)},
    "objects": lambda cells, _: {"id": np.array(cells, object)},
    "views of memory": lambda cells, _: {"id": [memoryview(cell) for cell in cells]},
    "numpy S": lambda cells, _: {"id": np.array(cells, "S")},
    "structured": lambda cells, _: np.array([(cell,) for cell in cells], [("id", "S9")]),
    "pandas": lambda cells, _: pd.DataFrame({"id": list(cells)}),
    "polars": lambda cells, _: pl.DataFrame({"id": list(cells)}),
    "arrow": lambda cells, _: pa.table({"id": pa.array(cells, pa.binary())}),
    "arrow large": lambda cells, _: pa.table({"id": pa.array(cells, pa.large_binary())}),
    "arrow views": lambda cells, _: pa.table({"id": pa.array(cells, pa.binary_view())}),
    "arrow dictionary": lambda cells, _: pa.table({"id": pa.array(cells, pa.binary()).dictionary_encode()}),
    "parquet": lambda cells, folder: parquet(pa.table({"id": pa.array(cells, pa.binary())}), folder),
    "sqlite": sqlite,
    "duckdb": lambda cells, _: duck(cells, "BLOB"),
}
STRAY_TEXT: dict[str, Callable[[Sequence[bytes], Path], Any]] = {
    "csv": csv,
    "arrow": lambda cells, _: pa.table({"id": stray(cells, pa.string())}),
    "arrow large": lambda cells, _: pa.table({"id": stray(cells, pa.large_string())}),
    "arrow dictionary": lambda cells, _: pa.table({"id": stray(cells, pa.string()).dictionary_encode()}),
    "parquet": lambda cells, folder: parquet(pa.table({"id": stray(cells, pa.string())}), folder),
    "sqlite": lambda cells, folder: sqlite_of_text(cells, folder),
}


def sqlite_of_text(cells: Sequence[bytes], folder: Path) -> tuple[sqlite3.Connection, str]:
    connection, _ = sqlite(cells, folder)
    return connection, "SELECT CAST(id AS TEXT) AS id FROM people"


@pytest.mark.parametrize("form", ANY_TEXT)
@settings(deadline=None, max_examples=60)
@given(cells=TEXTS)
@example(cells=TEXT_LIKE)
def test_text(form: str, cells: list[str]) -> None:
    if form == "numpy U":  # which has no letters NUL at the end
        cells = [cell.rstrip("\x00") for cell in cells]
    assert_one_to_one(cells, with_folder(ANY_TEXT[form], cells))


@pytest.mark.parametrize("form", VALID_TEXT)
@settings(deadline=None, max_examples=25)
@given(cells=VALID)
@example(cells=[cell.encode("utf-8", "replace").decode() for cell in TEXT_LIKE])
def test_valid_text(form: str, cells: list[str]) -> None:
    assert_one_to_one(cells, with_folder(VALID_TEXT[form], cells))


@pytest.mark.parametrize("form", ANY_BYTES)
@settings(deadline=None, max_examples=25)
@given(cells=BYTES)
def test_bytes(form: str, cells: list[bytes]) -> None:
    if form in ("numpy S", "structured"):  # which have no bytes NUL at the end
        cells = [cell.rstrip(b"\x00") for cell in cells]
    assert_one_to_one(cells, with_folder(ANY_BYTES[form], cells))


@pytest.mark.parametrize("form", STRAY_TEXT)
@settings(deadline=None, max_examples=40)
@given(cells=BYTES)
@example(
    cells=["Müller".encode("latin-1"), "Möller".encode("latin-1"), "Müller".encode(), b"M\xef\xbf\xbdller"]
)
def test_text_in_any_encoding(form: str, cells: list[bytes]) -> None:
    if form == "sqlite":  # a NUL ends a text there
        cells = [cell.partition(b"\x00")[0] for cell in cells]
    letters = [cell.decode("utf-8", "surrogateescape") for cell in cells]
    assert_one_to_one(letters, with_folder(STRAY_TEXT[form], cells))


@settings(deadline=None, max_examples=200)
@given(cells=OBJECTS)
@example(cells=[*TEXT_LIKE, 7, 7.0, Decimal(7), Decimal("7.00"), 10**16, 1e16, b"7", b"a", True, 1])
def test_objects_of_any_type(cells: list[Any]) -> None:
    column = np.empty(len(cells), object)
    column[:] = cells
    series = pd.Series(column, dtype=object)
    of_polars = pl.Series(list(cells), dtype=pl.Object)
    frames = [
        {"id": list(cells)},
        {"id": column},
        pd.DataFrame({"id": series}),
        {"id": series},
        {"id": of_polars},
    ]
    for data in frames:
        assert_one_to_one(cells, read(data, batch_rows=3))


@settings(deadline=None, max_examples=30)
@given(cells=STORED)
def test_sqlite_of_any_storage_class(cells: list[Any]) -> None:
    assert_one_to_one(cells, with_folder(sqlite, cells))


@settings(deadline=None, max_examples=60)
@given(numbers=st.lists(FLOATS, min_size=1, max_size=8))
def test_columns_of_floats_agree_with_objects(numbers: list[float]) -> None:
    expected = read({"id": list(numbers)})
    assert_one_to_one(numbers, expected)
    assert read({"id": np.array(numbers)}) == expected
    assert read(pl.DataFrame({"id": numbers})) == expected
    assert read(pd.DataFrame({"id": [*numbers, None]}))[:-1] == expected


@settings(deadline=None, max_examples=60)
@given(numbers=st.lists(DECIMALS, min_size=1, max_size=8))
def test_columns_of_decimals_agree_with_objects(numbers: list[Decimal]) -> None:
    expected = read({"id": list(numbers)})
    assert_one_to_one(numbers, expected)
    for kind in (pa.decimal128(38, 10), pa.decimal256(60, 20)):
        assert read(pa.table({"id": pa.array(numbers, kind)})) == expected


@settings(deadline=None, max_examples=60)
@given(moments=st.lists(NAIVE, min_size=1, max_size=5), zone=st.sampled_from([None, 0, 90, -600]))
def test_columns_of_moments_agree_with_objects(moments: list[dt.datetime], zone: int | None) -> None:
    zoned = [
        m if zone is None else m.replace(tzinfo=dt.timezone(dt.timedelta(minutes=zone))) for m in moments
    ]
    expected = read({"id": list(zoned)})
    assert len(set(expected)) == len(set(moments))
    assert None not in expected
    assert (
        read(pa.table({"id": pa.array(zoned, pa.timestamp("us", None if zone is None else "Asia/Tokyo"))}))
        == expected
    )
    assert read(pd.DataFrame({"id": zoned})) == expected
    assert read(pd.DataFrame({"id": pd.Series([pd.Timestamp(m) for m in zoned], dtype=object)})) == expected
    if zone is None:
        assert read({"id": [np.datetime64(moment) for moment in moments]}) == expected
        assert read({"id": np.array(moments, "datetime64[us]")}) == expected


@pytest.mark.parametrize(
    ("cells", "texts"),
    [
        ([dt.date(2020, 1, 31), moment("2020-01-31"), np.datetime64("2020-01-31"), "2020-01-31"],
         ["2020-01-31"]),
        ([np.datetime64("2020"), np.datetime64("2020-01"), dt.date(2020, 1, 1)], ["2020-01-01"]),
        ([pd.Timestamp(2020, 1, 1, nanosecond=7), np.datetime64("2020-01-01T00:00:00.000000007")],
         ["2020-01-01 00:00:00.000000007"]),
        ([dt.datetime(2020, 1, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=1)))], ["2020-01-01Z"]),
        ([dt.datetime.min.replace(tzinfo=dt.timezone(dt.timedelta(hours=1)))], ["0000-12-31 23:00:00Z"]),
        ([np.datetime64(10**18, "Y")], ["1000000000000001970-01-01"]),
        ([UUID(int=5), str(UUID(int=5))], ["00000000-0000-0000-0000-000000000005"]),
        ([np.longdouble(7), 7], ["7"]),
        ([pd.NaT, np.datetime64("NaT"), pd.NA, [1], {}, 1j, dt.timedelta(1), np.timedelta64(1, "s"), 10**5000,
          Decimal("1E+5000"), Decimal("sNaN"), np.longdouble(1) / 3], [None]),
    ],
)  # fmt: skip
def test_objects_and_their_texts(cells: list[Any], texts: list[str | None]) -> None:
    assert read({"id": cells}) == texts * len(cells)


WITH_GAPS: dict[str, Callable[[Sequence[int | None]], Any]] = {
    "a frame of pandas": lambda cells: pd.DataFrame({"id": pd.array(cells, "Int64")}),
    "a series": lambda cells: {"id": pd.Series(cells, dtype="Int64")},
    "values of a series": lambda cells: {"id": pd.Series(cells, dtype="Int64").values},
    "an array of a series": lambda cells: {"id": pd.Series(cells, dtype="int64[pyarrow]").array},
    "an array of objects": lambda cells: {"id": pd.Series(cells, dtype=object).array},
    "an index": lambda cells: {"id": pd.Index(pd.array(cells, "Int64"))},
    "an index of objects": lambda cells: {"id": pd.Index(cells, dtype=object)},
    "categories": lambda cells: {"id": pd.Categorical(cells)},
    "an index of categories": lambda cells: {"id": pd.CategoricalIndex(cells)},
    "polars": lambda cells: pl.DataFrame({"id": pl.Series(cells, dtype=pl.Int64)}),
    "arrow": lambda cells: {"id": pa.array(cells, pa.int64())},
    "objects": lambda cells: {"id": np.array(cells, object)},
    "records": lambda cells: np.array([(cell,) for cell in cells], [("id", object)]),
    "a masked array": lambda cells: {
        "id": np.ma.array([cell or 0 for cell in cells], mask=[cell is None for cell in cells])
    },
    "duckdb": lambda cells: duck(cells, "BIGINT"),
}


@pytest.mark.parametrize("form", WITH_GAPS)
def test_a_row_without_an_id_changes_no_other(form: str) -> None:
    """numpy has no missing integers: of pandas' it makes floats, in which long ids are one."""
    ids = [2**53, 2**53 + 1, 2**60, 2**60 + 1, -(2**53) - 1, 7]
    expected = [str(number) for number in ids]
    assert read(WITH_GAPS[form](ids)) == expected
    assert read(WITH_GAPS[form]([*ids[:3], None, *ids[3:]])) == [*expected[:3], None, *expected[3:]]


def dask_series(cells: Sequence[Any]) -> Any:
    return dd.from_pandas(pd.Series(cells), npartitions=1)


class States:
    """An object of another library, which becomes an array of numpy when somebody asks."""

    def __init__(self, cells: Any, dtype: Any) -> None:
        self.dtype, self._cells = dtype, np.asarray(cells)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self._cells


@pytest.mark.parametrize(
    "column",
    [
        dask_series([1, 2]),
        States([1.0, np.nan], np.dtype("int64")),
        States([1, 2], "int64 or float64"),
        pd.MultiIndex.from_arrays([[1, 2], [1, 2]]),
    ],
    ids=["dask", "another type", "no type of numpy", "several levels"],
)
def test_columns_whose_type_their_cells_decide_are_refused(column: Any) -> None:
    with pytest.raises(SourceError, match="'id'"):
        read({"id": column})


PARQUET_BY_DASK: dict[str, Callable[[Path], Any]] = {
    "as it comes": dd.read_parquet,
    "by Arrow": lambda path: dd.read_parquet(path, filesystem="arrow"),
    "cast": lambda path: dd.read_parquet(path).astype({"id": "Int64"}),
    "copied": lambda path: dd.read_parquet(path).drop(columns="id").assign(id=dd.read_parquet(path)["id"]),
    "merged": lambda path: dd.read_parquet(path)[["id", "x"]].merge(dd.read_parquet(path)[["id", "y"]]),
}
EXACT_BY_DASK: dict[str, Callable[[Path], Any]] = {
    "types of Arrow": lambda path: dd.read_parquet(path, dtype_backend="pyarrow"),
    "types of Arrow, by Arrow": lambda path: dd.read_parquet(
        path, dtype_backend="pyarrow", filesystem="arrow"
    ),
    "types with gaps": lambda path: dd.read_parquet(path, dtype_backend="numpy_nullable"),
    "text": lambda path: dd.read_parquet(path).drop(columns="id").rename(columns={"text": "id"}),
    "short integers": lambda path: dd.read_parquet(path).drop(columns="id").rename(columns={"short": "id"}),
    "the path": Path,
}


class TestParquetByDask:
    @pytest.fixture(params=[0, 1])
    def path(self, request: pytest.FixtureRequest, tmp_path: Path) -> Path:
        count, gap = 300, [None] * request.param
        cells = [0.5] * (count + request.param)
        table = {
            "id": pa.array([*range(2**60, 2**60 + count), *gap], pa.int64()),
            "text": [*map(str, range(count)), *gap],
            "short": pa.array([*range(count), *gap], pa.int32()),
            "x": cells,
            "y": cells,
        }
        return parquet(pa.table(table), tmp_path)

    @pytest.mark.parametrize("form", PARQUET_BY_DASK)
    def test_integers_that_would_be_floats_are_refused(self, form: str, path: Path) -> None:
        """With a missing one or without: that must not decide."""
        with pytest.raises(SourceError, match="dtype_backend='pyarrow'"):
            DaskEngine(scheduler="threads").add_up(PARQUET_BY_DASK[form](path), plan())

    @pytest.mark.filterwarnings("ignore:.*deprecat")  # Dask's own, by pandas
    @pytest.mark.parametrize("form", EXACT_BY_DASK)
    def test_others_keep_everybody_apart(self, form: str, path: Path) -> None:
        (found,) = DaskEngine(scheduler="threads").add_up(EXACT_BY_DASK[form](path), plan())
        assert found.counts.units_read == 300


def test_a_column_of_another_library_is_read_as_it_states() -> None:
    assert read({"id": States([2**53 + 1, 7], np.dtype("int64"))}) == [str(2**53 + 1), "7"]


@pytest.mark.parametrize(
    "kind",
    [pa.string(), pa.string_view(), pa.large_string(), pa.binary(), pa.binary_view(), pa.large_binary()],
    ids=str,
)
def test_dictionaries_in_several_parts_are_read_as_in_one(kind: pa.DataType) -> None:
    """Whether a batch straddles two parts follows from the number of rows."""
    cells = pa.array(["a", "b", "a", None, "c"], pa.string()).cast(pa.binary()).cast(kind)
    whole = pa.DictionaryArray.from_arrays(pa.array([0, 1, 0, None, 4], pa.int8()), cells)
    parts = pa.table({"id": pa.chunked_array([whole, whole.slice(1)])})
    texts = read(pa.table({"id": whole}))
    assert read(parts) == [*texts, *texts[1:]]
    assert len(set(texts)) == 4


def test_days_of_any_year_are_those_of_the_calendar() -> None:
    days = np.arange(-800_000, 800_000, 131)
    texts = read({"id": [np.datetime64(int(day), "D") for day in days]})
    assert texts == [str(text) for text in np.datetime_as_string(days.astype("datetime64[D]")).tolist()]


YEARS = [-(10**5), -32_768, -1, 0, 1, 9_999, 10_000, 32_768, 10**6]


@pytest.mark.parametrize("year", YEARS)
def test_days_of_any_year_are_those_of_arrow(year: int) -> None:
    """Arrow writes years of more or less than four digits otherwise than numpy, and few of them at all."""
    days = (np.datetime64(year - 1970, "Y").astype("datetime64[D]") + np.arange(3)).astype(np.int64)
    expected = read({"id": [np.datetime64(int(day), "D") for day in days]})
    assert len(set(expected)) == 3
    kinds: dict[pa.DataType, int] = {pa.date32(): 1, pa.date64(): 86_400_000, pa.timestamp("s"): 86_400}
    for kind, steps in kinds.items():
        bits = pa.int32() if kind == pa.date32() else pa.int64()
        assert read(pa.table({"id": pa.array(days * steps, bits).view(kind)})) == expected
    zoned = pa.array(days * 86_400_000, pa.int64()).view(pa.timestamp("ms", "Asia/Tokyo"))
    assert read(pa.table({"id": zoned})) == [f"{text}Z" for text in expected]
    gaps = pa.array([None, int(days[0])], pa.int32()).view(pa.date32())
    assert read(pa.table({"id": gaps})) == [None, expected[0]]


def test_moments_beyond_arrows_years_stay_two() -> None:
    """Both were "<value out of range: 1000000000000000>"."""
    columns = [pa.array([10**15]).view(pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")]
    texts = [text for column in columns for text in read(pa.table({"id": column}))]
    assert len(set(texts)) == 4
    assert texts[:2] == read({"id": [np.datetime64(10**15, "s"), np.datetime64(10**15, "ms")]})


EXTENSIONS: dict[str, pa.Array] = {
    "months": pa.array(pd.period_range("2020-01", periods=2, freq="M")),
    "intervals": pa.array(pd.interval_range(0, 2)),
    "truth values of a byte": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([0, 1], pa.int8())),
}


@pytest.mark.parametrize("name", EXTENSIONS)
@pytest.mark.parametrize("rows", [0, 2])
def test_types_whose_meaning_others_know_are_refused(name: str, rows: int) -> None:
    """January 2020 is kept as 600, and so is a day of 1971."""
    column = EXTENSIONS[name][:rows]
    listed = pa.DictionaryArray.from_arrays(pa.array(range(rows), pa.int8()), column)
    for cells in (column, listed):
        with pytest.raises(SourceError, match="cannot be ids"):
            read(pa.table({"id": cells}))


def test_json_is_its_text() -> None:
    column = pa.ExtensionArray.from_storage(pa.json_(), pa.array(["7", '"a"', None]))
    assert read(pa.table({"id": column})) == ["7", '"a"', None]


def test_uuids_of_arrow_are_those_of_python() -> None:
    ids = [UUID(int=5), UUID(int=6)]
    column = pa.array([one.bytes for one in ids], pa.uuid())
    assert read(pa.table({"id": column})) == read({"id": ids}) == list(map(str, ids))


def test_names_of_folders(tmp_path: Path) -> None:
    keys = [b"M\xfcller", b"M\xf6ller", "Müller".encode(), b"7", b"7.0", b"\xef\xbf\xbd"]
    for key in keys:
        folder = tmp_path / f"id={quote(key)}"
        folder.mkdir()
        pq.write_table(pa.table({"x": [1.0]}), folder / "part.parquet")
    texts = [text for text in read(tmp_path) if text is not None]
    assert len(texts) == 6
    assert len(set(texts)) == 5
    assert sorted(texts) == sorted(read(pa.table({"id": stray(keys, pa.string())})))


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no folder names of any bytes")
def test_names_of_folders_that_arrow_cannot_open(tmp_path: Path) -> None:
    """Arrow takes no path of such letters, only one of bytes."""
    keys = [b"M\xfcller", b"M\xf6ller", "Müller".encode()]
    for key in keys:
        folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/id=" + key))
        folder.mkdir()
        parquet(pa.table({"x": [1.0, 2.0], "y": [1.0, 2.0]}), tmp_path).rename(folder / "part.parquet")
    assert sorted(map(str, read(tmp_path))) == sorted(
        map(str, read(pa.table({"id": stray(keys * 2, pa.string())})))
    )
    assert set(column_types(tmp_path)) == {"x", "y", "id"}
    for engine in (LocalEngine(), DaskEngine(scheduler="threads"), DaskEngine(scheduler="processes")):
        (found,) = engine.add_up(str(tmp_path), plan())
        assert found.counts.units_read == 3


def test_messages_do_not_show_ids_in_names_of_folders(tmp_path: Path) -> None:
    folder = tmp_path / "id=Miller"
    folder.mkdir()
    for content in (b"", b"no Parquet"):
        (folder / "part.parquet").write_bytes(content)
        with pytest.raises(SourceError, match="id=…") as failure:
            read(tmp_path)
        assert "Miller" not in str(failure.value)
    address = f"file://{tmp_path}"
    with pytest.raises(SourceError, match="id=…") as failure:
        read(address)
    assert "Miller" not in str(failure.value)


@settings(deadline=None, max_examples=40)
@given(cells=BYTES)
@example(cells=[b"M\xfcller", b"M\xf6ller", "Müller".encode(), b"\xed\xb3\xbc"])
def test_a_text_of_any_bytes_is_one_person_in_every_source(cells: list[bytes]) -> None:
    """SQLite and names of folders went through other bytes than CSV, Arrow and Parquet."""
    cells = [cell.replace(b"\x00", b"") for cell in cells]
    expected, *others = [with_folder(make, cells) for make in STRAY_TEXT.values()]
    assert others == [expected] * len(others)


def test_days_beyond_arrows_are_missing() -> None:
    days = np.array([10**12, 10**12 - 2**32, 5], "datetime64[D]")
    assert read({"id": days}) == [None, None, "1970-01-06"]


def test_steps_that_arrow_does_not_have_are_refused() -> None:
    """Moments in steps of ten seconds were read in steps of one."""
    moments = np.array([1, 2], "datetime64[10s]")
    for data in ({"id": moments}, np.array(list(zip(moments, strict=True)), [("id", moments.dtype)])):
        with pytest.raises(SourceError, match="steps"):
            read(data)


def test_a_carriage_return_before_a_separator_is_no_letter(tmp_path: Path) -> None:
    """As docs/how-to/persons.md says of CSV files; in quotes it is one."""
    path = tmp_path / "people.csv"
    path.write_bytes(b'id,x\n7\r,1\n7,2\n"7\r",3\n')
    assert read(path) == ["7", "7", "7\r"]


class TestFilesInAnotherEncoding:
    """The second way to read a CSV file gives what the first one gives."""

    @settings(deadline=None, max_examples=80)
    @given(
        rows=st.lists(
            st.tuples(st.text("aü,\"\n\r;7.", max_size=4), st.text("0123456789.e-x", max_size=4)), max_size=12
        ),
        chunk=st.integers(1, 40),
        ends=st.sampled_from(["\n", "\r\n"]),
        mark=st.booleans(),
    )  # fmt: skip
    def test_portions_read_as_the_whole(
        self, rows: list[tuple[str, str]], chunk: int, ends: str, mark: bool
    ) -> None:
        cells = "".join('"' + name.replace('"', '""') + f'",{x}{ends}' for name, x in rows)
        text = f"näme,x{ends}{cells}"
        with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
            path = Path(folder) / "people.csv"
            path.write_bytes((b"\xef\xbb\xbf" if mark else b"") + text.encode())
            whole = self.read(path)
            patch.setattr(delimited, "CHUNK", chunk)
            patch.setattr(delimited, "_is_utf8", lambda *_: False)
            assert self.read(path) == whole

    @staticmethod
    def read(path: Path) -> list[Any]:
        source = open_source(path, ["x", "näme"], kinds={"x": "number", "näme": "id"}, batch_rows=3)
        batches = [(batch, unit_ids(batch.column(1), "näme")) for batch in source.batches()]
        numbers = [cell for batch, _ in batches for cell in batch.column(0).to_pylist()]
        return [numbers, [cell for _, ids in batches for cell in ids.to_pylist()]]

    def test_a_packed_file(self, tmp_path: Path) -> None:
        import gzip

        path = tmp_path / "people.csv.gz"
        path.write_bytes(gzip.compress("id,x\nMüller,1\nMöller,2\nMüller,3\n".encode("latin-1")))
        first, second, third = read(path)
        assert first == third != second


class TestLossyTypesAreRefusedByType:
    @pytest.mark.parametrize("kind", ["HUGEINT", "UHUGEINT"])
    @pytest.mark.parametrize("rows", [0, 1])
    def test_wide_integers_of_duckdb(self, kind: str, rows: int) -> None:
        data = duck([7] * rows, kind)
        with pytest.raises(SourceError, match="cannot tell units apart"):
            read(data)
        as_text = (data[0], "SELECT CAST(id AS VARCHAR) AS id FROM people")
        assert read(as_text) == ["7"] * rows

    def test_extended_precision_of_numpy(self) -> None:
        with pytest.raises(SourceError, match="last digits would become one"):
            read({"id": np.array([1, 2], np.longdouble)})

    def test_nothing_is_charged(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "l.ledger", name="l", epsilon=1.0, delta=1e-5, unit="id")
        table = {"id": np.array([1, 2], np.longdouble), "x": [0.1, 0.2], "y": [0.1, 0.2]}
        with pytest.raises(SourceError, match="last digits"):
            publish(
                table,
                SCHEMA,
                epsilon=0.5,
                delta=1e-6,
                unit="id",
                ledger=ledger,
                progress=False,
                adaptive=False,
            )
        assert ledger.entries == 0


def removed(with_all: Any, without: Any) -> tuple[float, float]:
    """|ΔG| of two tables, Frobenius and nuclear, in units of what one person is said to change at most."""
    (a,), (b,) = (add_up(data, plan(), threads=1, progress=False) for data in (with_all, without))
    assert isinstance(a, ExactGram)
    assert isinstance(b, ExactGram)
    values = np.linalg.eigvalsh((a.cells - b.cells).astype(float)) / ROW_NORM_SQUARED
    return float(np.sqrt(np.sum(values**2))), float(np.sum(np.abs(values)))


@pytest.mark.parametrize("form", ["csv", "numpy S", "pandas", "sqlite blob"])
def test_no_two_persons_share_a_divisor(form: str, tmp_path: Path) -> None:
    """Removing the person of many rows leaves the other's row as it is: else |ΔG|_F comes to 1.41·s."""

    def table(count: int) -> Any:
        x, y = [1.0] + [-1.0] * count, [1.0] + [1.0] * count
        ids = [b"M\xfcller"] + [b"M\xf6ller"] * count
        if form == "csv":
            path = tmp_path / f"{count}.csv"
            lines = [b"%s,%g,%g\n" % row for row in zip(ids, x, y, strict=True)]
            path.write_bytes(b"id,x,y\n" + b"".join(lines))
            return path
        if form == "sqlite blob":
            connection = sqlite3.connect(":memory:")
            connection.execute("CREATE TABLE t (id, x, y)")
            connection.executemany("INSERT INTO t VALUES (?, ?, ?)", list(zip(ids, x, y, strict=True)))
            return connection, "SELECT * FROM t"
        columns = {"id": np.array(ids) if form == "numpy S" else ids, "x": x, "y": y}
        return pd.DataFrame(columns) if form == "pandas" else columns

    frobenius, nuclear = removed(table(500), table(0))
    assert frobenius <= 1.0
    assert nuclear <= 1.0


@pytest.mark.parametrize(
    "forms",
    [(7, 7.0), (Decimal(7), Decimal("7.0")), (10**16, 1e16), ("7", "7.0"), ("10000000000000000", "1e+16")],
    ids=str,
)
def test_no_person_is_two_units(forms: tuple[Any, Any], tmp_path: Path) -> None:
    """The rows of one person, in two forms of one id, in two batches, files or parts: |ΔG|_F was 2·s."""
    for order in (forms, forms[::-1]):
        table = {"id": ["other", *order], "x": [0.5, 1.0, 1.0], "y": [0.5, 1.0, 1.0]}
        frobenius, nuclear = removed(table, {name: column[:1] for name, column in table.items()})
        assert frobenius <= 1.0
        assert nuclear <= 1.0
    paths = [tmp_path / "a.csv", tmp_path / "b.csv"]
    for path, form in zip(paths, forms, strict=True):
        path.write_text(f"id,x,y\n{form},1,1\n,0,0\n")
    (found,) = add_up(paths, plan(), threads=1, progress=False)
    assert found.counts.units_read == 1
    frame = pd.DataFrame({"id": pd.Series(forms, dtype=object), "x": 1.0, "y": 1.0})
    with_dask = dd.from_map(lambda i: frame.iloc[i : i + 1], [0, 1], meta=frame.iloc[:0])
    (found,) = DaskEngine(scheduler="threads").add_up(with_dask, plan())
    assert found.counts.units_read == 1


def test_learning_takes_one_row_of_each_person() -> None:
    schema = Schema(numeric("x"), categorical("c"))
    data = {"id": [7, 7.0, "7", b"\xfc", b"\xf6"], "x": [1.0] * 5, "c": ["7", "7.0", "a", "b", "c"]}
    work = Pass(
        rules=row_rules(schema, unit="id"), statistics=(OctavesStatistic(("x",)), LevelsStatistic(("c",)))
    )
    orders = [[0, 1, 2, 3, 4], [4, 3, 2, 1, 0], [2, 0, 1, 4, 3]]
    taken = [
        add_up({name: [cells[i] for i in order] for name, cells in data.items()}, work, progress=False)
        for order in orders
    ]
    octaves, levels = taken[0]
    assert isinstance(octaves, ExactCounts)
    assert isinstance(levels, ExactLevels)
    assert octaves.cells.sum() == 3 * ROW_NORM_SQUARED
    assert sum(levels.cells[0].values()) == 3 * ROW_NORM_SQUARED
    assert len(levels.cells[0]) == 3
    assert taken[0] == taken[1] == taken[2]


def test_publish_reads_ids_of_every_kind() -> None:
    ids = [UUID(int=i) for i in range(40)]
    release = publish(
        {"id": ids, "x": np.linspace(-1, 1, 40), "y": np.zeros(40)},
        SCHEMA,
        epsilon=9.0,
        delta=1e-6,
        unit="id",
        progress=False,
        adaptive=False,
    )
    assert release.count() == pytest.approx(40, abs=10)


class TestFilesOfOffices:
    """Distinct ids stay distinct and equal ones equal in the formats that offices have."""

    DISTINCT = ("Müller", "Möller", "Muller", "7", "07", "7.5", "1e16", "true", "2020-01-02")

    def json_lines(self, folder: Path, cells: list[str]) -> Path:
        """The cells as they stand, each the JSON of an id."""
        path = folder / "ids.jsonl"
        path.write_text("".join(f'{{"id": {cell}}}\n' for cell in cells), encoding="utf-8")
        return path

    def test_json_lines(self, tmp_path: Path) -> None:
        assert read(self.json_lines(tmp_path, [json.dumps(one) for one in self.DISTINCT])) == [*self.DISTINCT]

    def test_numbers_in_json_by_their_value(self, tmp_path: Path) -> None:
        cells = ["7", "7.0", '"7"', '"7.0"', "7e0", "10000000000000000", "1e16", "true"]
        assert read(self.json_lines(tmp_path, cells)) == ["7"] * 5 + [str(10**16)] * 2 + ["true"]

    def test_digits_beyond_a_float_tell_persons_apart_in_json(self, tmp_path: Path) -> None:
        cells = [
            "123456789012345678901",
            "123456789012345678902",
            "0.12345678901234567891",
            "0.12345678901234567892",
        ]
        assert len(set(read(self.json_lines(tmp_path, cells)))) == 4

    def test_lines_that_are_no_json_have_no_id(self, tmp_path: Path) -> None:
        path = self.json_lines(tmp_path, ['"a"', '"b"'])
        path.write_bytes(path.read_bytes() + b'{"id": "\xff"}\nno json\n["id"]\n{"id": {"a": 1}}\n{}\n')
        assert read(path) == ["a", "b", None, None, None, None, None]

    @pytest.mark.parametrize("ending", [".dta", ".sav", ".xpt"])
    def test_stata_spss_and_sas(self, ending: str, tmp_path: Path) -> None:
        pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'office' is not installed")
        write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport}
        path = str(tmp_path / f"ids{ending}")
        write[ending](pd.DataFrame({"id": [*self.DISTINCT, ""]}), path)
        assert read(path) == [*self.DISTINCT, None]
        write[ending](pd.DataFrame({"id": [7.0, 7.5, 2.0**53, np.nan]}), path)
        assert read(path) == ["7", "7.5", str(2**53), None]

    def test_workbooks(self, tmp_path: Path) -> None:
        openpyxl = pytest.importorskip("openpyxl", reason="the extra 'test' is not installed")
        book = openpyxl.Workbook()
        cells = ["id", *self.DISTINCT, 7, 7.0, 7.5, True, dt.date(2020, 1, 2), None, "last"]
        for cell in cells:
            book.active.append([cell])
        book.save(tmp_path / "ids.xlsx")
        assert read(tmp_path / "ids.xlsx") == [
            *self.DISTINCT, "7", "7", "7.5", "true", "2020-01-02", None, "last",
        ]  # fmt: skip

    @pytest.mark.parametrize("name", ["ids.feather", "ids.csv.zst", "ids.csv.zip", "ids.tab"])
    def test_other_files(self, name: str, tmp_path: Path) -> None:
        path, table = tmp_path / name, pa.table({"id": self.DISTINCT})
        text = "id\n" + "\n".join(self.DISTINCT) + "\n"
        if name.endswith(".feather"):
            with pa.ipc.new_file(path, table.schema) as file:
                file.write_table(table)
        elif name.endswith(".zip"):
            with zipfile.ZipFile(path, "w") as archive:
                archive.writestr("ids.csv", text)
        else:
            with pa.output_stream(str(path), compression="zstd" if name.endswith("zst") else None) as stream:
                stream.write(text.encode())
        assert read(path) == [*self.DISTINCT]

"""The same rows from every source and database: the same integers, by every engine that reads it."""

from __future__ import annotations

import contextlib
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.dataset as ds
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

from dpgram.engines import local
from dpgram.engines.dask import DaskEngine
from dpgram.errors import SourceError
from dpgram.schema import Schema
from dpgram.sources import column_types
from dpgram.testing import SCHEMA, contract_pass, contract_table, gram_by

TABLE = contract_table(1500)
EXPECTED = local.gram(TABLE, SCHEMA)
BY_UNIT = local.add_up(TABLE, contract_pass("units"))


def in_sqlite(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(folder / "some.sqlite")
    connection.execute(
        "CREATE TABLE people (a REAL, b INTEGER, s TEXT, f BOOLEAN, id INTEGER, g TEXT, w REAL)"
    )
    connection.executemany(
        "INSERT INTO people VALUES (?, ?, ?, ?, ?, ?, ?)", [tuple(row.values()) for row in TABLE.to_pylist()]
    )
    connection.commit()
    return connection


def in_memory_sqlite(folder: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    with contextlib.closing(in_sqlite(folder)) as file:
        file.backup(connection)
    return connection


def parquet(folder: Path) -> Path:
    pq.write_table(TABLE, folder / "one.parquet", row_group_size=200)
    return folder / "one.parquet"


def csv(folder: Path) -> Path:
    pacsv.write_csv(TABLE, folder / "one.csv")
    return folder / "one.csv"


def duckdb_file(folder: Path) -> str:
    path = str(folder / "some.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("arrived", TABLE)
        connection.execute("CREATE TABLE people AS SELECT * FROM arrived")
    return path


def in_fsspec_memory(folder: Path) -> str:
    fsspec = pytest.importorskip("fsspec", reason="fsspec is not installed")
    memory = fsspec.filesystem("memory")
    with memory.open("/dpgram-tests/year=2020/one.parquet", "wb") as file:
        file.write(parquet(folder).read_bytes())
    return "memory://dpgram-tests/**/*.parquet"


def json_lines(folder: Path) -> Path:
    rows = "".join(json.dumps(row) + "\n" for row in TABLE.to_pylist())
    (folder / "one.jsonl").write_text(rows, encoding="utf-8")
    return folder / "one.jsonl"


def packed(path: Path, way: str) -> Path:
    place = path.with_name(path.name + way)
    if way == ".zip":
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.write(path, path.name)
    else:
        with pa.output_stream(str(place), compression={".gz": "gzip", ".zst": "zstd"}[way]) as stream:
            stream.write(path.read_bytes())
    return place


def tab_separated(folder: Path) -> Path:
    pacsv.write_csv(TABLE, folder / "one.tab", pacsv.WriteOptions(delimiter="\t"))
    return folder / "one.tab"


def feather(folder: Path) -> Path:
    pa.feather.write_feather(TABLE, folder / "one.feather")
    return folder / "one.feather"


def arrow_stream(folder: Path) -> Path:
    with pa.ipc.new_stream(folder / "one.arrow", TABLE.schema) as stream:
        stream.write_table(TABLE, 100)
    return folder / "one.arrow"


def statistical(folder: Path, ending: str) -> Path:
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'office' is not installed")
    # These programs have no truth values: they are stored as 0 and 1.
    frame = TABLE.set_column(3, "f", TABLE["f"].cast(pa.int8())).to_pandas()
    writers = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport}
    place = folder / f"one{ending}"
    writers[ending](frame, str(place))
    return place


def workbook(folder: Path) -> Path:
    book = pytest.importorskip("openpyxl", reason="the extra 'test' is not installed").Workbook()
    book.active.append(TABLE.column_names)
    for row in TABLE.to_pylist():
        book.active.append(list(row.values()))
    book.save(folder / "one.xlsx")
    return folder / "one.xlsx"


SOURCES: dict[str, Callable[[Path], Any]] = {
    "arrow table": lambda _: TABLE,
    "arrow reader": lambda _: TABLE.to_reader(100),
    "arrow dataset": lambda folder: ds.dataset(parquet(folder)),
    "mapping": lambda _: {name: TABLE[name].to_numpy(zero_copy_only=False) for name in TABLE.column_names},
    "pandas": lambda _: TABLE.to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE),
    "polars query": lambda _: pl.from_arrow(TABLE).lazy(),
    "parquet file": parquet,
    "parquet folder": lambda folder: parquet(folder).parent,
    "parquet pattern": lambda folder: str(parquet(folder).parent / "*.parquet"),
    "file:// address": lambda folder: parquet(folder).as_uri(),
    "file:// pattern": lambda folder: parquet(folder).parent.as_uri() + "/*.parquet",
    "file:// folder": lambda folder: parquet(folder).parent.as_uri(),
    "list of addresses": lambda folder: [parquet(folder).as_uri()],
    "memory:// pattern": in_fsspec_memory,
    "csv": csv,
    "csv.gz": lambda folder: packed(csv(folder), ".gz"),
    "csv.zst": lambda folder: packed(csv(folder), ".zst"),
    "csv.zip": lambda folder: packed(csv(folder), ".zip"),
    "tab": tab_separated,
    "json lines": json_lines,
    "json lines, packed": lambda folder: packed(json_lines(folder), ".zst"),
    "Feather": feather,
    "Arrow stream in a file": arrow_stream,
    "Stata": lambda folder: statistical(folder, ".dta"),
    "SPSS": lambda folder: statistical(folder, ".sav"),
    "SAS transport": lambda folder: statistical(folder, ".xpt"),
    "workbook": workbook,
    "duckdb file": lambda folder: (duckdb_file(folder), "SELECT * FROM people"),
    "sqlite file": lambda folder: (in_sqlite(folder), "SELECT * FROM people;"),
    "sqlite in memory": lambda folder: (in_memory_sqlite(folder), "SELECT * FROM people -- all"),
}


@pytest.mark.filterwarnings("ignore:unclosed database:ResourceWarning")
@pytest.mark.parametrize("name", SOURCES)
def test_same_integers(name: str, tmp_path: Path) -> None:
    data = SOURCES[name](tmp_path)
    assert local.gram(data, SCHEMA, threads=2) == EXPECTED
    # A workbook keeps 16 digits, so that of a person with too many rows others may be chosen.
    if name not in ("arrow reader", "workbook"):
        assert local.add_up(SOURCES[name](_fresh(tmp_path)), contract_pass("units")) == BY_UNIT


def _fresh(folder: Path) -> Path:
    again = folder / "again"
    again.mkdir()
    return again


@pytest.mark.parametrize("name", ["file:// pattern", "memory:// pattern", "arrow dataset", "parquet folder"])
def test_same_integers_by_dask(name: str, tmp_path: Path) -> None:
    pytest.importorskip("dask", reason="the extra 'dask' is not installed")
    data = SOURCES[name](tmp_path)
    engine = DaskEngine(scheduler="threads")
    assert gram_by(engine, data, SCHEMA) == EXPECTED
    assert engine.add_up(data, contract_pass("units")) == BY_UNIT


@pytest.fixture(scope="module")
def filled(postgresql: str) -> str:
    dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra 'sql' is not installed")
    with dbapi.connect(postgresql) as connection, connection.cursor() as cursor:
        cursor.adbc_ingest("people", TABLE, mode="replace")
        cursor.execute("CREATE VIEW exact AS SELECT a, b::numeric(20, 3) AS b, s, f, id, g, w FROM people")
        connection.commit()
    return postgresql


class TestPostgresql:
    @pytest.fixture(params=["adbc", "psycopg", "address"])
    def connection(self, request: pytest.FixtureRequest, filled: str) -> Iterator[Any]:
        if request.param == "address":
            yield filled
            return
        if request.param == "adbc":
            from adbc_driver_postgresql import dbapi

            with dbapi.connect(filled) as connection:
                yield connection
            return
        psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
        with psycopg.connect(filled) as connection:
            yield connection

    def test_same_integers(self, connection: Any) -> None:
        assert local.gram((connection, "SELECT * FROM people"), SCHEMA, threads=2) == EXPECTED

    def test_decimals(self, connection: Any) -> None:
        assert local.gram((connection, "SELECT * FROM exact;"), SCHEMA) == EXPECTED

    def test_units(self, connection: Any) -> None:
        assert local.add_up((connection, "SELECT * FROM people"), contract_pass("units")) == BY_UNIT

    def test_no_row_leaves_with_an_error(self, connection: Any) -> None:
        with pytest.raises(SourceError) as raised:
            local.gram(
                (connection, "SELECT *, 1 / (b - b) AS c FROM people WHERE b::text::date > now()"), SCHEMA
            )
        assert "401" not in str(raised.value)
        assert raised.value.__cause__ is None
        assert raised.value.__context__ is None

    def test_nothing_but_a_select(self, connection: Any) -> None:
        with pytest.raises(SourceError, match="a single SELECT"):
            local.gram((connection, "DELETE FROM people RETURNING *"), SCHEMA)

    def test_types(self, connection: Any) -> None:
        types = column_types((connection, "SELECT a, b FROM people"))
        assert list(types) == ["a", "b"]

    def test_a_cursor_of_the_server(self, filled: str, monkeypatch: pytest.MonkeyPatch) -> None:
        """The driver asks for rows batch by batch: the result is never in this process as a whole."""
        psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")
        names: list[str] = []
        original = psycopg.Connection.cursor

        def spied(self: Any, *args: Any, name: str = "", **kwargs: Any) -> Any:
            names.append(name)
            return original(self, *args, **({"name": name} if name else {}), **kwargs)

        monkeypatch.setattr(psycopg.Connection, "cursor", spied)
        with psycopg.connect(filled) as connection:
            assert local.gram((connection, "SELECT * FROM people"), SCHEMA) == EXPECTED
        assert names[-1] == "dpgram_rows"


class TestSqlErrors:
    @pytest.fixture
    def connection(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(sqlite3.connect(":memory:")) as connection:
            connection.execute("CREATE TABLE people (a REAL)")
            yield connection

    @pytest.mark.parametrize("query", ["SELECT nothing FROM nowhere", "DROP TABLE people", "not a query", ""])
    def test_query(self, connection: sqlite3.Connection, query: str) -> None:
        with pytest.raises(SourceError, match="the database does not understand the query"):
            local.gram((connection, query), SCHEMA)
        assert connection.execute("SELECT count(*) FROM people").fetchone() == (0,)

    def test_missing_column(self, connection: sqlite3.Connection) -> None:
        with pytest.raises(SourceError, match="no columns 'b', 's', 'f'"):
            local.gram((connection, "SELECT * FROM people"), SCHEMA)

    def test_not_a_query(self, connection: sqlite3.Connection) -> None:
        with pytest.raises(SourceError, match=r"\(database, query\)"):
            local.gram((connection, 7), SCHEMA)

    def test_names_with_quotes(self, connection: sqlite3.Connection) -> None:
        from dpgram.schema import numeric

        connection.execute('CREATE TABLE odd ("a ""b"" c" REAL)')
        connection.executemany("INSERT INTO odd VALUES (?)", [(0.5,), (-0.25,)])
        schema = Schema(numeric('a "b" c', -1, 1))
        found = local.gram((connection, "SELECT * FROM odd"), schema)
        assert found == local.gram(np.array([[0.5], [-0.25]]), schema)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("file:///no/such/folder/*.parquet", "no Parquet file is found"),
        ("file:///no/such/file.parquet", "no Parquet file is found"),
        ("nowhere://bucket/some.parquet", "cannot be opened"),
    ],
)
def test_addresses_that_lead_nowhere(address: str, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        local.gram(address, SCHEMA)


def test_damaged_remote_file(tmp_path: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"PAR1 this is no table")
    with pytest.raises(SourceError, match="cannot be read"):
        local.gram((tmp_path / "bad.parquet").as_uri(), SCHEMA)


def test_types_of_a_remote_file(tmp_path: Path) -> None:
    assert column_types(parquet(tmp_path).as_uri())["b"] == "int64"


def test_arrow_dataset_with_its_own_types(tmp_path: Path) -> None:
    data = ds.dataset(parquet(tmp_path), schema=TABLE.schema.set(1, pa.field("b", pa.float64())))
    assert local.gram(data, SCHEMA) == EXPECTED


class TestIdsThroughSpark:
    """Whatever ids are, each is one unit there as well: bytes, stray text, NULs, spellings of one number."""

    PEOPLE = (b"M\xfcller", b"M\xf6ller", b"a\x00fc", b"a\xfc", b"7", b"7.0", b"\xef\xbf\xbd")

    @pytest.mark.parametrize(("kind", "units"), [("binary", 7), ("string", 6)])
    def test_units(self, spark: Any, kind: str, units: int) -> None:
        from dpgram.engines.spark import SparkEngine

        rows = [(bytearray(who), 0.5, 200.0, "x", True) for who in self.PEOPLE for _ in range(3)]
        frame = spark.createDataFrame(rows, "id binary, a double, b double, s string, f boolean")
        frame = frame.repartition(4).withColumn("id", frame["id"].cast(kind))
        (found,) = SparkEngine().add_up(frame, contract_pass("units"))
        assert found.counts.units_read == units
        assert found.counts.rows_used == len(rows) - found.counts.rows_over_unit_limit

"""`(connection, query)` pairs of any database with an ADBC or DB-API driver, streamed as Arrow batches.

Only the choice of columns is pushed down: SELECT a, b FROM (query). No cast is, because one that a value can
make fail would let a single row decide whether a release succeeds; cells are read by their declared kinds
here, as those of every other source. ADBC streams Arrow; psycopg gets a cursor on the server, so that the
result never lies in this process's memory as a whole; other drivers are fetched batch by batch. What drivers
of PostgreSQL are asked for is said in `postgresql`.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final, TypeGuard

import pyarrow as pa

from dpgram.errors import MissingExtra, SourceError
from dpgram.sources import _arrow as arrow
from dpgram.sources import postgresql
from dpgram.sources._refusals import POSTGRESQL, SQLITE, explained, no_file
from dpgram.sources.base import Batches, Request, Source, at_least_one_batch, attempt, type_names
from dpgram.sources.ids import text_of
from dpgram.sources.plain_columns import from_objects

Pair = tuple[Any, str]
SQLITE_BEGINS: Final = b"SQLite format 3\0"
"""How every database file of SQLite begins: names such as clinic.db are DuckDB's as well."""
CURSOR: Final = "dpgram_rows"
"""The name of the cursor on the server, and of the query in the statements around it."""
ROWS_COMPARED: Final = 100
"""At each end of a table of SQLite, to see whether two connections are to one database."""
FAILURES: Final = (Exception,)
"""Every DB-API module has exceptions of its own, without a common root."""


def is_query(data: object) -> TypeGuard[Pair]:
    """Whether this is a pair of a connection that is not DuckDB's, or an address, and a query."""
    if not isinstance(data, tuple) or len(data) != 2:
        return False
    database = data[0]
    if isinstance(database, str | Path):
        return str(database).startswith((*POSTGRESQL, SQLITE)) or _is_sqlite(Path(database))
    duckdb = sys.modules.get("duckdb")
    foreign = duckdb is None or not isinstance(database, duckdb.DuckDBPyConnection)
    return foreign and callable(getattr(database, "cursor", None))


def query_source(data: Pair, request: Request) -> Source:
    """The rows of a query; it runs anew for each pass."""
    data = _opened(data)
    _check(data)
    names = attempt(lambda: _names(data), FAILURES, explained(data[1], _explain))
    request.check(names, "the result of the query")
    connected = _threadsafe(data)

    def start() -> Batches:
        with connected() as connection:
            yield from _rows(connection, data[1], request)

    return arrow.StreamSource(
        request=request,
        label="a database query",
        start=start,
        explain=_explain,
        failures=FAILURES,
    )


def query_types(data: Pair) -> dict[str, str]:
    """Names of the columns, with Arrow types where the driver tells them; the query gives no row."""
    data = _opened(data)
    _check(data)

    def read() -> dict[str, str]:
        with _connected(data) as connection, closing(connection.cursor()) as cursor:
            cursor.execute(_around("*", data[1], " WHERE 1 = 0"))
            if hasattr(cursor, "fetch_record_batch"):
                return type_names(cursor.fetch_record_batch().schema)
            return dict.fromkeys([column[0] for column in cursor.description], "unknown")

    return attempt(read, FAILURES, explained(data[1], _explain))


def _is_sqlite(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(SQLITE_BEGINS)) == SQLITE_BEGINS
    except OSError:
        return False


def _opened(data: Pair) -> Pair:
    """The pair with an open connection in place of the path or address of an SQLite file, or of a wrapper."""
    database, query = data
    database = getattr(database, "driver_connection", database)  # what a pool of SQLAlchemy lends holds it
    if not isinstance(database, str | Path) or str(database).startswith(POSTGRESQL):
        return database, query
    path = Path(str(database).removeprefix(SQLITE))
    if not os.path.isfile(path):  # noqa: PTH113  (a name that no file can have is no error, but False)
        raise no_file()
    address = f"{path.absolute().as_uri()}?mode=ro"
    return attempt(
        lambda: sqlite3.connect(address, uri=True, check_same_thread=False), FAILURES, _explain
    ), query


def _names(data: Pair) -> list[str]:
    with _connected(data) as connection:
        _check_driver(connection)
        with closing(connection.cursor()) as cursor:
            cursor.execute(_around("*", data[1], " WHERE 1 = 0"))
            return [column[0] for column in cursor.description]


def _around(columns: str, query: str, rest: str = "") -> str:
    """A statement around the query: what is not a single SELECT is refused by the database itself."""
    inside = query.strip().rstrip(";")
    return f"SELECT {columns} FROM (\n{inside}\n) AS {CURSOR}{rest}"  # noqa: S608  the curator's own query


def _rows(connection: Any, query: str, request: Request) -> Iterator[pa.RecordBatch]:
    asked, reads = zip(*_asked(connection, query, request.columns), strict=True)
    wraps = _adbc_vendor(connection) == postgresql.VENDOR  # asked before the connection is busy
    with closing(_cursor(connection)) as cursor:
        if hasattr(cursor, "itersize"):  # psycopg: rows asked of the server at a time
            cursor.itersize = request.batch_rows
        cursor.execute(_around(", ".join(asked), query))
        if hasattr(cursor, "fetch_record_batch"):  # ADBC
            reader = cursor.fetch_record_batch()
            for batch in at_least_one_batch(reader.schema, iter(reader)):
                yield postgresql.without_wrapped(batch, request.kinds) if wraps else batch
            return
        while rows := cursor.fetchmany(request.batch_rows):
            columns = zip(*(postgresql.cells_of(row, request.columns) for row in rows), strict=True)
            cells = [
                from_objects(
                    column if read is None else list(map(read, column)),
                    request.kinds.get(name),
                    request.reading(name),
                )
                for name, column, read in zip(request.columns, columns, reads, strict=True)
            ]
            yield pa.RecordBatch.from_arrays(cells, names=list(request.columns))


def _asked(connection: Any, query: str, names: Sequence[str]) -> list[tuple[str, postgresql.Read | None]]:
    """What to ask for each column, and what makes an object of the answer where the driver does not."""
    quoted = [_quoted(name) for name in names]
    if _driver(connection) not in postgresql.DRIVERS:
        return [(column, None) for column in quoted]
    with closing(connection.cursor()) as cursor:
        cursor.execute(_around(", ".join(quoted), query, " WHERE 1 = 0"))
        kinds = [column[1] for column in cursor.description]
    return list(map(postgresql.asked, quoted, kinds))


def _cursor(connection: Any) -> Any:
    """A cursor whose result stays on the server, where the driver has such."""
    if _driver(connection) in ("psycopg", "psycopg2"):
        # Held where every statement is a transaction of its own, in which the cursor would end at once.
        return connection.cursor(name=CURSOR, withhold=bool(connection.autocommit))
    return connection.cursor()


def _driver(connection: object) -> str:
    """The package of the connection's type, or of a type that it is made from."""
    packages = [kind.__module__.partition(".")[0] for kind in type(connection).__mro__]
    return next((package for package in packages if package in postgresql.DRIVERS), packages[0])


def _adbc_vendor(connection: Any) -> str | None:
    told = getattr(connection, "adbc_get_info", None)
    return None if told is None else told().get("vendor_name")


def _check_driver(connection: Any) -> None:
    """Refuse connections that read a value by what other rows have, or cannot read every value."""
    vendor = _adbc_vendor(connection)
    if vendor == "SQLite":
        raise SourceError(
            "the ADBC driver of SQLite guesses the types of columns from their first rows",
            limit="a driver that reads every cell by itself",
            remedy="Give the path of the database, or a connection of Python's sqlite3, in place of it",
        )
    if vendor == postgresql.VENDOR:
        postgresql.check_encodings(connection, arrow=True)
    elif _driver(connection) in postgresql.DRIVERS:
        postgresql.check_encodings(connection, arrow=False)


@contextmanager
def _connected(data: Pair) -> Generator[Any, None, None]:
    """The connection itself, which its owner closes, or a new one to an address."""
    database = data[0]
    if not isinstance(database, str):
        yield database
        return
    with _postgresql().connect(database) as connection:
        postgresql.carry_every_text(connection)
        yield connection


def _postgresql() -> Any:
    try:
        from adbc_driver_postgresql import dbapi
    except ImportError:
        raise MissingExtra("adbc-driver-postgresql", "sql") from None
    return dbapi


def _threadsafe(data: Pair) -> Callable[[], Any]:
    """A connection for the threads that read. One of sqlite3 serves its own thread only, so it is doubled."""
    database = data[0]
    if not isinstance(database, sqlite3.Connection):
        return lambda: _connected(data)
    place, temporary = attempt(lambda: _of_sqlite(database), FAILURES, _explain)
    if temporary:
        raise SourceError(
            "the SQLite connection has temporary tables or views, which nobody else can read",
            got=f"{temporary}",
            limit="none: such a table would hide another one of the same name",
            remedy="Give a connection without any, or make them tables of the database",
        )
    if not place:
        held = database.serialize()
        return lambda: closing(_copy(held))
    if database.in_transaction:
        raise SourceError(
            "the SQLite connection has a transaction open, whose rows nobody else can read",
            limit="a connection with everything committed (in Python 3.12, autocommit=False never is)",
            remedy="Commit it or roll it back, and publish after that",
        )
    # As an address, in which #, ? and % must be written otherwise: else they would name another file.
    address = f"{Path(place).absolute().as_uri()}?mode=ro"

    def another() -> closing[sqlite3.Connection]:
        return closing(_of_any_bytes(sqlite3.connect(address, uri=True, check_same_thread=False)))

    if not attempt(lambda: _same_content(database, another), FAILURES, _explain):
        raise SourceError(
            "the SQLite connection does not read the file whose path it gives, or somebody is changing that",
            got="other tables or rows in that file",
            limit="a file that was not moved or replaced since, and no vfs that keeps rows elsewhere",
            remedy="Connect anew, or give the path of the database in place of the connection",
        )
    return another


def _same_content(database: sqlite3.Connection, another: Callable[[], closing[sqlite3.Connection]]) -> bool:
    """Whether both have the same tables, sizes, first and last rows: no connection can be asked its file."""
    with another() as other, closing(_content(database)) as mine, closing(_content(other)) as others:
        return all(one == same for one, same in zip_longest(mine, others))


def _content(database: sqlite3.Connection) -> Generator[object, None, None]:
    """What tells a database from others, without reading all of it: a row or a fact at a time."""
    with _own_cursor(database) as cursor:
        for fact in ("schema_version", "user_version", "application_id", "page_count", "freelist_count"):
            yield cursor.execute(f"PRAGMA {fact}").fetchall()
        tables = cursor.execute("SELECT name, type, rootpage, sql FROM sqlite_master").fetchall()
        yield tables
        for name, kind, page, _ in tables:
            if kind == "table" and page:  # no view, and nothing that only a module can read
                yield from _ends(cursor, name)


@contextmanager
def _own_cursor(database: sqlite3.Connection) -> Generator[sqlite3.Cursor, None, None]:
    """A cursor that gives plain rows and texts, whatever the owner of the connection has set for others."""
    owners = database.text_factory
    try:
        with closing(_of_any_bytes(database).cursor()) as cursor:
            cursor.row_factory = None
            yield cursor
    finally:
        database.text_factory = owners


def _ends(cursor: sqlite3.Cursor, table: str) -> Iterator[object]:
    """The first and the last rows of a table; without rowids the first ones."""
    names = [name for (name,) in cursor.execute("SELECT name FROM pragma_table_info(?)", (table,))]
    # As expressions, which the owner's converters of types leave as they are.
    cells = ", ".join(f"+{_quoted(name)} AS c{place}" for place, name in enumerate(names))
    rows = f"SELECT {cells} FROM main.{_quoted(table)}"  # noqa: S608  names of the database itself
    yield from cursor.execute(f"{rows} LIMIT {ROWS_COMPARED}")
    with suppress(sqlite3.OperationalError):
        yield from cursor.execute(f"{rows} ORDER BY _rowid_ DESC LIMIT {ROWS_COMPARED}")


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _of_sqlite(database: sqlite3.Connection) -> tuple[str, int]:
    """The file of the main database (none in memory), and the number of temporary tables and views."""
    with _own_cursor(database) as cursor:
        places = {name: place for _, name, place in cursor.execute("PRAGMA database_list")}
        ((temporary,),) = cursor.execute("SELECT count(*) FROM sqlite_temp_master")
    return places["main"], temporary


def _copy(held: bytes) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:", check_same_thread=False)
    connection.deserialize(held)
    return _of_any_bytes(connection)


def _of_any_bytes(connection: sqlite3.Connection) -> sqlite3.Connection:
    """SQLite keeps any bytes as text; the driver's own decoder would stop at the first that is not UTF-8."""
    connection.text_factory = text_of
    return connection


def _check(data: Pair) -> None:
    if not isinstance(data[1], str):
        raise SourceError("a pair means (database, query)", got=f"a query of type {type(data[1]).__name__}")
    if isinstance(data[0], str):
        _postgresql()


def _explain(failure: BaseException) -> SourceError:
    """What went wrong, without the database's own words, which may quote a value."""
    if isinstance(failure, SourceError):
        return failure
    state = getattr(failure, "sqlstate", None)
    kind = type(failure).__name__
    return SourceError(
        "the database did not give the result of the query",
        got=kind if not isinstance(state, str) else f"{kind}, SQLSTATE {state}",
        limit="a single SELECT, whose result has distinct column names",
        remedy="Run it in the database to see its own message: left out here, as it may quote a value.",
    )

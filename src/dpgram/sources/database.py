"""DuckDB relations and `(database, query)` pairs, streamed by DuckDB and run anew for each pass."""

from __future__ import annotations

import importlib
import json
import os
import re
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from dpgram.errors import MissingExtra, SourceError
from dpgram.sources import _arrow as arrow
from dpgram.sources._refusals import explained, no_file, refuse_address
from dpgram.sources.base import Batches, Request, Source, at_least_one_batch, attempt, type_names
from dpgram.sources.files import SUFFIXES, files_named
from dpgram.sources.lakehouse import local_path, refuse_lakehouse

IN_MEMORY = ":memory:"
WIDE_INTEGERS = ("HUGEINT", "UHUGEINT")
TYPED_READERS: Final = frozenset(
    {"ARROW_SCAN", "PYTHON_ARROW_SCAN", "PARQUET_SCAN", "READ_PARQUET"}
    | {"DELTA_SCAN", "ICEBERG_SCAN", "DUCKLAKE_SCAN", "GENERATE_SERIES", "RANGE", "UNNEST"}
)
"""Functions of DuckDB that find types beside the rows, or read none. Those of CSV and JSON files and pandas
objects it guesses from the values, and values of SQLite need not have the declared ones."""


PARQUET_READERS: Final = frozenset({"PARQUET_SCAN", "READ_PARQUET"})
TABLE_READER: Final = re.compile(r"(?i)\b(delta|iceberg|ducklake)_scan\s*\([^)]*\)")
"""In a query, what reads a table by the notes of its folder."""
DEFINITIONS: Final = (
    "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal UNION ALL SELECT function_name, "
    "macro_definition FROM duckdb_functions() WHERE NOT internal AND macro_definition IS NOT NULL"
)


def relation_source(data: Any, request: Request) -> Source:
    """A DuckDB relation. Its connection is busy while it is read."""
    request.check(data.columns, "the DuckDB relation")
    attempt(lambda: _refuse_guessed_types(data), _failures(), _explain)
    return _source(request, "a DuckDB relation", lambda: _read(data, request))


def relation_types(data: Any) -> dict[str, str]:
    """Names and Arrow types of a relation, from a run that gives no row."""

    def read() -> dict[str, str]:
        with data.limit(0).to_arrow_reader() as reader:
            return type_names(reader.schema)

    return attempt(read, _failures(), _explain)


def query_source(data: tuple[Any, str], request: Request) -> Source:
    """The rows of a query on a database file, which is opened for reading only, or on an open connection."""
    _check_query(data)

    def names() -> list[str]:
        with _relation(data) as relation:
            _refuse_guessed_types(relation)
            return list(relation.columns)

    def start() -> Batches:
        with _relation(data) as relation:
            yield from _read(relation, request)

    request.check(attempt(names, _failures(), explained(data[1], _explain)), "the result of the query")
    return _source(request, "a DuckDB query", start)


def query_types(data: tuple[Any, str]) -> dict[str, str]:
    """Names and Arrow types of the query's result; it gives no row."""
    _check_query(data)

    def read() -> dict[str, str]:
        with _relation(data) as relation:
            return relation_types(relation)

    return attempt(read, _failures(), explained(data[1], _explain))


def _source(request: Request, label: str, start: Callable[[], Batches]) -> Source:
    return arrow.StreamSource(
        request=request, label=label, start=start, explain=_explain, failures=_failures()
    )


def _read(relation: Any, request: Request) -> Batches:
    _refuse_lossy_ids(relation, request)
    quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in request.columns)
    with relation.project(quoted).to_arrow_reader(request.batch_rows) as reader:
        yield from at_least_one_batch(reader.schema, iter(reader))


def _refuse_guessed_types(relation: Any) -> None:
    """One row could decide how all others are read: whether 01/02 is in January, whether 07 is 7."""
    functions = set(_functions(json.loads(relation.explain(format="json"))))
    if functions & PARQUET_READERS:
        refuse_lakehouse(_paths(relation))
    for function in sorted(functions):
        if function not in TYPED_READERS:
            raise SourceError(
                "the query reads what has no types, so that DuckDB guesses them from the rows",
                got=function,
                limit="tables, views of tables, Parquet files and Arrow data",
                remedy="Give the file or frame itself to dpgram, or make it a table with declared types.",
            )


def _paths(relation: Any) -> list[Path]:
    """The files that the query names, and the views and macros in it, as far as their texts tell."""
    definitions = relation.query("dpgram_definitions", DEFINITIONS).fetchall()
    texts = [relation.sql_query()]
    for text in texts:  # grows by what each names
        texts += [made for name, made in definitions if name in text and made not in texts]
    quoted = [
        found.replace(mark * 2, mark)
        for text in texts
        for mark in ("'", '"')
        for found in re.findall(f"{mark}((?:[^{mark}]|{mark}{mark})*){mark}", TABLE_READER.sub("", text))
    ]
    return files_named([local_path(path) for path in quoted])


def _functions(plan: list[dict[str, Any]]) -> Iterator[str]:
    """The table functions in a plan, wherever they stand: in a view, a macro or a subquery."""
    nodes = list(plan)
    while nodes:
        node = nodes.pop()
        nodes += node.get("children", [])
        found = node.get("extra_info", {}).get("Function")
        if isinstance(found, str):
            yield found.upper()


def _refuse_lossy_ids(relation: Any, request: Request) -> None:
    """Arrow has no integers of 128 bits: they arrive as decimals or doubles that cannot hold all of them."""
    for name, kind in zip(relation.columns, relation.types, strict=True):
        if request.kinds.get(name) == "id" and str(kind) in WIDE_INTEGERS:
            raise SourceError(
                f"column {name!r} cannot tell units apart: Arrow cannot hold all numbers of its type",
                got=str(kind),
                limit="integers of at most 64 bits, decimals or text",
                remedy=f'Write CAST("{name}" AS VARCHAR) in the query',
            )


@contextmanager
def _relation(data: tuple[Any, str]) -> Generator[Any, None, None]:
    database, query = data
    if not isinstance(database, str | Path):
        yield database.sql(query)
        return
    duckdb = _duckdb()
    inside = str(database) == IN_MEMORY
    with attempt(
        lambda: duckdb.connect() if inside else duckdb.connect(str(database), read_only=True),
        _failures(),
        _closed,
    ) as connection:
        connection.execute("SET enable_progress_bar = false")  # it would write to standard output
        yield connection.sql(query)


def _closed(failure: BaseException) -> SourceError:
    return SourceError(
        "DuckDB cannot open the database for reading",
        got=type(failure).__name__,
        limit="a file that DuckDB or SQLite wrote, that this user may read and nobody has open for writing",
        remedy="If it is open in this program, give the pair (connection, query).",
    )


def _check_query(data: tuple[Any, ...]) -> None:
    if len(data) != 2:
        raise SourceError("a tuple means (database, query)", got=f"{len(data)} items", limit="2 items")
    database, query = data
    duckdb = _duckdb()
    if isinstance(database, str | Path):
        refuse_address(str(database))
        # A name that no file can have is no error here, but False.
        if str(database) != IN_MEMORY and not os.path.isfile(database):  # noqa: PTH113
            raise no_file()
        ending = next((end for end in SUFFIXES if str(database).lower().endswith(end)), None)
        if ending is not None:
            raise SourceError(
                "the file is a table and no database, so it takes no query",
                got=f"a name that ends in {ending}",
                remedy="Leave the query out, or give the file of the database.",
            )
    elif not isinstance(database, duckdb.DuckDBPyConnection):
        raise SourceError(
            "a pair means (database, query)",
            got=f"a database of type {type(database).__name__}",
            limit="a path, or an open DuckDB connection",
        )
    if not isinstance(query, str):
        raise SourceError("a pair means (database, query)", got=f"a query of type {type(query).__name__}")
    statements = attempt(lambda: duckdb.extract_statements(query), _failures(), explained(query, _explain))
    if len(statements) != 1 or statements[0].type != duckdb.StatementType.SELECT:
        raise SourceError(
            "the query must be a single SELECT",
            got=" and ".join(statement.type.name for statement in statements) or "no statement",
            remedy="Reading a table must not change the database.",
        )


def _duckdb() -> Any:
    try:
        return importlib.import_module("duckdb")
    except ImportError:
        raise MissingExtra("duckdb", "duckdb") from None


def _failures() -> tuple[type[BaseException], ...]:
    return (_duckdb().Error, *arrow.FAILURES)


def _explain(failure: BaseException) -> SourceError:
    """What DuckDB found wrong, without its own words, which may quote a value."""
    if isinstance(failure, SourceError):
        return failure
    return SourceError(
        "DuckDB cannot run the query to its end",
        got=type(failure).__name__,
        remedy="Run it in DuckDB to see its own message, which is left out here as it may quote a value.",
    )

"""Anything tabular → a stream of Arrow record batches over the asked columns, in bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast, final

from dpgram.errors import SourceError, require_publish

require_publish("pyarrow")

import numpy as np
import pyarrow as pa

from dpgram.schema import Schema
from dpgram.schema.reading import AS_USUAL, SHEET_ROWS, FileLayout, Reading
from dpgram.sources import _arrow as arrow
from dpgram.sources import _polars_query as polars_query
from dpgram.sources import (
    arrow_files,
    database,
    datasets,
    delimited,
    files,
    json_lines,
    memory,
    parquet,
    remote,
    sql,
    statistical_files,
    workbooks,
)
from dpgram.sources._mistakes import refuse_mistaken
from dpgram.sources.base import DeclaredKind, Partition, Request, SendablePieces, Source, loaded
from dpgram.sources.lakehouse import refuse_lakehouse

__all__ = [
    "DeclaredKind",
    "Partition",
    "SendablePieces",
    "Source",
    "column_types",
    "declared_kinds",
    "declared_readings",
    "is_known",
    "open_source",
    "read_once",
]


def open_source(
    data: object,
    columns: Sequence[str],
    *,
    kinds: Mapping[str, DeclaredKind] | None = None,
    readings: Mapping[str, Reading] | None = None,
    layout: FileLayout = AS_USUAL,
    batch_rows: int = 65536,
) -> Source:
    """Open `data` for reading `columns`, in that order and no others. Nothing but metadata is read yet.

    `data` is a numpy array (structured, or two-dimensional with its columns in the order of `columns`), a
    mapping of arrays, a pandas or Polars frame (lazy too), an Arrow table, record batch, reader or dataset,
    any object with `__arrow_c_stream__`, a path, folder or glob of Parquet or CSV files or a list of such, a
    DuckDB relation, or a pair `(database, query)`: a DuckDB file or connection, an open ADBC or DB-API
    connection, or a postgresql:// address.

    `kinds` (see `declared_kinds`) says what the schema declares of each column. Cells without a type of their
    own (CSV, Python objects, names of partition folders) and text in number, boolean and date columns are
    read by it, and become null where they do not fit. Without a kind, such cells stay text. `readings` (see
    `declared_readings`) has the reading rules of columns with a kind, `layout` those of files.
    """
    request = Request(
        columns=tuple(columns),
        kinds=dict(kinds or {}),
        readings=dict(readings or {}),
        layout=layout,
        batch_rows=batch_rows,
    )
    if not isinstance(data, str | Path | list):
        _refuse_rows_of_a_sheet(layout)
    return _form(data).open(data, request)


def _refuse_rows_of_a_sheet(layout: FileLayout) -> None:
    """Everywhere else they would count rows of the table."""
    given = [name for name in SHEET_ROWS if getattr(layout, name) is not None]
    if given:
        raise SourceError(
            f"{given[0]!r} counts rows of a workbook's sheet, and this is none",
            remedy="Leave it out; delete in the file itself what is not its header or a row",
        )


def read_once(data: object) -> bool:
    """Whether this is a stream that is gone once it was read."""
    if isinstance(data, pa.Table | pa.RecordBatch | np.ndarray | Mapping):
        return False
    loaded = type(data).__module__.partition(".")[0] in ("pandas", "polars", "duckdb")
    return not loaded and (isinstance(data, pa.RecordBatchReader) or hasattr(data, "__arrow_c_stream__"))


def column_types(data: object, layout: FileLayout = AS_USUAL) -> dict[str, str]:
    """The names of the columns of `data` with the names of their Arrow types, from metadata alone.

    No value and no level of a dictionary is read. A CSV file holds "text", a workbook has types "by
    cell"; where a type could only come from the values (Python objects) it is "unknown".
    """
    form = _form(data)
    return _file_types(data, layout) if isinstance(data, str | Path | list) else form.types(data)


def declared_kinds(schema: Schema) -> dict[str, DeclaredKind]:
    """How the schema means the cells of each column that is read: what `open_source` takes as `kinds`."""
    return {column.name: column.cell_kind for column in schema.columns_read}


def declared_readings(schema: Schema) -> dict[str, Reading]:
    """The reading rules of the columns that have some: what `open_source` takes as `readings`."""
    return {column.name: column.reading for column in schema.columns_read if column.reading}


@final
@dataclass(frozen=True, slots=True)
class _Form:
    """A form of data: how to know it, how to open it, how to read its column types."""

    matches: Callable[[object], bool]
    open: Callable[[Any, Request], Source]
    types: Callable[[Any], dict[str, str]]


def is_known(data: object) -> bool:
    """Whether `open_source` has a way to read data of this form."""
    return any(form.matches(data) for form in _FORMS)


def _form(data: object) -> _Form:
    refuse_mistaken(data)
    for form in _FORMS:
        if form.matches(data):
            return form
    raise SourceError(
        "data of this type cannot be read",
        got=type(data).__name__,
        limit="numpy, pandas, Polars, Arrow, CSV, Parquet, DuckDB, or an object with __arrow_c_stream__",
        remedy="Convert it to one of these.",
    )


def _is(*kinds: type) -> Callable[[object], bool]:
    return lambda data: isinstance(data, kinds)


def _open_files(data: str | Path | list[Any], request: Request) -> Source:
    if remote.is_remote(data):
        _refuse_rows_of_a_sheet(request.layout)
        return parquet.parquet_source(remote.find_remote(cast("Any", data)), request, "remote Parquet files")
    paths, found, label = _found_files(data)
    if found != "workbook":
        _refuse_rows_of_a_sheet(request.layout)
    return _FILES[found].open(paths, request, label)


def _found_files(data: str | Path | list[Any]) -> tuple[list[Path], files.Format, str]:
    paths, found, label = files.find_files(data)
    if found == "parquet":
        refuse_lakehouse(paths)
    return paths, found, label


def _file_types(data: str | Path | list[Any], layout: FileLayout) -> dict[str, str]:
    if remote.is_remote(data):
        return parquet.parquet_types(remote.find_remote(cast("Any", data))[0])
    paths, found, _ = _found_files(data)
    return _FILES[found].types(paths[0], layout)


@final
@dataclass(frozen=True, slots=True)
class _FileFormat:
    """A format of files: how to open several as one table, how to read the column types of one."""

    open: Callable[[Any, Request, str], Source]
    types: Callable[[Any, FileLayout], dict[str, str]]


_FILES: Mapping[files.Format, _FileFormat] = {
    "parquet": _FileFormat(parquet.parquet_source, lambda path, _: parquet.parquet_types(path)),
    "delimited": _FileFormat(delimited.delimited_source, delimited.delimited_types),
    "json lines": _FileFormat(json_lines.json_lines_source, json_lines.json_lines_types),
    "arrow": _FileFormat(arrow_files.arrow_file_source, arrow_files.arrow_file_types),
    "statistical": _FileFormat(statistical_files.statistical_source, statistical_files.statistical_types),
    "workbook": _FileFormat(workbooks.workbook_source, workbooks.workbook_types),
}


_FORMS: tuple[_Form, ...] = (
    _Form(_is(np.ndarray), memory.numpy_source, memory.numpy_types),
    _Form(_is(Mapping), memory.mapping_source, memory.mapping_types),
    _Form(_is(pa.Table, pa.RecordBatch), arrow.table_source, arrow.schema_types),
    _Form(_is(pa.RecordBatchReader), arrow.reader_source, arrow.schema_types),
    _Form(_is(str, Path, list), _open_files, column_types),
    _Form(loaded("pandas", "DataFrame"), memory.pandas_source, memory.pandas_types),
    _Form(loaded("polars", "DataFrame"), memory.polars_source, memory.polars_types),
    _Form(loaded("polars", "LazyFrame"), polars_query.polars_query_source, polars_query.polars_query_types),
    _Form(loaded("pyarrow.dataset", "Dataset"), datasets.dataset_source, arrow.schema_types),
    _Form(loaded("duckdb", "DuckDBPyRelation"), database.relation_source, database.relation_types),
    _Form(sql.is_query, sql.query_source, sql.query_types),
    _Form(_is(tuple), database.query_source, database.query_types),
    _Form(lambda data: hasattr(data, "__arrow_c_stream__"), arrow.capsule_source, arrow.capsule_types),
)
"""Every form of data, the particular before the general: the first that matches is taken."""

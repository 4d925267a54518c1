"""Files of Stata, SPSS and SAS, read by pyreadstat in pieces; labels and levels from their own codebook.

Values are read as they are stored: codes and not their labels, times of day and durations as numbers; only
dates and moments go by their format. What the file itself declares missing is.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, final

import pyarrow as pa

from dpgram.errors import MissingExtra, SourceError
from dpgram.schema.reading import AS_USUAL, FileLayout
from dpgram.sources._arrow import StreamSource
from dpgram.sources.base import DeclaredKind, Request, Source, attempt, guarded
from dpgram.sources.files import unreadable
from dpgram.sources.ids import id_array
from dpgram.sources.plain_columns import from_objects
from dpgram.sources.stored_dates import Calendar, calendar_of

READERS: Final[Mapping[str, str]] = {
    ".dta": "read_dta",
    ".sav": "read_sav",
    ".zsav": "read_sav",
    ".por": "read_por",
    ".sas7bdat": "read_sas7bdat",
    ".xpt": "read_xport",
}
"""By the end of a file's name, the function of pyreadstat."""
PIECE_CELLS: Final = 1 << 22
"""Cells read together; pyreadstat skips those before them each time."""
FAILURES: Final = (Exception,)
"""The errors of the library have no common root."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """What the codebook inside a file says of a column; no value of the data."""

    name: str
    type: str
    """double, date, timestamp or string."""
    label: str | None
    values: tuple[tuple[str, str], ...]
    """Codes with their labels."""


def statistical_source(paths: Sequence[Path], request: Request, label: str) -> Source:
    for path in paths:
        request.check(_meta(path, request.layout).column_names, f"the file {path.name!r}")

    def start() -> Iterator[pa.RecordBatch]:
        for path in paths:
            yield from guarded(_read(path, request), FAILURES, _explain(path))

    return StreamSource(
        request=request, label=label, start=start, explain=_explain(paths[0]), failures=FAILURES
    )


def statistical_types(path: Path, layout: FileLayout = AS_USUAL) -> dict[str, str]:
    """Names and Arrow types by the head of the file."""
    return {variable.name: variable.type for variable in codebook_of(path, layout)}


def codebook_of(path: Path, layout: FileLayout = AS_USUAL) -> tuple[Variable, ...]:
    """Names, types, labels and labelled codes of the columns; no row is read."""
    meta = _meta(path, layout)
    return tuple(
        Variable(
            name=name,
            type=_type(path, meta, name),
            label=(meta.column_names_to_labels.get(name) or "").strip() or None,
            values=tuple(
                (_code(code), str(label)) for code, label in meta.variable_value_labels.get(name, {}).items()
            ),
        )
        for name in meta.column_names
    )


def _code(code: object) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _type(path: Path, meta: Any, name: str) -> str:
    if _is_text(meta, name):
        return "string"
    calendar = _calendar(path, meta, name, "date")
    return "double" if calendar is None else calendar.type


def _is_text(meta: Any, name: str) -> bool:
    return bool(meta.readstat_variable_types[name] == "string")


def _calendar(path: Path, meta: Any, name: str, kind: DeclaredKind | None) -> Calendar | None:
    return calendar_of(path.suffix.lower(), str(meta.original_variable_types.get(name) or ""), kind)


def _meta(path: Path, layout: FileLayout) -> Any:
    read = partial(_reader(path), str(path), metadataonly=True, output_format="dict", **_encoding(layout))
    return attempt(read, FAILURES, _explain(path))[1]


def _encoding(layout: FileLayout) -> dict[str, str]:
    return {} if layout.encoding is None else {"encoding": layout.encoding}


def _read(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    read = partial(
        _reader(path),
        str(path),
        output_format="dict",
        usecols=list(request.columns),
        disable_datetime_conversion=True,
        **_encoding(request.layout),
    )
    rows = max(
        request.batch_rows, PIECE_CELLS // len(request.columns) // request.batch_rows * request.batch_rows
    )
    first = 0
    while True:
        columns, meta = read(row_offset=first, row_limit=rows)
        length = len(columns[request.columns[0]])
        for start in range(0, max(length, 1) if first == 0 else length, request.batch_rows):
            cells = [
                _cells(columns[name][start : start + request.batch_rows], path, meta, name, request)
                for name in request.columns
            ]
            yield pa.RecordBatch.from_arrays(cells, names=list(request.columns))
        if length < rows:
            return
        first += length


def _cells(values: list[Any], path: Path, meta: Any, name: str, request: Request) -> pa.Array:
    """How a column is read depends on its type and format, never on its values."""
    kind = request.kinds.get(name)
    if _is_text(meta, name):
        values = [None if value == "" else value for value in values]  # these programs' missing text
    else:
        calendar = _calendar(path, meta, name, kind)
        if calendar is None:
            return pa.array(values, pa.float64())
        if kind == "id":
            return id_array(map(calendar.id, values))
        values = [calendar.cell(value) for value in values]
    return from_objects(values, kind, request.reading(name))


def _reader(path: Path) -> Callable[..., Any]:
    try:
        library = importlib.import_module("pyreadstat")
    except ImportError:
        raise MissingExtra("pyreadstat", "office") from None
    reader: Callable[..., Any] = getattr(library, READERS[path.suffix.lower()])
    return reader


def _explain(path: Path) -> Callable[[BaseException], SourceError]:
    def explain(failure: BaseException) -> SourceError:
        if isinstance(failure, SourceError):
            return failure
        return unreadable(path)(failure)

    return explain

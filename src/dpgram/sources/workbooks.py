"""Sheets of Excel and OpenDocument workbooks, cell by cell: each keeps the type that the workbook gives it.

A reader that gives whole columns one type would let one cell decide how all others are read.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from dpgram.errors import MissingExtra, SourceError
from dpgram.schema.reading import AS_USUAL, FileLayout
from dpgram.sources._arrow import StreamSource
from dpgram.sources.base import Request, Source, attempt, guarded, refuse_repeated
from dpgram.sources.files import unreadable
from dpgram.sources.plain_columns import from_objects

FAILURES: Final = (Exception,)
"""The errors of the library have no common root."""


def workbook_source(paths: Sequence[Path], request: Request, label: str) -> Source:
    """One sheet of each workbook: the declared one, or the only one. Its first row has the names."""
    for path in paths:
        request.check(_names(path, request.layout), f"the sheet of {path.name!r}")

    def start() -> Iterator[pa.RecordBatch]:
        for path in paths:
            yield from guarded(_read(path, request), FAILURES, _explain(path))

    return StreamSource(
        request=request, label=label, start=start, explain=_explain(paths[0]), failures=FAILURES
    )


def workbook_types(path: Path, layout: FileLayout = AS_USUAL) -> dict[str, str]:
    """The names in the first row, each of type "by cell": cells have types, columns have none."""
    names = [name for name in _names(path, layout) if name]
    refuse_repeated(names, f"the sheet of {path.name!r}")
    return dict.fromkeys(names, "by cell")


def sheet_names(path: Path) -> list[str]:
    """The sheets of a workbook, in order."""

    def read() -> list[str]:
        return list(_book(path).sheet_names)

    return attempt(read, FAILURES, _explain(path))


def _names(path: Path, layout: FileLayout) -> list[str]:
    def read() -> list[str]:
        return _texts(next(_rows(path, layout), []))

    names = attempt(read, FAILURES, _explain(path))
    if not any(names):
        raise SourceError(
            f"the sheet of {str(path)!r} is empty: it does not even have column names",
            remedy="Its first row must hold the names of the columns.",
        )
    return names


def _texts(cells: Sequence[Any]) -> list[str]:
    return [text or "" for text in from_objects(cells, None).to_pylist()]


def _read(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    rows = _rows(path, request.layout)
    names = _texts(next(rows))
    places = {name: names.index(name) for name in request.columns}
    held = list(islice(rows, request.batch_rows))
    while True:
        cells = [
            from_objects(
                [_cell(row, places[name]) for row in held], request.kinds.get(name), request.reading(name)
            )
            for name in request.columns
        ]
        yield pa.RecordBatch.from_arrays(cells, names=list(request.columns))
        if not (held := list(islice(rows, request.batch_rows))):
            return


def _cell(row: Sequence[Any], place: int) -> Any:
    """Empty cells are empty texts in the library's rows."""
    cell = row[place] if place < len(row) else None
    return None if isinstance(cell, str) and not cell else cell


def _book(path: Path) -> Any:
    try:
        library = importlib.import_module("python_calamine")
    except ImportError:
        raise MissingExtra("python-calamine", "office") from None
    return library.CalamineWorkbook.from_path(str(path))


def _rows(path: Path, layout: FileLayout) -> Iterator[list[Any]]:
    book = _book(path)
    found = book.sheet_names
    if layout.sheet is None and len(found) != 1:
        raise SourceError(
            f"the workbook {str(path)!r} has several sheets",
            got=", ".join(map(repr, found[:10])),
            remedy='Say which one is meant: sheet = "…" at the top of the schema.',
        )
    if layout.sheet is not None and layout.sheet not in found:
        raise SourceError(
            f"the workbook {str(path)!r} has no sheet {layout.sheet!r}",
            got=", ".join(map(repr, found[:10])),
            remedy="Correct `sheet` at the top of the schema.",
        )
    return _each(book.get_sheet_by_name(layout.sheet or found[0]).iter_rows())


def _each(rows: Iterator[list[Any]]) -> Iterator[list[Any]]:
    """The rows; without cells where the library cannot give one, as with a duration of 10^9 days."""
    while True:
        try:
            yield next(rows)
        except StopIteration:
            return
        except (OverflowError, ValueError):  # of one cell: the sheet is in memory, and the next row follows
            yield []


def _explain(path: Path) -> Any:
    def explain(failure: BaseException) -> SourceError:
        return failure if isinstance(failure, SourceError) else unreadable(path)(failure)

    return explain

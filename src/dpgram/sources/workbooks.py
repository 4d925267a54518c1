"""Sheets of Excel and OpenDocument workbooks, cell by cell: each keeps the type that the workbook gives it.

A reader that gives whole columns one type would let one cell decide how all others are read.
"""

from __future__ import annotations

import importlib
import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, Final, cast

import pyarrow as pa

from dpgram.errors import MissingExtra, SourceError
from dpgram.schema.reading import AS_USUAL, SHEET_ROWS, FileLayout
from dpgram.sources._arrow import StreamSource
from dpgram.sources.base import Request, Source, attempt, guarded, refuse_repeated
from dpgram.sources.files import file_format, unreadable
from dpgram.sources.plain_columns import from_objects

FAILURES: Final = (Exception,)
"""The errors of the library have no common root."""
LOOKED_AT: Final = 50
"""Rows at the top and at the end of a sheet in which it is looked for what is no row of the table."""
FEWEST_COLUMNS: Final = 2
"""With fewer cells in a row nothing tells a title from a header; a note at the end needs one more."""
MOST_HEADER_ROWS: Final = 4
_TOTAL: Final = re.compile(
    r"\s*(?:(?:grand |sub-?)?totals?|total général|sum|summe|gesamt(?:summe)?|insgesamt|somme|ensemble|totale"
    r"|suma|average|mean|mittelwert|durchschnitt|moyenne|promedio)(?:\s+\d{4})?\s*:?\s*",
    re.IGNORECASE,
)


def workbook_source(paths: Sequence[Path], request: Request, label: str) -> Source:
    """One sheet of each workbook: the declared one, or the only one. Its header has the names."""
    for path in paths:
        _check(_names(path, request.layout), path, request)

    def start() -> Iterator[pa.RecordBatch]:
        for path in paths:
            yield from guarded(_read(path, request), FAILURES, _explain(path))

    return StreamSource(
        request=request, label=label, start=start, explain=_explain(paths[0]), failures=FAILURES
    )


def _check(names: Sequence[str], path: Path, request: Request) -> None:
    """The asked columns are there, each once; where they are not, what else the sheet seems to hold."""

    def explain(failure: BaseException) -> SourceError:
        problem, said = cast("SourceError", failure), odd_rows(path, request.layout)
        if said is None:
            return problem
        remedy = f"{problem.remedy} Mind that {said}"
        return SourceError(problem.what, got=problem.got, limit=problem.limit, remedy=remedy)

    attempt(lambda: request.check(names, f"the sheet of {path.name!r}"), (SourceError,), explain)


def workbook_types(path: Path, layout: FileLayout = AS_USUAL) -> dict[str, str]:
    """The names in the header, each of type "by cell": cells have types, columns have none."""
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
        return _header(_rows(path, layout), layout)

    names = attempt(read, FAILURES, _explain(path))
    if not any(names):
        raise SourceError(
            f"the sheet of {str(path)!r} has no column names where its header should be",
            got="a blank row" if (layout.header or 1) == 1 else "blank rows",
            remedy="Its first row must hold them, unless `skip` at the top of the schema counts rows above.",
        )
    return names


def _header(rows: Iterator[list[Any]], layout: FileLayout) -> list[str]:
    """The names, from the rows that hold them; the next row is the first of the table."""
    for _ in range(layout.skip or 0):
        next(rows, None)
    return _joined([_texts(next(rows, [])) for _ in range(layout.header or 1)])


def _joined(head: list[list[str]]) -> list[str]:
    """One name for each column. A cell of an upper row names the empty ones right of it too, as merged ones
    do, where both have names below.
    """
    if len(head) == 1:
        return head[0]
    width = max(map(len, head))
    lines = [[text.strip() for text in line] + [""] * (width - len(line)) for line in head]
    for depth, line in enumerate(lines[:-1]):
        for place in range(1, width):
            both = all(any(below[one] for below in lines[depth + 1 :]) for one in (place - 1, place))
            line[place] = line[place] or (line[place - 1] if both else "")
    return [" ".join(filter(None, parts)) for parts in zip(*lines, strict=True)]


def _without_last(rows: Iterator[list[Any]], last: int) -> Iterator[list[Any]]:
    held = deque(islice(rows, last))
    for row in rows:
        held.append(row)
        yield held.popleft()


def guessed_rows(path: Path, layout: FileLayout = AS_USUAL) -> FileLayout:
    """The layout with what seems to stand above the header, to be of it, and to stand below the table.

    The rows are looked at, so it is for the curator alone.
    """

    def read() -> tuple[list[list[Any]], list[tuple[int, int]]]:
        return list(_rows(path, layout)), _merged_across(path, layout)

    rows, merged = attempt(read, FAILURES, _explain(path))
    filled = [sum(not _is_blank(cell) for cell in row) for row in rows]
    some = sorted(filter(None, filled[:LOOKED_AT]))
    usual = some[len(some) // 2] if some else 0
    if usual < FEWEST_COLUMNS:
        return layout

    def spans(place: int) -> bool:
        return any(first <= place <= last for first, last in merged)

    first = next((i for i, n in enumerate(filled) if n > 1 and (2 * n >= usual or spans(i))), 0)
    depth = 1
    while depth < MOST_HEADER_ROWS and _goes_on(rows[first:], depth, spanned=spans(first + depth - 1)):
        depth += 1
    footer = _footer(rows[first + depth :], notes=usual > FEWEST_COLUMNS)
    return replace(layout, skip=first or None, header=depth if depth > 1 else None, footer=footer or None)


def _footer(rows: Sequence[Sequence[Any]], *, notes: bool) -> int:
    """How many rows at the end are totals, notes of one cell, and blank rows above them."""
    found = 0
    for below, row in enumerate(reversed(rows[-LOOKED_AT:])):
        words = [cell for cell in row if not _is_blank(cell)]
        if words and not (_TOTAL.fullmatch(str(words[0])) or (notes and len(words) == 1)):
            return below if found else 0
        found += bool(words)
    return 0


def _goes_on(rows: Sequence[Sequence[Any]], depth: int, *, spanned: bool) -> bool:
    """Whether the header has one more row: words alone, below merged cells or over numbers without a name."""
    line = rows[depth] if depth < len(rows) else []
    words = [place for place, cell in enumerate(line) if not _is_blank(cell)]
    if not words or not all(isinstance(line[place], str) for place in words):
        return False

    def names_numbers(place: int) -> bool:
        below = [_cell(row, place) for row in rows[depth + 1 : LOOKED_AT]]
        numbers = sum(not isinstance(cell, str) and cell is not None for cell in below)
        above = all(_is_blank(_cell(row, place)) for row in rows[:depth])
        return above and 2 * numbers > sum(cell is not None for cell in below)

    return spanned or any(map(names_numbers, words))


def _is_blank(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _merged_across(path: Path, layout: FileLayout) -> list[tuple[int, int]]:
    """The first and the last row of each merged cell that is wider than a column, where the file tells."""
    book = _book(path)
    found = book.get_sheet_by_name(layout.sheet or book.sheet_names[0]).merged_cell_ranges or []
    return [(start[0], end[0]) for start, end in found if end[1] > start[1]]


def odd_rows(data: object, layout: FileLayout) -> str | None:
    """What the sheets of a table seem to hold beside it and the layout does not say, in words."""
    paths = [
        Path(each) for each in (data if isinstance(data, list) else [data]) if isinstance(each, str | Path)
    ]
    for path in paths:
        if not path.is_file() or file_format(path) != "workbook":
            continue
        guess = guessed_rows(path, FileLayout(sheet=layout.sheet))
        lines = [
            f"{name} = {rows}"
            for name in SHEET_ROWS
            if (rows := getattr(guess, name)) is not None and getattr(layout, name) is None
        ]
        if lines:
            return (
                "the sheet seems to have a title, several rows of names, totals or notes beside its table: "
                f"write {', '.join(lines)} at the top of the schema, or 0 (of `header` 1) where that is wrong"
            )
    return None


def _texts(cells: Sequence[Any]) -> list[str]:
    return [text or "" for text in from_objects(cells, None).to_pylist()]


def _read(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    rows = _rows(path, request.layout)
    names = _header(rows, request.layout)
    rows = _without_last(rows, request.layout.footer or 0)
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

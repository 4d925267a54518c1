"""Files of delimited text, packed or not: a header line of names, then cells read by their declared kinds."""

from __future__ import annotations

import codecs
import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.errors import SourceError, require_publish
from dpgram.schema.reading import AS_USUAL, FileLayout
from dpgram.sources._arrow import StreamSource
from dpgram.sources._polars_query import polars_failures, polars_frames
from dpgram.sources._quotes import QUOTE, check_quotes
from dpgram.sources.base import Request, Source, attempt, guarded, refuse_repeated
from dpgram.sources.files import shown_path, unreadable
from dpgram.sources.headers import look_like_cells
from dpgram.sources.ids import id_array, text_id
from dpgram.sources.memory import polars_batch
from dpgram.sources.text_bytes import (
    BLOCK,
    BYTE_ORDER_MARK,
    PACKED,
    UNPACKING_FAILURES,
    open_bytes,
    read_as_it_is,
)
from dpgram.sources.text_cells import number_or_unreadable, parse

if TYPE_CHECKING:
    import polars as pl

SEPARATOR_NAMES: Final = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}
ENCODINGS_TRIED: Final = {"utf-16": "UTF-16", "utf-8": "UTF-8", "latin-1": "Latin-1"}
LINES_ABOVE: Final = 10
"""In which a header is looked for, to say where it is."""
CHUNK = 1 << 24  # bytes of a file in another encoding than UTF-8 that are read together


def delimited_source(paths: Sequence[Path], request: Request, label: str) -> Source:
    """The files one after the other. A cell that is not a number where one is declared is unreadable.

    A line with too few cells is filled with nulls and cells beyond the header are ignored, because one line
    must not decide whether a table can be read.
    """
    failures = (*polars_failures(), *UNPACKING_FAILURES)
    for path in paths:
        _check(_header(path, request.layout), path, request)

    def start() -> Iterator[pa.RecordBatch]:
        for path in paths:
            yield from guarded(_read(path, request), failures, unreadable(path))

    return StreamSource(
        request=request, label=label, start=start, explain=unreadable(paths[0]), failures=failures
    )


def delimited_types(path: Path, layout: FileLayout = AS_USUAL) -> dict[str, str]:
    """The names in the header, each of type "text": another one could only come from the values."""
    names = _header(path, layout)
    if len(set(names)) < len(names) and look_like_cells(names):  # to name them would show values
        raise SourceError(
            f"the first line of {str(path)!r} seems to be a row of the table and not a header",
            got=f"{len(names)} cells, most of them numbers or dates, of which some are alike",
            remedy="Add a first line with the names of the columns.",
        )
    refuse_repeated(names, f"the file {path.name!r}")
    return dict.fromkeys(names, "text")


def _read(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    layout = request.layout
    separator = separator_of(path, layout)
    check_quotes(path, separator, layout)
    ids = [name for name in request.columns if request.kinds.get(name) == "id"]
    plain_ids = not ids or _is_utf8(path, layout)
    if plain_ids and read_as_it_is(path, layout):
        for frame in _frames(path, separator, request):
            yield polars_batch(frame, request)
        return
    for header, records in _chunks(path, layout):
        frame = _frame(header + records, separator, request)
        # Latin-1 has one letter for each byte, so nothing of the id is lost, whatever the file is written in.
        letters = frame if plain_ids else _letters(header, records, separator, request).select(ids)
        for start in range(0, max(frame.height, 1), request.batch_rows):
            batch = polars_batch(frame.slice(start, request.batch_rows), request)
            for name in [] if plain_ids else ids:
                own = letters.get_column(name).slice(start, request.batch_rows).to_list()
                cells = id_array(None if cell is None else text_id(cell.encode("latin-1")) for cell in own)
                batch = batch.set_column(request.columns.index(name), name, cells)
            yield batch


def _frames(path: Path, separator: str, request: Request) -> Iterator[pl.DataFrame]:
    """Rows in order. Polars reads numbers fastest straight from the file, but fails on what is no number.

    Then it begins again with texts, which tell an empty cell from one that cannot be read, and goes on behind
    the rows that were given out. The numbers are the same in both ways.
    """
    import polars as pl

    done = 0
    try:
        for frame in polars_frames(_scan(path, separator, request), request):
            done += frame.height
            yield frame
    except pl.exceptions.PolarsError:
        place = 0
        for frame in polars_frames(_scan(path, separator, request, as_text=True), request):
            place += frame.height
            if place > done or not frame.height:
                yield frame.tail(place - done)
                done = place


def _frame(records: bytes, separator: str, request: Request) -> pl.DataFrame:
    """The same for a few records in memory."""
    import polars as pl

    try:
        return _scan(records, separator, request).collect()
    except pl.exceptions.PolarsError:
        return _scan(records, separator, request, as_text=True).collect()


def _letters(header: bytes, records: bytes, separator: str, request: Request) -> pl.DataFrame:
    """The same records with a letter for each of their bytes."""
    return _scan(header + records.decode("latin-1").encode(), separator, request, as_text=True).collect()


def _scan(source: Path | bytes, separator: str, request: Request, *, as_text: bool = False) -> pl.LazyFrame:
    """The columns asked for: numbers without rules as numbers, all others as text.

    With `as_text` the file holds only text, and nothing in a cell makes it fail. Of numbers without codes it
    is told here what is unreadable, of all others later.
    """
    require_publish("polars")
    import polars as pl

    numbers = {name for name in request.columns if _is_plain_number(name, request)}
    # Polars leaves quotes in a name doubled, as they stand in the header.
    written = {name: name.replace('"', '""') for name in request.columns}
    return pl.scan_csv(
        source,
        separator=separator,
        schema={
            own: pl.Float64() if name in numbers and not as_text else pl.String()
            for name, own in written.items()
        },
        ignore_errors=as_text,
        extra_columns="ignore",
        encoding="utf8-lossy",  # a stray byte must not make the table unreadable
        glob=False,
    ).select(
        (
            number_or_unreadable(own)
            if as_text and name in numbers and not request.reading(name).missing
            else pl.col(own)
        ).alias(name)
        for name, own in written.items()
    )


def _is_plain_number(name: str, request: Request) -> bool:
    """Whether Polars can read the column by itself: no rules, and no words for a missing number."""
    reading = request.reading(name)
    words = reading.missing and parse(pa.array(reading.missing, pa.string()), "number").null_count
    return request.kinds.get(name) == "number" and not reading.changes_numbers and not words


def _is_utf8(path: Path, layout: FileLayout) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path, layout) as file:
        try:
            while block := file.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _chunks(path: Path, layout: FileLayout) -> Iterator[tuple[bytes, bytes]]:
    """The header and, each time, the next records: whole ones, about `CHUNK` bytes of them."""
    with open_bytes(path, layout) as file:
        header, rest, empty = b"", b"", True
        while True:
            block = file.read(max(CHUNK, len(rest)))
            pending = rest + block
            ends = _record_ends(pending) if block else np.array([len(pending)])
            if not header and len(ends):
                header, pending = pending[: ends[0]].removeprefix(BYTE_ORDER_MARK), pending[ends[0] :]
                ends = ends[1:] - ends[0]
            if len(ends) and ends[-1]:
                empty = False
                yield header, pending[: ends[-1]]
            rest = pending[ends[-1] :] if len(ends) else pending
            if not block:
                break
        if empty:  # its types must be refused all the same
            yield header, b""


def _record_ends(text: bytes) -> npt.NDArray[np.int64]:
    """Where records end: after line feeds outside of quotes, all of which `check_quotes` has looked at."""
    letters = np.frombuffer(text, np.uint8)
    outside = np.cumsum(letters == ord(QUOTE)) % 2 == 0
    return np.flatnonzero((letters == ord("\n")) & outside) + 1


def separator_of(path: Path, layout: FileLayout) -> str:
    """What stands between two cells: as declared, else by the name of the file."""
    if layout.separator is not None:
        return layout.separator
    packed = path.suffix.lower() in PACKED
    return "\t" if path.suffixes[-1 - packed :][:1] in ([".tsv"], [".tab"]) else ","


def _header(path: Path, layout: FileLayout, separator: str | None = None) -> list[str]:
    """The names in the first line, which a line feed ends and nothing else, as for every other line.

    What is refused here is refused by this line alone: no row of the table decides.
    """
    lines: list[str] = []

    def read() -> list[str]:
        with _text(path, layout) as text:
            reader = csv.reader(_noted(text, lines), delimiter=separator or separator_of(path, layout))
            try:
                return next(reader, [])
            except csv.Error:
                if _lone_returns(lines):
                    return []
                raise

    names = attempt(read, (*UNPACKING_FAILURES, csv.Error, ValueError), unreadable(path))
    shown = shown_path(path)
    if not lines:
        raise SourceError(
            f"the file {shown!r} is empty: it does not even have column names",
            remedy="Its first line must be a header with the names of the columns.",
        )
    if _lone_returns(lines):
        raise SourceError(
            f"the lines of {shown!r} do not end as lines of a CSV file do",
            got="carriage returns alone, as old programs write them",
            limit="line feeds, or carriage returns with line feeds",
            remedy='Save it again with the usual ends of lines (in spreadsheets: "CSV UTF-8").',
        )
    if (note := _EXCEL_NOTE.fullmatch(lines[0])) is not None:
        line = (
            ""
            if note[1] == ","
            else f", and write separator = {json.dumps(note[1])} at the top of the schema"
        )
        raise SourceError(
            f"the first line of {shown!r} is a note for Excel and not a header",
            got=f"sep={note[1]}",
            remedy=f"Delete this line{line}.",
        )
    if not any(name.strip() for name in names):
        raise SourceError(
            f"the first line of {shown!r} is blank",
            limit="a header with the names of the columns",
            remedy="Delete the blank lines above the header.",
        )
    return names


_EXCEL_NOTE: Final = re.compile(r"\ufeff?\"?sep=(.)\"?[\s,;]*", re.IGNORECASE)


def _text(path: Path, layout: FileLayout) -> io.TextIOWrapper:
    return io.TextIOWrapper(open_bytes(path, layout), encoding="utf-8-sig", errors="replace", newline="\n")


def _noted(text: Iterable[str], lines: list[str]) -> Iterator[str]:
    """The lines of a text, each of which is noted as soon as it is read."""
    for line in text:
        lines.append(line)
        yield line


def _lone_returns(lines: Sequence[str]) -> bool:
    """Whether a carriage return stands by itself, outside of quotes."""
    return re.search(r"\r(?!\r*\n)", re.sub(r'"[^"]*"', "", "".join(lines))) is not None


def refuse_title(path: Path, layout: FileLayout) -> None:
    """Refuse a first line that no separator cuts, above one that is cut: a title. For a starter schema alone.

    A publication cannot ask for this, as the next line may be a row; it looks for the names of its columns.
    """
    with _text(path, layout) as text:
        first = next(text, "")
        below = next((line for line in islice(text, LINES_ABOVE) if line.strip("\r\n ,;|\t")), "")
    if (
        not first.strip()
        or _EXCEL_NOTE.fullmatch(first)
        or any(len(_cells(first, mark)) > 1 for mark in SEPARATOR_NAMES)
    ):
        return
    if any(len(_cells(below, mark)) > 1 for mark in SEPARATOR_NAMES):
        raise SourceError(
            f"the first line of {shown_path(path)!r} seems to be a title and not a header",
            got="one cell, and more of them in the line below",
            limit="a header with the names of the columns",
            remedy="Delete the lines above the header.",
        )


def _cells(line: str, separator: str) -> list[str]:
    """Those of a single line in which something stands."""
    try:
        found = next(csv.reader([line.rstrip("\r\n")], delimiter=separator), [])
    except csv.Error:
        return []
    return [cell for cell in found if cell.strip()]


def _check(names: Sequence[str], path: Path, request: Request) -> None:
    if not set(names) & set(request.columns):
        # Perhaps there is no header: then the first line is a row, and naming its cells would show values.
        separator = separator_of(path, request.layout)
        raise SourceError(
            f"the first line of {str(path)!r} names none of the columns of the schema",
            got=f"{len(names)} cell{'' if len(names) == 1 else 's'} separated by "
            f"{SEPARATOR_NAMES.get(separator, repr(separator))}",
            remedy=_other_encoding(path, request)
            or _other_separator(path, request)
            or _other_spelling(names, request)
            or _header_below(path, request)
            or "It must be a header with the names of the columns (.csv: by commas, .tsv: by tabs).",
        )
    if not set(request.columns) <= set(names) and (remedy := _other_encoding(path, request)) is not None:
        raise SourceError(
            f"the first line of {str(path)!r} does not name all columns of the schema", remedy=remedy
        )
    request.check(names, f"the file {path.name!r}")


def _other_encoding(path: Path, request: Request) -> str | None:
    """The line for the schema, where the first line names its columns once it is read in another encoding."""
    with open_bytes(path, AS_USUAL) as file:
        marked = file.read(2) in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
    own = request.layout.separator
    separators = [own, *SEPARATOR_NAMES] if marked else [own]
    for encoding, name in ENCODINGS_TRIED.items():
        layout = replace(request.layout, encoding=encoding)
        if marked != (encoding == "utf-16") or encoding == (request.layout.encoding or "utf-8"):
            continue
        if any(set(request.columns) <= set(_header(path, layout, mark)) for mark in separators):
            line = json.dumps(encoding)
            return f"It is {name} text: write encoding = {line} at the top of the schema."
    return None


def _header_below(path: Path, request: Request) -> str | None:
    """What to do where one of the next lines names the columns of the schema."""
    separator = separator_of(path, request.layout)
    with _text(path, request.layout) as text:
        for number, line in enumerate(islice(text, LINES_ABOVE), start=1):
            if set(request.columns) <= set(_cells(line, separator)):
                return f"The header stands in line {number}: delete the lines above it."
    return None


def _other_separator(path: Path, request: Request) -> str | None:
    """The line for the schema, where the first line would name its columns with another separator."""
    for separator, name in SEPARATOR_NAMES.items():
        if set(request.columns) <= set(_header(path, request.layout, separator)):
            line = json.dumps(separator)
            return f"Its cells are separated by {name}: write separator = {line} at the top of the schema."
    return None


def _other_spelling(names: Sequence[str], request: Request) -> str | None:
    """What to do where the first line has the schema's names but for capital letters and blanks."""
    changes: tuple[tuple[Callable[[str], str], str], ...] = (
        (str.strip, "blanks at their ends"),
        (str.casefold, "capital letters"),
        (lambda name: name.strip().casefold(), "capital letters and blanks at their ends"),
    )
    for change, difference in changes:
        found = {change(name) for name in names}
        if all(change(name) in found for name in request.columns):
            return f"Its names differ from those of the schema only in {difference}: write them alike."
    return None

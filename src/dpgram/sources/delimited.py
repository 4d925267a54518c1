"""CSV and TSV files, plain or gzipped: a header line of names, then cells read by their declared kinds."""

from __future__ import annotations

import codecs
import csv
import io
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.errors import SourceError, require_publish
from dpgram.sources._arrow import StreamSource
from dpgram.sources._polars_query import polars_failures, stream_polars_query
from dpgram.sources._quotes import BLOCK, BYTE_ORDER_MARK, QUOTE, check_quotes, open_bytes
from dpgram.sources.base import Request, Source, attempt, guarded, refuse_repeated
from dpgram.sources.files import unreadable
from dpgram.sources.ids import id_array, text_id
from dpgram.sources.memory import polars_batch

if TYPE_CHECKING:
    import polars as pl

UNPACKING_FAILURES = (OSError, EOFError, zlib.error)
CHUNK = 1 << 24  # bytes of a file in another encoding than UTF-8 that are read together


def delimited_source(paths: Sequence[Path], request: Request, label: str) -> Source:
    """The files one after the other. A cell that is not a number where one is declared becomes null.

    A line with too few cells is filled with nulls and cells beyond the header are ignored, because one line
    must not decide whether a table can be read.
    """
    failures = (*polars_failures(), *UNPACKING_FAILURES)
    for path in paths:
        _check(_header(path), path, request)

    def start() -> Iterator[pa.RecordBatch]:
        for path in paths:
            yield from guarded(_read(path, request), failures, unreadable(path))

    return StreamSource(
        request=request, label=label, start=start, explain=unreadable(paths[0]), failures=failures
    )


def delimited_types(path: Path) -> dict[str, str]:
    """The names in the header, each of type "unknown": a type could only come from the values."""
    names = _header(path)
    refuse_repeated(names, f"the file {path.name!r}")
    return dict.fromkeys(names, "unknown")


def _read(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    separator = separator_of(path)
    check_quotes(path, separator)
    ids = [name for name in request.columns if request.kinds.get(name) == "id"]
    if not ids or _is_utf8(path):
        yield from stream_polars_query(_scan(path, separator, request), request)
        return
    for header, records in _chunks(path):
        frame = _scan(header + records, separator, request).collect()
        # Latin-1 has one letter for each byte, so nothing of the id is lost, whatever the file is written in.
        raw = _scan(header + records.decode("latin-1").encode(), separator, request).select(ids).collect()
        for start in range(0, frame.height, request.batch_rows):
            batch = polars_batch(frame.slice(start, request.batch_rows), request)
            for name in ids:
                letters = raw.get_column(name).slice(start, request.batch_rows).to_list()
                cells = id_array(
                    None if cell is None else text_id(cell.encode("latin-1")) for cell in letters
                )
                batch = batch.set_column(request.columns.index(name), name, cells)
            yield batch


def _scan(source: Path | bytes, separator: str, request: Request) -> pl.LazyFrame:
    require_publish("polars")
    import polars as pl

    numbers = {name for name, kind in request.kinds.items() if kind == "number"}
    return pl.scan_csv(
        source,
        separator=separator,
        schema={name: pl.Float64() if name in numbers else pl.String() for name in request.columns},
        ignore_errors=True,  # a cell that cannot be parsed becomes null
        extra_columns="ignore",
        encoding="utf8-lossy",  # a stray byte must not make the table unreadable
        glob=False,
    ).select(request.columns)


def _is_utf8(path: Path) -> bool:
    decoder = codecs.getincrementaldecoder("utf-8")()
    with open_bytes(path) as file:
        try:
            while block := file.read(BLOCK):
                decoder.decode(block)
            decoder.decode(b"", final=True)
        except UnicodeDecodeError:
            return False
    return True


def _chunks(path: Path) -> Iterator[tuple[bytes, bytes]]:
    """The header and, each time, the next records: whole ones, about `CHUNK` bytes of them."""
    with open_bytes(path) as file:
        header, rest = b"", b""
        while True:
            block = file.read(max(CHUNK, len(rest)))
            pending = rest + block
            ends = _record_ends(pending) if block else np.array([len(pending)])
            if not header and len(ends):
                header, pending = pending[: ends[0]].removeprefix(BYTE_ORDER_MARK), pending[ends[0] :]
                ends = ends[1:] - ends[0]
            if len(ends) and ends[-1]:
                yield header, pending[: ends[-1]]
            rest = pending[ends[-1] :] if len(ends) else pending
            if not block:
                return


def _record_ends(text: bytes) -> npt.NDArray[np.int64]:
    """Where records end: after line feeds outside of quotes, all of which `check_quotes` has looked at."""
    letters = np.frombuffer(text, np.uint8)
    outside = np.cumsum(letters == ord(QUOTE)) % 2 == 0
    return np.flatnonzero((letters == ord("\n")) & outside) + 1


def separator_of(path: Path) -> str:
    """What stands between two cells, by the name of the file."""
    return "\t" if ".tsv" in path.suffixes[-2:] else ","


def _header(path: Path) -> list[str]:
    """The names in the first line, which a line feed ends and nothing else, as for every other line."""

    def read() -> list[str]:
        with io.TextIOWrapper(
            open_bytes(path), encoding="utf-8-sig", errors="replace", newline="\n"
        ) as lines:
            return next(csv.reader(lines, delimiter=separator_of(path)), [])

    names = attempt(read, (*UNPACKING_FAILURES, csv.Error, ValueError), unreadable(path))
    if not names:
        raise SourceError(
            f"the file {str(path)!r} is empty: it does not even have column names",
            remedy="Its first line must be a header with the names of the columns.",
        )
    return names


def _check(names: Sequence[str], path: Path, request: Request) -> None:
    if not set(names) & set(request.columns):
        # Perhaps there is no header: then the first line is a row, and naming its cells would show values.
        raise SourceError(
            f"the first line of {str(path)!r} names none of the columns of the schema",
            got=f"{len(names)} cells separated by {'tabs' if separator_of(path) == chr(9) else 'commas'}",
            remedy="It must be a header with the names of the columns (.csv: by commas, .tsv: by tabs).",
        )
    request.check(names, f"the file {path.name!r}")

"""Files of JSON lines, packed or not: one object in each line, its values read by their declared kinds.

A key that a line lacks is a missing cell, and so is every cell of a line that is not an object: no line
decides how another is read, or whether the file can be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from itertools import islice
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import pyarrow as pa

from dpgram.schema.reading import AS_USUAL, FileLayout
from dpgram.sources._arrow import StreamSource
from dpgram.sources.base import DeclaredKind, Request, Source, attempt, guarded
from dpgram.sources.files import unreadable
from dpgram.sources.plain_columns import from_objects
from dpgram.sources.text_bytes import BYTE_ORDER_MARK, UNPACKING_FAILURES, open_bytes

FAILURES: Final = UNPACKING_FAILURES
LINES_LOOKED_AT: Final = 1_000
"""For the names of the columns of a starter schema."""


def json_lines_source(paths: Sequence[Path], request: Request, label: str) -> Source:
    """The files one after the other; columns that no line has are missing everywhere."""

    def start() -> Iterator[pa.RecordBatch]:
        for path in paths:
            yield from guarded(_read(path, request), FAILURES, unreadable(path))

    return StreamSource(
        request=request, label=label, start=start, explain=unreadable(paths[0]), failures=FAILURES
    )


def json_lines_types(path: Path, layout: FileLayout = AS_USUAL) -> dict[str, str]:
    """The keys of the first lines, each of type "unknown": a type could only come from the values."""

    def read() -> dict[str, str]:
        with open_bytes(path, layout) as file:
            return {
                key: "unknown" for row in islice(_objects(file, exact=False), LINES_LOOKED_AT) for key in row
            }

    return attempt(read, FAILURES, unreadable(path))


def _read(path: Path, request: Request) -> Iterator[pa.RecordBatch]:
    # Digits that a float cannot hold may tell two persons apart.
    exact = "id" in request.kinds.values()
    with open_bytes(path, request.layout) as file:
        rows = _objects(file, exact=exact)
        held = list(islice(rows, request.batch_rows))
        while True:
            cells = [
                from_objects(_cells(held, name, kind), kind, request.reading(name))
                for name, kind in ((name, request.kinds.get(name)) for name in request.columns)
            ]
            yield pa.RecordBatch.from_arrays(cells, names=list(request.columns))
            if not (held := list(islice(rows, request.batch_rows))):
                return


def _cells(rows: Sequence[dict[str, Any]], name: str, kind: DeclaredKind | None) -> list[Any]:
    """One column; numbers are floats but in ids, so that no column is read otherwise where another is one."""
    cells = [row.get(name) for row in rows]
    return cells if kind == "id" else [float(cell) if type(cell) is Decimal else cell for cell in cells]


def _objects(file: IO[bytes], *, exact: bool) -> Iterator[dict[str, Any]]:
    """An object for each line that is not blank; an empty one where a line is anything else.

    Numbers with a point or an exponent are decimals if `exact`, and in lines with one beyond the floats.
    """
    by_digits = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode
    decode = by_digits if exact else msgspec.json.Decoder(dict[str, Any]).decode
    first = True
    for line in file:
        text = line.removeprefix(BYTE_ORDER_MARK) if first else line
        first = False
        if text.strip():
            yield _object(text, decode) or ({} if exact else _object(text, by_digits))


def _object(text: bytes, decode: Callable[[bytes], dict[str, Any]]) -> dict[str, Any]:
    try:
        return decode(text)
    except (msgspec.MsgspecError, ValueError, ArithmeticError, RecursionError):
        return {}

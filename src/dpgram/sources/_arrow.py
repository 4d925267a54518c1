"""Arrow's own tables: Table, RecordBatch, readers, and any object with `__arrow_c_stream__`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, final

import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.sources.base import (
    Batches,
    Partition,
    Request,
    SendablePieces,
    Source,
    at_least_one_batch,
    attempt,
    guarded,
    sliced,
    type_names,
)
from dpgram.sources.memory import MemorySource, joined
from dpgram.sources.plain_columns import plain_columns

FAILURES = (pa.ArrowException, OSError, ValueError, TypeError, RuntimeError)


def table_source(data: pa.Table | pa.RecordBatch, request: Request) -> Source:
    """A table in memory, cut without a copy."""
    request.check(data.schema.names, "the Arrow table")
    table = data.select(list(request.columns))

    def cut(start: int, stop: int) -> pa.RecordBatch:
        piece = table.slice(start, stop - start)
        if isinstance(piece, pa.RecordBatch):
            return piece
        # A copy only where a slice straddles chunks of the table.
        names = piece.schema.names
        return pa.RecordBatch.from_arrays(list(map(joined, names, piece.columns)), names=names)

    return MemorySource(request=request, label="an Arrow table", length=table.num_rows, cut=cut)


def _unshared() -> None:
    """Most streams can be read by this process alone."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSource(Source):
    """Batches from a stream that `start` opens; each pass opens it again."""

    request: Request
    label: str
    start: Callable[[], Iterator[pa.RecordBatch]]
    explain: Callable[[BaseException], SourceError]
    failures: tuple[type[BaseException], ...] = FAILURES
    known_rows: int | None = None
    shared: Callable[[], SendablePieces | None] = _unshared

    @property
    def rows(self) -> int | None:
        """The number of rows where the stream knows it."""
        return self.known_rows

    def describe(self) -> str:
        return f"{self.label}, {len(self.columns)} columns"

    def partitions(self) -> Sequence[Partition]:
        """The stream as a whole: it can only be read from its beginning."""
        return (Partition(first_row=0, read=self._read),)

    def sendable_pieces(self) -> SendablePieces | None:
        """What other machines can read, where the stream comes from such."""
        return self.shared()

    def _read(self) -> Batches:
        stream = attempt(self.start, self.failures, self.explain)
        for batch in guarded(stream, self.failures, self.explain):
            for piece in sliced(batch.select(list(self.columns)), self.request.batch_rows):
                yield plain_columns(piece, self.request.kinds, self.request.readings)


@final
@dataclass(slots=True)
class Once:
    """A reader that can be read a single time: the second pass is refused instead of finding nothing."""

    reader: pa.RecordBatchReader
    lock: threading.Lock = field(default_factory=threading.Lock)
    spent: bool = False

    def open(self) -> Iterator[pa.RecordBatch]:
        """The batches, the first time only."""
        with self.lock:
            if self.spent:
                raise SourceError(
                    "this stream was read already, and a stream can be read only once",
                    remedy="Open it again, or give a table, a file or a dataset.",
                )
            self.spent = True
        return at_least_one_batch(self.reader.schema, iter(self.reader))


def reader_source(data: pa.RecordBatchReader, request: Request, label: str = "an Arrow stream") -> Source:
    """A stream of record batches, readable once."""
    request.check(data.schema.names, "the Arrow stream")
    return StreamSource(
        request=request, label=label, start=Once(data).open, explain=unreadable_stream("the Arrow stream")
    )


def capsule_source(data: Any, request: Request) -> Source:
    """Any object with the Arrow PyCapsule stream interface."""
    where = f"the object of type {type(data).__name__!r}"
    reader = attempt(lambda: pa.RecordBatchReader.from_stream(data), FAILURES, unreadable_stream(where))
    return reader_source(reader, request, f"an Arrow stream of {type(data).__name__!r}")


def schema_types(data: Any) -> dict[str, str]:
    """Names and types of anything with an Arrow schema."""
    return type_names(data.schema)


def capsule_types(data: Any) -> dict[str, str]:
    """Names and types by the stream's own schema; no batch is taken from it."""
    where = f"the object of type {type(data).__name__!r}"
    with attempt(
        lambda: pa.RecordBatchReader.from_stream(data), FAILURES, unreadable_stream(where)
    ) as reader:
        return type_names(reader.schema)


def unreadable_stream(where: str) -> Callable[[BaseException], SourceError]:
    """An error for a stream that fails; the reader's own words are left out, since they may quote a value."""

    def explain(failure: BaseException) -> SourceError:
        return SourceError(
            f"{where} cannot be read to its end: it is damaged, cut short, or not a table",
            got=type(failure).__name__,
            remedy="Read it outside dpgram to see the reader's own message.",
        )

    return explain

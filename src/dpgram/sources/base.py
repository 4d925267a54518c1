"""A source: the asked columns as Arrow record batches, in partitions that can be read in any order."""

from __future__ import annotations

import difflib
import queue
import sys
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar, final

import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.schema.reading import AS_USUAL, AS_WRITTEN, FileLayout, Reading

DeclaredKind = Literal["number", "text", "boolean", "date", "id"]
"""What the schema says a column holds. It decides how cells that carry no type of their own are read.

An id says whose row it is: `sources.ids` keeps distinct ones apart."""

AS_DECLARED: Mapping[str, Reading] = {}
"""No column has reading rules of its own."""

Batches = Generator[pa.RecordBatch, None, None]

READ_AHEAD = 2  # batches waiting in `Source.batches`: enough to hide the reading, few enough to stay small
MOST_NAMES = 5_000  # names compared when looking for a near one: comparing strings is slow

_T = TypeVar("_T")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What is wanted of the data: these columns in this order, of these kinds, in batches of this size."""

    columns: tuple[str, ...]
    kinds: Mapping[str, DeclaredKind]
    batch_rows: int
    readings: Mapping[str, Reading] = field(default_factory=dict)
    """The reading rules of the columns that have some."""
    layout: FileLayout = AS_USUAL

    def __post_init__(self) -> None:
        if self.batch_rows < 1:
            raise SourceError("batch_rows must be positive", got=self.batch_rows, limit="batch_rows ≥ 1")
        if not self.columns:
            raise SourceError("no column was asked for", remedy="Name at least one column.")
        refuse_repeated(self.columns, "the list of asked columns")

    def reading(self, name: str) -> Reading:
        return self.readings.get(name, AS_WRITTEN)

    def check(self, names: Sequence[str], where: str) -> None:
        """Refuse `names` (those the data has) unless each asked column is among them exactly once."""
        known = set(names)
        missing = [name for name in self.columns if name not in known]
        if missing:
            unit = next((name for name in missing if self.kinds.get(name) == "id"), None)
            raise missing_columns(missing, names, where, unit=unit)
        wanted = set(self.columns)
        refuse_repeated([name for name in names if name in wanted], where)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Partition:
    """Rows `first_row`, `first_row + 1`, … of the source; `read` starts a fresh pass over them."""

    first_row: int
    read: Callable[[], Batches]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SendablePieces:
    """A table in pieces that any machine can read by itself: `read` is sent once, a piece with each task."""

    read: Callable[[Any], Batches]
    starts: tuple[int, ...]
    """The number of the first row of each piece."""
    pieces: tuple[Any, ...]


class Source(ABC):
    """A table as a stream of record batches. Holds no data of its own beyond what the caller already held.

    Four ways to read, each giving every row exactly once:

    * `batches()`: one stream, in row order, read ahead by a background thread. For a single consumer.
    * `feeds(workers)`: one stream for each of several worker threads. For engines: each worker decodes the
      partition it holds in its own thread (this is what makes Parquet reading use both cores), and when no
      untouched partition is left it helps with those of the others, so no worker idles and a source with a
      single partition is shared fairly. Order between feeds is arbitrary; an integer sum does not mind.
    * `partitions()`: the pieces themselves, for this process.
    * `sendable_pieces()`: pieces that can be sent to other machines, where the source has such.
    """

    @property
    @abstractmethod
    def request(self) -> Request:
        """The columns, kinds and batch size this source was opened for."""

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns of every batch, in order."""
        return self.request.columns

    @property
    def rows(self) -> int | None:
        """The number of rows where it is known without reading; for a progress bar only, never published."""
        return None

    @abstractmethod
    def describe(self) -> str:
        """One line for the curator's screen: what is read. It holds no value of the data."""

    @abstractmethod
    def partitions(self) -> Sequence[Partition]:
        """The pieces of the table in row order; each can be read by itself, in any thread."""

    def sendable_pieces(self) -> SendablePieces | None:
        """The pieces of the table that other machines can read; None where only this process can."""
        return None

    def batches(self) -> Batches:
        """Every row once, in order, in batches of the asked columns; read ahead by a background thread."""
        return read_ahead(self.batches_in_this_thread)

    def batches_in_this_thread(self) -> Batches:
        """The same batches, read by the thread that asks: for workers that share the cores."""
        return (batch for part in self.partitions() for batch in part.read())

    def feeds(self, workers: int) -> tuple[Iterator[tuple[int, pa.RecordBatch]], ...]:
        """`workers` iterators of (number of the first row, batch); each is for one thread, together all rows.

        An error of the data is raised in whichever feed met it; the others then end early, so an engine must
        not trust a sum before every feed has ended without an error.
        """
        if workers == 1:  # nobody else can decode meanwhile, so a background thread does
            return (_numbered(self.batches()),)
        pool = _PartitionPool(self.partitions())
        return tuple(pool.feed() for _ in range(workers))


@final
class _OpenPartition:
    """A partition being read: any worker may take its next batch."""

    def __init__(self, partition: Partition) -> None:
        self._lock = threading.Lock()
        self._row = partition.first_row
        self._stream = partition.read()

    def take(self) -> tuple[int, pa.RecordBatch] | None:
        with self._lock:
            batch = next(self._stream, None)
            if batch is None:
                return None
            row = self._row
            self._row += batch.num_rows
            return row, batch


@final
class _PartitionPool:
    """The partitions not yet begun and those under way, shared by all feeds of one pass.

    A forgotten feed is ended by the garbage collector, which may run in any thread and at any place, also
    while that thread holds a lock of ours. So ending a feed must not wait: the lock here is re-entrant, and a
    stream is closed when its last holder lets go of it.
    """

    def __init__(self, partitions: Sequence[Partition]) -> None:
        self._lock = threading.RLock()
        self._waiting = iter(partitions)
        self._active: list[_OpenPartition] = []
        self._failed = False

    def _next(self) -> _OpenPartition | None:
        """An untouched partition if there is one, else one under way, else nothing."""
        with self._lock:
            if self._failed:
                return None
            partition = next(self._waiting, None)
            if partition is None:
                return next(reversed(self._active), None)
            shared = _OpenPartition(partition)
            self._active.append(shared)
            return shared

    def _drop(self, shared: _OpenPartition, *, failed: bool) -> None:
        with self._lock:
            self._failed = self._failed or failed
            self._active = [] if self._failed else [other for other in self._active if other is not shared]

    def feed(self) -> Iterator[tuple[int, pa.RecordBatch]]:
        while (shared := self._next()) is not None:
            ended = False
            try:
                while not self._failed and (taken := shared.take()) is not None:
                    yield taken
                ended = True
            finally:
                self._drop(shared, failed=not ended)


def _numbered(batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    row = 0
    for batch in batches:
        yield row, batch
        row += batch.num_rows


def read_ahead(start: Callable[[], Iterator[_T]], depth: int = READ_AHEAD) -> Generator[_T, None, None]:
    """The items of `start()`, produced by a background thread at most `depth` items ahead of the consumer.

    Closing the generator (or dropping it) stops the thread; an exception of the producer is raised here.
    """
    items: queue.SimpleQueue[_T | _End] = queue.SimpleQueue()
    room = threading.Semaphore(depth)
    stop = threading.Event()

    def produce() -> None:
        failure: BaseException | None = None
        try:
            for item in start():
                room.acquire()
                if stop.is_set():
                    break
                items.put(item)
        except BaseException as error:  # noqa: BLE001  every failure must reach the consumer's thread
            failure = error
        items.put(_End(failure))

    thread = threading.Thread(target=produce, name="dpgram-read-ahead", daemon=True)
    thread.start()
    try:
        while not isinstance(item := items.get(), _End):
            room.release()
            yield item
    finally:
        stop.set()
        room.release()
        if (
            thread is not threading.current_thread()
        ):  # the collector may end a forgotten reader in that thread
            thread.join()
    if item.failure is not None:
        raise item.failure


@final
@dataclass(frozen=True, slots=True)
class _End:
    """The last item of a read-ahead queue."""

    failure: BaseException | None


def attempt(
    action: Callable[[], _T],
    failures: tuple[type[BaseException], ...],
    explain: Callable[[BaseException], SourceError],
) -> _T:
    """`action()`, or the error `explain` makes of its failure.

    The new error is raised outside the handler, so it carries neither cause nor context: messages of readers
    quote values of the data, and a traceback would print them.
    """
    try:
        return action()
    except failures as failure:
        error = explain(failure)
    raise error


def guarded(
    stream: Iterator[_T],
    failures: tuple[type[BaseException], ...],
    explain: Callable[[BaseException], SourceError],
) -> Generator[_T, None, None]:
    """`stream`, with the failures of each step turned into one clean error, as `attempt` does."""
    end = _End(None)
    while not isinstance(item := attempt(lambda: next(stream, end), failures, explain), _End):
        yield item


def sliced(batch: pa.RecordBatch, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows of `batch` in pieces of at most `rows`, without a copy; an empty batch is one piece."""
    for start in range(0, max(batch.num_rows, 1), rows):
        yield batch.slice(start, rows)


def at_least_one_batch(schema: pa.Schema, batches: Iterator[pa.RecordBatch]) -> Batches:
    """The batches; where none has a row, one that is empty: its types must be refused all the same."""
    empty = True
    for batch in batches:
        if batch.num_rows:
            empty = False
            yield batch
    if empty:
        yield pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)


def missing_columns(
    missing: Sequence[str], names: Sequence[str], where: str, *, unit: str | None = None
) -> SourceError:
    """The error for columns that `where` does not have, with the nearest names that it has.

    `unit` is the one of them that no schema names: `Rows(unit=…)` does.
    """
    named = ", ".join(repr(name) for name in missing[:5]) + (", …" if len(missing) > 5 else "")
    near = dict.fromkeys(
        match
        for name in missing[:5]
        for match in difflib.get_close_matches(name, names[:MOST_NAMES], n=2, cutoff=0.6)
    )
    near.update(dict.fromkeys(n for n in names for m in missing[:5] if n.casefold() == m.casefold()))
    hint = f" Near names: {', '.join(repr(name) for name in near)}." if near else ""
    if any("\N{REPLACEMENT CHARACTER}" in name for name in names):
        hint += ' Some names are not UTF-8: write encoding = "latin-1" at the top of the schema, say.'
    plural = "s" if len(missing) > 1 else ""
    declared = [name for name in missing if name != unit]
    place = (
        f"Correct the name{'s' if len(declared) > 1 else ''} in the schema or in the data."
        if declared
        else ""
    )
    asked = "" if unit is None else f"Correct Rows(unit={unit!r}), which names the column of ids."
    return SourceError(
        f"{where} has no column{plural} {named}",
        got=f"{len(names)} other column{'s' if len(names) != 1 else ''}" if names else "no columns",
        remedy=" ".join(filter(None, (place, asked))) + hint,
    )


def type_names(schema: pa.Schema) -> dict[str, str]:
    """Names and Arrow types; of a dictionary only that it is one: its index type would tell of its levels."""
    refuse_repeated(schema.names, "the table")
    return {field.name: type_name(field.type) for field in schema}


def type_name(kind: pa.DataType) -> str:
    """The name of an Arrow type without its wrappings; of a dictionary only that it is one."""
    if isinstance(kind, pa.BaseExtensionType):
        return type_name(kind.storage_type)
    if pa.types.is_run_end_encoded(kind):
        return type_name(kind.value_type)
    return "dictionary" if pa.types.is_dictionary(kind) else str(kind)


def loaded(module: str, name: str) -> Callable[[object], bool]:
    """Whether data is of a class of a module that somebody has imported; we import none to find out."""

    def matches(data: object) -> bool:
        kind = getattr(sys.modules.get(module), name, None)
        return isinstance(kind, type) and isinstance(data, kind)

    return matches


def refuse_repeated(names: Sequence[str], where: str) -> None:
    """Refuse names of which one stands twice: it would not be clear which column is meant."""
    for name, count in Counter(names).items():
        if count > 1:
            raise SourceError(
                f"{where} has several columns named {name!r}",
                got=f"{count}",
                limit="one column for each name",
                remedy="Rename them, so that it is clear which one is meant.",
            )

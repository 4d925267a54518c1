"""Threads of this machine: each reads and adds up its own batches in memory of fixed size."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast, final

import numpy as np
import numpy.typing as npt

from dpgram.engines.passes import Pass, Sums, gram_pass, merge, sums_or_raise
from dpgram.engines.threads import Progress, Run
from dpgram.errors import DpgramError, shown, whole
from dpgram.rows.encoder import Encoder, Missing
from dpgram.schema import Schema
from dpgram.sums.exact_gram import ExactGram

if TYPE_CHECKING:
    from dpgram.engines._spill import Spill
    from dpgram.sources import Source

__all__ = ["LocalEngine", "Progress", "add_up", "gram"]

BUCKETS: Final = 128
"""Most parts that rows are sorted into by unit: one is in memory at a time for each worker."""
BUCKET_BYTES: Final = 1 << 22
"""The size of a part below which there need not be another."""


def gram(
    data: object,
    schema: Schema,
    clip: float | None = None,
    *,
    missing: Missing = "drop",
    strict: bool = False,
    threads: int | None = None,
    progress: Progress = None,
) -> ExactGram:
    """The exact Gram matrix of the encoded table, every row counted alike. **Not private.**"""
    work = gram_pass(Encoder(schema, clip=clip, missing=missing, strict=strict))
    (found,) = add_up(data, work, threads=threads, progress=progress)
    return cast("ExactGram", found)


def add_up(data: object, work: Pass, *, threads: int | None = None, progress: Progress = None) -> Sums:
    """The exact sums of one pass. **Not private.**

    `data` is anything `dpgram.sources.open_source` reads. The result has the same bits for any number of
    threads (default: one for each core this process may use), any batch size, order of the rows and kind of
    source.
    """
    workers = _workers(threads)
    if work.by_unit:
        source = work.open(data)
        return sums_or_raise(_by_unit(source, work, workers, progress, asked_for=threads is not None), work)
    if work.rules.plain and not work.strict and _is_plain_array(data, work.rules.schema):
        rows = np.asarray(data)
        pieces = _Pieces(rows, work.batch_rows)
        run = Run(feeds=[pieces] * workers, start=lambda: _AddingArrays(work), total=len(rows))
    else:
        source = work.open(data)
        run = Run(feeds=source.feeds(workers), start=lambda: _Adding(work), total=source.rows)
    return sums_or_raise(merge(run.finish(progress, asked_for=threads is not None)), work)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Threads of this machine: for `publish(..., engine=LocalEngine(threads=4))`."""

    threads: int | None = None
    name: ClassVar[str] = "local"
    passes: ClassVar[int | None] = None

    def accepts(self, data: object) -> bool:
        """Whatever no other engine asks for."""
        del data
        return True

    def add_up(self, data: object, work: Pass, *, progress: Progress = None) -> Sums:
        return add_up(data, work, threads=self.threads, progress=progress)


def _by_unit(source: Source, work: Pass, workers: int, progress: Progress, *, asked_for: bool) -> Sums:
    """Sort rows into buckets by unit, in files where they are many; then add up bucket after bucket."""
    from dpgram.engines._spill import Spill

    buckets = _buckets(source, work)
    with Spill(buckets) as spill:
        read = Run(feeds=source.feeds(workers), start=lambda: _Sorting(work, spill), total=source.rows)
        without = sum(read.finish(progress, asked_for=asked_for))
        numbers = _Numbers(buckets)
        adding = Run(feeds=[numbers] * workers, start=lambda: _AddingBuckets(work, spill), total=source.rows)
        sums = merge(adding.finish(progress=False, asked_for=asked_for))
    return cast("Sums", merge([_without_unit(work, without), sums]))


def _without_unit(work: Pass, rows: int) -> Sums:
    """The sums of rows that have no unit: nothing, but they were read."""
    from dpgram.rows.batch import RowBatch

    adder = work.adder()
    if rows:
        adder.add(RowBatch.none(work.rules, without_unit=rows))
    return adder.result()


def _buckets(source: Source, work: Pass) -> int:
    """As many as there are, unless the table is known to be small: no sum depends on it."""
    if source.rows is None:
        return BUCKETS
    return min(BUCKETS, 1 + 8 * len(work.columns) * source.rows // BUCKET_BYTES)


def _workers(threads: object) -> int:
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)  # not on every system
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    count = whole(threads)
    if count is None or count < 1:
        raise DpgramError("the number of threads must be a positive whole number", got=shown(threads))
    return count


def _is_plain_array(data: object, schema: Schema) -> bool:
    """Whether rows can be encoded straight from the caller's memory, without passing through Arrow."""
    return (
        isinstance(data, np.ndarray)
        and not isinstance(data, np.ma.MaskedArray)
        and data.dtype == np.float64
        and data.ndim == 2
        and data.shape[1] == len(schema.source_columns)
        and data.flags.c_contiguous
        and all(column.reads_floats_as_they_are and not column.reading for column in schema.columns_read)
    )


@final
class _Pieces:
    """Slices of an array, handed out to whichever worker asks next."""

    def __init__(self, rows: npt.NDArray[np.float64], size: int) -> None:
        self._rows, self._size = rows, size
        self._starts = iter(range(0, len(rows), size))
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[tuple[int, npt.NDArray[np.float64]]]:
        return self

    def __next__(self) -> tuple[int, npt.NDArray[np.float64]]:
        with self._lock:
            start = next(self._starts)
        return start, self._rows[start : start + self._size]


@final
class _Numbers:
    """0, 1, …, handed out to whichever worker asks next."""

    def __init__(self, count: int) -> None:
        self._numbers = iter(range(count))
        self._lock = threading.Lock()

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return self

    def __next__(self) -> tuple[int, int]:
        with self._lock:
            return 0, next(self._numbers)


@final
class _AddingArrays:
    """Adds up rows of an array straight from the caller's memory, each by itself."""

    def __init__(self, work: Pass) -> None:
        self._adder = work.adder()

    def add(self, first_row: int, piece: Any) -> int:
        from dpgram.rows.batch import RowBatch

        del first_row
        self._adder.add(RowBatch(lines=list(piece.T), rows=len(piece)))
        return len(piece)

    def result(self) -> Sums:
        return self._adder.result()


@final
class _Adding:
    """Reads batches and adds each up by itself: there are no units."""

    def __init__(self, work: Pass) -> None:
        self._reader, self._adder = work.reader(), work.adder()

    def add(self, first_row: int, piece: Any) -> int:
        self._adder.add(self._reader.read(piece, first_row=first_row))
        return len(piece)

    def result(self) -> Sums:
        return self._adder.result()


@final
class _Sorting:
    """Reads batches into buckets by unit; counts the rows that have none."""

    def __init__(self, work: Pass, spill: Spill) -> None:
        self._reader = work.reader()
        self._spill, self._without = spill, 0

    def add(self, first_row: int, piece: Any) -> int:
        rows = self._reader.read(piece, first_row=first_row)
        self._without += rows.without_unit
        self._spill.add([bucket.to_batch() for bucket in rows.split(len(self._spill))])
        return len(piece)

    def result(self) -> int:
        return self._without


@final
class _AddingBuckets:
    """Adds up whole buckets, each with all rows of its units."""

    def __init__(self, work: Pass, spill: Spill) -> None:
        self._adder, self._spill = work.adder(), spill

    def add(self, first_row: int, piece: int) -> int:
        from dpgram.rows.batch import RowBatch

        del first_row
        batches = self._spill.take(piece)
        if batches:
            self._adder.add(RowBatch.from_batches(batches))
        return 0

    def result(self) -> Sums:
        return self._adder.result()

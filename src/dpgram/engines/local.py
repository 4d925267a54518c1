"""Threads of this machine: each encodes and sums its own batches in memory of fixed size."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from functools import reduce
from numbers import Integral
from operator import or_
from typing import TYPE_CHECKING, Any, Final, Literal, final

import numpy as np
import numpy.typing as npt

from dpgram.columns import Boolean, Numeric
from dpgram.encoding import Block, Encoder, Missing
from dpgram.engines.base import finished
from dpgram.errors import DpgramError
from dpgram.gram import ExactGram, GramSum
from dpgram.schema import Schema

if TYPE_CHECKING:
    from dpgram.block import BlockEncoder

Progress = Literal[False] | Callable[[int], None] | None
"""None: a bar on a terminal, else silence. False: silence. A function: called now and then, from the thread
that called `gram`, with the number of rows read so far."""

BATCH_CELLS: Final = 1 << 21
"""Most cells of a batch (16 MB of floats): few enough that memory does not depend on the table."""
BATCH_BLOCKS: Final = 16
"""Most blocks of a batch: few enough that workers end together."""
HEARTBEAT: Final = 0.1
"""Seconds between two looks at the workers."""


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
    """The exact Gram matrix of the encoded table. **Not private.**

    `data` is anything `dpgram.sources.open_source` reads. The result has the same bits for any number of
    threads (default: one for each core this process may use), any batch size and any kind of source.
    """
    encoder = Encoder(schema, clip=clip, missing=missing, strict=strict)
    workers = _workers(threads)
    if _is_plain_array(data, schema):
        run = _over_array(np.asarray(data), encoder, workers)
    else:
        run = _over_source(data, encoder, workers)
    return finished(run.finish(progress), strict=strict)


def _workers(threads: object) -> int:
    if threads is None:
        affinity = getattr(os, "sched_getaffinity", None)  # not on every system
        return len(affinity(0)) if affinity else os.cpu_count() or 1
    if isinstance(threads, bool) or not isinstance(threads, Integral) or threads < 1:
        raise DpgramError("the number of threads must be a positive whole number", got=repr(threads))
    return int(threads)


def _is_plain_array(data: object, schema: Schema) -> bool:
    """Whether rows can be encoded straight from the caller's memory, without passing through Arrow."""
    return (
        isinstance(data, np.ndarray)
        and not isinstance(data, np.ma.MaskedArray)
        and data.dtype == np.float64
        and data.ndim == 2
        and data.shape[1] == len(schema.source_columns)
        and data.flags.c_contiguous
        and data.flags.writeable  # the kernel would be compiled once more for read-only memory
        and all(
            isinstance(column, Boolean) or (isinstance(column, Numeric) and not column.dates)
            for column in map(schema.column, schema.source_columns)
        )
    )


def _over_array(rows: npt.NDArray[np.float64], encoder: Encoder, workers: int) -> _Run:
    pieces = _Pieces(rows, encoder.block_rows * BATCH_BLOCKS)
    return _Run(
        encoder=encoder,
        feeds=[pieces] * workers,
        encode=lambda blocks, first_row, piece: blocks.encode_array(piece, first_row=first_row),
        total=len(rows),
    )


def _over_source(data: object, encoder: Encoder, workers: int) -> _Run:
    from dpgram.sources import declared_kinds, open_source

    schema, block = encoder.schema, encoder.block_rows
    columns = schema.source_columns
    batch_rows = block * min(BATCH_BLOCKS, max(1, BATCH_CELLS // (block * len(columns))))
    source = open_source(data, columns, kinds=declared_kinds(schema), batch_rows=batch_rows)
    return _Run(
        encoder=encoder,
        feeds=source.feeds(workers),
        encode=lambda blocks, first_row, piece: blocks.encode(piece, first_row=first_row),
        total=source.rows,
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
class _Run:
    """One pass over a table by several workers, one for each feed of (number of the first row, rows)."""

    def __init__(
        self,
        *,
        encoder: Encoder,
        feeds: Sequence[Iterator[tuple[int, Any]]],
        encode: Callable[[BlockEncoder, int, Any], Iterator[Block]],
        total: int | None,
    ) -> None:
        self._encoder, self._feeds, self._encode, self._total = encoder, feeds, encode, total
        self._rows_read = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def finish(self, progress: Progress) -> ExactGram:
        """The sum of all feeds. An error or an interrupt stops every worker before it is raised."""
        from threadpoolctl import threadpool_limits

        with (
            # More threads inside each worker's matrix product would only fight for the same cores.
            threadpool_limits(limits=1, user_api="blas"),
            _display(progress, self._total) as show,
            ThreadPoolExecutor(len(self._feeds), thread_name_prefix="dpgram") as pool,
        ):
            try:
                futures = [pool.submit(self._sum, feed) for feed in self._feeds]
                self._watch(futures, show)
                return reduce(or_, (future.result() for future in futures))
            except BaseException:  # an interrupt too: leaving the pool waits for its workers
                self._stop.set()
                raise

    def _sum(self, feed: Iterator[tuple[int, Any]]) -> ExactGram:
        blocks, total = self._encoder.blocks(), GramSum(self._encoder.schema.width)
        for first_row, piece in feed:
            for block in self._encode(blocks, first_row, piece):
                total.add(block)
            with self._lock:
                self._rows_read += len(piece)
            if self._stop.is_set():
                break
        return total.result()

    def _watch(self, futures: list[Future[ExactGram]], show: Callable[[int], None] | None) -> None:
        """Wait for all workers; raise the error of the first that fails."""
        pending: set[Future[ExactGram]] = set(futures)
        while pending:
            done, pending = wait(
                pending, timeout=None if show is None else HEARTBEAT, return_when=FIRST_EXCEPTION
            )
            if show is not None:
                show(self._rows_read)
            for future in done:
                future.result()


@contextmanager
def _display(progress: Progress, total: int | None) -> Iterator[Callable[[int], None] | None]:
    """What to call with the number of rows read so far: nothing, a given function, or a bar's update."""
    if callable(progress):
        yield progress
        return
    if progress is False or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("rows"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("rows", total=total)
        yield lambda rows: bar.update(task, completed=rows)

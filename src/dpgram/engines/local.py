"""Threads of this machine: each encodes and sums its own batches in memory of fixed size."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial, reduce
from numbers import Integral
from operator import or_
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.columns import Boolean, Numeric
from dpgram.encoding import Block, Encoder, Missing, PolicyCounts
from dpgram.engines.base import BATCH_BLOCKS, batch_rows, finished, some_row_used
from dpgram.engines.threads import Progress, Run
from dpgram.errors import DpgramError
from dpgram.gram import ExactGram, GramSum
from dpgram.schema import Schema

if TYPE_CHECKING:
    from dpgram.block import BlockEncoder
    from dpgram.engines.spill import Spill
    from dpgram.portions import Portions, Reader, Settler
    from dpgram.sources import Kind, Source

__all__ = ["LocalEngine", "Progress", "gram", "portions"]

LOTS: Final = 128
"""Most parts that rows are sorted into by unit: one is in memory at a time for each worker."""
LOT_BYTES: Final = 1 << 22
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
    return finished(reduce(or_, run.finish(progress)), strict=strict)


def portions(
    data: object, plan: Portions, *, threads: int | None = None, progress: Progress = None
) -> tuple[ExactGram, ...]:
    """The exact matrix of every block and, in it, of every group, from one pass. **Not private.**

    The same bits for any number of threads, batch size, order of the rows and kind of source.
    """
    workers = _workers(threads)
    source = _source(data, plan.whole, plan.columns, plan.kinds)
    sums = (
        _by_unit(source, plan, workers, progress) if plan.rule else _at_once(source, plan, workers, progress)
    )
    some_row_used(sums, strict=plan.whole.strict)
    return sums


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LocalEngine:
    """Threads of this machine: for `publish(..., engine=LocalEngine(threads=4))`."""

    threads: int | None = None
    name: ClassVar[str] = "local"

    def accepts(self, data: object) -> bool:
        """Whatever no other engine asks for."""
        del data
        return True

    def gram(
        self,
        data: object,
        schema: Schema,
        clip: float | None = None,
        *,
        missing: Missing = "drop",
        strict: bool = False,
        progress: Progress = None,
    ) -> ExactGram:
        """See `gram`."""
        return gram(
            data, schema, clip, missing=missing, strict=strict, threads=self.threads, progress=progress
        )

    def portions(self, data: object, plan: Portions, *, progress: Progress = None) -> tuple[ExactGram, ...]:
        """See `portions`."""
        return portions(data, plan, threads=self.threads, progress=progress)


def _at_once(source: Source, plan: Portions, workers: int, progress: Progress) -> tuple[ExactGram, ...]:
    from dpgram.portions import total

    run = Run(feeds=source.feeds(workers), start=lambda: _Settling(plan), total=source.rows)
    return total(run.finish(progress))


def _by_unit(source: Source, plan: Portions, workers: int, progress: Progress) -> tuple[ExactGram, ...]:
    """Sort rows into lots by unit, in files where they are many; then settle lot after lot."""
    from dpgram.engines.spill import Spill
    from dpgram.portions import total

    lots = _lots(source, plan)
    with Spill(lots) as spill:
        read = Run(feeds=source.feeds(workers), start=lambda: _Sorting(plan, spill), total=source.rows)
        nameless = sum(read.finish(progress))
        numbers = _Numbers(lots)
        settle = Run(feeds=[numbers] * workers, start=lambda: _SettlingLots(plan, spill), total=None)
        sums = total(settle.finish(progress=False))
    unseen = PolicyCounts(rows_read=nameless, rows_dropped=nameless, rows_without_unit=nameless)
    return tuple(
        ExactGram(found.cells, found.rows, found.counts + unseen) if number % len(plan.groups) == 0 else found
        for number, found in enumerate(sums)
    )


def _lots(source: Source, plan: Portions) -> int:
    """As many as there are, unless the table is known to be small: no sum depends on it."""
    if source.rows is None:
        return LOTS
    return min(LOTS, 1 + 8 * len(plan.columns) * source.rows // LOT_BYTES)


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


def _over_array(rows: npt.NDArray[np.float64], encoder: Encoder, workers: int) -> Run[ExactGram]:
    pieces = _Pieces(rows, encoder.block_rows * BATCH_BLOCKS)
    return Run(
        feeds=[pieces] * workers,
        start=partial(
            _Summing,
            encoder,
            lambda blocks, first_row, piece: blocks.encode_array(piece, first_row=first_row),
        ),
        total=len(rows),
    )


def _over_source(data: object, encoder: Encoder, workers: int) -> Run[ExactGram]:
    from dpgram.sources import declared_kinds

    schema = encoder.schema
    source = _source(data, encoder, schema.source_columns, declared_kinds(schema))
    return Run(
        feeds=source.feeds(workers),
        start=partial(
            _Summing, encoder, lambda blocks, first_row, piece: blocks.encode(piece, first_row=first_row)
        ),
        total=source.rows,
    )


def _source(data: object, encoder: Encoder, columns: tuple[str, ...], kinds: Mapping[str, Kind]) -> Source:
    from dpgram.sources import open_source

    return open_source(data, columns, kinds=kinds, batch_rows=batch_rows(encoder, len(columns)))


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
class _Summing:
    """Encodes pieces and adds them up."""

    def __init__(self, encoder: Encoder, encode: Callable[[BlockEncoder, int, Any], Iterator[Block]]) -> None:
        self._encode, self._blocks = encode, encoder.blocks()
        self._total = GramSum(encoder.schema.width)

    def add(self, first_row: int, piece: Any) -> int:
        for block in self._encode(self._blocks, first_row, piece):
            self._total.add(block)
        return len(piece)

    def result(self) -> ExactGram:
        return self._total.result()


@final
class _Settling:
    """Reads batches and settles each by itself: there are no units."""

    def __init__(self, plan: Portions) -> None:
        self._reader: Reader = plan.reader()
        self._settler: Settler = plan.settler()

    def add(self, first_row: int, piece: Any) -> int:
        self._settler.add(self._reader.read(piece, first_row=first_row))
        return len(piece)

    def result(self) -> tuple[ExactGram, ...]:
        return self._settler.result()


@final
class _Sorting:
    """Reads batches into lots by unit; counts the rows that have none."""

    def __init__(self, plan: Portions, spill: Spill) -> None:
        self._reader: Reader = plan.reader()
        self._spill, self._nameless = spill, 0

    def add(self, first_row: int, piece: Any) -> int:
        rows = self._reader.read(piece, first_row=first_row)
        self._nameless += rows.nameless
        self._spill.add([lot.to_batch() for lot in rows.split(len(self._spill))])
        return len(piece)

    def result(self) -> int:
        return self._nameless


@final
class _SettlingLots:
    """Settles whole lots, each with all rows of its units."""

    def __init__(self, plan: Portions, spill: Spill) -> None:
        self._settler: Settler = plan.settler()
        self._spill = spill

    def add(self, first_row: int, piece: int) -> int:
        from dpgram.portions import Rows

        del first_row
        batches = self._spill.take(piece)
        if batches:
            self._settler.add(Rows.from_batches(batches))
        return 0

    def result(self) -> tuple[ExactGram, ...]:
        return self._settler.result()

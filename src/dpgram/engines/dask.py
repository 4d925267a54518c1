"""Dask: the parts of a table on its threads, its processes or a cluster; sums merged in a tree.

Takes `dask.dataframe` and `dask.array` collections, whose parts Dask makes, and Parquet files, folders,
patterns, remote addresses and Arrow datasets, whose row groups the tasks read themselves. A task depends on
its part alone, so whatever a lost worker held is computed again elsewhere and gives the same bits.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Literal, final

from dpgram.engines.passes import Bucket, Outcome, Pass, Sums, merge, numbered, sums_or_raise
from dpgram.engines.threads import Progress, display, one_blas_thread
from dpgram.errors import DpgramError, MissingExtra, SourceError

__all__ = ["DaskEngine"]

FAN_IN: Final = 8
"""Sums merged by one task: few, so that no worker gathers many matrices."""
MOST_BUCKETS: Final = 64
"""Most buckets that rows are brought into by unit: each part of the table is cut into that many pieces."""

_COLLECTIONS: Final = {
    "dask.dataframe": "DataFrame",
    "dask.dataframe.dask_expr": "DataFrame",
    "dask_expr": "DataFrame",
    "dask.array": "Array",
}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DaskEngine:
    """For `publish(..., engine=DaskEngine(scheduler="processes"))`.

    `scheduler`: "threads", "processes", or a `distributed.Client`; by default the client that is active, else
    threads. `retries`: how often a cluster repeats a task that failed for a reason of the machine's.
    `buckets`: into how many pieces rows are brought by unit, each of which must fit into a worker's memory.
    """

    scheduler: object = None
    retries: int = 3
    buckets: int | None = None
    name: ClassVar[str] = "dask"
    passes: ClassVar[int | None] = None

    def accepts(self, data: object) -> bool:
        """Dask's own collections; nobody can have one without having loaded Dask."""
        return is_collection(data)

    def add_up(self, data: object, work: Pass, *, progress: Progress = None) -> Sums:
        """The sums of all parts of the table. **Not private.** The same bits as those of the local engine."""
        runner = _runner(self.scheduler, self.retries)
        delayed = _dask().delayed
        shared = delayed(work, traverse=False)
        parts = _parts(data, work)
        if not parts:
            return sums_or_raise(work.zero(), work)
        if work.by_unit:
            buckets = self.buckets or min(len(parts), MOST_BUCKETS)
            cut = [delayed(_split)(shared, buckets, number, *part) for number, part in enumerate(parts)]
            outcomes = [
                delayed(_join)(shared, [delayed(_bucket)(piece, bucket) for piece in cut])
                for bucket in range(buckets)
            ]
        else:
            outcomes = [delayed(_sums)(shared, number, *part) for number, part in enumerate(parts)]
        with display(progress, None) as show:
            outcome = runner(outcomes, _tree(outcomes, delayed), shared, work, show)
        return sums_or_raise(outcome, work)


def is_collection(data: object) -> bool:
    """Whether this is a table of Dask's; loads nothing to find out."""
    kinds = (getattr(sys.modules.get(module), name, None) for module, name in _COLLECTIONS.items())
    return any(isinstance(kind, type) and isinstance(data, kind) for kind in kinds)


def _parts(data: Any, work: Pass) -> list[tuple[Any, int | None, Any]]:
    """For each part: how it is read, the number of its first row where that is known, and what is read."""
    delayed = _dask().delayed
    if hasattr(data, "__dask_graph__") and hasattr(data, "chunks"):
        return _array_parts(data)
    if is_collection(data):
        from dpgram.sources.base import Request
        from dpgram.sources.files import files_named, refuse_same_path
        from dpgram.sources.lakehouse import local_path, refuse_lakehouse

        request = Request(columns=work.columns, kinds={}, batch_rows=1)
        request.check([name for name in data.columns if isinstance(name, str)], "the Dask frame")
        for step in _parquet_files(data):
            given = step.operand("path")
            places = [
                local_path(str(path)) for path in (given if isinstance(given, list | tuple) else [given])
            ]
            refuse_same_path(files_named(places))
            refuse_lakehouse([*places, *files_named(places)])
        if work.rules.unit is not None:
            _refuse_ids_with_gaps(data, work.rules.unit)
        return [(None, None, part) for part in data[list(work.columns)].to_delayed()]
    found = work.open(data).sendable_pieces()
    if found is None:
        raise SourceError(
            "only this process can read this data, so Dask cannot distribute it",
            got=type(data).__name__,
            limit="dask.dataframe, dask.array, Parquet files and Arrow datasets of Parquet files",
            remedy="Take engine='local', or make it a Dask collection",
        )
    read = delayed(found.read, traverse=False)
    return [
        (read, start, delayed(piece, traverse=False))
        for start, piece in zip(found.starts, found.pieces, strict=True)
    ]


def _refuse_ids_with_gaps(data: Any, unit: str) -> None:
    """Parquet files whose integers Dask reads as floats, in every part where one is missing.

    Long ids of a part would then become one because of a row without an id. Whether there is such a row must
    not matter, so that the plan of the frame decides: what its column of ids is made of.
    """
    for step in _parquet_files(data[[unit]]):
        exact = (step.operand("kwargs") or {}).get("dtype_backend") is not None
        kinds = [step.dtypes] if step.ndim == 1 else step.dtypes
        if not exact and any(str(kind) in ("int64", "uint64") for kind in kinds):
            raise SourceError(
                f"column {unit!r} cannot tell units apart: Dask makes floats of integers where one is "
                "missing, and ids that differ in their last digits would become one",
                got="dask.dataframe.read_parquet without dtype_backend",
                limit="dtype_backend='pyarrow'",
                remedy="Read the files with that, or give their path in place of the frame",
            )


def _parquet_files(data: Any) -> Iterator[Any]:
    """The steps of a frame's plan that read Parquet files."""
    for step in data.expr.simplify().walk():
        if any(kind.__name__ == "ReadParquet" for kind in type(step).__mro__):
            yield step


def _array_parts(data: Any) -> list[tuple[None, int | None, Any]]:
    """The chunks of an array with all columns of a row in one."""
    import numpy as np

    whole = data.rechunk({1: -1}) if data.ndim == 2 else data
    blocks = whole.to_delayed().ravel().tolist()
    sizes = whole.chunks[0]
    known = not any(np.isnan(size) for size in sizes)
    starts = np.cumsum([0, *sizes[:-1]]).tolist() if known else [None] * len(blocks)
    return [(None, start, block) for start, block in zip(starts, blocks, strict=True)]


def _batches(work: Pass, read: Callable[[Any], Any] | None, start: int | None, part: Any) -> Iterator[Any]:
    """The batches of a part: a generator, so that opening it fails where the work looks for errors."""
    yield from numbered(work.open(part).batches_in_this_thread() if read is None else read(part), start or 0)


def _sums(work: Pass, number: int, read: Any, start: int | None, part: Any) -> Outcome:
    return work.sums(_batches(work, read, start, part), number if start is None else None)


def _split(work: Pass, buckets: int, number: int, read: Any, start: int | None, part: Any) -> list[Bucket]:
    return work.split(_batches(work, read, start, part), buckets, number if start is None else None)


def _bucket(buckets: list[Bucket], number: int) -> Bucket:
    return buckets[number]


def _join(work: Pass, buckets: list[Bucket]) -> Outcome:
    return work.join(buckets)


def _rows_read(work: Pass, outcome: Outcome) -> int:
    return work.rows_read(outcome)


def _tree(outcomes: Sequence[Any], delayed: Any) -> Any:
    """One task that depends on all, through layers of merges of `FAN_IN` neighbours."""
    layer = list(outcomes)
    while len(layer) > 1:
        layer = [delayed(merge)(layer[start : start + FAN_IN]) for start in range(0, len(layer), FAN_IN)]
    return layer[0]


Show = Callable[[int], None] | None


def _runner(scheduler: object, retries: int) -> Callable[[list[Any], Any, Any, Pass, Show], Outcome]:
    """How the graph is run."""
    client = _client(scheduler)
    if client is not None:
        return _Cluster(client, retries)
    if scheduler is None or scheduler == "threads":
        return _Machine("threads")
    if scheduler == "processes":
        return _Machine("processes")
    raise DpgramError(
        "this is not a Dask scheduler",
        got=repr(scheduler),
        limit="'threads', 'processes' or a distributed.Client",
    )


def _client(scheduler: object) -> Any:
    """The client that was given, or the one that is active."""
    distributed = sys.modules.get("distributed")
    if distributed is None:
        return None
    if isinstance(scheduler, distributed.Client):
        return scheduler
    if scheduler is not None:
        return None
    try:
        return distributed.default_client()
    except ValueError:  # there is none
        return None


@final
@dataclass(frozen=True, slots=True)
class _Machine:
    """Threads or processes of this machine."""

    scheduler: Literal["threads", "processes"]

    def __call__(self, outcomes: list[Any], result: Any, shared: Any, work: Pass, show: Show) -> Outcome:
        from concurrent.futures.process import BrokenProcessPool

        del shared
        try:
            with one_blas_thread(), _counting(outcomes, work, show):
                outcome: Outcome = result.compute(scheduler=self.scheduler)
                return outcome
        except BrokenProcessPool:
            pass  # raised below, without the traceback of another process
        raise _lost("a worker process ended before its work was done")


@contextmanager
def _counting(outcomes: list[Any], work: Pass, show: Show) -> Iterator[None]:
    from dask.callbacks import Callback

    if show is None:
        with nullcontext():
            yield
        return
    keys, rows = {outcome.key for outcome in outcomes}, 0

    def count(key: Any, outcome: Any, *_: object) -> None:
        nonlocal rows
        if key in keys:
            rows += work.rows_read(outcome)
            show(rows)

    with Callback(posttask=count):
        yield


@final
@dataclass(frozen=True, slots=True)
class _Cluster:
    """Workers of a `distributed` scheduler."""

    client: Any
    retries: int

    def __call__(self, outcomes: list[Any], result: Any, shared: Any, work: Pass, show: Show) -> Outcome:
        from distributed import as_completed
        from distributed.scheduler import KilledWorker

        del work
        delayed = _dask().delayed
        counts = [] if show is None else [delayed(_rows_read)(shared, outcome) for outcome in outcomes]
        future, *rows = self.client.compute([result, *counts], retries=self.retries)
        try:
            total = 0
            for _, read in as_completed(rows, loop=self.client.loop, with_results=True):
                total += read
                if show is not None:
                    show(total)
            outcome: Outcome = future.result()
            return outcome
        except KilledWorker:
            pass  # raised below, without the words of the scheduler
        finally:
            self.client.cancel([future, *rows])
        raise _lost("the cluster lost the workers of one task again and again")


def _lost(what: str) -> DpgramError:
    return DpgramError(
        what,
        limit="nothing was charged: a charge is made only once all sums are complete",
        remedy="Give the workers more memory, or make the parts of the table smaller, and run it again",
    )


def _dask() -> Any:
    try:
        import dask
    except ImportError:
        raise MissingExtra("dask", "dask") from None
    return dask

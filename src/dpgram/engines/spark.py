"""Spark: partitions of a DataFrame by `mapInArrow`, or row groups that its tasks read themselves.

Only `mapInArrow` and `repartition` are used, so the same code runs on a classic session and on Spark Connect.
A worker needs pyarrow, numpy and dpgram, and no Spark package of ours. Spark repeats a task that is
lost; a task depends on its partition alone, so what it repeats gives the same bits.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import asdict, dataclass
from functools import partial
from io import StringIO
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from dpgram.engines.passes import Bucket, Failed, Outcome, Pass, Sums, merge, numbered, sums_or_raise
from dpgram.engines.threads import Progress, display
from dpgram.errors import DpgramError, MissingExtra, SourceError
from dpgram.sums.from_bytes import sum_from_bytes

if TYPE_CHECKING:
    import pyarrow as pa

    from dpgram.rows.batch import RowBatch
    from dpgram.sources.base import SendablePieces

__all__ = ["SparkEngine"]

FAN_IN: Final = 32
"""Sums that the driver merges itself."""
MERGERS: Final = 8
"""Tasks that merge the sums of many partitions before."""
_SUMS: Final = "sums array<binary>, failed string"
_ROWS: Final = "unit string, numbers array<double>, texts array<string>, without_unit long, failed string"
_ROW_NAMES: Final = ["unit", "numbers", "texts", "without_unit", "failed"]
_FRAMES: Final = {"pyspark.sql.classic.dataframe", "pyspark.sql.connect.dataframe", "pyspark.sql.dataframe"}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SparkEngine:
    """For `publish(..., engine=SparkEngine(session=spark))`.

    `session`: for paths; by default the one that is active, else a new one by Spark's own settings.
    `buckets`: the number of tasks that rows are brought to by unit (default: Spark's own number of
    shuffle partitions).
    """

    session: object = None
    buckets: int | None = None
    name: ClassVar[str] = "spark"
    passes: ClassVar[int | None] = None

    def accepts(self, data: object) -> bool:
        """Spark's own frames; nobody can have one without having loaded Spark."""
        return is_frame(data)

    def add_up(self, data: Any, work: Pass, *, progress: Progress = None) -> Sums:
        """The sums of all partitions. **Not private.** The same bits as those of the local engine."""
        if is_frame(data):
            from dpgram.sources.base import Request

            Request(columns=work.columns, kinds={}, batch_rows=1).check(data.columns, "the Spark frame")
            _refuse_lakehouse(data)
            rows, read, tasks = data.select(*map(_quoted, work.columns)), _frame_batches, None
        else:
            pieces = _pieces(data, work)
            tasks = len(pieces.pieces)
            if tasks == 0:
                return sums_or_raise(work.zero(), work)
            rows, read = self._session().range(0, tasks, 1, tasks), partial(_piece_batches, pieces)
        if work.by_unit:
            read_rows = rows.mapInArrow(partial(_read_rows, work, read), _ROWS)
            buckets = read_rows.repartition(*([] if self.buckets is None else [self.buckets]), "unit")
            sums = buckets.mapInArrow(partial(_join_rows, work), _SUMS)
        else:
            sums = rows.mapInArrow(partial(_sum_batches, work, read, numbered_parts=tasks is not None), _SUMS)
        if work.by_unit or tasks is None or tasks > FAN_IN:
            # By a task each, and not by the driver: thousands of wide matrices would not fit there.
            sums = sums.repartition(MERGERS).mapInArrow(_merge_sums, _SUMS)
        with display(progress, None) as show:
            outcome = merge([work.zero(), *map(_outcome, _collected(sums))])
            if show is not None:
                show(work.rows_read(outcome))
        return sums_or_raise(outcome, work)

    def _session(self) -> Any:
        if self.session is not None:
            return self.session
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise MissingExtra("pyspark", "spark") from None
        return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def is_frame(data: object) -> bool:
    """Whether this is a DataFrame of Spark's, classic or Connect; loads nothing to find out."""
    kinds = (getattr(sys.modules.get(module), "DataFrame", None) for module in _FRAMES)
    return any(isinstance(kind, type) and isinstance(data, kind) for kind in kinds)


def _refuse_lakehouse(data: Any) -> None:
    """Refuse files of a Delta, Iceberg or Hudi table that Spark reads as mere files, on this machine."""
    from pyspark.errors import PySparkException

    from dpgram.sources.lakehouse import local_path, refuse_lakehouse

    # A frame that cannot be planned fails when it is read, with a message of ours.
    with suppress(PySparkException):
        with redirect_stdout(StringIO()) as plan:
            data.explain()
        # The readers of those formats have names of their own for what lists the files.
        if re.search(r"\b(Pruned)?(InMemory|Catalog)FileIndex\b", plan.getvalue()):
            refuse_lakehouse(local_path(path) for path in data.inputFiles() if path.startswith("file:"))


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def _pieces(data: object, work: Pass) -> SendablePieces:
    found = work.open(data).sendable_pieces()
    if found is None:
        raise SourceError(
            "only this process can read this data, so Spark cannot distribute it",
            got=type(data).__name__,
            limit="Spark frames, Parquet files and Arrow datasets of Parquet files",
            remedy="Take engine='local', or make it a Spark frame",
        )
    return found


def _collected(sums: Any) -> list[Any]:
    from pyspark.errors import PySparkException

    try:
        rows: list[Any] = sums.collect()
        return rows
    except PySparkException as problem:
        kind, absent = type(problem).__name__, "No module named 'dpgram" in str(problem)
    if absent:
        raise DpgramError(
            "dpgram is not installed on the Spark workers",
            remedy="Install it there, or point PYSPARK_PYTHON to a Python that has it",
        )
    # Raised here, without Spark's own words: the traceback of a worker may quote a value.
    raise DpgramError(
        "Spark gave up on the job",
        got=kind,
        limit="nothing was charged: a charge is made only once all sums are complete",
        remedy="Look up the reason in Spark's own log, fix it and run again",
    )


Read = Callable[[Pass, Iterator[Any]], Iterator[tuple[int, Any]]]


def _frame_batches(work: Pass, batches: Iterator[pa.RecordBatch]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """What Spark sends of its own partition, made plain as every source makes it."""
    from dpgram.sources.plain_columns import plain_columns

    kinds, readings = work.kinds, work.readings
    yield from numbered(plain_columns(batch, kinds, readings) for batch in batches)


def _piece_batches(
    pieces: SendablePieces, _work: Pass, batches: Iterator[pa.RecordBatch]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The row groups whose numbers Spark sends."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield from numbered(pieces.read(pieces.pieces[number]), pieces.starts[number])


def _part() -> int:
    from pyspark import TaskContext

    context = TaskContext.get()
    return 0 if context is None else context.partitionId()


def _sum_batches(
    work: Pass, read: Read, batches: Iterator[pa.RecordBatch], *, numbered_parts: bool
) -> Iterator[pa.RecordBatch]:
    yield _packed(work.sums(read(work, batches), None if numbered_parts else _part()))


def _merge_sums(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    total: Outcome | None = None
    for batch in batches:
        for row in batch.to_pylist():
            found = _outcome(row)
            total = found if total is None else merge([total, found])
    if total is not None:
        yield _packed(total)


def _read_rows(work: Pass, read: Read, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows as numbers with their units; an error, or the rows without a unit, in a line of their own."""
    import pyarrow as pa

    without, failed = 0, None
    stream = work.rows(read(work, batches), _part())
    for rows in stream:
        if isinstance(rows, Failed):
            failed = json.dumps(asdict(rows))
            break
        without += rows.without_unit
        if rows.ids is not None and len(rows):
            yield _shipped(rows)
    yield pa.record_batch(
        [
            pa.array([None], pa.string()),
            pa.array([[]], pa.list_(pa.float64())),
            pa.array([[]], pa.list_(pa.string())),
            pa.array([without], pa.int64()),
            pa.array([failed], pa.string()),
        ],
        names=_ROW_NAMES,
    )


def _shipped(rows: RowBatch) -> pa.RecordBatch:
    """Rows in Spark's own types, a line for each."""
    import numpy as np
    import pyarrow as pa

    count, width, lines = len(rows), len(rows.lines), len(rows.texts)
    numbers = pa.array(rows.numbers.reshape(-1))
    # Line after line, so that the texts of one row lie side by side.
    texts = (
        pa.concat_arrays([line.cast(pa.string()) for line in rows.texts])
        if lines
        else pa.nulls(0, pa.string())
    )
    order = pa.array(np.arange(lines * count).reshape(lines, count).T.reshape(-1))
    return pa.record_batch(
        [
            pa.array(rows.ids).cast(pa.string()),
            pa.ListArray.from_arrays(_every(width, count), numbers),
            pa.ListArray.from_arrays(_every(lines, count), texts.take(order)),
            pa.nulls(count, pa.int64()),
            pa.nulls(count, pa.string()),
        ],
        names=_ROW_NAMES,
    )


def _received(batch: pa.RecordBatch) -> pa.RecordBatch:
    """What `_shipped` sent, as `RowBatch.to_batch` writes it."""
    import numpy as np
    import pyarrow as pa

    from dpgram.rows.batch import RowBatch

    count = batch.num_rows
    numbers = batch.column("numbers").flatten().to_numpy(zero_copy_only=False)
    texts = batch.column("texts").flatten().cast(pa.large_string())
    lines = len(texts) // count
    rows = RowBatch(
        lines=list(np.ascontiguousarray(numbers.reshape(count, -1).T)),
        rows=count,
        ids=batch.column("unit").cast(pa.large_string()),
        texts=tuple(texts.take(pa.array(np.arange(count) * lines + line)) for line in range(lines)),
    )
    return rows.to_batch()


def _every(step: int, count: int) -> pa.Array:
    """Where the lists of `count` rows begin and end, if each has `step` entries."""
    import numpy as np
    import pyarrow as pa

    return pa.array(np.arange(count + 1) * step, pa.int32())


def _join_rows(work: Pass, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """All rows of the units that Spark brought here."""
    import pyarrow.compute as pc

    without, found = 0, []
    for batch in batches:
        failed = pc.drop_null(batch.column("failed")).to_pylist()
        if failed:
            yield _packed(_failure(failed[0]))
            return
        without += pc.sum(batch.column("without_unit")).as_py() or 0
        named = batch.filter(pc.is_valid(batch.column("unit")))
        if named.num_rows:
            found.append(_received(named))
    if found or without:
        yield _packed(work.join([Bucket(tuple(found), without)]))


def _packed(outcome: Outcome) -> pa.RecordBatch:
    import pyarrow as pa

    failed = json.dumps(asdict(outcome)) if isinstance(outcome, Failed) else None
    sums = [] if isinstance(outcome, Failed) else [found.to_bytes() for found in outcome]
    return pa.record_batch(
        [pa.array([sums], pa.list_(pa.binary())), pa.array([failed], pa.string())], names=["sums", "failed"]
    )


def _outcome(row: Any) -> Outcome:
    if row["failed"] is not None:
        return _failure(row["failed"])
    return _unpacked(row["sums"])


def _failure(text: str) -> Failed:
    return Failed(**json.loads(text))


def _unpacked(sums: Iterable[bytes]) -> Sums:
    return tuple(sum_from_bytes(bytes(found)) for found in sums)

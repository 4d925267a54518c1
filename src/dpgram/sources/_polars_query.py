"""Polars queries, streamed by the engine of Polars and run anew for each pass."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.sources._arrow import StreamSource, unreadable_stream
from dpgram.sources.base import Request, Source, attempt
from dpgram.sources.datasets import refuse_files
from dpgram.sources.files import refuse_same_path
from dpgram.sources.lakehouse import local_path, refuse_lakehouse
from dpgram.sources.memory import polars_batch, polars_types

if TYPE_CHECKING:
    import polars as pl


GUESSED: Final = ("Csv SCAN", "NDJson SCAN")
"""How lines of a plan begin that read files without types: Polars guesses these from the first rows."""
TABLE_FORMATS: Final = "PythonDataset SCAN"
"""How the line of a scan begins that reads a Delta or Iceberg table by the notes of that table."""


def polars_query_source(data: pl.LazyFrame, request: Request) -> Source:
    """A Polars query. How far it reads ahead, and so how much memory it takes, is up to Polars."""
    failures = polars_failures()
    explain = unreadable_stream("the Polars query")
    names = attempt(lambda: data.collect_schema().names(), failures, explain)
    request.check(names, "the Polars query")
    plan = attempt(lambda: data.explain(optimized=False), failures, explain)
    _refuse_guessed_types(plan)
    # Polars waits for ever if it is asked for the nodes of a plan with a table of Delta or Iceberg.
    if not any(line.strip().startswith(TABLE_FORMATS) for line in plan.splitlines()):
        attempt(lambda: _refuse_files(data), failures, explain)
    return StreamSource(
        request=request,
        label="a Polars query",
        start=lambda: stream_polars_query(data.select(request.columns), request),
        explain=explain,
        failures=failures,
    )


def _refuse_guessed_types(plan: str) -> None:
    """One row could decide how all others are read (whether 07 is 7), or whether they are read at all."""
    for line in plan.splitlines():
        if line.strip().startswith(GUESSED):
            raise SourceError(
                "the Polars query reads a file without types, which Polars guesses from the first rows",
                got=line.strip().partition(" SCAN")[0],
                limit="frames, and scans of Parquet or Arrow (IPC) files",
                remedy="Give the path of the file to dpgram, or write it as Parquet with declared types.",
            )


def _refuse_files(data: pl.LazyFrame) -> None:
    """Refuse a scan of one file twice, or of earlier versions of rows, where Polars tells what it reads.

    It tells the paths of Parquet files and the datasets of Arrow's. Several scans may read one file, as a
    join of a table with its own groups does.
    """
    import pyarrow.dataset as ds

    # The text of a plan names two files at most.
    plan = data._ldf.visit()  # noqa: SLF001
    nodes = [plan.get_node()]
    while nodes:
        plan.set_node(nodes.pop())
        nodes += plan.get_inputs()
        # Raised for steps that Polars does not show.
        with contextlib.suppress(NotImplementedError):
            node = plan.view_current_node()
            paths = list(map(local_path, getattr(node, "paths", [])))
            refuse_same_path(paths)
            refuse_lakehouse(paths)
            scan = node.options[0] if type(node).__name__ == "PythonScan" else None
            for given in getattr(scan, "args", ()):
                if isinstance(given, ds.FileSystemDataset | ds.UnionDataset):
                    refuse_files(given)


def polars_query_types(data: pl.LazyFrame) -> dict[str, str]:
    """Names and Arrow types; the query is not run."""
    schema = attempt(data.collect_schema, polars_failures(), unreadable_stream("the Polars query"))
    return polars_types(schema.to_frame())


def stream_polars_query(query: pl.LazyFrame, request: Request) -> Iterator[pa.RecordBatch]:
    """The rows of a query in order, in record batches; dropping the iterator stops the query."""
    for frame in polars_frames(query, request):
        yield polars_batch(frame, request)


def polars_frames(query: pl.LazyFrame, request: Request) -> Iterator[pl.DataFrame]:
    """The same as frames, none of them empty but a single one: its types must be refused all the same."""
    empty = True
    for frame in query.collect_batches(chunk_size=request.batch_rows, engine="streaming"):
        if frame.height:
            empty = False
            yield frame
    if empty:
        yield query.collect_schema().to_frame()


def polars_failures() -> tuple[type[BaseException], ...]:
    """What a query may raise; a panic of the engine is not even an `Exception`."""
    import polars as pl

    return (
        pl.exceptions.PolarsError,
        pl.exceptions.PanicException,
        pa.ArrowException,
        OSError,
        ValueError,
        TypeError,
    )

"""Parquet files, folders and globs, read by row groups with buffered pages (docs/adr/0003-readers.md)."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path, PurePosixPath
from typing import final
from urllib.parse import unquote, unquote_to_bytes

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

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
    type_names,
)
from dpgram.sources.files import unreadable
from dpgram.sources.ids import StrayLetters, text_of
from dpgram.sources.plain_columns import from_objects, plain_columns
from dpgram.sources.remote import RemoteFile

Keys = Mapping[str, str | StrayLetters | None]

FAILURES = (pa.ArrowException, OSError, ValueError, EOFError)
PAGE_BUFFER = 1 << 18  # bytes read at a time from each column: whole column chunks would fill memory
PARTITION_ROWS = 1 << 20  # small row groups are joined up to this many rows: each partition opens its file
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"  # how Hive writes a missing key in a folder name


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """A run of row groups of one file; `keys` are the asked columns that its folder names give."""

    path: Path | RemoteFile
    groups: tuple[int, ...]
    first_row: int
    keys: Keys


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ParquetSource(Source):
    """Parquet files as one table; a partition is a run of row groups."""

    request: Request
    label: str
    runs: tuple[_Run, ...]
    total: int

    @property
    def rows(self) -> int:
        """The number of rows by the footers of the files."""
        return self.total

    def describe(self) -> str:
        return f"{self.label}, {len(self.columns)} columns"

    def partitions(self) -> Sequence[Partition]:
        """Runs of row groups; each opens its file again, so that threads share no reader."""
        alone = len(self.runs) == 1  # then only Arrow's own threads can share the decoding
        return tuple(
            Partition(first_row=run.first_row, read=partial(_read, self.request, run, threads=alone))
            for run in self.runs
        )

    def sendable_pieces(self) -> SendablePieces:
        """Runs of row groups, for machines that see the same files under the same names."""
        starts = tuple(run.first_row for run in self.runs)
        return SendablePieces(read=partial(_read, self.request), starts=starts, pieces=self.runs)


def _read(request: Request, run: _Run, *, threads: bool = False) -> Batches:
    inside = [name for name in request.columns if name not in run.keys]

    def start() -> Batches:
        with _file(run.path, buffer_size=PAGE_BUFFER) as file:
            if not run.groups:
                yield from at_least_one_batch(
                    pa.schema([file.schema_arrow.field(name) for name in inside]), iter(())
                )
            yield from file.iter_batches(
                request.batch_rows, row_groups=run.groups, columns=inside, use_threads=threads
            )

    for batch in guarded(start(), FAILURES, _explain(run.path)):
        yield plain_columns(_ordered(batch, run.keys, request), request.kinds, request.readings)


@contextmanager
def _file(path: Path | RemoteFile, buffer_size: int = 0) -> Iterator[pq.ParquetFile]:
    with ExitStack() as opened:
        place, system = (path.path, path.filesystem) if isinstance(path, RemoteFile) else (path, None)
        if isinstance(path, Path) and not _is_utf8(path):
            place = opened.enter_context(
                pa.OSFile(os.fsencode(path))
            )  # a name that Arrow takes as bytes only
        # Nanoseconds, which Arrow would make of INT96, wrap around in the year 2262.
        yield opened.enter_context(
            pq.ParquetFile(
                place,
                filesystem=system,
                buffer_size=buffer_size,
                pre_buffer=False,
                coerce_int96_timestamp_unit="us",
            )
        )


def _is_utf8(path: Path) -> bool:
    return not any("\ud800" <= letter <= "\udfff" for letter in str(path))


def refuse_int96(metadata: pq.FileMetaData, names: Iterable[str], where: str, remedy: str) -> None:
    """By type: no unit of time holds every INT96, so that distinct moments could become one."""
    columns = (metadata.schema.column(place) for place in range(metadata.num_columns))
    old = {column.path for column in columns if column.physical_type == "INT96"}
    for name in names:
        if name in old:
            raise SourceError(
                f"column {name!r} of {where} holds timestamps in a type that no other one can hold in full",
                got="INT96",
                limit="TIMESTAMP",
                remedy=remedy,
            )


def _explain(path: Path | RemoteFile) -> Callable[[BaseException], SourceError]:
    return path.unreadable if isinstance(path, RemoteFile) else unreadable(path)


def parquet_source(paths: Sequence[Path | RemoteFile], request: Request, label: str) -> Source:
    """The files as one table, after a look at every footer: no row is read before all of them are sound."""
    runs: list[_Run] = []
    first_row = 0
    ids = [name for name in request.columns if request.kinds.get(name) == "id"]
    for path in paths:
        keys = {name: value for name, value in hive_keys(path).items() if name in request.columns}
        names, sizes = attempt(partial(_footer, path, ids), FAILURES, _explain(path))
        keys = {name: value for name, value in keys.items() if name not in names}
        request.check([*names, *keys], f"the file {path.name!r}")
        # A file without rows is looked at as well: a type that is refused is refused there too.
        for groups, rows in _joined(sizes) or [((), 0)]:
            runs.append(_Run(path=path, groups=groups, first_row=first_row, keys=keys))
            first_row += rows
    return ParquetSource(request=request, label=label, runs=tuple(runs), total=first_row)


def parquet_types(path: Path | RemoteFile) -> dict[str, str]:
    """Names and Arrow types by the footer of a file; keys in folder names are "unknown", being values."""

    def read() -> dict[str, str]:
        with _file(path) as file:
            return type_names(file.schema_arrow)

    types = attempt(read, FAILURES, _explain(path))
    return types | {name: "unknown" for name in hive_keys(path) if name not in types}


def _footer(path: Path | RemoteFile, ids: Sequence[str]) -> tuple[list[str], list[int]]:
    """The names of the columns and the rows of each row group."""
    with _file(path) as file:
        metadata = file.metadata
        refuse_int96(metadata, ids, f"the file {path.name!r}", "Write ids as TIMESTAMP, numbers or text")
        return file.schema_arrow.names, [
            metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)
        ]


def _joined(sizes: Sequence[int]) -> list[tuple[tuple[int, ...], int]]:
    """Neighbouring row groups joined while they stay within `PARTITION_ROWS`; empty ones are left out."""
    runs: list[tuple[list[int], int]] = []
    for group, rows in enumerate(sizes):
        if rows == 0:
            continue
        if runs and runs[-1][1] + rows <= PARTITION_ROWS:
            groups, before = runs[-1]
            groups.append(group)
            runs[-1] = (groups, before + rows)
        else:
            runs.append(([group], rows))
    return [(tuple(groups), rows) for groups, rows in runs]


def hive_keys(path: Path | RemoteFile) -> dict[str, str | StrayLetters | None]:
    """The columns that folder names of the form key=value give."""
    folders = PurePosixPath(path.path) if isinstance(path, RemoteFile) else path
    pairs = (part.partition("=") for part in folders.parent.parts if "=" in part)
    # By its bytes, which need not be UTF-8: the key may say whose rows these are.
    return {
        unquote(key): None if value == NO_VALUE else text_of(unquote_to_bytes(os.fsencode(value)))
        for key, _, value in pairs
    }


def _ordered(batch: pa.RecordBatch, keys: Keys, request: Request) -> pa.RecordBatch:
    if not keys:
        return batch.select(list(request.columns))
    arrays = [
        _constant(keys[name], name, request, batch.num_rows) if name in keys else batch.column(name)
        for name in request.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(request.columns))


def _constant(value: str | StrayLetters | None, name: str, request: Request, rows: int) -> pa.Array:
    cell = from_objects([value], request.kinds.get(name), request.reading(name))
    return cell.take(pa.array(np.zeros(rows, np.int64)))

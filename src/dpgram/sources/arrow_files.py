"""Arrow's own files (Feather, IPC): record batches as they were written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import pyarrow as pa

from dpgram.schema.reading import AS_USUAL, FileLayout
from dpgram.sources._arrow import FAILURES, StreamSource
from dpgram.sources.base import Request, Source, at_least_one_batch, attempt, guarded, type_names
from dpgram.sources.files import unreadable


def arrow_file_source(paths: Sequence[Path], request: Request, label: str) -> Source:
    for path in paths:
        schema = attempt(partial(_schema, path), FAILURES, unreadable(path))
        request.check(schema.names, f"the file {path.name!r}")

    def start() -> Iterator[pa.RecordBatch]:
        for path in paths:
            yield from guarded(_read(path), FAILURES, unreadable(path))

    return StreamSource(
        request=request, label=label, start=start, explain=unreadable(paths[0]), failures=FAILURES
    )


def arrow_file_types(path: Path, layout: FileLayout = AS_USUAL) -> dict[str, str]:
    """Names and Arrow types by the head of the file."""
    del layout  # for text
    return attempt(lambda: type_names(_schema(path)), FAILURES, unreadable(path))


def _schema(path: Path) -> pa.Schema:
    with pa.memory_map(str(path)) as file:
        return _open(file).schema


def _read(path: Path) -> Iterator[pa.RecordBatch]:
    with pa.memory_map(str(path)) as file:
        reader = _open(file)
        yield from at_least_one_batch(reader.schema, _batches(reader))


def _open(file: pa.NativeFile) -> pa.RecordBatchFileReader | pa.RecordBatchStreamReader:
    """The form with a footer, which files have, or the one of streams."""
    try:
        return pa.ipc.open_file(file)
    except pa.ArrowInvalid:
        file.seek(0)
        return pa.ipc.open_stream(file)


def _batches(reader: pa.RecordBatchFileReader | pa.RecordBatchStreamReader) -> Iterator[pa.RecordBatch]:
    if isinstance(reader, pa.RecordBatchFileReader):
        return (reader.get_batch(number) for number in range(reader.num_record_batches))
    return iter(reader)

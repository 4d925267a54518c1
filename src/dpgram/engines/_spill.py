"""Buckets of rows, kept in memory while they are few and else in temporary files that nobody else can open.

The files hold rows of the table, so they are as sensitive as the table: they live in a folder of their own
that only this user may enter (mode 0700), have no name there (on systems that allow it) and vanish with the
process, however it ends. The folder is removed when the run ends, by an error or an interrupt too.
"""

from __future__ import annotations

import tempfile
import threading
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import IO, Final, Self, final

import pyarrow as pa

MEMORY_BYTES: Final = 1 << 28
"""Rows held in memory before everything held goes to the files."""


@final
class Spill:
    """Numbered buckets of record batches of one schema. Adding is for any thread, taking after that."""

    def __init__(self, buckets: int, *, memory: int = MEMORY_BYTES) -> None:
        self._memory, self._held = memory, 0
        self._lock = threading.Lock()
        self._waiting: list[list[pa.RecordBatch]] = [[] for _ in range(buckets)]
        self._files: list[IO[bytes] | None] = [None] * buckets
        self._writers: list[pa.RecordBatchStreamWriter | None] = [None] * buckets
        self._folder: Path | None = None
        self._open = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._waiting = []
        self._open.close()

    @property
    def folder(self) -> Path | None:
        """Where the files are; None while everything fits into memory."""
        return self._folder

    def __len__(self) -> int:
        return len(self._waiting)

    def add(self, batches: list[pa.RecordBatch]) -> None:
        """One batch for each bucket; empty ones are not kept."""
        with self._lock:
            for bucket, batch in enumerate(batches):
                if batch.num_rows:
                    self._waiting[bucket].append(batch)
                    self._held += batch.nbytes
            if self._held > self._memory:
                self._write()

    def take(self, bucket: int) -> list[pa.RecordBatch]:
        """All batches of a bucket, once; its file is deleted."""
        batches, self._waiting[bucket] = self._waiting[bucket], []
        file, writer = self._files[bucket], self._writers[bucket]
        if file is not None and writer is not None:
            writer.close()
            file.seek(0)
            with pa.ipc.open_stream(file) as stream:
                batches += list(stream)
            file.close()
            self._files[bucket] = None
        return batches

    def _write(self) -> None:
        if self._folder is None:
            # Only this user may enter it: mode 0700.
            self._folder = Path(self._open.enter_context(tempfile.TemporaryDirectory(prefix="dpgram-")))
        for bucket, batches in enumerate(self._waiting):
            if not batches:
                continue
            writer = self._writers[bucket]
            if writer is None:
                file = tempfile.TemporaryFile(dir=self._folder)  # noqa: SIM115  closed by the stack below
                self._open.enter_context(file)
                self._files[bucket] = file
                writer = self._writers[bucket] = pa.ipc.new_stream(file, batches[0].schema)
            for batch in batches:
                writer.write_batch(batch)
            self._waiting[bucket] = []
        self._held = 0

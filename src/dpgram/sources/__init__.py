"""Anything tabular → a stream of Arrow record batches over the asked columns, in bounded memory."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.sources import arrow, files, memory, parquet
from dpgram.sources.base import Kind, Partition, Request, Source

__all__ = ["Kind", "Partition", "Source", "open_source"]


def open_source(
    data: object, columns: Sequence[str], *, kinds: Mapping[str, Kind] | None = None, batch_rows: int = 65536
) -> Source:
    """Open `data` for reading `columns`, in that order and no others.

    `data` is a numpy array (structured, or two-dimensional with its columns in the order of `columns`), a
    mapping of arrays, a pandas or Polars frame (lazy too), an Arrow table, record batch, reader or dataset,
    any object with `__arrow_c_stream__`, a path, folder or glob of Parquet or CSV files or a list of such, a
    DuckDB relation, or a pair `(database, query)`.

    `kinds` says of each column whether the schema has it as "number", "text" or "boolean". Cells without a
    type of their own (CSV, Python objects, names of partition folders) and text in number and boolean columns
    are read by it, and become null where they do not fit. Without a kind, such cells stay text.
    """
    request = Request(columns=tuple(columns), kinds=dict(kinds or {}), batch_rows=batch_rows)
    if isinstance(data, np.ndarray):
        return memory.numpy_source(data, request)
    if isinstance(data, Mapping):
        return memory.mapping_source(data, request)
    if isinstance(data, pa.Table | pa.RecordBatch):
        return arrow.table_source(data, request)
    if isinstance(data, pa.RecordBatchReader):
        return arrow.reader_source(data, request)
    if isinstance(data, str | Path | list):
        paths, _, label = files.find_files(data)
        return parquet.parquet_source(paths, request, label)
    if _is("pandas", "DataFrame", data):
        return memory.pandas_source(data, request)
    if _is("polars", "DataFrame", data):
        return memory.polars_source(data, request)
    if _is("pyarrow.dataset", "Dataset", data):
        return arrow.dataset_source(data, request)
    if hasattr(data, "__arrow_c_stream__"):
        return arrow.capsule_source(data, request)
    raise SourceError(
        "data of this type cannot be read",
        got=type(data).__name__,
        limit="numpy, pandas, Polars, Arrow, CSV, Parquet, DuckDB, or an object with __arrow_c_stream__",
        remedy="Convert it to one of these.",
    )


def _is(module: str, name: str, data: object) -> bool:
    """Whether `data` is of a class of a module that somebody has imported; we import none to find out."""
    loaded: Any = sys.modules.get(module)
    kind = getattr(loaded, name, None)
    return kind is not None and isinstance(data, kind)

"""Arrow datasets: every file is read with its own types, as a list of the files would be.

Arrow casts all files to the types of the dataset, which are mostly those of the first file. Such a cast makes
two ids one (16777216 and 16777217 as float32), and one cell that it cannot make stops the reading.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.sources._arrow import FAILURES, StreamSource, unreadable_stream
from dpgram.sources.base import (
    Batches,
    DeclaredKind,
    Request,
    SendablePieces,
    Source,
    at_least_one_batch,
    attempt,
    guarded,
    refuse_repeated,
    type_name,
)
from dpgram.sources.files import refuse_same_file, shown_path
from dpgram.sources.parquet import refuse_int96
from dpgram.sources.plain_columns import is_text, plain_columns
from dpgram.sources.remote import RemoteFile, refuse_lakehouse_files

WHERE = "the Arrow dataset"
TYPED_FORMATS = ("ParquetFileFormat", "IpcFileFormat", "OrcFileFormat")
"""Formats whose files say their types. Of others Arrow guesses them from the first cells."""


def dataset_source(data: Any, request: Request) -> Source:
    """A pyarrow dataset, scanned with buffered reads and little read-ahead so that memory stays small."""
    import pyarrow.dataset as ds

    request.check(data.schema.names, WHERE)
    start, shared = partial(_scanned, data, request), False
    # Tables in memory have the types of their dataset, and so have datasets of other libraries.
    if isinstance(data, ds.FileSystemDataset | ds.UnionDataset):
        fragments = _fragments(data)
        attempt(lambda: refuse_files(data), FAILURES, unreadable_stream(WHERE))
        for fragment in fragments:
            _refuse_guessed_types(fragment, data.schema, request)
            attempt(partial(_refuse_moments, fragment, request), FAILURES, unreadable_stream(WHERE))
        if _is_filtered(data):
            attempt(partial(_refuse_casts, fragments, data.schema), FAILURES, unreadable_stream(WHERE))
        else:
            start = partial(_one_by_one, fragments, data.schema, request)
            shared = isinstance(getattr(data, "format", None), ds.ParquetFileFormat)
    return StreamSource(
        request=request,
        label="an Arrow dataset",
        start=start,
        explain=unreadable_stream(WHERE),
        shared=lambda: _row_groups(data, request) if shared else None,
    )


def _is_filtered(data: Any) -> bool:
    """Whether the rows are chosen by an expression: of such datasets Arrow does not give the fragments."""
    try:
        data.get_fragments()
    except ValueError:
        return True
    return False


def _fragments(data: Any) -> list[Any]:
    """A filter is no part of what a union keeps of its members: so the files below it are seen."""
    import pyarrow.dataset as ds

    return list(ds.UnionDataset(data.schema, [data]).get_fragments())


def refuse_files(data: Any) -> None:
    """Refuse a dataset whose files count rows several times: one file twice, or earlier versions of rows."""
    # Tables in memory and files in buffers have no path.
    files = [
        (RemoteFile(path=fragment.path, filesystem=fragment.filesystem), fragment)
        for fragment in _fragments(data)
        if getattr(fragment, "filesystem", None) is not None
    ]
    refuse_lakehouse_files(file for file, _ in files)
    # Parquet by row groups: a dataset may have those of one file one by one.
    refuse_same_file(
        ((file.identity, group and group.id), shown_path(PurePosixPath(file.path)))
        for file, fragment in files
        for group in getattr(fragment, "row_groups", None) or [None]
    )


def _one_by_one(fragments: list[Any], schema: pa.Schema, request: Request) -> Batches:
    if not fragments:
        yield from at_least_one_batch(pa.schema([schema.field(name) for name in request.columns]), iter(()))
    for fragment in fragments:
        yield from _read(fragment, schema, request)


def _read(fragment: Any, schema: pa.Schema, request: Request, **options: Any) -> Batches:
    asked = [name for name in fragment.physical_schema.names if name in request.columns]
    refuse_repeated(asked, "a file of the Arrow dataset")
    return _scanned(fragment, request, schema=_own_schema(fragment, schema), **options)


def _scanned(data: Any, request: Request, **options: Any) -> Batches:
    """The batches of a dataset or of a fragment; one without rows where it has none."""
    import pyarrow.dataset as ds

    if isinstance(getattr(data, "format", None), ds.ParquetFileFormat):
        options["fragment_scan_options"] = ds.ParquetFragmentScanOptions(
            pre_buffer=False, use_buffered_stream=True, buffer_size=1 << 18
        )
    scanner = data.scanner(
        columns=list(request.columns),
        batch_size=request.batch_rows,
        batch_readahead=2,
        fragment_readahead=1,
        **options,
    )
    reader = scanner.to_reader()
    return at_least_one_batch(reader.schema, iter(reader))


def _row_groups(data: Any, request: Request) -> SendablePieces:
    """The row groups of the files of a Parquet dataset; a file without any is looked at for its types."""

    def split() -> list[Any]:
        return [
            group
            for fragment in data.get_fragments()
            for group in fragment.split_by_row_group() or [fragment]
        ]

    groups = attempt(split, FAILURES, unreadable_stream(WHERE))
    sizes = [sum(group.num_rows for group in found.row_groups) for found in groups]
    starts = tuple(accumulate(sizes, initial=0))[:-1]
    return SendablePieces(
        read=partial(_read_row_group, request, data.schema), starts=starts, pieces=tuple(groups)
    )


def _read_row_group(request: Request, schema: pa.Schema, fragment: Any) -> Batches:
    def start() -> Batches:
        yield from _read(fragment, schema, request, use_threads=False)

    for batch in guarded(start(), FAILURES, unreadable_stream(WHERE)):
        yield plain_columns(batch.select(list(request.columns)), request.kinds, request.readings)


def _own_schema(fragment: Any, schema: pa.Schema) -> pa.Schema:
    """The columns of the dataset with the types that they have in this file.

    Those that it does not have are keys of its folder or empty, and keep the type of the dataset.
    """
    own, keys = fragment.physical_schema, _keys(fragment)
    inside = {name for name, count in Counter(own.names).items() if count == 1 and name not in keys}
    return pa.schema([own.field(field.name) if field.name in inside else field for field in schema])


def _keys(fragment: Any) -> set[str]:
    """The columns that folder names give."""
    import pyarrow.dataset as ds

    return set(ds.get_partition_keys(fragment.partition_expression))


def _refuse_guessed_types(fragment: Any, schema: pa.Schema, request: Request) -> None:
    # A fragment without a format is a table in memory.
    found = type(fragment.format).__name__ if hasattr(fragment, "format") else None
    if found is not None and found not in TYPED_FORMATS:
        raise SourceError(
            "an Arrow dataset of text files guesses types from its first cells, and other cells then fail",
            got=found,
            limit="datasets of Parquet, Feather (Arrow IPC) or ORC files",
            remedy='Give the files themselves: a list of their paths, or a pattern such as "folder/*.csv".',
        )
    for name in _keys(fragment).intersection(request.columns):
        _refuse_parsed_key(name, schema.field(name).type, request.kinds.get(name))


def _refuse_moments(fragment: Any, request: Request) -> None:
    """Moments of old types, which a dataset reads in nanoseconds: they wrap around, or stop the reading."""
    remedy = "Give the files themselves, or write them again as Parquet, with the type TIMESTAMP"
    found = type(getattr(fragment, "format", None)).__name__
    if found == "ParquetFileFormat":
        refuse_int96(fragment.metadata, request.columns, WHERE, remedy)
    if found != "OrcFileFormat":
        return
    for field in fragment.physical_schema:
        if field.name in request.columns and pa.types.is_timestamp(field.type):
            raise SourceError(
                f"column {field.name!r} of {WHERE} holds timestamps that Arrow may not be able to read",
                got="an ORC file",
                limit="timestamps in Parquet or Feather files; in ORC files numbers, text, dates",
                remedy=remedy,
            )


def _refuse_parsed_key(name: str, found: pa.DataType, kind: DeclaredKind | None) -> None:
    """The folders 07 and 7 are one integer; and int32 is what Arrow takes where all folders are integers."""
    plain = found.value_type if pa.types.is_dictionary(found) else found
    if kind == "number" or is_text(plain) or (kind != "id" and not pa.types.is_int32(plain)):
        return
    raise SourceError(
        f"the column {name!r} comes from folder names, which this Arrow dataset has parsed",
        got=str(plain),
        limit="text, for a column that is not numeric",
        remedy="Give the folder itself, or a partitioning that says pa.string() for this column.",
    )


def _refuse_casts(fragments: list[Any], schema: pa.Schema) -> None:
    """A filter sees what was cast, in any column."""
    for fragment in fragments:
        for own, common in zip(_own_schema(fragment, schema), schema, strict=True):
            if own.type != common.type:
                raise SourceError(
                    f"the files of this filtered Arrow dataset differ in the type of column {own.name!r}",
                    got=" and ".join(sorted({type_name(own.type), type_name(common.type)})),
                    limit="one type for each column",
                    remedy="Leave out the filter, or write the files again with one type.",
                )

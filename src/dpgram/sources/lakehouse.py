"""Folders of Delta, Iceberg and Hudi tables: beside the rows of today they keep the files of earlier ones.

Such a folder read file by file counts a person once for every version of the table that is still there, so
that removing one person changes more than was paid for. Which files count stands in the notes of the table.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path, PurePath, PurePosixPath
from typing import Any, Final, TypeVar
from urllib.parse import unquote

from dpgram.errors import SourceError
from dpgram.sources.files import shown_path

NOTES: Final[Mapping[str, tuple[str, str]]] = {
    "_delta_log": ("Delta", "deltalake.DeltaTable(…).to_pyarrow_table()"),
    ".hoodie": ("Hudi", "spark.read.format('hudi')"),
    ".hoodie_partition_metadata": ("Hudi", "spark.read.format('hudi')"),
    "metadata": ("Iceberg", "pyiceberg's Table.scan().to_arrow()"),
}
"""What lies in the folder of a table, whose format it is, and what reads the rows of today."""
ICEBERG: Final = ("*metadata.json*", "*.avro", "version-hint.text")
"""What a folder `metadata` holds, if it is one of Iceberg's."""

_Place = TypeVar("_Place", bound=PurePath)


def refuse_lakehouse(paths: Iterable[Path]) -> None:
    """Refuse files and folders of this machine that are, or lie within, a table of such a format."""
    given = {Path(os.path.abspath(path)) for path in paths}  # noqa: PTH100  (no link is followed yet)
    _refuse(given | {Path(os.path.realpath(path)) for path in given}, _existing, os.listdir)


def refuse_remote_lakehouse(paths: Iterable[str], filesystem: Any) -> None:
    """The same of paths of a file system of Arrow's, as far as it lets folders be listed."""
    import pyarrow.fs as pafs

    def existing(places: list[PurePosixPath]) -> set[PurePosixPath]:
        found = filesystem.get_file_info([str(place) for place in places])
        missing = pafs.FileType.NotFound
        return {place for place, info in zip(places, found, strict=True) if info.type != missing}

    def names(place: PurePosixPath) -> list[str]:
        return [info.base_name for info in filesystem.get_file_info(pafs.FileSelector(str(place)))]

    with suppress(OSError, NotImplementedError):
        _refuse({PurePosixPath(path) for path in paths}, existing, names)


def local_path(text: str) -> Path:
    """The path that a text names, be it plain or an address; not every program escapes those."""
    path = text.removeprefix("file:").removeprefix("//")
    return Path(path if path == text or os.path.lexists(path) else unquote(path))


def _existing(places: list[Path]) -> set[Path]:
    return {place for place in places if os.path.lexists(place)}


def _refuse(
    paths: set[_Place], existing: Callable[[list[_Place]], set[_Place]], names: Callable[[_Place], list[str]]
) -> None:
    folders = {folder for path in paths for folder in (path, *path.parents) if folder.name}
    for place in sorted(existing([folder / note for folder in folders for note in NOTES])):
        if place.name == "metadata" and not _of_iceberg(place, names):
            continue
        kind, reader = NOTES[place.name]
        raise SourceError(
            f"people would be counted several times: the folder of a {kind} table also keeps rows that were "
            "replaced or deleted",
            got=repr(shown_path(place)),
            remedy=f"Read the table as it is now, with {reader}, and give the result, or a Parquet file of "
            "it in another folder",
        )


def _of_iceberg(place: _Place, names: Callable[[_Place], list[str]]) -> bool:
    with suppress(OSError):
        return any(fnmatchcase(name, form) for name in names(place) for form in ICEBERG)
    return False

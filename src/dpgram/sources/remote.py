"""Parquet files behind addresses (s3://, gs://, hdfs://, file://, and what fsspec opens), with patterns."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from glob import has_magic
from itertools import groupby
from operator import itemgetter
from pathlib import Path, PurePosixPath
from typing import Any, final

import pyarrow as pa
import pyarrow.fs as pafs

from dpgram.errors import MissingExtra, SourceError
from dpgram.sources.base import attempt
from dpgram.sources.files import file_identity, refuse_same_file, shown_path
from dpgram.sources.lakehouse import refuse_lakehouse, refuse_remote_lakehouse

FAILURES = (pa.ArrowException, OSError, ValueError, ImportError)
SUFFIXES = (".parquet", ".parq", ".pq")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RemoteFile:
    """A file of a file system of Arrow's; both can be sent to other machines."""

    path: str
    filesystem: Any

    @property
    def name(self) -> str:
        """The last part of the path."""
        return PurePosixPath(self.path).name

    @property
    def identity(self) -> Hashable:
        """Equal for the same file; of this machine's files also under another name."""
        system, path = self.whole
        if isinstance(system, pafs.LocalFileSystem):
            return file_identity(Path(path))
        return system.type_name, path

    @property
    def whole(self) -> tuple[Any, str]:
        """The file system that is no part of another one, and the path there."""
        system, path = self.filesystem, self.path
        while isinstance(system, pafs.SubTreeFileSystem):
            system, path = system.base_fs, system.base_path + path
        return system, path

    def unreadable(self, failure: BaseException) -> SourceError:
        """An error for a file that cannot be read, without the reader's own words: they may quote a value."""
        name = shown_path(PurePosixPath(self.path))
        if isinstance(failure, FileNotFoundError):
            return SourceError(f"the file {name!r} is gone", remedy="Check that nothing moves or deletes it.")
        return SourceError(
            f"the file {name!r} cannot be read: it is damaged, cut short, or out of reach",
            got=type(failure).__name__,
            remedy="Check the address, the permissions and the network, or copy it to this machine.",
        )


def is_remote(data: object) -> bool:
    """Whether this is an address with a scheme, or a list of such."""
    if isinstance(data, list):
        return bool(data) and all(is_remote(item) for item in data)
    return isinstance(data, str) and "://" in data


def find_remote(data: str | list[str]) -> list[RemoteFile]:
    """The Parquet files that the addresses mean, in a fixed order."""
    found = [file for address in ([data] if isinstance(data, str) else data) for file in _found(address)]
    refuse_same_file((file.identity, shown_path(PurePosixPath(file.path))) for file in found)
    refuse_lakehouse_files(found)
    return found


def refuse_lakehouse_files(files: Iterable[RemoteFile]) -> None:
    """Refuse files of a table that keeps earlier versions of its rows."""
    for system, found in groupby((file.whole for file in files), key=itemgetter(0)):
        paths = {path for _, path in found}
        if isinstance(system, pafs.LocalFileSystem):
            refuse_lakehouse(map(Path, paths))
        else:
            refuse_remote_lakehouse(paths, system)


def _found(data: str) -> list[RemoteFile]:
    scheme, _, rest = data.partition("://")
    parts = rest.split("/")
    fixed = next((place for place, part in enumerate(parts) if has_magic(part)), len(parts))
    folder, pattern = "/".join(parts[:fixed]), parts[fixed:]
    filesystem, root = attempt(lambda: _file_system(f"{scheme}://{folder}"), FAILURES, _unknown(scheme))
    found = attempt(lambda: filesystem.get_file_info(root), FAILURES, _unknown(scheme))
    if found.type == pafs.FileType.File and not pattern:
        paths = [root]
    else:
        listing = pafs.FileSelector(root, recursive=True, allow_not_found=True)
        listed = attempt(lambda: filesystem.get_file_info(listing), FAILURES, _unknown(scheme))
        paths = sorted(
            info.path
            for info in listed
            if info.type == pafs.FileType.File and _wanted(info.path, root, pattern)
        )
    if not paths:
        raise SourceError(
            f"no Parquet file is found at {data!r}",
            limit=f"names ending in {', '.join(SUFFIXES)}",
            remedy="Check the address and the pattern.",
        )
    return [RemoteFile(path=path, filesystem=filesystem) for path in paths]


def _file_system(address: str) -> tuple[Any, str]:
    """Arrow's own file system for the scheme, else fsspec's."""
    try:
        filesystem, root = pafs.FileSystem.from_uri(address)
        return filesystem, root
    except pa.ArrowInvalid:
        pass  # not a scheme of Arrow's
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise MissingExtra("fsspec", "dask") from None
    opened, root = url_to_fs(address)
    return pafs.PyFileSystem(pafs.FSSpecHandler(opened)), root


def _wanted(path: str, root: str, pattern: list[str]) -> bool:
    """Whether a listed file fits the pattern; without one, whether it is Parquet and no note of a program."""
    parts = list(PurePosixPath(path).relative_to(root.rstrip("/") or "/").parts)
    if not path.lower().endswith(SUFFIXES):
        return False
    if pattern:
        return _fits(parts, pattern)
    return not any(part.startswith(("_", ".")) for part in parts)


def _fits(parts: list[str], pattern: list[str]) -> bool:
    """Part by part; ** stands for any number of folders."""
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_fits(parts[skipped:], pattern[1:]) for skipped in range(len(parts) + 1))
    return bool(parts) and fnmatchcase(parts[0], pattern[0]) and _fits(parts[1:], pattern[1:])


def _unknown(scheme: str) -> Any:
    def explain(failure: BaseException) -> SourceError:
        if isinstance(failure, ImportError):
            return SourceError(
                f"a {scheme}:// address needs a package of fsspec that is not installed",
                remedy="Install it (gcsfs for gcs://, adlfs for az://), or copy the files to this machine.",
            )
        return SourceError(
            f"the {scheme}:// address cannot be opened",
            got=type(failure).__name__,
            limit="schemes of Arrow (file, s3, gs, hdfs, abfss) and of fsspec, where it is installed",
            remedy="Check the address, the permissions and the network.",
        )

    return explain

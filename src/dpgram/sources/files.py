"""Paths, folders, globs and lists of them → the files of one table, and the errors of files."""

from __future__ import annotations

import contextlib
import glob
import itertools
import os
from collections.abc import Callable, Hashable, Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any, Literal

from dpgram.errors import SourceError
from dpgram.files import opened

Format = Literal["parquet", "delimited", "json lines", "arrow", "statistical", "workbook"]

_PACKED = ("", ".gz", ".zst", ".zip")
SUFFIXES: dict[str, Format] = {
    **dict.fromkeys((".parquet", ".parq", ".pq"), "parquet"),
    **{ending + packed: "delimited" for ending in (".csv", ".tsv", ".tab", ".txt") for packed in _PACKED},
    **{ending + packed: "json lines" for ending in (".jsonl", ".ndjson") for packed in _PACKED},
    **dict.fromkeys((".arrow", ".feather", ".ipc"), "arrow"),
    **dict.fromkeys((".dta", ".sav", ".zsav", ".por", ".sas7bdat", ".xpt"), "statistical"),
    **dict.fromkeys((".xlsx", ".xlsm", ".xlsb", ".xls", ".ods"), "workbook"),
}
"""Ends of names. Text may be packed: .csv.gz, .jsonl.zst."""


def find_files(data: str | Path | list[Any]) -> tuple[list[Path], Format, str]:
    """The files that `data` means, in a fixed order, with their common format and a label for the screen."""
    if isinstance(data, list) and not all(isinstance(item, str | Path) for item in data):
        raise SourceError(
            "a list must hold paths of files",
            got=", ".join(sorted({type(item).__name__ for item in data})),
            remedy="For rows or columns of values, give a dict of arrays or a data frame.",
        )
    if isinstance(data, str | Path):
        paths = _expand(data)
        label = str(data)
    else:
        paths = [path for item in data for path in _expand(item)]
        label = f"{len(paths)} files"
    if not paths:
        raise SourceError("the list of files is empty", remedy="Name at least one file.")
    refuse_same_path(paths)
    formats = {file_format(path) for path in paths}
    if len(formats) > 1:
        raise SourceError(
            "the files are of several formats",
            got=", ".join(sorted(formats)),
            remedy="Read one format at a time.",
        )
    return paths, formats.pop(), label


def refuse_same_file(files: Iterable[tuple[Hashable, str]]) -> None:
    """No file may be there twice, by whatever name: all its rows would count twice, beyond the promise."""
    seen: dict[Hashable, str] = {}
    for identity, name in files:
        if identity in seen:
            both = f"{seen[identity]!r} and {name!r}, which are one file"
            raise SourceError(
                "the same rows would be counted twice",
                got=f"{name!r} twice" if seen[identity] == name else both,
                remedy="Name every file once: a pattern or folder may hold it already, or a link to it.",
            )
        seen[identity] = name


def refuse_same_path(paths: Iterable[Path]) -> None:
    """The same of files of this machine."""
    refuse_same_file((file_identity(path), shown_path(path)) for path in paths)


def file_identity(path: Path) -> Hashable:
    """Equal for two names of one file, be they links or other ways to write a path."""
    try:
        found = path.stat()
    except (OSError, ValueError):
        found = None
    # Some file systems number nothing.
    return (found.st_dev, found.st_ino) if found is not None and found.st_ino else os.path.realpath(path)


def file_format(path: Path) -> Format:
    """The format by the end of the name: contents are never guessed at."""
    name = path.name.lower()
    for suffix, found in SUFFIXES.items():
        if name.endswith(suffix):
            return found
    raise SourceError(
        f"the format of the file {path.name!r} is not known",
        limit=f"names ending in {', '.join(end for end in SUFFIXES if end.count('.') == 1)} "
        "(text also packed, as .csv.gz, .zst or .zip)",
        remedy=_other_form(path),
    )


def _other_form(path: Path) -> str:
    end = path.suffix.lower()
    if end in _PACKED[1:]:
        return f"Say in its name what is packed: {path.stem}.csv{end}, if it is a CSV file."
    if end in (".sqlite", ".sqlite3", ".db", ".duckdb"):
        return "A database needs a query: --query, `query` in a job file, in Python a pair (file, query)."
    return "Convert it to Parquet, or read it by DuckDB or Polars and give the result."


def files_named(data: str | Path | Sequence[str | Path]) -> list[Path]:
    """The files that are there of those that `data` means; none for what is no file."""
    found: list[Path] = []
    for item in [data] if isinstance(data, str | Path) else data:
        with contextlib.suppress(SourceError):
            found += _expand(item)
    return found


def _expand(data: str | Path) -> list[Path]:
    text = str(data)
    path = Path(text)
    if path.is_dir():
        return _parquet_files(path)
    if path.exists():
        return [path]
    if glob.has_magic(text):
        found = _matching(path)
        if not found:
            raise SourceError(f"no file matches {text!r}", remedy="Check the pattern and the working folder.")
        return found
    raise SourceError(f"there is no file or folder {text!r}", remedy="Check the path and the working folder.")


def _matching(pattern: Path) -> list[Path]:
    fixed = list(itertools.takewhile(lambda part: not glob.has_magic(part), pattern.parts))
    root, rest = Path(*fixed), str(Path(*pattern.parts[len(fixed) :]))
    return sorted(path for path in root.glob(rest) if path.is_file() and not path.name.startswith("."))


def _parquet_files(folder: Path) -> list[Path]:
    """All Parquet files below a folder; names that begin with _ or . are notes of other programs."""
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file()
        and path.name.lower().endswith((".parquet", ".parq", ".pq"))
        and not any(part.startswith(("_", ".")) for part in path.relative_to(folder).parts)
    )
    if not found:
        raise SourceError(
            f"the folder {str(folder)!r} holds no Parquet file",
            limit="files ending in .parquet, .parq or .pq",
            remedy='For CSV files, give a pattern in quotes, such as "folder/*.csv".',
        )
    return found


def shown_path(path: PurePath) -> str:
    """A path for messages: of a folder key=value the key, for the value is a cell of all rows below it."""
    folders = [f"{part.partition('=')[0]}=…" if "=" in part else part for part in path.parent.parts]
    return str(type(path)(*folders, path.name))


def _closed(path: Path) -> bool:
    """Whether the system refuses to open it: not every reader says why it failed."""
    try:
        with opened(path):
            return False
    except PermissionError:
        return True
    except OSError:
        return False


def unreadable(path: Path) -> Callable[[BaseException], SourceError]:
    """An error for a file that cannot be read; without the reader's own words, which may quote a value."""

    def explain(failure: BaseException) -> SourceError:
        if isinstance(failure, FileNotFoundError):
            return SourceError(
                f"the file {shown_path(path)!r} is gone", remedy="Check that nothing moves or deletes it."
            )
        if isinstance(failure, PermissionError) or _closed(path):
            return SourceError(
                f"the file {shown_path(path)!r} may not be read", remedy="Check the permissions of the file."
            )
        if path.is_file() and path.stat().st_size == 0:
            return SourceError(
                f"the file {shown_path(path)!r} is empty: it does not even have column names",
                got="0 bytes",
                remedy="Write it again, or take it out of the list.",
            )
        return SourceError(
            f"the file {shown_path(path)!r} cannot be read: it is damaged, cut short, or not what its name "
            "says",
            got=type(failure).__name__,
            remedy="Write it again, or copy it again from where it came.",
        )

    return explain

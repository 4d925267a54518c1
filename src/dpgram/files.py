"""Files written whole or not at all; some for their owner's eyes only (partial sums, signing keys)."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import re
import stat
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from dpgram.canonical_json import canonical_bytes, parse_strictly
from dpgram.errors import DpgramError, ReleaseError

LARGEST_FILE: Final = 1 << 26
"""Bytes of a release, and of a line of a series: the widest have a million numbers."""
AFTER_TEXT: Final = 65
"""A space and the digest, in hexadecimal, that follow the JSON of a line."""
LEDGER: Final = 0x6470676C
"""The application in the header of a ledger, which is a file of SQLite: "dpgl"."""
_BESIDE_A_LEDGER: Final = re.compile(r"(.+?)(?:-journal|-wal|-shm|\.unfinished-.+)", re.DOTALL)
"""Names beside a ledger that SQLite and a publication write to."""


def write_new(path: Path, content: bytes) -> None:
    """All of `content` in a new file that nobody else could open at any moment, or no file at all.

    It is made with the mode 0600, not changed to it, and replaces nothing (`FileExistsError`).
    """
    refuse_ledger(path)
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
    except BaseException:
        # Half a file helps nobody, may hold secrets, and would be in the way of the next try.
        path.unlink(missing_ok=True)
        raise


def _named_anew(temporary: Path, target: Path) -> None:
    """Give the file its name unless that is taken, in one step where the file system can."""
    try:
        os.link(temporary, target)
    except FileExistsError:
        raise
    except OSError as problem:  # a file system without links
        if target.exists():
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(target)) from problem
        temporary.replace(target)
    else:
        temporary.unlink()


def _new_beside(target: Path) -> tuple[int, Path]:
    """A file that is not there yet, in the same folder."""
    number = 0
    while True:
        path = target.with_name(f".{target.name}.{os.getpid()}-{number}")
        try:
            return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666), path
        except FileExistsError:  # another thread's, or left by a process that was killed
            number += 1


def write_whole(target: Path, content: bytes, *, replace: bool = True) -> None:
    """All of `content` in place of what `target` was: a temporary file beside it, flushed, then renamed.

    Who may read it is for the system's own rule to say (umask). With `replace=False` a file that is there is
    left alone (`FileExistsError`). Nothing takes the place of a ledger.
    """
    refuse_ledger(target)
    handle, temporary = _new_beside(target)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if replace:
            temporary.replace(target)
        else:
            _named_anew(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    if os.name == "posix":
        # The new name too must outlive a power cut; a file system that cannot promise it has the file anyway.
        with contextlib.suppress(OSError):
            sync_folder(target)


def written(
    path: str | os.PathLike[str],
    content: bytes,
    *,
    overwrite: bool = False,
    what: str = "file",
    comfort: str = "",
) -> Path:
    """`write_whole` for a file that somebody asked for: one message where that fails, ending in `comfort`.

    A file that is there is replaced with `overwrite` alone; one with this very content is no mistake.
    """
    target = Path(path)
    if os.path.isdir(target):  # noqa: PTH112  (False too where it cannot be looked at)
        raise ReleaseError(
            f"the {what} cannot be written to {target}: it is a folder", remedy=f"Name a file in it{comfort}"
        )
    try:
        write_whole(target, content, replace=overwrite)
    except FileExistsError:
        if not _holds(target, content):
            raise ReleaseError(
                f"the file {target} exists already, and holds something else",
                remedy=f"Choose another name, or give overwrite=True{comfort}",
            ) from None
    except OSError as problem:
        raise ReleaseError(
            f"the {what} cannot be written to {target}",
            got=problem.strerror or type(problem).__name__,
            remedy=f"Choose a folder that exists and may be written{comfort}",
        ) from problem
    return target


def _holds(path: Path, content: bytes) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(len(content) + 1) == content
    except OSError:
        return False


def refuse_ledger(target: Path) -> None:
    """A ledger is never replaced, and nothing else is written where it, or what it paid for, is kept."""
    beside = _BESIDE_A_LEDGER.fullmatch(target.name)
    if _is_ledger(target):
        raise ReleaseError(
            f"{target} is a ledger: it knows what was spent, and nothing takes its place",
            remedy="Choose another name for what is written",
        )
    if beside is not None and _is_ledger(target.with_name(beside[1])):
        raise ReleaseError(
            f"{target} has a name that the ledger {beside[1]} needs for files of its own",
            remedy="Choose another name for what is written",
        )


def _is_ledger(path: Path) -> bool:
    if not os.path.isfile(path):  # noqa: PTH113  (False too where no file can have such a name)
        return False
    import sqlite3

    # By SQLite alone: to close a ledger that was opened otherwise would drop the locks of other threads.
    try:
        with contextlib.closing(
            sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)
        ) as connection:
            return bool(connection.execute("PRAGMA application_id").fetchone() == (LEDGER,))
    except sqlite3.Error:  # any other file
        return False


def same_as(output: Path, inputs: Iterable[Path]) -> Path | None:
    """The first input that the output would replace, under whatever name; of both, none need exist."""
    return next((each for each in inputs if _same(output, each)), None)


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except FileNotFoundError:
        return os.path.realpath(one) == os.path.realpath(other)
    except (OSError, ValueError):  # it cannot be looked at, or no file can have such a name
        return False


@contextlib.contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A file that is there, to be read; OSError for a path that can be none, a pipe or a device."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # waits for no pipe
    try:
        handle = os.open(path, flags)
    except ValueError as problem:  # NUL, or half a surrogate pair
        raise OSError(errno.EINVAL, "no file can have such a name") from problem
    with os.fdopen(handle, "rb") as stream:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        if not stat.S_ISREG(mode):
            raise OSError(errno.EINVAL, "it is a pipe or a device, not a file")
        yield stream


def read_whole(path: Path, most: int) -> bytes:
    """All of a file that somebody names; OSError where it has more than `most` bytes or is none."""
    with opened(path) as stream:
        if size_of(stream) > most:
            raise OSError(errno.EFBIG, f"more than {most:,} bytes")
        return stream.read()


def size_of(stream: BinaryIO) -> int:
    """Bytes of an open file."""
    return os.fstat(stream.fileno()).st_size


def open_own(path: Path, flags: int) -> int:
    """A file of ours under a name that others can guess: through no link, and its owner's alone.

    Refused before anything is read of it or written to it. Windows has neither owners nor modes like these.
    """
    safe = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
    try:
        handle = os.open(path, flags | safe, 0o600)
    except OSError as problem:
        if problem.errno in {errno.ELOOP, errno.EISDIR}:
            raise _foreign(path, "a link" if problem.errno == errno.ELOOP else "a folder") from problem
        raise
    status = os.fstat(handle)
    found = None
    if not stat.S_ISREG(status.st_mode):
        found = "no regular file"
    elif os.name == "posix":
        if status.st_uid != os.geteuid():
            found = "a file of another user"
        elif status.st_nlink > 1:
            found = "a file with a second name (a hard link)"
        elif status.st_mode & 0o077:
            found = f"mode {status.st_mode & 0o777:o}"
    if found is not None:
        os.close(handle)
        raise _foreign(path, found)
    return handle


def _foreign(path: Path, found: str) -> DpgramError:
    return DpgramError(
        f"{path.name} must be a file that its owner alone may open, under one name",
        got=found,
        limit="a regular file of this user, mode 600",
        remedy=f"Find out who put it there. If it is yours: chmod 600 {path.name}"
        if found.startswith("mode")
        else "Find out who put it there, and remove it",
    )


def append_line(handle: int, line: Mapping[str, object]) -> None:
    """One line of JSON with its own digest, durable when this returns."""
    append(handle, line_of(canonical_bytes(line)))


def line_of(text: bytes) -> bytes:
    """JSON, a space, its SHA-256 and the end of the line."""
    return text + b" " + hashlib.sha256(text).hexdigest().encode() + b"\n"


def append(handle: int, content: bytes) -> None:
    """All of `content`, durable when this returns."""
    left = memoryview(content)
    with durably():
        while left:  # a disk that is nearly full takes a part, and raises for the rest
            left = left[os.write(handle, left) :]
        os.fsync(handle)


@contextlib.contextmanager
def durably(*, charged: bool = True) -> Iterator[None]:
    """Around what must be on the disk before a publication goes on: one message where the disk fails.

    With `charged=False` nothing can have been charged before.
    """
    try:
        yield
    except OSError as problem:
        refused = isinstance(problem, PermissionError) or problem.errno == errno.EROFS
        mend = (
            "Check the permissions of this file and its folder" if refused else "Make room, or mend the disk"
        )
        got = problem.strerror or type(problem).__name__
        raise DpgramError(
            "what a publication must keep cannot be written to the disk",
            got=got if problem.filename is None else f"{problem.filename}: {got}",
            remedy=f"{mend}, and repeat the call"
            + (": what was paid for is not charged again" if charged else ". Nothing was spent"),
        ) from problem


def whole_lines(handle: int) -> tuple[list[dict[str, Any]], int]:
    """All whole lines that `append_line` wrote, and where they end: a torn last one was never acted upon."""
    texts, end = whole_texts(content_of(handle))
    return [json_object(text) for text in texts], end


def whole_texts(content: bytes) -> tuple[list[memoryview], int]:
    """The JSON of all whole lines up to the first that is not, and where they end."""
    texts: list[memoryview] = []
    view, end = memoryview(content), 0
    while (stop := content.find(b"\n", end)) >= 0:
        text = text_of(view[end:stop])
        if text is None:
            break
        texts.append(text)
        end = stop + 1
    return texts, end


def text_of(line: memoryview) -> memoryview | None:
    """The JSON of a line without its end; None where that does not match its digest."""
    end = max(len(line) - AFTER_TEXT, 0)
    text = line[:end]
    return text if line[end:] == b" " + hashlib.sha256(text).hexdigest().encode() else None


def json_object(text: memoryview) -> dict[str, Any]:
    """What `append_line` was given."""
    found = parse_strictly(bytes(text))
    if not isinstance(found, dict):
        raise TypeError(type(found).__name__)
    return found


def content_of(handle: int) -> bytes:
    """Everything in an open file, from its beginning."""
    os.lseek(handle, 0, os.SEEK_SET)
    with os.fdopen(os.dup(handle), "rb") as stream:
        return stream.read()


def is_at(handle: int, path: Path) -> bool:
    """Whether the open file is the one that has this name now: it may have been removed or replaced."""
    try:
        return os.path.samestat(os.fstat(handle), path.lstat())
    except FileNotFoundError:
        return False


def sync_folder(path: Path) -> None:
    """The name of a new file too must outlive a power cut."""
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)

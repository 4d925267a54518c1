"""Files written whole or not at all; some for their owner's eyes only (partial sums, signing keys)."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path


def write_new(path: Path, content: bytes) -> None:
    """All of `content` in a new file that nobody else could open at any moment, or no file at all.

    It is made with the mode 0600, not changed to it, and replaces nothing (`FileExistsError`).
    """
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


def write_whole(target: Path, content: bytes, *, replace: bool = True) -> None:
    """All of `content` in place of what `target` was: a temporary file beside it, flushed, then renamed.

    With `replace=False` a file that is there is left alone (`FileExistsError`).
    """
    handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    temporary = Path(name)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        temporary.chmod(0o644)
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
            folder = os.open(target.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)

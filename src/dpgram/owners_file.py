"""Files for their owner's eyes only: partial sums and signing keys."""

from __future__ import annotations

import os
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

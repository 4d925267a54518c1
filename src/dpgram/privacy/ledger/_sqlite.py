"""SQLite as a ledger uses it: durable transactions, patient locks, and faults told in plain words.

Nothing stays open between two operations: each opens its own connection, which makes the file safe to share
among threads, forks and processes, and notices a file that was swapped. Nobody may open the file by other
means than SQLite: closing any descriptor of it would drop the locks another thread of the process holds.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from dpgram.errors import LedgerError

ALTERED: Final = "Put back the newest copy you trust and compare it with your releases (ledger verify)"
"""What to do with a file that cannot be trusted."""
_NOTHING: Final = "Nothing was spent"
_FAULTS: Final = {
    sqlite3.SQLITE_READONLY_DBMOVED: (
        "the ledger file was moved or replaced while it was in use",
        f"Put the right file back. {_NOTHING}",
    ),
    sqlite3.SQLITE_BUSY: (
        "other processes kept the ledger locked for too long",
        f"Try again later. {_NOTHING}",
    ),
    sqlite3.SQLITE_LOCKED: (
        "other processes kept the ledger locked for too long",
        f"Try again later. {_NOTHING}",
    ),
    sqlite3.SQLITE_READONLY: (
        "the ledger cannot be written: the file, its folder or the disk is read-only",
        f"Charge it where it can be written. {_NOTHING}",
    ),
    sqlite3.SQLITE_FULL: ("the disk is full", f"Make room. {_NOTHING}"),
    sqlite3.SQLITE_CANTOPEN: (
        "the ledger or its journal cannot be opened",
        f"Check the permissions of the file and its folder. {_NOTHING}",
    ),
    sqlite3.SQLITE_PERM: (
        "there is no permission to open the ledger",
        f"Check the permissions of the file. {_NOTHING}",
    ),
    sqlite3.SQLITE_NOTADB: ("this file is not a dpgram ledger, or its beginning is damaged", ALTERED),
    sqlite3.SQLITE_CORRUPT: ("the ledger is damaged or truncated", ALTERED),
    sqlite3.SQLITE_IOERR: (
        "the disk failed while the ledger was in use",
        "Look at its history before trying again: a charge that is there stays spent",
    ),
}


def query(connection: sqlite3.Connection, sql: str, values: Sequence[object] = ()) -> list[tuple[Any, ...]]:
    return connection.execute(sql, values).fetchall()


@contextmanager
def connected(path: Path, timeout: float) -> Iterator[sqlite3.Connection]:
    """A connection that never creates a file, waits for others, and reports faults in plain words."""
    _check_path(path)
    with _plain_words(path):
        connection = sqlite3.connect(
            f"{path.as_uri()}?mode=rw", uri=True, timeout=timeout, isolation_level=None
        )
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            connection.execute("PRAGMA cell_size_check = ON")
            connection.execute("PRAGMA synchronous = EXTRA")
            connection.execute("PRAGMA fullfsync = ON")
            yield connection
        finally:
            connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection, path: Path) -> Iterator[None]:
    """BEGIN IMMEDIATE … COMMIT: wholly there or wholly absent, and nothing between check and write."""
    (mode,) = query(connection, "PRAGMA journal_mode = DELETE")[0]
    if mode != "delete":
        # A copy of a write-ahead-logged file can lack its newest charges.
        raise LedgerError(f"the ledger {path} is in journal mode {mode}", limit="delete")
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")
        raise


@contextmanager
def snapshot(connection: sqlite3.Connection) -> Iterator[None]:
    """All reads see one state of the file."""
    connection.execute("BEGIN")
    try:
        yield
    finally:
        with suppress(sqlite3.Error):
            connection.execute("ROLLBACK")


def identity(path: Path) -> tuple[int, int]:
    """Which file lies at `path`, and that it lies nowhere else."""
    _check_path(path)
    status = path.stat()
    if status.st_nlink > 1:
        # After a crash SQLite looks for the journal beside the name it was opened by.
        raise LedgerError(
            "the ledger file has a second name (a hard link), under which a charge could be undone",
            got=str(path),
            remedy="Copy the file instead of linking it. Nothing was spent",
        )
    return status.st_dev, status.st_ino


def _check_path(path: Path) -> None:
    try:
        path.stat()
    except (OSError, ValueError) as error:  # ValueError: NUL, or half a surrogate pair
        reason = getattr(error, "strerror", None) or "no file can have such a name"
        raise LedgerError(
            "there is no ledger here",
            got=f"{path}: {reason}",
            remedy="Check the path, or make one with Ledger.create",
        ) from error
    if not path.is_file():
        raise LedgerError("this is not a dpgram ledger but a folder or device", got=str(path))


def sync_folder(folder: Path) -> None:
    """Make the new name itself durable. Windows has no such thing and needs none."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _plain_words(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ours."""
    try:
        yield
    except (sqlite3.Error, UnicodeDecodeError) as error:
        # A damaged name makes SQLite's own message undecodable.
        code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR)
        # The low byte is the kind of fault; the rest of the code narrows it down.
        what, remedy = _FAULTS.get(code) or _FAULTS.get(code & 0xFF) or ("the ledger failed", ALTERED)
        raise LedgerError(what, got=f"{path}: {error}", remedy=remedy) from error

"""What was drawn so far, on disk until the release is safe: a repeated call goes on from here.

One file beside the ledger, for its owner's eyes only, named after what was asked for. It is written before
the charge, so that a charge can be found again by its number, and after every stage; each line carries its
own digest, and a torn last line was never acted upon. It holds noisy, paid-for results and no secret of the
table, but nobody should see a release before its curator does. While a publication runs, it holds a lock on
its file; a second one with the same options at the same time takes another. What was paid for before is drawn
`once`: there a second one is refused, and any version of the library goes on with the first.
"""

from __future__ import annotations

import contextlib
import glob
import hashlib
import os
from collections.abc import Iterator, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, Final, final

import msgspec
from msgspec import Meta, Struct

from dpgram.canonical_json import sha256_hex
from dpgram.core.noise import SystemEntropy
from dpgram.errors import DpgramError, ReleaseError
from dpgram.files import append_line, durably, is_at, open_own, sync_folder, whole_lines

try:
    import fcntl
except ImportError:  # no such locks on this system: publications cannot be taken up again there
    fcntl = None  # type: ignore[assignment]

FORMAT: Final = "dpgram-unfinished/1"
_MOST_AT_ONCE: Final = 10_000
"""Publications with the same options at the same time."""


@final
class _Head(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line: whose file this is."""

    format: str
    request: str
    id: Annotated[str, Meta(pattern=r"\A[0-9a-f]{32}\Z")]


@final
class Kept(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one stage has drawn, as plain values."""

    published: list[Any]
    public_rows: Annotated[int, Meta(ge=0)] | None


@final
class _Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    stage: int
    kept: Kept


@final
class _Found(Struct, frozen=True):
    """What a file of this request says, and where its last whole line ends."""

    id: str
    stages: dict[int, Kept]
    end: int


def _unusable(path: Path, problem: Exception | None = None) -> DpgramError:
    known = problem.what if isinstance(problem, DpgramError) else type(problem).__name__
    return DpgramError(
        f"{path.name} does not hold what an interrupted publication has drawn: it was damaged or edited, or "
        "this is a bug",
        got=None if problem is None else known,
        remedy=f"Find out what happened to {path}: no copy can take its place. Once it is removed, what was "
        "drawn is lost, and what was paid for it with it",
    )


@contextlib.contextmanager
def read_back(path: Path) -> Iterator[None]:
    """Around whatever takes up what a journal holds: one message where it has another form."""
    try:
        yield
    # Those of msgspec are ValueErrors; a ReleaseError finds it when the release is put together.
    except (ReleaseError, ValueError, TypeError, LookupError, ArithmeticError, AttributeError) as problem:
        raise _unusable(path, problem) from problem


@contextlib.contextmanager
def read_back_once(beside: Path, request: Mapping[str, object]) -> Iterator[None]:
    """The same around what `drawn_once` gave."""
    with read_back(_place(beside, _key(request, once=True))):
        yield


def _found(path: Path, handle: int, key: str) -> _Found | None:
    """None for an empty file, a torn first line and another request: that is no publication to go on with."""
    with read_back(path):
        lines, end = whole_lines(handle)
        if not lines:
            return None
        head = msgspec.convert(lines[0], _Head)
        if head.format != FORMAT or head.request != key:
            return None
        stages = [msgspec.convert(line, _Line) for line in lines[1:]]
    # A stage that is missing would be drawn a second time, and without a charge.
    if [line.stage for line in stages] != list(range(len(stages))):
        raise _unusable(path)
    return _Found(head.id, {line.stage: line.kept for line in stages}, end)


def interrupted_before(ledger: Path, request: Mapping[str, object]) -> bool:
    """Whether a publication with this request has begun, is not running now, and waits to be gone on with."""
    key = _key(request, once=False)
    return any(_waiting(path, key) is not None for path in _beside(ledger, key))


def drawn_once(beside: Path, request: Mapping[str, object]) -> dict[int, Kept] | None:
    """What was drawn by stages of a publication that waits to be gone on with; None where there is none.

    One that is running is refused.
    """
    key = _key(request, once=True)
    for path in _beside(beside, key):
        found = _waiting(path, key, once=True)
        if found is not None:
            return found.stages
    return None


def forget_once(beside: Path, request: Mapping[str, object]) -> None:
    """What this request has drawn is safe elsewhere: nothing is to be taken up again.

    One that is running is left alone: it ends by itself.
    """
    for path in _beside(beside, _key(request, once=True)):
        handle = _locked(path)
        if handle is not None:
            path.unlink(missing_ok=True)
            os.close(handle)


def _beside(ledger: Path, key: str) -> list[Path]:
    return list(ledger.parent.glob(f"{glob.escape(ledger.name)}.unfinished-{key[:16]}*"))


def _place(ledger: Path, key: str, number: int = 0) -> Path:
    return ledger.with_name(f"{ledger.name}.unfinished-{key[:16]}" + (f"-{number}" if number else ""))


def _waiting(path: Path, key: str, *, once: bool = False) -> _Found | None:
    """A publication that has begun and is not running; None where the file is not of one."""
    try:
        handle = open_own(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        if fcntl is not None:
            fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return _found(path, handle, key)
    except BlockingIOError:  # it is running
        if once:
            raise _running() from None
        return None
    finally:
        os.close(handle)


def _running() -> DpgramError:
    return DpgramError("this period is being published", remedy="Wait for it, and try again")


def _key(request: Mapping[str, object], once: bool) -> str:
    library = {} if once else {"library": version("dpgram")}
    return sha256_hex({**library, "request": dict(request)})


@contextlib.contextmanager
def open_journal(ledger: Path, request: Mapping[str, object], *, once: bool = False) -> Iterator[Journal]:
    """The journal of an interrupted publication with the same request, or a new one.

    Another version of the library begins anew, at a charge of its own; what is drawn `once` it goes on with,
    and nobody draws it beside one that is running.
    """
    # Without locks nobody could tell an interrupted publication from one that is running.
    key = _key(request, once) if fcntl is not None else SystemEntropy().random_bytes(32).hex()
    for number in range(_MOST_AT_ONCE):
        path = _place(ledger, key, number)
        with durably(charged=os.path.lexists(path)):  # (False too in a folder that is closed)
            handle = _locked(path)
        if handle is None and once:
            raise _running()
        if handle is None:
            continue
        try:
            yield Journal(path, handle, key)
        finally:
            os.close(handle)  # and with it the lock
        return
    raise DpgramError("too many publications with the same options at once", limit=f"{_MOST_AT_ONCE}")


def _locked(path: Path) -> int | None:
    """The file, opened and locked for this publication alone; None where another one holds it."""
    while True:
        handle = open_own(path, os.O_RDWR | os.O_CREAT)
        try:
            if fcntl is not None:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if is_at(handle, path):
                return handle
        except BlockingIOError:
            os.close(handle)
            return None
        except BaseException:
            os.close(handle)
            raise
        os.close(handle)  # it was finished and removed between opening and locking


@final
class Journal:
    """One publication's results so far. Not for callers: use `open_journal`.

    Proof: proofs/measurements.md#measurements-resume.
    """

    def __init__(self, path: Path, handle: int, key: str) -> None:
        self.path, self._handle = path, handle
        found = _found(path, handle, key)
        self.resumed = found is not None
        if found is not None:
            self._id, self._stages = found.id, dict(found.stages)
            with durably():
                os.ftruncate(handle, found.end)
                os.lseek(handle, found.end, os.SEEK_SET)
            return
        self._id, self._stages = SystemEntropy().random_bytes(16).hex(), {}
        with durably():
            os.ftruncate(handle, 0)
            os.lseek(handle, 0, os.SEEK_SET)
            append_line(handle, {"format": FORMAT, "request": key, "id": self._id})
            sync_folder(path)

    def kept(self, stage: int) -> Kept | None:
        """What an earlier run drew in this stage."""
        return self._stages.get(stage)

    def keep(self, stage: int, result: Kept) -> None:
        """Durable when this returns."""
        self._stages[stage] = result
        append_line(self._handle, msgspec.to_builtins(_Line(stage=stage, kept=result)))

    def refuse_unpaid(self) -> None:
        """A draw is kept after its charge alone: no interrupted publication leaves such a file."""
        if self._stages:
            raise DpgramError(
                f"{self.path.name} holds results that no charge of this ledger has paid for, which no "
                "interrupted publication leaves",
                remedy="Find out who put it there, or whether an old copy of the ledger was put back. Once "
                "it is removed, the same call is a new publication. Nothing was spent",
            )

    def is_over(self, entry: int) -> DpgramError:
        """Its charge was closed: a copy that was put back, or what a crash has left at the very end."""
        return DpgramError(
            f"{self.path.name} is of a publication that is over: entry {entry} of the ledger, which paid for "
            "it, was closed",
            remedy="Remove it: the same call is then a new publication, with a charge of its own. Nothing "
            "was spent",
        )

    @property
    def receipt_id(self) -> str:
        """The number of the charge of this publication: the same in every run of it."""
        return hashlib.sha256(f"{self._id} charge 0".encode()).hexdigest()[:32]

    def finish(self) -> None:
        """The release is safe, or will never be: nothing is to be taken up again."""
        # A disk that cannot even forget must not cost the release: the same call would give it again.
        with contextlib.suppress(OSError):
            os.ftruncate(self._handle, 0)
            self.path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def dropped_on_error(self) -> Iterator[None]:
        """Nothing was charged yet: where this fails, nothing is to be taken up again."""
        try:
            yield
        except DpgramError:
            self.finish()
            raise

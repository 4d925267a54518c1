"""What the curator of a series must keep: exact sums of past periods and who was in them. NOT PRIVATE.

Later periods are made of the exact sums of earlier ones, and a person may count in so many periods only. Both
are kept in one file for its owner's eyes, as secret as the table: a line of JSON, then records that are only
ever added. The sums of a period are written before its noise is drawn; the last record of it counts. Beside
them stands a copy of the public file, so that nobody can put another one in its place.
"""

from __future__ import annotations

import contextlib
import mmap
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, Literal, final

import msgspec
from msgspec import Meta, Struct

from dpgram.core.noise import SystemEntropy
from dpgram.errors import DpgramError
from dpgram.files import (
    append,
    append_line,
    content_of,
    is_at,
    json_object,
    open_own,
    sync_folder,
    text_of,
    whole_texts,
)
from dpgram.rows.participation import KEY_BYTES, NOBODY, Hashes
from dpgram.series._check import Check
from dpgram.series._numbers import Numbers
from dpgram.series._records import (
    Content,
    KeptFile,
    KeptPeriod,
    Seal,
    file_record,
    period_record,
    records,
    seal_record,
    sealed,
)

try:
    import fcntl
except ImportError:  # no such locks on this system: no series is made there
    fcntl = None  # type: ignore[assignment]

FORMAT: Final = "dpgram-series-secret/1"
WARNING: Final = "NOT PRIVATE: exact sums of the table and who is in it. Never publish, never send."

_FIRST: Final = b'{"charge":'
"""How the head of the file begins."""


@final
class _Head(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The first line of the file."""

    format: Literal["dpgram-series-secret/1"]
    warning: str
    series: str
    head: str
    """The digest of the first line of the public file: the terms of every draw."""
    key: Annotated[str, Meta(pattern=rf"\A[0-9a-f]{{{2 * KEY_BYTES}}}\Z")]
    charge: Annotated[str, Meta(pattern=r"\A[^\0]*\Z")]
    """The file by which the charge would be found again."""


def _head_of(text: memoryview | None) -> _Head | None:
    """What a first line says; None where it is none."""
    if text is None:
        return None
    try:
        return msgspec.convert(json_object(text), _Head)
    except (msgspec.ValidationError, ValueError, TypeError):
        return None


@final
class Secret:
    """The curator's file of a series, open and locked: nobody else publishes a period meanwhile."""

    def __init__(self, path: Path, handle: int, series: str) -> None:
        self.path, self._handle = path, handle
        content = _mapped(handle)
        end = content.find(b"\n") + 1
        head = _head_of(text_of(memoryview(content)[: max(end - 1, 0)]))
        if head is None or head.series != series:
            raise DpgramError(
                f"{path.name} does not belong to this series",
                remedy="Put the right file back, or restore it from kept tables: Series.restore",
            )
        self.key, self.head_digest = bytes.fromhex(head.key), head.head
        self._charge = head.charge
        self._kept: dict[int, KeptPeriod] = {}
        self._files: dict[int, KeptFile] = {}
        self._check = Check()
        """Of everything in the file."""
        found = sealed(content, end, self._check)
        self._end = len(content) if found is not None else self._read(content, end)
        _sort_in(found or (), self._kept, self._files)
        os.lseek(handle, self._end, os.SEEK_SET)

    def _read(self, content: Content, end: int) -> int:
        """Record by record behind the head, and where they end: a torn one is cut off."""
        for number, read in enumerate(records(content, end), start=1):
            if read.torn:  # nobody has acted upon it
                break
            if read.found is None:
                raise DpgramError(
                    f"record {number} of {self.path.name} does not match its digest or its form",
                    remedy="Put a good copy back, or restore it from kept tables: Series.restore",
                )
            _sort_in([read.found], self._kept, self._files)
            end = read.end
        os.ftruncate(self._handle, end)
        self._check = Check()
        self._check.update(memoryview(content)[:end])
        return end

    def settle(self) -> None:
        """The charge has its series: from now on nobody may take it up again for another one."""
        if not self._charge:
            return
        try:
            Path(self._charge).unlink(missing_ok=True)
        except OSError as problem:
            raise DpgramError(
                "the file by which the charge of this series could be taken up again cannot be removed",
                got=problem.strerror or type(problem).__name__,
                remedy=f"Remove {self._charge}, or restore {self.path.name}: Series.restore",
            ) from problem

    def begun(self, number: int) -> str | None:
        """The label under which this period was begun."""
        kept = self._kept.get(number)
        return None if kept is None else kept.label

    def stages(self, number: int) -> int:
        """How many stages of this period had begun when it was last kept."""
        kept = self._kept.get(number)
        return 0 if kept is None else kept.stages

    def labels(self, count: int) -> list[str]:
        """What the first periods are called."""
        return [self._label(number) for number in range(1, count + 1)]

    def _label(self, number: int) -> str:
        label = self.begun(number)
        if label is None:
            raise self._lacks(number)
        return label

    def has_seen(self, public: bytes, number: int) -> bool:
        """Whether this is the public file up to and with this period, byte by byte."""
        if number not in self._files:
            raise self._lacks(number)
        end = 0
        for _, file in sorted(self._files.items()):
            if file.number <= number:
                if not public.startswith(bytes(file.line), end):
                    return False
                end += len(file.line)
        return end == len(public)

    def refuse_sizes(self, *, sums: int, numbers: int | None) -> None:
        """Of every period as many sums and numbers are kept as the public file has of the first, or none."""
        for kept in self._kept.values():
            if len(kept.sums) not in (0, sums):
                raise self._lacks(kept.number)
        for file in self._files.values():
            if numbers is not None and file.numbers is not None and len(file.numbers) != numbers:
                raise self._lacks(file.number)

    def numbers(self, count: int) -> list[Numbers | None]:
        """What is added up of the first periods, as far as it was kept: copies, since the file may change."""
        files = [self._files.get(number) for number in range(1, count + 1)]
        return [None if each is None or each.numbers is None else each.numbers.copy() for each in files]

    def keep_file(self, number: int, line: bytes, numbers: Numbers | None = None) -> None:
        """What the public file with this period has more than is held, and the numbers in its last line.

        Durable when this returns, which is before the line is written. From now on one check is of all.
        """
        file = KeptFile(number=number, line=line, numbers=numbers)
        record = file_record(file, self._end)
        check = self._check.copy()
        check.update(record)
        self._append(record + seal_record(check))
        self._files[number] = file

    def past(self, number: int) -> list[KeptPeriod]:
        """All periods before this one."""
        past = [self._kept.get(each) for each in range(1, number)]
        for each, kept in enumerate(past, start=1):
            if kept is None or not len(kept.sums):
                raise self._lacks(each)
        return [kept for kept in past if kept is not None]

    def _lacks(self, number: int) -> DpgramError:
        return DpgramError(
            f"{self.path.name} lacks period {number}: it was damaged or is an old copy",
            remedy="Restore it from kept tables: Series.restore",
        )

    def people(self, number: int) -> Hashes:
        """Who is known to have counted in this period so far."""
        kept = self._kept.get(number)
        return NOBODY if kept is None else kept.people

    def keep(self, period: KeptPeriod) -> None:
        """Durable when this returns."""
        self._append(period_record(period, self._end))
        self._kept[period.number] = period

    def _append(self, record: bytes) -> None:
        append(self._handle, record)
        self._check.update(record)
        self._end += len(record)


def _mapped(handle: int) -> Content:
    """Everything in an open file, which nobody shortens while it is locked."""
    return mmap.mmap(handle, 0, access=mmap.ACCESS_READ) if os.fstat(handle).st_size else b""


def _sort_in(
    found: Iterable[KeptPeriod | KeptFile | Seal], kept: dict[int, KeptPeriod], files: dict[int, KeptFile]
) -> None:
    """The last record of a kind for a period counts."""
    for each in found:
        if isinstance(each, KeptFile):
            files[each.number] = each
        elif isinstance(each, KeptPeriod):
            kept[each.number] = each


def create_secret(
    path: Path, series: str, *, head: str, charge: Path | str | None = None, key: bytes | None = None
) -> None:
    """A new file, which nobody else could open at any moment; with a new key unless one is given.

    It replaces one that holds no period, as an interrupted creation leaves it. `head` is the digest of the
    first line of the public file, `charge` the file by which the charge would be found again.
    """
    refuse_leftover(path)
    path.unlink(missing_ok=True)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        line = {"format": FORMAT, "warning": WARNING, "series": series, "head": head}
        line["key"] = (SystemEntropy().random_bytes(KEY_BYTES) if key is None else key).hex()
        line["charge"] = str(charge.resolve()) if isinstance(charge, Path) else charge or ""
        append_line(handle, line)
    finally:
        os.close(handle)
    sync_folder(path)


def refuse_leftover(path: Path) -> None:
    """Only what an interrupted creation leaves may be replaced: the head of a file, whole or torn."""
    try:
        handle = open_own(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        content = content_of(handle)
    finally:
        os.close(handle)
    texts, end = whole_texts(content)
    torn = b"\n" not in content and content[: len(_FIRST)] == _FIRST[: len(content)]
    whole = len(texts) == 1 and _head_of(texts[0]) is not None and end == len(content)
    if not torn and not whole:
        raise DpgramError(
            f"{path.name} may hold the exact sums of a series whose public file is not there",
            remedy="Put the public file back, or give the new series another name",
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Remains:
    """What can still be read of a curator's file that is to be made again."""

    key: bytes | None = None
    head_digest: str = ""
    charge: str = ""
    kept: Mapping[int, KeptPeriod] = field(default_factory=dict)
    files: Mapping[int, KeptFile] = field(default_factory=dict)
    """What was kept of the public file."""


def remains(handle: int, series: str) -> Remains:
    """Without its head nothing is of use: hashes need their key."""
    content = _mapped(handle)
    head = _head_within(content)
    if head is None or head.series != series:
        return Remains()
    kept: dict[int, KeptPeriod] = {}
    files: dict[int, KeptFile] = {}
    _sort_in((read.found for read in records(content, 0) if read.found is not None), kept, files)
    return Remains(
        key=bytes.fromhex(head.key), head_digest=head.head, charge=head.charge, kept=kept, files=files
    )


def _head_within(content: Content) -> _Head | None:
    """The head, wherever it is by now; None where it cannot be read."""
    start = content.find(_FIRST)
    while start >= 0:
        head = _head_of(text_of(memoryview(content)[start : content.find(b"\n", start)]))
        if head is not None:
            return head
        start = content.find(_FIRST, start + 1)
    return None


def require_locks() -> None:
    """Without locks on files nobody could tell a period that was interrupted from one that is running."""
    if fcntl is None:
        raise DpgramError(
            "a series needs locks on files, which this system does not have",
            remedy="Create and publish it on Linux or macOS; its public file can be read anywhere",
        )


@contextlib.contextmanager
def locked(path: Path) -> Iterator[int]:
    """The file that has this name, opened and locked; FileNotFoundError where there is none."""
    require_locks()
    while True:
        handle = open_own(path, os.O_RDWR)
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DpgramError(
                    "another period of this series is being published, or its file restored",
                    remedy="Wait for it, and try again",
                ) from None
            if is_at(handle, path):
                yield handle
                return
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # what is mapped may outlive the handle, and the lock must not
            os.close(handle)  # restored between opening and locking: once more


@contextlib.contextmanager
def open_secret(path: Path, series: str) -> Iterator[Secret]:
    """The file, opened and locked."""
    with contextlib.ExitStack() as stack:
        try:
            handle = stack.enter_context(locked(path))
        except FileNotFoundError:
            raise DpgramError(
                f"the curator's file {path.name} is missing: without exact past sums no period can be "
                "published",
                remedy="Put it back beside the series, or restore it from kept tables: Series.restore",
            ) from None
        yield Secret(path, handle, series)

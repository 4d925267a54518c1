"""What the curator of a series must keep: exact sums of past periods and who was in them. NOT PRIVATE.

Later periods are made of the exact sums of earlier ones, and a person may count in so many periods only. Both
are kept in one file for its owner's eyes, as secret as the table: lines of JSON, each with its digest. The
sums of a period are written before its noise is drawn; the last line for a period is the one that counts.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dpgram.errors import DpgramError
from dpgram.files import (
    append_line,
    content_of,
    is_at,
    json_object,
    readable_texts,
    sync_folder,
    whole_texts,
)
from dpgram.privacy.sampling.entropy import SystemEntropy
from dpgram.rows.participation import KEY_BYTES, NOBODY, Hashes

try:
    import fcntl
except ImportError:  # no such locks on this system: no series is made there
    fcntl = None  # type: ignore[assignment]

FORMAT: Final = "dpgram-series-secret/1"
SUFFIX: Final = ".NOT-PRIVATE"
WARNING: Final = "NOT PRIVATE: exact sums of the table and who is in it. Never publish, never send."

_FIRST: Final = b'{"charge":'
"""How the head of the file begins,"""
_PERIOD: Final = b'{"cells":'
"""a line for a period,"""
_DIGEST: Final = b'{"digest":'
"""and one with the digest of its public line."""

Integers = npt.NDArray[np.object_]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptPeriod:
    """One period as only its curator may know it."""

    number: int
    label: str
    cells: tuple[int, ...]
    """X_t: lower triangle by rows; none while only what comes before it was drawn."""
    people: Hashes
    """Keyed hashes of the ids that counted."""
    public: str
    """The SHA-256 of the public file before this period: of all bytes that were checked by then."""


@final
class _Line(Struct, frozen=True, kw_only=True):
    """A period as its line has it."""

    period: int
    label: str
    cells: tuple[int, ...]
    people: bytes
    public: str = ""


_LINE: Final = msgspec.json.Decoder(_Line, strict=False)
"""Not strict: cells are texts, so that every reader of JSON has whole numbers of any size."""


@final
class Secret:
    """The curator's file of a series, open and locked: nobody else publishes a period meanwhile."""

    def __init__(self, path: Path, handle: int, series: str) -> None:
        self.path, self._handle = path, handle
        content = content_of(handle)
        texts, end = whole_texts(content)
        head = json_object(texts[0]) if texts else {}
        if head.get("format") != FORMAT or head.get("series") != series:
            raise DpgramError(
                f"{path.name} does not belong to this series",
                remedy="Put the right file back, or restore it from kept tables: Series.restore",
            )
        self.key = bytes.fromhex(str(head["key"]))
        self.head_digest = str(head.get("head", ""))
        """Of the first line of the public file: the terms of every draw."""
        self._charge = str(head.get("charge", ""))
        self._lines = dict(_digest(text) for text in texts[1:] if bytes(text[: len(_DIGEST)]) == _DIGEST)
        periods = (text for text in texts[1:] if bytes(text[: len(_DIGEST)]) != _DIGEST)
        self._kept = {kept.number: kept for kept in map(_kept, periods)}
        if b"\n" in content[end:]:
            # Only a torn last line is cut off: it was never acted upon. Anything else is damage.
            raise DpgramError(
                f"line {len(texts) + 1} of {path.name} does not match its digest",
                remedy="Put a good copy back, or restore it from kept tables: Series.restore",
            )
        os.ftruncate(handle, end)
        os.lseek(handle, end, os.SEEK_SET)

    def settle(self) -> None:
        """The charge has its series: from now on nobody may take it up again for another one."""
        if self._charge:
            Path(self._charge).unlink(missing_ok=True)

    def begun(self, number: int) -> str | None:
        """The label under which this period was begun."""
        kept = self._kept.get(number)
        return None if kept is None else kept.label

    def public(self, number: int) -> str:
        """The SHA-256 of the public file before this period; empty where that is not known."""
        kept = self._kept.get(number)
        return "" if kept is None else kept.public

    def line(self, number: int) -> str:
        """The digest of the public line of this period; empty where that is not known."""
        return self._lines.get(number, "")

    def keep_line(self, number: int, digest: str) -> None:
        """Durable when this returns, which is before the line is written."""
        append_line(self._handle, {"digest": digest, "period": number})
        self._lines[number] = digest

    def past(self, number: int) -> list[KeptPeriod]:
        """All periods before this one."""
        past = [self._kept.get(each) for each in range(1, number)]
        missing = [each for each, kept in enumerate(past, start=1) if kept is None or not kept.cells]
        if missing:
            raise DpgramError(
                f"{self.path.name} lacks period {missing[0]}: it was damaged or is an old copy",
                remedy="Restore it from kept tables: Series.restore",
            )
        return [kept for kept in past if kept is not None]

    def people(self, number: int) -> Hashes:
        """Who is known to have counted in this period so far."""
        kept = self._kept.get(number)
        return NOBODY if kept is None else kept.people

    def keep(self, period: KeptPeriod) -> None:
        """Durable when this returns."""
        line = {
            "period": period.number,
            "label": period.label,
            "cells": [str(cell) for cell in period.cells],
            "people": base64.b64encode(period.people.tobytes()).decode(),
            "public": period.public,
        }
        append_line(self._handle, line)
        self._kept[period.number] = period

    def left_out(self, number: int, *, participations: int, apart: int) -> Hashes:
        """Who may not count in this period, in no order: by everybody's own earlier periods.

        Proof: proofs/series.md#series-participation.
        """
        past = self.past(number)
        everybody: Hashes = np.concatenate([NOBODY, *(each.people for each in past)])
        if participations == 1:
            return everybody
        persons, often = np.unique(everybody, return_counts=True)
        recent = [each.people for each in past if number - each.number < apart]
        return np.concatenate([persons[often >= participations], *recent])


def _digest(text: memoryview) -> tuple[int, str]:
    line = json_object(text)
    return int(line["period"]), str(line["digest"])


def _kept(text: memoryview) -> KeptPeriod:
    line = _LINE.decode(text)
    return KeptPeriod(
        number=line.period,
        label=line.label,
        cells=line.cells,
        people=np.frombuffer(line.people, NOBODY.dtype),
        public=line.public,
    )


def secret_path(path: Path) -> Path:
    """The curator's file beside the public one."""
    return path.with_name(path.name + SUFFIX)


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
        handle = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return
    try:
        content = content_of(handle)
    finally:
        os.close(handle)
    texts, end = whole_texts(content)
    torn = b"\n" not in content and content[: len(_FIRST)] == _FIRST[: len(content)]
    whole = len(texts) == 1 and json_object(texts[0]).get("format") == FORMAT and end == len(content)
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
    lines: Mapping[int, str] = field(default_factory=dict)
    """The digests of public lines."""


def remains(handle: int, series: str) -> Remains:
    """Without its head nothing is of use: hashes need their key."""
    texts = readable_texts(content_of(handle))
    heads = (json_object(text) for text in texts if bytes(text[: len(_FIRST)]) == _FIRST)
    head = next((head for head in heads if head.get("format") == FORMAT), {})
    if head.get("series") != series:
        return Remains()
    return Remains(
        key=bytes.fromhex(str(head["key"])),
        head_digest=str(head.get("head", "")),
        charge=str(head.get("charge", "")),
        kept={
            kept.number: kept
            for kept in (_kept(text) for text in texts if bytes(text[: len(_PERIOD)]) == _PERIOD)
        },
        lines=dict(_digest(text) for text in texts if bytes(text[: len(_DIGEST)]) == _DIGEST),
    )


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
        handle = os.open(path, os.O_RDWR)
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
            os.close(handle)  # and with it the lock; restored between opening and locking: once more


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
        _refuse_readable(path, handle)
        yield Secret(path, handle, series)


def _refuse_readable(path: Path, handle: int) -> None:
    mode = os.fstat(handle).st_mode & 0o077
    if os.name == "posix" and mode:
        raise DpgramError(
            f"{path.name} holds exact sums, and others than its owner may open it",
            got=f"mode {os.fstat(handle).st_mode & 0o777:o}",
            limit="mode 600",
            remedy=f"chmod 600 {path.name}",
        )


def lower_cells(matrix: Any) -> tuple[int, ...]:
    """The cells of an exact matrix on and below its diagonal, row by row."""
    return tuple(int(cell) for cell in matrix[np.tril_indices(len(matrix))])


def combined(past: Sequence[KeptPeriod], now: tuple[int, ...], c: Sequence[int]) -> Integers:
    """Σ_{s ≤ t} c_{t−s} X_s in whole numbers of any size, as a full matrix."""
    number = len(past) + 1
    lines = [*(each.cells for each in past), now]
    factors = [c[number - s] for s in range(1, number + 1)]
    width = (int((8 * len(now) + 1) ** 0.5) - 1) // 2
    cells = [sum(f * x for f, x in zip(factors, column, strict=True)) for column in zip(*lines, strict=True)]
    matrix: Integers = np.zeros((width, width), dtype=object)
    rows, columns = np.tril_indices(width)
    matrix[rows, columns] = cells
    matrix[columns, rows] = cells
    return matrix

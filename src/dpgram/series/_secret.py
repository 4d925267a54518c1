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

import numpy as np
import numpy.typing as npt

from dpgram.errors import DpgramError
from dpgram.files import append_line, content_of, is_at, readable_lines, sync_folder, whole_lines
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
"""How the head of the file begins."""

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


@final
class Secret:
    """The curator's file of a series, open and locked: nobody else publishes a period meanwhile."""

    def __init__(self, path: Path, handle: int, series: str) -> None:
        self.path, self._handle = path, handle
        lines, end = whole_lines(handle)
        head = lines[0] if lines else {}
        if head.get("format") != FORMAT or head.get("series") != series:
            raise DpgramError(
                f"{path.name} does not belong to this series",
                remedy="Put the right file back, or restore it from kept tables: Series.restore",
            )
        self.key = bytes.fromhex(str(head["key"]))
        self.head_digest = str(head.get("head", ""))
        """Of the first line of the public file: the terms of every draw."""
        self._charge = str(head.get("charge", ""))
        self._kept = {int(line["period"]): line for line in lines[1:]}
        self._read: dict[int, KeptPeriod] = {}
        if b"\n" in content_of(handle)[end:]:
            # Only a torn last line is cut off: it was never acted upon. Anything else is damage.
            raise DpgramError(
                f"line {len(lines) + 1} of {path.name} does not match its digest",
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
        line = self._kept.get(number)
        return None if line is None else str(line["label"])

    def past(self, number: int) -> list[KeptPeriod]:
        """All periods before this one."""
        missing = [each for each in range(1, number) if not self._kept.get(each, {}).get("cells")]
        if missing:
            raise DpgramError(
                f"{self.path.name} lacks period {missing[0]}: it was damaged or is an old copy",
                remedy="Restore it from kept tables: Series.restore",
            )
        for each in range(1, number):
            if each not in self._read:
                self._read[each] = _kept(self._kept[each])
        return [self._read[each] for each in range(1, number)]

    def people(self, number: int) -> Hashes:
        """Who is known to have counted in this period so far."""
        line = self._kept.get(number)
        return NOBODY if line is None else _kept(line).people

    def keep(self, period: KeptPeriod) -> None:
        """Durable when this returns."""
        line = {
            "period": period.number,
            "label": period.label,
            "cells": [str(cell) for cell in period.cells],
            "people": base64.b64encode(period.people.tobytes()).decode(),
        }
        append_line(self._handle, line)
        self._kept[period.number], self._read[period.number] = line, period

    def left_out(self, number: int, *, participations: int, apart: int) -> Hashes:
        """Who may not count in this period: by everybody's own earlier periods.

        Proof: proofs/series.md#series-participation.
        """
        past = self.past(number)
        if not past:
            return NOBODY
        everybody, often = np.unique(np.concatenate([each.people for each in past]), return_counts=True)
        used_up: Hashes = everybody[often >= participations]
        recent = [each.people for each in past if number - each.number < apart]
        return np.union1d(used_up, np.concatenate(recent)) if recent else used_up


def _kept(line: dict[str, Any]) -> KeptPeriod:
    return KeptPeriod(
        number=int(line["period"]),
        label=str(line["label"]),
        cells=tuple(int(cell) for cell in line["cells"]),
        people=np.frombuffer(base64.b64decode(line["people"]), NOBODY.dtype),
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
        (lines, end), content = whole_lines(handle), content_of(handle)
    finally:
        os.close(handle)
    torn = b"\n" not in content and content[: len(_FIRST)] == _FIRST[: len(content)]
    whole = len(lines) == 1 and lines[0].get("format") == FORMAT and end == len(content)
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


def remains(handle: int, series: str) -> Remains:
    """Without its head nothing is of use: hashes need their key."""
    lines = readable_lines(handle)
    head = next((line for line in lines if line.get("format") == FORMAT), {})
    if head.get("series") != series:
        return Remains()
    return Remains(
        key=bytes.fromhex(str(head["key"])),
        head_digest=str(head.get("head", "")),
        charge=str(head.get("charge", "")),
        kept={int(line["period"]): _kept(line) for line in lines if "period" in line},
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

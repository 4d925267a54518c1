"""What the curator of a series must keep: exact sums of past periods and who was in them. NOT PRIVATE.

Later periods are made of the exact sums of earlier ones, and a person may count in so many periods only. Both
are kept in one file for its owner's eyes, as secret as the table: lines of JSON, each with its digest. The
sums of a period are written before its noise is drawn; the last line for a period is the one that counts.
"""

from __future__ import annotations

import base64
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import DpgramError
from dpgram.files import append_line, content_of, sync_folder, whole_lines
from dpgram.privacy.sampling.entropy import SystemEntropy
from dpgram.rows.participation import KEY_BYTES, NOBODY, Hashes

try:
    import fcntl
except ImportError:  # no such locks on this system: a series has one curator at a time there
    fcntl = None  # type: ignore[assignment]

FORMAT: Final = "dpgram-series-secret/1"
SUFFIX: Final = ".NOT-PRIVATE"
WARNING: Final = "NOT PRIVATE: exact sums of the table and who is in it. Never publish, never send."

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


def create_secret(path: Path, series: str, *, charge: Path | None = None) -> None:
    """A new file with a new key, which nobody else could open at any moment.

    It replaces one that holds no period, as an interrupted creation leaves it. `charge` is the file by which
    the charge would be found again.
    """
    with contextlib.suppress(FileNotFoundError):
        handle = os.open(path, os.O_RDONLY)
        try:
            lines, _ = whole_lines(handle)
        finally:
            os.close(handle)
        if len(lines) > 1:
            raise DpgramError(
                f"{path.name} holds the exact sums of a series whose public file is not there",
                remedy="Put the public file back, or give the new series another name",
            )
        path.unlink()
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        head = {"format": FORMAT, "warning": WARNING, "series": series}
        head["key"] = SystemEntropy().random_bytes(KEY_BYTES).hex()
        head["charge"] = "" if charge is None else str(charge.resolve())
        append_line(handle, head)
    finally:
        os.close(handle)
    sync_folder(path)


@contextlib.contextmanager
def open_secret(path: Path, series: str) -> Iterator[Secret]:
    """The file, opened and locked."""
    try:
        handle = os.open(path, os.O_RDWR)
    except FileNotFoundError:
        raise DpgramError(
            f"the curator's file {path.name} is missing: without exact past sums no period can be published",
            remedy="Put it back beside the series, or restore it from kept tables: Series.restore",
        ) from None
    try:
        if fcntl is not None:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise DpgramError(
                    "another period of this series is being published", remedy="Wait for it, and try again"
                ) from None
        _refuse_readable(path, handle)
        yield Secret(path, handle, series)
    finally:
        os.close(handle)  # and with it the lock


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

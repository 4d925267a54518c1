"""How periods are written into the curator's file of a series: records of JSON, and of people as plain bytes.

    {"cells": …, "label": …, "people": 2000, "sum": …, …} SHA-256 ⏎  2,000 keyed hashes of 16 bytes  ⏎
    {"digest": …, "numbers": 715, "period": …, "sum": …} SHA-256 ⏎  715 words of 64 bits  ⏎

Every publication reads all of them. Exact sums are words of 64 bits in base64, under the digest of their
line. People are by far the most: they are not decoded, and their check is the sum of their words modulo 2^64,
which no change of one person leaves as it was, and random bytes in place of some with a chance of 2⁻⁶⁴. What
is public of a period is kept the same way beside the hash of its file, so that its text need not be read.
"""

from __future__ import annotations

import base64
import mmap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dpgram.canonical_json import canonical_bytes
from dpgram.files import AFTER_TEXT, line_of, text_of
from dpgram.rows.participation import HASH_BYTES, NOBODY, Hashes
from dpgram.series._numbers import Numbers

Sums: TypeAlias = npt.NDArray[np.int64]
"""Lower triangle of an exact matrix, row by row."""
Integers: TypeAlias = npt.NDArray[np.object_]

Content: TypeAlias = bytes | mmap.mmap
"""Of a file: people are looked at where they are, and not copied."""

NO_SUMS: Final[Sums] = np.empty(0, "<i8")
_HALF: Final = 32
"""Bits of the lower half of a cell."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptPeriod:
    """One period as only its curator may know it."""

    number: int
    label: str
    sums: Sums
    """X_t; none while only what comes before it was drawn."""
    people: Hashes
    """Keyed hashes of the ids that counted."""
    stages: int = 1
    """How many of its stages had begun, each of which reads the table before it draws."""

    @property
    def cells(self) -> tuple[int, ...]:
        """X_t in whole numbers without a limit."""
        return tuple(self.sums.tolist())


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class KeptFile:
    """The SHA-256 of the public file up to and with the line of a period, and the numbers in that line."""

    number: int
    digest: str
    numbers: Numbers | None = None
    """None where one of them needs more than 64 bits, or the file was restored: its line has them."""


@final
class _Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Either of both as its line has it."""

    period: int
    label: str = ""
    cells: bytes = b""
    people: int = 0
    stages: int = 0
    sum: str = ""
    digest: str = ""
    numbers: int = 0


_LINE: Final = msgspec.json.Decoder(_Line)


def period_record(period: KeptPeriod, place: int) -> bytes:
    """For a file that ends at `place`."""
    text = canonical_bytes(
        {
            "period": period.number,
            "label": period.label,
            "cells": base64.b64encode(period.sums.tobytes()).decode(),
            "people": len(period.people),
            "stages": period.stages,
            "sum": _sum(period.people),
        }
    )
    return _with_bytes(text, period.people, place)


def file_record(file: KeptFile, place: int) -> bytes:
    """For a file that ends at `place`."""
    kept = file.numbers is not None and file.numbers.dtype != object
    words = np.asarray(file.numbers, NO_SUMS.dtype) if kept else NO_SUMS
    content = {"digest": file.digest, "numbers": len(words), "period": file.number, "sum": _sum(words)}
    return _with_bytes(canonical_bytes(content), words, place)


def _with_bytes(text: bytes, words: Sums | Hashes, place: int) -> bytes:
    """The record of this JSON and these bytes, which begin at a multiple of 16 by blanks behind the JSON."""
    before = place + len(text) + AFTER_TEXT + 1
    return line_of(text + b" " * (-before % HASH_BYTES)) + words.tobytes() + b"\n"


@final
@dataclass(frozen=True, slots=True)
class Read:
    """What stands in the file up to `end`: a record, or none that is whole."""

    found: KeptPeriod | KeptFile | None
    end: int
    torn: bool = False
    """The end of the file is reached, and the record is not: it was being written."""


def records(content: Content, start: int) -> Iterator[Read]:
    """One after the other; behind damage whatever can be read again.

    Proof: proofs/series.md#series-once.
    """
    view = memoryview(content)
    while start < len(view):
        read = _read(content, view, start)
        yield read
        start = read.end


def _read(content: Content, view: memoryview, start: int) -> Read:
    stop = content.find(b"\n", start)
    if stop < 0:
        return Read(None, len(view), torn=True)
    line, end = _decoded(view[start:stop]), stop + 1
    if line is None:
        return Read(None, end)
    kind, count = (NO_SUMS.dtype, line.numbers) if line.digest else (NOBODY.dtype, line.people)
    last = end + kind.itemsize * count
    if content[last : last + 1] != b"\n":
        torn = len(view) <= last + 1
        return Read(None, len(view) if torn else end, torn=torn)
    words: npt.NDArray[Any] = np.frombuffer(view, kind, count, end)
    if _sum(words) != line.sum:
        return Read(None, end)
    return Read(_file(line, words) if line.digest else _period(line, words), last + 1)


def _decoded(line: memoryview) -> _Line | None:
    """What a line says; None where that does not match its digest, or is nothing that we write."""
    text = text_of(line)
    try:
        return None if text is None else _LINE.decode(text)
    except msgspec.ValidationError:
        return None


def _period(line: _Line, people: Hashes) -> KeptPeriod:
    return KeptPeriod(
        number=line.period,
        label=line.label,
        sums=np.frombuffer(line.cells, NO_SUMS.dtype),
        people=people,
        stages=line.stages,
    )


def _file(line: _Line, words: Numbers) -> KeptFile:
    return KeptFile(number=line.period, digest=line.digest, numbers=words if len(words) else None)


def _sum(words: Sums | Hashes) -> str:
    return f"{int(words.view('<u8').sum(dtype=np.uint64)):016x}"


def lower_sums(matrix: Any) -> Sums:
    """The cells of an exact matrix on and below its diagonal, row by row."""
    found: Sums = np.asarray(matrix[np.tril_indices(len(matrix))]).astype(NO_SUMS.dtype)
    return found


def combined_cells(past: Sequence[KeptPeriod], now: Sums, c: Sequence[int]) -> tuple[int, ...]:
    """Σ_{s ≤ t} c_{t−s} X_s in whole numbers of any size.

    Halves of cells are added up in 64 bits: below 2^32 each, times factors that add up to less than 2^25.
    """
    number = len(past) + 1
    lines = np.stack([*(each.sums for each in past), now])
    factors = np.array([c[number - s] for s in range(1, number + 1)], np.int64)
    upper = (factors @ (lines >> _HALF)).tolist()
    lower = (factors @ (lines & ((1 << _HALF) - 1))).tolist()
    return tuple((high << _HALF) + low for high, low in zip(upper, lower, strict=True))


def combined(past: Sequence[KeptPeriod], now: Sums, c: Sequence[int]) -> Integers:
    """The same as a full matrix."""
    width = (int((8 * len(now) + 1) ** 0.5) - 1) // 2
    matrix: Integers = np.zeros((width, width), dtype=object)
    rows, columns = np.tril_indices(width)
    matrix[rows, columns] = matrix[columns, rows] = combined_cells(past, now, c)
    return matrix

"""How periods are written into the curator's file of a series: records of JSON with plain bytes behind it.

    {"kind":"period","people":2000,"sums":231,…}  SHA-256 ⏎  2,000 keyed hashes of 16 bytes, 231 words  ⏎
    {"kind":"line","line":13000,"numbers":715,…}  SHA-256 ⏎  715 words of 64 bits, a line of 13,000 bytes  ⏎
    {"kind":"seal","check":…}                     SHA-256 ⏎

Every publication needs all of them. Exact sums and public lines have a digest. People are by far the most:
their check is the sum of their words modulo 2^64, which no change of one person leaves as it was, and random
bytes in place of some with a chance of 2⁻⁶⁴. So is that of what is public of a period in whole numbers, which
is kept so that its text need not be read.

Where the last record is a seal, which has one check of everything before it, no other is held against its own
digest. A file without one, or with one that does not fit, is read with all of them.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Final, TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta, Struct

from dpgram.document.fields import PeriodLabel
from dpgram.files import AFTER_TEXT, line_of, text_of
from dpgram.rows.participation import HASH_BYTES, NOBODY, Hashes
from dpgram.series._check import Check
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
class KeptPeriod(Struct, frozen=True, kw_only=True, eq=False):
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
class KeptFile(Struct, frozen=True, kw_only=True, eq=False):
    """What was in the public file up to and with the line of a period."""

    number: int
    line: bytes | memoryview
    """What it has more than all that was kept before: mostly one line, and with the first its head."""
    numbers: Numbers | None = None
    """Those in its last line; None where one needs more than 64 bits, or the file was restored."""


_Number: TypeAlias = Annotated[int, Meta(ge=1)]
_Count: TypeAlias = Annotated[int, Meta(ge=0)]


@final
class PeriodLine(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="period", gc=False
):
    """What the JSON of a period says of it: behind it are people and exact sums."""

    period: _Number
    label: PeriodLabel
    stages: _Count
    people: _Count
    sum: str
    sums: _Count
    digest: str
    """Of the sums."""

    @property
    def sizes(self) -> tuple[int, int]:
        """How many bytes have a sum, and how many behind them a digest."""
        return HASH_BYTES * self.people, NO_SUMS.itemsize * self.sums

    def kept(self, view: memoryview, first: int, second: int) -> KeptPeriod:
        return KeptPeriod(
            number=self.period,
            label=self.label,
            sums=np.frombuffer(view, NO_SUMS.dtype, self.sums, second),
            people=np.frombuffer(view, NOBODY.dtype, self.people, first),
            stages=self.stages,
        )


@final
class FileLine(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="line", gc=False
):
    """What the JSON of the public file says of it: behind it are numbers and a line."""

    period: _Number
    numbers: _Count
    sum: str
    line: _Number
    digest: str
    """Of the line."""

    @property
    def sizes(self) -> tuple[int, int]:
        return NO_SUMS.itemsize * self.numbers, self.line

    def kept(self, view: memoryview, first: int, second: int) -> KeptFile:
        numbers = np.frombuffer(view, NO_SUMS.dtype, self.numbers, first) if self.numbers else None
        return KeptFile(number=self.period, line=view[second : second + self.line], numbers=numbers)


@final
class Seal(
    Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="kind", tag="seal", gc=False
):
    """All records before it are whole."""

    check: str
    """Of everything before it."""


_LINES: Final[msgspec.json.Decoder[PeriodLine | FileLine | Seal]] = msgspec.json.Decoder(
    PeriodLine | FileLine | Seal
)


def period_record(period: KeptPeriod, place: int) -> bytes:
    """For a file that ends at `place`."""
    sums = np.asarray(period.sums, NO_SUMS.dtype).tobytes()
    line = PeriodLine(
        period=period.number,
        label=period.label,
        stages=period.stages,
        people=len(period.people),
        sum=_sum(period.people),
        sums=len(period.sums),
        digest=_digest(sums),
    )
    return _with_bytes(line, period.people.tobytes() + sums, place)


def file_record(file: KeptFile, place: int) -> bytes:
    """For a file that ends at `place`."""
    words = _words(file)
    line = FileLine(
        period=file.number,
        numbers=len(words),
        sum=_sum(words),
        line=len(file.line),
        digest=_digest(file.line),
    )
    return _with_bytes(line, words.tobytes() + file.line, place)


def seal_record(check: Check) -> bytes:
    """Of records whose bytes this check has seen."""
    return line_of(msgspec.json.encode(Seal(check=check.hexdigest())))


def _words(file: KeptFile) -> Sums:
    """The numbers that are kept of a line: none where one needs more than 64 bits."""
    kept = file.numbers is not None and file.numbers.dtype != object
    return np.asarray(file.numbers, NO_SUMS.dtype) if kept else NO_SUMS


def _with_bytes(line: PeriodLine | FileLine, content: bytes, place: int) -> bytes:
    """The record of this JSON and these bytes, which begin at a multiple of 16 by blanks behind the JSON."""
    text = msgspec.json.encode(line)
    before = place + len(text) + AFTER_TEXT + 1
    return line_of(text + b" " * (-before % HASH_BYTES)) + content + b"\n"


@final
class Read(Struct, frozen=True, eq=False):
    """What stands in the file up to `end`: a record, or none that is whole."""

    found: KeptPeriod | KeptFile | Seal | None
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


def sealed(content: Content, start: int, check: Check) -> list[KeptPeriod | KeptFile] | None:
    """All records from `start` on, if the last is a seal and everything before it is as it was then.

    `check` has seen nothing yet, and afterwards, unless that is None, everything.

    Proof: proofs/series.md#series-once.
    """
    view = memoryview(content)
    last = content.rfind(b"\n", 0, max(len(view) - 1, 0)) + 1
    text = text_of(view[last:-1]) if content[-1:] == b"\n" else None
    seal = None if text is None else _decoded(text)
    if not isinstance(seal, Seal):
        return None
    check.update(view[:last])
    if check.hexdigest() != seal.check:
        return None
    found = list[KeptPeriod | KeptFile]()
    while start < last:
        read = _read(content, view, start, known=True)
        if read.found is None:
            return None
        if not isinstance(read.found, Seal):
            found.append(read.found)
        start = read.end
    check.update(view[last:])
    return found if start == last else None


def _read(content: Content, view: memoryview, start: int, *, known: bool = False) -> Read:
    """The record that begins here; where its bytes are `known`, they are held against no digest."""
    stop = content.find(b"\n", start)
    if stop < 0:
        return Read(None, len(view), torn=True)
    text, behind = view[start : stop - AFTER_TEXT] if known else text_of(view[start:stop]), stop + 1
    line = None if text is None else _decoded(text)
    if line is None or isinstance(line, Seal):
        return Read(line, behind)
    first, second = line.sizes
    middle = behind + first
    end = middle + second
    if content[end : end + 1] != b"\n":
        torn = len(view) <= end + 1 and not _has_line(content, view, behind)
        return Read(None, len(view) if torn else behind, torn=torn)
    if not known:
        words = np.frombuffer(view, "<u8", first // 8, behind)
        if _sum(words) != line.sum or _digest(view[middle:end]) != line.digest:
            return Read(None, behind)
    return Read(line.kept(view, behind, middle), end + 1)


def _has_line(content: Content, view: memoryview, start: int) -> bool:
    """Whether a line with its digest is here, as none is within the bytes of a record."""
    while (stop := content.find(b"\n", start)) >= 0:
        if text_of(view[start:stop]) is not None:
            return True
        start = stop + 1
    return False


def _decoded(text: memoryview) -> PeriodLine | FileLine | Seal | None:
    """What a text says; None where it says something else."""
    try:
        return _LINES.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


def _sum(words: npt.NDArray[Any]) -> str:
    return f"{int(words.view('<u8').sum(dtype=np.uint64)):016x}"


def _digest(content: bytes | memoryview) -> str:
    return hashlib.sha256(content).hexdigest()


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

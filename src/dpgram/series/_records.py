"""How periods are written into the curator's file of a series: records of JSON with plain bytes behind it.

    {"label": …, "people": 2000, "sums": 231, …} SHA-256 ⏎  2,000 keyed hashes of 16 bytes, 231 words  ⏎
    {"line": 13000, "numbers": 715, "period": …} SHA-256 ⏎  715 words of 64 bits, a line of 13,000 bytes  ⏎
    {"check": …, "files": […], "periods": […]}   SHA-256 ⏎

Every publication needs all of them. Exact sums and public lines have a digest. People are by far the most:
their check is the sum of their words modulo 2^64, which no change of one person leaves as it was, and random
bytes in place of some with a chance of 2⁻⁶⁴. So is that of what is public of a period in whole numbers, which
is kept so that its text need not be read.

Records are not read one by one where the last is an index: it says where all that count are, and has one
check of everything before it. A file without one, or with one that does not fit, is read record by record.
"""

from __future__ import annotations

import hashlib
import mmap
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Struct
from msgspec.structs import replace

from dpgram.canonical_json import canonical_bytes
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
    place: PeriodPlace | None = None
    """Where its bytes are in the file; None where they are not there in the form of today."""

    def ending(self, end: int) -> KeptPeriod:
        """The same, now that its bytes end there."""
        place = PeriodPlace(self.number, self.label, self.stages, len(self.people), len(self.sums), end)
        return replace(self, place=place)

    @property
    def cells(self) -> tuple[int, ...]:
        """X_t in whole numbers without a limit."""
        return tuple(self.sums.tolist())


@final
class KeptFile(Struct, frozen=True, kw_only=True, eq=False):
    """What was in the public file up to and with the line of a period."""

    number: int
    digest: str = ""
    """SHA-256 of all of it, where its lines are not kept: in files of earlier versions and restored ones."""
    line: bytes | memoryview = b""
    """What it has more than all that was kept before: mostly one line, and with the first its head."""
    numbers: Numbers | None = None
    """Those in its last line; None where one needs more than 64 bits, or the file was restored."""
    place: FilePlace | None = None
    """Where its bytes are in the curator's file."""

    def ending(self, end: int) -> KeptFile:
        """The same, now that its bytes end there."""
        place = FilePlace(self.number, self.digest, len(_words(self)), len(self.line), end)
        return replace(self, place=place)

    def ends(self, public: bytes) -> bool:
        """Whether a public file ends as it did then: one whose digests are right is then the same."""
        return public.endswith(bytes(self.line)) if self.line else _digest(public) == self.digest


@final
class _Line(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the JSON of a period or of the public file says of it."""

    period: int
    label: str = ""
    cells: bytes = b""
    """Exact sums as earlier versions kept them."""
    people: int = 0
    stages: int = 0
    sum: str = ""
    """Of people or numbers."""
    sums: int = 0
    exact: str = ""
    """The digest of the sums."""
    numbers: int = 0
    line: int = 0
    digest: str = ""
    """Of the line, if there is one; else of the public file up to and with it."""


@final
class PeriodPlace(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """A period as the index has it."""

    number: int
    label: str
    stages: int
    people: int
    sums: int
    end: int

    def kept(self, view: memoryview) -> KeptPeriod:
        sums = self.end - NO_SUMS.itemsize * self.sums
        people = sums - HASH_BYTES * self.people
        return KeptPeriod(
            number=self.number,
            label=self.label,
            sums=np.frombuffer(view, NO_SUMS.dtype, self.sums, sums),
            people=np.frombuffer(view, NOBODY.dtype, self.people, people),
            stages=self.stages,
            place=self,
        )


@final
class FilePlace(Struct, frozen=True, array_like=True, forbid_unknown_fields=True, gc=False):
    """What was kept of the public file, as the index has it."""

    number: int
    digest: str
    numbers: int
    line: int
    end: int

    def kept(self, view: memoryview) -> KeptFile:
        line = self.end - self.line
        numbers = line - NO_SUMS.itemsize * self.numbers
        return KeptFile(
            number=self.number,
            digest=self.digest,
            line=view[line : self.end],
            numbers=np.frombuffer(view, NO_SUMS.dtype, self.numbers, numbers) if self.numbers else None,
            place=self,
        )


@final
class Index(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Where all records are that count."""

    check: str
    """Of everything before the index."""
    files: tuple[FilePlace, ...]
    periods: tuple[PeriodPlace, ...]


_Form = TypeVar("_Form", _Line, Index)
_LINE: Final = msgspec.json.Decoder(_Line)
_INDEX: Final = msgspec.json.Decoder(Index)


def period_record(period: KeptPeriod, place: int) -> bytes:
    """For a file that ends at `place`."""
    sums = np.asarray(period.sums, NO_SUMS.dtype).tobytes()
    text = canonical_bytes(
        {
            "exact": _digest(sums),
            "label": period.label,
            "people": len(period.people),
            "period": period.number,
            "stages": period.stages,
            "sum": _sum(period.people),
            "sums": len(period.sums),
        }
    )
    return _with_bytes(text, period.people.tobytes() + sums, place)


def file_record(file: KeptFile, place: int) -> bytes:
    """For a file that ends at `place`."""
    words = _words(file)
    content = {
        "digest": _digest(file.line) if file.line else file.digest,
        "line": len(file.line),
        "numbers": len(words),
        "period": file.number,
        "sum": _sum(words),
    }
    return _with_bytes(canonical_bytes(content), words.tobytes() + file.line, place)


def index_record(periods: Iterable[KeptPeriod], files: Iterable[KeptFile], check: str) -> bytes:
    """Of records that are all in the file before it, whose bytes have this check."""
    index = Index(
        check=check,
        files=tuple(each.place for each in files if each.place is not None),
        periods=tuple(each.place for each in periods if each.place is not None),
    )
    return line_of(msgspec.json.encode(index))


def _words(file: KeptFile) -> Sums:
    """The numbers that are kept of a line: none where one needs more than 64 bits."""
    kept = file.numbers is not None and file.numbers.dtype != object
    return np.asarray(file.numbers, NO_SUMS.dtype) if kept else NO_SUMS


def _with_bytes(text: bytes, content: bytes, place: int) -> bytes:
    """The record of this JSON and these bytes, which begin at a multiple of 16 by blanks behind the JSON."""
    before = place + len(text) + AFTER_TEXT + 1
    return line_of(text + b" " * (-before % HASH_BYTES)) + content + b"\n"


@final
@dataclass(frozen=True, slots=True)
class Read:
    """What stands in the file up to `end`: a record, or none that is whole."""

    found: KeptPeriod | KeptFile | Index | None
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


def indexed(content: Content, check: Check) -> Iterator[KeptPeriod | KeptFile] | None:
    """All records that count, if the last is an index and everything before it is as it was then.

    `check` has seen nothing yet, and afterwards, unless that is None, everything.

    Proof: proofs/series.md#series-once.
    """
    view = memoryview(content)
    start = content.rfind(b"\n", 0, max(len(view) - 1, 0)) + 1
    text = text_of(view[start:-1]) if content[-1:] == b"\n" else None
    index = None if text is None else _decoded(text, _INDEX)
    if index is None:
        return None
    check.update(view[:start])
    if check.hexdigest() != index.check:
        return None
    check.update(view[start:])
    return (each.kept(view) for places in (index.periods, index.files) for each in places)


def _read(content: Content, view: memoryview, start: int) -> Read:
    stop = content.find(b"\n", start)
    if stop < 0:
        return Read(None, len(view), torn=True)
    text, behind = text_of(view[start:stop]), stop + 1
    if text is None:
        return Read(None, behind)
    line = _decoded(text, _LINE)
    if line is None:
        return Read(_decoded(text, _INDEX), behind)
    first = HASH_BYTES * line.people + NO_SUMS.itemsize * line.numbers
    second = NO_SUMS.itemsize * line.sums + line.line
    end = behind + first + second
    if content[end : end + 1] != b"\n":
        torn = len(view) <= end + 1
        return Read(None, len(view) if torn else behind, torn=torn)
    words = np.frombuffer(view, "<u8", first // 8, behind)
    digest = line.exact if line.sums else line.digest
    if _sum(words) != line.sum or (second and _digest(view[end - second : end]) != digest):
        return Read(None, behind)
    return Read(_kept(line, view, end), end + 1)


def _decoded(text: memoryview, decoder: msgspec.json.Decoder[_Form]) -> _Form | None:
    """What a text says; None where it says something else."""
    try:
        return decoder.decode(text)
    except msgspec.ValidationError:
        return None


def _kept(line: _Line, view: memoryview, end: int) -> KeptPeriod | KeptFile:
    if line.digest:
        digest = "" if line.line else line.digest
        return FilePlace(line.period, digest, line.numbers, line.line, end).kept(view)
    kept = PeriodPlace(line.period, line.label, line.stages, line.people, line.sums, end).kept(view)
    if not line.cells:
        return kept
    return replace(kept, sums=np.frombuffer(line.cells, NO_SUMS.dtype), place=None)


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

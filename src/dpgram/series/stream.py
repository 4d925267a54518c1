"""The public file of a series: a line of JSON for its head, then one for each period, chained by digests.

Every number in it is public, or noisy and paid for. A window of periods is Σ_s w_s Y_s, rounded to whole
numbers; the release that is made of it states the law of its noise, and is checked like any other. The format
is described in docs/reference/series-format.md.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain, islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal, Self, final

import msgspec
import numpy as np
from msgspec import Meta, Struct

from dpgram.canonical_json import canonical_bytes, parse_strictly, sha256_hex
from dpgram.document.coordinates import Coordinates
from dpgram.document.document import unfinished
from dpgram.document.fields import (
    Cell,
    MeasuredClip,
    MeasuredHistograms,
    MeasuredMatrix,
    MeasuredReach,
    MechanismUsed,
    MissingPolicy,
    PeriodLabel,
    Policy,
    Positive,
    Probability,
    PublishedMatrix,
    SeriesPart,
    StatedGuarantee,
    SurveyWeight,
    UnitRule,
)
from dpgram.document.unreadable import DAMAGED, mistake, unreadable
from dpgram.errors import DpgramError, ReleaseError, whole
from dpgram.files import LARGEST_FILE, opened, size_of
from dpgram.noise import SymmetricGaussian
from dpgram.noise.factor import MOST_PERIODS, window_norm
from dpgram.privacy.receipt import Receipt
from dpgram.release import Release
from dpgram.schema import Schema
from dpgram.series._numbers import Numbers, numbers, weighted

if TYPE_CHECKING:
    from dpgram.rows import Rows

FORMAT: Final = "dpgram-series"
SUFFIX: Final = ".NOT-PRIVATE"
"""At the end of the name of the curator's file."""
START: Final = "0" * 64
"""What stands for the digest before the first line."""
_FORM: Final = f'a first line with "format": "{FORMAT}"'


@final
class GivenRows(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How rows count, as the curator asked for it."""

    unit: str | None
    unit_rows: int | None
    weight: str | None
    missing: MissingPolicy
    strict: bool
    radius: float | None

    @classmethod
    def of(cls, rows: Rows) -> GivenRows:
        """What is stated of a rule in the first line."""
        return cls(
            unit=rows.unit,
            unit_rows=rows.unit_rows,
            weight=None if rows.weight is None else str(rows.weight),
            missing=rows.missing,
            strict=rows.strict,
            radius=rows.radius,
        )


@final
class Shares(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Shares of the whole budget: of what is counted in every period, and of what the first one has alone."""

    histograms: Probability
    first: Probability
    clip: Probability


@final
class Head(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was fixed when the series was created: public facts."""

    format: Literal["dpgram-series"] = FORMAT
    version: Literal[1] = 1
    library: Annotated[str, Meta(max_length=64)]
    series: Annotated[str, Meta(pattern="^[0-9a-f]{32}$")]
    schema: dict[str, Any]
    """Of what is published."""
    given: dict[str, Any]
    """As it was given, with the column that weighs."""
    rows: GivenRows
    unit_rule: UnitRule | None
    survey_weight: SurveyWeight | None
    periods: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    participations: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    apart: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    bits: Annotated[int, Meta(ge=6, le=16)]
    shares: Shares
    guarantee: StatedGuarantee
    entropy: Literal["system", "seeded"]
    receipt: Receipt | None


@final
class StreamOpening(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the first period fixed for all of them, and what that was chosen by."""

    radius: Annotated[float, Meta(gt=1e-50, lt=1e50)]
    coordinates: Coordinates | None
    sigma: Positive
    """Of the noise of a diagonal cell of Y_t."""
    measured: tuple[MeasuredMatrix | MeasuredReach, ...]


@final
class Period(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One period: Y_t and noisy counts of its rows."""

    number: Annotated[int, Meta(ge=1, le=MOST_PERIODS)]
    label: PeriodLabel
    cells: Annotated[tuple[Cell, ...], Meta(max_length=1_000_000)]
    """Y_t: lower triangle by rows, in lattice units times 2^bits."""
    histograms: MeasuredHistograms | None
    clip: MeasuredClip | None
    opening: StreamOpening | None
    """In the first period, and there alone."""


def line_of(content: Head | Period, before: str) -> tuple[bytes, str]:
    """The line of a file, and its digest."""
    plain = {**msgspec.to_builtins(content), "before": before}
    digest = sha256_hex(plain)
    return canonical_bytes({**plain, "digest": digest}) + b"\n", digest


@final
class _Sealed(Struct, frozen=True):
    """What is read at once of a line that was checked before."""

    digest: str


_SEALED: Final = msgspec.json.Decoder(_Sealed)


@final
class _ColumnCounts(Struct, frozen=True):
    counts: tuple[int, ...]
    lost: tuple[int, ...]


@final
class _Histograms(Struct, frozen=True):
    columns: tuple[_ColumnCounts, ...]


@final
class _Clip(Struct, frozen=True):
    cells: tuple[int, ...]


@final
class _Numbers(Struct, frozen=True):
    """What is added up of a line that was checked before: of a `Period`, all that differs between periods."""

    cells: tuple[int, ...]
    histograms: _Histograms | None
    clip: _Clip | None


_NUMBERS: Final = msgspec.json.Decoder(_Numbers, strict=False)
"""Whole numbers are strings in the file."""


def numbers_of(line: Period | memoryview) -> Numbers:
    """What is added up of a period: its cells, the counts of its columns one after another, its clip."""
    found = line if isinstance(line, Period) else _NUMBERS.decode(line)
    columns = () if found.histograms is None else found.histograms.columns
    counts = chain.from_iterable((*each.counts, *each.lost) for each in columns)
    return numbers(
        [*map(int, found.cells), *map(int, counts), *map(int, found.clip.cells if found.clip else ())]
    )


@final
class Stream:
    """A series as its public file tells it."""

    def __init__(
        self,
        head: Head,
        lines: Sequence[Period | memoryview | None],
        *,
        labels: Sequence[str],
        digests: Sequence[str],
        size: int,
        numbers: Sequence[Numbers | None] = (),
        schema: Schema | None = None,
        path: Path | None = None,
    ) -> None:
        self.head, self.size = head, size
        self.labels = tuple(labels)
        """The names of its periods."""
        self._lines, self._digests = list(lines), list(digests)
        """Lines that were checked before are read when they are asked for, and so are their digests; the
        first digest is that of the head. None stands for a line that is in the file alone."""
        self._path = path
        self._numbers = [*numbers, *[None] * (len(self._lines) - len(numbers))]
        """What is added up of each, as far as it was asked for or kept."""
        self.schema = Schema.from_dict(head.schema) if schema is None else schema

    @classmethod
    def read(cls, path: Path) -> Self:
        """Every whole line; a torn last one, which is being written or was cut off, is left alone."""
        return cls.of(stream_bytes(path))

    @classmethod
    def of(cls, raw: bytes) -> Self:
        """The series in these bytes, every line of it checked, or ReleaseError with the reason."""
        *lines, torn = raw.split(b"\n")
        if not lines:
            raise _not_a_series()
        content, digest = _checked(lines[0], START, 0)
        digests, found = [digest], list[Period]()
        try:
            head = msgspec.convert(content, Head)
            for number, line in enumerate(lines[1:], start=1):
                content, digest = _checked(line, digests[-1], number)
                digests.append(digest)
                found.append(msgspec.convert(content, Period))
            labels = [each.label for each in found]
            stream = cls(head, found, labels=labels, digests=digests, size=len(raw) - len(torn))
            stream.check()
        except ReleaseError:
            raise
        except (msgspec.ValidationError, DpgramError, ValueError, ArithmeticError) as problem:
            raise ReleaseError(
                "the series does not follow the format", got=str(problem)[:200], remedy=DAMAGED
            ) from None
        return stream

    @classmethod
    def known(
        cls,
        raw: bytes,
        labels: Sequence[str],
        numbers: Sequence[Numbers | None],
        *,
        ends: Sequence[int],
        path: Path,
    ) -> Self:
        """The series in whole lines that were all checked before; labels, numbers and ends of its lines.

        Lines that nothing is made of are left in the file that they came from.

        Proof: proofs/series.md#series-once.
        """
        content = json.loads(raw[: ends[0]])
        del content["before"]
        head_digest = content.pop("digest")
        bounds = list(pairwise(ends))
        lines: list[memoryview | None] = [None] * len(bounds)
        for place in {0, len(bounds) - 1, *(i for i, each in enumerate(numbers) if each is None)}:
            start, end = bounds[place]
            lines[place] = memoryview(raw[start + 1 : end])
        digests = [head_digest, *[""] * len(lines)]
        head = msgspec.convert(content, Head)
        return cls(head, lines, labels=labels, digests=digests, size=len(raw), numbers=numbers, path=path)

    def check(self) -> None:
        """Whether periods are in order, labelled apart, of one width, with counts of one kind and the noise
        that is promised.

        Proof: proofs/series.md#series-file.
        """
        head = self.head
        if unfinished(self.schema) or (head.rows.unit is None) != (head.unit_rule is None):
            raise ReleaseError("the first line of this series contradicts itself", remedy=DAMAGED)
        cells, periods = self.cells, self.periods
        fits = all(
            each.number == place
            and len(each.cells) == cells
            and (each.opening is not None) == (place == 1)
            and _without_counts(each) == _without_counts(periods[0])
            for place, each in enumerate(periods, start=1)
        )
        if not fits or len(set(self.labels)) < len(self.labels) or len(self.labels) > self.head.periods:
            raise ReleaseError("the periods of this series contradict each other", remedy=DAMAGED)
        if periods:
            # All windows have one price, and all periods the noise of the first: one release tells of all.
            self.release(1, 1)

    @property
    def cells(self) -> int:
        """How many a line of the stream has."""
        width = self.schema.width
        return width * (width + 1) // 2

    @property
    def length(self) -> int | None:
        """How many numbers of a period are added up; None before the first."""
        return len(numbers_of(self._line(0))) if self._lines else None

    @property
    def periods(self) -> tuple[Period, ...]:
        return tuple(map(self._period, range(len(self._lines))))

    def _line(self, place: int) -> Period | memoryview:
        """From the file where it is not here, if that is still the same."""
        if self._lines[place] is None and self._path is not None:
            again = Stream.of(stream_bytes(self._path)[: self.size])
            if again.digest != self.digest:
                raise ReleaseError(
                    f"{self._path.name} is no longer the file that it was", remedy="Open it again"
                )
            self._lines = list(again.periods)
        line = self._lines[place]
        if line is None:
            raise TypeError("a line that is nowhere")
        return line

    def _period(self, place: int) -> Period:
        line = self._line(place)
        if isinstance(line, memoryview):
            content = json.loads(bytes(line))
            del content["before"]
            self._digests[place + 1] = content.pop("digest")
            line = self._lines[place] = msgspec.convert(content, Period)
        return line

    def _every(self, last: int) -> list[Numbers]:
        """What is added up of each period up to this one."""
        for place in range(last):
            if self._numbers[place] is None:
                self._numbers[place] = numbers_of(self._line(place))
        return [each for each in self._numbers[:last] if each is not None]

    @property
    def head_digest(self) -> str:
        return self._digests[0]

    @property
    def digest(self) -> str:
        """Of the last line, and so of everything."""
        return self._digest(len(self._lines))

    def _digest(self, number: int) -> str:
        """Of the line of this period; of the head for 0."""
        line = self._lines[number - 1] if number else None
        if isinstance(line, memoryview):
            self._digests[number] = _SEALED.decode(line).digest
        return self._digests[number]

    def with_period(self, period: Period, digest: str, size: int, numbers: Numbers) -> Stream:
        """With one line more, of this digest, size and numbers."""
        return Stream(
            self.head,
            [*self._lines, period],
            labels=[*self.labels, period.label],
            digests=[*self._digests, digest],
            size=self.size + size,
            numbers=[*self._numbers, numbers],
            schema=self.schema,
            path=self._path,
        )

    def number(self, period: str | int) -> int:
        """The number of a period by its label, or by its number."""
        place = whole(period)
        if place is not None and 1 <= place <= len(self.labels):
            return place
        if period in self.labels:
            return self.labels.index(str(period)) + 1
        known = f"{self.labels[0]} to {self.labels[-1]}" if self.labels else "none so far"
        raise ReleaseError("the series has no such period", got=repr(period), limit=known)

    @property
    def opening(self) -> StreamOpening | None:
        """None before the first period."""
        return self._period(0).opening if self._lines else None

    def release(self, first: int, last: int) -> Release:
        """The release of the rows of these periods: Σ_s w_s Y_s, rounded to whole numbers.

        Proof: proofs/series.md#series-file.
        """
        head, opening = self.head, self.opening
        if opening is None or not 1 <= first <= last <= len(self.labels):
            raise ReleaseError(
                "the series has no such window", got=f"{first} to {last}", limit=f"1 to {len(self.labels)}"
            )
        part = SeriesPart(
            series=head.series,
            periods=head.periods,
            bits=head.bits,
            participations=head.participations,
            apart=head.apart,
            first=first,
            last=last,
            labels=(self.labels[first - 1], self.labels[last - 1]),
        )
        sigma = opening.sigma * window_norm(first, last, periods=head.periods, bits=head.bits)
        every, size = self._every(last), len(self._period(0).cells)
        cells = weighted(part.weights, np.stack([each[:size] for each in every]))
        counts = iter(sum((each[size:] for each in every[first:]), every[first - 1][size:]).tolist())
        beside = (self._histograms(counts, part.length), *opening.measured, self._clip(counts, part.length))
        measured = [each for each in beside if each is not None]
        return Release(
            library=head.library,
            schema=self.schema,
            radius=opening.radius,
            policy=Policy(missing=head.rows.missing, strict=head.rows.strict),
            adjacency="add-remove",
            unit=head.rows.unit,
            mechanism=MechanismUsed(
                name="gaussian",
                parameters={"sigma": sigma},
                choice=f"a series: the rows of {part}, from noise that all periods share",
            ),
            noise=SymmetricGaussian(sigma=sigma),
            guarantee=head.guarantee,
            entropy=head.entropy,
            published=PublishedMatrix(kind="gram", exponent=0, cells=tuple(map(str, cells))),
            receipt=head.receipt,
            unit_rule=head.unit_rule,
            survey_weight=head.survey_weight,
            measurements=tuple(measured) or None,
            coordinates=opening.coordinates,
            series=part,
        )

    def _histograms(self, counts: Iterator[int], periods: int) -> MeasuredHistograms | None:
        """Counts of periods added up: their noises are independent. All have the kind of the first."""
        one = self._period(0).histograms
        if one is None:
            return None
        columns = tuple(
            msgspec.structs.replace(
                each, counts=_taken(counts, len(each.counts)), lost=_taken(counts, len(each.lost))
            )
            for each in one.columns
        )
        return msgspec.structs.replace(one, columns=columns, scale=one.scale * math.sqrt(periods))

    def _clip(self, counts: Iterator[int], periods: int) -> MeasuredClip | None:
        one = self._period(0).clip
        if one is None:
            return None
        cells = _taken(counts, len(one.cells))
        return msgspec.structs.replace(one, cells=cells, scale=one.scale * math.sqrt(periods))


def _without_counts(period: Period) -> tuple[MeasuredHistograms | None, MeasuredClip | None]:
    """What must be the same in all periods, so that counts can be added up: law, scale, columns and bins."""
    histograms, clip = period.histograms, period.clip
    if histograms is not None:
        columns = tuple(
            msgspec.structs.replace(each, counts=("0",) * len(each.counts), lost=())
            for each in histograms.columns
        )
        histograms = msgspec.structs.replace(histograms, columns=columns)
    return histograms, None if clip is None else msgspec.structs.replace(clip, cells=())


def _taken(counts: Iterator[int], count: int) -> tuple[str, ...]:
    """The next of them, as a file has them."""
    return tuple(map(str, islice(counts, count)))


def secret_path(path: Path) -> Path:
    """The curator's file beside the public one."""
    return path.with_name(path.name + SUFFIX)


def files_of(path: Path) -> tuple[Path, Path]:
    """The public file of a series, and the curator's."""
    return path, secret_path(path)


def stream_bytes(path: Path) -> bytes:
    """What is in the public file."""
    try:
        with opened(path) as stream:
            small = size_of(stream) <= LARGEST_FILE
            return stream.read() if small else b"".join(_lines(stream, path))
    except OSError as problem:
        raise _missing(path, problem) from None


def _lines(stream: BinaryIO, path: Path) -> Iterator[bytes]:
    """Each as long as one can be: the widest series of many periods is large, a file of one line is none."""
    while line := stream.readline(LARGEST_FILE + 1):
        if len(line) > LARGEST_FILE:
            raise ReleaseError(
                f"{path} is not a series: one of its lines is too large",
                limit=f"{LARGEST_FILE:,} bytes",
                remedy="Ask the curator for the original file",
            )
        yield line


def _missing(path: Path, problem: OSError) -> ReleaseError:
    return ReleaseError(f"there is no series at {path}", got=problem.strerror)


def head_of(path: Path) -> Head:
    """The head of the series, whatever follows it."""
    try:
        with opened(path) as stream:
            return Stream.of(next(_lines(stream, path), b"")).head
    except OSError as problem:
        raise _missing(path, problem) from None


def line_ends(raw: bytes) -> list[int]:
    """Where lines end. They are long, so that looking for each is faster than counting or splitting."""
    ends, end = [], raw.find(b"\n")
    while end >= 0:
        ends.append(end)
        end = raw.find(b"\n", end + 1)
    return ends


def _not_a_series() -> ReleaseError:
    return ReleaseError("this is not a series", limit=_FORM)


def _checked(line: bytes, before: str, number: int) -> tuple[Mapping[str, Any], str]:
    """The content of a line that follows the one with the digest `before`."""
    try:
        content = parse_strictly(line)
        if not isinstance(content, dict) or (number == 0 and content.get("format") != FORMAT):
            raise _not_a_series()
        digest = content.pop("digest", None)
        found = sha256_hex(content)
    except ValueError as problem:  # also half of a surrogate pair, which has no bytes to hash
        if number == 0:
            raise unreadable(line, problem, kind="series", form=_FORM) from None
        raise ReleaseError(
            f"line {number + 1} of the series is not clean JSON", got=mistake(problem), remedy=DAMAGED
        ) from None
    if content.get("before") != before or digest != found:
        raise ReleaseError(
            f"line {number + 1} of the series does not match its digest: it was damaged or edited",
            remedy=DAMAGED,
        )
    del content["before"]
    return content, str(digest)

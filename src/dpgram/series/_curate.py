"""The curator's side of a series: create it, publish a period.

What is on disk, and when, so that no crash loses a period or draws two noises for one:

    create    charge (found again by its file beside the ledger) → curator's file → public file
    publish   exact sums into the curator's file → noise, kept beside the series → copy of the new line of
              the public file into the curator's file → that line into the public file

A period that is in the public file is never drawn again, one that was drawn is taken from where it was kept,
and one that was not drawn leaves nothing behind but sums that the next try replaces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import replace
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpgram.core.noise import SystemEntropy
from dpgram.core.units import PolicyCounts
from dpgram.engines.find import find_engine
from dpgram.errors import DpgramError, OptionsError, ReleaseError, warn_caller
from dpgram.files import append, refuse_ledger, write_whole
from dpgram.noise.factor import coefficients
from dpgram.privacy.events import GaussianEvent
from dpgram.publishing.compatibility import refuse_clashes
from dpgram.publishing.publisher import form_of
from dpgram.publishing.request import LedgerLike
from dpgram.publishing.series import (
    DrawnPeriod,
    Opening,
    PeriodWork,
    SeriesTerms,
    charged_series,
    drawn_period,
    forget_period,
    period_drawn,
    series_terms,
)
from dpgram.publishing.split import Adaptive
from dpgram.rows.participation import NOBODY, LeftOut
from dpgram.rows.rules import EVERY_ROW, Rows
from dpgram.schema import Schema
from dpgram.series._records import NO_SUMS, KeptPeriod, combined, lower_sums
from dpgram.series._secret import (
    Secret,
    create_secret,
    open_secret,
    refuse_leftover,
    require_locks,
)
from dpgram.series.stream import (
    START,
    GivenRows,
    Head,
    Period,
    Shares,
    Stream,
    StreamOpening,
    head_of,
    line_ends,
    line_of,
    numbers_of,
    secret_path,
    stream_bytes,
)

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.engines.base import Engine
    from dpgram.engines.threads import Progress
    from dpgram.mechanisms.base import IntegerMatrix
    from dpgram.sums.exact_gram import ExactGram
    from dpgram.sums.participants import ExactParticipants


def create(
    path: Path,
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    periods: int,
    rows: Rows = EVERY_ROW,
    participations: int = 1,
    apart: int = 1,
    adaptive: bool | Adaptive = True,
    ledger: LedgerLike | None = None,
    note: str = "",
    entropy: Entropy | None = None,
) -> None:
    """Charge for the whole horizon and write both files."""
    terms = series_terms(
        schema,
        epsilon=epsilon,
        delta=delta,
        periods=periods,
        rows=rows,
        participations=participations,
        apart=apart,
        adaptive=adaptive,
    )
    if path.exists():
        raise OptionsError(
            f"there is a file at {path} already", remedy="Open that series, or give the new one another name"
        )
    _refuse_place(path)
    label = SystemEntropy().label if entropy is None else entropy.label
    if label != "system" and ledger is not None:
        raise OptionsError("no ledger pays for seeded noise", remedy="Leave the ledger out")
    with charged_series(terms, ledger, note=note, path=path) as (receipt, charge):
        series = SystemEntropy().random_bytes(16).hex()
        request, split = terms.request, terms.request.split
        head = Head(
            library=version("dpgram"),
            series=series,
            schema=request.rules.schema.to_dict(),
            given=request.schema.to_dict(),
            rows=GivenRows.of(rows),
            unit_rule=request.rules.unit_rule,
            survey_weight=request.rules.weight,
            periods=terms.periods,
            participations=terms.participations,
            apart=terms.apart,
            bits=terms.bits,
            shares=Shares(histograms=split.histograms, first=split.first, clip=split.clip),
            guarantee=terms.stated,
            entropy=label,
            receipt=receipt,
        )
        line, digest = line_of(head, START)
        create_secret(secret_path(path), series, head=digest, charge=charge)
        write_whole(path, line, replace=False)


def _refuse_place(path: Path) -> None:
    """Whatever would be in the way of the two files is found before the charge."""
    require_locks()
    refuse_ledger(path)
    if not path.parent.is_dir():
        raise OptionsError(f"there is no folder {path.parent}", remedy="Make it, or give another one")
    if not os.access(path.parent, os.W_OK | os.X_OK):
        raise OptionsError(f"no file can be made in {path.parent}", remedy="Give another folder")
    refuse_leftover(secret_path(path))


def terms_of(head: Head) -> SeriesTerms:
    """What was asked for when the series was created, from its head; its μ is the one that was paid for."""
    given, shares, mu = head.rows, head.shares, head.guarantee.mu
    if mu is None or (head.receipt is not None and head.receipt.event != GaussianEvent(mu=mu)):
        raise ReleaseError(
            "the receipt of this series is not for what it promises", remedy="Put the original file back"
        )
    terms = series_terms(
        Schema.from_dict(head.given),
        epsilon=head.guarantee.epsilon,
        delta=head.guarantee.delta,
        periods=head.periods,
        rows=Rows(
            unit=given.unit,
            unit_rows=given.unit_rows,
            weight=given.weight,
            missing=given.missing,
            strict=given.strict,
            radius=given.radius,
        ),
        participations=head.participations,
        apart=head.apart,
        adaptive=Adaptive(histograms=shares.histograms, first=shares.first, clip=shares.clip)
        if shares.histograms
        else False,
    )
    return replace(terms, bits=head.bits, mu=mu)


def publish(
    path: Path,
    data: object,
    period: str,
    *,
    engine: str | Engine = "auto",
    progress: Progress = None,
    report: Callable[[PolicyCounts], None] | None = None,
    entropy: Entropy | None = None,
) -> Stream:
    """Publish one period: the stream with it. One that is there is left as it is."""
    _refuse_name(period)
    noise = SystemEntropy() if entropy is None else entropy
    with ExitStack() as stack:
        try:
            secret = stack.enter_context(open_secret(secret_path(path), head_of(path).series))
        except DpgramError:
            if period in (stream := Stream.read(path)).labels:  # which needs no curator
                _tell_of_a_repeat(period)
                return stream
            raise
        # Nobody else publishes now; whoever did so a moment ago may have appended a line.
        stream, missing = _continued(path, secret)
        repeated = published_before(path, stream, period)
        _finish(path, stream)
        if period in stream.labels:
            if repeated:
                _tell_of_a_repeat(period)
            return stream
        terms, number = terms_of(stream.head), len(stream.labels) + 1
        _refuse_beyond(stream, number)
        key = period_key(stream, number)
        drawn_before = period_drawn(path, key)
        _refuse_other(path, drawn_before, secret, number, period)
        if number == 1:
            secret.settle()
            if data is None:
                raise OptionsError(
                    "the first period fixes the coordinates of the series, so it needs rows",
                    remedy="Begin with a period that has many of them: it may be all of the past",
                )
        chosen = find_engine(engine, data) if data is not None else None
        if chosen is not None and chosen.passes is not None:
            raise OptionsError(
                "a series reads its first table several times and keeps who took part: sums of sites cannot",
                got=f"engine {chosen.name!r}",
                remedy="Publish where the table is: with engine='local', 'dask' or 'spark'",
            )
        if chosen is not None and number == 1:
            refuse_clashes([*terms.request.options, *form_of(data, chosen)])
        if noise.label != stream.head.entropy:
            raise OptionsError(
                "all periods of a series have noise from one kind of source",
                got=noise.label,
                limit=stream.head.entropy,
            )
        stages = count(1 + len(drawn_before or ()))
        work = PeriodWork(
            terms=terms,
            opening=opening_of(stream),
            begin=_begin(path, secret, stream, period, stages),
            carry=_carry(path, secret, stream, period, stages),
            left_out=left_out_of(secret, stream.head, number),
            report=report,
        )
        with drawn_period(
            data,
            work,
            engine=chosen if chosen is not None else find_engine("local", data),
            entropy=noise,
            receipt=stream.head.receipt,
            path=path,
            key=key,
            progress=progress,
        ) as drawn:
            found = _period(number, period, drawn)
            line, digest = line_of(found, stream.digest)
            numbers = numbers_of(found)
            secret.keep_file(number, missing + line, numbers)
            _append(path, line, stream.size)
            return stream.with_period(found, digest, len(line), numbers)


def published_before(path: Path, stream: Stream, period: str) -> bool:
    """Whether an earlier call is done with it; one that was killed before its end is completed now."""
    if (period,) != stream.labels[-1:]:
        return period in stream.labels
    with suppress(DpgramError):  # it is being published: its line is out
        return period_drawn(path, period_key(stream, len(stream.labels))) is None
    return True


def _tell_of_a_repeat(period: str) -> None:
    warn_caller(
        f"period {period!r} was published before: this table was not read, and nothing has changed. If it "
        "has the rows of a new period, publish it under another name; late rows of this one go into a later "
        "period"
    )


def _refuse_name(period: object) -> None:
    """What cannot be seen in a table must not tell two periods apart."""
    fits = isinstance(period, str) and 1 <= len(period) <= 64 and period.isprintable()
    if not fits or period != str(period).strip():
        raise OptionsError(
            "a period needs a name",
            got=repr(period)[:80],
            limit="1 to 64 letters, without blanks at its ends",
        )


def _continued(path: Path, secret: Secret) -> tuple[Stream, bytes]:
    """The public file, if it is the one that the curator's file has seen, and what that has no copy of.

    Every line was checked or made by us before it was kept: the same bytes are not checked anew.

    Proof: proofs/series.md#series-once.
    """
    raw = stream_bytes(path)
    raw = raw[: raw.rfind(b"\n") + 1]
    ends = line_ends(raw)
    last = len(ends) - 1
    same = last > 0 and secret.has_seen(raw, last)
    if same:
        stream = Stream.known(raw, secret.labels(last), secret.numbers(last), ends=ends, path=path)
    else:
        stream = Stream.of(raw)
    _refuse_changed(stream, secret)
    if stream.labels and not same:
        raise edited(path)
    return stream, b"" if same else raw


def edited(path: Path) -> DpgramError:
    """What to say of a public file that has other lines than the curator's file has seen."""
    return DpgramError(
        f"{path.name} is not the file that {secret_path(path).name} has seen: a line of it was edited",
        remedy="Put the original file back",
    )


def _finish(path: Path, stream: Stream) -> None:
    """The last period needs nothing beside the series; a killed run may have left it there."""
    if stream.labels:
        forget_period(path, period_key(stream, len(stream.labels)))


def _refuse_beyond(stream: Stream, number: int) -> None:
    if number > stream.head.periods:
        raise OptionsError(
            "this series has reached its horizon: no further period was paid for",
            limit=f"{stream.head.periods} periods",
            remedy="Create a new series, which is charged anew",
        )


def period_key(stream: Stream, number: int) -> dict[str, object]:
    """By which what was drawn of a period is found again."""
    return {"series": stream.head.series, "period": number}


def _refuse_changed(stream: Stream, secret: Secret) -> None:
    """Both files must tell of the same terms and periods, and the noise so far must be what was promised."""
    refuse_other_head(stream, secret.head_digest)
    secret.refuse_sizes(sums=stream.cells, numbers=stream.length)
    for number, label in enumerate(stream.labels, start=1):
        if secret.begun(number) not in (label, None):
            raise DpgramError(
                f"period {number} of the series is not the one in {secret.path.name}",
                got=repr(label),
                limit=repr(secret.begun(number)),
                remedy="Put the file back that belongs to the other one",
            )
    if stream.labels:
        stream.release(1, 1)


def refuse_other_head(stream: Stream, digest: str) -> None:
    """The terms must be those of the creation, whose digest the curator has kept."""
    if digest != stream.head_digest:
        raise DpgramError(
            "the first line of the series is not the one it was created with: its terms were edited",
            remedy="Put the original file back",
        )


def _refuse_other(
    path: Path, drawn: Mapping[int, object] | None, secret: Secret, number: int, period: str
) -> None:
    """A period that was begun goes on from what was drawn, and under its own name: no second noise."""
    begun = secret.begun(number)
    if drawn is not None and secret.stages(number) < len(drawn):
        # Who is in a table is kept before anything is drawn of it, in every stage.
        raise DpgramError(
            f"something of period {number} was drawn before, and {secret.path.name} does not know of whom: "
            "it is an old copy",
            remedy="Put the newest copy back, or restore it from kept tables: Series.restore",
        )
    if begun is None:
        return
    if drawn is None:
        # What was drawn is kept beside the series from before the sums are until its line is out.
        raise old_copy(path, begun)
    if begun != period:
        raise OptionsError(
            f"period {begun!r} was begun and interrupted",
            got=repr(period),
            remedy=f"Publish {begun!r} again first: it goes on from where it was",
        )


def old_copy(path: Path, begun: str) -> DpgramError:
    """What to say of a public file that lacks a period which only the curator's file has."""
    return DpgramError(
        f"period {begun!r} was drawn before, and {path.name} does not have it: it is an old copy",
        remedy="Put the newest copy back: a second noise for the same rows is not paid for",
    )


def opening_of(stream: Stream) -> Opening | None:
    """What the first period has fixed; None before it."""
    found = stream.opening
    if found is None:
        return None
    return Opening(
        radius=found.radius, coordinates=found.coordinates, sigma=found.sigma, measured=found.measured
    )


def left_out_of(secret: Secret, head: Head, number: int) -> LeftOut | None:
    """Who may not count in this period; None where a unit is a row.

    Proof: proofs/series.md#series-participation.
    """
    if head.rows.unit is None:
        return None
    past = [each.people for each in secret.past(number)]
    return LeftOut(secret.key, past, participations=head.participations, apart=head.apart)


def _refuse_overtaken(path: Path, stream: Stream) -> None:
    """Somebody with another copy of the curator's file was faster; from here on nobody is."""
    with path.open("rb") as public:
        public.seek(stream.size)
        if any(b"\n" in part for part in iter(lambda: public.read(1 << 20), b"")):
            raise DpgramError(
                f"{path.name} was given another period meanwhile",
                remedy="Keep one curator's file, and try again",
            )


def _begin(
    path: Path, secret: Secret, stream: Stream, period: str, stages: Iterator[int]
) -> Callable[[ExactParticipants | None, bool], None]:
    number = len(stream.labels) + 1

    def begin(people: ExactParticipants | None, first: bool) -> None:
        now = NOBODY if people is None else people.hashes
        before = NOBODY if first else secret.people(number)
        both = np.union1d(before, now)
        _refuse_overtaken(path, stream)
        secret.keep(KeptPeriod(number=number, label=period, sums=NO_SUMS, people=both, stages=next(stages)))

    return begin


def _carry(
    path: Path, secret: Secret, stream: Stream, period: str, stages: Iterator[int]
) -> Callable[[ExactGram, ExactParticipants | None], IntegerMatrix]:
    number = len(stream.labels) + 1
    past = secret.past(number)
    c = coefficients(stream.head.periods, stream.head.bits)
    several = number == 1 and stream.head.shares.histograms > 0.0

    def carry(exact: ExactGram, people: ExactParticipants | None) -> IntegerMatrix:
        now = lower_sums(exact.cells)
        hashes = NOBODY if people is None else people.hashes
        if several:  # whoever was in a table of which something was drawn has counted
            hashes = np.union1d(hashes, secret.people(number))
        _refuse_overtaken(path, stream)
        secret.keep(KeptPeriod(number=number, label=period, sums=now, people=hashes, stages=next(stages)))
        return combined(past, now, c)

    return carry


def _period(number: int, label: str, drawn: DrawnPeriod) -> Period:
    opening = drawn.opening
    return Period(
        number=number,
        label=label,
        cells=drawn.cells,
        histograms=drawn.histograms,
        clip=drawn.clip,
        opening=StreamOpening(
            radius=opening.radius,
            coordinates=opening.coordinates,
            sigma=opening.sigma,
            measured=opening.measured,
        )
        if number == 1
        else None,
    )


def _append(path: Path, line: bytes, size: int) -> None:
    """Durable when this returns; a torn line of a run before this one is cut off."""
    handle = os.open(path, os.O_WRONLY)
    try:
        os.ftruncate(handle, size)
        os.lseek(handle, size, os.SEEK_SET)
        append(handle, line)
    finally:
        os.close(handle)

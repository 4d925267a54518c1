"""A series: one charge for the whole horizon, then period after period a line of a public stream.

    create           the price of everything is fixed from public facts, and charged
    first period     histograms → rough matrix, reach → coordinates; they and σ stay for ever
    every period     Y_t = Σ_{s ≤ t} c_{t−s} X_s + Z_t, histograms, what the clip took

A person counts in at most k periods, at least b apart. μ² of the whole is Δ²/σ² for the stream, k times the
price of one period's counts, and once what only the first period has. Proofs: proofs/series.md.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, TypeAlias, final

from dpgram.core.units import PolicyCounts
from dpgram.document.coordinates import Coordinates
from dpgram.document.fields import MeasuredClip, MeasuredHistograms, MeasuredMatrix, MeasuredReach
from dpgram.document.measurements import histogram_rows, level_count, number_bounds
from dpgram.engines.passes import Pass
from dpgram.errors import GuaranteeError, MechanismError, OptionsError, SchemaError, tell_caller
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import CalibratedGaussian, Gaussian
from dpgram.noise.factor import FACTOR_BITS, checked_horizon, noise_factor, sensitivity_squared
from dpgram.privacy.accountant import Event, GaussianEvent
from dpgram.privacy.count_noise import CountNoise
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.guarantee import GaussianDP
from dpgram.publishing._coordinates import (
    PLAIN_BELOW,
    last_radius,
    radius,
    rank,
    signal,
    standardising,
    whitening,
)
from dpgram.publishing._journal import Kept, drawn_once, forget_once, read_back_once
from dpgram.publishing._open_columns import count_noise
from dpgram.publishing.losses import WatchedEngine
from dpgram.publishing.measurements.gram import FirstGram
from dpgram.publishing.measurements.histograms import Clip, Histograms, Reach
from dpgram.publishing.measurements.stream import CombinedGram, StreamedGram, stream_price
from dpgram.publishing.publication import Account, Prepaid, Program, Stage, paid_before, publication
from dpgram.publishing.request import LedgerLike, Request, check_note, open_ledger, requested
from dpgram.publishing.split import SLACK, Adaptive
from dpgram.publishing.terms import stated
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import EVERY_ROW, Rows
from dpgram.sums.counts import ExactCounts
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.grams import GramStatistic
from dpgram.sums.histograms import HistogramColumn
from dpgram.sums.participants import ExactParticipants, ParticipantsStatistic

if TYPE_CHECKING:
    from pathlib import Path

    from dpgram.core.noise import Entropy
    from dpgram.document.fields import StatedGuarantee
    from dpgram.engines.base import Engine
    from dpgram.engines.passes import Sums
    from dpgram.engines.threads import Progress
    from dpgram.mechanisms.base import IntegerMatrix
    from dpgram.privacy.receipt import Receipt
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.rows.participation import LeftOut
    from dpgram.schema import Schema
    from dpgram.sums.base import Statistic, Sum

_NUDGE: Final = 1.0 + 2.0**-40
"""What a scale is enlarged by, so that rounding can only make it cheaper."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesTerms:
    """Everything that is fixed when a series is created: public facts only."""

    request: Request
    periods: int
    participations: int
    apart: int
    mu: float
    """Of everything that the series will ever publish."""
    bits: int = FACTOR_BITS

    @property
    def price(self) -> Event:
        """Charged once."""
        return GaussianEvent(mu=self.mu)

    @property
    def whole(self) -> float:
        """μ², less what is left free for rounding."""
        return self.mu**2 * SLACK

    @property
    def stated(self) -> StatedGuarantee:
        """What all periods together promise."""
        request = self.request
        return stated(request.guarantee, request.adjacency.name, request.rules.unit, GaussianDP(self.mu))

    @property
    def moved(self) -> int:
        """How far one person moves the stream, squared, in units of 2^60."""
        return sensitivity_squared(self.periods, self.participations, self.apart, self.bits)

    @property
    def middle(self) -> float:
        """The μ at which a row of the first period counts in the running total at the middle of the horizon.

        Coordinates and radius are chosen for that one: later totals have more rows, single periods fewer.
        """
        half = (self.periods + 1) // 2
        facts = {"periods": self.periods, "participations": self.participations, "apart": self.apart}
        return self.mu * half / noise_factor(1, half, bits=self.bits, **facts)

    def stream(self, before: Fraction, encoder: Encoder) -> StreamedGram:
        """A line of the stream, with all that is left of the budget."""
        left = Fraction(self.whole) - before
        sigma = math.sqrt(float(self.moved / left)) * ROW_NORM_SQUARED * _NUDGE
        CalibratedGaussian(sigma=sigma)  # refuses noise that is too large to be drawn
        return StreamedGram(encoder=encoder, sigma=sigma, sensitivity_squared=self.moved)

    def histograms(self) -> Histograms | None:
        """Of every period, all alike. Proof: proofs/series.md#series-counts."""
        share = self.request.split.histograms
        columns = tuple(
            HistogramColumn(name=column.name, bounds=number_bounds(column), levels=level_count(column))
            for column in self.request.rules.schema.columns_read
            if number_bounds(column) is not None or level_count(column)
        )
        noise = self._count_noise(share * self.whole, len(columns), self.participations)
        if noise is None:
            return None
        return Histograms(noise=noise, share=share, units_changed=self.participations, columns=columns)

    def clip(self, encoder: Encoder) -> Clip | None:
        """Of every period, all alike; nothing where the columns are as declared."""
        share = 0.5 * self.request.split.clip
        noise = self._count_noise(share * self.whole, 1, self.participations)
        if noise is None or encoder.coordinates is None:
            return None
        return Clip(noise=noise, share=share, units_changed=self.participations, encoder=encoder)

    def reach(self, encoder: Encoder) -> Reach | None:
        """Of the first period alone, in which a person is once."""
        share = 0.5 * self.request.split.clip
        noise = self._count_noise(share * self.whole, 1, 1)
        return None if noise is None else Reach(noise=noise, share=share, units_changed=1, encoder=encoder)

    def first(self, encoder: Encoder) -> FirstGram | None:
        """Of the first period alone."""
        share, facts = self.request.split.first, self.request.facts(encoder)
        if not share:
            return None
        mechanism = Gaussian().of_mu_squared(share * self.whole, facts)
        return FirstGram(encoder=encoder, mechanism=mechanism, facts=facts, share=share)

    def _count_noise(self, price: float, number: int, times: int) -> CountNoise | None:
        # A person who is in k periods moves the counts of k periods: k times the price of one.
        return count_noise("discrete-gaussian", price, number, times) if price else None

    def plain_encoder(self) -> Encoder:
        """The columns as declared, with the radius that was given."""
        (encoder,) = self.request.encoders(self.request.rules.schema)
        return encoder


def series_terms(
    schema: Schema,
    *,
    epsilon: float,
    delta: float,
    periods: int,
    rows: Rows = EVERY_ROW,
    participations: int = 1,
    apart: int = 1,
    adaptive: bool | Adaptive = True,
) -> SeriesTerms:
    """Check everything that was asked for; raises what is wrong with it. Reads no data, spends nothing."""
    if delta == 0:
        raise GuaranteeError(
            "a series has no pure guarantee: noise whose losses have a bound cannot be shared by all periods",
            got="delta = 0",
            limit="delta > 0",
            remedy="Give a delta such as 1e-6, or publish every period by itself",
        )
    request = requested(
        schema, epsilon=epsilon, delta=delta, rows=rows, adaptive=adaptive, mechanism="gaussian"
    )
    _refuse_open(request)
    if rows.by is not None or schema.blocks is not None:
        raise OptionsError(
            "a series has one matrix: neither groups nor blocks",
            got="Rows(by=…)" if rows.by is not None else "a schema with blocks",
            remedy="Create a series for each group, on the same ledger",
        )
    if rows.weight is not None and not isinstance(rows.weight, str):
        raise OptionsError(
            "the column of survey weights of a series must be one of the schema",
            got="a column of its own",
            remedy='Declare it in the schema and name it: Rows(weight="wgt")',
        )
    horizon, most, distance = checked_horizon(periods, participations, apart)
    if most > 1 and rows.unit is None:
        raise GuaranteeError(
            "without a unit nobody can tell that two rows are of one person",
            got=f"participations = {most} and no unit",
            remedy="Name the column of ids: Rows(unit='patient_id')",
        )
    terms = SeriesTerms(
        request=request,
        periods=horizon,
        participations=most,
        apart=distance,
        mu=discrete_mu_at_most(request.guarantee.epsilon, request.guarantee.delta),
    )
    # What is too small for the proof, or too large to be drawn, is refused before anything is charged.
    encoder = terms.plain_encoder()
    parts = [terms.histograms(), terms.first(encoder), terms.reach(encoder)]
    paid = sum((_price(one) for one in parts if one is not None), Fraction(0))
    terms.stream(paid + Fraction(0.5 * request.split.clip * terms.whole), encoder)
    return terms


def _refuse_open(request: Request) -> None:
    schema = request.rules.schema
    for name, what, line in (
        *((name, "bounds", f"numeric({name!r}, low, high)") for name in schema.unbounded),
        *((name, "levels", f"categorical({name!r}, [...])") for name in schema.without_levels),
    ):
        raise SchemaError(
            f"column {name!r} has no {what}, and a series keeps its columns for all periods",
            remedy=f"Give public ones, {line}, wide enough for what is to come",
        )


@contextlib.contextmanager
def charged_series(
    terms: SeriesTerms, ledger: LedgerLike | None, *, note: str, path: Path
) -> Iterator[tuple[Receipt | None, Path | None]]:
    """The charge for all periods. Until the block ends it is found again by the same call: write the head."""
    book = open_ledger(ledger)
    if book is None:
        yield None, None
        return
    request = terms.request
    account = Account(
        ledger=book,
        adjacency=request.adjacency,
        unit=request.rules.unit,
        note=check_note(note),
        request={
            **request.key,
            "series": str(path.resolve()),
            "periods": terms.periods,
            "participations": terms.participations,
            "apart": terms.apart,
        },
    )
    with paid_before(account, terms.price) as paid:
        yield paid


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Opening:
    """What the first period fixed for all: published results and what follows from them."""

    radius: float
    coordinates: Coordinates | None
    sigma: float
    """Of the stream."""
    measured: tuple[MeasuredMatrix | MeasuredReach, ...] = ()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnPeriod:
    """What is published of one period."""

    cells: tuple[str, ...]
    opening: Opening
    histograms: MeasuredHistograms | None
    clip: MeasuredClip | None


Carry: TypeAlias = "Callable[[ExactGram, ExactParticipants | None], IntegerMatrix]"
"""Keeps this period's exact sums and participants, durably, and gives Σ_{s ≤ t} c_{t−s} X_s."""


Begin: TypeAlias = "Callable[[ExactParticipants | None, bool], None]"
"""Keeps who is in a table before anything is drawn of it, durably; True where nothing was drawn before.

The first period reads its table several times, and an interrupted one may go on with another table: whoever
was in one of them has counted."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PeriodWork:
    """One period under way: what it is about, and what the curator keeps."""

    terms: SeriesTerms
    opening: Opening | None
    """None in the first period."""
    begin: Begin
    carry: Carry
    left_out: LeftOut | None
    """None where a unit is a row."""
    report: Callable[[PolicyCounts], None] | None = None

    def program(self) -> Program[DrawnPeriod]:
        """The stages of this period.

        Proof: proofs/series.md#series-composition.
        """
        terms, counted = self.terms, self.terms.histograms()
        opening = self.opening
        if opening is not None:
            encoder = replace(terms.plain_encoder(), clip=opening.radius, coordinates=opening.coordinates)
            stream = StreamedGram(encoder=encoder, sigma=opening.sigma, sensitivity_squared=terms.moved)
            return (yield from self._measured(stream, opening, counted, None))
        found: MeasuredHistograms | None = None
        measured: tuple[MeasuredMatrix | MeasuredReach, ...] = ()
        encoder, before = terms.plain_encoder(), Fraction(0)
        if counted is not None:
            answer = yield self._stage((counted,))
            (found,) = answer.published
            before = _price(counted)
            encoder, measured, paid = yield from self._coordinates(found)
            before += paid
        clip = terms.clip(encoder)
        stream = terms.stream(before + (Fraction(0) if clip is None else _price(clip)), encoder)
        opening = Opening(
            radius=encoder.radius, coordinates=encoder.coordinates, sigma=stream.sigma, measured=measured
        )
        return (yield from self._measured(stream, opening, None, found))

    def _coordinates(
        self, histograms: MeasuredHistograms
    ) -> Program[tuple[Encoder, tuple[MeasuredMatrix | MeasuredReach, ...], Fraction]]:
        """Coordinates and radius from the rows of the first period, and what they cost."""
        terms, plain = self.terms, self.terms.plain_encoder()
        rows, width = max(histogram_rows(histograms), 1.0), rank(plain.schema)
        told = signal(rows, terms.mu, width)
        if told < PLAIN_BELOW:
            return plain, (), Fraction(0)
        encoder = replace(
            plain,
            clip=radius(rows, terms.middle, width),
            coordinates=standardising(plain.schema, histograms, told),
        )
        first, reach = terms.first(encoder), terms.reach(encoder)
        taken: list[Measurement] = [one for one in (first, reach) if first is not None and one is not None]
        if not taken:
            return encoder, (), Fraction(0)
        answer = yield self._stage(tuple(taken))
        rough, *counts = answer.published
        reach_seen = counts[0] if counts else None
        longest = last_radius(rough, reach_seen, rows=rows, mu=terms.middle, width=width)
        encoder = replace(encoder, coordinates=whitening(rough, rows), clip=longest)
        return encoder, tuple(answer.published), sum(map(_price, taken), Fraction(0))

    def _measured(
        self,
        stream: StreamedGram,
        opening: Opening,
        counted: Histograms | None,
        found: MeasuredHistograms | None,
    ) -> Program[DrawnPeriod]:
        """The line of the stream, the counts beside it, and who took part."""
        clip = self.terms.clip(stream.encoder)
        beside = [one for one in (clip, counted) if one is not None]

        answer = yield self._stage((stream, *beside))
        cells, *counts = answer.published
        taken = counts.pop(0) if clip is not None else None
        return DrawnPeriod(
            cells=cells, opening=opening, clip=taken, histograms=counts[0] if counts else found
        )

    def kept(self, stage: Stage, sums: tuple[Sums, ...]) -> tuple[Any, ...]:
        """What is drawn of: of the stream, the sums of earlier periods too. The curator keeps these first.

        Before the line of the stream a first period has stages of its own, the first of which has histograms.
        """
        if isinstance(stage.measurements[0], StreamedGram):
            exact, people = _kept_sums(sums[0][0], sums[-1][0])
            if self.report is not None:
                self.report(exact.counts)
            return ((CombinedGram(self.carry(exact, people)),), *sums[1 : len(stage.measurements)])
        last = sums[-1][0]
        people = last if isinstance(last, ExactParticipants) else None
        self.begin(people, isinstance(stage.measurements[0], Histograms))
        return sums[: len(stage.measurements)]

    def _stage(self, measurements: tuple[Measurement, ...]) -> Stage:
        """What is drawn, and who took part."""
        people = () if self.left_out is None else (ParticipantsStatistic(self.left_out.key),)
        rules = replace(self.terms.request.rules, left_out=self.left_out)
        return Stage(rules=rules, measurements=measurements, beside=people)


def _price(measurement: Measurement) -> Fraction:
    if isinstance(measurement, StreamedGram):
        return stream_price(measurement.sigma, measurement.sensitivity_squared)
    event = measurement.event
    if not isinstance(event, GaussianEvent):
        raise MechanismError("a series has Gaussian noise alone", remedy="This is a bug: please report it")
    return Fraction(event.mu) ** 2


@contextlib.contextmanager
def drawn_period(
    data: object,
    work: PeriodWork,
    *,
    engine: Engine,
    entropy: Entropy,
    receipt: Receipt | None,
    path: Path,
    key: Mapping[str, object],
    progress: Progress = None,
) -> Iterator[DrawnPeriod]:
    """Draw one period, once. Until the block ends it is kept beside the series: append it to the stream.

    Proof: proofs/series.md#series-once.
    """
    rules = work.terms.request.rules
    with publication(
        work.program(),
        data=data,
        engine=WatchedEngine(engine=engine, rules=rules, tell=tell_caller) if data is not None else NoRows(),
        entropy=entropy,
        adjacency=work.terms.request.adjacency,
        price=work.terms.price,
        account=Prepaid(receipt=receipt, path=path, key=key, carry=work.kept),
        progress=progress,
    ) as found:
        yield found


def period_drawn(path: Path, key: Mapping[str, object]) -> dict[int, Kept] | None:
    """What was drawn of a period that was interrupted, by stages; None where it was not begun.

    One that is being published is refused."""
    return drawn_once(path, key)


def reading_drawn(path: Path, key: Mapping[str, object]) -> contextlib.AbstractContextManager[None]:
    """Around whatever takes up what `period_drawn` gave: one message where it has another form."""
    return read_back_once(path, key)


def forget_period(path: Path, key: Mapping[str, object]) -> None:
    """A period that is in the public file needs nothing beside it; a killed run may have left it there."""
    forget_once(path, key)


@final
class NoRows:
    """The engine of a period of which there is no table: all sums are zero."""

    name = "no rows"
    passes = None

    def accepts(self, data: object) -> bool:
        return data is None

    def add_up(self, data: object, work: Pass, *, progress: Progress = None) -> Sums:
        del data, progress
        return work.zero()


def exact_period(
    data: object, terms: SeriesTerms, opening: Opening, left_out: LeftOut | None, engine: Engine
) -> tuple[ExactGram, ExactParticipants | None]:
    """The exact sums of a period that was published before, from a table that was kept. **Not private.**"""
    encoder = replace(terms.plain_encoder(), clip=opening.radius, coordinates=opening.coordinates)
    statistics: list[Statistic] = [GramStatistic(encoder)]
    if left_out is not None:
        statistics.append(ParticipantsStatistic(left_out.key))
    rules = replace(terms.request.rules, left_out=left_out)
    chosen = engine if data is not None else NoRows()
    sums = chosen.add_up(data, Pass(rules=rules, statistics=tuple(statistics)))
    return _kept_sums(sums[0], sums[-1])


def participants(
    data: object, terms: SeriesTerms, left_out: LeftOut, engine: Engine
) -> tuple[ExactParticipants, ExactCounts | None]:
    """Who is in the table of a first period, as its stages find it, and its histograms. **Not private.**

    None where no histograms are measured.
    """
    rules, counted = replace(terms.request.rules, left_out=left_out), terms.histograms()
    statistics: list[Statistic] = [ParticipantsStatistic(left_out.key)]
    if counted is not None:
        statistics.append(counted.statistic)
    chosen = engine if data is not None else NoRows()
    people, *counts = chosen.add_up(data, Pass(rules=rules, statistics=tuple(statistics)))
    exact = counts[0] if counts else None
    if not isinstance(people, ExactParticipants) or not isinstance(exact, ExactCounts | None):
        raise TypeError(type(people).__name__)
    return people, exact


def _kept_sums(first: Sum, last: Sum) -> tuple[ExactGram, ExactParticipants | None]:
    """The matrix, and who took part where that is asked for."""
    if not isinstance(first, ExactGram):
        raise TypeError(type(first).__name__)
    return first, last if isinstance(last, ExactParticipants) else None

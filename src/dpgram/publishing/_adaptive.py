"""The adaptive release: histograms, a rough matrix, then the matrix in coordinates that follow from them.

    levels, octaves       where the schema leaves something open
    histograms            of every column: where it lies, how much it varies, what was lost
    zoom                  closer histograms of columns whose values lie within a step of theirs
    first matrix          standardised columns, rows clipped: which columns go together
    clip, matrix          whitened columns, rows clipped by their length there

Every stage uses what the ones before it published, and public facts, nothing else. What all of them
cost together is fixed before a row is read (`_adaptive_prices`); a share that turns out not to be needed goes
to the matrix. What can stop the publication (open columns that noise hides, columns that are mostly
unreadable) comes first. Proofs: proofs/adaptive.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, final

from dpgram.document.fields import (
    MeasuredHistograms,
    MeasuredMatrix,
    MeasuredReach,
    MeasuredZoom,
    Measurements,
)
from dpgram.document.measurements import histogram_rows, level_count, number_bounds
from dpgram.engines.threads import one_blas_thread
from dpgram.errors import GuaranteeError, LearningError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Auto, CalibratedMechanism, PublicFacts
from dpgram.privacy.accountant import Event
from dpgram.privacy.count_noise import CountNoise
from dpgram.publishing._adaptive_prices import AdaptiveCalibration, parts_of_blocks
from dpgram.publishing._coordinates import (
    PLAIN_BELOW,
    last_radius,
    radius,
    rank,
    signal,
    standardising,
    whitening,
)
from dpgram.publishing._open_columns import (
    coarse_bounds,
    cost,
    count_noise,
    open_measurements,
    stage,
    with_levels,
)
from dpgram.publishing._zoom import Zoomed, zoom
from dpgram.publishing.losses import NoisyStop
from dpgram.publishing.measurements.each_group import by_group, each_group
from dpgram.publishing.measurements.gram import FirstGram, Gram
from dpgram.publishing.measurements.histograms import Clip, Histograms, Reach
from dpgram.publishing.publication import Program
from dpgram.publishing.request import Request
from dpgram.publishing.split import SLACK
from dpgram.publishing.terms import ReleaseTerms, numbered_blocks, own_guarantee
from dpgram.rows.encoder import Encoder
from dpgram.sums.histograms import HistogramColumn

if TYPE_CHECKING:
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.schema import Schema

BY_NOISE: Final = 1e-5
"""Chance that noise alone stops a publication of which nothing was lost."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """What is known before the last matrix is measured. All of it is published."""

    schema: Schema
    terms: tuple[ReleaseTerms, ...]
    """Of each release: of the matrix, of each group, or of each block."""
    matrices: tuple[Measurement, ...]
    """One for all groups, or for each block."""
    clips: tuple[Measurement | None, ...]
    """Beside each of these."""
    measured: tuple[Measurements, ...]
    """What each release records, in order; the counts of the clip come with the matrix."""


def adapt(calibration: AdaptiveCalibration) -> Program[Adapted]:
    """Stage after stage, each from what the earlier ones published.

    Proof: proofs/adaptive.md#adaptive-composition.
    """
    request = calibration.request
    schema = request.rules.schema
    measured: list[Any] = []
    opened = tuple(
        open_measurements(
            request,
            levels=calibration.levels,
            level_share=request.split.levels,
            level_delta=calibration.level_delta,
            octaves=calibration.octaves,
            octave_share=request.split.bounds,
        )
    )
    if opened:
        answer = yield stage(request, schema, opened)
        measured += answer.published
        schema = with_levels(schema, measured).with_bounds(coarse_bounds(measured, answer.drawn))
    counted = each_group([_histograms(calibration, schema)] * len(request.rules.groups))
    answer = yield stage(request, schema, (counted,))
    histograms: tuple[MeasuredHistograms, ...] = by_group(counted, answer.published[0])
    _refuse_lost(calibration, histograms, answer.drawn)
    # Weighted rows count for less than one each: only histograms tell how many there are in this sense.
    rows = _rows(histograms, None if request.rows_private or request.rules.weight else answer.public_rows)
    zoomed = Zoomed(looks=((),) * len(histograms))
    parts = _parts(calibration, schema)
    clear = [any(signal(one, mu, rank(block)) >= PLAIN_BELOW for block, _, mu in parts) for one in rows]
    if any(clear):
        zoomed = yield from zoom(
            request,
            schema,
            histograms,
            rows,
            clear,
            share=request.split.histograms / len(histograms[0].columns),
            rest=calibration.matrices_rest,
        )
    blocks = _blocks(calibration, parts, histograms, zoomed, rows)
    firsts = tuple(one for block in blocks for one in (block.first, block.reach) if one is not None)
    if firsts:
        answer = yield stage(request, schema, firsts)
        found = iter(answer.published)
        blocks = tuple(block.whitened(found) for block in blocks)
    own = [terms for block in blocks for terms in block.terms()]
    seen = [one.seen for block in blocks for one in block.groups]
    shown, again = histograms * len(blocks), zoomed.looks * len(blocks)
    return Adapted(
        schema=schema,
        terms=tuple(own)
        if request.blocks == 1
        else numbered_blocks(own, calibration.guarantee, calibration.gaussian),
        matrices=tuple(block.matrix() for block in blocks),
        clips=tuple(block.clip for block in blocks),
        measured=tuple(
            (*measured, one, *closer, *after) for one, closer, after in zip(shown, again, seen, strict=True)
        ),
    )


def _histograms(calibration: AdaptiveCalibration, schema: Schema) -> Histograms:
    columns = tuple(
        HistogramColumn(name=column.name, bounds=number_bounds(column), levels=level_count(column))
        for column in schema.columns_read
        if number_bounds(column) is not None or level_count(column)
    )
    share = calibration.request.split.histograms
    noise = count_noise(
        calibration.law, share * calibration.whole * SLACK, len(columns), calibration.units_changed
    )
    if noise is None:
        raise GuaranteeError("histograms need a share of the budget", got=f"{share:g}")
    return Histograms(noise=noise, share=share, units_changed=calibration.units_changed, columns=columns)


def noisy_stop(calibration: AdaptiveCalibration) -> NoisyStop | None:
    """From which loss on `_refuse_lost` stops: every column that is read has a histogram."""
    request, rules = calibration.request, calibration.request.rules
    price = request.split.histograms * calibration.whole * SLACK
    noise = count_noise(calibration.law, price, len(rules.schema.columns_read), calibration.units_changed)
    if noise is None:
        return None
    doubt = _doubt(noise, len(rules.groups), len(rules.schema.columns_read))
    return NoisyStop(at_most=request.split.loss_at_most, doubt=doubt)


def _doubt(noise: CountNoise, groups: int, columns: int) -> float:
    """Rows by which noise may exceed the two cells of what a column lost, in all of these groups."""
    return noise.sum_quantile(2 * groups, BY_NOISE / columns)


def _refuse_lost(
    calibration: AdaptiveCalibration, groups: tuple[MeasuredHistograms, ...], paid: Event | None
) -> None:
    """Stop where noisy counts show beyond doubt that most of a column cannot be read, groups together."""
    limit, law, scale = calibration.request.split.loss_at_most, groups[0].law, groups[0].scale
    rows = max(sum(map(histogram_rows, groups)), 1.0)
    doubt = _doubt(CountNoise(law=law, scale=scale), len(groups), len(groups[0].columns))
    for each, *others in zip(*(one.columns for one in groups), strict=True):
        cells = [one.lost[:2] for one in (each, *others)]
        missing, unread = (sum(map(int, kind)) / ROW_NORM_SQUARED for kind in zip(*cells, strict=True))
        lost = missing + unread
        if lost - doubt > limit * rows:
            raise LearningError(
                f"most values of column {each.column!r} are missing, unreadable or of no declared level",
                got=f"about {_part(missing, rows)} missing and {_part(unread, rows)} unreadable or of no "
                "level, as far as noisy counts can tell",
                limit=f"{limit:.0%}",
                remedy="Run check: it says what is wrong and which line of the schema mends it",
                spent=paid,
                cost=cost(paid),
            )


def _part(count: float, rows: float) -> str:
    return f"{min(max(count / rows, 0.0), 1.0):.0%}"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _GroupPlan:
    """One group of rows, or all of them: its coordinates so far."""

    encoder: Encoder
    rows: float
    """n̂."""
    two: bool
    """Whether a first matrix is worth its price."""
    seen: tuple[MeasuredMatrix | MeasuredReach, ...] = ()
    """What its first stage published."""


@final
@dataclass(frozen=True, kw_only=True)
class _BlockPlan:
    """One block of columns, or all of them: its share of what is left, and the coordinates of every group.

    All groups are measured at the same prices, so that a unit with rows in several of them costs no more: a
    group for which a first matrix is not worth it loses that share where others have one.

    Without slots, so that each measurement is calibrated once.

    Proofs: proofs/adaptive.md#adaptive-composition, proofs/adaptive.md#adaptive-groups.
    """

    calibration: AdaptiveCalibration
    price: float
    """μ² or ε of its matrices and its counts of the clip."""
    share: float
    """Of what is left for all blocks."""
    mu: float
    """That of Gaussian noise as large as that of one matrix at its whole share."""
    groups: tuple[_GroupPlan, ...]
    zoom_price: Fraction
    """What closer histograms have cost, of all blocks together."""

    def _price(self, share: float) -> float:
        """The part of its own price that a share of the whole budget stands for."""
        split = self.calibration.request.split
        return self.price * share / (1.0 - split.histograms - split.bounds - split.levels - self._models)

    @property
    def _models(self) -> float:
        """The share of declared models, where they will be measured: in coordinates."""
        in_coordinates = any(one.encoder.coordinates is not None for one in self.groups)
        return self.calibration.request.split.models if in_coordinates else 0.0

    @property
    def _first_price(self) -> float:
        return self._price(self.calibration.request.split.first)

    def _facts(self, one: _GroupPlan) -> PublicFacts:
        return self.calibration.request.facts(one.encoder)

    @cached_property
    def first(self) -> Measurement | None:
        """The rough matrix of each group that is to have one."""
        return self._measured(lambda one: self._first(one) if one.two else None)

    def _first(self, one: _GroupPlan) -> FirstGram:
        return FirstGram(
            encoder=one.encoder,
            mechanism=self.calibration.mechanism(self._first_price, self._facts(one)),
            facts=self._facts(one),
            share=self._first_price / self.calibration.whole,
        )

    @cached_property
    def reach(self) -> Measurement | None:
        """How far the rows of the same groups reach."""
        return self._lengths(Reach, lambda one: one.two)

    @cached_property
    def clip(self) -> Measurement | None:
        """What the clip of the last matrix takes."""
        return self._lengths(Clip, lambda one: one.encoder.coordinates is not None)

    def _lengths(self, kind: type[Reach | Clip], wanted: Callable[[_GroupPlan], bool]) -> Measurement | None:
        """Counts of lengths, at half of their share each time."""
        calibration, price = self.calibration, self._price(0.5 * self.calibration.request.split.clip)
        noise = count_noise(calibration.law, price, 1, calibration.units_changed)
        if noise is None:
            return None
        share, changed = price / calibration.whole, calibration.units_changed
        return self._measured(
            lambda one: (
                kind(noise=noise, share=share, units_changed=changed, encoder=one.encoder)
                if wanted(one)
                else None
            )
        )

    def _measured(self, made: Callable[[_GroupPlan], Measurement | None]) -> Measurement | None:
        members = [made(one) for one in self.groups]
        return None if all(one is None for one in members) else each_group(members)

    def whitened(self, published: Iterator[Any]) -> _BlockPlan:
        """The same with the coordinates that the first matrices show, and the radius that rows reach."""
        if self.first is None:
            return self
        firsts = by_group(self.first, next(published))
        reaches = (None,) * len(firsts) if self.reach is None else by_group(self.reach, next(published))
        found = zip(self.groups, firsts, reaches, strict=True)
        return replace(self, groups=tuple(self._whitened(*one) for one in found))

    def _whitened(
        self, one: _GroupPlan, first: MeasuredMatrix | None, reach: MeasuredReach | None
    ) -> _GroupPlan:
        if first is None:
            return one
        width = rank(one.encoder.schema)
        # One thread: coordinates do not depend on how many cores there are, and few columns need no more.
        with one_blas_thread():
            longest = last_radius(first, reach, rows=one.rows, mu=self.mu, width=width)
            encoder = replace(one.encoder, coordinates=whitening(first, one.rows), clip=longest)
        return replace(one, encoder=encoder, seen=(first,) if reach is None else (first, reach))

    @cached_property
    def _before(self) -> Fraction:
        """What its measurements before and beside the last matrix cost."""
        paid = [one.event for one in (self.first, self.reach, self.clip) if one is not None]
        return sum((self.calibration.price_of(event) for event in paid), Fraction(0))

    @cached_property
    def _mechanism(self) -> CalibratedMechanism:
        """Of the last matrix, which gets all that is left."""
        left = float(Fraction(self.price) - self._before) * SLACK
        return self.calibration.mechanism(left, self._facts(self.groups[0]))

    def matrix(self) -> Measurement:
        """The last matrix of every group."""
        mechanism = self._mechanism
        return each_group(
            [Gram(encoder=one.encoder, mechanism=mechanism, facts=self._facts(one)) for one in self.groups]
        )

    def terms(self) -> Iterator[ReleaseTerms]:
        """Of the last matrix of each group."""
        calibration, mechanism = self.calibration, self._mechanism
        request = calibration.request
        guarantee, gaussian = calibration.guarantee, calibration.gaussian
        if request.blocks > 1:
            event = mechanism.event(self._facts(self.groups[0]))
            before = calibration.first_price + self.zoom_price + self._before
            spent = before + calibration.price_of(event)
            guarantee, gaussian = own_guarantee(request, calibration.family, spent, calibration.level_delta)
        for one in self.groups:
            facts = self._facts(one)
            yield ReleaseTerms(
                encoder=one.encoder,
                facts=facts,
                guarantee=guarantee,
                mechanism=mechanism,
                event=mechanism.event(facts),
                gaussian=gaussian,
                reason=_reason(request, one, self.share),
                rules=replace(request.rules, schema=one.encoder.schema),
            )


def _rows(histograms: Sequence[MeasuredHistograms], public_rows: int | None) -> list[float]:
    """n̂ of each group."""
    return [max(float(public_rows or 0) or histogram_rows(one), 1.0) for one in histograms]


def _parts(calibration: AdaptiveCalibration, schema: Schema) -> list[tuple[Schema, float, float]]:
    """Every block, its part of what is left, and the μ of Gaussian noise as large as that of one matrix."""
    return [
        (one, part, calibration.mu(rank(one)) * math.sqrt(part))
        for one, part in zip(schema.in_blocks(), parts_of_blocks(schema, calibration.family), strict=True)
    ]


def _blocks(
    calibration: AdaptiveCalibration,
    parts: Sequence[tuple[Schema, float, float]],
    histograms: tuple[MeasuredHistograms, ...],
    zoomed: Zoomed,
    rows: Sequence[float],
) -> tuple[_BlockPlan, ...]:
    """What each block is measured with: its part of the budget, and the coordinates that histograms show."""
    plans = []
    for schema, part, mu in parts:
        share = part * (1.0 if len(parts) == 1 else SLACK)
        seen = zip(histograms, zoomed.looks, rows, strict=True)
        found = [_group(calibration.request, schema, mu, *each) for each in seen]
        # Declared models are measured where there are coordinates: else the matrix has their share.
        in_coordinates = any(each.encoder.coordinates is not None for each in found)
        rest = calibration.matrices_rest if in_coordinates else calibration.rest
        plans.append(
            _BlockPlan(
                calibration=calibration,
                price=float(rest - zoomed.price) * SLACK * share,
                share=share,
                mu=mu,
                groups=tuple(found),
                zoom_price=zoomed.price,
            )
        )
    return tuple(plans)


def _group(
    request: Request,
    schema: Schema,
    mu: float,
    histograms: MeasuredHistograms,
    closer: tuple[MeasuredZoom, ...],
    rows: float,
) -> _GroupPlan:
    """The standardised coordinates of one group, where its rows suffice for them."""
    width = rank(schema)
    encoder = Encoder(schema, missing=request.rules.missing, strict=request.rules.strict)
    told = signal(rows, mu, width)
    if told < PLAIN_BELOW:
        return _GroupPlan(encoder=encoder, rows=rows, two=False)
    standardised = replace(
        encoder, clip=radius(rows, mu, width), coordinates=standardising(schema, histograms, told, closer)
    )
    return _GroupPlan(encoder=standardised, rows=rows, two=bool(request.split.first))


def _reason(request: Request, one: _GroupPlan, share: float) -> str:
    how = "measured in standardised columns"
    if one.encoder.coordinates is None:
        how = "measured in the declared columns, since noisy counts show too few rows for better ones"
    elif one.two:
        how = "measured in coordinates that a first matrix showed"
    asked = "auto" if isinstance(request.mechanism, Auto) else "asked for by name"
    part = "" if request.blocks == 1 else f", with {share:.1%} of what is left for the matrices"
    return f"{asked}: {how}{part}"

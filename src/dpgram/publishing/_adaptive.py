"""The adaptive release: histograms, a rough matrix, then the matrix in coordinates that follow from them.

    levels, octaves       where the schema leaves something open
    histograms            of every column: where it lies, how much it varies, what was lost
    first matrix          standardised columns, rows clipped: which columns go together
    clip, matrix          whitened columns, rows clipped by their length there

Every stage uses what the ones before it published, and public facts, nothing else. μ² = Σ μᵢ² (or ε = Σ εᵢ),
fixed before a row is read; a share that turns out not to be needed goes to the matrix. What could stop the
publication (open columns that noise hides, columns that are mostly unreadable) is charged first, the rest
only if it goes on. Proofs: proofs/adaptive.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, final

from dpgram.document.fields import (
    MeasuredHistograms,
    MeasuredLevels,
    MeasuredMatrix,
    MeasuredOctaves,
    MeasuredReach,
    Measurements,
)
from dpgram.document.measurements import histogram_rows, level_count, number_bounds
from dpgram.document.octaves import OctaveRun
from dpgram.engines.passes import Pass
from dpgram.errors import GuaranteeError, LearningError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Auto, CalibratedMechanism, Gaussian, MatrixLaplace, PublicFacts
from dpgram.privacy.accountant import (
    ApproximateEvent,
    Currency,
    Event,
    GaussianEvent,
    PureEvent,
    composed,
    describe,
)
from dpgram.privacy.count_noise import CountLaw, CountNoise, price_of_counts
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.exact_sums import float_up, root_up
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.publishing._coordinates import (
    PLAIN_BELOW,
    radius,
    rank,
    reached,
    signal,
    standardising,
    whitening,
)
from dpgram.publishing._learning import count_noise
from dpgram.publishing.measurements.counts import Octaves
from dpgram.publishing.measurements.gram import FirstGram
from dpgram.publishing.measurements.histograms import Clip, Histograms, Reach
from dpgram.publishing.measurements.levels import Levels
from dpgram.publishing.publication import Program, Stage
from dpgram.publishing.request import Request
from dpgram.publishing.terms import ReleaseTerms, numbered_blocks, own_guarantee
from dpgram.rows.encoder import Encoder
from dpgram.sums.histograms import HistogramColumn

if TYPE_CHECKING:
    from dpgram.engines.passes import Sums
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.schema import Schema

Family: TypeAlias = Literal["gaussian", "pure"]
_SLACK: Final = 1.0 - 2.0**-40
"""What is left free for rounding, so that all parts together never cost more than the whole."""
_NARROWEST: Final = 2.0**-20
"""The part of what is left that a block gets at least, however many levels are found: that of one column
beside ten thousand."""
SURE_LOSS: Final = 4.0
"""Noise deviations by which a loss must exceed what is allowed before a publication stops for it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveCalibration:
    """Every price of the event, fixed before a row is read: public facts only."""

    request: Request
    family: Family
    whole: float
    """μ² or ε of everything."""
    levels: CountNoise | None
    octaves: CountNoise | None
    level_delta: float
    first_price: Fraction
    """Of levels, octaves and histograms, at most."""
    guarantee: Guarantee
    gaussian: GaussianDP | None

    @property
    def law(self) -> CountLaw:
        return "discrete-gaussian" if self.family == "gaussian" else "discrete-laplace"

    @property
    def rest(self) -> Fraction:
        """What is left for the matrices and the counts of the clip."""
        return Fraction(self.whole * _SLACK) - self.first_price

    @property
    def units_changed(self) -> int:
        """1 under add/remove, 2 under replace-one."""
        return self.request.adjacency.units_changed

    @property
    def charges(self) -> tuple[Event, Event]:
        """What could stop the publication, then the rest."""
        leak = [ApproximateEvent(epsilon=0.0, delta=self.level_delta)] if self.level_delta else []
        return composed([self.event(self.first_price), *leak]), self.event(self.rest)

    @property
    def price(self) -> Event:
        """Both charges together."""
        return composed(self.charges)

    def event(self, price: Fraction) -> Event:
        if self.family == "gaussian":
            return GaussianEvent(mu=root_up(price))
        return PureEvent(epsilon=float_up(price))

    def mechanism(self, price: float, facts: PublicFacts) -> CalibratedMechanism:
        """The noise of a matrix at this price."""
        if self.family == "gaussian":
            return Gaussian().of_mu_squared(price, facts)
        return MatrixLaplace().calibrated(Guarantee(price), facts)

    def mu(self, width: int) -> float:
        """The μ of Gaussian noise as large as that of one matrix at the whole price."""
        if self.family == "gaussian":
            return math.sqrt(self.whole / self.units_changed)
        return self.whole / (self.units_changed * math.sqrt(width + 1.0))


def adaptive_family(request: Request, currency: Currency | None) -> Family | None:
    """How the noise of two matrices composes under what was asked for; nothing where there is to be one."""
    if not request.split.histograms:
        return None
    asked = request.mechanism
    if isinstance(asked, Auto):
        return "pure" if request.guarantee.pure or currency == "epsilon" else "gaussian"
    return "gaussian" if asked.gaussian else "pure"


def calibrate_adaptive(request: Request, family: Family) -> AdaptiveCalibration:
    """Prices such that all parts together keep the guarantee, exactly. Reads no data.

    Proof: proofs/adaptive.md#adaptive-composition.
    """
    guarantee, split, schema = request.guarantee, request.split, request.rules.schema
    level_delta = split.levels * guarantee.delta
    whole = guarantee.epsilon
    if family == "gaussian":
        whole = discrete_mu_at_most(guarantee.epsilon, guarantee.delta - level_delta) ** 2
    law: CountLaw = "discrete-gaussian" if family == "gaussian" else "discrete-laplace"
    units_changed = request.adjacency.units_changed
    numbers = {"levels": len(schema.without_levels), "octaves": len(schema.unbounded)}
    noises = {
        "levels": count_noise(law, split.levels * whole, numbers["levels"], units_changed),
        "octaves": count_noise(law, split.bounds * whole, numbers["octaves"], units_changed),
    }
    paid = [
        price_of_counts(law, noise.scale, histograms=numbers[part], units_changed=units_changed)
        for part, noise in noises.items()
        if noise is not None
    ]
    first_price = sum(paid, Fraction(0)) + Fraction(split.histograms * whole)
    if split.levels and level_delta == 0.0:
        raise GuaranteeError("so small a share of delta cannot pay for levels", got=f"{level_delta:g}")
    made = AdaptiveCalibration(
        request=request,
        family=family,
        whole=whole,
        level_delta=level_delta,
        first_price=first_price,
        guarantee=Guarantee(guarantee.epsilon, level_delta) if family == "pure" else guarantee,
        gaussian=GaussianDP(math.sqrt(whole)) if family == "gaussian" and not level_delta else None,
        **noises,
    )
    # Noise that is too small for the proof, or too large to be drawn, is refused before anything is charged:
    # the largest prices of one matrix and of one histogram, and the smallest of what may come later.
    smallest = min(_parts_of_blocks(schema, family)) if not schema.without_levels else _NARROWEST
    later = [smallest * share * float(made.rest) for share in (split.first, 0.5 * split.clip)]
    for price in (float(made.rest), split.histograms * whole, *later):
        count_noise(law, price, 1, units_changed)
    return made


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Adapted:
    """What is known before the last matrix is measured. All of it is published."""

    schema: Schema
    terms: tuple[ReleaseTerms, ...]
    """Of the matrix, or of each block."""
    clips: tuple[Clip | None, ...]
    measured: tuple[Measurements, ...]
    """What each block's release records, in order; the counts of the clip come with the matrix."""
    charge: Event | None
    """What is still to be charged."""


def adapt(calibration: AdaptiveCalibration, inspect: Callable[[Pass, Sums], None]) -> Program[Adapted]:
    """Stage after stage, each from what the earlier ones published.

    Proof: proofs/adaptive.md#adaptive-composition.
    """
    request = calibration.request
    schema = request.rules.schema
    first_charge, rest_charge = calibration.charges
    charge: Event | None = first_charge
    measured: list[Any] = []
    opened = tuple(_open_measurements(calibration))
    if opened:
        answer = yield _stage(calibration, schema, opened, charge, inspect)
        measured += answer.published
        charge = None
        schema = _closed(calibration, schema, measured)
    counted = _histograms(calibration, schema)
    answer = yield _stage(calibration, schema, (counted,), charge, inspect)
    (histograms,) = answer.published
    measured.append(histograms)
    _refuse_lost(calibration, histograms)
    rows = max(float(answer.public_rows or histogram_rows(histograms)), 1.0)
    blocks = _blocks(calibration, schema, histograms, rows)
    charge = rest_charge
    rough = [(block.first, block.reach) for block in blocks if block.two]
    if rough:
        firsts = tuple(one for pair in rough for one in pair if one is not None)
        answer = yield _stage(calibration, schema, firsts, charge, inspect)
        charge = None
        found = iter(answer.published)
        blocks = tuple(block.whitened(found) if block.two else block for block in blocks)
    own = [block.terms() for block in blocks]
    return Adapted(
        schema=schema,
        terms=tuple(own)
        if request.blocks == 1
        else numbered_blocks(own, calibration.guarantee, calibration.gaussian),
        clips=tuple(block.clip() for block in blocks),
        measured=tuple((*measured, *block.seen) for block in blocks),
        charge=charge,
    )


def _open_measurements(calibration: AdaptiveCalibration) -> Iterator[Measurement]:
    schema, split = calibration.request.rules.schema, calibration.request.split
    if calibration.levels is not None:
        yield Levels(
            noise=calibration.levels,
            share=split.levels,
            units_changed=calibration.units_changed,
            delta=calibration.level_delta,
            columns=schema.without_levels,
        )
    if calibration.octaves is not None:
        yield Octaves(
            noise=calibration.octaves,
            share=split.bounds,
            units_changed=calibration.units_changed,
            columns=schema.unbounded,
        )


def _closed(calibration: AdaptiveCalibration, schema: Schema, measured: list[Any]) -> Schema:
    """The schema with the levels and the coarse bounds that were found."""
    for each in measured:
        if isinstance(each, MeasuredLevels):
            schema = schema.with_levels({found.column: found.levels for found in each.columns})
        if isinstance(each, MeasuredOctaves):
            bounds = {}
            for found in each.columns:
                if not found.cells:
                    raise _hidden(calibration, found.column)
                last = found.first + len(found.cells) - 1
                bounds[found.column] = OctaveRun(first=found.first, last=last).bounds
            schema = schema.with_bounds(bounds)
    return schema


def _hidden(calibration: AdaptiveCalibration, column: str) -> LearningError:
    paid = calibration.charges[0]
    return LearningError(
        f"noise hides the values of column {column!r}: no power of two holds enough of them",
        remedy="Give public bounds for it, a larger epsilon, or a larger share, Adaptive(bounds=…)",
        spent=paid,
        cost=f"{describe(paid)}, of what the whole release would have cost",
    )


def _histograms(calibration: AdaptiveCalibration, schema: Schema) -> Histograms:
    columns = tuple(
        HistogramColumn(name=column.name, bounds=number_bounds(column), levels=level_count(column))
        for column in schema.columns_read
        if number_bounds(column) is not None or level_count(column)
    )
    share = calibration.request.split.histograms
    noise = count_noise(
        calibration.law, share * calibration.whole * _SLACK, len(columns), calibration.units_changed
    )
    if noise is None:
        raise GuaranteeError("histograms need a share of the budget", got=f"{share:g}")
    return Histograms(noise=noise, share=share, units_changed=calibration.units_changed, columns=columns)


def _refuse_lost(calibration: AdaptiveCalibration, measured: MeasuredHistograms) -> None:
    """Stop where noisy counts show beyond doubt that most of a column cannot be read."""
    limit = calibration.request.split.loss_at_most
    noise, rows = CountNoise(law=measured.law, scale=measured.scale), max(histogram_rows(measured), 1.0)
    for each in measured.columns:
        missing, unread = (int(cell) / ROW_NORM_SQUARED for cell in each.lost[:2])
        lost = missing + unread
        doubt = SURE_LOSS * noise.deviation * math.sqrt(2.0)
        if lost - doubt > limit * rows:
            paid = calibration.charges[0]
            raise LearningError(
                f"most values of column {each.column!r} are missing, unreadable or of no declared level",
                got=f"about {_part(missing, rows)} missing and {_part(unread, rows)} unreadable or of no "
                "level, as far as noisy counts can tell",
                limit=f"{limit:.0%} (Adaptive(loss_at_most=…))",
                remedy="Run check: it says what is wrong and which line of the schema mends it",
                spent=paid,
                cost=f"{describe(paid)}, of what the whole release would have cost",
            )


def _part(count: float, rows: float) -> str:
    return f"{min(max(count / rows, 0.0), 1.0):.0%}"


def _stage(
    calibration: AdaptiveCalibration,
    schema: Schema,
    measurements: tuple[Measurement, ...],
    charge: Event | None,
    inspect: Callable[[Pass, Sums], None],
) -> Stage:
    work = Pass(
        rules=replace(calibration.request.rules, schema=schema),
        statistics=tuple(one.statistic for one in measurements),
    )
    return Stage(
        work=work, measurements=measurements, charge=charge, inspect=lambda sums: inspect(work, sums)
    )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _BlockPlan:
    """One block of columns, or all of them: its share of what is left, and its coordinates so far.

    Proof: proofs/adaptive.md#adaptive-composition.
    """

    calibration: AdaptiveCalibration
    encoder: Encoder
    price: float
    """μ² or ε of its matrices and its counts of the clip."""
    rows: float
    """n̂ of one group."""
    mu: float
    """That of Gaussian noise as large as that of one matrix at its whole share."""
    reason: str
    two: bool
    seen: tuple[MeasuredMatrix | MeasuredReach, ...] = ()
    """What its first stage published."""

    @property
    def facts(self) -> PublicFacts:
        return self.calibration.request.facts(self.encoder)

    def _price(self, share: float) -> float:
        """The part of its own price that a share of the whole budget stands for."""
        split = self.calibration.request.split
        return self.price * share / (1.0 - split.histograms - split.bounds - split.levels)

    @property
    def first_price(self) -> float:
        return self._price(self.calibration.request.split.first)

    @property
    def first(self) -> FirstGram:
        return FirstGram(
            encoder=self.encoder,
            mechanism=self.calibration.mechanism(self.first_price, self.facts),
            facts=self.facts,
            share=self.first_price / self.calibration.whole,
        )

    @property
    def reach(self) -> Reach | None:
        noise = self._counting
        if noise is None:
            return None
        return Reach(noise=noise, **self._counted)

    def clip(self) -> Clip | None:
        noise = self._counting
        if self.encoder.coordinates is None or noise is None:
            return None
        return Clip(noise=noise, **self._counted)

    @property
    def _counting(self) -> CountNoise | None:
        """Of lengths, at half of their share each time."""
        price = self._price(0.5 * self.calibration.request.split.clip)
        return count_noise(self.calibration.law, price, 1, self.calibration.units_changed)

    @property
    def _counted(self) -> dict[str, Any]:
        price = self._price(0.5 * self.calibration.request.split.clip)
        return {
            "share": price / self.calibration.whole,
            "units_changed": self.calibration.units_changed,
            "encoder": self.encoder,
        }

    def whitened(self, published: Iterator[Any]) -> _BlockPlan:
        """The same with the coordinates that its first matrix shows, and the radius that rows reach."""
        groups = len(self.calibration.request.rules.groups)
        first: MeasuredMatrix = next(published)
        seen: tuple[MeasuredMatrix | MeasuredReach, ...] = (first,)
        longest = self.encoder.radius
        if self.reach is not None:
            reach: MeasuredReach = next(published)
            seen = (first, reach)
            longest = reached(
                reach, longest, rows=self.rows * groups, mu=self.mu, width=rank(self.encoder.schema)
            )
        coordinates = whitening(first, self.rows * groups)
        return replace(self, seen=seen, encoder=replace(self.encoder, coordinates=coordinates, clip=longest))

    def terms(self) -> ReleaseTerms:
        """Of its last matrix, which gets all that is left."""
        calibration, clip, facts = self.calibration, self.clip(), self.facts
        before = Fraction(0)
        if self.seen:
            before += _price_of(calibration, calibration.mechanism(self.first_price, facts).event(facts))
        if self.seen and self.reach is not None:
            before += _price_of(calibration, self.reach.event)
        if clip is not None:
            before += _price_of(calibration, clip.event)
        mechanism = calibration.mechanism(float(Fraction(self.price) - before) * _SLACK, facts)
        single = calibration.request.blocks == 1
        if single:
            guarantee, gaussian = calibration.guarantee, calibration.gaussian
        else:
            spent = before + calibration.first_price + _price_of(calibration, mechanism.event(facts))
            guarantee, gaussian = own_guarantee(
                calibration.request, calibration.family, spent, calibration.level_delta
            )
        return ReleaseTerms(
            encoder=self.encoder,
            facts=facts,
            guarantee=guarantee,
            mechanism=mechanism,
            event=mechanism.event(facts),
            gaussian=gaussian,
            reason=self.reason,
            rules=replace(calibration.request.rules, schema=self.encoder.schema),
        )


def _price_of(calibration: AdaptiveCalibration, event: Event) -> Fraction:
    if isinstance(event, GaussianEvent):
        return Fraction(event.mu) ** 2
    if isinstance(event, PureEvent):
        return Fraction(event.epsilon)
    raise GuaranteeError(f"no price in the currency of {calibration.family} noise", got=describe(event))


def _blocks(
    calibration: AdaptiveCalibration, schema: Schema, histograms: MeasuredHistograms, rows: float
) -> tuple[_BlockPlan, ...]:
    """Budget shares of all blocks by their widths, for the least Σ d_b·σ_b²; rows by group."""
    request = calibration.request
    rows /= len(request.rules.groups)
    schemas, parts = schema.in_blocks(), _parts_of_blocks(schema, calibration.family)
    plans = []
    for one, part in zip(schemas, parts, strict=True):
        width = rank(one)
        mu = calibration.mu(width) * math.sqrt(part)
        told = signal(rows, mu, width) >= PLAIN_BELOW
        two = told and bool(request.split.first)
        encoder = Encoder(one, missing=request.rules.missing, strict=request.rules.strict)
        if told:
            encoder = replace(
                encoder, clip=radius(rows, mu, width), coordinates=standardising(one, histograms)
            )
        share = part * (1.0 if len(parts) == 1 else _SLACK)
        plans.append(
            _BlockPlan(
                calibration=calibration,
                encoder=encoder,
                price=float(calibration.rest) * _SLACK * share,
                rows=rows,
                mu=mu,
                reason=_reason(request, encoder, two, share, len(parts)),
                two=two,
            )
        )
    return tuple(plans)


def _parts_of_blocks(schema: Schema, family: Family) -> list[float]:
    """Of what is left for the matrices, by widths: for the least Σ d_b·σ_b²."""
    power = 1.5 if family == "gaussian" else 4.0 / 3.0
    costs = [float(one.width) ** power for one in schema.in_blocks()]
    return [cost / sum(costs) for cost in costs]


def _reason(request: Request, encoder: Encoder, two: bool, share: float, blocks: int) -> str:
    how = "measured in standardised columns"
    if encoder.coordinates is None:
        how = "measured in the declared columns, since noisy counts show too few rows for better ones"
    elif two:
        how = "measured in coordinates that a first matrix showed"
    asked = "auto" if isinstance(request.mechanism, Auto) else "asked for by name"
    part = "" if blocks == 1 else f", with {share:.1%} of what is left for the matrices"
    return f"{asked}: {how}{part}"

"""Bounds and levels where they are not public, for mechanisms that keep to one matrix in encoded columns.

μ² = Σ μᵢ² (or ε = Σ εᵢ) over rows, levels, octaves, bins and the matrix, each a share of the event's
currency that is fixed before a row is read; learnt levels add a share of δ. Each part sees only what the
parts before it published. What can stop the publication (rows, levels, octaves) comes first.
proofs/bounds.md
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, final

from dpgram.document.fields import (
    MeasuredBins,
    MeasuredRows,
    Measurements,
)
from dpgram.document.measurements import latest
from dpgram.errors import LearningError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    Auto,
    CalibratedGaussian,
    CalibratedMechanism,
    Gaussian,
    MatrixLaplace,
    Mechanism,
    PublicFacts,
)
from dpgram.mechanisms.choice import choose
from dpgram.privacy.accountant import (
    ApproximateEvent,
    Currency,
    Event,
    GaussianEvent,
    PureEvent,
    composed,
)
from dpgram.privacy.count_noise import CountLaw, CountNoise, price_of_counts, scale_of_counts
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.exact_sums import float_up, root_up
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.publishing._blocks import gaussian_shares, pure_shares
from dpgram.publishing._bounds import fine_bounds, reach_for, rows_needed
from dpgram.publishing._open_columns import (
    coarse_bounds,
    cost,
    count_noise,
    open_measurements,
    stage,
    too_little,
    with_levels,
)
from dpgram.publishing.measurements.counts import Bins, RowCount
from dpgram.publishing.publication import Program
from dpgram.publishing.request import Request
from dpgram.publishing.split import SLACK, PartShares
from dpgram.publishing.terms import ReleaseTerms, gaussian_block, numbered_blocks, pure_block
from dpgram.rows.encoder import Encoder
from dpgram.sums.zoom import zoom_steps

if TYPE_CHECKING:
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.schema import Schema

Family: TypeAlias = Literal["gaussian", "pure", "approximate"]
"""How the noise of the matrix composes with that of the counts: in μ², in ε, or (ε, δ) beside pure counts."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LearningCalibration:
    """Every noise of the event, fixed before a row is read: public facts only."""

    request: Request
    family: Family
    mechanism: Mechanism | Auto
    """Of the matrix; its noise is calibrated to `matrix_price` when its columns are known."""
    rows_at_most: int | None
    """For more rows the mechanism's arithmetic is not proven."""
    law: CountLaw
    shares: PartShares
    count: CountNoise | None
    octaves: CountNoise | None
    bins: CountNoise | None
    levels: CountNoise | None
    level_delta: float
    matrix_price: float
    """μ² or ε for the matrix, or for all blocks of it."""
    price_before: Fraction
    """μ² or ε of everything measured before it."""
    guarantee: Guarantee
    gaussian: GaussianDP | None
    price: Event
    """Charged before anything is drawn."""

    @property
    def units_changed(self) -> int:
        """1 under add/remove, 2 under replace-one."""
        return self.request.adjacency.units_changed

    def norm_of(self, width: int) -> float:
        """E‖N‖ of noise on `width` columns, for rows of length 1, in rows: a forecast, to choose by."""
        if self.family == "pure":
            facts = PublicFacts(width=width, adjacency=self.request.adjacency)
            law: Any = MatrixLaplace().calibrated(Guarantee(self.matrix_price), facts).law(width)
        else:
            square = self.matrix_price
            if self.family == "approximate":
                square = discrete_mu_at_most(self.matrix_price, self.request.guarantee.delta) ** 2
            scale = scale_of_counts(
                "discrete-gaussian", square, histograms=1, units_changed=self.units_changed
            )
            law = CalibratedGaussian(sigma=scale).law(width)
        return float(law.expected_norm(width)) / ROW_NORM_SQUARED


def calibrate_learning(request: Request, currency: Currency | None) -> LearningCalibration:
    """Noise for every part such that all together keep the guarantee, exactly. Reads no data.

    Proofs: proofs/bounds.md#bounds-composition, proofs/measurements.md#measurements-composition.
    """
    family, asked = _family(request, currency)
    law: CountLaw = "discrete-gaussian" if family == "gaussian" else "discrete-laplace"
    guarantee, split, schema = request.guarantee, request.split, request.rules.schema
    level_delta = split.levels * guarantee.delta
    if split.levels and level_delta == 0.0:
        raise too_little(split.levels)
    whole = guarantee.epsilon
    if family == "gaussian":
        whole = discrete_mu_at_most(guarantee.epsilon, guarantee.delta - level_delta) ** 2
    shares = split.parts(private_rows=request.rows_private)
    columns = len(schema.unbounded)
    histograms = {
        "count": 1,
        "levels": len(schema.without_levels),
        "octaves": columns,
        "bins": columns * zoom_steps(law),
    }
    units_changed = request.adjacency.units_changed
    noises = {
        part: count_noise(law, getattr(shares, part) * whole, count, units_changed)
        for part, count in histograms.items()
    }

    def price(*parts: str) -> Fraction:
        found = [
            price_of_counts(law, noise.scale, histograms=histograms[part], units_changed=units_changed)
            for part in parts
            if (noise := noises[part]) is not None
        ]
        return sum(found, Fraction(0))

    first, later = price("count", "levels", "octaves"), price("bins")
    matrix_price = (1.0 - split.total) * whole * SLACK
    if level_delta:
        # Counts with the least noise that is proven cost less than their share: the matrix has the rest, so
        # that a ledger is charged for all of the (ε, δ) that is promised.
        matrix_price = max(matrix_price, float(Fraction(whole) - first - later) * SLACK)
    if first + later + Fraction(matrix_price) > Fraction(whole):
        raise MechanismError(
            "the parts of this event cost more than the whole", remedy="This is a bug: please report it"
        )
    total = first + later + Fraction(matrix_price)
    matrix = _matrix_of_known_columns(request, asked, matrix_price) if family == "approximate" else None
    kind = asked if matrix is None else matrix.mechanism.kind
    return LearningCalibration(
        request=request,
        family=family,
        mechanism=asked,
        rows_at_most=None if isinstance(kind, Auto) else kind.rows_at_most,
        law=law,
        shares=shares,
        level_delta=level_delta,
        matrix_price=matrix_price,
        price_before=first + later,
        guarantee=Guarantee(guarantee.epsilon, level_delta) if family == "pure" else guarantee,
        gaussian=GaussianDP(root_up(total)) if family == "gaussian" and not level_delta else None,
        price=_price(family, matrix, first + later, matrix_price, level_delta),
        **noises,
    )


def _family(request: Request, currency: Currency | None) -> tuple[Family, Mechanism | Auto]:
    asked = request.mechanism
    if isinstance(asked, Auto):
        if asked.semidefinite:
            return "approximate", asked
        pure = request.guarantee.pure or currency == "epsilon"
        return ("pure", MatrixLaplace()) if pure else ("gaussian", Gaussian())
    if asked.gaussian:
        return "gaussian", asked
    return ("pure" if asked.pure else "approximate"), asked


def _price(
    family: Family, matrix: _PricedMatrix | None, counts: Fraction, matrix_price: float, level_delta: float
) -> Event:
    """Of everything together: counts that add up with the matrix are one event with it."""
    cost = counts + Fraction(matrix_price) if matrix is None else counts
    gaussian = family == "gaussian"
    parts: list[Event] = []
    if cost:
        parts.append(GaussianEvent(mu=root_up(cost)) if gaussian else PureEvent(epsilon=float_up(cost)))
    if level_delta:
        parts.append(ApproximateEvent(epsilon=0.0, delta=level_delta))
    if matrix is not None:
        parts.append(matrix.event)
    return composed(parts)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _PricedMatrix:
    """The noise of a matrix whose columns are known before anything is measured, and its price."""

    mechanism: CalibratedMechanism
    event: Event


def _matrix_of_known_columns(request: Request, asked: Mechanism | Auto, epsilon: float) -> _PricedMatrix:
    """Levels are known here, so the columns are, and with them what the matrix costs."""
    schema = request.rules.schema
    (encoder,) = request.encoders(schema.with_bounds(dict.fromkeys(schema.unbounded, (-1.0, 1.0))))
    facts = request.facts(encoder)
    mechanism, _ = _approximate(request, asked, epsilon, facts)
    return _PricedMatrix(mechanism=mechanism, event=mechanism.event(facts))


def _approximate(
    request: Request, asked: Mechanism | Auto, epsilon: float, facts: PublicFacts
) -> tuple[CalibratedMechanism, str]:
    chosen = choose(asked, Guarantee(epsilon, request.guarantee.delta), facts, None)
    return chosen.mechanism, chosen.reason


def refuse_few_rows(request: Request, octaves: CountNoise | None, rows: float, *, paid: Event | None) -> None:
    """Stop where noise would hide the columns, from a public number of rows or one that was paid for."""
    if octaves is None:
        return
    schema, unit = request.rules.schema, request.rules.unit
    columns, people = len(schema.unbounded), "rows" if unit is None else f"values of {unit!r}"
    needed = math.ceil(rows_needed(octaves, columns))
    if rows >= needed:
        return
    remedy = (
        "Give public bounds for some or all columns, a larger epsilon, or a larger share, Adaptive(bounds=…)"
    )
    fewer = _columns_within(octaves, columns, rows)
    remedy += f": so many {people} are enough for {fewer} open columns" if fewer else ""
    if paid is not None:
        remedy += ". Where the number of rows is public, Rows(expected=…) makes such a refusal free"
    raise LearningError(
        f"too few {people} to learn the bounds of {columns} column(s) at this guarantee",
        got=f"{'about ' if paid is not None else ''}{max(rows, 0.0):,.0f}",
        limit=f"{needed:,}",
        remedy=remedy,
        spent=paid,
        cost=cost(paid),
    )


def _columns_within(noise: CountNoise, columns: int, rows: float) -> int:
    """How many open columns so many rows allow at the same share of the budget; 0 where not even one."""

    def needed(fewer: int) -> float:
        part = fewer / columns
        scale = noise.scale * (math.sqrt(part) if noise.law == "discrete-gaussian" else part)
        return rows_needed(CountNoise(law=noise.law, scale=scale), fewer)

    return next((fewer for fewer in range(columns - 1, 0, -1) if needed(fewer) <= rows), 0)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LearntFacts:
    """What is known once everything before the matrix was measured. All of it is published."""

    schema: Schema
    clips: tuple[float | None, ...]
    """The row radius of each block."""
    measured: tuple[Measurements, ...]
    """What each block's release records, in order."""


def learn(calibration: LearningCalibration) -> Program[LearntFacts]:
    """Part after part, each from what the earlier ones published.

    Proof: proofs/bounds.md#bounds-order.
    """
    request, rules = calibration.request, calibration.request.rules
    measured: list[Any] = []
    drawn: Event | None = None
    public_rows: int | None = None
    rows = 0.0
    first = tuple(_first_measurements(calibration))
    if first:
        answer = yield stage(request, rules.schema, first)
        measured += answer.published
        drawn = answer.drawn
        public_rows = answer.public_rows
        rows = _rows(measured, public_rows)
        refuse_few_rows(request, calibration.octaves, rows, paid=drawn)
    schema = with_levels(rules.schema, measured)
    if calibration.bins is not None:
        bounds = coarse_bounds(measured, drawn)
        bins = Bins(
            noise=calibration.bins,
            share=calibration.shares.bins,
            units_changed=calibration.units_changed,
            columns=tuple(bounds),
            bounds=tuple(bounds.values()),
            rows=max(rows, 1.0),
        )
        answer = yield stage(request, schema, (bins,))
        measured += answer.published
        schema = _with_bounds(calibration, schema, measured, max(rows, 1.0))
    blocks = request.blocks
    return LearntFacts(
        schema=schema,
        clips=(request.radius,) * blocks,
        measured=(tuple(measured),) * blocks,
    )


def _first_measurements(calibration: LearningCalibration) -> Iterator[Measurement]:
    schema, shares = calibration.request.rules.schema, calibration.shares
    if calibration.count is not None:
        yield RowCount(
            noise=calibration.count,
            share=shares.count,
            units_changed=calibration.units_changed,
            columns=schema.unbounded,
        )
    yield from open_measurements(
        calibration.request,
        levels=calibration.levels,
        level_share=shares.levels,
        level_delta=calibration.level_delta,
        octaves=calibration.octaves,
        octave_share=shares.octaves,
    )


def _rows(measured: list[Any], public_rows: int | None) -> float:
    noisy = [int(each.cell) / ROW_NORM_SQUARED for each in measured if isinstance(each, MeasuredRows)]
    return noisy[0] if noisy else float(public_rows or 0)


def _with_bounds(
    calibration: LearningCalibration, schema: Schema, measured: list[Any], rows: float
) -> Schema:
    """Location ± reach·scale of each column, from the bins counted last."""
    coarse = coarse_bounds(measured, None)
    (bins,) = (each for each in measured if isinstance(each, MeasuredBins))
    reach = reach_for(calibration.norm_of(schema.width), rows)
    found = {}
    for each in bins.columns:
        counts, last = latest(each.looks)[0], each.looks[-1]
        low, high = fine_bounds(counts, last.low, last.high, rows=rows, reach=reach)
        found[each.column] = (max(low, coarse[each.column][0]), min(high, coarse[each.column][1]))
    return schema.with_bounds(found)


def learnt_terms(calibration: LearningCalibration, learnt: LearntFacts) -> tuple[ReleaseTerms, ...]:
    """The noise of the matrix, or of every block of it, now that its columns are known."""
    request = replace(calibration.request, rules=replace(calibration.request.rules, schema=learnt.schema))
    encoders = request.encoders(learnt.schema, learnt.clips)
    if request.rules.schema.blocks is not None:
        return numbered_blocks(
            _blocks(calibration, request, encoders), calibration.guarantee, calibration.gaussian
        )
    (encoder,) = encoders
    facts = request.facts(encoder)
    mechanism, reason = _mechanism(calibration, facts)
    return (
        ReleaseTerms(
            encoder=encoder,
            facts=facts,
            guarantee=calibration.guarantee,
            mechanism=mechanism,
            event=mechanism.event(facts),
            gaussian=calibration.gaussian,
            reason=reason,
            rules=request.rules,
        ),
    )


def _mechanism(calibration: LearningCalibration, facts: PublicFacts) -> tuple[CalibratedMechanism, str]:
    left_open = isinstance(calibration.request.mechanism, Auto)
    reason = "auto: its noise composes exactly with that of the counts" if left_open else "asked for by name"
    if calibration.family == "gaussian" and isinstance(calibration.mechanism, Mechanism):
        return calibration.mechanism.of_mu_squared(calibration.matrix_price, facts), reason
    if calibration.family == "pure" and isinstance(calibration.mechanism, Mechanism):
        return calibration.mechanism.calibrated(Guarantee(calibration.matrix_price), facts), reason
    return _approximate(calibration.request, calibration.mechanism, calibration.matrix_price, facts)


def _blocks(
    calibration: LearningCalibration, request: Request, encoders: tuple[Encoder, ...]
) -> list[ReleaseTerms]:
    """What is left, shared out for the least Σ d_b·σ_b²: from published facts, and within `matrix_price`."""
    price_before, level_delta = float_up(calibration.price_before), calibration.level_delta
    if calibration.family == "gaussian":
        found = []
        for one, share in zip(encoders, gaussian_shares(encoders), strict=True):
            scale = scale_of_counts(
                calibration.law,
                calibration.matrix_price * share,
                histograms=1,
                units_changed=calibration.units_changed,
            )
            reason = f"blocks: {share:.1%} of the μ² that is left for the matrices"
            mechanism = CalibratedGaussian(sigma=scale)
            found.append(
                gaussian_block(
                    request, one, mechanism, reason, price_before=price_before, level_delta=level_delta
                )
            )
        return found
    return [
        pure_block(
            request,
            one,
            calibration.matrix_price * share,
            f"blocks: {share:.1%} of the ε that is left for the matrices",
            price_before=price_before,
            level_delta=level_delta,
        )
        for one, share in zip(encoders, pure_shares(encoders), strict=True)
    ]

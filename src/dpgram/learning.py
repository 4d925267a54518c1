"""Public facts that nobody knows, learnt privately inside one event: bounds, levels and the row radius.

μ² = Σ μᵢ² (or ε = Σ εᵢ) over the parts count, levels, octaves, bins, lengths and Gram, each a share of the
event's currency that is fixed before a row is read; learnt levels add a share of δ. Everything is charged
before the first noise is drawn; each part then sees only what the parts before it published. proofs/bounds.md
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

import numpy as np

from dpgram.bounds import Coarse, Floats, coarse_bounds, fine_bounds, reach_for, rows_needed
from dpgram.errors import GuaranteeError, LearningError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.learning_table import Table, Tally
from dpgram.learnt_checks import crowded, latest
from dpgram.levels import kept_levels, level_threshold
from dpgram.looks import Window, looks_for
from dpgram.mechanisms import Facts, Gaussian, MatrixLaplace
from dpgram.privacy.accountant import ApproximateEvent, Event, GaussianEvent, PureEvent, composed, describe
from dpgram.privacy.calibrate import DISCRETE_SIGMA_AT_LEAST, discrete_mu_at_most
from dpgram.privacy.counts import CountLaw, CountNoise, in_rows, price_of_counts, scale_of_counts
from dpgram.privacy.entropy import LARGEST_SCALE
from dpgram.privacy.exact import float_up, root_up
from dpgram.privacy.guarantee import Guarantee
from dpgram.radius import chosen_radius
from dpgram.release_parts import Learnt, LearntBounds, LearntLevels, LearntLook, LearntRadius
from dpgram.schema import Schema
from dpgram.wishes import Wishes

if TYPE_CHECKING:
    from dpgram.privacy.entropy import Entropy, Integers


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """Every noise of the event, fixed before a row is read: public facts only."""

    wishes: Wishes
    law: CountLaw
    count: CountNoise | None
    octaves: CountNoise | None
    bins: CountNoise | None
    levels: CountNoise | None
    lengths: CountNoise | None
    level_delta: float
    mechanism: Gaussian | MatrixLaplace
    guarantee: Guarantee
    event: Event

    @property
    def cost(self) -> str:
        """What the whole event is worth, in words."""
        return f"{self.guarantee} ({describe(self.event)})"

    def norm_of(self, width: int) -> float:
        """E‖N‖ of the matrix's noise on `width` columns, for rows of length 1, in rows."""
        return self.mechanism.law(width).expected_norm(width) / ROW_NORM_SQUARED


def planned(schema: Schema, asked: Wishes, guarantee: Guarantee, facts: Facts, *, law: CountLaw) -> Plan:
    """Noise for every part such that all together keep `guarantee`, exactly.

    Proof: proofs/bounds.md#bounds-composition.
    """
    if asked.levels and guarantee.pure:
        raise GuaranteeError(
            "levels cannot be learnt with delta = 0: that a level is there at all tells of a row",
            remedy="Give a delta such as 1e-6, or list the levels",
        )
    steps, private_rows = facts.adjacency.gram_trace_steps, facts.adjacency.name == "add-remove"
    level_delta = asked.levels * guarantee.delta
    if asked.levels and level_delta == 0.0:
        raise _too_little(asked.levels)
    gaussian = law == "discrete-gaussian"
    whole = (
        discrete_mu_at_most(guarantee.epsilon, guarantee.delta - level_delta) ** 2
        if gaussian
        else guarantee.epsilon
    )
    price = Fraction(0)

    def noise(share: float, histograms: int) -> CountNoise | None:
        nonlocal price
        if share == 0.0:
            return None
        own = share * whole
        scale = scale_of_counts(law, own, histograms=histograms, steps=steps) if own > 0.0 else math.inf
        if not 0.0 < scale <= LARGEST_SCALE:
            raise _too_little(share)
        if gaussian and scale < DISCRETE_SIGMA_AT_LEAST:
            raise _too_much()
        price += price_of_counts(law, scale, histograms=histograms, steps=steps)
        return CountNoise(law=law, scale=scale)

    shares = asked.parts(private_rows=private_rows)
    columns = len(schema.unbounded)
    parts = {
        "count": noise(shares.count, 1),
        "octaves": noise(shares.octaves, columns),
        "bins": noise(shares.bins, columns * looks_for(law)),
        "levels": noise(shares.levels, len(schema.without_levels)),
        "lengths": noise(shares.lengths, 1),
    }
    rest = (1.0 - asked.total) * whole * (1.0 - 2.0**-40)
    mechanism: Gaussian | MatrixLaplace
    if gaussian:
        mechanism = Gaussian(sigma=scale_of_counts(law, rest, histograms=1, steps=steps))
        if mechanism.sigma < DISCRETE_SIGMA_AT_LEAST:
            raise _too_much()
        price += price_of_counts(law, mechanism.sigma, histograms=1, steps=steps)
        main: Event = GaussianEvent(mu=root_up(price))
        kept = root_up(price) ** 2 <= whole
    else:
        mechanism = MatrixLaplace.calibrated(Guarantee(rest), facts)
        price += steps * ROW_NORM_SQUARED * Fraction(mechanism.theta)
        main = PureEvent(epsilon=float_up(price))
        kept = float_up(price) <= whole
    if not kept:
        raise MechanismError("the parts of this event cost more than the whole", remedy="Report a bug")
    return Plan(
        wishes=asked,
        law=law,
        level_delta=level_delta,
        mechanism=mechanism,
        guarantee=guarantee if gaussian else Guarantee(guarantee.epsilon, level_delta),
        event=composed([main, ApproximateEvent(epsilon=0.0, delta=level_delta)]) if level_delta else main,
        **parts,
    )


def _too_little(share: float) -> GuaranteeError:
    return GuaranteeError(
        "so small a share of the budget needs more noise than can be drawn",
        got=f"a share of {share:g}",
        limit="a scale of 2^56 lattice units",
        remedy="Give it a larger share, or ask for a larger epsilon or delta",
    )


def _too_much() -> GuaranteeError:
    return GuaranteeError(
        "integer noise this small is not covered by the proof of its privacy",
        remedy="Ask for a smaller epsilon or delta",
    )


def refuse_few_rows(plan: Plan, schema: Schema, rows: float, *, paid: bool, unit: str | None = None) -> None:
    """Stop where noise would hide the columns, from a public number of rows or one that was paid for."""
    if plan.octaves is None:
        return
    columns, people = len(schema.unbounded), "rows" if unit is None else f"values of {unit!r}"
    needed = math.ceil(rows_needed(plan.octaves, columns))
    if rows >= needed:
        return
    remedy = "Give public bounds for some or all columns, a larger epsilon, or a larger bounds_budget"
    fewer = _columns_within(plan.octaves, columns, rows)
    remedy += f": so many {people} are enough for {fewer} open columns" if fewer else ""
    if paid:
        remedy += ". Where the number of rows is public, rows= makes such a refusal free"
    raise LearningError(
        f"too few {people} to learn the bounds of {columns} column(s) at this guarantee",
        got=f"{'about ' if paid else ''}{max(rows, 0.0):,.0f}",
        limit=f"{needed:,}",
        remedy=remedy,
        spent=plan.event if paid else None,
        cost=plan.cost,
    )


def _columns_within(noise: CountNoise, columns: int, rows: float) -> int:
    """How many open columns so many rows allow at the same share of the budget; 0 where not even one."""

    def needed(fewer: int) -> float:
        part = fewer / columns
        scale = noise.scale * (math.sqrt(part) if noise.law == "discrete-gaussian" else part)
        return rows_needed(CountNoise(law=noise.law, scale=scale), fewer)

    return next((fewer for fewer in range(columns - 1, 0, -1) if needed(fewer) <= rows), 0)


@final
@dataclass(slots=True)
class Learner:
    """Draws part after part, each from what the earlier ones published. Use it only after the charge."""

    table: Table
    plan: Plan
    entropy: Entropy
    public_rows: int | None
    bounds: list[LearntBounds] = field(default_factory=list)
    levels: list[LearntLevels] = field(default_factory=list)
    rows: float = 0.0
    noisy_rows: str | None = None
    radius: float | None = None
    norms: LearntRadius | None = None

    def run(self, tally: Tally) -> Schema:
        """Learn everything that was asked for; the schema with nothing left open."""
        self._count(tally)
        refuse_few_rows(self.plan, self.table.schema, self.rows, paid=True, unit=self.table.unit)
        self.rows = max(self.rows, 1.0)
        if self.plan.levels is not None:
            self._levels(tally, self.plan.levels)
        if self.plan.octaves is not None and self.plan.bins is not None:
            self._bounds(tally, self.plan.octaves, self.plan.bins)
        if self.plan.lengths is not None:
            self._radius(self.plan.lengths)
        return self.table.schema

    def record(self) -> Learnt:
        """All of it as the release keeps it."""
        plan = self.plan
        return Learnt(
            law=plan.law,
            bounds_budget=plan.wishes.bounds,
            levels_budget=plan.wishes.levels,
            radius_budget=plan.wishes.radius,
            count_scale=_scale(plan.count),
            octave_scale=_scale(plan.octaves),
            bin_scale=_scale(plan.bins),
            level_scale=_scale(plan.levels),
            length_scale=_scale(plan.lengths),
            level_delta=plan.level_delta,
            rows=self.noisy_rows,
            bounds=tuple(self.bounds),
            levels=tuple(self.levels),
            radius=self.norms,
        )

    def _count(self, tally: Tally) -> None:
        if self.plan.count is None:
            self.rows = float(self.public_rows or 0)
            return
        drawn = self.plan.count.draw(np.array([tally.rows], np.int64), self.entropy)
        self.rows, self.noisy_rows = float(in_rows(drawn)[0]), str(int(drawn[0]))

    def _levels(self, tally: Tally, noise: CountNoise) -> None:
        schema = self.table.schema
        threshold = level_threshold(noise, self.plan.level_delta, len(tally.levels))
        room = MAX_LEARNT_LEVELS // len(tally.levels)
        for counts in tally.levels:
            self.levels.append(kept_levels(counts, noise, threshold, self.entropy, at_most=room))
        found = {each.column: each.levels for each in self.levels}
        self.table = self.table.with_schema(schema.with_levels(found))

    def _bounds(self, tally: Tally, octave_noise: CountNoise, bin_noise: CountNoise) -> None:
        schema = self.table.schema
        names = schema.unbounded
        octaves = octave_noise.draw(tally.octaves, self.entropy)
        found = {
            name: self._run(name, in_rows(cells), octave_noise)
            for name, cells in zip(names, octaves, strict=True)
        }
        coarse = {name: run.bounds for name, run in found.items()}
        looks = self._looks(coarse, bin_noise)
        # A private clip bounds the noise whatever the bounds are. Then columns are scaled to a deviation of
        # about 1, as much as the constant has, and centred; otherwise to [-1, 1], within the coarse bounds.
        clipped = self.plan.lengths is not None
        reach = reach_for(self.plan.norm_of(schema.width), self.rows, clipped=clipped)
        for name, cells in zip(names, octaves, strict=True):
            counts, last = latest(looks[name])[0], looks[name][-1]
            low, high = fine_bounds(counts, last.low, last.high, rows=self.rows, reach=reach)
            if not clipped:
                low, high = max(low, coarse[name][0]), min(high, coarse[name][1])
            self.bounds.append(_bounds_record(found[name], cells, looks[name], name, (low, high)))
        self.table = self.table.with_schema(
            schema.with_bounds(
                {each.column: (each.low, each.high) for each in self.bounds}, weight=reach if clipped else 1.0
            )
        )

    def _run(self, name: str, octaves: Floats, noise: CountNoise) -> Coarse:
        run = coarse_bounds(octaves, noise, len(self.table.schema.unbounded))
        if run is None:
            raise LearningError(
                f"noise hides the values of column {name!r}: no power of two holds enough of them",
                remedy="Give public bounds for it, a larger epsilon, or a larger bounds_budget",
                spent=self.plan.event,
                cost=self.plan.cost,
            )
        return run

    def _looks(
        self, coarse: Mapping[str, tuple[float, float]], noise: CountNoise
    ) -> dict[str, list[LearntLook]]:
        """Look after look, each where those before it found the column.

        Proof: proofs/bounds.md#bounds-looks.
        """
        finest = self.table.second_pass(coarse)
        windows = dict.fromkeys(coarse, Window())
        looks: dict[str, list[LearntLook]] = {name: [] for name in coarse}
        for _ in range(looks_for(noise.law)):
            counts = [window.counts(cells) for window, cells in zip(windows.values(), finest, strict=True)]
            for (name, window), cells in zip(
                tuple(windows.items()), noise.draw(np.array(counts), self.entropy), strict=True
            ):
                low, high = window.edges(*coarse[name])
                looks[name].append(LearntLook(low=low, high=high, bins=_texts(cells)))
                place = None if window.closest else crowded(looks[name], self.rows, noise)
                windows[name] = window if place is None else window.closer(place)
        return looks

    def _radius(self, noise: CountNoise) -> None:
        schema = self.table.schema
        cells = noise.draw(self.table.lengths(), self.entropy)
        self.radius = chosen_radius(
            in_rows(cells),
            max_norm_squared=schema.max_norm_squared,
            width=schema.width,
            noise_norm=self.plan.norm_of(schema.width),
            rows=self.rows,
        )
        self.norms = LearntRadius(lengths=_texts(cells))


MAX_LEARNT_LEVELS: Final = 1_000
"""Most levels learnt in all; the fullest are kept."""


def _bounds_record(
    run: Coarse, octaves: Integers, looks: Sequence[LearntLook], name: str, bounds: tuple[float, float]
) -> LearntBounds:
    return LearntBounds(
        column=name,
        first_octave=run.first,
        octaves=_texts(octaves[run.first : run.last + 1]),
        coarse_low=run.bounds[0],
        coarse_high=run.bounds[1],
        looks=tuple(looks),
        low=bounds[0],
        high=bounds[1],
    )


def _texts(cells: Integers) -> tuple[str, ...]:
    return tuple(str(int(cell)) for cell in cells)


def _scale(noise: CountNoise | None) -> float | None:
    return None if noise is None else noise.scale

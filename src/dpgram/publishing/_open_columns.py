"""What a schema leaves open, measured first: levels, and powers of two for bounds. Shared by both paths.

Everything here is a function of public facts and of what was published before.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dpgram.core.noise import LARGEST_SCALE
from dpgram.document.fields import MeasuredLevels, MeasuredOctaves
from dpgram.document.octaves import OctaveRun
from dpgram.errors import GuaranteeError, LearningError
from dpgram.privacy.accountant import Event, describe
from dpgram.privacy.count_noise import CountLaw, CountNoise, scale_of_counts
from dpgram.privacy.curves.calibrate import DISCRETE_SIGMA_AT_LEAST
from dpgram.publishing.measurements.counts import Octaves
from dpgram.publishing.measurements.levels import Levels
from dpgram.publishing.publication import Stage

if TYPE_CHECKING:
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.publishing.request import Request
    from dpgram.schema import Schema


def count_noise(law: CountLaw, price: float, histograms: int, units_changed: int) -> CountNoise | None:
    """Noise on so many histograms at this price; none where there is nothing to count or to pay with."""
    if price == 0.0 or histograms == 0:
        return None
    scale = scale_of_counts(law, price, histograms=histograms, units_changed=units_changed)
    if not 0.0 < scale <= LARGEST_SCALE:
        raise too_little(price)
    if law == "discrete-gaussian":
        scale = max(scale, DISCRETE_SIGMA_AT_LEAST)  # less is not covered by the proof of its privacy
    return CountNoise(law=law, scale=scale)


def too_little(share: float) -> GuaranteeError:
    """For a share that no noise can be drawn for."""
    return GuaranteeError(
        "so small a share of the budget needs more noise than can be drawn",
        got=f"a share of {share:g}",
        limit="a scale of 2^56 lattice units",
        remedy="Give it a larger share, or ask for a larger epsilon or delta",
    )


def open_measurements(
    request: Request,
    *,
    levels: CountNoise | None,
    level_share: float,
    level_delta: float,
    octaves: CountNoise | None,
    octave_share: float,
) -> Iterator[Measurement]:
    """Levels and powers of two of the columns without them, as far as there is noise for either."""
    schema, units_changed = request.rules.schema, request.adjacency.units_changed
    if levels is not None:
        yield Levels(
            noise=levels,
            share=level_share,
            units_changed=units_changed,
            delta=level_delta,
            columns=schema.without_levels,
        )
    if octaves is not None:
        yield Octaves(
            noise=octaves, share=octave_share, units_changed=units_changed, columns=schema.unbounded
        )


def stage(request: Request, schema: Schema, measurements: tuple[Measurement, ...]) -> Stage:
    """One pass for these measurements, with the schema as far as it is known."""
    return Stage(rules=replace(request.rules, schema=schema), measurements=measurements)


def with_levels(schema: Schema, measured: Sequence[Any]) -> Schema:
    """The schema with the levels that were found, if any were looked for."""
    found = [each.columns for each in measured if isinstance(each, MeasuredLevels)]
    return schema.with_levels({each.column: each.levels for each in found[0]}) if found else schema


def coarse_bounds(measured: Sequence[Any], paid: Event | None) -> dict[str, tuple[float, float]]:
    """The bounds that the octaves stand for, if any were counted; stops where noise hides a column."""
    bounds = {}
    for octaves in (each for each in measured if isinstance(each, MeasuredOctaves)):
        for one in octaves.columns:
            if not one.cells:
                raise LearningError(
                    f"noise hides the values of column {one.column!r}: no power of two holds enough of them",
                    remedy="Run check, which says whether its cells can be read. If they can: give public "
                    "bounds for it, a larger epsilon, or a larger share, Adaptive(bounds=…)",
                    spent=paid,
                    cost=cost(paid),
                )
            run = OctaveRun(first=one.first, last=one.first + len(one.cells) - 1)
            bounds[one.column] = run.bounds
    return bounds


def cost(paid: Event | None) -> str:
    """What a stop has cost, in words; nothing where it was free."""
    return "" if paid is None else f"on noisy counts alone, {describe(paid)}, not on the whole release"

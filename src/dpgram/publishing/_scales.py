"""Where each column lies and how much it varies, from published histograms: what is done with noisy counts.

Only bins that stand out of the noise count. Where they hold too few of the rows, neighbouring bins are put
together; where even that shows nothing, the column keeps its public bounds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import simulation
from dpgram.core.sums import NODES, STEPS
from dpgram.document.fields import (
    LevelHistogram,
    MeasuredHistograms,
    MeasuredZoom,
    NumberHistogram,
)
from dpgram.document.measurements import histogram_rows, level_count
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.count_noise import CountNoise
from dpgram.schema import Schema
from dpgram.schema.encodings import EncodedColumn, too_close

Floats = npt.NDArray[np.float64]

STANDS_OUT: Final = 1.0
"""Noise deviations above which a bin counts."""
MOST_ROWS: Final = 0.75
"""The part of all rows that the bins which count must hold."""
FEWEST_STEPS: Final = 4
HIDDEN_SCALE: Final = 0.6
"""The deviation that a column is given where noise hides it, in half-widths of its bounds: a flat one."""
LEAST_SHARE: Final = 1e-3
"""Of a level: a rarer one would be blown up beyond what its noise allows."""
ALIKE: Final = 2.0
"""Levels are scaled alike, rare and frequent ones, to the part ALIKE/√(n̂μ/d^1.5): so few rows tell nothing of
rare ones, and stretching them would only lengthen rows."""
LEAST_OF_ALL_LEVELS: Final = 0.1
"""The variance that all levels of a column are given together at least."""


BLURRED: Final = 51
"""Histograms that are simulated for a forecast."""


@final
@dataclass(frozen=True, slots=True)
class Scale:
    """Of a column z in [-1, 1], or of a level in [0, 1]: where it lies and how much it varies."""

    centre: float
    deviation: float


def _moments(counts: Floats, deviation: float, rows: float) -> tuple[float, float] | None:
    """(mean, standard deviation) on [0, 1], from the finest nodes that hold most rows; nothing where none do.

    Every other node is given up by sharing its count between its neighbours, as if rows had been counted at
    the coarser nodes from the start.
    """
    while True:
        steps = len(counts) - 1
        (good,) = np.nonzero(counts > STANDS_OUT * deviation)
        mass = float(counts[good].sum())
        if mass > MOST_ROWS * rows:
            nodes, shares = good / steps, counts[good] / mass
            mean = float(shares @ nodes)
            # A value f steps beyond a node is counted with f(1 − f) steps² too much variance: a sixth on
            # average. What varies less than a step has that of a value anywhere in it.
            spread = float(shares @ (nodes - mean) ** 2) - 1.0 / (6.0 * steps**2)
            return mean, math.sqrt(max(spread, 1.0 / (12.0 * steps**2)))
        if steps <= FEWEST_STEPS:
            return None
        counts = _coarser(counts)
        deviation *= math.sqrt(1.5)


def _coarser(counts: Floats) -> Floats:
    kept, given = counts[::2].copy(), counts[1::2] / 2.0
    kept[:-1] += given
    kept[1:] += given
    return kept


def scales(
    schema: Schema, measured: MeasuredHistograms, told: float, closer: Sequence[MeasuredZoom] = ()
) -> dict[str, Scale]:
    """For every encoded column but the constant; those computed from others as if these were independent.

    `told` is n̂μ/d^1.5, `closer` what was looked at again.
    """
    noise, rows = CountNoise(law=measured.law, scale=measured.scale), max(histogram_rows(measured), 1.0)
    histograms = {each.column: each for each in measured.columns}
    found: dict[str, Scale] = {}
    for column in schema.encoded:
        histogram = histograms.get(column.source)
        if isinstance(histogram, NumberHistogram):
            again = {
                (each.low, each.high): (each, CountNoise(law=one.law, scale=one.scale))
                for one in closer
                for each in one.columns
                if each.column == column.source
            }  # of two looks between the same ends the later one, which has less noise
            found[column.name] = _of_numbers([(histogram, noise), *again.values()], rows)
        elif isinstance(histogram, LevelHistogram):
            found[column.name] = _of_levels(schema, column, histogram, noise, rows)
    for derived in schema.columns_derived:
        for name, part in zip(derived.encoded_names, derived.parts, strict=True):
            found[name] = _of_derived([found[own] for own in part.factors if own in found], part)
    return found | _alike(schema, found, min(1.0, ALIKE / math.sqrt(told)))


def _alike(schema: Schema, found: dict[str, Scale], part: float) -> dict[str, Scale]:
    """Levels in a scale that is to this part the same for all of a column, that of all of them together.

    False and true are to this part left as they are.
    """
    widened: dict[str, Scale] = {}
    for column in schema.columns_read:
        if not level_count(column):
            continue
        names = [schema.names[place] for place in schema.indices(column.name)]
        together = 1.0
        if column.group_levels:
            together = max(sum(found[name].deviation ** 2 for name in names), LEAST_OF_ALL_LEVELS)
        for name in names:
            variance = (1.0 - part) * found[name].deviation ** 2 + part * together
            widened[name] = Scale(found[name].centre, math.sqrt(variance))
    return widened


def _of_numbers(looks: Sequence[tuple[NumberHistogram, CountNoise]], rows: float) -> Scale:
    """In z, which is −1 and 1 at the bounds, from the closest look that shows the column."""
    whole, first_noise = looks[0]
    for look, noise in looks[:0:-1]:
        if noise == first_noise and _outside(look, whole, noise):
            continue  # its tails tell the scale, which the look before it shows
        seen = _moments(_at_nodes(look, whole, noise), noise.deviation, rows)
        if seen is not None:
            width = _half(look) / _half(whole)
            mean = (look.low / 2.0 - whole.low / 2.0) / _half(whole) + width * seen[0]
            return Scale(2.0 * mean - 1.0, 2.0 * width * seen[1])
    seen = _moments(_in_rows(whole.counts), first_noise.deviation, rows)
    if seen is None:
        return Scale(0.0, HIDDEN_SCALE)
    return Scale(2.0 * seen[0] - 1.0, 2.0 * seen[1])


def _half(look: NumberHistogram) -> float:
    """Half its width, which is a float even where the width is not."""
    return look.high / 2.0 - look.low / 2.0


def _in_rows(cells: Sequence[str]) -> Floats:
    return np.array([int(cell) / ROW_NORM_SQUARED for cell in cells])


def _at_nodes(look: NumberHistogram, whole: NumberHistogram, noise: CountNoise) -> Floats:
    """Counts with those beyond the bounds of the column, which are moved to them, where they stand out."""
    counts = _in_rows(look.counts)
    below, above = _in_rows(look.lost[2:])
    if look.low == whole.low and below > OUTSIDE * noise.deviation:
        counts[0] += below
    if look.high == whole.high and above > OUTSIDE * noise.deviation:
        counts[-1] += above
    return counts


def _outside(look: NumberHistogram, whole: NumberHistogram, noise: CountNoise) -> bool:
    """Whether more rows are beyond the ends of a closer look than noise makes."""
    below, above = _in_rows(look.lost[2:])
    rows = (below if look.low > whole.low else 0.0) + (above if look.high < whole.high else 0.0)
    return bool(rows > OUTSIDE * math.sqrt(2.0) * noise.deviation)


def window(
    look: NumberHistogram,
    whole: NumberHistogram,
    noise: CountNoise,
    rows: float,
    *,
    by_noise: bool,
    narrow: float,
) -> tuple[float, float] | None:
    """Ends for a closer look, eight times as close; none where this one tells the scale well enough.

    `whole` is the histogram between the bounds of the column. With `by_noise` one that only looks too wide,
    because of noise, is looked at closer as well: where bounds are learnt they are rough. Else its deviation
    must be less than `narrow` steps.

    Proof: proofs/adaptive.md#adaptive-zoom.
    """
    known = rows - float(np.maximum(_in_rows(look.lost[:2]), 0.0).sum())
    place = narrow_place(_at_nodes(look, whole, noise), noise, known, by_noise=by_noise, narrow=narrow)
    if place is None:
        return None
    first = min(max(place - 1.0, 0.0), STEPS - 2.0) / STEPS
    last = first + 2.0 / STEPS
    ends = look.low * (1.0 - first) + look.high * first, look.low * (1.0 - last) + look.high * last
    return None if too_close(*ends) else ends


def narrow_place(
    counts: Floats, noise: CountNoise, rows: float, *, by_noise: bool, narrow: float
) -> float | None:
    """The middle, in steps, of a column that three neighbouring nodes hold and that looks too wide.

    No other node stands out clearly, nor do all others together, and values lie within a step, or the
    histogram tells a deviation several times that of the three nodes by themselves, because others stand out
    by chance: the latter only `by_noise`.
    """
    triples = counts[:-2] + counts[1:-1] + counts[2:]
    first = int(np.argmax(triples))
    mass, nodes = float(triples[first]), np.arange(first, first + 3)
    others = np.delete(counts, nodes)
    clearly = noise.upper_quantile(BY_CHANCE / len(counts))
    doubt = math.sqrt(len(nodes)) * noise.deviation
    if doubt > MOST_DOUBT * rows:
        return None
    if mass <= 0.0 or mass + doubt < WITHIN * rows or float(others.max()) > clearly:
        return None
    if float(others.sum()) > ELSEWHERE * math.sqrt(len(others)) * noise.deviation:
        return None
    shares = counts[nodes] / mass
    mean = float(shares @ nodes)
    # Values that are close together count at two nodes, which adds f(1 − f) steps².
    apart = mean - math.floor(mean)
    own = float(shares @ (nodes - mean) ** 2) - apart * (1.0 - apart)
    if not by_noise:
        return mean if own <= narrow**2 else None
    seen = _moments(counts, noise.deviation, rows)
    looks = 0.5 * HIDDEN_SCALE * STEPS if seen is None else STEPS * seen[1]
    return mean if own <= A_STEP**2 or looks > TOO_WIDE * math.sqrt(own) else None


OUTSIDE: Final = 2.0
"""Noise deviations above which rows outside of a closer look count."""
WITHIN: Final = 0.98
"""The part of all values that three neighbouring nodes hold, but for a deviation of their noise, where a
column is looked at again."""
MOST_DOUBT: Final = 0.15
"""The part of all rows that this deviation may be: in fewer rows noise alone looks like a narrow column."""
BY_CHANCE: Final = 1e-3
"""Chance that noise alone makes any of the other nodes stand out clearly."""
ELSEWHERE: Final = 3.0
"""Deviations of their noise above which all other nodes together hold rows: few values far away, among many
that are zero, would lie outside of a closer look, which shows less of them than this one."""
A_STEP: Final = 0.2
"""The deviation in steps of a column that lies within one: the histogram tells at least 0.29 of it."""
NARROW: Final = 0.35
"""The same where a look is rough."""
FAR_TOO_WIDE: Final = 0.12
"""The same where bounds are declared: such bounds are 130 times as wide as a deviation. A column of many
zeros and few large values looks 45 times as wide, and a closer look at it takes these values' weight."""
TOO_WIDE: Final = 3.0
"""How many times its own deviation a column looks wide where it is looked at again."""


def _of_levels(
    schema: Schema, column: EncodedColumn, histogram: LevelHistogram, noise: CountNoise, rows: float
) -> Scale:
    place = (
        schema.indices(column.source).index(schema.names.index(column.name))
        if column.level is not None
        else 1
    )
    count = int(histogram.counts[place]) / ROW_NORM_SQUARED
    least = max(2.0 * noise.deviation / rows, LEAST_SHARE)
    share = min(max(count / rows, least), max(1.0 - least, 0.5))
    deviation = math.sqrt(share * (1.0 - share)) if share < 1.0 else 0.5
    # A level is 0 or 1, false and true are −1 and 1.
    return Scale(share, deviation) if column.level is not None else Scale(2.0 * share - 1.0, 2.0 * deviation)


def blurred(scale: Scale, deviation: float, rows: float) -> float:
    """The deviation that histograms with so much noise would show of a normal column; `scale` is in z.

    The median of simulated ones: bins that stand out by chance make a column look wider than it is.
    """
    from scipy.special import ndtri

    places = scale.centre + scale.deviation * ndtri((np.arange(512) + 0.5) / 512)
    steps = (np.clip(places, -1.0, 1.0) + 1.0) / 2.0 * STEPS
    first = np.minimum(np.floor(steps), STEPS - 1.0).astype(np.int64)
    counts = np.bincount(first, 1.0 - (steps - first), NODES) + np.bincount(first + 1, steps - first, NODES)
    noise = simulation(0).normal(size=(BLURRED, NODES)) * deviation
    seen = [_moments(counts * rows / 512 + each, deviation, rows) for each in noise]
    return float(np.median([HIDDEN_SCALE if one is None else 2.0 * one[1] for one in seen]))


def _of_derived(factors: list[Scale], encoding: object) -> Scale:
    from dpgram.schema.encodings import LegendreEncoding

    if isinstance(encoding, LegendreEncoding) and factors:
        # Values of a normal column cut at its bounds, at equal steps of its quantiles.
        from scipy.special import ndtri

        places = ndtri((np.arange(64) + 0.5) / 64)
        z = np.clip(factors[0].centre + factors[0].deviation * places, -1.0, 1.0)
        selector = np.zeros(encoding.degree + 1)
        selector[encoding.degree] = 1.0
        values = np.polynomial.legendre.legval(z, selector)
        return Scale(float(values.mean()), max(float(values.std()), 0.05))
    if len(factors) == 2:
        left, right = factors
        mean = left.centre * right.centre
        square = (left.centre**2 + left.deviation**2) * (right.centre**2 + right.deviation**2)
        return Scale(mean, max(math.sqrt(max(square - mean**2, 0.0)), 0.01))
    return Scale(0.0, HIDDEN_SCALE)

"""Closer histograms of columns whose values lie within a step of theirs.

The bounds of an open column are powers of two, those of another may be declared far too wide. Of a density
near 1, sixteen steps between two of these show where it lies, and not how much it varies. It is looked at
eight times as close, as often as that helps, with noise that leaves no doubt where most rows are and costs
little; then once more with the noise of the first histograms. Which columns are looked at, between which ends
and with which noise follows from published histograms; the price comes out of what is left for the matrices,
so that all together costs what was fixed beforehand, and where nothing is looked at again nothing changes.
proofs/adaptive.md#adaptive-zoom
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from dpgram.document.fields import LevelHistogram, MeasuredHistograms, MeasuredZoom, NumberHistogram
from dpgram.privacy.count_noise import CountNoise, price_of_counts
from dpgram.publishing._open_columns import stage
from dpgram.publishing._scales import FAR_TOO_WIDE, NARROW, window
from dpgram.publishing.measurements.each_group import by_group, each_group
from dpgram.publishing.measurements.histograms import Zoom
from dpgram.publishing.publication import Program
from dpgram.sums.histograms import HistogramColumn

if TYPE_CHECKING:
    from dpgram.publishing.request import Request
    from dpgram.schema import Schema

ZOOMS: Final = 16
"""Closer looks at most, each eight times as close as the one before, or at the same ends with less noise."""
MOST_FOR_ZOOM: Final = 0.25
"""Of what is left for the matrices: all closer looks together cost no more."""
ROUGHLY: Final = 1.0 / 48.0
"""The part of all rows that the noise of a look may be which only tells where to look closer."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Zoomed:
    """What was looked at again. All of it is published."""

    looks: tuple[tuple[MeasuredZoom, ...], ...]
    """Of each group, in order."""
    price: Fraction = Fraction(0)
    """μ² or ε of all of them."""


def zoom(
    request: Request,
    schema: Schema,
    histograms: Sequence[MeasuredHistograms],
    rows: Sequence[float],
    clear: Sequence[bool],
    *,
    share: float,
    rest: Fraction,
) -> Program[Zoomed]:
    """Look after look, each at the columns that the one before shows to be too coarse, in any clear group.

    `share` is that of one histogram, `rest` what is left for the matrices. Groups are looked at in the same
    columns, so that all cost the same: a column that is not too coarse in one of them is counted as before,
    as every column is in a group of so few rows that its histograms are noise: it asks for no look.

    Proof: proofs/adaptive.md#adaptive-zoom.
    """
    noise = CountNoise(law=histograms[0].law, scale=histograms[0].scale)
    changed = request.adjacency.units_changed
    least = min(known for known, told in zip(rows, clear, strict=True) if told)
    rough = replace(noise, scale=noise.scale * max(1.0, ROUGHLY * least / noise.deviation))
    whole = [_numbers(one.columns) for one in histograms]
    learnt = request.rules.schema.unbounded
    latest, seen = whole.copy(), dict.fromkeys(whole[0], noise)
    looks: list[tuple[MeasuredZoom, ...]] = [() for _ in histograms]
    price, again = Fraction(0), set[str]()
    for _ in range(ZOOMS):
        ends = [
            {
                name: window(
                    look,
                    own[name],
                    seen[name],
                    known,
                    by_noise=name in learnt and seen[name] == noise,
                    narrow=NARROW if name in learnt or name in again else FAR_TOO_WIDE,
                )
                if told
                else None
                for name, look in one.items()
            }
            for one, own, known, told in zip(latest, whole, rows, clear, strict=True)
        ]
        coarse = [name for name in seen if any(one[name] is not None for one in ends)]
        # Where nothing is too coarse any more, what was only roughly seen is counted well.
        names, now = (coarse, rough) if coarse else ([name for name in seen if seen[name] != noise], noise)
        cost = price_of_counts(noise.law, now.scale, histograms=len(names), units_changed=changed)
        if not names or price + cost > Fraction(MOST_FOR_ZOOM) * rest:
            break
        part = float(cost / price_of_counts(noise.law, noise.scale, histograms=1, units_changed=changed))
        members = [
            Zoom(
                noise=now,
                share=share * part,
                units_changed=changed,
                columns=tuple(
                    HistogramColumn(name=name, bounds=one[name] or (own[name].low, own[name].high))
                    for name in names
                ),
            )
            for one, own in zip(ends, latest, strict=True)
        ]
        counted = each_group(members)
        answer = yield stage(request, schema, (counted,))
        price += cost
        seen |= dict.fromkeys(names, now)
        again |= set(names)
        for number, found in enumerate(by_group(counted, answer.published[0])):
            looks[number] += (found,)
            latest[number] = latest[number] | _numbers(found.columns)
    return Zoomed(looks=tuple(looks), price=price)


def _numbers(columns: Sequence[NumberHistogram | LevelHistogram]) -> dict[str, NumberHistogram]:
    """Those of columns of numbers."""
    return {each.column: each for each in columns if isinstance(each, NumberHistogram)}

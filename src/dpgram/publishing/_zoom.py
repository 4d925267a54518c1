"""Closer histograms of open columns whose values lie within a step of theirs.

The bounds of an open column are powers of two. Of a density near 1, sixteen steps between two of these show
where it lies, and not how much it varies. It is looked at again eight times as close, with the same noise, as
often as that helps. Which columns are, and between which ends, follows from published histograms; the price
comes out of what is left for the matrices, so that all together costs what was fixed beforehand, and where
nothing is looked at again nothing changes. Columns with public bounds keep to these.
proofs/adaptive.md#adaptive-zoom
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, final

from dpgram.document.fields import LevelHistogram, MeasuredHistograms, MeasuredZoom, NumberHistogram
from dpgram.engines.passes import Pass
from dpgram.privacy.count_noise import CountNoise, price_of_counts
from dpgram.publishing._open_columns import stage
from dpgram.publishing._scales import window
from dpgram.publishing.measurements.each_group import by_group, each_group
from dpgram.publishing.measurements.histograms import Zoom
from dpgram.publishing.publication import Program
from dpgram.sums.histograms import HistogramColumn

if TYPE_CHECKING:
    from dpgram.engines.passes import Sums
    from dpgram.publishing.request import Request
    from dpgram.schema import Schema

ZOOMS: Final = 3
"""Closer looks at most, each eight times as close as the one before."""
MOST_FOR_ZOOM: Final = 0.25
"""Of what is left for the matrices: all closer looks together cost no more."""


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
    inspect: Callable[[Pass, Sums], None],
) -> Program[Zoomed]:
    """Look after look, each at the columns that the one before shows to be too coarse, in any clear group.

    `share` is that of one histogram, `rest` what is left for the matrices. Groups are looked at in the same
    columns, so that all cost the same: a column that is not too coarse in one of them is counted as before,
    as every column is in a group of so few rows that its histograms are noise: it asks for no look.

    Proof: proofs/adaptive.md#adaptive-zoom.
    """
    noise = CountNoise(law=histograms[0].law, scale=histograms[0].scale)
    changed = request.adjacency.units_changed
    names = roughly_bounded(request.rules.schema)
    whole = [_numbers(one.columns, names) for one in histograms]
    latest = whole.copy()
    looks: list[tuple[MeasuredZoom, ...]] = [() for _ in histograms]
    price = Fraction(0)
    for _ in range(ZOOMS):
        ends = [
            {name: window(look, own[name], noise, known) if told else None for name, look in one.items()}
            for one, own, known, told in zip(latest, whole, rows, clear, strict=True)
        ]
        coarse = [name for name in latest[0] if any(one[name] is not None for one in ends)]
        cost = price_of_counts(noise.law, noise.scale, histograms=len(coarse), units_changed=changed)
        if not coarse or price + cost > Fraction(MOST_FOR_ZOOM) * rest:
            break
        members = [
            Zoom(
                noise=noise,
                share=share * len(coarse),
                units_changed=changed,
                columns=tuple(
                    HistogramColumn(name=name, bounds=one[name] or (own[name].low, own[name].high))
                    for name in coarse
                ),
            )
            for one, own in zip(ends, latest, strict=True)
        ]
        counted = each_group(members)
        answer = yield stage(request, schema, (counted,), inspect)
        price += cost
        for number, found in enumerate(by_group(counted, answer.published[0])):
            looks[number] += (found,)
            latest[number] = _numbers(found.columns, names)
    return Zoomed(looks=tuple(looks), price=price)


def roughly_bounded(schema: Schema) -> tuple[str, ...]:
    """Columns that may be looked at again: those whose bounds are powers of two that were learnt."""
    return schema.unbounded


def _numbers(
    columns: Sequence[NumberHistogram | LevelHistogram], names: Sequence[str]
) -> dict[str, NumberHistogram]:
    """Those of columns of numbers with these names."""
    return {
        each.column: each for each in columns if isinstance(each, NumberHistogram) and each.column in names
    }

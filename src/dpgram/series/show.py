"""A series in words: its guarantee, and period by period the noisy number of rows and what the clip took."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dpgram.analysis.clip import clip_counts
from dpgram.document.fields import MeasuredHistograms
from dpgram.document.measurements import histogram_rows
from dpgram.document.statement import SEEDED
from dpgram.document.terminal import in_lines, printable

if TYPE_CHECKING:
    from dpgram.analysis.clip import ClipCounts
    from dpgram.release import Release
    from dpgram.series.stream import Stream

DRIFT: Final = 4.0
"""Deviations of its noise by which a period's clip must exceed that of the first before it is told of,"""
NOTICEABLE: Final = 0.02
"""and the part of all weight."""


def clipped(stream: Stream) -> list[ClipCounts | None]:
    """What the clip took in each period; None where it was not counted."""
    return [clip_counts(stream.release(number, number)) for number in range(1, len(stream.periods) + 1)]


def rows_of(release: Release) -> float | None:
    """The noisy number of rows, or units, by the histograms; None where there are none."""
    found = [each for each in release.measured if isinstance(each, MeasuredHistograms)]
    return histogram_rows(found[0]) if found else None


def drifted(stream: Stream) -> list[str]:
    """Periods in which the clip took clearly more than in the first, which fixed it."""
    counts = clipped(stream)
    first = counts[0] if counts else None
    if first is None:
        return []
    found = []
    for label, own in zip(stream.labels, counts, strict=True):
        if own is None:
            continue
        doubt = DRIFT * (own.lost_sd**2 + first.lost_sd**2) ** 0.5
        if own.lost - first.lost > max(NOTICEABLE, doubt):
            found.append(label)
    return found


def explorer_page(stream: Stream, total: Release | None = None) -> str:
    """The explorer of a running total, with trends up to there; of all periods where none is given."""
    from dpgram.explorer import page
    from dpgram.explorer.trend_facts import offered_windows, trend_facts

    shown = stream.release(1, len(stream.labels)) if total is None else total
    last = len(stream.labels) if shown.series is None else shown.series.last
    windows = [stream.release(*ends) for ends in offered_windows(last)]
    facts = trend_facts(windows, [each.cells for each in stream.periods[:last]], stream.labels[:last])
    return page(shown, facts)


def summary(stream: Stream) -> str:
    """As a table for the terminal."""
    head = stream.head
    who = "row" if head.rows.unit is None else repr(head.rows.unit)
    often = (
        "one period each"
        if head.participations == 1
        else f"at most {head.participations} periods, at least {head.apart} apart"
    )
    guarantee, width = head.guarantee, stream.schema.width
    lines = [
        f"A series of {len(stream.periods)} out of {head.periods} periods, {width} encoded columns",
        f"ε = {guarantee.epsilon:g}, δ = {guarantee.delta:g} for all periods together, every {who} ({often})",
        *([SEEDED] if head.entropy == "seeded" else []),
    ]
    if stream.periods:
        width = max(6, *(len(printable(label)) for label in stream.labels))
        lines += ["", f"{'period':<{width}}  {'rows, noisy':>14}  {'weight clipped':>14}"]
    for number, (label, clip) in enumerate(zip(stream.labels, clipped(stream), strict=True), start=1):
        rows = rows_of(stream.release(number, number))
        told = "–" if rows is None else f"{rows:,.0f}"
        lost = "–" if clip is None else f"{clip.lost:.1%}"
        lines.append(f"{printable(label):<{width}}  {told:>14}  {lost:>14}")
    if beyond := drifted(stream):
        named = ", ".join(map(printable, beyond[:6])) + (" …" if len(beyond) > 6 else "")
        told = (
            f"In {named} the clip took clearly more than in the first period: rows have moved away from the "
            "coordinates that it fixed, and what looks like a trend may be the clip. Time for a new series."
        )
        lines += ["", told]
    return in_lines(lines)

"""The report's pictures, as SVG: what an attacker can do, what was spent, how a column is distributed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

import numpy as np
from scipy.special import ndtri

from dpgram.analysis.histograms import Histogram
from dpgram.document.terminal import escaped

REACH: Final = float(-ndtri(0.025))
"""Deviations of the noise to either side of a bar: a 95% interval."""


def attack(chance: Callable[[float], float]) -> str:
    """Chance to notice against false alarms: the diagonal is guessing."""
    size, left, top = 300.0, 60.0, 50.0

    def points(pairs: Iterable[tuple[float, float]]) -> str:
        return " ".join(f"{left + size * x:.1f},{top + size * (1 - y):.1f}" for x, y in pairs)

    grid = np.concatenate([np.linspace(0, 0.05, 26), np.linspace(0.06, 1, 48)]).tolist()
    curve = points((alpha, max(chance(alpha), alpha)) for alpha in grid)
    ticks = "".join(
        f'<text x="{left + size * t:.0f}" y="{top + size + 20:.0f}" text-anchor="middle">{t:.0%}</text>'
        f'<text x="{left - 8:.0f}" y="{top + size * (1 - t) + 4:.0f}" text-anchor="end">{t:.0%}</text>'
        for t in (0.0, 0.25, 0.5, 0.75, 1.0)
    )
    legend = (
        f'<line x1="{left}" y1="12" x2="{left + 40}" y2="12" stroke="var(--estimate)" stroke-width="3"/>'
        f'<text x="{left + 48}" y="17">chance to notice, at most</text>'
        f'<line x1="{left}" y1="32" x2="{left + 40}" y2="32" stroke="var(--fitted)" stroke-width="2" '
        f'stroke-dasharray="6 4"/><text x="{left + 48}" y="37">guessing</text>'
    )
    return (
        '<div class="chart"><svg viewBox="0 0 400 410" width="400" role="img" aria-label="The best chance to '
        'notice one person, against the rate of false alarms, compared with guessing">'
        f"{legend}"
        f'<rect x="{left}" y="{top}" width="{size}" height="{size}" fill="none" stroke="var(--line)"/>{ticks}'
        f'<polyline points="{points([(0, 0), (1, 1)])}" fill="none" stroke="var(--fitted)" stroke-width="2" '
        'stroke-dasharray="6 4"/>'
        f'<polyline points="{curve}" fill="none" stroke="var(--estimate)" stroke-width="3"/>'
        f'<text x="{left + size / 2}" y="{top + size + 45}" text-anchor="middle">false alarms</text>'
        "</svg></div>"
    )


def spending(shares: Sequence[float]) -> str:
    """One bar: what each charge took of the whole budget."""
    bars, start = [], 0.0
    for number, share in enumerate(shares, start=1):
        shade = "1" if number % 2 else "0.65"
        bars.append(
            f'<rect x="{10 + 540 * start:.1f}" y="10" width="{max(540 * share, 0.5):.1f}" height="28" '
            f'fill="var(--estimate)" opacity="{shade}"/>'
        )
        start += share
    return (
        f'<div class="chart"><svg viewBox="0 0 560 70" width="560" role="img" '
        f'aria-label="{start:.1%} of the budget is spent">'
        + "".join(bars)
        + '<rect x="10" y="10" width="540" height="28" fill="none" stroke="var(--quiet)"/>'
        f'<text x="10" y="60">spent {start:.1%}</text>'
        f'<text x="550" y="60" text-anchor="end">left {max(1.0 - start, 0.0):.1%}</text></svg></div>'
    )


def histogram(found: Histogram) -> str:
    """Bars of noisy counts with 95% intervals of the noise, small enough for a cell of a table."""
    counts = found.counts[:40]
    reach = REACH * found.noise_sd
    top = max(float(counts.max()) + reach, 1.0)
    low = min(float(counts.min()) - reach, 0.0)
    width, height = 170.0, 44.0
    step = width / len(counts)

    def y(value: float) -> float:
        return height * (1.0 - (value - low) / (top - low))

    bars = "".join(
        f'<rect class="stable" x="{i * step + 0.1 * step:.1f}" width="{0.8 * step:.1f}" '
        f'y="{min(y(count), y(0.0)):.1f}" height="{abs(y(count) - y(0.0)):.1f}"/>'
        f'<line class="whisker" x1="{(i + 0.5) * step:.1f}" x2="{(i + 0.5) * step:.1f}" '
        f'y1="{y(count - reach):.1f}" y2="{y(count + reach):.1f}"/>'
        for i, count in enumerate(counts.tolist())
    )
    base = f'<line class="zero" x1="0" x2="{width}" y1="{y(0.0):.1f}" y2="{y(0.0):.1f}"/>'
    words = escaped(f"Noisy histogram of {found.column[:80]}, {len(counts)} bars")
    return (
        f'<div class="chart small-chart"><svg viewBox="0 0 {width} {height}" width="{width}" role="img" '
        f'aria-label="{words}">{bars}{base}</svg></div>'
    )

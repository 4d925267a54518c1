"""What a series would cost in noise, beside a release for every period: arithmetic on public facts."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import final

from dpgram.noise.factor import checked_horizon, noise_factor


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedNoise:
    """The noise of one question, in multiples of one release of the same rows under the same guarantee."""

    question: str
    series: float
    independent: float
    """From a release for every period, added up where the question is about several."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesPlan:
    """The noise of totals, periods and windows of a series, beside a release for every period."""

    periods: int
    participations: int
    apart: int
    window: int
    lines: tuple[PlannedNoise, ...]
    """The total at the end, the last period, the last window."""
    rows: float | None = None
    """The noise of one release of all rows on a count, in rows, where ε and δ were given."""

    @property
    def advice(self) -> str:
        """Which of the two to take, by what is asked for most."""
        total, month, window = self.lines
        text = (
            f"Totals and windows: {total.series:.2g} times the noise of one release for the total at the "
            f"end, where adding up {self.periods} releases has {total.independent:.2g} times. "
        )
        if window.series >= window.independent:
            text += (
                f"But a window of {self.window} has {window.series:.2g} times in the series and "
                f"{window.independent:.2g} times from releases of their own, and a single period "
                f"{month.series:.2g} against {month.independent:.2g}: who needs periods and short "
                "windows, and no totals, should publish every period by itself."
            )
        else:
            text += (
                f"A single period has {month.series:.2g} times, against {month.independent:.2g} for "
                "a release of its own: who needs single periods and nothing else should publish every "
                "period by itself."
            )
        return text

    @property
    def table(self) -> str:
        """The noise of every question, one line each."""
        often = "" if self.participations == 1 else f", {self.participations} periods for each person"
        lines = [
            f"Noise in multiples of one release of the same rows ({self.periods} periods{often})",
            f"{'':<24}  {'series':>8}  {'a release for each period':>26}",
        ]
        lines += [f"{one.question:<24}  {one.series:>8.2f}  {one.independent:>26.2f}" for one in self.lines]
        if self.rows is not None:
            lines.append(f"One such multiple is {self.rows:,.1f} rows on a count.")
        return "\n".join([*lines, ""])

    def __str__(self) -> str:
        return f"{self.table}\n{self.advice}"


def plan_series(
    *,
    periods: int,
    participations: int,
    apart: int,
    window: int,
    epsilon: float | None,
    delta: float | None,
) -> SeriesPlan:
    """The numbers of `Series.plan`."""
    periods, participations, apart = checked_horizon(periods, participations, apart)
    length = max(1, min(window, periods))
    often = min(participations, -(-periods // apart))

    def series(first: int) -> float:
        return noise_factor(first, periods, periods=periods, participations=participations, apart=apart)

    lines = (
        PlannedNoise(
            question=f"total of all {periods}", series=series(1), independent=math.sqrt(often * periods)
        ),
        PlannedNoise(question="a single period", series=series(periods), independent=math.sqrt(often)),
        PlannedNoise(
            question=f"a window of {length}",
            series=series(periods - length + 1),
            independent=math.sqrt(often * length),
        ),
    )
    rows = None
    if epsilon is not None and delta is not None:
        from dpgram.privacy.curves.calibrate import discrete_mu_at_most

        rows = 1.0 / discrete_mu_at_most(epsilon, delta)
    return SeriesPlan(
        periods=periods,
        participations=participations,
        apart=apart,
        window=length,
        lines=lines,
        rows=rows,
    )

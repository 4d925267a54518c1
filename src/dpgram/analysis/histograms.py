"""What noisy histograms say of columns one by one: counts, shares, means and losses, with their errors.

Counts c_k of every cell have independent noise of one standard deviation s. A share c_k/Σc and a mean
Σ c_k x_k/Σc of the cells that could be read, with x_k the nodes and the bounds for what lay outside them, are
ratios; to first order

    Var mean = s²·Σ(x_k − mean)²/n² + (variance of the column)/n,

the noise of the counts and, for the population, the sampling error. A clip of rows does not touch them. Rows
with survey weights v ≤ m count v, and the sampling variance of a mean is (variance of the column)·Σv²/(Σv)²,
where Σv² is not known but is at most m·Σv: so n is Σv/m there, and intervals tend to be too wide.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.asked import quantile
from dpgram.document.fields import LevelHistogram, MeasuredHistograms, NumberHistogram
from dpgram.document.measurements import histogram_rows
from dpgram.document.terminal import in_lines
from dpgram.errors import AnalysisError
from dpgram.lattice import ROW_NORM_SQUARED, cell_unit
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.count_noise import CountNoise
from dpgram.schema.columns import Column

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame
    from dpgram.document.document import Document

Vector = npt.NDArray[np.float64]
Kind = Literal["population", "table"]
LOSSES = ("missing", "unreadable", "below", "above")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """A number with the standard error of its noise and, for the population, of sampling."""

    estimate: float
    std_error: float

    def conf_int(self, level: float = 0.95) -> tuple[float, float]:
        """The normal interval.

        >>> from dpgram.analysis.histograms import Measured
        >>> low, high = Measured(estimate=1.0, std_error=0.5).conf_int()
        >>> round(low, 2), round(high, 2)
        (0.02, 1.98)
        """
        reach = quantile(level) * self.std_error
        return self.estimate - reach, self.estimate + reach


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Histogram:
    """The noisy histogram of one column, in rows; `values` are nodes in original units, or levels."""

    column: str
    values: tuple[float, ...] | tuple[str, ...]
    counts: Vector
    lost: Mapping[str, float]
    """Rows whose value is missing, unreadable (or of no declared level), below the bounds and above them."""
    noise_sd: float
    """The standard deviation of the noise on each of these numbers, in rows."""
    at_most: float = 1.0
    """What one row may count: the largest survey weight."""

    @property
    def numbers(self) -> bool:
        """Whether it is a column of numbers."""
        return not isinstance(self.values[0], str)

    @property
    def rows(self) -> float:
        """All rows, as far as this histogram tells."""
        return float(self.counts.sum()) + sum(self.lost.values())

    def share(self, level: str, kind: Kind = "population") -> Measured:
        """The part of all rows with a known level that have this one.

        >>> release.histogram("smoker").share("yes").conf_int()  # doctest: +SKIP
        (0.17, 0.19)
        """
        if self.numbers or level not in self.values:
            raise AnalysisError(
                f"{self.column!r} has no level {level!r}", limit=", ".join(map(str, self.values[:20]))
            )
        total = max(float(self.counts.sum()), 1.0)
        place = self.values.index(level)
        part = min(max(float(self.counts[place]) / total, 0.0), 1.0)
        gradient = -np.full(len(self.counts), part)
        gradient[place] += 1.0
        noise = self.noise_sd * float(np.linalg.norm(gradient)) / total
        sampling = math.sqrt(part * (1.0 - part) * self.at_most / total) if kind == "population" else 0.0
        return Measured(estimate=part, std_error=math.hypot(noise, sampling))

    def mean(self, kind: Kind = "population") -> Measured:
        """The mean of the values that could be read, those outside the bounds moved to them.

        >>> release.histogram("age").mean().estimate  # doctest: +SKIP
        49.9
        """
        if not self.numbers:
            raise AnalysisError(f"{self.column!r} has levels and no mean", remedy="Ask for share(level)")
        cells, places = self._readable()
        total = max(float(cells.sum()), 1.0)
        place = min(max(float(cells @ places) / total, 0.0), 1.0)
        noise = self.noise_sd * self._span * float(np.linalg.norm(places - place)) / total
        sampling = self.deviation() * math.sqrt(self.at_most / total) if kind == "population" else 0.0
        estimate = float(self.values[0]) + self._span * place
        return Measured(estimate=estimate, std_error=math.hypot(noise, sampling))

    def deviation(self) -> float:
        """The standard deviation of the values, as far as nodes tell it."""
        cells, places = self._readable()
        total = max(float(cells.sum()), 1.0)
        mean, step = float(cells @ places) / total, float(places[1])
        # A value between two nodes counts at both, which adds a sixth of a step squared on average.
        square = max(float(cells @ (places - mean) ** 2) / total - step**2 / 6.0, step**2 / 12.0)
        return self._span * math.sqrt(square)

    @property
    def _span(self) -> float:
        """From the first node to the last."""
        return float(self.values[-1]) - float(self.values[0])

    def _readable(self) -> tuple[Vector, Vector]:
        """Rows, and where they are: from 0 at the first node to 1 at the last."""
        cells = np.concatenate([self.counts, [self.lost["below"], self.lost["above"]]])
        return cells, np.array([*np.linspace(0.0, 1.0, len(self.values)), 0.0, 1.0])

    def to_frame(self) -> Frame:
        """A frame with a row for each node or level: of Polars where that is installed, else of pandas."""
        from dpgram.analysis._frames import frame_of

        return frame_of(
            {
                "value": list(self.values),
                "rows": self.counts,
                "noise_sd": np.full(len(self.counts), self.noise_sd),
            }
        )

    def __str__(self) -> str:
        top = max(float(self.counts.max()), 1.0)
        names = [value if isinstance(value, str) else f"{value:g}" for value in self.values]
        width = max(map(len, names))
        lines = [f"{self.column}: rows by value, each ± {self.noise_sd:.3g} (noise)"]
        for name, rows in zip(names, self.counts.tolist(), strict=True):
            lines.append(f"{name:>{width}}  {rows:>12,.0f}  {'█' * round(30 * max(rows, 0.0) / top)}")
        lost = ", ".join(f"{name} {rows:,.0f}" for name, rows in self.lost.items())
        return in_lines([*lines, f"lost: {lost}"])


def of_the_same_rows(release: Document) -> MeasuredHistograms | None:
    """The histograms, where rows count in them as in the matrix, and they tell best of their number.

    They have rows with missing cells as well, which the matrix has not (row_sets.py). Those beside several
    rows of a unit have one of them. A matrix of the columns as declared, as there is where rows are few, has
    clipped nothing and most of the budget: it may tell the number of rows better.
    """
    rule = release.unit_rule
    if rule is not None and rule.counts == "rows" and rule.rows_at_most > 1:
        return None
    measured = next((each for each in release.measured if isinstance(each, MeasuredHistograms)), None)
    noise = release.noise
    if measured is None or release.coordinates is not None or not release.schema.constant:
        return measured
    weight = release.schema.encoded[0].weight
    if not isinstance(noise, SymmetricGaussian | MatrixLaplace):
        return measured
    own = noise.diagonal_sd * cell_unit(release.radius) / weight**2
    return measured if _count_noise(measured) < own else None


def histograms(release: Document) -> dict[str, Histogram]:
    """By column; empty where none were measured."""
    measured = [each for each in release.measured if isinstance(each, MeasuredHistograms)]
    if not measured:
        return {}
    # One row of each unit counts here, however many do in the matrix.
    scale = 1.0 if release.survey_weight is None else release.survey_weight.at_most
    deviation = CountNoise(law=measured[0].law, scale=measured[0].scale).deviation * scale
    declared = {column.name: column for column in release.schema.columns}
    return {
        each.column: _histogram(each, declared[each.column], deviation, scale)
        for each in measured[0].columns
        if each.column in declared  # another block may have it
    }


NEARLY_EMPTY = 2.0
"""Noise deviations below which the rows of a level count as none."""


def empty_levels(release: Document) -> frozenset[str]:
    """Encoded names of levels in which noisy counts show no rows to speak of; of each column one is kept."""
    found: set[str] = set()
    for name, histogram in histograms(release).items():
        column = release.schema.column(name)
        if not column.group_levels:
            continue
        few = histogram.counts < NEARLY_EMPTY * histogram.noise_sd
        few[int(np.argmax(histogram.counts))] = False
        found.update(own for own, empty in zip(column.encoded_names, few, strict=True) if empty)
    return frozenset(found)


def histogram_count(release: Document) -> tuple[float, float]:
    """The number of rows as all histograms together tell it, and the deviation of its noise, in matrix units.

    Each total has the noise of its cells, and the mean weighs totals by the number of these.
    """
    (measured,) = (each for each in release.measured if isinstance(each, MeasuredHistograms))
    return histogram_rows(measured), _count_noise(measured)


def _count_noise(measured: MeasuredHistograms) -> float:
    sizes = np.array([len(each.counts) + len(each.lost) for each in measured.columns], dtype=np.float64)
    deviation = CountNoise(law=measured.law, scale=measured.scale).deviation
    return deviation / math.sqrt(float(np.sum(1.0 / sizes)))


def _histogram(
    measured: NumberHistogram | LevelHistogram, column: Column, deviation: float, scale: float
) -> Histogram:
    counts = np.array([int(cell) for cell in measured.counts], dtype=np.float64) / ROW_NORM_SQUARED
    lost = [int(cell) / ROW_NORM_SQUARED * scale for cell in measured.lost]
    if isinstance(measured, LevelHistogram):
        values: tuple[float, ...] | tuple[str, ...] = column.group_levels or ("false", "true")
    else:
        values = tuple(np.linspace(measured.low, measured.high, len(measured.counts)).tolist())
    return Histogram(
        column=measured.column,
        values=values,
        counts=counts * scale,
        lost=dict(zip(LOSSES, lost, strict=False)),
        noise_sd=deviation,
        at_most=scale,
    )

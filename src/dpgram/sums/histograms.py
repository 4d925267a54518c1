"""A histogram of every column that is read: counts at equal nodes between bounds, or of levels, and losses.

A number between two neighbouring nodes counts at both, in proportion to how near it is: so the counts, each
times its node, add up to the sum of the column, and a mean is not rounded to bins. A row, or a unit, adds
2^30 to each histogram at most: to one or two nodes, to one level, or to the cell for a value that is missing,
unreadable, below the bounds or above them. proofs/adaptive.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.rows.encoder import PolicyCounts
from dpgram.schema.encodings import UNKNOWN_CODE
from dpgram.sums.base import Statistic
from dpgram.sums.counts import ExactCounts
from dpgram.sums.exact_gram import EXACT_ROWS
from dpgram.sums.grams import uncounted_rows

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

STEPS: Final = 16
"""Equal steps between the bounds; there is a node at either end of each."""
NODES: Final = STEPS + 1
MISSING, UNREADABLE, BELOW, ABOVE = range(4)
LOST: Final = 4
"""Cells behind the nodes or levels, in this order."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramColumn:
    """A column as its histogram sees it: numbers between two ends, or so many levels."""

    name: str
    bounds: tuple[float, float] | None
    levels: int = 0

    @property
    def cells(self) -> int:
        """Nodes or levels, without the cells for what was lost."""
        return NODES if self.bounds is not None else self.levels

    @property
    def losses(self) -> int:
        """Cells for what was lost: nothing lies below or above a level."""
        return LOST if self.bounds is not None else 2

    def counted(self, line: Floats, units: Integers) -> Integers:
        """The cells that these values add up to, `units` of each; every value by itself.

        Proof: proofs/adaptive.md#adaptive-histograms.
        """
        size = self.cells + self.losses
        if self.bounds is None:
            places = self._level_places(line)
            return np.bincount(places, units, minlength=size).astype(np.int64)
        low, high = self.bounds
        inside = (line >= low) & (line <= high)
        # Halves, so that bounds at the end of the floats do not overflow.
        share = np.where(inside, line, low) / 2 - low / 2
        position = np.minimum(share / (high / 2 - low / 2) * STEPS, float(STEPS))
        first = np.minimum(position.astype(np.int64), STEPS - 1)
        beyond = np.floor((position - first) * units).astype(np.int64)
        lost = NODES + self._losses(line)
        first = np.where(inside, first, lost)
        beyond = np.where(inside, beyond, 0)
        cells = np.bincount(first, units - beyond, minlength=size)
        cells += np.bincount(np.minimum(first + 1, size - 1), beyond, minlength=size)
        return cells.astype(np.int64)

    def _level_places(self, line: Floats) -> Integers:
        known = np.isfinite(line) & (line != UNKNOWN_CODE) & (line >= 0.0) & (line < self.levels)
        found = np.where(known, line, 0.0).astype(np.int64)
        known &= found == line
        return np.where(known, found, self.levels + np.where(np.isnan(line), MISSING, UNREADABLE))

    def _losses(self, line: Floats) -> Integers:
        low, high = self.bounds or (0.0, 0.0)
        outside = np.where(line < low, BELOW, np.where(line > high, ABOVE, MISSING))
        return np.where(np.isinf(line), UNREADABLE, outside)


@final
@dataclass(frozen=True, slots=True)
class HistogramsStatistic(Statistic):
    """One histogram for each column, in lattice units."""

    columns: tuple[HistogramColumn, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns), max(column.cells + column.losses for column in self.columns)

    def accumulator(self, rules: RowRules) -> HistogramsAccumulator:
        """Working memory of one thread."""
        return HistogramsAccumulator(self, rules)

    def zero(self, rules: RowRules) -> tuple[ExactCounts, ...]:
        del rules
        return (ExactCounts(np.zeros(self.shape, np.int64), PolicyCounts()),)


@final
class HistogramsAccumulator:
    """Counts every row, or one row of each unit, in every histogram.

    Proof: proofs/adaptive.md#adaptive-histograms.
    """

    def __init__(self, statistic: HistogramsStatistic, rules: RowRules) -> None:
        source = rules.schema.source_columns
        self._columns = statistic.columns
        self._places = [source.index(column.name) for column in statistic.columns]
        self._cells = np.zeros(statistic.shape, np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        chosen = rows.one_row_per_unit
        read, used = int(rows.placed.sum()), len(chosen)
        # Every row that is placed is read; of those, one of each unit is used.
        self._counts += uncounted_rows(rows) + PolicyCounts(
            rows_read=read, rows_used=used, rows_dropped=read - used
        )
        # So few rows at a time that a float adds 2^30 for each of them exactly.
        for start in range(0, used, EXACT_ROWS):
            piece = chosen[start : start + EXACT_ROWS]
            units = rows.lattice_weights(piece)
            numbers = rows.rows.numbers
            for line, (column, place) in enumerate(zip(self._columns, self._places, strict=True)):
                counted = column.counted(numbers[piece, place], units)
                self._cells[line, : len(counted)] += counted

    def result(self) -> tuple[ExactCounts, ...]:
        return (ExactCounts(self._cells.copy(), self._counts),)

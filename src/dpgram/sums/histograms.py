"""A histogram of every column that is read: bins between bounds, or levels, and what was lost.

A row, or a unit, adds at most 2^30 to one cell of each histogram: to the bin of its value, or to the cell for
a value that is missing, unreadable, below the bounds or above them. proofs/adaptive.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.schema.encodings import UNKNOWN_CODE
from dpgram.sums.counts import CountsStatistic
from dpgram.sums.zoom import BINS, equal_bins

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

MISSING, UNREADABLE, BELOW, ABOVE = range(4)
LOST: Final = 4
"""Cells behind the bins or levels, in this order."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramColumn:
    """A column as its histogram sees it: numbers between two ends, or so many levels."""

    name: str
    bounds: tuple[float, float] | None
    levels: int = 0

    @property
    def cells(self) -> int:
        """Bins or levels, without the cells for what was lost."""
        return BINS if self.bounds is not None else self.levels

    @property
    def losses(self) -> int:
        """Cells for what was lost: nothing lies below or above a level."""
        return LOST if self.bounds is not None else 2

    def places(self, line: Floats) -> Integers:
        """The cell of each value, by comparisons and elementwise arithmetic on that value alone.

        Proof: proofs/adaptive.md#adaptive-histograms.
        """
        if self.bounds is None:
            known = np.isfinite(line) & (line != UNKNOWN_CODE) & (line >= 0.0) & (line < self.levels)
            found = np.where(known, line, 0.0).astype(np.int64)
            known &= found == line
            lost = self.levels + np.where(np.isnan(line), MISSING, UNREADABLE)
            return np.where(known, found, lost)
        low, high = self.bounds
        found = equal_bins(line, low, high, BINS)
        found = np.where(line < low, BINS + BELOW, found)
        found = np.where(line > high, BINS + ABOVE, found)
        found = np.where(np.isinf(line), BINS + UNREADABLE, found)
        return np.where(np.isnan(line), BINS + MISSING, found)


@final
@dataclass(frozen=True, slots=True)
class HistogramsStatistic(CountsStatistic):
    """One histogram for each column, in lattice units."""

    columns: tuple[HistogramColumn, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns), max(column.cells for column in self.columns) + LOST

    def places(self, rows: CountedRows, chosen: Integers, rules: RowRules) -> Integers:
        source = rules.schema.source_columns
        numbers = rows.rows.numbers
        return np.stack(
            [column.places(numbers[chosen, source.index(column.name)]) for column in self.columns]
        )

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

from dpgram.core.lattice import PIECE
from dpgram.core.sums import NODES, count_levels, count_nodes
from dpgram.rows.encoder import PolicyCounts
from dpgram.sums.base import Statistic
from dpgram.sums.counts import ExactCounts
from dpgram.sums.exact_gram import EXACT_ROWS

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

LOST: Final = 4
"""Cells behind the nodes: missing, unreadable, below the bounds, above them."""


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
        source, self._columns = rules.schema.source_columns, statistic.columns
        self._places = [source.index(column.name) for column in self._columns]
        self._cells = np.zeros(statistic.shape, np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        chosen = rows.one_row_per_unit
        read, used = int(rows.placed.sum()), len(chosen)
        # Every row that is placed is read; of those, one of each unit is used.
        self._counts += rows.uncounted + PolicyCounts(
            rows_read=read, rows_used=used, rows_dropped=read - used
        )
        for start in range(0, used, EXACT_ROWS):
            piece = chosen[start : start + EXACT_ROWS]
            shares = None if rows.weights is None else rows.lattice_weights(piece).astype(np.float64)
            self._count(rows.rows.numbers[piece], shares)

    def add_array(self, rows: Floats) -> None:
        """The same for rows that all count alike, with the source columns in their order."""
        self._counts += PolicyCounts(rows_read=len(rows), rows_used=len(rows))
        for start in range(0, len(rows), EXACT_ROWS):
            self._count(rows[start : start + EXACT_ROWS], None)

    def _count(self, rows: Floats, shares: Floats | None) -> None:
        """So few rows at a time that a float adds 2^30 for each of them exactly, and lines stay close by."""
        for start in range(0, len(rows), PIECE):
            own = None if shares is None else shares[start : start + PIECE]
            lines = np.ascontiguousarray(rows[start : start + PIECE].T)
            for column, place, cells in zip(self._columns, self._places, self._cells, strict=True):
                if column.bounds is None:
                    count_levels(cells, lines[place], own, column.levels)
                else:
                    count_nodes(cells, lines[place], own, *column.bounds)

    def result(self) -> tuple[ExactCounts, ...]:
        return (ExactCounts(self._cells.copy(), self._counts),)

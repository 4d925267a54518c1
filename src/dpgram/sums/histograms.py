"""A histogram of every column that is read: counts at equal nodes between bounds, or of levels, and losses.

A number between two neighbouring nodes counts at both, in proportion to how near it is: so the counts, each
times its node, add up to the sum of the column, and a mean is not rounded to bins. A row, or a unit, adds
2^30 to each histogram at most: to one or two nodes, to one level, or to the cell for a value that is missing,
unreadable, below the bounds or above them. proofs/adaptive.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpgram.core import sums as core
from dpgram.core.sums import LOST, NODES
from dpgram.sums.counts import CountsStatistic

if TYPE_CHECKING:
    from dpgram.rows.rules import RowRules


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
class HistogramsStatistic(CountsStatistic):
    """One histogram for each column, in lattice units. Proof: proofs/core.md#core-counts."""

    columns: tuple[HistogramColumn, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns), max(column.cells for column in self.columns) + LOST

    def what(self, rules: RowRules) -> core.Histograms:
        source = rules.schema.source_columns
        return core.Histograms(
            tuple(
                core.Nodes(source.index(one.name), *(one.bounds or (0.0, 1.0)), one.levels)
                for one in self.columns
            )
        )

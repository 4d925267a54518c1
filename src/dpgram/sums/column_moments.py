"""Σ (1, z, z²) over the cells of each column that are there, z in [−1, 1] by public bounds, in units of 2⁻³⁰.

z is rounded to steps of 2⁻¹⁵ as every encoded value is. A row adds (2^30, 2^15·q, q²) to a column with
|q| ≤ 2^15, or nothing where its cell is missing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import numpy.typing as npt

from dpgram.core.lattice import settle
from dpgram.core.units import PolicyCounts
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.sums._exact_cells import ExactCells
from dpgram.sums.base import Statistic
from dpgram.sums.moments import refuse_groups_and_weights

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactColumnMoments(ExactCells):
    """Exact counts, sums and sums of squares, one line each. **Not private.**"""

    MAGIC: ClassVar[bytes] = b"dpgram exact column moments, not private, 1\n"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMomentsStatistic(Statistic):
    """The moments of these columns, each by itself; a cell that is missing or not finite counts nowhere."""

    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]

    def accumulator(self, rules: RowRules) -> ColumnMomentsAccumulator:
        """Working memory of one thread."""
        return ColumnMomentsAccumulator(self, rules)

    def zero(self, rules: RowRules) -> tuple[ExactColumnMoments, ...]:
        refuse_groups_and_weights(rules)
        return (ExactColumnMoments(np.zeros((3, len(self.columns)), np.int64), PolicyCounts()),)


@final
class ColumnMomentsAccumulator:
    """Puts cells on the lattice and adds up their powers."""

    def __init__(self, statistic: ColumnMomentsStatistic, rules: RowRules) -> None:
        refuse_groups_and_weights(rules)
        source = rules.schema.source_columns
        self._bounds = statistic.bounds
        self._places = [source.index(name) for name in statistic.columns]
        self._cells = np.zeros((3, len(self._places)), np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        """Add up the cells that are there; with units, those of one row of each."""
        chosen = rows.once
        read = int(rows.placed.sum())
        self._counts += rows.uncounted + PolicyCounts(
            rows_read=read, rows_used=len(chosen), rows_dropped=read - len(chosen)
        )
        for column, (place, ends) in enumerate(zip(self._places, self._bounds, strict=True)):
            line = rows.rows.lines[place][chosen]
            lattice = on_lattice(line[np.isfinite(line)], *ends)
            self._cells[0, column] += len(lattice) * ROW_NORM_SQUARED
            self._cells[1, column] += int(lattice.sum()) * ROW_NORM
            self._cells[2, column] += int((lattice * lattice).sum())

    def result(self) -> tuple[ExactColumnMoments, ...]:
        """The sums so far."""
        return (ExactColumnMoments(self._cells.copy(), self._counts),)


def on_lattice(line: Floats, low: float, high: float) -> npt.NDArray[np.int64]:
    """Finite values as z in steps of 2⁻¹⁵: −2^15 at `low` and below, 2^15 at `high` and above."""
    bounded = np.clip(line, low, high)
    z = np.clip((bounded - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0) * ROW_NORM
    settle(z[None, :], ROW_NORM_SQUARED)
    return z.astype(np.int64)

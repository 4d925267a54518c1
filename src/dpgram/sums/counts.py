"""Histograms in lattice units: a row, or a unit, adds at most 2^30 to at most one cell of each.

With survey weights a row adds ⌊2^30·w/max⌋. Values are sorted into bins one by one, by comparisons and
elementwise arithmetic, so that no other row can change where a row is counted. proofs/bounds.md
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

import numpy as np
import numpy.typing as npt

from dpgram.document.octaves import OCTAVES, octave_places
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.rows.encoder import PolicyCounts
from dpgram.sums._exact_cells import ExactCells
from dpgram.sums.base import Statistic
from dpgram.sums.exact_gram import EXACT_ROWS
from dpgram.sums.zoom import FINEST, finest_bins

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactCounts(ExactCells):
    """Exact counts, 2^30 for a row. **Not private.** A monoid under `|`."""

    MAGIC: ClassVar[bytes] = b"dpgram exact counts, not private, 1\n"


class CountsStatistic(Statistic):
    """Histograms of one row of each unit, or of every row."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """How many histograms, and how many cells each has."""

    @abstractmethod
    def places(self, rows: CountedRows, chosen: Integers, rules: RowRules) -> Integers:
        """For each histogram a line: the cell that each chosen row counts in, or −1 where it counts in none.

        Row by row: a line of it may depend on that row's own numbers only.
        """

    @final
    def accumulator(self, rules: RowRules) -> CountsAccumulator:
        """Working memory of one thread."""
        return CountsAccumulator(self, rules)

    @final
    def zero(self, rules: RowRules) -> tuple[ExactCounts, ...]:
        del rules
        return (ExactCounts(np.zeros(self.shape, np.int64), PolicyCounts()),)


@final
class CountsAccumulator:
    """Adds 2^30, or a row's weight, to the cells that rows count in.

    Proof: proofs/measurements.md#measurements-sensitivity.
    """

    def __init__(self, statistic: CountsStatistic, rules: RowRules) -> None:
        self._statistic, self._rules = statistic, rules
        self._cells = np.zeros(statistic.shape, np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        chosen = rows.one_row_per_unit
        read, used = int(rows.placed.sum()), len(chosen)
        # Every row that is placed is read; of those, one of each unit is used.
        self._counts += rows.uncounted + PolicyCounts(
            rows_read=read, rows_used=used, rows_dropped=read - used
        )
        # So few rows at a time that a float adds 2^30 for each of them exactly.
        for start in range(0, len(chosen), EXACT_ROWS):
            self._add(rows, chosen[start : start + EXACT_ROWS])

    def _add(self, rows: CountedRows, chosen: Integers) -> None:
        size = self._cells.shape[1]
        weights = None if rows.weights is None else rows.lattice_weights(chosen)
        for number, line in enumerate(self._statistic.places(rows, chosen, self._rules)):
            there = line >= 0
            if weights is None:
                counted = np.bincount(line[there], minlength=size) * ROW_NORM_SQUARED
            else:
                counted = np.bincount(line[there], weights[there], minlength=size).astype(np.int64)
            self._cells[number] += counted

    def result(self) -> tuple[ExactCounts, ...]:
        return (ExactCounts(self._cells.copy(), self._counts),)


def _lines(rows: CountedRows, chosen: Integers, columns: tuple[str, ...], rules: RowRules) -> list[Floats]:
    source = rules.schema.source_columns
    return [rows.rows.numbers[chosen, source.index(name)] for name in columns]


@final
@dataclass(frozen=True, slots=True)
class RowsStatistic(CountsStatistic):
    """The number of rows in which all of these columns are there."""

    columns: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    def places(self, rows: CountedRows, chosen: Integers, rules: RowRules) -> Integers:
        """0 where nothing is missing."""
        absent = np.zeros(len(chosen), np.bool_)
        for line in _lines(rows, chosen, self.columns, rules):
            absent |= ~np.isfinite(line)
        return np.where(absent, -1, 0)[None, :]


@final
@dataclass(frozen=True, slots=True)
class OctavesStatistic(CountsStatistic):
    """Signed powers of two of numeric columns: wide enough for every float.

    Proof: proofs/bounds.md#bounds-parts.
    """

    columns: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.columns), OCTAVES

    def places(self, rows: CountedRows, chosen: Integers, rules: RowRules) -> Integers:
        return np.stack([octave_places(line) for line in _lines(rows, chosen, self.columns, rules)])


@final
@dataclass(frozen=True, slots=True)
class BinsStatistic(CountsStatistic):
    """Equal bins of numeric columns between public or published bounds; beyond them, the bin at the end.

    Proof: proofs/bounds.md#bounds-parts.
    """

    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]

    @property
    def shape(self) -> tuple[int, int]:
        """The finest bins there are."""
        return len(self.columns), FINEST

    def places(self, rows: CountedRows, chosen: Integers, rules: RowRules) -> Integers:
        lines = _lines(rows, chosen, self.columns, rules)
        return np.stack([finest_bins(line, *ends) for line, ends in zip(lines, self.bounds, strict=True)])

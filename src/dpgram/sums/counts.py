"""Histograms of one row of each unit, or of every row: 2^30 for a row."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, final

from dpgram.core import OCTAVES
from dpgram.core import sums as core
from dpgram.sums._exact_cells import ExactCells
from dpgram.sums.base import CoreStatistic
from dpgram.sums.zoom import FINEST

if TYPE_CHECKING:
    from dpgram.rows.rules import RowRules


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactCounts(ExactCells):
    """Exact counts, 2^30 for a row. **Not private.** A monoid under `|`."""

    MAGIC: ClassVar[bytes] = b"dpgram exact counts, not private, 1\n"


class CountsStatistic(CoreStatistic):
    """Histograms of one row of each unit, or of every row."""

    __slots__ = ()

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """How many histograms, and how many cells each has."""

    @final
    def carried(self, found: core.Found) -> ExactCounts:
        return ExactCounts(*core.array_of(found))


def sources(columns: tuple[str, ...], rules: RowRules) -> tuple[int, ...]:
    """Which of the columns that are read these are."""
    return tuple(rules.schema.source_columns.index(name) for name in columns)


@final
@dataclass(frozen=True, slots=True)
class RowsStatistic(CountsStatistic):
    """The number of rows in which all of these columns are there."""

    columns: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int]:
        return 1, 1

    def what(self, rules: RowRules) -> core.Counts:
        return core.Counts("rows", sources(self.columns, rules))


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

    def what(self, rules: RowRules) -> core.Counts:
        return core.Counts("octaves", sources(self.columns, rules))


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

    def what(self, rules: RowRules) -> core.Counts:
        return core.Counts("bins", sources(self.columns, rules), self.bounds, FINEST)

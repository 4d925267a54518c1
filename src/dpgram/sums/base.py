"""What a statistic and its sum are. Integer sums: no order, grouping or number of workers can change a bit.

A statistic is a public function of one row (or of all rows of one unit) into bounded integers. Whatever it
computes, its result is clipped and put on the lattice, so that one unit adds at most 2^30 (trace of a Gram
matrix, total of a histogram): the sensitivity is a fact about integers. It must be evaluated row by row, in a
fixed order of operations, never by a matrix product over several rows, whose bits depend on the batch.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Protocol, Self, final

from dpgram.core import sums as core

if TYPE_CHECKING:
    from dpgram.core.units import PolicyCounts
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules


class Sum(Protocol):
    """An exact sum: a monoid under `|`. Not private: as sensitive as the table."""

    @property
    def counts(self) -> PolicyCounts:
        """How many rows it has seen, and what the policies did to them."""

    def __or__(self, other: Self) -> Self:
        """The sum of the rows of both."""

    def to_bytes(self) -> bytes:
        """A self-checking form for shipping between workers."""


class CoreSum(Sum, Protocol):
    """One that the core has added up."""

    @property
    def cells(self) -> core.Cells:
        """The exact sum as the core knows it."""


class Accumulator(Protocol):
    """Adds rows up; serves one thread."""

    def add(self, rows: CountedRows) -> None:
        """Count these rows; where there are units, all rows of every unit among them."""

    def result(self) -> tuple[Sum, ...]:
        """The sums so far: one, or one for each group."""


class Statistic(ABC):
    """A public, bounded function of a row, and how its values are added up. Can be sent to any worker."""

    __slots__ = ()

    @abstractmethod
    def accumulator(self, rules: RowRules) -> Accumulator:
        """Working memory of one thread."""

    def count(self, rules: RowRules) -> int:
        """How many sums it gives."""
        del rules
        return 1

    @abstractmethod
    def zero(self, rules: RowRules) -> tuple[Sum, ...]:
        """The sums of no rows."""


class CoreStatistic(Statistic):
    """One that the core adds up: named columns and an encoder as the core's data, and the sum that comes."""

    __slots__ = ()

    @abstractmethod
    def what(self, rules: RowRules) -> core.Sum:
        """What the core adds up of the rows that these rules read."""

    @abstractmethod
    def carried(self, found: core.Found) -> CoreSum:
        """An exact sum, to be shipped and merged."""

    def accumulator(self, rules: RowRules) -> Accumulator:
        """Working memory of one thread."""
        return CoreAccumulator(self, self.what(rules).adder())

    def zero(self, rules: RowRules) -> tuple[Sum, ...]:
        return tuple(map(self.carried, self.what(rules).adder().found()))


@final
class CoreAccumulator:
    """Adds rows up in the core."""

    def __init__(self, statistic: CoreStatistic, adder: core.Adder) -> None:
        self._statistic, self._adder = statistic, adder

    def add(self, rows: CountedRows) -> None:
        self._adder.add(rows.block)

    def result(self) -> tuple[Sum, ...]:
        return tuple(map(self._statistic.carried, self._adder.found()))

"""A statistic of its own for each group of rows, as where every group has coordinates of its own.

A row is in one group. Which rows of a unit count, and how much, is decided over all groups together, so that
a unit adds to all of these sums together no more than it would add to one. proofs/adaptive.md#adaptive-groups
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from dpgram.sums.base import Statistic, Sum

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules
    from dpgram.sums.base import Accumulator


@final
@dataclass(frozen=True, slots=True)
class EachGroupStatistic(Statistic):
    """One statistic for each group in order; none for a group that is not measured."""

    members: tuple[Statistic | None, ...]

    def accumulator(self, rules: RowRules) -> EachGroupAccumulator:
        """Working memory of one thread."""
        return EachGroupAccumulator(self, rules)

    def count(self, rules: RowRules) -> int:
        return sum(one.count(_alone(rules)) for one in self.members if one is not None)

    def zero(self, rules: RowRules) -> tuple[Sum, ...]:
        alone = _alone(rules)
        return tuple(found for one in self.members if one is not None for found in one.zero(alone))


@final
class EachGroupAccumulator:
    """Passes the rows of each group on.

    Proof: proofs/adaptive.md#adaptive-groups.
    """

    def __init__(self, statistic: EachGroupStatistic, rules: RowRules) -> None:
        alone = _alone(rules)
        self._members: list[tuple[int, Accumulator]] = [
            (number, one.accumulator(alone))
            for number, one in enumerate(statistic.members)
            if one is not None
        ]

    def add(self, rows: CountedRows) -> None:
        for number, one in self._members:
            one.add(rows.of_group(number))

    def result(self) -> tuple[Sum, ...]:
        return tuple(found for _, one in self._members for found in one.result())


def _alone(rules: RowRules) -> RowRules:
    return replace(rules, by=None)


def members_of(statistic: Statistic) -> tuple[Statistic, ...]:
    """What is computed of the rows of the groups; the statistic itself where that is the same for all."""
    if not isinstance(statistic, EachGroupStatistic):
        return (statistic,)
    return tuple(one for one in statistic.members if one is not None)

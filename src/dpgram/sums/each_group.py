"""A statistic of its own for each group of rows, as where every group has coordinates of its own.

A row is in one group. Which rows of a unit count, and how much, is decided over all groups together, so that
a unit adds to all of these sums together no more than it would add to one. proofs/adaptive.md#adaptive-groups
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, final

from dpgram.core import sums as core
from dpgram.sums.base import CoreStatistic, CoreSum, Statistic

if TYPE_CHECKING:
    from dpgram.rows.rules import RowRules


@final
@dataclass(frozen=True, slots=True)
class EachGroupStatistic(CoreStatistic):
    """One statistic for each group in order; none for a group that is not measured."""

    members: tuple[CoreStatistic | None, ...]

    def what(self, rules: RowRules) -> core.EachGroup:
        alone = _alone(rules)
        return core.EachGroup(tuple(None if one is None else one.what(alone) for one in self.members))

    def carried(self, found: core.Found) -> CoreSum:
        """Members are of one kind."""
        return next(one for one in self.members if one is not None).carried(found)

    def count(self, rules: RowRules) -> int:
        return sum(one.count(_alone(rules)) for one in self.members if one is not None)


def _alone(rules: RowRules) -> RowRules:
    return replace(rules, by=None)


def members_of(statistic: Statistic) -> tuple[Statistic, ...]:
    """What is computed of the rows of the groups; the statistic itself where that is the same for all."""
    if not isinstance(statistic, EachGroupStatistic):
        return (statistic,)
    return tuple(one for one in statistic.members if one is not None)

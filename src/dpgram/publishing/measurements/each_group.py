"""The same measurement for each group of rows, with coordinates of its own, at the price of one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from dpgram.errors import MechanismError
from dpgram.publishing.measurements.base import Measurement
from dpgram.sums.base import CoreStatistic
from dpgram.sums.each_group import EachGroupStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy, Noise
    from dpgram.core.run import Noisy
    from dpgram.privacy.events import Event


@final
@dataclass(frozen=True, slots=True)
class EachGroup(Measurement):
    """Members of one kind and one price, in the order of the groups; none for a group that has no part in it.

    A unit adds to all groups together what it would add to one, so that all draws together cost what one
    does.

    Proof: proofs/adaptive.md#adaptive-groups.
    """

    kind: ClassVar[str] = "each-group"
    result: ClassVar[Any] = tuple[Any, ...]
    members: tuple[Measurement | None, ...]

    def __post_init__(self) -> None:
        if len({one.event for one in self.present}) != 1:
            raise MechanismError("groups are measured at one price", remedy="This is a bug: please report it")

    @property
    def present(self) -> tuple[Measurement, ...]:
        return tuple(one for one in self.members if one is not None)

    @property
    def statistic(self) -> EachGroupStatistic:
        """That of each member, of the rows of its group."""
        return EachGroupStatistic(tuple(None if one is None else _core(one) for one in self.members))

    @property
    def event(self) -> Event:
        return self.present[0].event

    @property
    def added(self) -> Noise | None:
        """The same for all, as they have one price."""
        noises = {one.added for one in self.present}
        if len(noises) != 1:
            raise MechanismError("groups have one noise", remedy="This is a bug: please report it")
        return noises.pop()

    def record(self, drawn: tuple[Noisy, ...]) -> tuple[Any, ...]:
        """What each member publishes of its group's draw; None where there is no member."""
        each = iter(drawn)
        return tuple(None if one is None else one.record((next(each),)) for one in self.members)

    def draw(self, exact: tuple[Any, ...], entropy: Entropy) -> tuple[Any, ...]:
        """What each member publishes of the sum of its group; None where there is no member."""
        sums: Iterator[Any] = iter(exact)
        return tuple(None if one is None else one.draw((next(sums),), entropy) for one in self.members)

    def to_json(self, published: tuple[Any, ...]) -> list[Any]:
        found = zip(self.members, published, strict=True)
        return [None if one is None else one.to_json(each) for one, each in found]

    def from_json(self, plain: list[Any]) -> tuple[Any, ...]:
        found = zip(self.members, plain, strict=True)
        return tuple(None if one is None else one.from_json(each) for one, each in found)


def _core(measurement: Measurement) -> CoreStatistic:
    statistic = measurement.statistic
    if not isinstance(statistic, CoreStatistic):
        raise MechanismError("groups are measured in the core", remedy="This is a bug: please report it")
    return statistic


def each_group(members: Sequence[Measurement | None]) -> Measurement:
    """All groups at once; a single measurement where rows are not split."""
    return members[0] if len(members) == 1 and members[0] is not None else EachGroup(tuple(members))


def by_group(measurement: Measurement, published: Any) -> tuple[Any, ...]:
    """What was published for each group."""
    return published if isinstance(measurement, EachGroup) else (published,)

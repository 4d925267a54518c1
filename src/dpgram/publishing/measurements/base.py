"""What a measurement is: an exact integer sum of bounded row contributions, plus integer noise.

The row function may use public facts and what was published before, nothing else. A publication is a short
list of measurements in one event: docs/explanation/how-it-works.md, docs/adr/0018-one-path.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, cast, final

import msgspec

from dpgram.core.accounting import Price
from dpgram.core.encode import broken
from dpgram.core.run import Measure
from dpgram.privacy.events import ApproximateEvent, GaussianEvent, PureEvent, composed, parts_of
from dpgram.privacy.exact_sums import float_up, root_up
from dpgram.sums.base import CoreStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy, Noise
    from dpgram.core.run import Noisy
    from dpgram.privacy.events import Event
    from dpgram.rows.rules import RowRules
    from dpgram.sums.base import Statistic


class Measurement(ABC):
    """One noisy sum. Frozen, and public: it holds nothing of the table.

    Where noise is added to a sum, the core computes the price and draws, and `record` is given what came of
    it. Mechanisms with a law of their own draw from the exact sum: each has a page in proofs/.
    """

    __slots__ = ()

    kind: ClassVar[str]
    result: ClassVar[Any]
    """The type of what `draw` publishes, made of frozen records."""

    @property
    @abstractmethod
    def statistic(self) -> Statistic:
        """The bounded row function that engines add up."""

    @property
    @abstractmethod
    def event(self) -> Event:
        """What one draw costs."""

    @property
    def cost(self) -> Price:
        """The same for the core."""
        return cost_of(self.event)

    @property
    def added(self) -> Noise | None:
        """The noise that the core adds; None where a mechanism has a law of its own."""
        return None

    @final
    def measure(self, rules: RowRules) -> Measure | None:
        """The same for the core: what is added up of rows that are read by these rules, and the noise."""
        noise, statistic = self.added, self.statistic
        if noise is None or not isinstance(statistic, CoreStatistic):
            return None
        return Measure(statistic.what(rules), noise)

    def record(self, drawn: tuple[Noisy, ...]) -> Any:
        """What is published of what the core drew, for each group or once."""
        raise broken(f"nothing is added to {self.kind}, so that {len(drawn)} draws are of something else")

    def draw(self, exact: Any, entropy: Entropy) -> Any:
        """What is published of the exact sums. `dpgram.publishing.publication` alone calls it: paid first."""
        raise broken(f"{self.kind} has no law of its own, for {type(exact)} and {entropy.label} bits")

    def to_json(self, published: Any) -> Any:
        """What `draw` gave, as plain values: for the file from which an interrupted publication goes on."""
        return msgspec.to_builtins(published)

    def from_json(self, plain: Any) -> Any:
        """The same, read back."""
        return msgspec.convert(plain, self.result)


def cost_of(event: Event) -> Price:
    """What a charge pays for: sums of μ², ε and δ, and beside them what cannot be added."""
    spent = Price()
    for part in parts_of(event):
        match part:
            case GaussianEvent(mu=mu):
                spent += Price(mu_squared=Fraction(mu) ** 2)
            case PureEvent(epsilon=epsilon):
                spent += Price(epsilon=Fraction(epsilon))
            case ApproximateEvent(epsilon=0.0, delta=delta):
                spent += Price(delta=Fraction(delta))
            case _:
                spent += Price(own=(part,))
    return spent


def event_of(spent: Price) -> Event | None:
    """The same as one event, rounded up; None where nothing was spent.

    Proof: proofs/measurements.md#measurements-reserve.
    """
    parts: list[Event] = []
    if spent.mu_squared:
        parts.append(GaussianEvent(mu=root_up(spent.mu_squared)))
    if spent.epsilon:
        parts.append(PureEvent(epsilon=float_up(spent.epsilon)))
    if spent.delta:
        parts.append(ApproximateEvent(epsilon=0.0, delta=float_up(spent.delta)))
    parts += cast("tuple[Event, ...]", spent.own)
    return composed(parts) if parts else None

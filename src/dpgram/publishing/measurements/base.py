"""What a measurement is: an exact integer sum of bounded row contributions, plus integer noise.

The row function may use public facts and what was published before, nothing else. A publication is a short
list of measurements in one event: docs/explanation/how-it-works.md, docs/adr/0018-one-path.md.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

import msgspec

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.privacy.events import Event
    from dpgram.sums.base import Statistic


class Measurement(ABC):
    """One noisy sum. Frozen, and public: it holds nothing of the table."""

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

    @abstractmethod
    def draw(self, exact: Any, entropy: Entropy) -> Any:
        """What is published of the exact sums. `dpgram.publishing.publication` alone calls it: paid first."""

    def to_json(self, published: Any) -> Any:
        """What `draw` gave, as plain values: for the file from which an interrupted publication goes on."""
        return msgspec.to_builtins(published)

    def from_json(self, plain: Any) -> Any:
        """The same, read back."""
        return msgspec.convert(plain, self.result)

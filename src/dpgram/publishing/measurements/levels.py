"""Frequent levels of columns that list none: texts that occur are counted, and rare ones stay hidden.

Each text's count gets noise, and it is published when its noisy count reaches T. One row can bring one new
text to each of m columns, so T = 1 + (what noise exceeds with probability δ/m) keeps the chance that any text
of one row alone is published at most δ. Everything else goes to `other`. proofs/levels.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

from dpgram.document.fields import LearntLevels, MeasuredLevels
from dpgram.privacy.count_noise import CountNoise, count_event, level_threshold
from dpgram.privacy.events import ApproximateEvent, composed
from dpgram.publishing.measurements.base import Measurement
from dpgram.sums.levels import LevelsStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Noise
    from dpgram.core.run import Noisy
    from dpgram.privacy.events import Event

MOST_LEVELS: Final = 1_000
"""Most levels learnt in all; the fullest are kept."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Levels(Measurement):
    """The texts whose noisy counts reach the threshold. (ε, δ): the δ is for a text of one row alone.

    Proof: proofs/levels.md#levels-claim.
    """

    kind: ClassVar[str] = "levels"
    result: ClassVar[Any] = MeasuredLevels
    noise: CountNoise
    share: float
    """Of the event's currency, as the release records it."""
    units_changed: int
    """Rows that neighbours differ by: 1 under add/remove, 2 under replace-one."""
    delta: float
    columns: tuple[str, ...]

    @property
    def statistic(self) -> LevelsStatistic:
        """Every text that occurs."""
        return LevelsStatistic(self.columns)

    @property
    def event(self) -> Event:
        """The price of the counts, and the δ of the threshold."""
        counts = count_event(self.noise, histograms=len(self.columns), units_changed=self.units_changed)
        return composed([counts, ApproximateEvent(epsilon=0.0, delta=self.delta)])

    @property
    def added(self) -> Noise:
        return replace(self.noise.core, delta=self.delta)

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredLevels:
        """The levels of each column, the fullest first."""
        return MeasuredLevels(
            law=self.noise.law,
            scale=self.noise.scale,
            share=self.share,
            delta=self.delta,
            columns=tuple(
                self._kept(name, counts)
                for name, counts in zip(self.columns, drawn[0], strict=True)
                if isinstance(counts, Mapping)
            ),
        )

    def _kept(self, column: str, counts: Mapping[str, int]) -> LearntLevels:
        found = sorted(
            ((cell, name) for name, cell in counts.items()),
            key=lambda pair: (-pair[0], pair[1]),
        )[: MOST_LEVELS // len(self.columns)]
        return LearntLevels(
            column=column,
            threshold=str(level_threshold(self.noise, self.delta, len(self.columns))),
            levels=tuple(name for _, name in found),
            counts=tuple(str(cell) for cell, _ in found),
        )

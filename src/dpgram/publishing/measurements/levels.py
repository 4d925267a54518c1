"""Frequent levels of columns that list none: texts that occur are counted, and rare ones stay hidden.

Each text's count gets noise, and it is published when its noisy count reaches T. One row can bring one new
text to each of m columns, so T = 1 + (what noise exceeds with probability δ/m) keeps the chance that any text
of one row alone is published at most δ. Everything else goes to `other`. proofs/levels.md
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import numpy as np

from dpgram.document.fields import LearntLevels, MeasuredLevels
from dpgram.privacy.count_noise import CountNoise, count_event, level_threshold
from dpgram.privacy.events import ApproximateEvent, composed
from dpgram.publishing.measurements.base import Measurement
from dpgram.sums.levels import LevelsStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.privacy.events import Event
    from dpgram.sums.levels import ExactLevels

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

    def draw(self, exact: tuple[ExactLevels], entropy: Entropy) -> MeasuredLevels:
        """The levels of each column, the fullest first."""
        return MeasuredLevels(
            law=self.noise.law,
            scale=self.noise.scale,
            share=self.share,
            delta=self.delta,
            columns=tuple(
                self._kept(name, counts, entropy)
                for name, counts in zip(self.columns, exact[0].found, strict=True)
            ),
        )

    def _kept(self, column: str, counts: Mapping[str, int], entropy: Entropy) -> LearntLevels:
        threshold = level_threshold(self.noise, self.delta, len(self.columns))
        # In sorted order: the order of the rows must not show in what a seeded draw gives to whom.
        names = sorted(counts)
        cells = self.noise.draw(np.array([counts[name] for name in names], np.int64), entropy)
        found = sorted(
            ((int(cell), name) for cell, name in zip(cells, names, strict=True) if cell >= threshold),
            key=lambda pair: (-pair[0], pair[1]),
        )[: MOST_LEVELS // len(self.columns)]
        return LearntLevels(
            column=column,
            threshold=str(threshold),
            levels=tuple(name for _, name in found),
            counts=tuple(str(cell) for cell, _ in found),
        )

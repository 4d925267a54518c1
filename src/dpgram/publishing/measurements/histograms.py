"""Noisy histograms of all columns, and of what a clip takes: 2^30 lattice units are one row.

A row, or a unit, adds at most 2^30 to each histogram: to one cell, or shared between two neighbouring nodes
(proofs/adaptive.md#adaptive-histograms).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
import numpy.typing as npt

from dpgram.document.fields import (
    LevelHistogram,
    MeasuredClip,
    MeasuredHistograms,
    MeasuredReach,
    NumberHistogram,
)
from dpgram.publishing.measurements.counts import CountMeasurement, decimal_cells
from dpgram.rows.encoder import Encoder
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic

if TYPE_CHECKING:
    from dpgram.privacy.sampling.entropy import Entropy, Integers
    from dpgram.sums.counts import ExactCounts


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histograms(CountMeasurement):
    """Seventeen nodes of each column of numbers, all levels of the others, and what was lost of each.

    Proof: proofs/adaptive.md#adaptive-histograms.
    """

    kind: ClassVar[str] = "histograms"
    result: ClassVar[Any] = MeasuredHistograms
    columns: tuple[HistogramColumn, ...]

    @property
    def statistic(self) -> Any:
        return HistogramsStatistic(self.columns)

    @property
    def drawn(self) -> int:
        return len(self.columns)

    def draw(self, exact: tuple[ExactCounts], entropy: Entropy) -> MeasuredHistograms:
        """Noise on every cell of every column."""
        return MeasuredHistograms(
            columns=tuple(
                self._noisy(column, line, entropy)
                for column, line in zip(self.columns, exact[0].cells, strict=True)
            ),
            **self._facts(),
        )

    def _noisy(
        self, column: HistogramColumn, line: npt.NDArray[np.int64], entropy: Entropy
    ) -> NumberHistogram | LevelHistogram:
        cells = decimal_cells(self.noise.draw(line[: column.cells + column.losses], entropy))
        counts, lost = cells[: column.cells], cells[column.cells :]
        if column.bounds is None:
            return LevelHistogram(column=column.name, counts=counts, lost=lost)
        low, high = column.bounds
        return NumberHistogram(column=column.name, low=low, high=high, counts=counts, lost=lost)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reach(CountMeasurement):
    """Lengths of rows in the coordinates of the first matrix: how far they reach.

    Proof: proofs/adaptive.md#adaptive-clip.
    """

    kind: ClassVar[str] = "reach"
    result: ClassVar[Any] = MeasuredReach
    encoder: Encoder

    @property
    def statistic(self) -> ClipStatistic:
        return ClipStatistic(self.encoder, reach=True)

    def draw(self, exact: tuple[ExactCounts], entropy: Entropy) -> MeasuredReach:
        noisy: Integers = self.noise.draw(exact[0].cells[0], entropy)
        return MeasuredReach(cells=decimal_cells(noisy), **self._facts())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Clip(CountMeasurement):
    """Lengths of rows in the coordinates of the matrix, before the clip.

    Proof: proofs/adaptive.md#adaptive-clip.
    """

    kind: ClassVar[str] = "clip"
    result: ClassVar[Any] = MeasuredClip
    encoder: Encoder

    @property
    def statistic(self) -> ClipStatistic:
        return ClipStatistic(self.encoder)

    def draw(self, exact: tuple[ExactCounts], entropy: Entropy) -> MeasuredClip:
        noisy: Integers = self.noise.draw(exact[0].cells[0], entropy)
        return MeasuredClip(cells=decimal_cells(noisy), **self._facts())

"""Noisy histograms of all columns, and of what a clip takes: 2^30 lattice units are one row.

A row, or a unit, adds at most 2^30 to one cell of each histogram: proofs/adaptive.md#adaptive-histograms.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, final

import numpy as np

from dpgram.document.fields import (
    HistogramLook,
    LevelHistogram,
    MeasuredClip,
    MeasuredHistograms,
    NumberHistogram,
)
from dpgram.document.measurements import histogram_rows
from dpgram.privacy.count_noise import CountLaw, in_rows
from dpgram.publishing._scales import occupied_bins
from dpgram.publishing.measurements.counts import CountMeasurement, decimal_cells
from dpgram.rows.encoder import Encoder
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.histograms import LOST, HistogramColumn, HistogramsStatistic
from dpgram.sums.zoom import BINS, FINEST, Window

if TYPE_CHECKING:
    from dpgram.privacy.sampling.entropy import Entropy, Integers
    from dpgram.sums.counts import ExactCounts

LOOKS: Final = 2
"""How often a column of numbers is counted with Gaussian noise: between its bounds, then where it is."""


def looks_at(law: CountLaw) -> int:
    """Laplace noise adds up faster than a closer look, or an average, takes it away: once."""
    return LOOKS if law == "discrete-gaussian" else 1


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histograms(CountMeasurement):
    """Sixteen bins of each column of numbers, all levels of the others, and what was lost of each.

    Proof: proofs/adaptive.md#adaptive-histograms.
    """

    kind: ClassVar[str] = "histograms"
    result: ClassVar[Any] = MeasuredHistograms
    columns: tuple[HistogramColumn, ...]

    @property
    def statistic(self) -> HistogramsStatistic:
        """The finest bins, of which every look is made."""
        return HistogramsStatistic(self.columns)

    @property
    def drawn(self) -> int:
        """Every look at a column is a histogram."""
        looks = looks_at(self.noise.law)
        return sum(1 if column.bounds is None else looks for column in self.columns)

    def draw(self, exact: tuple[ExactCounts], entropy: Entropy) -> MeasuredHistograms:
        """A first look at all columns; then a closer one at those that the first found in few bins."""
        cells = exact[0].cells
        first = [
            self._look(column, Window(), line, entropy)
            if column.bounds is not None
            else self._levels(column, line, entropy)
            for column, line in zip(self.columns, cells, strict=True)
        ]
        found = MeasuredHistograms(columns=tuple(first), **self._facts())
        for _ in range(looks_at(self.noise.law) - 1):
            rows = histogram_rows(found)
            closer = [
                histogram
                if column.bounds is None or isinstance(histogram, LevelHistogram)
                else self._closer(column, histogram, line, rows, entropy)
                for column, histogram, line in zip(self.columns, found.columns, cells, strict=True)
            ]
            found = MeasuredHistograms(columns=tuple(closer), **self._facts())
        return found

    def _levels(self, column: HistogramColumn, line: Any, entropy: Entropy) -> LevelHistogram:
        noisy = self.noise.draw(line[: column.levels + LOST], entropy)
        lost = noisy[column.levels :]
        return LevelHistogram(
            column=column.name,
            counts=decimal_cells(noisy[: column.levels]),
            lost=decimal_cells(lost[:2]),
        )

    def _look(self, column: HistogramColumn, window: Window, line: Any, entropy: Entropy) -> NumberHistogram:
        return NumberHistogram(column=column.name, looks=(self._counted(column, window, line, entropy),))

    def _counted(self, column: HistogramColumn, window: Window, line: Any, entropy: Entropy) -> HistogramLook:
        bins = window.counts(line[:FINEST])
        noisy = self.noise.draw(np.concatenate([bins, line[FINEST : FINEST + LOST]]), entropy)
        low, high = window.edges(*(column.bounds or (0.0, 1.0)))
        return HistogramLook(
            low=low, high=high, bins=decimal_cells(noisy[:BINS]), lost=decimal_cells(noisy[BINS:])
        )

    def _closer(
        self,
        column: HistogramColumn,
        histogram: NumberHistogram,
        line: Any,
        rows: float,
        entropy: Entropy,
    ) -> NumberHistogram:
        """The bins that hold the column, if they are at most half of all; else the same bins once more."""
        noisy = in_rows(np.array([int(cell) for cell in histogram.looks[0].bins], dtype=object))
        run = occupied_bins(noisy, self.noise, rows)
        window = Window()
        if run is not None and run[1] - run[0] <= BINS // 2:
            step = FINEST // BINS
            window = Window(first=run[0] * step, width=(run[1] - run[0]) * step)
        look = self._counted(column, window, line, entropy)
        return NumberHistogram(column=histogram.column, looks=(*histogram.looks, look))


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

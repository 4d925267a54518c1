"""Noisy histograms of all columns, and of what a clip takes: 2^30 lattice units are one row.

A row, or a unit, adds at most 2^30 to each histogram: to one cell, or shared between two neighbouring nodes
(proofs/adaptive.md#adaptive-histograms).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from dpgram.core.sums import NODES
from dpgram.document.fields import (
    LevelHistogram,
    MeasuredClip,
    MeasuredHistograms,
    MeasuredReach,
    MeasuredZoom,
    NumberHistogram,
)
from dpgram.publishing.measurements.counts import CountMeasurement, decimal_cells, histograms_of
from dpgram.rows.encoder import Encoder
from dpgram.sums.clip import ClipStatistic
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic

if TYPE_CHECKING:
    from dpgram.core.run import Noisy


@dataclass(frozen=True, slots=True, kw_only=True)
class _ColumnHistograms(CountMeasurement):
    """One histogram of each of these columns, and what was lost of it."""

    columns: tuple[HistogramColumn, ...]

    @property
    def statistic(self) -> Any:
        return HistogramsStatistic(self.columns)

    @property
    def drawn(self) -> int:
        return len(self.columns)

    @abstractmethod
    def record(self, drawn: tuple[Noisy, ...]) -> Any:
        """The noisy cells by column."""

    def _noisy(self, drawn: tuple[Noisy, ...]) -> Iterator[tuple[HistogramColumn, tuple[str, ...]]]:
        """Each column with its cells: nodes or levels, and what was lost."""
        (lines,) = histograms_of(drawn)
        return zip(self.columns, map(decimal_cells, lines), strict=True)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Histograms(_ColumnHistograms):
    """Seventeen nodes of each column of numbers, all levels of the others, and what was lost of each.

    Proof: proofs/adaptive.md#adaptive-histograms.
    """

    kind: ClassVar[str] = "histograms"
    result: ClassVar[Any] = MeasuredHistograms

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredHistograms:
        return MeasuredHistograms(
            columns=tuple(
                LevelHistogram(column=column.name, counts=cells[: column.cells], lost=cells[column.cells :])
                if column.bounds is None
                else _of_numbers(column.name, column.bounds, cells)
                for column, cells in self._noisy(drawn)
            ),
            **self._facts(),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Zoom(_ColumnHistograms):
    """The same of some columns of numbers again, between closer ends that follow from what was published.

    Proof: proofs/adaptive.md#adaptive-zoom.
    """

    kind: ClassVar[str] = "zoom"
    result: ClassVar[Any] = MeasuredZoom

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredZoom:
        return MeasuredZoom(
            columns=tuple(
                _of_numbers(column.name, column.bounds, cells)
                for column, cells in self._noisy(drawn)
                if column.bounds is not None
            ),
            **self._facts(),
        )


def _of_numbers(name: str, ends: tuple[float, float], cells: tuple[str, ...]) -> NumberHistogram:
    return NumberHistogram(column=name, low=ends[0], high=ends[1], counts=cells[:NODES], lost=cells[NODES:])


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

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredReach:
        ((cells,),) = histograms_of(drawn)
        return MeasuredReach(cells=decimal_cells(cells), **self._facts())


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

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredClip:
        ((cells,),) = histograms_of(drawn)
        return MeasuredClip(cells=decimal_cells(cells), **self._facts())

"""Noisy histograms: the number of rows, powers of two, bins. 2^30 lattice units are one row.

A row, or a unit, adds at most 2^30 to one cell of each of m histograms: proofs/bounds.md#bounds-sensitivity.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from dpgram.document.fields import (
    ColumnBins,
    ColumnOctaves,
    LearntLook,
    MeasuredBins,
    MeasuredOctaves,
    MeasuredRows,
)
from dpgram.document.measurements import crowded
from dpgram.privacy.count_noise import CountNoise, count_event, in_rows
from dpgram.publishing._bounds import coarse_bounds
from dpgram.publishing.measurements.base import Measurement
from dpgram.sums.counts import (
    BinsStatistic,
    CountsStatistic,
    OctavesStatistic,
    RowsStatistic,
)
from dpgram.sums.zoom import Window, zoom_steps

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy, Integers, Noise
    from dpgram.core.run import Noisy
    from dpgram.privacy.events import Event
    from dpgram.sums.counts import ExactCounts


def decimal_cells(cells: Integers) -> tuple[str, ...]:
    """Whole numbers as a release writes them."""
    return tuple(str(int(cell)) for cell in cells)


def histograms_of(drawn: tuple[Noisy, ...]) -> tuple[tuple[Integers, ...], ...]:
    """What the core drew, as lines of cells."""
    return tuple(tuple(line for line in one if not isinstance(line, Mapping)) for one in drawn)


@dataclass(frozen=True, slots=True, kw_only=True)
class CountMeasurement(Measurement):
    """Histograms with noise of one law on every cell."""

    noise: CountNoise
    share: float
    """Of the event's currency: for the record."""
    units_changed: int
    """1 under add/remove, 2 under replace-one."""

    @property
    @abstractmethod
    def statistic(self) -> CountsStatistic:
        """Which histograms."""

    @property
    def drawn(self) -> int:
        """How many histograms are drawn."""
        return self.statistic.shape[0]

    @property
    def event(self) -> Event:
        """μ² = m·units_changed·2^60/σ², or ε = m·units_changed·2^30/b."""
        return count_event(self.noise, histograms=self.drawn, units_changed=self.units_changed)

    @property
    def added(self) -> Noise | None:
        return self.noise.core

    def _facts(self) -> dict[str, Any]:
        return {"law": self.noise.law, "scale": self.noise.scale, "share": self.share}


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowCount(CountMeasurement):
    """The noisy number of rows in which these columns are there."""

    kind: ClassVar[str] = "rows"
    result: ClassVar[Any] = MeasuredRows
    columns: tuple[str, ...]

    @property
    def statistic(self) -> RowsStatistic:
        return RowsStatistic(self.columns)

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredRows:
        (((cell,),),) = histograms_of(drawn)
        return MeasuredRows(cell=str(int(cell)), **self._facts())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Octaves(CountMeasurement):
    """Powers of two of each column; of each the run that stands out of the noise is published."""

    kind: ClassVar[str] = "octaves"
    result: ClassVar[Any] = MeasuredOctaves
    columns: tuple[str, ...]

    @property
    def statistic(self) -> OctavesStatistic:
        return OctavesStatistic(self.columns)

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredOctaves:
        """What noise hides is left out: post-processing. Proof: proofs/bounds.md#bounds-after."""
        (noisy,) = histograms_of(drawn)
        return MeasuredOctaves(
            columns=tuple(self._run(name, cells) for name, cells in zip(self.columns, noisy, strict=True)),
            **self._facts(),
        )

    def _run(self, name: str, cells: Integers) -> ColumnOctaves:
        run = coarse_bounds(in_rows(cells), self.noise, len(self.columns))
        if run is None:
            return ColumnOctaves(column=name, first=0, cells=())
        return ColumnOctaves(
            column=name, first=run.first, cells=decimal_cells(cells[run.first : run.last + 1])
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Bins(CountMeasurement):
    """Sixteen bins of each column, several times: closer where two of them hold nearly all of it.

    Proof: proofs/bounds.md#bounds-looks.
    """

    kind: ClassVar[str] = "bins"
    result: ClassVar[Any] = MeasuredBins
    columns: tuple[str, ...]
    bounds: tuple[tuple[float, float], ...]
    """What the octaves told."""
    rows: float
    """The published number of rows."""

    @property
    def statistic(self) -> BinsStatistic:
        """The finest bins, of which every look is made."""
        return BinsStatistic(self.columns, self.bounds)

    @property
    def added(self) -> None:
        """Each look depends on the one before: it draws by itself."""
        return None

    @property
    def drawn(self) -> int:
        """Every look at every column is a histogram."""
        return len(self.columns) * zoom_steps(self.noise.law)

    def draw(self, exact: tuple[ExactCounts], entropy: Entropy) -> MeasuredBins:
        """Look after look, each where those before it found the column."""
        finest = exact[0].cells
        windows = [Window() for _ in self.columns]
        looks: list[list[LearntLook]] = [[] for _ in self.columns]
        for _ in range(zoom_steps(self.noise.law)):
            for place, counts in enumerate(finest):
                cells = self.noise.draw(windows[place].counts(counts), entropy)
                low, high = windows[place].edges(*self.bounds[place])
                looks[place].append(LearntLook(low=low, high=high, bins=decimal_cells(cells)))
                closer = None if windows[place].closest else crowded(looks[place], self.rows, self.noise)
                windows[place] = windows[place] if closer is None else windows[place].closer(closer)
        return MeasuredBins(
            columns=tuple(
                ColumnBins(column=name, looks=tuple(seen))
                for name, seen in zip(self.columns, looks, strict=True)
            ),
            **self._facts(),
        )

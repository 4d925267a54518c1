"""Σ (1, z, z²) of every column with one Gaussian noise: from which means and deviations follow."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Self, final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dpgram.document.fields import Cell
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.calibrate import discrete_gaussian_sigma
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.events import GaussianEvent
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.counts import decimal_cells
from dpgram.sums.column_moments import ColumnMomentsStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.sums.column_moments import ExactColumnMoments


@final
class MeasuredColumnMoments(Struct, frozen=True, kw_only=True):
    """Noisy counts, sums and sums of squares of each column, in units of 2⁻³⁰."""

    count: tuple[Cell, ...]
    first: tuple[Cell, ...]
    second: tuple[Cell, ...]

    def numbers(self) -> tuple[npt.NDArray[np.float64], ...]:
        """The three in units of rows."""
        return tuple(
            np.array([int(cell) for cell in line], dtype=np.float64) / ROW_NORM_SQUARED
            for line in (self.count, self.first, self.second)
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnMoments(Measurement):
    """Independent discrete Gaussian noise on 3d cells: μ = Δ/σ.

    In each column a row is (1, z, z²) with |z| ≤ 1, or nothing where its cell is missing: a square of 3 at
    most. Two rows differ most between z = 1 and z = −1, by 4. So Δ² = 3d under add/remove, 4d under
    replace-one.
    """

    kind: ClassVar[str] = "column-moments"
    result: ClassVar[Any] = MeasuredColumnMoments
    sums: ColumnMomentsStatistic
    adjacency: Adjacency
    sigma: float

    @classmethod
    def calibrated(cls, sums: ColumnMomentsStatistic, asked: Guarantee, adjacency: Adjacency) -> Self:
        """The least σ whose exact curve, discreteness included, is within (ε, δ)."""
        sensitivity = row_sensitivity(len(sums.columns), adjacency) * ROW_NORM_SQUARED
        sigma = discrete_gaussian_sigma(epsilon=asked.epsilon, delta=asked.delta, sensitivity=sensitivity)
        return cls(sums=sums, adjacency=adjacency, sigma=sigma)

    @property
    def sensitivity(self) -> float:
        """Δ in units of rows."""
        return row_sensitivity(len(self.sums.columns), self.adjacency)

    @property
    def statistic(self) -> ColumnMomentsStatistic:
        """Every column by itself."""
        return self.sums

    @property
    def event(self) -> GaussianEvent:
        """μ = Δ/σ."""
        return GaussianEvent(mu=up(self.sensitivity * ROW_NORM_SQUARED / self.sigma))

    def draw(self, exact: tuple[ExactColumnMoments], entropy: Entropy) -> MeasuredColumnMoments:
        cells = exact[0].cells
        noisy = cells.astype(object) + entropy.discrete_gaussian(self.sigma, cells.size).reshape(cells.shape)
        count, first, second = map(decimal_cells, noisy)
        return MeasuredColumnMoments(count=count, first=first, second=second)


def row_sensitivity(columns: int, adjacency: Adjacency) -> float:
    """How far one row, or a unit, moves the sums of so many columns, rounded up."""
    square = 3.0 if adjacency.name == "add-remove" else 4.0
    return up(math.sqrt(square * columns))

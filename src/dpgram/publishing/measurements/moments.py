"""(XᵀSX + N₁, XᵀSy + N₂) of rows inside public bounds, S public weights: noise on a matrix and a vector."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal, Self, TypeAlias, final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dpgram.core.noise import checked_scale
from dpgram.document.fields import Cell
from dpgram.errors import GuaranteeError
from dpgram.lattice import ROW_NORM
from dpgram.mechanisms import CalibratedGaussian, CalibratedMechanism, Drawn
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.calibrate import DISCRETE_SIGMA_AT_LEAST, stacked_sigmas
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.events import Event, GaussianEvent, composed
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.counts import decimal_cells
from dpgram.publishing.measurements.gram import MeasuredGram, published_matrix
from dpgram.sums.moments import MomentsStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.sums.moments import ExactMoments

Integers = npt.NDArray[np.int64]
Cells = npt.NDArray[np.object_]
VectorLaw: TypeAlias = Literal["gaussian", "laplace"]

_UNASKED: Final = 1e-60
"""The cost of noise on y², which is not released: its share of μ² is below 10⁻²⁵."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class VectorNoise:
    """Independent discrete noise on the cells of Σ q t: Gaussian of scale σ, or Laplace of scale b."""

    law: VectorLaw
    scale: float

    def __post_init__(self) -> None:
        checked_scale(self.scale)

    def draw(self, exact: Integers, entropy: Entropy) -> Cells:
        """Integers plus integers."""
        sample = entropy.discrete_gaussian if self.law == "gaussian" else entropy.discrete_laplace
        noisy: Cells = exact.astype(object) + sample(self.scale, len(exact))
        return noisy


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MomentNoise:
    """Noise on both moments, and what it costs."""

    second: CalibratedMechanism
    first: VectorNoise
    events: tuple[Event, ...]

    def draw(self, second: Integers, first: Integers, entropy: Entropy) -> tuple[Drawn, Cells]:
        """Both noisy moments, in lattice units. Call it only after the events have been charged."""
        return self.second.draw(second, entropy), self.first.draw(first, entropy)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointGaussian:
    """One Gaussian release of both, in lattice units, and what one draw of it is worth.

    μ-GDP with μ² = (Δ₁/σ₁)² + (Δ₂/σ₂)² under add/remove, and by the stacked sensitivity under replace-one
    (proofs/adjacency.md). Proof: proofs/adassp.md#adassp-claim.
    """

    second: float
    """σ₁, of a diagonal cell of XᵀX; off the diagonal it is σ₁/√2."""
    first: float
    """σ₂, of a cell of Xᵀy."""
    mu: float

    @classmethod
    def calibrated(cls, mu: float, adjacency: Adjacency, *, width: int) -> Self:
        """The shares that minimise E|N₂ − N₁β|² for |β| = 1 in units of B_y/B_x: costs (d+1)/2 and d."""
        costs = (0.5 * (width + 1.0), float(width), _UNASKED)
        norm = float(ROW_NORM)
        second, first, unasked = stacked_sigmas(adjacency, mu=mu, x_norm=norm, y_bound=norm, costs=costs)
        if min(second, math.sqrt(2.0) * first) < DISCRETE_SIGMA_AT_LEAST:
            raise GuaranteeError(
                "integer noise this small is not covered by the proof of its privacy",
                got=f"sigma = {min(second, first):g} lattice units",
                limit=f"sigma ≥ {DISCRETE_SIGMA_AT_LEAST:g}",
                remedy="Ask for a smaller epsilon or delta.",
            )
        spent = adjacency.stacked_mu(norm, norm, (second**-2, first**-2, unasked**-2))
        return cls(second=second, first=first, mu=up(spent))

    @property
    def event(self) -> GaussianEvent:
        return GaussianEvent(mu=self.mu)

    @property
    def noise(self) -> MomentNoise:
        """The same as two noises in one event."""
        vector = VectorNoise(law="gaussian", scale=self.first)
        return MomentNoise(second=CalibratedGaussian(sigma=self.second), first=vector, events=(self.event,))


@final
class MeasuredMoments(Struct, frozen=True, kw_only=True):
    """Both noisy moments in lattice units."""

    second: MeasuredGram
    first: tuple[Cell, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Moments(Measurement):
    """XᵀSX and XᵀSy; the weights S come from what was published before.

    Proofs: proofs/adassp.md#adassp-claim, proofs/robust.md#robust-claim.
    """

    kind: ClassVar[str] = "moments"
    result: ClassVar[Any] = MeasuredMoments
    sums: MomentsStatistic
    noise: MomentNoise

    @property
    def statistic(self) -> MomentsStatistic:
        """Rows inside their bounds."""
        return self.sums

    @property
    def event(self) -> Event:
        return composed(self.noise.events)

    def draw(self, exact: tuple[ExactMoments], entropy: Entropy) -> MeasuredMoments:
        second, first = self.noise.draw(exact[0].xx, exact[0].xy, entropy)
        found = MeasuredGram(matrix=published_matrix(second), noise=second.noise)
        return MeasuredMoments(second=found, first=decimal_cells(first))

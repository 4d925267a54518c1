"""(XᵀX + N₁, Xᵀy + N₂): one Gaussian release of both, N₁ symmetric with deviation σ₁ on its diagonal.

μ-GDP with μ² = (Δ₁/σ₁)² + (Δ₂/σ₂)² under add/remove, and by the stacked sensitivity under replace-one
(proofs/adjacency.md). Drawn as discrete Gaussian integers on the lattice; proofs/adassp.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import GuaranteeError
from dpgram.estimators.bounded_rows import Integers
from dpgram.lattice import ROW_NORM
from dpgram.mechanisms.gaussian import Gaussian
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.calibrate import DISCRETE_SIGMA_AT_LEAST, stacked_sigmas
from dpgram.privacy.entropy import Entropy
from dpgram.privacy.events import GaussianEvent
from dpgram.privacy.rounding import up

Cells = npt.NDArray[np.object_]

_UNASKED: Final = 1e-60
"""The cost of noise on y², which is not released: its share of μ² is below 10⁻²⁵."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointGaussian:
    """Deviations in lattice units, and what one draw of both is worth.

    Proof: proofs/adassp.md#adassp-claim.
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
        spent = adjacency.stacked(norm, norm, (second**-2, first**-2, unasked**-2))
        return cls(second=second, first=first, mu=up(spent))

    @property
    def event(self) -> GaussianEvent:
        """What a ledger is charged."""
        return GaussianEvent(mu=self.mu)

    def draw(self, second: Integers, first: Integers, entropy: Entropy) -> tuple[Cells, Cells]:
        """Both moments with integer noise. Call it only after the event has been charged."""
        noisy = Gaussian(sigma=self.second).draw(second, entropy).cells
        return noisy, first.astype(object) + entropy.discrete_gaussian(self.first, len(first))

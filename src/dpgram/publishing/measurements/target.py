"""(XᵀX, Xᵀy, yᵀy) for one target: three Gaussian noises in one event, shared out where the fit needs them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

from msgspec import Struct

from dpgram.core.noise import offdiagonal_scale_at_least
from dpgram.document.fields import Cell
from dpgram.errors import GuaranteeError, MechanismError
from dpgram.mechanisms.base import strictly_below, symmetric
from dpgram.privacy.accountant import GaussianEvent
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.calibrate import DISCRETE_SLACK, discrete_mu_at_most, stacked_sigmas
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.counts import decimal_cells
from dpgram.publishing.measurements.gram import lower_triangle
from dpgram.rows.encoder import Encoder
from dpgram.sums.target import TargetBounds, TargetStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.sums.moments import ExactMoments

SLOPE: Final = 0.5
"""|β|·Q/T, the guess by which noise is shared out between XᵀX and Xᵀy; the optimum is flat around it. Chosen
on the sets of benchmarks/estimators.py, where fits at small epsilon are shrunken and want less."""
SQUARE_SHARE: Final = 0.03
"""The part of μ² spent on yᵀy, which only says how large coefficients can be and how large the error is."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetedGaussian:
    """(XᵀX + N, Xᵀy + n, yᵀy + ν): scales σ_xx for N_ii, σ_xx/√2 for N_ij, σ_xy for n_i and σ_yy for ν.

    μ-GDP with μ² = Q⁴/σ_xx² + Q²T²/σ_xy² + T⁴/σ_yy² under add/remove; the stacked sensitivity of
    proofs/adjacency.md under replace-one. Discrete Gaussian integers, whose slack of 10⁻⁸ the calibration
    pays: proofs/joint.md#joint-claim.
    """

    sigma_xx: float
    sigma_xy: float
    sigma_yy: float
    row_bounds: TargetBounds
    adjacency: Adjacency

    @classmethod
    def calibrated(cls, guarantee: Guarantee, row_bounds: TargetBounds, adjacency: Adjacency) -> Self:
        """The shares that minimise E|n − Nβ|² for |β| = SLOPE·T/Q: costs β²(d+1)/2 and d (privacy-math 1).

        Proof: proofs/joint.md#joint-shares.
        """
        if guarantee.pure:
            raise MechanismError(
                "the joint Gaussian release cannot give a pure guarantee",
                got="delta = 0",
                limit="delta > 0",
                remedy="Use mechanism='matrix-laplace', or give a delta such as 1e-6.",
            )
        width, x, y = len(row_bounds.features), row_bounds.x, float(row_bounds.y)
        roots = (SLOPE * y / x * math.sqrt(0.5 * (width + 1.0)), math.sqrt(width))
        spent = roots[0] * x * x + roots[1] * x * y
        square = SQUARE_SHARE / (1.0 - SQUARE_SHARE) * spent / (y * y)
        sigmas = stacked_sigmas(
            adjacency,
            mu=discrete_mu_at_most(guarantee.epsilon, guarantee.delta),
            x_norm=x,
            y_bound=y,
            costs=(roots[0] ** 2, roots[1] ** 2, square**2),
        )
        found = cls(
            sigma_xx=sigmas[0],
            sigma_xy=sigmas[1],
            sigma_yy=sigmas[2],
            row_bounds=row_bounds,
            adjacency=adjacency,
        )
        found.check_slack()
        return found

    @property
    def mu(self) -> float:
        """What one draw is worth, rounded up. Proof: proofs/joint.md#joint-space."""
        precisions = (self.sigma_xx**-2, self.sigma_xy**-2, self.sigma_yy**-2)
        return self.adjacency.stacked_mu(self.row_bounds.x, float(self.row_bounds.y), precisions)

    @property
    def event(self) -> GaussianEvent:
        """What a ledger is charged: one event, as the three parts are fixed beforehand."""
        return GaussianEvent(mu=self.mu)

    def check_slack(self) -> None:
        """Refuse noise so small that integers differ from the Gaussian by more than the calibration pays.

        a + b of proofs/gaussian.md with 1/s² bounded by the narrowest cell; a thousandth of the slack, as
        many fits may share a ledger.

        Proof: proofs/joint.md#joint-integers.
        """
        width = len(self.row_bounds.features)
        cells = width * (width + 1) // 2 + width + 1
        narrowest = min(self.sigma_xx / math.sqrt(2.0), self.sigma_xy, self.sigma_yy)
        slack = (cells + (math.sqrt(cells) + 40.0 + self.mu) ** 2) / (24.0 * narrowest**2)
        if slack > 1e-3 * DISCRETE_SLACK:
            raise GuaranteeError(
                "integer noise this small is not covered by the proof of its privacy",
                got=f"a scale of {narrowest:g} lattice units",
                remedy="Ask for a smaller epsilon, or a larger clip radius.",
            )

    @property
    def forecast(self) -> float:
        """E|n − Nβ|² in encoded units, for the guess of |β|: what `auto` compares."""
        width, unit = len(self.row_bounds.features), self.row_bounds.unit**2
        slope = SLOPE * self.row_bounds.y / self.row_bounds.x
        variance = width * self.sigma_xy**2 + 0.5 * (width + 1.0) * (slope * self.sigma_xx) ** 2
        return variance * unit**2

    def draw(self, sums: ExactMoments, entropy: Entropy) -> MeasuredTarget:
        """Independent integers on every cell. Call it only after the event has been charged."""
        width = len(sums.xx)
        below = sums.xx[strictly_below(width)]
        xx = symmetric(
            sums.xx.diagonal() + entropy.discrete_gaussian(self.sigma_xx, width),
            below + entropy.discrete_gaussian(offdiagonal_scale_at_least(self.sigma_xx), len(below)),
        )
        xy = sums.xy + entropy.discrete_gaussian(self.sigma_xy, width)
        yy = sums.yy + entropy.discrete_gaussian(self.sigma_yy, 1)[0]
        return MeasuredTarget(xx=lower_triangle(xx), xy=decimal_cells(xy), yy=str(int(yy)))


@final
class MeasuredTarget(Struct, frozen=True, kw_only=True):
    """Noisy sums in lattice units: the lower triangle of XᵀX row by row, Xᵀy, yᵀy."""

    xx: tuple[Cell, ...]
    xy: tuple[Cell, ...]
    yy: Cell


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Measurement):
    """The sums that a regression of one target needs. Proof: proofs/joint.md#joint-claim."""

    kind: ClassVar[str] = "target"
    result: ClassVar[Any] = MeasuredTarget
    encoder: Encoder
    law: TargetedGaussian

    @property
    def statistic(self) -> TargetStatistic:
        """Features and target, each within its bounds."""
        return TargetStatistic(encoder=self.encoder, row_bounds=self.law.row_bounds)

    @property
    def event(self) -> GaussianEvent:
        return self.law.event

    def draw(self, exact: tuple[ExactMoments], entropy: Entropy) -> MeasuredTarget:
        return self.law.draw(exact[0], entropy)

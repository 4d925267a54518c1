"""(XᵀX, Xᵀy, yᵀy) for one target: three Gaussian noises in one event, shared out where the fit needs them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Final, Literal, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.errors import GuaranteeError, MechanismError
from dpgram.estimators.joint_sums import JointSums, Reach
from dpgram.mechanisms.base import strictly_below, symmetric
from dpgram.mechanisms.gaussian import offdiagonal_scale_at_least
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.accountant import GaussianEvent
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.calibrate import DISCRETE_SLACK, discrete_mu_at_most, stacked_sigmas
from dpgram.privacy.entropy import Entropy
from dpgram.privacy.guarantee import Guarantee
from dpgram.schema import Boolean, Numeric, Ordinal, Schema

Matrix = npt.NDArray[np.float64]

SLOPE: Final = 0.5
"""|β|·Q/T, the guess by which noise is shared out between XᵀX and Xᵀy; the optimum is flat around it. Chosen
on the sets of benchmarks/estimators.py, where fits at small epsilon are shrunken and want less."""
TARGET_LENGTH: Final = math.sqrt((math.sqrt(1.0 + 8.0 * SLOPE**2) - 1.0) / (4.0 * SLOPE**2))
"""√r, r minimising (1 + r)²(1/r + SLOPE²): the target's length over that of the features where one symmetric
noise covers both."""
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
    reach: Reach
    adjacency: Adjacency

    @classmethod
    def calibrated(cls, guarantee: Guarantee, reach: Reach, adjacency: Adjacency) -> Self:
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
        width, x, y = len(reach.features), reach.x, float(reach.y)
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
            sigma_xx=sigmas[0], sigma_xy=sigmas[1], sigma_yy=sigmas[2], reach=reach, adjacency=adjacency
        )
        found.check_slack()
        return found

    @property
    def mu(self) -> float:
        """What one draw is worth, rounded up. Proof: proofs/joint.md#joint-space."""
        precisions = (self.sigma_xx**-2, self.sigma_xy**-2, self.sigma_yy**-2)
        return self.adjacency.stacked(self.reach.x, float(self.reach.y), precisions)

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
        width = len(self.reach.features)
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
        width, unit = len(self.reach.features), self.reach.unit**2
        slope = SLOPE * self.reach.y / self.reach.x
        variance = width * self.sigma_xy**2 + 0.5 * (width + 1.0) * (slope * self.sigma_xx) ** 2
        return variance * unit**2

    def draw(self, sums: JointSums, entropy: Entropy) -> NoisySums:
        """Independent integers on every cell. Call it only after the event has been charged."""
        width = len(sums.xx)
        below = sums.xx[strictly_below(width)]
        xx = symmetric(
            sums.xx.diagonal() + entropy.discrete_gaussian(self.sigma_xx, width),
            below + entropy.discrete_gaussian(offdiagonal_scale_at_least(self.sigma_xx), len(below)),
        )
        xy = sums.xy + entropy.discrete_gaussian(self.sigma_xy, width)
        yy = sums.yy + entropy.discrete_gaussian(self.sigma_yy, 1)[0]
        return NoisySums(xx=xx, xy=xy, yy=int(yy), law=self, entropy=entropy.label)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NoisySums:
    """The private sums, in lattice units, with the law that made them. Safe to keep and to show.

    Proof: proofs/joint.md#joint-analyst.
    """

    xx: npt.NDArray[np.object_]
    xy: npt.NDArray[np.object_]
    yy: int
    law: TargetedGaussian
    entropy: Literal["system", "seeded"]
    """Whoever knows the seed of a seeded source can take its noise off again."""

    @property
    def target_scale(self) -> float:
        """k = σ_xx/(√2σ_xy): with the target k times as long, Xᵀy has the noise of XᵀX off its diagonal."""
        return self.law.sigma_xx / (math.sqrt(2.0) * self.law.sigma_xy)

    @property
    def square_sd(self) -> float:
        """The deviation of yᵀy's noise in the moments' units: the one cell with a law of its own."""
        return self.law.sigma_yy * (self.law.reach.unit * self.target_scale) ** 2

    def moments(
        self, schema: Schema, target: str, *, public_rows: int | None, complete_groups: bool
    ) -> Moments:
        """The sums as an analyst sees a release: the target's weight is chosen so that one law fits them.

        Every cell but yᵀy then has the law of the symmetric Gaussian with σ_xx, exactly.
        """
        reach, scale = self.law.reach, self.target_scale
        features, last = list(reach.features), reach.target
        gram = np.empty((schema.width, schema.width))
        gram[np.ix_(features, features)] = self.xx.astype(np.float64)
        gram[features, last] = gram[last, features] = self.xy.astype(np.float64) * scale
        gram[last, last] = float(self.yy) * scale**2
        weighted = reweighted(schema, target, scale)
        # Weights are rounded to lattice units, so that the reach alone would make every table look clipped.
        longest = math.hypot(reach.x_encoded, weighted.column(target).weight)
        return Moments(
            gram=gram * reach.unit**2,
            schema=weighted,
            noise=EncodedNoise.of(SymmetricGaussian(sigma=self.law.sigma_xx), reach.unit**2),
            radius=longest if reach.clipped else math.sqrt(weighted.max_norm_squared),
            complete_groups=complete_groups,
            public_rows=public_rows,
        )


def reweighted(schema: Schema, target: str, factor: float) -> Schema:
    """The schema with the target's weight multiplied."""
    columns = [
        replace(column, weight=column.weight * factor)
        if column.name == target and isinstance(column, Numeric | Ordinal | Boolean)
        else column
        for column in schema.columns
    ]
    return Schema(*columns, constant=schema.constant)

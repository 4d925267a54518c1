"""The noisy sums of one target, as a fit keeps them, and as the moments that analyses of a release use."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.noise import SymmetricGaussian
from dpgram.publishing.measurements.gram import full_matrix
from dpgram.publishing.measurements.target import SLOPE, MeasuredTarget, TargetedGaussian
from dpgram.schema import Schema

TARGET_LENGTH: Final = math.sqrt((math.sqrt(1.0 + 8.0 * SLOPE**2) - 1.0) / (4.0 * SLOPE**2))
"""√r, r minimising (1 + r)²(1/r + SLOPE²): the target's length over that of the features where one symmetric
noise covers both."""


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

    @classmethod
    def of(
        cls, measured: MeasuredTarget, law: TargetedGaussian, entropy: Literal["system", "seeded"]
    ) -> Self:
        """What was published, as numbers."""
        return cls(
            xx=full_matrix(measured.xx, len(measured.xy)),
            xy=np.array([int(cell) for cell in measured.xy], dtype=object),
            yy=int(measured.yy),
            law=law,
            entropy=entropy,
        )

    @property
    def target_scale(self) -> float:
        """k = σ_xx/(√2σ_xy): with the target k times as long, Xᵀy has the noise of XᵀX off its diagonal."""
        return self.law.sigma_xx / (math.sqrt(2.0) * self.law.sigma_xy)

    @property
    def square_sd(self) -> float:
        """The deviation of yᵀy's noise in the moments' units: the one cell with a law of its own."""
        return self.law.sigma_yy * (self.law.row_bounds.unit * self.target_scale) ** 2

    def moments(
        self, schema: Schema, target: str, *, public_rows: int | None, complete_groups: bool
    ) -> Moments:
        """The sums as an analyst sees a release: the target's weight is chosen so that one law fits them.

        Every cell but yᵀy then has the law of the symmetric Gaussian with σ_xx, exactly.
        """
        row_bounds, scale = self.law.row_bounds, self.target_scale
        features, last = list(row_bounds.features), row_bounds.target
        gram = np.empty((schema.width, schema.width))
        gram[np.ix_(features, features)] = self.xx.astype(np.float64)
        gram[features, last] = gram[last, features] = self.xy.astype(np.float64) * scale
        gram[last, last] = float(self.yy) * scale**2
        weighted = reweighted(schema, target, scale)
        # Weights are rounded to lattice units, so that the bounds alone would make every table look clipped.
        longest = math.hypot(row_bounds.x_encoded, weighted.column(target).weight)
        return Moments(
            gram=gram * row_bounds.unit**2,
            schema=weighted,
            noise=EncodedNoise.of(SymmetricGaussian(sigma=self.law.sigma_xx), row_bounds.unit**2),
            radius=longest if row_bounds.clipped else math.sqrt(weighted.max_norm_squared),
            complete_groups=complete_groups,
            public_rows=public_rows,
        )


def reweighted(schema: Schema, target: str, factor: float) -> Schema:
    """The schema with the target's weight multiplied."""
    columns = [column.reweighted(factor) if column.name == target else column for column in schema.columns]
    return Schema(*columns, constant=schema.constant)

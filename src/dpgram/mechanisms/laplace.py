"""Independent Laplace noise on every cell: pure ε, kept as the simplest baseline (Amin et al., L)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import Drawn, Facts, Mechanism, strictly_below, symmetric
from dpgram.noise import EntrywiseLaplace
from dpgram.privacy.accountant import Event, PureEvent
from dpgram.privacy.curves.base import PrivacyCurve, PureCurve
from dpgram.privacy.curves.rounding import SLACK, up
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.entropy import Entropy

DIAGONAL_WEIGHT: Final = 0.5 ** (1.0 / 3.0)
"""Diagonal cells get scale b/w, others b. With b = (w + (d−1)/2)·s/ε the squared Frobenius error
2b²(d/w² + d(d−1)) is least at w³ = 1/2, whatever d is."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Laplace(Mechanism):
    """G + N, N_ij discrete Laplace of scale b, N_ii of scale b/w with w = 2^(−1/3).

    ε-DP with ε = Δ/b, Δ the L1 sensitivity of the upper triangle whose diagonal is weighted by w.
    proofs/laplace.md#laplace-claim
    """

    name: ClassVar[str] = "laplace"
    psd: ClassVar[bool] = False
    pure: ClassVar[bool] = True
    joint_groups: ClassVar[bool] = True

    scale: float
    """b, in lattice units."""

    @classmethod
    def calibrated(cls, guarantee: Guarantee, facts: Facts) -> Self:
        """b = Δ/ε, rounded up far enough that Δ/b, rounded up, is still within ε; δ is not used."""
        return cls(scale=up(_sensitivity(facts) / guarantee.epsilon * (1.0 + 4.0 * SLACK)))

    def law(self, width: int) -> EntrywiseLaplace:
        """The law of the noise, which does not depend on the width.

        Proof: proofs/laplace.md#laplace-weight.
        """
        del width
        return EntrywiseLaplace(scale=self.scale, diagonal_scale=up(self.scale / DIAGONAL_WEIGHT))

    def expected(self, values: npt.NDArray[np.float64]) -> EntrywiseLaplace:
        """That of the noise, which is the same for every matrix."""
        return self.law(len(values))

    def curve(self, facts: Facts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism."""
        return PureCurve(up(_sensitivity(facts) / self.scale))

    def event(self, facts: Facts) -> Event:
        """Pure ε."""
        return PureEvent(epsilon=up(_sensitivity(facts) / self.scale))

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Noise on every cell of the lower triangle, mirrored."""
        width = len(gram)
        law, below = self.law(width), strictly_below(width)
        cells = gram.astype(object)
        return Drawn(
            cells=symmetric(
                np.diagonal(cells) + entropy.discrete_laplace(law.diagonal_scale, width),
                cells[below] + entropy.discrete_laplace(law.scale, int(below.sum())),
            ),
            noise=law,
        )


def _sensitivity(facts: Facts) -> float:
    """Δ_w in L1, with the weight w on the diagonal. Proof: proofs/laplace.md#laplace-sensitivity."""
    return facts.adjacency.gram_l1(facts.width, float(ROW_NORM_SQUARED), diagonal=DIAGONAL_WEIGHT)

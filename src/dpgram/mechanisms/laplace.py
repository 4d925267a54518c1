"""Independent Laplace noise on every cell: pure ε, kept as the simplest baseline (Amin et al., L)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms.base import (
    CalibratedMechanism,
    Drawn,
    Mechanism,
    PublicFacts,
    strictly_below,
    symmetric,
)
from dpgram.noise import EntrywiseLaplace
from dpgram.privacy.curves.base import PrivacyCurve, PureCurve
from dpgram.privacy.curves.rounding import SLACK, up
from dpgram.privacy.events import Event, PureEvent
from dpgram.privacy.guarantee import Guarantee

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
    semidefinite: ClassVar[bool] = False
    pure: ClassVar[bool] = True
    joint_groups: ClassVar[bool] = True
    quick: ClassVar[bool] = True

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedLaplace:
        """b = Δ/ε, rounded up far enough that Δ/b, rounded up, is still within ε; δ is not used."""
        return CalibratedLaplace(scale=up(_sensitivity(facts) / guarantee.epsilon * (1.0 + 4.0 * SLACK)))

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """ε ≥ Δ_w/b with w = b/b_ii the weight of the diagonal, and no δ but that of learnt levels."""
        law = stated.law
        if not isinstance(law, EntrywiseLaplace) or stated.parameters != {"scale": law.scale}:
            return False
        if not (law.diagonal_scale >= law.scale > 0 and stated.plain_gram):
            return False
        weight = law.scale / law.diagonal_scale
        sensitivity = stated.adjacency.gram_l1(stated.width, float(ROW_NORM_SQUARED), diagonal=weight)
        return stated.pure_within(sensitivity / law.scale)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedLaplace(CalibratedMechanism):
    """G + N with its b. proofs/laplace.md#laplace-claim"""

    kind: ClassVar[type[Mechanism]] = Laplace

    scale: float
    """b, in lattice units."""

    def law(self, width: int) -> EntrywiseLaplace:
        """The law of the noise, which does not depend on the width.

        Proof: proofs/laplace.md#laplace-weight.
        """
        del width
        return EntrywiseLaplace(scale=self.scale, diagonal_scale=up(self.scale / DIAGONAL_WEIGHT))

    def expected(self, values: npt.NDArray[np.float64]) -> EntrywiseLaplace:
        """That of the noise, which is the same for every matrix."""
        return self.law(len(values))

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism."""
        return PureCurve(up(_sensitivity(facts) / self.scale))

    def event(self, facts: PublicFacts) -> Event:
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


def _sensitivity(facts: PublicFacts) -> float:
    """Δ_w in L1, with the weight w on the diagonal. Proof: proofs/laplace.md#laplace-sensitivity."""
    return facts.adjacency.gram_l1(facts.width, float(ROW_NORM_SQUARED), diagonal=DIAGONAL_WEIGHT)

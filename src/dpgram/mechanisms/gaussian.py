"""The symmetric Gaussian mechanism: the default for δ > 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import Drawn, Facts, Mechanism, strictly_below, symmetric
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.accountant import Event, GaussianEvent
from dpgram.privacy.curves.base import GaussianCurve, PrivacyCurve
from dpgram.privacy.curves.calibrate import discrete_gaussian_sigma
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.entropy import LARGEST_SCALE, Entropy


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Mechanism):
    """G + N, N symmetric with discrete Gaussian cells, N_ii of scale σ and N_ij of scale σ/√2.

    μ-GDP with μ = Δ/σ, up to a slack of 10⁻⁸ that the calibration pays; Δ = 2^30 (add/remove) or √2·2^30
    (replace-one) in lattice units. proofs/gaussian.md#gaussian-claim
    """

    name: ClassVar[str] = "gaussian"
    psd: ClassVar[bool] = False
    joint_groups: ClassVar[bool] = True
    in_blocks: ClassVar[bool] = True

    sigma: float
    """The scale of a diagonal cell, in lattice units."""

    def __post_init__(self) -> None:
        if not 0.0 < self.sigma <= LARGEST_SCALE:
            raise MechanismError(
                "the scale of gaussian noise is out of range",
                got=self.sigma,
                limit="0 < sigma ≤ 2^56 lattice units",
                remedy="Ask for a larger epsilon or delta.",
            )

    @classmethod
    def calibrated(cls, guarantee: Guarantee, facts: Facts) -> Self:
        """The least σ whose exact curve, discreteness included, is within (ε, δ)."""
        if guarantee.pure:
            raise MechanismError(
                "gaussian noise cannot give a pure guarantee",
                got="delta = 0",
                limit="delta > 0",
                remedy="Use mechanism='matrix-laplace', or give a delta such as 1e-6.",
            )
        sigma = discrete_gaussian_sigma(
            epsilon=guarantee.epsilon, delta=guarantee.delta, sensitivity=_sensitivity(facts)
        )
        return cls(sigma=sigma)

    def law(self, width: int) -> SymmetricGaussian:
        """The law of the noise, which does not depend on the width."""
        del width
        return SymmetricGaussian(sigma=self.sigma)

    def expected(self, values: npt.NDArray[np.float64]) -> SymmetricGaussian:
        """That of the noise, which is the same for every matrix."""
        return self.law(len(values))

    def curve(self, facts: Facts) -> PrivacyCurve:
        """The Gaussian curve at μ = Δ/σ."""
        return GaussianCurve(self._mu_at_least(facts))

    def event(self, facts: Facts) -> Event:
        """μ-GDP."""
        return GaussianEvent(mu=self._mu_at_least(facts))

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Independent noise on the diagonal and on every cell below it, mirrored."""
        width = len(gram)
        below = gram[strictly_below(width)]
        cells = symmetric(
            gram.diagonal() + entropy.discrete_gaussian(self.sigma, width),
            below + entropy.discrete_gaussian(offdiagonal_scale_at_least(self.sigma), len(below)),
        )
        return Drawn(cells=cells, noise=self.law(width))

    def _mu_at_least(self, facts: Facts) -> float:
        return up(_sensitivity(facts) / self.sigma)


def offdiagonal_scale_at_least(sigma: float) -> float:
    """σ/√2, rounded up: an off-diagonal change counts twice in |ΔG|_F, so any less would leak."""
    return up(sigma / math.sqrt(2.0))


def _sensitivity(facts: Facts) -> float:
    return facts.adjacency.gram_frobenius(float(ROW_NORM_SQUARED))

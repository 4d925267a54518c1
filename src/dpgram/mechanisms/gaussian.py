"""The symmetric Gaussian mechanism: the default for δ > 0."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import LARGEST_SCALE, Entropy, Noise, on_matrix
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms.base import (
    CalibratedMechanism,
    Drawn,
    IntegerMatrix,
    Mechanism,
    PublicFacts,
    refuse_pure,
)
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.charged import Charged
from dpgram.privacy.count_noise import scale_of_counts
from dpgram.privacy.curves.base import GaussianCurve, PrivacyCurve
from dpgram.privacy.curves.calibrate import (
    DISCRETE_SIGMA_AT_LEAST,
    discrete_gaussian_sigma,
    discrete_mu_at_most,
)
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.events import Event, GaussianEvent
from dpgram.privacy.guarantee import Guarantee


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gaussian(Mechanism):
    """G + N, N symmetric with discrete Gaussian cells, N_ii of scale σ and N_ij of scale σ/√2.

    μ-GDP with μ = Δ/σ, up to a slack of 10⁻⁸ that the calibration pays; Δ = 2^30 (add/remove) or √2·2^30
    (replace-one) in lattice units. proofs/gaussian.md#gaussian-claim
    """

    name: ClassVar[str] = "gaussian"
    semidefinite: ClassVar[bool] = False
    gaussian: ClassVar[bool] = True
    joint_groups: ClassVar[bool] = True
    replaced_in_groups: ClassVar[bool] = True
    in_blocks: ClassVar[bool] = True
    adaptive: ClassVar[bool] = True
    quick: ClassVar[bool] = True

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedGaussian:
        """The least σ whose exact curve, discreteness included, is within (ε, δ)."""
        refuse_pure(self.name, guarantee)
        sigma = discrete_gaussian_sigma(
            epsilon=guarantee.epsilon, delta=guarantee.delta, sensitivity=_sensitivity(facts)
        )
        return CalibratedGaussian(sigma=sigma)

    def of_mu_squared(self, mu_squared: float, facts: PublicFacts) -> CalibratedGaussian:
        """One row moves the matrix by no more than it moves one histogram."""
        units_changed = facts.adjacency.units_changed
        scale = scale_of_counts("discrete-gaussian", mu_squared, histograms=1, units_changed=units_changed)
        # Less, off the diagonal too, is not covered by the proof of its privacy.
        return CalibratedGaussian(sigma=max(scale, math.sqrt(2.0) * DISCRETE_SIGMA_AT_LEAST))

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """μ ≥ Δ/σ, with what was measured before, and ρ and (ε, δ) that follow from it.

        In a series σ is |w| times that of the stream, and Δ that of all of it (proofs/series.md#series-file).
        """
        law = stated.law
        if not isinstance(law, SymmetricGaussian) or stated.parameters != {"sigma": law.sigma}:
            return False
        if not law.sigma > 0 or stated.delta == 0 or not stated.plain_gram:
            return False
        own = stated.adjacency.units_changed * (ROW_NORM_SQUARED * stated.gain / law.sigma) ** 2
        return stated.gaussian_within(math.sqrt(own + stated.counts_cost))

    @classmethod
    def least_charge(cls, stated: StatedNoise) -> Charged:
        """The μ² that is promised; with learnt levels their δ, and the μ² that the rest of δ allows."""
        if stated.mu is not None:
            return stated.promised
        mu = discrete_mu_at_most(stated.epsilon, stated.delta - stated.leak)
        return Charged(mu_squared=mu * mu, delta=stated.leak)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedGaussian(CalibratedMechanism):
    """G + N with its σ. proofs/gaussian.md#gaussian-claim"""

    kind: ClassVar[type[Mechanism]] = Gaussian

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

    def law(self, width: int) -> SymmetricGaussian:
        """The law of the noise, which does not depend on the width."""
        del width
        return SymmetricGaussian(sigma=self.sigma)

    def expected(self, values: npt.NDArray[np.float64]) -> SymmetricGaussian:
        """That of the noise, which is the same for every matrix."""
        return self.law(len(values))

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The Gaussian curve at μ = Δ/σ."""
        return GaussianCurve(self._mu_at_least(facts))

    def event(self, facts: PublicFacts) -> Event:
        """μ-GDP."""
        return GaussianEvent(mu=self._mu_at_least(facts))

    @property
    def added(self) -> Noise:
        return Noise("gaussian", self.sigma)

    def draw(self, gram: npt.NDArray[np.int64] | IntegerMatrix, entropy: Entropy) -> Drawn:
        """Independent noise on the diagonal and on every cell below it, mirrored."""
        cells = on_matrix(gram, self.added, entropy)
        return Drawn(cells=cells, noise=self.law(len(gram)))

    def _mu_at_least(self, facts: PublicFacts) -> float:
        return up(_sensitivity(facts) / self.sigma)


def _sensitivity(facts: PublicFacts) -> float:
    return facts.adjacency.gram_frobenius(float(ROW_NORM_SQUARED))

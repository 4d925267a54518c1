"""Directions drawn one by one, each subtracted before the next (Kapralov and Talwar 2013).

It is the baseline KT of Amin et al.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms.base import CalibratedMechanism, Drawn, Mechanism, PublicFacts
from dpgram.mechanisms.eigenvectors import (
    KEPT_SHARE,
    SpectralMechanism,
    bounded_inverse_temperature,
    valid_directions,
)
from dpgram.noise import Deflation as DeflationLaw
from dpgram.privacy.curves.base import PrivacyCurve, PureCurve
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.events import Event, PureEvent
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.directions import deflation_matrix

MOST_ROWS: Final = 1 << 33
"""More than the exact sums can hold."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Deflation(SpectralMechanism):
    """k times: θ ∝ exp(c·uᵀRu), λ̂ = θᵀRθ + Laplace, R ← R − λ̂θθᵀ; the release is Σ λ̂θθᵀ.

    k(ε_v + ε_λ)-DP with c = ε_v (add/remove) or ε_v/2 (replace-one) per row's trace and scale 1/ε_λ.
    proofs/eigenvectors.md#eigenvectors-deflation
    """

    name: ClassVar[str] = "deflation"
    pure: ClassVar[bool] = True

    rank: int | None = None

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedDeflation:
        """ε is shared equally by the steps, and in each by direction and value; δ is not used."""
        return CalibratedDeflation(
            epsilon=guarantee.epsilon,
            rank=self.rank_for(facts),
            range_per_unit=int(facts.adjacency.utility_range(1.0)),
        )

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """ε ≥ k(1/b + range·c)."""
        law = stated.law
        if not isinstance(law, DeflationLaw) or not (law.value_scale > 0 and law.temperature >= 0):
            return False
        step = 1.0 / law.value_scale + stated.adjacency.utility_range(1.0) * law.temperature / KEPT_SHARE
        own = stated.has_own_epsilon() and valid_directions(stated, law)
        return own and stated.pure_within(law.rank * step)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedDeflation(CalibratedMechanism):
    """Σ λ̂θθᵀ with its ε and k. proofs/eigenvectors.md#eigenvectors-deflation"""

    kind: ClassVar[type[Mechanism]] = Deflation

    epsilon: float
    rank: int
    range_per_unit: int

    def _law(self) -> DeflationLaw:
        """θᵀRθ moves by one row's trace, rounded to lattice units or not."""
        share = 0.5 * self.epsilon / self.rank
        return DeflationLaw(
            value_scale=up(1.0 / share),
            temperature=bounded_inverse_temperature(share * (1.0 - 1e-6) / self.range_per_unit, MOST_ROWS),
            rank=self.rank,
        )

    def expected(self, values: npt.NDArray[np.float64]) -> DeflationLaw:
        del values
        return self._law()

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism."""
        del facts
        return PureCurve(self.epsilon)

    def event(self, facts: PublicFacts) -> Event:
        """Pure ε."""
        del facts
        return PureEvent(epsilon=self.epsilon)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Σ λ̂θθᵀ, rounded to whole lattice units."""
        law = self._law()
        scale = up(law.value_scale * ROW_NORM_SQUARED)
        cells = deflation_matrix(
            gram,
            law.temperature,
            law.rank,
            lambda: int(entropy.discrete_laplace(scale, 1)[0]),
            entropy.random_bytes,
        )
        return Drawn(cells=cells, noise=law)

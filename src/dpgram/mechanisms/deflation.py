"""Rank-one subtraction (Kapralov and Talwar 2013), Amin et al.'s baseline KT."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import Drawn, Facts, Mechanism, as_floats, on_release_grid
from dpgram.mechanisms.eigenvectors import NUMERICAL_DELTA, checked_rank, grid_laplace, with_float_error
from dpgram.noise import Deflation as DeflationLaw
from dpgram.privacy.accountant import Event, PureEvent
from dpgram.privacy.curves import PrivacyCurve, PureCurve
from dpgram.privacy.entropy import Entropy
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.rounding import up
from dpgram.privacy.spectral import ROWS_AT_MOST, rounding_slack, sample_deflation


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Deflation(Mechanism):
    """k times: θ ∝ exp(c·uᵀRu), λ̂ = θᵀRθ + Laplace, R ← R − λ̂θθᵀ; the release is Σ λ̂θθᵀ.

    k(ε_v + ε_λ)-DP with c = ε_v (add/remove) or ε_v/2 (replace-one) per row's trace and scale 1/ε_λ, plus
    2⁻⁴⁰ a direction for floats. proofs/eigenvectors.md#eigenvectors-deflation
    """

    name: ClassVar[str] = "deflation"
    psd: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset({"rank"})
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    epsilon: float
    rank: int
    range_per_unit: int

    @classmethod
    def calibrated(cls, guarantee: Guarantee, facts: Facts) -> Self:
        """ε is shared equally by the steps, and in each by direction and value; δ is not used."""
        return cls(
            epsilon=guarantee.epsilon,
            rank=checked_rank(facts),
            range_per_unit=int(facts.adjacency.utility_range(1.0)),
        )

    def numerical_delta(self, facts: Facts) -> float:
        """2⁻⁴⁰ for each direction."""
        del facts
        return NUMERICAL_DELTA * self.rank

    def law(self, width: int) -> DeflationLaw:
        """The law of the release for `width` columns."""
        share = 0.5 * self.epsilon / self.rank
        return DeflationLaw(
            value_scale=up((1.0 + rounding_slack(width)) / share),
            temperature=share * (1.0 - 1e-6) / self.range_per_unit,
            rank=self.rank,
        )

    def expected(self, values: npt.NDArray[np.float64]) -> DeflationLaw:
        """One law for every matrix of this width."""
        return self.law(len(values))

    def curve(self, facts: Facts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism; the numerical δ is stated beside it."""
        del facts
        return PureCurve(self.epsilon)

    def event(self, facts: Facts) -> Event:
        """Pure ε and the numerical δ."""
        return with_float_error(PureEvent(epsilon=self.epsilon), self.numerical_delta(facts))

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Σ λ̂θθᵀ, rounded to the public grid of a release in floats."""
        law = self.law(len(gram))
        drawn = sample_deflation(
            as_floats(gram) / ROW_NORM_SQUARED,
            value_scale=law.value_scale,
            temperature=law.temperature,
            rank=law.rank,
            value_noise=lambda scale, count: grid_laplace(entropy, scale, count),
            generator=entropy.generator(),
        )
        return Drawn(cells=on_release_grid(drawn * ROW_NORM_SQUARED), noise=law)

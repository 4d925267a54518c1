"""Noisy eigenvalues and sampled eigenvectors (Amin et al., Algorithm 1) with tight constants."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import Drawn, Facts, Mechanism, as_floats, on_release_grid
from dpgram.noise import EigenvectorSampling
from dpgram.privacy.accountant import ApproximateEvent, Event, PureEvent, ZcdpEvent, composed
from dpgram.privacy.curves import ConcentratedCurve, PrivacyCurve, PureCurve
from dpgram.privacy.entropy import Entropy
from dpgram.privacy.guarantee import Guarantee, rho_at_most
from dpgram.privacy.rounding import up
from dpgram.privacy.spectral import GRID, ROWS_AT_MOST, Split, rounding_slack, sample_eigenvectors

VALUE_SHARE: Final = 0.15
"""The share of the budget that the eigenvalues get (the paper: a half). There are d numbers to tell and far
more in the directions; a tenth is up to 4% better where signal is strong and worse where it is weak, a fifth
the reverse (benchmarks/eigenvectors.py)."""
NUMERICAL_DELTA: Final = 2.0**-40
"""For each direction drawn in floats (proofs/eigenvectors.md)."""


class _SpectralMechanism(Mechanism):
    """What both forms share: one law, one draw."""

    @abstractmethod
    def _law(self) -> EigenvectorSampling:
        """The calibrated law of the release."""

    def expected(self, values: npt.NDArray[np.float64]) -> EigenvectorSampling:
        """One law for every matrix."""
        del values
        return self._law()

    def numerical_delta(self, facts: Facts) -> float:
        """2⁻⁴⁰ for each direction."""
        return NUMERICAL_DELTA * facts.width

    @final
    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Σ λ̂_i θ_i θ_iᵀ, rounded to the public grid of a release in floats."""
        law = self._law()
        drawn = sample_eigenvectors(
            as_floats(gram) / ROW_NORM_SQUARED,
            value_scale=law.value_scale,
            total=law.total,
            rank=law.rank,
            split=law.split,
            norm=law.norm,
            value_noise=lambda scale, count: grid_laplace(entropy, scale, count),
            generator=entropy.generator(),
        )
        return Drawn(cells=on_release_grid(drawn * ROW_NORM_SQUARED), noise=law)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Eigenvectors(_SpectralMechanism):
    """Ĝ = Σ λ̂_i θ_i θ_iᵀ, λ̂ = λ(G) + Laplace(Δ/ε₀), θ_i ∝ exp(c_i uᵀGu) orthogonal to the earlier ones.

    (ε₀ + Σ ε_i)-DP with c_i = ε_i (add/remove) or ε_i/2 (replace-one) per row's trace, plus 2⁻⁴⁰ a direction
    for floats; ε_i of least forecast error given λ̂. proofs/eigenvectors.md#eigenvectors-direction
    """

    name: ClassVar[str] = "eigenvectors"
    psd: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset({"rank"})
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    epsilon: float
    rank: int
    range_per_unit: int
    """How far one neighbour can move uᵀGu between directions: 1 row's trace, or 2 under replace-one."""
    value_sensitivity: float
    split: Split = "forecast"

    @classmethod
    def calibrated(cls, guarantee: Guarantee, facts: Facts) -> Self:
        """All of ε is used, `VALUE_SHARE` of it on eigenvalues; δ is not used."""
        return cls(
            epsilon=guarantee.epsilon,
            rank=checked_rank(facts),
            range_per_unit=int(facts.adjacency.utility_range(1.0)),
            value_sensitivity=value_sensitivity(facts),
        )

    def _law(self) -> EigenvectorSampling:
        return EigenvectorSampling(
            value_scale=up(self.value_sensitivity / (VALUE_SHARE * self.epsilon)),
            total=(1.0 - VALUE_SHARE) * self.epsilon * (1.0 - 1e-6) / self.range_per_unit,
            rank=self.rank,
            split=self.split,
            norm=1,
        )

    def curve(self, facts: Facts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism; the numerical δ is stated beside it."""
        del facts
        return PureCurve(self.epsilon)

    def event(self, facts: Facts) -> Event:
        """Pure ε and the numerical δ."""
        return with_float_error(PureEvent(epsilon=self.epsilon), self.numerical_delta(facts))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EigenvectorsZcdp(_SpectralMechanism):
    """The same accounted by bounded range: ρ = ε₀²/2 + Σ c_i²/8 (add/remove) or + Σ c_i²/2 (replace-one).

    (ε, δ)-DP through ρ-zCDP, plus 2⁻⁴⁰ a direction for floats; c_i of least forecast error.
    proofs/eigenvectors.md#eigenvectors-sequence
    """

    name: ClassVar[str] = "eigenvectors-zcdp"
    psd: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset({"rank"})
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    rho: float
    rank: int
    range_per_unit: int
    value_sensitivity: float
    split: Split = "forecast"

    @classmethod
    def calibrated(cls, guarantee: Guarantee, facts: Facts) -> Self:
        """The largest ρ inside (ε, δ)."""
        if guarantee.pure:
            raise MechanismError(
                "eigenvectors-zcdp cannot give a pure guarantee",
                got="delta = 0",
                limit="delta > 0",
                remedy="Use mechanism='eigenvectors', or give a delta such as 1e-6.",
            )
        return cls(
            rho=rho_at_most(guarantee.epsilon, guarantee.delta),
            rank=checked_rank(facts),
            range_per_unit=int(facts.adjacency.utility_range(1.0)),
            value_sensitivity=value_sensitivity(facts),
        )

    def _law(self) -> EigenvectorSampling:
        value_epsilon = math.sqrt(2.0 * VALUE_SHARE * self.rho)
        vectors = math.sqrt(8.0 * (1.0 - VALUE_SHARE) * self.rho)
        return EigenvectorSampling(
            value_scale=up(self.value_sensitivity / value_epsilon),
            total=vectors * (1.0 - 1e-6) / self.range_per_unit,
            rank=self.rank,
            split=self.split,
            norm=2,
        )

    def curve(self, facts: Facts) -> PrivacyCurve:
        """What ρ-zCDP promises."""
        del facts
        return ConcentratedCurve(self.rho)

    def event(self, facts: Facts) -> Event:
        """ρ and the numerical δ."""
        return with_float_error(ZcdpEvent(rho=self.rho), self.numerical_delta(facts))


def with_float_error(event: Event, delta: float) -> Event:
    """The event and, beside it, what drawing in floats adds to δ.

    Proof: proofs/eigenvectors.md#eigenvectors-floats.
    """
    return composed([event, ApproximateEvent(epsilon=0.0, delta=delta)])


def checked_rank(facts: Facts) -> int:
    """The asked rank, or the full one."""
    rank = facts.width if facts.rank is None else facts.rank
    if not 1 <= rank <= facts.width:
        raise MechanismError(
            "the rank must be a number of directions",
            got=rank,
            limit=f"1 ≤ rank ≤ {facts.width} encoded columns",
        )
    return rank


def value_sensitivity(facts: Facts) -> float:
    """L1 sensitivity of the eigenvalues in units of one row's trace, widened for floats and the grid.

    Proof: proofs/eigenvectors.md#eigenvectors-values.
    """
    return up(facts.adjacency.eigenvalue_l1(1.0) + facts.width * rounding_slack(facts.width))


def grid_laplace(entropy: Entropy, scale: float, count: int) -> npt.NDArray[np.float64]:
    """Discrete Laplace noise on the public grid."""
    return entropy.discrete_laplace(up(scale / GRID), count).astype(np.float64) * GRID

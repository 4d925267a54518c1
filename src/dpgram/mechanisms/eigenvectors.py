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
from dpgram.mechanisms.base import Drawn, Facts, Mechanism, as_floats
from dpgram.noise import EigenvectorSampling
from dpgram.privacy.accountant import Event, PureEvent, ZcdpEvent
from dpgram.privacy.curves.base import ConcentratedCurve, PrivacyCurve, PureCurve
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.spectral import (
    ROWS_AT_MOST,
    Split,
    adaptive_floor,
    eigenvalue_sensitivity,
    falling,
    temperatures,
)
from dpgram.privacy.guarantee import Guarantee, rho_at_most
from dpgram.privacy.sampling.directions import frame_matrix
from dpgram.privacy.sampling.entropy import Entropy
from dpgram.privacy.sampling.envelope import LARGEST_EXPONENT

VALUE_SHARE: Final = 0.15
"""The share of the budget that the eigenvalues get (the paper: a half). There are d numbers to tell and far
more in the directions; a tenth is up to 4% better where signal is strong and worse where it is weak, a fifth
the reverse (benchmarks/eigenvectors.py)."""


class _SpectralMechanism(Mechanism):
    """What both forms share: one law, one draw."""

    @abstractmethod
    def _law(self) -> EigenvectorSampling:
        """The calibrated law of the release."""

    def expected(self, values: npt.NDArray[np.float64]) -> EigenvectorSampling:
        """One law for every matrix."""
        del values
        return self._law()

    @final
    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Σ λ̂_i θ_i θ_iᵀ, rounded to whole lattice units.

        Proof: proofs/eigenvectors.md#eigenvectors-sequence.
        """
        law, width = self._law(), len(gram)
        exact = np.linalg.eigvalsh(as_floats(gram))[::-1][: law.rank]
        noise = entropy.discrete_laplace(up(law.value_scale * ROW_NORM_SQUARED), law.rank)
        noisy = [float(round(value) + one) for value, one in zip(exact.tolist(), noise, strict=True)]
        values = falling(np.array(noisy) / ROW_NORM_SQUARED)
        floor = adaptive_floor(law.value_scale, width)
        coldness = temperatures(values, law.total, floor, split=law.split, norm=law.norm, width=width)
        whole = [round(value) for value in (values * ROW_NORM_SQUARED).tolist()]
        return Drawn(cells=frame_matrix(gram, coldness, whole, entropy.random_bytes), noise=law)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Eigenvectors(_SpectralMechanism):
    """Ĝ = Σ λ̂_i θ_i θ_iᵀ, λ̂ = λ(G) + Laplace(Δ/ε₀), θ_i ∝ exp(c_i uᵀGu) orthogonal to the earlier ones.

    (ε₀ + Σ ε_i)-DP with c_i = ε_i (add/remove) or ε_i/2 (replace-one) per row's trace; ε_i of least forecast
    error given λ̂. proofs/eigenvectors.md#eigenvectors-direction
    """

    name: ClassVar[str] = "eigenvectors"
    psd: ClassVar[bool] = False
    pure: ClassVar[bool] = True
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
            value_sensitivity=eigenvalue_sensitivity(facts.adjacency, facts.width),
        )

    def _law(self) -> EigenvectorSampling:
        return EigenvectorSampling(
            value_scale=up(self.value_sensitivity / (VALUE_SHARE * self.epsilon)),
            total=bounded(
                (1.0 - VALUE_SHARE) * self.epsilon * (1.0 - 1e-6) / self.range_per_unit, ROWS_AT_MOST
            ),
            rank=self.rank,
            split=self.split,
            norm=1,
        )

    def curve(self, facts: Facts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism."""
        del facts
        return PureCurve(self.epsilon)

    def event(self, facts: Facts) -> Event:
        """Pure ε."""
        del facts
        return PureEvent(epsilon=self.epsilon)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EigenvectorsZcdp(_SpectralMechanism):
    """The same accounted by bounded range: ρ = ε₀²/2 + Σ c_i²/8 (add/remove) or + Σ c_i²/2 (replace-one).

    (ε, δ)-DP through ρ-zCDP; c_i of least forecast error.
    proofs/eigenvectors.md#eigenvectors-range, proofs/eigenvectors.md#eigenvectors-sequence
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
            value_sensitivity=eigenvalue_sensitivity(facts.adjacency, facts.width),
        )

    def _law(self) -> EigenvectorSampling:
        value_epsilon = math.sqrt(2.0 * VALUE_SHARE * self.rho)
        vectors = math.sqrt(8.0 * (1.0 - VALUE_SHARE) * self.rho)
        return EigenvectorSampling(
            value_scale=up(self.value_sensitivity / value_epsilon),
            total=bounded(vectors * (1.0 - 1e-6) / self.range_per_unit, ROWS_AT_MOST),
            rank=self.rank,
            split=self.split,
            norm=2,
        )

    def curve(self, facts: Facts) -> PrivacyCurve:
        """What ρ-zCDP promises."""
        del facts
        return ConcentratedCurve(self.rho)

    def event(self, facts: Facts) -> Event:
        """ρ."""
        del facts
        return ZcdpEvent(rho=self.rho)


def bounded(temperature: float, rows: int) -> float:
    """min(c, 2^40/n): c·λ(G) stays where floats find good candidates. Only an absurd ε allows more.

    Proof: proofs/eigenvectors.md#eigenvectors-sampler.
    """
    return min(temperature, LARGEST_EXPONENT / rows)


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

"""Noisy eigenvalues and sampled eigenvectors (Amin et al., Algorithm 1) with tight constants."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._stated import ROUNDING, StatedNoise
from dpgram.mechanisms.base import (
    CalibratedMechanism,
    Drawn,
    Mechanism,
    PublicFacts,
    as_floats,
    checked_count,
    refuse_pure,
)
from dpgram.noise import Deflation, EigenvectorSampling
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.charged import Charged
from dpgram.privacy.curves.base import ConcentratedCurve, PrivacyCurve, PureCurve
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.spectral import (
    ROWS_AT_MOST,
    Split,
    adaptive_floor,
    eigenvalue_sensitivity,
    falling,
    shared_inverse_temperatures,
)
from dpgram.privacy.events import Event, PureEvent, ZcdpEvent
from dpgram.privacy.guarantee import Guarantee, rho_at_most
from dpgram.privacy.sampling.directions import frame_matrix
from dpgram.privacy.sampling.envelope import LARGEST_EXPONENT

VALUE_SHARE: Final = 0.15
"""The share of the budget that the eigenvalues get (the paper: a half). There are d numbers to tell and far
more in the directions; a tenth is up to 4% better where signal is strong and worse where it is weak, a fifth
the reverse (benchmarks/eigenvectors.py)."""


KEPT_SHARE: Final = 1.0 - 1e-6
"""Inverse temperatures stay a millionth below their budget: proofs/eigenvectors.md#eigenvectors-floats."""
_PARAMETERS: Final = frozenset({"epsilon", "rho", "rank", "range_per_unit", "value_sensitivity", "split"})


class SpectralMechanism(Mechanism):
    """Mechanisms that build the matrix from directions they draw."""

    semidefinite: ClassVar[bool] = False
    first_order_error: ClassVar[bool] = True

    rank: int | None
    """The number of directions to keep; None: as many as there are encoded columns."""

    @final
    def __post_init__(self) -> None:
        object.__setattr__(self, "rank", checked_count(self.name, "rank", self.rank, most=math.inf))

    @final
    def for_fewer_columns(self, width: int) -> Self:
        """No more directions than columns."""
        kept = None if self.rank is None else min(self.rank, width)
        return replace(self, rank=kept)

    @final
    def rank_for(self, facts: PublicFacts) -> int:
        """The asked rank, or the full one."""
        rank = facts.width if self.rank is None else self.rank
        if rank > facts.width:
            raise MechanismError(
                "the rank must be a number of directions",
                got=rank,
                limit=f"1 ≤ rank ≤ {facts.width} encoded columns",
                remedy="Ask for fewer, or leave rank out to keep all.",
            )
        return rank


class _CalibratedSpectral(CalibratedMechanism):
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
        inverse_temperatures = shared_inverse_temperatures(
            values, law.total, floor, split=law.split, norm=law.norm, width=width
        )
        whole = [round(value) for value in (values * ROW_NORM_SQUARED).tolist()]
        return Drawn(cells=frame_matrix(gram, inverse_temperatures, whole, entropy.random_bytes), noise=law)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Eigenvectors(SpectralMechanism):
    """Ĝ = Σ λ̂_i θ_i θ_iᵀ, λ̂ = λ(G) + Laplace(Δ/ε₀), θ_i ∝ exp(c_i uᵀGu) orthogonal to the earlier ones.

    (ε₀ + Σ ε_i)-DP with c_i = ε_i (add/remove) or ε_i/2 (replace-one) per row's trace; ε_i of least forecast
    error given λ̂. proofs/eigenvectors.md#eigenvectors-direction
    """

    name: ClassVar[str] = "eigenvectors"
    pure: ClassVar[bool] = True
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    rank: int | None = None

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedEigenvectors:
        """All of ε is used, `VALUE_SHARE` of it on eigenvalues; δ is not used."""
        return CalibratedEigenvectors(
            epsilon=guarantee.epsilon,
            rank=self.rank_for(facts),
            range_per_unit=int(facts.adjacency.utility_range(1.0)),
            value_sensitivity=eigenvalue_sensitivity(facts.adjacency, facts.width),
        )

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """ε ≥ Δ_λ/b + range·Σc_i."""
        law = stated.law
        if not isinstance(law, EigenvectorSampling) or law.norm != 1 or not _possible(stated, law):
            return False
        values, directions = _prices(law, stated.adjacency, stated.width)
        return stated.pure_within(values + directions) and stated.has_own_epsilon()


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedEigenvectors(_CalibratedSpectral):
    """Σ λ̂_i θ_i θ_iᵀ with its ε and rank. proofs/eigenvectors.md#eigenvectors-direction"""

    kind: ClassVar[type[Mechanism]] = Eigenvectors

    epsilon: float
    rank: int
    range_per_unit: int
    """How far one neighbour can move uᵀGu between directions: 1 row's trace, or 2 under replace-one."""
    value_sensitivity: float
    split: Split = "forecast"

    def _law(self) -> EigenvectorSampling:
        return EigenvectorSampling(
            value_scale=up(self.value_sensitivity / (VALUE_SHARE * self.epsilon)),
            total=bounded_inverse_temperature(
                (1.0 - VALUE_SHARE) * self.epsilon * (1.0 - 1e-6) / self.range_per_unit, ROWS_AT_MOST
            ),
            rank=self.rank,
            split=self.split,
            norm=1,
        )

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """That of the worst ε-DP mechanism."""
        del facts
        return PureCurve(self.epsilon)

    def event(self, facts: PublicFacts) -> Event:
        """Pure ε."""
        del facts
        return PureEvent(epsilon=self.epsilon)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class EigenvectorsZcdp(SpectralMechanism):
    """The same accounted by bounded range: ρ = ε₀²/2 + Σ c_i²/8 (add/remove) or + Σ c_i²/2 (replace-one).

    (ε, δ)-DP through ρ-zCDP; c_i of least forecast error.
    proofs/eigenvectors.md#eigenvectors-range, proofs/eigenvectors.md#eigenvectors-sequence
    """

    name: ClassVar[str] = "eigenvectors-zcdp"
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    rank: int | None = None

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedEigenvectorsZcdp:
        """The largest ρ inside (ε, δ)."""
        refuse_pure(self.name, guarantee)
        return CalibratedEigenvectorsZcdp(
            rho=rho_at_most(guarantee.epsilon, guarantee.delta),
            rank=self.rank_for(facts),
            range_per_unit=int(facts.adjacency.utility_range(1.0)),
            value_sensitivity=eigenvalue_sensitivity(facts.adjacency, facts.width),
        )

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """ρ ≥ (Δ_λ/b)²/2 + range²·Σc_i²/8."""
        law = stated.law
        if not isinstance(law, EigenvectorSampling) or law.norm != 2 or not _possible(stated, law):
            return False
        values, directions = _prices(law, stated.adjacency, stated.width)
        rho = 0.5 * values**2 + 0.125 * directions**2
        enough = stated.number("rho") * (1 + ROUNDING) >= rho
        return enough and stated.delta > 0 and stated.curve_within(ConcentratedCurve(rho))

    @classmethod
    def least_charge(cls, stated: StatedNoise) -> Charged:
        """ρ, beside the ε of pure counts."""
        return Charged(rho=stated.number("rho"), epsilon=stated.counts_cost)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedEigenvectorsZcdp(_CalibratedSpectral):
    """Σ λ̂_i θ_i θ_iᵀ with its ρ and rank. proofs/eigenvectors.md#eigenvectors-sequence"""

    kind: ClassVar[type[Mechanism]] = EigenvectorsZcdp

    rho: float
    rank: int
    range_per_unit: int
    value_sensitivity: float
    split: Split = "forecast"

    def _law(self) -> EigenvectorSampling:
        value_epsilon = math.sqrt(2.0 * VALUE_SHARE * self.rho)
        vectors = math.sqrt(8.0 * (1.0 - VALUE_SHARE) * self.rho)
        return EigenvectorSampling(
            value_scale=up(self.value_sensitivity / value_epsilon),
            total=bounded_inverse_temperature(vectors * (1.0 - 1e-6) / self.range_per_unit, ROWS_AT_MOST),
            rank=self.rank,
            split=self.split,
            norm=2,
        )

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """What ρ-zCDP promises."""
        del facts
        return ConcentratedCurve(self.rho)

    def event(self, facts: PublicFacts) -> Event:
        """ρ."""
        del facts
        return ZcdpEvent(rho=self.rho)


def bounded_inverse_temperature(inverse_temperature: float, rows: int) -> float:
    """min(c, 2^40/n): c·λ(G) stays where floats find good candidates. Only an absurd ε allows more.

    Proof: proofs/eigenvectors.md#eigenvectors-sampler.
    """
    return min(inverse_temperature, LARGEST_EXPONENT / rows)


def _prices(law: EigenvectorSampling, adjacency: Adjacency, width: int) -> tuple[float, float]:
    """What the eigenvalues cost in ε, and the directions in bounded range."""
    values = eigenvalue_sensitivity(adjacency, width) / law.value_scale
    return values, adjacency.utility_range(1.0) * law.total / KEPT_SHARE


def _possible(stated: StatedNoise, law: EigenvectorSampling) -> bool:
    return law.value_scale > 0 and law.total >= 0 and valid_directions(stated, law)


def valid_directions(stated: StatedNoise, law: EigenvectorSampling | Deflation) -> bool:
    """Whether the parameters are those of a mechanism that draws directions, and the rank is possible."""
    return (
        set(stated.parameters) <= _PARAMETERS
        and 1 <= law.rank <= stated.width
        and stated.parameters.get("rank") == law.rank
        and stated.mu is None
        and stated.rho is None
        and stated.plain_gram
    )

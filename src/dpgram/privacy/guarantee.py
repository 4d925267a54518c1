"""What is promised: (ε, δ), μ-Gaussian DP or ρ-zero-concentrated DP, and the ways between them.

A conversion that gives what a guarantee *implies* is rounded up (`rho_at_least`: a ρ large enough to be true;
`epsilon_at_most`: an ε that is never exceeded); one that gives what *fits inside* a guarantee is rounded down
(`gdp_mu_at_most`). The proofs are in proofs/gaussian.md.
"""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass
from typing import Final, Self, final

from scipy.special import erfinv, ndtri_exp

from dpgram.errors import GuaranteeError, real, warn_caller
from dpgram.privacy.curves.base import ConcentratedCurve, GaussianCurve, PrivacyCurve
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.search import greatest

_LARGE_EPSILON: Final = 10.0
_LARGE_DELTA: Final = 1e-4


@final
@dataclass(frozen=True, slots=True)
class Guarantee:
    """(ε, δ)-differential privacy: P(S) ≤ e^ε Q(S) + δ for all neighbours and all S. δ = 0 is pure."""

    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        check_epsilon(self.epsilon)
        check_delta(self.delta)

    @classmethod
    def checked(cls, epsilon: float, delta: float = 0.0, rows: int | None = None) -> Self:
        """A guarantee a person asked for: refuses nonsense, and warns where little privacy would be left.

        `rows` is given only where the number of rows is public (replace-one).
        """
        guarantee = cls(epsilon, delta)
        if epsilon > _LARGE_EPSILON:
            _warn(
                f"epsilon = {epsilon:g} lets one row change the odds of any outcome by e^{epsilon:g}",
                "values above 10 protect little",
            )
        if delta > _LARGE_DELTA:
            _warn(f"delta = {delta:g} is a chance of failing outright", "values above 1e-4 are rarely wanted")
        elif rows is not None and delta * rows > 1.0:
            _warn(
                f"delta = {delta:g} is more than one in {rows} rows",
                "with it one person in the table may be revealed",
            )
        return guarantee

    @property
    def pure(self) -> bool:
        """Whether δ = 0."""
        return self.delta == 0.0

    def met_by(self, curve: PrivacyCurve) -> bool:
        """Whether δ(ε) of the curve is within this guarantee; the curve's own rounding error is inside."""
        return curve.within(self.epsilon, self.delta)

    def __str__(self) -> str:
        return f"(ε = {self.epsilon:g}, δ = {self.delta:g})-differential privacy"


@final
@dataclass(frozen=True, slots=True)
class GaussianDP:
    """μ-GDP: telling neighbours apart is at least as hard as telling N(0, 1) from N(μ, 1). μ² adds up."""

    mu: float

    def __post_init__(self) -> None:
        _check_positive("mu", self.mu)

    @property
    def curve(self) -> GaussianCurve:
        """The exact δ(ε) of the Gaussian pair."""
        return GaussianCurve(self.mu)

    def epsilon_at_most(self, delta: float) -> float:
        """The least ε of this guarantee at `delta`, rounded up."""
        return self.curve.epsilon(_check_approximate(delta))

    def delta_at_most(self, epsilon: float) -> float:
        """The least δ of this guarantee at `epsilon`, rounded up."""
        return self.curve.delta(epsilon)

    def rho_at_least(self) -> float:
        """μ²/2, rounded up: every μ-GDP mechanism is μ²/2-zCDP, and the Gaussian needs all of it.

        Proof: proofs/gaussian.md#gaussian-rho.
        """
        return up(0.5 * self.mu * self.mu)


@final
@dataclass(frozen=True, slots=True)
class ZeroConcentrated:
    """ρ-zCDP: every Rényi divergence of order α between neighbours is at most ρα. ρ adds up."""

    rho: float

    def __post_init__(self) -> None:
        _check_positive("rho", self.rho)

    @property
    def curve(self) -> ConcentratedCurve:
        """The δ(ε) that ρ-zCDP promises, the best over all Rényi orders."""
        return ConcentratedCurve(self.rho)

    def epsilon_at_most(self, delta: float) -> float:
        """The least ε this implies at `delta`, rounded up."""
        return self.curve.epsilon(_check_approximate(delta))

    def delta_at_most(self, epsilon: float) -> float:
        """The least δ this implies at `epsilon`, rounded up."""
        return self.curve.delta(epsilon)


def gdp_mu_at_most(epsilon: float, delta: float) -> float:
    """The largest μ with Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) ≤ δ, rounded down: μ-GDP inside (ε, δ)."""
    check_epsilon(epsilon)
    _check_approximate(delta)
    return greatest(lambda mu: GaussianCurve(mu).delta(epsilon) <= delta)


def rho_at_most(epsilon: float, delta: float) -> float:
    """The largest ρ for which ρ-zCDP implies (ε, δ), rounded down."""
    check_epsilon(epsilon)
    _check_approximate(delta)
    return greatest(lambda rho: ConcentratedCurve(rho).delta(epsilon) <= delta)


def pure_mu_at_least(epsilon: float) -> float:
    """μ = −2Φ⁻¹(1/(1 + e^ε)), rounded up: the least μ for which every ε-DP mechanism is μ-GDP.

    Proof: proofs/gaussian.md#gaussian-pure-mu.
    """
    check_epsilon(epsilon)
    if epsilon < 2.0:
        # 1/(1 + e^ε) = (1 − tanh(ε/2))/2: near 1/2 the quantile needs the difference, not the probability.
        return up(2.0 * math.sqrt(2.0) * float(erfinv(math.tanh(0.5 * epsilon))))
    return up(-2.0 * float(ndtri_exp(-epsilon - math.log1p(math.exp(-epsilon)))))


def pure_rho_at_least(epsilon: float) -> float:
    """ρ = ε·tanh(ε/2) ≤ ε²/2, rounded up: the least ρ for which every ε-DP mechanism is ρ-zCDP.

    Randomised response is the worst ε-DP mechanism and has (α − 1)D_α = ln cosh u − ln cosh(ε/2) with
    u = (2α − 1)ε/2; ln cosh √v is concave in v, and its tangent at v = ε²/4 gives D_α ≤ α·ε·tanh(ε/2), with
    equality as α → 1.

    Proof: proofs/gaussian.md#gaussian-pure-rho.
    """
    check_epsilon(epsilon)
    return up(epsilon * math.tanh(0.5 * epsilon))


def as_number(what: str, value: object) -> float:
    """A privacy parameter that a person gave: refuses texts, flags and whatever else is no number."""
    number = real(value)
    if number is not None:
        return number
    usual = {"delta": "1e-6"}.get(what, "1.0")
    remedy = f"Give {what}={usual}, say"
    if isinstance(value, str):
        with contextlib.suppress(ValueError):
            remedy = f"Give {what}={float(value):g}, without quotes"
    raise GuaranteeError(f"{what} must be a number", got=repr(value)[:100], remedy=remedy)


def check_epsilon(epsilon: float) -> float:
    """Refuses ε that is not a positive finite number."""
    if not (math.isfinite(epsilon) and epsilon > 0.0):
        raise GuaranteeError(
            "epsilon must be a positive number",
            got=epsilon,
            limit="0 < epsilon < inf",
            remedy="Try epsilon=1.0.",
        )
    return epsilon


def check_delta(delta: float) -> float:
    """Refuses δ outside [0, 1)."""
    if not 0.0 <= delta < 1.0:
        raise GuaranteeError(
            "delta must be a small probability",
            got=delta,
            limit="0 ≤ delta < 1",
            remedy="Try delta=1e-6, or delta=0 for a pure guarantee.",
        )
    return delta


def _check_approximate(delta: float) -> float:
    if check_delta(delta) == 0.0:
        raise GuaranteeError(
            "Gaussian and concentrated guarantees have no pure form",
            got="delta = 0",
            limit="0 < delta < 1",
            remedy="Give a positive delta, or use a pure mechanism such as matrix-laplace.",
        )
    return delta


def _check_positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise GuaranteeError(f"{what} must be a positive number", got=value, limit="0 < value < inf")


def _warn(what: str, why: str) -> None:
    warn_caller(f"{what}: {why}")

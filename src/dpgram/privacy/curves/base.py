"""Exact privacy curves: δ(ε) = sup_S P(S) − e^ε Q(S) for the worst pair of neighbours, in both directions.

Everything is computed as ln δ, because δ = 10⁻³⁰ is an ordinary question, and every answer carries a bound of
its own rounding error on the safe side: a curve never reports less than the truth.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

from dpgram.errors import GuaranteeError
from dpgram.privacy.curves.rounding import SLACK, exp_up
from dpgram.privacy.curves.search import least

_ROOT_HALF: Final = math.sqrt(0.5)
_ROOT_HALF_PI: Final = math.sqrt(0.5 * math.pi)
_LOG_ROOT_TWO_PI: Final = 0.5 * math.log(2.0 * math.pi)
_FARTHEST: Final = 1e12  # an ε beyond this is no guarantee at all


class PrivacyCurve(ABC):
    """δ(ε) of one draw of a mechanism, the larger of its two directions, never below the truth.

    Directions are (small → big, big → small): P is the output on the data without the row and Q with it, then
    the other way round. Under replace-one, or for symmetric noise, the two agree.
    """

    __slots__ = ()

    @abstractmethod
    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        """(ln δ small → big, ln δ big → small) at ε ≥ 0, rounded up; −inf where δ = 0."""

    def log_directions(self, epsilon: float) -> tuple[float, float]:
        """(ln δ small → big, ln δ big → small) at any real ε.

        Below zero the identity δ_PQ(ε) = 1 − e^ε + e^ε δ_QP(−ε) is used; composition needs it there.
        """
        if math.isnan(epsilon):
            raise GuaranteeError("epsilon is not a number", got=epsilon, limit="any real epsilon")
        if epsilon >= 0.0:
            return self._log_directions(epsilon)
        there, back = self._log_directions(-epsilon)
        return _mirrored(epsilon, back), _mirrored(epsilon, there)

    def log_directions_at(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """`log_directions` at many ε, a column each."""
        found = self._log_directions_at(np.abs(epsilons))
        for i in np.flatnonzero(epsilons < 0.0):
            epsilon, (there, back) = float(epsilons[i]), map(float, found[:, i])
            found[:, i] = _mirrored(epsilon, back), _mirrored(epsilon, there)
        return found

    def _log_directions_at(self, epsilons: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
        """`_log_directions` at many ε ≥ 0. A curve that knows them together overrides it."""
        return np.array([self._log_directions(float(epsilon)) for epsilon in epsilons]).T

    def log_delta(self, epsilon: float) -> float:
        """ln δ(ε), the larger direction, rounded up."""
        return max(self.log_directions(epsilon))

    def directions(self, epsilon: float) -> tuple[float, float]:
        """(δ small → big, δ big → small) at ε, rounded up."""
        there, back = self.log_directions(epsilon)
        return min(exp_up(there), 1.0), min(exp_up(back), 1.0)

    def delta(self, epsilon: float) -> float:
        """δ(ε) = max of both directions, rounded up."""
        return max(self.directions(epsilon))

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether δ(ε) ≤ delta. A curve that decides this faster than it knows δ(ε) overrides it."""
        return self.delta(epsilon) <= delta

    def epsilon(self, delta: float) -> float:
        """The least ε ≥ 0 with δ(ε) ≤ delta, rounded up; inf where there is none (a Gaussian at 0)."""
        if not 0.0 <= delta <= 1.0:
            raise GuaranteeError("delta must be a probability", got=delta, limit="0 ≤ delta ≤ 1")
        if self.delta(0.0) <= delta:
            return 0.0
        if self.delta(_FARTHEST) > delta:
            return math.inf
        return least(lambda epsilon: self.delta(epsilon) <= delta)


def _mirrored(epsilon: float, log_other: float) -> float:
    """ln(1 − e^ε + e^ε δ') for ε < 0, rounded up."""
    return min(math.log(-math.expm1(epsilon) + math.exp(epsilon + log_other)) + SLACK, 0.0)


@final
@dataclass(frozen=True, slots=True)
class GaussianCurve(PrivacyCurve):
    """δ(ε) = Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ): one unit of Gaussian noise against a shift of μ.

    Exact for every Gaussian mechanism with μ = sensitivity / σ, and the same in both directions
    (proofs/gaussian.md#gaussian-claim). With x = ε/μ − μ/2, y = x + μ and Mills' ratio m,
    δ = φ(x)(m(x) − m(y)), which needs no difference of logarithms.
    """

    mu: float

    def __post_init__(self) -> None:
        _positive("mu", self.mu)

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        ratio, half = epsilon / self.mu, 0.5 * self.mu
        x, y = ratio - half, ratio + half
        if x < 0.0:
            # Φ(−x) ≥ 1/2 here, so nothing is lost by subtracting in the plain way.
            value = float(ndtr(-x)) - math.exp(-0.5 * x * x - _LOG_ROOT_TWO_PI) * _mills(y)
            log_delta = math.log(value + SLACK * (1.0 + y))
        elif math.isinf(x):
            return -math.inf, -math.inf
        else:
            upper = _mills(x)
            # x and y each carry an error of about (ratio + half)·2⁻⁵³, and |m'(x)| ≤ m(x)/x.
            error = upper * SLACK * (0.25 + 0.25 * y / max(1.0, x))
            log_delta = math.log(upper - _mills(y) + error) - 0.5 * x * x - _LOG_ROOT_TWO_PI
            log_delta += 0.125 * SLACK * (1.0 + x * y)
        log_delta = min(log_delta, 0.0)
        return log_delta, log_delta


def _mills(x: float) -> float:
    """(1 − Φ(x)) / φ(x)."""
    return _ROOT_HALF_PI * float(erfcx(_ROOT_HALF * x))


@final
@dataclass(frozen=True, slots=True)
class PureCurve(PrivacyCurve):
    """δ(ε) = (e^ε₀ − e^ε)₊ / (1 + e^ε₀): the worst of all ε₀-DP mechanisms, attained by randomised response.

    For any mechanism of which only "it is ε₀-DP" is known, matrix Laplace and Laplace among them.
    """

    limit: float
    """ε₀, the largest absolute privacy loss."""

    def __post_init__(self) -> None:
        _positive("the limit of the privacy loss", self.limit)

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        if epsilon >= self.limit:
            return -math.inf, -math.inf
        log_delta = math.log(-math.expm1(epsilon - self.limit)) - math.log1p(math.exp(-self.limit)) + SLACK
        return min(log_delta, 0.0), min(log_delta, 0.0)


@final
@dataclass(frozen=True, slots=True)
class ConcentratedCurve(PrivacyCurve):
    """δ(ε) = min over α > 1 of e^{(α−1)(αρ−ε)} (1 − 1/α)^α / (α − 1): what ρ-zCDP promises.

    The logarithm is convex in α with derivative (2α − 1)ρ − ε + ln(1 − 1/α), so one root is the minimum; any
    α gives a valid bound, so an inexact root costs tightness in the last digits and never privacy.

    Proof: proofs/gaussian.md#gaussian-zcdp.
    """

    rho: float

    def __post_init__(self) -> None:
        _positive("rho", self.rho)

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        excess = _stationary_excess(self.rho, epsilon)
        order = 1.0 + excess
        growth = excess * (order * self.rho - epsilon)
        shape = -excess * math.log1p(1.0 / excess) - math.log1p(excess)
        error = SLACK * (1.0 + excess * (order * self.rho + epsilon) + abs(shape))
        log_delta = min(growth + shape + error, 0.0)
        return log_delta, log_delta


def _stationary_excess(rho: float, epsilon: float) -> float:
    """The root a = α − 1 > 0 of (2a + 1)ρ + ln(a / (1 + a)) = ε, whose left side increases from −∞ to ∞."""
    return least(lambda a: (2.0 * a + 1.0) * rho - math.log1p(1.0 / a) >= epsilon)


def _positive(what: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0.0):
        raise GuaranteeError(f"{what} must be a positive number", got=value, limit="0 < value < inf")

"""P(S) ≥ p and Q(S) ≤ q with a stated confidence ⇒ ε ≥ ln((p − δ)/q), δ ≥ p − e^ε q, μ ≥ Φ⁻¹(p) − Φ⁻¹(q).

What counted events prove of a guarantee, and whether a claim survives it. An audit can refute a claim; it can
never prove one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.special import betaincinv, ndtri

from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.guarantee import GaussianDP, Guarantee, ZeroConcentrated

Scores: TypeAlias = npt.NDArray[np.float64]
"""One row for each run, one column for each statistic."""
ThresholdSide: TypeAlias = Literal["above", "below"]
Input: TypeAlias = Literal["a", "b"]
Claim: TypeAlias = Guarantee | GaussianDP | ZeroConcentrated | PrivacyCurve

_EPSILONS: Final = (0.0, *np.geomspace(1e-3, 60.0, 300).tolist())
"""Where a curve is held against what was found."""


def clopper_pearson_lower(hits: npt.ArrayLike, runs: int, error: float) -> Scores:
    """The p under which `hits` or more of `runs` have probability `error`; 0 for no hit."""
    count = np.asarray(hits, dtype=np.float64)
    lower: Scores = np.where(count > 0.0, betaincinv(np.maximum(count, 1.0), runs - count + 1.0, error), 0.0)
    return lower


def clopper_pearson_upper(hits: npt.ArrayLike, runs: int, error: float) -> Scores:
    """The p under which `hits` or fewer of `runs` have probability `error`; 1 for a hit in every run."""
    return 1.0 - clopper_pearson_lower(runs - np.asarray(hits), runs, error)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Separation:
    """An event, chosen on one half of the runs, and what the other half says of its two probabilities."""

    statistic: str
    event: ThresholdSide
    threshold: float
    likelier: Input
    """The input under which the event is the more frequent."""
    hits: tuple[int, int]
    """How often it happened under the likelier input, and under the other."""
    runs: int
    p_at_least: float
    q_at_most: float

    def epsilon_at_least(self, delta: float) -> float:
        """ln((p − δ)/q), or the same of the complementary event if that is more; 0 where nothing is shown."""
        bounds = [0.0]
        for p, q in self._sides():
            if p > delta:
                bounds.append(math.log((p - delta) / q))
        return max(bounds)

    def delta_at_least(self, epsilon: float) -> float:
        """p − e^ε q, of the event or of its complement; 0 where nothing is shown."""
        return max(0.0, *(p - math.exp(epsilon) * q for p, q in self._sides()))

    @property
    def mu_at_least(self) -> float:
        """Φ⁻¹(p) − Φ⁻¹(q); 0 where nothing is shown."""
        return max(0.0, float(ndtri(self.p_at_least) - ndtri(self.q_at_most)))

    def _sides(self) -> tuple[tuple[float, float], tuple[float, float]]:
        """(p, q) of the event, and of its complement, which is likelier under the other input."""
        return (self.p_at_least, self.q_at_most), (1.0 - self.q_at_most, 1.0 - self.p_at_least)

    def __str__(self) -> str:
        sign = ">" if self.event == "above" else "≤"
        return (
            f"{self.statistic} {sign} {self.threshold:.4g}: {self.hits[0]} times in {self.runs} under "
            f"{self.likelier}, {self.hits[1]} under the other"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AuditResult:
    """What the runs prove, all bounds at once with probability `confidence`."""

    delta: float
    confidence: float
    by_epsilon: Separation
    """The event that was chosen to show the largest ε at `delta`."""
    by_mu: Separation
    """The event that was chosen to show the largest μ."""

    @property
    def epsilon_lower(self) -> float:
        """No ε below this one is true together with δ = `delta`."""
        return max(s.epsilon_at_least(self.delta) for s in (self.by_epsilon, self.by_mu))

    @property
    def mu_lower(self) -> float:
        """No μ below this one is true."""
        return max(self.by_epsilon.mu_at_least, self.by_mu.mu_at_least)

    def delta_lower(self, epsilon: float) -> float:
        """No δ below this one is true together with `epsilon`."""
        return max(s.delta_at_least(epsilon) for s in (self.by_epsilon, self.by_mu))

    def passes(self, claim: Claim) -> bool:
        """Whether nothing found here contradicts the claim: (ε, δ), μ-GDP, ρ-zCDP or a whole curve."""
        if isinstance(claim, Guarantee):
            return self.delta_lower(claim.epsilon) <= claim.delta
        curve = claim if isinstance(claim, PrivacyCurve) else claim.curve
        return _never_above(self.delta_lower, curve.delta, 0, len(_EPSILONS) - 1)

    def __str__(self) -> str:
        return (
            f"ε ≥ {self.epsilon_lower:.3f} at δ = {self.delta:g} ({self.by_epsilon}); "
            f"μ ≥ {self.mu_lower:.3f} ({self.by_mu}); confidence {self.confidence:g}"
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class JointAudit:
    """The audits of several pairs of neighbours, valid together with the asked confidence."""

    results: tuple[tuple[str, AuditResult], ...]
    """Name of the pair, and what its runs prove."""

    @property
    def epsilon_lower(self) -> float:
        """The largest ε that any pair shows."""
        return max(result.epsilon_lower for _, result in self.results)

    @property
    def mu_lower(self) -> float:
        """The largest μ that any pair shows."""
        return max(result.mu_lower for _, result in self.results)

    def delta_lower(self, epsilon: float) -> float:
        """The largest δ that any pair shows at `epsilon`."""
        return max(result.delta_lower(epsilon) for _, result in self.results)

    def passes(self, claim: Claim) -> bool:
        """Whether no pair contradicts the claim."""
        return all(result.passes(claim) for _, result in self.results)

    def __str__(self) -> str:
        return "\n".join(f"{name}: {result}" for name, result in self.results)


def _never_above(
    found: Callable[[float], float], claimed: Callable[[float], float], first: int, last: int
) -> bool:
    """Whether found(ε) ≤ claimed(ε) at the levels from `first` to `last`, few evaluations: curves are slow.

    Both fall as ε grows, so found(first) ≤ claimed(last) settles everything between.
    """
    if found(_EPSILONS[first]) <= claimed(_EPSILONS[last]):
        return True
    if last - first <= 1:
        return all(found(_EPSILONS[k]) <= claimed(_EPSILONS[k]) for k in (first, last))
    middle = (first + last) // 2
    return _never_above(found, claimed, first, middle) and _never_above(found, claimed, middle, last)

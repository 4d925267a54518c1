"""δ(ε) of several things run side by side, all fixed beforehand: randomised responses, one Gaussian, a leak.

The privacy loss of the whole is the sum of the losses, so with S the summed loss of the pure parts, drawn
under the first hypothesis, and h_μ the curve of the Gaussian parts together (μ² adds),

    δ(ε) = leak + (1 − leak) · E h_μ(ε − S),        h_0(x) = (1 − e^x)₊.

Every pure ε-DP part is at worst a randomised response, whose loss is ±ε with P(+ε) = e^ε/(1 + e^ε); every
(ε, δ) part is at worst one that reveals everything with probability δ. Where the sums S are few they are
enumerated: the optimal composition, exactly. Where they are many, each loss is split onto a grid so that both
hypotheses keep their masses: the original is a post-processing of the split pair, so the split can only raise
δ (proofs/filters.md). For parts fixed beforehand only: across events the ledger's filter rules.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, ndtr

from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.curves.rounding import SLACK
from dpgram.privacy.exact_sums import float_up

Floats = npt.NDArray[np.float64]

MOST_ATOMS: Final = 1 << 14
"""More different sums than this are split onto a grid of this many points."""
_FARTHEST: Final = 1e9
"""Standard deviations beyond which a normal density is 0 to any float."""
_SMALLEST: Final = 1e-280
_FLOOR: Final = 1e-290
"""Added to a δ that is not 0, for the masses that underflowed on the way."""


@final
@dataclass(frozen=True, slots=True, eq=False)
class ComposedCurve(PrivacyCurve):
    """δ(ε) = E h_μ(ε − S) for pure parts with summed loss S beside Gaussian parts of μ (0: none).

    Proof: proofs/filters.md#filters-inside.
    """

    losses: Floats
    """The values of S, each at or above the sum it stands for."""
    masses: Floats
    """Their probabilities under the first hypothesis."""
    reach: float
    """The largest loss of the pure parts: their εs added up, rounded up."""
    mu: float
    error: float
    """A bound of the relative rounding error of the masses."""

    @classmethod
    def of(cls, epsilons: Sequence[float], mu: float, *, most_atoms: int = MOST_ATOMS) -> Self:
        """The curve of pure parts with these εs beside Gaussian parts of μ (0: none)."""
        groups = Counter(epsilons)
        reach = float_up(sum(map(Fraction, epsilons), Fraction(0)))
        if math.prod(count + 1 for count in groups.values()) <= most_atoms:
            losses, masses = _enumerated(groups)
        else:
            losses, masses = _on_grid(groups, reach, most_atoms)
        error = SLACK * (8.0 + 2.0 * sum(count * (1.0 + epsilon) for epsilon, count in groups.items()))
        return cls(losses + SLACK * reach, masses, reach, mu, error)

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        # Both directions agree: the losses of each part, Gaussian or response, have mirrored laws.
        if self.mu == 0.0:
            if epsilon >= self.reach:
                return -math.inf, -math.inf
            values = -np.expm1(np.minimum(epsilon - self.losses, 0.0))
        else:
            values = gaussian_deltas_up(epsilon - self.losses, self.mu)
        delta = float(self.masses @ values) * (1.0 + self.error) + _FLOOR
        log_delta = min(math.log(delta), 0.0)
        return log_delta, log_delta


@final
@dataclass(frozen=True, slots=True)
class LeakyCurve(PrivacyCurve):
    """δ(ε) = leak + (1 − leak)·δ_inner(ε): everything is revealed with probability leak.

    Proof: proofs/filters.md#filters-leaks.
    """

    inner: PrivacyCurve
    leak: float

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        there, back = self.inner.log_directions(epsilon)
        return self._leaked(there), self._leaked(back)

    def _leaked(self, log_inner: float) -> float:
        rest = math.log1p(-self.leak) + log_inner
        return min(float(np.logaddexp(math.log(self.leak), rest)) + SLACK, 0.0)


def gaussian_deltas_up(x: Floats, mu: float) -> Floats:
    """Φ(μ/2 − x/μ) − e^x Φ(−μ/2 − x/μ) for every real x, rounded up.

    With a = |x|/μ − μ/2, b = a + μ and Mills' ratio m it is φ(a)(m(a) − m(b)) for x ≥ 0; below zero
    h(x) = 1 − e^x + e^x h(−x).
    """
    size = np.abs(x)
    ratio = np.minimum(size, _FARTHEST * mu) / mu
    a, b = ratio - mu / 2.0, ratio + mu / 2.0
    density = np.exp(-0.5 * a * a) / math.sqrt(2.0 * math.pi)
    tail = density * _mills(b)
    near = ndtr(-a) - tail
    far = density * (_mills(np.maximum(a, 0.0)) - _mills(b))
    # φ(a) carries a relative error of about b² units in the last place, and the difference of Mills' ratios
    # one of about (1 + b)/μ of them.
    relative = SLACK * (1.0 + b * b + (1.0 + b) / max(mu, _SMALLEST))
    right = np.where(a < 0.0, near, far) * (1.0 + relative)
    left = -np.expm1(-size) + np.exp(-size) * right
    return np.minimum(np.where(x < 0.0, left * (1.0 + SLACK), right) + _FLOOR, 1.0)


def _mills(x: Floats) -> Floats:
    """(1 − Φ(x)) / φ(x)."""
    return np.asarray(math.sqrt(0.5 * math.pi) * erfcx(x * math.sqrt(0.5)), dtype=np.float64)


def _enumerated(groups: Counter[float]) -> tuple[Floats, Floats]:
    """Every value of S, with its probability: n responses of one ε give (2k − n)ε, k binomial."""
    losses, masses = np.zeros(1), np.ones(1)
    for epsilon, count in sorted(groups.items()):
        group_losses = (2.0 * np.arange(count + 1) - count) * epsilon
        losses = np.add.outer(losses, group_losses).ravel()
        masses = np.multiply.outer(masses, _binomial(count, epsilon)).ravel()
    return losses, masses


def _binomial(count: int, epsilon: float) -> Floats:
    """P(k of n responses are +ε), from exact binomial coefficients."""
    log_plus, log_minus = -math.log1p(math.exp(-epsilon)), -math.log1p(math.exp(-epsilon)) - epsilon
    logs = np.empty(count + 1)
    ways = 1
    for k in range(count + 1):
        logs[k] = math.log(ways) + k * log_plus + (count - k) * log_minus
        ways = ways * (count - k) // (k + 1)
    return np.exp(logs)


def _on_grid(groups: Counter[float], reach: float, points: int) -> tuple[Floats, Floats]:
    """S on a grid of about `points` points, each loss split between its two neighbours on the grid."""
    step = 2.0 * reach / points
    masses, lowest = np.ones(1), 0
    for epsilon, count in sorted(groups.items()):
        atoms = _split(epsilon, step)
        first, last = atoms[0][0], atoms[-1][0]
        for _ in range(count):
            wider = np.zeros(masses.size + last - first)
            for index, mass in atoms:
                wider[index - first : index - first + masses.size] += mass * masses
            masses, lowest = wider, lowest + first
    return step * np.arange(lowest, lowest + masses.size, dtype=np.float64), masses


def _split(epsilon: float, step: float) -> list[tuple[int, float]]:
    """(grid index, mass) of one response on the grid, lowest first.

    A loss L between the points g and g + h keeps both its mass p and its mass p·e^−L under the other
    hypothesis when the upper point gets p(1 − e^−(L−g))/(1 − e^−h).

    Proof: proofs/filters.md#filters-inside.
    """
    atoms = []
    for loss in (-epsilon, epsilon):
        mass = 1.0 / (1.0 + math.exp(-loss))
        below = math.floor(loss / step)
        upper = math.expm1(below * step - loss) / math.expm1(-step)
        # The rounding of L and g is pushed to the upper point, where it can only raise δ.
        upper = min(upper + SLACK * (1.0 + epsilon) * (1.0 + 1.0 / step), 1.0)
        atoms += [(below, mass * (1.0 - upper)), (below + 1, mass * upper)]
    return atoms

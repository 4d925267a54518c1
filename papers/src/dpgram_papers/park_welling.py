"""Park and Welling 2016 (after Imtiaz and Sarwate 2016): one-sided Wishart noise, and its accounting."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

from dpgram.core.noise import Entropy
from dpgram.noise import AdditiveWishart
from dpgram_papers.variant import Matrix, Variant


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OneSidedWishart(Variant):
    """G + ZZᵀ, Z of d+1 columns N(0, I/(2ε')): claimed ε'-DP; δ(ε) = 1 − e^{−ε'} for every ε.

    Where both densities are positive their ratio is e^{±ε'}, as printed. But the noise is positive definite,
    so the output never leaves the cone at G, and with probability 1 − e^{−ε'} the output without a row is
    outside the cone of the table with it: the loss is infinite there (proofs/matrix-laplace.md).
    """

    paper: ClassVar[str] = "Park and Welling 2016; Imtiaz and Sarwate 2016"
    explanation: ClassVar[str] = (
        "the support of the noise was forgotten: the loss is infinite on an event of probability 1 − e^{−ε'}"
    )

    @property
    def name(self) -> str:
        """One name."""
        return "one-sided-wishart"

    @property
    def place(self) -> str:
        """Where."""
        return "eq. 6–11"

    @property
    def printed(self) -> str:
        """The claim."""
        return f"d + 1 degrees of freedom, scale 1/(2ε') = {self.scale:.4g}"

    @property
    def scale(self) -> float:
        """1/(2ε')."""
        return 0.5 / self.claimed.epsilon

    def true_delta(self, epsilon: float) -> float:
        """1 − e^{−ε'}, exact for ε ≥ ε' under both relations and for every ε ≥ 0 under add/remove."""
        del epsilon
        return -math.expm1(-self.claimed.epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One noisy matrix."""
        width = len(gram)
        return gram + AdditiveWishart(scale=self.scale, degrees=width + 1).sample(width, entropy.generator())


def step_epsilon(total: float, iterations: int) -> float:
    """ε' = √(ε/J), the share of each of the 2J steps of J iterations (§3)."""
    return math.sqrt(total / iterations)


def concentrated_overshoot(total: float, iterations: int) -> float:
    """What the theorem cited in §3 gives for the 2J steps, 2J·ε'(e^{ε'} − 1)/2, over the ε it shall be.

    Dropping the positive terms of the series bounds this from below, where a bound from above is needed.
    """
    step = step_epsilon(total, iterations)
    return iterations * step * math.expm1(step) / total


def divergence_ratio(total: float, iterations: int) -> float:
    """The same with the exact bound KL ≤ ε' tanh(ε'/2) of an ε'-DP step: at most 1, so ε' was right."""
    step = step_epsilon(total, iterations)
    return 2.0 * iterations * step * math.tanh(0.5 * step) / total

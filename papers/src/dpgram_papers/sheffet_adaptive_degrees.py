"""Sheffet 2015, Algorithms 2 and 5 with a *least* number of degrees: a large σ_min buys more of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from dpgram.noise.sampled import inverse_wishart, wishart, with_ridge
from dpgram.privacy.sampling.entropy import Entropy
from dpgram_papers.sheffet import PrintedAdaptive
from dpgram_papers.variant import Matrix, Variant


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedAdaptiveDegrees(Variant):
    """A look at σ_min with ε/2; ridge W + 1 − s while s < W + 1, and above it no ridge but more degrees.

    s and W(r) as in `PrintedAdaptive`, at (ε/2, δ/2); r is the largest with W(r) ≤ s − 1. The text says only
    that r may be set from Theorem 3.1 where σ_min is large; the rest is reconstructed. The ridge stays in the
    answer, as in Algorithm 1.
    """

    paper: ClassVar[str] = "Sheffet 2015"
    explanation: ClassVar[str] = (
        "reconstructed, because the body is missing; valid, and loose by the theorem it uses and by halving"
    )

    least: int
    """r₀ or ν₀."""
    algorithm: Literal[2, 5] = 2

    @property
    def name(self) -> str:
        """By algorithm."""
        return "sketch-grown-printed" if self.algorithm == 2 else "inverse-wishart-grown-printed"

    @property
    def place(self) -> str:
        """By algorithm."""
        return f"Algorithm {self.algorithm}"

    @property
    def printed(self) -> str:
        """The ridge where the look finds nothing."""
        return f"ridge up to {self._fixed.largest_ridge:.4g} for {self.least} degrees or more"

    @property
    def _fixed(self) -> PrintedAdaptive:
        return PrintedAdaptive(claimed=self.claimed, degrees=self.least, algorithm=self.algorithm)

    def true_delta(self, epsilon: float) -> float:
        """That of the least degrees: more of them come only with the σ_min that Theorem 3.1 asks for."""
        return self._fixed.true_delta(epsilon)

    def plan(self, gram: Matrix, generator: np.random.Generator) -> tuple[float, int]:
        """The ridge and the degrees that a look at the matrix allows."""
        scale = 2.0 / self.claimed.epsilon
        look = float(np.linalg.eigvalsh(gram)[0]) + float(generator.laplace(0.0, scale))
        bound = look + scale * math.log(self.claimed.delta)
        largest = self._fixed.largest_ridge
        if bound - 1.0 <= largest:
            return min(largest, largest + 1.0 - max(bound, 0.0)), self.least
        log_term = math.log(8.0 / self.claimed.delta)
        # W(r) = (4/ε)(2√(2r·l) + 2l) = s − 1, solved for r.
        root = 0.125 * self.claimed.epsilon * (bound - 1.0) - log_term
        return 0.0, max(self.least, math.floor(root**2 / (2.0 * log_term)))

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One matrix with mean G + ridge·I."""
        generator = entropy.generator()
        ridge, degrees = self.plan(gram, generator)
        if self.algorithm == 2:
            return wishart(with_ridge(gram, ridge), degrees, generator) / degrees
        return inverse_wishart(with_ridge(gram, ridge), degrees, generator)

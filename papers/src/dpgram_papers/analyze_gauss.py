"""Analyze Gauss (Dwork, Talwar, Thakurta and Zhang 2014) with the classical σ, and as Sheffet prints it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar, Literal, final

import numpy as np

from dpgram.core.noise import Entropy, simulation
from dpgram.privacy.adjacency import AddRemove, Adjacency
from dpgram.privacy.curves.base import GaussianCurve
from dpgram_papers.variant import Matrix, Repair, Variant, repaired


def upper_triangle_noise(width: int, sigma: float, generator: np.random.Generator) -> Matrix:
    """Independent N(0, σ²) on and above the diagonal, mirrored: twice the off-diagonal variance needed."""
    upper = np.triu(generator.standard_normal((width, width)))
    return np.asarray(sigma * (upper + np.triu(upper, 1).T), dtype=np.float64)


@lru_cache
def expected_norm(width: int) -> float:
    """E‖N‖ for σ = 1, from 200 simulated matrices."""
    generator = simulation(width)
    noises = (upper_triangle_noise(width, 1.0, generator) for _ in range(200))
    return float(np.mean([np.linalg.norm(noise, 2) for noise in noises]))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AnalyzeGauss(Variant):
    """G + N, N_ij ~ N(0, σ²) for i ≤ j; μ-GDP with μ = Δ/σ, Δ = 1 (add/remove) or √2 (replace-one).

    `constant`: "classical" σ² = 2 ln(1.25/δ)/ε², proven for ε ≤ 1; "sheffet" σ² = 2 ln(2/δ)/ε as in his §2.
    """

    paper: ClassVar[str] = "Dwork et al. 2014; Sheffet 2015, §2 and §6"
    explanation: ClassVar[str] = (
        "the classical σ is proven for ε ≤ 1 and more than is needed; Sheffet's §2 prints ε for ε² "
        "and the sensitivity B², where rows that are replaced need √2·B²"
    )

    adjacency: Adjacency = AddRemove()
    constant: Literal["classical", "sheffet"] = "classical"
    repair: Repair = "none"

    @property
    def name(self) -> str:
        """By constant and repair."""
        stem = "analyze-gauss" if self.constant == "classical" else "analyze-gauss-as-in-sheffet"
        return stem if self.repair == "none" else f"{stem}-{self.repair}"

    @property
    def place(self) -> str:
        """By constant."""
        return "Algorithm 1" if self.constant == "classical" else "Sheffet §2"

    @property
    def printed(self) -> str:
        """σ."""
        formula = "√(2 ln(1.25/δ))/ε" if self.constant == "classical" else "√(2 ln(2/δ)/ε)"
        return f"σ = {formula} = {self.sigma:.4g}"

    @property
    def sigma(self) -> float:
        """The deviation of every cell."""
        epsilon, delta = self.claimed.epsilon, self.claimed.delta
        if self.constant == "classical":
            return math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
        return math.sqrt(2.0 * math.log(2.0 / delta) / epsilon)

    def true_delta(self, epsilon: float) -> float:
        """The Gaussian curve: the worst row lies along one column, where this noise has deviation σ."""
        return GaussianCurve(self.adjacency.gram_frobenius(1.0) / self.sigma).delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One noisy matrix; "scaled" adds E‖N‖ to the diagonal where it is not positive definite."""
        width = len(gram)
        noisy = gram + upper_triangle_noise(width, self.sigma, entropy.generator())
        return repaired(noisy, self.repair, self.sigma * expected_norm(width))

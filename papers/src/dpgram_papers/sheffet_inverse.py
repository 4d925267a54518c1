"""Sheffet 2015, Theorem B.5: Gaussian noise on the inverse, printed with a sensitivity in the wrong units."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from dpgram.core.noise import Entropy
from dpgram.privacy.curves.base import GaussianCurve
from dpgram_papers.analyze_gauss import upper_triangle_noise
from dpgram_papers.variant import Matrix, Variant


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedInverseNoise(Variant):
    """G⁻¹ + N, N_ij ~ N(0, 8 ln(2/δ)/(ρε)²) for i ≤ j, promised σ_min(G) ≥ (1 + ρ)B², rows |x| ≤ B.

    The inverse moves by up to √2·B²/(L(L + B²)), L = (1 + ρ)B² (add/remove: without √2), and no more
    (proofs/inverse-noise.md#inverse-noise-promise): it has the unit 1/B², while the printed 2/ρ has none.

    Proof: proofs/inverse-noise.md#inverse-noise-printed.
    """

    paper: ClassVar[str] = "Sheffet 2015"
    explanation: ClassVar[str] = (
        "the printed sensitivity 2/ρ has the wrong units ((ρB²)² was taken for (ρB²)⁴): too little noise for "
        "rows shorter than 1"
    )

    bound: float
    """B, the largest norm of a row."""
    surplus: float
    """ρ."""

    @property
    def name(self) -> str:
        """One name."""
        return "inverse-noise-B.5"

    @property
    def place(self) -> str:
        """Where."""
        return "Theorem B.5"

    @property
    def printed(self) -> str:
        """σ."""
        return f"σ = √(8 ln(2/δ))/(ρε) = {self.sigma:.4g} for B = {self.bound:g}, ρ = {self.surplus:g}"

    @property
    def sigma(self) -> float:
        """The deviation of every cell."""
        return math.sqrt(8.0 * math.log(2.0 / self.claimed.delta)) / (self.surplus * self.claimed.epsilon)

    @property
    def promise(self) -> float:
        """L = (1 + ρ)B²."""
        return (1.0 + self.surplus) * self.bound**2

    @property
    def sensitivity(self) -> float:
        """How far the inverse moves, in Frobenius norm."""
        return self.adjacency.inverse_frobenius(self.bound**2, self.promise)

    def true_delta(self, epsilon: float) -> float:
        """The Gaussian curve: the worst change lies on the diagonal, where the noise has deviation σ."""
        return GaussianCurve(self.sensitivity / self.sigma).delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """The noisy inverse itself."""
        noise = upper_triangle_noise(len(gram), self.sigma, entropy.generator())
        return np.asarray(np.linalg.inv(gram) + noise, dtype=np.float64)

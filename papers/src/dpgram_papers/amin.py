"""Amin, Dick, Kulesza, Muñoz and Vassilvitskii 2019: eigenvector sampling and its baselines, as printed.

C = Σ x xᵀ with |x| ≤ 1; neighbours differ in one replaced row. Where the paper leaves something open, the
choice is said in the class.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, final

import numpy as np

from dpgram.core.noise import Entropy
from dpgram.noise import EntrywiseLaplace
from dpgram.privacy.curves.base import PureCurve
from dpgram.privacy.curves.spectral import sample_deflation
from dpgram.privacy.sampling.bingham import draw_frame
from dpgram_papers.variant import Matrix, Variant

FAILURE: Final = 0.05
"""β of Corollary 1, which the paper leaves open."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedEigenvectors(Variant):
    """Algorithm 1: λ̂ = λ + Lap(2/ε₀), θ_i ∝ exp((ε_i/4)uᵀCu), ε₀ = ε/2; split by Corollary 1 or evenly.

    The directions follow the stated law; the paper's own sampler for it does not (`PrintedSampler`).
    """

    paper: ClassVar[str] = "Amin et al. 2019"
    explanation: ClassVar[str] = (
        "uᵀCu has sensitivity 1, not 2, and only rises when a row is added: ε_i/4 is half (replace-one) or a "
        "quarter (add/remove) of the inverse temperature that is allowed"
    )

    split: Literal["adaptive", "uniform"] = "adaptive"

    @property
    def name(self) -> str:
        """The paper's AD and IT-U."""
        return f"eigenvectors-printed-{self.split}"

    @property
    def place(self) -> str:
        """Where."""
        return "Algorithm 1, Corollary 1"

    @property
    def printed(self) -> str:
        """The constants."""
        return "c_i = ε_i/4, eigenvalues Lap(2/ε₀), ε₀ = ε/2"

    def true_delta(self, epsilon: float) -> float:
        """That of a pure mechanism with what the steps really cost, added up: an upper bound.

        Eigenvalues: L1 sensitivity over 2/ε₀. Directions: (ε/8)·utility range in all.
        """
        half = 0.5 * self.claimed.epsilon
        values = half * self.adjacency.eigenvalue_l1(1.0) / 2.0
        return PureCurve(values + 0.25 * half * self.adjacency.utility_range(1.0)).delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """Σ λ̂_i θ_i θ_iᵀ; every direction is paid for, the forced last one included, as printed."""
        generator, width, half = entropy.generator(), len(gram), 0.5 * self.claimed.epsilon
        values = np.linalg.eigvalsh(gram)[::-1] + generator.laplace(0.0, 2.0 / half, width)
        weights = np.ones(width)
        if self.split == "adaptive":
            weights = np.sqrt(np.maximum(values + 2.0 / half * math.log(2.0 * width / FAILURE), 0.0))
        frame = draw_frame(gram, 0.25 * half * weights / weights.sum(), generator)
        rebuilt: Matrix = (frame * values) @ frame.T
        return 0.5 * (rebuilt + rebuilt.T)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedDeflation(Variant):
    """The baseline KT: each of d steps gets ε/d, half for the direction (c = ε_i/4), half for its value.

    The paper names Kapralov and Talwar's algorithm without constants; these are its own, carried over.
    """

    paper: ClassVar[str] = "Amin et al. 2019"
    explanation: ClassVar[str] = (
        "reconstructed with the constants of Algorithm 1; θᵀCθ has sensitivity 1, so its Lap(2/ε_i) is "
        "twice what is needed"
    )

    @property
    def name(self) -> str:
        """One name."""
        return "deflation-printed"

    @property
    def place(self) -> str:
        """Where."""
        return "§4, baseline KT"

    @property
    def printed(self) -> str:
        """The constants."""
        return "c_i = ε_i/4, values Lap(2/ε_i), ε_i = ε/(2d)"

    def true_delta(self, epsilon: float) -> float:
        """That of a pure mechanism with what the steps really cost, added up: an upper bound."""
        half = 0.5 * self.claimed.epsilon
        return PureCurve(0.5 * half + 0.25 * half * self.adjacency.utility_range(1.0)).delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """Σ λ̂_i θ_i θ_iᵀ."""
        generator, width = entropy.generator(), len(gram)
        step = 0.5 * self.claimed.epsilon / width
        return sample_deflation(
            gram,
            value_scale=2.0 / step,
            inverse_temperature=0.25 * step,
            rank=width,
            value_noise=lambda scale, count: generator.laplace(0.0, scale, count),
            generator=generator,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedLaplace(Variant):
    """The baseline L: C + N with cells Lap(2d/ε), drawn here for the upper triangle and mirrored."""

    paper: ClassVar[str] = "Amin et al. 2019"
    explanation: ClassVar[str] = (
        "the upper triangle of a replaced row moves by √(d²/2 + d + 1) in L1, not by 2d: the noise is up to "
        "2√2 times too large"
    )

    width: int

    @property
    def name(self) -> str:
        """One name."""
        return "laplace-printed"

    @property
    def place(self) -> str:
        """Where."""
        return "§4, baseline L"

    @property
    def printed(self) -> str:
        """The scale."""
        return f"2d/ε = {self.scale:.4g} for d = {self.width}"

    @property
    def scale(self) -> float:
        """2d/ε."""
        return 2.0 * self.width / self.claimed.epsilon

    def true_delta(self, epsilon: float) -> float:
        """That of a pure mechanism with ε = Δ/b for the tight Δ: an upper bound."""
        return PureCurve(self.adjacency.gram_l1(self.width, 1.0) / self.scale).delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One noisy matrix."""
        law = EntrywiseLaplace(scale=self.scale, diagonal_scale=self.scale)
        return gram + law.sample(len(gram), entropy.generator())

"""Sheffet 2015 (full version 2018): Algorithms 1 to 5 with the constants of the text and of the appendix.

The text and the appendix state each theorem with different constants; `theorem` says which are meant. The
bodies of Algorithms 2 and 5 are missing in the texts; they are reconstructed here with the printed constants:
a part of (ε, δ), half of it unless said otherwise, buys a lower bound on σ_min, the rest the draw. Neighbours
differ in one replaced row.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from dpgram.core.noise import Entropy
from dpgram.errors import MechanismError
from dpgram.noise import AdditiveWishart
from dpgram.noise.sampled import inverse_wishart, wishart, with_ridge
from dpgram.privacy.curves.wishart import AdditiveWishartCurve, InverseWishartCurve, SketchCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.variant import Matrix, Repair, Variant, repaired


def tail(degrees: float, delta: float) -> float:
    """2√(2r·ln(4/δ)) + 2 ln(4/δ), the χ² tail in every theorem of the family."""
    log_term = math.log(4.0 / delta)
    return 2.0 * math.sqrt(2.0 * degrees * log_term) + 2.0 * log_term


def sketch_ridge(theorem: Literal["3.1", "B.1", "B.2"], guarantee: Guarantee, rows: int) -> float:
    """w² of a sketch of r rows.

    3.1: 4(√(2r·l) + l)/ε; B.1: 1 + (1 + ε/l)/ε·(2√(2r·l) + 2l); B.2: 8√(r·l), without ε; l = ln(4/δ).
    """
    epsilon, log_term = guarantee.epsilon, math.log(4.0 / guarantee.delta)
    if theorem == "3.1":
        return 2.0 * tail(rows, guarantee.delta) / epsilon
    if theorem == "B.1":
        return 1.0 + (1.0 + epsilon / log_term) / epsilon * tail(rows, guarantee.delta)
    return 8.0 * math.sqrt(rows * log_term)


def corollary_rows(guarantee: Guarantee, least_squared: float, *, corrected: bool) -> int:
    """r for a public σ_min² = w²: ⌈(εw²/(8l))²⌉ as printed in Cor. B.2, ⌈(εw²/8)²/l⌉ as its w² implies."""
    log_term = math.log(4.0 / guarantee.delta)
    base = (guarantee.epsilon * least_squared / 8.0) ** 2
    return math.ceil(base / (log_term if corrected else log_term**2))


def posterior_prior(theorem: Literal["5.1", "B.4"], guarantee: Guarantee, degrees: int) -> float:
    """ψ for ν degrees of freedom. 5.1: (2/ε)(2√(2ν·l) + 2l); B.4: half of it over 1 − ε/(2l), ε < 2l."""
    epsilon = guarantee.epsilon
    if theorem == "5.1":
        return 2.0 * tail(degrees, guarantee.delta) / epsilon
    most = 2.0 * math.log(4.0 / guarantee.delta)
    slack = 1.0 - epsilon / most
    if slack <= 0.0:
        raise MechanismError(
            "Theorem B.4 has no prior for so large an epsilon",
            got=f"epsilon = {epsilon:g}",
            limit=f"epsilon < 2 ln(4/delta) = {most:.4g}",
            remedy="Take Theorem 5.1 or a smaller epsilon",
        )
    return tail(degrees, guarantee.delta) / (epsilon * slack)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedSketch(Variant):
    """Algorithm 1: M ~ Wishart_d(G + w²I, r)/r with w² of Theorem 3.1, Theorem B.1 or Corollary B.2."""

    paper: ClassVar[str] = "Sheffet 2015"
    explanation: ClassVar[str] = (
        "the theorems hold with a ridge several times the least one; Corollary B.2 drops the 1/ε and fails "
        "for small ε"
    )

    rows: int
    theorem: Literal["3.1", "B.1", "B.2"] = "3.1"

    @property
    def name(self) -> str:
        """By theorem."""
        return f"sketch-{self.theorem}"

    @property
    def place(self) -> str:
        """By theorem."""
        return f"{'Corollary' if self.theorem == 'B.2' else 'Theorem'} {self.theorem}"

    @property
    def printed(self) -> str:
        """The ridge."""
        return f"w² = {self.ridge:.4g} for r = {self.rows}"

    @property
    def ridge(self) -> float:
        """w²."""
        return sketch_ridge(self.theorem, self.claimed, self.rows)

    def true_delta(self, epsilon: float) -> float:
        """The exact curve at t = 1/w²."""
        curve = SketchCurve(adjacency=self.adjacency, degrees=float(self.rows), ratio=1.0 / self.ridge)
        return curve.delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One matrix with mean G + w²I."""
        return wishart(with_ridge(gram, self.ridge), self.rows, entropy.generator()) / self.rows


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedWishart(Variant):
    """Algorithm 3: G + W_d(I, k), k = ⌊d + 2C₂ ln(4/δ)⌋; C₂ = 14/ε² (4.1) or the least that B.3 allows.

    B.3 asks for 2√C₂ ≤ ε(√C₂ − 1)², whose root is √C₂ = (1 + ε + √(1 + 2ε))/ε. `repair` "scaled" subtracts
    the mean k·I, or its safe part where the result would not be positive definite.
    """

    paper: ClassVar[str] = "Sheffet 2015"
    explanation: ClassVar[str] = (
        "the step to the last line of the proof needs ln(4/δ) ≥ 3, not δ < 1/e; k is many times the least one"
    )

    width: int
    theorem: Literal["4.1", "B.3"] = "4.1"
    repair: Repair = "none"

    @property
    def name(self) -> str:
        """By theorem and repair."""
        return f"wishart-{self.theorem}" if self.repair == "none" else f"wishart-{self.theorem}-{self.repair}"

    @property
    def place(self) -> str:
        """By theorem."""
        return f"Theorem {self.theorem}"

    @property
    def printed(self) -> str:
        """The degrees of freedom."""
        return f"k = {self.degrees} for d = {self.width}"

    @property
    def degrees(self) -> int:
        """k."""
        epsilon = self.claimed.epsilon
        root = math.sqrt(14.0) / epsilon
        if self.theorem == "B.3":
            root = (1.0 + epsilon + math.sqrt(1.0 + 2.0 * epsilon)) / epsilon
        return math.floor(self.width + 2.0 * root**2 * math.log(4.0 / self.claimed.delta))

    def true_delta(self, epsilon: float) -> float:
        """The exact curve at m = k − d + 1 and τ = 1; under replace-one certified from above."""
        return self._curve().delta(epsilon)

    def meets(self, epsilon: float, delta: float) -> bool:
        """By the curve, which certifies a level faster than it finds the least one."""
        return self._curve().within(epsilon, delta)

    def _curve(self) -> AdditiveWishartCurve:
        spare = float(self.degrees - self.width + 1)
        return AdditiveWishartCurve(adjacency=self.adjacency, degrees=spare, ratio=1.0)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One noisy matrix, its mean G + k·I unless repaired."""
        width = len(gram)
        noise = AdditiveWishart(scale=1.0, degrees=self.degrees)
        noisy = gram + noise.sample(width, entropy.generator())
        if self.repair == "none":
            return noisy
        safe = math.sqrt(self.degrees) - math.sqrt(width)
        safe -= math.sqrt(2.0 * math.log(4.0 / self.claimed.delta))
        return repaired(noisy - self.degrees * np.eye(width), self.repair, self.degrees - safe**2)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedInverseWishart(Variant):
    """Algorithm 4: Σ ~ InvWishart_d(G + ψI, ν), ν = n + d, with ψ of Theorem 5.1 or B.4.

    Draws are scaled by ν − d − 1, so that their mean is G + ψI; regressions do not see the scale.
    """

    paper: ClassVar[str] = "Sheffet 2015"
    explanation: ClassVar[str] = "both theorems hold with a prior several times the least one"

    degrees: int
    theorem: Literal["5.1", "B.4"] = "5.1"

    @property
    def name(self) -> str:
        """By theorem."""
        return f"inverse-wishart-{self.theorem}"

    @property
    def place(self) -> str:
        """By theorem."""
        return f"Theorem {self.theorem}"

    @property
    def printed(self) -> str:
        """The prior."""
        return f"ψ = {self.prior:.4g} for ν = {self.degrees}"

    @property
    def prior(self) -> float:
        """ψ."""
        return posterior_prior(self.theorem, self.claimed, self.degrees)

    def true_delta(self, epsilon: float) -> float:
        """The exact curve at t = 1/ψ, for a ν that is the same for both neighbours."""
        degrees = float(self.degrees)
        curve = InverseWishartCurve(adjacency=self.adjacency, degrees=degrees, ratio=1.0 / self.prior)
        return curve.delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One matrix with mean G + ψI."""
        return inverse_wishart(with_ridge(gram, self.prior), self.degrees, entropy.generator())


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedAdaptive(Variant):
    """Algorithms 2 and 5, reconstructed: a Laplace look at σ_min, then the draw with the rest of (ε, δ).

    The draw has ε_d = share·ε and δ/2, the look b = 1/(ε − ε_d); s = max(0, σ_min + Lap(b) − b ln(1/δ)) is
    too large with probability δ/2. The ridge is min(W, max(0, W + 1 − s)) with W of Theorem 3.1 (ψ of 5.1)
    or B.1 (B.4) at (ε_d, δ/2), so that σ_min and ridge of every neighbour make up W.
    """

    paper: ClassVar[str] = "Sheffet 2015"
    explanation: ClassVar[str] = (
        "reconstructed, because the body is missing; valid, and loose by the theorem it uses and by the split"
    )

    degrees: int
    """r or ν."""
    algorithm: Literal[2, 5] = 2
    appendix: bool = False
    """The constants of the appendix, B.1 or B.4, instead of 3.1 or 5.1."""
    share: float = 0.5
    """What part of ε the draw gets."""

    @property
    def name(self) -> str:
        """By algorithm."""
        stem = "sketch-adaptive-printed" if self.algorithm == 2 else "inverse-wishart-adaptive-printed"
        return f"{stem}-B" if self.appendix else stem

    @property
    def place(self) -> str:
        """By algorithm."""
        return f"Algorithm {self.algorithm}"

    @property
    def printed(self) -> str:
        """The ridge where the look finds nothing."""
        return f"ridge up to {self.largest_ridge:.4g} for {self.degrees} degrees"

    @property
    def of_the_draw(self) -> Guarantee:
        """(ε_d, δ/2)."""
        return Guarantee(self.share * self.claimed.epsilon, 0.5 * self.claimed.delta)

    @property
    def look_scale(self) -> float:
        """b."""
        return 1.0 / ((1.0 - self.share) * self.claimed.epsilon)

    @property
    def largest_ridge(self) -> float:
        """W."""
        if self.algorithm == 2:
            return sketch_ridge("B.1" if self.appendix else "3.1", self.of_the_draw, self.degrees)
        return posterior_prior("B.4" if self.appendix else "5.1", self.of_the_draw, self.degrees)

    def true_delta(self, epsilon: float) -> float:
        """An upper bound: δ/2 for a look that claims too much, and the draw's curve at ε less the look's."""
        left = epsilon - (1.0 - self.share) * self.claimed.epsilon
        if left < 0.0:
            return 1.0
        curve = SketchCurve(
            adjacency=self.adjacency, degrees=float(self.degrees), ratio=1.0 / self.largest_ridge
        )
        return min(1.0, 0.5 * self.claimed.delta + curve.delta(left))

    def lower_bound(self, gram: Matrix, generator: np.random.Generator) -> float:
        """The noisy look at σ_min, lowered so that it is too large with probability δ/2; may be negative."""
        look = float(np.linalg.eigvalsh(gram)[0]) + float(generator.laplace(0.0, self.look_scale))
        return look + self.look_scale * math.log(self.claimed.delta)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """The look, and one matrix with mean G + (the ridge it allows)·I, the ridge subtracted."""
        generator = entropy.generator()
        bound = max(0.0, self.lower_bound(gram, generator))
        ridge = min(self.largest_ridge, max(0.0, self.largest_ridge + 1.0 - bound))
        if self.algorithm == 2:
            drawn = wishart(with_ridge(gram, ridge), self.degrees, generator) / self.degrees
        else:
            drawn = inverse_wishart(with_ridge(gram, ridge), self.degrees, generator)
        return with_ridge(drawn, -ridge)

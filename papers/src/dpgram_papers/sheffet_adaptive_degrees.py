"""Sheffet 2015, Algorithms 2 and 5 with a *least* number of degrees: a large σ_min buys more of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, final

import numpy as np

from dpgram.core.noise import Entropy
from dpgram.noise.sampled import inverse_wishart, wishart, with_ridge
from dpgram_papers.sheffet import PrintedAdaptive
from dpgram_papers.variant import Matrix, Variant


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedAdaptiveDegrees(Variant):
    """A look at σ_min; ridge W + 1 − s while s < W + 1, and above it no ridge but more degrees.

    s, W(r), `appendix` and `share` as in `PrintedAdaptive`; r is the largest with W(r) ≤ s − 1. The text says
    only that r may be set from Theorem 3.1 where σ_min is large; the rest is reconstructed. The ridge stays
    in the answer, as in Algorithm 1.
    """

    paper: ClassVar[str] = "Sheffet 2015"
    explanation: ClassVar[str] = (
        "reconstructed, because the body is missing; valid, and loose by the theorem it uses and by the split"
    )

    least: int
    """r₀ or ν₀."""
    algorithm: Literal[2, 5] = 2
    appendix: bool = False
    share: float = 0.5

    @property
    def name(self) -> str:
        """By algorithm."""
        stem = "sketch-grown-printed" if self.algorithm == 2 else "inverse-wishart-grown-printed"
        return f"{stem}-B" if self.appendix else stem

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
        return self._with_degrees(self.least)

    def _with_degrees(self, degrees: int) -> PrintedAdaptive:
        return PrintedAdaptive(
            claimed=self.claimed,
            degrees=degrees,
            algorithm=self.algorithm,
            appendix=self.appendix,
            share=self.share,
        )

    def true_delta(self, epsilon: float) -> float:
        """That of the least degrees: more of them come only with the σ_min that Theorem 3.1 asks for."""
        return self._fixed.true_delta(epsilon)

    def plan(self, gram: Matrix, generator: np.random.Generator) -> tuple[float, int]:
        """The ridge and the degrees that a look at the matrix allows."""
        fixed = self._fixed
        bound, largest = fixed.lower_bound(gram, generator), fixed.largest_ridge
        if bound - 1.0 <= largest:
            return min(largest, largest + 1.0 - max(bound, 0.0)), self.least
        # W(r) = intercept + slope·√r in every theorem: two values of it give r.
        at_one, at_four = (self._with_degrees(r).largest_ridge for r in (1, 4))
        slope = at_four - at_one
        root = (bound - 1.0 - (at_one - slope)) / slope
        return 0.0, max(self.least, math.floor(root**2))

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """One matrix with mean G + ridge·I."""
        generator = entropy.generator()
        ridge, degrees = self.plan(gram, generator)
        if self.algorithm == 2:
            return wishart(with_ridge(gram, ridge), degrees, generator) / degrees
        return inverse_wishart(with_ridge(gram, ridge), degrees, generator)

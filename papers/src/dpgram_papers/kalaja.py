"""SSP and AdaSSP (Wang 2018) and the noise levels Kalaja 2020 puts in their place.

Statistics of |x| ≤ 1 and |y| ≤ 1; the target is the last column of the Gram matrix. All parts are Gaussian,
so the truth is one number: μ² = Σ (Δ_i/σ_i)².
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Literal, TypeAlias, final

import numpy as np

from dpgram.core.noise import Entropy
from dpgram.privacy.adjacency import AddRemove, Adjacency
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.guarantee import gdp_mu_at_most
from dpgram_papers.analyze_gauss import upper_triangle_noise
from dpgram_papers.variant import Matrix, Variant

FAILURE: Final = 0.05
"""ρ in the choice of λ."""
Constant: TypeAlias = Literal["wang", "wang-code", "kalaja", "analytic"]
_NOT_RELEASED: Final = 1e-300
"""The precision at which y² is released: none."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SufficientStatistics(Variant):
    """XᵀX + σN and Xᵀy + σn; AdaSSP spends a third on λ_min first and adds λ·I.

    `constant`: "wang" σ = √ln(6/δ)/(ε/3) (AdaSSP) or 2√ln(4/δ)/ε (SSP); "wang-code" the SSP of the published
    program: half of that, on every cell by itself, so that the matrix is not symmetric, and XᵀX + I in place
    of XᵀX; "kalaja" the classical √(2 ln(1.25/δ'))/ε' of each (ε', δ') share; "analytic" the least σ of equal
    shares of one joint release, which the thesis leaves to later work, for the adjacency it is given; the
    others are as printed whatever it is. μ is exact at one column under add/remove, where one row moves every
    statistic by the full sensitivity, and for SSP of two columns when a row is replaced; for AdaSSP it is
    then a bound.
    """

    paper: ClassVar[str] = "Wang 2018; Kalaja 2020"
    explanation: ClassVar[str] = (
        "AdaSSP is valid as one joint release, though its steps are no valid shares; SSP as coded is not: "
        "it spends about 1.6ε"
    )

    adjacency: Adjacency = AddRemove()
    algorithm: Literal["ssp", "adassp"] = "adassp"
    constant: Constant = "wang"
    symmetric: bool | None = None
    """Whether the noise of XᵀX is; None: as the constant has it."""

    @property
    def name(self) -> str:
        """By algorithm and constant."""
        return f"{self.algorithm}-{self.constant}"

    @property
    def place(self) -> str:
        """Kalaja's sections, which also quote Wang."""
        section = "§3.1" if self.algorithm == "ssp" else "Algorithm 2"
        return {
            "wang": section,
            "wang-code": "published program",
            "kalaja": "Algorithms 1 and 3",
            "analytic": "§5, future work",
        }[self.constant]

    @property
    def printed(self) -> str:
        """The noise multiplier."""
        return f"σ = {self.sigma:.4g} × sensitivity, {self.parts} parts"

    @property
    def parts(self) -> int:
        """How many statistics are released."""
        return 3 if self.algorithm == "adassp" else 2

    @property
    def sigma(self) -> float:
        """The noise multiplier: deviation over sensitivity, the same for every part."""
        epsilon, delta, parts = self.claimed.epsilon, self.claimed.delta, self.parts
        if self.constant == "analytic":
            return self.needed_sigma
        if self.constant == "kalaja":
            return math.sqrt(2.0 * math.log(1.25 * parts / delta)) * parts / epsilon
        multiplier = parts * math.sqrt(math.log(2.0 * parts / delta)) / epsilon
        return 0.5 * multiplier if self.constant == "wang-code" else multiplier

    @property
    def joint_mu(self) -> float:
        """√(Σ (Δ_i/σ)²): XᵀX and Xᵀy move together, and λ_min by at most 1 under both relations."""
        return self._joint_mu(self.sigma)

    def _joint_mu(self, sigma: float) -> float:
        precision = sigma**-2
        moments = self.adjacency.stacked_mu(1.0, 1.0, (precision, precision, _NOT_RELEASED))
        return math.sqrt(moments**2 + (precision if self.algorithm == "adassp" else 0.0))

    @property
    def needed_sigma(self) -> float:
        """The least multiplier of equal joint shares: the joint μ at σ = 1, over the μ of the claim.

        At σ = 1 the squares of the parts add up to 2 (SSP) and 3 (AdaSSP) when a row is added or removed, to
        9/2 and 11/2 when one is replaced.
        """
        mu = gdp_mu_at_most(self.claimed.epsilon, self.claimed.delta)
        return self._joint_mu(1.0) / mu * (1.0 + 2.0**-40)  # floats round: rather a little more

    @property
    def step_is_valid(self) -> bool:
        """Whether one part alone is within its share (ε/parts, δ/parts), as composition needs."""
        share = self.claimed.epsilon / self.parts
        return GaussianCurve(1.0 / self.sigma).delta(share) <= self.claimed.delta / self.parts

    def true_delta(self, epsilon: float) -> float:
        """The Gaussian curve of all parts together."""
        return GaussianCurve(self.joint_mu).delta(epsilon)

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """XᵀX + λI and Xᵀy, both noisy, as one matrix; the cell of y², which is not released, is nan."""
        width, generator = len(gram) - 1, entropy.generator()
        noisy = np.full_like(gram, np.nan)
        symmetric = self.constant != "wang-code" if self.symmetric is None else self.symmetric
        if symmetric:
            noise = upper_triangle_noise(width, self.sigma, generator)
        else:
            noise = self.sigma * generator.standard_normal((width, width))
        noisy[:-1, :-1] = gram[:-1, :-1] + noise
        if self.constant == "wang-code":
            noisy[:-1, :-1] += np.eye(width)
        noisy[:-1, -1] = noisy[-1, :-1] = gram[:-1, -1] + self.sigma * generator.standard_normal(width)
        if self.algorithm == "adassp":
            noisy[:-1, :-1] += self._damping(gram[:-1, :-1], generator) * np.eye(width)
        return noisy

    def _damping(self, moments: Matrix, generator: np.random.Generator) -> float:
        """λ = max(0, σ√(d ln(2d²/ρ)) − λ̃_min), λ̃_min released with σ and lowered by σ² in shares of ε."""
        width = len(moments)
        least = float(np.linalg.eigvalsh(moments)[0]) + self.sigma * float(generator.standard_normal())
        lowered = max(0.0, least - self.sigma**2 * self.claimed.epsilon / self.parts)
        return max(0.0, self.sigma * math.sqrt(width * math.log(2.0 * width**2 / FAILURE)) - lowered)

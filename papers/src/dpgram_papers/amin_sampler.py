"""Amin et al. 2019, Algorithm 2: the sampler of a direction with the printed acceptance rule, another law."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np

from dpgram.core.noise import Entropy
from dpgram.errors import MechanismError
from dpgram.privacy.curves.quadrature import gauss_legendre
from dpgram.privacy.sampling.bingham import envelope_parameter
from dpgram_papers.variant import Matrix, Variant

CANDIDATES_AT_MOST: Final = 200_000
_AT_ONCE: Final = 1000
_ANGLES: Final = 256
_LEAST_WIDTH: Final = 8


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedSampler(Variant):
    """One direction: candidates of N(0, Ω⁻¹), accepted with probability e^{−s}/(M·(uᵀΩu)^{d/2}), s = uᵀAu.

    The right rule multiplies by the power. What comes out has the density ∝ e^{−s}(1 + 2s/b)^{−d} instead of
    e^{−s}. Read kindly elsewhere: b solves Σ 1/(b + 2λ_i) = 1 (the printed 0 has no solution) and A starts
    from λ_max (from λ_min it would be negative).

    The truth shown is a *lower* bound, the δ(ε) of one pair of neighbours to three digits: C has two equal
    top eigenvalues, far above the others, and a row is added along one of them. With c = ε/4 the log-density
    then changes by up to c·cos²ψ·(1 + 2d/(b + 2s)), s of order 1. Below 8 columns this pair shows nothing.
    """

    paper: ClassVar[str] = "Amin et al. 2019"
    explanation: ClassVar[str] = (
        "the printed acceptance rule divides by (uᵀΩu)^{d/2} instead of multiplying: another law, which is "
        "not ε-DP and is hardly ever accepted; two well-known libraries ship it"
    )

    width: int

    def __post_init__(self) -> None:
        if self.width < _LEAST_WIDTH:
            raise MechanismError(
                "the pair of neighbours that refutes this sampler needs more columns",
                got=self.width,
                limit=f"width ≥ {_LEAST_WIDTH}",
            )

    @property
    def name(self) -> str:
        """One name."""
        return "sampler-printed"

    @property
    def place(self) -> str:
        """Where."""
        return "Algorithm 2"

    @property
    def printed(self) -> str:
        """The rule."""
        return f"accept with e^(−uᵀAu)/(M·(uᵀΩu)^(d/2)), d = {self.width}"

    def true_delta(self, epsilon: float) -> float:
        """δ(ε) of the pair, in the limit of a large gap: two integrals, over y = 2s and the angle ψ."""
        c, width = 0.25 * self.claimed.epsilon, self.width
        log_y, weights = gauss_legendre(*np.linspace(math.log(1e-4), math.log(1e3), 41), order=8)
        y = np.exp(log_y)[:, None]
        cosine_squared = np.cos((np.arange(_ANGLES) + 0.5) * (0.5 * math.pi / _ANGLES)) ** 2
        measure = 0.5 * (width - 2) * log_y[:, None] + np.log(weights)[:, None]

        def law(top_gap: float, b: float) -> Matrix:
            s = top_gap * cosine_squared + 0.5 * y
            logs = measure - s - width * np.log1p(2.0 * s / b)
            density = np.exp(logs - logs.max())
            return np.asarray(density / density.sum(), dtype=np.float64)

        # Σ 1/(b + 2λ) = 1 with λ = (0, 0), and (0, c) once the row is there; the far ones do not count.
        without, with_row = law(0.0, 2.0), law(c, 1.0 - c + math.sqrt(1.0 + c * c))
        there = np.maximum(without - math.exp(epsilon) * with_row, 0.0).sum()
        back = np.maximum(with_row - math.exp(epsilon) * without, 0.0).sum()
        return float(max(there, back))

    def draw(self, gram: Matrix, entropy: Entropy) -> Matrix:
        """u uᵀ for one direction, or an error after 200,000 candidates."""
        generator, width = entropy.generator(), len(gram)
        exponent = 0.25 * self.claimed.epsilon * gram
        spectrum, vectors = np.linalg.eigh(exponent)
        levels = spectrum[-1] - spectrum
        b = envelope_parameter(levels)
        precisions = 1.0 + 2.0 * levels / b
        log_bound = 0.5 * (width * math.log(width / b) - (width - b))
        for _ in range(CANDIDATES_AT_MOST // _AT_ONCE):
            points = generator.standard_normal((_AT_ONCE, width)) / np.sqrt(precisions)
            squares = points**2 / np.sum(points**2, axis=1, keepdims=True)
            log_accept = -squares @ levels - 0.5 * width * np.log(squares @ precisions) - log_bound
            accepted = np.flatnonzero(np.log(generator.random(_AT_ONCE)) < log_accept)
            if len(accepted):
                u = vectors @ (points[accepted[0]] / np.linalg.norm(points[accepted[0]]))
                return np.asarray(np.outer(u, u), dtype=np.float64)
        raise MechanismError(
            "the printed sampler accepted nothing",
            got=f"{CANDIDATES_AT_MOST} candidates",
            remedy="Use dpgram.privacy.sampling.bingham, whose acceptance rule is the right one.",
        )

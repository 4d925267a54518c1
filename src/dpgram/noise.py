"""The law of the noise inside a release, in lattice units: what an analyst may know and must use.

A release is G + N with N symmetric, E N = c·I, Var N_ii = s², Var N_ij = s²/2. The laws differ in their tails
and in their operator norm, so a ridge parameter or an interval must ask the law itself. Both sides of the
wall share this module; it needs numpy and msgspec only.
"""

from __future__ import annotations

import math
from typing import TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt

Matrix: TypeAlias = npt.NDArray[np.float64]


@final
class SymmetricGaussian(msgspec.Struct, frozen=True, tag="symmetric-gaussian", forbid_unknown_fields=True):
    """N_ii ~ N(0, σ²), N_ij ~ N(0, σ²/2), independent: the density depends on |N|_F alone."""

    sigma: float

    @property
    def diagonal_sd(self) -> float:
        """σ."""
        return self.sigma

    @property
    def offdiagonal_sd(self) -> float:
        """σ/√2."""
        return self.sigma / math.sqrt(2.0)

    @property
    def mean_diagonal(self) -> float:
        """E N = 0."""
        return 0.0

    def expected_norm(self, width: int) -> float:
        """E‖N‖ of the noise on `width` columns."""
        if width == 1:
            return self.sigma * math.sqrt(2.0 / math.pi)
        return self.sigma * math.sqrt(2.0 * width) * _edge_factor(width)

    def sample(self, width: int, generator: np.random.Generator) -> Matrix:
        """σ(Z + Zᵀ)/2 with Z of independent standard normals; in floats, for simulation only."""
        z = generator.standard_normal((width, width))
        noise: Matrix = (0.5 * self.sigma) * (z + z.T)
        return noise

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one."""
        return gram + self.sample(len(gram), generator)


@final
class MatrixLaplace(msgspec.Struct, frozen=True, tag="matrix-laplace", forbid_unknown_fields=True):
    """N = W₁ − W₂ with W₁, W₂ independent Wishart_d(I/(2θ), d+1); Var N_ii = (d+1)/θ².

    The noise on k of the d columns is the difference of two Wishart_k(I/(2θ), d+1).
    """

    theta: float
    width: int

    @property
    def diagonal_sd(self) -> float:
        """√(d+1)/θ."""
        return math.sqrt(self.width + 1.0) / self.theta

    @property
    def offdiagonal_sd(self) -> float:
        """√((d+1)/2)/θ."""
        return math.sqrt(0.5 * (self.width + 1.0)) / self.theta

    @property
    def mean_diagonal(self) -> float:
        """E N = 0."""
        return 0.0

    def expected_norm(self, width: int) -> float:
        """E‖N‖ of the noise on `width` columns."""
        c = (self.width + 1.0) / width
        u = (math.sqrt(c * c + 4.0 * c) - c - 1.0) / (2.0 * c - 1.0)
        z = math.sqrt(u)
        edge = 2.0 * c * z / (1.0 - u) + 1.0 / z
        return edge * width / (2.0 * self.theta) * _edge_factor(width)

    def sample(self, width: int, generator: np.random.Generator) -> Matrix:
        """(Z₁ᵀZ₁ − Z₂ᵀZ₂)/(2θ), Z₁ and Z₂ of d+1 rows of standard normals; in floats, for simulation only."""
        z = generator.standard_normal((2, self.width + 1, width))
        noise: Matrix = (z[0].T @ z[0] - z[1].T @ z[1]) * (0.5 / self.theta)
        return noise

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one."""
        return gram + self.sample(len(gram), generator)


NoiseLaw: TypeAlias = SymmetricGaussian | MatrixLaplace
"""Every law a release may carry; the tag in the file says which."""


def _edge_factor(width: int) -> float:
    """E‖N‖ over the edge of the limiting spectrum: finite width keeps the largest eigenvalue inside."""
    inside: float = width ** (-2.0 / 3.0) * (0.2525 + 0.233 * width ** (-1.0 / 3.0))
    return 1.0 - inside

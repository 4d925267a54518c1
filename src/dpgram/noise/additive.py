"""Laws of noise that is added: the release is G + N, and the law of N does not depend on G.

E N = c·I. The laws differ in their shape, their tails and their operator norm, so a ridge parameter or an
interval must ask the law itself.
"""

from __future__ import annotations

import math
from typing import Annotated, TypeAlias, final

import msgspec
import numpy as np
import numpy.typing as npt
from msgspec import Meta

Matrix: TypeAlias = npt.NDArray[np.float64]
Vector: TypeAlias = npt.NDArray[np.float64]
Scale: TypeAlias = Annotated[float, Meta(ge=1e-100, le=1e100)]
"""The size of noise as a file may give it: its square, and its product with a cell, are still floats."""
Ridge: TypeAlias = Annotated[float, Meta(ge=0.0, le=1e100)]
Whole: TypeAlias = Annotated[int, Meta(ge=1, le=1 << 53)]
"""A number of rows, columns or degrees of freedom as a file may give it."""


@final
class SymmetricGaussian(msgspec.Struct, frozen=True, tag="symmetric-gaussian", forbid_unknown_fields=True):
    """N_ii ~ N(0, σ²), N_ij ~ N(0, σ²/2), independent: the density depends on |N|_F alone."""

    sigma: Scale

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
        """E‖N‖ of the noise on `width` columns: the semicircle ends at σ√(2k), finite k earlier."""
        if width == 1:
            return self.sigma * math.sqrt(2.0 / math.pi)
        return self.sigma * math.sqrt(2.0 * width) * _finite_width_factor(width, 0.0)

    def sample(self, width: int, generator: np.random.Generator) -> Matrix:
        """σ(Z + Zᵀ)/2 with Z of independent standard normals; in floats, for simulation only."""
        z = generator.standard_normal((width, width))
        noise: Matrix = (0.5 * self.sigma) * (z + z.T)
        return noise

    def cell_variances(self, values: Vector) -> Matrix:
        """Var N_ij in any orthonormal basis, that of a Gram matrix with these eigenvalues as well."""
        return invariant_variances(len(values), self.offdiagonal_sd**2)

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one."""
        return gram + self.sample(len(gram), generator)


@final
class MatrixLaplace(msgspec.Struct, frozen=True, tag="matrix-laplace", forbid_unknown_fields=True):
    """N = W₁ − W₂ with W₁, W₂ independent Wishart_d(I/(2θ), d+1); Var N_ii = (d+1)/θ².

    The noise on k of the d columns is the difference of two Wishart_k(I/(2θ), d+1).
    """

    theta: Scale
    width: Whole

    @property
    def diagonal_sd(self) -> float:
        """√(d+1)/θ. Proof: proofs/matrix-laplace.md#matrix-laplace-moments."""
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
        """E‖N‖ of the noise on `width` columns.

        With c = (d+1)/k, N is close to k/(2θ) times the free difference of two Marchenko–Pastur laws, whose
        R-transform is 2cz/(1 − z²); its edge is where the derivative of 2cz/(1 − z²) + 1/z vanishes.
        """
        shape = 0.5 * (self.width + 1.0)
        if width == 1:
            # |difference of two Gamma(ν/2) variables|, exactly
            log_ratio = math.lgamma(shape + 0.5) - math.lgamma(shape)
            return 2.0 * math.exp(log_ratio) / (math.sqrt(math.pi) * self.theta)
        c = (self.width + 1.0) / width
        z_squared = (math.sqrt(c * c + 4.0 * c) - c - 1.0) / (2.0 * c - 1.0)
        z = math.sqrt(z_squared)
        edge = 2.0 * c * z / (1.0 - z_squared) + 1.0 / z
        return edge * 0.5 * width / self.theta * _finite_width_factor(width, 1.0 / c)

    def sample(self, width: int, generator: np.random.Generator) -> Matrix:
        """(Z₁ᵀZ₁ − Z₂ᵀZ₂)/(2θ), Z₁ and Z₂ of d+1 rows of standard normals; in floats, for simulation only."""
        z = generator.standard_normal((2, self.width + 1, width))
        noise: Matrix = (z[0].T @ z[0] - z[1].T @ z[1]) * (0.5 / self.theta)
        return noise

    def cell_variances(self, values: Vector) -> Matrix:
        """Var N_ij in any orthonormal basis, that of a Gram matrix with these eigenvalues as well."""
        return invariant_variances(len(values), self.offdiagonal_sd**2)

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one."""
        return gram + self.sample(len(gram), generator)


@final
class EntrywiseLaplace(msgspec.Struct, frozen=True, tag="entrywise-laplace", forbid_unknown_fields=True):
    """N_ij Laplace of scale b, N_ii of scale b_d, independent."""

    scale: Scale
    diagonal_scale: Scale

    @property
    def diagonal_sd(self) -> float:
        """√2·b_d."""
        return self.diagonal_scale * math.sqrt(2.0)

    @property
    def offdiagonal_sd(self) -> float:
        """√2·b."""
        return self.scale * math.sqrt(2.0)

    @property
    def mean_diagonal(self) -> float:
        """E N = 0."""
        return 0.0

    def expected_norm(self, width: int) -> float:
        """E‖N‖ on `width` columns, by the semicircle law with the off-diagonal variance 2b²."""
        if width == 1:
            return self.diagonal_scale
        return 2.0 * self.offdiagonal_sd * math.sqrt(width) * _finite_width_factor(width, 0.0)

    def sample(self, width: int, generator: np.random.Generator) -> Matrix:
        """Continuous Laplace cells; in floats, for simulation only."""
        lower = np.tril(generator.laplace(0.0, self.scale, (width, width)), -1)
        return lower + lower.T + np.diag(generator.laplace(0.0, self.diagonal_scale, width))

    def cell_variances(self, values: Vector) -> Matrix:
        """Var of the cells in a basis of its own, averaged over all bases: 2o² + 3e/(d+2) and o² + e/(d+2).

        o² = Var N_ij and e = Var N_ii − 2o². The law itself prefers the axes.
        """
        width = len(values)
        excess = (self.diagonal_sd**2 - 2.0 * self.offdiagonal_sd**2) / (width + 2.0)
        variances = invariant_variances(width, self.offdiagonal_sd**2 + excess)
        variances.flat[:: width + 1] += excess
        return variances

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one."""
        return gram + self.sample(len(gram), generator)


@final
class AdditiveWishart(msgspec.Struct, frozen=True, tag="additive-wishart", forbid_unknown_fields=True):
    """N ~ Wishart_d(s²I, k): positive semidefinite, E N = k·s²·I, Var N_ii = 2k·s⁴, Var N_ij = k·s⁴."""

    scale: Scale
    """s²."""
    degrees: Whole
    """k."""

    @property
    def diagonal_sd(self) -> float:
        """s²√(2k)."""
        return self.scale * math.sqrt(2.0 * self.degrees)

    @property
    def offdiagonal_sd(self) -> float:
        """s²√k."""
        return self.scale * math.sqrt(self.degrees)

    @property
    def mean_diagonal(self) -> float:
        """k·s²."""
        return self.degrees * self.scale

    def expected_norm(self, width: int) -> float:
        """E‖N − E N‖ on `width` columns: the farther edge of the Marchenko–Pastur law, s²(d + 2√(kd))."""
        edge = self.scale * (width + 2.0 * math.sqrt(self.degrees * width))
        return (
            self.diagonal_sd * math.sqrt(2.0 / math.pi)
            if width == 1
            else edge * _finite_width_factor(width, 0.0)
        )

    def sample(self, width: int, generator: np.random.Generator) -> Matrix:
        """s² TTᵀ by Bartlett's decomposition."""
        factor = bartlett_factor(width, self.degrees, generator)
        return np.asarray(self.scale * (factor @ factor.T), dtype=np.float64)

    def cell_variances(self, values: Vector) -> Matrix:
        """Var N_ij in any orthonormal basis, that of a Gram matrix with these eigenvalues as well."""
        return invariant_variances(len(values), self.offdiagonal_sd**2)

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one."""
        return gram + self.sample(len(gram), generator)


def invariant_variances(width: int, variance: float) -> Matrix:
    """v off the diagonal and 2v on it."""
    variances = np.full((width, width), variance)
    variances.flat[:: width + 1] = 2.0 * variance
    return variances


def bartlett_factor(width: int, degrees: int, generator: np.random.Generator) -> Matrix:
    """T lower trapezoidal with TTᵀ ~ Wishart_d(I, degrees): √χ² on the diagonal, normals below it."""
    columns = min(width, degrees)
    factor = np.tril(generator.standard_normal((width, columns)), -1)
    squares = generator.chisquare(degrees - np.arange(columns, dtype=np.float64))
    factor[np.arange(columns), np.arange(columns)] = np.sqrt(squares)
    return factor


_SHORTFALL = ((0.2198, 0.1450, -0.0628), (0.3911, 0.7027, -0.1434), (-0.1474, -0.5788, 0.0843))
"""Fitted by benchmarks/noise_norms.py to simulations for k = 2…500; within 0.3% of every one of them."""


def _finite_width_factor(width: int, inverse_ratio: float) -> float:
    """E‖N‖ over the limiting edge: 1 − k^(−2/3)·Σ b_ij k^(−i/3) c^(−j), with 1/c = k/(degrees of freedom)."""
    root: float = width ** (-1.0 / 3.0)
    shortfall = 0.0
    for i, row in enumerate(_SHORTFALL):
        for j, coefficient in enumerate(row):
            shortfall += coefficient * root**i * inverse_ratio**j
    return 1.0 - root * root * shortfall

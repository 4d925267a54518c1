"""Laws of releases that are drawn around the exact matrix instead of having noise added to it.

How far such a release is off depends on the matrix itself, so no one number describes it. `redraw` does, and
`stand_in` gives the symmetric Gaussian law with the same mean-square error at a given matrix, which is what a
fit needs. In lattice units, as everywhere; a row's trace is at most `ROW_NORM_SQUARED`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, final

import msgspec
import numpy as np
import numpy.typing as npt

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.noise.additive import (
    Matrix,
    Ridge,
    Scale,
    SymmetricGaussian,
    Vector,
    Whole,
    bartlett_factor,
)
from dpgram.noise.shrinkage import shrunken

REDRAWS = 24
"""Redraws behind `stand_in`: its σ is then good to about 5% for ten columns, and better for more."""


class SampledLawBase(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A release drawn around the exact matrix. Every law below says how, in `redraw`."""

    @property
    def mean_diagonal(self) -> float:
        """c in E M = G + c·I, to be subtracted before use."""
        return 0.0

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """A published matrix as it might have come out, had `gram` been the exact one."""
        raise TypeError(f"{type(self).__name__} cannot redraw a {gram.shape} matrix with {generator}")

    def cell_variances(self, values: Vector) -> Matrix:
        """E(M − c·I − G)²_ij in the eigenbasis of a G with these eigenvalues, to first order in the error."""
        raise TypeError(f"{type(self).__name__} forecasts no error for {len(values)} eigenvalues")

    @final
    def stand_in(self, published: Matrix, generator: np.random.Generator) -> StandIn:
        """The stand-in with the same E|M − c·I − G|²_F, at the G that `published` tells of."""
        width = len(published)
        shift = self.mean_diagonal * np.eye(width)
        values, vectors = np.linalg.eigh(published - shift)
        centre = (vectors * np.maximum(values, 0.0)) @ vectors.T
        errors = [np.sum((self.redraw(centre, generator) - shift - centre) ** 2) for _ in range(REDRAWS)]
        sigma = math.sqrt(2.0 * float(np.mean(errors)) / (width * (width + 1)))
        return StandIn(law=self, additive=SymmetricGaussian(sigma=sigma))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StandIn:
    """A sampled law seen from one matrix: sized as a symmetric Gaussian, redrawn as it really is."""

    law: SampledLawBase
    additive: SymmetricGaussian

    @property
    def diagonal_sd(self) -> float:
        """σ of the stand-in."""
        return self.additive.diagonal_sd

    @property
    def offdiagonal_sd(self) -> float:
        """σ/√2 of the stand-in."""
        return self.additive.offdiagonal_sd

    @property
    def mean_diagonal(self) -> float:
        """c of the sampled law."""
        return self.law.mean_diagonal

    def expected_norm(self, width: int) -> float:
        """E‖N‖ of the stand-in."""
        return self.additive.expected_norm(width)

    def sample(self, width: int, generator: np.random.Generator) -> Matrix:
        """Noise of the stand-in."""
        return self.additive.sample(width, generator)

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """The sampled law itself; a matrix with negative eigenvalues is no Gram matrix and loses them."""
        values, vectors = np.linalg.eigh(gram)
        return self.law.redraw((vectors * np.maximum(values, 0.0)) @ vectors.T, generator)


@final
class WishartSketch(SampledLawBase, frozen=True, tag="wishart-sketch", forbid_unknown_fields=True):
    """M ~ Wishart_d(G + w²I, r)/r: r random combinations of the rows and of w times the unit vectors."""

    ridge: Ridge
    """w²."""
    rows: Whole
    """r."""

    @property
    def mean_diagonal(self) -> float:
        """w²."""
        return self.ridge

    def cell_variances(self, values: Vector) -> Matrix:
        """h_i·h_j/r and 2h_i²/r with h = λ + w²: exact."""
        return _of_products(np.asarray(values) + self.ridge, 1.0 / self.rows)

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """By Bartlett's decomposition, in O(d³) for every r."""
        return wishart(with_ridge(gram, self.ridge), self.rows, generator) / self.rows


@final
class InverseWishart(SampledLawBase, frozen=True, tag="inverse-wishart", forbid_unknown_fields=True):
    """M = (ν − d − 1)·Σ, Σ ~ InvWishart_d(G + ψI, ν): a draw of the posterior, with mean G + ψI."""

    prior: Ridge
    """ψ."""
    degrees: Whole
    """ν."""

    @property
    def mean_diagonal(self) -> float:
        """ψ."""
        return self.prior

    def cell_variances(self, values: Vector) -> Matrix:
        """h_i·h_j/(ν − d) and twice that on the diagonal, nearly, with h = λ + ψ."""
        return _of_products(np.asarray(values) + self.prior, 1.0 / max(self.degrees - len(values), 1))

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """The inverse of a Wishart draw around the inverse, without inverting the matrix itself."""
        return inverse_wishart(with_ridge(gram, self.prior), self.degrees, generator)


@final
class NoisyInverse(SampledLawBase, frozen=True, tag="noisy-inverse", forbid_unknown_fields=True):
    """(G + L·I)⁻¹ + N with N symmetric Gaussian of scale σ: the inverse is what was published."""

    ridge: Scale
    """L."""
    sigma: Scale

    def cell_variances(self, values: Vector) -> Matrix:
        """(σ²/2)h_i²h_j², twice that on the diagonal, h = λ + L: d(H⁻¹) = −H⁻¹dH H⁻¹; at most h_i·h_j."""
        shifted = np.asarray(values) + self.ridge
        first_order = _of_products(shifted**2, 0.5 * self.sigma**2)
        return np.minimum(first_order, np.outer(shifted, shifted))

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """The Gram matrix that the noisy inverse stands for: its inverse less L·I."""
        noisy = np.linalg.inv(with_ridge(gram, self.ridge))
        noisy = noisy + SymmetricGaussian(sigma=self.sigma).sample(len(gram), generator)
        return gram_of_inverse(noisy, self.ridge, self.sigma)


@final
class EigenvectorSampling(
    SampledLawBase, frozen=True, tag="eigenvector-sampling", forbid_unknown_fields=True
):
    """Σ λ̂_i θ_i θ_iᵀ: Laplace noise on eigenvalues, directions ∝ exp(c_i uᵀGu); see curves/spectral.py."""

    value_scale: Scale
    """The scale of the eigenvalues' Laplace noise, in units of one row's trace."""
    total: Scale
    """‖c‖ of the inverse temperatures, in the norm of the accounting."""
    rank: Whole
    split: Literal["forecast", "adaptive", "uniform"]
    """The rule by which the directions shared ‖c‖; "adaptive" in releases up to version 0.1."""
    norm: Literal[1, 2]

    def cell_variances(self, values: Vector) -> Matrix:
        """Of tilted directions, with c_i as for exact eigenvalues (the mechanism sees noisy ones)."""
        from dpgram.privacy.curves.spectral import tilt_variances

        order = np.argsort(values)[::-1]
        largest = np.maximum(np.asarray(values)[order], 0.0) / ROW_NORM_SQUARED
        inverse_temperatures = self._inverse_temperatures(largest[: self.rank], len(largest))
        found = tilt_variances(largest, inverse_temperatures, self.value_scale, self.rank)
        return _unsorted(found * float(ROW_NORM_SQUARED) ** 2, order)

    def denoised(self, published: Matrix) -> Matrix:
        """Σ ν_i θ_i θ_iᵀ, ν_i the share of G that direction θ_i is expected to hold, given λ̂.

        λ̂_i is about the i-th eigenvalue, but a tilted θ_i holds less than that of G, and a later one more.
        """
        from dpgram.privacy.curves.spectral import alignments

        rising, vectors = np.linalg.eigh(published)
        noisy = rising[::-1][: self.rank] / ROW_NORM_SQUARED
        shrunk = shrunken(noisy[::-1], 2.0 * self.value_scale**2)[::-1]
        spectrum = np.append(shrunk, np.zeros(len(rising) - self.rank))
        held = alignments(spectrum, self._inverse_temperatures(noisy, len(rising)))[::-1] * ROW_NORM_SQUARED
        return np.asarray((vectors * held) @ vectors.T)

    def _inverse_temperatures(self, values: Vector, width: int) -> Vector:
        """c_1 … c_k for these eigenvalues, largest first, in units of one row's trace."""
        from dpgram.privacy.curves.spectral import adaptive_floor, shared_inverse_temperatures

        floor = adaptive_floor(self.value_scale, width)
        return shared_inverse_temperatures(
            values, self.total, floor, split=self.split, norm=self.norm, width=width
        )

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """The mechanism itself, with simulated noise."""
        from dpgram.privacy.curves.spectral import sample_eigenvectors

        drawn = sample_eigenvectors(
            gram / ROW_NORM_SQUARED,
            value_scale=self.value_scale,
            total=self.total,
            rank=self.rank,
            split=self.split,
            norm=self.norm,
            value_noise=lambda scale, count: generator.laplace(0.0, scale, count),
            generator=generator,
        )
        return drawn * ROW_NORM_SQUARED


@final
class Deflation(SampledLawBase, frozen=True, tag="deflation", forbid_unknown_fields=True):
    """Σ λ̂_i θ_i θ_iᵀ with each λ̂_iθ_iθ_iᵀ subtracted before the next is drawn; see curves/spectral.py."""

    value_scale: Scale
    temperature: Scale
    """c, in fact the inverse temperature; the name is that of the file."""
    rank: Whole

    def cell_variances(self, values: Vector) -> Matrix:
        """Of tilted directions, all at one inverse temperature, each found again by the later ones."""
        from dpgram.privacy.curves.spectral import deflation_variances

        order = np.argsort(values)[::-1]
        largest = np.maximum(np.asarray(values)[order], 0.0) / ROW_NORM_SQUARED
        found = deflation_variances(largest, self.temperature, self.value_scale, self.rank)
        return _unsorted(found * float(ROW_NORM_SQUARED) ** 2, order)

    def redraw(self, gram: Matrix, generator: np.random.Generator) -> Matrix:
        """The mechanism itself, with simulated noise."""
        from dpgram.privacy.curves.spectral import sample_deflation

        drawn = sample_deflation(
            gram / ROW_NORM_SQUARED,
            value_scale=self.value_scale,
            inverse_temperature=self.temperature,
            rank=self.rank,
            value_noise=lambda scale, count: generator.laplace(0.0, scale, count),
            generator=generator,
        )
        return drawn * ROW_NORM_SQUARED


def _of_products(sizes: Vector, factor: float) -> Matrix:
    """factor·s_i·s_j off the diagonal, twice that on it."""
    variances = factor * np.outer(sizes, sizes)
    variances.flat[:: len(sizes) + 1] *= 2.0
    return variances


def _unsorted(sorted_cells: Matrix, order: npt.NDArray[np.intp]) -> Matrix:
    """Undo the sorting of eigenvalues."""
    cells = np.empty_like(sorted_cells)
    cells[np.ix_(order, order)] = sorted_cells
    return cells


def with_ridge(gram: Matrix, ridge: float) -> Matrix:
    """G + ridge·I."""
    shifted = np.array(gram, dtype=np.float64)
    shifted.flat[:: len(gram) + 1] += ridge
    return shifted


def wishart(scale: Matrix, degrees: int, generator: np.random.Generator) -> Matrix:
    """One draw of Wishart_d(scale, degrees): L T Tᵀ Lᵀ with scale = L Lᵀ."""
    root = _root(scale) @ bartlett_factor(len(scale), degrees, generator)
    return np.asarray(root @ root.T, dtype=np.float64)


def inverse_wishart(scale: Matrix, degrees: int, generator: np.random.Generator) -> Matrix:
    """(ν − d − 1) times one draw of InvWishart_d(scale, ν), ν ≥ d + 2: L (TTᵀ)⁻¹ Lᵀ for scale = L Lᵀ."""
    from scipy.linalg import solve_triangular

    width = len(scale)
    factor = bartlett_factor(width, degrees, generator)
    root = solve_triangular(factor, _root(scale).T, lower=True)
    return np.asarray((degrees - width - 1.0) * (root.T @ root), dtype=np.float64)


def _root(scale: Matrix) -> Matrix:
    """L with scale = L Lᵀ: triangular, or by eigenvectors where one is lost in the rounding of the others.

    Which root it is does not matter: T Tᵀ has the same law in every basis.
    """
    try:
        root = np.linalg.cholesky(scale)
    except np.linalg.LinAlgError:
        values, vectors = np.linalg.eigh(scale)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
    return np.asarray(root, dtype=np.float64)


def gram_of_inverse(noisy_inverse: Matrix, ridge: float, sigma: float) -> Matrix:
    """The Gram matrix a noisy (G + L·I)⁻¹ stands for; eigenvalues are first brought back into [σ, 1/L].

    An eigenvalue below σ says no more than "large": how large, the noise hides.
    """
    values, vectors = np.linalg.eigh(0.5 * (noisy_inverse + noisy_inverse.T))
    held = np.clip(values, min(sigma, 1.0 / ridge), 1.0 / ridge)
    gram = (vectors * (1.0 / held - ridge)) @ vectors.T
    return np.asarray(0.5 * (gram + gram.T), dtype=np.float64)

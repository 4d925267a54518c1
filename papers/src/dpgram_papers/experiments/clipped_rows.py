"""Gram matrices of n clipped Gaussian rows: row by row, or from the law of the sum where n is huge.

A row a longer than B counts as a·B/|a|, so the Gram matrix is Σ s·aaᵀ with s = min(1, B²/|a|²): no Wishart
matrix, as clipped rows are not Gaussian. For huge n it is drawn as

    n·M + √n·Z,   M = E s·aaᵀ exact (one- and two-dimensional integrals),
    Z = Σ_i g_i (s_i·a_i a_iᵀ − M)/√m,   g_i ~ N(0, 1), m fresh rows a_i:

mean and covariance are those of the sum whatever m is, and the summands are bounded by B², so that from 2¹⁷
rows on the two laws differ by less than the experiments can see (tests compare them).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline
from scipy.stats import chi2

from dpgram.privacy.curves.quadrature import gauss_legendre

Array: TypeAlias = npt.NDArray[np.float64]

CHUNK: Final = 1 << 15
"""Rows in memory at once; also m, the fresh rows behind a draw of the limit law."""


@dataclass(frozen=True)
class ClippedRows(ABC):
    """A law of rows, the bound B, and Gram matrices of many of them in units of B²."""

    bound: float

    @abstractmethod
    def rows(self, count: int, generator: np.random.Generator) -> Array:
        """Rows before clipping."""

    @abstractmethod
    def moment(self) -> Array:
        """M = E s·aaᵀ."""

    @final
    def clipped(self, count: int, generator: np.random.Generator) -> Array:
        """Rows after clipping."""
        rows = self.rows(count, generator)
        lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        return np.asarray(rows * np.minimum(1.0, self.bound / lengths)[:, None])

    @final
    def gram(self, count: int, generator: np.random.Generator, *, direct: int) -> Array:
        """Row by row up to `direct` rows, from the limit law above."""
        exact = self.row_by_row if count <= direct else self.in_the_limit
        return exact(count, generator) / self.bound**2

    @final
    def row_by_row(self, count: int, generator: np.random.Generator) -> Array:
        """Σ s·aaᵀ."""
        left = count
        total: Array = np.zeros((1, 1))
        while left:
            rows = self.clipped(min(left, CHUNK), generator)
            total = total + rows.T @ rows
            left -= len(rows)
        return np.asarray(total)

    @final
    def in_the_limit(self, count: int, generator: np.random.Generator) -> Array:
        """n·M + √n·Z."""
        rows, mean = self.clipped(CHUNK, generator), self.moment()
        weights = generator.standard_normal(CHUNK)
        deviation = (rows * weights[:, None]).T @ rows - weights.sum() * mean
        return np.asarray(count * mean + math.sqrt(count / CHUNK) * deviation)


@final
@dataclass(frozen=True)
class OneTarget(ClippedRows):
    """a = [1, x, y], x ~ N(0, I_p), y = c + βᵀx + N(0, σ²)."""

    beta: tuple[float, ...]
    intercept: float
    sigma: float

    def rows(self, count: int, generator: np.random.Generator) -> Array:
        """[1, x, y]."""
        x = generator.standard_normal((count, len(self.beta)))
        y = self.intercept + x @ np.array(self.beta) + self.sigma * generator.standard_normal(count)
        return np.column_stack([np.ones(count), x, y])

    def moment(self) -> Array:
        """From integrals over t = βᵀx/|β|, the error of y, and the length of what is left of x."""
        return _one_target_moment(self)


@final
@dataclass(frozen=True)
class ManyTargets(ClippedRows):
    """a = [x, y₁ … y_q], x ~ N(0, I_p), y = Bᵀx + N(0, σ²I); the columns of B in `betas`."""

    betas: tuple[tuple[float, ...], ...]
    sigma: float

    def rows(self, count: int, generator: np.random.Generator) -> Array:
        """[x, y]."""
        slopes = np.array(self.betas)
        x = generator.standard_normal((count, slopes.shape[1]))
        y = x @ slopes.T + self.sigma * generator.standard_normal((count, len(slopes)))
        return np.column_stack([x, y])

    def moment(self) -> Array:
        """In the eigenbasis of the covariance, where signs are symmetric: M = V diag(λ_k·E sζ_k²)Vᵀ."""
        return _many_targets_moment(self)


def _mean_weight(degrees: int, bound: float, others: Array) -> Array:
    """E min(1, B²/(r² + g)) for r² ~ χ²_degrees, at every g in `others`."""
    law = chi2(degrees)
    edge = np.maximum(bound**2 - others, 0.0)
    nodes, weights = gauss_legendre(*np.linspace(0.0, 200.0, 41), order=12)
    squares = edge[:, None] + nodes
    tail = (law.pdf(squares) * (bound**2 / (squares + others[:, None]))) @ weights
    return np.asarray(law.cdf(edge) + tail)


@lru_cache
def _one_target_moment(design: OneTarget) -> Array:
    beta = np.array(design.beta)
    length, width = float(np.linalg.norm(beta)), len(beta)
    nodes, weights = np.polynomial.hermite_e.hermegauss(100)
    t, e = np.meshgrid(nodes, nodes, indexing="ij")
    mass = np.outer(weights, weights) / (2.0 * math.pi)
    y = design.intercept + length * t + design.sigma * e
    others = 1.0 + t**2 + y**2
    grid = np.geomspace(1.0, float(others.max()) + 1.0, 4000)
    along = CubicSpline(grid, _mean_weight(width - 1, design.bound, grid))(others) * mass
    across = CubicSpline(grid, _mean_weight(width + 1, design.bound, grid))(others) * mass
    small = np.stack([np.ones_like(t), t, y])
    core = np.einsum("iab,jab,ab->ij", small, small, along)
    direction = beta / length
    moment = np.zeros((width + 2, width + 2))
    # Isotropic across β, and t in the place of the component along it.
    moment[1:-1, 1:-1] = across.sum() * (np.eye(width) - np.outer(direction, direction))
    basis = np.zeros((width + 2, 3))
    basis[0, 0], basis[1:-1, 1], basis[-1, 2] = 1.0, direction, 1.0
    return np.asarray(moment + basis @ core @ basis.T)


@lru_cache
def _many_targets_moment(design: ManyTargets) -> Array:
    slopes = np.array(design.betas)
    count, width = slopes.shape
    covariance = np.block([[np.eye(width), slopes.T], [slopes, slopes @ slopes.T]])
    covariance[width:, width:] += design.sigma**2 * np.eye(count)
    values, vectors = np.linalg.eigh(covariance)
    # The density of q = Σ λ_jζ_j² by Fourier inversion; ζ_k² as a weight turns its χ²₁ into a χ²₃.
    length = 40.0 * float(values.sum())
    points = 1 << 15
    step = length / points
    u = 2.0 * math.pi * np.arange(points // 2 + 1) / length
    factors = 1.0 - 2.0j * np.outer(values, u)
    logs = -0.5 * np.log(factors)
    q = step * np.arange(points)
    kept = np.minimum(1.0, design.bound**2 / np.maximum(q, step))
    means = []
    for k in range(len(values)):
        transform = np.exp(logs.sum(axis=0) + 2.0 * logs[k])
        density = np.fft.irfft(np.conj(transform), points) / step
        means.append(float(density @ kept) * step)
    return np.asarray((vectors * (values * np.array(means))) @ vectors.T)

"""The estimators that were tried for `regress(method="auto")`, each from the noisy A, b and yᵀy alone.

All take a batch of noisy problems and return one θ for each. `noise-aware` is the library's own; the others
stay here with their results, losers included. Notation as in dpgram/analysis/noise_aware.py: w and u are the
eigenvalues of A and the coordinates of b in its eigenbasis, α the denoised eigenvalues, o and σ the deviation
of the noise off and on the diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp

from dpgram.analysis.noise_aware import FLOOR, Noise, noise_aware, smooth_positive

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Noisy:
    """A batch: A (n × d × d), b (n × d), yy (n), the law of their noise, the length of the target vector."""

    A: Array
    b: Array
    yy: Array
    noise: Noise
    size: float = 1.0

    @property
    def width(self) -> int:
        """d."""
        return int(self.b.shape[1])

    @property
    def edge(self) -> float:
        """σ√(2d), the end of the semicircle."""
        return self.noise.diagonal_sd * math.sqrt(2.0 * self.width)

    @cached_property
    def eigen(self) -> tuple[Array, Array, Array]:
        """w, the eigenvectors, u."""
        w, vectors = np.linalg.eigh(self.A)
        return w, vectors, np.einsum("nij,ni->nj", vectors, self.b)

    def back(self, coordinates: Array) -> Array:
        """From the eigenbasis to the columns."""
        return np.asarray(np.einsum("nij,nj->ni", self.eigen[1], coordinates))

    @cached_property
    def alpha(self) -> Array:
        """The eigenvalues without the noise, as the library estimates them."""
        w = self.eigen[0]
        gaps = w[:, :, None] - w[:, None, :]
        off, sigma = self.noise.offdiagonal_sd, self.noise.diagonal_sd
        x = w - 2.0 * off**2 * (gaps / (gaps**2 + sigma**2)).sum(axis=2)
        return smooth_positive(x, FLOOR * self.noise.expected_norm(self.width) ** 2 / 4.0)


Candidate = Callable[[Noisy], Array]

GRID = 2.0 ** np.arange(-10.0, 3.0)
STUDENT = -2.0 * np.log1p((np.log(GRID / 2.0) / 0.7) ** 2)
"""A density of log m with three degrees of freedom about m = 2."""

SCALES = np.geomspace(1e-4, 300.0, 60)
"""Grid of prior variances for the filter."""


def ridge(multiple: float) -> Candidate:
    """u/(max(w, 0) + λ), λ = multiple·σ√(2d)."""

    def estimate(problem: Noisy) -> Array:
        w, _, u = problem.eigen
        return problem.back(u / (np.maximum(w, 0.0) + multiple * problem.edge))

    return estimate


def least_risk_ridge(problem: Noisy) -> Array:
    """Ridge whose λ minimises θᵀÂθ − 2b̂ᵀθ + σ²(tr M |θ|² + θᵀMθ) + 2o² tr M, M = (Â + λI)⁻¹."""
    w, _, u = problem.eigen
    kept = np.maximum(w, 0.0)
    best, out = np.full(len(w), np.inf), np.zeros_like(u)
    for multiple in np.geomspace(0.05, 10.0, 40):
        inverse = 1.0 / (kept + multiple * problem.edge)
        theta = inverse * u
        trace = inverse.sum(axis=1)
        risk = (kept * theta**2 - 2.0 * u * theta).sum(axis=1) + 2.0 * problem.noise.offdiagonal_sd**2 * trace
        risk += problem.noise.diagonal_sd**2 * (
            trace * (theta**2).sum(axis=1) + (inverse * theta**2).sum(axis=1)
        )
        better = risk < best
        best[better], out[better] = risk[better], theta[better]
    return problem.back(out)


def likeliest_filter(problem: Noisy) -> Array:
    """τ²wu/(τ²w² + v), v = o²(|y|² + dτ²), τ by marginal likelihood: errors in the statistics."""
    w, _, u = problem.eigen
    best, out = np.full(len(w), -np.inf), np.zeros_like(u)
    for p in SCALES:
        variance = p * w**2 + problem.noise.offdiagonal_sd**2 * (problem.size**2 + problem.width * p)
        likelihood = -0.5 * (u**2 / variance + np.log(variance)).sum(axis=1)
        better = likelihood > best
        best[better], out[better] = likelihood[better], (p * w * u / variance)[better]
    return problem.back(out)


def barrier(problem: Noisy) -> Array:
    """u/½(w + √(w² + 4a)), a = (σ√(2d))²: a ridge that lets go of large eigenvalues."""
    w, _, u = problem.eigen
    return problem.back(u / smooth_positive(w, problem.edge**2))


def joint_projection(problem: Noisy) -> Array:
    """The whole matrix of [x, y] projected on the positive semidefinite ones, then half the fixed ridge."""
    count, width = problem.b.shape
    whole = np.empty((count, width + 1, width + 1))
    whole[:, :width, :width] = problem.A
    whole[:, width, :width] = whole[:, :width, width] = problem.b / problem.size
    whole[:, width, width] = problem.yy / problem.size**2
    values, vectors = np.linalg.eigh(whole)
    whole = (vectors * np.maximum(values, 0.0)[:, None, :]) @ vectors.transpose(0, 2, 1)
    penalised = whole[:, :width, :width] + 0.5 * problem.edge * np.eye(width)
    solution = np.linalg.solve(penalised, whole[:, :width, width, None])
    return np.asarray(problem.size * solution[..., 0])


def posterior(
    explained: Array, log_prior: Array, *, power: float = 0.0, temper: float = 1.0, tails: Array | None = None
) -> Candidate:
    """Σ_m π_m p α u/(p α² + v) with θ_i ~ N(0, p_i), p_i ∝ α_i^(−power).

    `power` 0 is the isotropic prior and 1 the g-prior; `temper` raises the likelihood of m to that power;
    `tails` replaces each N(0, p_i) by the mixture of N(0, t·p_i) over its entries t.
    """
    factors = np.ones(1) if tails is None else tails

    def estimate(problem: Noisy) -> Array:
        u, alpha = problem.eigen[2], problem.alpha
        c = smooth_positive(problem.yy, 0.25 * (problem.noise.diagonal_sd * problem.size**2) ** 2)
        shape = alpha**-power / (alpha ** (1.0 - power)).sum(axis=1, keepdims=True)
        evidences, means = [], []
        for m, log_weight in zip(explained, log_prior, strict=True):
            p = m * c[:, None] * shape
            v = problem.noise.offdiagonal_sd**2 * (problem.size**2 + p.sum(axis=1, keepdims=True) + p)
            scaled = factors[:, None, None] * p
            variance = scaled * alpha**2 + v
            density = -0.5 * (u**2 / variance + np.log(variance)) - math.log(len(factors))
            total = logsumexp(density, axis=0)
            means.append((np.exp(density - total) * scaled * alpha * u / variance).sum(axis=0))
            evidences.append(temper * total.sum(axis=1) + log_weight)
        log_weights = np.array(evidences)
        weights = np.exp(log_weights - logsumexp(log_weights, axis=0))
        return problem.back(np.einsum("gn,gni->ni", weights, np.array(means)))

    return estimate


def library(problem: Noisy) -> Array:
    """The frozen winner, as `regress` calls it."""
    batch = zip(problem.A, problem.b, problem.yy, strict=True)
    fits = [noise_aware(A, b, float(yy), noise=problem.noise, target_norm=problem.size) for A, b, yy in batch]
    return np.array([fit.theta for fit in fits])


_TWO, _FLAT = np.array([2.0]), np.zeros(1)

CANDIDATES: Mapping[str, Candidate] = {
    "ridge, λ = σ√(2d)": ridge(1.0),
    "ridge, half of it": ridge(0.5),
    "ridge, least estimated risk": least_risk_ridge,
    "filter, likeliest τ": likeliest_filter,
    "barrier": barrier,
    "joint projection": joint_projection,
    "posterior, m = 2 fixed": posterior(_TWO, _FLAT),
    "posterior, flat prior on log m": posterior(GRID, np.zeros(len(GRID))),
    "posterior, Student prior on log m": posterior(GRID, STUDENT),
    "the same, tempered by half": posterior(GRID, STUDENT, temper=0.5),
    "the same, g-prior": posterior(GRID, STUDENT, power=1.0),
    "the same, heavy tails": posterior(GRID, STUDENT, tails=4.0 ** np.arange(-2.0, 3.0)),
    "noise-aware (the default)": library,
}

"""Utility theorems of the papers with constants that can be computed, and how often printed ones fail.

What the papers prove up to a constant, or state with a slip, is proved here again with every constant named,
so that it can be held beside what is drawn. G = XᵀX has p columns, ν is the probability of failure and t(ν)
stands for √(2 ln ν⁻¹). The one fact used throughout is Davidson and Szarek's: a k × p matrix of independent
N(0, 1) has singular values between √k − √p − t and √k + √p + t, each side but for e^{−t²/2}.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from scipy.special import gammaincc, ndtr

from dpgram.core.noise import simulation
from dpgram.privacy.curves.search import least
from dpgram_papers.variant import Matrix

DRAWS: Final = 2_000


def _reach(failure: float) -> float:
    """t(ν)."""
    return math.sqrt(2.0 * math.log(1.0 / failure))


def gaussian_bound(gram: Matrix, length: float, sigma: float, failure: float) -> float:
    """Sheffet C.1 for Analyze Gauss: |β̃ − β̂| ≤ (η|β̂| + σ(√p + t)/σ_min)/(1 − η), η = ‖N‖/σ_min.

    β̃ − β̂ = (G + N)⁻¹(n − Nβ̂). Cells on and above the diagonal are N(0, σ²): E‖N‖ ≤ 2σ√p, and the two outer
    eigenvalues move by at most √2·σ times the length of what is drawn, so ‖N‖ ≤ σ(2√p + √2·t(ν/4)) but for
    ν/2. |n| ≤ σ(√p + t(ν/2)) but for the other half. Infinite where η ≥ 1: nothing is promised there.
    """
    width, smallest = len(gram), float(np.linalg.eigvalsh(gram)[0])
    eta = sigma * (2.0 * math.sqrt(width) + math.sqrt(2.0) * _reach(failure / 4.0)) / smallest
    if eta >= 1.0:
        return math.inf
    vector = sigma * (math.sqrt(width) + _reach(failure / 2.0)) / smallest
    return (eta * length + vector) / (1.0 - eta)


def wishart_bound(gram: Matrix, length: float, degrees: int, failure: float) -> float:
    """Sheffet C.3 (4.2), mended, for W ~ Wishart(I, k): |β̃ − β̂| ≤ |β̂|/C + (√k + t)(√p + t)/σ_min.

    C = σ_min/(√k + √p + t)², t = t(ν/4). β̃ − β̂ = (G + N)⁻¹(n − Nβ̂), and N is positive semidefinite, so
    ‖(G + N)⁻¹‖ ≤ 1/σ_min; ‖N‖ ≤ σ_min/C but for ν/4. n = Rᵀr with r independent of R: given r it is normal
    with deviation |r| ≤ √k + t, but for ν/4, and then |n| ≤ |r|(√p + t) but for ν/4.
    """
    width, smallest, reach = len(gram), float(np.linalg.eigvalsh(gram)[0]), _reach(failure / 4.0)
    matrix = (math.sqrt(degrees) + math.sqrt(width) + reach) ** 2
    return (matrix * length + (math.sqrt(degrees) + reach) * (math.sqrt(width) + reach)) / smallest


def printed_wishart_bound(gram: Matrix, length: float, degrees: int, failure: float) -> float:
    """Theorem C.3 as printed: |β̂|/(C − 1) + (C − 2)/((C − 1)σ_min)·min{2√(2kp ln(4p/ν)), (√k + √p + t)²}."""
    width, smallest = len(gram), float(np.linalg.eigvalsh(gram)[0])
    matrix = (math.sqrt(degrees) + math.sqrt(width) + _reach(failure / 4.0)) ** 2
    ratio = smallest / matrix
    vector = 2.0 * math.sqrt(2.0 * degrees * width * math.log(4.0 * width / failure))
    return length / (ratio - 1.0) + (ratio - 2.0) / ((ratio - 1.0) * smallest) * min(vector, matrix)


def corollary_step(width: int, failure: float) -> float:
    """By how much the last step of C.1's proof fails for C.2 (η = ½): (√p + √(2 ln(2/ν)))/(√p ln(1/ν)).

    It must be at most 1. C.2 holds all the same, for every p ≥ 1 and ν < 1/e. With L = σ√p ln(1/ν), β̃ − β̂ is
    (XᵀX)⁻¹(n − Nβ̃); where ‖N‖ ≤ CL, σ_min(XᵀX) ≥ 2ρL − CL ≥ 3ρL/2, so that |β̃ − β̂| is at most
    (2C/3ρ)|β̃| + 2|n|/(3ρL), and |n| ≤ 3L/2 but for `corollary_tail`, which is below ν/2.
    """
    root = math.sqrt(width)
    return (root + _reach(failure / 2.0)) / (root * math.log(1.0 / failure))


def corollary_tail(width: int, failure: float) -> float:
    """P(|n| > (3/2)σ√p ln(1/ν)) of p independent N(0, σ²)."""
    return float(gammaincc(0.5 * width, 0.5 * width * (1.5 * math.log(1.0 / failure)) ** 2))


def sketch_bound(ridged: Matrix, residual: float, rows: int, failure: float) -> float:
    """Sheffet 3.2 with its constant: |β̃ᴿ − βᴿ| ≤ η√(f/σ_min), η = (√p + t)/(√r − √p − t), t = t(ν/2).

    f is the least *squared* residual, so its root belongs here (f is printed). In an orthonormal basis of the
    columns the difference is (RU)⁺Re, Re normal with deviation √f and independent of RU.
    """
    width, reach = len(ridged), _reach(failure / 2.0)
    room = math.sqrt(rows) - math.sqrt(width) - reach
    if room <= 0.0:
        return math.inf
    smallest = float(np.linalg.eigvalsh(ridged)[0])
    return (math.sqrt(width) + reach) / room * math.sqrt(residual / smallest)


def eigenvector_bound(
    values: Sequence[float], shares: Sequence[float], first: float, failure: float
) -> float:
    """Amin's Theorem 2 with constants: |Ĉ − C|_F ≤ √(2Σλ_iτ_i) + τ₀√d.

    Lemmas 6 and 8: τ₀ = (2/ε₀) ln(2d/β) holds for all eigenvalues but for β/2; direction i, drawn in
    d − i + 1 dimensions, loses at most the least τ_i with 2e^{−τε_i/8}(8λ₁/τ)^{d−i} ≤ β/(2d).
    """
    width, top = len(values), max(values)
    part = failure / (2.0 * width)
    lost = 0.0
    for place, (value, share) in enumerate(zip(values, shares, strict=True)):
        free = width - place - 1
        tau = _least_loss(share, top, free, part) if free else 0.0
        lost += 2.0 * value * min(tau, value)  # a direction cannot lose more than there is
    return math.sqrt(lost) + eigenvalue_reach(width, first, failure) * math.sqrt(width)


def eigenvalue_reach(width: int, first: float, failure: float) -> float:
    """τ₀ = (2/ε₀) ln(2d/β): no noise of d eigenvalues is larger, but for β/2."""
    return 2.0 / first * math.log(2.0 * width / failure)


def even_share_eigenvalue(width: int, epsilon: float, part: float, failure: float) -> float:
    """Amin's Corollary 2 with constants: from which λ₁ on the error with even shares is at most ζλ₁.

    The least λ₁ at which `eigenvector_bound` of d eigenvalues λ₁, ε₀ = ε/2 and ε_i = ε/2d, is ζλ₁.
    """
    shares = [0.5 * epsilon / width] * width

    def small(top: float) -> bool:
        return eigenvector_bound([top] * width, shares, 0.5 * epsilon, failure) <= part * top

    return least(small, tolerance=1e-4)


def printed_even_share_eigenvalue(width: int, epsilon: float, part: float) -> float:
    """2d³/(εζ²)·ln(d/(εζ)), from where on Corollary 2 has O(ζλ₁), with a constant that is not stated."""
    return 2.0 * width**3 / (epsilon * part**2) * math.log(width / (epsilon * part))


def _least_loss(share: float, top: float, free: int, failure: float) -> float:
    def small(tau: float) -> bool:
        return math.log(2.0 / failure) - tau * share / 8.0 + free * math.log(8.0 * top / tau) <= 0.0

    return least(small, tolerance=1e-4)


def matrix_laplace_error(width: int, theta: float) -> float:
    """√E|N|²_F of N = (W₁ − W₂)/(2θ), W of d + 1 degrees: √(d/2)·(d + 1)/θ, of order d^{3/2}/ε."""
    return math.sqrt(0.5 * width) * (width + 1) / theta


# How often printed statements fail, drawn with fixed seeds.


def failures_of_wishart_bound(width: int, degrees: int, ratio: float, failure: float) -> float:
    """How often C.3 as printed fails for y = 0 and G = C(√k + √p + t)²·I."""
    size = ratio * (math.sqrt(degrees) + math.sqrt(width) + _reach(failure / 4.0)) ** 2
    bound = printed_wishart_bound(size * np.eye(width), 0.0, degrees, failure)

    def fails(generator: np.random.Generator) -> bool:
        rows = generator.standard_normal((degrees, width + 1))
        moments = rows.T @ rows
        found = np.linalg.solve(moments[:-1, :-1] + size * np.eye(width), moments[:-1, -1])
        return bool(np.linalg.norm(found) > bound)

    return _part(fails)


def failures_of_corollary(width: int, failure: float, ratio: float) -> float:
    """How often C.2 fails for y = 0 and XᵀX = ratio·4CL·I, σ = 1, C the quantile of ‖N‖/L at 1 − ν/2."""
    unit, generator = math.sqrt(width) * math.log(1.0 / failure), simulation(1508)
    noise = generator.standard_normal((DRAWS, width, width + 1))
    norms = np.linalg.norm(noise[:, :, :-1], 2, axis=(1, 2))
    constant = max(1.0, float(np.quantile(norms, 1.0 - 0.5 * failure)) / unit)
    noisy = ratio * 4.0 * constant * unit * np.eye(width) + noise[:, :, :-1]
    found = np.linalg.norm(np.linalg.solve(noisy, noise[:, :, -1:])[:, :, 0], axis=1)
    rho = np.linalg.svd(noisy, compute_uv=False)[:, -1] / (2.0 * unit)
    return float(np.mean((rho >= 2.0 * constant) & (found > 2.0 * constant / rho * found + 1.0 / rho)))


def failures_of_wishart_norm(width: int, degrees: int, failure: float) -> tuple[float, float]:
    """How often ‖mI − X‖ and ‖(mI)⁻¹ − X⁻¹‖ of X ~ Wishart(I, m) pass what Lemma A.3 allows, at α = m."""
    root, shift = math.sqrt(degrees), math.sqrt(width) + _reach(failure / 2.0)
    plain = abs(degrees - (root - shift) ** 2)
    inverse = abs(1.0 / degrees - (root + shift) ** -2)

    def values(generator: np.random.Generator) -> Matrix:
        rows = generator.standard_normal((degrees, width))
        return np.asarray(np.linalg.eigvalsh(rows.T @ rows))

    def too_far(generator: np.random.Generator) -> bool:
        return bool(np.abs(values(generator) - degrees).max() > plain)

    def inverse_too_far(generator: np.random.Generator) -> bool:
        return bool(np.abs(1.0 / values(generator) - 1.0 / degrees).max() > inverse)

    return _part(too_far), _part(inverse_too_far)


def _part(event: Callable[[np.random.Generator], bool]) -> float:
    generator = simulation(1507)
    return float(np.mean([event(generator) for _ in range(DRAWS)]))


def gaussian_tail(failure: float) -> float:
    """P(z > √ln(1/ν)), which Sheffet's §2 puts below ν."""
    return float(ndtr(-math.sqrt(math.log(1.0 / failure))))


def exponential_mechanism_of_many(outcomes: int, decay: float) -> tuple[float, float, float]:
    """One outcome 2τ better than all others, which are alike; `decay` is ετ/(2Δ): Amin's Lemma 4.

    P(ŷ ∉ G_2τ) as it is, e^{−ετ/2Δ}·μ(G_τ) as printed, and e^{−ετ/2Δ}/μ(G_τ).
    """
    others = outcomes - 1
    return others / (others + math.exp(2.0 * decay)), math.exp(-decay) / outcomes, math.exp(-decay) * outcomes

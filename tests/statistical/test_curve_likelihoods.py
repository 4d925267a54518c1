"""Curves against the mechanism's own likelihood ratio, drawn in full dimension.

δ(ε) = E_P (1 − e^{ε − L})₊ with L = ln p/q. Each estimate is compared with the curve at five standard errors
(α < 6·10⁻⁷ a comparison, about 60 comparisons), with fixed seeds; curves a few per cent off must be rejected.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne
from dpgram.privacy.curves.base import ConcentratedCurve, GaussianCurve, PureCurve

Floats = npt.NDArray[np.float64]
DRAWS = 400_000
STANDARD_ERRORS = 5.0


def estimate(losses: Floats, epsilon: float) -> tuple[float, float]:
    """(δ̂, its standard error) from draws of the loss under P."""
    excess = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
    return float(excess.mean()), float(excess.std() / math.sqrt(len(excess)))


def agrees(losses: Floats, epsilon: float, delta: float) -> bool:
    found, error = estimate(losses, epsilon)
    return abs(found - delta) <= STANDARD_ERRORS * error


def symmetric_gaussian_losses(here: Floats, there: Floats, sigma: float, seed: int) -> Floats:
    """ln p/q of G + E at draws from G = here: a sum over the cells of the lower triangle."""
    rng = np.random.default_rng(seed)
    width = len(here)
    lower = np.tril_indices(width)
    scale = np.where(lower[0] == lower[1], sigma, sigma / math.sqrt(2))
    shift = (there - here)[lower]
    noise = rng.standard_normal((DRAWS, len(scale))) * scale
    return ((noise - shift) ** 2 - noise**2) @ (0.5 / scale**2)


@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()], ids=lambda r: r.name)
@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("sigma", [0.7, 2.5])
def test_gaussian(relation: Adjacency, width: int, sigma: float) -> None:
    rng = np.random.default_rng(17 * width)
    frame = np.linalg.qr(rng.standard_normal((width, width)))[0]
    row, other = frame[0], frame[-1]
    base = rng.standard_normal((3, width))
    here = base.T @ base + np.outer(row, row)
    replaced = relation == ReplaceOne() and width > 1
    there = base.T @ base + (np.outer(other, other) if replaced else 0.0)
    sensitivity = relation.gram_frobenius(1.0) if replaced else 1.0
    mu = sensitivity / sigma
    forth = symmetric_gaussian_losses(here, there, sigma, seed=1)
    back = symmetric_gaussian_losses(there, here, sigma, seed=2)
    for epsilon in (0.0, 0.3 * mu, mu):
        for losses, delta in zip((forth, back), GaussianCurve(mu).directions(epsilon), strict=True):
            assert agrees(losses, epsilon, delta)
            assert not agrees(losses, epsilon, GaussianCurve(0.95 * mu).delta(epsilon))
            assert not agrees(losses, epsilon, GaussianCurve(1.05 * mu).delta(epsilon))


def test_analyze_gauss_noise_is_dominated() -> None:
    """With variance σ² on every cell of the triangle the worst row is an axis, where μ is the same 1/σ."""
    rng = np.random.default_rng(3)
    shift = np.array([1.0, 0.0, 0.0])
    noise = rng.standard_normal((DRAWS, 3))
    losses = 0.5 * ((noise - shift) ** 2 - noise**2).sum(axis=1)
    assert agrees(losses, 0.5, GaussianCurve(1.0).delta(0.5))


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_randomised_response_attains_the_pure_curve(limit: float) -> None:
    rng = np.random.default_rng(5)
    truthful = rng.uniform(size=DRAWS) < 1 / (1 + math.exp(-limit))
    losses = np.where(truthful, limit, -limit)
    for fraction in (0.0, 0.4, 0.8):
        epsilon = fraction * limit
        assert agrees(losses, epsilon, PureCurve(limit).delta(epsilon))
        assert not agrees(losses, epsilon, PureCurve(0.97 * limit).delta(epsilon))
        assert not agrees(losses, epsilon, PureCurve(1.03 * limit).delta(epsilon))


@pytest.mark.parametrize("limit", [0.5, 2.0])
def test_matrix_laplace_of_width_one_is_within_the_pure_curve(limit: float) -> None:
    """W₁ − W₂ with two degrees of freedom is Laplace(1/θ): its loss is bounded and below the worst case."""
    rng = np.random.default_rng(7)
    noise = (rng.chisquare(2, DRAWS) - rng.chisquare(2, DRAWS)) / (2 * limit)
    losses = limit * (np.abs(noise - 1.0) - np.abs(noise))
    assert np.abs(losses).max() <= limit * (1 + 1e-12)
    for fraction in (0.0, 0.4, 0.8):
        found, error = estimate(losses, fraction * limit)
        assert found - STANDARD_ERRORS * error <= PureCurve(limit).delta(fraction * limit)
    # Power: the noise of a smaller limit would be caught.
    assert np.abs(losses).max() > 0.95 * limit


def circle_losses(weight: float, other: float, reach: float, seed: int) -> Floats:
    """Exponential mechanism on the circle, u ∝ exp(c·uᵀCu) with C and C' = C + e₁e₁ᵀ, on a fine grid."""
    grid = (np.arange(40_000) + 0.5) * math.pi / 40_000
    utility = np.cos(grid) ** 2
    log_p, log_q = reach * weight * utility, reach * other * utility
    p = np.exp(log_p - log_p.max())
    log_p -= math.log(np.exp(log_p).sum())
    log_q -= math.log(np.exp(log_q).sum())
    rng = np.random.default_rng(seed)
    picks = rng.choice(len(grid), size=DRAWS, p=p / p.sum())
    return np.asarray((log_p - log_q)[picks])


@pytest.mark.parametrize("reach", [0.6, 2.0])
def test_exponential_mechanism_on_the_circle_has_the_range_and_the_curve(reach: float) -> None:
    forth = circle_losses(1.0, 0.0, reach, seed=11)
    back = circle_losses(0.0, 1.0, reach, seed=12)
    for losses in (forth, back):
        assert np.ptp(losses) <= reach * (1 + 1e-9)
        assert np.ptp(losses) >= 0.99 * reach
        for fraction in (0.0, 0.2, 0.4):
            found, error = estimate(losses, fraction * reach)
            assert found - STANDARD_ERRORS * error <= PureCurve(reach).delta(fraction * reach)
            assert found - STANDARD_ERRORS * error <= ConcentratedCurve(reach**2 / 8).delta(fraction * reach)
        # Power: the curve of a quarter of that range would be broken.
        found, error = estimate(losses, 0.0)
        assert found - STANDARD_ERRORS * error > ConcentratedCurve(reach**2 / 128).delta(0.0)


def test_repeated_draws_are_within_the_sum_of_their_prices() -> None:
    reach, steps = 0.4, 5
    losses = sum(circle_losses(1.0, 0.0, reach, seed=20 + step) for step in range(steps))
    for epsilon in (0.0, 0.2, 0.5):
        found, error = estimate(np.asarray(losses), epsilon)
        assert found - STANDARD_ERRORS * error <= ConcentratedCurve(steps * reach**2 / 8).delta(epsilon)
        # Power: as if only one of them had been paid for, at a quarter of its range.
        if epsilon < 0.5:
            assert found - STANDARD_ERRORS * error > ConcentratedCurve(reach**2 / 128).delta(epsilon)

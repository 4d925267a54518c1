"""The default regression: exact without noise, harmless where the noise wins, and true to its symmetries."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.analysis.noise_aware import Noise, denoised, noise_aware, smooth_positive
from dpgram.noise import EntrywiseLaplace, MatrixLaplace, SymmetricGaussian

SEEDS = st.integers(0, 2**32 - 1)
WIDTHS = st.integers(1, 12)


@dataclass(frozen=True)
class Problem:
    A: np.ndarray
    b: np.ndarray
    yy: float

    def noisy(self, noise: SymmetricGaussian | MatrixLaplace, generator: np.random.Generator) -> Problem:
        width = len(self.b)
        drawn = noise.sample(width + 1, generator)
        return Problem(
            self.A + drawn[:width, :width], self.b + drawn[:width, width], self.yy + drawn[width, width]
        )


def problem(seed: int, width: int, rows: int = 500, explained: float = 0.5) -> Problem:
    """Columns of unequal size, and a target of which a known part is explained."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((rows, width)) * np.geomspace(1.0, 0.2, width)
    signal = x @ generator.standard_normal(width)
    error = generator.standard_normal(rows)
    y = math.sqrt(explained) * signal / np.std(signal) + math.sqrt(1.0 - explained) * error
    return Problem(x.T @ x, x.T @ y, float(y @ y))


def theta(p: Problem, noise: Noise, target_norm: float = 1.0) -> np.ndarray:
    return noise_aware(p.A, p.b, p.yy, noise=noise, target_norm=target_norm).theta


def excess(p: Problem, estimate: np.ndarray) -> float:
    """What the exact table loses by this estimate, over what the best one gains on predicting zero."""
    best = np.linalg.solve(p.A, p.b)
    return float((estimate - best) @ p.A @ (estimate - best) / (p.b @ best))


@settings(deadline=None)
@given(seed=SEEDS, width=WIDTHS, scale=st.sampled_from([0.0, 1e-12, 1e-6]))
def test_becomes_least_squares_as_the_noise_vanishes(seed: int, width: int, scale: float) -> None:
    p = problem(seed, width)
    np.testing.assert_allclose(
        theta(p, SymmetricGaussian(scale)), np.linalg.solve(p.A, p.b), rtol=1e-6, atol=1e-9
    )


def test_approaches_least_squares_with_the_square_of_the_noise() -> None:
    p = problem(1, 6)
    errors = [
        np.abs(theta(p, SymmetricGaussian(s)) - np.linalg.solve(p.A, p.b)).max() for s in (0.04, 0.02, 0.01)
    ]
    assert errors[0] / errors[1] == pytest.approx(4.0, rel=0.02)
    assert errors[1] / errors[2] == pytest.approx(4.0, rel=0.02)


@settings(deadline=None)
@given(seed=SEEDS, width=WIDTHS, sigma=st.floats(1e-3, 1e5))
def test_turns_with_the_coordinates(seed: int, width: int, sigma: float) -> None:
    """Isotropic noise has no axes: (QᵀAQ, Qᵀb) gives Qᵀθ."""
    generator = np.random.default_rng(seed)
    noise = SymmetricGaussian(sigma)
    p = problem(seed, width).noisy(noise, generator)
    q = np.linalg.qr(generator.standard_normal((width, width)))[0]
    turned = Problem(q.T @ p.A @ q, q.T @ p.b, p.yy)
    expected = q.T @ theta(p, noise)
    np.testing.assert_allclose(theta(turned, noise), expected, rtol=1e-6, atol=1e-9 * np.abs(expected).max())


@settings(deadline=None)
@given(seed=SEEDS, width=WIDTHS, factor=st.floats(1e-6, 1e6), sigma=st.floats(1e-2, 1e4))
def test_more_rows_with_more_noise_is_the_same_problem(
    seed: int, width: int, factor: float, sigma: float
) -> None:
    p = problem(seed, width).noisy(SymmetricGaussian(sigma), np.random.default_rng(seed))
    larger = Problem(factor * p.A, factor * p.b, factor * p.yy)
    np.testing.assert_allclose(
        theta(larger, SymmetricGaussian(factor * sigma)),
        theta(p, SymmetricGaussian(sigma)),
        rtol=1e-7,
        atol=1e-12,
    )


@settings(deadline=None)
@given(seed=SEEDS, width=WIDTHS, sigma=st.floats(1e-2, 1e4), factor=st.floats(1e-3, 1e3))
def test_the_target_may_be_rescaled_with_its_norm(seed: int, width: int, sigma: float, factor: float) -> None:
    """y → k·y makes b, √yy and |y| k times as large, and so θ."""
    noise = SymmetricGaussian(sigma)
    p = problem(seed, width).noisy(noise, np.random.default_rng(seed))
    scaled = Problem(p.A, factor * p.b, factor**2 * p.yy)
    np.testing.assert_allclose(theta(scaled, noise, factor), factor * theta(p, noise), rtol=1e-7, atol=1e-12)


@settings(deadline=None)
@given(seed=SEEDS, width=WIDTHS, sigma=st.floats(1e-2, 1e6))
def test_mirrors_the_target(seed: int, width: int, sigma: float) -> None:
    p = problem(seed, width).noisy(SymmetricGaussian(sigma), np.random.default_rng(seed))
    mirrored = Problem(p.A, -p.b, p.yy)
    np.testing.assert_array_equal(
        theta(mirrored, SymmetricGaussian(sigma)), -theta(p, SymmetricGaussian(sigma))
    )


@settings(deadline=None)
@given(
    seed=SEEDS,
    width=WIDTHS,
    law=st.sampled_from([SymmetricGaussian(3e3), MatrixLaplace(1e-3, 13), EntrywiseLaplace(2e3, 3e3)]),
    yy=st.floats(-1e5, 1e5),
)
def test_never_explodes(seed: int, width: int, law: Noise, yy: float) -> None:
    """p α/(p α² + v) ≤ ½√(p/v) ≤ ½/(o√(d + 1)), whatever the signs of A's eigenvalues and of yᵀy."""
    generator = np.random.default_rng(seed)
    drawn = law.sample(width + 1, generator)
    fit = noise_aware(drawn[:width, :width], drawn[:width, width], yy, noise=law)
    bound = 0.5 * np.linalg.norm(drawn[:width, width]) / (law.offdiagonal_sd * math.sqrt(width + 1.0))
    assert np.linalg.norm(fit.theta) <= bound * (1.0 + 1e-9)
    assert np.all((fit.kept >= 0.0) & (fit.kept <= 1.0))
    assert 0.0 <= fit.effective_parameters <= width


@settings(deadline=None)
@given(seed=SEEDS, width=st.integers(2, 8), sigma=st.sampled_from([0.0, 1e-8, 1.0, 1e3]))
def test_a_column_of_zeros_gets_zero(seed: int, width: int, sigma: float) -> None:
    p = problem(seed, width)
    wider = Problem(np.pad(p.A, (0, 1)), np.append(p.b, 0.0), p.yy)
    estimate = theta(wider, SymmetricGaussian(sigma))
    assert abs(estimate[-1]) <= 1e-12
    if sigma <= 1e-8:
        np.testing.assert_allclose(estimate[:-1], np.linalg.solve(p.A, p.b), rtol=1e-6, atol=1e-9)


def test_copied_columns_share_their_coefficient() -> None:
    p = problem(3, 4)
    double = np.kron(np.ones((2, 2)), p.A)
    shared = np.tile(np.linalg.solve(p.A, p.b) / 2.0, 2)
    for sigma in (0.0, 1e-6):
        estimate = theta(Problem(double, np.tile(p.b, 2), p.yy), SymmetricGaussian(sigma))
        assert np.linalg.norm(estimate - shared) < 1e-6 * np.linalg.norm(shared)


def test_nothing_to_fit() -> None:
    fit = noise_aware(np.zeros((0, 0)), np.zeros(0), 1.0, noise=SymmetricGaussian(1.0))
    assert fit.theta.shape == (0,)
    assert fit.effective_parameters == 0.0


@pytest.mark.parametrize("sigma", [0.0, 1.0])
def test_an_empty_table_gives_zero(sigma: float) -> None:
    fit = noise_aware(np.zeros((3, 3)), np.zeros(3), 0.0, noise=SymmetricGaussian(sigma))
    np.testing.assert_array_equal(fit.theta, 0.0)


def test_one_column_by_hand() -> None:
    """d = 1, σ = 1, A = 4, b = 2, yᵀy = 3: every quantity of the docstring written out."""
    a = 0.5 * (2.0 / math.pi) / 4.0
    alpha = (4.0 + math.sqrt(16.0 + 4.0 * a)) / 2.0
    c = (3.0 + math.sqrt(10.0)) / 2.0
    total = weighted = 0.0
    for k in range(-16, 1):
        m = 2.0**k
        spread = m * c * alpha + 0.5 * (1.0 + 2.0 * m * c / alpha)
        weight = (m**3 + 1.0 / 3000.0) * math.exp(-2.0 / spread) / math.sqrt(spread)
        p = 4.0 * m * c / alpha
        v = 0.5 * (1.0 + 2.0 * p)
        total += weight
        weighted += weight * p * alpha * 2.0 / (p * alpha**2 + v)
    fit = noise_aware(np.array([[4.0]]), np.array([2.0]), 3.0, noise=SymmetricGaussian(1.0))
    assert fit.theta[0] == pytest.approx(weighted / total, rel=1e-12)


def test_two_columns_by_hand() -> None:
    """A diagonal A is its own eigenbasis: each sum and share over two directions written out."""
    w, u, yy, sigma, size = np.array([1.0, 9.0]), np.array([0.5, 3.0]), 2.0, 0.8, 1.2
    noise = SymmetricGaussian(sigma)
    push = sigma**2 * 8.0 / (64.0 + sigma**2)
    a = 0.5 * noise.expected_norm(2) ** 2 / 4.0
    alpha = [(x + math.sqrt(x * x + 4.0 * a)) / 2.0 for x in (1.0 + push, 9.0 - push)]
    c = (yy + math.sqrt(yy**2 + (sigma * size**2) ** 2)) / 2.0
    total, weighted = 0.0, np.zeros(2)
    for m in 2.0 ** np.arange(-16, 1):
        q = [m * c / (2.0 * x) for x in alpha]
        weight = m**3 + 1.0 / 3000.0
        for x, own, right in zip(alpha, q, u, strict=True):
            spread = m * c * x / 2.0 + sigma**2 / 2.0 * (size**2 + sum(q) + own)
            weight *= math.exp(-(right**2) / (2.0 * spread)) / math.sqrt(spread)
        p = 4.0 * m * c / sum(alpha)
        v = sigma**2 / 2.0 * (size**2 + 3.0 * p)
        total += weight
        weighted += [weight * p * x * right / (p * x * x + v) for x, right in zip(alpha, u, strict=True)]
    fit = noise_aware(np.diag(w), u, yy, noise=noise, target_norm=size)
    np.testing.assert_allclose(fit.theta, weighted / total, rtol=1e-11)


def test_contradictions_without_noise_stay_finite() -> None:
    """yᵀy = 0 but b ≠ 0 cannot come from a table; still no invalid number may come out."""
    fit = noise_aware(np.diag([1.0, 0.0]), np.ones(2), 0.0, noise=SymmetricGaussian(0.0))
    assert np.all(np.isfinite(fit.theta))


@settings(deadline=None)
@given(x=st.floats(-1e12, 1e12), a=st.floats(1e-12, 1e12))
def test_smooth_positive_solves_its_equation(x: float, a: float) -> None:
    root = float(smooth_positive(np.array(x), a))
    assert root > 0.0
    assert root - x == pytest.approx(a / root, rel=1e-6, abs=4e-16 * abs(x))


def test_denoising_undoes_the_push_between_eigenvalues() -> None:
    """One eigenvalue of 60 over 39 zeros: noise pushes it up by about 2o²·39/60."""
    exact = np.zeros((40, 40))
    exact[0, 0] = 60.0
    noise, generator = SymmetricGaussian(3.0), np.random.default_rng(7)
    raw, clean = [], []
    for _ in range(300):
        values, vectors = np.linalg.eigh(exact + noise.sample(40, generator))
        truth = 60.0 * vectors[0, -1] ** 2
        raw.append(values[-1] - truth)
        clean.append(denoised(values, noise)[-1] - truth)
    assert np.mean(raw) == pytest.approx(9.0 * 39.0 / 60.0, rel=0.15)
    assert abs(np.mean(clean)) < 0.25 * np.mean(raw)


@pytest.mark.parametrize("law", [SymmetricGaussian(60.0), MatrixLaplace(math.sqrt(12.0) / 60.0, 11)])
def test_better_than_solving_and_than_a_fixed_ridge(law: SymmetricGaussian | MatrixLaplace) -> None:
    """400 tables of 3,000 rows, 10 columns of unequal size, noise of the size of the smaller eigenvalues."""
    generator = np.random.default_rng(11)
    ours, ridge, plain = [], [], []
    for seed in range(400):
        p = problem(seed, 10, rows=3000)
        noisy = p.noisy(law, generator)
        values, vectors = np.linalg.eigh(noisy.A)
        shrunk = vectors @ ((vectors.T @ noisy.b) / (np.maximum(values, 0.0) + law.expected_norm(10)))
        ours.append(excess(p, theta(noisy, law)))
        ridge.append(excess(p, shrunk))
        plain.append(excess(p, np.linalg.solve(noisy.A, noisy.b)))
    assert np.mean(ours) < 0.8 * np.mean(ridge)
    assert np.mean(ours) < np.median(plain)


def test_a_target_without_signal_is_left_alone() -> None:
    """b = 0 exactly: ours loses at most half of what ridge at the noise's edge loses."""
    law, generator = SymmetricGaussian(60.0), np.random.default_rng(12)
    exact = problem(8, 10, rows=20_000)
    null = Problem(exact.A, np.zeros(10), exact.yy)
    lost, ridge = [], []
    for _ in range(200):
        noisy = null.noisy(law, generator)
        values, vectors = np.linalg.eigh(noisy.A)
        shrunk = vectors @ ((vectors.T @ noisy.b) / (np.maximum(values, 0.0) + law.expected_norm(10)))
        for losses, estimate in ((lost, theta(noisy, law)), (ridge, shrunk)):
            losses.append(estimate @ null.A @ estimate / null.yy)
    assert np.mean(lost) < 0.5 * np.mean(ridge)


def test_a_strong_signal_is_not_shrunk() -> None:
    """200,000 rows against noise of 60: under one per cent of the coefficients is lost to shrinkage."""
    law, generator = SymmetricGaussian(60.0), np.random.default_rng(13)
    p = problem(5, 10, rows=200_000)
    fit = noise_aware(*_blocks(p.noisy(law, generator)), noise=law)
    assert fit.kept.min() > 0.99
    assert fit.effective_parameters == pytest.approx(10.0, rel=1e-3)


def _blocks(p: Problem) -> tuple[np.ndarray, np.ndarray, float]:
    return p.A, p.b, p.yy


def test_three_hundred_columns() -> None:
    law, generator = SymmetricGaussian(60.0), np.random.default_rng(14)
    p = problem(6, 300, rows=2_000)
    fit = noise_aware(*_blocks(p.noisy(law, generator)), noise=law)
    assert 0.0 < fit.effective_parameters < 300.0
    assert excess(p, fit.theta) < 1.0

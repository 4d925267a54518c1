"""The Bingham sampler against quadrature on the sphere, with power: neighbouring laws are rejected."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpgram.privacy.bingham import draw_direction, draw_frame, envelope_parameter
from dpgram.privacy.entropy import simulation

DRAWS = 3000
ALPHA = 1e-4


def sphere_cells(exponent: np.ndarray, cells: int) -> tuple[np.ndarray, np.ndarray]:
    """Exact probabilities, under ∝ exp(uᵀMu) on S², of equal bands of the third coordinate squared."""
    heights, weights = np.polynomial.legendre.leggauss(400)
    angles = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    ring = np.sqrt(1.0 - heights**2)
    points = np.stack(
        [np.outer(ring, np.cos(angles)), np.outer(ring, np.sin(angles)), np.outer(heights, np.ones(400))],
        axis=-1,
    )
    density = np.exp(np.einsum("abi,ij,abj->ab", points, exponent, points)).sum(axis=1) * weights
    edges = np.linspace(0.0, 1.0, cells + 1)
    band = np.clip(np.digitize(np.abs(heights), edges) - 1, 0, cells - 1)
    mass = np.bincount(band, density, minlength=cells)
    return edges, mass / mass.sum()


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.8, False), (1.25, False)])
def test_law_on_the_sphere(factor: float, accepted: bool) -> None:
    exponent = 2.0 * np.array([[3.0, 1.0, 0.5], [1.0, -2.0, 0.3], [0.5, 0.3, 1.0]])
    generator = simulation(11)
    draws = np.array([draw_direction(factor * exponent, generator).direction for _ in range(DRAWS)])
    edges, mass = sphere_cells(exponent, 20)
    keep = mass * DRAWS > 5
    counts = np.histogram(np.abs(draws[:, 2]), edges)[0]
    observed = np.append(counts[keep], counts[~keep].sum())
    expected = np.append(mass[keep], mass[~keep].sum()) * DRAWS
    nonzero = expected > 0
    p = stats.chisquare(observed[nonzero], expected[nonzero] * observed.sum() / expected.sum()).pvalue
    assert (p > ALPHA) == accepted


@pytest.mark.parametrize("kappa", [0.01, 1.0, 30.0])
def test_law_on_the_circle_is_von_mises(kappa: float) -> None:
    exponent = np.diag([kappa, -kappa])
    generator = simulation(5)
    draws = np.array([draw_direction(exponent, generator).direction for _ in range(DRAWS)])
    doubled = 2.0 * np.arctan2(draws[:, 1], draws[:, 0])
    wrapped = (doubled + np.pi) % (2.0 * np.pi) - np.pi
    assert stats.kstest(wrapped, stats.vonmises(kappa).cdf).pvalue > ALPHA


def test_printed_acceptance_rule_is_another_law() -> None:
    """Amin et al. divide by (uᵀΩu)^{d/2} where one has to multiply: the same test rejects their law."""
    kappa = 3.0
    A = np.diag([0.0, 2.0 * kappa])
    b = envelope_parameter(np.array([0.0, 2.0 * kappa]))
    generator = simulation(5)
    normals = generator.standard_normal((400_000, 2)) / np.sqrt(1.0 + 2.0 * np.diag(A) / b)
    points = normals / np.linalg.norm(normals, axis=1, keepdims=True)
    s = points**2 @ np.diag(A)
    printed = np.exp(-s) / (1.0 + 2.0 * s / b)
    kept = points[generator.random(len(s)) < printed][:DRAWS]
    doubled = 2.0 * np.arctan2(kept[:, 1], kept[:, 0])
    wrapped = (doubled + np.pi) % (2.0 * np.pi) - np.pi
    assert stats.kstest(wrapped, stats.vonmises(kappa).cdf).pvalue < ALPHA


def test_frame_is_orthonormal_and_follows_strong_signal() -> None:
    generator = simulation(3)
    basis = np.linalg.qr(generator.standard_normal((12, 12)))[0]
    spectrum = np.linspace(12.0, 1.0, 12) * 1e6
    matrix = (basis * spectrum) @ basis.T
    frame = draw_frame(matrix, np.full(12, 10.0), generator)
    np.testing.assert_allclose(frame.T @ frame, np.eye(12), atol=1e-12)
    assert np.all(np.abs(np.sum(frame * basis, axis=0)) > 1.0 - 1e-4)


def test_partial_frame_and_flat_matrix() -> None:
    generator = simulation(4)
    frame = draw_frame(np.zeros((6, 6)), np.ones(2), generator)
    assert frame.shape == (6, 2)
    np.testing.assert_allclose(frame.T @ frame, np.eye(2), atol=1e-14)


@pytest.mark.parametrize("width", [2, 5, 40])
def test_envelope_parameter_solves_its_equation(width: int) -> None:
    spectrum = np.geomspace(1e-3, 1e6, width)
    spectrum[0] = 0.0
    b = envelope_parameter(spectrum)
    assert 1.0 <= b <= width
    np.testing.assert_allclose(np.sum(1.0 / (b + 2.0 * spectrum)), 1.0, rtol=1e-6)


def test_candidates_grow_no_faster_than_the_root_of_the_width() -> None:
    generator = simulation(8)
    for width in (5, 30, 100):
        spectrum = np.sort(generator.gamma(0.5, 50.0, width))
        looked_at = [draw_direction(np.diag(spectrum), generator).candidates for _ in range(200)]
        assert np.mean(looked_at) < 2.0 * np.sqrt(width)

"""The Bingham sampler against quadrature on the sphere, with power: neighbouring laws are rejected."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from tests.statistical.sphere import sphere_cells

from dpgram.core.noise import simulation
from dpgram.privacy.sampling.bingham import (
    FAILURE_BITS,
    LEAST_DENSITY,
    candidates_at_once,
    draw_direction,
    draw_frame,
    envelope_parameter,
)

DRAWS = 3000
ALPHA = 1e-4
NODES, LENGTHS = np.polynomial.legendre.leggauss(400)


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


def test_levels_that_are_zero_but_for_rounding_have_an_envelope() -> None:
    """1/20 added twenty times is above 1 in floats: no bracket for a root, and no reason to fail."""
    for width in range(2, 150):
        for level in (0.0, 1e-18, 1e-13, 1e-9):
            b = envelope_parameter(np.append(0.0, np.full(width - 1, level)))
            assert width - 1e-6 <= b <= width


def test_candidates_grow_no_faster_than_the_root_of_the_width() -> None:
    generator = simulation(8)
    for width in (5, 30, 100):
        spectrum = np.sort(generator.gamma(0.5, 50.0, width))
        looked_at = [draw_direction(np.diag(spectrum), generator).candidates for _ in range(200)]
        assert np.mean(looked_at) < 2.0 * np.sqrt(width)


def density_at_the_mean(weights: np.ndarray) -> float:
    """Of Σ w_i χ²₁ with Σ w_i = 1: its characteristic function inverted along a path on which it falls fast.

    The path t = x − i(√(1 + x²) − 1) passes the singularities, which lie on the negative imaginary axis.
    """
    x = 30.0 * (NODES + 1.0)
    t, slope = x - 1j * (np.sqrt(1.0 + x**2) - 1.0), 1.0 - 1j * x / np.sqrt(1.0 + x**2)
    transform = np.exp(-0.5 * np.log(1.0 - 2j * weights[:, None] * t).sum(axis=0))
    return float((transform * np.exp(-1j * t) * slope).real @ LENGTHS * 30.0 / np.pi)


def test_the_inversion_knows_the_laws_with_a_formula() -> None:
    assert density_at_the_mean(np.array([1.0])) == pytest.approx(LEAST_DENSITY, rel=1e-9)
    for count in (2, 5, 40):
        equal = density_at_the_mean(np.full(count, 1.0 / count))
        assert equal == pytest.approx(count * stats.chi2.pdf(count, count), rel=1e-9)


@pytest.mark.parametrize("width", [2, 5, 20])
@pytest.mark.parametrize("sharpness", [0.0, 1.0, 30.0, 3e4])
def test_acceptance_is_the_density_at_the_mean(width: int, sharpness: float) -> None:
    """a = Γ(d/2)(2e/d)^{d/2}·p_w(1), against 400 draws at α = 1e-4: proofs/eigenvectors.md."""
    spectrum = sharpness * np.linspace(0.0, 1.0, width)
    weights = 1.0 / (envelope_parameter(spectrum) + 2.0 * spectrum)
    scale = math.exp(math.lgamma(width / 2) + 0.5 * width * math.log(2.0 * math.e / width))
    chance = scale * density_at_the_mean(weights / weights.sum())
    assert math.sqrt(4.0 * math.pi / width) * LEAST_DENSITY <= chance <= 1.0 + 1e-9
    generator = simulation(width)
    looked_at = [draw_direction(-np.diag(spectrum), generator).candidates for _ in range(400)]
    test = stats.binomtest(400, sum(looked_at), min(chance, 1.0))
    assert test.pvalue > ALPHA
    if chance < 0.8:  # power: an acceptance a third higher would be seen
        assert stats.binomtest(400, sum(looked_at), min(1.33 * chance, 1.0)).pvalue < ALPHA


@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.lists(st.floats(-12.0, 0.0), min_size=1, max_size=12))
def test_no_weights_have_a_smaller_density_at_the_mean(logarithms: list[float]) -> None:
    weights = np.exp(logarithms)
    assert density_at_the_mean(weights / weights.sum()) >= LEAST_DENSITY * (1.0 - 1e-9)


def test_nearly_one_weight_comes_close_from_above() -> None:
    for others in (1, 4, 30):
        for rest in np.geomspace(1e-6, 0.5, 25):
            found = density_at_the_mean(np.append(np.full(others, rest / others), 1.0 - rest))
            assert found * (1.0 + 1e-9) >= LEAST_DENSITY


@pytest.mark.parametrize("width", [2, 7, 30])
def test_the_work_of_a_draw_does_not_depend_on_the_matrix(width: int) -> None:
    """One round of a public number of candidates: the generator ends in the same state for every matrix."""
    spectra = [np.zeros(width), np.linspace(0.0, 5.0, width), np.geomspace(1e-3, 1e6, width)]
    after = set()
    for spectrum in spectra:
        generator = np.random.Generator(np.random.PCG64(width))
        drawn = draw_direction(np.diag(spectrum), generator)
        assert drawn.candidates <= candidates_at_once(width)
        after.add(str(generator.bit_generator.state))
    assert len(after) == 1


@pytest.mark.parametrize("width", [2, 10, 100, 1000])
def test_a_second_round_is_as_rare_as_stated(width: int) -> None:
    least = math.sqrt(4.0 * math.pi / width) * LEAST_DENSITY
    assert (1.0 - least) ** candidates_at_once(width) <= 2.0**-FAILURE_BITS
    assert candidates_at_once(width) < 33.0 * math.sqrt(width) + 1.0

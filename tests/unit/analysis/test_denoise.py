"""The denoised matrix: closer to the exact one than the published, and the published one without noise."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram.analysis.denoise import NO_NOISE, central_moments, denoised, second_moments
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.core.noise import SeededEntropy, simulation
from dpgram.errors import AnalysisError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, PublicFacts
from dpgram.noise import EigenvectorSampling, EntrywiseLaplace, Law, MatrixLaplace, SymmetricGaussian
from dpgram.noise.shrinkage import shrunken, within_trace
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.amin import PrintedEigenvectors

Matrix = npt.NDArray[np.float64]
spectra = arrays(np.float64, st.integers(1, 12), elements=st.floats(-1e6, 1e6))
ROWS, WIDTH = 1500, 8
UNIT = 1.0 / ROW_NORM_SQUARED


def gram_of(rows: int = ROWS, width: int = WIDTH, seed: int = 0) -> Matrix:
    """Of rows within the unit ball with one strong direction, in units of a row's trace."""
    generator = np.random.default_rng(seed)
    basis = np.linalg.qr(generator.standard_normal((width, width)))[0]
    values = 4.0 ** -np.arange(width)
    return np.asarray((basis * (0.4 * rows * values / values.sum())) @ basis.T)


@given(spectra, st.floats(0, 1e5))
def test_shrunken_values_rise_and_stay_between_zero_and_the_nearest_rising_sequence(
    values: npt.NDArray[np.float64], variance: float
) -> None:
    found, plain = shrunken(values, variance), shrunken(values, 0.0)
    slack = 1e-9 * (1.0 + np.abs(values).max())
    assert (np.diff(found) >= -slack).all() or variance > 0.0
    assert (found >= 0.0).all()
    assert (found <= plain + slack).all()


def test_an_average_of_many_is_shrunk_less_than_one_value() -> None:
    np.testing.assert_allclose(shrunken(np.array([2.0]), 1.0), [1.5])
    np.testing.assert_allclose(shrunken(np.array([2.5, 2.0, 1.5]), 1.0), np.full(3, 2.0 - 0.5 / 3.0))
    np.testing.assert_allclose(shrunken(np.array([0.9, 30.0]), 1.0), [0.0, 30.0 - 1.0 / 30.0])


@given(spectra, st.floats(0, 1e6))
def test_the_trace_is_held_by_the_nearest_spectrum(values: npt.NDArray[np.float64], limit: float) -> None:
    held, positive = within_trace(values, limit), np.maximum(values, 0.0)
    slack = 1e-9 * (1.0 + np.abs(values).sum())
    assert held.sum() <= limit + slack
    assert (held >= 0.0).all()
    rival = positive * min(1.0, limit / max(positive.sum(), 1e-300))
    assert np.linalg.norm(held - values) <= np.linalg.norm(rival - values) + slack


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32 - 1), st.floats(0.01, 100.0), st.floats(0.0, 30.0))
def test_it_turns_with_the_matrix_and_grows_with_it(seed: int, factor: float, sigma: float) -> None:
    generator = np.random.default_rng(seed)
    turn = np.linalg.qr(generator.standard_normal((WIDTH, WIDTH)))[0]
    gram = gram_of() + SymmetricGaussian(sigma=sigma).sample(WIDTH, generator)
    noise = EncodedNoise.of(SymmetricGaussian(sigma=sigma))
    found = denoised(gram, noise)
    assert np.linalg.eigvalsh(found)[0] >= -1e-9
    np.testing.assert_allclose(denoised(turn @ gram @ turn.T, noise), turn @ found @ turn.T, atol=1e-6)
    scaled = EncodedNoise.of(SymmetricGaussian(sigma=sigma * factor))
    np.testing.assert_allclose(denoised(gram * factor, scaled), found * factor, atol=1e-6 * factor)


def test_without_noise_it_is_the_matrix() -> None:
    moments = exact_moments(insurance_schema(), insurance(2000))
    np.testing.assert_allclose(second_moments(moments), moments.gram, atol=1e-8 * moments.gram.max())


@pytest.mark.parametrize("sigma", [0.3, 3.0, 30.0, 300.0])
@pytest.mark.parametrize("law", ["gaussian", "matrix-laplace", "laplace"])
def test_it_is_closer_than_the_nearest_semidefinite_matrix(law: str, sigma: float) -> None:
    laws = {
        "gaussian": SymmetricGaussian(sigma=sigma),
        "matrix-laplace": MatrixLaplace(theta=math.sqrt(WIDTH + 1.0) / sigma, width=WIDTH),
        "laplace": EntrywiseLaplace(scale=sigma / 2.0, diagonal_scale=sigma / 2.0),
    }
    gram, noise, generator = gram_of(), EncodedNoise.of(laws[law]), simulation(1)
    better, plain = [], []
    for _ in range(60):
        drawn = laws[law].redraw(gram, generator)
        better.append(np.sum((denoised(drawn, noise) - gram) ** 2))
        plain.append(np.sum((denoised(drawn, NO_NOISE) - gram) ** 2))
    # With so little noise that all eigenvalues are clear of it there is nothing to gain, and little to lose.
    assert np.mean(better) < np.mean(plain) * (1.02 if sigma < 1.0 else 1.0)


def test_where_noise_explains_all_nearly_nothing_is_left() -> None:
    law, generator = SymmetricGaussian(sigma=1e5), simulation(2)
    noise = EncodedNoise.of(law)
    left = [np.linalg.norm(denoised(law.redraw(gram_of(), generator), noise)) for _ in range(100)]
    whole = [np.linalg.norm(law.sample(WIDTH, generator)) for _ in range(100)]
    assert np.median(left) < 0.2 * np.median(whole)


def test_central_moments_are_the_covariance_and_semidefinite() -> None:
    table = insurance(2000)
    quiet = exact_moments(insurance_schema(), table)
    rows = quiet.gram[0, 0]
    exact = quiet.gram[1:, 1:] / rows - np.outer(quiet.gram[0, 1:], quiet.gram[0, 1:]) / rows**2
    np.testing.assert_allclose(central_moments(quiet), exact, atol=1e-9)
    aware, unaware = [], []
    for seed in range(8):
        noisy = exact_moments(insurance_schema(), table, sigma=200.0, seed=seed)
        found = central_moments(noisy)
        assert np.linalg.eigvalsh(found)[0] >= -1e-9
        aware.append(np.linalg.norm(found - exact))
        unaware.append(np.linalg.norm(central_moments(dataclasses.replace(noisy, noise=NO_NOISE)) - exact))
    assert np.mean(aware) < 0.9 * np.mean(unaware)


def test_without_a_constant_there_are_no_central_moments() -> None:
    schema = insurance_schema()
    moments = exact_moments(schema, insurance(100))
    bare = dataclasses.replace(
        moments,
        schema=type(schema)(*(c for c in schema.columns if c.kind == "numeric"), constant=False),
        gram=np.eye(sum(c.kind == "numeric" for c in schema.columns)),
    )
    with pytest.raises(AnalysisError, match="constant"):
        central_moments(bare)


def test_a_public_row_count_bounds_the_trace() -> None:
    moments = exact_moments(insurance_schema(), insurance(200), sigma=3000.0)
    bounded = dataclasses.replace(moments, public_rows=200)
    assert np.trace(second_moments(bounded)) <= 200 * moments.radius**2 * (1.0 + 1e-9)
    assert isinstance(bounded, Moments)


def answer(law: Law, drawn: Matrix, limit: float) -> Matrix:
    if isinstance(law, EigenvectorSampling):
        return denoised(law.denoised(drawn) * UNIT, NO_NOISE, limit)
    return denoised(drawn * UNIT, EncodedNoise.of(law, UNIT), limit)


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 2.0])
@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()])
def test_both_pure_mechanisms_are_ahead_of_printed_eigenvector_sampling(
    relation: Adjacency, epsilon: float
) -> None:
    """The ordering of benchmarks/eigenvectors.py on a small matrix; printed eigenvalues go into [0, n]."""
    gram, runs, guarantee = gram_of(), 12, Guarantee(epsilon)
    printed, entropy = PrintedEigenvectors(claimed=guarantee), SeededEntropy(4)
    theirs = []
    for _ in range(runs):
        values, vectors = np.linalg.eigh(printed.draw(gram, entropy))
        theirs.append(np.linalg.norm((vectors * np.clip(values, 0.0, ROWS)) @ vectors.T - gram))
    for name in ("matrix-laplace", "eigenvectors"):
        facts = PublicFacts(width=WIDTH, adjacency=relation)
        law = MECHANISMS[name]().calibrated(guarantee, facts).expected(np.ones(WIDTH))
        limit = ROWS if relation.name == "replace-one" else math.inf
        generator = simulation(5)
        ours = [
            np.linalg.norm(answer(law, law.redraw(gram / UNIT, generator), limit) - gram) for _ in range(runs)
        ]
        assert np.mean(ours) < np.mean(theirs)

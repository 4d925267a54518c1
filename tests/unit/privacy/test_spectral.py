"""The projection of noisy eigenvalues onto falling order."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgram.privacy.curves.spectral import alignments, falling, shared_inverse_temperatures
from dpgram.privacy.sampling.bingham import draw_frame

vectors = arrays(np.float64, st.integers(1, 12), elements=st.floats(-1e6, 1e6))


@given(vectors, st.integers(0, 2**32 - 1))
def test_falling_is_a_projection_that_comes_no_farther_from_any_falling_truth(
    noisy: np.ndarray, seed: int
) -> None:
    found = falling(noisy)
    assert (np.diff(found) <= 1e-9 * np.abs(noisy).max()).all()
    truth = np.sort(np.random.default_rng(seed).normal(scale=1e5, size=len(noisy)))[::-1]
    assert np.linalg.norm(found - truth) <= np.linalg.norm(noisy - truth) * (1 + 1e-12) + 1e-9


@given(vectors)
def test_what_falls_already_stays(noisy: np.ndarray) -> None:
    sorted_down = np.sort(noisy)[::-1]
    np.testing.assert_allclose(falling(sorted_down), sorted_down)


def test_it_averages_what_noise_has_mixed_up() -> None:
    np.testing.assert_allclose(falling(np.array([5.0, 1.0, 3.0, 0.0])), [5.0, 2.0, 2.0, 0.0])


falls = arrays(np.float64, st.integers(2, 9), elements=st.floats(0, 1e5)).map(lambda v: np.sort(v)[::-1])


@given(falls, st.floats(1e-4, 10.0), st.sampled_from([1, 2]), st.integers(0, 4))
def test_the_budget_is_spent_whatever_the_eigenvalues(
    values: np.ndarray, total: float, norm: int, beyond: int
) -> None:
    width = len(values) + beyond
    for split in ("forecast", "adaptive", "uniform"):
        found = shared_inverse_temperatures(values, total, 1.0, split=split, norm=norm, width=width)
        assert (found >= 0.0).all()
        np.testing.assert_allclose(np.linalg.norm(found, ord=norm), total, rtol=1e-9)
        assert beyond or found[-1] == 0.0


@pytest.mark.parametrize("norm", [1, 2])
def test_no_other_split_has_less_forecast_error(norm: int) -> None:
    values = np.array([400.0, 60.0, 55.0, 7.0, 1.0, 0.5])
    gaps = np.triu(np.subtract.outer(values, values), 1)[:-1]
    sharp, blind = gaps.sum(axis=1), (gaps**2).sum(axis=1)
    for total in (0.01, 0.3, 5.0):
        found = shared_inverse_temperatures(values, total, 1.0, split="forecast", norm=norm, width=6)[:-1]
        least = np.sum(sharp / (found + sharp / blind))
        generator = np.random.default_rng(1)
        for spread in (0.02, 0.3, 3.0):
            for _ in range(100):
                rival = np.abs(found + spread * found.mean() * generator.standard_normal(5))
                rival *= total / np.linalg.norm(rival, ord=norm)
                assert least <= np.sum(sharp / (rival + sharp / blind)) * (1 + 1e-9)


def test_equal_eigenvalues_share_equally() -> None:
    tied = np.full(4, 3.0) + np.array([1e-12, 0.0, 0.0, 0.0])
    found = shared_inverse_temperatures(tied, 0.9, 1.0, split="forecast", norm=1, width=4)
    np.testing.assert_allclose(found, [0.3, 0.3, 0.3, 0.0])


@given(falls, st.floats(0.0, 10.0))
def test_alignments_keep_the_trace(values: np.ndarray, cold: float) -> None:
    found = alignments(values, np.full(len(values) - 1, cold))
    np.testing.assert_allclose(found.sum(), values.sum(), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(alignments(values, np.zeros(1)), values.mean(), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("cold", [0.0, 0.02, 0.3, 5.0])
def test_alignments_are_those_of_drawn_frames(cold: float) -> None:
    """Within four standard errors of 400 frames and 6% of the largest eigenvalue: it is a model."""
    values, generator = np.array([100.0, 40.0, 15.0, 5.0, 1.0]), np.random.default_rng(3)
    inverse_temperatures = np.array([cold, cold, 0.5 * cold, 0.1 * cold])
    frames = [draw_frame(np.diag(values), inverse_temperatures, generator) for _ in range(400)]
    held = np.array([np.einsum("ij,i,ij->j", frame, values, frame) for frame in frames])
    error = 4.0 * held.std(axis=0) / 20.0 + 6.0
    assert (np.abs(alignments(values, inverse_temperatures)[:4] - held.mean(axis=0)) < error).all()

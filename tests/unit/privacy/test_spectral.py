"""The projection of noisy eigenvalues onto falling order."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpgram.privacy.spectral import falling

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

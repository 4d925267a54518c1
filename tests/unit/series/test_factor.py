"""The factor of a series: whole numbers, their exact inverse, and the worst person."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

from dpgram.noise.factor import (
    coefficients,
    noise_factor,
    overlap,
    sensitivity_squared,
    window_norm,
    window_weights,
)


def factor(periods: int, bits: int) -> list[list[int]]:
    c = coefficients(periods, bits)
    return [[c[t - s] if s <= t else 0 for s in range(periods)] for t in range(periods)]


@pytest.mark.parametrize("bits", [6, 12])
@pytest.mark.parametrize("periods", [1, 2, 12, 120, 480])
def test_coefficients_are_positive_and_never_increase(periods: int, bits: int) -> None:
    c = coefficients(periods, bits)
    assert c[0] == 1 << bits
    assert min(c) >= 1
    assert all(a >= b for a, b in pairwise(c))


def test_coefficients_are_those_of_the_inverse_root() -> None:
    c = np.array(coefficients(200)) / 2**12
    squared = np.convolve(c, c)[:200]
    assert np.abs(squared - 1.0).max() < 0.01  # (1 − x)^(−1/2) squared is 1 + x + x² + …


@pytest.mark.parametrize(("first", "last"), [(1, 1), (1, 7), (4, 4), (3, 6), (7, 7)])
def test_windows_are_exact_for_the_rounded_factor(first: int, last: int) -> None:
    weights = window_weights(first, last, periods=7, bits=6)
    matrix = factor(7, 6)
    sums = [sum((w * matrix[t][s] for t, w in enumerate(weights)), Fraction(0)) for s in range(7)]
    assert sums == [int(first <= s + 1 <= last) for s in range(7)]


def test_an_unrounded_factor_would_not_do() -> None:
    """Its weights leave a part of other periods in a window: with exact sums of 2^50 that is many rows."""
    exact = [Fraction(1)]
    for j in range(1, 20):
        exact.append(exact[-1] * Fraction(2 * j - 1, 2 * j))
    c = coefficients(20, 6)
    # 1/√(1 − x) times itself is 1/(1 − x): the unrounded weights of a total are the coefficients again.
    left = [sum(exact[t - s] * c[s - u] for s in range(u, t + 1)) / c[0] for t in [19] for u in range(20)]
    assert max(abs(float(one) - 1.0) for one in left) > 0.001


@pytest.mark.parametrize("apart", [1, 2, 3])
@pytest.mark.parametrize("often", [1, 2, 3])
def test_no_person_moves_the_stream_farther(often: int, apart: int) -> None:
    periods, bits = 9, 6
    columns = np.array(factor(periods, bits))
    worst = 0
    for count in range(1, often + 1):
        for places in combinations(range(periods), count):
            if all(b - a >= apart for a, b in pairwise(places)):
                worst = max(worst, int((columns[:, list(places)].sum(axis=1) ** 2).sum()))
    assert sensitivity_squared(periods, often, apart, bits) == worst


def test_no_person_moves_it_farther_with_any_matrices() -> None:
    """The bound holds for whatever a person contributes, of norm 1 in each period, positive or not."""
    draw = np.random.default_rng(3)
    columns = np.array(factor(8, 6), dtype=np.float64)
    bound = sensitivity_squared(8, 3, 2, 6)
    for _ in range(200):
        moved = np.zeros((8, 5))
        for place in (0, 2, 4):
            own = draw.normal(size=5)
            moved += np.outer(columns[:, place], own / np.linalg.norm(own))
        assert (moved**2).sum() <= bound * (1 + 1e-12)


@pytest.mark.parametrize(("periods", "limit"), [(12, 1.9), (60, 2.4), (120, 2.65)])
def test_running_totals_have_little_noise(periods: int, limit: float) -> None:
    found = [noise_factor(1, t, periods=periods) for t in range(1, periods + 1)]
    assert max(found) <= limit < periods**0.5


def test_the_norm_is_that_of_the_weights() -> None:
    weights = window_weights(3, 5, periods=6)
    assert window_norm(3, 5, periods=6) ** 2 == pytest.approx(float(sum(w * w for w in weights)))
    assert overlap(weights, window_weights(1, 2, periods=6)) < 0.0

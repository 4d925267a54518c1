"""The rivals of benchmarks/peers.py are what they are called: a weak rival would prove nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from benchmarks.rivals import GRID, UNTUNED, Bins, Descent, Marginals, _in_shell, chunk_models, tukey

from dpgram.privacy.guarantee import GaussianDP

THETA = np.array([0.3, -0.5, 0.2])


def problem(rows: int, noise: float = 0.05):
    generator = np.random.default_rng(5)
    x = np.column_stack([np.ones(rows), generator.uniform(-1, 1, (rows, 2))])
    return x, x @ THETA + noise * generator.standard_normal(rows)


def depth(point, models) -> int:
    """By counting, in every coordinate and direction."""
    return min(int(min((models[:, j] <= point[j]).sum(), (models[:, j] >= point[j]).sum())) for j in range(3))


@pytest.mark.parametrize("wanted", [1, 7, 24, 25])
def test_a_point_is_drawn_at_the_depth_asked_for(wanted) -> None:
    generator = np.random.default_rng(1)
    models = generator.standard_normal((51, 3))
    line = np.sort(models, axis=0)
    points = [_in_shell(line, wanted, 25, generator) for _ in range(200)]
    found = {depth(point, models) for point in points}
    assert found == {wanted} if wanted < 25 else min(found) >= wanted


def test_points_of_a_shell_are_uniform() -> None:
    """Two boxes [-2, 2]² ∖ [-1, 1]²: the first coordinate is beyond ±1 in 2/3 of the area. α = 10⁻⁴."""
    generator = np.random.default_rng(2)
    line = np.repeat(np.array([-2.0, -1.0, 0.0, 1.0, 2.0])[:, None], 2, axis=1)
    draws = 20_000
    outside = sum(abs(_in_shell(line, 1, 2, generator)[0]) > 1.0 for _ in range(draws))
    assert abs(outside / draws - 2.0 / 3.0) < 3.9 * math.sqrt(2.0 / 9.0 / draws)


def test_tukey_finds_the_model_where_there_are_many_and_refuses_where_few() -> None:
    generator = np.random.default_rng(3)
    x, y = problem(40_000)
    found = tukey(chunk_models(x, y, 1000, generator), 1.0, 1e-6, generator)
    assert found is not None
    np.testing.assert_allclose(found, THETA, atol=0.02)
    assert tukey(chunk_models(x, y, 60, generator), 1.0, 1e-6, generator) is None


def test_models_of_chunks_are_least_squares() -> None:
    generator = np.random.default_rng(4)
    x, y = problem(60, noise=0.0)
    np.testing.assert_allclose(chunk_models(x, y, 10, generator), np.tile(THETA, (10, 1)), atol=1e-9)


@pytest.mark.parametrize("form", [UNTUNED, *GRID])
def test_descent_spends_what_it_is_given_and_no_less(form: Descent) -> None:
    mu = math.sqrt(form.steps) * form.clip / form.sigma(1.0, 1e-6)
    assert GaussianDP(mu).epsilon_at_most(1e-6) == pytest.approx(1.0, rel=1e-6)


def test_descent_with_little_noise_is_least_squares() -> None:
    x, y = problem(5_000)
    found = Descent(steps=400, clip=10.0, rate=2.0).fit(x, y, 1e4, 1e-6, np.random.default_rng(6))
    np.testing.assert_allclose(found, np.linalg.lstsq(x, y, rcond=None)[0], atol=2e-3)


def in_the_box(rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Features and target in [-1, 1], no constant among them."""
    generator = np.random.default_rng(7)
    x = np.clip(0.3 * generator.standard_normal((rows, 3)), -1.0, 1.0)
    return x, 0.2 + x @ [0.4, -0.3, 0.1] + generator.uniform(-0.1, 0.1, rows)


@pytest.mark.parametrize("form", [Marginals(bins=64), Bins()])
def test_aggregates_with_little_noise_are_least_squares(form: Marginals | Bins) -> None:
    x, y = in_the_box(20_000)
    found = form.fit(x, y, 1e4, 1e-6, np.random.default_rng(8))
    np.testing.assert_allclose(found, [0.2, 0.4, -0.3, 0.1], atol=0.01)


@pytest.mark.parametrize("form", [Marginals(), Bins()])
def test_aggregates_find_most_of_it_at_one_and_less_at_a_tenth(form: Marginals | Bins) -> None:
    x, y = in_the_box(20_000)

    def error(epsilon: float) -> float:
        runs = [form.fit(x, y, epsilon, 1e-6, np.random.default_rng(seed)) for seed in range(9)]
        return float(np.median([np.linalg.norm(run - [0.2, 0.4, -0.3, 0.1]) for run in runs]))

    assert error(1.0) < 0.2
    assert error(0.1) > error(1.0)

"""What benchmarks/adaptive_coverage.py compares intervals with is what it says."""

from __future__ import annotations

import math
from typing import get_args

import numpy as np
import pytest
from benchmarks.bounded_influence import (
    Errors,
    Features,
    References,
    Truth,
    World,
    functionals,
    weighted_gram,
    whitening,
)

WORLDS = [World(features, errors, 5) for features in get_args(Features) for errors in get_args(Errors)]


@pytest.mark.parametrize("world", WORLDS, ids=lambda world: world.name)
def test_moments_are_those_of_the_rows(world: World) -> None:
    rows = world.rows(200_000, np.random.default_rng(5))
    products = rows[:, :, None] * rows[:, None, :]
    error = products.std(axis=0) / math.sqrt(len(rows))
    assert np.all(np.abs(products.mean(axis=0) - world.gram) < 4.5 * error + 1e-12)


@pytest.mark.parametrize("world", WORLDS[:3], ids=lambda world: world.name)
def test_schema_reads_every_row_as_it_is(world: World) -> None:
    rows = world.rows(50_000, np.random.default_rng(6))
    for column, values in zip(world.schema.columns, rows[:, 1:].T, strict=True):
        low, high = (getattr(column, end, bound) for end, bound in (("low", 0.0), ("high", 1.0)))
        assert low <= values.min()
        assert values.max() <= high


def test_weights_are_those_of_the_definition() -> None:
    world = World("t4", "exponential", 5)
    rows = world.rows(30_000, np.random.default_rng(7))
    transform = whitening(world) + 0.1
    radii = [1.0, 3.0, 9.0, math.inf]  # both ways of adding up
    length = np.linalg.norm(rows @ transform.T, axis=1)
    for radius, found in zip(radii, weighted_gram(rows, transform, radii), strict=True):
        weight = np.minimum(1.0, radius / length) ** 2
        np.testing.assert_allclose(found, (rows * weight[:, None]).T @ rows, rtol=1e-9, atol=1e-6)


def test_symmetric_errors_leave_the_coefficients_at_the_whitening_transform() -> None:
    world = World("t4", "normal", 5)
    found = References.simulate(world, 1_000_000, 8).values["full"]
    assert np.all(np.abs(found - world.least_squares["full"]) < 0.01)


def test_skewed_errors_of_unequal_variance_do_not() -> None:
    found = References.simulate(World("lognormal", "unequal", 5), 1_000_000, 8)
    at_radius = found.values["full"][found.nearest(1.0)]
    truth = World("lognormal", "unequal", 5).least_squares["full"]
    assert at_radius[1] < 0.93 * truth[1]
    np.testing.assert_allclose(found.values["full"][-1], truth)


def test_truth_at_a_release_agrees_with_brute_force() -> None:
    """A transform that is off by a tenth: 10⁵ rows with references tell what 4·10⁶ rows do.

    Of the error of 10⁵ rows alone, about 0.004, most is gone.
    """
    world = World("lognormal", "exponential", 5)
    turn = np.eye(7) + 0.1 * np.random.default_rng(9).standard_normal((7, 7))
    transform, radius = whitening(world) @ turn, 1.2 * math.sqrt(7)
    truth = Truth(world, References.simulate(world, 2_000_000, 10), 100_000, 11)
    rng, gram = np.random.default_rng(12), np.zeros((7, 7))
    for _ in range(40):
        gram += weighted_gram(world.rows(100_000, rng), transform, [radius])[0]
    wanted = functionals(world, gram)
    for model, value, error in truth.at(transform, radius):
        assert np.mean(error) < 0.0015
        assert np.all(np.abs(value - wanted[model]) < 0.003), model
        assert not np.all(np.abs(world.least_squares[model] - wanted[model]) < 0.01), model

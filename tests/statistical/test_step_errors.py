"""The errors of a noisy Newton step are as large as stated, also where noise is as large as the step.

Rows are left out: score and Hessian matrix are given, noise of known law is added, and what is known of the
Hessian matrix otherwise is off by some tenths. Taking the noisy step for the true one, which has its noise as
well, makes intervals too long, and is shown to.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from dpgram.analysis.glm import NewtonStep
from dpgram.analysis.robust import drawn_towards

WIDTH = 6
DRAWS = 1_500
HESSIAN_NOISE = 0.06
Matrix = np.ndarray
Middle = Callable[[NewtonStep], Matrix]


def symmetric(draw: np.random.Generator, scale: float) -> Matrix:
    noise = np.tril(draw.normal(size=(WIDTH, WIDTH)), -1)
    return (noise + noise.T + math.sqrt(2.0) * np.diag(draw.normal(size=WIDTH))) * scale


def stated(step: NewtonStep) -> Matrix:
    return step.covariance(np.zeros((WIDTH, WIDTH)))


def by_the_noisy_step(step: NewtonStep) -> Matrix:
    moved, inverse = step.step(), np.linalg.inv(step.hessian)
    noise = step.hessian_sd**2 * (moved @ moved * np.eye(WIDTH) + np.outer(moved, moved))
    return inverse @ (step.score_sd**2 * np.eye(WIDTH) + noise) @ inverse


def without_its_noise(step: NewtonStep) -> Matrix:
    inverse = np.linalg.inv(step.hessian)
    return step.score_sd**2 * inverse @ inverse


def coverage(noise: float, away: float, middle: Middle, *, drawn: bool) -> float:
    """Of 95% intervals for all coefficients of θ₀ + H⁻¹s, `away` the length of that step over its noise."""
    draw = np.random.default_rng(7)
    inside = []
    for _ in range(DRAWS):
        other = np.eye(WIDTH) + symmetric(draw, 0.05)
        hessian = other @ (np.eye(WIDTH) + symmetric(draw, 0.03)) @ other.T
        direction = draw.normal(size=WIDTH)
        truth = away * noise * direction / np.linalg.norm(direction) * math.sqrt(WIDTH)
        step = NewtonStep(
            curve="linear",
            start=np.zeros(WIDTH),
            score=hessian @ truth + noise * draw.normal(size=WIDTH),
            hessian=hessian + symmetric(draw, HESSIAN_NOISE),
            score_sd=noise,
            hessian_sd=HESSIAN_NOISE,
            spread=None,
            spread_sd=0.0,
        )
        if drawn:
            held = drawn_towards(step.hessian, HESSIAN_NOISE**2, other @ other.T)
            assert held is not None
            step = replace(step, hessian=held.middle)
            if middle is stated:
                step = replace(
                    step,
                    hessian_sd=HESSIAN_NOISE * math.sqrt(held.left),
                    scale_variance=held.scale_variance,
                )
        reach = 1.96 * np.sqrt(np.diagonal(middle(step)))
        inside.append(np.abs(step.step() - truth) <= reach)
    return float(np.mean(inside))


@pytest.mark.parametrize("drawn", [False, True], ids=["as-measured", "drawn"])
@pytest.mark.parametrize("away", [0.0, 1.0, 4.0], ids="{}-noises-away".format)
def test_errors_of_a_step_are_as_large_as_stated(away: float, drawn: bool) -> None:
    assert 0.94 < coverage(0.3, away, stated, drawn=drawn) < 0.965


def test_other_errors_are_found_out() -> None:
    assert coverage(0.3, 4.0, by_the_noisy_step, drawn=True) > 0.97
    assert coverage(0.3, 4.0, without_its_noise, drawn=False) < 0.93


def test_without_noise_nothing_is_shrunken() -> None:
    hessian = np.eye(WIDTH) + 0.1
    held = drawn_towards(hessian, 0.0, np.eye(WIDTH))
    assert held is not None
    assert (held.left, held.scale_variance) == (1.0, 0.0)
    np.testing.assert_allclose(held.middle, hessian)


def test_a_hessian_matrix_that_noise_hides_is_none() -> None:
    assert drawn_towards(np.eye(WIDTH), 100.0, np.eye(WIDTH)) is None

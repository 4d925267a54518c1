"""The Wishart family against the likelihood ratios of the mechanisms themselves, drawn in full dimension.

δ(ε) = E_P (1 − e^{ε − L})₊ with L from the matrix densities (log-determinants and traces). Five standard
errors for each comparison (α < 6·10⁻⁷, about 40 comparisons), fixed seeds; a few per cent of noise more or
less are rejected.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt
import pytest

from dpgram.privacy.adjacency import AddRemove, ReplaceOne
from dpgram.privacy.curves._additive_wishart import log_pair
from dpgram.privacy.curves.wishart import (
    AdaptiveCurve,
    AdditiveWishartCurve,
    InverseWishartCurve,
    SketchCurve,
)

Floats = npt.NDArray[np.float64]
DRAWS = 200_000
STANDARD_ERRORS = 5.0
ADD, REPLACE = AddRemove(), ReplaceOne()


def agrees(losses: Floats, epsilon: float, delta: float) -> bool:
    excess = np.maximum(-np.expm1(np.minimum(epsilon - losses, 0.0)), 0.0)
    return abs(float(excess.mean()) - delta) <= STANDARD_ERRORS * float(excess.std()) / math.sqrt(len(excess))


def wishart(scale: Floats, degrees: int, seed: int) -> Floats:
    """Draws of Wishart_d(scale, degrees) by Bartlett's decomposition."""
    rng = np.random.default_rng(seed)
    width = len(scale)
    lower = np.tril(rng.standard_normal((DRAWS, width, width)), -1)
    diagonal = np.arange(width)
    lower[:, diagonal, diagonal] = np.sqrt(rng.chisquare(degrees - diagonal, (DRAWS, width)))
    lower = np.linalg.cholesky(scale) @ lower
    return np.asarray(lower @ lower.transpose(0, 2, 1))


def scale_losses(draws: Floats, own: Floats, other: Floats, degrees: int) -> Floats:
    """ln of the density of Wishart(own) over that of Wishart(other); the power of |M| cancels."""
    constant = 0.5 * degrees * (np.linalg.slogdet(other)[1] - np.linalg.slogdet(own)[1])
    difference = np.linalg.inv(other) - np.linalg.inv(own)
    return np.asarray(constant + 0.5 * np.einsum("nij,ji->n", draws, difference))


def rotation(width: int) -> Floats:
    return np.asarray(np.linalg.qr(np.random.default_rng(width).standard_normal((width, width)))[0])


DEGREES, RIDGE, WIDTH = 8, 3.0, 3


@pytest.mark.parametrize("family", [SketchCurve, InverseWishartCurve])
@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_sampling_under_add_remove(family: type[SketchCurve], epsilon: float) -> None:
    """The row lies along a direction in which G is zero: the worst case."""
    frame = rotation(WIDTH)
    small = RIDGE * np.eye(WIDTH) + 5.0 * np.outer(frame[1], frame[1])
    big = small + np.outer(frame[0], frame[0])
    if family is InverseWishartCurve:
        small, big = np.linalg.inv(small), np.linalg.inv(big)
    there = scale_losses(wishart(small, DEGREES, seed=1), small, big, DEGREES)
    back = scale_losses(wishart(big, DEGREES, seed=2), big, small, DEGREES)
    curve = family(adjacency=ADD, degrees=DEGREES, ratio=1 / RIDGE)
    for losses, direction in ((there, 0), (back, 1)):
        assert agrees(losses, epsilon, curve.directions(epsilon)[direction])
        for factor in (0.95, 1.05):
            wrong = family(adjacency=ADD, degrees=DEGREES, ratio=factor / RIDGE)
            assert not agrees(losses, epsilon, wrong.directions(epsilon)[direction])
    # The two directions are told apart.
    assert not agrees(there, epsilon, curve.directions(epsilon)[1])


@pytest.mark.parametrize("epsilon", [0.1, 0.5])
def test_sketch_under_replace_one(epsilon: float) -> None:
    frame = rotation(WIDTH)
    base = RIDGE * np.eye(WIDTH)
    one, other = base + np.outer(frame[0], frame[0]), base + np.outer(frame[1], frame[1])
    losses = scale_losses(wishart(one, DEGREES, seed=3), one, other, DEGREES)
    curve = SketchCurve(adjacency=REPLACE, degrees=DEGREES, ratio=1 / RIDGE)
    assert agrees(losses, epsilon, curve.delta(epsilon))
    for factor in (0.95, 1.05):
        wrong = SketchCurve(adjacency=REPLACE, degrees=DEGREES, ratio=factor / RIDGE)
        assert not agrees(losses, epsilon, wrong.delta(epsilon))


@pytest.mark.parametrize("angle", [0.2, 0.7, 1.2])
def test_rows_that_are_not_orthogonal_are_less_bad(angle: float) -> None:
    frame = rotation(WIDTH)
    base = RIDGE * np.eye(WIDTH)
    tilted = math.cos(angle) * frame[0] + math.sin(angle) * frame[1]
    one, other = base + np.outer(frame[0], frame[0]), base + np.outer(tilted, tilted)
    losses = scale_losses(wishart(one, DEGREES, seed=4), one, other, DEGREES)
    curve = SketchCurve(adjacency=REPLACE, degrees=DEGREES, ratio=1 / RIDGE)
    excess = np.maximum(-np.expm1(np.minimum(0.1 - losses, 0.0)), 0.0)
    assert excess.mean() + STANDARD_ERRORS * excess.std() / math.sqrt(DRAWS) < curve.delta(0.1)


def shift_losses(noise: Floats, shift: Floats, degrees: int) -> Floats:
    """ln of the density of W at the noise over that at noise + shift; infinite outside the cone."""
    power = 0.5 * (degrees - noise.shape[1] - 1)
    moved = noise + shift
    inside = np.linalg.eigvalsh(moved)[:, 0] > 0.0
    log_ratio = (
        np.linalg.slogdet(noise)[1]
        - np.linalg.slogdet(np.where(inside[:, None, None], moved, np.eye(len(shift))))[1]
    )
    return np.where(inside, power * log_ratio + 0.5 * np.trace(shift), np.inf)


@pytest.mark.parametrize("epsilon", [0.2, 0.8])
def test_additive_wishart_under_add_remove(epsilon: float) -> None:
    degrees, tau = 14, 2.5
    frame = rotation(WIDTH)
    row = tau * np.outer(frame[0], frame[0])
    noise = wishart(np.eye(WIDTH), degrees, seed=5)
    # P without the row puts noise where Q, with the row, needs noise − row; and the other way round.
    there, back = shift_losses(noise, -row, degrees), shift_losses(noise, row, degrees)
    assert np.isinf(there).any()
    for losses, direction in ((there, 0), (back, 1)):
        curve = AdditiveWishartCurve(adjacency=ADD, degrees=degrees - WIDTH + 1, ratio=tau)
        assert agrees(losses, epsilon, curve.directions(epsilon)[direction])
        for factor in (0.94, 1.06):
            wrong = AdditiveWishartCurve(adjacency=ADD, degrees=degrees - WIDTH + 1, ratio=factor * tau)
            assert not agrees(losses, epsilon, wrong.directions(epsilon)[direction])


@pytest.mark.parametrize(("l1", "l2"), [(1.0, 1.0), (2.0, 0.7), (0.5, 2.0), (3.0, 3.0), (3.0, 0.2)])
def test_additive_wishart_under_replace_one(l1: float, l2: float) -> None:
    degrees, epsilon = 12, 0.3
    m = degrees - WIDTH + 1
    frame = rotation(WIDTH)
    shift = l1 * np.outer(frame[0], frame[0]) - l2 * np.outer(frame[1], frame[1])
    losses = shift_losses(wishart(np.eye(WIDTH), degrees, seed=6), shift, degrees)
    assert agrees(losses, epsilon, math.exp(log_pair(m, l1, l2, epsilon)))
    for factor in (0.93, 1.07):
        assert not agrees(losses, epsilon, math.exp(log_pair(m, factor * l1, factor * l2, epsilon)))


def test_adaptive_sketch() -> None:
    """The loss of a Gaussian look, then that of a sketch; β is added to the curve, not drawn."""
    mu, beta, epsilon = 0.4, 1e-9, 0.6
    rng = np.random.default_rng(7)
    look = 0.5 * mu * mu + mu * rng.standard_normal(DRAWS)
    small, big = RIDGE * np.eye(2), RIDGE * np.eye(2) + np.diag([1.0, 0.0])
    losses = look + scale_losses(wishart(small, DEGREES, seed=8), small, big, DEGREES)
    inner = SketchCurve(adjacency=ADD, degrees=DEGREES, ratio=1 / RIDGE)
    assert agrees(losses, epsilon, AdaptiveCurve(inner=inner, mu=mu, beta=beta).directions(epsilon)[0])
    for factor in (0.93, 1.07):
        wrong = AdaptiveCurve(inner=inner, mu=factor * mu, beta=beta)
        assert not agrees(losses, epsilon, wrong.directions(epsilon)[0])

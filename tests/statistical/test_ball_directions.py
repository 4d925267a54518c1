"""The exact sampler of directions against densities on the circle and the sphere, with power both ways.

Fixed seeds, α = 10⁻⁴. Laws at 0.8 and 1.25 times the inverse temperature on the sphere, and at 0.6 and 1.6
times it on the circle, are rejected.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats
from tests.statistical.sphere import sphere_cells

from dpgram.core.balls import decided
from dpgram.core.noise import SeededEntropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.sampling.directions import Deflated, Directions, Frame

ALPHA = 1e-4
Cells = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
GRAM: Cells = np.array([[70, 20, 10], [20, 40, -9], [10, -9, 20]], dtype=np.int64) * ROW_NORM_SQUARED


def floats_of(directions: Directions) -> Floats:
    """The last direction, in the coordinates it was drawn in."""
    return np.array([float(x) for x in directions.drawn[-1].ball.entries()])


def on_the_circle(rest: Floats, direction: Floats) -> tuple[float, float]:
    """Twice the angle to the upper eigenvector, and κ/c: under ∝ exp(c·uᵀRu) that is von Mises of κ."""
    rising, vectors = np.linalg.eigh(rest)
    angle = np.arctan2(vectors[:, 0] @ direction, vectors[:, 1] @ direction)
    return (2.0 * angle + np.pi) % (2.0 * np.pi) - np.pi, 0.5 * (rising[1] - rising[0]) / ROW_NORM_SQUARED


def von_mises(drawn: list[tuple[float, float]], inverse_temperature: float) -> bool:
    """Kolmogorov–Smirnov on the probabilities of a smaller angle to either side."""
    angles, spreads = np.array(drawn).T
    below = stats.vonmises.cdf(np.abs(angles), inverse_temperature * spreads)
    return bool(stats.kstest(2.0 * below - 1.0, stats.uniform.cdf).pvalue > ALPHA)


@pytest.mark.parametrize("kappa", [0.01, 1.0, 40.0, 3e8])
def test_the_circle(kappa: float) -> None:
    """Also so sharp that floats would resolve the angle to seven digits only."""
    entropy, rows, drawn = SeededEntropy(5), 2**20, []
    gram = np.array([[rows, 0], [0, -rows]], dtype=np.int64) * ROW_NORM_SQUARED
    for _ in range(1000):
        frame = Frame(gram, entropy.random_bytes)
        frame.next(kappa / rows)
        drawn.append(on_the_circle(gram / 1.0, floats_of(frame)))
    assert von_mises(drawn, kappa / rows)
    for factor in (0.6, 1.6):
        assert von_mises(drawn, factor * kappa / rows) == (kappa < 0.1)  # a blind law is a blind law
    right = np.array([angle > 0.0 for angle, _ in drawn])
    assert stats.binomtest(int(right.sum()), len(right)).pvalue > ALPHA


def heights(factor: float, draws: int) -> list[float]:
    """|u_3| of draws at `factor` times c = 0.1."""
    entropy, found = SeededEntropy(11), []
    for _ in range(draws):
        frame = Frame(GRAM, entropy.random_bytes)
        frame.next(0.1 * factor)
        found.append(abs(floats_of(frame)[2]))
    return found


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.8, False), (1.25, False)])
def test_the_sphere(factor: float, accepted: bool) -> None:
    draws = 2500
    edges, mass = sphere_cells(0.1 * GRAM / ROW_NORM_SQUARED, 20)
    counts = np.histogram(heights(factor, draws), edges)[0]
    keep = mass * draws > 5
    observed = np.append(counts[keep], counts[~keep].sum())
    expected = np.append(mass[keep], mass[~keep].sum()) * draws
    assert (stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue > ALPHA) == accepted


def test_the_second_direction_of_a_frame_given_the_first() -> None:
    """Against the restriction of the matrix to the complement, formed anew from the published coordinates."""
    entropy, drawn = SeededEntropy(2), []
    for _ in range(1000):
        frame = Frame(GRAM, entropy.random_bytes)
        for cold in (0.02, 0.4):
            frame.next(cold)
            frame.reduce()
        first = top(decided(frame, partial(frame.cells, [2**60, 0, 0])))
        second = top(decided(frame, partial(frame.cells, [0, 2**60, 0])))
        complement = np.linalg.svd(first[None, :])[2][1:]
        drawn.append(on_the_circle(complement @ GRAM @ complement.T, complement @ second))
    assert [von_mises(drawn, 0.4 * factor) for factor in (1.0, 0.6, 1.6)] == [True, False, False]


def top(cells: npt.NDArray[np.object_]) -> Floats:
    """The upper eigenvector."""
    return np.linalg.eigh(cells.astype(float))[1][:, -1]


def test_the_second_direction_of_a_deflation_given_the_first() -> None:
    """Against C − λ̂θθᵀ, formed anew in floats."""
    entropy, drawn = SeededEntropy(4), []
    gram = GRAM[:2, :2]
    for _ in range(1000):
        deflated = Deflated(gram, entropy.random_bytes)
        deflated.next(0.01)
        first = floats_of(deflated)
        value = deflated.value_held() + 30 * ROW_NORM_SQUARED
        deflated.values.append(value)
        deflated.reduce()
        deflated.next(0.08)
        drawn.append(on_the_circle(gram - value * np.outer(first, first), floats_of(deflated)))
    assert [von_mises(drawn, 0.08 * factor) for factor in (1.0, 0.6, 1.6)] == [True, False, False]

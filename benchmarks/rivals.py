"""Two rivals from the literature that have no package: Tukey depth over models, and DP gradient descent.

Both in floats and for experiments only. Rows are (x, y) with a constant among the columns of x; the number
of rows is taken as public, which favours both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpgram.privacy.curves.calibrate import gaussian_sigma

Array = npt.NDArray[np.float64]

JITTER = 1e-10
"""Breaks ties between models, so that no box is flat."""


def chunk_models(x: Array, y: Array, models: int, generator: np.random.Generator) -> Array:
    """Least squares on disjoint random chunks of equal size, one model a line."""
    size = len(y) // models
    order = generator.permutation(len(y))[: models * size]
    pieces = x[order].reshape(models, size, x.shape[1])
    fitted = np.linalg.pinv(pieces, rcond=1e-8) @ y[order].reshape(models, size, 1)
    return np.asarray(fitted[..., 0])


def tukey(models: Array, epsilon: float, delta: float, generator: np.random.Generator) -> Array | None:
    """A point of large depth among the models, or None where the test does not allow a release.

    TukeyEM of Amin, Joseph, Ribero and Vassilvitskii (2022, "Easy differentially private linear regression"):
    the depth of a point is the smallest of its one-dimensional depths, so the points of depth ≥ i fill a box
    [sorted_j[i−1], sorted_j[m−i]] in coordinate j. Half of ε tests that the boxes around depth m/4 shrink so
    little that no data set within distance k is unsafe, k + Lap(2/ε) > ln(1/(2δ))·2/ε; the other half draws
    with density ∝ e^{(ε/2)·depth} among the points of depth ≥ m/4, as in the published program (its analysis
    would allow half that exponent: the stronger rival).
    """
    count, half = len(models), 0.5 * epsilon
    line = np.sort(models + JITTER * generator.random(models.shape), axis=0)
    deepest = count // 2
    lengths = np.array([line[count - i] - line[i - 1] for i in range(1, deepest + 1)])
    volumes = np.log(np.maximum(lengths, 1e-300)).sum(axis=1)
    """volumes[i − 1]: the logarithm of the volume of depth ≥ i."""
    least = deepest // 2
    distance = _distance_to_unsafety(volumes, least, half, delta)
    if distance + generator.laplace(scale=1.0 / half) <= math.log(0.5 / delta) / half:
        return None
    depths = np.arange(least, deepest + 1)
    outer = volumes[least - 1 :]
    shells = outer + np.log1p(-np.exp(np.append(outer[1:], -math.inf) - outer))
    depth = int(depths[np.argmax(shells + half * depths + generator.gumbel(size=len(depths)))])
    return _in_shell(line, depth, deepest, generator)


def _distance_to_unsafety(volumes: Array, least: int, epsilon: float, delta: float) -> int:
    """The largest k with min_g ln V(t−k−1) − ln V(t+k+g+1) − εg/2 ≤ ln(δ/(8e^ε)); −1 where there is none.

    The condition is monotone in k, as volumes fall with depth.
    """
    bound, found = math.log(delta / 8.0) - epsilon, -1
    for k in range(least - 1):
        inner = volumes[least + k + 1 :]
        if len(inner) == 0:
            break
        gains = 0.5 * epsilon * np.arange(1, len(inner) + 1)
        if float(np.min(volumes[least - k - 2] - inner - gains)) > bound:
            break
        found = k
    return found


def _in_shell(line: Array, depth: int, deepest: int, generator: np.random.Generator) -> Array:
    """Uniform among the points of depth exactly `depth`: the outer box without the inner one.

    Split by the first coordinate that leaves the inner box: inner before it, outer after it.
    """
    count = len(line)
    low, high = line[depth - 1], line[count - depth]
    if depth == deepest:
        return np.asarray(generator.uniform(low, high))
    inner_low, inner_high = line[depth], line[count - depth - 1]
    outer, inner = np.log(high - low), np.log(np.maximum(inner_high - inner_low, 1e-300))
    before = np.concatenate([[0.0], np.cumsum(inner)[:-1]])
    after = np.concatenate([np.cumsum(outer[::-1])[::-1][1:], [0.0]])
    margin = np.log(np.maximum((high - low) - (inner_high - inner_low), 1e-300))
    first = int(np.argmax(before + margin + after + generator.gumbel(size=len(low))))
    point = generator.uniform(low, high)
    point[:first] = generator.uniform(inner_low[:first], inner_high[:first])
    left, right = inner_low[first] - low[first], high[first] - inner_high[first]
    step = generator.uniform(0.0, left + right)
    point[first] = low[first] + step if step < left else inner_high[first] + (step - left)
    return np.asarray(point)


@dataclass(frozen=True)
class Descent:
    """Full-batch gradient descent: T steps, gradients of single rows clipped at C, step size η/(d+1)."""

    steps: int = 50
    clip: float = 1.0
    rate: float = 1.0

    def sigma(self, epsilon: float, delta: float) -> float:
        """T Gaussian releases are one of sensitivity C√T: exact composition, no bound is lost."""
        return gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=self.clip * math.sqrt(self.steps))

    def fit(self, x: Array, y: Array, epsilon: float, delta: float, generator: np.random.Generator) -> Array:
        """The mean of the later half of the iterates."""
        rows, width = x.shape
        sigma, theta = self.sigma(epsilon, delta), np.zeros(width)
        length = np.linalg.norm(x, axis=1)
        tail = []
        for step in range(self.steps):
            residual = x @ theta - y
            weight = residual * np.minimum(1.0, self.clip / np.maximum(np.abs(residual) * length, 1e-12))
            noisy = weight @ x + sigma * generator.standard_normal(width)
            theta = theta - self.rate / width * noisy / rows
            if step >= self.steps // 2:
                tail.append(theta)
        return np.asarray(np.mean(tail, axis=0))


UNTUNED = Descent()
GRID: Sequence[Descent] = tuple(
    Descent(steps=steps, clip=clip, rate=rate)
    for steps in (10, 80)
    for clip in (0.3, 1.0)
    for rate in (1.0, 3.0, 9.0)
)
"""The tuned form takes the best of these for each set and ε, by the test rows: a choice that costs budget."""
MODELS = (125, 250, 500, 1000, 2000, 4000, 8000)
"""How many models TukeyEM may fit; the paper takes 1,000. Again the best by the test rows is shown."""

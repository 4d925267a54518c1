"""Rivals without a package: Tukey depth over models, gradient descent, noisy marginals, binned sums.

All in floats and for experiments only. The number of rows is taken as public, which favours them. Tukey depth
and gradient descent have a constant among the columns of x; the others add it themselves.
"""

from __future__ import annotations

import itertools
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


@dataclass(frozen=True)
class Marginals:
    """Least squares from noisy counts of every pair of columns in [-1, 1], cut into equal bins.

    A row adds 1 to each of the p pairs, so one Gaussian release of sensitivity √p pays for all. Moments are
    sums over cells of counts times bin centres: unbiased for the binned table. What noise made negative is
    cut off, and the noise of a moment's matrix is added as a ridge.
    """

    bins: int = 16

    def fit(self, x: Array, y: Array, epsilon: float, delta: float, generator: np.random.Generator) -> Array:
        table = np.column_stack([x, y])
        rows, width = table.shape
        pairs = list(itertools.combinations(range(width), 2))
        sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=math.sqrt(len(pairs)))
        cells = np.clip((0.5 * (table + 1.0) * self.bins).astype(np.int64), 0, self.bins - 1)
        centres = (2.0 * np.arange(self.bins) + 1.0) / self.bins - 1.0
        moments = np.zeros((width + 1, width + 1))
        moments[0, 0] = 0.5 * rows
        for a, b in pairs:
            counts = np.bincount(cells[:, a] * self.bins + cells[:, b], minlength=self.bins**2)
            noisy = (counts + sigma * generator.standard_normal(self.bins**2)).reshape(self.bins, self.bins)
            moments[a + 1, b + 1] = centres @ noisy @ centres
            for place, margin in ((a + 1, noisy.sum(axis=1)), (b + 1, noisy.sum(axis=0))):
                moments[0, place] += centres @ margin / (width - 1)  # the mean of all pairs that tell it
                moments[place, place] += 0.5 * (centres**2 @ margin) / (width - 1)
        deviation = sigma * float(np.sum(np.outer(centres, centres) ** 2)) ** 0.5
        return _ridge(moments + moments.T, deviation)


def _ridge(moments: Array, deviation: float) -> Array:
    """Coefficients from noisy moments of (1, x, y): positive semidefinite, with a ridge of the noise."""
    values, vectors = np.linalg.eigh(moments)
    moments = (vectors * np.maximum(values, 0.0)) @ vectors.T
    width = len(moments) - 1
    penalty = np.full(width, deviation * math.sqrt(width))
    penalty[0] = 0.0
    gram = moments[:width, :width] + np.diag(penalty)
    return np.asarray(np.linalg.lstsq(gram, moments[:width, width], rcond=1e-10)[0])


@dataclass(frozen=True)
class Bins:
    """Least squares on the noisy means of bins: boxes of features found by noisy counts.

    A box is halved along the next feature while its noisy count is above `least` deviations of what a bin
    will be measured with; a row is in one box a depth, so all counts have sensitivity √depths. Then each bin
    gives Σ (1, x, y) once, of sensitivity √(d + 2). Means are weighted by noisy counts, and the part of
    Σ s sᵀ/n that noise explains is taken away.
    """

    share: float = 0.2
    """Of μ², for the counts that find the bins."""
    depths: int = 12
    least: float = 8.0

    def fit(self, x: Array, y: Array, epsilon: float, delta: float, generator: np.random.Generator) -> Array:
        width = x.shape[1]
        unit = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
        count_sigma = unit * math.sqrt(self.depths / self.share)
        sigma = unit * math.sqrt((width + 2) / (1.0 - self.share))
        sums = []
        boxes = [(np.arange(len(y)), -np.ones(width), np.ones(width))]
        rows = np.column_stack([np.ones(len(y)), x, y])
        for depth in range(self.depths):
            halves = []
            for inside, low, high in boxes:
                if len(inside) + count_sigma * generator.standard_normal() <= self.least * sigma:
                    sums.append(rows[inside].sum(axis=0))
                    continue
                place = depth % width
                middle = 0.5 * (low[place] + high[place])
                above = x[inside, place] > middle
                upper_low, lower_high = low.copy(), high.copy()
                upper_low[place] = lower_high[place] = middle
                halves += [(inside[~above], low, lower_high), (inside[above], upper_low, high)]
            boxes = halves
        sums += [rows[inside].sum(axis=0) for inside, _, _ in boxes]
        noisy = np.array(sums) + sigma * generator.standard_normal((len(sums), width + 2))
        noisy = noisy[noisy[:, 0] > 2.0 * sigma]
        if len(noisy) == 0:
            return np.zeros(width + 1)
        moments = (noisy / noisy[:, :1]).T @ noisy
        moments[1:, 1:] -= sigma**2 * float(np.sum(1.0 / noisy[:, 0])) * np.eye(width + 1)
        return _ridge(moments, sigma * math.sqrt(len(noisy)))

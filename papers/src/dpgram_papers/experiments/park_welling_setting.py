"""Park and Welling's Figure 1: its data, its algorithm as printed, and the same under honest accountings.

d = 10, ε = 0.9: x ~ N(0, I), all rows divided by the longest; θ ~ N(0, I); y = Xθ + noise of variance 0.01,
divided by the largest |y|. Measured: log-likelihood per test row (a tenth as many rows) under the true noise.
The paper leaves open δ, J and the floor of the weights: 10⁻⁶, 5 and a tenth of the bound here. Neighbours
differ in one replaced row, as there.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import SeededEntropy
from dpgram.estimators.lp_regression import LpRegression
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.park_welling import OneSidedWishart, step_epsilon
from dpgram_papers.regressions import PrintedRobustRegression

Array: TypeAlias = npt.NDArray[np.float64]

WIDTH: Final = 10
EPSILON: Final = 0.9
DELTA: Final = 1e-6
ITERATIONS: Final = 5
FLOOR: Final = 0.1
PRINTED: Final = "as printed (one-sided Wishart)"


@final
@dataclass(frozen=True)
class Simulated:
    """One data set with its test rows and the deviation of its noise after scaling."""

    x: Array
    y: Array
    test_x: Array
    test_y: Array
    sigma: float

    def log_likelihood(self, theta: Array) -> float:
        """Per test row."""
        residual = (self.test_y - self.test_x @ theta) / self.sigma
        return float(-0.5 * np.mean(residual**2) - math.log(self.sigma * math.sqrt(2.0 * math.pi)))


def simulated(rows: int, seed: int) -> Simulated:
    """Data set number `seed` of that size."""
    generator = np.random.default_rng([seed, rows])
    count = rows + rows // 10
    x = generator.standard_normal((count, WIDTH))
    x /= np.linalg.norm(x, axis=1).max()
    y = x @ generator.standard_normal(WIDTH) + 0.1 * generator.standard_normal(count)
    scale = np.abs(y).max()
    return Simulated(x[:rows], y[:rows] / scale, x[rows:], y[rows:] / scale, 0.1 / float(scale))


def weights(x: Array, y: Array, theta: Array) -> Array:
    """Of the L1 loss, in parts of the largest."""
    return np.asarray(FLOOR / np.maximum(np.abs(y - x @ theta), FLOOR))


def non_private(data: Simulated, _seed: int) -> Array:
    """Reweighted least squares."""
    s: Array = np.ones(len(data.y))
    theta: Array = np.zeros(WIDTH)
    for _ in range(ITERATIONS):
        theta = np.asarray(np.linalg.solve((data.x * s[:, None]).T @ data.x, data.x.T @ (s * data.y)))
        s = weights(data.x, data.y, theta)
    return theta


def as_printed(data: Simulated, seed: int) -> Array:
    """The paper's own noise, one-sided Wishart included: not private, in floats."""
    entropy, share = SeededEntropy(seed), step_epsilon(EPSILON, ITERATIONS)
    s: Array = np.ones(len(data.y))
    theta: Array = np.zeros(WIDTH)
    wishart = OneSidedWishart(claimed=Guarantee(share))
    for _ in range(ITERATIONS):
        noise = entropy.generator().laplace(0.0, 2.0 * math.sqrt(WIDTH) / share, WIDTH)
        second = wishart.draw((data.x * s[:, None]).T @ data.x, entropy)
        theta = np.asarray(np.linalg.solve(second, data.x.T @ (s * data.y) + noise))
        s = weights(data.x, data.y, theta)
    return theta


@final
@dataclass(frozen=True)
class Method:
    """One line of the figure."""

    name: str
    parameters: dict[str, object]
    epsilon: float = EPSILON
    iterations: int = ITERATIONS
    estimator: type[LpRegression | PrintedRobustRegression] = LpRegression

    def model(self) -> LpRegression | PrintedRobustRegression:
        """The estimator that draws it."""
        model = self.estimator(
            self.epsilon,
            DELTA,
            x_norm=1.0,
            y_bound=1.0,
            iterations=self.iterations,
            floor=FLOOR,
            adjacency="replace-one",
        )
        for name, value in self.parameters.items():
            setattr(model, name, value)
        return model

    def __call__(self, data: Simulated, seed: int) -> Array:
        """θ on one data set."""
        model = self.model()
        model.entropy = SeededEntropy(seed)
        return np.asarray(model.fit(data.x, data.y).coef_)

    def true_epsilon(self) -> float:
        """ε at δ = 10⁻⁶, from a fit on no rows: it depends on public facts alone."""
        model = self.model()
        model.entropy = SeededEntropy(0)
        return float(model.fit(np.zeros((0, WIDTH)), np.zeros(0)).guarantee_.epsilon)


@lru_cache(maxsize=1)
def methods() -> tuple[Method, ...]:
    """The accountings, with Gaussian noise where they allow it and with pure noise."""
    pure: dict[str, object] = {"first": "laplace", "second": "matrix-laplace"}
    mean_cdp = Method("mean-cdp (Laplace)", {"first": "laplace"}, estimator=PrintedRobustRegression)
    return (
        Method("zcdp (Gaussian, the default)", {"accounting": "zcdp"}),
        Method("gdp (Gaussian, exact)", {"accounting": "gdp"}),
        Method("zcdp (Laplace)", {"accounting": "zcdp"} | pure),
        Method("advanced (Laplace)", {"accounting": "advanced"} | pure),
        Method("advanced (Gaussian)", {"accounting": "advanced"}),
        Method("basic (Laplace)", {"accounting": "basic"} | pure),
        Method("basic (Gaussian)", {"accounting": "basic"}),
        mean_cdp,
        Method("mean-cdp (Gaussian)", {}, estimator=PrintedRobustRegression),
        Method("zcdp at the true ε of mean-cdp (Laplace)", {"accounting": "zcdp"}, mean_cdp.true_epsilon()),
    )

"""The default fits the intercept with the rest. Where columns lie far from the middle of their bounds, as
counts do, eliminating it first throws away the best measured direction: the same matrices, both ways."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import dpgram as dg
from dpgram.analysis.moments import Moments
from dpgram.analysis.noise_aware import noise_aware
from dpgram.analysis.problem import complement_of, isotropic
from dpgram.analysis.results import Regression
from dpgram.privacy.entropy import SeededEntropy

COLUMNS = 8
TABLES = 9
Array = npt.NDArray[np.float64]


def counts(seed: int, rows: int) -> tuple[Array, Array]:
    """A few each, in bounds of fifty, rising with how busy a row is; y is their sum and some noise."""
    generator = np.random.default_rng([7, seed])
    busy = generator.gamma(2.0, 2.0, rows)
    x = np.minimum(generator.poisson(busy[:, None], (rows, COLUMNS)), 50.0)
    return x.astype(np.float64), np.clip(x.sum(axis=1) + generator.normal(0, 2.0, rows), 0.0, 400.0)


def centred(fit: Regression) -> Array:
    """Encoded function of the same release after the intercept has been eliminated."""
    moments, design = fit.moments, fit.design
    problem = isotropic(moments, design)
    constant = problem.basis.T @ moments.project(design.vectors[:, 0])
    toward = problem.gram_xx @ constant
    total = float(constant @ problem.gram_xy)
    mean, basis = total / float(constant @ toward), complement_of(toward)
    found = noise_aware(
        basis.T @ problem.gram_xx @ basis,
        basis.T @ problem.gram_xy,
        problem.gram_yy - mean * total,
        noise=problem.noise,
        target_norm=float(np.hypot(problem.target_norm, mean * np.linalg.norm(constant))),
    )
    return problem.function(basis @ found.theta + mean * constant)


def r_squared(values: Array, x: Array, y: Array) -> float:
    """By coefficients in original units, the intercept first."""
    predicted = values[0] + x @ values[1:]
    return 1.0 - float(np.mean((y - predicted) ** 2) / y.var())


def test_counts_are_predicted_better_without_centring() -> None:
    """Medians of nine tables at ε = 0.3: 0.91 against 0.12."""
    names = [f"x{i}" for i in range(COLUMNS)]
    schema = dg.Schema(*(dg.numeric(name, 0, 50) for name in names), dg.numeric("y", 0, 400))
    together, apart = [], []
    for seed in range(TABLES):
        x, y = counts(seed, 4000)
        table = dict(zip(names, x.T, strict=True)) | {"y": y}
        release = dg.publish(table, schema, epsilon=0.3, delta=1e-6, entropy=SeededEntropy(seed))
        fit = release.regress("y")
        test_x, test_y = counts(1000 + seed, 4000)
        together.append(r_squared(fit.values, test_x, test_y))
        function = fit.design.from_encoded(centred(fit), Moments.of(release))
        apart.append(r_squared(fit.design.coefficients(function), test_x, test_y))
    assert np.median(together) > 0.75
    assert np.median(together) > np.median(apart) + 0.5


def test_without_noise_both_are_least_squares() -> None:
    """At a huge ε the intercept makes no difference."""
    x, y = counts(0, 2000)
    schema = dg.Schema(dg.numeric("x0", 0, 50), dg.numeric("x1", 0, 50), dg.numeric("y", 0, 400))
    table = {"x0": x[:, 0], "x1": x[:, 1], "y": y}
    with pytest.warns(dg.DpgramWarning, match="protect little"):
        release = dg.publish(table, schema, epsilon=1e6, delta=1e-6, entropy=SeededEntropy(1))
    fit = release.regress("y")
    exact = np.linalg.lstsq(np.column_stack([np.ones(len(y)), x[:, :2]]), y, rcond=None)[0]
    np.testing.assert_allclose(fit.values, exact, rtol=2e-3)
    function = fit.design.from_encoded(centred(fit), Moments.of(release))
    np.testing.assert_allclose(fit.design.coefficients(function), exact, rtol=2e-3)

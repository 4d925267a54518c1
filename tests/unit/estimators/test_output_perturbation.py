"""Output perturbation: the minimiser, how far one row moves it, both noises, and an audit."""

from __future__ import annotations

from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import gamma, kstest

from dpgram.audit import audit
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.errors import GuaranteeError
from dpgram.estimators.output_perturbation import OutputPerturbation
from dpgram.privacy.accountant import PureEvent
from dpgram.privacy.adjacency import AddRemove
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements import proven_minimiser
from dpgram.publishing.measurements.minimiser import RidgeProblem
from dpgram.publishing.measurements.proven_minimiser import on_grid

BOUNDS = {"x_norm": 1.0, "y_bound": 1.0}
UNIT = 1 << 20
STEPS = 2.0**40


def minimiser(x: np.ndarray, y: np.ndarray, ridge: float, radius: float) -> np.ndarray:
    q, t = np.rint(x * 1024).astype(np.int64), np.rint(y * 1024).astype(np.int64)
    cells = on_grid(q.T @ q, q.T @ t, unit=UNIT, ridge=ridge, radius=radius, scale=STEPS)
    return cells.astype(np.float64) / STEPS


def rows(seed: int, count: int, width: int) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((count, width))
    x /= np.maximum(1.0, np.linalg.norm(x, axis=1, keepdims=True)) * 1.01  # 1.01: rounding stays inside
    return np.rint(x * 1024) / 1024, np.rint(generator.uniform(-1, 1, count) * 1024) / 1024


@pytest.mark.parametrize("radius", [0.05, 0.3, 10.0])
def test_the_minimiser_is_the_constrained_one(radius: float) -> None:
    x, y = rows(1, 200, 3)
    y = np.clip(y * 0.1 + x[:, 0], -1, 1)
    y = np.rint(y * 1024) / 1024
    ours = minimiser(x, y, 2.0, radius)
    assert np.linalg.norm(ours) <= radius * (1 + 1e-9)
    found = minimize(
        lambda t: 0.5 * np.sum((y - x @ t) ** 2) + np.sum(t**2),
        ours * 0.9,
        jac=lambda t: x.T @ (x @ t - y) + 2.0 * t,
        constraints={"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2.0 * t},
        method="SLSQP",
        options={"ftol": 1e-15},
    )
    assert ours == pytest.approx(found.x, abs=1e-6)


@settings(max_examples=80, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    count=st.integers(0, 30),
    ridge=st.floats(0.05, 20.0),
    radius=st.floats(0.05, 5.0),
    replace=st.booleans(),
)
def test_no_row_moves_it_further_than_proven(
    seed: int, count: int, ridge: float, radius: float, replace: bool
) -> None:
    x, y = rows(seed, count + 2, 2)
    y[-2:] = np.sign(y[-2:])  # extreme rows at the end
    without = minimiser(
        x[: count + 1] if replace else x[:count], y[: count + 1] if replace else y[:count], ridge, radius
    )
    other = np.arange(count + 2) != count
    changed = minimiser(x[other], y[other], ridge, radius)
    bound = min((2 if replace else 1) * (1 + radius) / ridge, 2 * radius)
    assert np.linalg.norm(changed - without) <= bound


@pytest.mark.parametrize("ridge", [1e-27, 1.0, 1e27])
@pytest.mark.parametrize("radius", [1e-27, 1.0, 1e27])
@pytest.mark.parametrize("count", [0, 1, 2**33])
def test_no_table_is_refused(ridge: float, radius: float, count: int) -> None:
    """By the ends of all ranges that are allowed; it once depended on a row."""
    problem = RidgeProblem(ridge=ridge, radius=radius, width=2, adjacency=AddRemove())
    for first in (2**15, 1):  # rows as long as they may be, and hardly any
        cell = np.array([[first * first, 0], [0, 0]], dtype=object) * count
        exact: Any = SimpleNamespace(xx=cell, xy=np.array([first << 15, 0], dtype=object) * count)
        found = problem.solved(exact)
        slope = min(first * 2**15 * count / (first * first * count + ridge * 2**30), radius)
        assert float(found[0] / problem.steps) == pytest.approx(slope, rel=1e-9, abs=2 / problem.steps)


def test_one_row_does_not_decide_whether_it_fits() -> None:
    def fitted(count: int) -> OutputPerturbation:
        x = np.tile([[5e7, 0.0]], (count, 1))
        return OutputPerturbation(x_norm=1e8, y_bound=1.0, entropy=SeededEntropy(1)).fit(x, np.ones(count))

    assert all(np.isfinite(fitted(count).coef_).all() for count in (501, 502))


@pytest.mark.parametrize("count", [1, 2])
def test_a_ball_that_holds_zero_asks_for_more_bits(count: int) -> None:
    """At 256 bits the second row made a step of Newton's a division by zero, after the charge."""
    far = 9.9e8
    x = np.array([[0, 0, 1, -2, 0], [-1489, 2253, -25748, 20085, -64]])[:count] * (far / 2**15)
    found = OutputPerturbation(
        x_norm=far, y_bound=1.0, alpha=1e-9, theta_bound=10.0 / far, entropy=SeededEntropy(1)
    ).fit(x, np.array([1.0, 0.5])[:count])
    assert np.isfinite(found.coef_).all()


@pytest.mark.parametrize("bits", [8, 16, 32, 64])
def test_the_first_number_of_bits_does_not_matter(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """With few of them most balls hold zero; what is found is the same."""
    dice = np.random.default_rng(bits)
    for width in (2, 5, 12):
        q = dice.integers(-6000, 6000, (width - 1, width))  # one row too few: a pivot of the ridge alone
        sums = (q.T @ q, q.T @ dice.integers(-(2**15), 2**15, width - 1))
        of = partial(on_grid, *sums, unit=1 << 30, ridge=1e-15, radius=1e-2, scale=STEPS)
        expected = of()
        with monkeypatch.context() as patch:
            patch.setattr(proven_minimiser, "START_BITS", bits)
            assert np.abs(of() - expected).max() <= 2  # each is within 1 of the truth


def test_the_bound_is_nearly_reached() -> None:
    """A first row x = 1, y = −1 at a large ridge moves θ by nearly 1/λ, against (1 + R)/λ with a small R."""
    moved = minimiser(np.array([[1.0]]), np.array([-1.0]), 100.0, 0.02)
    assert abs(moved[0]) > 0.95 * (1 + 0.02) / 100.0 / 1.02


@pytest.mark.parametrize("noise", ["gamma", "gaussian"])
def test_finds_the_coefficients(noise: str) -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((50_000, 3))
    x /= np.linalg.norm(x, axis=1).max()
    theta = np.array([0.5, -0.3, 0.1])
    y = x @ theta + 0.02 * generator.standard_normal(50_000)
    fit = OutputPerturbation(1.0, 1e-6, alpha=300.0, noise=noise, **BOUNDS, entropy=SeededEntropy(2)).fit(
        x, y
    )
    exact = np.linalg.solve(x.T @ x + 300.0 * np.eye(3), x.T @ y)
    assert fit.coef_ == pytest.approx(exact, abs=0.15)


def test_gamma_noise_has_its_law_and_is_pure() -> None:
    x, y = np.zeros((0, 3)), np.zeros(0)
    models = [
        OutputPerturbation(2.0, 0.0, alpha=4.0, **BOUNDS, entropy=SeededEntropy(s)) for s in range(1500)
    ]
    lengths = np.array([np.linalg.norm(model.fit(x, y).coef_) for model in models])
    sensitivity = 2.0 / 4.0
    assert kstest(lengths, gamma(3, scale=sensitivity / 2.0).cdf).pvalue > 1e-3
    assert kstest(lengths, gamma(3, scale=1.15 * sensitivity / 2.0).cdf).pvalue < 1e-3
    one = models[0]
    assert one.event_ == PureEvent(epsilon=2.0)
    assert one.guarantee_.numerical_delta == 0.0
    assert (one.guarantee_.epsilon, one.guarantee_.delta) == (2.0, 0.0)


@pytest.mark.parametrize("adjacency", ["add-remove", "replace-one"])
def test_gaussian_noise_is_the_exact_one(adjacency: str) -> None:
    fit = OutputPerturbation(1.0, 1e-6, alpha=4.0, adjacency=adjacency, **BOUNDS, entropy=SeededEntropy(1))
    fit.fit(
        np.zeros((0, 2)) if adjacency == "add-remove" else np.zeros((3, 2)),
        np.zeros(0 if adjacency == "add-remove" else 3),
    )
    assert fit.event_.mu == pytest.approx(1.0 / 4.225, rel=1e-3)
    assert fit.guarantee_.numerical_delta == 0.0


@pytest.mark.parametrize(("drawn", "passes"), [(1.0, True), (8.0, False)])
def test_audit(drawn: float, passes: bool) -> None:
    """Tables whose minimisers are far apart, 800 fits each, 99.9% confidence, against a claim of ε = 1."""
    full = np.array([[1.0]]), np.array([-1.0])
    empty = np.zeros((0, 1)), np.zeros(0)

    def run(data: tuple[np.ndarray, np.ndarray], entropy: Entropy) -> float:
        seeded = SeededEntropy(int.from_bytes(entropy.random_bytes(8), "little"))
        model = OutputPerturbation(drawn, 0.0, alpha=9.0, theta_bound=0.12, **BOUNDS, entropy=seeded)
        return float(model.fit(*data).coef_[0])

    result = audit(
        partial(run, full), partial(run, empty), runs=800, statistic=np.array, entropy=SeededEntropy(5)
    )
    assert result.passes(Guarantee(1.0)) is passes


@pytest.mark.parametrize("wrong", [{"alpha": 0.0}, {"noise": "laplace"}, {"noise": "gaussian", "delta": 0.0}])
def test_refuses(wrong: dict[str, object]) -> None:
    with pytest.raises(GuaranteeError):
        OutputPerturbation(1.0, 1e-6, **BOUNDS).set_params(**wrong).fit(np.zeros((2, 1)), np.zeros(2))

"""Lasso and elastic net from a Gram matrix: scikit-learn's numbers, and what must hold for any table."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest
from sklearn.linear_model import ElasticNet

from dpgram.analysis import sparse
from dpgram.analysis.sparse import elastic_net
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
SHAPES = [(50, 3, 0.0), (200, 12, 0.5), (80, 40, 0.9), (30, 60, 0.3)]
"""Rows, columns, correlation of neighbouring columns; the last has more columns than rows."""
PENALTIES = [(0.001, 1.0), (0.05, 1.0), (0.02, 0.5), (0.3, 0.1), (0.01, 0.0)]


def table(rows: int, width: int, correlation: float) -> tuple[Matrix, Matrix]:
    rng = np.random.default_rng(rows + width)
    x = rng.normal(size=(rows, width))
    for j in range(1, width):
        x[:, j] = correlation * x[:, j - 1] + np.sqrt(1 - correlation**2) * x[:, j]
    true = np.where(np.arange(width) % 3 == 0, 1.5, 0.0)
    return x, x @ true + rng.normal(size=rows)


def fitted(x: Matrix, y: Matrix, alpha: float, l1_ratio: float) -> Matrix:
    return elastic_net(x.T @ x, x.T @ y, rows=len(x), alpha=alpha, l1_ratio=l1_ratio)


def objective(x: Matrix, y: Matrix, theta: Matrix, alpha: float, l1_ratio: float) -> float:
    loss = np.sum((y - x @ theta) ** 2) / (2 * len(x))
    return float(loss + alpha * (l1_ratio * np.abs(theta).sum() + 0.5 * (1 - l1_ratio) * theta @ theta))


@pytest.mark.parametrize(("alpha", "l1_ratio"), PENALTIES)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_it_is_scikit_learns(shape: tuple[int, int, float], alpha: float, l1_ratio: float) -> None:
    x, y = table(*shape)
    ours = fitted(x, y, alpha, l1_ratio)
    if l1_ratio == 0.0:  # a ridge: scikit-learn's descent warns that it is not meant for it
        wanted = np.linalg.solve(x.T @ x + alpha * len(x) * np.eye(x.shape[1]), x.T @ y)
        np.testing.assert_allclose(ours, wanted, rtol=1e-8, atol=1e-10)
        return
    theirs = ElasticNet(alpha=alpha, l1_ratio=l1_ratio, tol=1e-14, max_iter=1_000_000, fit_intercept=False)
    theirs.fit(x, y)
    np.testing.assert_allclose(ours, theirs.coef_, rtol=1e-5, atol=1e-6)
    # Theirs stops at a small gap; ours may not be the worse of the two.
    assert objective(x, y, ours, alpha, l1_ratio) <= objective(x, y, theirs.coef_, alpha, l1_ratio) + 1e-14


def test_no_point_nearby_is_better() -> None:
    x, y = table(200, 12, 0.5)
    theta = fitted(x, y, 0.05, 0.7)
    best = objective(x, y, theta, 0.05, 0.7)
    rng = np.random.default_rng(1)
    for size in (1e-1, 1e-3, 1e-5):
        for _ in range(50):
            assert objective(x, y, theta + size * rng.normal(size=12), 0.05, 0.7) > best


def test_the_order_of_columns_does_not_matter() -> None:
    x, y = table(80, 40, 0.9)
    order = np.random.default_rng(2).permutation(40)
    np.testing.assert_allclose(
        fitted(x[:, order], y, 0.02, 1.0), fitted(x, y, 0.02, 1.0)[order], rtol=1e-9, atol=1e-11
    )


def test_turning_a_column_round_turns_its_coefficient() -> None:
    x, y = table(200, 12, 0.5)
    signs = np.where(np.arange(12) % 2 == 0, 1.0, -1.0)
    np.testing.assert_allclose(
        fitted(x * signs, y, 0.05, 0.8), signs * fitted(x, y, 0.05, 0.8), rtol=1e-9, atol=1e-11
    )


def test_units_of_the_target_go_into_the_penalty() -> None:
    x, y = table(200, 12, 0.5)
    np.testing.assert_allclose(fitted(x, 1e6 * y, 1e6 * 0.05, 1.0), 1e6 * fitted(x, y, 0.05, 1.0), rtol=1e-9)


def test_every_row_twice_changes_nothing() -> None:
    x, y = table(200, 12, 0.5)
    twice = fitted(np.vstack([x, x]), np.concatenate([y, y]), 0.05, 0.6)
    np.testing.assert_allclose(twice, fitted(x, y, 0.05, 0.6), rtol=1e-9, atol=1e-11)


def test_a_large_penalty_leaves_nothing_and_a_slightly_smaller_one_does() -> None:
    x, y = table(200, 12, 0.5)
    largest = np.abs(x.T @ y).max() / len(x)
    assert not fitted(x, y, largest * 1.0001, 1.0).any()
    assert np.count_nonzero(fitted(x, y, largest * 0.999, 1.0)) == 1


def test_a_repeated_column_shares_the_coefficient_and_the_fit_stays() -> None:
    x, y = table(200, 12, 0.5)
    once = fitted(x, y, 0.05, 1.0)
    repeated = np.hstack([x, x[:, :1]])
    both = fitted(repeated, y, 0.05, 1.0)
    np.testing.assert_allclose(repeated @ both, x @ once, rtol=1e-7, atol=1e-9)
    assert both[0] + both[-1] == pytest.approx(once[0], rel=1e-7)


def test_no_penalty_is_least_squares() -> None:
    x, y = table(200, 12, 0.5)
    np.testing.assert_allclose(fitted(x, y, 0.0, 1.0), np.linalg.lstsq(x, y)[0], rtol=1e-9)


def test_empty_and_silent_columns() -> None:
    assert elastic_net(np.zeros((0, 0)), np.zeros(0), rows=5.0, alpha=0.1, l1_ratio=1.0).shape == (0,)
    silent = elastic_net(np.diag([4.0, 0.0]), np.array([2.0, 1.0]), rows=1.0, alpha=0.5, l1_ratio=1.0)
    np.testing.assert_allclose(silent, [0.375, 0.0])


@pytest.mark.parametrize("shape", [(1000, 200, 0.999), (30, 60, 0.3), (20, 400, 0.2)], ids=str)
def test_wide_and_singular_is_still_exact(shape: tuple[int, int, float]) -> None:
    """Neighbours that are almost the same, or far more columns than rank: plain descent takes for ever."""
    x, y = table(*shape)
    theta = fitted(x, y, 1e-4, 1.0)
    gradient = x.T @ (y - x @ theta) / len(x)
    np.testing.assert_allclose(gradient[theta != 0], 1e-4 * np.sign(theta[theta != 0]), rtol=1e-6)
    assert np.all(np.abs(gradient[theta == 0]) <= 1e-4 * (1 + 1e-6))


def test_what_does_not_converge_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparse, "ROUNDS", 1)
    x, y = table(80, 40, 0.9)
    with pytest.raises(AnalysisError, match="did not converge"):
        fitted(x, y, 1e-3, 1.0)

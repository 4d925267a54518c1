"""The covariance for other software: with names, and positive semidefinite whatever the noise."""

from __future__ import annotations

import numpy as np
import pytest
from tests.flat import publish

from dpgram.errors import AnalysisError
from dpgram.privacy import SeededEntropy
from dpgram.release import Release
from dpgram.schema import Schema, categorical, numeric

SCHEMA = Schema(*(numeric(f"x{i}", -40, 40) for i in range(5)), categorical("site", ["a", "b", "c"]))


def table(rows: int) -> dict[str, np.ndarray]:
    """One common factor behind five numbers."""
    rng = np.random.default_rng(2)
    common = rng.normal(0, 8, rows)
    loadings = [1.0, 0.8, 0.6, -0.7, 0.9]
    numbers = {
        f"x{i}": (load * common + rng.normal(0, 5, rows)).clip(-40, 40) for i, load in enumerate(loadings)
    }
    return numbers | {"site": rng.choice(["a", "b", "c"], rows)}


def released(rows: int, epsilon: float) -> Release:
    return publish(
        table(rows), SCHEMA, epsilon=epsilon, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(4)
    )


def test_names_and_numbers() -> None:
    found = released(30_000, 10.0).covariance()
    assert found.names == SCHEMA.names[1:]
    numbers = np.column_stack([table(30_000)[f"x{i}"] for i in range(5)])
    np.testing.assert_allclose(np.asarray(found)[:5, :5], np.cov(numbers.T, bias=True), rtol=0.02, atol=0.3)
    assert found["x0", "x1"] == found["x1", "x0"] == pytest.approx(np.cov(numbers[:, :2].T)[0, 1], rel=0.02)
    part = released(30_000, 10.0).covariance(["x1", "site"])
    assert part.names == ("x1", "site=a", "site=b", "site=c")
    assert part["x1", "x1"] == found["x1", "x1"]


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_negative_eigenvalue_whatever_the_noise(epsilon: float) -> None:
    release = released(1_000, epsilon)
    scale = np.array([column.half_width / column.weight for column in SCHEMA.encoded[1:]])
    units = np.outer(scale, scale)
    assert np.linalg.eigvalsh(np.asarray(release.covariance()) / units)[0] > -1e-12
    assert np.linalg.eigvalsh(np.asarray(release.covariance(psd=False)) / units)[0] < -1e-6


def test_unbiased_is_unbiased() -> None:
    """Over 200 releases of one table the mean is the table's."""
    made = table(2_000)
    numbers = np.column_stack([made[f"x{i}"] for i in range(5)])
    drawn = [
        np.asarray(
            publish(made, SCHEMA, epsilon=1.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(seed))
            .covariance([f"x{i}" for i in range(5)], psd=False)
        )
        for seed in range(200)
    ]  # fmt: skip
    error = np.std(drawn, axis=0) / len(drawn) ** 0.5
    assert np.all(np.abs(np.mean(drawn, axis=0) - np.cov(numbers.T, bias=True)) < 4 * error)


def test_a_factor_is_found() -> None:
    """statsmodels' factor analysis of the matrix: the loadings of the rows, up to the sign."""
    from statsmodels.multivariate.factor import Factor

    names = [f"x{i}" for i in range(5)]
    matrix = np.asarray(released(30_000, 2.0).covariance(names))
    deviation = np.sqrt(np.diagonal(matrix))
    numbers = np.column_stack([table(30_000)[name] for name in names])
    found, wanted = (
        Factor(corr=corr, n_factor=1, endog_names=names).fit().loadings[:, 0]
        for corr in (matrix / np.outer(deviation, deviation), np.corrcoef(numbers.T))
    )
    np.testing.assert_allclose(np.abs(found), np.abs(wanted), atol=0.05)


def test_mistakes_are_told() -> None:
    release = released(1_000, 1.0)
    with pytest.raises(AnalysisError, match="list of column names"):
        release.covariance("x1")

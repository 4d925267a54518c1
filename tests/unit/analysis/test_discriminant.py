"""Logit and probit by discriminant analysis: maximum likelihood's answers for normal features."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pytest
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram.analysis.discriminant import discriminant
from dpgram.analysis.moments import Moments
from dpgram.errors import AnalysisError
from dpgram.schema import Schema, boolean, numeric

SCHEMA = Schema(numeric("x1", -5, 5), numeric("x2", -10, 12), boolean("y"))
Table = dict[str, np.ndarray]


def two_groups(rows: int, seed: int) -> Table:
    """Normal within each group, with one covariance, so that Fisher's discriminant is the logit."""
    rng = np.random.default_rng(seed)
    y = rng.random(rows) < 0.3
    x1 = np.where(y, 0.8, 0.0) + rng.normal(0, 1, rows)
    x2 = np.where(y, -0.5, 0.5) + 0.4 * (x1 - np.where(y, 0.8, 0.0)) + rng.normal(0, 1, rows)
    return {"x1": x1, "x2": 2 * x2 + 1, "y": y}


def one_population(rows: int, seed: int) -> Table:
    """Normal features, and a target that follows a probit of them."""
    rng = np.random.default_rng(seed)
    x1 = rng.normal(0, 1, rows)
    x2 = 0.5 * x1 + rng.normal(0, 1, rows)
    return {"x1": x1, "x2": 2 * x2 + 1, "y": -0.6 + 0.7 * x1 - 0.4 * x2 + rng.normal(0, 1, rows) > 0}


MADE: dict[str, Callable[[int, int], Table]] = {"logit": two_groups, "probit": one_population}


def of_statsmodels(link: str, table: Table) -> tuple[np.ndarray, np.ndarray]:
    import statsmodels.api as sm

    design = sm.add_constant(np.column_stack([table["x1"], table["x2"]]))
    model = {"logit": sm.Logit, "probit": sm.Probit}[link]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit = model(table["y"].astype(float), design).fit(disp=False)
    return fit.params, fit.bse


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_normal_features_have_the_likelihoods_answer(link: str) -> None:
    """On 200,000 rows both estimates lie within a fraction of their common error."""
    table = MADE[link](200_000, 3)
    found = discriminant(exact_moments(SCHEMA, table), "y", ["x1", "x2"], link=link)
    params, errors = of_statsmodels(link, table)
    np.testing.assert_array_less(np.abs(np.asarray(found.params) - params), 1.5 * errors)
    np.testing.assert_allclose(found.bse, errors, rtol=0.12)
    assert np.all(np.asarray(found.bse) < 1.12 * errors)
    rows = {"x1": [-1.0, 0.5, 2.0], "x2": [3.0, 0.0, -2.0]}
    index = params[0] + params[1] * np.array(rows["x1"]) + params[2] * np.array(rows["x2"])
    from scipy.special import expit, ndtr

    np.testing.assert_allclose(
        found.predict(rows), {"logit": expit, "probit": ndtr}[link](index), rtol=0.02, atol=0.01
    )


def test_logit_is_fishers_discriminant() -> None:
    """Pooled covariance⁻¹ times the difference of the means, by numpy, in original units."""
    table = two_groups(5_000, 1)
    found = discriminant(exact_moments(SCHEMA, table), "y", ["x1", "x2"])
    x, y = np.column_stack([table["x1"], table["x2"]]), table["y"]
    ones, zeros = x[y], x[~y]
    pooled = (len(ones) * np.cov(ones.T, bias=True) + len(zeros) * np.cov(zeros.T, bias=True)) / len(x)
    apart = ones.mean(axis=0) - zeros.mean(axis=0)
    slopes = np.linalg.solve(pooled, apart)
    middle = 0.5 * (ones.mean(axis=0) + zeros.mean(axis=0))
    p = y.mean()
    intercept = np.log(p / (1 - p)) - middle @ slopes
    np.testing.assert_allclose(found.params, [intercept, *slopes], rtol=1e-8)
    ratio, low, high = found.odds_ratios()["x1"]
    assert ratio == pytest.approx(np.exp(slopes[0]), rel=1e-8)
    assert low < ratio < high


def test_odds_beyond_the_floats_are_held_within_them() -> None:
    """A column in tiny units: its odds ratio for one unit more was an OverflowError."""
    table = two_groups(5_000, 1)
    tiny = {**table, "x1": 1e-4 * table["x1"]}
    schema = Schema(boolean("y"), numeric("x1", -1e-3, 1e-3), numeric("x2", -20, 20))
    found = discriminant(exact_moments(schema, tiny), "y", ["x1", "x2"])
    assert found.params["x1"] > 710
    assert all(1e300 < value < np.inf for value in found.odds_ratios()["x1"])


def population(link: str) -> np.ndarray:
    """The coefficients behind `MADE`, in closed form."""
    if link == "probit":
        return np.array([-0.6 + 0.4 * 0.5, 0.7, -0.2])
    covariance = np.array([[1.0, 0.8], [0.8, 4 * 1.16]])
    slopes = np.linalg.solve(covariance, [0.8, -2.0])
    middle = 0.5 * np.array([0.8, (2 * -0.5 + 1) + (2 * 0.5 + 1)])
    return np.array([np.log(0.3 / 0.7) - middle @ slopes, *slopes])


@pytest.mark.parametrize("link", ["logit", "probit"])
@pytest.mark.parametrize("sigma", [0.0, 3.0])
def test_intervals_cover(link: str, sigma: float) -> None:
    """Of the population, with and without noise: 300 tables, 93 to 97 of 100."""
    hits = []
    for seed in range(300):
        table = MADE[link](3_000, seed)
        found = discriminant(
            exact_moments(SCHEMA, table, sigma=sigma, seed=seed), "y", ["x1", "x2"], link=link
        )
        ends = np.array(list(found.conf_int().values()))
        hits.append((ends[:, 0] <= population(link)) & (population(link) <= ends[:, 1]))
    assert 0.93 <= np.mean(hits) <= 0.97


@pytest.mark.parametrize("link", ["logit", "probit"])
def test_noise_covariance_is_that_of_the_law(link: str) -> None:
    table = MADE[link](5_000, 0)
    exact = discriminant(exact_moments(SCHEMA, table), "y", ["x1", "x2"], link=link, kind="table")
    noisy = [exact_moments(SCHEMA, table, sigma=3.0, seed=seed) for seed in range(500)]
    drawn = [discriminant(moments, "y", ["x1", "x2"], link=link, kind="table") for moments in noisy]
    spread = np.std([found.estimate for found in drawn], axis=0)
    told = np.sqrt(np.median([np.diagonal(found.covariance) for found in drawn], axis=0))
    np.testing.assert_allclose(told, spread, rtol=0.12)
    assert np.allclose(exact.covariance, 0.0)


def test_what_it_says_and_refuses() -> None:
    moments = exact_moments(insurance_schema(), insurance(4_000), sigma=3.0)
    found = discriminant(moments, "smoker=yes", ["age", "bmi"])
    told = found.summary()
    assert "Approximate" in told
    assert "Logit of smoker=yes" in told
    assert found.names == ("(intercept)", "age", "bmi")
    with pytest.raises(AnalysisError, match="more than two values"):
        discriminant(moments, "age", ["bmi"])
    with pytest.raises(AnalysisError, match="unknown link"):
        discriminant(moments, "active", ["bmi"], link="cloglog")
    with pytest.raises(AnalysisError, match="odds ratios are those of the logit"):
        discriminant(moments, "active", ["bmi"], link="probit").odds_ratios()
    drowned: Moments = exact_moments(insurance_schema(), insurance(500), sigma=100.0)
    with pytest.raises(AnalysisError, match="no discriminant analysis"):
        discriminant(drowned, "active", ["bmi"])

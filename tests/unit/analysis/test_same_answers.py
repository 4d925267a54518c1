"""With hardly any noise an adaptive release and a plain one of the same table give the same answers.

Whatever forgot that the matrix of an adaptive release is not that of the encoded columns shows here.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import dpgram as dg
from dpgram.analysis.design import most_frequent
from dpgram.analysis.moments import Moments
from dpgram.demo import insurance
from dpgram.errors import DpgramWarning
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with

ON = ["age", "bmi", "smoker", "exercise"]


def schema() -> dg.Schema:
    return dg.Schema(
        dg.numeric("age", 0, 120),
        dg.numeric("bmi", 0, 80, weight=0.7),
        dg.categorical("smoker", ["yes", "no"]),
        dg.categorical("region", list(insurance.REGIONS), weight=0.5),
        dg.numeric("exercise", 0, 40),
        dg.numeric("charges", 0, 100_000),
        dg.product("age", "bmi"),
    )


@pytest.fixture(scope="module")
def both() -> tuple[dg.Release, dg.Release]:
    found = []
    for adaptive in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            found += publish_with(
                insurance.table(20_000),
                schema(),
                entropy=SeededEntropy(5),
                epsilon=5_000.0,
                delta=1e-6,
                adaptive=adaptive,
                progress=False,
            )
    assert found[0].coordinates is not None
    assert found[1].coordinates is None
    return found[0], found[1]


def numbers(found: Any) -> np.ndarray:
    values = list(found.values()) if hasattr(found, "values") and callable(found.values) else found
    return np.asarray(values, dtype=np.float64)


QUESTIONS: dict[str, Callable[[dg.Release], Any]] = {
    "mean": lambda r: r.mean(),
    "count": lambda r: [r.count()],
    "covariance": lambda r: np.sqrt(np.diagonal(np.asarray(r.covariance()))),
    "correlation": lambda r: np.asarray(r.correlation().estimate) + 1.0,
    "matrix": lambda r: np.diagonal(r.matrix()),
    "second moments": lambda r: np.diagonal(r.second_moments()),
    "params": lambda r: r.regress("charges", ON).params,
    "bse": lambda r: r.regress("charges", ON).bse,
    "fitted params": lambda r: r.regress("charges", ON).fitted_params,
    "interaction": lambda r: r.regress("charges", ["age", "bmi", "age*bmi"]).params,
    "ridge": lambda r: r.regress("charges", ON, method="ridge", alpha=50.0).fitted_params,
    "rsquared": lambda r: [r.regress("charges", ON).rsquared],
    "vif": lambda r: r.regress("charges", ON).vif,
    "components": lambda r: r.pca(3, ["age", "bmi", "exercise", "charges"]).variances,
    "instruments": lambda r: r.iv("charges", ["bmi"], ["exercise"], ["age"]).params,
    "describe": lambda r: [column.mean.estimate for column in r.describe().columns],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_answers_are_the_same(both: tuple[dg.Release, dg.Release], question: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        adaptive, plain = (numbers(QUESTIONS[question](release)) for release in both)
    assert adaptive.shape == plain.shape
    assert np.isfinite(plain).all()
    np.testing.assert_allclose(adaptive, plain, rtol=0.02)


def test_the_reference_is_the_most_frequent_level(both: tuple[dg.Release, dg.Release]) -> None:
    for release in both:
        moments = Moments.of(release)
        assert most_frequent(moments, "smoker") == "no"
        assert release.regress("charges", ON).design.references["smoker"] == "no"


def test_predictions_are_the_same(both: tuple[dg.Release, dg.Release]) -> None:
    new = {"age": [30.0, 60.0], "bmi": [22.0, 31.0], "smoker": ["yes", "no"], "exercise": [1.0, 8.0]}
    adaptive, plain = (np.asarray(release.regress("charges", ON).predict(new)) for release in both)
    np.testing.assert_allclose(adaptive, plain, rtol=0.01)


def test_a_plan_may_assume_either(both: tuple[dg.Release, dg.Release]) -> None:
    forecasts = [
        dg.plan(
            schema(),
            epsilon=1,
            delta=1e-6,
            rows=dg.Rows(expected=20_000),
            assume=release,
            mechanisms=["gaussian"],
        )
        for release in both
    ]
    ratios = [forecast.forecast("gaussian").se_ratio for forecast in forecasts]
    assert ratios[0] == pytest.approx(ratios[1], rel=0.05)

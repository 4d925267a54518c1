"""Partial correlations: the textbook's without noise, honest intervals with it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.analysis.tables import encode, exact_moments, insurance, insurance_schema

from dpgram.analysis.association import partial_correlation
from dpgram.errors import AnalysisError

TABLE = insurance(4000)
SCHEMA = insurance_schema()


def textbook(given: list[str]) -> float:
    rows = encode(SCHEMA, TABLE)
    x = rows[:, [0, *(i for name in given for i in SCHEMA.indices(name))]]
    residuals = [
        rows[:, i] - x @ np.linalg.lstsq(x, rows[:, i], rcond=None)[0]
        for i in (SCHEMA.indices("age")[0], SCHEMA.indices("charges")[0])
    ]
    return float(residuals[0] @ residuals[1] / np.linalg.norm(residuals[0]) / np.linalg.norm(residuals[1]))


@pytest.mark.parametrize("given", [[], ["bmi"], ["bmi", "smoker", "active"]])
def test_matches_the_textbook_without_noise(given: list[str]) -> None:
    found = partial_correlation(exact_moments(SCHEMA, TABLE), "age", "charges", given)
    assert found.estimate == pytest.approx(textbook(given), rel=1e-9)
    assert found.std_error == pytest.approx((1 - found.estimate**2) / (4000 - 1) ** 0.5, rel=0.01)
    same = partial_correlation(exact_moments(SCHEMA, TABLE), "charges", "age", given)
    assert same.estimate == pytest.approx(found.estimate, rel=1e-12)


def test_all_others_are_given_by_default() -> None:
    found = partial_correlation(exact_moments(SCHEMA, TABLE), "age", "charges")
    assert found.given == ("bmi", "smoker", "active", "region")
    level = partial_correlation(exact_moments(SCHEMA, TABLE), "smoker=yes", "charges")
    assert level.given == ("age", "bmi", "active", "region")
    assert level.estimate > 0.5


def test_intervals_cover_under_noise() -> None:
    """300 releases of one table: coverage within 93–97% (two-sided 95%)."""
    truth = textbook(["bmi", "active"])
    hits, estimates = [], []
    for seed in range(300):
        moments = exact_moments(SCHEMA, TABLE, sigma=6.0, seed=seed)
        found = partial_correlation(moments, "age", "charges", ["bmi", "active"], kind="table")
        low, high = found.conf_int()
        hits.append(low <= truth <= high)
        estimates.append(found.estimate)
    assert 0.93 <= np.mean(hits) <= 0.97
    assert np.mean(estimates) == pytest.approx(truth, abs=4 * np.std(estimates) / 17)


def test_no_association_and_strong_association() -> None:
    moments = exact_moments(SCHEMA, TABLE, sigma=5.0)
    assert partial_correlation(moments, "age", "charges", []).p_value < 1e-10
    assert partial_correlation(moments, "age", "bmi", []).p_value > 0.01
    low, high = partial_correlation(moments, "age", "bmi", []).conf_int(0.99)
    assert -1 < low < 0 < high < 1
    assert "given bmi" in str(partial_correlation(moments, "age", "charges", ["bmi"]))


def test_refusals() -> None:
    drowned = exact_moments(SCHEMA, insurance(500), sigma=900.0)
    with pytest.raises(AnalysisError, match="no partial correlation"):
        partial_correlation(drowned, "age", "charges")
    with pytest.raises(AnalysisError, match="unknown kind"):
        partial_correlation(drowned, "age", "charges", kind="all")

"""scikit-learn's own checks of the estimators with norm bounds, with every exemption named and reasoned."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpgram.core.noise import SeededEntropy
from dpgram.estimators import SSP, AdaSSP, LpRegression, OutputPerturbation

pytestmark = [  # these warnings are meant; tests of their own look for them
    pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]

COMMON = {"epsilon": 10.0, "delta": 1e-5, "x_norm": 20.0, "y_bound": 100.0, "entropy": SeededEntropy(7)}
ESTIMATORS = [
    SSP(**COMMON),
    AdaSSP(**COMMON),
    LpRegression(**COMMON, iterations=2),
    OutputPerturbation(**COMMON),
]

TOTAL = "whether a fit succeeds may not depend on one row: an empty table is a neighbour of one with a row"
EXEMPT = {
    "check_estimators_empty_data_messages": TOTAL,
    "check_supervised_y_no_nan": "the same: a target that is not finite is missing, and its row dropped",
}


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=lambda estimator: EXEMPT)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

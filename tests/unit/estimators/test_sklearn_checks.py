"""scikit-learn's own checks, with every exemption named and reasoned."""

from __future__ import annotations

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from dpgram.core.noise import SeededEntropy
from dpgram.estimators import (
    PrivateCovariance,
    PrivateLasso,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
)

# Warnings about large epsilon, scores and so on are meant; tests of their own look for them.
pytestmark = [
    pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning"),
    pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning"),
]

# The checks fit a dozen rows and compare numbers: an epsilon that protects nobody, and a seed, make that
# possible. Whatever does not depend on the size of the noise is checked as it is.
COMMON = {"epsilon": 1e5, "delta": 0.0, "bounds": (-20, 20), "entropy": SeededEntropy(7)}
REGRESSION = COMMON | {"target_bounds": (-400, 400)}
ESTIMATORS = [
    PrivateLinearRegression(**REGRESSION),
    PrivateRidge(**REGRESSION),
    PrivateRidge(**REGRESSION | {"epsilon": 9.0, "delta": 1e-6, "mechanism": "joint-gaussian"}),
    PrivateLasso(alpha=1e-4, **REGRESSION),
    PrivatePCA(**COMMON),
    PrivateCovariance(**COMMON),
]

TOTAL = "whether a fit succeeds may not depend on one row: an empty table is a neighbour of one with a row"
EXEMPT = {
    "check_estimators_empty_data_messages": TOTAL,
}
EXEMPT_REGRESSORS = EXEMPT | {
    "check_supervised_y_no_nan": "a target that is not finite is a missing value: its row is dropped",
}


def exemptions(estimator):
    return EXEMPT_REGRESSORS if hasattr(estimator, "predict") else EXEMPT


@parametrize_with_checks(ESTIMATORS, expected_failed_checks=exemptions)
def test_scikit_learn_checks(estimator, check):
    check(estimator)

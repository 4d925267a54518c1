"""Each repair policy does what its formula says, and regress can use every one of them."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram.analysis.moments import EncodedNoise
from dpgram.analysis.regress import regress
from dpgram.analysis.repair import POLICIES, Context, Policy, repaired
from dpgram.errors import AnalysisError
from dpgram.noise import AdditiveWishart, SymmetricGaussian

GAUSSIAN = EncodedNoise.of(SymmetricGaussian(sigma=2.0))


def context(largest: float = 10.0, noise: EncodedNoise = GAUSSIAN) -> Context:
    return Context(noise=noise, largest=largest)


@settings(max_examples=50, deadline=None)
@given(values=st.lists(st.floats(-20, 20), min_size=1, max_size=8), seed=st.integers(0, 1000))
def test_policies_act_on_eigenvalues_only(values: list[float], seed: int) -> None:
    width = len(values)
    turn = np.linalg.qr(np.random.default_rng(seed).normal(size=(width, width)))[0]
    spectrum = np.sort(values)
    assume(abs(spectrum[0]) > 1e-9)  # the sign of a smallest eigenvalue of zero is rounding
    gram = (turn * spectrum) @ turn.T
    gram = (gram + gram.T) / 2
    expected = {
        "none": spectrum,
        "subtract-mean": spectrum,
        "zero-negative": np.maximum(spectrum, 0),
        "add-norm": spectrum + (GAUSSIAN.expected_norm(width) if spectrum[0] <= 0 else 0.0),
        "round": np.clip(spectrum, 0, 10),
    }
    assert set(expected) == set(POLICIES) == set(get_args(Policy))
    for policy, eigenvalues in expected.items():
        found = repaired(gram, policy, context())
        np.testing.assert_allclose(found, (turn * eigenvalues) @ turn.T, atol=1e-9)
        np.testing.assert_array_equal(found, found.T)


def test_known_mean_noise_is_removed_except_by_none() -> None:
    noise = EncodedNoise.of(AdditiveWishart(scale=0.5, degrees=8))
    gram = np.diag([10.0, 3.0])
    assert noise.mean_diagonal == 4.0
    np.testing.assert_allclose(repaired(gram, "none", context(100, noise)), gram)
    np.testing.assert_allclose(repaired(gram, "subtract-mean", context(100, noise)), np.diag([6.0, -1.0]))
    np.testing.assert_allclose(repaired(gram, "zero-negative", context(100, noise)), np.diag([6.0, 0.0]))
    np.testing.assert_allclose(repaired(gram, "round", context(5, noise)), np.diag([5.0, 0.0]))


def test_unknown_policy_is_named() -> None:
    with pytest.raises(AnalysisError, match="zero-negative"):
        repaired(np.eye(2), "hope", context())


@pytest.mark.parametrize("policy", get_args(Policy))
@pytest.mark.parametrize("method", ["auto", "ols", "ridge", "lasso", "elastic-net"])
def test_every_method_takes_every_policy(policy: Policy, method: str) -> None:
    table = insurance(2000)
    clean = regress(exact_moments(insurance_schema(), table), "charges", method="ols").predict(table)
    fit = regress(
        exact_moments(insurance_schema(), table, sigma=20.0), "charges", method=method, repair=policy
    )
    assert fit.repair == policy
    assert np.isfinite(fit.values).all()
    assert np.corrcoef(fit.predict(table), clean)[0, 1] > 0.9


def test_policies_do_nothing_to_a_clean_matrix() -> None:
    moments = exact_moments(insurance_schema(), insurance(2000), sigma=1e-6)
    plain = regress(moments, "charges", method="ols").values
    for policy in ("none", "subtract-mean", "zero-negative", "round", "add-norm"):
        found = regress(moments, "charges", method="ols", repair=policy).values
        np.testing.assert_allclose(found, plain, rtol=1e-6)


@pytest.mark.parametrize(("rows", "shrinks"), [(2000, False), (40, True)])
def test_add_norm_shrinks_only_where_the_matrix_is_not_positive_definite(rows: int, shrinks: bool) -> None:
    """As in the paper: a matrix that needs no repair is left alone."""
    moments = exact_moments(insurance_schema(), insurance(rows), sigma=20.0)
    plain = regress(moments, "charges", ["age", "bmi"], method="ols").values
    repaired_values = regress(moments, "charges", ["age", "bmi"], method="ols", repair="add-norm").values
    assert np.allclose(plain, repaired_values) != shrinks

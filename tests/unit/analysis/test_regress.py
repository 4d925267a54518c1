"""Without noise a regression from the Gram matrix is the regression of the table; and it obeys symmetries."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import ElasticNet, Lasso, Ridge
from tests.flat import publish
from tests.unit.analysis.tables import encode, exact_moments, insurance, insurance_schema

from dpgram.analysis.design import build_design
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import by_column
from dpgram.analysis.regress import METHODS, _penalties_of_noise, regress
from dpgram.core.noise import SeededEntropy
from dpgram.errors import AnalysisError, SchemaError
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.schema import Schema, boolean, categorical, numeric, ordinal

TABLE = insurance()
N = len(TABLE["age"])
FEATURES = ["age", "bmi", "smoker", "active"]


def dummies(intercept: bool = True) -> np.ndarray:
    columns = [
        TABLE["age"],
        TABLE["bmi"],
        TABLE["smoker"] == "yes",
        TABLE["smoker"] == "former",
        TABLE["active"],
    ]
    return np.column_stack([np.ones(N), *columns] if intercept else columns).astype(float)


@pytest.mark.parametrize("method", ["auto", "ols"])
@pytest.mark.parametrize("weights", [False, True])
def test_matches_statsmodels_without_noise(method: str, weights: bool) -> None:
    fit = regress(exact_moments(insurance_schema(weights=weights), TABLE), "charges", FEATURES, method=method)
    reference = sm.OLS(TABLE["charges"], dummies()).fit()
    assert fit.names == ("(intercept)", "age", "bmi", "smoker=yes", "smoker=former", "active")
    np.testing.assert_allclose(fit.values, reference.params, rtol=1e-8)
    np.testing.assert_allclose(fit.predict(TABLE), reference.fittedvalues, rtol=1e-8)
    inference = fit.inference("population")
    np.testing.assert_allclose(inference.std_errors, reference.bse, rtol=1e-7)
    np.testing.assert_allclose(inference.conf_int(0.9), reference.conf_int(0.1), rtol=1e-7)
    np.testing.assert_allclose(inference.p_values(), reference.pvalues, rtol=1e-5)
    assert fit.rsquared_estimate().estimate == pytest.approx(reference.rsquared, rel=1e-9)
    assert fit.residual_variance().estimate == pytest.approx(reference.mse_resid, rel=1e-9)
    group = fit.f_test("smoker")
    hypothesis = np.zeros((2, 6))
    hypothesis[0, 3] = hypothesis[1, 4] = 1
    expected = reference.f_test(hypothesis)
    assert (group.statistic, group.df_num) == (pytest.approx(float(expected.fvalue), rel=1e-7), 2)
    np.testing.assert_allclose(group.pvalue, expected.pvalue, rtol=1e-4)


def test_table_inference_is_exact_without_noise() -> None:
    inference = regress(exact_moments(insurance_schema(), TABLE), "charges", FEATURES).inference("table")
    np.testing.assert_allclose(inference.std_errors, 0.0, atol=1e-12)


@pytest.mark.parametrize("method", ["auto", "ols"])
def test_boolean_target_and_levels_as_targets(method: str) -> None:
    moments = exact_moments(insurance_schema(), TABLE)
    x = np.column_stack([np.ones(N), TABLE["age"], TABLE["bmi"]])
    for target, y in [("active", TABLE["active"]), ("smoker=yes", TABLE["smoker"] == "yes")]:
        fit = regress(moments, target, ["age", "bmi"], method=method)
        np.testing.assert_allclose(fit.values, sm.OLS(y.astype(float), x).fit().params, rtol=1e-7)


def test_products_and_powers_are_of_the_values_as_they_are() -> None:
    """As in R and Stata, whatever the matrix holds them about."""
    schema = insurance_schema(weights=True, derived=True)
    fit = regress(exact_moments(schema, TABLE), "charges", ["age", "bmi", "age*bmi", "age^P2"])
    age, bmi = TABLE["age"], TABLE["bmi"]
    x = np.column_stack([np.ones(N), age, bmi, age * bmi, age**2])
    reference = sm.OLS(TABLE["charges"], x).fit()
    assert fit.names == ("(intercept)", "age", "bmi", "age:bmi", "age^2")
    np.testing.assert_allclose(fit.cov_params(), reference.cov_params(), rtol=1e-6)
    np.testing.assert_allclose(fit.values, reference.params, rtol=1e-7)
    np.testing.assert_allclose(fit.predict(TABLE), reference.fittedvalues, rtol=1e-7)


def test_derived_target() -> None:
    schema = insurance_schema(weights=True, derived=True)
    fit = regress(exact_moments(schema, TABLE), "age*bmi", ["active"])
    y = TABLE["age"] * TABLE["bmi"]
    x = np.column_stack([np.ones(N), TABLE["active"]]).astype(float)
    np.testing.assert_allclose(fit.values, sm.OLS(y, x).fit().params, rtol=1e-7)


@pytest.mark.parametrize("method", ["auto", "ols", "ridge"])
def test_one_level_alone_is_a_feature(method: str) -> None:
    """Unlike the whole group it has no reference: everybody else is on the other side."""
    options = {"alpha": 0.0} if method == "ridge" else {}
    fit = regress(
        exact_moments(insurance_schema(weights=True), TABLE),
        "charges",
        ["age", "smoker=yes"],
        method=method,
        **options,
    )
    x = np.column_stack([np.ones(N), TABLE["age"], TABLE["smoker"] == "yes"]).astype(float)
    np.testing.assert_allclose(fit.values, sm.OLS(TABLE["charges"], x).fit().params, rtol=1e-6)
    assert fit.design.references == {}


def test_default_features_leave_out_what_is_made_from_the_target() -> None:
    fit = regress(exact_moments(insurance_schema(derived=True), TABLE), "age")
    assert not {"age:bmi", "age^2", "age"} & set(fit.names)
    assert {"bmi", "smoker=yes", "active", "charges"} <= set(fit.names)


def test_no_intercept_goes_through_the_origin() -> None:
    moments = exact_moments(insurance_schema(weights=True), TABLE)
    reference = sm.OLS(TABLE["charges"], dummies(intercept=False)[:, [0, 1, 4]]).fit()
    for method in ("auto", "ols"):
        fit = regress(moments, "charges", ["age", "bmi", "active"], intercept=False, method=method)
        np.testing.assert_allclose(fit.values, reference.params, rtol=1e-7)
        np.testing.assert_allclose(fit.inference().std_errors, reference.bse, rtol=1e-6)
    assert fit.rsquared_estimate().estimate == pytest.approx(
        reference.rsquared, rel=1e-7
    )  # uncentred, as there


def test_no_intercept_keeps_all_levels_of_the_first_group() -> None:
    moments = exact_moments(insurance_schema(), TABLE)
    fit = regress(
        moments, "charges", ["age", "smoker", "region"], intercept=False, reference={"region": "east"}
    )
    columns = [TABLE["age"], *(TABLE["smoker"] == level for level in ("no", "yes", "former"))]
    columns += [TABLE["region"] == level for level in ("north", "south", "west")]
    reference = sm.OLS(TABLE["charges"], np.column_stack(columns).astype(float)).fit()
    np.testing.assert_allclose(fit.values, reference.params, rtol=1e-7)


def test_without_a_constant_column_the_fit_passes_through_the_midpoints() -> None:
    moments = exact_moments(insurance_schema(constant=False), TABLE)
    with pytest.raises(AnalysisError, match="no constant column"):
        regress(moments, "charges", ["age", "bmi"])
    fit = regress(moments, "charges", ["age", "bmi"], intercept=False)
    x = np.column_stack([TABLE["age"] - 54, TABLE["bmi"] - 35])
    reference = sm.OLS(TABLE["charges"] - 10_000, x).fit()
    np.testing.assert_allclose(fit.values, reference.params, rtol=1e-7)
    np.testing.assert_allclose(fit.predict(TABLE), reference.fittedvalues + 10_000, rtol=1e-7)


def encoded_reference(moments: Moments) -> tuple[np.ndarray, np.ndarray, list[int]]:
    rows = encode(moments.schema, TABLE)
    features = [i for name in FEATURES for i in moments.schema.indices(name)]
    return rows[:, features], rows[:, moments.schema.indices("charges")[0]], features


def test_ridge_is_scikit_learns_on_encoded_columns() -> None:
    moments = exact_moments(insurance_schema(weights=True), TABLE)
    x, y, _ = encoded_reference(moments)
    model = Ridge(alpha=250.0).fit(x, y)
    fit = regress(moments, "charges", FEATURES, method="ridge", alpha=250.0)
    weight, half_width, centre = 1.9, 40_000, 10_000
    expected = model.predict(x) / weight * half_width + centre
    np.testing.assert_allclose(fit.predict(TABLE), expected, rtol=1e-8)


@pytest.mark.parametrize(
    ("method", "options", "model"),
    [
        ("lasso", {"alpha": 0.02}, Lasso(alpha=0.02, tol=1e-10)),
        ("elastic-net", {"alpha": 0.03, "l1_ratio": 0.3}, ElasticNet(alpha=0.03, l1_ratio=0.3, tol=1e-10)),
    ],
)
def test_sparse_methods_are_scikit_learns_on_encoded_columns(
    method: str, options: dict, model: Lasso
) -> None:
    moments = exact_moments(insurance_schema(), TABLE)
    x, y, features = encoded_reference(moments)
    model.fit(x, y)
    fit = regress(moments, "charges", FEATURES, method=method, **options)
    expected = model.predict(x) * 40_000 + 10_000
    np.testing.assert_allclose(fit.predict(TABLE), expected, rtol=2e-5, atol=1.0)
    assert (model.coef_ == 0).any()
    assert features


def test_lasso_sets_its_penalty_from_the_noise() -> None:
    moments = exact_moments(insurance_schema(), TABLE, sigma=60.0)
    fit = regress(moments, "charges", method="lasso")
    assert fit.penalty > 0
    strong = regress(moments, "charges", method="lasso", alpha=10.0)
    assert all(value == pytest.approx(0.0, abs=1e-9) for value in strong.values[1:])


def narrow_columns(epsilon: float) -> tuple[Any, dict[str, Any]]:
    """Eight columns that tell something and eight that do not, far narrower than their public ranges."""
    draw = np.random.default_rng(4)
    x = draw.normal(size=(10_000, 16)) * np.exp(draw.normal(size=16))
    y = x[:, :8] @ (0.3 / x[:, :8].std(axis=0)) + draw.normal(size=10_000)
    table = {f"x{i}": x[:, i] for i in range(16)} | {"y": y}
    schema = Schema(
        *(numeric(name, -8.0 * values.std(), 8.0 * values.std()) for name, values in table.items())
    )
    options = {"epsilon": epsilon, "delta": 1e-6, "adaptive": True, "entropy": SeededEntropy(1)}
    return publish(table, schema, **options), table


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("epsilon", [0.5, 2.0])
def test_lasso_selects_what_stands_clear_of_the_noise(epsilon: float) -> None:
    release, table = narrow_columns(epsilon)
    fit = regress(release, "y", method="lasso")
    assert all(fit.fitted_params[f"x{i}"] > 0.0 for i in range(8))
    assert sum(fit.fitted_params[f"x{i}"] != 0.0 for i in range(8, 16)) <= 3
    own = 1.0 - np.mean((fit.predict(table) - table["y"]) ** 2) / np.var(table["y"])
    assert fit.fitted_rsquared == pytest.approx(own, abs=0.03)
    text = " ".join(fit.summary().split())
    assert (
        f"R² {fit.fitted_rsquared:.3g} (noisy) of the fitted column; un-shrunken {fit.rsquared:.3f}" in text
    )
    assert "by the noise of each column" in text
    nothing = regress(release, "y", method="lasso", alpha=10.0)
    assert nothing.fitted_rsquared == pytest.approx(0.0, abs=1e-9)
    assert "R² 0 (noisy) of the fitted column" in " ".join(nothing.summary().split())
    assert "penalty 10 in encoded units" in nothing.summary()


def test_levels_of_one_column_have_one_penalty() -> None:
    """They add up to one: with penalties a little apart the minimum would hang on last digits."""
    moments = exact_moments(insurance_schema(), TABLE, sigma=60.0)
    design = build_design(moments, "charges")
    alpha, scales = _penalties_of_noise(moments, design, by_column(moments, design, "zero-negative"))
    sources = [moments.schema.encoded[place].source for place in design.members]
    assert alpha > 0.0
    for source in set(sources):
        assert len({scale for scale, own in zip(scales.tolist(), sources, strict=True) if own == source}) == 1


# Metamorphic: known transformations, noise included.


def noisy(sigma: float = 25.0) -> Moments:
    return exact_moments(insurance_schema(), TABLE, sigma=sigma, seed=3)


@pytest.mark.parametrize("method", METHODS)
def test_changing_units_rescales_coefficients(method: str) -> None:
    """Years to months, and dollars to thousands: the encoded matrix is the same."""
    moments = noisy()
    columns = [
        numeric("age", 18 * 12, 90 * 12)
        if c.name == "age"
        else numeric("charges", -30, 50)
        if c.name == "charges"
        else c
        for c in moments.schema.columns
    ]
    other = replace(moments, schema=Schema(*columns))
    a = regress(moments, "charges", FEATURES, method=method).fitted_params
    b = regress(other, "charges", FEATURES, method=method).fitted_params
    for name, value in a.items():
        factor = 1 / 12_000 if name == "age" else 1 / 1000
        assert b[name] == pytest.approx(value * factor, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("method", METHODS)
def test_order_of_columns_and_levels_does_not_matter(method: str) -> None:
    moments = noisy()
    schema = moments.schema
    age, bmi, _, active, region, charges = schema.columns
    other = Schema(charges, categorical("smoker", ["former", "no", "yes"]), active, age, region, bmi)
    position = [schema.names.index(name) for name in other.names]
    shuffled = replace(moments, schema=other, gram=moments.gram[np.ix_(position, position)])
    a = regress(moments, "charges", FEATURES, method=method)
    b = regress(shuffled, "charges", FEATURES[::-1], method=method, reference={"smoker": "no"})
    for name, value in a.fitted_params.items():
        assert b.fitted_params[name] == pytest.approx(value, rel=1e-5, abs=1e-6)
    np.testing.assert_allclose(a.predict(TABLE), b.predict(TABLE), rtol=1e-6, atol=1e-3)
    if method == "auto":
        ends = a.conf_int()
        for name, (low, high) in b.conf_int().items():
            assert (low, high) == pytest.approx(ends[name], rel=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_reference_level_changes_the_words_not_the_predictions(method: str) -> None:
    moments = noisy()
    a = regress(moments, "charges", FEATURES, method=method)
    b = regress(moments, "charges", FEATURES, method=method, reference={"smoker": "yes"})
    np.testing.assert_allclose(a.predict(TABLE), b.predict(TABLE), rtol=1e-7, atol=1e-4)
    assert b.fitted_params["smoker=no"] == pytest.approx(-a.fitted_params["smoker=yes"], rel=1e-6, abs=1e-3)
    if method == "auto":
        low, high = a.conf_int()["smoker=yes"]
        assert b.conf_int()["smoker=no"] == pytest.approx((-high, -low), rel=1e-7)


def test_row_order_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(N)
    shuffled = {name: values[order] for name, values in TABLE.items()}
    a = regress(exact_moments(insurance_schema(), TABLE), "charges").values
    b = regress(exact_moments(insurance_schema(), shuffled), "charges").values
    np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("method", METHODS)
def test_a_subset_of_columns_is_the_release_of_that_subset(method: str) -> None:
    moments = noisy()
    names = ["age", "bmi", "active", "charges", "smoker", "region"]
    kept = Schema(*(moments.schema.column(name) for name in names))
    position = [moments.schema.names.index(name) for name in kept.names]
    smaller = replace(moments, schema=kept, gram=moments.gram[np.ix_(position, position)])
    a = regress(moments, "charges", ["age", "bmi"], method=method)
    b = regress(smaller, "charges", ["age", "bmi"], method=method)
    np.testing.assert_allclose(a.values, b.values, rtol=1e-6)


def test_the_group_constraint_reduces_noise_and_is_unbiased() -> None:
    """P N P: the row count averages the constant cell with both groups' level counts."""
    plain, used = [], []
    for seed in range(300):
        moments = exact_moments(insurance_schema(), TABLE, sigma=50.0, seed=seed)
        plain.append(moments.gram[0, 0])
        used.append(moments.rows)
    assert np.mean(used) == pytest.approx(N, abs=4 * np.std(used) / 17)
    # |P e₀|⁴ with precisions 1, 1/3, 1/4 for the three estimates of the constant
    assert np.std(used) == pytest.approx(50 / (1 + 1 / 3 + 1 / 4), rel=0.12)
    assert np.std(plain) == pytest.approx(50, rel=0.12)


@settings(max_examples=40, deadline=None)
@given(
    width=st.integers(1, 30),
    rows=st.integers(5, 400),
    sigma=st.sampled_from([1e-3, 1.0, 100.0, 1e5]),
    method=st.sampled_from(["auto", "ols", "ridge"]),
    seed=st.integers(0, 2**16),
)
def test_any_noisy_matrix_gives_finite_numbers_or_a_clear_refusal(
    width: int, rows: int, sigma: float, method: str, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(width + 1)))
    data = np.column_stack([np.ones(rows), rng.uniform(-1, 1, (rows, width + 1))])
    law = SymmetricGaussian(sigma=sigma)
    moments = Moments(
        gram=law.redraw(data.T @ data, rng),
        schema=schema,
        noise=EncodedNoise.of(law),
        radius=(width + 2) ** 0.5,
    )
    if method == "ridge" and moments.rows <= 0:
        with pytest.raises(AnalysisError, match="noisy number of rows"):
            regress(moments, "x0", method=method)
        return
    fit = regress(moments, "x0", method=method)
    assert np.isfinite(fit.values).all()
    assert fit.summary()


def test_auto_does_not_explode_where_plain_least_squares_does() -> None:
    errors = {"auto": [], "ols": []}
    exact = regress(exact_moments(insurance_schema(), TABLE), "charges", FEATURES).predict(TABLE)
    for seed in range(40):
        moments = exact_moments(insurance_schema(), TABLE, sigma=250.0, seed=seed)
        for method, found in errors.items():
            found.append(
                np.mean((regress(moments, "charges", FEATURES, method=method).predict(TABLE) - exact) ** 2)
            )
    assert np.mean(errors["auto"]) < 0.2 * np.mean(errors["ols"])
    assert np.mean(errors["auto"]) < np.var(TABLE["charges"])


def test_the_noise_law_sets_the_penalty() -> None:
    """At equal standard deviation the matrix Laplace law has the larger operator norm."""
    moments = noisy()
    width = moments.schema.width
    laplace = MatrixLaplace(theta=(width + 1) ** 0.5 / 25.0, width=width)
    other = replace(moments, noise=EncodedNoise.of(laplace))
    assert other.noise.diagonal_sd == pytest.approx(moments.noise.diagonal_sd)
    ridge, other_ridge = (regress(m, "charges", method="ridge").penalty for m in (moments, other))
    assert other_ridge > ridge
    assert 1 < regress(other, "charges").effective_parameters < len(regress(other, "charges").names)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"target": "smoker"}, "one level"),
        ({"target": "(constant)"}, "cannot be a target"),
        ({"on": ["charges"]}, "belongs to the target"),
        ({"target": "smoker=no", "on": ["smoker"]}, "belongs to the target"),
        ({"on": ["age", "age"]}, "named twice"),
        ({"on": "age"}, "must be a list"),
        ({"on": ["(constant)"]}, "not a feature"),
        ({"method": "magic"}, "unknown method"),
        ({"method": "ols", "alpha": 1.0}, "takes no alpha"),
        ({"method": "ridge", "alpha": -1.0}, "must not be negative"),
        ({"method": "elastic-net", "l1_ratio": 2.0}, "l1_ratio"),
        ({"repair": "hope"}, "unknown repair"),
        ({"reference": {"smoker": "sometimes"}}, "no level"),
        ({"reference": {"age": "old"}}, "no reference level"),
        ({"on": [], "intercept": False}, "no features"),
    ],
)
def test_mistakes_are_named(options: dict, words: str) -> None:
    arguments = {"target": "charges"} | options
    with pytest.raises(AnalysisError, match=words):
        regress(noisy(), **arguments)


def test_unknown_columns_are_named() -> None:
    with pytest.raises(SchemaError, match="Did you mean 'charges'"):
        regress(noisy(), "charge")


class TestNewRows:
    """Words of yes/no columns mean what they mean in the table."""

    @pytest.mark.parametrize(
        ("rules", "true", "false"),
        [
            ({}, [True, 1, 1.0, "yes", " Y ", "TRUE"], [False, 0, 0.0, "no", "N", "f"]),
            ({"true": "ja", "false": "nein"}, [True, 1, "Ja", "ja "], [False, 0, "nein"]),
            ({"true": [1, "j"], "false": [2, "n"]}, [True, 1, 1.0, "1", "J"], [False, 2, 2.0, "2", "n"]),
        ],
    )
    def test_words(self, rules: dict, true: list, false: list) -> None:
        column = boolean("a", **rules)
        for values, meant in ((true, 1.0), (false, 0.0)):
            for value in values:
                assert column.new_values(np.array([value])).tolist() == [meant]
            assert (column.new_values(np.array(values, dtype=object)) == meant).all()

    def test_shares_are_numbers_as_before(self) -> None:
        assert boolean("a").new_values(np.array([0.25])).tolist() == [0.25]

    @pytest.mark.parametrize("value", [2, -1.0, 1.5])
    def test_a_number_that_is_no_share_is_refused(self, value: float) -> None:
        """It was as true as that many people."""
        for values in (np.array([0, value]), np.array(["no", value], dtype=object)):
            with pytest.raises(AnalysisError, match=f"neither true nor false; got {value!r}"):
                boolean("a").new_values(values)

    @pytest.mark.parametrize("value", [None, np.nan, pd.NA, pd.NaT, Decimal("NaN")])
    def test_a_missing_cell_is_no_level(self, value: object) -> None:
        """Where a level stands for all others, it was that one."""
        for column in (
            categorical("a", ["b", "c"], other="c"),
            categorical("a", ["b"]),
            ordinal("a", ["b", "c"]),
        ):
            with pytest.raises(AnalysisError, match="'a' has a missing cell"):
                column.new_values(np.array(["b", value], dtype=object))
        known = categorical("a", ["nan", "b"])
        assert known.new_values(np.array(["nan", "b"])).tolist() == ["nan", "b"]

    @pytest.mark.parametrize("value", ["maybe", None, "ja"])
    def test_other_words_are_refused_with_those_that_are_read(self, value: object) -> None:
        with pytest.raises(AnalysisError, match=f"got {value!r}; limit: true, t, yes.* True or False"):
            boolean("a").new_values(np.array(["no", value], dtype=object))

    @pytest.mark.parametrize(
        ("column", "first", "words"),
        [
            (numeric("a", 0, 9), 3.0, "'a' must hold numbers; got 'x'"),
            (numeric("a", "2020-01-01", "2025-12-31"), "2021-02-03", "must hold dates, .* got 'x'"),
        ],
    )
    def test_what_was_got_is_said(self, column: Any, first: object, words: str) -> None:
        with pytest.raises(AnalysisError, match=words):
            column.new_values(np.array([first, "x"], dtype=object))


def test_r_squared_without_an_intercept_says_what_it_is_about() -> None:
    fit = regress(exact_moments(insurance_schema(), TABLE), "charges", ["age"], intercept=False)
    share = 1.0 - np.square(TABLE["charges"] - fit.predict(TABLE)).sum() / np.square(TABLE["charges"]).sum()
    assert fit.rsquared == pytest.approx(share, rel=1e-6)
    assert "; about 0, not about the mean" in fit.summary()
    schema = Schema(*insurance_schema().columns, constant=False)
    fit = regress(exact_moments(schema, TABLE), "charges", ["age"], intercept=False)
    apart = TABLE["charges"] - fit.design.base
    share = 1.0 - np.square(TABLE["charges"] - fit.predict(TABLE)).sum() / np.square(apart).sum()
    assert fit.rsquared == pytest.approx(share, rel=1e-6)
    assert f"; about {fit.design.base:g}, not about the mean" in fit.summary()


def test_intercept_only() -> None:
    fit = regress(exact_moments(insurance_schema(), TABLE), "charges", [])
    assert fit.fitted_params == {"(intercept)": pytest.approx(TABLE["charges"].mean())}


def test_a_single_boolean_column_without_constant() -> None:
    schema = Schema(boolean("a"), boolean("b"), constant=False)
    table = {"a": TABLE["active"], "b": TABLE["smoker"] == "yes"}
    fit = regress(exact_moments(schema, table), "a", intercept=False)
    a, b = np.where(table["a"], 0.5, -0.5), np.where(table["b"], 0.5, -0.5)
    assert fit.values[0] == pytest.approx(float(a @ b / (b @ b)))

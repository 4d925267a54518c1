"""Coefficients as R, Stata and statsmodels would tell them; nothing is told that the noise made."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from sklearn.linear_model import lasso_path as sklearn_path
from tests.flat import publish
from tests.unit.analysis.tables import encode, exact_moments, insurance, insurance_schema

import dpgram as dg
from dpgram.analysis.association import correlations
from dpgram.analysis.moments import Moments
from dpgram.analysis.pca import pca
from dpgram.analysis.regress import lasso_path, regress
from dpgram.analysis.results import Regression
from dpgram.analysis.trust import CLOSE_CAUTION
from dpgram.errors import AnalysisError
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

TABLE = insurance(3000)


def without_ends(fit: Regression, position: int) -> Regression:
    """The same fit, were the noise to exclude no value of one coefficient at 95%."""
    inference = fit.inference()
    curvature = inference.curvature.copy()
    curvature[position] = 0.3  # 1.96² · 0.3 > 1
    again = dataclasses.replace(fit)
    again.__dict__["_of_the_population"] = dataclasses.replace(inference, curvature=curvature)
    return again


class TestNoInterval:
    FIT = without_ends(
        regress(exact_moments(insurance_schema(), TABLE, sigma=5.0), "charges", ["age", "bmi"]), 1
    )

    def test_no_interval_is_no_error_and_no_p_value(self) -> None:
        fit = self.FIT
        assert fit.conf_int()["age"] == (-np.inf, np.inf)
        for told in (fit.params, fit.bse, fit.tvalues, fit.pvalues):
            assert np.isnan(told["age"])
            assert np.isfinite(told["bmi"])
        covariance = np.asarray(fit.cov_params())
        assert np.isnan(covariance[1]).all()
        assert np.isnan(covariance[:, 1]).all()
        assert np.isfinite(covariance[np.ix_([0, 2], [0, 2])]).all()

    def test_neither_has_the_summary_or_the_frame(self) -> None:
        fit = self.FIT
        (line,) = [line for line in fit.summary().splitlines() if line.startswith("age")]
        assert line.split()[2:] == ["–"] * 6
        assert "no interval, error or p-value for age" in " ".join(fit.summary().split())
        row = fit.to_frame().filter(name="age").to_dicts()[0]
        assert {name for name, value in row.items() if value is None} == {
            "estimate", "std_error", "t", "low", "high", "p_value"
        }  # fmt: skip
        assert fit.to_frame(level=0.5).filter(name="age")["low"].item() is not None  # 0.67² · 0.3 < 1

    def test_the_figure_has_an_arrow_instead_of_a_bare_mark(self) -> None:
        def arrows(fit: Regression) -> int:
            (axis,) = fit.plot().axes
            return sum(text.arrow_patch is not None for text in axis.texts)

        assert arrows(self.FIT) == 1
        assert arrows(regress(self.FIT.moments, "charges", ["age", "bmi"])) == 0


class TestReference:
    def test_the_most_frequent_level_is_compared_with(self) -> None:
        table = {**TABLE, "region": np.where(TABLE["region"] == "south", "south", "north")}
        fit = regress(exact_moments(insurance_schema(), table, sigma=5.0), "charges", ["age", "region"])
        assert fit.design.references == {"region": "north"}

    def test_an_empty_first_level_no_longer_costs_the_others_their_intervals(self) -> None:
        table = {**TABLE, "region": np.where(TABLE["region"] == "east", "north", TABLE["region"])}
        moments = exact_moments(insurance_schema(), table, sigma=10.0, seed=3)
        for reference, lacking in (
            (None, {"region=east"}),
            ("east", {f"region={r}" for r in ("north", "south", "west")}),
        ):
            fit = regress(moments, "charges", reference={} if reference is None else {"region": reference})
            errors = fit.inference().std_errors
            assert {name for name, error in zip(fit.names, errors, strict=True) if np.isnan(error)} >= lacking
            if reference is None:
                assert np.isfinite(
                    fit.inference().conf_int()[[i for i, e in enumerate(errors) if e == e]]
                ).all()
                assert np.isfinite(errors).sum() == len(errors) - 1

    def test_all_of_several_releases_are_compared_with_the_same_level(self) -> None:
        from dpgram.analysis.pooling import pool

        tables = [
            {
                **insurance(2000, seed),
                "region": np.where(insurance(2000, seed)["region"] == "east", often, "west"),
            }
            for seed, often in ((1, "north"), (2, "south"))
        ]
        releases = [exact_moments(insurance_schema(), table, sigma=1.0) for table in tables]
        assert pool(releases, "charges", ["age"]).used == 2
        assert regress(releases[0], "charges", ["region"]).design.references == {"region": "west"}


def test_difference_in_differences_is_what_r_shows() -> None:
    """Booleans are 0 and 1, and the interaction is the product of the two."""
    rng = np.random.default_rng(0)
    n = 4000
    treated, after = rng.random(n) < 0.5, rng.random(n) < 0.5
    y = 1.0 + 0.75 * treated + 0.5 * after + 2.0 * treated * after + rng.normal(0, 0.1, n)
    schema = Schema(boolean("treated"), boolean("after"), numeric("y", -5, 15), product("treated", "after"))
    fit = regress(exact_moments(schema, {"treated": treated, "after": after, "y": y}), "y")
    data = pd.DataFrame({"treated": treated.astype(int), "after": after.astype(int), "y": y})
    reference = smf.ols("y ~ treated * after", data).fit()
    assert fit.names == ("(intercept)", "treated", "after", "treated:after")
    np.testing.assert_allclose(fit.params, reference.params, rtol=1e-8)
    np.testing.assert_allclose(fit.bse, reference.bse, rtol=1e-7)


@pytest.mark.parametrize(
    ("on", "formula"),
    [
        (["age", "bmi", "age*bmi"], "age * bmi"),
        (["age:bmi"], "age:bmi"),
        (["age:bmi", "age"], "age + age:bmi"),
        (["age", "age^2", "age^3"], "age + I(age**2) + I(age**3)"),
        (["age^3"], "I(age**3)"),
        (["age^3", "bmi", "age:bmi"], "I(age**3) + bmi + age:bmi"),
        (["bmi*bmi", "bmi"], "bmi + I(bmi**2)"),
    ],
)
@pytest.mark.parametrize("intercept", [True, False])
def test_products_and_powers_with_and_without_main_effects(
    on: list[str], formula: str, intercept: bool
) -> None:
    schema = Schema(
        *insurance_schema(weights=True).columns,
        product("age", "bmi", weight=0.7),
        product("bmi", "bmi"),
        legendre("age", 2, weight=1.3),
        legendre("age", 3),
    )
    fit = regress(exact_moments(schema, TABLE), "charges", on, intercept=intercept, method="ols")
    reference = smf.ols(f"charges ~ {formula} {'' if intercept else '- 1'}", pd.DataFrame(TABLE)).fit()
    names = [
        name.replace("I(", "").replace(")", "").replace(" ** ", "^").replace("Intercept", "(intercept")
        for name in reference.params.index
    ]
    theirs = dict(zip((n + ")" if n == "(intercept" else n for n in names), reference.params, strict=True))
    assert fit.params == pytest.approx(theirs, rel=1e-6)
    errors = dict(zip(theirs, reference.bse, strict=True))
    assert fit.bse == pytest.approx(errors, rel=1e-6)
    np.testing.assert_allclose(fit.predict(TABLE), reference.fittedvalues, rtol=1e-7)
    ridge = regress(
        exact_moments(schema, TABLE), "charges", on, intercept=intercept, method="ridge", alpha=1e-9
    )
    assert ridge.fitted_params == pytest.approx(theirs, rel=1e-4)


def test_a_power_without_the_lower_ones_stays_a_polynomial() -> None:
    schema = Schema(numeric("age", 18, 90), numeric("charges", -30_000, 50_000), legendre("age", 3))
    fit = regress(exact_moments(schema, TABLE), "charges")
    assert fit.names == ("(intercept)", "age", "age^P3")
    z = (TABLE["age"] - 54) / 36
    data = pd.DataFrame({**TABLE, "p3": (5 * z**3 - 3 * z) / 2})
    np.testing.assert_allclose(fit.params, smf.ols("charges ~ age + p3", data).fit().params, rtol=1e-7)
    with pytest.raises(AnalysisError, match=r"age\^P3"):
        fit.marginal_effects()


def test_the_mean_of_a_product_is_that_of_the_values() -> None:
    schema = Schema(numeric("age", 18, 90), numeric("bmi", 10, 60), product("age", "bmi"), legendre("age", 2))
    table = pd.DataFrame({name: TABLE[name] for name in ("age", "bmi")})
    release = publish(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian")
    means = release.mean()
    assert means["age:bmi"] == pytest.approx((table["age"] * table["bmi"]).mean(), rel=1e-2)
    assert means["age^2"] == pytest.approx((table["age"] ** 2).mean(), rel=1e-2)
    assert release.matrix("original")[0, 3] == pytest.approx((table["age"] * table["bmi"]).sum(), rel=1e-2)


class TestLasso:
    MOMENTS = exact_moments(insurance_schema(derived=True), TABLE, sigma=5.0)

    def test_zeros_are_zeros(self) -> None:
        fit = regress(self.MOMENTS, "charges", method="lasso", alpha=0.01)
        values = np.asarray(fit.fitted_params)
        assert (values == 0.0).sum() >= 3
        assert (np.abs(values[values != 0.0]) > 1e-6).all()

    def test_the_path_is_scikit_learns(self) -> None:
        """Without noise, on encoded columns: a zero there is a zero here, and so are the values."""
        schema = Schema(
            numeric("age", 18, 90),
            numeric("bmi", 10, 60),
            boolean("active"),
            numeric("charges", -30_000, 50_000),
        )
        rows = encode(schema, TABLE)
        found = lasso_path(exact_moments(schema, TABLE), "charges", count=12)
        x, y = rows[:, 1:4] - rows[:, 1:4].mean(axis=0), rows[:, 4] - rows[:, 4].mean()
        alphas, theirs, _ = sklearn_path(x, y, alphas=found.alphas, tol=1e-14, max_iter=100_000)
        np.testing.assert_allclose(alphas, found.alphas)
        units = 40_000 / np.array([36.0, 25.0, 0.5])
        np.testing.assert_allclose(found.coefficients[:, 1:], theirs.T * units, rtol=1e-6, atol=1e-9)
        np.testing.assert_array_equal(found.coefficients[:, 1:] == 0.0, theirs.T == 0.0)
        assert found.active()[0] == ()
        assert list(found.to_frame().columns) == ["alpha", *found.names]


def test_where_intervals_are_refused_nothing_is_said_of_their_width() -> None:
    fit = regress(exact_moments(insurance_schema(), insurance(2000), sigma=600.0), "charges")
    assert fit.inference().refusal is not None
    assert CLOSE_CAUTION not in fit.inference().cautions
    assert "too wide" not in fit.summary()


def test_a_refused_fit_says_which_columns_collide() -> None:
    table = {
        **TABLE,
        "bmi": 10 + 50 * (TABLE["age"] - 18) / 72 + np.random.default_rng(0).normal(0, 0.2, 3000),
    }
    moments = exact_moments(insurance_schema(), table, sigma=20.0)
    fit = regress(moments, "charges", ["age", "bmi"])
    assert "too little tells age and bmi apart" in (fit.inference().refusal or "").replace(
        "bmi and age", "age and bmi"
    )
    twice = exact_moments(insurance_schema(), {**table, "bmi": 10 + 50 * (TABLE["age"] - 18) / 72})
    with pytest.raises(AnalysisError, match="dependent in this table; got age, bmi"):
        _ = regress(twice, "charges", ["age", "bmi", "active"], method="ridge").params


def test_with_weights_the_summary_does_not_call_their_sum_rows() -> None:
    table = pd.DataFrame({"age": TABLE["age"], "charges": TABLE["charges"], "w": np.full(3000, 200.0)})
    schema = Schema(numeric("age", 18, 90), numeric("charges", -30_000, 50_000))
    weight = numeric("w", 0, 1000)
    release = publish(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian", weight=weight)
    text = " ".join(release.regress("charges").summary().split())
    assert "rows about" not in text
    total = float(re.search(r"weight 'w' adds up to about ([\d,]+)", text)[1].replace(",", ""))
    assert total == pytest.approx(600_000, rel=0.05)
    assert "how many rows have them is not published" in text


def test_repr_fits_on_one_screen() -> None:
    fit = regress(exact_moments(insurance_schema(), TABLE, sigma=5.0), "charges")
    values = [
        fit,
        fit.design,
        fit.inference(),
        fit.get_prediction(TABLE),
        fit.t_test("age"),
        fit.cov_params(),
        fit.params,
    ]
    for value in (*values, lasso_path(fit.moments, "charges")):
        assert len(repr(value)) < 4000
        assert len(repr(value).splitlines()) <= 30


def test_repr_fits_on_one_screen_however_many_columns_there_are() -> None:
    draw = np.random.default_rng(0)
    table: dict[str, object] = {f"x{i}": draw.uniform(-1, 1, 40_000) for i in range(50)}
    levels = [f"l{i}" for i in range(20)]
    table |= {"g": draw.choice(levels, 40_000), "b": draw.random(40_000) < 0.5}
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(50)), categorical("g", levels), boolean("b"))
    release = publish(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian")
    other = publish(table, schema, epsilon=10.0, delta=1e-6, mechanism="gaussian")
    fit = release.regress("x0")
    values = [
        release, schema, Moments.of(release), fit, fit.params, fit.bse, fit.vif, fit.cov_params(),
        fit.conf_int, fit.marginal_effects(), fit.standardised(), fit.design, fit.inference(),
        release.describe(), release.describe()["x1"], release.correlation(), release.pca(),
        release.covariance(), release.within("x0", ["x1"], "g"), release.discriminant("b", ["x1"]),
        release.iv("x0", "x1", "x2"), release.iv("x0", "x1", "x2").anderson_rubin(),
        release.lasso_path("x0"), fit.t_test("x1 - x2 = 0"), fit.f_test("g"), fit.rsquared_estimate(),
        dg.pool([release, other], "x0", ["x1"]), dg.compare(release, other, "x0", ["x1"]),
        dg.plan(schema, target="x0", epsilon=1, delta=1e-6, rows=dg.Rows(expected=40_000)),
    ]  # fmt: skip
    for value in values:
        assert len(repr(value)) < 4000, type(value)
        assert len(repr(value).splitlines()) <= 30, type(value)
    assert "… and 46 more" in repr(fit.params)


def test_every_figure_shows_itself_in_a_notebook() -> None:
    moments = exact_moments(insurance_schema(), TABLE, sigma=5.0)
    figures = [
        regress(moments, "charges").plot(),
        correlations(moments).plot(),
        pca(moments).plot(),
    ]
    for figure in figures:
        assert figure._repr_png_().startswith(b"\x89PNG")
        assert figure.canvas.manager is None  # no window, and pyplot keeps none of them


def test_pooling_is_found_where_one_looks_for_it() -> None:
    """Beside `load` and `publish`, with an example; and by whoever lists the names."""
    for name in ("pool", "union", "compare"):
        assert name in dg.__all__
        assert ">>> " in (getattr(dg, name).__doc__ or "")
        assert name in dir(dg)


class TestOneEstimate:
    """`params`, errors, tests and intervals belong together; what the method fitted has another name."""

    FIT = regress(exact_moments(insurance_schema(), TABLE, sigma=40.0), "charges", ["age", "bmi"])

    def test_params_are_what_errors_and_intervals_belong_to(self) -> None:
        fit, found = self.FIT, self.FIT.inference()
        np.testing.assert_array_equal(np.asarray(fit.params), found.estimate)
        for name, (low, high) in fit.conf_int().items():
            assert low < fit.params[name] < high
        at_zero = regress(exact_moments(insurance_schema(), TABLE), "charges", ["age", "bmi"])
        np.testing.assert_allclose(
            np.asarray(at_zero.params) / np.asarray(at_zero.bse), at_zero.tvalues, rtol=1e-9
        )

    def test_the_fitted_ones_are_others_and_predict_uses_them(self) -> None:
        fit = self.FIT
        assert abs(fit.fitted_params["age"]) < abs(fit.params["age"])
        rows = {"age": [30.0, 60.0], "bmi": [20.0, 40.0]}
        design = np.array([[1.0, 30.0, 20.0], [1.0, 60.0, 40.0]])
        np.testing.assert_allclose(fit.predict(rows), design @ np.asarray(fit.fitted_params))
        np.testing.assert_allclose(fit.get_prediction(rows).predicted_mean, design @ np.asarray(fit.params))

    @pytest.mark.parametrize("name", ["coefficients", "std_errors", "p_values", "intercept"])
    def test_the_names_that_mixed_them_are_gone(self, name: str) -> None:
        assert not hasattr(self.FIT, name)

    def test_the_summary_names_both_and_the_estimand_in_one_line_each(self) -> None:
        text = " ".join(self.FIT.summary().split())
        assert "fitted un-shrunken std. error" in text
        assert "Estimand: the un-shrunken regression in the population" in text
        assert "Assumed: the error variance is the same for all rows." in text


def test_moments_can_be_asked_for_forms() -> None:
    moments: Moments = exact_moments(insurance_schema(), TABLE)
    constant = moments.constant_vector()
    assert constant is not None
    assert float(moments.form(constant, constant)) == pytest.approx(3000)


def test_a_figure_shows_itself_in_a_notebook() -> None:
    assert TestNoInterval.FIT.plot()._repr_png_().startswith(b"\x89PNG")
    assert "<table>" in TestNoInterval.FIT._repr_html_()


def test_figures_go_to_a_file_too(tmp_path: Path) -> None:
    TestNoInterval.FIT.plot(str(tmp_path / "open.png"))
    assert (tmp_path / "open.png").stat().st_size > 5000


def test_categorical_columns_stay_as_they_were() -> None:
    """An unknown level is refused, an asked one is taken."""
    schema = Schema(categorical("city", ["Bern", "Basel"]), numeric("charges", -30_000, 50_000))
    table = {"city": np.where(TABLE["active"], "Bern", "Basel"), "charges": TABLE["charges"]}
    moments = exact_moments(schema, table)
    assert regress(moments, "charges").names == ("(intercept)", "city=Bern")
    assert regress(moments, "charges", reference={"city": "Bern"}).names == ("(intercept)", "city=Basel")
    with pytest.raises(AnalysisError, match="no level 'Genf'"):
        regress(moments, "charges", reference={"city": "Genf"})

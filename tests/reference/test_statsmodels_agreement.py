"""Side by side with statsmodels: without noise and without a clip, every attribute agrees to six digits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.outliers_influence import variance_inflation_factor
from tests.unit.analysis.tables import exact_moments, insurance

from dpgram.analysis.regress import regress
from dpgram.analysis.results import Regression
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

DIGITS = 1e-6


def _read(request: pytest.FixtureRequest, name: str) -> pd.DataFrame:
    return pd.read_parquet(request.getfixturevalue("shared_data") / name / "data.parquet")


def made_up(_: pytest.FixtureRequest) -> tuple[pd.DataFrame, str, str, list[str]]:
    return pd.DataFrame(insurance(3000)), "charges", "smoker", ["age", "bmi"]


def cps1988(request: pytest.FixtureRequest) -> tuple[pd.DataFrame, str, str, list[str]]:
    table = _read(request, "cps1988")
    table["log_wage"] = np.log(table["wage"].astype(float))
    return table, "log_wage", "region", ["education", "experience"]


def nmes1988(request: pytest.FixtureRequest) -> tuple[pd.DataFrame, str, str, list[str]]:
    table = _read(request, "nmes1988")
    return table, "visits", "health", ["age", "chronic"]


def diabetes(_: pytest.FixtureRequest) -> tuple[pd.DataFrame, str, str, list[str]]:
    """Bundled with scikit-learn; sex as a categorical column."""
    from sklearn import datasets

    table = datasets.load_diabetes(as_frame=True).frame.rename(columns={"bp": "pressure"})
    table["sex"] = np.where(table["sex"] > 0, "one", "other")
    return table, "target", "sex", ["bmi", "pressure"]


def fair(_: pytest.FixtureRequest) -> tuple[pd.DataFrame, str, str, list[str]]:
    """Bundled with statsmodels: 6,366 answers to a questionnaire."""
    import statsmodels.api as sm

    table = sm.datasets.fair.load_pandas().data
    table["happy"] = table["rate_marriage"].map(lambda mark: "yes" if mark > 3 else "no")
    return table, "affairs", "happy", ["yrs_married", "religious"]


def fitted(
    case: tuple[pd.DataFrame, str, str, list[str]], right: str | None = None
) -> tuple[Regression, Any, str, str]:
    table, target, group, (first, second) = case
    table = table[[target, group, first, second]].copy()
    for name in (target, first, second):
        table[name] = table[name].astype(float)
    levels = sorted(map(str, table[group].unique()))
    schema = Schema(
        *(numeric(n, float(table[n].min()) - 1, float(table[n].max()) + 1) for n in (first, second, target)),
        categorical(group, levels),
        product(first, second),
        legendre(first, 2),
        product(group, first),
        product(second, group),
    )
    columns = {name: table[name].to_numpy() for name in table}
    columns[group] = columns[group].astype(str)
    coded = f"C({group}, Treatment('{levels[0]}'))"
    usual = "{first} * {second} + I({first}**2) + {coded}"
    formula = f"{target} ~ " + (right or usual).format(first=first, second=second, coded=coded)
    ours = regress(exact_moments(schema, columns), formula, method="ols")
    theirs = smf.ols(formula, table).fit()
    return ours, theirs, first, second


CASES = (made_up, cps1988, nmes1988, diabetes, fair)


@pytest.mark.parametrize("case", CASES)
def test_every_attribute_agrees(case: Any, request: pytest.FixtureRequest) -> None:
    ours, theirs, first, second = fitted(case(request))
    names = {"(intercept)": "Intercept", f"{first}^2": f"I({first} ** 2)"}
    order = [
        names.get(term.name, term.name)
        if term.level is None
        else next(n for n in theirs.params.index if n.endswith(f"[T.{term.level}]"))
        for term in ours.design.terms
    ]
    for attribute in ("params", "bse", "tvalues"):
        np.testing.assert_allclose(
            np.asarray(getattr(ours, attribute)), getattr(theirs, attribute)[order], rtol=DIGITS
        )
    np.testing.assert_allclose(np.asarray(ours.pvalues), theirs.pvalues[order], rtol=DIGITS, atol=1e-300)
    np.testing.assert_allclose(
        list(ours.conf_int(0.9).values()), theirs.conf_int(0.1).loc[order], rtol=DIGITS
    )
    np.testing.assert_allclose(
        np.asarray(ours.cov_params()), theirs.cov_params().loc[order, order], rtol=1e-5, atol=1e-12
    )
    for attribute, theirs_too in (
        ("rsquared", "rsquared"), ("rsquared_adj", "rsquared_adj"), ("df_resid", "df_resid"),
        ("df_model", "df_model"), ("nobs", "nobs"), ("scale", "scale"), ("fvalue", "fvalue"),
        ("f_pvalue", "f_pvalue"),
    ):  # fmt: skip
        assert getattr(ours, attribute) == pytest.approx(getattr(theirs, theirs_too), rel=DIGITS)
    hypothesis = np.zeros((2, len(order)))
    hypothesis[0, 1], hypothesis[0, 2], hypothesis[1, 1] = 1.0, -2.0, 1.0
    permuted = pd.DataFrame(hypothesis, columns=order)[list(theirs.params.index)].to_numpy()
    one, other = ours.t_test(hypothesis), theirs.t_test(permuted)
    np.testing.assert_allclose(one.effect, np.ravel(other.effect), rtol=DIGITS)
    np.testing.assert_allclose(one.sd, np.ravel(other.sd), rtol=DIGITS)
    np.testing.assert_allclose(one.conf_int(0.9), other.conf_int(0.1), rtol=DIGITS)
    text = ours.t_test(f"{first} - 2 * {second} = 0")
    np.testing.assert_allclose(text.tvalue, one.tvalue[:1], rtol=1e-9)
    both, joint = ours.f_test(hypothesis), theirs.f_test(permuted)
    assert both.statistic == pytest.approx(float(joint.fvalue), rel=DIGITS)
    chi = ours.wald_test(hypothesis, use_f=False)
    assert chi.statistic == pytest.approx(
        float(np.ravel(theirs.wald_test(permuted, use_f=False, scalar=True).statistic)[0]), rel=DIGITS
    )
    assert both.pvalue == pytest.approx(float(joint.pvalue), rel=DIGITS, abs=1e-300)
    np.testing.assert_allclose(one.pvalue, np.ravel(other.pvalue), rtol=DIGITS, atol=1e-300)
    exog = theirs.model.exog
    for name, factor in ours.vif.items():
        place = theirs.params.index.get_loc(order[ours.names.index(name)])
        assert factor == pytest.approx(variance_inflation_factor(exog, place), rel=DIGITS)


def test_nested_regressions_agree() -> None:
    table = pd.DataFrame(insurance(3000))
    schema = Schema(
        numeric("age", 18, 90), numeric("bmi", 10, 60), boolean("active"), numeric("charges", -3e4, 5e4)
    )
    moments = exact_moments(schema, insurance(3000))
    large, small = regress(moments, "charges"), regress(moments, "charges", ["age"])
    theirs = (
        smf.ols("charges ~ age + bmi + active", table)
        .fit()
        .compare_f_test(smf.ols("charges ~ age", table).fit())
    )
    found = large.compare_f_test(small)
    assert (found.statistic, found.df_num) == (pytest.approx(theirs[0], rel=DIGITS), int(theirs[2]))


TERMS = (
    "{first}",
    "{first} + {second} - 1",
    "{first}:{second}",
    "{first} * {second}",
    "({first} + {second})**2",
    "{first} + I({first}**2)",
    "I({first} * {second}) + {coded}",
    "{coded} - 1",
    "{coded} * {first}",
    "{coded}:{first}",
    "{coded} / {second}",
    "{coded} * {first} + {coded} * {second} + {first}:{second}",
)


@pytest.mark.parametrize("right", TERMS)
@pytest.mark.parametrize("case", CASES)
def test_every_formula_agrees(case: Any, right: str, request: pytest.FixtureRequest) -> None:
    """Terms in another order perhaps; coefficients, errors and the fit are the same."""
    ours, theirs, _, _ = fitted(case(request), right)
    assert len(ours.params) == len(theirs.params)
    np.testing.assert_allclose(sorted(np.asarray(ours.params)), sorted(theirs.params), rtol=DIGITS)
    np.testing.assert_allclose(sorted(np.asarray(ours.bse)), sorted(theirs.bse), rtol=DIGITS)
    assert ours.scale == pytest.approx(theirs.scale, rel=DIGITS)


@pytest.mark.parametrize("case", CASES)
def test_predictions_agree(case: Any, request: pytest.FixtureRequest) -> None:
    ours, theirs, _, _ = fitted(case(request))
    rows = theirs.model.data.frame.iloc[[0, 7, 99, 300]]
    found = ours.get_prediction({name: rows[name].to_numpy() for name in rows}).summary_frame(0.9)
    wanted = theirs.get_prediction(rows).summary_frame(alpha=0.1)
    assert list(found.columns) == list(wanted.columns)
    for name in wanted:
        np.testing.assert_allclose(found[name].to_numpy(), wanted[name], rtol=DIGITS)
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), rtol=DIGITS)


@pytest.mark.parametrize("case", CASES)
def test_contrasts_agree(case: Any, request: pytest.FixtureRequest) -> None:
    """Marginal effects are the slopes of the formula at a point; standardised ones those of z-scores."""
    ours, theirs, first, second = fitted(case(request))
    params = theirs.params
    found = ours.marginal_effects({first: 2.0, second: 3.0})
    effects = dict(zip(found.names, found.effect, strict=True))
    assert effects[first] == pytest.approx(
        params[first] + 3.0 * params[f"{first}:{second}"] + 4.0 * params[f"I({first} ** 2)"], rel=DIGITS
    )
    assert effects[second] == pytest.approx(params[second] + 2.0 * params[f"{first}:{second}"], rel=DIGITS)
    contrast = np.zeros((1, len(params)))
    contrast[0, [params.index.get_loc(n) for n in (second, f"{first}:{second}")]] = 1.0, 2.0
    error = float(np.ravel(theirs.t_test(contrast).sd)[0])
    assert found.sd[found.names.index(second)] == pytest.approx(error, rel=DIGITS)
    standard = ours.standardised()
    exog, spread = theirs.model.exog, float(np.std(theirs.model.endog))
    wanted = params.to_numpy() * np.std(exog, axis=0) / spread
    np.testing.assert_allclose(
        sorted(standard.effect), sorted(np.delete(wanted, params.index.get_loc("Intercept"))), rtol=DIGITS
    )


@pytest.mark.parametrize("case", CASES)
def test_the_summary_shows_the_same_numbers(case: Any, request: pytest.FixtureRequest) -> None:
    ours, theirs, first, _ = fitted(case(request))
    (line,) = [line.split() for line in ours.summary().splitlines() if line.split()[:1] == [first]]
    low, high = theirs.conf_int().loc[first]
    shown = [float(cell) for cell in line[2:7]]
    wanted = [theirs.params[first], theirs.bse[first], theirs.tvalues[first], low, high]
    assert shown == pytest.approx(wanted, rel=6e-3)
    assert "un-shrunken" in ours.summary()
    assert f"{theirs.rsquared:.3f}" in ours.summary()

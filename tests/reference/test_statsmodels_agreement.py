"""Side by side with statsmodels: on releases with vanishing noise and no clip, all agrees to six digits.

`lattice_tables` says how such releases are made. Most numbers are compared on a file that states next to no
noise, and those that do not depend on the number of rows once more on the stacked table that `publish` makes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.outliers_influence import variance_inflation_factor
from tests.unit.analysis.tables import encode, insurance

from dpgram.analysis.results import Regression
from dpgram.engines.local import gram
from dpgram.lattice import ROW_NORM
from dpgram.schema import boolean, categorical, legendre, product

from .lattice_tables import RADIUS, LatticeTable, on_the_lattice, published, stacks, vanishing

DIGITS = 1e-6
USUAL = "{first} * {second} + I({first}**2) + {coded}"

Case = tuple[pd.DataFrame, str, str, list[str]]
"""A table, the target, a categorical column and two numbers."""


def _read(request: pytest.FixtureRequest, name: str) -> pd.DataFrame:
    return pd.read_parquet(request.getfixturevalue("shared_data") / name / "data.parquet")


def made_up(_: pytest.FixtureRequest) -> Case:
    return pd.DataFrame(insurance(3000)), "charges", "smoker", ["age", "bmi"]


def cps1988(request: pytest.FixtureRequest) -> Case:
    table = _read(request, "cps1988")
    table["log_wage"] = np.log(table["wage"].astype(float))
    return table, "log_wage", "region", ["education", "experience"]


def nmes1988(request: pytest.FixtureRequest) -> Case:
    table = _read(request, "nmes1988")
    return table, "visits", "health", ["age", "chronic"]


def diabetes(_: pytest.FixtureRequest) -> Case:
    """Bundled with scikit-learn; sex as a categorical column."""
    from sklearn import datasets

    table = datasets.load_diabetes(as_frame=True).frame.rename(columns={"bp": "pressure"})
    table["sex"] = np.where(table["sex"] > 0, "one", "other")
    return table, "target", "sex", ["bmi", "pressure"]


def fair(_: pytest.FixtureRequest) -> Case:
    """Bundled with statsmodels: 6,366 answers to a questionnaire."""
    import statsmodels.api as sm

    table = sm.datasets.fair.load_pandas().data
    table["happy"] = table["rate_marriage"].map(lambda mark: "yes" if mark > 3 else "no")
    return table, "affairs", "happy", ["yrs_married", "religious"]


def prepared(case: Case, *, products: bool = True) -> tuple[LatticeTable, list[str]]:
    table, target, group, (first, second) = case
    table = table[[target, group, first, second]].astype(dict.fromkeys((target, first, second), float))
    table[group] = table[group].astype(str)
    levels = sorted(table[group].unique())
    squares = [product(first, second), legendre(first, 2), product(group, first), product(second, group)]
    others = [categorical(group, levels), *(squares if products else [])]
    return on_the_lattice(table, target, [first, second], others), levels


def formula_of(case: Case, levels: list[str], right: str = USUAL) -> str:
    _, target, group, (first, second) = case
    coded = f"C({group}, Treatment('{levels[0]}'))"
    return f"{target} ~ " + right.format(first=first, second=second, coded=coded)


def fitted(case: Case, folder: Path, right: str = USUAL) -> tuple[Regression, Any, str, str]:
    table, levels = prepared(case)
    formula = formula_of(case, levels, right)
    ours = vanishing(table, folder).regress(formula, method="ols")
    theirs = smf.ols(formula, table.frame).fit()
    return ours, theirs, *case[3]


def order_of(ours: Regression, theirs: Any, first: str) -> list[str]:
    """Their names of our coefficients."""
    names = {"(intercept)": "Intercept", f"{first}^2": f"I({first} ** 2)"}
    return [
        names.get(term.name, term.name)
        if term.level is None
        else next(n for n in theirs.params.index if n.endswith(f"[T.{term.level}]"))
        for term in ours.design.terms
    ]


def same_covariances(ours: Regression, theirs: Any, order: list[str], times: float = 1.0) -> None:
    """To six digits of the two standard errors: some covariances are all but zero."""
    wanted = theirs.cov_params().loc[order, order].to_numpy() * times
    unit = np.sqrt(np.outer(wanted.diagonal(), wanted.diagonal()))
    np.testing.assert_allclose(np.asarray(ours.cov_params()) / unit, wanted / unit, rtol=DIGITS, atol=DIGITS)


CASES = (made_up, cps1988, nmes1988, diabetes, fair)


@pytest.mark.parametrize("case", CASES)
def test_the_tables_are_on_the_lattice(case: Any, request: pytest.FixtureRequest) -> None:
    """No row is rounded, products and powers included: what agrees does not do so up to rounding only."""
    table, _ = prepared(case(request))
    exact = encode(table.schema, {name: table.frame[name].to_numpy() for name in table.frame})
    steps = exact * ROW_NORM / RADIUS
    assert np.abs(steps - np.rint(steps)).max() < 1e-6
    cells = gram(table.frame, table.schema).cells
    np.testing.assert_allclose(cells, steps.T @ steps, rtol=1e-9, atol=1e-3 * len(steps))


@pytest.mark.parametrize("case", CASES)
def test_every_attribute_agrees(case: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    ours, theirs, first, second = fitted(case(request), tmp_path)
    order = order_of(ours, theirs, first)
    for attribute in ("params", "bse", "tvalues"):
        np.testing.assert_allclose(
            np.asarray(getattr(ours, attribute)), getattr(theirs, attribute)[order], rtol=DIGITS
        )
    np.testing.assert_allclose(np.asarray(ours.pvalues), theirs.pvalues[order], rtol=DIGITS, atol=1e-300)
    np.testing.assert_allclose(
        list(ours.conf_int(0.9).values()), theirs.conf_int(0.1).loc[order], rtol=DIGITS
    )
    same_covariances(ours, theirs, order)
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


def test_nested_regressions_agree(tmp_path: Path) -> None:
    table = on_the_lattice(
        pd.DataFrame(insurance(3000)), "charges", ["age", "bmi"], [boolean("active", weight=2.0)]
    )
    release = vanishing(table, tmp_path)
    large, small = release.regress("charges"), release.regress("charges", ["age"])
    theirs = (
        smf.ols("charges ~ age + bmi + active", table.frame)
        .fit()
        .compare_f_test(smf.ols("charges ~ age", table.frame).fit())
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
def test_every_formula_agrees(case: Any, right: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Terms in another order perhaps; coefficients, errors and the fit are the same."""
    ours, theirs, _, _ = fitted(case(request), tmp_path, right)
    assert len(ours.params) == len(theirs.params)
    np.testing.assert_allclose(sorted(np.asarray(ours.params)), sorted(theirs.params), rtol=DIGITS)
    np.testing.assert_allclose(sorted(np.asarray(ours.bse)), sorted(theirs.bse), rtol=DIGITS)
    assert ours.scale == pytest.approx(theirs.scale, rel=DIGITS)


@pytest.mark.parametrize("case", CASES)
def test_predictions_agree(case: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    ours, theirs, _, _ = fitted(case(request), tmp_path)
    rows = theirs.model.data.frame.iloc[[0, 7, 99, 300]]
    found = ours.get_prediction({name: rows[name].to_numpy() for name in rows}).summary_frame(0.9)
    wanted = theirs.get_prediction(rows).summary_frame(alpha=0.1)
    assert list(found.columns) == list(wanted.columns)
    for name in wanted:
        np.testing.assert_allclose(found[name].to_numpy(), wanted[name], rtol=DIGITS)
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), rtol=DIGITS)


@pytest.mark.parametrize("case", CASES)
def test_contrasts_agree(case: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    """Marginal effects are the slopes of the formula at a point; standardised ones those of z-scores."""
    ours, theirs, first, second = fitted(case(request), tmp_path)
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
def test_the_summary_shows_the_same_numbers(
    case: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    ours, theirs, first, _ = fitted(case(request), tmp_path)
    (line,) = [line.split() for line in ours.summary().splitlines() if line.split()[:1] == [first]]
    low, high = theirs.conf_int().loc[first]
    shown = [float(cell) for cell in line[2:7]]
    wanted = [theirs.params[first], theirs.bse[first], theirs.tvalues[first], low, high]
    assert shown == pytest.approx(wanted, rel=6e-3)
    assert "un-shrunken" in ours.summary()
    assert f"{theirs.rsquared:.3f}" in ours.summary()


@pytest.mark.parametrize("case", CASES)
def test_what_publish_made_of_a_stacked_table_agrees(
    case: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """K tables on one another: the same coefficients, and errors of K·n rows.

    Noise is some 10⁻¹⁰ of the matrix, but 10⁻⁵ of a standard error, of which p-values are made, and more
    among the nearly collinear columns of a product: these are held against statsmodels above.
    """
    asked = case(request)
    table, levels = prepared(asked, products=False)
    formula, (first, second) = formula_of(asked, levels, "{first} + {second} + {coded}"), asked[3]
    ours = published(table, tmp_path).regress(formula, method="ols")
    theirs = smf.ols(formula, table.frame).fit()
    order = order_of(ours, theirs, first)
    many, p = stacks(table) * len(table.frame), len(order)
    narrower = np.sqrt(theirs.df_resid / (many - p))
    np.testing.assert_allclose(np.asarray(ours.params), theirs.params[order], rtol=DIGITS)
    np.testing.assert_allclose(np.asarray(ours.bse), theirs.bse[order] * narrower, rtol=DIGITS)
    np.testing.assert_allclose(np.asarray(ours.tvalues), theirs.tvalues[order] / narrower, rtol=DIGITS)
    same_covariances(ours, theirs, order, narrower**2)
    assert ours.nobs == pytest.approx(many, rel=DIGITS)
    assert ours.df_resid == pytest.approx(many - p, rel=DIGITS)
    assert ours.rsquared == pytest.approx(theirs.rsquared, rel=DIGITS)
    assert ours.scale == pytest.approx(theirs.ssr * stacks(table) / (many - p), rel=DIGITS)
    rows = table.frame.iloc[[0, 7, 99, 300]]
    np.testing.assert_allclose(ours.predict(rows), theirs.predict(rows), rtol=DIGITS)
    one, other = ours.t_test(f"{first} - 2 * {second} = 0"), theirs.t_test(f"{first} - 2 * {second} = 0")
    np.testing.assert_allclose(one.effect, np.ravel(other.effect), rtol=DIGITS)
    np.testing.assert_allclose(one.sd, np.ravel(other.sd) * narrower, rtol=DIGITS)
    for name, factor in ours.vif.items():
        place = theirs.params.index.get_loc(order[ours.names.index(name)])
        assert factor == pytest.approx(variance_inflation_factor(theirs.model.exog, place), rel=DIGITS)

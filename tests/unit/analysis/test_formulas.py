"""Formulas name declared columns; what was not declared is answered with the way to declare it."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram import logistic, publish
from dpgram.analysis.formulas import read_formula
from dpgram.analysis.regress import regress
from dpgram.errors import AnalysisError, MissingExtra, SchemaError
from dpgram.schema import Schema, boolean, numeric, ordinal, product

TABLE = insurance(2000)
MOMENTS = exact_moments(insurance_schema(derived=True), TABLE)
SCHEMA = Schema(
    *insurance_schema(derived=True).columns,
    boolean("old"),
    numeric("age, years", 0, 9),
    ordinal("grade", ["a", "b"]),
    product("age", "age"),
)


@pytest.mark.parametrize(
    "formula",
    [
        "charges ~ age + bmi",
        "charges ~ age * bmi",
        "charges ~ age:bmi + I(age**2)",
        "charges ~ age + I(age**2) + active + C(smoker, Treatment('yes'))",
        "charges ~ C(region, Treatment(reference='south')) + active - 1",
        "charges ~ (age + bmi)**2 + C(smoker, Treatment('no'))",
        "active ~ age",
    ],
)
def test_every_term_is_statsmodels(formula: str) -> None:
    fit = regress(MOMENTS, formula, method="ols")
    data = pd.DataFrame(TABLE).assign(active=TABLE["active"].astype(float))
    theirs = smf.ols(formula, data).fit()
    np.testing.assert_allclose(sorted(np.asarray(fit.params)), sorted(theirs.params), rtol=1e-6)
    np.testing.assert_allclose(sorted(np.asarray(fit.bse)), sorted(theirs.bse), rtol=1e-6)
    if fit.design.intercept:  # without one statsmodels looks whether the levels make up for it
        assert fit.rsquared == pytest.approx(theirs.rsquared, rel=1e-7)


@pytest.mark.parametrize(
    ("formula", "target", "on", "intercept", "reference"),
    [
        ("charges ~ 1", "charges", (), True, {}),
        ("charges ~ 0 + age", "charges", ("age",), False, {}),
        ("charges ~ `age, years` + Q('age, years')", "charges", ("age, years",), True, {}),
        ("Q('smoker=yes') ~ age", "smoker=yes", ("age",), True, {}),
        ("charges ~ C(old) + old", "charges", ("old",), True, {}),
        ("charges ~ I(age * bmi) + bmi:age", "charges", ("age*bmi",), True, {}),
        ("charges ~ C(smoker, Treatment('yes'))", "charges", ("smoker",), True, {"smoker": "yes"}),
        ("charges ~ smoker=yes", "charges", ("smoker=yes",), True, {}),
    ],
)
def test_what_a_formula_asks_for(
    formula: str, target: str, on: tuple[str, ...], intercept: bool, reference: dict[str, str]
) -> None:
    if "smoker=yes" in formula and formula.startswith("charges"):
        formula = "charges ~ `smoker=yes`"
    found = read_formula(SCHEMA, formula)
    assert (found.target, found.on, found.intercept, found.reference) == (target, on, intercept, reference)


@pytest.mark.parametrize("formula", ["charges ~ age + charges", "`smoker=yes` ~ age + smoker"])
def test_a_target_among_features_is_refused_as_in_a_list(formula: str) -> None:
    """It was left out without a word; of a dot it is left out by what the dot means."""
    with pytest.raises(AnalysisError, match="cannot be a feature: it belongs to the target"):
        regress(MOMENTS, formula)


def test_a_dot_in_a_name_or_a_number_is_none_for_every_column() -> None:
    schema = Schema(numeric("a.b", 0, 1), numeric("c", 0, 1), product("a.b", "c"))
    assert read_formula(schema, "`a.b` ~ `a.b`:c").on == ("a.b*c",)
    assert read_formula(schema, "`a.b` ~ .").on == ("c",)


def test_a_dot_is_every_other_column() -> None:
    found = read_formula(insurance_schema(derived=True), "age ~ .")
    assert found.on == ("bmi", "smoker", "active", "region", "charges")


@pytest.mark.parametrize(
    ("formula", "words"),
    [
        ("charges ~ height", r"no column 'height'.*numeric\(\"height\", low, high\)"),
        ("charges ~ agee", "Did you mean 'age'"),
        ("charges ~ age:charges", r"no product age:charges.*product\(\"age\", \"charges\"\)"),
        ("charges ~ I(bmi**3)", r"bmi\^3.*legendre\(\"bmi\", 2\), legendre\(\"bmi\", 3\)"),
        ("charges ~ age:bmi:active", "Products of two columns"),
        ("charges ~ log(age)", r"log_age.*numeric\(\"log_age\", low, high\)"),
        ("log(charges) ~ age", "log_charges"),
        ("charges ~ poly(age, 2)", "Powers are written out"),
        ("charges ~ age:C(region)", r"categorical column 'region'.*product\(\"age\", \"region\"\)"),
        ("charges ~ smoker:region", r"product\(\"smoker\", \"region\"\)"),
        ("charges ~ smoker:region:age", "Products of two columns"),
        ("charges ~ C(age)", r"declared as numeric.*categorical\(\"age\""),
        ("charges ~ C(region, Sum)", "only Treatment"),
        ("charges ~ C(region, Treatment('mars'))", "no level 'mars'"),
        ("charges ~ age +", r"cannot be read; got 'charges ~ age \+'\. Write .*\"y ~ a \+ b\""),
        ("charges ~ )", r"cannot be read; got 'charges ~ \)'\. Write"),
        ("charges ~ ", r"nothing to the right of ~; .*\"charges ~ 1\" for the intercept alone"),
        ("~ age", "one column to its left"),
        ("charges + age ~ bmi", "one column to its left"),
        ("charges ~ I(age + 3)", "transformed before"),
        ("charges ~ __import__('os').system('x')", "cannot be read"),
    ],
)
def test_what_was_not_declared_is_answered(formula: str, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        regress(MOMENTS, formula)


def test_a_level_without_its_column_is_no_reference() -> None:
    for target, on in (("charges ~ region", None), ("charges", ["region"])):
        with pytest.raises(AnalysisError, match=r"Write reference=\{'region': 'south'\}"):
            regress(MOMENTS, target, on, reference="south")


def test_columns_in_one_text_are_told_as_a_list() -> None:
    with pytest.raises(AnalysisError, match=r"Write on=\['age', 'bmi'\]"):
        regress(MOMENTS, "charges", "age + bmi")


@pytest.mark.parametrize("target", [3, None, ["charges"]])
def test_a_target_that_is_no_text_is_no_column(target: object) -> None:
    with pytest.raises(SchemaError, match="no column"):
        regress(MOMENTS, target)


def test_a_formula_asks_for_a_declared_model() -> None:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(2, 8_000))
    data = {"x": x[0], "z": x[1], "t": draw.random(8_000) < 1.0 / (1.0 + np.exp(-x[0]))}
    schema = Schema(numeric("x", -6, 6), numeric("z", -6, 6), boolean("t"))
    release = publish(data, schema, epsilon=8, delta=1e-6, models=[logistic("t", on=["x", "z"])])
    plain = release.regress("t", ["x", "z"], family="logistic")
    for formula in ("t ~ x + z", "t ~ .", "t ~ z + x + 1"):
        assert release.regress(formula, family="logistic").params == plain.params
    with pytest.raises(AnalysisError, match="not declared; limit: t on x, z"):
        release.regress("t ~ x", family="logistic")
    with pytest.raises(AnalysisError, match="has an intercept"):
        release.regress("t ~ x + z - 1", family="logistic")
    with pytest.raises(AnalysisError, match="no product x:z"):
        release.regress("t ~ x * z", family="logistic")


def test_a_formula_and_a_list_are_one_too_many() -> None:
    with pytest.raises(AnalysisError, match="Leave out `on`"):
        regress(MOMENTS, "charges ~ age", ["bmi"])


def test_without_the_extra_one_line_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "formulaic.errors", None)
    with pytest.raises(MissingExtra, match=r"'formulaic'.*dpgram\[formula\]"):
        regress(MOMENTS, "charges ~ age")
    assert regress(MOMENTS, "charges", ["age"]).names == ("(intercept)", "age")


@pytest.mark.parametrize(
    ("formula", "name", "written"),
    [
        ("age, years ~ bmi", "'age, years'", "`age, years` ~ bmi"),
        ("charges ~ bmi + age, years", "'age, years'", "charges ~ bmi + `age, years`"),
        ("`age, years` ~ smoker=yes", "'smoker=yes'", "`age, years` ~ `smoker=yes`"),
    ],
)
def test_names_that_are_no_words_are_named_with_their_backticks(
    formula: str, name: str, written: str
) -> None:
    with pytest.raises(AnalysisError, match="no single word stands between backticks") as caught:
        read_formula(SCHEMA, formula)
    assert caught.value.what.endswith(f": {name}")
    assert f"Write {written!r}." in str(caught.value)
    assert read_formula(SCHEMA, written).target == written.partition(" ~")[0].strip("`")


@pytest.mark.parametrize(
    "formula", ["charges ~ age*bmi*old", "charges ~ nothing + `age, years`", "charges ~ age +"]
)
def test_other_mistakes_are_told_as_what_they_are(formula: str) -> None:
    with pytest.raises(AnalysisError) as caught:
        read_formula(SCHEMA, formula)
    assert "stands between backticks" not in str(caught.value)

"""Products with the levels of categorical columns: declared once, exact in length, told as R tells them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from tests.flat import publish
from tests.unit.analysis.tables import encode, exact_moments, insurance

import dpgram as dg
from dpgram.analysis.effects import did
from dpgram.analysis.moments import Moments
from dpgram.analysis.regress import regress
from dpgram.core.noise import SeededEntropy
from dpgram.errors import AnalysisError, SchemaError
from dpgram.planning import Assumption
from dpgram.publishing import publish_with

TABLE = insurance(3000)
FRAME = pd.DataFrame(TABLE).assign(active=TABLE["active"].astype(float))
SCHEMA = dg.Schema(
    dg.numeric("age", 18, 90, weight=0.5),
    dg.numeric("bmi", 10, 60),
    dg.categorical("smoker", ["no", "yes", "former"], weight=2.0),
    dg.boolean("active"),
    dg.categorical("region", ["east", "north", "south", "west"]),
    dg.numeric("charges", -30_000, 50_000),
    dg.product("smoker", "age", weight=0.7),
    dg.product("bmi", "smoker"),
    dg.product("active", "region"),
    dg.product("smoker", "region", weight=1.3),
    dg.product("age", "bmi"),
)
MOMENTS = exact_moments(SCHEMA, TABLE)
NO, SOUTH = "C(smoker, Treatment('no'))", "C(region, Treatment('south'))"
REFERENCE = {"smoker": "no", "region": "south"}


class TestDeclared:
    def test_names_and_positions(self) -> None:
        assert SCHEMA.indices("smoker*age") == tuple(SCHEMA.names.index(f"smoker={s}*age") for s in SMOKER)
        assert len(SCHEMA.indices("smoker*region")) == 12
        assert SCHEMA.names[SCHEMA.indices("smoker*region")[1]] == "smoker=no*region=north"
        assert SCHEMA.column("smoker*age").factors == ("smoker", "age")

    def test_a_row_is_no_longer_than_one_product(self) -> None:
        """At most weight² each, whatever the number of levels, and reached at the ends of the range."""
        rows = encode(SCHEMA, TABLE)
        for name, weight in (("smoker*age", 0.7), ("bmi*smoker", 1.0), ("smoker*region", 1.3)):
            lengths = np.sum(rows[:, SCHEMA.indices(name)] ** 2, axis=1)
            assert lengths.max() <= weight**2 * (1 + 1e-12)
        both = rows[:, SCHEMA.indices("smoker*region")]
        np.testing.assert_allclose(np.sum(both**2, axis=1), 1.3**2)
        assert SCHEMA.max_norm_squared == pytest.approx(
            1 + 0.25 + 1 + 4 + 1 + 1 + 1 + 0.49 + 1 + 1 + 1.69 + 1
        )

    def test_the_exact_matrix_is_that_of_the_definition(self) -> None:
        from dpgram.engines.local import gram

        found = gram(TABLE, SCHEMA)
        rows = encode(SCHEMA, TABLE)
        unit = SCHEMA.max_norm_squared / 2**30
        np.testing.assert_allclose(found.cells * unit, rows.T @ rows, rtol=1e-3, atol=0.5)

    def test_files_keep_the_declaration(self, tmp_path: Path) -> None:
        SCHEMA.to_file(tmp_path / "a.toml")
        again = dg.Schema.from_file(tmp_path / "a.toml")
        assert again == SCHEMA
        assert again.names == SCHEMA.names
        assert SCHEMA.to_dict()["columns"][6] == {
            "kind": "product", "left": "smoker", "right": "age", "weight": 0.7
        }  # fmt: skip

    def test_levels_that_are_learnt_later_are_multiplied_then(self) -> None:
        schema = dg.Schema(dg.categorical("city"), dg.boolean("old"), dg.product("city", "old"))
        found = schema.with_levels({"city": ("Bern", "Basel")})
        assert found.names[-3:] == ("city=Bern*old", "city=Basel*old", "city=other*old")

    def test_mistakes(self) -> None:
        city = dg.categorical("city", ["a", "b"])
        with pytest.raises(SchemaError, match="with itself"):
            dg.Schema(city, dg.product("city", "city"))
        with pytest.raises(SchemaError, match="does not declare"):
            dg.Schema(city, dg.product("city", "age"))
        with pytest.raises(SchemaError, match="cannot be made from"):
            dg.Schema(city, dg.legendre("city", 2))
        many = [dg.categorical(name, [str(i) for i in range(1200)]) for name in "ab"]
        with pytest.raises(SchemaError, match="too many encoded columns; got 1442401"):
            dg.Schema(*many, dg.product("a", "b"))


SMOKER = ("no", "yes", "former")


@pytest.mark.parametrize("constant", [True, False])
def test_what_adds_up_is_known_and_nothing_else(constant: bool) -> None:
    """Every known sum is zero in every row, none follows from the others, and no sum is missing."""
    schema = dg.Schema(*SCHEMA.columns, constant=constant)
    rows = encode(schema, TABLE)
    sums = np.zeros((schema.width, len(schema.known_sums)))
    for number, function in enumerate(schema.known_sums):
        sums[list(function), number] = list(function.values())
    np.testing.assert_allclose(rows @ sums, 0.0, atol=1e-12)
    assert np.linalg.matrix_rank(sums) == sums.shape[1]
    assert np.linalg.matrix_rank(rows) == schema.width - sums.shape[1]
    null = exact_moments(schema, TABLE).known_null_space
    np.testing.assert_allclose(rows @ null, 0.0, atol=1e-9)


def test_one_level_alone_is_the_other_factor() -> None:
    schema = dg.Schema(dg.categorical("g", ["a"]), dg.boolean("b"), dg.product("g", "b"))
    assert len(schema.known_sums) == 2


@pytest.mark.parametrize(
    "formula",
    [
        f"charges ~ {NO} * age",
        f"charges ~ {NO}:age",
        f"charges ~ {NO} + {NO}:age",
        f"charges ~ age + {NO}:age + bmi",
        f"charges ~ {NO} * bmi + {SOUTH}",
        f"charges ~ active * {SOUTH} + age * bmi",
        f"charges ~ {NO} * {SOUTH}",
        f"charges ~ {NO} + {NO}:{SOUTH}",
        f"charges ~ 0 + {NO}:{SOUTH}",
        f"charges ~ 0 + {NO} + {NO}:age",
        f"charges ~ 0 + {NO} * age",
    ],
)
def test_every_formula_is_that_of_statsmodels(formula: str) -> None:
    ours, theirs = regress(MOMENTS, formula, method="ols"), smf.ols(formula, FRAME).fit()
    assert len(ours.params) == len(theirs.params)
    np.testing.assert_allclose(sorted(np.asarray(ours.params)), sorted(theirs.params), rtol=1e-6)
    np.testing.assert_allclose(sorted(np.asarray(ours.bse)), sorted(theirs.bse), rtol=1e-6)
    np.testing.assert_allclose(ours.get_prediction(TABLE).predicted_mean, theirs.fittedvalues, rtol=1e-6)
    np.testing.assert_allclose(ours.predict(TABLE), theirs.fittedvalues, rtol=1e-6)
    assert ours.scale == pytest.approx(theirs.scale, rel=1e-7)


def test_two_groups_without_main_effects_span_what_r_spans() -> None:
    """R codes this one otherwise; the fit is the same."""
    ours = regress(MOMENTS, "charges", ["smoker*region"], method="ols", reference=REFERENCE)
    theirs = smf.ols("charges ~ C(smoker):C(region)", FRAME).fit()
    assert len(ours.params) == 12
    assert "smoker=no:region=south" not in ours.names
    np.testing.assert_allclose(ours.predict(TABLE), theirs.fittedvalues, rtol=1e-6)


def test_lists_formulas_and_single_products_agree() -> None:
    asked = [
        regress(MOMENTS, f"charges ~ {NO} * age", method="ols"),
        regress(MOMENTS, "charges", ["smoker", "age", "smoker*age"], method="ols", reference=REFERENCE_NO),
        regress(MOMENTS, "charges", ["smoker", "age", "smoker:age"], method="ols", reference=REFERENCE_NO),
        regress(
            MOMENTS, "charges", ["smoker", "age", "smoker=yes*age", "smoker=former:age"],
            method="ols", reference=REFERENCE_NO,
        ),
        regress(
            MOMENTS, "charges ~ C(smoker, Treatment('no')) + age + `smoker=yes`:age + `smoker=former`:age",
            method="ols",
        ),
    ]  # fmt: skip
    for fit in asked:
        assert fit.names[-2:] == ("smoker=yes:age", "smoker=former:age")
        np.testing.assert_allclose(fit.params, asked[0].params, rtol=1e-9)


REFERENCE_NO = {"smoker": "no"}


def test_all_columns_by_default() -> None:
    """Everything declared at once: each interaction beside its main effects, nothing twice."""
    ours = regress(MOMENTS, "charges", method="ols", reference=REFERENCE)
    theirs = smf.ols(
        f"charges ~ {NO} * age + {NO} * bmi + active * {SOUTH} + {NO} * {SOUTH} + age * bmi", FRAME
    ).fit()
    np.testing.assert_allclose(sorted(np.asarray(ours.params)), sorted(theirs.params), rtol=1e-5)
    assert ours.f_test("smoker*age").statistic == pytest.approx(
        float(theirs.f_test(", ".join(f"{NO}[T.{s}]:age = 0" for s in ("yes", "former"))).fvalue), rel=1e-5
    )
    other = regress(MOMENTS, "smoker=yes", method="ols")
    assert "age:bmi" in other.names
    assert not any("smoker" in name for name in other.names)


def test_marginal_effects_of_levels_depend_on_the_other_factor() -> None:
    for on in (["smoker", "age", "smoker*age"], ["smoker", "smoker*age"]):
        fit = regress(MOMENTS, "charges", on, method="ols", reference=REFERENCE_NO)
        found = fit.marginal_effects({"age": 40})
        effect = dict(zip(found.names, found.effect, strict=True))
        rows = {"age": [40.0, 40.0, 41.0, 41.0], "smoker": ["yes", "no", "yes", "no"]}
        yes, no, older_yes, older_no = fit.get_prediction(rows).predicted_mean
        assert effect["smoker=yes"] == pytest.approx(yes - no, rel=1e-9)
        shares = pd.Series(TABLE["smoker"]).value_counts(normalize=True)
        former = fit.get_prediction({"age": [40.0, 41.0], "smoker": ["former"] * 2}).predicted_mean
        slopes = {"yes": older_yes - yes, "no": older_no - no, "former": former[1] - former[0]}
        assert effect["age"] == pytest.approx(sum(shares[s] * slopes[s] for s in SMOKER), rel=1e-9)
        one = fit.marginal_effects({"smoker": "yes", "age": 40})
        assert dict(zip(one.names, one.effect, strict=True))["age"] == pytest.approx(slopes["yes"], rel=1e-9)
    with pytest.raises(AnalysisError, match="no influence"):
        fit.marginal_effects({"bmi": 20})
    for several in ([40, 60], [], np.nan):  # all but the first were left out
        with pytest.raises(AnalysisError, match="'age' needs one value"):
            fit.marginal_effects({"age": several})
    assert fit.marginal_effects({"age": [40]}).effect.tolist() == found.effect.tolist()


def test_other_answers(tmp_path: Path) -> None:
    fit = regress(MOMENTS, "charges", ["smoker", "age", "smoker*age"], reference=REFERENCE_NO)
    assert fit.design.references == REFERENCE_NO
    assert set(fit.wald_test_terms()) == {"smoker", "age", "smoker:age"}
    assert fit.wald_test_terms()["smoker:age"].df_num == 2
    for spelt in ("smoker:age", "smoker*age"):
        assert fit.wald_test(spelt).df_num == fit.f_test(["age", spelt]).df_num - 1 == 2
    assert len(fit.standardised().names) == len(fit.vif) == 5
    fit.plot(str(tmp_path / "fit.png"))


def test_difference_in_differences_of_a_level() -> None:
    schema = dg.Schema(*SCHEMA.columns[:6], dg.product("smoker", "active"))
    table = {**TABLE, "smoker": np.where(TABLE["smoker"] == "yes", "yes", "no")}
    found = did(exact_moments(schema, table), "charges", "smoker=yes", "active", ["age"])
    frame = pd.DataFrame(table).assign(yes=(table["smoker"] == "yes") * 1.0, active=TABLE["active"] * 1.0)
    theirs = smf.ols("charges ~ yes * active + age", frame).fit()
    assert found.names == ("smoker=yes:active",)
    assert found.params["smoker=yes:active"] == pytest.approx(theirs.params["yes:active"], rel=1e-6)
    assert found.bse["smoker=yes:active"] == pytest.approx(theirs.bse["yes:active"], rel=1e-6)
    with pytest.raises(AnalysisError, match=r"dg.product\('smoker', 'bmi'\)"):
        did(exact_moments(schema, table), "charges", "smoker=yes", "bmi")


@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("adaptive", [True, False])
def test_a_release_answers_what_the_table_would(adaptive: bool, tmp_path: Path) -> None:
    """Slopes within levels, from a file, in intervals; noise along what is known to add up is taken out."""
    table = insurance(20_000)
    schema = dg.Schema(
        dg.numeric("age", 18, 90),
        dg.categorical("smoker", ["no", "yes", "former"]),
        dg.numeric("charges", -30_000, 50_000),
        dg.product("smoker", "age"),
    )
    (made,) = publish_with(
        table, schema, epsilon=4.0, delta=1e-6, entropy=SeededEntropy(3), adaptive=adaptive
    )
    release = dg.load(made.save(tmp_path / "a.json"))
    moments = Moments.of(release)
    assert moments.known_null_space.shape[1] == 2
    formula = f"charges ~ {NO} * age"
    fit, theirs = release.regress(formula), smf.ols(formula, pd.DataFrame(table)).fit()
    ends = fit.conf_int(0.999)
    assert fit.names == (
        "(intercept)",
        "smoker=yes",
        "smoker=former",
        "age",
        "smoker=yes:age",
        "smoker=former:age",
    )
    for name, value in theirs.params.items():
        own = str(name).replace("Intercept", "(intercept)").replace(f"{NO}[T.", "smoker=").replace("]", "")
        assert ends[own][0] < value < ends[own][1]
    mean = release.mean()["smoker=yes:age"]
    assert mean == pytest.approx(np.mean(table["age"] * (table["smoker"] == "yes")), rel=0.05)
    every = [column.name for column in release.schema.columns]
    assert len(release.pca(on=every).variances) == len(release.columns) - 1 - 2  # sums do not vary
    assert release.correlation(every).names[-3:] == ("smoker=no:age", "smoker=yes:age", "smoker=former:age")


def test_plans_know_them() -> None:
    """Assumed second moments are those of independent columns, and a forecast is made."""
    moments = Assumption(correlation=0.0, r_squared=0.0).second_moments(
        SCHEMA, target=SCHEMA.indices("charges")[0], features=SCHEMA.indices("bmi")
    )
    draw = np.random.default_rng(0)
    rows = 200_000
    z = {name: draw.beta(2, 2, rows) for name in ("age", "bmi", "charges")}
    spread = Assumption().second_moments(
        dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", -1, 1)), target=2, features=[1]
    )[1, 1]
    table = {
        "age": 54 + 36 * _of_spread(z["age"], spread), "bmi": 35 + 25 * _of_spread(z["bmi"], spread),
        "charges": 10_000 + 40_000 * _of_spread(z["charges"], spread),
        "smoker": draw.choice(SMOKER, rows), "active": draw.random(rows) < 0.5,
        "region": draw.choice(["east", "north", "south", "west"], rows),
    }  # fmt: skip
    drawn = encode(SCHEMA, table)
    places = [i for i, name in enumerate(SCHEMA.names) if "charges" not in name and name != "age*bmi"]
    np.testing.assert_allclose(
        moments[np.ix_(places, places)], (drawn.T @ drawn / rows)[np.ix_(places, places)], atol=0.02
    )
    plan = dg.plan(SCHEMA, target="charges", epsilon=1, delta=1e-6, rows=dg.Rows(expected=50_000))
    assert "charges" in str(plan)


def _of_spread(beta: np.ndarray, variance: float) -> np.ndarray:
    """A symmetric law of this variance on [-1, 1]."""
    return (beta - 0.5) / np.std(beta) * np.sqrt(variance)


def test_groups_of_an_option_cannot_be_multiplied() -> None:
    schema = dg.Schema(dg.categorical("g", ["a", "b"]), dg.numeric("x", 0, 1), dg.product("g", "x"))
    with pytest.raises(SchemaError, match="made from a column that groups"):
        publish({"g": ["a", "b"], "x": [0.1, 0.2]}, schema, epsilon=1.0, delta=1e-6, by="g")


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
def test_a_declared_model_is_found_by_either_spelling() -> None:
    draw = np.random.default_rng(0)
    x = draw.uniform(0.0, 1.0, 5_000)
    table = {"x": x, "k": draw.poisson(np.exp(0.5 + x - 0.5 * x**2)) * 1.0}
    schema = dg.Schema(dg.numeric("x", 0, 1), dg.numeric("k", 0, 20), dg.legendre("x", 2))
    options = {"epsilon": 8.0, "delta": 1e-6, "adaptive": True, "entropy": SeededEntropy(1)}
    release = publish(table, schema, models=[dg.poisson("k", on=["x", "x^P2"])], **options)
    for spelt in ("x^2", "x^P2"):
        assert release.regress("k", ["x", spelt], family="poisson").names == ("(intercept)", "x", "x^2")
    assert release.regress("k ~ x + I(x**2)", family="poisson").names[2] == "x^2"
    with pytest.raises(AnalysisError, match="was not declared"):
        release.regress("k", ["x"], family="poisson")

"""Results are values: text, HTML, frames, predictions, bounds."""

from __future__ import annotations

import dataclasses
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import statsmodels.api as sm
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram.analysis._error_bounds import error_bound
from dpgram.analysis.design import build_design
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.analysis.pca import pca
from dpgram.analysis.regress import regress
from dpgram.errors import AnalysisError, MissingExtra
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.schema import Schema, boolean, categorical, numeric

TABLE = insurance(3000)
FIT = regress(exact_moments(insurance_schema(), TABLE, sigma=10.0), "charges", ["age", "bmi", "smoker"])
COMPONENTS = pca(exact_moments(insurance_schema(), TABLE, sigma=5.0), k=2)


def test_summary_says_everything_one_must_know() -> None:
    text = FIT.summary()
    for words in (
        "Regression of charges",
        "auto",
        "smoker=yes",
        "compared with 'no'",
        "95% from",
        "un-shrunken regression in the population",
        "R²",
        "(noisy)",
    ):
        assert words in text
    assert "of this table" in FIT.summary(kind="table")
    assert "90% from" in FIT.summary(0.9)
    assert str(FIT) == text
    assert max(map(len, text.splitlines())) <= 100


def test_html_escapes_what_the_schema_says() -> None:
    schema = Schema(
        numeric("<script>alert(1)</script>", 0, 1), categorical("a&b", ["<i>", "y"]), numeric("y", 0, 1)
    )
    rng = np.random.default_rng(0)
    table = {
        "<script>alert(1)</script>": rng.random(50),
        "a&b": rng.choice(["<i>", "y"], 50),
        "y": rng.random(50),
    }
    html = regress(exact_moments(schema, table), "y")._repr_html_()
    assert "<script>" not in html
    assert "<i>" not in html
    assert "&lt;script&gt;" in html
    assert "a&amp;b" in html


def test_frame_has_the_numbers_of_the_result() -> None:
    frame = FIT.to_frame()
    assert isinstance(frame, pl.DataFrame)
    assert frame["name"].to_list() == list(FIT.names)
    np.testing.assert_array_equal(frame["fitted"], FIT.values)
    intervals = FIT.conf_int()
    assert frame["low"].to_list() == [intervals[name][0] for name in FIT.names]
    assert frame["p_value"].to_list() == list(FIT.pvalues.values())


def test_without_polars_the_frame_is_of_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted, components = FIT.to_frame(), COMPONENTS.to_frame()
    monkeypatch.setitem(sys.modules, "polars", None)
    for found, other in ((FIT.to_frame(), wanted), (COMPONENTS.to_frame(), components)):
        assert isinstance(found, pd.DataFrame)
        assert found.to_dict("list") == other.to_dict(as_series=False)


def test_without_any_frame_library_one_line_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("polars", "pandas"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"'polars'.*dpgram\[frame\]"):
        FIT.to_frame()


def test_results_are_frozen() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        FIT.method = "ols"
    with pytest.raises(dataclasses.FrozenInstanceError):
        FIT.inference().kind = "table"


@pytest.mark.parametrize(
    "make", [dict, pd.DataFrame, pl.DataFrame, pa.table, lambda t: pl.DataFrame(t).to_dicts()]
)
def test_new_rows_may_come_in_any_form(make: object) -> None:
    rows = {"age": [30.0, 60.0], "bmi": [20, 40], "smoker": ["yes", "former"]}
    c = FIT.fitted_params
    expected = [
        c["(intercept)"] + 30 * c["age"] + 20 * c["bmi"] + c["smoker=yes"],
        c["(intercept)"] + 60 * c["age"] + 40 * c["bmi"] + c["smoker=former"],
    ]
    np.testing.assert_allclose(FIT.predict(make(rows)), expected)


def test_one_row_of_scalars_and_constant_columns() -> None:
    one = FIT.predict({"age": 40, "bmi": 30.0, "smoker": "no"})
    assert one.shape == (1,)
    spread = FIT.predict({"age": [40, 41], "bmi": 30.0, "smoker": "no"})
    assert spread.shape == (2,)
    assert spread[0] == pytest.approx(one[0])


def test_dates_levels_as_numbers_and_other() -> None:
    schema = Schema(
        numeric("day", "2020-01-01", "2020-12-31"),
        categorical("grade", [1, 2], other="rest"),
        boolean("ok"),
        numeric("y", 0, 10),
    )
    rng = np.random.default_rng(1)
    n = 400
    days = rng.integers(18262, 18627, n)
    grades = rng.choice(["1", "2", "rest"], n)
    ok = rng.random(n) < 0.5
    y = 1 + 0.01 * (days - 18262) + 2.0 * (grades == "2") + 1.0 * ok
    fit = regress(exact_moments(schema, {"day": days, "grade": grades, "ok": ok, "y": y}), "y")
    rows = {
        "day": np.array(["2020-01-01", "2020-02-01"], dtype="datetime64[D]"),
        "grade": [2, 77],
        "ok": [True, False],
    }
    np.testing.assert_allclose(fit.predict(rows), [4.0, 1.31], rtol=1e-9)
    as_text = {"day": ["2020-01-01", "2020-02-01"], "grade": ["2", "x"], "ok": [1, 0]}
    np.testing.assert_allclose(fit.predict(as_text), [4.0, 1.31], rtol=1e-9)


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ({"age": [1.0], "bmi": [1.0]}, "no column 'smoker'"),
        ({"age": [1.0], "bmi": [1.0], "smoker": ["maybe"]}, "does not know"),
        ({"age": ["old"], "bmi": [1.0], "smoker": ["no"]}, "must hold numbers"),
        ({"age": [1.0, 2.0, 3.0], "bmi": [1.0, 2.0], "smoker": ["no"]}, "differs in length"),
        (7, "mapping or a frame"),
    ],
)
def test_unusable_new_rows_are_named(rows: object, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        FIT.predict(rows)


def test_prediction_intervals_match_statsmodels_without_noise() -> None:
    fit = regress(exact_moments(insurance_schema(), TABLE), "charges", ["age", "bmi"])
    x = np.column_stack([np.ones(3000), TABLE["age"], TABLE["bmi"]])
    reference = sm.OLS(TABLE["charges"], x).fit().get_prediction(x[:20]).summary_frame(alpha=0.1)
    rows = {"age": TABLE["age"][:20], "bmi": TABLE["bmi"][:20]}
    found = fit.get_prediction(rows)
    np.testing.assert_allclose(found.predicted_mean, reference["mean"], rtol=1e-8)
    np.testing.assert_allclose(found.se_mean, reference["mean_se"], rtol=1e-7)
    np.testing.assert_allclose(
        found.conf_int(0.9, obs=True), reference[["obs_ci_lower", "obs_ci_upper"]], rtol=1e-7
    )
    np.testing.assert_allclose(found.conf_int(0.9), reference[["mean_ci_lower", "mean_ci_upper"]], rtol=1e-7)
    frame = found.summary_frame(0.9)
    assert list(frame.columns) == list(reference.columns)
    np.testing.assert_allclose(frame.to_numpy(), reference.to_numpy(), rtol=1e-7)
    with pytest.raises(AnalysisError, match="probability"):
        found.conf_int(2.0)


def test_prediction_intervals_cover_new_rows_under_noise() -> None:
    """95% intervals for new observations, 40 releases × 200 rows: within 93–97%."""
    hits = []
    new = insurance(200, seed=77)
    for seed in range(40):
        moments = exact_moments(insurance_schema(), insurance(5000, seed=seed), sigma=30.0, seed=seed)
        found = regress(moments, "charges", ["age", "bmi", "smoker", "active"]).get_prediction(new)
        low, high = found.conf_int(obs=True).T
        hits.append((low <= new["charges"]) & (new["charges"] <= high))
    assert 0.92 <= np.mean(hits) <= 0.98


@pytest.mark.parametrize("law", [SymmetricGaussian(sigma=15.0), MatrixLaplace(theta=0.25, width=13)])
def test_error_bounds_hold_with_their_confidence(law: SymmetricGaussian | MatrixLaplace) -> None:
    """At confidence 0.9 at most 10% of 40 releases may exceed; nor may the bounds be vacuous."""
    exact = exact_moments(insurance_schema(), TABLE)
    noise = EncodedNoise.of(law)
    design = build_design(exact, "charges", ["age", "bmi", "active"])
    basis = orthonormal(exact.project(design.vectors))
    target = exact.project(design.target_vector)
    rng = np.random.default_rng(8)

    def ridge(moments: Moments, penalty: float) -> np.ndarray:
        gram = moments.consistent_gram
        A = basis.T @ gram @ basis
        return np.linalg.solve(A + penalty * np.eye(len(A)), basis.T @ gram @ target)

    outside = {"amin": 0, "sheffet": 0}
    for _ in range(40):
        moments = dataclasses.replace(exact, gram=noise.redraw(exact.gram, rng), noise=noise)
        bound = error_bound(moments, design, ridge=40.0, confidence=0.9)
        assert bound.norm == pytest.approx(np.linalg.norm(ridge(moments, 40.0)))
        outside["amin"] += np.linalg.norm(ridge(moments, 40.0) - ridge(exact, 40.0)) > bound.amin
        outside["sheffet"] += np.linalg.norm(ridge(moments, 0.0) - ridge(exact, 0.0)) > bound.sheffet
    assert outside["amin"] <= 4
    assert outside["sheffet"] <= 4
    assert bound.amin < 1.5 * bound.norm
    assert bound.sheffet < np.inf


def test_error_bound_is_infinite_when_nothing_holds_the_fit() -> None:
    moments = exact_moments(insurance_schema(), insurance(500), sigma=800.0)
    bound = regress(moments, "charges").error_bound(ridge=0.0)
    assert bound.amin == np.inf
    assert bound.sheffet == np.inf
    assert np.isfinite(regress(moments, "charges").error_bound().amin)
    assert "Lemma 1" in str(bound)
    with pytest.raises(AnalysisError, match="probability"):
        regress(moments, "charges").error_bound(confidence=1.5)


def test_error_bound_vanishes_without_noise() -> None:
    bound = regress(exact_moments(insurance_schema(), TABLE), "charges").error_bound()
    assert (bound.amin, bound.sheffet) == (0.0, 0.0)

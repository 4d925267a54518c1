"""Levels without rows leave the fit of an adaptive release, in Python and on the page, and it is said."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tests.unit.explorer.test_arithmetic import NODE, ask

import dpgram as dg
from dpgram.analysis.moments import Moments
from dpgram.errors import DpgramWarning
from dpgram.explorer.facts import page_facts
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with

ROWS = 20_000


@pytest.fixture(scope="module")
def release() -> dg.Release:
    generator = np.random.default_rng(0)
    group = generator.integers(0, 2, ROWS)
    table = {
        "g": np.array(["a", "b"])[group],
        "x": generator.uniform(0, 1, ROWS),
        "y": group + generator.normal(0, 0.5, ROWS),
    }
    schema = dg.Schema(
        dg.categorical("g", ["never", "a", "b", "hardly"]), dg.numeric("x", 0, 1), dg.numeric("y", -5, 5)
    )
    options = {"epsilon": 1.0, "delta": 1e-6, "progress": False}
    (found,) = publish_with(table, schema, entropy=SeededEntropy(3), **options)
    return found


@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
def test_empty_levels_leave_the_fit_and_the_others_have_intervals(release: dg.Release) -> None:
    fit = release.regress("y", on=["g", "x"])
    assert len(fit.names) == 3
    assert fit.design.empty == ("g=never", "g=hardly")
    for low, high in fit.conf_int().values():
        assert -np.inf < low < high < np.inf
    (level,) = (name for name in fit.names if name.startswith("g="))
    assert abs(fit.params[level]) == pytest.approx(1.0, abs=0.05)
    assert any("g=never, g=hardly" in caution for caution in fit.cautions)


@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
def test_a_row_with_an_empty_level_has_no_interval(release: dg.Release) -> None:
    fit = release.regress("y", on=["g", "x"])
    people = {"g": ["a", "never", "b", "never"], "x": [0.5, 0.5, 0.5, 0.5]}
    with pytest.warns(DpgramWarning, match="with g=never, so the fit knows nothing") as told:
        found = fit.get_prediction(people)
    assert {Path(each.filename).name for each in told} == {Path(__file__).name}
    unknown = np.array([False, True, False, True])
    for obs in (False, True):
        assert (np.isnan(found.conf_int(obs=obs)).all(axis=1) == unknown).all()
    assert (np.isnan(found.se_mean) == unknown).all()
    assert (np.isnan(found.se_obs) == unknown).all()
    assert np.isfinite(found.predicted_mean).all()
    assert [refusal is not None for refusal in found.refusals] == unknown.tolist()
    with pytest.warns(DpgramWarning, match="predicted as if it had the reference level"):
        fit.predict(people)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit.predict({"g": ["a", "b"], "x": [0.5, 0.5]})
        release.regress("y", on=["x"]).predict({"g": ["never"], "x": [0.5]})


def test_a_column_with_one_level_of_rows_may_be_left_out() -> None:
    """No term needs it then; where it is given, it is looked at."""
    generator = np.random.default_rng(1)
    table = {"g": ["a"] * ROWS, "y": generator.uniform(0, 1, ROWS), "x": generator.uniform(0, 1, ROWS)}
    schema = dg.Schema(dg.categorical("g", ["a", "b"]), dg.numeric("x", 0, 1), dg.numeric("y", 0, 1))
    options = {"epsilon": 5.0, "delta": 1e-6, "progress": False}
    (lonely,) = publish_with(table, schema, entropy=SeededEntropy(3), **options)
    fit = lonely.regress("y", on=["g", "x"])
    assert fit.names == ("(intercept)", "x")
    assert fit.predict({"x": [0.5]}) == fit.predict({"x": [0.5], "g": ["a"]})
    with pytest.warns(DpgramWarning, match="g=b"):
        fit.predict({"x": [0.5], "g": ["b"]})


@pytest.mark.skipif(NODE is None, reason="Node.js is not installed")
@pytest.mark.filterwarnings("ignore:rows far from the others count less:dpgram.errors.DpgramWarning")
def test_the_page_says_the_same_of_one_person(release: dg.Release) -> None:
    persons = [{"g": level, "x": 0.5} for level in ("a", "never")]
    question = {"ask": "questions", "target": "y", "on": ["g", "x"], "kind": "population", "level": 0.95}
    (told,) = ask(release, {**question, "persons": persons})
    known, unknown = told["predictions"]
    fit = release.regress("y", on=["g", "x"])
    assert known["mean"] == pytest.approx(fit.get_prediction(persons[:1]).predicted_mean[0], rel=1e-6)
    with pytest.warns(DpgramWarning, match="g=never"):
        found = fit.get_prediction(persons[1:])
    assert unknown["refused"] == found.refusals[0]
    assert "low" not in unknown


@pytest.fixture(scope="module")
def declared() -> dg.Release:
    """A logit, a probit and a model of counts; noise hides the step of none."""
    generator = np.random.default_rng(0)
    group, x = generator.integers(0, 2, ROWS), generator.uniform(0, 1, ROWS)
    table = {
        "g": np.array(["a", "b"])[group],
        "x": x,
        "ill": generator.uniform(size=ROWS) < 1 / (1 + np.exp(-(x - 0.5 + 0.5 * group))),
        "visits": np.minimum(generator.poisson(np.exp(0.3 + 0.2 * x + 0.3 * group)), 20),
    }
    columns = [dg.categorical("g", ["never", "a", "b"]), dg.numeric("x", 0, 1), dg.boolean("ill")]
    schema = dg.Schema(*columns, dg.numeric("visits", 0, 20))
    asked = [dg.logistic("ill", on=["g", "x"]), dg.probit("ill", on=["g", "x"])]
    asked += [dg.poisson("visits", on=["g", "x"])]
    options = {"epsilon": 4.0, "delta": 1e-6, "progress": False, "models": asked}
    (found,) = publish_with(table, schema, entropy=SeededEntropy(3), **options)
    return found


DECLARED = (("logistic", "ill"), ("probit", "ill"), ("poisson", "visits"))


@pytest.mark.parametrize(("family", "target"), DECLARED)
def test_declared_models_know_them_too(declared: dg.Release, family: str, target: str) -> None:
    fit = declared.regress(target, ["g", "x"], family=family)
    assert len(fit.names) == 3
    assert any("rows to speak of with g=never: left out of the fit" in caution for caution in fit.cautions)
    people = {"g": ["a", "never", "b"], "x": [0.5, 0.5, 0.5]}
    for predict in (fit.predict, fit.predict_interval):
        with pytest.warns(DpgramWarning, match="with g=never, so the fit knows nothing") as told:
            predict(people)
        assert {Path(each.filename).name for each in told} == {Path(__file__).name}
    with pytest.warns(DpgramWarning, match="as if it had the reference level"):
        found = fit.predict_interval(people)
    assert np.isfinite(found[:, 0]).all()
    assert np.isnan(found[:, 1:]).all(axis=1).tolist() == [False, True, False]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(fit.predict_interval({"g": ["a", "b"], "x": [0.5, 0.5]})).all()


def test_the_page_says_it_of_declared_models(declared: dg.Release) -> None:
    known, unknown = ask(
        declared,
        *({"ask": "models", "level": 0.95, "person": {"g": level, "x": 0.5}} for level in ("a", "never")),
    )
    assert [each["prediction"].get("refused") for each in known] == [None] * 3
    for each in unknown:
        assert "no rows to speak of with g=never" in each["prediction"]["refused"]
        assert "low" not in each["prediction"]


def test_no_prediction_rests_on_a_coefficient_that_noise_hides(declared: dg.Release) -> None:
    """Its probability was that of all coefficients being nothing, one half."""
    fit = declared.regress("ill", ["g", "x"], family="logistic")
    (level,) = (i for i, name in enumerate(fit.names) if name.startswith("g="))
    trusted = np.arange(len(fit.names)) != level
    hidden = replace(fit, trusted=trusted, estimate=np.where(trusted, fit.estimate, 0.0))
    own, other = fit.names[level].removeprefix("g="), fit.design.references["g"]
    found = hidden.predict_interval({"g": [own, other], "x": [0.5, 0.5]})
    assert np.isnan(found).all(axis=1).tolist() == [True, False]
    assert np.isfinite(hidden.predict({"g": [own], "x": [0.5]})).all()


def test_instruments_and_discriminants_say_which_levels_they_left_out(declared: dg.Release) -> None:
    told = "noisy counts show no rows to speak of with g=never: left out of the fit"
    instruments = declared.iv("visits", "x", "ill", controls=["g"])
    for found in (instruments, declared.discriminant("ill", ["g", "x"])):
        assert any(caution.startswith(told) for caution in found.cautions)
    assert not any("rows to speak of" in caution for caution in declared.discriminant("ill", ["x"]).cautions)


def test_a_level_that_is_named_stays(release: dg.Release) -> None:
    fit = release.regress("y", on=["g=never", "x"])
    assert "g=never" in fit.names


def test_the_page_knows_them(release: dg.Release) -> None:
    facts = page_facts(release)
    assert [column["name"] for column in facts["columns"] if column["empty"]] == ["g=never", "g=hardly"]


def test_of_every_column_one_level_is_kept() -> None:
    schema = dg.Schema(dg.categorical("g", ["a", "b"]), dg.numeric("y", 0, 1))
    (release,) = publish_with(
        {"g": ["a"], "y": [0.5]}, schema, entropy=SeededEntropy(4), epsilon=0.1, delta=1e-6, progress=False
    )
    assert len(Moments.of(release).empty_levels) <= 1

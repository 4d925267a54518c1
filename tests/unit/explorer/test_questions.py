"""Questions to the page as to Python: references, joint tests, predictions, instruments, declared models."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from scipy import special
from tests.declared import CURVED, every_family
from tests.unit.explorer.test_arithmetic import DIGITS, NODE, ask, close, mixed_schema, same_fit, seeded

import dpgram as dg
from dpgram.demo import insurance
from dpgram.errors import AnalysisError
from dpgram.release import Release

pytestmark = [
    pytest.mark.skipif(NODE is None, reason="Node.js is not installed"),
    pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning"),  # cautions, which the page shows too
]

CROSSED = (dg.product("smoker", "age"), dg.product("smoker", "region"))
PERSONS = (
    {"age": 33, "bmi": 27.5, "smoker": "yes", "region": "south", "exercise": 3.0, "charges": 9000.0},
    {"age": 71, "bmi": 41.0, "smoker": "no", "region": "north", "exercise": 0.0, "charges": 100.0},
)


@pytest.fixture(scope="module")
def releases() -> dict[str, Release]:
    table = insurance.table(20_000)
    whole = dg.Schema(*mixed_schema().columns, *CROSSED)
    learnt = dg.Schema(dg.numeric("age", 18, 90), dg.numeric("bmi"), dg.numeric("charges"))
    terms = {"epsilon": 3.0, "delta": 1e-6}
    return {
        "plain": seeded(table, whole, adaptive=False, **terms),
        "adaptive": seeded(table, mixed_schema(), adaptive=True, **terms),
        "laplace": seeded(table, mixed_schema(), adaptive=False, mechanism="laplace", epsilon=8.0, delta=0.0),
        "no constant": seeded(
            table, mixed_schema(constant=False), adaptive=False, adjacency="replace-one", **terms
        ),
        "learnt": seeded(table, learnt, adaptive=True, **terms),
        "drowned": seeded(table, mixed_schema(), adaptive=False, epsilon=0.01, delta=1e-6),
    }


EVERY = ("plain", "adaptive", "laplace", "no constant", "learnt", "drowned")
REGRESSIONS = (
    ("charges", ["age", "smoker", "region"]),
    ("charges", ["age", "bmi", "age*bmi", "age^P2"]),
    ("charges", ["age", "smoker", "region", "smoker*age", "smoker*region"]),
    ("bmi", ["charges", "age"]),
    ("smoker=yes", ["age", "exercise"]),
)


def asked_of(release: Release) -> list[tuple[str, list[str]]]:
    declared = {column.name for column in release.schema.columns}
    return [(y, on) for y, on in REGRESSIONS if y in release.columns and set(on) <= declared]


@pytest.mark.parametrize("name", EVERY)
def test_joint_tests_and_predictions_agree(releases: dict[str, Release], name: str) -> None:
    release = releases[name]
    questions = [
        {"ask": "questions", "target": y, "on": on, "kind": kind, "level": level, "persons": PERSONS}
        for y, on in asked_of(release)
        for kind, level in (("population", 0.95), ("table", 0.9))
    ]
    assert questions
    for question, told in zip(questions, ask(release, *questions), strict=True):
        kind, level = question["kind"], question["level"]
        fit = release.regress(question["target"], question["on"], intercept=release.schema.constant)
        try:
            tests = fit.wald_test_terms(kind)
        except AnalysisError:
            assert any("refused" in each for each in told["tests"].values())
        else:
            assert list(told["tests"]) == list(tests)
            for source, wanted in tests.items():
                same_test(told["tests"][source], wanted)
        same_predictions(fit, kind, level, told)


def same_test(told: Mapping[str, object], wanted: object) -> None:
    close(told["statistic"], wanted.statistic)
    assert told["numerator"] == wanted.df_num
    assert (told["denominator"] is None) == (wanted.df_denom is None)
    if wanted.pvalue > 1e-250:
        np.testing.assert_allclose(told["p"], wanted.pvalue, rtol=1e-5)


def same_predictions(fit: object, kind: str, level: float, told: Mapping[str, object]) -> None:
    rows = {key: [person[key] for person in PERSONS] for key in PERSONS[0]}
    close([each["fitted"] for each in told["predictions"]], fit.predict(rows))
    try:
        found = fit.get_prediction(rows, kind)
    except AnalysisError:
        assert all("refused" in each for each in told["predictions"])
        return
    close([each["mean"] for each in told["predictions"]], found.predicted_mean)
    for (low, high), ends in (
        (("low", "high"), found.conf_int(level)),
        (("newLow", "newHigh"), found.conf_int(level, obs=True)),
    ):
        for each, wanted in zip(told["predictions"], ends, strict=True):
            for value, end in zip((each[low], each[high]), wanted.tolist(), strict=True):
                if math.isinf(end):
                    assert float(str(value).replace("Infinity", "inf")) == end
                else:
                    close(value, end)


def test_the_reference_level_can_be_chosen(releases: dict[str, Release]) -> None:
    release = releases["plain"]
    questions = [
        {"ask": "regress", "target": "charges", "on": on, "method": "auto", "alpha": None,
         "kind": "population", "level": 0.95, "reference": reference}
        for on in (["age", "smoker", "region"], ["smoker", "age", "region", "smoker*region", "smoker*age"])
        for reference in ({"region": "east"}, {"smoker": "yes", "region": "south"})
    ]  # fmt: skip
    names = []
    for question, told in zip(questions, ask(release, *questions), strict=True):
        fit = release.regress("charges", question["on"], reference=question["reference"])
        assert tuple(told["names"]) == fit.names
        close(told["values"], fit.values)
        frame = fit.to_frame()
        for theirs, ours in (("estimate", "estimate"), ("low", "low"), ("high", "high")):
            close([row[theirs] for row in told["coefficients"]], frame[ours].to_list())
        names.append(fit.names)
    assert len(set(names)) == len(names)


INSTRUMENTED = (
    {"target": "charges", "endogenous": ["bmi"], "instruments": ["exercise"], "controls": ["age"]},
    {"target": "charges", "endogenous": ["bmi"], "instruments": ["exercise", "smoker"], "controls": []},
    {"target": "charges", "endogenous": ["age"], "instruments": ["region"], "controls": ["smoker"]},
    {
        "target": "charges",
        "endogenous": ["bmi", "age"],
        "instruments": ["exercise", "region"],
        "controls": [],
    },
    {"target": "charges", "endogenous": ["region"], "instruments": ["age"], "controls": []},
)


ASKED = (("2sls", "population", 0.95), ("liml", "table", 0.9), ("liml", "population", 0.99))


@pytest.mark.parametrize("name", EVERY)
def test_instruments_agree(releases: dict[str, Release], name: str) -> None:
    release = releases[name]
    questions = [
        {"ask": "iv", **asked, "method": method, "kind": kind, "level": level}
        for asked in INSTRUMENTED
        for method, kind, level in ASKED
        if all(
            n in release.schema.source_columns
            for part in ("endogenous", "instruments", "controls")
            for n in asked[part]
        )
    ]  # fmt: skip
    told = ask(release, *questions)
    for question, answer in zip(questions, told, strict=True):
        same_instruments(release, question, answer)
    if name == "plain":  # the test sees estimates, LIML's k, and Anderson–Rubin sets
        answered = [answer for answer in told if "refused" not in answer]
        assert any(answer["refusal"] is None for answer in answered)
        assert any(answer["refusal"] is None and answer["kappa"] != 1 for answer in answered)
        assert any(answer["andersonRubin"].get("pieces") for answer in answered)


def same_instruments(release: Release, question: Mapping[str, object], told: Mapping[str, object]) -> None:
    parts = [question[part] for part in ("target", "endogenous", "instruments", "controls")]
    try:
        found = release.iv(*parts, method=question["method"], kind=question["kind"])
    except AnalysisError:
        assert "refused" in told
        return
    assert told["refusal"] == found.refusal
    assert told["cautions"] == list(found.cautions)
    assert told["meaning"] == found.meaning
    for stage, wanted in zip(told["stages"], found.first_stage, strict=True):
        assert stage["name"] == wanted.name
        np.testing.assert_allclose(stage["f"], wanted.f_statistic, rtol=1e-5)
        np.testing.assert_allclose(stage["againstNoise"], wanted.against_noise, rtol=1e-5)
        if wanted.p_value > 1e-250:
            np.testing.assert_allclose(stage["p"], wanted.p_value, rtol=1e-4)
    if found.refusal is None:
        np.testing.assert_allclose(told["kappa"], found.kappa, rtol=DIGITS)
        for row, wanted in zip(told["coefficients"], found.as_rows(question["level"]), strict=True):
            same_row(row, wanted)
    rubin = told["andersonRubin"]
    if found.test.refusal is not None:
        assert rubin["refused"] == found.test.refusal
        return
    same_pieces(rubin["pieces"], found.anderson_rubin(question["level"]).pieces)
    np.testing.assert_allclose(rubin["p"], found.anderson_rubin_test(0.0), rtol=1e-4, atol=1e-250)


def same_row(row: Mapping[str, object], wanted: Mapping[str, object]) -> None:
    for theirs, ours in (("estimate", "estimate"), ("error", "std_error"), ("low", "low"), ("high", "high")):
        if wanted[ours] is None:
            assert row[theirs] is None
        else:
            scale = max(abs(wanted["estimate"]), abs(wanted["std_error"]))
            np.testing.assert_allclose(row[theirs], wanted[ours], rtol=DIGITS, atol=DIGITS * scale)
    if wanted["p_value"] is not None and wanted["p_value"] > 1e-250:
        np.testing.assert_allclose(row["p"], wanted["p_value"], rtol=1e-4)


def same_pieces(told: Sequence[Sequence[object]], wanted: Sequence[tuple[float, float]]) -> None:
    assert len(told) == len(wanted)
    for ours, theirs in zip(told, wanted, strict=True):
        for value, end in zip(ours, theirs, strict=True):
            number = float(str(value).replace("Infinity", "inf"))
            np.testing.assert_allclose(number, end, rtol=1e-5)


@pytest.mark.parametrize("second", [None, 1.5, 30.0, 49_873.2, 3e8])
def test_tails_of_f_are_those_of_scipy(second: float | None) -> None:
    asked = [
        [f, first, second] for first in (1, 2, 7, 60) for f in (1e-3, 0.4, 1.0, 2.5, 20.0) if f * first < 600
    ]
    (told,) = ask(None, {"ask": "fTails", "asked": asked})
    wanted = [
        special.chdtrc(first, f * first) if second is None else special.fdtrc(first, second, f)
        for f, first, _ in asked
    ]
    np.testing.assert_allclose(told, wanted, rtol=1e-7, atol=1e-300)


@pytest.fixture(scope="module")
def declared() -> Release:
    return every_family()


def test_declared_models_agree(declared: Release) -> None:
    person = {"age": 61.0, "sex": "m"}
    (told,) = ask(declared, {"ask": "models", "level": 0.9, "person": person})
    assert [(each["family"], each["target"]) for each in told] == [asked[:2] for asked in CURVED]
    for each, (family, target, on) in zip(told, CURVED, strict=True):
        fit = declared.regress(target, on, family=family)
        assert [row["name"] for row in each["rows"]] == list(fit.names)
        close([row["estimate"] for row in each["rows"]], list(fit.params.values()))
        close([row["error"] for row in each["rows"]], list(fit.bse.values()))
        close([[row["low"], row["high"]] for row in each["rows"]], list(fit.conf_int(0.9).values()))
        np.testing.assert_allclose([row["p"] for row in each["rows"]], list(fit.pvalues.values()), rtol=1e-5)
        effects = fit.marginal_effects(0.9)
        close([row["effect"] for row in each["rows"][1:]], list(effects.values()))
        if family in ("logistic", "poisson"):
            ratios = fit.odds_ratios(0.9) if family == "logistic" else fit.rate_ratios(0.9)
            close([row["ratio"] for row in each["rows"][1:]], list(ratios.values()))
        else:
            assert {row["ratio"] for row in each["rows"]} == {None}
        rows = {key: [value] for key, value in person.items()}
        found = each["prediction"]
        close(found["fitted"], fit.predict(rows)[0])
        close([found["mean"], found["low"], found["high"]], fit.predict_interval(rows, 0.9)[0])


def test_declared_linear_models_have_robust_errors(declared: Release) -> None:
    """Errors of the declared one allow for unequal variances; another of its target says that its do not."""
    questions = [
        {"ask": "regress", "target": "cost", "on": on, "method": "auto", "alpha": None,
         "kind": kind, "level": 0.95}
        for on in (["age", "sex"], ["age"])
        for kind in ("population", "table")
    ]  # fmt: skip
    answers = ask(declared, *questions)
    for question, told in zip(questions, answers, strict=True):
        same_fit(declared, question, told)
    test, wanted = answers[0]["unequalVariance"], declared.regress("cost", ["age", "sex"]).inference()
    assert wanted.unequal_variance is not None
    assert wanted.unequal_variance.rejected
    close(test["statistic"], wanted.unequal_variance.statistic)
    close(test["ratio"], wanted.unequal_variance.ratio)
    assert [told["unequalVariance"] for told in answers[1:]] == [None] * 3
    other = {"ask": "regress", "target": "cost", "on": ["age", "sex"], "method": "auto", "alpha": None}
    other |= {"kind": "population", "level": 0.9, "reference": {"sex": "m"}}
    (told,) = ask(declared, other)
    fit = declared.regress("cost", ["age", "sex"], reference={"sex": "m"})
    assert tuple(told["names"]) == fit.names
    frame = fit.to_frame(0.9)
    for theirs, ours in (("estimate", "estimate"), ("error", "std_error"), ("low", "low"), ("high", "high")):
        np.testing.assert_allclose(
            [row[theirs] for row in told["coefficients"]], frame[ours].to_list(), rtol=DIGITS
        )
    assert "unequal variance" in " ".join(answers[2]["cautions"])


@pytest.mark.parametrize("name", ["plain", "adaptive"])
def test_marginal_effects_agree(releases: dict[str, Release], name: str) -> None:
    release = releases[name]
    places = ({}, {"age": 30.0}, {"smoker": "yes"}, {"smoker": "no", "region": "east"})
    declared = {column.name for column in release.schema.columns}
    questions, wanted = [], []
    for on in (
        ["age", "bmi", "age*bmi", "smoker"],
        ["age", "smoker", "region", "smoker*age", "smoker*region"],
    ):
        for at in places if set(on) <= declared else ():
            fit = release.regress("charges", on)
            with contextlib.suppress(AnalysisError):  # columns that no effect depends on
                wanted.append(fit.marginal_effects(at).to_frame(0.9))
                asked = {"ask": "margins", "target": "charges", "on": on, "at": at, "level": 0.9}
                questions.append(asked | {"kind": "population"})
    assert questions
    for told, frame in zip(ask(release, *questions), wanted, strict=True):
        assert [row["name"] for row in told] == frame["name"].to_list()
        for theirs, ours in (
            ("estimate", "estimate"),
            ("error", "std_error"),
            ("low", "low"),
            ("high", "high"),
        ):
            close([row[theirs] for row in told], frame[ours].to_list())


def test_a_control_computed_from_the_endogenous_column_is_refused(releases: dict[str, Release]) -> None:
    """Its coefficient would not be that of a control, and the Anderson–Rubin set that of another number."""
    release = releases["plain"]
    asked = {
        "target": "charges",
        "endogenous": ["bmi"],
        "instruments": ["exercise"],
        "controls": ["age*bmi", "age"],
    }
    (told,) = ask(release, {"ask": "iv", **asked, "method": "2sls", "kind": "population", "level": 0.95})
    assert "computed from an endogenous column: age*bmi" in told["refused"]
    with pytest.raises(AnalysisError, match="computed from an endogenous column"):
        release.iv(**asked)

"""Intervals of declared models cover, and classical ones do not where variances are unequal.

Seeds are fixed, so these tests cannot flake. With 60 tables and two slopes the standard error of a coverage
is about two points: intervals 30% too short (true coverage 83%) are found out, and are shown to be.
"""

from __future__ import annotations

import contextlib
import re
import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import dpgram as dg
from dpgram.analysis.glm import FeatureSpace, NewtonStep
from dpgram.analysis.linear_step import declared_step
from dpgram.analysis.moments import Moments
from dpgram.core.noise import SeededEntropy
from dpgram.engines import LocalEngine
from dpgram.errors import DpgramWarning
from dpgram.publishing import publish_with

TABLES = 60
ROWS = 10_000
SLOPES = np.array([1.5, -0.8])
LOGIT = np.array([0.7, -0.5])
RATE = np.array([0.3, -0.2])
SCHEMA = dg.Schema(
    dg.numeric("x", -8, 8),
    dg.numeric("z", -8, 8),
    dg.numeric("y", -60, 60),
    dg.boolean("t"),
    dg.numeric("k", 0, 100),
)
MODELS = [dg.linear("y", ["x", "z"]), dg.logistic("t", ["x", "z"]), dg.poisson("k", ["x", "z"])]


@pytest.fixture(autouse=True)
def one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("threadpoolctl.threadpool_limits", lambda **_: contextlib.nullcontext())


def release(
    seed: int, epsilon: float, *, unequal: float = 0.6, skewed: bool = False, models: Any = MODELS
) -> dg.Release:
    draw = np.random.default_rng(seed)
    x = draw.normal(size=(ROWS, 2))
    error = draw.exponential(size=ROWS) - 1.0 if skewed else draw.normal(size=ROWS)
    spread = np.exp(unequal * x[:, 0]) if skewed else np.exp(unequal * np.abs(x[:, 0]) - unequal)
    data = {
        "x": x[:, 0],
        "z": x[:, 1],
        "y": 1.0 + x @ SLOPES + spread * error,
        "t": draw.random(ROWS) < expit(-0.8 + x @ LOGIT),
        "k": draw.poisson(np.exp(0.7 + x @ RATE) * draw.gamma(3.0, 1.0 / 3.0, ROWS)),
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        (found,) = publish_with(
            data,
            SCHEMA,
            epsilon=epsilon,
            delta=1e-6,
            models=models,
            entropy=SeededEntropy(seed + 1_000),
            engine=LocalEngine(threads=1),
            progress=False,
        )
    return found


def covered(ends: Any, truth: np.ndarray, shorter: float = 1.0) -> np.ndarray:
    ends = np.asarray(ends)[1:]
    middle, half = ends.mean(axis=1), 0.5 * np.ptp(ends, axis=1)
    return np.abs(middle - truth) <= shorter * half


def test_coverage() -> None:
    """Of 95%; an interval a third too short is found out."""
    linear, short, logit, counts = [], [], [], []
    for seed in range(TABLES):
        for epsilon in (1.0, 4.0):
            found = release(seed, epsilon)
            inference = found.regress("y", ["x", "z"]).inference()
            assert inference.robust
            linear.append(covered(inference.conf_int(), SLOPES))
            for family, target, truth, told in (
                ("logistic", "t", LOGIT, logit),
                ("poisson", "k", RATE, counts),
            ):
                ends = list(found.regress(target, family=family).conf_int().values())
                told.append(covered(ends, truth))
                short.append(covered(ends, truth, 0.67))
    for told in (linear, logit, counts):
        assert 0.915 < np.mean(told) <= 0.985
    assert np.mean(short) < 0.88


def test_skewed_errors_of_unequal_variance_leave_the_slopes() -> None:
    """The fit of the matrix is drawn away by them, that of the declared model hardly."""
    drawn: dict[bool, list[float]] = {True: [], False: []}
    for seed in range(16):
        for declared in (True, False):
            models = [dg.linear("y", ["x", "z"], limit=10)] if declared else ()
            fit = release(seed, 4.0, skewed=True, models=models).regress("y", ["x", "z"])
            drawn[declared].append(float(fit.inference().estimate[1] - SLOPES[0]))
    assert np.mean(drawn[False]) < -0.04
    assert abs(np.mean(drawn[True])) < 0.4 * abs(np.mean(drawn[False]))


def test_errors_are_those_of_repeated_tables() -> None:
    """Of the slope that goes with the spread; the classical ones are a quarter too small."""
    estimates, errors, classical = [], [], []
    for seed in range(TABLES):
        inference = release(seed, 8.0).regress("y", ["x", "z"]).inference()
        estimates.append(inference.estimate[1])
        errors.append(inference.std_errors[1])
        classical.append(release(seed, 8.0, models=()).regress("y", ["x", "z"]).inference().std_errors[1])
    truth = np.std(estimates, ddof=1)
    assert 0.85 < np.mean(errors) / truth < 1.2  # 60 tables tell a deviation to 9%
    assert np.mean(classical) / np.mean(errors) < 0.8


def test_unequal_variances_are_found_and_equal_ones_are_not() -> None:
    for seed in range(12):
        unequal = release(seed, 4.0).regress("y", ["x", "z"]).inference().unequal_variance
        equal = release(seed, 4.0, unequal=0.0).regress("y", ["x", "z"]).inference().unequal_variance
        assert unequal is not None
        assert equal is not None
        assert unequal.rejected
        assert not equal.rejected


@pytest.mark.parametrize("skewed", [True, False])
def test_what_a_limit_takes_is_said_with_its_share(skewed: bool) -> None:
    """Rows whose residual is beyond it, or whose features are long: of 20 intervals 17 hold at least."""
    held = []
    for seed in range(20):
        found = release(seed, 4.0, skewed=skewed)
        fit = found.regress("y", ["x", "z"])
        (caution,) = fit.inference().cautions
        assert "least squares only where errors are symmetric given the features" in caution
        assert caution in " ".join(fit.summary().split())
        draw = np.random.default_rng(seed)
        x = draw.normal(size=(ROWS, 2))
        error = draw.exponential(size=ROWS) - 1.0 if skewed else draw.normal(size=ROWS)
        y = 1.0 + x @ SLOPES + np.exp(0.6 * (x[:, 0] if skewed else np.abs(x[:, 0]) - 1.0)) * error
        moments = Moments.of(found)
        step = declared_step(moments, fit.design)
        assert step is not None
        space = FeatureSpace.of(moments, fit.design, step.on, step.coordinates)
        start = NewtonStep.of(step, space).start
        residual = y - np.column_stack([np.ones(ROWS), x]) @ (space.to_original @ start)
        encoded = np.column_stack([np.ones(ROWS), x / 8.0]) @ space.coordinates.matrix.T
        weights = np.minimum(1.0, step.radius / np.linalg.norm(encoded, axis=1)) ** 2
        taken = 1.0 - np.mean(weights * (np.abs(residual) <= step.limit))
        low, high = (float(end) / 100.0 for end in re.findall(r"([0-9.]+)%", caution))
        assert 0.0 <= low < high < 0.2
        held.append(low - 0.0005 <= taken <= high + 0.0005)
    assert sum(held) >= 17
    free = release(0, 4.0, models=[dg.linear("y", ["x", "z"], limit=200)])
    assert free.regress("y", ["x", "z"]).inference().cautions == ()


def test_models_of_counts_say_what_they_take() -> None:
    found = release(3, 4.0)
    (caution,) = found.regress("k", family="poisson").cautions
    assert "those of maximum likelihood only where expected counts follow the model in every row" in caution
    assert re.search(r"beyond ±[0-9.]+ count .* this takes [0-9.]+% to [0-9.]+% of all counts$", caution)
    assert found.regress("t", family="logistic").cautions == ()


def test_other_models_of_the_target_get_a_caution() -> None:
    found = release(3, 4.0)
    cautions = " ".join(found.regress("y", ["x"]).inference().cautions)
    assert "unequal variance" in cautions
    assert "unequal variance" not in " ".join(found.regress("y", ["x", "z"]).inference().cautions)
    assert "unequal variance" not in " ".join(found.regress("x", ["z"]).inference().cautions)


def test_where_noise_dominates_the_pilot_is_given_or_nothing() -> None:
    new = {"x": [0.0, 1.0], "z": [0.0, 1.0]}
    fell = 0
    for seed in range(6):
        try:
            fit = release(seed, 0.02).regress("t", family="logistic")
        except dg.DpgramError:
            continue  # so few rows through the noise that no step was made
        fell += fit.steps == 0
        chances = fit.predict(new)
        assert np.isfinite(chances).all()
        assert ((chances > 0.0) & (chances < 1.0)).all()
        if fit.steps == 0:
            assert "noise hides" in fit.summary()
            assert all(low < high for low, high in fit.conf_int().values())
    assert fell

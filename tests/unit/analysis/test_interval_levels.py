"""The level of an interval: a probability, checked in words wherever it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.unit.series.streams import people, seeded

import dpgram as dg
from dpgram.demo import insurance
from dpgram.errors import AnalysisError
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with

ASK: dict[str, Callable[[dg.Release, Any], object]] = {
    "regression": lambda release, level: release.regress("charges").conf_int(level),
    "inference": lambda release, level: release.regress("charges").inference().conf_int(level),
    "bootstrap": lambda release, level: release.regress("charges").bootstrap(draws=20).conf_int(level),
    "R²": lambda release, level: release.regress("charges").rsquared_estimate().conf_int(level),
    "correlation": lambda release, level: release.correlation().conf_int(level),
    "description": lambda release, level: release.describe(level=level),
    "histogram": lambda release, level: release.histogram("age").mean().conf_int(level),
    "count": lambda release, level: release.histogram("smoker").share("yes").conf_int(level),
    "prediction": lambda release, level: (
        release.regress("charges", on=["age"]).get_prediction({"age": [40]}).conf_int(level)
    ),
    "instruments": lambda release, level: release.iv("charges", "age", "bmi").anderson_rubin(level),
}


@pytest.fixture(scope="module")
def release() -> dg.Release:
    asked: dict[str, Any] = {"epsilon": 5, "delta": 1e-6, "progress": False, "entropy": SeededEntropy(1)}
    (found,) = publish_with(insurance.table(5_000), insurance.schema(), **asked)
    return found


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("level", ["95", None, True, 95, 1.0, float("nan")])
@pytest.mark.parametrize("name", ASK)
def test_what_is_no_probability_is_refused_in_words(name: str, level: Any, release: dg.Release) -> None:
    with pytest.raises(AnalysisError, match=r"the level of an interval must be a probability; got "):
        ASK[name](release, level)


def test_of_a_change(tmp_path: Path) -> None:
    series = seeded(tmp_path / "a.series", [people(0, 4_000), people(4_000, 4_000)])
    change = series.trend("y", ["x"]).change("x")
    with pytest.raises(AnalysisError, match="the level of an interval must be a probability; got 95"):
        change.conf_int(95)

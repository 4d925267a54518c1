"""A parameter that cannot be used is refused by our own error, before anything is charged or read."""

from __future__ import annotations

import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpgram as dg
import dpgram.estimators as estimators
from dpgram.errors import AnalysisError

BOUNDS = {"bounds": (-3, 3)}
BOTH = {"bounds": (-3, 3), "target_bounds": (-9, 9)}
NORMS = {"x_norm": 3.0, "y_bound": 9.0}
HUGE = 10**400
"""Beyond the floats."""


def _named(name: str, rest: object, parameter: str, value: object) -> str:
    del rest
    return f"{name}-{parameter}-{str(value)[:10]}"


CASES = [
    *(("PrivatePCA", BOUNDS, "n_components", value) for value in (4, 0, -1, 2.5, "x", [1], math.nan, HUGE)),
    *(
        (name, BOTH | extra, "alpha", value)
        for name, extra in [
            ("PrivateRidge", {}),
            ("PrivateRidge", {"adaptive": False}),
            ("PrivateRidge", {"adaptive": False, "mechanism": "gaussian"}),
            ("PrivateLasso", {}),
        ]
        for value in (-1, math.nan, math.inf, 1e308, "x", [1], True, HUGE)
    ),
    *(("PrivatePCA", BOUNDS, "standardise", value) for value in ("no", np.array([True, False]), None, 1)),
    *(("PrivateRidge", BOTH, "fit_intercept", value) for value in ("no", np.array([True, False]), None)),
    *(
        (name, BOTH, parameter, value)
        for name in ("PrivateRidge", "PrivateLinearRegression")
        for parameter in ("bounds", "target_bounds")
        for value in ("publik", "garbage", "\ud800", "0.1")
    ),
    *(
        (name, rest, "entropy", value)
        for name, rest in [("PrivateRidge", BOTH), ("PrivatePCA", BOUNDS), ("LpRegression", NORMS)]
        for value in ("x", 1)
    ),
    *(("RobustRegression", BOTH, name, value) for name in ("share", "limit") for value in ("x", [1], HUGE)),
    *(("PrivateRidge", BOTH | {"adaptive": False}, name, [1]) for name in ("epsilon", "delta", "radius")),
    *(("PrivateRidge", BOTH | {"adaptive": False}, name, HUGE) for name in ("epsilon", "delta", "radius")),
    *(("PrivateLinearRegression", BOTH, name, HUGE) for name in ("epsilon", "delta", "radius")),
    *(("PrivateLinearRegression", BOTH, "bounds", value) for value in (("a", "b"), (0, HUGE))),
    *(
        ("LpRegression", NORMS, name, value)
        for name in ("first", "second", "accounting", "floor", "p", "iterations", "adjacency")
        for value in ([1], HUGE, "x", math.nan)
    ),
    *(
        (name, BOTH | extra, parameter, (0, 1e100))
        for name, extra in [
            ("PrivateRidge", {}),
            ("PrivateRidge", {"adaptive": False}),
            ("PrivateRidge", {"adaptive": False, "mechanism": "gaussian"}),
            ("PrivateLasso", {}),
            ("PrivateLinearRegression", {"adaptive": False}),
            ("RobustRegression", {}),
            ("PrivatePoisson", {}),
        ]
        for parameter in ("bounds", "target_bounds")
    ),
    ("PrivateLogistic", BOUNDS, "bounds", (0, 1e100)),
    (
        "LpRegression",
        NORMS | {"delta": 0.0, "accounting": "basic", "first": "laplace", "second": "matrix-laplace"},
        "epsilon",
        1e-9,
    ),
    *(("OutputPerturbation", NORMS, name, HUGE) for name in ("alpha", "theta_bound", "noise")),
    *(
        ("SigmaClipper", BOUNDS | {"epsilon": 1.0}, "c", value)
        for value in (None, 0, -1, math.nan, math.inf, 1e308, "x", [1], HUGE)
    ),
    *(
        ("SigmaClipper", BOUNDS | {"epsilon": 1.0}, "sides", value)
        for value in ("both", None, math.nan, [1], HUGE)
    ),
    *(
        ("ColumnStandardizer", BOUNDS | {"epsilon": 1.0}, name, value)
        for name in ("bounds", "epsilon", "delta")
        for value in (("a", "b"), [1], HUGE, "x")
    ),
]


@pytest.fixture
def book(tmp_path: Path) -> dg.Ledger:
    return dg.Ledger.create(tmp_path / "own.ledger", name="own", epsilon=10, delta=1e-4)


@pytest.mark.parametrize(("name", "rest", "parameter", "value"), CASES, ids=[_named(*case) for case in CASES])
def test_parameters(
    name: str, rest: dict[str, Any], parameter: str, value: object, book: dg.Ledger, tmp_path: Path
) -> None:
    kind = getattr(estimators, name)
    model = kind(**{"ledger": book, "epsilon": 1.0, "delta": 1e-6} | rest | {parameter: value})
    rows = np.random.default_rng(0).normal(size=(200, 3))
    with pytest.raises(dg.DpgramError) as told:
        model.fit(rows, rows.sum(axis=1))
    assert not told.value.charged
    assert book.history() == ()
    assert sorted(path.name for path in tmp_path.iterdir() if "unfinished" in path.name) == []


@pytest.mark.parametrize(
    ("name", "rest", "parameter", "value"),
    [
        ("PrivateRidge", BOTH, "alpha", Fraction(1, 10)),
        ("PrivateRidge", BOTH | {"adaptive": False}, "alpha", Fraction(1, 10)),
        ("PrivateLasso", BOTH, "alpha", Fraction(1, 10)),
        ("PrivateRidge", BOTH | {"adaptive": False}, "radius", 1e308),
        ("PrivateRidge", BOTH | {"adaptive": False}, "radius", 1e154),
        ("PrivateLinearRegression", BOTH, "radius", Fraction(3, 2)),
        ("PrivateLinearRegression", BOTH, "radius", np.float32(1.5)),
        ("PrivateLinearRegression", BOTH, "radius", np.int64(2)),
        ("PrivatePCA", BOUNDS, "standardise", np.True_),
    ],
)
def test_numbers_of_every_type(
    name: str, rest: dict[str, Any], parameter: str, value: object, book: dg.Ledger
) -> None:
    rows = np.random.default_rng(0).uniform(-1, 1, size=(2000, 3))
    options = {"ledger": book, "epsilon": 8.0, "delta": 1e-6} | rest | {parameter: value}
    getattr(estimators, name)(**options).fit(rows, rows.sum(axis=1))
    assert book.history()


A, B = dg.numeric("a", -3, 3), dg.numeric("b", -3, 3)


@pytest.mark.parametrize(
    ("name", "schema", "target"),
    [
        ("PrivatePCA", dg.Schema(A, B, constant=False), None),
        ("PrivateCovariance", dg.Schema(A, B, constant=False), None),
        ("PrivateLinearRegression", dg.Schema(A, B, dg.numeric("y", -9, 9), constant=False), "y"),
        ("PrivateRidge", dg.Schema(A, B, dg.numeric("y", -9, 9), constant=False), "y"),
        ("PrivateLasso", dg.Schema(A, B, dg.categorical("y", ["u", "v", "w"])), "y"),
        ("PrivateRidge", dg.Schema(A, B, dg.categorical("y", ["u", "v", "w"])), "y"),
        ("PrivateLinearRegression", dg.Schema(A, B, dg.categorical("y")), "y"),
    ],
)
def test_schemas_that_cannot_answer(
    name: str, schema: dg.Schema, target: str | None, book: dg.Ledger
) -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(200, 2)), columns=["a", "b"])
    y = rng.choice(["u", "v", "w"], 200) if target and "levels" in str(schema.to_dict()) else frame["a"]
    rest = {} if target is None else {"target": target}
    with pytest.raises(dg.DpgramError):
        getattr(estimators, name)(schema=schema, ledger=book, **rest).fit(frame, y)
    assert book.history() == ()


@pytest.mark.parametrize(
    "alpha", [-1, math.nan, math.inf, 1e308, "x", [1], HUGE], ids=lambda alpha: str(alpha)[:5]
)
@pytest.mark.parametrize("method", ["ridge", "lasso", "elastic-net"])
def test_analysts_are_told_of_the_penalty(method: str, alpha: Any) -> None:
    table = {"x": np.arange(2000) % 30.0, "y": np.arange(2000) % 60.0}
    release = dg.publish(
        table,
        dg.Schema(dg.numeric("x", 0, 30), dg.numeric("y", 0, 60)),
        epsilon=1,
        delta=1e-6,
        adaptive=False,
    )
    with pytest.raises(AnalysisError, match="alpha must be a number, and must not be negative"):
        release.regress("y", method=method, alpha=alpha)

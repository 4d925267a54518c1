"""Declared models on the command line: `--model` of plan, check and publish."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import dpgram as dg
from dpgram import cli
from dpgram.cli.model_options import asked_models
from dpgram.demo import insurance
from dpgram.document.fields import MeasuredStep

SCHEMA = dg.Schema(
    dg.numeric("age, years", 18, 90),
    dg.numeric("bmi", 10, 60),
    dg.categorical("smoker", ["no", "yes"]),
    dg.numeric("visits", 0, 50),
)


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("linear:visits", dg.linear("visits")),
        ("logistic:smoker=yes~bmi,visits", dg.logistic("smoker=yes", ["bmi", "visits"])),
        ('probit : smoker=yes ~ "age, years", bmi', dg.probit("smoker=yes", ["age, years", "bmi"])),
        ("linear:visits~age, years", dg.linear("visits", ["age, years"])),
        (
            "poisson:visits~bmi; share=0.2; steps=3; limit=8",
            dg.poisson("visits", ["bmi"], share=0.2, steps=3, limit=8),
        ),
        ("linear:visits;limit=8;", dg.linear("visits", limit=8)),
    ],
)
def test_a_model_is_read(text: str, model: dg.models.Model) -> None:
    assert asked_models([text], SCHEMA) == (model,)


def test_nothing_asked_is_no_model() -> None:
    assert asked_models(None, SCHEMA) == ()


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("charges", "a family and a target"),
        ("linear:", "a family and a target"),
        ("linear: ~bmi", "a family and a target"),
        ("gamma:visits", "unknown family"),
        ("linear:visits;steps=2", "no steps"),
        ("logistic:smoker=yes;limit=2", "no limit"),
        ("linear:visits;share=much", "share, steps or limit"),
        ("linear:visits;shares=0.1", "share, steps or limit"),
        ("poisson:visits;steps=1.5", "share, steps or limit"),
        ("linear:visits;share=2", "part of the budget"),
    ],
)
def test_what_is_no_model_is_told_in_one_line(text: str, told: str) -> None:
    with pytest.raises(dg.DpgramError, match=told) as problem:
        asked_models([text], SCHEMA)
    assert "\n" not in str(problem.value)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    insurance.schema().to_file(tmp_path / "insurance.toml")
    pq.write_table(insurance.table(4_000), tmp_path / "insurance.parquet")
    return tmp_path


BUDGET = ("--schema", "insurance.toml", "--epsilon", "4", "--delta", "1e-6")
MODELS = ("--model", "linear:charges", "--model", "logistic:smoker=yes~age,bmi;share=0.15")


def test_a_plan_forecasts_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["plan", *BUDGET, "--rows", "4000", "--quick", *MODELS, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)["models"]
    asked = [dg.linear("charges"), dg.logistic("smoker=yes", ["age", "bmi"], share=0.15)]
    same = dg.plan(
        insurance.schema(),
        epsilon=4,
        delta=1e-6,
        rows=dg.Rows(expected=4_000),
        adaptive=dg.Adaptive(bounds=0.2),
        models=asked,
        simulate=False,
    )
    assert [(one["family"], one["target"], one["se_ratio"]) for one in found] == [
        (one.family, one.target, one.se_ratio) for one in same.models
    ]
    assert cli.run(["plan", *BUDGET, "--rows", "4000", "--quick", *MODELS]) == 0
    assert "declared: logistic of smoker=yes, 15.0%" in capsys.readouterr().out


def test_publish_measures_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ["publish", "insurance.parquet", *BUDGET, "--no-ledger", "-o", "out.json", *MODELS, "--json"]
    assert cli.run(command) == 0
    release = dg.load(folder / "out.json")
    steps = [each for each in release.measured if isinstance(each, MeasuredStep)]
    assert {(each.family, each.target) for each in steps} == {
        ("linear", "charges"),
        ("logistic", "smoker=yes"),
    }


@pytest.mark.parametrize("command", ["plan", "check", "publish"])
def test_a_bad_one_is_refused_and_nothing_written(
    folder: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    more: dict[str, tuple[Any, ...]] = {
        "plan": ("--rows", "4000", "--quick"),
        "check": ("insurance.parquet",),
        "publish": ("insurance.parquet", "--no-ledger", "-o", "out.json"),
    }
    assert cli.run([command, *more[command], *BUDGET, "--model", "logistic:charges"]) == 2
    told = capsys.readouterr().err
    assert "more than two values" in told
    assert "Traceback" not in told
    assert not (folder / "out.json").exists()

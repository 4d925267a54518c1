"""A job that was published: finished as long as nothing in it changes that its release states."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram as dg
from dpgram.errors import JobError
from dpgram.job import Job, Outputs

N = 4000
X, Y, W = dg.numeric("x", 0, 30), dg.numeric("y", 0, 60), dg.numeric("w", 0, 2)
G = dg.categorical("g", ["a", "b"])
SCHEMA = dg.Schema(X, Y, G)
TARGET = dg.linear("y", ["x"])
JOBS: dict[str, dict[str, Any]] = {
    "adaptive": {},
    "shares": {"adaptive": dg.Adaptive(histograms=0.2, first=0.3, clip=0.05)},
    "one matrix": {"adaptive": False},
    "radius": {"rows": dg.Rows(radius=1.0)},
    "a radius beyond the rows": {"rows": dg.Rows(radius=50.0)},
    "persons": {"rows": dg.Rows(unit="id")},
    "rows of persons": {"rows": dg.Rows(unit="id", unit_rows=2)},
    "weight": {"schema": dg.Schema(X, Y, W), "rows": dg.Rows(weight="w")},
    "groups": {"rows": dg.Rows(by="g")},
    "blocks": {"schema": dg.Schema(X, Y, W, blocks=[["x", "y"], ["x", "w"]])},
    "plain blocks": {"schema": dg.Schema(X, Y, W, blocks=[["x", "y"], ["x", "w"]]), "adaptive": False},
    "open": {"schema": dg.Schema(dg.numeric("x"), Y, dg.categorical("g"))},
    "open in one matrix": {
        "schema": dg.Schema(dg.numeric("x"), Y, dg.categorical("g")),
        "adaptive": dg.Adaptive(),
        "rows": dg.Rows(radius=1.0),
    },
    "pure": {"delta": 0.0},
    "pure noise with learnt levels": {
        "schema": dg.Schema(X, Y, dg.categorical("g")),
        "mechanism": "matrix-laplace",
    },
    "replace-one": {"adjacency": "replace-one"},
    "sketch": {"mechanism": dg.mechanisms.Sketch(degrees=400)},
    "laplace": {"mechanism": "laplace", "delta": 0.0},
    "semidefinite": {"mechanism": dg.mechanisms.Auto(semidefinite=True)},
    "models": {"models": (TARGET, dg.logistic("g=a", ["x", "y"], share=0.1, steps=2))},
    "models of one matrix": {"models": (TARGET,), "adaptive": False},
}


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rng = np.random.default_rng(0)
    x = rng.normal(10, 3, N)
    columns = {"x": x, "y": 2 * x + rng.normal(0, 4, N), "w": rng.uniform(0.5, 2, N)}
    path = tmp_path_factory.mktemp("rows") / "rows.parquet"
    ids = [f"p{i // 2}" for i in range(N)]
    pq.write_table(pa.table({**columns, "g": rng.choice(["a", "b"], N), "id": ids}), path)
    return path


@pytest.fixture
def published(table: Path, tmp_path: Path) -> Job:
    done = job_of(table, tmp_path)
    assert done.run(progress=False).state == "published"
    return done


def job_of(table: Path, folder: Path, **changes: Any) -> Job:
    kept: dict[str, Any] = {
        "data": str(table),
        "schema": SCHEMA,
        "epsilon": 2.0,
        "delta": 1e-6,
        "ledger": None,
        "outputs": Outputs(release=folder / "rows.dpgram.json"),
    }
    return Job(**kept | changes)


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("name", JOBS)
def test_an_unchanged_job_is_finished(name: str, table: Path, tmp_path: Path) -> None:
    job = job_of(table, tmp_path, **JOBS[name])
    assert job.run(progress=False).state == "published"
    assert job.run(progress=False).state == "finished"


CHANGES: dict[str, tuple[dict[str, Any], str]] = {
    "bounds": ({"schema": dg.Schema(dg.numeric("x", 0, 300), Y, G)}, "high of 'x' is 30 there, 300 here"),
    "levels": (
        {"schema": dg.Schema(X, Y, dg.categorical("g", ["a", "b", "c"]))},
        r"levels of 'g' is \[a, b\] there, \[a, b, c\] here",
    ),
    "a rule of reading": (
        {"schema": dg.Schema(X, Y, dg.categorical("g", ["a", "b"], case="lower"))},
        "case of 'g' is not given there, lower here",
    ),
    "columns": ({"schema": dg.Schema(X, Y)}, "columns is x, y, g there, x, y here"),
    "constant": ({"schema": dg.Schema(X, Y, G, constant=False)}, "constant is True there, False here"),
    "open bounds": (
        {"schema": dg.Schema(dg.numeric("x"), Y, G)},
        "columns with learnt bounds is none there, x here",
    ),
    "open levels": (
        {"schema": dg.Schema(X, Y, dg.categorical("g", other="other"))},
        "columns with learnt levels is none there, g here",
    ),
    "radius": ({"rows": dg.Rows(radius=1.0)}, "radius is chosen by noisy counts there, 1 here"),
    "one matrix": ({"adaptive": False}, "adaptive is true there, false here"),
    "shares": ({"adaptive": dg.Adaptive(histograms=0.2)}, "share of histograms is 0.1 there, 0.2 here"),
    "share of first": ({"adaptive": dg.Adaptive(first=0.3)}, "share of first is 0.25 there, 0.3 here"),
    "share of clip": ({"adaptive": dg.Adaptive(clip=0.1)}, "share of clip is 0.03 there, 0.1 here"),
    "mechanism": ({"mechanism": "sketch"}, "mechanism is gaussian there, sketch here"),
    "models": ({"models": (TARGET,)}, "models is none there, linear 'y' on x here"),
}


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_job_is_refused_with_the_difference(name: str, published: Job) -> None:
    changes, words = CHANGES[name]
    with pytest.raises(JobError, match=words) as told:
        replace(published, **changes).run(progress=False)
    assert "a release of another job" in str(told.value)
    assert "Name another `release`" in str(told.value)


AGAIN: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "unit_rows": (
        JOBS["persons"],
        JOBS["rows of persons"],
        "unit_rows is not given there, 2 here",
    ),
    "more unit_rows": (
        JOBS["rows of persons"],
        {"rows": dg.Rows(unit="id", unit_rows=3)},
        "unit_rows is 2 there, 3 here",
    ),
    "weight": (
        {"schema": dg.Schema(X, Y)},
        JOBS["weight"],
        "weight is not given there, 'w' up to 2 here",
    ),
    "another radius": (JOBS["radius"], {"rows": dg.Rows(radius=1.2)}, "radius is 1 there, 1.2 here"),
    "no radius": (JOBS["radius"], JOBS["one matrix"], "radius is 1 there, 2 here"),
    "delta": (JOBS["pure"], {}, "delta is 0.0 there, 1e-06 here"),
    "degrees": (
        JOBS["sketch"],
        {"mechanism": dg.mechanisms.Sketch(degrees=401)},
        "the mechanism is one with other parameters there, one with degrees 401 here",
    ),
    "by name and not": (
        {"mechanism": "sketch"},
        {},
        "adaptive is false there, true here",
    ),
    "by name and not, in one matrix": (
        {"mechanism": "gaussian", "adaptive": False},
        {"adaptive": False},
        "mechanism is gaussian there, matrix-laplace here",
    ),
    "bounds that were learnt": (
        JOBS["open"],
        {"schema": dg.Schema(X, Y, dg.categorical("g"))},
        "columns with learnt bounds is x there, none here",
    ),
    "share of a model": (
        {"models": (TARGET,)},
        {"models": (dg.linear("y", ["x"], share=0.1),)},
        "share of linear 'y' on x is 0.25 there, 0.1 here",
    ),
    "features of a model": (
        {"models": (TARGET,)},
        {"models": (dg.linear("y", ["x", "g"]),)},
        "models is linear 'y' on x there, linear 'y' on x, g here",
    ),
    "steps of a model": (
        {"models": (dg.logistic("g=a", ["x"], steps=2),)},
        {"models": (dg.logistic("g=a", ["x"], steps=3),)},
        "steps of logistic 'g=a' on x is 2 there, 3 here",
    ),
}


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize("name", AGAIN)
def test_a_job_that_was_special_and_is_otherwise_now(name: str, table: Path, tmp_path: Path) -> None:
    before, after, words = AGAIN[name]
    assert job_of(table, tmp_path, **before).run(progress=False).state == "published"
    with pytest.raises(JobError, match=words):
        job_of(table, tmp_path, **after).run(progress=False)

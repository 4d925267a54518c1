"""Coverage of 95% intervals of declared models, beside what the same release tells without a declaration.

    python benchmarks/model_coverage.py --runs 500     # the criterion; two hours on one core
    python benchmarks/model_coverage.py --runs 60      # a first look

Linear: simulated rows with errors of equal and unequal variance, persons with several rows, and nmes1988 as a
population from which tables of its own size are drawn, with replacement. The slope is the one that goes with
the spread (nmes1988: `nvisits`, whose robust error is 2.65 times the classical one). Its truth is what the
release says that it estimates: the regression of the population with weights on features and residuals
limited as published, and beside it the slope of least squares. Logit: two features, 4 to 50% of ones. Counts:
means from 0.14 to 5, of Poisson's law and with a variance that grows with the square of the mean. Length is
the mean length beside that of the classical interval from a release without models. Seeds begin at 5,000:
those below 1,000 were used while constants were chosen. Writes results/model-coverage.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import expit
from scipy.stats import binom

import dpgram as dg
from data_sets import data_sets
from dpgram.document.fields import MeasuredStep
from dpgram.document.measurements import feature_schema
from dpgram.engines.local import LocalEngine
from dpgram.privacy.sampling.entropy import SeededEntropy
from dpgram.publishing import publish_with
from dpgram.rows.rules import EVERY_ROW
from seeded import many_releases

Array = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "model-coverage.md"
EPSILONS = (0.3, 1.0, 3.0)
ROWS = 10_000
SLOPES = np.array([1.5, -0.8])
LOGIT = np.array([0.7, -0.5])
SCHEMA = dg.Schema(dg.numeric("x", -8, 8), dg.numeric("z", -8, 8), dg.numeric("y", -60, 60), dg.boolean("t"))
COUNTED = dg.Schema(dg.numeric("x", -8, 8), dg.numeric("z", -8, 8), dg.numeric("k", 0, 200))


FIRST_SEED = 5_000
RATE = np.array([0.4, -0.3])


@dataclass(frozen=True)
class Setting:
    """Tables of one kind, and one slope of a declared model with its true value."""

    name: str
    table: Callable[[np.random.Generator], Any]
    schema: dg.Schema
    model: dg.models.Model
    slope: str
    truth: float
    rows: dg.Rows = EVERY_ROW
    population: pl.DataFrame | None = None
    """Where the truth is that of the release's own estimand: all rows of which tables are drawn."""


def _simulated(unequal: float) -> Callable[[np.random.Generator], Any]:
    def table(draw: np.random.Generator) -> Any:
        x = draw.normal(size=(ROWS, 2))
        spread = np.exp(unequal * (np.abs(x[:, 0]) - 1.0))
        y = 1.0 + x @ SLOPES + spread * draw.normal(size=ROWS)
        return {"x": x[:, 0], "z": x[:, 1], "y": y, "t": x[:, 0] > 0}

    return table


def _persons(draw: np.random.Generator) -> Any:
    """Persons with one to seven rows, who share the larger part of feature and error."""
    who = draw.integers(0, ROWS // 4, ROWS)
    x = np.column_stack([draw.normal(size=ROWS)[who], draw.normal(size=ROWS)])
    y = 1.0 + x @ SLOPES + draw.normal(size=ROWS)[who] + 0.5 * draw.normal(size=ROWS)
    return {"x": x[:, 0], "z": x[:, 1], "y": y, "t": x[:, 0] > 0, "who": who}


def _logit(intercept: float) -> Callable[[np.random.Generator], Any]:
    def table(draw: np.random.Generator) -> Any:
        x = draw.normal(size=(ROWS, 2))
        t = draw.random(ROWS) < expit(intercept + x @ LOGIT)
        return {"x": x[:, 0], "z": x[:, 1], "y": x[:, 0], "t": t}

    return table


def _counts(intercept: float, dispersion: float) -> Callable[[np.random.Generator], Any]:
    def table(draw: np.random.Generator) -> Any:
        x = draw.normal(size=(ROWS, 2))
        mean = np.exp(intercept + x @ RATE)
        if dispersion:
            mean = mean * draw.gamma(1.0 / dispersion, dispersion, ROWS)
        return {"x": x[:, 0], "z": x[:, 1], "k": draw.poisson(mean).astype(float)}

    return table


def settings(folder: Path) -> Iterator[Setting]:
    linear, logit = dg.linear("y", ["x", "z"]), dg.logistic("t", ["x", "z"])
    for name, unequal in (("equal variances", 0.0), ("unequal variances", 0.6)):
        yield Setting(f"linear, {name}", _simulated(unequal), SCHEMA, linear, "x", SLOPES[0])
    yield Setting(
        "linear, persons of several rows", _persons, SCHEMA, linear, "x", SLOPES[0], dg.Rows(unit="who")
    )
    yield _nmes(folder)
    for share, intercept in (("4%", -3.5), ("12%", -2.2), ("30%", -0.95), ("50%", 0.0)):
        yield Setting(f"logit, {share} ones", _logit(intercept), SCHEMA, logit, "x", LOGIT[0])
    poisson = dg.poisson("k", ["x", "z"])
    for mean, intercept in (("0.15", -2.0), ("1.1", 0.0), ("5", 1.5)):
        for name, dispersion in (("Poisson", 0.0), ("overdispersed", 0.8)):
            table = _counts(intercept, dispersion)
            yield Setting(f"counts, mean {mean}, {name}", table, COUNTED, poisson, "x", RATE[0])


def _nmes(folder: Path) -> Setting:
    frame = pl.read_parquet(folder / "nmes1988" / "data.parquet")
    features = ["nvisits", "ovisits", "novisits", "hospital", "chronic", "age", "school"]
    bounds = [(0, 110), (0, 150), (0, 160), (0, 10), (0, 10), (6, 12), (0, 20)]
    schema = dg.Schema(
        *(dg.numeric(name, *ends) for name, ends in zip(features, bounds, strict=True)),
        dg.numeric("visits", 0, 100),
    )
    x = np.column_stack([np.ones(len(frame)), frame.select(features).to_numpy()])
    truth = np.linalg.lstsq(x, frame["visits"].to_numpy(), rcond=None)[0][1]

    def table(draw: np.random.Generator) -> Any:
        return frame[draw.integers(0, len(frame), len(frame))].to_arrow()

    return Setting(
        "linear, nmes1988 (nvisits)",
        table,
        schema,
        dg.linear("visits", features, limit=6),
        "nvisits",
        float(truth),
        population=frame,
    )


def estimand(setting: Setting, found: dg.Release) -> float:
    """The slope that the release says it estimates, of the whole population: weights by features, limit."""
    step = next((each for each in found.measured if isinstance(each, MeasuredStep)), None)
    if setting.population is None or step is None:
        return setting.truth
    schema = feature_schema(found.schema, step.on)
    columns = [np.full(len(setting.population), schema.encoded[0].weight)]
    features = [np.ones(len(setting.population))]
    for encoded in schema.encoded[1:]:
        values = setting.population[encoded.source].to_numpy().astype(float)
        columns.append(encoded.weight * (values - encoded.centre) / encoded.half_width)
        features.append(values)
    x, y = np.column_stack(features), setting.population[setting.model.target].to_numpy().astype(float)
    lengths = (np.linalg.solve(step.coordinates.inverse, np.array(columns)) ** 2).sum(axis=0)
    weights = np.minimum(step.radius**2 / lengths, 1.0)
    slopes = np.linalg.lstsq(x, y, rcond=None)[0]
    for _ in range(60):
        gap = y - x @ slopes
        near = weights * (np.abs(gap) <= step.limit)
        pull = x.T @ (weights * np.clip(gap, -step.limit, step.limit))
        slopes = slopes + np.linalg.solve((x.T * near) @ x, pull)
    names = [encoded.source for encoded in schema.encoded[1:]]
    return float(slopes[1 + names.index(setting.slope)])


def release(setting: Setting, data: Any, epsilon: float, seed: int, *, declared: bool) -> dg.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = publish_with(
            data,
            setting.schema,
            epsilon=epsilon,
            delta=1e-6,
            rows=setting.rows,
            models=[setting.model] if declared else (),
            entropy=SeededEntropy(seed),
            engine=LocalEngine(threads=1),
            progress=False,
        )
    return found


def ends(setting: Setting, found: dg.Release, *, declared: bool) -> tuple[float, float] | None:
    model = setting.model
    try:
        if model.family == "linear":
            low, high = found.regress(model.target, model.on).conf_int()[setting.slope]
        elif declared:
            fit = found.regress(model.target, model.on, family=model.family)
            if not fit.steps:
                return None
            low, high = fit.conf_int()[setting.slope]
        elif model.family == "poisson":
            return None
        else:
            low, high = found.discriminant(model.target, model.on).conf_int()[setting.slope]
    except dg.DpgramError:
        return None
    return (low, high) if np.isfinite([low, high]).all() else None


def line(setting: Setting, epsilon: float, runs: int) -> tuple[str, list[bool]]:
    inside: dict[bool, list[bool]] = {True: [], False: []}
    lengths: dict[bool, list[float]] = {True: [], False: []}
    least_squares = []
    for seed in range(FIRST_SEED, FIRST_SEED + runs):
        data = setting.table(np.random.default_rng(seed))
        for declared in (True, False):
            if not declared and setting.model.family != "linear":
                continue
            made = release(setting, data, epsilon, seed + 10_000, declared=declared)
            found = ends(setting, made, declared=declared)
            if found is not None:
                truth = estimand(setting, made) if declared else setting.truth
                inside[declared].append(found[0] <= truth <= found[1])
                lengths[declared].append(found[1] - found[0])
                if declared:
                    least_squares.append(found[0] <= setting.truth <= found[1])
    given = inside[True]
    cells = [f"{np.mean(given):.1%}" if given else "–", f"{len(given) / runs:.0%}"]
    linear = setting.model.family == "linear"
    cells.append(f"{np.mean(least_squares):.1%}" if linear and least_squares else "")
    cells.append(f"{np.mean(inside[False]):.1%}" if inside[False] else "")
    both = lengths[True] and lengths[False]
    cells.append(f"{np.median(lengths[True]) / np.median(lengths[False]):.2f}" if both else "")
    return f"| {setting.name} | {epsilon:g} | {' | '.join(cells)} |", given


def pooled(told: list[tuple[Setting, list[bool]]]) -> str:
    """All cells of a kind, and the lowest one."""
    lines = []
    for kind, families in (("linear", ("linear",)), ("logit and counts", ("logistic", "poisson"))):
        cells = [given for setting, given in told if setting.model.family in families and given]
        if not cells:
            continue
        every = [one for given in cells for one in given]
        low = min(cells, key=np.mean)
        below = binom.cdf(sum(low), len(low), 0.93)
        lines.append(
            f"{kind}: {np.mean(every):.1%} of {len(every)} intervals in {len(cells)} cells; lowest cell "
            f"{np.mean(low):.1%} of {len(low)} (chance of so few at 93%: {below:.2g})"
        )
    return "; ".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--runs", type=int, default=60)
    runs = parser.parse_args().runs
    lines, told = [], []
    with many_releases(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for setting in settings(data_sets()):
            for epsilon in EPSILONS:
                text, given = line(setting, epsilon, runs)
                lines.append(text)
                told.append((setting, given))
                print(text, flush=True)
                _write(lines, told, runs)


def _write(lines: list[str], told: list[tuple[Setting, list[bool]]], runs: int) -> None:
    error = np.sqrt(0.95 * 0.05 / runs)
    head = (
        f"# Coverage of 95% intervals of declared models\n\n{runs} tables each; the standard error of a "
        f"coverage is {error:.1%} or more. Written by `benchmarks/model_coverage.py`, which says what each "
        "setting is. Declared: of what the release says that it estimates. Given: in how many tables there "
        "was an interval from Newton steps. Least squares: the same intervals, of the slope of least squares "
        "(the same but for nmes1988). Undeclared: classical errors, from a release without models.\n\n"
        f"Pooled: {pooled(told) if told[-1][0].model.family != 'linear' else '–'}.\n\n"
        "| setting | ε | declared | given | least squares | undeclared | length, declared / undeclared |\n"
        "|---|---|---|---|---|---|---|\n"
    )
    RESULT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Log-loss of a declared logit, and deviance of declared counts, on rows kept apart, beside their rivals.

    python benchmarks/glm.py              # 5 splits, about a minute on one core
    python benchmarks/glm.py --splits 2

Two thirds of the rows are published, once with the logit declared and once without; the others judge. Rivals:
maximum likelihood on the same rows (not private), discriminant analysis and the linear probability model from
the release without a declared model, and gradient descent with clipped gradients and Gaussian noise for the
same (ε, δ): 50 steps over all rows, columns scaled by their public bounds, step 1 and clip 1 (untuned), or
the best of nine pairs on the very rows that judge (tuned). diffprivlib's LogisticRegression where it is
installed (0.6.6 needs scikit-learn below 1.7: an environment of its own). Counts are judged by Poisson's mean
deviance, beside the linear regression of a release without a declared model, its predictions cut below at a
twentieth of the mean, and maximum likelihood.
Writes results/glm.md.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl
from scipy.special import expit, xlogy

import dpgram as dg
from data_sets import data_sets
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine
from dpgram.privacy.guarantee import gdp_mu_at_most
from dpgram.publishing import publish_with
from seeded import many_releases

Array = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "glm.md"
EPSILONS = (0.1, 1.0, 3.0)
DELTA = 1e-6
STEPS = 50


@dataclass(frozen=True)
class Task:
    """A table with a yes/no column."""

    name: str
    frame: pl.DataFrame
    schema: dg.Schema
    target: str

    @property
    def features(self) -> list[str]:
        return [column.name for column in self.schema.columns if column.name != self.target]


def tasks(folder: Path) -> Iterator[Task]:
    adult = pl.read_parquet(folder / "adult" / "data.parquet").with_columns(
        male=pl.col("sex") == "Male",
        married=pl.col("marital_status") == "Married-civ-spouse",
        rich=pl.col("income_gt_50k") == 1.0,
        # As the release cuts it: predictions are for rows within the public bounds.
        capital_gain=pl.col("capital_gain").clip(0, 20_000),
    )
    numbers = [
        dg.numeric("age", 0, 120),
        dg.numeric("education_num", 0, 20),
        dg.numeric("hours_per_week", 0, 100),
        dg.numeric("capital_gain", 0, 20_000),
        dg.numeric("capital_loss", 0, 5_000),
    ]
    flags = [dg.boolean("male"), dg.boolean("married"), dg.boolean("rich")]
    yield Task("adult, income, 7 features", adult, dg.Schema(*numbers, *flags), "rich")
    job = dg.categorical("occupation", sorted(adult["occupation"].unique()))
    work = dg.categorical("workclass", sorted(adult["workclass"].unique()))
    yield Task("adult, income, 29 features", adult, dg.Schema(*numbers, *flags, job, work), "rich")
    yield Task("adult, married", adult, dg.Schema(*numbers, *flags), "married")
    nmes = pl.read_parquet(folder / "nmes1988" / "data.parquet").with_columns(
        insured=pl.col("insurance") == "yes", limited=pl.col("adl") == "limited"
    )
    schema = dg.Schema(
        dg.numeric("chronic", 0, 10),
        dg.numeric("age", 6, 12),
        dg.numeric("school", 0, 20),
        dg.categorical("region", ["midwest", "northeast", "other", "west"]),
        dg.categorical("health", ["average", "excellent", "poor"]),
        dg.boolean("insured"),
        dg.boolean("limited"),
    )
    yield Task("nmes1988, insured", nmes, schema, "insured")
    yield Task("nmes1988, limited", nmes, schema, "limited")


def count_tasks(folder: Path) -> Iterator[Task]:
    nmes = pl.read_parquet(folder / "nmes1988" / "data.parquet").with_columns(
        insured=pl.col("insurance") == "yes", limited=pl.col("adl") == "limited"
    )
    columns = [
        dg.numeric("chronic", 0, 10),
        dg.numeric("age", 6, 12),
        dg.numeric("school", 0, 20),
        dg.categorical("health", ["average", "excellent", "poor"]),
        dg.boolean("insured"),
        dg.boolean("limited"),
    ]
    yield Task("nmes1988, visits", nmes, dg.Schema(*columns, dg.numeric("visits", 0, 100)), "visits")
    stays = dg.Schema(*columns, dg.numeric("hospital", 0, 20))
    yield Task("nmes1988, hospital stays", nmes, stays, "hospital")


def deviance(mean: Array, truth: Array) -> float:
    held = np.maximum(mean, 1e-3)
    return float(2.0 * np.mean(xlogy(truth, truth / held) - (truth - held)))


def judged_counts(task: Task, epsilon: float, seed: int) -> Iterator[tuple[str, float]]:
    order = np.random.default_rng(seed).permutation(len(task.frame))
    cut = 2 * len(order) // 3
    train, test = task.frame[order[:cut]], task.frame[order[cut:]]
    truth, known = (each[task.target].to_numpy().astype(np.float64) for each in (test, train))
    rows = {name: test[name].to_numpy() for name in task.features}

    def told(make: Callable[[], Array]) -> float:
        try:
            return deviance(make(), truth)
        except dg.DpgramError:
            return float("nan")

    declared = release(task, train, epsilon, seed, declared=True, model=dg.poisson(task.target))
    yield "declared", told(lambda: declared.regress(task.target, family="poisson").predict(rows))
    plain = release(task, train, epsilon, seed, declared=False)
    floor = 0.05 * known.mean()
    yield "linear", told(lambda: np.maximum(plain.regress(task.target).predict(rows), floor))
    x, new = bounded(task, train), bounded(task, test)
    theta = np.zeros(x.shape[1])
    theta[0] = np.log(known.mean())
    for _ in range(30):
        mean = np.exp(x @ theta)
        theta = theta + np.linalg.solve((x.T * mean) @ x + 1e-6 * np.eye(len(theta)), x.T @ (known - mean))
    yield "likelihood", deviance(np.exp(new @ theta), truth)
    yield "share", deviance(np.full(len(truth), known.mean()), truth)


def loss(chance: Array, truth: Array) -> float:
    held = np.clip(chance, 1e-3, 1.0 - 1e-3)
    return float(-np.mean(truth * np.log(held) + (1.0 - truth) * np.log(1.0 - held)))


def bounded(task: Task, frame: pl.DataFrame) -> Array:
    """Columns between −1 and 1 by public bounds, with a constant: what gradient descent works on."""
    columns = [np.ones(len(frame))]
    for column in task.schema.columns:
        if column.name == task.target:
            continue
        values = frame[column.name].to_numpy()
        if column.group_levels:
            columns += [(values == level) * 1.0 for level in column.group_levels[1:]]
        elif isinstance(column, type(dg.boolean("b"))):
            columns.append(values * 2.0 - 1.0)
        else:
            low, high = column.bounds
            columns.append(np.clip((values - low) / (high - low) * 2.0 - 1.0, -1.0, 1.0))
    return np.column_stack(columns).astype(np.float64)


def descended(x: Array, y: Array, epsilon: float, seed: int, rate: float, clip: float) -> Array:
    """Noisy gradient descent: μ² = STEPS·(clip/σ)² for the sum of clipped gradients."""
    sigma = clip * np.sqrt(STEPS) / gdp_mu_at_most(epsilon, DELTA)
    draw, theta = np.random.default_rng(seed), np.zeros(x.shape[1])
    lengths = np.linalg.norm(x, axis=1)
    for _ in range(STEPS):
        gaps = y - expit(x @ theta)
        kept = np.minimum(1.0, clip / np.maximum(np.abs(gaps) * lengths, 1e-12))
        step = x.T @ (gaps * kept) + draw.normal(0.0, sigma, x.shape[1])
        theta = theta + rate * step / len(y)
    return theta


def likeliest(x: Array, y: Array) -> Array:
    theta = np.zeros(x.shape[1])
    for _ in range(30):
        p = expit(x @ theta)
        hessian = (x.T * (p * (1.0 - p))) @ x + 1e-6 * np.eye(x.shape[1])
        theta = theta + np.linalg.solve(hessian, x.T @ (y - p))
    return theta


def release(
    task: Task,
    frame: pl.DataFrame,
    epsilon: float,
    seed: int,
    *,
    declared: bool,
    model: dg.models.Model | None = None,
) -> dg.Release:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        (found,) = publish_with(
            frame.to_arrow(),
            task.schema,
            epsilon=epsilon,
            delta=DELTA,
            models=[model or dg.logistic(task.target)] if declared else (),
            entropy=SeededEntropy(seed),
            engine=LocalEngine(threads=1),
            progress=False,
        )
    return found


def judged(task: Task, epsilon: float, seed: int) -> Iterator[tuple[str, float]]:
    order = np.random.default_rng(seed).permutation(len(task.frame))
    cut = 2 * len(order) // 3
    train, test = task.frame[order[:cut]], task.frame[order[cut:]]
    truth = test[task.target].to_numpy().astype(np.float64)
    rows = {name: test[name].to_numpy() for name in task.features}

    def told(make: Callable[[], Array]) -> float:
        try:
            return loss(make(), truth)
        except dg.DpgramError:
            return float("nan")

    declared = release(task, train, epsilon, seed, declared=True)
    yield "declared", told(lambda: declared.regress(task.target, family="logistic").predict(rows))
    plain = release(task, train, epsilon, seed, declared=False)
    yield "discriminant", told(lambda: plain.discriminant(task.target).predict(rows))
    yield "linear", told(lambda: np.asarray(plain.regress(task.target).predict(rows)))
    x, y, new = bounded(task, train), train[task.target].to_numpy().astype(float), bounded(task, test)
    yield "descent", loss(expit(new @ descended(x, y, epsilon, seed, 1.0, 1.0)), truth)
    grid = [(rate, clip) for rate in (1.0, 4.0, 16.0) for clip in (0.3, 1.0, 3.0)]
    yield (
        "tuned",
        min(loss(expit(new @ descended(x, y, epsilon, seed, *pair)), truth) for pair in grid),
    )
    yield "likelihood", loss(expit(new @ likeliest(x, y)), truth)
    yield "share", loss(np.full(len(truth), y.mean()), truth)
    yield from _diffprivlib(x, y, new, truth, epsilon, seed)


def _diffprivlib(
    x: Array, y: Array, new: Array, truth: Array, epsilon: float, seed: int
) -> Iterator[tuple[str, float]]:
    try:
        from diffprivlib.models import LogisticRegression
    except ImportError:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        norm = float(np.sqrt(x.shape[1]))
        model = LogisticRegression(epsilon=epsilon, data_norm=norm, random_state=seed).fit(x, y)
        yield "diffprivlib", loss(model.predict_proba(new)[:, 1], truth)


COLUMNS = {
    "declared": "**declared logit**",
    "discriminant": "discriminant, nothing declared",
    "linear": "linear probability",
    "descent": "gradient descent",
    "tuned": "the same, tuned on the test rows",
    "diffprivlib": "diffprivlib",
    "likelihood": "maximum likelihood, not private",
    "share": "share of ones alone",
}


COUNT_COLUMNS = {
    "declared": "**declared counts**",
    "linear": "linear regression, nothing declared",
    "likelihood": "maximum likelihood, not private",
    "share": "mean alone",
}

Judge = Callable[[Task, float, int], Iterator[tuple[str, float]]]


def table(every: Iterator[Task], judge: Judge, columns: dict[str, str], splits: int) -> str:
    lines = [f"| table | ε | {' | '.join(columns.values())} |", f"|{'---|' * (len(columns) + 2)}"]
    for task in every:
        for epsilon in EPSILONS:
            found = defaultdict(list)
            for seed in range(splits):
                for name, value in judge(task, epsilon, seed):
                    found[name].append(value)
            cells = [_cell(found.get(name, [])) for name in columns]
            lines.append(f"| {task.name} | {epsilon:g} | {' | '.join(cells)} |")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--splits", type=int, default=5)
    splits = parser.parse_args().splits
    with many_releases():
        counts = table(count_tasks(data_sets()), judged_counts, COUNT_COLUMNS, splits)
        logits = table(tasks(data_sets()), judged, COLUMNS, splits)
    RESULT.write_text(
        f"# Declared models on rows kept apart\n\nMedian of {splits} splits, δ = {DELTA:g}; two thirds of "
        "the rows are published. A number in brackets says in how many splits there was an answer; – is "
        "none. A column of dashes is a library that is not installed. Written by `benchmarks/glm.py`, which "
        f"says what each rival is.\n\n## Log-loss of a declared logit\n\n{logits}\n\n"
        f"## Mean deviance of declared counts\n\n{counts}\n",
        encoding="utf-8",
    )


def _cell(values: list[float]) -> str:
    given = [value for value in values if not np.isnan(value)]
    if not given:
        return "–"
    return f"{np.median(given):.4f}" + ("" if len(given) == len(values) else f" ({len(given)})")


if __name__ == "__main__":
    main()

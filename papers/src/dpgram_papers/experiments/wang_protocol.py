"""Wang's protocol (2018) on the sets with published results, and AdaSSP exactly as it was run there.

Features z-scored with the full data, rows scaled to unit length, the target divided by its largest absolute
value, no intercept, ten given folds, test MSE averaged over folds. Everything a method needs of a fold is its
second moments, so noise can be drawn many times per fold. The published experiments add the identity to every
Gram matrix, in AdaSSP and in the non-private fit, and draw AdaSSP's matrix noise as (Z + Zᵀ)/2: half the
off-diagonal variance that the paper's text states. The re-run follows the experiments: the stronger rival.
"""

from __future__ import annotations

import csv
import json
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow.parquet as pq

Array: TypeAlias = npt.NDArray[np.float64]

SETS: Final = ("airfoil", "bike", "concrete", "elevators", "energy", "parkinsons", "protein", "wine")
DELTA: Final = 1e-6
FAILURE: Final = 0.05
"""ϱ of the paper: AdaSSP's ridge parameter holds with probability 1 − ϱ."""


@final
@dataclass(frozen=True)
class Fold:
    """Second moments of [x, y]: summed over the training rows, averaged over the test rows."""

    train: Array
    test: Array

    def mse(self, theta: Array) -> Array:
        """Test error of each row of `theta`."""
        k = len(self.test) - 1
        xx, xy, yy = self.test[:k, :k], self.test[:k, k], self.test[k, k]
        return np.asarray(yy - 2.0 * theta @ xy + np.einsum("...i,ij,...j->...", theta, xx, theta))


@final
@dataclass(frozen=True)
class Task:
    """One prepared data set."""

    name: str
    x: Array
    y: Array
    test_rows: tuple[npt.NDArray[np.bool_], ...]
    folds: tuple[Fold, ...]

    @property
    def width(self) -> int:
        """The number of features."""
        return int(self.x.shape[1])

    def nonprivate(self) -> float:
        """Least squares with the identity added, as published."""
        k = self.width
        errors = []
        for fold in self.folds:
            theta = np.linalg.solve(fold.train[:k, :k] + np.eye(k), fold.train[:k, k])
            errors.append(fold.mse(np.asarray(theta, dtype=np.float64)))
        return float(np.mean(errors))

    def trivial(self) -> float:
        """The error of predicting zero."""
        return float(np.mean([f.test[-1, -1] for f in self.folds]))


def prepared(x: Array, y: Array) -> tuple[Array, Array]:
    """z-scores with ddof 1 (constant columns become 0), rows of length one, y divided by max|y|."""
    deviation = x.std(axis=0, ddof=1)
    z = (x - x.mean(axis=0)) / np.where(deviation == 0.0, 1.0, deviation)
    length = np.linalg.norm(z, axis=1, keepdims=True)
    return z / np.where(length == 0.0, 1.0, length), y / np.abs(y).max()


def make_task(name: str, x: Array, y: Array, test_rows: tuple[npt.NDArray[np.bool_], ...]) -> Task:
    """Prepare a table and take the moments of its folds."""
    x, y = prepared(x, y)
    z = np.column_stack([x, y])
    whole = z.T @ z
    folds = []
    for rows in test_rows:
        test = z[rows].T @ z[rows]
        folds.append(Fold(whole - test, test / rows.sum()))
    return Task(name, x, y, test_rows, tuple(folds))


def load_rows(folder: Path, name: str) -> tuple[Array, Array, tuple[npt.NDArray[np.bool_], ...]]:
    """Features, target and published folds of one of the eight sets."""
    table = pq.read_table(folder / name / "data.parquet")
    cells = np.column_stack([column.to_numpy() for column in table.columns]).astype(float)
    splits = pq.read_table(folder / name / "splits.parquet")
    return cells[:, :-1], cells[:, -1], tuple(column.to_numpy().astype(bool) for column in splits.columns)


_TRANSFORMS: Final[Mapping[str, Callable[[Array], Array]]] = {
    "id": np.asarray,
    "log": np.log,
    "log1p": np.log1p,
}


def target_mean(folder: Path, name: str) -> float:
    """The mean that was taken off the target of one of the eight sets, in the units of its file."""
    about = json.loads((folder / name / "meta.json").read_text(encoding="utf-8"))
    raw = pq.read_table(folder / name / "raw.parquet", columns=[about["raw"]["target"]]).column(0)
    transform = _TRANSFORMS[about["target_transform"]]
    return float(np.mean(transform(raw.to_numpy().astype(float))))


def load_task(folder: Path, name: str) -> Task:
    """One of the eight sets with its published folds."""
    return make_task(name, *load_rows(folder, name))


def random_folds(rows: int, count: int, seed: int) -> tuple[npt.NDArray[np.bool_], ...]:
    """Folds for the sets that have no published ones."""
    label = np.random.default_rng(seed).permutation(rows) % count
    return tuple(label == k for k in range(count))


def symmetric_noise(generator: np.random.Generator, count: int, width: int, sigma: float) -> Array:
    """(Z + Zᵀ)/2 with variances σ² on the diagonal and σ²/2 off it."""
    z = generator.standard_normal((count, width, width)) * sigma
    return np.asarray((z + z.transpose(0, 2, 1)) / 2.0)


def adassp(task: Task, epsilon: float, draws: int, generator: np.random.Generator) -> Array:
    """Test MSE of published AdaSSP: folds × draws.

    A third of ε each for λ_min, XᵀX and Xᵀy, deviation √ln(6/δ)/(ε/3); the ridge parameter is
    √(d ln(6/δ) ln(2d²/ϱ))/(ε/3) minus a lower bound on λ_min.
    """
    k, log_term, share = task.width, math.log(6.0 / DELTA), epsilon / 3.0
    sigma = math.sqrt(log_term) / share
    wanted = math.sqrt(k * log_term * math.log(2.0 * k * k / FAILURE)) / share
    errors = []
    for fold in task.folds:
        gram = fold.train[:k, :k] + np.eye(k)
        smallest = np.linalg.eigvalsh(gram)[0] + sigma * generator.standard_normal(draws) - log_term / share
        ridge = np.maximum(0.0, wanted - np.maximum(0.0, smallest))
        xy = fold.train[:k, k] + sigma * generator.standard_normal((draws, k))
        xx = gram + symmetric_noise(generator, draws, k, sigma) + ridge[:, None, None] * np.eye(k)
        errors.append(fold.mse(np.linalg.solve(xx, xy[..., None])[..., 0]))
    return np.array(errors)


def published(folder: Path) -> dict[tuple[str, str, float], float]:
    """(set, method, ε) → published test MSE."""
    with (folder / "wang2018_results_A.csv").open() as file:
        return {
            (row["dataset"], row["method"], float(row["epsilon"])): float(row["cv_mse_mean"])
            for row in csv.DictReader(file)
        }


def compared(task: Task, epsilon: float, theirs: float, draws: int, seed: int) -> tuple[float, float]:
    """The mean of our re-run of AdaSSP, and how many standard deviations the published value lies from it.

    The published number is a mean over ten folds with one draw each, so its deviation given the folds is
    the root of the mean variance between draws over ten.
    """
    errors = adassp(
        task, epsilon, draws, np.random.default_rng([seed, round(1000 * epsilon), *task.name.encode()])
    )
    deviation = math.sqrt(errors.var(axis=1, ddof=1).mean() / len(task.folds))
    return float(errors.mean()), (theirs - float(errors.mean())) / deviation


def agreement(folder: Path, tasks: tuple[Task, ...], draws: int, seed: int) -> tuple[int, float]:
    """How many published AdaSSP values were compared, and the mean of their squared z-scores."""
    results = published(folder)
    epsilons = (0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
    scores = [
        compared(task, epsilon, results[task.name, "AdaSSP", epsilon], draws, seed)[1]
        for task in tasks
        for epsilon in epsilons
    ]
    return len(scores), float(np.mean(np.square(scores)))


def check(folder: Path, tasks: tuple[Task, ...], draws: int, seed: int) -> Iterator[tuple[str, ...]]:
    """For each set our non-private, trivial and AdaSSP errors beside the published ones; z of the last."""
    results = published(folder)
    for task in tasks:
        cells = [task.name]
        for ours, method in ((task.nonprivate(), "non-private"), (task.trivial(), "trivial")):
            cells += [f"{ours:.6f}", f"{results[task.name, method, 1.0]:.6f}"]
        for epsilon in (0.1, 1.0):
            theirs = results[task.name, "AdaSSP", epsilon]
            mean, z = compared(task, epsilon, theirs, draws, seed)
            cells += [f"{mean:.5f}", f"{theirs:.5f}", f"{z:+.1f}"]
        yield tuple(cells)

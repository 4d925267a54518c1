"""One target only: PrivateRidge against a release for every target, and against published AdaSSP.

    python benchmarks/estimators.py [--draws 60] [--fits 2] [--data FOLDER]      # about two minutes, one core

Wang's protocol (wang_protocol.py) on the sets with published results. Part 1 fits the estimators themselves,
part 2 draws the same noise laws in floats, many times per fold. Writes results/estimators.md.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from accuracy import SEED, Ratio, geometric, honest, law_for, library, ratio, table, test_errors
from data_sets import data_sets
from dpgram import Schema, numeric
from dpgram.analysis.noise_aware import noise_aware
from dpgram.core.noise import SeededEntropy
from dpgram.estimators import AdaSSP, PrivateRidge
from dpgram.estimators.base import PrivateRegressor
from dpgram.estimators.noisy_sums import TARGET_LENGTH
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.target import TargetedGaussian
from dpgram.sums.target import TargetBounds
from wang_protocol import DELTA, SETS, Task, adassp, load_task

Array = npt.NDArray[np.float64]
RESULT = Path(__file__).parent / "results" / "estimators.md"
EPSILONS = (0.1, 1.0)


def estimator(epsilon: float, seed: int, mechanism: str = "auto") -> PrivateRidge:
    """The library's own estimator under the public facts of the protocol: |x| ≤ 1, |y| ≤ 1, no intercept."""
    return PrivateRidge(
        epsilon,
        DELTA,
        bounds=(-1, 1),
        target_bounds=(-1, 1),
        fit_intercept=False,
        radius=1.0,
        mechanism=mechanism,
        entropy=SeededEntropy(seed),
    )


def chosen(task: Task, epsilon: float) -> str:
    """What `mechanism="auto"` takes; it depends on public facts alone."""
    return estimator(epsilon, 0).fit(task.x[:1], task.y[:1]).mechanism_


def targeted(task: Task, epsilon: float) -> TargetedGaussian:
    """The law of the joint release in this protocol."""
    names = [*(f"x{i}" for i in range(task.width)), "y"]
    schema = Schema(*(numeric(name, -1, 1) for name in names), constant=False)
    return TargetedGaussian.calibrated(
        Guarantee(epsilon, DELTA), TargetBounds.of(schema, "y", 1.0), adjacency("add-remove")
    )


def joint_errors(task: Task, epsilon: float, draws: int, seed: int) -> Array:
    """Test MSE of the joint Gaussian release: folds × draws."""
    law = targeted(task, epsilon)
    unit, k = law.row_bounds.unit**2, task.width
    xx, xy, yy = law.sigma_xx * unit, law.sigma_xy * unit, law.sigma_yy * unit
    stretch, noise = xx / (math.sqrt(2.0) * xy), SymmetricGaussian(sigma=xx)

    def fit(train: Array, generator: np.random.Generator) -> Array:
        return (
            noise_aware(
                train[:k, :k] + noise.sample(k, generator),
                stretch * (train[:k, k] + xy * generator.standard_normal(k)),
                stretch**2 * (train[k, k] + yy * generator.standard_normal()),
                noise=noise,
                square_sd=stretch**2 * yy,
            ).theta
            / stretch
        )

    return simulated(task, fit, draws, seed)


def laplace_errors(task: Task, epsilon: float, draws: int, seed: int) -> Array:
    """Test MSE of matrix Laplace noise with the target at its best length: folds × draws."""
    k, w = task.width, TARGET_LENGTH
    law = MatrixLaplace(theta=epsilon / (1.0 + w * w), width=k + 1)

    def fit(train: Array, generator: np.random.Generator) -> Array:
        n = law.sample(k + 1, generator)
        A, b, yy = train[:k, :k] + n[:k, :k], w * train[:k, k] + n[:k, k], w * w * train[k, k] + n[k, k]
        return noise_aware(A, b, float(yy), noise=law).theta / w

    return simulated(task, fit, draws, seed)


def simulated(task: Task, fit: Callable[[Array, np.random.Generator], Array], draws: int, seed: int) -> Array:
    """Test MSE: folds × draws."""
    generator = np.random.default_rng([seed, *task.name.encode()])
    errors = [fold.mse(np.array([fit(fold.train, generator) for _ in range(draws)])) for fold in task.folds]
    return np.array(errors)


def fitted_errors(task: Task, make: Callable[[int], PrivateRegressor], fits: int) -> Array:
    """Test MSE of estimators fitted on the rows themselves: folds × fits."""
    errors = []
    for number, (rows, fold) in enumerate(zip(task.test_rows, task.folds, strict=True)):
        thetas = [make(SEED + 1000 * number + i).fit(task.x[~rows], task.y[~rows]).coef_ for i in range(fits)]
        errors.append(fold.mse(np.array(thetas)))
    return np.array(errors)


def shown(found: Ratio) -> str:
    return f"{found.value:.3f} ± {found.value * found.log_error:.3f}"


def measured(task: Task, epsilon: float, draws: int, fits: int) -> dict[str, Ratio]:
    """Excess test error over the non-private fit, relative to our re-run of published AdaSSP."""
    rival = adassp(task, epsilon, 5 * draws, np.random.default_rng([SEED, *task.name.encode()]))
    joint = joint_errors(task, epsilon, draws, SEED)
    auto = joint if chosen(task, epsilon) == "joint-gaussian" else laplace_errors(task, epsilon, draws, SEED)
    errors = {
        "PrivateRidge, fitted": fitted_errors(task, lambda seed: estimator(epsilon, seed), fits),
        "AdaSSP exact, fitted": fitted_errors(
            task,
            lambda seed: AdaSSP(epsilon, DELTA, x_norm=1.0, y_bound=1.0, entropy=SeededEntropy(seed)),
            fits,
        ),
        "PrivateRidge": auto,
        "every target, auto": test_errors(
            task, law_for(task, epsilon, DELTA, "auto"), honest(library), draws, [SEED]
        ),
        "joint Gaussian": joint,
        "every target, Gaussian": test_errors(
            task, law_for(task, epsilon, DELTA, "gaussian"), honest(library), draws, [SEED]
        ),
    }
    return {name: ratio(found, rival, task.nonprivate()) for name, found in errors.items()}


def report(tasks: Sequence[Task], draws: int, fits: int) -> Iterator[str]:
    yield "# One target only: PrivateRidge against a release for every target and published AdaSSP\n"
    yield (
        "Excess test error over the non-private fit, relative to our re-run of published AdaSSP (below 1: "
        f"better), δ = {DELTA:g}, ten folds, public facts |x| ≤ 1 and |y| ≤ 1. “Fitted” columns are the "
        f"estimators themselves, {fits} fits a fold; the others draw the same laws in floats, {draws} times "
        "a fold. ± is one standard error over noise. The shares of the joint release (SLOPE in "
        "publishing/measurements/target.py) and the default regression were chosen on these sets.\n"
    )
    for epsilon in EPSILONS:
        results = {task.name: measured(task, epsilon, draws, fits) for task in tasks}
        methods = list(next(iter(results.values())))
        yield f"## ε = {epsilon:g}\n"
        lines = [
            [task.name, str(task.width), chosen(task, epsilon), *map(shown, results[task.name].values())]
            for task in tasks
        ]
        means = [geometric([results[task.name][name] for task in tasks]) for name in methods]
        lines.append(["geometric mean", "", "", *(f"{mean:.3f} ± {error:.3f}" for mean, error in means)])
        yield from table(["set", "d", "auto takes", *methods], lines)
        yield from verdict(results)


def verdict(results: dict[str, dict[str, Ratio]]) -> Iterator[str]:
    """Where it holds and where not, by the measured means."""
    pairs = (
        ("PrivateRidge", None, "PrivateRidge is better than published AdaSSP"),
        (
            "joint Gaussian",
            "every target, Gaussian",
            "The joint Gaussian release is better than one for every target",
        ),
        (
            "PrivateRidge",
            "every target, auto",
            "PrivateRidge is better than the automatic release for every target",
        ),
    )
    for ours, theirs, words in pairs:
        worse = [
            f"{name} ({found[ours].value:.3f} against {1.0 if theirs is None else found[theirs].value:.3f})"
            for name, found in results.items()
            if found[ours].value >= (1.0 if theirs is None else found[theirs].value)
        ]
        yield f"- {words} on {len(results) - len(worse)} of {len(results)} sets" + (
            f"; not on {', '.join(worse)}." if worse else "."
        )
    yield ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=60)
    parser.add_argument("--fits", type=int, default=2)
    parser.add_argument("--data", type=Path, help="the folder of data sets; by default that of DPGRAM_DATA")
    parser.add_argument("--output", type=Path, default=RESULT)
    given = parser.parse_args()
    folder = data_sets(given.data)
    tasks = [load_task(folder, name) for name in SETS]
    given.output.write_text("\n".join(report(tasks, given.draws, given.fits)) + "\n")
    print(given.output.read_text())


if __name__ == "__main__":
    main()

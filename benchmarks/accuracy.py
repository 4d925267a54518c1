"""Accuracy of the default regression against published AdaSSP, other estimators, and on other designs.

    python benchmarks/accuracy.py [--draws 100] [--data FOLDER]      # about five minutes on one core
    python benchmarks/accuracy.py --criteria                         # parts 2b and 6 only, nothing is written

1. The protocol is checked: our non-private, trivial and AdaSSP errors against the published ones.
2. One release a fold is published and regressed by the library; coefficients and noise law are compared with
   what part 3 uses, which draws the same laws in floats, many times per fold. 2b: the default of `publish`;
   2c: without the protocol's public radius, where it is adaptive, on tuned and held-out sets.
3. Excess test error over the non-private fit, relative to our re-run of published AdaSSP.
4. The same for every candidate, and for estimators that know more than a release tells.
5. Losses in the library's own encoding, on synthetic designs and on held-out sets.
6. The covariance of normal data in CoinPress's setting.

Writes results/accuracy.md. What was chosen how: docs/explanation/accuracy.md.
"""

from __future__ import annotations

import argparse
import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from candidates import CANDIDATES, Candidate, Noisy, library, ridge
from data_sets import data_sets
from designs import Law, Table, development, held_out, law_of, losses, synthetic
from dpgram import Schema, numeric
from dpgram.analysis.moments import Moments
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine
from dpgram.privacy.guarantee import GaussianDP
from dpgram.publishing import publish_with
from dpgram.rows import Rows
from held_out import held_out_arrays
from wang_protocol import (
    DELTA,
    SETS,
    Fold,
    Task,
    adassp,
    agreement,
    check,
    load_task,
    make_task,
    random_folds,
)

Array = npt.NDArray[np.float64]
Estimate = Callable[[Fold, Noisy], Array]
Oracle = Callable[[Fold, Noisy, float], Array]

RESULT = Path(__file__).parent / "results" / "accuracy.md"
SENSITIVITY = 2.0
"""Squared radius of a row [x, y] with |x| ≤ 1 and |y| ≤ 1."""
SEED = 20261115
LIMITS: Mapping[float, float] = {0.1: 0.41, 1.0: 0.15}
"""ε → geometric mean of part 2b that the default must not exceed, to two digits."""
RELEASES = 10
"""Releases a fold in parts 2b and 2c."""
PUBLIC = Rows(radius=math.sqrt(SENSITIVITY))
"""The protocol's radius as a public fact."""
COVARIANCE_LIMIT = 0.133
COVARIANCE_ROWS, COVARIANCE_WIDTH, COVARIANCE_RHO = 8_000, 10, 0.5
COVARIANCE_BOUND = 25.0
"""Public bounds ±25 for deviations of 1: a covariance of at most 33·I, four deviations and a little."""
SETTINGS = (("auto", DELTA), ("gaussian", DELTA), ("auto", 0.0))
ORACLE = {f"oracle {multiple:g}": ridge(multiple) for multiple in np.geomspace(0.02, 10.0, 16)}
COMPARED = (
    "ridge, λ = σ√(2d)",
    "filter, likeliest τ",
    "posterior, m = 2 fixed",
    "posterior, Student prior on log m",
    "noise-aware (the default)",
)


@dataclass(frozen=True)
class Ratio:
    """Excess error of a method over that of AdaSSP, with the standard error of its logarithm."""

    value: float
    log_error: float
    mse: float
    rival: float


def ratio(ours: Array, rival: Array, nonprivate: float) -> Ratio:
    """Both arguments are folds × draws of test MSE."""

    def excess(errors: Array) -> tuple[float, float]:
        mean = float(errors.mean()) - nonprivate
        deviation = math.sqrt(float(errors.var(axis=1, ddof=1).mean()) / errors.size)
        return mean, deviation / mean

    (top, top_error), (bottom, bottom_error) = excess(ours), excess(rival)
    return Ratio(top / bottom, math.hypot(top_error, bottom_error), float(ours.mean()), float(rival.mean()))


def geometric(ratios: Sequence[Ratio]) -> tuple[float, float]:
    """Geometric mean and its standard error."""
    mean = math.exp(float(np.mean([math.log(max(r.value, 1e-6)) for r in ratios])))
    return mean, mean * math.hypot(*(r.log_error for r in ratios)) / len(ratios)


def generator_for(task: Task, seed: Sequence[int]) -> np.random.Generator:
    """Noise of its own for each set."""
    return np.random.default_rng([*seed, *task.name.encode()])


def test_errors(task: Task, law: Law, estimate: Estimate, draws: int, seed: Sequence[int]) -> Array:
    """Test MSE, folds × draws, each from one noisy matrix of [x, y]."""
    generator, k = generator_for(task, seed), task.width
    errors = []
    for fold in task.folds:
        noisy = fold.train + np.stack([law.sample(k + 1, generator) for _ in range(draws)])
        batch = Noisy(noisy[:, :k, :k], noisy[:, :k, k], noisy[:, k, k], law)
        errors.append(fold.mse(estimate(fold, batch)))
    return np.array(errors)


def honest(candidate: Candidate) -> Estimate:
    """A candidate sees the noisy batch only."""
    return lambda _, batch: candidate(batch)


def law_for(task: Task, epsilon: float, delta: float, mechanism: str) -> Law:
    """The noise of one release of [x, y] under public radius √2."""
    return law_of(epsilon, delta, task.width + 1, SENSITIVITY, mechanism)


def library_errors(task: Task, epsilon: float, delta: float) -> tuple[float, float]:
    """Mean test MSE over the folds, one release each through `publish` and `regress`; and the worst mismatch.

    The mismatch is the largest relative difference, over folds, between the library's coefficients or noise
    deviation and those of the direct calculation used for many draws.
    """
    names = [f"x{i}" for i in range(task.width)]
    schema = Schema(*(numeric(name, low=-1.0, high=1.0) for name in [*names, "y"]), constant=False)
    law, k, errors, mismatch = law_for(task, epsilon, delta, "auto"), task.width, [], 0.0
    for number, (rows, fold) in enumerate(zip(task.test_rows, task.folds, strict=True)):
        table = dict(zip([*names, "y"], np.column_stack([task.x, task.y])[~rows].T, strict=True))
        release = publish_with(
            table,
            schema,
            epsilon=epsilon,
            delta=delta,
            entropy=SeededEntropy(SEED + number),
            rows=Rows(radius=math.sqrt(SENSITIVITY)),
            adaptive=False,
        )[0]
        fit = release.regress("y", intercept=False)
        theta = np.array([fit.fitted_params[name] for name in names])
        errors.append(float(fold.mse(theta)))
        matrix = release.matrix()
        direct = library(Noisy(matrix[None, :k, :k], matrix[None, :k, k], matrix[None, k, k], law))[0]
        deviation = Moments.of(release).noise.diagonal_sd
        mismatch = max(
            mismatch,
            float(np.linalg.norm(theta - direct) / np.linalg.norm(direct)),
            abs(deviation / law.diagonal_sd - 1.0),
        )
    return float(np.mean(errors)), mismatch


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """A Markdown table."""
    yield "| " + " | ".join(head) + " |"
    yield "|" + "---|" * len(head)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def part_protocol(folder: Path, tasks: tuple[Task, ...], draws: int) -> Iterator[str]:
    yield "## 1. The protocol is the published one\n"
    yield (
        "Ours beside published. z: how many standard deviations (over noise draws, given the folds) the "
        "published AdaSSP lies from the mean of our re-run.\n"
    )
    head = ["set", "non-private", "published", "trivial", "published"]
    for epsilon in (0.1, 1):
        head += [f"AdaSSP ε={epsilon}", "published", "z"]
    yield from table(head, check(folder, tasks, draws, SEED))
    count, mean_square = agreement(folder, tasks, draws, SEED)
    yield f"Over ε = 0.05 to 10 ({count} published values) the mean of z² is {mean_square:.2f}.\n"


def part_library(tasks: tuple[Task, ...], rivals: dict[tuple[str, float], Array]) -> Iterator[str]:
    yield "## 2. Through the library: one release a fold\n"
    yield (
        "Test MSE of `publish(...)` and `release.regress('y', intercept=False)`, one draw a fold as in the "
        "published experiments, so with their Monte Carlo error. Mismatch: largest relative difference to "
        "the direct calculation on the same release, in coefficients and in the deviation of the noise.\n"
    )
    rows = []
    for task in tasks:
        cells = [task.name, f"{task.nonprivate():.5f}"]
        for epsilon in (0.1, 1.0):
            cells.append(f"{rivals[task.name, epsilon].mean():.5f}")
            for delta in (DELTA, 0.0):
                mse, mismatch = library_errors(task, epsilon, delta)
                cells.append(f"{mse:.5f} ({mismatch:.0e})")
        rows.append(cells)
    head = ["set", "non-private"]
    for epsilon in (0.1, 1):
        head += [
            f"AdaSSP ε={epsilon}",
            f"ours ε={epsilon}, δ=10⁻⁶ (mismatch)",
            f"ours ε={epsilon}, δ=0 (mismatch)",
        ]
    yield from table(head, rows)


def default_errors(task: Task, epsilon: float, releases: int, rows: Rows, *, adaptive: bool = True) -> Array:
    """Test MSE, folds × releases, of `publish` with every other option at its default."""
    names = [f"x{i}" for i in range(task.width)]
    schema = Schema(*(numeric(name, low=-1.0, high=1.0) for name in [*names, "y"]), constant=False)
    errors = []
    for number, (tested, fold) in enumerate(zip(task.test_rows, task.folds, strict=True)):
        data = np.ascontiguousarray(np.column_stack([task.x, task.y])[~tested])
        found = []
        for draw in range(releases):
            (release,) = publish_with(
                data,
                schema,
                epsilon=epsilon,
                delta=DELTA,
                entropy=SeededEntropy(SEED + 1_000 * draw + number),
                rows=rows,
                adaptive=adaptive,
                engine=LocalEngine(threads=1),
                progress=False,
            )
            fit = release.regress("y", intercept=False)
            found.append(float(fold.mse(np.array([fit.fitted_params[name] for name in names]))))
        errors.append(found)
    return np.array(errors)


def part_default(
    tasks: tuple[Task, ...], rivals: Mapping[tuple[str, float], Array], releases: int
) -> Iterator[str]:
    yield "## 2b. The default of `publish`\n"
    yield (
        f"As part 3, but through `publish` with its defaults (and the protocol's public radius), {releases} "
        "releases a fold.\n"
    )
    rows, verdicts = [], []
    for epsilon, limit in LIMITS.items():
        ratios = [
            ratio(
                default_errors(task, epsilon, releases, PUBLIC), rivals[task.name, epsilon], task.nonprivate()
            )
            for task in tasks
        ]
        mean, error = geometric(ratios)
        rows.append([f"{epsilon:g}", *(f"{r.value:.3f}" for r in ratios), f"**{mean:.3f}** ± {error:.3f}"])
        met = "met" if round(mean, 2) <= limit else "**missed**"
        verdicts.append(f"- ε = {epsilon:g}: {mean:.3f}, wanted at most {limit:g}: {met}.")
    yield from table(["ε", *SETS, "geometric mean"], rows)
    yield from [*verdicts, ""]


def part_open_default(
    tasks: tuple[Task, ...], rivals: Mapping[tuple[str, float], Array], releases: int, draws: int
) -> Iterator[str]:
    yield "## 2c. The default of `publish`, without the protocol's radius\n"
    yield (
        "The same where nothing but the bounds of the columns is public: rows are not clipped at √2, the "
        "default adapts its coordinates and its radius. AdaSSP still knows that |x| ≤ 1 and |y| ≤ 1. Tuned: "
        "sets on which estimator or default were chosen. Held out: nothing was chosen on them. "
        f"{releases} releases a fold.\n"
    )
    others = held_out_tasks()
    rivals = {
        **rivals,
        **{
            (task.name, epsilon): held_out_rival(task, epsilon, draws)
            for task in others
            for epsilon in LIMITS
        },
    }
    for title, sets in (("Tuned", tasks), ("Held out", others)):
        yield f"### {title}\n"
        rows = []
        for epsilon, (name, rule) in itertools.product(
            LIMITS, (("the default, adaptive", Rows()), ("public radius, one plain matrix", PUBLIC))
        ):
            ratios = [
                ratio(
                    default_errors(task, epsilon, releases, rule),
                    rivals[task.name, epsilon],
                    task.nonprivate(),
                )
                for task in sets
            ]
            mean, error = geometric(ratios)
            lower = sum(one.value < 1.0 for one in ratios)
            cells = [f"{epsilon:g}", name, *(f"{one.value:.3f}" for one in ratios)]
            rows.append([*cells, f"**{mean:.3f}** ± {error:.3f}", f"{lower} of {len(ratios)}"])
        head = ["ε", "rows", *(task.name for task in sets), "geometric mean", "lower MSE than AdaSSP"]
        yield from table(head, rows)


def part_covariance(tables: int) -> Iterator[str]:
    """Frobenius error of Σ̂ for Σ = I: the same as its Mahalanobis error."""
    yield "## 6. Covariance in CoinPress's setting\n"
    guarantee = GaussianDP(mu=math.sqrt(2.0 * COVARIANCE_RHO))
    epsilon = guarantee.epsilon_at_most(DELTA)
    yield (
        f"{COVARIANCE_WIDTH} standard normal columns, {COVARIANCE_ROWS:,} rows, ρ = {COVARIANCE_RHO:g} (as a "
        f"Gaussian release of μ = {guarantee.mu:g}: ε = {epsilon:.2f} at δ = 10⁻⁶), one row replaced, public "
        f"bounds ±{COVARIANCE_BOUND:g}; Frobenius norm of the error of `release.covariance()`, mean of "
        f"{tables} tables.\n"
    )
    schema = Schema(*(numeric(f"x{j}", -COVARIANCE_BOUND, COVARIANCE_BOUND) for j in range(COVARIANCE_WIDTH)))
    errors: dict[str, list[float]] = {"not private": [], "default": [], "`adaptive=False`": []}
    for number in range(tables):
        rng = np.random.default_rng([SEED, 6, number])
        data = rng.standard_normal((COVARIANCE_ROWS, COVARIANCE_WIDTH))
        errors["not private"].append(float(np.linalg.norm(np.cov(data.T) - np.eye(COVARIANCE_WIDTH))))
        for name, chosen in (("default", {}), ("`adaptive=False`", {"adaptive": False})):
            (release,) = publish_with(
                data,
                schema,
                epsilon=epsilon,
                delta=DELTA,
                entropy=SeededEntropy(SEED + number),
                adjacency="replace-one",
                engine=LocalEngine(threads=1),
                progress=False,
                **chosen,
            )
            found = np.asarray(release.covariance()) - np.eye(COVARIANCE_WIDTH)
            errors[name].append(float(np.linalg.norm(found)))
    means = {name: float(np.mean(found)) for name, found in errors.items()}
    doubt = {name: float(np.std(found) / math.sqrt(tables)) for name, found in errors.items()}
    yield from table(
        ["", "error"], ([name, f"{value:.4f} ± {doubt[name]:.4f}"] for name, value in means.items())
    )
    met = "met" if means["default"] <= COVARIANCE_LIMIT else "**missed**"
    yield f"- {means['default']:.3f}, wanted at most {COVARIANCE_LIMIT:g}: {met}.\n"


def part_main(tasks: tuple[Task, ...], rivals: dict[tuple[str, float], Array], draws: int) -> Iterator[str]:
    yield "## 3. Excess error relative to published AdaSSP\n"
    yield (
        "(test MSE − non-private) / (the same of AdaSSP), mean over folds and draws; AdaSSP at (ε, 10⁻⁶). "
        "`auto` is the library's choice of mechanism: the pure matrix Laplace where it has less noise. "
        "± is one standard error of the Monte Carlo.\n"
    )
    rows = []
    for epsilon in (0.1, 1.0):
        for mechanism, delta in SETTINGS:
            ratios = []
            for task in tasks:
                law = law_for(task, epsilon, delta, mechanism)
                ours = test_errors(task, law, honest(library), draws, [SEED, round(100 * epsilon)])
                ratios.append(ratio(ours, rivals[task.name, epsilon], task.nonprivate()))
            mean, error = geometric(ratios)
            lower = sum(r.mse < r.rival for r in ratios)
            cells = [f"{epsilon:g}", mechanism, f"{delta:g}", *(f"{r.value:.3f}" for r in ratios)]
            rows.append([*cells, f"**{mean:.3f}** ± {error:.3f}", f"{lower} of {len(ratios)}"])
    yield from table(["ε", "mechanism", "δ", *SETS, "geometric mean", "lower MSE than AdaSSP"], rows)


def part_candidates(tasks: tuple[Task, ...], draws: int) -> Iterator[str]:
    yield "## 4. The candidates\n"
    yield ("Geometric mean over the eight sets of the same ratio, on the same noise for all candidates.\n")
    epsilons = (0.1, 0.3, 1.0, 3.0)
    means: dict[str, list[str]] = {name: [] for name in CANDIDATES}
    for mechanism in ("gaussian", "auto"):
        for epsilon in epsilons:
            seed = [SEED, 4, round(100 * epsilon)]
            rivals = {t.name: adassp(t, epsilon, 4 * draws, generator_for(t, seed)) for t in tasks}
            for name, candidate in CANDIDATES.items():
                ratios = []
                for task in tasks:
                    law = law_for(task, epsilon, DELTA, mechanism)
                    ours = test_errors(task, law, honest(candidate), draws, seed)
                    ratios.append(ratio(ours, rivals[task.name], task.nonprivate()))
                means[name].append(f"{geometric(ratios)[0]:.3f}")
    head = ["candidate", *(f"{m} ε={e:g}" for m in ("Gaussian", "auto") for e in epsilons)]
    yield from table(head, ([name, *cells] for name, cells in means.items()))


def known_matrix(fold: Fold, noisy: Noisy, p: float) -> Array:
    """The posterior mean of θ ~ N(0, pI) when A is exact and only b is noisy."""
    k = noisy.width
    A = fold.train[:k, :k]
    o = noisy.noise.offdiagonal_sd
    return np.asarray(np.linalg.solve(A @ A + o**2 / p * np.eye(k), A @ noisy.b.T).T)


def known_eigenvalues(fold: Fold, noisy: Noisy, p: float) -> Array:
    """The same when noise hides A, but not the quadratic forms of its noisy eigenvectors."""
    k = noisy.width
    _, vectors, u = noisy.eigen
    alpha = np.einsum("nki,kl,nli->ni", vectors, fold.train[:k, :k], vectors)
    v = noisy.noise.offdiagonal_sd**2 * (1.0 + (k + 1.0) * p)
    return noisy.back(p * alpha * u / (p * alpha**2 + v))


def part_room(tasks: tuple[Task, ...], rivals: dict[tuple[str, float], Array], draws: int) -> Iterator[str]:
    yield "## 4b. What is left to gain\n"
    yield (
        "The ratio of part 3 under Gaussian noise for estimators that know more than a release tells: the "
        "exact XᵀX, or its quadratic form along each noisy eigenvector; and for both the best prior variance "
        "p for each set.\n"
    )
    rows = []
    for epsilon in (0.1, 1.0):
        for name, estimate in (("XᵀX known", known_matrix), ("eigenvalues known", known_eigenvalues)):
            ratios = []
            for task in tasks:
                law = law_for(task, epsilon, DELTA, "gaussian")
                best: list[Array] = []
                for scale in 2.0 ** np.arange(-6.0, 5.0):
                    p = scale * task.trivial()  # yᵀy / tr A is the trivial error: rows have length one

                    def known(fold: Fold, batch: Noisy, p: float = p, f: Oracle = estimate) -> Array:
                        return f(fold, batch, p)

                    best.append(test_errors(task, law, known, draws, [SEED, 6]))
                errors = min(best, key=lambda one: float(one.mean()))
                ratios.append(ratio(errors, rivals[task.name, epsilon], task.nonprivate()))
            cells = [f"{epsilon:g}", name, *(f"{r.value:.3f}" for r in ratios)]
            rows.append([*cells, f"{geometric(ratios)[0]:.3f}"])
    yield from table(["ε", "known", *SETS, "geometric mean"], rows)


def losses_table(tables: Iterable[tuple[str, Table]], epsilons: Sequence[float], draws: int) -> Iterator[str]:
    """Rows: the tables of one label averaged (geometrically for the ratio to the oracle ridge)."""
    compared = {name: CANDIDATES[name] for name in COMPARED}
    found: dict[tuple[str, float], list[dict[str, float]]] = {}
    for label, one in tables:
        for epsilon in epsilons:
            found.setdefault((label, epsilon), []).append(
                losses(one, compared | ORACLE, epsilon, draws, SEED)
            )
    rows = []
    for (label, epsilon), results in found.items():
        cells = [label, f"{epsilon:g}"]
        for name in ("oracle", *COMPARED):
            values = [min(r[o] for o in ORACLE) if name == "oracle" else r[name] for r in results]
            cells.append(f"{math.exp(np.mean(np.log(np.maximum(values, 1e-6)))):.4f}")
        rows.append(cells)
    yield from table(["table", "ε", "oracle ridge", *COMPARED], rows)


def part_designs(folder: Path, draws: int) -> Iterator[str]:
    yield "## 5. Other designs\n"
    yield (
        "Loss under `auto`, δ=10⁻⁶: excess test error as a part of what the non-private fit gains on the "
        "mean (1 = no better than the mean), over five folds. The oracle ridge picks its λ knowing the test "
        "error, so it is no competitor but a yardstick.\n"
    )
    yield "### Development: the library's encoding, with intercept\n"
    yield from losses_table(((t.name, t) for t in development(folder)), (0.3, 1.0, 3.0), draws)
    yield "### Development: synthetic\n"
    yield (
        "Geometric means over 10³, 10⁴, 10⁵ rows × 1, 4, 12, 40 columns × a flat and a falling spectrum, by "
        "kind of signal. Without any signal the loss is in parts of the target's variance.\n"
    )
    yield from losses_table(synthetic((1_000, 10_000, 100_000), (1, 4, 12, 40)), (0.1, 1.0, 10.0), draws)
    yield "### Development: 200 columns, 10⁴ and 3·10⁵ rows\n"
    yield from losses_table(synthetic((10_000, 300_000), (200,), seed=1), (1.0, 10.0), 2)
    yield "### Held out: the library's encoding (nothing was tuned to these sets)\n"
    yield from losses_table(((t.name, t) for t in held_out()), (0.3, 1.0, 3.0), draws)


def held_out_tasks() -> tuple[Task, ...]:
    return tuple(
        make_task(name, x, y - y.mean(), random_folds(len(y), 10, SEED)) for name, x, y in held_out_arrays()
    )


def held_out_seed(epsilon: float) -> list[int]:
    return [SEED, 5, round(100 * epsilon)]


def held_out_rival(task: Task, epsilon: float, draws: int) -> Array:
    """AdaSSP's test errors, four times as many draws as ours."""
    return adassp(task, epsilon, 4 * draws, generator_for(task, held_out_seed(epsilon)))


def part_held_out_protocol(draws: int) -> Iterator[str]:
    yield "### Held out: Wang's protocol, ten random folds, relative to AdaSSP\n"
    tasks = held_out_tasks()
    rows = []
    for epsilon in (0.1, 0.3, 1.0):
        for name in COMPARED:
            ratios = []
            for task in tasks:
                rival = held_out_rival(task, epsilon, draws)
                law = law_for(task, epsilon, DELTA, "auto")
                ours = test_errors(task, law, honest(CANDIDATES[name]), draws, held_out_seed(epsilon))
                ratios.append(ratio(ours, rival, task.nonprivate()))
            cells = [f"{epsilon:g}", name, *(f"{r.value:.3f}" for r in ratios)]
            rows.append([*cells, f"{geometric(ratios)[0]:.3f}"])
    yield from table(["ε", "estimator", *(t.name for t in tasks), "geometric mean"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=100, help="noise draws a fold in parts 1 and 3")
    parser.add_argument("--criteria", action="store_true", help="parts 2b and 6 only, printed")
    parser.add_argument("--releases", type=int, default=RELEASES, help="releases a fold in parts 2b, 2c")
    parser.add_argument("--data", type=Path, help="the folder of data sets; by default that of DPGRAM_DATA")
    arguments = parser.parse_args()
    folder, draws = data_sets(arguments.data), arguments.draws
    tasks = tuple(load_task(folder, name) for name in SETS)
    rivals = {
        (task.name, epsilon): adassp(
            task, epsilon, 4 * draws, generator_for(task, [SEED, 1, round(100 * epsilon)])
        )
        for task in tasks
        for epsilon in (0.1, 1.0)
    }
    if arguments.criteria:
        for line in (*part_default(tasks, rivals, arguments.releases), *part_covariance(draws)):
            print(line, flush=True)
        return
    few = max(2, draws // 5)
    lines = [f"# Accuracy\n\nMade by `benchmarks/accuracy.py`, {draws} noise draws a fold.\n"]
    for part in (
        part_protocol(folder, tasks, 4 * draws),
        part_library(tasks, rivals),
        part_default(tasks, rivals, arguments.releases),
        part_open_default(tasks, rivals, arguments.releases, few),
        part_main(tasks, rivals, draws),
        part_candidates(tasks, few),
        part_room(tasks, rivals, few),
        part_designs(folder, few),
        part_held_out_protocol(few),
        part_covariance(draws),
    ):
        for line in part:
            print(line)
            lines.append(line)
    RESULT.write_text("\n".join(lines).rstrip() + "\n")


if __name__ == "__main__":
    main()

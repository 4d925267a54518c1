"""The default of `publish` in cells of the papers' tables, which elsewhere have one plain matrix.

    python benchmarks/papers_default.py [--data FOLDER]   writes results/papers-default.md, about two minutes

The papers' tables (docs/explanation/papers.md) give rows a public length, as the papers do, and with that
`publish` draws one plain matrix. Here the adaptive default knows bounds of the columns and nothing else, and
stands beside the best of the paper's methods, one plain matrix with the paper's clip, and one plain matrix
that knows as little as the default.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import dpgram as dg
from accuracy import PUBLIC, SEED, Array, default_errors, generator_for
from collinear import BOUNDS, rough_schema
from data_sets import data_sets
from dpgram.analysis.design import INTERCEPT
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine
from dpgram.errors import DpgramWarning
from dpgram.publishing import publish_with
from dpgram_papers.experiments.claims import table
from dpgram_papers.experiments.clipped_rows import CHUNK
from dpgram_papers.experiments.grid import generator_of
from dpgram_papers.experiments.sheffet_single import (
    DELTA,
    FEATURES,
    GAUSS_EQUAL,
    OURS,
    OWN,
    REPAIRED_EQUAL,
    design,
    measure,
)
from dpgram_papers.experiments.study import SEED as PAPERS_SEED
from wang_protocol import SETS, adassp, load_task

PAGE = Path(__file__).parent / "results" / "papers-default.md"
EPSILONS = (0.1, 1.0)
RELEASES = 10
"""Of each of ten folds, and with the seeds of part 2c of accuracy.py: the ratios are the same."""
DRAWS = 400
"""Of AdaSSP a fold."""
EXPONENTS = (14, 18)
SHEFFET_EPSILONS = (0.1, 0.5)
RUNS = 15
DIRECT = 20
"""Up to 2²⁰ rows the paper's tables are summed row by row, so that here are the same rows."""
RIVALS = (GAUSS_EQUAL, *REPAIRED_EQUAL, *OWN)
HEAD = (
    "best of the paper", "its error", "one plain matrix, the paper's clip",
    "one plain matrix, bounds of columns", "the default, bounds of columns",
    "the default over the paper's", "over the plain matrix with the clip", "behind it in folds or tables",
)  # fmt: skip


def wang(folder: Path) -> Iterator[tuple[str, ...]]:
    """Excess test MSE over the non-private fit, folds of the published table."""
    for name in SETS:
        task = load_task(folder, name)
        floor = task.nonprivate()
        for epsilon in EPSILONS:
            theirs = adassp(task, epsilon, DRAWS, generator_for(task, [SEED, 1, round(100 * epsilon)]))
            rival = float(theirs.mean()) - floor
            forms = ((PUBLIC, False), (dg.Rows(), False), (dg.Rows(), True))
            ours = [
                default_errors(task, epsilon, RELEASES, rows, adaptive=adaptive).mean(axis=1) - floor
                for rows, adaptive in forms
            ]
            yield cells(f"{name}, ε = {epsilon:g}", task.trivial() - floor, "AdaSSP", rival, ours)


def sheffet() -> Iterator[tuple[str, ...]]:
    """|β̂ − β| with the intercept, mean over tables; every method on the same rows."""
    names = [*(f"x{k}" for k in range(FEATURES)), "y"]
    schema = rough_schema(names)
    law = design(PAPERS_SEED)
    truth = np.array([law.intercept, *law.beta])
    for exponent in EXPONENTS:
        for epsilon in SHEFFET_EPSILONS:
            theirs, ours = [], []
            for run in range(RUNS):
                theirs.append(measure((exponent, run, DIRECT, epsilon), PAPERS_SEED))
                generator = generator_of(PAPERS_SEED, "sheffet rows", exponent, run)
                size = min(CHUNK, 1 << exponent)
                rows = np.concatenate([law.rows(size, generator) for _ in range((1 << exponent) // size)])
                found = []
                for adaptive in (False, True):
                    (release,) = publish_with(
                        np.ascontiguousarray(rows[:, 1:]),
                        schema,
                        epsilon=epsilon,
                        delta=DELTA,
                        adjacency="replace-one",
                        adaptive=adaptive,
                        entropy=SeededEntropy(1000 * exponent + run),
                        engine=LocalEngine(threads=1),
                        progress=False,
                    )
                    slopes = release.regress("y").fitted_params
                    answer = np.array([slopes[INTERCEPT], *(slopes[name] for name in names[:-1])])
                    found.append(float(np.linalg.norm(answer - truth)))
                ours.append(found)
            means = {name: float(np.mean([one[name] for one in theirs])) for name in RIVALS}
            best = min(RIVALS, key=means.__getitem__)
            errors = [np.array([one[OURS] for one in theirs]), *np.transpose(ours)]
            nothing = float(np.linalg.norm(truth))
            yield cells(f"n = 2^{exponent}, ε = {epsilon:g}", nothing, best, means[best], errors)


def cells(setting: str, nothing: float, best: str, theirs: float, ours: Sequence[Array]) -> tuple[str, ...]:
    """`ours` has the errors of the three forms, one for each fold or table."""
    clipped, plain, default = (float(errors.mean()) for errors in ours)
    behind = np.count_nonzero(ours[2] > ours[0])
    return (
        setting,
        f"{nothing:.3g}",
        best,
        *(f"{number:.3g}" for number in (theirs, clipped, plain, default)),
        f"{default / theirs:.2f}",
        f"{default / clipped:.2f}",
        f"{behind} of {len(ours[0])}",
    )


def main() -> None:
    warnings.simplefilter("ignore", DpgramWarning)
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, help="the folder of data sets; by default that of DPGRAM_DATA")
    folder = data_sets(parser.parse_args().data)
    lines = [
        "# The default in the papers' settings",
        "",
        "Made by `python benchmarks/papers_default.py`. The papers' tables have one plain matrix of rows of",
        "a public length; the default learns its coordinates and its clip, and knows bounds of columns",
        "alone. Ratios below 1: the default has the smaller error.",
        "",
        "## Wang's protocol",
        "",
        "Both sides promise (ε, 10⁻⁶), one row added or removed. Excess test MSE over the non-private fit,",
        f"mean of ten folds and {RELEASES} releases of each (AdaSSP: {DRAWS} draws). AdaSSP knows |x| ≤ 1",
        "and |y| ≤ 1, the clip is √2, the bounds of every column are ±1. Estimator and default were chosen",
        "on these sets. AdaSSP answers one question, a release any.",
        "",
        *table(("setting", "answering nothing", *HEAD), wang(folder)),
        "",
        "## Sheffet, figures 1–4",
        "",
        f"Both sides promise (ε, e⁻⁹), one row replaced. |β̂ − β|, mean of {RUNS} tables. The clip is √(2.5d)",
        f"as in the paper; the bounds of columns are rough: ±{BOUNDS['x']:g} for features,",
        f"±{BOUNDS['y']:g} for the target. Nothing was chosen on these tables.",
        "",
        *table(("setting", "answering nothing", *HEAD), sheffet()),
    ]
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

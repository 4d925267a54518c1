"""Regressions on columns that nearly repeat each other, Sheffet's open question: do coordinates help?

    python benchmarks/collinear.py [runs]      writes benchmarks/results/collinear.md, a few minutes

Sheffet's multiple regressions (§6.2): x₁ … x₂₀ and twenty targets in one table, (0.1, e⁻⁹), one row replaced.
y₂₀ is regressed on x and on m of the other targets, which hold nothing that x does not; a good answer is β on
x and 0 on them. He asks for a private choice of columns. The adaptive release chooses coordinates instead: a
first noisy matrix is whitened, and the noise of the second is then small along directions in which columns
nearly repeat each other. From it the regression on all columns is made, and one on those alone whose interval
leaves out 0, which is a choice of columns at no further cost.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramError, DpgramWarning
from dpgram.publishing import publish_with
from dpgram_papers.experiments.claims import table
from dpgram_papers.experiments.grid import generator_of
from dpgram_papers.experiments.sheffet_multiple import (
    DELTA,
    EPSILON,
    EQUAL,
    FEATURES,
    LENGTH,
    OURS,
    design,
    measure,
)
from dpgram_papers.experiments.study import SEED

EXPONENTS = (14, 16, 18)
REDUNDANT = (0, 5, 19)
NAMES = [*(f"x{k}" for k in range(FEATURES)), *(f"y{k}" for k in range(FEATURES))]
BOUNDS = {"x": 8.0, "y": 24.0}
"""Rough ones, eight standard deviations or more."""
PAGE = Path(__file__).parent / "results" / "collinear.md"
PLAIN = "dpgram, one plain matrix"
COLUMNS = ("non-private", EQUAL, OURS, "adaptive", "adaptive, chosen columns")


def rough_schema(names: Iterable[str]) -> dg.Schema:
    """Of features x… and targets y…"""
    return dg.Schema(*(dg.numeric(name, -BOUNDS[name[0]], BOUNDS[name[0]]) for name in names))


def adaptive(exponent: int, run: int) -> dict[int, tuple[float, float]]:
    """|β̂ − (β, 0)| of all columns and of the chosen ones, for each m, from one release."""
    rows = design(SEED).rows(1 << exponent, generator_of(SEED, "collinear", exponent, run))
    data = {name: rows[:, k] for k, name in enumerate(NAMES)}
    (release,) = publish_with(
        data,
        rough_schema(NAMES),
        epsilon=EPSILON,
        delta=DELTA,
        adjacency="replace-one",
        entropy=SeededEntropy(1000 * exponent + run),
        progress=False,
    )
    found = {}
    for m in REDUNDANT:
        features = NAMES[: FEATURES + m]
        truth = dict(zip(features, [*design(SEED).betas[-1], *([0.0] * m)], strict=True))
        found[m] = (_error(release, features, truth), _error(release, _chosen(release, features), truth))
    return found


def _error(release: dg.Release, features: list[str], truth: dict[str, float]) -> float:
    """Columns that are left out have the slope 0."""
    slopes = release.regress(NAMES[-1], on=features).fitted_params if features else {}
    return float(np.linalg.norm([slopes.get(name, 0.0) - value for name, value in truth.items()]))


def _chosen(release: dg.Release, features: list[str]) -> list[str]:
    """Those whose 95% interval leaves out 0; all, where there are no intervals."""
    try:
        intervals = release.regress(NAMES[-1], on=features).conf_int()
    except DpgramError:
        return features
    return [name for name in features if not intervals[name][0] <= 0.0 <= intervals[name][1]]


def main() -> None:
    warnings.simplefilter("ignore", DpgramWarning)
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    lines = []
    for exponent in EXPONENTS:
        released = [adaptive(exponent, run) for run in range(runs)]
        for m in REDUNDANT:
            others = [measure((exponent, run, exponent, m), SEED) for run in range(runs)]
            means = [float(np.mean([one[name] for one in others])) for name in COLUMNS[:3]]
            means += [float(np.mean([one[m][k] for one in released])) for k in (0, 1)]
            lines.append((f"2^{exponent}", str(m), *(f"{mean:.3g}" for mean in means)))
            print(lines[-1], flush=True)
    text = [
        "# Columns that nearly repeat each other",
        "",
        f"Made by `python benchmarks/collinear.py {runs}`: mean of {runs} tables. |β̂ − (β, 0)|, where",
        f"|β| is {LENGTH}, ε = {EPSILON}, δ = e⁻⁹, one row replaced. The first three columns clip rows at",
        "B = √(2.5d) as the paper does, which is a bias of its own; the adaptive release learns its clip.",
        "Analyze Gauss is scaled and has the noise that replaced rows need.",
        "",
        *table(("n", "m", *(PLAIN if name == OURS else name for name in COLUMNS)), lines),
    ]
    PAGE.write_text("\n".join(text) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

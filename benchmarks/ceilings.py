"""What no choice of constants would change in two cells of peers.py: what a clip costs, what means cost.

    python benchmarks/ceilings.py     # a minute on one core; writes results/ceilings.md

1. Rows clipped by their length R in coordinates that are known exactly, least squares after it: without
   noise, and with the noise of one matrix that has the whole budget. An adaptive release has less for its
   last matrix and must learn the coordinates, so this is more than it could reach at any radius.
2. The R² that is lost by not knowing the mean of the target, when the whole budget buys the means of all
   columns and nothing else. A release that serves every target pays at least that for the level of each.

The tables are read from the folder given with --data or named in DPGRAM_DATA.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from scipy.stats import chi2

from accuracy import table
from data_sets import data_sets
from dpgram.privacy.curves.calibrate import gaussian_sigma
from peers import DELTA, SETS, Scaled, exact, load, r_squared, with_constant

Array = npt.NDArray[np.float64]

RESULT = Path(__file__).parent / "results" / "ceilings.md"
RADII = (4.0, 6.0, 8.0, 10.0, 12.0, 15.0, 20.0, 30.0, 50.0)
SPLITS = 21
EPSILON, SMALLEST = 1.0, 0.1
"""Of the first part and of the second."""


def noise_unit(epsilon: float) -> float:
    """1/μ: the deviation of Gaussian noise for rows of length one."""
    return gaussian_sigma(epsilon=epsilon, delta=DELTA, sensitivity=1.0)


def clipped_fit(x: Array, y: Array, radius: float, noise: Array) -> Array:
    """Least squares from Σ w² u uᵀ + noise, u whitened by the exact second moments, w = min(1, R/|u|)."""
    rows = np.column_stack([with_constant(x), y])
    lower = np.linalg.cholesky(rows.T @ rows / len(rows))
    u = np.linalg.solve(lower, rows.T).T
    u *= np.minimum(1.0, radius / np.linalg.norm(u, axis=1))[:, None]
    gram = lower @ (u.T @ u + noise) @ lower.T
    return np.asarray(np.linalg.solve(gram[:-1, :-1], gram[:-1, -1]))


def symmetric_noise(width: int, deviation: float, generator: np.random.Generator) -> Array:
    """`deviation` on the diagonal, 1/√2 of it beside it."""
    drawn = generator.normal(size=(width, width))
    return np.asarray((drawn + drawn.T) * (deviation / 2.0))


def by_radius(one: Scaled) -> Iterator[list[str]]:
    splits = [one.split(seed) for seed in range(SPLITS)]
    width = one.x.shape[1] + 2
    for radius in RADII:
        scores: dict[bool, list[float]] = {False: [], True: []}
        for seed, (x, y, test_x, test_y) in enumerate(splits):
            deviation = radius**2 * noise_unit(EPSILON)
            noise = symmetric_noise(width, deviation, np.random.default_rng([seed, 11]))
            for noisy, kept in scores.items():
                kept.append(r_squared(clipped_fit(x, y, radius, noise * noisy), test_x, test_y))
        yield [f"{radius:g}", *(f"{np.median(kept):.3f}" for kept in scores.values())]
    free = [r_squared(exact(x, y, 0.0, 0), test_x, test_y) for x, y, test_x, test_y in splits]
    yield ["no clip", f"{np.median(free):.3f}", ""]


def level_loss(one: Scaled) -> tuple[float, float]:
    """Mean and median of (error of the mean)²/variance at SMALLEST, where all columns get a mean."""
    rows = len(one.y) - len(one.y) // 5
    error = np.sqrt(one.x.shape[1] + 1.0) * noise_unit(SMALLEST) / rows
    mean = float(error**2 / one.y.var())
    return mean, mean * float(chi2(1).median())


def report(sets: Sequence[Scaled]) -> Iterator[str]:
    yield HEAD
    yield f"## 1. A clip by length, protein, ε = {EPSILON:g}\n"
    (protein,) = (one for one in sets if one.name == "protein")
    yield from table(
        ["R", "R² without noise", "with the noise of the whole budget"], list(by_radius(protein))
    )
    yield f"## 2. The level alone, ε = {SMALLEST:g}\n"
    rows = [
        [one.name, f"{len(one.y) - len(one.y) // 5:,}", str(one.x.shape[1] + 1)]
        + [f"{-loss:.3f}" for loss in level_loss(one)]
        for one in sets
    ]
    yield from table(["set", "rows", "columns", "R², mean", "R², median"], rows)


HEAD = f"""# What no choice of constants would change

Made by `benchmarks/ceilings.py`: sets, splits and bounds as in `peers.md`, {SPLITS} splits, medians.

*A clip by length.* Columns are limited by public bounds only, and rows by their length in whitened
coordinates. Here these coordinates are known exactly, and the second number has the noise of one matrix that
gets everything; a release has less for its last matrix and learns the coordinates from noise. Least squares
after it. Where noise seems to help, that is chance.

*The level alone.* The whole budget for the means of all columns, target included, and nothing for anything
else: the R² of a constant that should have been the mean of the rows (Gaussian noise, columns in [-1, 1]).
"""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    folder = data_sets(parser.parse_args().data)
    text = "\n".join(report([load(folder, name) for name in SETS]))
    RESULT.write_text(text.rstrip() + "\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()

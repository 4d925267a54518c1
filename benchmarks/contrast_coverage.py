"""How often 95% intervals of contrasts, marginal effects and predictions cover: made-up tables, known truth.

    python -m benchmarks.contrast_coverage --runs 500 > benchmarks/results/contrast-coverage.md

Each run draws a new table from a known regression with a product, a square and a categorical column, adds the
noise of a Gaussian release to its exact matrix, and asks for one contrast of levels, one of slopes, the
marginal effects of two columns at a stated point, the expectation at two rows and a new observation.
"""

from __future__ import annotations

import argparse
from collections import defaultdict

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.regress import regress
from dpgram.noise import SymmetricGaussian
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

Array = npt.NDArray[np.float64]

SCHEMA = Schema(
    numeric("age", 20, 80),
    numeric("bmi", 15, 45),
    boolean("active"),
    categorical("region", ["a", "b", "c"]),
    numeric("y", -60, 160),
    product("age", "bmi"),
    legendre("age", 2),
)
FORMULA_COLUMNS = ["age", "bmi", "active", "region", "age*bmi", "age^P2"]
POINT = {"age": 45.0, "bmi": 28.0}
ROWS = {"age": [30.0, 60.0], "bmi": [22.0, 33.0], "active": [True, False], "region": ["b", "c"]}
LAWS = ("normal", "uniform", "skewed")


def mean(age: Array, bmi: Array, active: Array, region: npt.NDArray[np.str_]) -> Array:
    levels = 3.0 * (region == "b") - 2.0 * (region == "c")
    return 5.0 + 0.4 * age + 0.5 * bmi - 4.0 * active + levels + 0.01 * age * bmi - 0.004 * age**2


def errors(law: str, rows: int, rng: np.random.Generator) -> Array:
    if law == "normal":
        return rng.normal(0.0, 8.0, rows)
    if law == "uniform":
        return rng.uniform(-8.0 * 3**0.5, 8.0 * 3**0.5, rows)
    return 8.0 * (np.minimum(rng.exponential(1.0, rows), 5.0) - 1.0 + 6.0 * np.exp(-5.0) - 5.0 * np.exp(-5.0))


def encoded(rows: int, law: str, rng: np.random.Generator) -> Array:
    age, bmi = rng.uniform(20, 80, rows), rng.uniform(15, 45, rows)
    active, region = rng.random(rows) < 0.4, rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2])
    y = mean(age, bmi, active.astype(float), region) + errors(law, rows, rng)
    z_age, z_bmi = (age - 50) / 30, (bmi - 30) / 15
    columns = [
        np.ones(rows), z_age, z_bmi, np.where(active, 1.0, -1.0),
        *(region == level for level in ("a", "b", "c")),
        (y - 50) / 110, z_age * z_bmi, (3 * z_age**2 - 1) / 2,
    ]  # fmt: skip
    return np.column_stack(columns).astype(np.float64)


def covered(moments: Moments, law: str, rng: np.random.Generator) -> dict[str, list[bool | None]]:
    """Whether each interval holds its truth; None where it was refused."""
    fit = regress(moments, "y", FORMULA_COLUMNS, reference={"region": "a"})
    if fit.inference().refusal is not None:
        return {name: [None] for name in ("contrast", "marginal effect", "expectation", "observation")}
    found: dict[str, list[bool | None]] = defaultdict(list)

    def count(name: str, ends: Array, truths: Array) -> None:
        for (low, high), truth in zip(ends, truths, strict=True):
            found[name].append(bool(low <= truth <= high) if np.isfinite([low, high]).all() else None)

    contrasts = fit.inference().combined(
        np.array([_row(fit.names, {"region=b": 1, "region=c": -1}), _row(fit.names, {"age": 1, "bmi": -1})]),
        ("levels", "slopes"),
    )
    count("contrast", contrasts.conf_int(), np.array([5.0, -0.1]))
    from dpgram.analysis.contrasts import marginal_effects

    effects = marginal_effects(moments, fit.design, fit.inference(), POINT)
    truth = np.array([0.4 + 0.01 * 28.0 - 0.008 * 45.0, 0.5 + 0.01 * 45.0])
    count("marginal effect", effects.conf_int()[:2], truth)
    from dpgram.analysis.prediction import predict_with_intervals

    told = predict_with_intervals(moments, fit.design, fit.inference(), ROWS)
    expected = mean(
        np.array(ROWS["age"]),
        np.array(ROWS["bmi"]),
        np.array(ROWS["active"], float),
        np.array(ROWS["region"]),
    )
    count("expectation", told.conf_int(), expected)
    count("observation", told.conf_int(obs=True), expected + errors(law, 2, rng))
    return found


def _row(names: tuple[str, ...], factors: dict[str, float]) -> Array:
    return np.array([factors.get(name, 0.0) for name in names])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    print("# Coverage of contrasts, marginal effects and predictions\n")
    print(f"95% intervals for the population, {runs} runs a cell, `python -m benchmarks.contrast_coverage`.")
    print("σ is the noise of the matrix in encoded units (a release of this schema at ε = 1 has about 30).\n")
    print("| rows | σ | errors | contrast | marginal effect | expectation | observation | refused |")
    print("|---|---|---|---|---|---|---|---|")
    pooled: dict[str, list[bool]] = defaultdict(list)
    for rows, sigma in ((5_000, 5.0), (5_000, 20.0), (20_000, 30.0)):
        for law in LAWS:
            every: dict[str, list[bool | None]] = defaultdict(list)
            for run in range(runs):
                rng = np.random.default_rng([rows, int(sigma), LAWS.index(law), run])
                a = encoded(rows, law, rng)
                noise = SymmetricGaussian(sigma=sigma)
                moments = Moments(
                    gram=noise.redraw(a.T @ a, rng), schema=SCHEMA, noise=EncodedNoise.of(noise),
                    radius=SCHEMA.max_norm_squared**0.5,
                )  # fmt: skip
                for name, hits in covered(moments, law, rng).items():
                    every[name] += hits
            cells, refused = [], 0
            for name in ("contrast", "marginal effect", "expectation", "observation"):
                given = [hit for hit in every[name] if hit is not None]
                refused += len(every[name]) - len(given)
                pooled[name] += given
                cells.append(f"{100 * np.mean(given):.1f}% of {len(given)}" if given else "–")
            print(f"| {rows:,} | {sigma:g} | {law} | {' | '.join(cells)} | {refused} |", flush=True)
    cells = [f"{100 * np.mean(pooled[name]):.1f}%" for name in pooled]
    print(f"| all | | | {' | '.join(cells)} | |")


if __name__ == "__main__":
    main()

"""How often 95% intervals of describe, discriminant, within and did cover: made-up tables, known truth.

    python -m benchmarks.answers_coverage --runs 500 > benchmarks/results/answers-coverage.md

Each run draws a new table from a known law and adds the noise of a Gaussian release to its exact matrix, or,
where the release is adaptive, publishes it. Means, shares, slopes and logits are those of the population;
counts and deviations those of the table that was drawn, whose only error is the noise. Of an adaptive release
deviations are those of the rows as they were clipped, which is what it tells.
"""

from __future__ import annotations

import argparse
import warnings
from collections import defaultdict
from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpgram.analysis.description import Description, describe
from dpgram.analysis.discriminant import discriminant
from dpgram.analysis.effects import did, within
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.core.noise import SeededEntropy
from dpgram.errors import AnalysisError
from dpgram.noise import SymmetricGaussian
from dpgram.publishing import publish_with
from dpgram.schema import Schema, boolean, categorical, numeric, product

Array = npt.NDArray[np.float64]
Hits = dict[str, list[bool | None]]

CELLS = ((2_000, 5.0), (5_000, 20.0), (20_000, 30.0))
"""Rows and the deviation of the noise in encoded units; a release of these schemas at ε = 1 has about 20."""

PEOPLE = Schema(
    numeric("age", 20, 80), numeric("wage", 0, 40), boolean("active"), categorical("region", ["a", "b", "c"])
)
GROUPS = Schema(numeric("x", -5, 5), numeric("w", -5, 5), boolean("y"))
CLINICS = Schema(
    boolean("treated"),
    boolean("after"),
    numeric("x", -4, 4),
    numeric("y", -12, 16),
    categorical("city", ["a", "b", "c"]),
    product("treated", "after"),
)


STATED = [1.0]
"""What the noise is said to be, in parts of what it is: less, for a test that this shows."""


def noisy(schema: Schema, encoded: Array, sigma: float, rng: np.random.Generator) -> Moments:
    return Moments(
        gram=SymmetricGaussian(sigma=sigma).redraw(encoded.T @ encoded, rng),
        schema=schema,
        noise=EncodedNoise.of(SymmetricGaussian(sigma=STATED[0] * sigma)),
        radius=schema.max_norm_squared**0.5,
    )


def hit(ends: tuple[float, float], truth: float) -> bool | None:
    return bool(ends[0] <= truth <= ends[1]) if np.isfinite(ends).all() else None


def people(rows: int, rng: np.random.Generator) -> dict[str, npt.NDArray[np.generic]]:
    return {
        "age": rng.uniform(20, 80, rows),
        "wage": np.minimum(rng.gamma(2.0, 3.0, rows), 40.0),
        "active": rng.random(rows) < 0.3,
        "region": rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]),
    }


WAGE = 6.0 - 3.0 * (2.0 + 40.0 / 3.0) * np.exp(-40.0 / 3.0)
"""The mean of a gamma law of shape 2 and scale 3 whose values above 40 are 40."""
TRUE_MEANS = {"age": 50.0, "wage": WAGE, "active": 0.3, "region=a": 0.5, "region=b": 0.3, "region=c": 0.2}


def encoded_people(table: dict[str, npt.NDArray[np.generic]]) -> Array:
    return np.column_stack(
        [
            np.ones(len(table["age"])),
            (table["age"].astype(float) - 50) / 30,
            (table["wage"].astype(float) - 20) / 20,
            np.where(table["active"], 1.0, -1.0),
            *(table["region"] == level for level in "abc"),
        ]
    ).astype(np.float64)


def of_description(found: Description, table: dict[str, npt.NDArray[np.generic]], weights: Array) -> Hits:
    """`weights` are those that a clip leaves to the rows; none touches means, shares and counts."""
    hits: Hits = defaultdict(list)
    rows = len(table["age"])
    hits["rows"].append(hit((found.rows.low, found.rows.high), rows))
    for name, truth in TRUE_MEANS.items():
        told = found[name].mean
        hits["mean or share"].append(hit((told.low, told.high), truth))
    for name in ("age", "wage"):
        spread = found[name].deviation
        variance = float(np.cov(table[name].astype(float), aweights=weights, ddof=0))
        truth = float(np.sqrt(variance * weights.sum() / (weights.sum() - 1.0)))
        hits["deviation (table)"].append(hit((spread.low, spread.high), truth))
    for level in "abc":
        count = found[f"region={level}"].count
        assert count is not None
        hits["count (table)"].append(hit((count.low, count.high), int(np.sum(table["region"] == level))))
    return hits


def described(rows: int, sigma: float, rng: np.random.Generator) -> Hits:
    table = people(rows, rng)
    found = describe(noisy(PEOPLE, encoded_people(table), sigma, rng))
    return of_description(found, table, np.ones(rows))


def described_adaptive(rows: int, epsilon: float, rng: np.random.Generator) -> Hits:
    """Counts and means from histograms, which no clip touches; deviations are those of the clipped rows."""
    table = people(rows, rng)
    entropy = SeededEntropy(int(rng.integers(2**62)))
    (release,) = publish_with(table, PEOPLE, epsilon=epsilon, delta=1e-6, entropy=entropy)
    lengths = encoded_people(table)
    if release.coordinates is not None:
        lengths = lengths @ np.asarray(release.coordinates.matrix).T
    weights = np.minimum(1.0, release.radius**2 / np.sum(lengths**2, axis=1))
    return of_description(describe(release), table, weights)


def logits(rows: int, sigma: float, rng: np.random.Generator) -> Hits:
    """Normal features of one covariance in both groups: the logit's coefficients are Σ⁻¹(m₁ − m₀)."""
    y = rng.random(rows) < 0.3
    x, w = rng.normal(size=(2, rows))
    x, w = x + 0.8 * y, 0.5 * x + 0.8 * w - 0.4 * y
    spread = np.array([[1.0, 0.5], [0.5, 0.89]])
    slopes = np.linalg.solve(spread, [0.8, -0.4])
    middle = np.array([0.4, -0.2])
    truth = {"(intercept)": np.log(0.3 / 0.7) - slopes @ middle, "x": slopes[0], "w": slopes[1]}
    return _of_link("logit", truth, x, w, y, sigma, rng)


def probits(rows: int, sigma: float, rng: np.random.Generator) -> Hits:
    x, e = rng.normal(size=(2, rows))
    w = 0.5 * x + 0.8 * rng.normal(size=rows)
    y = -0.6 + 0.5 * x - 0.3 * w + e > 0
    return _of_link("probit", {"(intercept)": -0.6, "x": 0.5, "w": -0.3}, x, w, y, sigma, rng)


def _of_link(
    link: str,
    truth: dict[str, float],
    x: Array,
    w: Array,
    y: npt.NDArray[np.bool_],
    sigma: float,
    rng: np.random.Generator,
) -> Hits:
    encoded = np.column_stack([np.ones(len(x)), x / 5, w / 5, np.where(y, 1.0, -1.0)])
    try:
        found = discriminant(noisy(GROUPS, encoded, sigma, rng), "y", link=link)
    except AnalysisError:
        return {f"{link} coefficient": [None] * 3}
    ends = found.conf_int()
    return {f"{link} coefficient": [hit(ends[name], value) for name, value in truth.items()]}


def clinics(rows: int, sigma: float, rng: np.random.Generator) -> Hits:
    treated, after = rng.random(rows) < 0.4, rng.random(rows) < 0.5
    city = rng.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2])
    x = np.clip(rng.normal(size=rows) + 0.5 * (city == "b"), -4, 4)
    y = 1.0 + 0.7 * treated - 0.5 * after + 2.0 * treated * after + 0.6 * x + 1.5 * (city == "c")
    y = y + rng.normal(0, 2.0, rows)
    t, a = np.where(treated, 1.0, -1.0), np.where(after, 1.0, -1.0)
    levels = [city == level for level in "abc"]
    encoded = np.column_stack([np.ones(rows), t, a, x / 4, (y - 2) / 14, *levels, t * a]).astype(np.float64)
    moments = noisy(CLINICS, encoded, sigma, rng)
    hits: Hits = {}
    for name, found, truth in (
        ("difference in differences", did(moments, "y", "treated", "after", ["x", "city"]), 2.0),
        (
            "slope within groups",
            within(moments, "y", ["x", "treated*after", "treated", "after"], "city"),
            0.6,
        ),
    ):
        if found.inference.refusal is not None:
            hits[name] = [None]
        else:
            hits[name] = [hit(found.conf_int()["x" if truth == 0.6 else found.names[0]], truth)]
    return hits


MADE: tuple[
    tuple[Callable[[int, float, np.random.Generator], Hits], tuple[tuple[int, float], ...], str], ...
] = (
    (described, CELLS, "σ = {:g}"),
    (described_adaptive, ((2_000, 1.0), (20_000, 1.0)), "adaptive, ε = {:g}"),
    (logits, CELLS, "σ = {:g}"),
    (probits, CELLS, "σ = {:g}"),
    (clinics, CELLS, "σ = {:g}"),
)


def cells(runs: int, most_rows: int = 20_000) -> Iterator[tuple[str, str, str, list[bool | None]]]:
    """Answer, rows, noise, and whether each interval covers; None where it was refused."""
    for number, (make, sizes, told) in enumerate(MADE):
        for rows, noise in (size for size in sizes if size[0] <= most_rows):
            every: Hits = defaultdict(list)
            for run in range(runs):
                rng = np.random.default_rng([number, rows, int(noise), run])
                for name, hits in make(rows, noise, rng).items():
                    every[name] += hits
            for name, hits in every.items():
                yield name, f"{rows:,}", told.format(noise), hits


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=500)
    runs = parser.parse_args().runs
    warnings.simplefilter("ignore")
    print("# Coverage of descriptions, discriminant analysis and effects\n")
    print(f"95% intervals, {runs} runs a cell, `python -m benchmarks.answers_coverage`. Of rows, counts and")
    print("deviations the interval is for the table; of the rest for the population.\n")
    print("| answer | rows | noise | cover | given | refused |")
    print("|---|---|---|---|---|---|")
    pooled: list[bool] = []
    for name, rows, noise, hits in cells(runs):
        given = [found for found in hits if found is not None]
        pooled += given
        share = f"{100 * np.mean(given):.1f}%" if given else "–"
        print(
            f"| {name} | {rows} | {noise} | {share} | {len(given):,} | {len(hits) - len(given)} |", flush=True
        )
    low = float(0.93 + ndtri(0.01) * np.sqrt(0.93 * 0.07 / runs))
    print(f"\nPooled over all cells: {100 * np.mean(pooled):.1f}% of {len(pooled):,}. A cell would be")
    print(f"significantly below 93% (one-sided, 1%, runs taken as one each) from {100 * low:.1f}% down.")


if __name__ == "__main__":
    main()

"""Coverage and length of nominal 95% intervals: n × ε × d × mechanism × kind, by simulation.

    python benchmarks/interval_coverage.py [--tables 600] [--draws 400]      # about ten minutes on one core

Each simulated table serves all ε and both mechanisms. Its own least-squares fit is the truth for
`kind="table"`, the generating coefficients are the truth for `kind="population"`. A cell passes when
coverage, averaged over its coefficients, lies between 93% and 97%; intervals that the library refuses to give
are counted apart. The bootstrap's length is compared on a few releases of each cell. Writes
results/coverage.md.
"""

from __future__ import annotations

import argparse
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpgram.analysis.bootstrap import bootstrap
from dpgram.analysis.design import Design, build_design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.quality import r_squared, residual_variance
from dpgram.errors import AnalysisError
from dpgram.noise import MatrixLaplace, SymmetricGaussian
from dpgram.privacy.curves.calibrate import gaussian_sigma
from dpgram.schema import Schema, boolean, categorical, numeric

Array = npt.NDArray[np.float64]
Mechanism = Literal["gaussian", "matrix-laplace"]
Key = tuple[str, int, float, Mechanism, Kind]

ROWS = (2_000, 20_000, 200_000)
EPSILONS = (0.3, 1.0, 3.0)
WIDTHS = (5, 20)
DELTA = 1e-6
KINDS: tuple[Kind, ...] = ("population", "table")
MECHANISMS: tuple[Mechanism, ...] = ("gaussian", "matrix-laplace")
RESULT = Path(__file__).parent / "results" / "coverage.md"
SEED = 20260101
BOOTSTRAPPED = 8
"""Releases of each cell whose bootstrap intervals are compared in length."""


class World(ABC):
    """A population with known regression coefficients and R²."""

    name: str
    rows: int
    schema: Schema
    truth: Array
    """Coefficients in original units, in the order of the design's terms."""
    explained: float
    """R²; NaN where it has no closed form."""
    error: float
    """Standard deviation of the errors."""

    @abstractmethod
    def table(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Encoded rows, the design in original units, and the target."""


class Uniform(World):
    """Uniform features with a common factor (pairwise correlation 0.16), linear target, normal errors."""

    def __init__(self, rows: int, features: int) -> None:
        self.name, self.rows, self.error = f"d={features}", rows, 0.15
        self.schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(features)), numeric("y", -1, 1))
        slopes = np.resize([1.0, -0.7, 0.4, 0.0, -0.2], features)
        self.slopes = slopes * 0.35 / np.linalg.norm(slopes)
        self.truth = np.concatenate([[0.1], self.slopes])
        signal = (0.49 * self.slopes @ self.slopes + 0.09 * self.slopes.sum() ** 2) / 3
        self.explained = float(signal / (signal + self.error**2))

    def table(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        common = rng.uniform(-1, 1, (self.rows, 1))
        x = 0.7 * rng.uniform(-1, 1, (self.rows, len(self.slopes))) + 0.3 * common
        y = 0.1 + x @ self.slopes + rng.normal(0, self.error, self.rows)
        design = np.column_stack([np.ones(self.rows), x])
        return np.column_stack([design, y]), design, y


class Mixed(World):
    """A weighted number, a yes/no column and two categorical columns, in original units far from zero."""

    def __init__(self, rows: int) -> None:
        self.name, self.rows, self.error = "mixed", rows, 3_000.0
        self.schema = Schema(
            numeric("age", 18, 90, weight=0.8),
            boolean("active"),
            categorical("smoker", ["no", "yes", "former"]),
            categorical("region", ["east", "north", "south", "west"], weight=1.2),
            numeric("charges", -15_000, 35_000),
        )
        self.truth = np.array([1_000.0, 120.0, -1_500.0, 6_000.0, 2_000.0, 0.0, 800.0, -400.0])
        self.explained = math.nan

    def table(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        age, active = rng.uniform(18, 90, self.rows), rng.random(self.rows) < 0.4
        smoker = rng.choice(3, self.rows, p=[0.5, 0.3, 0.2])
        region = rng.choice(4, self.rows)
        levels = [smoker == 1, smoker == 2, region == 1, region == 2, region == 3]
        design = np.column_stack([np.ones(self.rows), age, active, *levels]).astype(np.float64)
        y = design @ self.truth + rng.normal(0, self.error, self.rows)
        encoded = [
            np.ones(self.rows),
            0.8 * (age - 54) / 36,
            np.where(active, 1.0, -1.0),
            *(smoker == level for level in range(3)),
            *(1.2 * (region == level) for level in range(4)),
            (y - 10_000) / 25_000,
        ]
        return np.column_stack(encoded).astype(np.float64), design, y


def noise_of(schema: Schema, mechanism: Mechanism, epsilon: float) -> EncodedNoise:
    """The calibrated law in encoded units (add/remove), where a row's squared norm is at most R²."""
    squared = schema.max_norm_squared
    if mechanism == "gaussian":
        sigma = gaussian_sigma(epsilon=epsilon, delta=DELTA, sensitivity=squared)
        return EncodedNoise.of(SymmetricGaussian(sigma=sigma))
    return EncodedNoise.of(MatrixLaplace(theta=epsilon / squared, width=schema.width))


@dataclass(kw_only=True)
class Cell:
    """Tallies of one combination."""

    hits: list[Array] = field(default_factory=list)
    """1 or 0 for each coefficient, NaN for those without an interval."""
    explained_hits: list[bool] = field(default_factory=list)
    """Of R², where it is given."""
    variance_hits: list[bool] = field(default_factory=list)
    inflations: list[float] = field(default_factory=list)
    warned: int = 0
    refused: int = 0
    ratios: list[float] = field(default_factory=list)
    """Mean length of the closed form over the bootstrap's."""

    @property
    def given(self) -> int:
        return len(self.hits)

    @property
    def share(self) -> float:
        """Of all coefficients of all releases, how many had an interval."""
        share = 1.0 - float(np.mean(np.isnan(self.hits))) if self.hits else 0.0
        return share * self.given / (self.given + self.refused)

    @property
    def coverage(self) -> float:
        return float(np.nanmean(self.hits)) if self.hits else math.nan

    @property
    def verdict(self) -> str:
        if self.refused > 9 * self.given:
            return "refused"
        if 0.93 <= self.coverage <= 0.97:
            return "ok"
        return "warned" if self.warned > self.given / 2 else "FAILS"


def simulate(
    world: World, *, epsilons: Iterable[float], tables: int, draws: int, seed: int
) -> dict[Key, Cell]:
    """All ε, mechanisms and kinds on the same tables."""
    rng = np.random.default_rng(seed)
    laws = {(e, m): noise_of(world.schema, m, e) for e in epsilons for m in MECHANISMS}
    cells: dict[Key, Cell] = {(world.name, world.rows, e, m, k): Cell() for e, m in laws for k in KINDS}
    radius = world.schema.max_norm_squared**0.5
    target = world.schema.names[-1]
    for _ in range(tables):
        rows, design_matrix, y = world.table(rng)
        gram = rows.T @ rows
        of_table = np.linalg.lstsq(design_matrix, y, rcond=None)[0]
        residual = float(np.sum((y - design_matrix @ of_table) ** 2))
        explained = 1 - residual / float(np.sum((y - y.mean()) ** 2))
        truths = {
            "population": (world.truth, world.explained, world.error**2),
            "table": (of_table, explained, residual / (len(y) - len(of_table))),
        }
        for (epsilon, mechanism), noise in laws.items():
            moments = Moments(gram=noise.redraw(gram, rng), schema=world.schema, noise=noise, radius=radius)
            groups = [column for column in moments.schema.columns if column.group_levels]
            # The first levels, as in the simulated truth; by default it would be the most frequent ones.
            first = {column.name: column.group_levels[0] for column in groups}
            design = build_design(moments, target, reference=first)
            for kind in KINDS:
                cell = cells[world.name, world.rows, epsilon, mechanism, kind]
                _tally(cell, moments, design, kind, *truths[kind])
                if draws and len(cell.ratios) < BOOTSTRAPPED:
                    _compare(cell, moments, design, kind, draws)
    return cells


def _tally(
    cell: Cell, moments: Moments, design: Design, kind: Kind, truth: Array, explained: float, variance: float
) -> None:
    found = infer(moments, design, kind)
    cell.inflations.append(found.inflation)
    if found.refusal is not None:
        cell.refused += 1
        return
    cell.warned += bool(found.cautions)
    ends = found.conf_int()
    hits = (ends[:, 0] <= truth) & (truth <= ends[:, 1])
    cell.hits.append(np.where(found.trusted, hits, np.nan))
    if kind == "table":  # for the population it has none
        least, most = residual_variance(moments, design, kind).conf_int()
        cell.variance_hits.append(least <= variance <= most)
    try:
        low, high = r_squared(moments, design, kind).conf_int()
    except AnalysisError:
        return
    if not math.isnan(explained):
        cell.explained_hits.append(low <= explained <= high)


def _compare(cell: Cell, moments: Moments, design: Design, kind: Kind, draws: int) -> None:
    found = infer(moments, design, kind)
    if found.refusal is not None:
        return
    closed = np.diff(found.conf_int(), axis=1)[found.trusted]
    again = bootstrap(moments, design, draws=draws, kind=kind, seed=1)
    simulated = np.diff(again.conf_int(), axis=1)[found.trusted]
    finite = np.isfinite(closed) & np.isfinite(simulated)
    if finite.any():
        cell.ratios.append(float(np.mean(closed[finite] / simulated[finite])))


HEAD = """# Coverage of nominal 95% intervals

Made by `benchmarks/interval_coverage.py`: {tables} simulated tables a design and n; add/remove, δ = 10⁻⁶ for
`gaussian`, δ = 0 for `matrix-laplace`. Coverage is averaged over all coefficients, the intercept included;
its simulation error is about ±{error:.1f} points (one standard deviation, coefficients of one release taken
as independent). κ is the median noise inflation of the design: intervals come with a warning above 1.1 and
are refused, one by one or all together, where the noise hides too much (`analysis/trust.py`). "Length" is the
mean length of the closed form over that of the studentised parametric bootstrap, on the first eight releases
of a cell that have intervals. R² and s² (for the table; for the population it has none) are the coverages
of their own intervals; where R² is given for few releases only, these are the ones in which noise made the
target's variance look large, and their coverage means little. Designs: d uniform features on their public
range with a common factor; `mixed` has a weighted number, a yes/no column and two categorical columns.

| design | n | ε | mechanism | kind | κ | intervals given | coverage | length | R² | s² | verdict |
|---|---|---|---|---|---|---|---|---|---|---|---|
"""


def line(key: Key, cell: Cell) -> str:
    """One row of the Markdown table."""
    name, rows, epsilon, mechanism, kind = key
    return (
        f"| {name} | {rows:,} | {epsilon:g} | {mechanism} | {kind} | {np.median(cell.inflations):.3f} "
        f"| {cell.share:.0%} | {_percent(cell.hits)} "
        f"| {'' if not cell.ratios else f'{np.mean(cell.ratios):.3f}'} "
        f"| {_explained(cell)} | {_percent(cell.variance_hits)} | {cell.verdict} |"
    )


def _explained(cell: Cell) -> str:
    """With the share of releases that gave an R², where that is not nearly all."""
    share = len(cell.explained_hits) / max(cell.given + cell.refused, 1)
    told = _percent(cell.explained_hits)
    return f"{told} ({share:.0%} given)" if told and share < 0.9 else told


def _percent(hits: Sequence[object]) -> str:
    return f"{np.nanmean(hits):.1%}" if hits else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=600)
    parser.add_argument("--draws", type=int, default=400)
    options = parser.parse_args()
    worlds: list[World] = [Uniform(rows, features) for rows in ROWS for features in WIDTHS]
    worlds += [Mixed(rows) for rows in ROWS[:2]]
    lines: list[str] = []
    for world in worlds:
        start = time.perf_counter()
        cells = simulate(
            world, epsilons=EPSILONS, tables=options.tables, draws=options.draws, seed=SEED + world.rows
        )
        lines += [line(key, cell) for key, cell in cells.items()]
        print(f"{world.name} n={world.rows}: {time.perf_counter() - start:.0f} s", flush=True)
        print("\n".join(lines[-len(cells) :]), flush=True)
    head = HEAD.format(tables=options.tables, error=100 * math.sqrt(0.05 * 0.95 / (options.tables * 6)))
    RESULT.write_text(head + "\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

"""Do nominal 95% intervals of correlations cover, and does a level without rows stay out of the list?

A population of normal numbers, two yes/no columns that go together and a categorical column with a level of
60%, 30%, 8% and 2%, and one that nobody has. Correlations of the population are known in closed form. What is
measured: coverage by the kind of pair, how many correlations were left blank, and how often the level without
rows was among the ten strongest. Writes benchmarks/results/correlation-coverage.md.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import numpy.typing as npt
from benchmarks.interval_coverage import MECHANISMS, Mechanism, noise_of

from dpgram.analysis.association import correlations
from dpgram.analysis.estimand import KINDS, Kind
from dpgram.analysis.moments import Moments
from dpgram.schema import Schema, boolean, categorical, numeric

Array = npt.NDArray[np.float64]

MOSTLY_BLANK = 0.1
"""Of a group of which fewer were given, these are the ones whose noise happened to be large: no verdict."""
RESULT = Path(__file__).parent / "results" / "correlation-coverage.md"
ROWS = (2_000, 20_000)
EPSILONS = (0.3, 1.0, 5.0)
SHARES = (0.6, 0.3, 0.08, 0.02, 0.0)
EFFECTS = np.array([0.0, 0.1, 0.2, 0.4, 0.0])
EMPTY = "home=never"
SCHEMA = Schema(
    numeric("x1", -1, 1),
    numeric("x2", -1, 1),
    boolean("b"),
    boolean("c"),
    categorical("home", ["own", "rent", "kin", "rare", "never"]),
    numeric("y", -1, 1),
)
SPREAD, TOGETHER = 0.25, 0.5
"""Deviation of the numbers and the correlation of x1 and x2."""
YES, AGAIN = 0.3, 0.5
"""P(b), and how much likelier c is where b is true (else 0.2)."""
SLOPES, ERROR = (0.5, 0.2, 0.15), 0.12
"""Of x1, x2 and b in y, and the deviation of its errors."""


def truth() -> Array:
    """The population's correlation matrix of the encoded columns, by linear algebra."""
    shares = np.array(SHARES)
    basic = np.zeros((8, 8))
    basic[:2, :2] = SPREAD**2 * np.array([[1.0, TOGETHER], [TOGETHER, 1.0]])
    basic[2, 2] = YES * (1 - YES)
    basic[3:, 3:] = np.diag(shares) - np.outer(shares, shares)
    c_of = np.zeros(8)
    c_of[2] = AGAIN
    y_of = np.concatenate([SLOPES, EFFECTS])
    chosen = np.eye(8)
    rows = np.vstack([chosen[:3], c_of, chosen[3:], y_of])
    covariance = rows @ basic @ rows.T
    some = 0.2 + AGAIN * YES
    covariance[3, 3] = some * (1 - some)
    covariance[-1, -1] += ERROR**2
    deviation = np.sqrt(np.diagonal(covariance))
    with np.errstate(invalid="ignore"):
        return np.asarray(covariance / np.outer(deviation, deviation))


def table(rows: int, rng: np.random.Generator) -> Array:
    """Encoded rows."""
    x1 = rng.normal(0, SPREAD, rows)
    x2 = TOGETHER * x1 + math.sqrt(1 - TOGETHER**2) * rng.normal(0, SPREAD, rows)
    b = rng.random(rows) < YES
    c = rng.random(rows) < 0.2 + AGAIN * b
    home = rng.choice(5, rows, p=SHARES)
    y = SLOPES[0] * x1 + SLOPES[1] * x2 + SLOPES[2] * b + EFFECTS[home] + rng.normal(0, ERROR, rows) - 0.2
    levels = [home == level for level in range(5)]
    columns = [np.ones(rows), x1, x2, np.where(b, 1, -1), np.where(c, 1, -1), *levels, y]
    return np.column_stack(columns).astype(np.float64)


def group_of(left: str, right: str) -> str:
    """The kind of pair a coverage is told for."""
    if "rare" in left + right:
        return "with the 2% level"
    two_valued = sum(name[0] in "bch" for name in (left, right))
    return ("two numbers", "number and two-valued", "both two-valued")[two_valued]


@dataclass(kw_only=True)
class Cell:
    """Tallies of one combination."""

    hits: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    asked: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    listed: int = 0
    """Releases in which the level without rows was among the ten strongest."""
    releases: int = 0

    def coverage(self, group: str) -> float:
        return float(np.mean(self.hits[group])) if self.hits[group] else math.nan


Key = tuple[int, float, Mechanism, Kind]


def simulate(*, rows: int, epsilons: Iterable[float], tables: int, seed: int) -> dict[Key, Cell]:
    """All ε, mechanisms and kinds on the same tables."""
    rng = np.random.default_rng(seed)
    laws = {(e, m): noise_of(SCHEMA, m, e) for e in epsilons for m in MECHANISMS}
    cells: dict[Key, Cell] = {(rows, e, m, k): Cell() for e, m in laws for k in KINDS}
    population = truth()
    for _ in range(tables):
        encoded = table(rows, rng)
        with np.errstate(invalid="ignore", divide="ignore"):
            of_table = np.corrcoef(encoded[:, 1:].T)
        gram = encoded.T @ encoded
        for (epsilon, mechanism), noise in laws.items():
            moments = Moments(
                gram=noise.redraw(gram, rng),
                schema=SCHEMA,
                noise=noise,
                radius=SCHEMA.max_norm_squared**0.5,
            )
            for kind, wanted in (("population", population), ("table", of_table)):
                _tally(cells[rows, epsilon, mechanism, kind], moments, kind, wanted)
    return cells


def _tally(cell: Cell, moments: Moments, kind: Kind, wanted: Array) -> None:
    found = correlations(moments, kind=kind)
    low, high = found.conf_int()
    cell.releases += 1
    cell.listed += any(EMPTY in (pair.left, pair.right) for pair in found.strongest())
    for i, left in enumerate(found.names):
        for j, right in enumerate(found.names[:i]):
            if EMPTY in (left, right) or found.sources[i] == found.sources[j]:
                continue
            group = group_of(left, right)
            cell.asked[group] += 1
            if not np.isnan(found.estimate[i, j]):
                cell.hits[group].append(bool(low[i, j] <= wanted[i, j] <= high[i, j]))


GROUPS = ("two numbers", "number and two-valued", "both two-valued", "with the 2% level")

HEAD = """# Coverage of nominal 95% intervals of correlations

Made by `benchmarks/correlation_coverage.py`: {tables} simulated tables for each n, every cell of the table
below; add/remove, δ = 10⁻⁶ for `gaussian`, δ = 0 for `matrix-laplace`. In brackets the share of correlations
that were given; the others are blank, because the variance of a column does not stand clear of the noise.
"Listed" counts the releases in which a level that no row has was among the ten strongest correlations.
Pooled over all cells: {pooled:.1%} of {given:,} intervals cover, {share:.0%} were given. Cells significantly
below 93% (one-sided, 1%, pairs of one release taken as independent; groups of which less than a tenth was
given are left out, for what passed there had a lucky noise): {below}.

| n | ε | mechanism | kind | {groups} | listed |
|---|---|---|---|{bars}---|
"""


def below(cell: Cell, group: str) -> bool:
    """Whether the coverage is significantly below 93%."""
    hits = cell.hits[group]
    return len(hits) > MOSTLY_BLANK * cell.asked[group] and float(np.mean(hits)) < 0.93 - 2.33 * math.sqrt(
        0.93 * 0.07 / len(hits)
    )


def line(key: Key, cell: Cell) -> str:
    """One row of the Markdown table."""
    rows, epsilon, mechanism, kind = key
    told = []
    for group in GROUPS:
        hits = cell.hits[group]
        share = len(hits) / cell.asked[group]
        told.append("all blank" if not hits else f"{np.mean(hits):.1%} ({share:.0%})")
    return f"| {rows:,} | {epsilon:g} | {mechanism} | {kind} | {' | '.join(told)} | {cell.listed} |"


def report(cells: Mapping[Key, Cell], tables: int) -> str:
    """The whole page."""
    hits = [hit for cell in cells.values() for group in GROUPS for hit in cell.hits[group]]
    asked = sum(sum(cell.asked.values()) for cell in cells.values())
    fails = [f"{key} {group}" for key, cell in cells.items() for group in GROUPS if below(cell, group)]
    head = HEAD.format(
        tables=tables,
        pooled=np.mean(hits),
        given=len(hits),
        share=len(hits) / asked,
        below="; ".join(fails) or "none",
        groups=" | ".join(GROUPS),
        bars="---|" * len(GROUPS),
    )
    return head + "\n".join(line(key, cell) for key, cell in cells.items()) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=1_000)
    options = parser.parse_args()
    cells: dict[Key, Cell] = {}
    for rows in ROWS:
        cells |= simulate(rows=rows, epsilons=EPSILONS, tables=options.tables, seed=20260201 + rows)
        print(report(cells, options.tables), flush=True)
    RESULT.write_text(report(cells, options.tables), encoding="utf-8")


if __name__ == "__main__":
    main()

"""Do nominal 95% intervals of instrumental variables cover, with strong and with weak instruments?

y depends on x with a coefficient of 0.5, and the errors of both go together (correlation 0.6), so that least
squares is wrong. One or two instruments move x, strongly or so weakly that the first-stage F is about 3 at
any n; a control moves everything. Measured: the coverage of 2SLS and LIML ± quantile times error, of the
Anderson–Rubin set, how many of the former were refused because the noise hides the first stage, and how many
of the latter have no finite ends. Writes benchmarks/results/iv-coverage.md.
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import numpy.typing as npt
from benchmarks.interval_coverage import MECHANISMS, Mechanism, noise_of

from dpgram.analysis.iv import METHODS, iv
from dpgram.analysis.moments import Moments
from dpgram.schema import Schema, numeric

Array = npt.NDArray[np.float64]
Strength = Literal["strong", "weak"]
Key = tuple[int, float, Mechanism, Strength, int]

RESULT = Path(__file__).parent / "results" / "iv-coverage.md"
ROWS = (2_000, 20_000)
EPSILONS = (0.5, 1.0, 3.0)
STRENGTHS: tuple[Strength, ...] = ("strong", "weak")
SCHEMA = Schema(*(numeric(name, -1, 1) for name in ("z1", "z2", "w", "x", "y")))
COEFFICIENT, TOGETHER, ERROR = 0.5, 0.6, 0.2
ANSWERS = (*METHODS, "anderson-rubin")
MOSTLY_REFUSED = 0.1
"""Of a cell of which fewer were given, these are the ones whose noise happened to help: no verdict."""


def table(rows: int, strength: Strength, rng: np.random.Generator) -> Array:
    """Encoded rows: constant, z1, z2, w, x, y."""
    z1, z2, w = rng.uniform(-1, 1, (3, rows))
    one = rng.normal(0, ERROR, rows)
    other = TOGETHER * one + math.sqrt(1 - TOGETHER**2) * rng.normal(0, ERROR, rows)
    # F is about n·slope²·(1 + ¼)/3/ERROR² for two instruments.
    slope = 0.4 if strength == "strong" else 3.0 * ERROR / math.sqrt(rows)
    x = slope * (z1 + 0.5 * z2) + 0.15 * w + one
    y = COEFFICIENT * x + 0.1 * w + other
    return np.column_stack([np.ones(rows), z1, z2, w, x, y])


@dataclass(kw_only=True)
class Cell:
    """Tallies of one combination."""

    releases: int = 0
    hits: dict[str, list[bool]] = field(default_factory=lambda: defaultdict(list))
    unbounded: int = 0
    strengths: list[float] = field(default_factory=list)

    def below(self, answer: str) -> bool:
        """Whether the coverage is significantly below 93% (one-sided, 1%)."""
        hits = self.hits[answer]
        if len(hits) <= MOSTLY_REFUSED * self.releases:
            return False
        return float(np.mean(hits)) < 0.93 - 2.33 * math.sqrt(0.93 * 0.07 / len(hits))


def simulate(
    *, rows: int, epsilons: Iterable[float], strengths: Iterable[Strength], tables: int, seed: int
) -> dict[Key, Cell]:
    """All ε, mechanisms and numbers of instruments on the same tables."""
    rng = np.random.default_rng(seed)
    laws = {(e, m): noise_of(SCHEMA, m, e) for e in epsilons for m in MECHANISMS}
    cells: dict[Key, Cell] = defaultdict(Cell)
    for strength in strengths:
        for _ in range(tables):
            encoded = table(rows, strength, rng)
            gram = encoded.T @ encoded
            for (epsilon, mechanism), noise in laws.items():
                moments = Moments(
                    gram=noise.redraw(gram, rng),
                    schema=SCHEMA,
                    noise=noise,
                    radius=SCHEMA.max_norm_squared**0.5,
                )
                for count in (1, 2):
                    _tally(cells[rows, epsilon, mechanism, strength, count], moments, count)
    return dict(cells)


def _tally(cell: Cell, moments: Moments, count: int) -> None:
    cell.releases += 1
    for method in METHODS:
        found = iv(moments, "y", "x", ["z1", "z2"][:count], ["w"], method=method)
        if found.refusal is None:
            low, high = found.conf_int()["x"]
            cell.hits[method].append(low <= COEFFICIENT <= high)
    cell.strengths.append(found.first_stage[0].f_statistic)
    if found.test.refusal is None:
        kept = found.anderson_rubin()
        cell.hits["anderson-rubin"].append(COEFFICIENT in kept)
        cell.unbounded += not kept.bounded


HEAD = """# Coverage of nominal 95% intervals of instrumental variables

Made by `benchmarks/iv_coverage.py`: {tables} simulated tables a cell, add/remove, δ = 10⁻⁶ for `gaussian`,
δ = 0 for `matrix-laplace`; n rows, one or two instruments, an endogenous column whose errors correlate with
those of the target by 0.6, a control. F is the median first-stage F, which has the sampling error and the
noise in it. In brackets the share that was given: intervals of 2SLS and LIML are refused where the first
stage does not stand clear of the noise, those of LIML also where the variance of the errors does not. "No
ends" is the share of Anderson–Rubin sets that do not have two finite ends, which is what they must be where
instruments say little. With weak instruments 2SLS and LIML intervals do not cover even without any noise: a
caution says so, and the set is the one to use.
Anderson–Rubin sets, all cells: {ar:.1%} cover. 2SLS and LIML with strong instruments, all cells: {wald:.1%}.
Cells of these significantly below 93% (one-sided, 1%; without those of which less than a tenth was given):
{below}.

| n | ε | mechanism | instruments | F | 2SLS | LIML | Anderson–Rubin | no ends |
|---|---|---|---|---|---|---|---|---|
"""


def line(key: Key, cell: Cell) -> str:
    """One row of the Markdown table."""
    rows, epsilon, mechanism, strength, count = key
    told = []
    for answer in ANSWERS:
        hits = cell.hits[answer]
        share = len(hits) / cell.releases
        told.append(f"{np.mean(hits):.1%} ({share:.0%})" if hits else "refused")
    return (
        f"| {rows:,} | {epsilon:g} | {mechanism} | {count} {strength} | {np.median(cell.strengths):.3g} "
        f"| {' | '.join(told)} | {cell.unbounded / cell.releases:.0%} |"
    )


def promised(key: Key) -> tuple[str, ...]:
    """Which answers must cover: with weak instruments the Anderson–Rubin set alone."""
    return ANSWERS if key[3] == "strong" else ("anderson-rubin",)


def report(cells: Mapping[Key, Cell], tables: int) -> str:
    """The whole page."""
    sets = [hit for cell in cells.values() for hit in cell.hits["anderson-rubin"]]
    wald = [hit for key, cell in cells.items() if key[3] == "strong" for m in METHODS for hit in cell.hits[m]]
    fails = [
        f"{key} {answer}" for key, cell in cells.items() for answer in promised(key) if cell.below(answer)
    ]
    head = HEAD.format(
        tables=tables,
        ar=np.mean(sets) if sets else math.nan,
        wald=np.mean(wald) if wald else math.nan,
        below="; ".join(fails) or "none",
    )
    return head + "\n".join(line(key, cell) for key, cell in sorted(cells.items())) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tables", type=int, default=600)
    options = parser.parse_args()
    cells: dict[Key, Cell] = {}
    for rows in ROWS:
        cells |= simulate(
            rows=rows, epsilons=EPSILONS, strengths=STRENGTHS, tables=options.tables, seed=20260301 + rows
        )
        print(report(cells, options.tables), flush=True)
    RESULT.write_text(report(cells, options.tables), encoding="utf-8")


if __name__ == "__main__":
    main()

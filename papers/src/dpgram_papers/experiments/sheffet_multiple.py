"""Sheffet, Figures 5 and 6: twenty targets in one Gram matrix, m of them as features; and the lasso.

a = [x₁ … x₂₀, y₁ … y₂₀], ε = 0.1, B = √(2.5d) by the rule of §3.1 (§6.2 names none): it clips 84% of rows.
The label is y₂₀, its |β| brought to the paper's 3.2; a good answer is β on x and 0 on y₁ … y_m.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from dpgram.analysis.sparse import elastic_net
from dpgram.core.noise import SeededEntropy
from dpgram.privacy.adjacency import ReplaceOne
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.experiments.claims import Verdict, verdict_on, verdict_on_parts
from dpgram_papers.experiments.clipped_rows import ManyTargets
from dpgram_papers.experiments.comparisons import Comparison
from dpgram_papers.experiments.drawing import Line, Panel, PaperFigure, ours
from dpgram_papers.experiments.grid import Grid, GridResults, Key, generator_of
from dpgram_papers.experiments.plain_release import drawn, fitted, law_of
from dpgram_papers.sheffet import PrintedWishart
from dpgram_papers.sheffet_adaptive_degrees import PrintedAdaptiveDegrees
from dpgram_papers.variant import Variant

Array: TypeAlias = npt.NDArray[np.float64]

FEATURES: Final = 20
WIDTH: Final = 2 * FEATURES
EPSILON: Final = 0.1
DELTA: Final = math.exp(-9.0)
LENGTH: Final = 3.2
SIGMA: Final = 0.5
BOUND: Final = math.sqrt(2.5 * WIDTH)
OURS: Final = "dpgram"
NAMES: Final = (
    "Analyze Gauss", "Analyze Gauss, scaled", "Algorithm 2", "Algorithm 5", "Algorithm 3",
    "Algorithm 3, shifted",
)  # fmt: skip
EQUAL: Final = "Analyze Gauss, scaled, replace-one"
_STYLES: Final = (
    ("black", "s"),
    ("black", "o"),
    ("blue", "s"),
    ("blue", "o"),
    ("magenta", "s"),
    ("magenta", "o"),
)
LASSO: Final = ("lasso x, non-private", "lasso y, non-private", "lasso x, private", "lasso y, private")
"""Coefficients that a lasso sets to zero: parts of the first 20 and of the m redundant ones."""
SPECIFIC: Final = 0.25
"""By how much more of the redundant features than of the others must be zero."""
PENALTIES: Final = (0.1, 0.03, 0.01, 0.003, 0.001)
"""The lasso's penalty as a part of the least one that makes every coefficient zero. The text does not say
which it took; of these the one counts that leaves out the redundant features most specifically."""
ZERO: Final = 1e-8


@dataclass(frozen=True)
class Setting:
    """How much of the paper's grid to run."""

    exponents: tuple[int, ...]
    redundant: tuple[int, ...]
    runs: int
    direct: int


SETTINGS: Final[Mapping[str, Setting]] = {
    "tiny": Setting((16, 22), (0, 5), 3, 12),
    "quick": Setting((12, 14, 16, 18, 20, 22, 24, 26, 27), (0, 1, 5, 19), 5, 14),
    "full": Setting(tuple(range(12, 28)), (0, 1, 2, 5, 10, 19), 15, 20),
}


def grid(size: str) -> Grid:
    """Cells with m innermost: one table and one draw of each method for all of them, as in the paper."""
    setting = SETTINGS[size]
    cells = tuple(
        (exponent, run, setting.direct, m)
        for exponent in setting.exponents
        for run in range(setting.runs)
        for m in setting.redundant
    )
    columns = ("non-private", *NAMES, EQUAL, OURS, *LASSO)
    return Grid(
        keys=("log2_rows", "run", "log2_direct", "m"),
        columns=columns,
        cells=cells,
        measure=measure,
        together=len(setting.redundant),
    )


@lru_cache(maxsize=1)
def design(seed: int) -> ManyTargets:
    """One set of slopes for the whole experiment."""
    betas = generator_of(seed, "sheffet betas").uniform(-1.0, 1.0, (FEATURES, FEATURES))
    betas[-1] *= LENGTH / float(np.linalg.norm(betas[-1]))
    return ManyTargets(bound=BOUND, betas=tuple(tuple(row) for row in betas.tolist()), sigma=SIGMA)


@lru_cache(maxsize=1)
def releases(seed: int, exponent: int, run: int, direct: int) -> Mapping[str, Array]:
    """One matrix of each method, in units of B²."""
    generator = generator_of(seed, "sheffet many rows", exponent, run)
    gram = design(seed).gram(1 << exponent, generator, direct=1 << direct)
    claimed = Guarantee(EPSILON, DELTA)
    variants: dict[str, Variant] = {
        "Analyze Gauss": AnalyzeGauss(claimed=claimed),
        "Analyze Gauss, scaled": AnalyzeGauss(claimed=claimed, repair="scaled"),
        "Algorithm 2": PrintedAdaptiveDegrees(claimed=claimed, least=2 * WIDTH),
        "Algorithm 5": PrintedAdaptiveDegrees(claimed=claimed, least=2 * WIDTH, algorithm=5),
        "Algorithm 3": PrintedWishart(claimed=claimed, width=WIDTH),
        "Algorithm 3, shifted": PrintedWishart(claimed=claimed, width=WIDTH, repair="scaled"),
    }
    entropy = SeededEntropy(np.random.SeedSequence([seed, exponent, run]))
    found = {name: variant.draw(gram, entropy) for name, variant in variants.items()}
    # √2·B² is the sensitivity of a replaced row: the same as rows half as long in squares.
    shrunk = variants["Analyze Gauss, scaled"].draw(gram * math.sqrt(0.5), entropy)
    found[EQUAL] = shrunk * math.sqrt(2.0)
    law = law_of(claimed, ReplaceOne(), WIDTH)
    found[OURS] = drawn(gram, law, entropy.generator())
    return {"non-private": gram} | found


def measure(cell: Key, seed: int) -> Mapping[str, float]:
    """|β̂ − (β, 0)| of every method, and what a lasso leaves out."""
    exponent, run, direct, m = (int(part) for part in cell)
    matrices = releases(seed, exponent, run, direct)
    features = list(range(FEATURES + m))
    truth = np.concatenate([np.array(design(seed).betas[-1]), np.zeros(m)])
    answers = {name: _solved(matrix, features) for name, matrix in matrices.items() if name != OURS}
    law = law_of(Guarantee(EPSILON, DELTA), ReplaceOne(), WIDTH)
    answers[OURS] = fitted(matrices[OURS], law, WIDTH - 1, features, bound=BOUND)
    errors = {name: float(np.linalg.norm(answer - truth)) for name, answer in answers.items()}
    for label, name in (("non-private", "non-private"), ("private", "Analyze Gauss, scaled")):
        errors[f"lasso x, {label}"], errors[f"lasso y, {label}"] = _left_out(matrices[name], features)
    return errors


def _solved(matrix: Array, features: Sequence[int]) -> Array:
    return np.asarray(np.linalg.solve(matrix[np.ix_(features, features)], matrix[features, -1]))


def _left_out(matrix: Array, features: Sequence[int]) -> tuple[float, float]:
    """Parts of the first 20 and of the redundant features that the lasso sets to zero."""
    if len(features) == FEATURES:
        return math.nan, math.nan
    right = matrix[features, -1]
    values, vectors = np.linalg.eigh(matrix[np.ix_(features, features)])
    held = (vectors * np.maximum(values, 0.0)) @ vectors.T
    found = []
    for part in PENALTIES:
        theta = elastic_net(held, right, rows=1.0, alpha=part * float(np.abs(right).max()), l1_ratio=1.0)
        zero = np.abs(theta) < ZERO
        found.append((float(zero[:FEATURES].mean()), float(zero[FEATURES:].mean())))
    return max(found, key=lambda pair: pair[1] - pair[0])


def paper_figures(found: GridResults) -> Mapping[str, PaperFigure]:
    """Means and standard deviations, one panel for each m."""
    x = np.array([float(value) for value in found.axis("log2_rows")])
    made = {}
    for number, what, of in (("5", "mean", found.series), ("6", "standard deviation", found.deviations)):
        panels = []
        for m in found.axis("m"):
            lines = [
                Line(label=name, x=x, y=of(name, "log2_rows", m=m), colour=colour, marker=marker)
                for name, (colour, marker) in zip(NAMES, _STYLES, strict=True)
            ]
            lines.append(ours("dpgram, one plain matrix", x, of(OURS, "log2_rows", m=m)))
            panels.append(
                Panel(
                    title=f"m = {m}",
                    lines=tuple(lines),
                    x_label="log₂ n",
                    y_label=f"{what} of |β̂ − β|",
                    y_range=(0.0, 1.5 * LENGTH) if number == "5" else (0.0, 2.0),
                )
            )
        made[number] = PaperFigure(
            title=f"Sheffet, Figure {number}: multiple regressions, ε = {EPSILON}",
            panels=tuple(panels),
            columns=3,
        )
    return made


def verdicts(found: GridResults) -> list[Verdict]:
    """What §6.2 says."""
    exponents = [int(e) for e in found.axis("log2_rows")]
    plain = {name: found.series(name, "log2_rows", m=0) for name in NAMES}
    gauss = np.minimum(plain["Analyze Gauss"], plain["Analyze Gauss, scaled"])
    wins = gauss <= 1.05 * np.min([plain[name] for name in NAMES], axis=0)
    start = next((n for i, n in enumerate(exponents) if wins[i:].all()), None)
    result = [
        verdict_on(
            "§6.2, Figure 5",
            "without redundant features Analyze Gauss is the best of the six from n = 2¹⁶ on",
            start is not None and start <= 16,
            f"here {'never' if start is None else f'from 2^{start} on'}",
        )
    ]
    extra = [m for m in found.axis("m") if m != 0]
    if not extra:
        return result
    wild = [found.mean("Analyze Gauss", m=m, log2_rows=n) for m in extra for n in exponents]
    worse = [
        (m, n, name)
        for m in extra
        for n in exponents
        if n < 22
        for name in ("Algorithm 2", "Algorithm 5", "Algorithm 3, shifted")
        if found.mean("Analyze Gauss, scaled", m=m, log2_rows=n) <= found.mean(name, m=m, log2_rows=n)
    ]
    asked = 3 * len(extra) * sum(n < 22 for n in exponents)
    middle = exponents[len(exponents) // 2]
    rising = [min(found.mean(name, m=m, log2_rows=middle) for name in NAMES) for m in found.axis("m")]
    spread = [
        min(NAMES, key=lambda name: found.deviation(name, m=m, log2_rows=n)) for m in extra for n in exponents
    ]
    steady = spread.count("Analyze Gauss, scaled")
    large = exponents[-1]
    zeros = {
        name: np.array([np.nanmean([found.mean(name, m=m, log2_rows=n) for m in extra]) for n in exponents])
        for name in LASSO
    }
    plain_gap, noisy_gap = zeros[LASSO[1]] - zeros[LASSO[0]], zeros[LASSO[3]] - zeros[LASSO[2]]
    return [
        *result,
        verdict_on(
            "§6.2, Figure 5",
            "with redundant features Analyze Gauss often errs far beyond |β| (26, 45)",
            max(wild) > 5.0 * LENGTH,
            f"largest mean error {max(wild):.1f}, "
            f"beyond |β| in {sum(w > LENGTH for w in wild)} of {len(wild)} settings",
        ),
        verdict_on(
            "§6.2, Figure 5",
            "scaled Analyze Gauss is worse than Algorithms 2, 5 and the shifted 3 for all n < 2²²",
            not worse,
            f"it is better in {len(worse)} of {asked} comparisons"
            + (
                f", the first at m = {worse[0][0]}, n = 2^{worse[0][1]} against {worse[0][2]}"
                if worse
                else ""
            ),
        ),
        verdict_on(
            "§6.2, Figure 5",
            "all errors become large as m grows",
            bool(rising[-1] > rising[0]),
            f"the best of the six at n = 2^{middle}: " + ", ".join(f"{r:.2f}" for r in rising),
        ),
        verdict_on(
            "§6.2, Figure 6",
            "scaled Analyze Gauss has the smallest variance",
            steady == len(spread),
            f"in {steady} of {len(spread)} settings with m > 0",
        ),
        verdict_on(
            "§6.2, the lasso",
            "without noise a lasso drops the redundant features, not the others",
            bool(plain_gap[-1] > SPECIFIC),
            f"zeros at n = 2^{large}: {zeros[LASSO[0]][-1]:.0%} of x, {zeros[LASSO[1]][-1]:.0%} of the "
            "redundant",
        ),
        verdict_on_parts(
            "§6.2, the lasso",
            "on the noisy matrix it is sparse on both, not specifically on the redundant ones",
            [bool(abs(gap) < SPECIFIC) for gap in noisy_gap],
            f"part of zeros among the redundant less that among x, held to be specific from {SPECIFIC:g} on: "
            + ", ".join(f"{gap:.2f} (2^{n})" for n, gap in zip(exponents, noisy_gap, strict=True))
            + f"; without noise {plain_gap.min():.2f} to {plain_gap.max():.2f}",
        ),
    ]


def comparisons(found: GridResults) -> list[Comparison]:
    """Each (m, n): dpgram against the best method of the paper at its guarantee."""
    rivals = ("Algorithm 2", "Algorithm 5", "Algorithm 3", "Algorithm 3, shifted", EQUAL)
    rows = []
    for m in found.axis("m"):
        for exponent in found.axis("log2_rows"):
            means = {name: found.mean(name, m=m, log2_rows=exponent) for name in rivals}
            best = min(means, key=means.__getitem__)
            rows.append(
                Comparison(
                    figure="Sheffet 5–6",
                    guarantee="(0.1, e⁻⁹), one row replaced",
                    setting=f"m = {m}, n = 2^{exponent}",
                    rival=best,
                    theirs=means[best],
                    ours=found.mean(OURS, m=m, log2_rows=exponent),
                    floor=found.mean("non-private", m=m, log2_rows=exponent),
                    nothing=LENGTH,
                )
            )
    return rows

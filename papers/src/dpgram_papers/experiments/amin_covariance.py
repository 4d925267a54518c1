"""Amin et al., Figures 1 and 2: the covariance matrix, |Ĉ − C|_F/n, on real and on synthetic tables."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.noise import EigenvectorSampling, EntrywiseLaplace, Law
from dpgram.privacy.adjacency import ReplaceOne
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.amin import PrintedDeflation, PrintedEigenvectors, PrintedLaplace
from dpgram_papers.amin_sampler import PrintedSampler
from dpgram_papers.analyze_gauss import AnalyzeGauss
from dpgram_papers.experiments.amin_tables import REAL, Array, held, real, synthetic
from dpgram_papers.experiments.claims import Verdict, verdict_on
from dpgram_papers.experiments.comparisons import Comparison
from dpgram_papers.experiments.drawing import Line, Panel, PaperFigure, ours
from dpgram_papers.experiments.grid import Grid, GridResults, Key, entropy_of
from dpgram_papers.experiments.plain_release import drawn, law_of, second_moments
from dpgram_papers.experiments.study import Size
from dpgram_papers.variant import Variant

EPSILONS: Final = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
DELTAS: Final = {"G-16": 1e-16, "G-10": 1e-10, "G-3": 1e-3}
PURE: Final = ("L", "KT", "AD", "IT-U")
OURS: Final = "dpgram"
EXACT: Final = "dpgram, δ = 10⁻¹⁰"
PUBLISHED: Final = "dpgram, as published"
"""The noisy matrix itself, eigenvalues brought into [0, n]; the other lines are what a release answers when
asked for its second moments, the noise taken out by its law: n is public where rows are replaced."""
DENOISED: Final = ("L, denoised", "AD, denoised", "IT-U, denoised")
"""The printed noise taken out by its law as well: equal post-processing. KT has no law written down."""
NOTHING: Final = "nothing (0)"
REPLACED: Final = {f"{name}, replace-one": delta for name, delta in DELTAS.items()}
"""The Gaussian mechanism with √2 of its noise: the guarantee of AD, which lets rows be replaced."""
COLUMNS: Final = (*PURE, *DENOISED, *DELTAS, *REPLACED, OURS, EXACT, PUBLISHED, NOTHING)
SYNTHETIC: Final = {
    "tiny": ((10, 1000),),
    "quick": ((10, 1000), (10, 10_000), (10, 50_000), (100, 1000)),
    "full": tuple((d, n) for d in (10, 100) for n in (1000, 10_000, 50_000)),
}
FEW: Final = {"tiny": (0.1, 1.0), "quick": (0.01, 0.1, 1.0, 4.0), "full": EPSILONS}
RUNS: Final = {"tiny": 2, "quick": 3, "full": 50}


def real_grid(size: Size, folder: Path | None) -> Grid:
    """Three tables; Adult, with 108 columns, is left out of the smallest run."""
    names = tuple(REAL) if size != "tiny" else ("wine", "airfoil")
    cells = tuple(
        (name, 0, RUNS[size] if name != "adult" else -(-RUNS[size] // 3), e)
        for name in names
        for e in FEW[size]
    )
    return _grid(cells, folder)


def synthetic_grid(size: Size, folder: Path | None) -> Grid:
    """d and n of Appendix C."""
    runs = 2 * RUNS[size] if size == "full" else RUNS[size]
    cells = tuple(
        (f"d = {d}", n, runs if d < 50 or size != "full" else 10, e)
        for d, n in SYNTHETIC[size]
        for e in FEW[size]
    )
    return _grid(cells, folder)


def _grid(cells: tuple[Key, ...], folder: Path | None) -> Grid:
    return Grid(
        keys=("table", "rows", "runs", "epsilon"),
        columns=COLUMNS,
        cells=cells,
        measure=partial(measure, folder or Path()),
    )


def rows_of(folder: Path, cell: Key, seed: int) -> Array:
    """The table of a cell."""
    name, rows = str(cell[0]), int(cell[1])
    return real(folder, name) if name in REAL else synthetic(int(name.rsplit(maxsplit=1)[-1]), rows, seed)


def measure(folder: Path, cell: Key, seed: int) -> Mapping[str, float]:
    """The mean error over the runs."""
    rows, runs, epsilon = rows_of(folder, cell, seed), int(cell[2]), float(cell[3])
    gram = rows.T @ rows
    count, width = rows.shape
    pure = Guarantee(epsilon)
    variants: dict[str, Variant] = {
        "L": PrintedLaplace(claimed=pure, width=width),
        "KT": PrintedDeflation(claimed=pure),
        "AD": PrintedEigenvectors(claimed=pure),
        "IT-U": PrintedEigenvectors(claimed=pure, split="uniform"),
        **{name: AnalyzeGauss(claimed=Guarantee(epsilon, delta)) for name, delta in DELTAS.items()},
    }
    entropy = entropy_of(seed, *cell)

    def error(matrix: Array) -> float:
        return float(np.linalg.norm(held(matrix, count) - gram) / count)

    errors = {}
    laws = _printed_laws(epsilon, width)
    for name, variant in variants.items():
        drawn_often = [variant.draw(gram, entropy) for _ in range(runs)]
        errors[name] = float(np.mean([error(each) for each in drawn_often]))
        if name in laws:
            cleaned = [second_moments(each, laws[name], count) for each in drawn_often]
            errors[f"{name}, denoised"] = float(np.mean([error(each) for each in cleaned]))
    own_entropy = entropy_of(seed, *cell, "replace-one")
    for name, delta in REPLACED.items():
        gauss, scale = AnalyzeGauss(claimed=Guarantee(epsilon, delta)), math.sqrt(2.0)
        errors[name] = float(
            np.mean([error(scale * gauss.draw(gram / scale, own_entropy)) for _ in range(runs)])
        )
    errors[NOTHING] = float(np.linalg.norm(gram) / count)
    for name, guarantee in ((OURS, pure), (EXACT, Guarantee(epsilon, 1e-10))):
        law, generator = law_of(guarantee, ReplaceOne(), width), entropy.generator()
        noisy = [drawn(gram, law, generator) for _ in range(runs)]
        errors[name] = float(np.mean([error(second_moments(each, law, count)) for each in noisy]))
        if name == OURS:
            errors[PUBLISHED] = float(np.mean([error(each) for each in noisy]))
    return errors


def _printed_laws(epsilon: float, width: int) -> Mapping[str, Law]:
    """The laws of the printed noise, in the terms of releases: ε/2 for Lap(2/ε₀), Σ c_i = ε/8."""
    half = 0.5 * epsilon
    cells = 2.0 * width / epsilon * ROW_NORM_SQUARED
    sampled = partial(EigenvectorSampling, value_scale=2.0 / half, total=0.25 * half, rank=width, norm=1)
    return {
        "L": EntrywiseLaplace(scale=cells, diagonal_scale=cells),
        "AD": sampled(split="adaptive"),
        "IT-U": sampled(split="uniform"),
    }


def _plate(found: GridResults, number: str, columns: int) -> PaperFigure:
    colours = {
        "L": "grey",
        "KT": "green",
        "AD": "blue",
        "IT-U": "purple",
        "G-16": "brown",
        "G-10": "red",
        "G-3": "pink",
    }
    panels = []
    tables = list(dict.fromkeys((cell[0], cell[1]) for cell in found.cells))
    for part, names, mine in (("a", PURE, OURS), ("b", (*DELTAS, "AD"), EXACT)):
        for table, rows in tables:
            at = {"table": table, "rows": rows}
            x = np.array([float(e) for e in found.axis("epsilon", **at)])
            lines = [
                Line(label=n, x=x, y=found.series(n, "epsilon", **at), colour=colours[n], marker="o")
                for n in names
            ]
            lines.append(ours(mine, x, found.series(mine, "epsilon", **at)))
            if mine == OURS:
                lines.append(ours(PUBLISHED, x, found.series(PUBLISHED, "epsilon", **at), marker="^"))
            title = f"({part}) {table}" + (f", n = {rows:,}" if rows else "")
            panels.append(
                Panel(
                    title=title,
                    lines=tuple(lines),
                    x_label="ε",
                    y_label="|Ĉ − C|_F / n",
                    x_scale="log",
                    y_scale="log",
                )
            )
    return PaperFigure(
        title=f"Amin et al., Figure {number}: the covariance matrix", panels=tuple(panels), columns=columns
    )


def real_figures(found: GridResults) -> Mapping[str, PaperFigure]:
    """Pure methods above, Gaussian ones below."""
    return {"1": _plate(found, "1", len(found.axis("table")))}


def synthetic_figures(found: GridResults) -> Mapping[str, PaperFigure]:
    """The same for the synthetic tables."""
    return {"2": _plate(found, "2", min(4, len(dict.fromkeys((c[0], c[1]) for c in found.cells))))}


def _value(found: GridResults, column: str, cell: Key) -> float:
    return float(found.table[found.cells.index(cell), found.columns.index(column)])


def real_verdicts(found: GridResults) -> list[Verdict]:
    """What §4 says of Figure 1."""
    others = ("L", "KT")
    exceptions = [c for c in found.cells if _value(found, "AD", c) > min(_value(found, n, c) for n in others)]
    against = {
        n: [c for c in found.cells if _value(found, "AD", c) > _value(found, n, c)]
        for n in (*DELTAS, *REPLACED)
    }
    lost, lost_equal = ([len(against[n]) for n in reversed(names)] for names in (DELTAS, REPLACED))
    even = [_value(found, "AD", c) / _value(found, "IT-U", c) for c in found.cells]
    gaps = {
        str(t): math.exp(
            np.mean(
                [math.log(_value(found, "KT", c) / _value(found, "AD", c)) for c in found.cells if c[0] == t]
            )
        )
        for t in found.axis("table")
    }
    sampler = PrintedSampler(claimed=Guarantee(1.0), width=22)
    loose = PrintedEigenvectors(claimed=Guarantee(1.0))
    named = ", ".join(f"{c[0]} ε = {c[3]}" for c in exceptions) or "none"
    return [
        verdict_on(
            "§4, Figure 1a",
            "AD outperforms L and KT everywhere but on wine at ε = 0.01",
            all(c[0] == "wine" and float(c[3]) == 0.01 for c in exceptions),
            f"exceptions: {named}",
        ),
        verdict_on(
            "§4, Figure 1b",
            "AD beats the Gaussian mechanism even at δ = 10⁻³",
            not against["G-3"],
            f"it loses in {lost[0]} of {len(found.cells)} settings (δ = 10⁻¹⁰: {lost[1]}, 10⁻¹⁶: {lost[2]}). "
            "That noise is for a row added or removed, while AD lets one be replaced: with √2 of it, the "
            f"same guarantee, AD loses in {lost_equal[0]} ({lost_equal[1]}, {lost_equal[2]})",
        ),
        verdict_on(
            "§4",
            "adaptive or even splitting makes no big difference",
            min(even) > 0.67 and max(even) < 1.5,
            f"AD over IT-U: {min(even):.2f} to {max(even):.2f}",
        ),
        verdict_on(
            "§4",
            "AD gains most on KT on the table with the most columns",
            "adult" in gaps and max(gaps, key=gaps.__getitem__) == "adult" if "adult" in gaps else None,
            ", ".join(f"{t}: {g:.2f} times" for t, g in gaps.items()),
        ),
        verdict_on(
            "Algorithm 1",
            "the eigenvalues and directions together are ε-private",
            loose.true_epsilon(0.0) <= 1.0,
            f"and more careful than needed: at ε = 1 the true ε is at most {loose.true_epsilon(0.0):.2f}",
            printed=True,
        ),
        verdict_on(
            "Algorithm 2",
            "the sampler draws the stated law, so the direction is ε-private",
            sampler.private,
            f"its rule divides where it must multiply; δ(1) ≥ {sampler.true_delta(1.0):.2g} with 22 columns",
            printed=True,
        ),
    ]


def synthetic_verdicts(found: GridResults) -> list[Verdict]:
    """What Appendix C.1 says of Figure 2."""

    def ratio(top: str, width: int, rows: int) -> float:
        cells = [c for c in found.cells if c[0] == f"d = {width}" and c[1] == rows]
        values = [math.log(_value(found, top, c) / _value(found, "AD", c)) for c in cells]
        return math.exp(float(np.mean(values))) if values else math.nan

    best = [
        c for c in found.cells if _value(found, "AD", c) <= min(_value(found, n, c) for n in (*PURE, *DELTAS))
    ]
    pure = [c for c in found.cells if _value(found, "AD", c) <= min(_value(found, n, c) for n in ("L", "KT"))]
    wide, narrow = ratio("KT", 100, 1000), ratio("KT", 10, 1000)
    many, gauss, gauss_many = ratio("KT", 10, 50_000), ratio("G-10", 10, 1000), ratio("G-10", 10, 50_000)

    def ordered(larger: float, smaller: float) -> bool | None:
        return None if math.isnan(larger) or math.isnan(smaller) else larger > smaller

    return [
        verdict_on(
            "App. C.1, Figure 2",
            "AD consistently outperforms all others",
            len(best) == len(found.cells),
            f"all in {len(best)} of {len(found.cells)} settings, the pure ones in {len(pure)}",
        ),
        verdict_on(
            "App. C.1, Figure 2",
            "the gap to KT grows with the dimension",
            ordered(wide, narrow),
            f"KT over AD at n = 1,000: {narrow:.2f} (d = 10), {wide:.2f} (d = 100)",
        ),
        verdict_on(
            "App. C.1, Figure 2",
            "the gap to KT shrinks as n grows",
            ordered(narrow, many),
            f"KT over AD at d = 10: {narrow:.2f} (n = 1,000), {many:.2f} (n = 50,000)",
        ),
        verdict_on(
            "App. C.1, Figure 2",
            "against the Gaussian mechanism AD degrades as n grows",
            ordered(gauss, gauss_many),
            f"G-10 over AD at d = 10: {gauss:.2f} (n = 1,000), {gauss_many:.2f} (n = 50,000)",
        ),
    ]


def comparisons(found: GridResults) -> list[Comparison]:
    """Each setting three times: as each side is used, with equal post-processing, and as published."""
    pairs = (
        ("", PURE, OURS),
        (", equal post-processing", (*DENOISED, "KT"), OURS),
        (", as published", PURE, PUBLISHED),
    )
    return [
        _compared(found, cell, what, rivals, mine) for what, rivals, mine in pairs for cell in found.cells
    ]


def _compared(found: GridResults, cell: Key, what: str, rivals: tuple[str, ...], mine: str) -> Comparison:
    best = min(rivals, key=lambda n: _value(found, n, cell))
    size = f", n = {cell[1]:,}" if cell[1] else ""
    return Comparison(
        figure=f"Amin {'2' if cell[1] else '1'}{what}",
        guarantee="(ε, 0), one row replaced",
        setting=f"{cell[0]}{size}, ε = {cell[3]}",
        rival=best,
        theirs=_value(found, best, cell),
        ours=_value(found, mine, cell),
        floor=0.0,
        nothing=_value(found, NOTHING, cell),
    )

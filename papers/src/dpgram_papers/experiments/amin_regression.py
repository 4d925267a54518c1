"""Amin et al., Figures 3 to 5: regression from one matrix against output perturbation with five α."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final

import numpy as np

from dpgram.estimators.output_perturbation import OutputPerturbation
from dpgram.privacy.adjacency import ReplaceOne
from dpgram.privacy.guarantee import Guarantee
from dpgram_papers.amin import PrintedEigenvectors
from dpgram_papers.experiments.amin_tables import REAL, Array, held, real, synthetic
from dpgram_papers.experiments.claims import Verdict, verdict_on
from dpgram_papers.experiments.comparisons import Comparison
from dpgram_papers.experiments.drawing import Line, Panel, PaperFigure, ours
from dpgram_papers.experiments.grid import Grid, GridResults, Key, entropy_of, generator_of
from dpgram_papers.experiments.plain_release import drawn, fitted, law_of
from dpgram_papers.experiments.study import Size

ALPHAS: Final = (0.1, 1.0, 10.0, 100.0, 1000.0)
DELTA: Final = 1e-6
"""Of output perturbation; the paper names none."""
OURS: Final = "dpgram"
PERTURBED: Final = tuple(f"P {a:g}" for a in ALPHAS)
SAMPLED: Final = tuple(f"AD {a:g}" for a in ALPHAS)
COLUMNS: Final = ("trivial", "non-private", *PERTURBED, *SAMPLED, OURS)
EPSILONS: Final = {"tiny": (1.0,), "quick": (0.1, 1.0, 4.0), "full": (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)}
RUNS: Final = {"tiny": 1, "quick": 3, "full": 20}
WIDE: Final = 50
"""From so many columns on a table is run a tenth as often."""


def synthetic_grid(size: Size, folder: Path | None) -> Grid:
    """The first column as the target (Figure 3), and each column in turn (Figure 4, narrow tables only)."""
    tables = {
        "tiny": ((10, 1000),),
        "quick": ((10, 1000), (10, 10_000)),
        "full": ((10, 1000), (10, 10_000), (100, 10_000)),
    }
    cells = []
    for width, rows in tables[size]:
        for targets in (1, width) if width < WIDE else (1,):
            runs = RUNS[size] if targets == 1 and width < WIDE else -(-RUNS[size] // 5)
            cells += [(f"d = {width}", rows, targets, runs, e) for e in EPSILONS[size]]
    return _grid(tuple(cells), folder)


def real_grid(size: Size, folder: Path | None) -> Grid:
    """80% of the rows for training, the rest for testing."""
    names = ("wine", "airfoil") if size != "full" else tuple(REAL)
    runs = {name: RUNS[size] if name != "adult" else 2 for name in names}
    return _grid(tuple((name, 0, 1, runs[name], e) for name in names for e in EPSILONS[size]), folder)


def _grid(cells: tuple[Key, ...], folder: Path | None) -> Grid:
    return Grid(
        keys=("table", "rows", "targets", "runs", "epsilon"),
        columns=COLUMNS,
        cells=cells,
        measure=partial(measure, folder or Path()),
    )


def measure(folder: Path, cell: Key, seed: int) -> Mapping[str, float]:
    """Mean squared test loss over targets and runs; P gets ε over the number of targets."""
    name, rows, targets, runs, epsilon = (
        str(cell[0]),
        int(cell[1]),
        int(cell[2]),
        int(cell[3]),
        float(cell[4]),
    )
    generator = generator_of(seed, *cell)
    if name in REAL:
        table = real(folder, name)
        order = generator_of(seed, "split", name).permutation(len(table))
        cut = round(0.8 * len(table))
        train, test = table[order[:cut]], table[order[cut:]]
    else:
        table = synthetic(int(name.rsplit(maxsplit=1)[-1]), rows + min(rows, 10_000), seed)
        train, test = table[:rows], table[rows:]
    gram, judge = train.T @ train, test.T @ test / len(test)
    losses: dict[str, list[float]] = {column: [] for column in COLUMNS}
    entropy, perturbing = entropy_of(seed, *cell), entropy_of(seed, "P", *cell)
    law = law_of(Guarantee(epsilon), ReplaceOne(), len(gram))
    for _ in range(runs):
        sampled = held(PrintedEigenvectors(claimed=Guarantee(epsilon)).draw(gram, entropy), len(train))
        released = drawn(gram, law, generator)
        for target in range(targets):
            on = [i for i in range(len(gram)) if i != target]
            found = {"trivial": np.zeros(len(on)), "non-private": _ridge(gram, target, on, 1e-6)}
            for alpha in ALPHAS:
                found[f"AD {alpha:g}"] = _ridge(sampled, target, on, alpha)
                model = OutputPerturbation(
                    epsilon / targets,
                    DELTA / targets,
                    alpha=alpha,
                    x_norm=1.0,
                    y_bound=1.0,
                    adjacency="replace-one",
                    entropy=perturbing.split(1)[0],  # a fit copies its source: one for all would repeat
                )
                found[f"P {alpha:g}"] = np.asarray(model.fit(train[:, on], train[:, target]).coef_)
            found[OURS] = fitted(released, law, target, on)
            for column, theta in found.items():
                full = np.zeros(len(gram))
                full[on], full[target] = theta, -1.0
                losses[column].append(float(full @ judge @ full))
    return {column: float(np.mean(values)) for column, values in losses.items()}


def _ridge(gram: Array, target: int, on: list[int], alpha: float) -> Array:
    return np.asarray(np.linalg.solve(gram[np.ix_(on, on)] + alpha * np.eye(len(on)), gram[on, target]))


def _plate(found: GridResults, number: str, cells: list[Key]) -> PaperFigure:
    blues = ("#9ecae1", "#6baed6", "#4292c6", "#2171b5", "#084594")
    greens = ("#c7e9c0", "#a1d99b", "#74c476", "#31a354", "#006d2c")
    panels = []
    for table, rows in dict.fromkeys((c[0], c[1]) for c in cells):
        at = {"table": table, "rows": rows, "targets": next(c[2] for c in cells if c[:2] == (table, rows))}
        x = np.array([float(e) for e in found.axis("epsilon", **at)])
        lines = [Line(label="non-private", x=x, y=found.series("non-private", "epsilon", **at))]
        for names, colours, dashed in ((PERTURBED, greens, True), (SAMPLED, blues, False)):
            lines += [
                Line(label=n, x=x, y=found.series(n, "epsilon", **at), colour=c, dashed=dashed, marker=".")
                for n, c in zip(names, colours, strict=True)
            ]
        lines.append(ours("dpgram, one plain matrix", x, found.series(OURS, "epsilon", **at)))
        floor, top = found.mean("non-private", **at), found.mean("trivial", **at)
        panels.append(
            Panel(
                title=str(table) + (f", n = {rows:,}" if rows else ""),
                lines=tuple(lines),
                x_label="ε",
                y_label="squared test loss",
                x_scale="log",
                y_scale="log",
                y_range=(0.7 * floor, 4.0 * top),
            )
        )
    titles = {
        "3": "predicting the first column",
        "4": "all targets",
        "5": "predicting the first column, real tables",
    }
    return PaperFigure(
        title=f"Amin et al., Figure {number}: {titles[number]}", panels=tuple(panels), columns=3
    )


def synthetic_figures(found: GridResults) -> Mapping[str, PaperFigure]:
    """One target, and all of them."""
    one = [c for c in found.cells if c[2] == 1]
    return {"3": _plate(found, "3", one), "4": _plate(found, "4", [c for c in found.cells if c[2] != 1])}


def real_figures(found: GridResults) -> Mapping[str, PaperFigure]:
    """One target."""
    return {"5": _plate(found, "5", list(found.cells))}


def _best(found: GridResults, cell: Key, names: tuple[str, ...]) -> float:
    line = found.table[found.cells.index(cell)]
    return float(min(line[found.columns.index(name)] for name in names))


def _worst(found: GridResults, cell: Key, names: tuple[str, ...]) -> float:
    line = found.table[found.cells.index(cell)]
    return float(max(line[found.columns.index(name)] for name in names))


def synthetic_verdicts(found: GridResults) -> list[Verdict]:
    """What Appendix C.2 says."""
    one = [c for c in found.cells if c[2] == 1]
    many = [c for c in found.cells if c[2] != 1]
    similar = [_best(found, c, PERTURBED) / _best(found, c, SAMPLED) for c in one]
    stable = [
        (
            _worst(found, c, PERTURBED) / _best(found, c, PERTURBED),
            _worst(found, c, SAMPLED) / _best(found, c, SAMPLED),
        )
        for c in one
    ]
    all_targets = [_best(found, c, PERTURBED) / _best(found, c, SAMPLED) for c in many]
    return [
        verdict_on(
            "App. C.2, Figure 3",
            "for each ε the best P performs similarly to the best AD",
            min(similar) > 0.5 and max(similar) < 2.0,
            f"best P over best AD: {min(similar):.2f} to {max(similar):.2f}",
        ),
        verdict_on(
            "App. C.2, Figure 3",
            "AD is much more stable across α than P",
            all(ad < p for p, ad in stable),
            f"worst over best α: P to {max(p for p, _ in stable):.3g}, AD to {max(a for _, a in stable):.3g}",
        ),
        verdict_on(
            "App. C.2, Figure 4",
            "with all targets asked for, one matrix beats d perturbed regressions",
            min(all_targets) > 1.0,
            f"best P over best AD: {min(all_targets):.2f} to {max(all_targets):.2f}",
        ),
    ]


def real_verdicts(found: GridResults) -> list[Verdict]:
    """What §4 and Figure 5 say."""
    ahead = [c for c in found.cells if _best(found, c, SAMPLED) < _best(found, c, PERTURBED)]
    return [
        verdict_on(
            "§4, Figure 5",
            "AD outperforms output perturbation on the real tables",
            len(ahead) == len(found.cells),
            f"the best α of each: in {len(ahead)} of {len(found.cells)} settings",
        )
    ]


def comparisons(found: GridResults) -> list[Comparison]:
    """Squared loss above the non-private one, against the best of AD with an α chosen on the test rows."""
    rows = []
    for cell in found.cells:
        floor = _best(found, cell, ("non-private",))
        best = min(SAMPLED, key=lambda n: _best(found, cell, (n,)))
        size = f", n = {cell[1]:,}" if cell[1] else ""
        what = "" if cell[2] == 1 else ", all targets"
        rows.append(
            Comparison(
                figure=f"Amin {'5' if not cell[1] else '3' if cell[2] == 1 else '4'} (excess loss)",
                guarantee="(ε, 0), one row replaced",
                setting=f"{cell[0]}{size}{what}, ε = {cell[4]}",
                rival=f"{best} (α by test loss)",
                theirs=_best(found, cell, (best,)) - floor,
                ours=_best(found, cell, (OURS,)) - floor,
                floor=0.0,
                nothing=_best(found, cell, ("trivial",)) - floor,
            )
        )
    return rows

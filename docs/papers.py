"""Write the tables of the reproduced papers into docs/explanation/papers.md and the README.

    python docs/papers.py FOLDER [--size full]     what FOLDER lacks is run first: under an hour for all five

FOLDER is an output folder of `dpgram reproduce`. Only what stands between the marks `<!-- NAME -->` and
`<!-- end of NAME -->` is written; the words around it are ours.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

import numpy as np

from dpgram_papers.data import data_folder
from dpgram_papers.experiments.claims import Verdict, table, verdict_lines
from dpgram_papers.experiments.comparisons import AT_THE_FLOOR, Comparison, losses, named, summary, worthless
from dpgram_papers.experiments.grid import GridResults, measured
from dpgram_papers.experiments.reproduce import PAPERS, reproduce, studies_of
from dpgram_papers.experiments.sheffet_single import GAUSS_EQUAL, OURS, OWN
from dpgram_papers.experiments.study import SEED, Size

HOME = Path(__file__).parent.parent
PAGE = HOME / "docs" / "explanation" / "papers.md"
README = HOME / "README.md"
SHRINKS = "rows so short that nothing can be learnt at small ε, where whoever shrinks more is ahead"
SHORT_TARGETS = (
    "rows have length one but targets are short (on elevators 0.11 of the longest, root mean square): little "
    "is learnt at small ε, where whoever shrinks more is ahead"
)
CLIPPED = (
    "clipped training rows meet longer test rows, so that a shrunken answer can be the better one; one test "
    "row decides the mean of four folds of elevators"
)
WHY = {
    "Amin 1": "too few rows for these ε",
    "Amin 1, equal post-processing": (
        "at so small ε their directions say nearly nothing and are shrunk to nearly nothing: at best 2% "
        "better than a matrix of zeros, and ours is not"
    ),
    "Amin 1, as published": "noise on d(d + 1)/2 cells is not shrunk before it is compared",
    "Amin 2": "100 columns and little budget: nothing can be seen but the largest eigenvalue",
    "Amin 2, equal post-processing": (
        "little budget for 100 columns or 1,000 rows: directions that say nearly nothing, shrunk, are at "
        "best 2% better than a matrix of zeros (10% at d = 10), and ours is not"
    ),
    "Amin 2, as published": "noise on d(d + 1)/2 cells is not shrunk before it is compared",
    "Amin 3 (excess loss)": "their α is the best of five by the test loss; ours is chosen by nobody",
    "Amin 4 (excess loss)": "their α is the best of five by the test loss; ours is chosen by nobody",
    "Amin 5 (excess loss)": "their α is the best of five by the test loss; ours is chosen by nobody",
    "Park and Welling 1 (nats)": "at so few rows nobody learns anything",
    "Kalaja 4.2 (excess MSE)": "too few rows for these ε",
    "Kalaja 4.3 (excess MSE)": SHRINKS,
    "Kalaja 4.4 (excess MSE)": SHORT_TARGETS,
    "Kalaja 4.5 (excess MSE)": SHRINKS,
    "Kalaja 4.6 (excess MSE)": SHRINKS,
    "Kalaja 4.7 (MSE)": CLIPPED,
    "Kalaja 4.7 (MSE, median fold)": CLIPPED,
    "Kalaja 4.8 (MSE)": SHRINKS,
    "Kalaja 4.8 (MSE, median fold)": SHRINKS,
    "Wang's table (excess MSE)": "a few thousand rows or fewer, and all methods near the trivial prediction",
    "Sheffet 1–4": "the clip of the rows sets a floor, at which all are equal",
    "Sheffet 5–6": "the clip of the rows sets a floor, at which all are equal",
}
"""Why ours is behind, where it is."""
HOPED = {GAUSS_EQUAL: 2.0}
"""What the error of a rival over ours was hoped to be; eight for the paper's own algorithms."""


REAL = ("Amin 1", "Amin 5 (excess loss)", "Wang's table (excess MSE)")
SHOWN = (1, 2, 3, 4, 5, 8)
"""Columns of the summary that the README has."""


def put(page: Path, name: str, lines: list[str]) -> None:
    """The lines between the marks of a name, of which there must be one pair."""
    start, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    text, times = re.subn(
        re.escape(start) + ".*?" + re.escape(end),
        lambda _: start + "\n".join(["", *lines, "", end]),
        page.read_text(encoding="utf-8"),
        flags=re.DOTALL,
    )
    if times != 1:
        raise SystemExit(f"{page.name} has {times} places for {name}")
    page.write_text(text, encoding="utf-8")


def against_each(found: GridResults) -> list[str]:
    """Sheffet's one regression: each rival's error over ours, where ours has not arrived at the floor."""
    cells = [
        {"epsilon": epsilon, "log2_rows": exponent}
        for epsilon in found.axis("epsilon")
        for exponent in found.axis("log2_rows")
    ]
    open_ = [at for at in cells if found.mean(OURS, **at) > AT_THE_FLOOR * found.mean("non-private", **at)]
    lines = []
    for rival in (GAUSS_EQUAL, *OWN):
        ratios = np.array([found.mean(rival, **at) / found.mean(OURS, **at) for at in open_])
        hoped = HOPED.get(rival, 8.0)
        least = open_[int(ratios.argmin())]
        lines.append(
            (
                rival,
                f"{hoped:g}",
                f"{np.count_nonzero(ratios >= hoped)} of {len(ratios)}",
                f"{ratios.min():.2f}",
                f"{np.median(ratios):.1f}",
                f"ε = {least['epsilon']}, n = 2^{least['log2_rows']}",
            )
        )
    head = ("method of the paper", "hoped for", "reached in", "least ratio", "median", "the least is at")
    return table(head, lines)


def both_useless(rows: Sequence[Comparison]) -> str:
    """One sentence of the README, which names the settings of its figures of many real sets."""
    told = []
    for figure in REAL:
        open_ = [row for row in rows if row.figure == figure and not row.arrived]
        both = [row for row in open_ if min(row.ours, row.theirs) > row.nothing]
        told.append(f"in {figure.partition(' (')[0]} on {named(both, open_)}")
    return f"Both are worse than nothing {'; '.join(told)}. The page names all others."


@dataclass(frozen=True)
class Paper:
    """What a folder holds of one paper's grids."""

    name: str
    verdicts: list[Verdict]
    comparisons: list[Comparison]
    cells: int
    missing: int

    @property
    def grid(self) -> str:
        return "full" if not self.missing else f"full but for {self.missing} of {self.cells} cells"


def read(paper: str, folder: Path, size: Size, data: Path | None) -> Paper:
    verdicts, comparisons, cells, missing = [], [], 0, 0
    for study in studies_of(paper):
        grid = study.grid(size, data)
        found, lacking = measured(grid, folder / f"{study.name}.csv", seed=SEED)
        cells, missing = cells + len(grid.cells), missing + lacking
        verdicts += study.verdicts(found)
        comparisons += study.comparisons(found)
    return Paper(paper, verdicts, comparisons, cells, missing)


def counts(made: list[Paper]) -> list[str]:
    outcomes = ("pass", "pass, fitted", "holds in part", "fail", "false as printed", "not measured")
    rows, total = [], Counter[str]()
    for one in made:
        found = Counter[str](verdict.outcome for verdict in one.verdicts)
        total += found
        cells = (str(found.get(outcome, 0)) for outcome in outcomes)
        rows.append((PAPERS[one.name], one.grid, str(len(one.verdicts)), *cells))
    rows.append(("all", "", str(total.total()), *(str(total[outcome]) for outcome in outcomes)))
    return table(("paper", "grid", "claims", *outcomes), rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", choices=get_args(Size), default="full")
    parser.add_argument("--data", type=Path, help="folder of the data sets; by default that of DPGRAM_DATA")
    parser.add_argument("--measured", action="store_true", help="run nothing, and say what the folder lacks")
    asked = parser.parse_args()
    data = data_folder(asked.data)
    for paper in PAPERS if not asked.measured else ():
        print(f"{PAPERS[paper]} ...", flush=True)
        skipped = reproduce(paper, asked.folder, size=asked.size, processes=2, data=data).skipped
        if skipped:
            raise SystemExit(f"not run, so nothing is written: {', '.join(skipped)}")
    made = [read(paper, asked.folder, asked.size, data) for paper in PAPERS]
    single = studies_of("sheffet")[0]
    found, _ = measured(single.grid(asked.size, data), asked.folder / f"{single.name}.csv", seed=SEED)
    compared = [row for one in made for row in one.comparisons]
    lines = summary(compared)
    put(PAGE, "surpassed", lines)
    put(README, "surpassed", ["|" + "|".join(line.split("|")[k] for k in SHOWN) + "|" for line in lines])
    put(PAGE, "worse than nothing", worthless(compared))
    put(README, "worse than nothing", [both_useless(compared)])
    put(PAGE, "where we lose", losses(compared, WHY))
    put(PAGE, "each of Sheffet's", against_each(found))
    put(PAGE, "counts", counts(made))
    for one in made:
        put(PAGE, f"claims of {one.name}", verdict_lines(one.verdicts))
    print("wrote the tables of", PAGE.name, "and", README.name)


if __name__ == "__main__":
    main()

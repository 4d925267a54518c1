"""Run a paper's experiments: a CSV file for each grid, figures, the table of claims, ours against theirs."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, Protocol, TypeAlias, final

from dpgram.errors import DpgramError, DpgramWarning
from dpgram_papers.experiments.claims import Verdict, write_verdicts
from dpgram_papers.experiments.comparisons import Comparison, write_comparisons
from dpgram_papers.experiments.drawing import draw
from dpgram_papers.experiments.grid import run
from dpgram_papers.experiments.study import SEED, Size, Study

PAPERS: Final[Mapping[str, str]] = {
    "sheffet": "Sheffet 2015",
    "amin": "Amin et al. 2019",
    "park-welling": "Park and Welling 2016",
    "kalaja": "Kalaja 2020",
    "wang": "Wang 2018",
}
"""By the name of the command line."""
PLAIN: Final = "one plain matrix of dpgram"
COMPARED: Final[Mapping[str, str]] = dict.fromkeys(PAPERS, PLAIN) | {"park-welling": "dpgram's LpRegression"}
"""What is held against the best of a paper's methods."""
Tell: TypeAlias = Callable[[str, int, int], None]
"""Hears the study, how many of its cells are done, and of how many."""


class _Paper(Protocol):
    def studies(self) -> tuple[Study, ...]:
        """All of one paper."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reproduction:
    """What was written and found."""

    paper: str
    files: tuple[Path, ...]
    verdicts: tuple[Verdict, ...]
    comparisons: tuple[Comparison, ...]
    skipped: Mapping[str, str]
    """Studies that could not run, with the reason."""


def studies_of(paper: str) -> tuple[Study, ...]:
    """The experiments of a paper."""
    if paper not in PAPERS:
        raise DpgramError("unknown paper", got=paper, limit=", ".join(PAPERS))
    module: _Paper = import_module(f"dpgram_papers.experiments.{paper.replace('-', '_')}_studies")
    return module.studies()


def reproduce(
    paper: str,
    output: Path,
    *,
    size: Size = "quick",
    figure: str | None = None,
    seed: int = SEED,
    processes: int = 1,
    data: Path | None = None,
    tell: Tell | None = None,
) -> Reproduction:
    """Run what is missing in `output`, and write everything that follows from it. Not private."""
    studies = studies_of(paper)
    known = [number for study in studies for number in study.figures]
    if figure is not None and figure not in known:
        raise DpgramError(f"{PAPERS[paper]} has no such figure here", got=figure, limit=", ".join(known))
    files: list[Path] = []
    verdicts: list[Verdict] = []
    comparisons: list[Comparison] = []
    skipped: dict[str, str] = {}
    for study in studies:
        if figure is not None and figure not in study.figures:
            continue
        lack = study.lacks(data)
        if lack is not None:
            skipped[study.name] = lack
            continue
        file = output / f"{study.name}.csv"
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)  # printed constants on public data: they all warn
            hear = None if tell is None else _named(tell, study.name)
            found = run(study.grid(size, data), file, seed=seed, processes=processes, tell=hear)
            files.append(file)
            for number, paper_figure in study.paper_figures(found).items():
                if figure in (None, number):
                    files += draw(paper_figure, output / f"{paper}-figure-{number}")
            verdicts += study.verdicts(found)
            comparisons += study.comparisons(found)
    if skipped and not files:
        name, reason = next(iter(skipped.items()))
        raise DpgramError(f"nothing asked for of {PAPERS[paper]} can run here", got=f"{name}: {reason}")
    if verdicts:
        stem = output / f"{paper}-claims"
        write_verdicts(verdicts, stem, f"{PAPERS[paper]}: claims, checked ({size} grid)")
        files += [stem.with_suffix(".md"), stem.with_suffix(".csv")]
    if comparisons:
        stem = output / f"{paper}-surpassed"
        write_comparisons(
            comparisons, stem, f"{PAPERS[paper]}: {COMPARED[paper]} against the best of its methods"
        )
        files += [stem.with_suffix(".md"), stem.with_suffix(".csv")]
    return Reproduction(
        paper=paper,
        files=tuple(files),
        verdicts=tuple(verdicts),
        comparisons=tuple(comparisons),
        skipped=skipped,
    )


def _named(tell: Tell, name: str) -> Callable[[int, int], None]:
    return lambda done, of: tell(name, done, of)

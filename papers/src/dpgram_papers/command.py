"""`dpgram reproduce`: the papers' experiments, run again."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Self

import typer

from dpgram.cli.console import JsonFlag, print_json, say
from dpgram.errors import DpgramError

if TYPE_CHECKING:
    from dpgram_papers.experiments.reproduce import Reproduction, Tell


def reproduce(
    paper: Annotated[
        Literal["sheffet", "amin", "park-welling", "kalaja", "wang"], typer.Argument(help="Which paper.")
    ],
    figure: Annotated[str | None, typer.Option(help="One figure of it, such as 4; all by default.")] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="A coarse grid, in a minute or so: the default.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="The paper's own grid, in up to an hour.")] = False,
    tiny: Annotated[
        bool, typer.Option("--tiny", help="A few cells, in seconds: to see that it works.")
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(help="Folder of the data sets; by default the one that DPGRAM_DATA names."),
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the files; finished cells in it are kept.")
    ] = Path("reproduced"),
    seed: Annotated[int, typer.Option(min=0, help="Another seed gives other draws.")] = 2015,
    processes: Annotated[int, typer.Option(min=1, max=2, help="How many to use.")] = 2,
    as_json: JsonFlag = False,
) -> None:
    """Run a paper's experiments again, with dpgram beside them. Not private: research code.

    Writes a CSV file of every measured cell, figures in the paper's layout, the paper's claims with what came
    out, and one plain matrix of dpgram (for Park and Welling its L_p regression) against the best of its
    methods.

    \b
    Example:
      dpgram reproduce sheffet --quick --output reproduced
    """
    from dpgram_papers.data import data_folder
    from dpgram_papers.experiments.reproduce import reproduce as run

    if quick + full + tiny > 1:
        raise DpgramError("one size at a time", got="several of --tiny, --quick, --full")
    size: Literal["tiny", "quick", "full"] = "full" if full else "tiny" if tiny else "quick"
    folder = data_folder(data)
    with _Progress(shown=sys.stderr.isatty() and not as_json) as progress:
        outcome = run(
            paper,
            output,
            size=size,
            figure=figure,
            seed=seed,
            processes=processes,
            data=folder,
            tell=progress.tell,
        )
    if as_json:
        print_json(
            {
                "paper": outcome.paper,
                "files": [str(file) for file in outcome.files],
                "claims": [asdict(verdict) for verdict in outcome.verdicts],
                "surpassed": [asdict(row) | {"ratio": row.ratio} for row in outcome.comparisons],
                "skipped": dict(outcome.skipped),
            }
        )
    else:
        _summarise(outcome)


def _summarise(outcome: Reproduction) -> None:
    for verdict in outcome.verdicts:
        say(f"  {verdict.outcome:<16}  {verdict.place}: {verdict.claim} ({verdict.found})")
    for name, reason in outcome.skipped.items():
        say(f"  skipped {name}: {reason}")
    ahead = sum(row.ratio > 1.0 for row in outcome.comparisons)
    if outcome.comparisons:
        from dpgram_papers.experiments.reproduce import COMPARED

        ours = COMPARED[outcome.paper]
        say(f"  {ours} has the smaller error in {ahead} of {len(outcome.comparisons)} settings")
    for file in outcome.files:
        say(f"  wrote {file}")
    say("  NOT PRIVATE: experiments on public or simulated tables")


class _Progress:
    """A bar a grid; nothing where nobody looks."""

    def __init__(self, *, shown: bool) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=Console(stderr=True),
            disable=not shown,
        )
        self._tasks: dict[str, object] = {}

    def __enter__(self) -> Self:
        self._bars.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bars.stop()

    @property
    def tell(self) -> Tell:
        """What a run calls."""
        return self._told

    def _told(self, name: str, done: int, of: int) -> None:
        if name not in self._tasks:
            self._tasks[name] = self._bars.add_task(name, total=of)
        self._bars.update(self._bars.task_ids[list(self._tasks).index(name)], completed=done, total=of)

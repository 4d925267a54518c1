"""`dpgram demo`: budget, release, regressions and refusals on bundled data."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from dpgram.cli.console import JsonFlag, print_json


def demo(
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files it makes.")] = Path(
        "dpgram-demo"
    ),
    people: Annotated[
        int, typer.Option(min=1000, max=1_000_000, help="How many synthetic people to make.")
    ] = 50_000,
    as_json: JsonFlag = False,
) -> None:
    """See everything dpgram does in under a minute.

    A budget, a release, regressions beside the truth, a refusal, a figure and a page, on bundled data.

    \b
    Example:
      dpgram demo
    """
    from dpgram.demo.run import run

    outcome = run(output, people=people, say=_nothing if as_json else typer.echo)
    if as_json:
        print_json(
            {
                "release": str(outcome.release),
                "ledger": str(outcome.ledger),
                "figure": None if outcome.figure is None else str(outcome.figure),
                "page": str(outcome.page),
                "answers": [asdict(answer) for answer in outcome.answers],
                "patients": [asdict(answer) for answer in outcome.patients],
                "refusal": outcome.refusal,
                "seconds": outcome.seconds,
            }
        )


def _nothing(_: str) -> None:
    pass

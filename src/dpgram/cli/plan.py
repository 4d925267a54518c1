"""The command that looks before anything is spent: plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dpgram.cli.console import (
    ADVANCED,
    AdjacencyOption,
    JsonFlag,
    SchemaFile,
    print_json,
    require_writable,
    say,
    split_names,
)
from dpgram.cli.curate import Delta, LedgerOption, given_delta
from dpgram.cli.mechanism_options import asked_mechanism
from dpgram.cli.model_options import Models, asked_models
from dpgram.errors import DpgramError
from dpgram.job.words import as_flag


def plan(
    schema: SchemaFile,
    rows: Annotated[
        int,
        typer.Option(help="A public guess of the number of rows; of persons, where publish is given --unit."),
    ],
    epsilon: Annotated[float, typer.Option(help="ε: how much one row may change the odds of any outcome.")],
    delta: Delta = None,
    ledger: LedgerOption = None,
    adjacency: AdjacencyOption = "add-remove",
    target: Annotated[
        str | None, typer.Option(help="The column to explain; the last number by default.")
    ] = None,
    on: Annotated[
        str | None,
        typer.Option(help="Columns to explain it with, separated by commas; all others by default."),
    ] = None,
    spread: Annotated[
        list[str] | None,
        typer.Option(
            help="Assumed standard deviation, 1 being half the range: 0.3, or age=0.4 (repeatable)."
        ),
    ] = None,
    correlation: Annotated[float, typer.Option(help="Assumed correlation of all pairs of columns.")] = 0.2,
    r_squared: Annotated[float, typer.Option(help="Assumed R² of the regression.")] = 0.5,
    target_se_ratio: Annotated[
        float | None,
        typer.Option(help="Find the ε at which standard errors are this many times those of least squares."),
    ] = None,
    mechanism: Annotated[
        list[str] | None, typer.Option(help="Only this mechanism (repeatable); all by default.")
    ] = None,
    psd: Annotated[
        bool,
        typer.Option("--psd", help="Only positive semidefinite matrices.", rich_help_panel=ADVANCED),
    ] = False,
    radius: Annotated[
        float | None,
        typer.Option(
            help="A public row radius; by default an adaptive release learns one and clips longer rows, any "
            "other clips none."
        ),
    ] = None,
    bounds_share: Annotated[float, typer.Option(help="Share of the budget for learning bounds.")] = 0.2,
    model: Models = None,
    quick: Annotated[bool, typer.Option("--quick", help="Closed forms only, no simulation.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="Draw accuracy against ε into this file (png, svg or pdf).")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Forecast every mechanism before spending.

    From public facts and stated assumptions only: no data is read. Tells how much larger standard errors
    would be than those of least squares, how many rows it takes, what a larger ε or fewer columns would buy,
    and says so when it will not work. Of models that are declared (--model) it tells what each costs and how
    closely its coefficients would be known.

    \b
    Examples:
      dpgram plan --schema insurance.toml --rows 50000 --epsilon 1 --delta 1e-6
      dpgram plan -s insurance.toml --rows 50000 --epsilon 1 --delta 1e-6 \\
          --target-se-ratio 1.2
      dpgram plan -s insurance.toml --rows 50000 --epsilon 1 --delta 1e-6 \\
          --model linear:charges --model "logistic:smoker~age,bmi;share=0.2"
    """
    from dpgram.figures import format_of
    from dpgram.mechanisms import Auto
    from dpgram.planning import Assumption
    from dpgram.planning import plan as run
    from dpgram.publishing import Adaptive
    from dpgram.rows import Rows
    from dpgram.schema import Schema

    if figure is not None:
        format_of(figure)  # a name that nothing can be drawn for is found before the forecast
        require_writable(figure, overwrite=overwrite, inputs=[schema, ledger])
    declared = Schema.from_file(schema)
    found = run(
        declared,
        epsilon=epsilon,
        delta=given_delta(delta),
        ledger=ledger,
        rows=Rows(expected=rows, radius=radius),
        adaptive=Adaptive(bounds=bounds_share),
        adjacency=adjacency,
        target=target,
        on=split_names(on),
        assume=Assumption(spread=_spreads(spread or []), correlation=correlation, r_squared=r_squared),
        target_se_ratio=target_se_ratio,
        mechanisms=[asked_mechanism(name, psd=psd) for name in mechanism or ()] or Auto(semidefinite=psd),
        simulate=not quick,
        models=asked_models(model, declared),
    )
    if figure is not None:
        found.plot(figure)
    if as_json:
        print_json(found.to_json() | {"figure": None if figure is None else str(figure)})
        return
    say(found.text(as_flag))
    if figure is not None:
        say(f"\nwrote {figure}")


def _spreads(texts: list[str]) -> dict[str, float | list[float]]:
    """`0.3` is for all other columns, `age=0.4` for one, `smoker=0.8/0.2` gives the shares of a category."""
    found: dict[str, float | list[float]] = {}
    for text in texts:
        name, _, value = text.rpartition("=")
        try:
            numbers = [float(number) for number in value.split("/")]
        except ValueError:
            raise DpgramError(
                "a spread is a number, or a column's name and a number",
                got=repr(text),
                remedy="Write age=0.4",
            ) from None
        found[name or "*"] = numbers[0] if len(numbers) == 1 else numbers
    return found

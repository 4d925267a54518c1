"""`dpgram series …`: a table that grows, published period after period under one charge."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dpgram.cli.console import (
    JsonFlag,
    SchemaFile,
    given_names,
    print_facts,
    print_json,
    require_writable,
    say,
    say_folded,
)
from dpgram.cli.curate import (
    Adapt,
    Delta,
    Engine,
    LedgerOption,
    given_delta,
    policy_counts,
    refuse_unclear_payment,
    telling_of_a_charge,
)
from dpgram.cli.databases import Query, asked_table
from dpgram.cli.pages import Overwrite, PageFile, print_written
from dpgram.cli.row_options import Missing, Radius, Strict, Unit, UnitRows, Weight
from dpgram.errors import DpgramError, OptionsError, require_publish

if TYPE_CHECKING:
    from dpgram.analysis import Trend
    from dpgram.core.units import PolicyCounts
    from dpgram.series import Series

app = typer.Typer(
    help="Tables that grow: one charge for many periods, each total and window a release.",
    rich_markup_mode=None,
)

SeriesFile = Annotated[Path, typer.Argument(metavar="SERIES", help="The public file of a series.")]
Periods = Annotated[int, typer.Option(min=1, help="The horizon: for how many periods is charged.")]
Participations = Annotated[int, typer.Option(min=1, help="In how many periods a person may count.")]
Apart = Annotated[
    int,
    typer.Option(min=1, help="The least distance of two periods of a person; 1: they may follow each other."),
]


@app.command()
def plan(
    periods: Periods,
    participations: Participations = 1,
    apart: Apart = 1,
    window: Annotated[int, typer.Option(min=1, help="The length of a window to tell of.")] = 12,
    epsilon: Annotated[float | None, typer.Option(help="ε, for the noise in rows.")] = None,
    delta: Annotated[float | None, typer.Option(help="δ, for the noise in rows.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Say what a series costs in noise, beside a release for every period.

    \b
    Example:
      dpgram series plan --periods 60
    """
    from dpgram.series import Series

    found = Series.plan(
        periods=periods,
        participations=participations,
        apart=apart,
        window=window,
        epsilon=epsilon,
        delta=delta,
    )
    if as_json:
        print_json(
            {"lines": [asdict(one) for one in found.lines], "rows": found.rows, "advice": found.advice}
        )
    else:
        say(found.table)
        say_folded(found.advice)


@app.command()
def create(
    series: SeriesFile,
    schema: SchemaFile,
    periods: Periods,
    epsilon: Annotated[float, typer.Option(help="ε of all periods together.")],
    delta: Delta = None,
    ledger: LedgerOption = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Keep no count of what the data set has spent.")
    ] = False,
    participations: Participations = 1,
    apart: Apart = 1,
    unit: Unit = None,
    unit_rows: UnitRows = None,
    weight: Weight = None,
    missing: Missing = "drop",
    strict: Strict = False,
    radius: Radius = None,
    adaptive: Adapt = True,
    note: Annotated[
        str, typer.Option(help="A note for the ledger; it must not reveal anything about the data.")
    ] = "",
    as_json: JsonFlag = False,
) -> None:
    """Create a series: the ledger is charged once, for all periods.

    Beside the public file stands the curator's, whose name ends in .NOT-PRIVATE: it holds exact sums and who
    has counted, and must be kept as secret as the table.

    \b
    Example:
      dpgram series create clinic.series --schema clinic.toml --periods 60 \\
          --epsilon 1 --delta 1e-6 --unit patient --ledger clinic.ledger
    """
    require_publish()
    from dpgram.rows.rules import Rows
    from dpgram.schema import Schema
    from dpgram.series import Series

    budget = given_delta(delta)
    refuse_unclear_payment(ledger, no_ledger=no_ledger)
    with telling_of_a_charge(ledger):
        made = Series.create(
            series,
            Schema.from_file(schema),
            epsilon=epsilon,
            delta=budget,
            periods=periods,
            rows=Rows(
                unit=unit, unit_rows=unit_rows, weight=weight, missing=missing, strict=strict, radius=radius
            ),
            participations=participations,
            apart=apart,
            adaptive=adaptive,
            ledger=ledger,
            note=note,
        )
    if as_json:
        print_json({"path": str(series), **_facts(made)})
        return
    say(made.summary())
    say(f"wrote {series} and {series}.NOT-PRIVATE")


@app.command()
def publish(
    series: SeriesFile,
    data: Annotated[
        list[str] | None,
        typer.Argument(metavar="DATA...", help="The rows of this period: files, a folder, a glob."),
    ] = None,
    period: Annotated[str, typer.Option(help="What the period is called, such as 2026-11.")] = "",
    empty: Annotated[bool, typer.Option("--empty", help="A period of which there are no rows.")] = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write the release of everything up to now here.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    query: Query = None,
    engine: Engine = "auto",
    as_json: JsonFlag = False,
) -> None:
    """Publish one more period of a series.

    A period that was published, or drawn before an interrupt, comes back as it was: DATA is not read again.

    \b
    Example:
      dpgram series publish clinic.series november.csv --period 2026-11 \\
          -o until-november.dpgram.json
    """
    require_publish()
    from dpgram.series import Series
    from dpgram.series.stream import files_of

    if empty == bool(data):
        raise DpgramError(
            "it is not clear whether the period has rows",
            got="both DATA and --empty" if data else "neither DATA nor --empty",
            remedy="Name the files of the period, or give --empty",
        )
    if output is not None:
        require_writable(output, overwrite=overwrite, inputs=files_of(series), tables=data or ())
    found = Series.open(series)
    repeated = found.published_before(period)
    counts: list[PolicyCounts] = []
    table: object = asked_table(data, query) if data else None
    release = found.publish(
        table, period, engine=engine, progress=False if as_json else None, report=counts.append
    )
    if output is not None:
        release.save(output, overwrite=overwrite)
    if as_json:
        print_json(
            {"period": period, "published_before": repeated, "digest": release.digest, **_facts(found)}
        )
        return
    say(str(release))
    if counts:
        say("\nFor the curator only (exact counts, not in the release):")
        print_facts(policy_counts(counts[-1]))
    done = f"{len(found.labels)} of {found.periods} periods"
    if repeated:
        say(f"\n{period} was published before, and nothing has changed: {done}. No table was read")
    else:
        say(f"\npublished {period}: {done}")
    if output is not None:
        say(f"wrote {output}")


@app.command()
def show(
    series: SeriesFile,
    trend: Annotated[
        str | None, typer.Option(help="Show a regression of this target, or formula, over time.")
    ] = None,
    on: Annotated[list[str] | None, typer.Option(help="The columns it is regressed on.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Periods in a window of the trend.")] = 1,
    running: Annotated[bool, typer.Option("--running", help="A trend of running totals.")] = False,
    plot: Annotated[
        Path | None, typer.Option(help="Draw the coefficient named with --of into this file.")
    ] = None,
    of: Annotated[str | None, typer.Option(help="The coefficient to draw; the last one by default.")] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show the periods of a series, what the clip took, and trends.

    \b
    Example:
      dpgram series show clinic.series --trend cost --on age --every 3
    """
    from dpgram.series import Series
    from dpgram.series.stream import files_of

    asked = {
        "--on": bool(on),
        "--running": running,
        "--plot": plot is not None,
        "--of": of is not None,
        "--overwrite": overwrite,
    }
    if trend is None and (any(asked.values()) or every != 1):
        raise OptionsError(
            "these options are about a trend",
            got=", ".join([name for name, given in asked.items() if given] or ["--every"]),
            remedy="Add --trend TARGET: what is regressed over time",
        )
    if plot is None and (of is not None or overwrite):
        raise OptionsError(
            "--of and --overwrite are about what --plot draws",
            got="--overwrite alone" if of is None else "--of alone",
            remedy="Add --plot FILE",
        )
    if plot is not None:
        require_writable(plot, overwrite=overwrite, inputs=files_of(series))
    found = Series.open(series)
    names = given_names(on, found.total().schema) if on else None
    over = None if trend is None else found.trend(trend, names, every=every, running=running)
    if plot is not None and over is not None:
        over.plot(of or over.names[-1], plot)
    if as_json:
        print_json({**_facts(found), **({} if over is None else {"trend": _trend(over)})})
        return
    say(found.summary())
    if over is not None:
        say("")
        say(over.summary())
    if plot is not None:
        say(f"wrote {plot}")


@app.command()
def explore(
    series: SeriesFile, output: PageFile, overwrite: Overwrite = False, as_json: JsonFlag = False
) -> None:
    """Write a web page for exploring a series: its running total, and trends.

    One HTML file with everything inside: it needs no server, no network and nothing installed.

    \b
    Example:
      dpgram series explore clinic.series -o clinic.html
    """
    from dpgram.series import Series
    from dpgram.series.stream import files_of

    require_writable(output, overwrite=overwrite, inputs=files_of(series))
    print_written(Series.open(series).explore(output, overwrite=overwrite), as_json=as_json)


@app.command()
def window(
    series: SeriesFile,
    first: Annotated[str, typer.Argument(metavar="FIRST", help="The first period, by name or number.")],
    last: Annotated[str, typer.Argument(metavar="LAST", help="The last one.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write the release of a window of periods, at no further cost.

    \b
    Example:
      dpgram series window clinic.series 2026-01 2026-06 \\
          -o first-half.dpgram.json
    """
    from dpgram.series import Series
    from dpgram.series.stream import files_of

    require_writable(output, overwrite=overwrite, inputs=files_of(series))
    found = Series.open(series)
    release = found.window(_period(first, found), _period(last, found))
    release.save(output, overwrite=overwrite)
    if as_json:
        print_json({"output": str(output), "digest": release.digest, "part": release.part})
    else:
        say(f"wrote {output}: {release.part}")


def _period(text: str, series: Series) -> str | int:
    """A name before a number: periods may be called 2026."""
    return int(text) if text.isdecimal() and text not in series.labels else text


def _facts(series: Series) -> dict[str, object]:
    return {"periods": series.periods, "published": list(series.labels)}


def _trend(trend: Trend) -> dict[str, object]:
    return {
        name: {
            "windows": list(trend.labels),
            "estimate": trend.estimates(name).tolist(),
            "std_error": trend.std_errors(name).tolist(),
            "conf_int": trend.conf_int(name).tolist(),
        }
        for name in trend.names
    }

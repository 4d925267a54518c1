"""`dpgram ledger …`: create a budget, look at it, compare it with releases."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dpgram.cli.console import (
    AdjacencyOption,
    JsonFlag,
    comma_separated,
    print_facts,
    print_json,
    require_writable,
    say,
    say_folded,
)
from dpgram.errors import DpgramError

if TYPE_CHECKING:
    from dpgram.privacy.ledger import Ledger
    from dpgram.privacy.ledger.remaining import Left

app = typer.Typer(help="Budgets: what a data set may spend and has spent.", rich_markup_mode=None)

Verbose = Annotated[
    bool, typer.Option("--verbose", "-v", help="Also in what the ledger adds up: μ², ρ or ε.")
]
LedgerFile = Annotated[Path, typer.Argument(metavar="LEDGER", help="A ledger file.")]


@app.command()
def create(
    ledger: LedgerFile,
    name: Annotated[str, typer.Option(help="Your name for the data set.")],
    epsilon: Annotated[float, typer.Option(help="The total budget ε of all releases together.")],
    delta: Annotated[float, typer.Option(help="The total δ; 0 for pure releases only.")],
    adjacency: AdjacencyOption = "add-remove",
    unit: Annotated[
        str | None, typer.Option(help="The column whose values are protected as a whole; rows by default.")
    ] = None,
    currency: Annotated[
        Literal["mu2", "rho", "epsilon"] | None, typer.Option(help="What adds up; chosen from δ by default.")
    ] = None,
    delta_reserved: Annotated[
        float,
        typer.Option(
            help="The part of δ, itself a probability below --delta, kept for mechanisms that need their own."
        ),
    ] = 0.0,
    as_json: JsonFlag = False,
) -> None:
    """Create the ledger of one data set.

    It never replaces a file.

    \b
    Example:
      dpgram ledger create insurance.ledger --name insurance \\
          --epsilon 3 --delta 1e-5
    """
    from dpgram.privacy.ledger import Ledger

    made = Ledger.create(
        ledger,
        name=name,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        unit=unit,
        currency=currency,
        delta_reserved=delta_reserved,
    )
    if as_json:
        print_json({"path": str(ledger), **_terms(made)})
    else:
        say_folded(f"created {ledger}: {made.left()}")


@app.command()
def show(ledger: LedgerFile, verbose: Verbose = False, as_json: JsonFlag = False) -> None:
    """Show the budget and every charge.

    \b
    Example:
      dpgram ledger show insurance.ledger
    """
    from dpgram.privacy.ledger import Ledger
    from dpgram.privacy.ledger.history import ledger_history

    book = Ledger.open(ledger)
    lines, left = ledger_history(book), book.left()
    if as_json:
        print_json({**_terms(book), "history": [asdict(line) for line in lines], "left": _left(left)})
        return
    say(f"{book.name}: {book.guarantee} for everything released together")
    who = "one row" if book.unit is None else f"one {book.unit!r}"
    print_facts({"neighbours": f"{book.adjacency}, {who}", "left": str(left)})
    if verbose:
        say(left.exact)
    for line in lines:
        say_folded(str(line) if verbose else line.plain)
    if not lines:
        say("no charges yet")


@app.command()
def left(ledger: LedgerFile, verbose: Verbose = False, as_json: JsonFlag = False) -> None:
    """Show what can still be spent.

    \b
    Example:
      dpgram ledger left insurance.ledger
    """
    from dpgram.privacy.ledger import Ledger

    rest = Ledger.open(ledger).left()
    if as_json:
        print_json(_left(rest))
        return
    say_folded(str(rest))
    if verbose:
        say(rest.exact)


@app.command("plan")
def plan_releases(
    releases: Annotated[int | None, typer.Option(min=1, help="How many releases in all.")] = None,
    per_year: Annotated[
        int | None, typer.Option(min=1, help="Releases a year, with --years: 12 for monthly ones.")
    ] = None,
    years: Annotated[int | None, typer.Option(min=1, help="For how many years, with --per-year.")] = None,
    each_epsilon: Annotated[
        float | None, typer.Option(help="ε of each release: tells how large a budget they need.")
    ] = None,
    total_epsilon: Annotated[
        float | None, typer.Option(help="ε of the whole budget: tells how large each release may be.")
    ] = None,
    delta: Annotated[
        float, typer.Option(help="δ of each release and of the budget; 0 for pure releases.")
    ] = 1e-6,
    as_json: JsonFlag = False,
) -> None:
    """Say how large a budget a series of releases needs.

    Or, with --total-epsilon, how large each of them may be. Counted as a ledger counts: Gaussian releases, or
    pure ones where δ is 0.

    \b
    Examples:
      dpgram ledger plan --per-year 12 --years 5 --each-epsilon 0.3
      dpgram ledger plan --releases 4 --total-epsilon 2
    """
    from dpgram.privacy.ledger import budget_for, release_for

    count = _how_many(releases, per_year, years)
    if (each_epsilon is None) == (total_epsilon is None):
        raise DpgramError(
            "give the size of each release or that of the budget",
            got="neither" if each_epsilon is None else "both",
            remedy="Give --each-epsilon 0.3, or --total-epsilon 3",
        )
    if each_epsilon is not None:
        total = budget_for(count, epsilon=each_epsilon, delta=delta)
        answer = (
            f"{count:,} releases of ε = {each_epsilon:g} need a budget of ε = {total.epsilon:g}"
            f"{_at(delta)}: dpgram ledger create LEDGER --name NAME --epsilon {total.epsilon:g} "
            f"--delta {total.delta:g}"
        )
        epsilons = (each_epsilon, total.epsilon)
    else:
        one = release_for(count, epsilon=float(total_epsilon or 0.0), delta=delta)
        answer = (
            f"a budget of ε = {total_epsilon:g}{_at(delta)} pays for {count:,} releases of "
            f"ε = {one.epsilon:.4g} each"
        )
        epsilons = (one.epsilon, float(total_epsilon or 0.0))
    if as_json:
        found = {"releases": count, "each_epsilon": epsilons[0], "total_epsilon": epsilons[1], "delta": delta}
        print_json(found)
    else:
        say_folded(answer)


def _how_many(releases: int | None, per_year: int | None, years: int | None) -> int:
    if releases is not None and per_year is None and years is None:
        return releases
    if releases is None and per_year is not None and years is not None:
        return per_year * years
    raise DpgramError(
        "it must be clear how many releases there will be",
        remedy="Give --releases 4, or --per-year 12 --years 5",
    )


def _at(delta: float) -> str:
    return f" at δ = {delta:g}" if delta else ""


@app.command()
def verify(
    ledger: LedgerFile,
    releases: Annotated[list[Path], typer.Argument(metavar="RELEASE...", help="Releases made from it.")],
    as_json: JsonFlag = False,
) -> None:
    """Check a ledger against its releases.

    Finds edited and cut-off entries, an older copy put back, and releases that were never paid for.

    \b
    Example:
      dpgram ledger verify insurance.ledger insurance.dpgram.json
    """
    from dpgram.privacy.ledger import Ledger
    from dpgram.release import load

    found = Ledger.open(ledger).verify({str(path): load(path) for path in releases})
    if as_json:
        print_json({"releases": found.releases, "entries": found.entries, "unclaimed": list(found.unclaimed)})
        return
    shown = found.entries - len(found.unclaimed)
    say(f"the ledger is intact, and {shown:,} of its {found.entries:,} charges are shown here")
    if found.unclaimed:
        say(f"charged, but not shown here: entry {comma_separated(found.unclaimed)}")


@app.command()
def plot(
    ledger: LedgerFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="The picture to write: PNG, SVG, PDF …")],
    dark: Annotated[bool, typer.Option("--dark", help="Use light colours on a dark background.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Draw what each charge took of the budget.

    \b
    Example:
      dpgram ledger plot insurance.ledger -o budget.svg
    """
    from dpgram.privacy.ledger import Ledger

    require_writable(output, overwrite=overwrite, inputs=[ledger])
    Ledger.open(ledger).plot(output, dark=dark)
    if as_json:
        print_json({"output": str(output)})
    else:
        say(f"wrote {output}")


def _terms(book: Ledger) -> dict[str, object]:
    return {
        "name": book.name,
        "epsilon": book.guarantee.epsilon,
        "delta": book.guarantee.delta,
        "adjacency": book.adjacency,
        "unit": book.unit,
        "currency": book.currency,
        "total": float(book.total),
        "spent": float(book.spent),
    }


def _left(left: Left) -> dict[str, object]:
    largest = left.largest
    return {
        "currency": left.currency,
        "amount": float(left.amount),
        "share": left.share,
        "more_like_the_last": left.more,
        "delta_reserved": float(left.delta),
        "largest_epsilon": None if largest is None else largest.epsilon,
        "at_delta": None if largest is None else largest.delta,
    }

"""The curator's commands: schema, check, publish."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, final

import typer

from dpgram.cli.console import (
    ADVANCED,
    AdjacencyOption,
    JsonFlag,
    SchemaFile,
    comma_separated,
    print_facts,
    print_json,
    print_table,
    require_writable,
    say,
    say_folded,
    split_names,
)
from dpgram.cli.databases import Query, asked_table
from dpgram.cli.federate import PassphraseFile, read_from
from dpgram.cli.mechanism_options import Degrees, Psd, Rank, Ridge, asked_mechanism
from dpgram.cli.model_options import Models, asked_models
from dpgram.cli.row_options import By, ExpectedRows, Missing, Radius, Strict, Unit, UnitRows, Weight
from dpgram.errors import DpgramError, LedgerError, OptionsError, ReleaseError, require_publish

if TYPE_CHECKING:
    from dpgram.core.units import PolicyCounts
    from dpgram.publishing import Adaptive, Check, ColumnCheck, CuratorReport
    from dpgram.release import Release
    from dpgram.schema import Schema

SAVED_ELSEWHERE: Final = 4
"""Exit code of `publish` where a release was paid for and its place could not be written: run it no second
time."""
LEARNING: Final = "What is measured before the matrix"
MUCH_IS_LOST: Final = 3
"""Exit code of `check` where over 5% of a column's cells, or 20% of the rows, cannot be used."""

Data = Annotated[
    str,
    typer.Argument(metavar="DATA", help="A file, a folder or a glob; with --query a database, or env:NAME."),
]
Threads = Annotated[
    int | None,
    typer.Option(min=1, help="Threads for reading and adding up.", rich_help_panel=ADVANCED),
]
Mechanism = Annotated[str, typer.Option(help="auto, or the name of a mechanism.", rich_help_panel=ADVANCED)]
Adapt = Annotated[
    bool,
    typer.Option(
        "--adaptive/--no-adaptive",
        help="Measure histograms and a rough matrix first, for better answers; learn what the schema leaves "
        "open. Without: one matrix of the columns as declared, and no row is clipped.",
        rich_help_panel=LEARNING,
    ),
]
Engine = Annotated[
    str,
    typer.Option(
        help="The engine that adds up the rows: auto, local, dask, spark or another by name.",
        rich_help_panel=ADVANCED,
    ),
]
Delta = Annotated[
    float | None, typer.Option(help="δ: the chance that this fails; 0 for a pure guarantee. Needed.")
]
LedgerOption = Annotated[Path | None, typer.Option("--ledger", "-l", help="The ledger that pays for it.")]


def schema(
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it; the screen by default.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    query: Query = None,
    sheet: Annotated[str | None, typer.Option(help="The sheet of a workbook that has several.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a starter schema for a table.

    It holds names and kinds of the columns and how they are written, for you to fill in; from Stata, SPSS and
    SAS also labels and labelled codes. The first rows are looked at: ids, dates and free text are pointed
    out, and kinds of text files are guessed. No value, bound or level of the data is in it: these must come
    from public knowledge.

    \b
    Examples:
      dpgram schema insurance.parquet -o insurance.toml
      dpgram schema survey.sav -o survey.toml
    """
    require_publish()
    from dpgram.publishing.starter import guessed_layout, starter_schema
    from dpgram.sources import column_types

    if output is not None:
        require_writable(output, overwrite=overwrite, tables=[data])
    table = asked_table([data], query)
    starter = starter_schema(table, sheet=sheet)
    types = column_types(table, guessed_layout(table, sheet))
    if output is not None:
        output.write_text(starter, encoding="utf-8")
    if as_json:
        print_json({"columns": types, "output": None if output is None else str(output)})
    elif output is None:
        say(starter.rstrip("\n"), as_it_is=True)
    else:
        say(f"wrote {output}: {len(types)} columns. Fill in bounds and levels from public knowledge")


def codebook(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A schema (TOML) or a release file.")],
    markdown: Annotated[bool, typer.Option("--markdown", help="Markdown instead of plain text.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Show what each column means.

    Labels, bounds and where they come from, units, levels and how cells are written, as the schema says.

    \b
    Examples:
      dpgram codebook insurance.toml
      dpgram codebook insurance.dpgram.json --markdown > codebook.md
    """
    from dpgram.release import load
    from dpgram.schema import Schema

    declared = load(file).schema if file.suffix.lower() == ".json" else Schema.from_file(file)
    if as_json:
        print_json(declared.to_dict())
    else:
        say(declared.codebook("markdown" if markdown else "text").rstrip("\n"), as_it_is=markdown)


def check(
    data: Annotated[
        list[str],
        typer.Argument(
            metavar="DATA...", help="Files, a folder or a glob; with --query a database, or env:NAME."
        ),
    ],
    schema: SchemaFile,
    epsilon: Annotated[
        float | None, typer.Option(help="ε of the release to come: tells its price as well.")
    ] = None,
    delta: Annotated[
        float | None, typer.Option(help="δ of the release to come; needed with --epsilon.")
    ] = None,
    ledger: LedgerOption = None,
    query: Query = None,
    as_json: JsonFlag = False,
    unit: Unit = None,
    unit_rows: UnitRows = None,
    weight: Weight = None,
    by: By = None,
    missing: Missing = "drop",
    strict: Strict = False,
    radius: Radius = None,
    expected: ExpectedRows = None,
    adaptive: Adapt = True,
    model: Models = None,
    adjacency: AdjacencyOption = "add-remove",
    mechanism: Mechanism = "auto",
    engine: Engine = "auto",
    threads: Threads = None,
) -> None:
    """Dry run: what a release would do to a table.

    Reads everything, spends and writes nothing. The counts are exact, hence sensitive: they are for you, not
    for publication, and bounds or levels that are changed because of them are no longer public facts. How
    cells are written may be mended: each column of which much is lost is named, with the likely cause and the
    line for the schema.

    The exit code is 3 where over 5% of a column's cells hold something that cannot be used, or over 20% of
    the rows are dropped.

    \b
    Examples:
      dpgram check insurance.parquet --schema insurance.toml
      dpgram check visits.csv -s visits.toml --unit patient \\
          --epsilon 1 --delta 1e-6 --ledger clinic.ledger
    """
    require_publish()
    from dpgram.engines.find import find_engine
    from dpgram.publishing import check as dry_run
    from dpgram.rows import Rows
    from dpgram.schema import Schema

    table, declared = asked_table(data, query), Schema.from_file(schema)
    found = dry_run(
        table,
        declared,
        epsilon=epsilon,
        delta=(delta or 0.0) if epsilon is None else given_delta(delta),
        ledger=ledger,
        rows=Rows(
            unit=unit,
            unit_rows=unit_rows,
            weight=weight,
            by=by,
            missing=missing,
            strict=strict,
            radius=radius,
            expected=expected,
        ),
        adaptive=adaptive,
        mechanism=mechanism,
        adjacency=adjacency,
        models=asked_models(model, declared),
        engine=find_engine(engine, table, threads=threads),
        progress=False if as_json else None,
    )
    if as_json:
        counts = {name: asdict(each) for name, each in found.counts.items()}
        print_json(
            {
                "columns": {name: kind for name, _, kind in found.columns},
                "encoded_columns": found.encoded_columns,
                "radius": found.radius,
                "price": None if found.price is None else asdict(found.price),
                "curator_only": {
                    "counts": counts.get("all", counts),
                    "columns": [_column_json(column) for column in found.table],
                    "causes": [asdict(cause) for cause in found.causes],
                    "warnings": list(found.warnings),
                    "much_is_lost": found.much_is_lost,
                },
                "seconds": found.seconds,
            }
        )
    else:
        print_check(found)
    if found.much_is_lost:
        raise typer.Exit(MUCH_IS_LOST)


def print_check(found: Check) -> None:
    """What a check has found, for the curator's screen."""
    print_table(found.columns, ("column", "declared", "in the data"))
    longest = "to be learnt" if found.radius is None else f"{found.radius:.4g}"
    say(f"\n{found.encoded_columns} encoded columns, row radius {longest}; read in {found.seconds:.2f} s")
    if found.price is not None:
        say_folded(
            f"publish would use {found.price.mechanism} ({found.price.reason}); charge: {found.price.charge}"
        )
    say("\nFor the curator only (exact counts, not private):")
    for name, each in found.counts.items():
        if name != "all":
            say(f"\n{name}:")
        print_facts(policy_counts(each))
    if found.losses is None:
        say("\nnothing is said of columns: a stream can be read only once, and these sums have no rows")
    else:
        say("\n" + found.summary())
    for warning in (*found.header_warnings, *found.schema_warnings, *found.row_warnings):
        say(f"! {warning}")
    if found.much_is_lost:
        say("\ndpgram: much of the table would be lost: mend the schema before you publish", err=True)


def _column_json(column: ColumnCheck) -> dict[str, object]:
    """Counts without the words that were lost: what goes to a file should hold no cell."""
    words = {"lost_words", "read_words", "numbers_outside"}
    return {name: value for name, value in asdict(column).items() if name not in words}


def publish(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", help="Parquet or CSV files, a folder, a glob, an address."),
    ],
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="ε: how much one row may change the odds of any outcome.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    delta: Delta = None,
    ledger: LedgerOption = None,
    no_ledger: Annotated[
        bool, typer.Option("--no-ledger", help="Keep no count of what the data set has spent.")
    ] = False,
    sign: Annotated[
        Path | None, typer.Option(help="Sign the release with the private key in this file.")
    ] = None,
    note: Annotated[
        str, typer.Option(help="A note for the ledger; it must not reveal anything about the data.")
    ] = "",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    query: Query = None,
    as_json: JsonFlag = False,
    unit: Unit = None,
    unit_rows: UnitRows = None,
    weight: Weight = None,
    by: By = None,
    missing: Missing = "drop",
    strict: Strict = False,
    radius: Radius = None,
    expected: ExpectedRows = None,
    adaptive: Adapt = True,
    model: Models = None,
    bounds_share: Annotated[
        float | None,
        typer.Option(help="Share of the budget for learning bounds.", rich_help_panel=LEARNING),
    ] = None,
    levels_share: Annotated[
        float | None,
        typer.Option(help="Share of the budget for learning levels.", rich_help_panel=LEARNING),
    ] = None,
    histograms_share: Annotated[
        float | None,
        typer.Option(help="Share of the budget for a histogram of every column.", rich_help_panel=LEARNING),
    ] = None,
    first_share: Annotated[
        float | None,
        typer.Option(help="Share of the budget for a first, rough matrix.", rich_help_panel=LEARNING),
    ] = None,
    adjacency: AdjacencyOption = "add-remove",
    mechanism: Mechanism = "auto",
    ridge: Ridge = None,
    rank: Rank = None,
    degrees: Degrees = None,
    psd: Psd = False,
    blocks: Annotated[
        str | None,
        typer.Option(
            help="Columns of each release, as a,b;a,c: several share the budget.", rich_help_panel=ADVANCED
        ),
    ] = None,
    engine: Engine = "auto",
    threads: Threads = None,
    partials: Annotated[
        bool,
        typer.Option(
            "--partials",
            help="DATA are partial sums of several sites (dpgram gram --partial).",
            rich_help_panel=ADVANCED,
        ),
    ] = False,
    disjoint_units: Annotated[
        bool,
        typer.Option(
            "--disjoint-units", help="Declare that no unit has rows at two sites.", rich_help_panel=ADVANCED
        ),
    ] = False,
    passphrase_file: PassphraseFile = None,
) -> None:
    """Publish a table's private matrix.

    The only step that reads rows for analysts, and the only one that spends budget. It needs --ledger, or
    --no-ledger to say that nothing shall keep count of what the data set has spent.

    With --partials it reads no row: the sites did, and here their sums are merged and published.

    Where the place of -o cannot be written once the release is paid for, it is saved elsewhere; the exit code
    is 4 then, and the message says where.

    With --by or --blocks it writes several files, named after -o: insurance.north.dpgram.json and so on.

    \b
    Examples:
      dpgram publish insurance.parquet --schema insurance.toml \\
          --epsilon 1 --delta 1e-6 --ledger insurance.ledger \\
          -o insurance.dpgram.json
      dpgram publish insurance.csv -s insurance.toml \\
          --epsilon 0.5 --delta 0 --no-ledger -o pure.dpgram.json
      dpgram publish insurance.csv -s insurance.toml --no-adaptive \\
          --epsilon 1 --delta 1e-6 --ledger insurance.ledger -o plain.dpgram.json
      dpgram publish insurance.csv -s insurance.toml \\
          --epsilon 1 --delta 1e-6 --ledger insurance.ledger \\
          --model linear:charges --model "logistic:smoker~age,bmi" \\
          -o models.dpgram.json
    """
    from dpgram.core.noise import SystemEntropy
    from dpgram.engines.find import find_engine
    from dpgram.privacy.ledger import Ledger
    from dpgram.publishing.publisher import form_of, published
    from dpgram.publishing.request import requested
    from dpgram.release.signing import SigningKey
    from dpgram.rows.rules import Rows
    from dpgram.schema import Schema

    budget = given_delta(delta)
    refuse_unclear_payment(ledger, no_ledger=no_ledger)
    declared = Schema.from_file(schema)
    if blocks is not None and declared.blocks is not None:
        raise OptionsError(
            "the schema has blocks of its own",
            got=f"blocks in {schema} and --blocks",
            remedy="Leave --blocks out, or take the blocks out of the schema",
        )
    if blocks is not None:
        declared = declared.with_blocks([split_names(block) or [] for block in blocks.split(";")])
    outputs = _outputs(output, declared, by)
    for place in outputs:
        require_writable(
            place, overwrite=overwrite, inputs=[schema, ledger, sign, passphrase_file], tables=data
        )
    key = (
        None if sign is None else SigningKey.open(sign)
    )  # a key that cannot be used is found before the charge
    book = None if ledger is None else Ledger.open(ledger)
    reports: list[CuratorReport] = []
    table: object = asked_table(data, query)
    if query is not None and (partials or disjoint_units or passphrase_file is not None):
        raise OptionsError(
            "--partials, --disjoint-units and --passphrase-file are for sums of several sites",
            got="--query, which reads a database",
            remedy="Leave --query or the others out",
        )
    if query is None:
        table = read_from(
            data, partials=partials, disjoint_units=disjoint_units, passphrase_file=passphrase_file
        )
    chosen = find_engine(engine, table, threads=threads)
    request = requested(
        declared,
        epsilon=epsilon,
        delta=budget,
        rows=Rows(
            unit=unit,
            unit_rows=unit_rows,
            weight=weight,
            by=by,
            missing=missing,
            strict=strict,
            radius=radius,
            expected=expected,
        ),
        adaptive=_adaptive(
            adaptive,
            bounds=bounds_share,
            levels=levels_share,
            histograms=histograms_share,
            first=first_share,
        ),
        mechanism=asked_mechanism(mechanism, ridge=ridge, rank=rank, degrees=degrees, psd=psd),
        adjacency=adjacency,
        note=note,
        models=asked_models(model, declared),
        beside=form_of(table, chosen),
    )
    with telling_of_a_charge(ledger) as kept:
        with published(
            table,
            request,
            engine=chosen,
            ledger=book,
            entropy=SystemEntropy(),
            progress=False if as_json else None,
            report=reports.append,
        ) as found:
            # Until the files are written, what was paid for stays beside the ledger.
            releases = [release if key is None else release.sign(key) for release in found]
            saved = [
                _keep(release, place, overwrite=overwrite)
                for release, place in zip(releases, outputs, strict=True)
            ]
        kept.extend(saved)
        # Where something is learnt there is an early one too; where all was drawn before an interrupt, none.
        told_of: list[CuratorReport | None] = [*reports[-len(releases) :]] or [None] * len(releases)
        if as_json:
            told = [_as_json(*one) for one in zip(releases, saved, told_of, strict=True)]
            print_json(told[0] if by is None and declared.blocks is None else told)
        else:
            _print_published(releases, saved, told_of)
            if book is not None:
                say_folded(f"{book.name}: {book.left_after(releases[0].receipts)}")
    if saved != outputs:
        raise typer.Exit(SAVED_ELSEWHERE)


def _print_published(
    releases: Sequence[Release], saved: Sequence[Path], told_of: Sequence[CuratorReport | None]
) -> None:
    for release, report in zip(releases, told_of, strict=True):
        say(str(release))
        if report is not None:
            say("\nFor the curator only (exact counts, not in the release):")
            print_facts(policy_counts(report.counts))
        say("")
    say(f"wrote {comma_separated(saved)}")


def given_delta(delta: float | None) -> float:
    """δ is half of the promise: nobody gets another one by forgetting it."""
    if delta is None:
        raise DpgramError(
            "--delta is missing: the chance with which the promise of --epsilon may fail",
            remedy="Give --delta 1e-6 (far below one in the number of rows), or --delta 0 for a pure promise",
        )
    return delta


def refuse_unclear_payment(ledger: Path | None, *, no_ledger: bool) -> None:
    if (ledger is None) == (not no_ledger):
        raise DpgramError(
            "it is not clear whether a ledger pays",
            got="neither --ledger nor --no-ledger" if ledger is None else "both --ledger and --no-ledger",
            remedy="Give --ledger FILE (make one with: dpgram ledger create), or --no-ledger: then nothing "
            "keeps count of what this data set has spent",
        )


@final
class InterruptedAfterCharge(typer.Abort):
    """An interrupt after which nobody may say that nothing was spent."""


@contextmanager
def telling_of_a_charge(path: Path | None) -> Iterator[list[Path]]:
    """Interrupted after a charge: say which entries were charged; the same command goes on from them.

    The block adds to the list what it has finished: with that, nothing is left to go on with.
    """
    from dpgram.privacy.ledger import Ledger

    before = None if path is None or not path.exists() else Ledger.open(path).entries
    finished: list[Path] = []
    try:
        yield finished
    except DpgramError as problem:
        problem.charged = problem.charged or bool(finished) or _charged_since(path, before) != ()
        raise
    except (KeyboardInterrupt, typer.Abort):
        charged = _charged_since(path, before)
        if charged == () and not finished:
            raise
        if charged:
            numbers = " and ".join(map(str, charged))
            were = "entries {} of the ledger were" if len(charged) > 1 else "entry {} of the ledger was"
            say(
                f"dpgram: {were.format(numbers)} charged before the interrupt. {_left_to_do(finished)}",
                err=True,
            )
        raise InterruptedAfterCharge from None


def _charged_since(path: Path | None, before: int | None) -> tuple[int, ...] | None:
    """The numbers of the entries that came since; None where the ledger cannot tell."""
    from dpgram.privacy.ledger import Ledger

    if path is None or before is None:
        return ()
    try:
        return tuple(entry.number for entry in Ledger.open(path).history() if entry.number > before)
    except LedgerError:
        return None


def _left_to_do(finished: Sequence[Path]) -> str:
    if finished:
        return f"The release is whole: {comma_separated(finished)}"
    return "Run the same command again: it continues from there and charges nothing twice"


def _adaptive(asked: bool, **shares: float | None) -> bool | Adaptive:
    """The usual shares, but for those that were given."""
    from dpgram.publishing import Adaptive

    given = {name: share for name, share in shares.items() if share is not None}
    if given and not asked:
        raise OptionsError(
            "shares of the budget are for an adaptive release", got="--no-adaptive", remedy="Leave one out"
        )
    return Adaptive(**given) if given else asked


def _outputs(output: Path, schema: Schema, by: str | None) -> list[Path]:
    """`output`, or one name for each group or block: insurance.north.dpgram.json, insurance.block-1.…"""
    from dpgram.job import Outputs

    return [part.release for part in Outputs(release=output).for_parts(schema, by)]


def _as_json(release: Release, saved: Path, report: CuratorReport | None) -> dict[str, object]:
    return {
        "output": str(saved),
        "digest": release.digest,
        "epsilon": release.guarantee.epsilon,
        "delta": release.guarantee.delta,
        "mechanism": release.mechanism.name,
        "reason": release.mechanism.choice,
        "part": release.part,
        "curator_only": {"counts": None if report is None else asdict(report.counts)},
    }


def _keep(release: Release, output: Path, *, overwrite: bool) -> Path:
    """Save it; elsewhere when its place was taken or closed since it was checked: it has been paid for."""
    try:
        return release.save(output, overwrite=overwrite)
    except ReleaseError as problem:
        try:
            saved = release.save(Path(tempfile.mkdtemp(prefix="dpgram-")) / output.name)
        except (OSError, ReleaseError) as worse:
            paid = release.receipt
            numbers = " and ".join(str(each.entry) for each in release.receipts)
            number = "entries" if len(release.receipts) > 1 else "entry"
            entry = "" if paid is None else f" ({number} {numbers} of its ledger)"
            remedy = "Make room and publish again"
            if paid is not None:
                remedy = "Make room and run the same command again: it charges and draws nothing again"
            raise ReleaseError(
                f"the release was paid for{entry} but could not be written anywhere",
                got=f"{problem}; {worse}",
                remedy=remedy,
            ) from problem
        say(f"dpgram: warning: {problem}; it was saved as {saved}", err=True)
        return saved


def policy_counts(counts: PolicyCounts) -> dict[str, str]:
    """What every table has, and of the rest what happened: units, groups and weights are rare."""
    always = {"rows_read", "rows_used", "rows_dropped", "cells_clamped", "cells_missing", "cells_unknown"}
    return {
        name.replace("_", " "): f"{value:,}"
        for name, value in asdict(counts).items()
        if value or name in always or name == "rows_clipped"
    }

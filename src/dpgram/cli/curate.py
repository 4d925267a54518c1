"""The curator's commands: schema, check, publish."""

from __future__ import annotations

import tempfile
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from dpgram.cli.console import (
    AdjacencyOption,
    JsonFlag,
    SchemaFile,
    print_facts,
    print_json,
    print_table,
    require_writable,
    say,
)
from dpgram.errors import ReleaseError

if TYPE_CHECKING:
    from dpgram.curator import Report
    from dpgram.encoding import PolicyCounts
    from dpgram.release import Release

Data = Annotated[str, typer.Argument(metavar="DATA", help="A Parquet or CSV file, a folder or a glob.")]
Clip = Annotated[float | None, typer.Option(help="A public row radius; by default nothing is clipped.")]
Missing = Annotated[
    Literal["drop", "midpoint"], typer.Option(help="Rows with a missing value: leave out, or fill in.")
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at the first value outside the schema (a public promise).")
]
Threads = Annotated[int | None, typer.Option(min=1, help="Threads for reading and adding up.")]
Mechanism = Annotated[str, typer.Option(help="auto, or a name from the reference of mechanisms.")]
LedgerOption = Annotated[Path | None, typer.Option("--ledger", "-l", help="The ledger that pays for it.")]


def schema(
    data: Data,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write it; the screen by default.")
    ] = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Write a starter schema for a table.

    It holds names and types of the columns only, for you to fill in. No value is read: bounds and levels must
    come from public knowledge.

    \b
    Example:
      dpgram schema insurance.parquet -o insurance.toml
    """
    from dpgram.schema import starter_toml
    from dpgram.sources import column_types

    types = column_types(data)
    if output is not None:
        require_writable(output, overwrite=overwrite)
        output.write_text(starter_toml(types), encoding="utf-8")
    if as_json:
        print_json({"columns": types, "output": None if output is None else str(output)})
    elif output is None:
        say(starter_toml(types).rstrip("\n"))
    else:
        say(f"wrote {output}: {len(types)} columns. Fill in bounds and levels from public knowledge")


def check(
    data: Data,
    schema: SchemaFile,
    clip: Clip = None,
    missing: Missing = "drop",
    strict: Strict = False,
    threads: Threads = None,
    as_json: JsonFlag = False,
) -> None:
    """Dry run: what a schema does to a table.

    Reads everything, spends and writes nothing. The counts are exact, hence sensitive: they are for you, not
    for publication, and a schema that is changed because of them is no longer made of public facts alone.

    \b
    Example:
      dpgram check insurance.parquet --schema insurance.toml
    """
    from dpgram.encoding import Encoder
    from dpgram.engines.local import gram
    from dpgram.schema import Schema
    from dpgram.sources import column_types

    declared = Schema.from_file(schema)
    radius = Encoder(declared, clip=clip, missing=missing, strict=strict).radius
    types = column_types(data)
    started = time.perf_counter()
    bar: Literal[False] | None = False if as_json else None
    exact = gram(data, declared, clip, missing=missing, strict=strict, threads=threads, progress=bar)
    seconds = time.perf_counter() - started
    if as_json:
        print_json(
            {
                "columns": {name: types.get(name) for name in declared.source_columns},
                "encoded_columns": declared.width,
                "radius": radius,
                "curator_only": {"counts": asdict(exact.counts)},
                "seconds": seconds,
            }
        )
        return
    print_table(
        [(column.name, column.kind, types.get(column.name, "computed")) for column in declared.columns],
        ("column", "declared", "in the data"),
    )
    say(f"\n{declared.width} encoded columns, row radius {radius:.4g}; read in {seconds:.2f} s")
    say("\nFor the curator only (exact counts, not private):")
    print_facts(_counts(exact.counts))


def publish(
    data: Data,
    schema: SchemaFile,
    epsilon: Annotated[float, typer.Option(help="ε: how much one row may change the odds of any outcome.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The release file to write.")],
    delta: Annotated[
        float, typer.Option(help="δ: the chance that this fails; 0 for a pure guarantee.")
    ] = 0.0,
    ledger: LedgerOption = None,
    adjacency: AdjacencyOption = "add-remove",
    mechanism: Mechanism = "auto",
    clip: Clip = None,
    missing: Missing = "drop",
    strict: Strict = False,
    rows: Annotated[int | None, typer.Option(help="A public guess of the number of rows.")] = None,
    ridge: Annotated[float | None, typer.Option(help="A public ridge, for inverse-noise.")] = None,
    rank: Annotated[
        int | None, typer.Option(help="Directions to keep, for eigenvectors and deflation.")
    ] = None,
    degrees: Annotated[
        int | None, typer.Option(help="Degrees of freedom, for sketches and the Wishart family.")
    ] = None,
    psd: Annotated[
        bool,
        typer.Option("--psd", help="Publish a positive semidefinite matrix; auto then chooses among those."),
    ] = False,
    note: Annotated[str, typer.Option(help="A remark for the ledger; it must not speak of the data.")] = "",
    threads: Threads = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace an existing file.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Publish a table's private matrix.

    The only step that reads rows for analysts, and the only one that costs budget. Without --ledger nothing
    keeps count of what the data set has spent.

    \b
    Examples:
      dpgram publish insurance.parquet --schema insurance.toml --epsilon 1 --delta 1e-6 \\
          --ledger insurance.ledger -o insurance.dpgram.json
      dpgram publish insurance.csv -s insurance.toml --epsilon 0.5 -o pure.dpgram.json
    """
    from dpgram.curator import publish as run
    from dpgram.privacy.ledger import Ledger
    from dpgram.schema import Schema

    require_writable(output, overwrite=overwrite)
    declared = Schema.from_file(schema)
    book = None if ledger is None else Ledger.open(ledger)
    reports: list[Report] = []
    release = run(
        data,
        declared,
        epsilon=epsilon,
        delta=delta,
        adjacency=adjacency,
        clip=clip,
        mechanism=mechanism,
        ledger=book,
        missing=missing,
        strict=strict,
        rows=rows,
        ridge=ridge,
        rank=rank,
        degrees=degrees,
        psd=psd,
        threads=threads,
        progress=False if as_json else None,
        report=reports.append,
        note=note,
    )
    saved = _keep(release, output)
    if as_json:
        print_json(
            {
                "output": str(saved),
                "digest": release.digest,
                "epsilon": release.guarantee.epsilon,
                "delta": release.guarantee.delta,
                "mechanism": release.mechanism.name,
                "reason": release.mechanism.choice,
                "curator_only": {"counts": asdict(reports[0].counts)},
            }
        )
        return
    say(str(release))
    say("\nFor the curator only (exact counts, not in the release):")
    print_facts(_counts(reports[0].counts))
    say(f"\nwrote {saved}" + ("" if book is None else f"; {book.left()}"))
    if book is None:
        say("no ledger was given: nothing keeps count of what this data set has spent", err=True)


def _keep(release: Release, output: Path) -> Path:
    """Save it; when the place has become unwritable since it was checked, elsewhere: it has been paid for."""
    try:
        return release.save(output)
    except ReleaseError as problem:
        folder = Path(tempfile.mkdtemp(prefix="dpgram-"))
        saved = release.save(folder / output.name)
        say(f"dpgram: warning: {problem}; it was saved as {saved}", err=True)
        return saved


def _counts(counts: PolicyCounts) -> dict[str, str]:
    return {name.replace("_", " "): f"{value:,}" for name, value in asdict(counts).items()}

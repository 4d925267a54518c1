"""The commands of several sites: gram --partial at each of them; publish --partials reads what it wrote."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from dpgram.cli.console import ADVANCED, JsonFlag, SchemaFile, print_json, say
from dpgram.cli.row_options import Missing, Radius, Strict, Unit, UnitRows
from dpgram.errors import DpgramError

if TYPE_CHECKING:
    from dpgram.engines.federated import Partials

PassphraseFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--passphrase-file",
        help="A file whose first line is the passphrase of the partial sums.",
        rich_help_panel=ADVANCED,
    ),
]


def gram(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA...", help="Parquet or CSV files, a folder, a glob, an address."),
    ],
    schema: SchemaFile,
    partial: Annotated[Path, typer.Option("--partial", "-p", help="The file to write. It is not private.")],
    radius: Radius = None,
    missing: Missing = "drop",
    strict: Strict = False,
    unit: Unit = None,
    unit_rows: UnitRows = None,
    site: Annotated[str, typer.Option(help="The name of this site: two partials of one are refused.")] = "",
    passphrase_file: PassphraseFile = None,
    engine: Annotated[
        str,
        typer.Option(help="The engine that adds up the rows: auto, local, dask, spark or another by name."),
    ] = "auto",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads for reading and adding up.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Add up one site's rows for a joint release.

    Writes exact sums, which are NOT private and as sensitive as the table: the file is for its owner alone.
    The centre merges the files of all sites with dpgram publish --partials. Schema and options must be the
    same everywhere. Nothing is spent here.

    \b
    Example:
      dpgram gram north.parquet -s joint.toml --partial north.partial \\
          --site north --passphrase-file secret
    """
    from dpgram.engines.federated import partial_gram
    from dpgram.rows.rules import Rows
    from dpgram.schema import Schema

    if partial.exists():
        raise DpgramError(f"the file {str(partial)!r} exists already", remedy="Choose another name")
    secret = _passphrase(passphrase_file)
    made = partial_gram(
        _table(data),
        Schema.from_file(schema),
        rows=Rows(radius=radius, missing=missing, strict=strict, unit=unit, unit_rows=unit_rows),
        site=site,
        engine=engine,
        threads=threads,
        progress=False if as_json else None,
    )
    saved = made.save(partial, passphrase=secret)
    if as_json:
        print_json({"output": str(saved), "id": made.id, "site": made.site, "locked": secret is not None})
        return
    say(f"wrote {saved}: partial {made.id}")
    say(
        "NOT PRIVATE: it holds exact sums of the rows. Send it only to the centre that makes the release",
        err=True,
    )
    if secret is None:
        say(
            "NOT LOCKED: only the permissions of the file (0600) protect it. Give --passphrase-file", err=True
        )


def read_from(
    data: list[str], *, partials: bool, disjoint_units: bool, passphrase_file: Path | None
) -> str | list[str] | Partials:
    """What the arguments of `publish` mean: tables, or the partial sums of several sites."""
    if partials:
        from dpgram.engines.federated import Partials

        return Partials(files=data, passphrase=_passphrase(passphrase_file), disjoint_units=disjoint_units)
    if disjoint_units or passphrase_file is not None:
        raise DpgramError("--disjoint-units and --passphrase-file are for --partials")
    return _table(data)


def _table(data: list[str]) -> str | list[str]:
    return data[0] if len(data) == 1 else data


def _passphrase(path: Path | None) -> str | None:
    if path is None:
        return None
    try:
        words = path.read_text(encoding="utf-8").split("\n")[0].rstrip("\r")
    except UnicodeDecodeError:
        words = None
    if words is None:  # outside the handler: the context of an error would quote bytes of the secret
        raise DpgramError(
            f"the passphrase file {str(path)!r} is not UTF-8 text",
            remedy="Save the passphrase as one line of UTF-8 text",
        )
    if not words:
        raise DpgramError(f"the first line of {str(path)!r} is empty", remedy="Write the passphrase into it")
    return words

"""What the commands share: options with one meaning everywhere, JSON or text, tables."""

from __future__ import annotations

import csv
import json
import math
import tempfile
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Final, Literal, TypeAlias

import typer

from dpgram.document.terminal import printable
from dpgram.errors import DpgramError
from dpgram.files import refuse_ledger, same_as
from dpgram.schema import Schema

WIDTH: Final = 80
"""Columns of a terminal that nobody has widened."""
ADVANCED: Final = "Advanced"
"""Where a command's help lists what few people need."""

JsonFlag: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON instead of text.")]
ReleaseFile: TypeAlias = Annotated[Path, typer.Argument(metavar="RELEASE", help="A release file.")]
Level: TypeAlias = Annotated[float, typer.Option(help="Confidence level of the intervals.")]
KindOption: TypeAlias = Annotated[
    Literal["population", "table"],
    typer.Option(help="Intervals for the population, or for the table itself (privacy noise only)."),
]
SchemaFile: TypeAlias = Annotated[
    Path, typer.Option("--schema", "-s", help="The schema, a TOML file of public facts.")
]
AdjacencyOption: TypeAlias = Annotated[
    Literal["add-remove", "replace-one"],
    typer.Option(
        help="Who is a neighbour; replace-one makes the number of rows public.", rich_help_panel=ADVANCED
    ),
]


def say(text: str, *, err: bool = False, as_it_is: bool = False) -> None:
    """Lines of text, sentences folded to the width of a terminal, unless somebody else shall read them.

    Names from files cannot carry control characters to the terminal.
    """
    shown = printable(text)
    typer.echo(shown if as_it_is else "\n".join(map(_folded, shown.split("\n"))), err=err)


def _folded(line: str) -> str:
    """Between words, below where it began; a line of a table stays one, and one with a long path."""
    indent = line[: len(line) - len(line.lstrip())]
    longest = max(map(len, line.split()), default=0)
    if len(line) <= WIDTH or "  " in line.strip() or longest > WIDTH // 2:
        return line
    return textwrap.fill(
        line, WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def say_folded(text: str, *, before: str = "") -> None:
    """A sentence, folded between words to the width of a terminal, below where it began."""
    say(
        textwrap.fill(
            text,
            WIDTH,
            initial_indent=before,
            subsequent_indent=" " * len(before),
            break_long_words=False,
            break_on_hyphens=False,
        )
    )


def print_json(value: object) -> None:
    """One JSON document; what is not a number (NaN) is null, as JSON has no word for it."""
    typer.echo(json.dumps(_clean(value), indent=1))


def print_table(rows: Sequence[Sequence[str]], header: Sequence[str]) -> None:
    """Aligned columns: the first to the left, the others to the right; those that do not fit, below."""
    widths = [max(map(len, column)) for column in zip(header, *rows, strict=True)]
    for number, block in enumerate(_blocks(widths)):
        if number:
            say("")
        for row in [header, *rows]:
            cells = [row[0].ljust(widths[0]), *(row[place].rjust(widths[place]) for place in block)]
            say("  ".join(["  " + cells[0], *cells[1:]]).rstrip())


def _blocks(widths: Sequence[int]) -> list[list[int]]:
    """Which columns stand side by side beside the first one."""
    blocks: list[list[int]] = [[]]
    for place, width in enumerate(widths[1:], 1):
        taken = 2 + widths[0] + sum(2 + widths[other] for other in blocks[-1])
        if blocks[-1] and taken + 2 + width > WIDTH:
            blocks.append([])
        blocks[-1].append(place)
    return blocks


def print_facts(facts: Mapping[str, str]) -> None:
    """Names and values, aligned."""
    width = max(map(len, facts))
    for name, value in facts.items():
        say_folded(value, before=f"  {name:<{width}}  ")


def split_names(text: str | None) -> list[str] | None:
    """`a,b,c` → its names; nothing for nothing."""
    if text is None:
        return None
    return [name.strip() for name in text.split(",") if name.strip()]


def given_names(texts: Sequence[str] | None, schema: Schema) -> list[str] | None:
    """Names of columns from options: each a whole name if there is such a column, else several."""
    if texts is None:
        return None
    names: list[str] = []
    for text in texts:
        if text.strip() in _names_of(schema):
            names.append(text.strip())
        else:
            (cells,) = csv.reader([text], skipinitialspace=True)
            names += [cell.strip() for cell in cells if cell.strip()]
    if not names:
        raise DpgramError(
            "an option that names columns is empty",
            got=comma_separated(map(repr, texts)),
            remedy="Name columns with commas between them, or leave the option out",
        )
    return names


def _names_of(schema: Schema) -> set[str]:
    return {*schema.names, *(column.name for column in schema.columns)}


def given_pairs(texts: Sequence[str] | None, schema: Schema) -> dict[str, str]:
    """`column=level` → both; either may hold the sign itself, so the longest column that fits is taken."""
    found: dict[str, str] = {}
    for text in texts or ():
        fits = [column.name for column in schema.columns if text.startswith(f"{column.name}=")]
        if not fits:
            column, sign, _ = text.partition("=")
            if sign:
                schema.column(column)  # it says which names are near
            raise DpgramError(
                "a reference level is given as COLUMN=LEVEL",
                got=repr(text),
                limit=comma_separated(column.name for column in schema.columns if column.group_levels),
            )
        name = max(fits, key=len)
        found[name] = text[len(name) + 1 :]
    return found


def require_writable(
    path: Path, *, overwrite: bool, inputs: Iterable[Path | None] = (), tables: Sequence[str] = ()
) -> None:
    """Refuse an output path before anything is read, or spent on what shall go there.

    `inputs` and `tables` are what the same call reads: no output may take their place.
    """
    if path.is_dir():
        raise DpgramError(f"the output {path} is a folder", remedy="Name a file in it")
    _refuse_inputs(path, [each for each in inputs if each is not None], tables)
    refuse_ledger(path)
    if path.exists() and not overwrite:
        raise DpgramError(f"the output {path} exists already", remedy="Choose another, or add --overwrite")
    try:
        tempfile.TemporaryFile(dir=path.parent).close()
    except OSError as problem:
        raise DpgramError(
            f"the output {path} cannot be written",
            got=problem.strerror or type(problem).__name__,
            remedy="Choose a folder that exists and may be written",
        ) from problem


def _refuse_inputs(output: Path, inputs: Iterable[Path], tables: Sequence[str]) -> None:
    read = list(inputs)
    if tables and output.exists():
        from dpgram.sources.files import files_named

        read += files_named([*tables])
    taken = same_as(output, read)
    if taken is not None:
        raise DpgramError(
            f"the output {output} would replace what this command reads",
            got=None if taken == output else f"the file {taken}",
            remedy="Choose another output",
        )


def comma_separated(items: Iterable[object]) -> str:
    return ", ".join(map(str, items))


def _clean(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _clean(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_clean(inner) for inner in value]
    return value

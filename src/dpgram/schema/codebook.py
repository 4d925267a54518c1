"""A schema as a codebook for people: what each column is, its bounds or levels, and where these come from."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, Literal

from dpgram.errors import SchemaError
from dpgram.schema.columns import Column, SourceColumn

if TYPE_CHECKING:
    from dpgram.schema.schema import Schema

Form = Literal["text", "markdown"]
LINE: Final = 80


def codebook(schema: Schema, form: Form) -> str:
    """See `Schema.codebook`."""
    if form not in ("text", "markdown"):
        raise SchemaError("the form of a codebook is unknown", got=repr(form), limit="text or markdown")
    parts = [_text(column) if form == "text" else _markdown(column) for column in schema.columns]
    head = "# Codebook\n\n" if form == "markdown" else ""
    layout = schema.layout.to_dict()
    if layout:
        said = ", ".join(f"{name} {value!r}" for name, value in layout.items())
        head += f"Files of the table: {said}\n\n"
    return head + "\n".join(parts)


def _facts(column: Column) -> Iterator[tuple[str, str]]:
    yield "kind", column.kind
    if column.open_bounds or column.open_levels:
        yield "range", "to be learnt privately"
    else:
        yield "range", column.described[1]
    if not isinstance(column, SourceColumn):
        return
    about = column.about
    for name in ("units", "description", "source"):
        if (said := getattr(about, name)) is not None:
            yield name, said
    for level, label in zip(getattr(column, "levels", ()), about.level_labels, strict=False):
        yield f"level {level}", label
    rules = column.reading.to_dict()
    if rules:
        yield "written", ", ".join(f"{name} {_shown(value)}" for name, value in rules.items())


def _shown(value: object) -> str:
    return ", ".join(map(repr, value)) if isinstance(value, list) else repr(value)


def _title(column: Column) -> str | None:
    return column.about.label if isinstance(column, SourceColumn) else None


def _text(column: Column) -> str:
    title = _title(column)
    lines = [column.name if title is None else f"{column.name}: {title}"]
    for name, value in _facts(column):
        lines += textwrap.wrap(
            f"{name}: {' '.join(value.split())}", LINE, initial_indent="  ", subsequent_indent="    "
        )
    return printable("\n".join(lines)) + "\n"


def _markdown(column: Column) -> str:
    title = _title(column)
    head = f"## {_escaped(column.name)}" + ("" if title is None else f": {_escaped(title)}")
    rows = [f"| {_escaped(name)} | {_escaped(value)} |" for name, value in _facts(column)]
    return "\n".join([head, "", "| | |", "|---|---|", *rows]) + "\n"


def _escaped(text: str) -> str:
    """Letters that Markdown or HTML would take for its own: names and labels come from files of others."""
    words = printable(" ".join(text.split()))
    return "".join(f"\\{letter}" if letter in "\\`*_{}[]()#|!<>&" else letter for letter in words)


def printable(text: str) -> str:
    """Control characters spelled out, so that a name cannot steer a terminal."""
    return "".join(c if c.isprintable() or c == "\n" else ascii(c)[1:-1] for c in text)

"""Help texts end their lines where the terminal does."""

from __future__ import annotations

import inspect
from typing import Final

import typer

AS_IT_STANDS: Final = "\b"
"""Begins a paragraph whose lines are kept: examples."""


def unfold(app: typer.Typer) -> None:
    """Prose of every command below becomes one line a paragraph, however the source is folded."""
    for command in app.registered_commands:
        text = command.help or inspect.getdoc(command.callback) or ""
        command.help = "\n\n".join(map(_unfolded, text.split("\n\n")))
    for group in app.registered_groups:
        if group.typer_instance is not None:
            unfold(group.typer_instance)


def _unfolded(paragraph: str) -> str:
    return paragraph if paragraph.startswith(AS_IT_STANDS) else " ".join(paragraph.split("\n"))

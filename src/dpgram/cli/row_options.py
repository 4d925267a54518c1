"""Who is protected and how rows count: options with one meaning in every command that reads a table."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import typer

PANEL: Final = "Who is protected, and how rows count"

Unit: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The column that identifies a person: all rows of a person are protected together.",
        rich_help_panel=PANEL,
    ),
]
UnitRows: TypeAlias = Annotated[
    int | None,
    typer.Option(
        help="Use at most this many rows of a person; every row then counts equally.", rich_help_panel=PANEL
    ),
]
Weight: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The numeric column that holds survey weights, with 0 as its lower bound.", rich_help_panel=PANEL
    ),
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option(help="Make one release for each level of this categorical column.", rich_help_panel=PANEL),
]
Missing: TypeAlias = Annotated[
    Literal["drop", "midpoint"],
    typer.Option(help="Rows with a missing value: leave out, or fill in.", rich_help_panel=PANEL),
]
Strict: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Stop at the first value outside the schema; that there is none becomes public.",
        rich_help_panel=PANEL,
    ),
]
Radius: TypeAlias = Annotated[
    float | None,
    typer.Option(
        help="A public row radius; by default an adaptive release learns one and clips longer rows, any "
        "other clips none.",
        rich_help_panel=PANEL,
    ),
]
ExpectedRows: TypeAlias = Annotated[
    int | None,
    typer.Option(
        "--rows", help="A public guess of the number of rows; with --unit, of persons.", rich_help_panel=PANEL
    ),
]

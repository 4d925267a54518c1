"""Who is protected and how rows count: options with one meaning in every command that reads a table."""

from __future__ import annotations

from typing import Annotated, Final, Literal, TypeAlias

import typer

PANEL: Final = "Who is protected, and how rows count"

Unit: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="The column that says whose row it is: protects all rows of a person.", rich_help_panel=PANEL
    ),
]
UnitRows: TypeAlias = Annotated[
    int | None,
    typer.Option(help="Most rows of a person; every row then counts alike.", rich_help_panel=PANEL),
]
Weight: TypeAlias = Annotated[
    str | None,
    typer.Option(help="A numeric column of the schema, from 0: survey weights.", rich_help_panel=PANEL),
]
By: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="A categorical column of the schema: one release for each level.", rich_help_panel=PANEL
    ),
]
Missing: TypeAlias = Annotated[
    Literal["drop", "midpoint"],
    typer.Option(help="Rows with a missing value: leave out, or fill in.", rich_help_panel=PANEL),
]
Strict: TypeAlias = Annotated[
    bool,
    typer.Option(
        "--strict",
        help="Stop at the first value outside the schema (a public promise).",
        rich_help_panel=PANEL,
    ),
]
Radius: TypeAlias = Annotated[
    float | None,
    typer.Option(help="A public row radius; by default nothing is clipped.", rich_help_panel=PANEL),
]
Expected: TypeAlias = Annotated[
    int | None, typer.Option("--rows", help="A public guess of the number of rows.", rich_help_panel=PANEL)
]

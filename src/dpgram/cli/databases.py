"""Tables of databases on the command line: a query, and where the database is."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import typer

from dpgram.errors import DpgramError
from dpgram.job.databases import ENVIRONMENT, address_of

Query: TypeAlias = Annotated[
    str | None,
    typer.Option(
        help="Read the result of this SELECT. DATA is then a DuckDB or SQLite file, or env:NAME: the "
        "environment variable NAME holds the address of the database."
    ),
]


def asked_table(data: list[str], query: str | None) -> str | list[str] | tuple[str, str]:
    """What the arguments mean: files, or the result of a query."""
    if query is None:
        if any(name.startswith(ENVIRONMENT) for name in data):
            raise DpgramError(
                "a database needs a query",
                got=data[0],
                remedy='Add --query "SELECT … FROM …"',
            )
        return data[0] if len(data) == 1 else data
    if len(data) != 1:
        raise DpgramError("--query reads one database", got=f"{len(data)} of them")
    return address_of(data[0]), query

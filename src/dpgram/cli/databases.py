"""Tables of databases on the command line: a query, and where the database is.

An address may hold a password, so that it comes from an environment variable: what is typed stays in the
history of shells and is seen by everybody who lists processes. It is neither printed nor written anywhere.
"""

from __future__ import annotations

import os
from typing import Annotated, Final, TypeAlias

import typer

from dpgram.errors import DpgramError

ENVIRONMENT: Final = "env:"

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
    return _address(data[0]), query


def _address(place: str) -> str:
    if not place.startswith(ENVIRONMENT):
        if "://" in place:
            raise DpgramError(
                "the address of a database may hold a password, so it is not typed",
                remedy="Put it into an environment variable, and write env:NAME in its place",
            )
        return place
    name = place.removeprefix(ENVIRONMENT)
    address = os.environ.get(name)
    if not address:
        raise DpgramError(
            f"the environment variable {name!r} is not set",
            remedy=f"Set {name} to the address of the database, such as postgresql://…",
        )
    return address

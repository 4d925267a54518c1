"""What a database says no to, in words of ours: its own may quote a cell, or an address with its password."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from dpgram.errors import SourceError

POSTGRESQL: Final = ("postgresql://", "postgres://")
SQLITE: Final = "sqlite:///"

_NOT_THERE: Final = ("42P01", "42703", "42883", "3F000", "42S02", "42S22")
"""States of standard SQL and of PostgreSQL: no such table, column, function or schema."""
_AWAY: Final = ("3D000", "53300", "57P01", "57P03")
_SAYS_NOT_THERE: Final = re.compile(
    r"no such (table|column|function): |does not exist|not found|does not have a column|missing FROM-clause"
)
_SAYS_UNCLEAR: Final = re.compile(r"syntax error|incomplete input|^Parser Error|^Binder Error")
_SAYS_AWAY: Final = re.compile(r"Failed to connect|unable to open database|connection failed")
_SAYS_DENIED: Final = re.compile(r"(?i)authentication|password|pg_hba|role .* (does not exist|not permitted)")
_NAMES: Final = re.compile(r"\"([^\"\n]+)\"|(?:no such \w+: |with name )([\w.]+)")


def refuse_address(place: str) -> None:
    """Refuse addresses that are not read. Only the scheme is named: the rest may be secret."""
    if place.startswith((*POSTGRESQL, SQLITE)):
        return
    found = re.match(r"(?:jdbc:|odbc:)?[A-Za-z][A-Za-z0-9+.-]*:(?=//)|(?:jdbc|odbc):", place)
    if found is None:
        if re.match(r"\s*\w+\s*=", place):
            raise SourceError(
                "a database is not read by a list of settings",
                got="key=value",
                remedy="Write it as an address: postgresql://user:password@host/database",
            )
        return
    scheme = found[0].removesuffix(":")
    remedy = "Give a pair (connection, query) in Python, with a connection of the database's own driver"
    if re.match(r"(?i)(jdbc:)?postgres(ql)?\b", scheme):
        remedy = "Write postgresql:// in its place"
    raise SourceError(
        f"no database is read by an address of the scheme {scheme}",
        limit=f"postgresql://, {SQLITE}, the path of a DuckDB or SQLite file",
        remedy=remedy,
    )


def no_file() -> SourceError:
    """The path itself may come from where a password is expected, and so is not shown."""
    return SourceError(
        "there is no database file at the given place",
        remedy="Check the path: a pair means (database, query), and several files are given as a list.",
    )


def refused(failure: BaseException, query: str) -> SourceError | None:
    """Why a database does not begin with a query, where that is clear. It is asked before any row is read.

    Of its words only a name is shown that stands in the query itself.
    """
    words, state = str(failure), _state(failure)
    if state.startswith("28") or state == "42501" or (not state and _SAYS_AWAY.search(words)):
        if state or _SAYS_DENIED.search(words):
            return SourceError(
                "the database refuses this user: the password is wrong, or a permission is missing",
                remedy="Check user and password, and that this user may SELECT from the tables of the query.",
            )
        return cannot_connect()
    if state.startswith("08") or state in _AWAY:
        return cannot_connect()
    names = (first or second for first, second in _NAMES.findall(words))
    name = next((f"{name!r}" for name in names if name in query), None)
    if state in _NOT_THERE or (not state and _SAYS_NOT_THERE.search(words)):
        return SourceError(
            "the query names a table, column or function that the database does not have",
            got=name,
            remedy="Correct the name in the query, or ask another database.",
        )
    if state == "42601" or (not state and _SAYS_UNCLEAR.search(words)):
        return SourceError(
            "the database does not understand the query",
            got=None if name is None else f"a mistake near {name}",
            limit="a single SELECT",
            remedy="Correct the query.",
        )
    return None


def cannot_connect() -> SourceError:
    return SourceError(
        "the database cannot be reached",
        remedy="Check that it runs, and the host, port and name in its address, in whose password the sign @ "
        "is written %40, and % is %25.",
    )


def explained(
    query: str, otherwise: Callable[[BaseException], SourceError]
) -> Callable[[BaseException], SourceError]:
    """For `attempt`, before a row is read."""
    return lambda failure: (
        failure if isinstance(failure, SourceError) else refused(failure, query) or otherwise(failure)
    )


def _state(failure: BaseException) -> str:
    """The SQLSTATE as the drivers keep it: psycopg and ADBC, psycopg2, pg8000."""
    first = failure.args[0] if failure.args else None
    told = first.get("C") if isinstance(first, dict) else None
    found = (getattr(failure, "sqlstate", None), getattr(failure, "pgcode", None), told)
    return next((state for state in found if isinstance(state, str)), "")

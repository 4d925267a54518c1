"""What is given as a table now and then and is none: plain answers, before anything is read."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from dpgram.errors import SourceError

_DATABASES: Final = ("postgresql", "postgres", "mysql", "mariadb", "sqlite", "mssql", "oracle", "snowflake")
_WEB: Final = ("http", "https", "ftp")


def refuse_mistaken(data: object) -> None:
    """Raise for what cannot be a table, with what would be one."""
    for what, remedy in _found(data):
        raise SourceError(what, remedy=remedy)


def _found(data: object) -> Iterator[tuple[str, str]]:
    scheme = _scheme(data)
    if scheme in _DATABASES:
        yield (
            f"a {scheme}:// address names a database and not a table",
            'Give a pair: (address, "SELECT … FROM …")',
        )
    if scheme in _WEB:
        yield (
            f"a table behind {scheme}:// is not fetched: it could change between two readings",
            "Download the file and give its path; s3://, gs:// and hdfs:// addresses are read",
        )
    home, name = type(data).__module__.partition(".")[0], type(data).__name__
    if home in ("pandas", "polars") and name == "Series":
        yield f"a {home} Series is one column", "Give the whole DataFrame, or data.to_frame()"
    if data is None:
        yield "the data are None", "Give a table, or the path of one"
    if isinstance(data, bytes | bytearray):
        yield "bytes are no table", "Give the path of the file, or read it into a frame first"
    if callable(getattr(data, "read", None)) and callable(getattr(data, "seek", None)):
        yield "an open file is no table", "Give its path"
    if isinstance(data, list) and data and isinstance(data[0], dict):
        yield "a list of dicts is no table", "Give polars.DataFrame(data), or a dict of columns"


def _scheme(data: object) -> str:
    first = data[0] if isinstance(data, list) and data else data
    return first.partition("://")[0].lower() if isinstance(first, str) and "://" in first else ""

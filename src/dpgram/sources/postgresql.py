"""Connections to PostgreSQL, asked in such a way that no value can stop them or become another one.

Its DB-API drivers turn values into Python objects by themselves. They raise where there is none (a day after
the year 9999 or before Christ, 24 o'clock, a number of thousands of digits in JSON), psycopg2 makes
'infinity' the last day of 9999, and a text that the connection's encoding lacks is an error of the server. So
days and moments are asked for as the integers in which the server keeps them, other types that Python may
lack as the text which the server can write of every value, and encodings that lack letters are refused.
Floats are asked for by their bits: as text they have only the digits that a setting of the server leaves.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from dpgram.errors import SourceError
from dpgram.sources.base import DeclaredKind
from dpgram.sources.ids import moment_id

DRIVERS: Final = ("psycopg", "psycopg2", "pg8000")
VENDOR: Final = "PostgreSQL"
"""What its ADBC driver calls it."""

PLAIN: Final = frozenset({16, 17, 20, 21, 23, 25, 26, 1042, 1043, 1700, 2950})
"""The types of which every value is one of Python's: truth values, bytes, integers, texts, decimals, UUIDs,
by the numbers that they have in every server (`SELECT oid, typname FROM pg_type`)."""

WHOLE_IN_UTF8: Final = frozenset(
    {"UTF8", "LATIN1", "LATIN2", "LATIN4", "LATIN5", "LATIN6", "LATIN7", "LATIN8", "LATIN9", "LATIN10"}
    | {"ISO_8859_5", "KOI8R", "KOI8U", "WIN866", "WIN1256"}
)
"""Encodings of databases of which every byte has an equivalent in UTF-8; others of one byte have gaps."""

_DAYS_TO_2000: Final = 10_957
"""From 1970; the server counts days and microseconds from 2000."""
_MOMENT_2000: Final = datetime(2000, 1, 1)  # noqa: DTZ001  moments without a zone are counted from it
_MICROSECOND: Final = timedelta(microseconds=1)
_FIRST_DAY: Final = -2_440_588
"""Since 1970: 4714-11-24 BC, before which the server has no days."""

Read = Callable[[Any], object]


def check_encodings(connection: Any, *, arrow: bool) -> None:
    """Refuse a connection on which one text can fail, or would be taken for another one.

    A driver that gives Arrow passes all bytes on as UTF-8, others decode them as the connection says.
    """
    client, server = _answer(
        connection, "SELECT current_setting('client_encoding') AS a, current_setting('server_encoding') AS b"
    )
    if server == "SQL_ASCII":
        if arrow and client == server:
            return
        raise SourceError(
            "the database holds texts of any bytes, which this connection cannot carry",
            got=f"server_encoding = {server}, client_encoding = {client}",
            limit=f"an ADBC connection with client_encoding = {server}",
            remedy="Give the address of the database, postgresql://…, in place of the connection",
        )
    if server not in WHOLE_IN_UTF8:
        raise SourceError(
            "the database may hold texts that no connection can carry",
            got=f"server_encoding = {server}",
            limit=", ".join(sorted(WHOLE_IN_UTF8)),
            remedy="Write the result of the query to a file, and publish that",
        )
    if client != "UTF8" and (arrow or client != server):
        raise SourceError(
            "the connection cannot carry every text of the database",
            got=f"client_encoding = {client}",
            limit="UTF8",
            remedy="Run SET client_encoding TO 'UTF8' on it, and commit",
        )


def carry_every_text(connection: Any) -> None:
    """What `check_encodings` asks of a connection with ADBC, on one of our own."""
    every = "CASE current_setting('server_encoding') WHEN 'SQL_ASCII' THEN 'SQL_ASCII' ELSE 'UTF8' END"
    _answer(connection, f"SELECT set_config('client_encoding', {every}, false) AS a")


def _answer(connection: Any, query: str) -> list[str]:
    """The cells of the one row that a query has."""
    with closing(connection.cursor()) as cursor:
        cursor.execute(query)
        (row,) = cursor.fetchall()
        names = [column[0] for column in cursor.description]
    return [cell.decode() if isinstance(cell, bytes) else cell for cell in cells_of(row, names)]


def cells_of(row: Any, names: Iterable[str]) -> Iterable[Any]:
    """The cells of a row in order: some connections give mappings, whose iteration gives names."""
    return [row[name] for name in names] if isinstance(row, Mapping) else row


def asked(column: str, kind: int) -> tuple[str, Read | None]:
    """What to ask for in place of a (quoted) column of this type, and what makes an object of the answer.

    Distinct values give distinct objects, also as ids, but for floats within other types (points, arrays),
    whose text the server may round. Proof: proofs/units.md#units-ids.
    """
    if kind in PLAIN:
        return column, None
    if kind in _SENT:
        function, read = _SENT[kind]
        return f"{function}({column}) AS {column}", read
    return f"CAST({column} AS text) AS {column}", None


def _moment(start: date, step: timedelta, sent: Any) -> object:
    """The day or moment so many steps after the beginning of 2000; its text where Python has none."""
    if sent is None:
        return None
    steps = int.from_bytes(sent, signed=True)
    if infinite := _infinite(steps, 8 * len(sent) - 1):
        return infinite
    try:
        return start + steps * step
    except OverflowError:
        since_1970 = steps * (step // _MICROSECOND) + _DAYS_TO_2000 * 86_400 * 10**6
        return moment_id(since_1970, 6) + ("Z" if getattr(start, "tzinfo", None) else "")


def _infinite(count: int, bits: int) -> str | None:
    """The largest and the least integer are no days: text, since nothing in Python is after all days."""
    return {2**bits - 1: "infinity", -(2**bits): "-infinity"}.get(count)


def _float(sent: Any) -> float | None:
    return None if sent is None else struct.unpack(">d" if len(sent) == 8 else ">f", sent)[0]


_SENT: Final[Mapping[int, tuple[str, Read]]] = {
    700: ("float4send", _float),
    701: ("float8send", _float),
    1082: ("date_send", partial(_moment, _MOMENT_2000.date(), timedelta(days=1))),
    1114: ("timestamp_send", partial(_moment, _MOMENT_2000, _MICROSECOND)),
    1184: ("timestamptz_send", partial(_moment, _MOMENT_2000.replace(tzinfo=UTC), _MICROSECOND)),
}


def without_wrapped(batch: pa.RecordBatch, kinds: Mapping[str, DeclaredKind]) -> pa.RecordBatch:
    """Declared dates of an ADBC batch, missing where 'infinity' has become a day before all others.

    The driver moves the beginning of counting from 2000 to 1970, and what is then too large goes on at the
    other end. Ids stay as they are: going round keeps them apart.
    """
    for index, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True)):
        if kinds.get(name) != "date":
            continue
        if pa.types.is_date32(column.type):
            counts, first = column.view(pa.int32()), _FIRST_DAY
        elif pa.types.is_timestamp(column.type):
            counts, first = column.view(pa.int64()), _FIRST_DAY * 86_400 * 10**6
        else:
            continue
        wrapped = pc.less(counts, pa.scalar(first, counts.type))
        batch = batch.set_column(index, name, pc.if_else(wrapped, pa.scalar(None, column.type), column))
    return batch

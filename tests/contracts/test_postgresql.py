"""Values that PostgreSQL has and Python lacks: none stops a release, none becomes another one."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import pytest

from dpgram.document.fields import UnitRule
from dpgram.engines.local import add_up
from dpgram.engines.passes import gram_pass
from dpgram.errors import SourceError
from dpgram.rows.encoder import Encoder
from dpgram.rows.units import unit_ids
from dpgram.schema import Column, Schema, categorical, numeric
from dpgram.sources import open_source
from dpgram.sources.postgresql import WHOLE_IN_UTF8
from dpgram.sums.exact_gram import ExactGram

dbapi = pytest.importorskip("adbc_driver_postgresql.dbapi", reason="the extra 'sql' is not installed")
psycopg = pytest.importorskip("psycopg", reason="psycopg is not installed")

QUERY = "SELECT id, y FROM odd"
RULE = UnitRule(counts="units", rows_at_most=9)
EVERY_BYTE = bytes(range(1, 256))

MOMENTS = (
    *("2020-01-31", "2020-01-31 12:00", "infinity", "-infinity", "9999-12-31 23:59:59.999999", "20000-01-01"),
    *("0044-03-15 BC", "4714-11-24 BC", "294276-12-31 23:59:59.999999", "294247-01-10 04:00:54.775807"),
)
PEOPLE = {
    "date": (
        *("2020-01-31", "infinity", "-infinity", "9999-12-31", "20000-01-01"),
        "0044-03-15 BC",
        "5874897-12-31",
    ),
    "timestamp": MOMENTS,
    "timestamptz": MOMENTS,
    "text": ("7", "a", "\u00fc", "\u20ac", "\x01"),
    "bigint": ("9007199254740992", "9007199254740993"),
    "uuid": ("00000000-0000-0000-0000-000000000001", "00000000-0000-0000-0000-000000000002"),
    "bytea": ("\\xff", "\\xfe", "\\x37"),
    "jsonb": ("1", "2", '"a"', "1e5000"),
}
ONLY_AS_TEXT = {
    "numeric": ("1", "1e5000", "1e-500", "0.1", "Infinity"),
    "time": ("00:00", "24:00", "10:00"),
    "timetz": ("10:00+00", "10:00+01", "24:00+15:59"),
    "interval": ("1 month", "30 days", "178000000 years"),
    "inet": ("10.0.0.1", "::1/64", "10.0.0.1/24"),
    "date[]": ("{2020-01-31}", "{infinity}", "{20000-01-01}"),
    "daterange": ("[2020-01-01,2020-01-02)", "[20000-01-01,)", "[-infinity,infinity]"),
}
"""Types that ADBC gives in forms which are refused as ids, by their type."""


@pytest.fixture(params=["adbc", "psycopg", "address"])
def door(request: pytest.FixtureRequest, postgresql: str) -> Iterator[Any]:
    with closing(opened(request.param, postgresql)) as connection:
        yield postgresql if request.param == "address" else connection


def opened(driver: str, address: str) -> Any:
    return psycopg.connect(address) if driver == "psycopg" else dbapi.connect(address)


def fill(address: str, kind: str, cells: Sequence[str], copies: int = 2) -> None:
    """A table in which each of these cells has so many rows."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS odd")
        connection.execute(f"CREATE TABLE odd (id {kind}, y float8)")
        for cell in cells:
            for _ in range(copies):
                connection.execute(f"INSERT INTO odd VALUES (%s::{kind}, 0.5)", (cell,))


def units(door: Any, query: str = QUERY) -> int | None:
    encoder = Encoder(Schema(numeric("y", -1, 1)))
    (found,) = add_up((door, query), gram_pass(encoder, unit="id", rule=RULE), threads=1, progress=False)
    assert isinstance(found, ExactGram)
    return found.counts.units_read


def used(door: Any, column: Column) -> ExactGram:
    work = gram_pass(Encoder(Schema(column, numeric("y", -1, 1))))
    (found,) = add_up((door, QUERY), work, threads=1, progress=False)
    assert isinstance(found, ExactGram)
    return found


@pytest.mark.parametrize("kind", PEOPLE)
def test_everybody_is_one_person(kind: str, door: Any, postgresql: str) -> None:
    fill(postgresql, kind, PEOPLE[kind])
    assert units(door) == len(PEOPLE[kind])


@pytest.mark.parametrize("kind", ONLY_AS_TEXT)
def test_everybody_is_one_person_as_text(kind: str, postgresql: str) -> None:
    fill(postgresql, kind, ONLY_AS_TEXT[kind])
    with opened("psycopg", postgresql) as connection:
        # A number of thousands of digits is no id, whichever source it is from.
        assert units(connection) == len(ONLY_AS_TEXT[kind]) - (kind == "numeric")
    with (
        opened("adbc", postgresql) as connection,
        pytest.raises(SourceError, match="cannot tell units apart"),
    ):
        units(connection)


def test_one_id_from_every_door(postgresql: str) -> None:
    """A person whose rows come by another driver in the next period of a series is the same one."""

    def ids(driver: str) -> list[str | None]:
        with opened(driver, postgresql) as connection:
            batches = open_source((connection, QUERY), ["id"], kinds={"id": "id"}).batches()
            return [text for batch in batches for text in unit_ids(batch.column(0), "id").to_pylist()]

    days = ("2020-01-31", "1815-12-10", "0001-01-01", "9999-12-31")
    floats = ("0.1", "7", "1e300", "inf")
    for kind, cells in {"date": days, "timestamp": days, "timestamptz": days, "float8": floats}.items():
        fill(postgresql, kind, cells, copies=1)
        assert ids("adbc") == ids("psycopg")
        assert None not in ids("adbc")


@pytest.mark.parametrize("kind", ["date", "timestamp", "timestamptz"])
@pytest.mark.parametrize("cell", ["infinity", "-infinity", "20000-01-01", "0044-03-15 BC"])
def test_a_far_day_costs_at_most_its_row(kind: str, cell: str, door: Any, postgresql: str) -> None:
    column = numeric("id", dt.date(2000, 1, 1), dt.date(2040, 1, 1))
    days = ("2020-01-31", "2010-07-01", "2039-12-31")
    fill(postgresql, kind, days, copies=1)
    without = used(door, column)
    assert without.counts.rows_used == 3
    if not isinstance(door, str):
        door.rollback()
    fill(postgresql, kind, (*days, cell), copies=1)
    found = used(door, column)
    assert found.counts.rows_read == 4
    if found.counts.rows_used == 3:
        assert (found.cells == without.cells).all()
    else:  # of which year it is, is known: it lies beyond a bound
        assert not cell.endswith("infinity")
        assert found.counts.rows_used == 4


@pytest.mark.parametrize(
    ("kind", "cells", "column"),
    [
        ("time", ("10:00", "24:00"), categorical("id", ["10:00:00"])),
        ("jsonb", ("1", "1e5000", "0.5"), numeric("id", 0, 1)),
        ("daterange", ("[2020-01-01,)", "[20000-01-01,)"), categorical("id", ["[2020-01-01,)"])),
        ("numeric", ("1", "NaN", "1e5000", "Infinity"), numeric("id", 0, 1)),
    ],
)
def test_no_cell_stops_a_run(kind: str, cells: Sequence[str], column: Column, postgresql: str) -> None:
    fill(postgresql, kind, cells)
    with opened("psycopg", postgresql) as connection:
        found = used(connection, column)
        assert found.counts.rows_read == 2 * len(cells)
        assert found.counts.rows_used >= 2


@pytest.mark.parametrize(
    ("kind", "cells"),
    [
        ("float8", ("9007199254740991", "9007199254740990", "0.3", "0.30000000000000004", "inf", "-inf")),
        ("float4", ("16777215", "16777214", "0.1", "0.10000001")),
    ],
)
def test_floats_that_the_server_would_round(kind: str, cells: Sequence[str], postgresql: str) -> None:
    """Before version 12 it did so unless asked not to; people with such ids became one."""
    fill(postgresql, kind, cells)
    for digits in (3, 0, -15):
        with psycopg.connect(postgresql, options=f"-c extra_float_digits={digits}") as connection:
            assert units(connection) == len(cells)
    with opened("adbc", postgresql) as connection:
        assert units(connection) == len(cells)


def test_rows_that_are_mappings(postgresql: str) -> None:
    """The names of the columns were read in place of their cells, and the release was noise."""
    fill(postgresql, "text", ("a", "b"))
    with psycopg.connect(postgresql, row_factory=psycopg.rows.dict_row) as connection:
        assert units(connection) == 2
        assert used(connection, categorical("id", ["a", "b"])).counts.rows_used == 4


def test_without_transactions(postgresql: str) -> None:
    fill(postgresql, "text", ("a", "b"))
    with psycopg.connect(postgresql, autocommit=True) as connection:
        assert units(connection) == 2


def test_inside_of_a_pool_s_wrapper(postgresql: str) -> None:
    class Lent:
        def __init__(self, connection: Any) -> None:
            self.driver_connection = connection
            self.cursor = connection.cursor

    fill(postgresql, "date", ("infinity", "2020-01-31"))
    with opened("psycopg", postgresql) as connection:
        assert units(Lent(connection)) == 2


class TestEncodings:
    PEOPLE = (b"M\xfcller", b"M\xf6ller", b"a")

    def database(self, postgresql: str, encoding: str) -> str:
        """The address of a database in which texts are kept so, with three people."""
        name = f"in_{encoding.lower()}"
        with psycopg.connect(postgresql, autocommit=True) as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {name}")
            connection.execute(
                f"CREATE DATABASE {name} ENCODING '{encoding}' TEMPLATE template0 LC_COLLATE 'C' LC_CTYPE 'C'"
            )
        address = postgresql.replace("/postgres?", f"/{name}?")
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute("CREATE TABLE odd (id text, y float8)")
            for who in self.PEOPLE:
                connection.execute(b"INSERT INTO odd VALUES ('" + who + b"', 0.5)")
        return address

    def test_any_bytes(self, postgresql: str) -> None:
        address = self.database(postgresql, "SQL_ASCII")
        assert units(address) == 3
        with opened("adbc", address) as connection:
            assert units(connection) == 3
        with opened("psycopg", address) as connection, pytest.raises(SourceError, match="any bytes"):
            units(connection)

    def test_latin_letters(self, postgresql: str) -> None:
        """By their letters, whichever way they come."""
        address = self.database(postgresql, "LATIN1")
        column = categorical("id", ["Müller", "Möller", "a"])
        assert used(address, column).counts.cells_unknown == 0
        with opened("psycopg", address) as connection:
            assert used(connection, column).counts.cells_unknown == 0
        with opened("adbc", address) as connection:
            with pytest.raises(SourceError, match="client_encoding = LATIN1"):
                used(connection, column)
            with closing(connection.cursor()) as cursor:
                cursor.execute("SET client_encoding TO 'UTF8'")
            assert used(connection, column).counts.cells_unknown == 0

    def test_gaps(self, postgresql: str) -> None:
        """A byte that WIN1252 lacks is an error of the server, for the row that has it alone."""
        address = self.database(postgresql, "WIN1252")
        for door in (address, opened("psycopg", address)):
            with pytest.raises(SourceError, match="server_encoding = WIN1252"):
                units(door)
        door.close()

    @pytest.mark.parametrize("cells", [("a",), ("a", "\u20ac")])
    def test_a_narrow_connection(self, cells: Sequence[str], postgresql: str) -> None:
        """Refused by its setting, so that it tells nothing of the rows."""
        fill(postgresql, "text", cells)
        with (
            psycopg.connect(postgresql, client_encoding="latin1") as connection,
            pytest.raises(SourceError, match="client_encoding = LATIN1"),
        ):
            units(connection)

    def test_what_has_no_gaps(self, postgresql: str) -> None:
        """Every byte of the encodings that are taken has an equivalent, by the server itself."""
        with psycopg.connect(postgresql) as connection:
            for encoding in sorted(WHOLE_IN_UTF8 - {"UTF8"}):
                (text,) = connection.execute("SELECT convert_from(%s, %s)", (EVERY_BYTE, encoding)).fetchone()
                assert len(text) == len(set(text)) == 255, encoding


@pytest.mark.parametrize("rows", [[], [(1,), ("a",)]])
def test_sqlite_by_adbc_is_refused(rows: list[Any]) -> None:
    """Its driver makes doubles of integers beside one fraction, and stops where a later row differs."""

    class Cursor:
        description = (("id",), ("y",))

        def execute(self, query: str) -> None: ...

        def close(self) -> None: ...

        def fetchmany(self, count: int) -> list[Any]:
            return rows

    class Connection:
        cursor = Cursor

        def adbc_get_info(self) -> dict[str, str]:
            return {"vendor_name": "SQLite"}

    with pytest.raises(SourceError, match="guesses the types"):
        units(Connection())


class TestWhatTheServerRefuses:
    """Whether there is no server, no permission, or no such table: three messages."""

    @pytest.fixture
    def told(self, postgresql: str) -> Any:
        with psycopg.connect(postgresql, autocommit=True) as connection:
            connection.execute("DROP TABLE IF EXISTS people")
            connection.execute("CREATE TABLE people (id integer)")
            connection.execute("DROP ROLE IF EXISTS guest")
            connection.execute("CREATE ROLE guest LOGIN PASSWORD 'right'")
            ((folder,),) = connection.execute("SELECT current_setting('data_directory')").fetchall()
            rules = f"'{folder}/pg_hba.conf'"
            connection.execute(
                f"COPY (VALUES ('local all guest scram-sha-256'), ('local all all trust')) TO {rules}"
            )
            connection.execute("SELECT pg_reload_conf()")

        def told(user: str = "dpgram", query: str = "SELECT id FROM people", **changed: str) -> str:
            address = postgresql.replace("dpgram@", f"{user}@")
            for old, new in changed.items():
                address = address.replace(f"/{old}?", f"/{new}?")
            with pytest.raises(SourceError) as caught:
                open_source((address, query), ["id"])
            assert caught.value.__cause__ is caught.value.__context__ is None
            said = str(caught.value)
            assert not any(secret in said for secret in ("SECRET", "right", "guest", "dpgram-pg"))
            return said

        return told

    def test_no_such_name(self, told: Any) -> None:
        assert "does not have; got 'peeple'" in told(query="SELECT id FROM peeple")
        assert "does not have; got 'idd'" in told(query="SELECT idd AS id FROM people")
        assert "does not have; got 'x'" in told(query="SELECT x.id FROM people")

    def test_a_typing_mistake(self, told: Any) -> None:
        said = told(query="SELECT id FROM people WHER id > 1")
        assert "does not understand the query; got a mistake near 'id'" in said

    def test_no_permission(self, told: Any) -> None:
        for user in ("guest:SECRET", "guest", "SECRET", "guest:right"):
            assert "the password is wrong, or a permission is missing" in told(user)

    def test_no_server(self, told: Any, postgresql: str) -> None:
        assert "the database cannot be reached" in told(postgres="SECRET")

    @pytest.mark.parametrize("query", ["SELECT id FROM peeple", "SELECT idd AS id FROM people"])
    def test_by_a_connection(self, query: str, told: Any, postgresql: str) -> None:
        with (
            psycopg.connect(postgresql) as connection,
            pytest.raises(SourceError, match=r"does not have; got '(peeple|idd)'"),
        ):
            open_source((connection, query), ["id"])

"""A SQLite connection: the rows of its own database, all of them, whatever its path and its cells hold."""

from __future__ import annotations

import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpgram.errors import SourceError
from dpgram.sources import DeclaredKind, open_source

QUERY = "SELECT x FROM t"


def read(connection: sqlite3.Connection, kind: DeclaredKind = "number") -> list[object]:
    batches = open_source((connection, QUERY), ["x"], kinds={"x": kind}).batches()
    return [cell for batch in batches for cell in batch.column(0).to_pylist()]


def filled(path: Path | str, numbers: list[float]) -> sqlite3.Connection:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE t (x)")
    connection.executemany("INSERT INTO t VALUES (?)", [(number,) for number in numbers])
    connection.commit()
    return connection


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    found = filled(tmp_path / "some.sqlite", [1.0, 2.0])
    yield found
    found.close()


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("visits#2.sqlite", "visits"),
        ("visits?mode=rwc.sqlite", "visits"),
        ("%41.sqlite", "A.sqlite"),
        ("a b+ü&c.sqlite", "a b"),
    ],
)
def test_the_file_of_the_connection_is_read_and_no_other(name: str, other: str, tmp_path: Path) -> None:
    filled(tmp_path / other, [0.0] * 7).close()
    connection = filled(tmp_path / name, [1.0, 2.0])
    before = sorted(path.name for path in tmp_path.iterdir())
    assert read(connection) == [1.0, 2.0]
    connection.close()
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_a_relative_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    connection = filled("some#1.sqlite", [3.0])
    assert read(connection) == [3.0]
    connection.close()


def test_rows_that_are_not_committed_are_refused(connection: sqlite3.Connection) -> None:
    connection.execute("INSERT INTO t VALUES (3.0)")
    with pytest.raises(SourceError, match=r"transaction open.*Commit it or roll it back"):
        read(connection)
    connection.commit()
    assert read(connection) == [1.0, 2.0, 3.0]


def test_in_memory_they_are_read() -> None:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE t (x)")
    connection.execute("INSERT INTO t VALUES (3.0)")
    assert connection.in_transaction
    assert read(connection) == [3.0]
    connection.close()


@pytest.mark.parametrize("what", ["TABLE t (x)", "VIEW t AS SELECT 5.0 AS x"])
def test_a_temporary_table_hides_no_other(connection: sqlite3.Connection, what: str) -> None:
    connection.execute(f"CREATE TEMPORARY {what}")
    connection.commit()
    with pytest.raises(SourceError, match="temporary tables or views"):
        read(connection)


def test_a_row_factory_of_the_owner_does_not_matter(connection: sqlite3.Connection) -> None:
    connection.row_factory = lambda _cursor, row: {"row": row}
    assert read(connection) == [1.0, 2.0]


@pytest.mark.parametrize("kind", ["text", "number"])
def test_text_that_is_not_utf8_does_not_stop_the_reading(
    connection: sqlite3.Connection, kind: DeclaredKind
) -> None:
    connection.execute("INSERT INTO t VALUES (CAST(x'4dfc6c6c6572' AS TEXT))")
    connection.commit()
    cells = read(connection, kind)
    assert len(cells) == 3
    if kind == "number":
        assert cells == [1.0, 2.0, math.inf]

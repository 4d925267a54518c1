"""A SQLite connection: the rows of its own database, all of them, whatever its path and its cells hold."""

from __future__ import annotations

import math
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
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


class TestAnotherFileAtThePath:
    """A connection gives the path it was opened with, whatever lies there now."""

    REFUSED = "does not read the file whose path it gives"

    def test_a_database_that_lies_elsewhere(self, tmp_path: Path) -> None:
        path = tmp_path / "some.sqlite"
        filled(path, [999.0]).close()
        with closing(sqlite3.connect(f"file:{path}?vfs=memdb", uri=True)) as connection:
            connection.executescript("CREATE TABLE t (x); INSERT INTO t VALUES (1.0)")
            with pytest.raises(SourceError, match=self.REFUSED):
                read(connection)

    @pytest.mark.skipif(os.name == "nt", reason="there no file that is open can be moved")
    @pytest.mark.parametrize(
        "change",
        [
            "INSERT INTO t VALUES (3.0)",
            "DELETE FROM t WHERE x = 2.0",
            "UPDATE t SET x = 9.0 WHERE x = 1.0",
            "CREATE VIEW v AS SELECT 1",
            "PRAGMA user_version = 7",
        ],
    )
    def test_a_file_that_was_moved(self, connection: sqlite3.Connection, change: str, tmp_path: Path) -> None:
        (tmp_path / "some.sqlite").rename(tmp_path / "old.sqlite")
        shutil.copy(tmp_path / "old.sqlite", tmp_path / "some.sqlite")
        assert read(connection) == [1.0, 2.0]
        with closing(sqlite3.connect(tmp_path / "some.sqlite")) as other:
            other.execute(change)
            other.commit()
        with pytest.raises(SourceError, match=self.REFUSED):
            read(connection)

    @pytest.mark.skipif(os.name == "nt", reason="there no file that is open can be moved")
    @pytest.mark.parametrize("place", [1, 5_000])
    def test_ends_of_long_tables(self, place: int, tmp_path: Path) -> None:
        with closing(filled(tmp_path / "one.sqlite", [0.0] * 5_000)) as connection:
            assert len(read(connection)) == 5_000
            shutil.copy(tmp_path / "one.sqlite", tmp_path / "two.sqlite")
            with closing(sqlite3.connect(tmp_path / "two.sqlite")) as other:
                other.execute("UPDATE t SET x = 1.0 WHERE rowid = ?", (place,))
                other.commit()
            (tmp_path / "two.sqlite").rename(tmp_path / "one.sqlite")
            with pytest.raises(SourceError, match=self.REFUSED):
                read(connection)

    def test_every_kind_of_table_of_the_same_database(self, tmp_path: Path) -> None:
        """And nothing of the owner's own way to read them, which is as before."""

        def refuses(_: bytes) -> object:
            raise ValueError

        sqlite3.register_converter("ODD", refuses)
        path = tmp_path / "some.sqlite"
        with closing(sqlite3.connect(path, detect_types=sqlite3.PARSE_DECLTYPES)) as connection:
            connection.executescript(
                """
                PRAGMA encoding = 'UTF-16';
                CREATE TABLE t (x);
                INSERT INTO t VALUES (1.0), (2.0);
                CREATE TABLE "a "" b" (k ODD, "ü [ODD]" TEXT, g AS (k + 1));
                INSERT INTO "a "" b" VALUES (1, 'x'), (CAST(x'fffe' AS TEXT), x'00'), (NULL, 9e999);
                CREATE TABLE w (k PRIMARY KEY, v) WITHOUT ROWID;
                INSERT INTO w VALUES (1, 2);
                CREATE VIEW v AS SELECT odd(k) FROM w;
                """
            )
            connection.text_factory = bytes
            connection.row_factory = sqlite3.Row
            assert read(connection) == [1.0, 2.0]
            assert connection.text_factory is bytes


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

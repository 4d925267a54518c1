"""What `env:NAME` holds is shown nowhere; what a database says no to is said in words of ours."""

from __future__ import annotations

import sqlite3
import traceback
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpgram as dg
from dpgram.cli import run
from dpgram.errors import SourceError
from dpgram.sources import column_types

SCHEMA = dg.Schema(dg.numeric("x", 0, 9))
SCHEMES = {
    "mysql://u:SECRET@h/db": "the scheme mysql",
    "postgresql+psycopg2://u:SECRET@h/db": "the scheme postgresql+psycopg2",
    "mssql+pyodbc://u:SECRET@h/db?driver=x": "the scheme mssql+pyodbc",
    "snowflake://u:SECRET@account/db": "the scheme snowflake",
    "jdbc:oracle:thin:u/SECRET@h:1521/db": "the scheme jdbc",
    "jdbc:sqlserver://h;user=u;password=SECRET": "the scheme jdbc:sqlserver",
    "jdbc:postgresql://u:SECRET@h/db": "Write postgresql:// in its place",
    "host=h user=u password=SECRET dbname=db": "a list of settings",
    "password = SECRET": "a list of settings",
    "u:SECRET@h/db": "no database file",
    "/nowhere/SECRET.duckdb": "no database file",
    "sqlite:////nowhere/SECRET.sqlite": "no database file",
    "md:db?motherduck_token=SECRET": "no database file",
    "postgresql://u:SECRET@127.0.0.1:1/db": "cannot be reached",
    "postgresql://u:SECRET@127.0.0.1:SECRET/db": "cannot be reached",
    "postgresql://u:SE%CRET@SECRET/db": "cannot be reached",
    "postgresql://u:SECRET@h/db?SECRET=1": "cannot be reached",
    # Longer than the name of a file may be.
    f"sqlite:///{'SECRET' * 99}": "no database file",
    "SECRET" * 99: "no database file",
    f"postgresql://u:{'SECRET' * 99}@127.0.0.1:1/db": "cannot be reached",
}
COMMANDS = {
    "schema": "schema env:CLINIC_DB --query Q",
    "check": "check env:CLINIC_DB --query Q -s s.toml",
    "publish": "publish env:CLINIC_DB --query Q -s s.toml --epsilon 1 --delta 0 --no-ledger -o r.json",
    "run": "run job.toml --yes",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    SCHEMA.to_file(tmp_path / "s.toml")
    (tmp_path / "job.toml").write_text(
        '[data]\nfile = "env:CLINIC_DB"\nquery = "SELECT x FROM t"\nschema = "s.toml"\n'
        '[privacy]\nepsilon = 1.0\ndelta = 0.0\nledger = false\n[outputs]\nrelease = "r.json"\n'
    )
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("address", SCHEMES)
def test_commands(
    address: str,
    command: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv("CLINIC_DB", address)
    assert run([word.replace("Q", "SELECT x FROM t") for word in COMMANDS[command].split()]) == 2
    said = "".join(capfd.readouterr())
    assert SCHEMES[address] in said
    assert "ECRET" not in said + caplog.text
    assert not (folder / "r.json").exists()


@pytest.mark.parametrize("address", SCHEMES)
def test_no_exception_holds_it(address: str, folder: Path) -> None:
    for asked in (
        lambda: dg.check((address, "SELECT x FROM t"), SCHEMA),
        lambda: dg.publish((address, "SELECT x FROM t"), SCHEMA, epsilon=1, delta=0, ledger=None),
        lambda: column_types((address, "SELECT x FROM t")),
    ):
        with pytest.raises(SourceError) as caught:
            asked()
        assert "ECRET" not in "".join(traceback.format_exception(caught.value)).replace(repr(address), "")
        assert "ECRET" not in repr(vars(caught.value))


def duckdb_file(folder: Path) -> Any:
    with duckdb.connect(str(folder / "a.duckdb")) as connection:
        connection.execute("CREATE TABLE t AS SELECT 1 AS x, 'AnnaMeier' AS name")
    return folder / "a.duckdb"


def sqlite_file(folder: Path) -> Any:
    with closing(sqlite3.connect(folder / "a.sqlite")) as connection:
        connection.executescript("CREATE TABLE t (x, name); INSERT INTO t VALUES (1, 'AnnaMeier')")
    return folder / "a.sqlite"


@pytest.mark.parametrize("database", [duckdb_file, sqlite_file])
@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("SELECT x FROM tt", "does not have; got 'tt'. Correct the name in the query"),
        ("SELECT y FROM t", "does not have; got 'y'. Correct the name in the query"),
        ("SELECT nofun(x) AS x FROM t", "does not have; got 'nofun'. Correct the name in the query"),
        ("SELECT x FRM t", "does not understand the query; got a mistake near 't'"),
        ("SELECT x FROM t WHER x > 1", "does not understand the query; got a mistake near 'x'"),
        ("SELECT x FROM t GROUP BY", "does not understand the query"),
    ],
)
def test_a_typing_mistake(
    database: Any, query: str, said: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(database(folder))
    assert run(["check", place, "--query", query, "-s", "s.toml"]) == 2
    told = capsys.readouterr().err
    assert said in told
    assert told.count("\n") == 1


def test_a_cell_is_no_name_in_the_query(folder: Path) -> None:
    """What fails only once rows are read is told without the database's own words."""
    query = "SELECT CAST(name AS INTEGER) AS x FROM t"
    with pytest.raises(SourceError, match="to its end; got ConversionException") as caught:
        dg.check((duckdb_file(folder), query), SCHEMA)
    assert "Meier" not in "".join(traceback.format_exception(caught.value))


def test_a_file_that_is_no_database(folder: Path) -> None:
    with pytest.raises(SourceError, match="DuckDB cannot open the database for reading"):
        dg.check((folder / "s.toml", "SELECT x FROM t"), SCHEMA)

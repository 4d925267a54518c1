"""Programs that guess types from the rows are not asked about files: one row could change all others."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pytest

from dpgram.errors import SourceError
from dpgram.sources import column_types, open_source

duckdb = pytest.importorskip("duckdb", reason="the extra 'duckdb' is not installed")

DAYS = ("01/02/2020", "03/04/2020")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, days in {"few": DAYS, "one more": (*DAYS, "01/13/2020")}.items():
        (tmp_path / f"{name}.csv").write_text("\n".join(("day,y", *(f"{day},0.5" for day in days))))
        rows = [json.dumps({"day": day, "y": 0.5}) for day in days]
        (tmp_path / f"{name}.json").write_text("\n".join(rows))
        pl.DataFrame({"day": days, "y": 0.5}).write_parquet(tmp_path / f"{name}.parquet")
    return tmp_path


@pytest.fixture
def connection(folder: Path) -> Iterator[Any]:
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW guessed AS FROM '{folder / 'few.csv'}'")
        connection.execute(f"CREATE MACRO guessing() AS TABLE FROM '{folder / 'few.csv'}'")
        connection.execute("CREATE TABLE days (day VARCHAR, y DOUBLE)")
        connection.execute(f"INSERT INTO days FROM read_csv('{folder / 'few.csv'}', all_varchar = true)")
        connection.execute("CREATE VIEW typed AS FROM days")
        yield connection


def read(data: object) -> list[Any]:
    source = open_source(data, ["day"], kinds={"day": "text"})
    return [cell for batch in source.batches() for cell in batch.column(0).to_pylist()]


def test_one_row_decides_how_duckdb_reads_all_others(folder: Path) -> None:
    """What the refusals are for: February 1 becomes January 2."""
    few, more = (
        duckdb.sql(f"FROM '{folder / name}.csv'").limit(1).fetchall()[0][0] for name in ("few", "one more")
    )
    assert (few.month, more.month) == (2, 1)


@pytest.mark.parametrize(
    "query",
    [
        "FROM '{few}.csv'",
        "FROM '{few}.json'",
        "SELECT * FROM read_csv('{few}.csv', all_varchar = true)",
        "SELECT * FROM read_json('{few}.json')",
        "FROM guessed",
        "FROM guessing()",
        "SELECT days.* FROM days JOIN '{few}.csv' AS other USING (y)",
        "SELECT * FROM days WHERE y <= (SELECT max(y) FROM '{few}.csv')",
        "FROM frame",
    ],
)
def test_duckdb_does_not_guess(query: str, connection: Any, folder: Path) -> None:
    frame = pd.DataFrame({"day": [*DAYS, 7], "y": 0.5})  # noqa: F841  found by its name
    asked = query.format(few=folder / "few")
    relation = connection.sql(asked)
    for data in (relation, (connection, asked)) if "frame" not in asked else (relation,):
        with pytest.raises(SourceError, match="guesses them from the rows"):
            read(data)


@pytest.mark.parametrize(
    "query",
    [
        "FROM days",
        "FROM typed",
        "FROM '{few}.parquet'",
        "SELECT * FROM read_parquet(['{few}.parquet'])",
        "SELECT a.day FROM days AS a JOIN range(3) AS r(n) ON r.n = 0",
        "SELECT unnest(['01/02/2020', '03/04/2020']) AS day",
        "SELECT * FROM (VALUES ('01/02/2020'), ('03/04/2020')) AS t(day)",
        "SELECT day, 'READ_CSV' AS \"Function\" FROM days",
        "WITH RECURSIVE t AS (SELECT 1 AS n UNION SELECT n + 1 FROM t WHERE n < 2) FROM days, t WHERE n = 1",
    ],
)
def test_duckdb_reads_what_has_types(query: str, connection: Any, folder: Path) -> None:
    asked = query.format(few=folder / "few")
    assert sorted(read(connection.sql(asked))) == list(DAYS)
    assert sorted(read((connection, asked))) == list(DAYS)


def test_duckdb_reads_arrow(connection: Any) -> None:
    frame = pl.DataFrame({"day": DAYS})  # noqa: F841  found by its name
    assert read(connection.sql("FROM frame")) == list(DAYS)


LAZY: dict[str, Callable[[Path], pl.LazyFrame]] = {
    "CSV": lambda few: pl.scan_csv(f"{few}.csv"),
    "JSON": lambda few: pl.scan_ndjson(f"{few}.json"),
    "a join": lambda few: pl.LazyFrame({"day": DAYS}).join(pl.scan_csv(f"{few}.csv"), on="day"),
    "a union": lambda few: pl.concat([pl.scan_parquet(f"{few}.parquet"), pl.scan_csv(f"{few}.csv")]),
    "a filter": lambda few: pl.scan_csv(f"{few}.csv").filter(pl.col("y") > 0).with_columns(z=1),
    "kept": lambda few: pl.scan_csv(f"{few}.csv").cache(),
}


@pytest.mark.parametrize("form", LAZY)
def test_polars_does_not_guess(form: str, folder: Path) -> None:
    with pytest.raises(SourceError, match="guesses from the first rows"):
        read(LAZY[form](folder / "few"))


def test_polars_reads_what_has_types(folder: Path) -> None:
    assert read(pl.scan_parquet(folder / "few.parquet")) == list(DAYS)
    scans = pl.LazyFrame({"day": ["Csv SCAN [x]", "NDJson SCAN"]})
    assert read(scans.filter(pl.col("day") != "Csv SCAN")) == ["Csv SCAN [x]", "NDJson SCAN"]


def test_types_can_be_asked_for(folder: Path) -> None:
    """For the first draft of a schema."""
    assert list(column_types(pl.scan_csv(folder / "few.csv"))) == ["day", "y"]
    assert list(column_types(duckdb.sql(f"FROM '{folder / 'few.csv'}'"))) == ["day", "y"]

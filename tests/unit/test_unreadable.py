"""A histogram tells what is missing from what cannot be read, whatever the table is and whatever counts it.

Nothing else depends on the difference: rows with either are lost in the same way.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpgram as dg
from dpgram.analysis.histograms import LOSSES
from dpgram.engines.local import LocalEngine
from dpgram.engines.passes import Pass
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.rows.rules import Rows, row_rules
from dpgram.sums.histograms import HistogramColumn, HistogramsStatistic

SCHEMA = dg.Schema(
    dg.numeric("plain", 0, 10),
    dg.numeric("grouped", 0, 10_000, thousands=","),
    dg.numeric("coded", 0, 10, missing=["N/A", -9]),
    dg.numeric("day", "2020-01-01", "2021-01-01"),
    dg.numeric("day_first", "2020-01-01", "2021-01-01", format="%d/%m/%Y", missing=["00/00/0000"]),
    dg.boolean("flag"),
    dg.boolean("answer", true="ja", false="nein", missing=["?"]),
    dg.categorical("group", ["a", "b"]),
)
MESSY: dict[str, list[str | None]] = {
    "plain": ["1", "x", "1,5", None, "nan", "-3", "11", "2"],
    "grouped": ["1,000", "1.000,5", "x", None, " ", "-1", "20,000", "2"],
    "coded": ["1", "n/a.", "x", "N/A", "-9", "-3", "11", "2"],
    "day": ["2020-02-03", "03/02/2020", "x", None, " ", "1999-01-01", "2030-01-01", "2020-12-31"],
    "day_first": [
        "03/02/2020",
        "02.03.2020",
        "x",
        "00/00/0000",
        " ",
        "01/01/1999",
        "01/01/2030",
        "31/12/2020",
    ],
    "flag": ["yes", "maybe", "2", None, " ", "no", "1", "0"],
    "answer": ["ja", "yes", "1", None, "?", "nein", "Ja", "nein"],
    "group": ["a", "c", "x", None, None, "b", "a", "b"],
}
"""Of each the second and third cell is unreadable and the next two are missing."""
EXPECTED = {
    name: (2, 2, 1, 1) if name in ("plain", "grouped", "coded", "day", "day_first") else (2, 2)
    for name in MESSY
}
COLUMNS = tuple(
    HistogramColumn(
        name=column.name,
        bounds=column.bounds,
        levels=len(column.group_levels) or (2 if column.kind == "boolean" else 0),
    )
    for column in SCHEMA.columns_read
)


def _written(folder: Path, encoding: str = "utf-8", quoted: bool = False) -> Path:
    path = folder / f"messy-{encoding}-{quoted}.csv"
    style = "non_numeric" if quoted else "necessary"
    path.write_bytes(pl.DataFrame(MESSY).write_csv(quote_style=style).encode(encoding))
    return path


def _parquet(folder: Path) -> Path:
    pq.write_table(pa.table(MESSY), folder / "messy.parquet")
    return folder / "messy.parquet"


def _json_lines(folder: Path) -> Path:
    path = folder / "messy.jsonl"
    rows = [dict(zip(MESSY, row, strict=True)) for row in zip(*MESSY.values(), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def _workbook(folder: Path) -> Path:
    sheets = pytest.importorskip("openpyxl")
    book = sheets.Workbook()
    book.active.append(list(MESSY))
    for row in zip(*MESSY.values(), strict=True):
        book.active.append(row)
    book.save(folder / "messy.xlsx")
    return folder / "messy.xlsx"


def _database(folder: Path) -> object:
    connection = sqlite3.connect(folder / "messy.sqlite")
    pd.DataFrame(MESSY).to_sql("t", connection, index=False)
    connection.commit()
    connection.close()
    return str(folder / "messy.sqlite"), "SELECT * FROM t"


def _dask(_: Path) -> object:
    frames = pytest.importorskip("dask.dataframe")
    return frames.from_pandas(pd.DataFrame(MESSY), npartitions=3)


FORMS: dict[str, Callable[[Path], object]] = {
    "csv": _written,
    "csv in quotes": lambda folder: _written(folder, quoted=True),
    "csv in UTF-16": lambda folder: _written(folder, "utf-16"),
    "parquet": _parquet,
    "json lines": _json_lines,
    "excel": _workbook,
    "sqlite": _database,
    "arrow": lambda _: pa.table(MESSY),
    "arrow dictionaries": lambda _: pa.table(
        {name: pa.array(cells).dictionary_encode() for name, cells in MESSY.items()}
    ),
    "lists": lambda _: MESSY,
    "pandas objects": lambda _: pd.DataFrame(MESSY, dtype=object),
    "pandas text": lambda _: pd.DataFrame(MESSY, dtype="string"),
    "polars": lambda _: pl.DataFrame(MESSY),
    "a Polars query": lambda _: pl.LazyFrame(MESSY),
    "dask": _dask,
}


def lost(data: object, schema: dg.Schema = SCHEMA, *, unit: str | None = None) -> dict[str, tuple[int, ...]]:
    """Exact counts of what was lost of each column."""
    from dpgram.engines.find import find_engine

    rules = row_rules(schema, Rows(unit=unit))
    work = Pass(rules=rules, statistics=(HistogramsStatistic(COLUMNS),))
    (sums,) = find_engine("auto", data).add_up(data, work, progress=False)
    return {
        column.name: tuple((line[column.cells : column.cells + column.losses] // ROW_NORM_SQUARED).tolist())
        for column, line in zip(COLUMNS, sums.cells, strict=True)
    }


@pytest.mark.parametrize("form", FORMS)
def test_every_source_tells_them_apart(form: str, tmp_path: Path) -> None:
    layout = {"encoding": "utf-16"} if form == "csv in UTF-16" else {}
    assert lost(FORMS[form](tmp_path), dg.Schema(*SCHEMA.columns, **layout)) == EXPECTED


@pytest.mark.parametrize("missing", ["drop", "midpoint"])
def test_both_are_lost_in_the_same_way(missing: str, tmp_path: Path) -> None:
    """The exact matrix, bit by bit, and the counts of the policy: as if the unreadable cells were empty."""
    from dpgram.testing import gram_by

    empty = {name: [cells[0], None, None, *cells[3:]] for name, cells in MESSY.items() if name != "group"}
    schema = dg.Schema(*SCHEMA.columns[:-1])
    wanted = gram_by(LocalEngine(), pa.table(empty), schema, missing=missing)
    for form in ("csv", "lists", "arrow", "pandas objects"):
        found = gram_by(LocalEngine(), FORMS[form](tmp_path), schema, missing=missing)
        assert found.to_bytes() == wanted.to_bytes()
        assert found.counts == wanted.counts


def test_what_pandas_calls_missing_stays_missing() -> None:
    gaps = {"plain": [1.0, np.nan], "flag": [True, None], "day": [pd.Timestamp("2020-02-03"), pd.NaT]}
    schema = dg.Schema(dg.numeric("plain", 0, 10), dg.boolean("flag"), SCHEMA.column("day"))
    for frame in (
        pd.DataFrame(gaps),
        pd.DataFrame(gaps, dtype=object),
        pd.DataFrame({**gaps, "plain": pd.array([1.0, None], "Float64"), "flag": pd.array([True, None])}),
        pd.DataFrame({"plain": [1.0, pd.NA], "flag": [True, pd.NA], "day": [gaps["day"][0], pd.NA]}),
    ):
        found = dg.check(frame, schema, progress=False).table
        assert {one.name: (one.missing, one.unreadable) for one in found} == dict.fromkeys(gaps, (1, 0))
        columns = tuple(column for column in COLUMNS if column.name in gaps)
        work = Pass(rules=row_rules(schema, Rows()), statistics=(HistogramsStatistic(columns),))
        (sums,) = LocalEngine().add_up(frame, work)
        for column, line in zip(columns, sums.cells // ROW_NORM_SQUARED, strict=True):
            assert line[column.cells : column.cells + 2].tolist() == [1, 0]


def test_a_file_that_turns_unreadable_late_is_read_on(tmp_path: Path) -> None:
    """Polars reads numbers until it meets a word; then the rest, and no row twice."""
    rows, path = 300_000, tmp_path / "late.csv"
    cells = [str(i % 10) for i in range(rows)]
    cells[-1], cells[7] = "x", ""
    path.write_text("a,b\n" + "".join(f"{cell},{i % 9}\n" for i, cell in enumerate(cells)), encoding="utf-8")
    columns = tuple(HistogramColumn(name=name, bounds=(0.0, 16.0)) for name in "ab")
    rules = row_rules(dg.Schema(dg.numeric("a", 0, 16), dg.numeric("b", 0, 16)), Rows())
    (sums,) = LocalEngine().add_up(path, Pass(rules=rules, statistics=(HistogramsStatistic(columns),)))
    counted = sums.cells // ROW_NORM_SQUARED
    assert counted.sum(axis=1).tolist() == [rows, rows]
    assert counted[0, :10].tolist() == [30_000] * 7 + [29_999, 30_000, 29_999]
    assert counted[0, 17:].tolist() == [1, 1, 0, 0]
    assert counted[1, 17:].tolist() == [0, 0, 0, 0]


def test_a_release_tells_analysts(tmp_path: Path) -> None:
    """With little noise: a third of the column is unreadable, a sixth is missing."""
    rows = 60_000
    cells = [("1", "2", "3", "x", "1,5", "")[i % 6] for i in range(rows)]
    path = tmp_path / "t.csv"
    path.write_text("v\n" + "".join(f'"{cell}"\n' for cell in cells), encoding="utf-8")
    with pytest.warns(match="column 'v'"), pytest.warns(match=r"50.0% of the rows .* are dropped"):
        release = dg.publish(
            path,
            dg.Schema(dg.numeric("v", 0, 4)),
            epsilon=8,
            delta=1e-6,
            adaptive=dg.Adaptive(loss_at_most=0.9),
            progress=False,
        )
    found = release.histogram("v").lost
    assert tuple(found) == LOSSES
    assert found["unreadable"] == pytest.approx(rows / 3, abs=300)
    assert found["missing"] == pytest.approx(rows / 6, abs=300)
    assert found["below"] == pytest.approx(0, abs=300)
    assert found["above"] == pytest.approx(0, abs=300)

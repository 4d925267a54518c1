"""Real tables as offices write them: once the reading rules are declared, the same bits as from Parquet.

Numbers are rounded to six decimals first, since a workbook keeps sixteen digits; of the larger tables a
workbook holds the first 5,000 rows. Every fiftieth cell of a number is missing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest

from dpgram.engines.local import LocalEngine
from dpgram.schema import Column, Schema, categorical, numeric
from dpgram.testing import gram_by

TABLES = {
    "adult": "adult/data.parquet",
    "nmes1988": "nmes1988/data.parquet",
    "cps1988": "cps1988/data.parquet",
    "parkinsons": "parkinsons/raw.parquet",
}
WORKBOOK_ROWS = 5_000


@dataclass(frozen=True)
class Case:
    """A tidy table, and the schema of its Parquet file."""

    table: pl.DataFrame
    schema: Schema

    def with_rules(self, *, numbers: dict[str, Any], texts: dict[str, Any], **layout: Any) -> Schema:
        """The same columns with these reading rules; levels in small letters where case says so."""
        columns: list[Column] = []
        for column in self.schema.columns:
            if column.kind == "numeric":
                columns.append(numeric(column.name, *(column.bounds or ()), **numbers))
            else:
                levels = [
                    level.lower() if texts.get("case") == "lower" else level for level in column.group_levels
                ]
                columns.append(categorical(column.name, levels, **texts))
        return Schema(*columns, **layout)


@pytest.fixture(params=TABLES)
def case(request: pytest.FixtureRequest, shared_data: Path) -> Case:
    table = pl.read_parquet(shared_data / TABLES[request.param])
    table = table.rename({name: re.sub(r"\W+", "_", name).strip("_").lower() for name in table.columns})
    table = table.with_columns(
        pl.col(pl.Float64, pl.Int64).cast(pl.Float64).round(6),
        pl.col(pl.String).str.strip_chars(),
    )
    table = table.with_columns(
        pl.when(pl.int_range(pl.len()) % 50 != place).then(pl.col(name)).alias(name)
        for place, name in enumerate(table.columns)
        if table[name].dtype == pl.Float64
    )
    columns: list[Column] = []
    for name in table.columns:
        if table[name].dtype == pl.Float64:
            low, high = float(table[name].min()), float(table[name].max())
            columns.append(numeric(name, np.floor(low) - 1, np.ceil(high) + 1))
        else:
            columns.append(categorical(name, sorted(table[name].drop_nulls().unique())))
    return Case(table, Schema(*columns))


def english(number: float | None) -> str:
    """$1,234.5, and -999 for a missing one."""
    return "-999" if number is None else f"{'-' if number < 0 else ''}${abs(number):,.6f}"


def german(number: float | None) -> str:
    """1.234,5 and k. A."""
    return "k. A." if number is None else f"{number:,.6f}".translate(str.maketrans(",.", ".,"))


def shouted(text: str | None) -> str:
    return "N.N. " if text is None else f"{text.upper()} "


def as_text(
    table: pl.DataFrame, numbers: Callable[[float | None], str], texts: Callable[[str | None], str]
) -> pl.DataFrame:
    return pl.DataFrame(
        {
            column.name: [
                (numbers if column.dtype == pl.Float64 else texts)(cell) for cell in column.to_list()
            ]
            for column in table
        }
    )


def bits(data: object, schema: Schema) -> bytes:
    return gram_by(LocalEngine(), data, schema, missing="midpoint").to_bytes()


def parquet(table: pl.DataFrame, folder: Path) -> Path:
    table.write_parquet(folder / "tidy.parquet")
    return folder / "tidy.parquet"


def test_a_messy_csv_file(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "messy.csv"
    path.write_bytes(as_text(case.table, english, shouted).write_csv().encode("latin-1"))
    schema = case.with_rules(
        numbers={"prefix": "$", "thousands": ",", "missing": [-999]},
        texts={"trim": True, "case": "lower", "missing": "n.n."},
        encoding="latin-1",
    )
    assert bits(path, schema) == bits(parquet(case.table, tmp_path), case.schema)


def test_semicolons_and_decimal_commas(case: Case, tmp_path: Path) -> None:
    path = tmp_path / "deutsch.csv.gz"
    text = as_text(case.table, german, lambda text: text or "").write_csv(separator=";")
    with pa.output_stream(str(path), compression="gzip") as stream:
        stream.write(("\ufeff" + text).encode())
    numbers = {"decimal": ",", "thousands": ".", "missing": ["k. A."]}
    schema = case.with_rules(numbers=numbers, texts={}, separator=";")
    assert bits(path, schema) == bits(parquet(case.table, tmp_path), case.schema)


@pytest.mark.parametrize("ending", [".dta", ".sav"])
def test_files_of_stata_and_spss(case: Case, ending: str, tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'office' is not installed")
    coded = case.table.with_columns(pl.col(pl.Float64).fill_null(-999.0), pl.col(pl.String).fill_null(""))
    write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav}[ending]
    write(coded.to_pandas(), str(tmp_path / f"table{ending}"))
    schema = case.with_rules(numbers={"missing": [-999]}, texts={})
    assert bits(tmp_path / f"table{ending}", schema) == bits(parquet(case.table, tmp_path), case.schema)


def test_workbooks(case: Case, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra 'test' is not installed")
    table = case.table.head(WORKBOOK_ROWS)
    book = openpyxl.Workbook(write_only=True)
    book.create_sheet("notes").append(["made by the office"])
    sheet = book.create_sheet("data")
    sheet.append(table.columns)
    for place, row in enumerate(table.iter_rows()):
        # Some numbers as text, as people type them; all others as the workbook keeps numbers.
        sheet.append([german(cell) if isinstance(cell, float) and place % 7 == 0 else cell for cell in row])
    book.save(tmp_path / "table.xlsx")
    numbers = {"decimal": ",", "thousands": ".", "missing": ["k. A."]}
    schema = case.with_rules(numbers=numbers, texts={}, sheet="data")
    assert bits(tmp_path / "table.xlsx", schema) == bits(parquet(table, tmp_path), case.schema)

"""Every form of table that carries ids, and ids in it that are easily confused.

Names in Latin-1, bytes that are not text, numbers on either side of 2^53, and several spellings of one
number, which are one person.
"""

from __future__ import annotations

import datetime as dt
import json
import sqlite3
import tempfile
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final, final

import dask
import dask.dataframe as dd
import duckdb
import numpy as np
import numpy.typing as npt
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyreadstat

Columns = dict[str, list[Any]]
Person = tuple[Any, ...]
"""The spellings of one id."""


def _bytes(*texts: str) -> tuple[bytes, ...]:
    return tuple(text.encode() for text in texts)


TEXT: Final[tuple[Person, ...]] = (
    ("7", "7.0", "7.00"), ("07",), (" 7",), ("7.5",), ("7.50",), ("10000000000000000", "1e+16", "1.0E16"),
    ("10000000000000001",), ("1e16",), ("Müller",), ("Möller",), ("M�ller",), ("M?ller",), ("a",), ("A",),
)  # fmt: skip
STRAY: Final[tuple[Person, ...]] = (
    (b"M\xfcller",), (b"M\xf6ller",), _bytes("Müller"), _bytes("M�ller"), (b"\xff",), (b"\xfe",),
    _bytes("7", "7.0"), _bytes("8", "8.00"), (b"07",), _bytes("12000000", "1.2E7", "1.2e+07"),
)  # fmt: skip
SURROGATES: Final[tuple[Person, ...]] = tuple(
    tuple(form.decode("utf-8", "surrogateescape") for form in person) for person in STRAY
)
"""The same as Python has it in text."""
BYTES: Final[tuple[Person, ...]] = tuple(
    (content,)
    for content in (b"M\xfcller", b"M\xf6ller", b"7", b"7.0", b"\xff", b"\xfe", b"\xef\xbf\xbd", b"x")
)
INTEGERS: Final[tuple[Person, ...]] = tuple(
    (number,) for number in (7, -7, 2**53, 2**53 + 1, 2**63 - 1, 2**63 - 2, 10**16, 10**16 + 1)
)
FLOATS: Final[tuple[Person, ...]] = tuple(
    (number,) for number in (7.0, 7.5, 0.1, np.nextafter(0.1, 1), 2.0**53, 2.0**53 + 2, 1e16, 1e300, 1e-300)
)
DECIMALS: Final[tuple[Person, ...]] = tuple(
    (Decimal(word),) for word in ("7", "7.0000000001", "-7", "9" * 20, "9" * 19 + "8", "0.1", "0.0000000001")
)
MOMENTS: Final[tuple[Person, ...]] = tuple(
    (np.datetime64(text, "ns"),)
    for text in (
        "2020-01-31",
        "2020-01-31T00:00:00.000000001",
        "2020-01-31T12",
        "2020-02-01",
        "1969-12-31T23",
    )
)
moment = dt.datetime.fromisoformat
OBJECTS: Final[tuple[Person, ...]] = (
    (7, 7.0, "7", "7.0", Decimal("7.00"), np.int64(7), np.float32(7)), (b"7",), ("07",), (b"7.0",),
    (10**16, 1e16, Decimal("1E+16"), "1e+16", np.uint64(10**16)), (10**16 + 1,), (2**53, 2.0**53),
    (2**53 + 1,), (10**30,), (10**30 + 1,), (b"M\xfcller",), (b"M\xf6ller",), ("M\udcfcller",),
    ("M\udcf6ller",), ("M?ller",), ("M�ller",), (uuid.UUID(int=1), str(uuid.UUID(int=1))),
    (uuid.UUID(int=2),), (True,), (1, 1.0, "1"),
    (dt.date(2020, 1, 31), moment("2020-01-31"), np.datetime64("2020-01-31"), "2020-01-31"),
    (moment("2020-01-31T12:00"), pd.Timestamp("2020-01-31T12")),
    (moment("2020-01-31T12:00+00:00"), moment("2020-01-31T13:00+01:00")),
    (0.1, "0.1"), (np.nextafter(0.1, 1),),
)  # fmt: skip
TWO_TYPES: Final[tuple[Person, ...]] = (
    (7.0,), (-7.0,), (2.0**24,), (2.0**24 + 1,), (2.0**53,), (2.0**53 - 1,), (0.5,), (0.1,), (1e30,),
)  # fmt: skip
"""Numbers of which some fit into floats of 32 bits."""
DAYS: Final[tuple[Person, ...]] = tuple(
    (number,) for number in (20_500.0, 20_500.25, 20_500.75, 20_501.0, 0.0, -1e6, 1e7, 1e8, 1e300, 9e299)
)
"""Numbers that a file declares to be days, with fractions of a day and beyond every calendar."""
STORED: Final[tuple[Person, ...]] = (
    (7, 7.0, "7", "7.0"), (b"7",), ("07",), (b"M\xfcller",), (b"M\xf6ller",), ("Müller",),
    (2**53, 2.0**53), (2**53 + 1,),
)  # fmt: skip
"""What SQLite holds in one column."""


@final
@dataclass(frozen=True, slots=True)
class Source:
    """A form of table: the ids that it can carry, and how columns are put into it (`folder` is for files)."""

    persons: tuple[Person, ...]
    make: Callable[[Columns, Path], Any]


def _column(cells: Sequence[Any]) -> npt.NDArray[np.object_]:
    column = np.empty(len(cells), object)
    column[:] = cells
    return column


def _mapping(columns: Columns, owners: Any) -> dict[str, Any]:
    """Arrays, but for the ids: the others are not what is searched."""
    texts = {name: pa.array(columns[name]) for name in ("which", "t")}
    return {**texts, **{name: np.array(columns[name], np.float64) for name in ("x", "w")}, "id": owners}


def _with_gap(columns: Columns) -> Columns:
    """One row more, that has no id: it counts nowhere, and the library of a column may think otherwise."""
    last = {"which": "", "t": "", "x": 0.0, "w": 0.0, "id": None}
    return {name: [*cells, last[name]] for name, cells in columns.items()}


def _arrow(columns: Columns, ids: pa.Array) -> pa.Table:
    return pa.table({**{name: cells for name, cells in columns.items() if name != "id"}, "id": ids})


def _in_arrow(kind: pa.DataType) -> Callable[[Columns, Path], pa.Table]:
    return lambda columns, _: _arrow(columns, pa.array(columns["id"], kind))


def _stray(columns: Columns) -> pa.Table:
    """Text of any bytes, as readers of files make it without a look."""
    return _arrow(columns, pa.array(columns["id"], pa.binary()).view(pa.string()))


def _parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "t.parquet", row_group_size=97)
    return folder / "t.parquet"


def _two_types(columns: Columns, folder: Path) -> list[Path]:
    """Ids as floats of 32 bits in one file, where they fit, and of 64 in another."""
    table = _arrow(columns, pa.array(columns["id"], pa.float64()))
    fits = pa.array([float(np.float32(who)) == who for who in columns["id"]], pa.bool_())
    narrow = table.filter(fits)
    place = table.column_names.index("id")
    narrow = narrow.set_column(place, "id", narrow["id"].cast(pa.float32()))
    paths = [folder / "narrow.parquet", folder / "wide.parquet"]
    for path, part in zip(paths, (narrow, table.filter(pc.invert(fits))), strict=True):
        pq.write_table(part, path)
    return paths


def _csv(columns: Columns, folder: Path) -> list[Path]:
    """Two files, so that what one of them holds cannot decide how the other is read."""
    lines = [
        b"%s,%s,%s,%s,%s\n" % (table.encode(), _quoted(who), repr(x).encode(), t.encode(), repr(w).encode())
        for table, who, x, t, w in zip(
            *(columns[name] for name in ("which", "id", "x", "t", "w")), strict=True
        )
    ]
    paths = [folder / "first.csv", folder / "second.csv"]
    for path, part in zip(paths, (lines[::2], lines[1::2]), strict=True):
        path.write_bytes(b"which,id,x,t,w\n" + b"".join(part))
    return paths


def _quoted(cell: str | bytes) -> bytes:
    raw = cell if isinstance(cell, bytes) else cell.encode()
    return b'"' + raw.replace(b'"', b'""') + b'"'


def _sqlite(columns: Columns, folder: Path, *, text: bool = False) -> Any:
    path = folder / "some #1.sqlite"
    path.unlink(missing_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"CREATE TABLE t ({', '.join(columns)})")
    rows = list(zip(*columns.values(), strict=True))
    connection.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(columns))})", rows)
    if text:
        connection.execute("UPDATE t SET id = CAST(id AS TEXT)")
    connection.commit()
    return connection, "SELECT * FROM t"


def _duckdb(kind: str) -> Callable[[Columns, Path], Any]:
    def make(columns: Columns, _: Path) -> Any:
        # Not by DuckDB's own scan of a frame, which guesses types.
        arrived = _arrow(columns, pa.array(columns["id"]))
        connection = duckdb.connect()
        connection.register("arrived", arrived)
        connection.execute(f"CREATE TABLE t AS SELECT * REPLACE (CAST(id AS {kind}) AS id) FROM arrived")
        connection.unregister("arrived")
        return connection, "SELECT * FROM t"

    return make


def _frame(columns: Columns, dtype: str = "object") -> pd.DataFrame:
    frame = pd.DataFrame({name: cells for name, cells in columns.items() if name != "id"})
    return frame.assign(id=pd.Series(_column(columns["id"]), dtype=dtype))


def _dask(columns: Columns, _: Path) -> Any:
    frame = _frame(columns)
    size = max(1, len(frame) // 3)
    starts = list(range(0, len(frame), size)) or [0]
    # Else Dask makes text of all objects before we see them (docs/limits.md).
    with dask.config.set({"dataframe.convert-string": False}):
        return dd.from_map(
            lambda start: frame.iloc[start : start + size], starts, meta=frame.iloc[:0]
        ).optimize()


def _hive(columns: Columns, folder: Path) -> Path:
    """A folder for every id, in Latin-1 as some programs write names."""
    from urllib.parse import quote

    root = Path(tempfile.mkdtemp(dir=folder))
    frame = _frame(columns)
    for who, part in frame.groupby("id", sort=False):
        (root / f"id={quote(who)}").mkdir()
        pq.write_table(
            pa.table({name: part[name].tolist() for name in columns if name != "id"}),
            root / f"id={quote(who)}" / "t.parquet",
        )
    return root


def _numpy(dtype: str) -> Callable[[Columns, Path], Any]:
    return lambda columns, _: _mapping(columns, np.array(columns["id"], dtype))


def _dictionary(columns: Columns, _: Path) -> pa.Table:
    return _arrow(columns, pa.array(columns["id"]).dictionary_encode())


def _parquet_of_bytes(columns: Columns, folder: Path) -> Path:
    return _parquet(_arrow(columns, pa.array(columns["id"], pa.binary())), folder)


JSON: Final[tuple[Person, ...]] = (
    (7, 7.0, "7", "7.0"), ("07",), (10**16, "10000000000000000"), (10**16 + 1,), (2**53,), (2**53 + 1,),
    ("Müller",), ("Möller",), ("M�ller",), (0.1, "0.1"), (True, "true"), ("a",), ("A",),
)  # fmt: skip
SHEET: Final[tuple[Person, ...]] = (
    (7, 7.0, "7", "7.0"), ("07",), (7.5,), ("Müller",), ("Möller",), ("M?ller",), (2**53 - 1,), (2**53 - 2,),
    ("a",), ("A",), ("b",),
)  # fmt: skip
"""Cells of a workbook are floats, texts and truths."""


def _json_lines(columns: Columns, folder: Path) -> Path:
    path = folder / "t.jsonl"
    rows = [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
    for row in rows:
        row["x"] = None if row["x"] != row["x"] else row["x"]  # JSON has no NaN
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")
    return path


def _arrow_file(table: pa.Table, folder: Path) -> Path:
    with pa.ipc.new_file(folder / "t.arrow", table.schema) as file:
        file.write_table(table, max_chunksize=97)
    return folder / "t.arrow"


def _stata(columns: Columns, folder: Path) -> Path:
    path = folder / "t.dta"
    pyreadstat.write_dta(_frame(columns, "str"), str(path), version=14)
    return path


def _stata_numbers(columns: Columns, folder: Path) -> Path:
    path = folder / "n.dta"
    pyreadstat.write_dta(_frame(columns, "float64"), str(path))
    return path


def _stata_days(columns: Columns, folder: Path) -> Path:
    path = folder / "d.dta"
    pyreadstat.write_dta(_frame(columns, "float64"), str(path), variable_format={"id": "%td"})
    return path


def _spss(columns: Columns, folder: Path) -> Path:
    path = folder / "t.sav"
    pyreadstat.write_sav(_frame(columns, "str"), str(path))
    return path


def _spss_days(columns: Columns, folder: Path) -> Path:
    path = folder / "d.sav"
    pyreadstat.write_sav(_frame(columns, "float64"), str(path), variable_format={"id": "DATE11"})
    return path


def _workbook(columns: Columns, folder: Path) -> Path:
    book = openpyxl.Workbook(write_only=True)
    sheet = book.create_sheet("t")
    sheet.append(list(columns))
    for cells in zip(*columns.values(), strict=True):
        sheet.append([None if cell != cell else cell for cell in cells])
    book.save(folder / "t.xlsx")
    return folder / "t.xlsx"


SOURCES: Final[Mapping[str, Source]] = {
    "lists of objects": Source(OBJECTS, lambda columns, _: _mapping(columns, columns["id"])),
    "numpy objects": Source(OBJECTS, lambda columns, _: _mapping(columns, _column(columns["id"]))),
    "numpy S": Source(BYTES, _numpy("S")),
    "numpy U": Source(TEXT, _numpy("U")),
    "numpy U of any text": Source(SURROGATES, _numpy("U")),
    "numpy integers": Source(INTEGERS, _numpy("i8")),
    "numpy floats": Source(FLOATS, _numpy("f8")),
    "numpy moments": Source(MOMENTS, _numpy("M8[ns]")),
    "pandas objects": Source(OBJECTS, lambda columns, _: _frame(columns)),
    "pandas series": Source(OBJECTS, lambda columns, _: _mapping(columns, _frame(columns)["id"])),
    "pandas array with a gap": Source(
        INTEGERS, lambda columns, _: _mapping(_with_gap(columns), pd.array([*columns["id"], None], "Int64"))
    ),
    "polars series": Source(
        OBJECTS, lambda columns, _: _mapping(columns, pl.Series(columns["id"], dtype=pl.Object))
    ),
    "pandas text": Source(TEXT, lambda columns, _: _frame(columns, "str")),
    "pandas categories": Source(TEXT, lambda columns, _: _frame(columns, "category")),
    "polars text": Source(TEXT, lambda columns, _: pl.DataFrame(columns)),
    "polars bytes": Source(BYTES, lambda columns, _: pl.DataFrame(columns)),
    "polars query": Source(TEXT, lambda columns, _: pl.LazyFrame(columns)),
    "Arrow text": Source(TEXT, _in_arrow(pa.string())),
    "Arrow text of any bytes": Source(STRAY, lambda columns, _: _stray(columns)),
    "Arrow bytes": Source(BYTES, _in_arrow(pa.binary())),
    "Arrow decimals": Source(DECIMALS, _in_arrow(pa.decimal128(38, 10))),
    "Arrow dictionary": Source(TEXT, _dictionary),
    "Parquet text of any bytes": Source(STRAY, lambda columns, folder: _parquet(_stray(columns), folder)),
    "Parquet bytes": Source(BYTES, _parquet_of_bytes),
    "Parquet folders": Source(STRAY[:6], _hive),
    "Parquet files of two types": Source(TWO_TYPES, _two_types),
    "Parquet dataset of two types": Source(
        TWO_TYPES, lambda columns, folder: ds.dataset(_two_types(columns, folder))
    ),
    "Arrow files": Source(TEXT, lambda columns, folder: _arrow_file(_arrow(columns, columns["id"]), folder)),
    "JSON lines": Source(JSON, _json_lines),
    "Stata text": Source(TEXT, _stata),
    "Stata numbers": Source(FLOATS, _stata_numbers),
    "Stata days": Source(DAYS, _stata_days),
    "SPSS text": Source(TEXT, _spss),
    "SPSS days": Source(DAYS, _spss_days),
    "workbooks": Source(SHEET, _workbook),
    "CSV in UTF-8": Source(TEXT, _csv),
    "CSV in Latin-1 and others": Source(STRAY, _csv),
    "SQLite": Source(STORED, _sqlite),
    "SQLite text of any bytes": Source(STRAY, lambda columns, folder: _sqlite(columns, folder, text=True)),
    "DuckDB text": Source(TEXT, _duckdb("VARCHAR")),
    "DuckDB bytes": Source(BYTES, _duckdb("BLOB")),
    "DuckDB integers": Source(INTEGERS, _duckdb("BIGINT")),
    "Dask": Source(OBJECTS, _dask),
    "Dask text": Source(TEXT, _dask),
}
"""Every source that carries ids; DB-API drivers as SQLite's. Spark sends Arrow batches, as those here."""
FILES: Final = frozenset(
    name
    for name in SOURCES
    if name.endswith("files")
    or name.startswith(("Parquet", "CSV", "SQLite", "DuckDB", "JSON", "Stata", "SPSS", "workbooks"))
)

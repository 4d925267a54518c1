"""One row of any content, in any source: whatever it holds, everything goes on as with an ordinary row.

The input says the form of the table, the column, and the cell that one of its rows has there. With that row
and with an ordinary one in its place, adding up, adding up by person and learning must come to the same end:
sums, or a refusal for a public reason such as a type. No warning may come of it, and the row may move the
sums by no more than one row can. Left out are quotes that break the form of a CSV file (docs/limits.md).
"""

from __future__ import annotations

import datetime as dt
import random
import sqlite3
import struct
import uuid
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Final, final

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pyreadstat

from assurance.fuzz_targets import scratch
from dpgram.document.fields import SurveyWeight, UnitRule
from dpgram.engines.passes import Pass, Sums, gram_pass, merge, numbered, sums_or_raise
from dpgram.errors import SourceError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import RowRules
from dpgram.schema import Schema
from dpgram.schema.columns import boolean, categorical, numeric
from dpgram.sums.counts import OctavesStatistic, RowsStatistic
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.levels import ExactLevels, LevelsStatistic

Columns = Mapping[str, Sequence[Any]]
Outcome = list[list[list[int]]] | str

SCHEMA: Final = Schema(
    numeric("x", -1, 1),
    categorical("t", ["a", "b"], other="else"),
    boolean("f"),
    numeric("d", "1990-01-01", "2030-01-01"),
)
OPEN: Final = Schema(numeric("x"), categorical("t"), boolean("f"), numeric("d", "1990-01-01", "2030-01-01"))
COLUMNS: Final = ("x", "t", "f", "d", "id", "g", "w")
LARGEST_IN_STATA: Final = 8.9e307
"""Greater numbers stand for missing ones."""
ROWS: Final = 4
"""Ordinary rows; the one in question is the last."""
ORDINARY: Final[dict[str, Any]] = {
    "x": 0.5, "t": "a", "f": True, "d": dt.date(2001, 2, 3), "id": "p", "g": "n", "w": 1.0
}  # fmt: skip


@final
@dataclass(frozen=True, slots=True)
class Typed:
    """A type of Arrow's, an ordinary cell of it and odd ones, as numbers of its storage or as values."""

    kind: pa.DataType
    ordinary: Any
    odd: tuple[Any, ...]


_FIRST, _LAST = (dt.datetime.fromisoformat(text) for text in ("0001-01-01", "9999-12-31T23:59:59.999999"))
OBJECTS: Final[tuple[Any, ...]] = (
    None, "", "a", "\ud800", "\udcff", "\x00", "7", "1e999", "nan", "-inf", "2020-02-30", "0" * 5000,
    "9999-12-31T23:59:59.999999999", "1" + "0" * 5000, b"", b"\xff", b"a", bytearray(b"\xfe"),
    memoryview(b"\xfd"), True, 0, -1, 2**63, 10**400, -(10**5000), 0.0, -0.0, float("nan"), float("inf"),
    -1.7976931348623157e308, 5e-324, 1j, complex("nan"), Decimal("NaN"), Decimal("sNaN"), Decimal("Infinity"),
    Decimal("1E+999999"), Decimal("1E-999999"), Decimal("-0"), Fraction(1, 3), Fraction(10**400, 1),
    dt.date.min, dt.date.max, _FIRST, _LAST, dt.time(1), dt.timedelta.max, uuid.UUID(int=7),
    _FIRST.replace(tzinfo=dt.timezone(dt.timedelta(hours=23))),
    _LAST.replace(tzinfo=dt.timezone(-dt.timedelta(hours=23))), np.float16("inf"), np.float32(1e38),
    np.longdouble("1e4000"), np.longdouble(1) / 3, np.int8(-128), np.uint64(2**64 - 1), np.bool_(1),
    np.str_("a"), np.bytes_(b"\xff"), np.datetime64("NaT"), np.datetime64(2**62, "Y"),
    np.datetime64(-(2**62), "as"), np.datetime64("2000-01-01T00"), np.timedelta64(5, "s"),
    np.timedelta64("NaT"), np.timedelta64(2**62, "W"), np.complex64(1j), np.void(b"abc"), np.array(1.0),
    np.array([1.0, 2.0]), pd.NA, pd.NaT, pd.Timestamp.max, pd.Timestamp.min, pd.Timedelta(1, "ns"),
    pd.Timestamp("2000-01-01", tz="Asia/Tokyo"), pd.Period("2000-01"), pd.Interval(0, 1), [], [1, 2], (), {},
    {"a": 1}, {1}, object, ..., NotImplemented, range(3),
)  # fmt: skip
"""Cells for whoever holds Python objects."""

SIGNALLING: Final = {size: (((1 << low) - 1 << 8 * size - 1 - low) + 1).to_bytes(size, "little")
                     for size, low in ((2, 5), (4, 8), (8, 11))}  # fmt: skip
"""The bits of a signalling NaN of so many bytes: whoever adds to it makes a warning."""

TYPES: Final = (
    Typed(pa.float64(), 0.5, (np.nan, SIGNALLING[8], np.inf, -np.inf, 1.7e308, 5e-324, -0.0, None)),
    Typed(pa.float32(), 0.5, (np.nan, SIGNALLING[4], np.inf, 3e38, 1e-45, None)),
    Typed(pa.float16(), np.float16(0.5), (np.float16("nan"), SIGNALLING[2], np.float16("inf"), None)),
    *(Typed(kind, 1, (np.iinfo(kind.to_pandas_dtype()).min, np.iinfo(kind.to_pandas_dtype()).max, None))
      for kind in (pa.int8(), pa.uint8(), pa.int32(), pa.int64(), pa.uint64())),
    Typed(pa.bool_(), 1, (0, None)),
    Typed(pa.decimal128(38, 0), Decimal(1), (Decimal(10**38 - 1), Decimal(1 - 10**38), None)),
    Typed(pa.decimal128(38, 38), Decimal("0.5"), (Decimal("1E-38"), Decimal(0), None)),
    Typed(pa.decimal256(76, 3), Decimal("0.5"), (Decimal(10**72), None)),
    Typed(pa.string(), b"a", (b"", b"\xff", b"\x00", b"1e999", b"\xed\xa0\x80", b"2001-02-30", None)),
    Typed(pa.large_string(), b"a", (b"", b"\xff", b"x" * 300, None)),
    Typed(pa.binary(), b"a", (b"", b"\xff", None)),
    Typed(pa.date32(), 11_000, (2**31 - 1, -(2**31), None)),
    Typed(pa.date64(), 86_400_000, (2**63 - 1, -(2**63), 1, None)),
    *(Typed(pa.timestamp(unit, zone), 1, (2**63 - 1, -(2**63), 0, None))
      for unit in ("s", "ms", "us", "ns") for zone in (None, "Asia/Tokyo")),
    Typed(pa.duration("s"), 1, (2**63 - 1, None)),
    Typed(pa.time64("us"), 1, (86_399_999_999, None)),
    Typed(pa.list_(pa.float64()), [0.5], ([], None)),
    Typed(pa.null(), None, (None,)),
)  # fmt: skip
"""What a typed column may hold in one row."""

DUCKDB: Final = {
    "HUGEINT": ("1", "170141183460469231731687303715884105727", "-170141183460469231731687303715884105728"),
    "UHUGEINT": ("1", "340282366920938463463374607431768211455"),
    "DOUBLE": ("0.5", "'nan'", "'inf'", "1e308"),
    "DECIMAL(38, 10)": ("0.5", "9999999999999999999999999999.9999999999"),
    "DATE": ("'2001-02-03'", "'infinity'", "'-infinity'", "'5877642-06-25 (BC)'", "'5881580-07-10'"),
    "TIMESTAMP": ("'2001-02-03'", "'infinity'", "'-infinity'", "'290309-12-22 (BC) 00:00:00'"),
    "TIMESTAMP_S": ("'2001-02-03'", "'infinity'", "'290309-12-22 (BC) 00:00:00'"),
    "TIMESTAMP_NS": ("'2001-02-03'", "'infinity'", "'1677-09-22 00:00:00'"),
    "TIMESTAMPTZ": ("'2001-02-03'", "'infinity'", "'-infinity'"),
    "VARCHAR": ("'a'", "''", "chr(0)", "chr(65533)"),
    "BLOB": ("'a'::BLOB", "'\\xFF'::BLOB", "''::BLOB"),
    "UUID": ("'00000000-0000-0000-0000-000000000001'", "'ffffffff-ffff-ffff-ffff-ffffffffffff'"),
    "BIT": ("'1'", "'0101'"),
    "ENUM('a', 'b')": ("'a'", "'b'"),
    "BIGNUM": ("1", "-1"),
    "INTERVAL": ("INTERVAL 1 DAY", "INTERVAL 999999 MONTH"),
    "TIME": ("'12:00:00'", "'24:00:00'"),
}
"""Types of DuckDB's with cells in its own words, the ordinary one first."""

NUMPY: Final = (
    *(np.dtype(name) for name in ("f2", "f4", "f8", "g", ">f8", "i1", "u8", ">i4", "?", "U3", "S3")),
    *(np.dtype(f"M8[{unit}]") for unit in ("Y", "M", "W", "D", "h", "s", "ms", "us", "ns", "ps")),
)
PANDAS: Final = (
    "string[python]",
    "Int64",
    "Float64",
    "boolean",
    "category",
    "datetime64[ns, UTC]",
    "datetime64[s]",
    "Sparse[float]",
)


def seeds() -> list[bytes]:
    """Every form with every column, and a few cells."""
    return [
        bytes([form, column, cell])
        for form in range(len(FORMS))
        for column in range(len(COLUMNS))
        for cell in (0, 17, 60)
    ]


def mutate(data: bytes, dice: random.Random) -> bytes:
    """Another form, column, cell or content."""
    raw = bytearray(data[:3].ljust(3, b"\0"))
    raw[dice.randrange(3)] = dice.randrange(256)
    return bytes(raw) + dice.choice((data[3:], dice.randbytes(dice.randrange(5))))


def examine(data: bytes) -> None:
    """Three bytes say form, column and cell; the rest is the content of a cell that takes any bytes."""
    form, column, cell = data[:3].ljust(3, b"\0")
    make = list(FORMS.values())[form % len(FORMS)]
    name = COLUMNS[column % len(COLUMNS)]
    odd, ordinary, without = make(name, random.Random(cell), data[3:40])
    found, expected = outcome(odd), outcome(ordinary)
    if isinstance(found, str) or isinstance(expected, str):
        assert found == expected, f"one cell in {name!r} makes {found!r} of {expected!r}"
        return
    fewer = outcome(without)
    assert not isinstance(fewer, str), f"without the row it is refused: {fewer!r}"
    if name != "id":  # another id may be that of another row
        for whole, rest in zip(found, fewer, strict=True):
            step = sum(a[i] - b[i] for i, (a, b) in enumerate(zip(whole, rest, strict=True)))
            assert 0 <= step <= ROW_NORM_SQUARED, f"one row moves the sums by {step}"


def outcome(make: Callable[[], Any]) -> Outcome:
    """The sums of a table, after everything that `publish` does to rows; or why it was refused."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            return _sums(make)
        except SourceError as refusal:
            return refusal.what


def _sums(make: Callable[[], Any]) -> list[list[list[int]]]:
    """What an engine does to a table, without its threads: they take ten times as long as so few rows."""
    whole, kept = Encoder(SCHEMA), Encoder(SCHEMA, missing="midpoint")
    by, weight = categorical("g", ["n"], other="rest"), SurveyWeight(column="w", at_most=2.0)
    rule = UnitRule(counts="units", rows_at_most=3)
    passes = (
        Pass(rules=RowRules(schema=SCHEMA, by=None), statistics=gram_pass(whole).statistics * 2),
        gram_pass(kept, unit="id", rule=rule),
        gram_pass(whole, unit="id", rule=rule, by=by, weight=weight),
    )
    found = [one for work in passes for one in added_up(make(), work)]
    for unit in (None, "id"):
        rules = RowRules(schema=OPEN, unit=unit, unit_rule=None if unit is None else rule)
        counts = (RowsStatistic(("x",)), LevelsStatistic(("t",)), OctavesStatistic(("x",)))
        for learnt in added_up(make(), Pass(rules=rules, statistics=counts)):
            if isinstance(learnt, ExactLevels):
                assert all(level.encode() for column in learnt.cells for level in column)
    return [one.cells.tolist() for one in found if isinstance(one, ExactGram)]


def added_up(data: Any, work: Pass) -> Sums:
    """The sums of a table, read in this thread."""
    batches = numbered(work.open(data).batches_in_this_thread())
    outcome = (
        merge([work.join([bucket]) for bucket in work.split(batches, 2)])
        if work.by_unit
        else work.sums(batches)
    )
    return sums_or_raise(outcome, work)


Made = tuple[Callable[[], Any], Callable[[], Any], Callable[[], Any]]


def _tables(
    name: str, odd: Any, ordinary: Any
) -> tuple[dict[str, list[Any]], dict[str, list[Any]], dict[str, list[Any]]]:
    """Columns with the odd row, with an ordinary one in its place, and without it."""
    base = {column: [cell] * ROWS for column, cell in ORDINARY.items()} | {
        "id": [f"p{i}" for i in range(ROWS)]
    }
    if ordinary is not ORDINARY[name]:
        base[name] = [ordinary] * ROWS
    last = ORDINARY | {"id": "last"}
    tables = [
        {column: [*cells, (last | {name: cell})[column]] for column, cells in base.items()}
        for cell in (odd, ordinary)
    ]
    return tables[0], tables[1], base


def _each(convert: Callable[[dict[str, list[Any]]], Any], tables: Sequence[dict[str, list[Any]]]) -> Made:
    first, second, third = (lambda table=table: convert(table) for table in tables)
    return first, second, third


def _object(dice: random.Random, content: bytes) -> Any:
    """One of the listed, or something made of the content."""
    made = (content, content.decode("utf-8", "surrogateescape"), content.decode("latin-1"),
            struct.unpack("d", content[:8].ljust(8, b"\0"))[0], int.from_bytes(content))  # fmt: skip
    return dice.choice(made) if content else dice.choice(OBJECTS)


def _column_of(cells: Sequence[Any]) -> Any:
    column = np.empty(len(cells), object)
    for place, cell in enumerate(cells):
        column[place] = cell
    return column


def _objects(convert: Callable[[dict[str, list[Any]]], Any]) -> Callable[[str, random.Random, bytes], Made]:
    def make(name: str, dice: random.Random, content: bytes) -> Made:
        return _each(convert, _tables(name, _object(dice, content), ORDINARY[name]))

    return make


def _flat(table: dict[str, list[Any]]) -> dict[str, list[Any]]:
    return dict(table)


def _arrays(table: dict[str, list[Any]]) -> dict[str, Any]:
    return {name: _column_of(cells) for name, cells in table.items()}


def _pandas(table: dict[str, list[Any]]) -> pd.DataFrame:
    return pd.DataFrame({name: pd.Series(_column_of(cells), dtype=object) for name, cells in table.items()})


def _series(table: dict[str, list[Any]]) -> dict[str, Any]:
    """Columns of pandas and of Polars by turns."""
    frames = (_pandas(table), _polars(table))
    return {name: frames[place % 2][name] for place, name in enumerate(table)}


def _polars(table: dict[str, list[Any]]) -> pl.DataFrame:
    return pl.DataFrame([pl.Series(name, list(cells), dtype=pl.Object) for name, cells in table.items()])


def _csv(name: str, dice: random.Random, content: bytes) -> Made:
    odd = content or dice.choice(
        (b"", b"\xff", b"\x00", b"1e999", b"0x10", b'"', b"\n", b"\r", b",", b"\xef\xbb\xbf", b" 1", b"nan")
    )

    def convert(table: dict[str, list[Any]]) -> Any:
        path = scratch() / "one_row.csv"
        lines = [",".join(table).encode()]
        for row in zip(*table.values(), strict=True):
            cells = [cell if isinstance(cell, bytes) else str(cell).encode() for cell in row]
            lines.append(b",".join(b'"' + cell.replace(b'"', b'""') + b'"' for cell in cells))
        path.write_bytes(b"\n".join([*lines, b""]))
        return path

    return _each(convert, _tables(name, odd, ORDINARY[name]))


def _typed(kind: pa.DataType, cells: Sequence[Any]) -> pa.Array:
    """An array of a type from what it stores, without a look at what that means."""
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return pa.array(cells, pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()).view(
            kind
        )
    if pa.types.is_floating(kind):
        return _floats(kind, cells)
    if pa.types.is_boolean(kind):
        return pa.array(cells, pa.int8()).cast(kind)
    if pa.types.is_temporal(kind):
        return pa.array(cells, pa.int32() if kind.bit_width == 32 else pa.int64()).view(kind)
    return pa.array(cells, kind)


def _floats(kind: pa.DataType, cells: Sequence[Any]) -> pa.Array:
    """Cells that are bytes are the bits of a float: only these keep a NaN signalling."""
    dtype = np.dtype(kind.to_pandas_dtype())
    bits = b"".join(
        cell if isinstance(cell, bytes) else np.array(np.nan if cell is None else cell, dtype).tobytes()
        for cell in cells
    )
    return pa.array(np.frombuffer(bits, dtype), kind, mask=np.array([cell is None for cell in cells]))


def _arrow_of(kind: pa.DataType, name: str) -> Callable[[dict[str, list[Any]]], pa.Table]:
    def convert(table: dict[str, list[Any]]) -> pa.Table:
        return pa.table(
            {
                column: _typed(kind, cells) if column == name else pa.array(cells)
                for column, cells in table.items()
            }
        )

    return convert


def _in_arrow(
    change: Callable[[pa.Table], Any], types: Sequence[Typed] = TYPES
) -> Callable[[str, random.Random, bytes], Made]:
    def make(name: str, dice: random.Random, content: bytes) -> Made:
        typed = dice.choice(types)
        odd = dice.choice(typed.odd)
        if content and (pa.types.is_string(typed.kind) or pa.types.is_binary(typed.kind)):
            odd = content
        convert = _arrow_of(typed.kind, name)
        tables = _tables(name, odd, typed.ordinary)
        return _each(lambda table: change(convert(table)), tables)

    return make


def _same(table: pa.Table) -> pa.Table:
    return table


def _dictionary(table: pa.Table) -> Any:
    columns = {}
    for name in table.column_names:
        kind = table[name].type
        nested = pa.types.is_nested(kind) or pa.types.is_null(kind)
        columns[name] = table[name] if nested else table[name].dictionary_encode()
    return pa.table(columns)


def _parquet(table: pa.Table, file: str = "one_row.parquet") -> Any:
    path = scratch() / file
    for place, name in enumerate(table.column_names):
        kind = table[name].type
        if pa.types.is_timestamp(kind) and kind.unit == "s":  # which the format does not have
            ticks = table[name].combine_chunks().view(pa.timestamp("ms", kind.tz))
            table = table.set_column(place, name, ticks)
    pq.write_table(table, path, row_group_size=2)
    return path


def _dataset(name: str, dice: random.Random, content: bytes) -> Made:
    """The ordinary rows are in one file, the row in question in another, whose column has another type."""
    others, typed = dice.choice(TYPES), dice.choice(TYPES)
    odd = content if content and pa.types.is_string(typed.kind) else dice.choice(typed.odd)
    base = _tables(name, others.ordinary, others.ordinary)[2]

    def convert(last: dict[str, list[Any]]) -> Any:
        paths = [_parquet(_arrow_of(others.kind, name)(base), "others.parquet")]
        if last:
            paths.append(_parquet(_arrow_of(typed.kind, name)(last), "last.parquet"))
        return ds.dataset(paths)

    row = {column: [cell] for column, cell in ORDINARY.items()}
    return _each(convert, [row | {name: [odd]}, row | {name: [typed.ordinary]}, {}])


def _statistical(
    write: Callable[..., None], file: str, formats: Sequence[str]
) -> Callable[[str, random.Random, bytes], Made]:
    """Numbers that a format declares to be days, moments or times: any double may stand in a cell."""

    def make(name: str, dice: random.Random, content: bytes) -> Made:
        shown = dice.choice(formats)
        number = struct.unpack("d", content[:8].ljust(8, b"\0"))[0]
        held = max(-LARGEST_IN_STATA, min(LARGEST_IN_STATA, number))
        odd = held if content else dice.choice((9_999_999.0, -1e6, 1e15, -1e300, 20_500.5, 0.0, np.nan))

        def convert(table: dict[str, list[Any]]) -> Any:
            frame = pd.DataFrame({**table, name: np.array(table[name], np.float64)})
            path = scratch() / file
            write(frame, str(path), variable_format={name: shown})
            return path

        return _each(convert, _tables(name, odd, 15_000.0))

    return make


def _numpy(name: str, dice: random.Random, content: bytes) -> Made:
    dtype = dice.choice(NUMPY)
    signalling = (SIGNALLING.get(dtype.itemsize, b"\1"),) if dtype.kind == "f" else ()
    raw = (content or dice.choice((b"\0", b"\xff", b"\x7f", *signalling))) * dtype.itemsize
    odd = np.frombuffer(raw[: dtype.itemsize], dtype)[0] if dtype.kind not in "?U" else np.ones(1, dtype)[0]
    ordinary = np.zeros(1, dtype)[0]

    def convert(table: dict[str, list[Any]]) -> Any:
        return {
            column: np.array(cells, dtype) if column == name else _column_of(cells)
            for column, cells in table.items()
        }

    return _each(convert, _tables(name, odd, ordinary))


def _pandas_types(name: str, dice: random.Random, content: bytes) -> Made:
    dtype = dice.choice(PANDAS)
    pools = {
        "string[python]": ("a", "\ud800", "", None),
        "category": ("a", "b", "é", None),
        "boolean": (True, False, None),
        "Int64": (1, 2**63 - 1, None),
    }
    cells = pools.get(
        dtype, (0, 2**40, None) if "date" in dtype else (0.5, float("inf"), float("nan"), 1e308)
    )
    odd = (
        content.decode("utf-8", "surrogateescape")
        if content and dtype == "string[python]"
        else dice.choice(cells)
    )

    def convert(table: dict[str, list[Any]]) -> Any:
        frame = _pandas({column: cells for column, cells in table.items() if column != name})
        return frame.assign(**{name: pd.Series(table[name], dtype=dtype)})

    return _each(convert, _tables(name, odd, cells[0]))


def _polars_types(table: pa.Table) -> Any:
    """What Polars takes of a type; strings must be strings there."""
    columns = dict(zip(table.column_names, table.columns, strict=True))
    valid = {
        name: cells
        if not pa.types.is_string(cells.type)
        else pa.chunked_array([_valid(cells.combine_chunks())])
        for name, cells in columns.items()
    }
    return pl.from_arrow(pa.table(valid))


def _valid(cells: pa.Array) -> pa.Array:
    return pa.array(
        [None if c is None else c.decode("utf-8", "replace") for c in cells.view(pa.binary()).to_pylist()]
    )


def _sqlite(name: str, dice: random.Random, content: bytes) -> Made:
    storable = (None, "", "a", b"\xff", b"", 1, 2**63 - 1, 0.5, float("inf"), "\x00", b"a")
    odd = dice.choice((content, content.decode("utf-8", "replace"))) if content else dice.choice(storable)
    text = dice.random() < 0.5

    def convert(table: dict[str, list[Any]]) -> Any:
        held = sqlite3.connect(":memory:")
        held.execute(f"CREATE TABLE t ({', '.join(table)})")
        rows = [
            [str(cell) if isinstance(cell, dt.date) else cell for cell in row]
            for row in zip(*table.values(), strict=True)
        ]
        held.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(table))})", rows)
        if text:
            held.execute(f"UPDATE t SET {name} = CAST({name} AS TEXT)")
        held.commit()
        return held, "SELECT * FROM t"

    return _each(convert, _tables(name, odd, ORDINARY[name]))


def _duckdb(name: str, dice: random.Random, content: bytes) -> Made:
    del content
    kind = dice.choice(tuple(DUCKDB))
    ordinary, *odd = DUCKDB[kind]

    def convert(table: dict[str, list[Any]]) -> Any:
        connection = duckdb.connect()
        words = dict.fromkeys(table, "VARCHAR") | {name: kind}
        connection.execute(
            f"CREATE TABLE t ({', '.join(f'{column} {word}' for column, word in words.items())})"
        )
        for row in zip(*table.values(), strict=True):
            cells = [cell if column == name else f"'{cell}'" for column, cell in zip(table, row, strict=True)]
            connection.execute(f"INSERT INTO t VALUES ({', '.join(cells)})")
        return connection, "SELECT * FROM t"

    return _each(convert, _tables(name, dice.choice(odd or [ordinary]), ordinary))


FORMS: Final[Mapping[str, Callable[[str, random.Random, bytes], Made]]] = {
    "lists": _objects(_flat),
    "arrays of objects": _objects(_arrays),
    "pandas objects": _objects(_pandas),
    "polars objects": _objects(_polars),
    "series": _objects(_series),
    "csv": _csv,
    "arrow": _in_arrow(_same),
    "arrow dictionaries": _in_arrow(_dictionary),
    "parquet": _in_arrow(_parquet),
    "dataset of two files": _dataset,
    "stata": _statistical(pyreadstat.write_dta, "one_row.dta", ("%td", "%tc", "%tC", "%9.0g")),
    "spss": _statistical(
        pyreadstat.write_sav,
        "one_row.sav",
        ("DATE11", "EDATE10", "DATETIME20", "TIME8", "DTIME12", "F8.2"),
    ),
    "polars": _in_arrow(_polars_types, [typed for typed in TYPES if not pa.types.is_decimal256(typed.kind)]),
    "numpy": _numpy,
    "pandas": _pandas_types,
    "sqlite": _sqlite,
    "duckdb": _duckdb,
}

"""Every Arrow type a column may have: read alike, or refused by its type with a clear message."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest

from dpgram.errors import SourceError
from dpgram.rows.encoder import Encoder
from dpgram.schema import Column, Schema, boolean, categorical, numeric


def codes(array: pa.Array, column: Column) -> list[float | None]:
    """What the encoder makes of a column, in its own units; None where a cell is missing or unknown."""
    schema = Schema(column, constant=False)
    encoder = Encoder(schema)
    out: list[float | None] = []
    for i in range(len(array)):
        encoded = encoder.encode(pa.RecordBatch.from_arrays([array.slice(i, 1)], names=[column.name]))
        assert encoded.counts.cells_missing + encoded.counts.cells_unknown == encoded.counts.rows_dropped
        row = encoded.rows[0] * (encoder.radius / 2**15) if len(encoded.rows) else None
        if row is None:
            out.append(None)
        else:
            out.append(float(row[0]) if len(row) == 1 else float(np.argmax(row)))
    return out


NUMBER = numeric("a", 0, 4)
INTEGERS = ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"]


@pytest.mark.parametrize("name", [*INTEGERS, "float16", "float32", "float64"])
def test_numbers(name: str) -> None:
    array = pa.array(np.array([0, 2, 4, 100, 3], name), mask=np.array([0, 0, 0, 0, 1], bool))
    assert codes(array, NUMBER) == [-1, 0, 1, 1, None]
    assert codes(array.slice(1, 3), NUMBER) == [0, 1, 1]


@pytest.mark.parametrize(
    "array",
    [
        pa.array([Decimal(0), Decimal("2.00"), Decimal(4), None], pa.decimal128(10, 2)),
        pa.array([Decimal(0), Decimal("2.00"), Decimal(4), None], pa.decimal256(60, 2)),
        pa.array([0.0, 2.0, 4.0, math.nan]),
        pa.array([-math.nan, 2.0, 4.0, math.inf]).slice(1),
        pa.array([0.0, 2.0, 4.0, None]).dictionary_encode(),
        pa.array(["0", " 2.0", "4e0", "four"]),
        pa.array(["0", "2", "4", "inf"], pa.large_string()),
        pa.array(["0", "2", "4", ""], pa.string_view()),
        pa.array(["0", "2", "4", "nan"]).dictionary_encode(),
    ],
    ids=lambda array: str(array.type),
)
def test_other_forms_of_numbers(array: pa.Array) -> None:
    expected = [-1.0, 0.0, 1.0, None] if len(array) == 4 else [0.0, 1.0, None]
    assert codes(array, NUMBER) == expected


def test_booleans_as_numbers_and_columns_of_nothing() -> None:
    assert codes(pa.array([True, False, None]), numeric("a", 0, 1)) == [1, -1, None]
    assert codes(pa.nulls(2), NUMBER) == [None, None]
    assert codes(pa.nulls(2), boolean("a")) == [None, None]
    assert codes(pa.nulls(2), categorical("a", ["x", "y"])) == [None, None]


def test_integers_beyond_the_floats_are_rounded_alike_with_and_without_nulls() -> None:
    column = numeric("a", 0, 2**63)
    odd = [2**62 + 1, 2**53 + 1, 12345]
    assert codes(pa.array(odd), column) == codes(pa.array([*odd, None]), column)[:3]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([True, False, None]), [1, -1, None]),
        (pa.array([1, 0, 2, -1, None]), [1, -1, None, None, None]),
        (pa.array([1.0, 0.0, 0.5, math.nan, math.inf]), [1, -1, None, None, None]),
        (pa.array(["true", "FALSE", " yes", "No", "t", "f", "1", "0"]), [1, -1, 1, -1, 1, -1, 1, -1]),
        (pa.array(["maybe", "", "2", None]), [None] * 4),
        (pa.array(["y", "n", None]).dictionary_encode(), [1, -1, None]),
    ],
    ids=str,
)
def test_truth_values(array: pa.Array, expected: list[float | None]) -> None:
    assert codes(array, boolean("a")) == expected


CITIES = categorical("a", ["Rome", "Oslo", "É"])


@pytest.mark.parametrize("form", [pa.string(), pa.large_string(), pa.string_view()], ids=str)
def test_levels_of_text(form: pa.DataType) -> None:
    array = pa.array(["Oslo", "Rome", None, "rome", "", "É"], form)
    assert codes(array, CITIES) == [1, 0, None, None, None, 2]


@pytest.mark.parametrize("index", [pa.int8(), pa.int32(), pa.uint16()], ids=str)
def test_levels_of_dictionaries(index: pa.DataType) -> None:
    array = pa.DictionaryArray.from_arrays(
        pa.array([1, 0, None, 2, 1], index), pa.array(["Rome", "Oslo", "Lima"])
    )
    assert codes(array, CITIES) == [1, 0, None, None, 1]
    holed = pa.DictionaryArray.from_arrays(pa.array([0, 1], index), pa.array([None, "Rome"]))
    assert codes(holed, CITIES) == [None, 0]
    assert codes(
        pa.DictionaryArray.from_arrays(pa.array([None], index), pa.array([], pa.string())), CITIES
    ) == [None]


@pytest.mark.parametrize("index", [pa.int8(), pa.uint8()], ids=str)
def test_a_dictionary_that_fills_its_index_type(index: pa.DataType) -> None:
    """Of as many values as the indices can number, none is left for the nulls."""
    size = 128 if index == pa.int8() else 256
    levels = [str(level) for level in range(size)]
    array = pa.DictionaryArray.from_arrays(pa.array([size - 1, None, 0], index), pa.array(levels))
    assert codes(array, categorical("a", levels)) == [size - 1, None, 0]


NUMBERED = categorical("a", ["3", 1, "-7", "300", "01", "2.5"])


@pytest.mark.parametrize("name", INTEGERS)
def test_levels_of_integers(name: str) -> None:
    assert codes(pa.array([1, 3, 5, None], name), NUMBERED) == [1, 0, None, None]
    if name.startswith("int"):
        assert codes(pa.array([-7], name), NUMBERED) == [2]
    if not name.endswith("8"):
        assert codes(pa.array([300], name), NUMBERED) == [3]


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_levels_of_floats(name: str) -> None:
    array = pa.array(np.array([1.0, 3.0, 2.5, 1.5, math.nan, -0.0, math.inf], name))
    assert codes(array, NUMBERED) == [1, 0, 5, None, None, None, None]
    assert codes(pa.array(np.array([-0.0, 0.0, 0.1], name)), categorical("a", ["0", "0.1"])) == [0, 0, 1]


def test_levels_of_halves() -> None:
    assert codes(pa.array(np.array([1.0, 3.0, math.nan], np.float16)), NUMBERED) == [1, 0, None]


def test_levels_of_booleans() -> None:
    array = pa.array([True, False, None])
    assert codes(array, categorical("a", [False, True])) == [1, 0, None]
    assert codes(array, categorical("a", ["true", "unsure"])) == [0, None, None]


def test_levels_of_dictionaries_of_integers() -> None:
    assert codes(pa.array([1, 3, 5]).dictionary_encode(), NUMBERED) == [1, 0, None]


DAY = numeric("a", "2000-01-01", "2000-01-03")


@pytest.mark.parametrize(
    "form",
    [
        pa.date32(),
        pa.date64(),
        *(pa.timestamp(unit) for unit in ("s", "ms", "us", "ns")),
        pa.timestamp("us", "UTC"),
    ],
    ids=str,
)
def test_dates(form: pa.DataType) -> None:
    days = [dt.date(2000, 1, 1), dt.date(2000, 1, 2), dt.date(2000, 1, 3), None, dt.date(1950, 1, 1)]
    array = (
        pa.array(days, pa.date32()).cast(form) if form.id != pa.lib.Type_TIMESTAMP else _moments(days, form)
    )
    assert codes(array, DAY) == [-1, 0, 1, None, -1]
    assert codes(array.dictionary_encode(), DAY) == [-1, 0, 1, None, -1]


def moment(*parts: int) -> dt.datetime:
    return dt.datetime(*parts, tzinfo=dt.UTC)


def _moments(days: list[dt.date | None], form: pa.DataType) -> pa.Array:
    midnights = [None if day is None else moment(day.year, day.month, day.day) for day in days]
    return pa.array(midnights, pa.timestamp("us")).cast(pa.timestamp(form.unit)).cast(form)


def test_times_of_day_give_the_same_bits_in_every_unit() -> None:
    moments = [moment(1987, 3, 4, 5, 6, 7), moment(2031, 12, 31, 23, 59, 59), None]
    column = numeric("a", "1900-01-01", "2050-01-01")
    schema = Schema(column, constant=False)
    rows = [
        Encoder(schema).encode(pa.record_batch({"a": pa.array(moments, pa.timestamp(unit))})).rows.tolist()
        for unit in ("s", "ms", "us", "ns")
    ]
    assert rows[0] == rows[1] == rows[2] == rows[3]
    exact = (moments[0] - moment(1900, 1, 1)) / (moment(2050, 1, 1) - moment(1900, 1, 1)) * 2 - 1
    assert rows[0][0][0] == pytest.approx(exact * 2**15, abs=0.6)


def test_dates_in_text() -> None:
    array = pa.array(["2000-01-01", "2000-01-02T00:00:00", "2000-01-03 00:00:00", "3 Jan 2000", None])
    assert codes(array, DAY) == [-1, 0, 1, None, None]


@pytest.mark.parametrize(
    ("array", "column", "message"),
    [
        (pa.array([dt.date(2000, 1, 1)]), NUMBER, r"'a' is declared numeric.*got date32.*bounds as dates"),
        (pa.array([1]), DAY, r"'a' is declared numeric.*got int64.*bounds as numbers"),
        (pa.array([[1]]), NUMBER, "got list"),
        (pa.array([{"x": 1}]), NUMBER, "got struct"),
        (pa.array([b"x"]), categorical("a", ["x"]), "got binary"),
        (pa.array([Decimal(1)]), categorical("a", ["1"]), "got decimal"),
        (pa.array([dt.date(2000, 1, 1)]), categorical("a", ["1"]), "declared categorical.*got date32"),
        (pa.array([dt.time(1)]), NUMBER, "got time64"),
        (pa.array([dt.timedelta(1)]), NUMBER, "got duration"),
        (pa.array([dt.date(2000, 1, 1)]), boolean("a"), "declared boolean.*got date32"),
    ],
    ids=str,
)
def test_refused_types(array: pa.Array, column: Column, message: str) -> None:
    with pytest.raises(SourceError, match=message) as raised:
        Encoder(Schema(column)).encode(pa.RecordBatch.from_arrays([array], names=["a"]))
    assert "2000" not in str(raised.value).replace('"2020-12-31"', "")

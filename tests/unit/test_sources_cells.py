"""Cells are read by their declared kind; what does not fit is unreadable, whatever the other cells hold."""

from __future__ import annotations

import decimal
import fractions
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import publish
from tests.unit.cells import UNREADABLE, cells_of

from dpgram.core.noise import SeededEntropy
from dpgram.errors import SourceError
from dpgram.rows.units import unit_ids
from dpgram.schema import Schema
from dpgram.schema.columns import boolean, categorical, legendre, numeric, product
from dpgram.sources import DeclaredKind, declared_kinds, open_source
from dpgram.sources.plain_columns import plain_columns

moment = datetime.fromisoformat

WORDS = [
    *("1", "+1", "-1.5", "1e5", "1E+05", ".5", "5.", "00012", " 1", "\t1", "1 ", "nan", "inf", "-Infinity"),
    *("1e400", "0x10", "1_000", "1,5", "١", "1.0.0", "--1", "-", "e5", "True", "NA", "$5", "5%", "0.1"),
    *("1.7976931348623157e308", "4.9e-324", "12345678901234567890123", "a", "\x00", "", " ", "\u00a0"),
]


def read(data: object, kind: DeclaredKind | None, column: str = "x") -> list[object]:
    kinds: dict[str, DeclaredKind] = {} if kind is None else {column: kind}
    batches = list(open_source(data, [column], kinds=kinds).batches())
    return [cell for batch in batches for cell in cells_of(batch.column(0))]


def csv_of(words: list[str], folder: Path) -> Path:
    path = folder / "words.csv"
    quoted = "".join('"' + word.replace('"', '""') + '",z\n' for word in words)
    path.write_text("x,other\n" + quoted, encoding="utf-8", newline="")
    return path


def parsed(word: str) -> object:
    """The reference: Python's own parser, without its underscores, other digits and trailing blanks."""
    plain = word.lstrip(" \t")
    if "_" in plain or not plain.isascii() or plain != plain.strip() or "\x00" in plain:
        return UNREADABLE if word.strip() else None
    try:
        number = float(plain)
    except ValueError:
        return UNREADABLE if word.strip() else None
    return None if number != number else number if abs(number) < float("inf") else UNREADABLE


UNTYPED: dict[str, Callable[[list[str], Path], object]] = {
    "csv": csv_of,
    "list": lambda words, _: {"x": words},
    "objects": lambda words, _: {"x": np.array(words, dtype=object)},
    "bytes": lambda words, _: {"x": [word.encode() for word in words]},
    "array of text": lambda words, _: np.array(words, dtype=object).reshape(-1, 1),
    "arrow text": lambda words, _: pa.table({"x": words}),
    "arrow views": lambda words, _: pa.table({"x": pa.array(words, pa.string_view())}),
    "arrow dictionary": lambda words, _: pa.table({"x": pa.array(words).dictionary_encode()}),
    "arrow runs": lambda words, _: pa.table({"x": pa.compute.run_end_encode(pa.array(words))}),
    "pandas text": lambda words, _: pd.DataFrame({"x": words}),
    "pandas objects": lambda words, _: pd.DataFrame({"x": pd.Series(words, dtype=object)}),
    "pandas categories": lambda words, _: pd.DataFrame({"x": pd.Categorical(words)}),
    "polars": lambda words, _: pl.DataFrame({"x": words}),
    "polars objects": lambda words, _: pl.DataFrame({"x": pl.Series(words, dtype=pl.Object)}),
    "polars categories": lambda words, _: pl.DataFrame({"x": pl.Series(words, dtype=pl.Categorical)}),
}


@pytest.mark.parametrize("form", UNTYPED)
def test_every_form_reads_the_same_numbers_from_text(form: str, tmp_path: Path) -> None:
    assert read(UNTYPED[form](WORDS, tmp_path), "number") == [parsed(word) for word in WORDS]


@settings(max_examples=100, deadline=None)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_written_float_is_read_back_to_the_last_bit(number: float) -> None:
    assert read(pa.table({"x": [repr(number)]}), "number") == [number]
    assert read({"x": [repr(number), number, np.float64(number)]}, "number") == [number] * 3


@pytest.mark.parametrize("form", UNTYPED)
def test_every_form_reads_the_same_booleans_from_text(form: str, tmp_path: Path) -> None:
    words = ["true", "False", "YES", "n", "1", "0", "1.0", " t ", "f", "maybe", "2", "oui", "", " "]
    expected = [True, False, True, False, True, False, True, True, False, *[UNREADABLE] * 3, None, None]
    assert read(UNTYPED[form](words, tmp_path), "boolean") == expected


@pytest.mark.parametrize("form", UNTYPED)
def test_every_form_reads_the_same_dates_from_text(form: str, tmp_path: Path) -> None:
    words = [
        "2020-02-29",
        "2020-02-29T12:30:00",
        "2020-02-29 12:30:00.25",
        "2021-02-29",
        "29/02/2020",
        "5",
        "x",
        "",
        " ",
    ]
    noon = moment("2020-02-29T12:30")
    day = moment("2020-02-29")
    expected = [day, noon, noon + timedelta(milliseconds=250), *[UNREADABLE] * 4, None, None]
    assert read(UNTYPED[form](words, tmp_path), "date") == expected


@pytest.mark.parametrize("form", UNTYPED)
@pytest.mark.parametrize("kind", ["text", None])
def test_text_stays_as_it_is(form: str, kind: DeclaredKind | None, tmp_path: Path) -> None:
    words = ["plain", " padded ", "1.50", 'quote " and, comma', "naïve", "NA"]
    assert read(UNTYPED[form](words, tmp_path), kind) == words


OBJECTS = [
    7,
    2.5,
    True,
    np.float32(0.5),
    np.int64(9),
    np.bool_(False),
    decimal.Decimal("1.25"),
    10**400,
    None,
    float("nan"),
    "8",
    "word",
    b"6",
    date(2020, 1, 31),
    moment("2020-01-31T06:00+01:00"),
    np.datetime64("2020-01-31"),
    pd.Timestamp("2020-01-31 06:00"),
    pd.NaT,
    [1],
    {"a": 1},
    object(),
    1 + 2j,
]
NOTHING = (None, float("nan"), pd.NaT)
NO = [None if any(cell is one for one in NOTHING) or cell != cell else UNREADABLE for cell in OBJECTS]
"""Of which nothing can be read."""


@pytest.mark.parametrize(
    "wrap", [lambda x: {"x": x}, lambda x: pd.DataFrame({"x": pd.Series(x, dtype=object)})]
)
@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("number", [7.0, 2.5, 1.0, 0.5, 9.0, 0.0, 1.25, *NO[7:10], 8.0, UNREADABLE, 6.0, *NO[13:]]),
        ("boolean", [*NO[:2], True, *NO[3:5], False, *NO[6:]]),
        (
            "date",
            [
                *NO[:13],
                moment("2020-01-31"),
                moment("2020-01-31T05:00"),
                moment("2020-01-31"),
                moment("2020-01-31T06:00"),
                *NO[17:],
            ],
        ),
        (
            "text",
            [
                *(
                    "7",
                    "2.5",
                    "true",
                    "0.5",
                    "9",
                    "false",
                    "1.25",
                    str(10**400),
                    None,
                    None,
                    "8",
                    "word",
                    "6",
                ),
                *("2020-01-31", *[None] * 8),
            ],
        ),
    ],
)
def test_mixed_objects_never_fail(
    wrap: Callable[[list[object]], object], kind: DeclaredKind, expected: list[object]
) -> None:
    assert read(wrap(OBJECTS), kind) == expected


@given(
    st.lists(st.none() | st.integers() | st.floats() | st.text() | st.binary() | st.booleans() | st.dates())
)
@settings(max_examples=40, deadline=None)
@pytest.mark.parametrize("kind", ["number", "text", "boolean", "date"])
def test_one_cell_never_changes_how_another_is_read(kind: DeclaredKind, cells: list[object]) -> None:
    together = read({"x": [*cells, "1", 2.5]}, kind)
    alone = [cell for each in [*cells, "1", 2.5] for cell in read({"x": [each]}, kind)]
    assert together == alone


@pytest.mark.parametrize("kind", ["number", "text", "boolean", "date"])
@pytest.mark.parametrize(
    "cell",
    [
        10**5000,
        decimal.Decimal("sNaN"),
        decimal.Decimal("1e999999"),
        "\ud800",
        b"\xff\xfe",
        fractions.Fraction(10**400, 3),
        datetime.max.replace(tzinfo=timezone(timedelta(hours=-1))),
        np.datetime64("NaT"),
        np.datetime64(2**62, "Y"),
        pd.Timestamp(2**40, unit="s"),
        pd.Timestamp("0001-01-01").as_unit("s").tz_localize(timezone(timedelta(hours=9))),
        pd.NA,
    ],
    ids=lambda cell: type(cell).__name__,
)
def test_hostile_objects_never_fail(cell: object, kind: DeclaredKind) -> None:
    (first, second) = read({"x": [cell, 1 if kind != "date" else date(2020, 1, 1)]}, kind)
    assert first in (None, UNREADABLE) or kind == "text"
    assert second not in (None, UNREADABLE)


def unchecked(cells: list[bytes], form: pa.DataType) -> pa.Array:
    """Bytes in a column of text as files may hold them: Arrow does not look at them."""
    binary = pa.array(cells, pa.binary() if form == pa.string() else pa.large_binary())
    return pa.Array.from_buffers(form, len(binary), binary.buffers())


@pytest.mark.parametrize("form", [pa.string(), pa.large_string()], ids=str)
@pytest.mark.parametrize(
    ("kind", "good", "expected"),
    [("number", b"2.5", 2.5), ("boolean", b"Yes", True), ("date", b"2020-01-31", moment("2020-01-31"))],
)
def test_bytes_that_are_no_text_never_fail(
    kind: DeclaredKind, good: bytes, expected: object, form: pa.DataType, tmp_path: Path
) -> None:
    table = pa.table({"x": unchecked([good, b"\xff", good, b"\xf0\x9f"], form)})
    pq.write_table(table, tmp_path / "x.parquet")
    assert read(table, kind) == [expected, UNREADABLE, expected, UNREADABLE]
    assert read(tmp_path / "x.parquet", kind) == [expected, UNREADABLE, expected, UNREADABLE]


@pytest.mark.parametrize("wrap", [lambda x: {"x": x}, lambda x: pa.table({"x": x})])
def test_dictionaries_that_do_not_fit_together_are_read(wrap: Callable[[pa.ChunkedArray], object]) -> None:
    """Each chunk has few values, all of them together more than eight bits can number."""
    words = [[f"{chunk}-{i}" for i in range(100)] for chunk in range(3)]
    indices = pa.array(range(100), pa.int8())
    chunks = [pa.DictionaryArray.from_arrays(indices, pa.array(chunk)) for chunk in words]
    assert read(wrap(pa.chunked_array(chunks)), "text") == [word for chunk in words for word in chunk]


def test_typed_columns_keep_their_types() -> None:
    data = pa.table(
        {
            "int": pa.array([1, None], pa.int16()),
            "decimal": pa.array([decimal.Decimal("1.5"), None]),
            "date": pa.array([date(2020, 1, 1), None]),
            "levels": pa.array(["a", None]).dictionary_encode(),
            "nothing": pa.nulls(2),
            "storage": pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, None], pa.int8())),
        }
    )
    kinds: dict[str, DeclaredKind] = {"int": "number", "levels": "text", "date": "date", "nothing": "number"}
    (batch,) = open_source(data, data.column_names, kinds=kinds).batches()
    levels = pa.dictionary(pa.int32(), pa.string())
    assert batch.schema.types[:2] == [pa.int16(), pa.decimal128(2, 1)]
    assert batch.schema.types[2:] == [pa.date32(), levels, pa.float64(), pa.int8()]


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (np.array([1, 2], ">i4"), [1, 2]),
        (np.array([0.5, 2], "float16"), [0.5, 2.0]),
        (np.array([0.5, 2], "longdouble"), [0.5, 2.0]),
        (np.ma.array([1.0, 2.0], mask=[True, False]), [None, 2.0]),
        (np.ma.array(["7", "8"], mask=[True, False], dtype=object), [None, 8.0]),
        (np.array([True, False]), [True, False]),
        (np.array(["1", "x", ""]), [1.0, UNREADABLE, None]),
        (np.array([b"1", b"\xff"]), [1.0, UNREADABLE]),
        (np.array(["2020-01-01"], "datetime64[D]"), [date(2020, 1, 1)]),
        (np.arange(10.0)[::4], [0.0, 4.0, 8.0]),
    ],
)
def test_numpy_types(array: np.ndarray, expected: list[object]) -> None:
    assert read({"x": array}, "number") == expected
    assert read(array.reshape(-1, 1), "number") == expected


def test_fortran_and_strided_arrays_are_read_in_row_order() -> None:
    square = np.arange(60.0).reshape(20, 3)
    for array in (square, np.asfortranarray(square), np.repeat(square, 2, axis=0)[::2], square[::-1][::-1]):
        batches = open_source(array, ["a", "b", "c"], batch_rows=7).batches()
        assert np.array_equal(np.vstack([np.column_stack(batch.columns) for batch in batches]), square)


def test_pandas_nullable_types() -> None:
    frame = pd.DataFrame({"x": pd.array([1, None, 3], dtype="Int64")})
    assert read(frame, "number") == [1, None, 3]
    assert read(frame.assign(x=[pd.Timestamp("2020-01-01", tz=UTC)] * 3), "date")[0].year == 2020


def test_a_schema_declares_the_kinds() -> None:
    schema = Schema(
        numeric("age", 0, 99),
        numeric("since", "2000-01-01", "2030-01-01"),
        categorical("smoker", ["no", "yes"]),
        boolean("member"),
        product("age", "member"),
        legendre("age", degree=2),
    )
    assert declared_kinds(schema) == {"age": "number", "since": "date", "smoker": "text", "member": "boolean"}
    assert set(declared_kinds(schema)) == set(schema.source_columns)


RUNS = {
    "texts": pa.array(["7", "x", None]),
    "text views": pa.array(["7", "x", None], pa.string_view()),
    "dictionary": pa.array(["7", "x", None]).dictionary_encode(),
    "dictionary of views": pa.DictionaryArray.from_arrays(
        [0, 1, None], pa.array(["7", "x"], pa.string_view())
    ),
}


class TestRuns:
    """Run-end encoded columns, sliced too, are read as their values are."""

    def table(self, values: pa.Array) -> pa.Table:
        return pa.table({"x": pa.RunEndEncodedArray.from_arrays([2, 5, 6], values).slice(1)})

    @pytest.mark.parametrize("form", RUNS)
    def test_of_any_text(self, form: str) -> None:
        table = self.table(RUNS[form])
        assert read(table, "number") == [7.0, *[UNREADABLE] * 3, None]
        assert read(table, "text") == ["7", "x", "x", "x", None]
        (ids,) = open_source(table, ["x"], kinds={"x": "id"}).batches()
        assert unit_ids(ids.column(0), "x").to_pylist() == ["7", "x", "x", "x", None]

    def test_ids_keep_the_meaning_of_their_type(self) -> None:
        one, other = UUID(int=1), UUID(int=2)
        for values in (
            pa.array([one.bytes, other.bytes, None], pa.uuid()),
            pa.array([one.bytes, other.bytes, None], pa.binary_view()),
        ):
            plain = unit_ids(values, "x").to_pylist()
            assert unit_ids(self.table(values)["x"].chunk(0), "x").to_pylist() == [
                plain[0],
                *plain[1:2] * 3,
                None,
            ]

    def test_ends_that_point_outside_of_the_values_are_refused(self) -> None:
        ends = np.array([2, 5, 6], np.int32)
        batch = pa.record_batch({"x": pa.RunEndEncodedArray.from_arrays(pa.array(ends), RUNS["texts"])})
        ends[:] = 2, 3, 4  # Arrow, which would refuse them, shares this memory
        with pytest.raises(SourceError, match="damaged"):
            plain_columns(batch, {"x": "text"})


class TestJsonBesideAnId:
    """What a column's numbers are does not depend on whether another column is an id."""

    def file(self, folder: Path, cells: list[str]) -> Path:
        path = folder / "rows.jsonl"
        lines = [f'{{"id": {place}, "x": {cell}}}\n' for place, cell in enumerate(cells)]
        path.write_text("".join(lines), encoding="utf-8")
        return path

    @pytest.mark.parametrize("kind", ["number", "text", "boolean", "date"])
    def test_every_number_is_the_same(self, kind: DeclaredKind, tmp_path: Path) -> None:
        cells = ["1.0", "1", "1.50", "1e3", "0.1", "-0.0", "1e400", "1e-400", "123456789.123456789123"]
        path = self.file(tmp_path, cells)
        (batch,) = open_source(path, ["x", "id"], kinds={"x": kind, "id": "id"}).batches()
        assert cells_of(batch.column(0)) == read(path, kind)

    @pytest.mark.filterwarnings("ignore:epsilon = 200")
    def test_the_same_rows_count(self, tmp_path: Path) -> None:
        path = self.file(tmp_path, ["1.0", "2.0", "1", "1e400"])
        schema = Schema(categorical("x", ["1", "2"]))
        for unit in (None, "id"):
            release = publish(
                path, schema, epsilon=200.0, delta=1e-6, entropy=SeededEntropy(1), progress=False, unit=unit
            )
            assert round(release.count()) == 3

    def test_a_number_beyond_the_floats_takes_no_other_cell_with_it(self, tmp_path: Path) -> None:
        path = tmp_path / "rows.jsonl"
        path.write_text('{"x": 1.5, "y": 1e400}\n', encoding="utf-8")
        assert read(path, "number") == [1.5]
        assert read(path, "number", "y") == [UNREADABLE]

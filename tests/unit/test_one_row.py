"""One row never decides whether there is a release: a bad cell is a missing or an unknown one."""

from __future__ import annotations

import datetime as dt
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.engines.dask import DaskEngine
from dpgram.engines.federated import partial_gram
from dpgram.engines.local import gram
from dpgram.errors import DpgramWarning, SourceError
from dpgram.estimators import AdaSSP, LpRegression, OutputPerturbation
from dpgram.publishing import publish_with
from dpgram.rows.learnt_levels import level_texts
from dpgram.rows.units import unit_ids
from dpgram.schema import Schema, categorical, numeric
from dpgram.schema.reading import AS_WRITTEN, Reading
from dpgram.sources import DeclaredKind, open_source
from dpgram.testing import gram_by

STRAY = b"M\xfcller"


def stray_texts(kind: pa.DataType, rows: int = 300) -> pa.Array:
    """Levels of which one is not UTF-8."""
    binary = pa.large_binary() if pa.types.is_large_string(kind) else pa.binary()
    return pa.array([STRAY, *[b"plain"] * rows], binary).view(kind)


class TestLearningLevels:
    @pytest.mark.parametrize("kind", [pa.string(), pa.large_string()], ids=str)
    @pytest.mark.parametrize("encoded", [False, True])
    def test_stray_bytes_are_no_level(self, kind: pa.DataType, encoded: bool) -> None:
        cells = stray_texts(kind)
        texts = level_texts(cells.dictionary_encode() if encoded else cells, "c").to_pylist()
        assert Counter(texts) == {"plain": 300, None: 1}

    @pytest.mark.parametrize("unit", [None, "id"])
    @pytest.mark.parametrize("form", ["arrow", "parquet"])
    def test_publish_goes_on(self, form: str, unit: str | None, tmp_path: Path) -> None:
        data: Any = pa.table({"c": stray_texts(pa.string()), "id": range(301), "x": [0.5] * 301})
        if form == "parquet":
            pq.write_table(data, tmp_path / "t.parquet")
            data = tmp_path / "t.parquet"
        schema = Schema(categorical("c"), numeric("x", 0, 1))
        release = publish(
            data,
            schema,
            epsilon=5.0,
            delta=1e-5,
            levels_budget=0.4,
            unit=unit,
            entropy=SeededEntropy(1),
            progress=False,
            adaptive=False,
        )
        assert release.schema.column("c").levels == ("plain",)


ODD: dict[str, object] = {
    "duration of numpy": np.timedelta64(1, "s"),
    "signalling NaN": Decimal("sNaN"),
    "moment of numpy beyond all years": np.datetime64(-(2**62), "as"),
    "half a surrogate pair": "\ud800",
    "complex number": 1j,
    "period": pd.Period("2000-01"),
    "list": [1],
}
HOLDERS: dict[str, Callable[[list[object]], Any]] = {
    "list": lambda cells: {"c": cells},
    "objects": lambda cells: {"c": pd.Series(cells, dtype=object).to_numpy()},
    "pandas": lambda cells: pd.DataFrame({"c": pd.Series(cells, dtype=object)}),
    "polars": lambda cells: pl.DataFrame({"c": pl.Series(cells, dtype=pl.Object)}),
}


@pytest.mark.parametrize("kind", ["number", "text", "boolean", "date", "id"])
@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("holder", HOLDERS)
def test_no_object_stops_the_reading(holder: str, odd: str, kind: DeclaredKind) -> None:
    ordinary = {"number": 1, "text": "a", "boolean": True, "date": dt.date(2000, 1, 1), "id": "a"}[kind]
    data = HOLDERS[holder]([ordinary, ODD[odd], ordinary])
    (batch,) = open_source(data, ["c"], kinds={"c": kind}).batches()
    assert batch.num_rows == 3
    assert batch.column(0)[0].as_py() == batch.column(0)[2].as_py() is not None


def fails(*_: object) -> Any:
    raise RuntimeError("the cell's own words")


def half_a_pair(*_: object) -> str:
    return "\ud800"


def subclass(kind: type, *methods: str, does: Callable[..., Any] = fails) -> Any:
    """A class of cells whose own `methods` fail, or do something else."""
    return type(f"Odd{kind.__name__}", (kind,), dict.fromkeys(methods, does))


COMPARED = ("__eq__", "__ne__", "__hash__", "__bool__")
OddZone = subclass(dt.tzinfo, "utcoffset")
FAILING: dict[str, Callable[[], object]] = {
    "zone": lambda: dt.datetime(2000, 1, 1, tzinfo=OddZone()),
    "moment": lambda: subclass(dt.datetime, "date", "utcoffset", *COMPARED)(2000, 1, 1),
    "day": lambda: subclass(dt.date, "isoformat", "year", *COMPARED)(2000, 1, 1),
    "text": lambda: subclass(str, "encode", "strip", "__str__", *COMPARED)("a"),
    "bytes": lambda: subclass(bytes, "decode", "hex", "__bytes__", *COMPARED)(b"a"),
    "integer": lambda: subclass(int, "__int__", "__index__", "__float__", "__str__", "__abs__", *COMPARED)(1),
    "float": lambda: subclass(float, "__float__", "__int__", "is_integer", "__repr__", *COMPARED)(1.5),
    "decimal": lambda: subclass(Decimal, "__float__", "is_nan", "as_tuple", "__str__", *COMPARED)("1.5"),
    "uuid": lambda: subclass(UUID, "__str__", "__int__", *COMPARED)(int=1),
    "object": lambda: subclass(object, "__float__", "__str__", "__class__", *COMPARED)(),
    "nothing of what it says": lambda: type("Odd", (), {"__class__": property(lambda _: str)})(),
    "its class": lambda: type("Odd", (), {"__class__": property(fails)})(),
    "words of an integer": lambda: subclass(int, "__str__", "__repr__", does=half_a_pair)(1),
    "words of a decimal": lambda: subclass(Decimal, "__str__", does=half_a_pair)("1.5"),
    "words of a day": lambda: subclass(dt.date, "isoformat", "__str__", does=half_a_pair)(2000, 1, 1),
    "words of a text": lambda: subclass(str, "encode", "__str__", does=half_a_pair)("a"),
    "words of a UUID": lambda: subclass(UUID, "__str__", does=half_a_pair)(int=1),
}
READINGS = {
    "number": Reading(missing=("-9",), decimal=","),
    "text": Reading(missing=("-9",), trim=True, case="lower"),
    "boolean": Reading(missing=("-9",), true=("1",), false=("2",)),
    "date": Reading(missing=("1900-01-01",), format="%d/%m/%Y"),
    "id": AS_WRITTEN,
}


@pytest.mark.parametrize("ruled", [False, True])
@pytest.mark.parametrize("kind", READINGS)
@pytest.mark.parametrize("failing", FAILING)
@pytest.mark.parametrize("holder", HOLDERS)
def test_no_method_of_an_object_stops_the_reading(
    holder: str, failing: str, kind: DeclaredKind, ruled: bool
) -> None:
    ordinary = {"number": 1, "text": "a", "boolean": True, "date": dt.date(2000, 1, 1), "id": "a"}[kind]
    data = HOLDERS[holder]([ordinary, FAILING[failing](), ordinary])
    readings = {"c": READINGS[kind]} if ruled else {}
    (batch,) = open_source(data, ["c"], kinds={"c": kind}, readings=readings).batches()
    assert batch.num_rows == 3
    assert batch.column(0)[0].as_py() == batch.column(0)[2].as_py() is not None


@pytest.mark.parametrize("failing", ["zone", "text", "integer", "float"])
def test_an_id_that_cannot_be_read_is_none(failing: str) -> None:
    cells = pd.Series(["a", FAILING[failing](), "b"], dtype=object).to_numpy()
    (batch,) = open_source({"c": cells}, ["c"], kinds={"c": "id"}).batches()
    assert unit_ids(batch.column(0), "c").to_pylist() == ["a", None, "b"]


@pytest.mark.parametrize("stop", [KeyboardInterrupt, MemoryError])
def test_what_is_no_fault_of_a_cell_is_passed_on(stop: type[BaseException]) -> None:
    def stops(*_: object) -> float:
        raise stop

    with pytest.raises(stop):
        list(
            open_source(
                {"c": [subclass(float, "__float__", does=stops)(1.0)]}, ["c"], kinds={"c": "number"}
            ).batches()
        )


def test_surrogates_in_texts_of_pandas() -> None:
    frame = pd.DataFrame({"c": pd.Series(["a", "\ud800"], dtype="string[python]")})
    (batch,) = open_source(frame, ["c"], kinds={"c": "text"}).batches()
    assert batch.column(0)[0].as_py() == "a"


def test_extended_precision_warns_of_no_row() -> None:
    cells = np.array([0.5, np.longdouble("1e4000"), np.nan], np.longdouble)
    (batch,) = open_source({"c": cells}, ["c"], kinds={"c": "number"}).batches()
    assert batch.column(0)[1].as_py() == np.inf


class TestNoUsableRow:
    SCHEMA = Schema(numeric("x", 0, 1))

    @pytest.mark.parametrize("engine", ["local", "dask", "publish"])
    def test_where_warnings_are_errors_nothing_stops(self, engine: str) -> None:
        data = {"x": np.array([np.nan])}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if engine == "publish":
                publish(data, self.SCHEMA, epsilon=1.0, delta=1e-6, progress=False, adaptive=False)
            elif engine == "local":
                assert gram(data, self.SCHEMA).rows == 0
            else:
                import dask.dataframe as dd

                frame = dd.from_pandas(pd.DataFrame(data), npartitions=1)
                assert gram_by(DaskEngine(scheduler="threads"), frame, self.SCHEMA).rows == 0

    def test_else_it_is_said(self) -> None:
        with pytest.warns(DpgramWarning, match="no row of the data was usable"):
            gram({"x": np.array([np.nan])}, self.SCHEMA)


EMPTY: dict[str, Callable[[Path], Any]] = {
    "arrow": lambda _: pa.table({"x": pa.array([], pa.list_(pa.int8()))}),
    "reader": lambda _: pa.table({"x": pa.array([], pa.list_(pa.int8()))}).to_reader(),
    "polars": lambda _: pl.DataFrame({"x": []}, schema={"x": pl.List(pl.Int8)}),
    "polars query": lambda _: pl.LazyFrame({"x": []}, schema={"x": pl.List(pl.Int8)}),
    "numpy": lambda _: {"x": np.array([], "datetime64[Y]")},
    "duckdb": lambda _: duckdb.sql("SELECT [1] AS x WHERE false"),
    "parquet": lambda folder: _written(folder),
}


def _written(folder: Path) -> Path:
    pq.write_table(pa.table({"x": pa.array([], pa.list_(pa.int8()))}), folder / "empty.parquet")
    return folder / "empty.parquet"


@pytest.mark.parametrize("form", EMPTY)
def test_a_type_is_refused_in_a_table_without_rows_as_well(form: str, tmp_path: Path) -> None:
    """Else one row would decide: an empty table is a neighbour of a table of one row."""
    with pytest.raises(SourceError, match="column 'x'"):
        gram(EMPTY[form](tmp_path), Schema(numeric("x", 0, 1)))


class TestWhereNumpyRaises:
    """A caller may have numpy raise where it would round to zero: no row may show that."""

    @pytest.fixture(autouse=True)
    def _raising(self) -> Iterator[None]:
        with np.errstate(all="raise"):
            yield

    WEIGHTED = dg.Rows(weight=numeric("w", 0, 3))
    SCHEMA = Schema(numeric("x", 0, 1))

    @staticmethod
    def table(number: float) -> dict[str, Any]:
        cells = np.linspace(0.1, 0.9, 300)
        return {"x": cells, "w": np.where(np.arange(300) == 7, number, cells)}

    @pytest.mark.parametrize("number", [5e-324, 1e-310, 1.0])
    def test_publish(self, number: float) -> None:
        (found,) = publish_with(
            self.table(number),
            self.SCHEMA,
            entropy=SeededEntropy(1),
            epsilon=9,
            delta=1e-6,
            rows=self.WEIGHTED,
            progress=False,
        )
        assert found.survey_weight is not None

    @pytest.mark.parametrize("number", [5e-324, 1e-310, 1.0])
    def test_partial_gram(self, number: float) -> None:
        (found,) = partial_gram(self.table(number), self.SCHEMA, rows=self.WEIGHTED, progress=False).sums
        assert found.counts.rows_used == 300

    @pytest.mark.parametrize("number", [5e-324, 1e-170, 1e170, 1.0])
    @pytest.mark.parametrize("kind", [AdaSSP, LpRegression, OutputPerturbation])
    def test_fits(self, kind: type[Any], number: float) -> None:
        rows = self.table(1.0)
        rows["x"][7] = number
        fitted = kind(epsilon=2.0, x_norm=1.0, y_bound=1.0, entropy=SeededEntropy(1))
        assert np.isfinite(fitted.fit(np.c_[rows["x"], rows["w"]], rows["w"]).coef_).all()

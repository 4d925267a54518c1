"""A signalling NaN is a missing cell like any other: no warning tells that one row holds it."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pytest

import dpgram as dg
from dpgram.engines.federated import partial_gram
from dpgram.engines.local import gram

BITS = {np.float64: 0x7FF0000000000001, np.float32: 0x7F800001, np.float16: 0x7C01}
KINDS = pytest.mark.parametrize("kind", BITS, ids=lambda kind: kind.__name__)
FORMS: dict[str, Callable[[dict[str, Any]], Any]] = {
    "arrays": dict,
    "arrow": pa.table,
    "pandas": pd.DataFrame,
}
SCHEMA = dg.Schema(
    dg.numeric("x", 0, 1), dg.boolean("f"), dg.categorical("c", ["0", "1"]), dg.numeric("z", 0, 1)
)
OPEN = dg.Schema(dg.numeric("x"), dg.boolean("f"), dg.categorical("c"))


@pytest.fixture(autouse=True)
def _warnings_are_errors() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        warnings.filterwarnings("error", "invalid value", dg.DpgramWarning)
        yield


def cells(kind: type[np.floating[Any]], *, nan: float | None = None) -> npt.NDArray[Any]:
    """Zeros and ones, and a signalling NaN, or `nan`, in the fourth place."""
    column = np.tile(np.array([0.0, 1.0], kind), 50)
    if nan is None:
        column.view(f"u{column.itemsize}")[3] = BITS[kind]
    else:
        column[3] = nan
    assert np.isnan(column[3])
    return column


def table(kind: type[np.floating[Any]], *, nan: float | None = None) -> dict[str, Any]:
    column = cells(kind, nan=nan)
    return {"id": np.arange(100), "z": np.linspace(0, 1, 100)} | dict.fromkeys("xfcw", column)


@KINDS
@pytest.mark.parametrize("form", FORMS)
class TestNoWarning:
    def test_gram(self, form: str, kind: type[np.floating[Any]]) -> None:
        found, expected = (
            gram(FORMS[form](table(kind, nan=nan)), SCHEMA, progress=False) for nan in (None, np.nan)
        )
        assert found == expected

    def test_partial_gram(self, form: str, kind: type[np.floating[Any]]) -> None:
        rows = dg.Rows(unit="id", weight=dg.numeric("w", 0, 1))
        found, expected = (
            partial_gram(FORMS[form](table(kind, nan=nan)), SCHEMA, rows=rows, site="a")
            for nan in (None, np.nan)
        )
        assert found.sums == expected.sums

    def test_an_id(self, form: str, kind: type[np.floating[Any]]) -> None:
        data = FORMS[form](table(kind) | {"id": cells(kind)})
        found = partial_gram(data, SCHEMA, rows=dg.Rows(unit="id"), site="a")
        assert found.sums[0].counts.rows_without_unit == 1

    def test_check(self, form: str, kind: type[np.floating[Any]]) -> None:
        for schema in (SCHEMA, OPEN):
            dg.check(FORMS[form](table(kind)), schema, progress=False)

    @pytest.mark.parametrize("unit", [None, "id"])
    def test_publish(self, form: str, kind: type[np.floating[Any]], unit: str | None) -> None:
        for schema in (SCHEMA, OPEN):
            dg.publish(
                FORMS[form](table(kind)),
                schema,
                epsilon=9.0,
                delta=1e-6,
                rows=dg.Rows(unit=unit),
                progress=False,
            )

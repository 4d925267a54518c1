"""Dates of Stata, SPSS and SAS, and cells of workbooks: none stops reading, and ids in them stay distinct."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpgram as dg
from dpgram.engines import gram
from dpgram.rows.units import unit_ids
from dpgram.schema import Schema, numeric
from dpgram.sources import column_types, open_source
from dpgram.sources.base import DeclaredKind
from dpgram.sources.ids import id_text
from dpgram.sources.stored_dates import SAS

pyreadstat = pytest.importorskip("pyreadstat", reason="the extra 'office' is not installed")

DAYS = [(".dta", "%td"), (".dta", "%d"), (".sav", "DATE11"), (".sav", "EDATE10"), (".xpt", "DATE9")]
MOMENTS = [(".dta", "%tc"), (".dta", "%tC"), (".sav", "DATETIME20"), (".xpt", "DATETIME20")]
TIMES = [(".sav", "TIME8"), (".sav", "DTIME12"), (".xpt", "TIME8")]
FORMATS = [*DAYS, *MOMENTS, *TIMES, (".dta", "%tcHH:MM:SS"), (".dta", "%tdDD/NN/CCYY"), (".dta", "%tm")]
ODD = [9999999.0, 3e6, -1e6, 1e20, -1e15, 1e300, -1e300, 9.99e14, 0.0, -0.5, 0.1, 0.25, 1e-7, 1e-300]
NUMBERS = st.one_of(
    st.sampled_from(ODD),
    st.integers(-(10**6), 10**14).map(float),
    st.floats(-1e300, 1e300, allow_nan=False),
    st.sampled_from([20500.0, 1.35e10, 1.9e12]).flatmap(
        lambda day: st.sampled_from([1e-6, 1e-5, 0.25, 0.5, 0.7, 5, 86399]).map(lambda more: day + more)
    ),
)


def written(path: Path, form: str, numbers: Sequence[float]) -> Path:
    write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport}
    write[path.suffix](
        pd.DataFrame({"v": numbers, "x": np.ones(len(numbers))}), str(path), variable_format={"v": form}
    )
    return path


def stored(path: Path, **options: Any) -> list[Any]:
    """What the library itself reads."""
    read = {".dta": pyreadstat.read_dta, ".sav": pyreadstat.read_sav, ".xpt": pyreadstat.read_xport}
    columns, _ = read[path.suffix](str(path), output_format="dict", **options)
    cells: list[Any] = columns["v"]
    return cells


def column(data: object, kind: DeclaredKind) -> pa.Array:
    batches = list(open_source(data, ["v"], kinds={"v": kind}, batch_rows=3).batches())
    return pa.concat_arrays([batch.column(0) for batch in batches])


def ids(data: object) -> list[str | None]:
    texts: list[str | None] = unit_ids(column(data, "id"), "v").to_pylist()
    return texts


@pytest.mark.parametrize(("ending", "form"), FORMATS)
@settings(deadline=None, max_examples=15)
@given(numbers=st.lists(NUMBERS, min_size=1, max_size=8))
@example(numbers=[*ODD, 20500.0, 20500.25, 20500.75, 1.35e10, 1.35e10 + 5])
def test_no_number_stops_reading_or_changes_another(ending: str, form: str, numbers: list[float]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = written(Path(folder) / f"all{ending}", form, numbers)
        kept = stored(path, disable_datetime_conversion=True)
        for kind in ("number", "date", "text", "boolean"):
            together = column(path, kind)
            for place, number in enumerate(numbers):
                alone = column(written(Path(folder) / f"one{ending}", form, [number]), kind)
                assert together.slice(place, 1).equals(alone)
        texts = ids(path)
    assert None not in texts
    assert len(set(texts)) == len(set(kept)) == len(set(zip(texts, kept, strict=True)))


@pytest.mark.parametrize(("ending", "form"), [*DAYS, *MOMENTS, *((".xpt", f) for f in SAS if f != "DTDATE")])
def test_valid_dates_are_what_the_library_makes_of_them(ending: str, form: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(7)
    if ending == ".sav":
        numbers = rng.uniform(2e10, 2e11, 200)
        if form in ("DATE11", "EDATE10"):
            numbers = numbers // 86_400 * 86_400
    else:
        numbers = np.floor(rng.uniform(-1e4, 1e5, 200))
    path = written(tmp_path / f"valid{ending}", form, numbers.tolist())
    cells = stored(path)
    assert column(path, "date").equals(pa.array(cells).cast(pa.timestamp("us")))
    assert ids(path) == list(map(id_text, cells))


@pytest.mark.parametrize(
    ("ending", "form", "numbers", "texts"),
    [
        (".dta", "%td", [20500.0, 20500.25], ["2016-02-16", "2016-02-16 06:00:00"]),
        (".dta", "%td", [20500.1, 20500.75], ["2016-02-16 02:24:00", "2016-02-16 18:00:00"]),
        (".dta", "%tc", [1.9e12, 1.9e12 + 0.25], ["2020-03-16 17:46:40", "2020-03-16 17:46:40.00025"]),
        (".sav", "DATE11", [1.35e10, 1.35e10 + 5], ["2010-08-01", "2010-08-01 00:00:05"]),
        (".sav", "TIME8", [1.0, 86401.5], ["1", "86401.5"]),
        (".dta", "%td", [2936550.0, -715875.0], ["10000-01-01", "0000-01-01"]),
        (".dta", "%tdDD/NN/CCYY", [20500.0], ["20500"]),
    ],
)  # fmt: skip
def test_ids(ending: str, form: str, numbers: list[float], texts: list[str], tmp_path: Path) -> None:
    assert ids(written(tmp_path / f"ids{ending}", form, numbers)) == texts


@pytest.mark.parametrize(("ending", "form"), [*DAYS, *MOMENTS, (".dta", "%tdDD/NN/CCYY")])
def test_a_date_outside_of_the_calendar_is_unreadable(ending: str, form: str, tmp_path: Path) -> None:
    schema = Schema(numeric("v", "1900-01-01", "2030-01-01"))
    path = written(tmp_path / f"odd{ending}", form, [1e4, 2e4, 1e40, np.nan])
    counts = gram(path, schema).counts
    assert (counts.rows_read, counts.rows_used) == (4, 2)
    assert dg.check(path, schema, progress=False).counts["all"].rows_used == 2


@pytest.mark.parametrize(
    ("cases", "type_"),
    [(DAYS, "date32[day]"), (MOMENTS, "timestamp[us]"), (TIMES, "double"),
     ([(".dta", "%tdDD/NN/CCYY"), (".dta", "%-td")], "date32[day]"), ([(".dta", "%tm")], "double")],
)  # fmt: skip
def test_types(cases: list[tuple[str, str]], type_: str, tmp_path: Path) -> None:
    for ending, form in cases:
        path = written(tmp_path / f"types{ending}", form, [1.0])
        assert column_types(path) == {"v": type_, "x": "double"}


@pytest.mark.parametrize("days", [1e10, -1e10, 1e300])
def test_a_duration_that_python_has_not_costs_its_own_row_alone(days: float, tmp_path: Path) -> None:
    openpyxl = pytest.importorskip("openpyxl", reason="the extra 'test' is not installed")

    def book(name: str, *, stay: float) -> Path:
        book = openpyxl.Workbook()
        book.active.append(["v", "stay"])
        for row in range(2, 9):
            book.active.append([float(row), stay if row == 5 else 1.5])
            book.active.cell(row, 2).number_format = "[h]:mm:ss"
        book.save(tmp_path / name)
        return tmp_path / name

    usual, odd = book("usual.xlsx", stay=2.5), book("odd.xlsx", stay=days)
    assert column(usual, "number").to_pylist() == [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    assert column(odd, "number").to_pylist() == [2.0, 3.0, 4.0, None, 6.0, 7.0, 8.0]
    assert ids(odd) == ["2", "3", "4", None, "6", "7", "8"]

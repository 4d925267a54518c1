"""Types of tables, columns and targets: each is read cell by cell or refused, whatever stands in one cell."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramWarning
from dpgram.estimators import (
    SSP,
    ColumnStandardizer,
    PrivateCovariance,
    PrivateLasso,
    PrivateLinearRegression,
    PrivateLogistic,
    PrivatePCA,
    PrivateRidge,
)
from dpgram.estimators._table import label_cells

ROWS = 40
SECRET = "secret-17"
FIRST = np.linspace(-0.5, 0.5, ROWS)
TEXTS = [f"{cell:.3f}" for cell in np.linspace(0.5, -0.2, ROWS)]
BOUNDS = {"bounds": (-1.0, 1.0)}
BOTH = {"bounds": (-1.0, 1.0), "target_bounds": (-1.0, 1.0)}


class Held:
    """Nothing but an array of objects behind `__array__`."""

    def __init__(self, rows) -> None:
        self.rows = np.array(rows, dtype=object)

    def __array__(self, dtype=None, copy=None):
        return np.array(self.rows, dtype=dtype)

    def __len__(self) -> int:
        return len(self.rows)


def arrow(kind):
    """A pandas series that Arrow holds."""
    return lambda texts: pd.DataFrame({"a": FIRST, "b": pd.Series(texts, dtype=pd.ArrowDtype(kind))})


def coded(texts):
    levels = pl.Enum([*TEXTS, SECRET])
    return pl.DataFrame({"a": FIRST, "b": pl.Series(texts, dtype=levels)})


TABLES = {
    "polars-enum": coded,
    "polars-binary": lambda texts: pl.DataFrame({"a": FIRST, "b": [text.encode() for text in texts]}),
    "arrow-table": lambda texts: pa.table({"a": FIRST, "b": texts}),
    "arrow-levels": lambda texts: pa.table({"a": FIRST, "b": pa.array(texts).dictionary_encode()}),
    "pandas-arrow": arrow(pa.large_string()),
    "pandas-levels": lambda texts: pd.DataFrame({"a": FIRST, "b": pd.Categorical(texts)}),
    "numpy-strings": lambda texts: np.array(
        [[str(a), b] for a, b in zip(FIRST, texts, strict=True)], dtype=np.dtypes.StringDType()
    ),
    "array-protocol": lambda texts: Held(list(zip(FIRST, texts, strict=True))),
}


def ssp():
    return SSP(1.0, 1e-6, x_norm=1.0, y_bound=1.0, entropy=SeededEntropy(1))


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_one_cell_that_is_no_number_is_missing_in_every_type(table) -> None:
    plain = np.column_stack([FIRST, np.array(TEXTS, dtype=float)])
    np.testing.assert_array_equal(ssp().fit(table(TEXTS), FIRST).coef_, ssp().fit(plain, FIRST).coef_)
    plain[7, 1] = np.nan
    odd = [*TEXTS[:7], SECRET, *TEXTS[8:]]
    np.testing.assert_array_equal(ssp().fit(table(odd), FIRST).coef_, ssp().fit(plain, FIRST).coef_)


TARGETS = {
    "numpy-strings": lambda texts: np.array(texts, dtype=np.dtypes.StringDType()),
    "pandas-arrow": lambda texts: pd.Series(texts, dtype=pd.ArrowDtype(pa.large_string())),
    "pandas-objects": lambda texts: pd.Series(texts, dtype=object),
    "polars": lambda texts: pl.Series(texts, dtype=pl.Enum([*TEXTS, SECRET])),
    "arrow": lambda texts: pa.array(texts),
}


@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_one_cell_of_the_target_is_missing_in_every_type(target) -> None:
    rows, plain = FIRST.reshape(-1, 1), np.array(TEXTS, dtype=float)
    plain[7] = np.nan
    odd = target([*TEXTS[:7], SECRET, *TEXTS[8:]])
    np.testing.assert_array_equal(ssp().fit(rows, odd).coef_, ssp().fit(rows, plain).coef_)


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame, pa.table], ids=["polars", "pandas", "arrow"])
@pytest.mark.parametrize(
    "target",
    [
        lambda cells: pd.Series(cells, dtype=object),
        lambda cells: np.array([str(cell) for cell in cells], dtype=np.dtypes.StringDType()),
        Held,
        lambda cells: pl.Series(cells, dtype=pl.Object),
    ],
    ids=["pandas", "strings", "protocol", "polars"],
)
def test_a_target_of_objects_beside_any_frame_with_a_schema(frame, target) -> None:
    schema = dg.Schema(dg.numeric("a", -1, 1), dg.numeric("t", -1, 1))
    options = {"schema": schema, "target": "t", "adaptive": False}
    cells = [*FIRST[:-1].tolist(), SECRET]
    found = PrivateLinearRegression(**options, entropy=SeededEntropy(1)).fit(
        frame({"a": FIRST}), target(cells)
    )
    plain = PrivateLinearRegression(**options, entropy=SeededEntropy(1)).fit(
        frame({"a": FIRST}), np.array([*FIRST[:-1], np.nan])
    )
    np.testing.assert_array_equal(found.coef_, plain.coef_)


def lists(cells):
    return pl.DataFrame({"a": FIRST[: len(cells)], "b": pl.Series(cells, dtype=pl.List(pl.Float64))})


def moments(kind):
    return lambda cells: pd.DataFrame(
        {"a": FIRST[: len(cells)], "b": pd.Series(cells, dtype=pd.ArrowDtype(kind))}
    )


REFUSED = {
    "lists": (lists, [1.5, 2.5]),
    "dates": (moments(pa.date32()), pd.Timestamp("2020-01-01").date()),
    "timestamps": (moments(pa.timestamp("us")), pd.Timestamp("2020-01-01")),
    "durations": (moments(pa.duration("us")), pd.Timedelta(1, "s")),
    "zones": (
        lambda cells: pd.DataFrame({"b": pd.Series(cells, dtype="datetime64[ns, UTC]")}),
        pd.Timestamp("2020-01-01", tz="UTC"),
    ),
    "complex": (lambda cells: pd.DataFrame({"b": np.array([cell or 0 for cell in cells], complex)}), 1.5j),
}


@pytest.mark.parametrize(("table", "cell"), REFUSED.values(), ids=REFUSED)
def test_types_without_numbers_are_refused_by_the_type_alone(table, cell) -> None:
    told = set()
    for cells in ([], [None] * ROWS, [None] * (ROWS - 1) + [cell]):
        with pytest.raises(ValueError, match="the column 'b' of X has the type") as refusal:
            ssp().fit(table(cells), FIRST[: len(cells)])
        told.add(str(refusal.value))
    assert len(told) == 1


def test_numbers_beyond_the_floats_are_missing_without_a_warning() -> None:
    rows = np.column_stack([FIRST, FIRST]).astype(np.longdouble)
    rows[7, 1] = np.longdouble("1e4000")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ssp().fit(rows, FIRST.astype(np.longdouble))


def test_a_frame_of_sparse_columns_is_read() -> None:
    dense = pd.DataFrame({"a": FIRST, "b": FIRST[::-1]})
    found = ssp().fit(dense.astype(pd.SparseDtype(float)), FIRST)
    np.testing.assert_array_equal(found.coef_, ssp().fit(dense, FIRST).coef_)


@pytest.mark.parametrize("kind", [float, object])
def test_masked_cells_are_missing(kind) -> None:
    rows = np.column_stack([FIRST, FIRST]).astype(kind)
    masked = np.ma.array(rows, mask=np.arange(ROWS)[:, None] < [5, 9])
    plain = np.where(np.ma.getmaskarray(masked), np.nan, rows.astype(float))
    target, labels = np.ma.array(FIRST, mask=FIRST > 0.4), np.ma.array(FIRST > 0, mask=FIRST > 0.4)
    plain_target = target.filled(np.nan)
    np.testing.assert_array_equal(ssp().fit(masked, target).coef_, ssp().fit(plain, plain_target).coef_)
    schema = dg.Schema(dg.numeric("a", -1, 1), dg.numeric("b", -1, 1), dg.numeric("t", -1, 1))
    for options in (BOTH, {"schema": schema, "target": "t"}):
        model = PrivateLinearRegression(entropy=SeededEntropy(1), adaptive=False, **options)
        expected = model.fit(plain, plain_target).coef_
        np.testing.assert_array_equal(model.fit(masked, target).coef_, expected)
    logistic = PrivateLogistic(entropy=SeededEntropy(1), adaptive=False, **BOUNDS)
    flags = [None if np.isnan(each) else bool(each > 0) for each in plain_target]
    expected = logistic.fit(plain, flags).release_.second_moments()
    np.testing.assert_array_equal(logistic.fit(masked, labels).release_.second_moments(), expected)


def test_no_message_about_a_shape_or_a_new_row_shows_cells() -> None:
    with pytest.raises(ValueError, match="Reshape your data") as told:
        ssp().fit(np.array([0.123456, 0.5]), [1.0, 1.0])
    assert "0.123456" not in str(told.value)
    linear = PrivateRidge(1.0, 1e-6, **BOTH).fit(np.column_stack([FIRST, FIRST]), FIRST)
    for rows in ([[0.1, SECRET]], np.array([["0.1", SECRET]])):
        with pytest.raises(ValueError, match="a cell that is not a number") as told:
            linear.predict(rows)
        assert SECRET not in str(told.value)
        assert told.value.__context__ is None


SMALL = [
    PrivatePCA(2, **BOUNDS),
    PrivatePCA(1, adaptive=False, **BOUNDS),
    PrivatePCA(standardise=True, adaptive=False, **BOUNDS),
    PrivateCovariance(**BOUNDS),
    PrivateLasso(**BOTH),
    PrivateLasso(alpha=0.1, adaptive=False, **BOTH),
    PrivateRidge(alpha=1.0, **BOTH),
    PrivateRidge(alpha=1.0, adaptive=False, **BOTH),
]


@pytest.mark.parametrize("rows", [0, 5])
@pytest.mark.parametrize("model", SMALL, ids=repr)
def test_noise_larger_than_the_table_raises_nothing(model, rows) -> None:
    """Seeded, so that noise hides the number of rows in some of the fits each time."""
    x = np.column_stack([FIRST, FIRST[::-1]])
    refusals = []
    for seed in range(12):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)
            model.set_params(epsilon=0.2, entropy=SeededEntropy(seed)).fit(x[:rows], FIRST[:rows])
        refusals.append(model.refusal_)
        use = next(name for name in ("predict", "transform", "mahalanobis") if hasattr(model, name))
        assert np.isfinite(getattr(model, use)(x)).all()
    assert any(refusal is not None and "noise" in refusal for refusal in refusals)


def test_a_fit_that_noise_hides_is_charged_once_and_does_not_fail(tmp_path: Path) -> None:
    book = dg.Ledger.create(tmp_path / "own.ledger", name="own", epsilon=10, delta=1e-4)
    model = PrivatePCA(1, epsilon=0.01, ledger=book, adaptive=False, **BOUNDS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        model.fit(np.empty((0, 2)))
    assert len(model.components_) == 1
    assert model.receipt_ is not None


def test_components_that_noise_hides_are_the_columns_in_order() -> None:
    rows = np.column_stack([FIRST, FIRST, FIRST])
    for seed in range(20):
        model = PrivatePCA(2, bounds=(0.0, 4.0), adaptive=False, entropy=SeededEntropy(seed)).fit(rows[:0])
        if model.refusal_ is not None:
            break
    assert "noise" in model.refusal_
    np.testing.assert_array_equal(model.components_, np.eye(3)[:2])
    np.testing.assert_array_equal(model.explained_variance_, [0.0, 0.0])
    assert not model.stable_.any()
    assert model.transform(rows).shape == (ROWS, 2)
    clear = PrivatePCA(2, epsilon=5.0, bounds=(-1.0, 1.0), entropy=SeededEntropy(1)).fit(
        np.tile(rows, (99, 1))
    )
    assert clear.refusal_ is None


YES = 2**53 + 1
"""A label that is no float."""
INTEGERS = {
    "arrow": lambda cells: pa.array(cells, pa.int64()),
    "arrow-chunks": lambda cells: pa.chunked_array([pa.array(cells, pa.uint64()), pa.array([], pa.uint64())]),
    "arrow-dictionary": lambda cells: pa.array(cells, pa.int64()).dictionary_encode(),
    "arrow-table": lambda cells: pa.table({"y": pa.array(cells, pa.int64())}),
    "polars": lambda cells: pl.Series(cells, dtype=pl.Int64),
    "polars-frame": lambda cells: pl.DataFrame({"y": pl.Series(cells, dtype=pl.Int64)}),
    "pandas-categories": lambda cells: pd.Series(pd.Categorical(cells, categories=[0, YES])),
    "pandas-categories-frame": lambda cells: pd.DataFrame({"y": pd.Categorical(cells, categories=[0, YES])}),
    "pandas-arrow": lambda cells: pd.Series(cells, dtype="int64[pyarrow]"),
    "pandas-nullable": lambda cells: pd.Series(cells, dtype="Int64"),
}


@pytest.mark.parametrize("form", INTEGERS)
def test_a_missing_label_does_not_change_how_the_others_are_read(form: str) -> None:
    known = [YES, 0] * 10
    for cells in (known, [*known, None]):
        assert label_cells(INTEGERS[form](cells))[:20].tolist() == known


def test_a_missing_label_costs_its_own_row_alone() -> None:
    asked = {"epsilon": 5.0, "delta": 1e-6, "bounds": (0, 1), "classes": (0, YES), "adaptive": False}
    rows = [
        PrivateLogistic(**asked, entropy=SeededEntropy(1))
        .fit(np.full((2_000 + len(more), 1), 0.5), pa.array([YES] * 2_000 + more, pa.int64()))
        .release_.matrix("encoded")[0, 0]
        for more in ([], [None])
    ]
    assert rows == pytest.approx([2_000, 2_000], abs=20)


def test_a_far_cell_of_a_standardised_column_is_no_warning() -> None:
    far = np.full((50, 2), 0.5)
    far[-1, 0] = 1e308
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = ColumnStandardizer(mean=0.0, scale=0.01).fit(far).transform(far)
    assert found[:-1] == pytest.approx(50.0)


@pytest.mark.parametrize("odd", ["n/a", "\ud800", b"\xff", None])
def test_one_odd_target_beside_a_frame_of_pandas_is_a_missing_one(odd: object) -> None:
    """Of an array of objects pandas guesses a type, which cannot hold half a surrogate pair."""
    schema = dg.Schema(dg.numeric("a", -1, 1), dg.numeric("y", -1, 1))
    frame = pd.DataFrame({"a": FIRST}, index=[7] * ROWS)

    def fitted(last: object) -> PrivateLinearRegression:
        found = PrivateLinearRegression(
            schema=schema, target="y", adaptive=False, entropy=SeededEntropy(1), epsilon=5.0
        )
        return found.fit(frame, [*TEXTS[:-1], last])

    assert fitted(odd).coef_.tolist() == fitted("").coef_.tolist() != fitted(TEXTS[-1]).coef_.tolist()

"""What a fit must not tell: values in messages, whether one row is odd, how many rows there are."""

from __future__ import annotations

import dataclasses
import warnings

import msgspec
import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.base import clone

from dpgram import Schema, numeric
from dpgram.core.noise import SeededEntropy
from dpgram.errors import DpgramWarning, MechanismError
from dpgram.estimators import (
    SSP,
    AdaSSP,
    ColumnStandardizer,
    Intercept,
    LpRegression,
    MaxNormMapping,
    OutputPerturbation,
    PrivateCovariance,
    PrivateLasso,
    PrivateLinearRegression,
    PrivatePCA,
    PrivateRidge,
    RowNormMapping,
    SigmaClipper,
)

SECRET = "secret-17"
ROWS = 1237
"""A number that no public fact of these fits is equal to."""
BOUNDED = {"bounds": (-1.0, 1.0), "target_bounds": (-1.0, 1.0)}
NORMED = {"x_norm": 1.0, "y_bound": 1.0}


def supervised():
    return [
        PrivateRidge(1.0, 1e-6, mechanism="joint-gaussian", **BOUNDED),
        PrivateRidge(1.0, 0.0, **BOUNDED),
        PrivateLinearRegression(1.0, 1e-6, **BOUNDED),
        PrivateLasso(1.0, 1e-6, **BOUNDED),
        AdaSSP(1.0, 1e-6, **NORMED),
        SSP(1.0, 1e-6, **NORMED),
        LpRegression(1.0, 1e-6, **NORMED),
        OutputPerturbation(1.0, 1e-6, **NORMED),
    ]


def unsupervised():
    return [PrivatePCA(1, bounds=(-1.0, 1.0)), PrivateCovariance(bounds=(-1.0, 1.0))]


def transformers():
    return [
        RowNormMapping(),
        MaxNormMapping(1.0),
        Intercept(),
        ColumnStandardizer(epsilon=1.0, bounds=(-1.0, 1.0)),
        SigmaClipper(epsilon=1.0, bounds=(-1.0, 1.0)),
    ]


def seeded(model):
    return model.set_params(entropy=SeededEntropy(1)) if "entropy" in model.get_params() else model


def fitted(model, x, y):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*baseline.*", DpgramWarning)
        return seeded(model).fit(x, y)


def table(rows: int):
    generator = np.random.default_rng(3)
    x = generator.uniform(-0.5, 0.5, (rows, 2))
    return x, 0.5 * x[:, 0]


def chain(error: BaseException | None):
    while error is not None:
        yield str(error)
        error = error.__cause__ or error.__context__


ODD_CELLS = [SECRET, b"\xff", {"a": 1}, [1, 2], None, 1j, np.timedelta64(1, "s"), 10**400, "\ud800", pd.NaT]


@pytest.mark.parametrize("odd", ODD_CELLS, ids=lambda cell: type(cell).__name__)
@pytest.mark.parametrize("model", [*supervised(), *unsupervised(), *transformers()], ids=repr)
def test_a_cell_that_is_no_number_is_a_missing_one(model, odd) -> None:
    """The same fit, to the last bit, as with NaN there: one row must not decide whether a fit succeeds."""
    x, y = table(400)
    x[7, 1], y[11] = np.nan, np.nan
    cells, targets = x.astype(object), y.astype(object)
    cells[7, 1], targets[11] = odd, odd
    frames = [cells, cells.tolist(), pd.DataFrame(cells, columns=["a", "b"])]
    expected = outcome(fitted(model, x, y))
    for frame in frames:
        found = fitted(clone(model), frame, targets if frame is cells else targets.tolist())
        np.testing.assert_array_equal(outcome(found), expected)


def outcome(fit):
    """Numbers that every row goes into."""
    names = ("coef_", "covariance_", "components_", "mean_", "n_features_in_")
    return getattr(fit, next(name for name in names if hasattr(fit, name)))


@pytest.mark.parametrize("frame", [pl.DataFrame, pd.DataFrame], ids=["polars", "pandas"])
@pytest.mark.parametrize("odd", ODD_CELLS, ids=lambda cell: type(cell).__name__)
def test_with_a_schema_as_well(frame, odd) -> None:
    schema = Schema(numeric("a", -1, 1), numeric("t", -1, 1))
    model = PrivateRidge(1.0, 1e-6, schema=schema, target="t", entropy=SeededEntropy(1))
    expected = clone(model).fit(frame({"a": [0.1, 0.2, 0.3]}), [0.5, None, 1]).coef_
    np.testing.assert_array_equal(model.fit(frame({"a": [0.1, 0.2, 0.3]}), [0.5, odd, 1]).coef_, expected)


def test_a_target_of_mixed_types_is_met_by_the_row_policy() -> None:
    schema = Schema(numeric("a", -1, 1), numeric("t", -1, 1))
    model = PrivateRidge(1.0, 1e-6, schema=schema, target="t", entropy=SeededEntropy(1))
    model.fit(pl.DataFrame({"a": [0.1, 0.2, 0.3]}), [0.5, SECRET, 1])
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324])
@pytest.mark.parametrize("model", [*supervised(), *unsupervised(), *transformers()], ids=repr)
def test_one_odd_row_raises_nothing_and_warns_of_nothing(model, odd) -> None:
    """Warnings are errors here: a warning of an overflow would tell that there is such a row."""
    x, y = table(400)
    x[7, 1], y[11] = odd, odd
    fit = fitted(model, x, y)
    if hasattr(fit, "coef_"):
        assert np.isfinite(fit.coef_).all()


@pytest.mark.parametrize("odd", [1e308, 1e200, 5e-324, 1e-200])
def test_row_norms_neither_overflow_nor_vanish(odd) -> None:
    mapped = RowNormMapping(2.0).fit_transform([[odd, odd], [3.0, 4.0], [0.0, 0.0]])
    np.testing.assert_allclose(mapped, [[2**0.5, 2**0.5], [1.2, 1.6], [0.0, 0.0]], rtol=1e-12)


def numbers(value, seen):
    """Every number that hangs on a fitted estimator: attributes, fields, containers, small arrays."""
    if isinstance(value, bool | str | bytes | type(None)) or id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, int | float | np.number):
        yield float(value)
    elif isinstance(value, np.ndarray):
        yield from (
            float(len(value)),
            *(cell for one in value.ravel().tolist() for cell in numbers(one, seen)),
        )
    elif isinstance(value, dict):
        for one in value.values():
            yield from numbers(one, seen)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from numbers(one, seen)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from numbers(getattr(value, field.name), seen)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            yield from numbers(getattr(value, name), seen)
    elif hasattr(value, "__dict__"):
        yield from numbers(vars(value), seen)


@pytest.mark.parametrize("model", [*supervised(), *unsupervised(), *transformers()], ids=repr)
def test_a_fitted_estimator_does_not_hold_the_number_of_rows(model) -> None:
    fit = fitted(model, *table(ROWS))
    assert ROWS not in set(numbers(vars(fit), set()))


def test_the_search_for_the_number_of_rows_finds_it() -> None:
    """Under replace-one the number of rows is public, and the moments of a fit know it."""
    model = PrivateRidge(1.0, 1e-6, mechanism="joint-gaussian", adjacency="replace-one", **BOUNDED)
    assert ROWS in set(numbers(vars(fitted(model, *table(ROWS))), set()))


@pytest.mark.parametrize("model", [*supervised(), *unsupervised()], ids=repr)
def test_noise_and_price_do_not_depend_on_the_rows(model) -> None:
    from sklearn.base import clone

    one, other = (fitted(clone(model), *table(rows)) for rows in (400, ROWS))
    assert one.guarantee_ == other.guarantee_
    assert getattr(one, "event_", None) == getattr(other, "event_", None)
    assert getattr(one, "mechanism_", None) == getattr(other, "mechanism_", None)


def test_noise_from_nowhere_is_refused_by_transformers() -> None:
    with pytest.raises(MechanismError, match="entropy must be an Entropy"):
        ColumnStandardizer(epsilon=1.0, bounds=(0.0, 1.0), entropy=3).fit([[1.0]])

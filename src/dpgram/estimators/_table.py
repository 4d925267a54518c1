"""X and y as scikit-learn hands them over, turned into the table and the public schema that `publish` reads.

Nothing is taken from the data but names and types. Whether a fit succeeds must not depend on one row, so
values that are missing or not finite are no error here: the row policy of the encoder meets them, as it meets
values outside the bounds. An empty table is no error either: it is a neighbour of a table of one row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import column_or_1d, validate_data

from dpgram.errors import SchemaError, real
from dpgram.schema import Column, Schema, numeric

Vector: TypeAlias = npt.NDArray[np.float64]
Pair: TypeAlias = tuple[Any, Any]
Learn: TypeAlias = Literal["learn"]
"""Bounds are learnt privately, out of a share of the budget."""
Bounds: TypeAlias = Pair | Mapping[str, Pair] | Learn | None
"""(low, high), each one number or one number for each feature; or feature name → (low, high); or "learn"."""

TARGET: Final = "target"
"""The name of the target where no schema gives one."""
_UNTYPED: Final = "OSU"
"""Kinds of numpy arrays whose cells say themselves what they are."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """What is fitted: anything `publish` reads, with its public schema."""

    data: Any
    schema: Schema
    features: tuple[str, ...]
    target: str | None


def without_quoting_cells(what: str, convert: Callable[[], Vector]) -> Vector:
    """`convert()`, its error without the cell that is no number: others read messages and logs."""
    try:
        return convert()
    except OverflowError:
        pass
    except ValueError as error:
        if "convert" not in str(error):
            raise
    # Outside the handlers, so that the message with the value is not kept as a context either.
    raise ValueError(f"{what} holds a cell that is not a number. Give columns of numbers, or a schema")


def floats(model: Any, X: Any, **options: Any) -> Vector:
    """X as scikit-learn validates it; rows that are missing, not finite or absent are no error."""
    return without_quoting_cells(
        "X",
        lambda: validate_data(
            model,
            readable(X),
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=0,
            **options,
        ),
    )


def readable(X: Any) -> Any:
    """X or y, with numbers for the cells whose type is left open: objects, text, categories, nested lists.

    A cell that is no number is a missing value, as in every source: none may decide whether a fit succeeds.
    """
    X = _as_object_array(X)
    if isinstance(X, np.ndarray):
        if X.dtype.kind not in _UNTYPED or X.ndim not in (1, 2):
            return X
        return numbers(X.ravel()).reshape(X.shape)
    if hasattr(X, "with_columns"):
        import polars as pl

        odd = [name for name, kind in X.schema.items() if kind in (pl.String, pl.Categorical, pl.Object)]
        return X.with_columns(pl.Series(name, numbers(X[name].to_list())) for name in odd)
    if hasattr(X, "isetitem"):
        import pandas as pd

        open_kinds = (pd.StringDtype, pd.CategoricalDtype)
        frame = X.copy(deep=False)
        for place, kind in enumerate(X.dtypes):  # by place, as names need be neither texts nor distinct
            if getattr(kind, "kind", "") == "O" or isinstance(kind, open_kinds):
                frame.isetitem(place, numbers(X.iloc[:, place].tolist()))
        return frame
    return X


def numbers(cells: Any) -> Vector:
    """Cells of any type as floats; NaN where one is missing, infinite where something else stands there."""
    from dpgram.sources.plain_columns import from_objects

    return np.asarray(from_objects(cells, "number").to_numpy(zero_copy_only=False), np.float64)


def _as_object_array(X: Any) -> Any:
    """Lists as an array of the cells themselves: for a single text numpy would make texts of all."""
    if not isinstance(X, list | tuple):
        return X
    try:
        return np.asarray(X, dtype=object)
    except ValueError:  # rows of several lengths are no table: whoever reads it next says so
        return X


def cells(values: Sequence[Any]) -> npt.NDArray[Any]:
    """One cell for each value, whatever it is: a list or a tuple among them is a value as well."""
    array = np.empty(len(values), dtype=object)
    for place, value in enumerate(values):
        array[place] = value
    return array


def label_cells(y: Any) -> npt.NDArray[Any]:
    """Labels by themselves: what stands in one row changes neither the type nor the shape of the others."""
    array = cells(y) if isinstance(y, list | tuple) else np.asarray(y, dtype=object)
    return np.asarray(column_or_1d(array, warn=True))


def features_schema(
    names: Sequence[str],
    bounds: Bounds,
    target: tuple[str, Pair | Learn] | None,
    *,
    constant: bool,
) -> Schema:
    """One numeric column for each name, and the target last; bounds to be learnt are left open."""
    columns = _columns(names, bounds)
    if target is not None:
        columns += _columns([target[0]], target[1])
    return Schema(*columns, constant=constant)


def _columns(names: Sequence[str], bounds: Bounds) -> list[Column]:
    if isinstance(bounds, str):
        return [numeric(name) for name in names]
    lows, highs = _ends(names, bounds)
    return [numeric(name, low, high) for name, low, high in zip(names, lows, highs, strict=True)]


def target_name(names: Sequence[str]) -> str:
    """`target`, with underscores until it is none of the features' names."""
    name = TARGET
    while name in names:
        name += "_"
    return name


def with_target(X: Any, target: str, y: Any) -> Any:
    """The columns of X (a frame, or what `columns_by_name` made of an array) and y as one table."""
    if hasattr(X, "with_columns"):  # Polars
        import polars as pl

        y = _as_object_array(y)
        if isinstance(y, np.ndarray) and y.dtype.kind in _UNTYPED:
            # As objects: a value of another type than the first is for the row policy, not for a message.
            return X.with_columns(pl.Series(target, y.tolist(), dtype=pl.Object))
        return X.with_columns(pl.Series(target, y))
    if hasattr(X, "assign"):  # pandas; y may carry an index of its own, which must not realign it
        return X.assign(**{target: np.asarray(_as_object_array(y))})
    return {**X, target: y}


def columns_by_name(X: Any, names: Sequence[str]) -> Any:
    """A frame as it is; an array as one column for each name, in order."""
    if hasattr(X, "columns"):
        return X
    array = np.asarray(_as_object_array(X))
    if array.ndim != 2 or array.shape[1] != len(names):
        raise SchemaError(
            "the array does not fit the schema",
            got=f"shape {array.shape}",
            limit=f"{len(names)} columns: {', '.join(names[:10])}",
            remedy="Give a data frame with these names, or the columns in this order",
        )
    return {name: _typed(array[:, i]) for i, name in enumerate(names)}


def _typed(column: npt.NDArray[Any]) -> Any:
    """A column of a mixed array as a list: its values say their types."""
    return column.tolist() if column.dtype == object else column


def _ends(names: Sequence[str], bounds: Bounds) -> tuple[list[float], list[float]]:
    if isinstance(bounds, Mapping):
        absent = [name for name in names if name not in bounds]
        if absent:
            raise SchemaError(
                f"no bounds for the feature {absent[0]!r}",
                limit="a pair (low, high) for each feature",
                remedy="Add it to `bounds`, from public knowledge",
            )
        pairs = [_pair(name, bounds[name]) for name in names]
        return [low for low, _ in pairs], [high for _, high in pairs]
    low, high = _low_and_high(bounds)
    return _one_for_each("low", low, len(names)), _one_for_each("high", high, len(names))


def _low_and_high(bounds: object) -> Pair:
    if isinstance(bounds, tuple | list | np.ndarray) and len(bounds) == 2:
        return bounds[0], bounds[1]
    raise SchemaError(
        "bounds must be a pair (low, high)",
        got=f"a {type(bounds).__name__}",
        limit="each end one number, or one number for each feature",
        remedy="Write bounds=(0, 100), bounds=([0, 18], [1, 90]) or bounds={'age': (18, 90), ...}",
    )


def _pair(name: str, pair: object) -> tuple[float, float]:
    low, high = _low_and_high(pair)
    return _one_for_each(f"low of {name!r}", low, 1)[0], _one_for_each(f"high of {name!r}", high, 1)[0]


def _one_for_each(what: str, value: object, count: int) -> list[float]:
    single = real(value)
    if single is not None:
        return [single] * count
    try:
        numbers = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise SchemaError(
            f"the bounds `{what}` are not numbers", got=repr(value)[:100], limit=f"one number, or {count}"
        ) from None
    if numbers.shape != (count,):
        raise SchemaError(
            f"the bounds `{what}` do not fit the features",
            got=f"shape {numbers.shape}",
            limit=f"one number, or {count}",
        )
    return [float(number) for number in numbers]

"""X and y as scikit-learn hands them over, turned into the table and the public schema that `publish` reads.

Nothing is taken from the data but names and types. Whether a fit succeeds must not depend on one row, so
values that are missing or not finite are no error here: the row policy of the encoder meets them, as it meets
values outside the bounds. An empty table is no error either: it is a neighbour of a table of one row.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from scipy.sparse import issparse
from sklearn.utils.validation import check_array, column_or_1d, validate_data

from dpgram.errors import SchemaError, real, shown
from dpgram.schema import Column, Schema, numeric
from dpgram.sources.plain_columns import from_objects, is_text, plain_texts

Vector: TypeAlias = npt.NDArray[np.float64]
Pair: TypeAlias = tuple[Any, Any]
Learn: TypeAlias = Literal["learn"]
"""Bounds are learnt privately, out of a share of the budget."""
Bounds: TypeAlias = Pair | Mapping[str, Pair] | Learn | None
"""(low, high), each one number or one number for each feature; or feature name → (low, high); or "learn"."""

TARGET: Final = "target"
"""The name of the target where no schema gives one."""
_UNTYPED: Final = "OSUT"
"""Kinds of numpy arrays whose cells say themselves what they are."""
_NUMBERS: Final = "biuf"
_NO_NUMBERS: Final = "cmMV"
"""Kinds of no numbers: complex numbers, moments, spans of time, records."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """What is fitted: anything `publish` reads, with its public schema."""

    data: Any
    schema: Schema
    features: tuple[str, ...]
    target: str | None


def floats(
    model: Any, X: Any, *, strict: bool = False, finite: bool = False, reset: bool = True, **options: Any
) -> Vector:
    """X as scikit-learn validates it; rows that are missing, not finite or absent are no error.

    `strict`, for rows that are not protected: a cell that is no number is an error.
    """
    array = readable("X", X, strict=strict)
    if isinstance(array, np.ndarray) and array.ndim != 2:  # in scikit-learn's words, without its print of X
        raise ValueError(
            f"Expected 2D array, got {array.ndim}D array instead. "
            "Reshape your data to one row for each case and one column for each feature"
        )
    validated: Vector = check_array(
        array,
        dtype=np.float64,
        ensure_all_finite=finite,
        ensure_min_samples=int(strict),
        estimator=model,
        input_name="X",
        **options,
    )
    validate_data(model, X if _columns_of(X) is not None else array, skip_check_array=True, reset=reset)
    return validated


def readable(what: str, X: Any, *, strict: bool = False) -> Any:
    """X or y as floats. Types of numbers and truth values are taken as they are, every other cell by cell.

    A cell that is no number is a missing value, as in every source: none may decide whether a fit succeeds.
    Types that hold no numbers (dates, lists, complex numbers) are refused whatever stands in the cells.
    """
    columns = _columns_of(X)
    if columns is None:
        return _as_floats(what, X, strict)
    array = np.empty((len(X), len(columns)))
    for place, (name, column) in enumerate(columns):
        array[:, place] = _as_floats(f"the column {name!r} of {what}", column, strict)
    return array


def _columns_of(X: Any) -> list[tuple[Any, Any]] | None:
    """Names and columns of a frame, by place: names need be neither texts nor distinct. None for others."""
    if isinstance(X, pa.Table | pa.RecordBatch):
        return list(zip(X.schema.names, X.columns, strict=True))
    if hasattr(X, "get_columns"):  # Polars
        return [(column.name, column) for column in X.get_columns()]
    if hasattr(X, "isetitem"):  # pandas
        return [(name, X.iloc[:, place]) for place, name in enumerate(X.columns)]
    return None


def _as_floats(what: str, X: Any, strict: bool) -> Any:
    """An array, or one column, whatever library it is of; sparse matrices as they are, to be refused."""
    if issparse(X):
        return X
    if isinstance(X, pa.Array | pa.ChunkedArray):
        return _from_arrow(what, X, strict)
    if hasattr(X, "to_physical"):  # Polars
        return _from_polars(what, X, strict)
    kind = getattr(X, "dtype", None)
    if hasattr(kind, "pyarrow_dtype"):  # pandas
        return _from_arrow(what, getattr(X, "array", X).__arrow_array__(), strict)
    if getattr(kind, "kind", None) in tuple(_NO_NUMBERS):  # pandas' moments with a zone would become objects
        raise _refused(what, kind)
    return _from_numpy(what, _as_array(what, X), strict)


def _from_arrow(what: str, column: Any, strict: bool) -> Vector:
    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return np.asarray(column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False), np.float64)
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    plain = [plain_texts(chunk) for chunk in [*chunks, pa.array([], kind)]]
    if not _holds_cells(plain[-1].type):
        raise _refused(what, kind)
    return numbers(what, [cell for chunk in plain for cell in chunk.to_pylist()], strict=strict)


def _holds_cells(kind: pa.DataType) -> bool:
    tests = (is_text, pa.types.is_boolean, pa.types.is_decimal, pa.types.is_integer, pa.types.is_floating)
    binary = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
    return any(test(kind) for test in (*tests, *binary))


def _from_polars(what: str, column: Any, strict: bool) -> Vector:
    import polars as pl

    kind = column.dtype
    if kind.is_numeric() or kind in (pl.Boolean, pl.Null):
        return np.asarray(column.cast(pl.Float64).to_numpy(), np.float64)
    if kind in (pl.String, pl.Categorical, pl.Enum, pl.Binary, pl.Object):
        return numbers(what, column.to_list(), strict=strict)
    raise _refused(what, kind.base_type().__name__)  # of a list of levels the whole name has them


def _from_numpy(what: str, array: npt.NDArray[Any], strict: bool) -> Vector:
    values = np.ma.getdata(array)
    if values.dtype.kind in _UNTYPED:
        objects = np.asarray(_unmasked(array), dtype=object).ravel()
        return numbers(what, objects, strict=strict).reshape(values.shape)
    if values.dtype.kind not in _NUMBERS:
        raise _refused(what, values.dtype)
    with np.errstate(all="ignore"):  # beyond the floats is infinite, hence missing: no word of one row
        found = values.astype(np.float64, copy=False)
    return np.where(np.ma.getmaskarray(array), np.nan, found) if np.ma.isMaskedArray(array) else found


def _refused(what: str, kind: object) -> ValueError:
    """By the type alone, which the table declares."""
    complex_numbers = getattr(kind, "kind", "") == "c"
    return ValueError(
        f"{'Complex data not supported: ' if complex_numbers else ''}"
        f"{what} has the type {str(kind)[:100]}. Give numbers, truth values or text that spells numbers"
    )


def numbers(what: str, cells: Any, *, strict: bool = False) -> Vector:
    """Cells of any type as floats; NaN where one is missing, infinite where something else stands there."""
    found = np.asarray(from_objects(cells, "number").to_numpy(zero_copy_only=False), np.float64)
    if strict:
        odd = np.flatnonzero(np.isinf(found))
        if any(not isinstance(cells[place], float) for place in odd):
            raise ValueError(f"{what} holds a cell that is not a number")
    return found


def _as_array(what: str, X: Any) -> npt.NDArray[Any]:
    """What is no column of a known library, as numpy reads it; its error without the cells it quotes."""
    X = _as_object_array(X)
    try:
        array = X if isinstance(X, np.ndarray) else np.asarray(X)
    except (TypeError, ValueError, OverflowError):
        array = None
    # Outside the handler, so that a message with a value is not kept as a context either.
    if array is None:
        raise ValueError(f"{what} is not an array: give rows of equal length, or a data frame")
    return array


def _as_object_array(X: Any) -> Any:
    """Sequences as an array of the cells themselves: for a single text numpy would make texts of all."""
    if isinstance(X, np.ndarray) or hasattr(X, "__array__") or not isinstance(X, Sequence):
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
    columns = _columns_of(y)
    y = columns[0][1] if columns is not None and len(columns) == 1 else y
    found = _one_by_one(y)
    array = np.asarray(_unmasked(y), dtype=object) if found is None else cells(found)
    return np.asarray(column_or_1d(array, warn=True))


def _one_by_one(y: Any) -> Sequence[Any] | None:
    """Labels that numpy would turn into floats where one is missing, so that integers beyond 2^53 merge.

    These are integers, plain or behind the codes of a dictionary. None: numpy keeps each as it is.
    """
    if isinstance(y, list | tuple):
        return y
    if isinstance(y, pa.Array | pa.ChunkedArray):
        plain = y.cast(y.type.value_type) if pa.types.is_dictionary(y.type) else y
        return plain.to_pylist() if pa.types.is_integer(plain.type) else None
    kind: Any = getattr(y, "dtype", None)
    if hasattr(y, "to_physical"):  # Polars
        return y.to_list() if kind.is_integer() else None
    if hasattr(kind, "pyarrow_dtype"):  # pandas
        return _one_by_one(getattr(y, "array", y).__arrow_array__())
    if hasattr(kind, "categories"):  # pandas
        categories = kind.categories.astype(object)
        return [None if code < 0 else categories[code] for code in getattr(y, "cat", y).codes]
    return None


def _unmasked(X: Any) -> Any:
    """A masked array as objects, None where it is masked; anything else as it is."""
    if not np.ma.isMaskedArray(X):
        return X
    objects = np.ma.getdata(X).astype(object)
    objects[np.ma.getmaskarray(X)] = None
    return objects


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
        if bounds != "learn":
            raise SchemaError(
                "bounds are a pair (low, high), or 'learn'",
                got=shown(bounds),
                remedy="Give public ones; 'learn' has them learnt out of a share of the budget",
            )
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
    y = _plain_target(y)
    if hasattr(X, "with_columns"):  # Polars
        import polars as pl

        if isinstance(y, np.ndarray) and y.dtype == object:
            # As objects: a value of another type than the first is for the row policy, not for a message.
            return X.with_columns(pl.Series(target, y.tolist(), dtype=pl.Object))
        return X.with_columns(pl.Series(target, y))
    if hasattr(X, "assign"):  # pandas; y may carry an index of its own, which must not realign it
        import pandas as pd

        # Its type is stated: of objects pandas would guess one, and stop at a text that is not UTF-8.
        array = np.asarray(y)
        return X.assign(**{target: pd.Series(array, index=X.index, dtype=array.dtype)})
    if isinstance(X, pa.Table | pa.RecordBatch):
        X = dict(zip(X.schema.names, X.columns, strict=True))
    return {**X, target: y}


def _plain_target(y: Any) -> Any:
    """y as an array of numbers, moments or objects; columns of Polars and Arrow as they are."""
    if isinstance(y, pa.Array | pa.ChunkedArray):
        return y
    if hasattr(y, "to_physical"):  # Polars, whose objects only its own frames hold
        return cells(y.to_list()) if y.dtype.base_type().__name__ == "Object" else y
    array = _as_array("y", _unmasked(y))
    array = array if array.ndim == 1 else column_or_1d(array, warn=True)
    if array.dtype.kind in _UNTYPED:
        return array.astype(object)
    with np.errstate(all="ignore"):  # few libraries have extended precision
        return array.astype(np.float64) if array.dtype.kind == "f" else array


def columns_by_name(X: Any, names: Sequence[str]) -> Any:
    """A frame as it is; an array as one column for each name, in order."""
    if hasattr(X, "columns"):
        return X
    array = _as_array("X", _unmasked(X))
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
    return column.astype(object).tolist() if column.dtype.kind in _UNTYPED else column


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

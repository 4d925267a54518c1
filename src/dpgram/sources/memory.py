"""Tables already in memory (numpy, mappings of arrays, pandas, Polars), converted one slice at a time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.errors import SourceError
from dpgram.schema.reading import AS_WRITTEN, Reading
from dpgram.sources.base import (
    Batches,
    DeclaredKind,
    Partition,
    Request,
    Source,
    attempt,
    loaded,
    refuse_repeated,
    type_names,
)
from dpgram.sources.plain_columns import from_objects, plain_columns, without_dictionary

SLICE_BATCHES = 16  # batches in a partition: small enough that workers end together, large enough to be cheap

# Their columns are not read as the Arrow streams that they can be: pandas guesses the types of objects from
# the values for that, and Polars gives the addresses of objects.
_is_pandas, _is_polars = loaded("pandas", "Series"), loaded("polars", "Series")
_is_pandas_array, _is_pandas_index = (
    loaded("pandas.api.extensions", "ExtensionArray"),
    loaded("pandas", "Index"),
)

Cut = Callable[[int, int], pa.RecordBatch]
"""The rows from `start` up to `stop` of the asked columns."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySource(Source):
    """A table in memory, cut into batches when they are asked for: no second copy of the table is made."""

    request: Request
    label: str
    length: int
    cut: Cut

    @property
    def rows(self) -> int:
        return self.length

    def describe(self) -> str:
        return f"{self.label}, {len(self.columns)} columns"

    def partitions(self) -> Sequence[Partition]:
        """Runs of `SLICE_BATCHES` batches, so that workers convert their own slices.

        A table without rows has one empty batch: a type that is refused is refused there as well.
        """
        step = self.request.batch_rows * SLICE_BATCHES
        return tuple(
            Partition(first_row=start, read=partial(self._read, start, min(start + step, self.length)))
            for start in range(0, max(self.length, 1), step)
        )

    def _read(self, start: int, stop: int) -> Batches:
        for first in range(start, max(stop, start + 1), self.request.batch_rows):
            yield plain_columns(
                self.cut(first, min(first + self.request.batch_rows, stop)),
                self.request.kinds,
                self.request.readings,
            )


def numpy_source(data: npt.NDArray[Any], request: Request) -> Source:
    """A structured array by its field names, or a 2-D array whose columns are the asked ones in order."""
    if data.dtype.names is not None:
        if data.ndim != 1:
            raise SourceError("a structured array must have one dimension", got=f"{data.ndim} dimensions")
        request.check(data.dtype.names, "the structured array")
        return _columns_source({name: data[name] for name in request.columns}, request, "a structured array")
    if data.ndim != 2:
        raise SourceError(
            "a plain array must have two dimensions, rows and columns",
            got=f"{data.ndim}",
            remedy="Reshape it, or give a dict of one-dimensional arrays.",
        )
    if data.shape[1] != len(request.columns):
        raise SourceError(
            "a plain array has no names, so it needs one column for each column of the schema, in order",
            got=f"{data.shape[1]} columns",
            limit=f"{len(request.columns)} columns",
            remedy="Give those columns, or a dict or data frame with names.",
        )
    _check_dtype(data.dtype, "the array")

    def cut(start: int, stop: int) -> pa.RecordBatch:
        # One transposing copy of a slice that fits the cache; the columns are views into it.
        block = data[start:stop].T
        block = np.ma.asanyarray(block) if np.ma.isMaskedArray(block) else np.ascontiguousarray(block)
        return _batch(dict(zip(request.columns, block, strict=True)), request)

    return MemorySource(request=request, label="a numpy array", length=len(data), cut=cut)


def numpy_types(data: npt.NDArray[Any]) -> dict[str, str]:
    """Names and types of the fields of a structured array."""
    if data.dtype.names is None:
        raise SourceError(
            "a plain array has no column names", remedy="Give a structured array, a dict or a data frame."
        )
    return {name: _dtype_name(data.dtype[name]) for name in data.dtype.names}


def _dtype_name(dtype: np.dtype[Any]) -> str:
    """The Arrow type of a numpy type; "unknown" for objects, whose type is in their values."""
    if dtype.kind in "OSV":
        return "unknown"
    if dtype.kind == "U":
        return "string"
    return attempt(
        lambda: str(pa.from_numpy_dtype(dtype)),
        (pa.ArrowException,),
        lambda _: _unfit(str(dtype), str(dtype)),
    )


def mapping_source(data: Mapping[str, Any], request: Request) -> Source:
    """A mapping from names to one-dimensional arrays or sequences of equal length."""
    request.check([name for name in data if isinstance(name, str)], "the mapping")
    return _columns_source({name: data[name] for name in request.columns}, request, "a mapping of arrays")


def mapping_types(data: Mapping[str, Any]) -> dict[str, str]:
    """Names and types; lists and tuples are "unknown", as their type is in their values."""
    return {name: _type(name, _held(name, column)) for name, column in data.items()}


def _type(name: str, held: Any) -> str:
    if isinstance(held, np.ndarray):
        return _dtype_name(held.dtype)
    if isinstance(held, list | tuple):
        return "unknown"
    if _is_pandas(held):
        return _pandas_type(held.iloc[:0])
    return (
        _polars_type(held.head(0)) if _is_polars(held) else type_names(pa.schema([(name, held.type)]))[name]
    )


def _columns_source(columns: Mapping[str, Any], request: Request, label: str) -> Source:
    held = {name: _held(name, column) for name, column in columns.items()}
    lengths = {len(column) for column in held.values()}
    if len(lengths) > 1:
        shortest = min(held, key=lambda name: len(held[name]))
        longest = max(held, key=lambda name: len(held[name]))
        raise SourceError(
            f"the columns {shortest!r} and {longest!r} differ in length",
            limit="columns of equal length",
            remedy="Give one cell for each row in every column.",
        )

    def cut(start: int, stop: int) -> pa.RecordBatch:
        return _batch({name: _cut(column, start, stop) for name, column in held.items()}, request)

    return MemorySource(request=request, label=label, length=lengths.pop(), cut=cut)


def _cut(column: Any, start: int, stop: int) -> Any:
    return column.iloc[start:stop] if _is_pandas(column) else column[start:stop]


def _held(name: str, column: Any) -> Any:
    """The column itself if it can be sliced as it is; nothing is converted yet."""
    if isinstance(column, pa.Array | pa.ChunkedArray | list | tuple) or _is_polars(column):
        return column
    if _is_pandas(column):
        return _numbers(column)
    if _is_pandas_array(column) or _is_pandas_index(column):
        return _numbers(_as_series(name, column))
    if isinstance(column, np.ndarray):
        if column.ndim != 1:
            raise SourceError(f"the column {name!r} must have one dimension", got=f"{column.ndim}")
        _check_dtype(column.dtype, f"the column {name!r}")
        return column
    if hasattr(column, "__arrow_c_array__") or hasattr(column, "__arrow_c_stream__"):
        return attempt(
            lambda: pa.chunked_array(column),
            (pa.ArrowException, ValueError, TypeError, OverflowError),
            lambda _: _unfit(name, type(column).__name__),
        )
    if hasattr(column, "__array__"):
        return _held(name, _as_declared(name, column))
    raise _unfit(name, type(column).__name__)


def _as_series(name: str, column: Any) -> Any:
    """What stands in a column of pandas, as that column: numpy would make floats of integers with a gap."""
    return attempt(
        lambda: sys.modules["pandas"].Series(column),
        (NotImplementedError, TypeError, ValueError),
        lambda _: _unfit(name, type(column).__name__),
    )


def _as_declared(name: str, column: Any) -> npt.NDArray[Any]:
    """An array of the type that the object itself states: another one could follow from a single cell."""
    stated = getattr(column, "dtype", None)
    graph = getattr(column, "__dask_graph__", None)
    lazy = callable(graph) and graph() is not None  # of a Dask series the parts may have other types
    if isinstance(stated, np.dtype) and not lazy:
        array = np.asarray(column)
        if array.dtype == stated:
            return array
    raise SourceError(
        f"the column {name!r} states no type of numpy that its cells are sure to have",
        got=type(column).__name__,
        limit="arrays of numpy, and columns of pandas, Polars and Arrow",
        remedy="Convert it to one of these before; to numpy's if none of its cells can change the type.",
    )


def _unfit(name: str, got: str) -> SourceError:
    return SourceError(
        f"the column {name!r} cannot be read as a column of an Arrow table",
        got=got,
        limit="numbers, text, booleans, dates",
        remedy="Convert it before.",
    )


def _check_dtype(dtype: np.dtype[Any], where: str) -> None:
    if dtype.kind in "cVm":
        raise SourceError(
            f"{where} cannot be read as numbers, text or dates",
            got=f"{dtype}",
            remedy="Convert it before.",
        )
    if dtype.kind == "M" and np.datetime_data(dtype)[1] != 1:
        raise SourceError(
            f"{where} counts timestamps in steps that Arrow does not have",
            got=f"{dtype}",
            limit="steps of one unit",
            remedy="Convert it before, for example by .astype('datetime64[us]').",
        )


def _batch(columns: Mapping[str, Any], request: Request) -> pa.RecordBatch:
    arrays = [_array(name, column, request) for name, column in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def _array(name: str, column: Any, request: Request) -> pa.Array:
    kind, reading = request.kinds.get(name), request.reading(name)
    if isinstance(column, pa.Array):
        return column
    if isinstance(column, pa.ChunkedArray):
        return joined(name, column)
    if isinstance(column, list | tuple):
        return from_objects(column, kind, reading)
    if _is_pandas(column):
        return _from_pandas(name, column, kind, reading)
    if _is_polars(column):
        return _from_polars(name, column, kind, reading)
    if kind == "id" and column.dtype.kind == "f" and column.dtype.itemsize > 8:
        raise SourceError(
            f"column {name!r} cannot tell units apart: ids that differ in the last digits would become one",
            got=str(column.dtype),
            limit="floats of at most 64 bits",
            remedy="Convert the column to integers or text first",
        )
    return attempt(
        lambda: _from_numpy(column, kind, reading),
        (pa.ArrowException, ValueError, TypeError),
        lambda _: _unfit(name, str(column.dtype)),
    )


def joined(name: str, column: pa.ChunkedArray) -> pa.Array:
    """All chunks as one array. Dictionaries of several chunks may not fit together into their index type."""

    def join() -> pa.Array:
        several = column.num_chunks > 1 and pa.types.is_dictionary(column.type)
        whole = pa.chunked_array(map(without_dictionary, column.chunks)) if several else column
        return whole.combine_chunks()

    return attempt(join, (pa.ArrowException,), lambda _: _unfit(name, str(column.type)[:100]))


def _from_numpy(column: npt.NDArray[Any], kind: DeclaredKind | None, reading: Reading) -> pa.Array:
    mask = np.ma.getmaskarray(column) if np.ma.isMaskedArray(column) else None
    values = np.ma.getdata(column)
    if values.dtype.kind in "OSU":
        cells = values.astype(object)
        if mask is not None:
            cells[mask] = None
        return from_objects(cells, kind, reading)
    if values.dtype.kind == "M":
        values, mask = _days_within(values, mask)
    if values.dtype.kind == "f" and values.dtype.itemsize not in (4, 8):
        with np.errstate(all="ignore"):  # beyond the floats is infinite, hence missing: no word of one row
            values = values.astype(np.float64)  # Arrow has no extended precision, few kernels for halves
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind in "iuf" and mask is None:
        # The caller's memory as it is; `pa.array` would import pandas to see whether it is a series.
        cells = pa.py_buffer(np.ascontiguousarray(values))
        return pa.Array.from_buffers(pa.from_numpy_dtype(values.dtype), len(values), [None, cells])
    return pa.array(values, mask=mask)


def _days_within(
    values: npt.NDArray[Any], mask: npt.NDArray[np.bool_] | None
) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_] | None]:
    """Days that Arrow's 32 bits cannot hold as missing: they would come out as other days."""
    if np.datetime_data(values.dtype)[0] != "D":
        return values, mask
    days = values.astype(np.int64)
    beyond = (np.abs(days) >= 2**31) & ~np.isnat(values)
    return (values, mask) if not beyond.any() else (values, beyond if mask is None else beyond | mask)


def pandas_source(data: Any, request: Request) -> Source:
    """A pandas frame; columns of objects are read by their declared kind."""
    names = [name for name in data.columns if isinstance(name, str)]
    request.check(names, "the pandas frame")
    return _columns_source({name: data[name] for name in request.columns}, request, "a pandas frame")


def _numbers(column: Any) -> Any:
    """The memory of a column of plain numbers, read as any numpy array; every other column as it is."""
    return column.to_numpy() if isinstance(column.dtype, np.dtype) and column.dtype.kind in "iuf" else column


def _from_pandas(
    name: str, column: Any, kind: DeclaredKind | None, reading: Reading = AS_WRITTEN
) -> pa.Array:
    levels = getattr(getattr(column, "cat", None), "categories", column)
    # Python's texts may hold half a surrogate pair, which Arrow would refuse with all others.
    if levels.dtype == object or getattr(levels.dtype, "storage", None) == "python":
        return from_objects(column.to_numpy(dtype=object), kind, reading)

    def convert() -> pa.Array:
        array = pa.Array.from_pandas(column)
        return joined(name, array) if isinstance(array, pa.ChunkedArray) else array

    return attempt(
        convert,
        (pa.ArrowException, ValueError, TypeError),
        lambda _: _unfit(name, str(column.dtype)),
    )


def pandas_types(data: Any) -> dict[str, str]:
    """Names and Arrow types; "unknown" for columns of objects, whose type is in their values."""
    names = [name for name in data.columns if isinstance(name, str)]
    refuse_repeated(names, "the pandas frame")
    return {name: _pandas_type(data[name].iloc[:0]) for name in names}


def _pandas_type(column: Any) -> str:
    if hasattr(column, "cat"):
        return "dictionary"
    if column.dtype == object:
        return "unknown"
    return type_names(pa.schema([("", _from_pandas(str(column.name), column, None).type)]))[""]


def polars_source(data: Any, request: Request) -> Source:
    request.check(data.columns, "the Polars frame")
    frame = data.select(request.columns)
    return MemorySource(
        request=request,
        label="a Polars frame",
        length=frame.height,
        cut=lambda start, stop: polars_batch(frame.slice(start, stop - start), request),
    )


def polars_batch(frame: Any, request: Request) -> pa.RecordBatch:
    """A small Polars frame as one record batch; columns of Python objects are read by their declared kind."""
    arrays = [
        _from_polars(name, frame.get_column(name), request.kinds.get(name), request.reading(name))
        for name in request.columns
    ]
    return pa.RecordBatch.from_arrays(arrays, names=list(request.columns))


def polars_types(data: Any) -> dict[str, str]:
    """Names and Arrow types; "unknown" for columns of Python objects."""
    return {name: _polars_type(data.get_column(name).head(0)) for name in data.columns}


def _polars_type(column: Any) -> str:
    if str(column.dtype) == "Object":
        return "unknown"
    return type_names(pa.schema([("", _from_polars(column.name, column, None).type)]))[""]


def _from_polars(
    name: str, column: Any, kind: DeclaredKind | None, reading: Reading = AS_WRITTEN
) -> pa.Array:
    if str(column.dtype) == "Object":
        return from_objects(column.to_list(), kind, reading)
    return attempt(
        column.to_arrow,
        (pa.ArrowException, ValueError, TypeError),
        lambda _: _unfit(name, str(column.dtype)),
    )

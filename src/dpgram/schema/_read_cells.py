"""Cells of an Arrow column → one array of numbers: values, days, 0/1, or numbers of levels.

NaN stands for a missing cell, an infinite number for an unreadable one, and `UNKNOWN_CODE` for a value that
is none of the declared ones. Which types are readable is decided by the type alone, which the file declares:
no value can make reading fail.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.errors import SourceError
from dpgram.schema.encodings import UNKNOWN_CODE
from dpgram.schema.reading import UNREADABLE_MOMENT

if TYPE_CHECKING:
    from dpgram.schema.columns import Categorical, Column

Line = npt.NDArray[Any]
"""The numbers of one column, of any width; the encoder copies them into its own 64-bit floats."""

_SIGNED = (pa.lib.Type_INT8, pa.lib.Type_INT16, pa.lib.Type_INT32, pa.lib.Type_INT64)
_UNSIGNED = (pa.lib.Type_UINT8, pa.lib.Type_UINT16, pa.lib.Type_UINT32, pa.lib.Type_UINT64)
_FLOATS = (pa.lib.Type_HALF_FLOAT, pa.lib.Type_FLOAT, pa.lib.Type_DOUBLE)
_DECIMALS = tuple(  # the narrow ones came with later versions of Arrow
    getattr(pa.lib, f"Type_DECIMAL{bits}")
    for bits in (32, 64, 128, 256)
    if hasattr(pa.lib, f"Type_DECIMAL{bits}")
)
_TEXTS = (pa.lib.Type_STRING, pa.lib.Type_LARGE_STRING)
_PER_DAY: Final[Mapping[str, int]] = {
    "s": 86_400,
    "ms": 86_400_000,
    "us": 86_400_000_000,
    "ns": 86_400_000_000_000,
}


def read_numbers(cells: pa.Array, declared: Column, *, remedy_for_dates: str | None = None) -> Line:
    """Numbers as they are, true and false as 1 and 0."""
    if pa.types.is_dictionary(cells.type) and pa.types.is_boolean(cells.type.value_type):
        return _numbers_of_truths(cells)
    cells = _decoded(cells)
    read = _NUMBER_READERS.get(cells.type.id)
    if read is None:
        readable = "integers, floats, decimals, booleans, or text that spells them"
        remedy = remedy_for_dates if cells.type.id in _DAY_READERS else None
        raise _unreadable(cells.type, declared.name, declared.kind, readable, remedy)
    return read(cells)


def read_days(cells: pa.Array, declared: Column, *, remedy: str) -> Line:
    """Days since 1970-01-01 of dates and timestamps."""
    cells = _decoded(cells)
    read = _DAY_READERS.get(cells.type.id)
    if read is None:
        readable = "dates or timestamps, since its bounds are dates"
        raise _unreadable(cells.type, declared.name, declared.kind, readable, remedy)
    return read(cells)


def read_levels(cells: pa.Array, declared: Categorical, *, kind: str) -> Line:
    """The number of each cell's level; `kind` is what the schema calls the column."""
    read = _LEVEL_READERS.get(cells.type.id)
    if read is None:
        readable = "text, dictionaries, integers, floats or booleans"
        raise _unreadable(cells.type, declared.name, kind, readable, None)
    return read(cells, declared)


def _decoded(cells: pa.Array) -> pa.Array:
    return cells.dictionary_decode() if cells.type.id == pa.lib.Type_DICTIONARY else cells


def _unreadable(found: pa.DataType, name: str, kind: str, readable: str, remedy: str | None) -> SourceError:
    return SourceError(
        f"column {name!r} is declared {kind} but the data has another type in it",
        got=str(found),
        limit=readable,
        remedy=remedy or "Convert the column first, or declare it as another kind",
    )


def _numbers(cells: pa.Array) -> Line:
    """Without a copy where there are no nulls; else nulls become NaN."""
    line: Line = cells.to_numpy(zero_copy_only=False)
    return line


def _numbers_of_booleans(cells: pa.Array) -> Line:
    return _numbers(cells.cast(pa.uint8()))


def _numbers_of_truths(cells: pa.DictionaryArray) -> Line:
    """No place is missing; a place whose value is null holds something that is neither true nor false."""
    values = _numbers(cells.dictionary.cast(pa.float64()).fill_null(np.inf))
    return _looked_up(cells, values)


def _numbers_of_decimals(cells: pa.Array) -> Line:
    return _numbers(cells.cast(pa.float64()))


def _days_of_dates(cells: pa.Array) -> Line:
    return _numbers(cells.view(pa.int32()))


def _days_of_timestamps(cells: pa.Array) -> Line:
    """Days since 1970-01-01; whole days apart from the rest, so that all units of time give the same bits."""
    per_day = _PER_DAY["ms" if cells.type.id == pa.lib.Type_DATE64 else cells.type.unit]
    ticks = cells.view(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    days: Line = ticks // per_day + (ticks % per_day) / per_day
    if per_day == _PER_DAY["us"]:  # the unit in which texts are read
        days[ticks == UNREADABLE_MOMENT] = np.inf
    if cells.null_count:
        days[_nulls(cells)] = np.nan
    return days


def _nulls(cells: pa.Array) -> npt.NDArray[np.bool_]:
    nulls: npt.NDArray[np.bool_] = cells.is_null().to_numpy(zero_copy_only=False)
    return nulls


def _levels_of_texts(cells: pa.Array, declared: Categorical) -> Line:
    return _match(cells, {level: code for code, level in enumerate(declared.all_levels)}, declared)


def _levels_of_integers(cells: pa.Array, declared: Categorical) -> Line:
    info = np.iinfo(cells.type.to_pandas_dtype())
    values = {
        int(level): code
        for code, level in enumerate(declared.all_levels)
        if _is_integer(level) and info.min <= int(level) <= info.max
    }
    return _match(cells, values, declared)


def _levels_of_floats(cells: pa.Array, declared: Categorical) -> Line:
    """Whole numbers match "3", others the shortest text that gives them back; NaN is missing."""
    values = {float(level): code for code, level in enumerate(declared.all_levels) if _is_float_text(level)}
    line = _numbers(cells)
    with np.errstate(all="ignore"):  # a signalling NaN would make a warning, which tells of one row
        if line.dtype == np.float16:  # Arrow cannot look halves up
            line = line.astype(np.float32)
        line = line + line.dtype.type(0.0)  # −0.0 becomes 0.0
    codes = _match(pa.array(line), values, declared)
    codes[np.isnan(line)] = np.nan
    return codes


def _levels_of_booleans(cells: pa.Array, declared: Categorical) -> Line:
    named = {"false": False, "true": True}
    values = {named[level]: code for code, level in enumerate(declared.all_levels) if level in named}
    return _match(cells, values, declared)


def _levels_of_dictionary(cells: pa.DictionaryArray, declared: Categorical) -> Line:
    """The levels of the dictionary's few values, looked up for each row."""
    return _looked_up(cells, read_levels(cells.dictionary, declared, kind=declared.kind))


def _looked_up(cells: pa.DictionaryArray, values: Line) -> Line:
    """The values of a dictionary in the places of its column."""
    table = np.append(values, np.nan)  # the last entry serves the nulls
    # Widened first: an index type that is just large enough for the values has no number left for the nulls.
    indices = cells.indices.cast(pa.int64()).fill_null(len(table) - 1)
    rows: npt.NDArray[np.int64] = indices.to_numpy(zero_copy_only=False)
    codes: Line = table[rows]
    return codes


def _match(cells: pa.Array, values: Mapping[Any, int], declared: Categorical) -> npt.NDArray[np.float64]:
    """The code of each cell; a null is missing, an unlisted value goes to `other` where there is one."""
    other = UNKNOWN_CODE if declared.other is None else float(declared.all_levels.index(declared.other))
    known = np.array([*values.values(), other])  # the last entry serves what is not found
    found = pc.index_in(cells, value_set=pa.array(list(values), type=cells.type))
    rows: npt.NDArray[np.int32] = found.fill_null(len(values)).to_numpy(zero_copy_only=False)
    codes: npt.NDArray[np.float64] = known[rows]
    if cells.null_count:
        codes[_nulls(cells)] = np.nan
    return codes


def _is_integer(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdigit() and str(int(text)) == text


def _is_float_text(text: str) -> bool:
    try:
        value = float(text)
    except ValueError:
        return False
    if np.isnan(value):
        return False
    return text == (str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value))


_NUMBER_READERS: Final[Mapping[int, Callable[[pa.Array], Line]]] = {
    **dict.fromkeys((*_SIGNED, *_UNSIGNED, *_FLOATS), _numbers),
    **dict.fromkeys(_DECIMALS, _numbers_of_decimals),
    pa.lib.Type_BOOL: _numbers_of_booleans,
}
_DAY_READERS: Final[Mapping[int, Callable[[pa.Array], Line]]] = {
    pa.lib.Type_DATE32: _days_of_dates,
    pa.lib.Type_DATE64: _days_of_timestamps,
    pa.lib.Type_TIMESTAMP: _days_of_timestamps,
}
_LEVEL_READERS: Final[Mapping[int, Callable[[pa.Array, Categorical], Line]]] = {
    **dict.fromkeys(_TEXTS, _levels_of_texts),
    **dict.fromkeys((*_SIGNED, *_UNSIGNED), _levels_of_integers),
    **dict.fromkeys(_FLOATS, _levels_of_floats),
    pa.lib.Type_BOOL: _levels_of_booleans,
    pa.lib.Type_DICTIONARY: _levels_of_dictionary,
}

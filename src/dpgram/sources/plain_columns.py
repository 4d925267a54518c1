"""Columns of any type → plain Arrow columns. What carries no type is read by its declared kind, else missing.

A type guessed from the values would let one row decide how a whole column is read, or whether it can be read
at all. So a cell that does not fit its declared kind is marked as unreadable (`text_cells`) and follows the
missing policy of the encoder; it never raises, and no message shows it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpgram.errors import SourceError
from dpgram.schema.reading import AS_WRITTEN, Reading
from dpgram.sources.base import AS_DECLARED, DeclaredKind
from dpgram.sources.ids import attoseconds, id_array, id_text
from dpgram.sources.text_cells import codes_in, mark_unreadable, parse, read_texts, without_codes

_T = TypeVar("_T")

TYPE_OF_KIND: Mapping[DeclaredKind, pa.DataType] = {
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.timestamp("us"),
    "id": pa.large_string(),
}

LARGEST_INTEGER = 10**1000  # Python refuses to write out integers of some thousand digits
EPOCH = datetime(1970, 1, 1)  # noqa: DTZ001  moments without a zone are counted from it
FIRST_MICROSECOND = (date.min - EPOCH.date()).days * 86_400_000_000
LAST_MICROSECOND = ((date.max - EPOCH.date()).days + 1) * 86_400_000_000 - 1


def from_objects(
    cells: Collection[object], kind: DeclaredKind | None, reading: Reading = AS_WRITTEN
) -> pa.Array:
    """An Arrow array of Python objects read as `kind` (as text where none is declared).

    Of the reading rules only those for text in other columns are applied: `plain_columns` does the rest.
    """
    if kind == "id":
        return id_array(_each(id_text, cells))
    if kind is None or kind == "text":
        return pa.array(_each(_text, cells), pa.string())
    held = _each(_decoded, cells)
    # Numbers among the cells may be words of a rule: for true and false, or for what is missing.
    if kind == "boolean" and (reading.true or reading.missing):
        held = _each(_truth_or_text, held)
    elif kind == "date" and reading.missing:
        held = _each(_moment_or_text, held)
    values = pa.array(_each(_READERS[kind], held), TYPE_OF_KIND[kind])
    # Text goes through the parser that text columns use, so that every source reads a word alike.
    texts = pa.array([cell if type(cell) is str else None for cell in held], pa.string())
    found = values if texts.null_count == len(texts) else pc.coalesce(values, parse(texts, kind, reading))
    if not found.null_count:
        return mark_unreadable(found, None, kind)
    something = pa.array(_each(_is_something, held), pa.bool_()).fill_null(fill_value=False)
    if reading.missing and texts.null_count < len(texts):
        something = pc.and_not(something, codes_in(texts, kind, reading))
    return mark_unreadable(found, pc.and_(pc.is_null(found), something), kind)


def _each(read: Callable[[Any], _T | None], cells: Collection[object]) -> list[_T | None]:
    """`read` of every cell, None where it raises: a cell's own methods may do anything."""
    try:
        return [read(cell) for cell in cells]
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (no cell may make reading fail)
        return [_or_none(read, cell) for cell in cells]


def _or_none(read: Callable[[Any], _T | None], cell: object) -> _T | None:
    try:
        return read(cell)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  (no cell may make reading fail)
        return None


def _is_something(cell: Any) -> bool:
    """Not None, nor blanks alone, nor what is not equal to itself: not a number, not a time, pandas' NA."""
    if cell is None or isinstance(cell, str):
        return bool((cell or "").strip())
    return bool(cell == cell)


def plain_columns(
    batch: pa.RecordBatch,
    kinds: Mapping[str, DeclaredKind],
    readings: Mapping[str, Reading] = AS_DECLARED,
) -> pa.RecordBatch:
    """`batch` with extension, run-end, view and null columns made plain, and declared text parsed.

    Columns that were read already come out as they are.
    """
    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        _refuse_dangling(name, column)
    changed = {
        index: mended
        for index, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True))
        if (mended := _plain(column, kinds.get(name), readings.get(name, AS_WRITTEN))) is not column
    }
    if not changed:
        return batch
    arrays = [changed.get(index, column) for index, column in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def run_places(column: pa.RunEndEncodedArray) -> pa.Array:
    """Which of the values of a run-end encoded column each row has."""
    rows = np.arange(column.offset, column.offset + len(column))
    return pa.array(np.searchsorted(column.run_ends.to_numpy(), rows, side="right"))


def _refuse_dangling(name: str, column: pa.Array) -> None:
    """Readers pass on the indices of a damaged file as they find them."""
    if pa.types.is_dictionary(column.type):
        indices, values = column.indices, column.dictionary
    elif pa.types.is_run_end_encoded(column.type):
        indices, values = run_places(column), column.values
        _refuse_dangling(name, values)
    else:
        return
    ends = pc.min_max(indices)
    least, most = ends["min"].as_py(), ends["max"].as_py()
    if least is not None and (least < 0 or most >= len(values)):
        raise SourceError(
            f"column {name!r} is damaged: it points outside its own list of values",
            remedy="Write the file again from where it came",
        )


def _plain(column: pa.Array, kind: DeclaredKind | None, reading: Reading) -> pa.Array:
    if pa.types.is_primitive(column.type):  # numbers, booleans, dates and times: by far the most common
        return without_codes(column, kind, reading) if reading and kind is not None else column
    if kind == "id" and not pa.types.is_null(column.type):
        return column  # `units.unit_ids` reads every type, and what some of them mean would be lost here
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage, kind, reading)
    if pa.types.is_run_end_encoded(column.type):
        # Not by Arrow's own decoder, which knows neither views nor dictionaries.
        return _plain(column.values, kind, reading).take(run_places(column))
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), TYPE_OF_KIND[kind or "text"])
    if _is_view(column.type):
        return _plain(_without_views(column), kind, reading)
    if pa.types.is_dictionary(column.type) and _is_view(column.type.value_type):
        column = pa.DictionaryArray.from_arrays(column.indices, _without_views(column.dictionary))
    if kind is None or (kind == "text" and not reading):
        return column
    if pa.types.is_dictionary(column.type) and pa.types.is_boolean(column.type.value_type):
        return column  # no rule is about truth values, and `read_texts` has made some of these
    if pa.types.is_dictionary(column.type) and (reading or is_text(column.type.value_type)):
        return _plain(without_dictionary(column), kind, reading)
    if is_text(column.type):
        return read_texts(_valid_utf8(column), kind, reading)
    return without_codes(column, kind, reading) if reading else column


def _is_view(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string_view(kind) or pa.types.is_binary_view(kind))


def _without_views(column: pa.Array) -> pa.Array:
    """Few functions of Arrow know views."""
    return column.cast(pa.large_string() if pa.types.is_string_view(column.type) else pa.large_binary())


def without_dictionary(column: pa.DictionaryArray) -> pa.Array:
    """The values themselves."""
    values = column.dictionary
    return (_without_views(values) if _is_view(values.type) else values).take(column.indices)


def plain_texts(column: pa.Array) -> pa.Array:
    """A column as it is, but for wrappings: no dictionary, no extension, and text that is UTF-8."""
    plain = _plain(column, None, AS_WRITTEN)
    while pa.types.is_dictionary(plain.type):
        plain = _plain(without_dictionary(plain), None, AS_WRITTEN)
    return _valid_utf8(plain) if is_text(plain.type) else plain


def is_text(kind: pa.DataType) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def _valid_utf8(texts: pa.Array) -> pa.Array:
    """`texts` with stray bytes replaced: readers do not look for them, and parsers may fail on them."""
    try:
        texts.validate(full=True)
    except pa.ArrowInvalid:
        return from_objects(texts.cast(pa.large_binary()).to_pylist(), "text")
    return texts


def _decoded(cell: object) -> object:
    """Text for bytes and text; half a surrogate pair, which Arrow cannot hold, becomes a question mark."""
    # Not by methods of the cell: those of a subclass may give what Arrow refuses.
    if isinstance(cell, bytes):
        return bytes.decode(cell, "utf-8", "replace")
    return str.encode(cell, "utf-8", "replace").decode() if isinstance(cell, str) else cell


def _number(cell: object) -> float | None:
    if isinstance(cell, np.timedelta64):  # which numpy calls an integer
        return None
    if not isinstance(cell, Real | Decimal | np.bool_):
        return None
    try:
        return float(cell)
    except (OverflowError, ValueError, TypeError):  # an integer beyond the floats; a signalling NaN
        return None


def _boolean(cell: object) -> bool | None:
    if isinstance(cell, bool | np.bool_):
        return bool(cell)
    number = _number(cell)
    return None if number is None or number not in (0.0, 1.0) else number == 1.0


def _as_datetime(cell: object) -> datetime | None:
    if isinstance(cell, np.datetime64):
        ticks = attoseconds(cell)  # in Python's integers: numpy would wrap around silently
        if ticks is None or not FIRST_MICROSECOND <= ticks // 10**12 <= LAST_MICROSECOND:
            return None
        cell = EPOCH + timedelta(microseconds=ticks // 10**12)
    if isinstance(cell, datetime):
        if cell != cell:  # the "not a time" of pandas is a datetime
            return None
        try:
            moment = cell if cell.tzinfo is None else cell.astimezone(UTC)
            # Plain, where pandas has its own class.
            return datetime.combine(moment.date(), moment.time(), tzinfo=None)
        except (OverflowError, NotImplementedError):  # beyond the calendar, where pandas goes on
            return None
    return datetime.combine(cell, time()) if isinstance(cell, date) else None


_READERS: Mapping[DeclaredKind, Callable[[object], object]] = {
    "number": _number,
    "boolean": _boolean,
    "date": _as_datetime,
}


def _text(cell: Any) -> str | None:
    """The words that Arrow's own casts give: true, 7, 7 for 7.0, 7.5, 2020-01-31; the text itself."""
    if isinstance(cell, str | bytes):
        return str(_decoded(cell))
    if isinstance(cell, bool | np.bool_):
        return "true" if cell else "false"
    if isinstance(cell, np.timedelta64):
        return None
    if isinstance(cell, Integral):
        number = int(cell)
        return str(number) if abs(number) < LARGEST_INTEGER else None
    if isinstance(cell, Decimal):
        exact = Decimal(cell)
        return None if exact.is_nan() else str(exact)
    if isinstance(cell, float | np.floating):
        value = float(cell)
        if value != value:  # not a number: missing, as pandas means it
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    if isinstance(cell, date) and not isinstance(cell, datetime):
        return date.isoformat(cell)
    return None


def _moment_or_text(cell: object) -> object:
    return cell if isinstance(cell, date | np.datetime64) else _text(cell)


def _truth_or_text(cell: object) -> bool | np.bool_ | str | None:
    return cell if isinstance(cell, bool | np.bool_) else _text(cell)

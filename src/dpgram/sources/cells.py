"""Columns of any type → plain Arrow columns. What carries no type is read by its declared kind, else missing.

A type guessed from the values would let one row decide how a whole column is read, or whether it can be read
at all. So a cell that does not fit its declared kind becomes null and follows the missing policy of the
encoder; it never raises, and no message shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from numbers import Integral, Real
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from dpgram.sources.base import Kind

TYPE_OF_KIND: Mapping[Kind, pa.DataType] = {
    "number": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
}

TRUE_WORDS = ("true", "t", "yes", "y", "1", "1.0")
FALSE_WORDS = ("false", "f", "no", "n", "0", "0.0")


def from_objects(cells: Iterable[object], kind: Kind | None) -> pa.Array:
    """An Arrow array of Python objects read as `kind` (as text where none is declared)."""
    if kind == "number":
        return pa.array([_number(cell) for cell in cells], pa.float64())
    if kind == "boolean":
        return pa.array([_boolean(cell) for cell in cells], pa.bool_())
    return pa.array([_text(cell) for cell in cells], pa.string())


def plain(batch: pa.RecordBatch, kinds: Mapping[str, Kind]) -> pa.RecordBatch:
    """`batch` with extension, run-end, view and null columns made plain, and declared text parsed."""
    changed = {
        index: mended
        for index, (name, column) in enumerate(zip(batch.schema.names, batch.columns, strict=True))
        if (mended := _plain(column, kinds.get(name))) is not column
    }
    if not changed:
        return batch
    arrays = [changed.get(index, column) for index, column in enumerate(batch.columns)]
    return pa.RecordBatch.from_arrays(arrays, names=batch.schema.names)


def _plain(column: pa.Array, kind: Kind | None) -> pa.Array:
    if pa.types.is_primitive(column.type):  # numbers, booleans, dates and times: by far the most common
        return column
    if isinstance(column, pa.ExtensionArray):
        return _plain(column.storage, kind)
    if pa.types.is_run_end_encoded(column.type):
        return _plain(pc.run_end_decode(column), kind)
    if pa.types.is_null(column.type):
        return pa.nulls(len(column), TYPE_OF_KIND[kind or "number"])
    if pa.types.is_string_view(column.type):
        return _plain(column.cast(pa.large_string()), kind)
    if kind in ("number", "boolean"):
        if pa.types.is_dictionary(column.type) and is_text(column.type.value_type):
            return _plain(column.dictionary_decode(), kind)
        if is_text(column.type):
            return parse_numbers(column) if kind == "number" else parse_booleans(column)
    return column


def is_text(kind: pa.DataType) -> bool:
    """Whether the Arrow type holds text, in any of its layouts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def parse_numbers(texts: pa.Array) -> pa.Array:
    """float64 of each text, blanks around it allowed; null where it is not a number."""
    import polars as pl

    series = pl.Series(texts)
    return series.str.strip_chars().cast(pl.Float64, strict=False).to_arrow()


def parse_booleans(texts: pa.Array) -> pa.Array:
    """True or false for the usual words in any case; null for everything else."""
    words = pc.utf8_lower(pc.utf8_trim_whitespace(texts))
    true = pc.is_in(words, pa.array(TRUE_WORDS, words.type))
    known = pc.or_(true, pc.is_in(words, pa.array(FALSE_WORDS, words.type)))
    return pc.if_else(known, true, pa.scalar(None, pa.bool_()))


def _number(cell: object) -> float | None:
    if isinstance(cell, bytes):
        cell = cell.decode("utf-8", "replace")
    if isinstance(cell, str):
        if "_" in cell:  # Python reads 1_000 as a number; no file format does
            return None
    elif not isinstance(cell, Real | Decimal):
        return None
    try:
        return float(cell)
    except (ValueError, OverflowError):
        return None


def _boolean(cell: object) -> bool | None:
    word = _text(cell)
    if word is None:
        return None
    word = word.strip().lower()
    return True if word in TRUE_WORDS else False if word in FALSE_WORDS else None


def _text(cell: Any) -> str | None:
    """The words Arrow's own casts would give: true, 7, 7 for 7.0, 7.5, and the text itself."""
    if isinstance(cell, str):
        return str(cell)
    if isinstance(cell, bytes):
        return cell.decode("utf-8", "replace")
    if isinstance(cell, bool) or type(cell).__name__ in ("bool_", "bool"):
        return "true" if cell else "false"
    if isinstance(cell, Integral):
        return str(int(cell))
    if isinstance(cell, Real) and not isinstance(cell, Fraction):
        value = float(cell)
        if value != value:  # not a number: missing, as pandas means it
            return None
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return None

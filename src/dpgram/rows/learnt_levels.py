"""Levels that are learnt from the data: their texts."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

import pyarrow as pa

from dpgram.errors import SourceError

LONGEST_LEVEL: Final = 200
"""Longer texts are never levels: they go to `other`."""


def level_texts(cells: pa.Array, column: str) -> pa.LargeStringArray:
    """The level of each row as text, the same from every source; null where there is none.

    Which types can be levels is decided by the type alone, so no value can make reading fail; a text that is
    not UTF-8 is no level.
    """
    kind = cells.type.value_type if pa.types.is_dictionary(cells.type) else cells.type
    write = _writer(kind, column)
    encoded = cells if pa.types.is_dictionary(cells.type) else cells.dictionary_encode()
    values = encoded.dictionary
    if write is _text_of_bytes:
        # Readers do not look at the bytes of a text, and Arrow's own decoder would raise.
        wide = pa.types.is_large_string(values.type)
        values = values.view(pa.large_binary() if wide else pa.binary())
    words = pa.array(
        [None if value is None else write(value) or None for value in values.to_pylist()], pa.large_string()
    )
    return words.take(encoded.indices.cast(pa.int64()))


def _writer(kind: pa.DataType, column: str) -> Callable[[Any], str | None]:
    write = next((write for test, write in _TEXTS if test(kind)), None)
    if write is None:
        raise SourceError(
            f"column {column!r} is declared categorical but the data has another type in it",
            got=str(kind),
            limit="text, integers, floats or booleans",
            remedy="Convert the column first, or declare it as another kind",
        )
    return write


def _text_of_float(value: float) -> str | None:
    """As the reader writes it: whole numbers without a point, NaN as nothing."""
    if math.isnan(value):
        return None
    return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)


def _text_of_bytes(letters: bytes) -> str | None:
    try:
        return letters.decode()
    except UnicodeDecodeError:
        return None


def _text_of_boolean(value: bool) -> str:
    return "true" if value else "false"


_TEXTS: Final[tuple[tuple[Callable[[Any], bool], Callable[[Any], str | None]], ...]] = (
    (pa.types.is_string, _text_of_bytes),
    (pa.types.is_large_string, _text_of_bytes),
    (pa.types.is_integer, str),
    (pa.types.is_floating, _text_of_float),
    (pa.types.is_boolean, _text_of_boolean),
)

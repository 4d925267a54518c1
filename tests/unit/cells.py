"""Cells that sources deliver, as Python values; what is missing and what is unreadable told apart."""

from __future__ import annotations

import math
from typing import Final

import pyarrow as pa

from dpgram.schema.reading import UNREADABLE_MOMENT

UNREADABLE: Final = "(unreadable)"


def cells_of(column: pa.Array) -> list[object]:
    """None is missing: null, or not a number."""
    if pa.types.is_dictionary(column.type) and pa.types.is_boolean(column.type.value_type):
        held = [UNREADABLE if value is None else value for value in column.dictionary.to_pylist()]
        return [None if place is None else held[place] for place in column.indices.to_pylist()]
    if column.type == pa.timestamp("us"):
        marked = [ticks == UNREADABLE_MOMENT for ticks in column.cast(pa.int64()).to_pylist()]
        rest = pa.compute.if_else(pa.array(marked, pa.bool_()), pa.scalar(None, column.type), column)
        return [UNREADABLE if one else cell for one, cell in zip(marked, rest.to_pylist(), strict=True)]
    return [_number(cell) if isinstance(cell, float) else cell for cell in column.to_pylist()]


def _number(cell: float) -> object:
    return cell if math.isfinite(cell) else None if math.isnan(cell) else UNREADABLE

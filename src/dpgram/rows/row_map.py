"""An encoder as the core's row map: which constants stand for a schema, its coordinates and its clip."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dpgram.core.encode import Line, RowMap
from dpgram.document.coordinates import VALUE_BITS, Coordinates
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema
from dpgram.schema.columns import SourceColumn
from dpgram.schema.encodings import (
    BooleanEncoding,
    DerivedEncoding,
    LegendreEncoding,
    LevelsEncoding,
    NumberEncoding,
    ProductEncoding,
)

PLAIN_BITS: Final = 26
"""Binary digits of an encoded cell where rows are measured as they are: products of two stay below 2^53."""


def row_map(encoder: Encoder) -> RowMap:
    """Lines in the order of the encoded columns, in whole numbers of weight/2^26, or of weight/2^20 before T.

    Where T only adds the constant to each column, as where columns are standardised, it becomes part of the
    lines: nothing is rounded before, so that bounds far wider than the values cost no digits.

    Proof: proofs/adaptive.md#adaptive-rows.
    """
    schema, coordinates = encoder.schema, encoder.coordinates
    bits = PLAIN_BITS if coordinates is None else VALUE_BITS
    unit = float(1 << bits) / max(column.weight for column in schema.encoded)
    levels = tuple(_levels(column) for column in schema.columns_read)
    drop = encoder.missing == "drop"
    if coordinates is None:
        return RowMap(tuple(_lines(schema, unit)), levels, encoder.radius * unit, None, drop)
    radius = encoder.radius * unit * 2.0**coordinates.shift
    if drop and _standardises(schema, coordinates):
        lines = _standardised(schema, unit, coordinates)
        return RowMap(tuple(lines), levels, radius, None, drop)
    transform = tuple(tuple(map(int, row)) for row in coordinates.integers.tolist())
    return RowMap(tuple(_lines(schema, unit)), levels, radius, transform, drop)


def _standardises(schema: Schema, coordinates: Coordinates) -> bool:
    plain = schema.constant and not schema.columns_derived
    return plain and not np.tril(coordinates.integers[:, 1:], -2).any()


def _levels(column: SourceColumn) -> int:
    match column.encoding:
        case LevelsEncoding(levels=levels):
            return len(levels)
        case BooleanEncoding():
            return 2
        case _:
            return 0


def _lines(schema: Schema, unit: float) -> list[Line]:
    lines: dict[int, Line] = {0: Line(kind="one", scale=unit)} if schema.constant else {}
    for source, column in enumerate(schema.columns_read):
        lines.update(zip(schema.indices(column.name), _source_lines(source, column, unit), strict=True))
    sizes = [column.weight * unit for column in schema.encoded]
    for derived in schema.columns_derived:
        for name, part in zip(derived.encoded_names, derived.parts, strict=True):
            (place,) = schema.indices(name)
            lines[place] = _derived_line(schema, part, derived.weight * unit, sizes)
    return [lines[place] for place in range(schema.width)]


def _source_lines(source: int, column: SourceColumn, unit: float) -> Iterator[Line]:
    step = column.weight * unit
    match column.encoding:
        case NumberEncoding(low=low, high=high, centre=centre, half_width=half_width):
            yield Line(
                kind="number", source=source, low=low, high=high, centre=centre, scale=step / half_width
            )
        case BooleanEncoding():
            yield Line(kind="number", source=source, centre=0.5, scale=2.0 * step)
        case LevelsEncoding(levels=levels):
            absent = round(step / len(levels))
            for level in range(len(levels)):
                yield Line(kind="level", source=source, level=level, scale=step, absent=absent)
        case other:
            raise TypeError(type(other).__name__)


def _derived_line(schema: Schema, part: DerivedEncoding, step: float, sizes: list[float]) -> Line:
    places = [schema.indices(name)[0] for name in part.factors]
    match part:
        case ProductEncoding():
            most = sizes[places[0]] * sizes[places[1]]
            return Line(
                kind="product", source=places[0], other=places[1], low=-most, high=most, scale=step / most
            )
        case LegendreEncoding(degree=degree):
            return Line(
                kind="legendre",
                source=places[0],
                degree=degree,
                unit=1.0 / sizes[places[0]],
                low=-1.0,
                high=1.0,
                scale=step,
            )
        case other:
            raise TypeError(type(other).__name__)


def _standardised(schema: Schema, unit: float, coordinates: Coordinates) -> list[Line]:
    """T_jj·v_j + T_j0·v_0 as one line: a larger scale, and a centre that is moved.

    Proof: proofs/adaptive.md#adaptive-rows.
    """
    diagonal, first = np.diagonal(coordinates.integers), coordinates.integers[:, 0]
    found = [Line(kind="one", scale=float(diagonal[0]) * unit)]
    for line, by, added in zip(_lines(schema, unit)[1:], diagonal[1:], first[1:], strict=True):
        scale = line.scale * float(by)
        centre = line.centre - float(added) * unit / scale
        found.append(
            Line(
                kind=line.kind,
                source=line.source,
                level=line.level,
                low=line.low,
                high=line.high,
                centre=centre,
                scale=scale,
            )
        )
    return found

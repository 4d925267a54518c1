"""An encoder as the core's row map: which constants stand for a schema, its coordinates and its clip."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from dpgram.core.encode import Floats, Line, RowMap
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

FINE_BITS: Final = 10
"""Binary digits of a column for each unit of the coordinates that it is part of, at least."""
MOST_FINE_BITS: Final = 29
"""More of them than 20, and those of the number of columns, together: sums stay below 2^53."""
FULL: Final = 2.0**53 * (1.0 - 2.0**-20)
"""Of lines that would pass it none is finer, so that the core refuses no coordinates."""
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
    lines, transform = _finer(schema, unit, coordinates)
    return RowMap(tuple(lines), levels, radius, transform, drop)


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


def _finer(
    schema: Schema, unit: float, coordinates: Coordinates
) -> tuple[list[Line], tuple[tuple[int, ...], ...]]:
    """Lines and whole numbers A with T v = A·lines, but for rounding.

    A column of which T makes much, as one with bounds far wider than its values, has a line in finer steps,
    2^10 for each unit of what it is part of, around where values lie; a line of ones brings back the rest.

    Proof: proofs/adaptive.md#adaptive-rows.
    """
    plain, integers = _lines(schema, unit), coordinates.integers
    steps = np.log2(np.abs(integers).max(axis=0)) - coordinates.shift - math.log2(unit) + FINE_BITS
    steps = np.minimum(np.ceil(steps), MOST_FINE_BITS - math.ceil(math.log2(len(plain))))
    factors = {part for one in schema.columns_derived for each in one.parts for part in each.factors}
    finer = [
        place
        for place, (line, name) in enumerate(zip(plain, schema.names, strict=True))
        if steps[place] > 0.0 and line.kind == "number" and name not in factors
    ]
    lines, middles = plain.copy(), _middles(schema, plain, integers) if finer else np.empty(0)
    shares, ones = integers.copy(), np.zeros(len(integers))
    for place in finer:
        line, by = lines[place], 2.0 ** steps[place]
        centre = line.centre + middles[place] / line.scale
        moved = (centre - line.centre) * line.scale
        ones += integers[:, place] * moved
        shares[:, place] = np.rint(integers[:, place] / by)
        lines[place] = replace(line, centre=centre, scale=line.scale * by, absent=round(-moved * by))
    ends = np.array([[one.low - one.centre, one.high - one.centre, one.absent / one.scale] for one in lines])
    largest = np.abs(ends).max(axis=1) * [one.scale for one in lines] + 1.0
    if not finer or (np.abs(shares) @ largest + np.abs(ones)).max() > FULL:
        return plain, tuple(tuple(map(int, row)) for row in integers.tolist())
    whole = np.column_stack([np.rint(ones), shares])
    return [Line(kind="one"), *lines], tuple(tuple(map(int, row)) for row in whole.tolist())


def _middles(schema: Schema, lines: list[Line], integers: Floats) -> Floats:
    """Where each line has to be for T v to be 0, in its steps and within its bounds: where values lie."""
    middles = np.zeros(len(lines))
    if schema.constant:
        with np.errstate(all="ignore"):  # whatever it is, it is held within the bounds
            middles[1:] = np.linalg.solve(integers[1:, 1:], -integers[1:, 0] * lines[0].scale)
    largest = max(line.scale for line in lines if line.kind == "one") if schema.constant else 0.0
    return np.clip(np.nan_to_num(middles), -largest, largest)


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

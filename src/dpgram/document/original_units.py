"""From encoded units, in which every column lies within ±weight, to those in which the data was measured.

A column in original units is a linear function of the encoded row. That holds for numbers, x = c + h·z, and
for products and powers too, as long as the columns they are made of are published beside them:
x·x' = (c + hz)(c' + h'z') is a sum of zz', z, z' and the constant, and x² one of P₂(z), z and the constant.
So interactions and powers can be told as R and Stata tell them, although the matrix holds them about the
middle of their ranges.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import AnalysisError
from dpgram.schema import EncodedColumn, Schema
from dpgram.schema.encodings import DerivedEncoding

Matrix = npt.NDArray[np.float64]
LEAST_SCALE: Final = 1e-60
"""The least half-width of a column's bounds in analyses; the largest is its reciprocal."""
LARGEST_RATIO: Final = 1e6
"""(1 + |centre| / half-width)^degree up to which a power can be told from the lower ones in floats."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class OriginalColumn:
    """One encoded column in original units, as a function of the encoded row."""

    name: str
    """Its own, or that of the product or power it stands for: `age:bmi`, `age^2`."""
    parts: Mapping[int, float]
    """Position in the encoded row → factor; their sum is the value less `shift`."""
    scale: float
    """What z = 1 of the column itself is in original units."""
    shift: float = 0.0
    """What the parts lack: the centre, where there is no constant column."""
    monomial: tuple[str, ...] = ()
    """The columns whose values are multiplied, levels as 0 and 1; none for what stands for itself."""


def original_columns(schema: Schema) -> tuple[OriginalColumn, ...]:
    """Every encoded column in original units."""
    refuse_beyond_floats(schema)
    encoded = schema.encoded
    derived: dict[str, DerivedEncoding] = {
        name: part
        for column in schema.columns_derived
        for name, part in zip(column.encoded_names, column.parts, strict=True)
    }
    names = {column.name: column for column in encoded}
    places: dict[DerivedEncoding | str, int] = {
        part: schema.indices(name)[0] for name, part in derived.items()
    }
    places |= {column.name: i for i, column in enumerate(encoded)}
    return tuple(
        _derived(i, column, derived[column.name], encoded, names, places)
        if column.name in derived
        else _plain(i, column, encoded, constant=schema.constant)
        for i, column in enumerate(encoded)
    )


def _plain(
    i: int, column: EncodedColumn, encoded: tuple[EncodedColumn, ...], *, constant: bool
) -> OriginalColumn:
    parts = {i: column.half_width / column.weight}
    if constant and column.centre != 0.0:
        parts[0] = column.centre / encoded[0].weight
    shift = 0.0 if constant else column.centre
    return OriginalColumn(name=column.name, parts=parts, scale=column.half_width, shift=shift)


def _derived(
    i: int,
    column: EncodedColumn,
    encoding: DerivedEncoding,
    encoded: tuple[EncodedColumn, ...],
    names: Mapping[str, EncodedColumn],
    places: Mapping[DerivedEncoding | str, int],
) -> OriginalColumn:
    """The product or power itself where what it needs is published; else about the middle of the ranges."""
    ranges = {name: (names[name].centre, names[name].half_width) for name in encoding.factors}
    expansion = {part: value for part, value in encoding.expansion(ranges).items() if value != 0.0}
    ratio = math.prod(1.0 + abs(ranges[name][0]) / ranges[name][1] for name in encoding.monomial)
    if ratio <= LARGEST_RATIO and expansion.keys() <= places.keys():
        return OriginalColumn(
            name=_monomial_name(encoding.monomial),
            parts={places[part]: value / encoded[places[part]].weight for part, value in expansion.items()},
            scale=math.prod(ranges[name][1] for name in encoding.monomial),
            monomial=encoding.monomial,
        )
    unit = encoding.original_unit({name: half_width for name, (_, half_width) in ranges.items()})
    return OriginalColumn(name=column.name, parts={i: unit / column.weight}, scale=unit)


def _monomial_name(factors: tuple[str, ...]) -> str:
    """As R writes them: `age:bmi`, `age^2`."""
    return ":".join(name if power == 1 else f"{name}^{power}" for name, power in Counter(factors).items())


def in_original_units(schema: Schema, encoded: Matrix) -> Matrix:
    """T G Tᵀ with x = T a, the columns in original units."""
    change = change_of_units(schema)
    result = change @ encoded @ change.T
    return symmetric(result)


def refuse_beyond_floats(
    schema: Schema, *, remedy: str = 'Use release.matrix("encoded"), or publish the column in another unit'
) -> None:
    """Bounds whose products, squared, are no floats: nothing can be told in the units of such a column."""
    for column in schema.encoded:
        if not (
            LEAST_SCALE <= column.half_width <= 1.0 / LEAST_SCALE and abs(column.centre) <= 1.0 / LEAST_SCALE
        ):
            raise AnalysisError(
                f"the bounds of column {column.name!r} are too large or too close together to compute with",
                limit=f"sizes from {LEAST_SCALE:g} to {1.0 / LEAST_SCALE:g}",
                remedy=remedy,
            )


def change_of_units(schema: Schema) -> Matrix:
    """T."""
    columns = original_columns(schema)
    if any(column.shift for column in columns):
        raise AnalysisError(
            "without a constant column the matrix cannot be moved to original units",
            remedy='Use units="encoded", or publish with constant=True',
        )
    change = np.zeros((len(columns), len(columns)))
    for i, column in enumerate(columns):
        change[i, list(column.parts)] = list(column.parts.values())
    return change


def symmetric(matrix: Matrix) -> Matrix:
    """Exactly symmetric, where rounding made it almost so."""
    symmetric: Matrix = (matrix + matrix.T) / 2
    return symmetric

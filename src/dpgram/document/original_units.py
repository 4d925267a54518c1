"""From encoded units, in which every column lies within ±weight, to those in which the data was measured."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.errors import AnalysisError
from dpgram.schema import Schema

Matrix = npt.NDArray[np.float64]
LEAST_SCALE: Final = 1e-60
"""The least half-width of a column's bounds in analyses; the largest is its reciprocal."""


def in_original_units(schema: Schema, encoded: Matrix) -> Matrix:
    """T G Tᵀ with x = centre + half_width · a / weight for every encoded column a."""
    change = _change_of_units(schema)
    result = change @ encoded @ change.T
    return symmetric(result)


def refuse_beyond_floats(schema: Schema) -> None:
    """Bounds whose products, squared, are no floats: nothing can be told in the units of such a column."""
    for column in schema.encoded:
        if not (
            LEAST_SCALE <= column.half_width <= 1.0 / LEAST_SCALE and abs(column.centre) <= 1.0 / LEAST_SCALE
        ):
            raise AnalysisError(
                f"the bounds of column {column.name!r} are too large or too close together to compute with",
                limit=f"sizes from {LEAST_SCALE:g} to {1.0 / LEAST_SCALE:g}",
                remedy='Use release.matrix("encoded"), or publish the column in another unit',
            )


def _change_of_units(schema: Schema) -> Matrix:
    refuse_beyond_floats(schema)
    encoded = schema.encoded
    change = np.diag([column.half_width / column.weight for column in encoded])
    centres = np.array([column.centre for column in encoded])
    if schema.constant:
        change[1:, 0] = centres[1:] / encoded[0].weight
        change[0, 0] = 1 / encoded[0].weight
    elif centres.any():
        raise AnalysisError(
            "without a constant column the matrix cannot be moved to original units",
            remedy='Use units="encoded", or publish with constant=True',
        )
    return change


def symmetric(matrix: Matrix) -> Matrix:
    """Exactly symmetric, where rounding made it almost so."""
    symmetric: Matrix = (matrix + matrix.T) / 2
    return symmetric

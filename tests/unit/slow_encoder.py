"""The encoding once more: a row at a time, in Python floats and unbounded integers. Slow and plain.

It follows the same sequence of IEEE operations as the core, since a bit-identical result is part of the
contract; the sums, norms and limits are Python integers. Cells are Python values; None is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dpgram.schema import Boolean, Categorical, Column, Legendre, Numeric, Ordinal, Product, Schema

LIMIT = 2**30
Row = Mapping[str, object]


def whole_row(row: Row, schema: Schema, *, unit: float, missing: str) -> list[int] | None:
    """Every encoded column in whole numbers, or None where the policy drops the row."""
    cells: dict[str, list[int]] = {}
    steps = {column.name: column.weight * unit for column in schema.columns}
    for column in schema.columns:
        if isinstance(column, Product | Legendre):
            continue
        found = _cell(row[column.name], column, steps[column.name])
        if found is None and missing == "drop":
            return None
        cells[column.name] = _middle(column, steps[column.name]) if found is None else found
    for column in schema.columns:
        if isinstance(column, Product):  # levels have a cell each
            left, right = (cells[name] for name in column.factors)
            most = steps[column.factors[0]] * steps[column.factors[1]]
            products = [float(a * b) for a in left for b in right]
            scale = steps[column.name] / most
            cells[column.name] = [round(min(max(z, -most), most) * scale) for z in products]
        elif isinstance(column, Legendre):
            (factor,) = column.factors
            z = _legendre(column.degree, cells[factor][0] * (1.0 / steps[factor]))
            cells[column.name] = [round(min(max(z, -1.0), 1.0) * steps[column.name])]
    head = [round(unit)] if schema.constant else []
    return head + [value for column in schema.columns for value in cells[column.name]]


def lattice_row(
    row: Row,
    schema: Schema,
    *,
    clip: float | None = None,
    missing: str = "drop",
    unit_rows: int = 1,
    weight: float = 1.0,
) -> list[int] | None:
    """The integer row q, |q|² ≤ ⌊2^30 / unit_rows⌋."""
    unit = 2.0**26 / max(column.weight for column in schema.encoded)
    largest = math.sqrt(schema.max_norm_squared)
    radius = (largest if clip is None else min(clip, largest)) * unit
    v = whole_row(row, schema, unit=unit, missing=missing)
    if v is None:
        return None
    squares = 0.0
    for value in v:
        squares += float(value) * float(value)
    factor = min(1.0, radius / math.sqrt(squares)) if squares else 1.0
    factor *= 2**15 / radius
    factor /= math.sqrt(unit_rows)
    factor *= weight
    a = [value * factor for value in v]
    q = [round(value) for value in a]
    limit = LIMIT // unit_rows
    if sum(value * value for value in q) > limit:
        q = [math.trunc(value) for value in a]
    assert sum(value * value for value in q) <= limit
    return q


def gram(
    rows: Sequence[Row], schema: Schema, *, clip: float | None = None, missing: str = "drop"
) -> list[list[int]]:
    """Σ q qᵀ in Python integers."""
    lattice = [lattice_row(row, schema, clip=clip, missing=missing) for row in rows]
    kept = [q for q in lattice if q is not None]
    width = range(schema.width)
    return [[sum(q[i] * q[j] for q in kept) for j in width] for i in width]


def _cell(cell: object, column: Column, step: float) -> list[int] | None:
    if cell is None:
        return None
    if isinstance(column, Numeric):
        assert isinstance(cell, int | float)
        if not math.isfinite(cell):
            return None
        low, high = column.bounds
        scale = step / column.half_width
        return [round((min(max(float(cell), low), high) - column.centre) * scale)]
    if isinstance(column, Ordinal):
        if cell not in column.levels:
            return None
        middle = 0.5 * (len(column.levels) - 1)
        return [round((column.levels.index(cell) - middle) * (step / middle))]
    if isinstance(column, Boolean):
        return [round((float(bool(cell)) - 0.5) * (2.0 * step))]
    assert isinstance(column, Categorical)
    levels = column.all_levels
    if cell not in levels and column.other is None:
        return None
    chosen = cell if cell in levels else column.other
    return [round(step) if level == chosen else 0 for level in levels]


def _middle(column: Column, step: float) -> list[int]:
    if isinstance(column, Categorical):
        return [round(step / len(column.all_levels))] * len(column.all_levels)
    return [0]


def _legendre(degree: int, z: float) -> float:
    before, now = 1.0, z
    for m in range(1, degree):
        before, now = now, ((2 * m + 1) * z * now - m * before) / (m + 1)
    return now

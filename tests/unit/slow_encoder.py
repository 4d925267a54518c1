"""The encoding once more: a row at a time, in Python floats and unbounded integers. Slow and plain.

It follows the same sequence of IEEE operations as the kernel, since a bit-identical result is part of the
contract; the sums, norms and limits are Python integers. Cells are Python values; None is missing.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from dpgram.schema import Boolean, Categorical, Column, Legendre, Numeric, Ordinal, Product, Schema

LIMIT = 2**30
Row = Mapping[str, object]


def scaled_row(row: Row, schema: Schema, *, unit: float, missing: str) -> list[float] | None:
    """a · 2^15/R for every encoded column before any clipping, or None where the policy drops the row."""
    cells: dict[str, list[float]] = {}
    steps = {column.name: column.weight * unit for column in schema.columns}
    for column in schema.columns:
        if isinstance(column, Product | Legendre):
            continue
        found = _cell(row[column.name], column, steps[column.name])
        if found is None and missing == "drop":
            return None
        cells[column.name] = _middle(column, steps[column.name]) if found is None else found
    for column in schema.columns:
        if isinstance(column, Product | Legendre):
            factors = [[cell * (1.0 / steps[name]) for cell in cells[name]] for name in column.factors]
            if isinstance(column, Product):  # levels have a cell each
                values = [left * right for left in factors[0] for right in factors[1]]
            else:
                values = [_legendre(column.degree, factors[0][0])]
            cells[column.name] = [steps[column.name] * min(max(z, -1.0), 1.0) for z in values]
    head = [unit] if schema.constant else []
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
    largest = math.sqrt(schema.max_norm_squared)
    radius = largest if clip is None else min(clip, largest)
    a = scaled_row(row, schema, unit=2**15 / radius, missing=missing)
    if a is None:
        return None
    norm_squared = 0.0
    for value in (*_parts(a, schema, derived=False), *_parts(a, schema, derived=True)):
        norm_squared += value * value
    shrinks = clip is not None and radius < largest and norm_squared > LIMIT
    factor = 2**15 / math.sqrt(norm_squared) if shrinks else 1.0
    factor /= math.sqrt(unit_rows)
    factor *= weight
    a = [value * factor for value in a]
    q = [round(value) for value in a]
    limit = LIMIT // unit_rows
    if sum(value * value for value in q) > limit:
        q = [math.trunc(value) for value in a]
    while sum(value * value for value in q) > limit:
        largest_cell = max(range(len(q)), key=lambda j: abs(q[j]))
        q[largest_cell] -= 1 if q[largest_cell] > 0 else -1
    return q


def _parts(a: list[float], schema: Schema, *, derived: bool) -> list[float]:
    """The cells of derived columns, or of all others: the order in which squares are added."""
    own = {i for c in schema.columns if isinstance(c, Product | Legendre) for i in schema.indices(c.name)}
    return [value for index, value in enumerate(a) if (index in own) is derived]


def gram(
    rows: Sequence[Row], schema: Schema, *, clip: float | None = None, missing: str = "drop"
) -> list[list[int]]:
    """Σ q qᵀ in Python integers."""
    lattice = [lattice_row(row, schema, clip=clip, missing=missing) for row in rows]
    kept = [q for q in lattice if q is not None]
    width = range(schema.width)
    return [[sum(q[i] * q[j] for q in kept) for j in width] for i in width]


def _cell(cell: object, column: Column, step: float) -> list[float] | None:
    if cell is None:
        return None
    if isinstance(column, Numeric):
        assert isinstance(cell, int | float)
        if not math.isfinite(cell):
            return None
        low, high = column.bounds
        return [(min(max(float(cell), low), high) - column.centre) * (1 / column.half_width) * step]
    if isinstance(column, Ordinal):
        if cell not in column.levels:
            return None
        middle = 0.5 * (len(column.levels) - 1)
        return [(column.levels.index(cell) - middle) * (1 / middle) * step]
    if isinstance(column, Boolean):
        return [step if cell else -step]
    assert isinstance(column, Categorical)
    levels = column.all_levels
    if cell not in levels and column.other is None:
        return None
    chosen = cell if cell in levels else column.other
    return [step if level == chosen else 0.0 for level in levels]


def _middle(column: Column, step: float) -> list[float]:
    if isinstance(column, Categorical):
        return [step / len(column.all_levels)] * len(column.all_levels)
    return [0.0]


def _legendre(degree: int, z: float) -> float:
    before, now = 1.0, z
    for m in range(1, degree):
        before, now = now, ((2 * m + 1) * z * now - m * before) / (m + 1)
    return now

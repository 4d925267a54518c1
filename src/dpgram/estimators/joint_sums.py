"""(Σ q qᵀ, Σ q t, Σ t²), exactly: lattice rows q of the features with |q|² ≤ Q² and targets |t| ≤ T.

Features and target have bounds of their own, so that a release for one target need not pay for the corner
where both are largest in one norm. Both bounds are facts about integers, enforced here whatever floats did
before: a row of features that is too long is scaled down and truncated towards zero, a target is clamped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.encoding import Encoder, Missing
from dpgram.errors import SchemaError
from dpgram.lattice import ROW_NORM
from dpgram.schema import Schema

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BATCH_ROWS: Final = 64_000
_INWARDS: Final = 1.0 - 2.0**-40
"""A scaled row stays inside its radius in spite of rounding errors, which are below 2⁻⁵⁰."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Reach:
    """How far one row can reach, in lattice units; from the public schema alone."""

    target: int
    """The target's place among the encoded columns."""
    features: tuple[int, ...]
    x_squared: int
    """Q²: the largest |q|²."""
    y: int
    """T: the largest |t|."""
    unit: float
    """One lattice unit in encoded units."""
    clipped: bool = False
    """Whether Q² is less than the schema allows, so that features of long rows are scaled down."""

    @classmethod
    def of(cls, schema: Schema, target: str, clip: float | None) -> Self:
        """`clip` is a public bound on the length of the encoded features, the constant included."""
        places = schema.indices(target)
        if len(places) != 1:
            raise SchemaError(
                f"the target {target!r} is not one number",
                got=f"{len(places)} levels",
                remedy="Declare it with numeric(...) or boolean(...)",
            )
        unit = Encoder(schema).radius / ROW_NORM
        weights = [1.0] if schema.constant else []
        weights += [column.weight for column in schema.columns if column.name != target]
        squared = sum(int(np.rint(weight / unit)) ** 2 for weight in weights)
        most = squared
        if clip is not None:
            squared = min(squared, math.floor((_checked(clip) / unit) ** 2))
        y = int(np.rint(schema.column(target).weight / unit))
        if squared < 1 or y < 1:
            raise SchemaError(
                "the features or the target have no room on the lattice",
                got=f"clip = {clip}",
                remedy="Take a larger clip radius, or weights that differ less",
            )
        features = tuple(place for place in range(schema.width) if place != places[0])
        clipped = squared < most
        return cls(target=places[0], features=features, x_squared=squared, y=y, unit=unit, clipped=clipped)

    @property
    def x(self) -> float:
        """Q, rounded up."""
        return math.nextafter(math.sqrt(self.x_squared), math.inf)

    @property
    def x_encoded(self) -> float:
        """Q in encoded units."""
        return self.x * self.unit


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class JointSums:
    """The exact sums. **Not private**: they must never leave the fit that made them."""

    xx: Integers
    xy: Integers
    yy: int
    rows_read: int


def joint_sums(data: Any, schema: Schema, reach: Reach, missing: Missing) -> JointSums:
    """One pass over the table; the same policies for missing and unknown values as in `publish`.

    Proof: proofs/joint.md#joint-bounds.
    """
    from dpgram.sources import declared_kinds, open_source

    width, features = len(reach.features), list(reach.features)
    xx, xy, yy, rows = np.zeros((width, width), np.int64), np.zeros(width, np.int64), 0, 0
    blocks = Encoder(schema, missing=missing).blocks()
    columns = schema.source_columns
    source = open_source(data, columns, kinds=declared_kinds(schema), batch_rows=BATCH_ROWS)
    for batch in source.batches():
        for block in blocks.encode(batch):
            # At most a few thousand rows of at most 2^30 each: floats hold these integers exactly.
            x = shortened(block.lines[features], reach.x_squared)
            y = np.clip(block.lines[reach.target], -reach.y, reach.y)
            xx += (x @ x.T).astype(np.int64)
            xy += (x @ y).astype(np.int64)
            yy += int(y @ y)
            rows += block.counts.rows_read
    return JointSums(xx=xx, xy=xy, yy=yy, rows_read=rows)


def shortened(lines: Floats, largest: int) -> Floats:
    """Integer rows (columns of `lines`) with |q|² ≤ largest; longer ones are scaled and truncated.

    Proof: proofs/joint.md#joint-bounds.
    """
    squared = np.einsum("ij,ij->j", lines, lines)
    long = squared > largest
    if not long.any():
        return lines
    factor = np.sqrt(largest / squared[long]) * _INWARDS
    held = lines.copy()
    held[:, long] = np.trunc(lines[:, long] * factor)
    return held


def _checked(clip: float) -> float:
    if not (math.isfinite(clip) and clip > 0.0):
        raise SchemaError("the clip radius must be a positive number", got=clip)
    return float(clip)

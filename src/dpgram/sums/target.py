"""Σ (q, t)(q, t)ᵀ for one target among the encoded columns: features with |q|² ≤ Q², targets with |t| ≤ T.

Features and target have bounds of their own, so that a release for one target need not pay for the corner
where both are largest in one norm. Both bounds are facts about integers, enforced here whatever floats did
before: a row of features that is too long is scaled down and rounded as every encoded row is, a target is
clamped.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.core.lattice import settle
from dpgram.core.units import PolicyCounts
from dpgram.errors import SchemaError, real
from dpgram.lattice import ROW_NORM
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema
from dpgram.sums.base import Statistic
from dpgram.sums.moments import ExactMoments, products, refuse_groups_and_weights

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetBounds:
    """Bounds on the features and the target of one row, in lattice units; from the public schema alone."""

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
            # No longer than a whole number whose square is beyond: the square of a huge clip is no float.
            squared = min(squared, math.floor(min(_checked(clip) / unit, float(squared)) ** 2))
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
@dataclass(frozen=True, slots=True, kw_only=True)
class TargetStatistic(Statistic):
    """The sums of one target; the same policies for missing and unknown values as in `publish`.

    Proof: proofs/joint.md#joint-bounds.
    """

    encoder: Encoder
    row_bounds: TargetBounds

    def accumulator(self, rules: RowRules) -> TargetAccumulator:
        """Working memory of one thread."""
        return TargetAccumulator(self, rules)

    def zero(self, rules: RowRules) -> tuple[ExactMoments, ...]:
        refuse_groups_and_weights(rules)
        return (ExactMoments.zero(len(self.row_bounds.features)),)

    def lattice_rows(self, lines: Floats) -> Floats:
        """(q, t) of encoded rows held by columns: one line per column, the target last.

        Proof: proofs/joint.md#joint-bounds.
        """
        row_bounds = self.row_bounds
        features = shortened(lines[list(row_bounds.features)], row_bounds.x_squared)
        return np.vstack([features, np.clip(lines[row_bounds.target], -row_bounds.y, row_bounds.y)])


@final
class TargetAccumulator:
    """Encodes rows and adds their products up."""

    def __init__(self, statistic: TargetStatistic, rules: RowRules) -> None:
        refuse_groups_and_weights(rules)
        source = rules.schema.source_columns
        self._statistic = statistic
        self._encoder = statistic.encoder.batch_encoder()
        self._places = [source.index(name) for name in statistic.encoder.schema.source_columns]
        width = len(statistic.row_bounds.features) + 1
        self._cells = np.zeros((width, width), np.int64)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        """Encode the rows; with units, one of each."""
        chosen = rows.once
        over = int(rows.placed.sum()) - len(chosen)
        self._counts += rows.uncounted + PolicyCounts(rows_read=over, rows_dropped=over)
        numbers = np.column_stack(rows.lines(self._places, chosen))
        for chunk in self._encoder.encode_array(numbers):
            self._cells += products(self._statistic.lattice_rows(chunk.lines))
            self._counts += chunk.counts

    def result(self) -> tuple[ExactMoments, ...]:
        """The sums so far."""
        return (ExactMoments(self._cells.copy(), self._counts),)


def shortened(lines: Floats, largest: int) -> Floats:
    """Integer rows (columns of `lines`) with |q|² ≤ largest; longer ones are scaled and rounded again.

    Proof: proofs/joint.md#joint-bounds.
    """
    squared = np.zeros(lines.shape[1])
    for line in lines:
        squared += line * line
    factor = np.minimum(1.0, np.sqrt(largest / np.maximum(squared, 1.0)))
    held = lines * factor
    settle(held, largest)
    return held


def _checked(clip: object) -> float:
    radius = real(clip)
    if radius is None or not (math.isfinite(radius) and radius > 0.0):
        got = repr(clip)[:100] if radius is None else radius
        raise SchemaError("the clip radius must be a positive number", got=got)
    return radius

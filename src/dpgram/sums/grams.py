"""G = Σ w_i² q_i q_iᵀ over the rows of each group; the rows of one unit have Σ |q_i|² ≤ 2^30 together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np

from dpgram.rows.encoder import Encoder, PolicyCounts
from dpgram.sums.base import Statistic
from dpgram.sums.exact_gram import ExactGram, GramSum

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules
    from dpgram.rows.units import Integers, Mask


@final
@dataclass(frozen=True, slots=True)
class GramStatistic(Statistic):
    """The Gram matrix of the columns of `encoder`'s schema, one for each group.

    Proof: proofs/units.md#units-claim.
    """

    encoder: Encoder

    def accumulator(self, rules: RowRules) -> GramAccumulator:
        """Working memory of one thread."""
        return GramAccumulator(self.encoder, rules)

    def count(self, rules: RowRules) -> int:
        return len(rules.groups)

    def zero(self, rules: RowRules) -> tuple[ExactGram, ...]:
        return tuple(ExactGram.zero(self.encoder.schema.width) for _ in rules.groups)


@final
class GramAccumulator:
    """Encodes rows and adds them up, group by group.

    Proofs: proofs/units.md#units-claim, proofs/measurements.md#measurements-sensitivity.
    """

    def __init__(self, encoder: Encoder, rules: RowRules) -> None:
        source = rules.schema.source_columns
        self._rules = rules
        self._encoder = encoder.batch_encoder()
        self._places = [source.index(name) for name in encoder.schema.source_columns]
        self._sums = [GramSum(encoder.schema.width) for _ in rules.groups]

    def add(self, rows: CountedRows) -> None:
        """Encode the rows into the matrix of their group."""
        sums, groups, placed = self._sums, rows.groups, rows.placed
        numbers = np.ascontiguousarray(rows.rows.numbers[:, self._places])
        usable = rows.placed_anywhere & self._encoder.usable(numbers.T)
        counted, sizes = rows_and_sizes(rows, usable, self._rules)
        usable, counted = usable & placed, counted & placed
        over = np.bincount(groups[usable & ~counted], minlength=len(sums)).tolist()
        # Rows that the policy drops go along: the encoder counts what was wrong with them.
        (taken,) = np.nonzero(placed & (counted | ~usable))
        taken = taken[np.argsort(groups[taken], kind="stable")]
        ends = np.cumsum(np.bincount(groups[taken], minlength=len(sums))).tolist()
        sums[0].note(rows.uncounted)
        for number, total in enumerate(sums):
            total.note(
                PolicyCounts(
                    rows_read=over[number], rows_dropped=over[number], rows_over_unit_limit=over[number]
                )
            )
            mine = taken[ends[number - 1] if number else 0 : ends[number]]
            for chunk in self._encoder.encode_array(
                numbers[mine],
                unit_rows=None if sizes is None else sizes[mine],
                weights=None if rows.weights is None else rows.weights[mine],
            ):
                total.add(chunk)

    def result(self) -> tuple[ExactGram, ...]:
        return tuple(total.result() for total in self._sums)


def rows_and_sizes(rows: CountedRows, usable: Mask, rules: RowRules) -> tuple[Mask, Integers | None]:
    """Which rows count, and of how many of its unit each is one (none, where there are no units).

    Proof: proofs/units.md#units-claim.
    """
    rule = rules.unit_rule
    if rule is None:
        return usable, None
    from dpgram.core.units import rows_that_count

    units, counted = rows.units, usable.copy()
    counted[usable] = rows_that_count(
        units[usable], rows.unit_hashes[usable], rows.rows.numbers[usable], rule.rows_at_most
    )
    if rule.counts == "rows":
        return counted, np.full(len(rows.rows), rule.rows_at_most)
    sizes = np.bincount(units[counted], minlength=rows.unit_count)
    return counted, np.maximum(sizes[units], 1)

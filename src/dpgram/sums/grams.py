"""G = Σ w_i² q_i q_iᵀ over the rows of each group; the rows of one unit have Σ |q_i|² ≤ 2^30 together."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpgram.core import sums as core
from dpgram.rows.encoder import Encoder
from dpgram.rows.row_map import row_map
from dpgram.sums.base import CoreStatistic
from dpgram.sums.exact_gram import ExactGram

if TYPE_CHECKING:
    from dpgram.rows.rules import RowRules


@final
@dataclass(frozen=True, slots=True)
class GramStatistic(CoreStatistic):
    """The Gram matrix of the columns of `encoder`'s schema, one for each group.

    Proof: proofs/core.md#core-sums, proofs/units.md#units-claim.
    """

    encoder: Encoder

    def what(self, rules: RowRules) -> core.Gram:
        return core.Gram(row_map(self.encoder), places(self.encoder, rules), len(rules.groups))

    def carried(self, found: core.Found) -> ExactGram:
        cells, seen = core.array_of(found)
        return ExactGram(cells, seen.rows_used, seen)

    def count(self, rules: RowRules) -> int:
        return len(rules.groups)


def places(encoder: Encoder, rules: RowRules) -> tuple[int, ...]:
    """Which of the columns that are read are the encoder's."""
    source = rules.schema.source_columns
    return tuple(source.index(name) for name in encoder.schema.source_columns)

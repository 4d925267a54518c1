"""How long rows are in the coordinates of a matrix, and what its clip takes: histograms of their lengths.

For the clip, 48 equal bins of |u|²/R² from 0 to 1, then 16 of 1 − R²/|u|², the part of its weight that a
longer row loses; for the choice of a radius, quarter octaves of |u|/R.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

from dpgram.core import sums as core
from dpgram.document.reach import CLIP_SQUARES, REACH_SQUARES
from dpgram.rows.encoder import Encoder
from dpgram.rows.row_map import row_map
from dpgram.sums.counts import CountsStatistic
from dpgram.sums.grams import places

if TYPE_CHECKING:
    from dpgram.rows.rules import RowRules


@final
@dataclass(frozen=True, slots=True)
class ClipStatistic(CountsStatistic):
    """Lengths of rows in the encoder's coordinates, before its clip.

    Proof: proofs/adaptive.md#adaptive-clip.
    """

    encoder: Encoder
    reach: bool = False
    """Whether rows are sorted by how far they reach, to choose a radius by, and not by what it takes."""

    @property
    def shape(self) -> tuple[int, int]:
        return 1, len(REACH_SQUARES if self.reach else CLIP_SQUARES) + 1

    def what(self, rules: RowRules) -> core.Lengths:
        ends = REACH_SQUARES if self.reach else CLIP_SQUARES
        return core.Lengths(row_map(self.encoder), places(self.encoder, rules), tuple(ends.tolist()))

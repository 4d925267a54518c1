"""How long rows are in the coordinates of a matrix, and what its clip takes: histograms of their lengths.

For the clip, 48 equal bins of |u|²/R² from 0 to 1, then 16 of 1 − R²/|u|², the part of its weight that a
longer row loses; for the choice of a radius, quarter octaves of |u|/R.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from dpgram.core.sums import length_bins
from dpgram.document.reach import CLIP_SQUARES, REACH_SQUARES
from dpgram.rows.encoder import EncodedChunk, Encoder
from dpgram.sums.counts import CountsStatistic

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]


@final
@dataclass(frozen=True, slots=True)
class ClipStatistic(CountsStatistic):
    """Lengths of rows in the encoder's coordinates, before its clip."""

    encoder: Encoder
    reach: bool = False
    """Whether rows are sorted by how far they reach, to choose a radius by, and not by what it takes."""

    @property
    def shape(self) -> tuple[int, int]:
        return 1, len(self.ends) + 1

    @property
    def ends(self) -> Floats:
        """|u|²/R² at the ends of the bins."""
        return REACH_SQUARES if self.reach else CLIP_SQUARES

    def bins(self, chunk: EncodedChunk) -> Integers:
        """The bin of each row that an encoder in these coordinates kept.

        Proof: proofs/adaptive.md#adaptive-clip.
        """
        lengths = np.empty(0) if chunk.lengths is None else chunk.lengths
        return length_bins(lengths, self.ends)

    def places(self, rows: CountedRows, chosen: Integers, rules: RowRules) -> Integers:
        """The bin of each row; none for a row that the policy drops."""
        encoder, source = self.encoder.batch_encoder(), rules.schema.source_columns
        columns = [source.index(name) for name in self.encoder.schema.source_columns]
        numbers = np.ascontiguousarray(rows.rows.numbers[chosen][:, columns])
        found = np.full((1, len(chosen)), -1)
        (usable,) = np.nonzero(encoder.usable(numbers.T))
        chunks = [self.bins(chunk) for chunk in encoder.encode_array(numbers[usable])]
        found[0, usable] = np.concatenate(chunks) if chunks else []
        return found

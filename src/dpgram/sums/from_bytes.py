"""Any kind of sum back from the bytes of its `to_bytes`: for workers that can send nothing but bytes."""

from __future__ import annotations

from dpgram.errors import DpgramError
from dpgram.sums.base import Sum
from dpgram.sums.column_moments import ExactColumnMoments
from dpgram.sums.counts import ExactCounts
from dpgram.sums.exact_gram import ExactGram
from dpgram.sums.levels import ExactLevels
from dpgram.sums.models import ExactModelSums
from dpgram.sums.moments import ExactMoments
from dpgram.sums.participants import ExactParticipants

KINDS = (
    ExactGram,
    ExactCounts,
    ExactLevels,
    ExactMoments,
    ExactColumnMoments,
    ExactModelSums,
    ExactParticipants,
)


def sum_from_bytes(data: bytes) -> Sum:
    """The sum that `to_bytes` wrote; refuses anything cut, altered or foreign."""
    for kind in KINDS:
        if data.startswith(kind.MAGIC):
            found: Sum = kind.from_bytes(data)
            return found
    raise DpgramError("these bytes are not a sum of this version")

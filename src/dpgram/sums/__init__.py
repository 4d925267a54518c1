"""Σ f(row) in exact integers, f public and bounded: what engines add up. **Nothing here is private.**"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.sums.base import Accumulator, Statistic, Sum
    from dpgram.sums.column_moments import ColumnMomentsOf, ExactColumnMoments
    from dpgram.sums.counts import BinsOf, CountsOf, ExactCounts, LengthsOf, OctavesOf, RowsOf
    from dpgram.sums.exact_gram import ExactGram, GramSum
    from dpgram.sums.grams import GramOf
    from dpgram.sums.levels import ExactLevels, LevelsOf
    from dpgram.sums.moments import ExactMoments, MomentsOf
    from dpgram.sums.target import TargetOf

__all__ = [
    "Accumulator",
    "BinsOf",
    "ColumnMomentsOf",
    "CountsOf",
    "ExactColumnMoments",
    "ExactCounts",
    "ExactGram",
    "ExactLevels",
    "ExactMoments",
    "GramOf",
    "GramSum",
    "LengthsOf",
    "LevelsOf",
    "MomentsOf",
    "OctavesOf",
    "RowsOf",
    "Statistic",
    "Sum",
    "TargetOf",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.sums.base": "Accumulator Statistic Sum",
        "dpgram.sums.column_moments": "ColumnMomentsOf ExactColumnMoments",
        "dpgram.sums.counts": "BinsOf CountsOf ExactCounts LengthsOf OctavesOf RowsOf",
        "dpgram.sums.exact_gram": "ExactGram GramSum",
        "dpgram.sums.grams": "GramOf",
        "dpgram.sums.levels": "ExactLevels LevelsOf",
        "dpgram.sums.moments": "ExactMoments MomentsOf",
        "dpgram.sums.target": "TargetOf",
    },
)

"""Σ f(row) in exact integers, f public and bounded: what engines add up. **Nothing here is private.**"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.sums.base import Accumulator, Statistic, Sum
    from dpgram.sums.column_moments import ColumnMomentsStatistic, ExactColumnMoments
    from dpgram.sums.counts import (
        BinsStatistic,
        CountsStatistic,
        ExactCounts,
        OctavesStatistic,
        RowsStatistic,
    )
    from dpgram.sums.exact_gram import ExactGram
    from dpgram.sums.grams import GramStatistic
    from dpgram.sums.levels import ExactLevels, LevelsStatistic
    from dpgram.sums.moments import ExactMoments, MomentsStatistic
    from dpgram.sums.target import TargetStatistic

__all__ = [
    "Accumulator",
    "BinsStatistic",
    "ColumnMomentsStatistic",
    "CountsStatistic",
    "ExactColumnMoments",
    "ExactCounts",
    "ExactGram",
    "ExactLevels",
    "ExactMoments",
    "GramStatistic",
    "LevelsStatistic",
    "MomentsStatistic",
    "OctavesStatistic",
    "RowsStatistic",
    "Statistic",
    "Sum",
    "TargetStatistic",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.sums.base": "Accumulator Statistic Sum",
        "dpgram.sums.column_moments": "ColumnMomentsStatistic ExactColumnMoments",
        "dpgram.sums.counts": ("BinsStatistic CountsStatistic ExactCounts OctavesStatistic RowsStatistic"),
        "dpgram.sums.exact_gram": "ExactGram",
        "dpgram.sums.grams": "GramStatistic",
        "dpgram.sums.levels": "ExactLevels LevelsStatistic",
        "dpgram.sums.moments": "ExactMoments MomentsStatistic",
        "dpgram.sums.target": "TargetStatistic",
    },
)

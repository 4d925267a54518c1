"""One file per kind: a public row function, its exact sum, its noise, its price, what is published of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.publishing.measurements.column_moments import ColumnMoments
    from dpgram.publishing.measurements.counts import Bins, Octaves, RowCount
    from dpgram.publishing.measurements.gram import Gram
    from dpgram.publishing.measurements.levels import Levels
    from dpgram.publishing.measurements.minimiser import Minimiser
    from dpgram.publishing.measurements.moments import Moments
    from dpgram.publishing.measurements.target import Target

__all__ = [
    "Bins",
    "ColumnMoments",
    "Gram",
    "Levels",
    "Measurement",
    "Minimiser",
    "Moments",
    "Octaves",
    "RowCount",
    "Target",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.publishing.measurements.base": "Measurement",
        "dpgram.publishing.measurements.column_moments": "ColumnMoments",
        "dpgram.publishing.measurements.counts": "Bins Octaves RowCount",
        "dpgram.publishing.measurements.gram": "Gram",
        "dpgram.publishing.measurements.levels": "Levels",
        "dpgram.publishing.measurements.minimiser": "Minimiser",
        "dpgram.publishing.measurements.moments": "Moments",
        "dpgram.publishing.measurements.target": "Target",
    },
)

"""Tables that grow: one charge for a whole horizon, a public stream, windows and trends from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.series.plan import SeriesPlan
    from dpgram.series.series import Series

__all__ = ["Series", "SeriesPlan"]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.series.plan": "SeriesPlan",
        "dpgram.series.series": "Series",
    },
)

"""The main job, end to end, on a bundled synthetic table."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.demo import insurance

__all__ = [
    "insurance",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.demo": "insurance",
    },
)

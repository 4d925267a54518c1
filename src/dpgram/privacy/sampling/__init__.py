"""Noise that is exact in law: random bits in, integers out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dpgram import _when_used

if TYPE_CHECKING:
    from dpgram.privacy.sampling.bingham import draw_direction, draw_frame
    from dpgram.privacy.sampling.directions import deflation_matrix, frame_matrix

__all__ = [
    "deflation_matrix",
    "draw_direction",
    "draw_frame",
    "frame_matrix",
]

__getattr__, __dir__ = _when_used(
    __name__,
    {
        "dpgram.privacy.sampling.bingham": "draw_direction draw_frame",
        "dpgram.privacy.sampling.directions": "deflation_matrix frame_matrix",
    },
)

"""What events cost and what they mean together."""

from __future__ import annotations

from dpgram.privacy.events import (
    ApproximateEvent,
    ComposedEvent,
    Event,
    GaussianEvent,
    Part,
    PureEvent,
    ZcdpEvent,
    composed,
    decode_event,
    encode_event,
    parts_of,
)

__all__ = [
    "ApproximateEvent",
    "ComposedEvent",
    "Event",
    "GaussianEvent",
    "Part",
    "PureEvent",
    "ZcdpEvent",
    "composed",
    "decode_event",
    "encode_event",
    "parts_of",
]

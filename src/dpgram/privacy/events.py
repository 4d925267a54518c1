"""What was spent, as frozen and versioned facts: an event says what was done, never what it is worth.

The meaning of a tag may never change; a new meaning gets a new tag. The arithmetic lives in
`dpgram.privacy.accountant`. Everything here is light enough for the analyst's side, which reads events in the
receipt of a release.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, TypeAlias, final

import msgspec

from dpgram.errors import GuaranteeError, LedgerError


def _checked(struct: msgspec.Struct, field: str, *, zero: bool = False, below: float = math.inf) -> None:
    """Refuse what is not a finite number in (0, below), or [0, below); keep it as a plain float.

    Plain, so that the canonical bytes of 1, 1.0 and numpy.float64(1.0) are the same.
    """
    value: Any = getattr(struct, field)
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise GuaranteeError(f"{field} of an event must be a number", got=type(value).__name__)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    low_enough = number >= 0.0 if zero else number > 0.0
    if not (math.isfinite(number) and low_enough and number < below):
        end = "" if math.isinf(below) else f" and below {below:g}"
        raise GuaranteeError(
            f"{field} of an event is out of range",
            got=number,
            limit=f"finite, {'at least' if zero else 'above'} 0{end}",
        )
    msgspec.structs.force_setattr(struct, field, number)


@final
class GaussianEvent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="gaussian/1"
):
    """μ-GDP: no test tells the neighbours apart better than N(0, 1) from N(μ, 1)."""

    mu: float

    def __post_init__(self) -> None:
        _checked(self, "mu")


@final
class PureEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="pure/1"):
    """ε-DP with δ = 0: no output is more than e^ε times likelier under a neighbour."""

    epsilon: float

    def __post_init__(self) -> None:
        _checked(self, "epsilon")


@final
class ZcdpEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="zcdp/1"):
    """ρ-zCDP: D_α ≤ ρα between neighbours for every order α > 1."""

    rho: float

    def __post_init__(self) -> None:
        _checked(self, "rho")


@final
class ApproximateEvent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="approximate/1"
):
    """(ε, δ)-DP of which nothing more is known, 0 < δ < 1; ε = 0 is a bare numerical error of size δ."""

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        _checked(self, "epsilon", zero=True)
        _checked(self, "delta", below=1.0)


Part: TypeAlias = GaussianEvent | PureEvent | ZcdpEvent | ApproximateEvent
"""An event that is not made of others."""


@final
class ComposedEvent(
    msgspec.Struct, frozen=True, forbid_unknown_fields=True, tag_field="event", tag="composed/1"
):
    """Several parts, all fixed before the first of them was run. Build it with `composed`."""

    parts: tuple[Part, ...]

    def __post_init__(self) -> None:
        parts = tuple(self.parts)
        if not parts:
            raise GuaranteeError("a composed event needs at least one part", got="none")
        for part in parts:
            if not isinstance(part, Part):
                raise GuaranteeError(
                    "a part of a composed event must be an event that is not itself composed",
                    got=type(part).__name__,
                    remedy="Use composed(...), which flattens",
                )
        msgspec.structs.force_setattr(self, "parts", parts)


Event: TypeAlias = GaussianEvent | PureEvent | ZcdpEvent | ApproximateEvent | ComposedEvent
"""Everything a ledger can be charged for."""


def parts_of(event: Event) -> tuple[Part, ...]:
    """The parts of a composed event; any other event is its own single part."""
    return event.parts if isinstance(event, ComposedEvent) else (event,)


def composed(events: Iterable[Event]) -> Event:
    """One event for several that were all fixed beforehand; nested compositions are flattened."""
    parts = tuple(part for event in events for part in parts_of(event))
    return parts[0] if len(parts) == 1 else ComposedEvent(parts=parts)


_ENCODER = msgspec.json.Encoder()
_DECODER: msgspec.json.Decoder[Event] = msgspec.json.Decoder(Event)


def encode_event(event: Event) -> bytes:
    """The canonical bytes of an event: JSON, fields in declared order, shortest round-trip floats."""
    return _ENCODER.encode(event)


def decode_event(data: bytes | str) -> Event:
    """The event written in `data`. Fails closed: an unknown type, field or version is never guessed at."""
    try:
        return _DECODER.decode(data)
    except (msgspec.MsgspecError, GuaranteeError, UnicodeDecodeError) as error:
        raise LedgerError(
            "an event cannot be understood",
            got=error,
            remedy="It was altered, or written by a newer dpgram: update dpgram before using this file",
        ) from error

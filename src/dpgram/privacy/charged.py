"""What charges add up to, in each currency: μ², ε, ρ and δ. Events compose by adding these."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Self, final

from dpgram.privacy.events import (
    ApproximateEvent,
    Event,
    GaussianEvent,
    Part,
    PureEvent,
    ZcdpEvent,
    parts_of,
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """Sums over the parts of events. Nothing is converted: a price in μ² must be paid in μ²."""

    mu_squared: float = 0.0
    epsilon: float = 0.0
    rho: float = 0.0
    delta: float = 0.0

    @classmethod
    def of(cls, events: Iterable[Event]) -> Self:
        every = [_of_part(part) for event in events for part in parts_of(event)]
        return cls(
            mu_squared=sum(each.mu_squared for each in every),
            epsilon=sum(each.epsilon for each in every),
            rho=sum(each.rho for each in every),
            delta=sum(each.delta for each in every),
        )

    def covers(self, least: Charged, *, rounding: float) -> bool:
        """Whether it is enough in every currency, up to a part `rounding` of it."""
        return all(
            getattr(self, name) >= getattr(least, name) * (1.0 - rounding)
            for name in ("mu_squared", "epsilon", "rho", "delta")
        )


def _of_part(part: Part) -> Charged:
    match part:
        case GaussianEvent(mu=mu):
            return Charged(mu_squared=mu * mu)
        case PureEvent(epsilon=epsilon):
            return Charged(epsilon=epsilon)
        case ZcdpEvent(rho=rho):
            return Charged(rho=rho)
        case ApproximateEvent(epsilon=epsilon, delta=delta):
            return Charged(epsilon=epsilon, delta=delta)

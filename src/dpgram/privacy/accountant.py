"""What an event costs in a ledger's currency, and what it promises by itself.

*Across* events, each chosen after seeing the earlier outputs, only sums of one currency are a valid filter:
μ² (Gaussian DP), ρ (zero-concentrated DP) or ε. Beside it a share of δ fixed beforehand, the reserve, pays
for the parts that may fail with some probability. *Inside* one event, whose parts are fixed beforehand, they
are composed exactly. Proofs of both: proofs/filters.md.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Final, Literal, TypeAlias, assert_never, final

from dpgram.errors import BudgetExceeded, GuaranteeError, LedgerError
from dpgram.privacy.curves.base import ConcentratedCurve, GaussianCurve, PrivacyCurve, PureCurve
from dpgram.privacy.curves.loss_distribution import ComposedCurve, LeakyCurve
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
from dpgram.privacy.exact_sums import UNITS, float_down, float_up, root_up, units_down, units_up
from dpgram.privacy.guarantee import (
    Guarantee,
    check_delta,
    gdp_mu_at_most,
    pure_mu_at_least,
    pure_rho_at_least,
    rho_at_most,
)

__all__ = [
    "CURRENCIES",
    "ApproximateEvent",
    "Balance",
    "ComposedEvent",
    "Currency",
    "Event",
    "GaussianEvent",
    "Part",
    "Price",
    "PureEvent",
    "ZcdpEvent",
    "capacity",
    "composed",
    "curve_of",
    "decode_event",
    "delta_of",
    "describe",
    "encode_event",
    "guarantee_of",
    "parts_of",
    "price",
]

Currency: TypeAlias = Literal["mu2", "rho", "epsilon"]
"""What a ledger adds up: μ² of Gaussian DP, ρ of zero-concentrated DP, or ε."""

_DISCRETE_SLACK: Final = 1e-9
"""Kept free in a μ² ledger for what discrete and continuous Gaussians differ by (proofs/filters.md)."""
_COVERED_SQUARES: Final = 60.0
"""The Σ μ² whose discreteness that slack covers, for releases of up to 10⁸ cells."""


@final
@dataclass(frozen=True, slots=True)
class Price:
    """What one event takes from a ledger: an amount of its currency, and a share of its reserve of δ."""

    amount: Fraction
    delta: Fraction


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """Σ cost ≤ total and Σ δ ≤ reserve: the filter, the only rule by which a ledger accepts or refuses.

    Proof: proofs/filters.md#filters-claim.
    """

    total: Fraction
    reserve: Fraction
    spent: Fraction = Fraction(0)
    spent_delta: Fraction = Fraction(0)

    @property
    def left(self) -> Fraction:
        """What is left of the currency."""
        return self.total - self.spent

    @property
    def left_delta(self) -> Fraction:
        """What is left of the reserve."""
        return self.reserve - self.spent_delta

    def fits(self, cost: Price) -> bool:
        """Whether `cost` can be paid from both."""
        return cost.amount <= self.left and cost.delta <= self.left_delta

    def after(self, cost: Price) -> Balance:
        """The balance once `cost` is paid, which must fit."""
        if not self.fits(cost):
            raise BudgetExceeded("this cost is more than what is left", got=cost, limit=str(self))
        return replace(self, spent=self.spent + cost.amount, spent_delta=self.spent_delta + cost.delta)


def price(event: Event, currency: Currency) -> Price:
    """The cost of `event`, rounded up. `LedgerError` where the currency cannot express it.

    Proofs: proofs/filters.md#filters-not, proofs/filters.md#filters-sums.
    """
    cost = _checked_currency(currency)
    parts = parts_of(event)
    amount = sum((cost(part) for part in parts), Fraction(0))
    delta = sum((Fraction(part.delta) for part in parts if isinstance(part, ApproximateEvent)), Fraction(0))
    return Price(units_up(amount), units_up(delta))


def capacity(guarantee: Guarantee, currency: Currency, reserve: float = 0.0) -> Fraction:
    """The largest amount whose exact conversion stays within (ε, δ − reserve), rounded down.

    Proof: proofs/filters.md#filters-claim.
    """
    _checked_currency(currency)
    left = Fraction(guarantee.delta) - Fraction(check_delta(reserve))
    if left < 0 or (left == 0 and currency != "epsilon"):
        raise LedgerError(
            f"a ledger in {currency} needs a δ above its reserve",
            got=f"delta = {guarantee.delta:g}, of which {reserve:g} is reserved",
            remedy="Give a larger delta, such as delta=1e-6, or a smaller delta_reserved, itself a small "
            "probability; for pure releases alone, count in epsilon",
        )
    if currency == "epsilon":
        # 0.3 is written for three tenths, and its float lies a little below: three times 0.1 shall fit.
        return units_down(max(Fraction(guarantee.epsilon), Fraction(repr(guarantee.epsilon))))
    if currency == "rho":
        return units_down(Fraction(rho_at_most(guarantee.epsilon, float_down(left))))
    delta = float_down(left)
    slack = _discrete_slack(guarantee.epsilon, delta)
    return units_down(Fraction(gdp_mu_at_most(guarantee.epsilon - slack, delta * (1.0 - slack))) ** 2)


def _discrete_slack(epsilon: float, delta: float) -> float:
    """What a μ² ledger keeps free, in ε and relatively in δ, for the discreteness of integer noise.

    10⁻⁹·min(1, ε), and more where so much fits that the integers could use it
    (proofs/filters.md#filters-discrete).
    """
    squares = gdp_mu_at_most(epsilon, delta) ** 2
    slack = _DISCRETE_SLACK * max(min(1.0, epsilon), squares / _COVERED_SQUARES)
    return min(slack, 0.5 * epsilon, 0.5)


def curve_of(event: Event) -> PrivacyCurve:
    """The exact δ(ε) of one event whose parts were fixed beforehand, rounded up.

    μ² adds for Gaussian parts; pure parts are composed optimally, alone or beside Gaussians; a part of which
    only ρ-zCDP is known puts the whole onto ρ, the best that is known there.

    Proof: proofs/filters.md#filters-inside.
    """
    parts = parts_of(event)
    leak = float_up(_leak(parts))
    inner = _without_leak(parts)
    return LeakyCurve(inner, leak) if leak else inner


def delta_of(event: Event, epsilon: float) -> float:
    """The least δ for which `event` by itself is (epsilon, δ)-DP, rounded up."""
    if not (math.isfinite(epsilon) and epsilon >= 0.0):
        raise GuaranteeError("epsilon must be a number", got=epsilon, limit="0 ≤ epsilon < inf")
    parts = parts_of(event)
    epsilon_total = _epsilon_total(parts)
    if epsilon_total is not None and Fraction(epsilon) >= epsilon_total:
        return float_up(_leak(parts))
    return curve_of(event).delta(epsilon)


def guarantee_of(event: Event, delta: float) -> Guarantee:
    """The strongest (ε, delta)-DP `event` has by itself, ε rounded up."""
    check_delta(delta)
    parts = parts_of(event)
    leak, epsilon_total = _leak(parts), _epsilon_total(parts)
    epsilon = math.inf
    if epsilon_total is not None and Fraction(delta) >= leak:
        epsilon = float_up(epsilon_total)
    if Fraction(delta) > leak:
        epsilon = min(epsilon, curve_of(event).epsilon(delta))
    if math.isinf(epsilon):
        raise GuaranteeError(
            f"this event ({describe(event)}) has no finite epsilon at this delta",
            got=f"delta = {delta:g}",
            limit=f"delta {'at least' if epsilon_total is not None else 'above'} {float(leak):g}",
            remedy="Ask for a larger delta",
        )
    # ε = 0 is a true answer for an event weaker than δ, but a guarantee speaks of positive ε.
    return Guarantee(max(epsilon, math.ulp(0.0)), delta)


def describe(event: Event) -> str:
    """The event in a few words."""
    match event:
        case GaussianEvent():
            return f"Gaussian, μ = {event.mu:.4g}"
        case PureEvent():
            return f"pure, ε = {event.epsilon:.4g}"
        case ZcdpEvent():
            return f"zero-concentrated, ρ = {event.rho:.4g}"
        case ApproximateEvent():
            return f"approximate, ε = {event.epsilon:.4g} and δ = {event.delta:.4g}"
        case ComposedEvent():
            return " + ".join(describe(part) for part in event.parts)
        case _:
            assert_never(event)


def _without_leak(parts: tuple[Part, ...]) -> PrivacyCurve:
    """The curve of all parts, given that none of them failed."""
    responses = [part.epsilon for part in parts if isinstance(part, PureEvent | ApproximateEvent)]
    responses = [epsilon for epsilon in responses if epsilon > 0.0]
    if any(isinstance(part, ZcdpEvent) for part in parts):
        return ConcentratedCurve(float_up(sum(map(_rho, parts), Fraction(0))))
    squares = sum((Fraction(part.mu) ** 2 for part in parts if isinstance(part, GaussianEvent)), Fraction(0))
    mu = root_up(squares)
    if not responses and mu:
        return GaussianCurve(mu)
    if len(responses) == 1 and not mu:
        return PureCurve(responses[0])
    return ComposedCurve.of(responses, mu)


def _leak(parts: tuple[Part, ...]) -> Fraction:
    """1 − Π(1 − δᵢ): the probability that any part fails outright, exactly.

    Proof: proofs/filters.md#filters-leaks.
    """
    safe = Fraction(1)
    for part in parts:
        if isinstance(part, ApproximateEvent):
            safe *= 1 - Fraction(part.delta)
    return 1 - safe


def _epsilon_total(parts: tuple[Part, ...]) -> Fraction | None:
    """The sum of all εs where every loss is bounded, leaks aside; None where one is not."""
    total = Fraction(0)
    for part in parts:
        if not isinstance(part, PureEvent | ApproximateEvent):
            return None
        total += Fraction(part.epsilon)
    return total


def _mu_squared(part: Part) -> Fraction:
    """μ² of one part: exact for a Gaussian, the tight bound for a pure ε.

    Proof: proofs/filters.md#filters-mu.
    """
    match part:
        case GaussianEvent():
            return Fraction(part.mu) ** 2
        case PureEvent() | ApproximateEvent():
            return _cost_of_pure(part.epsilon, lambda epsilon: Fraction(pure_mu_at_least(epsilon)) ** 2)
        case ZcdpEvent():
            raise _refusal(
                part, "mu2", "ρ-zCDP alone gives no bound on μ", 'Create the ledger with currency="rho"'
            )
        case _:
            assert_never(part)


def _rho(part: Part) -> Fraction:
    """ρ of one part: μ²/2 for a Gaussian, ε·tanh(ε/2) for a pure ε. Proof: proofs/filters.md#filters-rho."""
    match part:
        case GaussianEvent():
            return Fraction(part.mu) ** 2 / 2
        case ZcdpEvent():
            return Fraction(part.rho)
        case PureEvent() | ApproximateEvent():
            return _cost_of_pure(part.epsilon, lambda epsilon: Fraction(pure_rho_at_least(epsilon)))
        case _:
            assert_never(part)


def _cost_of_pure(epsilon: float, cost: Callable[[float], Fraction]) -> Fraction:
    """The cost of a part that is ε-DP: nothing at ε = 0, and at least one unit where a product underflows."""
    return max(cost(epsilon), Fraction(1, UNITS)) if epsilon else Fraction(0)


def _epsilon(part: Part) -> Fraction:
    """ε of one part; what has no bounded loss is refused. Proof: proofs/filters.md#filters-epsilon."""
    match part:
        case PureEvent() | ApproximateEvent():
            return Fraction(part.epsilon)
        case GaussianEvent() | ZcdpEvent():
            remedy = "Publish with delta=0 (matrix-laplace), or create a ledger with delta above 0"
            raise _refusal(part, "epsilon", "its privacy loss has no bound", remedy)
        case _:
            assert_never(part)


_COSTS: Final[Mapping[Currency, Callable[[Part], Fraction]]] = {
    "mu2": _mu_squared,
    "rho": _rho,
    "epsilon": _epsilon,
}
CURRENCIES: Final[Mapping[Currency, str]] = {"mu2": "μ²", "rho": "ρ", "epsilon": "ε"}
"""Each currency and the sign it is written with."""


def _checked_currency(currency: Currency) -> Callable[[Part], Fraction]:
    cost = _COSTS.get(currency)
    if cost is None:
        names = ", ".join(map(repr, _COSTS))
        raise LedgerError("unknown currency", got=repr(currency), limit=f"one of {names}")
    return cost


def _refusal(part: Part, currency: Currency, why: str, remedy: str) -> LedgerError:
    sign = CURRENCIES[currency]
    return LedgerError(
        f"this release ({describe(part)}) cannot be charged to a ledger that counts in {sign}: {why}",
        remedy=remedy,
    )

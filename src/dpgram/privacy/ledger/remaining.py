"""What is left of a budget, in the ledger's currency and in the words of a release that still fits."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import final

from dpgram.privacy.accountant import CURRENCIES, Currency
from dpgram.privacy.curves.calibrate import DISCRETE_SLACK, discrete_mu_at_most
from dpgram.privacy.exact_sums import float_down, root_down
from dpgram.privacy.guarantee import GaussianDP, Guarantee


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a ledger can still pay for. Printed, it is said in releases; `exact` has the currency."""

    currency: Currency
    amount: Fraction
    total: Fraction
    """What the ledger had in the beginning."""
    delta: Fraction
    """What is left of the reserve."""
    largest: Guarantee | None
    """The largest single release that still fits: Gaussian where δ > 0, else pure. None: nothing fits."""
    more: int | None = None
    """How many more of the last release would fit, all charges of it together; None where nothing was."""
    like: str = "the last charge"
    """What `more` counts: a release that was paid for in one charge, or one that was stopped, is a charge."""

    @property
    def share(self) -> float:
        """The part of the whole budget that is left, 0 to 1."""
        return float(self.amount / self.total)

    @property
    def exact(self) -> str:
        """In what the ledger adds up.

        >>> ledger.left().exact
        'μ² = 0.201 of 0.201 left'
        """
        text = f"{CURRENCIES[self.currency]} = {float(self.amount):.4g} of {float(self.total):.4g} left"
        return f"{text}, and δ = {float(self.delta):.4g} of the reserve" if self.delta else text

    def __str__(self) -> str:
        if self.largest is None:
            return "the budget is used up: nothing more fits"
        epsilon, delta = self.largest.epsilon, self.largest.delta
        one = f"one release of ε = {epsilon:g}" + (f" at δ = {delta:g}" if delta else "")
        percent = f"{self.share:.0%}" if self.share >= 0.01 else "less than 1%"
        text = f"{percent} of the budget is left: enough for "
        if self.more is None:
            return text + one
        if not self.more:
            return f"{text}{one}, but for none more like {self.like}"
        return f"{text}{self.more} more like {self.like}, or for {one}"


def largest_release(amount: Fraction, currency: Currency, delta: Fraction) -> Guarantee | None:
    """The largest ε, to four digits, of one release that costs at most `amount`."""
    if amount <= 0:
        return None
    if currency == "epsilon":
        return _first_that_fits(float_down(amount), 0.0, lambda epsilon: Fraction(epsilon) <= amount)
    at = float_down(delta)
    mu_squared = amount if currency == "mu2" else 2 * amount

    def fits(epsilon: float) -> bool:
        return epsilon > DISCRETE_SLACK and Fraction(discrete_mu_at_most(epsilon, at)) ** 2 <= mu_squared

    return _first_that_fits(GaussianDP(root_down(mu_squared)).epsilon_at_most(at), at, fits)


def _first_that_fits(epsilon: float, delta: float, fits: Callable[[float], bool]) -> Guarantee | None:
    """ε to four digits: rounded up where that still fits (a fresh ledger of ε = 1 offers 1), else down."""
    if epsilon <= 0.0:
        return None
    scale = math.floor(math.log10(epsilon)) - 3
    whole = Fraction(epsilon) / Fraction(10) ** scale
    for digits in (math.ceil(whole), math.floor(whole)):
        candidate = float(f"{digits}e{scale}")
        if candidate > 0.0 and fits(candidate):
            return Guarantee(candidate, delta)
    return None


def advice(largest: Guarantee | None) -> str:
    """What can still be published, as the remedy of a refusal."""
    if largest is None:
        return "The budget is used up: nothing more can be published from this data set"
    if largest.delta:
        return f"A Gaussian release with epsilon={largest.epsilon:g} at delta={largest.delta:g} still fits"
    return f"A pure release with epsilon={largest.epsilon:g} still fits"


def in_distinct_digits(need: Fraction, left: Fraction) -> tuple[str, str]:
    """Both numbers in as few digits as tell them apart."""
    for digits in range(4, 17):
        texts = f"{float(need):.{digits}g}", f"{float(left):.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return texts[0], f"slightly less than {texts[1]}"


def rounded_up(epsilon: float) -> float:
    """To four digits, never less."""
    scale = math.floor(math.log10(epsilon)) - 3
    return float(f"{math.ceil(Fraction(epsilon) / Fraction(10) ** scale)}e{scale}")

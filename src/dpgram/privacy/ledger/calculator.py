"""How large a budget for a series of releases, and how large a release under a budget.

For Gaussian releases, whose μ² adds up, or for pure ones, whose ε does: what a ledger of that budget will pay
for, counted as it counts.
"""

from __future__ import annotations

from fractions import Fraction

from dpgram.errors import GuaranteeError, shown, whole
from dpgram.privacy.accountant import capacity, price
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.events import GaussianEvent
from dpgram.privacy.exact_sums import root_up
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.privacy.ledger.remaining import largest_release, rounded_up


def budget_for(releases: int, *, epsilon: float, delta: float, total_delta: float | None = None) -> Guarantee:
    """The least budget, ε to four digits, that pays for so many releases of (epsilon, delta).

    `total_delta` is that of the budget, by default the same: Gaussian releases add up by μ², not by δ.

    >>> from dpgram.privacy.ledger import budget_for
    >>> budget_for(12, epsilon=0.5, delta=1e-6)  # a release each month of a year
    Guarantee(epsilon=1.911, delta=1e-06)
    """
    count, each = _count(releases), Guarantee(float(epsilon), float(delta))
    total = each.delta if total_delta is None else Guarantee(1.0, float(total_delta)).delta
    if each.pure:  # 0.1 is written for a tenth: ten of them are 1
        return Guarantee(float(count * Fraction(repr(each.epsilon))), total)
    needed = count * price(GaussianEvent(mu=discrete_mu_at_most(each.epsilon, each.delta)), "mu2").amount
    return _least(GaussianDP(root_up(needed)).epsilon_at_most(total), total, needed)


def release_for(releases: int, *, epsilon: float, delta: float, each_delta: float | None = None) -> Guarantee:
    """The largest release, ε to four digits, that fits so many times into a budget of (epsilon, delta).

    >>> from dpgram.privacy.ledger import release_for
    >>> release_for(12, epsilon=3, delta=1e-6)
    Guarantee(epsilon=0.7759, delta=1e-06)
    """
    count, total = _count(releases), Guarantee(float(epsilon), float(delta))
    if total.pure:
        return Guarantee(float(Fraction(repr(total.epsilon)) / count))
    at = total.delta if each_delta is None else Guarantee(1.0, float(each_delta)).delta
    found = largest_release(capacity(total, "mu2") / count, "mu2", Fraction(at))
    if found is None:
        raise GuaranteeError(
            f"no release fits {count:,} times into this budget", got=str(total), remedy="Plan fewer releases"
        )
    return found


def _least(start: float, delta: float, needed: Fraction) -> Guarantee:
    """ε to four digits, from `start` upwards, whose ledger holds what is needed."""
    epsilon = rounded_up(start * (1 - 1e-7))  # an ε that was rounded up a little is still the round one
    while capacity(Guarantee(epsilon, delta), "mu2") < needed:
        epsilon = rounded_up(epsilon * (1 + 1e-9))
    return Guarantee(epsilon, delta)


def _count(releases: object) -> int:
    count = whole(releases)
    if count is None or not 1 <= count <= 1_000_000:
        raise GuaranteeError(
            "the number of releases must be a whole number", got=shown(releases), limit="1 to 1,000,000"
        )
    return count

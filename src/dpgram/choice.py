"""Which mechanism `auto` takes: the one with the least σ of G + N, decided from public facts only.

Gaussian: σ = Δ/μ(ε, δ). Matrix Laplace: σ = √(d+1)/θ, pure. Without a ledger both are asked for the same ε,
and for small tables the pure one has *less* noise. With a ledger they are compared at equal price in its
currency, where a pure release is dear: nine Gaussian (1, 10⁻⁶) releases fit into (3, 10⁻⁵), but three pure.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import final

from dpgram.errors import GuaranteeError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, Facts, Gaussian, MatrixLaplace, Mechanism
from dpgram.privacy.accountant import CURRENCIES, Currency, price
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.search import greatest

AUTO = "auto"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A calibrated mechanism, the guarantee it gives, and the reason in words."""

    mechanism: Mechanism
    guarantee: Guarantee
    reason: str


def choose(name: str, guarantee: Guarantee, facts: Facts, currency: Currency | None) -> Choice:
    """The mechanism of that name, or the better one for "auto"."""
    if name != AUTO:
        return _named(name, guarantee, facts)
    _refuse_options(name, facts.options)
    if guarantee.pure:
        return _pure(guarantee.epsilon, facts, "auto: delta = 0 was asked for, and gaussian cannot give it")
    if currency == "epsilon":
        return _pure(
            guarantee.epsilon, facts, "auto: the ledger has delta = 0, so only pure releases fit in it"
        )
    try:
        gaussian = Gaussian.calibrated(guarantee, facts)
    except (GuaranteeError, MechanismError):
        reason = (
            "auto: gaussian noise is not proven for so large an epsilon (or is too large for so small a one)"
        )
        return _pure(guarantee.epsilon, facts, reason)
    rival_epsilon = (
        guarantee.epsilon if currency is None else _epsilon_of_equal_price(gaussian, facts, currency)
    )
    rival = MatrixLaplace.calibrated(Guarantee(min(rival_epsilon, guarantee.epsilon)), facts)
    ours, theirs = _noise(gaussian, facts), _noise(rival, facts)
    terms = "" if currency is None else f" at equal price in the ledger's {CURRENCIES[currency]}"
    if theirs < ours:
        reason = f"auto: less noise than gaussian{terms} ({theirs:.3g} against {ours:.3g} rows), and no delta"
        return _pure(min(rival_epsilon, guarantee.epsilon), facts, reason)
    reason = f"auto: less noise than matrix-laplace{terms} ({ours:.3g} against {theirs:.3g} rows)"
    return Choice(mechanism=gaussian, guarantee=guarantee, reason=reason)


def _named(name: str, guarantee: Guarantee, facts: Facts) -> Choice:
    kind = MECHANISMS.get(name)
    if kind is None:
        raise MechanismError(
            "unknown mechanism", got=repr(name), limit=f"one of {', '.join([AUTO, *MECHANISMS])}"
        )
    _refuse_options(name, facts.options - kind.options)
    mechanism = kind.calibrated(guarantee, facts)
    pure = mechanism.curve(facts).delta(guarantee.epsilon) == 0.0
    given = Guarantee(guarantee.epsilon) if pure else guarantee
    return Choice(mechanism=mechanism, guarantee=given, reason="asked for by name")


def _refuse_options(name: str, excess: frozenset[str]) -> None:
    if excess:
        takers = [name for name, kind in MECHANISMS.items() if excess <= kind.options]
        raise MechanismError(
            f"mechanism {name!r} has no parameter {' or '.join(sorted(excess))}",
            limit=f"taken by {', '.join(takers) or 'no mechanism'}",
        )


def _pure(epsilon: float, facts: Facts, reason: str) -> Choice:
    guarantee = Guarantee(epsilon)
    mechanism = MatrixLaplace.calibrated(guarantee, facts)
    return Choice(mechanism=mechanism, guarantee=guarantee, reason=reason)


def _epsilon_of_equal_price(gaussian: Gaussian, facts: Facts, currency: Currency) -> float:
    """The largest pure ε that costs no more than the Gaussian release."""
    limit = price(gaussian.event(facts), currency).amount
    return greatest(lambda epsilon: _pure_price(epsilon, facts, currency) <= limit)


def _pure_price(epsilon: float, facts: Facts, currency: Currency) -> Fraction:
    return price(MatrixLaplace.calibrated(Guarantee(epsilon), facts).event(facts), currency).amount


def _noise(mechanism: Gaussian | MatrixLaplace, facts: Facts) -> float:
    """σ in units of one row's largest contribution, so that 5 means: as much as five rows could add."""
    return mechanism.law(facts.width).diagonal_sd / ROW_NORM_SQUARED

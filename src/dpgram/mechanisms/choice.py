"""Which mechanism `auto` takes: the least forecast error, decided from public facts only.

Errors are compared relative to the matrix, √Σ E(M − G)²_ij/(λ_iλ_j), in which a regression's excess error is
measured, on an assumed table: n rows (the guess given, or 100,000) with eigenvalues falling like 1/i. For
noise that is added the ranking does not depend on that table. Gaussian: σ = Δ/μ(ε, δ). Matrix Laplace:
σ = √(d+1)/θ, pure. Without a ledger both are asked for the same ε, and for small tables the pure one has
*less* noise. With a ledger they are compared at equal price in its currency, where a pure release is
expensive: nine Gaussian (1, 10⁻⁶) releases fit into (3, 10⁻⁵), but only three pure ones.

Most mechanisms are ruled out without being calibrated; docs/adr/0013-auto-by-forecast.md has the arguments
and tests/unit/test_choice.py holds them on grids. Semidefinite matrices come from the Wishart family, whose
error is never below the Gaussian's; the first that is within 10% of that floor ends the search.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import GuaranteeError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    Auto,
    CalibratedMechanism,
    Gaussian,
    Laplace,
    MatrixLaplace,
    Mechanism,
    PublicFacts,
    Sketch,
    SketchAdaptive,
    Wishart,
)
from dpgram.mechanisms._stated import ROUNDING
from dpgram.mechanisms.base import ROWS_GUESSED
from dpgram.privacy.accountant import CURRENCIES, Currency, price
from dpgram.privacy.curves.search import greatest
from dpgram.privacy.guarantee import Guarantee

SEMIDEFINITE_CANDIDATES: Final[tuple[tuple[Mechanism, ...], ...]] = (
    (Wishart(), Sketch()),
    (SketchAdaptive(),),
)
"""By what their calibration costs. Inverse-Wishart sampling has the ridge of a sketch, and more error."""
PURE_LEDGER: Final = "auto: the ledger counts in ε, so only pure releases fit in it"
"""Why there is no Gaussian noise."""
CLOSE_TO_FLOOR: Final = 1.1
"""A semidefinite release whose error is within this of the floor is taken: looking on could gain no more."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """A calibrated mechanism, the guarantee it gives, and the reason in words."""

    mechanism: CalibratedMechanism
    guarantee: Guarantee
    reason: str


def choose(
    asked: Mechanism | Auto, guarantee: Guarantee, facts: PublicFacts, currency: Currency | None
) -> Choice:
    """The mechanism that was asked for, calibrated, or the best where the choice was left open."""
    if isinstance(asked, Mechanism):
        return _named(asked, guarantee, facts)
    if asked.semidefinite:
        return _semidefinite(guarantee, facts)
    if guarantee.pure:
        return _pure(guarantee.epsilon, facts, "auto: delta = 0 was asked for, and gaussian cannot give it")
    if currency == "epsilon":
        return _pure(guarantee.epsilon, facts, PURE_LEDGER)
    try:
        gaussian = Gaussian().calibrated(guarantee, facts)
    except (GuaranteeError, MechanismError):
        reason = (
            "auto: gaussian noise is not proven for so large an epsilon (or is too large for so small a one)"
        )
        return _pure(guarantee.epsilon, facts, reason)
    equal = guarantee.epsilon if currency is None else _epsilon_of_equal_price(gaussian, facts, currency)
    rival = _best_pure(Guarantee(min(equal, guarantee.epsilon)), facts)
    ours, theirs = _noise(gaussian, facts), _noise(rival, facts)
    terms = "" if currency is None else f" at equal price in the ledger's {CURRENCIES[currency]}"
    if forecast_error(rival, facts) < forecast_error(gaussian, facts):
        reason = f"auto: less noise than gaussian{terms} ({theirs:.3g} against {ours:.3g} rows), and no delta"
        return _pure(min(equal, guarantee.epsilon), facts, reason)
    reason = f"auto: less noise than {rival.name}{terms} ({ours:.3g} against {theirs:.3g} rows)"
    return Choice(mechanism=gaussian, guarantee=guarantee, reason=reason)


def forecast_error(mechanism: CalibratedMechanism, facts: PublicFacts) -> float:
    """√Σ E(M − G)²_ij/(λ_iλ_j) / d: the typical error of a cell as a part of what the table has there."""
    values = assumed_spectrum(facts)
    cells = mechanism.expected(values).cell_variances(values)
    return math.sqrt(float((1.0 / values) @ cells @ (1.0 / values))) / facts.width


def assumed_spectrum(facts: PublicFacts) -> npt.NDArray[np.float64]:
    """Eigenvalues ∝ 1/i of n full-length rows, in lattice units."""
    falling = 1.0 / np.arange(1.0, facts.width + 1.0)
    rows = ROWS_GUESSED if facts.rows is None else facts.rows
    return np.asarray(falling * (rows * ROW_NORM_SQUARED / falling.sum()))


def _named(asked: Mechanism, guarantee: Guarantee, facts: PublicFacts) -> Choice:
    mechanism = asked.calibrated(guarantee, facts)
    pure = _delta_kept(mechanism, guarantee, facts) == 0.0
    given = Guarantee(guarantee.epsilon) if pure else guarantee
    return Choice(mechanism=mechanism, guarantee=given, reason="asked for by name")


def _delta_kept(mechanism: CalibratedMechanism, guarantee: Guarantee, facts: PublicFacts) -> float:
    """δ(ε) of what was calibrated: refused, before anything is charged, where its own curve says more."""
    found = mechanism.curve(facts).delta(guarantee.epsilon)
    if found > guarantee.delta * (1.0 + ROUNDING):
        raise GuaranteeError(
            f"no noise of {mechanism.name} is known to keep this guarantee",
            got=guarantee,
            remedy="Ask for a smaller epsilon, or use gaussian or matrix-laplace",
        )
    return found


def _semidefinite(guarantee: Guarantee, facts: PublicFacts) -> Choice:
    """All of the Wishart family have the same price, an (ε, δ) event, so no currency enters."""
    if guarantee.pure:
        raise MechanismError(
            "no mechanism gives a positive semidefinite matrix with delta = 0",
            got="semidefinite=True and delta = 0",
            limit="delta > 0",
            remedy="Give a delta such as 1e-6, or leave semidefinite out: analyses repair the matrix.",
        )
    floor = forecast_error(Gaussian().calibrated(guarantee, facts), facts)
    found: dict[str, float] = {}
    made: dict[str, CalibratedMechanism] = {}
    for candidates in SEMIDEFINITE_CANDIDATES:
        for candidate in candidates:
            name = candidate.name
            made[name] = candidate.calibrated(guarantee, facts)
            _delta_kept(made[name], guarantee, facts)
            found[name] = forecast_error(made[name], facts)
        if min(found.values()) <= CLOSE_TO_FLOOR * floor:
            break
    best = min(found, key=lambda name: found[name])
    others = ", ".join(f"{name} {found[name] / found[best]:.3g} times it" for name in found if name != best)
    reason = (
        f"auto: least forecast error of the semidefinite mechanisms ({others}; none could be below "
        f"{floor / found[best]:.3g} times it)"
    )
    return Choice(mechanism=made[best], guarantee=guarantee, reason=reason)


def _pure(epsilon: float, facts: PublicFacts, reason: str) -> Choice:
    guarantee = Guarantee(epsilon)
    return Choice(mechanism=_best_pure(guarantee, facts), guarantee=guarantee, reason=reason)


def _best_pure(guarantee: Guarantee, facts: PublicFacts) -> CalibratedMechanism:
    """Matrix Laplace, except for one column under replace-one, where the plain Laplace has half its noise.

    That half holds within one matrix. Proof: proofs/units.md#units-groups.
    """
    matrix, plain = MatrixLaplace().calibrated(guarantee, facts), Laplace().calibrated(guarantee, facts)
    better = not facts.two_matrices and forecast_error(plain, facts) < forecast_error(matrix, facts)
    return plain if better else matrix


def _epsilon_of_equal_price(gaussian: CalibratedMechanism, facts: PublicFacts, currency: Currency) -> float:
    """The largest pure ε that costs no more than the Gaussian release."""
    limit = price(gaussian.event(facts), currency).amount
    return greatest(lambda epsilon: _pure_price(epsilon, facts, currency) <= limit)


def _pure_price(epsilon: float, facts: PublicFacts, currency: Currency) -> Fraction:
    return price(MatrixLaplace().calibrated(Guarantee(epsilon), facts).event(facts), currency).amount


def _noise(mechanism: CalibratedMechanism, facts: PublicFacts) -> float:
    """√(2E|N|²_F/(d(d+1))): σ in units of one row's largest contribution, so that 5 is five rows' worth."""
    values = assumed_spectrum(facts)
    total = float(mechanism.expected(values).cell_variances(values).sum())
    return math.sqrt(2.0 * total / (facts.width * (facts.width + 1.0))) / ROW_NORM_SQUARED

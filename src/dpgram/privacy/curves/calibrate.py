"""The least noise that meets a guarantee, by bracketed search on the exact curve.

Every answer has itself been tested against the curve, whose rounding errors are on the safe side: a
calibration never under-protects, and gives away no more than the last digits.
"""

from __future__ import annotations

import math
from typing import Final

from dpgram.errors import GuaranteeError
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.search import greatest, least
from dpgram.privacy.guarantee import check_delta, check_epsilon, gdp_mu_at_most

__all__ = [
    "DISCRETE_SIGMA_AT_LEAST",
    "DISCRETE_SLACK",
    "discrete_gaussian_sigma",
    "discrete_mu_at_most",
    "gaussian_sigma",
    "greatest",
    "least",
    "proven_sigma",
    "stacked_sigmas",
]

DISCRETE_SLACK: Final = 1e-8
"""By how much integer noise may differ from the Gaussian: in ε, and relatively in δ (proofs/gaussian.md)."""
DISCRETE_SIGMA_AT_LEAST: Final = 2.0**26
"""The least σ, in lattice units, for which that slack is proven (for up to 10⁸ noisy cells)."""

_DISCRETE_DELTA_AT_LEAST: Final = 1e-300
_NUDGE: Final = 1.0 + 2.0**-46  # so that σ, turned back into μ and squared by a ledger, still fits


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """The least σ with Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ for sensitivity Δ, rounded up.

    Found as Δ/μ, then tested as σ itself, and nudged until it passes.
    """
    if not 0.0 < sensitivity < math.inf:
        raise GuaranteeError("sensitivity must be a positive number", got=sensitivity, limit="0 < Δ < inf")
    sigma = sensitivity / gdp_mu_at_most(epsilon, delta) * _NUDGE
    while GaussianCurve(sensitivity / sigma).delta(epsilon) > delta:
        sigma *= _NUDGE
    return sigma


def discrete_mu_at_most(epsilon: float, delta: float) -> float:
    """The largest μ for which integer noise of σ = Δ/μ is within (ε, δ): the slack is taken off both.

    By the core, which holds against it what is drawn. Proof: proofs/gaussian.md#gaussian-theorem.
    """
    from dpgram.core.accounting import mu_at_most

    _check_slack(epsilon, delta)
    return mu_at_most(epsilon, delta)


def discrete_gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """The least σ for integer noise: the Gaussian's at ε − 10⁻⁸ and δ(1 − 10⁻⁸), refused below 2²⁶.

    Proofs: proofs/gaussian.md#gaussian-lemma-1, proofs/gaussian.md#gaussian-lemma-2.
    """
    if not 0.0 < sensitivity < math.inf:
        raise GuaranteeError("sensitivity must be a positive number", got=sensitivity, limit="0 < Δ < inf")
    return proven_sigma(sensitivity / discrete_mu_at_most(epsilon, delta) * _NUDGE)


def proven_sigma(sigma: float) -> float:
    """Refuses integer noise too small for the proof that it is as good as a Gaussian.

    Proof: proofs/gaussian.md#gaussian-theorem.
    """
    if sigma < DISCRETE_SIGMA_AT_LEAST:
        raise GuaranteeError(
            "integer noise this small is not covered by the proof of its privacy",
            got=f"sigma = {sigma:g} lattice units",
            limit=f"sigma ≥ {DISCRETE_SIGMA_AT_LEAST:g}",
            remedy="Ask for a smaller epsilon or delta.",
        )
    return sigma


def _check_slack(epsilon: float, delta: float) -> None:
    """Refuse an (ε, δ) of which nothing is left for the continuous curve once discreteness is paid."""
    if check_epsilon(epsilon) <= DISCRETE_SLACK:
        raise GuaranteeError(
            "epsilon is too small for integer noise", got=epsilon, limit=f"epsilon > {DISCRETE_SLACK:g}"
        )
    if 0.0 < check_delta(delta) < _DISCRETE_DELTA_AT_LEAST:
        raise GuaranteeError(
            "delta is too small for integer noise",
            got=delta,
            limit=f"delta ≥ {_DISCRETE_DELTA_AT_LEAST:g}",
            remedy="Give delta=0 and a pure mechanism such as matrix-laplace.",
        )


def stacked_sigmas(
    adjacency: Adjacency,
    *,
    mu: float,
    x_norm: float,
    y_bound: float,
    costs: tuple[float, float, float],
) -> tuple[float, float, float]:
    """(σ₁, σ₂, σ₃) for (xxᵀ, xy, y²), released together with μ-GDP, that minimise Σ cᵢσᵢ².

    Under add/remove σᵢ² = (Δᵢ/√cᵢ)(Σⱼ √cⱼΔⱼ)/μ² with Δ = (Bx², Bx·By, By²). Under replace-one the problem is
    a geometric program: (Σ cᵢ/pᵢ)·Δ²(p) is log-convex in ln p, because Δ² is a largest value of posynomials,
    and it is solved numerically from the add/remove answer. Either is scaled by the exact sensitivity at the
    end, so an inexact optimum costs accuracy and never privacy.

    Proof: proofs/gaussian.md#gaussian-stacked.
    """
    if not all(0.0 < number < math.inf for number in (mu, *costs)):
        raise GuaranteeError("mu and the costs must be positive numbers", got=(mu, *costs), limit="0 < value")
    reaches = (x_norm * x_norm, x_norm * y_bound, y_bound * y_bound)
    start = [math.log(math.sqrt(cost) / reach) for cost, reach in zip(costs, reaches, strict=True)]
    logs = start if adjacency.name == "add-remove" else _refined(adjacency, x_norm, y_bound, costs, start)
    precisions = (math.exp(logs[0]), math.exp(logs[1]), math.exp(logs[2]))
    scale = adjacency.stacked_mu(x_norm, y_bound, precisions) / mu
    return _sigma(scale, precisions[0]), _sigma(scale, precisions[1]), _sigma(scale, precisions[2])


def _sigma(scale: float, precision: float) -> float:
    return up(scale / math.sqrt(precision))


def _refined(
    adjacency: Adjacency, x_norm: float, y_bound: float, costs: tuple[float, float, float], start: list[float]
) -> list[float]:
    """ln p₁..p₃ that minimise ln(Σ cᵢ/pᵢ) + 2 ln Δ(p); p₁ stays, because only ratios matter."""
    from scipy.optimize import minimize

    def objective(free: list[float]) -> float:
        precisions = (math.exp(start[0]), math.exp(free[0]), math.exp(free[1]))
        noise = sum(cost / precision for cost, precision in zip(costs, precisions, strict=True))
        return math.log(noise) + 2.0 * math.log(adjacency.stacked_mu(x_norm, y_bound, precisions))

    def search(at: list[float], simplex: list[list[float]] | None = None) -> tuple[float, list[float]]:
        options = {"xatol": 1e-9, "fatol": 1e-13, "initial_simplex": simplex}
        found = minimize(objective, at, method="Nelder-Mead", options=options)
        return float(found.fun), [float(place) for place in found.x]

    lowest, place = search(start[1:])
    # The objective has edges, on which a simplex can collapse before it is at the bottom: begin again there
    # with a large one, until that gains nothing.
    while True:
        x, y = place
        again, other = search(place, [[x, y], [x + 1.0, y], [x, y + 1.0]])
        if again > lowest - 1e-10:
            return [start[0], *place]
        lowest, place = again, other

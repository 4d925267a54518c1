"""The least noise that meets a guarantee, by bracketed search on the exact curve.

Every answer has itself been tested against the curve, whose rounding errors are on the safe side: a calibration
never under-protects, and gives away no more than the last digits.
"""

from __future__ import annotations

from typing import Final

from dpgram.errors import GuaranteeError
from dpgram.privacy.guarantee import check_delta, check_epsilon, gdp_mu_at_most
from dpgram.privacy.rounding import up
from dpgram.privacy.search import greatest, least

__all__ = ["DISCRETE_SLACK", "discrete_gaussian_sigma", "gaussian_sigma", "greatest", "least"]

DISCRETE_SLACK: Final = 1e-8
"""What integer noise may differ from the continuous Gaussian, in ε and relatively in δ (proofs/gaussian.md)."""


def gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """The least σ with Φ(Δ/2σ − εσ/Δ) − e^ε Φ(−Δ/2σ − εσ/Δ) ≤ δ for sensitivity Δ, rounded up."""
    if not 0.0 < sensitivity < float("inf"):
        raise GuaranteeError("sensitivity must be a positive number", got=sensitivity, limit="0 < Δ < inf")
    return up(sensitivity / gdp_mu_at_most(epsilon, delta))


def discrete_gaussian_sigma(*, epsilon: float, delta: float, sensitivity: float) -> float:
    """The same σ for integer noise, calibrated at ε − 10⁻⁸ and δ(1 − 10⁻⁸)."""
    if check_epsilon(epsilon) <= DISCRETE_SLACK:
        raise GuaranteeError(
            "epsilon is too small for integer noise", got=epsilon, limit=f"epsilon > {DISCRETE_SLACK:g}"
        )
    tighter = check_delta(delta) * (1.0 - DISCRETE_SLACK)
    return gaussian_sigma(epsilon=epsilon - DISCRETE_SLACK, delta=tighter, sensitivity=sensitivity)

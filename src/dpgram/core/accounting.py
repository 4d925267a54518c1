"""Prices, computed from the sum and the noise that is drawn on it, and the Gaussian curve, rounded up.

    Gaussian       μ² = Δ₂²/σ²         adds up over everything that is drawn, whatever it was chosen by
    Laplace        ε = Δ₁/b            so does ε
    matrix Laplace ε = Δ₁·θ
    levels         δ                   for a text that one unit alone brings

Prices are exact rationals of the floats themselves. Proof: proofs/core.md#core-price, #core-curve.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, final

from dpgram.core.encode import broken
from dpgram.core.noise import Noise
from dpgram.core.sensitivity import Relation, absolute, is_matrix, squared
from dpgram.core.sums import Levels, Sum
from dpgram.errors import GuaranteeError

SIGMA_AT_LEAST: Final = 2.0**26
"""σ, in lattice units, for which integer noise is proven, σ/√2 off a diagonal: up to 10⁸ cells
(proofs/gaussian.md)."""
SLACK: Final = 1e-8
"""By which integer noise may differ from the Gaussian: in ε, and relatively in δ."""
_ERROR: Final = 2.0**-40
"""Far more than erfc, exp and the operations before them lose, relatively."""


ROUNDED: Final = 1 + Fraction(1, 10**12)
"""Far less than `mu_at_most` leaves of δ, relatively."""


@final
@dataclass(frozen=True, slots=True)
class Price:
    """What was spent, exactly: μ² of Gaussian parts, ε of pure ones, δ of texts, and what adds to none.

    Proof: proofs/measurements.md#measurements-composition.
    """

    mu_squared: Fraction = Fraction(0)
    epsilon: Fraction = Fraction(0)
    delta: Fraction = Fraction(0)
    own: tuple[Hashable, ...] = ()
    """Of mechanisms with a law of their own, each priced by a proof of its own."""

    def __add__(self, other: Price) -> Price:
        return Price(
            self.mu_squared + other.mu_squared,
            self.epsilon + other.epsilon,
            self.delta + other.delta,
            self.own + other.own,
        )

    def within(self, other: Price) -> bool:
        """Whether no part is more than the other's, but for what rounding each of many parts up may add."""
        return (
            self.mu_squared <= other.mu_squared * ROUNDED
            and self.epsilon <= other.epsilon * ROUNDED
            and self.delta <= other.delta * ROUNDED
            and Counter(self.own) <= Counter(other.own)
        )


def price(what: Sum, noise: Noise, relation: Relation) -> Price:
    """What one draw of this noise on this sum costs. Proof: proofs/core.md#core-price."""
    matrix = is_matrix(what)
    if not 0.0 < noise.scale < math.inf or not 0.0 <= noise.delta < 1.0:
        raise broken("the scale of the noise is no positive number")
    if (noise.delta > 0.0) != isinstance(what, Levels) or (noise.law == "matrix-laplace") != (
        matrix and noise.law != "gaussian"
    ):
        raise broken("there is no proof for this noise on this sum")
    leak = Fraction(noise.delta)
    if noise.law == "gaussian":
        if noise.scale < SIGMA_AT_LEAST:
            raise broken("noise this small is not covered by the proof of its privacy")
        return Price(mu_squared=squared(what, relation) / Fraction(noise.scale) ** 2, delta=leak)
    one = Fraction(noise.scale)
    return Price(epsilon=absolute(what, relation) * (one if matrix else 1 / one), delta=leak)


def delta_at_least(mu: float, epsilon: float) -> float:
    """Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ), rounded up. Proof: proofs/core.md#core-curve."""
    x, y = epsilon / mu - mu / 2.0, epsilon / mu + mu / 2.0
    first = 0.5 * math.erfc(x / math.sqrt(2.0))
    # Beyond the floats it is left out, which says more than the truth.
    second = 0.5 * math.exp(epsilon) * math.erfc(y / math.sqrt(2.0)) if epsilon <= 700.0 else 0.0
    # An error of 2^-52 in x moves Φ(−x) by at most (1 + |x|)²·2^-51 of itself.
    room = _ERROR * (1.0 + x * x + y * y)
    return min(1.0, first * (1.0 + room) - second * (1.0 - room) + 1e-320)


def mu_at_most(epsilon: float, delta: float) -> float:
    """The largest μ that integer noise may have within (ε, δ), rounded down.

    Proofs: proofs/core.md#core-curve, proofs/gaussian.md#gaussian-theorem.
    """
    if not (SLACK < epsilon < math.inf and 1e-300 <= delta < 1.0):
        raise GuaranteeError(
            "no Gaussian noise is calibrated for this guarantee",
            got=(epsilon, delta),
            limit="1e-8 < epsilon < inf and 1e-300 ≤ delta < 1",
        )
    epsilon, delta = math.nextafter(epsilon - SLACK, 0.0), delta * (1.0 - 1.5 * SLACK)
    low, high = 0.0, 100.0 + 2.0 * math.sqrt(epsilon)
    while (middle := 0.5 * (low + high)) not in (low, high):
        low, high = (middle, high) if delta_at_least(middle, epsilon) <= delta else (low, middle)
    return low


def keeps(spent: Price, epsilon: float, delta: float) -> bool:
    """Whether everything that was drawn together is (ε, δ)-differentially private, as far as it adds up.

    Pure ε adds to ε and the δ of texts to δ; what is left of both is for the Gaussian parts.
    Proof: proofs/core.md#core-curve.
    """
    left_epsilon, left_delta = Fraction(epsilon) - spent.epsilon, Fraction(delta) - spent.delta
    if left_epsilon < 0 or left_delta < 0 or spent.own:
        return False
    if spent.mu_squared == 0:
        return True
    down = _down(left_epsilon), _down(left_delta)
    if not (down[0] > SLACK and 1e-300 <= down[1] < 1.0):
        return False
    return spent.mu_squared <= Fraction(mu_at_most(*down)) ** 2


def _down(number: Fraction) -> float:
    """The number itself where it is a float, so that a price at the very end of the promise keeps it."""
    near = float(number)
    return near if Fraction(near) <= number else math.nextafter(near, 0.0)

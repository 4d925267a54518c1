"""Gaussian noise on the inverse of the ridged matrix (Sheffet, Theorem B.5, its sensitivity corrected)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms.base import Drawn, Facts, Mechanism, as_floats, rounded, strictly_below, symmetric
from dpgram.mechanisms.gaussian import offdiagonal_scale_at_least
from dpgram.noise import NoisyInverse
from dpgram.privacy.accountant import Event, GaussianEvent
from dpgram.privacy.curves.base import GaussianCurve, PrivacyCurve
from dpgram.privacy.curves.calibrate import discrete_gaussian_sigma
from dpgram.privacy.curves.inverse import inverse_exponent, inverse_sensitivity
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.spectral import ROWS_AT_MOST
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.sampling.entropy import Entropy

LEAST_RIDGE: Final = 1e-3
"""In units of one row's trace. Below it the float inverse could be off by more than the noise hides."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InverseNoise(Mechanism):
    """(G + L·I)⁻¹ + N with a public ridge L, N symmetric Gaussian of scale σ.

    μ-GDP with μ = Δ/σ, Δ = s/(L(L + s)) (add/remove) or √2 times that (replace-one), s = 2^30 a row's trace,
    widened by the rounding of the inverse. The printed theorem needs a promise on σ_min and errs in units.
    proofs/inverse-noise.md#inverse-noise-claim
    """

    name: ClassVar[str] = "inverse-noise"
    psd: ClassVar[bool] = False
    options: ClassVar[frozenset[str]] = frozenset({"ridge"})
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    ridge: float
    """L, in lattice units."""
    sigma: float
    """The scale of a diagonal cell of the inverse, in reciprocal lattice units."""

    @classmethod
    def calibrated(cls, guarantee: Guarantee, facts: Facts) -> Self:
        """The least σ whose exact curve is within (ε, δ)."""
        if guarantee.pure:
            raise MechanismError(
                "inverse-noise cannot give a pure guarantee",
                got="delta = 0",
                limit="delta > 0",
                remedy="Use mechanism='matrix-laplace', or give a delta such as 1e-6.",
            )
        ridge = _checked_ridge(facts)
        unit = 2.0 ** grid_exponent(facts)
        sigma = discrete_gaussian_sigma(
            epsilon=guarantee.epsilon, delta=guarantee.delta, sensitivity=_sensitivity(facts) / unit
        )
        return cls(ridge=ridge, sigma=sigma * unit)

    def expected(self, values: npt.NDArray[np.float64]) -> NoisyInverse:
        """One law for every matrix."""
        del values
        return NoisyInverse(ridge=self.ridge, sigma=self.sigma)

    def curve(self, facts: Facts) -> PrivacyCurve:
        """The Gaussian curve at μ = Δ/σ."""
        return GaussianCurve(up(_sensitivity(facts) / self.sigma))

    def event(self, facts: Facts) -> Event:
        """μ-GDP."""
        return GaussianEvent(mu=up(_sensitivity(facts) / self.sigma))

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """The inverse in floats, rounded to the public grid, plus discrete noise on that grid."""
        width = len(gram)
        exponent = inverse_exponent(self.ridge)
        shifted = as_floats(gram)
        shifted.flat[:: width + 1] += self.ridge
        inverse = rounded(np.ldexp(np.linalg.inv(shifted), -exponent))
        scale = math.ldexp(self.sigma, -exponent)
        below = strictly_below(width)
        return Drawn(
            cells=symmetric(
                np.diagonal(inverse) + entropy.discrete_gaussian(scale, width),
                inverse[below]
                + entropy.discrete_gaussian(offdiagonal_scale_at_least(scale), int(below.sum())),
            ),
            noise=NoisyInverse(ridge=self.ridge, sigma=self.sigma),
            exponent=exponent,
            kind="inverse",
        )


def grid_exponent(facts: Facts) -> int:
    """The public grid of the inverse's cells: a power of two, far below the sensitivity."""
    return inverse_exponent(_checked_ridge(facts))


def _sensitivity(facts: Facts) -> float:
    return inverse_sensitivity(facts.adjacency, facts.width, _checked_ridge(facts), unit_rows=facts.unit_rows)


def _checked_ridge(facts: Facts) -> float:
    if facts.ridge is None or not LEAST_RIDGE * ROW_NORM_SQUARED <= facts.ridge < math.inf:
        raise MechanismError(
            "inverse-noise needs a public ridge",
            got=None
            if facts.ridge is None
            else f"{facts.ridge / ROW_NORM_SQUARED:g} times a row's squared norm",
            limit=f"ridge ≥ {LEAST_RIDGE:g} times the squared radius",
            remedy="Give ridge=, say one percent of the expected number of rows times the squared radius.",
        )
    return facts.ridge

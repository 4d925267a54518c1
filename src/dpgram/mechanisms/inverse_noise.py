"""Gaussian noise on the inverse of the ridged matrix (Sheffet, Theorem B.5, its sensitivity corrected)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from numbers import Real
from typing import ClassVar, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy, offdiagonal_scale_at_least
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED, cell_unit
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms.base import (
    ROWS_GUESSED,
    CalibratedMechanism,
    Drawn,
    Mechanism,
    PublicFacts,
    as_floats,
    refuse_pure,
    rounded,
    strictly_below,
    symmetric,
)
from dpgram.noise import NoisyInverse
from dpgram.privacy.charged import Charged
from dpgram.privacy.curves.base import GaussianCurve, PrivacyCurve
from dpgram.privacy.curves.calibrate import discrete_gaussian_sigma
from dpgram.privacy.curves.inverse_gram import inverse_exponent, inverse_sensitivity
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.spectral import ROWS_AT_MOST
from dpgram.privacy.events import Event, GaussianEvent
from dpgram.privacy.guarantee import Guarantee

LEAST_RIDGE: Final = 1e-3
"""In units of one row's trace. Below it the float inverse could be off by more than the noise hides."""
FORECAST_RIDGE: Final = 0.01
"""The ridge of forecasts where none is given, as a part of the rows times the squared radius."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InverseNoise(Mechanism):
    """(G + L·I)⁻¹ + N with a public ridge L, N symmetric Gaussian of scale σ.

    μ-GDP with μ = Δ/σ, Δ = s/(L(L + s)) (add/remove) or √2 times that (replace-one), s = 2^30 a row's trace,
    widened by the rounding of the inverse. The printed theorem needs a promise on σ_min and errs in units.
    proofs/inverse-noise.md#inverse-noise-claim
    """

    name: ClassVar[str] = "inverse-noise"
    semidefinite: ClassVar[bool] = False
    public_radius: ClassVar[bool] = True
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST
    first_order_error: ClassVar[bool] = True

    ridge: float | None = None
    """L, in encoded units. There is no default: it takes an idea of the number of rows to choose one."""

    def __post_init__(self) -> None:
        given: object = self.ridge
        if given is None:
            return
        if isinstance(given, bool) or not isinstance(given, Real) or not 0.0 < float(given) < math.inf:
            raise MechanismError(
                "the ridge of inverse-noise must be a positive number",
                got=repr(self.ridge),
                limit="0 < ridge < inf, in encoded units",
                remedy="Give, say, one percent of the expected number of rows times the squared radius.",
            )
        object.__setattr__(self, "ridge", float(given))

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedInverseNoise:
        """The least σ whose exact curve is within (ε, δ)."""
        refuse_pure(self.name, guarantee)
        ridge = self._lattice_ridge(facts)
        unit = 2.0 ** inverse_exponent(ridge)
        sigma = discrete_gaussian_sigma(
            epsilon=guarantee.epsilon, delta=guarantee.delta, sensitivity=_sensitivity(facts, ridge) / unit
        )
        return CalibratedInverseNoise(ridge=ridge, sigma=sigma * unit)

    def guessed(self, facts: PublicFacts) -> Self:
        """One percent of the rows."""
        if self.ridge is not None:
            return self
        rows = ROWS_GUESSED if facts.rows is None else facts.rows
        return replace(self, ridge=FORECAST_RIDGE * rows * facts.radius**2)

    def _lattice_ridge(self, facts: PublicFacts) -> float:
        ridge = math.nan if self.ridge is None else self.ridge / cell_unit(facts.radius)
        found = None if self.ridge is None else f"{ridge / ROW_NORM_SQUARED:g} times a row's squared norm"
        if not LEAST_RIDGE * ROW_NORM_SQUARED <= ridge < math.inf:
            raise MechanismError(
                "inverse-noise needs a public ridge",
                got=found,
                limit=f"ridge ≥ {LEAST_RIDGE:g} times the squared radius",
                remedy="Give mechanisms.InverseNoise(ridge=...), say one percent of the expected number of "
                "rows times the squared radius.",
            )
        return ridge

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """μ ≥ Δ/σ with Δ the sensitivity of (G + L·I)⁻¹ on its grid."""
        law = stated.law
        if not isinstance(law, NoisyInverse):
            return False
        if stated.parameters != {"ridge": law.ridge, "sigma": law.sigma}:
            return False
        if not (law.ridge > 0 and law.sigma > 0) or stated.published != "inverse":
            return False
        sensitivity = inverse_sensitivity(
            stated.adjacency, stated.width, law.ridge, unit_rows=stated.unit_rows
        )
        on_grid = stated.exponent == inverse_exponent(law.ridge)
        if stated.counted:  # pure counts came before it
            return on_grid and stated.curve_within(GaussianCurve(sensitivity / law.sigma))
        return on_grid and stated.mu is not None and stated.gaussian_within(sensitivity / law.sigma)

    @classmethod
    def least_charge(cls, stated: StatedNoise) -> Charged:
        """The μ that is promised, or after pure counts its own beside their ε."""
        law = stated.law
        if stated.mu is not None or not isinstance(law, NoisyInverse):
            return stated.promised
        sensitivity = inverse_sensitivity(
            stated.adjacency, stated.width, law.ridge, unit_rows=stated.unit_rows
        )
        return Charged(mu_squared=(sensitivity / law.sigma) ** 2, epsilon=stated.counts_cost)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedInverseNoise(CalibratedMechanism):
    """(G + L·I)⁻¹ + N with its σ. proofs/inverse-noise.md#inverse-noise-claim"""

    kind: ClassVar[type[Mechanism]] = InverseNoise

    ridge: float
    """L, in lattice units."""
    sigma: float
    """The scale of a diagonal cell of the inverse, in reciprocal lattice units."""

    def expected(self, values: npt.NDArray[np.float64]) -> NoisyInverse:
        """One law for every matrix."""
        del values
        return NoisyInverse(ridge=self.ridge, sigma=self.sigma)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The Gaussian curve at μ = Δ/σ."""
        return GaussianCurve(up(_sensitivity(facts, self.ridge) / self.sigma))

    def event(self, facts: PublicFacts) -> Event:
        """μ-GDP."""
        return GaussianEvent(mu=up(_sensitivity(facts, self.ridge) / self.sigma))

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


def _sensitivity(facts: PublicFacts, ridge: float) -> float:
    return inverse_sensitivity(facts.adjacency, facts.width, ridge, unit_rows=facts.unit_rows)

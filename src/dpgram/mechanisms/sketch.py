"""Random combinations of rows and a ridge: the Johnson–Lindenstrauss sketch (Sheffet, Algorithms 1 and 2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpgram.core.noise import Entropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms._wishart_family import (
    CalibratedWishartFamily,
    WishartFamily,
    expected_bound,
    forecast_degrees,
    noisy_least_eigenvalue,
    ratio_of,
    ridge_for,
)
from dpgram.mechanisms.base import Drawn, Mechanism, PublicFacts, refuse_pure
from dpgram.noise import WishartSketch
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.spectral import ROWS_AT_MOST
from dpgram.privacy.curves.wishart import AdaptiveCurve, SketchCurve
from dpgram.privacy.curves.wishart_calibrate import adaptive_ratio_at_most, sketch_ratio_at_most
from dpgram.privacy.guarantee import Guarantee, gdp_mu_at_most

LOOK_SHARE: Final = 0.25
"""μ of the look at λ_min, as a share of μ(ε, δ): a sixteenth of the budget in μ²."""
FAILURE_SHARE: Final = 0.25
"""β, the probability that the look claims too much, as a share of δ."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch(WishartFamily):
    """M ~ Wishart_d(G + w²I, r)/r, by Bartlett's decomposition; positive semidefinite.

    (ε, δ)-DP by the exact curve of t = s/w², s = 2^30 a row's trace, drawn exactly. The ridge w² is 7 to
    14 times below the printed one. proofs/sketch.md#sketch-added
    """

    name: ClassVar[str] = "sketch"

    degrees: int | None = None
    """r; None: so many that the sketch itself hardly errs, by the public number of rows."""

    @property
    def follows_rows(self) -> bool:
        """Where r was not given."""
        return self.degrees is None

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedSketch:
        """The least w² for the asked r, or for the r from which on the sketch itself hardly errs."""
        refuse_pure(self.name, guarantee)
        rows = sketch_rows(self.degrees, guarantee, facts)
        ridge = ridge_for(sketch_ratio_at_most(guarantee, facts.adjacency, degrees=float(rows)))
        return CalibratedSketch(epsilon=guarantee.epsilon, delta=guarantee.delta, ridge=ridge, rows=rows)

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """By the exact curve of r and t = 2^30/w²."""
        law = stated.law
        if not isinstance(law, WishartSketch) or not stated.has_parameters(ridge=law.ridge, rows=law.rows):
            return False
        if not (law.ridge >= 1 and law.rows > 0 and stated.plain_gram):
            return False
        return stated.curve_within(_curve(stated.adjacency, law.rows, ratio_of(law.ridge)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedSketch(CalibratedWishartFamily):
    """Wishart_d(G + w²I, r)/r with its w² and r. proofs/sketch.md#sketch-added"""

    kind: ClassVar[type[Mechanism]] = Sketch

    epsilon: float
    delta: float
    ridge: float
    """w², in lattice units."""
    rows: int
    """r."""

    def expected(self, values: npt.NDArray[np.float64]) -> WishartSketch:
        """One law for every matrix."""
        del values
        return WishartSketch(ridge=self.ridge, rows=self.rows)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The exact curve at t = s/w²."""
        return _curve(facts.adjacency, self.rows, ratio_of(self.ridge))

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """One Wishart matrix, rounded to whole lattice units."""
        return _drawn(gram, self.ridge, self.rows, entropy)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SketchAdaptive(WishartFamily):
    """A private lower bound b ≤ λ_min(G), then the sketch with w² = min(s/T, max(1, s/T + s − b)).

    Where the data is spread out, hardly any ridge is needed. (ε, δ)-DP with the look at λ_min and its failure
    probability β inside: T is the largest ratio with β + E δ_{r,T}(ε − l) ≤ δ.
    proofs/sketch.md#sketch-adaptive
    """

    name: ClassVar[str] = "sketch-adaptive"
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    degrees: int | None = None
    """r, as for the plain sketch."""

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedSketchAdaptive:
        """A sixteenth of μ² and a quarter of δ go to the look; the rest decides T."""
        refuse_pure(self.name, guarantee)
        rows = sketch_rows(self.degrees, guarantee, facts)
        mu, beta = look(guarantee)
        ratio = adaptive_ratio_at_most(
            guarantee, facts.adjacency, degrees=float(rows), mu=mu, beta=beta, family=SketchCurve
        )
        ridge = ridge_for(ratio)
        return CalibratedSketchAdaptive(
            epsilon=guarantee.epsilon, delta=guarantee.delta, largest_ridge=ridge, rows=rows, mu=mu, beta=beta
        )

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """By the curve of the look and the draw at the largest ridge together."""
        law = stated.law
        largest, mu, beta = (stated.number(name) for name in ("largest_ridge", "mu", "beta"))
        if not isinstance(law, WishartSketch):
            return False
        told = stated.has_parameters(largest_ridge=largest, rows=law.rows, mu=mu, beta=beta)
        if not (told and 1 <= law.ridge <= largest and law.rows > 0 and stated.plain_gram):
            return False
        inner = _curve(stated.adjacency, law.rows, ratio_of(largest))
        return stated.curve_within(AdaptiveCurve(inner=inner, mu=mu, beta=beta))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedSketchAdaptive(CalibratedWishartFamily):
    """The look and then the sketch, with their μ, β, T and r. proofs/sketch.md#sketch-adaptive"""

    kind: ClassVar[type[Mechanism]] = SketchAdaptive

    epsilon: float
    delta: float
    largest_ridge: float
    """s/T, in lattice units: the ridge where the look found nothing."""
    rows: int
    mu: float
    """Of the look at λ_min."""
    beta: float

    def expected(self, values: npt.NDArray[np.float64]) -> WishartSketch:
        """With the ridge that a look with no noise would allow."""
        bound = expected_bound(values, self.mu, float(-ndtri(self.beta)))
        return WishartSketch(ridge=adapted_ridge(self.largest_ridge, bound), rows=self.rows)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The curve of the look and the draw together."""
        inner = _curve(facts.adjacency, self.rows, ratio_of(self.largest_ridge))
        return AdaptiveCurve(inner=inner, mu=self.mu, beta=self.beta)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """The look, the ridge it allows, and the sketch."""
        bound = noisy_least_eigenvalue(gram, self.mu, float(-ndtri(self.beta)), entropy)
        ridge = adapted_ridge(self.largest_ridge, bound)
        return _drawn(gram, ridge, self.rows, entropy)


def adapted_ridge(largest: float, bound: float) -> float:
    """min(s/T, max(1, s/T + s − b)): with b ≤ λ_min(G) both neighbours then have λ_min + ridge ≥ s/T.

    One lattice unit at least, so that there is a factor whatever the look found.
    Proof: proofs/sketch.md#sketch-adaptive.
    """
    return min(largest, max(1.0, up(largest + ROW_NORM_SQUARED - bound)))


def look(guarantee: Guarantee) -> tuple[float, float]:
    """(μ, β) of the look at λ_min."""
    return LOOK_SHARE * gdp_mu_at_most(guarantee.epsilon, guarantee.delta), FAILURE_SHARE * guarantee.delta


def sketch_rows(asked: int | None, guarantee: Guarantee, facts: PublicFacts) -> int:
    """The asked number of rows, or the forecast one."""
    if asked is not None:
        return asked
    noise_rows = facts.adjacency.gram_frobenius(1.0) / gdp_mu_at_most(guarantee.epsilon, guarantee.delta)
    return forecast_degrees(facts, noise_rows)


def _curve(adjacency: Adjacency, rows: int, ratio: float) -> SketchCurve:
    return SketchCurve(adjacency=adjacency, degrees=float(rows), ratio=ratio)


def _drawn(gram: npt.NDArray[np.int64], ridge: float, rows: int, entropy: Entropy) -> Drawn:
    from dpgram.privacy.sampling.wisharts import wishart

    cells = wishart(gram, ridge, rows, entropy.random_bytes)
    return Drawn(cells=cells, noise=WishartSketch(ridge=ridge, rows=rows))

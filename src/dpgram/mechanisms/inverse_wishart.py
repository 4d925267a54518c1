"""One draw of the posterior covariance: inverse-Wishart sampling (Sheffet, Algorithms 4 and 5)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri

from dpgram.core.noise import Entropy
from dpgram.errors import MechanismError
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms._wishart_family import (
    CalibratedWishartFamily,
    WishartFamily,
    expected_bound,
    noisy_least_eigenvalue,
    ratio_of,
    ridge_for,
)
from dpgram.mechanisms.base import ROWS_GUESSED, Drawn, Mechanism, PublicFacts, refuse_pure
from dpgram.mechanisms.sketch import adapted_ridge, look
from dpgram.noise import InverseWishart as InverseWishartLaw
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.curves.spectral import ROWS_AT_MOST
from dpgram.privacy.curves.wishart import AdaptiveCurve, InverseWishartCurve
from dpgram.privacy.curves.wishart_calibrate import adaptive_ratio_at_most, sketch_ratio_at_most
from dpgram.privacy.guarantee import Guarantee


class _Posterior(WishartFamily):
    """What both forms share: where ν comes from."""

    @final
    def _public_degrees(self, facts: PublicFacts) -> int:
        """ν from public facts only: asked for, or n + d where n is public.

        Proof: proofs/inverse-wishart.md#inverse-wishart-degrees.
        """
        asked = self._degrees_at_least(facts.width + 2)
        if asked is not None:
            return asked
        if facts.adjacency.name == "replace-one" and facts.rows is not None:
            return facts.rows + facts.width
        raise MechanismError(
            "inverse-Wishart sampling needs degrees of freedom that do not depend on private data",
            got=f"adjacency {facts.adjacency.name!r} and no degrees",
            limit="degrees=, or adjacency='replace-one' with rows=, where n + d is taken",
            remedy="Give degrees=, say the number of rows you expect: under add/remove n itself is private.",
        )

    @final
    def guessed(self, facts: PublicFacts) -> Self:
        """As many degrees as rows."""
        rows = ROWS_GUESSED if facts.rows is None else facts.rows
        chosen = max(rows, facts.width + 2) if self.degrees is None else self.degrees
        return replace(self, degrees=chosen)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InverseWishart(_Posterior):
    """M = (ν − d − 1)·Σ, Σ ~ InvWishart_d(G + ψI, ν): positive definite, with mean G + ψI.

    (ε, δ)-DP by the exact curve of t = s/ψ, s = 2^30 a row's trace, drawn exactly. ν must not depend on
    private data: n + d under replace-one, where n is public, else a number that is given.
    proofs/inverse-wishart.md#inverse-wishart-claim
    """

    name: ClassVar[str] = "inverse-wishart"

    degrees: int | None = None
    """ν; None: n + d under replace-one with a public n, else it must be given."""

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedInverseWishart:
        """The least ψ for ν."""
        refuse_pure(self.name, guarantee)
        degrees = self._public_degrees(facts)
        prior = ridge_for(sketch_ratio_at_most(guarantee, facts.adjacency, degrees=float(degrees)))
        return CalibratedInverseWishart(
            epsilon=guarantee.epsilon, delta=guarantee.delta, prior=prior, degrees=degrees
        )

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """By the exact curve of ν and t = 2^30/ψ."""
        law = stated.law
        if not isinstance(law, InverseWishartLaw):
            return False
        if not stated.has_parameters(prior=law.prior, degrees=law.degrees):
            return False
        if not (law.prior >= 1 and law.degrees > stated.width + 1 and stated.plain_gram):
            return False
        return stated.curve_within(_curve(stated.adjacency, law.degrees, ratio_of(law.prior)))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedInverseWishart(CalibratedWishartFamily):
    """(ν − d − 1)·Σ with its ψ and ν. proofs/inverse-wishart.md#inverse-wishart-claim"""

    kind: ClassVar[type[Mechanism]] = InverseWishart

    epsilon: float
    delta: float
    prior: float
    """ψ, in lattice units."""
    degrees: int
    """ν."""

    def expected(self, values: npt.NDArray[np.float64]) -> InverseWishartLaw:
        """One law for every matrix."""
        del values
        return InverseWishartLaw(prior=self.prior, degrees=self.degrees)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The exact curve at t = s/ψ."""
        return _curve(facts.adjacency, self.degrees, ratio_of(self.prior))

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """One inverse-Wishart matrix, rounded to whole lattice units."""
        return _drawn(gram, self.prior, self.degrees, entropy)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InverseWishartAdaptive(_Posterior):
    """A private lower bound b ≤ λ_min(G), then the draw with ψ = min(s/T, max(1, s/T + s − b)).

    (ε, δ)-DP with the look at λ_min and its failure probability inside, as for the adaptive sketch.
    proofs/inverse-wishart.md#inverse-wishart-adaptive
    """

    name: ClassVar[str] = "inverse-wishart-adaptive"
    rows_at_most: ClassVar[int | None] = ROWS_AT_MOST

    degrees: int | None = None
    """ν, as for the plain form."""

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedInverseWishartAdaptive:
        """A sixteenth of μ² and a quarter of δ go to the look; the rest decides T."""
        refuse_pure(self.name, guarantee)
        degrees = self._public_degrees(facts)
        mu, beta = look(guarantee)
        ratio = adaptive_ratio_at_most(
            guarantee, facts.adjacency, degrees=float(degrees), mu=mu, beta=beta, family=InverseWishartCurve
        )
        return CalibratedInverseWishartAdaptive(
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            largest_prior=ridge_for(ratio),
            degrees=degrees,
            mu=mu,
            beta=beta,
        )

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """By the curve of the look and the draw at the largest prior together."""
        law = stated.law
        largest, mu, beta = (stated.number(name) for name in ("largest_prior", "mu", "beta"))
        if not isinstance(law, InverseWishartLaw):
            return False
        told = stated.has_parameters(largest_prior=largest, degrees=law.degrees, mu=mu, beta=beta)
        enough = law.degrees > stated.width + 1
        if not (told and 1 <= law.prior <= largest and enough and stated.plain_gram):
            return False
        inner = _curve(stated.adjacency, law.degrees, ratio_of(largest))
        return stated.curve_within(AdaptiveCurve(inner=inner, mu=mu, beta=beta))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedInverseWishartAdaptive(CalibratedWishartFamily):
    """The look and then the draw, with their μ, β, T and ν.

    proofs/inverse-wishart.md#inverse-wishart-adaptive
    """

    kind: ClassVar[type[Mechanism]] = InverseWishartAdaptive

    epsilon: float
    delta: float
    largest_prior: float
    degrees: int
    mu: float
    beta: float

    def expected(self, values: npt.NDArray[np.float64]) -> InverseWishartLaw:
        """With the prior that a look with no noise would allow."""
        bound = expected_bound(values, self.mu, float(-ndtri(self.beta)))
        prior = adapted_ridge(self.largest_prior, bound)
        return InverseWishartLaw(prior=prior, degrees=self.degrees)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The curve of the look and the draw together."""
        inner = _curve(facts.adjacency, self.degrees, ratio_of(self.largest_prior))
        return AdaptiveCurve(inner=inner, mu=self.mu, beta=self.beta)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """The look, the prior it allows, and the draw."""
        bound = noisy_least_eigenvalue(gram, self.mu, float(-ndtri(self.beta)), entropy)
        return _drawn(gram, adapted_ridge(self.largest_prior, bound), self.degrees, entropy)


def _curve(adjacency: Adjacency, degrees: int, ratio: float) -> InverseWishartCurve:
    return InverseWishartCurve(adjacency=adjacency, degrees=float(degrees), ratio=ratio)


def _drawn(gram: npt.NDArray[np.int64], prior: float, degrees: int, entropy: Entropy) -> Drawn:
    from dpgram.privacy.sampling.wisharts import inverse_wishart

    cells = inverse_wishart(gram, prior, degrees, entropy.random_bytes)
    return Drawn(cells=cells, noise=InverseWishartLaw(prior=prior, degrees=degrees))

"""Random rows added to the table: additive Wishart noise (Sheffet, Algorithm 3) on its exact curve."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.noise import Entropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._stated import StatedNoise
from dpgram.mechanisms._wishart_family import CalibratedWishartFamily, WishartFamily
from dpgram.mechanisms.base import Drawn, Mechanism, PublicFacts, refuse_pure
from dpgram.noise import AdditiveWishart
from dpgram.privacy.adjacency import AddRemove, Adjacency
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.curves.search import greatest
from dpgram.privacy.curves.wishart import AdditiveWishartCurve
from dpgram.privacy.guarantee import Guarantee, gdp_mu_at_most

SPARE_DEGREES: Final = (10, 30, 100, 300, 1000, 3000, 10_000, 30_000)
"""m = k − d + 1: candidates for the joint choice of scale and degrees of freedom."""
CLOSE_ENOUGH: Final = 1.05
"""Noise falls with m for ever, but slowly; the first m within 5% of the best keeps the mean k·s² small."""
TOLERANCE: Final = 1e-3
"""Of the least scale, given up on the safe side: the replace-one curve takes long to evaluate."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Wishart(WishartFamily):
    """M = G + W, W ~ Wishart_d(s²I, k): as if k random rows had been added; positive semidefinite.

    (ε, δ)-DP by the exact curve of m = k − d + 1 and τ = 2^30/s², its infinite losses included, drawn
    exactly. E M = G + k·s²·I, which analysts subtract.
    proofs/additive-wishart.md#additive-wishart-added
    """

    name: ClassVar[str] = "wishart"
    quick: ClassVar[bool] = True

    degrees: int | None = None
    """k; None: the least that has nearly the least error."""

    def calibrated(self, guarantee: Guarantee, facts: PublicFacts) -> CalibratedWishart:
        """The pair (s², k) with nearly the least Frobenius error s²√k, or the least s² for the asked k."""
        refuse_pure(self.name, guarantee)
        asked = self._degrees_at_least(facts.width + 3)
        degrees = _best_degrees(guarantee, facts.width) if asked is None else asked
        scale = _scale_at_least(guarantee, facts.adjacency, degrees - facts.width + 1)
        return CalibratedWishart(
            epsilon=guarantee.epsilon, delta=guarantee.delta, scale=scale, degrees=degrees
        )

    @classmethod
    def keeps_promise(cls, stated: StatedNoise) -> bool:
        """By the exact curve of m = k − d + 1 and τ = 2^30/s²."""
        law = stated.law
        if not isinstance(law, AdditiveWishart):
            return False
        if not stated.has_parameters(scale=law.scale, degrees=law.degrees):
            return False
        if not (law.scale > 0 and law.degrees > stated.width and stated.plain_gram):
            return False
        spare = law.degrees - stated.width + 1
        return stated.curve_within(_curve(stated.adjacency, spare, ROW_NORM_SQUARED / law.scale))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CalibratedWishart(CalibratedWishartFamily):
    """G + W with its s² and k. proofs/additive-wishart.md#additive-wishart-added"""

    kind: ClassVar[type[Mechanism]] = Wishart

    epsilon: float
    delta: float
    scale: float
    """s², in lattice units."""
    degrees: int
    """k."""

    def law(self, width: int) -> AdditiveWishart:
        """The law of the noise, which does not depend on the width."""
        del width
        return AdditiveWishart(scale=self.scale, degrees=self.degrees)

    def expected(self, values: npt.NDArray[np.float64]) -> AdditiveWishart:
        """That of the noise, which is the same for every matrix."""
        return self.law(len(values))

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        """The exact curve at m = k − d + 1 and τ = 2^30/s²."""
        return _curve(facts.adjacency, self.degrees - facts.width + 1, ROW_NORM_SQUARED / self.scale)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        """Rounded noise on integers is rounding after noise."""
        from dpgram.privacy.sampling.wisharts import added_rows

        width = len(gram)
        noise = added_rows(width, self.scale, self.degrees, entropy.random_bytes)
        lower = np.tril(gram).astype(object)
        return Drawn(cells=lower + np.tril(lower, -1).T + noise, noise=self.law(width))


def _curve(adjacency: Adjacency, spare: int, ratio: float) -> AdditiveWishartCurve:
    return AdditiveWishartCurve(adjacency=adjacency, degrees=float(spare), ratio=ratio)


def _best_degrees(guarantee: Guarantee, width: int) -> int:
    """The first candidate k with nearly the least s²√k, judged by the add/remove curve, which is cheap."""
    candidates = [m + width - 1 for m in SPARE_DEGREES]
    scales = [_scale_at_least(guarantee, AddRemove(), m) for m in SPARE_DEGREES]
    errors = [scale * math.sqrt(k) for scale, k in zip(scales, candidates, strict=True)]
    return next(k for k, error in zip(candidates, errors, strict=True) if error <= CLOSE_ENOUGH * min(errors))


def _scale_at_least(guarantee: Guarantee, adjacency: Adjacency, spare: int) -> float:
    """The least s² for m spare degrees of freedom, to within 10⁻³ on the safe side."""
    # χ²_m noise is nearly Gaussian with deviation √(2m): a good place to start from.
    start = gdp_mu_at_most(guarantee.epsilon, guarantee.delta) * math.sqrt(2.0 * spare)
    ratio = greatest(
        lambda tau: guarantee.met_by(_curve(adjacency, spare, tau)), start=start, tolerance=TOLERANCE
    )
    return up(ROW_NORM_SQUARED / ratio)

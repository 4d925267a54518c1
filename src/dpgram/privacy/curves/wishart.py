"""Exact privacy curves of the Wishart family: sketch, inverse-Wishart sampling, additive Wishart noise.

Each reduces to one or two χ² variables, whatever the width of the matrix (proofs/sketch.md,
proofs/inverse-wishart.md, proofs/additive-wishart.md). All are for a neighbour that differs in one row; a
privacy unit of several rows is not covered.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.errors import GuaranteeError
from dpgram.privacy.adjacency import AddRemove, Adjacency
from dpgram.privacy.curves._additive_wishart import log_added, log_replaced, replaced_within
from dpgram.privacy.curves._chi_squared import (
    DEEP,
    excess_over_log,
    log_density,
    log_difference,
    log_lower,
    log_upper,
    relative_error,
)
from dpgram.privacy.curves.base import PrivacyCurve
from dpgram.privacy.curves.quadrature import RELATIVE_ERROR, gauss_legendre, support
from dpgram.privacy.curves.rounding import SLACK

Floats = npt.NDArray[np.float64]

DEGREES_AT_MOST: Final = 1e12
_REACH: Final = 16.0  # standard deviations of a χ variable on each side: beyond, e^{−250} is left


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class SketchCurve(PrivacyCurve):
    """M ~ Wishart_d(G + w²I, r)/r. Large r: t√(r/2)-GDP under add/remove, t√r-GDP under replace-one.

    With t = R²/w² (R²/(w² + s) where σ_min ≥ s is promised for the rows that both neighbours share) and F,
    S, f the cdf, survival function and density of χ²_r:

    small → big: F(c) − e^ε F(c/(1+t)), c = ((1+t)/t)(r ln(1+t) − 2ε);
    big → small: S(c/(1+t)) − e^ε S(c), c = ((1+t)/t)(r ln(1+t) + 2ε);
    replace-one: ∫ f(y) [S((h+y)/(1+t)) − e^ε S(h + (1+t)y)] dy, h = 2ε(1+t)/t.

    Proof: proofs/sketch.md#sketch-contraction.
    """

    adjacency: Adjacency
    degrees: float
    """r, the rows of the sketch."""
    ratio: float
    """t, the largest squared length of a row over the ridge."""

    def __post_init__(self) -> None:
        _check_degrees("the rows of a sketch", self.degrees, least=1.0)
        _check_ratio(self.ratio)

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        if isinstance(self.adjacency, AddRemove):
            there, back = _log_sketch_added(self.degrees, self.ratio, epsilon)
            return float(there), float(back)
        log_delta = _log_sketch_replaced(self.degrees, self.ratio, epsilon)
        return log_delta, log_delta

    def _log_directions_at(self, epsilons: Floats) -> Floats:
        if isinstance(self.adjacency, AddRemove):
            return np.array(_log_sketch_added(self.degrees, self.ratio, epsilons))
        return super(SketchCurve, self)._log_directions_at(epsilons)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class InverseWishartCurve(PrivacyCurve):
    """M ~ InvWishart_d(G + ψI, ν) with ν from public facts: the sketch's curve, its directions exchanged.

    M⁻¹ is a Wishart matrix of scale (G + ψI)⁻¹, so a row that enlarged the scale now shrinks it.

    Proof: proofs/inverse-wishart.md#inverse-wishart-claim.
    """

    adjacency: Adjacency
    degrees: float
    """ν, the degrees of freedom, the same for both neighbours."""
    ratio: float
    """t = R²/ψ."""

    def __post_init__(self) -> None:
        _check_degrees("the degrees of freedom", self.degrees, least=1.0)
        _check_ratio(self.ratio)

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        there, back = self._sketch.log_directions(epsilon)
        return back, there

    def _log_directions_at(self, epsilons: Floats) -> Floats:
        return self._sketch.log_directions_at(epsilons)[::-1]

    @property
    def _sketch(self) -> SketchCurve:
        return SketchCurve(adjacency=self.adjacency, degrees=self.degrees, ratio=self.ratio)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdditiveWishartCurve(PrivacyCurve):
    """M = G + W_d(s²I, k), by m = k − d + 1 and τ = R²/s²; the exact curve of χ²_m against τ + χ²_m.

    small → big: F(z) − e^ε F(z − τ), z = τ/(1 − e^{−(2ε+τ)/(m−2)}), the infinite losses F(τ) included;
    big → small: 0 for ε ≥ τ/2, else S(z − τ) − e^ε S(z), z = τ/(1 − e^{−(τ−2ε)/(m−2)}).
    Replace-one: a certified bound of the supremum over two shifts, as a rule 0.3% above it.

    Proof: proofs/additive-wishart.md#additive-wishart-added.
    """

    adjacency: Adjacency
    degrees: float
    """m = k − d + 1, the degrees of freedom that are left for one direction."""
    ratio: float
    """τ, the largest squared length of a row over the scale of the noise."""

    def __post_init__(self) -> None:
        least = 2.0 if isinstance(self.adjacency, AddRemove) else 3.0
        _check_degrees("the degrees of freedom, less the width, plus one,", self.degrees, least=least)
        _check_ratio(self.ratio)

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        if isinstance(self.adjacency, AddRemove):
            return log_added(self.degrees, self.ratio, epsilon)
        log_delta = log_replaced(self.degrees, self.ratio, epsilon)
        return log_delta, log_delta

    def within(self, epsilon: float, delta: float) -> bool:
        """Whether δ(ε) ≤ delta; under replace-one by covering the edges once, below this very level."""
        if isinstance(self.adjacency, AddRemove) or delta <= 0.0:
            return self.delta(epsilon) <= delta
        return replaced_within(self.degrees, self.ratio, epsilon, math.log(delta) - SLACK)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveCurve(PrivacyCurve):
    """β + E δ_inner(ε − l), l ~ N(μ²/2, μ²): a Gaussian look at σ_min first, then a draw that relies on it.

    The look is wrong (claims more than σ_min) with probability at most β; otherwise the draw has the inner
    curve, whatever the look said (Sheffet's Algorithms 2 and 5, proofs/sketch.md#sketch-adaptive).
    """

    inner: SketchCurve | InverseWishartCurve
    mu: float
    beta: float

    def __post_init__(self) -> None:
        if not (0.0 < self.mu < math.inf and 0.0 < self.beta < 1.0):
            raise GuaranteeError(
                "the look at σ_min needs a positive mu and a failure probability",
                got=(self.mu, self.beta),
                limit="0 < mu, 0 < beta < 1",
            )

    def _log_directions(self, epsilon: float) -> tuple[float, float]:
        centre = 0.5 * self.mu * self.mu

        def logs(z: Floats) -> Floats:
            pairs = self.inner.log_directions_at(epsilon - centre - self.mu * z)
            return np.asarray(pairs - 0.5 * z * z - 0.5 * math.log(2.0 * math.pi))

        low, high = support(lambda z: np.max(logs(z), axis=0), -_REACH, _REACH, points=33)
        nodes, weights = gauss_legendre(*np.linspace(low, high, 7), order=8)
        mass = np.exp(logs(nodes)) @ weights
        there, back = np.log(mass * (1.0 + 10.0 * RELATIVE_ERROR) + self.beta)
        return min(float(there), 0.0), min(float(back), 0.0)


def _log_sketch_added(degrees: float, t: float, epsilon: float | Floats) -> tuple[Floats, Floats]:
    """ln δ of χ²_r against (1 + t)χ²_r, in both directions, at one ε or at many.

    Proof: proofs/sketch.md#sketch-added.
    """
    excess = float(excess_over_log(t))
    shift = 2.0 * epsilon / (degrees * t)
    centre = math.log1p(t) - excess / t  # (1 + t)ln(1 + t)/t − 1
    away = shift * (1.0 + t)
    near = -excess / t
    lower = log_lower(degrees, np.array([centre - away, near - shift]))
    upper = log_upper(degrees, np.array([near + shift, centre + away]))
    return log_difference(lower[0], lower[1], epsilon), log_difference(upper[0], upper[1], epsilon)


def _log_sketch_replaced(degrees: float, t: float, epsilon: float) -> float:
    """The integral over b = χ²_r/r − 1 of one row's direction, the other's tail in closed form.

    Proof: proofs/sketch.md#sketch-replaced.
    """
    root = math.sqrt(degrees)
    threshold = 2.0 * epsilon * (1.0 + t) / (t * degrees)

    def logs(s: Floats) -> tuple[Floats, Floats]:
        # χ = √r + s, so that the density is smooth down to one degree of freedom; u its deviation.
        u = s * (2.0 * root + s) / degrees
        jacobian = np.log(2.0 * (root + s) / degrees)
        first = log_density(degrees, u) + log_upper(degrees, (threshold + u - t) / (1.0 + t))
        second = log_density(degrees, (u - t) / (1.0 + t)) + log_upper(degrees, threshold + u)
        return first + jacobian, epsilon - math.log1p(t) + second + jacobian

    low, high = support(lambda s: logs(s)[0], -min(root, _REACH), _REACH, points=97)
    nodes, weights = gauss_legendre(*np.linspace(low, high, 9), order=16)
    first, second = logs(nodes)
    peak = float(np.max(first))
    if peak == -math.inf:
        return -math.inf
    error = relative_error(first) + RELATIVE_ERROR
    kept = np.exp(second - peak) * (1.0 - error) if peak > DEEP else 0.0
    value = float(weights @ (np.exp(first - peak) * (1.0 + error) - kept))
    return min(peak + math.log(value), 0.0)


def _check_degrees(what: str, degrees: float, *, least: float) -> None:
    if not least <= degrees <= DEGREES_AT_MOST:
        raise GuaranteeError(
            f"{what} are out of range", got=degrees, limit=f"{least:g} to {DEGREES_AT_MOST:g}"
        )


def _check_ratio(ratio: float) -> None:
    if not 0.0 < ratio < math.inf:
        raise GuaranteeError(
            "the squared length of a row over the ridge or scale must be positive", got=ratio, limit="0 < t"
        )

"""δ of additive Wishart noise: closed under add/remove, a certified supremum under replace-one.

Replace-one reduces to P = W + diag(l₁, 0) against Q = W + diag(0, l₂) with W ~ Wishart₂(I, m + 1) and
0 ≤ l₁, l₂ ≤ τ. δ grows along rays, so one of the two is τ; along the two remaining edges the supremum is
bounded by branch and bound (proofs/additive-wishart.md).
"""

from __future__ import annotations

import itertools
import math
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.privacy.curves._chi_squared import (
    DEEP,
    log_density,
    log_difference,
    log_lower,
    log_upper,
    relative_error,
)
from dpgram.privacy.curves.quadrature import gauss_legendre, trimmed

Floats = npt.NDArray[np.float64]

_REACH: Final = 16.0
_TIGHTNESS: Final = 0.003
"""How far, in ln δ, the certified level lies above a value that is attained."""
_CELLS_AT_MOST: Final = 400
_SHORTEST: Final = 1e-6
_RATE_AT_MOST: Final = 600.0  # e^600 stands for infinity
_SHARE: Final = 8.0  # the step between two shifts may cost e^{−8} of δ
_PAIR_ERROR: Final = 1e-10
"""A bound of the relative error of one mean, held to by the tests with 50-digit quadrature."""


def log_added(m: float, tau: float, epsilon: float) -> tuple[float, float]:
    """(ln δ small → big, ln δ big → small) of χ²_m against τ + χ²_m at any real ε.

    Proof: proofs/additive-wishart.md#additive-wishart-added.
    """
    point = _threshold(m, tau, 2.0 * epsilon)
    lower = log_lower(m, [point, point - tau / m])
    there = float(log_difference(lower[0], lower[1], epsilon))
    if 2.0 * epsilon >= tau:
        return there, -math.inf
    point = _threshold(m, tau, -2.0 * epsilon)
    upper = log_upper(m, [point - tau / m, point])
    return there, float(log_difference(upper[0], upper[1], epsilon))


def _threshold(m: float, tau: float, gap: float) -> float:
    """z/m − 1 for z = τ/(1 − e^{−q}), q = (τ + gap)/(m − 2), without the cancellation of z against m."""
    q = (tau + gap) / (m - 2.0) if m > 2.0 else math.inf
    # 1/(1 − e^{−q}) = 1/q + ψ(q), and τ/q − m = −(gap·m + 2τ)/(τ + gap).
    series = 0.5 + q / 12.0 - q**3 / 720.0 + q**5 / 30240.0
    psi = series if q < 1e-2 else -1.0 / math.expm1(-q) - 1.0 / q
    return (tau * psi - (gap * m + 2.0 * tau) / (tau + gap)) / m


@lru_cache(maxsize=256)
def log_replaced(m: float, tau: float, epsilon: float) -> float:
    """ln of an upper bound of sup δ(l₁, l₂; ε), as a rule 0.3% above a value that is attained.

    Proof: proofs/additive-wishart.md#additive-wishart-rays.
    """
    level, rise = _log_attained(m, tau, epsilon) + _TIGHTNESS, _TIGHTNESS
    while level < 0.0 and not _covered(m, tau, epsilon, level):
        level, rise = level + rise, 2.0 * rise
    return min(level, 0.0)


def replaced_within(m: float, tau: float, epsilon: float, log_delta: float) -> bool:
    """Whether sup δ(l₁, l₂; ε) is certified to be at most δ, by the same margin; faster than the supremum.

    Proof: proofs/additive-wishart.md#additive-wishart-certificate.
    """
    if _log_attained(m, tau, epsilon, enough=log_delta - _TIGHTNESS) + _TIGHTNESS > log_delta:
        return False
    return log_delta >= 0.0 or _covered(m, tau, epsilon, log_delta)


def _log_attained(m: float, tau: float, epsilon: float, enough: float = math.inf) -> float:
    """The largest ln δ at a few points of both edges, corners first; one above `enough` ends the search."""
    best = -math.inf
    for free in (1.0, 0.0, 0.5, 0.25, 0.75):
        best = max(best, log_pair(m, free * tau, tau, epsilon), log_pair(m, tau, free * tau, epsilon))
        if best > enough:
            break
    return best


def _covered(m: float, tau: float, epsilon: float, level: float) -> bool:
    """Whether both edges are covered by intervals on which δ is proven to stay below the level.

    An interval grows as long as it succeeds and is halved when it fails; one that must be too short to pay
    off, or too many of them, means that the level is too close to the supremum.

    Proof: proofs/additive-wishart.md#additive-wishart-certificate.
    """
    for edge in (0, 1):
        low, length = 0.0, tau
        for _ in range(_CELLS_AT_MOST):
            high = min(low + length, tau)
            if _log_cell(edge, m, tau, low, high, epsilon, level) <= level:
                low, length = high, 1.6 * length
            else:
                length *= 0.5
            if low >= tau or length < _SHORTEST * tau / (1.0 + tau):
                break
        if low < tau:
            return False
    return True


def _log_cell(edge: int, m: float, tau: float, a: float, b: float, epsilon: float, level: float) -> float:
    """ln of a bound of δ over an interval [a, b] of the free shift.

    With δ₁ the curve of a step of length b − a (big → small), and any η ≥ 0,
    first edge, l₁ ∈ [a, b] and l₂ = τ: δ ≤ e^η δ(a, τ; ε − η) + δ₁(η);
    second edge, l₁ = τ and l₂ ∈ [a, b]: δ ≤ δ(τ, b; ε − η) + e^{ε−η} δ₁(η).
    There the step must be small after it is multiplied by e^ε, so η is chosen for a level that is ε lower; a
    bound for every η is a bound for this one.
    """
    if edge == 0:
        eta, log_step = _step(m, b - a, level)
        return float(np.logaddexp(eta + log_pair(m, a, tau, epsilon - eta), log_step))
    eta, log_step = _step(m, b - a, level - epsilon)
    return float(np.logaddexp(log_pair(m, tau, b, epsilon - eta), epsilon - eta + log_step))


def _step(m: float, length: float, level: float) -> tuple[float, float]:
    """(η, ln δ₁(η)): η = length/2 makes δ₁ = 0; where the noise is far wider than the step, less will do."""
    half = 0.5 * length
    mu = length / math.sqrt(2.0 * m)
    eta = mu * (math.sqrt(2.0 * (_SHARE - level)) + 0.5 * mu)
    if eta < half and (log_step := log_added(m, length, eta)[1]) < level - _SHARE:
        return eta, log_step
    return half, -math.inf


def log_pair(m: float, l1: float, l2: float, epsilon: float) -> float:
    """ln δ(l₁, l₂; ε) of W + diag(l₁, 0) against W + diag(0, l₂), to a relative 10⁻¹⁰ of its larger term.

    With e₀ = ε − (l₁ − l₂)/2, c = (m − 2)/2, n and y ~ χ²_{m+1}, w ~ Beta(m/2, 1/2), all independent, F and S
    the cdf and survival function of χ²_{m+1}, g = 1 − e^{−e₀/c} and g' = e^{e₀/c} − 1:
    e₀ ≥ 0: E F(l₂(n + l₁)/(l₁ + g·n·w)) − e^ε E F(l₂(n − l₁)₊/(l₁ + g'·n·w));
    e₀ < 0: E S(l₁(y − l₂)₊/(l₂ − g·y·w)) − e^ε E S(l₁(y + l₂)/(l₂ − g'·y·w)), the event solved for n.

    Proof: proofs/additive-wishart.md#additive-wishart-pair.
    """
    if l2 == 0.0 and 2.0 * epsilon >= l1:
        return -math.inf
    rate = (epsilon - 0.5 * (l1 - l2)) / (0.5 * (m - 2.0))
    rate = max(min(rate, _RATE_AT_MOST), -_RATE_AT_MOST)
    above = rate >= 0.0
    own, other = (l1, l2) if above else (l2, l1)
    gain = (m + 1.0) * math.expm1(abs(rate))
    loss = -(m + 1.0) * math.expm1(-abs(rate))
    first = _log_mean(m, own, other, loss if above else gain, above=above, first=True)
    if first < DEEP:
        return first
    second = epsilon + _log_mean(m, own, other, gain if above else loss, above=above, first=False)
    # What a deviation loses by rounding counts √r times in units of the standard deviation.
    error = (
        _PAIR_ERROR
        + float(relative_error(first))
        + 1e-15 * math.sqrt(m) * (1.0 + math.sqrt(max(-2.0 * first, 0.0)))
    )
    left = 1.0 + error - math.exp(min(second - first, 0.0)) * (1.0 - error)
    return min(first + math.log(left), 0.0)


def _log_mean(m: float, own: float, other: float, gamma: float, *, above: bool, first: bool) -> float:
    """ln E T(other·(n ± own)₊/(own + γ·n·w/r)) over n = (√r + s)² and w = 1/cosh² x, T = F above, S below.

    In these variables both densities are smooth with tails that fall at least exponentially.
    """
    r = m + 1.0
    root = math.sqrt(r)
    sign = 1.0 if above == first else -1.0
    log_tail = log_lower if above else log_upper

    def log_integrand(s: Floats, x: Floats) -> Floats:
        u = (s * (2.0 * root + s) / r)[:, None]
        denominator = own + gamma * (1.0 + u) / (1.0 + np.sinh(x) ** 2)
        # Numerator minus denominator, in units of r, arranged so that m = 10¹² loses no digits.
        rest = (other - own - gamma) + (other - gamma) * u + sign * own * other / r
        rest = rest + gamma * np.tanh(x) ** 2 * (1.0 + u)
        deviation = np.where(1.0 + u + sign * own / r > 0.0, rest / denominator, -1.0)
        weight = log_density(r, u) + np.log(2.0 * (root + s) / r)[:, None]
        return np.asarray(log_tail(r, deviation) + weight - 0.5 * m * np.log1p(np.sinh(x) ** 2))

    kink = math.sqrt(own) - root if sign < 0.0 else -root
    start = max(kink if above else -root, -root * (1.0 - 1e-5), -_REACH)
    s_ends = start, max(start, 0.0) + _REACH
    x_ends = 0.0, _spread(m) + 0.5 * math.log(max(gamma / other, 1.0))
    for _ in range(2):  # a peak may be much narrower than the first grid
        s, x = np.linspace(*s_ends, 33), np.linspace(*x_ends, 17)
        rough = log_integrand(s, x)
        if np.max(rough) == -math.inf:
            return -math.inf
        s_ends, x_ends = trimmed(s, np.max(rough, axis=1)), trimmed(x, np.max(rough, axis=0))
    # With few degrees of freedom there are singularities close to the real axis.
    s, s_weights = gauss_legendre(*_edges(*s_ends, kink, 1.5 if m < 60.0 else 20.0), order=22)
    x, x_weights = gauss_legendre(*_edges(*x_ends, x_ends[0], 0.7), order=20)
    values = log_integrand(s, x)
    peak = float(np.max(values))
    total = s_weights @ np.exp(values - peak) @ x_weights
    return peak + math.log(float(total)) - _log_norm(m)


def _edges(low: float, high: float, kink: float, length: float) -> list[float]:
    """At least two panels, none longer than `length`, with an edge at a kink inside."""
    inner = [low, kink, high] if low < kink < high else [low, high]
    pieces = max(math.ceil((high - low) / length), 2)
    shares = (np.linspace(a, b, pieces + 1)[:-1] for a, b in itertools.pairwise(inner))
    return [*map(float, np.concatenate(list(shares))), high]


def _spread(m: float) -> float:
    """How far x reaches: nearly N(0, 1/m) for many degrees of freedom, e^{−mx} for few."""
    return 14.0 / math.sqrt(m) + 40.0 / m


@lru_cache(maxsize=256)
def _log_norm(m: float) -> float:
    """ln ∫ cosh^{−m} x dx over x ≥ 0, to full precision for any m."""
    nodes, weights = gauss_legendre(*np.linspace(0.0, _spread(m), 17), order=16)
    return math.log(float(weights @ np.exp(-0.5 * m * np.log1p(np.sinh(nodes) ** 2))))

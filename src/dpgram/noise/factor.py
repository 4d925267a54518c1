"""The factor of a series: what is published of period t is Y_t = Σ_{s ≤ t} c_{t−s} X_s + Z_t, in integers.

c is the series of 1/√(1 − x), times 2^bits and rounded: c_0 = 2^bits, c_j ≈ c_{j−1}·(2j − 1)/(2j). The whole
numbers are the factor, so that exact sums stay exact and Z_t is plain noise, drawn anew in every period. With
w such that Σ_s w_s Y_s has the sum of X over a window, exactly for the *rounded* c, the noise of that window
is Σ_s w_s Z_s. proofs/series.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from typing import Final

from dpgram.errors import GuaranteeError, shown, whole

FACTOR_BITS: Final = 12
"""c_0 = 2^12: rounding costs less than a thousandth of the noise at that many periods."""
MOST_PERIODS: Final = 480
"""Forty years of months."""


def checked_horizon(periods: object, participations: object, apart: object) -> tuple[int, int, int]:
    """Of how many periods a series is, in how many a person counts, and how far apart these are.

    >>> from dpgram.noise.factor import checked_horizon
    >>> checked_horizon(24, 2, 6)
    (24, 2, 6)
    """
    horizon = _up_to(MOST_PERIODS, "periods", periods)
    return horizon, _up_to(horizon, "participations", participations), _up_to(horizon, "apart", apart)


def _up_to(most: int, name: str, value: object) -> int:
    count = whole(value)
    if count is None or not 1 <= count <= most:
        raise GuaranteeError(
            f"{name} must be a whole number in its range", got=shown(value), limit=f"1 ≤ {name} ≤ {most}"
        )
    return count


@lru_cache(maxsize=32)
def coefficients(periods: int, bits: int = FACTOR_BITS) -> tuple[int, ...]:
    """c_0, …, c_{periods − 1}: positive and never increasing, as the sensitivity needs.

    >>> from dpgram.noise.factor import coefficients
    >>> coefficients(4, bits=6)
    (64, 32, 24, 20)
    """
    found, exact = [], Fraction(1 << bits)
    for j in range(periods):
        if j:
            exact *= Fraction(2 * j - 1, 2 * j)
        found.append(max(round(exact), 1))
    return tuple(found)


@lru_cache(maxsize=32)
def sensitivity_squared(
    periods: int, participations: int = 1, apart: int = 1, bits: int = FACTOR_BITS
) -> int:
    """max |Σ_i C e_{t_i}|² over at most `participations` periods t_i, at least `apart` from each other.

    The worst are 1, 1 + apart, 1 + 2·apart, …: proofs/series.md#series-sensitivity.
    """
    c = coefficients(periods, bits)
    starts = range(0, periods, apart)[:participations]
    return sum(sum(c[t - start] for start in starts if start <= t) ** 2 for t in range(periods))


@lru_cache(maxsize=32)
def _total_weights(periods: int, bits: int) -> tuple[Fraction, ...]:
    """b with b·c = 1/(1 − x): Σ_j b_j Y_{t−j} has the sum of the periods up to t."""
    c = coefficients(periods, bits)
    # Whole numbers n_j = b_j·c_0^(j+1), by shifts, since c_0 is a power of two.
    found: list[int] = []
    for j in range(periods):
        before = sum((c[i] * found[j - i]) << (bits * (i - 1)) for i in range(1, j + 1))
        found.append((1 << (bits * j)) - before)
    return tuple(Fraction(n, 1 << (bits * (j + 1))) for j, n in enumerate(found))


@lru_cache(maxsize=512)
def window_weights(first: int, last: int, *, periods: int, bits: int = FACTOR_BITS) -> tuple[Fraction, ...]:
    """w_1, …, w_last: Σ_s w_s Y_s = X_first + … + X_last + Σ_s w_s Z_s. Periods are counted from 1.

    >>> from dpgram.noise.factor import window_weights
    >>> [str(weight) for weight in window_weights(2, 2, periods=2, bits=1)]
    ['-1/4', '1/2']
    """
    b = _total_weights(periods, bits)
    return tuple(b[last - s] - (b[first - 1 - s] if s < first else 0) for s in range(1, last + 1))


def overlap(one: tuple[Fraction, ...], other: tuple[Fraction, ...]) -> float:
    """Σ_s w_s w'_s: the covariance of the noises of two windows, in units of the stream's σ²."""
    tops, bottom = over_one(one)
    others, below = over_one(other)
    return float(Fraction(sum(a * b for a, b in zip(tops, others, strict=False)), bottom * below))


def over_one(weights: Sequence[Fraction]) -> tuple[list[int], int]:
    """Numerators over one denominator, and that: fractions would be reduced after every step."""
    bottom = math.lcm(*(weight.denominator for weight in weights))
    return [weight.numerator * (bottom // weight.denominator) for weight in weights], bottom


@lru_cache(maxsize=512)
def window_norm(first: int, last: int, *, periods: int, bits: int = FACTOR_BITS) -> float:
    """|w|: the noise of a window in units of the stream's σ."""
    weights = window_weights(first, last, periods=periods, bits=bits)
    return math.sqrt(overlap(weights, weights))


def noise_factor(
    first: int,
    last: int,
    *,
    periods: int,
    participations: int = 1,
    apart: int = 1,
    bits: int = FACTOR_BITS,
) -> float:
    """The noise of a window, relative to one release of its rows with the same guarantee.

    >>> from dpgram.noise.factor import noise_factor
    >>> round(noise_factor(1, 60, periods=60), 2)
    2.37
    """
    moved = math.sqrt(sensitivity_squared(periods, participations, apart, bits))
    return moved * window_norm(first, last, periods=periods, bits=bits)

"""Tails of χ² in log space, for 1 to 10¹² degrees of freedom.

A point is given by its deviation u = x/r − 1 from the mean, because for r = 10¹² a point that is one standard
deviation away differs from the mean in the seventh digit. Up to 40 000 degrees scipy's incomplete gamma
functions serve; above, its lower tail loses whole digits (at r = 10⁸ and five standard deviations it is a
quarter too small, which would under-protect), so Temme's uniform expansion is used instead.
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import numpy.typing as npt
from scipy.special import erfcx, gammainc, gammaincc, gammaln

Floats = npt.NDArray[np.float64]

_UNIFORM_ABOVE: Final = 2e4
"""The shape a = r/2 from which on the uniform expansion is accurate to 10⁻¹⁵ and taken."""
_UNIFORM_WITHIN: Final = 0.5
"""|η| up to which its series are used; farther out a tail is below e^{−2500} and Chernoff's bound serves."""
_LEAST: Final = 1e-290
_LARGEST: Final = 1e200
DEEP: Final = -600.0
"""A tail whose logarithm is below this may be Chernoff's bound: nothing is subtracted from it."""

# Coefficients of c_k(η) in Q(a, x) = ½erfc(η√(a/2)) + e^{−aη²/2}/√(2πa)·Σ c_k(η)a^{−k}: exact fractions,
# rounded, from c₀ = 1/u − 1/η and c_k = c_{k−1}'/η + (−1)^k g_k/u with Stirling's coefficients g_k.
_SERIES: Final = (
    (
        -1 / 3,
        1 / 12,
        -2 / 135,
        1 / 864,
        0.0003527336860670194,
        -0.0001787551440329218,
        3.919263178522438e-05,
        -2.185448510679992e-06,
        -1.85406221071516e-06,
        8.296711340953087e-07,
        -1.7665952736826078e-07,
        6.707853543401498e-09,
        1.0261809784240309e-08,
        -4.382036018453353e-09,
        9.14769958223679e-10,
        -2.5514193994946248e-11,
    ),
    (
        -1 / 540,
        -1 / 288,
        1 / 378,
        -77 / 77760,
        0.00020576131687242798,
        -4.018775720164609e-07,
        -1.8098550334489977e-05,
        7.64916091608111e-06,
        -1.6120900894563446e-06,
        4.647127802807434e-09,
        1.378633446915721e-07,
        -5.752545603517705e-08,
    ),
    (
        25 / 6048,
        -139 / 51840,
        1 / 1296,
        2.0093878600823047e-06,
        -0.0001073665322636516,
        5.2923448829120125e-05,
        -1.2760635188618728e-05,
    ),
    (101 / 155520, 571 / 2488320, -0.0004691894943952557, 0.00026772063206283885),
)

_LOGARITHM: Final = tuple(1.0 / (2 * k + 3) for k in range(12))
"""Coefficients of artanh(s)/s³ − 1/s² in powers of s²."""


def excess_over_log(deviation: npt.ArrayLike) -> Floats:
    """u − ln(1 + u) for u > −1, to full relative precision near 0 as well."""
    u = np.asarray(deviation, dtype=np.float64)
    near = np.abs(u) < 0.25
    s = np.where(near, u, 0.0) / (2.0 + np.where(near, u, 0.0))
    # ln(1 + u) = 2(s + s³/3 + …) and u − 2s = s·u.
    square = s * s
    series = _polynomial(square, _LOGARITHM)
    with np.errstate(divide="ignore"):
        far = u - np.log1p(np.where(near, 0.0, u))
    return np.asarray(np.where(near, s * np.where(near, u, 0.0) - 2.0 * s * square * series, far))


def log_lower(degrees: float, deviation: npt.ArrayLike) -> Floats:
    """ln P(χ²_r ≤ r(1 + u)): −inf for u ≤ −1, 0 for u = inf."""
    return _log_tail(degrees, np.asarray(deviation, dtype=np.float64), lower=True)


def log_upper(degrees: float, deviation: npt.ArrayLike) -> Floats:
    """ln P(χ²_r > r(1 + u)): 0 for u ≤ −1, −inf for u = inf."""
    return _log_tail(degrees, np.asarray(deviation, dtype=np.float64), lower=False)


def relative_error(log_tail: npt.ArrayLike) -> Floats:
    """A bound of the relative error of a tail, of which ln is given: 5·10⁻¹⁴ for each unit of it."""
    return np.asarray(5e-14 * (4.0 - np.maximum(log_tail, -1e6)))


def log_difference(log_first: npt.ArrayLike, log_second: npt.ArrayLike, shift: npt.ArrayLike = 0.0) -> Floats:
    """ln(A − e^shift·B) for two tails A ≥ e^shift·B, rounded up by the errors of both; ln A where A is tiny.

    The error of B is that of its own tail: e^shift·B is close to A however small B is.
    """
    whole = np.asarray(log_first, dtype=np.float64)
    tail = np.maximum(whole, DEEP)
    first, second = relative_error(tail), relative_error(log_second)
    ratio = np.exp(np.minimum(shift + np.asarray(log_second) - tail, 0.0))
    left = 1.0 + first - ratio * np.maximum(1.0 - second, 0.0)
    return np.asarray(np.where(whole < DEEP, whole, np.minimum(tail + np.log(left), 0.0)))


def log_density(degrees: float, deviation: npt.ArrayLike) -> Floats:
    """ln of the density of u = χ²_r/r − 1, that is ln(r·f_r(r(1 + u)))."""
    a = 0.5 * degrees
    u = np.asarray(deviation, dtype=np.float64)
    with np.errstate(divide="ignore"):
        tilt = np.log1p(np.maximum(u, -1.0))
    return np.asarray(
        0.5 * math.log(a / (2.0 * math.pi)) - a * excess_over_log(u) - tilt - _log_gamma_star(a)
    )


def _log_gamma_star(a: float) -> float:
    """ln of Γ(a) over Stirling's formula."""
    if a < 20.0:
        return float(gammaln(a)) - ((a - 0.5) * math.log(a) - a + 0.5 * math.log(2.0 * math.pi))
    return 1.0 / (12.0 * a) - 1.0 / (360.0 * a**3) + 1.0 / (1260.0 * a**5) - 1.0 / (1680.0 * a**7)


def _log_tail(degrees: float, u: Floats, *, lower: bool) -> Floats:
    a = 0.5 * degrees
    inside = np.clip(u, np.nextafter(-1.0, 0.0), _LARGEST)
    log_small = _plain(a, inside) if a <= _UNIFORM_ABOVE else _uniform(a, inside)
    small_side = inside < 0.0 if lower else inside >= 0.0
    value = np.where(small_side, log_small, np.log1p(-np.exp(log_small)))
    value = np.where(u <= -1.0, -np.inf if lower else 0.0, value)
    return np.asarray(np.where(u >= _LARGEST, 0.0 if lower else -np.inf, value))


def _plain(a: float, u: Floats) -> Floats:
    """ln of the lower tail for u < 0 and of the upper one for u ≥ 0; Chernoff's bound where it underflows."""
    x = a * (1.0 + u)
    below = u < 0.0
    tail = np.empty_like(x)
    tail[below] = gammainc(a, x[below])
    tail[~below] = gammaincc(a, x[~below])
    return np.asarray(np.where(tail > _LEAST, np.log(np.maximum(tail, _LEAST)), -a * excess_over_log(u)))


def _uniform(a: float, u: Floats) -> Floats:
    """The same by the uniform expansion, with e^{−aη²/2} taken out before the logarithm."""
    half_square = excess_over_log(u)
    eta = np.minimum(np.sqrt(2.0 * half_square), _UNIFORM_WITHIN)
    side = np.where(u < 0.0, -1.0, 1.0)
    series = sum(_polynomial(side * eta, c) / a**k for k, c in enumerate(_SERIES))
    factor = 0.5 * erfcx(eta * math.sqrt(0.5 * a)) + side * series / math.sqrt(2.0 * math.pi * a)
    return np.asarray(-a * half_square + np.where(eta < _UNIFORM_WITHIN, np.log(factor), 0.0))


def _polynomial(x: Floats, coefficients: tuple[float, ...]) -> Floats:
    """Σ c_k xᵏ by Horner's rule: numpy's own spends most of its time on a few points before it begins."""
    *rest, value = coefficients
    found = np.full_like(x, value)
    for coefficient in reversed(rest):
        found = coefficient + found * x
    return found

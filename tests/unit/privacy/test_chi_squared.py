"""Tails of χ² against 50-digit quadrature of the density, from 1 to 10¹² degrees of freedom."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from scipy.special import gammainc

from dpgram.privacy.curves._chi_squared import (
    excess_over_log,
    log_density,
    log_difference,
    log_lower,
    log_upper,
    relative_error,
)

DEGREES = [1, 2, 7, 44, 1000, 30_000, 39_999, 40_001, 10**6, 10**8, 10**12]


def log_tail(degrees: float, deviation: float) -> float:
    """ln of the tail beyond r(1 + u), away from the mean, by 50-digit quadrature of the density."""
    with mpmath.workdps(50):
        a, u = mpmath.mpf(degrees) / 2, mpmath.mpf(deviation)
        x = a * (1 + u)
        front = a * mpmath.log(x) - x - mpmath.loggamma(a)  # ln of x times the density at x

        def ratio(v: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp((a - 1) * mpmath.log1p(v) - x * v) if v > -1 else mpmath.mpf(0)

        scale = min(1 / max(abs(x - a + 1), mpmath.mpf("1e-9")), 1 / mpmath.sqrt(a))
        reach = [k * scale for k in (0, 0.5, 2, 6, 14, 30, 70, 200)]
        edges = sorted({-min(k, mpmath.mpf(1)) for k in reach}) if u < 0 else reach
        return float(front + mpmath.log(mpmath.quad(ratio, edges)))


@pytest.mark.parametrize("degrees", DEGREES)
@pytest.mark.parametrize("away", [-12.0, -5.0, -0.7, 0.3, 4.0, 12.0])
def test_tails(degrees: int, away: float) -> None:
    deviation = away * math.sqrt(2 / degrees)
    if deviation <= -1.0:
        deviation = -0.9
    truth = log_tail(degrees, deviation)
    own = log_lower if deviation < 0 else log_upper
    other = log_upper if deviation < 0 else log_lower
    found = float(own(degrees, deviation))
    assert abs(found - truth) <= float(relative_error(found))
    assert float(other(degrees, deviation)) == pytest.approx(math.log1p(-math.exp(truth)), rel=1e-9)


def test_the_reason_for_not_using_scipy_alone() -> None:
    """At r = 10⁸ its lower tail is far too small five standard deviations out; ours is not."""
    degrees, deviation = 1e8, -5 * math.sqrt(2e-8)
    plain = math.log(gammainc(0.5 * degrees, 0.5 * degrees * (1 + deviation)))
    truth = log_tail(degrees, deviation)
    assert plain < truth - 0.2
    assert float(log_lower(degrees, deviation)) == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("degrees", [5.0, 300.0, 1e6, 1e12])
def test_far_tails_are_bounded_from_above(degrees: float) -> None:
    """Chernoff's bound where a float underflows: never below the truth, and continuous in order."""
    deviations = np.array([0.9, 5.0, 100.0, 1e4])
    values = log_upper(degrees, deviations)
    assert np.all(np.diff(values) < 0)
    for deviation, value in zip(deviations, values, strict=True):
        assert value >= log_tail(degrees, float(deviation)) - float(relative_error(value))
        assert value <= -0.5 * degrees * float(excess_over_log(deviation)) + 1e-9


@pytest.mark.parametrize("degrees", [3.0, 1e5])
def test_the_ends(degrees: float) -> None:
    assert log_lower(degrees, [-1.0, -2.0, np.inf]).tolist() == [-math.inf, -math.inf, 0.0]
    assert log_upper(degrees, [-1.0, -2.0, np.inf]).tolist() == [0.0, 0.0, -math.inf]


@pytest.mark.parametrize("u", [-0.999, -0.3, -0.2, -1e-3, -1e-9, 1e-12, 1e-4, 0.24, 0.26, 7.0])
def test_excess_over_log(u: float) -> None:
    with mpmath.workdps(60):
        exact = mpmath.mpf(u) - mpmath.log1p(mpmath.mpf(u))
    assert float(excess_over_log(u) / exact) == pytest.approx(1.0, rel=2e-15)


@pytest.mark.parametrize("degrees", [1, 5, 39, 41, 10**4, 10**12])
@pytest.mark.parametrize("away", [-0.5, 0.0, 2.0, 9.0])
def test_density(degrees: int, away: float) -> None:
    u = max(away * math.sqrt(2 / degrees), -0.9)
    with mpmath.workdps(50):
        a = mpmath.mpf(degrees) / 2
        x = a * (1 + mpmath.mpf(u))
        exact = (a - 1) * mpmath.log(x) - x - mpmath.loggamma(a) + mpmath.log(a)
    assert float(log_density(degrees, u) - exact) == pytest.approx(0.0, abs=5e-14)


def test_difference_is_rounded_up() -> None:
    assert log_difference(math.log(0.5), math.log(0.25)) >= math.log(0.25)
    assert log_difference(math.log(0.5), math.log(0.25)) == pytest.approx(math.log(0.25), rel=1e-11)
    assert log_difference(-math.inf, -math.inf) == -math.inf
    assert -40.0 < log_difference(-10.0, -10.0) < -30.0
    # A deep tail times a large factor: the error is that of the tail itself, and never below zero.
    assert log_difference(-1.0, -1001.0, 1000.0) >= math.log(float(relative_error(-1001.0))) - 1.0
    assert log_difference(-1.0, -1001.0, 1000.0) > log_difference(-1.0, -1.0)

"""Exact curves against 50-digit quadrature, against each other, and in their order."""

from __future__ import annotations

import math

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import GuaranteeError
from dpgram.privacy.curves.base import (
    ConcentratedCurve,
    GaussianCurve,
    PrivacyCurve,
    PureCurve,
)
from dpgram.privacy.guarantee import gdp_mu_at_most

EPSILONS = [1e-3, 1e-2, 0.1, 0.5, 1.0, 3.0, 10.0, 50.0]
DELTAS = [1e-30, 1e-20, 1e-9, 1e-6, 1e-2, 0.5]
CURVES = [
    GaussianCurve(0.01),
    GaussianCurve(1.0),
    GaussianCurve(9.0),
    PureCurve(0.1),
    PureCurve(3.0),
    ConcentratedCurve(0.02),
    ConcentratedCurve(3.0),
]


def gaussian_by_quadrature(mu: float, epsilon: float) -> mpmath.mpf:
    """∫ (φ(x − μ) − e^ε φ(x))₊ dx with 50 digits, from the densities alone."""
    with mpmath.workdps(50):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        start = e / m + m / 2

        def integrand(z: mpmath.mpf) -> mpmath.mpf:
            x = start + z
            return mpmath.exp(-((x - m) ** 2) / 2) - mpmath.exp(e - x * x / 2)

        return mpmath.quad(integrand, [0, 1, 4, 12, 30]) / mpmath.sqrt(2 * mpmath.pi)


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_gaussian_curve_against_quadrature(epsilon: float) -> None:
    for target in DELTAS:
        mu = gdp_mu_at_most(epsilon, target)
        truth = gaussian_by_quadrature(mu, epsilon)
        ours = GaussianCurve(mu).delta(epsilon)
        assert mpmath.mpf(ours) >= truth
        assert float(mpmath.mpf(ours) / truth - 1) < 1e-9
        assert float(truth / target) == pytest.approx(1.0, rel=1e-9)


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 0.3, 2.0, 40.0])
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 0.7, 30.0])
def test_gaussian_curve_is_never_below_the_truth_anywhere(mu: float, epsilon: float) -> None:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        truth = mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)
        log_truth = mpmath.log(truth)
    ours = GaussianCurve(mu).log_delta(epsilon)
    assert ours >= float(log_truth)
    # Beyond δ = 10⁻¹⁰⁰⁰ the logarithm itself is only good to its own last digits.
    assert ours - float(log_truth) < 1e-8 + 1e-13 * abs(float(log_truth))


def test_gaussian_curve_survives_underflow() -> None:
    curve = GaussianCurve(1e-3)
    assert 0.0 < curve.delta(1.0) < 1e-300
    assert curve.log_delta(1.0) == pytest.approx(-0.5e6, rel=1e-3)
    assert GaussianCurve(1e-200).delta(1e200) == 0.0


@pytest.mark.parametrize("limit", [1e-3, 0.1, 1.0, 10.0, 50.0])
def test_pure_curve_is_randomised_response(limit: float) -> None:
    with mpmath.workdps(50):
        for fraction in (0.0, 0.3, 0.9, 0.999999, 1.0, 1.5):
            e = mpmath.mpf(limit * fraction)
            p, q = 1 / (1 + mpmath.exp(-mpmath.mpf(limit))), 1 / (1 + mpmath.exp(mpmath.mpf(limit)))
            truth = sum(max(a - mpmath.exp(e) * b, 0) for a, b in [(p, q), (q, p)])
            ours = PureCurve(limit).delta(limit * fraction)
            assert ours >= truth - mpmath.mpf("1e-48")
            assert ours <= truth * (1 + mpmath.mpf("1e-12")) + mpmath.mpf("1e-16") * limit


@pytest.mark.parametrize("limit", [0.2, 1.0, 6.0])
@pytest.mark.parametrize("fraction", [0.05, 0.5, 0.95])
def test_laplace_noise_is_below_the_pure_curve(limit: float, fraction: float) -> None:
    """The Laplace pair, integrated at 50 digits, is ε₀-DP, so it cannot exceed the worst ε₀-DP pair."""
    with mpmath.workdps(50):
        a, e = mpmath.mpf(limit), mpmath.mpf(limit * fraction)

        def integrand(x: mpmath.mpf) -> mpmath.mpf:
            return (mpmath.exp(-abs(x)) - mpmath.exp(e - abs(x - a))) / 2

        # The loss |x − a| − |x| passes ε at x = (a − ε)/2.
        truth = mpmath.quad(integrand, [-60, -5, -1, 0, (a - e) / 2])
    assert float(truth) <= PureCurve(limit).delta(limit * fraction)
    assert float(truth) >= 0.3 * PureCurve(limit).delta(limit * fraction)


@pytest.mark.parametrize("rho", [1e-6, 1e-3, 0.1, 2.0, 30.0])
@pytest.mark.parametrize("epsilon", [1e-3, 0.5, 5.0, 50.0])
def test_concentrated_curve_is_the_minimum_over_orders(rho: float, epsilon: float) -> None:
    with mpmath.workdps(50):
        r, e = mpmath.mpf(rho), mpmath.mpf(epsilon)

        def bound(log_excess: float) -> mpmath.mpf:
            alpha = 1 + mpmath.exp(log_excess)
            return (alpha - 1) * (alpha * r - e) + alpha * mpmath.log1p(-1 / alpha) - mpmath.log(alpha - 1)

        least = min(bound(-15 + 0.05 * i) for i in range(800))
    ours = ConcentratedCurve(rho).log_delta(epsilon)
    assert ours <= min(float(least), 0.0) + 1e-9 * (1 + abs(float(least)))
    # The grid is 0.05 apart in ln(α − 1), where the function is nearly quadratic with this curvature.
    assert ours >= min(float(least) * (1 + 1e-3) - 1e-3, 0.0)


@pytest.mark.parametrize("mu", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_concentrated_curve_contains_the_gaussian(mu: float, epsilon: float) -> None:
    assert ConcentratedCurve(0.5 * mu * mu).log_delta(epsilon) >= GaussianCurve(mu).log_delta(epsilon)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
@given(ends=st.tuples(st.floats(-6, 6), st.floats(-6, 6)))
@settings(max_examples=60, deadline=None)
def test_curves_fall_with_epsilon(curve: PrivacyCurve, ends: tuple[float, float]) -> None:
    left, right = curve.delta(min(ends)), curve.delta(max(ends))
    assert 0.0 <= right <= left * (1 + 1e-10) <= 1.0 + 1e-10


@pytest.mark.parametrize("curve", [c for c in CURVES if not isinstance(c, ConcentratedCurve)], ids=repr)
@given(ends=st.tuples(st.floats(-6, 6), st.floats(-6, 6)), weight=st.floats(0, 1))
@settings(max_examples=60, deadline=None)
def test_exact_curves_are_convex_in_the_exponential_of_epsilon(
    curve: PrivacyCurve, ends: tuple[float, float], weight: float
) -> None:
    """δ is a supremum of functions linear in e^ε; a zCDP bound is no curve of a pair, so it is not here."""
    low, high = ends
    left, right = curve.delta(low), curve.delta(high)
    between = math.log(weight * math.exp(low) + (1 - weight) * math.exp(high))
    assert curve.delta(between) <= (weight * left + (1 - weight) * right) * (1 + 1e-9) + 1e-14


@pytest.mark.parametrize("family", [GaussianCurve, PureCurve, ConcentratedCurve])
@given(parameter=st.floats(1e-3, 20), factor=st.floats(1.001, 4), epsilon=st.floats(-3, 30))
@settings(max_examples=80, deadline=None)
def test_curves_grow_with_their_parameter(
    family: type[GaussianCurve], parameter: float, factor: float, epsilon: float
) -> None:
    smaller, larger = family(parameter), family(parameter * factor)
    assert smaller.log_delta(epsilon) <= larger.log_delta(epsilon) + 1e-12


@pytest.mark.parametrize("curve", CURVES, ids=repr)
@given(epsilon=st.floats(1e-3, 8))
@settings(max_examples=40, deadline=None)
def test_negative_epsilon_mirrors_the_other_direction(curve: PrivacyCurve, epsilon: float) -> None:
    """δ_PQ(−ε) = 1 − e^{−ε} + e^{−ε} δ_QP(ε), from the definition by complementing the event."""
    there, back = curve.directions(epsilon)
    mirrored = curve.directions(-epsilon)
    assert mirrored[0] == pytest.approx(-math.expm1(-epsilon) + math.exp(-epsilon) * back, rel=1e-12)
    assert mirrored[1] == pytest.approx(-math.expm1(-epsilon) + math.exp(-epsilon) * there, rel=1e-12)


@pytest.mark.parametrize("curve", CURVES, ids=repr)
@given(exponent=st.floats(-30, -0.31))
@settings(max_examples=40, deadline=None)
def test_epsilon_inverts_delta_from_the_safe_side(curve: PrivacyCurve, exponent: float) -> None:
    target = 10.0**exponent
    epsilon = curve.epsilon(target)
    assert curve.delta(epsilon) <= target
    if epsilon > 0.0:
        assert curve.delta(epsilon * (1 - 1e-9)) > target


def test_epsilon_at_the_ends() -> None:
    assert PureCurve(0.7).epsilon(0.0) == pytest.approx(0.7, rel=1e-14)
    assert PureCurve(0.7).epsilon(0.0) >= 0.7
    assert math.isinf(GaussianCurve(1.0).epsilon(0.0))
    assert GaussianCurve(0.1).epsilon(0.5) == 0.0
    assert GaussianCurve(0.1).epsilon(1.0) == 0.0


@pytest.mark.parametrize("family", [GaussianCurve, PureCurve, ConcentratedCurve])
@pytest.mark.parametrize("parameter", [0.0, -1.0, math.inf, math.nan])
def test_curves_refuse_nonsense(family: type[GaussianCurve], parameter: float) -> None:
    with pytest.raises(GuaranteeError) as caught:
        family(parameter)
    assert caught.value.got is parameter or caught.value.got == parameter


def test_curves_refuse_impossible_questions() -> None:
    with pytest.raises(GuaranteeError, match="probability"):
        GaussianCurve(1.0).epsilon(1.5)
    with pytest.raises(GuaranteeError, match="not a number"):
        GaussianCurve(1.0).delta(math.nan)

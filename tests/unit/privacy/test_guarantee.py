"""Guarantees: what is refused, what is warned about, and conversions that round to the safe side."""

from __future__ import annotations

import math
import warnings

import mpmath
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import DpgramWarning, GuaranteeError
from dpgram.privacy.curves.base import ConcentratedCurve, GaussianCurve, PureCurve
from dpgram.privacy.guarantee import (
    GaussianDP,
    Guarantee,
    ZeroConcentrated,
    gdp_mu_at_most,
    pure_mu_at_least,
    pure_rho_at_least,
    rho_at_most,
)

# 1/μ(ε, δ), derived independently by the authors of the design with 50-digit arithmetic.
REFERENCE_INVERSE_MU = [
    (0.1, math.exp(-9), 23.897),
    (0.1, 1e-6, 36.305),
    (0.5, 1e-6, 8.058),
    (1.0, math.exp(-9), 3.133),
    (1.0, 1e-6, 4.225),
    (3.0, 1e-6, 1.544),
]


@pytest.mark.parametrize(("epsilon", "delta", "inverse"), REFERENCE_INVERSE_MU)
def test_reference_values_of_mu(epsilon: float, delta: float, inverse: float) -> None:
    assert 1.0 / gdp_mu_at_most(epsilon, delta) == pytest.approx(inverse, abs=6e-4)


def test_an_add_remove_release_seen_under_replace_one() -> None:
    """A Gaussian calibrated for add/remove at (1, 10⁻⁶) is ε = 1.455 when a row is replaced."""
    mu = gdp_mu_at_most(1.0, 1e-6)
    assert GaussianDP(math.sqrt(2) * mu).epsilon_at_most(1e-6) == pytest.approx(1.455, abs=6e-4)


def test_nine_gaussian_releases_fit_where_three_pure_ones_do() -> None:
    assert math.sqrt(9) * gdp_mu_at_most(1.0, 1e-6) <= gdp_mu_at_most(3.0, 1e-5)
    assert math.sqrt(10) * gdp_mu_at_most(1.0, 1e-6) > gdp_mu_at_most(3.0, 1e-5) * 0.999


@given(epsilon=st.floats(1e-3, 50), exponent=st.floats(-30, -0.302))
@settings(max_examples=150, deadline=None)
def test_mu_at_most_is_inside_and_the_largest(epsilon: float, exponent: float) -> None:
    delta = 10.0**exponent
    mu = gdp_mu_at_most(epsilon, delta)
    assert GaussianCurve(mu).delta(epsilon) <= delta
    assert GaussianCurve(mu * (1 + 1e-9)).delta(epsilon) > delta
    assert GaussianDP(mu).epsilon_at_most(delta) == pytest.approx(epsilon, rel=1e-7)


@given(epsilon=st.floats(1e-3, 50), exponent=st.floats(-30, -0.302))
@settings(max_examples=40, deadline=None)
def test_rho_at_most_is_inside_and_the_largest(epsilon: float, exponent: float) -> None:
    delta = 10.0**exponent
    rho = rho_at_most(epsilon, delta)
    assert ConcentratedCurve(rho).delta(epsilon) <= delta
    assert ConcentratedCurve(rho * (1 + 1e-9)).delta(epsilon) > delta
    # zCDP forgets something: a Gaussian of that ρ always fits, and strictly.
    assert math.sqrt(2 * rho) < gdp_mu_at_most(epsilon, delta)


@given(rho=st.floats(1e-6, 20), exponent=st.floats(-20, -1))
@settings(max_examples=40, deadline=None)
def test_zcdp_conversion_improves_the_classical_one(rho: float, exponent: float) -> None:
    """The textbook conversion ε = ρ + 2√(ρ ln 1/δ) is never better."""
    delta = 10.0**exponent
    classical = rho + 2 * math.sqrt(rho * math.log(1 / delta))
    assert ZeroConcentrated(rho).epsilon_at_most(delta) <= classical


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0, 10.0, 50.0])
def test_pure_mu_is_rounded_up(epsilon: float) -> None:
    mu = pure_mu_at_least(epsilon)
    with mpmath.workdps(60):
        p = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        exact = -2 * mpmath.sqrt(2) * mpmath.erfinv(2 * p - 1)
    assert exact <= mu
    assert float(mu / exact) == pytest.approx(1.0, rel=1e-13)


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0, 10.0])
def test_pure_mu_is_tight(epsilon: float) -> None:
    """The Gaussian curve of that μ lies above randomised response everywhere, and touches it."""
    mu = pure_mu_at_least(epsilon)
    grid = [epsilon * i / 60 for i in range(60)]
    gaps = [GaussianCurve(mu).delta(e) - PureCurve(epsilon).delta(e) for e in grid]
    assert min(gaps) >= -1e-12
    smaller = GaussianCurve(mu * 0.999)
    assert min(smaller.delta(e) - PureCurve(epsilon).delta(e) for e in grid) < 0


@pytest.mark.parametrize("epsilon", [1e-2, 0.5, 1.0, 4.0, 20.0])
def test_pure_rho_bounds_every_renyi_order_and_is_tight(epsilon: float) -> None:
    rho = pure_rho_at_least(epsilon)
    with mpmath.workdps(50):
        e = mpmath.mpf(epsilon)
        p, q = 1 / (1 + mpmath.exp(-e)), 1 / (1 + mpmath.exp(e))
        for log_excess in range(-40, 41):
            alpha = 1 + mpmath.exp(mpmath.mpf(log_excess) / 4)
            divergence = mpmath.log(p**alpha * q ** (1 - alpha) + q**alpha * p ** (1 - alpha)) / (alpha - 1)
            assert divergence <= rho * alpha
        kl = (p - q) * e
    assert float(kl) == pytest.approx(rho, rel=1e-13)
    assert rho <= epsilon**2 / 2


@pytest.mark.parametrize("reach", [0.05, 0.7, 2.0, 6.0])
def test_bounded_range_rho_bounds_every_order_and_position(reach: float) -> None:
    """A loss within an interval of length η is η²/8-zCDP: what eigenvectors-zcdp pays for a direction."""
    rho = reach**2 / 8.0
    with mpmath.workdps(40):
        eta = mpmath.mpf(reach)
        largest = mpmath.mpf(0)
        for i in range(1, 40):
            t = eta * i / 40
            p = (mpmath.exp(eta) - mpmath.exp(t)) / (mpmath.exp(eta) - 1)
            for log_excess in range(-12, 13):
                excess = mpmath.exp(mpmath.mpf(log_excess) / 2)
                moment = p * mpmath.exp(excess * t) + (1 - p) * mpmath.exp(excess * (t - eta))
                largest = max(largest, mpmath.log(moment) / excess / (1 + excess))
    assert float(largest) <= rho
    if reach < 1.0:
        assert float(largest) >= 0.97 * rho


def test_gaussian_is_concentrated() -> None:
    assert GaussianDP(0.6).rho_at_least() == pytest.approx(0.18, rel=1e-14)
    assert GaussianDP(0.6).rho_at_least() >= 0.18
    for epsilon in (0.3, 1.0, 5.0):
        assert ZeroConcentrated(0.18).delta_at_most(epsilon) >= GaussianDP(0.6).delta_at_most(epsilon)


def test_what_a_curve_meets() -> None:
    mu = gdp_mu_at_most(1.0, 1e-6)
    assert Guarantee(1.0, 1e-6).met_by(GaussianCurve(mu))
    assert not Guarantee(1.0, 1e-6).met_by(GaussianCurve(mu * 1.0001))
    assert not Guarantee(1.0).met_by(GaussianCurve(mu))
    assert Guarantee(1.0).met_by(PureCurve(1.0))
    assert Guarantee(1.0).pure
    assert not Guarantee(1.0, 1e-9).pure


@pytest.mark.parametrize("epsilon", [0.0, -0.5, math.inf, math.nan, -math.inf])
def test_epsilon_out_of_range_is_refused(epsilon: float) -> None:
    for call in (
        lambda: Guarantee(epsilon, 1e-6),
        lambda: Guarantee.checked(epsilon, 1e-6),
        lambda: gdp_mu_at_most(epsilon, 1e-6),
        lambda: rho_at_most(epsilon, 1e-6),
        lambda: pure_mu_at_least(epsilon),
        lambda: pure_rho_at_least(epsilon),
        lambda: GaussianDP(epsilon),
        lambda: ZeroConcentrated(epsilon),
    ):
        with pytest.raises(GuaranteeError, match="positive") as caught:
            call()
        assert caught.value.limit is not None


@pytest.mark.parametrize("delta", [-1e-9, 1.0, 2.0, math.inf, math.nan])
def test_delta_out_of_range_is_refused(delta: float) -> None:
    for call in (
        lambda: Guarantee(1.0, delta),
        lambda: gdp_mu_at_most(1.0, delta),
        lambda: rho_at_most(1.0, delta),
    ):
        with pytest.raises(GuaranteeError, match="delta"):
            call()


def test_conversions_without_a_pure_form_are_refused() -> None:
    for call in (
        lambda: gdp_mu_at_most(1.0, 0.0),
        lambda: rho_at_most(1.0, 0.0),
        lambda: GaussianDP(1.0).epsilon_at_most(0.0),
        lambda: ZeroConcentrated(1.0).epsilon_at_most(0.0),
    ):
        with pytest.raises(GuaranteeError, match="no pure form"):
            call()


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows", "told"),
    [
        (11.0, 1e-6, None, "protect little"),
        (1.0, 2e-4, None, "failing outright"),
        (1.0, 1e-5, 200_000, "more than one in 200000 rows"),
    ],
)
def test_weak_guarantees_warn(epsilon: float, delta: float, rows: int | None, told: str) -> None:
    with pytest.warns(DpgramWarning, match=told) as caught:
        Guarantee.checked(epsilon, delta, rows)
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("epsilon", "delta", "rows"),
    [(10.0, 1e-4, None), (1.0, 0.0, 10), (1.0, 1e-6, 1_000_000), (0.1, 1e-9, 10**6)],
)
def test_ordinary_guarantees_do_not_warn(epsilon: float, delta: float, rows: int | None) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Guarantee.checked(epsilon, delta, rows) == Guarantee(epsilon, delta)


def test_a_guarantee_says_itself() -> None:
    assert str(Guarantee(1.0, 1e-6)) == "(ε = 1, δ = 1e-06)-differential privacy"

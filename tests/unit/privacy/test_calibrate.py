"""Calibration never under-protects, and never gives away more than the last digits."""

from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from dpgram.errors import GuaranteeError
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.curves.calibrate import (
    DISCRETE_SIGMA_AT_LEAST,
    DISCRETE_SLACK,
    discrete_gaussian_sigma,
    discrete_mu_at_most,
    gaussian_sigma,
    greatest,
    least,
    stacked_sigmas,
)

LATTICE = 2.0**30


def exact_delta(epsilon: float, mu: mpmath.mpf) -> mpmath.mpf:
    """δ(ε) of the Gaussian with 60 digits."""
    with mpmath.workdps(60):
        e = mpmath.mpf(epsilon)
        return mpmath.ncdf(mu / 2 - e / mu) - mpmath.exp(e) * mpmath.ncdf(-mu / 2 - e / mu)


@given(
    epsilon=st.floats(1e-3, 50),
    exponent=st.floats(-30, -0.302),
    sensitivity=st.floats(-6, 12).map(lambda e: 10.0**e),
)
@settings(max_examples=150, deadline=None)
def test_gaussian_sigma_protects_and_is_the_least(
    epsilon: float, exponent: float, sensitivity: float
) -> None:
    delta = 10.0**exponent
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    with mpmath.workdps(60):
        assert exact_delta(epsilon, mpmath.mpf(sensitivity) / mpmath.mpf(sigma)) <= mpmath.mpf(delta)
        assert (
            exact_delta(epsilon, mpmath.mpf(sensitivity) / mpmath.mpf(sigma) * (1 + mpmath.mpf("1e-9")))
            > delta
        )


@given(epsilon=st.floats(1e-3, 50), exponent=st.floats(-30, -0.302), factor=st.floats(1.01, 5))
@settings(max_examples=80, deadline=None)
def test_stronger_guarantees_need_more_noise(epsilon: float, exponent: float, factor: float) -> None:
    delta = 10.0**exponent
    sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
    assert gaussian_sigma(epsilon=epsilon / factor, delta=delta, sensitivity=1.0) > sigma
    assert gaussian_sigma(epsilon=epsilon, delta=delta / factor, sensitivity=1.0) > sigma
    assert gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=factor) == pytest.approx(
        factor * sigma, rel=1e-12
    )


@given(epsilon=st.floats(0.01, 0.99), exponent=st.floats(-20, -2))
@settings(max_examples=50, deadline=None)
def test_less_noise_than_the_classical_formula(epsilon: float, exponent: float) -> None:
    """σ = √(2 ln(1.25/δ))/ε is the textbook bound for ε < 1."""
    delta = 10.0**exponent
    classical = math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    assert gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0) < classical


def test_published_analytic_gaussian_value() -> None:
    """Balle & Wang's calibration, re-derived here by plain bisection on the textbook expression."""

    def delta_of(sigma: float) -> float:
        return float(ndtr(0.5 / sigma - sigma) - math.e * ndtr(-0.5 / sigma - sigma))

    low, high = 0.1, 100.0
    for _ in range(200):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if delta_of(middle) <= 1e-5 else (middle, high)
    assert gaussian_sigma(epsilon=1.0, delta=1e-5, sensitivity=1.0) == pytest.approx(high, rel=1e-9)


@given(
    epsilon=st.floats(1e-3, 50),
    exponent=st.floats(-30, -0.302),
    relation=st.sampled_from([AddRemove(), ReplaceOne()]),
)
@settings(max_examples=80, deadline=None)
def test_the_discrete_slack_is_inside(epsilon: float, exponent: float, relation: Adjacency) -> None:
    delta = 10.0**exponent
    sensitivity = relation.gram_frobenius(LATTICE)
    plain = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    sigma = discrete_gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
    assert sigma >= DISCRETE_SIGMA_AT_LEAST
    assert 1.0 < sigma / plain < 1.0 + 2e-8 + 2 * DISCRETE_SLACK / epsilon
    curve = GaussianCurve(sensitivity / sigma)
    assert curve.delta(epsilon - DISCRETE_SLACK) <= delta * (1 - DISCRETE_SLACK)
    # What a ledger sums up, μ² rounded up, still fits what a ledger of the same guarantee holds.
    assert (sensitivity / sigma) ** 2 * (1 + 2.0**-47) <= discrete_mu_at_most(epsilon, delta) ** 2 * (
        1 - 2.0**-47
    )


def test_discrete_noise_is_refused_where_the_proof_stops() -> None:
    with pytest.raises(GuaranteeError, match="not covered by the proof"):
        discrete_gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=1.0)
    with pytest.raises(GuaranteeError, match="too small for integer noise"):
        discrete_gaussian_sigma(epsilon=1e-9, delta=1e-6, sensitivity=LATTICE)
    with pytest.raises(GuaranteeError, match="too small for integer noise"):
        discrete_mu_at_most(1e-8, 1e-6)
    with pytest.raises(GuaranteeError, match="delta is too small"):
        discrete_mu_at_most(1.0, 1e-301)


@pytest.mark.parametrize("sensitivity", [0.0, -1.0, math.inf, math.nan])
def test_nonsense_sensitivity_is_refused(sensitivity: float) -> None:
    with pytest.raises(GuaranteeError, match="sensitivity"):
        gaussian_sigma(epsilon=1.0, delta=1e-6, sensitivity=sensitivity)


@given(threshold=st.floats(-290, 290).map(lambda e: 10.0**e), start=st.floats(-50, 50).map(lambda e: 10.0**e))
@settings(max_examples=150, deadline=None)
def test_search_finds_the_boundary_from_the_true_side(threshold: float, start: float) -> None:
    found = least(lambda x: x >= threshold, start=start)
    assert threshold <= found <= threshold * (1 + 1e-14)
    found = greatest(lambda x: x <= threshold, start=start)
    assert threshold * (1 - 1e-14) <= found <= threshold


def test_search_answers_are_true_even_where_the_question_wavers() -> None:
    """A predicate that is noisy near its boundary: whatever comes back was seen to hold."""
    seen: dict[float, bool] = {}

    def holds(x: float) -> bool:
        seen[x] = x > 3.0 + 1e-9 * math.sin(1e12 * x)
        return seen[x]

    found = least(holds)
    assert seen[found]
    assert found == pytest.approx(3.0, rel=1e-8)


def test_search_that_cannot_succeed_says_so() -> None:
    with pytest.raises(GuaranteeError, match="no level of noise"):
        least(lambda x: False)


@pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()], ids=lambda r: r.name)
@given(seed=st.integers(0, 2**32))
@settings(max_examples=25, deadline=None)
def test_stacked_sigmas_spend_mu_exactly_and_beat_other_splits(relation: Adjacency, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x_norm, y_bound, mu = np.exp(rng.uniform(-1, 1, 3))
    costs = tuple(np.exp(rng.uniform(-3, 3, 3)).tolist())
    sigmas = stacked_sigmas(relation, mu=mu, x_norm=x_norm, y_bound=y_bound, costs=costs)

    def spent(values: tuple[float, ...]) -> float:
        return relation.stacked_mu(x_norm, y_bound, (values[0] ** -2, values[1] ** -2, values[2] ** -2))

    def cost(values: tuple[float, ...]) -> float:
        return sum(c * v * v for c, v in zip(costs, values, strict=True))

    assert spent(sigmas) == pytest.approx(mu, rel=1e-12)
    for _ in range(20):
        other = tuple(s * math.exp(rng.normal() * 0.2) for s in sigmas)
        scaled = tuple(s * spent(other) / mu for s in other)
        assert cost(scaled) >= cost(sigmas) * (1 - 1e-7)


def test_stacked_sigmas_follow_the_closed_form() -> None:
    mu, bx, by, costs = 0.5, 2.0, 3.0, (1.0, 4.0, 0.25)
    reach = (4.0, 6.0, 9.0)
    total = sum(math.sqrt(c) * r for c, r in zip(costs, reach, strict=True))
    expected = [math.sqrt(r / math.sqrt(c) * total) / mu for c, r in zip(costs, reach, strict=True)]
    found = stacked_sigmas(AddRemove(), mu=mu, x_norm=bx, y_bound=by, costs=costs)
    assert found == pytest.approx(expected, rel=1e-12)


def test_stacked_sigmas_refuse_nonsense() -> None:
    with pytest.raises(GuaranteeError, match="positive"):
        stacked_sigmas(AddRemove(), mu=1.0, x_norm=1.0, y_bound=1.0, costs=(1.0, 0.0, 1.0))


def test_large_relative_noise_is_still_found() -> None:
    """ε = 10⁻³ at δ = 10⁻³⁰ and ε = 50 at δ = 1/2: the corners of the range."""
    for epsilon, delta in [(1e-3, 1e-30), (1e-3, 0.5), (50.0, 1e-30), (50.0, 0.5)]:
        sigma = gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=1.0)
        assert float(exact_delta(epsilon, 1 / mpmath.mpf(sigma))) == pytest.approx(delta, rel=1e-9)


@pytest.mark.parametrize("scale", [0.8, 2.0, 7.0, 40.0])
def test_rounded_and_discrete_gaussians_differ_as_the_proof_says(scale: float) -> None:
    """Lemma 1 of proofs/gaussian.md: −1/(24s²) ≤ ln r(k)/p(k) ≤ k²/(24s⁴) + τ, at scales where it shows."""
    with mpmath.workdps(40):
        s = mpmath.mpf(scale)
        norm = mpmath.nsum(lambda j: mpmath.exp(-(j**2) / (2 * s**2)), [-mpmath.inf, mpmath.inf])
        tau = 2 * mpmath.nsum(lambda m: mpmath.exp(-2 * mpmath.pi**2 * s**2 * m**2), [1, mpmath.inf])
        for k in range(int(8 * scale) + 1):
            rounded = mpmath.ncdf(k + 0.5, 0, s) - mpmath.ncdf(k - 0.5, 0, s)
            gap = mpmath.log(rounded * norm) + mpmath.mpf(k) ** 2 / (2 * s**2)
            assert -1 / (24 * s**2) - mpmath.mpf("1e-30") <= gap <= k**2 / (24 * s**4) + tau


@pytest.mark.parametrize("scale", [40.0, 300.0])
@pytest.mark.parametrize("mu", [0.5, 2.0])
@pytest.mark.parametrize("epsilon", [0.2, 1.0])
def test_the_discrete_theorem_on_one_cell(scale: float, mu: float, epsilon: float) -> None:
    """P(S) ≤ e^{ε + a + b} Q(S) + e^a δ(ε) + e^{−800}, with the exact discrete curve on the left."""
    shift = round(mu * scale)
    k = np.arange(-round(12 * scale), round(12 * scale) + shift)
    p = np.exp(-(k**2) / (2 * scale**2))
    q = np.exp(-((k - shift) ** 2) / (2 * scale**2))
    p, q = p / p.sum(), q / q.sum()
    a = 1 / (12 * scale**2)
    b = (1 + 40 + shift / scale) ** 2 / (12 * scale**2)
    discrete = np.maximum(p - math.exp(epsilon + a + b) * q, 0).sum()
    assert discrete <= math.exp(a) * GaussianCurve(shift / scale).delta(epsilon)
    # The slack is honest: without it the two curves already agree to the order it allows.
    same = np.maximum(p - math.exp(epsilon) * q, 0).sum()
    assert same == pytest.approx(GaussianCurve(shift / scale).delta(epsilon), rel=5 * b)

"""Adaptive composition of bounded-range steps: above every strategy, below every cruder bound, tight."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import GuaranteeError
from dpgram.privacy.curves.base import BoundedRangeCurve, ConcentratedCurve, PureCurve
from dpgram.privacy.curves.bounded_range import ComposedRangeCurve
from dpgram.privacy.guarantee import bounded_range_rho_at_least, rho_at_most


def strategy_delta(reaches: tuple[float, ...], epsilon: float, seed: int) -> float:
    """The exact δ(ε) of one adaptive strategy: the position t of a step depends on the losses so far."""
    rng = np.random.default_rng(seed)
    offset, tilt = rng.uniform(-1, 1), rng.uniform(-3, 3)

    def value(step: int, left: float) -> float:
        if step == len(reaches):
            return max(-math.expm1(left), 0.0) if left < 700 else 0.0
        eta = reaches[step]
        t = min(max(0.5 * eta * (1 + offset) + tilt * left / len(reaches), 1e-9), eta * (1 - 1e-9))
        p = (math.exp(eta) - math.exp(t)) / math.expm1(eta)
        return p * value(step + 1, left - t) + (1 - p) * value(step + 1, left - t + eta)

    return value(0, epsilon)


@given(
    reaches=st.lists(st.floats(0.02, 1.5), min_size=1, max_size=6).map(tuple),
    fraction=st.floats(0, 1),
    seed=st.integers(0, 2**32),
)
@settings(max_examples=25, deadline=None)
def test_no_strategy_exceeds_the_curve(reaches: tuple[float, ...], fraction: float, seed: int) -> None:
    epsilon = fraction * sum(reaches)
    assert strategy_delta(reaches, epsilon, seed) <= ComposedRangeCurve(reaches).delta(epsilon)


@pytest.mark.parametrize("reach", [0.05, 0.5, 3.0])
@pytest.mark.parametrize("fraction", [0.0, 0.1, 0.5, 0.9])
def test_one_step_is_the_closed_form(reach: float, fraction: float) -> None:
    ours = ComposedRangeCurve((reach,)).delta(fraction * reach)
    exact = BoundedRangeCurve(reach).delta(fraction * reach)
    assert ours >= exact * (1 - 1e-12)
    # The chord between two points of the table costs the second order of its step, largest near the end.
    assert ours == pytest.approx(exact, rel=1e-4)


@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.4])
def test_two_steps_by_brute_force(epsilon: float) -> None:
    """The second step by its closed form, the position t of the first on a fine grid."""
    first, second = 0.3, 0.2
    later = BoundedRangeCurve(second)
    best = 0.0
    for t in np.linspace(0, first, 4001):
        p = (math.exp(first) - math.exp(t)) / math.expm1(first)
        best = max(best, p * later.delta(epsilon - t) + (1 - p) * later.delta(epsilon - t + first))
    ours = ComposedRangeCurve((first, second)).delta(epsilon)
    assert best <= ours * (1 + 1e-9)
    assert ours == pytest.approx(best, rel=2e-3)


@given(
    reaches=st.lists(st.floats(0.02, 0.8), min_size=2, max_size=6).map(tuple), fraction=st.floats(0, 0.999)
)
@settings(max_examples=25, deadline=None)
def test_below_the_cruder_bounds(reaches: tuple[float, ...], fraction: float) -> None:
    epsilon = fraction * sum(reaches)
    curve = ComposedRangeCurve(reaches)
    assert curve.delta(epsilon) <= PureCurve(sum(reaches)).delta(epsilon)
    rho = sum(map(bounded_range_rho_at_least, reaches))
    assert curve.delta(epsilon) <= ConcentratedCurve(rho).delta(epsilon)
    assert curve.delta(epsilon) >= BoundedRangeCurve(max(reaches)).delta(epsilon) * (1 - 1e-9)


@pytest.mark.parametrize(("steps", "gain"), [(5, 1.15), (10, 1.07), (22, 1.06)])
def test_higher_inverse_temperatures_than_zcdp_allows(steps: int, gain: float) -> None:
    """The largest equal range at (1, 10⁻⁶), against the better of pure composition and ρ = η²/8."""
    cruder = max(1.0 / steps, math.sqrt(8 * rho_at_most(1.0, 1e-6) / steps))
    assert ComposedRangeCurve((cruder * gain,) * steps).delta(1.0) <= 1e-6
    assert ComposedRangeCurve((cruder * 1.2,) * steps).delta(1.0) > 1e-6


def test_composition_is_monotone_in_each_range_and_in_epsilon() -> None:
    curve = ComposedRangeCurve((0.2, 0.3, 0.1))
    wider = ComposedRangeCurve((0.2, 0.35, 0.1))
    grid = np.linspace(-0.6, 0.6, 61)
    values = [curve.delta(e) for e in grid]
    assert all(a >= b for a, b in itertools.pairwise(values))
    assert all(curve.delta(e) <= wider.delta(e) for e in grid)
    assert curve.delta(0.6) == 0.0


@pytest.mark.parametrize("reaches", [(), (0.0,), (0.1, -1.0), (math.inf,), (math.nan,), (51.0,)])
def test_nonsense_is_refused(reaches: tuple[float, ...]) -> None:
    with pytest.raises(GuaranteeError):
        ComposedRangeCurve(reaches)

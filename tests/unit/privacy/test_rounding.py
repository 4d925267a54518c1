"""Rounded numbers stay on their side."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram.privacy.curves.rounding import down, exp_up, up

positive = st.floats(1e-300, 1e300)


@given(value=positive)
def test_up_and_down_leave_the_number_between_them(value: float) -> None:
    assert down(value) < value < up(value)
    assert Fraction(up(value)) / Fraction(down(value)) < 1 + Fraction(1, 2**46)


@given(first=st.floats(1e-100, 1e100), second=st.floats(1e-100, 1e100))
def test_a_short_computation_rounded_up_is_above_the_exact_one(first: float, second: float) -> None:
    exact = Fraction(first) * Fraction(second) / 3
    assert Fraction(up(first * second / 3.0)) > exact
    assert Fraction(down(first * second / 3.0)) < exact


@given(log_value=st.floats(-740, 600))
def test_exponentials_are_rounded_up(log_value: float) -> None:
    with mpmath.workdps(40):
        exact = mpmath.exp(mpmath.mpf(log_value))
        found = mpmath.mpf(exp_up(log_value))
        assert found >= exact
        assert found <= exact * (1 + mpmath.mpf("1e-11")) or found < mpmath.mpf("1e-300")


def test_nothing_stays_nothing_and_little_stays_positive() -> None:
    assert up(0.0) == down(0.0) == exp_up(-math.inf) == 0.0
    assert exp_up(-1e6) == pytest.approx(0.0, abs=1e-300)
    assert exp_up(-1e6) > 0.0

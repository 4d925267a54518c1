"""Exact sums of a ledger, and their roundings up and down to floats.

A ledger adds whole numbers of units of 2⁻¹²⁰, so no charge is ever rounded away. A float is a rational
number; its square and its sum with others are taken as rationals and rounded once, up for what is spent and
down for what may be spent.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Final

UNITS: Final = 1 << 120
"""Units in 1. Fine enough for a δ of 10⁻³⁰ with six digits to spare."""


def units_up(amount: Fraction) -> Fraction:
    """The least multiple of 2⁻¹²⁰ that is not below `amount`."""
    return Fraction(math.ceil(amount * UNITS), UNITS)


def units_down(amount: Fraction) -> Fraction:
    """The greatest multiple of 2⁻¹²⁰ that is not above `amount`."""
    return Fraction(math.floor(amount * UNITS), UNITS)


def float_up(amount: Fraction) -> float:
    """The least float that is not below `amount`."""
    nearest = float(amount)
    return math.nextafter(nearest, math.inf) if Fraction(nearest) < amount else nearest


def float_down(amount: Fraction) -> float:
    """The greatest float that is not above `amount`."""
    nearest = float(amount)
    return math.nextafter(nearest, -math.inf) if Fraction(nearest) > amount else nearest


def root_up(square: Fraction) -> float:
    """√square, never below it."""
    root = math.sqrt(float_up(square))
    return math.nextafter(root, math.inf) if Fraction(root) ** 2 < square else root


def root_down(square: Fraction) -> float:
    """√square, never above it."""
    root = math.sqrt(float_down(square))
    return math.nextafter(root, 0.0) if Fraction(root) ** 2 > square else root

"""Rounding with a direction: bounds that stay on their side of the real number they stand for."""

from __future__ import annotations

import math
from typing import Final

SLACK: Final = 2.0**-48
"""Relative margin, sixteen units in the last place: more than any short chain of library functions loses."""


def up(value: float) -> float:
    """value·(1 + 2⁻⁴⁸) for value ≥ 0; the least positive number for an underflown 0 is left to the caller."""
    return math.nextafter(value * (1.0 + SLACK), math.inf) if value else 0.0


def down(value: float) -> float:
    """value·(1 − 2⁻⁴⁸) for value ≥ 0."""
    return math.nextafter(value * (1.0 - SLACK), 0.0) if value else 0.0


def exp_up(log_value: float) -> float:
    """e^log_value, never below it: −inf gives 0, anything else at least the smallest positive number."""
    if log_value == -math.inf:
        return 0.0
    # exp turns an absolute error of its argument into a relative one of its value.
    value = math.exp(log_value) * (1.0 + SLACK * (1.0 + abs(log_value)))
    return math.nextafter(value, math.inf)

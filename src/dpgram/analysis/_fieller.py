"""{β : (β̂ − β)² ≤ q²·Var(β)} with Var(β̂ + δ) = C + c₁δ + c₂δ²: the interval when noise grows with the size.

Taking the variance at the hypothesis and not at the estimate is Fieller's device for ratios of noisy numbers.
The ends are the roots of a quadratic; with c₁ = c₂ = 0 they are β̂ ± q√C, and where q²c₂ ≥ 1 no value is
excluded.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Vector = npt.NDArray[np.float64]


def fieller_interval(
    estimate: Vector, variance: Vector, slope: Vector, curvature: Vector, quantile: float | Vector
) -> tuple[Vector, Vector]:
    """Lower and upper ends."""
    squared = np.square(quantile)
    lead = 1.0 - squared * curvature
    bounded = np.where(lead > 0.0, lead, np.nan)
    middle = 0.5 * squared * slope / bounded
    half_width = np.sqrt(np.maximum(middle**2 + squared * variance / bounded, 0.0))
    low = np.where(lead > 0.0, estimate + middle - half_width, -np.inf)
    high = np.where(lead > 0.0, estimate + middle + half_width, np.inf)
    return low, high

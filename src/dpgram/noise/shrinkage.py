"""Eigenvalues without their noise: what a noisy spectrum tells of the exact one, at the least squared error.

Post-processing with the published law of the noise: it costs no privacy and never sees a row.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Vector: TypeAlias = npt.NDArray[np.float64]


def shrunken(rising: Vector, variance: float) -> Vector:
    """x·max(0, 1 − v/(k·x²)), x the nearest rising sequence (averages of k), for noise of variance v.

    What noise has mixed up is averaged. An average of k has noise v/k, and this is the factor of James and
    Stein for it: without bias in the estimated squared error, and nothing where noise explains all. No
    eigenvalue of a table is negative.
    """
    from scipy.optimize import isotonic_regression

    pooled = isotonic_regression(rising)
    sizes = np.diff(pooled.blocks)
    numbers = np.repeat(sizes, sizes)
    positive = np.maximum(np.asarray(pooled.x, dtype=np.float64), 0.0)
    if variance == 0.0:
        return positive
    squares = np.maximum(numbers * positive**2, variance)
    return np.asarray(positive * (1.0 - variance / squares))


def without_repulsion(values: Vector, strength: float, reach: float) -> Vector:
    """x_i = w_i − k Σ_j (w_i − w_j)/((w_i − w_j)² + r²): how far noise drove them apart, taken away.

    To second order w_i exceeds the quadratic form of its own eigenvector in the exact matrix, which is the
    best that can be put in its place, by k Σ_j 1/(w_i − w_j), k = 2o², o the deviation of the noise off the
    diagonal. Pairs closer than r are hardly told apart any more: their part is damped.
    """
    gaps = values[:, None] - values
    return np.asarray(values - strength * (gaps / (gaps**2 + reach**2)).sum(axis=1))


def within_trace(values: Vector, limit: float) -> Vector:
    """max(λ − t, 0) with the least t ≥ 0 for which the sum is within the limit: the nearest such spectrum."""
    if limit <= 0.0:
        return np.zeros_like(values)
    held = np.maximum(values, 0.0)
    if held.sum() <= limit:
        return held
    falling = np.sort(held)[::-1]
    cuts = (np.cumsum(falling) - limit) / np.arange(1, len(falling) + 1)
    cut = float(cuts[np.flatnonzero(falling >= cuts)[-1]])
    return np.asarray(np.maximum(held - cut, 0.0))

"""What chance in drawing the rows adds to an error, as far as second moments tell: the sampling parts.

A correlation moves with a row by xy − ρ(x² + y²)/2, x and y standardised, so its sampling variance needs
fourth moments. They are known where a column has two values: x² = 1 + g·x with g = (1 − 2p)/√(p(1 − p)). For
numbers they are taken to be those of normal errors around a straight line:

    two numbers:            (1 − ρ²)²
    one of two values:      (1 − ρ²)²(1 + ρ²(g² − 2)/4)
    both of two values:     1 − ρ² + g_x g_y ρ − ¾(g_x² + g_y²)ρ² + ½ g_x g_y ρ³     (exact)

each over the number of rows. Of rows that were clipped, the first is smaller by the sampling factor of
analysis/clip.py; beside a column of two values that factor would be too small, and is left out
(benchmarks/results/clipped-answers.md).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.inference import NO_DEGREES
from dpgram.analysis.moments import Moments
from dpgram.errors import AnalysisError

Array = npt.NDArray[np.float64]

NORMAL_ERRORS: Final = (
    "Intervals for the population take numbers to scatter around straight lines with normal errors"
)
"""Second moments cannot tell whether they do."""


def degrees_of_freedom(moments: Moments, parameters: int) -> float:
    """n̂ − k, or a refusal where there are too few rows."""
    rows = moments.rows
    if rows is None or rows <= parameters + 2:
        raise AnalysisError(NO_DEGREES, remedy='Use kind="table", or a release of more rows')
    return rows - parameters


def two_valued_skewness(moments: Moments, means: Array) -> Array:
    """g of each encoded column that has two values, NaN for the others; `means` are those of z."""
    encoded = moments.schema.encoded
    share = np.full(len(encoded), np.nan)
    for i, column in enumerate(encoded):
        if column.kind == "level":
            share[i] = means[i]
        elif column.kind == "boolean":
            share[i] = 0.5 * (1.0 + means[i])
    # Fewer than one row has not been seen, and 1 − share must be told from 1.
    least = max(1.0 / max(moments.rows or 1.0, 2.0), float(np.finfo(np.float64).eps))
    share = np.clip(share, least, 1.0 - least)
    return np.asarray((1.0 - 2.0 * share) / np.sqrt(share * (1.0 - share)))


def correlation_variance(rho: Array, left: Array, right: Array, degrees: float, factor: float = 1.0) -> Array:
    """Sampling variance of correlations ρ between columns of skewness `left` and `right` (NaN: numbers).

    `factor` is what a clip makes of that between two numbers.
    """
    one = np.where(np.isnan(left), right, left)
    excess = np.where(np.isnan(one), 0.0, np.square(np.nan_to_num(one)) - 2.0)
    general = np.square(1.0 - rho**2) * (1.0 + rho**2 * excess / 4.0)
    general = general * np.where(np.isnan(one), factor, 1.0)
    both = left * right
    exact = 1.0 - rho**2 + both * rho - 0.75 * (left**2 + right**2) * rho**2 + 0.5 * both * rho**3
    return np.asarray(np.maximum(np.where(np.isnan(both), general, exact), 0.0) / degrees)

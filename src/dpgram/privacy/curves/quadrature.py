"""Integrals of smooth positive functions given by their logarithm: find the peak, then Gauss–Legendre."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

DEPTH: Final = 36.0
"""What lies this far below the peak, in logarithm, is left out: a relative 10⁻¹⁵ of the integral."""
RELATIVE_ERROR: Final = 1e-11
"""A bound of the relative error that the tests hold every integral to, by 50-digit quadrature."""


def gauss_legendre(*edges: float, order: int) -> tuple[Floats, Floats]:
    """(nodes, weights) of the composite rule with `order` nodes between each two neighbouring edges."""
    points, weights = _rule(order)
    half = 0.5 * np.diff(edges)
    nodes = (np.array(edges[:-1]) + half)[:, None] + half[:, None] * points
    return nodes.ravel(), (half[:, None] * weights).ravel()


@lru_cache
def _rule(order: int) -> tuple[Floats, Floats]:
    return np.polynomial.legendre.leggauss(order)


def support(
    log_integrand: Callable[[Floats], Floats], low: float, high: float, *, points: int
) -> tuple[float, float]:
    """The part of [low, high] where the function is within `DEPTH` of its peak, one grid step wider.

    It is not asked for at the very ends, where a density may be infinite.
    """
    grid = np.linspace(low, high, points)
    nudge = 1e-3 * (high - low) / points
    return trimmed(grid, log_integrand(np.clip(grid, low + nudge, high - nudge)))


def trimmed(grid: Floats, values: Floats) -> tuple[float, float]:
    """The ends of the part of the grid that matters."""
    kept = np.flatnonzero(values > np.max(values) - DEPTH)
    if len(kept) == 0:
        return float(grid[0]), float(grid[-1])
    return float(grid[max(kept[0] - 1, 0)]), float(grid[min(kept[-1] + 1, len(grid) - 1)])

"""Exact integer sums of bounded row contributions: what one unit adds is bounded in whole numbers.

Proof: proofs/core.md#core-sums.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from dpgram.core import SQUARE
from dpgram.core.encode import Floats, Integers

STEPS: Final = 16
"""Equal steps of a histogram between bounds, with a node at either end of each."""
NODES: Final = STEPS + 1
LOST_MISSING, LOST_UNREADABLE, LOST_BELOW, LOST_ABOVE = range(4)
"""Cells of a histogram behind its nodes or levels, for what was lost."""


def count_levels(cells: Integers, x: Floats, shares: Floats | None, levels: int) -> None:
    """Add each row's share (none: 2^30) to the level that its cell is the number of, or to what was lost."""
    with np.errstate(all="ignore"):  # a warning would depend on one row
        known = (x >= 0.0) & (x < levels) & (np.floor(x) == x)
        lost = levels + np.where(np.isnan(x), LOST_MISSING, LOST_UNREADABLE)
        places = np.where(known, np.where(known, x, 0.0).astype(np.int64), lost)
    cells += _counted(places, shares, len(cells))


def count_nodes(cells: Integers, x: Floats, shares: Floats | None, low: float, high: float) -> None:
    """Add each row's share to the two nodes next to its cell, to the nearer one more, or to what was lost.

    Halves of the bounds, so that these may lie at the end of the floats.
    """
    with np.errstate(all="ignore"):  # a warning would depend on one row
        inside = (x >= low) & (x <= high)
        within, own = x, shares
        if not inside.all():
            within, own = x[inside], None if shares is None else shares[inside]
        position = (within * 0.5 - low * 0.5) * (STEPS / (high * 0.5 - low * 0.5))
        position = np.where(position < STEPS, position, float(STEPS))
        first = np.minimum(position.astype(np.int64), STEPS - 1)
        one = float(SQUARE) if own is None else own
        beyond = np.bincount(first, np.floor((position - first) * one), minlength=STEPS).astype(np.int64)
        cells[:STEPS] += _counted(first, own, STEPS) - beyond
        cells[1:NODES] += beyond
        if len(within) < len(x):
            away, left = x[~inside], None if shares is None else shares[~inside]
            kind = np.where(away < low, LOST_BELOW, np.where(away > high, LOST_ABOVE, LOST_MISSING))
            kind = np.where(np.isinf(away), LOST_UNREADABLE, kind)
            cells[NODES:] += _counted(kind, left, len(cells) - NODES)


def _counted(places: Integers, shares: Floats | None, size: int) -> Integers:
    """At most 2^22 rows at a time, so that their shares add up exactly in floats."""
    if shares is None:
        return np.bincount(places, minlength=size) * SQUARE
    return np.bincount(places, shares, minlength=size).astype(np.int64)


def length_bins(squares: Floats, ends: Floats) -> Integers:
    """The bin of each |u|², by comparison with the ends of the bins, which grow."""
    return np.searchsorted(ends, squares, side="right").astype(np.int64)

"""How many rows a table needs for a wanted ratio of standard errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

FAR: Final = 16
"""How much farther to look where a ratio says nothing of how far."""
PATIENCE: Final = 6
"""Looks after which the interval is halved instead."""


def least_rows(
    typical: Callable[[int], float], wanted: float, *, start: int, none: int, most: int, precision: float
) -> int | None:
    """The least number of rows with so low a ratio, to a part `precision` above; None: more than `most`.

    `none` rows are known to be too few. ratio² − 1 falls about as 1/n, which says where to look next.
    """
    low, high, rows, looks = none, most + 1, max(none + 1, min(start, most)), 0
    while high - low > max(1, int(high * precision)):
        ratio = typical(rows)
        enough = ratio <= wanted
        low, high = (low, rows) if enough else (rows, high)
        if low >= most:
            return None
        looks += 1
        if math.isfinite(ratio) and looks <= PATIENCE:
            there = rows * (ratio**2 - 1.0) / (wanted**2 - 1.0)
            rows = math.ceil(there * (1.0 - precision / 3.0 if enough else 1.0 + precision / 3.0))
        elif high > most:
            rows = low * FAR
        else:
            rows = math.isqrt(low * high)
        rows = min(max(rows, low + 1), high - 1, most)
    return high if high <= most else None

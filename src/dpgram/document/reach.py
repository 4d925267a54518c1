"""The bins in which lengths of rows are counted, over a radius: to choose the next one, and beside a clip."""

from __future__ import annotations

from typing import Final

import numpy as np

REACH_ENDS: Final = 2.0 ** (np.arange(-6, 9) / 4.0)
"""|u|/R at the ends of the bins, from 2^−1.5 to 4; there is a bin below the first and one beyond the last."""
REACH_SQUARES: Final = REACH_ENDS**2
REACH_BINS: Final = len(REACH_ENDS) + 1
WITHIN: Final = 48
"""Equal bins of |u|²/R² from 0 to 1: rows that a clip at R leaves as they are."""
BEYOND: Final = 16
"""Equal bins of 1 − R²/|u|², the part of its weight that a longer row loses."""
CLIP_SQUARES: Final = np.concatenate(
    [np.arange(1, WITHIN) / WITHIN, [np.nextafter(1.0, 2.0)], 1.0 / (1.0 - np.arange(1, BEYOND) / BEYOND)]
)
"""|u|²/R² at the ends of these bins; a row that is just as long as R is not clipped."""

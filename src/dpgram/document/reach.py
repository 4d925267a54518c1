"""Quarter octaves of a row's length over a radius: in which rows are counted to choose the next radius."""

from __future__ import annotations

from typing import Final

import numpy as np

REACH_ENDS: Final = 2.0 ** (np.arange(-6, 9) / 4.0)
"""|u|/R at the ends of the bins, from 2^−1.5 to 4; there is a bin below the first and one beyond the last."""
REACH_SQUARES: Final = REACH_ENDS**2
REACH_BINS: Final = len(REACH_ENDS) + 1

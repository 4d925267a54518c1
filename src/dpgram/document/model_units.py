"""The units in which what a declared model needs is written: of directions, scores and Hessian matrices."""

from __future__ import annotations

import math
from typing import Final, Literal, TypeAlias

from dpgram.lattice import ROW_NORM

Curve: TypeAlias = Literal["linear", "logistic", "probit", "poisson"]
"""A family of declared models, by what its expectation is as a function of the index."""
DIRECTION_BITS: Final = 36
"""Of a unit vector: its integers are multiples of 2^−36."""
SCORE_UNIT: Final = float(ROW_NORM) * (1.0 - 2.0**-10)
"""A row of length 2^15 has a score of at most 2^30·(1 − 2⁻¹⁰): what is left is for rounding."""
WIDEST_CURVE: Final = {
    "linear": 1.0,
    "logistic": 0.25,
    "probit": 1.0 / math.sqrt(2.0 * math.pi),
    "poisson": 1.0,
}
"""The largest weight that a row has in the Hessian matrix; for counts in units of `cap`."""

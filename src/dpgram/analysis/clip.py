"""What a clip took from the rows, from noisy counts of their lengths: the weight lost, and what is left.

A row of length |u| > R counts with weight R²/|u|². With m = min(|u|², R²), the length that is left,

    lost = E(1 − R²/|u|²)₊,   kurtosis = d·E m² / ((d + 2)·(E m)²),

where d is the number of coordinates. The second is 1 for normal rows without a clip and corrects the sampling
error of least squares for rows of other lengths (inference.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from dpgram.document.fields import MeasuredClip
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.count_noise import CountNoise, projected_counts

if TYPE_CHECKING:
    from dpgram.document.document import Document

WITHIN: Final = 48
BEYOND: Final = 16


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClipCounts:
    """Shares of all rows by their length before the clip; noise that the counts cannot have is taken out."""

    lost: float
    """The part of all weight that the clip took."""
    clipped: float
    """The part of all rows that were longer than the radius."""
    mean: float
    """E min(|u|², R²)/R²."""
    square: float
    """E min(|u|², R²)²/R⁴."""
    deviation: float
    """Of the noise on one share."""


def clip_counts(release: Document) -> ClipCounts | None:
    """Nothing where it was not counted."""
    found = [each for each in release.measured if isinstance(each, MeasuredClip)]
    if not found:
        return None
    (measured,) = found
    counts = np.array([int(cell) / ROW_NORM_SQUARED for cell in measured.cells])
    total = max(float(counts.sum()), 1.0)
    shares = projected_counts(counts, total) / total
    lengths = np.concatenate([(np.arange(WITHIN) + 0.5) / WITHIN, np.ones(BEYOND)])
    taken = np.concatenate([np.zeros(WITHIN), (np.arange(BEYOND) + 0.5) / BEYOND])
    return ClipCounts(
        lost=float(shares @ taken),
        clipped=float(shares[WITHIN:].sum()),
        mean=float(shares @ lengths),
        square=float(shares @ lengths**2),
        deviation=CountNoise(law=measured.law, scale=measured.scale).deviation / total,
    )

"""What a clip took from the rows, by noisy counts of their lengths: weight lost, sampling error left.

A row of length |u| > R counts with w² = R²/|u|², others with w² = 1. Least squares on rows so weighted is a
regression of bounded influence: no row moves it by more than a row of length R can. Its sampling error is
A⁻¹ E(w⁴e²xxᵀ) A⁻¹, which second moments do not give. With s²A for E(w²e²)E(w²xxᵀ)/E w², the factor between
them is, where rows have the same law in every direction (d of them beside the constant),

    d/(d + 2) · E p²/(E p)² · E w²,   p = w²(|u|² − 1),

and where errors are independent of features and cause few of the clips, E(w⁴|u|²)/E(w²|u|²). The smaller of
the two is used: each is too large where the other is right, and in simulations neither is too small
(benchmarks/results/clip-factor.md).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np

from dpgram.document.fields import MeasuredClip
from dpgram.document.reach import BEYOND, WITHIN
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.count_noise import CountNoise, projected_counts

if TYPE_CHECKING:
    from dpgram.document.document import Document


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ClipCounts:
    """Shares of all rows by their length before the clip; noise that the counts cannot have is taken out."""

    lost: float
    """The part of all weight that the clip took."""
    clipped: float
    """The part of all rows that were longer than the radius."""
    lost_sd: float
    """The standard deviation of the noise in `lost`."""
    shares: tuple[float, ...]
    """Of all rows, by the length before the clip: 48 equal bins of |u|²/R², 16 of 1 − R²/|u|²."""

    def sampling_factor(self, radius: float, width: int, *, constant: bool) -> float:
        """By how much the clip, and lengths that differ, change s²A; 1 for normal rows without a clip.

        An approximation, and why: proofs/adaptive.md#adaptive-estimand.
        """
        shares, weights, lengths = np.array(self.shares), 1.0 - _TAKEN, _LEFT * radius**2
        within = np.maximum(lengths - weights, 0.0) if constant else lengths
        directions = max(width - int(constant), 1)
        alike = (
            directions
            / (directions + 2.0)
            * float(shares @ within**2)
            / max(float(shares @ within) ** 2, np.finfo(np.float64).tiny)
            * float(shares @ weights)
        )
        independent = float(shares @ (weights * lengths)) / max(float(shares @ lengths), 1e-300)
        return min(alike, independent, 1.0)

    def largest_shift(self, radius: float, rows: float) -> float:
        """Standard errors by which any coefficient can differ from that of least squares: √n·E(|u|² − R²)₊/2.

        A row of which w² is left takes (1 − w²)xe from a score, and |xe| ≤ |u|²/2 in coordinates of unit
        variance. Two deviations of noise are added, most of them for the few rows that may lie far out. In
        simulations, errors that are skewed and grow with a feature reach half of it.
        """
        doubt = self.lost_sd * float(np.linalg.norm(_BEYOND) / np.linalg.norm(_TAKEN))
        beyond = float(np.array(self.shares) @ _BEYOND)
        return 0.5 * radius**2 * (beyond + 2.0 * doubt) * math.sqrt(rows)


_LEFT: Final = np.concatenate([(np.arange(WITHIN) + 0.5) / WITHIN, np.ones(BEYOND)])
"""min(|u|², R²)/R² in the middle of each bin."""
_TAKEN: Final = np.concatenate([np.zeros(WITHIN), (np.arange(BEYOND) + 0.5) / BEYOND])
"""1 − w² there."""
_BEYOND: Final = _TAKEN / (1.0 - _TAKEN)
"""(|u|² − R²)/R² there, and 0 within."""


def clip_counts(release: Document) -> ClipCounts | None:
    """Nothing where it was not counted."""
    found = [each for each in release.measured if isinstance(each, MeasuredClip)]
    if not found:
        return None
    (measured,) = found
    counts = np.array([int(cell) / ROW_NORM_SQUARED for cell in measured.cells])
    total = max(float(counts.sum()), 1.0)
    shares = projected_counts(counts, total) / total
    deviation = CountNoise(law=measured.law, scale=measured.scale).deviation
    return ClipCounts(
        lost=float(shares @ _TAKEN),
        clipped=float(shares[WITHIN:].sum()),
        lost_sd=deviation * float(np.linalg.norm(_TAKEN)) / total,
        shares=tuple(shares.tolist()),
    )

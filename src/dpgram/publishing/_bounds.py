"""Bounds of a numeric column from noisy histograms: octaves → coarse bounds → location ± c·scale.

First a histogram over signed powers of two, wide enough for every float: the octaves that stand out of the
noise, with what is significant beside them, give coarse bounds. Then some over equal bins between these, or
closer (`looks`); their projection onto the histograms that add up to the noisy number of rows gives location
and scale, and bounds c scales around the location. c balances noise, which grows with the bounds, against
clamping, which falls with them. Everything here is post-processing of noisy counts: proofs/bounds.md.
"""

from __future__ import annotations

import math
import sys
from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.core import LEAST_EXPONENT, OCTAVES, ZERO
from dpgram.document.octaves import OctaveRun
from dpgram.privacy.count_noise import CountNoise, projected_counts
from dpgram.sums.zoom import BINS

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

USUAL: Final = 40
"""Exponents in ±40 (10⁻¹² to 10¹²) are searched at a lower threshold than the other two thousand."""
_FALSE_ALARM: Final = 0.01
"""Chance that any octave of any column stands out by noise alone."""
_FAR: Final = 10
"""Octaves beyond the fullest one from which one that stands out by noise alone would ruin the release."""
_FAR_ALARM: Final = 1e-6
"""The chance of such a one."""
_BESIDE: Final = 2.5
"""Standard deviations from which what lies beside the octaves found belongs to them."""
_LAST: Final = 1.0
"""Standard deviations that the farthest octave itself must show."""
_GAP: Final = 3
"""Octaves that may be bridged at once."""
_FULLEST: Final = 0.25
"""Part of the rows in the fullest octave of a column that should still be found."""

_EXPONENTS: Final[Integers] = np.abs(np.arange(OCTAVES) - ZERO) + LEAST_EXPONENT - 1
"""Of the powers of two at which octaves begin; that of zeros is below all others."""
_IS_USUAL: Final = (np.abs(_EXPONENTS) <= USUAL) | (np.arange(OCTAVES) == ZERO)
_USUAL_CELLS: Final = int(_IS_USUAL.sum())

LEAST_REACH: Final = 1.5
GREATEST_REACH: Final = 5.0
_UNCLIPPED: Final = 2.0
"""Noise counts this much more against clamping, because no clip keeps long rows from adding to it."""


def rows_needed(noise: CountNoise, columns: int) -> float:
    """From how many rows on a column with a quarter of them in one octave is found."""
    return float(_marks(noise, columns, _FALSE_ALARM)[ZERO]) / _FULLEST


def coarse_bounds(octaves: Floats, noise: CountNoise, columns: int) -> OctaveRun | None:
    """The octaves that hold the column, from noisy counts in rows; nothing where noise hides them all.

    An octave counts when noise alone would hardly reach it anywhere; one beside the run found so far counts
    from a lower mark, since there are few such places; and one of a thousand times larger values from a
    higher mark, since bounds out there would leave the column in a corner.
    """
    (found,) = np.nonzero(octaves > _marks(noise, columns, _FALSE_ALARM))
    if len(found) == 0:
        return None
    sure = octaves[found] > _marks(noise, columns, _FAR_ALARM)[found]
    held = found[_EXPONENTS[found] <= _largest(octaves[found], _EXPONENTS[found], sure)]
    first = _extended(octaves, int(held[0]), -1, noise.deviation)
    return OctaveRun(first=first, last=_extended(octaves, int(held[-1]), 1, noise.deviation))


def _largest(counts: Floats, exponents: Integers, sure: npt.NDArray[np.bool_]) -> int:
    """The largest exponent that holds values: from the fullest octave upwards, over gaps that are not far.

    Zeros say nothing of how large the other values are.
    """
    nonzero = exponents >= LEAST_EXPONENT
    if not nonzero.any():
        return int(exponents.max())
    largest = int(exponents[nonzero][np.argmax(counts[nonzero])])
    for place in np.argsort(exponents):
        if sure[place] or exponents[place] <= largest + _FAR:
            largest = max(largest, int(exponents[place]))
    return largest


def _marks(noise: CountNoise, columns: int, alarm: float) -> Floats:
    """A count for each octave, in rows, that noise alone reaches in none of them but with this chance."""
    usual, others = (
        noise.upper_quantile(0.5 * alarm / (cells * columns)) for cells in (_USUAL_CELLS, OCTAVES)
    )
    return np.where(_IS_USUAL, usual, others)


def _extended(octaves: Floats, end: int, step: int, deviation: float) -> int:
    """The end of the run, moved on as long as the next few octaves together are significant."""
    while end != ZERO:
        total, beyond = 0.0, end
        for distance in range(1, _GAP + 1):
            place = end + step * distance
            if not 0 <= place < OCTAVES:
                break
            total += octaves[place]
            if octaves[place] > _LAST * deviation and total > _BESIDE * deviation * math.sqrt(distance):
                beyond = place
                break
        if beyond == end:
            return end
        end = beyond
    return end


def fine_bounds(bins: Floats, low: float, high: float, *, rows: float, reach: float) -> tuple[float, float]:
    """location ± reach·scale, from noisy counts, in rows, of the equal bins between `low` and `high`.

    The scale is √(π/2)·E|x − location|, a normal column's deviation: noise far out inflates squares far more.
    Proof: proofs/bounds.md#bounds-after.
    """
    shares = projected_counts(bins, rows) / rows
    middles = (np.arange(BINS) + 0.5) / BINS
    location = float(shares @ middles)
    # The values of a bin are not all in its middle.
    scale = math.hypot(
        math.sqrt(math.pi / 2.0) * float(shares @ np.abs(middles - location)), 1.0 / (math.sqrt(12.0) * BINS)
    )
    most = sys.float_info.max
    first, last = (
        min(max(low * (1.0 - place) + high * place, -most), most)
        for place in (location - reach * scale, location + reach * scale)
    )
    return first, last


def reach_for(noise_norm: float, rows: float) -> float:
    """c with 2c·λ‖N‖/n = √2·e^{−√2·c}, between 1.5 and 5: where wider bounds cost what they save.

    `noise_norm` is the operator norm of the noise for rows of length 1, in rows, and λ = 2. Columns scaled to
    ±c deviations have noise ∝ c² relative to their variance; clamping at c deviations removes E(|z| − c)₊²,
    for which double exponential tails stand in: heavier than normal ones, as real columns mostly are.
    """
    relative = _UNCLIPPED * noise_norm / max(rows, 1.0)
    low, high = LEAST_REACH, GREATEST_REACH
    while high - low > 1e-6:
        middle = 0.5 * (low + high)
        if 2.0 * middle * relative < math.sqrt(2.0) * math.exp(-math.sqrt(2.0) * middle):
            low = middle
        else:
            high = middle
    return low

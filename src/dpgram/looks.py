"""Sixteen equal bins of each column, looked at several times: closer where two of them hold nearly all of it.

A year or a density near 1 varies little beside its size. Powers of two see its size, and sixteen bins between
two of them nothing else: so the next look goes to the two bins that are full, eight times closer. A column
that is spread out is looked at again as it is, and the looks are averaged, which loses nothing: k looks at a
k-th of the price have together the noise of one at the whole price (Gaussian noise). The bins of every look
are unions of the finest ones, which are counted exactly in one pass. proofs/bounds.md
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.counts import CountLaw, CountNoise, projected
from dpgram.release_parts import LearntLook

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

BINS: Final = 16
"""Equal bins of one look."""
LOOKS: Final = 4
"""With Gaussian noise: three times eight closer than the coarse bounds, 10⁻⁴ of their width in the end."""
_CLOSER: Final = BINS // 2
FINEST: Final = BINS * _CLOSER ** (LOOKS - 1)
"""Equal bins between the coarse bounds that every look is made of."""

CROWDED: Final = 0.8
"""The part of all values in two neighbouring bins from which their bounds count as too wide."""
STANDS_OUT: Final = 1e-3
"""Chance that noise alone makes any of the other bins stand out, so that wide bounds go unnoticed."""


def looks_for(law: CountLaw) -> int:
    """How often each column is looked at. Laplace noise adds up faster than averages take it away: once."""
    return LOOKS if law == "discrete-gaussian" else 1


def finest_counts(values: Floats, low: float, high: float) -> Integers:
    """How many finite values lie in each of the finest bins; those outside count in the bin at the end.

    Proof: proofs/bounds.md#bounds-parts.
    """
    finite = values[np.isfinite(values)]
    share = (np.clip(finite, low, high) / 2 - low / 2) / (high / 2 - low / 2)
    return np.bincount(np.minimum((share * FINEST).astype(np.int64), FINEST - 1), minlength=FINEST)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Where one look goes, in finest bins: 16 equal bins from `first` on."""

    first: int = 0
    width: int = FINEST

    def counts(self, finest: Integers) -> Integers:
        """The finest bins put together; what lies outside counts in the bin at the end.

        Proof: proofs/bounds.md#bounds-parts.
        """
        end = self.first + self.width
        counts: Integers = finest[self.first : end].reshape(BINS, -1).sum(axis=1)
        counts[0] += finest[: self.first].sum()
        counts[-1] += finest[end:].sum()
        return counts

    def edges(self, low: float, high: float) -> tuple[float, float]:
        """Its ends, where all finest bins are those between `low` and `high`."""
        first, last = self.first / FINEST, (self.first + self.width) / FINEST
        return low * (1.0 - first) + high * first, low * (1.0 - last) + high * last

    def closer(self, place: int) -> Self:
        """The bins `place` and `place` + 1 of this window, as a window."""
        step = self.width // BINS
        return type(self)(first=self.first + place * step, width=2 * step)

    @property
    def closest(self) -> bool:
        """Whether there are no smaller bins."""
        return self.width == BINS


def latest(looks: Sequence[LearntLook]) -> tuple[Floats, int]:
    """Counts, in rows, of the bins looked at last, averaged over all looks at these; how many looks."""
    last = looks[-1]
    same = [look.bins for look in looks if (look.low, look.high) == (last.low, last.high)]
    counts = np.mean([[int(cell) / ROW_NORM_SQUARED for cell in bins] for bins in same], axis=0)
    return np.asarray(counts), len(same)


def crowded(looks: Sequence[LearntLook], rows: float, noise: CountNoise) -> int | None:
    """The first of two neighbouring bins that hold nearly all of the column, as far as noisy counts can tell.

    Four fifths lie in these two, and no other bin stands out of the noise. A column of many zeros and some
    ones is no such case: the ones stand out, and the bounds are right.
    """
    counts, averaged = latest(looks)
    likely = projected(counts, rows)
    pairs = likely[:-1] + likely[1:]
    fullest = int(np.argmax(pairs))
    others = np.delete(counts, [fullest, fullest + 1])
    left = CountNoise(law=noise.law, scale=noise.scale / math.sqrt(averaged))
    hidden = float(np.max(others)) <= left.exceeded(STANDS_OUT / len(counts))
    return fullest if hidden and float(pairs[fullest]) >= CROWDED * rows else None

"""Finer bounds of a numeric column: noisy counts in 16 equal bins, several times, zooming in on full ones.

A year or a density near 1 varies little beside its size. Powers of two see its size, and sixteen bins between
two of them nothing else: so the next look goes to the two bins that are full, eight times closer. A column
that is spread out is looked at again as it is, and the looks are averaged, which loses nothing: k looks at a
k-th of the price have together the noise of one at the whole price (Gaussian noise). The bins of every look
are unions of the finest ones, which are counted exactly in one pass. proofs/bounds.md
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.privacy.count_noise import CountLaw

Integers = npt.NDArray[np.int64]

BINS: Final = 16
"""Equal bins of one look."""
ZOOM_STEPS: Final = 4
"""With Gaussian noise: three times eight closer than the coarse bounds, 10⁻⁴ of their width in the end."""
_CLOSER: Final = BINS // 2
FINEST: Final = BINS * _CLOSER ** (ZOOM_STEPS - 1)
"""Equal bins between the coarse bounds that every look is made of."""


def zoom_steps(law: CountLaw) -> int:
    """How often each column is counted. Laplace noise adds up faster than averages take it away: once."""
    return ZOOM_STEPS if law == "discrete-gaussian" else 1


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

"""Noisy counts: one row adds 2^30 lattice units to at most one cell of each of m histograms.

So neighbours differ, over all m together, by √m·2^30 in L2 and m·2^30 in L1 (add/remove), or √(2m)·2^30 and
2m·2^30 (replace-one: one cell down, another up). With discrete Gaussian noise of scale σ this is
μ² = m·units_changed·2^60/σ²; with discrete Laplace noise of scale b it is ε = m·units_changed·2^30/b. Both
are exact rationals here, so that parts add up without rounding. proofs/bounds.md
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

from dpgram.lattice import ROW_NORM_SQUARED

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from dpgram.core.noise import Entropy, Integers, Noise
    from dpgram.privacy.events import Event

CountLaw: TypeAlias = Literal["discrete-gaussian", "discrete-laplace"]
_NUDGE: Final = 1.0 + 2.0**-40
"""What a scale is enlarged by, so that rounding can only make a part cheaper than its share."""


def price_of_counts(law: CountLaw, scale: float, *, histograms: int, units_changed: int) -> Fraction:
    """μ² (Gaussian) or ε (Laplace) of one draw, exactly; `units_changed`: 1 (add/remove) or 2 (replace-one).

    Proof: proofs/bounds.md#bounds-sensitivity.
    """
    if law == "discrete-gaussian":
        return histograms * units_changed * (ROW_NORM_SQUARED / Fraction(scale)) ** 2
    return histograms * units_changed * ROW_NORM_SQUARED / Fraction(scale)


def scale_of_counts(law: CountLaw, price: float, *, histograms: int, units_changed: int) -> float:
    """The least scale whose price is at most `price`, up to 10⁻¹² of it.

    Proof: proofs/bounds.md#bounds-composition.
    """
    if law == "discrete-gaussian":
        return math.sqrt(histograms * units_changed / price) * ROW_NORM_SQUARED * _NUDGE
    return histograms * units_changed / price * ROW_NORM_SQUARED * _NUDGE


def count_event(noise: CountNoise, *, histograms: int, units_changed: int) -> Event:
    """What one draw costs, rounded up."""
    from dpgram.privacy.events import GaussianEvent, PureEvent
    from dpgram.privacy.exact_sums import float_up, root_up

    cost = price_of_counts(noise.law, noise.scale, histograms=histograms, units_changed=units_changed)
    gaussian = noise.law == "discrete-gaussian"
    return GaussianEvent(mu=root_up(cost)) if gaussian else PureEvent(epsilon=float_up(cost))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class CountNoise:
    """Exact integer noise on counts, in lattice units: 2^30 of them are one row."""

    law: CountLaw
    scale: float

    @property
    def deviation(self) -> float:
        """The standard deviation, in rows."""
        rows = self.scale / ROW_NORM_SQUARED
        return rows if self.law == "discrete-gaussian" else rows * math.sqrt(2.0)

    def upper_quantile(self, probability: float) -> float:
        """A number of rows that the noise of one cell exceeds with at most this probability.

        P(X ≥ k) ≤ P(N(0, σ²) ≥ k − 1) for the discrete Gaussian, and ≤ e^{−k/b} for the discrete Laplace.

        Proof: proofs/levels.md#levels-tail.
        """
        if self.law == "discrete-gaussian":
            from scipy.special import ndtri_exp

            reach = -float(ndtri_exp(math.log(probability))) * self.scale + 1.0
        else:
            reach = -math.log(probability) * self.scale
        return max(reach, 1.0) / ROW_NORM_SQUARED * _NUDGE

    def sum_quantile(self, cells: int, probability: float) -> float:
        """A number of rows that the noise of so many cells together exceeds with at most this probability.

        Chernoff's bound: E e^{λX} ≤ e^{λ²σ²/2} for the discrete Gaussian, and ≤ 1/(1 − λ²b²) for the discrete
        Laplace (sinh²(λ/2)/sinh²(1/2b) ≤ λ²b² below λ = 1/b), whose best λ at a sum of u·b with m cells is
        (√(m² + u²) − m)/(u·b).
        """
        surprise = -math.log(probability)
        if self.law == "discrete-gaussian":
            return math.sqrt(2.0 * cells * surprise) * self.scale / ROW_NORM_SQUARED

        from scipy.optimize import brentq

        def excess(reach: float) -> float:
            x = (math.hypot(cells, reach) - cells) / reach
            return x * reach + cells * math.log1p(-x * x) - surprise

        most = 4.0 * (cells + surprise)  # x ≥ 3/5 there, and 2/5 of the reach is more than `surprise`
        return float(brentq(excess, 1e-9, most)) * self.scale / ROW_NORM_SQUARED

    def draw(self, cells: npt.NDArray[np.int64], entropy: Entropy) -> Integers:
        """Cells in lattice units + noise. Call it only after the event has been charged."""
        from dpgram.core.noise import on_cells

        return on_cells(cells, self.core, entropy)

    @property
    def core(self) -> Noise:
        """The same for the core, which draws it."""
        from dpgram.core.noise import Noise

        return Noise("gaussian" if self.law == "discrete-gaussian" else "laplace", self.scale)


def level_threshold(noise: CountNoise, delta: float, columns: int) -> int:
    """The least noisy count, in lattice units, at which a learnt level is published; rounded up.

    Proof: proofs/levels.md#levels-claim.
    """
    from dpgram.core.noise import threshold

    return threshold(replace(noise.core, delta=delta), columns)


def in_rows(cells: Integers) -> npt.NDArray[np.float64]:
    """Noisy cells as numbers of rows."""
    import numpy as np

    return np.asarray(cells.astype(np.float64) / ROW_NORM_SQUARED, dtype=np.float64)


def projected_counts(counts: npt.NDArray[np.float64], total: float) -> npt.NDArray[np.float64]:
    """max(counts − θ, 0) with θ such that they add up to `total` > 0: the nearest possible histogram.

    Soft thresholding at a level that the data's own sparsity sets: empty bins lose their noise.
    """
    import numpy as np

    ordered = np.sort(counts)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(counts) + 1)
    # The first count is above its excess, but for rounding where it is 2^53 times the total.
    last = max(np.flatnonzero(ordered > excess), default=0)
    return np.asarray(np.maximum(counts - excess[last], 0.0))

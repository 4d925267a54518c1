"""A period of a series: Y_t = Σ_{s ≤ t} c_{t−s} X_s + Z_t, with plain noise on whole numbers."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, final

from dpgram.document.fields import Cell
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import CalibratedGaussian
from dpgram.mechanisms.base import IntegerMatrix
from dpgram.privacy.events import Event, GaussianEvent
from dpgram.privacy.exact_sums import root_up
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.gram import lower_triangle
from dpgram.rows.encoder import Encoder
from dpgram.sums.grams import GramStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy


@final
@dataclass(frozen=True, slots=True, repr=False)
class CombinedGram:
    """Σ_{s ≤ t} c_{t−s} X_s in whole numbers of any size. **Not private.**"""

    cells: IntegerMatrix

    def __repr__(self) -> str:
        return f"<CombinedGram of width {len(self.cells)}: EXACT, NOT PRIVATE, never publish>"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class StreamedGram(Measurement):
    """One line of the stream. Its price is that of all lines together, which were paid for at once.

    Proofs: proofs/series.md#series-sensitivity, proofs/series.md#series-composition.
    """

    kind: ClassVar[str] = "stream"
    result: ClassVar[Any] = tuple[Cell, ...]
    encoder: Encoder
    sigma: float
    """The scale of the noise of a diagonal cell, in lattice units times 2^bits."""
    sensitivity_squared: int
    """max |Σ_i C e_{t_i}|²: how far one person moves the stream, in units of 2^60."""

    @property
    def statistic(self) -> GramStatistic:
        """X_t; what earlier periods add to it is the curator's to keep."""
        return GramStatistic(self.encoder)

    @property
    def event(self) -> Event:
        """μ² = Δ²/σ² for the whole stream."""
        return GaussianEvent(mu=root_up(stream_price(self.sigma, self.sensitivity_squared)))

    def draw(self, exact: tuple[CombinedGram], entropy: Entropy) -> tuple[str, ...]:
        """Fresh noise on every cell of Σ_s c_{t−s} X_s."""
        (found,) = exact
        return lower_triangle(CalibratedGaussian(sigma=self.sigma).draw(found.cells, entropy).cells)


def stream_price(sigma: float, sensitivity_squared: int) -> Fraction:
    """μ² of a whole stream, exactly. Proof: proofs/series.md#series-sensitivity."""
    return sensitivity_squared * (ROW_NORM_SQUARED / Fraction(sigma)) ** 2

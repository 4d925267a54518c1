"""The matrix itself: Σ q qᵀ in public or published coordinates, with the noise of any mechanism."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

import numpy as np
from msgspec import Struct

from dpgram.core.encode import broken
from dpgram.document.fields import MeasuredMatrix, PublishedMatrix
from dpgram.errors import MechanismError
from dpgram.mechanisms import CalibratedMechanism, Drawn, PublicFacts
from dpgram.mechanisms.base import IntegerMatrix
from dpgram.noise import Law, MatrixLaplace, SymmetricGaussian
from dpgram.publishing.measurements.base import Measurement
from dpgram.rows.encoder import Encoder
from dpgram.sums.grams import GramStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy, Noise
    from dpgram.core.run import Noisy
    from dpgram.privacy.events import Event
    from dpgram.sums.exact_gram import ExactGram


@final
class MeasuredGram(Struct, frozen=True, kw_only=True):
    """A noisy matrix, and the law of its noise."""

    matrix: PublishedMatrix
    noise: Law


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Gram(Measurement):
    """One matrix for each group, at the price of one: a row, or a unit, is in one group.

    Proofs: that of the mechanism, and proofs/units.md#units-groups.
    """

    kind: ClassVar[str] = "gram"
    result: ClassVar[Any] = tuple[MeasuredGram, ...]
    encoder: Encoder
    mechanism: CalibratedMechanism
    facts: PublicFacts

    @property
    def statistic(self) -> GramStatistic:
        """The Gram matrix of the encoded rows."""
        return GramStatistic(self.encoder)

    @property
    def event(self) -> Event:
        return self.mechanism.event(self.facts)

    @property
    def added(self) -> Noise | None:
        return self.mechanism.added

    def record(self, drawn: tuple[Noisy, ...]) -> tuple[MeasuredGram, ...]:
        """A noisy matrix for each group."""
        made = [Drawn(cells=cells, noise=_law(self.mechanism, len(cells))) for cells in _matrices(drawn)]
        return tuple(MeasuredGram(matrix=published_matrix(one), noise=one.noise) for one in made)

    def draw(self, exact: tuple[ExactGram, ...], entropy: Entropy) -> tuple[MeasuredGram, ...]:
        """A noisy matrix for each group, by a mechanism with a law of its own."""
        drawn = [self.mechanism.draw(found.cells, entropy) for found in exact]
        return tuple(MeasuredGram(matrix=published_matrix(one), noise=one.noise) for one in drawn)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class FirstGram(Measurement):
    """A matrix in rough coordinates, from which better ones follow.

    Proofs: that of the mechanism, and proofs/adaptive.md#adaptive-composition.
    """

    kind: ClassVar[str] = "first-gram"
    result: ClassVar[Any] = MeasuredMatrix
    encoder: Encoder
    mechanism: CalibratedMechanism
    facts: PublicFacts
    share: float
    """Of the event's currency: for the record."""

    @property
    def statistic(self) -> GramStatistic:
        return GramStatistic(self.encoder)

    @property
    def event(self) -> Event:
        return self.mechanism.event(self.facts)

    @property
    def added(self) -> Noise | None:
        return self.mechanism.added

    def record(self, drawn: tuple[Noisy, ...]) -> MeasuredMatrix:
        """One noisy matrix."""
        (cells,) = _matrices(drawn)
        coordinates, noise = self.encoder.coordinates, _law(self.mechanism, len(cells))
        if coordinates is None or not isinstance(noise, SymmetricGaussian | MatrixLaplace):
            raise MechanismError(
                "a first matrix has coordinates and noise that was added",
                remedy="This is a bug: please report it",
            )
        return MeasuredMatrix(
            share=self.share,
            coordinates=coordinates,
            radius=self.encoder.radius,
            noise=noise,
            cells=lower_triangle(cells),
        )


def _matrices(drawn: tuple[Noisy, ...]) -> Iterator[IntegerMatrix]:
    """What the core drew, as matrices."""
    for (cells,) in drawn:
        if isinstance(cells, Mapping):
            raise broken("these are no matrices")
        yield cells


def _law(mechanism: CalibratedMechanism, width: int) -> Law:
    """Of noise that is added: the same whatever the matrix."""
    return mechanism.expected(np.zeros(width))


def published_matrix(drawn: Drawn) -> PublishedMatrix:
    """The lower triangle, row by row, as decimal strings."""
    return PublishedMatrix(kind=drawn.kind, exponent=drawn.exponent, cells=lower_triangle(drawn.cells))


def lower_triangle(cells: IntegerMatrix) -> tuple[str, ...]:
    """The cells on and below the diagonal, row by row, as decimal strings."""
    return tuple(str(int(cell)) for cell in cells[np.tril_indices(len(cells))])


def full_matrix(triangle: tuple[str, ...], width: int) -> IntegerMatrix:
    """The symmetric matrix of which `lower_triangle` gave these cells."""
    rows, columns = np.tril_indices(width)
    matrix = np.empty((width, width), dtype=object)
    matrix[rows, columns] = matrix[columns, rows] = [int(cell) for cell in triangle]
    return matrix

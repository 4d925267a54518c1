"""What is measured: a sum, and the noise on it. The price is computed from both, the noise is drawn here.

Whoever asks for a measure chooses a sum and a scale. What that costs is not for him to say: `Measure.price`
has it from the sensitivity of the sum, and `draw` puts that noise on it and no other. What is published of
it later is post-processing. Proof: proofs/core.md#core-run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias, final

import numpy as np

from dpgram.core.accounting import Price, price
from dpgram.core.encode import broken
from dpgram.core.noise import Entropy, Integers, Noise, on_cells, on_matrix, threshold
from dpgram.core.sensitivity import Relation
from dpgram.core.sums import Cells, EachGroup, Gram, Histograms, Levels, Sum

Noisy: TypeAlias = "tuple[Integers, ...] | tuple[Mapping[str, int], ...]"
"""A noisy matrix, or a line of noisy cells for each histogram, or the texts of each column that are shown."""


@final
@dataclass(frozen=True, slots=True)
class Measure:
    """One sum, and the noise that is put on it."""

    what: Sum
    noise: Noise

    def price(self, relation: Relation) -> Price:
        """What one draw costs."""
        return price(self.what, self.noise, relation)

    def draw(self, exact: Sequence[Cells], entropy: Entropy) -> tuple[Noisy, ...]:
        """One draw, of the sum of every group. Call it only after the charge.

        Proof: proofs/core.md#core-run.
        """
        wholes = list(self._wholes())
        if len(wholes) != len(exact):
            raise broken("there are sums of other groups than were asked for")
        return tuple(self._drawn(one, cells, entropy) for one, cells in zip(wholes, exact, strict=True))

    def _wholes(self) -> Iterator[Sum]:
        """What is added up of each group."""
        if isinstance(self.what, EachGroup):
            yield from (one for one in self.what.members if one is not None)
        else:
            yield from [self.what] * (self.what.groups if isinstance(self.what, Gram) else 1)

    def _drawn(self, what: Sum, exact: Cells, entropy: Entropy) -> Noisy:
        if isinstance(what, Levels):
            return tuple(self._shown(what, counts, entropy) for counts in _texts(exact))
        if isinstance(exact, tuple):
            raise broken("texts are shown above a threshold alone")
        if isinstance(what, Gram):
            return (on_matrix(exact, self.noise, entropy),)
        lines = list(exact)
        if isinstance(what, Histograms):
            lines = [line[: one.cells + one.losses] for one, line in zip(what.columns, exact, strict=True)]
        return tuple(on_cells(line, self.noise, entropy) for line in lines)

    def _shown(self, what: Levels, counts: Mapping[str, int], entropy: Entropy) -> dict[str, int]:
        """Texts whose noisy counts reach the threshold. A text that does not occur is never drawn for."""
        least = threshold(self.noise, len(what.lines))
        # In sorted order: the order of rows must not show in what a seeded draw gives to which text.
        names = sorted(counts)
        noisy = on_cells(np.array([counts[name] for name in names], np.int64), self.noise, entropy)
        return {name: int(cell) for name, cell in zip(names, noisy, strict=True) if cell >= least}


def _texts(exact: Cells) -> tuple[Mapping[str, int], ...]:
    if not isinstance(exact, tuple):
        raise broken("these are no counts of texts")
    return exact

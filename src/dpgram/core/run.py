"""The order that is the guarantee, written once: price → read → pay → draw → keep → publish, stage by stage.

    price     by the core, of the sums and the noise; with all before it within what was promised
    read      every row once, into exact whole numbers; a failure so far has cost nothing
    pay       the whole promise, durably, before the first draw
    draw      noise on the sums
    keep      on disk, before anybody can act on it: no second noise is ever drawn for a stage
    publish   the program sees what was drawn, and public facts; the next stage may depend on both

A caller chooses a sum and a scale; what a draw of it costs is computed here, whatever the caller believes.
Proof: proofs/core.md#core-run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias, TypeVar, final

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


class OwnLaw(Protocol):
    """A mechanism with a law of its own, which draws from exact sums: each has a page in proofs/."""

    @property
    def cost(self) -> Price:
        """What one draw costs."""

    def draw(self, exact: Any, entropy: Entropy, /) -> Any:
        """One draw."""


class Stage(Protocol):
    """One pass over the table, and what is drawn of its sums."""

    @property
    def wanted(self) -> Sequence[Measure | OwnLaw]:
        """Public facts, and what was published before, decide it."""

    def record(self, drawn: Sequence[Any]) -> tuple[Any, ...]:
        """What is published of what was drawn."""


S = TypeVar("S", bound=Stage)


class Office(Protocol[S]):
    """What stands around the core: which stage is next, who reads rows, who pays, what is on disk."""

    def following(self, published: tuple[Any, ...] | None, spent: Price) -> S | None:
        """The next stage, given what the one before it published; None where all is done."""

    def kept(self, number: int, stage: S) -> tuple[Any, ...] | None:
        """What an interrupted run has published of this stage."""

    def read(self, number: int, stage: S) -> Sequence[Any]:
        """The exact sums of every measure."""

    def pay(self) -> None:
        """Reserve the whole promise, durably, if that was not done."""

    def keep(self, number: int, stage: S, published: tuple[Any, ...]) -> None:
        """Durable when this returns."""


def carry_out(office: Office[S], *, promised: Price, relation: Relation, entropy: Entropy) -> None:
    """Every stage that the office names, in the order above.

    Proof: proofs/core.md#core-run.
    """
    spent, number, stage = Price(), 0, office.following(None, Price())
    while stage is not None:
        wanted = stage.wanted
        for one in wanted:
            spent += one.price(relation) if isinstance(one, Measure) else one.cost
        if not spent.within(promised):
            raise broken("a measurement would cost more than was promised, and nothing was drawn of it")
        published = office.kept(number, stage)
        if published is None:
            sums = office.read(number, stage)
            office.pay()
            drawn = [one.draw(exact, entropy) for one, exact in zip(wanted, sums, strict=True)]
            published = stage.record(drawn)
            office.keep(number, stage, published)
        else:
            office.pay()
        stage = office.following(published, spent)
        number += 1

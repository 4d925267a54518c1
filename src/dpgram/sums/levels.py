"""How often each text occurs in a column without listed levels. A row, or a unit, counts once, as 2^30."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self, final

from dpgram.core import sums as core
from dpgram.core.units import PolicyCounts
from dpgram.errors import DpgramError
from dpgram.rows.learnt_levels import LONGEST_LEVEL
from dpgram.sums._exact_cells import packed, unpacked
from dpgram.sums.base import CoreStatistic

if TYPE_CHECKING:
    from dpgram.rows.rules import RowRules


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactLevels:
    """Exact counts of every text that occurs, column by column. **Not private.** A monoid under `|`."""

    MAGIC: ClassVar[bytes] = b"dpgram exact levels, not private, 1\n"

    cells: tuple[Counter[str], ...] = field(repr=False)
    counts: PolicyCounts = field(repr=False)

    def __or__(self, other: ExactLevels) -> ExactLevels:
        if len(self.cells) != len(other.cells):
            raise DpgramError("levels of different columns cannot be added")
        both = tuple(Counter(a) + Counter(b) for a, b in zip(self.cells, other.cells, strict=True))
        return ExactLevels(both, self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactLevels):
            return NotImplemented
        same = [dict(a) for a in self.cells] == [dict(b) for b in other.cells]
        return same and self.counts == other.counts

    def __hash__(self) -> int:
        return hash((self.counts, *(frozenset(each.items()) for each in self.cells)))

    def __repr__(self) -> str:
        return f"<ExactLevels of {len(self.cells)} columns: EXACT, NOT PRIVATE, never publish>"

    def to_bytes(self) -> bytes:
        """A self-checking form for shipping between workers."""
        payload = json.dumps([dict(each) for each in self.cells]).encode()
        return packed(self.MAGIC, {"counts": asdict(self.counts)}, payload)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the form written by `to_bytes`; refuses anything cut, altered or foreign."""
        head, payload = unpacked(cls.MAGIC, data)
        return cls(tuple(Counter(each) for each in json.loads(payload)), PolicyCounts(**head["counts"]))


@final
@dataclass(frozen=True, slots=True)
class LevelsStatistic(CoreStatistic):
    """The texts of columns without listed levels; longer ones than a level may be count nowhere.

    Proof: proofs/levels.md#levels-claim.
    """

    columns: tuple[str, ...]

    def what(self, rules: RowRules) -> core.Levels:
        lines = tuple(rules.schema.without_levels.index(name) for name in self.columns)
        return core.Levels(lines, LONGEST_LEVEL)

    def carried(self, found: core.Found) -> ExactLevels:
        texts, seen = found
        if not isinstance(texts, tuple):
            raise TypeError(type(texts).__name__)
        return ExactLevels(texts, seen)

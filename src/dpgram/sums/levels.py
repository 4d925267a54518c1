"""How often each text occurs in a column without listed levels. A row, or a unit, counts once, as 2^30."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self, final

import numpy as np
import pyarrow as pa

from dpgram.errors import DpgramError
from dpgram.rows.encoder import PolicyCounts
from dpgram.rows.learnt_levels import LONGEST_LEVEL
from dpgram.sums._exact_cells import packed, unpacked
from dpgram.sums.base import Statistic
from dpgram.sums.exact_gram import EXACT_ROWS

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules


@final
@dataclass(frozen=True, slots=True, eq=False)
class ExactLevels:
    """Exact counts of every text that occurs, column by column. **Not private.** A monoid under `|`."""

    MAGIC: ClassVar[bytes] = b"dpgram exact levels, not private, 1\n"

    found: tuple[Mapping[str, int], ...] = field(repr=False)
    counts: PolicyCounts = field(repr=False)

    def __or__(self, other: ExactLevels) -> ExactLevels:
        if len(self.found) != len(other.found):
            raise DpgramError("levels of different columns cannot be added")
        both = tuple(Counter(a) + Counter(b) for a, b in zip(self.found, other.found, strict=True))
        return ExactLevels(both, self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactLevels):
            return NotImplemented
        same = [dict(a) for a in self.found] == [dict(b) for b in other.found]
        return same and self.counts == other.counts

    def __hash__(self) -> int:
        return hash((self.counts, *(frozenset(each.items()) for each in self.found)))

    def __repr__(self) -> str:
        return f"<ExactLevels of {len(self.found)} columns: EXACT, NOT PRIVATE, never publish>"

    def to_bytes(self) -> bytes:
        """A self-checking form for shipping between workers."""
        payload = json.dumps([dict(each) for each in self.found]).encode()
        return packed(self.MAGIC, {"counts": asdict(self.counts)}, payload)

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the form written by `to_bytes`; refuses anything cut, altered or foreign."""
        head, payload = unpacked(cls.MAGIC, data)
        return cls(tuple(Counter(each) for each in json.loads(payload)), PolicyCounts(**head["counts"]))


@final
@dataclass(frozen=True, slots=True)
class LevelsStatistic(Statistic):
    """The texts of columns without listed levels; longer ones than a level may be count nowhere.

    Proof: proofs/levels.md#levels-claim.
    """

    columns: tuple[str, ...]

    def accumulator(self, rules: RowRules) -> LevelsAccumulator:
        """Working memory of one thread."""
        return LevelsAccumulator(self.columns, rules)

    def zero(self, rules: RowRules) -> tuple[ExactLevels, ...]:
        """No level in any column."""
        del rules
        return (ExactLevels(tuple(Counter() for _ in self.columns), PolicyCounts()),)


@final
class LevelsAccumulator:
    """Counts texts.

    Proof: proofs/measurements.md#measurements-sensitivity.
    """

    def __init__(self, columns: tuple[str, ...], rules: RowRules) -> None:
        open_columns = rules.schema.without_levels
        self._lines = [open_columns.index(name) for name in columns]
        self._found: tuple[Counter[str], ...] = tuple(Counter() for _ in columns)
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        chosen = rows.one_row_per_unit
        read, used = int(rows.placed.sum()), len(chosen)
        # As in every other sum: what is public of a first pass must not depend on what comes first in it.
        self._counts += rows.uncounted + PolicyCounts(
            rows_read=read, rows_used=used, rows_dropped=read - used
        )
        for start in range(0, len(chosen), EXACT_ROWS):
            piece = chosen[start : start + EXACT_ROWS]
            weights = rows.lattice_weights(piece).astype(np.float64)
            index = pa.array(piece)
            for line, found in zip(self._lines, self._found, strict=True):
                encoded = rows.rows.texts[line].take(index).dictionary_encode()
                codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False)
                there = codes >= 0
                totals = np.bincount(codes[there], weights[there], minlength=len(encoded.dictionary))
                for text, total in zip(encoded.dictionary.to_pylist(), totals.tolist(), strict=True):
                    if text and len(text) <= LONGEST_LEVEL and total:
                        found[text] += int(total)

    def result(self) -> tuple[ExactLevels, ...]:
        return (ExactLevels(tuple(Counter(each) for each in self._found), self._counts),)

"""Whose rows are in a period of a series, as keyed hashes of ids: for the curator's secret file alone."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, ClassVar, Self, final

import numpy as np

from dpgram.core.units import PolicyCounts
from dpgram.errors import DpgramError
from dpgram.rows.participation import HASH_BYTES, NOBODY, Hashes, distinct, keyed_hashes
from dpgram.sums._exact_cells import packed, unpacked
from dpgram.sums.base import Statistic

if TYPE_CHECKING:
    from dpgram.rows.batch import CountedRows
    from dpgram.rows.rules import RowRules


@final
@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ExactParticipants:
    """Who has a row that counts. **Not private.** A monoid under `|`."""

    MAGIC: ClassVar[bytes] = b"dpgram participants, not private, 1\n"

    hashes: Hashes = field(repr=False)
    counts: PolicyCounts = field(repr=False)

    def __or__(self, other: ExactParticipants) -> ExactParticipants:
        return ExactParticipants(np.union1d(self.hashes, other.hashes), self.counts + other.counts)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ExactParticipants):
            return NotImplemented
        return np.array_equal(self.hashes, other.hashes) and self.counts == other.counts

    def __hash__(self) -> int:
        return hash((self.hashes.tobytes(), self.counts))

    def __repr__(self) -> str:
        return "<ExactParticipants: NOT PRIVATE, never publish>"

    def to_bytes(self) -> bytes:
        """A self-checking form for shipping between workers."""
        return packed(self.MAGIC, {"counts": asdict(self.counts)}, self.hashes.tobytes())

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Read the form written by `to_bytes`; refuses anything cut, altered or foreign."""
        head, payload = unpacked(cls.MAGIC, data)
        if len(payload) % HASH_BYTES:
            raise DpgramError(
                "these bytes of participants contradict their own head", remedy="Make them again"
            )
        return cls(np.frombuffer(payload, NOBODY.dtype), PolicyCounts(**head["counts"]))


@final
@dataclass(frozen=True, slots=True)
class ParticipantsStatistic(Statistic):
    """Every unit with a row that is not left out, whether or not that row can be used.

    Proof: proofs/series.md#series-participation.
    """

    key: bytes = field(repr=False)

    def accumulator(self, rules: RowRules) -> ParticipantsAccumulator:
        """Working memory of one thread."""
        del rules
        return ParticipantsAccumulator(self.key)

    def zero(self, rules: RowRules) -> tuple[ExactParticipants, ...]:
        del rules
        return (ExactParticipants(NOBODY, PolicyCounts()),)


@final
class ParticipantsAccumulator:
    """Collects hashes of ids.

    Proof: proofs/series.md#series-participation.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key
        self._found: list[Hashes] = [NOBODY]
        self._counts = PolicyCounts()

    def add(self, rows: CountedRows) -> None:
        read = int(rows.placed.sum())
        self._counts += rows.uncounted + PolicyCounts(rows_read=read, rows_used=read)
        if rows.rows.ids is not None:
            names, places = distinct(rows.rows.ids)
            there = np.unique(places if rows.left_out is None else places[~rows.left_out]).tolist()
            self._found.append(keyed_hashes([names[place] for place in there], self._key))

    def result(self) -> tuple[ExactParticipants, ...]:
        return (ExactParticipants(np.unique(np.concatenate(self._found)), self._counts),)

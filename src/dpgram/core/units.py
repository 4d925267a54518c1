"""Privacy units: which rows of a person count, by the person's own id and rows alone, in no order.

Of a unit with more rows than it may have, the k with the least priorities are taken, priority = hash(id,
content, number of the copy): so no other person's rows, no batch, order or engine can change the choice. The
hashes are fixed for good and need no secrecy: privacy rests on the bound of a unit's rows, not on them.

Proof: proofs/units.md#units-claim.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, fields
from functools import cached_property
from operator import add, attrgetter
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core import SQUARE
from dpgram.core.encode import UNKNOWN_CELL, Floats, Integers, Mask, broken

Hashes = npt.NDArray[np.uint64]
Letters = npt.NDArray[np.uint8]

FNV_START: Final = np.uint64(0xCBF29CE484222325)
FNV_PRIME: Final = np.uint64(0x100000001B3)
GOLDEN: Final = np.uint64(0x9E3779B97F4A7C15)
MIX_FIRST: Final = np.uint64(0xBF58476D1CE4E5B9)
MIX_SECOND: Final = np.uint64(0x94D049BB133111EB)

_FEW: Final = 32
"""Texts so few that Python's integers are faster than lines of one letter of each."""
_BITS: Final = (1 << 64) - 1


def text_hashes(places: Integers, letters: Letters) -> Hashes:
    """64 bits of each text, whose letters are at places[i] … places[i + 1] − 1: FNV-1a, then mixed."""
    lengths = np.diff(places)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = places[:-1][order], lengths[order]
    values, shorter = np.full(len(order), FNV_START), -lengths
    place = 0
    # The longest texts come first: those that have a letter at this place are the first `longer` ones.
    while (longer := int(np.searchsorted(shorter, -place))) > _FEW:
        values[:longer] = (values[:longer] ^ letters[starts[:longer] + place]) * FNV_PRIME
        place += 1
    for text in range(longer):
        rest = letters[starts[text] + place : starts[text] + lengths[text]].tobytes()
        values[text] = _fnv(int(values[text]), rest)
    hashes = np.empty_like(values)
    hashes[order] = mixed(values)
    return hashes


def _fnv(value: int, letters: bytes) -> int:
    prime = int(FNV_PRIME)
    for letter in letters:
        value = ((value ^ letter) * prime) & _BITS
    return value


def mixed(values: Hashes) -> Hashes:
    """A fixed permutation of 64 bits in which every input bit moves every output bit."""
    with np.errstate(over="ignore"):
        values = values + GOLDEN
        values = (values ^ (values >> np.uint64(30))) * MIX_FIRST
        values = (values ^ (values >> np.uint64(27))) * MIX_SECOND
    return values ^ (values >> np.uint64(31))


def row_hashes(unit_hashes: Hashes, numbers: Floats) -> tuple[Hashes, Hashes]:
    """128 bits of each row and its id: rows that differ in content differ here, as far as anybody will see.

    `numbers` holds the rows' content with one form of zero and of NaN.
    """
    bits = np.ascontiguousarray(numbers).view(np.uint64)
    one, two = unit_hashes.copy(), mixed(unit_hashes)
    with np.errstate(over="ignore"):
        for place in range(bits.shape[1]):
            line = np.ascontiguousarray(bits[:, place])
            one = mixed(one ^ line)
            two = mixed(two + line)
    return one, two


def rows_that_count(units: Integers, unit_hashes: Hashes, numbers: Floats, at_most: int) -> Mask:
    """Which rows count: all of a unit with up to `at_most`, else those with the least priorities.

    `units` numbers the units from 0, `unit_hashes` is the hash of each row's id. All rows of every unit must
    be there.

    Proof: proofs/units.md#units-claim.
    """
    kept: Mask = np.ones(len(units), np.bool_)
    (rows,) = np.nonzero(np.bincount(units)[units] > at_most) if len(units) else (units,)
    if len(rows) == 0:
        return kept
    owners = units[rows]
    first, second = row_hashes(unit_hashes[rows], numbers[rows])
    order = np.lexsort((second, first, owners))
    copies = np.empty(len(rows), np.int64)
    copies[order] = _places(owners[order], first[order], second[order])
    numbered = copies.astype(np.uint64) * GOLDEN
    first, second = mixed(first ^ mixed(numbered)), mixed(second + numbered)
    order = np.lexsort((second, first, owners))
    kept[rows[order]] = _places(owners[order]) < at_most
    return kept


def _places(*keys: npt.NDArray[Any]) -> Integers:
    """0, 1, 2, … within each run of rows whose keys are all equal."""
    starts = np.zeros(len(keys[0]), np.bool_)
    starts[0] = True
    for key in keys:
        starts[1:] |= key[1:] != key[:-1]
    index = np.arange(len(starts))
    return index - np.maximum.accumulate(np.where(starts, index, 0))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyCounts:
    """How many rows and cells each policy touched; adds up over blocks. Exact, hence not private.

    Cells are counted over all rows read, dropped ones included, but for rows without a unit or group and
    rows beyond what a unit may have; all of these are dropped too. Rows clipped are among the rows used.
    """

    rows_read: int = 0
    rows_used: int = 0
    rows_dropped: int = 0
    cells_clamped: int = 0
    cells_missing: int = 0
    cells_unknown: int = 0
    rows_clipped: int = 0
    units_read: int = 0
    rows_without_unit: int = 0
    rows_over_unit_limit: int = 0
    rows_without_group: int = 0
    rows_without_weight: int = 0
    rows_left_out: int = 0
    """Of persons who have counted in as many periods of a series as they may, or too short a time ago."""

    def __add__(self, other: PolicyCounts) -> PolicyCounts:
        return PolicyCounts(**dict(zip(_COUNTED_BY, map(add, _counts(self), _counts(other)), strict=True)))


_COUNTED_BY: Final = tuple(field.name for field in fields(PolicyCounts))
_counts: Final = attrgetter(*_COUNTED_BY)


@final
@dataclass(frozen=True, slots=True)
class Counting:
    """How the rows of a unit count: 1/m each of its m rows, or alike 1/`limit` each; `limit` rows at most."""

    limit: int
    alike: bool = False


@final
@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """The cells of a column of unknown levels: the number of each row's text, −1 where there is none."""

    codes: Integers
    texts: Sequence[str]


@final
class Block:
    """Rows of a table, with all rows of every unit in it. As sensitive as the table.

    `cells` has one line for each source column: NaN is missing, an infinite number unreadable, −1 an unknown
    level of those that are `levelled`. Zeros and NaNs have one form where there are units. `groups` has the
    number of each row's group, −1 where it has none; `weights` √w in [0, 1], NaN where there is none; `units`
    the number of each row's unit from 0, and `unit_hashes` a hash of its id.
    """

    def __init__(
        self,
        cells: Sequence[Floats],
        rows: int,
        *,
        groups: Integers | None = None,
        weights: Floats | None = None,
        counting: Counting | None = None,
        units: Integers | None = None,
        unit_hashes: Hashes | None = None,
        without_unit: int = 0,
        left_out: Mask | None = None,
        texts: Sequence[Texts] = (),
        levelled: Sequence[int] = (),
    ) -> None:
        self.cells, self.rows, self.groups, self.texts = cells, rows, groups, texts
        self._levelled = list(levelled)
        self.counting, self.units, self.unit_hashes = counting, units, unit_hashes
        self._owned = (
            None
            if counting is None or units is None or unit_hashes is None
            else (counting, units, unit_hashes)
        )
        if self._owned is None and any(one is not None for one in (counting, units, unit_hashes)):
            raise broken("units have numbers, hashes of their ids and a rule by which their rows count")
        placed: Mask = np.ones(rows, np.bool_)
        grouped = placed if groups is None else groups >= 0
        weighted = placed if weights is None else np.isfinite(weights)
        out = np.zeros(rows, np.bool_) if left_out is None else left_out
        self.weights = None if weights is None else np.where(weighted, np.clip(weights, 0.0, 1.0), 0.0)
        self.placed: Mask = grouped & weighted & ~out
        """Rows that have a group and a weight, where these are asked for, of persons who count here."""
        self.placed_anywhere = self.placed
        """The same, of whatever group: by these it is decided which rows of a unit count, and how much."""
        elsewhere = int(np.sum(~self.placed))
        self.uncounted = PolicyCounts(
            rows_read=without_unit + elsewhere,
            rows_dropped=without_unit + elsewhere,
            rows_without_unit=without_unit,
            rows_without_group=int(np.sum(~grouped)),
            rows_without_weight=int(np.sum(grouped & ~weighted)),
            rows_left_out=int(np.sum(out)),
            units_read=self.unit_count,
        )
        """The units, and the rows that count nowhere: without a unit, a group or a weight."""

    @property
    def unit_count(self) -> int:
        """How many units have a row here."""
        return 0 if self.units is None else int(self.units.max(initial=-1)) + 1

    def of_group(self, number: int) -> Block:
        """The same rows, of which those of one group count. A unit counts in all groups together as before.

        Rows that count nowhere are counted with the first group. Proof: proofs/adaptive.md#adaptive-groups.
        """
        view = copy(self)
        if self.groups is None:
            raise broken("these rows have no groups")
        there = self.groups == number
        view.groups, view.placed = None, self.placed & there
        view.uncounted = PolicyCounts() if number else self.uncounted
        vars(view)["once"] = self.once[there[self.once]]
        return view

    def rows_that_count(self, usable: Mask) -> tuple[Mask, Integers | None]:
        """Of the rows that a sum can use those that count, and m for each row of the block (none: no units).

        Proof: proofs/units.md#units-claim, proofs/core.md#core-sums.
        """
        if self._owned is None:
            return usable, None
        counting, units, hashes = self._owned
        counted = usable.copy()
        numbers = np.column_stack([cell[usable] for cell in self.cells])
        counted[usable] = rows_that_count(units[usable], hashes[usable], numbers, counting.limit)
        if counting.alike:
            return counted, np.full(self.rows, counting.limit)
        sizes = np.bincount(units[counted], minlength=self.unit_count)
        return counted, np.maximum(sizes[units], 1)

    @cached_property
    def once(self) -> Integers:
        """The places of the rows that counts are made of: all that are placed or, with units, one of each.

        Of a unit's rows the one with the fewest gaps is taken and, among those, the one with the least hash
        of id and content: by that unit's rows alone, in no order. So adding or removing a unit adds or
        removes one row, replacing one replaces one, and whatever is proven for rows holds for units.

        Proof: proofs/bounds.md#bounds-units.
        """
        (placed,) = np.nonzero(self.placed)
        if self._owned is None:
            return placed
        _, units, hashes = self._owned
        numbers = np.column_stack([cell[placed] for cell in self.cells])
        first, second = row_hashes(hashes[placed], numbers)
        owners = units[placed]
        gaps = np.sum(~np.isfinite(numbers), axis=1)
        gaps += np.sum(numbers[:, self._levelled] == UNKNOWN_CELL, axis=1)
        order = np.lexsort((second, first, gaps, owners))
        best = np.ones(len(order), np.bool_)
        best[1:] = owners[order[1:]] != owners[order[:-1]]
        return np.sort(placed[order[best]])

    def shares(self, places: Integers) -> Floats | None:
        """What each of these rows adds to a count: ⌊2^30·w⌋ in whole numbers; none: 2^30 each.

        Proof: proofs/core.md#core-counts, proofs/measurements.md#measurements-sensitivity.
        """
        return None if self.weights is None else np.floor(np.square(self.weights[places]) * SQUARE)

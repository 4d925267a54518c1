"""One pass over a table, several matrices: blocks of columns, groups of rows, units and weighted rows.

G_{b,g} = Σ w_i² q_i q_iᵀ over the rows of group g in the columns of block b, where the rows of one unit have
Σ |q_i|² ≤ 2^30 in each block, over all groups together: exactly, in integers. An engine reads batches into
`Rows`, brings all rows of a unit to one place (`Rows.split`), and lets a `Settler` there encode and add them
up; the sums merge like any other. Proofs: proofs/units.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.columns import Categorical, Column, numeric
from dpgram.encoding import Encoder, PolicyCounts
from dpgram.errors import DpgramError
from dpgram.gram import ExactGram, GramSum
from dpgram.reading import read_column
from dpgram.release_parts import SurveyWeight, UnitRule
from dpgram.schema import Schema
from dpgram.sources import Kind, declared_kinds
from dpgram.sources.cells import plain
from dpgram.units import Floats, Integers, Mask, chosen, id_hashes, unit_ids

_UNIT, _NUMBERS = "unit", "numbers"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Portions:
    """Which matrices one pass makes, and how rows count in them. Public facts only.

    `whole` is the encoder of the schema with all columns that are read; `blocks` are those of the matrices
    (the same one alone, where the columns are not split). `by` splits rows by its levels.
    """

    whole: Encoder
    blocks: tuple[Encoder, ...]
    unit: str | None = None
    rule: UnitRule | None = None
    by: Categorical | None = None
    weight: SurveyWeight | None = None

    @property
    def groups(self) -> tuple[str | None, ...]:
        """The levels of `by`; a single None where rows are not split."""
        return (None,) if self.by is None else self.by.all_levels

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read of the table, in order: the schema's columns, group, weight, unit."""
        extra = [column.name for column in self.extra]
        named = [*self.whole.schema.source_columns, *extra, *([] if self.unit is None else [self.unit])]
        return tuple(dict.fromkeys(named))

    @property
    def kinds(self) -> dict[str, Kind]:
        """How cells without a type of their own are read."""
        extra = declared_kinds(Schema(*self.extra)) if self.extra else {}
        unit: dict[str, Kind] = {} if self.unit is None else {self.unit: "id"}
        return {**unit, **extra, **declared_kinds(self.whole.schema)}

    @property
    def extra(self) -> tuple[Column, ...]:
        """What is read beside the schema's columns: the group and the weight, as columns."""
        weight = None if self.weight is None else numeric(self.weight.column, 0, self.weight.at_most)
        return tuple(column for column in (self.by, weight) if column is not None)

    def reader(self) -> Reader:
        """Turns batches into rows; for one thread."""
        return Reader(self)

    def settler(self) -> Settler:
        """Adds rows up; for one thread."""
        return Settler(self)

    def zero(self) -> tuple[ExactGram, ...]:
        """The sums of no rows: one matrix for each block and, in it, for each group."""
        return tuple(ExactGram.zero(block.schema.width) for block in self.blocks for _ in self.groups)


def merged(left: tuple[ExactGram, ...], right: tuple[ExactGram, ...]) -> tuple[ExactGram, ...]:
    """The sums of both, matrix by matrix."""
    return tuple(a | b for a, b in zip(left, right, strict=True))


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Rows:
    """Rows of a table as numbers, the same from every source: columns of the schema, then group and weight.

    NaN is missing, −1 an unknown level. Where there are units, rows without an id are left out already, and
    `nameless` says how many they were. As sensitive as the table itself.
    """

    numbers: Floats
    ids: pa.LargeStringArray | None = None
    nameless: int = 0

    def __len__(self) -> int:
        return len(self.numbers)

    def split(self, parts: int) -> list[Self]:
        """The same rows in `parts` lots, all rows of a unit in one; the same lot for an id everywhere."""
        if self.ids is None:
            raise DpgramError("rows without units cannot be split by unit")
        lots = (id_hashes(self.ids) % np.uint64(parts)).astype(np.int64)
        order = np.argsort(lots, kind="stable")
        ends = np.cumsum(np.bincount(lots, minlength=parts))
        ids, numbers = self.ids.take(pa.array(order)), self.numbers[order]
        return [
            type(self)(
                numbers=numbers[end - size : end],
                ids=ids.slice(end - size, size),
                nameless=self.nameless if lot == 0 else 0,
            )
            for lot, (end, size) in enumerate(zip(ends, np.diff(ends, prepend=0), strict=True))
        ]

    def to_batch(self) -> pa.RecordBatch:
        """The named rows, for shipping and for temporary files."""
        cells = pa.array(np.ascontiguousarray(self.numbers).reshape(-1))
        numbers = pa.FixedSizeListArray.from_arrays(cells, self.numbers.shape[1])
        ids = pa.nulls(len(self), pa.large_string()) if self.ids is None else self.ids
        return pa.record_batch([ids, numbers], names=[_UNIT, _NUMBERS])

    @classmethod
    def from_batches(cls, batches: list[pa.RecordBatch]) -> Self:
        """All rows of these batches, which `to_batch` made; at least one."""
        table = pa.Table.from_batches(batches).combine_chunks()
        cells = table[_NUMBERS].combine_chunks()
        width = cells.type.list_size
        numbers = cells.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        return cls(numbers=numbers.copy(), ids=table[_UNIT].combine_chunks())


@final
class Reader:
    """Batches → rows of numbers."""

    def __init__(self, portions: Portions) -> None:
        self._portions = portions
        self._blocks = portions.whole.blocks()
        self._width = len(portions.whole.schema.source_columns)

    def read(self, batch: pa.RecordBatch, *, first_row: int = 0) -> Rows:
        """All rows of a batch that has the columns asked for. Strict mode raises here, with the row."""
        portions = self._portions
        lines = [np.asarray(line, np.float64) for line in self._blocks.read(batch)]
        if portions.whole.strict:
            self._blocks.refuse_breaches(np.stack(lines), first_row)
        extra = portions.extra
        if extra:
            mended = plain(batch.select([column.name for column in extra]), portions.kinds)
            lines += [read_column(cells, column) for cells, column in zip(mended.columns, extra, strict=True)]
        numbers = np.empty((batch.num_rows, len(lines)))
        for place, line in enumerate(lines):
            numbers[:, place] = line
        numbers += 0.0  # −0.0 becomes 0.0: rows with the same numbers must have the same bits
        numbers[np.isnan(numbers)] = np.nan
        if portions.unit is None:
            return Rows(numbers=numbers)
        ids = unit_ids(batch.column(portions.unit), portions.unit)
        if ids.null_count == 0:
            return Rows(numbers=numbers, ids=ids)
        named = ids.is_valid()
        return Rows(
            numbers=numbers[named.to_numpy(zero_copy_only=False)],
            ids=ids.filter(named),
            nameless=ids.null_count,
        )


@final
class Settler:
    """Rows → sums. Where there are units, each `add` must bring all rows of every unit in it.

    Proof: proofs/units.md#units-claim.
    """

    def __init__(self, portions: Portions) -> None:
        self._portions = portions
        source = portions.whole.schema.source_columns
        self._encoders = [block.blocks() for block in portions.blocks]
        self._places = [
            [source.index(name) for name in block.schema.source_columns] for block in portions.blocks
        ]
        self._sums = [[GramSum(block.schema.width) for _ in portions.groups] for block in portions.blocks]
        self._group = len(source) if portions.by is not None else None
        self._weight = None if portions.weight is None else len(source) + int(portions.by is not None)

    def add(self, rows: Rows) -> None:
        """Encode the rows into every block and group."""
        groups = self._groups(rows)
        weights, weighted = self._weights(rows)
        placed = (groups >= 0) & weighted
        units, seeds = _numbered(rows)
        heads = 0 if rows.ids is None else int(units.max(initial=-1)) + 1
        outside = PolicyCounts(
            rows_read=rows.nameless + int(np.sum(~placed)),
            rows_dropped=rows.nameless + int(np.sum(~placed)),
            rows_without_unit=rows.nameless,
            rows_without_group=int(np.sum(groups < 0)),
            rows_without_weight=int(np.sum((groups >= 0) & ~weighted)),
            units_read=heads,
        )
        for encoder, places, sums in zip(self._encoders, self._places, self._sums, strict=True):
            numbers = np.ascontiguousarray(rows.numbers[:, places])
            usable = placed & encoder.usable(numbers.T)
            counted, sizes = self._counted(rows, units, seeds, usable)
            over = np.bincount(groups[usable & ~counted], minlength=len(sums)).tolist()
            # Rows that the policy drops go along: the kernel counts what was wrong with them.
            (taken,) = np.nonzero(placed & (counted | ~usable))
            taken = taken[np.argsort(groups[taken], kind="stable")]
            ends = np.cumsum(np.bincount(groups[taken], minlength=len(sums))).tolist()
            sums[0].note(outside)
            for number, total in enumerate(sums):
                total.note(
                    PolicyCounts(
                        rows_read=over[number], rows_dropped=over[number], rows_over_unit_limit=over[number]
                    )
                )
                mine = taken[ends[number - 1] if number else 0 : ends[number]]
                for block in encoder.encode_array(
                    numbers[mine],
                    unit_rows=None if sizes is None else sizes[mine],
                    weights=None if weights is None else weights[mine],
                ):
                    total.add(block)

    def result(self) -> tuple[ExactGram, ...]:
        """One matrix for each block and, in it, for each group."""
        return tuple(total.result() for sums in self._sums for total in sums)

    def _groups(self, rows: Rows) -> Integers:
        """The number of each row's group; −1 where it has none. Proof: proofs/units.md#units-groups."""
        if self._group is None:
            return np.zeros(len(rows), np.int64)
        return np.nan_to_num(rows.numbers[:, self._group], nan=-1.0).astype(np.int64)

    def _weights(self, rows: Rows) -> tuple[Floats | None, Mask]:
        """√(w/max) of each row, w clamped to [0, max]; and whether it has a weight at all.

        Proof: proofs/units.md#units-weights.
        """
        if self._weight is None or self._portions.weight is None:
            return None, np.ones(len(rows), np.bool_)
        most, given = self._portions.weight.at_most, rows.numbers[:, self._weight]
        weighted = np.isfinite(given)
        clamped = np.clip(np.where(weighted, given, 0.0), 0.0, most)
        return np.minimum(np.sqrt(clamped / most), 1.0), weighted

    def _counted(
        self, rows: Rows, units: Integers, seeds: npt.NDArray[np.uint64], usable: Mask
    ) -> tuple[Mask, Integers | None]:
        """Which rows count, and of how many of its unit each is one (none, where there are no units)."""
        rule = self._portions.rule
        if rule is None:
            return usable, None
        counted = usable.copy()
        counted[usable] = chosen(units[usable], seeds[usable], rows.numbers[usable], rule.rows_at_most)
        if rule.counts == "rows":
            return counted, np.full(len(rows), rule.rows_at_most)
        sizes = np.bincount(units[counted], minlength=int(units.max(initial=-1)) + 1)
        return counted, np.maximum(sizes[units], 1)


def _numbered(rows: Rows) -> tuple[Integers, npt.NDArray[np.uint64]]:
    """A number for each unit, by exact comparison of ids, and the hash of each row's id."""
    if rows.ids is None:
        return _NO_UNITS, _NO_SEEDS
    codes = rows.ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), id_hashes(rows.ids)


def total(parts: list[tuple[ExactGram, ...]]) -> tuple[ExactGram, ...]:
    """The sums of all parts, of which there is at least one."""
    return reduce(merged, parts)


_NO_UNITS: Final[Integers] = np.empty(0, np.int64)
_NO_SEEDS: Final = np.empty(0, np.uint64)

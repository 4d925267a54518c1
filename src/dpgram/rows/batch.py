"""Batches of a table → rows of numbers, the same from every source, with what decides how each one counts.

An engine reads batches into `RowBatch` (`Reader`), brings all rows of a unit to one place
(`RowBatch.split`), and has them counted there (`CountedRows`). Proofs: proofs/units.md.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cached_property
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.core.units import row_hashes
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.rows.batch_encoder import declared_cells, refuse_breaches
from dpgram.rows.encoder import PolicyCounts
from dpgram.rows.floats import as_floats, in_rows
from dpgram.rows.learnt_levels import level_texts
from dpgram.rows.rules import RowRules
from dpgram.rows.units import Floats, Integers, Mask, id_hashes, unit_ids
from dpgram.schema import Schema
from dpgram.schema.encodings import UNKNOWN_CODE
from dpgram.schema.reading import Reading
from dpgram.sources import DeclaredKind, declared_kinds
from dpgram.sources.plain_columns import plain_columns

_UNIT, _NUMBERS = "unit", "numbers"
_HASH_BITS: Final = 52
"""As many bits of a hash as a float keeps exactly."""


def kinds_of(rules: RowRules) -> dict[str, DeclaredKind]:
    """How cells without a type of their own are read."""
    extra = declared_kinds(Schema(*rules.extra)) if rules.extra else {}
    unit: dict[str, DeclaredKind] = {} if rules.unit is None else {rules.unit: "id"}
    return {**unit, **extra, **declared_kinds(rules.schema)}


def readings_of(rules: RowRules) -> dict[str, Reading]:
    """The reading rules of the columns that have some; an id is read as it is."""
    return {
        column.name: column.reading for column in (*rules.extra, *rules.schema.columns_read) if column.reading
    }


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowBatch:
    """Rows of a table as numbers, the same from every source: columns of the schema, then group and weight.

    NaN is missing, an infinite number unreadable, −1 an unknown level. A column whose levels are open has its
    texts beside the numbers. Where there are units, rows without an id are left out already, and
    `without_unit` says how many they were. As sensitive as the table itself.
    """

    numbers: Floats
    ids: pa.LargeStringArray | None = None
    texts: tuple[pa.LargeStringArray, ...] = ()
    without_unit: int = 0

    @classmethod
    def none(cls, rules: RowRules, *, without_unit: int = 0) -> Self:
        """No rows, of which so many had no unit."""
        width = len(rules.schema.source_columns) + len(rules.extra)
        texts = tuple(pa.nulls(0, pa.large_string()) for _ in rules.schema.without_levels)
        ids = pa.nulls(0, pa.large_string())
        return cls(numbers=np.empty((0, width)), ids=ids, texts=texts, without_unit=without_unit)

    def __len__(self) -> int:
        return len(self.numbers)

    def split(self, buckets: int) -> list[Self]:
        """The same rows in buckets, all rows of a unit in one; the same bucket for an id everywhere."""
        if self.ids is None:
            raise DpgramError("rows without units cannot be split by unit")
        places = (id_hashes(self.ids) % np.uint64(buckets)).astype(np.int64)
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=buckets))
        index = pa.array(order)
        ids, numbers = self.ids.take(index), self.numbers[order]
        texts = [line.take(index) for line in self.texts]
        return [
            type(self)(
                numbers=numbers[end - size : end],
                ids=ids.slice(end - size, size),
                texts=tuple(line.slice(end - size, size) for line in texts),
                without_unit=self.without_unit if bucket == 0 else 0,
            )
            for bucket, (end, size) in enumerate(zip(ends, np.diff(ends, prepend=0), strict=True))
        ]

    def to_batch(self) -> pa.RecordBatch:
        """The rows that have a unit, for shipping and for temporary files."""
        cells = pa.array(np.ascontiguousarray(self.numbers).reshape(-1))
        numbers = pa.FixedSizeListArray.from_arrays(cells, self.numbers.shape[1])
        ids = pa.nulls(len(self), pa.large_string()) if self.ids is None else self.ids
        names = [_UNIT, _NUMBERS, *map(str, range(len(self.texts)))]
        return pa.record_batch([ids, numbers, *self.texts], names=names)

    @classmethod
    def from_batches(cls, batches: list[pa.RecordBatch], *, without_unit: int = 0) -> Self:
        """All rows of these batches, which `to_batch` made; at least one."""
        table = pa.Table.from_batches(batches).combine_chunks()
        cells = table[_NUMBERS].combine_chunks()
        width = cells.type.list_size
        numbers = cells.flatten().to_numpy(zero_copy_only=False).reshape(-1, width)
        return cls(
            numbers=numbers.copy(),
            ids=table[_UNIT].combine_chunks(),
            texts=tuple(table[name].combine_chunks() for name in table.column_names[2:]),
            without_unit=without_unit,
        )


@final
class Reader:
    """Batches → rows of numbers; for one thread."""

    def __init__(self, rules: RowRules) -> None:
        self._rules = rules
        self._kinds = kinds_of(rules)
        self._readings = readings_of(rules)
        self._declared = rules.schema.columns_read

    def read(self, batch: pa.RecordBatch, *, first_row: int = 0) -> RowBatch:
        """All rows of a batch that has the columns asked for. Strict mode raises here, with the row."""
        rules = self._rules
        texts: list[pa.LargeStringArray] = []
        lines = []
        for cells, column in declared_cells(batch, self._declared, self._kinds, self._readings):
            if column.open_levels:
                texts.append(level_texts(cells, column.name))
                lines.append(_text_numbers(texts[-1]))
            else:
                lines.append(as_floats(column.read(cells)))
        if rules.strict:
            refuse_breaches(np.stack(lines), self._declared, first_row)
        if rules.extra:
            beside = batch.select([column.name for column in rules.extra])
            mended = plain_columns(beside, self._kinds, self._readings)
            lines += [column.read(cells) for cells, column in zip(mended.columns, rules.extra, strict=True)]
        numbers = in_rows(lines, batch.num_rows)
        if rules.unit is None:
            return RowBatch(numbers=numbers, texts=tuple(texts))
        ids = unit_ids(batch.column(rules.unit), rules.unit)
        if ids.null_count == 0:
            return RowBatch(numbers=numbers, ids=ids, texts=tuple(texts))
        named = ids.is_valid()
        return RowBatch(
            numbers=numbers[named.to_numpy(zero_copy_only=False)],
            ids=ids.filter(named),
            texts=tuple(line.filter(named) for line in texts),
            without_unit=ids.null_count,
        )


def _text_numbers(texts: pa.LargeStringArray) -> Floats:
    """A number for each text that a choice by content can use; NaN where there is none."""
    hashes = id_hashes(texts.fill_null("")) >> np.uint64(64 - _HASH_BITS)
    numbers = hashes.astype(np.float64)
    numbers[texts.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return numbers


@final
class CountedRows:
    """Rows with what decides how each counts: its group, its weight, its unit.

    Where there are units, all rows of every unit in it must be here. As sensitive as the table.
    """

    def __init__(self, rows: RowBatch, rules: RowRules) -> None:
        self.rows, self._rules = rows, rules
        self.groups = self._groups()
        self.weights, weighted = self._weights()
        self.weighted = weighted
        self.left_out = self._left_out()
        self.placed: Mask = (self.groups >= 0) & weighted & ~self.left_out
        """Rows that have a group and a weight, where these are asked for, of persons who count here."""
        self.placed_anywhere = self.placed
        """The same, of whatever group: by these it is decided which rows of a unit count, and how much."""
        self.units, self.unit_hashes = _numbered(rows)
        self.uncounted = _uncounted(self)
        """The units, and the rows that count nowhere: without a unit, a group or a weight."""

    def of_group(self, number: int) -> CountedRows:
        """The same rows, of which those of one group count. A unit counts in all groups together as before.

        Rows that count nowhere are told of with the first group.

        Proof: proofs/adaptive.md#adaptive-groups.
        """
        view = copy(self)
        there = self.groups == number
        view.groups = np.where(there, 0, -1)
        view.placed = self.placed & there
        if number:
            view.uncounted = PolicyCounts()
        vars(view)["one_row_per_unit"] = self.one_row_per_unit[there[self.one_row_per_unit]]
        return view

    @property
    def unit_count(self) -> int:
        """How many units have a row here."""
        return 0 if self.rows.ids is None else int(self.units.max(initial=-1)) + 1

    @cached_property
    def one_row_per_unit(self) -> Integers:
        """The places of the rows that counts are made of: all that are placed or, with units, one of each.

        Of a unit's rows the one with the fewest gaps is taken and, among those, the one with the least hash
        of id and content: by that unit's rows alone, in no order. So adding or removing a unit adds or
        removes one row, replacing one replaces one, and whatever is proven for rows holds for units.

        Proof: proofs/bounds.md#bounds-units.
        """
        (placed,) = np.nonzero(self.placed)
        if self.rows.ids is None or len(placed) == 0:
            return placed
        numbers = np.ascontiguousarray(self.rows.numbers[placed])
        first, second = row_hashes(self.unit_hashes[placed], numbers)
        owners = self.units[placed]
        order = np.lexsort((second, first, self._gaps(numbers), owners))
        best = np.ones(len(order), np.bool_)
        best[1:] = owners[order[1:]] != owners[order[:-1]]
        return np.sort(placed[order[best]])

    def lattice_weights(self, places: Integers) -> Integers:
        """What each of these rows adds to a count: 2^30, or ⌊2^30·w/max⌋ where rows are weighted.

        Proof: proofs/measurements.md#measurements-sensitivity.
        """
        if self.weights is None:
            return np.full(len(places), ROW_NORM_SQUARED, np.int64)
        counted: Integers = np.floor(np.square(self.weights[places]) * ROW_NORM_SQUARED).astype(np.int64)
        return counted

    def _gaps(self, numbers: Floats) -> Integers:
        gaps = np.zeros(len(numbers), np.int64)
        for place, column in enumerate(self._rules.schema.columns_read):
            line = numbers[:, place]
            gaps += ~np.isfinite(line)
            if column.group_levels:
                gaps += line == UNKNOWN_CODE
        return gaps

    def _left_out(self) -> Mask:
        """Rows of persons whose periods of a series are used up."""
        out, ids = self._rules.left_out, self.rows.ids
        return np.zeros(len(self.rows), np.bool_) if out is None or ids is None else out.among(ids)

    def _groups(self) -> Integers:
        """The number of each row's group; −1 where it has none. Proof: proofs/units.md#units-groups."""
        if self._rules.by is None:
            return np.zeros(len(self.rows), np.int64)
        place = len(self._rules.schema.source_columns)
        return np.nan_to_num(self.rows.numbers[:, place], nan=-1.0).astype(np.int64)

    def _weights(self) -> tuple[Floats | None, Mask]:
        """√(w/max) of each row, w clamped to [0, max]; and whether it has a weight at all.

        Proof: proofs/units.md#units-weights.
        """
        survey = self._rules.weight
        if survey is None:
            return None, np.ones(len(self.rows), np.bool_)
        place = len(self._rules.schema.source_columns) + int(self._rules.by is not None)
        given = self.rows.numbers[:, place]
        weighted = np.isfinite(given)
        clamped = np.clip(np.where(weighted, given, 0.0), 0.0, survey.at_most)
        return np.minimum(np.sqrt(clamped / survey.at_most), 1.0), weighted


def _uncounted(rows: CountedRows) -> PolicyCounts:
    lost = rows.rows.without_unit
    elsewhere = int(np.sum(~rows.placed))
    return PolicyCounts(
        rows_read=lost + elsewhere,
        rows_dropped=lost + elsewhere,
        rows_without_unit=lost,
        rows_without_group=int(np.sum(rows.groups < 0)),
        rows_without_weight=int(np.sum((rows.groups >= 0) & ~rows.weighted)),
        rows_left_out=int(np.sum(rows.left_out)),
        units_read=rows.unit_count,
    )


def _numbered(rows: RowBatch) -> tuple[Integers, npt.NDArray[np.uint64]]:
    """A number for each unit, by exact comparison of ids, and the hash of each row's id."""
    if rows.ids is None:
        return _NO_UNITS, _NO_SEEDS
    codes = rows.ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), id_hashes(rows.ids)


_NO_UNITS: Final[Integers] = np.empty(0, np.int64)
_NO_SEEDS: Final = np.empty(0, np.uint64)

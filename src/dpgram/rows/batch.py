"""Batches of a table → rows of numbers, the same from every source, with what decides how each one counts.

An engine reads batches into `RowBatch` (`Reader`), brings all rows of a unit to one place
(`RowBatch.split`), and has them counted there (`CountedRows`). Proofs: proofs/units.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Self, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.core.units import Block, Counting, PolicyCounts, Texts
from dpgram.errors import DpgramError
from dpgram.rows.batch_encoder import declared_cells, refuse_breaches
from dpgram.rows.floats import as_floats, one_form
from dpgram.rows.learnt_levels import level_texts
from dpgram.rows.rules import RowRules
from dpgram.rows.units import Floats, Integers, Mask, id_hashes, unit_ids
from dpgram.schema import Schema
from dpgram.schema.reading import Reading
from dpgram.sources import DeclaredKind, declared_kinds
from dpgram.sources.plain_columns import plain_columns

_UNIT: Final = "unit"
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

    lines: Sequence[Floats]
    rows: int
    ids: pa.LargeStringArray | None = None
    texts: tuple[pa.LargeStringArray, ...] = ()
    without_unit: int = 0

    @classmethod
    def none(cls, rules: RowRules, *, without_unit: int = 0) -> Self:
        """No rows, of which so many had no unit."""
        width = len(rules.schema.source_columns) + len(rules.extra)
        texts = tuple(pa.nulls(0, pa.large_string()) for _ in rules.schema.without_levels)
        ids = pa.nulls(0, pa.large_string())
        lines = [np.empty(0)] * width
        return cls(lines=lines, rows=0, ids=ids, texts=texts, without_unit=without_unit)

    def __len__(self) -> int:
        return self.rows

    @property
    def numbers(self) -> Floats:
        """The same, a row for each row."""
        return np.column_stack(self.lines) if self.lines else np.empty((self.rows, 0))

    def split(self, buckets: int) -> list[Self]:
        """The same rows in buckets, all rows of a unit in one; the same bucket for an id everywhere."""
        if self.ids is None:
            raise DpgramError("rows without units cannot be split by unit")
        places = (id_hashes(self.ids) % np.uint64(buckets)).astype(np.int64)
        order = np.argsort(places, kind="stable")
        ends = np.cumsum(np.bincount(places, minlength=buckets))
        index = pa.array(order)
        ids, lines = self.ids.take(index), [line[order] for line in self.lines]
        texts = [line.take(index) for line in self.texts]
        return [
            type(self)(
                lines=[line[end - size : end] for line in lines],
                rows=int(size),
                ids=ids.slice(end - size, size),
                texts=tuple(line.slice(end - size, size) for line in texts),
                without_unit=self.without_unit if bucket == 0 else 0,
            )
            for bucket, (end, size) in enumerate(zip(ends, np.diff(ends, prepend=0), strict=True))
        ]

    def to_batch(self) -> pa.RecordBatch:
        """The rows that have a unit, for shipping and for temporary files."""
        ids = pa.nulls(len(self), pa.large_string()) if self.ids is None else self.ids
        numbers = [pa.array(line) for line in self.lines]
        names = [_UNIT, *(f"number {place}" for place in range(len(numbers)))]
        names += [f"text {place}" for place in range(len(self.texts))]
        return pa.record_batch([ids, *numbers, *self.texts], names=names)

    @classmethod
    def from_batches(cls, batches: list[pa.RecordBatch], *, without_unit: int = 0) -> Self:
        """All rows of these batches, which `to_batch` made; at least one."""
        table = pa.Table.from_batches(batches).combine_chunks()
        columns = {name: table[name].combine_chunks() for name in table.column_names}
        return cls(
            lines=[one.to_numpy() for name, one in columns.items() if name.startswith("number ")],
            rows=len(table),
            ids=columns[_UNIT],
            texts=tuple(one for name, one in columns.items() if name.startswith("text ")),
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
        count = batch.num_rows
        if rules.unit is None:
            return RowBatch(lines=[as_floats(line) for line in lines], rows=count, texts=tuple(texts))
        ids, lines = unit_ids(batch.column(rules.unit), rules.unit), list(map(one_form, lines))
        if ids.null_count == 0:
            return RowBatch(lines=lines, rows=count, ids=ids, texts=tuple(texts))
        named = ids.is_valid()
        mask = named.to_numpy(zero_copy_only=False)
        return RowBatch(
            lines=[line[mask] for line in lines],
            rows=count - ids.null_count,
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
    """Rows with what decides how each counts, as a block of the core: group, weight, unit.

    Where there are units, all rows of every unit in it must be here. As sensitive as the table.

    Proof: proofs/units.md#units-groups.
    """

    def __init__(self, rows: RowBatch, rules: RowRules) -> None:
        self.rows = rows
        schema, extra = rules.schema, len(rules.schema.source_columns)
        by, survey = rules.by is not None, rules.weight
        self.left_out = _left_out(rows, rules)
        units, unit_hashes = _numbered(rows)
        rule = rules.unit_rule
        self.block = Block(
            rows.lines,
            len(rows),
            groups=np.nan_to_num(rows.lines[extra], nan=-1.0).astype(np.int64) if by else None,
            weights=None if survey is None else _root_weights(rows.lines[extra + by], survey.at_most),
            counting=None if rule is None else Counting(rule.rows_at_most, alike=rule.counts == "rows"),
            units=units,
            unit_hashes=unit_hashes,
            without_unit=rows.without_unit,
            left_out=self.left_out,
            texts=[_coded(line) for line in rows.texts],
            levelled=[place for place, one in enumerate(schema.columns_read) if one.group_levels],
        )

    @property
    def once(self) -> Integers:
        """The places of the rows that counts are made of."""
        return self.block.once

    @property
    def placed(self) -> Mask:
        """Rows that have a group and a weight, where these are asked for, of persons who count here."""
        return self.block.placed

    @property
    def uncounted(self) -> PolicyCounts:
        """The units, and the rows that count nowhere."""
        return self.block.uncounted

    def lines(self, columns: Sequence[int], rows: Integers) -> list[Floats]:
        """These source columns of some rows."""
        return [self.rows.lines[place][rows] for place in columns]


def _left_out(rows: RowBatch, rules: RowRules) -> Mask | None:
    """Rows of persons whose periods of a series are used up."""
    out, ids = rules.left_out, rows.ids
    return None if out is None or ids is None else out.among(ids)


def _root_weights(given: Floats, at_most: float) -> Floats:
    """√(w/max) of each row, w clamped to [0, max]; NaN where there is none.

    Proof: proofs/units.md#units-weights.
    """
    weighted = np.isfinite(given)
    clamped = np.clip(np.where(weighted, given, 0.0), 0.0, at_most)
    return np.where(weighted, np.minimum(np.sqrt(clamped / at_most), 1.0), np.nan)


def _numbered(rows: RowBatch) -> tuple[Integers | None, npt.NDArray[np.uint64] | None]:
    """A number for each unit, by exact comparison of ids, and the hash of each row's id."""
    if rows.ids is None:
        return None, None
    codes = rows.ids.dictionary_encode().indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), id_hashes(rows.ids)


def _coded(texts: pa.LargeStringArray) -> Texts:
    encoded = texts.dictionary_encode()
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    return Texts(codes, encoded.dictionary.to_pylist())

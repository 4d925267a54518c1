"""One row of every unit, chosen by that unit's rows alone: what bounds, levels and a radius are learnt from.

The row with the fewest gaps is taken and, among those, the one with the least hash of id and content. Adding
or removing a unit adds or removes one row of the result, replacing one replaces one: so whatever is proven
for rows of a table holds for units here (proofs/bounds.md). Order, batches and other units change nothing.
"""

from __future__ import annotations

from typing import Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.columns import Categorical
from dpgram.kernel import UNKNOWN_CODE
from dpgram.levels import refuse_no_levels
from dpgram.reading import read_column
from dpgram.schema import Schema
from dpgram.sources import declared_kinds
from dpgram.sources.cells import TYPE_OF_KIND, plain
from dpgram.units import content_hashes, exact_texts, id_hashes, unit_ids

_KEYS: Final = ("unit", "gaps", "first", "second")
_AT_ONCE: Final = 1 << 17
"""Rows gathered at least before they are thinned out again."""


@final
class Representatives:
    """Batches in, in any order; one row of each unit out, held in memory. As sensitive as the table.

    Proof: proofs/bounds.md#bounds-units.
    """

    def __init__(self, schema: Schema, unit: str) -> None:
        self._declared = [schema.column(name) for name in schema.source_columns]
        self._kinds = declared_kinds(schema)
        self._unit = unit
        self._pending: list[pa.Table] = []
        self._held, self._kept = 0, 0
        self.rows_read = 0

    def add(self, batch: pa.RecordBatch) -> None:
        """Take in a batch that has the schema's columns and the unit's. Rows without an id are left out."""
        self.rows_read += batch.num_rows
        ids = unit_ids(batch.column(self._unit), self._unit)
        mended = plain(batch.select([column.name for column in self._declared]), self._kinds)
        if ids.null_count:
            named = ids.is_valid()
            ids, mended = ids.filter(named), mended.filter(named)
        content, gaps = self._content(mended)
        first, second = content_hashes(id_hashes(ids), content)
        cells = [_decoded(column) for column in mended.columns]
        self._pending.append(
            pa.table([ids, gaps, first, second, *cells], names=[*_KEYS, *map(str, range(len(cells)))])
        )
        self._held += len(ids)
        if self._held > 2 * self._kept + _AT_ONCE:
            self._thin_out()

    def result(self) -> pa.Table:
        """One row of each unit, in the schema's columns."""
        names = [column.name for column in self._declared]
        if not self._pending:
            return pa.table({name: pa.nulls(0, TYPE_OF_KIND[self._kinds[name]]) for name in names})
        return self._thin_out().drop_columns(list(_KEYS)).rename_columns(names)

    def _thin_out(self) -> pa.Table:
        table = pa.concat_tables(self._pending, promote_options="permissive").combine_chunks()
        units = table["unit"].combine_chunks().dictionary_encode().indices.to_numpy(zero_copy_only=False)
        gaps, first, second = (table[name].to_numpy() for name in _KEYS[1:])
        order = np.lexsort((second, first, gaps, units))
        best = np.ones(len(order), np.bool_)
        best[1:] = units[order[1:]] != units[order[:-1]]
        table = table.take(pa.array(order[best]))
        self._pending, self._held, self._kept = [table], len(table), len(table)
        return table

    def _content(self, batch: pa.RecordBatch) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
        """The cells as numbers, the same from every source, and how many of each row's are missing."""
        numbers = np.empty((batch.num_rows, len(self._declared)))
        gaps = np.zeros(batch.num_rows, np.int64)
        for place, (cells, column) in enumerate(zip(batch.columns, self._declared, strict=True)):
            if isinstance(column, Categorical) and not column.listed:
                refuse_no_levels(cells.type, column.name)
                texts = exact_texts(cells, column.name)
                numbers[:, place] = id_hashes(texts.fill_null("")).view(np.float64)
                gaps += texts.is_null().to_numpy(zero_copy_only=False)
                continue
            line = read_column(cells, column).astype(np.float64) + 0.0  # one form of zero, one of NaN
            line[np.isnan(line)] = np.nan
            numbers[:, place] = line
            unknown = isinstance(column, Categorical) & (line == UNKNOWN_CODE)
            gaps += ~np.isfinite(line) | unknown
        return numbers, gaps


def _decoded(cells: pa.Array) -> pa.Array:
    """Dictionaries of different batches differ."""
    return cells.dictionary_decode() if pa.types.is_dictionary(cells.type) else cells

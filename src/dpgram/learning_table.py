"""The table that is learnt from, and its exact counts: one pass before the charge, up to two after it.

Nothing here is private: the counts get noise in `learning`. One row, or one unit, adds 1 to at most one cell
of each histogram, whatever it holds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Self, final

import numpy as np
import numpy.typing as npt

from dpgram.bounds import OCTAVES, octave_counts
from dpgram.encoding import Encoder, Missing
from dpgram.errors import MechanismError, SourceError
from dpgram.levels import LevelCounts
from dpgram.looks import FINEST, finest_counts
from dpgram.radius import LENGTHS, length_counts
from dpgram.schema import Numeric, Schema

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH_ROWS: Final = 65_536


@final
@dataclass(slots=True)
class Tally:
    """Exact counts of the first pass, which runs before the charge. Not private."""

    octaves: npt.NDArray[np.int64]
    levels: tuple[LevelCounts, ...]
    rows: int = 0
    rows_read: int = 0


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """Data that can be read several times, and what its columns are declared to be."""

    data: object
    schema: Schema
    missing: Missing
    unit: str | None = None
    """The data has one row of each value of this column; None: every row stands for itself."""
    rows_read: int | None = None
    """How many rows these were chosen from."""

    @classmethod
    def of(cls, data: object, schema: Schema, missing: Missing, unit: str | None) -> Self:
        """The table to learn from: `data` itself or, where there are units, one row of each."""
        if unit is None:
            return cls(data=data, schema=schema, missing=missing)
        from dpgram.representatives import Representatives
        from dpgram.sources import declared_kinds, open_source

        chosen = Representatives(schema, unit)
        columns = (*schema.source_columns, unit)
        kinds = {**declared_kinds(schema), unit: "id"}
        source = open_source(data, columns, kinds=kinds, batch_rows=_BATCH_ROWS)
        for batch in source.batches():
            chosen.add(batch)
        return cls(
            data=chosen.result(), schema=schema, missing=missing, unit=unit, rows_read=chosen.rows_read
        )

    def rows_of(self, tally: Tally) -> int:
        """All rows of the table that was given."""
        return tally.rows_read if self.rows_read is None else self.rows_read

    def first_pass(self) -> Tally:
        """Octaves and levels of the columns to be learnt, and the number of rows that have them all."""
        from dpgram.reading import read_column

        schema = self.schema
        numbers = [_numeric(schema, name) for name in schema.unbounded]
        tally = Tally(
            octaves=np.zeros((len(numbers), OCTAVES), np.int64),
            levels=tuple(LevelCounts(name) for name in schema.without_levels),
        )
        for batch in self._batches():
            present = np.ones(batch.num_rows, np.bool_)
            for place, column in enumerate(numbers):
                values = read_column(batch.column(column.name), column).astype(np.float64)
                tally.octaves[place] += octave_counts(values)
                present &= np.isfinite(values)
            for counts in tally.levels:
                counts.add(batch.column(counts.column))
            tally.rows += int(present.sum())
            tally.rows_read += batch.num_rows
        return tally

    def second_pass(self, coarse: Mapping[str, tuple[float, float]]) -> npt.NDArray[np.int64]:
        """Counts of the finest bins between the coarse bounds."""
        from dpgram.reading import read_column

        numbers = [_numeric(self.schema, name) for name in self.schema.unbounded]
        counts = np.zeros((len(numbers), FINEST), np.int64)
        for batch in self._batches():
            for place, column in enumerate(numbers):
                values = read_column(batch.column(column.name), column).astype(np.float64)
                counts[place] += finest_counts(values, *coarse[column.name])
        return counts

    def lengths(self) -> npt.NDArray[np.int64]:
        """Counts of squared row lengths, encoded without a clip."""
        encoder = Encoder(self.schema, missing=self.missing)
        blocks, counts = encoder.blocks(), np.zeros(LENGTHS, np.int64)
        for batch in self._batches():
            for block in blocks.encode(batch):
                counts += length_counts(block.lines)
        return counts

    def with_schema(self, schema: Schema) -> Table:
        """The same data under a schema of which more is known."""
        return replace(self, schema=schema)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        from dpgram.sources import declared_kinds, open_source
        from dpgram.sources.cells import plain

        kinds = declared_kinds(self.schema)
        source = open_source(self.data, self.schema.source_columns, kinds=kinds, batch_rows=_BATCH_ROWS)
        for batch in source.batches():
            yield plain(batch, kinds)


def refuse_streams(data: object) -> None:
    """A stream can be read once; learning reads the table up to four times."""
    import pyarrow as pa

    repeatable = isinstance(data, pa.Table | pa.RecordBatch | np.ndarray | Mapping)
    loaded = type(data).__module__.partition(".")[0] in ("pandas", "polars", "duckdb")
    once = isinstance(data, pa.RecordBatchReader) or hasattr(data, "__arrow_c_stream__")
    if once and not repeatable and not loaded:
        raise SourceError(
            "a stream can be read only once, but learning bounds, levels or a radius takes several passes",
            remedy="Give a table, a file or a data set",
        )


def _numeric(schema: Schema, name: str) -> Numeric:
    column = schema.column(name)
    if not isinstance(column, Numeric):
        raise MechanismError(f"column {name!r} has no bounds to learn")
    return column

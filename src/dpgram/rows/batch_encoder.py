"""Encodes rows chunk by chunk in memory of fixed size: one `BatchEncoder` serves one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.core.encode import Floats, Integers, Mask
from dpgram.core.lattice import Work
from dpgram.core.units import PolicyCounts
from dpgram.errors import DataError, DpgramError, SourceError
from dpgram.rows.encoder import LINE_GROUP, EncodedChunk, Encoder
from dpgram.rows.floats import fill
from dpgram.rows.row_map import row_map
from dpgram.schema.columns import SourceColumn
from dpgram.schema.reading import Reading
from dpgram.sources import DeclaredKind, declared_kinds, declared_readings
from dpgram.sources.plain_columns import plain_columns

T = TypeVar("T", Floats, Integers)


@final
class BatchEncoder:
    """Working memory of one thread: raw columns in, lattice rows out, the same buffers each time."""

    def __init__(self, encoder: Encoder) -> None:
        schema = encoder.schema
        self._encoder = encoder
        self._declared = schema.columns_read
        self._kinds, self._readings = declared_kinds(schema), declared_readings(schema)
        self._work = Work(row_map(encoder), encoder.chunk_rows)
        self._raw = np.empty((len(self._declared), encoder.chunk_rows))
        lines = -(-schema.width // LINE_GROUP) * LINE_GROUP
        self._out = np.zeros((lines, encoder.chunk_rows))

    def encode(
        self, batch: Any, *, first_row: int = 0, unit_rows: npt.NDArray[np.integer[Any]] | None = None
    ) -> Iterator[EncodedChunk]:
        """The rows of a record batch, chunk by chunk; each chunk is overwritten by the next."""
        lines = self.read(batch)
        units = _checked_units(unit_rows, batch.num_rows)
        size = self._encoder.chunk_rows
        for start in range(0, batch.num_rows, size):
            stop = min(start + size, batch.num_rows)
            for line, target in zip(lines, self._raw, strict=True):
                fill(target[: stop - start], line[start:stop])
            yield self._encode(stop - start, first_row + start, _part(units, start, stop), None)

    def encode_array(
        self,
        rows: Floats,
        *,
        first_row: int = 0,
        unit_rows: npt.NDArray[np.integer[Any]] | None = None,
        weights: Floats | None = None,
    ) -> Iterator[EncodedChunk]:
        """The same for a float64 array with the source columns as its columns, as `read` gives them.

        `weights` are factors in [0, 1], one for each row.
        """
        units = _checked_units(unit_rows, len(rows))
        factors = _checked_weights(weights, len(rows))
        size = self._encoder.chunk_rows
        for start in range(0, len(rows), size):
            piece, stop = rows[start : start + size], start + size
            self._raw[:, : len(piece)] = piece.T
            own = _part(units, start, stop), _part(factors, start, stop)
            yield self._encode(len(piece), first_row + start, *own)

    def read(self, batch: pa.RecordBatch) -> Sequence[npt.NDArray[Any]]:
        """The source columns of a batch as lines of numbers: values, days, 0/1, numbers of levels."""
        cells = declared_cells(batch, self._declared, self._kinds, self._readings)
        return [column.read(each) for each, column in cells]

    def usable(self, raw: Floats) -> Mask:
        """Which rows of these lines the policy keeps."""
        kept = np.ones(raw.shape[1], np.bool_)
        if self._encoder.missing == "drop":
            for line, declared in zip(raw, self._declared, strict=True):
                kept &= np.isfinite(line) & ~declared.encoding.unknown(line)
        return kept

    def _encode(
        self, size: int, first_row: int, units: Integers | None, weights: Floats | None
    ) -> EncodedChunk:
        """Encode the first `size` rows of the raw lines."""
        raw, width = self._raw[:, :size], self._encoder.schema.width
        self._work.seen[:] = 0
        q, squares, lost = self._work.rows(list(raw), self._out[:width, :size], sizes=units, weights=weights)
        clamped, missing, unknown = self._work.seen.tolist()
        if self._encoder.strict and clamped + missing + unknown:
            refuse_breaches(raw, self._declared, first_row)
        kept = size
        if lost is not None:
            usable = ~lost
            squares = squares[usable]
            kept = len(squares)
            self._out[:width, :kept] = q[:, usable]
        lengths = squares / self._work.rowmap.radius**2
        return EncodedChunk(
            lines=self._out[:, :kept],
            counts=PolicyCounts(
                rows_read=size,
                rows_used=kept,
                rows_dropped=size - kept,
                cells_clamped=clamped,
                cells_missing=missing,
                cells_unknown=unknown,
                rows_clipped=int(np.count_nonzero(lengths > 1.0)) if self._encoder.clips else 0,
            ),
            lengths=None if self._encoder.coordinates is None else lengths,
        )


_BREACHES: Final[tuple[tuple[str, Callable[[Floats, SourceColumn], Mask]], ...]] = (
    ("a missing value or one that is not finite", lambda line, _: ~np.isfinite(line)),
    ("a value outside the declared bounds", lambda line, column: column.encoding.outside(line)),
    ("a value that is none of the declared levels", lambda line, column: column.encoding.unknown(line)),
)


def declared_cells(
    batch: pa.RecordBatch,
    declared: Sequence[SourceColumn],
    kinds: Mapping[str, DeclaredKind],
    readings: Mapping[str, Reading],
) -> Iterator[tuple[pa.Array, SourceColumn]]:
    """The cells of each declared column, made plain as every source makes them."""
    absent = [column.name for column in declared if batch.schema.get_field_index(column.name) < 0]
    if absent:
        raise SourceError(
            f"the data has no column {absent[0]!r}, or several of that name",
            remedy="Name the columns of the schema as the data does",
        )
    mended = plain_columns(batch.select([column.name for column in declared]), kinds, readings)
    return zip(mended.columns, declared, strict=True)


def refuse_breaches(raw: Floats, declared: Sequence[SourceColumn], first_row: int) -> None:
    """Raise for the first row of these lines that breaks the schema, and its first column that does."""
    found = [
        (int(np.argmax(broken)), index, what)
        for index, (line, column) in enumerate(zip(raw, declared, strict=True))
        for what, test in _BREACHES
        if (broken := test(line, column)).any()
    ]
    if not found:
        return
    row, place, what = min(found)
    raise DataError(
        what,
        column=declared[place].name,
        row=first_row + row,
        limit="strict mode allows none (rows are counted from 0)",
        remedy="Correct the data, or leave strict out to apply the policies",
    )


def _checked_units(unit_rows: npt.NDArray[np.integer[Any]] | None, rows: int) -> Integers | None:
    if unit_rows is None:
        return None
    units = np.ascontiguousarray(unit_rows, dtype=np.int64)
    if units.shape != (rows,) or (rows and units.min() < 1):
        raise DpgramError(
            "unit_rows must say, for each row, of how many rows of its unit it is one",
            got=f"an array of shape {units.shape}",
            limit=f"{rows} integers, each at least 1",
        )
    return units


def _checked_weights(weights: Floats | None, rows: int) -> Floats | None:
    if weights is None:
        return None
    if weights.shape != (rows,) or not ((weights >= 0.0) & (weights <= 1.0)).all():
        raise DpgramError("every row needs one weight between 0 and 1", got=f"shape {weights.shape}")
    return np.ascontiguousarray(weights, dtype=np.float64)


def _part(each: T | None, start: int, stop: int) -> T | None:
    return None if each is None else each[start:stop]

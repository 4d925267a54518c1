"""Encodes rows chunk by chunk in memory of fixed size: one `BatchEncoder` serves one thread."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpgram.document.coordinates import VALUE_BITS
from dpgram.errors import DataError, DpgramError, SourceError
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows import kernel
from dpgram.rows.encoder import LINE_GROUP, EncodedChunk, Encoder, PolicyCounts
from dpgram.rows.floats import fill
from dpgram.rows.kernel import Floats, Integers
from dpgram.schema import Schema
from dpgram.schema.columns import SourceColumn
from dpgram.schema.encodings import (
    BooleanEncoding,
    LegendreEncoding,
    LevelsEncoding,
    NumberEncoding,
    ProductEncoding,
    SourceEncoding,
)
from dpgram.schema.reading import Reading
from dpgram.sources import DeclaredKind, declared_kinds, declared_readings
from dpgram.sources.plain_columns import plain_columns


@final
class BatchEncoder:
    """Working memory of one thread: raw columns in, lattice rows out, the same buffers each time."""

    def __init__(self, encoder: Encoder) -> None:
        schema = encoder.schema
        self._encoder = encoder
        self._declared = schema.columns_read
        self._kinds, self._readings = declared_kinds(schema), declared_readings(schema)
        self._coordinates = None if encoder.coordinates is None else _LatticeCoordinates(encoder)
        unit = ROW_NORM / encoder.radius if self._coordinates is None else self._coordinates.unit
        self._arrays = _KernelArrays(schema, unit)
        if self._coordinates is not None and self._coordinates.standardises:
            self._coordinates.fold_into(self._arrays, schema)
        self._clips, self._drops = encoder.clips, encoder.missing == "drop"
        self._no_rows = np.empty((0, len(self._declared)))
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
            yield self._encode(self._no_rows, stop - start, first_row + start, units[start:stop], _NO_WEIGHTS)

    def encode_array(
        self,
        rows: Floats,
        *,
        first_row: int = 0,
        unit_rows: npt.NDArray[np.integer[Any]] | None = None,
        weights: Floats | None = None,
    ) -> Iterator[EncodedChunk]:
        """The same for a writable C-contiguous float64 array of the source columns, as `read` gives them.

        `weights` are factors in [0, 1], one for each row.
        """
        units = _checked_units(unit_rows, len(rows))
        factors = _checked_weights(weights, len(rows))
        size = self._encoder.chunk_rows
        for start in range(0, len(rows), size):
            piece, stop = rows[start : start + size], start + size
            yield self._encode(piece, len(piece), first_row + start, units[start:stop], factors[start:stop])

    def read(self, batch: pa.RecordBatch) -> Sequence[npt.NDArray[Any]]:
        """The source columns of a batch as lines of numbers: values, days, 0/1, numbers of levels."""
        cells = declared_cells(batch, self._declared, self._kinds, self._readings)
        return [column.read(each) for each, column in cells]

    def usable(self, raw: Floats) -> Mask:
        """Which rows of these lines the policy keeps."""
        kept = np.ones(raw.shape[1], np.bool_)
        if self._drops:
            for line, declared in zip(raw, self._declared, strict=True):
                kept &= np.isfinite(line) & ~declared.encoding.unknown(line)
        return kept

    def _encode(
        self, rows: Floats, size: int, first_row: int, units: Integers, weights: Floats
    ) -> EncodedChunk:
        """Encode `rows`, or the first `size` rows of the raw lines if there are none."""
        counts = np.zeros(4, np.int64)
        loops = kernel.kernel(size * len(self._out))
        if self._coordinates is None:
            kept = self._plain(loops, rows, size, units, weights, counts)
        else:
            kept = self._in_coordinates(self._coordinates, loops, rows, size, units, weights, counts)
        clamped, missing, unknown, clipped = counts.tolist()
        if self._encoder.strict and clamped + missing + unknown:
            refuse_breaches(rows.T if len(rows) else self._raw[:, :size], self._declared, first_row)
        return EncodedChunk(
            lines=self._out[:, :kept],
            counts=PolicyCounts(
                rows_read=size,
                rows_used=kept,
                rows_dropped=size - kept,
                cells_clamped=clamped,
                cells_missing=missing,
                cells_unknown=unknown,
                rows_clipped=clipped,
            ),
            lengths=None if self._coordinates is None else self._coordinates.norms[:kept] / ROW_NORM_SQUARED,
        )

    def _plain(
        self,
        loops: kernel.Kernel,
        rows: Floats,
        size: int,
        units: Integers,
        weights: Floats,
        counts: Integers,
    ) -> int:
        arrays = self._arrays
        return loops.encode_rows(
            rows,
            self._raw,
            size,
            arrays.sources,
            arrays.scales,
            arrays.derived,
            arrays.steps,
            arrays.constant,
            self._clips,
            self._drops,
            units,
            weights,
            counts,
            self._out,
        )

    def _in_coordinates(
        self,
        coordinates: _LatticeCoordinates,
        loops: kernel.Kernel,
        rows: Floats,
        size: int,
        units: Integers,
        weights: Floats,
        counts: Integers,
    ) -> int:
        """Whole numbers times whole numbers: the one matrix product in which a row's bits are its own.

        Proof: proofs/adaptive.md#adaptive-rows.
        """
        arrays = self._arrays
        loops.fill_rows(
            rows,
            self._raw,
            size,
            arrays.sources,
            arrays.scales,
            arrays.derived,
            arrays.steps,
            arrays.constant,
            not coordinates.standardises,
            coordinates.missing,
            counts,
            coordinates.lines if coordinates.standardises else self._out,
        )
        coordinates.apply(size, self._out)
        return loops.finish_rows(
            size,
            coordinates.scale,
            self._drops,
            units,
            weights,
            coordinates.missing,
            counts,
            coordinates.norms,
            coordinates.lines,
            self._out,
        )


@final
class _LatticeCoordinates:
    """T on its grid with the working memory of one thread: cells in units of weight/2^20, then u."""

    def __init__(self, encoder: Encoder) -> None:
        coordinates, width = encoder.coordinates, encoder.schema.width
        if coordinates is None:
            raise DpgramError("this encoder has no coordinates of its own")
        heaviest = max(column.weight for column in encoder.schema.encoded)
        self.unit = float(1 << VALUE_BITS) / heaviest
        """Of an encoded cell, in whole numbers."""
        self.scale = ROW_NORM / (encoder.radius * self.unit) * 2.0**-coordinates.shift
        self._integers = coordinates.integers
        alone = not np.tril(self._integers[:, 1:], -2).any()
        plain = encoder.schema.constant and not encoder.schema.columns_derived
        self.standardises = alone and plain and encoder.missing == "drop"
        """Whether nothing but the constant is added to a column, as where columns are only standardised: then
        the loops that fill a column can do it, without a product and without rounding before it."""
        self._moved: list[tuple[int, float, float]] = []
        self.lines = np.empty((width, encoder.chunk_rows))
        """u of each row, in whole numbers."""
        self.missing = np.zeros(encoder.chunk_rows, np.uint8)
        self.norms = np.empty(encoder.chunk_rows)

    def fold_into(self, arrays: _KernelArrays, schema: Schema) -> None:
        """Have the loops give T_jj·v_j + T_j0·v_0 for numbers; remember what is left to do for the others.

        Proof: proofs/adaptive.md#adaptive-rows.
        """
        diagonal, offsets = np.diagonal(self._integers), self._integers[:, 0] * arrays.constant
        numbers = arrays.sources[kernel.KIND] == kernel.NUMBER
        arrays.constant *= float(diagonal[0])
        for position, source in enumerate(schema.columns_read):
            for line in schema.indices(source.name):
                if not numbers[position]:
                    self._moved.append((line, float(diagonal[line]), float(offsets[line])))
                    continue
                scales = arrays.scales[position]
                scales[kernel.LATTICE_SCALE] *= diagonal[line]
                step = scales[kernel.INVERSE_HALF_WIDTH] * scales[kernel.LATTICE_SCALE]
                scales[kernel.CENTRE] -= offsets[line] / step

    def apply(self, size: int, cells: Floats) -> None:
        """lines = T·cells in whole numbers, each and every partial sum below 2^53: exact in any order.

        Proof: proofs/adaptive.md#adaptive-rows.
        """
        lines = self.lines[:, :size]
        if self.standardises:
            for line, factor, offset in self._moved:
                lines[line] = lines[line] * factor + offset
            return
        # T is triangular: blocks of lines, each with the columns that it needs.
        width, block = len(self._integers), _block(len(self._integers))
        for first in range(0, width, block):
            last = min(first + block, width)
            np.matmul(self._integers[first:last, :last], cells[:last, :size], out=lines[first:last])


def _block(width: int) -> int:
    """Lines of a triangular product at a time: about a quarter of them, in eights, as measured fastest."""
    return 8 * -(-width // 32)


Mask = npt.NDArray[np.bool_]


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


_NO_UNITS: Final[Integers] = np.empty(0, np.int64)
_NO_WEIGHTS: Final[Floats] = np.empty(0)


def _checked_units(unit_rows: npt.NDArray[np.integer[Any]] | None, rows: int) -> Integers:
    if unit_rows is None:
        return _NO_UNITS
    units = np.ascontiguousarray(unit_rows, dtype=np.int64)
    if units.shape != (rows,) or (rows and units.min() < 1):
        raise DpgramError(
            "unit_rows must say, for each row, of how many rows of its unit it is one",
            got=f"an array of shape {units.shape}",
            limit=f"{rows} integers, each at least 1",
        )
    return units


def _checked_weights(weights: Floats | None, rows: int) -> Floats:
    if weights is None:
        return _NO_WEIGHTS
    if weights.shape != (rows,) or not ((weights >= 0.0) & (weights <= 1.0)).all():
        raise DpgramError("every row needs one weight between 0 and 1", got=f"shape {weights.shape}")
    return np.ascontiguousarray(weights, dtype=np.float64)


@final
class _KernelArrays:
    """The schema as the arrays the loops read (their rows and columns are named in `kernel`)."""

    def __init__(self, schema: Schema, unit: float) -> None:
        declared, derived = schema.columns_read, schema.columns_derived
        place = {column.name: position for position, column in enumerate(declared)}
        self.constant = unit if schema.constant else 0.0
        self.sources = np.zeros((3, len(declared)), np.int64)
        self.scales = np.zeros((len(declared), 5))
        for position, column in enumerate(declared):
            targets = schema.indices(column.name)
            self.sources[kernel.TARGET, position] = targets[0]
            self.sources[kernel.SIZE, position] = len(targets)
            self.scales[position, kernel.LATTICE_SCALE] = column.weight * unit
            encoding = column.encoding
            self.sources[kernel.KIND, position] = _KERNEL_KINDS[type(encoding)]
            if isinstance(encoding, NumberEncoding):
                numbers = encoding.low, encoding.high, encoding.centre, 1 / encoding.half_width
                self.scales[position, : kernel.LATTICE_SCALE] = numbers
        computed = [
            (column, name, part)
            for column in derived
            for name, part in zip(column.encoded_names, column.parts, strict=True)
        ]
        self.derived = np.zeros((6, len(computed)), np.int64)
        self.steps = np.array([column.weight * unit for column, _, _ in computed])
        for position, (own, name, part) in enumerate(computed):
            (self.derived[kernel.RESULT, position],) = schema.indices(name)
            self.derived[kernel.LEFT, position] = place[own.factors[0]]
            (self.derived[kernel.LEFT_LINE, position],) = schema.indices(part.factors[0])
            match part:
                case ProductEncoding(right=right):
                    self.derived[kernel.RIGHT, position] = place[own.factors[1]]
                    (self.derived[kernel.RIGHT_LINE, position],) = schema.indices(right)
                case LegendreEncoding(degree=degree):
                    self.derived[kernel.RIGHT, position] = -1
                    self.derived[kernel.DEGREE, position] = degree
                case other:
                    raise TypeError(type(other).__name__)


_KERNEL_KINDS: Final[Mapping[type[SourceEncoding], int]] = {
    NumberEncoding: kernel.NUMBER,
    BooleanEncoding: kernel.BOOLEAN,
    LevelsEncoding: kernel.LEVELS,
}

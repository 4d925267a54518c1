"""What becomes of the cells of each column, counted exactly: for the curator's eyes, never for a release.

A cell is readable, missing (empty, or a declared code), unreadable (text that the rules do not read), unknown
(none of the levels), or readable and moved to a bound. Beside the counts a few words are kept, from which
`causes` guesses what went wrong; they do not leave this machine either.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.core.units import PolicyCounts
from dpgram.rows.batch import kinds_of, readings_of
from dpgram.rows.floats import as_floats
from dpgram.rows.learnt_levels import level_texts
from dpgram.rows.rules import RowRules
from dpgram.rows.units import unit_ids
from dpgram.schema import SourceColumn
from dpgram.schema.encodings import NumberEncoding

if TYPE_CHECKING:
    import pyarrow as pa

BINS: Final = 24
"""Of the picture of a column between its bounds."""
WORDS_KEPT: Final = 2_000
"""Different words of each column that could not be used."""
ROWS_TOGETHER: Final = 50_000
CELLS_SAMPLED: Final = 2_000
"""Of those of a column that are read, in so many rows together."""

Mask = npt.NDArray[np.bool_]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnCheck:
    """The cells of one column, counted. Exact, hence not private."""

    name: str
    role: str
    """As which it is declared: its kind, or unit, weight, group."""
    bounds: tuple[float, float] | None
    bounds_shown: tuple[str, str]
    """As the schema writes them: dates as dates."""
    cells: int
    missing: int
    """Empty, or a declared code for a missing value."""
    unreadable: int
    """Something stands there that the rules do not read."""
    unknown: int
    """None of the declared levels, or neither true nor false."""
    below: int
    above: int
    bins: tuple[int, ...]
    """How many readable cells are in each of equal parts between the bounds; of levels, how many in each."""
    levels: tuple[str, ...] = ()
    lost_words: tuple[tuple[str, int], ...] = ()
    """Words that could not be read or are no level, the most frequent first."""
    read_words: tuple[tuple[str, int], ...] = ()
    """A sample of the words that are read, on which a rule for the others is tried."""
    numbers_outside: tuple[tuple[float, int], ...] = ()
    """Numbers beyond the bounds, the most frequent first."""

    @property
    def readable(self) -> int:
        return self.cells - self.missing - self.unreadable - self.unknown

    @property
    def lost(self) -> float:
        """The share of cells that hold something which cannot be used."""
        return (self.unreadable + self.unknown) / self.cells if self.cells else 0.0

    @property
    def clamped(self) -> float:
        """The share of cells that are moved to a bound."""
        return (self.below + self.above) / self.cells if self.cells else 0.0


def check_columns(
    data: object, rules: RowRules, *, most_rows: int | None = None
) -> tuple[tuple[ColumnCheck, ...], dict[str, PolicyCounts]]:
    """Every column that is read, in the order of the schema, then group, weight and unit; and the rows used.

    Rows are counted for each block; "all" where there is one.
    """
    from dpgram.sources import open_source

    columns, layout = rules.columns, rules.schema.layout
    raw = open_source(data, columns, layout=layout, batch_rows=ROWS_TOGETHER)
    read = open_source(
        data,
        columns,
        kinds=kinds_of(rules),
        readings=readings_of(rules),
        layout=layout,
        batch_rows=ROWS_TOGETHER,
    )
    tallies, counts = _tallies(rules), dict.fromkeys(blocks := _needed(rules), PolicyCounts())
    left = most_rows
    with closing(raw.batches()) as cells, closing(read.batches()) as values:
        for before, after in zip(_in_step(cells), _in_step(values), strict=True):
            rows = before.num_rows if left is None else min(left, before.num_rows)
            usable = {
                tally.name: tally.add(
                    before.column(tally.name).slice(0, rows), after.column(tally.name).slice(0, rows)
                )
                for tally in tallies
            }
            for name, needed in blocks.items():
                used = int(np.all([usable[column] for column in needed], axis=0).sum()) if needed else rows
                counts[name] += PolicyCounts(rows_read=rows, rows_used=used, rows_dropped=rows - used)
            if left is not None and (left := left - rows) <= 0:
                break
    return tuple(tally.result() for tally in tallies), counts


def _needed(rules: RowRules) -> dict[str, tuple[str, ...]]:
    """The columns of which a row must have usable cells to be used, for each block."""
    beside = [column.name for column in rules.extra] + ([] if rules.unit is None else [rules.unit])
    blocks = rules.schema.in_blocks()
    names = [f"block {number}" for number in range(1, len(blocks) + 1)] if len(blocks) > 1 else ["all"]
    drops = rules.missing == "drop"
    return {
        name: (*(column.name for column in block.columns_read if drops), *beside)
        for name, block in zip(names, blocks, strict=True)
    }


def _tallies(rules: RowRules) -> list[_Tally]:
    readings, kinds = readings_of(rules), kinds_of(rules)
    declared = [*((column, column.kind) for column in rules.schema.columns_read)]
    declared += [(column, "group" if column is rules.by else "weight") for column in rules.extra]
    found = [
        _Tally(column.name, role, column, kinds[column.name], readings.get(column.name))
        for column, role in declared
    ]
    return found if rules.unit is None else [*found, _Tally(rules.unit, "unit", None, "id", None)]


def _in_step(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of a fixed size: two readers of one table may cut it differently."""
    import pyarrow as pa

    held: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        held.append(batch)
        rows += batch.num_rows
        if rows >= ROWS_TOGETHER:
            whole = _joined(held)
            cut = rows - rows % ROWS_TOGETHER
            yield from (whole.slice(start, ROWS_TOGETHER) for start in range(0, cut, ROWS_TOGETHER))
            held, rows = [whole.slice(cut)], rows - cut
    if rows or not held:
        yield _joined(held) if held else pa.record_batch({})


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    import pyarrow as pa

    from dpgram.sources.memory import joined

    if len(batches) == 1:
        return batches[0]
    # Row by row of columns: what has a dictionary or a type of its own in one batch may not in the next.
    names = batches[0].schema.names
    columns = [
        joined(name, pa.chunked_array([batch.column(place) for batch in batches]))
        for place, name in enumerate(names)
    ]
    return pa.RecordBatch.from_arrays(columns, names=names)


@final
class _Tally:
    """Counts the cells of one column, batch after batch."""

    def __init__(self, name: str, role: str, column: SourceColumn | None, kind: Any, reading: Any) -> None:
        self.name = name
        self._role, self._column, self._kind, self._reading = role, column, kind, reading
        self._cells = self._missing = self._unreadable = self._unknown = self._below = self._above = 0
        self._levels = () if column is None else column.group_levels
        open_column = column is None or column.open_bounds or column.open_levels
        self._encoding = None if open_column or column is None else column.encoding
        self._bins = np.zeros(len(self._levels) or BINS, np.int64)
        self._words: Counter[str] = Counter()
        self._read_words: Counter[str] = Counter()
        self._outside: Counter[float] = Counter()

    def add(self, raw: pa.Array, read: pa.Array) -> Mask:
        """Cells as they are, and as the rules read them; which of them can be used."""
        self._cells += len(raw)
        if self._column is None:
            nameless = _nulls(unit_ids(read, self.name))
            self._missing += int(nameless.sum())
            return ~nameless
        empty = _empty(raw) | self._codes(raw)
        if self._column.open_levels:
            line = np.where(_nulls(level_texts(read, self.name)), np.nan, 0.0)
        else:
            line = as_floats(self._column.read(read))
        empty &= ~(_nulls(raw) & np.isfinite(line))  # objects that are no text, such as moments
        self._missing += int(empty.sum())
        unreadable = ~empty & ~np.isfinite(line)
        self._unreadable += int(unreadable.sum())
        unknown = np.zeros(len(line), np.bool_)
        if self._encoding is not None:
            unknown = ~empty & self._encoding.unknown(line)
            self._unknown += int(unknown.sum())
            self._place(line[~empty & ~unreadable & ~unknown])
        if (lost := unreadable | unknown).any():
            self._words = _with_words(self._words, raw, np.flatnonzero(lost))
        used = ~(empty | lost)
        places = np.flatnonzero(used)
        self._read_words = _with_words(
            self._read_words, raw, places[:: -(-len(places) // CELLS_SAMPLED) or 1]
        )
        return used

    def _place(self, line: npt.NDArray[np.float64]) -> None:
        if isinstance(self._encoding, NumberEncoding):
            low, high = self._encoding.low, self._encoding.high
            below, above = line < low, line > high
            self._below += int(below.sum())
            self._above += int(above.sum())
            values, counts = np.unique(line[below | above], return_counts=True)
            self._outside.update(dict(zip(values.tolist(), counts.tolist(), strict=True)))
            self._outside = Counter(dict(self._outside.most_common(WORDS_KEPT)))
            place = (line[~below & ~above] - low) / (high - low) * BINS
            self._bins += np.bincount(np.minimum(place.astype(np.int64), BINS - 1), minlength=BINS)
        elif self._levels:
            self._bins += np.bincount(line.astype(np.int64), minlength=len(self._bins))
        else:
            true = int((line == 1.0).sum())
            self._bins[:2] += (len(line) - true, true)

    def _codes(self, raw: pa.Array) -> Mask:
        import pyarrow.compute as pc

        from dpgram.sources.plain_columns import plain_texts
        from dpgram.sources.text_cells import codes_in

        if self._reading is None or not self._reading.missing:
            return np.zeros(len(raw), np.bool_)
        found = codes_in(plain_texts(raw), self._kind, self._reading)
        return np.asarray(pc.fill_null(found, fill_value=False).to_numpy(zero_copy_only=False), np.bool_)

    def _shown_bounds(self, bounds: tuple[float, float] | None) -> tuple[str, str]:
        if bounds is None or self._column is None:
            return "", ""
        form = self._column.to_dict()
        return _bound(form.get("low", bounds[0])), _bound(form.get("high", bounds[1]))

    def result(self) -> ColumnCheck:
        bounds = None
        if isinstance(self._encoding, NumberEncoding):
            bounds = self._encoding.low, self._encoding.high
        truth = self._encoding is not None and bounds is None and not self._levels
        return ColumnCheck(
            name=self.name,
            role=self._role,
            bounds=bounds,
            bounds_shown=self._shown_bounds(bounds),
            cells=self._cells,
            missing=self._missing,
            unreadable=self._unreadable,
            unknown=self._unknown,
            below=self._below,
            above=self._above,
            bins=() if self._encoding is None else tuple((self._bins[:2] if truth else self._bins).tolist()),
            levels=("false", "true") if truth else self._levels,
            lost_words=tuple(self._words.most_common()),
            read_words=tuple(self._read_words.most_common()),
            numbers_outside=tuple(self._outside.most_common()),
        )


def _with_words(counted: Counter[str], raw: pa.Array, places: npt.NDArray[np.int64]) -> Counter[str]:
    """The counts with the words at these places; of the most frequent ones."""
    import pyarrow as pa

    from dpgram.sources.plain_columns import from_objects

    held = raw.take(pa.array(places[:ROWS_TOGETHER]))
    words = held if pa.types.is_string(held.type) else from_objects(_objects(held), "text")
    for entry in words.value_counts().to_pylist():
        if entry["values"] is not None:
            counted[entry["values"]] += entry["counts"]
    return counted if len(counted) <= WORDS_KEPT else Counter(dict(counted.most_common(WORDS_KEPT)))


def _bound(bound: object) -> str:
    return f"{bound:,.6g}" if isinstance(bound, float) else str(bound)


def _objects(cells: pa.Array) -> list[object]:
    """As Python objects; text that is not UTF-8 as its bytes."""
    import pyarrow as pa

    from dpgram.sources.plain_columns import plain_texts

    if pa.types.is_large_string(cells.type):
        return list(plain_texts(cells).to_pylist())
    try:
        return list(cells.to_pylist())
    except (ValueError, OverflowError):  # moments that Python's calendar does not have
        return [None] * len(cells)


def _empty(raw: pa.Array) -> Mask:
    """Nothing stands there: null, no letters or blanks alone, not a number."""
    import pyarrow as pa
    import pyarrow.compute as pc

    from dpgram.sources.plain_columns import plain_texts

    cells = plain_texts(raw)
    blank: Mask = np.zeros(len(raw), np.bool_)
    if pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type):
        nothing = pc.fill_null(pc.equal(pc.utf8_trim_whitespace(cells), ""), fill_value=True)
        blank = nothing.to_numpy(zero_copy_only=False)
    elif pa.types.is_floating(cells.type):
        blank = np.isnan(cells.to_numpy(zero_copy_only=False))
    return np.logical_or(np.logical_or(_nulls(raw), _nulls(cells)), blank)


def _nulls(cells: pa.Array) -> Mask:
    nulls: Mask = cells.is_null().to_numpy(zero_copy_only=False)
    return nulls

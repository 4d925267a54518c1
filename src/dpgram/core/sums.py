"""Exact integer sums of bounded row contributions: what one unit adds is bounded in whole numbers.

    Gram          Σ q qᵀ, one matrix for each group:   V ⪰ 0, all groups together Σ tr V ≤ 2^30
    Histograms    counts at equal nodes, or of levels, and of what was lost of each column
    Lengths       counts of |u|² between fixed ends
    Rows          the number of rows that lack nothing
    Octaves       counts of signed powers of two
    Bins          counts of equal bins
    Levels        counts of texts

A unit adds at most 2^30 in L1 to each histogram. Sums are whole numbers: no order, grouping or number of
workers can change a bit. **Nothing here is private.** Proof: proofs/core.md#core-sums.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias, final

import numpy as np

from dpgram.core import LEAST_EXPONENT, OCTAVES, SQUARE, ZERO
from dpgram.core.encode import CLAMPED, MISSING, UNKNOWN, Floats, Integers, Mask, RowMap, broken, usable
from dpgram.core.lattice import INEXACT, PIECE, Work, product
from dpgram.core.lattice import Rows as LatticeRows
from dpgram.core.units import Block, PolicyCounts
from dpgram.errors import DpgramError

EXACT_ROWS: Final = 1 << 22
"""Rows whose contributions a float adds up exactly in any order: 2^22 · 2^30 = 2^52."""
MOST_ROWS: Final = (1 << 33) - 1
"""Rows of a sum in 64-bit integers: a cell is at most rows · 2^30 < 2^63."""
PIECE_CELLS: Final = 1 << 18
"""Cells of a piece of a wide table, so that its lines stay near the processor."""
CLIPPED_FROM: Final = 1.0 + 2.0**-20
"""Of R², the squared length from which a row is said to be clipped: rounding alone does not reach it."""

Cells: TypeAlias = "Integers | tuple[Counter[str], ...]"
Found: TypeAlias = tuple[Cells, PolicyCounts]
"""An exact sum, and what was seen of the rows on the way."""


def array_of(found: Found) -> tuple[Integers, PolicyCounts]:
    """A sum that is an array of integers."""
    cells, seen = found
    if isinstance(cells, tuple):
        raise broken("this sum is no array")
    return cells, seen


class Sum(ABC):
    """A public, bounded function of a row, and how its values are added up. Data: it can be sent anywhere."""

    __slots__ = ()

    @abstractmethod
    def adder(self) -> Adder:
        """Working memory of one thread."""


class Adder(ABC):
    """Adds rows up, for one thread."""

    @abstractmethod
    def add(self, block: Block) -> None:
        """Count these rows; where there are units, all rows of every unit among them."""

    @abstractmethod
    def found(self) -> tuple[Found, ...]:
        """The sums so far: one, or one for each group."""


@final
@dataclass(frozen=True, slots=True)
class Gram(Sum):
    """Σ q qᵀ of the rows of each group."""

    rowmap: RowMap
    sources: tuple[int, ...]
    """Which lines of a block are the row map's source columns."""
    groups: int = 1

    def adder(self) -> GramAdder:
        return GramAdder(self)


@final
@dataclass(frozen=True, slots=True)
class Lengths(Sum):
    """A histogram of |u|²/R² between ends that grow, of rows as a Gram sum of the same map takes them."""

    rowmap: RowMap
    sources: tuple[int, ...]
    ends: tuple[float, ...]

    def adder(self) -> LengthsAdder:
        return LengthsAdder(self)


@final
class GramAdder(Adder):
    """In float64 while that is exact, then in int64.

    Proof: proofs/core.md#core-sums,
    proofs/measurements.md#measurements-sensitivity,
    proofs/units.md#units-claim.
    """

    def __init__(self, what: Gram, beside: Sequence[LengthsAdder] = ()) -> None:
        """`beside` counts the lengths of the same rows, each of which is then encoded once."""
        width = what.rowmap.width
        self._what, self._beside = what, beside
        self._encoder = Encoded(what.rowmap, what.sources)
        self._cells = np.zeros((what.groups, width, width), np.int64)
        self._floats = np.zeros((what.groups, width, width))
        self._pending = 0
        self._seen = [PolicyCounts() for _ in range(what.groups)]

    def add(self, block: Block) -> None:
        able = self._encoder.usable(block)
        counted, sizes = block.rows_that_count(block.placed_anywhere & able)
        groups = np.zeros(block.rows, np.int64) if block.groups is None else block.groups
        count = len(self._seen)
        over = np.bincount(groups[block.placed & able & ~counted], minlength=count).tolist()
        # Rows that lack a cell go along: what was wrong with them is counted.
        (taken,) = np.nonzero(block.placed & (counted | ~able))
        taken = taken[np.argsort(groups[taken], kind="stable")] if count > 1 else taken
        ends = np.cumsum(np.bincount(groups[taken], minlength=count)).tolist()
        self._seen[0] += block.uncounted
        for number in range(count):
            self._seen[number] += PolicyCounts(
                rows_read=over[number], rows_dropped=over[number], rows_over_unit_limit=over[number]
            )
            self._add(block, taken[ends[number - 1] if number else 0 : ends[number]], sizes, number)

    def _add(self, block: Block, rows: Integers, sizes: Integers | None, group: int) -> None:
        for piece, made, seen in self._encoder.rows(block, rows, sizes):
            if self._pending + len(piece) > EXACT_ROWS:
                self._flush()
            self._pending += len(piece)
            self._floats[group] += _gram(made.q)
            self._seen[group] += seen
            if block.units is None:
                for one in self._beside:
                    one.take(made, block.shares(piece))

    def _flush(self) -> None:
        whole = self._floats.astype(np.int64)
        if not np.array_equal(whole, self._floats):
            raise broken("a sum of whole numbers is not whole")
        self._cells += whole
        self._floats[:] = 0.0
        self._pending = 0

    def found(self) -> tuple[Found, ...]:
        self._flush()
        for seen in self._seen:
            check_rows(seen)
        return tuple(zip(self._cells.copy(), self._seen, strict=True))


def _gram(q: Floats) -> Floats:
    """q qᵀ, tested by its checksum: 1ᵀ(q qᵀ)1 = |qᵀ1|², whole numbers below 2^53 on both sides.

    Proof: proofs/core.md#core-sums.
    """
    found: Floats = product(q, q.T)
    rows = np.add.reduce(q, axis=0)
    if np.add.reduce(found, axis=None) != np.dot(rows, rows):
        raise DpgramError(INEXACT)
    return found


def check_rows(seen: PolicyCounts) -> None:
    """Refuse more rows than a sum in 64-bit integers can hold."""
    if seen.rows_used > MOST_ROWS:
        raise DpgramError(
            "too many rows for exact 64-bit sums",
            limit=f"{MOST_ROWS} rows",
            remedy="Publish the table in parts",
        )


@final
class Encoded:
    """Pieces of a block as lattice rows, in the memory of one thread.

    Proof: proofs/core.md#core-sums.
    """

    def __init__(self, rowmap: RowMap, sources: tuple[int, ...]) -> None:
        self._sources, self._rowmap = sources, rowmap
        self._rows = min(PIECE, max(PIECE // 4, PIECE_CELLS // rowmap.width))
        self._work = Work(rowmap, self._rows)
        self._out = np.empty((rowmap.width, self._rows))

    def usable(self, block: Block) -> Mask:
        """Which rows of a block the row map can use."""
        return usable(self._rowmap, [block.cells[source] for source in self._sources], block.rows)

    def rows(
        self, block: Block, rows: Integers, sizes: Integers | None = None
    ) -> Iterator[tuple[Integers, LatticeRows, PolicyCounts]]:
        """These rows of a block, some at a time: their places, their lattice rows, what was seen of them."""
        everything = len(rows) == block.rows and bool((np.diff(rows) == 1).all())
        for start in range(0, len(rows), self._rows):
            places = rows[start : start + self._rows]
            at = slice(start, start + len(places)) if everything else places
            cells = [np.ascontiguousarray(block.cells[source][at]) for source in self._sources]
            seen = self._work.seen
            seen[:] = 0
            made = self._work.rows(
                cells,
                self._out[:, : len(places)],
                sizes=None if sizes is None else sizes[places],
                weights=None if block.weights is None else block.weights[places],
            )
            lost = 0 if made.lost is None else int(np.count_nonzero(made.lost))
            long = made.squares > self._rowmap.radius**2 * CLIPPED_FROM
            if made.lost is not None:
                long &= ~made.lost
            counts = PolicyCounts(
                rows_read=len(places),
                rows_used=len(places) - lost,
                rows_dropped=lost,
                cells_clamped=int(seen[CLAMPED]),
                cells_missing=int(seen[MISSING]),
                cells_unknown=int(seen[UNKNOWN]),
                rows_clipped=int(np.count_nonzero(long)),
            )
            yield places, made, counts


class CountAdder(Adder):
    """Histograms of one row of each unit, or of every row.

    Proof: proofs/core.md#core-counts, proofs/measurements.md#measurements-sensitivity.
    """

    def __init__(self, shape: tuple[int, int]) -> None:
        self._cells = np.zeros(shape, np.int64)
        self._seen = PolicyCounts()

    def add(self, block: Block) -> None:
        chosen = block.once
        read, used = int(np.count_nonzero(block.placed)), len(chosen)
        # Every row that is placed is read; of those, one of each unit is used.
        self._seen += block.uncounted + PolicyCounts(rows_read=read, rows_used=used, rows_dropped=read - used)
        everything = used == block.rows
        for start in range(0, used, PIECE):
            places = chosen[start : start + PIECE]
            self._count(
                block, slice(start, start + len(places)) if everything else places, block.shares(places)
            )

    @abstractmethod
    def _count(self, block: Block, rows: slice | Integers, shares: Floats | None) -> None:
        """Count these few rows, row by row: what a row adds depends on its own numbers only."""

    def found(self) -> tuple[Found, ...]:
        check_rows(self._seen)
        return ((self._cells.copy(), self._seen),)


@final
class LengthsAdder(CountAdder):
    """By comparison with the ends, row by row."""

    def __init__(self, what: Lengths, *, taken: bool = False) -> None:
        """`taken`: rows without units come from a Gram sum of the same map, which calls `take`."""
        super().__init__((1, len(what.ends) + 1))
        self._taken = taken
        self._encoder = Encoded(what.rowmap, what.sources)
        self._ends, self._square = np.array(what.ends), what.rowmap.radius**2

    def _count(self, block: Block, rows: slice | Integers, shares: Floats | None) -> None:
        del shares
        if block.units is not None or not self._taken:
            for piece, made, _ in self._encoder.rows(block, np.arange(block.rows)[rows]):
                self.take(made, block.shares(piece))

    def take(self, made: LatticeRows, shares: Floats | None) -> None:
        """The lengths of rows that are encoded already."""
        bins = length_bins(made.squares / self._square, self._ends)
        if made.lost is not None:
            kept = ~made.lost
            bins, shares = bins[kept], None if shares is None else shares[kept]
        self._cells[0] += _counted(bins, shares, self._cells.shape[1])


@final
@dataclass(frozen=True, slots=True)
class Nodes:
    """A histogram of one source column: `STEPS` equal steps between two ends, or so many levels."""

    source: int
    low: float = 0.0
    high: float = 1.0
    levels: int = 0

    @property
    def cells(self) -> int:
        """Nodes or levels, without the cells for what was lost."""
        return self.levels or NODES

    @property
    def losses(self) -> int:
        """Cells for what was lost: nothing lies below or above a level."""
        return 2 if self.levels else LOST


@final
@dataclass(frozen=True, slots=True)
class Histograms(Sum):
    """Counts at nodes or of levels, then those of what was lost: missing, unreadable, below, above."""

    columns: tuple[Nodes, ...]

    def __post_init__(self) -> None:
        for one in self.columns:
            if not one.levels and not -math.inf < one.low < one.high < math.inf:
                raise broken("a histogram lies between two ends")

    def adder(self) -> HistogramsAdder:
        return HistogramsAdder(self)


@final
class HistogramsAdder(CountAdder):
    """Column by column.

    Proof: proofs/adaptive.md#adaptive-histograms.
    """

    def __init__(self, what: Histograms) -> None:
        super().__init__((len(what.columns), max(one.cells for one in what.columns) + LOST))
        self._columns = what.columns

    def _count(self, block: Block, rows: slice | Integers, shares: Floats | None) -> None:
        for column, cells in zip(self._columns, self._cells, strict=True):
            x = np.ascontiguousarray(block.cells[column.source][rows])
            if column.levels:
                count_levels(cells, x, shares, column.levels)
            else:
                count_nodes(cells, x, shares, column.low, column.high)


@final
@dataclass(frozen=True, slots=True)
class Counts(Sum):
    """One histogram for each of these source columns, or one of all of them together.

    `kind` says in which cell of it a row counts: "rows" (all that lack nothing in these columns, one cell),
    "octaves" (signed powers of two) or "bins" (`bins` equal ones between two ends, at the end what lies
    beyond). A cell that is not finite counts nowhere.
    """

    kind: str
    sources: tuple[int, ...]
    ends: tuple[tuple[float, float], ...] = ()
    bins: int = 0

    def __post_init__(self) -> None:
        if self.kind not in ("rows", "octaves", "bins") or (
            self.kind == "bins" and not (len(self.ends) == len(self.sources) and self.bins > 0)
        ):
            raise broken("there are no such counts")

    @property
    def shape(self) -> tuple[int, int]:
        """How many histograms, and how many cells each has."""
        if self.kind == "rows":
            return 1, 1
        return len(self.sources), OCTAVES if self.kind == "octaves" else self.bins

    def adder(self) -> CountsAdder:
        return CountsAdder(self)

    def places(self, lines: Sequence[Floats], rows: int) -> Iterator[Integers]:
        """For each histogram the cell that each row counts in, −1 where it counts in none."""
        if self.kind == "rows":
            there = np.ones(rows, np.bool_)
            for line in lines:
                there &= np.isfinite(line)
            yield np.where(there, 0, -1)
        elif self.kind == "octaves":
            yield from map(octave_places, lines)
        else:
            for line, ends in zip(lines, self.ends, strict=True):
                yield bin_places(line, *ends, self.bins)


@final
class CountsAdder(CountAdder):
    """Histogram by histogram."""

    def __init__(self, what: Counts) -> None:
        super().__init__(what.shape)
        self._what = what

    def _count(self, block: Block, rows: slice | Integers, shares: Floats | None) -> None:
        lines = [block.cells[source][rows] for source in self._what.sources]
        count = rows.stop - rows.start if isinstance(rows, slice) else len(rows)
        for place, line in enumerate(self._what.places(lines, count)):
            there = line >= 0
            own = None if shares is None else shares[there]
            self._cells[place] += _counted(line[there], own, self._cells.shape[1])


@final
@dataclass(frozen=True, slots=True)
class Levels(Sum):
    """How often each text occurs in columns of unknown levels; longer ones count nowhere."""

    lines: tuple[int, ...]
    """Which of a block's columns of texts."""
    longest: int

    def adder(self) -> LevelsAdder:
        return LevelsAdder(self)


@final
class LevelsAdder(Adder):
    """A table of the texts of each column, with 2^30 for each row, or its share.

    Proof: proofs/measurements.md#measurements-sensitivity.
    """

    def __init__(self, what: Levels) -> None:
        self._what, self._seen = what, PolicyCounts()
        self._found: tuple[Counter[str], ...] = tuple(Counter() for _ in what.lines)

    def add(self, block: Block) -> None:
        chosen = block.once
        read = int(np.count_nonzero(block.placed))
        self._seen += block.uncounted + PolicyCounts(
            rows_read=read, rows_used=len(chosen), rows_dropped=read - len(chosen)
        )
        for start in range(0, len(chosen), EXACT_ROWS):
            places = chosen[start : start + EXACT_ROWS]
            shares = block.shares(places)
            for number, found in zip(self._what.lines, self._found, strict=True):
                column = block.texts[number]
                codes = column.codes[places]
                there = codes >= 0
                own = None if shares is None else shares[there]
                totals = _counted(codes[there], own, len(column.texts))
                for place in np.flatnonzero(totals).tolist():
                    text = column.texts[place]
                    if text and len(text) <= self._what.longest:
                        found[text] += int(totals[place])

    def found(self) -> tuple[Found, ...]:
        check_rows(self._seen)
        return ((tuple(Counter(each) for each in self._found), self._seen),)


@final
@dataclass(frozen=True, slots=True)
class EachGroup(Sum):
    """A sum of its own for each group of rows; none for a group that is not measured.

    A row is in one group. Which rows of a unit count, and how much, is decided over all groups together, so
    that a unit adds to all of these sums together no more than to one. Proof: proofs/core.md#core-sums.
    """

    members: tuple[Sum | None, ...]

    def adder(self) -> EachGroupAdder:
        return EachGroupAdder(self)


@final
class EachGroupAdder(Adder):
    """Passes the rows of each group on.

    Proof: proofs/adaptive.md#adaptive-groups.
    """

    def __init__(self, what: EachGroup) -> None:
        self._members = [(number, one.adder()) for number, one in enumerate(what.members) if one is not None]

    def add(self, block: Block) -> None:
        for number, one in self._members:
            one.add(block.of_group(number))

    def found(self) -> tuple[Found, ...]:
        return tuple(found for _, one in self._members for found in one.found())


def adders(sums: Sequence[Sum]) -> list[Adder]:
    """Working memory of one thread. Lengths of the rows that a Gram sum encodes anyway are taken from it.

    Proof: proofs/core.md#core-sums.
    """
    found: list[Adder] = [one.adder() for one in sums]
    for place, one in enumerate(sums):
        if not isinstance(one, Gram) or one.groups > 1:
            continue
        beside = []
        for number, other in enumerate(sums):
            if isinstance(other, Lengths) and (other.rowmap, other.sources) == (one.rowmap, one.sources):
                found[number] = lengths = LengthsAdder(other, taken=True)
                beside.append(lengths)
        found[place] = GramAdder(one, beside)
    return found


STEPS: Final = 16
"""Equal steps of a histogram between bounds, with a node at either end of each."""
NODES: Final = STEPS + 1
LOST: Final = 4
LOST_MISSING, LOST_UNREADABLE, LOST_BELOW, LOST_ABOVE = range(LOST)
"""Cells of a histogram behind its nodes or levels, for what was lost."""


def count_levels(cells: Integers, x: Floats, shares: Floats | None, levels: int) -> None:
    """Add each row's share (none: 2^30) to the level that its cell is the number of, or to what was lost.

    Proof: proofs/core.md#core-counts.
    """
    with np.errstate(all="ignore"):  # a warning would depend on one row
        known = (x >= 0.0) & (x < levels) & (np.floor(x) == x)
        lost = levels + np.where(np.isnan(x), LOST_MISSING, LOST_UNREADABLE)
        places = np.where(known, np.where(known, x, 0.0).astype(np.int64), lost)
    cells += _counted(places, shares, len(cells))


def count_nodes(cells: Integers, x: Floats, shares: Floats | None, low: float, high: float) -> None:
    """Add each row's share to the two nodes next to its cell, to the nearer one more, or to what was lost.

    Halves of the bounds, so that these may lie at the end of the floats.

    Proof: proofs/adaptive.md#adaptive-histograms, proofs/core.md#core-counts.
    """
    with np.errstate(all="ignore"):  # a warning would depend on one row
        inside = (x >= low) & (x <= high)
        within, own = x, shares
        if not inside.all():
            within, own = x[inside], None if shares is None else shares[inside]
        position = (within * 0.5 - low * 0.5) * (STEPS / (high * 0.5 - low * 0.5))
        position = np.where(position < STEPS, position, float(STEPS))
        first = np.minimum(position.astype(np.int64), STEPS - 1)
        one = float(SQUARE) if own is None else own
        beyond = np.bincount(first, np.floor((position - first) * one), minlength=STEPS).astype(np.int64)
        cells[:STEPS] += _counted(first, own, STEPS) - beyond
        cells[1:NODES] += beyond
        if len(within) < len(x):
            away, left = x[~inside], None if shares is None else shares[~inside]
            kind = np.where(away < low, LOST_BELOW, np.where(away > high, LOST_ABOVE, LOST_MISSING))
            kind = np.where(np.isinf(away), LOST_UNREADABLE, kind)
            cells[NODES:] += _counted(kind, left, len(cells) - NODES)


def _counted(places: Integers, shares: Floats | None, size: int) -> Integers:
    """At most 2^22 rows at a time, so that their shares add up exactly in floats."""
    if shares is None:
        return np.bincount(places, minlength=size) * SQUARE
    return np.bincount(places, shares, minlength=size).astype(np.int64)


def length_bins(squares: Floats, ends: Floats) -> Integers:
    """The bin of each |u|², by comparison with the ends of the bins, which grow.

    Proof: proofs/core.md#core-counts.
    """
    return np.searchsorted(ends, squares, side="right").astype(np.int64)


def octave_places(values: Floats) -> Integers:
    """The place of each value's octave in the histogram; −1 where it is not finite.

    Proof: proofs/bounds.md#bounds-parts.
    """
    finite = np.isfinite(values)
    held = np.where(finite, values, 0.0)
    _, exponents = np.frexp(np.abs(held))
    steps = exponents.astype(np.int64) - LEAST_EXPONENT
    return np.where(finite, ZERO + np.sign(held).astype(np.int64) * steps, -1)


def bin_places(values: Floats, low: float, high: float, bins: int) -> Integers:
    """The bin of each value, the bin at the end for what lies outside; −1 where it is not finite.

    Proof: proofs/bounds.md#bounds-parts.
    """
    finite = np.isfinite(values)
    share = (np.clip(np.where(finite, values, low), low, high) / 2 - low / 2) / (high / 2 - low / 2)
    return np.where(finite, np.minimum((share * bins).astype(np.int64), bins - 1), -1)

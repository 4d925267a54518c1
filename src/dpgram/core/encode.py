"""One row → whole numbers v with |v_j| ≤ bounds[j], by public constants alone.

    v_j = rint((min(max(z, low), high) − centre)·scale)

z is 1, a cell, [cell = level], the product of two lines or a Legendre polynomial of one. Every operation is
elementwise and correctly rounded, so a row's numbers depend on that row and on public constants, bit by bit.

Proof: proofs/core.md#core-encoding.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Final, Literal, final

import numpy as np
import numpy.typing as npt

from dpgram.core import EXACT
from dpgram.errors import DpgramError

Floats = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

LARGEST: Final = 2.0**1000
"""Scales stay below it, so that no cell too small to be a normal float could reach ½ once it is scaled."""
CLAMPED, MISSING, UNKNOWN = range(3)
UNKNOWN_CELL: Final = -1.0
"""In place of the number of a level: a value that is none of the declared ones."""


def broken(what: str) -> DpgramError:
    """The refusal of a row map, a measure or a program that has no proof: public facts only."""
    return DpgramError(what, remedy="This is a bug: please report it")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One encoded column. `source` is the number of a source column; of a derived line, that of a line.

    Proof: proofs/core.md#core-encoding.
    """

    kind: Literal["one", "number", "level", "product", "legendre"]
    source: int = 0
    other: int = 0
    """The second factor of a product."""
    level: int = 0
    degree: int = 0
    """Of a Legendre polynomial, taken at the line's whole number times `unit`."""
    unit: float = 1.0
    low: float = 0.0
    high: float = 1.0
    centre: float = 0.0
    scale: float = 1.0
    absent: int = 0
    """What stands there where the cell is missing or unknown, and such rows are kept."""

    @property
    def derived(self) -> bool:
        return self.kind in ("product", "legendre")

    def affine(self, z: Floats) -> Floats:
        """In place: five operations, each monotone after rounding, for cells and for the ends alike."""
        np.maximum(z, self.low, out=z)
        np.minimum(z, self.high, out=z)
        np.subtract(z, self.centre, out=z)
        np.multiply(z, self.scale, out=z)
        return np.rint(z, out=z)


@final
@dataclass(frozen=True)
class RowMap:
    """Lines v, then u = T v with whole numbers T (none: u = v), clipped at |u| ≤ radius.

    `levels` has for each source column how many levels its cells are numbers of, 0 for plain numbers. With
    `drop` a row that lacks a cell counts nowhere.

    Proof: proofs/core.md#core-encoding.
    """

    lines: tuple[Line, ...]
    levels: tuple[int, ...]
    radius: float
    transform: tuple[tuple[int, ...], ...] | None = None
    drop: bool = True
    bounds: tuple[int, ...] = field(init=False)
    """The largest |v_j| that any row can have."""

    def __post_init__(self) -> None:
        if not self.lines or not 0.0 < self.radius < LARGEST:
            raise broken("a row map has lines, and a positive radius")
        object.__setattr__(self, "bounds", tuple(map(_bound, self.lines)))
        plain = {place for place, line in enumerate(self.lines) if not line.derived}
        for line, bound in zip(self.lines, self.bounds, strict=True):
            if bound > EXACT:
                raise broken("a line of a row map is too large to be exact")
            if not line.derived:
                if line.kind != "one" and not 0 <= line.source < len(self.levels):
                    raise broken("a line has no source column")
            elif not {line.source, line.other if line.kind == "product" else line.source} <= plain:
                raise broken("a derived line is made from lines that are cells")
            elif line.kind == "product" and self.bounds[line.source] * self.bounds[line.other] > EXACT:
                raise broken("a product is too large to be exact")
        if self.transform is not None:
            self._check_transform(self.transform)

    def _check_transform(self, transform: tuple[tuple[int, ...], ...]) -> None:
        """In Python's integers: whatever is added up in whatever order stays below 2^53."""
        if not transform:
            raise broken("a transform has a row")
        for row in transform:
            if len(row) != len(self.lines) or any(type(x) is not int for x in row):
                raise broken("a transform is a matrix of whole numbers, one for each line")
            if max(map(abs, row)) > EXACT or sum(map(int.__mul__, map(abs, row), self.bounds)) > EXACT:
                raise broken("a transform is too large to be exact")

    @property
    def width(self) -> int:
        """The length of u."""
        return len(self.lines if self.transform is None else self.transform)

    @cached_property
    def matrix(self) -> Floats | None:
        """T."""
        return None if self.transform is None else np.array(self.transform, np.float64)


def _bound(line: Line) -> int:
    constants = np.array([line.low, line.high, line.centre])
    scaled = max(abs(line.scale), abs(line.unit)) < LARGEST
    if not (scaled and np.isfinite(constants).all() and line.low <= line.high and line.degree <= 64):
        raise broken("a line has finite constants, and an interval")
    ends = {"one": (1.0, 1.0), "level": (0.0, 1.0)}.get(line.kind, (line.low, line.high))
    with np.errstate(all="ignore"):  # what is too large is refused
        found = np.abs(line.affine(np.array(ends))).max()
    return max(int(found) if found <= EXACT else EXACT + 1, abs(line.absent))


def encode(rowmap: RowMap, cells: Sequence[Floats], v: Floats, seen: Integers) -> Mask | None:
    """Fill v (lines × rows) from source columns; which rows lack a cell, None if none does.

    NaN is missing, and so is what is infinite; a number that is no level of its column is unknown. `seen`
    counts cells for the curator: clamped, missing, unknown.

    Proof: proofs/core.md#core-encoding.
    """
    bad = [
        _lost_levels(cell, count, seen) if count else None
        for cell, count in zip(cells, rowmap.levels, strict=True)
    ]
    for line, out in zip(rowmap.lines, v, strict=True):
        if line.kind == "one":
            out[:] = 1.0
            line.affine(out)
        elif not line.derived:
            cell = cells[line.source]
            if line.kind == "level":
                np.equal(cell, line.level, out=out)
                line.affine(out)
            elif not _number(line, cell, out) and bad[line.source] is None:
                bad[line.source] = _lost_numbers(line, cell, seen)
            if (lost := bad[line.source]) is not None:
                out[lost] = line.absent
    for line, out in zip(rowmap.lines, v, strict=True):
        if line.kind == "product":
            np.multiply(v[line.source], v[line.other], out=out)
            line.affine(out)
        elif line.kind == "legendre":
            out[:] = _legendre(line.degree, v[line.source] * line.unit)
            line.affine(out)
    found = [one for one in bad if one is not None]
    if not found or not rowmap.drop:
        return None
    every: Mask = np.logical_or.reduce(found)
    return every


def usable(rowmap: RowMap, cells: Sequence[Floats], rows: int) -> Mask:
    """Which rows count, as far as their own cells decide it: all of them unless rows are dropped."""
    kept = np.ones(rows, np.bool_)
    if rowmap.drop:
        with np.errstate(all="ignore"):  # a warning would depend on one row
            for cell, count in zip(cells, rowmap.levels, strict=True):
                kept &= _known(cell, count) if count else np.isfinite(cell)
    return kept


def _known(cell: Floats, count: int) -> Mask:
    found: Mask = (cell >= 0.0) & (cell < count) & (np.floor(cell) == cell)
    return found


def _number(line: Line, cell: Floats, out: Floats) -> bool:
    """The numbers of one column; whether all cells lie within its ends: to clamp them changes nothing."""
    inside = bool(len(cell)) and bool(cell.min() >= line.low and cell.max() <= line.high)
    if inside:
        np.subtract(cell, line.centre, out=out)
        np.multiply(out, line.scale, out=out)
        np.rint(out, out=out)
    else:
        np.copyto(out, cell)
        line.affine(out)
    return inside


def _lost_numbers(line: Line, cell: Floats, seen: Integers) -> Mask | None:
    """Which cells are no numbers."""
    lost = ~np.isfinite(cell)
    missing = int(np.count_nonzero(lost))
    seen[CLAMPED] += int(np.count_nonzero((cell < line.low) | (cell > line.high)))
    seen[CLAMPED] -= int(np.count_nonzero(np.isinf(cell)))
    seen[MISSING] += missing
    return lost if missing else None


def _lost_levels(cell: Floats, count: int, seen: Integers) -> Mask | None:
    """Which cells are the number of no level of their column."""
    known = _known(cell, count)
    if known.all():
        return None
    lost = ~known
    missing = int(np.count_nonzero(~np.isfinite(cell)))
    seen[MISSING] += missing
    seen[UNKNOWN] += int(np.count_nonzero(lost)) - missing
    return lost


def _legendre(degree: int, z: Floats) -> Floats:
    """P_degree(z) by (m+1) P_{m+1} = (2m+1) z P_m − m P_{m−1}."""
    before, now = np.ones_like(z), z
    for m in range(1, degree):
        before, now = now, ((2 * m + 1) * z * now - m * before) / (m + 1)
    return now

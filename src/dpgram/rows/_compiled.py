"""The kernel as compiled loops: for tables with so many cells that compiling pays.

A chunk holds its rows by columns (one contiguous line of numbers for each column), so that every loop below
runs over neighbouring numbers and the compiler can use the whole width of the machine's registers. Each value
depends on its own row only, by a fixed sequence of IEEE operations (no fast-math), so neither the chunk size
nor the place of a row in it can change a bit. Why this form: docs/adr/0002-fused-kernel.md.
`dpgram.rows._vectorised` does the same operations in the same order: a change here is a change there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

import numba
import numpy as np
from numba.core import event

from dpgram.document.reach import BEYOND, REACH_SQUARES, WITHIN
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows.kernel import (
    BOOLEAN,
    CENTRE,
    CLAMPED,
    CLIPPED,
    COMPILING,
    DEGREE,
    FNV_PRIME,
    FNV_START,
    GOLDEN,
    HIGH,
    INVERSE_HALF_WIDTH,
    KIND,
    LATTICE_SCALE,
    LEFT,
    LEFT_LINE,
    LOST_ABOVE,
    LOST_BELOW,
    LOST_MISSING,
    LOST_UNREADABLE,
    LOW,
    MISSING,
    MIX_FIRST,
    MIX_SECOND,
    NODES,
    NUMBER,
    RESULT,
    RIGHT,
    RIGHT_LINE,
    SIZE,
    STEPS,
    TARGET,
    UNKNOWN,
    Bytes,
    Floats,
    Hashes,
    Integers,
)
from dpgram.schema.encodings import UNKNOWN_CODE

_P = ParamSpec("_P")
_R = TypeVar("_R")

_TILE: Final = (
    1_000  # rows worked on at a time: a line of them, its source and its sums fit the nearest cache
)
_LIMIT: Final = float(ROW_NORM_SQUARED)
_NORM: Final = float(ROW_NORM)
_LATER: Final = False  # lines are not rounded as they are filled
_CLIPS: Final = True
_RUN: Final = 128  # cells whose places in histograms are found at a time: vectors are full, the cache is not
_NODE_FROM: Final = 30  # bits of a place in a histogram below the number of its node
_NODE_MASK: Final = (1 << 5) - 1
_PLACES: Final = NODES + 1  # nodes, and one for what lies elsewhere
_ELSEWHERE: Final = float(NODES)
_ROWS_FROM: Final = 48  # bits of a sum of places below the number of rows: 1,000 · 17 · 2^30 < 2^48
_ONE_ROW: Final = 1 << _ROWS_FROM


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Compile on first use, to run without the interpreter's lock; keep the code on disk where that works."""
    try:
        quick: Callable[_P, _R] = numba.njit(cache=True, nogil=True)(function)
    except RuntimeError:  # neither the package's folder nor the user's cache folder can be written
        quick = numba.njit(nogil=True)(function)
        COMPILING.kept = False
    return quick


class _Listener(event.Listener):  # type: ignore[misc]  # numba has no types
    """Tells while one of our functions is compiled; nothing is said where its code is found on disk."""

    def on_start(self, event: Any) -> None:
        COMPILING.started += _is_ours(event)

    def on_end(self, event: Any) -> None:
        COMPILING.ended += _is_ours(event)


def _is_ours(event: Any) -> bool:
    function = getattr(event.data.get("dispatcher"), "py_func", None)
    return getattr(function, "__module__", None) == __name__


event.register("numba:compile", _Listener())


@compiled
def _transpose(rows: Floats, raw: Floats) -> None:
    """raw = rowsᵀ, eight rows at a time: reads go along the rows, each write fills a cache line."""
    count, width = rows.shape
    even = count - count % 8
    for first in range(0, even, 8):
        r0, r1, r2, r3 = rows[first], rows[first + 1], rows[first + 2], rows[first + 3]
        r4, r5, r6, r7 = rows[first + 4], rows[first + 5], rows[first + 6], rows[first + 7]
        for j in range(width):
            line = raw[j, first : first + 8]
            line[0], line[1], line[2], line[3] = r0[j], r1[j], r2[j], r3[j]
            line[4], line[5], line[6], line[7] = r4[j], r5[j], r6[j], r7[j]
    for i in range(even, count):
        for j in range(width):
            raw[j, i] = rows[i, j]


@compiled
def _set(line: Floats, value: float) -> None:
    for i in range(line.shape[0]):
        line[i] = value


@compiled
def _numbers(x: Floats, scale: Floats, missing: Bytes, counts: Integers, a: Floats) -> None:
    """a = step · (clamp(x) − centre) / half_width; 0 where x is not finite."""
    low, high, centre, inverse, step = (
        scale[LOW],
        scale[HIGH],
        scale[CENTRE],
        scale[INVERSE_HALF_WIDTH],
        scale[LATTICE_SCALE],
    )
    moved = 0
    for i in range(x.shape[0]):
        y = max(low, x[i])  # a NaN fails every comparison, so it is moved too
        y = min(high, y)
        moved += y != x[i]
        a[i] = (y - centre) * inverse * step
    if moved == 0:
        return
    lost = 0
    for i in range(x.shape[0]):
        lost += x[i] - x[i] != 0.0  # NaN or ±inf
    counts[CLAMPED] += moved - lost
    if lost == 0:
        return
    counts[MISSING] += lost
    for i in range(x.shape[0]):
        if x[i] - x[i] != 0.0:
            a[i] = 0.0
            missing[i] = 1


@compiled
def _truths(x: Floats, step: float, missing: Bytes, counts: Integers, a: Floats) -> None:
    """a = +step for 1, −step for 0, and 0 for anything else."""
    for i in range(x.shape[0]):
        if x[i] == 1.0:
            a[i] = step
        elif x[i] == 0.0:
            a[i] = -step
        else:
            a[i] = 0.0
            missing[i] = 1
            counts[MISSING if x[i] - x[i] != 0.0 else UNKNOWN] += 1


@compiled
def _levels(
    x: Floats,
    step: float,
    missing: Bytes,
    counts: Integers,
    out: Floats,
    target: int,
    levels: int,
    first: int,
) -> None:
    """a[level] = step where the row has the level, else 0; step/levels everywhere where it has none."""
    for level in range(target, target + levels):
        _set(out[level, first : first + x.shape[0]], 0.0)
    for i in range(x.shape[0]):
        if x[i] >= 0.0:
            out[target + int(x[i]), first + i] = step
        else:
            missing[i] = 1
            counts[UNKNOWN if x[i] == UNKNOWN_CODE else MISSING] += 1
            for level in range(target, target + levels):
                out[level, first + i] = step / levels


@compiled
def _product(
    left: Floats, right: Floats, unit_left: float, unit_right: float, step: float, a: Floats
) -> None:
    """a = step · z_left · z_right."""
    for i in range(a.shape[0]):
        z = (left[i] * unit_left) * (right[i] * unit_right)
        z = max(-1.0, z)
        z = min(1.0, z)
        a[i] = step * z


@compiled
def _legendre(factor: Floats, unit: float, degree: int, step: float, a: Floats) -> None:
    """a = step · P_degree(z) by (m+1) P_{m+1} = (2m+1) z P_m − m P_{m−1}."""
    for i in range(a.shape[0]):
        z = factor[i] * unit
        before, now = 1.0, z
        for m in range(1, degree):
            before, now = now, ((2 * m + 1) * z * now - m * before) / (m + 1)
        now = max(-1.0, now)
        now = min(1.0, now)
        a[i] = step * now


@compiled
def _add_squares(a: Floats, total: Floats) -> None:
    for i in range(a.shape[0]):
        total[i] += a[i] * a[i]


@compiled
def _scale(a: Floats, factor: Floats) -> None:
    for i in range(a.shape[0]):
        a[i] *= factor[i]


@compiled
def _multiply(a: Floats, scale: float) -> None:
    for i in range(a.shape[0]):
        a[i] *= scale


@compiled
def _add_rounded_squares(a: Floats, total: Floats) -> None:
    for i in range(a.shape[0]):
        q = np.rint(a[i])
        total[i] += q * q


@compiled
def _round(a: Floats) -> None:
    for i in range(a.shape[0]):
        a[i] = np.rint(a[i])


@compiled
def _round_or_truncate(a: Floats, over: Bytes) -> None:
    for i in range(a.shape[0]):
        rounded, truncated = np.rint(a[i]), np.trunc(a[i])
        a[i] = truncated if over[i] else rounded


@compiled
def _shorten(out: Floats, row: int, limit: float) -> None:
    """Take single units off the largest cells until |q|² ≤ limit: needed after rounding errors only."""
    width = out.shape[0]
    total = 0.0
    for j in range(width):
        total += out[j, row] * out[j, row]
    while total > limit:
        largest = 0
        for j in range(1, width):
            if abs(out[j, row]) > abs(out[largest, row]):
                largest = j
        total -= 2.0 * abs(out[largest, row]) - 1.0
        out[largest, row] -= np.sign(out[largest, row])


@compiled
def _factors(
    norms: Floats, clip: bool, units: Integers, weights: Floats, left_out: Bytes, counts: Integers
) -> None:
    """|a|² → min(1, 2^15/|a|) for each row where `clip`, times 1/√m for one of m rows, times its weight."""
    for i in range(norms.shape[0]):
        over = clip and norms[i] > _LIMIT
        counts[CLIPPED] += over and not left_out[i]
        norms[i] = _NORM / np.sqrt(norms[i]) if over else 1.0
    for i in range(units.shape[0]):
        norms[i] /= np.sqrt(np.float64(units[i]))
    for i in range(weights.shape[0]):
        norms[i] *= weights[i]


@compiled
def _flag(norms: Floats, units: Integers, limit: int, over: Bytes) -> int:
    """Flag the rows whose squared norm passes their limit; gives how many they are."""
    count = 0
    for i in range(norms.shape[0]):
        over[i] = norms[i] > (float(limit // units[i]) if units.shape[0] else float(limit))
        count += over[i]
    return count


@compiled
def _round_within(
    out: Floats,
    first: int,
    last: int,
    factor: Floats,
    units: Integers,
    limit: int,
    norms: Floats,
    over: Bytes,
) -> None:
    """Scale by `factor` unless it is empty; round to integers, truncate the rows that would be too long.

    In the end |q|² ≤ limit, or ⌊limit/m⌋ for one of m rows of a unit. Rows must come in with |a|² within
    rounding errors of that.

    Proof: proofs/adassp.md#adassp-lattice.
    """
    _set(norms, 0.0)
    for j in range(out.shape[0]):
        a = out[j, first:last]
        if factor.shape[0]:
            _scale(a, factor)
        _add_rounded_squares(a, norms)
    if _flag(norms, units, limit, over) == 0:
        for j in range(out.shape[0]):
            _round(out[j, first:last])
        return
    _set(norms, 0.0)
    for j in range(out.shape[0]):
        a = out[j, first:last]
        _round_or_truncate(a, over)
        _add_squares(a, norms)
    if _flag(norms, units, limit, over) == 0:
        return
    for i in range(norms.shape[0]):
        if over[i]:
            _shorten(out, first + i, float(limit // units[i]) if units.shape[0] else float(limit))


@compiled
def _scale_and_round(a: Floats, factor: Floats, out: Floats, total: Floats) -> None:
    for i in range(a.shape[0]):
        q = np.rint(a[i] * factor[i])
        out[i] = q
        total[i] += q * q


@compiled
def _round_into(
    lines: Floats,
    out: Floats,
    first: int,
    last: int,
    factor: Floats,
    units: Integers,
    norms: Floats,
    over: Bytes,
) -> None:
    """As `_round_within`, from `lines` into `out`: one way through the numbers, and back for long rows only.

    Proof: proofs/adassp.md#adassp-lattice.
    """
    _set(norms, 0.0)
    width = lines.shape[0]
    for j in range(width):
        _scale_and_round(lines[j, first:last], factor, out[j, first:last], norms)
    if _flag(norms, units, ROW_NORM_SQUARED, over) == 0:
        return
    for i in range(norms.shape[0]):
        if over[i]:
            row, total = first + i, 0.0
            limit = float(ROW_NORM_SQUARED // units[i]) if units.shape[0] else _LIMIT
            for j in range(width):
                out[j, row] = np.trunc(lines[j, row] * factor[i])
                total += out[j, row] * out[j, row]
            if total > limit:
                _shorten(out, row, limit)


@compiled
def round_lines(lines: Floats, factor: Floats, limit: int) -> None:
    """See `Kernel.round_lines`.

    Proof: proofs/adassp.md#adassp-lattice.
    """
    norms, over, no_units = np.empty(_TILE), np.empty(_TILE, np.uint8), np.empty(0, np.int64)
    for first in range(0, lines.shape[1], _TILE):
        last = min(first + _TILE, lines.shape[1])
        size = last - first
        _round_within(lines, first, last, factor[first:last], no_units, limit, norms[:size], over[:size])


@compiled
def _fits(total: Floats) -> bool:
    largest = 0.0
    for i in range(total.shape[0]):
        largest = max(largest, total[i])
    return largest <= _LIMIT


@compiled
def _count(flags: Bytes) -> int:
    count = 0
    for i in range(flags.shape[0]):
        count += flags[i]
    return count


@compiled
def _keep(out: Floats, left_out: Bytes, first: int, kept: int) -> int:
    """Move the rows of a tile that begins at `first` to `kept`, without those left out; gives the new end."""
    end = kept
    for j in range(out.shape[0]):
        end = kept
        line = out[j]
        for i in range(left_out.shape[0]):
            if left_out[i] == 0:
                line[end] = line[first + i]
                end += 1
    return end


@compiled
def _keep_norms(norms: Floats, left_out: Bytes, first: int, kept: int) -> None:
    end = kept
    for i in range(left_out.shape[0]):
        if left_out[i] == 0:
            norms[end] = norms[first + i]
            end += 1


@compiled
def _fill(
    raw: Floats,
    start: int,
    sources: Integers,
    scales: Floats,
    constant: float,
    missing: Bytes,
    counts: Integers,
    out: Floats,
    first: int,
    last: int,
    quick: bool,
    norms: Floats,
) -> None:
    """a into places first … last−1 of the lines of `out`, from places start, start+1, … of those of `raw`.

    Squares are added to `norms` (unless it is empty) line by line, while each is near; if `quick`, lines are
    rounded before that.
    """
    if constant > 0.0:
        _set(out[0, first:last], constant)
        _note(out[0, first:last], quick, norms)
    for s in range(raw.shape[0]):
        x = raw[s, start : start + last - first]
        kind, target, size = sources[KIND, s], sources[TARGET, s], sources[SIZE, s]
        if kind == NUMBER:
            _numbers(x, scales[s], missing, counts, out[target, first:last])
        elif kind == BOOLEAN:
            _truths(x, scales[s, LATTICE_SCALE], missing, counts, out[target, first:last])
        else:
            _levels(x, scales[s, LATTICE_SCALE], missing, counts, out, target, size, first)
        for j in range(target, target + size):
            _note(out[j, first:last], quick, norms)


@compiled
def _note(a: Floats, quick: bool, norms: Floats) -> None:
    if quick:
        _round(a)
    if norms.shape[0]:
        _add_squares(a, norms)


@compiled
def _derive(
    scales: Floats,
    derived: Integers,
    steps: Floats,
    out: Floats,
    first: int,
    last: int,
    norms: Floats,
) -> None:
    """Products and polynomials of lines that are filled; squares are added after those of all other lines."""
    for k in range(derived.shape[1]):
        left, right = derived[LEFT, k], derived[RIGHT, k]
        z_left, unit_left = out[derived[LEFT_LINE, k], first:last], 1.0 / scales[left, LATTICE_SCALE]
        a = out[derived[RESULT, k], first:last]
        if right < 0:
            _legendre(z_left, unit_left, derived[DEGREE, k], steps[k], a)
        else:
            z_right, unit_right = out[derived[RIGHT_LINE, k], first:last], 1.0 / scales[right, LATTICE_SCALE]
            _product(z_left, z_right, unit_left, unit_right, steps[k], a)
        _note(a, _LATER, norms)


@compiled
def encode_rows(
    rows: Floats,
    raw: Floats,
    count: int,
    sources: Integers,
    scales: Floats,
    derived: Integers,
    steps: Floats,
    constant: float,
    clip: bool,
    drop: bool,
    units: Integers,
    weights: Floats,
    counts: Integers,
    out: Floats,
) -> int:
    missing, over, nothing = np.empty(_TILE, np.uint8), np.empty(_TILE, np.uint8), np.zeros(_TILE, np.uint8)
    first_norms, last_norms = np.empty(_TILE, np.float64), np.empty(_TILE, np.float64)
    uncounted = np.zeros_like(counts)
    scaled = clip or units.shape[0] > 0 or weights.shape[0] > 0
    # Where no row is scaled and no column needs another's value before rounding, one pass can do, unless a
    # row turns out too long; then it is likely that more will.
    quick = not scaled and derived.shape[1] == 0
    kept = 0
    for first in range(0, count, _TILE):
        last = min(first + _TILE, count)
        size = last - first
        absent, norms = missing[:size], first_norms[:size]
        for i in range(size):
            absent[i] = 0
            norms[i] = 0.0
        start = first
        if rows.shape[0]:
            _transpose(rows[first:last], raw)
            start = 0
        _fill(raw, start, sources, scales, constant, absent, counts, out, first, last, quick, norms)
        if quick and not _fits(norms):
            quick = False
            _fill(raw, start, sources, scales, constant, absent, uncounted, out, first, last, quick, norms)
        left_out = absent if drop else nothing[:size]
        if not quick:
            own = units[first:last]
            _derive(scales, derived, steps, out, first, last, norms)
            if scaled:
                _factors(norms, clip, own, weights[first:last], left_out, counts)
            factor = norms[: size if scaled else 0]
            _round_within(out, first, last, factor, own, ROW_NORM_SQUARED, last_norms[:size], over[:size])
        # Nothing moves unless a row is left out here, or was before, and there is a gap to close.
        whole = kept == first and _count(left_out) == 0
        kept = last if whole else _keep(out, left_out, first, kept)
    return kept


@compiled
def fill_rows(
    rows: Floats,
    raw: Floats,
    count: int,
    sources: Integers,
    scales: Floats,
    derived: Integers,
    steps: Floats,
    constant: float,
    whole: bool,
    missing: Bytes,
    counts: Integers,
    out: Floats,
) -> None:
    unused = np.empty(0, np.float64)
    at_once = whole and derived.shape[1] == 0
    for first in range(0, count, _TILE):
        last = min(first + _TILE, count)
        absent = missing[first:last]
        for i in range(last - first):
            absent[i] = 0
        start = first
        if rows.shape[0]:
            _transpose(rows[first:last], raw)
            start = 0
        _fill(raw, start, sources, scales, constant, absent, counts, out, first, last, at_once, unused)
        _derive(scales, derived, steps, out, first, last, unused)
        if whole and not at_once:
            for j in range(out.shape[0]):
                _round(out[j, first:last])


@compiled
def finish_rows(
    count: int,
    scale: float,
    drop: bool,
    units: Integers,
    weights: Floats,
    missing: Bytes,
    counts: Integers,
    norms: Floats,
    lines: Floats,
    out: Floats,
) -> int:
    """See `Kernel.finish_rows`. Proof: proofs/adaptive.md#adaptive-rows."""
    over, nothing = np.empty(_TILE, np.uint8), np.zeros(_TILE, np.uint8)
    factors, last_norms = np.empty(_TILE, np.float64), np.empty(_TILE, np.float64)
    kept = 0
    for first in range(0, count, _TILE):
        last = min(first + _TILE, count)
        size = last - first
        squares, factor, own = norms[first:last], factors[:size], units[first:last]
        left_out = missing[first:last] if drop else nothing[:size]
        _set(squares, 0.0)
        for j in range(lines.shape[0]):
            _add_squares(lines[j, first:last], squares)
        _multiply(squares, scale * scale)
        for i in range(size):
            factor[i] = squares[i]
        _factors(factor, _CLIPS, own, weights[first:last], left_out, counts)
        _multiply(factor, scale)
        _round_into(lines, out, first, last, factor, own, last_norms[:size], over[:size])
        if kept < first or _count(left_out):
            _keep_norms(norms, left_out, first, kept)
            kept = _keep(out, left_out, first, kept)
        else:
            kept = last
    return kept


@compiled
def _count_node(x: float, one: int, low: float, high: float, factor: float, line: Integers) -> None:
    if low <= x <= high:
        position = (x * 0.5 - low * 0.5) * factor
        if not position < STEPS:
            position = float(STEPS)
        first = min(int(position), STEPS - 1)
        beyond = int(np.floor((position - first) * float(one)))
        line[first] += one - beyond
        line[first + 1] += beyond
    elif x - x != 0.0:  # NaN or ±inf
        line[NODES + (LOST_MISSING if x != x else LOST_UNREADABLE)] += one
    else:
        line[NODES + (LOST_BELOW if x < low else LOST_ABOVE)] += one


@compiled
def _find_places(x: Floats, low: Floats, high: Floats, factor: Floats, places: Integers) -> None:
    """⌊2^30·position⌋ of each number, as one row: its node in the bits from 2^30 on, what lies beyond below.

    What counts at the next node is the same as in `_count_node`, since 2^30 times a position is exact, and
    so is a position less its node. A position of 16 is the last node with nothing beyond.
    """
    for i in range(x.shape[0]):
        position = min((x[i] * 0.5 - low[i] * 0.5) * factor[i], float(STEPS))
        inside = (low[i] <= x[i]) & (x[i] <= high[i])
        places[i] = int((position if inside else _ELSEWHERE) * _LIMIT) + _ONE_ROW


@compiled
def _count_places(places: Integers, columns: Hashes, packed: Integers) -> None:
    """Add up places by column and node. Unsigned numbers: the compiler need not ask for negative ones."""
    for i in range(places.shape[0]):
        packed[columns[i] + np.uint64((places[i] >> _NODE_FROM) & _NODE_MASK)] += places[i]


@compiled
def _unpack(packed: Integers, line: Integers) -> None:
    """Add the sums of places of one column to its histogram, but for what lies elsewhere."""
    for node in range(NODES):
        rows, places = packed[node] >> _ROWS_FROM, packed[node] & (_ONE_ROW - 1)
        beyond = places - rows * node * ROW_NORM_SQUARED  # 0 at the last node
        line[node] += rows * ROW_NORM_SQUARED - beyond
        line[node + 1] += beyond


@compiled
def count_rows(rows: Floats, units: Integers, levels: Integers, ends: Floats, cells: Integers) -> None:
    """See `Kernel.count_rows`. Proof: proofs/adaptive.md#adaptive-histograms.

    Numbers are counted as they lie in memory, a few rows at a time; by columns what has levels or weights,
    and what lies elsewhere.
    """
    count, width = rows.shape
    # Nothing below looks whether an index is within its array.
    if levels.shape[0] != width or ends.shape[0] != width or cells.shape[0] != width:
        raise ValueError("every column has one histogram")
    alike, numbers, some = units.shape[0] == 0, levels.min() == 0, max(1, _RUN // width)
    low, high, factor = np.empty(some * width), np.empty(some * width), np.empty(some * width)
    columns, places = np.empty(some * width, np.uint64), np.empty(some * width, np.int64)
    for i in range(some * width):
        low[i], high[i], columns[i] = ends[i % width, 0], ends[i % width, 1], i % width * _PLACES
        factor[i] = STEPS / (high[i] * 0.5 - low[i] * 0.5)
    raw, packed = np.empty((width, _TILE)), np.zeros((width, _PLACES), np.int64)
    for start in range(0, count, _TILE):
        stop = min(start + _TILE, count)
        by_columns = not alike
        if alike and numbers:
            packed[:] = 0
            for first in range(start, stop, some):
                x = rows[first : min(first + some, stop)].reshape(-1)
                _find_places(x, low, high, factor, places)
                _count_places(places[: x.shape[0]], columns, packed.reshape(-1))
        for j in range(width):
            if levels[j] == 0:
                _unpack(packed[j], cells[j])
            by_columns |= levels[j] > 0 or packed[j, NODES] > 0
        if not by_columns:
            continue
        _transpose(rows[start:stop], raw)
        own = units[start:stop]
        for j in range(width):
            x = raw[j, : stop - start]
            if levels[j] > 0:
                _count_levels(x, own, levels[j], cells[j])
            elif not alike:
                for i in range(x.shape[0]):
                    _count_node(x[i], own[i], low[j], high[j], factor[j], cells[j])
            elif packed[j, NODES] > 0:
                for i in range(x.shape[0]):
                    if not low[j] <= x[i] <= high[j]:
                        _count_node(x[i], ROW_NORM_SQUARED, low[j], high[j], factor[j], cells[j])


@compiled
def _count_levels(x: Floats, units: Integers, levels: int, line: Integers) -> None:
    for i in range(x.shape[0]):
        one = units[i] if units.shape[0] else ROW_NORM_SQUARED
        if 0.0 <= x[i] < levels and np.floor(x[i]) == x[i]:
            line[int(x[i])] += one
        else:
            line[levels + (LOST_MISSING if x[i] != x[i] else LOST_UNREADABLE)] += one


@compiled
def clip_bins(lengths: Floats) -> Integers:
    """See `Kernel.clip_bins`. Proof: proofs/adaptive.md#adaptive-clip."""
    bins = np.empty(len(lengths), np.int64)
    for i in range(len(lengths)):
        if lengths[i] > 1.0:
            bins[i] = WITHIN + int(min((1.0 - 1.0 / lengths[i]) * BEYOND, BEYOND - 1.0))
        else:
            bins[i] = int(min(lengths[i] * WITHIN, WITHIN - 1.0))
    return bins


@compiled
def reach_bins(lengths: Floats) -> Integers:
    """See `Kernel.reach_bins`. Proof: proofs/adaptive.md#adaptive-clip."""
    bins = np.empty(len(lengths), np.int64)
    for i in range(len(lengths)):
        place = 0
        for end in REACH_SQUARES:
            place += lengths[i] >= end
        bins[i] = place
    return bins


@compiled
def _mix(value: np.uint64) -> np.uint64:
    value = value + GOLDEN
    value = (value ^ (value >> np.uint64(30))) * MIX_FIRST
    value = (value ^ (value >> np.uint64(27))) * MIX_SECOND
    return value ^ (value >> np.uint64(31))


@compiled
def text_hashes(places: Integers, letters: Bytes) -> Hashes:
    hashes = np.empty(len(places) - 1, np.uint64)
    for i in range(len(hashes)):
        value = FNV_START
        for j in range(places[i], places[i + 1]):
            value = (value ^ np.uint64(letters[j])) * FNV_PRIME
        hashes[i] = _mix(value)
    return hashes


@compiled
def row_hashes(seeds: Hashes, bits: Hashes) -> tuple[Hashes, Hashes]:
    first, second = np.empty(len(seeds), np.uint64), np.empty(len(seeds), np.uint64)
    for i in range(bits.shape[0]):
        one, two = seeds[i], _mix(seeds[i])
        for j in range(bits.shape[1]):
            one = _mix(one ^ bits[i, j])
            two = _mix(two + bits[i, j])
        first[i], second[i] = one, two
    return first, second

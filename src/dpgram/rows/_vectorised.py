"""The kernel in plain numpy: whole lines at a time, nothing to compile or to load.

Every function does the IEEE operations of its namesake in `dpgram.rows._compiled`, in the same order, and
squares are added line after line as there. A change here is a change there; tests/unit/test_kernel.py holds
both against each other, bit by bit. Where a loop says max(low, x), here is `np.where`: `np.maximum` would
keep a NaN, and may choose either of 0.0 and −0.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
import numpy.typing as npt

from dpgram.document.reach import BEYOND, REACH_SQUARES, WITHIN
from dpgram.lattice import ROW_NORM, ROW_NORM_SQUARED
from dpgram.rows.kernel import (
    BOOLEAN,
    CENTRE,
    CLAMPED,
    CLIPPED,
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

Mask = npt.NDArray[np.bool_]

_PIECE: Final = 4_000  # columns of lines rounded at a time: temporary lines stay near the processor
_FEW: Final = 32  # texts so few that Python's integers are faster than lines of one letter of each
_BITS: Final = (1 << 64) - 1


def _numbers(x: Floats, scale: Floats, missing: Mask, counts: Integers, a: Floats) -> None:
    """a = step · (clamp(x) − centre) / half_width; 0 where x is not finite."""
    low, high = scale[LOW], scale[HIGH]
    y = np.where(x > low, x, low)
    y = np.where(y < high, y, high)
    moved = np.count_nonzero(y != x)
    np.multiply((y - scale[CENTRE]) * scale[INVERSE_HALF_WIDTH], scale[LATTICE_SCALE], out=a)
    if moved == 0:
        return
    lost = ~np.isfinite(x)
    counts[CLAMPED] += moved - np.count_nonzero(lost)
    counts[MISSING] += np.count_nonzero(lost)
    a[lost] = 0.0
    missing |= lost


def _truths(x: Floats, step: float, missing: Mask, counts: Integers, a: Floats) -> None:
    """a = +step for 1, −step for 0, and 0 for anything else."""
    yes, no = x == 1.0, x == 0.0
    a[:] = np.where(yes, step, np.where(no, -step, 0.0))
    neither = ~(yes | no)
    lost = ~np.isfinite(x)
    counts[MISSING] += np.count_nonzero(lost)
    counts[UNKNOWN] += np.count_nonzero(neither) - np.count_nonzero(lost)
    missing |= neither


def _levels(x: Floats, step: float, missing: Mask, counts: Integers, lines: Floats) -> None:
    """a[level] = step where the row has the level, else 0; step/levels everywhere where it has none."""
    lines[:] = 0.0
    there = x >= 0.0
    (places,) = np.nonzero(there)
    lines[x[places].astype(np.int64), places] = step
    if len(places) == len(x):
        return
    absent = ~there
    unknown = np.count_nonzero(x == UNKNOWN_CODE)
    counts[UNKNOWN] += unknown
    counts[MISSING] += np.count_nonzero(absent) - unknown
    lines[:, absent] = step / len(lines)
    missing |= absent


def _within_one(z: Floats) -> Floats:
    z = np.where(z > -1.0, z, -1.0)
    return np.where(z < 1.0, z, 1.0)


def _product(
    left: Floats, right: Floats, unit_left: float, unit_right: float, step: float, a: Floats
) -> None:
    """a = step · z_left · z_right."""
    np.multiply(step, _within_one((left * unit_left) * (right * unit_right)), out=a)


def _legendre(factor: Floats, unit: float, degree: int, step: float, a: Floats) -> None:
    """a = step · P_degree(z) by (m+1) P_{m+1} = (2m+1) z P_m − m P_{m−1}."""
    z = factor * unit
    before, now = np.ones_like(z), z
    for m in range(1, degree):
        before, now = now, ((2 * m + 1) * z * now - m * before) / (m + 1)
    np.multiply(step, _within_one(now), out=a)


def _squares(lines: Floats) -> Floats:
    """Σ a² of each row, added up line after line."""
    total = np.zeros(lines.shape[1])
    for line in lines:
        total += line * line
    return total


def _fill(
    raw: Floats,
    sources: Integers,
    scales: Floats,
    constant: float,
    missing: Mask,
    counts: Integers,
    out: Floats,
) -> Iterator[int]:
    """The lines that come from source cells; gives the places of those filled, one after the other."""
    if constant > 0.0:
        out[0] = constant
        yield 0
    for x, scale, kind, target, size in zip(
        raw, scales, sources[KIND], sources[TARGET].tolist(), sources[SIZE].tolist(), strict=True
    ):
        if kind == NUMBER:
            _numbers(x, scale, missing, counts, out[target])
        elif kind == BOOLEAN:
            _truths(x, scale[LATTICE_SCALE], missing, counts, out[target])
        else:
            _levels(x, scale[LATTICE_SCALE], missing, counts, out[target : target + size])
        yield from range(target, target + size)


def _derive(scales: Floats, derived: Integers, steps: Floats, out: Floats) -> Iterator[int]:
    """Products and polynomials of lines that are filled; gives the places of those filled now."""
    facts = derived[[LEFT, RIGHT, DEGREE, RESULT, LEFT_LINE, RIGHT_LINE]].T.tolist()
    for (left, right, degree, result, left_line, right_line), step in zip(facts, steps, strict=True):
        z_left, unit_left = out[left_line], 1.0 / scales[left, LATTICE_SCALE]
        if right < 0:
            _legendre(z_left, unit_left, degree, step, out[result])
        else:
            z_right, unit_right = out[right_line], 1.0 / scales[right, LATTICE_SCALE]
            _product(z_left, z_right, unit_left, unit_right, step, out[result])
        yield result


def _factors(
    norms: Floats, clip: bool, units: Integers, weights: Floats, left_out: Mask, counts: Integers
) -> Floats:
    """min(1, 2^15/|a|) for each row where `clip`, times 1/√m for one of m rows, times its weight."""
    factor = np.ones(len(norms))
    if clip:
        over = norms > float(ROW_NORM_SQUARED)
        counts[CLIPPED] += np.count_nonzero(over & ~left_out)
        np.divide(float(ROW_NORM), np.sqrt(norms), out=factor, where=over)
    if len(units):
        factor /= np.sqrt(units.astype(np.float64))
    if len(weights):
        factor *= weights
    return factor


def _round_within(lines: Floats, factor: Floats, limits: Floats) -> None:
    """Scale by `factor` unless it is empty; round to integers, truncate the rows that would be too long.

    In the end |q|² ≤ limit. Rows must come in with |a|² within rounding errors of that.

    Proof: proofs/adassp.md#adassp-lattice.
    """
    if len(factor):
        lines *= factor
    rounded = np.rint(lines)
    (over,) = np.nonzero(_squares(rounded) > limits)
    if len(over):
        truncated = np.trunc(lines[:, over])
        for place in np.flatnonzero(_squares(truncated) > limits[over]):
            _shorten(truncated[:, place], limits[over[place]])
        rounded[:, over] = truncated
    lines[:] = rounded


def _shorten(row: Floats, limit: float) -> None:
    """Take single units off the largest cells until |q|² ≤ limit: needed after rounding errors only."""
    total = float((row * row).sum())
    while total > limit:
        largest = np.argmax(np.abs(row))
        total -= 2.0 * abs(row[largest]) - 1.0
        row[largest] -= np.sign(row[largest])


def round_lines(lines: Floats, factor: Floats, limit: int) -> None:
    """See `Kernel.round_lines`.

    Proof: proofs/adassp.md#adassp-lattice.
    """
    with np.errstate(all="ignore"):  # a warning would tell of one row
        for first in range(0, lines.shape[1], _PIECE):
            piece = lines[:, first : first + _PIECE]
            _round_within(piece, factor[first : first + _PIECE], np.full(piece.shape[1], float(limit)))


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
    cells, lines = raw[:, :count], out[:, :count]
    if len(rows):
        cells[:] = rows[:count].T
    missing = np.zeros(count, np.bool_)
    norms = np.zeros(count)
    with np.errstate(all="ignore"):  # a warning would tell of one row
        for place in _fill(cells, sources, scales, constant, missing, counts, lines):
            norms += lines[place] * lines[place]
        for place in _derive(scales, derived, steps, lines):
            norms += lines[place] * lines[place]
        left_out = missing if drop else np.zeros(count, np.bool_)
        scaled = clip or len(units) > 0 or len(weights) > 0
        factor = _factors(norms, clip, units, weights, left_out, counts) if scaled else norms[:0]
        limits = ROW_NORM_SQUARED // units if len(units) else np.full(count, ROW_NORM_SQUARED)
        _round_within(lines, factor, limits.astype(np.float64))
    if not left_out.any():
        return count
    kept = count - int(np.count_nonzero(left_out))
    out[:, :kept] = lines[:, ~left_out]
    return kept


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
    cells, lines = raw[:, :count], out[:, :count]
    if len(rows):
        cells[:] = rows[:count].T
    absent = missing[:count].view(np.bool_)
    absent[:] = False
    with np.errstate(all="ignore"):  # a warning would tell of one row
        for _ in _fill(cells, sources, scales, constant, absent, counts, lines):
            pass
        for _ in _derive(scales, derived, steps, lines):
            pass
        if whole:
            np.rint(lines, out=lines)


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
    rows, squares = lines[:, :count].copy(), norms[:count]
    squares[:] = _squares(rows) * (scale * scale)
    left_out = missing[:count].view(np.bool_) if drop else np.zeros(count, np.bool_)
    with np.errstate(all="ignore"):  # a warning would tell of one row
        factor = _factors(squares, True, units, weights, left_out, counts) * scale  # noqa: FBT003  (as there)
        limits = ROW_NORM_SQUARED // units if len(units) else np.full(count, ROW_NORM_SQUARED)
        _round_within(rows, factor, limits.astype(np.float64))
    kept = count - int(np.count_nonzero(left_out))
    out[: len(rows), :kept] = rows[:, ~left_out]
    norms[:kept] = squares[~left_out]
    return kept


def count_rows(rows: Floats, units: Integers, levels: Integers, ends: Floats, cells: Integers) -> None:
    """See `Kernel.count_rows`. Proof: proofs/adaptive.md#adaptive-histograms."""
    if not rows.shape[1] == len(levels) == len(ends) == len(cells):
        raise ValueError("every column has one histogram")
    with np.errstate(all="ignore"):  # a warning would tell of one row
        for first in range(0, len(rows), _PIECE):
            weights = units[first : first + _PIECE].astype(np.float64)
            lines = np.ascontiguousarray(rows[first : first + _PIECE].T)
            for place, x in enumerate(lines):
                if levels[place]:
                    _count_levels(x, weights, int(levels[place]), cells[place])
                else:
                    _count_nodes(x, weights, ends[place, 0], ends[place, 1], cells[place])


def _count_levels(x: Floats, weights: Floats, levels: int, cells: Integers) -> None:
    known = (x >= 0.0) & (x < levels) & (np.floor(x) == x)
    lost = levels + np.where(np.isnan(x), LOST_MISSING, LOST_UNREADABLE)
    found = np.where(known, np.where(known, x, 0.0).astype(np.int64), lost)
    cells += _counted(found, weights, len(cells))


def _count_nodes(x: Floats, weights: Floats, low: float, high: float, cells: Integers) -> None:
    """Halves of the bounds, so that these may lie at the end of the floats."""
    inside = (x >= low) & (x <= high)
    within, own = (x, weights) if inside.all() else (x[inside], weights[inside] if len(weights) else weights)
    position = (within * 0.5 - low * 0.5) * (STEPS / (high * 0.5 - low * 0.5))
    position = np.where(position < STEPS, position, float(STEPS))
    first = np.minimum(position.astype(np.int64), STEPS - 1)
    one = own if len(own) else float(ROW_NORM_SQUARED)
    beyond = np.bincount(first, np.floor((position - first) * one), minlength=STEPS).astype(np.int64)
    cells[:STEPS] += _counted(first, own, STEPS) - beyond
    cells[1:NODES] += beyond
    if len(within) < len(x):
        away, left = x[~inside], weights[~inside] if len(weights) else weights
        kind = np.where(away < low, LOST_BELOW, np.where(away > high, LOST_ABOVE, LOST_MISSING))
        kind = np.where(np.isinf(away), LOST_UNREADABLE, kind)
        cells[NODES:] += _counted(kind, left, len(cells) - NODES)


def _counted(places: Integers, weights: Floats, size: int) -> Integers:
    if len(weights):
        return np.bincount(places, weights, minlength=size).astype(np.int64)
    return np.bincount(places, minlength=size) * ROW_NORM_SQUARED


def clip_bins(lengths: Floats) -> Integers:
    """See `Kernel.clip_bins`. Proof: proofs/adaptive.md#adaptive-clip."""
    bins = np.minimum(lengths * WITHIN, WITHIN - 1.0).astype(np.int64)
    (outside,) = np.nonzero(lengths > 1.0)
    lost = (1.0 - 1.0 / lengths[outside]) * BEYOND
    bins[outside] = WITHIN + np.minimum(lost, BEYOND - 1.0).astype(np.int64)
    return bins


def reach_bins(lengths: Floats) -> Integers:
    """See `Kernel.reach_bins`. Proof: proofs/adaptive.md#adaptive-clip."""
    return np.searchsorted(REACH_SQUARES, lengths, side="right").astype(np.int64)


def mixed(values: Hashes) -> Hashes:
    """A fixed permutation of 64 bits in which every input bit moves every output bit."""
    with np.errstate(over="ignore"):
        values = values + GOLDEN
        values = (values ^ (values >> np.uint64(30))) * MIX_FIRST
        values = (values ^ (values >> np.uint64(27))) * MIX_SECOND
    return values ^ (values >> np.uint64(31))


def text_hashes(places: Integers, letters: Bytes) -> Hashes:
    lengths = np.diff(places)
    order = np.argsort(-lengths, kind="stable")
    starts, lengths = places[:-1][order], lengths[order]
    values, shorter = np.full(len(order), FNV_START), -lengths
    place = 0
    # The longest texts come first: those that have a letter at this place are the first `longer` ones.
    while (longer := int(np.searchsorted(shorter, -place))) > _FEW:
        values[:longer] = (values[:longer] ^ letters[starts[:longer] + place]) * FNV_PRIME
        place += 1
    for text in range(longer):
        rest = letters[starts[text] + place : starts[text] + lengths[text]].tobytes()
        values[text] = _fnv(int(values[text]), rest)
    hashes = np.empty_like(values)
    hashes[order] = mixed(values)
    return hashes


def _fnv(value: int, letters: bytes) -> int:
    prime = int(FNV_PRIME)
    for letter in letters:
        value = ((value ^ letter) * prime) & _BITS
    return value


def row_hashes(seeds: Hashes, bits: Hashes) -> tuple[Hashes, Hashes]:
    one, two = seeds.copy(), mixed(seeds)
    with np.errstate(over="ignore"):
        for place in range(bits.shape[1]):
            line = np.ascontiguousarray(bits[:, place])
            one = mixed(one ^ line)
            two = mixed(two + line)
    return one, two

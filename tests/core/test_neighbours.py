"""Brute force: random row maps, tables of extreme cells, rows taken away, batches and orders changed.

Everything is compared in whole numbers: the bits of all other rows, and the bound of each row and unit.
"""

from __future__ import annotations

import numpy as np
import pytest

from dpgram.core import EXACT, SQUARE
from dpgram.core.encode import Line, RowMap
from dpgram.core.lattice import Work
from dpgram.errors import DpgramError

ODD = np.array(
    [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -5e-324, 2.2e-308, -0.0, 0.0, 1e16, 0.5, 1, 2]
)
ROWS = 40


def random_map(rng: np.random.Generator) -> RowMap | None:
    """Numbers and levels of up to five columns, products, polynomials, T up to the bound."""
    levels = tuple(int(rng.choice([0, 0, 3])) for _ in range(rng.integers(1, 6)))
    lines = [Line(kind="one", scale=2.0 ** rng.integers(0, 26))]
    for source, count in enumerate(levels):
        if count:
            scale = 2.0 ** rng.uniform(0, 26)
            lines += [
                Line(kind="level", source=source, level=level, scale=scale, centre=rng.random(), absent=7)
                for level in range(count)
            ]
            continue
        middle, half = rng.normal() * 10.0 ** rng.integers(-8, 9), 10.0 ** rng.uniform(-6, 6)
        half *= 1 + abs(middle) * 1e-6
        lines.append(
            Line(
                kind="number",
                source=source,
                low=middle - half,
                high=middle + half,
                centre=middle + rng.normal() * half * 10.0 ** rng.integers(-3, 2),
                scale=2.0 ** rng.uniform(0, 26) / half,
            )
        )
    plain = len(lines)
    for _ in range(rng.integers(0, 3)):
        one, other = map(int, rng.integers(0, plain, 2))
        most = 2.0 ** rng.integers(20, 50)
        lines.append(
            Line(kind="product", source=one, other=other, low=-most, high=most, scale=2.0**24 / most)
        )
    if rng.random() < 0.3:
        unit = 2.0 ** -rng.integers(10, 26)
        degree = int(rng.integers(2, 6))
        lines.append(
            Line(kind="legendre", source=0, degree=degree, unit=unit, low=-1.0, high=1.0, scale=2.0**20)
        )
    drop = bool(rng.integers(0, 2))
    try:
        base = RowMap(tuple(lines), levels, 2.0**20, None, drop)
        transform, top = None, 2.0**26
        if rng.random() < 0.6:
            transform, top = random_transform(rng, base.bounds), 2.0**52
        radius = max(1.0, top * 2.0 ** rng.uniform(-30, 1))
        return RowMap(base.lines, levels, radius, transform, drop)
    except DpgramError:  # what cannot be exact is refused
        return None


def random_transform(rng: np.random.Generator, bounds: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
    raw = rng.normal(size=(int(rng.integers(1, len(bounds) + 1)), len(bounds)))
    raw = np.tril(raw) if rng.random() < 0.5 else raw
    size = (np.abs(raw) * np.maximum(np.array(bounds, float), 1.0)).sum(axis=1).max()
    step = EXACT / size * (1.0 - 1e-9) * rng.choice([1.0, rng.random()])
    return tuple(tuple(int(x) for x in row) for row in np.trunc(raw * step))


def random_cells(rng: np.random.Generator, levels: tuple[int, ...], rows: int) -> np.ndarray:
    cells = rng.normal(size=(len(levels), rows)) * 10.0 ** rng.integers(-3, 6)
    kind = rng.random(cells.shape)
    cells = np.where(kind < 0.2, rng.choice(ODD, cells.shape), cells)
    whole = np.array([count > 0 for count in levels])[:, None] & (kind > 0.25)
    return np.where(whole, rng.integers(0, 3, cells.shape), cells)


def lattice_rows(
    rowmap: RowMap,
    cells: np.ndarray,
    sizes: np.ndarray | None,
    weights: np.ndarray | None,
    cuts: list[int],
) -> np.ndarray:
    """In blocks that end at `cuts`, all in the same memory."""
    work = Work(rowmap, max(cells.shape[1], 1))
    found = [np.empty((rowmap.width, 0))]
    for start, stop in zip([0, *cuts], [*cuts, cells.shape[1]], strict=True):
        if stop > start:
            part = slice(start, stop)
            out = np.empty((rowmap.width, stop - start))
            work.rows(
                [line[part] for line in cells],
                out,
                sizes=None if sizes is None else sizes[part],
                weights=None if weights is None else weights[part],
            )
            found.append(out)
    return np.concatenate(found, axis=1)


def take(each: np.ndarray | None, rows: np.ndarray) -> np.ndarray | None:
    return None if each is None else each[rows]


def exact_gram(q: np.ndarray) -> list[list[int]]:
    rows = [[int(x) for x in row] for row in q.T]
    return [[sum(row[i] * row[j] for row in rows) for j in range(len(q))] for i in range(len(q))]


def examine(rng: np.random.Generator) -> tuple[float, float]:
    """One map and one table; how near a row came to its limit, and a replaced unit to 2·2^60."""
    while (rowmap := random_map(rng)) is None:
        pass
    count = int(rng.integers(1, ROWS))
    cells = random_cells(rng, rowmap.levels, count)
    units = rng.integers(0, max(1, count // 3) + 1, count) if rng.random() < 0.5 else np.arange(count)
    sizes = np.bincount(units)[units] * int(rng.choice([1, 1, 1000, 10**6]))
    weights = np.sqrt(rng.choice([0, 1, 0.5, 1e-300, 0.3], count)) if rng.random() < 0.3 else None
    q = lattice_rows(rowmap, cells, sizes, weights, [])

    cuts = sorted(rng.integers(0, count + 1, rng.integers(0, 6)).tolist())
    again = lattice_rows(rowmap, cells, sizes, weights, cuts)
    assert again.tobytes() == q.tobytes(), "batches"
    kept = rng.permutation(np.flatnonzero(units != units[rng.integers(count)]))
    part = lattice_rows(rowmap, cells[:, kept], sizes[kept], take(weights, kept), [])
    assert part.tobytes() == np.ascontiguousarray(q[:, kept]).tobytes(), "a unit taken away, another order"
    beside = random_cells(rng, rowmap.levels, 17)
    padded = lattice_rows(
        rowmap,
        np.concatenate([beside, cells], axis=1),
        np.concatenate([np.ones(17, np.int64), sizes]),
        None if weights is None else np.concatenate([np.ones(17), weights]),
        [],
    )
    assert np.ascontiguousarray(padded[:, 17:]).tobytes() == q.tobytes(), "other rows in front"

    nearest = 0.0
    for row, size in zip(q.T, sizes.tolist(), strict=True):
        assert all(float(x).is_integer() for x in row)
        squared = sum(int(x) ** 2 for x in row)
        assert squared <= SQUARE // size
        nearest = max(nearest, squared * size / SQUARE)
    chosen = rng.choice(np.unique(units), 2)
    own, other = (exact_gram(q[:, units == unit]) for unit in chosen)
    assert sum(own[j][j] for j in range(len(q))) <= SQUARE
    assert sum(x * x for line in own for x in line) <= SQUARE**2
    moved = sum(
        (a - b) ** 2 for line, by in zip(own, other, strict=True) for a, b in zip(line, by, strict=True)
    )
    assert moved <= 2 * SQUARE**2
    return nearest, moved / (2 * SQUARE**2)


def run(trials: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    near, moved = zip(*(examine(rng) for _ in range(trials)), strict=True)
    assert max(near) > 0.999  # the bounds are reached, so that a looser one would be seen
    assert max(moved) > 0.5


def test_other_rows_keep_their_bits_and_every_row_its_bound() -> None:
    run(400, seed=1)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_pairs(seed: int) -> None:
    run(10_000, seed=100 + seed)

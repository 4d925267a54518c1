"""The lattice: exact coordinates, libraries that are refused, and the test of every row."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from dpgram.core import EXACT, NORM, SQUARE, lattice
from dpgram.core.encode import Line, RowMap
from dpgram.core.lattice import Work, check_linear_algebra, settle
from dpgram.errors import DpgramError


def wide_map(width: int, rng: np.random.Generator, radius: float = 1e9) -> RowMap:
    lines = tuple(
        Line(kind="number", source=j, low=-1.0, high=1.0, scale=2.0**20 - float(rng.integers(0, 2)))
        for j in range(width)
    )
    most = EXACT // (2**20 * width)
    raw = rng.integers(-most, most, (width, width), endpoint=True)
    return RowMap(lines, (0,) * width, radius, tuple(tuple(map(int, row)) for row in raw))


@pytest.mark.parametrize("width", [1, 3, 33, 70])
def test_coordinates_are_exact(width: int) -> None:
    """Near the bound, with odd digits: u = T v as in Python's integers."""
    rng = np.random.default_rng(width)
    rowmap = wide_map(width, rng)
    work, cells = Work(rowmap, 40), rng.choice([-1.0, 1.0, 0.1234567], (width, 40))
    work.rows(list(cells), np.empty((width, 40)))
    v = [[int(x) for x in column] for column in work._v.T]
    assert rowmap.transform is not None
    for place, row in enumerate(v):
        u = [sum(t * x for t, x in zip(line, row, strict=True)) for line in rowmap.transform]
        assert [int(x) for x in work._u[:, place]] == u


def test_rows_of_a_transform_that_are_zero() -> None:
    lines = tuple(Line(kind="number", source=j, scale=2.0**20) for j in range(9))
    unit = tuple(tuple(int(i == j) for j in range(9)) for i in range(8))
    rowmap = RowMap(lines, (0,) * 9, 2.0**20, (*unit, (0,) * 9, (0,) * 9))
    found = Work(rowmap, 1).rows([np.ones(1)] * 9, np.empty((10, 1)))
    assert found.squares.tolist() == [8 * 2.0**40]
    assert found.q[8:].tolist() == [[0.0], [0.0]]
    assert len(set(found.q[:8, 0])) == 1


def strassen(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """One step of Strassen's method, on matrices padded to an even size."""

    def even(x: np.ndarray) -> np.ndarray:
        return np.pad(x, [(0, size % 2) for size in x.shape])

    left, right = even(a), even(b)
    n, k, m = left.shape[0] // 2, left.shape[1] // 2, right.shape[1] // 2
    a11, a12, a21, a22 = left[:n, :k], left[:n, k:], left[n:, :k], left[n:, k:]
    b11, b12, b21, b22 = right[:k, :m], right[:k, m:], right[k:, :m], right[k:, m:]
    p1, p2, p3 = (a11 + a22) @ (b11 + b22), (a21 + a22) @ b11, a11 @ (b12 - b22)
    p4, p5 = a22 @ (b21 - b11), (a11 + a12) @ b22
    p6, p7 = (a21 - a11) @ (b11 + b12), (a12 - a22) @ (b21 + b22)
    whole = np.block([[p1 + p4 - p5 + p7, p3 + p5], [p2 + p4, p1 - p2 + p3 + p6]])
    return whole[: a.shape[0], : b.shape[1]]


def float32(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float64)


@pytest.mark.parametrize("library", [strassen, float32])
@pytest.mark.parametrize("width", [8, 22, 64, 256, 700])
def test_inexact_libraries_are_refused(
    library: Callable[[np.ndarray, np.ndarray], np.ndarray], width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_linear_algebra(width)
    monkeypatch.setattr(lattice, "product", library)
    lattice._exact.cache_clear()
    with pytest.raises(DpgramError, match="does not multiply whole numbers exactly"):
        check_linear_algebra(width)
    lattice._exact.cache_clear()


def test_a_row_that_fails_the_test_counts_nowhere() -> None:
    """What no row map can give: a row much longer than the lattice, and one that is no number."""
    rows = np.array([[3e4, 0.0], [3e4, 2.0**14], [np.nan, 1.0], [1e200, 0.0]]).T
    settle(rows, SQUARE)
    assert rows.T.tolist() == [[3e4, 0.0], [0.0, 0.0], [0.0, 0.0], [0.0, 0.0]]


def test_blocks_longer_than_a_piece() -> None:
    rng = np.random.default_rng(5)
    rows = rng.normal(0, NORM / 3, (4, 3 * lattice.PIECE + 7))
    rows *= np.minimum(1.0, NORM / np.linalg.norm(rows, axis=0))
    whole = rows.copy()
    settle(whole, SQUARE)
    for start in (0, 5, lattice.PIECE, 2 * lattice.PIECE + 1):
        part = rows[:, start : start + lattice.PIECE].copy()
        settle(part, SQUARE)
        assert np.array_equal(part, whole[:, start : start + lattice.PIECE])
    assert (np.square(whole).sum(axis=0) <= SQUARE).all()


def test_weights_and_sizes() -> None:
    rowmap = RowMap((Line(kind="number", high=4.0, scale=2.0**20, absent=2**20),), (0,), 2.0**22)
    work, out = Work(rowmap, 6), np.empty((1, 6))
    cells = [np.array([4.0, 4.0, 4.0, 1.0, 0.0, np.nan])]
    sizes, weights = np.array([1, 4, 2**31, 1, 1, 1]), np.array([0.5, 1.0, 1.0, 1.0, 1.0, 1.0])
    q, squares, lost = work.rows(cells, out, sizes=sizes, weights=weights)
    assert q.tolist() == [[NORM / 2, NORM / 2, 0.0, NORM / 4, 0.0, 0.0]]
    assert squares.tolist() == [2.0**44] * 3 + [2.0**40, 0.0, 2.0**40]
    assert lost is not None
    assert lost.tolist() == [False] * 5 + [True]


def test_a_third_of_a_unit_is_rounded_down() -> None:
    """A row that rounding puts onto the next whole number above 2^30/3: three of them would be too long."""
    whole = [18_606, 3_425, 9, 0]
    assert sum(x * x for x in whole) == -(-SQUARE // 3)
    lines = tuple(Line(kind="number", source=j, high=2.0**20) for j in range(4))
    rowmap = RowMap(lines, (0,) * 4, math.sqrt(SQUARE / 3))
    cells = [np.array([float(x)]) for x in whole]
    found = Work(rowmap, 1).rows(cells, np.empty((4, 1)), sizes=np.array([3])).q
    assert 0 < 3 * int((found**2).sum()) <= SQUARE


def test_a_row_alone_has_the_bits_that_it_has_among_others() -> None:
    """A sum that takes another order for a block of one row would move its clip."""
    rng = np.random.default_rng(7)
    rowmap = wide_map(40, rng, 2.0**30)
    cells = rng.uniform(-1.0, 1.0, (40, 300))
    work = Work(rowmap, 300)
    among = work.rows(list(cells), np.empty((40, 300)))
    squares = among.squares.copy()
    for place in range(300):
        alone = work.rows(list(cells[:, place : place + 1]), np.empty((40, 1)))
        assert alone.squares.tobytes() == squares[place : place + 1].tobytes()
        assert alone.q.tobytes() == np.ascontiguousarray(among.q[:, place]).tobytes()

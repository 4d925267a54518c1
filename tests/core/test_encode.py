"""Row maps: what is refused because its numbers could be inexact, and bounds that hold."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpgram.core import EXACT
from dpgram.core.encode import CLAMPED, MISSING, UNKNOWN, Line, RowMap, encode, usable
from dpgram.errors import DpgramError

ONE = Line(kind="one", scale=2.0**20)
NUMBER = Line(kind="number", low=-1.0, high=3.0, centre=1.0, scale=2.0**20)
LEVEL = Line(kind="level", source=1, level=2, scale=1000.0, absent=333)
LEVELS = (0, 3)


def made(*lines: Line, transform: tuple[tuple[int, ...], ...] | None = None, radius: float = 1e6) -> RowMap:
    return RowMap(lines, LEVELS, radius, transform)


@pytest.mark.parametrize(
    ("lines", "more"),
    [
        ((), {}),
        ((ONE,), {"radius": 0.0}),
        ((ONE,), {"radius": math.inf}),
        ((ONE,), {"radius": math.nan}),
        ((Line(kind="number", low=2.0, high=1.0),), {}),
        ((Line(kind="number", low=math.nan),), {}),
        ((Line(kind="number", high=math.inf),), {}),
        ((Line(kind="number", scale=2.0**1001),), {}),
        ((Line(kind="number", scale=2.0**54),), {}),
        ((Line(kind="number", centre=2.0**54),), {}),
        ((Line(kind="number", absent=2**53 + 1),), {}),
        ((Line(kind="number", source=2),), {}),
        ((Line(kind="number", source=-1),), {}),
        ((Line(kind="legendre", source=0, degree=65),), {}),
        ((NUMBER, Line(kind="product", source=0, other=1)), {}),  # of itself
        ((NUMBER, Line(kind="legendre", source=1, degree=2)), {}),
        ((NUMBER, Line(kind="product", source=0, other=7)), {}),
        ((Line(kind="one", scale=2.0**27), NUMBER, Line(kind="product", source=0, other=0)), {}),
        ((ONE, NUMBER), {"transform": ()}),
        ((ONE, NUMBER), {"transform": ((1,),)}),
        ((ONE, NUMBER), {"transform": ((1, 1.0),)}),
        ((ONE, NUMBER), {"transform": ((True, 1),)}),
        ((ONE, NUMBER), {"transform": ((2**32, 2**32),)}),
        ((Line(kind="one", scale=0.0), NUMBER), {"transform": ((2**53 + 1, 0),)}),
    ],
)
def test_no_map_is_accepted_whose_numbers_could_be_inexact(lines: tuple[Line, ...], more: dict) -> None:
    with pytest.raises(DpgramError, match="report"):
        made(*lines, **more)


def test_what_just_fits_is_accepted() -> None:
    most = EXACT // 2**20
    assert made(ONE, transform=((most,),)).width == 1
    assert made(Line(kind="one", scale=2.0**26), Line(kind="product", low=-1.0)).bounds == (2**26, 1)
    assert made(Line(kind="number", high=1.0, scale=float(EXACT))).bounds == (EXACT,)
    assert made(ONE, NUMBER).matrix is None


def test_lines_lie_within_their_bounds() -> None:
    """Random constants; cells at the ends, next to them, far beyond them and no numbers at all."""
    rng = np.random.default_rng(1)
    for _ in range(400):
        middle, half = rng.normal() * 10.0 ** rng.integers(-8, 9), 10.0 ** rng.uniform(-6, 6)
        low, high = middle - half, middle + half
        line = Line(
            kind="number",
            low=low,
            high=high,
            centre=middle + rng.normal() * half,
            scale=rng.choice([-1, 1]) * 2.0 ** rng.uniform(0, 26) / half,
            absent=int(rng.integers(-9, 9)),
        )
        edges = [low, high, np.nextafter(low, -np.inf), np.nextafter(high, np.inf), np.nextafter(high, low)]
        odd = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0, -0.0]
        cell = np.concatenate([edges, odd, rng.normal(middle, half, 30)])
        rowmap, v = RowMap((line,), (0,), 1.0), np.empty((1, len(cell)))
        lost = encode(rowmap, [cell], v, np.zeros(3, np.int64))
        assert lost is not None
        assert lost.tolist() == (~np.isfinite(cell)).tolist()
        assert (v[0][lost] == line.absent).all()
        assert (np.rint(v) == v).all()
        assert np.abs(v).max() <= rowmap.bounds[0]
        inside = cell[(cell >= low) & (cell <= high)]
        again = np.empty((1, len(inside)))
        assert encode(rowmap, [inside], again, np.zeros(3, np.int64)) is None
        assert again[0].tolist() == v[0][(cell >= low) & (cell <= high)].tolist()
        one = np.empty((1, 1))
        for place in range(8):
            encode(rowmap, [cell[place : place + 1]], one, np.zeros(3, np.int64))
            assert one[0, 0] == v[0, place]


def test_derived_lines() -> None:
    square = Line(kind="product", source=1, other=1, low=-(2.0**42), high=2.0**42, scale=2.0**-22)
    cubic = Line(kind="legendre", source=1, degree=3, unit=2.0**-21, low=-1.0, high=1.0, scale=1e6)
    rowmap = made(square, NUMBER, cubic)
    cell = np.array([-1.0, 0.0, 2.0, 3.0, np.nan])
    v = np.empty((3, 5))
    lost = encode(rowmap, [cell, np.zeros(5)], v, np.zeros(3, np.int64))
    z = np.array([-1.0, -0.5, 0.5, 1.0, 0.0])
    assert lost is not None
    assert lost.tolist() == [False] * 4 + [True]
    assert v[1].tolist() == (z * 2**21).tolist()
    assert v[0].tolist() == (z * z * 2**20).tolist()
    assert v[2].tolist() == np.rint((2.5 * z**3 - 1.5 * z) * 1e6).tolist()


def test_a_column_with_two_lines_is_counted_once() -> None:
    seen = np.zeros(3, np.int64)
    halves = made(NUMBER, Line(kind="number", high=0.5, absent=9))
    v = np.empty((2, 3))
    assert encode(halves, [np.array([0.25, np.nan, 2.0]), np.zeros(3)], v, seen) is not None
    assert v[1].tolist() == [0.0, 9.0, 0.0]
    assert seen.tolist() == [0, 1, 0]


def test_rows_that_can_be_used() -> None:
    cells = [np.array([0.0, np.nan, np.inf, 5.0]), np.array([0.0, 1.0, 2.0, 3.0])]
    assert usable(made(NUMBER, LEVEL), cells, 4).tolist() == [True, False, False, False]
    assert usable(RowMap((NUMBER, LEVEL), LEVELS, 1e6, drop=False), cells, 4).all()
    assert usable(RowMap((ONE,), (), 1e6), [], 4).tolist() == [True] * 4
    assert encode(made(NUMBER), [np.empty(0), np.empty(0)], np.empty((1, 0)), np.zeros(3, np.int64)) is None


def test_what_is_lost_is_counted_by_its_kind() -> None:
    seen = np.zeros(3, np.int64)
    v = np.empty((2, 7))
    cells = [np.array([0.0, 9.0, np.nan, np.inf, 1.0, 2.0, 3.0]), np.array([0.0, 1, 2, -1, np.nan, 1.5, 3])]
    lost = encode(made(NUMBER, LEVEL), cells, v, seen)
    assert lost is not None
    assert lost.tolist() == [False, False, True, True, True, True, True]
    assert v[1].tolist() == [0, 0, 1000, 333, 333, 333, 333]
    assert (seen[CLAMPED], seen[MISSING], seen[UNKNOWN]) == (1, 3, 3)
    kept = RowMap((NUMBER, LEVEL), LEVELS, 1e6, drop=False)
    assert encode(kept, cells, v, seen) is None

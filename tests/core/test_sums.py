"""Sums: exact up to the flush, refused beyond 64 bits, bounded for each unit whatever its weights."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from dpgram.core import NORM, SQUARE, sums
from dpgram.core.encode import Line, RowMap
from dpgram.core.sensitivity import absolute, is_matrix, squared
from dpgram.core.sums import (
    MOST_ROWS,
    Counts,
    EachGroup,
    Gram,
    GramAdder,
    Histograms,
    Lengths,
    LengthsAdder,
    Levels,
    Nodes,
    Sum,
    adders,
    array_of,
)
from dpgram.core.units import Block, Counting, PolicyCounts, Texts, text_hashes
from dpgram.errors import DpgramError

TWO = RowMap((Line(kind="one", scale=2.0**20), Line(kind="number", low=-1.0, scale=2.0**20)), (0,), 2.0**21)
ENDS = (0.25, 0.5, 1.0)
ALL: tuple[Sum, ...] = (
    Gram(TWO, (0,)),
    Lengths(TWO, (0,), ENDS),
    Histograms((Nodes(0, -1.0, 1.0), Nodes(1, levels=3))),
    Counts("rows", (0, 1)),
    Counts("octaves", (0,)),
    Counts("bins", (0,), ((-1.0, 1.0),), 8),
    Levels((0,), 5),
)


def block(rows: int, seed: int, *, units: bool = False, weights: bool = False, **more: object) -> Block:
    rng = np.random.default_rng(seed)
    x = rng.choice([np.nan, np.inf, -1.0, 1.0, 0.3, -7.0], rows)
    level = rng.choice([np.nan, -1.0, 0.0, 1.0, 2.0], rows)
    ids = rng.integers(0, max(1, rows // 4), rows)
    return Block(
        [x, level],
        rows,
        weights=np.where(rng.random(rows) < 0.1, np.nan, 1.5 * rng.random(rows)) if weights else None,
        counting=Counting(3) if units else None,
        units=np.unique(ids, return_inverse=True)[1] if units else None,
        unit_hashes=ids.astype(np.uint64) if units else None,
        texts=[Texts(rng.integers(-1, 4, rows), ["a", "b", "much too long", ""])],
        levelled=[1],
        **more,
    )


def found(what: Sum, rows: Block) -> list[np.ndarray | Counter[str]]:
    adder = what.adder()
    adder.add(rows)
    cells = [each for each, _ in adder.found()]
    return [each[0] if isinstance(each, tuple) else each for each in cells]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("units", [False, True])
@pytest.mark.parametrize("what", ALL, ids=lambda what: getattr(what, "kind", type(what).__name__))
def test_what_one_unit_adds_is_bounded(what: Sum, units: bool, weights: bool) -> None:
    """One unit alone: a matrix of trace at most 2^30, or at most 2^30 in each histogram."""
    for seed in range(60):
        whole = block(40, seed, units=units, weights=weights)
        own = np.flatnonzero(whole.units == 0) if units else np.array([seed % 40])
        assert whole.units is None or whole.unit_hashes is not None
        alone = Block(
            [line[own] for line in whole.cells],
            len(own),
            weights=None if whole.weights is None else np.where(whole.placed, whole.weights, np.nan)[own],
            counting=whole.counting,
            units=np.zeros(len(own), np.int64) if units else None,
            unit_hashes=whole.unit_hashes[own] if whole.unit_hashes is not None else None,
            texts=[Texts(one.codes[own], one.texts) for one in whole.texts],
            levelled=[1],
        )
        (cells,) = found(what, alone)
        if isinstance(cells, Counter):
            assert 0 <= sum(cells.values()) <= SQUARE
            assert "much too long" not in cells
        elif isinstance(what, Gram):
            assert np.linalg.eigvalsh(cells.astype(float)).min() >= -1e-3
            assert np.trace(cells) <= SQUARE
        else:
            assert (cells >= 0).all()
            assert (cells.sum(axis=1) <= SQUARE).all()


@pytest.mark.parametrize("what", ALL, ids=lambda what: getattr(what, "kind", type(what).__name__))
def test_a_unit_taken_away_takes_what_it_adds_alone(what: Sum) -> None:
    whole = block(60, 7, units=True)
    assert whole.units is not None
    assert whole.unit_hashes is not None

    def of(rows: np.ndarray) -> Block:
        assert whole.units is not None
        assert whole.unit_hashes is not None
        return Block(
            [line[rows] for line in whole.cells],
            len(rows),
            counting=whole.counting,
            units=np.unique(whole.units[rows], return_inverse=True)[1],
            unit_hashes=whole.unit_hashes[rows],
            texts=[Texts(one.codes[rows], one.texts) for one in whole.texts],
            levelled=[1],
        )

    for unit in range(whole.unit_count):
        (own,) = found(what, of(np.flatnonzero(whole.units == unit)))
        (rest,) = found(
            what, of(np.random.default_rng(unit).permutation(np.flatnonzero(whole.units != unit)))
        )
        (every,) = found(what, whole)
        if isinstance(every, Counter):
            assert isinstance(own, Counter)
            assert isinstance(rest, Counter)
            assert own + rest == every
        else:
            assert np.array_equal(own + rest, every)


def test_weighted_rows_count_less() -> None:
    rows = Block([np.ones(3)], 3, weights=np.array([1.0, 0.5, 0.0]))
    ((cells, _),) = _added(Gram(TWO, (0,)), rows)
    assert isinstance(cells, np.ndarray)
    assert cells[0, 0] == (NORM // 2) ** 2 + (NORM // 4) ** 2
    ((counted, _),) = _added(Counts("rows", (0,)), rows)
    assert isinstance(counted, np.ndarray)
    assert counted.tolist() == [[SQUARE + SQUARE // 4]]


def test_rows_that_count_alike_and_only_so_many() -> None:
    alike = Block(
        [np.ones(5)],
        5,
        counting=Counting(2, alike=True),
        units=np.zeros(5, np.int64),
        unit_hashes=np.zeros(5, np.uint64),
    )
    ((cells, seen),) = _added(Gram(TWO, (0,)), alike)
    assert isinstance(cells, np.ndarray)
    assert cells[0, 0] == 2 * round(NORM / math.sqrt(8)) ** 2  # of squared length 2^30/2, in two equal cells
    assert (seen.rows_used, seen.rows_over_unit_limit) == (2, 3)


def _added(what: Sum, rows: Block) -> tuple[sums.Found, ...]:
    adder = what.adder()
    adder.add(rows)
    return adder.found()


def test_float_sums_are_exact_up_to_the_flush(monkeypatch: pytest.MonkeyPatch) -> None:
    """The worst rows: so many that floats are full, and one more unit must not be lost."""
    monkeypatch.setattr(sums, "EXACT_ROWS", 1 << 12)
    flushes: list[float] = []
    honest = GramAdder._flush

    def flush(self: GramAdder) -> None:
        flushes.append(float(self._floats.max()))
        honest(self)

    monkeypatch.setattr(GramAdder, "_flush", flush)
    one = RowMap((Line(kind="number", scale=2.0**20),), (0,), 2.0**20)
    adder = Gram(one, (0,)).adder()
    full, light = Block([np.ones(4096)], 4096), Block([np.full(1, 1 / NORM)], 1)
    for _ in range(5):
        adder.add(full)
        adder.add(light)
    ((cells, seen),) = adder.found()
    assert isinstance(cells, np.ndarray)
    assert int(cells[0, 0]) == 5 * (4096 * SQUARE + 1)
    assert seen.rows_used == 5 * 4097
    assert max(flushes) <= 2.0**42
    assert len(flushes) > 5
    assert adder.found()[0][1] == seen  # asking again changes nothing


def test_what_is_not_whole_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    adder = Gram(TWO, (0,)).adder()
    adder.add(block(10, 1))
    adder._floats[0, 0, 0] += 0.5
    with pytest.raises(DpgramError, match="not whole"):
        adder.found()
    monkeypatch.setattr(sums, "product", lambda a, b: a @ b + 1.0)
    with pytest.raises(DpgramError, match="does not multiply whole numbers exactly"):
        Gram(TWO, (0,)).adder().add(block(10, 1))


def test_too_many_rows_are_refused() -> None:
    sums.check_rows(PolicyCounts(rows_used=MOST_ROWS))
    with pytest.raises(DpgramError, match="too many rows"):
        sums.check_rows(PolicyCounts(rows_used=MOST_ROWS + 1))


@pytest.mark.parametrize("units", [False, True])
def test_lengths_are_the_same_beside_a_matrix(units: bool) -> None:
    rows, what = block(300, 3, units=units, weights=True), (Gram(TWO, (0,)), Lengths(TWO, (0,), ENDS))
    together = adders(what)
    for adder in together:
        adder.add(rows)
    for adder, one in zip(together, what, strict=True):
        (expected,) = _added(one, rows)
        (same,) = adder.found()
        assert np.array_equal(array_of(same)[0], array_of(expected)[0])
        assert same[1] == expected[1]
    assert isinstance(together[1], LengthsAdder)
    others = adders((Gram(TWO, (0,), 2), Lengths(TWO, (0,), ENDS), Levels((0,), 5)))
    assert [type(one).__name__ for one in others] == ["GramAdder", "LengthsAdder", "LevelsAdder"]
    apart = adders((Gram(TWO, (0,)), Lengths(TWO, (1,), ENDS)))  # of other rows
    for adder in apart:
        adder.add(rows)
    (alone,) = _added(Lengths(TWO, (1,), ENDS), rows)
    assert array_of(apart[1].found()[0])[0].tolist() == array_of(alone)[0].tolist()


def test_groups_together_are_the_whole() -> None:
    groups = np.random.default_rng(1).integers(-1, 3, 200)
    rows = block(200, 5, units=True, groups=groups)
    each = EachGroup((Gram(TWO, (0,)), None, Gram(TWO, (0,))))
    by_group = [array_of(one)[0] for one in _added(Gram(TWO, (0,), 3), rows)]
    assert [array_of(one)[0].tolist() for one in _added(each, rows)] == [
        by_group[0].tolist(),
        by_group[2].tolist(),
    ]
    assert sum(int(np.trace(one)) for one in by_group) <= rows.unit_count * SQUARE
    with pytest.raises(DpgramError, match="no groups"):
        block(5, 1).of_group(0)


GROUPED: tuple[Sum, ...] = (
    Gram(replace(TWO, radius=2.0**20), (0,), 3),
    EachGroup(tuple(Gram(replace(TWO, radius=radius), (0,)) for radius in (2.0**18, 2.0**20, 2.0**19))),
    EachGroup((Histograms((Nodes(0, -1.0, 1.0), Nodes(1, levels=3))),) * 3),
)
"""Three groups: in one map, in maps of their own, and two histograms of each."""


@pytest.mark.parametrize("what", GROUPED, ids=["one map", "a map of each", "histograms"])
def test_a_unit_that_is_replaced_moves_all_groups_together_by_a_proven_amount(what: Sum) -> None:
    """Every unit by every other one, in whatever groups its rows are: the price is reached, not passed."""
    matrices, parts = isinstance(what, Gram) or is_matrix(what), []
    for seed in range(12):
        groups = np.random.default_rng(seed).integers(-1, 3, 40)
        whole = block(40, seed, units=True, weights=seed % 3 == 0, groups=groups)
        assert whole.units is not None
        assert whole.unit_hashes is not None
        for unit in range(whole.unit_count):
            own = np.flatnonzero(whole.units == unit)
            alone = Block(
                [line[own] for line in whole.cells],
                len(own),
                groups=groups[own],
                weights=None if whole.weights is None else whole.weights[own],
                counting=whole.counting,
                units=np.zeros(len(own), np.int64),
                unit_hashes=whole.unit_hashes[own],
                levelled=[1],
            )
            parts.append(np.stack([array_of(each)[0] for each in _added(what, alone)]).astype(np.float64))
    for at in (0, 1, 2):  # a full row of this group alone
        full = Block([np.array([1.0]), np.array([float(at)])], 1, groups=np.array([at]))
        parts.append(np.stack([array_of(each)[0] for each in _added(what, full)]).astype(np.float64))
    largest = sums_of = 0.0
    for one, other in itertools.combinations(parts, 2):
        step = one - other
        largest = max(largest, float(np.square(step).sum()))
        sizes = np.abs(np.linalg.eigvalsh(step)) if matrices else np.abs(step)
        sums_of = max(sums_of, float(sizes.sum()))
    assert 0.999 < largest / squared(what, "replace-one") <= 1.0
    assert 0.999 < sums_of / absolute(what, "replace-one") <= 1.0 + 1e-12
    assert all(float(np.square(one).sum()) <= squared(what, "add-remove") for one in parts)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Histograms((Nodes(0, 1.0, 1.0),)),
        lambda: Histograms((Nodes(0, 0.0, math.inf),)),
        lambda: Counts("odd", (0,)),
        lambda: Counts("bins", (0, 1), ((0.0, 1.0),), 8),
        lambda: Counts("bins", (0,), ((0.0, 1.0),)),
    ],
)
def test_odd_sums_are_refused(make: object) -> None:
    assert callable(make)
    with pytest.raises(DpgramError, match="report"):
        make()


def test_a_matrix_without_columns_counts_rows() -> None:
    ((cells, seen),) = _added(Gram(RowMap((Line(kind="one", scale=2.0**20),), (), 2.0**20), ()), block(7, 1))
    assert isinstance(cells, np.ndarray)
    assert cells.tolist() == [[7 * SQUARE]]
    assert seen.rows_used == 7


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("units", [False, True])
def test_rows_are_counted_where_no_column_is_asked_for(units: bool, weights: bool) -> None:
    """As where levels alone are learnt: every row that counts, not one of each piece."""
    rows = block(9_000, 1, units=units, weights=weights)
    for counted in (rows, block(50, 2, units=units, weights=weights)):
        ((cells, _),) = _added(Counts("rows", ()), counted)
        assert isinstance(cells, np.ndarray)
        shares = counted.shares(counted.once)
        assert cells.tolist() == [[len(counted.once) * SQUARE if shares is None else shares.sum()]]


def test_who_is_left_out_counts_nowhere() -> None:
    out = np.arange(9) % 2 == 0
    rows = block(9, 1, left_out=out)
    assert rows.placed.tolist() == (~out).tolist()
    assert rows.uncounted.rows_left_out == rows.uncounted.rows_dropped == 5
    nobody = block(9, 1, units=True, left_out=np.ones(9, np.bool_))
    assert len(nobody.once) == 0


@pytest.mark.parametrize(
    "part",
    [
        {"counting": Counting(1)},
        {"units": np.zeros(2, np.int64), "unit_hashes": np.zeros(2, np.uint64)},
        {"counting": Counting(1), "units": np.zeros(2, np.int64)},
        {"counting": Counting(1), "unit_hashes": np.zeros(2, np.uint64)},
    ],
    ids=" and ".join,
)
def test_units_without_a_rule_are_refused(part: dict) -> None:
    with pytest.raises(DpgramError, match="a rule by which their rows count"):
        Block([np.zeros(2)], 2, **part)


def test_hashes_of_texts_are_those_of_plain_integers() -> None:
    """FNV-1a and the last step of SplitMix64, of few texts and of many, of all lengths, in any order."""
    rng = np.random.default_rng(1)
    for count in (0, 1, 32, 33, 200):
        texts = [rng.bytes(int(size)) for size in rng.integers(0, 40, count)]
        places = np.cumsum([0, *map(len, texts)])
        letters = np.frombuffer(b"".join(texts), np.uint8)
        assert text_hashes(places, letters).tolist() == [splitmix(fnv(text)) for text in texts]
    assert fnv(b"foobar") == 0x85944171F73967E8  # published
    assert splitmix(0) == 0xE220A8397B1DCDAF


def fnv(text: bytes) -> int:
    value = 0xCBF29CE484222325
    for letter in text:
        value = (value ^ letter) * 0x100000001B3 % 2**64
    return value


def splitmix(value: int) -> int:
    value = (value + 0x9E3779B97F4A7C15) % 2**64
    value = (value ^ (value >> 30)) * 0xBF58476D1CE4E5B9 % 2**64
    value = (value ^ (value >> 27)) * 0x94D049BB133111EB % 2**64
    return value ^ (value >> 31)


def test_texts_are_no_array() -> None:
    (levels,) = _added(ALL[-1], block(10, 1))
    with pytest.raises(DpgramError, match="no array"):
        array_of(levels)

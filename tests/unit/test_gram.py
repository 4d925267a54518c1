"""The exact Gram matrix: a monoid of integers, shipped as bytes, loud about not being private."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.core.units import PolicyCounts
from dpgram.errors import DpgramError
from dpgram.sums.exact_gram import MAX_ROWS, ExactGram

WIDTH = 3
CORNER = 2**15 // 2  # three such cells stay within 2^30


def blocks() -> st.SearchStrategy[np.ndarray]:
    row = st.lists(st.integers(-CORNER, CORNER), min_size=WIDTH, max_size=WIDTH)
    return st.lists(row, max_size=6).map(lambda rows: np.array(rows, np.float64).reshape(-1, WIDTH))


def grams() -> st.SearchStrategy[ExactGram]:
    return blocks().map(lambda block: ExactGram.zero(WIDTH).update(block))


@given(blocks())
def test_update_adds_exact_integers(block: np.ndarray) -> None:
    rows = [[int(cell) for cell in row] for row in block]
    expected = [[sum(row[i] * row[j] for row in rows) for j in range(WIDTH)] for i in range(WIDTH)]
    for layout in ("C", "F"):
        gram = ExactGram.zero(WIDTH).update(np.asarray(block, order=layout))
        assert gram.cells.tolist() == expected
        assert gram.rows == gram.counts.rows_used == gram.counts.rows_read == len(rows)


@given(grams(), grams(), grams())
def test_monoid_laws(a: ExactGram, b: ExactGram, c: ExactGram) -> None:
    zero = ExactGram.zero(WIDTH)
    assert a | zero == zero | a == a
    assert a | b == b | a
    assert (a | b) | c == a | (b | c)
    assert hash(a | b) == hash(b | a)


@given(blocks(), blocks())
def test_update_is_a_homomorphism(x: np.ndarray, y: np.ndarray) -> None:
    zero = ExactGram.zero(WIDTH)
    assert zero.update(x).update(y) == zero.update(x) | zero.update(y) == zero.update(np.concatenate([x, y]))


def test_update_itself_changes_nothing() -> None:
    gram = ExactGram.zero(WIDTH)
    gram.update(np.ones((2, WIDTH)))
    assert gram == ExactGram.zero(WIDTH)
    with pytest.raises(ValueError, match="read-only"):
        gram.cells[0, 0] = 1


def test_most_rows_are_exact_and_more_are_refused() -> None:
    full = ExactGram(np.full((1, 1), MAX_ROWS * 2**30), MAX_ROWS, PolicyCounts())
    assert int(full.cells[0, 0]) == MAX_ROWS * 2**30 < 2**63
    one = ExactGram.zero(1).update(np.array([[2.0**15]]))
    with pytest.raises(DpgramError, match="too many rows"):
        full | one
    assert MAX_ROWS > 8 * 10**9


@pytest.mark.parametrize(
    "block",
    [
        np.array([[0.5, 0, 0]]),
        np.array([[np.nan, 0, 0]]),
        np.array([[2.0**16, 0, 0]]),
        np.array([[np.inf, 0, 0]]),
    ],
    ids=["not an integer", "nan", "too long", "infinite"],
)
def test_rows_off_the_lattice_are_refused(block: np.ndarray) -> None:
    with np.errstate(invalid="ignore"), pytest.raises(DpgramError, match="not made of lattice rows"):
        ExactGram.zero(WIDTH).update(block)


def test_misfits_are_refused() -> None:
    with pytest.raises(DpgramError, match="does not fit"):
        ExactGram.zero(2).update(np.ones((1, 3)))
    with pytest.raises(DpgramError, match="different schemas"):
        ExactGram.zero(2) | ExactGram.zero(3)
    with pytest.raises(DpgramError, match="square"):
        ExactGram(np.zeros((2, 3), np.int64), 0, PolicyCounts())
    with pytest.raises(DpgramError, match="64-bit integers"):
        ExactGram(np.zeros((2, 2)), 0, PolicyCounts())
    with pytest.raises(TypeError):
        ExactGram.zero(2) | 3
    assert ExactGram.zero(2) != "a Gram matrix"


@given(grams())
def test_bytes_round_trip(gram: ExactGram) -> None:
    assert ExactGram.from_bytes(gram.to_bytes()) == gram
    assert pickle.loads(pickle.dumps(gram)) == gram


@settings(max_examples=200)
@given(grams(), st.data())
def test_altered_bytes_are_refused(gram: ExactGram, data: st.DataObject) -> None:
    good = gram.to_bytes()
    place = data.draw(st.integers(0, len(good) - 1))
    flipped = good[:place] + bytes([good[place] ^ (1 << data.draw(st.integers(0, 7)))]) + good[place + 1 :]
    for bad in (flipped, good[:place], good + b"x", b""):
        with pytest.raises(DpgramError, match="bytes"):
            ExactGram.from_bytes(bad)


def test_it_says_that_it_is_not_private() -> None:
    gram = ExactGram.zero(2).update(np.array([[3.0, 4.0]] * 17))
    assert "NOT PRIVATE" in repr(gram)
    assert "17" not in repr(gram)
    assert "Not private" in (ExactGram.__doc__ or "")

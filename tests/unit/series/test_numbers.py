"""Whole numbers of a series: added up in 64 bits or in as many as it takes, the sums are the same."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from dpgram.noise.factor import coefficients, over_one, overlap, window_weights
from dpgram.series import _numbers
from dpgram.series._numbers import LARGEST, numbers, weighted


def by_hand(weights: tuple[Fraction, ...], lines: list[list[int]]) -> list[int]:
    sums = [sum(w * y for w, y in zip(weights, column, strict=True)) for column in zip(*lines, strict=True)]
    return [int((each + Fraction(1, 2)) // 1) for each in sums]


def test_what_fits_is_kept_in_64_bits() -> None:
    assert numbers([LARGEST - 1, 1 - LARGEST, 0]).dtype == np.int64
    for large in (LARGEST, -LARGEST, 2**63 - 1, -(2**63), 2**63, 10**60):
        found = numbers([large, 1])
        assert found.dtype == object
        assert found.tolist() == [large, 1]


@pytest.mark.parametrize(("first", "last", "bits"), [(1, 1, 12), (1, 60, 12), (7, 19, 16), (1, 480, 6)])
def test_weighted_sums_are_exact(first: int, last: int, bits: int) -> None:
    """At the ends of what fits, and where the sum lies in the middle between two whole numbers."""
    weights = window_weights(first, last, periods=480, bits=bits)
    dice = np.random.default_rng(last)
    lines = dice.integers(1 - LARGEST, LARGEST, (last, 40)).tolist()
    for column, value in enumerate((LARGEST - 1, 1 - LARGEST, 0, 1, -1)):
        for line in lines:
            line[column] = value
    # c·x has the sum x over the window; half of c_0 more in the last line is nearly a half more.
    c = coefficients(480, bits)
    for place in range(5, 12):
        for t, line in enumerate(lines):
            line[place] = place * c[last - 1 - t] if t == 0 else 0
        lines[-1][place] += (1 << bits) // 2
    assert weighted(weights, numbers_of_lines(lines)) == by_hand(weights, lines)
    large = [[each << 40 for each in line] for line in lines]
    assert weighted(weights, np.array(large, object)) == by_hand(weights, large)


def numbers_of_lines(lines: list[list[int]]) -> np.ndarray:
    return np.stack([numbers(line) for line in lines])


def test_what_a_hundred_bits_leave_open_is_added_up_with_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """A sum in the middle between two whole numbers, and one beside it by less than 2⁻¹⁰⁰."""
    asked: list[int] = []
    exactly = _numbers._exactly

    def counted(weights: tuple[Fraction, ...], lines: np.ndarray) -> list[int]:
        asked.append(lines.shape[1])
        return exactly(weights, lines)

    monkeypatch.setattr(_numbers, "_exactly", counted)
    half, tiny = Fraction(1, 2), Fraction(1, 1 << 300)
    lines = numbers_of_lines([[1, 1, 1, 2], [0, 1, -1, 0]])
    assert weighted((half, tiny), lines) == [1, 1, 0, 1]
    assert asked == [3]


def test_overlaps_are_those_of_fractions() -> None:
    one, other = (window_weights(*ends, periods=60) for ends in ((1, 40), (13, 60)))
    assert overlap(one, other) == float(sum(a * b for a, b in zip(one, other, strict=False)))
    tops, bottom = over_one(one)
    assert [Fraction(top, bottom) for top in tops] == list(one)

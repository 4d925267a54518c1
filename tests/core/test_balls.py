"""Draws by rejection in balls: functions of endless bit streams, however many bits are read at once."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.core import balls
from dpgram.privacy.sampling import norm_laplace as laplace_sampler
from dpgram.privacy.sampling import wisharts as ball_wishart

GRAM = np.array([[9, 1, -4], [1, 7, 2], [-4, 2, 8]], dtype=np.int64) * 10**7
ALMOST_SINGULAR = np.array([[10**15, 10**15, 0], [10**15, 10**15 + 1, 0], [0, 0, 0]], dtype=np.int64)


@contextmanager
def streams(seed: int) -> Iterator[list[int]]:
    """Bits that depend on the number of a `Uniforms`, the variable and the place only; yields bits read."""
    read: list[int] = []

    def numbered(count: int, _: balls.RandomBytes, start_bits: int) -> balls.Uniforms:
        serial = len(read)
        read.append(0)

        def more(wanted: int) -> bytes:
            first = read[serial]
            read[serial] += wanted // max(count, 1)
            return b"".join(
                hashlib.shake_256(f"{seed}:{serial}:{j}".encode()).digest(read[serial])[first:]
                for j in range(count)
            )

        return real(count, more, start_bits)

    real = balls.Uniforms
    with pytest.MonkeyPatch.context() as patch:
        for module in (balls, laplace_sampler, ball_wishart):
            patch.setattr(module, "Uniforms", numbered)
        yield read


DRAWS: dict[str, Callable[[int], object]] = {
    "wishart": lambda start: ball_wishart.wishart(GRAM, 3e7, 5, bytes, start_bits=start),
    "a sketch of fewer rows than columns": lambda start: ball_wishart.wishart(
        GRAM, 3e7, 2, bytes, start_bits=start
    ),
    "a huge sketch": lambda start: ball_wishart.wishart(GRAM, 3e7, 10**12, bytes, start_bits=start),
    "almost singular": lambda start: ball_wishart.wishart(ALMOST_SINGULAR, 1.0, 40, bytes, start_bits=start),
    "inverse-wishart": lambda start: ball_wishart.inverse_wishart(GRAM, 3e7, 5, bytes, start_bits=start),
    "added rows": lambda start: ball_wishart.added_rows(3, 1e9, 7, bytes, start_bits=start),
    "norm-laplace": lambda start: laplace_sampler.norm_laplace(3, 1e12, bytes, start_bits=start),
}


@pytest.mark.parametrize("name", DRAWS)
@given(seed=st.integers(0, 2**32), start=st.sampled_from([8, 16, 40, 96]))
@settings(deadline=None, max_examples=15)
def test_refining_few_bits_gives_the_matrix_that_many_bits_give(name: str, seed: int, start: int) -> None:
    """Verdicts and integers follow from the streams alone: where one starts cannot matter."""
    with streams(seed) as coarse_read:
        coarse = DRAWS[name](start)
    with streams(seed) as fine_read:
        fine = DRAWS[name](1024)
    assert np.array_equal(coarse, fine)
    assert len(coarse_read) == len(fine_read)  # as many trials


@pytest.mark.parametrize("name", DRAWS)
def test_refinement_is_really_entered_and_default_precision_needs_none(name: str) -> None:
    with streams(1) as read:
        DRAWS[name](8)
    assert max(read) > 1
    with streams(1) as read:
        DRAWS[name](balls.START_BITS)
    assert set(read) <= {0, balls.START_BITS // 8}


def test_extreme_uniforms_are_refined_not_guessed() -> None:
    """All-zero leading bits leave ln U without a bound, in the normal number as in the coin."""
    calls = itertools.count()
    square = balls.ChiSquared(3, lambda count: bytes(count) if next(calls) == 0 else b"\x55" * count, 8)
    assert square.bits > 8
    assert square.ball() > 0


def test_only_the_lower_triangle_is_read() -> None:
    with streams(4):
        whole = ball_wishart.wishart(GRAM, 1e7, 9, bytes)
    with streams(4):
        lower = ball_wishart.wishart(np.tril(GRAM), 1e7, 9, bytes)
    assert (whole == lower).all()


def test_together_brings_all_to_the_same_depth() -> None:
    few, many = balls.Uniforms(1, bytes, 8), balls.Uniforms(1, bytes, 64)
    both = balls.RevealedTogether(few, many)
    assert both.bits == 8
    both.extend()
    assert (few.bits, many.bits) == (16, 64)


def test_numbers_read_elsewhere_go_on() -> None:
    found = balls.Uniforms.known([3], 2, lambda count: b"\x80" * count)
    (ball,) = found.balls()
    assert (float(ball.lower()), float(ball.upper())) == pytest.approx((0.75, 1.0), abs=1e-9)
    found.extend()
    (ball,) = found.balls()
    assert found.bits == 10  # whole bytes
    assert (float(ball.lower()), float(ball.upper())) == pytest.approx((0.875, 0.875 + 2**-10), abs=1e-9)

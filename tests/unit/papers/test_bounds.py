"""The utility theorems with constants: no bound is below what is seen, and what is said of printed ones."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from dpgram_papers.amin import FAILURE as SPLIT_FAILURE
from dpgram_papers.bounds import (
    corollary_step,
    corollary_tail,
    eigenvalue_reach,
    eigenvector_bound,
    even_share_eigenvalue,
    failures_of_corollary,
    printed_even_share_eigenvalue,
)
from dpgram_papers.measured_bounds import AMIN_WIDTH, FAILURE, MeasuredBound, amin_gram, measured_bounds

ROWS = 5


@functools.cache
def rows() -> tuple[MeasuredBound, ...]:
    return measured_bounds()


def test_every_row_is_looked_at() -> None:
    assert len(rows()) == ROWS
    assert len({row.what for row in rows()}) == ROWS


@pytest.mark.parametrize("place", range(ROWS))
def test_no_bound_is_below_what_is_seen(place: int) -> None:
    """The quantile at 1 − ν of 200 draws, each bound being proven for probability 1 − ν."""
    row = rows()[place]
    assert 0.0 < row.seen <= row.bound < np.inf
    assert row.seen < row.nothing


def test_the_adaptive_bound_holds_for_shares_that_are_drawn() -> None:
    """It is at least that of the split of any noisy eigenvalues within τ₀, the most unfavourable included."""
    values = np.linalg.eigvalsh(amin_gram())[::-1]
    reach, shift = (eigenvalue_reach(AMIN_WIDTH, 0.5, nu) for nu in (FAILURE, SPLIT_FAILURE))
    generator = np.random.default_rng(2)
    adaptive = next(row for row in rows() if "adaptive" in row.what)
    signs = [np.where(np.arange(AMIN_WIDTH) < k, -1.0, 1.0) for k in range(AMIN_WIDTH + 1)]
    signs += [generator.uniform(-1.0, 1.0, AMIN_WIDTH) for _ in range(30)]
    seen = []
    for sign in signs:
        weights = np.sqrt(np.maximum(values + reach * sign + shift, 0.0))
        shares = 0.5 * weights / weights.sum()
        seen.append(eigenvector_bound(values.tolist(), shares.tolist(), 0.5, FAILURE))
    assert max(seen) <= adaptive.bound <= 1.02 * max(seen)
    exact = np.sqrt(values) / np.sqrt(values).sum()  # what the draws do not take
    assert eigenvector_bound(values.tolist(), (0.5 * exact).tolist(), 0.5, FAILURE) < min(seen)


@pytest.mark.parametrize("width", [1, 2, 3, 5, 20, 200])
@pytest.mark.parametrize("failure", [0.367, 0.3, 0.1, 0.05, 1e-3, 1e-6])
def test_sheffets_corollary_holds_for_every_width(width: int, failure: float) -> None:
    """|n| passes 3L/2 with probability below ν/2, whatever the printed step does."""
    assert corollary_tail(width, failure) < 0.5 * failure


def test_the_printed_step_of_the_corollary_fails_at_few_columns() -> None:
    assert corollary_step(1, 0.05) > 1.2
    assert corollary_step(3, 0.1) > 1.0
    assert corollary_step(20, 0.1) < 1.0


@pytest.mark.parametrize("width", [1, 2, 5])
@pytest.mark.parametrize("ratio", [1.0, 1.2, 3.0, 30.0])
def test_sheffets_corollary_fails_no_more_often_than_allowed(width: int, ratio: float) -> None:
    for failure in (0.36, 0.1):
        assert failures_of_corollary(width, failure, ratio) <= failure


def test_the_eigenvalue_of_corollary_2() -> None:
    """At λ₁ the bound is ζλ₁, above it is less; the printed condition is met sooner, for O(ζλ₁)."""
    for part in (1.0, 0.3):
        top = even_share_eigenvalue(10, 1.0, part, FAILURE)
        shares = [0.05] * 10
        assert eigenvector_bound([top] * 10, shares, 0.5, FAILURE) == pytest.approx(part * top, rel=1e-3)
        assert eigenvector_bound([2.0 * top] * 10, shares, 0.5, FAILURE) < 0.9 * part * 2.0 * top
        assert printed_even_share_eigenvalue(10, 1.0, part) < top

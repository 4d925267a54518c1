"""An adaptive adversary plays against the ledger's rule, and its true δ is computed exactly.

Every event is played by a mechanism that is as bad as the event allows: randomised response for pure ε, one
that tells everything with probability δ for (ε, δ), finely binned Gaussian noise for μ. The adversary sees
each output and chooses the next event by the privacy loss so far, which is all that matters to it. Every path
is counted.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import ndtr

from dpgram.errors import BudgetExceeded
from dpgram.privacy.accountant import (
    ApproximateEvent,
    Balance,
    Currency,
    Event,
    GaussianEvent,
    PureEvent,
    capacity,
    composed,
    delta_of,
    price,
)
from dpgram.privacy.exact_sums import float_down, root_down
from dpgram.privacy.guarantee import Guarantee, gdp_mu_at_most
from dpgram.privacy.ledger import Ledger

Floats = npt.NDArray[np.float64]


def outcomes(event: Event, bins: int = 24) -> tuple[Floats, Floats]:
    """(probability under the first hypothesis, privacy loss) of every output of the worst mechanism."""
    match event:
        case PureEvent():
            return response(event.epsilon)
        case ApproximateEvent():
            chances, losses = response(event.epsilon)
            return np.append(chances * (1.0 - event.delta), event.delta), np.append(losses, math.inf)
        case GaussianEvent():
            # Bins of equal width, with the two tails. Each bin is taken from the tail where it is small.
            edges = np.linspace(-7.0, 7.0 + event.mu, bins - 1)
            first, second = binned(edges - event.mu), binned(edges)
            return first, np.log(first / second)
        case _:
            raise AssertionError(event)


def response(epsilon: float) -> tuple[Floats, Floats]:
    return np.array([1.0, math.exp(-epsilon)]) / (1.0 + math.exp(-epsilon)), np.array([epsilon, -epsilon])


def binned(edges: Floats) -> Floats:
    below = np.diff(ndtr(edges), prepend=0.0)
    above = -np.diff(ndtr(-edges), append=0.0)
    return np.append(np.where(edges <= 0.0, below, np.append(0.0, above[:-1])), ndtr(-edges[-1]))


def excess(chances: Floats, losses: Floats, epsilon: float) -> float:
    """Σ (P − e^ε Q)₊ over outputs."""
    return float(chances @ -np.expm1(np.minimum(epsilon - losses, 0.0)))


@dataclass(frozen=True)
class Move:
    """What to ask for: a share of everything that is left, as one kind of event."""

    kind: str
    share: float

    def event(self, balance: Balance, currency: Currency) -> Event | None:
        amount = balance.left * Fraction(self.share)
        delta = float_down(balance.left_delta * Fraction(self.share))
        if amount < balance.total / 10**6:
            return None
        if self.kind == "gaussian" and currency != "epsilon":
            return GaussianEvent(root_down(amount if currency == "mu2" else 2 * amount))
        epsilon = largest_response(float_down(amount), currency) * (1.0 - 1e-9)
        if self.kind == "approximate" and delta > 0.0:
            return ApproximateEvent(epsilon, delta)
        return PureEvent(epsilon)


@functools.cache
def largest_response(amount: float, currency: Currency) -> float:
    if currency == "mu2":
        half = math.sqrt(amount) / 2.0
        return math.log(float(ndtr(half)) / float(ndtr(-half)))
    if currency == "rho":
        highest = 2.0 + 2.0 * amount
        return float(brentq(lambda e: e * math.tanh(e / 2.0) - amount, 0.0, highest, xtol=1e-14))
    return amount


@dataclass(frozen=True)
class Round:
    """One move for each of three intervals of the privacy loss so far."""

    low: float
    high: float
    moves: tuple[Move, Move, Move]

    def split(self, losses: Floats) -> list[tuple[npt.NDArray[np.bool_], Move]]:
        region = (losses > self.low).astype(int) + (losses > self.high)
        return [(region == index, move) for index, move in enumerate(self.moves)]


def true_delta(
    rounds: tuple[Round, ...],
    balance: Balance,
    currency: Currency,
    epsilon: float,
    chances: Floats,
    losses: Floats,
) -> float:
    """δ(ε) of everything the adversary gets out of the filter, over all paths."""
    if not rounds or not losses.size:
        return excess(chances, losses, epsilon)
    total = 0.0
    for where, move in rounds[0].split(losses):
        event = move.event(balance, currency)
        if event is None:
            total += excess(chances[where], losses[where], epsilon)
            continue
        after = balance.after(price(event, currency))
        step_chances, step_losses = outcomes(event)
        next_chances = np.multiply.outer(chances[where], step_chances).ravel()
        next_losses = np.add.outer(losses[where], step_losses).ravel()
        told = np.isinf(next_losses)
        total += float(next_chances[told].sum())
        total += true_delta(rounds[1:], after, currency, epsilon, next_chances[~told], next_losses[~told])
    return total


def play(rounds: tuple[Round, ...], guarantee: Guarantee, currency: Currency, reserve: float) -> float:
    balance = Balance(total=capacity(guarantee, currency, reserve), reserve=Fraction(reserve))
    return true_delta(rounds, balance, currency, guarantee.epsilon, np.ones(1), np.zeros(1))


MOVES = st.builds(
    Move,
    kind=st.sampled_from(["gaussian", "pure", "approximate"]),
    share=st.sampled_from([0.05, 0.25, 0.5, 0.9, 1.0]),
)
ROUNDS = st.builds(
    lambda a, b, moves: Round(min(a, b), max(a, b), moves),
    st.floats(-2.0, 4.0),
    st.floats(-2.0, 4.0),
    st.tuples(MOVES, MOVES, MOVES),
)


@pytest.mark.parametrize("currency", ["mu2", "rho", "epsilon"])
@settings(max_examples=80, deadline=None, derandomize=True)
@given(
    rounds=st.tuples(ROUNDS, ROUNDS, ROUNDS),
    epsilon=st.floats(0.05, 5.0),
    log_delta=st.floats(-9.0, -1.0),
    reserved=st.sampled_from([0.0, 0.3, 0.9]),
)
def test_no_adversary_exceeds_the_budget(
    currency: Currency, rounds: tuple[Round, ...], epsilon: float, log_delta: float, reserved: float
) -> None:
    delta = 10.0**log_delta
    # A ledger in ε has no other use for its δ than the reserve.
    reserve = delta if currency == "epsilon" else reserved * delta
    spent = play(rounds, Guarantee(epsilon, delta), currency, reserve)
    assert spent <= delta * (1.0 + 1e-9)


def test_the_play_has_power() -> None:
    """Greedy play reaches nearly all of δ, so a filter a little too generous would be caught."""
    guarantee = Guarantee(1.0, 1e-6)
    mu = gdp_mu_at_most(1.0, 1e-6)
    for factor, within in [(1.0, True), (1.02, False)]:
        chances, losses = outcomes(GaussianEvent(mu * factor), bins=2000)
        assert (excess(chances, losses, 1.0) <= guarantee.delta) == within
    gaussian = Round(0.0, 0.0, (Move("gaussian", 0.5), Move("gaussian", 0.5), Move("gaussian", 0.5)))
    rest = Round(0.0, 0.0, (Move("gaussian", 1.0), Move("gaussian", 1.0), Move("gaussian", 1.0)))
    assert play((gaussian, rest), Guarantee(1.0, 1e-3), "mu2", 0.0) > 0.7e-3
    leak = Round(0.0, 0.0, (Move("approximate", 1.0),) * 3)
    assert play((leak,), Guarantee(1.0, 1e-3), "epsilon", 1e-3) > 0.999e-3


def two_steps() -> tuple[Event, Callable[[float], Event], tuple[Event, Event]]:
    """A first Gaussian step, and then a leak where the loss is small and a response where it is large."""
    first = GaussianEvent(0.1)
    leak = ApproximateEvent(1e-12, 0.99e-6)
    largest = brentq(
        lambda e: math.log(delta_of(composed([first, PureEvent(e)]), 1.0) / 0.99e-6), 0.4, 0.9, xtol=1e-12
    )
    answer = PureEvent(float(largest))
    turn = 1.0 - answer.epsilon
    return first, lambda loss: answer if loss > turn else leak, (leak, answer)


def test_composing_spent_curves_is_not_a_filter() -> None:
    """Each branch composes to δ ≤ 1e-6 at ε = 1, and yet the adversary gets 2e-6. Ours refuses it."""
    first, second, branches = two_steps()
    for branch in branches:
        assert delta_of(composed([first, branch]), 1.0) <= 1e-6  # the naive rule lets every path through
    total = 0.0
    for chance, loss in zip(*outcomes(first, bins=4000), strict=True):
        chances, losses = outcomes(second(loss))
        total += chance * excess(chances, loss + losses, 1.0)
    assert total == pytest.approx(2e-6, rel=0.02)
    assert total > 1.9e-6

    guarantee = Guarantee(1.0, 1e-6)
    for currency, reserve in [("mu2", 0.0), ("mu2", 0.5e-6), ("rho", 0.5e-6)]:
        balance = Balance(total=capacity(guarantee, currency, reserve), reserve=Fraction(reserve))
        after = balance.after(price(first, currency))
        assert not all(after.fits(price(branch, currency)) for branch in branches)


STEP = 0.05
SIZES = (1, 2, 4, 8)


@functools.cache
def naive_delta(counts: tuple[int, ...]) -> float:
    parts = [PureEvent(STEP * size) for size, count in zip(SIZES, counts, strict=True) for _ in range(count)]
    return delta_of(composed(parts), 1.0) if parts else 0.0


def optimal_adversary(allowed: Callable[[tuple[int, ...]], bool], depth: int) -> float:
    """The largest δ(1) any adaptive choice of responses can reach: dynamic programming over the loss."""

    @functools.cache
    def value(counts: tuple[int, ...], loss: int) -> float:
        best = max(-math.expm1(min(1.0 - STEP * loss, 0.0)), 0.0)
        if sum(counts) == depth:
            return best
        for index, size in enumerate(SIZES):
            after = tuple(count + (place == index) for place, count in enumerate(counts))
            if allowed(after):
                up = 1.0 / (1.0 + math.exp(-STEP * size))
                best = max(best, up * value(after, loss + size) + (1.0 - up) * value(after, loss - size))
        return best

    return value((0,) * len(SIZES), 0)


@pytest.mark.parametrize("delta", [3e-2, 1e-2, 1e-3])
def test_the_optimal_adversary_beats_the_naive_rule_but_not_the_filter(delta: float) -> None:
    guarantee = Guarantee(1.0, delta)
    assert optimal_adversary(lambda counts: naive_delta(counts) <= delta, 10) > 1.05 * delta

    def fits(counts: tuple[int, ...]) -> bool:
        parts = [PureEvent(STEP * size) for size, n in zip(SIZES, counts, strict=True) for _ in range(n)]
        return price(composed(parts), currency).amount <= total

    for currency in ("mu2", "rho", "epsilon"):
        total = capacity(guarantee, currency)
        assert optimal_adversary(fits, 8) <= delta


@settings(max_examples=6, deadline=None, derandomize=True)
@given(rounds=st.tuples(ROUNDS, ROUNDS, ROUNDS), seed=st.integers(0, 2**32))
def test_the_file_follows_the_same_rule(
    rounds: tuple[Round, ...], seed: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """One path of the play against a real ledger: the same moves fit, the next one too much is refused."""
    path: Path = tmp_path_factory.mktemp("play") / "play.ledger"
    ledger = Ledger.create(path, name="play", epsilon=1.0, delta=1e-5, delta_reserved=1e-6)
    balance = Balance(total=ledger.total, reserve=Fraction(ledger.delta_reserved))
    generator = np.random.default_rng(seed)
    loss = 0.0
    for this in rounds:
        move = next(move for where, move in this.split(np.array([loss])) if where[0])
        event = move.event(balance, "mu2")
        if event is None:
            break
        balance = balance.after(price(event, "mu2"))
        ledger.charge(event, adjacency="add-remove", unit=None)
        chances, losses = outcomes(event)
        loss += float(generator.choice(losses, p=chances / chances.sum()))
    assert ledger.spent == balance.spent
    too_much = GaussianEvent(root_down(balance.left) * (1.0 + 1e-12) + 1e-18)
    with pytest.raises(BudgetExceeded):
        ledger.charge(too_much, adjacency="add-remove", unit=None)
    assert ledger.spent == balance.spent

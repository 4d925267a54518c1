"""Prices and the curve: by hand, against mpmath, and refused where nothing is proven."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from dpgram.core import SQUARE
from dpgram.core.accounting import (
    SLACK,
    Price,
    delta_at_least,
    keeps,
    mu_at_most,
    price,
)
from dpgram.core.encode import Line, RowMap
from dpgram.core.noise import Noise, SeededEntropy, offdiagonal_scale_at_least, on_cells, on_matrix
from dpgram.core.sensitivity import absolute, changed, histograms, is_matrix, squared
from dpgram.core.sums import Counts, EachGroup, Gram, Histograms, Lengths, Levels, Nodes, Sum
from dpgram.errors import DpgramError, GuaranteeError

ONE = RowMap((Line(kind="one"),), (), 1.0)
GRAM = Gram(ONE, ())
BINS = Counts("bins", (0, 1), ((0.0, 1.0),) * 2, 8)
THREE = Histograms((Nodes(0), Nodes(1), Nodes(2, levels=4)))
SUMS: tuple[tuple[Sum, int], ...] = (
    (GRAM, 1),
    (Gram(ONE, (), 7), 1),
    (Lengths(ONE, (), (1.0,)), 1),
    (THREE, 3),
    (Counts("rows", (0, 1)), 1),
    (Counts("octaves", (0, 1)), 2),
    (BINS, 2),
    (Levels((0, 1, 2, 3), 9), 4),
    (EachGroup((None, THREE, THREE)), 3),
    (EachGroup((GRAM, GRAM)), 1),
)


@pytest.mark.parametrize(("what", "count"), SUMS, ids=lambda each: type(each).__name__)
def test_sensitivities(what: Sum, count: int) -> None:
    assert histograms(what) == count
    assert squared(what, "add-remove") == count * SQUARE**2
    assert squared(what, "replace-one") == 2 * count * SQUARE**2
    assert absolute(what, "add-remove") == count * SQUARE
    assert absolute(what, "replace-one") == 2 * count * SQUARE


def test_a_histogram_reaches_its_bound() -> None:
    """Two units in other cells of every histogram: √(2m)·s and 2m·s."""
    one, other = np.zeros((3, 4)), np.zeros((3, 4))
    one[:, 0] = other[:, 1] = SQUARE
    moved = one - other
    assert int((moved**2).sum()) == squared(THREE, "replace-one")
    assert int(np.abs(moved).sum()) == absolute(THREE, "replace-one")


@pytest.mark.parametrize("what", [EachGroup((None,)), EachGroup((GRAM, THREE)), object()])
def test_what_has_no_proof_has_no_sensitivity(what: Sum) -> None:
    with pytest.raises(DpgramError, match="no proven sensitivity"):
        squared(what, "add-remove")


def test_relations() -> None:
    assert changed("replace-one") == 2
    for odd in ("other", [], None):
        with pytest.raises(DpgramError, match="no such relation"):
            changed(odd)
    assert is_matrix(GRAM)
    assert is_matrix(EachGroup((None, GRAM)))
    assert not is_matrix(THREE)
    assert not is_matrix(EachGroup((THREE, None)))


def test_prices_by_hand() -> None:
    sigma = 3.0 * 2**30
    assert price(GRAM, Noise("gaussian", sigma), "add-remove") == Price(mu_squared=Fraction(1, 9))
    assert price(GRAM, Noise("gaussian", sigma), "replace-one") == Price(mu_squared=Fraction(2, 9))
    assert price(THREE, Noise("gaussian", sigma), "add-remove") == Price(mu_squared=Fraction(1, 3))
    assert price(THREE, Noise("laplace", sigma), "replace-one") == Price(epsilon=Fraction(2))
    theta = 2.0**-30 / 4
    assert price(GRAM, Noise("matrix-laplace", theta), "replace-one") == Price(epsilon=Fraction(1, 2))
    texts = price(Levels((0,), 9), Noise("laplace", 2.0**31, 0.125), "add-remove")
    assert texts == Price(epsilon=Fraction(1, 2), delta=Fraction(1, 8))
    both = texts + Price(mu_squared=Fraction(1, 9))
    assert both == Price(Fraction(1, 9), Fraction(1, 2), Fraction(1, 8))
    assert texts.within(both)
    assert not both.within(texts)
    assert not texts.within(Price(Fraction(1), Fraction(1), Fraction(1, 16)))
    assert not texts.within(Price(Fraction(1), Fraction(1, 4), Fraction(1)))


@pytest.mark.parametrize(
    ("what", "noise"),
    [
        (GRAM, Noise("laplace", 1e9)),
        (THREE, Noise("matrix-laplace", 1e-9)),
        (GRAM, Noise("gaussian", math.inf)),
        (GRAM, Noise("gaussian", 0.0)),
        (GRAM, Noise("gaussian", 1e9, 0.1)),
        (GRAM, Noise("gaussian", 1e9, -0.1)),
        (Levels((0,), 9), Noise("gaussian", 1e9)),
        (Levels((0,), 9), Noise("gaussian", 1e9, 1.0)),
        (GRAM, Noise("gaussian", math.nextafter(2.0**26, 0.0))),
        (THREE, Noise("gaussian", math.nextafter(2.0**26, 0.0))),
    ],
)
def test_noise_without_a_proof_has_no_price(what: Sum, noise: Noise) -> None:
    with pytest.raises(DpgramError, match="report"):
        price(what, noise, "add-remove")


def exact_delta(mu: float, epsilon: float) -> mpmath.mpf:
    with mpmath.workdps(60):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


def test_the_curve_is_never_below_the_truth() -> None:
    rng = np.random.default_rng(1)
    for _ in range(1_500):
        mu, epsilon = 10.0 ** rng.uniform(-5, 1.3), 10.0 ** rng.uniform(-6, 1.7)
        found, truth = delta_at_least(mu, epsilon), exact_delta(mu, epsilon)
        assert found >= truth
        assert found <= truth * (1 + 1e-6) + 1e-9


@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 3.0, 50.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-6, 1e-12, 1e-100])
def test_the_largest_mu_keeps_its_promise_and_little_more_would_not(epsilon: float, delta: float) -> None:
    mu = mu_at_most(epsilon, delta)
    assert exact_delta(mu, epsilon - SLACK) <= delta * (1 - SLACK)
    assert exact_delta(mu * (1 + 1e-4), epsilon - SLACK) > delta * (1 - SLACK)


def test_beyond_what_exp_reaches_the_curve_is_a_bound_still() -> None:
    """Against mpmath at 60 digits; of μ little is lost."""
    mpmath = pytest.importorskip("mpmath")
    with mpmath.workdps(60):
        for epsilon in (699.0, 701.0, 5e3, 1e5):
            mu = mu_at_most(epsilon, 1e-6)
            for factor, kept in ((1, True), (mpmath.mpf("1.001"), False)):
                x, y = (epsilon / (mu * factor) + sign * mu * factor / 2 for sign in (-1, 1))
                first, second = (mpmath.erfc(each / mpmath.sqrt(2)) / 2 for each in (x, y))
                assert bool(first - mpmath.exp(epsilon) * second <= 1e-6) is kept


@pytest.mark.parametrize(("epsilon", "delta"), [(1e-8, 0.1), (math.inf, 0.1), (1.0, 0.0), (1.0, 1.0)])
def test_other_guarantees_are_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(GuaranteeError):
        mu_at_most(epsilon, delta)


def test_everything_together_keeps_the_guarantee() -> None:
    whole = Fraction(mu_at_most(1.0, 1e-6)) ** 2
    assert keeps(Price(mu_squared=whole), 1.0, 1e-6)
    for epsilon, delta in [
        (0.3, 1e-8),
        (0.1, 1e-9),
        (2.0, 3e-7),
        (0.7, 1e-5),
    ]:  # of one matrix
        assert keeps(Price(mu_squared=Fraction(mu_at_most(epsilon, delta)) ** 2), epsilon, delta)
    assert not keeps(Price(mu_squared=whole * Fraction(1001, 1000)), 1.0, 1e-6)
    assert keeps(Price(epsilon=Fraction(1)), 1.0, 0.0)
    assert not keeps(Price(epsilon=Fraction(1) + Fraction(1, 10**30)), 1.0, 0.0)
    assert not keeps(Price(mu_squared=Fraction(1, 10**6)), 1.0, 0.0)
    assert not keeps(Price(mu_squared=Fraction(1, 10**12), epsilon=Fraction(1)), 1.0, 0.5)
    assert not keeps(Price(mu_squared=Fraction(1, 10**6)), 1.0, 2.0)
    assert not keeps(Price(delta=Fraction(1, 10)), 1.0, 0.01)
    assert keeps(Price(delta=Fraction(1, 100)), 1.0, 0.1)
    rest = Fraction(mu_at_most(0.5, 1e-7)) ** 2
    mixed = Price(rest, Fraction(1, 2), Fraction(1, 10**7))
    assert keeps(mixed, 1.0, 2.0000001e-7 + 1e-20)
    assert not keeps(mixed, 0.9, 2.1e-7)


def test_what_adds_to_nothing_keeps_no_guarantee_by_addition() -> None:
    """A mechanism with a law of its own has a proof of its own; in a promise it is counted, not added."""
    own = Price(own=("sketch",))
    assert not keeps(own, 1.0, 0.5)
    assert own.within(own)
    assert not (own + own).within(own)
    assert not own.within(Price(epsilon=Fraction(1)))


def test_noise_lies_where_the_price_says() -> None:
    entropy = SeededEntropy(1)
    gram = np.arange(9, dtype=np.int64).reshape(3, 3)
    found = on_matrix(gram + gram.T, Noise("gaussian", 2.0**40), entropy)
    assert (found == found.T).all()
    cells = on_cells(np.zeros((2, 3), np.int64), Noise("laplace", 2.0**40), entropy)
    assert cells.shape == (2, 3)
    for sigma in np.random.default_rng(2).uniform(2**26, 2**50, 300).tolist():
        scale = offdiagonal_scale_at_least(sigma)
        assert 2 * Fraction(scale) ** 2 >= Fraction(sigma) ** 2
        assert 2 * Fraction(math.nextafter(scale, 0.0)) ** 2 <= Fraction(sigma) ** 2 * (
            1 + Fraction(1, 2**50)
        )


def test_scales_of_noise_have_power_both_ways() -> None:
    """The mean square of 60,000 draws is within 4 deviations of σ² and not of (0.97σ)² or (1.03σ)²."""
    sigma, count = 2.0**35, 60_000
    cells = on_cells(np.zeros(count, np.int64), Noise("gaussian", sigma), SeededEntropy(3)).astype(float)
    spread = math.sqrt(2.0 / count)
    for factor, fits in ((1.0, True), (0.97, False), (1.03, False)):
        z = (np.mean((cells / (factor * sigma)) ** 2) - 1.0) / spread
        assert bool(abs(z) < 4.0) is fits


def test_every_cell_of_a_matrix_has_noise_of_its_own() -> None:
    """σ on the diagonal, σ/√2 off it, within 4 deviations, not at 0.85 or 1.2 times it; no two alike."""
    sigma, width = 2.0**35, 60
    noise, entropy = Noise("gaussian", sigma), SeededEntropy(4)
    drawn = np.stack([on_matrix(np.zeros((width, width), np.int64), noise, entropy) for _ in range(20)])
    assert (drawn == drawn.transpose(0, 2, 1)).all()
    below = np.tri(width, k=-1, dtype=np.bool_)
    for cells, scale in ((drawn[:, np.eye(width, dtype=np.bool_)], sigma), (drawn[:, below], sigma / 2**0.5)):
        spread = math.sqrt(2.0 / cells.size)
        for factor, fits in ((1.0, True), (0.85, False), (1.2, False)):
            z = (np.mean((cells.astype(float) / (factor * scale)) ** 2) - 1.0) / spread
            assert bool(abs(z) < 4.0) is fits
        assert len(set(cells.ravel().tolist())) == cells.size

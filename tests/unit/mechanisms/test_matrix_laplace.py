"""The matrix Laplace mechanism: its rate, its pure price, and where it has less noise than the Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram import noise
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Facts, Gaussian, MatrixLaplace
from dpgram.privacy.accountant import PureEvent
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne
from dpgram.privacy.entropy import SeededEntropy
from dpgram.privacy.guarantee import Guarantee

ADD = Facts(width=4, adjacency=AddRemove())
REPLACE = Facts(width=4, adjacency=ReplaceOne())


@given(epsilon=st.floats(1e-320, 1e6))
def test_the_rate_is_never_above_what_epsilon_allows(epsilon: float) -> None:
    for facts, trace in ((ADD, ROW_NORM_SQUARED), (REPLACE, 2 * ROW_NORM_SQUARED)):
        try:
            theta = MatrixLaplace.calibrated(Guarantee(epsilon), facts).theta
        except MechanismError:
            assert epsilon < 1e-314
            continue
        assert Fraction(theta) * trace <= Fraction(epsilon)
        if epsilon > 1e-290:
            assert Fraction(theta) * trace == Fraction(epsilon)


@pytest.mark.parametrize(("facts", "steps"), [(ADD, 1), (REPLACE, 2)])
def test_the_price_is_pure_and_exact(facts: Facts, steps: int) -> None:
    mechanism = MatrixLaplace(theta=0.75 / ROW_NORM_SQUARED)
    assert mechanism.event(facts) == PureEvent(epsilon=0.75 * steps)
    curve = mechanism.curve(facts)
    assert curve.delta(0.75 * steps) == 0.0
    assert curve.delta(0.74 * steps) > 0.0


def test_delta_is_left_unused() -> None:
    assert MatrixLaplace.calibrated(Guarantee(1.0, 1e-6), ADD) == MatrixLaplace.calibrated(
        Guarantee(1.0), ADD
    )


@pytest.mark.parametrize("theta", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_rate_is_refused(theta: float) -> None:
    with pytest.raises(MechanismError, match="theta"):
        MatrixLaplace(theta=theta)


def test_the_draw_is_the_gram_plus_the_sampled_matrix() -> None:
    gram = np.array([[9, 2], [2, 7]], dtype=np.int64)
    drawn = MatrixLaplace(theta=1e-9).draw(gram, SeededEntropy(4))
    sampled = SeededEntropy(4).matrix_laplace(2, 1e-9)
    assert (drawn.cells - sampled == gram.astype(object)).all()
    assert drawn.noise == noise.MatrixLaplace(theta=1e-9, width=2)
    assert drawn.noise == MatrixLaplace(theta=1e-9).law(2)


@pytest.mark.parametrize(
    ("epsilon", "delta", "widest"), [(1.0, 1e-6, 16), (1.0, 1e-9, 29), (0.1, 1e-6, 12), (3.0, 1e-6, 20)]
)
def test_the_widest_table_with_less_noise_than_the_gaussian(
    epsilon: float, delta: float, widest: int
) -> None:
    """d + 1 ≤ (ε/μ)² under add/remove, and half of it under replace-one."""

    def wins(width: int, relation: Adjacency) -> bool:
        facts = Facts(width=width, adjacency=relation)
        gaussian = Gaussian.calibrated(Guarantee(epsilon, delta), facts)
        laplace = MatrixLaplace.calibrated(Guarantee(epsilon), facts)
        return laplace.law(width).diagonal_sd < gaussian.law(width).diagonal_sd

    assert [width for width in range(1, 60) if wins(width, AddRemove())][-1] == widest
    ratio = (Gaussian.calibrated(Guarantee(epsilon, delta), ADD).sigma * epsilon / ROW_NORM_SQUARED) ** 2
    assert math.floor(ratio - 1.0) == widest
    replaced = [width for width in range(1, 60) if wins(width, ReplaceOne())][-1]
    assert replaced == math.floor(0.5 * ratio - 1.0)

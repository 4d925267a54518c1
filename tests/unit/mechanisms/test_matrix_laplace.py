"""The matrix Laplace mechanism: its rate, its pure price, and where it has less noise than the Gaussian."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram import noise
from dpgram.core.noise import SeededEntropy, simulation
from dpgram.errors import MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import CalibratedMatrixLaplace, Gaussian, MatrixLaplace, PublicFacts
from dpgram.privacy.accountant import PureEvent
from dpgram.privacy.adjacency import AddRemove, Adjacency, ReplaceOne
from dpgram.privacy.guarantee import Guarantee

ADD = PublicFacts(width=4, adjacency=AddRemove())
REPLACE = PublicFacts(width=4, adjacency=ReplaceOne())


@given(epsilon=st.floats(1e-320, 1e6))
def test_the_rate_is_never_above_what_epsilon_allows(epsilon: float) -> None:
    for facts, trace in ((ADD, ROW_NORM_SQUARED), (REPLACE, 2 * ROW_NORM_SQUARED)):
        try:
            theta = MatrixLaplace().calibrated(Guarantee(epsilon), facts).theta
        except MechanismError:
            assert epsilon < 1e-314
            continue
        assert Fraction(theta) * trace <= Fraction(epsilon)
        if epsilon > 1e-290:
            # down to the next float where the shortest decimal of epsilon lies below it
            assert epsilon in (theta * trace, math.nextafter(theta, math.inf) * trace)


@pytest.mark.parametrize(("facts", "steps"), [(ADD, 1), (REPLACE, 2)])
def test_the_price_is_pure_and_exact(facts: PublicFacts, steps: int) -> None:
    mechanism = CalibratedMatrixLaplace(theta=0.75 / ROW_NORM_SQUARED)
    assert mechanism.event(facts) == PureEvent(epsilon=0.75 * steps)
    curve = mechanism.curve(facts)
    assert curve.delta(0.75 * steps) == 0.0
    assert curve.delta(0.74 * steps) > 0.0


def test_delta_is_left_unused() -> None:
    assert MatrixLaplace().calibrated(Guarantee(1.0, 1e-6), ADD) == MatrixLaplace().calibrated(
        Guarantee(1.0), ADD
    )


@pytest.mark.parametrize("theta", [0.0, -1.0, math.nan, math.inf])
def test_a_bad_rate_is_refused(theta: float) -> None:
    with pytest.raises(MechanismError, match="theta"):
        CalibratedMatrixLaplace(theta=theta)


def test_the_draw_is_the_gram_plus_the_sampled_matrix() -> None:
    gram = np.array([[9, 2], [2, 7]], dtype=np.int64)
    drawn = CalibratedMatrixLaplace(theta=1e-9).draw(gram, SeededEntropy(4))
    sampled = SeededEntropy(4).matrix_laplace(2, 1e-9)
    assert (drawn.cells - sampled == gram.astype(object)).all()
    assert drawn.noise == noise.MatrixLaplace(theta=1e-9, width=2)
    assert drawn.noise == CalibratedMatrixLaplace(theta=1e-9).law(2)


@pytest.mark.parametrize(
    ("epsilon", "delta", "widest"), [(1.0, 1e-6, 16), (1.0, 1e-9, 29), (0.1, 1e-6, 12), (3.0, 1e-6, 20)]
)
def test_the_widest_table_with_less_noise_than_the_gaussian(
    epsilon: float, delta: float, widest: int
) -> None:
    """d + 1 ≤ (ε/μ)² under add/remove, and half of it under replace-one."""

    def wins(width: int, relation: Adjacency) -> bool:
        facts = PublicFacts(width=width, adjacency=relation)
        gaussian = Gaussian().calibrated(Guarantee(epsilon, delta), facts)
        laplace = MatrixLaplace().calibrated(Guarantee(epsilon), facts)
        return laplace.law(width).diagonal_sd < gaussian.law(width).diagonal_sd

    assert [width for width in range(1, 60) if wins(width, AddRemove())][-1] == widest
    ratio = (Gaussian().calibrated(Guarantee(epsilon, delta), ADD).sigma * epsilon / ROW_NORM_SQUARED) ** 2
    assert math.floor(ratio - 1.0) == widest
    replaced = [width for width in range(1, 60) if wins(width, ReplaceOne())][-1]
    assert replaced == math.floor(0.5 * ratio - 1.0)


NODES, NODE_WEIGHTS = np.polynomial.laguerre.laggauss(80)


def log_density(x: float, y: float) -> float:
    """ln p(diag(x, −y)) for x, y ≥ 0 and θ = 1, up to a constant: proofs/matrix-laplace.md by quadrature.

    With W = [[u, w], [w, y + v]] the two cones ask for w² ≤ min(u(y + v), (x + u)v); the weight e^(−2(u+v))
    is the nodes' own after halving.
    """
    u, v = 0.5 * NODES[:, None], 0.5 * NODES[None, :]
    inside = 2.0 * np.sqrt(np.minimum(u * (y + v), (x + u) * v))
    return -(x - y) - 2.0 * y + math.log(float(NODE_WEIGHTS @ inside @ NODE_WEIGHTS))


@given(
    x=st.floats(0.0, 30.0),
    y=st.floats(0.0, 30.0),
    step=st.floats(0.01, 5.0),
    along=st.sampled_from(["x", "y"]),
)
def test_one_positive_step_changes_the_density_by_at_most_its_trace(
    x: float, y: float, step: float, along: str
) -> None:
    """|ln p(E − V) − ln p(E)| ≤ θ tr V; in floats and with a kink in the integrand, to four digits."""
    moved = (x + step, y) if along == "x" else (x, y + step)
    assert abs(log_density(x, y) - log_density(*moved)) <= step * (1.0 + 1e-4) + 1e-4


def test_replacing_a_row_can_spend_both_steps_in_full() -> None:
    """At M = H + diag(t, −t) the log-ratio of the two replaced rows rises to 2θs, and never above it."""
    spent = [log_density(t - 1.0, t) - log_density(t, t + 1.0) for t in (2.0, 5.0, 20.0, 100.0, 1000.0)]
    assert spent == sorted(spent)
    assert 1.3 < spent[0] < spent[-1] <= 2.0
    assert spent[-1] > 1.99


def test_where_the_noise_is_positive_definite_the_whole_epsilon_is_spent() -> None:
    """P(E − V = X) / P(E = X) = e^(θ tr V) on X ⪰ V: counted in draws with two columns. α = 10⁻³."""
    first, second = simulation(3).standard_normal((2, 200_000, 3, 2))
    draws = 0.5 * (first.transpose(0, 2, 1) @ first - second.transpose(0, 2, 1) @ second)
    shifted = draws + np.diag([0.7, 0.0])  # the output on the larger data set, seen from the smaller one's G
    inside = [np.linalg.eigvalsh(d - np.diag([0.7, 0.0]))[:, 0] > 0.0 for d in (shifted, draws)]
    more, less = (int(np.count_nonzero(x)) for x in inside)
    assert abs(math.log(more / less) - 0.7) < 3.3 * math.sqrt(1.0 / more + 1.0 / less)
    assert abs(math.log(more / less) - 0.6) > 3.3 * math.sqrt(1.0 / more + 1.0 / less)

"""The Gaussian mechanism: scales, sensitivities, and which noise goes to which cell."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpgram.core.noise import LARGEST_SCALE, SeededEntropy, offdiagonal_scale_at_least
from dpgram.errors import GuaranteeError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import CalibratedGaussian, Gaussian, PublicFacts
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.accountant import GaussianEvent
from dpgram.privacy.adjacency import AddRemove, ReplaceOne
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.guarantee import Guarantee

ADD = PublicFacts(width=4, adjacency=AddRemove())
REPLACE = PublicFacts(width=4, adjacency=ReplaceOne())


@pytest.mark.parametrize(
    ("epsilon", "delta", "multiplier"),
    [
        (0.1, math.exp(-9), 23.897),
        (0.1, 1e-6, 36.305),
        (0.5, 1e-6, 8.058),
        (1.0, math.exp(-9), 3.133),
        (1.0, 1e-6, 4.225),
        (3.0, 1e-6, 1.544),
    ],
)
def test_noise_multipliers(epsilon: float, delta: float, multiplier: float) -> None:
    guarantee = Guarantee(epsilon, delta)
    added = Gaussian().calibrated(guarantee, ADD).sigma / ROW_NORM_SQUARED
    replaced = Gaussian().calibrated(guarantee, REPLACE).sigma / ROW_NORM_SQUARED
    assert added == pytest.approx(multiplier, abs=6e-4)
    assert replaced == pytest.approx(math.sqrt(2.0) * added, rel=1e-12)


def test_price_and_curve_are_functions_of_the_facts() -> None:
    mechanism = CalibratedGaussian(sigma=2.0 * ROW_NORM_SQUARED)
    for facts, mu in ((ADD, 0.5), (REPLACE, math.sqrt(0.5))):
        event, curve = mechanism.event(facts), mechanism.curve(facts)
        assert isinstance(event, GaussianEvent)
        assert isinstance(curve, GaussianCurve)
        assert mu <= event.mu == curve.mu <= mu * (1.0 + 1e-14)


@given(sigma=st.floats(1e-3, 2.0**56))
def test_the_off_diagonal_scale_is_rounded_up(sigma: float) -> None:
    scale = offdiagonal_scale_at_least(sigma)
    assert 2 * Fraction(scale) ** 2 >= Fraction(sigma) ** 2
    assert scale <= sigma / math.sqrt(2.0) * (1.0 + 1e-14)


@pytest.mark.parametrize("sigma", [0.0, -1.0, math.nan, math.inf, 2.0 * LARGEST_SCALE])
def test_a_scale_that_cannot_be_drawn_is_refused_at_once(sigma: float) -> None:
    with pytest.raises(MechanismError, match="scale of gaussian noise"):
        CalibratedGaussian(sigma=sigma)


def test_no_pure_guarantee() -> None:
    with pytest.raises(MechanismError, match="matrix-laplace"):
        Gaussian().calibrated(Guarantee(1.0), ADD)


def test_an_epsilon_beyond_the_proof_is_refused() -> None:
    with pytest.raises(GuaranteeError, match="not covered by the proof"):
        Gaussian().calibrated(Guarantee(1000.0, 1e-6), ADD)


@dataclass
class Counted:
    """An entropy that hands out consecutive integers and remembers what was asked."""

    asked: list[tuple[float, int]] = field(default_factory=list)
    given: int = 0

    def discrete_gaussian(self, scale: float, count: int) -> np.ndarray:
        self.asked.append((scale, count))
        first, self.given = self.given, self.given + count
        values = np.empty(count, dtype=object)
        values[:] = range(first, first + count)
        return values


def test_every_cell_gets_its_own_noise_of_the_right_scale() -> None:
    entropy = Counted()
    gram = 100 * np.eye(4, dtype=np.int64)
    drawn = CalibratedGaussian(sigma=2.0**33).draw(gram, entropy)
    assert entropy.asked == [(2.0**33, 4), (offdiagonal_scale_at_least(2.0**33), 6)]
    assert drawn.cells.tolist() == [
        [100, 4, 5, 7],
        [4, 101, 6, 8],
        [5, 6, 102, 9],
        [7, 8, 9, 103],
    ]


def test_the_law_is_stated() -> None:
    drawn = CalibratedGaussian(sigma=5e9).draw(np.zeros((4, 4), dtype=np.int64), SeededEntropy(1))
    assert drawn.noise == SymmetricGaussian(sigma=5e9)
    assert drawn.noise == CalibratedGaussian(sigma=5e9).law(4)
    assert drawn.exponent == 0
    assert drawn.kind == "gram"

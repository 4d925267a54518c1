"""What every mechanism must do. A mechanism's class inherits the whole suite by naming itself.

The tests see a mechanism only through its public methods, so the suite fits mechanisms of others too.
"""

from __future__ import annotations

import dataclasses
import math
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
import pytest

from dpgram.errors import DpgramError
from dpgram.gram_audit import audit_mechanism
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, Facts, Gaussian, MatrixLaplace, Mechanism
from dpgram.noise import NoiseLaw
from dpgram.privacy.accountant import guarantee_of
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.entropy import Entropy, SeededEntropy, SystemEntropy
from dpgram.privacy.guarantee import Guarantee

ADJACENCIES = ("add-remove", "replace-one")
Cells = npt.NDArray[np.int64]


def facts(relation: str, width: int = 3) -> Facts:
    return Facts(width=width, adjacency=adjacency(relation))


def some_gram(width: int, rows: int = 50) -> Cells:
    """The Gram matrix of lattice rows that do not depend on any generator's state."""
    table = np.arange(rows * width, dtype=np.int64).reshape(rows, width) * 7919 % 20_001 - 10_000
    return table.T @ table


class MechanismContract:
    """Inherit it, name the class and the guarantees it can give; every test below then applies."""

    mechanism: ClassVar[type[Mechanism]]
    guarantees: ClassVar[tuple[Guarantee, ...]]
    audited: ClassVar[Guarantee] = Guarantee(8.0, 1e-4)
    """A loose guarantee, for which few runs make a meaningful audit."""
    refused: ClassVar[tuple[Guarantee, ...]] = ()
    additive: ClassVar[bool] = True
    """Whether the noise is independent of the data: the same entropy then gives the same noise."""

    @pytest.fixture(params=ADJACENCIES)
    def where(self, request: pytest.FixtureRequest) -> Facts:
        return facts(request.param)

    def made(self, where: Facts, guarantee: Guarantee | None = None) -> Mechanism:
        return self.mechanism.calibrated(guarantee or self.guarantees[0], where)

    def test_it_is_listed_under_its_own_name(self) -> None:
        assert MECHANISMS[self.mechanism.name] is self.mechanism
        assert [name for name, found in MECHANISMS.items() if found is self.mechanism] == [
            self.mechanism.name
        ]

    def test_calibration_meets_the_guarantee_and_wastes_nothing(self, where: Facts) -> None:
        for guarantee in self.guarantees:
            curve = self.made(where, guarantee).curve(where)
            assert guarantee.met_by(curve)
            assert curve.epsilon(guarantee.delta) > guarantee.epsilon * (1.0 - 1e-6)

    def test_a_ledger_is_charged_what_the_curve_says(self, where: Facts) -> None:
        for guarantee in self.guarantees:
            mechanism = self.made(where, guarantee)
            charged = guarantee_of(mechanism.event(where), guarantee.delta)
            assert charged.epsilon <= guarantee.epsilon * (1.0 + 1e-12)
            assert charged.epsilon == pytest.approx(mechanism.curve(where).epsilon(guarantee.delta), rel=1e-6)

    def test_what_cannot_be_given_is_refused_before_any_draw(self, where: Facts) -> None:
        for guarantee in self.refused:
            with pytest.raises(DpgramError) as caught:
                self.made(where, guarantee)
            assert caught.value.what

    def test_it_is_a_frozen_value(self, where: Facts) -> None:
        first, second = self.made(where), self.made(where)
        assert first == second
        assert hash(first) == hash(second)
        field = dataclasses.fields(first)[0].name  # type: ignore[arg-type]
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(first, field, 1.0)

    @pytest.mark.parametrize("width", [1, 2, 5])
    @pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])
    def test_a_draw_is_a_symmetric_matrix_of_python_integers(self, width: int, entropy: Entropy) -> None:
        where = facts("add-remove", width)
        gram = some_gram(width)
        before = gram.copy()
        drawn = self.made(where).draw(gram, entropy)
        assert drawn.cells.shape == (width, width)
        assert all(type(cell) is int for cell in drawn.cells.ravel())
        assert (drawn.cells == drawn.cells.T).all()
        assert (gram == before).all()

    def test_cells_may_pass_sixty_three_bits(self, where: Facts) -> None:
        gram = np.full((3, 3), np.iinfo(np.int64).max, dtype=np.int64)
        cells = [self.made(where).draw(gram, SeededEntropy(seed)).cells for seed in range(8)]
        assert max(max(drawn.ravel()) for drawn in cells) > np.iinfo(np.int64).max

    def test_only_half_of_the_matrix_is_read(self, where: Facts) -> None:
        """A cell that is read twice would get the same noise twice and cancel it."""
        gram = some_gram(3)
        skewed = gram + np.triu(np.full((3, 3), 10**15, dtype=np.int64), 1)
        ours, theirs = (self.made(where).draw(g, SeededEntropy(2)).cells for g in (gram, skewed))
        assert (ours == theirs).all()

    def test_the_entropy_decides_everything(self, where: Facts) -> None:
        mechanism, gram = self.made(where), some_gram(3)
        first, again, other = (mechanism.draw(gram, SeededEntropy(s)).cells for s in (4, 4, 5))
        assert (first == again).all()
        assert not (first == other).any()

    def test_additive_noise_does_not_look_at_the_data(self, where: Facts) -> None:
        if not self.additive:
            return
        mechanism, gram = self.made(where), some_gram(3)
        nothing = np.zeros((3, 3), dtype=np.int64)
        with_data, without = (mechanism.draw(g, SeededEntropy(6)).cells for g in (gram, nothing))
        assert (with_data - without == gram.astype(object)).all()

    def test_the_noise_law_survives_the_file(self, where: Facts) -> None:
        law = self.made(where).draw(some_gram(3), SeededEntropy(1)).noise
        assert msgspec.json.decode(msgspec.json.encode(law), type=type(law)) == law
        assert isinstance(law, NoiseLaw)

    def test_draws_follow_the_stated_law(self) -> None:
        """Mean squares of 5,000 draws against the law's deviations. α = 10⁻³ a kind; 5% off is rejected."""
        mechanism, entropy = self.made(facts("add-remove")), SeededEntropy(9)
        gram = np.zeros((3, 3), dtype=np.int64)
        drawn = [mechanism.draw(gram, entropy) for _ in range(5_000)]
        law, cells = drawn[0].noise, np.stack([d.cells for d in drawn]).astype(float)
        for factor, accepted in ((1.0, True), (0.95, False), (1.05, False)):
            diagonal = (np.einsum("nii->ni", cells) / (factor * law.diagonal_sd)) ** 2
            below = (cells[:, *np.tril_indices(3, -1)] / (factor * law.offdiagonal_sd)) ** 2
            for squares in (diagonal.mean(axis=1), below.mean(axis=1)):
                z = (squares.mean() - 1.0) / (squares.std() / math.sqrt(len(squares)))
                assert (abs(z) < 3.3) == accepted

    def test_more_privacy_is_more_noise(self) -> None:
        def deviation(epsilon: float, relation: str) -> float:
            where = facts(relation)
            wanted = dataclasses.replace(self.guarantees[0], epsilon=epsilon)
            return self.made(where, wanted).draw(some_gram(3), SeededEntropy(1)).noise.diagonal_sd

        for relation in ADJACENCIES:
            levels = [deviation(epsilon, relation) for epsilon in (0.1, 0.5, 1.0, 3.0, 10.0)]
            assert levels == sorted(levels, reverse=True)
            assert len(set(levels)) == len(levels)
        for epsilon in (0.1, 1.0, 10.0):
            assert deviation(epsilon, "replace-one") > deviation(epsilon, "add-remove")

    def test_noise_is_never_below_one_rows_worth_at_epsilon_one(self, where: Facts) -> None:
        law = self.made(where, dataclasses.replace(self.guarantees[0], epsilon=1.0))
        assert law.draw(some_gram(3), SeededEntropy(1)).noise.diagonal_sd > ROW_NORM_SQUARED

    def test_a_short_audit_finds_nothing(self, where: Facts) -> None:
        mechanism = self.made(where, self.audited)
        found = audit_mechanism(
            mechanism, where, runs=1200, delta=self.audited.delta, entropy=SeededEntropy(13)
        )
        assert found.passes(mechanism.curve(where))
        assert found.passes(self.audited)
        assert found.epsilon_lower > 0.1, "the audit must have seen something to be worth its name"


class TestGaussian(MechanismContract):
    mechanism = Gaussian
    guarantees = (Guarantee(1.0, 1e-6), Guarantee(0.1, 1e-9), Guarantee(3.0, 1e-6), Guarantee(10.0, 1e-12))
    refused = (Guarantee(1.0, 0.0), Guarantee(1e-9, 1e-6), Guarantee(1e6, 1e-6))


class TestMatrixLaplace(MechanismContract):
    mechanism = MatrixLaplace
    guarantees = (Guarantee(1.0), Guarantee(0.1), Guarantee(3.7))
    audited = Guarantee(2.0)

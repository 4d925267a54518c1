"""What every mechanism must do. A mechanism's class inherits the whole suite by naming itself.

The tests see a mechanism only through its public methods, so the suite fits mechanisms of others too.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import ClassVar

import msgspec
import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpgram.audit import audit
from dpgram.audit.gram import audit_mechanism
from dpgram.core.noise import Entropy, SeededEntropy, SystemEntropy, simulation
from dpgram.errors import DpgramError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    MECHANISMS,
    CalibratedMechanism,
    Deflation,
    Drawn,
    Eigenvectors,
    EigenvectorsZcdp,
    Gaussian,
    InverseNoise,
    InverseWishart,
    InverseWishartAdaptive,
    Laplace,
    MatrixLaplace,
    Mechanism,
    PublicFacts,
    Sketch,
    SketchAdaptive,
    Wishart,
)
from dpgram.noise import Law, NoisyInverse, SampledLaw
from dpgram.noise.sampled import gram_of_inverse
from dpgram.privacy.accountant import guarantee_of
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee

ADJACENCIES = ("add-remove", "replace-one")
Cells = npt.NDArray[np.int64]


def deviation_of(law: Law, gram: Cells) -> float:
    """The standard deviation of a diagonal cell; of a sampled release, as seen from this matrix.

    Of a noisy inverse, in first order around a small matrix: L²σ, since d(X⁻¹) = −X⁻¹ dX X⁻¹.
    """
    if isinstance(law, NoisyInverse):
        return law.ridge**2 * law.sigma
    if isinstance(law, SampledLaw):
        return law.stand_in(
            gram.astype(np.float64) + law.mean_diagonal * np.eye(len(gram)), simulation(1)
        ).diagonal_sd
    return law.diagonal_sd


def floats(drawn: Drawn) -> npt.NDArray[np.float64]:
    """The published matrix in lattice units; an inverse as the Gram matrix it stands for."""
    matrix = np.ldexp(drawn.cells.astype(np.float64), drawn.exponent)
    if isinstance(drawn.noise, NoisyInverse):
        return gram_of_inverse(matrix, drawn.noise.ridge, drawn.noise.sigma)
    return matrix


def some_gram(width: int, rows: int = 50) -> Cells:
    """The Gram matrix of lattice rows that do not depend on any generator's state."""
    table = np.arange(rows * width, dtype=np.int64).reshape(rows, width) * 7919 % 20_001 - 10_000
    return table.T @ table


@functools.cache
def calibrated(mechanism: Mechanism, guarantee: Guarantee, where: PublicFacts) -> CalibratedMechanism:
    """Some curves take seconds to search, and a calibration is a function of public facts."""
    return mechanism.calibrated(guarantee, where)


class MechanismContract:
    """Inherit it, name the class and the guarantees it can give; every test below then applies."""

    mechanism: ClassVar[type[Mechanism]]
    guarantees: ClassVar[tuple[Guarantee, ...]]
    audited: ClassVar[Guarantee] = Guarantee(8.0, 1e-4)
    """A loose guarantee, for which few runs make a meaningful audit."""
    refused: ClassVar[tuple[Guarantee, ...]] = ()
    ladder: ClassVar[tuple[float, ...]] = (0.1, 0.5, 1.0, 3.0, 10.0)
    """Levels of ε from much to little noise."""
    additive: ClassVar[bool] = True
    """Whether the noise is independent of the data: the same entropy then gives the same noise."""
    parameters: ClassVar[dict[str, float]] = {}
    """Of the mechanism, where it cannot do without or defaults take long."""
    tolerance: ClassVar[float] = 1e-6
    """How far on the safe side a calibration may stop, relative to ε."""

    runs: ClassVar[int] = 1200
    """Draws of each neighbour in the short audit."""
    cheap_curve: ClassVar[bool] = True
    """Whether the audit can afford to hold every point of the curve against what it found."""

    @pytest.fixture(params=ADJACENCIES)
    def where(self, request: pytest.FixtureRequest) -> PublicFacts:
        return self.facts(request.param)

    def facts(self, relation: str, width: int = 3) -> PublicFacts:
        return PublicFacts(width=width, adjacency=adjacency(relation))

    def made(self, where: PublicFacts, guarantee: Guarantee | None = None) -> CalibratedMechanism:
        return calibrated(self.mechanism(**self.parameters), guarantee or self.guarantees[0], where)

    def test_it_is_listed_under_its_own_name(self) -> None:
        assert MECHANISMS[self.mechanism.name] is self.mechanism
        assert [name for name, found in MECHANISMS.items() if found is self.mechanism] == [
            self.mechanism.name
        ]

    def test_calibration_meets_the_guarantee_and_wastes_nothing(self, where: PublicFacts) -> None:
        for guarantee in self.guarantees:
            curve = self.made(where, guarantee).curve(where)
            assert guarantee.met_by(curve)
            assert curve.delta(guarantee.epsilon * (1.0 - self.tolerance)) > guarantee.delta

    def test_a_ledger_is_charged_what_the_curve_says(self, where: PublicFacts) -> None:
        for guarantee in self.guarantees:
            mechanism = self.made(where, guarantee)
            charged = guarantee_of(mechanism.event(where), guarantee.delta)
            assert charged.epsilon <= guarantee.epsilon * (1.0 + 1e-12)
            assert mechanism.curve(where).delta(charged.epsilon) <= guarantee.delta
            assert charged.epsilon > guarantee.epsilon * (1.0 - self.tolerance)

    def test_what_cannot_be_given_is_refused_before_any_draw(self, where: PublicFacts) -> None:
        for guarantee in self.refused:
            with pytest.raises(DpgramError) as caught:
                self.made(where, guarantee)
            assert caught.value.what

    def test_it_is_a_frozen_value(self, where: PublicFacts) -> None:
        first, second = self.made(where), dataclasses.replace(self.made(where))
        assert first == second
        assert hash(first) == hash(second)
        field = dataclasses.fields(first)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(first, field, 1.0)

    @pytest.mark.system_entropy
    @pytest.mark.parametrize("width", [1, 2, 5])
    @pytest.mark.parametrize("entropy", [SystemEntropy(), SeededEntropy(1)], ids=["system", "seeded"])
    def test_a_draw_is_a_symmetric_matrix_of_python_integers(self, width: int, entropy: Entropy) -> None:
        where = self.facts("add-remove", width)
        gram = some_gram(width)
        before = gram.copy()
        drawn = self.made(where).draw(gram, entropy)
        assert drawn.cells.shape == (width, width)
        assert all(type(cell) is int for cell in drawn.cells.ravel())
        assert (drawn.cells == drawn.cells.T).all()
        assert (gram == before).all()

    def test_cells_may_pass_sixty_three_bits(self, where: PublicFacts) -> None:
        if not self.additive:
            pytest.skip("only noise on a matrix of the largest cells passes 2^63 for sure")
        gram = np.full((3, 3), np.iinfo(np.int64).max, dtype=np.int64)
        cells = [self.made(where).draw(gram, SeededEntropy(seed)).cells for seed in range(8)]
        assert max(max(drawn.ravel()) for drawn in cells) > np.iinfo(np.int64).max

    def test_what_is_published_is_semidefinite_where_that_is_stated(self, where: PublicFacts) -> None:
        """Of few rows, where noise outweighs the table; where it is not stated, some draw must show why.

        An inverse is small, and outweighed by noise, where the table is large.
        """
        mechanism, entropy = self.made(where), SeededEntropy(21)
        large = self.mechanism.name == "inverse-noise"
        gram = 10**6 * ROW_NORM_SQUARED * np.eye(3, dtype=np.int64) if large else some_gram(3, rows=4)
        least = [
            float(np.linalg.eigvalsh(np.ldexp(d.cells.astype(np.float64), d.exponent))[0])
            for d in (mechanism.draw(gram, entropy) for _ in range(40))
        ]
        assert (min(least) >= 0.0) == self.mechanism.semidefinite

    def test_only_half_of_the_matrix_is_read(self, where: PublicFacts) -> None:
        """A cell that is read twice would get the same noise twice and cancel it."""
        gram = some_gram(3)
        skewed = gram + np.triu(np.full((3, 3), 10**15, dtype=np.int64), 1)
        ours, theirs = (self.made(where).draw(g, SeededEntropy(2)).cells for g in (gram, skewed))
        assert (ours == theirs).all()

    def test_the_entropy_decides_everything(self, where: PublicFacts) -> None:
        mechanism, gram = self.made(where), some_gram(3)
        first, again, other = (mechanism.draw(gram, SeededEntropy(s)).cells for s in (4, 4, 5))
        assert (first == again).all()
        assert not (first == other).any()

    def test_additive_noise_does_not_look_at_the_data(self, where: PublicFacts) -> None:
        if not self.additive:
            pytest.skip("this release is drawn around the exact matrix")
        mechanism, gram = self.made(where), some_gram(3)
        nothing = np.zeros((3, 3), dtype=np.int64)
        with_data, without = (mechanism.draw(g, SeededEntropy(6)).cells for g in (gram, nothing))
        assert (with_data - without == gram.astype(object)).all()

    def test_the_noise_law_survives_the_file(self, where: PublicFacts) -> None:
        law = self.made(where).draw(some_gram(3), SeededEntropy(1)).noise
        assert msgspec.json.decode(msgspec.json.encode(law), type=type(law)) == law
        assert isinstance(law, Law)

    def test_draws_follow_the_stated_law(self) -> None:
        """Mean squares of 5,000 draws against the law's deviations. α = 10⁻³ a kind; 5% off is rejected."""
        if not self.additive:
            pytest.skip("sampled releases are compared with their law's redraws below")
        mechanism, entropy = self.made(self.facts("add-remove")), SeededEntropy(9)
        gram = np.zeros((3, 3), dtype=np.int64)
        drawn = [mechanism.draw(gram, entropy) for _ in range(5_000)]
        law = drawn[0].noise
        assert not isinstance(law, SampledLaw)
        cells = np.stack([d.cells for d in drawn]).astype(float) - law.mean_diagonal * np.eye(3)
        for factor, accepted in ((1.0, True), (0.95, False), (1.05, False)):
            diagonal = (np.einsum("nii->ni", cells) / (factor * law.diagonal_sd)) ** 2
            below = (cells[:, *np.tril_indices(3, -1)] / (factor * law.offdiagonal_sd)) ** 2
            for squares in (diagonal.mean(axis=1), below.mean(axis=1)):
                z = (squares.mean() - 1.0) / (squares.std() / math.sqrt(len(squares)))
                assert (abs(z) < 3.3) == accepted

    @pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.8, False), (1.25, False)])
    def test_sampled_releases_follow_the_stated_law(self, factor: float, accepted: bool) -> None:
        """Squared errors of 400 draws against 400 redraws of the law around a matrix `factor` times as large.

        Mann–Whitney on the norms |M|_F, α = 10⁻³.
        """
        if self.additive:
            pytest.skip("added noise is compared with its deviations above")
        mechanism, entropy, generator = self.made(self.facts("add-remove")), SeededEntropy(9), simulation(3)
        gram = some_gram(3, rows=4000)
        drawn = [mechanism.draw(gram, entropy) for _ in range(400)]
        norms = [np.linalg.norm(floats(d)) for d in drawn]
        again = [np.linalg.norm(d.noise.redraw(factor * gram, generator)) for d in drawn]
        assert (stats.mannwhitneyu(norms, again).pvalue > 1e-3) == accepted

    def test_more_privacy_is_more_noise(self) -> None:
        def deviation(epsilon: float, relation: str) -> float:
            where, gram = self.facts(relation), some_gram(3, rows=4000)
            wanted = dataclasses.replace(self.guarantees[0], epsilon=epsilon)
            return deviation_of(self.made(where, wanted).draw(gram, SeededEntropy(1)).noise, gram)

        for relation in ADJACENCIES:
            levels = [deviation(epsilon, relation) for epsilon in self.ladder]
            assert levels == sorted(levels, reverse=True)
            assert len(set(levels)) == len(levels)
        for epsilon in self.ladder[::2]:
            assert deviation(epsilon, "replace-one") > deviation(epsilon, "add-remove")

    def test_noise_is_never_below_one_rows_worth_at_epsilon_one(self, where: PublicFacts) -> None:
        mechanism = self.made(where, dataclasses.replace(self.guarantees[0], epsilon=1.0))
        gram = some_gram(3, rows=4000)
        law = mechanism.draw(gram, SeededEntropy(1)).noise
        assert deviation_of(law, gram) > 0.9 * ROW_NORM_SQUARED

    def test_a_short_audit_finds_nothing(self, where: PublicFacts) -> None:
        mechanism = self.made(where, self.audited)
        found = audit_mechanism(
            mechanism, where, runs=self.runs, delta=self.audited.delta, entropy=SeededEntropy(13)
        )
        assert not self.cheap_curve or found.passes(mechanism.curve(where))
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


class TestLaplace(MechanismContract):
    mechanism = Laplace
    guarantees = (Guarantee(1.0), Guarantee(0.1), Guarantee(3.7))
    audited = Guarantee(4.0)


class TestWishart(MechanismContract):
    mechanism = Wishart
    guarantees = (Guarantee(1.0, 1e-6),)
    cheap_curve = False
    refused = (Guarantee(1.0, 0.0),)
    audited = Guarantee(8.0, 1e-6)
    tolerance = 5e-3
    ladder = (1.0, 8.0)
    parameters: ClassVar = {"degrees": 40}


class TestSketch(MechanismContract):
    mechanism = Sketch
    guarantees = (Guarantee(1.0, 1e-6), Guarantee(0.1, 1e-9), Guarantee(3.0, 1e-6))
    refused = (Guarantee(1.0, 0.0),)
    additive = False
    tolerance = 1e-3


class TestSketchAdaptive(MechanismContract):
    mechanism = SketchAdaptive
    guarantees = (Guarantee(1.0, 1e-6),)
    cheap_curve = False
    refused = (Guarantee(1.0, 0.0),)
    additive = False
    tolerance = 1e-3
    ladder = (1.0, 8.0)
    parameters: ClassVar = {"degrees": 1000}


class TestInverseWishart(MechanismContract):
    mechanism = InverseWishart
    guarantees = (Guarantee(1.0, 1e-6), Guarantee(0.1, 1e-9))
    refused = (Guarantee(1.0, 0.0),)
    additive = False
    tolerance = 1e-3
    parameters: ClassVar = {"degrees": 2000}


class TestInverseWishartAdaptive(MechanismContract):
    mechanism = InverseWishartAdaptive
    guarantees = (Guarantee(1.0, 1e-6),)
    cheap_curve = False
    refused = (Guarantee(1.0, 0.0),)
    additive = False
    tolerance = 1e-3
    ladder = (1.0, 8.0)
    parameters: ClassVar = {"degrees": 1000}


class TestInverseNoise(MechanismContract):
    mechanism = InverseNoise
    guarantees = (Guarantee(1.0, 1e-6), Guarantee(0.1, 1e-9))
    refused = (Guarantee(1.0, 0.0),)
    additive = False
    parameters: ClassVar = {"ridge": 200.0}

    def test_a_short_audit_finds_nothing(self, where: PublicFacts) -> None:
        """The published inverse, projected onto what one full row changes in it."""
        mechanism = self.made(where, self.audited)
        row = np.diag([ROW_NORM_SQUARED, 0, 0])
        other = np.diag([0, 0 if where.adjacency == adjacency("add-remove") else ROW_NORM_SQUARED, 0])
        with_row, without = row.astype(np.int64), other.astype(np.int64)
        ridge = np.diag([self.parameters["ridge"] * ROW_NORM_SQUARED] * 3)
        direction = np.linalg.inv(without + ridge) - np.linalg.inv(with_row + ridge)

        def score(drawn: Sequence[Drawn]) -> npt.NDArray[np.float64]:
            inverses = [np.ldexp(d.cells.astype(np.float64), d.exponent) for d in drawn]
            return np.array([[np.sum(direction * inverse) * ROW_NORM_SQUARED] for inverse in inverses])

        found = audit(
            lambda entropy: mechanism.draw(with_row, entropy),
            lambda entropy: mechanism.draw(without, entropy),
            runs=3000,
            delta=self.audited.delta,
            statistic=score,
            entropy=SeededEntropy(13),
        )
        assert found.passes(mechanism.curve(where))
        assert found.epsilon_lower > 0.1, "the audit must have seen something to be worth its name"


class TestEigenvectors(MechanismContract):
    mechanism = Eigenvectors
    guarantees = (Guarantee(1.0), Guarantee(0.1))
    audited = Guarantee(16.0)
    runs = 500
    additive = False


class TestEigenvectorsZcdp(MechanismContract):
    mechanism = EigenvectorsZcdp
    guarantees = (Guarantee(1.0, 1e-6), Guarantee(0.1, 1e-9))
    audited = Guarantee(16.0, 1e-4)
    runs = 500
    refused = (Guarantee(1.0, 0.0),)
    additive = False


class TestDeflation(MechanismContract):
    mechanism = Deflation
    guarantees = (Guarantee(1.0), Guarantee(0.1))
    audited = Guarantee(16.0)
    runs = 500
    additive = False


def test_every_mechanism_is_held_to_the_contract() -> None:
    held = {suite.mechanism for suite in MechanismContract.__subclasses__()}
    assert held == set(MECHANISMS.values())

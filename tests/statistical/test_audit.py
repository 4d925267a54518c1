"""The audit catches what is broken and lets pass what is right. Seeds are fixed: nothing here can flake."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pytest
from scipy import stats

from dpgram import noise
from dpgram.audit import (
    AuditResult,
    JointAudit,
    Separation,
    audit,
    clopper_pearson_lower,
    clopper_pearson_upper,
)
from dpgram.audit.gram import GramRun, audit_mechanism, worst_neighbours
from dpgram.core.noise import Entropy, SeededEntropy
from dpgram.errors import GuaranteeError, MechanismError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import (
    CalibratedGaussian,
    CalibratedMatrixLaplace,
    CalibratedMechanism,
    Drawn,
    Gaussian,
    MatrixLaplace,
    Mechanism,
    PublicFacts,
)
from dpgram.privacy.accountant import Event
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.curves.base import GaussianCurve, PrivacyCurve, PureCurve
from dpgram.privacy.guarantee import GaussianDP, Guarantee, ZeroConcentrated

ADJACENCIES = ["add-remove", "replace-one"]
LOOSE = Guarantee(8.0, 1e-4)
"""Little noise, so that few runs are enough: the code under test is the same at every ε."""


def facts(name: str, width: int = 2) -> PublicFacts:
    return PublicFacts(width=width, adjacency=adjacency(name))


@dataclass(frozen=True)
class Faulty(CalibratedMechanism):
    """Claims what `honest` claims; draws otherwise."""

    kind: ClassVar[type[Mechanism]] = Gaussian

    honest: CalibratedMechanism

    def expected(self, values: npt.NDArray[np.float64]) -> noise.Law:
        return self.honest.expected(values)

    def curve(self, facts: PublicFacts) -> PrivacyCurve:
        return self.honest.curve(facts)

    def event(self, facts: PublicFacts) -> Event:
        return self.honest.event(facts)

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        raise AssertionError("each fault draws in its own way")


@dataclass(frozen=True)
class TooQuiet(Faulty):
    """The whole noise is `factor` times what it should be."""

    factor: float = 0.8

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        if isinstance(self.honest, CalibratedGaussian):
            return CalibratedGaussian(sigma=self.factor * self.honest.sigma).draw(gram, entropy)
        assert isinstance(self.honest, CalibratedMatrixLaplace)
        return CalibratedMatrixLaplace(theta=self.honest.theta / self.factor).draw(gram, entropy)


@dataclass(frozen=True)
class WrongOffDiagonal(Faulty):
    """The off-diagonal cells have a scale of `factor`·σ, where σ/√2 is right."""

    factor: float = 0.5

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        assert isinstance(self.honest, CalibratedGaussian)
        width, sigma = len(gram), self.honest.sigma
        below = np.tril_indices(width, -1)
        added = np.zeros((width, width), dtype=object)
        added[below] = entropy.discrete_gaussian(self.factor * sigma, len(below[0]))
        added = added + added.T
        added[np.diag_indices(width)] = entropy.discrete_gaussian(sigma, width)
        return Drawn(cells=gram.astype(object) + added, noise=noise.SymmetricGaussian(sigma=sigma))


@dataclass(frozen=True)
class OneSided(Faulty):
    """G + W with W ~ Wishart(I/(2θ), d+1), as printed by Park and Welling: infinite loss off the cone."""

    def draw(self, gram: npt.NDArray[np.int64], entropy: Entropy) -> Drawn:
        assert isinstance(self.honest, CalibratedMatrixLaplace)
        width, theta = len(gram), self.honest.theta
        z = entropy.generator().standard_normal((width + 1, width))
        added = np.rint(z.T @ z / (2.0 * theta)).astype(object)
        return Drawn(cells=gram.astype(object) + added, noise=self.honest.law(width))


def run(
    mechanism: CalibratedMechanism, where: PublicFacts, runs: int, *, delta: float = 0.0, seed: int = 1
) -> JointAudit:
    return audit_mechanism(mechanism, where, runs=runs, delta=delta, entropy=SeededEntropy(seed))


@pytest.mark.parametrize("relation", ADJACENCIES)
def test_gaussian_noise_passes_and_the_bound_is_close(relation: str) -> None:
    where = facts(relation)
    mechanism = Gaussian().calibrated(LOOSE, where)
    found = run(mechanism, where, 3000, delta=LOOSE.delta)
    curve = mechanism.curve(where)
    assert isinstance(curve, GaussianCurve)
    assert found.passes(curve)
    assert found.passes(LOOSE)
    assert found.passes(GaussianDP(curve.mu))
    assert found.passes(ZeroConcentrated(0.5 * curve.mu**2))
    assert 0.75 * curve.mu < found.mu_lower <= curve.mu
    assert 0.0 < found.epsilon_lower <= LOOSE.epsilon


@pytest.mark.parametrize("relation", ADJACENCIES)
def test_gaussian_noise_a_fifth_too_small_is_caught(relation: str) -> None:
    where = facts(relation)
    quiet = TooQuiet(Gaussian().calibrated(LOOSE, where))
    assert not run(quiet, where, 3000).passes(quiet.curve(where))


@pytest.mark.parametrize(
    ("relation", "factor", "caught"),
    [
        ("add-remove", 0.5, True),
        ("replace-one", 0.5, True),
        ("add-remove", math.sqrt(0.5), False),
        ("add-remove", 1.0, False),
    ],
)
def test_a_wrong_off_diagonal_variance_is_caught(relation: str, factor: float, caught: bool) -> None:
    """Too little is caught; the right scale passes, and so does the wasteful σ of an i.i.d. triangle."""
    where = facts(relation, width=4)
    shaped = WrongOffDiagonal(Gaussian().calibrated(LOOSE, where), factor)
    assert run(shaped, where, 5000 if caught else 1500).passes(shaped.curve(where)) == (not caught)


def test_a_sensitivity_for_the_wrong_adjacency_is_caught() -> None:
    replace, add = facts("replace-one"), facts("add-remove")
    gaussian, laplace = Gaussian().calibrated(LOOSE, add), MatrixLaplace().calibrated(Guarantee(2.0), add)
    assert not run(gaussian, replace, 2000).passes(gaussian.curve(add))
    assert not run(laplace, replace, 3000).passes(laplace.curve(add))


@pytest.mark.parametrize("relation", ADJACENCIES)
def test_matrix_laplace_noise_passes(relation: str) -> None:
    where = facts(relation)
    mechanism = MatrixLaplace().calibrated(Guarantee(2.0), where)
    found = run(mechanism, where, 2000)
    assert found.passes(Guarantee(2.0))
    assert found.passes(mechanism.curve(where))
    assert 0.4 < found.epsilon_lower <= 2.0


def test_matrix_laplace_noise_a_fifth_too_small_is_caught() -> None:
    """One column: half of all outcomes lie where the whole ε is spent."""
    where, guarantee = facts("add-remove", width=1), Guarantee(3.0)
    mechanism = MatrixLaplace().calibrated(guarantee, where)
    assert not run(TooQuiet(mechanism), where, 8000).passes(guarantee)
    honest = run(mechanism, where, 3000)
    assert honest.passes(guarantee)
    assert honest.epsilon_lower > 2.0


@pytest.mark.parametrize("relation", ADJACENCIES)
@pytest.mark.parametrize("width", [1, 3])
def test_one_sided_wishart_noise_is_caught(relation: str, width: int) -> None:
    """Calibrated to ε' = 1 in the printed way, it has δ(ε) = 1 − e^(−ε') for every ε ≥ ε' (add/remove)."""
    where = facts(relation, width)
    printed = OneSided(MatrixLaplace().calibrated(Guarantee(1.0), where))
    found = run(printed, where, 3000)
    assert not found.passes(PureCurve(1.0))
    assert not found.passes(Guarantee(2.0, 0.1))
    assert found.epsilon_lower > 3.0
    if relation == "add-remove":
        truth = 1.0 - math.exp(-1.0)
        assert truth - 0.2 < max(result.delta_lower(2.0) for _, result in found.results) <= truth


@pytest.mark.full
@pytest.mark.parametrize("relation", ADJACENCIES)
def test_the_default_guarantee_at_length(relation: str) -> None:
    """(1, 10⁻⁶) and three columns: μ = 0.237 needs many runs before a fifth less noise shows."""
    guarantee, where = Guarantee(1.0, 1e-6), facts(relation, width=3)
    mechanism = Gaussian().calibrated(guarantee, where)
    assert run(mechanism, where, 90_000, delta=1e-6).passes(mechanism.curve(where))
    assert not run(TooQuiet(mechanism), where, 90_000, delta=1e-6).passes(mechanism.curve(where))


@pytest.mark.full
def test_matrix_laplace_at_length_under_replace_one() -> None:
    """Two columns: the whole ε is spent only far out, where few runs end."""
    where, guarantee = facts("replace-one"), Guarantee(3.0)
    mechanism = MatrixLaplace().calibrated(guarantee, where)
    pair = worst_neighbours(where)[0]
    for tested, runs, caught in ((mechanism, 60_000, False), (TooQuiet(mechanism), 200_000, True)):
        found = audit(
            GramRun(mechanism=tested, gram=pair.a),
            GramRun(mechanism=tested, gram=pair.b),
            runs=runs,
            statistic=pair.measure,
            names=pair.statistics,
            confidence=0.99,
            entropy=SeededEntropy(5),
        )
        assert found.passes(guarantee) == (not caught)


def test_the_number_of_workers_does_not_matter() -> None:
    where = facts("add-remove")
    mechanism = Gaussian().calibrated(LOOSE, where)
    one, two = (
        audit_mechanism(mechanism, where, runs=1100, entropy=SeededEntropy(3), workers=workers)
        for workers in (1, 2)
    )
    assert one == two


def randomised_response(truth: bool, epsilon: float, entropy: Entropy) -> float:
    keep = int.from_bytes(entropy.random_bytes(2), "big") < 65536.0 / (1.0 + math.exp(-epsilon))
    return float(truth == keep)


def audited_response(epsilon: float, seed: int, runs: int, confidence: float) -> AuditResult:
    return audit(
        lambda entropy: randomised_response(True, epsilon, entropy),
        lambda entropy: randomised_response(False, epsilon, entropy),
        runs=runs,
        statistic=list,
        confidence=confidence,
        entropy=SeededEntropy(seed),
    )


def test_bounds_hold_as_often_as_they_say() -> None:
    """Randomised response at ε = 1, 90% confidence, 120 audits: at most a tenth of the bounds fail.

    Twelve failures are expected at most; 25 or more would happen with probability below 10⁻³.
    """
    found = [audited_response(1.0, seed, 400, 0.9) for seed in range(120)]
    assert sum(result.epsilon_lower > 1.0 + 1e-4 for result in found) < 25
    assert np.median([result.epsilon_lower for result in found]) > 0.5


def test_more_runs_come_closer() -> None:
    bounds = [audited_response(1.0, 7, runs, 0.999).epsilon_lower for runs in (200, 2000, 20_000)]
    assert bounds == sorted(bounds)
    assert 0.9 < bounds[-1] <= 1.0


def test_clopper_pearson_is_the_textbook_interval() -> None:
    for hits, runs, error in ((0, 10, 0.01), (3, 10, 0.025), (10, 10, 0.001), (17, 400, 1e-4)):
        interval = stats.binomtest(hits, runs).proportion_ci(1.0 - 2.0 * error, "exact")
        assert float(clopper_pearson_lower(hits, runs, error)) == pytest.approx(interval.low, abs=1e-12)
        assert float(clopper_pearson_upper(hits, runs, error)) == pytest.approx(interval.high, rel=1e-9)


def test_a_separation_speaks_for_its_complement_too() -> None:
    seen = Separation(
        statistic="x",
        event="above",
        threshold=1.0,
        likelier="a",
        hits=(99, 50),
        runs=100,
        p_at_least=0.98,
        q_at_most=0.6,
    )
    assert seen.epsilon_at_least(0.0) == pytest.approx(math.log(0.4 / 0.02))
    assert seen.delta_at_least(1.0) == pytest.approx(0.4 - math.e * 0.02)
    assert seen.delta_at_least(50.0) == 0.0
    assert "99 times in 100" in str(seen)


@pytest.mark.parametrize("relation", ADJACENCIES)
@pytest.mark.parametrize("width", [1, 2, 3, 5, 8])
def test_neighbours_are_neighbours_and_nearly_the_worst(relation: str, width: int) -> None:
    where = facts(relation, width)
    limit = where.adjacency.gram_frobenius(float(ROW_NORM_SQUARED))
    for pair in worst_neighbours(where, common=np.eye(width, dtype=np.int64)):
        step = (pair.a - pair.b).astype(float)
        assert np.linalg.norm(step) <= limit
        if width > 1 or relation == "add-remove":
            assert np.linalg.norm(step) > (1.0 - 1e-3) * limit
        assert np.linalg.matrix_rank(step) <= where.adjacency.units_changed
        assert len(pair.statistics) == len(set(pair.statistics))


def test_refusals() -> None:
    where = facts("add-remove")
    mechanism = Gaussian().calibrated(LOOSE, where)
    with pytest.raises(GuaranteeError, match="too few runs"):
        run(mechanism, where, 10)
    with pytest.raises(GuaranteeError, match="delta"):
        run(mechanism, where, 200, delta=1.0)
    with pytest.raises(GuaranteeError, match="confidence"):
        audit_mechanism(mechanism, where, runs=200, confidence=1.0)
    with pytest.raises(GuaranteeError, match="differ in number"):
        audit(
            lambda entropy: 0.0,
            lambda entropy: 0.0,
            runs=200,
            statistic=list,
            names=["one", "two"],
        )
    with pytest.raises(GuaranteeError, match="finite"):
        audit(lambda entropy: math.nan, lambda entropy: 0.0, runs=200, statistic=list)
    inverse = Drawn(
        cells=np.zeros((2, 2), dtype=object), noise=noise.SymmetricGaussian(sigma=1.0), kind="inverse"
    )
    with pytest.raises(MechanismError, match="noisy Gram matrix"):
        worst_neighbours(where)[0].measure([inverse])


def test_a_constant_output_shows_nothing() -> None:
    found = audit(lambda entropy: 1.0, lambda entropy: 1.0, runs=200, statistic=list)
    assert found.epsilon_lower == 0.0
    assert found.mu_lower == 0.0
    assert found.passes(Guarantee(1e-6))
    assert "μ ≥ 0.000" in str(found)

"""What an ideal audit could prove, and audits whose event is foreseen: simulated scores, fixed seeds."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from assurance.foreseen import audit_foreseen_scores
from assurance.ideal import WANTED, gaussian_ideal, ideal_of_scores
from assurance.stage import Stage

from dpgram.audit import JointAudit
from dpgram.core.noise import simulation
from dpgram.privacy.guarantee import GaussianDP

MU, RUNS = 3.15, 2_000


def audited(mu: float, runs: int, seed: int = 1) -> JointAudit:
    """Log-likelihood ratios of a claimed μ, of noise that may be another."""
    generator = simulation(seed)
    a, b = (MU * generator.normal(side * mu / 2.0, 1.0, (runs, 1)) for side in (1.0, -1.0))
    return audit_foreseen_scores(a, b, names=("ratio",), thresholds=(0.0,), delta=1e-4, confidence=0.999)


def test_an_ideal_audit_proves_more_with_more_runs_and_never_all() -> None:
    found = [gaussian_ideal(MU, runs=runs, delta=1e-4, confidence=0.999).mu for runs in (300, 3_000, 300_000)]
    assert found == sorted(found)
    assert found[-1] < MU
    assert found[-1] > 0.98 * MU
    assert gaussian_ideal(MU, runs=RUNS, delta=1e-4, confidence=0.99999).mu < found[1]


def test_drawn_scores_tell_what_the_law_does() -> None:
    generator = simulation(2)
    a, b = (generator.normal(side * MU**2 / 2.0, MU, 200_000) for side in (1.0, -1.0))
    drawn = ideal_of_scores(a, b, runs=RUNS, delta=1e-4, confidence=0.999)
    exact = gaussian_ideal(MU, runs=RUNS, delta=1e-4, confidence=0.999)
    assert drawn.mu == pytest.approx(exact.mu, rel=0.01)
    assert drawn.epsilon == pytest.approx(exact.epsilon, rel=0.03)
    assert abs(exact.thresholds[-1]) < 0.5  # for μ the middle is best


def test_a_foreseen_event_proves_most_and_finds_a_tenth_of_the_noise_missing() -> None:
    honest = audited(MU, RUNS)
    assert honest.passes(GaussianDP(MU))
    assert honest.mu_lower > WANTED * MU
    assert not audited(MU / 0.9, 4 * RUNS).passes(GaussianDP(MU))
    assert audited(MU, 4 * RUNS).passes(GaussianDP(MU))


@pytest.mark.parametrize("law", ["gaussian", "laplace", "matrix-laplace"])
def test_simulated_ratios_are_those_of_what_is_seen(
    law: Literal["gaussian", "laplace", "matrix-laplace"],
) -> None:
    """The same mean as ratios of draws put through `log_ratio`, within 5 errors; the sides differ."""
    generator, scale, draws = simulation(3), 2.0, 4_000
    one = np.array([[3.0, 1.0], [1.0, 2.0]]) if law == "matrix-laplace" else np.array([3.0, 1.0, -2.0])
    other = np.zeros_like(one)
    seen = []
    for _ in range(draws):
        if law == "gaussian":
            noise = generator.normal(0.0, scale, one.shape)
        elif law == "laplace":
            noise = generator.laplace(0.0, scale, one.shape)
        else:
            z = generator.standard_normal((2, 3, 2))
            noise = 0.5 * scale * (z[0].T @ z[0] - z[1].T @ z[1])
        seen.append(Stage(seen=one + noise, one=one, other=other, scale=scale, law=law))
    ratios = np.array([stage.log_ratio for stage in seen])
    mine, theirs = seen[0].simulated(draws, generator)
    error = np.sqrt((ratios.var() + mine.var()) / draws)
    assert abs(ratios.mean() - mine.mean()) < 5.0 * error
    assert abs(ratios.mean() - theirs.mean()) > 10.0 * error
    sizes, cells = np.array([stage.left_over for stage in seen]).sum(axis=0)
    assert sizes / cells == pytest.approx(1.0, abs=0.06)

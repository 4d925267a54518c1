"""Nominal 95% intervals of correlations cover, and the simulation would notice if they did not.

Seeds are fixed, so these tests cannot flake. The full form is benchmarks/correlation_coverage.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.correlation_coverage import GROUPS, SCHEMA, below, simulate, table
from benchmarks.interval_coverage import noise_of

from dpgram.analysis.association import correlations
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.noise import SymmetricGaussian


def test_coverage_of_both_kinds_and_mechanisms() -> None:
    cells = simulate(rows=20_000, epsilons=[1.0], tables=30, seed=5)
    for key, cell in cells.items():
        assert not any(below(cell, group) for group in GROUPS), (key, cell.coverage)
        assert cell.listed == 0
    hits = [hit for cell in cells.values() for group in GROUPS for hit in cell.hits[group]]
    assert len(hits) > 3_000
    assert 0.935 <= np.mean(hits) <= 0.965


def test_borderline_columns_still_cover() -> None:
    """Where a column passes in some releases only, those that pass have a noise that made it large."""
    cells = simulate(rows=2_000, epsilons=[1.4], tables=50, seed=6)
    for key, cell in cells.items():
        assert not any(below(cell, group) for group in GROUPS), (key, cell.coverage)
    shares = [len(cell.hits["two numbers"]) / cell.asked["two numbers"] for cell in cells.values()]
    assert 0.0 < min(shares) < 0.9


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.75, False), (1.4, False)])
def test_the_simulation_notices_a_wrong_noise_scale(factor: float, accepted: bool) -> None:
    rng = np.random.default_rng(3)
    noise = noise_of(SCHEMA, "gaussian", 1.0)
    declared = EncodedNoise.of(SymmetricGaussian(sigma=noise.diagonal_sd * factor))
    rows = table(20_000, rng)
    chosen = [0, 1, 2, 3, 4, 9]
    truth = np.corrcoef(rows[:, 1:].T[chosen])
    above = np.triu_indices(len(chosen), 1)
    hits = []
    for _ in range(80):
        moments = Moments(
            gram=noise.redraw(rows.T @ rows, rng),
            schema=SCHEMA,
            noise=declared,
            radius=SCHEMA.max_norm_squared**0.5,
        )
        low, high = (ends[np.ix_(chosen, chosen)] for ends in correlations(moments, kind="table").conf_int())
        hits.append(((low <= truth) & (truth <= high))[above])
    assert (0.93 <= np.mean(hits) <= 0.97) == accepted

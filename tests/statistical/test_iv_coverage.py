"""Nominal 95% intervals of instrumental variables cover, with strong and weak instruments.

Seeds are fixed, so these tests cannot flake. The full form is benchmarks/iv_coverage.py.
"""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.interval_coverage import noise_of
from benchmarks.iv_coverage import COEFFICIENT, SCHEMA, promised, simulate, table

from dpgram.analysis.iv import iv
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.noise import SymmetricGaussian


def test_coverage_with_strong_and_weak_instruments() -> None:
    cells = simulate(rows=2_000, epsilons=[1.0], strengths=["strong", "weak"], tables=120, seed=4)
    hits: list[bool] = []
    for key, cell in cells.items():
        assert not any(cell.below(answer) for answer in promised(key)), (key, cell.hits)
        hits += [hit for answer in promised(key) for hit in cell.hits[answer]]
        if key[3] == "weak":
            assert cell.unbounded > 0.5 * cell.releases
            assert len(cell.hits["2sls"]) < 0.1 * cell.releases
    assert 0.93 <= np.mean(hits) <= 0.97


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.6, False)])
def test_the_simulation_notices_a_wrong_noise_scale(factor: float, accepted: bool) -> None:
    rng = np.random.default_rng(10)
    noise = noise_of(SCHEMA, "gaussian", 1.0)
    declared = EncodedNoise.of(SymmetricGaussian(sigma=noise.diagonal_sd * factor))
    hits = []
    for _ in range(400):
        rows = table(2_000, "strong", rng)
        moments = Moments(
            gram=noise.redraw(rows.T @ rows, rng),
            schema=SCHEMA,
            noise=declared,
            radius=SCHEMA.max_norm_squared**0.5,
        )
        found = iv(moments, "y", "x", ["z1", "z2"], ["w"])
        low, high = found.conf_int()["x"]
        hits += [low <= COEFFICIENT <= high, COEFFICIENT in found.anderson_rubin()]
    assert (0.93 <= np.mean(hits) <= 0.97) == accepted

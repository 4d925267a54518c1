"""Intervals of a release cover the estimand that they name.

The short form of benchmarks/adaptive_coverage.py. Seeds are fixed, so these tests cannot flake. With 30
tables, two models and three ε the standard error of a coverage is about 0.8 points: intervals 30% too short
(true coverage 83%) are found out.
"""

from __future__ import annotations

import numpy as np
import pytest

import adaptive_coverage
from adaptive_coverage import Cell, Coverage, Tally, release_transform, simulate
from bounded_influence import References, Truth, World
from dpgram import Release
from seeded import adaptive_is_built, many_releases, seeded_release

CELL = Cell(World("normal", "exponential", 5), 20_000)


@pytest.fixture(scope="module")
def truth() -> Truth:
    return Truth(CELL.world, References.simulate(CELL.world, 1_000_000, 3), 100_000, 4)


def pooled(truth: Truth) -> dict[str, list[Tally]]:
    with many_releases():
        tallies = simulate(CELL, truth, 0, 30, adaptive=adaptive_is_built())
    return {kind: [tally for tally in tallies if tally.estimand == kind] for kind in ("named", "OLS")}


def test_coverage(truth: Truth) -> None:
    found = pooled(truth)
    named = Coverage.of(found["named"])
    assert 0.93 < named.coverage < 0.975
    assert named.truth < 0.15
    ols = Coverage.of(found["OLS"])
    assert ols.given <= named.given
    assert not ols.coverage < 0.90  # where it is given at all


def test_intervals_that_are_too_short_are_noticed(truth: Truth, monkeypatch: pytest.MonkeyPatch) -> None:
    full = adaptive_coverage.ends_of

    def shorter(
        release: Release, world: World, model: str, estimand: adaptive_coverage.Estimand
    ) -> np.ndarray:
        ends = full(release, world, model, estimand)
        middle = ends.mean(axis=1, keepdims=True)
        return middle + 0.7 * (ends - middle)

    monkeypatch.setattr(adaptive_coverage, "ends_of", shorter)
    assert Coverage.of(pooled(truth)["named"]).coverage < 0.90


def test_transform_is_that_of_the_rows_that_were_added_up() -> None:
    """With little noise the published matrix is Σ w² u uᵀ of the rows as this benchmark turns them."""
    world = World("dummies", "normal", 5)
    rows = world.rows(100_000, np.random.default_rng(1))
    release = seeded_release(
        world.table(rows), world.schema, epsilon=10.0, delta=1e-6, seed=1, adaptive=adaptive_is_built()
    )
    transform, radius = release_transform(release)
    turned = rows @ transform.T
    length = np.linalg.norm(turned, axis=1, keepdims=True)
    turned *= np.minimum(1.0, radius / length)
    found = release.measured_matrix if hasattr(release, "measured_matrix") else release.matrix()
    np.testing.assert_allclose(found, turned.T @ turned, rtol=2e-3, atol=2e-3 * len(rows))

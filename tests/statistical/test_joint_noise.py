"""The joint release has the noise it states, and the audit believes it; less noise is caught by both.

Every test has a fixed seed and rejects at α = 10⁻⁶: nothing here can flake.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import pytest
from scipy import stats

from dpgram.audit import audit
from dpgram.core.noise import SeededEntropy
from dpgram.core.units import PolicyCounts
from dpgram.estimators import PrivateRidge
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.curves.base import GaussianCurve
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.target import MeasuredTarget, TargetedGaussian
from dpgram.sums.moments import ExactMoments
from dpgram.sums.target import TargetBounds

ALPHA = 1e-6
LOOSE = Guarantee(8.0, 1e-4)
"""Little noise, so that few runs are enough: the code under test is the same at every ε."""
WIDTH, SIDE = 2, 1 << 14
REACH = TargetBounds(target=WIDTH, features=(0, 1), x_squared=SIDE**2, y=SIDE, unit=1.0 / SIDE)


def law(relation: str, guarantee: Guarantee = LOOSE) -> TargetedGaussian:
    return TargetedGaussian.calibrated(guarantee, REACH, adjacency(relation))


def quieter(honest: TargetedGaussian, factor: float) -> TargetedGaussian:
    return replace(
        honest,
        sigma_xx=factor * honest.sigma_xx,
        sigma_xy=factor * honest.sigma_xy,
        sigma_yy=factor * honest.sigma_yy,
    )


def sums(*rows: tuple[int, int, int]) -> ExactMoments:
    table = np.array(rows, dtype=np.int64).reshape(-1, 3)
    return ExactMoments(table.T @ table, PolicyCounts(rows_used=len(rows)))


def blocks(noisy: MeasuredTarget) -> list[float]:
    first, below, last = noisy.xx
    return [float(v) for v in (first, last, below, *noisy.xy, noisy.yy)]


def test_every_cell_has_the_stated_deviation_and_none_hangs_on_another() -> None:
    """Σ(n/σ)² ~ χ² for each kind of cell; a deviation 5% off is rejected for each."""
    honest, zero, draws, source = law("add-remove"), sums((0, 0, 0)), 20_000, SeededEntropy(11)
    cells = np.array([blocks(honest.draw(zero, source)) for _ in range(draws)])
    off = honest.sigma_xx / math.sqrt(2.0)
    scales = [honest.sigma_xx, honest.sigma_xx, off, honest.sigma_xy, honest.sigma_xy, honest.sigma_yy]
    for factor, accepted in ((1.0, True), (0.95, False), (1.05, False)):
        statistic = ((cells / (factor * np.array(scales))) ** 2).sum(axis=0)
        p = 2.0 * np.minimum(stats.chi2.cdf(statistic, draws), stats.chi2.sf(statistic, draws))
        assert ((p > ALPHA) == accepted).all()
    correlation = np.corrcoef(cells.T)[np.tril_indices(6, -1)]
    assert np.abs(correlation).max() < stats.norm.isf(ALPHA / 30.0) / math.sqrt(draws)


@dataclass(frozen=True)
class Neighbours:
    """Exact sums of two neighbouring tables; the projection on their difference is the likelihood ratio."""

    a: ExactMoments
    b: ExactMoments

    def measure(self, honest: TargetedGaussian, drawn: Sequence[MeasuredTarget]) -> np.ndarray:
        """The weighted projection, and each cell in units of its noise."""
        off = honest.sigma_xx / math.sqrt(2.0)
        scales = np.array(
            [honest.sigma_xx, honest.sigma_xx, off, honest.sigma_xy, honest.sigma_xy, honest.sigma_yy]
        )
        step = np.array(_cells(self.a)) - np.array(_cells(self.b))
        cells = np.array([blocks(one) for one in drawn]) / scales
        return np.column_stack([cells @ (step / scales), cells])


def _cells(exact: ExactMoments) -> list[float]:
    return [float(v) for v in (exact.xx[0, 0], exact.xx[1, 1], exact.xx[1, 0], *exact.xy, exact.yy)]


PAIRS = {
    "add-remove": Neighbours(sums((SIDE, 0, SIDE)), sums()),
    "replace-one": Neighbours(sums((SIDE, 0, SIDE)), sums((0, SIDE, SIDE))),
}


@pytest.mark.parametrize("relation", PAIRS)
@pytest.mark.parametrize(("factor", "passes"), [(1.0, True), (0.7, False)])
def test_the_audit_passes_ours_and_catches_noise_thirty_per_cent_too_small(
    relation: str, factor: float, passes: bool
) -> None:
    honest, pair = law(relation), PAIRS[relation]
    tested = quieter(honest, factor)
    found = audit(
        partial(tested.draw, pair.a),
        partial(tested.draw, pair.b),
        runs=3000,
        delta=LOOSE.delta,
        statistic=partial(pair.measure, honest),
        entropy=SeededEntropy(5),
    )
    assert found.passes(GaussianCurve(honest.mu)) == passes
    if passes:
        assert found.passes(LOOSE)
        assert found.mu_lower > 0.6 * honest.mu


@pytest.mark.parametrize("mechanism", ["joint-gaussian", "matrix-laplace"])
def test_intervals_of_the_ridge_cover(mechanism: str) -> None:
    """95% intervals over fresh tables and fresh noise: within 4 standard errors of their level."""
    beta, hits, made = np.array([1.0, -2.0, 0.5]), 0, 0
    generator = np.random.default_rng(8)
    for seed in range(70):
        X = generator.uniform(-1, 1, (20_000, 3))
        y = 3.0 + X @ beta + generator.normal(0, 1, len(X))
        ridge = PrivateRidge(
            2.0,
            1e-6,
            bounds=(-1, 1),
            target_bounds=(-5, 11),
            mechanism=mechanism,
            entropy=SeededEntropy(seed),
        ).fit(X, y)
        assert ridge.conf_int_ is not None
        low, high = ridge.conf_int_.T
        hits += int(((low <= beta) & (beta <= high)).sum())
        made += len(beta)
    assert abs(hits / made - 0.95) < 4.0 * math.sqrt(0.95 * 0.05 / made)

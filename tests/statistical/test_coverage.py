"""Nominal 95% intervals cover between 93% and 97%, and the simulation would notice if they did not.

Seeds are fixed, so these tests cannot flake. With 100 tables and six coefficients the standard error of a
coverage is about 0.9 points: intervals 20% too short (true coverage 88%) or 30% too long (99%) are found out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from benchmarks.interval_coverage import (
    EPSILONS,
    ROWS,
    WIDTHS,
    Cell,
    Key,
    Mixed,
    Uniform,
    World,
    noise_of,
    simulate,
)
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram.analysis.design import build_design
from dpgram.analysis.inference import at_hypothesis, infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.regress import regress
from dpgram.analysis.trust import LOST, REST_LIMIT
from dpgram.analysis.unshrunken import solve
from dpgram.noise import SymmetricGaussian

SEED = 11


def checked(cells: dict[Key, Cell]) -> None:
    for key, cell in cells.items():
        assert cell.verdict in ("ok", "warned", "refused"), (key, cell.coverage, cell.refused)


@pytest.mark.parametrize(
    ("world", "epsilon"), [(Uniform(2_000, 5), 1.0), (Uniform(20_000, 5), 0.3), (Mixed(4_000), 1.0)]
)
def test_coverage_of_both_kinds_and_mechanisms(world: World, epsilon: float) -> None:
    cells = simulate(world, epsilons=[epsilon], tables=100, draws=0, seed=SEED)
    checked(cells)
    assert all(cell.verdict == "ok" and cell.refused == 0 for cell in cells.values())


@pytest.mark.full
@pytest.mark.parametrize("features", WIDTHS)
@pytest.mark.parametrize("rows", ROWS)
def test_coverage_over_the_whole_grid(rows: int, features: int) -> None:
    checked(simulate(Uniform(rows, features), epsilons=EPSILONS, tables=300, draws=0, seed=SEED))


@pytest.mark.parametrize(("factor", "accepted"), [(1.0, True), (0.8, False), (1.3, False)])
def test_the_simulation_notices_a_wrong_noise_scale(factor: float, accepted: bool) -> None:
    """Declare a noise scale that is not the true one: coverage leaves the band on the side it must."""
    world, rng = Uniform(2_000, 5), np.random.default_rng(SEED)
    noise = noise_of(world.schema, "gaussian", 1.0)
    declared = EncodedNoise.of(SymmetricGaussian(sigma=noise.diagonal_sd * factor))
    hits = []
    for _ in range(150):
        rows, _, _ = world.table(rng)
        gram = rows.T @ rows
        truth = np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])
        moments = Moments(gram=noise.redraw(gram, rng), schema=world.schema, noise=declared, radius=7**0.5)
        ends = infer(moments, build_design(moments, "y"), "table").conf_int()
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    coverage = float(np.mean(hits))
    assert (0.93 <= coverage <= 0.97) == accepted
    if not accepted:
        assert (coverage > 0.95) == (factor > 1)


def test_naive_formula_would_fail_where_the_corrected_one_holds() -> None:
    """Without the correction for the inverse of a noisy matrix, coverage is off at κ ≈ 1.14."""
    world, rng = Uniform(2_000, 20), np.random.default_rng(SEED)
    noise = noise_of(world.schema, "gaussian", 3.0)
    corrected, naive = [], []
    for _ in range(60):
        rows, _, _ = world.table(rng)
        gram = rows.T @ rows
        truth = np.linalg.solve(gram[:-1, :-1], gram[:-1, -1])
        noisy = noise.redraw(gram, rng)
        moments = Moments(gram=noisy, schema=world.schema, noise=noise, radius=22**0.5)
        ends = infer(moments, build_design(moments, "y"), "table").conf_int()
        corrected.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        inverse = np.linalg.inv(noisy[:-1, :-1])
        theta = inverse @ noisy[:-1, -1]
        scores = noise.offdiagonal_sd**2 * ((1 + theta @ theta) * np.eye(21) + np.outer(theta, theta))
        errors = np.sqrt(np.diagonal(inverse @ scores @ inverse))
        naive.append(np.abs(theta - truth) <= 1.96 * errors)
    assert 0.93 <= np.mean(corrected) <= 0.97
    assert np.mean(naive) > 0.97


def test_hopeless_noise_is_refused_in_plain_words() -> None:
    world, rng = Uniform(2_000, 20), np.random.default_rng(SEED)
    rows, _, _ = world.table(rng)
    noise = noise_of(world.schema, "gaussian", 0.3)
    moments = Moments(gram=noise.redraw(rows.T @ rows, rng), schema=world.schema, noise=noise, radius=22**0.5)
    found = infer(moments, build_design(moments, "y"))
    assert found.refusal is not None
    assert "noise" in found.refusal
    calm = infer(replace(moments, gram=rows.T @ rows), build_design(moments, "y"))
    assert calm.inflation < found.inflation


def test_length_is_within_a_tenth_of_the_bootstraps() -> None:
    cells = simulate(Uniform(20_000, 5), epsilons=[0.3], tables=2, draws=300, seed=SEED)
    assert len(cells) == 4
    for key, cell in cells.items():
        assert len(cell.ratios) == 2, key
        assert all(abs(ratio - 1) < 0.1 for ratio in cell.ratios), key


def test_joint_tests_have_their_level_and_power() -> None:
    """Region has no effect, smoking has: of 200 tables the 5% test rejects 2–9% and all of them."""
    nothing, smoking = [], []
    for seed in range(200):
        moments = exact_moments(insurance_schema(), insurance(3000, seed), sigma=20.0, seed=seed)
        fit = regress(moments, "charges", ["age", "bmi", "smoker", "region"])
        nothing.append(fit.f_test("region").pvalue)
        smoking.append(fit.f_test("smoker").pvalue)
    assert 0.02 <= np.mean(np.array(nothing) < 0.05) <= 0.09
    assert 0.4 <= np.mean(np.array(nothing) < 0.5) <= 0.6
    assert np.mean(np.array(smoking) < 0.05) == 1.0


@pytest.mark.parametrize("features", [5, 12])
def test_pivots_keep_their_quantiles_under_heavy_noise(features: int) -> None:
    """Near refusal the 95% point of |t| is closer to 1.96 than with the variance at the estimate.

    All coefficients of those among 2,000 releases of an isotropic design that are given intervals; slopes
    of total size 1.
    """
    rng, variance = np.random.default_rng(SEED), 0.12 / features
    slopes = rng.normal(size=features)
    slopes /= np.linalg.norm(slopes)
    gram = np.block([[np.eye(features), slopes[:, None]], [slopes[None, :], np.array([[1.0]])]])
    noise = EncodedNoise.of(SymmetricGaussian(sigma=(2 * variance) ** 0.5))
    axes, each = np.eye(features + 1), np.eye(features)
    followed, fixed = [], []
    for _ in range(2_000):
        solution = solve(noise.redraw(gram, rng), axes[:, :-1], axes[-1], noise)
        if solution.inflation > REST_LIMIT or solution.shares.max() > LOST:
            continue
        covariance = solution.privacy_covariance
        level, slope, curvature = at_hypothesis(solution, each, covariance, variance**0.5)
        gap = slopes - solution.theta
        followed.append(gap / np.sqrt(level + slope * gap + curvature * gap**2))
        fixed.append(gap / np.sqrt(np.diagonal(covariance)))
    points = [float(np.quantile(np.abs(pivots), 0.95)) / 1.96 for pivots in (followed, fixed)]
    assert 0.93 < points[0] < 1.05
    assert abs(points[0] - 1.0) < abs(points[1] - 1.0)

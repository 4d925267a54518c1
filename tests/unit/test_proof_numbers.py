"""Statements of proofs/ that no other test puts numbers to: tails, losses, and what floats can do."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from flint import acb_mat, ctx, fmpq, fmpq_mat, fmpz_mat
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms._wishart_family import ratio_of, ridge_for
from dpgram.mechanisms.base import PublicFacts
from dpgram.mechanisms.laplace import DIAGONAL_WEIGHT, CalibratedLaplace, Laplace
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.curves.inverse_gram import GRID_BITS, inverse_exponent, inverse_sensitivity
from dpgram.privacy.curves.spectral import on_grid, rounding_slack
from dpgram.privacy.guarantee import Guarantee

SEEDS = range(6)


def lattice_gram(seed: int, width: int, rows: int) -> np.ndarray:
    """An exact integer Gram matrix of rows of full length, as Python integers."""
    draw = np.random.default_rng(seed)
    raw = draw.standard_normal((rows, width)) * np.geomspace(1.0, 1e-3, width)
    lattice = np.trunc(raw / np.linalg.norm(raw, axis=1, keepdims=True) * math.sqrt(ROW_NORM_SQUARED) * 0.999)
    integers = lattice.astype(np.int64).astype(object)
    return np.asarray(integers.T @ integers)


@pytest.mark.parametrize("scale", [0.3, 1.0, 5.0])
@pytest.mark.parametrize("count", [1, 3])
def test_the_moment_generating_function_is_below_that_of_chi_squared(scale: float, count: int) -> None:
    """E e^{λk²/2s²} ≤ (1 − λ)^{−1/2} for each cell: proofs/gaussian.md#gaussian-lemma-2."""
    k = np.arange(-400, 401)
    weights = np.exp(-0.5 * (k / scale) ** 2)
    for rate in np.linspace(0.05, 0.95, 19):
        tilted = np.exp(-0.5 * (1.0 - rate) * (k / scale) ** 2)
        mean = float(tilted.sum() / weights.sum())
        assert mean**count <= (1.0 - rate) ** (-0.5 * count) * (1 + 1e-12)


@pytest.mark.parametrize("scale", [0.4, 1.0, 3.0])
@pytest.mark.parametrize("cells", [1, 2, 5])
def test_discrete_gaussians_have_chi_squared_tails(scale: float, cells: int) -> None:
    """P(Σ (k/s)² > (√N + √(2t))²) ≤ e^{−t}, by exact convolution: proofs/gaussian.md#gaussian-lemma-2."""
    reach = math.ceil(12 * scale)
    k = np.arange(-reach, reach + 1)
    mass = np.zeros(reach**2 + 1)
    np.add.at(mass, k * k, np.exp(-0.5 * (k / scale) ** 2))
    mass /= mass.sum()
    law = mass
    for _ in range(cells - 1):
        law = np.convolve(law, mass)
    squares = np.arange(len(law)) / scale**2
    for t in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0):
        tail = float(law[squares > (math.sqrt(cells) + math.sqrt(2 * t)) ** 2].sum())
        assert tail <= math.exp(-t)
    # The bound is not idle: the tails are those of χ² to a small factor at a moderate scale.
    if scale == 3.0:
        assert float(law[squares > cells + 4].sum()) == pytest.approx(chi2.sf(cells + 4, cells), rel=0.25)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(data=st.data())
def test_the_loss_of_entrywise_laplace_is_at_most_epsilon(data: st.DataObject) -> None:
    """ln P/P' at any output, for any pair of neighbours: proofs/laplace.md#laplace-claim."""
    width = data.draw(st.integers(1, 4))
    relation = adjacency(data.draw(st.sampled_from(["add-remove", "replace-one"])))
    epsilon = data.draw(st.floats(0.1, 5.0))
    law = Laplace().calibrated(Guarantee(epsilon), PublicFacts(width=width, adjacency=relation)).law(width)
    length = math.isqrt(ROW_NORM_SQUARED)
    row = np.array(data.draw(st.lists(st.floats(-1, 1), min_size=2 * width, max_size=2 * width)))
    x, y = row[:width], row[width:]
    x, y = (v / max(np.linalg.norm(v), 1e-9) * length for v in (x, y))
    moved = np.outer(x, x) - (np.outer(y, y) if relation.name == "replace-one" else 0.0)
    scales = np.full((width, width), law.scale)
    np.fill_diagonal(scales, law.diagonal_scale)
    # By the triangle inequality no output has a larger ratio than one beyond the change in every cell.
    loss = float(np.tril(np.abs(moved) / scales).sum())
    assert loss <= epsilon * (1 + 1e-9)


@pytest.mark.parametrize("width", [2, 5, 22, 100])
def test_the_weight_of_the_diagonal_is_the_best(width: int) -> None:
    """E|N|_F² at the weight used is the least of all weights: proofs/laplace.md#laplace-weight."""

    def error(weight: float) -> float:
        return (weight + (width - 1) / 2) ** 2 * (width - 1 + 1 / weight**2)

    others = [error(weight) for weight in np.geomspace(0.2, 5.0, 401)]
    assert error(DIAGONAL_WEIGHT) <= min(others)
    assert min(others) == pytest.approx(error(DIAGONAL_WEIGHT), rel=1e-4)
    law = CalibratedLaplace(scale=1e9).law(width)
    assert law.scale / law.diagonal_scale == pytest.approx(DIAGONAL_WEIGHT, rel=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [2, 8, 20])
def test_float_eigenvalues_stay_within_the_slack(width: int, seed: int) -> None:
    """|grid(λ̂) − λ| ≤ half the slack, λ with 90 digits: proofs/eigenvectors.md#eigenvectors-floats."""

    gram = lattice_gram(seed, width, 200)
    scaled = np.asarray(gram.astype(np.float64)) / ROW_NORM_SQUARED
    found = on_grid(np.linalg.eigvalsh(scaled))
    before, ctx.prec = ctx.prec, 300
    try:
        exact = acb_mat(fmpz_mat(gram.tolist())).eig(algorithm="approx")
        truth = sorted(float((value / ROW_NORM_SQUARED).real.mid()) for value in exact)
    finally:
        ctx.prec = before
    assert np.abs(found - np.array(truth)).max() <= 0.5 * rounding_slack(width)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("width", [2, 6, 12])
def test_float_inverses_stay_within_the_slack(width: int, seed: int) -> None:
    """Rounded float inverse against the exact rational one: proofs/inverse-noise.md#inverse-noise-grid."""
    ridge = 50.0 * ROW_NORM_SQUARED
    relation, exponent = adjacency("add-remove"), inverse_exponent(ridge)
    gram = lattice_gram(seed, width, 300)
    shifted = gram + np.diag([int(ridge)] * width).astype(object)
    exact = fmpq_mat(fmpz_mat(shifted.tolist())).inv()
    step = fmpq(1, 2**-exponent)
    floats = np.linalg.inv(shifted.astype(np.float64))
    off = 0.0
    for i in range(width):
        for j in range(width):
            cell = fmpq(round(float(floats[i, j]) * 2.0**-exponent)) * step
            gap = cell - exact[i, j]
            off += (int(gap.p) / int(gap.q)) ** 2
    plain = relation.inverse_frobenius(float(ROW_NORM_SQUARED), ridge)
    allowed = inverse_sensitivity(relation, width, ridge, unit_rows=1) - plain
    assert 0.0 < 2.0 * math.sqrt(off) <= allowed
    assert allowed < plain * 2.0 ** (12 - GRID_BITS // 2)  # and the slack is small against the sensitivity


@given(ratio=st.floats(1e-9, 1e3))
def test_no_row_is_longer_than_the_calibrated_share_of_its_ridge(ratio: float) -> None:
    """s ≤ ratio·w² exactly, and no ridge far above it: proofs/sketch.md#sketch-exact."""
    ridge = ridge_for(ratio)
    assert ridge == int(ridge)
    assert Fraction(ratio) * int(ridge) >= ROW_NORM_SQUARED
    assert Fraction(ratio) * Fraction(ridge * (1 - 1e-12) - 1.0) < ROW_NORM_SQUARED
    assert Fraction(ROW_NORM_SQUARED, int(ridge)) <= Fraction(ratio_of(ridge)) <= Fraction(ratio)

"""A matrix rebuilt from noisy eigenvalues and eigenvectors drawn one after another on the sphere.

For C = Σ x xᵀ with |x| ≤ 1 (Amin et al. 2019, Algorithm 1, with tight constants):

    λ̂ = λ(C) + Laplace,   θ_i ∝ exp(c_i uᵀCu) on the sphere orthogonal to θ_1 … θ_{i−1},   Ĉ = Σ λ̂_i θ_i θ_iᵀ.

One row moves uᵀCu by at most 1 and always upwards when it is added, so step i is c_i-DP under add/remove and
2c_i-DP under replace-one, with privacy loss in a range of that length: c_i²/8-zCDP and c_i²/2-zCDP. The
eigenvalue vector has L1 sensitivity 1 and 2. Proof: proofs/eigenvectors.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal

import numpy as np
import numpy.typing as npt

from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.sampling.bingham import draw_direction, draw_frame, envelope_parameter

FloatArray = npt.NDArray[np.float64]
ValueNoise = Callable[[float, int], FloatArray]
"""Laplace noise of a given scale, for that many numbers, in units of one row's trace."""
Split = Literal["forecast", "adaptive", "uniform"]
"""How the budget is shared by the directions; "adaptive" is the paper's rule."""

ROWS_AT_MOST: Final = 1 << 27
"""Rows for which the rounding bound holds: a public limit, like the overflow of the sums."""
GRID: Final = 2.0**-20
"""Numbers computed in floats are rounded to this grid before noise, in units of one row's trace."""

SIMULATED: Final = 128
"""Candidates for a direction that a simulation makes at once."""
TIE: Final = 1e-9
"""Eigenvalues closer than this part of the largest are one."""


def rounding_slack(width: int) -> float:
    """Added to the sensitivity of each number: the grid, and 4d·2⁻⁵³·‖C‖ for the solver, twice.

    Proof: proofs/eigenvectors.md#eigenvectors-floats.
    """
    return 2.0 * (0.5 * GRID + 4.0 * width * 2.0**-53 * ROWS_AT_MOST)


def eigenvalue_sensitivity(adjacency: Adjacency, width: int) -> float:
    """L1 sensitivity of the eigenvalues in units of one row's trace, widened for floats and the grid.

    Proof: proofs/eigenvectors.md#eigenvectors-values.
    """
    return up(adjacency.eigenvalue_l1(1.0) + width * rounding_slack(width))


def on_grid(values: FloatArray) -> FloatArray:
    """The nearest points of the public grid."""
    return np.round(values / GRID) * GRID


def falling(values: FloatArray) -> FloatArray:
    """The nearest vector with λ_1 ≥ λ_2 ≥ …, where the truth is: never farther from it than `values`.

    Sorting would move noise to the ends; this averages it out within runs that noise has mixed up.

    Proof: proofs/eigenvectors.md#eigenvectors-values.
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x, dtype=np.float64)


def adaptive_floor(value_scale: float, width: int) -> float:
    """τ of the paper's Corollary 1: above all the noise of d eigenvalues with probability 95%."""
    return float(value_scale * np.log(2.0 * width / 0.05))


def shared_inverse_temperatures(
    values: FloatArray, total: float, floor: float, *, split: Split, norm: int, width: int
) -> FloatArray:
    """c_1 … c_k with ‖c‖_p = total, for k noisy eigenvalues: zero for a direction that need not be paid.

    forecast: the least Σ_i S_i/(c_i + S_i/A_i), S_i = Σ_j Δ_ij and A_i = Σ_j Δ²_ij over the gaps to all later
    eigenvalues. That is about the error which tilts leave: A_i for a direction drawn blindly, S_i/c_i for a
    sharp one. Directions from which the budget would buy little get none. adaptive: c_i ∝ (λ̂_i + τ)^{1/(p+1)}
    (Corollary 1 of the paper for p = 1). uniform: all equal. Only ‖c‖ matters for privacy.
    Proof: proofs/eigenvectors.md#eigenvectors-sequence.
    """
    rank = len(values)
    # The last direction of a full frame is forced by the others and costs nothing.
    paid = min(rank, width - 1)
    found = np.zeros(rank)
    if paid == 0:
        return found
    largest = np.maximum(values, 0.0)
    weights = np.ones(paid)
    if split == "adaptive":
        weights = (largest[:paid] + floor) ** (1.0 / (norm + 1.0))
    elif split == "forecast":
        known = np.append(largest, np.zeros(width - rank))
        gaps = np.triu(np.maximum(np.subtract.outer(known, known), 0.0), 1)[:paid]
        # Averages of what noise has mixed up are ties, but for rounding.
        gaps[gaps < TIE * max(known[0], GRID)] = 0.0
        if gaps.any():
            best = _least_error(gaps.sum(axis=1), (gaps**2).sum(axis=1), total, norm)
            weights = best if best.any() else weights
    found[:paid] = total * weights / np.linalg.norm(weights, ord=norm)
    return found


def _least_error(sharp: FloatArray, blind: FloatArray, total: float, norm: int) -> FloatArray:
    """argmin Σ S/(c + h) over c ≥ 0 with ‖c‖_p = total, h = S/A: where S/(c + h)² = μ·c^{p−1} or c = 0."""
    worth = sharp > 0.0
    sums, found = sharp[worth], np.zeros(len(sharp))
    held = sums / blind[worth]
    if norm == 1:
        # c = √(S/μ) − h where that is positive; in the order of entry, the last κ = 1/√μ above its own entry.
        roots = np.sqrt(sums)
        order = np.argsort(held / roots)
        kappas = (total + np.cumsum(held[order])) / np.cumsum(roots[order])
        kappa = kappas[np.flatnonzero(kappas >= (held / roots)[order])[-1]]
        found[worth] = np.maximum(kappa * roots - held, 0.0)
        return found
    from scipy.optimize import brentq

    def solved(log_price: float) -> FloatArray:
        cubes = sums * np.exp(-log_price)
        root = np.cbrt(cubes)
        for _ in range(20):  # Newton's steps for c(c + h)² = S/μ, which is convex: from above, never past it
            reach = root + held
            root = root - (root * reach**2 - cubes) / (reach * (reach + 2.0 * root))
        return np.asarray(root)

    scale = np.log(sums.max()) - 3.0 * np.log(total)
    least = scale - 80.0 - 2.0 * np.log1p(held.max() / total)  # where every direction is as good as blind
    price = brentq(lambda x: float(np.linalg.norm(solved(x)) - total), least, scale + 20.0, xtol=1e-9)
    found[worth] = solved(price)
    return found


def alignments(values: FloatArray, inverse_temperatures: FloatArray) -> FloatArray:
    """E θ_iᵀCθ_i for eigenvalues λ(C), i = 1 … d, in the mean over the tilts, at c_1 … c_k.

    θ_i ∝ exp(c·uᵀRu) has E u_j² ≈ t_j = 1/(b + 2c(μ_1 − μ_j)) for the eigenvalues μ of the rest R, with the b
    that makes Σ t_j = 1 (right for blind and for sharp laws). What it misses of μ_1 stays with the others:
    μ_j ← μ_j + (μ_1 − μ_j)t_j. Beyond the k drawn directions the rest is spread evenly.
    """
    rest = np.array(values, dtype=np.float64)
    found = np.empty(len(rest))
    for i, cold in enumerate(inverse_temperatures):
        levels = cold * (rest[0] - rest)
        shares = 1.0 / (envelope_parameter(levels) + 2.0 * levels)
        missed = (rest[0] - rest) * shares
        found[i] = rest[0] - missed.sum()
        rest = (rest + missed)[1:]
    found[len(inverse_temperatures) :] = rest.mean() if len(rest) else 0.0
    return found


def _shares(inverse_temperatures: FloatArray, gaps: FloatArray) -> FloatArray:
    """1/(b_i + 2c_iΔ_ij) for j ≥ i, with the b_i that makes them add up to 1; 0 below the diagonal.

    The sum is convex and falls in b: Newton's steps from b = 1 never pass the root.
    """
    count, width = len(inverse_temperatures), len(gaps)
    levels = 2.0 * np.asarray(inverse_temperatures)[:, None] * gaps[:count]
    levels[np.tril_indices(count, -1, width)] = np.inf
    b = np.ones((count, 1))
    for _ in range(60):
        shares = 1.0 / (b + levels)
        step = (shares.sum(axis=1) - 1.0) / (shares**2).sum(axis=1)
        b[:, 0] += step
        if np.all(step <= 1e-9 * b[:, 0]):
            break
    return np.asarray(1.0 / (b + levels))


def tilt_variances(
    values: FloatArray, inverse_temperatures: FloatArray, value_scale: float, rank: int
) -> FloatArray:
    """E(Ĉ − C)²_ij in the eigenbasis of C, for descending λ(C) and small tilts of the directions.

    With Δ = λ_i − λ_j the tilt of θ_i towards direction j > i has variance t = 1/(b_i + 2c_iΔ), which is
    1/(2c_iΔ) for a sharp law and one over the dimensions left for a blind one (see `alignments`). It puts Δ²t
    into the cell ij, takes Δt off the cell ii and adds Δt to jj. Of second order, but all that small
    eigenvalues see of a large one: θ_i tilted to j and to k puts Δ_ij t_ij Δ_ik t_ik into the cell jk, twice
    that into jj. The diagonal also has the Laplace noise of λ̂. What lies beyond the rank is lost.
    """
    width = len(values)
    gaps = np.maximum(np.subtract.outer(values, values), 0.0)
    tilts = np.zeros((width, width))
    tilts[: len(inverse_temperatures)] = _shares(inverse_temperatures, gaps)
    tilts = np.triu(tilts, 1)
    upper = gaps**2 * tilts
    moved = gaps * tilts
    bias = moved.sum(axis=0) - moved.sum(axis=1)
    bias[rank:] -= values[rank:]
    shared = moved.T @ moved
    variances = upper + upper.T + shared
    variances.flat[:: width + 1] += np.diagonal(shared) + bias**2
    variances.flat[: rank * (width + 1) : width + 1] += 2.0 * value_scale**2
    return variances


def deflation_variances(
    values: FloatArray, inverse_temperature: float, value_scale: float, rank: int
) -> FloatArray:
    """E(Ĉ − C)²_ij of Kapralov and Talwar's form, as `tilt_variances`.

    What a tilted θ_i leaves in the cell ij is still there when direction j is drawn, and found then; only the
    tilt of the later one remains, and the gap it sees is its own eigenvalue: λ_j²/(2cλ_j + 2) for λ_j ≤ λ_i.
    """
    width = len(values)
    smaller = np.minimum.outer(values, values)
    tilts = 1.0 / (2.0 * inverse_temperature * smaller + 2.0)
    variances = smaller**2 * tilts
    never_found = values[:rank, None] ** 2 / (
        2.0 * inverse_temperature * (values[:rank, None] - values[rank:]) + 2.0
    )
    variances[:rank, rank:] = never_found
    variances[rank:, :rank] = never_found.T
    variances[rank:, rank:] = 0.0
    moved = np.triu(smaller * tilts, 1)
    bias = moved.sum(axis=1) - moved.sum(axis=0)
    bias[rank:] = -values[rank:]
    variances.flat[:: width + 1] = bias**2
    variances.flat[: rank * (width + 1) : width + 1] += 2.0 * value_scale**2
    return variances


def sample_eigenvectors(
    matrix: FloatArray,
    *,
    value_scale: float,
    total: float,
    rank: int,
    split: Split,
    norm: int,
    value_noise: ValueNoise,
    generator: np.random.Generator,
) -> FloatArray:
    """Ĉ for C = `matrix` in units of one row's trace, with ‖c‖_norm = `total`: in floats, for simulation."""
    width = matrix.shape[0]
    values = falling(np.linalg.eigvalsh(matrix)[::-1][:rank] + value_noise(value_scale, rank))
    floor = adaptive_floor(value_scale, width)
    frame = draw_frame(
        matrix,
        shared_inverse_temperatures(values, total, floor, split=split, norm=norm, width=width),
        generator,
        at_most=SIMULATED,
    )
    rebuilt = (frame * values) @ frame.T
    return 0.5 * (rebuilt + rebuilt.T)


def sample_deflation(
    matrix: FloatArray,
    *,
    value_scale: float,
    inverse_temperature: float,
    rank: int,
    value_noise: ValueNoise,
    generator: np.random.Generator,
) -> FloatArray:
    """Kapralov and Talwar's form: draw θ, read off λ̂ = θᵀCθ + Laplace, subtract λ̂θθᵀ, and go on.

    In floats, for simulation.
    """
    rest = np.array(matrix, dtype=np.float64)
    rebuilt = np.zeros_like(rest)
    for _ in range(rank):
        direction = draw_direction(inverse_temperature * rest, generator, at_most=SIMULATED).direction
        value = direction @ rest @ direction + value_noise(value_scale, 1)
        part = value[0] * np.outer(direction, direction)
        rest -= part
        rebuilt += part
    return rebuilt

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

from dpgram.privacy.bingham import draw_direction, draw_frame

FloatArray = npt.NDArray[np.float64]
ValueNoise = Callable[[float, int], FloatArray]
"""Laplace noise of a given scale, for that many numbers, in units of one row's trace."""
Split = Literal["adaptive", "uniform"]

ROWS_AT_MOST: Final = 1 << 27
"""Rows for which the rounding bound holds: a public limit, like the overflow of the sums."""
GRID: Final = 2.0**-20
"""Numbers computed in floats are rounded to this grid before noise, in units of one row's trace."""


def rounding_slack(width: int) -> float:
    """Added to the sensitivity of each number: the grid, and 4d·2⁻⁵³·‖C‖ for the solver, twice."""
    return 2.0 * (0.5 * GRID + 4.0 * width * 2.0**-53 * ROWS_AT_MOST)


def on_grid(values: FloatArray) -> FloatArray:
    """The nearest points of the public grid."""
    return np.round(values / GRID) * GRID


def falling(values: FloatArray) -> FloatArray:
    """The nearest vector with λ_1 ≥ λ_2 ≥ …, where the truth is: never farther from it than `values`.

    Sorting would move noise to the ends; this averages it out within runs that noise has mixed up.
    """
    from scipy.optimize import isotonic_regression

    return np.asarray(isotonic_regression(values, increasing=False).x, dtype=np.float64)


def temperatures(values: FloatArray, total: float, floor: float, *, split: Split, norm: int) -> FloatArray:
    """c_i ∝ (λ̂_i + τ)^{1/(p+1)} with ‖c‖_p = total: the least Σ λ_i/c_i under the budget of that norm.

    p = 1 for pure ε (Corollary 1 of the paper), p = 2 for zCDP. Uniform: all equal.
    """
    weights = np.ones(len(values))
    if split == "adaptive":
        weights = (np.maximum(values, 0.0) + floor) ** (1.0 / (norm + 1.0))
    return total * weights / np.linalg.norm(weights, ord=norm)


def tilt_variances(values: FloatArray, coldness: FloatArray, value_scale: float, rank: int) -> FloatArray:
    """E(Ĉ − C)²_ij in the eigenbasis of C, for descending λ(C), to first order in the tilts of directions.

    With Δ = λ_i − λ_j the tilt of θ_i towards direction j > i has variance t = 1/(2c_iΔ + 2), which is
    1/(2c_iΔ) for a sharp law and stays below ½ for a blunt one. It puts Δ²t into the cell ij, takes Δt off
    the cell ii and adds Δt to jj; the diagonal also has the Laplace noise of λ̂. What lies beyond the rank is
    lost.
    """
    width = len(values)
    gaps = np.maximum(np.subtract.outer(values, values), 0.0)
    cold = np.zeros(width)
    cold[: len(coldness)] = coldness
    tilts = np.triu(1.0 / (2.0 * cold[:, None] * gaps + 2.0), 1)
    tilts[rank:] = 0.0
    upper = gaps**2 * tilts
    moved = gaps * tilts
    bias = moved.sum(axis=0) - moved.sum(axis=1)
    bias[rank:] -= values[rank:]
    variances = upper + upper.T
    variances.flat[:: width + 1] = bias**2
    variances.flat[: rank * (width + 1) : width + 1] += 2.0 * value_scale**2
    return variances


def deflation_variances(values: FloatArray, coldness: float, value_scale: float, rank: int) -> FloatArray:
    """E(Ĉ − C)²_ij of Kapralov and Talwar's form, as `tilt_variances`.

    What a tilted θ_i leaves in the cell ij is still there when direction j is drawn, and found then; only the
    tilt of the later one remains, and the gap it sees is its own eigenvalue: λ_j²/(2cλ_j + 2) for λ_j ≤ λ_i.
    """
    width = len(values)
    smaller = np.minimum.outer(values, values)
    tilts = 1.0 / (2.0 * coldness * smaller + 2.0)
    variances = smaller**2 * tilts
    never_found = values[:rank, None] ** 2 / (2.0 * coldness * (values[:rank, None] - values[rank:]) + 2.0)
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
    """Ĉ for C = `matrix` in units of one row's trace, with ‖c‖_norm = `total`."""
    width = matrix.shape[0]
    exact = on_grid(np.asarray(np.linalg.eigvalsh(matrix)[::-1][:rank], dtype=np.float64))
    values = falling(exact + value_noise(value_scale, rank))
    # The last direction of a full frame is forced by the others and costs nothing.
    paid = min(rank, width - 1)
    floor = value_scale * np.log(2.0 * width / 0.05)
    inverse_temperatures = np.zeros(rank)
    if paid:
        inverse_temperatures[:paid] = temperatures(values[:paid], total, floor, split=split, norm=norm)
    frame = draw_frame(matrix, inverse_temperatures, generator)
    rebuilt = (frame * values) @ frame.T
    return 0.5 * (rebuilt + rebuilt.T)


def sample_deflation(
    matrix: FloatArray,
    *,
    value_scale: float,
    temperature: float,
    rank: int,
    value_noise: ValueNoise,
    generator: np.random.Generator,
) -> FloatArray:
    """Kapralov and Talwar's form: draw θ, read off λ̂ = θᵀCθ + Laplace, subtract λ̂θθᵀ, and go on."""
    rest = np.array(matrix, dtype=np.float64)
    rebuilt = np.zeros_like(rest)
    for _ in range(rank):
        direction = draw_direction(temperature * rest, generator).direction
        value = on_grid(np.array([direction @ rest @ direction])) + value_noise(value_scale, 1)
        part = value[0] * np.outer(direction, direction)
        rest -= part
        rebuilt += part
    return rebuilt

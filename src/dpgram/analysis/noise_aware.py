"""θ_i = p α_i u_i / (p α_i² + v): the default regression from noisy normal equations A θ = b.

In the eigenbasis of A, with eigenvalues w and u the coordinates of b:

    α_i = the eigenvalue that remains of w_i without the noise: positive, and close to w_i where w_i is large,
    p   = 2·c/Σα, the prior variance of every coefficient; c is yᵀy, held away from zero by its noise,
    v   = o²(|y|² + (d + 1)p), the variance of b − A θ by the noise alone; o is the noise's off-diagonal sd.

It is the posterior mean of θ ~ N(0, pI) under b = A θ + noise. Where the signal is strong (p α² ≫ v) it is
the ordinary solution u/w; a direction drowned in noise gets a coefficient near zero, whatever the sign of w.
Everything comes from the release, so it costs no privacy. Chosen on development data, then frozen:
docs/explanation/accuracy.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, final

import numpy as np
import numpy.typing as npt

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

PRIOR_EXPLAINED = 2.0
"""Prior expectation of θᵀAθ/yᵀy: above one, because what the noise hides is never explained."""

FLOOR = 0.5
"""α(w=0) = ½·√FLOOR·E‖N‖: how far from zero the noise holds an eigenvalue."""


class Noise(Protocol):
    """The law of the symmetric noise N on the coordinates of A, b and yᵀy."""

    @property
    def diagonal_sd(self) -> float:
        """The standard deviation of N_ii."""

    @property
    def offdiagonal_sd(self) -> float:
        """The standard deviation of N_ij."""

    def expected_norm(self, width: int, /) -> float:
        """E‖N‖ on `width` columns."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseAwareFit:
    """The shrunken solution, and what it was made of."""

    theta: Vector
    eigenvalues: Vector
    """α, in ascending order of the noisy eigenvalues."""
    kept: Vector
    """p α²/(p α² + v) ∈ [0, 1]: how much of each eigendirection's coefficient is left."""
    prior_variance: float
    noise_variance: float

    @property
    def effective_parameters(self) -> float:
        """Σ kept: the number of directions the noise leaves to be fitted."""
        return float(self.kept.sum())


def noise_aware(A: Matrix, b: Vector, yy: float, *, noise: Noise, target_norm: float = 1.0) -> NoiseAwareFit:
    """The posterior mean of θ given the noisy A = XᵀX, b = Xᵀy and yy = yᵀy, for an isotropic prior.

    `target_norm` is the length of the target as a vector in the coordinates where the noise is isotropic: 1
    for a column, √(1 + mean²) once its mean has been subtracted by the constant column.
    """
    width = len(b)
    values, vectors = np.linalg.eigh(A)
    u = vectors.T @ b
    alpha = denoised(values, noise)
    sigma = noise.diagonal_sd * target_norm**2
    explained = float(smooth_positive(np.array(yy), 0.25 * sigma * sigma))
    total = float(alpha.sum())
    p = PRIOR_EXPLAINED * explained / total if total > 0.0 else 0.0
    v = noise.offdiagonal_sd**2 * (target_norm**2 + (width + 1.0) * p)
    signal = p * alpha * alpha
    tiny = np.finfo(np.float64).tiny
    kept = signal / np.maximum(signal + v, tiny)
    gain = p * alpha / np.maximum(signal + v, tiny)
    return NoiseAwareFit(
        theta=vectors @ (gain * u),
        eigenvalues=alpha,
        kept=kept,
        prior_variance=p,
        noise_variance=v,
    )


def denoised(values: Vector, noise: Noise) -> Vector:
    """α = ½(x + √(x² + 4a)), x_i = w_i − 2o² Σ_j (w_i − w_j)/((w_i − w_j)² + σ²), a = FLOOR·E‖N‖²/4.

    Noise pushes eigenvalues apart: to second order an eigenvalue w_i exceeds the quadratic form of its own
    eigenvector in the exact matrix by 2o² Σ 1/(w_i − w_j), here damped for pairs closer than the noise. The
    square root is the mode under a prior det(A)^(a/σ²): smooth, positive, and x + a/x for large x.
    """
    sigma, off = noise.diagonal_sd, noise.offdiagonal_sd
    if sigma == 0.0:
        return np.maximum(values, 0.0)
    gaps = values[:, None] - values[None, :]
    repelled = values - 2.0 * off * off * (gaps / (gaps * gaps + sigma * sigma)).sum(axis=1)
    floor = FLOOR * noise.expected_norm(len(values)) ** 2 / 4.0
    return smooth_positive(repelled, floor)


def smooth_positive(x: Vector, a: float) -> Vector:
    """½(x + √(x² + 4a)) > 0; for negative x the equal 2a/(√(x² + 4a) − x), where nothing cancels."""
    root = np.sqrt(x * x + 4.0 * a)
    size = np.maximum(0.5 * (np.abs(x) + root), np.finfo(np.float64).tiny)
    return np.where(x >= 0.0, size, a / size)

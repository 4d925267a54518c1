"""θ_i = Σ_m π_m · p_m α_i u_i / (p_m α_i² + v_m): the default regression from noisy normal equations A θ = b.

In the eigenbasis of A, with eigenvalues w and u the coordinates of b, and m = θᵀAθ/yᵀy on a grid of (0, 1]:

    α_i = what remains of w_i without the noise: positive, and close to w_i where w_i is large,
    p_m = 4m·c/Σα, the prior variance of each coefficient,
    v_m = o²(|y|² + (d + 1)p_m), the variance of each cell of b − A θ by the noise alone,
    π_m ∝ h(m)·Π_i N(u_i; 0, m·c·α_i/d + s_i), the weight of m after seeing b, where each direction is taken
          to explain an equal share of yᵀy; s_i = o²(|y|² + Σ_j q_j + q_i), q_i = m·c/(d·α_i), is its noise.

c is yᵀy held above zero by its own noise, o the noise's off-diagonal standard deviation, |y| the length of
the target as a vector. Each summand is the posterior mean of θ ~ N(0, p_m I) under b = A θ + noise. Where the
signal is strong (p α² ≫ v) it is the ordinary solution u/w; a direction drowned in noise gets a coefficient
near zero whatever the sign of w. Nothing but the release is used, so it costs no privacy. Chosen on
development data and frozen on 2026-11-16: docs/explanation/accuracy.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Protocol, final

import numpy as np
import numpy.typing as npt

from dpgram.noise.shrinkage import without_repulsion

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

EXPLAINED: Final = 2.0 ** np.arange(-16.0, 1.0)
"""The grid of m, the part of yᵀy that is explained."""

LOG_PRIOR: Final = np.log(EXPLAINED**3 + 1.0 / 3000.0)
"""h: most tables explain much of what is asked of them, and a few of them nothing. On this geometric grid m³
is the density 3m² of m; the constant lets clear evidence of no signal win."""

WIDENING: Final = 4.0
"""Coefficients are given 4 times the variance that m alone would: in real tables they are larger where
eigenvalues are small, and one variance for all reaches these only if it is too wide for the others."""

FLOOR: Final = 0.5
"""α(w = 0) = ½·√FLOOR·E‖N‖: how far from zero the noise holds an eigenvalue."""

NEGLIGIBLE: Final = 1e-10
"""Eigenvalues below this part of the largest are rounding errors, with or without noise."""

LARGEST_MISFIT: Final = 1e100
"""Caps a misfit that no longer tells one m from another (a matrix that contradicts itself, without noise)."""


class Noise(Protocol):
    """The law of the symmetric noise N in the coordinates of A, b and yᵀy."""

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
    """The shrunken solution and how much of each eigendirection of A it kept."""

    theta: Vector
    kept: Vector
    """Σ_m π_m · p α²/(p α² + v) ∈ [0, 1], in ascending order of the noisy eigenvalues."""

    @property
    def effective_parameters(self) -> float:
        """Σ kept: the number of directions the noise leaves to be fitted."""
        return float(self.kept.sum())


def noise_aware(
    A: Matrix,
    b: Vector,
    yy: float,
    *,
    noise: Noise,
    target_norm: float = 1.0,
    square_sd: float | None = None,
) -> NoiseAwareFit:
    """θ from the noisy A = XᵀX, b = Xᵀy and yy = yᵀy, in coordinates where the noise is isotropic.

    `target_norm` is |y|, the length of the target as a vector in those coordinates: 1 for a column of its
    own, √(1 + mean²) once its mean has been subtracted by means of the constant column. `square_sd` is the
    deviation of yy's noise, where it is not σ|y|².
    """
    width = len(b)
    if width == 0:
        return NoiseAwareFit(theta=np.zeros(0), kept=np.zeros(0))
    values, vectors = np.linalg.eigh(A)
    u = vectors.T @ b
    alpha = denoised(values, noise)
    sigma_yy = noise.diagonal_sd * target_norm**2 if square_sd is None else square_sd
    c = float(smooth_positive(np.array(yy), 0.25 * sigma_yy**2))
    tiny = np.finfo(np.float64).tiny
    size, off = target_norm**2, noise.offdiagonal_sd**2
    alpha_least = NEGLIGIBLE * float(alpha.max())

    share = EXPLAINED[:, None] * c / width
    held = np.maximum(alpha, alpha_least + tiny)
    q = share / held
    spread = share * held + off * (size + q.sum(axis=1, keepdims=True) + q) + tiny
    misfit = np.minimum(u**2 / spread, LARGEST_MISFIT)
    evidence = LOG_PRIOR - 0.5 * (misfit + np.log(spread)).sum(axis=1)
    weights = np.exp(evidence - evidence.max())

    p = WIDENING * EXPLAINED[:, None] * c / max(float(alpha.sum()), tiny)
    v = off * (size + (width + 1.0) * p) + p * alpha_least**2 + tiny
    gain = weights @ (p * alpha / (p * alpha**2 + v)) / weights.sum()
    return NoiseAwareFit(theta=vectors @ (gain * u), kept=gain * alpha)


def denoised(values: Vector, noise: Noise) -> Vector:
    """α = ½(x + √(x² + 4a)), x_i = w_i − 2o² Σ_j (w_i − w_j)/((w_i − w_j)² + σ²), a = FLOOR·E‖N‖²/4.

    Noise pushes eigenvalues apart: to second order w_i exceeds the quadratic form of its own eigenvector in
    the exact matrix by 2o² Σ_j 1/(w_i − w_j), damped here for pairs closer than the noise. The square root is
    the mode under a prior ∝ det(A)^(a/σ²): smooth, positive, and x + a/x for large x.
    """
    sigma, off = noise.diagonal_sd, noise.offdiagonal_sd
    if sigma == 0.0:
        return np.maximum(values, 0.0)
    together = without_repulsion(values, 2.0 * off**2, sigma)
    return smooth_positive(together, FLOOR * noise.expected_norm(len(values)) ** 2 / 4.0)


def smooth_positive(x: Vector, a: float) -> Vector:
    """½(x + √(x² + 4a)) > 0; for negative x the equal 2a/(√(x² + 4a) − x), where nothing cancels."""
    size = 0.5 * (np.abs(x) + np.sqrt(x**2 + 4.0 * a))
    return np.where(x >= 0.0, size, a / np.maximum(size, np.finfo(np.float64).tiny))

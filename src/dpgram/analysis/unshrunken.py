"""The un-shrunken regression from a noisy Gram matrix, corrected for what the noise does to an inverse.

Coordinates: V orthonormal, A = VᵀG̃V, b = VᵀG̃t with the target t orthogonal to V, v = Var N_ij. Then

    z = v(1 − 1/p)·tr(A + zI)⁻¹,   R = (A + zI)⁻¹,   θ̂ = R b,   κ = 1 + v·tr R².

Noise makes E Ã⁻¹ larger than A⁻¹: to second order by A⁻¹(v·tr A⁻¹)A⁻¹, and for many columns exactly so that
R with the z above has mean A⁻¹ (the subordination property of additive symmetric noise). Each direction's
own noise, 1/p of the trace, is left to the interval, which is exact for it (Fieller), so p = 1 has z = 0.
Hence θ̂ is the debiased solution of the normal equations; it looks like a ridge, but undoes an inflation
instead of adding bias. Likewise E R² = κ A⁻² and E(|t|² + |θ̂|²) = κ(|t|² + |θ|²), which gives the covariance

    Cov θ̂ = s²R + v·R[(|t|² + |θ̂|²)/κ · I + θ̂θ̂ᵀ]R

(sampling plus privacy), the closed form A⁻¹[s²A + (σ²/2)((1+|θ|²)I + θθᵀ)]A⁻¹ with v = σ²/2 when κ = 1.
The correction exists while v·tr A⁻² < 1; κ → ∞ marks the edge, beyond which A is not distinguishable from a
singular matrix. See docs/explanation/intervals.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import Design
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


@final
class DependentFeatures(AnalysisError):
    """Without noise: a combination of the features that is zero in every row."""

    def __init__(self, direction: Vector) -> None:
        self.direction = direction
        super().__init__("the features are linearly dependent in this table", remedy="Leave out one of them.")


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Unshrunken:
    """The corrected solution in orthonormal coordinates of encoded space, with its uncertainty."""

    basis: Matrix
    """V."""
    theta: Vector
    """The fitted function in the coordinates V (the target's own part in V included)."""
    resolvent: Matrix
    """R, an unbiased estimate of A⁻¹."""
    shift: float
    """z."""
    inflation: float
    """κ: 1 without noise; the factor by which noise inflates the variance of a naive inverse."""
    slopes: Vector
    """θ̂ for the target's part outside V: what multiplies the noise of A."""
    outside: Vector
    """t: the target's part outside V."""
    scores: Vector
    """b = VᵀG̃t."""
    residual: Vector
    """t − Vθ: the residual as a function of the encoded row."""
    residual_sum: float
    """Unbiased estimate of Σ residual²; noise can make it negative."""
    deflated: float
    """What the covariance takes off |t|² + |θ̂|²: the noise in it."""
    privacy_covariance: Matrix
    """Covariance of θ from the noise alone."""
    shares: Vector
    """v·r_i² of every eigendirection; κ = 1 + their sum."""
    smallest: float
    """The smallest eigenvalue of the noisy A,"""
    weakest: Vector
    """and its direction."""

    def function(self) -> Vector:
        """The fitted function a ↦ f·a."""
        return np.asarray(self.basis @ self.theta)


def solve(gram: Matrix, basis: Matrix, target: Vector, noise: EncodedNoise) -> Unshrunken:
    """Solve for `target` on the span of the orthonormal `basis`."""
    if basis.shape[1] == 0:
        return _nothing_to_fit(gram, basis, target)
    inside = basis.T @ target
    outside = target - basis @ inside
    A = basis.T @ gram @ basis
    b = basis.T @ (gram @ outside)
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    variance = noise.offdiagonal_sd**2
    shifted, shift = _shifted(values, vectors, variance * (1.0 - 1.0 / len(values)))
    inverse = 1.0 / shifted
    rotated = vectors.T @ b
    theta = vectors @ (inverse * rotated)
    resolvent = (vectors * inverse) @ vectors.T
    inflation = 1.0 + variance * float(inverse @ inverse)
    residual = outside - basis @ theta
    size, toward = float(residual @ residual), float(outside @ outside)
    spread = noise.residual_covariance(residual, basis)
    deflated = min(size * (1.0 - 1.0 / inflation), size - toward)
    spread -= variance * deflated * np.eye(len(values))
    covariance = resolvent @ spread @ resolvent
    return Unshrunken(
        basis=basis,
        theta=inside + theta,
        resolvent=resolvent,
        shift=shift,
        inflation=inflation,
        slopes=theta,
        outside=outside,
        scores=b,
        residual=residual,
        residual_sum=float(outside @ gram @ outside - rotated @ (inverse * rotated))
        + toward * variance * float(inverse.sum()),
        deflated=deflated,
        privacy_covariance=(covariance + covariance.T) / 2.0,
        shares=variance * inverse**2,
        smallest=float(values[0]),
        weakest=vectors[:, 0],
    )


def _nothing_to_fit(gram: Matrix, basis: Matrix, target: Vector) -> Unshrunken:
    return Unshrunken(
        basis=basis,
        theta=np.zeros(0),
        resolvent=np.zeros((0, 0)),
        shift=0.0,
        inflation=1.0,
        slopes=np.zeros(0),
        outside=target,
        scores=np.zeros(0),
        residual=target,
        residual_sum=float(target @ gram @ target),
        deflated=0.0,
        privacy_covariance=np.zeros((0, 0)),
        shares=np.zeros(0),
        smallest=np.inf,
        weakest=np.zeros(0),
    )


@lru_cache(maxsize=2)  # coefficients, R² and error variance of one fit all begin with it
def unshrunken(moments: Moments, design: Design) -> Unshrunken:
    """The corrected solution of a design."""
    basis = orthonormal(moments.project(design.vectors))
    if basis.shape[1] < design.vectors.shape[1]:
        raise AnalysisError(
            "the features of this regression are linearly dependent by construction",
            got=dependent_terms(
                design, np.asarray(np.linalg.svd(moments.project(design.vectors))[2][-1], dtype=np.float64)
            ),
            remedy="Leave out one of them.",
        )
    try:
        return solve(moments.consistent_gram, basis, moments.project(design.target_vector), moments.noise)
    except DependentFeatures as found:
        inside = basis.T @ moments.project(design.vectors)
        toward = np.asarray(np.linalg.lstsq(inside, found.direction, rcond=None)[0], dtype=np.float64)
        raise AnalysisError(found.what, got=dependent_terms(design, toward), remedy=found.remedy) from None


def dependent_terms(design: Design, direction: Vector) -> str:
    """The terms of which this combination is zero, or nearly so."""
    sizes = np.abs(direction) * np.linalg.norm(design.vectors, axis=0)
    return ", ".join(
        name for name, size in zip(design.names, sizes, strict=True) if size > 1e-6 * sizes.max()
    )


def _shifted(values: Vector, vectors: Matrix, variance: float) -> tuple[Vector, float]:
    """(w_i + z, z) for the root z > max(0, −w_min) of z = v·Σ 1/(w_i + z): there is exactly one when v > 0.

    The unknown is the distance x = z − max(0, −w_min), so that nothing cancels when z is close to −w_min.
    """
    largest = float(np.abs(values).max())
    if variance == 0.0:
        if abs(values[0]) <= 1e-12 * largest:
            raise DependentFeatures(vectors[:, 0])
        return values, 0.0
    edge = max(0.0, -float(values[0]))
    above = values + edge

    def excess(x: float) -> float:
        return edge + x - variance * float(np.sum(1.0 / (above + x)))

    # excess increases from below zero at `low` to at or above zero at `reach`, whatever the eigenvalues are.
    # At `low` the least of them alone makes it zero; 0 would not do, as 1e-310 has no reciprocal in floats.
    reach = (variance * len(values)) ** 0.5 * (1.0 + 1e-12)
    least = float(values[0])
    low = variance / (edge + reach)
    if least > 0.0:
        low = 2.0 * variance / (least + (least * least + 4.0 * variance) ** 0.5) * (1.0 - 1e-9)
    x = _root(excess, low, reach)
    return above + x, edge + x


def _root(excess: Callable[[float], float], low: float, high: float) -> float:
    """The root between the ends, or an end that rounding made one, where noise is nothing to the matrix."""
    if not low < high or excess(high) <= 0.0:
        return high
    if excess(low) >= 0.0:
        return low
    from scipy.optimize import brentq

    return float(brentq(excess, low, high, xtol=1e-300, rtol=1e-14))

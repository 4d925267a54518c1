"""|w − ŵ| ≤ (|e| + ‖N‖·|ŵ|) / (λ_min + λ): how far noise can have moved a ridge fit of the same table.

Amin et al. (2019), Lemma 1, with the noise's unknown norms replaced by what its law allows at the wanted
confidence, and the unknown λ_min(A) by λ_min(Ã) − ‖N‖ (Weyl), but at least 0. Beside it Corollary C.2 of
Sheffet (2018), for λ = 0: with ρ = λ_min(Ã)/(2σ√p·ln(1/ν)), |β̃ − β̂| ≤ (2C/ρ)|β̃| + 1/ρ when ρ ≥ 2C. Its
constant C is not given there; here it is the least C ≥ 1 with ‖N‖ ≤ Cσ√p·ln(1/ν) at confidence 1 − ν/2 under
the actual law, where also |e| ≤ (3/2)|t|σ√p·ln(1/ν), t the target (1 long in the paper). The printed proof
slips at few columns; with these two it holds for any number: |β̃ − β̂| ≤ (|e| + ‖N‖·|β̃|)/(λ_min(Ã) − ‖N‖) and
λ_min(Ã) − ‖N‖ ≥ (3/2)ρσ√p·ln(1/ν). Both hold in encoded units, for the coordinates in which the noise is
isotropic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import Design
from dpgram.analysis.moments import Moments
from dpgram.analysis.normal_equations import orthonormal
from dpgram.core.noise import simulation
from dpgram.errors import AnalysisError

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

SIMULATIONS: Final = 500
"""Draws of the noise behind its quantiles; the seed is fixed, so a bound is a function of the release."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorBound:
    """Upper bounds on the distance between the noisy and the noise-free fit, in encoded units."""

    confidence: float
    ridge: float
    """λ: what both fits add to the Gram matrix's diagonal."""
    norm: float
    """|ŵ| of the noisy fit."""
    amin: float
    """Lemma 1; infinite when neither the features nor λ stand clear of the noise."""
    sheffet: float
    """Corollary C.2, for λ = 0; infinite when its condition fails."""

    def __str__(self) -> str:
        return (
            f"with confidence {self.confidence:g} the noise moved the fit (norm {self.norm:.4g}) by at most "
            f"{self.amin:.4g} (Amin et al., Lemma 1, ridge {self.ridge:.4g}); "
            f"{self.sheffet:.4g} without ridge (Sheffet, Corollary C.2)"
        )


def error_bound(
    moments: Moments, design: Design, *, ridge: float | None = None, confidence: float = 0.95
) -> ErrorBound:
    """Both bounds; λ = `ridge` acts on every coordinate, the intercept's included, and is E‖N‖ by default."""
    if not 0.0 < confidence < 1.0:
        raise AnalysisError("confidence must be a probability", got=confidence, limit="0 < confidence < 1")
    basis = orthonormal(moments.project(design.vectors))
    target = moments.project(design.target_vector)
    gram = moments.consistent_gram
    A = basis.T @ gram @ basis
    b = basis.T @ (gram @ target)
    penalty = moments.noise.expected_norm(len(b)) if ridge is None else ridge
    values, vectors = np.linalg.eigh((A + A.T) / 2.0)
    rotated = vectors.T @ b
    failure = min(1.0 - confidence, math.exp(-1.0))  # the corollary is stated for ν < 1/e
    norms, columns = _noise_draws(moments, basis, target)
    with np.errstate(divide="ignore"):
        fitted = float(np.linalg.norm(rotated / (values + penalty)))
        plain = float(np.linalg.norm(rotated / values))
        bounds = (columns + norms * fitted) / (np.maximum(values[0] - norms, 0.0) + penalty)
    return ErrorBound(
        confidence=confidence,
        ridge=penalty,
        norm=fitted,
        amin=float(np.quantile(bounds, confidence, method="higher")),
        sheffet=_sheffet(
            float(values[0]),
            plain,
            size=float(np.linalg.norm(target)),
            unit=moments.noise.diagonal_sd * math.sqrt(len(values)) * math.log(1.0 / failure),
            norms=norms,
            columns=columns,
            failure=failure,
        ),
    )


def _noise_draws(moments: Moments, basis: Matrix, target: Vector) -> tuple[Vector, Vector]:
    """‖VᵀN V‖ and |VᵀN t| for simulated noises."""
    generator = simulation(0)
    nothing = np.zeros_like(moments.gram)
    norms, columns = np.empty(SIMULATIONS), np.empty(SIMULATIONS)
    for i in range(SIMULATIONS):
        noise = moments.noise.redraw(nothing, generator)
        norms[i] = np.linalg.norm(basis.T @ noise @ basis, 2)
        columns[i] = np.linalg.norm(basis.T @ (noise @ target))
    return norms, columns


def _sheffet(
    smallest: float,
    fitted: float,
    *,
    size: float,
    unit: float,
    norms: Vector,
    columns: Vector,
    failure: float,
) -> float:
    """(2C/ρ)|β̃| + |t|/ρ with unit = σ√p·ln(1/ν); |t| is the target's length, 1 in the paper.

    Normal noise always has |e| within (3/2)|t| units; where another law has not, what it has takes its place.
    """
    if unit == 0.0:
        return 0.0
    norm, column = (
        float(np.quantile(v, 1.0 - 0.5 * failure, method="higher")) / unit for v in (norms, columns)
    )
    constant, size = max(1.0, norm), max(size, column / 1.5)
    rho = smallest / (2.0 * unit)
    return 2.0 * constant / rho * fitted + size / rho if rho >= 2.0 * constant else math.inf

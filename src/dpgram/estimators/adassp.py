"""θ = (XᵀX + N₁ + λI)⁻¹(Xᵀy + N₂): sufficient statistics perturbation with a ridge set by the noise."""

from __future__ import annotations

from typing import final

import numpy as np

from dpgram.estimators.norm_bounded import FitParameters
from dpgram.estimators.ssp import NoisyMoments, PerturbedMoments, exact_moments
from dpgram.noise import SymmetricGaussian
from dpgram.publishing.publication import Program
from dpgram.sums.moments import Floats


@final
class AdaSSP(PerturbedMoments):
    """(XᵀX + N₁ + λI)⁻¹(Xᵀy + N₂), λ ≥ 0.

    One joint Gaussian release of both moments on the exact curve, no release of λ_min, and λ = E‖N₁‖ with the
    negative eigenvalues of the noisy matrix set to zero: post-processing. (ε, δ)-DP to the letter.
    proofs/adassp.md
    """

    def _program(self, parameters: FitParameters) -> Program[Floats]:
        moments = yield from exact_moments(parameters)
        return damped(moments)


def damped(moments: NoisyMoments) -> Floats:
    """V(max(w, 0) + λ)⁻¹Vᵀb with λ = E‖N₁‖: noise-aware damping from public facts and the release alone.

    Proof: proofs/adassp.md#adassp-damping.
    """
    width = len(moments.first)
    ridge = SymmetricGaussian(sigma=moments.sigma).expected_norm(width)
    values, vectors = np.linalg.eigh(moments.second)
    coordinates = (vectors.T @ moments.first) / (np.maximum(values, 0.0) + ridge)
    return np.asarray(vectors @ coordinates, dtype=np.float64)

"""θ = (XᵀX + N₁ + λI)⁻¹(Xᵀy + N₂): sufficient statistics perturbation with a ridge set by the noise."""

from __future__ import annotations

import math
from typing import ClassVar, Literal, final

import numpy as np

from dpgram.estimators.norm_bounded import Agreed
from dpgram.estimators.ssp import Moments, PerturbedMoments, exact_moments, float_rows
from dpgram.noise import SymmetricGaussian
from dpgram.papers.kalaja import FAILURE, SufficientStatistics
from dpgram.privacy.events import Event
from dpgram.privacy.sampling.entropy import Entropy
from dpgram.publishing.publication import Program
from dpgram.sums.moments import Floats


@final
class AdaSSP(PerturbedMoments):
    """(XᵀX + N₁ + λI)⁻¹(Xᵀy + N₂), λ ≥ 0.

    `variant="exact"` (default): one joint Gaussian release of both moments on the exact curve, no release of
    λ_min, and λ = E‖N₁‖ with the negative eigenvalues of the noisy matrix set to zero: post-processing.
    (ε, δ)-DP to the letter. "wang2018": three shares of the published constants and the published rule for λ;
    "kalaja2020": the same with classical noise. Those are baselines in floats: `private_` is False, `fit`
    warns, and `guarantee_` holds what their noise is truly worth. Like the published experiments they add the
    identity to XᵀX (in units of x_norm²) and draw N₁ as (Z + Zᵀ)/2. proofs/adassp.md
    """

    family: ClassVar[Literal["ssp", "adassp"]] = "adassp"

    def _program(self, agreed: Agreed, price: Event) -> Program[Floats]:
        moments = yield from exact_moments(agreed, price)
        return damped(moments)

    def _baseline(self, x: Floats, y: Floats, agreed: Agreed, entropy: Entropy) -> Floats:
        theta = _printed_theta(*float_rows(x, y, agreed), self._printed(agreed), entropy)
        return theta * (agreed.y_bound / agreed.x_norm)


def damped(moments: Moments) -> Floats:
    """V(max(w, 0) + λ)⁻¹Vᵀb with λ = E‖N₁‖: noise-aware damping from public facts and the release alone.

    Proof: proofs/adassp.md#adassp-damping.
    """
    width = len(moments.first)
    ridge = SymmetricGaussian(sigma=moments.sigma).expected_norm(width)
    values, vectors = np.linalg.eigh(moments.second)
    coordinates = (vectors.T @ moments.first) / (np.maximum(values, 0.0) + ridge)
    return np.asarray(vectors @ coordinates, dtype=np.float64)


def _printed_theta(x: Floats, y: Floats, printed: SufficientStatistics, entropy: Entropy) -> Floats:
    """λ̃ = (λ_min + σz − σ²ε/3)₊, λ = (σ√(d ln(2d²/ϱ)) − λ̃)₊, as in the published program."""
    width, sigma, generator = x.shape[1], printed.sigma, entropy.generator()
    second = x.T @ x + np.eye(width)
    smallest = float(np.linalg.eigvalsh(second)[0]) + sigma * float(generator.standard_normal())
    lowered = max(0.0, smallest - sigma**2 * printed.claimed.epsilon / printed.parts)
    ridge = max(0.0, sigma * math.sqrt(width * math.log(2.0 * width**2 / FAILURE)) - lowered)
    noisy = second + SymmetricGaussian(sigma=sigma).sample(width, generator) + ridge * np.eye(width)
    first = x.T @ y + sigma * generator.standard_normal(width)
    return np.asarray(np.linalg.lstsq(noisy, first, rcond=None)[0], dtype=np.float64)

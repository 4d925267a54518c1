"""θ = argmin_{|θ| ≤ R} |y − Xθ|²/2 + (α/2)|θ|² + noise: output perturbation for ridge regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, final

import numpy as np

from dpgram.curator import LedgerLike
from dpgram.errors import GuaranteeError
from dpgram.estimators.bounded_rows import BoundedRows, Floats
from dpgram.estimators.norm_bounded import Agreed, Deal, NormBoundedRegressor, public_bound
from dpgram.estimators.ridge_minimiser import on_grid
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.accountant import GaussianEvent, PureEvent
from dpgram.privacy.calibrate import discrete_gaussian_sigma
from dpgram.privacy.entropy import Entropy
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.rounding import down, up

NoiseName: TypeAlias = Literal["auto", "gamma", "gaussian"]

GRID_STEPS: Final = 2.0**34
"""Steps of the public grid in one sensitivity, so that integer noise is as fine as its proof wants."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Scale:
    """The problem in units of the bounds: |x| ≤ 1, |y| ≤ 1, θ in units of y_bound/x_norm."""

    ridge: float
    radius: float
    sensitivity: float
    """Of the minimiser, without rounding."""
    widened: float
    """In steps of the grid, rounding included."""

    @property
    def steps(self) -> float:
        """Steps of the grid in a unit of θ, rounded down: a coarser grid moves by fewer steps."""
        return down(GRID_STEPS / self.sensitivity)


@final
class OutputPerturbation(NormBoundedRegressor):
    """The ridge minimiser plus noise scaled to how far one row can move it (Chaudhuri et al. 2011).

    `alpha` > 0 is public and decides the noise as well as the shrinkage. The minimum is taken over
    ‖θ‖ ≤ `theta_bound` (default y_bound/x_norm), without which a squared loss has no bounded slope: one row
    then moves it by at most x_norm(y_bound + x_norm·theta_bound)/alpha, twice that under replace-one.
    `noise`: "gamma", density ∝ e^{−ε‖v‖/Δ}, pure ε;
    "gaussian", on the exact curve; both drawn exactly, in integers. "auto" takes "gaussian" where δ > 0.
    proofs/output-perturbation.md#output-perturbation-noise
    """

    def __init__(
        self,
        epsilon: float = 1.0,
        delta: float = 1e-6,
        *,
        alpha: float = 1.0,
        x_norm: float | None = None,
        y_bound: float | None = None,
        theta_bound: float | None = None,
        noise: NoiseName = "auto",
        adjacency: str = "add-remove",
        ledger: LedgerLike | None = None,
        entropy: Entropy | None = None,
    ) -> None:
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.x_norm = x_norm
        self.y_bound = y_bound
        self.theta_bound = theta_bound
        self.noise = noise
        self.adjacency = adjacency
        self.ledger = ledger
        self.entropy = entropy

    def _deal(self, agreed: Agreed) -> Deal:
        scale, asked = self._scale(agreed), agreed.guarantee
        if self._law(agreed) == "gaussian":
            sigma = _sigma(scale, asked)
            return Deal(event=GaussianEvent(mu=up(scale.widened / sigma)), guarantee=asked)
        return Deal(event=PureEvent(epsilon=asked.epsilon), guarantee=Guarantee(asked.epsilon))

    def _draw(self, x: Floats, y: Floats, agreed: Agreed, entropy: Entropy) -> Floats:
        scale = self._scale(agreed)
        rows = BoundedRows.of(x, y, x_norm=agreed.x_norm, y_bound=agreed.y_bound)
        exact = on_grid(
            *rows.moments(), unit=ROW_NORM_SQUARED, ridge=scale.ridge, radius=scale.radius, scale=scale.steps
        )
        if self._law(agreed) == "gaussian":
            noisy = exact + entropy.discrete_gaussian(_sigma(scale, agreed.guarantee), agreed.width)
        else:
            # Rounded noise on integers is rounding after noise.
            noise_scale = up(scale.widened / agreed.guarantee.epsilon)
            noisy = exact + entropy.norm_laplace(agreed.width, noise_scale)
        unit = agreed.y_bound / agreed.x_norm / scale.steps
        return np.asarray(noisy.astype(np.float64) * unit, dtype=np.float64)

    def _law(self, agreed: Agreed) -> Literal["gamma", "gaussian"]:
        if self.noise not in ("auto", "gamma", "gaussian"):
            raise GuaranteeError("unknown noise", got=repr(self.noise), limit="'auto', 'gamma' or 'gaussian'")
        if self.noise == "gamma" or (self.noise == "auto" and agreed.guarantee.pure):
            return "gamma"
        return "gaussian"

    def _scale(self, agreed: Agreed) -> _Scale:
        """How far one row moves the minimiser, and the grid it is rounded to.

        Proof: proofs/output-perturbation.md#output-perturbation-claim.
        """
        ridge = down(public_bound("alpha", self.alpha) / agreed.x_norm**2)
        asked = agreed.y_bound / agreed.x_norm
        bound = asked if self.theta_bound is None else public_bound("theta_bound", self.theta_bound)
        radius = up(bound / asked)
        steps = agreed.adjacency.gram_trace_steps
        # The slope of one loss over the curvature of all; and nothing leaves the ball.
        sensitivity = up(min(steps * (1.0 + radius) / ridge, 2.0 * radius))
        widened = up(GRID_STEPS + 2.0 * math.sqrt(agreed.width))
        return _Scale(ridge=ridge, radius=radius, sensitivity=sensitivity, widened=widened)


def _sigma(scale: _Scale, asked: Guarantee) -> float:
    if asked.pure:
        raise GuaranteeError(
            "Gaussian noise cannot give a pure guarantee",
            got="delta = 0",
            limit="delta > 0",
            remedy="Use noise='gamma', or give a delta such as 1e-6.",
        )
    return discrete_gaussian_sigma(epsilon=asked.epsilon, delta=asked.delta, sensitivity=scale.widened)

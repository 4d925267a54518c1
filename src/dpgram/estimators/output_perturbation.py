"""θ = argmin_{|θ| ≤ R} |y − Xθ|²/2 + (α/2)|θ|² + noise: output perturbation for ridge regression."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, final

import numpy as np

from dpgram.errors import GuaranteeError
from dpgram.estimators._parameters import public_bound
from dpgram.estimators.norm_bounded import Calibration, FitParameters, NormBoundedRegressor
from dpgram.privacy.curves.rounding import down, up
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.minimiser import (
    GammaGridNoise,
    GaussianGridNoise,
    Minimiser,
    RidgeProblem,
)
from dpgram.publishing.publication import Program
from dpgram.sums.moments import Floats

NoiseName: TypeAlias = Literal["auto", "gamma", "gaussian"]


@final
@dataclass(eq=False, repr=False, kw_only=True)
class OutputPerturbation(NormBoundedRegressor):
    """The ridge minimiser plus noise scaled to how far one row can move it (Chaudhuri et al. 2011).

    `alpha` > 0 is public and decides the noise as well as the shrinkage. The minimum is taken over
    ‖θ‖ ≤ `theta_bound` (default y_bound/x_norm), without which a squared loss has no bounded slope: one row
    then moves it by at most x_norm(y_bound + x_norm·theta_bound)/alpha, twice that under replace-one.
    `noise`: "gamma", density ∝ e^{−ε‖v‖/Δ}, pure ε;
    "gaussian", on the exact curve; both drawn exactly, in integers. "auto" takes "gaussian" where δ > 0.
    proofs/output-perturbation.md#output-perturbation-noise
    """

    alpha: float = 1.0
    theta_bound: float | None = None
    noise: NoiseName = "auto"

    def _calibration(self, parameters: FitParameters) -> Calibration:
        measurement, asked = self._measurement(parameters), parameters.guarantee
        pure = isinstance(measurement.noise, GammaGridNoise)
        return Calibration(event=measurement.event, guarantee=Guarantee(asked.epsilon) if pure else asked)

    def _program(self, parameters: FitParameters) -> Program[Floats]:
        measurement = self._measurement(parameters)
        answer = yield parameters.stage(measurement)
        unit = parameters.y_bound / parameters.x_norm / measurement.problem.steps
        steps = [int(cell) for cell in answer.published[0].theta]
        return np.array(steps, dtype=object).astype(np.float64) * unit

    def _measurement(self, parameters: FitParameters) -> Minimiser:
        """The minimiser in units of the bounds: θ in those of y_bound/x_norm."""
        if self.noise not in ("auto", "gamma", "gaussian"):
            raise GuaranteeError("unknown noise", got=repr(self.noise), limit="'auto', 'gamma' or 'gaussian'")
        problem, asked = self._problem(parameters), parameters.guarantee
        gamma = self.noise == "gamma" or (self.noise == "auto" and asked.pure)
        return Minimiser(
            sums=parameters.moment_sums(),
            problem=problem,
            noise=GammaGridNoise(epsilon=asked.epsilon)
            if gamma
            else GaussianGridNoise.calibrated(problem, asked),
        )

    def _problem(self, parameters: FitParameters) -> RidgeProblem:
        """λ rounded down and R up: both make the stated sensitivity larger."""
        asked = parameters.y_bound / parameters.x_norm
        bound = asked if self.theta_bound is None else public_bound("theta_bound", self.theta_bound)
        return RidgeProblem(
            ridge=down(public_bound("alpha", self.alpha) / parameters.x_norm**2),
            radius=up(bound / asked),
            width=parameters.width,
            adjacency=parameters.adjacency,
        )

"""θ = (XᵀX + N₁)⁻¹(Xᵀy + N₂): sufficient statistics perturbation, both moments in one release."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass
from typing import final

import numpy as np

from dpgram.errors import GuaranteeError
from dpgram.estimators.norm_bounded import Calibration, FitParameters, NormBoundedRegressor
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.publishing.measurements.gram import full_matrix
from dpgram.publishing.measurements.moments import JointGaussian, MeasuredMoments, Moments
from dpgram.publishing.publication import Program
from dpgram.sums.moments import Floats


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyMoments:
    """Noisy XᵀX and Xᵀy in the units of the data, and the deviation on the diagonal of the first."""

    second: Floats
    first: Floats
    sigma: float


def exact_noise(parameters: FitParameters) -> JointGaussian:
    """One joint Gaussian release on the exact curve, discreteness included."""
    if parameters.guarantee.pure:
        raise GuaranteeError(
            "Gaussian noise cannot give a pure guarantee",
            got="delta = 0",
            limit="delta > 0",
            remedy="Give a delta such as 1e-6, or use LpRegression or OutputPerturbation with delta=0.",
        )
    mu = discrete_mu_at_most(parameters.guarantee.epsilon, parameters.guarantee.delta)
    return JointGaussian.calibrated(mu, parameters.adjacency, width=parameters.width)


def exact_moments(parameters: FitParameters) -> Program[NoisyMoments]:
    """Integer sums of lattice rows with discrete Gaussian noise (proofs/adassp.md)."""
    noise = exact_noise(parameters)
    measurement = Moments(sums=parameters.moment_sums(), noise=noise.noise)
    answer = yield parameters.stage(measurement)
    second, first = in_lattice_units(answer.published[0])
    return NoisyMoments(
        second=second * parameters.second_unit,
        first=first * parameters.first_unit,
        sigma=noise.second * parameters.second_unit,
    )


def in_lattice_units(measured: MeasuredMoments) -> tuple[Floats, Floats]:
    """What was published, as numbers."""
    width = len(measured.first)
    second = full_matrix(measured.second.matrix.cells, width).astype(np.float64)
    return second, np.array([int(cell) for cell in measured.first], dtype=np.float64)


class PerturbedMoments(NormBoundedRegressor, ABC):
    """A regression from noisy XᵀX and Xᵀy."""

    @final
    def _calibration(self, parameters: FitParameters) -> Calibration:
        return Calibration(event=exact_noise(parameters).event, guarantee=parameters.guarantee)


@final
class SSP(PerturbedMoments):
    """(XᵀX + N₁)⁻¹(Xᵀy + N₂) without a ridge: unstable where the noise reaches an eigenvalue.

    One joint Gaussian release of both moments, (ε, δ)-DP to the letter. proofs/adassp.md
    """

    def _program(self, parameters: FitParameters) -> Program[Floats]:
        moments = yield from exact_moments(parameters)
        return _solved(moments.second, moments.first)


def _solved(matrix: Floats, right: Floats) -> Floats:
    """The least-squares solution: a singular noisy matrix has one too."""
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)

"""θ ← (XᵀSX + N₁ + λI)⁻¹(XᵀSy + N₂), S_ii = (f/max(f, |y_i − x_iᵀθ|))^{2−p}: private L_p regression."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import final, get_args

import numpy as np

from dpgram.errors import GuaranteeError
from dpgram.estimators._parameters import number, one_of, public_bound
from dpgram.estimators.iteration_noise import (
    Accounting,
    IterationSettings,
    MatrixNoiseName,
    calibrated,
    event_of,
    exact_guarantee,
)
from dpgram.estimators.norm_bounded import (
    Calibration,
    FitParameters,
    NormBoundedRegressor,
)
from dpgram.estimators.ssp import in_lattice_units
from dpgram.noise import AdditiveWishart, MatrixLaplace, SymmetricGaussian
from dpgram.publishing.measurements.moments import MeasuredMoments, MomentNoise, Moments, VectorLaw
from dpgram.publishing.publication import Program
from dpgram.sums.moments import Floats, Reweighting


@dataclass(eq=False, repr=False, kw_only=True)
class ReweightedRegression(NormBoundedRegressor, ABC):
    """J iterations of private reweighted least squares, each of the moments of rows weighted by the last.

    Weights lie in (0, 1] by construction: `floor` is the public size f of a residual (default y_bound/10)
    below which all count alike, and the first iteration weighs every row 1. So one row moves XᵀSX and XᵀSy by
    no more than x_norm² and x_norm·y_bound, on the integer lattice. Inverting is post-processing; λ = E‖N₁‖,
    the known size of the noise. proofs/robust.md#robust-lattice
    """

    p: float = 1.0
    floor: float | None = None
    iterations: int = 5

    @abstractmethod
    def _noise(self, parameters: FitParameters) -> MomentNoise:
        """Of each iteration, from public facts alone."""

    @final
    def _program(self, parameters: FitParameters) -> Program[Floats]:
        power, floor = _power(self.p), _floor(self.floor, parameters)
        noise = self._noise(parameters)
        weights: Reweighting | None = None
        theta = np.zeros(parameters.width)
        for _ in range(self._count()):
            answer = yield parameters.stage(Moments(sums=parameters.moment_sums(weights), noise=noise))
            theta = _solved(answer.published[0]) * (parameters.y_bound / parameters.x_norm)
            weights = Reweighting(theta=tuple(theta.tolist()), floor=floor, power=power)
        return theta

    @final
    def _check(self, parameters: FitParameters) -> None:
        """Refuse what cannot be iterated, before anything is priced."""
        _power(self.p)
        _floor(self.floor, parameters)
        self._count()

    @final
    def _count(self) -> int:
        count = number("iterations", self.iterations)
        if not (1 <= count <= 1000 and count.is_integer()):
            raise GuaranteeError(
                "iterations must be a whole number", got=self.iterations, limit="1 ≤ iterations ≤ 1000"
            )
        return int(count)


@final
@dataclass(eq=False, repr=False, kw_only=True)
class LpRegression(ReweightedRegression):
    """L_p regression, 1 ≤ p < 2, by J iterations of private reweighted least squares (Park and Welling 2016).

    `floor`: the size of a residual below which all count alike, a public number (default y_bound/10).
    `accounting`: "zcdp" (default), "gdp" (exact, for Gaussian noise only), "advanced", "basic"; all meet
    (ε, δ), and all but "gdp" leave part of it unused: at (0.9, 10⁻⁶) and 5 iterations "zcdp" is worth
    ε = 0.834 (`guarantee_`), "gdp" the whole 0.9, with less noise. `first`: "gaussian" or
    "laplace"; `second`: "gaussian", "matrix-laplace" (pure) or "wishart" (exactly calibrated).
    proofs/robust.md#robust-rules
    """

    accounting: Accounting = "zcdp"
    first: VectorLaw = "gaussian"
    second: MatrixNoiseName = "gaussian"

    def _calibration(self, parameters: FitParameters) -> Calibration:
        self._check(parameters)
        settings = self._settings(parameters)
        return Calibration(event=event_of(settings), guarantee=exact_guarantee(settings))

    def _noise(self, parameters: FitParameters) -> MomentNoise:
        return calibrated(self._settings(parameters))

    def _settings(self, parameters: FitParameters) -> IterationSettings:
        return IterationSettings(
            guarantee=parameters.guarantee,
            adjacency=parameters.adjacency,
            width=parameters.width,
            iterations=self._count(),
            accounting=one_of("accounting", self.accounting, get_args(Accounting)),
            first=one_of("noise `first`", self.first, get_args(VectorLaw)),
            second=one_of("noise `second`", self.second, get_args(MatrixNoiseName)),
        )


def _power(p: float) -> float:
    if not 1.0 <= number("p", p) < 2.0:
        raise GuaranteeError(
            "p is out of range", got=p, limit="1 ≤ p < 2", remedy="p = 2 is AdaSSP, with one iteration."
        )
    return float(p)


def _floor(floor: float | None, parameters: FitParameters) -> float:
    return 0.1 * parameters.y_bound if floor is None else public_bound("floor", floor)


def _solved(measured: MeasuredMoments) -> Floats:
    """V(max(w, 0) + λ)⁻¹Vᵀb in lattice units, w without the mean of the noise, λ = E‖N₁ − E N₁‖."""
    law = measured.second.noise
    if not isinstance(law, SymmetricGaussian | MatrixLaplace | AdditiveWishart):
        raise TypeError(f"{type(law).__name__} is not noise that was added")
    second, first = in_lattice_units(measured)
    values, vectors = np.linalg.eigh(second)
    kept = np.maximum(values - law.mean_diagonal, 0.0) + law.expected_norm(len(first))
    return np.asarray(vectors @ ((vectors.T @ first) / kept), dtype=np.float64)

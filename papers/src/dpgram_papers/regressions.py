"""SSP, AdaSSP and private L1 regression with the constants that their papers print: baselines, as estimators.

None is for data that need protection. `fit` warns, and `guarantee_` holds what the printed noise is truly
worth, beside what the paper claims, `claimed_`. What meets its claim: `SSP`, `AdaSSP` and `LpRegression`
of `dpgram.estimators`.
"""

from __future__ import annotations

import math
import warnings
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, Self, TypeAlias, final

import numpy as np
from msgspec.structs import replace

from dpgram.core.noise import Entropy
from dpgram.errors import DpgramWarning, GuaranteeError
from dpgram.estimators.base import PrivateRegressor
from dpgram.estimators.iteration_noise import (
    discrete_epsilon,
    first_l1,
    first_l2,
    gaussian_vector,
    laplace_vector,
)
from dpgram.estimators.lp_regression import ReweightedRegression
from dpgram.estimators.norm_bounded import Calibration, FitParameters
from dpgram.mechanisms import MatrixLaplace, PublicFacts
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.accountant import composed
from dpgram.privacy.curves.rounding import up
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.moments import MomentNoise, VectorLaw
from dpgram.sums.moments import Floats, clipped
from dpgram_papers.analyze_gauss import upper_triangle_noise
from dpgram_papers.kalaja import FAILURE, Constant, SufficientStatistics
from dpgram_papers.park_welling import step_epsilon

VariantName: TypeAlias = Literal["wang2018", "kalaja2020"]


@dataclass(eq=False, repr=False, kw_only=True)
class PrintedMoments(PrivateRegressor, ABC):
    """A regression from noisy XᵀX and Xᵀy in floats, with printed noise; no ledger pays for it.

    "wang2018" is the published program: it adds the identity to XᵀX (in units of x_norm²), draws the noise of
    AdaSSP's matrix as (Z + Zᵀ)/2 and that of SSP cell by cell, not symmetric. "kalaja2020" is what the thesis
    prints: no identity, and an upper triangle that is mirrored.
    """

    algorithm: ClassVar[Literal["ssp", "adassp"]]
    constants: ClassVar[Mapping[str, Constant]]

    ledger: None = field(default=None, init=False)  # no parameter
    x_norm: float | None = None
    y_bound: float | None = None
    variant: VariantName = "wang2018"

    claimed_: Guarantee = field(init=False)

    @abstractmethod
    def _theta(self, x: Floats, y: Floats, printed: SufficientStatistics, entropy: Entropy) -> Floats:
        """From rows in units of the bounds."""

    @final
    def fit(self, X: Any, y: Any) -> Self:
        """One draw, with a warning."""
        rows, _ = self._array(X)
        target = self._target_numbers(rows, y)
        source = self._noise_source()
        parameters = FitParameters.checked(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            x_norm=self.x_norm,
            y_bound=self.y_bound,
            width=rows.shape[1],
        )
        printed = self._printed(parameters)
        true = true_guarantee(printed)
        warnings.warn(_caution(printed, true), DpgramWarning, stacklevel=2)
        theta = self._theta(*float_rows(rows, target, parameters), printed, source)
        self.coef_, self.intercept_ = theta * (parameters.y_bound / parameters.x_norm), 0.0
        stated = self._stated(epsilon=true.epsilon, delta=true.delta)
        words = f"A BASELINE drawn in floats; in real arithmetic: {stated.statement}"
        self.claimed_, self.guarantee_ = parameters.guarantee, replace(stated, statement=words)
        self.receipt_, self.entropy_ = None, source.label
        return self

    def _printed(self, parameters: FitParameters) -> SufficientStatistics:
        constant = self.constants.get(self.variant)
        if constant is None:
            limit = " or ".join(map(repr, self.constants))
            raise GuaranteeError("unknown variant", got=repr(self.variant), limit=limit)
        return SufficientStatistics(
            claimed=parameters.guarantee,
            adjacency=parameters.adjacency,
            algorithm=self.algorithm,
            constant=constant,
        )


@final
class PrintedSSP(PrintedMoments):
    """(XᵀX + N₁)⁻¹(Xᵀy + N₂), without a ridge.

    "wang2018": the noise of the published program, which does not split ε over its two releases and is worth
    about 1.6ε; "kalaja2020": the classical noise of two shares.
    """

    algorithm: ClassVar[Literal["ssp", "adassp"]] = "ssp"
    constants: ClassVar[Mapping[str, Constant]] = {"wang2018": "wang-code", "kalaja2020": "kalaja"}

    def _theta(self, x: Floats, y: Floats, printed: SufficientStatistics, entropy: Entropy) -> Floats:
        width, generator = x.shape[1], entropy.generator()
        if self.variant == "wang2018":
            second = x.T @ x + np.eye(width) + printed.sigma * generator.standard_normal((width, width))
        else:
            second = x.T @ x + upper_triangle_noise(width, printed.sigma, generator)
        first = x.T @ y + printed.sigma * generator.standard_normal(width)
        return _least_squares(second, first)


@final
class PrintedAdaSSP(PrintedMoments):
    """(XᵀX + N₁ + λI)⁻¹(Xᵀy + N₂), λ ≥ 0 from a noisy λ_min.

    "wang2018": three shares of the published constants and the published rule for λ; "kalaja2020": the same
    with classical noise.
    """

    algorithm: ClassVar[Literal["ssp", "adassp"]] = "adassp"
    constants: ClassVar[Mapping[str, Constant]] = {"wang2018": "wang", "kalaja2020": "kalaja"}

    def _theta(self, x: Floats, y: Floats, printed: SufficientStatistics, entropy: Entropy) -> Floats:
        """λ̃ = (λ_min + σz − σ²ε/3)₊, λ = (σ√(d ln(2d²/ϱ)) − λ̃)₊, in both."""
        width, sigma, generator = x.shape[1], printed.sigma, entropy.generator()
        program = self.variant == "wang2018"
        second = x.T @ x + np.eye(width) if program else x.T @ x
        smallest = float(np.linalg.eigvalsh(second)[0]) + sigma * float(generator.standard_normal())
        lowered = max(0.0, smallest - sigma**2 * printed.claimed.epsilon / printed.parts)
        ridge = max(0.0, sigma * math.sqrt(width * math.log(2.0 * width**2 / FAILURE)) - lowered)
        if program:
            noise = SymmetricGaussian(sigma=sigma).sample(width, generator)
        else:
            noise = upper_triangle_noise(width, sigma, generator)
        noisy = second + noise + ridge * np.eye(width)
        first = x.T @ y + sigma * generator.standard_normal(width)
        return _least_squares(noisy, first)


def true_guarantee(printed: SufficientStatistics) -> Guarantee:
    """What the noise is truly worth at the claimed δ, in real arithmetic. proofs/adassp.md#adassp-printed"""
    delta = printed.claimed.delta
    return Guarantee(printed.true_epsilon(delta), delta)


def float_rows(x: Floats, y: Floats, parameters: FitParameters) -> tuple[Floats, Floats]:
    """Rows in units of the bounds: |x| ≤ 1 and |y| ≤ 1, in floats; those with missing cells left out."""
    finite = np.isfinite(x).all(axis=1) & np.isfinite(y)
    bounded = np.clip(y[finite], -parameters.y_bound, parameters.y_bound) / parameters.y_bound
    return clipped(x[finite].T, parameters.x_norm).T / parameters.x_norm, bounded


def _caution(printed: SufficientStatistics, true: Guarantee) -> str:
    if printed.private:
        return (
            f"{printed.name} is a baseline with the constants of the paper, drawn in floats: not for data "
            "that need protection. Use dpgram.estimators"
        )
    return (
        f"{printed.name} DOES NOT MEET its claim {printed.claimed}: its noise is worth "
        f"ε = {true.epsilon:.3g} at δ = {true.delta:g}. A baseline, drawn in floats; use dpgram.estimators"
    )


def _least_squares(matrix: Floats, right: Floats) -> Floats:
    """A singular noisy matrix has a solution too."""
    return np.asarray(np.linalg.lstsq(matrix, right, rcond=None)[0], dtype=np.float64)


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrintedRobustRegression(ReweightedRegression):
    """Private L_p regression with the paper's accounting, mean-CDP: ε' = √(ε/J) for each of the 2J steps.

    It bounds the *expected* loss by ε, and is worth far less than (ε, δ). The second moment gets exact matrix
    Laplace noise, as the paper's one-sided Wishart noise has no finite ε at all; `first` is "laplace", or
    "gaussian" with the classical σ as printed. proofs/robust.md#robust-printed
    """

    ledger: None = field(default=None, init=False)  # no parameter
    first: VectorLaw = "gaussian"

    def _calibration(self, parameters: FitParameters) -> Calibration:
        self._check(parameters)
        claimed = parameters.guarantee
        if claimed.pure:
            raise GuaranteeError("mean-CDP accounting gives no pure guarantee", got="delta = 0")
        event = composed(list(self._noise(parameters).events) * self._count())
        epsilon = discrete_epsilon(event, claimed.delta)
        warnings.warn(
            f"mean-CDP accounting bounds the EXPECTED privacy loss by {claimed.epsilon:g} and DOES NOT MEET "
            f"{claimed}: it is worth ε = {epsilon:.3g} at δ = {claimed.delta:g}. "
            "Use dpgram.estimators.LpRegression",
            DpgramWarning,
            stacklevel=3,
        )
        return Calibration(event=event, guarantee=Guarantee(epsilon, claimed.delta))

    def _noise(self, parameters: FitParameters) -> MomentNoise:
        share = step_epsilon(parameters.guarantee.epsilon, self._count())
        facts = PublicFacts(width=parameters.width, adjacency=parameters.adjacency)
        second = MatrixLaplace().calibrated(Guarantee(share), facts)
        if self.first == "gaussian":
            sensitivity = first_l2(parameters.adjacency)
            multiplier = math.sqrt(2.0 * math.log(1.25 / parameters.guarantee.delta)) / share
            first, event = gaussian_vector(sensitivity, up(multiplier * sensitivity))
        elif self.first == "laplace":
            first, event = laplace_vector(first_l1(parameters.adjacency, parameters.width), share)
        else:
            raise GuaranteeError(
                "unknown noise", got=f"first={self.first!r}", limit="'gaussian' or 'laplace'"
            )
        return MomentNoise(second=second, first=first, events=(second.event(facts), event))

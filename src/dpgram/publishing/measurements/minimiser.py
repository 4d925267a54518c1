"""A ridge minimiser with noise, argmin_{|θ| ≤ R} |t − Qθ|²/2 + (λ/2)|θ|² + N: output perturbation."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, final

import numpy as np
import numpy.typing as npt
from msgspec import Struct

from dpgram.document.fields import Cell
from dpgram.errors import GuaranteeError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.curves.calibrate import discrete_gaussian_sigma
from dpgram.privacy.curves.rounding import down, up
from dpgram.privacy.events import GaussianEvent, PureEvent
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.counts import decimal_cells
from dpgram.publishing.measurements.proven_minimiser import on_grid
from dpgram.sums.moments import MomentsStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.sums.moments import ExactMoments

Cells = npt.NDArray[np.object_]

GRID_STEPS: Final = 2.0**34
"""Steps of the public grid in one sensitivity, so that integer noise is as fine as its proof wants."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RidgeProblem:
    """The problem in units of the bounds, |x| ≤ 1 and |y| ≤ 1, and the grid its answer is rounded to."""

    ridge: float
    """λ."""
    radius: float
    """R."""
    width: int
    adjacency: Adjacency

    @property
    def sensitivity(self) -> float:
        """How far one row moves the minimiser, without rounding: never out of the ball.

        The slope of one loss over the curvature of all. Proof:
        proofs/output-perturbation.md#output-perturbation-claim.
        """
        moved = self.adjacency.units_changed * (1.0 + self.radius) / self.ridge
        return up(min(moved, 2.0 * self.radius))

    @property
    def steps(self) -> float:
        """Steps of the grid in a unit of θ, rounded down: a coarser grid moves by fewer steps."""
        return down(GRID_STEPS / self.sensitivity)

    @property
    def rounded_sensitivity(self) -> float:
        """How far one row moves the rounded minimiser, in steps."""
        return up(GRID_STEPS + 2.0 * math.sqrt(self.width))

    def solved(self, exact: ExactMoments) -> Cells:
        """The minimiser in steps of the grid. Not private."""
        return on_grid(
            exact.xx,
            exact.xy,
            unit=ROW_NORM_SQUARED,
            ridge=self.ridge,
            radius=self.radius,
            scale=self.steps,
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianGridNoise:
    """Independent discrete Gaussian noise on every coordinate."""

    sigma: float

    @classmethod
    def calibrated(cls, problem: RidgeProblem, asked: Guarantee) -> Self:
        """The least σ for the rounded minimiser, on the exact curve."""
        if asked.pure:
            raise GuaranteeError(
                "Gaussian noise cannot give a pure guarantee",
                got="delta = 0",
                limit="delta > 0",
                remedy="Use noise='gamma', or give a delta such as 1e-6.",
            )
        sigma = discrete_gaussian_sigma(
            epsilon=asked.epsilon, delta=asked.delta, sensitivity=problem.rounded_sensitivity
        )
        return cls(sigma=sigma)

    def event(self, problem: RidgeProblem) -> GaussianEvent:
        """μ = Δ/σ."""
        return GaussianEvent(mu=up(problem.rounded_sensitivity / self.sigma))

    def draw(self, exact: Cells, problem: RidgeProblem, entropy: Entropy) -> Cells:
        """Call it only after the event has been charged."""
        noisy: Cells = exact + entropy.discrete_gaussian(self.sigma, problem.width)
        return noisy


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class GammaGridNoise:
    """A vector with density ∝ e^{−ε|v|/Δ}: pure."""

    epsilon: float

    def event(self, problem: RidgeProblem) -> PureEvent:
        """ε."""
        del problem
        return PureEvent(epsilon=self.epsilon)

    def draw(self, exact: Cells, problem: RidgeProblem, entropy: Entropy) -> Cells:
        """Rounded noise on integers is rounding after noise. Call it only after the charge."""
        from dpgram.privacy.sampling.norm_laplace import norm_laplace

        scale = up(problem.rounded_sensitivity / self.epsilon)
        noisy: Cells = exact + norm_laplace(problem.width, scale, entropy.random_bytes)
        return noisy


@final
class MeasuredMinimiser(Struct, frozen=True, kw_only=True):
    """A noisy θ in steps of the public grid."""

    theta: tuple[Cell, ...]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Minimiser(Measurement):
    """The ridge minimiser plus noise scaled to how far one row can move it.

    Proof: proofs/output-perturbation.md#output-perturbation-noise.
    """

    kind: ClassVar[str] = "minimiser"
    result: ClassVar[Any] = MeasuredMinimiser
    sums: MomentsStatistic
    problem: RidgeProblem
    noise: GaussianGridNoise | GammaGridNoise

    @property
    def statistic(self) -> MomentsStatistic:
        """The sums that decide the minimiser."""
        return self.sums

    @property
    def event(self) -> GaussianEvent | PureEvent:
        return self.noise.event(self.problem)

    def draw(self, exact: tuple[ExactMoments], entropy: Entropy) -> MeasuredMinimiser:
        solved = self.problem.solved(exact[0])
        return MeasuredMinimiser(theta=decimal_cells(self.noise.draw(solved, self.problem, entropy)))

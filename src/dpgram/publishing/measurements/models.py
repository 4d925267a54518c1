"""What a declared model needs beyond the matrix: its score, its Hessian matrix, the spread of its scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from dpgram.document.fields import MeasuredStep, Spread
from dpgram.document.measurements import step_price
from dpgram.errors import MechanismError
from dpgram.mechanisms import CalibratedGaussian
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.curves.calibrate import DISCRETE_SIGMA_AT_LEAST
from dpgram.privacy.events import Event, GaussianEvent
from dpgram.privacy.exact_sums import root_up
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.counts import decimal_cells
from dpgram.publishing.measurements.gram import lower_triangle
from dpgram.sums.models import StepStatistic

if TYPE_CHECKING:
    from dpgram.core.noise import Entropy
    from dpgram.sums.models import ExactModelSums


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Measurement):
    """Σ h hᵀ and Σ a aᵀ with symmetric Gaussian noise, Σ s with independent Gaussian noise on every cell.

    μ² = c·2^60/σ² + c·2^60/σ_a² + c²·2^60/σ_s², c = 1 under add/remove and 2 under replace-one: two scores
    may point in opposite directions. Proof: proofs/models.md#models-step.
    """

    kind: ClassVar[str] = "step"
    result: ClassVar[Any] = MeasuredStep
    sums: StepStatistic
    mechanism: CalibratedGaussian
    score_sigma: float
    spread: CalibratedGaussian | None
    """The noise of Σ a aᵀ, where that is measured."""
    units_changed: int
    label: str
    """The target as it was declared."""
    on: tuple[str, ...]
    share: float

    def __post_init__(self) -> None:
        if self.score_sigma < DISCRETE_SIGMA_AT_LEAST:
            raise MechanismError("this noise is smaller than the proof of its privacy covers")
        if (self.spread is None) != (self.sums.bound is None):
            raise MechanismError("a spread is measured with noise", remedy="This is a bug: please report it")

    @property
    def statistic(self) -> StepStatistic:
        """The score and the Hessian matrix of each row."""
        return self.sums

    @property
    def event(self) -> Event:
        spread = None if self.spread is None else self.spread.sigma
        return GaussianEvent(
            mu=root_up(step_price(self.units_changed, self.mechanism.sigma, self.score_sigma, spread))
        )

    def draw(self, exact: tuple[ExactModelSums], entropy: Entropy) -> MeasuredStep:
        drawn = self.mechanism.draw(exact[0].matrix, entropy)
        score = exact[0].score.astype(object)
        noisy = score + entropy.discrete_gaussian(self.score_sigma, len(score))
        coordinates = self.sums.features.coordinates
        if coordinates is None:
            raise MechanismError("a step has coordinates", remedy="This is a bug: please report it")
        return MeasuredStep(
            share=self.share,
            family=self.sums.curve,
            target=self.label,
            on=self.on,
            coordinates=coordinates,
            radius=self.sums.features.radius,
            slopes=self.sums.slopes,
            size=self.sums.size,
            limit=self.sums.limit,
            cap=self.sums.cap,
            score_sigma=self.score_sigma,
            score=decimal_cells(noisy),
            noise=_symmetric(drawn.noise),
            cells=lower_triangle(drawn.cells),
            spread=self._spread(exact[0], entropy),
        )

    def _spread(self, exact: ExactModelSums, entropy: Entropy) -> Spread | None:
        if self.spread is None or self.sums.bound is None:
            return None
        drawn = self.spread.draw(exact.spread, entropy)
        return Spread(bound=self.sums.bound, noise=_symmetric(drawn.noise), cells=lower_triangle(drawn.cells))


def _symmetric(noise: object) -> SymmetricGaussian:
    if not isinstance(noise, SymmetricGaussian):
        raise MechanismError("models have Gaussian noise", remedy="This is a bug: please report it")
    return noise

"""What a declared model needs beyond the matrix: products of its residual, or score and Hessian matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, final

from dpgram.document.fields import MeasuredProducts, MeasuredStep
from dpgram.document.measurements import step_price
from dpgram.errors import MechanismError
from dpgram.mechanisms import CalibratedGaussian, PublicFacts
from dpgram.noise import SymmetricGaussian
from dpgram.privacy.curves.calibrate import DISCRETE_SIGMA_AT_LEAST
from dpgram.privacy.events import Event, GaussianEvent
from dpgram.privacy.exact_sums import root_up
from dpgram.publishing.measurements.base import Measurement
from dpgram.publishing.measurements.counts import decimal_cells
from dpgram.publishing.measurements.gram import lower_triangle
from dpgram.sums.models import ProductsStatistic, StepStatistic

if TYPE_CHECKING:
    from dpgram.privacy.sampling.entropy import Entropy
    from dpgram.sums.models import ExactModelSums


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Products(Measurement):
    """Σ a aᵀ with symmetric Gaussian noise: a unit has |a|² ≤ 2^30, so μ is that of one matrix.

    Proof: proofs/models.md#models-products.
    """

    kind: ClassVar[str] = "products"
    result: ClassVar[Any] = MeasuredProducts
    sums: ProductsStatistic
    mechanism: CalibratedGaussian
    facts: PublicFacts
    target: str
    on: tuple[str, ...]
    share: float

    @property
    def statistic(self) -> ProductsStatistic:
        """One product of residual and features for each row, or unit."""
        return self.sums

    @property
    def event(self) -> Event:
        return self.mechanism.event(self.facts)

    def draw(self, exact: tuple[ExactModelSums], entropy: Entropy) -> MeasuredProducts:
        drawn = self.mechanism.draw(exact[0].matrix, entropy)
        return MeasuredProducts(
            share=self.share,
            target=self.target,
            on=self.on,
            basis=self.sums.basis,
            residual=self.sums.residual,
            bound=self.sums.bound,
            noise=_symmetric(drawn.noise),
            cells=lower_triangle(drawn.cells),
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Step(Measurement):
    """Σ h hᵀ with symmetric Gaussian noise, and Σ s with independent Gaussian noise on every cell.

    μ² = c·2^60/σ² + c²·2^60/σ_s², c = 1 under add/remove and 2 under replace-one: two scores may point in
    opposite directions. Proof: proofs/models.md#models-step.
    """

    kind: ClassVar[str] = "step"
    result: ClassVar[Any] = MeasuredStep
    sums: StepStatistic
    mechanism: CalibratedGaussian
    score_sigma: float
    units_changed: int
    label: str
    """The target as it was declared."""
    on: tuple[str, ...]
    share: float

    def __post_init__(self) -> None:
        if self.score_sigma < DISCRETE_SIGMA_AT_LEAST:
            raise MechanismError("this noise is smaller than the proof of its privacy covers")

    @property
    def statistic(self) -> StepStatistic:
        """The score and the Hessian matrix of each row."""
        return self.sums

    @property
    def event(self) -> Event:
        return GaussianEvent(
            mu=root_up(step_price(self.units_changed, self.mechanism.sigma, self.score_sigma))
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
            score_sigma=self.score_sigma,
            score=decimal_cells(noisy),
            noise=_symmetric(drawn.noise),
            cells=lower_triangle(drawn.cells),
        )


def _symmetric(noise: object) -> SymmetricGaussian:
    if not isinstance(noise, SymmetricGaussian):
        raise MechanismError("models have Gaussian noise", remedy="This is a bug: please report it")
    return noise

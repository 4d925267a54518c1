"""What an adaptive release costs: every price follows from public facts, before a row is read.

μ² = Σ μᵢ² (or ε = Σ εᵢ). Levels, octaves and histograms have fixed shares; the matrices, the counts of their
clip and declared models share the rest. `_adaptive` has the stages that are paid for with it.

Proofs: proofs/adaptive.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Final, Literal, TypeAlias, final

from dpgram.errors import GuaranteeError
from dpgram.mechanisms import Auto, CalibratedMechanism, Gaussian, MatrixLaplace, PublicFacts
from dpgram.privacy.accountant import (
    ApproximateEvent,
    Currency,
    Event,
    GaussianEvent,
    PureEvent,
    composed,
    describe,
)
from dpgram.privacy.count_noise import CountLaw, CountNoise, price_of_counts
from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.privacy.exact_sums import float_up, root_up
from dpgram.privacy.guarantee import GaussianDP, Guarantee
from dpgram.publishing._model_steps import ModelsBudget
from dpgram.publishing._open_columns import count_noise
from dpgram.publishing._zoom import MOST_FOR_ZOOM
from dpgram.publishing.request import Request
from dpgram.publishing.split import SLACK

if TYPE_CHECKING:
    from dpgram.schema import Schema

Family: TypeAlias = Literal["gaussian", "pure"]
_NARROWEST: Final = 2.0**-20
"""The part of what is left that a block gets at least, however many levels are found: that of one column
beside ten thousand."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class AdaptiveCalibration:
    """Every price of the event, fixed before a row is read: public facts only."""

    request: Request
    family: Family
    whole: float
    """μ² or ε of everything."""
    levels: CountNoise | None
    octaves: CountNoise | None
    level_delta: float
    first_price: Fraction
    """Of levels, octaves and histograms, at most."""
    guarantee: Guarantee
    gaussian: GaussianDP | None

    @property
    def law(self) -> CountLaw:
        return "discrete-gaussian" if self.family == "gaussian" else "discrete-laplace"

    @property
    def rest(self) -> Fraction:
        """What is left for the matrices and the counts of the clip."""
        return Fraction(self.whole * SLACK) - self.first_price

    @property
    def models_price(self) -> Fraction:
        """Of all declared models, at most."""
        return Fraction(self.request.split.models * self.whole)

    @property
    def matrices_rest(self) -> Fraction:
        """What is left for matrices and counts once declared models have their share."""
        return self.rest - self.models_price

    @property
    def units_changed(self) -> int:
        """1 under add/remove, 2 under replace-one."""
        return self.request.adjacency.units_changed

    @property
    def price(self) -> Event:
        """Charged before anything is drawn."""
        leak = [ApproximateEvent(epsilon=0.0, delta=self.level_delta)] if self.level_delta else []
        return composed([self.event(self.first_price + self.rest), *leak])

    def event(self, price: Fraction) -> Event:
        if self.family == "gaussian":
            return GaussianEvent(mu=root_up(price))
        return PureEvent(epsilon=float_up(price))

    def price_of(self, event: Event) -> Fraction:
        """μ² or ε of one measurement."""
        if isinstance(event, GaussianEvent):
            return Fraction(event.mu) ** 2
        if isinstance(event, PureEvent):
            return Fraction(event.epsilon)
        raise GuaranteeError(f"no price in the currency of {self.family} noise", got=describe(event))

    def mechanism(self, price: float, facts: PublicFacts) -> CalibratedMechanism:
        """The noise of a matrix at this price."""
        if self.family == "gaussian":
            return Gaussian().of_mu_squared(price, facts)
        return MatrixLaplace().calibrated(Guarantee(price), facts)

    def mu(self, width: int) -> float:
        """The μ of Gaussian noise as large as that of one matrix at the whole price."""
        if self.family == "gaussian":
            return math.sqrt(self.whole / self.units_changed)
        return self.whole / (self.units_changed * math.sqrt(width + 1.0))


def adaptive_family(request: Request, currency: Currency | None) -> Family | None:
    """How the noise of two matrices composes under what was asked for; nothing where there is to be one."""
    if not request.split.histograms:
        return None
    asked = request.mechanism
    if isinstance(asked, Auto):
        return "pure" if request.guarantee.pure or currency == "epsilon" else "gaussian"
    return "gaussian" if asked.gaussian else "pure"


def calibrate_adaptive(request: Request, family: Family) -> AdaptiveCalibration:
    """Prices such that all parts together keep the guarantee, exactly. Reads no data.

    Proof: proofs/adaptive.md#adaptive-composition.
    """
    guarantee, split, schema = request.guarantee, request.split, request.rules.schema
    level_delta = split.levels * guarantee.delta
    whole = guarantee.epsilon
    if family == "gaussian":
        whole = discrete_mu_at_most(guarantee.epsilon, guarantee.delta - level_delta) ** 2
    law: CountLaw = "discrete-gaussian" if family == "gaussian" else "discrete-laplace"
    units_changed = request.adjacency.units_changed
    numbers = {"levels": len(schema.without_levels), "octaves": len(schema.unbounded)}
    noises = {
        "levels": count_noise(law, split.levels * whole, numbers["levels"], units_changed),
        "octaves": count_noise(law, split.bounds * whole, numbers["octaves"], units_changed),
    }
    paid = [
        price_of_counts(law, noise.scale, histograms=numbers[part], units_changed=units_changed)
        for part, noise in noises.items()
        if noise is not None
    ]
    first_price = sum(paid, Fraction(0)) + Fraction(split.histograms * whole)
    if split.levels and level_delta == 0.0:
        raise GuaranteeError("so small a share of delta cannot pay for levels", got=f"{level_delta:g}")
    made = AdaptiveCalibration(
        request=request,
        family=family,
        whole=whole,
        level_delta=level_delta,
        first_price=first_price,
        guarantee=Guarantee(guarantee.epsilon, level_delta) if family == "pure" else guarantee,
        gaussian=GaussianDP(math.sqrt(whole)) if family == "gaussian" and not level_delta else None,
        **noises,
    )
    # Noise that is too small for the proof, or too large to be drawn, is refused before anything is charged:
    # the largest prices of one matrix and of one histogram, and the smallest of what may come later.
    known = not schema.without_levels or len(schema.in_blocks()) == 1
    smallest = min(parts_of_blocks(schema, family)) if known else _NARROWEST
    left = (1.0 - MOST_FOR_ZOOM) * smallest * float(made.matrices_rest)
    later = [share * left for share in (split.first, 0.5 * split.clip)]
    models = ModelsBudget(request=request, whole=whole).least_prices
    for price in (float(made.rest), split.histograms * whole, *later, *models):
        count_noise(law, price, 1, units_changed)
    return made


def parts_of_blocks(schema: Schema, family: Family) -> list[float]:
    """Of what is left for the matrices, by widths: for the least Σ d_b·σ_b²."""
    power = 1.5 if family == "gaussian" else 4.0 / 3.0
    costs = [float(one.width) ** power for one in schema.in_blocks()]
    return [cost / sum(costs) for cost in costs]

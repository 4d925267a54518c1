"""How a declared model is measured, from public facts: steps, prices, how long rows and residuals may be."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

from dpgram.privacy.curves.calibrate import discrete_mu_at_most
from dpgram.publishing._coordinates import radius, signal

if TYPE_CHECKING:
    from dpgram.analysis.pilot import Pilot
    from dpgram.models import Model
    from dpgram.publishing.request import Request

PART_OF_A_MODEL: Final = 1e-5
"""Of a model's price: the least that one of its parts gets, in the first of several steps."""
PARTS: Final = (0.6, 0.4, 0.0)
"""Of a step's price, for score, Hessian matrix and spread: a Hessian matrix, which multiplies a small step,
may be noisier than a score."""
LAST_PARTS: Final[Mapping[str, tuple[float, float, float]]] = {
    "linear": (0.85, 0.05, 0.1),
    "poisson": (0.6, 0.25, 0.15),
}
"""Of the last step of families whose errors follow from the spread of their scores. The matrix tells much of
the Hessian matrix of a linear model."""
RADII: Final = (0.95, 1.3)
"""In √k, k features: rows clipped at less would tell less for the same noise, at more little more."""
LEAST_LIMIT: Final[Mapping[str, float]] = {"linear": 2.5, "poisson": 6.0}
"""Deviations that a residual may have at least before it is limited: of normal errors that takes few, and so
it does of counts, which are skewed, with variances that grow with their mean or its square."""
LIMIT_NOISE: Final = 0.27
"""Of the sampling deviation of a score: where its noise is smaller, rows and residuals may be longer."""
CAP: Final = 1.5
"""Times the mean count: rows that are expected to have more weigh less, as is best where the variance grows
with the square of the mean."""
FASTER: Final = 4.0
MORE_STEPS: Final = (5.0, 500.0)
"""n̂μ/d^1.5 of a model from which on it has two steps, and three; models of counts have one more."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ModelsBudget:
    """The price of everything, of which declared models have their shares: public facts only."""

    request: Request
    whole: float
    """μ² of everything."""

    @classmethod
    def of(cls, request: Request) -> ModelsBudget:
        """That of a matrix before which nothing is measured."""
        guarantee = request.guarantee
        return cls(request=request, whole=discrete_mu_at_most(guarantee.epsilon, guarantee.delta) ** 2)

    @property
    def units_changed(self) -> int:
        """1 under add/remove, 2 under replace-one."""
        return self.request.adjacency.units_changed

    @property
    def least_prices(self) -> list[float]:
        """The least that a part of each model may get: noise too large to be drawn is refused first."""
        return [PART_OF_A_MODEL * (model.share or 0.0) * self.whole for model in self.request.models]


def usual_radius(budget: ModelsBudget, width: int, rows: float) -> float:
    """What the first radius of an adaptive release of so many columns is, in roots of their number."""
    mu = math.sqrt(budget.whole / budget.units_changed)
    return radius(max(rows, 1.0), mu, width) / math.sqrt(width)


def step_bounds(
    begun: Pilot, model: Model, width: int, usual: float, told: float
) -> tuple[float, float, float]:
    """(R, E, c): how long rows and residuals may be, and from which expected count on rows weigh less.

    `usual` is the radius of the matrix, in roots of its width: that of a logit or probit. Where residuals are
    limited, R and E begin at `RADII` and `LEAST_LIMIT`. The noise of a score goes with R·E; where that is
    small beside sampling, which √n̂·μ tells (`told`), both grow with its root, so that what they take and what
    noise adds both vanish as there are more rows: R as far as `usual`, E to public bounds; c as R·E.
    """
    if begun.deviation is None:
        return usual * math.sqrt(width), 1.0, 1.0
    least, most = RADII
    first, limit = min(max(usual, least), most) * math.sqrt(width), model.limit or LEAST_LIMIT[model.family]
    clear = math.sqrt(max(LIMIT_NOISE * told / (first * limit), 1.0))
    radius = min(first * math.sqrt(clear), max(first, usual * math.sqrt(width)))
    limit = min(limit * clear * first / radius * begun.deviation, begun.range)
    return radius, limit, CAP * clear * begun.mean if model.family == "poisson" else 1.0


def step_shares(steps: int) -> list[float]:
    """Of a model's price: each step gets four times what the one before it got."""
    sizes = [FASTER**place for place in range(steps)]
    return [size / sum(sizes) for size in sizes]


def number_of_steps(budget: ModelsBudget, model: Model, width: int, rows: float) -> int:
    """By n̂μ/d^1.5 of the model's own share: more steps only where noise is small beside what they correct."""
    if model.family == "linear":
        return 1
    if model.steps is not None:
        return model.steps
    mu = math.sqrt((model.share or 0.0) * budget.whole) / budget.units_changed
    told = signal(rows, mu, width)
    return 1 + (model.family == "poisson") + sum(told >= limit for limit in MORE_STEPS)

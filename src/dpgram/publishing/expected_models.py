"""What declared models should give, from public facts: privacy noise beside the sampling error.

In coordinates of their own, in which k features are taken to be normal and to vary alike, a coefficient that
is estimated from n rows has, in units of its sampling variance without privacy,

    a = E w⁴x²/(E w²x²)²·E ψ²/P²,   b = (units_changed·R·E)²/(p·n·v·(E w²x²·P)²),

a for rows and residuals that are cut and b for the noise of the score, of price p, w² = min(1, R²/|x|²); P is
the part of residuals within E deviations, and v = 1, or for a logit or probit the variance of its target, by
which a row tells less than its score might move. Only the last step counts. Beside one plain matrix there are
no such coordinates, and nothing is forecast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
from scipy.special import ndtr

from dpgram.analysis.glm import CLEAR, SAMPLING
from dpgram.analysis.pilot import Pilot
from dpgram.document.measurements import feature_schema
from dpgram.document.model_units import WIDEST_CURVE
from dpgram.models import Family, Model
from dpgram.publishing._coordinates import PLAIN_BELOW, rank, signal
from dpgram.publishing._model_steps import (
    LAST_PARTS,
    PARTS,
    ModelsBudget,
    number_of_steps,
    step_bounds,
    step_shares,
    usual_radius,
)
from dpgram.publishing.expected import normal_squares
from dpgram.publishing.request import Request

NORMAL: Final = ("linear",)
"""Families whose limit cuts residuals that are taken to be normal; of counts it is far out."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedModel:
    """One declared model of a table that nobody has looked at."""

    family: Family
    target: str
    on: tuple[str, ...]
    share: float
    """Of μ²: what it costs."""
    steps: int
    se_ratio: float | None
    """Standard error of a coefficient over that without privacy; inf where noise would hide the model.

    None where it is not forecast: beside one plain matrix it depends on how far the bounds are from the rows.
    """
    privacy: float | None
    """The part of its standard error that privacy noise alone makes, over that of sampling; None likewise."""

    @property
    def works(self) -> bool | None:
        """Whether intervals would be given; None where that is not forecast."""
        return None if self.se_ratio is None else math.isfinite(self.se_ratio)


def expected_models(
    request: Request, rows: float, variances: Mapping[str, float]
) -> tuple[ExpectedModel, ...]:
    """The forecast for every model of a request, on a table of `rows` rows; reads no data.

    `variances` are guesses of those of targets with two values, 0 and 1; else a quarter is taken.
    """
    return tuple(
        _expected(request, model, rows, variances.get(model.target, 0.25)) for model in request.models
    )


def _expected(request: Request, model: Model, rows: float, variance: float) -> ExpectedModel:
    budget, features = ModelsBudget.of(request), feature_schema(request.rules.schema, model.on or ())
    width, columns = rank(features), rank(request.rules.schema)
    changed, two_valued = budget.units_changed, model.family in SAMPLING
    steps = number_of_steps(budget, model, columns, rows)
    found = ExpectedModel(
        family=model.family,
        target=model.target,
        on=model.on or (),
        share=model.share or 0.0,
        steps=steps,
        se_ratio=None,
        privacy=None,
    )
    if not request.split.histograms:
        return found
    score, hessian, _ = LAST_PARTS.get(model.family, PARTS)
    price = step_shares(steps)[-1] * (model.share or 0.0) * budget.whole
    told = math.sqrt(rows * score * price) / changed
    begun = Pilot(theta=np.zeros(0), deviation=None if two_valued else 1.0, range=math.inf, mean=1.0)
    usual = usual_radius(budget, columns, rows)
    longest, limit, _ = step_bounds(begun, model, width, usual, told)
    squares = normal_squares(width)
    weights = np.minimum(1.0, longest**2 / squares)
    left, spread = float(np.mean(weights * squares)) / width, float(np.mean(weights**2 * squares)) / width
    within, cut = _of_normal(limit) if model.family in NORMAL else (1.0, 1.0)
    tells = variance if two_valued else 1.0
    sampling = spread * cut / (left * within) ** 2
    noise = (changed * longest * limit) ** 2 / (score * price * rows * tells * (left * within) ** 2)
    hidden = longest**2 * WIDEST_CURVE[model.family] * math.sqrt(changed / (hessian * price))
    clear = not two_valued or rows * tells * left > CLEAR * hidden
    # Of too few rows an adaptive release measures none.
    clear = clear and signal(rows, math.sqrt(budget.whole / changed), columns) >= PLAIN_BELOW
    return replace(
        found,
        se_ratio=math.sqrt(sampling + noise) if clear else math.inf,
        privacy=math.sqrt(noise / sampling),
    )


def _of_normal(limit: float) -> tuple[float, float]:
    """P(|e| ≤ E) and E ψ(e)² of a standard normal error."""
    within = 2.0 * float(ndtr(limit)) - 1.0
    density = math.exp(-0.5 * limit**2) / math.sqrt(2.0 * math.pi)
    return within, within - 2.0 * limit * density + limit**2 * (1.0 - within)

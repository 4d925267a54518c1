"""Declared models, after the matrix: Newton steps, each from what was published before it.

A linear model has one step, another one to four. All models are measured in the same passes. Every price is a
fixed share of the event's, except that a model with fewer steps than it might have had puts all of its share
into those. Proof: proofs/models.md#models-composition.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpgram.analysis.design import build_design
from dpgram.analysis.glm import FeatureSpace, NewtonStep
from dpgram.analysis.moments import Moments
from dpgram.analysis.pilot import Pilot, pilot
from dpgram.document.fields import UnmeasuredModel
from dpgram.errors import AnalysisError, MechanismError, OptionsError, tell_caller
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Gaussian, PublicFacts
from dpgram.models.declared import LEAST_SHARE
from dpgram.privacy.curves.calibrate import DISCRETE_SIGMA_AT_LEAST
from dpgram.publishing._coordinates import rank, signal
from dpgram.publishing._model_steps import (
    LAST_PARTS,
    PARTS,
    number_of_steps,
    step_bounds,
    step_shares,
    usual_radius,
)
from dpgram.publishing.measurements.models import Step
from dpgram.publishing.publication import Answer, Stage
from dpgram.publishing.split import SLACK
from dpgram.sums.models import LEAST_BOUND, StepStatistic, nearest_direction

if TYPE_CHECKING:
    from dpgram.document.fields import MeasuredStep
    from dpgram.models import Model
    from dpgram.publishing._model_steps import ModelsBudget
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.publishing.request import Request
    from dpgram.publishing.terms import ReleaseTerms
    from dpgram.release import Release
    from dpgram.rows.rules import RowRules
    from dpgram.schema import Schema


_NUDGE: Final = 1.0 + 2.0**-40
"""By which a scale is enlarged, so that rounding can only make it cheaper than its price."""
SPREAD_REACH: Final = 3.0
"""Usual lengths of a score, times (n̂μ/k^1.5)^⅛, at which they are clipped for their spread."""
OneModel = Generator["Measurement", Any, None]
"""Measurement after measurement of one model, each from what those before it published."""


def refuse_pure_models(request: Request, *, pure: bool) -> None:
    """A ledger that counts ε alone makes the noise pure."""
    if request.models and pure:
        raise OptionsError(
            "declared models are measured with Gaussian noise, and this ledger counts epsilon alone",
            remedy="Use a ledger with a delta, or leave models out",
        )


def unmeasured(models: Iterable[Model]) -> tuple[UnmeasuredModel, ...]:
    """What a release says of models that noise left without a measurement."""
    return tuple(
        UnmeasuredModel(
            share=model.share or LEAST_SHARE, family=model.family, target=model.target, on=model.on or ()
        )
        for model in models
    )


def measured_models(
    budget: ModelsBudget, terms: ReleaseTerms, release: Release, rules: RowRules
) -> Generator[Stage, Answer, tuple[Any, ...]]:
    """All models of the request. Proof: proofs/models.md#models-composition."""
    running = [_program(budget, terms, release, model) for model in budget.request.models]
    waiting = [(one, first) for one in running for first in _next(one, None)]
    steps: list[Any] = []
    while waiting:
        measurements = tuple(measurement for _, measurement in waiting)
        answer = yield Stage(rules=rules, measurements=measurements)
        steps += answer.published
        going = []
        for (one, _), published in zip(waiting, answer.published, strict=True):
            going += [(one, following) for following in _next(one, published)]
        waiting = going
    found = {(step.family, step.target, step.on) for step in steps}
    left = [one for one in budget.request.models if (one.family, one.target, one.on) not in found]
    return (*steps, *unmeasured(left))


def _next(program: OneModel, published: Any) -> Iterator[Measurement]:
    try:
        yield program.send(published)
    except StopIteration:
        return


def _program(budget: ModelsBudget, terms: ReleaseTerms, release: Release, model: Model) -> OneModel:
    try:
        yield from _steps(budget, terms, release, model)
    except (AnalysisError, MechanismError, ArithmeticError, ValueError, np.linalg.LinAlgError) as problem:
        # What is published decides it: the model stays without its measurement, and its share unused.
        tell_caller(f"{model.words} was not measured, since noise hides what it begins with: {problem}")


def _steps(budget: ModelsBudget, terms: ReleaseTerms, release: Release, model: Model) -> OneModel:
    """Newton steps, each from where the one before it led; the later, the larger its part of the price."""
    request, moments, on = budget.request, Moments.of(release), model.on or ()
    space = FeatureSpace.of(moments, build_design(moments, model.target, on), on, None)
    column, one = _meaning_of_one(terms.schema, model.target)
    facts = PublicFacts(width=space.schema.width, adjacency=request.adjacency)
    begun = pilot(moments, space, model.family)
    usual = terms.radius / math.sqrt(rank(terms.schema))
    if terms.encoder.coordinates is None:
        usual = usual_radius(budget, rank(terms.schema), moments.rows or 0.0)
    theta = begun.theta
    shares = step_shares(number_of_steps(budget, model, rank(terms.schema), moments.rows or 0.0))
    for place, part in enumerate(shares):
        price = part * (model.share or 0.0) * budget.whole * SLACK
        parts = LAST_PARTS.get(model.family, PARTS) if place == len(shares) - 1 else PARTS
        score_price, matrix_price, spread_price = (own * price for own in parts)
        spread = spread_price > 0.0
        slopes = space.basis @ theta
        size = float(np.linalg.norm(slopes))
        changed = request.adjacency.units_changed
        told = math.sqrt(max(moments.rows or 1.0, 1.0) * score_price) / changed
        radius, limit, cap = step_bounds(begun, model, rank(space.schema), usual, told)
        features = replace(terms.encoder, schema=space.schema, coordinates=space.coordinates, clip=radius)
        published: MeasuredStep = yield Step(
            sums=StepStatistic(
                whole=terms.encoder,
                features=features,
                target=column,
                one=one,
                curve=model.family,
                slopes=nearest_direction(slopes / size if size > 0.0 else slopes),
                size=size,
                limit=limit,
                cap=cap,
                bound=_bound(begun, moments, space, radius * limit, price) if spread else None,
            ),
            mechanism=Gaussian().of_mu_squared(matrix_price, facts),
            score_sigma=max(
                changed * ROW_NORM_SQUARED / math.sqrt(score_price) * _NUDGE, DISCRETE_SIGMA_AT_LEAST
            ),
            spread=Gaussian().of_mu_squared(spread_price, facts) if spread else None,
            units_changed=changed,
            label=model.target,
            on=on,
            share=(model.share or 0.0) * part,
        )
        theta = NewtonStep.of(published, space).careful_end()


def _bound(begun: Pilot, moments: Moments, space: FeatureSpace, longest: float, price: float) -> float:
    """Of the scores of a spread, as a part of the longest: some usual ones, more where noise is small."""
    width = space.basis.shape[1]
    usual = math.sqrt(width) * (begun.deviation or 1.0)
    clear = math.pow(max(signal(max(moments.rows or 1.0, 1.0), math.sqrt(price), width), 1.0), 0.125)
    return min(max(SPREAD_REACH * clear * usual / longest, LEAST_BOUND), 1.0)


def _meaning_of_one(schema: Schema, target: str) -> tuple[str, float | None]:
    """The column behind a target, and the number in it for which one of two values is one."""
    (place,) = schema.indices(target)
    encoded = schema.encoded[place]
    if encoded.kind == "numeric":
        return encoded.source, None
    if encoded.kind == "boolean":
        return encoded.source, 1.0
    return encoded.source, float(place - schema.indices(encoded.source)[0])

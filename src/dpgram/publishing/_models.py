"""Declared models, after the matrix: products of residuals, then Newton steps, each from what was published.

A linear model has one measurement, a logit or probit one for each step. All models are measured in the same
passes. Every price is a fixed share of the event's, except that a model with fewer steps than it might have
had puts all of its share into those. Proof: proofs/models.md#models-composition.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dpgram.analysis.design import build_design
from dpgram.analysis.glm import Curve, FeatureSpace, NewtonStep, first_coefficients
from dpgram.analysis.moments import Moments
from dpgram.analysis.robust import largest_product, residual_direction, usual_product
from dpgram.analysis.unshrunken import unshrunken
from dpgram.engines.passes import Pass
from dpgram.errors import AnalysisError, MechanismError, OptionsError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import Gaussian, PublicFacts
from dpgram.privacy.curves.calibrate import DISCRETE_SIGMA_AT_LEAST
from dpgram.publishing._coordinates import rank, signal
from dpgram.publishing.measurements.models import Products, Step
from dpgram.publishing.publication import Answer, Stage, tell
from dpgram.publishing.split import SLACK
from dpgram.sums.models import LEAST_BOUND, ProductsStatistic, StepStatistic, nearest_direction

if TYPE_CHECKING:
    from dpgram.document.fields import MeasuredStep
    from dpgram.models import Model
    from dpgram.publishing._adaptive import AdaptiveCalibration
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.publishing.request import Request
    from dpgram.publishing.terms import ReleaseTerms
    from dpgram.release import Release
    from dpgram.rows.rules import RowRules
    from dpgram.schema import Schema


_NUDGE: Final = 1.0 + 2.0**-40
"""By which a scale is enlarged, so that rounding can only make it cheaper than its price."""
PRODUCTS_REACH: Final = 2.0
"""Usual lengths of a product, times (n̂μ/k^1.5)^¼, at which they are clipped."""
SCORE_PART: Final = 0.6
"""Of a step's price: its Hessian matrix, which multiplies a small step, may be noisier than its score."""
FASTER: Final = 4.0
MORE_STEPS: Final = (5.0, 500.0)
"""n̂μ/d^1.5 of a model from which on it has two steps, and three."""

OneModel = Generator["Measurement", Any, None]
"""Measurement after measurement of one model, each from what those before it published."""


def refuse_pure_models(request: Request, family: str) -> None:
    """A ledger that counts ε alone makes the noise pure."""
    if request.models and family != "gaussian":
        raise OptionsError(
            "declared models are measured with Gaussian noise, and this ledger counts epsilon alone",
            remedy="Use a ledger with a delta, or leave models out",
        )


def measured_models(
    calibration: AdaptiveCalibration, terms: ReleaseTerms, release: Release, rules: RowRules
) -> Generator[Stage, Answer, tuple[Any, ...]]:
    """All models of the request. Proof: proofs/models.md#models-composition."""
    running = [_program(calibration, terms, release, model) for model in calibration.request.models]
    waiting = [(one, first) for one in running for first in _next(one, None)]
    products: list[Any] = []
    steps: list[Any] = []
    while waiting:
        measurements = tuple(measurement for _, measurement in waiting)
        work = Pass(rules=rules, statistics=tuple(one.statistic for one in measurements))
        answer = yield Stage(work=work, measurements=measurements)
        going = []
        for (one, measurement), published in zip(waiting, answer.published, strict=True):
            (products if isinstance(measurement, Products) else steps).append(published)
            going += [(one, following) for following in _next(one, published)]
        waiting = going
    return (*products, *steps)


def _next(program: OneModel, published: Any) -> Iterator[Measurement]:
    try:
        yield program.send(published)
    except StopIteration:
        return


def _program(
    calibration: AdaptiveCalibration, terms: ReleaseTerms, release: Release, model: Model
) -> OneModel:
    price = (model.share or 0.0) * calibration.whole * SLACK
    kind = _linear if model.family == "linear" else _curved
    try:
        yield from kind(calibration, terms, release, model, price)
    except (AnalysisError, MechanismError, ArithmeticError, ValueError, np.linalg.LinAlgError) as problem:
        # What is published decides it, and it costs nothing: the model stays without its measurement.
        tell(f"{model.words} was not measured, since noise hides what it begins with: {problem}")


def _linear(
    calibration: AdaptiveCalibration,
    terms: ReleaseTerms,
    release: Release,
    model: Model,
    price: float,
) -> OneModel:
    """The products of the residual of the fit that the release gives."""
    moments = Moments.of(release)
    solution = unshrunken(moments, build_design(moments, model.target, model.on))
    rows, terms_count = max(moments.rows or 1.0, 1.0), solution.basis.shape[1]
    usual = usual_product(solution, rows)
    mu = math.sqrt(price / calibration.units_changed)
    reach = PRODUCTS_REACH * math.pow(max(signal(rows, mu, terms_count), 1.0), 0.25) * usual
    bound = largest_product(solution)
    if usual > 0.0:
        bound = min(bound, max(reach / moments.radius**2, LEAST_BOUND))
    facts = PublicFacts(width=solution.basis.shape[1], adjacency=calibration.request.adjacency)
    yield Products(
        sums=ProductsStatistic(
            encoder=terms.encoder,
            basis=tuple(nearest_direction(np.asarray(each)) for each in solution.basis.T),
            residual=nearest_direction(residual_direction(solution)),
            bound=bound,
        ),
        mechanism=Gaussian().of_mu_squared(price, facts),
        facts=facts,
        target=model.target,
        on=model.on or (),
        share=model.share or 0.0,
    )


def _curved(
    calibration: AdaptiveCalibration,
    terms: ReleaseTerms,
    release: Release,
    model: Model,
    price: float,
) -> OneModel:
    """Newton steps, each from where the one before it led; the later, the larger its part of the price."""
    request, moments = calibration.request, Moments.of(release)
    curve: Curve = "logistic" if model.family == "logistic" else "probit"
    on = model.on or ()
    space = FeatureSpace.of(moments, build_design(moments, model.target, on), on, None)
    features = replace(
        terms.encoder,
        schema=space.schema,
        coordinates=space.coordinates,
        clip=terms.radius * math.sqrt(rank(space.schema) / rank(terms.schema)),
    )
    column, one = _meaning_of_one(terms.schema, model.target)
    facts = PublicFacts(width=space.schema.width, adjacency=request.adjacency)
    theta = first_coefficients(moments, space, curve)
    for part in step_shares(model.steps or usual_steps(calibration, terms, model, moments.rows or 0.0)):
        slopes = space.basis @ theta
        size = float(np.linalg.norm(slopes))
        score_price = SCORE_PART * part * price
        scale = request.adjacency.units_changed * ROW_NORM_SQUARED / math.sqrt(score_price) * _NUDGE
        published: MeasuredStep = yield Step(
            sums=StepStatistic(
                whole=terms.encoder,
                features=features,
                target=column,
                one=one,
                curve=curve,
                slopes=nearest_direction(slopes / size if size > 0.0 else slopes),
                size=size,
            ),
            mechanism=Gaussian().of_mu_squared((1.0 - SCORE_PART) * part * price, facts),
            score_sigma=max(scale, DISCRETE_SIGMA_AT_LEAST),
            units_changed=request.adjacency.units_changed,
            label=model.target,
            on=on,
            share=(model.share or 0.0) * part,
        )
        theta = NewtonStep.of(published, space).careful_end()


def step_shares(steps: int) -> list[float]:
    """Of a model's price: each step gets four times what the one before it got."""
    sizes = [FASTER**place for place in range(steps)]
    return [size / sum(sizes) for size in sizes]


def usual_steps(calibration: AdaptiveCalibration, terms: ReleaseTerms, model: Model, rows: float) -> int:
    """By n̂μ/d^1.5 of the model's own share: more steps only where noise is small beside what they correct."""
    mu = math.sqrt((model.share or 0.0) * calibration.whole) / calibration.units_changed
    told = signal(rows, mu, rank(terms.schema))
    return 1 + sum(told >= limit for limit in MORE_STEPS)


def _meaning_of_one(schema: Schema, target: str) -> tuple[str, float]:
    """The column behind a target of two values, and the number in it for which the target is one."""
    (place,) = schema.indices(target)
    encoded = schema.encoded[place]
    if encoded.kind == "boolean":
        return encoded.source, 1.0
    return encoded.source, float(place - schema.indices(encoded.source)[0])

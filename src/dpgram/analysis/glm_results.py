"""A declared logit, probit or model of counts as a value: coefficients, ratios, effects, expectations."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.asked import quantile
from dpgram.analysis.design import INTERCEPT, Design, build_design, declared_name
from dpgram.analysis.discriminant import Link, discriminant
from dpgram.analysis.estimand import MOVED_REFUSAL, NOT_INCLUDED, moved_columns
from dpgram.analysis.estimates import Estimates, as_lines, ratio
from dpgram.analysis.formulas import asked_question
from dpgram.analysis.glm import CURVES, Curve, FeatureSpace, NewtonStep, expected, taken
from dpgram.analysis.moments import Moments
from dpgram.analysis.pilot import Pilot, pilot
from dpgram.analysis.prediction import design_matrix, refusals_of, warn_of
from dpgram.analysis.robust import repaired
from dpgram.analysis.summary import noisy_weight
from dpgram.document.fields import MeasuredStep, UnmeasuredModel
from dpgram.document.terminal import fact, one_line, with_notes
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

MOVING: Final = 0.5
"""How far the last step may move the index, in deviations, before a caution says that it was still moving."""
NAMES: Final[Mapping[Curve, str]] = {
    "logistic": "Logit",
    "probit": "Probit",
    "poisson": "Poisson regression",
}
LINKS: Final[Mapping[Curve, Link]] = {"logistic": "logit", "probit": "probit"}
HIDDEN: Final = (
    "noise hides the coefficients of this model, and none is given; predictions are a best guess. Ask for a "
    "release with more rows, a larger epsilon or fewer features"
)
FELL_BACK: Final = (
    "noise hides the Hessian matrix of this model, so these are the approximate coefficients of discriminant "
    "analysis from the matrix alone; predictions use what the steps tell"
)
FELL_BACK_TO_LINES: Final = (
    "noise hides the Hessian matrix of this model, so these are the slopes of least squares over the mean "
    "count, an approximation from the matrix alone that suits features which are nearly normal; predictions "
    "use what the steps tell"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GeneralizedLinear(Estimates):
    """Coefficients of a declared model in original units, with errors and what follows of them."""

    family: Curve
    target: str
    on: tuple[str, ...]
    design: Design
    names: tuple[str, ...]
    estimate: Vector
    covariance: Matrix
    """Of the estimate: sampling and privacy noise."""
    trusted: npt.NDArray[np.bool_]
    fitted: Vector
    """The last step shrunken as far as its noise demands: for predictions."""
    steps: int
    """Newton steps that were measured; 0 where noise hid them, and the first coefficients are given."""
    slope: float
    """The mean slope of the expectation over all rows, noisy: what turns coefficients into mean effects."""
    rows: float
    learnt_bounds: frozenset[str]
    cautions: tuple[str, ...]
    degrees: float | None = None
    counted: str = "noisy"
    """What the number of rows is, in words."""

    @property
    def nobs(self) -> float:
        """The noisy number of rows."""
        return self.rows

    def odds_ratios(self, level: float = 0.95) -> Mapping[str, tuple[float, float, float]]:
        """Name → (odds ratio, low, high) of one unit more, for the logit.

        >>> models = [dg.logistic("smoker=yes")]
        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
        >>> ratio, low, high = declared.regress("smoker=yes", family="logistic").odds_ratios()["charges"]
        >>> 1 < low < ratio < high
        True
        """
        return self._ratios("logistic", "odds ratios are those of the logit", level)

    def rate_ratios(self, level: float = 0.95) -> Mapping[str, tuple[float, float, float]]:
        """Name → (ratio of expected counts, low, high) of one unit more, for counts.

        >>> models = [dg.poisson("charges")]
        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
        >>> ratio, low, high = declared.regress("charges", family="poisson").rate_ratios()["smoker=yes"]
        >>> 1 < low < ratio < high
        True
        """
        return self._ratios("poisson", "ratios of expected counts are those of counts", level)

    def _ratios(self, family: Curve, what: str, level: float) -> Mapping[str, tuple[float, float, float]]:
        if self.family != family:
            raise AnalysisError(what, got=self.family)
        return {
            name: (ratio(value), ratio(low), ratio(high))
            for name, (value, low, high) in self._with_ends(level).items()
        }

    def marginal_effects(self, level: float = 0.95) -> Mapping[str, tuple[float, float, float]]:
        """Name → (effect, low, high): by how much one unit more changes what is expected, on average.

        Errors are those of the coefficients; that of the mean slope is smaller and left out.

        >>> models = [dg.logistic("smoker=yes")]
        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
        >>> fit = declared.regress("smoker=yes", family="logistic")
        >>> effect, low, high = fit.marginal_effects()["charges"]
        >>> 0 < low < effect < high
        True
        """
        return {
            name: (self.slope * value, self.slope * low, self.slope * high)
            for name, (value, low, high) in self._with_ends(level).items()
        }

    def _with_ends(self, level: float) -> Mapping[str, tuple[float, float, float]]:
        ends = self.conf_int(level)
        return {name: (value, *ends[name]) for name, value in self.params.items() if name != INTERCEPT}

    def predict(self, rows: object) -> Vector:
        """The probability that the target is one, or the expected count: rows as for a regression.

        >>> models = [dg.logistic("smoker=yes")]
        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
        >>> few, many = declared.regress("smoker=yes", family="logistic").predict(
        ...     {"age": [40, 40], "charges": [2_000, 30_000]}
        ... )
        >>> bool(few < many)
        True
        """
        warn_of(refusals_of(self.design, rows))
        return expected(self.family, design_matrix(self.design, rows, self.learnt_bounds) @ self.fitted)

    def predict_interval(self, rows: object, level: float = 0.95) -> Matrix:
        """Probability or expected count, low and high for each row, by the coefficients without shrinkage.

        NaN where the noise leaves no such coefficient; no ends for a row with a level that has no rows.

        >>> models = [dg.logistic("smoker=yes")]
        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
        >>> fit = declared.regress("smoker=yes", family="logistic")
        >>> ((p, low, high),) = fit.predict_interval({"age": [40], "charges": [9_000]})
        >>> bool(0 <= low < p < high <= 1)
        True
        """
        refusals = refusals_of(self.design, rows)
        warn_of(refusals)
        x = design_matrix(self.design, rows, self.learnt_bounds)
        hidden = (x[:, ~self.trusted] != 0.0).any(axis=1)
        index = np.where(hidden, np.nan, x @ self.estimate)
        reach = quantile(level) * np.sqrt(np.maximum(np.einsum("ij,ij->i", x @ self.covariance, x), 0.0))
        ends = (index, index - reach, index + reach)
        found = np.column_stack([expected(self.family, each) for each in ends])
        found[[row for row, refusal in enumerate(refusals) if refusal is not None], 1:] = np.nan
        return found

    def summary(self, level: float = 0.95) -> str:
        """Coefficients with intervals, and what they rest on, as text.

        >>> models = [dg.logistic("smoker=yes")]
        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
        >>> print(declared.regress("smoker=yes", family="logistic").summary().splitlines()[0])
        Logit of smoker=yes, declared beforehand, from a private release
        """
        steps = "no Newton step" if not self.steps else f"{self.steps} Newton step{'s' * (self.steps > 1)}"
        lines = [
            f"{NAMES[self.family]} of {self.target}, declared beforehand, from a private release",
            "",
            *fact("rows ", f"about {max(self.rows, 0.0):,.0f} ({self.counted}); {steps}"),
            "",
            *as_lines(self.as_rows(level), level),
        ]
        follows = "the expected count" if self.family == "poisson" else "the probability"
        note = f"Errors and intervals: sampling and privacy noise. Assumed: {follows} follows the model. "
        note += "Rows far from the others count less, which moves no coefficient of a model that is right."
        if self.family == "poisson":
            note += " Counts may vary more than Poisson's law has it: errors are robust."
        notes = [note]
        notes += [f"Caution: {caution}." for caution in self.cautions]
        return with_notes(lines, notes)

    def plot(self, path: str | Path | None = None, *, level: float = 0.95, dark: bool = False) -> Figure:
        """Each coefficient with its interval, times half of its column's public range.

        >>> models = [dg.logistic("smoker=yes")]
        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
        >>> figure = declared.regress("smoker=yes", family="logistic").plot("logit.png")
        """
        from dpgram.figures import BLUE, GREY, finished, new_figure

        shown = [i for i, name in enumerate(self.names) if name != INTERCEPT]
        spans = np.array([self.design.terms[i].scale for i in shown])
        reach = quantile(level) * self._errors()[shown] * spans
        centre = np.where(self.trusted, self.estimate, np.nan)[shown] * spans
        figure, (axis,) = new_figure(1.6 + 0.34 * max(len(shown), 2))
        places = np.arange(len(shown))[::-1]
        axis.axvline(0.0, color=GREY, linewidth=0.8)
        axis.hlines(places, centre - reach, centre + reach, color=BLUE, linewidth=2.2)
        axis.plot(centre, places, "o", color=BLUE)
        axis.set_yticks(places, [self.names[i] for i in shown])
        axis.set_xlabel(f"{NAMES[self.family]} of {self.target}: effect over half of each public range")
        return finished(figure, path, dark=dark)

    def _check(self) -> None:
        """Where the noise leaves no answer, coefficients are not trusted and cautions say so."""

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        name = one_line(self.target)
        return f"<GeneralizedLinear: {self.family} of {name} on {len(self.names)} coefficients>"


def declared_model(
    release: Document,
    target: str,
    on: Sequence[str] | None = None,
    *,
    family: Curve,
    reference: Mapping[str, str] | None = None,
) -> GeneralizedLinear:
    """The logit, probit or model of counts that was declared when the release was made.

    What is proven of counts: proofs/models.md#models-counts.

    >>> from dpgram.analysis import declared_model
    >>> models = [dg.logistic("smoker=yes")]
    >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, ledger=None, models=models)
    >>> declared_model(declared, "smoker=yes", family="logistic")
    <GeneralizedLinear: logistic of smoker=yes on 3 coefficients>
    """
    if family not in CURVES:
        raise AnalysisError("unknown family", got=repr(family), limit=", ".join(("linear", *CURVES)))
    asked = asked_question(release.schema, target, on, reference=reference)
    if not asked.intercept:
        raise AnalysisError(
            "a declared model has an intercept", got=repr(target), remedy='Leave "- 1" or "0 +" out'
        )
    target = asked.target
    given = None if asked.on is None else [declared_name(release.schema, name) for name in asked.on]
    steps = _steps(release, family, target, given)
    moments, last = Moments.of(release), steps[-1]
    design = build_design(moments, target, last.on, reference=asked.reference)
    if moved_columns(moments, design):
        raise AnalysisError("no declared model", got=MOVED_REFUSAL)
    try:
        with np.errstate(all="ignore"):  # numbers of a forged file may be beyond floats
            space = FeatureSpace.of(moments, design, last.on, last.coordinates)
            step = NewtonStep.of(last, space)
            finite = step.finite
    except (np.linalg.LinAlgError, OverflowError, ValueError):
        finite = False
    if not finite:
        raise AnalysisError(
            "the numbers of this model are too large or too small to compute with",
            remedy="A release of a real table has no such numbers: ask the curator for the original file",
        )
    begun = pilot(moments, space, family)
    rows = moments.rows or math.nan
    slope = float(space.constant @ step.hessian @ space.constant) / rows
    original = space.to_original
    told = GeneralizedLinear(
        family=family,
        target=target,
        on=last.on,
        design=design,
        names=design.names,
        estimate=np.zeros(len(design.names)),
        covariance=np.full((len(design.names),) * 2, np.nan),
        trusted=np.zeros(len(design.names), np.bool_),
        fitted=original @ step.careful_end(),
        steps=0,
        slope=begun.mean if family == "poisson" else slope,
        rows=rows,
        learnt_bounds=moments.learnt_bounds,
        cautions=(HIDDEN, *design.empty_cautions),
        counted=noisy_weight(moments),
    )
    if not step.clear:
        return _fallen_back(release, moments, space, begun, told)
    moved = step.step()
    length = math.sqrt(max(float(moved @ moved) - float(moved @ space.constant) ** 2 / _square(space), 0.0))
    moving = (
        f"the last step still moved the index by {length:.2g} deviations: coefficients may be off by more "
        "than their intervals say. A release with more steps would tell"
    )
    sampling = _sampling(step, begun, rows) if family == "poisson" else None
    return replace(
        told,
        estimate=original @ (step.start + moved),
        covariance=original @ step.covariance(sampling) @ original.T,
        trusted=np.ones(len(design.names), np.bool_),
        steps=len(steps),
        cautions=(
            *((moving,) if length > MOVING else ()),
            *(_counts_cautions(moments, space, step, last) if family == "poisson" else ()),
            *design.empty_cautions,
        ),
    )


def _sampling(step: NewtonStep, begun: Pilot, rows: float) -> Matrix:
    """J of counts: the spread of scores; where noise hides that, what their variance over their mean says."""
    dispersion = max((begun.deviation or 1.0) ** 2 / begun.mean, 1.0)
    found = None
    if step.spread is not None:
        found = repaired(step.spread, step.spread_sd**2, step.hessian, rows=rows, clipped=0.0)
    return dispersion * step.hessian if found is None else found.widened


def _counts_cautions(
    moments: Moments, space: FeatureSpace, step: NewtonStep, measured: MeasuredStep
) -> tuple[str, ...]:
    """How what a step takes from long rows and residuals may move coefficients of counts."""
    design, constant = space.design, moments.constant_vector()
    target = moments.schema.encoded[moments.schema.indices(design.target)[0]]
    if constant is None:
        return ()
    beyond = ""
    if measured.limit < 2.0 * target.half_width:
        beyond = f", and residuals beyond ±{measured.limit:.3g} count as ±{measured.limit:.3g}"
    counts = design.target_scale * design.target_vector + design.offset[0] * constant
    caution = (
        f"rows far from the others, or with large expected counts, count less{beyond}: coefficients are "
        f"those of maximum likelihood only where expected counts follow the model in every row{NOT_INCLUDED}"
        f". By noisy sums this takes {taken(step, space, moments, counts)} of all counts"
    )
    return (caution,)


def _square(space: FeatureSpace) -> float:
    return max(float(space.constant @ space.constant), np.finfo(np.float64).tiny)


def _fallen_back(
    release: Document, moments: Moments, space: FeatureSpace, begun: Pilot, told: GeneralizedLinear
) -> GeneralizedLinear:
    """What the matrix alone tells; what noise hides of that too is no number. Predictions keep the step."""
    design = space.design
    with contextlib.suppress(AnalysisError):
        if told.family == "poisson":
            return _of_lines(moments, space, begun, told)
        first = discriminant(
            release, design.target, told.on, link=LINKS[told.family], reference=dict(design.references)
        )
        return replace(
            told,
            estimate=first.estimate,
            covariance=first.covariance,
            trusted=first.trusted,
            cautions=(FELL_BACK, *first.cautions),
        )
    return told


def _of_lines(
    moments: Moments, space: FeatureSpace, begun: Pilot, told: GeneralizedLinear
) -> GeneralizedLinear:
    """Slopes of least squares over the mean count, with their errors; no interval for the intercept."""
    from dpgram.analysis.inference import infer

    found = infer(moments, space.design)
    found.check()
    estimate = found.estimate / begun.mean
    estimate[0] = float((space.to_original @ begun.theta)[0])
    slopes = np.array([name != INTERCEPT for name in told.names])
    return replace(
        told,
        estimate=estimate,
        covariance=found.covariance / begun.mean**2,
        trusted=found.bounded() & slopes,
        cautions=(FELL_BACK_TO_LINES, *space.design.empty_cautions),
    )


def _steps(release: Document, family: Curve, target: str, on: Sequence[str] | None) -> list[MeasuredStep]:
    own = [
        each
        for each in release.measured
        if isinstance(each, MeasuredStep) and (each.family, each.target) == (family, target)
    ]
    features = list(dict.fromkeys(frozenset(each.on) for each in own))
    wanted = features[0] if on is None and len(features) == 1 else frozenset(on or ())
    found = [each for each in own if frozenset(each.on) == wanted]
    if not found:
        _refuse_unmeasured(release, family, target, on)
        known = [f"{target} on {', '.join(sorted(each))}" for each in features]
        nearest = "" if family == "poisson" else f"release.discriminant({target!r}, …) approximates it; or "
        ask = f"ask the curator to declare it: models=[{family}({target!r}, on=[…])]"
        raise AnalysisError(
            f"the {NAMES[family].lower()} of {target} on these features was not declared",
            limit="; ".join(known) or "nothing of this family and target",
            remedy=nearest + ask if nearest else ask.replace("ask", "Ask", 1),
        )
    return found


def _refuse_unmeasured(release: Document, family: Curve, target: str, on: Sequence[str] | None) -> None:
    own = [each for each in release.measured if isinstance(each, UnmeasuredModel)]
    if any(
        (each.family, each.target) == (family, target) and (on is None or set(on) == set(each.on))
        for each in own
    ):
        raise AnalysisError(
            f"the {NAMES[family].lower()} of {target} was declared and not measured: noise hides what it "
            "begins with",
            remedy="Ask for a release with more rows, a larger epsilon or fewer columns",
        )

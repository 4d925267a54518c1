"""A declared logit or probit as a value: coefficients, odds ratios, marginal effects, probabilities."""

from __future__ import annotations

import contextlib
import math
import textwrap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt
from scipy.special import ndtr, ndtri

from dpgram.analysis.design import INTERCEPT, Design, build_design
from dpgram.analysis.discriminant import Link, discriminant
from dpgram.analysis.estimand import MOVED_REFUSAL, moved_columns
from dpgram.analysis.glm import CURVES, Curve, FeatureSpace, NewtonStep, chances
from dpgram.analysis.labelled import LabelledMatrix, LabelledVector
from dpgram.analysis.moments import Moments
from dpgram.analysis.prediction import design_matrix
from dpgram.document.fields import MeasuredStep
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

MOVING: Final = 0.5
"""How far the last step may move the index, in deviations, before a caution says that it was still moving."""
LINKS: Final[Mapping[Curve, Link]] = {"logistic": "logit", "probit": "probit"}
HIDDEN: Final = (
    "noise hides the coefficients of this model, and none is given; predictions are a best guess. Ask for a "
    "release with more rows, a larger epsilon or fewer features"
)
FELL_BACK: Final = (
    "noise hides the Hessian matrix of this model, so these are the approximate coefficients of discriminant "
    "analysis from the matrix alone; predictions use what the steps tell"
)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GeneralizedLinear:
    """Coefficients of a declared logit or probit in original units, with errors and what follows of them."""

    family: Curve
    target: str
    on: tuple[str, ...]
    design: Design
    estimate: Vector
    covariance: Matrix
    """Of the estimate: sampling and privacy noise."""
    fitted: Vector
    """The last step shrunken as far as its noise demands: for predictions."""
    steps: int
    """Newton steps that were measured; 0 where noise hid them, and the first coefficients are given."""
    slope: float
    """The mean of p' over all rows, noisy: what turns coefficients into mean marginal effects."""
    rows: float
    learnt_bounds: frozenset[str]
    cautions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, the intercept first."""
        return self.design.names

    @property
    def params(self) -> LabelledVector:
        """Name → coefficient."""
        return LabelledVector(self.names, self.estimate)

    @property
    def bse(self) -> LabelledVector:
        """Name → standard error: sampling and privacy noise."""
        return LabelledVector(self.names, self._errors())

    @property
    def tvalues(self) -> LabelledVector:
        """Name → coefficient over its standard error."""
        return LabelledVector(self.names, self.estimate / self._errors())

    @property
    def pvalues(self) -> LabelledVector:
        """Name → two-sided p-value of the coefficient being zero."""
        return LabelledVector(self.names, 2.0 * ndtr(-np.abs(self.estimate / self._errors())))

    @property
    def nobs(self) -> float:
        """The noisy number of rows."""
        return self.rows

    def cov_params(self) -> LabelledMatrix:
        """The covariance of `params`.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> fit = declared.regress("smoker=yes", family="logistic")
        >>> bool(fit.cov_params()["age", "age"] ** 0.5 == fit.bse["age"])
        True
        """
        return LabelledMatrix(self.names, self.covariance)

    def conf_int(self, level: float = 0.95) -> Mapping[str, tuple[float, float]]:
        """Name → coefficient ± quantile times its error.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> low, high = declared.regress("smoker=yes", family="logistic").conf_int()["charges"]
        >>> 0 < low < high
        True
        """
        reach = _quantile(level) * self._errors()
        return {
            name: (float(value - end), float(value + end)) if np.isfinite(end) else (-math.inf, math.inf)
            for name, value, end in zip(self.names, self.estimate, reach, strict=True)
        }

    def odds_ratios(self, level: float = 0.95) -> Mapping[str, tuple[float, float, float]]:
        """Name → (odds ratio, low, high) of one unit more, for the logit.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> ratio, low, high = declared.regress("smoker=yes", family="logistic").odds_ratios()["charges"]
        >>> 1 < low < ratio < high
        True
        """
        if self.family != "logistic":
            raise AnalysisError("odds ratios are those of the logit", got=self.family)
        ends = self.conf_int(level)
        return {
            name: (_exp(value), _exp(ends[name][0]), _exp(ends[name][1]))
            for name, value in self.params.items()
            if name != INTERCEPT
        }

    def marginal_effects(self, level: float = 0.95) -> Mapping[str, tuple[float, float, float]]:
        """Name → (effect, low, high): by how much one unit more changes the probability, on average.

        Errors are those of the coefficients; that of the mean of p' is smaller and left out.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> fit = declared.regress("smoker=yes", family="logistic")
        >>> effect, low, high = fit.marginal_effects()["charges"]
        >>> 0 < low < effect < high
        True
        """
        ends = self.conf_int(level)
        return {
            name: (self.slope * value, self.slope * ends[name][0], self.slope * ends[name][1])
            for name, value in self.params.items()
            if name != INTERCEPT
        }

    def predict(self, rows: object) -> Vector:
        """The probability that the target is one: rows as for a regression, in original units.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> few, many = declared.regress("smoker=yes", family="logistic").predict(
        ...     {"age": [40, 40], "charges": [2_000, 30_000]}
        ... )
        >>> bool(few < many)
        True
        """
        return chances(self.family, design_matrix(self.design, rows, self.learnt_bounds) @ self.fitted)

    def predict_interval(self, rows: object, level: float = 0.95) -> Matrix:
        """Probability, low and high for each row, by the coefficients without shrinkage.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> fit = declared.regress("smoker=yes", family="logistic")
        >>> ((p, low, high),) = fit.predict_interval({"age": [40], "charges": [9_000]})
        >>> bool(0 <= low < p < high <= 1)
        True
        """
        x = design_matrix(self.design, rows, self.learnt_bounds)
        index = x @ self.estimate
        reach = _quantile(level) * np.sqrt(np.maximum(np.einsum("ij,ij->i", x @ self.covariance, x), 0.0))
        return np.column_stack([chances(self.family, each) for each in (index, index - reach, index + reach)])

    def summary(self, level: float = 0.95) -> str:
        """Coefficients with intervals, and what they rest on, as text.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> print(declared.regress("smoker=yes", family="logistic").summary().splitlines()[0])
        Logit of smoker=yes, declared beforehand, from a private release
        """
        ends, p_values, errors = self.conf_int(level), self.pvalues, self._errors()
        cells = [("", "coefficient", "std. error", f"{100 * level:g}% from", "to", "p-value")]
        for place, term in enumerate(self.names):
            numbers = (
                f"{self.estimate[place]:.5g}",
                f"{errors[place]:.3g}",
                f"{ends[term][0]:.5g}",
                f"{ends[term][1]:.5g}",
                "<1e-16" if p_values[term] < 1e-16 else f"{p_values[term]:.2g}",
            )
            cells.append((term, *(numbers if np.isfinite(errors[place]) else ("–",) * 5)))
        widths = [max(len(cell) for cell in column) for column in zip(*cells, strict=True)]
        steps = "no Newton step" if not self.steps else f"{self.steps} Newton step{'s' * (self.steps > 1)}"
        name = LINKS[self.family].capitalize()
        lines = [
            f"{name} of {self.target}, declared beforehand, from a private release",
            "",
            f"rows   about {max(self.rows, 0.0):,.0f} (noisy); {steps}",
            "",
        ]
        lines += [
            "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(rest, widths[1:], strict=True))])
            for first, *rest in cells
        ]
        note = (
            "Errors and intervals: sampling and privacy noise. Assumed: the probability follows the model. "
        )
        note += "Rows far from the others count less, which moves no coefficient of a model that is right."
        notes = [note]
        notes += [f"Caution: {caution}." for caution in self.cautions]
        return "\n".join([*lines, "", *(line for note in notes for line in textwrap.wrap(note, width=100))])

    def plot(self, path: str | Path | None = None, *, level: float = 0.95, dark: bool = False) -> Figure:
        """Each coefficient with its interval, times half of its column's public range.

        >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
        >>> figure = declared.regress("smoker=yes", family="logistic").plot("logit.png")
        """
        from dpgram.figures import BLUE, GREY, finished, new_figure

        shown = [i for i, name in enumerate(self.names) if name != INTERCEPT]
        spans = np.array([self.design.terms[i].scale for i in shown])
        reach = _quantile(level) * self._errors()[shown] * spans
        centre = self.estimate[shown] * spans
        figure, (axis,) = new_figure(1.6 + 0.34 * max(len(shown), 2))
        places = np.arange(len(shown))[::-1]
        axis.axvline(0.0, color=GREY, linewidth=0.8)
        axis.hlines(places, centre - reach, centre + reach, color=BLUE, linewidth=2.2)
        axis.plot(centre, places, "o", color=BLUE)
        axis.set_yticks(places, [self.names[i] for i in shown])
        axis.set_xlabel(f"{LINKS[self.family]} of {self.target}: effect over half of each public range")
        return finished(figure, path, dark=dark)

    def _errors(self) -> Vector:
        variances = np.diagonal(self.covariance)
        return np.sqrt(np.where(variances < 0.0, 0.0, variances))

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return f"<GeneralizedLinear: {self.family} of {self.target} on {len(self.names)} coefficients>"


def declared_model(
    release: Document,
    target: str,
    on: Sequence[str] | None = None,
    *,
    family: Curve,
    reference: Mapping[str, str] | None = None,
) -> GeneralizedLinear:
    """The logit or probit that was declared when the release was made.

    >>> from dpgram.analysis import declared_model
    >>> declared = dg.publish(table, schema, epsilon=8, delta=1e-6, models=[dg.logistic("smoker=yes")])
    >>> declared_model(declared, "smoker=yes", family="logistic")
    <GeneralizedLinear: logistic of smoker=yes on 3 coefficients>
    """
    if family not in CURVES:
        raise AnalysisError("unknown family", got=repr(family), limit=", ".join(("linear", *CURVES)))
    steps = _steps(release, family, target, on)
    moments, last = Moments.of(release), steps[-1]
    design = build_design(moments, target, last.on, reference=reference)
    if moved_columns(moments, design):
        raise AnalysisError("no declared model", got=MOVED_REFUSAL)
    try:
        with np.errstate(all="ignore"):  # numbers of a forged file may be beyond floats
            space = FeatureSpace.of(moments, design, last.on, last.coordinates)
            step = NewtonStep.of(last, space)
            numbers = np.concatenate([step.hessian.ravel(), step.score, step.start])
            finite = bool(np.isfinite(numbers).all())
    except (np.linalg.LinAlgError, OverflowError, ValueError):
        finite = False
    if not finite:
        raise AnalysisError(
            "the numbers of this model are too large or too small to compute with",
            remedy="A release of a real table has no such numbers: ask the curator for the original file",
        )
    rows = moments.rows or math.nan
    slope = float(space.constant @ step.hessian @ space.constant) / rows
    if not step.clear:
        fitted = space.to_original @ step.careful_end()
        return _fallen_back(release, moments, space, family, last, fitted, slope)
    original, moved = space.to_original, step.step()
    cautions = []
    length = math.sqrt(max(float(moved @ moved) - float(moved @ space.constant) ** 2 / _square(space), 0.0))
    if length > MOVING:
        cautions.append(
            f"the last step still moved the index by {length:.2g} deviations: coefficients may be off by "
            "more than their intervals say. A release with more steps would tell"
        )
    return GeneralizedLinear(
        family=family,
        target=target,
        on=last.on,
        design=design,
        estimate=original @ (step.start + moved),
        covariance=original @ step.covariance(family) @ original.T,
        fitted=original @ step.careful_end(),
        steps=len(steps),
        slope=slope,
        rows=rows,
        learnt_bounds=moments.learnt_bounds,
        cautions=tuple(cautions),
    )


def _square(space: FeatureSpace) -> float:
    return max(float(space.constant @ space.constant), np.finfo(np.float64).tiny)


def _fallen_back(
    release: Document,
    moments: Moments,
    space: FeatureSpace,
    family: Curve,
    last: MeasuredStep,
    fitted: Vector,
    slope: float,
) -> GeneralizedLinear:
    """By discriminant analysis; what noise hides of that as well is no number. Predictions keep the step."""
    design = space.design
    estimate, covariance = np.full(len(design.terms), np.nan), np.full((len(design.terms),) * 2, np.nan)
    cautions: tuple[str, ...] = (HIDDEN,)
    with contextlib.suppress(AnalysisError):
        first = discriminant(
            release, design.target, last.on, link=LINKS[family], reference=dict(design.references)
        )
        clear = np.outer(first.trusted, first.trusted)
        estimate = np.where(first.trusted, first.estimate, np.nan)
        covariance = np.where(clear, first.covariance, np.nan)
        cautions = (FELL_BACK, *first.cautions)
    return GeneralizedLinear(
        family=family,
        target=design.target,
        on=last.on,
        design=design,
        estimate=estimate,
        covariance=covariance,
        fitted=fitted,
        steps=0,
        slope=slope,
        rows=moments.rows or math.nan,
        learnt_bounds=moments.learnt_bounds,
        cautions=cautions,
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
        known = [f"{target} on {', '.join(sorted(each))}" for each in features]
        raise AnalysisError(
            f"the {LINKS[family]} of {target} on these features was not declared, or noise left none of it",
            limit="; ".join(known) or "nothing of this family and target",
            remedy=f"release.discriminant({target!r}, …) approximates it; or ask the curator to declare it: "
            f"models=[{family}({target!r}, on=[…])]",
        )
    return found


def _quantile(level: float) -> float:
    if not 0.0 < level < 1.0:
        raise AnalysisError("the level of an interval is a probability", got=level, limit="0 < level < 1")
    return float(-ndtri(0.5 * (1.0 - level)))


def _exp(value: float) -> float:
    return math.exp(min(value, 700.0))

"""Linear combinations of coefficients: contrasts, marginal effects and standardised coefficients.

All are L β̂ for a matrix L, so their intervals come from the same object as those of the coefficients, and
hold the sampling error and the privacy noise alike. Where L itself is made of published numbers (the means at
which an effect is taken, the deviations by which coefficients are standardised), these are taken as they
stand: the interval is for the effect at these numbers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis._hypotheses import Asked, hypotheses
from dpgram.analysis.design import INTERCEPT, Design, Term
from dpgram.analysis.inference import Inference
from dpgram.analysis.labelled import LabelledVector
from dpgram.analysis.moments import Moments
from dpgram.document.terminal import escaped, in_lines
from dpgram.errors import AnalysisError, shown

if TYPE_CHECKING:
    from dpgram.analysis._frames import Frame
    from dpgram.schema import SourceColumn

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]


MOST_LINES: Final = 26
"""That `repr` shows: about one screen."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Contrast:
    """Estimates of linear combinations, each with its error and the test of a value."""

    inference: Inference
    values: Vector
    """What each is said to be by the hypothesis."""
    title: str = "Contrasts"

    @property
    def names(self) -> tuple[str, ...]:
        """One for each combination."""
        return self.inference.names

    @property
    def effect(self) -> Vector:
        """The estimates, NaN where there is no interval."""
        return np.where(self.inference.bounded(), self.inference.estimate, np.nan)

    @property
    def sd(self) -> Vector:
        """Standard errors."""
        return self.inference.std_errors

    @property
    def tvalue(self) -> Vector:
        """(estimate − value) over its standard error under the hypothesis."""
        self.inference.check()
        return np.where(self.inference.bounded(), self.inference.ratios(self.values), np.nan)

    @property
    def pvalue(self) -> Vector:
        """Two-sided."""
        return self.inference.p_values(hypothesis=self.values)

    @property
    def df_denom(self) -> float | None:
        """Degrees of freedom of t; nothing means the normal law."""
        return self.inference.degrees

    def conf_int(self, level: float = 0.95) -> Matrix:
        """Lower and upper ends, one row for each combination.

        >>> fit.t_test("age = 125").conf_int().round(1)
        array([[120.2, 130.5]])
        """
        return self.inference.conf_int(level)

    def to_frame(self, level: float = 0.95) -> Frame:
        """A frame with a row for each combination.

        >>> fit.t_test("age = 125").to_frame().columns
        ['name', 'estimate', 'std_error', 't', 'low', 'high', 'p_value']
        """
        from dpgram.analysis._frames import frame_of

        ends = np.where(self.inference.bounded(level)[:, None], self.conf_int(level), np.nan)
        columns: dict[str, list[str] | Vector] = {
            "name": list(self.names),
            "estimate": self.effect,
            "std_error": self.sd,
            "t": self.tvalue,
            "low": ends[:, 0],
            "high": ends[:, 1],
            "p_value": self.pvalue,
        }
        return frame_of(columns, numbers=[name for name in columns if name != "name"])

    def summary(self, level: float = 0.95) -> str:
        """The estimates as text.

        >>> print(fit.t_test("age = 125, smoker=yes = 2 * age").summary())
        Contrasts
                              estimate  std. error      t  95% from      to  p-value
        age = 125               125.38        2.62  0.144    120.24  130.53     0.89
        smoker=yes = 2 * age     10776         110   97.4     10562   10991   <1e-16
        """
        from dpgram.analysis.summary import aligned, number, p_value

        bounded = self.inference.bounded(level)
        ends = np.where(bounded[:, None], self.conf_int(level), np.nan)
        header = ("", "estimate", "std. error", "t", f"{100 * level:g}% from", "to", "p-value")
        rows = [
            (
                name,
                number(self.effect[i]),
                number(self.sd[i], 3),
                number(self.tvalue[i], 3),
                number(ends[i, 0]),
                number(ends[i, 1]),
                p_value(float(self.pvalue[i])),
            )
            for i, name in enumerate(self.names)
        ]
        return in_lines([self.title, *aligned(header, rows)])

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        lines = self.summary().splitlines()
        more = len(lines) - MOST_LINES
        return in_lines([*lines[:MOST_LINES], f"… and {more} more"] if more > 0 else lines)

    def _repr_html_(self) -> str:
        return f"<pre>{escaped(self.summary())}</pre>"


def contrast(inference: Inference, design: Design, asked: Asked) -> Contrast:
    """The combinations that a hypothesis is about."""
    found = hypotheses(design, asked)
    return Contrast(inference=inference.combined(found.matrix, found.texts), values=found.values)


def marginal_effects(
    moments: Moments, design: Design, inference: Inference, at: Mapping[str, object] | None
) -> Contrast:
    """∂y/∂x for each column at one point: the means, but for what `at` says; levels against the reference."""
    columns = tuple(dict.fromkeys(name for term in design.terms for name in _columns_of(term)))
    inside = {name for term in design.terms for name in term.monomial}
    point = _point(moments, design, inside, at or {})
    references = {f"{group}={level}" for group, level in design.references.items()}
    names = tuple(name for name in columns if name not in references)
    rows = [_slopes(design, name, point) for name in names]
    told = ", ".join(f"{name} = {value:.5g}" for name, value in point.items())
    title = "Marginal effects" + (f" at {told}" if told else "")
    found = inference.combined(np.array(rows), names)
    return Contrast(inference=found, values=np.zeros(len(names)), title=title)


def _columns_of(term: Term) -> tuple[str, ...]:
    if term.source == INTERCEPT:
        return ()
    return tuple(dict.fromkeys(term.monomial)) or (term.name,)


def _slopes(design: Design, column: str, point: Mapping[str, float]) -> Vector:
    """How much the target changes with the column: with a level, in place of the reference level."""
    slopes = np.array([_slope(term, column, point) for term in design.terms])
    own = design.schema.encoded[design.schema.indices(column)[0]]
    if own.level is None or own.source not in design.references:
        return slopes
    reference = f"{own.source}={design.references[own.source]}"
    return np.asarray(slopes - [_slope(term, reference, point) for term in design.terms])


def _slope(term: Term, column: str, point: Mapping[str, float]) -> float:
    """The derivative of the term's value by the column."""
    if not term.monomial:
        return 1.0 if term.name == column else 0.0
    power = term.monomial.count(column)
    if power == 0:
        return 0.0
    others = [point[name] for name in term.monomial if name != column]
    return float(power * point[column] ** (power - 1) * np.prod(others))


def _point(moments: Moments, design: Design, needed: set[str], at: Mapping[str, object]) -> dict[str, float]:
    """Where effects are taken: a value for each column that is in a product or a power."""
    schema = design.schema
    derived = {column.name for column in schema.columns_derived}
    if about := [term.name for term in design.terms if term.source in derived and not term.monomial]:
        raise AnalysisError(
            "no marginal effects: this release tells some terms about the middle of their ranges only",
            got=", ".join(about),
            remedy="A constant column, and all lower powers of a column, must be published with them",
        )
    inside = [column for column in schema.encoded if column.name in needed]
    sources = dict.fromkeys(column.source for column in inside)
    if unknown := [name for name in at if name not in sources]:
        raise AnalysisError(
            f"{unknown[0]!r} has no influence on any effect: it is in no product or power of this regression",
            limit=", ".join(sorted(sources)) or "no products or powers",
        )
    reading = {column.name: column for column in schema.columns_read}
    found: dict[str, float] = {}
    for column in inside:
        if column.source not in at:
            found[column.name] = _mean(moments, column.name)
            continue
        given = _one_value(reading[column.source], at[column.source])
        found[column.name] = float(given if column.level is None else given == column.level)
    return found


def _one_value(column: SourceColumn, given: object) -> Any:
    found = column.new_values(np.atleast_1d(np.asarray(given)))
    if len(found) != 1 or found[0] != found[0]:
        raise AnalysisError(
            f"marginal effects are taken at one point: {column.name!r} needs one value",
            got=shown(given),
            remedy="Ask once for each point",
        )
    return found[0]


def _mean(moments: Moments, name: str) -> float:
    functions, place = original_functions(moments), moments.schema.indices(name)[0]
    constant = moments.constant_vector()
    if constant is None or not moments.rows or moments.rows <= 0.0:
        raise AnalysisError(f"the mean of {name!r} is unknown", remedy=f"Say where: at={{{name!r}: …}}")
    return float(moments.form(constant, functions[:, place])) / moments.rows


def original_functions(moments: Moments) -> Matrix:
    """Every encoded column in original units as a function of the encoded row, in columns."""
    from dpgram.document.original_units import change_of_units

    return change_of_units(moments.schema).T


def standardised(moments: Moments, design: Design, inference: Inference) -> Contrast:
    """β_j·sd(x_j)/sd(y): the change of y, in its deviations, over one deviation of each term."""
    features = [i for i, term in enumerate(design.terms) if term.source != INTERCEPT]
    spread = deviations(moments, design.functions()[:, features], [design.names[i] for i in features])
    target = design.target_vector * design.target_scale
    (own,) = deviations(moments, target[:, None], [design.target_name])
    matrix = np.zeros((len(features), len(design.terms)))
    matrix[range(len(features)), features] = spread / own
    names = tuple(design.names[i] for i in features)
    return Contrast(
        inference=inference.combined(matrix, names),
        values=np.zeros(len(names)),
        title=f"Change of {design.target_name} in standard deviations, over one standard deviation of each",
    )


def variance_inflation(moments: Moments, design: Design, inference: Inference) -> LabelledVector:
    """(XᵀX)⁻¹_jj·Σ(x_j − x̄_j)²: how much the other terms inflate the variance of each coefficient."""
    inference.check()
    features = [i for i, term in enumerate(design.terms) if term.source != INTERCEPT]
    names = tuple(design.names[i] for i in features)
    functions = design.functions()[:, features]
    if design.intercept:
        sums = deviations(moments, functions, names) ** 2 * float(moments.rows or 0.0)
    else:
        sums = np.diagonal(moments.form(functions, functions))
    factors = inference.unscaled(np.eye(len(design.terms))[features]) * sums
    return LabelledVector(names, np.where(inference.bounded()[features], factors, np.nan))


def deviations(moments: Moments, functions: Matrix, names: Sequence[str]) -> Vector:
    """Standard deviations of functions of the encoded row."""
    constant, rows = moments.constant_vector(), moments.rows
    if constant is None or not rows or rows <= 0.0:
        raise AnalysisError("the number of rows is unknown, so no standard deviation is")
    means = moments.form(constant, functions) / rows
    variances = np.diagonal(moments.form(functions, functions)) / rows - means**2
    if (variances <= 0.0).any():
        hidden = [name for name, value in zip(names, variances, strict=True) if value <= 0.0]
        raise AnalysisError("the noise hides how much these terms vary", got=", ".join(hidden))
    return np.sqrt(variances)

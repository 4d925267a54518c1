"""Which regression is meant: terms and target as vectors v with v·a = the term's value in row a.

A term of the regression is a linear function of the encoded row a, hence a vector in encoded space; terms are
kept in the scale of z ∈ [-1, 1], where everything is of order one, and a linear map takes the coefficients to
original units. The intercept is the vector of the constant column; a categorical column gives one term for
each level but the reference.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.moments import Moments, scale_factors
from dpgram.errors import AnalysisError
from dpgram.schema import EncodedColumn, Schema

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

INTERCEPT: Final = "(intercept)"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Term:
    """One coefficient: its name, the declared column it belongs to and, for a level, which one."""

    name: str
    source: str
    level: str | None = None
    shift: float = 0.0
    """Subtracted from the column before the coefficient applies (only without a constant column)."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """The question y ~ terms, for one schema. In original units: `to_original @ β + offset`."""

    schema: Schema
    target: str
    terms: tuple[Term, ...]
    references: Mapping[str, str]
    """Categorical column → its reference level."""
    intercept: bool
    vectors: Matrix
    """One column for each term, in encoded space."""
    target_vector: Vector
    members: tuple[int, ...]
    """Positions of the encoded feature columns (all levels, without the constant): what a penalty acts on."""
    to_original: Matrix
    offset: Vector
    base: float = 0.0
    """Added to every prediction: the target's public centre, when no constant column could absorb it."""
    target_scale: float = 1.0
    """One unit of the target vector's scale in original units."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(term.name for term in self.terms)

    def positions(self, name: str) -> tuple[int, ...]:
        """Positions of one coefficient, or of all coefficients of a declared column."""
        found = tuple(i for i, term in enumerate(self.terms) if name in (term.name, term.source))
        if not found:
            raise AnalysisError(
                f"no coefficient {name!r} in this regression", limit=", ".join(self.names[:20])
            )
        return found

    def coefficients(self, beta: Vector) -> Vector:
        """β in original units."""
        return np.asarray(self.to_original @ beta + self.offset)

    def from_measured(self, function: Vector, moments: Moments) -> Vector:
        """The β of a function where the matrix was measured, which must lie in the span of the terms."""
        vectors, wanted = moments.project(self.vectors), moments.within(function)
        return np.asarray(np.linalg.lstsq(vectors, wanted, rcond=None)[0])


def build_design(
    moments: Moments,
    target: str,
    on: Sequence[str] | None = None,
    *,
    intercept: bool = True,
    reference: Mapping[str, str] | None = None,
) -> Design:
    """Check the question against the schema and lay out its terms."""
    schema = moments.schema
    encoded, target_at = schema.encoded, _target_position(schema, target)
    features = _features(schema, target_at, on)
    if intercept and not schema.constant:
        raise AnalysisError(
            "this release has no constant column, so no intercept can be fitted",
            remedy="Ask with intercept=False: the fit then passes through the public midpoints.",
        )
    names = {encoded[i].source for i in features}
    references = _references(schema, names, intercept=intercept, asked=reference or {}, features=features)
    terms = [Term(name=INTERCEPT, source=INTERCEPT)] if intercept else []
    columns: list[EncodedColumn | None] = [None] if intercept else []
    for i in features:
        column = encoded[i]
        if column.kind == "level" and references.get(column.source) == column.level:
            continue
        terms.append(Term(name=column.name, source=column.source, level=column.level))
        columns.append(column)
    if not terms:
        raise AnalysisError(
            "no features are left to regress on",
            remedy="Name at least one column in `on`, or keep intercept=True.",
        )
    if intercept:
        return _with_intercept(schema, target, tuple(terms), columns, references, features, target_at)
    return _through_origin(schema, target, tuple(terms), columns, references, features, target_at)


def _with_intercept(
    schema: Schema,
    target: str,
    terms: tuple[Term, ...],
    columns: Sequence[EncodedColumn | None],
    references: Mapping[str, str],
    features: tuple[int, ...],
    target_at: int,
) -> Design:
    """Everything in z; centres and half-widths are undone by the linear map to original units."""
    encoded, scales = schema.encoded, scale_factors(schema)
    y = encoded[target_at]
    y_scale = scales.get(y.source, 1.0) if y.kind != "level" else 1.0
    vectors = np.zeros((schema.width, len(terms)))
    to_original = np.zeros((len(terms), len(terms)))
    vectors[0, 0] = 1.0 / encoded[0].weight
    to_original[0, 0] = y_scale
    for k, column in enumerate(columns):
        if column is None:
            continue
        scale = 1.0 if column.kind == "level" else scales[column.source]
        vectors[schema.names.index(column.name), k] = 1.0 / column.weight
        to_original[k, k] = y_scale / scale
        to_original[0, k] = -y_scale * column.centre / scale
    offset = np.zeros(len(terms))
    offset[0] = y.centre
    return Design(
        schema=schema,
        target=target,
        terms=terms,
        references=references,
        intercept=True,
        vectors=vectors,
        target_vector=_unit(schema.width, target_at, 1.0 / y.weight),
        members=features,
        to_original=to_original,
        offset=offset,
        target_scale=y_scale,
    )


def _through_origin(
    schema: Schema,
    target: str,
    terms: tuple[Term, ...],
    columns: Sequence[EncodedColumn | None],
    references: Mapping[str, str],
    features: tuple[int, ...],
    target_at: int,
) -> Design:
    """y = Σ β_j x_j in original units: centres come in through the constant column; each x is one vector."""
    encoded, scales = schema.encoded, scale_factors(schema)
    y = encoded[target_at]
    y_scale = scales.get(y.source, 1.0) if y.kind != "level" else 1.0
    vectors = np.zeros((schema.width, len(terms)))
    factors = np.ones(len(terms))
    shifts = np.zeros(len(terms))
    for k, column in enumerate(columns):
        if column is None:
            continue
        scale = 1.0 if column.kind == "level" else scales[column.source]
        size = max(scale, abs(column.centre)) if schema.constant else scale
        vectors[schema.names.index(column.name), k] = scale / size / column.weight
        if schema.constant:
            vectors[0, k] = column.centre / size / encoded[0].weight
        else:
            shifts[k] = column.centre
        factors[k] = y_scale / size
    target_vector = _unit(schema.width, target_at, 1.0 / y.weight)
    if schema.constant:
        target_vector[0] += y.centre / y_scale / encoded[0].weight
    shifted = tuple(
        Term(name=t.name, source=t.source, level=t.level, shift=float(s))
        for t, s in zip(terms, shifts, strict=True)
    )
    return Design(
        schema=schema,
        target=target,
        terms=shifted,
        references=references,
        intercept=False,
        vectors=vectors,
        target_vector=target_vector,
        members=features,
        to_original=np.diag(factors),
        offset=np.zeros(len(terms)),
        base=0.0 if schema.constant else y.centre,
        target_scale=y_scale,
    )


def _target_position(schema: Schema, target: str) -> int:
    positions = schema.indices(target)
    if len(positions) > 1:
        example = schema.encoded[positions[-1]].name
        raise AnalysisError(
            f"{target!r} is categorical and cannot be a target as a whole",
            remedy=f"Take one level as a 0/1 target, for example {example!r}.",
        )
    if schema.encoded[positions[0]].kind == "constant":
        raise AnalysisError("the constant column cannot be a target")
    return positions[0]


def _features(schema: Schema, target_at: int, on: Sequence[str] | None) -> tuple[int, ...]:
    """Positions of the features. By default every column but the target and what is computed from it."""
    encoded = schema.encoded
    own = encoded[target_at].source
    if on is None:
        chosen = [
            column.name for column in schema.columns if column.name != own and own not in column.factors
        ]
    else:
        if isinstance(on, str):
            raise AnalysisError(
                "`on` must be a list of column names", got=repr(on), remedy=f"Write on=[{on!r}]."
            )
        chosen = list(on)
    found: list[int] = []
    for name in chosen:
        for i in schema.indices(name):
            if i in found:
                raise AnalysisError(f"the feature {name!r} is named twice")
            if encoded[i].source == own:
                raise AnalysisError(
                    f"{name!r} cannot be a feature: it belongs to the target {encoded[target_at].name!r}"
                )
            if encoded[i].kind == "constant":
                raise AnalysisError("the constant column is not a feature", remedy="Use intercept=True.")
            found.append(i)
    return tuple(found)


def _references(
    schema: Schema,
    names: set[str],
    *,
    intercept: bool,
    asked: Mapping[str, str],
    features: tuple[int, ...],
) -> dict[str, str]:
    """The reference level of each group that is in the regression with all its levels."""
    groups = [
        column
        for column in schema.columns
        if column.group_levels and column.name in names and set(schema.indices(column.name)) <= set(features)
    ]
    for name, level in asked.items():
        group = next((column for column in groups if column.name == name), None)
        if group is None:
            raise AnalysisError(
                f"{name!r} has no reference level: it is no categorical feature of this regression"
            )
        if level not in group.group_levels:
            raise AnalysisError(f"{name!r} has no level {level!r}", limit=", ".join(group.group_levels[:20]))
    # Without an intercept the first group keeps all its levels: they carry the overall level themselves.
    coded = groups if intercept else groups[1:]
    return {group.name: asked.get(group.name, group.group_levels[0]) for group in coded}


def _unit(width: int, at: int, value: float) -> Vector:
    vector = np.zeros(width)
    vector[at] = value
    return vector

"""Which regression is meant: terms and target as vectors v with v·a = the term's value in row a.

A term of the regression is a linear function of the encoded row a, hence a vector in encoded space. In
original units terms are what R and Stata would have: 0/1 for levels and truth values, products and powers of
the values as they are (document/original_units.py). For the arithmetic they are kept in the scale of
z ∈ [-1, 1], where everything is of order one, and a linear map takes the coefficients to original units. The
intercept is the vector of the constant column; a categorical column gives one term for each level but the
reference, and so do its products with another column that is there by itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.asked import asked_columns, asked_reference
from dpgram.analysis.moments import Moments
from dpgram.document.original_units import OriginalColumn, original_columns
from dpgram.errors import AnalysisError
from dpgram.schema import Schema

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
    monomial: tuple[str, ...] = ()
    """The columns whose values it multiplies, levels as 0 and 1, for a product or a power of values."""
    scale: float = 1.0
    """Half the public range of what the coefficient multiplies; 1 for levels and the intercept."""


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
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
    axes: Matrix
    """The functions that a penalty shrinks, one for each member, of the weight of its column."""
    to_original: Matrix
    offset: Vector
    base: float = 0.0
    """Added to every prediction: the target's public centre, when no constant column could absorb it."""
    target_scale: float = 1.0
    """One unit of the target vector's scale in original units."""

    empty: tuple[str, ...] = ()
    """Levels that were left out because noisy counts show no rows to speak of in them, and their products."""
    empty_levels: tuple[str, ...] = ()
    """These levels alone, also where only products with them would be in the fit."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(term.name for term in self.terms)

    @property
    def target_name(self) -> str:
        """Of what is predicted, in original units: `age:bmi` for the column `age*bmi`."""
        return original_columns(self.schema)[self.schema.indices(self.target)[0]].name

    @property
    def empty_cautions(self) -> tuple[str, ...]:
        """What to say of the levels that were left out."""
        if not self.empty:
            return ()
        more = len(self.empty) - 5
        names = ", ".join(self.empty[:5]) + (f" and {more} more" if more > 0 else "")
        told = "left out of the fit, so counted with the reference"
        return (f"noisy counts show no rows to speak of with {names}: {told}",)

    def positions(self, name: str) -> tuple[int, ...]:
        """Positions of one coefficient, or of all coefficients of a declared column."""
        found = tuple(
            i
            for i, term in enumerate(self.terms)
            if name in (term.name, term.source) or name == self.called(term.source)
        )
        if not found:
            raise AnalysisError(
                f"no coefficient {name!r} in this regression", limit=", ".join(self.names[:20])
            )
        return found

    def called(self, source: str) -> str:
        """How answers call a declared column; what is computed from others as its coefficient: `age:bmi`."""
        column = self.schema.column(source) if source != INTERCEPT else None
        if column is None or not column.factors:
            return source
        if len(column.encoded_names) > 1:
            return ":".join(column.factors)
        return next((term.name for term in self.terms if term.source == source), source)

    def functions(self) -> Matrix:
        """The terms in original units as functions of the encoded row, one in each column."""
        # y = V·β_V = F·β with β = T·β_V/s, so V = F·T/s with s the target's unit.
        return np.asarray(np.linalg.solve(self.to_original.T / self.target_scale, self.vectors.T).T)

    def coefficients(self, beta: Vector) -> Vector:
        """β in original units."""
        return np.asarray(self.to_original @ beta + self.offset)

    def from_measured(self, function: Matrix, moments: Moments) -> Matrix:
        """The β of a function where the matrix was measured (of each, in columns), in the terms' span."""
        vectors, wanted = moments.project(self.vectors), moments.within(function)
        return np.asarray(np.linalg.lstsq(vectors, wanted, rcond=None)[0])

    def __repr__(self) -> str:
        return f"<Design: {self.target} on {len(self.terms)} terms>"


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
    columns = original_columns(schema)
    on = None if on is None else asked_columns(schema, on)
    target_at = _target_position(schema, target, columns)
    encoded, features = schema.encoded, _features(schema, target_at, on, columns)
    if intercept and not schema.constant:
        raise AnalysisError(
            "this release has no constant column, so no intercept can be fitted",
            remedy="Ask with intercept=False: the fit then passes through the public midpoints.",
        )
    interactions = _interactions(schema, features)
    references, coded = _references(
        moments,
        interactions,
        intercept=intercept,
        asked=asked_reference(schema, reference),
        features=features,
    )
    left_out = _without(schema, interactions, features, references, intercept=intercept)
    gone = moments.empty_levels - set(on or ())
    empty = [
        encoded[i].name
        for i in features
        if encoded[i].name in gone or (i in interactions and gone & set(interactions[i].levels))
    ]
    behind = {encoded[i].name for i in features}.union(
        *(interactions[i].levels for i in features if i in interactions)
    )
    features = tuple(i for i in features if encoded[i].name not in empty)
    terms = [Term(name=INTERCEPT, source=INTERCEPT)] if intercept else []
    places = [0] if intercept else []
    for i in features:
        column = encoded[i]
        if i in left_out or (column.source in coded and references[column.source] == column.level):
            continue
        own = columns[i]
        terms.append(
            Term(
                name=own.name,
                source=column.source,
                level=column.level,
                monomial=own.monomial,
                scale=own.scale,
            )
        )
        places.append(i)
    if not terms:
        raise AnalysisError(
            "no features are left to regress on",
            remedy="Name at least one column in `on`, or keep intercept=True.",
        )
    layout = _with_intercept if intercept else _through_origin
    return layout(
        Design(
            schema=schema,
            target=encoded[target_at].name,
            terms=tuple(terms),
            references=references,
            intercept=intercept,
            vectors=np.zeros((schema.width, len(terms))),
            target_vector=np.zeros(schema.width),
            members=features,
            axes=np.zeros((schema.width, len(features))),
            to_original=np.zeros((len(terms), len(terms))),
            offset=np.zeros(len(terms)),
            empty=tuple(empty),
            empty_levels=tuple(column.name for column in encoded if column.name in gone & behind),
        ),
        places,
        columns,
        target_at,
    )


def _with_intercept(
    blank: Design, places: Sequence[int], columns: Sequence[OriginalColumn], target_at: int
) -> Design:
    """Vectors v in z; F = V·M for the terms F in original units, so coefficients are M⁻¹ of those of V.

    A term is laid out as the z of its own column where all else that it is a sum of belongs to terms so laid
    out: then M mixes them, and the arithmetic stays where everything is of order one. A product without its
    main effects is its own function instead.
    """
    schema, target = blank.schema, columns[target_at]
    weights = [column.weight for column in schema.encoded]
    row_of = {place: k for k, place in enumerate(places)}
    by_degree = sorted(range(len(places)), key=lambda k: len(columns[places[k]].monomial))
    plain: set[int] = set()
    mixing: list[dict[int, float]] = [{} for _ in places]
    vectors = np.zeros((schema.width, len(places)))
    for k in by_degree:
        own, parts = places[k], columns[places[k]].parts
        if all(place == own or place in plain for place in parts):
            plain.add(own)
            vectors[own, k] = 1.0 / weights[own]
            mixing[k] = {row_of[place]: value * weights[place] for place, value in parts.items()}
        else:
            vectors[:, k], size = _carried(parts, weights)
            mixing[k] = {k: size}
    axes = np.zeros((schema.width, len(blank.members)))
    for j, member in enumerate(blank.members):
        if member in row_of and member not in plain:
            axes[:, j] = vectors[:, row_of[member]] * weights[member]
        else:
            axes[member, j] = 1.0
    parts = dict(target.parts)
    offset = np.zeros(len(places))
    offset[0] = parts.pop(0, 0.0) * weights[0]
    return replace(
        blank,
        vectors=vectors,
        axes=axes,
        target_vector=_vector(schema.width, {place: value / target.scale for place, value in parts.items()}),
        to_original=target.scale * _inverse(mixing, by_degree),
        offset=offset,
        target_scale=target.scale,
    )


def _inverse(mixing: Sequence[Mapping[int, float]], by_degree: Sequence[int]) -> Matrix:
    """M⁻¹, M given by its columns: each has its own row and rows of terms of lower degree."""
    inverse = np.zeros((len(mixing), len(mixing)))
    for k in by_degree:
        own = mixing[k][k]
        inverse[k, k] = 1.0 / own
        for row, value in mixing[k].items():
            if row != k:
                inverse[:, k] -= inverse[:, row] * (value / own)
    return inverse


def _carried(parts: Mapping[int, float], weights: Sequence[float]) -> tuple[Vector, float]:
    """A function of the encoded row as a vector of order one, and the factor that was taken out."""
    size = max(abs(value) * weights[place] for place, value in parts.items())
    return _vector(len(weights), {place: value / size for place, value in parts.items()}), size


def _through_origin(
    blank: Design, places: Sequence[int], columns: Sequence[OriginalColumn], target_at: int
) -> Design:
    """y = Σ β_j x_j in original units: centres come in through the constant column; each x is one vector."""
    schema, target = blank.schema, columns[target_at]
    weights = [column.weight for column in schema.encoded]
    carried = [_carried(columns[place].parts, weights) for place in places]
    vectors = np.column_stack([vector for vector, _ in carried])
    terms = tuple(
        replace(term, shift=columns[place].shift) for term, place in zip(blank.terms, places, strict=True)
    )
    whole = len(blank.members) == len(terms)  # else a reference level was dropped: the terms as they are
    sizes = [weights[i] for i in blank.members] if whole else [1.0] * len(terms)
    return replace(
        blank,
        terms=terms,
        vectors=vectors,
        axes=vectors * sizes,
        target_vector=_vector(
            schema.width, {place: value / target.scale for place, value in target.parts.items()}
        ),
        to_original=np.diag([target.scale / size for _, size in carried]),
        base=target.shift,
        target_scale=target.scale,
    )


def places_of(schema: Schema, name: str, columns: Sequence[OriginalColumn]) -> tuple[int, ...]:
    """Positions of a column by its declared name, or by that of the product or power it stands for."""
    if not schema.columns_derived:
        return schema.indices(name)
    stands = [i for i, column in enumerate(columns) if column.monomial and column.name == name]
    whole = [
        column.name
        for column in schema.columns_derived
        if len(column.factors) == 2 and ":".join(column.factors) == name
    ]
    return tuple(stands[:1]) or schema.indices(whole[0] if whole else name)


def declared_name(schema: Schema, name: str) -> str:
    """The declared name of a whole column, however it is spelt; single levels as they are."""
    places = places_of(schema, name, original_columns(schema) if schema.columns_derived else ())
    source = schema.encoded[places[0]].source
    return source if places == schema.indices(source) else name


def _target_position(schema: Schema, target: str, columns: Sequence[OriginalColumn]) -> int:
    positions = places_of(schema, target, columns)
    if len(positions) > 1:
        example = schema.encoded[positions[-1]].name
        raise AnalysisError(
            f"{target!r} is categorical and cannot be a target as a whole",
            remedy=f"Take one level as a 0/1 target, for example {example!r}.",
        )
    if schema.encoded[positions[0]].kind == "constant":
        raise AnalysisError("the constant column cannot be a target")
    return positions[0]


def _features(
    schema: Schema, target_at: int, on: Sequence[str] | None, columns: Sequence[OriginalColumn]
) -> tuple[int, ...]:
    """Positions of the features. By default every column but the target and what is computed from it."""
    encoded = schema.encoded
    own = encoded[target_at].source
    if on is None:
        chosen = [
            column.name for column in schema.columns if column.name != own and own not in column.factors
        ]
    else:
        chosen = list(on)
    found: list[int] = []
    for name in chosen:
        for i in places_of(schema, name, columns):
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


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class _Interaction:
    """A product with a level, or with two."""

    source: str
    factors: tuple[str, str]
    """The declared columns."""
    levels: tuple[str, ...]
    """Of the groups among them, as names of encoded columns."""


def _interactions(schema: Schema, features: tuple[int, ...]) -> dict[int, _Interaction]:
    """The features that are products with levels."""
    found: dict[int, _Interaction] = {}
    for column in schema.columns_derived:
        grouped = [bool(schema.column(name).group_levels) for name in column.factors]
        if not any(grouped):
            continue
        left, right = column.factors
        for name, part in zip(column.encoded_names, column.parts, strict=True):
            (place,) = schema.indices(name)
            if place in features:
                levels = tuple(own for own, group in zip(part.factors, grouped, strict=True) if group)
                found[place] = _Interaction(source=column.name, factors=(left, right), levels=levels)
    return found


def _references(
    moments: Moments,
    interactions: Mapping[int, _Interaction],
    *,
    intercept: bool,
    asked: Mapping[str, str],
    features: tuple[int, ...],
) -> tuple[dict[str, str], frozenset[str]]:
    """The reference level of each group, as asked or the most frequent one; groups that go without theirs."""
    schema = moments.schema
    multiplied = {name for each in interactions.values() for name in each.factors}
    whole = {
        column.name
        for column in schema.columns
        if column.group_levels and set(schema.indices(column.name)) <= set(features)
    }
    groups = [
        column for column in schema.columns if column.group_levels and column.name in whole | multiplied
    ]
    for name, level in asked.items():
        group = next((column for column in groups if column.name == name), None)
        if group is None:
            raise AnalysisError(
                f"{name!r} has no reference level: it is not a categorical feature of this regression"
            )
        if level not in group.group_levels:
            raise AnalysisError(f"{name!r} has no level {level!r}", limit=", ".join(group.group_levels[:20]))
    # Without an intercept the first group keeps all its levels: they carry the overall level themselves.
    coded = [group.name for group in groups if group.name in whole][0 if intercept else 1 :]
    compared = {*coded, *multiplied}
    references = {
        group.name: asked[group.name] if group.name in asked else most_frequent(moments, group.name)
        for group in groups
        if group.name in compared
    }
    return references, frozenset(coded)


def _without(
    schema: Schema,
    interactions: Mapping[int, _Interaction],
    features: tuple[int, ...],
    references: Mapping[str, str],
    *,
    intercept: bool,
) -> frozenset[int]:
    """Products that follow from others: with a reference level, where the other factor is there by itself.

    As in R: `region * age` has a slope of age and by how much those of other regions differ, `region:age`
    alone a slope for each region. Of two groups alone the pair of both reference levels is left out.
    """
    chosen = set(features)
    by_itself = {column.name for column in schema.columns if set(schema.indices(column.name)) <= chosen}
    found = set()
    for place, product in interactions.items():
        if product.source not in by_itself:
            continue  # single products, by their names: as asked
        grouped = [name for name in product.factors if schema.column(name).group_levels]
        least = [f"{name}={references[name]}" in product.levels for name in grouped]
        others = [next(name for name in product.factors if name != group) for group in grouped]
        reduced = [other in by_itself for other in others]
        if any(is_least and drop for is_least, drop in zip(least, reduced, strict=True)) or (
            len(grouped) == 2 and intercept and not any(reduced) and all(least)
        ):
            found.add(place)
    return frozenset(found)


def most_frequent(moments: Moments, name: str) -> str:
    """The level with the largest noisy count; an empty one would leave nothing to compare the others with."""
    places = moments.schema.indices(name)
    levels = np.zeros((moments.schema.width, len(places)))
    levels[list(places), range(len(places))] = 1.0 / moments.weights[list(places)]
    constant = moments.constant_vector()
    counts = np.diagonal(moments.form(levels, levels)) if constant is None else moments.form(constant, levels)
    return str(moments.schema.encoded[places[int(np.argmax(counts))]].level)


def _vector(width: int, parts: Mapping[int, float]) -> Vector:
    vector = np.zeros(width)
    vector[list(parts)] = list(parts.values())
    return vector

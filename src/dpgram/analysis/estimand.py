"""What an interval is for, in words: the table as it was published, or a population treated in the same way.

Rows that are clipped, weighted by person or by survey, and values moved into learnt bounds are another table
than the one that came in. The noise is honest about that table, so its regression is named and a caution says
that it is another. Where the sampling error would be wrong as well (learnt bounds cut off a tail that decides
about the slope), an interval for the population is refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, final

from dpgram.analysis.moments import Moments

if TYPE_CHECKING:
    from dpgram.analysis.design import Design

Kind = Literal["population", "table"]
KINDS: Final[tuple[Kind, ...]] = ("population", "table")
Answer = Literal["regression", "correlations", "covariances", "components"]
"""What a caution is said of."""

EQUAL_VARIANCE: Final = "the error variance is the same for all rows"
"""Second moments cannot tell whether it is."""
SYMMETRIC_ERRORS: Final = "errors are symmetric about the regression, as long rows were clipped"
"""Else the clip would weigh errors of one sign down, and move coefficients."""
DEVIATIONS_CAUTION: Final = (
    "rows far from the others count less in deviations; means, shares and counts come from histograms, in "
    "which they do not"
)
INFLUENCE: Final[Mapping[Answer, tuple[str, str]]] = {
    "regression": (
        (
            "the regression is one of bounded influence: it equals least squares where errors are symmetric "
            "given the features, differs where they are skewed"
        ),
        "Least squares itself takes",
    ),
    **{
        answer: (
            (
                f"{answer} are those of bounded influence: they differ from the usual ones where such rows "
                "decide"
            ),
            "The usual ones take",
        )
        for answer in ("correlations", "covariances", "components")
    },
}
"""What it is where rows far from the others count less, and what it would take to have it otherwise."""
NOT_INCLUDED: Final = ", and no interval here includes the difference"
"""After such a caution, where there are intervals."""
MOVED: Final = (
    "bounds were learnt, and values outside them were moved to them: {answers} are those of the moved values"
)
MOVED_CAUTION: Final = MOVED.format(answers="coefficients") + NOT_INCLUDED
MOVED_REFUSAL: Final = (
    "bounds of columns in this regression were learnt and values outside them moved to them, which no "
    'interval for the population allows for: ask for the table with its moved values (kind "table"), or for '
    "a release with public bounds"
)


def moved_columns(moments: Moments, design: Design) -> tuple[str, ...]:
    """Columns of the regression, or behind its products, whose bounds were learnt."""
    schema = moments.schema
    used = {design.target, *(term.source for term in design.terms)}
    used.update([name for column in schema.columns if column.name in used for name in column.factors])
    return tuple(column.name for column in schema.columns if column.name in used & moments.learnt_bounds)


def moved_cautions(
    moments: Moments, columns: Iterable[str], answers: str, *, refused: bool = False
) -> tuple[str, ...]:
    """What to say where the bounds of any of these declared columns were learnt; `refused`: no intervals."""
    if not moments.learnt_bounds.intersection(columns):
        return ()
    return (MOVED.format(answers=answers) + ("" if refused else NOT_INCLUDED),)


def meaning_of(moments: Moments, kind: Kind, *, moved: bool) -> str:
    """What is estimated, and which sources of chance its interval allows for."""
    clauses = [change.clause for change in _changes(moments)]
    if moved:
        clauses.append("values outside learnt bounds moved to them")
    changed = "; ".join(clauses)
    if kind == "population":
        meaning = "the un-shrunken regression in the population (sampling and privacy noise)"
        return f"{meaning}, its rows treated as those of the table: {changed}" if changed else meaning
    if changed:
        return f"the un-shrunken regression of the table as it was published (privacy noise only): {changed}"
    return "the un-shrunken regression of this table (privacy noise only)"


def meaning_of_step(moments: Moments, kind: Kind, limit: float | None) -> str:
    """The same of a declared linear model, whose rows are clipped by their features alone."""
    clauses = [
        "rows far from the others in their features counting less, which moves nothing if it is linear"
    ]
    if limit is not None:
        clauses.append(f"residuals beyond ±{limit:.3g} counting as ±{limit:.3g}")
    clauses += [change.clause for change in _changes(moments, declared=True)]
    whose = "in the population (sampling and privacy noise)"
    if kind == "table":
        whose = "of the table as it was published (privacy noise only)"
    return f"the declared linear regression {whose}: {'; '.join(clauses)}"


def assumptions_of(moments: Moments, kind: Kind) -> tuple[str, ...]:
    """What an interval for the population rests on; the table's only error is noise of known law."""
    if kind == "table":
        return ()
    return (EQUAL_VARIANCE, SYMMETRIC_ERRORS) if moments.clipped else (EQUAL_VARIANCE,)


def description_cautions(moments: Moments, kind: Kind, *, counted: bool) -> tuple[str, ...]:
    """The same for means, deviations and counts; `counted`: means and counts come from histograms."""
    found = difference_cautions(moments, kind)
    if moments.lift is None or not counted:
        return found
    clipped = _bounded_influence(moments, "regression").caution
    others = tuple(caution for caution in found if clipped is None or not caution.startswith(clipped))
    return others if clipped is None else (DEVIATIONS_CAUTION, *others)


def difference_cautions(
    moments: Moments,
    kind: Kind,
    *,
    refused: bool = False,
    declared: bool = False,
    of: Answer = "regression",
) -> tuple[str, ...]:
    """How that differs from the regression of the rows that came in, whatever the columns are.

    Where intervals are `refused`, nothing is said of them. `declared` models have a clip of their own.
    """
    found = [
        f"{change.caution}{NOT_INCLUDED}{change.remedy}"
        for change in _changes(moments, declared=declared, of=of)
        if change.caution is not None
    ]
    if refused:
        changes = _changes(moments, of=of)
        return tuple(change.caution + change.remedy for change in changes if change.caution is not None)
    if kind == "population" and moments.unit is not None:
        found.append(
            f"rows of one {moments.unit!r} may depend on each other: intervals for the population allow for "
            "any such dependence, and tend to be too wide"
        )
    return tuple(found)


def each_once(cautions: Iterable[str]) -> tuple[str, ...]:
    """Of several fits: what one says of its intervals, another without intervals need not say again."""
    every = tuple(dict.fromkeys(cautions))
    shorter = {caution.replace(NOT_INCLUDED, "") for caution in every if NOT_INCLUDED in caution}
    return tuple(caution for caution in every if caution not in shorter)


@final
@dataclass(frozen=True, slots=True)
class _Change:
    """Something done to rows before they were added up."""

    clause: str
    caution: str | None = None
    """Nothing for what the curator asked for by name."""
    remedy: str = ""
    """A sentence after it."""


def _bounded_influence(moments: Moments, of: Answer) -> _Change:
    """Rows clipped by their length in the coordinates of an adaptive release."""
    lost = "" if moments.clip is None else f" (about {moments.clip.lost:.2%} of all weight)"
    if moments.least_squares:
        return _Change(f"long rows scaled down, so few{lost} that it is that of least squares")
    clause = f"bounded-influence regression, rows far from the others counting less{lost}"
    published = "new series" if moments.of_series else "release"
    told, usual = INFLUENCE[of]
    return _Change(
        clause,
        f"rows far from the others count less, so that {told}",
        f". {usual} a {published} that is not adaptive",
    )


def _changes(moments: Moments, *, declared: bool = False, of: Answer = "regression") -> Iterator[_Change]:
    radius, rule, unit = moments.radius, moments.unit_rule, moments.unit
    they = "coefficients" if of == "regression" else of
    if declared:
        pass
    elif moments.lift is not None and moments.clipped:
        yield _bounded_influence(moments, of)
    elif moments.clipped:
        longest = moments.schema.max_norm_squared**0.5
        yield _Change(
            f"rows longer than {radius:g} scaled down to it, so that they count less",
            f"rows were clipped to the radius {radius:g}, below the largest norm the schema allows "
            f"({longest:g}): long rows count less, {they} are those of the clipped, reweighted rows",
        )
    if rule is not None and rule.counts == "units":
        yield _Change(
            f"all rows of one {unit!r} together counting as one",
            f"m rows of one {unit!r} count 1/m each: {they} are those of rows so weighted",
        )
    elif rule is not None:
        yield _Change(
            f"at most {rule.rows_at_most} rows of one {unit!r}",
            f"of each {unit!r} at most {rule.rows_at_most} rows were used: {they} are those of these",
        )
    if moments.survey_weight is not None:
        yield _Change(f"rows weighted by {moments.survey_weight!r}")

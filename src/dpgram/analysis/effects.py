"""Effects within groups, and difference-in-differences: a few coefficients of a regression.

Within groups: the slopes of y on x with an own level of y for each group. Dummies of the group partialled out
of y and x, they are those of the regression on x and the dummies. Difference-in-differences: the coefficient
of treated × after beside both, which is how much more the treated changed than the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import build_design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.estimates import as_lines, as_rows
from dpgram.analysis.inference import Inference, infer
from dpgram.analysis.labelled import LabelledMatrix, LabelledVector
from dpgram.analysis.moments import Moments
from dpgram.document.labels import Labels
from dpgram.document.terminal import one_line, with_notes
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.document.document import Document

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

PARALLEL: Final = "without the treatment both groups would have changed alike"


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Effects:
    """Some coefficients of an un-shrunken regression, in original units."""

    target: str
    title: str
    estimand: str
    assumption: str | None
    """What makes the coefficient the effect it is named after; nothing where it is a description."""
    names: tuple[str, ...]
    inference: Inference
    """Of the whole regression."""
    positions: tuple[int, ...]
    """Of the coefficients that are told, in it."""
    rows: float | None
    legend: str | None = None
    """What the names stand for, where the schema says so."""

    @property
    def params(self) -> LabelledVector:
        """Name → coefficient; NaN where the noise leaves no interval."""
        self.inference.check()
        return LabelledVector(self.names, np.where(self._clear(), self._estimate(), np.nan))

    @property
    def bse(self) -> LabelledVector:
        """Name → standard error: sampling and privacy noise."""
        return LabelledVector(self.names, self.inference.std_errors[list(self.positions)])

    @property
    def tvalues(self) -> LabelledVector:
        """Name → coefficient over its standard error under the hypothesis of zero."""
        self.inference.check()
        ratios = self.inference.ratios()[list(self.positions)]
        return LabelledVector(self.names, np.where(self._clear(), ratios, np.nan))

    @property
    def pvalues(self) -> LabelledVector:
        """Name → two-sided p-value of the coefficient being zero."""
        return LabelledVector(self.names, self.inference.p_values()[list(self.positions)])

    @property
    def nobs(self) -> float | None:
        """The noisy number of rows."""
        return self.rows

    def conf_int(self, level: float = 0.95) -> Mapping[str, tuple[float, float]]:
        """Name → interval.

        >>> low, high = release.within("charges", ["age"], "smoker").conf_int()["age"]
        >>> round(low), round(high)
        (120, 131)
        """
        ends = self.inference.conf_int(level)[list(self.positions)]
        return {name: (float(low), float(high)) for name, (low, high) in zip(self.names, ends, strict=True)}

    def cov_params(self) -> LabelledMatrix:
        """The covariance of `params`.

        >>> release.within("charges", ["age"], "smoker").cov_params().names
        ('age',)
        """
        self.inference.check()
        chosen, clear = list(self.positions), np.outer(self._clear(), self._clear())
        values = self.inference.covariance[np.ix_(chosen, chosen)]
        return LabelledMatrix(self.names, np.where(clear, values, np.nan))

    def summary(self, level: float = 0.95) -> str:
        """Coefficients with intervals, and what they mean, as text.

        >>> print(release.within("charges", ["age"], "smoker").summary().splitlines()[0])
        charges on age within smoker, from a private release
        """
        lines = [f"{self.title}, from a private release", ""]
        if self.inference.refusal is not None:
            lines.append(f"No estimate: {self.inference.refusal}.")
        else:
            lines += as_lines(self.as_rows(level), level)
        notes = [f"{self.estimand}. Intervals are for {self.inference.meaning}."]
        if self.inference.assumptions:
            notes[0] += f" Assumed: {'; '.join(self.inference.assumptions)}."
        if self.assumption is not None:
            notes.append(f"It is the effect of the treatment if {self.assumption}.")
        if self.legend is not None:
            notes.append(f"Columns: {self.legend}.")
        notes += [f"Caution: {caution}." for caution in self.inference.cautions]
        return with_notes(lines, notes)

    def as_rows(self, level: float = 0.95) -> list[dict[str, str | float | None]]:
        """Name, estimate, error, ends and p-value of each; None where the noise leaves no interval.

        >>> release.within("charges", ["age"], "smoker").as_rows()[0]["name"]
        'age'
        """
        errors = np.asarray(self.bse)
        return as_rows(
            self.names, self._estimate(), errors, self.conf_int(level), self.pvalues, self._clear()
        )

    def _estimate(self) -> Vector:
        return np.asarray(self.inference.estimate[list(self.positions)])

    def _clear(self) -> npt.NDArray[np.bool_]:
        return np.asarray(self.inference.trusted[list(self.positions)])

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        return one_line(f"<Effects: {self.title}>")


def within(
    release: Document | Moments,
    target: str,
    on: Sequence[str],
    group: str | Sequence[str],
    *,
    kind: Kind = "population",
) -> Effects:
    """Slopes of `target` on the columns `on` within the groups of declared categorical columns.

    >>> from dpgram.analysis import within
    >>> round(within(release, "charges", ["age"], "smoker").params["age"], 1)
    125.4
    """
    moments = Moments.of(release)
    groups = (group,) if isinstance(group, str) else tuple(group)
    declared = {column.name: column for column in moments.schema.columns}
    for name in groups:
        if name not in declared or not declared[name].group_levels:
            raise AnalysisError(
                f"{name!r} is not a categorical column of this release",
                remedy=f"Effects within groups need the group to be declared: categorical({name!r}, [...])",
            )
    if not on or isinstance(on, str):
        raise AnalysisError("`on` must be a list of at least one column name", got=repr(on))
    design = build_design(moments, target, (*on, *groups))
    places = tuple(
        i
        for i, term in enumerate(design.terms)
        if i and term.source not in groups and term.name not in groups
    )
    named = ", ".join(on)
    return Effects(
        target=target,
        title=f"{target} on {named} within {', '.join(groups)}",
        estimand=f"Slopes of {target} on {named} among rows of one {' and '.join(groups)}",
        assumption=None,
        names=tuple(design.names[i] for i in places),
        inference=infer(moments, design, kind),
        positions=places,
        rows=moments.rows,
        legend=Labels(moments.schema).legend((target, *on, *groups)),
    )


def did(
    release: Document | Moments,
    target: str,
    treated: str,
    after: str,
    controls: Sequence[str] = (),
    *,
    kind: Kind = "population",
) -> Effects:
    """Difference-in-differences: how much more `target` changed `after` for the `treated`.

    Both are yes/no columns, levels such as `state=NJ`, or numbers from 0 to 1, and the product of the
    columns was declared by the curator.

    >>> from dpgram.analysis import did
    >>> did(release, "charges", "smoker=yes", "age")
    Traceback (most recent call last):
        ...
    dpgram.errors.AnalysisError: this release has no product of 'smoker=yes' and 'age'...
    """
    moments = Moments.of(release)
    products = [
        name
        for column in moments.schema.columns_derived
        for name, part in zip(column.encoded_names, column.parts, strict=True)
        if set(part.factors) == {treated, after}
    ]
    if treated == after or not products:
        raise AnalysisError(
            f"this release has no product of {treated!r} and {after!r}",
            remedy=f"The curator would declare it: dg.product({_declared(moments, treated)!r}, "
            f"{_declared(moments, after)!r})",
        )
    both = products[0]
    design = build_design(moments, target, (treated, after, both, *controls))
    (place,) = (i for i, term in enumerate(design.terms) if set(term.monomial) == {treated, after})
    return Effects(
        target=target,
        title=f"Difference-in-differences of {target}: {treated} × {after}",
        estimand=f"How much more {target} changed with {after} where {treated} than elsewhere",
        assumption=PARALLEL,
        names=(design.names[place],),
        inference=infer(moments, design, kind),
        positions=(place,),
        rows=moments.rows,
        legend=Labels(moments.schema).legend((target, treated, after)),
    )


def _declared(moments: Moments, name: str) -> str:
    """The declared column of a level."""
    schema = moments.schema
    return schema.encoded[schema.indices(name)[0]].source

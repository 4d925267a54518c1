"""The number of rows, means and covariances of a release, as a program for plain data would take them.

Never the published matrix itself: solved as it stands, noise gives near-collinear columns coefficients that
mean nothing. The covariance is the denoised one (analysis/denoise.py), and

    Σ xxᵀ = n(C + m mᵀ),   x with the constant,

is positive semidefinite, as C is. Means are those of the matrix too, never of histograms: these have other
rows and weights, and an intercept from both would be that of no table. Of the levels of a categorical column,
and of its products, the reference is left out: all of them add up to one, and no program could invert their
covariance. Levels in which noisy counts show no rows to speak of are left out too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis import descriptive
from dpgram.analysis.asked import asked_columns, asked_reference
from dpgram.analysis.design import most_frequent
from dpgram.analysis.display import MISSING, guarantee_in_words
from dpgram.analysis.estimand import difference_cautions
from dpgram.analysis.moments import Moments
from dpgram.analysis.row_sets import row_sets
from dpgram.analysis.summary import noisy_weight
from dpgram.document.labels import Labels
from dpgram.document.original_units import original_columns
from dpgram.document.statement import SEEDED
from dpgram.document.terminal import one_line
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]
Vector = npt.NDArray[np.float64]

LEFT_OUT: Final = (
    "{program} takes these numbers for exact: its standard errors, tests and intervals leave the privacy "
    "noise "
    "out, so they are too small. Errors with the noise: dpgram in Python, dp_lm() in R, or the explorer's "
    "page."
)
DRAWN_TOWARDS_ZERO: Final = (
    "Covariances are denoised: positive semidefinite, of least expected squared error, drawn towards zero "
    "where "
    "the noise is large."
)
LONGEST_NAME: Final = 32


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SummaryStatistics:
    """What the files of all programs are made of, in original units."""

    names: tuple[str, ...]
    """As in the release: `age`, `smoker=yes`, `age:bmi`."""
    labels: tuple[str, ...]
    """The curator's words for them, or the names."""
    rows: float
    """The noisy number of rows; under a clip, weights or persons what they count together."""
    counted: str
    """What that number is, in words."""
    means: Vector
    """Of the same rows, with the same weights, as the covariance."""
    covariance: Matrix
    about_rows: tuple[str, ...]
    """Of which rows all this is, and how they count; one sentence each."""
    few_words: str
    """The same where there is room for forty letters."""
    references: Mapping[str, str]
    """Categorical column → the level that was left out."""
    empty: tuple[str, ...]
    """Levels that were left out because noisy counts show no rows to speak of."""
    digest: str
    guarantee: str
    seeded: bool
    """Whether whoever knows the seed can remove the noise."""

    @property
    def observations(self) -> int:
        """The number of rows as programs want it: whole, and two at least."""
        return max(round(self.rows), 2)

    @property
    def sums(self) -> Matrix:
        """n(C + m mᵀ) with the constant first: sums of squares and products."""
        means = np.append(1.0, self.means)
        products = np.outer(means, means)
        products[1:, 1:] += self.covariance
        return np.asarray(self.observations * products)

    def header(self, program: str) -> tuple[str, ...]:
        """What whoever opens the file must know, line by line."""
        lines = [
            "Second moments from a differentially private release of dpgram",
            f"SHA-256 of the release: {self.digest}",
            self.guarantee,
            *([SEEDED] if self.seeded else []),
            LEFT_OUT.format(program=program),
            DRAWN_TOWARDS_ZERO,
            f"Rows: {self.rows:.1f} ({self.counted})",
            *self.about_rows,
        ]
        lines += [
            f"{name}: {level!r} is the reference and left out" for name, level in self.references.items()
        ]
        if self.empty:
            lines.append(f"Left out, as noisy counts show no rows to speak of: {', '.join(self.empty)}")
        return tuple(one_line(" ".join(line.split())) for line in lines)

    def short_names(self, longest: int = LONGEST_NAME) -> tuple[str, ...]:
        """Letters, digits and underscores, as programs allow, each name once.

        >>> from dpgram.exports import summary_statistics
        >>> summary_statistics(release).short_names(8)
        ('age', 'smoker_y', 'charges')
        """
        found: list[str] = []
        for name in self.names:
            plain = "".join(c if c.isascii() and c.isalnum() else "_" for c in name) or "x"
            plain = plain if plain[0].isalpha() else f"x{plain}"
            own, number = plain[:longest], 1
            while own.lower() in {other.lower() for other in found}:
                number += 1
                own = f"{plain[: longest - len(str(number))]}{number}"
            found.append(own)
        return tuple(found)


def summary_statistics(
    release: Document, on: Sequence[str] | None = None, *, reference: Mapping[str, str] | None = None
) -> SummaryStatistics:
    """Of the columns `on` (all by default); `reference` names the level to leave out of categorical ones."""
    moments, schema = Moments.of(release), release.schema
    covariance = descriptive.covariance(release)
    means = descriptive.matrix_mean(release)
    places = list(range(1, schema.width))
    if on is not None:
        places = list(dict.fromkeys(i for name in asked_columns(schema, on) for i in schema.indices(name)))
    if 0 in places:
        raise AnalysisError("the constant column is not exported", remedy="Leave it out of `on`")
    references = _references(moments, asked_reference(schema, reference))
    gone = {f"{name}={level}" for name, level in references.items()} | moments.empty_levels
    factors = {
        name: set(part.factors)
        for column in schema.columns_derived
        for name, part in zip(column.encoded_names, column.parts, strict=True)
    }
    encoded = [column.name for column in schema.encoded]
    kept = [i for i in places if encoded[i] not in gone and not gone & factors.get(encoded[i], set())]
    if not kept:
        raise AnalysisError("no columns are left to export", remedy="Name others in `on`")
    names = [column.name for column in original_columns(schema)]
    words = Labels(schema)
    inside = [i - 1 for i in kept]
    used = {schema.encoded[i].source for i in places}
    return SummaryStatistics(
        names=tuple(names[i] for i in kept),
        labels=tuple(one_line(words[encoded[i]] if names[i] == encoded[i] else names[i]) for i in kept),
        rows=float(moments.rows or 0.0),
        counted=_counted(moments),
        means=np.array([means[names[i]] for i in kept]),
        covariance=covariance[np.ix_(inside, inside)],
        about_rows=_about_rows(release, moments),
        few_words=_few_words(moments),
        references={name: level for name, level in references.items() if name in used},
        empty=tuple(name for name in encoded if name in moments.empty_levels),
        digest=release.digest,
        guarantee=guarantee_in_words(release),
        seeded=release.entropy == "seeded",
    )


def _counted(moments: Moments) -> str:
    if moments.survey_weight is None:
        return noisy_weight(moments)
    return f"noisy; sum of {moments.survey_weight!r}, in multiples of {moments.count_scale:g}"


def _about_rows(release: Document, moments: Moments) -> tuple[str, ...]:
    apart = row_sets(release, moments)
    cautions = [*([] if apart is None else [apart.of_matrix])]
    cautions += difference_cautions(moments, "table", refused=True)
    return (
        f"N, means and covariances are of the same rows: {MISSING[release.policy.missing]}",
        *(f"Caution: {caution}" for caution in cautions),
    )


def _few_words(moments: Moments) -> str:
    rows = "complete rows alone" if moments.complete_groups else "gaps as midpoints"
    return rows if moments.least_squares else f"{rows}; far ones count less"


def _references(moments: Moments, asked: Mapping[str, str]) -> dict[str, str]:
    groups = {column.name: column for column in moments.schema.columns if column.group_levels}
    for name, level in asked.items():
        if name not in groups:
            raise AnalysisError(f"{name!r} has no reference level: it is not a categorical column")
        if level not in groups[name].group_levels:
            raise AnalysisError(
                f"{name!r} has no level {level!r}", limit=", ".join(groups[name].group_levels[:20])
            )
    return {name: asked[name] if name in asked else most_frequent(moments, name) for name in groups}

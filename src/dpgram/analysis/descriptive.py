"""Counts, means and covariances: what the private matrix says about the columns one by one.

Post-processing of a release: it costs no privacy and never sees a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from dpgram.analysis.asked import asked_columns
from dpgram.analysis.histograms import histograms, of_the_same_rows
from dpgram.document.measurements import histogram_rows
from dpgram.document.original_units import change_of_units, in_original_units, original_columns, symmetric
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.analysis.labelled import LabelledMatrix
    from dpgram.analysis.moments import Moments
    from dpgram.document.document import Document

Matrix = npt.NDArray[np.float64]


def count(release: Document) -> float:
    """The noisy number of rows: from histograms of them where there are some, which a clip does not touch.

    These have rows with missing cells too, which are in no regression (row_sets.py).
    Otherwise vᵀGv for the v with v·a = 1 in every row, times what a weight of 1 means.
    """
    measured = of_the_same_rows(release)
    if measured is not None:
        return histogram_rows(measured) * release.count_scale
    rows = _moments(release).rows
    if rows is None:
        raise AnalysisError(
            "this release has no constant column, so it has no counts or means",
            remedy="Publish with constant=True",
        )
    return rows * release.count_scale


def mean(release: Document) -> dict[str, float]:
    """In original units, for every column but the constant: from histograms of all rows read, or G₀ⱼ / G₀₀.

    Columns that are computed from others have no histogram of their own; products and powers are as they are.
    """
    found = matrix_mean(release)
    own = {} if of_the_same_rows(release) is None else histograms(release)
    for name, histogram in own.items():
        column = release.schema.column(name)
        if histogram.numbers:
            found[name] = histogram.mean().estimate
        elif column.group_levels:
            found |= {
                encoded: histogram.share(str(level)).estimate
                for encoded, level in zip(column.encoded_names, histogram.values, strict=True)
            }
        else:
            found[name] = histogram.share("true").estimate
    return found


def matrix_mean(release: Document) -> dict[str, float]:
    """G₀ⱼ / G₀₀ in original units: of the rows, and by the weights, that covariances and regressions have."""
    gram = in_original_units(release.schema, _gram_with_rows(release))
    names = [column.name for column in original_columns(release.schema)[1:]]
    return dict(zip(names, (gram[0, 1:] / gram[0, 0]).tolist(), strict=True))


def covariance(release: Document) -> Matrix:
    """G/n − m mᵀ in original units, at the least expected squared error; columns as in `release.columns[1:]`.

    The noise is taken out in encoded units (analysis/denoise.py), where it is the same in every direction.
    """
    from dpgram.analysis.denoise import central_moments

    _gram_with_rows(release)
    spread = central_moments(_moments(release))
    change = change_of_units(release.schema)[1:, 1:]
    return symmetric(change @ spread @ change.T)


def labelled_covariance(release: Document, on: Sequence[str] | None, *, psd: bool) -> LabelledMatrix:
    """`covariance`, or without `psd` the unbiased one, of the columns asked for, with their names."""
    from dpgram.analysis.estimand import difference_cautions, moved_cautions
    from dpgram.analysis.labelled import LabelledMatrix

    whole = covariance(release) if psd else _unbiased_covariance(release)
    schema, names = release.schema, release.columns[1:]
    places = list(range(len(names)))
    if on is not None:
        places = [i - 1 for name in asked_columns(schema, on) for i in schema.indices(name)]
    if -1 in places:
        raise AnalysisError("the constant column has no covariances")
    moments, sources = _moments(release), [schema.encoded[i + 1].source for i in places]
    cautions = (
        *difference_cautions(moments, "table", refused=True, of="covariances"),
        *moved_cautions(moments, sources, "covariances", refused=True),
    )
    return LabelledMatrix(tuple(names[i] for i in places), whole[np.ix_(places, places)], cautions)


def _unbiased_covariance(release: Document) -> Matrix:
    """Sums of squares and products around the means, over the number of rows, in original units."""
    from dpgram.analysis.forms import residuals

    _gram_with_rows(release)
    moments = _moments(release)
    constant = np.eye(release.schema.width)[:, :1]
    found = residuals(moments, constant, np.eye(release.schema.width)[:, 1:])
    centred = np.zeros((release.schema.width, release.schema.width))  # a constant does not vary
    centred[1:, 1:] = found.sums / (moments.rows or 1.0)
    return np.asarray(in_original_units(release.schema, centred)[1:, 1:])


def second_moments(release: Document) -> Matrix:
    """The exact matrix as the release tells of it, in encoded units, at the least expected squared error."""
    from dpgram.analysis.denoise import second_moments as denoised

    return denoised(_moments(release))


def deviations(release: Document) -> npt.NDArray[np.float64]:
    """The standard deviation of every column but the constant in original units, from the noisy variances."""
    change = change_of_units(release.schema)[1:, 1:]
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", change @ _encoded_covariance(release), change)))


def _encoded_covariance(release: Document) -> Matrix:
    """Negative eigenvalues are noise (a covariance has none), so they are set to zero, in encoded units.

    There the noise is the same in every direction; in original units a column of dollars would drown one of
    years.
    """
    gram = _gram_with_rows(release)
    rows = gram[0, 0] / release.schema.encoded[0].weight ** 2
    centred = (gram[1:, 1:] - np.outer(gram[0, 1:], gram[0, 1:]) / gram[0, 0]) / rows
    values, vectors = np.linalg.eigh(centred)
    repaired: Matrix = (vectors * np.maximum(values, 0.0)) @ vectors.T
    return symmetric(repaired)


def _moments(release: Document) -> Moments:
    from dpgram.analysis.moments import Moments

    return Moments.of(release)


def _gram_with_rows(release: Document) -> Matrix:
    """The matrix without the noise that public facts can remove; it must hold a positive count."""
    if not release.schema.constant:
        raise AnalysisError(
            "this release has no constant column, so it has no means", remedy="Publish with constant=True"
        )
    gram = _moments(release).encoded_gram
    if gram[0, 0] <= 0:
        raise AnalysisError(
            "the noise is larger than the whole table: the noisy matrix has no positive number of rows",
            remedy="Publish more rows, fewer columns, or with a larger epsilon",
        )
    return gram

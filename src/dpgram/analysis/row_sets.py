"""Whether the histograms and the matrix of a release are about the same rows.

Every row that was read is in the histograms, by those of its cells that can be used; the matrix has the rows
in which no cell is missing. Both tell their number with noise, the matrix that of rows times 1 − (the part of
all weight that the clip took). Where the numbers differ by clearly more than their noise, counts, shares and
means are of other rows than deviations and regressions, and this must be said.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.forms import in_noise_coordinates, noise_covariance, symmetric_product
from dpgram.analysis.histograms import histogram_count, of_the_same_rows
from dpgram.analysis.moments import Moments

if TYPE_CHECKING:
    from dpgram.document.document import Document

Vector = npt.NDArray[np.float64]

CLEARLY: Final = 4.0
"""Deviations of the noise by which both numbers must differ."""
MATERIAL: Final = 0.01
"""The part of all rows that must be missing in the matrix: fewer change little."""
WIDTH_OF_BIN: Final = 1.0 / 16.0
"""Of the weights of clipped rows, as they are counted: within half of it they are known."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowSets:
    """Two numbers of rows that clearly differ; as `count()` gives them, so of units or of weights too."""

    read: float
    complete: float

    @property
    def caution(self) -> str:
        return (
            f"counts, shares and means are of all rows that were read (about {self.read:,.0f}), each column "
            "by the cells that could be used; deviations, correlations and regressions are of those in which "
            f"no cell is missing (about {self.complete:,.0f})"
        )

    @property
    def of_matrix(self) -> str:
        """The same where every number comes from the matrix."""
        return (
            f"about {self.complete:,.0f} of the rows have no missing cell, of about {self.read:,.0f} that "
            "were read: counts, shares and means of the release itself are of all these, and differ"
        )


def row_sets(release: Document, moments: Moments) -> RowSets | None:
    """The rows of the histograms and of the matrix, where answers come from both and they clearly differ."""
    constant, clip = moments.constant_vector(), moments.clip
    if of_the_same_rows(release) is None or constant is None or (moments.clipped and clip is None):
        return None
    read, read_sd = histogram_count(release)
    weight, weight_sd = matrix_count(moments, constant)
    lost, lost_sd, clipped = (0.0, 0.0, 0.0) if clip is None else (clip.lost, clip.lost_sd, clip.clipped)
    left = max(1.0 - lost, WIDTH_OF_BIN)
    complete = weight / left
    noise = math.hypot(read_sd, weight_sd / left, complete * lost_sd / left)
    doubt = CLEARLY * noise + abs(complete) * clipped * WIDTH_OF_BIN / 2.0 / left
    if read - complete <= max(doubt, MATERIAL * read):
        return None
    return RowSets(read=read * moments.count_scale, complete=max(complete, 0.0) * moments.count_scale)


def matrix_count(moments: Moments, constant: Vector) -> tuple[float, float]:
    """The number of rows as the matrix tells it, and the deviation of its noise."""
    one = in_noise_coordinates(moments, constant)
    variance = noise_covariance(moments.noise, symmetric_product(one[:, None], one[:, None]))
    return moments.rows or math.nan, math.sqrt(float(variance[0, 0]))

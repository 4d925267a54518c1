"""Location and covariance of a table from one private release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, final

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from dpgram.errors import AnalysisError
from dpgram.estimators._table import floats
from dpgram.estimators.unsupervised import UnsupervisedEstimator, means_or_midpoints
from dpgram.release import Release

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCovariance(UnsupervisedEstimator):
    """(ε, δ)-private mean and covariance in original units: `location_`, `covariance_`, `precision_`.

    The covariance has no negative eigenvalue; directions that noise left at zero have no precision
    (`precision_` is a pseudo-inverse). `bounds` are (low, high) from public knowledge, each end one number or
    one number for each feature; or give a `schema` of numeric columns. Where noise hides even the number of
    rows, the location is the middle of the bounds, the covariance is zero, and `refusal_` says why.
    """

    covariance_: Matrix = field(init=False)
    location_: Vector = field(init=False)
    precision_: Matrix = field(init=False)

    def _take(self, release: Release, features: tuple[str, ...]) -> None:
        self.location_, self.refusal_ = means_or_midpoints(release, features)
        try:
            self.covariance_ = np.asarray(release.covariance())
        except AnalysisError as refusal:
            self.covariance_, self.refusal_ = np.zeros((len(features), len(features))), str(refusal)
        self.precision_ = np.asarray(np.linalg.pinv(self.covariance_, hermitian=True), dtype=np.float64)

    def mahalanobis(self, X: Any) -> Vector:
        """Squared distances `d @ precision_ @ d`, `d = x − location_`, of rows the caller may look at."""
        check_is_fitted(self)
        array = floats(self, X, strict=True, finite=True, reset=False) - self.location_
        return np.asarray(np.einsum("ij,jk,ik->i", array, self.precision_, array))

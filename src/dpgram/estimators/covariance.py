"""Location and covariance of a table from one private release."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted, validate_data

from dpgram.errors import SchemaError
from dpgram.estimators.base import PublishingEstimator
from dpgram.release import Release
from dpgram.schema import Numeric, Schema

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateCovariance(PublishingEstimator):
    """(ε, δ)-private mean and covariance in original units: `location_`, `covariance_`, `precision_`.

    The covariance has no negative eigenvalue; directions that noise left at zero have no precision
    (`precision_` is a pseudo-inverse). `bounds` are (low, high) from public knowledge, each end one number or
    one number for each feature; or give a `schema` of numeric columns.
    """

    covariance_: Matrix = field(init=False)
    location_: Vector = field(init=False)
    precision_: Matrix = field(init=False)
    release_: Release = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Publish once; `y` is not looked at."""
        del y
        table = self._features_table(X)
        refuse_other_than_numbers(type(self).__name__, table.schema)
        self._count_fit()
        self.release_ = self._published(table)
        means = self.release_.mean()
        self.location_ = np.array([means[name] for name in table.features])
        self.covariance_ = self.release_.covariance()
        self.precision_ = np.asarray(np.linalg.pinv(self.covariance_, hermitian=True), dtype=np.float64)
        return self

    def mahalanobis(self, X: Any) -> Vector:
        """Squared distances `d @ precision_ @ d`, `d = x − location_`, of rows the caller may look at."""
        check_is_fitted(self)
        array = validate_data(self, X, dtype=np.float64, reset=False) - self.location_
        return np.asarray(np.einsum("ij,jk,ik->i", array, self.precision_, array))


def refuse_other_than_numbers(name: str, schema: Schema) -> None:
    """Levels and derived columns have no place among scikit-learn's features; a release serves them."""
    for column in schema.columns:
        # Numbers as they are, and no other kind: a column that makes something else of them is none.
        if not isinstance(column, Numeric) or column.dates:
            raise SchemaError(
                f"{name} takes numbers only",
                got=f"{column.name!r}, which is {'a date' if column.kind == Numeric.kind else column.kind}",
                remedy="Publish a release and ask it: release.pca(), release.covariance()",
            )

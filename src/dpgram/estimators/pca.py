"""Principal components of a table from one private release, as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from dpgram.analysis.descriptive import deviations
from dpgram.analysis.pca import Components
from dpgram.estimators.base import PublishingEstimator
from dpgram.estimators.covariance import refuse_other_than_numbers
from dpgram.release import Release

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@final
@dataclass(eq=False, repr=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, PublishingEstimator):
    """(ε, δ)-private principal components: `transform` gives `((x − mean_)/scale_) @ components_.T`.

    Components are those of the columns scaled to their public ranges (`scale_` is half a range), or with
    `standardise=True` to variance one. `stable_` says which components stand clear of the noise and
    `angles_` by how many degrees noise turned each, about. `bounds` are (low, high) from public knowledge,
    each end one number or one number for each feature; or give a `schema` of numeric columns.
    """

    n_components: int | None = None
    _: KW_ONLY
    epsilon: float = 1.0  # declared again: here `epsilon` and `delta` are given by name only
    delta: float = 1e-6
    standardise: bool = False

    components_: Matrix = field(init=False)
    explained_variance_: Vector = field(init=False)
    explained_variance_ratio_: Vector = field(init=False)
    mean_: Vector = field(init=False)
    scale_: Vector = field(init=False)
    stable_: npt.NDArray[np.bool_] = field(init=False)
    angles_: Vector = field(init=False)
    n_components_: int = field(init=False)
    release_: Release = field(init=False)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Publish once; `y` is not looked at."""
        del y
        table = self._features_table(X)
        refuse_other_than_numbers(type(self).__name__, table.schema)
        self._count_fit()
        self.release_ = self._published(table)
        self._take(self.release_.pca(self.n_components, standardise=self.standardise), table.features)
        return self

    def _take(self, found: Components, features: tuple[str, ...]) -> None:
        columns = [column for column in self.release_.schema.encoded if column.name in features]
        means = self.release_.mean()
        self.mean_ = np.array([means[name] for name in features])
        self.scale_ = np.array([column.half_width / column.weight for column in columns])
        if self.standardise:
            self.scale_ = deviations(self.release_)
        self.components_ = np.ascontiguousarray(found.loadings.T)
        self.explained_variance_ = found.variances
        self.explained_variance_ratio_ = found.explained
        self.stable_ = found.stable
        self.angles_ = np.degrees(np.arcsin(np.minimum(found.sines, 1.0)))
        self.n_components_ = len(found.variances)

    def transform(self, X: Any) -> Matrix:
        """Scores of rows the caller may look at. **Exact functions of those rows: not private.**"""
        check_is_fitted(self)
        array = validate_data(self, X, dtype=np.float64, ensure_all_finite=False, reset=False)
        return np.asarray(((array - self.mean_) / self.scale_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Matrix:
        """Scores back in original units."""
        check_is_fitted(self)
        return np.asarray(np.asarray(X, dtype=np.float64) @ self.components_ * self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        """How many columns `transform` has, for their names."""
        return self.n_components_

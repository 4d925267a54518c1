"""Principal components of a table from one private release, as a scikit-learn transformer."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass, field
from typing import Any, final

import numpy as np
import numpy.typing as npt
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from dpgram.analysis.descriptive import deviations
from dpgram.errors import AnalysisError
from dpgram.estimators._parameters import count_of, flag
from dpgram.estimators._table import floats, readable
from dpgram.estimators.unsupervised import UnsupervisedEstimator, means_or_midpoints
from dpgram.release import Release
from dpgram.schema import Schema

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@final
@dataclass(eq=False, repr=False)
class PrivatePCA(ClassNamePrefixFeaturesOutMixin, TransformerMixin, UnsupervisedEstimator):
    """(ε, δ)-private principal components: `transform` gives `((x − mean_)/scale_) @ components_.T`.

    Components are those of the columns scaled to their public ranges (`scale_` is half a range), or with
    `standardise=True` to variance one. `stable_` says which components stand clear of the noise and
    `angles_` by how many degrees noise turned each, about. `bounds` are (low, high) from public knowledge,
    each end one number or one number for each feature; or give a `schema` of numeric columns. Where noise
    hides them all, the components are the columns in order, scaled to their ranges, with variance zero and
    none stable, and `refusal_` says why.
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

    def _check(self, schema: Schema) -> None:
        if self.n_components is not None:
            count_of("n_components", self.n_components, least=1, most=len(schema.columns))
        flag("standardise", self.standardise)

    def _take(self, release: Release, features: tuple[str, ...]) -> None:
        columns = [column for column in release.schema.encoded if column.name in features]
        self.mean_, self.refusal_ = means_or_midpoints(release, features)
        self.scale_ = np.array([column.half_width / column.weight for column in columns])
        try:
            found = release.pca(self.n_components, standardise=self.standardise)
            if self.standardise:
                self.scale_ = deviations(release)
        except AnalysisError as refusal:
            self._take_nothing(str(refusal), len(features))
            return
        self.components_ = np.ascontiguousarray(found.loadings.T)
        self.explained_variance_ = found.variances
        self.explained_variance_ratio_ = found.explained
        self.stable_ = found.stable
        self.angles_ = np.degrees(np.arcsin(np.minimum(found.sines, 1.0)))
        self.n_components_ = len(found.variances)

    def _take_nothing(self, refusal: str, width: int) -> None:
        """What is left where noise hides all components: the columns themselves, in order."""
        self.refusal_ = refusal
        self.n_components_ = count = width if self.n_components is None else self.n_components
        self.components_ = np.eye(width)[:count]
        self.explained_variance_, self.explained_variance_ratio_ = np.zeros(count), np.zeros(count)
        self.stable_, self.angles_ = np.zeros(count, dtype=np.bool_), np.full(count, 90.0)

    def transform(self, X: Any) -> Matrix:
        """Scores of rows the caller may look at. **Exact functions of those rows: not private.**"""
        check_is_fitted(self)
        array = floats(self, X, strict=True, reset=False)
        return np.asarray(((array - self.mean_) / self.scale_) @ self.components_.T)

    def inverse_transform(self, X: Any) -> Matrix:
        """Scores back in original units."""
        check_is_fitted(self)
        return np.asarray(readable("X", X, strict=True) @ self.components_ * self.scale_ + self.mean_)

    @property
    def _n_features_out(self) -> int:
        """How many columns `transform` has, for their names."""
        return self.n_components_

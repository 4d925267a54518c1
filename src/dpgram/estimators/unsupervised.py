"""One release of numeric features, without a target, and what is computed from it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, Self, final

import numpy as np
from sklearn.utils.validation import validate_data

from dpgram.errors import AnalysisError, SchemaError
from dpgram.estimators._table import Table, Vector, columns_by_name, features_schema
from dpgram.estimators.base import PublishingEstimator
from dpgram.release import Release
from dpgram.schema import Numeric, Schema


@dataclass(eq=False, repr=False, kw_only=True)
class UnsupervisedEstimator(PublishingEstimator, ABC):
    """`publish`, then post-processing; `release_` answers other questions for free."""

    release_: Release = field(init=False)
    refusal_: str | None = field(init=False)
    """Why noise leaves nothing to be computed from the release; None where it does not."""

    @abstractmethod
    def _take(self, release: Release, features: tuple[str, ...]) -> None:
        """Set what is computed from the release."""

    def _check(self, schema: Schema) -> None:
        """Refuse what could not be computed from the release, before there is one."""

    @final
    def fit(self, X: Any, y: Any = None) -> Self:
        """Publish once; `y` is not looked at."""
        del y
        table = self._table(X)
        _refuse_other_than_numbers(type(self).__name__, table.schema)
        if not table.schema.constant:
            raise SchemaError(
                f"{type(self).__name__} needs the constant column, which counts the rows",
                got="constant=False",
                remedy="Leave constant=False out of the schema",
            )
        self._check(table.schema)
        self._count_fit()
        self.release_ = self._published(table)
        self._take(self.release_, table.features)
        return self

    @final
    def _table(self, X: Any) -> Table:
        """Validated X."""
        if self.schema is not None:
            validate_data(self, X, skip_check_array=True)
            schema = self._checked_schema()
            names = schema.source_columns
            return Table(data=columns_by_name(X, names), schema=schema, features=names, target=None)
        if self.bounds is None:
            raise self._unbounded("bounds")
        array, names = self._array(X)
        schema = features_schema(names, self.bounds, None, constant=True)
        return Table(data=array, schema=schema, features=names, target=None)


def means_or_midpoints(release: Release, features: tuple[str, ...]) -> tuple[Vector, str | None]:
    """The means; the middles of the bounds, with the reason, where noise hides the number of rows."""
    try:
        means = release.mean()
    except AnalysisError as refusal:
        columns = [column for column in release.schema.encoded if column.name in features]
        return np.array([column.centre for column in columns]), str(refusal)
    return np.array([means[name] for name in features]), None


def _refuse_other_than_numbers(name: str, schema: Schema) -> None:
    """Levels and derived columns have no place among scikit-learn's features; a release serves them."""
    for column in schema.columns:
        # Numbers as they are, and no other kind: a column that makes something else of them is none.
        if not isinstance(column, Numeric) or column.dates:
            raise SchemaError(
                f"{name} takes numbers only",
                got=f"{column.name!r}, which is {'a date' if column.kind == Numeric.kind else column.kind}",
                remedy="Publish a release and ask it: release.pca(), release.covariance()",
            )

"""One release, one regression: least squares and the lasso from rows to coefficients in a single call."""

from __future__ import annotations

from abc import ABC
from dataclasses import dataclass, field
from typing import Any, Literal, Self, final

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from dpgram.analysis.design import INTERCEPT
from dpgram.analysis.moments import Moments
from dpgram.analysis.regress import Method, check_alpha, regress
from dpgram.analysis.results import Regression
from dpgram.errors import AnalysisError, SchemaError
from dpgram.estimators._parameters import flag
from dpgram.estimators._table import (
    Learn,
    Pair,
    Table,
    columns_by_name,
    features_schema,
    target_name,
    with_target,
)
from dpgram.estimators.base import PrivateRegressor, PublishingEstimator, refuse_learnt_units
from dpgram.release import Release
from dpgram.schema import Schema

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

LEVEL = 0.95
"""The level of `conf_int_`."""


@dataclass(eq=False, repr=False, kw_only=True)
class RegressionEstimator(PrivateRegressor, PublishingEstimator, ABC):
    """What follows once the regression is there: coefficients, intervals or why not, predictions."""

    target: str | None = None
    target_bounds: Pair | Learn | None = None
    fit_intercept: bool = True

    terms_: tuple[str, ...] = field(init=False)
    conf_int_: Matrix | None = field(init=False)
    conf_int_refusal_: str | None = field(init=False)
    conf_int_cautions_: tuple[str, ...] = field(init=False)
    _regression: Regression = field(init=False)
    _features: tuple[str, ...] = field(init=False)

    @final
    def _table(self, X: Any, y: Any) -> Table:
        """Validated X and y: `target` names y in the schema; without a schema `target_bounds` bound it."""
        self._require_target(y)
        flag("fit_intercept", self.fit_intercept)
        if self.schema is not None:
            validate_data(self, X, skip_check_array=True)
            check_consistent_length(X, y)
            schema = self._checked_schema()
            name = self._named_target(schema)
            names = tuple(column for column in schema.source_columns if column != name)
            data = with_target(columns_by_name(X, names), name, y)
            return Table(data=data, schema=schema, features=names, target=name)
        if self.bounds is None or self.target_bounds is None:
            raise self._unbounded("bounds" if self.bounds is None else "target_bounds")
        array, names = self._array(X)
        numbers = self._target_numbers(array, y)
        name = target_name(names)
        return Table(
            data=np.ascontiguousarray(np.column_stack([array, numbers])),
            schema=features_schema(
                names, self.bounds, (name, self.target_bounds), constant=bool(self.fit_intercept)
            ),
            features=names,
            target=name,
        )

    @final
    def _named_target(self, schema: Schema) -> str:
        if self.target is None or self.target not in schema.source_columns:
            raise SchemaError(
                f"{type(self).__name__} with a schema needs the target's name in it",
                got=repr(self.target),
                limit=", ".join(schema.source_columns[:20]),
                remedy="Give target='...'",
            )
        if self.fit_intercept and not schema.constant:
            raise SchemaError(
                f"{type(self).__name__} needs the constant column for an intercept",
                got="constant=False",
                remedy="Leave it out of the schema, or give fit_intercept=False",
            )
        if self.target in schema.without_levels or len(schema.column(self.target).group_levels) > 0:
            raise SchemaError(
                f"{self.target!r} is categorical and cannot be a target as a whole",
                limit="a number or a truth value",
                remedy="Give 0 and 1 for one level, in a column declared by boolean(…)",
            )
        return self.target

    @final
    def _take(self, regression: Regression, table: Table) -> Self:
        """Keep what was fitted. Coefficients are in original units, `conf_int_` belongs to them."""
        design = regression.design
        slopes = [i for i, name in enumerate(design.names) if name != INTERCEPT]
        shifts = np.array([design.terms[i].shift for i in slopes])
        self.terms_ = tuple(design.names[i] for i in slopes)
        self.coef_ = regression.values[slopes]
        self.intercept_ = float(
            regression.fitted_params.get(INTERCEPT, 0.0) + design.base - shifts @ self.coef_
        )
        self._regression, self._features = regression, table.features
        self.conf_int_, self.conf_int_refusal_ = self._intervals(slopes)
        return self

    def _intervals(self, slopes: list[int]) -> tuple[Matrix | None, str | None]:
        """95% intervals for the un-shrunken population coefficients, or the reason why there are none."""
        self.conf_int_cautions_ = ()
        try:
            found = self._regression.inference("population")
            self.conf_int_cautions_ = found.cautions
            return found.conf_int(LEVEL)[slopes], None
        except AnalysisError as refusal:
            return None, str(refusal)

    def predict(self, X: Any) -> Vector:
        """Predictions in the target's units. Post-processing: it costs nothing, whoever asks."""
        check_is_fitted(self)
        if self.schema is None:
            return super().predict(X)
        validate_data(self, X, skip_check_array=True, reset=False)
        return self._regression.predict(columns_by_name(X, self._features))


def penalised(
    release: Release | Moments, target: str, method: Method, alpha: float | None, *, intercept: bool
) -> tuple[Regression, str | None]:
    """The regression; where noise hides the number of rows, which a penalty needs, "auto", and the reason."""
    try:
        return regress(release, target, method=method, alpha=alpha, intercept=intercept), None
    except AnalysisError as refusal:
        reason = str(refusal)
    return regress(release, target, intercept=intercept), reason


@dataclass(eq=False, repr=False, kw_only=True)
class ReleaseRegressor(RegressionEstimator, ABC):
    """`publish`, then `regress`: the release stays in `release_` and answers other questions for free."""

    release_: Release = field(init=False)
    regression_: Regression = field(init=False)
    refusal_: str | None = field(init=False)
    """Why noise leaves no fit of the kind that was asked for; None where it does not."""

    @final
    def _fit(self, X: Any, y: Any, *, method: Method, alpha: float | None) -> Self:
        table = self._table(X, y)
        self._count_fit()
        self.release_ = self._published(table)
        refuse_learnt_units(self.release_)
        self.regression_, self.refusal_ = penalised(
            Moments.of(self.release_), str(table.target), method, alpha, intercept=self.fit_intercept
        )
        return self._take(self.regression_, table)


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLinearRegression(ReleaseRegressor):
    """(ε, δ)-private linear regression: `publish` and `release.regress` in one call.

    `bounds` and `target_bounds` are (low, high) from public knowledge, each end one number or one number for
    each feature; or give a `schema` that names `target` among its columns. `method` is "auto" (shrunk by what
    the noise demands; the one to use for prediction) or "ols". Values outside the bounds are clamped; rows
    with a missing value are dropped (`missing="midpoint"`: put in the middle). Without an intercept the fit
    passes through the middle of the bounds. `adaptive` is that of `publish`: with it, `bounds="learn"`,
    `target_bounds="learn"` or columns the schema leaves open are learnt privately as well. `entropy` is for
    experiments only: noise is fresh at each fit.
    """

    method: Literal["auto", "ols"] = "auto"

    def fit(self, X: Any, y: Any) -> Self:
        """Publish once and regress; sets `coef_`, `intercept_`, `conf_int_`, `guarantee_` and `release_`."""
        if self.method not in ("auto", "ols"):
            raise AnalysisError(
                "unknown method", got=repr(self.method), limit="auto, ols", remedy="Take PrivateRidge"
            )
        return self._fit(X, y, method=self.method, alpha=None)


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLasso(ReleaseRegressor):
    """(ε, δ)-private lasso: `publish` and `release.regress(method="lasso")` in one call.

    `alpha` is scikit-learn's penalty with every column scaled to [-1, 1]; None sets it at the size of the
    noise, so that a coefficient noise alone could have made is zero. Where noise hides the number of rows,
    which the penalty needs, the fit is that of `PrivateLinearRegression`, and `refusal_` says why. The other
    parameters are those of `PrivateLinearRegression`.
    """

    alpha: float | None = None

    def fit(self, X: Any, y: Any) -> Self:
        """Publish once and regress; sets `coef_`, `intercept_`, `conf_int_`, `guarantee_` and `release_`."""
        check_alpha(self.alpha)
        return self._fit(X, y, method="lasso", alpha=self.alpha)

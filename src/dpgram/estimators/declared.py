"""One release with one declared model: robust, logistic and Poisson regression in a single call.

A fit is one `publish` that declares the model; its coefficients are those of `release.regress`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Final, Self, final

import numpy as np
import numpy.typing as npt
from scipy.special import expit
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from dpgram.analysis.design import INTERCEPT, Design, build_design
from dpgram.analysis.glm import Curve, expected
from dpgram.analysis.glm_results import GeneralizedLinear, declared_model
from dpgram.analysis.moments import Moments
from dpgram.analysis.pilot import LEAST_COUNT, LEAST_SHARE, target_mean
from dpgram.analysis.prediction import design_matrix
from dpgram.analysis.regress import regress
from dpgram.errors import AnalysisError, SchemaError
from dpgram.estimators._table import (
    Table,
    cells,
    columns_by_name,
    features_schema,
    floats,
    label_cells,
    target_name,
    with_target,
)
from dpgram.estimators.base import PublishingEstimator, warn_unprotected
from dpgram.estimators.linear import LEVEL, RegressionEstimator
from dpgram.models import linear, logistic, poisson
from dpgram.models.declared import MOST_SHARE
from dpgram.release import Release
from dpgram.schema import Schema, boolean

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]

HUBER: Final = 1.5
"""Deviations of the residual, as in Huber's regression."""


@final
@dataclass(eq=False, repr=False, kw_only=True)
class RobustRegression(RegressionEstimator):
    """(ε, δ)-private linear regression that outliers move little: `publish` with a declared linear model.

    What Park and Welling (2016) do by iterations of reweighted least squares, here in one step: residuals
    are cut at `limit` deviations and rows far out in their features count less (Huber's regression with
    Mallows' weights). It begins at the fit of the matrix, and holds against few gross outliers, not against
    a tenth. `conf_int_` allows for unequal variances. `share` is the model's part of the budget. Where noise
    hides the step, the coefficients are those of `PrivateLinearRegression`. The other parameters are those
    of `PrivateLinearRegression`; bounds are public, and there is an intercept. docs/how-to/models.md
    """

    limit: float = HUBER
    share: float = MOST_SHARE

    release_: Release = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Publish once with the model; sets `coef_`, `intercept_`, `conf_int_`, `guarantee_`, `release_`."""
        _refuse_no_intercept(self.fit_intercept, type(self).__name__)
        table = self._table(X, y)
        model = linear(str(table.target), share=self.share, limit=self.limit)
        self._count_fit()
        self.release_ = self._published(table, models=[model])
        regression = regress(Moments.of(self.release_), str(table.target))
        with suppress(AnalysisError):  # columns that look constant: there are no intervals, but a fit
            found = regression.inference("population")
            regression = replace(regression, values=found.estimate) if found.robust else regression
        return self._take(regression, table)


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Fitted:
    """The coefficients that predict, with the shrinkage that noise demands, and the intervals beside them."""

    family: Curve
    design: Design
    values: Vector
    conf_int: Matrix | None
    refusal: str | None
    cautions: tuple[str, ...]

    @classmethod
    def of(cls, release: Release, target: str, family: Curve) -> Self:
        try:
            found = declared_model(release, target, family=family)
        except AnalysisError as refusal:
            return cls._constant(release, target, family, str(refusal))
        conf_int, refusal_of_ends = _ends(found)
        return cls(
            family=family,
            design=found.design,
            values=found.fitted,
            conf_int=conf_int,
            refusal=refusal_of_ends,
            cautions=found.cautions,
        )

    @classmethod
    def _constant(cls, release: Release, target: str, family: Curve, refusal: str) -> Self:
        """What is left where noise hides the model: the mean of the target, for whatever row."""
        moments = Moments.of(release)
        design = build_design(moments, target)
        values = np.zeros(len(design.names))
        try:
            mean = target_mean(moments, design)
        except AnalysisError:
            mean = 0.5
        if family == "poisson":
            values[0] = math.log(max(mean, LEAST_COUNT))
        else:
            chance = min(max(mean, LEAST_SHARE), 1.0 - LEAST_SHARE)
            values[0] = math.log(chance / (1.0 - chance))
        return cls(family=family, design=design, values=values, conf_int=None, refusal=refusal, cautions=())

    @property
    def slopes(self) -> list[int]:
        """The places of all coefficients but the intercept."""
        return [i for i, name in enumerate(self.design.names) if name != INTERCEPT]

    @property
    def terms(self) -> tuple[str, ...]:
        return tuple(self.design.names[i] for i in self.slopes)

    @property
    def intercept(self) -> float:
        """At zero of all features, in their own units."""
        shifts = np.array([self.design.terms[i].shift for i in self.slopes])
        (place,) = {*range(len(self.values))} - {*self.slopes}
        return float(self.values[place] - shifts @ self.values[self.slopes])

    def index(self, rows: Any) -> Vector:
        """β·x of rows with the columns of the schema."""
        return np.asarray(design_matrix(self.design, rows) @ self.values)


def _ends(found: GeneralizedLinear) -> tuple[Matrix | None, str | None]:
    ends = found.conf_int(LEVEL)
    kept = np.array([ends[name] for name in found.names if name != INTERCEPT])
    if not found.steps or not np.isfinite(kept).all():
        return None, "; ".join(found.cautions) or "noise hides this model"
    return kept, None


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivatePoisson(RegressionEstimator):
    """(ε, δ)-private regression of a count: `publish` with a declared Poisson model, in one call.

    `target_bounds` begin at 0 or above. `steps` are Newton steps; none: by the noisy number of rows. Each
    residual is cut at `limit` deviations; none: 6. `coef_` predicts, and is drawn in as far as its noise
    demands; `conf_int_` are 95% intervals of the coefficients without that, for counts that may vary more
    than Poisson's law has it. `share` is the model's part of the budget. The other parameters are those of
    `PrivateLinearRegression`; bounds are public, and there is an intercept. docs/how-to/models.md
    """

    share: float = MOST_SHARE
    steps: int | None = None
    limit: float | None = None

    release_: Release = field(init=False)
    _fitted: _Fitted = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Publish once with the model; sets `coef_`, `intercept_`, `conf_int_`, `guarantee_`, `release_`."""
        _refuse_no_intercept(self.fit_intercept, type(self).__name__)
        table = self._table(X, y)
        model = poisson(str(table.target), share=self.share, steps=self.steps, limit=self.limit)
        self._count_fit()
        self.release_ = self._published(table, models=[model])
        found = _Fitted.of(self.release_, str(table.target), "poisson")
        self._fitted, self._features = found, table.features
        self.terms_, self.coef_, self.intercept_ = found.terms, found.values[found.slopes], found.intercept
        self.conf_int_, self.conf_int_refusal_ = found.conf_int, found.refusal
        self.conf_int_cautions_ = found.cautions
        return self

    def predict(self, X: Any) -> Vector:
        """Expected counts. Post-processing: it costs nothing, whoever asks."""
        check_is_fitted(self)
        if self.schema is None:
            array = floats(self, X, strict=True, reset=False)
            return expected("poisson", array @ self.coef_ + self.intercept_)
        validate_data(self, X, skip_check_array=True, reset=False)
        return expected("poisson", self._fitted.index(columns_by_name(X, self._features)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.positive_only = True
        return tags


@final
@dataclass(eq=False, repr=False, kw_only=True)
class PrivateLogistic(ClassifierMixin, PublishingEstimator):
    """(ε, δ)-private logistic regression: `publish` with a declared logit, in one call.

    `classes` are the two labels, the second of which is counted as one: public, for which of them rows have
    must not be looked up. A row with another label is dropped, as one with a missing value is. With
    `schema`, `target` names a yes/no column of it. `steps` are Newton steps; none: by the noisy number of
    rows. `coef_` predicts, and is drawn in as far as its noise demands; `conf_int_` are 95% intervals of the
    coefficients without that. `share` is the model's part of the budget. The other parameters are those of
    `PrivateLinearRegression`; bounds are public. docs/how-to/models.md
    """

    classes: Sequence[Any] = (0, 1)
    target: str | None = None
    share: float = MOST_SHARE
    steps: int | None = None

    classes_: npt.NDArray[Any] = field(init=False)
    coef_: Matrix = field(init=False)
    intercept_: Vector = field(init=False)
    terms_: tuple[str, ...] = field(init=False)
    conf_int_: Matrix | None = field(init=False)
    conf_int_refusal_: str | None = field(init=False)
    conf_int_cautions_: tuple[str, ...] = field(init=False)
    release_: Release = field(init=False)
    _fitted: _Fitted = field(init=False)
    _features: tuple[str, ...] = field(init=False)

    def fit(self, X: Any, y: Any) -> Self:
        """Publish once with the model; sets `coef_`, `intercept_`, `classes_`, `conf_int_`, `release_`."""
        self._require_target(y)
        classes = self._two_classes()
        table = self._table(X, y, classes)
        model = logistic(str(table.target), share=self.share, steps=self.steps)
        self._count_fit()
        self.release_ = self._published(table, models=[model])
        found = _Fitted.of(self.release_, str(table.target), "logistic")
        self._fitted, self._features = found, table.features
        self.classes_, self.terms_ = _as_array(classes), found.terms
        self.coef_, self.intercept_ = found.values[found.slopes][None, :], np.array([found.intercept])
        self.conf_int_, self.conf_int_refusal_ = found.conf_int, found.refusal
        self.conf_int_cautions_ = found.cautions
        return self

    def _two_classes(self) -> list[Any]:
        given: Any = self.classes
        classes = list(given) if isinstance(given, Sequence | np.ndarray) else []
        if len(classes) != 2 or _same(*classes):
            raise SchemaError(
                "PrivateLogistic tells two classes apart",
                got=repr(self.classes)[:100],
                limit="classes=(no, yes), two different labels",
            )
        return classes

    def _table(self, X: Any, y: Any, classes: list[Any]) -> Table:
        """Validated X and y; a label that is neither class is a missing value."""
        labels = label_cells(y)
        no, yes = classes
        flags = [True if _same(one, yes) else False if _same(one, no) else None for one in labels]
        if self.schema is not None:
            validate_data(self, X, skip_check_array=True)
            check_consistent_length(X, labels)
            schema = self._checked_schema()
            name = self._yes_or_no(schema)
            names = tuple(column for column in schema.source_columns if column != name)
            data = with_target(columns_by_name(X, names), name, np.array(flags, dtype=object))
            return Table(data=data, schema=schema, features=names, target=name)
        if self.bounds is None:
            raise self._unbounded("bounds")
        array, names = self._array(X)
        check_consistent_length(array, labels)
        name = target_name(names)
        numbers = features_schema(names, self.bounds, None, constant=True)
        return Table(
            data={**{each: array[:, i] for i, each in enumerate(names)}, name: flags},
            schema=Schema(*numbers.columns, boolean(name)),
            features=names,
            target=name,
        )

    def _yes_or_no(self, schema: Schema) -> str:
        two_valued = [column.name for column in schema.columns if column.kind == "boolean"]
        if self.target not in two_valued:
            raise SchemaError(
                "PrivateLogistic with a schema needs the name of a yes/no column in it",
                got=repr(self.target),
                limit=", ".join(two_valued[:20]) or "no such column: declare boolean(…)",
                remedy="Give target='...'",
            )
        return str(self.target)

    def decision_function(self, X: Any) -> Vector:
        """The log-odds of the second class. Post-processing: it costs nothing, whoever asks."""
        check_is_fitted(self)
        if self.schema is None:
            array = floats(self, X, strict=True, reset=False)
            return np.asarray(array @ self.coef_[0] + self.intercept_[0])
        validate_data(self, X, skip_check_array=True, reset=False)
        return self._fitted.index(columns_by_name(X, self._features))

    def predict_proba(self, X: Any) -> Matrix:
        """The probabilities of both classes, a row for each row of X."""
        chance = expit(self.decision_function(X))
        return np.column_stack([1.0 - chance, chance])

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The likelier class of each row."""
        likelier = (self.decision_function(X) > 0.0).astype(np.intp)
        return np.asarray(self.classes_[likelier])

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """The share of right labels, computed exactly: **not private**. Warns, as rows may be sensitive."""
        warn_unprotected(type(self).__name__)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        """Two classes, and a fit of a dozen rows may be poor."""
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.classifier_tags.poor_score = True
        return tags


def _as_array(classes: list[Any]) -> npt.NDArray[Any]:
    """Both labels as they were given: of a text and a number numpy would make two texts."""
    numbers_or_flags = all(isinstance(one, int | float | np.generic) for one in classes)
    texts = all(isinstance(one, str) for one in classes)
    return np.array(classes) if numbers_or_flags or texts else cells(classes)


def _same(cell: Any, label: Any) -> bool:
    """Whether a cell is this label. Whatever stands there, it is no error: one row must not stop a fit."""
    try:
        return bool(cell == label)
    except Exception:  # noqa: BLE001  (cells may be objects of any kind)
        return False


def _refuse_no_intercept(fit_intercept: bool, name: str) -> None:
    if not fit_intercept:
        raise SchemaError(f"{name} has an intercept", got="fit_intercept=False", remedy="Leave it out")

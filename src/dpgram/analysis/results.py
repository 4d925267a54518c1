"""A fitted regression as a value: coefficients in original units, and every question one may ask of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis.design import INTERCEPT, Design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import Inference, JointTest, Reference, infer
from dpgram.analysis.moments import Moments
from dpgram.analysis.prediction import Prediction, design_matrix, predict_with_intervals
from dpgram.analysis.quality import Quantity, r_squared, residual_variance
from dpgram.analysis.repair import Policy

if TYPE_CHECKING:
    from dpgram.analysis._error_bounds import ErrorBound
    from dpgram.analysis._frames import Frame
    from dpgram.analysis.bootstrap import Bootstrap

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Regression:
    """y ~ features, fitted from a release. The fit may be shrunken; intervals are for the un-shrunken one."""

    design: Design
    moments: Moments
    method: str
    penalty: float
    """The ridge that was added in encoded units, or scikit-learn's alpha; 0 for `ols` and `auto`."""
    repair: Policy
    effective_parameters: float | None
    """For `auto`: how many coefficients the noise leaves to be fitted; all of them without noise."""
    values: Vector
    """The fitted coefficients in original units, in the order of `names`."""
    function: Vector
    """The fitted function of the encoded row."""
    cautions: tuple[str, ...] = ()

    @property
    def target(self) -> str:
        """What is predicted."""
        return self.design.target

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, the intercept first."""
        return self.design.names

    @property
    def coefficients(self) -> Mapping[str, float]:
        """Name → fitted coefficient in original units, the intercept among them."""
        return dict(zip(self.names, self.values.tolist(), strict=True))

    @property
    def intercept(self) -> float:
        """The fitted intercept; 0 without one."""
        return self.coefficients.get(INTERCEPT, 0.0)

    def predict(self, rows: object) -> Vector:
        """Predictions for new rows: a mapping or frame with the feature columns in original units.

        Where bounds were learnt, the table's values were moved into them before the fit; so are those of the
        new rows, and so is the prediction if the target's were.

        >>> fit.predict({"age": [30, 60], "smoker": ["no", "yes"]}).round()
        array([ 2067., 16854.])
        """
        learnt = self.moments.learnt_bounds
        found = np.asarray(design_matrix(self.design, rows, learnt) @ self.values + self.design.base)
        if self.target not in learnt:
            return found
        target = self.moments.schema.encoded[self.moments.schema.indices(self.target)[0]]
        reach = target.half_width
        return np.asarray(np.clip(found, target.centre - reach, target.centre + reach))

    def predict_interval(
        self, rows: object, level: float = 0.95, kind: Kind = "population", *, mean: bool = False
    ) -> Prediction:
        """Un-shrunken predictions with intervals: for a new row, or with `mean=True` for the expectation.

        >>> found = fit.predict_interval({"age": [30], "smoker": ["no"]}, mean=True)
        >>> found.lower.round(), found.upper.round()
        (array([1944.]), array([2190.]))
        """
        return predict_with_intervals(self.moments, self.design, rows, level=level, kind=kind, mean=mean)

    def inference(self, kind: Kind = "population") -> Inference:
        """Un-shrunken estimates with their covariance, or the reason why there is none.

        >>> fit.inference().estimate.round(1)
        array([-1694.6,   125.4, 11026.9])
        """
        return infer(self.moments, self.design, kind)

    def conf_int(self, level: float = 0.95, kind: Kind = "population") -> Mapping[str, tuple[float, float]]:
        """Name → interval for the un-shrunken coefficient; refuses where it would be meaningless.

        `inference(kind).meaning` says what exactly is estimated: under a clip, with a unit or learnt bounds
        it is the regression of rows so treated.

        >>> {name: (round(low), round(high)) for name, (low, high) in fit.conf_int().items()}
        {'(intercept)': (-1963, -1427), 'age': (120, 131), 'smoker=yes': (10811, 11243)}
        """
        ends = self._inference_with_warnings(kind).conf_int(level)
        return {name: (float(low), float(high)) for name, (low, high) in zip(self.names, ends, strict=True)}

    def std_errors(self, kind: Kind = "population") -> Mapping[str, float]:
        """Name → standard error of the un-shrunken coefficient.

        >>> {name: round(error, 1) for name, error in fit.std_errors().items()}
        {'(intercept)': 136.8, 'age': 2.6, 'smoker=yes': 110.4}
        """
        errors = self._inference_with_warnings(kind).std_errors
        return dict(zip(self.names, errors.tolist(), strict=True))

    def p_values(self, kind: Kind = "population", reference: Reference | None = None) -> Mapping[str, float]:
        """Name → two-sided p-value of the un-shrunken coefficient being zero.

        >>> {name: p < 0.05 for name, p in fit.p_values().items()}
        {'(intercept)': True, 'age': True, 'smoker=yes': True}
        """
        values = self._inference_with_warnings(kind).p_values(reference)
        return dict(zip(self.names, values.tolist(), strict=True))

    def joint_test(self, *names: str, kind: Kind = "population") -> JointTest:
        """Wald test that all coefficients of the named columns are zero (all levels of a categorical one).

        >>> fit.joint_test("age", "smoker").p_value < 0.05
        True
        """
        positions = tuple(dict.fromkeys(i for name in names for i in self.design.positions(name)))
        return self._inference_with_warnings(kind).joint_test(positions)

    def r_squared(self, kind: Kind = "population") -> Quantity:
        """1 − residual/total sum of squares of the un-shrunken regression, with its standard error.

        >>> print(fit.r_squared())
        R² = 0.6652 (standard error 0.017)
        """
        return r_squared(self.moments, self.design, kind)

    def residual_variance(self, kind: Kind = "population") -> Quantity:
        """s² of the un-shrunken regression in original units; an interval for `kind="table"` only.

        >>> print(fit.residual_variance())
        residual variance = 1.037e+07 (standard error 7.1e+05)
        """
        return residual_variance(self.moments, self.design, kind)

    def bootstrap(self, draws: int = 400, kind: Kind = "population", seed: int = 0) -> Bootstrap:
        """Parametric bootstrap of the un-shrunken coefficients under the release's own noise law.

        >>> fit.bootstrap(draws=50).std_errors.round()
        array([128.,   3., 108.])
        """
        from dpgram.analysis.bootstrap import bootstrap

        return bootstrap(self.moments, self.design, draws=draws, kind=kind, seed=seed)

    def error_bound(self, confidence: float = 0.95, ridge: float | None = None) -> ErrorBound:
        """How far noise can have moved a ridge fit of the table; the ridge is E‖N‖ unless given.

        >>> found = fit.error_bound()
        >>> round(found.norm, 2), round(found.amin, 2)
        (0.59, 0.01)
        """
        from dpgram.analysis._error_bounds import error_bound

        return error_bound(self.moments, self.design, ridge=ridge, confidence=confidence)

    def summary(self, level: float = 0.95, kind: Kind = "population") -> str:
        """Coefficients, intervals, fit and warnings as text.

        >>> print(fit.summary())
        Regression of charges from a private release
        <BLANKLINE>
        fitted by  auto, the noise leaves 3.0 of 3 parameters to be fitted
        rows       about 20,016 (noisy)
        R²         0.665 (95% interval 0.633 to 0.700)
        error sd   3220
        smoker     compared with 'no'
        <BLANKLINE>
                      fitted  un-shrunken  std. error  95% from       to  p-value
        (intercept)  -1693.5      -1694.6         137   -1963.1  -1426.8   <1e-16
        age           125.36       125.38        2.62    120.24   130.53   <1e-16
        smoker=yes     11026        11027         110     10811    11243   <1e-16
        <BLANKLINE>
        The 95% intervals are for the un-shrunken regression in the population (sampling and privacy
        noise). They are centred at the un-shrunken estimate; the fitted column is the one to predict
        with. Intervals for the population take the error variance to be the same for all rows.
        """
        from dpgram.analysis.summary import as_text

        return as_text(self, level=level, kind=kind)

    def _repr_html_(self) -> str:
        from dpgram.analysis.summary import as_html

        return as_html(self)

    def __str__(self) -> str:
        return self.summary()

    def to_frame(self, level: float = 0.95, kind: Kind = "population") -> Frame:
        """A frame with a row for each coefficient; interval columns are null where refused.

        A Polars frame where Polars is installed, else one of pandas.

        >>> fit.to_frame().columns
        ['name', 'fitted', 'estimate', 'std_error', 'low', 'high', 'p_value']
        """
        from dpgram.analysis._frames import frame_of
        from dpgram.analysis.summary import as_rows

        rows = as_rows(self, level=level, kind=kind)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return frame_of(columns, numbers=[name for name in columns if name != "name"])

    def plot(
        self, path: str | None = None, level: float = 0.95, kind: Kind = "population", *, dark: bool = False
    ) -> object:
        """Coefficients with intervals as a matplotlib figure; written to `path` when given.

        >>> figure = fit.plot("coefficients.png")
        """
        from dpgram.analysis.plots import coefficient_plot

        return coefficient_plot(self, path=path, level=level, kind=kind, dark=dark)

    def _inference_with_warnings(self, kind: Kind) -> Inference:
        from dpgram.analysis._warn import warn_each

        found = self.inference(kind)
        if found.refusal is None:
            warn_each(found.cautions)
        return found

"""A fitted regression as a value: the answers under the names that statsmodels gives them.

`params` and all that goes with it (`bse`, `pvalues`, `conf_int`, tests, predictions with intervals) belong to
the un-shrunken estimate. `fitted_params` are those of the method, shrunken as far as it shrinks: `predict`
uses them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, final

import numpy as np
import numpy.typing as npt

from dpgram.analysis._hypotheses import Asked, hypotheses
from dpgram.analysis.asked import check_level
from dpgram.analysis.contrasts import Contrast, contrast, marginal_effects, standardised, variance_inflation
from dpgram.analysis.design import INTERCEPT, Design
from dpgram.analysis.estimand import Kind
from dpgram.analysis.inference import Inference, WaldTest, check_kind, infer
from dpgram.analysis.labelled import LabelledMatrix, LabelledVector
from dpgram.analysis.moments import Moments
from dpgram.analysis.prediction import (
    Prediction,
    design_matrix,
    predict_with_intervals,
    refusals_of,
    warn_of,
)
from dpgram.analysis.quality import SIGNAL_TO_NOISE, Quantity, r_squared, residual_variance
from dpgram.analysis.repair import Policy
from dpgram.document.terminal import one_line
from dpgram.errors import AnalysisError

if TYPE_CHECKING:
    from dpgram.analysis._error_bounds import ErrorBound
    from dpgram.analysis._frames import Frame
    from dpgram.analysis.bootstrap import Bootstrap

Vector = npt.NDArray[np.float64]
Matrix = npt.NDArray[np.float64]


@final
@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Regression:
    """y ~ features, fitted from a release. The fit may be shrunken; `params` and intervals are not.

    Without slots, so that what is asked for twice is computed once.
    """

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
    penalty_by_noise: bool = False
    """Whether each column has a penalty of its own, by its noise; `penalty` is the typical one."""
    kind: Kind = "population"
    """What errors and intervals are for, unless a question says otherwise."""

    @property
    def target(self) -> str:
        """What is predicted."""
        return self.design.target

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coefficients, the intercept first."""
        return self.design.names

    @property
    def fitted_params(self) -> LabelledVector:
        """Name → coefficient as the method fitted it: the one to predict with, and what `predict` uses."""
        return LabelledVector(self.names, self.values)

    @property
    def params(self) -> LabelledVector:
        """Name → un-shrunken coefficient: the one to reason with. NaN where the noise leaves no interval."""
        found = self._told(None)
        return LabelledVector(self.names, np.where(found.bounded(), found.estimate, np.nan))

    @property
    def bse(self) -> LabelledVector:
        """Name → standard error of `params`: sampling error and privacy noise."""
        return LabelledVector(self.names, self._told(None).std_errors)

    @property
    def tvalues(self) -> LabelledVector:
        """Name → estimate over its standard error, that under the hypothesis of zero."""
        found = self._told(None)
        return LabelledVector(self.names, np.where(found.bounded(), found.ratios(), np.nan))

    @property
    def pvalues(self) -> LabelledVector:
        """Name → two-sided p-value of the un-shrunken coefficient being zero."""
        return LabelledVector(self.names, self._told(None).p_values())

    def conf_int(self, level: float = 0.95, kind: Kind | None = None) -> Mapping[str, tuple[float, float]]:
        """Name → interval for the un-shrunken coefficient; refuses where it would be meaningless.

        `inference(kind).meaning` says what exactly is estimated: under a clip, with a unit or learnt bounds
        it is the regression of rows so treated.

        >>> {name: (round(low), round(high)) for name, (low, high) in fit.conf_int().items()}
        {'(intercept)': (-1963, -1427), 'age': (120, 131), 'smoker=yes': (10811, 11243)}
        """
        check_level(level)
        if level < 0.5:
            raise AnalysisError(
                "an interval is asked for by its level",
                got=level,
                limit="0.5 to 1",
                remedy=f"For alpha = {level:g} write conf_int({1 - level:g}).",
            )
        ends = self._told(kind).conf_int(level)
        return {name: (float(low), float(high)) for name, (low, high) in zip(self.names, ends, strict=True)}

    def cov_params(self, kind: Kind | None = None) -> LabelledMatrix:
        """The covariance of `params`; NaN where a coefficient has no interval.

        >>> round(fit.cov_params()["age", "smoker=yes"], 1)
        49.2
        """
        found = self._told(kind)
        found.check()
        clear = found.bounded()
        return LabelledMatrix(self.names, np.where(np.outer(clear, clear), found.covariance, np.nan))

    @property
    def nobs(self) -> float:
        """The noisy number of rows; of units or of weight where rows count by these."""
        rows = self.moments.rows
        if rows is None:
            raise AnalysisError("the number of rows is unknown: this release has no constant column")
        return rows

    @property
    def df_model(self) -> float:
        """Number of coefficients besides the intercept."""
        return float(len(self.names) - self.design.intercept)

    @property
    def df_resid(self) -> float:
        """Rows less coefficients."""
        return self.nobs - len(self.names)

    @property
    def rsquared(self) -> float:
        """R² of the un-shrunken regression; `rsquared_estimate` has its error."""
        return self.rsquared_estimate().estimate

    @property
    def fitted_rsquared(self) -> float:
        """R² of `fitted_params`, noisy and without an interval; NaN where noise hides the target's variance.

        >>> bool(release.regress("charges", method="lasso").fitted_rsquared < fit.rsquared)
        True
        """
        moments, design = self.moments, self.design
        target = moments.project(design.target_vector)
        left = target - self.function
        if design.intercept:
            one = moments.project(design.vectors[:, 0])
            target = target - one * float(one @ moments.consistent_gram @ target) / self.nobs
        whole = float(target @ moments.consistent_gram @ target)
        if whole <= SIGNAL_TO_NOISE * moments.noise.diagonal_sd * float(target @ target):
            return float("nan")
        share = 1.0 - float(left @ moments.consistent_gram @ left) / whole
        return float(np.clip(round(share, 12), 0.0, 1.0))  # what rounding alone leaves is no R²

    @property
    def rsquared_adj(self) -> float:
        """1 − (1 − R²)·(n − 1)/(n − k), without an intercept n/(n − k)."""
        return 1.0 - (1.0 - self.rsquared) * (self.nobs - self.design.intercept) / self.df_resid

    @property
    def scale(self) -> float:
        """s², the variance of the errors; `residual_variance` has its own error."""
        return self.residual_variance().estimate

    @property
    def fvalue(self) -> float:
        """F of all coefficients but the intercept being zero."""
        return self._all_zero().statistic

    @property
    def f_pvalue(self) -> float:
        """p-value of `fvalue`."""
        return self._all_zero().pvalue

    def _all_zero(self) -> WaldTest:
        places = [i for i, term in enumerate(self.design.terms) if term.source != INTERCEPT]
        found = self._told(None)
        return found.combined(
            np.eye(len(self.names))[places], tuple(self.names[i] for i in places)
        ).wald_test()

    def t_test(self, hypothesis: Asked, kind: Kind | None = None) -> Contrast:
        """Each hypothesis by itself: "a - b = 0", several in a list or between commas, or a matrix.

        >>> print(fit.t_test("smoker=yes = 100 * age"))
        Contrasts
                                estimate  std. error      t  95% from       to  p-value
        smoker=yes = 100 * age   -1510.9         267  -5.67   -2034.1  -988.13  1.4e-08
        """
        return contrast(self._told(kind), self.design, hypothesis)

    def f_test(self, hypothesis: Asked, kind: Kind | None = None) -> WaldTest:
        """All hypotheses together, by F; a name of a column asks whether all its coefficients are zero.

        >>> print(fit.f_test("age = 125, smoker=yes = 11000"))
        age = 125; smoker=yes = 11000: F(2, 20013) = 0.03517, p = 0.97
        """
        return self.wald_test(hypothesis, kind)

    def wald_test(self, hypothesis: Asked, kind: Kind | None = None, *, use_f: bool = True) -> WaldTest:
        """All hypotheses together: by F, or by χ² (always for the table, whose noise has a known law).

        >>> fit.wald_test(["age", "smoker"], use_f=False).df_num
        2
        """
        inference = self._told(kind)
        sources = {term.source for term in self.design.terms}
        if isinstance(hypothesis, str) and hypothesis in sources | set(map(self.design.called, sources)):
            hypothesis = [hypothesis]
        if isinstance(hypothesis, list | tuple) and all(isinstance(text, str) for text in hypothesis):
            hypothesis = [text for asked in hypothesis for text in self._spelt_out(str(asked))]
        found = hypotheses(self.design, hypothesis)
        return inference.combined(found.matrix, found.texts, found.values).wald_test(
            found.texts, chi2=not use_f
        )

    def _spelt_out(self, asked: str) -> list[str]:
        """A column's name as one hypothesis for each of its coefficients; other texts as they are."""
        named = [
            term.name
            for term in self.design.terms
            if asked in (term.name, term.source) or asked == self.design.called(term.source)
        ]
        return [f"`{name}` = 0" for name in named] or [asked]

    def wald_test_terms(self, kind: Kind | None = None) -> Mapping[str, WaldTest]:
        """Column → the test that all its coefficients are zero, given the other columns.

        >>> {name: test.pvalue < 0.05 for name, test in fit.wald_test_terms().items()}
        {'age': True, 'smoker': True}
        """
        sources = dict.fromkeys(term.source for term in self.design.terms if term.source != INTERCEPT)
        return {self.design.called(name): self.wald_test([name], kind) for name in sources}

    def compare_f_test(self, restricted: Regression, kind: Kind | None = None) -> WaldTest:
        """Whether the smaller regression `restricted` of the same target would do as well.

        >>> smaller = release.regress("charges", ["age"])
        >>> fit.compare_f_test(smaller).pvalue < 0.05
        True
        """
        left = [name for name in restricted.names if name not in self.names]
        if left or restricted.target != self.target or restricted.moments.schema != self.moments.schema:
            raise AnalysisError(
                "the smaller regression is not nested in this one",
                got=", ".join(left) or f"target {restricted.target!r}",
                remedy="Fit both to the same target and reference levels; it may only leave out columns.",
            )
        extra = [name for name in self.names if name not in restricted.names]
        if not extra:
            raise AnalysisError("the two regressions have the same coefficients")
        return self.wald_test([f"`{name}` = 0" for name in extra], kind)

    def get_prediction(self, rows: object, kind: Kind | None = None) -> Prediction:
        """Un-shrunken predictions for new rows, with intervals for the expectation and for observations.

        >>> found = fit.get_prediction({"age": [30], "smoker": ["no"]})
        >>> found.predicted_mean.round(), found.conf_int(obs=True).round()
        (array([2067.]), array([[-4246.,  8380.]]))
        """
        found = predict_with_intervals(self.moments, self.design, self._told(kind), rows)
        warn_of(found.refusals)
        return found

    def marginal_effects(self, at: Mapping[str, object] | None = None, kind: Kind | None = None) -> Contrast:
        """The effect of each column on the target: its slope at the means, or at what `at` says.

        With products and powers the slope depends on the other columns; levels are told against the
        reference. The noisy means are taken as they stand.

        >>> print(fit.marginal_effects())
        Marginal effects
                    estimate  std. error     t  95% from      to  p-value
        age           125.38        2.62  48.2    120.24  130.53   <1e-16
        smoker=yes     11027         110    99     10811   11243   <1e-16
        """
        return marginal_effects(self.moments, self.design, self._told(kind), at)

    def standardised(self, kind: Kind | None = None) -> Contrast:
        """Coefficients in standard deviations of target and columns, so that they can be compared.

        The noisy standard deviations are taken as they stand.

        >>> fit.standardised().effect.round(2)
        array([0.38, 0.75])
        """
        return standardised(self.moments, self.design, self._told(kind))

    @property
    def vif(self) -> LabelledVector:
        """Name → variance inflation factor: how much the other columns add to the variance of each."""
        return variance_inflation(self.moments, self.design, self._told(None))

    def predict(self, rows: object) -> Vector:
        """Predictions for new rows by `fitted_params`, the coefficients of the method.

        Rows are a mapping or frame with the feature columns in original units. `get_prediction` has the
        un-shrunken ones, with intervals. Where bounds were learnt, the table's values were moved into them
        before the fit; so are those of the new rows, and so is the prediction if the target's were. A row
        with a level that has no rows is predicted as if it had the reference level, with a warning.

        >>> fit.predict({"age": [30, 60], "smoker": ["no", "yes"]}).round()
        array([ 2067., 16854.])
        """
        learnt = self.moments.learnt_bounds
        warn_of(refusals_of(self.design, rows))
        found = np.asarray(design_matrix(self.design, rows, learnt) @ self.values + self.design.base)
        if self.target not in learnt:
            return found
        target = self.moments.schema.encoded[self.moments.schema.indices(self.target)[0]]
        reach = target.half_width
        return np.asarray(np.clip(found, target.centre - reach, target.centre + reach))

    def inference(self, kind: Kind | None = None) -> Inference:
        """Un-shrunken estimates with their covariance, or the reason why there is none.

        >>> fit.inference().estimate.round(1)
        array([-1694.6,   125.4, 11026.9])
        """
        asked = self.kind if kind is None else kind
        check_kind(asked)
        return self._of_the_table if asked == "table" else self._of_the_population

    @cached_property
    def _warned(self) -> set[str]:
        """Cautions that were told as warnings."""
        return set()

    @cached_property
    def _of_the_population(self) -> Inference:
        return infer(self.moments, self.design, "population")

    @cached_property
    def _of_the_table(self) -> Inference:
        return infer(self.moments, self.design, "table")

    def rsquared_estimate(self, kind: Kind | None = None) -> Quantity:
        """1 − residual/total sum of squares of the un-shrunken regression, with its standard error.

        >>> print(fit.rsquared_estimate())
        R² = 0.6652 (standard error 0.017)
        """
        return r_squared(self.moments, self.design, kind or self.kind)

    def residual_variance(self, kind: Kind | None = None) -> Quantity:
        """s² of the un-shrunken regression in original units; an interval for `kind="table"` only.

        >>> print(fit.residual_variance())
        residual variance = 1.037e+07 (standard error 7.1e+05)
        """
        return residual_variance(self.moments, self.design, kind or self.kind)

    def bootstrap(self, draws: int = 400, kind: Kind | None = None, seed: int = 0) -> Bootstrap:
        """Parametric bootstrap of the un-shrunken coefficients under the release's own noise law.

        >>> fit.bootstrap(draws=50).std_errors.round()
        array([128.,   3., 108.])
        """
        from dpgram.analysis.bootstrap import bootstrap

        return bootstrap(self.moments, self.design, draws=draws, kind=kind or self.kind, seed=seed)

    def error_bound(self, confidence: float = 0.95, ridge: float | None = None) -> ErrorBound:
        """How far noise can have moved a ridge fit of the table; the ridge is E‖N‖ unless given.

        >>> found = fit.error_bound()
        >>> round(found.norm, 2), round(found.amin, 2)
        (0.59, 0.01)
        """
        from dpgram.analysis._error_bounds import error_bound

        return error_bound(self.moments, self.design, ridge=ridge, confidence=confidence)

    def summary(self, level: float = 0.95, kind: Kind | None = None) -> str:
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
                      fitted  un-shrunken  std. error      t  95% from       to  p-value
        (intercept)  -1693.5      -1694.6         137  -12.5   -1963.1  -1426.8   <1e-16
        age           125.36       125.38        2.62   48.2    120.24   130.53   <1e-16
        smoker=yes     11026        11027         110     99     10811    11243   <1e-16
        <BLANKLINE>
        Estimand: the un-shrunken regression in the population (sampling and privacy
        noise). The 95% intervals are for it, centred at the un-shrunken estimate; the
        fitted column is the one to predict with.
        <BLANKLINE>
        Assumed: the error variance is the same for all rows.
        """
        from dpgram.analysis.summary import as_text

        return as_text(self, level=level, kind=kind or self.kind)

    def to_html(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """The summary as two tables of HTML.

        >>> fit.to_html().startswith("<div><strong>Regression of charges")
        True
        """
        from dpgram.analysis.summary import as_html

        return as_html(self, level=level, kind=kind or self.kind)

    def to_latex(self, level: float = 0.95, kind: Kind | None = None) -> str:
        """The coefficients as a LaTeX table, for the package booktabs.

        >>> print(fit.to_latex().splitlines()[4])
        (intercept) & -1694.6 & 137 & -1963.1 & -1426.8 & $<$1e-16 \\\\
        """
        from dpgram.analysis.summary import as_latex

        return as_latex(self, level=level, kind=kind or self.kind)

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        return self.summary()

    def __repr__(self) -> str:
        rows = "" if self.moments.rows is None else f", about {max(self.moments.rows, 0.0):,.0f} rows"
        name = one_line(self.design.target_name)
        return f"<Regression of {name}: {len(self.names)} coefficients, {self.method}{rows}>"

    def to_frame(self, level: float = 0.95, kind: Kind | None = None) -> Frame:
        """A frame with a row for each coefficient; interval columns are null where refused.

        A Polars frame where Polars is installed, else one of pandas.

        >>> fit.to_frame().columns
        ['name', 'fitted', 'estimate', 'std_error', 't', 'low', 'high', 'p_value']
        """
        from dpgram.analysis._frames import frame_of
        from dpgram.analysis.summary import as_rows

        rows = as_rows(self, level=level, kind=kind or self.kind)
        columns = {name: [row[name] for row in rows] for name in rows[0]}
        return frame_of(columns, numbers=[name for name in columns if name != "name"])

    def plot(
        self, path: str | None = None, level: float = 0.95, kind: Kind | None = None, *, dark: bool = False
    ) -> object:
        """Coefficients with intervals as a matplotlib figure; written to `path` when given.

        >>> figure = fit.plot("coefficients.png")
        """
        from dpgram.analysis.plots import coefficient_plot

        return coefficient_plot(self, path=path, level=level, kind=kind or self.kind, dark=dark)

    def _told(self, kind: Kind | None) -> Inference:
        """The inference, its cautions as warnings, each of them once."""
        from dpgram.analysis._warn import warn_once

        found = self.inference(kind)
        if found.refusal is None:
            warn_once(found.cautions, self._warned)
        else:
            found.check()
        return found

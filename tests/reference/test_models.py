"""Without noise a declared model is that of statsmodels to four digits: HC1, clustered errors, logit, counts.

With as little noise as is ever drawn it is close to it.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

import dpgram as dg
from dpgram.analysis.design import build_design
from dpgram.analysis.glm import FeatureSpace, NewtonStep
from dpgram.analysis.moments import Moments
from dpgram.core.noise import SeededEntropy
from dpgram.document.fields import MeasuredStep
from dpgram.engines import LocalEngine
from dpgram.errors import DpgramWarning
from dpgram.publishing import publish_with

sm = pytest.importorskip("statsmodels.api")

ROWS = 20_000
SCHEMA = dg.Schema(
    dg.numeric("x", -8, 8),
    dg.numeric("z", -8, 8),
    dg.categorical("g", ["a", "b", "c"]),
    dg.numeric("y", -60, 60),
    dg.boolean("t"),
    dg.numeric("k", 0, 60),
)


def table() -> dict[str, Any]:
    draw = np.random.default_rng(0)
    x, z = draw.normal(size=ROWS), draw.normal(size=ROWS)
    who = draw.integers(0, ROWS // 4, ROWS)
    g = draw.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1])
    shared = draw.normal(size=ROWS)[who]
    y = 1.0 + 2.0 * x - z + (g == "b") + np.exp(0.5 * x) * draw.normal(size=ROWS) + shared
    index = -0.7 + 0.8 * x - 0.7 * z + 0.5 * (g == "b") - 0.9 * (g == "c")
    t = draw.random(ROWS) < expit(index)
    rate = np.exp(0.6 + 0.3 * x - 0.2 * z + 0.4 * (g == "b")) * draw.gamma(2.0, 0.5, ROWS)
    return {"x": x, "z": z, "g": g, "y": y, "t": t, "k": draw.poisson(rate) * 1.0, "who": who}


TABLE = table()
DESIGN = np.column_stack(
    [np.ones(ROWS), TABLE["x"], TABLE["z"], TABLE["g"] == "b", TABLE["g"] == "c"]
).astype(float)
ON = ["x", "z", "g"]


def clear(models: Any, epsilon: float = 5e3, **options: Any) -> dg.Release:
    """So large an ε that noise and clip hardly show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        (release,) = publish_with(
            TABLE,
            SCHEMA,
            epsilon=epsilon,
            delta=1e-6,
            models=models,
            entropy=SeededEntropy(2),
            engine=LocalEngine(threads=1),
            progress=False,
            **options,
        )
    return release


@pytest.fixture
def no_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """None is drawn, and none assumed: else each step would stop short of where it leads, by its noise."""
    measured = NewtonStep.of

    def without(step: MeasuredStep, space: FeatureSpace) -> NewtonStep:
        return replace(measured(step, space), score_sd=0.0, hessian_sd=0.0, spread_sd=0.0)

    monkeypatch.setattr(SeededEntropy, "discrete_gaussian", lambda _, scale, count: np.zeros(count, np.int64))
    monkeypatch.setattr(NewtonStep, "of", without)


def step_of(release: dg.Release, target: str) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients and the sandwich H⁻¹MH⁻¹ of the last step, without what noise would add to it."""
    measured = [each for each in release.measured if isinstance(each, MeasuredStep)][-1]
    moments = Moments.of(release)
    space = FeatureSpace.of(
        moments, build_design(moments, target, ON, reference={"g": "a"}), measured.on, measured.coordinates
    )
    step = NewtonStep.of(measured, space)
    bread = space.to_original @ np.linalg.inv(step.hessian)
    assert step.spread is not None
    return space.to_original @ (step.start + step.step()), bread @ step.spread @ bread.T


NO_CLIP = 1e5
"""An ε at which nothing is clipped or limited."""


@pytest.mark.usefixtures("no_noise")
class TestFourDigits:
    """No noise is drawn, and no row or residual is so long that it is shortened."""

    def agree(self, found: tuple[np.ndarray, np.ndarray], known: Any, factor: float = 1.0) -> None:
        np.testing.assert_allclose(found[0], known.params, atol=1e-4 * np.abs(known.params).max())
        np.testing.assert_allclose(np.sqrt(factor * np.diagonal(found[1])), known.bse, rtol=1e-4)
        covariance = np.asarray(known.cov_params())
        close = 2e-4 * np.abs(covariance).max()
        np.testing.assert_allclose(factor * found[1], covariance, atol=close)

    def test_robust_errors(self) -> None:
        known = sm.OLS(TABLE["y"], DESIGN).fit(cov_type="HC1")
        found = step_of(clear([dg.linear("y", ON, share=0.3)], NO_CLIP), "y")
        self.agree(found, known, ROWS / (ROWS - 5))

    def test_clustered_errors(self) -> None:
        release = clear([dg.linear("y", ON, share=0.3)], NO_CLIP, rows=dg.Rows(unit="who"))
        who, sizes = TABLE["who"], np.bincount(TABLE["who"])[TABLE["who"]]
        known = sm.WLS(TABLE["y"], DESIGN, weights=1.0 / sizes).fit(
            cov_type="cluster", cov_kwds={"groups": who, "use_correction": False}
        )
        self.agree(step_of(release, "y"), known)

    def test_counts(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("dpgram.publishing._models.SPREAD_REACH", 30.0)
        known = sm.GLM(TABLE["k"], DESIGN, family=sm.families.Poisson()).fit(cov_type="HC0")
        found = step_of(clear([dg.poisson("k", ON, share=0.3, steps=8)], NO_CLIP), "k")
        self.agree(found, known)

    def test_logit(self) -> None:
        known = sm.Logit(TABLE["t"] * 1.0, DESIGN).fit(disp=0)
        release = clear([dg.logistic("t", ON, share=0.4, steps=8)], NO_CLIP)
        fit = release.regress("t", family="logistic", reference={"g": "a"})
        self.agree((fit.estimate, fit.covariance), known)

    def test_probit(self) -> None:
        """Its estimating function is Σ x(y − Φ(x·β)), whose root and slope are found here."""
        release = clear([dg.probit("t", ON, share=0.4, steps=8)], NO_CLIP)
        fit = release.regress("t", family="probit", reference={"g": "a"})
        root = np.zeros(5)
        for _ in range(30):
            index = DESIGN @ root
            hessian = (DESIGN.T * norm.pdf(index)) @ DESIGN
            root = root + np.linalg.solve(hessian, DESIGN.T @ (TABLE["t"] - norm.cdf(index)))
        np.testing.assert_allclose(fit.estimate, root, atol=1e-4 * np.abs(root).max())
        bound = math.sqrt(math.pi / 8.0) * np.linalg.inv(hessian)
        np.testing.assert_allclose(np.asarray(fit.bse), np.sqrt(np.diagonal(bound)), rtol=1e-4)

    def test_what_analysts_are_told(self) -> None:
        """Errors of `regress` itself, with all that is added for noise, of which there is none."""
        fit = clear([dg.linear("y", ON, share=0.3)], NO_CLIP).regress("y", ON, reference={"g": "a"})
        found, known = fit.inference(), sm.OLS(TABLE["y"], DESIGN).fit(cov_type="HC1")
        assert found.robust
        self.agree((found.estimate, found.covariance), known)


def test_robust_errors_are_those_of_statsmodels() -> None:
    fit = clear([dg.linear("y", ON, share=0.3)]).regress("y", ON, reference={"g": "a"})
    known = sm.OLS(TABLE["y"], DESIGN).fit(cov_type="HC1")
    assert fit.inference().robust
    assert (np.abs(fit.inference().estimate - known.params) < 0.1 * known.bse).all()
    np.testing.assert_allclose(fit.inference().std_errors, known.bse, rtol=0.01)
    plain = sm.OLS(TABLE["y"], DESIGN).fit()
    assert np.abs(known.bse / plain.bse - 1.0).max() > 0.2  # it makes a difference


def test_clustered_errors_are_those_of_statsmodels() -> None:
    """Each row of a person counts 1/m: the weighted regression, with errors clustered by person."""
    release = clear([dg.linear("y", ON, share=0.3)], rows=dg.Rows(unit="who"))
    fit = release.regress("y", ON, reference={"g": "a"})
    sizes = np.bincount(TABLE["who"])[TABLE["who"]]
    known = sm.WLS(TABLE["y"], DESIGN, weights=1.0 / sizes).fit(
        cov_type="cluster", cov_kwds={"groups": TABLE["who"]}
    )
    assert (np.abs(fit.inference().estimate - known.params) < 0.4 * known.bse).all()
    # 5,000 persons: their noise is at its least allowed, a sixteenth of a person.
    np.testing.assert_allclose(fit.inference().std_errors, known.bse, rtol=0.05)
    summary = " ".join(fit.summary().split())
    assert "robust" in summary
    assert "'who'" in summary
    assert (
        f"Test for them: {fit.inference().unequal_variance}; they count as unequal below p = 0.001."
        in summary
    )


def test_counts_are_those_of_statsmodels() -> None:
    release = clear([dg.poisson("k", ON, share=0.4, steps=6)])
    fit = release.regress("k", family="poisson", reference={"g": "a"})
    known = sm.GLM(TABLE["k"], DESIGN, family=sm.families.Poisson()).fit(cov_type="HC1")
    assert (np.abs(fit.estimate - known.params) < 0.2 * known.bse).all()
    np.testing.assert_allclose(np.asarray(fit.bse), known.bse, rtol=0.05)
    classical = sm.GLM(TABLE["k"], DESIGN, family=sm.families.Poisson()).fit()
    assert (known.bse / classical.bse).min() > 1.2  # it makes a difference
    new = {"x": [0.5, -1.0], "z": [0.0, 1.0], "g": ["b", "a"]}
    rows = np.array([[1.0, 0.5, 0.0, 1.0, 0.0], [1.0, -1.0, 1.0, 0.0, 0.0]])
    np.testing.assert_allclose(fit.predict(new), known.predict(rows), rtol=0.01)
    effect, low, high = fit.marginal_effects()["x"]
    assert effect == pytest.approx(known.params[1] * TABLE["k"].mean(), rel=0.02)
    assert low < effect < high
    ratio, low, high = fit.rate_ratios()["x"]
    assert ratio == pytest.approx(np.exp(known.params[1]), rel=0.01)
    assert low < ratio < high


def test_the_logit_is_that_of_statsmodels() -> None:
    release = clear([dg.logistic("t", ON, share=0.4, steps=5)])
    fit = release.regress("t", family="logistic", reference={"g": "a"})
    known = sm.Logit(TABLE["t"] * 1.0, DESIGN).fit(disp=0)
    np.testing.assert_allclose(fit.estimate, known.params, atol=0.05 * known.bse.min())
    np.testing.assert_allclose(np.asarray(fit.bse), known.bse, rtol=1e-3)  # the noise of the score is left
    effects = known.get_margeff().margeff
    found = [effect for effect, _, _ in fit.marginal_effects().values()]
    np.testing.assert_allclose(found, effects, rtol=0.02)
    new = {"x": [0.5, -1.0], "z": [0.0, 1.0], "g": ["b", "a"]}
    rows = np.array([[1.0, 0.5, 0.0, 1.0, 0.0], [1.0, -1.0, 1.0, 0.0, 0.0]])
    np.testing.assert_allclose(fit.predict(new), known.predict(rows), atol=2e-3)


def test_the_probit_is_close_to_that_of_statsmodels() -> None:
    """Its estimating function has no weights p'/(p(1 − p)): another estimator of the same coefficients."""
    release = clear([dg.probit("t", ON, share=0.4, steps=5)])
    fit = release.regress("t", family="probit", reference={"g": "a"})
    known = sm.Probit(TABLE["t"] * 1.0, DESIGN).fit(disp=0)
    assert (np.abs(fit.estimate - known.params) < 0.3 * known.bse).all()
    ratio = np.asarray(fit.bse) / known.bse
    assert (ratio > 0.99).all()
    assert (ratio < 1.25).all()

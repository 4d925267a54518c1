"""With hardly any noise a declared model is that of statsmodels: HC1, clustered errors, the logit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from scipy.special import expit

import dpgram as dg
from dpgram.engines import LocalEngine
from dpgram.errors import DpgramWarning
from dpgram.privacy.sampling.entropy import SeededEntropy
from dpgram.publishing import publish_with

sm = pytest.importorskip("statsmodels.api")

ROWS = 20_000
SCHEMA = dg.Schema(
    dg.numeric("x", -8, 8),
    dg.numeric("z", -8, 8),
    dg.categorical("g", ["a", "b", "c"]),
    dg.numeric("y", -60, 60),
    dg.boolean("t"),
)


def table() -> dict[str, Any]:
    draw = np.random.default_rng(0)
    x, z = draw.normal(size=ROWS), draw.normal(size=ROWS)
    who = draw.integers(0, ROWS // 4, ROWS)
    g = draw.choice(["a", "b", "c"], ROWS, p=[0.6, 0.3, 0.1])
    shared = draw.normal(size=ROWS)[who]
    y = 1.0 + 2.0 * x - z + (g == "b") + np.exp(0.5 * x) * draw.normal(size=ROWS) + shared
    index = -0.7 + 0.8 * x - 0.7 * z + 0.5 * (g == "b") - 0.9 * (g == "c")
    return {"x": x, "z": z, "g": g, "y": y, "t": draw.random(ROWS) < expit(index), "who": who}


TABLE = table()
DESIGN = np.column_stack(
    [np.ones(ROWS), TABLE["x"], TABLE["z"], TABLE["g"] == "b", TABLE["g"] == "c"]
).astype(float)
ON = ["x", "z", "g"]


def clear(models: Any, **options: Any) -> dg.Release:
    """So large an ε that noise and clip hardly show."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        (release,) = publish_with(
            TABLE,
            SCHEMA,
            epsilon=5e3,
            delta=1e-6,
            models=models,
            entropy=SeededEntropy(2),
            engine=LocalEngine(threads=1),
            progress=False,
            **options,
        )
    return release


def test_robust_errors_are_those_of_statsmodels() -> None:
    fit = clear([dg.linear("y", ON, share=0.3)]).regress("y", ON, reference={"g": "a"})
    known = sm.OLS(TABLE["y"], DESIGN).fit(cov_type="HC1")
    assert fit.inference().robust
    assert (np.abs(fit.inference().estimate - known.params) < 0.3 * known.bse).all()  # some rows are clipped
    np.testing.assert_allclose(fit.inference().std_errors, known.bse, rtol=0.02)
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
    assert (np.abs(fit.inference().estimate - known.params) < 0.3 * known.bse).all()  # some rows are clipped
    # 5,000 persons: their noise is at its least allowed, a sixteenth of a person, and a clip takes some rows.
    np.testing.assert_allclose(fit.inference().std_errors, known.bse, rtol=0.03)
    assert "robust" in fit.summary()
    assert "'who'" in fit.summary()


def test_the_logit_is_that_of_statsmodels() -> None:
    release = clear([dg.logistic("t", ON, share=0.4, steps=5)])
    fit = release.regress("t", family="logistic", reference={"g": "a"})
    known = sm.Logit(TABLE["t"] * 1.0, DESIGN).fit(disp=0)
    np.testing.assert_allclose(fit.estimate, known.params, atol=0.05 * known.bse.min())
    np.testing.assert_allclose(np.asarray(fit.bse), known.bse, rtol=0.01)
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

"""Side by side with linearmodels: instruments and effects within groups, to six digits without noise."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from tests.unit.analysis.tables import exact_moments

from dpgram.analysis.effects import within
from dpgram.analysis.iv import iv
from dpgram.analysis.moments import Moments
from dpgram.schema import Schema, categorical, numeric

DIGITS = 1e-6


def _moments(frame: pd.DataFrame, numbers: list[str], groups: list[str]) -> Moments:
    schema = Schema(
        *(numeric(name, float(frame[name].min()) - 1, float(frame[name].max()) + 1) for name in numbers),
        *(categorical(name, sorted(frame[name].unique())) for name in groups),
    )
    return exact_moments(schema, {name: frame[name].to_numpy() for name in (*numbers, *groups)})


def cps1988(request: pytest.FixtureRequest) -> tuple[pd.DataFrame, dict[str, Any]]:
    frame = pd.read_parquet(request.getfixturevalue("shared_data") / "cps1988" / "data.parquet")
    frame["log_wage"] = np.log(frame["wage"])
    frame["smsa"] = (frame["smsa"] == "yes") * 1.0
    frame["part"] = (frame["parttime"] == "yes") * 1.0
    asked = {"y": "log_wage", "x": "education", "z": ["smsa", "part"], "w": ["experience"], "g": "region"}
    return frame, asked


def nmes1988(request: pytest.FixtureRequest) -> tuple[pd.DataFrame, dict[str, Any]]:
    frame = pd.read_parquet(request.getfixturevalue("shared_data") / "nmes1988" / "data.parquet")
    asked = {"y": "visits", "x": "chronic", "z": ["age", "school"], "w": ["income"], "g": "health"}
    return frame, asked


def card(_: pytest.FixtureRequest) -> tuple[pd.DataFrame, dict[str, Any]]:
    from linearmodels.datasets import card as bundled

    columns = ["lwage", "educ", "exper", "nearc2", "nearc4", "black", "south"]
    frame = bundled.load()[columns].dropna().astype(float)
    frame["south"] = np.where(frame["south"] == 1.0, "yes", "no")
    asked = {"y": "lwage", "x": "educ", "z": ["nearc2", "nearc4"], "w": ["exper", "black"], "g": "south"}
    return frame, asked


CASES = (cps1988, nmes1988, card)


@pytest.mark.parametrize("method", ["2sls", "liml"])
@pytest.mark.parametrize("instruments", [1, 2])
@pytest.mark.parametrize("case", CASES)
def test_instruments(case: Any, instruments: int, method: str, request: pytest.FixtureRequest) -> None:
    from linearmodels.iv import IV2SLS, IVLIML

    frame, asked = case(request)
    y, x, z, w = asked["y"], asked["x"], asked["z"][:instruments], asked["w"]
    numbers = [y, x, *z, *w]
    frame = frame[numbers].astype(float)
    found = iv(_moments(frame, numbers, []), y, x, z, w, method=method)
    model = {"2sls": IV2SLS, "liml": IVLIML}[method]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        controls = frame[w].assign(**{"(intercept)": 1.0})
        wanted = model(frame[y], controls, frame[[x]], frame[z]).fit(cov_type="unadjusted", debiased=True)
        stage = wanted.first_stage.diagnostics.loc[x]
    for name in found.names:
        assert found.params[name] == pytest.approx(wanted.params[name], rel=DIGITS)
        assert found.bse[name] == pytest.approx(wanted.std_errors[name], rel=DIGITS)
        assert found.tvalues[name] == pytest.approx(wanted.tstats[name], rel=DIGITS)
        ends = wanted.conf_int(0.95).loc[name]
        assert found.conf_int()[name] == pytest.approx((ends["lower"], ends["upper"]), rel=DIGITS)
    order = list(found.names)
    np.testing.assert_allclose(found.cov_params(), wanted.cov.loc[order, order], rtol=DIGITS, atol=1e-14)
    assert found.nobs == pytest.approx(wanted.nobs)
    assert found.first_stage[0].f_statistic == pytest.approx(stage["f.stat"], rel=DIGITS)
    assert found.first_stage[0].p_value == pytest.approx(stage["f.pval"], rel=DIGITS, abs=1e-300)
    if method == "liml":
        assert found.kappa == pytest.approx(wanted.kappa, rel=DIGITS)


@pytest.mark.parametrize("case", CASES)
def test_anderson_and_rubins_test_is_the_f_of_the_instruments(
    case: Any, request: pytest.FixtureRequest
) -> None:
    """linearmodels tests overidentification by Anderson and Rubin; the coefficient by a plain regression."""
    import statsmodels.api as sm

    frame, asked = case(request)
    y, x, z, w = asked["y"], asked["x"], asked["z"], asked["w"]
    frame = frame[[y, x, *z, *w]].astype(float)
    found = iv(_moments(frame, list(frame), []), y, x, z, w)
    for value in (0.0, 0.1):
        design = sm.add_constant(frame[[*z, *w]])
        theirs = sm.OLS(frame[y] - value * frame[x], design).fit()
        wanted = theirs.f_test(np.eye(len(z), design.shape[1], k=1))
        assert found.anderson_rubin_test(value) == pytest.approx(float(wanted.pvalue), rel=DIGITS, abs=1e-280)


@pytest.mark.parametrize("case", CASES)
def test_effects_within_groups(case: Any, request: pytest.FixtureRequest) -> None:
    from linearmodels.iv import AbsorbingLS

    frame, asked = case(request)
    y, on, group = asked["y"], [asked["x"], *asked["w"]], asked["g"]
    numbers = [y, *on]
    frame = frame[[*numbers, group]].copy()
    frame[numbers] = frame[numbers].astype(float)
    found = within(_moments(frame, numbers, [group]), y, on, group)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        absorbed = frame[[group]].astype("category")
        wanted = AbsorbingLS(frame[y], frame[on], absorb=absorbed).fit(cov_type="unadjusted", debiased=True)
    for name in on:
        assert found.params[name] == pytest.approx(wanted.params[name], rel=DIGITS)
        assert found.bse[name] == pytest.approx(wanted.std_errors[name], rel=DIGITS)
        ends = wanted.conf_int(0.95).loc[name]
        assert found.conf_int()[name] == pytest.approx((ends["lower"], ends["upper"]), rel=DIGITS)

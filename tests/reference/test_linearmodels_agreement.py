"""Side by side with linearmodels: instruments and effects within groups, to six digits.

On releases whose noise vanishes (see `lattice_tables`).
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpgram.schema import categorical

from .lattice_tables import on_the_lattice, published, stacks, vanishing

DIGITS = 1e-6


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
def test_instruments(
    case: Any, instruments: int, method: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    from linearmodels.iv import IV2SLS, IVLIML

    frame, asked = case(request)
    y, x, z, w = asked["y"], asked["x"], asked["z"][:instruments], asked["w"]
    table = on_the_lattice(frame[[y, x, *z, *w]].astype(float), y, [x, *z, *w])
    found, frame = vanishing(table, tmp_path).iv(y, x, z, w, method=method), table.frame
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
    case: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """linearmodels tests overidentification by Anderson and Rubin; the coefficient by a plain regression."""
    import statsmodels.api as sm

    frame, asked = case(request)
    y, x, z, w = asked["y"], asked["x"], asked["z"], asked["w"]
    table = on_the_lattice(frame[[y, x, *z, *w]].astype(float), y, [x, *z, *w])
    found, frame = vanishing(table, tmp_path).iv(y, x, z, w), table.frame
    for value in (0.0, 0.1):
        design = sm.add_constant(frame[[*z, *w]])
        theirs = sm.OLS(frame[y] - value * frame[x], design).fit()
        wanted = theirs.f_test(np.eye(len(z), design.shape[1], k=1))
        assert found.anderson_rubin_test(value) == pytest.approx(float(wanted.pvalue), rel=DIGITS, abs=1e-280)


@pytest.mark.parametrize("case", CASES)
def test_effects_within_groups(case: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    from linearmodels.iv import AbsorbingLS

    frame, asked = case(request)
    y, on, group = asked["y"], [asked["x"], *asked["w"]], asked["g"]
    frame = frame[[y, *on, group]].astype(dict.fromkeys((y, *on), float))
    table = on_the_lattice(frame, y, on, [categorical(group, sorted(frame[group].unique()))])
    found, frame = vanishing(table, tmp_path).within(y, on, group), table.frame
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        absorbed = frame[[group]].astype("category")
        wanted = AbsorbingLS(frame[y], frame[on], absorb=absorbed).fit(cov_type="unadjusted", debiased=True)
    for name in on:
        assert found.params[name] == pytest.approx(wanted.params[name], rel=DIGITS)
        assert found.bse[name] == pytest.approx(wanted.std_errors[name], rel=DIGITS)
        ends = wanted.conf_int(0.95).loc[name]
        assert found.conf_int()[name] == pytest.approx((ends["lower"], ends["upper"]), rel=DIGITS)


@pytest.mark.parametrize("case", CASES)
def test_what_publish_made_of_a_stacked_table_agrees(
    case: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """The estimate of one table and the errors of as many as were stacked."""
    from linearmodels.iv import IV2SLS

    frame, asked = case(request)
    y, x, z, w = asked["y"], asked["x"], asked["z"], asked["w"]
    table = on_the_lattice(frame[[y, x, *z, *w]].astype(float), y, [x, *z, *w])
    found, frame = published(table, tmp_path).iv(y, x, z, w), table.frame
    controls = frame[w].assign(**{"(intercept)": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = IV2SLS(frame[y], controls, frame[[x]], frame[z]).fit(cov_type="unadjusted", debiased=True)
    many, p = stacks(table) * len(frame), len(found.names)
    narrower = np.sqrt((len(frame) - p) / (many - p))
    for name in found.names:
        # The noise is that of a slope in standard deviations, and weak instruments multiply it.
        unit = frame[y].std() / (1.0 if name == "(intercept)" else frame[name].std())
        assert found.params[name] == pytest.approx(wanted.params[name], rel=DIGITS, abs=DIGITS * unit)
        assert found.bse[name] == pytest.approx(wanted.std_errors[name] * narrower, rel=DIGITS)
    assert found.nobs == pytest.approx(many, rel=DIGITS)

"""Instrumental variables: linearmodels' numbers without noise, honest answers with it."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pandas as pd
import pytest
from tests.unit.analysis.tables import exact_moments

from dpgram.analysis.iv import HIDDEN, iv
from dpgram.analysis.iv_results import InstrumentalVariables
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.errors import AnalysisError
from dpgram.noise import EntrywiseLaplace
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

DIGITS = 1e-6
METHODS = ("2sls", "liml")


def linearmodels(
    method: str, frame: pd.DataFrame, y: str, x: list[str], z: list[str], w: list[str]
) -> object:
    from linearmodels.iv import IV2SLS, IVLIML

    model = {"2sls": IV2SLS, "liml": IVLIML}[method]
    controls = frame[w].assign(**{"(intercept)": 1.0})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model(frame[y], controls, frame[x], frame[z]).fit(cov_type="unadjusted", debiased=True)


def same(found: InstrumentalVariables, wanted: object) -> None:
    for name in found.names:
        assert found.params[name] == pytest.approx(wanted.params[name], rel=DIGITS)
        assert found.bse[name] == pytest.approx(wanted.std_errors[name], rel=DIGITS)
        assert found.tvalues[name] == pytest.approx(wanted.tstats[name], rel=DIGITS)
        assert found.pvalues[name] == pytest.approx(wanted.pvalues[name], rel=1e-5, abs=1e-13)
        low, high = found.conf_int(0.9)[name]
        ends = wanted.conf_int(0.9).loc[name]
        assert (low, high) == pytest.approx((ends["lower"], ends["upper"]), rel=DIGITS)
    order = list(found.names)
    np.testing.assert_allclose(found.cov_params(), wanted.cov.loc[order, order], rtol=DIGITS)
    assert found.nobs == pytest.approx(wanted.nobs)
    assert found.df_resid == pytest.approx(wanted.df_resid)


@pytest.fixture(scope="module")
def card() -> tuple[Moments, pd.DataFrame]:
    """Returns to schooling with the distance to a college as an instrument; bundled with linearmodels."""
    from linearmodels.datasets import card

    columns = ["lwage", "educ", "exper", "expersq", "nearc2", "nearc4", "black", "south", "smsa"]
    frame = card.load()[columns].dropna().astype(float)
    schema = Schema(
        numeric("lwage", 4, 9),
        numeric("educ", 0, 20),
        numeric("exper", 0, 25),
        numeric("expersq", 0, 625),
        *(boolean(name) for name in columns[4:]),
    )
    table = {name: frame[name].to_numpy() for name in columns[:4]}
    table |= {name: frame[name].to_numpy() == 1.0 for name in columns[4:]}
    return exact_moments(schema, table), frame


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("instruments", [["nearc4"], ["nearc2", "nearc4"]])
def test_card_is_that_of_linearmodels(
    card: tuple[Moments, pd.DataFrame], method: str, instruments: list[str]
) -> None:
    moments, frame = card
    controls = ["exper", "expersq", "black", "south", "smsa"]
    found = iv(moments, "lwage", "educ", instruments, controls, method=method)
    wanted = linearmodels(method, frame, "lwage", ["educ"], instruments, controls)
    same(found, wanted)
    stage = wanted.first_stage.diagnostics.loc["educ"]
    assert found.first_stage[0].f_statistic == pytest.approx(stage["f.stat"], rel=DIGITS)
    assert found.first_stage[0].p_value == pytest.approx(stage["f.pval"], rel=1e-5)


@pytest.mark.parametrize("method", METHODS)
def test_mroz_is_that_of_linearmodels(method: str) -> None:
    """Two instruments from the parents' education."""
    from linearmodels.datasets import mroz

    columns = ["lwage", "educ", "exper", "expersq", "fatheduc", "motheduc"]
    frame = mroz.load()[columns].dropna().astype(float)
    bounds = [(-3, 4), (0, 20), (0, 50), (0, 2500), (0, 20), (0, 20)]
    schema = Schema(*(numeric(name, *ends) for name, ends in zip(columns, bounds, strict=True)))
    moments = exact_moments(schema, {name: frame[name].to_numpy() for name in columns})
    controls = ["exper", "expersq"]
    found = iv(moments, "lwage", "educ", ["fatheduc", "motheduc"], controls, method=method)
    same(found, linearmodels(method, frame, "lwage", ["educ"], ["fatheduc", "motheduc"], controls))


@pytest.fixture(scope="module")
def made() -> tuple[Schema, dict[str, np.ndarray], pd.DataFrame]:
    """Two endogenous columns, three instruments, a categorical control."""
    rng = np.random.default_rng(0)
    n = 3_000
    z = rng.uniform(-1, 1, (3, n))
    group = rng.choice(["a", "b", "c"], n)
    u = rng.normal(size=n)
    x1 = 5 + 2 * z[0] + z[1] + u + rng.normal(size=n)
    x2 = 1 + 2 * z[2] - z[1] + 0.5 * u + rng.normal(size=n)
    y = 10 + 3 * x1 - 2 * x2 + 4 * (group == "b") + 2 * u + rng.normal(size=n)
    table = {"z1": z[0], "z2": z[1], "z3": z[2], "group": group, "x1": x1, "x2": x2, "y": y}
    schema = Schema(
        *(numeric(f"z{i}", -1, 1) for i in (1, 2, 3)),
        categorical("group", ["a", "b", "c"]),
        numeric("x1", -10, 20),
        numeric("x2", -15, 15),
        numeric("y", -60, 90),
    )
    frame = pd.DataFrame({name: column for name, column in table.items() if name != "group"})
    frame["group=a"], frame["group=c"] = (group == "a") * 1.0, (group == "c") * 1.0
    return schema, table, frame


@pytest.mark.parametrize("method", METHODS)
def test_two_endogenous_columns(
    made: tuple[Schema, dict[str, np.ndarray], pd.DataFrame], method: str
) -> None:
    schema, table, frame = made
    found = iv(
        exact_moments(schema, table),
        "y", ["x1", "x2"], ["z1", "z2", "z3"], ["group"],
        method=method, reference={"group": "b"},
    )  # fmt: skip
    wanted = linearmodels(method, frame, "y", ["x1", "x2"], ["z1", "z2", "z3"], ["group=a", "group=c"])
    same(found, wanted)
    with pytest.raises(AnalysisError, match="single endogenous"):
        found.anderson_rubin()


def textbook_anderson_rubin(frame: pd.DataFrame, z: list[str], w: list[str], value: float) -> float:
    """F of the instruments in the regression of y − x·value on instruments and controls."""
    from scipy import stats

    y = (frame["y"] - value * frame["x1"]).to_numpy()
    few = np.column_stack([np.ones(len(y)), frame[w]])
    many = np.column_stack([few, frame[z]])
    sums = [float(np.sum((y - m @ np.linalg.lstsq(m, y, rcond=None)[0]) ** 2)) for m in (few, many)]
    degrees = len(y) - many.shape[1]
    return float(stats.f.sf((sums[0] - sums[1]) / len(z) / (sums[1] / degrees), len(z), degrees))


@pytest.mark.parametrize("instruments", [["z1"], ["z1", "z2"], ["z1", "z2", "z3"]])
def test_anderson_rubin_is_the_textbooks(
    made: tuple[Schema, dict[str, np.ndarray], pd.DataFrame], instruments: list[str]
) -> None:
    schema, table, frame = made
    found = iv(exact_moments(schema, table), "y", "x1", instruments, ["group"], reference={"group": "b"})
    controls = ["group=a", "group=c"]
    for value in (-2.0, 2.5, 3.0, 3.2, 40.0):
        wanted = textbook_anderson_rubin(frame, instruments, controls, value)
        assert found.anderson_rubin_test(value) == pytest.approx(wanted, rel=1e-6, abs=1e-13)
    for low, high in found.anderson_rubin(0.9).pieces:
        for end in (low, high):
            assert textbook_anderson_rubin(frame, instruments, controls, end) == pytest.approx(0.1, rel=1e-6)


def weak_table(rows: int, slope: float, seed: int) -> tuple[Schema, dict[str, np.ndarray]]:
    rng = np.random.default_rng(seed)
    z = rng.uniform(-1, 1, rows)
    u = rng.normal(0, 0.2, rows)
    x = slope * z + u
    schema = Schema(numeric("z", -1, 1), numeric("x", -2, 2), numeric("y", -2, 2))
    return schema, {"z": z, "x": x, "y": 0.5 * x + 0.5 * u + rng.normal(0, 0.1, rows)}


def test_sets_that_are_no_interval() -> None:
    """The whole line where an instrument says nothing, two half-lines where little, else an interval."""
    shapes = set()
    for slope in (0.0, 0.012, 0.02, 0.5):
        for seed in range(4):
            found = iv(exact_moments(*weak_table(500, slope, seed)), "y", "x", "z").anderson_rubin()
            shapes.add((len(found.pieces), found.bounded))
            for low, high in found.pieces:
                assert low < high
            if not found.bounded and len(found.pieces) == 2:
                assert found.pieces[0][0] == -math.inf
                assert found.pieces[1][1] == math.inf
                assert "unbounded" in str(found)
            if found.pieces == ((-math.inf, math.inf),):
                assert "every value" in str(found)
    assert shapes == {(1, False), (2, False), (1, True)}


def test_instruments_that_disagree_leave_nothing() -> None:
    rng = np.random.default_rng(1)
    n = 4_000
    z1, z2 = rng.uniform(-1, 1, (2, n))
    x = 0.5 * z1 + 0.5 * z2 + rng.normal(0, 0.1, n)
    y = 0.5 * x + 0.5 * z2 + rng.normal(0, 0.1, n)
    schema = Schema(*(numeric(name, -2, 2) for name in ("z1", "z2", "x", "y")))
    found = iv(exact_moments(schema, {"z1": z1, "z2": z2, "x": x, "y": y}), "y", "x", ["z1", "z2"])
    assert found.anderson_rubin().pieces == ()
    assert "empty" in str(found.anderson_rubin())
    assert "weak" not in found.summary()


def test_noise_that_hides_the_first_stage_is_said_and_the_set_still_holds() -> None:
    schema, table = weak_table(2_000, 0.05, 1)
    found = iv(exact_moments(schema, table, sigma=30.0), "y", "x", "z")
    assert found.first_stage[0].against_noise < HIDDEN
    for ask in (found.conf_int, found.cov_params, found.to_frame, lambda: found.bse, lambda: found.params):
        with pytest.raises(AnalysisError, match="the privacy noise hides the first stage"):
            ask()
    assert found.anderson_rubin().pieces
    assert "No errors or intervals: the privacy noise hides the first stage" in found.summary()


def test_weak_instruments_get_a_caution() -> None:
    found = iv(exact_moments(*weak_table(1_000, 0.03, 2)), "y", "x", "z")
    assert found.first_stage[0].f_statistic < 10
    assert any("weak instruments" in caution for caution in found.cautions)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("law", ["gaussian", "laplace"])
def test_noise_covariance_is_that_of_the_law(
    made: tuple[Schema, dict[str, np.ndarray], pd.DataFrame], method: str, law: str
) -> None:
    """Of all coefficients, in releases of one table whose instruments do not agree exactly."""
    schema, table, _ = made
    moments = exact_moments(schema, table)
    noise = exact_moments(schema, table, sigma=3.0).noise
    if law == "laplace":
        noise = EncodedNoise.of(EntrywiseLaplace(scale=2.0, diagonal_scale=2.0))
    rng = np.random.default_rng(7)
    asked = ("y", "x1", ["z1", "z2"], ["x2"])
    drawn, told = [], []
    for _ in range(500):
        gram = noise.redraw(moments.gram, rng)
        noisy = Moments(gram=gram, schema=schema, noise=noise, radius=moments.radius)
        found = iv(noisy, *asked, method=method, kind="table")
        drawn.append(found.estimate)
        told.append(np.diagonal(found.privacy_covariance))
    exact = iv(moments, *asked, method=method, kind="table").estimate
    np.testing.assert_allclose(np.sqrt(np.median(told, axis=0)), np.std(drawn, axis=0), rtol=0.15)
    np.testing.assert_array_less(np.abs(np.mean(drawn, axis=0) - exact), 0.25 * np.std(drawn, axis=0))


def test_mistakes_are_told(made: tuple[Schema, dict[str, np.ndarray], pd.DataFrame]) -> None:
    schema, table = weak_table(500, 0.5, 1)
    moments = exact_moments(schema, table)
    with pytest.raises(AnalysisError, match="unknown method"):
        iv(moments, "y", "x", "z", method="gmm")
    with pytest.raises(AnalysisError, match="at least one endogenous"):
        iv(moments, "y", [], "z")
    with pytest.raises(AnalysisError, match="both endogenous and an instrument"):
        iv(moments, "y", "x", ["x"])
    with pytest.raises(AnalysisError, match="fewer instruments"):
        iv(exact_moments(*made[:2]), "y", ["x1", "x2"], ["z1"])
    with pytest.raises(AnalysisError, match="must be a probability"):
        iv(moments, "y", "x", "z").conf_int(95)


def test_products_and_powers_are_spelt_as_in_regressions() -> None:
    draw = np.random.default_rng(8)
    z, c, error = draw.normal(size=(3, 4_000))
    x = z + 0.3 * c + error
    table = {"z": z, "c": c, "x": x, "y": 2.0 * x + c**2 - error}
    schema = Schema(*(numeric(name, -20, 20) for name in table), legendre("c", 2), product("x", "c"))
    moments = exact_moments(schema, table)
    found = iv(moments, "y", "x", "z", ["c", "c^2"])
    assert found.names == ("(intercept)", "x", "c", "c^2")
    np.testing.assert_allclose(found.estimate, iv(moments, "y", "x", "z", ["c", "c^P2"]).estimate)
    assert found.params["c^2"] == pytest.approx(1.0, abs=0.1)
    assert iv(moments, "y", "x", "z", "c").names == ("(intercept)", "x", "c")
    for spelt in ("x:c", "x*c"):
        with pytest.raises(AnalysisError, match="computed from an endogenous column"):
            iv(moments, "y", "x", "z", ["c", spelt])

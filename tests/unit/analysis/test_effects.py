"""Effects within groups and difference-in-differences: statsmodels' numbers without noise."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.analysis.tables import exact_moments

from dpgram.analysis.effects import did, within
from dpgram.errors import AnalysisError
from dpgram.schema import Schema, boolean, categorical, numeric, product

ROWS = 6_000
SCHEMA = Schema(
    numeric("x", -5, 5),
    categorical("site", ["a", "b", "c", "d"]),
    boolean("treated"),
    boolean("after"),
    numeric("y", -30, 40),
    product("treated", "after"),
)


def table(seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    site = rng.choice(4, ROWS)
    x = rng.normal(0, 1, ROWS) + 0.8 * site - 1.2
    treated, after = rng.random(ROWS) < 0.4, rng.random(ROWS) < 0.5
    y = 3 * site + 0.5 * x + 1.5 * treated - after + 2.0 * treated * after + rng.normal(0, 1, ROWS)
    return {"x": x, "site": np.array(list("abcd"))[site], "treated": treated, "after": after, "y": y}


def least_squares(made: dict[str, np.ndarray], *columns: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    import statsmodels.api as sm

    fit = sm.OLS(made["y"], sm.add_constant(np.column_stack(columns).astype(float))).fit()
    return fit.params, fit.bse


def test_within_groups_is_the_regression_with_dummies() -> None:
    made = table(1)
    found = within(exact_moments(SCHEMA, made), "y", ["x", "treated"], "site")
    dummies = [made["site"] == level for level in "bcd"]
    params, errors = least_squares(made, made["x"], made["treated"], *dummies)
    assert found.names == ("x", "treated")
    np.testing.assert_allclose(found.params, params[1:3], rtol=1e-6)
    np.testing.assert_allclose(found.bse, errors[1:3], rtol=1e-6)
    np.testing.assert_allclose(np.diagonal(found.cov_params()), errors[1:3] ** 2, rtol=1e-6)
    assert abs(least_squares(made, made["x"])[0][1] - 0.5) > 1.0  # between groups it is another one
    # The textbook's way: what is left of y and x once their group's mean is taken out.
    means = {level: (made["site"] == level) for level in "abcd"}
    y, x = made["y"].copy(), np.column_stack([made["x"], made["treated"]]).astype(float)
    for rows in means.values():
        y[rows] -= y[rows].mean()
        x[rows] -= x[rows].mean(axis=0)
    np.testing.assert_allclose(found.params, np.linalg.lstsq(x, y, rcond=None)[0], rtol=1e-6)


@pytest.mark.parametrize("controls", [[], ["x", "site"]])
def test_difference_in_differences(controls: list[str]) -> None:
    made = table(2)
    found = did(exact_moments(SCHEMA, made), "y", "treated", "after", controls)
    extra = [made["x"], *(made["site"] == level for level in "bcd")] if controls else []
    params, errors = least_squares(
        made, made["treated"], made["after"], made["treated"] & made["after"], *extra
    )
    np.testing.assert_allclose(found.params, params[3:4], rtol=1e-6)
    np.testing.assert_allclose(found.bse, errors[3:4], rtol=1e-6)
    if not controls:
        means = [
            [made["y"][(made["treated"] == t) & (made["after"] == a)].mean() for a in (False, True)]
            for t in (False, True)
        ]
        by_hand = (means[1][1] - means[1][0]) - (means[0][1] - means[0][0])
        assert np.asarray(found.params)[0] == pytest.approx(by_hand, rel=1e-6)
    assert "changed alike" in found.summary()


def test_intervals_cover_under_noise() -> None:
    hits = []
    for seed in range(200):
        moments = exact_moments(SCHEMA, table(seed), sigma=8.0, seed=seed)
        for found, truth in (
            (did(moments, "y", "treated", "after", ["site"]), 2.0),
            (within(moments, "y", ["x"], "site"), 0.5),
        ):
            ((low, high),) = found.conf_int().values()
            hits.append(low <= truth <= high)
    assert 0.92 <= np.mean(hits) <= 0.98


def test_what_was_not_declared_is_told() -> None:
    moments = exact_moments(SCHEMA, table(0))
    with pytest.raises(AnalysisError, match=r"dg.product\('treated', 'x'\)"):
        did(moments, "y", "treated", "x")
    with pytest.raises(AnalysisError, match="not a categorical column"):
        within(moments, "y", ["x"], "treated")
    with pytest.raises(AnalysisError, match="list of at least one"):
        within(moments, "y", "x", "site")
    drowned = exact_moments(SCHEMA, table(0), sigma=3_000.0)
    assert "No estimate" in within(drowned, "y", ["x"], "site").summary()

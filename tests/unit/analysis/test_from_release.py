"""From a published file to an answer: units, weights, groups, adjacency and clip arrive intact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from tests.unit.analysis.tables import insurance, insurance_schema

import dpgram as dg
from dpgram.analysis.moments import Moments
from dpgram.analysis.regress import regress
from dpgram.errors import DpgramWarning
from dpgram.privacy.entropy import SeededEntropy
from dpgram.release import Release, load

TABLE = insurance(20_000)
FEATURES = ["age", "bmi", "smoker", "active"]
COLUMNS = [TABLE["age"], TABLE["bmi"], TABLE["smoker"] == "yes", TABLE["smoker"] == "former", TABLE["active"]]
TRUTH = sm.OLS(TABLE["charges"], np.column_stack([np.ones(20_000), *COLUMNS]).astype(float)).fit()


def released(tmp_path: Path, **options: object) -> Release:
    settings = {"epsilon": 1.0, "delta": 1e-6, "entropy": SeededEntropy(5)} | options
    schema = insurance_schema(weights=True, derived=True)
    release = dg.publish(pd.DataFrame(TABLE), schema, **settings)
    release.save(tmp_path / "release.json")
    return load(tmp_path / "release.json")


@pytest.mark.parametrize(
    "options", [{}, {"delta": 0.0}, {"adjacency": "replace-one"}, {"mechanism": "gaussian"}], ids=str
)
def test_intervals_from_a_file_hold_the_tables_own_coefficients(tmp_path: Path, options: dict) -> None:
    """Six coefficients at 99.9%: a correct library fails a fixed seed with probability below 1%."""
    fit = released(tmp_path, **options).regress("charges", on=FEATURES)
    found = fit.inference("table")
    ends = found.conf_int(0.999)
    assert ((ends[:, 0] <= TRUTH.params) & (TRUTH.params <= ends[:, 1])).all()
    assert np.corrcoef(fit.predict(TABLE), TRUTH.fittedvalues)[0, 1] > 0.98


def test_almost_no_noise_gives_the_tables_regression_to_four_digits(tmp_path: Path) -> None:
    """ε = 10⁶ leaves only the lattice's rounding."""
    with pytest.warns(DpgramWarning):
        release = released(tmp_path, epsilon=1e6, delta=0.0)
    fit = release.regress("charges", on=FEATURES)
    np.testing.assert_allclose(fit.values, TRUTH.params, rtol=2e-4)
    np.testing.assert_allclose(fit.predict(TABLE), TRUTH.fittedvalues, rtol=1e-4, atol=1.0)
    np.testing.assert_allclose(fit.inference().std_errors, TRUTH.bse, rtol=1e-3)


def test_moments_of_a_release(tmp_path: Path) -> None:
    release = released(tmp_path)
    moments = Moments.of(release)
    assert moments.rows == pytest.approx(20_000, abs=6 * moments.noise.diagonal_sd)
    assert not moments.clipped
    assert moments.complete_groups
    assert Moments.of(moments) is moments
    np.testing.assert_array_equal(moments.gram, release.matrix())
    filled = Moments.of(released(tmp_path, missing="midpoint"))
    assert not filled.complete_groups
    assert filled.known_null_space.shape[1] == 0


def test_a_clip_is_noticed(tmp_path: Path) -> None:
    release = released(tmp_path, clip=2.0)
    assert Moments.of(release).clipped
    with pytest.warns(DpgramWarning, match="clipped to the radius 2"):
        release.regress("charges", on=["age"]).conf_int()


def test_persons_are_noticed(tmp_path: Path) -> None:
    moments = replace(Moments.of(released(tmp_path)), unit="person")
    assert any("'person'" in caution for caution in regress(moments, "charges").inference().cautions)
    assert not regress(moments, "charges").inference("table").cautions

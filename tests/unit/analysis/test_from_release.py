"""From a published file to an answer: units, weights, groups, adjacency and clip arrive intact."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
from tests.flat import publish
from tests.unit.analysis.tables import insurance, insurance_schema

import dpgram as dg
from dpgram.analysis.design import build_design
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.pooling import pool, union
from dpgram.analysis.regress import regress
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import gram
from dpgram.errors import AnalysisError, DpgramWarning
from dpgram.lattice import cell_unit
from dpgram.noise import SymmetricGaussian
from dpgram.release import Release, load

TABLE = insurance(20_000)
FEATURES = ["age", "bmi", "smoker", "active"]
COLUMNS = [TABLE["age"], TABLE["bmi"], TABLE["smoker"] == "yes", TABLE["smoker"] == "former", TABLE["active"]]
TRUTH = sm.OLS(TABLE["charges"], np.column_stack([np.ones(20_000), *COLUMNS]).astype(float)).fit()


def released(tmp_path: Path, **options: object) -> Release:
    settings = {"epsilon": 1.0, "delta": 1e-6, "entropy": SeededEntropy(5)} | options
    schema = insurance_schema(weights=True, derived=True)
    release = publish(pd.DataFrame(TABLE), schema, **settings)
    release.save(tmp_path / "release.json", overwrite=True)
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


@pytest.mark.parametrize(
    ("unit_rows", "told", "caution"),
    [
        (None, "all rows of one 'person' together", "count 1/m each"),
        (3, "at most 3 rows of one", "at most 3"),
    ],
)
def test_persons_are_noticed(unit_rows: int | None, told: str, caution: str) -> None:
    persons = {"person": np.arange(20_000) // 4, **TABLE}
    release = publish(
        pd.DataFrame(persons), insurance_schema(), epsilon=5.0, delta=1e-6, unit="person",
        unit_rows=unit_rows, entropy=SeededEntropy(5), adaptive=False,
    )  # fmt: skip
    fit = release.regress("charges", on=["age"])
    for kind in ("population", "table"):
        found = fit.inference(kind)
        assert told in found.meaning
        assert any(caution in one for one in found.cautions)
    assert any("depend on each other" in one for one in fit.inference().cautions)


def test_survey_weights_are_named() -> None:
    weighted = {"w": np.ones(20_000), **TABLE}
    release = publish(
        pd.DataFrame(weighted), insurance_schema(), epsilon=5.0, delta=1e-6, weight=dg.numeric("w", 0, 1),
        entropy=SeededEntropy(5), adaptive=False,
    )  # fmt: skip
    found = release.regress("charges", on=["age"]).inference("table")
    assert found.meaning.endswith("rows weighted by 'w'")
    assert not found.cautions


def test_intervals_for_the_table_hold_the_clipped_table() -> None:
    """Many rows are longer than 1.05. What is estimated is what the meaning names, not the table."""
    x = np.random.default_rng(1).uniform(-1.0, 1.0, 20_000) ** 3
    rows = {"x": x, "y": np.where(x > 0.0, x, 0.0)}
    schema = dg.Schema(dg.numeric("x", -1, 1), dg.numeric("y", -1, 1))
    exact = gram(rows, schema, 1.05).cells.astype(float) * cell_unit(1.05)
    quiet = EncodedNoise.of(SymmetricGaussian(sigma=1e-9))
    whole = Moments(gram=np.tril(exact) + np.tril(exact, -1).T, schema=schema, noise=quiet, radius=1.05)
    clipped = infer(whole, build_design(whole, "y"), "table").estimate
    table = np.linalg.lstsq(np.column_stack([np.ones(20_000), x]), rows["y"], rcond=None)[0]
    hits = np.zeros((2, 2))
    for seed in range(40):
        release = publish(
            rows, schema, epsilon=2.0, delta=1e-6, clip=1.05, entropy=SeededEntropy(seed), adaptive=False
        )
        found = release.regress("y").inference("table")
        ends = found.conf_int()
        hits += [(ends[:, 0] <= truth) & (truth <= ends[:, 1]) for truth in (clipped, table)]
    assert "rows longer than 1.05 scaled down" in found.meaning
    assert any("clipped, reweighted rows" in caution for caution in found.cautions)
    assert (hits[0] >= 35).all()  # P(Binomial(40, 0.95) < 35) is 1.4%, and the seeds are fixed
    assert hits[1].min() == 0


@pytest.fixture(scope="module")
def learnt() -> Release:
    schema = dg.Schema(
        dg.numeric("age", 18, 90), dg.numeric("bmi", 10, 60), dg.numeric("charges"),
        dg.product("age", "charges"),
    )  # fmt: skip
    return publish(
        pd.DataFrame(TABLE),
        schema,
        epsilon=5.0,
        delta=1e-6,
        bounds_budget=0.2,
        entropy=SeededEntropy(5),
        adaptive=False,
    )


class TestLearntBounds:
    """Values beyond learnt bounds were moved: another table, and no interval for its population."""

    @pytest.mark.parametrize(
        ("target", "on"), [("charges", ["age"]), ("bmi", ["charges"]), ("bmi", ["age*charges"])]
    )
    def test_the_population_is_refused_and_the_table_named(
        self, learnt: Release, target: str, on: list[str]
    ) -> None:
        fit = learnt.regress(target, on=on)
        refusal = fit.inference().refusal
        assert refusal is not None
        assert "public bounds" in refusal
        for ask in (
            fit.conf_int, fit.cov_params, lambda: fit.bse, fit.rsquared_estimate, fit.bootstrap,
            lambda: fit.get_prediction({"age": [40.0], "charges": [1e4]}),
            lambda: learnt.partial_correlation(target, on[0], []),
        ):  # fmt: skip
            with pytest.raises(AnalysisError, match="learnt"):
                ask()
        assert "No intervals: bounds of columns in this regression were learnt" in fit.summary()
        found = fit.inference("table")
        assert found.refusal is None
        assert found.meaning.endswith("values outside learnt bounds moved to them")
        assert any("moved values" in caution for caution in found.cautions)
        assert 0.0 <= fit.rsquared_estimate("table").estimate <= 1.0
        assert fit.residual_variance().estimate > 0.0
        assert "moved" in str(learnt.partial_correlation(target, on[0], [], kind="table"))

    def test_columns_with_public_bounds_keep_theirs(self, learnt: Release) -> None:
        fit = learnt.regress("bmi", on=["age"])
        assert fit.inference().refusal is None
        assert not any("moved" in caution for caution in fit.inference("table").cautions)

    def test_what_is_of_the_moved_values_is_called_by_its_name(self, learnt: Release) -> None:
        for found, what in (
            (learnt.correlation(["age", "charges"]), "correlations"),
            (learnt.partial_correlation("age", "charges", [], kind="table"), "correlations"),
            (learnt.describe(["charges"]), "means and deviations"),
            (learnt.covariance(["age", "charges"]), "covariances"),
            (learnt.pca(on=["age", "charges"]), "components"),
        ):
            (told,) = (caution for caution in found.cautions if "moved" in caution)
            assert f"moved to them: {what} are those of the moved values" in told
            assert ("no interval here" in told) == (what not in ("covariances", "components"))
        for found in (learnt.correlation(["age", "bmi"]), learnt.covariance(["age", "bmi"])):
            assert not any("moved" in caution for caution in found.cautions)
        assert not any("moved" in caution for caution in learnt.pca(on=["age", "bmi"]).cautions)

    def test_releases_put_together_stay_refused(self, learnt: Release) -> None:
        fixed = replace(Moments.of(learnt), learnt_bounds=frozenset())
        both = union([fixed, Moments.of(learnt)])
        assert regress(both, "charges", ["age"]).inference().refusal is not None
        with pytest.raises(AnalysisError, match="learnt"):
            pool([learnt, Moments.of(learnt)], "charges", ["age"])

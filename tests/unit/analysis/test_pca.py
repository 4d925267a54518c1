"""Components of a clean matrix are numpy's; under noise the flag and the angle tell what is left of them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from tests.unit.analysis.tables import encode, exact_moments, insurance, insurance_schema

import dpgram as dg
from dpgram.analysis.estimand import difference_cautions
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.pca import UNSTABLE, pca
from dpgram.cli import run
from dpgram.errors import AnalysisError
from dpgram.noise import SymmetricGaussian
from dpgram.schema import Schema, categorical, numeric

TABLE = insurance(4000)


@pytest.mark.parametrize("standardise", [False, True])
def test_matches_numpy_without_noise(standardise: bool) -> None:
    schema = insurance_schema(weights=True)
    names = ["age", "bmi", "active", "charges"]
    columns = [schema.indices(name)[0] for name in names]
    rows = encode(schema, TABLE)[:, columns]
    reference = np.corrcoef(rows.T) if standardise else np.cov(rows.T, bias=True)
    values, vectors = np.linalg.eigh(reference)
    found = pca(exact_moments(schema, TABLE), on=names, standardise=standardise)
    np.testing.assert_allclose(found.variances, values[::-1], rtol=1e-9)
    np.testing.assert_allclose(np.abs(found.loadings), np.abs(vectors[:, ::-1]), atol=1e-9)
    np.testing.assert_allclose(found.explained, values[::-1] / values.sum(), rtol=1e-9)
    assert found.explained.sum() == pytest.approx(1.0)
    assert found.stable.all()
    np.testing.assert_allclose(found.sines, 0.0, atol=1e-12)


@pytest.mark.parametrize("standardise", [False, True])
def test_the_direction_in_which_no_group_can_vary_is_left_out(standardise: bool) -> None:
    """smoker=no + smoker=yes + smoker=former is one in every row: three levels have two components."""
    schema = insurance_schema()
    found = pca(exact_moments(schema, TABLE, sigma=20.0), on=["smoker"], standardise=standardise)
    assert found.names == ("smoker=no", "smoker=yes", "smoker=former")
    assert found.loadings.shape == (3, 2)
    np.testing.assert_allclose(found.loadings.T @ found.loadings, np.eye(2), atol=1e-12)
    levels = encode(schema, TABLE)[:, list(schema.indices("smoker"))]
    reference = np.corrcoef(levels.T) if standardise else np.cov(levels.T, bias=True)
    clean = pca(exact_moments(schema, TABLE), on=["smoker"], standardise=standardise)
    np.testing.assert_allclose(clean.variances, np.linalg.eigvalsh(reference)[:0:-1], rtol=1e-9)


def test_a_column_that_cannot_vary_is_refused() -> None:
    schema = Schema(categorical("only", ["this"]), numeric("x", -1, 1))
    table = {"only": np.full(50, "this"), "x": np.linspace(-1, 1, 50)}
    with pytest.raises(AnalysisError, match="nothing in these columns can vary"):
        pca(exact_moments(schema, table), on=["only"])
    assert len(pca(exact_moments(schema, table)).variances) == 1


def planted(spread: list[float], sigma: float, seed: int, rows: int = 4000) -> Moments:
    """Independent columns with the given standard deviations: the axes are the components."""
    rng = np.random.default_rng(seed)
    schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(len(spread))))
    data = np.column_stack([np.ones(rows), rng.uniform(-1, 1, (rows, len(spread))) * spread])
    gram = data.T @ data
    law = SymmetricGaussian(sigma=sigma)
    return Moments(gram=law.redraw(gram, rng), schema=schema, noise=EncodedNoise.of(law), radius=9.0)


def test_expected_angles_match_simulation() -> None:
    spread = [1.0, 0.8, 0.55, 0.3]
    squares, predicted = [], []
    for seed in range(300):
        found = pca(planted(spread, 40.0, seed, rows=3000))
        squares.append(1 - np.abs(np.diagonal(found.loadings)) ** 2)
        predicted.append(found.sines**2)
    np.testing.assert_allclose(np.median(predicted, axis=0), np.mean(squares, axis=0), rtol=0.3)


@pytest.mark.parametrize(("sigma", "stable"), [(2.0, True), (150.0, False)])
def test_the_flag_tells_gaps_inside_the_noise(sigma: float, stable: bool) -> None:
    """x0 and x1 have almost the same variance: only little noise leaves them apart."""
    found = pca(planted([1.0, 0.93, 0.4], sigma, 0), k=2)
    assert found.stable.tolist() == [stable, stable]
    assert ("NO" in found.summary()) == (not stable)
    assert found.loadings.shape == (3, 2)
    assert len(found.spectrum) == 3


def test_flagged_components_are_turned_further_than_stable_ones() -> None:
    turned = {True: [], False: []}
    for seed in range(60):
        found = pca(planted([1.0, 0.93, 0.55, 0.2], 60.0, seed))
        for i in range(4):
            turned[bool(found.stable[i])].append(1 - found.loadings[i, i] ** 2)
    assert np.mean(turned[True]) < 0.05
    assert np.mean(turned[False]) > 2 * np.mean(turned[True])


def test_equal_variances_are_flagged_although_noise_drives_them_apart() -> None:
    """Components of equal variance mean nothing; of 50 releases at most 3 may say otherwise."""
    called_stable = sum(bool(pca(planted([1.0, 1.0, 0.3], 60.0, seed), k=1).stable[0]) for seed in range(50))
    assert called_stable <= 3


def test_the_frame_and_text() -> None:
    found = pca(exact_moments(insurance_schema(), TABLE, sigma=5.0), k=3)
    frame = found.to_frame()
    assert frame["explained"].to_list() == found.explained.tolist()
    assert "charges" in frame.columns
    assert str(found).count("°") == 3


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"k": 0}, "out of range"),
        ({"k": 99}, "out of range"),
        ({"k": 1.5}, "not a whole number; got 1.5; limit: 1 to"),
        ({"on": "age"}, "must be a list"),
        ({"on": []}, "no columns"),
    ],
)
def test_mistakes_are_named(options: dict, words: str) -> None:
    with pytest.raises(AnalysisError, match=words):
        pca(exact_moments(insurance_schema(), TABLE), **options)


def test_drowned_columns_cannot_be_standardised() -> None:
    with pytest.raises(AnalysisError, match="x2"):
        pca(planted([1.0, 0.9, 0.01], 30.0, 0), standardise=True)
    with pytest.raises(AnalysisError, match="noisy number of rows"):
        pca(planted([1.0, 0.9], 4000.0, 1))
    moments = exact_moments(Schema(numeric("a", 0, 1), constant=False), {"a": np.array([0.1, 0.4])})
    with pytest.raises(AnalysisError, match="no constant column"):
        pca(moments)


VECTORS = Path(__file__).resolve().parents[3] / "conformance" / "vectors"


def test_components_and_covariances_say_that_their_influence_is_bounded(
    capsys: pytest.CaptureFixture[str],
) -> None:
    adaptive, plain = (VECTORS / f"{kind}.dpgram.json" for kind in ("adaptive", "plain"))
    for path, bounded in ((adaptive, True), (plain, False)):
        components, covariance = dg.load(path).pca(2), dg.load(path).covariance(["age", "charges"])
        for found, what in ((components, "components"), (covariance, "covariances")):
            told = f"{what} are those of bounded influence"
            assert any(told in caution for caution in found.cautions) == bounded
            assert (told in " ".join(str(found).split())) == bounded
            assert not any("interval" in caution for caution in found.cautions)  # there are none
        assert ("bounded influence" in covariance._repr_html_()) == bounded
        assert run(["pca", str(path), "--json"]) == 0
        assert json.loads(capsys.readouterr().out)["cautions"] == list(components.cautions)


def test_cautions_speak_of_what_was_asked() -> None:
    moments = Moments.of(dg.load(VECTORS / "persons.dpgram.json"))
    for of, they in (("regression", "coefficients"), ("components", "components")):
        told = " ".join(difference_cautions(moments, "table", of=of))
        assert f"count 1/m each: {they} are those of rows so weighted" in told


def test_the_note_on_stability_is_folded_as_one_text() -> None:
    found = pca(exact_moments(insurance_schema(), TABLE, sigma=300.0))
    assert not found.stable.all()
    lines = found.summary().splitlines()
    note = lines[lines.index("", 3) + 1 :]
    assert " ".join(note) == UNSTABLE
    assert len(note) == 2

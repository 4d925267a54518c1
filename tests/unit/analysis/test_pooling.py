"""Several releases: inverse-variance weights, honest heterogeneity, unions that are the union's release."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from tests.unit.analysis.tables import exact_moments, insurance, insurance_schema

from dpgram.analysis.design import build_design
from dpgram.analysis.inference import infer
from dpgram.analysis.moments import Moments
from dpgram.analysis.pooling import average, compare, pool, union
from dpgram.analysis.regress import regress
from dpgram.core.noise import SeededEntropy
from dpgram.errors import AnalysisError
from dpgram.publishing import publish_with
from dpgram.release import Release
from dpgram.schema import Schema, numeric

SCHEMA = insurance_schema()
ON = ["age", "bmi", "smoker"]


def site(seed: int, n: int = 4000, sigma: float = 25.0, shift: float = 0.0) -> Moments:
    table = insurance(n, seed)
    table["charges"] = table["charges"] + shift * (table["age"] - 54)
    return exact_moments(SCHEMA, table, sigma=sigma, seed=seed)


def test_pooling_one_release_changes_nothing() -> None:
    one = site(0)
    alone = infer(one, build_design(one, "charges", ON))
    pooled = pool([one], "charges", ON)
    np.testing.assert_allclose(pooled.inference.estimate, alone.estimate, rtol=1e-9)
    np.testing.assert_allclose(pooled.inference.std_errors, alone.std_errors, rtol=1e-9)
    assert (pooled.heterogeneity_degrees, pooled.heterogeneity_p_value) == (0, 1.0)


def test_weights_are_inverse_variances() -> None:
    good, poor = site(0, sigma=5.0), site(1, sigma=60.0)
    pooled = pool([good, poor], "charges", ["age"]).inference
    parts = [infer(one, build_design(one, "charges", ["age"])) for one in (good, poor)]
    precision = sum(np.linalg.inv(one.covariance) for one in parts)
    expected = np.linalg.solve(precision, sum(np.linalg.solve(one.covariance, one.estimate) for one in parts))
    np.testing.assert_allclose(pooled.estimate, expected, rtol=1e-6)
    assert (pooled.std_errors < parts[0].std_errors).all()


def test_pooled_intervals_cover_and_heterogeneity_has_its_level() -> None:
    """100 sets of three sites of one population: coverage 90–99%, Q rejects at 5% between 0 and 12 times."""
    truth = regress(exact_moments(SCHEMA, insurance(400_000, 999)), "charges", ON, method="ols").values
    hits, rejections = [], 0
    for repeat in range(100):
        sites = [site(1000 + 3 * repeat + i, n=3000, sigma=20.0) for i in range(3)]
        pooled = pool(sites, "charges", ON)
        ends = pooled.inference.conf_int()
        hits.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
        rejections += pooled.heterogeneity_p_value < 0.05
    assert 0.92 <= np.mean(hits) <= 0.98
    assert rejections <= 12


def test_heterogeneity_is_noticed() -> None:
    pooled = pool([site(0), site(1, shift=250.0)], "charges", ON)
    assert pooled.heterogeneity_p_value < 1e-3
    assert "Do the releases differ?" in str(pooled)


def test_comparison_finds_a_difference_and_only_that() -> None:
    different = compare(site(0), site(1, shift=300.0), "charges", ON)
    ages = different.difference.names.index("age")
    assert different.difference.p_values()[ages] < 1e-4
    low, high = different.difference.conf_int()[ages]
    assert low < -300 < high
    assert different.joint.pvalue < 1e-4
    assert "difference" in str(different)
    same = compare(site(0), site(1), "charges", ON)
    assert same.joint.pvalue > 0.01


def lacking(seed: int, *levels: str) -> Moments:
    """A site whose noisy counts show no rows with these levels, as those of an adaptive release do."""
    return replace(site(seed, n=8000, sigma=5.0), empty_levels=frozenset(levels))


REGIONS = ["age", "region"]
EAST = {"region": "east"}


@pytest.mark.parametrize("levels", [[("region=west",), ()], [("region=west",), ("region=south",)]])
def test_a_level_without_rows_in_one_site_comes_from_the_others(levels: list[tuple[str, ...]]) -> None:
    """Coefficients were put together by their places: those of other levels, or a traceback."""
    sites = [lacking(seed, *own) for seed, own in enumerate(levels)]
    pooled = pool(sites, "charges", REGIONS, reference=EAST)
    found = pooled.inference
    assert set(found.names) == {"(intercept)", "age", "region=north", "region=south", "region=west"}
    parts = [infer(one, build_design(one, "charges", REGIONS, reference=EAST)) for one in sites]
    picks = [np.array([[mine == name for name in found.names] for mine in one.names], float) for one in parts]
    inverses = [np.linalg.inv(one.covariance) for one in parts]
    covariance = np.linalg.inv(sum(s.T @ c @ s for s, c in zip(picks, inverses, strict=True)))
    toward = sum(s.T @ c @ one.estimate for s, c, one in zip(picks, inverses, parts, strict=True))
    np.testing.assert_allclose(found.estimate, covariance @ toward, rtol=1e-6)
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-6)
    assert pooled.heterogeneity_degrees == sum(len(one.names) for one in parts) - 5
    west = found.names.index("region=west")
    (low, high), (own,) = found.conf_int()[west], (p for p in parts if "region=west" in p.names)
    assert low < own.estimate[own.names.index("region=west")] < high
    assert "show no rows to speak of with" in str(pooled)
    assert "the others tell of them" in " ".join(str(pooled).split())


def test_levels_that_only_one_site_has_are_not_compared() -> None:
    one, other = lacking(0, "region=west"), lacking(1, "region=south")
    found = compare(one, other, "charges", REGIONS, reference=EAST)
    assert found.difference.names == ("(intercept)", "age", "region=north")
    assert found.joint.df_num == 3
    for name in found.difference.names:
        parts = [infer(each, build_design(each, "charges", REGIONS, reference=EAST)) for each in (one, other)]
        mine, theirs = (each.names.index(name) for each in parts)
        place = found.difference.names.index(name)
        assert found.difference.estimate[place] == pytest.approx(
            parts[0].estimate[mine] - parts[1].estimate[theirs]
        )
        variance = parts[0].covariance[mine, mine] + parts[1].covariance[theirs, theirs]
        assert found.difference.covariance[place, place] == pytest.approx(variance)
    told = " ".join(str(found).split())
    assert "no rows to speak of with region=south, region=west: they are not compared" in told


def test_a_comparison_has_the_cautions_of_its_releases() -> None:
    schema, table = insurance_schema(), insurance(6000, 2)
    halves = [{name: column[i::2] for name, column in table.items()} for i in range(2)]
    asked = {"epsilon": 4.0, "delta": 1e-6, "progress": False}
    both = [
        publish_with(half, schema, entropy=SeededEntropy(seed), **asked)[0]
        for seed, half in enumerate(halves)
    ]
    found = compare(*both, "charges", ["age"])
    assert found.difference.cautions
    assert all(caution in " ".join(str(found).split()) for caution in found.difference.cautions)
    assert max(map(len, str(found).splitlines())) <= 80


def test_a_release_is_given_once_and_releases_as_a_list() -> None:
    """Its rows counted twice, so that intervals were too narrow by √2; a dict was a traceback."""
    (one,) = publish_with(
        insurance(3000), SCHEMA, entropy=SeededEntropy(0), epsilon=4.0, delta=1e-6, progress=False
    )
    for ask in (lambda r: pool(r, "charges", ["age"]), union, average):
        with pytest.raises(AnalysisError, match="same release is given twice"):
            ask([one, Release.from_json(one.to_json())])
        with pytest.raises(AnalysisError, match=r"as a list; got a dict. Give its .values\(\)"):
            ask({"north": one, "south": one})
        ask([one])
    with pytest.raises(AnalysisError, match="same release is given twice"):
        compare(one, one, "charges", ["age"])


def test_union_is_the_release_of_all_rows() -> None:
    a, b = insurance(2000, 5), insurance(3000, 6)
    whole = {name: np.concatenate([a[name], b[name]]) for name in a}
    joined = union([exact_moments(SCHEMA, a), exact_moments(SCHEMA, b)])
    np.testing.assert_allclose(joined.gram, exact_moments(SCHEMA, whole).gram, rtol=1e-12)
    noisy = union([site(0, sigma=3.0), site(1, sigma=4.0)])
    assert noisy.noise.diagonal_sd == pytest.approx(5.0)
    rng = np.random.default_rng(0)
    draws = [noisy.noise.redraw(np.zeros((SCHEMA.width,) * 2), rng)[0, 0] for _ in range(2000)]
    assert np.std(draws) == pytest.approx(5.0, rel=0.07)
    assert regress(noisy, "charges", ON).conf_int()


def test_average_of_two_releases_of_a_table_has_less_noise() -> None:
    table = insurance(3000)
    first, second = (exact_moments(SCHEMA, table, sigma=s, seed=i) for i, s in enumerate([30.0, 60.0]))
    both = average([first, second])
    assert both.noise.diagonal_sd == pytest.approx((1 / (1 / 30**2 + 1 / 60**2)) ** 0.5)
    np.testing.assert_allclose(both.gram, 0.8 * first.gram + 0.2 * second.gram)
    one, other = (infer(m, build_design(m, "charges", ON), "table").std_errors for m in (first, both))
    assert (other < one).all()
    with pytest.raises(AnalysisError, match="different radii"):
        average([first, replace(second, radius=1.0)])


def test_sites_too_noisy_alone_are_left_out_with_a_caution_or_refused() -> None:
    hopeless = site(3, n=300, sigma=800.0)
    pooled = pool([site(0), hopeless], "charges", ON)
    assert pooled.used == 1
    assert any("left out" in caution for caution in pooled.inference.cautions)
    with pytest.raises(AnalysisError, match="union"):
        pool([hopeless, hopeless], "charges", ON)
    with pytest.raises(AnalysisError, match="cannot be compared"):
        compare(site(0), hopeless, "charges", ON)


def test_only_one_schema() -> None:
    other = exact_moments(
        Schema(numeric("age", 0, 120), numeric("charges", 0, 1)), {"age": np.ones(3), "charges": np.ones(3)}
    )
    with pytest.raises(AnalysisError, match="different schemas"):
        pool([site(0), other], "charges", ["age"])
    with pytest.raises(AnalysisError, match="no releases"):
        union([])


def test_matrices_in_different_coordinates_are_not_added() -> None:
    table = insurance(4000, 1)
    half = {name: column[:2000] for name, column in table.items()}
    asked = {"epsilon": 4.0, "delta": 1e-6, "progress": False}
    first, second = (
        publish_with(data, SCHEMA, entropy=SeededEntropy(seed), **asked)[0]
        for seed, data in enumerate([table, half])
    )
    assert first.coordinates != second.coordinates
    for add in (union, average):
        with pytest.raises(AnalysisError, match="different coordinates"):
            add([first, second])
        assert add([first]).lift is not None
    assert pool([first, second], "charges", ON).used == 2

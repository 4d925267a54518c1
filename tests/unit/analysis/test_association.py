"""Correlations: the textbook's without noise, honest intervals with it, and no noise told as a fact."""

from __future__ import annotations

import numpy as np
import pytest
from tests.unit.analysis.tables import encode, exact_moments, insurance, insurance_schema

from dpgram.analysis.association import correlations, partial_correlation
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.analysis.pca import pca
from dpgram.errors import AnalysisError
from dpgram.noise import EntrywiseLaplace
from dpgram.schema import Schema, boolean, categorical, legendre, numeric, product

TABLE = insurance(4000)
SCHEMA = insurance_schema()


def textbook(given: list[str]) -> float:
    rows = encode(SCHEMA, TABLE)
    x = rows[:, [0, *(i for name in given for i in SCHEMA.indices(name))]]
    residuals = [
        rows[:, i] - x @ np.linalg.lstsq(x, rows[:, i], rcond=None)[0]
        for i in (SCHEMA.indices("age")[0], SCHEMA.indices("charges")[0])
    ]
    return float(residuals[0] @ residuals[1] / np.linalg.norm(residuals[0]) / np.linalg.norm(residuals[1]))


@pytest.mark.parametrize("given", [[], ["bmi"], ["bmi", "smoker", "active"]])
def test_matches_the_textbook_without_noise(given: list[str]) -> None:
    found = partial_correlation(exact_moments(SCHEMA, TABLE), "age", "charges", given)
    assert found.estimate == pytest.approx(textbook(given), rel=1e-9)
    assert found.std_error == pytest.approx((1 - found.estimate**2) / (4000 - 1) ** 0.5, rel=0.01)
    same = partial_correlation(exact_moments(SCHEMA, TABLE), "charges", "age", given)
    assert same.estimate == pytest.approx(found.estimate, rel=1e-12)


def test_all_others_are_given_by_default() -> None:
    found = partial_correlation(exact_moments(SCHEMA, TABLE), "age", "charges")
    assert found.given == ("bmi", "smoker", "active", "region")
    level = partial_correlation(exact_moments(SCHEMA, TABLE), "smoker=yes", "charges")
    assert level.given == ("age", "bmi", "active", "region")
    assert level.estimate > 0.5


def test_intervals_cover_under_noise() -> None:
    """300 releases of one table: coverage within 93–97% (two-sided 95%)."""
    truth = textbook(["bmi", "active"])
    hits, estimates = [], []
    for seed in range(300):
        moments = exact_moments(SCHEMA, TABLE, sigma=6.0, seed=seed)
        found = partial_correlation(moments, "age", "charges", ["bmi", "active"], kind="table")
        low, high = found.conf_int()
        hits.append(low <= truth <= high)
        estimates.append(found.estimate)
    assert 0.93 <= np.mean(hits) <= 0.97
    assert np.mean(estimates) == pytest.approx(truth, abs=4 * np.std(estimates) / 17)


def test_no_association_and_strong_association() -> None:
    moments = exact_moments(SCHEMA, TABLE, sigma=5.0)
    assert partial_correlation(moments, "age", "charges", []).p_value < 1e-10
    assert partial_correlation(moments, "age", "bmi", []).p_value > 0.01
    low, high = partial_correlation(moments, "age", "bmi", []).conf_int(0.99)
    assert -1 < low < 0 < high < 1
    assert "given bmi" in str(partial_correlation(moments, "age", "charges", ["bmi"]))


def test_refusals() -> None:
    drowned = exact_moments(SCHEMA, insurance(500), sigma=900.0)
    with pytest.raises(AnalysisError, match="no partial correlation"):
        partial_correlation(drowned, "age", "charges")
    with pytest.raises(AnalysisError, match="unknown kind"):
        partial_correlation(drowned, "age", "charges", kind="all")


@pytest.mark.parametrize(("on", "got"), [([], "got none"), (["age"], "got age alone")])
def test_one_column_has_no_correlations(on: list[str], got: str) -> None:
    with pytest.raises(AnalysisError, match=f"takes two columns; {got}. Name two at least, or none"):
        correlations(exact_moments(SCHEMA, TABLE), on)


def test_a_column_has_no_correlation_with_itself() -> None:
    with pytest.raises(AnalysisError, match="two different columns; got charges twice"):
        partial_correlation(exact_moments(SCHEMA, TABLE), "charges", "charges", ["age"])


def test_matrix_is_that_of_numpy_without_noise() -> None:
    found = correlations(exact_moments(SCHEMA, TABLE))
    rows = encode(SCHEMA, TABLE)[:, 1:]
    np.testing.assert_allclose(found.estimate, np.corrcoef(rows.T), atol=1e-12)
    assert found.names == SCHEMA.names[1:]
    assert found.hidden == ()
    np.testing.assert_array_equal(np.asarray(found), found.estimate)


def test_matrix_and_pair_are_one() -> None:
    """The partial correlation given nothing, and the cell of the matrix."""
    moments = exact_moments(SCHEMA, TABLE, sigma=12.0)
    for kind in ("population", "table"):
        found = correlations(moments, kind=kind)
        for left, right in (("age", "charges"), ("smoker=yes", "charges"), ("active", "region=east")):
            one, cell = partial_correlation(moments, left, right, [], kind=kind), found.pair(left, right)
            assert cell.estimate == pytest.approx(one.estimate, rel=1e-10)
            assert cell.std_error == pytest.approx(one.std_error, rel=1e-10)
            assert cell.conf_int(0.9) == pytest.approx(one.conf_int(0.9), rel=1e-10)


def test_noise_variance_is_that_of_the_law() -> None:
    """Also for entrywise Laplace noise, whose diagonal and other cells have the same size."""
    rows = encode(SCHEMA, TABLE)
    law = EntrywiseLaplace(scale=4.0, diagonal_scale=4.0)
    noise = EncodedNoise.of(law)
    rng = np.random.default_rng(8)
    radius = SCHEMA.max_norm_squared**0.5
    drawn = [
        correlations(
            Moments(gram=noise.redraw(rows.T @ rows, rng), schema=SCHEMA, noise=noise, radius=radius),
            kind="table",
        )
        for _ in range(600)
    ]
    spread = np.std([found.estimate for found in drawn], axis=0)
    told = np.median([found.std_error for found in drawn], axis=0)
    distinct = told > 1e-9
    assert distinct.sum() > 70
    np.testing.assert_allclose(told[distinct], spread[distinct], rtol=0.15)


def empty_level(rows: int) -> tuple[Schema, dict[str, np.ndarray]]:
    rng = np.random.default_rng(2)
    names = ["north", "south", "east", "west", "nobody"]
    schema = Schema(
        *(numeric(f"x{i}", -1, 1) for i in range(4)), boolean("member"), categorical("region", names)
    )
    common = rng.normal(0, 0.2, rows)
    table = {f"x{i}": (0.4 * common + rng.normal(0, 0.25, rows)).clip(-1, 1) for i in range(4)}
    member = common > 0.1
    return schema, table | {"member": member, "region": rng.choice(names[:4], rows)}


def test_a_level_that_no_row_has_is_never_among_the_strongest() -> None:
    """Its variance is noise and so would be all its correlations: large ones, in two releases of three."""
    schema, table = empty_level(3_000)
    top = naive = 0
    for seed in range(100):
        moments = exact_moments(schema, table, sigma=15.0, seed=seed)
        found = correlations(moments)
        assert "region=nobody" in found.hidden
        assert np.isnan(found.estimate[found.names.index("region=nobody")]).all()
        top += any("nobody" in pair.left + pair.right for pair in found.strongest(10))
        naive += _naive_top(moments)
        assert found.strongest(1)[0].conf_int()[0] > 0
    assert top == 0
    assert naive > 50  # what the same releases showed before correlations had intervals


def _naive_top(moments: Moments) -> bool:
    """Whether the level is among the ten largest of the covariance with its eigenvalues made positive."""
    gram, n = moments.consistent_gram, moments.rows
    values, vectors = np.linalg.eigh(gram[1:, 1:] - np.outer(gram[0, 1:], gram[0, 1:]) / n)
    spread = (vectors * np.maximum(values, 0)) @ vectors.T
    deviation = np.sqrt(np.diagonal(spread))
    matrix = np.abs(spread / np.outer(deviation, deviation))
    names, sources = moments.schema.names[1:], [c.source for c in moments.schema.encoded[1:]]
    pairs = [
        (matrix[i, j], names[i] + names[j])
        for i in range(len(names))
        for j in range(i)
        if sources[i] != sources[j]
    ]
    return any("nobody" in pair for _, pair in sorted(pairs, reverse=True)[:10])


def test_what_the_noise_hides_is_refused_by_name() -> None:
    schema, table = empty_level(3_000)
    found = correlations(exact_moments(schema, table, sigma=15.0))
    with pytest.raises(AnalysisError, match="'region=nobody' does not stand clear of the noise"):
        found.pair("x0", "region=nobody")
    assert "Hidden by the noise: region=nobody." in found.summary()
    frame = found.to_frame()
    assert frame.filter(frame["right"] == "region=nobody")["low"].null_count() == 9
    with pytest.raises(AnalysisError, match="named twice"):
        correlations(exact_moments(schema, table), ["x0", "x0"])
    with pytest.raises(AnalysisError, match="list of column names"):
        correlations(exact_moments(schema, table), "x0")


def test_nothing_is_strong_where_nothing_is_related() -> None:
    rng = np.random.default_rng(4)
    schema = Schema(numeric("a", -1, 1), numeric("b", -1, 1))
    found = correlations(exact_moments(schema, {"a": rng.uniform(-1, 1, 500), "b": rng.uniform(-1, 1, 500)}))
    assert found.strongest() == ()
    assert "every interval includes zero" in str(found)


def test_products_and_powers_are_left_out_unless_they_are_named() -> None:
    """Of numbers below the middle of their range the centred product falls where the raw one rises."""
    rng = np.random.default_rng(5)
    table = {"a": rng.uniform(2, 30, 5_000), "b": rng.uniform(2, 30, 5_000)}
    schema = Schema(numeric("a", 0, 100), numeric("b", 0, 100), product("a", "b"), legendre("a", 2))
    moments = exact_moments(schema, table)
    assert correlations(moments).names == pca(moments).names == ("a", "b")
    raw = np.corrcoef(table["a"], table["a"] * table["b"])[0, 1]
    centred = np.corrcoef(table["a"], (table["a"] - 50) * (table["b"] - 50))[0, 1]
    assert centred < 0 < raw
    for spelt, power in (("a:b", "a^2"), ("a*b", "a^P2")):  # as it is printed, as it was declared
        found = correlations(moments, ["a", spelt, power])
        assert found.names == ("a", "a:b", "a^2")
        assert found.pair("a", spelt).estimate == pytest.approx(raw, rel=1e-6)
        assert found.pair("a", power).estimate == pytest.approx(
            np.corrcoef(table["a"], table["a"] ** 2)[0, 1]
        )
        assert "Products" not in " ".join(found.notes())
        assert pca(moments, 1, ["a", spelt]).names == ("a", "a*b")
        assert partial_correlation(moments, "a", spelt, []).estimate == pytest.approx(raw, rel=1e-6)


def test_what_stands_for_itself_about_the_middle_is_called_so() -> None:
    """A third power without the second cannot be told as that of the values."""
    schema = Schema(numeric("a", 0, 100), numeric("b", 0, 100), legendre("a", 3))
    rng = np.random.default_rng(5)
    moments = exact_moments(schema, {"a": rng.uniform(2, 30, 5_000), "b": rng.uniform(2, 30, 5_000)})
    found = correlations(moments, ["b", "a^P3"])
    assert found.names == ("b", "a^P3")
    assert "Products and powers (a^P3) are those of columns less the middle" in " ".join(found.notes())

"""Counts, means and deviations: numpy's without noise, honest intervals with it."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from tests.flat import publish
from tests.unit.analysis.tables import encode, insurance, insurance_schema

from dpgram.analysis.description import Description, _centred, _column, _level_count, _row_count, describe
from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.demo import insurance as demo
from dpgram.errors import AnalysisError
from dpgram.noise import SymmetricGaussian
from dpgram.privacy import SeededEntropy
from dpgram.release import Release
from dpgram.schema import Schema, numeric, product

ROWS = 4_000
TABLE = insurance(ROWS)
SCHEMA = insurance_schema()


@pytest.fixture(scope="module")
def release() -> Release:
    return publish(TABLE, SCHEMA, epsilon=2.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(1))


def truth(name: str) -> np.ndarray:
    if "=" in name:
        column, level = name.split("=")
        return (TABLE[column] == level).astype(float)
    return TABLE[name].astype(float)


def test_without_noise_it_is_numpys(release: Release) -> None:
    rows = encode(SCHEMA, TABLE)
    quiet = Moments(
        gram=rows.T @ rows,
        schema=SCHEMA,
        noise=EncodedNoise.of(SymmetricGaussian(sigma=1e-9)),
        radius=release.radius,
    )
    constant = quiet.constant_vector()
    places = range(1, SCHEMA.width)
    found = _centred(quiet, constant, places)
    for k, place in enumerate(places):
        column = _column(quiet, constant, place, found, k, 1.96, "population", 1.0)
        values = truth(column.name)
        assert column.mean.estimate == pytest.approx(values.mean(), rel=1e-9)
        assert column.mean.std_error == pytest.approx(values.std(ddof=1) / ROWS**0.5, rel=1e-6)
        assert column.deviation.estimate == pytest.approx(values.std(ddof=1), rel=1e-9)
        if column.count is not None:
            assert column.count.estimate == pytest.approx(values.sum())
    assert _row_count(quiet, constant)[0] == pytest.approx(ROWS)
    assert _level_count(quiet, constant, SCHEMA.names.index("active"))[0] == pytest.approx(
        TABLE["active"].sum()
    )


def test_intervals_for_the_table_cover() -> None:
    """150 releases: every number of the table is inside its 95% interval in 93 to 97 of 100 cases."""
    hits: list[bool] = []
    for seed in range(150):
        found = describe(
            publish(
                TABLE, SCHEMA, epsilon=2.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(seed)
            ),
            kind="table",
        )
        hits.append(found.rows.low <= ROWS <= found.rows.high)
        for column in found.columns:
            values = truth(column.name)
            hits.append(column.mean.low <= values.mean() <= column.mean.high)
            hits.append(column.deviation.low <= values.std(ddof=1) <= column.deviation.high)
            if column.count is not None:
                hits.append(column.count.low <= values.sum() <= column.count.high)
    assert len(hits) > 4_000
    assert 0.93 <= np.mean(hits) <= 0.97


def test_what_it_says(release: Release) -> None:
    found = describe(release)
    told = str(found)
    assert "smoker=yes" in told
    assert "for the population" in told
    assert "<table>" in found._repr_html_()
    assert found["smoker=yes"].count is not None
    assert found["age"].count is None
    frame = found.to_frame()
    assert frame.shape == (len(SCHEMA.encoded) - 1, 12)
    assert frame["count"].null_count() == 3
    table = describe(release, ["age"], kind="table")
    assert table["age"].mean.std_error < found["age"].mean.std_error
    assert isinstance(dataclasses.replace(table, level=0.9), Description)


def test_it_fits_a_terminal() -> None:
    """Counts go below means and deviations where all three are too wide side by side."""
    table, schema = demo.table(20_000, 1), demo.schema()
    release = publish(table, schema, epsilon=1.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(0))
    found = describe(release)
    lines = str(found).splitlines()
    assert max(map(len, lines)) <= 80
    told = " ".join(str(found).split())
    for column in found.columns:
        if column.count is not None:
            assert f"{column.name} {column.count.estimate:,.0f} {column.count.low:,.0f}" in told
        assert f"{column.name} {column.mean.estimate:.5g} {column.mean.low:.5g}" in told
    narrow = str(describe(release, ["smoker"]))
    assert "deviation" in narrow.splitlines()[2]
    assert "count" in narrow.splitlines()[2]


def test_refusals(release: Release) -> None:
    with pytest.raises(AnalysisError, match="no column 'height'"):
        describe(release)["height"]
    with pytest.raises(AnalysisError, match="is a probability"):
        describe(release, level=95)
    with pytest.raises(AnalysisError, match="list of column names"):
        describe(release, "age")
    schema = Schema(numeric("a", 0, 1), numeric("b", 0, 1), product("a", "b"))
    table = {"a": np.linspace(0, 1, 2_000), "b": np.linspace(1, 0, 2_000)}
    derived = publish(table, schema, epsilon=5.0, delta=1e-6, mechanism="gaussian", entropy=SeededEntropy(0))
    with pytest.raises(AnalysisError, match="products and polynomials"):
        describe(derived, [schema.names[-1]])
    assert [column.name for column in describe(derived).columns] == ["a", "b"]

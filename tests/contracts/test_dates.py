"""Dates with a public range, from raw table to prediction: a coefficient is per day, from every source."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.core.noise import SeededEntropy

SCHEMA = dg.Schema(dg.numeric("joined", "2010-01-01", "2019-12-31"), dg.numeric("fee", 0, 100))


def members(rows: int = 4_000) -> pa.Table:
    """The fee grows by one in a hundred days; some dates lie outside the range, some are missing."""
    draw = np.random.default_rng(1)
    days = draw.integers(0, 3_650, rows)
    fee = 20.0 + days / 100.0 + draw.normal(0.0, 2.0, rows)
    joined = np.datetime64("2010-01-01") + days
    joined[:5], joined[5:10] = np.datetime64("1890-01-01"), np.datetime64("NaT")
    return pa.table({"joined": joined.astype("datetime64[D]"), "fee": fee})


def released(data: object) -> dg.Release:
    return publish(
        data, SCHEMA, epsilon=8.0, delta=1e-6, entropy=SeededEntropy(1), progress=False, adaptive=False
    )


def test_from_table_to_prediction() -> None:
    release = released(members())
    assert dg.Release.from_json(release.to_json()) == release
    assert release.schema.to_dict()["columns"][0] == {  # JSON has no narrower type
        "kind": "numeric",
        "name": "joined",
        "low": "2010-01-01",
        "high": "2019-12-31",
    }
    fit = release.regress("fee")
    assert fit.fitted_params["joined"] == pytest.approx(0.01, abs=5e-4)
    for day in ("2015-01-01", date(2015, 1, 1), np.datetime64("2015-01-01")):
        (found,) = fit.predict({"joined": [day]})
        assert found == pytest.approx(20.0 + 18.26, abs=0.5)


def test_every_source_gives_the_same_bits(tmp_path: Path) -> None:
    table = members(500)
    ours = released(table).published
    pq.write_table(table, tmp_path / "t.parquet")
    pc.write_csv(table, tmp_path / "t.csv")
    moments = table.set_column(0, "joined", table["joined"].cast(pa.timestamp("ns")))
    texts = table.set_column(0, "joined", table["joined"].cast(pa.string()))
    for data in (tmp_path / "t.parquet", tmp_path / "t.csv", table.to_pandas(), moments, texts):
        assert released(data).published == ours

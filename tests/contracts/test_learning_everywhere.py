"""Learning goes with every engine and every way rows can count, and gives the same bits everywhere.

With one seed the noise is the same, so releases are equal to the last digit exactly where the integers that
each pass adds up are: of rows in any order, in parts of any size, in threads, processes and databases.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.flat import publish

from dpgram.core.noise import SeededEntropy
from dpgram.document.fields import MeasuredZoom
from dpgram.engines.base import Engine
from dpgram.engines.dask import DaskEngine
from dpgram.engines.local import LocalEngine
from dpgram.engines.spark import SparkEngine
from dpgram.mechanisms import Auto
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release
from dpgram.schema import Schema, categorical, numeric
from dpgram.testing import cut

OPEN = Schema(numeric("x"), numeric("y"), categorical("g"), numeric("z", 0, 10))
BY, WEIGHT = categorical("region", ["north", "south"]), numeric("w", 0, 4)
BLOCKS = [["x", "y"], ["y", "g", "z"]]
WAYS: dict[str, dict[str, Any]] = {
    "rows": {},
    "rows, replace-one": {"adjacency": "replace-one"},
    "pure": {"delta": 0.0, "schema": Schema(numeric("x"), numeric("y"))},
    "positive semidefinite": {
        "mechanism": Auto(semidefinite=True),
        "schema": Schema(numeric("x"), numeric("y")),
    },
    "weights": {"weight": WEIGHT},
    "groups": {"by": BY},
    "blocks": {"blocks": BLOCKS},
    "blocks, pure but for levels": {"blocks": BLOCKS, "mechanism": "matrix-laplace"},
    "persons": {"unit": "id"},
    "persons, replace-one": {"unit": "id", "adjacency": "replace-one"},
    "persons with weights": {"unit": "id", "weight": WEIGHT},
    "persons in groups": {"unit": "id", "by": BY},
    "persons in blocks with weights": {"unit": "id", "blocks": BLOCKS, "weight": WEIGHT},
    "four rows a person": {"unit": "id", "unit_rows": 4},
    "four rows a person in groups with weights": {"unit": "id", "unit_rows": 4, "by": BY, "weight": WEIGHT},
}
FEW = ["persons in blocks with weights", "four rows a person in groups with weights"]
"""Where a pass takes seconds: both have units, whose rows must come together, and all else between them."""


def people(rows: int = 4_000) -> pa.Table:
    """Persons of many sizes whose rows lie far apart; some cells, ids, groups and weights are missing."""
    draw = np.random.default_rng(11)
    x, place = draw.normal(100.0, 5.0, rows), np.arange(rows)
    return pa.table(
        {
            "x": pa.array(x, mask=place % 61 == 0),
            "y": 2.0 * x + draw.normal(0.0, 3.0, rows),
            "g": pa.array(draw.choice(["a", "b", "c"], rows, p=[0.5, 0.3, 0.2]), mask=place % 67 == 0),
            "z": draw.uniform(-1.0, 11.0, rows),
            "id": pa.array(place * 7919 % 1_777, mask=place % 71 == 0),
            "region": draw.choice(["north", "south", "elsewhere"], rows, p=[0.5, 0.45, 0.05]),
            "w": pa.array(draw.uniform(1.0, 5.0, rows), mask=place % 73 == 0),
        }
    )


TABLE = people()


def released(data: Any, way: str, **options: Any) -> tuple[Release, ...]:
    given: dict[str, Any] = {"schema": OPEN, "epsilon": 4.0, "delta": 1e-6} | WAYS[way]
    schema: Schema = given["schema"]
    given["levels_budget"] = 0.15 if schema.without_levels else None
    given |= {"bounds_budget": 0.2, "entropy": SeededEntropy(5), "progress": False}
    found: Any = publish(data, **given | options)
    several = found.values() if isinstance(found, Mapping) else found if isinstance(found, tuple) else [found]
    return tuple(several)


_LOCAL: dict[str, tuple[Release, ...]] = {}


def on_one_thread(way: str) -> tuple[Release, ...]:
    """Of the table in memory, whole and in order."""
    if way not in _LOCAL:
        _LOCAL[way] = released(TABLE, way, engine=LocalEngine(threads=1))
    return _LOCAL[way]


def agree(found: Sequence[Release], way: str) -> None:
    """Whole releases are equal: what was learnt, the matrices, and all that is said of them."""
    local = on_one_thread(way)
    for one, other in zip(found, local, strict=True):
        assert one.measured == other.measured
        assert one.schema == other.schema
        assert one.radius == other.radius
        assert one.coordinates == other.coordinates
        assert one.published == other.published
    assert tuple(found) == local


def parts() -> list[pa.Table]:
    """Not in order, very uneven, one of them empty."""
    shuffled = TABLE.take(pa.array(np.random.default_rng(3).permutation(TABLE.num_rows)))
    return cut(shuffled, [900, 0, 2_899, 1, 200])


def written(folder: Path) -> list[str]:
    paths = [str(folder / f"part-{number}.parquet") for number in range(len(parts()))]
    for part, path in zip(parts(), paths, strict=True):
        pq.write_table(part, path, row_group_size=250)
    return paths


@pytest.mark.parametrize("way", WAYS)
def test_every_way_learns_and_says_so(way: str) -> None:
    schema: Schema = WAYS[way].get("schema", OPEN)
    for release in on_one_thread(way):
        assert Release.from_json(release.to_json()) == release
        kinds = [type(each).__name__ for each in release.measured]
        levels = ["MeasuredLevels"] if schema.without_levels else []
        later = ["MeasuredHistograms", "MeasuredMatrix", "MeasuredReach", "MeasuredClip"]
        if way == "positive semidefinite":  # one matrix
            assert kinds == ["MeasuredRows", "MeasuredOctaves", "MeasuredBins"]
        else:
            # Columns that noise makes look wide may be looked at again, after their histograms.
            closer = ["MeasuredZoom"] * kinds.count("MeasuredZoom")
            assert kinds == [*levels, "MeasuredOctaves", later[0], *closer, *later[1:]]
            assert release.coordinates is not None
        assert not release.schema.unbounded
        assert not release.schema.without_levels


@pytest.mark.parametrize("way", WAYS)
def test_files_read_by_threads(way: str, tmp_path: Path) -> None:
    agree(released(written(tmp_path), way, engine=LocalEngine(threads=3)), way)


@pytest.mark.parametrize("way", WAYS)
def test_duckdb(way: str) -> None:
    duckdb = pytest.importorskip("duckdb", reason="the extra 'duckdb' is not installed")
    connection = duckdb.connect()
    connection.register("arrow", pa.concat_tables(parts()))
    connection.execute("CREATE TABLE people AS SELECT * FROM arrow")
    agree(released((connection, "SELECT * FROM people ORDER BY z"), way), way)


def dask_frame() -> Any:
    dask = pytest.importorskip("dask", reason="the extra 'dask' is not installed")
    dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
    import pandas as pd

    frames = [part.to_pandas(types_mapper=pd.ArrowDtype) for part in parts()]
    return dd.from_delayed([dask.delayed(frame) for frame in frames], meta=frames[0].iloc[:0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("form", ["frame", "row groups"])
def test_dask(way: str, form: str, tmp_path: Path) -> None:
    data = dask_frame() if form == "frame" else written(tmp_path)
    engine = DaskEngine(scheduler="threads", buckets=3)
    agree(released(data, way, engine=engine), way)


@pytest.mark.parametrize(
    "way", [way if way in FEW else pytest.param(way, marks=pytest.mark.full) for way in WAYS]
)
def test_a_dask_cluster(way: str, dask_client: Any, tmp_path: Path) -> None:
    agree(released(written(tmp_path), way, engine=DaskEngine(scheduler=dask_client)), way)


@pytest.mark.parametrize(
    "way", [way if way in FEW else pytest.param(way, marks=pytest.mark.full) for way in WAYS]
)
def test_spark(way: str, spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(*written(tmp_path))
    agree(released(frame, way, engine=SparkEngine(session=spark, buckets=3)), way)


def test_other_seeds_give_other_bits() -> None:
    """What is compared here does depend on the noise and on every row."""
    (release,) = on_one_thread("persons")
    (other,) = released(TABLE, "persons", entropy=SeededEntropy(6))
    assert not set(release.measured) & set(other.measured)
    (fewer,) = released(TABLE.slice(2), "persons")
    assert fewer.published != release.published


class Watched:
    """An engine that counts its passes and notes how much had been charged before each."""

    passes: int | None = None

    def __init__(self, inner: Engine, charges: Callable[[], int]) -> None:
        self.name, self._inner, self._charges = inner.name, inner, charges
        self.seen: list[int] = []

    def accepts(self, data: object) -> bool:
        return self._inner.accepts(data)

    def add_up(self, data: object, work: Any, *, progress: Any = None) -> Any:
        self.seen.append(self._charges())
        return self._inner.add_up(data, work, progress=progress)


@pytest.mark.parametrize("engine", ["local", "dask"])
@pytest.mark.parametrize("way", FEW)
def test_one_charge_whatever_reads(way: str, engine: str, tmp_path: Path) -> None:
    """Charged before anything is drawn of the first pass; then counts, closer looks, and matrices."""
    ledger = Ledger.create(
        tmp_path / "a.ledger", name="a", epsilon=9.0, delta=1e-5, unit="id", delta_reserved=2e-6
    )
    there = set(tmp_path.iterdir())
    inner: Engine = LocalEngine(threads=1) if engine == "local" else DaskEngine(scheduler="threads")
    data = TABLE if engine == "local" else dask_frame()
    watched = Watched(inner, lambda: len(Ledger.open(ledger.path).history()))
    found = released(data, way, engine=watched, ledger=ledger, entropy=None)
    looks = sum(isinstance(each, MeasuredZoom) for each in found[0].measured)
    assert watched.seen == [0, *[1] * (3 + looks)]
    assert len(ledger.history()) == 1
    assert all([each.entry for each in release.receipts] == [1] for release in found)
    assert ledger.verify(found).unclaimed == ()
    assert set(tmp_path.iterdir()) == there

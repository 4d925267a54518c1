"""Every engine passes the contract of `dpgram.testing`; lost workers and failing tasks cost nothing."""

from __future__ import annotations

import functools
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from tests.flat import publish

from dpgram.engines import local
from dpgram.engines.base import Engine
from dpgram.engines.dask import DaskEngine
from dpgram.engines.find import find_engine
from dpgram.engines.local import LocalEngine
from dpgram.engines.spark import SparkEngine
from dpgram.errors import DpgramError, SourceError
from dpgram.privacy.ledger import Ledger
from dpgram.schema import Schema, numeric
from dpgram.sums.exact_gram import ExactGram
from dpgram.testing import SCHEMA, EngineContract, contract_pass, contract_table, cut, gram_by


def write(parts: Sequence[pa.Table], folder: Path) -> list[str]:
    paths = [str(folder / f"part-{number}.parquet") for number in range(len(parts))]
    for part, path in zip(parts, paths, strict=True):
        pq.write_table(part, path, row_group_size=250)
    return paths


def pandas_part(part: pa.Table) -> Any:
    import pandas as pd

    return part.to_pandas(types_mapper=pd.ArrowDtype)


def pandas_part_that_fails_once(part: pa.Table, marker: Path) -> Any:
    if not marker.exists():
        marker.touch()
        raise OSError("the machine failed")
    return pandas_part(part)


def dask_frame(parts: Sequence[pa.Table], marker: Path | None = None) -> Any:
    import dask
    import dask.dataframe as dd

    delayed = [dask.delayed(pandas_part)(part) for part in parts]
    if marker is not None:
        delayed[1] = dask.delayed(pandas_part_that_fails_once)(parts[1], marker)
    return dd.from_delayed(delayed, meta=pandas_part(parts[0]).iloc[:0], verify_meta=False)


class TestLocal(EngineContract):
    def engine(self) -> Engine:
        return LocalEngine(threads=2)

    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return write(parts, folder)


class _OnDask:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")


class TestDaskThreadsFrame(_OnDask, EngineContract):
    def engine(self) -> Engine:
        return DaskEngine(scheduler="threads")

    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return dask_frame(parts)


class TestDaskThreadsRowGroups(_OnDask, EngineContract):
    def engine(self) -> Engine:
        return DaskEngine(scheduler="threads", buckets=3)

    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return write(parts, folder)


class _OnCluster:
    client: Any

    @pytest.fixture(autouse=True)
    def connected(self, dask_client: Any) -> None:
        self.client = dask_client

    def engine(self) -> Engine:
        return DaskEngine(scheduler=self.client)


class TestDaskClusterFrame(_OnCluster, EngineContract):
    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return dask_frame(parts)

    def flaky(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return dask_frame(parts, folder / "failed once")


class TestDaskClusterRowGroups(_OnCluster, EngineContract):
    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return write(parts, folder)


@pytest.mark.filterwarnings("ignore:The inplace keyword")  # of pandas, used by Dask
@pytest.mark.parametrize("given", ["list", "pattern", "folder"])
def test_a_file_twice_in_a_dask_frame(given: str, tmp_path: Path) -> None:
    dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
    engine, work = DaskEngine(scheduler="threads"), contract_pass("shares")
    file, *others = write(cut(contract_table(90), (50, 40)), tmp_path)
    assert engine.add_up(dd.read_parquet([file, *others]), work) == LocalEngine().add_up(
        [file, *others], work
    )
    os.link(file, tmp_path / "again.parquet")
    data = {"list": [file, *others, file], "pattern": f"{tmp_path}/*.parquet", "folder": str(tmp_path)}[given]
    with pytest.raises(SourceError, match="the same rows would be counted twice"):
        engine.add_up(dd.read_parquet(data), work)


@pytest.mark.full
class TestDaskProcesses(_OnDask, EngineContract):
    def engine(self) -> Engine:
        return DaskEngine(scheduler="processes")

    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return dask_frame(parts)


class _OnSpark:
    session: Any

    @pytest.fixture(autouse=True)
    def connected(self, spark: Any) -> None:
        self.session = spark

    def engine(self) -> Engine:
        return SparkEngine(session=self.session, buckets=3)


class TestSparkFrame(_OnSpark, EngineContract):
    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        frames = [self.session.read.parquet(path) for path in write(parts, folder)]
        return functools.reduce(lambda a, b: a.unionByName(b, allowMissingColumns=True), frames)

    def flaky(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        frame = self.place(parts, folder)
        marker = folder / "failed once"

        # Inside this method, so that it is sent to workers by value: they cannot import tests.
        def fails_once(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            if not marker.exists():
                marker.touch()
                raise OSError("the machine failed")
            yield from batches

        return frame.mapInArrow(fails_once, frame.schema)


def test_spark_row_groups(spark: Any, tmp_path: Path) -> None:
    table = contract_table(2000)
    engine, paths = SparkEngine(session=spark, buckets=3), write(cut(table, [900, 0, 1100]), tmp_path)
    assert gram_by(engine, paths, SCHEMA) == local.gram(table, SCHEMA)
    assert engine.add_up(paths, contract_pass("units")) == local.add_up(table, contract_pass("units"))


def test_spark_reads_no_earlier_versions_of_a_table(spark: Any, tmp_path: Path) -> None:
    write([contract_table(30)], tmp_path)
    frame = spark.read.parquet(str(tmp_path))
    SparkEngine().add_up(frame, contract_pass("rows"))
    (tmp_path / "_delta_log").mkdir()
    for engine, data in ((SparkEngine(), frame), (SparkEngine(session=spark), tmp_path)):
        with pytest.raises(SourceError, match="the folder of a Delta table"):
            engine.add_up(data, contract_pass("rows"))


@pytest.mark.full
class TestSparkRowGroups(_OnSpark, EngineContract):
    def place(self, parts: Sequence[pa.Table], folder: Path) -> Any:
        return write(parts, folder)


class TestWorkerKilled:
    """A Dask worker process is killed while it holds a task, and its results with it."""

    @staticmethod
    def held_part(part: pa.Table, marks: Path, killed: Path) -> Any:
        """Says which process holds it, until one that holds a part is killed."""
        (marks / f"{os.getpid()}").touch()
        while not killed.exists():
            time.sleep(0.01)
        return pandas_part(part)

    @pytest.fixture
    def cluster(self) -> Iterator[Any]:
        distributed = pytest.importorskip("distributed", reason="the extra 'dask' is not installed")
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address="127.0.0.1:0", memory_limit=0
            ) as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
        ):
            yield client

    def test_same_bits_and_one_charge(self, cluster: Any, tmp_path: Path) -> None:
        import threading

        import dask
        import dask.dataframe as dd

        table = contract_table(1200)
        marks, killed = tmp_path / "running", tmp_path / "killed"
        marks.mkdir()
        parts = cut(table, [100] * 12)
        delayed = [dask.delayed(self.held_part)(part, marks, killed) for part in parts]
        frame = dd.from_delayed(delayed, meta=pandas_part(table.slice(0, 0)), verify_meta=False)

        def kill() -> None:
            while not (found := list(marks.iterdir())):
                time.sleep(0.01)
            os.kill(int(found[0].name), signal.SIGKILL)
            killed.touch()

        ledger = Ledger.create(tmp_path / "some.ledger", name="contract", epsilon=4.0, delta=1e-5)
        killer = threading.Thread(target=kill)
        killer.start()
        counts: list[Any] = []
        publish(
            frame,
            SCHEMA,
            epsilon=1.0,
            delta=1e-6,
            ledger=ledger,
            engine=DaskEngine(scheduler=cluster),
            report=lambda report: counts.append(report.counts),
            adaptive=False,
        )
        killer.join()
        assert killed.exists()
        assert counts == [local.gram(table, SCHEMA).counts]
        assert len(ledger.history()) == 1

    def test_a_task_that_kills_every_worker_is_a_clear_error(self, cluster: Any, tmp_path: Path) -> None:
        import dask
        import dask.dataframe as dd

        def deadly(part: pa.Table) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

        table = contract_table(30)
        cluster.run_on_scheduler(lambda dask_scheduler: setattr(dask_scheduler, "allowed_failures", 0))
        frame = dd.from_delayed(
            [dask.delayed(deadly)(table)], meta=pandas_part(table.slice(0, 0)), verify_meta=False
        )
        ledger = Ledger.create(tmp_path / "some.ledger", name="contract", epsilon=4.0, delta=1e-5)
        with pytest.raises(DpgramError, match="lost the workers"):
            publish(
                frame,
                SCHEMA,
                epsilon=1,
                delta=1e-6,
                ledger=ledger,
                engine=DaskEngine(scheduler=cluster),
                adaptive=False,
            )
        assert ledger.history() == ()


def test_spark_tasks_that_always_fail_are_a_clear_error(spark: Any, tmp_path: Path) -> None:
    frame = spark.read.parquet(*write([contract_table(30)], tmp_path))

    def always_fails(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        raise OSError("secret 0.123")
        yield

    ledger = Ledger.create(tmp_path / "some.ledger", name="contract", epsilon=4.0, delta=1e-5)
    with pytest.raises(DpgramError, match="Spark gave up on the job") as raised:
        publish(
            frame.mapInArrow(always_fails, frame.schema),
            SCHEMA,
            epsilon=1,
            delta=1e-6,
            ledger=ledger,
            adaptive=False,
        )
    assert "secret" not in str(raised.value)
    assert ledger.history() == ()


ABSENT = (
    "scipy", "sklearn", "polars", "pandas", "opendp", "flint", "threadpoolctl", "typer", "rich",
    "dask", "duckdb",
)  # fmt: skip
WORKER = """
import sys
class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {absent!r}:
            raise ImportError(name)
sys.meta_path.insert(0, Absent())
import pyarrow.parquet as pq
from dpgram.engines.spark import _frame_batches, _merge_sums, _outcome, _sum_batches
from dpgram.rows.encoder import Encoder
from dpgram.engines.passes import gram_pass
from dpgram.schema import Schema
work = gram_pass(Encoder(Schema.from_file({schema!r})))
sums = _sum_batches(work, _frame_batches, iter(pq.read_table({table!r}).to_batches()), numbered_parts=True)
(merged,) = _merge_sums(sums)
sys.stdout.write(_outcome(merged.to_pylist()[0])[0].to_bytes().hex())
"""


def test_workers_need_little(tmp_path: Path) -> None:
    """What a Spark worker runs, where nothing is installed but pyarrow, numpy, msgspec and dpgram."""
    table = contract_table(500)
    (path,) = write([table], tmp_path)
    SCHEMA.to_file(tmp_path / "schema.toml")
    program = WORKER.format(absent=ABSENT, schema=str(tmp_path / "schema.toml"), table=path)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ExactGram.from_bytes(bytes.fromhex(done.stdout)) == local.gram(table, SCHEMA)


CONNECT = """
import sys
import pyarrow.parquet as pq
from pyspark.sql import SparkSession
from dpgram.engines import local, spark
from dpgram.engines.find import find_engine
from dpgram.testing import SCHEMA, contract_pass, gram_by
session = SparkSession.builder.remote("local[2]").getOrCreate()
assert "connect" in type(session).__module__
path, plan = sys.argv[1], contract_pass("units")
table, frame = pq.read_table(path), session.read.parquet(path)
assert find_engine("auto", frame).name == "spark"
assert gram_by(spark.SparkEngine(), frame, SCHEMA) == local.gram(table, SCHEMA)
assert gram_by(spark.SparkEngine(session=session), path, SCHEMA) == local.gram(table, SCHEMA)
assert spark.SparkEngine().add_up(frame, plan) == local.add_up(table, plan)
"""


@pytest.mark.full
def test_spark_connect(tmp_path: Path) -> None:
    """In a process of its own: a Connect server and a classic session do not fit into one."""
    pytest.importorskip("pyspark", reason="the extra 'spark' is not installed")
    pytest.importorskip("grpc", reason="Spark Connect needs pyspark[connect]")
    if shutil.which("java") is None:
        pytest.skip("there is no Java for Spark")
    (path,) = write([contract_table(1000)], tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", CONNECT, path],
        env={**os.environ, "PYSPARK_PYTHON": sys.executable},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


class TestFinding:
    def test_by_type(self, tmp_path: Path) -> None:
        dd = pytest.importorskip("dask.dataframe", reason="the extra 'dask' is not installed")
        import dask.array as da
        import pandas as pd

        frame = pd.DataFrame({"a": [0.5, -0.5]})
        assert find_engine("auto", frame).name == "local"
        assert find_engine("auto", "some.parquet").name == "local"
        assert find_engine("auto", dd.from_pandas(frame, npartitions=1)).name == "dask"
        assert find_engine("auto", da.ones((4, 1))).name == "dask"
        assert find_engine("local", frame, threads=3) == LocalEngine(threads=3)

    def test_spark_by_type(self, spark: Any) -> None:
        assert find_engine("auto", spark.range(3)).name == "spark"

    def test_object(self) -> None:
        engine = DaskEngine(scheduler="processes")
        assert find_engine(engine, None) is engine

    def test_threads_of_another_engine(self) -> None:
        with pytest.raises(DpgramError, match="threads is an option of the local engine"):
            find_engine("dask", None, threads=2)

    @pytest.mark.parametrize("engine", ["hadoop", 7, None])
    def test_no_engine(self, engine: object) -> None:
        with pytest.raises(DpgramError, match="engine"):
            find_engine(engine, None)

    def test_by_entry_point(self, monkeypatch: pytest.MonkeyPatch) -> None:
        from importlib.metadata import EntryPoint

        from dpgram.engines import find

        point = EntryPoint("other", f"{__name__}:OtherEngine", find.ENTRY_POINT_GROUP)
        monkeypatch.setattr(
            find, "entry_points", lambda group: [point] if group == find.ENTRY_POINT_GROUP else []
        )
        monkeypatch.setattr(EntryPoint, "load", lambda _: OtherEngine)
        assert find_engine("other", None).name == "other"
        assert find_engine("auto", OtherTable()).name == "other"
        assert find_engine("auto", [1.0]).name == "local"


class OtherTable:
    """A kind of table that only a foreign engine knows."""


class OtherEngine:
    name = "other"

    def accepts(self, data: object) -> bool:
        return isinstance(data, OtherTable)

    def add_up(self, *_: object, **__: object) -> None: ...


class TestDask:
    def test_arrays(self) -> None:
        da = pytest.importorskip("dask.array", reason="the extra 'dask' is not installed")
        rows = np.linspace(-1.2, 1.2, 3000).reshape(1000, 3)
        schema = Schema(*(numeric(name, -1, 1) for name in "abc"))
        expected = local.gram(rows, schema)
        engine = DaskEngine(scheduler="threads")
        assert gram_by(engine, da.from_array(rows, chunks=(170, 2)), schema) == expected
        unknown = da.from_array(rows, chunks=(300, 3))
        assert gram_by(engine, unknown[unknown[:, 0] > -9], schema) == expected

    def test_datasets(self, tmp_path: Path) -> None:
        pytest.importorskip("dask", reason="the extra 'dask' is not installed")
        table = contract_table(800)
        pq.write_to_dataset(table, tmp_path, partition_cols=["g"])
        data = ds.dataset(
            tmp_path, partitioning=ds.partitioning(pa.schema([("g", pa.string())]), flavor="hive")
        )
        engine = DaskEngine(scheduler="threads")
        assert gram_by(engine, data, SCHEMA) == local.gram(table, SCHEMA)
        plan = contract_pass("shares")
        assert engine.add_up(data, plan) == engine.add_up(str(tmp_path), plan) == local.add_up(table, plan)

    def test_progress(self, tmp_path: Path) -> None:
        pytest.importorskip("dask", reason="the extra 'dask' is not installed")
        seen: list[int] = []
        engine = DaskEngine(scheduler="threads")
        gram_by(engine, write(cut(contract_table(600), [200, 400]), tmp_path), SCHEMA, progress=seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == 600

    def test_progress_of_a_cluster(self, dask_client: Any, tmp_path: Path) -> None:
        seen: list[int] = []
        engine = DaskEngine(scheduler=dask_client)
        gram_by(engine, write(cut(contract_table(600), [200, 400]), tmp_path), SCHEMA, progress=seen.append)
        assert seen == sorted(seen)
        assert seen[-1] == 600

    def test_what_only_this_process_can_read(self) -> None:
        pytest.importorskip("dask", reason="the extra 'dask' is not installed")
        with pytest.raises(SourceError, match="only this process"):
            gram_by(DaskEngine(scheduler="threads"), contract_table(10), SCHEMA)

    def test_no_scheduler(self) -> None:
        pytest.importorskip("dask", reason="the extra 'dask' is not installed")
        with pytest.raises(DpgramError, match="not a Dask scheduler"):
            gram_by(DaskEngine(scheduler="sometimes"), contract_table(10), SCHEMA)

    def test_many_parts_merge_in_a_tree(self, tmp_path: Path) -> None:
        pytest.importorskip("dask", reason="the extra 'dask' is not installed")
        table = contract_table(400)
        paths = write(cut(table, [10] * 40), tmp_path)
        assert gram_by(DaskEngine(scheduler="threads"), paths, SCHEMA) == local.gram(table, SCHEMA)

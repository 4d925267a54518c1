"""Reading ahead is bounded and can be stopped, memory does not grow with rows, metadata show no value."""

from __future__ import annotations

import gc
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from dpgram.errors import SourceError
from dpgram.schema import starter_toml
from dpgram.sources import column_types, open_source
from dpgram.sources.base import read_ahead

SECRET = "secret4711"
FOR_EVER = 300
"""Seconds, on the busiest machine."""


class Producer:
    """Counts what was asked of it, and fails or waits where told."""

    def __init__(self, items: int, fail_at: int | None = None) -> None:
        self.items, self.fail_at, self.made = items, fail_at, 0

    def __call__(self) -> Iterator[int]:
        for item in range(self.items):
            if item == self.fail_at:
                raise LookupError("no more")
            self.made = item + 1
            yield item


def until(condition: Callable[[], bool]) -> bool:
    """Whether the condition ever comes true."""
    end = time.monotonic() + FOR_EVER
    while not condition() and time.monotonic() < end:
        time.sleep(0.001)
    return condition()


Threads = Callable[[], list[threading.Thread]]


@pytest.fixture
def reading_threads() -> Threads:
    """Those that read ahead, but for what an earlier test may have left to the collector."""
    before = threading.enumerate()
    return lambda: [
        thread
        for thread in threading.enumerate()
        if thread.name == "dpgram-read-ahead" and thread not in before
    ]


@pytest.mark.parametrize("depth", [1, 3])
def test_reading_ahead_goes_as_far_as_it_may_and_no_further(depth: int, reading_threads: Threads) -> None:
    producer = Producer(50)
    stream = read_ahead(producer, depth)
    for taken, item in enumerate(stream, start=1):
        assert item == taken - 1
        ahead = min(50, taken + depth + 1)  # `depth` wait in the queue, one more is held by the producer
        assert until(lambda ahead=ahead: producer.made == ahead)
        assert producer.made <= ahead
    assert not reading_threads()


def test_the_failure_of_a_producer_reaches_the_consumer_after_what_came_before(
    reading_threads: Threads,
) -> None:
    stream = read_ahead(Producer(10, fail_at=4))
    assert [next(stream) for _ in range(4)] == [0, 1, 2, 3]
    with pytest.raises(LookupError, match="no more"):
        next(stream)
    assert not reading_threads()


def test_a_consumer_that_stops_early_stops_the_producer(reading_threads: Threads) -> None:
    producer = Producer(1_000_000)
    stream = read_ahead(producer)
    next(stream)
    stream.close()
    assert not reading_threads()
    assert producer.made < 10


def test_feeds_are_safe_for_threads() -> None:
    values = np.arange(200_000.0)
    source = open_source({"x": values}, ["x"], batch_rows=100)
    totals: list[float] = []

    def work(feed: Iterator[tuple[int, pa.RecordBatch]]) -> None:
        totals.append(sum(float(np.sum(batch.column(0).to_numpy())) for _, batch in feed))

    workers = [threading.Thread(target=work, args=(feed,)) for feed in source.feeds(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert sum(totals) == values.sum()


def test_workers_share_the_last_partition(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": np.arange(1_000.0)}), tmp_path / "t.parquet")
    source = open_source(tmp_path / "t.parquet", ["x"], batch_rows=10)
    first, second = source.feeds(2)
    assert [next(first)[0], next(second)[0], next(first)[0]] == [0, 10, 20]


def test_row_groups_are_partitions_of_a_fair_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpgram.sources.parquet.PARTITION_ROWS", 250)
    pq.write_table(pa.table({"x": np.arange(1_000.0)}), tmp_path / "t.parquet", row_group_size=100)
    source = open_source(tmp_path / "t.parquet", ["x"])
    assert [part.first_row for part in source.partitions()] == [0, 200, 400, 600, 800]
    parts = [[batch.column(0)[0].as_py() for batch in part.read()] for part in source.partitions()]
    assert parts == [[0.0], [200.0], [400.0], [600.0], [800.0]]


PEAK = """
import sys
import pyarrow as pa
from dpgram.sources import open_source
from concurrent.futures import ThreadPoolExecutor

def work(feed):
    return sum(batch.num_rows for _, batch in feed)

source = open_source(sys.argv[1], [f"c{i}" for i in range(8)], batch_rows=8192)
with ThreadPoolExecutor(2) as pool:
    rows = sum(pool.map(work, source.feeds(2)))
print(rows, pa.default_memory_pool().max_memory())
"""


def peak(path: Path) -> tuple[int, int]:
    """Rows read and the most memory Arrow ever held, in a process of its own."""
    done = subprocess.run([sys.executable, "-c", PEAK, path], check=True, capture_output=True, text=True)
    rows, memory = map(int, done.stdout.split())
    return rows, memory


def test_memory_does_not_grow_with_rows(tmp_path: Path) -> None:
    generator = np.random.default_rng(2)
    group = pa.table({f"c{i}": generator.uniform(size=50_000) for i in range(8)})
    for groups in (30, 120):
        path = tmp_path / f"{groups}.parquet"
        with pq.ParquetWriter(path, group.schema, use_dictionary=False) as writer:
            for _ in range(groups):
                writer.write_table(group)
        rows, most = peak(path)
        assert rows == groups * 50_000
        assert most < 4 * group.nbytes, "a row group for each of two readers, and what is in hand"


def test_light_sources_import_nothing_heavy(tmp_path: Path) -> None:
    pq.write_table(pa.table({"x": np.arange(10.0)}), tmp_path / "t.parquet")
    script = (
        "import sys, numpy as np\nfrom dpgram.sources import open_source\n"
        "for data in (np.zeros((3, 1)), {'x': np.zeros(3)}, sys.argv[1]):\n"
        "    assert len(list(open_source(data, ['x'], kinds={'x': 'number'}).batches())) == 1\n"
        "heavy = {'pandas', 'polars', 'duckdb', 'pyarrow.dataset'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    subprocess.run([sys.executable, "-c", script, tmp_path / "t.parquet"], check=True)


TYPED = pa.table(
    {
        "age": pa.array([30.5]),
        "visits": pa.array([3], pa.int32()),
        "smoker": pa.array([SECRET]).dictionary_encode(),
        "name": pa.array([SECRET]),
        "member": pa.array([True]),
        "since": pa.array([0], pa.timestamp("us")),
    }
)
BASE = {"age": "double", "visits": "int32", "member": "bool", "since": "timestamp[us]"}


def file_of(table: pa.Table, folder: Path, name: str = "t.parquet") -> Path:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, folder / name)
    return folder / name


def csv_of(folder: Path) -> Path:
    (folder / "t.csv").write_text(f"age,smoker\n30.5,{SECRET}\n")
    return folder / "t.csv"


LARGE = {"smoker": "dictionary", "name": "large_string"}
SMALL = {"smoker": "dictionary", "name": "string"}
TYPES: dict[str, tuple[Callable[[Path], object], dict[str, str]]] = {
    "table": (lambda _: TYPED, BASE | SMALL),
    "reader": (lambda _: TYPED.to_reader(), BASE | SMALL),
    "dataset": (lambda _: ds.dataset(TYPED), BASE | SMALL),
    "parquet": (lambda folder: file_of(TYPED, folder), BASE | SMALL),
    "folder": (
        lambda folder: file_of(TYPED, folder, "y=1/t.parquet").parent,
        BASE | SMALL | {"y": "unknown"},
    ),
    # An older Arrow makes objects of texts, which are another type.
    "pandas": (lambda _: TYPED.to_pandas().astype({"name": "str"}), BASE | LARGE),
    "polars": (lambda _: pl.from_arrow(TYPED), BASE | LARGE),
    "polars query": (lambda _: pl.from_arrow(TYPED).lazy(), BASE | LARGE),
    "mapping": (lambda _: {name: TYPED[name] for name in TYPED.column_names}, BASE | SMALL),
    "relation": (
        lambda folder: duckdb.connect().from_parquet(str(file_of(TYPED, folder))),
        BASE | {"name": "string", "smoker": "string"},
    ),
    "enum": (
        lambda _: (":memory:", f"SELECT '{SECRET}'::ENUM('{SECRET}') AS smoker"),
        {"smoker": "dictionary"},
    ),
    "csv": (csv_of, {"age": "text", "smoker": "text"}),
    "objects": (lambda _: pd.DataFrame({"a": pd.Series([SECRET, 1], dtype=object)}), {"a": "unknown"}),
    "polars objects": (lambda _: pl.DataFrame({"a": pl.Series([1], dtype=pl.Object)}), {"a": "unknown"}),
    "lists": (lambda _: {"a": [SECRET], "b": np.zeros(1, "f4")}, {"a": "unknown", "b": "float"}),
    "structured": (
        lambda _: np.zeros(1, [("a", "i8"), ("b", "U5"), ("c", "O")]),
        {"a": "int64", "b": "string", "c": "unknown"},
    ),
    "series": (lambda _: {"a": pl.Series([1.0])}, {"a": "double"}),
}


@pytest.mark.parametrize("form", TYPES)
def test_column_types_come_from_metadata(form: str, tmp_path: Path) -> None:
    make, expected = TYPES[form]
    types = column_types(make(tmp_path))
    assert types == expected
    assert SECRET not in starter_toml(types)


def test_a_starter_schema_lists_the_columns_of_a_csv_file(tmp_path: Path) -> None:
    starter = starter_toml(column_types(csv_of(tmp_path)))
    assert 'kind = "numeric"\nname = "age"' in starter
    assert 'name = "smoker"' in starter


def test_column_types_leave_a_stream_unread() -> None:
    reader = TYPED.to_reader()
    column_types(reader)
    assert sum(batch.num_rows for batch in open_source(reader, ["age"]).batches()) == 1


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (np.zeros((2, 2)), "no column names"),
        (pa.Table.from_arrays([pa.array([1])] * 2, names=["a", "a"]), "several columns named 'a'"),
        (pd.DataFrame([[1, 2]], columns=["a", "a"]), "several columns named 'a'"),
        (object(), "cannot be read"),
    ],
)
def test_column_types_of_what_has_none(data: object, words: str) -> None:
    with pytest.raises(SourceError, match=words):
        column_types(data)


@pytest.mark.parametrize("data", [TYPED, TYPED.to_reader(), ds.dataset(TYPED), pl.from_arrow(TYPED).lazy()])
def test_descriptions_hold_no_value(data: object) -> None:
    source = open_source(data, ["age", "name"])
    assert source.describe().endswith(", 2 columns")
    assert source.columns == ("age", "name")
    assert SECRET not in source.describe()


class Cycle:
    """Holds a stream in a cycle, so that only the garbage collector can end it."""

    def __init__(self, stream: Iterator[object]) -> None:
        self.stream, self.itself = stream, self


def test_the_collector_may_end_a_forgotten_feed_while_another_is_reading() -> None:
    forgotten: list[Cycle] = []

    class Collecting:
        """A stream that runs the garbage collector inside the reader's lock."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            batch = pa.record_batch({"x": [1.0]})

            def batches() -> Iterator[pa.RecordBatch]:
                for _ in range(3):
                    yield batch
                forgotten.clear()
                gc.collect()
                yield batch

            return pa.RecordBatchReader.from_batches(batch.schema, batches()).__arrow_c_stream__(
                requested_schema
            )

    first, second = open_source(Collecting(), ["x"]).feeds(2)
    next(second)
    forgotten.append(Cycle(second))
    del second
    worker = threading.Thread(target=lambda: list(first), daemon=True)
    worker.start()
    worker.join(FOR_EVER)
    assert not worker.is_alive()


def test_the_collector_may_end_a_forgotten_reader_in_its_own_thread(reading_threads: Threads) -> None:
    forgotten: list[Cycle] = []
    begun = threading.Event()
    ended = threading.Event()

    def produce() -> Iterator[int]:
        yield 0
        begun.wait()
        forgotten.clear()
        gc.collect()
        ended.set()
        yield 1

    stream = read_ahead(produce)
    next(stream)
    forgotten.append(Cycle(stream))
    del stream
    begun.set()
    assert ended.wait(FOR_EVER)
    assert until(lambda: not reading_threads())

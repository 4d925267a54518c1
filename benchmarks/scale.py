"""Engines side by side on one Parquet file of 22 columns: time against the local engine, memory, growth.

    python benchmarks/scale.py            2·10⁶ rows, some minutes
    python benchmarks/scale.py --full     10⁶, 10⁷ and 10⁸ rows: 4 GB of disk, about half an hour

Every engine runs in one process after the other, alternating with the local engine, and the median of the
ratios is reported; every result is compared with the local one, bit for bit. Starting a cluster or a session
is timed by itself. Memory is that of the largest worker process (unique set size, imports and all), and by
how much it grew after its first run; threads work in this process, which runs the local engine in between.
Results go to benchmarks/results/scale.md, missed targets included. The file is deleted at the end.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from dpgram.engines import local
from dpgram.engines.dask import DaskEngine
from dpgram.engines.spark import SparkEngine
from dpgram.schema import Schema, numeric
from dpgram.sums.exact_gram import ExactGram
from dpgram.testing import gram_by

RESULTS = Path(__file__).parent / "results" / "scale.md"
COLUMNS = 22
CHUNK = 1_000_000
NAMES = [f"x{j}" for j in range(COLUMNS)]
SCHEMA = Schema(*(numeric(name, -1, 1) for name in NAMES))
TARGETS = {
    "Dask, row groups, threads": 1.07,
    "Dask, row groups, processes": 1.5,
    "dask.dataframe, threads": 1.8,
    "dask.dataframe, processes": 3.4,
    "Spark, row groups": 3.2,
    "Spark, mapInArrow": 10.0,
}


def write(path: Path, rows: int) -> None:
    generator = np.random.default_rng(20260101)
    fields = pa.schema([(name, pa.float64()) for name in NAMES])
    with pq.ParquetWriter(path, fields, compression="zstd") as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            cells = np.round(generator.normal(0, 0.4, (COLUMNS, size)), 3)
            writer.write_table(pa.table(list(cells), names=NAMES), row_group_size=CHUNK // 4)


@dataclass
class Memory:
    """MB of its own (unique set size) that the largest worker held, how much it grew, and Spark's Java."""

    worker: float = 0.0
    growth: float = 0.0
    java: float = 0.0


@contextmanager
def watched(*, here: bool) -> Iterator[Memory]:
    """The memory of the workers meanwhile: this process where they are `here`, else those below it."""
    me, seen, stop = psutil.Process(), Memory(), threading.Event()
    first: dict[int, int] = {}

    def note(process: psutil.Process) -> None:
        held = process.memory_full_info().uss
        if "java" in process.name():
            seen.java = max(seen.java, held / 1e6)
            return
        seen.worker = max(seen.worker, held / 1e6)
        seen.growth = max(seen.growth, (held - first.setdefault(process.pid, held)) / 1e6)

    def look() -> None:
        while not stop.wait(0.3):
            for process in [me] if here else me.children(recursive=True):
                with suppress(psutil.Error, OSError):
                    note(process)

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


@dataclass
class Row:
    name: str
    seconds: float = 0.0
    ratios: list[float] = field(default_factory=list)
    memory: Memory = field(default_factory=Memory)
    same: bool = True


def timed(run: Callable[[], ExactGram]) -> tuple[float, ExactGram]:
    started = time.perf_counter()
    found = run()
    return time.perf_counter() - started, found


@dataclass
class Starts:
    seconds: dict[str, float] = field(default_factory=dict)

    def enter(self, stack: ExitStack, name: str, make: Callable[[], Any]) -> Any:
        started = time.perf_counter()
        entered = stack.enter_context(make())
        self.seconds.setdefault(name, time.perf_counter() - started)  # the first is the cold one
        return entered


@contextmanager
def spark_session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    os.environ["PYSPARK_PYTHON"] = sys.executable  # else the workers take whatever python3 is first
    session = (
        SparkSession.builder.master(f"local[{os.cpu_count()}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    try:
        yield session
    finally:
        session.stop()


def engines(path: str, starts: Starts, stack: ExitStack) -> Iterator[tuple[str, Callable[[], ExactGram]]]:
    """Each engine over the same file; what must be started is started just before."""
    import dask.dataframe as dd
    from distributed import Client, LocalCluster

    yield "Dask, row groups, threads", lambda: gram_by(DaskEngine(scheduler="threads"), path, SCHEMA)
    frame = dd.read_parquet(path, split_row_groups=True)
    yield "dask.dataframe, threads", lambda: gram_by(DaskEngine(scheduler="threads"), frame, SCHEMA)
    cluster = starts.enter(
        stack,
        "Dask cluster of processes",
        lambda: LocalCluster(threads_per_worker=1, n_workers=os.cpu_count(), dashboard_address="127.0.0.1:0"),
    )
    client = starts.enter(stack, "Dask client", lambda: Client(cluster, set_as_default=False))
    yield "Dask, row groups, processes", lambda: gram_by(DaskEngine(scheduler=client), path, SCHEMA)
    yield "dask.dataframe, processes", lambda: gram_by(DaskEngine(scheduler=client), frame, SCHEMA)
    client.close()
    cluster.close()
    spark = starts.enter(stack, "Spark session", spark_session)
    yield "Spark, row groups", lambda: gram_by(SparkEngine(session=spark), path, SCHEMA)
    yield "Spark, mapInArrow", lambda: gram_by(SparkEngine(), spark.read.parquet(path), SCHEMA)


def compare(path: str, rounds: int, starts: Starts, only: str) -> tuple[float, list[Row]]:
    def base() -> ExactGram:
        return local.gram(path, SCHEMA, progress=False)

    _, expected = timed(base)  # also compiles the kernel and fills the page cache
    bases: list[float] = []
    rows: list[Row] = []
    with ExitStack() as stack:
        for name, run in engines(path, starts, stack):
            if only not in name:
                continue
            row = Row(name)
            timed(run)  # workers import and load the compiled kernel
            seconds = []
            with watched(here=name.endswith("threads")) as row.memory:
                for _ in range(rounds):
                    before, _ = timed(base)
                    took, found = timed(run)
                    row.same &= found == expected
                    row.ratios.append(took / before)
                    seconds.append(took)
                    bases.append(before)
            row.seconds = median(seconds)
            rows.append(row)
            print(f"{name}: {median(row.ratios):.2f}, same bits: {row.same}", flush=True)
    return median(bases), rows


def report(tables: dict[int, tuple[float, list[Row]]], starts: Starts, rounds: int) -> str:
    lines = [
        "# Engines side by side",
        "",
        " ".join(
            [
                f"Parquet, n × {COLUMNS} columns of float64, {os.cpu_count()} cores,",
                f"Python {platform.python_version()}; medians of {rounds} rounds, each beside a run of the",
                "local engine. Targets are ratios to the local engine's time for 20·10⁶ rows or more; a",
                "small table shows the fixed costs instead.",
            ]
        ),
        "",
        f"Load average at the end: {os.getloadavg()[1]:.1f} over five minutes. Where it is far above the",
        "number of cores, other work ran beside, and the ratios say little.",
        "",
        "Started once: "
        + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in starts.seconds.items())
        + ".",
        "",
    ]
    for rows, (base, found) in tables.items():
        lines += [
            f"## {rows:,} rows",
            "",
            f"Local: {base:.2f} s, {rows / base / 1e6:.2f} million rows a second.",
            "",
            "| engine | seconds | ratio to local | target | met | MB a worker | growth | same bits |",
            "|---|---:|---:|---:|---|---:|---:|---|",
        ]
        for row in found:
            ratio, target = median(row.ratios), TARGETS[row.name]
            met = "yes" if ratio <= target else "no"
            java = f" (Java {row.memory.java:.0f})" if "Spark" in row.name else ""
            lines.append(
                f"| {row.name} | {row.seconds:.2f} | {ratio:.2f} | {target} | {met} "
                f"| {row.memory.worker:.0f}{java} | {row.memory.growth:.0f} | {'yes' if row.same else 'NO'} |"
            )
        lines.append("")
    if len(tables) > 1:
        smallest = min(tables)
        lines += ["## Growth", "", "Seconds for each million rows.", ""]
        names = [row.name for row in tables[smallest][1]]
        lines += ["| rows | local | " + " | ".join(names) + " |", "|---:|" + "---:|" * (len(names) + 1)]
        for rows, (base, found) in tables.items():
            cells = [base, *(row.seconds for row in found)]
            lines.append(f"| {rows:,} | " + " | ".join(f"{cell / rows * 1e6:.3f}" for cell in cells) + " |")
        lines.append("")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="10⁶, 10⁷ and 10⁸ rows")
    parser.add_argument("--rows", type=int, nargs="+", help="other sizes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="", help="engines with this in their name")
    parser.add_argument("--output", type=Path, default=RESULTS)
    asked = parser.parse_args()
    sizes = asked.rows or ([10**6, 10**7, 10**8] if asked.full else [2 * 10**6])
    warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
    starts, tables = Starts(), {}
    for rows in sizes:
        with tempfile.TemporaryDirectory(prefix="dpgram-scale-") as folder:
            path = Path(folder) / "table.parquet"
            write(path, rows)
            print(f"{rows:,} rows: {path.stat().st_size / 1e9:.2f} GB", flush=True)
            tables[rows] = compare(str(path), asked.rounds, starts, asked.only)
            asked.output.write_text(report(tables, starts, asked.rounds), encoding="utf-8")
    print(f"wrote {asked.output}")


if __name__ == "__main__":
    main()

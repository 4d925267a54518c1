"""What a user waits for: importing, regressing on a wide release, publishing a Parquet file.

Run: python benchmarks/product.py. Writes benchmarks/results/product.md. Times are the best of several, on
whatever machine this is; the share of reading is a ratio measured side by side.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import dpgram as dg
from dpgram.core.noise import SeededEntropy, simulation
from dpgram.engines.local import gram
from dpgram.publishing import publish_with
from dpgram.sources import open_source

RESULTS = Path(__file__).parent / "results" / "product.md"
REPEATS = 7
OF_FILES = 5
ROWS = 1_000_000


def best(action: Callable[[], object], repeats: int | None = None) -> float:
    times = []
    for _ in range(repeats or REPEATS):
        started = time.perf_counter()
        action()
        times.append(time.perf_counter() - started)
    return min(times)


def import_seconds() -> float:
    command = [sys.executable, "-c", "import dpgram; dpgram.publish; dpgram.load"]
    bare = [sys.executable, "-c", "pass"]
    return best(lambda: subprocess.run(command, check=True)) - best(lambda: subprocess.run(bare, check=True))


def import_only_seconds() -> float:
    command = [sys.executable, "-c", "import dpgram"]
    bare = [sys.executable, "-c", "pass"]
    return best(lambda: subprocess.run(command, check=True)) - best(lambda: subprocess.run(bare, check=True))


def wide_release(width: int) -> dg.Release:
    draw = simulation(1)
    names = [f"x{i}" for i in range(width - 1)]
    table = {name: draw.uniform(-1.0, 1.0, 20_000) for name in names}
    schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in names))
    return publish_with(table, schema, epsilon=1.0, delta=1e-6, entropy=SeededEntropy(1), adaptive=False)[0]


def regress_seconds(release: dg.Release) -> tuple[float, float]:
    fit = best(lambda: release.regress("x0"))
    inference = best(lambda: release.regress("x0").inference("table"))
    return fit, inference


def publish_against_reading(rows: int, width: int) -> tuple[float, float, float, float]:
    """Seconds to read plainly, to read our way, to add up and to publish one Parquet file in the cache."""
    draw = simulation(2)
    names = [f"x{i}" for i in range(width)]
    schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in names))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        pq.write_table(pa.table({name: draw.uniform(-1.0, 1.0, rows) for name in names}), path)

        def read() -> None:
            for batch in open_source(path, names).batches():
                np.asarray(batch.column(0))

        def read_plainly() -> None:
            for batch in pq.ParquetFile(path).iter_batches():
                np.asarray(batch.column(0))

        read()
        plain, reading = best(read_plainly, OF_FILES), best(read, OF_FILES)
        adding = best(lambda: gram(path, schema, progress=False), OF_FILES)
        publishing = best(
            lambda: dg.publish(
                path,
                schema,
                epsilon=1.0,
                delta=1e-6,
                ledger=None,
                progress=False,
                mechanism="gaussian",
                adaptive=False,
            ),
            OF_FILES,
        )
    return plain, reading, adding, publishing


def main() -> None:
    release = wide_release(100)
    fit, inference = regress_seconds(release)
    plain, reading, adding, publishing = publish_against_reading(ROWS, 20)
    lines = [
        "# What a user waits for",
        "",
        f"Made by `benchmarks/product.py`; best of {REPEATS} (files: best of {OF_FILES}).",
        "",
        "| what | measured | wanted |",
        "|---|---|---|",
        f"| `import dpgram` | {import_only_seconds() * 1e3:.0f} ms | under 500 ms |",
        f"| `import dpgram`, then `publish` and `load` fetched | {import_seconds() * 1e3:.0f} ms | |",
        f"| `regress` on a release of 100 columns | {fit * 1e3:.1f} ms | under 20 ms |",
        f"| the same with standard errors | {inference * 1e3:.1f} ms | |",
        f"| reading 10⁶ × 20 Parquet by `ParquetFile.iter_batches` | {plain * 1e3:.0f} ms | |",
        f"| reading it our way | {reading * 1e3:.0f} ms | |",
        f"| encoding and exact Gram of the same | {adding * 1e3:.0f} ms | |",
        f"| `publish` of the same | {publishing * 1e3:.0f} ms, {publishing / plain:.2f}× plain reading | |",
        "",
    ]
    RESULTS.write_text("\n".join(lines), encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

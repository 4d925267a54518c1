"""Speed and memory of encode + exact Gram, measured side by side with the least work anybody could do.

    python benchmarks/speed.py            a few minutes, small sizes
    python benchmarks/speed.py --full     the sizes the targets are stated for (needs about 4 GB of disk)
    python benchmarks/speed.py --short    seconds, to see that it runs: the numbers mean nothing
    … --adaptive                          only the adaptive release; the other sections stay as they are

Each comparison alternates the two sides in one process and takes the median of the ratios, so that a machine
that is busy now and then slows both. Results go to benchmarks/results/speed.md, missed targets included.
"""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine, gram
from dpgram.publishing import publish_with
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema, numeric
from seeded import NOT_BUILT, adaptive_is_built

RESULTS = Path(__file__).parent / "results" / "speed.md"
ADAPTIVE = "The adaptive release against one plain Gram"
ADAPTIVE_TARGET = 3.5
COLUMNS = 22
CHUNK = 1_000_000
WHOLE = 2.0**26
"""What is 1 in a row of whole numbers (dpgram.core.encode)."""


@dataclass(frozen=True)
class Sizes:
    arrays: tuple[tuple[int, int], ...]
    parquet: int
    memory: tuple[int, ...]
    growth: tuple[int, ...]
    rounds: int


QUICK = Sizes(
    arrays=((1_000_000, 22), (250_000, 100)),
    parquet=2_000_000,
    memory=(200_000, 2_000_000, 10_000_000),
    growth=(100_000, 1_000_000, 10_000_000),
    rounds=7,
)
FULL = Sizes(
    arrays=((4_000_000, 22), (1_000_000, 100)),
    parquet=20_000_000,
    memory=(2_000_000, 20_000_000, 100_000_000),
    growth=(100_000, 1_000_000, 10_000_000, 100_000_000),
    rounds=7,
)
SHORT = Sizes(
    arrays=((2_000, 22), (1_000, 100)), parquet=2_000, memory=(1_000, 6_000), growth=(50_000,), rounds=1
)


def names(width: int) -> list[str]:
    return [f"x{j}" for j in range(width)]


def schema_of(width: int) -> Schema:
    return Schema(*(numeric(name, -1, 1) for name in names(width)))


def seconds(action: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    started = clock()
    action()
    return clock() - started


@dataclass(frozen=True)
class Comparison:
    base: float
    ours: float
    ratio: float


def side_by_side(
    base: Callable[[], object],
    ours: Callable[[], object],
    rounds: int,
    clock: Callable[[], float] = time.perf_counter,
) -> Comparison:
    """Medians over rounds that alternate both sides; the first round only warms caches."""
    pairs = [(seconds(base, clock), seconds(ours, clock)) for _ in range(rounds + 1)][1:]
    return Comparison(
        base=median(b for b, _ in pairs),
        ours=median(o for _, o in pairs),
        ratio=median(o / b for b, o in pairs),
    )


def verdict(ratio: float, target: float) -> str:
    return f"{ratio:.2f}× | {target:g}× | {'met' if ratio <= target else '**missed**'}"


def arrays(sizes: Sizes) -> Iterator[str]:
    yield "| array | clip | `X.T @ X`, one thread | encode + Gram, all cores | ratio | target | |"
    yield "|---|---|---|---|---|---|---|"
    rng = np.random.default_rng(0)
    for rows, width in sizes.arrays:
        target = 1.5 if width < 100 else 1.15
        x = rng.uniform(-1, 1, (rows, width))
        schema = schema_of(width)

        def product(x: np.ndarray = x) -> None:
            with threadpool_limits(1):
                x.T @ x

        for label, clip in (("none", None), ("half the radius", schema.max_norm_squared**0.5 / 2)):
            found = side_by_side(product, partial(gram, x, schema, clip), sizes.rounds)
            yield (
                f"| {rows:,} × {width} | {label} | {found.base:.3f} s | {found.ours:.3f} s "
                f"| {verdict(found.ratio, target)} |"
            )


def write_parquet(path: Path, rows: int) -> None:
    rng = np.random.default_rng(1)
    schema = pa.schema([(name, pa.float64()) for name in names(COLUMNS)])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, rows, CHUNK):
            size = min(CHUNK, rows - start)
            lines = [pa.array(rng.uniform(-1, 1, size)) for _ in range(COLUMNS)]
            writer.write_table(pa.Table.from_arrays(lines, schema=schema))


def read_only(path: Path) -> None:
    with pq.ParquetFile(path) as file:
        for _ in file.iter_batches():
            pass


def parquet(sizes: Sizes, path: Path) -> Iterator[str]:
    yield "| file | `ParquetFile.iter_batches` alone | read + encode + Gram | ratio | target | |"
    yield "|---|---|---|---|---|---|"
    found = side_by_side(
        lambda: read_only(path), lambda: gram(path, schema_of(COLUMNS)), min(5, sizes.rounds)
    )
    yield (
        f"| {sizes.parquet:,} × {COLUMNS}, {path.stat().st_size / 1e9:.2f} GB | {found.base:.2f} s "
        f"| {found.ours:.2f} s | {verdict(found.ratio, 1.5)} |"
    )


PEAK = """
import sys
import pyarrow as pa
from dpgram.engines.local import gram
from dpgram.schema import Schema, numeric
from dpgram.sources import open_source
path, times = sys.argv[1], int(sys.argv[2])
names = [f"x{j}" for j in range(22)]
data = path
if times > 1:
    fields = pa.schema([(name, pa.float64()) for name in names])
    batches = (batch for _ in range(times) for batch in open_source(path, names).batches())
    data = pa.RecordBatchReader.from_batches(fields, batches)
gram(data, Schema(*(numeric(name, -1, 1) for name in names)))
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(int(status["VmHWM"].split()[0]) / 1024)
"""


def memory(sizes: Sizes, path: Path) -> Iterator[str]:
    """A process of its own for each size; more rows than the file has are a stream of it, again and again."""
    yield "| rows read from Parquet | peak memory of the process | target | |"
    yield "|---|---|---|---|"
    for rows in sizes.memory:
        with tempfile.TemporaryDirectory() as folder:
            part = path
            if rows < sizes.parquet:
                part = Path(folder) / "part.parquet"
                write_parquet(part, rows)
            times = max(1, rows // sizes.parquet)
            done = subprocess.run(
                [sys.executable, "-c", PEAK, str(part), str(times)],
                capture_output=True,
                check=True,
                text=True,
            )
        peak = float(done.stdout)
        yield f"| {rows:,} × {COLUMNS} | {peak:.0f} MB | 700 MB | {'met' if peak < 700 else '**missed**'} |"


def growth(sizes: Sizes) -> Iterator[str]:
    """A stream that hands out the same batch again and again: no reading, no memory, any length."""
    yield "| rows | time | per row |"
    yield "|---|---|---|"
    rng = np.random.default_rng(2)
    batch = pa.record_batch({name: rng.uniform(-1, 1, 50_000) for name in names(COLUMNS)})
    schema = schema_of(COLUMNS)
    for rows in sizes.growth:

        def run(count: int = rows // batch.num_rows) -> None:
            gram(pa.RecordBatchReader.from_batches(batch.schema, (batch for _ in range(count))), schema)

        taken = median(seconds(run) for _ in range(3))
        yield f"| {rows:,} | {taken:.3f} s | {taken / rows * 1e9:.0f} ns |"


def numpy_passes(x: np.ndarray, radius: float) -> np.ndarray:
    """The same encoding (columns bounded by ±1, nothing clipped) by whole-array operations: rows in whole
    numbers, brought to the lattice."""
    unit = 2**15 / radius
    if not np.isfinite(x).all():
        raise ValueError("the benchmark's data is finite")
    a = np.empty((len(x), x.shape[1] + 1))
    a[:, 0] = unit
    np.clip(x, -1.0, 1.0, out=a[:, 1:])
    a[:, 1:] *= WHOLE
    np.rint(a[:, 1:], out=a[:, 1:])
    a[:, 1:] *= unit / WHOLE
    q = np.rint(a)
    over = np.einsum("ij,ij->i", q, q) > 2**30
    q[over] = np.trunc(a[over])
    return q


def kernel() -> Iterator[str]:
    """One thread, best of many: what the operations themselves cost, the data being near the processor."""
    yield "| columns | numpy, pass by pass | from an array | from Arrow | from Arrow, clipped | product |"
    yield "|---|---|---|---|---|---|"
    rng = np.random.default_rng(3)
    for width in (22, 100):
        schema = schema_of(width)
        free, clipped = Encoder(schema), Encoder(schema, clip=schema.max_norm_squared**0.5 / 2)
        x = rng.uniform(-1, 1, (free.chunk_rows, width))
        many = np.tile(x, (8, 1))
        batch = pa.RecordBatch.from_arrays([pa.array(line) for line in many.T.copy()], names=names(width))
        blocks, clipping = free.batch_encoder(), clipped.batch_encoder()
        (block,) = blocks.encode_array(x)
        q = block.lines.copy()
        if not np.array_equal(numpy_passes(x, free.radius).T, q[: schema.width]):
            raise AssertionError("the two encodings differ")
        actions: tuple[tuple[int, Callable[[], object]], ...] = (
            (1, lambda x=x, radius=free.radius: numpy_passes(x, radius)),
            (1, lambda x=x, blocks=blocks: list(blocks.encode_array(x))),
            (8, lambda batch=batch, blocks=blocks: list(blocks.encode(batch))),
            (8, lambda batch=batch, blocks=clipping: list(blocks.encode(batch))),
            (1, lambda q=q: q @ q.T),
        )
        with threadpool_limits(1):
            found = [min(seconds(action) for _ in range(100)) / (times * len(x)) for times, action in actions]
        yield f"| {width} | " + " | ".join(f"{value * 1e9:.0f} ns" for value in found) + " |"


def adaptive(sizes: Sizes) -> Iterator[str]:
    """Whole publications in memory, charge and draw included: the adaptive one reads the table again."""
    yield "Processor time of all threads, which other work on the machine moves less than the clock.\n"
    yield "| table | threads | one plain Gram | adaptive | ratio | target | | ratio by the clock |"
    yield "|---|---|---|---|---|---|---|---|"
    rng = np.random.default_rng(4)
    small = () if sizes is SHORT else QUICK.arrays
    for rows, width in dict.fromkeys((*small, *sizes.arrays)):
        x = rng.uniform(-1, 1, (rows, width))
        for threads in (1, 2):
            forms = [partial(published, x, schema_of(width), form, threads) for form in (False, True)]
            worked = side_by_side(*forms, sizes.rounds, time.process_time)
            waited = side_by_side(*forms, sizes.rounds)
            yield (
                f"| {rows:,} × {width} | {threads} | {worked.base:.3f} s | {worked.ours:.3f} s "
                f"| {verdict(worked.ratio, ADAPTIVE_TARGET)} | {waited.ratio:.2f}× |"
            )


def published(x: np.ndarray, schema: Schema, adaptive: bool, threads: int) -> None:
    publish_with(
        x,
        schema,
        epsilon=1.0,
        delta=1e-6,
        entropy=SeededEntropy(5),
        adaptive=adaptive,
        engine=LocalEngine(threads=threads),
        progress=False,
    )


def machine(sizes: Sizes) -> str:
    load = os.getloadavg()[0]
    cores = len(os.sched_getaffinity(0))
    busy = (
        f" **The machine was busy (load {load:.1f} on {cores} cores) when this began.**" if load > 0.7 else ""
    )
    form = {FULL: "full", SHORT: "short"}.get(sizes, "small (`--full` for the sizes of the targets)")
    return (
        f"Sizes: {form}. {cores} cores, Python {platform.python_version()}, numpy {np.__version__}, "
        f"pyarrow {pa.__version__}. Medians of ratios of runs that alternate in one process.{busy}"
    )


def adaptive_alone(sizes: Sizes) -> Iterator[str]:
    """Its section, with the machine it was measured on."""
    yield f"{ADAPTIVE}\n"
    yield f"Measured by itself (`--adaptive`). {machine(sizes)}\n"
    yield from adaptive(sizes)


def sections(sizes: Sizes) -> Iterator[str]:
    yield "# Speed of encode + exact Gram\n"
    yield "Written by `benchmarks/speed.py`; numbers are of one machine, ratios travel better.\n"
    yield machine(sizes)
    yield "\n## Arrays in memory\n"
    yield from arrays(sizes)
    yield f"\n## {ADAPTIVE}\n"
    yield from adaptive(sizes) if adaptive_is_built() else [NOT_BUILT]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "table.parquet"
        write_parquet(path, sizes.parquet)
        yield "\n## Parquet in the page cache\n"
        yield from parquet(sizes, path)
        yield "\n## Peak memory\n"
        yield from memory(sizes, path)
    yield "\n## Cost by number of rows\n"
    yield f"{COLUMNS} columns from an endless Arrow stream.\n"
    yield from growth(sizes)
    yield "\n## The kernel alone, time of one thread for one row\n"
    yield from kernel()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--full", action="store_true", help="the sizes the targets are stated for")
    parser.add_argument("--short", action="store_true", help="to see that it runs")
    parser.add_argument("--output", type=Path, default=RESULTS)
    parser.add_argument("--adaptive", action="store_true", help="only the adaptive release")
    chosen = parser.parse_args()
    sizes = FULL if chosen.full else SHORT if chosen.short else QUICK
    lines = []
    for line in adaptive_alone(sizes) if chosen.adaptive else sections(sizes):
        print(line, flush=True)
        lines.append(line)
    if chosen.adaptive:
        # After the head and the first section, in the place of the one before.
        parts = [part for part in chosen.output.read_text().split("\n## ") if not part.startswith(ADAPTIVE)]
        lines = ["\n## ".join([*parts[:2], "\n".join(lines) + "\n", *parts[2:]]).rstrip("\n")]
    chosen.output.parent.mkdir(parents=True, exist_ok=True)
    chosen.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

"""How long the first publication takes: the bundled table, a new process, no compiled code on the machine.

    python benchmarks/start.py

Each round starts two processes, one after the other, with the same empty folder for compiled code: the first
is the first publication of a machine, the second finds whatever the first has left there. A process times its
first call of `publish` and some later ones. "Loops compiled at once" is the same with the numpy form switched
off, as it was before there was one. Which comes first changes with each round, so that a busy machine slows
both. Results go to benchmarks/results/start.md.
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
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from dpgram.rows import _compiled, _vectorised, kernel
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema, numeric

RESULTS = Path(__file__).parent / "results" / "start.md"
ROUNDS = 5
LATER = 5
TARGET = 3.0

PUBLISH = """
import sys, time
started = time.perf_counter()
from dpgram.demo import insurance
from dpgram.publishing import publish
from dpgram.rows import kernel
kernel.COMPILE_AFTER = int(sys.argv[1])
imported = time.perf_counter()
table, schema = insurance.table(), insurance.schema()
times = []
for _ in range(int(sys.argv[2])):
    begun = time.perf_counter()
    publish(table, schema, epsilon=1.0, delta=1e-6, progress=False)
    times.append(time.perf_counter() - begun)
print(imported - started, *times)
"""


class Times(NamedTuple):
    """Seconds in one process."""

    imports: float
    first: float
    later: float


def process(compile_after: int, cache: str) -> Times:
    done = subprocess.run(
        [sys.executable, "-c", PUBLISH, str(compile_after), str(1 + LATER)],
        capture_output=True,
        check=True,
        text=True,
        env=os.environ | {"NUMBA_CACHE_DIR": cache},
    )
    imports, first, *later = map(float, done.stdout.split())
    return Times(imports, first, median(later))


def round_of(compile_after: int) -> tuple[Times, Times]:
    """The first process of a machine, and the next one."""
    with tempfile.TemporaryDirectory() as cache:
        return process(compile_after, cache), process(compile_after, cache)


def publications(rounds: int) -> Iterator[str]:
    forms = {"numpy first (as it is)": kernel.COMPILE_AFTER, "loops compiled at once (as it was)": 0}
    pairs: dict[str, list[tuple[Times, Times]]] = {name: [] for name in forms}
    process(kernel.COMPILE_AFTER, tempfile.gettempdir())  # the files of all packages into the page cache
    for number in range(rounds):
        for name in list(forms)[:: 1 if number % 2 else -1]:
            pairs[name].append(round_of(forms[name]))
    yield "| | imports | first `publish` of a machine | first in a later process | ratio | target | |"
    yield "|---|---|---|---|---|---|---|"
    for name, found in pairs.items():
        ratio = median(new.first / next_one.first for new, next_one in found)
        yield (
            f"| {name} | {median(new.imports for new, _ in found):.2f} s "
            f"| {median(new.first for new, _ in found):.2f} s "
            f"| {median(next_one.first for _, next_one in found):.2f} s "
            f"| {ratio:.2f}× | {TARGET:g}× | {'met' if ratio <= TARGET else '**missed**'} |"
        )
    ours = pairs["numpy first (as it is)"]
    again = median(new.later for new, _ in ours)
    whole = median((new.imports + new.first) / (later.imports + later.first) for new, later in ours)
    yield (
        f"\nImports and first `publish` together: {whole:.2f}×. A second `publish` in the same process takes "
        f"{again:.3f} s: the first one loads the readers, the samplers and what they need, which no cache "
        f"can spare a new process ({median(new.first / new.later for new, _ in ours):.0f}×)."
    )


def seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def forms() -> Iterator[str]:
    """One thread, best of many: where the compiled loops begin to pay."""
    yield "| columns | clip | numpy, a cell | compiled, a cell |"
    yield "|---|---|---|---|"
    draw = np.random.default_rng(0)
    for width in (9, 22, 100):
        schema = Schema(*(numeric(f"x{i}", -1, 1) for i in range(width)))
        for label, clip in (("none", None), ("half the radius", schema.max_norm_squared**0.5 / 2)):
            encoder = Encoder(schema, clip=clip)
            rows, found = draw.uniform(-1, 1, (encoder.chunk_rows, width)), []
            for form in (_vectorised, _compiled):
                blocks = encoder.batch_encoder()
                with patch.object(kernel, "kernel", return_value=form):
                    best = min(
                        seconds(lambda blocks=blocks, rows=rows: list(blocks.encode_array(rows)))
                        for _ in range(60)
                    )
                found.append(best / (rows.shape[0] * schema.width))
            yield f"| {width} | {label} | " + " | ".join(f"{value * 1e9:.1f} ns" for value in found) + " |"


def sections(rounds: int) -> Iterator[str]:
    load, cores = os.getloadavg()[0], len(os.sched_getaffinity(0))
    busy = f" **The machine was busy (load {load:.1f}) when this began.**" if load > 0.7 else ""
    yield "# The first publication\n"
    yield "Written by `benchmarks/start.py`; numbers are of one machine, ratios travel better.\n"
    yield (
        f"The bundled table (50,000 rows, 9 columns), {rounds} rounds, medians. {cores} cores, "
        f"Python {platform.python_version()}, numpy {np.__version__}.{busy}\n"
    )
    yield from publications(rounds)
    yield "\n## The two forms of the kernel, time of one thread\n"
    yield from forms()
    yield f"\nA process goes over to the compiled form after {kernel.COMPILE_AFTER:,} cells."


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--output", type=Path, default=RESULTS)
    chosen = parser.parse_args()
    lines = []
    for line in sections(chosen.rounds):
        print(line, flush=True)
        lines.append(line)
    chosen.output.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()

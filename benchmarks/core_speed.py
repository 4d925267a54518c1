"""Time and memory of publications, beside an older version that compiled its loops.

    git worktree add --detach ../before e072e403
    python -m venv ../beside && ../beside/bin/pip install -e '../before[publish]'
    ../beside/bin/python benchmarks/core_speed.py ../before     # ten minutes

Writes results/core-speed.md.

Both versions, with the same packages, publish the same tables in turn, each in processes of its own with one
thread of linear algebra: seconds of processor time, the least of several. The goals are those that the core
was built to.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

RESULT = Path(__file__).parent / "results" / "core-speed.md"
LONG, WIDE = (1_000_000, 22), (20_000, 1_000)
ROUNDS = 2
WARM = 2
"""Publications of one process after its first, of which the least counts."""

PROGRAM = """
import json, resource, sys, time, warnings
warnings.simplefilter("ignore")
what, path, warm = sys.argv[1], sys.argv[2], int(sys.argv[3])
import dpgram as dg

def schema(names):
    return dg.Schema(*(dg.numeric(name, -6, 6) for name in names))

def used():
    return sum(resource.getrusage(resource.RUSAGE_SELF)[:2])

found = {}
if what == "parquet":
    import pyarrow.parquet as pq
    dg.publish(path, schema(pq.read_schema(path).names), epsilon=1.0, delta=1e-6)
    found["parquet"] = used()
else:
    import numpy as np
    import pyarrow.parquet as pq
    table = pq.read_table(path)
    declared = schema(table.column_names)
    array = np.ascontiguousarray(np.column_stack([table[name].to_numpy() for name in table.column_names]))
    ways = {
        "arrow": (table, {}),
        "array": (array, {}),
        "wide": (array, {"adaptive": False, "mechanism": "gaussian"}),
        "wide, adaptive": (array, {"mechanism": "gaussian"}),
    }
    data, options = ways[what]
    times = []
    for _ in range(warm + 1):
        started = used()
        dg.publish(data, declared, epsilon=1.0, delta=1e-6, **options)
        times.append(used() - started)
    found[what] = min(times[1:] or times)
found[f"{what}: MB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
print(json.dumps(found))
"""
BESIDE = """
import json, sys, time
import numpy as np
x = np.random.default_rng(1).normal(size=(int(sys.argv[1]), int(sys.argv[2])))
def least(work):
    times = []
    for _ in range(3):
        started = time.process_time()
        work()
        times.append(time.process_time() - started)
    return min(times)
from dpgram.core.noise import Noise, SystemEntropy, on_matrix
zeros = np.zeros((x.shape[1] + 1,) * 2, np.int64)
drawn = least(lambda: on_matrix(zeros, Noise("gaussian", 2.0**40), SystemEntropy()))
print(json.dumps({"X.T @ X": least(lambda: x.T @ x), "draws": drawn}))
"""
WAYS = {"parquet": "long", "arrow": "long", "array": "long", "wide": "wide", "wide, adaptive": "wide"}


def ran(source: Path, program: str, *arguments: object) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def lines_of(before: Mapping[str, float], now: Mapping[str, float]) -> Iterator[str]:
    """What was measured, beside the goal where there is one."""
    product, draws = now["X.T @ X"], now["draws"]
    yield "| publication | before, s | now, s | ratio | goal | before, MB | now, MB |"
    yield "|---|---|---|---|---|---|---|"
    goals = {
        "parquet": ("a fresh process, from a Parquet file", 1.0),
        "arrow": ("from Arrow, warm", 1.6),
        "array": ("from an array, warm", 2.6),
        "wide": (f"{WIDE[1]:,} columns, one matrix", None),
        "wide, adaptive": (f"{WIDE[1]:,} columns, adaptive", None),
    }
    for way, (name, goal) in goals.items():
        ratio = now[way] / before[way]
        wanted = "" if goal is None else f"{goal:g}{'' if ratio <= goal else ', missed'}"
        memory = f"{before[f'{way}: MB']:.0f} | {now[f'{way}: MB']:.0f}"
        yield f"| {name} | {before[way]:.2f} | {now[way]:.2f} | {ratio:.2f} | {wanted} | {memory} |"
    yield ""
    for way, times in (("wide", 4), ("wide, adaptive", 8)):
        rest = now[way] - draws
        verdict = "kept" if rest <= times * product else "missed"
        yield (
            f"- {goals[way][0]}: {now[way]:.2f} s less {draws:.2f} s for the draws of a matrix are "
            f"{rest / product:.1f} times `X.T @ X` ({product:.2f} s); the goal, {times} times, is {verdict}."
        )


def main() -> None:
    before, now = Path(sys.argv[1]).resolve(), Path(__file__).resolve().parents[1]
    best: dict[str, dict[str, float]] = {"before": {}, "now": {}}
    with tempfile.TemporaryDirectory() as folder:
        for name, (rows, width) in (("long", LONG), ("wide", WIDE)):
            cells = np.random.default_rng(3).normal(size=(width, rows))
            cells[1:] += 0.5 * cells[0]
            pq.write_table(
                pa.table({f"x{j}": line for j, line in enumerate(cells)}), f"{folder}/{name}.parquet"
            )
            del cells
        for number in range(ROUNDS):
            for way, table in WAYS.items():
                if number and table == "wide":  # its draws take most of the time
                    continue
                for side, source in (("before", before), ("now", now)):
                    warm = WARM if table == "long" else 0
                    found = ran(source, PROGRAM, way, f"{folder}/{table}.parquet", warm)
                    known = best[side]
                    best[side] |= {key: min(known.get(key, value), value) for key, value in found.items()}
    best["now"] |= ran(now, BESIDE, *WIDE)
    lines = [
        "# Time and memory beside the compiled loops",
        "",
        "Made by `benchmarks/core_speed.py` beside the version before rows became whole numbers (e072e403):",
        f"processor seconds with one thread of linear algebra, the least of {ROUNDS} rounds in turn, and the",
        f"largest memory. {LONG[0]:,} rows of {LONG[1]} columns; once {WIDE[0]:,} rows of {WIDE[1]:,}.",
        "ε = 1, δ = 10⁻⁶.",
        "",
        *lines_of(best["before"], best["now"]),
        "",
        "So few rows of so many columns are measured once, after histograms. Of the time from Arrow about",
        "two fifths go into histograms, half of it for two counts by node of each cell, two fifths into",
        "encoding rows and rounding them, and a tenth into products of matrices.",
    ]
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

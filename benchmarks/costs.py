"""What each mechanism costs: seconds of calibration and draw, and peak memory, for d up to 500.

    python benchmarks/costs.py      # about ten minutes on one core

Every case runs in a process of its own with one thread and a time-out. Memory is the largest resident size of
that process less its size after imports. Writes results/costs.md.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

from dpgram.core.noise import SystemEntropy
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MECHANISMS, PublicFacts
from dpgram.privacy.adjacency import adjacency
from dpgram.privacy.guarantee import Guarantee

WIDTHS = (20, 100, 200, 500)
RELATIONS = ("add-remove", "replace-one")
ROWS = 100_000
TIME_OUT = 120
"""Processor seconds, so that a busy machine changes nothing."""
RESULT = Path(__file__).parent / "results" / "costs.md"


def synthetic(width: int) -> np.ndarray:
    """n full-length rows with eigenvalues ∝ 1/i in a random basis, on the lattice."""
    basis = np.linalg.qr(np.random.default_rng(width).standard_normal((width, width)))[0]
    values = 1.0 / np.arange(1, width + 1)
    values *= ROWS / values.sum()
    cells = np.rint((basis * values) @ basis.T * ROW_NORM_SQUARED).astype(np.int64)
    return np.tril(cells) + np.tril(cells, -1).T


def one_case(name: str, width: int, relation: str) -> dict[str, float]:
    """Run in a process of its own: processor seconds and bytes."""
    cells, source = synthetic(width), SystemEntropy()
    source.rehearse()
    facts = PublicFacts(width=width, adjacency=adjacency(relation), rows=ROWS)
    asked = MECHANISMS[name]().guessed(facts)
    resource.setrlimit(resource.RLIMIT_CPU, (TIME_OUT, TIME_OUT + 5))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    started = time.process_time()
    mechanism = asked.calibrated(Guarantee(1.0, 0.0 if asked.pure else 1e-6), facts)
    calibrated = time.process_time()
    mechanism.draw(cells, source)
    drawn = time.process_time()
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "calibration": calibrated - started,
        "draw": drawn - calibrated,
        "memory": 1024.0 * (after - before),
    }


def measure(name: str, width: int, relation: str) -> dict[str, float] | None:
    """Nothing where the time-out struck."""
    words = [sys.executable, __file__, name, str(width), relation]
    quiet = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1"}
    try:
        done = subprocess.run(words, env=quiet, capture_output=True, text=True, check=True)
    except subprocess.CalledProcessError as problem:
        if problem.returncode != -signal.SIGXCPU:
            raise
        return None
    found: dict[str, float] = json.loads(done.stdout)
    return found


def cell(found: dict[str, float] | None) -> str:
    if found is None:
        return f"over {TIME_OUT:g} s"
    return f"{found['calibration']:.2f} + {found['draw']:.2f} s, {found['memory'] / 2**20:.0f} MB"


def main() -> None:
    lines = [
        "# What a mechanism costs",
        "",
        "Made by `python benchmarks/costs.py`. Processor seconds of calibration + draw, and peak memory",
        f"beyond imports and the matrix, one thread, (ε, δ) = (1, 10⁻⁶) (pure: ε = 1), {ROWS:,} rows",
        f"with eigenvalues falling like 1/i; each case in a process of its own, at most {TIME_OUT:g} s.",
        "",
    ]
    for relation in RELATIONS:
        widths = WIDTHS if relation == "add-remove" else WIDTHS[1:2]
        lines += [f"## {relation}", "", "| mechanism | " + " | ".join(f"d = {w}" for w in widths) + " |"]
        lines.append("|" + "---|" * (len(widths) + 1))
        for name in MECHANISMS:
            cells = [cell(measure(name, width, relation)) for width in widths]
            lines.append(f"| `{name}` | " + " | ".join(cells) + " |")
            print(lines[-1], flush=True)
        lines.append("")
    RESULT.write_text("\n".join(lines).rstrip("\n") + "\n", encoding="utf-8")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print(json.dumps(one_case(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
    else:
        main()

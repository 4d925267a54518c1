"""Time of `regress(...).summary()` at 20, 100 and 300 columns, beside another version of the library.

    git worktree add ../before 6638ba2
    python benchmarks/fit_speed.py ../before        # a minute; writes results/fit-speed.md

Both versions publish the same table and answer in turn, each in a process of its own with one thread;
processor time, the best of several. The files are their own: each loads what it wrote.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

RESULT = Path(__file__).parent / "results" / "fit-speed.md"
WIDTHS = (20, 100, 300)
ROUNDS = 7

PROGRAM = """
import json, sys, time
import numpy as np
import dpgram as dg

folder, make = sys.argv[1], sys.argv[2] == "make"
found = {}
for width in json.loads(sys.argv[3]):
    path = f"{folder}/{width}.json"
    if make:
        draw = np.random.default_rng(width)
        names = [f"x{i}" for i in range(width - 1)]
        hidden = draw.normal(size=(20_000, 3))
        values = np.tanh(hidden @ draw.normal(size=(3, width - 1)) + draw.normal(size=(20_000, width - 1)))
        schema = dg.Schema(*(dg.numeric(name, -1, 1) for name in names))
        options = {"epsilon": 20.0, "delta": 1e-6, "ledger": None, "mechanism": "gaussian"}
        if "adaptive" in dg.publish.__code__.co_varnames:
            options["adaptive"] = False
        dg.publish(dict(zip(names, values.T)), schema, **options).save(path)
        continue
    release = dg.load(path)
    times = []
    for _ in range(9):
        started = time.process_time()
        release.regress("x0").summary()
        times.append(time.process_time() - started)
    found[width] = min(times) * 1e3
print(json.dumps(found))
"""


def asked(source: Path, folder: Path, what: str) -> dict[str, float]:
    environment = {**os.environ, "PYTHONPATH": str(source / "src"), "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, str(folder), what, json.dumps(WIDTHS)],
        env=environment, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    before, now = Path(sys.argv[1]).resolve(), Path(__file__).resolve().parents[1]
    best: dict[Path, dict[str, float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for source, name in ((before, "before"), (now, "now")):
            (Path(folder) / name).mkdir()
            asked(source, Path(folder) / name, "make")
        for _ in range(ROUNDS):
            for source, name in ((before, "before"), (now, "now")):
                times = asked(source, Path(folder) / name, "time")
                known = best.setdefault(source, times)
                best[source] = {width: min(known[width], times[width]) for width in times}
    lines = [
        "# Time of a regression with its summary",
        "",
        "Made by `benchmarks/fit_speed.py` beside the version before contrasts, labels and interactions",
        f"(6638ba2): milliseconds of processor time on one core, the best of {9 * ROUNDS}, in turn.",
        "",
        "| columns | before | now | ratio |",
        "|---|---|---|---|",
    ]
    for width in map(str, WIDTHS):
        old, new = best[before][width], best[now][width]
        lines.append(f"| {width} | {old:.1f} | {new:.1f} | {new / old:.2f} |")
    RESULT.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print("\n".join(lines))


if __name__ == "__main__":
    main()

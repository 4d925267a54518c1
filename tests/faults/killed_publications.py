"""Publications that are killed at any point and taken up again: run as a script, a line of JSON for each.

    python killed_publications.py FOLDER RUNS

Every run is two forks of one process: the first is killed by SIGKILL at a chosen call or return inside
`dpgram.publishing`, the ledger or the operating system's functions they call; the second makes the same call.
What the first had on disk is noted in between. With RUNS = 0 the first is killed before every write, flush,
truncation and removal, every statement that changes the ledger, and every draw of noise.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import sys
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

import dpgram as dg
from dpgram.core.noise import SystemEntropy
from dpgram.engines import LocalEngine
from dpgram.errors import DpgramError
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publish  # everything is loaded before the first fork

SCHEMA = dg.Schema(dg.numeric("x"), dg.numeric("y"), dg.categorical("g"))
WATCHED = ("publishing", "ledger")


def table() -> pa.Table:
    draw = np.random.default_rng(11)
    x = draw.normal(100.0, 5.0, 4_000)
    return pa.table(
        {"x": x, "y": 2.0 * x + draw.normal(0.0, 3.0, 4_000), "g": draw.choice(["a", "b"], 4_000)}
    )


def release_of(ledger: Path) -> dg.Release:
    return publish(
        table(),
        SCHEMA,
        epsilon=1.0,
        delta=1e-5,
        adaptive=dg.Adaptive(bounds=0.2, levels=0.1),
        ledger=ledger,
        engine=LocalEngine(threads=1),
        progress=False,
    )


class Killer:
    """Counts what happens in the watched modules, and kills the process at a chosen count."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        del arg
        if any(name in frame.f_code.co_filename for name in WATCHED):
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


class BeforeEffects:
    """Counts whatever changes a file and whatever draws, and kills the process before a chosen one."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.at:
            os.kill(os.getpid(), signal.SIGKILL)

    def watching(self, honest: Any) -> Any:
        def watched(*args: Any, **options: Any) -> Any:
            self()
            return honest(*args, **options)

        return watched

    def start(self) -> None:
        before = self

        class Connection(sqlite3.Connection):
            def execute(self, sql: str, *values: Any) -> sqlite3.Cursor:
                if sql.startswith(("INSERT", "UPDATE", "BEGIN IMMEDIATE", "COMMIT")):
                    before()
                return super().execute(sql, *values)

        sqlite3.connect = partial(sqlite3.connect, factory=Connection)  # type: ignore[assignment]
        for name in ("write", "fsync", "ftruncate", "unlink"):
            setattr(os, name, self.watching(getattr(os, name)))
        for name in ("discrete_gaussian", "discrete_laplace"):
            setattr(SystemEntropy, name, self.watching(getattr(SystemEntropy, name)))


def forked(work: Any) -> tuple[int, str]:
    """The exit status of a fork, negative for a signal, and what it wrote."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        status = 1
        try:
            os.write(writer, json.dumps(work()).encode())
            status = 0
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader) as stream:
        text = stream.read()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), text


def finished(ledger: Path) -> dict[str, Any]:
    try:
        release = release_of(ledger)
    except DpgramError as problem:
        return {"refused": str(problem)}
    return json.loads(release.to_json())


def counted(ledger: Path, effects: bool) -> int:
    if effects:
        before = BeforeEffects(-1)
        before.start()
        release_of(ledger)
        return before.count
    killer = Killer(-1)
    sys.setprofile(killer)
    try:
        release_of(ledger)
    finally:
        sys.setprofile(None)
    return killer.count


def killed(ledger: Path, at: int, effects: bool) -> None:
    if effects:
        BeforeEffects(at).start()
    else:
        sys.setprofile(Killer(at))
    release_of(ledger)
    os.kill(os.getpid(), signal.SIGKILL)  # its noise made fewer events than were counted: then at its end


def kept(folder: Path) -> list[Any]:
    """What lies beside the ledger: the whole lines of an unfinished publication."""
    found = []
    for path in folder.glob("some.ledger.unfinished-*"):
        for line in path.read_bytes().splitlines():
            body, _, _ = line.rpartition(b" ")
            try:
                found.append(json.loads(body))
            except ValueError:  # torn
                continue
    return found


def main(folder: Path, runs: int) -> None:
    first = folder / "count"
    first.mkdir()
    Ledger.create(first / "some.ledger", name="some", epsilon=2.0, delta=1e-4, delta_reserved=1e-5)
    effects = runs == 0
    _, text = forked(lambda: counted(first / "some.ledger", effects))
    events = int(text)
    # Some of them depend on the noise, such as how often nodes of a histogram are put together.
    points = np.unique(np.linspace(1, events, runs or events).astype(int)).tolist()
    for point in points:
        place = folder / str(point)
        place.mkdir()
        path = place / "some.ledger"
        Ledger.create(path, name="some", epsilon=2.0, delta=1e-4, delta_reserved=1e-5)
        status, _ = forked(lambda path=path, point=point: killed(path, point, effects))
        between = {"closed": [entry.closed for entry in Ledger.open(path).history()], "kept": kept(place)}
        ended, text = forked(lambda path=path: finished(path))
        print(
            json.dumps(
                {
                    "point": point,
                    "of": events,
                    "killed": status,
                    "between": between,
                    "finished": ended,
                    "release": json.loads(text) if text else None,
                    "entries": [entry.receipt_id for entry in Ledger.open(path).history()],
                    "closed": [entry.closed for entry in Ledger.open(path).history()],
                    "left": sorted(one.name for one in place.iterdir()),
                }
            ),
            flush=True,
        )


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]))

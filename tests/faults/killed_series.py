"""A series whose curator is killed again and again: run as a script, a line of JSON for each interruption.

    python killed_series.py FOLDER PERIODS INTERRUPTIONS [SEED]

Every try is a fork that creates the series, if it is not there, and publishes all periods that are missing.
It is killed by SIGKILL at a random call or return inside of `dpgram.series`, `dpgram.publishing`, the ledger
or the files they write. What was on disk is noted in between. The last try is left alone.

With a seed every try has bits of its own that follow from it, else those of the system.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import warnings
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pyarrow as pa

import dpgram as dg
from dpgram.core.noise import SeededEntropy, SystemEntropy
from dpgram.engines import LocalEngine
from dpgram.privacy.ledger import Ledger
from dpgram.series import (
    Series,
    _curate,  # noqa: F401  (everything is loaded before the first fork)
)

SCHEMA = dg.Schema(dg.numeric("x", 0, 10), dg.numeric("y", -20, 40))
WATCHED = ("dpgram/series/", "dpgram/publishing/", "privacy/ledger/", "dpgram/files.py")


def table(period: int) -> pa.Table:
    """Rows of 150 new people and of 50 who have been there the month before."""
    draw = np.random.default_rng([7, period])
    x = draw.uniform(2.0, 8.0, 200)
    ids = np.arange(150 * period, 150 * period + 200)
    return pa.table({"id": ids, "x": x, "y": 2.0 * x + draw.normal(0.0, 2.0, 200)})


def carried_on(folder: Path, periods: int) -> None:
    """Whatever is still to be done."""
    path = folder / "some.series"
    if not path.exists():
        Series.create(
            path,
            SCHEMA,
            epsilon=4.0,
            delta=1e-5,
            periods=periods,
            rows=dg.Rows(unit="id"),
            ledger=folder / "some.ledger",
        )
    series = Series.open(path)
    for period in range(max(len(series.labels), 1), periods + 1):  # the last one once more
        series.publish(table(period), f"m{period}", engine=LocalEngine(threads=1), progress=False)


class Killer:
    """Counts what happens in the watched modules, and kills the process at a chosen count."""

    def __init__(self, at: int) -> None:
        self.at, self.count = at, 0

    def __call__(self, frame: FrameType, event: str, arg: Any) -> None:
        del arg, event
        if any(name in frame.f_code.co_filename for name in WATCHED):
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


def lead_to(stream: SeededEntropy) -> None:
    """From now on this answers where the system is asked for bits."""
    for name in ("discrete_gaussian", "discrete_laplace", "generator", "random_bytes"):
        setattr(SystemEntropy, name, getattr(stream, name))


def forked(folder: Path, periods: int, at: int | None, seed: list[int] | None) -> int:
    """The exit status of a fork, negative for a signal."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            warnings.simplefilter("ignore")
            if seed is not None:
                lead_to(SeededEntropy(np.random.SeedSequence(seed)))
            if at is not None:
                sys.setprofile(Killer(at))
            carried_on(folder, periods)
            status = 0
        finally:
            os._exit(status)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def seen(folder: Path) -> dict[str, Any]:
    """What is on disk: the public file, what was drawn and is not in it yet, the charges."""
    path = folder / "some.series"
    drawn = []
    for journal in folder.glob("some.series.unfinished-*"):
        for line in journal.read_bytes().splitlines():
            try:
                drawn.append(json.loads(line.rpartition(b" ")[0]))
            except ValueError:  # torn
                continue
    return {
        "lines": path.read_bytes().count(b"\n") if path.exists() else 0,
        "drawn": [line["kept"]["published"] for line in drawn if "stage" in line],
        "entries": len(Ledger.open(folder / "some.ledger").history()),
    }


def main(folder: Path, periods: int, interruptions: int, seed: int | None = None) -> None:
    """Series after series, until so many tries were interrupted; each is brought to its end."""
    points = np.random.default_rng(5)
    # How far a try may come follows from how the ones before it ended, so that the interruptions are spread
    # over all periods: about `wanted` of the tries get a step further.
    shorter = 0.9
    wanted = 0.7 * periods / interruptions
    longer = shorter ** (-wanted / (1.0 - wanted))
    done = number = tries = 0
    while done < interruptions:
        number += 1
        place = folder / str(number)
        place.mkdir()
        Ledger.create(place / "some.ledger", name="some", epsilon=8.0, delta=1e-4, unit="id")
        reach, status = 3_000.0, -1
        while status != 0:
            before = seen(place)["lines"]
            # The more periods, the more is read; the last try of all is left alone.
            at = int(points.integers(1, int(reach * (1 + before)))) if done < interruptions else None
            tries += 1
            status = forked(place, periods, at, None if seed is None else [seed, tries])
            after = seen(place)
            print(json.dumps({"series": number, "at": at, "status": status, **after}), flush=True)
            done += int(status != 0)
            reach *= shorter if after["lines"] > before else longer


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))

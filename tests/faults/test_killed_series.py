"""`kill -9` of a curator at random points of a series: nothing lost, no noise drawn twice, one charge."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.stats import chi2

from dpgram.noise.factor import coefficients
from dpgram.privacy.ledger import Ledger
from dpgram.series._secret import open_secret
from dpgram.series.stream import Stream, secret_path

SCRIPT = Path(__file__).with_name("killed_series.py")


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> list[str]:
    """As an argument; none where the test is asked to try its luck."""
    return [] if request.config.getoption("luck") else ["1"]


def interrupted(
    folder: Path, periods: int, interruptions: int, seed: list[str]
) -> dict[int, list[dict[str, Any]]]:
    """All tries, by series: most of the time there is one."""
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(folder), str(periods), str(interruptions), *seed],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    tries: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for line in done.stdout.splitlines():
        found = json.loads(line)
        tries[found["series"]].append(found)
    return tries


def check(folder: Path, tries: list[dict[str, Any]], periods: int, error: float) -> None:
    """`error` is how often noise may be found too small though it is right, and how often too large."""
    *killed, last = tries
    assert {each["status"] for each in killed} <= {-signal.SIGKILL}
    assert last["status"] == 0
    # Charged once, whenever it happened, and never again.
    assert [entry.number for entry in Ledger.open(folder / "some.ledger").history()] == [1]
    charges = [each["entries"] for each in tries]
    assert charges == sorted(charges)
    assert charges[-1] == 1
    # Nothing is left behind, but for a public head that was killed before it had its name.
    unnamed = [path for path in folder.iterdir() if path.name.startswith(".some.series.")]
    assert all(path.read_bytes().count(b"\n") <= 1 and b"cells" not in path.read_bytes() for path in unnamed)
    assert sorted(path.name for path in folder.iterdir() if path not in unnamed) == [
        "some.ledger",
        "some.series",
        "some.series.NOT-PRIVATE",
    ]
    stream = Stream.read(folder / "some.series")
    assert stream.labels == tuple(f"m{period}" for period in range(1, periods + 1))
    # Lines are only ever added, and whatever was drawn is what was published.
    lines = [each["lines"] for each in tries]
    assert lines == sorted(lines)
    final = json.dumps([json.loads(line) for line in stream_lines(folder)])
    drawn = [result for each in killed for stage in each["drawn"] for result in stage]
    for result in drawn:
        assert json.dumps(result)[1:-1] in final
    # What the curator has kept is what the lines are made of: their noise is as large as it should be.
    with open_secret(secret_path(folder / "some.series"), stream.head.series) as secret:
        kept = secret.past(periods + 1)
    people = [set(each.people.tolist()) for each in kept]
    assert all(not a & b for number, a in enumerate(people) for b in people[:number])
    assert [len(each) for each in people] == [200, *([150] * (periods - 1))]
    c, sigma, noise = coefficients(periods), stream.opening.sigma, []
    for t, period in enumerate(stream.periods):
        for place, cell in enumerate(period.cells):
            exact = sum(c[t - s] * kept[s].cells[place] for s in range(t + 1))
            on_diagonal = place in (0, 2, 5)
            noise.append((int(cell) - exact) / (sigma if on_diagonal else sigma / 2**0.5))
    size = float(np.sum(np.square(noise)))
    assert chi2.ppf(error, len(noise)) < size < chi2.isf(error, len(noise))
    # No noise comes up in two periods.
    by_period = np.array(noise).reshape(periods, 6)
    assert np.abs(by_period[:, None] - by_period[None]).max(axis=2)[~np.eye(periods, dtype=bool)].min() > 0.01


def stream_lines(folder: Path) -> list[bytes]:
    return (folder / "some.series").read_bytes().splitlines()


def killed(folder: Path, periods: int, interruptions: int, seed: list[str]) -> int:
    """Interrupt, check every series, and say how often noise had been drawn and was not yet published."""
    tries = interrupted(folder, periods, interruptions, seed)
    for number, found in tries.items():
        check(folder / str(number), found, periods, error=3e-5 if seed else 1e-10)
    every = [each for found in tries.values() for each in found]
    assert sum(each["status"] != 0 for each in every) == interruptions
    return sum(bool(each["drawn"]) for each in every)


@pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")
def test_killed_eight_times(tmp_path: Path, seed: list[str]) -> None:
    killed(tmp_path, 3, 8, seed)


@pytest.mark.full
@pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")
def test_killed_two_hundred_times(tmp_path: Path, seed: list[str]) -> None:
    # Some of them after noise was drawn and before it was published.
    assert killed(tmp_path, 24, 200, seed) > 0

"""Ten thousand publishes in one process: no leak, no slow-down, no descriptor left open.

python -m assurance.soak            # the examination
python -m assurance.soak COUNT      # one course in this process; prints one JSON object
python -m assurance.soak alive      # what publishing leaves alive, by kind; prints one JSON object
"""

from __future__ import annotations

import gc
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np
import psutil

import dpgram
from assurance.part import Finding, Part
from dpgram.demo import insurance
from dpgram.privacy.ledger import Ledger

PUBLISHES: Final = 10_000
PEOPLE: Final = 50
WARM_UP: Final = 0.2
"""Share of the course that memory has to settle in: allocators and caches fill first."""
SLOWER: Final = 1.5
"""Last tenth over first tenth, in processor time; a ledger read anew at each publish gives ten and more."""
BYTES_EACH: Final = 400.0
"""Growth of memory for each publish; one release is 15,000 bytes, one receipt kept for ever about 600."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What was measured along a run of publishes."""

    publishes: int
    seconds: float
    first: float
    """Processor seconds of a publish, median of the first tenth."""
    last: float
    growth: float
    """Bytes of resident memory for each publish, by a line through everything after the warm-up."""
    descriptors: tuple[int, int]
    """Open files after the first publish and after the last."""
    threads: tuple[int, int]
    ledger_bytes: int
    verify_seconds: float
    """Opening the ledger and checking all of it, in processor time."""
    unclaimed: int
    """Entries without a release among the receipts that were kept."""


def course(publishes: int, folder: Path) -> Course:
    """Publish that many times, each with a charge, a file and a reading of it."""
    process, table, schema = psutil.Process(), insurance.table(PEOPLE), insurance.schema()
    ledger = Ledger.create(folder / "soak.ledger", name="soak", epsilon=3.0, delta=1e-5)
    times, memory = np.empty(publishes), np.empty(publishes)
    receipts = []
    opened = threads = 0
    begun = time.perf_counter()
    for number in range(publishes):
        started = time.process_time()
        release = dpgram.publish(
            table,
            schema,
            epsilon=1e-3,
            delta=1e-9,
            ledger=ledger,
            mechanism="gaussian",
            progress=False,
            adaptive=False,
        )
        times[number] = time.process_time() - started
        if number % 10 == 0:
            release.save(folder / "soak.json", overwrite=True)
            assert dpgram.load(folder / "soak.json") == release
            receipts.append(release.receipt)
        memory[number] = process.memory_info().rss
        if number == 0:
            opened, threads = process.num_fds(), process.num_threads()
    seconds = time.perf_counter() - begun
    gc.collect()
    started = time.process_time()
    checked = Ledger.open(ledger.path).verify([one for one in receipts if one is not None])
    verified = time.process_time() - started
    tenth, settled = max(1, publishes // 10), int(WARM_UP * publishes)
    slope = np.polyfit(np.arange(settled, publishes), memory[settled:], 1)[0]
    return Course(
        publishes=publishes,
        seconds=seconds,
        first=float(np.median(times[1 : tenth + 1])),
        last=float(np.median(times[-tenth:])),
        growth=float(slope),
        descriptors=(opened, process.num_fds()),
        threads=(threads, process.num_threads()),
        ledger_bytes=ledger.path.stat().st_size,
        verify_seconds=verified,
        unclaimed=len(checked.unclaimed),
    )


def alive() -> Counter[str]:
    """Everything that is alive, counted by kind: objects the collector knows, and what they hold."""
    gc.collect()
    known = gc.get_objects()
    everything = {id(one): one for one in known}
    everything.update((id(held), held) for held in gc.get_referents(*known))
    return Counter(f"{type(one).__module__}.{type(one).__qualname__}" for one in everything.values())


def left_alive(call: Callable[[], object], times: int = 20) -> dict[str, int]:
    """Kinds of which each call leaves one more alive, in the first `times` calls and again in the second.

    What is made once, at first use, grows in one of the two at most.
    """
    told = []
    for _ in range(3):
        told.append(json.dumps(alive()))  # one text: numbers of ours must not be among what is alive
        for _ in range(times):
            call()
    first, second, third = (Counter(json.loads(text)) for text in told)
    more = (second - first) & (third - second)
    return {kind: count for kind, count in more.items() if count >= times}


def publishing_leaves(folder: Path) -> dict[str, dict[str, int]]:
    """What stays alive of releases that are dropped, of releases that are kept, and of their receipts."""
    table, schema = insurance.table(PEOPLE), insurance.schema()
    ledger = Ledger.create(folder / "alive.ledger", name="alive", epsilon=3.0, delta=1e-5)
    kept: list[Any] = []

    def publish() -> Any:
        return dpgram.publish(
            table,
            schema,
            epsilon=1e-3,
            delta=1e-9,
            ledger=ledger,
            mechanism="gaussian",
            progress=False,
            adaptive=False,
        )

    return {
        "dropped": left_alive(publish),
        "kept": left_alive(lambda: kept.append(publish())),
        "receipts kept": left_alive(lambda: kept.append(publish().receipt)),
    }


def _apart(word: str) -> Any:
    """This module with one word, in a process of its own, whose memory is nobody else's."""
    place = Path(__file__).resolve().parents[1]
    command = [sys.executable, "-m", "assurance.soak", word]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"the course ended with {done.returncode}: {done.stderr[-500:]}")
    return json.loads(done.stdout)


def course_apart(publishes: int) -> Course:
    """The course in a process of its own."""
    told = _apart(str(publishes))
    return Course(**told | {"descriptors": tuple(told["descriptors"]), "threads": tuple(told["threads"])})


def left_alive_apart() -> dict[str, dict[str, int]]:
    """What publishing leaves alive, in a process of its own."""
    told: dict[str, dict[str, int]] = _apart("alive")
    return told


def examine() -> Part:
    """Ten thousand, measured."""
    found = course_apart(PUBLISHES)
    kept = -(-found.publishes // 10)
    return Part(
        title="Soak",
        how=f"{found.publishes:,} publishes in one process, each charged to one ledger; every tenth saved "
        "and loaded. Times are processor time, medians of the first and the last tenth.",
        findings=(
            Finding(
                what="No slow-down",
                figure=f"{found.first * 1e3:.1f} ms a publish at first, {found.last * 1e3:.1f} ms at last "
                f"({found.publishes:,} in {found.seconds:.0f} s)",
                holds=found.last < SLOWER * found.first,
            ),
            Finding(
                what="No leak",
                figure=f"{found.growth:+.0f} bytes of memory a publish (limit {BYTES_EACH:.0f})",
                holds=found.growth < BYTES_EACH,
            ),
            Finding(
                what="No file left open, no thread left behind",
                figure=f"{found.descriptors[0]} → {found.descriptors[1]} descriptors, "
                f"{found.threads[0]} → {found.threads[1]} threads",
                holds=found.descriptors[1] <= found.descriptors[0]
                and found.threads[1] <= found.threads[0] + 1,
            ),
            Finding(
                what="Every charge is in the ledger, which is checked in full",
                figure=f"{found.unclaimed + kept:,} entries in {found.ledger_bytes / 1e6:.1f} MB, "
                f"{found.verify_seconds:.2f} s",
                holds=found.unclaimed + kept == found.publishes and found.verify_seconds < 5.0,
            ),
        ),
    )


def main() -> None:
    """With a number: one course. With "alive": what stays. Without: the examination."""
    if len(sys.argv) > 1:
        word = sys.argv[1]
        with tempfile.TemporaryDirectory(prefix="dpgram-soak-") as name:
            folder = Path(name)
            told = publishing_leaves(folder) if word == "alive" else asdict(course(int(word), folder))
            print(json.dumps(told))
        return
    from assurance.page import table

    print(table(examine()))


if __name__ == "__main__":
    main()

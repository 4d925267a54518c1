"""What a curator runs, and what must be true of the folder after any fault: the plays of assurance.faults.

python -m assurance.fault_flows FLOW EVERY FATE …    # prints a JSON list with one object a fate

Each play copies a small folder (a table, its schema, a ledger with three charges), runs the flow in a watched
child whose k-th change of the folder meets the fate, judges what is left, and runs the flow again. It is a
program of its own because it forks: the fewer threads there are, the better.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final, final, get_args

import pyarrow as pa
import pyarrow.parquet as pq

import dpgram
from assurance.system_calls import Ending, Fate, unwatched, watched
from dpgram import cli
from dpgram.core.run import Measure
from dpgram.engines.local import LocalEngine
from dpgram.errors import DpgramError, LedgerError
from dpgram.mechanisms import CalibratedGaussian
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release
from dpgram.schema import Schema, numeric

CHARGED_BEFORE: Final = 3
OK, REFUSED, SAVED_ELSEWHERE, BROKEN = 0, 2, 4, 70
TELLING: Final = ("paid for", "was spent", "stays spent", "nothing need be published again")
"""How an error that comes after the charge says so, or that the release itself is not lost."""
TABLE: Final = pa.table(
    {"age": [20.0 + i % 60 for i in range(200)], "bmi": [15.0 + i % 30 for i in range(200)]}
)
SCHEMA: Final = Schema(numeric("age", 18, 90), numeric("bmi", 10, 60))
OPEN_SCHEMA: Final = Schema(numeric("age"), numeric("bmi", 10, 60))
BUDGET: Final[dict[str, Any]] = {"epsilon": 0.3, "delta": 1e-8, "adaptive": False}


@final
@dataclass(frozen=True, slots=True)
class Flow:
    """Something a curator does in a folder, and the releases it leaves there."""

    act: Callable[[Path], int]
    outputs: tuple[str, ...]


def _library(folder: Path) -> int:
    release = dpgram.publish(
        TABLE,
        SCHEMA,
        **BUDGET,
        ledger=folder / "a.ledger",
        progress=False,
        note="play",
        engine=LocalEngine(threads=1),
    )
    release.save(folder / "new.json", overwrite=True)
    return OK


def _command(folder: Path, *more: str) -> int:
    fixed = ["publish", str(folder / "a.parquet"), "--schema", str(folder / "a.toml"), "--threads", "1"]
    plain = ["--epsilon", "0.3", "--delta", "1e-8", "--no-adaptive"]
    return cli.run([*fixed, *plain, "--ledger", str(folder / "a.ledger"), "--json", *more])


def _overwrite(folder: Path) -> int:
    return _command(folder, "-o", str(folder / "old.json"), "--overwrite")


def _blocks(folder: Path) -> int:
    return _command(folder, "-o", str(folder / "b.json"), "--blocks", "age;bmi", "--overwrite")


def _learnt(folder: Path) -> int:
    release = dpgram.publish(
        folder / "a.parquet",
        OPEN_SCHEMA,
        epsilon=1.5,
        delta=1e-6,
        ledger=folder / "a.ledger",
        progress=False,
        adaptive=dpgram.Adaptive(bounds=0.3),
        engine=LocalEngine(threads=1),
    )
    release.save(folder / "new.json", overwrite=True)
    return OK


def _create(folder: Path) -> int:
    Ledger.create(folder / "b.ledger", name="b", epsilon=1.0, delta=1e-6)
    return OK


FLOWS: Final = {
    "publish and save": Flow(_library, ("new.json",)),
    "dpgram publish --overwrite": Flow(_overwrite, ("old.json",)),
    "dpgram publish --blocks": Flow(_blocks, ("b.block-1.json", "b.block-2.json")),
    "publish with learnt bounds": Flow(_learnt, ("new.json",)),
    "create a ledger": Flow(_create, ()),
}


@final
@dataclass(kw_only=True)
class Tally:
    """What one series of plays found."""

    flow: str
    fate: Fate
    steps: list[str] = field(default_factory=list)
    """What the undisturbed run did to the folder."""
    plays: int = 0
    """Faults injected."""
    charged: int = 0
    """Plays after which the ledger held the charge of the interrupted run."""
    released: int = 0
    """Plays after which every release of the interrupted run was there, whole."""
    refused: int = 0
    """Plays that ended in one clear line."""
    problems: list[str] = field(default_factory=list)


def series(name: str, every: int, fates: Sequence[Fate]) -> list[Tally]:
    """For each fate, one play for every `every`-th step of the flow, and one after the last."""
    flow, tallies = FLOWS[name], []
    with tempfile.TemporaryDirectory(prefix="dpgram-faults-") as place:
        root = Path(place).resolve()
        template = _template(root / "template")
        flow.act(Path(shutil.copytree(template, root / "rehearsal")))  # compiled once, not in each child
        calm = _play(flow, template, root / "calm", "count", 0)
        for fate in fates:
            tally = Tally(flow=name, fate=fate, steps=list(calm.ending.steps))
            if calm.ending.code != OK or not calm.ending.steps:
                tally.problems.append(f"the undisturbed run failed: {calm.said}")
            for at in sorted({*range(0, len(tally.steps), every), len(tally.steps)}):
                folder = root / f"{fate}-{at}"
                played = _play(flow, template, folder, fate, at)
                found = _judged(flow, folder, played, tally)
                step = tally.steps[at] if at < len(tally.steps) else "the end"
                tally.problems += [f"{name}: {fate} at {step} ({at}): {problem}" for problem in found]
                tally.plays += 1
                shutil.rmtree(folder)
            tallies.append(tally)
    return tallies


@final
@dataclass(frozen=True, slots=True)
class _Played:
    ending: Ending
    said: str
    drawn: bool
    elsewhere: tuple[Path, ...]
    """Releases that were saved in the folder for temporary files."""


def _template(folder: Path) -> Path:
    folder.mkdir()
    pq.write_table(TABLE, folder / "a.parquet")
    SCHEMA.to_file(folder / "a.toml")
    ledger = Ledger.create(folder / "a.ledger", name="a", epsilon=3.0, delta=1e-5)
    for number in range(CHARGED_BEFORE):
        release = dpgram.publish(
            TABLE, SCHEMA, **BUDGET, ledger=ledger, progress=False, engine=LocalEngine(threads=1)
        )
        release.save(folder / ("old.json" if number == 0 else f"kept-{number}.json"))
    return folder


def _play(flow: Flow, template: Path, folder: Path, fate: Fate, at: int) -> _Played:
    """The flow in a child. What it says and its temporary files go beside the folder, out of reach."""
    shutil.copytree(template, folder)
    aside = folder.with_name(folder.name + "-aside")
    aside.mkdir()
    said, drawn = aside / "said", aside / "drawn"

    def act() -> int:
        paper = os.open(said, os.O_CREAT | os.O_WRONLY | os.O_APPEND)
        os.dup2(paper, 1)
        os.dup2(paper, 2)
        tempfile.tempdir = str(aside)
        _tell_of_draws(drawn)
        try:
            return flow.act(folder)
        except DpgramError as problem:
            os.write(2, f"{problem}\n".encode())
            return REFUSED
        except BaseException as problem:  # noqa: BLE001  (whatever it is, it is a finding)
            os.write(2, f"Traceback: {type(problem).__name__}: {problem}\n".encode())
            return BROKEN

    ending = watched(act, folder, fate, at)
    text = said.read_text(encoding="utf-8", errors="replace") if said.exists() else ""
    found = tuple(path for path in aside.glob("dpgram-*/*.json") if not path.name.startswith("."))
    return _Played(ending, text, drawn.exists(), found)


def _tell_of_draws(sign: Path) -> None:
    """In the child only: the first noise that meets data leaves a sign outside the folder."""
    kinds: tuple[Any, ...] = (CalibratedGaussian, Measure)
    for kind in kinds:
        honest = kind.draw

        def draw(self: Any, *arguments: Any, honest: Any = honest) -> Any:
            sign.touch()
            return honest(self, *arguments)

        kind.draw = draw  # for good: the child ends with this flow


def _judged(flow: Flow, folder: Path, played: _Played, tally: Tally) -> list[str]:
    """Everything that is not as promised."""
    if flow.act is _create:
        return _judged_creation(folder, played, tally)
    problems = _judged_words(played)
    try:
        ledger = Ledger.open(folder / "a.ledger")
    except LedgerError as problem:
        return [*problems, f"the ledger does not open: {problem}"]
    charges = [entry.number for entry in ledger.history()]
    entries = len(charges)
    charged = entries > CHARGED_BEFORE
    if not CHARGED_BEFORE <= entries <= CHARGED_BEFORE + 1:
        problems.append(f"{entries} entries")
    if played.drawn and not charged:
        problems.append("noise was drawn without a charge")
    failed = played.ending.code == REFUSED
    if failed and charged and not any(word in played.said for word in TELLING):
        problems.append(f"charged, but it did not say so: {played.said.strip()}")
    if charged and "Nothing was spent" in played.said:
        problems.append("charged, but it said that nothing was spent")
    whole = _whole(flow, folder, played, problems)
    problems += _disagreements(ledger, whole)
    last = charges[CHARGED_BEFORE] if charged else None
    complete = len([release for release in whole.values() if _entry(release) == last])
    if played.ending.code == OK and complete < len(flow.outputs):
        problems.append("it said all went well, but a release is missing")
    tally.charged += charged
    tally.released += complete == len(flow.outputs)
    tally.refused += failed
    return problems + _judged_retry(flow, folder)


def _judged_words(played: _Played) -> list[str]:
    problems = []
    if played.ending.hung:
        problems.append("it hung")
    if "Traceback" in played.said or played.ending.code not in (OK, REFUSED, SAVED_ELSEWHERE, None):
        problems.append(f"not a clear error: {played.said[-300:]}")
    if played.ending.code == REFUSED and len(played.said.strip().splitlines()) != 1:
        problems.append(f"not one line: {played.said[-300:]}")
    return problems


def _whole(flow: Flow, folder: Path, played: _Played, problems: list[str]) -> dict[str, Release]:
    """The releases that are there; a half-written one is a problem."""
    places = [*(folder / name for name in flow.outputs), *folder.glob("kept-*.json"), *played.elsewhere]
    found: dict[str, Release] = {}
    for path in places:
        if path.exists():
            try:
                found[path.name] = dpgram.load(path)
            except DpgramError as problem:
                problems.append(f"half a release: {path.name}: {problem}")
    return found


def _disagreements(ledger: Ledger, releases: dict[str, Release]) -> list[str]:
    try:
        ledger.verify(releases)
    except LedgerError as problem:
        return [str(problem)]
    return []


def _entry(release: Release) -> int:
    """Of its last charge."""
    return max((each.entry for each in release.receipts), default=0)


def _judged_retry(flow: Flow, folder: Path) -> list[str]:
    """The same request again, and whole releases: taken up without a charge where something was kept.

    Where nothing was, it is one more charge, told as such, and a release that was lost is shown. What was
    killed between closing its charge and removing what it had kept is refused, and draws nothing.
    """
    kept = any(path.stat().st_size for path in folder.glob("a.ledger.unfinished-*"))
    history = Ledger.open(folder / "a.ledger").history()
    own = history[CHARGED_BEFORE:]
    ending = unwatched(lambda: flow.act(folder))
    if kept and own and own[0].closed:
        same = Ledger.open(folder / "a.ledger").history() == history
        return [] if ending.code != OK and same else ["a publication that was over went on"]
    if ending.code != OK:
        return [f"the retry failed with {ending.code}"]
    before = [entry.number for entry in (history[:CHARGED_BEFORE] if kept else history)]
    ledger = Ledger.open(folder / "a.ledger")
    releases = {name: dpgram.load(folder / name) for name in flow.outputs}
    checked = ledger.verify(releases)
    last = ledger.history()[-1]
    problems = []
    if checked.entries != len(before) + 1 or any(_entry(each) != last.number for each in releases.values()):
        problems.append(f"the retry left {checked.entries} charges")
    if not last.closed:
        problems.append("the charge of a release that is whole was not closed")
    if checked.unclaimed != tuple(before):
        problems.append("a charge vanished from those that no release claims")
    if ledger.spent > ledger.total:
        problems.append("overspent")
    return problems


def _judged_creation(folder: Path, played: _Played, tally: Tally) -> list[str]:
    """A new ledger is there or not; what is cut short says so, and can be made again as it says."""
    problems = _judged_words(played)
    tally.refused += played.ending.code == REFUSED
    path = folder / "b.ledger"
    try:
        there = Ledger.open(path).history() == ()
    except LedgerError as problem:
        there = False
        if "there is no ledger here" not in str(problem) and "delete it and create it again" not in str(
            problem
        ):
            problems.append(f"no way out: {problem}")
    tally.released += there
    if played.ending.code == OK and not there:
        problems.append("it said all went well, but there is no ledger")
    if not there:
        path.unlink(missing_ok=True)
        try:
            _create(folder)
        except DpgramError as problem:
            problems.append(f"it cannot be created again: {problem}")
    return problems


def main() -> None:
    """Play one flow under some fates and print what was found."""
    name, every, *fates = sys.argv[1:]
    paper = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the flows print is not the answer
    known = [fate for fate in get_args(Fate) if fate in fates]
    tallies = series(name, int(every), known)
    os.write(paper, json.dumps([asdict(tally) for tally in tallies]).encode())


if __name__ == "__main__":
    main()

"""Faults at every step of publishing: nothing spent without trace, no half release, clear errors, retries.

python -m assurance faults
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from assurance.fault_scenes import SCENES, Scene, crowd
from assurance.part import Finding, Part
from assurance.system_calls import Fate, why_not

PROJECT: Final = Path(__file__).resolve().parents[1]
FLOWS: Final = (
    "publish and save",
    "dpgram publish --overwrite",
    "dpgram publish --blocks",
    "publish with learnt bounds",
    "create a ledger",
)
WORDS: Final[dict[Fate, str]] = {
    "kill": "`kill -9` before a change of the disk",
    "torn": "`kill -9` in the middle of a write",
    "full": "The disk is full at a change, once",
    "full from here": "The disk is full from a change on",
    "broken": "The disk fails at a change, once",
    "read-only from here": "The disk becomes read-only at a change",
}
OTHERS: Final = tuple(fate for fate in WORDS if fate != "kill")
PLAYED: Final[tuple[tuple[str, int, tuple[Fate, ...]], ...]] = (
    ("publish and save", 1, tuple(WORDS)),
    ("create a ledger", 1, tuple(WORDS)),
    ("publish with learnt bounds", 1, ("kill",)),
    ("publish with learnt bounds", 4, OTHERS),
    ("dpgram publish --blocks", 1, ("kill",)),
    ("dpgram publish --blocks", 4, OTHERS),
    ("dpgram publish --overwrite", 1, ("kill",)),
    ("dpgram publish --overwrite", 4, OTHERS),
)
"""Kills at every step of every flow; the rest at every step where flows differ most, else at every fourth."""


def played(flow: str, every: int, fates: Sequence[Fate]) -> list[dict[str, Any]]:
    """The tallies of one flow, from a process of its own (assurance.fault_flows says what is in them)."""
    command = [sys.executable, "-m", "assurance.fault_flows", flow, str(every), *fates]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, timeout=3600, check=False)
    if done.returncode:
        raise RuntimeError(f"{flow}: ended with {done.returncode}: {done.stderr[-500:]}")
    tallies: list[dict[str, Any]] = json.loads(done.stdout)
    return tallies


def examine() -> Part:
    """Every fault at every step of every flow, and the scenes."""
    reason = why_not("full")
    steps = [_not_watched(reason)] if reason is not None else _steps()
    return Part(
        title="Faults",
        how="A child process runs a whole publication under ptrace; each system call of it that changes "
        "the folder is a step. Kills come at every step of every flow; other faults at every step of "
        "`publish` and `save` and of creating a ledger, and at every fourth of the other flows. After each, "
        "the ledger must open and hold the charge if noise was drawn, every release there must be whole and "
        "paid for, the error must be one clear line, and the same command must succeed when run again. "
        "Further scenes follow.",
        findings=(*steps, *_scenes()),
    )


def _not_watched(reason: str) -> Finding:
    return Finding(what="Faults at every change of the disk", figure=f"not run: {reason}", holds=False)


def _steps() -> list[Finding]:
    with ThreadPoolExecutor(2) as pool:
        tallies = [one for many in pool.map(lambda play: played(*play), PLAYED) for one in many]
    findings = []
    for fate, words in WORDS.items():
        mine = [tally for tally in tallies if tally["fate"] == fate]
        plays, charged, whole, refused = (
            sum(tally[name] for tally in mine) for name in ("plays", "charged", "released", "refused")
        )
        problems = [problem for tally in mine for problem in tally["problems"]]
        findings.append(
            Finding(
                what=f"{words} ({len(mine)} flows)",
                figure=f"{plays} faults, {charged} after the charge, {whole} with everything whole, "
                f"{refused} clear errors, {_told(problems)}",
                holds=not problems and plays > 0,
            )
        )
    return findings


def _scenes() -> list[Finding]:
    findings = []
    for words, scene in SCENES.items():
        with tempfile.TemporaryDirectory(prefix="dpgram-faults-") as folder:
            findings.append(_finding(words, scene(Path(folder).resolve())))
    with tempfile.TemporaryDirectory(prefix="dpgram-faults-") as folder:
        found = crowd(Path(folder), processes=4, epsilon=2.0)
        findings.append(_finding("four processes publish at once until the budget is spent", found))
    return findings


def _finding(words: str, found: Scene) -> Finding:
    return Finding(
        what=words[0].upper() + words[1:],
        figure=f"{found.plays} played, {found.releases} paid releases, {_told(found.problems)}",
        holds=not found.problems and found.plays > 0,
    )


def _told(problems: Sequence[str]) -> str:
    return "no promise broken" if not problems else f"{len(problems)} broken, first: {problems[0]}"

"""Fuzzing of everything that comes from outside: release files, schemas, arguments, CSV and Parquet tables.

python -m assurance fuzzing
"""

from __future__ import annotations

import os
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, final

from assurance.part import Finding, Part

PROJECT: Final = Path(__file__).resolve().parents[1]
TARGETS: Final = {
    "releases": "Release files: refused by name, or loaded and saved to themselves",
    "schemas": "Schema files: refused by name, or the same schema in both forms",
    "commands": "Command lines: exit code 0, or 2 and one line; no budget lost",
    "csv_tables": "CSV tables: as an independent slow reading reads them, or refused",
    "parquet_tables": "Parquet tables: exact where whole; where damaged, read or refused",
    "one_row": "One row of any content, from every source: nothing is refused, warned of or moved by it",
}
SECONDS: Final = 75
"""For each target, two at a time."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Campaign:
    """What fuzzing one target came to."""

    inputs: int
    code: int
    """How the fuzzer ended; 0 is well."""
    places: int
    """Places of the program that inputs have reached, by the fuzzer's count; 0 where nothing guides."""
    finding: str


def why_not_guided() -> str | None:
    """Why the guided fuzzer cannot run here, or None."""
    return None if find_spec("atheris") else "atheris is not installed (pip install 'dpgram[assurance]')"


def guided(target: str, seconds: int, inputs: int | None = None) -> Campaign:
    """One target under atheris, in a process of its own: a crash of it is a finding."""
    with tempfile.TemporaryDirectory(prefix="dpgram-fuzz-") as place:
        # The fuzzer leaves without cleaning up, so its temporary files go into the folder that goes.
        corpus = Path(place) / "corpus"
        corpus.mkdir()
        surroundings = os.environ | {"TMPDIR": place}
        command = [sys.executable, "-m", "assurance.fuzz_targets.guided", target, str(seconds), str(corpus)]
        command += [] if inputs is None else [str(inputs)]
        try:
            done = subprocess.run(
                command,
                cwd=PROJECT,
                env=surroundings,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=seconds + 200,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return Campaign(inputs=0, code=-1, places=0, finding="it hung")
    counts = re.findall(r"^#(\d+)\t", done.stderr, re.MULTILINE)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    told = "" if done.returncode == 0 else _last_words(done.stderr + done.stdout)
    return Campaign(
        inputs=int(counts[-1]) if counts else 0,
        code=done.returncode,
        places=int(covered[-1]) if covered else 0,
        finding=told,
    )


def blind(target: str, inputs: int, seed: int = 1) -> Campaign:
    """The target's own mutations without guidance, in this process."""
    module, dice = import_module(f"assurance.fuzz_targets.{target}"), random.Random(seed)
    pool = module.seeds()
    for number in range(inputs):
        data = dice.choice(pool)
        for _ in range(dice.randint(0, 3)):
            data = module.mutate(data, dice)
        try:
            module.examine(data)
        except Exception as problem:  # noqa: BLE001  (each is a finding)
            told = f"{type(problem).__name__}: {problem} for {data[:200]!r}"
            return Campaign(inputs=number + 1, code=1, places=0, finding=told)
    return Campaign(inputs=inputs, code=0, places=0, finding="")


def examine() -> Part:
    """Every target for the same time."""
    reason = why_not_guided()
    with ThreadPoolExecutor(2) as pool:
        run = (lambda target: guided(target, SECONDS)) if reason is None else _blind_apart
        campaigns = dict(zip(TARGETS, pool.map(run, TARGETS), strict=True))
    guidance = "guided by the code that inputs reach (atheris)" if reason is None else f"unguided: {reason}"
    total = sum(campaign.inputs for campaign in campaigns.values())
    return Part(
        title="Fuzzing",
        how=f"{total:,} inputs, {guidance}: seeds are real files and command lines, mutated half by grammar "
        "and half blindly; each input has a limit of time and memory. A crash, a hang, an exception that is "
        "not a clear refusal, a result that differs from an independent reading, or a lost charge is a "
        "finding.",
        findings=tuple(_finding(TARGETS[name], campaign) for name, campaign in campaigns.items()),
    )


def _blind_apart(target: str) -> Campaign:
    """Unguided, in a process of its own, for the same inputs on every machine."""
    inputs = {"commands": 300, "one_row": 1_000}.get(target, 2_000)
    code = f"from assurance.fuzzing import blind; r = blind({target!r}, {inputs}); print(r.code, r.finding)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True, check=False
    )
    fine = done.returncode == 0 and done.stdout.startswith("0 ")
    told = "" if fine else (done.stdout + done.stderr)[-300:]
    return Campaign(inputs=inputs, code=0 if fine else 1, places=0, finding=told)


def _finding(words: str, campaign: Campaign) -> Finding:
    reached = f", {campaign.places:,} places of the code reached" if campaign.places else ""
    result = "nothing found" if campaign.code == 0 else f"FOUND: {campaign.finding}"
    return Finding(
        what=words,
        figure=f"{campaign.inputs:,} inputs{reached}: {result}",
        holds=campaign.code == 0 and campaign.inputs > 0,
    )


def _last_words(text: str) -> str:
    """The exception and where it was raised, or what the fuzzer itself reports."""
    lines = [
        line.strip() for line in text.splitlines() if re.match(r"\S*(Error|Exception|ERROR|ALARM)", line)
    ]
    if not lines:
        return text[-300:]
    raised = re.findall(r'File "[^"]*?([^/"]+)", line (\d+)', text)
    place = " ({}, line {})".format(*raised[-1]) if raised else ""
    return lines[-1][:300] + place

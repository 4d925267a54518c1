"""Fuzzing of all that comes from outside: releases, series, sums, journals, schemas, arguments, tables.

python -m assurance fuzzing                          # the part of `make assurance`
python -m assurance.fuzzing --inputs 1000000         # the long form: so many inputs over all targets
"""

from __future__ import annotations

import argparse
import faulthandler
import random
import re
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Final, final

from assurance.isolated import one_blas_thread
from assurance.part import Finding, Part

PROJECT: Final = Path(__file__).resolve().parents[1]
TARGETS: Final = {
    "releases": "Release files: refused by name, or loaded and asked an analyst's questions",
    "partials": "Partial sums of sites: refused by name, or loaded and merged",
    "series": "Public files of a series: refused by name, or read and asked for windows, trends and pages",
    "journals": "Files of an interrupted publication: refused by name, or it goes on; nothing is paid twice",
    "schemas": "Schema files: refused by name, or the same schema in both forms",
    "commands": "Command lines: exit code 0, or 2 and one line; no budget lost",
    "csv_tables": "CSV tables: as an independent slow reading reads them, or refused",
    "parquet_tables": "Parquet tables: exact where whole; where damaged, read or refused",
    "one_row": "One row of any content, from every source: nothing is refused, warned of or moved by it",
}
SECONDS: Final = 45
"""For each target, two at a time."""
SHARES: Final = {
    "releases": 0.1,
    "partials": 0.2,
    "series": 0.05,
    "schemas": 0.3,
    "csv_tables": 0.32,
    "journals": 0.005,
    "one_row": 0.01,
    "parquet_tables": 0.012,
    "commands": 0.003,
}
"""Of the inputs of the long form: targets that take longer get fewer."""
HUNG: Final = 60
"""Seconds by the clock after which an unguided input counts as hung, whatever the machine does beside it."""
LONGEST_RUN: Final = 6 * 3600
"""Seconds that one target may take in the long form."""


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
    culprit: bytes = b""
    """The input that is the finding."""


def why_not_guided() -> str | None:
    """Why the guided fuzzer cannot run here, or None."""
    return None if find_spec("atheris") else "atheris is not installed (pip install 'dpgram[assurance]')"


def guided(target: str, seconds: int, inputs: int | None = None, seed: int = 1) -> Campaign:
    """One target under atheris, in a process of its own: a crash of it is a finding."""
    with tempfile.TemporaryDirectory(prefix="dpgram-fuzz-") as place:
        # The fuzzer leaves without cleaning up, so its temporary files go into the folder that goes.
        corpus = Path(place) / "corpus"
        corpus.mkdir()
        surroundings = one_blas_thread() | {"TMPDIR": place}
        command = [sys.executable, "-m", "assurance.fuzz_targets.guided", target, str(seconds), str(corpus)]
        command += [] if inputs is None else [str(inputs), str(seed)]
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
        found = [path.read_bytes() for path in sorted(corpus.glob("found-*"), reverse=True)]
    counts = re.findall(r"^#(\d+)\t", done.stderr, re.MULTILINE)
    covered = re.findall(r"cov: (\d+)", done.stderr)
    told = "" if done.returncode == 0 else _last_words(done.stderr + done.stdout)
    return Campaign(
        inputs=int(counts[-1]) if counts else 0,
        code=done.returncode,
        places=int(covered[-1]) if covered else 0,
        finding=told,
        culprit=found[0] if found else b"",
    )


def blind(target: str, inputs: int, seed: int = 1) -> Campaign:
    """The target's own mutations without guidance, in this process."""
    module, dice = import_module(f"assurance.fuzz_targets.{target}"), random.Random(seed)
    pool = module.seeds()
    for number in range(inputs):
        # What hangs outside of Python hears no signal: the process is ended, and its parent tells so.
        faulthandler.dump_traceback_later(HUNG, exit=True)
        data = dice.choice(pool)
        for _ in range(dice.randint(0, 3)):
            data = module.mutate(data, dice)
        try:
            module.examine(data)
        except Exception as problem:  # noqa: BLE001  (each is a finding)
            told = f"{type(problem).__name__}: {problem} for {data[:200]!r}"
            return Campaign(inputs=number + 1, code=1, places=0, finding=told, culprit=data)
    faulthandler.cancel_dump_traceback_later()
    return Campaign(inputs=inputs, code=0, places=0, finding="")


def examine() -> Part:
    """Every target for the same time."""
    reason = why_not_guided()
    with ThreadPoolExecutor(2) as pool:
        run = (lambda target: guided(target, SECONDS)) if reason is None else blind_apart
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


def blind_apart(target: str, inputs: int | None = None, seed: int = 1) -> Campaign:
    """Unguided, in a process of its own, for the same inputs on every machine."""
    inputs = inputs or {"commands": 300, "one_row": 1_000}.get(target, 2_000)
    call = f"blind({target!r}, {inputs}, {seed})"
    code = f"from assurance.fuzzing import blind; r = {call}; print(r.code, r.finding)"
    command, surroundings = [sys.executable, "-c", code], one_blas_thread()
    done = subprocess.run(command, cwd=PROJECT, env=surroundings, capture_output=True, text=True, check=False)
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


def long_form(total: int, seed: int, targets: list[str], keep: Path | None) -> bool:
    """So many inputs, shared by these targets, one after another; whether nothing was found."""
    reason = why_not_guided()
    print("guided by coverage (atheris)" if reason is None else f"unguided: {reason}", flush=True)
    whole, reached, well = sum(SHARES[name] for name in targets), 0, True
    for name in targets:
        inputs, begun = round(total * SHARES[name] / whole), time.monotonic()
        if reason is None:
            campaign = guided(name, LONGEST_RUN, inputs, seed)
        else:
            campaign = blind_apart(name, inputs, seed)
        reached += campaign.inputs
        well = well and campaign.code == 0
        if keep is not None and campaign.code != 0:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{name}-{seed}").write_bytes(campaign.culprit)
        finding = _finding(name, campaign)
        print(f"{name}: {finding.figure} ({time.monotonic() - begun:.0f} s)", flush=True)
    print(f"{reached:,} inputs in all: {'nothing found' if well else 'FINDINGS'}", flush=True)
    return well


def main() -> None:
    """The long form from the command line."""
    parser = argparse.ArgumentParser(description="Fuzz every target with a given number of inputs in all.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--targets", nargs="*", choices=list(SHARES), default=list(SHARES))
    parser.add_argument("--keep", type=Path, help="a folder for inputs that are findings")
    given = parser.parse_args()
    sys.exit(0 if long_form(given.inputs, given.seed, given.targets, given.keep) else 1)


if __name__ == "__main__":
    main()

"""One examination in a process of its own: a crash, a leak or a hang in it cannot touch the others.

python -m assurance.isolated MODULE FILE    # the child: runs MODULE.examine() and writes its part as JSON
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, final

from assurance.part import Finding, Part

PROJECT: Final = Path(__file__).resolve().parents[1]
LIMIT: Final = 1800.0
"""Seconds after which one examination counts as hung; all together take less than that on two quiet cores."""
HEARTBEAT: Final = 0.1
"""Seconds between two looks at those that run."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an examination found, and how long it took."""

    part: Part
    seconds: float


@final
class _Examination:
    """One that runs, in a new process and a folder of its own."""

    def __init__(self, module: str) -> None:
        self.module = module
        self._folder = tempfile.TemporaryDirectory()
        self._answer = Path(self._folder.name) / "part.json"
        self._begun = time.monotonic()
        command = [sys.executable, "-m", "assurance.isolated", module, str(self._answer)]
        # A session of its own, so that what the examination started ends with it.
        self._child = subprocess.Popen(command, cwd=PROJECT, env=one_blas_thread(), start_new_session=True)

    def outcome(self, limit: float) -> Outcome | None:
        """None while it runs. One that crashes or hangs is a part that fails and says so."""
        code, seconds = self._child.poll(), time.monotonic() - self._begun
        if code is None and seconds < limit:
            return None
        trouble = f"did not end within {limit:.0f} s"
        if code is not None:
            trouble = f"ended with exit code {code}, without a result"
        if self._answer.exists():
            return Outcome(part=_decoded(self._answer.read_text(encoding="utf-8")), seconds=seconds)
        name = self.module.removeprefix("assurance.").replace("_", " ")
        failure = Finding(
            what=f"the examination `{self.module}` runs to its end", figure=trouble, holds=False
        )
        part = Part(title=name.capitalize(), how="No result.", findings=(failure,))
        return Outcome(part=part, seconds=seconds)

    def end(self) -> None:
        _end_session(self._child)
        self._folder.cleanup()


def examine_apart(
    modules: Sequence[str], *, at_once: int = 1, limit: float = LIMIT
) -> Iterator[tuple[str, Outcome]]:
    """Run `examine()` of each module in a process of its own, so many at once; in the order of their ends.

    Leaving early ends those that run.
    """
    waiting, running = list(modules), list[_Examination]()
    try:
        while waiting or running:
            while waiting and len(running) < at_once:
                running.append(_Examination(waiting.pop(0)))
            for each in list(running):
                outcome = each.outcome(limit)
                if outcome is not None:
                    running.remove(each)
                    each.end()
                    yield each.module, outcome
            time.sleep(HEARTBEAT)
    finally:
        for each in running:
            each.end()


def one_blas_thread() -> dict[str, str]:
    """The environment of a process that computes in one thread.

    Examinations run two processes at once, and the matrices are small. Threads that wait for each other turn
    in circles, which takes time of the processor on a busy machine.
    """
    return {"OPENBLAS_NUM_THREADS": "1", **os.environ}


def _end_session(child: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(child.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        child.wait()


def _decoded(text: str) -> Part:
    told = json.loads(text)
    findings = tuple(Finding(**{**finding, "cells": tuple(finding["cells"])}) for finding in told["findings"])
    return Part(title=told["title"], how=told["how"], findings=findings, columns=tuple(told["columns"]))


def _answer(module: str, path: Path) -> None:
    part = import_module(module).examine()
    text = json.dumps(asdict(part), ensure_ascii=False)
    _decoded(text)
    # Complete or absent: a child that is killed while it writes has not answered.
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_text(text, encoding="utf-8")
    unfinished.replace(path)


if __name__ == "__main__":
    _answer(sys.argv[1], Path(sys.argv[2]))

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
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Final, final

from assurance.part import Finding, Part

PROJECT: Final = Path(__file__).resolve().parents[1]
LIMIT: Final = 1800.0
"""Seconds after which one examination counts as hung; all together take less than that on two quiet cores."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What an examination found, and how long it took."""

    part: Part
    seconds: float


def examine_apart(module: str, limit: float = LIMIT) -> Outcome:
    """Run `module.examine()` in a new process. One that crashes or hangs is a part that fails and says so."""
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        answer = Path(folder) / "part.json"
        command = [sys.executable, "-m", "assurance.isolated", module, str(answer)]
        # A session of its own, so that what the examination started ends with it.
        child = subprocess.Popen(command, cwd=PROJECT, env=_surroundings(), start_new_session=True)
        try:
            code = child.wait(limit)
            trouble = f"ended with exit code {code}, without a result"
        except subprocess.TimeoutExpired:
            trouble = f"did not end within {limit:.0f} s"
        finally:
            _end_session(child)
        seconds = time.monotonic() - begun
        if answer.exists():
            return Outcome(part=_decoded(answer.read_text(encoding="utf-8")), seconds=seconds)
    name = module.removeprefix("assurance.").replace("_", " ")
    failure = Finding(what=f"the examination `{module}` runs to its end", figure=trouble, holds=False)
    return Outcome(part=Part(title=name.capitalize(), how="No result.", findings=(failure,)), seconds=seconds)


def _surroundings() -> dict[str, str]:
    """One BLAS thread per process: examinations run two processes at once, and the matrices are small."""
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
    findings = tuple(Finding(**finding) for finding in told["findings"])
    return Part(title=told["title"], how=told["how"], findings=findings)


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

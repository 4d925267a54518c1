"""Install a wheel or an sdist into an empty environment and do the main job with what arrived.

    python -m distribution.clean_install dist/*

Nothing of this folder, of the repository or of the environment around it can be imported there: the
interpreter runs isolated (-I), in an empty folder.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

_JOB: Final = """
import json, pathlib, sys
from importlib import metadata
import dpgram
from dpgram.demo.run import insurance
home = pathlib.Path(dpgram.__file__).resolve()
assert home.is_relative_to(pathlib.Path(sys.prefix).resolve()), home
ledger = dpgram.Ledger.create("t.ledger", name="t", epsilon=3.0, delta=1e-5)
release = dpgram.publish(insurance.table(2000), insurance.schema(), epsilon=1.0, delta=1e-6, ledger=ledger)
read = dpgram.load(release.save("t.dpgram.json"))
assert read == release
fit = read.regress("charges", ["age", "smoker"])
print(json.dumps({
    "version": metadata.version("dpgram"),
    "smoker": fit.coefficients["smoker=yes"],
    "distributions": len(list(metadata.distributions())),
}))
"""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One installation that worked."""

    file: str
    version: str
    distributions: int
    """Packages in the environment: dpgram, what it needs, and pip."""
    seconds: float


def try_out(built: Path, *, folder: Path) -> Tried:
    """Install `built` with its run-time dependencies into a new environment in `folder`; use it there."""
    started = time.perf_counter()
    home, empty = folder / "environment", folder / "empty"
    venv.create(home, with_pip=True, symlinks=True)
    empty.mkdir()
    python = home / "bin" / "python"
    _run(python, "-m", "pip", "install", "--quiet", "--no-input", "--no-compile", built.resolve(), at=empty)
    _run(python, "-m", "pip", "check", at=empty)
    told = json.loads(_run(python, "-I", "-c", _JOB, at=empty).splitlines()[-1])
    if not told["smoker"] > 0:
        raise RuntimeError(f"{built.name} was installed but gave a wrong answer: {told}")
    _run(home / "bin" / "dpgram", "demo", "--people", "2000", "--output", empty / "demo", at=empty)
    _run(home / "bin" / "dpgram", "show", empty / "t.dpgram.json", at=empty)
    return Tried(
        file=built.name,
        version=told["version"],
        distributions=told["distributions"],
        seconds=time.perf_counter() - started,
    )


def _run(program: Path, *arguments: object, at: Path) -> str:
    done = subprocess.run(
        [program, *map(str, arguments)], cwd=at, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{program.name} {arguments[:3]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            tried = try_out(Path(name), folder=Path(folder))
        print(f"{tried.file}: installed, {tried.distributions} packages, works ({tried.seconds:.0f} s)")


if __name__ == "__main__":
    main()

"""Install a wheel or an sdist into empty environments and do each side's job with what arrived.

    python -m distribution.clean_install dist/*

Twice: `dpgram` alone has to load a release and answer questions, `dpgram[publish]` has to publish one.
Nothing of this folder, of the repository or of the environment around it can be imported there: the
interpreter runs isolated (-I), in an empty folder.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tempfile
import time
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

PROJECT: Final = Path(__file__).resolve().parents[1]
_GOLDEN: Final = PROJECT / "tests" / "golden" / "insurance-gaussian-v1.dpgram.json"

_BEGIN: Final = """
import json, pathlib, sys
from importlib import metadata
import dpgram
home = pathlib.Path(dpgram.__file__).resolve()
assert home.is_relative_to(pathlib.Path(sys.prefix).resolve()), home
"""
_ANALYSE: Final = """
release = dpgram.load("t.dpgram.json")
for method in ("auto", "lasso", "elastic-net"):
    fit = release.regress("charges", ["age", "smoker"], method=method)
    assert fit.fitted_params["smoker=yes"] > 0, method
fit.conf_int(), fit.predict({"age": [40], "smoker": ["no"]}), fit.bootstrap(draws=20), fit.summary()
release.pca(), release.explore("page.html"), release.report("report.html")
try:
    dpgram.publish
except dpgram.DpgramError as refusal:
    assert "dpgram[publish]" in str(refusal), refusal
else:
    raise AssertionError("the curator's side came along")
"""
_PUBLISH: Final = """
from dpgram.demo import insurance
ledger = dpgram.Ledger.create("t.ledger", name="t", epsilon=3.0, delta=1e-5)
release = dpgram.publish(insurance.table(2000), insurance.schema(), epsilon=1.0, delta=1e-6, ledger=ledger)
assert dpgram.load(release.save("t.dpgram.json")) == release
assert release.regress("charges", ["age", "smoker"]).fitted_params["smoker=yes"] > 0
import dpgram.audit, dpgram.estimators
"""
_END: Final = """
told = {"version": metadata.version("dpgram"), "distributions": len(list(metadata.distributions()))}
print(json.dumps(told))
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


def try_out_both(built: Path, *, folder: Path) -> tuple[Tried, Tried]:
    """The analyst's side, then the curator's."""
    return analyst(built, folder=folder / "analyst"), curator(built, folder=folder / "curator")


def analyst(built: Path, *, folder: Path) -> Tried:
    """`built` without extras reads a release and answers, and says what it would need to publish one."""
    empty = folder / "empty"
    empty.mkdir(parents=True)
    shutil.copy(_GOLDEN, empty / "t.dpgram.json")
    commands = (
        ("show", "t.dpgram.json"),
        ("regress", "t.dpgram.json", "charges", "--json"),
        ("pca", "t.dpgram.json"),
        ("explore", "t.dpgram.json", "-o", "p.html"),
        ("report", "t.dpgram.json", "-o", "r.html"),
    )
    return _tried(built, _ANALYSE, commands, folder=folder)


def curator(built: Path, *, folder: Path) -> Tried:
    """`built` with the extra `publish` does the main job and runs the demonstration."""
    (folder / "empty").mkdir(parents=True)
    commands = (("demo", "--people", "2000", "--output", "demo"), ("show", "t.dpgram.json"))
    return _tried(built, _PUBLISH, commands, folder=folder, extra="[publish]")


def _tried(
    built: Path, job: str, commands: Sequence[Sequence[str]], *, folder: Path, extra: str = ""
) -> Tried:
    started = time.perf_counter()
    home, empty = folder / "environment", folder / "empty"
    venv.create(home, with_pip=True, symlinks=True)
    python = home / "bin" / "python"
    pip = ("-m", "pip", "install", "--quiet", "--no-input", "--no-compile")
    _run(python, *pip, f"{built.resolve()}{extra}", at=empty)
    _run(python, "-m", "pip", "check", at=empty)
    told = json.loads(_run(python, "-I", "-c", _BEGIN + job + _END, at=empty).splitlines()[-1])
    for command in commands:
        _run(home / "bin" / "dpgram", *command, at=empty)
    return Tried(file=f"{built.name}{extra}", seconds=time.perf_counter() - started, **told)


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
            for tried in try_out_both(Path(name), folder=Path(folder)):
                packages = f"{tried.distributions} packages"
                print(f"{tried.file}: installed, {packages}, works ({tried.seconds:.0f} s)")


if __name__ == "__main__":
    main()

"""What dpgram is made from and shipped as: dependencies, the lock, builds that repeat and work elsewhere."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from distribution.build import PROJECT, Built, build
from distribution.clean_install import Tried, try_out_both

from assurance.part import Finding, Part

DEPENDENCIES_AT_MOST: Final = 12
_HEAVY: Final = (
    "pyarrow",
    "polars",
    "pandas",
    "opendp",
    "flint",
    "sklearn",
    "cryptography",
    "typer",
)
_GOLDEN: Final = PROJECT / "tests" / "golden" / "insurance-gaussian-v1.dpgram.json"
_PINNED: Final = re.compile(
    r"^[a-z0-9][a-z0-9.-]*==\S+.*(?:\n    --hash=sha256:[0-9a-f]{64}.*)+", re.MULTILINE
)


def examine() -> Part:
    with tempfile.TemporaryDirectory(prefix="dpgram-build-") as name:
        folder = Path(name)
        first = build(folder / "first")
        second = build(folder / "second", commit=first.commit)
        same = first.digests == second.digests
        with ThreadPoolExecutor(2) as both:
            tried = list(both.map(lambda kind: _installed(first, kind, folder), ("wheel", "sdist")))
        foreign = _foreign(first.wheel)
    return Part(
        title="Supply chain",
        how="The sdist and the wheel are built twice from the last commit and compared byte by byte; each is "
        "installed into two empty environments: without extras it loads a release and answers questions, "
        "with the extra `publish` it publishes, loads and fits.",
        findings=(
            _declared(),
            _imported("import dpgram", "modules of heavy packages that `import dpgram` loads"),
            _imported(
                f"import dpgram; dpgram.load({str(_GOLDEN)!r})",
                "modules of heavy packages that loading a release loads",
            ),
            _locked(),
            Finding(
                what="two builds of sdist and wheel",
                figure="the same bytes" if same else "DIFFERENT bytes",
                holds=same,
            ),
            Finding(
                what="files in the wheel that are not the package's",
                figure=str(len(foreign)),
                holds=not foreign,
            ),
            *tried,
        ),
    )


def _installed(built: Built, kind: str, folder: Path) -> Finding:
    place = folder / kind
    place.mkdir()
    file: Path = getattr(built, kind)
    try:
        found: tuple[Tried, Tried] | str = try_out_both(file, folder=place)
    except (RuntimeError, OSError) as problem:
        found = " ".join(str(problem).split())[-200:]
    if isinstance(found, str):
        return Finding(what=f"the {kind} in empty environments", figure=found, holds=False)
    analyst, curator = (one.distributions for one in found)
    return Finding(
        what=f"the {kind} in empty environments",
        figure=f"with {analyst} packages in all: loads and answers; with `publish` and {curator}: publishes, "
        "loads, fits, `dpgram demo`",
        holds=True,
    )


def _declared() -> Finding:
    metadata = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = metadata["project"]["dependencies"]
    return Finding(
        what="packages needed at run time, each with its reason in the reference",
        figure=f"{len(needed)} (at most {DEPENDENCIES_AT_MOST})",
        holds=len(needed) <= DEPENDENCIES_AT_MOST,
    )


def _imported(code: str, what: str) -> Finding:
    program = f"{code}\nimport sys, json; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    modules = json.loads(done.stdout.splitlines()[-1])
    heavy = sorted({name.split(".")[0] for name in modules} & set(_HEAVY))
    return Finding(what=what, figure=", ".join(heavy) or "none", holds=not heavy)


def _locked() -> Finding:
    lock = (PROJECT / "requirements-dev.lock").read_text(encoding="utf-8")
    entries = re.findall(r"^[a-z0-9][^\n]*", lock, re.MULTILINE)
    hashed = _PINNED.findall(lock)
    return Finding(
        what="packages of the development lock pinned with SHA-256 hashes, and addresses in it",
        figure=f"{len(hashed)} of {len(entries)}; {lock.count('://')} addresses",
        holds=len(hashed) == len(entries) > 0 and "://" not in lock,
    )


def _foreign(wheel: Path) -> list[str]:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    return [name for name in names if not re.match(r"dpgram(-[\d.]+\.dist-info)?/", name)]

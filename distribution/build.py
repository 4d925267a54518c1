"""Build sdists and wheels so that whoever has the same sources gets the same bytes.

    python -m distribution.build            # into dist/
    python -m distribution.build --twice    # twice, in different folders, and compare

What is built is the last commit, not what lies around in the working tree: dpgram, and dpgram-papers from the
folder papers/. Each sdist is packed anew in one order, with one date and no names of users; the wheel is
built from the unpacked sdist, which shows that the sdist is complete. The same bytes need the same build
tools: those of requirements-dev.lock.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, final

PROJECT: Final = Path(__file__).resolve().parents[1]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Distribution:
    """One project of this repository, and what its sdist is made of."""

    home: Path
    """Where its pyproject.toml is, from the top of the repository."""
    shipped: tuple[str, ...]
    """Files and folders there; tests, benchmarks and documentation stay in the repository."""

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple((self.home / name).as_posix() for name in self.shipped)


_EVERY: Final = ("src", "pyproject.toml", "README.md", "LICENSE")
DPGRAM: Final = Distribution(home=Path(), shipped=(*_EVERY, "MANIFEST.in", "CHANGELOG.md", "SECURITY.md"))
PAPERS: Final = Distribution(home=Path("papers"), shipped=_EVERY)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """Two files to install from, and what they were built from."""

    commit: str
    wheel: Path
    sdist: Path

    @property
    def digests(self) -> dict[str, str]:
        return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in (self.sdist, self.wheel)}


def build(
    target: Path, *, of: Distribution = DPGRAM, commit: str = "HEAD", epoch: int | None = None
) -> Built:
    """Build both into `target`; `epoch` dates every file inside, by default as the commit is dated."""
    source = _git("rev-parse", commit).decode().strip()
    date = _date(source) if epoch is None else epoch
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        work = Path(name)
        with tarfile.open(
            fileobj=io.BytesIO(_git("archive", "--format=tar", source, "--", *of.paths))
        ) as all_of:
            all_of.extractall(work / "sources", filter="data")
        raw = _run_backend("sdist", work / "sources" / of.home, work / "raw", date)
        sdist = target / raw.name
        sdist.write_bytes(_packed_anew(raw, date))
        with tarfile.open(sdist) as archive:
            archive.extractall(work / "unpacked", filter="data")
        (unpacked,) = (work / "unpacked").iterdir()
        made = _run_backend("wheel", unpacked, work / "wheel", date)
        wheel = Path(shutil.copy(made, target / made.name))
    return Built(commit=source, wheel=wheel, sdist=sdist)


def _date(commit: str) -> int:
    """Seconds since 1970."""
    asked = os.environ.get("SOURCE_DATE_EPOCH")
    return int(_git("log", "-1", "--format=%ct", commit) if asked is None else asked)


def _git(*arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=PROJECT, capture_output=True, check=True).stdout


def _run_backend(kind: str, sources: Path, target: Path, epoch: int) -> Path:
    environment = os.environ | {
        "SOURCE_DATE_EPOCH": str(epoch),
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
    }
    before = os.umask(0o022)  # permissions inside a wheel follow it
    try:
        subprocess.run(
            [sys.executable, "-m", "build", f"--{kind}", "--no-isolation", "--outdir", target, sources],
            env=environment,
            check=True,
            capture_output=True,
        )
    finally:
        os.umask(before)
    (made,) = target.iterdir()
    return made


def _packed_anew(sdist: Path, epoch: int) -> bytes:
    """The same files in one order, owned by nobody, of one date; gzip without a name or a clock."""
    packed = io.BytesIO()
    with tarfile.open(sdist) as old, tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in sorted(old.getmembers(), key=lambda member: member.name):
            fresh = tarfile.TarInfo(member.name)
            fresh.type, fresh.mtime = member.type, epoch
            fresh.mode = 0o755 if member.isdir() else 0o644
            content = old.extractfile(member) if member.isfile() else None
            fresh.size = member.size if content is not None else 0
            new.addfile(fresh, content)
    return gzip.compress(packed.getvalue(), mtime=epoch)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m distribution.build", description="Build dpgram and dpgram-papers."
    )
    parser.add_argument("--output", type=Path, default=PROJECT / "dist")
    parser.add_argument("--twice", action="store_true", help="build again and compare the bytes")
    asked = parser.parse_args()
    for one in (DPGRAM, PAPERS):
        built = build(asked.output, of=one)
        for name, digest in built.digests.items():
            print(f"{digest}  {name}")
        if asked.twice:
            with tempfile.TemporaryDirectory() as folder:
                if build(Path(folder), of=one, commit=built.commit).digests != built.digests:
                    sys.exit("the second build differs from the first")
            print("a second build gave the same bytes")


if __name__ == "__main__":
    main()

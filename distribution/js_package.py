"""Builds the JavaScript package: `python -m distribution.js_package`.

The arithmetic is that of the page and kept once, in src/dpgram/explorer/arithmetic/; the package gets its
copy when it is built.
"""

from __future__ import annotations

import argparse
import shutil
import tarfile
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
SOURCE = PROJECT / "js"
ARITHMETIC = PROJECT / "src" / "dpgram" / "explorer" / "arithmetic"
SHIPPED = ("package.json", "README.md", "dpgram.js", "dpgram.d.ts")


def assembled(folder: Path) -> Path:
    """The package in this folder, ready to be imported."""
    package = folder / "package"
    package.mkdir(parents=True)
    for name in SHIPPED:
        shutil.copy(SOURCE / name, package / name)
    shutil.copytree(ARITHMETIC, package / "arithmetic")
    return package


def build(output: Path) -> Path:
    """What `npm install` takes: a packed folder `package`."""
    output.mkdir(parents=True, exist_ok=True)
    target = output / "dpgram.tgz"
    with tempfile.TemporaryDirectory() as folder, tarfile.open(target, "w:gz") as archive:
        archive.add(assembled(Path(folder)), arcname="package")
    return target


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--output", type=Path, default=Path("dist"))
    print(build(reader.parse_args().output.resolve()))

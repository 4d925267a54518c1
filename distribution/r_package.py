"""Builds the R package with its example release and its test vectors: `python -m distribution.r_package`.

The vectors are kept once, in conformance/; the package gets its copy when it is built.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import tempfile
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]
VECTORS = PROJECT / "conformance" / "vectors"
EXAMPLES = {"people": "adaptive", "declared": "models"}
"""The kinds of releases that examples and the vignette read, by the names they have there."""


def assembled(folder: Path) -> Path:
    """The sources of the package in this folder, with all that belongs into it."""
    package = folder / "dpgram"
    shutil.copytree(PROJECT / "r", package)
    shutil.copytree(VECTORS, package / "tests" / "vectors")
    data = package / "inst" / "extdata"
    data.mkdir(parents=True)
    for name, kind in EXAMPLES.items():
        shutil.copy(VECTORS / f"{kind}.dpgram.json", data / f"{name}.dpgram.json")
    return package


def build(output: Path) -> Path:
    """The source package, as `R CMD build` makes it."""
    output.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        package = assembled(Path(folder))
        subprocess.run(["R", "CMD", "build", str(package)], cwd=output, check=True, capture_output=True)
    (found,) = output.glob("dpgram_*.tar.gz")
    return found


if __name__ == "__main__":
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--output", type=Path, default=Path("dist"))
    print(build(reader.parse_args().output.resolve()))

"""The R package: built, installed, and held to the conformance vectors by its own tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from distribution.r_package import build

R = shutil.which("R")
NEEDED = ("jsonlite", "knitr", "rmarkdown")


def missing() -> str | None:
    if R is None:
        return "R is not installed"
    asked = "cat(requireNamespace('{}', quietly = TRUE))"
    for name in NEEDED:
        told = subprocess.run(
            ["Rscript", "-e", asked.format(name)], capture_output=True, text=True, check=False
        )
        if told.stdout != "TRUE":
            return f"the R package {name} is not installed"
    return "pandoc is not installed" if shutil.which("pandoc") is None else None


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    return build(tmp_path_factory.mktemp("r"))


def test_the_package_passes_r_cmd_check(package: Path) -> None:
    """Its tests compare every number of the vectors; building it has run the vignette."""
    done = subprocess.run(
        ["R", "CMD", "check", "--no-manual", "--ignore-vignettes", package.name],
        cwd=package.parent, capture_output=True, text=True, check=False,
        env={**os.environ, "_R_CHECK_FORCE_SUGGESTS_": "false"},
    )  # fmt: skip
    assert "ERROR" not in done.stdout, done.stdout
    assert "WARNING" not in done.stdout, done.stdout
    assert done.returncode == 0, done.stdout
    told = (package.parent / "dpgram.Rcheck" / "tests" / "vectors.Rout").read_text(encoding="utf-8")
    assert told.count("largest difference") >= 20

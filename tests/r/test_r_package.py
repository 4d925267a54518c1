"""The R package: built, installed, and held to the conformance vectors by its own tests."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from distribution.r_package import build
from docs.examples import run_page

from dpgram.analysis.estimand import INFLUENCE

PROJECT = Path(__file__).resolve().parents[2]
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


@pytest.fixture(scope="module")
def checked(package: Path) -> str:
    """What `R CMD check` says; it leaves the package installed beside its report."""
    done = subprocess.run(
        ["R", "CMD", "check", "--no-manual", "--ignore-vignettes", package.name],
        cwd=package.parent, capture_output=True, text=True, check=False,
        env={**os.environ, "_R_CHECK_FORCE_SUGGESTS_": "false"},
    )  # fmt: skip
    return done.stdout


def test_the_package_passes_r_cmd_check(package: Path, checked: str) -> None:
    """Its tests compare every number of the vectors; building it has run the vignette."""
    assert "ERROR" not in checked, checked
    assert "WARNING" not in checked, checked
    assert "Status: OK" in checked or "NOTE" in checked, checked
    told = (package.parent / "dpgram.Rcheck" / "tests" / "vectors.Rout").read_text(encoding="utf-8")
    assert told.count("largest difference") >= 20


def test_its_cautions_are_not_cut() -> None:
    """Of rows that count less: all that Python says, and what it would take to have it otherwise."""
    written = (PROJECT / "r" / "R" / "inference.R").read_text(encoding="utf-8")
    plain = re.sub(r'",\s+"', " ", written)
    for answer in ("regression", "covariances"):
        told, usual = INFLUENCE[answer]
        assert f"{told}. {usual} a release that is not adaptive" in plain


def test_the_how_to_runs(
    package: Path, checked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its Python makes the files that its R reads."""
    page = PROJECT / "docs" / "how-to" / "r.md"
    blocks = re.findall(r"^```r\n(.*?)^```", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    monkeypatch.chdir(tmp_path)
    for _ in run_page(page):
        pass
    (tmp_path / "page.R").write_text("\n".join(blocks), encoding="utf-8")
    library = package.parent / "dpgram.Rcheck"
    done = subprocess.run(
        ["Rscript", "page.R"], env={**os.environ, "R_LIBS": str(library)},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "un-shrunken regression" in done.stdout

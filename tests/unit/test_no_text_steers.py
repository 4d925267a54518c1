"""Whatever names, levels and labels a file has: no answer steers a terminal or has lines of its own."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest
from tests.flat import publish

import dpgram as dg
from dpgram.analysis import correlations
from dpgram.core.noise import SeededEntropy
from dpgram.document.terminal import in_lines, one_line, printable
from dpgram.release import Release

EVIL = "x\x1b]0;pwn\x07\x9b\u202e\nforged line\r=1+1"
STEERING = "\x1b\x07\x9b\u202e\r"


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(0)
    levels = [EVIL, "b", "c"]
    table = {"age": rng.uniform(0, 9, 3000), EVIL: rng.uniform(0, 9, 3000), "c": rng.choice(levels, 3000)}
    schema = dg.Schema(
        dg.numeric("age", 0, 9, label=EVIL, units=EVIL),
        dg.numeric(EVIL, 0, 9),
        dg.categorical("c", levels, label=EVIL),
    )
    found: Release = publish(
        table, schema, epsilon=8.0, delta=1e-6, entropy=SeededEntropy(1), progress=False, adaptive=False
    )
    return found


def texts(release: Release) -> dict[str, str]:
    fit = release.regress("age")
    return {
        "release": str(release),
        "regression": str(fit),
        "its repr": repr(release.regress(EVIL)),
        "html": fit.to_html(),
        "latex": fit.to_latex(),
        "coefficients": repr(fit.params),
        "covariances": repr(fit.cov_params()),
        "html of covariances": fit.cov_params()._repr_html_(),
        "description": str(release.describe()),
        "html of the description": release.describe()._repr_html_(),
        "html of the release": release._repr_html_(),
        "correlations": str(correlations(release)),
        "components": str(release.pca()),
    }


@pytest.mark.parametrize("label", ["10\u00a0km", "à\u202f: 5", "می\u200cخواهم", "क्\u200dष"])
def test_blanks_and_joiners_of_a_language_stay(label: str) -> None:
    assert one_line(label) == label


def test_nothing_steers(release: Release) -> None:
    for name, text in texts(release).items():
        assert not set(STEERING) & set(text), name
        if not name.startswith("html"):
            assert not any(line.startswith("forged") for line in text.splitlines()), name


def test_files(release: Release, tmp_path: Path) -> None:
    for path in (release.to_csv(tmp_path / "a.csv"), release.to_lavaan(tmp_path / "a.R")):
        text = Path(path).read_bytes().decode()
        assert not set(STEERING) & set(text)
        assert not any(line.startswith("forged") for line in text.splitlines())


def test_no_cell_of_a_csv_begins_as_a_formula(release: Release, tmp_path: Path) -> None:
    """Where a reader ends lines at a carriage return as well."""
    raw = Path(release.to_csv(tmp_path / "a.csv")).read_bytes().decode()
    for row in csv.reader(raw.splitlines()):
        assert not any(cell.startswith("=") for cell in row)


def test_line_ends() -> None:
    assert printable("a\nb\x1b") == "a\nb\\x1b"
    assert one_line("a\nb\x1b") == "a\\nb\\x1b"
    assert in_lines(["a\nb", "c"]) == "a\\nb\nc"

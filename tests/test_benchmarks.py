"""Every program in benchmarks/ still runs: its shortest form, whose numbers mean nothing, from end to end.

What makes it short stands here: arguments, and constants of the program with another value. What it writes
goes into a folder of the test's own.
"""

from __future__ import annotations

import importlib
import importlib.util
import itertools
import shutil
import subprocess
import sys
import warnings
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[1]
PROGRAMS = PROJECT / "benchmarks"
RESULTS = PROGRAMS / "results"
AIRFOIL = {"SETS": ("airfoil",)}
ONE_EPSILON = {"EPSILONS": (1.0,)}


@dataclass(frozen=True)
class Short:
    """How a program is made to end within seconds."""

    arguments: tuple[str, ...] = ()
    constants: Mapping[str, object] = field(default_factory=dict)
    data: bool = False
    """It reads real tables."""
    needs: Callable[[], str | None] = lambda: None
    """Why it cannot run here."""


def _no_browser() -> str | None:
    if shutil.which("chromedriver") is None or shutil.which("git") is None:
        return "needs git and a browser"
    asked = ["git", "rev-parse", "--verify", "HEAD"]
    done = subprocess.run(asked, cwd=PROJECT, capture_output=True, check=False)
    return "needs a clone with its history" if done.returncode else None


def _installed_tables() -> Mapping[str, object]:
    """linearmodels is here already; nothing is fetched."""
    from package_tables import ENTRIES, read

    folder = Path(importlib.util.find_spec("linearmodels").origin).parents[1]
    one = next(each for each in ENTRIES if each.name == "card")
    return {"package_files": lambda: nullcontext(folder), "held_out_tables": lambda at: iter([read(at, one)])}


def _one_held_out() -> Mapping[str, object]:
    from held_out import held_out_arrays

    return {"held_out_arrays": lambda: itertools.islice(held_out_arrays(), 1)}


def _no_install() -> Mapping[str, object]:
    """Environments and their packages are not made: only what is written of them."""
    from install import SIDES, Install

    one = Install(seconds=1.0, processor=1.0, bytes_of={"dpgram": 1_000, "numpy": 2_000})
    return {"measured": lambda wheel: dict.fromkeys(SIDES, (one, one))}


WITHOUT = ("--without", "diffprivlib", "opendp", "mbi")
SHORT: Mapping[str, Short] = {
    "accuracy": Short(
        ("--draws", "1", "--releases", "1"),
        {**AIRFOIL, "synthetic": lambda *_, **__: (), "held_out": lambda: ()},
        data=True,
    ),
    "adaptive": Short(("--splits", "1"), {"EPSILONS": (0.3, 1.0)}),
    "adaptive_coverage": Short(
        ("--cells", "t4", "d5", "n2000", "--tables", "1", "--reference-rows", "10000"),
        {**ONE_EPSILON, "CHUNK": 1, "TRUTH_ROWS": {2_000: 4_000}},
    ),
    "adassp_agreement": Short(("--draws", "1"), {**AIRFOIL, "EPSILONS": (0.1, 1.0)}, data=True),
    "answers_coverage": Short(("--runs", "2")),
    "calibration": Short((), {"REPEATS": 1}),
    "ceilings": Short((), {"SPLITS": 1, "RADII": (4.0,)}, data=True),
    "clip_factor": Short((), {"ROWS": 1_000}),
    "clipped_answers": Short(("--runs", "2")),
    "collinear": Short(("1",), {"EXPONENTS": (9,)}),
    "contrast_coverage": Short(("--runs", "1")),
    "core_speed": Short(
        (str(PROJECT),),
        {"LONG": (2_000, 5), "WIDE": (200, 8), "ROUNDS": 1, "WARM": 1},
    ),
    "correlation_coverage": Short(("--tables", "1")),
    "costs": Short((), {"WIDTHS": (3, 4), "ROWS": 100, "MECHANISMS": ("gaussian",)}),
    "cps_wages": Short((), {"DRAWS": 2}, data=True),
    "crossover": Short((), {"CELLS": 100, "LEAST_DRAWS": 2, "MEASURED": ((1.0, 1e-6),), "WIDTHS": (2, 5)}),
    "eigenvectors": Short(
        (), {**ONE_EPSILON, "TABLES": {"wine_recognition": "data"}, "WIDTHS": (5,)}, data=True
    ),
    "estimators": Short(("--draws", "1", "--fits", "1"), {**AIRFOIL, **ONE_EPSILON}, data=True),
    "exact_posterior": Short(("--draws", "1"), {**AIRFOIL, "WARM_UP": 2, "KEPT": 2}, data=True),
    "fit_speed": Short((str(PROJECT),), {"ROUNDS": 1, "WIDTHS": (5,)}),
    "glm": Short(("--splits", "1"), {**ONE_EPSILON, "STEPS": 2}, data=True),
    "install": Short(("dpgram.whl",)),
    "intercept": Short(("1",), {**ONE_EPSILON, **AIRFOIL}, data=True),
    "interval_coverage": Short(("--tables", "1", "--draws", "20"), {"ROWS": (2_000, 2_000)}),
    "iv_coverage": Short(("--tables", "1")),
    "mechanisms": Short(("errors",), {"ROWS": 1_000, "REPEATS": 1, "WIDTHS": (5,)}),
    "model_coverage": Short((), {**ONE_EPSILON, "RUNS": 1, "BESIDE": 1, "CHUNK": 1}, data=True),
    "no_bounds": Short(("1", "airfoil"), data=True),
    "noise_norms": Short((), {"DRAWS": {2: 100, 3: 100, 4: 100, 5: 100}}),
    "pages": Short(("HEAD",), {"WIDTH": 5, "LOADS": 1, "ROUNDS": 1, "CLICKS": 1}, needs=_no_browser),
    "papers_default": Short(
        (),
        {**AIRFOIL, "RELEASES": 1, "DRAWS": 2, "RUNS": 1, "DIRECT": 1, "EXPONENTS": (9,)},
        data=True,
    ),
    "peers": Short(("--quick", *WITHOUT), {**ONE_EPSILON, "SMALL": (200,)}, data=True),
    "planner": Short(("--draws", "1"), {"SYNTHETIC": ((4, 0.5, 0.0),), "SIZES": (20_000,)}),
    "product": Short((), {"REPEATS": 1, "OF_FILES": 1, "ROWS": 10_000}),
    "robust": Short(("--sets", "1"), {"SIZES": (200,), "MANY": 2, "MANY_ROWS": 200, "MANY_SETS": 1}),
    "scale": Short(("--rows", "20000", "--rounds", "1", "--only", "threads")),
    "series": Short(
        ("--streams", "1"),
        {
            "PERIODS": 6,
            "SHOWN": range(5, 7),
            "SIDE_BY_SIDE": (1, 2, 6),
            "TIMED": (200,),
            "LIMITS": {12: 1.9},
            "NOISY": 5,
            **dict.fromkeys(("REPEATS", "REPEATED", "COMMANDS"), 1),
        },
        data=True,
    ),
    "speed": Short(("--short",)),
}
LATER = {"accuracy": _one_held_out, "adaptive": _installed_tables, "install": _no_install}
"""Stand-ins that need the programs' own names."""


def test_every_program_has_a_short_form() -> None:
    named = '__name__ == "__main__"'
    assert set(SHORT) == {each.stem for each in PROGRAMS.glob("*.py") if named in each.read_text("utf-8")}


@pytest.mark.parametrize("name", SHORT)
def test_it_runs(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    short = SHORT[name]
    if short.needs() is not None:
        pytest.skip(short.needs())
    tables = request.getfixturevalue("shared_data") if short.data else None
    monkeypatch.delenv("DPGRAM_DATA", raising=False)
    if tables is not None:
        monkeypatch.setenv("DPGRAM_DATA", str(tables))
    program = importlib.import_module(name)
    for key, value in vars(program).copy().items():
        if isinstance(value, Path) and value.is_relative_to(RESULTS):
            monkeypatch.setattr(program, key, tmp_path / value.relative_to(PROGRAMS))
    for key, value in {**short.constants, **LATER.get(name, dict)()}.items():
        assert hasattr(program, key)
        monkeypatch.setattr(program, key, value)
    monkeypatch.setattr(sys, "argv", [name, *short.arguments])
    (tmp_path / "results").mkdir()
    kept = {each: each.stat().st_mtime_ns for each in RESULTS.iterdir()}
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        program.main()
    assert {each: each.stat().st_mtime_ns for each in RESULTS.iterdir()} == kept

"""The wall: analysts import nothing that reads data or spends budget; `import dpgram` is quick."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path

import pytest

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src" / "dpgram"

CURATOR_SIDE = (
    "dpgram.audit", "dpgram.cli", "dpgram.engines", "dpgram.mechanisms.choice", "dpgram.privacy.accountant",
    "dpgram.privacy.ledger", "dpgram.publishing", "dpgram.release.signing", "dpgram.rows", "dpgram.sources",
    "dpgram.sums",
)  # fmt: skip
"""Of `dpgram.mechanisms` only the choice: whoever loads a release asks its mechanism whether the noise keeps
the promise. The files of mechanisms import numpy and scipy; what draws is imported with the first draw."""
HEAVY = (
    "pyarrow", "polars", "pandas", "opendp", "flint", "matplotlib", "dask", "pyspark",
    "duckdb", "sqlite3", "typer", "rich", "dp_accounting", "cryptography", "sklearn",
)  # fmt: skip
"""Packages an analyst's work must not load by itself."""

ANALYST_FOLDERS = ("analysis", "document", "explorer", "exports", "noise", "pages", "schema")
ALLOWED_UPSTREAM = {
    "_when_used", "canonical_json", "errors", "figures", "files", "lattice", "mechanisms",
    "privacy.adjacency", "privacy.charged", "privacy.count_noise", "privacy.curves.spectral",
    "privacy.events", "privacy.receipt", "core", "core.noise",
    "release.report", "paperwork", "paperwork.registry",
}  # fmt: skip
"""What the analyst's side may import of the rest of dpgram beside its own folders, even inside functions."""


def modules_after(code: str) -> set[str]:
    program = f"{code}\nimport sys, json\nprint(json.dumps(sorted(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=PROJECT
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def loaded(modules: set[str], names: tuple[str, ...]) -> list[str]:
    return [n for n in names if any(module == n or module.startswith(f"{n}.") for module in modules)]


GOLDEN = PROJECT / "tests" / "golden" / "insurance-gaussian-v1.dpgram.json"


@pytest.mark.parametrize(
    "code",
    [
        "import dpgram.release",
        "import dpgram.analysis",
        "import dpgram; dpgram.mechanisms.Sketch(degrees=400)",
        f"import dpgram; r = dpgram.load({str(GOLDEN)!r}); print(r); r.mean(); r.correlation()",
        f"import dpgram; r = dpgram.load({str(GOLDEN)!r}); f = r.regress('charges', ['age']); f.conf_int()",
    ],
    ids=["import release", "import analysis", "ask for a mechanism", "describe", "regress"],
)
def test_the_analyst_loads_nothing_of_the_curator(code: str) -> None:
    modules = modules_after(code)
    assert loaded(modules, CURATOR_SIDE) == []
    assert loaded(modules, HEAVY) == []


def test_the_test_would_see_it() -> None:
    modules = modules_after("import dpgram; dpgram.publish")
    assert "dpgram.publishing" in loaded(modules, CURATOR_SIDE)


def test_import_alone_loads_neither_side() -> None:
    modules = modules_after("import dpgram")
    assert loaded(modules, (*CURATOR_SIDE, *HEAVY, "dpgram.mechanisms", "numpy", "msgspec", "scipy")) == []


def test_the_analyst_waits_for_mechanisms_only_with_a_file_in_hand() -> None:
    assert loaded(modules_after("import dpgram.release"), ("dpgram.mechanisms",)) == []


def test_import_is_quick() -> None:
    """It loads one module of ours and a few of the standard library: what is loaded is what takes time."""
    more = modules_after("import dpgram") - modules_after("")
    assert {name for name in more if name.split(".")[0] not in sys.stdlib_module_names} == {"dpgram"}
    assert len(more) < 60


def imports(path: Path) -> set[str]:
    """Modules of dpgram that a file imports at run time, those inside functions included."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            node.body = []
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "dpgram":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("dpgram."):
            found.add((node.module or "").removeprefix("dpgram."))
        elif isinstance(node, ast.Import):
            found |= {a.name.removeprefix("dpgram.") for a in node.names if a.name.startswith("dpgram")}
    return found


ANALYST_FILES = [
    *(path for folder in ANALYST_FOLDERS for path in sorted((SOURCE / folder).rglob("*.py"))),
    SOURCE / "release" / "release.py",
    SOURCE / "canonical_json.py",
    SOURCE / "lattice.py",
]


@pytest.mark.parametrize("path", ANALYST_FILES, ids=lambda path: str(path.relative_to(SOURCE)))
def test_the_wall_holds_inside_functions_too(path: Path) -> None:
    beyond = {
        name
        for name in imports(path)
        if name not in ALLOWED_UPSTREAM and name.split(".")[0] not in ANALYST_FOLDERS
    }
    assert beyond == set()


def test_public_names_are_those_listed() -> None:
    import dpgram

    assert dpgram.__all__ == sorted(dpgram.__all__)
    for name in dpgram.__all__:
        assert getattr(dpgram, name) is not None
    assert set(dpgram.__all__) <= set(dir(dpgram))
    with pytest.raises(AttributeError, match="no attribute 'publsh'"):
        _ = dpgram.publsh


@pytest.mark.parametrize("code", ["import dpgram; dpgram.publish", "import dpgram.analysis, dpgram.release"])
def test_nobody_waits_for_what_few_need(code: str) -> None:
    """Half of the time of these imports was scipy.stats, of whose functions scipy.special has all we use."""
    modules = modules_after(code)
    assert loaded(modules, ("scipy.special",)) == ["scipy.special"]
    assert loaded(modules, ("scipy.stats", "scipy.optimize", "scipy.linalg", "sklearn")) == []

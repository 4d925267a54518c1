"""The core is closed, small, and all of it is tested by this folder alone."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import tokenize
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.core import branches

CORE = Path(__file__).resolve().parents[2] / "src" / "dpgram" / "core"
MODULES = sorted(CORE.rglob("*.py"))
OTHERS = {"numpy", "opendp", "threadpoolctl", "flint"}
MOST_CODE_LINES = 2_400


def roots(text: str) -> set[str]:
    """The packages that a module imports from, for typing and inside functions included.

    Of dpgram itself what it imports: dpgram.core or dpgram.errors, or what should not be here.
    """
    found = set()
    for node in ast.walk(ast.parse(text)):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative"
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            names = [name] if name in ("__import__", "import_module", "exec", "eval") else []
        for name in names:
            parts = name.split(".")
            found.add(".".join(parts[:2]) if parts[0] == "dpgram" else parts[0])
    return found - sys.stdlib_module_names


def test_the_core_imports_nothing_else() -> None:
    found = {path.name: roots(path.read_text(encoding="utf-8")) for path in MODULES}
    allowed = OTHERS | {"dpgram.core", "dpgram.errors"}
    assert {name: more - allowed for name, more in found.items() if more - allowed} == {}
    assert set().union(*found.values()) >= {"numpy", "opendp", "flint", "dpgram.core", "dpgram.errors"}


@pytest.mark.parametrize(
    "line",
    [
        "from dpgram import sums",
        "def f():\n    import dpgram.rows.batch",
        "if TYPE_CHECKING:\n    from scipy import stats",
        "importlib.import_module(name)",
        "__import__('scipy')",
        "exec(text)",
    ],
)
def test_the_test_sees_every_import(line: str) -> None:
    assert roots(f"import numpy.linalg, math\n{line}\n") - OTHERS - {"dpgram.core", "dpgram.errors"}


def test_nothing_else_of_the_library_is_loaded() -> None:
    names = [".".join(("dpgram.core", path.stem)) for path in MODULES if path.stem != "__init__"]
    program = (
        f"import importlib, sys\nfor name in {names}: importlib.import_module(name)\n"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'dpgram'))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert set(loaded.stdout.split()) == {"dpgram", "dpgram.core", "dpgram.errors", *names}


def code_lines(text: str) -> int:
    """Lines without blank ones, comments and strings that stand alone, as docstrings do."""
    layout = (tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT)
    beside = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        for line in range(node.lineno, (node.end_lineno or 0) + 1)
    }
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    lines = {
        line
        for token in tokens
        if token.type not in (*layout, tokenize.ENDMARKER)
        for line in range(token.start[0], token.end[0] + 1)
    }
    return len(lines - beside)


def test_code_lines_are_counted() -> None:
    assert code_lines('"""A\n\nB"""\n\n# no\nx = 1  # yes\n\nif x:\n    """more"""\n    y = (\n1)\n') == 4


def test_one_person_can_read_it_in_an_afternoon() -> None:
    found = sum(code_lines(path.read_text(encoding="utf-8")) for path in MODULES)
    assert 1_000 < found <= MOST_CODE_LINES


def test_every_branch_is_taken_by_the_tests_of_this_folder() -> None:
    """`python -m pytest tests/core -p tests.core.branches`, in a process that has imported nothing yet."""
    project, folder = CORE.parents[2], Path(__file__).parent
    others = [
        str(path) for path in folder.glob("test_*.py") if path.stem not in ("test_closed", "test_mutants")
    ]
    command = [sys.executable, "-m", "pytest", "-p", "tests.core.branches", "-p", "no:cacheprovider", *others]
    plain = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run(command, cwd=project, env=plain, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_watcher_sees_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "def f(x, y):\n    if x and y:\n        return 1\n    return [z for z in y]\n"
    (tmp_path / "some.py").write_text(text)
    monkeypatch.setattr(branches, "CORE", tmp_path)
    names: dict[str, Callable[..., object]] = {}
    exec(compile(text, str(tmp_path / "some.py"), "exec"), names)
    expected = {
        (): {"2: not reached", "3: not reached", "4: not reached"},
        ((0, ""),): {"2: column 7 is never True", "3: not reached", "4: column 11 is never True"},
        ((1, "a"),): {"2: column 7 is never False", "2: column 13 is never False", "4: not reached"},
        ((1, "a"), (1, ""), (0, "a")): set(),
    }
    for calls, missing in expected.items():
        branches.taken.clear()
        before = sys.gettrace()
        sys.settrace(branches.watch)
        for each in calls:
            names["f"](*each)
        sys.settrace(before)
        assert {line.partition(":")[2] for line in branches.all_missing()} >= missing
        assert bool(branches.all_missing()) == bool(missing)

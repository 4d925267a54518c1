"""The rooms of the house: few modules at the root, no two folders that need each other, no research."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parents[2] / "src" / "dpgram"
MOST_ROOT_MODULES = 8


def test_few_modules_at_the_root() -> None:
    found = sorted(path.name for path in SOURCE.glob("*.py"))
    assert len(found) <= MOST_ROOT_MODULES, found


def folder(path: Path) -> str:
    """The folder of src/dpgram that a module is in; the module itself at the root."""
    return path.relative_to(SOURCE).parts[0]


def imported(path: Path) -> Iterator[str]:
    """The folders and root modules that a module imports from, for typing and inside functions included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module == "dpgram":
            names = [f"dpgram.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names = [node.module or ""]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        yield from (name.split(".")[1] for name in names if name.startswith("dpgram."))


def needs() -> dict[str, set[str]]:
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        if path.parent != SOURCE:  # those at the root are for all, or, like `testing`, above all
            found[folder(path)] |= {name for name in imported(path) if (SOURCE / name).is_dir()}
    return found


def in_a_cycle(graph: Mapping[str, set[str]]) -> list[str]:
    # A folder may of course import its own modules.
    apart = {name: others - {name} for name, others in graph.items()}
    return sorted(name for name in apart if any(name in reached_from(apart, other) for other in apart[name]))


def reached_from(graph: Mapping[str, set[str]], start: str) -> set[str]:
    seen = {start}
    waiting = [start]
    while waiting:
        for name in graph.get(waiting.pop(), set()) - seen:
            seen.add(name)
            waiting.append(name)
    return seen


def test_no_cycle_between_folders() -> None:
    assert in_a_cycle(needs()) == []


@pytest.mark.parametrize(
    ("graph", "found"),
    [
        ({"a": {"b"}, "b": {"c"}, "c": set()}, []),
        ({"a": {"b"}, "b": {"a"}}, ["a", "b"]),
        ({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}, ["a", "b", "c"]),
        ({"a": {"a"}}, []),
    ],
)
def test_the_test_sees_cycles(graph: dict[str, set[str]], found: list[str]) -> None:
    assert in_a_cycle(graph) == found


MOST_PARAMETERS = 14


@pytest.mark.parametrize("function", ["publish", "plan"])
def test_few_parameters(function: str) -> None:
    import dpgram

    found = inspect.signature(getattr(dpgram, function)).parameters.values()
    # What stands for every other name is there to be refused with a remedy.
    parameters = [each.name for each in found if each.kind is not inspect.Parameter.VAR_KEYWORD]
    assert len(parameters) <= MOST_PARAMETERS, parameters


def test_the_product_names_nothing_of_the_papers() -> None:
    """Not by an import of any kind, nor by a string that one could be made of."""
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in sorted(SOURCE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if "dpgram_papers" in line
    ]
    assert found == []


def test_no_module_of_the_product_loads_the_papers() -> None:
    modules = [
        ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts).removesuffix(".__init__")
        for path in sorted(SOURCE.rglob("*.py"))
        if path.name != "__main__.py"  # it runs the command line
    ]
    program = (
        "import importlib, sys\n"
        "for name in sys.argv[1:]:\n"
        "    importlib.import_module(name)\n"
        "print(len([name for name in sys.modules if name.split('.')[0] == 'dpgram']))\n"
        "print([name for name in sys.modules if name.split('.')[0] == 'dpgram_papers'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *modules], capture_output=True, text=True, check=True
    )
    loaded, research = done.stdout.splitlines()
    assert int(loaded) >= len(modules) > 150
    assert research == "[]"


def test_no_option_of_an_estimator_names_a_variant_that_is_not_private() -> None:
    import dpgram.estimators

    words = set()
    for name in dpgram.estimators.__all__:
        parameters = getattr(getattr(dpgram.estimators, name), "_get_param_names", list)()
        assert "variant" not in parameters, name
        words |= set(parameters)
    assert {"epsilon", "accounting", "mechanism"} <= words
    for path in sorted((SOURCE / "estimators").glob("*.py")):
        constants = {
            node.value
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        assert not constants & {"wang2018", "kalaja2020", "mean-cdp", "non-private", "as printed"}, path


def test_what_has_an_underscore_stays_in_its_folder() -> None:
    found = []
    for path in SOURCE.rglob("*.py"):
        home = ".".join(path.relative_to(SOURCE.parent).parent.parts)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("dpgram"):
                continue
            names = [f"{node.module}.{alias.name}" for alias in node.names] + [str(node.module)]
            for name in names:
                folder, _, module = name.rpartition(".")
                inside = home == folder or home.startswith(f"{folder}.")
                if module.startswith("_") and not module.startswith("__") and not inside:
                    found.append(f"{path.relative_to(SOURCE)} imports {name}")
    assert found == []


def test_the_map_names_what_is_there() -> None:
    """CONTRIBUTING.md says what to touch: every path in it exists."""
    project = SOURCE.parents[1]
    text = (project / "CONTRIBUTING.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`((?:src|tests|docs|proofs|assurance)/[\w./-]*)`", text))
    assert len(named) > 20
    assert [path for path in sorted(named) if not (project / path).exists()] == []

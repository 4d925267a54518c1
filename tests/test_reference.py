"""The reference of the Python interface is complete: what is public, and what the pages use, is on it.

(That every command and option is documented is tested in tests/unit/test_cli.py.)
"""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest
from docs.examples import examples

DOCS = Path(__file__).resolve().parents[1] / "docs"
REFERENCE = DOCS / "reference" / "python.md"
DIRECTIVE = re.compile(
    r"^\.\. auto(?P<kind>\w+):: (?P<name>[\w.]+)\n(?:   :members:(?P<members>[^\n]*)\n)?", re.MULTILINE
)
PUBLIC = ("dpgram", "dpgram.analysis", "dpgram.audit", "dpgram.estimators", "dpgram.planning")
WHOLE = ("Schema", "Ledger", "Plan", "Release")
"""Classes of which every public member is shown."""


def resolved(name: str) -> object:
    """The object that a dotted name means: a module, or something in one."""
    try:
        return import_module(name)
    except ModuleNotFoundError:
        home, _, last = name.rpartition(".")
        return getattr(resolved(home), last)


def members_of(module_name: str) -> dict[str, object]:
    """What `automodule` with bare `:members:` shows: `__all__`, or what is defined there."""
    module = import_module(module_name)
    names = getattr(module, "__all__", None) or [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module_name
    ]
    return {name: getattr(module, name) for name in names}


def documented() -> set[int]:
    """The identities of all objects on the page."""
    found: set[int] = set()
    for entry in DIRECTIVE.finditer(REFERENCE.read_text(encoding="utf-8")):
        name, members = entry["name"], (entry["members"] or "").strip()
        found.add(id(resolved(name)))
        if entry["kind"] == "module" and entry["members"] is not None:
            listed = members.split(", ") if members else members_of(name)
            found |= {id(getattr(import_module(name), member)) for member in listed}
    return found


def used() -> list[tuple[str, str]]:
    """(module, name) of everything the pages import from dpgram in an example that runs."""
    pages = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    found: set[tuple[str, str]] = set()
    for page in pages:
        if {"_build", "generated"} & set(page.parts):
            continue
        for example in examples(page.read_text(encoding="utf-8")):
            if example.kind != "python":
                continue
            for node in ast.walk(ast.parse(example.body)):
                if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpgram":
                    found |= {(str(node.module), alias.name) for alias in node.names}
    return sorted(found)


@pytest.mark.parametrize("module", PUBLIC)
def test_every_public_name_is_in_the_reference(module: str) -> None:
    shown = documented()
    missing = [
        name for name, value in members_of(module).items() if id(value) not in shown and name != "__version__"
    ]
    assert not missing, f"of {module}, docs/reference/python.md lacks {missing}"


def test_every_error_is_in_the_reference() -> None:
    assert ".. automodule:: dpgram.errors\n   :members:\n" in REFERENCE.read_text(encoding="utf-8")


def test_what_the_pages_use_is_in_the_reference() -> None:
    shown = documented()
    missing = [
        f"{module}.{name}" for module, name in used() if id(getattr(import_module(module), name)) not in shown
    ]
    assert not missing, f"used on a page but not in docs/reference/python.md: {missing}"


@pytest.mark.parametrize("name", WHOLE)
def test_main_classes_are_shown_whole(name: str) -> None:
    (entry,) = [
        entry
        for entry in DIRECTIVE.finditer(REFERENCE.read_text(encoding="utf-8"))
        if entry["name"].endswith(f".{name}")
    ]
    assert entry["kind"] == "class"
    assert entry["members"] == "", "a list of members would hide the next one"


def test_nothing_documented_has_vanished() -> None:
    for entry in DIRECTIVE.finditer(REFERENCE.read_text(encoding="utf-8")):
        value = resolved(entry["name"])
        for member in filter(None, (entry["members"] or "").strip().split(", ")):
            assert hasattr(value, member), f"{entry['name']} has no {member}"

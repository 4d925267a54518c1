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

import dpgram

DOCS = Path(__file__).resolve().parents[1] / "docs"
REFERENCE = DOCS / "reference" / "python.md"
DIRECTIVE = re.compile(
    r"^\.\. auto(?P<kind>\w+):: (?P<name>[\w.]+)\n(?:   :members:(?P<members>[^\n]*)\n)?", re.MULTILINE
)
PATH = re.compile(r"(?:`|:: )(dpgram(?:\.[a-z_]+)*)\.(\w+)(?=[`(\n])")
SOURCE = Path(dpgram.__file__).parent
OPEN_MODULES = ("errors", "testing")
"""Modules at the root of the package whose names are for others too."""
ENTRY_POINTS = ("commands",)
"""Groups of entry points that are named like no folder."""
PUBLIC = ("dpgram", "dpgram.analysis", "dpgram.audit", "dpgram.estimators", "dpgram.planning")
WHOLE = ("Schema", "Ledger", "Plan", "Release")
"""Classes of which every public member is shown."""


def resolved(name: str) -> object:
    """The object that a dotted name means: a module, or something in one."""
    home, _, last = name.rpartition(".")
    try:
        return import_module(name) if not home else getattr(resolved(home), last)
    except AttributeError:
        return import_module(name)


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


def pages() -> list[Path]:
    found = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
    return [page for page in found if not {"_build", "generated"} & set(page.parts)]


def used(text: str) -> set[tuple[str, str]]:
    """(module, name) of everything a page imports from dpgram in an example that runs."""
    found: set[tuple[str, str]] = set()
    for example in examples(text):
        if example.kind != "python":
            continue
        for node in ast.walk(ast.parse(example.body)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "dpgram":
                found |= {(str(node.module), alias.name) for alias in node.names}
            elif isinstance(node, ast.Import):
                modules = [alias.name for alias in node.names if alias.name.startswith("dpgram.")]
                found |= {(home, name) for home, _, name in (module.rpartition(".") for module in modules)}
    return found


def told(text: str) -> set[tuple[str, str]]:
    """(module, name) of every dotted path into dpgram that a page has in its words or its directives."""
    return {(path[1], path[2]) for path in PATH.finditer(text)}


def offered(module: str, name: str) -> bool:
    """Whether the name is one of dpgram itself, of a root module for others, or in a folder's `__all__`."""
    if module == "dpgram":
        return name in {*dpgram.__all__, *OPEN_MODULES, *ENTRY_POINTS} or (SOURCE / name).is_dir()
    if module.removeprefix("dpgram.") in OPEN_MODULES:
        return hasattr(import_module(module), name)
    folder = SOURCE.joinpath(*module.split(".")[1:])
    return folder.is_dir() and (name in import_module(module).__all__ or (folder / name).is_dir())


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
        f"{module}.{name}"
        for page in pages()
        for module, name in used(page.read_text(encoding="utf-8"))
        if (module, name) != ("dpgram", "mechanisms")
        and not (SOURCE.joinpath(*module.split(".")[1:]) / name).is_dir()
        and id(getattr(import_module(module), name)) not in shown
    ]
    assert not missing, f"used on a page but not in docs/reference/python.md: {missing}"


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_pages_use_only_what_folders_offer(page: Path) -> None:
    """Decisions of the past (docs/adr) name modules as they were."""
    text = page.read_text(encoding="utf-8")
    paths = used(text) | (set() if "adr" in page.parts else told(text))
    deeper = sorted(f"{module}.{name}" for module, name in paths if not offered(module, name))
    assert not deeper, f"a folder's __all__ lacks what {page.name} uses: {deeper}"


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("```python\nfrom dpgram.engines import gram\n```\n", True),
        ("```python\nfrom dpgram.engines.local import gram\n```\n", False),
        ("```python\nimport dpgram.engines.local\n```\n", False),
        ("```python\nfrom dpgram.engines import add_up\n```\n", False),
        (".. autofunction:: dpgram.audit.checks.reused_noise\n", False),
        (".. autofunction:: dpgram.audit.reused_noise\n", True),
        ("see `dpgram.engines.passes.merge`", False),
        ("see `dpgram.engines.merge(a, b)`, `dpgram.errors.DataError` and `dpgram.privacy.ledger`", True),
    ],
)
def test_the_test_sees_a_deeper_path(text: str, fits: bool) -> None:
    found = used(text) | told(text)
    assert found
    assert all(offered(module, name) for module, name in found) == fits


def folders() -> list[str]:
    inside = sorted(path.parent.relative_to(SOURCE.parent) for path in SOURCE.rglob("__init__.py"))
    return [".".join(folder.parts) for folder in inside]


def fetched_when_used(tree: ast.Module, folder: str) -> set[str]:
    """Names that a folder imports from its modules only when they are asked for."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    homes = [
        call.args[1] for call in calls if isinstance(call.func, ast.Name) and call.func.id == "_when_used"
    ]
    found = {home: names for each in homes for home, names in ast.literal_eval(each).items()}
    return {name for home, names in found.items() if home != folder for name in names.split()}


@pytest.mark.parametrize("folder", folders())
def test_a_folder_says_what_it_offers(folder: str) -> None:
    """All of it is there, typed for those who check types, and no name hides a module of the folder."""
    module = import_module(folder)
    place = SOURCE.joinpath(*folder.split(".")[1:])
    modules = {path.stem for path in place.iterdir()}
    assert module.__all__
    tree = ast.parse((place / "__init__.py").read_text(encoding="utf-8"))
    bound = {
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    } | {name.id for name in ast.walk(tree) if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)}
    bound |= {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    assert set(module.__all__) <= bound | {"__version__"}
    for name in module.__all__:
        assert getattr(module, name) is not None
    # Once somebody has imported the module, its name no longer means what was to be fetched.
    assert not fetched_when_used(tree, folder) & modules
    with pytest.raises(AttributeError):
        _ = module.never_offered


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

"""One path: who may charge a ledger and who may draw noise, as rules on the folders of src/dpgram.

`dpgram.publishing` charges, in one place, and draws what was charged; mechanisms and the privacy core hold
laws and samplers; an audit wraps a source of noise and has no secret to charge for. dpgram-papers holds
baselines in floats, for which no ledger pays.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpgram.core.noise import Entropy

PROJECT = Path(__file__).resolve().parents[2]
SOURCE = PROJECT / "src" / "dpgram"
RESEARCH = PROJECT / "papers" / "src" / "dpgram_papers"

CHARGES = {"publishing"}
DRAWS = {"core", "publishing", "mechanisms", "privacy"}
BASELINES = {"dpgram_papers"}
"""Printed variants with a `draw` of their own, in floats."""
WRAPPERS = {"audit"}
"""Sources of noise around sources of noise."""
FLOATS = {"core", *WRAPPERS, *BASELINES}
"""Who may ask for noise in floats: in dpgram nobody draws with it."""

SAMPLERS = {
    name
    for name, method in vars(Entropy).items()
    if callable(method) and method.__annotations__.get("return") == "Integers"
}


def calls(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every method that is called, by name, with its line."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            yield node.func.attr, node.lineno


def handed_on(tree: ast.AST, name: str) -> Iterator[int]:
    """Lines in which a method of that name is passed on instead of called."""
    called = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and node.attr == name and id(node) not in called:
            yield node.lineno


def imported(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Packages that are imported, anywhere in the file."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name.split(".")[0], node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module.split(".")[0], node.lineno


def folder(path: Path) -> str:
    """The folder of src/dpgram that a file is in; empty for a file of its own."""
    return path.parts[0] if len(path.parts) > 1 else ""


def breaches(path: Path, text: str) -> list[str]:
    """What a file at `path` below src/dpgram may not do."""
    tree, place, found = ast.parse(text), folder(path), []
    for name, line in calls(tree):
        allowed = None
        if name == "charge":
            allowed = CHARGES
        elif name == "draw":
            allowed = DRAWS | BASELINES
        elif name in SAMPLERS:
            allowed = DRAWS | WRAPPERS
        elif name == "generator":
            allowed = FLOATS
        if allowed is not None and place not in allowed:
            found.append(f"{path}:{line} calls .{name}(…)")
    if place not in DRAWS:
        found += [f"{path}:{line} hands random bytes on" for line in handed_on(tree, "random_bytes")]
    if place != "core":
        found += [f"{path}:{line} imports opendp" for name, line in imported(tree) if name == "opendp"]
    return found


FILES = sorted(SOURCE.rglob("*.py"))


def test_nothing_else_charges_or_draws() -> None:
    assert [each for path in FILES for each in breaches(path.relative_to(SOURCE), path.read_text())] == []


def test_research_charges_nothing_and_draws_in_floats_only() -> None:
    files = sorted(RESEARCH.rglob("*.py"))
    assert len(files) > 30
    inside = [(path.relative_to(RESEARCH.parent), path.read_text(encoding="utf-8")) for path in files]
    assert [each for path, text in inside for each in breaches(path, text)] == []


def test_a_ledger_is_charged_in_one_line() -> None:
    charging = [
        (folder(path.relative_to(SOURCE)), line)
        for path in FILES
        for name, line in calls(ast.parse(path.read_text()))
        if name == "charge"
    ]
    assert [place for place, _ in charging] == ["publishing"]


def test_every_sampler_is_watched() -> None:
    """What gives noise returns integers; the other methods give none, or floats, or another source."""
    methods = {name for name, value in vars(Entropy).items() if callable(value) and name[0] != "_"}
    assert methods - SAMPLERS == {"generator", "split", "random_bytes", "rehearse"}
    assert {"discrete_gaussian", "discrete_laplace", "matrix_laplace"} <= SAMPLERS


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("estimators/x.py", "book.charge(event)"),
        ("mechanisms/x.py", "ledger.charge(event)"),
        ("estimators/x.py", "law.draw(sums, entropy)"),
        ("gram_audit.py", "self.mechanism.draw(gram, entropy)"),
        ("audit/x.py", "mechanism.draw(gram, entropy)"),
        ("federated.py", "entropy.discrete_gaussian(1.0, 3)"),
        ("sums/x.py", "def f(e):\n    return e.matrix_laplace(3, 1.0)"),
        ("estimators/x.py", "entropy.generator().normal()"),
        ("dpgram_papers/x.py", "entropy.matrix_laplace(3, 1.0)"),
        ("dpgram_papers/x.py", "ledger.charge(event)"),
        ("publishing.py", "law.draw(sums, entropy)"),
        ("analysis/x.py", "entropy.generator()"),
        ("estimators/x.py", "frame_matrix(gram, entropy.random_bytes)"),
        ("mechanisms/x.py", "from opendp.measurements import make_gaussian"),
    ],
)
def test_the_rules_catch(path: str, text: str) -> None:
    assert len(breaches(Path(path), text)) == 1


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("publishing/x.py", "ledger.charge(event)\nmeasurement.draw(sums, entropy)"),
        ("mechanisms/x.py", "entropy.discrete_gaussian(1.0, 3)"),
        ("audit/x.py", "self._inner.discrete_gaussian(1.0, 3)"),
        ("dpgram_papers/x.py", "variant.draw(gram, entropy)"),
        ("signing.py", "SystemEntropy().random_bytes(32)"),
        ("noise/x.py", "wishart(gram, 3, generator)"),
    ],
)
def test_the_rules_let_pass(path: str, text: str) -> None:
    assert breaches(Path(path), text) == []

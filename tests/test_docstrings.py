"""The examples in docstrings run, and every public function and method has one.

They run in an empty folder, in the names of `import dpgram as dg` with what a reader has at hand by then: a
made-up `table` of 20,000 people, its `schema`, a `release` of it, the regression `fit` of charges on the
rest, `another` release of other people, a `ledger`, and a `series` of three months, which is the public file
months.series. Releases and series have seeded noise, so that examples can show numbers.
"""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

import dpgram
import dpgram.analysis
import dpgram.planning
from dpgram.demo import insurance
from dpgram.privacy import SeededEntropy
from dpgram.publishing import publish_with
from dpgram.series._curate import create, publish

SOURCE = Path(dpgram.__file__).parent
OPTIONS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
COLUMNS = ["age", "smoker", "charges"]
PUBLIC = (dpgram, dpgram.analysis, dpgram.planning)


@cache
def at_hand() -> dict[str, Any]:
    """What examples may use without making it; nothing of it can be changed."""
    table, others = (insurance.table(20_000, seed).select(COLUMNS) for seed in (2024, 2025))
    schema = dpgram.Schema(
        dpgram.numeric("age", 18, 90),
        dpgram.categorical("smoker", ["no", "yes"]),
        dpgram.numeric("charges", 0, 50_000),
    )
    release, another = (
        publish_with(
            people,
            schema,
            epsilon=1.0,
            delta=1e-6,
            mechanism="gaussian",
            entropy=SeededEntropy(seed),
            adaptive=False,
        )[0]
        for seed, people in enumerate([table, others])
    )
    return {
        **{name: getattr(dpgram, name) for name in dpgram.__all__},
        "dg": dpgram,
        "table": table,
        "schema": schema,
        "release": release,
        "another": another,
        "fit": release.regress("charges"),
    }


def names(example: str) -> dict[str, Any]:
    """The names one docstring may use; a ledger of its own, in the current folder, if it speaks of one."""
    found = dict(at_hand())
    if "ledger" in example:
        found["ledger"] = dpgram.Ledger.create("people.ledger", name="people", epsilon=2.0, delta=1e-6)
    if "series" in example and "Series.create" not in example:
        Path("months.series").write_bytes(months())
        found["series"] = dpgram.Series.open("months.series")
    return found


@cache
def months() -> bytes:
    """The public file of a series of three months, a third of the table in each."""
    known = at_hand()
    with TemporaryDirectory() as folder:
        path = Path(folder) / "months.series"
        noise = SeededEntropy(3)
        create(path, known["schema"], epsilon=1.0, delta=1e-6, periods=12, entropy=noise)
        for month in range(3):
            part = known["table"].slice(month * 6_000, 6_000)
            publish(path, part, f"2026-0{month + 1}", progress=False, entropy=noise)
        return path.read_bytes()


def docstrings() -> Iterator[doctest.DocTest]:
    """Every docstring of the package with an example in it."""
    finder = doctest.DocTestFinder()
    for path in sorted(SOURCE.rglob("*.py")):
        if ">>> " in path.read_text(encoding="utf-8"):
            dotted = ".".join(path.relative_to(SOURCE.parent).with_suffix("").parts)
            found = finder.find(import_module(dotted.removesuffix(".__init__")), globs={})
            yield from (docstring for docstring in found if docstring.examples)


@pytest.mark.usefixtures("asks_for_a_ledger")
@pytest.mark.parametrize("example", list(docstrings()), ids=lambda example: example.name)
def test_examples_run(example: doctest.DocTest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    example.globs = names("".join(step.source for step in example.examples))
    told: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(example, out=told.append)
    assert not told, "".join(told)


def public() -> dict[str, Any]:
    """Every public function, and every public method that we wrote of a public class, by its name."""
    found: dict[str, Any] = {}
    for module in PUBLIC:
        for name in module.__all__:
            value = getattr(module, name)
            members = vars_of(value) if inspect.isclass(value) else {name: value}
            for member in members.values():
                method = getattr(member, "__func__", member)
                if inspect.isfunction(method) and method.__module__.startswith("dpgram."):
                    found[f"{method.__module__}.{method.__qualname__}"] = method
    return found


def vars_of(kind: type) -> dict[str, Any]:
    """What a class has of its own or from a class of ours, without what it keeps to itself."""
    every = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return {name: value for name, value in every.items() if not name.startswith("_")}


def without_example(found: dict[str, Any]) -> list[str]:
    return sorted(name for name, value in found.items() if ">>> " not in (value.__doc__ or ""))


def test_every_public_function_and_method_has_an_example() -> None:
    found = public()
    assert len(found) > 90
    assert {"dpgram.publishing.publisher.publish", "dpgram.analysis.results.Regression.predict"} <= set(found)
    assert without_example(found) == []


def test_a_function_without_an_example_is_seen() -> None:
    assert without_example({"insurance.table": insurance.table}) == ["insurance.table"]


def test_an_example_that_says_something_else_is_seen() -> None:
    wrong = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, None)
    told: list[str] = []
    doctest.DocTestRunner(optionflags=OPTIONS).run(wrong, out=told.append)
    assert "Expected:" in "".join(told)

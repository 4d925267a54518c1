"""Tests owe nothing to luck: bits of the system come from seeds, in every order; the door is the only one."""

from __future__ import annotations

import ast
import zlib
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.luck import (
    DOOR,
    KEPT,
    KEPT_STARTED,
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    shuffled,
)

from dpgram.core.noise import SeededEntropy, SystemEntropy

SOURCE = Path(__file__).resolve().parents[1] / "src" / "dpgram"
RANDOM = {"secrets", "random", "uuid"}


def sources_of_bits(path: Path) -> set[str]:
    """What a file names that can ask the operating system for random bits, `rng = default_rng()` included."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= RANDOM & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            # The class of UUIDs makes none by itself.
            harmless = node.module == "uuid" and {alias.name for alias in node.names} == {"UUID"}
            found |= set() if harmless else RANDOM & {node.module or ""}
        elif isinstance(node, ast.Attribute) and node.attr in ("urandom", "getrandom", "SystemRandom"):
            found.add(node.attr)
        elif isinstance(node, ast.Call) and not node.args and not node.keywords:
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            found |= {"default_rng", "SeedSequence"} & {name}
    return found


def test_there_is_one_door_to_the_systems_bits() -> None:
    found = {path.relative_to(SOURCE).as_posix(): sources_of_bits(path) for path in SOURCE.rglob("*.py")}
    assert {name: what for name, what in found.items() if what} == {"core/noise.py": {"secrets"}}


def test_research_has_no_door_of_its_own() -> None:
    research = SOURCE.parents[1] / "papers" / "src"
    found = {path.name: sources_of_bits(path) for path in research.rglob("*.py")}
    assert len(found) > 30
    assert not any(found.values()), found


def test_no_test_makes_bits_of_its_own_without_a_seed() -> None:
    tests = Path(__file__).parent
    allowed = {
        "luck.py",
        "test_luck.py",
        # These seed `random.Random`.
        "audit/test_kinds.py",
        "audit/test_neighbours.py",
        "browser/test_wizard.py",
        "fuzz/test_targets.py",
        "unit/privacy/test_giving_back.py",
        "unit/wizard/conftest.py",
    }
    found = {path.relative_to(tests).as_posix() for path in tests.rglob("*.py") if sources_of_bits(path)}
    assert found <= allowed


def test_the_system_answers_from_the_stream_of_the_test(request: pytest.FixtureRequest) -> None:
    if request.config.getoption("luck"):
        pytest.skip("the system itself answers")
    own = SeededEntropy(zlib.crc32(request.node.nodeid.encode()))
    assert SystemEntropy().random_bytes(16) == own.random_bytes(16)
    assert SystemEntropy().random_bytes(16) == own.random_bytes(16), "and goes on"


@pytest.mark.system_entropy
def test_a_marked_test_gets_the_system_itself(request: pytest.FixtureRequest) -> None:
    own = SeededEntropy(zlib.crc32(request.node.nodeid.encode()))
    assert SystemEntropy().random_bytes(16) != own.random_bytes(16)


def test_who_asks_is_counted() -> None:
    before = DOOR.asked
    SeededEntropy(1).random_bytes(4)
    assert DOOR.asked == before
    SystemEntropy().discrete_gaussian(3.0, 2)
    SystemEntropy().matrix_laplace(1, 1.0)
    assert DOOR.asked >= before + 2


def test_an_order_follows_from_its_seed(request: pytest.FixtureRequest) -> None:
    items = request.session.items
    one, again, other = (shuffled(items, seed) for seed in (1, 1, 2))
    assert one == again
    assert sorted(map(id, one)) == sorted(map(id, items))
    assert one != other or len(items) < 5
    files = [item.nodeid.partition("::")[0] for item in one]
    changes = sum(a != b for a, b in pairwise(files))
    assert changes == len(set(files)) - 1, "files stay together"


def test_every_round_runs_all_tests_anew_in_an_order_of_its_own(request: pytest.FixtureRequest) -> None:
    items = list({item.nodeid: item for item in request.session.items}.values())[:40]
    given = {"luck": None, "shuffle": 5, "rounds": 3}
    config: Any = SimpleNamespace(getoption=given.get)
    run = list(items)
    pytest_collection_modifyitems(config, run)
    rounds = [run[start : start + len(items)] for start in range(0, len(run), len(items))]
    assert [[item.nodeid for item in order] for order in rounds] == [
        [item.nodeid for item in shuffled(items, seed)] for seed in (5, 6, 7)
    ]
    assert len(set(map(id, run))) == 3 * len(items), "an item runs once"
    assert len({id(item.user_properties) for item in run}) == 3 * len(items)


def test_a_round_of_luck_reads_only_the_files_that_it_runs(tmp_path: Path) -> None:
    kept = {KEPT: ["tests/a.py::test_one", "tests/b.py"], KEPT_STARTED: ["tests/c.py::test_two"]}
    folder = tmp_path / "tests"
    folder.mkdir()
    for name in "abcd":
        (folder / f"{name}.py").touch()

    def read(luck: str | None) -> str:
        stash = pytest.Stash()
        config: Any = SimpleNamespace(getoption=lambda _: luck, cache=kept, stash=stash, rootpath=tmp_path)
        assert pytest_ignore_collect(folder, config) is None
        return "".join(
            file.stem for file in sorted(folder.iterdir()) if not pytest_ignore_collect(file, config)
        )

    assert {luck: read(luck) for luck in (None, "all", "own", "started")} == {
        None: "abcd",
        "all": "abc",
        "own": "ab",
        "started": "c",
    }
    kept.clear()
    with pytest.raises(pytest.UsageError, match="run `make test` first"):
        read("all")

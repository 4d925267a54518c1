"""What a test run can owe to luck: its order, and bits of the operating system.

    pytest --shuffle SEED      files, classes and tests in an order that follows from the seed
    pytest --luck              only the files that drew from the operating system when they last ran

Which files do is found by watching, not kept by hand: `SystemEntropy` is the only door to the system's bits
(tests/unit/test_wall.py), and a Python process that a test starts may go through it out of sight.
"""

from __future__ import annotations

import functools
import random
import sys
from collections.abc import Generator, Iterable
from itertools import groupby
from typing import Any

import pytest

from dpgram.privacy.entropy import SystemEntropy

KEPT = "dpgram/luck"
"""In pytest's cache: the files, and how many seconds their tests took."""
PROPERTY = "system entropy"
DOORS = ("discrete_gaussian", "discrete_laplace", "generator", "random_bytes")

Watch = Generator[None, Any, Any]


class Draws:
    """How often this process, or a Python that it started, went to the operating system for bits."""

    def __init__(self) -> None:
        self.count = 0

    def watch(self) -> None:
        for door in DOORS:
            setattr(SystemEntropy, door, self._counted(getattr(SystemEntropy, door)))
        sys.addaudithook(self._started)

    def _counted(self, method: Any) -> Any:
        @functools.wraps(method)
        def counted(*given: Any, **named: Any) -> Any:
            self.count += 1
            return method(*given, **named)

        return counted

    def _started(self, event: str, details: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and str(details[0]) == sys.executable:
            self.count += 1


DRAWS = Draws()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("luck")
    group.addoption("--shuffle", type=int, metavar="SEED", help="run in an order that follows from the seed")
    group.addoption("--luck", action="store_true", help="only files that draw from the operating system")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Keeper(config), "keeper of luck")
    DRAWS.watch()


def pytest_report_header(config: pytest.Config) -> str | None:
    seed = config.getoption("shuffle")
    return None if seed is None else f"shuffled: --shuffle {seed}"


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Watch:
    """A file that draws while it is imported draws for all of its tests."""
    before = DRAWS.count
    report = yield
    if isinstance(collector, pytest.Module) and DRAWS.count > before:
        collector.user_properties = [(PROPERTY, True)]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Watch:
    return (yield from _noted(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Watch:
    return (yield from _noted(item))


def _noted(item: pytest.Item) -> Watch:
    before = DRAWS.count
    try:
        return (yield)
    finally:
        module = item.getparent(pytest.Module)
        if DRAWS.count > before or getattr(module, "user_properties", None):
            item.user_properties.append((PROPERTY, True))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("luck"):
        kept = config.cache.get(KEPT, {})
        if not kept:
            raise pytest.UsageError("no file is known to draw from the operating system: run `make test` first")
        chosen = [item for item in items if item.nodeid.partition("::")[0] in kept]
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen
    seed = config.getoption("shuffle")
    if seed is not None:
        items[:] = shuffled(items, seed)


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """Files stay together, and classes in them, so that what they share is made once."""
    dice = random.Random(seed)
    found = []
    for file in _mixed(dice, items, pytest.Module):
        for cls in _mixed(dice, file, pytest.Class):
            dice.shuffle(cls)
            found += cls
    return found


def _mixed(dice: random.Random, items: Iterable[pytest.Item], kind: type[pytest.Collector]) -> list[list[Any]]:
    def name(item: pytest.Item) -> str:
        parent = item.getparent(kind)
        return "" if parent is None else parent.nodeid

    groups = [list(group) for _, group in groupby(sorted(items, key=name), name)]
    dice.shuffle(groups)
    return groups


class Keeper:
    """Keeps, in the process that hears of all tests, which files drew."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._seconds: dict[str, float] = {}
        self._drew: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        file = report.nodeid.partition("::")[0]
        self._seconds[file] = self._seconds.get(file, 0.0) + report.duration
        if (PROPERTY, True) in map(tuple, report.user_properties):
            self._drew.add(file)

    def pytest_sessionfinish(self) -> None:
        """Files of which a part ran stay known if they were: the other part may draw."""
        if hasattr(self._config, "workerinput"):
            return
        kept = self._config.cache.get(KEPT, {})
        kept |= {file: round(self._seconds[file], 1) for file in sorted(self._drew)}
        self._config.cache.set(KEPT, kept)

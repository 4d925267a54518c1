"""What a test run could owe to luck: bits of the operating system, and its order.

    pytest                     tests draw from seeds of their own, wherever the library asks the system
    pytest --luck              only the tests that ask it, and with its own bits
    pytest --luck=own          without those of which only a process that they start may ask
    pytest --luck=started      only those that start a process which may ask
    pytest --shuffle SEED      files, classes and tests in an order that follows from the seed
    pytest --rounds N          all of them N times, each time in another order

`SystemEntropy` is the only door to the system's bits. Here it leads to a stream that belongs to the test or
fixture that asks, whatever ran before; tests marked `system_entropy` are about the door itself and get the
real one. Which tests ask is found by watching them run, not kept by hand: `--luck` knows it from the last
run. A Python process that a test starts may go through the door out of sight, so that counts as asking too;
these tests are the slow ones.
"""

from __future__ import annotations

import functools
import random
import sys
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from copy import copy
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from dpgram.core.noise import SeededEntropy, SystemEntropy

KEPT, KEPT_STARTED = "dpgram/luck", "dpgram/luck-of-processes"
"""In pytest's cache: the tests that ask the system, and the files of which a shared fixture does; and tests
that start a process which may."""
WHO = {"all": (KEPT, KEPT_STARTED), "own": (KEPT,), "started": (KEPT_STARTED,)}
"""Which of these each form of `--luck` runs."""
ASKED, ALL_ASKED = ("system entropy", "test"), ("system entropy", "file")
STARTED, ALL_STARTED = ("process", "test"), ("process", "file")
"""Properties of a test."""
ASKING = pytest.StashKey[frozenset[str]]()
MARK = "system_entropy"
DOORS = ("discrete_gaussian", "discrete_laplace", "generator", "random_bytes")

Wrapper = Generator[None, Any, Any]


class Door:
    """Stands before the operating system's bits: counts who asks, and answers from the stream of the day."""

    def __init__(self) -> None:
        self.asked = self.started = 0
        self._streams: list[SeededEntropy | None] = [None]

    def install(self) -> None:
        for name in DOORS:
            setattr(SystemEntropy, name, self._before(name, getattr(SystemEntropy, name)))
        sys.addaudithook(self._started)

    @contextmanager
    def leading_to(self, stream: SeededEntropy | None) -> Iterator[None]:
        self._streams.append(stream)
        try:
            yield
        finally:
            self._streams.pop()

    def _before(self, name: str, method: Any) -> Any:
        @functools.wraps(method)
        def answered(system: SystemEntropy, *given: Any, **named: Any) -> Any:
            self.asked += 1
            stream = self._streams[-1]
            if stream is None:
                return method(system, *given, **named)
            return getattr(stream, name)(*given, **named)

        return answered

    def _started(self, event: str, details: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen" and str(details[0]) == sys.executable:
            self.started += 1


DOOR = Door()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("luck")
    group.addoption("--shuffle", type=int, metavar="SEED", help="run in an order that follows from the seed")
    group.addoption("--rounds", type=int, default=1, metavar="N", help="run every test N times, in N orders")
    group.addoption(
        "--luck",
        nargs="?",
        const="all",
        choices=("all", "own", "started"),
        help="only tests that ask the system for bits (own: themselves; started: a process), and with them",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", f"{MARK}: is about the operating system's bits, and gets them")
    config.pluginmanager.register(Keeper(config), "keeper of luck")
    DOOR.install()


def pytest_report_header(config: pytest.Config) -> str | None:
    seed, rounds = config.getoption("shuffle"), config.getoption("rounds")
    told = [] if seed is None else [f"shuffled: --shuffle {seed}"]
    told += [f"{rounds} rounds, the k-th in the order of --shuffle {seed or 0} + k - 1"] if rounds > 1 else []
    return ", ".join(told) or None


def _stream(owner: Any, *names: str) -> SeededEntropy | None:
    """Of its own for every name, and the same in every order; None where the system itself shall answer."""
    if owner.config.getoption("luck") or owner.get_closest_marker(MARK) is not None:
        return None
    return SeededEntropy(zlib.crc32("/".join(names).encode()))


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any, request: pytest.FixtureRequest) -> Wrapper:
    """A shared fixture is the same whichever test is the first to need it."""
    owner = request.node  # the test, class, file or session that it is made for
    asked, started = DOOR.asked, DOOR.started
    with DOOR.leading_to(_stream(owner, owner.nodeid, fixturedef.argname, repr(request.param_index))):
        try:
            return (yield)
        finally:
            if fixturedef.scope != "function":
                found = [ALL_ASKED] * (DOOR.asked > asked) + [ALL_STARTED] * (DOOR.started > started)
                request._pyfuncitem.user_properties.extend(found)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Wrapper:
    return (yield from _watched(item))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Wrapper:
    with DOOR.leading_to(_stream(item, item.nodeid)):
        return (yield from _watched(item))


def _watched(item: pytest.Item) -> Wrapper:
    asked, started = DOOR.asked, DOOR.started
    try:
        return (yield)
    finally:
        if DOOR.asked > asked:
            item.user_properties.append(ASKED)
        if DOOR.started > started:
            item.user_properties.append(STARTED)


def _asking(config: pytest.Config) -> frozenset[str]:
    """The tests that `--luck` runs, and the files of which all are run."""
    if ASKING not in config.stash:
        asking = {name for kept in WHO[config.getoption("luck")] for name in config.cache.get(kept, [])}
        if not asking:
            raise pytest.UsageError("no test is known to ask the system for bits: run `make test` first")
        config.stash[ASKING] = frozenset(asking)
    return config.stash[ASKING]


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """A file of which no test asks is not even read: most of a round would be spent on that."""
    if not config.getoption("luck") or collection_path.is_dir():
        return None
    name = collection_path.relative_to(config.rootpath).as_posix()
    return None if name in map(_file, _asking(config)) else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("luck"):
        asking = [item for item in items if {item.nodeid, _file(item.nodeid)} & _asking(config)]
        config.hook.pytest_deselected(items=list(set(items) - set(asking)))
        items[:] = asking
    seed, rounds = config.getoption("shuffle"), config.getoption("rounds")
    if seed is not None or rounds > 1:
        orders = [shuffled(items, (seed or 0) + number) for number in range(rounds)]
        items[:] = orders[0] + [_once_more(item) for order in orders[1:] for item in order]


def _once_more(item: Any) -> Any:
    """A test is run by an item of its own: two runs of it may follow one another, and share nothing."""
    again = copy(item)
    again.user_properties = []
    again._initrequest()
    return again


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """Files stay together, and classes in them, so that what they share is made once."""
    dice = random.Random(seed)
    found = []
    for file in _mixed(dice, items, pytest.Module):
        for cls in _mixed(dice, file, pytest.Class):
            dice.shuffle(cls)
            found += cls
    return found


def _mixed(dice: random.Random, items: Iterable[pytest.Item], kind: type[pytest.Collector]) -> list[Any]:
    def name(item: pytest.Item) -> str:
        parent = item.getparent(kind)
        return "" if parent is None else parent.nodeid

    groups = [list(group) for _, group in groupby(sorted(items, key=name), name)]
    dice.shuffle(groups)
    return groups


def _file(nodeid: str) -> str:
    return nodeid.partition("::")[0]


class Keeper:
    """Keeps, in the process that hears of all tests, which of them asked."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._found: dict[str, set[str]] = {KEPT: set(), KEPT_STARTED: set()}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed and self._config.getoption("rounds") > 1:
            self._tell(report)
        properties = set(map(tuple, report.user_properties))
        for mark, kept, name in (
            (ASKED, KEPT, report.nodeid),
            (ALL_ASKED, KEPT, _file(report.nodeid)),
            (STARTED, KEPT_STARTED, report.nodeid),
            (ALL_STARTED, KEPT_STARTED, _file(report.nodeid)),
        ):
            self._found[kept] |= {name} if mark in properties else set()

    def _tell(self, report: pytest.TestReport) -> None:
        """At once: rounds take hours, and whoever stops them must not lose what has failed."""
        screen = self._config.pluginmanager.get_plugin("terminalreporter")
        if screen is not None:  # workers have none
            screen.write_line(f"\nFAILED {report.nodeid} ({report.when})\n{report.longreprtext}", red=True)

    def pytest_sessionfinish(self) -> None:
        """What asked once stays known, where there is a cache: a run may be of a part of the tests."""
        if not hasattr(self._config, "workerinput") and hasattr(self._config, "cache"):
            for kept, found in self._found.items():
                self._config.cache.set(kept, sorted(found | set(self._config.cache.get(kept, []))))

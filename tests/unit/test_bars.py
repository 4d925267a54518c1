"""Bars on a terminal: late ones, those of drawn directions, and that none of them can cost a release."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest

import dpgram as dg
from dpgram.core.noise import SeededEntropy
from dpgram.privacy.sampling import bars
from dpgram.privacy.sampling.directions import WATCHED, deflation_matrix, frame_matrix

TABLE = pa.table({name: np.linspace(-1.0, 1.0, 50) for name in "abcd"})
SCHEMA = dg.Schema(*(dg.numeric(name, -1, 1) for name in "abcd"))


class Terminal(StringIO):
    """Somebody looks on."""

    def isatty(self) -> bool:
        return True


def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """The screen, on which no bar waits; no fixture, since pytest puts its own in place before each test."""
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(bars, "PATIENCE", 0.0)
    return screen


def publish(mechanism: str, **options: object) -> dg.Release:
    found = dg.publish(
        TABLE,
        SCHEMA,
        epsilon=1.0,
        delta=0,
        mechanism=mechanism,
        adaptive=False,
        rows=dg.Rows(radius=1.0),
        **options,
    )
    assert isinstance(found, dg.Release)
    return found


@pytest.mark.parametrize(("mechanism", "count"), [("eigenvectors", "4/4"), ("deflation", "5/5")])
def test_directions_are_counted_on_a_terminal(
    mechanism: str, count: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of five columns, the constant among them; the last of a frame is forced."""
    screen = terminal(monkeypatch)
    publish(mechanism)
    assert "drawing directions" in screen.getvalue()
    assert count in screen.getvalue()
    assert WATCHED.get() is None


@pytest.mark.parametrize("progress", [False, lambda rows: None])
def test_who_wants_no_bar_gets_none(progress: object, monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    publish("eigenvectors", progress=progress)
    assert screen.getvalue() == ""


def closed() -> StringIO:
    screen = StringIO()
    screen.close()
    return screen


@pytest.mark.parametrize("screen", [None, closed()], ids=["none", "closed"])
def test_without_a_standard_error_all_is_quiet(
    screen: StringIO | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A windowed program has none."""
    monkeypatch.setattr(sys, "stderr", screen)
    assert not bars.on_terminal()
    assert publish("eigenvectors").noise is not None


def test_elsewhere_there_is_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = StringIO()
    monkeypatch.setattr(sys, "stderr", screen)
    monkeypatch.setattr(bars, "PATIENCE", 0.0)
    publish("eigenvectors")
    assert screen.getvalue() == ""


def test_mechanisms_without_directions_have_no_bar_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = terminal(monkeypatch)
    publish("matrix-laplace")
    assert "reading rows" in screen.getvalue()
    assert "directions" not in screen.getvalue()


def test_every_direction_is_told() -> None:
    gram, heard = np.diag([40, 30, 20, 10]) << 30, []
    before = WATCHED.set(lambda *told: heard.append(told))
    try:
        source = SeededEntropy(1).random_bytes
        frame_matrix(gram, np.full(2, 0.1), [40, 30], source)
        frame_matrix(gram, np.full(4, 0.1), [40, 30, 20, 10], source)  # the last one is forced
        deflation_matrix(gram, 0.1, 3, lambda: 0, source)
    finally:
        WATCHED.reset(before)
    assert heard == [(1, 2), (2, 2), (1, 3), (2, 3), (3, 3), (1, 3), (2, 3), (3, 3)]


def test_a_late_bar_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[tuple[str, int | None, int]] = []

    @contextlib.contextmanager
    def bar(label: str, total: int | None) -> Iterator[object]:
        yield lambda done: shown.append((label, total, done))

    clock = iter([0.0, 0.5, 1.5, 99.0])
    monkeypatch.setattr(bars, "bar", bar)
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: next(clock)))  # nobody else's clock
    with bars.late_bar("work") as show:
        for done in (1, 2, 3):
            show(done, 3)
    assert shown == [("work", 3, 2), ("work", 3, 3)]


@pytest.mark.parametrize("when", ["it opens", "it is told", "it closes"])
def test_a_bar_that_breaks_costs_nothing(when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def bar(label: str, total: int | None) -> Iterator[object]:
        def told(done: int) -> None:
            if when == "it is told":
                raise OSError(label)

        if when == "it opens":
            raise OSError(label)
        yield told
        if when == "it closes":
            raise OSError(label, total)

    terminal(monkeypatch)
    monkeypatch.setattr(bars, "bar", bar)
    assert publish("eigenvectors").noise is not None


def test_an_interrupt_goes_through() -> None:
    with pytest.raises(KeyboardInterrupt), bars.late_bar("work"):
        raise KeyboardInterrupt

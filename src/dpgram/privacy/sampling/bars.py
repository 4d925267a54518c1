"""Bars on a terminal, for what takes long: rows that are read, forecasts, directions that are drawn."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.console import RenderableType

PATIENCE: Final = 1.0
"""Seconds of work before a late bar appears."""


def on_terminal() -> bool:
    """Whether anybody would see a bar: not where there is no standard error, or a closed one."""
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):
        return False


@contextmanager
def bar(label: RenderableType, total: int | None) -> Iterator[Callable[[int], None]]:
    """A bar that is gone afterwards; call what it gives with how much is done."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, RenderableColumn, TimeRemainingColumn

    columns = (RenderableColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=total)
        yield lambda done: shown.update(task, completed=done)


@contextmanager
def late_bar(label: RenderableType) -> Iterator[Callable[[int, int], None]]:
    """A bar for what may be over at once: call what it gives with how much of how much is done.

    It appears a second after the first call. Nothing that goes wrong with it is ever raised.
    """
    begun: float | None = None
    showing = ExitStack()
    update: Callable[[int], None] | None = None

    def show(done: int, total: int) -> None:
        nonlocal begun, update
        with suppress(Exception):
            begun = time.monotonic() if begun is None else begun
            if update is None and time.monotonic() - begun >= PATIENCE:
                update = showing.enter_context(bar(label, total))
            if update is not None:
                update(done)

    try:
        yield show
    finally:
        with suppress(Exception):
            showing.close()

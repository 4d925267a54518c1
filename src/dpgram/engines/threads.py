"""Several workers of this machine over the feeds of one table; errors and interrupts stop all of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Generic, Literal, Protocol, TypeVar, final

from dpgram.privacy.sampling.bars import bar, on_terminal
from dpgram.rows.floats import as_numpy_begins

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

Progress = Literal[False] | Callable[[int], None] | None
"""None: a bar on a terminal, else silence. False: silence. A function: called now and then, from the thread
that called the engine, with the number of rows read so far."""

HEARTBEAT: Final = 0.1
"""Seconds between two looks at the workers."""

FEW_ROWS: Final = 10_000
"""A table of no more is added up where it was asked for: to start threads would take longer."""

T_co = TypeVar("T_co", covariant=True)
T = TypeVar("T")


class Task(Protocol[T_co]):
    """What one worker does with its feed."""

    def add(self, first_row: int, piece: Any) -> int:
        """Take one piece of the feed; gives how many rows it had."""

    def result(self) -> T_co:
        """What came of all pieces."""


@final
class Run(Generic[T]):
    """One pass by several workers, one for each feed of (number of the first row, piece)."""

    def __init__(
        self,
        *,
        feeds: Sequence[Iterator[tuple[int, Any]]],
        start: Callable[[], Task[T]],
        total: int | None,
    ) -> None:
        self._feeds, self._start, self._total = feeds, start, total
        self._rows_read = 0
        self._lock = threading.Lock()
        self._stop = threading.Event()

    def finish(self, progress: Progress, *, asked_for: bool) -> list[T]:
        """The results of all workers. An error or an interrupt stops every worker before it is raised.

        `asked_for` says whether somebody asked for this number of workers: if not, few rows need none.
        """
        few = not asked_for and self._total is not None and self._total <= FEW_ROWS
        with one_blas_thread(), as_numpy_begins(), display(progress, self._total) as show:
            if show is None and (few or len(self._feeds) == 1):
                return [self._work(feed) for feed in self._feeds]
            return self._in_threads(show)

    def _in_threads(self, show: Callable[[int], None] | None) -> list[T]:
        with ThreadPoolExecutor(len(self._feeds), thread_name_prefix="dpgram") as pool:
            try:
                futures = [pool.submit(self._work, feed) for feed in self._feeds]
                self._watch(futures, show)
                return [future.result() for future in futures]
            except BaseException:  # an interrupt too: leaving the pool waits for its workers
                self._stop.set()
                raise

    def _work(self, feed: Iterator[tuple[int, Any]]) -> T:
        task = self._start()
        for first_row, piece in feed:
            rows = task.add(first_row, piece)
            with self._lock:
                self._rows_read += rows
            if self._stop.is_set():
                break
        return task.result()

    def _watch(self, futures: list[Future[T]], show: Callable[[int], None] | None) -> None:
        """Wait for all workers; raise the error of the first that fails."""
        pending: set[Future[T]] = set(futures)
        while pending:
            done, pending = wait(
                pending, timeout=None if show is None else HEARTBEAT, return_when=FIRST_EXCEPTION
            )
            if show is not None:
                show(self._rows_read)
            for future in done:
                future.result()


def one_blas_thread() -> AbstractContextManager[object]:
    """Within it a matrix product uses one thread: more inside each worker would fight for the same cores."""
    limits: AbstractContextManager[object] = _libraries().limit(limits=1, user_api="blas")
    return limits


@cache
def _libraries() -> ThreadpoolController:
    """The libraries of this process that have threads: numpy's is there, and to look for them takes long."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@contextmanager
def display(progress: Progress, total: int | None) -> Iterator[Callable[[int], None] | None]:
    """What to call with the number of rows read so far: nothing, a given function, or a bar's update."""
    if callable(progress):
        yield progress
        return
    if progress is False or not on_terminal():
        yield None
        return
    with bar("reading rows", total) as show:
        yield show

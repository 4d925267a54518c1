"""No answer may take more than `SECONDS` of computing, nor more than `MEGABYTES` beside what was there."""

from __future__ import annotations

import contextlib
import resource
import signal
import sys
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Final, NoReturn

SECONDS: Final = 5.0
MEGABYTES: Final = 1_000


@contextlib.contextmanager
def limited(what: str, seconds: float | None = None) -> Iterator[None]:
    """AssertionError where the body takes too long; MemoryError, a finding too, where it asks for too much.

    Time is that of the processor, so that a busy machine makes no findings; a wait is seen by the fuzzer's
    own clock. Memory is what the process asks for: an array of zeros counts though nothing of it is used.
    """

    def too_long(number: int, frame: FrameType | None) -> NoReturn:
        del number, frame
        raise AssertionError(f"{what} takes longer than {most:g} s")

    most = SECONDS if seconds is None else seconds

    clocked = threading.current_thread() is threading.main_thread()
    before = resource.getrlimit(resource.RLIMIT_DATA)
    handler = signal.signal(signal.SIGPROF, too_long) if clocked else None
    try:
        if clocked:
            signal.setitimer(signal.ITIMER_PROF, most)
        resource.setrlimit(resource.RLIMIT_DATA, (_most_data(before[1]), before[1]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, before)
        if clocked:
            signal.setitimer(signal.ITIMER_PROF, 0.0)
            signal.signal(signal.SIGPROF, handler)


def _most_data(hard: int) -> int:
    """Bytes of data that the process may have in all."""
    if sys.platform != "linux":
        return hard
    with open("/proc/self/statm", "rb") as stream:  # noqa: PTH123  (thousands of times a second)
        pages = int(stream.read().split()[5])
    most = pages * resource.getpagesize() + (MEGABYTES << 20)
    return most if hard == resource.RLIM_INFINITY else min(most, hard)

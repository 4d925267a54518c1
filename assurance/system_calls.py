"""Every change a process makes to one folder, one by one: counted, refused, torn, or the last thing it does.

A forked child runs under ptrace. Each of its system calls that changes the folder is a *step*. Between two
steps nothing on the disk changes, so a `kill -9` before each step and one after the last are all the
`kill -9` there can be, as far as files go; the same enumeration serves for a full disk. Linux only.
"""

from __future__ import annotations

import ctypes
import errno
import functools
import os
import platform
import signal
import struct
import sys
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, final

Fate = Literal["count", "kill", "torn", "full", "full from here", "broken", "read-only from here"]
"""What happens at the step: nothing; SIGKILL before it; half of it and SIGKILL; ENOSPC once or from there on;
EIO once; EROFS from there on."""

ERRORS: Final[dict[Fate, int]] = {
    "full": errno.ENOSPC,
    "full from here": errno.ENOSPC,
    "broken": errno.EIO,
    "read-only from here": errno.EROFS,
}
LONGEST: Final = 300.0
"""Seconds a child may take; a hang is a finding, not a wait."""

_TRACEME, _SYSCALL, _OPTIONS, _INFO, _POKEUSER = 0, 24, 0x4200, 0x420E, 6
_GOOD_SYSCALL, _DIE_TOGETHER, _ENTRY = 1, 1 << 20, 1
_RAX, _RDX, _ORIG_RAX = 80, 96, 120  # places of registers in the user area of x86-64
_AT_CREATE = os.O_CREAT | os.O_WRONLY | os.O_RDWR | os.O_TRUNC
_MASK = (1 << 64) - 1

# How each call names what it changes: by a descriptor or a path, and in which argument.
_BY_DESCRIPTOR, _BY_PATH, _BY_OPEN = "descriptor", "path", "open"
_CALLS: Final[dict[str, dict[int, tuple[str, str, int]]]] = {
    "x86_64": {
        1: ("write", _BY_DESCRIPTOR, 0),
        18: ("pwrite", _BY_DESCRIPTOR, 0),
        20: ("writev", _BY_DESCRIPTOR, 0),
        74: ("fsync", _BY_DESCRIPTOR, 0),
        75: ("fdatasync", _BY_DESCRIPTOR, 0),
        77: ("ftruncate", _BY_DESCRIPTOR, 0),
        91: ("fchmod", _BY_DESCRIPTOR, 0),
        2: ("open", _BY_OPEN, 0),
        257: ("openat", _BY_OPEN, 1),
        82: ("rename", _BY_PATH, 1),
        264: ("renameat", _BY_PATH, 3),
        316: ("renameat2", _BY_PATH, 3),
        83: ("mkdir", _BY_PATH, 0),
        84: ("rmdir", _BY_PATH, 0),
        87: ("unlink", _BY_PATH, 0),
        263: ("unlinkat", _BY_PATH, 1),
        90: ("chmod", _BY_PATH, 0),
        268: ("fchmodat", _BY_PATH, 1),
    },
    "aarch64": {
        64: ("write", _BY_DESCRIPTOR, 0),
        68: ("pwrite", _BY_DESCRIPTOR, 0),
        66: ("writev", _BY_DESCRIPTOR, 0),
        82: ("fsync", _BY_DESCRIPTOR, 0),
        83: ("fdatasync", _BY_DESCRIPTOR, 0),
        46: ("ftruncate", _BY_DESCRIPTOR, 0),
        52: ("fchmod", _BY_DESCRIPTOR, 0),
        56: ("openat", _BY_OPEN, 1),
        38: ("renameat", _BY_PATH, 3),
        276: ("renameat2", _BY_PATH, 3),
        34: ("mkdirat", _BY_PATH, 1),
        35: ("unlinkat", _BY_PATH, 1),
        53: ("fchmodat", _BY_PATH, 1),
    },
}
_UNREFUSABLE: Final = frozenset({"unlink", "unlinkat", "rmdir"})
"""Deleting needs no room: a full disk does not refuse it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """How a watched child ended."""

    steps: tuple[str, ...]
    """What it did to the folder, as "write insurance.ledger"."""
    code: int | None
    """Its exit code; None when it was killed."""
    hung: bool


def why_not(fate: Fate = "kill") -> str | None:
    """Why steps cannot be watched here, or None."""
    if sys.platform != "linux" or platform.machine() not in _CALLS:
        return "system calls can be watched on Linux (x86-64 or ARM) only"
    if fate not in ("count", "kill") and platform.machine() != "x86_64":
        return "system calls can be refused on x86-64 only"
    try:
        probe = watched(lambda: 0, Path("/nonexistent"), "count", 0)
    except OSError as problem:
        return f"this system does not let a process watch its child: {problem.strerror}"
    return None if probe.code == 0 else "this system does not let a process watch its child"


def watched(action: Callable[[], int], folder: Path, fate: Fate, at: int) -> Ending:
    """Run `action` in a child; its `at`-th change of `folder` (from 0) meets `fate`."""
    return _followed(
        lambda: _obey(action), lambda child: _Watch(child, str(folder.resolve()), fate, at).follow()
    )


def unwatched(action: Callable[[], int]) -> Ending:
    """Run `action` in a child without looking."""

    def obey() -> None:
        code = 70
        try:
            code = action()
        finally:
            os._exit(code)

    return _followed(obey, lambda child: ((), os.waitpid(child, 0)[1]))


def _followed(obey: Callable[[], None], follow: Callable[[int], tuple[tuple[str, ...], int]]) -> Ending:
    with warnings.catch_warnings():
        # Newer Pythons warn of a fork beside threads; the child starts none before it has its own.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        obey()
    alarm = threading.Timer(LONGEST, os.kill, (child, signal.SIGKILL))
    alarm.start()
    try:
        steps, status = follow(child)
    finally:
        hung = not alarm.is_alive()
        alarm.cancel()
        alarm.join()
    code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
    return Ending(steps=steps, code=code, hung=hung)


def _obey(action: Callable[[], int]) -> None:
    """The child: let itself be watched, act, and leave without the parent's clean-up."""
    code = 70
    try:
        _ptrace(_TRACEME, 0, 0, 0)
        os.kill(os.getpid(), signal.SIGSTOP)
        code = action()
    finally:
        os._exit(code)


@final
class _Watch:
    def __init__(self, child: int, folder: str, fate: Fate, at: int) -> None:
        self._child, self._folder, self._fate, self._at = child, folder, fate, at
        self._calls = _CALLS[platform.machine()]
        self._buffer = ctypes.create_string_buffer(88)
        self._steps: list[str] = []
        self._pending: int | None = None  # the error that the call now under way shall end with
        self._last = False  # kill once the call now under way has ended

    def follow(self) -> tuple[tuple[str, ...], int]:
        _, status = os.waitpid(self._child, 0)
        if os.WIFSTOPPED(status):
            _ptrace(_OPTIONS, self._child, 0, _GOOD_SYSCALL | _DIE_TOGETHER)
        deliver = 0
        while os.WIFSTOPPED(status):
            try:
                _ptrace(_SYSCALL, self._child, 0, deliver)
            except ProcessLookupError:  # killed meanwhile
                deliver = 0
            _, status = os.waitpid(self._child, 0)
            deliver = 0
            if os.WIFSTOPPED(status):
                if os.WSTOPSIG(status) == signal.SIGTRAP | 0x80:
                    self._call()
                else:
                    deliver = os.WSTOPSIG(status)
        return tuple(self._steps), status

    def _call(self) -> None:
        buffer = self._buffer
        try:
            _ptrace(_INFO, self._child, len(buffer), ctypes.addressof(buffer))
        except ProcessLookupError:
            return
        if buffer.raw[0] == _ENTRY:
            number, *arguments = struct.unpack_from("<7Q", buffer.raw, 24)
            self._enter(number, arguments)
        else:
            self._leave()

    def _enter(self, number: int, arguments: list[int]) -> None:
        if number not in self._calls:
            return
        name, how, place = self._calls[number]
        touched = self._touched(how, arguments[place], arguments[(place + 1) % 6])
        if touched is None:
            return
        index = len(self._steps)
        self._steps.append(f"{name} {touched}")
        here, later = index == self._at, index >= self._at
        if self._fate == "kill" and here:
            os.kill(self._child, signal.SIGKILL)
        elif self._fate == "torn" and here:
            if name in ("write", "pwrite"):
                _ptrace(_POKEUSER, self._child, _RDX, arguments[2] // 2)
            self._last = True
        elif self._refused(name, here=here, later=later):
            _ptrace(_POKEUSER, self._child, _ORIG_RAX, _MASK)  # no such call: it does nothing
            self._pending = ERRORS[self._fate]

    def _refused(self, name: str, *, here: bool, later: bool) -> bool:
        error = ERRORS.get(self._fate)
        if error is None or (error == errno.ENOSPC and name in _UNREFUSABLE):
            return False
        return here or (later and self._fate.endswith("from here"))

    def _leave(self) -> None:
        if self._pending is not None:
            _ptrace(_POKEUSER, self._child, _RAX, -self._pending & _MASK)
            self._pending = None
        if self._last:
            os.kill(self._child, signal.SIGKILL)

    def _touched(self, how: str, value: int, flags: int) -> str | None:
        """The name inside the folder that a call changes, or None."""
        if how == _BY_OPEN and not flags & _AT_CREATE:
            return None
        try:
            path = (
                str(Path(f"/proc/{self._child}/fd/{value}").readlink())
                if how == _BY_DESCRIPTOR
                else self._text(value)
            )
        except OSError:
            return None
        path = path.removesuffix(" (deleted)")
        return path[len(self._folder) + 1 :] if path.startswith(self._folder + "/") else None

    def _text(self, address: int) -> str:
        with Path(f"/proc/{self._child}/mem").open("rb", buffering=0) as memory:
            memory.seek(address)
            # A page at a time, since the next one need not exist.
            head = memory.read(4096 - address % 4096)
            raw = head if b"\0" in head else head + memory.read(4096)
        return os.fsdecode(raw.split(b"\0", 1)[0])


@functools.cache
def _trace() -> Callable[[int, int, int, int], int]:
    library = ctypes.CDLL(None, use_errno=True)
    library.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    library.ptrace.restype = ctypes.c_long
    return library.ptrace


def _ptrace(request: int, process: int, address: int, data: int) -> None:
    if _trace()(request, process, address, data) == -1:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))

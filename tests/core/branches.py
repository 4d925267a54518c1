"""Which branches of src/dpgram/core no test of tests/core takes.

python -m pytest tests/core -p tests.core.branches

A branch is a conditional jump of the bytecode, so `and`, `or`, a conditional expression and the end of a loop
count too, one by one; both ways must be taken, and every line of a function reached. It needs no package.
"""

from __future__ import annotations

import dis
import sys
import threading
from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import pytest

CORE = Path(__file__).resolve().parents[2] / "src" / "dpgram" / "core"
NOT_WRITTEN = {"WITH_EXCEPT_START", "CHECK_EXC_MATCH"}
"""What precedes jumps that stand in no source: an error that passes through `with` or `except`."""

Place = tuple[str, str, int]
taken: dict[Place, set[tuple[int, int]]] = defaultdict(set)
"""Of each function the pairs of instructions that followed each other."""
calls: Counter[CodeType] = Counter()
done: set[CodeType] = set()


def place_of(code: CodeType) -> Place:
    return code.co_filename, code.co_qualname, code.co_firstlineno


def watch(frame: FrameType, event: str, arg: Any) -> Any:
    code = frame.f_code
    if not code.co_filename.startswith(str(CORE)) or complete(code):
        return None
    frame.f_trace_lines, frame.f_trace_opcodes = False, True
    arcs, last = taken[place_of(code)], -1

    def step(frame: FrameType, event: str, arg: Any) -> Any:
        nonlocal last
        if event == "opcode":
            arcs.add((last, frame.f_lasti))
            last = frame.f_lasti
        return step

    return step


def complete(code: CodeType) -> bool:
    """Whether nothing is missing of a function; looked at now and then, to watch it no longer."""
    calls[code] += 1
    if calls[code] in (10, 100, 1000) and not missing(code):
        done.add(code)
    return code in done


def functions(code: CodeType) -> Iterator[CodeType]:
    """Modules and bodies of classes are run by the import."""
    if code.co_flags & 0x02:  # has fast locals
        yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from functions(constant)


def missing(code: CodeType) -> set[tuple[int, str]]:
    """What of a function was not taken: lines, and ways of branches."""
    steps = list(dis.get_instructions(code))
    if steps[1].opname == "LOAD_CONST" and steps[1].argval is None:
        return set()  # an abstract method
    lines: dict[int, int] = {}
    for low, high, line in code.co_lines():
        lines |= {offset: line for offset in range(low, high) if line is not None}
    # A jump to a long argument's prefix is a jump to what follows it.
    real = {one.offset: one.offset for one in steps}
    for one, after in reversed(list(pairwise(steps))):
        if one.opname == "EXTENDED_ARG":
            real[one.offset] = real[after.offset]
    arcs = {(real.get(a, a), real.get(b, b)) for a, b in taken[place_of(code)]}
    reached = {lines.get(after) for _, after in arcs}
    start = next(one.offset for one in steps if one.opname == "RESUME")
    written = {line for offset, line in lines.items() if offset > start + 1}
    seen: dict[tuple[int, int, bool], set[bool]] = defaultdict(set)
    for first, before, one, after in zip(steps, steps[1:], steps[2:], steps[3:], strict=False):
        jumps = one.opcode in dis.hasjrel and ("IF" in one.opname or one.opname == "FOR_ITER")
        if not jumps or before.opname in NOT_WRITTEN or lines[one.offset] not in reached:
            continue
        # One condition may stand in several places of the bytecode: a loop's at its head and its end. A
        # chain of comparisons is several conditions in one place.
        tested = (one if one.opname == "FOR_ITER" else before).positions
        column = 0 if tested is None else tested.col_offset or 0
        ways = seen[lines[one.offset], column, first.opname == "COPY"]
        away = not ("FALSE" in one.opname or "NOT_NONE" in one.opname or one.opname == "FOR_ITER")
        ways |= {away} if (one.offset, real[one.argval]) in arcs else set()
        ways |= {not away} if (one.offset, real[after.offset]) in arcs else set()
    found = {(line, "not reached") for line in written - reached}
    for (line, column, _), ways in seen.items():
        found |= {(line, f"column {column} is never {way}") for way in {True, False} - ways}
    return found


def all_missing() -> list[str]:
    return [
        f"{path.name}:{line}: {what}"
        for path in sorted(CORE.glob("*.py"))
        for code in functions(compile(path.read_text(encoding="utf-8"), str(path), "exec"))
        for line, what in sorted(missing(code))
    ]


def pytest_configure() -> None:
    threading.settrace(watch)
    sys.settrace(watch)


def pytest_sessionfinish(session: pytest.Session) -> None:
    sys.settrace(None)
    if all_missing() and session.exitstatus == 0:
        session.exitstatus = 1


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for line in all_missing():
        terminalreporter.write_line(line)

"""CSV files: read as an independent slow reading reads them, or refused; never something else in silence."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Final, TypeAlias

from assurance.fuzz_targets import scratch, slow_csv
from assurance.fuzz_targets.limits import limited
from dpgram.errors import SourceError
from dpgram.sources import open_source
from dpgram.sources.base import DeclaredKind

KINDS: Final[dict[str, DeclaredKind]] = {"a": "number", "t": "text"}
ASKED: Final[tuple[tuple[str, ...], ...]] = (("a", "t"), ("t", "a"), ("a",), ("t",))
"""Which columns are asked for: readers take other ways when they may leave some out."""
Cell: TypeAlias = float | str | None


def seeds() -> list[bytes]:
    """Well-formed and odd files with the two columns."""
    files = [
        b"a,t\n1,x\n2.5,y\n-3e2,\n",
        b't,a\r\n"x, y",1\r\n"a ""word""",2\r\n"two\nlines",3\r\n',
        b"\xef\xbb\xbfa,z,t\n1,2,3\n4\n5,6,7,8\n\n,,\n",
        b'"a","t"\n" 1",""\ninf,nan\nNaN,0x10\n1 ,\xff\n',
    ]
    return [bytes([choice]) + raw for raw in files for choice in range(len(ASKED))]


PIECES: Final = (
    b",", b'"', b"\n", b"\r\n", b"\r", b'""', b"1", b".5", b"1e5", b"-", b" ", b"\t", b"inf", b"NaN", b"x",
    b"a", b"t", b"\xff", b"\x00", b"\xc3\xa9", b"\xe2\x82", b"\xef\xbb\xbf", b",,", b'","', b'"\n"',
)  # fmt: skip


def mutate(data: bytes, dice: random.Random) -> bytes:
    """Pieces that mean something to a reader are put in or taken out."""
    raw = bytearray(data)
    for _ in range(dice.randint(1, 5)):
        at = dice.randrange(1, len(raw) + 1) if raw else 0
        raw[at : at + dice.choice((0, 0, 1, 3))] = dice.choice(PIECES)
    return bytes(raw)


def examine(data: bytes) -> None:
    """One file; its first byte says what is asked of it."""
    path = scratch() / "fuzzed.csv"
    path.write_bytes(data[1:])
    with limited("a CSV table"):
        compare(path, ASKED[data[0] % len(ASKED)] if data else ASKED[0])


def compare(path: Path, asked: tuple[str, ...] = ASKED[0]) -> bool:
    """Whether it was read; AssertionError where the two readings differ."""
    raw = path.read_bytes()
    try:
        expected = expectation(raw, asked)
    except slow_csv.Unreadable:
        expected = None
    try:
        source = open_source(path, asked, kinds={name: KINDS[name] for name in asked})
        found = [tuple(row.values()) for batch in source.batches() for row in batch.to_pylist()]
    except SourceError as refusal:
        if "\n" in str(refusal):
            raise AssertionError("a refusal of several lines") from refusal
        return False
    assert expected is not None, f"read what should be refused: {raw!r}"
    assert len(found) == len(expected), f"{len(found)} rows, not {len(expected)}: {raw!r}"
    for ours, theirs in zip(found, expected, strict=True):
        assert all(map(_same, ours, theirs)), f"{asked}: {ours!r} is not {theirs!r}: {raw!r}"
    return True


def expectation(raw: bytes, asked: tuple[str, ...]) -> list[tuple[Cell, ...]]:
    """The asked columns by the slow reading."""
    header, *rows = slow_csv.records(raw) or [[]]
    places = [header.index(name) if name in header else len(raw) for name in asked]
    texts = [[row[place] if place < len(row) else None for place in places] for row in rows]
    return [
        tuple(
            slow_csv.number(cell) if KINDS[name] == "number" else cell
            for name, cell in zip(asked, row, strict=True)
        )
        for row in texts
    ]


def _same(ours: Cell, theirs: Cell) -> bool:
    if isinstance(ours, float) and isinstance(theirs, float):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return ours == theirs

"""Parquet files: damaged ones are refused or read, never with another exception; whole ones are read exactly.

The input says how a whole file is written (types, pages, compression, row groups) and which bytes of it are
then changed. A whole file must give its rows; a changed one may give anything that the format allows, as
Parquet has no checksums by default, but it must end in rows or in SourceError. Some damage would make the
C++ reader ask for more memory than there is: the fuzzer's limits are part of the examination.
"""

from __future__ import annotations

import random
import warnings
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from assurance.fuzz_targets import scratch
from assurance.fuzz_targets.limits import limited
from dpgram.engines.local import gram
from dpgram.errors import DpgramWarning, SourceError
from dpgram.schema import Schema, categorical, numeric
from dpgram.sources import open_source
from dpgram.sources.base import DeclaredKind

KINDS: Final[dict[str, DeclaredKind]] = {"a": "number", "t": "text"}
SCHEMA: Final = Schema(numeric("a", -2, 3), categorical("t", ["x", "é", ""], other="else"))
NUMBERS: Final = (None, 0.0, -0.0, 1.5, -2.0, 1e300, 5e-324, 3.0)
TEXTS: Final = (None, "", "x", "é", "two\nlines", '"', "x" * 50)
NUMBER_TYPES: Final = (pa.float64(), pa.float32(), pa.int32(), pa.uint8(), pa.decimal128(30, 2))
TEXT_TYPES: Final = (pa.string(), pa.large_string(), pa.dictionary(pa.int16(), pa.string()))
COMPRESSIONS: Final = ("none", "snappy", "gzip", "zstd")


def seeds() -> list[bytes]:
    """A few layouts, whole and changed."""
    return [
        bytes([layout, 40 + layout, *changes]) for layout in range(8) for changes in ((), (200, 7, 9, 90))
    ]


def mutate(data: bytes, dice: random.Random) -> bytes:
    """Another layout, or up to five changed bytes."""
    changes = 3 * dice.choice((0, 1, 1, 2, 5))
    return dice.choice((data[:2], dice.randbytes(2))) + dice.randbytes(changes)


def examine(data: bytes) -> None:
    """Two bytes say what is written; the rest, in threes, what is changed."""
    head, changes = data[:2].ljust(2, b"\0"), data[2:32]
    path = scratch() / "fuzzed.parquet"
    rows = written(path, random.Random(head))
    raw = bytearray(path.read_bytes())
    for at in range(0, len(changes) - 2, 3):
        place = int.from_bytes(changes[at : at + 2]) * len(raw) >> 16
        raw[place] = changes[at + 2]
    damaged = bytes(raw) != path.read_bytes()
    path.write_bytes(raw)
    with limited("a Parquet table"):
        if damaged:
            added_up(path)
        else:
            found = read(path)
            assert found == rows, f"{found} is not {rows}"


def written(path: Path, layout: random.Random) -> list[tuple[float | None, str | None]]:
    """Write a table in some layout; its rows as they must be read."""
    number, text = layout.choice(NUMBER_TYPES), layout.choice(TEXT_TYPES)
    count = layout.choice((0, 1, 7, 40))
    whole = not pa.types.is_floating(number)
    exact = [value for value in NUMBERS if not whole or value in (None, 0.0, 3.0)]
    numbers = [layout.choice(exact) for _ in range(count)]
    texts = [layout.choice(TEXTS) for _ in range(count)]
    table = pa.table(
        {
            "t": pa.array(texts, pa.string()).cast(text),
            "z": pa.array(range(count), pa.int64()),
            "a": pa.array(numbers, pa.float64()).cast(number, safe=False),
        }
    )
    pq.write_table(
        table,
        path,
        compression=layout.choice(COMPRESSIONS),
        use_dictionary=layout.choice((True, False)),
        data_page_version=layout.choice(("1.0", "2.0")),
        data_page_size=layout.choice((16, 1 << 20)),
        row_group_size=layout.choice((3, 1000)),
        write_statistics=layout.choice((True, False)),
        version=layout.choice(("1.0", "2.6")),
    )
    kept = table.column("a").cast(pa.float64()).to_pylist()
    return list(zip(kept, texts, strict=True))


def added_up(path: Path) -> bool:
    """Whether the file could be read to its end and added up, as `publish` does it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DpgramWarning)  # no usable row is no finding
            gram(path, SCHEMA, threads=1, progress=False)
    except SourceError as refusal:
        if "\n" in str(refusal):
            raise AssertionError("a refusal of several lines") from refusal
        return False
    return True


def read(path: Path) -> list[tuple[Any, Any]]:
    """The rows of a file that nobody changed."""
    source = open_source(path, ("a", "t"), kinds=KINDS)
    rows = [row for batch in source.batches() for row in batch.to_pylist()]
    return [(None if row["a"] is None else float(row["a"]), row["t"]) for row in rows]

"""Public files of a series: any bytes are refused with ReleaseError, or are a series that answers.

What is read is then asked what an analyst may ask. Each answer, or its refusal with one of our own errors,
must come within the limits of time and memory.
"""

from __future__ import annotations

import json
import random
import tempfile
import warnings
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from assurance.fuzz_targets.limits import limited
from assurance.fuzz_targets.questions import asked, require_one_line, some_of
from assurance.fuzz_targets.releases import SEALED, change
from dpgram.analysis import trend
from dpgram.canonical_json import canonical_bytes, sha256_hex
from dpgram.core.noise import SeededEntropy
from dpgram.engines.local import LocalEngine
from dpgram.errors import DpgramWarning, ReleaseError
from dpgram.release import Release
from dpgram.rows import Rows
from dpgram.schema import Schema, categorical, numeric
from dpgram.series._curate import create, publish
from dpgram.series.show import explorer_page, summary
from dpgram.series.stream import START, Stream

AT_ONCE: Final = 2
"""Questions asked of one series while fuzzing; which ones depends on its bytes."""


@cache
def seeds() -> tuple[bytes, ...]:
    """With coordinates and without, of persons and of rows; of three, two and one period."""
    schema, found = Schema(numeric("x", -1, 1), categorical("t", ["a", "b"]), numeric("y", 0, 10)), []
    draw = np.random.default_rng(1)
    x = draw.uniform(-1.0, 1.0, 300)
    table = {"x": x, "t": ["a", "b", "b"] * 100, "y": 5.0 + 3.0 * x, "id": np.arange(300)}
    with tempfile.TemporaryDirectory() as place, warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        for number, (adaptive, unit) in enumerate(((True, "id"), (True, None), (False, None))):
            path, noise = Path(place) / f"{number}.series", SeededEntropy(number)
            terms: dict[str, Any] = {"periods": 6, "rows": Rows(unit=unit), "adaptive": adaptive}
            create(path, schema, epsilon=4.0, delta=1e-5, entropy=noise, **terms)
            for period in range(3 - number):
                rows = {**table, "id": np.arange(300) + 300 * period}
                publish(
                    path, rows, f"m{period}", engine=LocalEngine(threads=1), progress=False, entropy=noise
                )
            found.append(path.read_bytes())
    return tuple(mark + raw for raw in found for mark in (b"R", SEALED))


def examine(data: bytes) -> None:
    """The first byte says whether the rest gets digests that fit."""
    raw = sealed(data[1:]) if data[:1] == SEALED else data[1:]
    with limited("reading"):
        try:
            stream = Stream.of(raw)
        except ReleaseError as refusal:
            require_one_line(refusal)
            return
    asked(stream, QUESTIONS, some_of(QUESTIONS, data, AT_ONCE))


def mutate(data: bytes, dice: random.Random) -> bytes:
    """One to three values of its lines replaced, scaled, deleted or doubled; digests are mostly mended."""
    try:
        lines = [json.loads(line) for line in data[1:].splitlines()]
    except (ValueError, RecursionError):
        return data
    if not any(isinstance(line, dict | list) and line for line in lines):
        return data
    change(lines, dice)
    return dice.choice((SEALED, SEALED, b"R")) + b"".join(json.dumps(line).encode() + b"\n" for line in lines)


def sealed(raw: bytes) -> bytes:
    """The lines with digests that fit; unchanged where they are no JSON objects."""
    before, found = START, b""
    try:
        for text in raw.splitlines():
            line = {**json.loads(text), "before": before}
            line.pop("digest", None)
            before = sha256_hex(line)
            found += canonical_bytes({**line, "digest": before}) + b"\n"
    except (ValueError, TypeError, RecursionError):
        return raw
    return found


def _file(stream: Stream) -> None:
    release = stream.release(1, len(stream.labels))
    assert Release.from_json(release.to_json()) == release, "its release does not save to itself"


def _trend(stream: Stream) -> None:
    windows = [stream.release(number, number) for number in range(1, len(stream.labels) + 1)]
    columns = [column.name for column in stream.schema.columns]
    str(trend(windows, columns[-1], columns[:-1]))


QUESTIONS: Final[Mapping[str, Callable[[Stream], object]]] = {
    "summary": summary,
    "total": lambda stream: str(stream.release(1, len(stream.labels))),
    "file": _file,
    "regression": lambda stream: (
        stream.release(1, len(stream.labels)).regress(stream.schema.columns[-1].name).summary()
    ),
    "trend": _trend,
    "page": explorer_page,
}
"""What an analyst does with a series."""

"""Files of an interrupted publication: any bytes are refused by one line, or the publication goes on.

Whatever stands in the file, nothing is charged a second time, and a release comes out whole or not at all.
"""

from __future__ import annotations

import json
import random
import shutil
import tempfile
import warnings
from functools import cache
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import numpy as np

from assurance.fuzz_targets import scratch
from assurance.fuzz_targets.limits import limited
from assurance.fuzz_targets.questions import require_one_line
from assurance.fuzz_targets.releases import SEALED, change
from dpgram.canonical_json import canonical_bytes
from dpgram.engines.local import LocalEngine
from dpgram.errors import DpgramError, DpgramWarning
from dpgram.files import line_of
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publication, publish
from dpgram.release import Release
from dpgram.schema import Schema, numeric

LEDGER: Final = "some.ledger"
SCHEMA: Final = Schema(numeric("x"), numeric("y", 0, 10))
TABLE: Final = {"x": np.arange(900.0) % 10, "y": np.arange(900.0) % 7}


def published(ledger: Path) -> Release:
    """In several stages, under one charge."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DpgramWarning)
        return publish(
            TABLE,
            SCHEMA,
            epsilon=1.0,
            delta=1e-6,
            ledger=ledger,
            engine=LocalEngine(threads=1),
            progress=False,
        )


@cache
def interrupted() -> tuple[Path, str, bytes]:
    """A ledger that was charged, and the name and content of the file by which a repeated call goes on."""
    folder = scratch() / "interrupted"
    folder.mkdir()
    Ledger.create(folder / LEDGER, name="some", epsilon=2.0, delta=1e-5)
    with patch.object(publication, "_close", lambda *_: None):
        published(folder / LEDGER)
    (path,) = folder.glob("*.unfinished-*")
    raw = path.read_bytes()
    path.unlink()
    return folder, path.name, raw


def seeds() -> list[bytes]:
    """Interrupted after each of its lines."""
    lines = interrupted()[2].splitlines(keepends=True)
    return [mark + b"".join(lines[:end]) for end in range(len(lines) + 1) for mark in (b"R", SEALED)]


def mutate(data: bytes, dice: random.Random) -> bytes:
    """One to three values of its lines replaced, scaled, deleted or doubled; digests are mostly mended."""
    try:
        lines: list[Any] = [json.loads(line.rsplit(b" ", 1)[0]) for line in data[1:].splitlines()]
    except (ValueError, RecursionError):
        return data
    if not lines:
        return data
    change(lines, dice)
    return dice.choice((SEALED, SEALED, b"R")) + b"".join(
        json.dumps(line).encode() + b" \n" for line in lines
    )


def sealed(raw: bytes) -> bytes:
    """The lines with digests that fit; unchanged where they are no JSON."""
    try:
        lines = [json.loads(line.rsplit(b" ", 1)[0]) for line in raw.splitlines()]
        return b"".join(line_of(canonical_bytes(line)) for line in lines)
    except (ValueError, TypeError, RecursionError):
        return raw


def examine(data: bytes) -> None:
    """The same call again beside this file; the first byte says whether its lines get digests that fit."""
    folder, name, _ = interrupted()
    with tempfile.TemporaryDirectory(dir=scratch()) as place:
        ledger = Path(place) / LEDGER
        for file in folder.iterdir():
            shutil.copy(file, place)
        (Path(place) / name).write_bytes(sealed(data[1:]) if data[:1] == SEALED else data[1:])
        before = len(Ledger.open(ledger).history())
        with limited("going on"):
            try:
                release = published(ledger)
            except DpgramError as refusal:
                require_one_line(refusal)
                charges = 0
            else:
                assert Release.from_json(release.to_json()) == release, "its release does not save to itself"
                charges = len(release.receipts)
        # One that is no file of this call is another publication, which the ledger pays for.
        assert len(Ledger.open(ledger).history()) - before in (0, charges), "charged in part"

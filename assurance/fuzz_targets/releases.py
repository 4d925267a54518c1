"""Release files: any bytes are refused with ReleaseError, or load as a release that saves to itself."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from dpgram.errors import AnalysisError, ReleaseError
from dpgram.release import Release

GOLDEN: Final = Path(__file__).resolve().parents[2] / "tests" / "golden"
SEALED: Final = b"S"
"""First byte of an input whose digest is to be set right, so that what follows the digest is reached."""


def seeds() -> list[bytes]:
    """The golden files, as they are and sealed again."""
    files = [path.read_bytes() for path in sorted(GOLDEN.glob("*.dpgram.json"))]
    return [mark + raw for raw in files for mark in (b"R", SEALED)]


def examine(data: bytes) -> None:
    """The first byte says whether the rest gets a digest that fits."""
    raw = data[1:]
    accepted(sealed(raw) if data[:1] == SEALED else raw)


VALUES: Final[tuple[object, ...]] = (
    None, True, 0, -1, 1, 2**53, 10**400, 0.5, -0.0, 1e308, 5e-324, "", "0", "-1", "gaussian", "wishart",
    "gram", "1970-01-01", "replace-one", "add-remove", "seeded", "system", "\u202e", "\ud800", "x" * 300, [],
    {}, [[]], "9" * 5000, {"kind": "numeric", "name": "a", "low": 0, "high": 1},
)  # fmt: skip
"""What may stand anywhere in a damaged or forged file."""


def mutate(data: bytes, dice: random.Random) -> bytes:
    """One to three values of the file replaced, deleted or doubled; the digest is mostly mended."""
    try:
        content = json.loads(data[1:])
    except (ValueError, RecursionError):
        return data
    if not isinstance(content, dict | list):
        return data
    for _ in range(dice.randint(1, 3)):
        places = list(_places(content))
        if not places:
            break
        holder, key = dice.choice(places)
        match dice.randrange(5):
            case 0:
                del holder[key]
            case 1:
                other, its = dice.choice(places)
                holder[key] = copy.deepcopy(other[its])
            case 2 if isinstance(holder, list):
                holder.append(copy.deepcopy(holder[key]))
            case _:
                holder[key] = copy.deepcopy(dice.choice(VALUES))
    return dice.choice((SEALED, SEALED, b"R")) + json.dumps(content).encode()


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every place that holds a value; of long lists the first few."""
    keys = list(value) if isinstance(value, dict) else range(min(len(value), 6))
    for key in keys:
        yield value, key
        if isinstance(value[key], dict | list):
            yield from _places(value[key])


def sealed(raw: bytes) -> bytes:
    """The file with a digest that fits its content; unchanged where it is no JSON object."""
    try:
        content = json.loads(raw)
        if not isinstance(content, dict):
            return raw
        content.pop("digest", None)
        bare = {name: value for name, value in content.items() if name != "signature"}
        text = json.dumps(bare, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        content["digest"] = hashlib.sha256(text.encode()).hexdigest()
        return json.dumps(content, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return raw


def accepted(raw: bytes) -> Release | None:
    """The release, after everything an analyst first does with one; None where it is refused."""
    try:
        release = Release.from_json(raw)
    except ReleaseError as refusal:
        if "\n" in str(refusal):
            raise AssertionError("a refusal of several lines") from refusal
        return None
    assert Release.from_json(release.to_json()) == release, "it does not save to itself"
    str(release)
    release._repr_html_()
    names = [column.name for column in release.schema.columns]
    views = (
        release.mean,
        release.covariance,
        release.correlation,
        lambda: release.matrix("original"),
        lambda: release.regress(names[-1], names[:1]),
    )
    for view in views:
        with contextlib.suppress(AnalysisError):
            view()
    return release

"""Release files: any bytes are refused with ReleaseError, or load as a release that saves to itself."""

from __future__ import annotations

import contextlib
import hashlib
import json
from pathlib import Path
from typing import Final

from dpgram.errors import AnalysisError, DpgramError, ReleaseError
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


def one_of_ours(problem: BaseException) -> bool:
    """Whether an exception is one a person can mend."""
    return isinstance(problem, DpgramError)

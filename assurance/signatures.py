"""Signed releases: every field and every byte altered, and what a reader with the public key says."""

from __future__ import annotations

import copy
import json
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec

from assurance.part import Finding, Part
from dpgram.canonical_json import sha256_hex
from dpgram.demo import insurance
from dpgram.errors import ReleaseError, SignatureError
from dpgram.publishing import publish
from dpgram.release import Release, load
from dpgram.release.signing import SigningKey

_FLIPS: Final = (1, 32, 128)
_SECONDS: Final = 15.0
"""For the bytes: as many as fit, evenly over the file."""


def examine() -> Part:
    with tempfile.TemporaryDirectory(prefix="dpgram-signatures-") as name:
        folder = Path(name)
        key, other = SigningKey.create(folder / "a.key"), SigningKey.create(folder / "b.key")
        mode = stat.S_IMODE((folder / "a.key").stat().st_mode)
        plain = publish(
            insurance.table(2_000), insurance.schema(), epsilon=1.0, delta=1e-6, ledger=None, adaptive=False
        )
        signed = plain.sign(key)
        path = signed.save(folder / "signed.json")
        again = load(path, public_key=key.public).save(folder / "again.json")
        kept = again.read_bytes() == path.read_bytes() and signed.digest == plain.digest
        fields = list(_altered_fields(signed))
        refused = sum(_refused(raw, key.public) for raw in fields)
        tried, missed, harmless = _bytes(signed, key.public)
        forgeries = list(_forgeries(signed, key, other))
        stopped = sum(_unverified(release, key.public) for release in forgeries)
    return Part(
        title="Signed releases",
        how="A release of the bundled table is signed, then altered; every alteration is read with the "
        "curator's public key. A forger computes the digest anew.",
        findings=(
            Finding(
                what="a signed release loads with its key; saving it again keeps signature and digest",
                figure="same bytes, same digest" if kept else "DIFFERENT",
                holds=kept,
            ),
            Finding(
                what="fields, down to every number and text, changed one at a time and refused",
                figure=f"{refused:,} of {len(fields):,}",
                holds=refused == len(fields) > 100,
            ),
            Finding(
                what="single bytes changed: accepted with other content",
                figure=f"{missed} of {tried:,} ({harmless} read as the same release: spaces, line ends)",
                holds=missed == 0 and tried > 500,
            ),
            Finding(
                what="whole releases that are valid in themselves but not what was signed, refused",
                figure=f"{stopped} of {len(forgeries)}",
                holds=stopped == len(forgeries),
            ),
            Finding(what="permissions of a new key file", figure=f"{mode:04o}", holds=mode == 0o600),
        ),
    )


def _altered_fields(signed: Release) -> Iterator[bytes]:
    document = json.loads(signed.to_json())
    for place in _leaves(document):
        altered = copy.deepcopy(document)
        inner: Any = altered
        for step in place[:-1]:
            inner = inner[step]
        inner[place[-1]] = _changed(inner[place[-1]])
        if place[0] != "digest":
            content = {name: value for name, value in altered.items() if name not in ("digest", "signature")}
            altered["digest"] = sha256_hex(content)
        yield json.dumps(altered).encode()


def _leaves(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    elif isinstance(value, list):
        for place, inner in enumerate(value):
            yield from _leaves(inner, (*path, place))
    else:
        yield path


def _changed(value: object) -> object:
    match value:
        case bool():
            return not value
        case int():
            return value + 1
        case float():
            return value * (1 + 2.0**-40) if value else 1e-9
        case str() if value.lstrip("-").isdigit() and len(value) < 60:
            return str(int(value) + 1)
        case str():
            return ("1" if value[:1] != "1" else "2") + value[1:]
        case _:
            return 0


def _bytes(signed: Release, public_key: str) -> tuple[int, int, int]:
    """How many were tried, how many changed the content unnoticed, how many changed nothing."""
    raw, deadline = signed.to_json(), time.monotonic() + _SECONDS
    tried = missed = harmless = 0
    step = 7919  # a prime: the places come evenly from the whole file, in whatever order time allows
    for count in range(len(raw)):
        place = count * step % len(raw)
        for flip in _FLIPS:
            altered = raw[:place] + bytes([raw[place] ^ flip]) + raw[place + 1 :]
            tried += 1
            if not _refused(altered, public_key):
                same = Release.from_json(altered).to_json() == raw
                harmless, missed = harmless + same, missed + (not same)
        if time.monotonic() > deadline:
            break
    return tried, missed, harmless


def _forgeries(signed: Release, key: SigningKey, other: SigningKey) -> Iterator[Release]:
    """Each passes every other check of a release."""
    assert signed.signature is not None
    stolen = signed.sign(other).signature
    assert stolen is not None
    louder = msgspec.structs.replace(signed, library="9.9")
    yield louder
    yield louder.sign(other)
    yield msgspec.structs.replace(signed, signature=None)
    yield msgspec.structs.replace(signed, signature=louder.sign(key).signature)
    yield msgspec.structs.replace(
        signed, signature=msgspec.structs.replace(stolen, public_key=signed.signature.public_key)
    )
    yield msgspec.structs.replace(
        signed, published=msgspec.structs.replace(signed.published, cells=signed.published.cells[::-1])
    )
    yield msgspec.structs.replace(
        signed, guarantee=msgspec.structs.replace(signed.guarantee, statement="Nothing can be learnt.")
    )


def _refused(raw: bytes, public_key: str) -> bool:
    try:
        Release.from_json(raw).verify(public_key)
    except ReleaseError:
        return True
    return False


def _unverified(release: Release, public_key: str) -> bool:
    reread = Release.from_json(release.to_json())
    try:
        reread.verify(public_key)
    except SignatureError:
        return True
    return False

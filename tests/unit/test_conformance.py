"""The conformance vectors are what the library says today, and a careless reader does not pass them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import numpy as np
import pytest
from conformance.__main__ import FOLDER, expected_file, release_file
from conformance.expected import VERSION, expected
from conformance.releases import KINDS

from dpgram.analysis.moments import EncodedNoise, Moments
from dpgram.noise import SymmetricGaussian
from dpgram.release import load

DIGITS = 1e-8


def wanted(kind: str) -> dict[str, object]:
    return json.loads(expected_file(kind).read_text(encoding="utf-8"))


def differences(found: object, stored: object, place: str = "") -> Iterator[str]:
    """Where two answers differ: numbers by more than eight digits of the largest beside them."""
    if isinstance(stored, dict) and isinstance(found, dict):
        if stored.keys() != found.keys():
            yield f"{place}: {sorted(stored.keys() ^ found.keys())}"
            return
        for name in stored:
            yield from differences(found[name], stored[name], f"{place}/{name}")
    elif isinstance(stored, list) and isinstance(found, list | tuple):
        if len(stored) != len(found):
            yield f"{place}: {len(found)} entries"
            return
        numbers = [abs(x) for x in stored if isinstance(x, float)]
        for i, (own, other) in enumerate(zip(found, stored, strict=True)):
            if isinstance(other, float) and isinstance(own, float):
                if abs(own - other) > DIGITS * max(numbers):
                    yield f"{place}/{i}: {own} for {other}"
            else:
                yield from differences(own, other, f"{place}/{i}")
    elif isinstance(stored, float) and isinstance(found, float):
        if abs(found - stored) > DIGITS * abs(stored):
            yield f"{place}: {found} for {stored}"
    elif found != stored:
        yield f"{place}: {found!r} for {stored!r}"


def test_there_is_a_file_of_every_kind_and_no_other() -> None:
    files = {path.name for path in FOLDER.iterdir()}
    assert files == {release_file(kind).name for kind in KINDS} | {expected_file(kind).name for kind in KINDS}
    assert {wanted(kind)["version"] for kind in KINDS} == {VERSION}


@pytest.mark.parametrize("kind", KINDS)
def test_vectors_are_up_to_date(kind: str) -> None:
    found = expected(kind, load(release_file(kind)))
    assert [*differences(json.loads(json.dumps(found)), wanted(kind))] == []


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "through-origin"])
def test_the_raw_matrix_does_not_pass(kind: str) -> None:
    """Denoising skipped: the published cells, moved to encoded units, are not the second moments."""
    raw = load(release_file(kind)).matrix("encoded")
    assert [*differences(raw.tolist(), wanted(kind)["second_moments"])]


@pytest.mark.parametrize("kind", ["plain", "adaptive", "pure", "weighted", "group", "block"])
def test_a_reader_that_ignores_the_noise_does_not_pass(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    release, stored = load(release_file(kind)), wanted(kind)
    known = Moments.of(release)
    nothing = EncodedNoise.of(SymmetricGaussian(sigma=0.0))
    careless = Moments(**{**vars_of(known), "noise": nothing})
    monkeypatch.setattr(Moments, "of", classmethod(lambda cls, source: careless))
    found = json.loads(json.dumps(expected(kind, release)))
    for name in ("std_errors", "low", "high", "fitted"):
        for own, told in zip(found["questions"], stored["questions"], strict=True):
            if told.get("refusal", "") is None:
                assert [*differences(own[name], told[name])], (name, told["on"])


def vars_of(moments: Moments) -> dict[str, object]:
    return {name: getattr(moments, name) for name in moments.__dataclass_fields__}


def test_naive_least_squares_does_not_pass() -> None:
    """Normal equations from the raw matrix, as a program would solve them that knows nothing of noise."""
    release, question = load(release_file("plain")), wanted("plain")["questions"][4]
    raw = release.matrix("original")
    places = [0, *(release.columns.index(name) for name in question["names"][1:])]
    target = release.columns.index("charges")
    naive = np.linalg.solve(raw[np.ix_(places, places)], raw[places, target])
    assert np.abs(naive / np.array(question["estimate"]) - 1.0).max() > 0.01

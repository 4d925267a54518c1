"""The release file: closed, canonical, validated; a hostile file gives ReleaseError and nothing else."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import re
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import publish

from dpgram.canonical_json import canonical_bytes
from dpgram.core.noise import SeededEntropy
from dpgram.errors import AnalysisError, ReleaseError
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release, SigningKey, load
from dpgram.release import json_schema as release_schema
from dpgram.schema import Schema, categorical, numeric

from .releases import RELEASES, SIGMA, content_of, gaussian_release, laplace_release, sealed, set_at, zeros


class TestFile:
    @RELEASES
    def test_round_trip(self, release: Release, tmp_path: Path) -> None:
        path = release.save(tmp_path / "x.dpgram.json")
        again = load(path)
        assert again == release
        assert again.to_json() == release.to_json() == path.read_bytes()
        assert (again.lattice_matrix == release.lattice_matrix).all()

    def test_the_list_of_fields_is_closed(self) -> None:
        """Whatever is added here must be a public fact: nothing but the cells may depend on the data."""
        content = content_of(gaussian_release())
        assert set(content) == {
            "format", "version", "library", "schema", "radius", "lattice_bits", "policy", "adjacency", "unit",
            "public_rows", "mechanism", "noise", "guarantee", "entropy", "matrix", "receipt", "digest",
        }  # fmt: skip
        assert set(content["policy"]) == {"missing", "strict"}
        assert set(content["mechanism"]) == {"name", "parameters", "choice"}
        assert set(content["mechanism"]["parameters"]) == {"sigma"}
        assert set(content["noise"]) == {"type", "sigma"}
        assert set(content["guarantee"]) == {"epsilon", "delta", "numerical_delta", "mu", "rho", "statement"}
        assert set(content["matrix"]) == {"kind", "exponent", "cells"}
        assert set(content["schema"]) == {"columns", "constant"}
        assert set(content["receipt"]) == {
            "ledger_name", "ledger_id", "entry", "receipt_id", "event", "head",
        }  # fmt: skip
        laplace = content_of(laplace_release())
        assert set(laplace["mechanism"]["parameters"]) == {"theta"}
        assert set(laplace["noise"]) == {"type", "theta", "width"}

    @RELEASES
    def test_digest_is_of_the_text_without_the_digest(self, release: Release) -> None:
        """A reader in any language can check it on the raw bytes."""
        raw = release.to_json()
        member = f'"digest":"{release.digest}",'.encode()
        assert raw.count(member) == 1
        assert hashlib.sha256(raw.replace(member, b"").rstrip(b"\n")).hexdigest() == release.digest

    @RELEASES
    def test_json_schema_accepts_the_file(self, release: Release) -> None:
        jsonschema.validate(content_of(release), json.loads(release_schema.FILE.read_text(encoding="utf-8")))

    def test_committed_json_schema_is_the_generated_one(self) -> None:
        fresh = release_schema.FILE.read_text(encoding="utf-8") == release_schema.as_file()
        assert fresh, "write it again: python -m dpgram.release.json_schema"

    @pytest.mark.parametrize("field", sorted(content_of(gaussian_release())))
    def test_json_schema_and_loader_want_every_field(self, field: str) -> None:
        content = content_of(gaussian_release())
        del content[field]
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(content, release_schema.json_schema())
        with pytest.raises(ReleaseError):
            Release.from_json(canonical_bytes(content) if field == "digest" else sealed(content))

    def test_spaces_and_order_do_not_matter(self) -> None:
        release = gaussian_release()
        pretty = json.dumps(content_of(release), indent=3, ensure_ascii=True).encode()
        assert Release.from_json(pretty) == release

    def test_save_replaces_and_leaves_nothing_beside(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        path.write_text("old")
        gaussian_release().save(path, overwrite=True)
        assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
        assert load(path) == gaussian_release()

    @pytest.mark.parametrize(("mask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o027, 0o640)])
    def test_who_may_read_a_file_is_for_the_system_to_say(self, tmp_path: Path, mask: int, mode: int) -> None:
        before = os.umask(mask)
        try:
            path = gaussian_release().save(tmp_path / "x.json")
        finally:
            os.umask(before)
        assert stat.S_IMODE(path.stat().st_mode) == mode

    def test_a_file_left_by_a_killed_process_is_not_in_the_way(self, tmp_path: Path) -> None:
        left = tmp_path / f".x.json.{os.getpid()}-0"
        left.write_text("half")
        path = gaussian_release().save(tmp_path / "x.json")
        assert load(path) == gaussian_release()
        assert left.read_text() == "half"

    def test_save_replaces_nothing_unless_asked(self, tmp_path: Path) -> None:
        path = tmp_path / "x.json"
        path.write_text("old")
        with pytest.raises(ReleaseError, match=r"exists already.*overwrite=True"):
            gaussian_release().save(path)
        assert path.read_text() == "old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]

    @pytest.mark.parametrize(
        "write",
        [
            Release.explore,
            Release.report,
            Release.registry,
            Release.evaluation,
            Release.to_csv,
            Release.to_xport,
            Release.to_stata,
            Release.to_lavaan,
            Release.to_javascript,
        ],
    )
    def test_nothing_else_replaces_a_file_unless_asked(
        self, tmp_path: Path, write: Callable[..., Path]
    ) -> None:
        path = tmp_path / "x"
        path.write_text("old")
        with pytest.raises(ReleaseError, match=r"exists already.*overwrite=True"):
            write(gaussian_release(), path)
        assert path.read_text() == "old"
        written = write(gaussian_release(), path, overwrite=True).read_bytes()
        assert written != b"old"
        assert [entry.name for entry in tmp_path.iterdir()] == ["x"]

    @pytest.mark.parametrize("write", [Release.save, Release.report])
    @pytest.mark.parametrize("overwrite", [False, True])
    def test_a_folder_is_called_one(
        self, tmp_path: Path, write: Callable[..., Path], overwrite: bool
    ) -> None:
        with pytest.raises(ReleaseError, match=r"it is a folder\. Name a file in it"):
            write(gaussian_release(), tmp_path, overwrite=overwrite)

    @pytest.mark.parametrize("name", ["a.ledger", "a.ledger-journal", "a.ledger.unfinished-00-1"])
    def test_nothing_takes_the_place_of_a_ledger(self, tmp_path: Path, name: str) -> None:
        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-6)
        for write in (gaussian_release().save, gaussian_release().explore):
            with pytest.raises(ReleaseError, match=r"ledger.*Choose another name"):
                write(tmp_path / name, overwrite=True)
        assert ledger.history() == ()
        assert [entry.name for entry in tmp_path.iterdir()] == ["a.ledger"]

    def test_a_look_at_a_ledger_leaves_its_locks(self, tmp_path: Path) -> None:
        """Closing a file drops all locks that the process has on it, unless SQLite closes it."""
        ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-6)
        holder = sqlite3.connect(ledger.path, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        with pytest.raises(ReleaseError, match="is a ledger"):
            gaussian_release().save(ledger.path, overwrite=True)
        program = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('BEGIN IMMEDIATE')"
        asked = [sys.executable, "-c", program, str(ledger.path)]
        assert "locked" in subprocess.run(asked, capture_output=True, text=True, check=False).stderr
        holder.close()
        assert subprocess.run(asked, capture_output=True, text=True, check=False).stderr == ""

    @pytest.mark.parametrize("links", [True, False])
    def test_the_same_release_may_be_saved_again(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool
    ) -> None:
        def without(*_: object) -> None:
            raise OSError(95, "Operation not supported")

        if not links:
            monkeypatch.setattr(os, "link", without)
        for _ in range(2):
            gaussian_release().save(tmp_path / "x.json")
        assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
        with pytest.raises(ReleaseError, match="exists already"):
            gaussian_release().described(title="another").save(tmp_path / "x.json")
        assert load(tmp_path / "x.json") == gaussian_release()

    def test_failed_save_keeps_the_old_file(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = tmp_path / "x.json"
        path.write_text("old")

        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(ReleaseError, match="No space left"):
            gaussian_release().save(path, overwrite=True)
        assert [entry.name for entry in tmp_path.iterdir()] == ["x.json"]
        assert path.read_text() == "old"

    def test_save_and_load_name_the_path(self, tmp_path: Path) -> None:
        with pytest.raises(ReleaseError, match="nowhere"):
            gaussian_release().save(tmp_path / "nowhere" / "x.json")
        with pytest.raises(ReleaseError, match=r"absent\.json"):
            load(tmp_path / "absent.json")
        with pytest.raises(ReleaseError):
            load(tmp_path)

    def test_too_large_a_file_is_not_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        path = gaussian_release().save(tmp_path / "x.json")
        monkeypatch.setattr("dpgram.release.release.LARGEST_FILE", path.stat().st_size - 1)
        with pytest.raises(ReleaseError, match="more than"):
            load(path)

    def test_unicode_names_survive(self) -> None:
        declared = Schema(numeric("größe ✓ \u2028", 0, 1), categorical('a"b<script>', ["é", "\t"]))
        release = gaussian_release(schema=declared, published=zeros(declared.width))
        assert Release.from_json(release.to_json()) == release


def rejected(raw: bytes) -> str:
    with pytest.raises(ReleaseError) as caught:
        Release.from_json(raw)
    assert len(str(caught.value)) < 800
    return str(caught.value)


class TestHostileFiles:
    """Only ReleaseError may come out, whatever is in the file."""

    @pytest.mark.parametrize(
        ("path", "value"),
        [
            ("version", 2), ("version", 0), ("version", True), ("version", 10**400), ("version", "1"),
            ("format", "pickle"), ("format", None), ("format", ["dpgram-release"]),
            ("library", 1), ("library", "x" * 65),
            ("lattice_bits", 16), ("lattice_bits", 15.0),
            ("radius", 0), ("radius", -1.0), ("radius", 1e60), ("radius", "1"), ("radius", 10**400),
            ("adjacency", "add"), ("adjacency", None), ("unit", 3), ("unit", "x" * 1001),
            ("public_rows", 400), ("public_rows", -1), ("public_rows", 1.5), ("public_rows", 2**60),
            ("policy.missing", "guess"), ("policy.strict", 0), ("policy.strict", None), ("policy.extra", 1),
            ("mechanism.name", "matrix-laplace"), ("mechanism.name", "os.system"), ("mechanism.name", None),
            ("mechanism.parameters", {}), ("mechanism.parameters", []), ("mechanism.parameters.sigma", "1"),
            ("mechanism.parameters.sigma", SIGMA / 2),
            ("mechanism.parameters.sigma", -SIGMA), ("mechanism.parameters.theta", 1.0),
            ("mechanism.choice", None), ("mechanism.choice", "x" * 5000),
            ("noise.sigma", SIGMA / 2), ("noise.sigma", None), ("noise.type", "none"), ("noise.width", 3),
            ("guarantee.epsilon", 0), ("guarantee.epsilon", -1), ("guarantee.delta", 1),
            ("guarantee.delta", -1e-9), ("guarantee.delta", 0), ("guarantee.mu", None), ("guarantee.mu", 0.1),
            ("guarantee.mu", 0),
            ("guarantee.rho", -1), ("guarantee.numerical_delta", 1), ("guarantee.statement", None),
            ("entropy", "none"), ("entropy", None),
            ("matrix.kind", "inverse"), ("matrix.kind", "exec"), ("matrix.exponent", 1),
            ("matrix.exponent", 10**9), ("matrix.cells", []), ("matrix.cells", "123"), ("matrix.cells.0", 5),
            ("matrix.cells.0", "+5"), ("matrix.cells.0", "05"), ("matrix.cells.0", "-0"),
            ("matrix.cells.0", "1e3"), ("matrix.cells.0", " 5"), ("matrix.cells.0", "5\n"),
            ("matrix.cells.0", "٣"), ("matrix.cells.0", "1_0"), ("matrix.cells.0", "5.0"),
            ("matrix.cells.0", ""), ("matrix.cells.0", "nan"), ("matrix.cells.0", "9" * 61),
            ("matrix.cells.0", "9" * 100_000), ("matrix.cells.0", None),
            ("schema", []), ("schema", {}), ("schema.columns", []), ("schema.columns", {"a": 1}),
            ("schema.columns.0", "age"), ("schema.columns.0.kind", "eval"), ("schema.columns.0.low", None),
            ("schema.columns.0.low", "x"), ("schema.columns.0.low", 1e300), ("schema.columns.0.weight", [1]),
            ("schema.columns.0.weight", 1e9), ("schema.columns.0.name", "charges"),
            ("schema.columns.0.name", 7), ("schema.columns.0.name", ""), ("schema.columns.0.name", "\ud800"),
            ("schema.columns.0.extra", 1),
            ("schema.columns.1.levels", "no"), ("schema.columns.1.levels", [1.5]),
            ("schema.columns.1.levels", ["no", "no"]), ("schema.columns.1.levels", [[]]),
            ("schema.columns.5.degree", 10**9), ("schema.columns.5.degree", "2"), ("schema.constant", 1),
            ("schema.extra", 1), ("receipt", []), ("receipt.event", {"event": "gaussian/2", "mu": 1.0}),
            ("receipt.event.mu", -1.0), ("receipt.event.mu", 10**400), ("receipt.entry", "1"),
            ("receipt.entry", 0), ("receipt.entry", 2**60), ("receipt.head", "2" * 63), ("receipt.head", "Z"),
            ("receipt.head", "Z" * 64),
            ("receipt.ledger_id", ""), ("receipt.receipt_id", "1\n"), ("receipt.ledger_name", "x" * 1001),
            ("receipt.extra", 1), ("extra", 1),
        ],
    )  # fmt: skip
    def test_edited_fields_even_with_a_matching_digest(self, path: str, value: object) -> None:
        content = set_at(content_of(gaussian_release()), path, value)
        try:
            raw = sealed(content)
        except UnicodeEncodeError:
            raw = json.dumps(content).encode()
        rejected(raw)

    @pytest.mark.parametrize(
        "raw",
        [
            b"", b" ", b"null", b"[]", b"{}", b"\xff\xfe", b"\x80", b"\x00" * 10, b"{", b'{"format"', b"NaN",
            b"[" * 200_000, b'{"a":' * 200_000, b"9" * 100_000, b"-Infinity", b'"\\ud800"',
            b"\x80\x04\x95\x1f\x00\x00\x00\x00\x00\x00\x00\x8c\x05posix\x94.",
        ],
    )  # fmt: skip
    def test_what_is_no_release(self, raw: bytes) -> None:
        rejected(raw)

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            (lambda raw: b"", "the file is empty"),
            (lambda raw: b" \n", "the file is empty"),
            (lambda raw: b"age,bmi\n31,27.5\n", "this is not a release; limit: a JSON object"),
            (lambda raw: b"PAR1\x15\x04\xff", "this is not a release; limit: a JSON object"),
            (lambda raw: b"\xef\xbb\xbf" + raw, "byte-order mark"),
            (gzip.compress, "the file is packed (gzip). Unpack it first"),
            (lambda raw: raw[: len(raw) // 2], "cut short"),
            (lambda raw: raw.replace(b":", b"=", 1), "a mistake in line 1, at character 13"),
            (lambda raw: raw.replace(b"add-remove", b"add\xe9remove", 1), "byte 18 is not UTF-8"),
        ],
    )
    def test_what_is_wrong_is_said_in_plain_words(
        self, change: Callable[[bytes], bytes], words: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "people.dpgram.json"
        path.write_bytes(change(gaussian_release().to_json()))
        with pytest.raises(ReleaseError) as told:
            load(path)
        assert str(told.value).startswith(f"{path}: ")
        assert words in str(told.value)
        assert not re.search("codec|utf-8-sig|Expecting|Unterminated|char [0-9]", str(told.value))

    @pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "1" * 5000])
    def test_numbers_that_are_none(self, number: str) -> None:
        raw = gaussian_release().to_json().replace(b'"radius":', f'"radius":{number},"was":'.encode())
        assert "clean JSON" in rejected(raw)

    def test_repeated_key(self) -> None:
        raw = gaussian_release().to_json()
        assert "twice" in rejected(raw.replace(b'{"adjacency"', b'{"adjacency":"replace-one","adjacency"'))
        assert "twice" in rejected(
            raw.replace(b'{"epsilon"', b'{"epsilon":9,"epsilon"', 1).replace(
                b'{"delta"', b'{"delta":0.5,"delta"', 1
            )
        )

    @pytest.mark.parametrize("digest", ["", "0" * 64, None, 5, ["x"]])
    def test_wrong_digest(self, digest: object) -> None:
        assert "digest" in rejected(canonical_bytes(content_of(gaussian_release()) | {"digest": digest}))

    def test_one_changed_cell_is_noticed(self) -> None:
        release = gaussian_release()
        cell = release.published.cells[3]
        raw = release.to_json().replace(f'"{cell}"'.encode(), f'"{int(cell) + 1}"'.encode())
        assert "digest" in rejected(raw)

    def test_deeply_nested_inside(self) -> None:
        raw = gaussian_release().to_json().replace(b'"unit":null', b'"unit":' + b"[" * 50_000 + b"]" * 50_000)
        rejected(raw)

    def test_every_truncation(self) -> None:
        raw = gaussian_release().to_json()
        for end in range(0, len(raw) - 2, 7):
            rejected(raw[:end])

    @settings(max_examples=400, deadline=None)
    @given(data=st.data())
    def test_mutated_bytes_never_load_as_something_else(self, data: st.DataObject) -> None:
        release = gaussian_release()
        raw = bytearray(release.to_json())
        for _ in range(data.draw(st.integers(1, 3))):
            at = data.draw(st.integers(0, len(raw) - 1))
            match data.draw(st.sampled_from(["set", "delete", "insert"])):
                case "set":
                    raw[at] = data.draw(st.integers(0, 255))
                case "delete":
                    del raw[at]
                case _:
                    raw.insert(at, data.draw(st.integers(0, 255)))
        try:
            loaded = Release.from_json(bytes(raw))
        except ReleaseError:
            return
        assert loaded == release

    @settings(max_examples=300, deadline=None)
    @given(data=st.data())
    def test_random_values_in_random_places_of_a_well_sealed_file(self, data: st.DataObject) -> None:
        """Past the digest too: either refused by name, or a release that saves and prints."""
        content = content_of(gaussian_release())
        paths = list(_paths(content))
        path = data.draw(st.sampled_from(paths))
        value = data.draw(_JSON)
        try:
            release = Release.from_json(sealed(set_at(content, path, value)))
        except (ReleaseError, UnicodeEncodeError):
            return
        assert Release.from_json(release.to_json()) == release
        str(release)
        release._repr_html_()
        for view in (
            release.mean,
            release.covariance,
            release.correlation,
            lambda: release.matrix("original"),
        ):
            with contextlib.suppress(AnalysisError):
                view()

    @settings(max_examples=200, deadline=None)
    @given(raw=st.binary(max_size=200))
    def test_random_bytes(self, raw: bytes) -> None:
        rejected(raw)


_JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "0", "-1", "gaussian", "gram", "1970-01-01", "add-remove", "replace-one"])
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


def _paths(value: object, prefix: str = "") -> Any:
    if isinstance(value, dict):
        for key, inner in value.items():
            yield f"{prefix}{key}"
            yield from _paths(inner, f"{prefix}{key}.")
    elif isinstance(value, list):
        for index, inner in enumerate(value[:3]):
            yield f"{prefix}{index}"
            yield from _paths(inner, f"{prefix}{index}.")


VECTORS = Path(__file__).resolve().parents[2] / "conformance" / "vectors"
LEVELS = Schema(categorical("smoker"), numeric("age", 18, 90))


class TestJointPromise:
    """What all blocks promise together is held against the noise of the block whose file it is."""

    @pytest.mark.parametrize(
        "changes",
        [
            {"mu": 1e-6, "rho": 1e-12},
            {"mu": None},
            {"mu": None, "rho": None},
            {"rho": None},
            {"mu": 0.99},  # of its own μ
            {"rho": 0.99},  # of what follows from its own μ
            {"epsilon": 0.99},  # of what its own μ promises, with the same δ
            {"delta": 0.5},
        ],
        ids=str,
    )
    def test_a_promise_that_its_own_noise_breaks_is_refused(self, changes: dict[str, float | None]) -> None:
        content = json.loads((VECTORS / "block.dpgram.json").read_bytes())
        own, joint = content["guarantee"], content["block"]["joint"]
        absolute = "mu" in changes and "rho" in changes
        joint |= {
            name: share if absolute or share is None else own[name] * share for name, share in changes.items()
        }
        assert "contradict" in rejected(sealed(content))

    def test_its_numbers_agree_with_one_another(self) -> None:
        """None of them is below that of the block alone, but ε and δ lie below the curve of μ."""
        content = json.loads((VECTORS / "block.dpgram.json").read_bytes())
        own, joint = content["guarantee"], content["block"]["joint"]
        for forged in ({"epsilon": own["epsilon"]}, {"rho": own["rho"]}, {"mu": 2 * joint["mu"]}):
            told = content | {"block": content["block"] | {"joint": joint | forged}}
            assert "contradict" in rejected(sealed(told)), forged

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"delta": 0.0},
            {"adaptive": True},
            {"adaptive": True, "delta": 0.0},
            {"adaptive": True, "schema": LEVELS, "epsilon": 9.0},
            {"adaptive": True, "schema": LEVELS, "epsilon": 9.0, "mechanism": "matrix-laplace"},
        ],
        ids=str,
    )
    def test_honest_blocks_of_every_kind_load(self, options: dict[str, Any]) -> None:
        table = {"age": [40.0, 50.0] * 200, "smoker": ["no", "yes", "yes", "no"] * 100}
        known = Schema(categorical("smoker", ["no", "yes"]), numeric("age", 18, 90))
        terms = {"schema": known, "epsilon": 1.0, "delta": 1e-6} | options
        blocks = publish(
            table, **terms, blocks=[["age"], ["smoker"]], entropy=SeededEntropy(1), progress=False
        )
        assert len(blocks) == 2
        for one in blocks:
            assert Release.from_json(one.to_json()) == one
            assert one.block is not None
            if one.guarantee.delta == 0.0:
                forged = set_at(content_of(one), "block.joint.mu", 1e-6)
                assert "contradict" in rejected(sealed(forged))

    @pytest.mark.parametrize("field", ["mu", "rho"])
    @pytest.mark.parametrize("kind", ["pure", "entrywise"])
    def test_pure_noise_states_no_other_currency(self, kind: str, field: str) -> None:
        content = json.loads((VECTORS / f"{kind}.dpgram.json").read_bytes())
        assert "contradict" in rejected(sealed(set_at(content, f"guarantee.{field}", 1e-6)))


class TestAbout:
    WORDS: ClassVar = {
        "title": "Insured people",
        "description": "A sample.",
        "contact": "a@b.c",
        "licence": "CC0",
    }

    def test_words_are_part_of_the_file_and_its_digest(self, tmp_path: Path) -> None:
        plain, told = gaussian_release(), gaussian_release().described(**self.WORDS)
        assert told.digest != plain.digest
        assert load(told.save(tmp_path / "x.json")) == told
        assert json.loads(told.to_json())["about"] == self.WORDS
        assert "Insured people" in str(told)

    def test_nothing_said_leaves_the_file_as_it_was(self) -> None:
        assert gaussian_release().described().to_json() == gaussian_release().to_json()
        assert gaussian_release().described(**self.WORDS).described() == gaussian_release()

    def test_a_description_takes_the_signature_off(self, tmp_path: Path) -> None:
        signed = gaussian_release().sign(SigningKey.create(tmp_path / "key"))
        assert signed.described(title="x").signature is None

    @pytest.mark.parametrize("words", [{"title": 3}, {"title": "x" * 401}, {"description": None}])
    def test_words_are_words(self, words: dict[str, object]) -> None:
        with pytest.raises(ReleaseError, match="described in words"):
            gaussian_release().described(**words)

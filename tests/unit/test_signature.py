"""Signed releases: whatever is changed is found out, by the right key only, and no error shows a key."""

from __future__ import annotations

import copy
import json
import os
import pickle
import stat
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

import jsonschema
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram import cli
from dpgram.document.document import OPTIONAL_FIELDS
from dpgram.document.signature import Signature, signed_bytes
from dpgram.errors import MissingExtra, ReleaseError, SignatureError
from dpgram.privacy.ledger import Ledger
from dpgram.release import Release, load
from dpgram.release import json_schema as release_schema

pytest.importorskip("cryptography", reason="the extra 'sign' is not installed")

from dpgram.release.signing import SigningKey

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "insurance-gaussian-v1.dpgram.json"


@pytest.fixture(scope="module")
def keyfile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("keys") / "curator.key"
    SigningKey.create(path)
    return path


@pytest.fixture(scope="module")
def key(keyfile: Path) -> SigningKey:
    return SigningKey.open(keyfile)


@pytest.fixture(scope="module")
def signed(key: SigningKey) -> Release:
    return load(GOLDEN).sign(key)


@pytest.fixture(scope="module")
def other(tmp_path_factory: pytest.TempPathFactory) -> SigningKey:
    return SigningKey.create(tmp_path_factory.mktemp("keys") / "other.key")


def reloaded(raw: bytes, public_key: str) -> Release:
    """What `load` makes of these bytes."""
    release = Release.from_json(raw)
    release.verify(public_key)
    return release


class TestSigning:
    def test_round_trip(self, signed: Release, key: SigningKey, tmp_path: Path) -> None:
        path = signed.save(tmp_path / "signed.json")
        read = load(path, public_key=key.public)
        assert read == signed
        assert read.save(tmp_path / "again.json").read_bytes() == path.read_bytes()
        jsonschema.validate(json.loads(path.read_bytes()), release_schema.json_schema())

    def test_signing_leaves_the_release_and_its_digest_alone(self, signed: Release) -> None:
        plain = load(GOLDEN)
        assert signed.digest == plain.digest
        assert msgspec.structs.replace(signed, signature=None) == plain
        assert msgspec.structs.replace(signed, signature=None).to_json() == GOLDEN.read_bytes()

    def test_formatting_a_file_anew_leaves_the_signature_valid(
        self, signed: Release, key: SigningKey
    ) -> None:
        spaced = json.dumps(json.loads(signed.to_json()), indent=2).encode()
        assert reloaded(spaced, key.public) == signed

    def test_without_a_key_it_loads_and_says_so(self, signed: Release, tmp_path: Path) -> None:
        path = signed.save(tmp_path / "signed.json")
        assert "signed but not verified" in str(load(path))
        assert "signature" not in str(load(GOLDEN))

    def test_pages_say_so_too(self, signed: Release) -> None:
        from dpgram.explorer.facts import page_facts
        from dpgram.release.report import page

        for shown in (signed._repr_html_(), page(signed, None), str(page_facts(signed)["facts"])):
            assert "signed but not verified" in shown

    def test_a_second_signature_replaces_the_first(
        self, signed: Release, key: SigningKey, other: SigningKey
    ) -> None:
        again = signed.sign(other)
        again.verify(other.public)
        with pytest.raises(SignatureError, match="another key"):
            again.verify(key.public)
        assert again.sign(key) == signed  # Ed25519 draws nothing: one key, one content, one signature

    def test_known_answer(self, key: SigningKey, signed: Release) -> None:
        """The form that is documented: a first line, then the canonical file without digest and signature."""
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

        content = {
            name: value
            for name, value in json.loads(signed.to_json()).items()
            if name not in ("digest", "signature")
        }
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        assert signed.signature is not None
        Ed25519PublicKey.from_public_bytes(bytes.fromhex(key.public)).verify(
            bytes.fromhex(signed.signature.value), b"dpgram-release signature 1\n" + text.encode()
        )


class TestRefusals:
    def test_unsigned(self, key: SigningKey) -> None:
        with pytest.raises(SignatureError, match="is not signed"):
            load(GOLDEN, public_key=key.public)

    def test_wrong_key(self, signed: Release, key: SigningKey, other: SigningKey, tmp_path: Path) -> None:
        path = signed.save(tmp_path / "signed.json")
        with pytest.raises(SignatureError, match="another key") as caught:
            load(path, public_key=other.public)
        assert key.public in str(caught.value)
        assert other.public in str(caught.value)

    def test_a_forger_who_names_the_key_of_another(
        self, signed: Release, key: SigningKey, other: SigningKey
    ) -> None:
        forged = signed.sign(other).signature
        assert forged is not None
        named = msgspec.structs.replace(forged, public_key=key.public)
        with pytest.raises(SignatureError, match="altered"):
            msgspec.structs.replace(signed, signature=named).verify(key.public)

    def test_the_signature_of_another_release(self, signed: Release, key: SigningKey) -> None:
        louder = msgspec.structs.replace(load(GOLDEN), library="0.1.1").sign(key)
        with pytest.raises(SignatureError, match="altered"):
            msgspec.structs.replace(signed, signature=louder.signature).verify(key.public)

    def test_a_signature_without_the_first_line_is_none(self, signed: Release, key: SigningKey) -> None:
        """Bytes signed for another purpose are not a signed release, even if they are a release's."""
        content = signed_bytes(signed._content()).split(b"\n", 1)[1]
        assert signed.signature is not None
        naked = msgspec.structs.replace(signed.signature, value=key.sign(content).hex())
        with pytest.raises(SignatureError, match="altered"):
            msgspec.structs.replace(signed, signature=naked).verify(key.public)

    @pytest.mark.parametrize(
        "text", ["", "12", "g" * 64, "0" * 63, "0" * 65, "-----BEGIN PRIVATE KEY-----", "é" * 64]
    )
    def test_what_is_no_public_key_is_refused_and_not_repeated(self, text: str) -> None:
        with pytest.raises(SignatureError, match="not a public key") as caught:
            load(GOLDEN, public_key=text)
        assert not text or text not in str(caught.value)

    def test_a_public_key_may_be_in_capitals_and_spaced(self, signed: Release, key: SigningKey) -> None:
        signed.verify(f"  {key.public.upper()}\n")

    def test_the_extra_is_named(self, signed: Release, key: SigningKey, monkeypatch: Any) -> None:
        monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
        with pytest.raises(MissingExtra, match=r"dpgram\[sign\]"):
            signed.verify(key.public)


def leaves(value: object, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The place of every number, text, truth value and null in a JSON document."""
    if isinstance(value, dict):
        return [place for name in value for place in leaves(value[name], (*path, name))]
    if isinstance(value, list):
        return [place for i, inner in enumerate(value) for place in leaves(inner, (*path, i))]
    return [path]


def changed(value: object, salt: int) -> object:
    """Another value of the same kind."""
    match value:
        case bool():
            return not value
        case int():
            return value + 1 + salt
        case float():
            return value * (1 + 2.0**-40) + (1e-9 if value == 0 else 0)
        case str() if value.lstrip("-").isdigit() and len(value) < 60:
            return str(int(value) + 1 + salt)
        case str() if value:
            place = salt % len(value)
            return value[:place] + ("0" if value[place] != "0" else "1") + value[place + 1 :]
        case str():
            return "0"
        case _:
            return 0


DOCUMENT = json.loads(GOLDEN.read_bytes())


class TestTampering:
    """A forger may also compute a new digest, so the digest is left to the forger's best effort."""

    @pytest.mark.parametrize("salt", [0, 7])
    def test_every_field(self, signed: Release, key: SigningKey, salt: int) -> None:
        document = json.loads(signed.to_json())
        places = leaves(document)
        assert len(places) > 150
        for place in places:
            altered = copy.deepcopy(document)
            inner = altered
            for step in place[:-1]:
                inner = inner[step]
            inner[place[-1]] = changed(inner[place[-1]], salt)
            assert altered != document
            with pytest.raises(ReleaseError):
                reloaded(with_new_digest(altered), key.public)

    @pytest.mark.parametrize("name", sorted(DOCUMENT))
    def test_every_field_left_out(self, signed: Release, key: SigningKey, name: str) -> None:
        document = json.loads(signed.to_json())
        del document[name]
        with pytest.raises(ReleaseError):
            reloaded(json.dumps(document).encode(), key.public)

    @pytest.mark.parametrize("name", sorted(OPTIONAL_FIELDS - {"signature"}))
    def test_every_optional_field_put_in(self, signed: Release, key: SigningKey, name: str) -> None:
        offers: dict[str, object] = {
            "unit_rule": {"counts": "units", "rows_at_most": 1},
            "group": {"column": "smoker", "level": "yes"},
            "block": {"number": 1, "of": 1, "joint": DOCUMENT["guarantee"]},
            "survey_weight": {"column": "age", "at_most": 2.0},
            "learnt": {},
            "measurements": [],
            # Turned by nothing at all: the same columns in the same units.
            "coordinates": {"shift": 0, "cells": [int(i == j) for i in range(15) for j in range(i + 1)]},
            "first_receipt": DOCUMENT["receipt"],
            "about": {"title": "another"},
            "series": {
                "series": "0" * 32,
                "periods": 1,
                "bits": 6,
                "participations": 1,
                "apart": 1,
                "first": 1,
                "last": 1,
                "labels": ["2026-01", "2026-01"],
            },
        }
        altered = json.loads(signed.to_json()) | {name: offers[name]}
        with pytest.raises(ReleaseError):
            reloaded(with_new_digest(altered), key.public)

    def test_a_valid_release_of_other_content_is_refused_by_the_signature_itself(
        self, signed: Release, key: SigningKey
    ) -> None:
        """Changes that every other check lets pass: only the signature tells."""
        quieter = [
            msgspec.structs.replace(signed, library="0.1.1"),
            msgspec.structs.replace(
                signed, published=msgspec.structs.replace(signed.published, cells=("1",) * 120)
            ),
            msgspec.structs.replace(
                signed, guarantee=msgspec.structs.replace(signed.guarantee, statement="Trust me.")
            ),
            msgspec.structs.replace(signed, receipt=None),
        ]
        for release in quieter:
            assert Release.from_json(release.to_json()) == release
            with pytest.raises(SignatureError, match="altered"):
                reloaded(release.to_json(), key.public)

    @settings(max_examples=300, deadline=None, derandomize=True)
    @given(data=st.data())
    def test_every_byte(self, signed: Release, key: SigningKey, data: st.DataObject) -> None:
        """Refused, or the very same release: a file is read by value, so another line end is no change."""
        raw = bytearray(signed.to_json())
        for _ in range(data.draw(st.integers(1, 3))):
            place = data.draw(st.integers(0, len(raw) - 1))
            raw[place] ^= data.draw(st.integers(1, 255))
        assert same_or_refused(bytes(raw), signed, key.public)

    @pytest.mark.full
    def test_every_single_byte(self, signed: Release, key: SigningKey) -> None:
        raw = signed.to_json()
        for place in range(len(raw)):
            for flip in (1, 2, 16, 32, 128):
                altered = raw[:place] + bytes([raw[place] ^ flip]) + raw[place + 1 :]
                assert same_or_refused(altered, signed, key.public), (place, flip)

    @pytest.mark.parametrize("ending", ["\n", " ", "00", "\u0000"])
    @pytest.mark.parametrize("name", ["public_key", "value"])
    def test_nothing_hangs_on_to_the_signature(
        self, signed: Release, key: SigningKey, name: str, ending: str
    ) -> None:
        document = json.loads(signed.to_json())
        document["signature"][name] += ending
        with pytest.raises(ReleaseError):
            reloaded(json.dumps(document).encode(), key.public)

    def test_the_scheme_is_named(self, signed: Release, key: SigningKey) -> None:
        for scheme in ("dpgram-ed25519-2", "none", None):
            document = json.loads(signed.to_json())
            document["signature"]["scheme"] = scheme
            with pytest.raises(ReleaseError):
                reloaded(json.dumps(document).encode(), key.public)
        del document["signature"]["scheme"]
        with pytest.raises(ReleaseError):
            reloaded(json.dumps(document).encode(), key.public)


def with_new_digest(document: dict[str, Any]) -> bytes:
    """As a forger would write it: with the digest of the new content, where there is one."""
    from dpgram.canonical_json import sha256_hex

    content = {name: value for name, value in document.items() if name not in ("digest", "signature")}
    digest = document["digest"] if document["digest"] != DOCUMENT["digest"] else sha256_hex(content)
    return json.dumps({**document, "digest": digest}).encode()


def same_or_refused(raw: bytes, signed: Release, public_key: str) -> bool:
    try:
        return reloaded(raw, public_key).to_json() == signed.to_json()
    except ReleaseError:
        return True


class TestKeyFile:
    def test_only_the_owner_may_read_it(self, keyfile: Path) -> None:
        assert stat.S_IMODE(keyfile.stat().st_mode) == 0o600

    def test_even_under_a_lax_umask(self, tmp_path: Path) -> None:
        before = os.umask(0)
        try:
            SigningKey.create(tmp_path / "k")
        finally:
            os.umask(before)
        assert stat.S_IMODE((tmp_path / "k").stat().st_mode) == 0o600

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o601])
    def test_a_file_that_others_may_use_is_refused(self, keyfile: Path, tmp_path: Path, mode: int) -> None:
        lax = tmp_path / "lax.key"
        lax.write_bytes(keyfile.read_bytes())
        lax.chmod(mode)
        with pytest.raises(SignatureError, match=f"{mode:04o}.*chmod 600"):
            SigningKey.open(lax)

    def test_it_never_replaces_a_file(self, keyfile: Path) -> None:
        before = keyfile.read_bytes()
        with pytest.raises(SignatureError, match="never replaced"):
            SigningKey.create(keyfile)
        assert keyfile.read_bytes() == before

    def test_two_keys_differ(self, key: SigningKey, other: SigningKey) -> None:
        assert key.public != other.public

    def test_nothing_is_left_when_writing_fails(self, tmp_path: Path, monkeypatch: Any) -> None:
        def full(_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(SignatureError, match="No space left"):
            SigningKey.create(tmp_path / "k")
        assert list(tmp_path.iterdir()) == []

    def test_missing_and_unwritable_places(self, tmp_path: Path) -> None:
        with pytest.raises(SignatureError, match="cannot be read"):
            SigningKey.open(tmp_path / "none.key")
        with pytest.raises(SignatureError, match="cannot be written"):
            SigningKey.create(tmp_path / "no folder" / "k")

    def test_no_error_shows_the_key(self, keyfile: Path, tmp_path: Path) -> None:
        """Damaged in every line, locked, cut short, of another kind: one message, none of the content."""
        from cryptography.hazmat.primitives import serialization as form
        from cryptography.hazmat.primitives.asymmetric import ec, ed25519

        pem = keyfile.read_bytes()
        body = pem.splitlines()[1]
        variants = [
            pem.replace(body, body[:-8]),
            pem.replace(body, body[::-1]),
            body,
            b"",
            pem[: len(pem) // 2],
            ec.generate_private_key(ec.SECP256R1()).private_bytes(
                form.Encoding.PEM, form.PrivateFormat.PKCS8, form.NoEncryption()
            ),
            ed25519.Ed25519PrivateKey.generate().private_bytes(
                form.Encoding.PEM, form.PrivateFormat.PKCS8, form.BestAvailableEncryption(b"secret words")
            ),
        ]
        for number, content in enumerate(variants):
            path = tmp_path / f"{number}.key"
            path.write_bytes(content)
            path.chmod(0o600)
            with pytest.raises(SignatureError, match="does not hold a signing key") as caught:
                SigningKey.open(path)
            told = "".join(traceback.format_exception(caught.value))
            assert body.decode()[:16] not in told
            assert caught.value.__cause__ is None
            assert caught.value.__context__ is None

    def test_neither_repr_nor_pickle_shows_it(self, key: SigningKey, keyfile: Path) -> None:
        body = keyfile.read_text().splitlines()[1]
        assert repr(key) == f"<SigningKey: public {key.public}>"
        assert body not in repr(key)
        for copied in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match="not pickled"):
                copied(key)

    def test_other_tools_agree_on_the_public_key(self, key: SigningKey, keyfile: Path) -> None:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key

        read = load_pem_private_key(keyfile.read_bytes(), password=None)
        assert read.public_key().public_bytes_raw().hex() == key.public


class TestCommands:
    def run(self, capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
        code = cli.run([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    def test_from_key_to_verification(self, capsys: Any, tmp_path: Path) -> None:
        keyfile, copied = tmp_path / "k", tmp_path / "r.json"
        copied.write_bytes(GOLDEN.read_bytes())
        code, public, _ = self.run(capsys, "key", "new", keyfile)
        assert code == 0
        assert self.run(capsys, "key", "show", keyfile)[1] == public
        assert self.run(capsys, "key", "new", keyfile)[0] == 2
        assert self.run(capsys, "verify", copied, "--public-key", public.strip())[0] == 2
        assert self.run(capsys, "sign", copied, "--key", keyfile)[0] == 0
        (tmp_path / "curator.pub").write_text(public)
        for given_key in (public.strip(), tmp_path / "curator.pub"):
            assert self.run(capsys, "verify", copied, "--public-key", given_key)[0] == 0
            assert "verified: Ed25519" in self.run(capsys, "show", copied, "--public-key", given_key)[1]
        code, out, _ = self.run(capsys, "show", copied, "--json")
        assert json.loads(out)["signed_by"] == public.strip()
        assert json.loads(out)["verified"] is False
        assert "not verified" in self.run(capsys, "show", copied)[1]

    def test_a_private_key_given_as_public_is_not_printed(
        self, capsys: Any, keyfile: Path, signed: Release, tmp_path: Path
    ) -> None:
        path = signed.save(tmp_path / "r.json")
        code, out, err = self.run(capsys, "verify", path, "--public-key", keyfile)
        assert code == 2
        assert keyfile.read_text().splitlines()[1] not in out + err

    def test_another_output(self, capsys: Any, keyfile: Path, key: SigningKey, tmp_path: Path) -> None:
        output = tmp_path / "signed.json"
        code, out, _ = self.run(capsys, "sign", GOLDEN, "--key", keyfile, "-o", output, "--json")
        assert code == 0
        assert json.loads(out)["public_key"] == key.public
        load(output, public_key=key.public)
        assert self.run(capsys, "sign", GOLDEN, "--key", keyfile, "-o", output)[0] == 2

    def test_publish_signs_every_file_and_refuses_a_bad_key_before_the_charge(
        self, capsys: Any, keyfile: Path, key: SigningKey, tmp_path: Path
    ) -> None:
        table, schema, book = tmp_path / "t.csv", tmp_path / "t.toml", tmp_path / "t.ledger"
        table.write_text("x,y\n1,2\n3,4\n")
        schema.write_text(
            "\n".join(
                f'[[columns]]\nname = "{name}"\nkind = "numeric"\nlow = 0\nhigh = 9' for name in ("x", "y")
            )
        )
        ledger = Ledger.create(book, name="t", epsilon=3.0, delta=1e-5)
        asked = ("publish", table, "-s", schema, "--epsilon", 1, "--delta", 1e-6, "-l", book)
        lax = tmp_path / "lax.key"
        lax.write_bytes(keyfile.read_bytes())
        lax.chmod(0o644)
        code, _, err = self.run(capsys, *asked, "--sign", lax, "-o", tmp_path / "a.json")
        assert (code, len(ledger.history())) == (2, 0), err
        code, _, err = self.run(
            capsys, *asked, "--sign", keyfile, "--blocks", "x;y", "-o", tmp_path / "a.json"
        )
        assert code == 0, err
        for number in (1, 2):
            load(tmp_path / f"a.block-{number}.json", public_key=key.public)


def test_reading_a_signed_release_needs_no_cryptography(signed: Release, tmp_path: Path) -> None:
    path = signed.save(tmp_path / "signed.json")
    program = (
        f"import sys; sys.modules['cryptography'] = None; import dpgram; print(dpgram.load({str(path)!r}))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "signed but not verified" in done.stdout


def test_the_form_of_a_signature_is_checked() -> None:
    good = {"scheme": "dpgram-ed25519-1", "public_key": "0" * 64, "value": "0" * 128}
    assert msgspec.convert(good, Signature).public_key == "0" * 64
    for wrong in ({"value": "0" * 127}, {"public_key": "A" * 64}, {"extra": 1}):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert(good | wrong, Signature)

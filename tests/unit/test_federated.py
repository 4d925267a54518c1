"""Partial sums of several sites: the same integers as one table, and everything that must be refused."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import partial as partial_gram
from tests.flat import publish

from dpgram.cli import run
from dpgram.engines import local
from dpgram.engines.federated import Partial, Partials
from dpgram.engines.partials import PartialsEngine
from dpgram.engines.passes import gram_pass
from dpgram.errors import DpgramError, DpgramWarning, SourceError
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.sampling.entropy import SeededEntropy
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema, numeric
from dpgram.testing import BY, SCHEMA, contract_table, cut

TABLE = contract_table(900)
SITES = cut(TABLE, [400, 300, 200])


def saved(folder: Path, *, passphrase: str | None = None, **options: Any) -> list[Path]:
    paths = [folder / f"{number}.partial" for number in range(len(SITES))]
    for rows, path in zip(SITES, paths, strict=True):
        partial_gram(rows, SCHEMA, **options).save(path, passphrase=passphrase)
    return paths


def merged(files: list[Path], clip: float | None = None, **options: Any) -> Any:
    (found,) = PartialsEngine().add_up(
        Partials(files=files, **options), gram_pass(Encoder(SCHEMA, clip=clip))
    )
    return found


@pytest.mark.parametrize("clip", [None, 1.25])
def test_sites_add_up_to_the_table(tmp_path: Path, clip: float | None) -> None:
    assert merged(saved(tmp_path, clip=clip), clip) == local.gram(TABLE, SCHEMA, clip)


def test_the_release_of_partials_is_that_of_the_table(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
    of_table = publish(TABLE, SCHEMA, entropy=SeededEntropy(3), **asked)
    of_sites = publish(Partials(files=saved(tmp_path)), SCHEMA, entropy=SeededEntropy(3), **asked)
    assert of_sites.published == of_table.published
    assert of_sites.guarantee == of_table.guarantee


def test_groups(tmp_path: Path) -> None:
    options: dict[str, Any] = {"by": BY}
    partials = Partials(files=saved(tmp_path, **options))
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "by": BY}
    of_sites = publish(partials, SCHEMA, entropy=SeededEntropy(3), **asked)
    of_table = publish(TABLE, SCHEMA, entropy=SeededEntropy(3), **asked)
    assert {name: one.published for name, one in of_sites.items()} == {
        name: one.published for name, one in of_table.items()
    }


def test_units_only_where_they_are_declared_disjoint(tmp_path: Path) -> None:
    """Each unit's rows at one site: the sums are those of the whole table. Else: refused."""
    order = TABLE.append_column("site", pa.array([(i or 0) % 3 for i in TABLE["id"].to_pylist()]))
    paths = []
    for site in range(3):
        rows = order.filter(pa.compute.equal(order["site"], site))
        paths.append(partial_gram(rows, SCHEMA, unit="id").save(tmp_path / f"{site}.partial"))
    asked: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "unit": "id"}
    with pytest.raises(DpgramError, match="two sites"):
        publish(Partials(files=paths), SCHEMA, **asked)
    declared = Partials(files=paths, disjoint_units=True)
    of_sites = publish(declared, SCHEMA, entropy=SeededEntropy(5), **asked)
    of_table = publish(TABLE, SCHEMA, entropy=SeededEntropy(5), **asked)
    assert of_sites.published == of_table.published
    assert publish(Partials(files=paths[:1]), SCHEMA, **asked).unit == "id"


def test_the_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    (path, *_) = saved(tmp_path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(DpgramError, match="exists already"):
        partial_gram(SITES[0], SCHEMA).save(path)
    path.chmod(0o644)
    with pytest.warns(DpgramWarning, match="other users can read"):
        Partial.load(path)


class TestLocked:
    @pytest.fixture(autouse=True)
    def installed(self) -> None:
        pytest.importorskip("cryptography", reason="the extra 'federated' is not installed")

    def test_opens_with_the_passphrase_alone(self, tmp_path: Path) -> None:
        paths = saved(tmp_path, passphrase="three words här")
        assert merged(paths, passphrase="three words här") == local.gram(TABLE, SCHEMA)
        with pytest.raises(DpgramError, match="is locked"):
            merged(paths)
        with pytest.raises(DpgramError, match="does not open"):
            merged(paths, passphrase="three words")

    def test_no_sum_is_in_the_file(self, tmp_path: Path) -> None:
        open_file, locked = tmp_path / "open", tmp_path / "locked"
        made = partial_gram(SITES[0], SCHEMA)
        made.save(open_file)
        made.save(locked, passphrase="three words")
        cell = int(made.sums[0].cells[1, 1]).to_bytes(8, "little")
        assert cell in open_file.read_bytes()
        assert cell not in locked.read_bytes()

    def test_the_head_cannot_be_exchanged(self, tmp_path: Path) -> None:
        """The head is authenticated with the sums: an id or a schema cannot be put before another's sums."""
        import hashlib

        path = tmp_path / "locked"
        made = partial_gram(SITES[0], SCHEMA)
        made.save(path, passphrase="three words")
        body = path.read_bytes()[:-32].replace(made.id.encode(), b"0" * 32)
        path.write_bytes(body + hashlib.sha256(body).digest())
        with pytest.raises(DpgramError, match="does not open"):
            Partial.load(path, passphrase="three words")


class TestRefusals:
    def test_the_same_file_twice(self, tmp_path: Path) -> None:
        first, second, third = saved(tmp_path)
        with pytest.raises(DpgramError, match="counted twice"):
            merged([first, second, third, first])

    def test_a_copy(self, tmp_path: Path) -> None:
        first, *_ = saved(tmp_path)
        copy = tmp_path / "copy.partial"
        os.link(first, copy)
        with pytest.raises(DpgramError, match="counted twice"):
            merged([first, copy])

    def test_one_site_twice(self, tmp_path: Path) -> None:
        paths = [partial_gram(SITES[0], SCHEMA, site="north").save(tmp_path / name) for name in ("a", "b")]
        with pytest.raises(DpgramError, match="site 'north'"):
            merged(paths)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            ({"clip": 1.0}, "radius"),
            ({"missing": "midpoint"}, "missing"),
            ({"unit": "id"}, "unit"),
            ({"by": BY}, "by"),
        ],
    )
    def test_other_terms(self, tmp_path: Path, options: dict[str, Any], words: str) -> None:
        other = partial_gram(SITES[1], SCHEMA, **options).save(tmp_path / "other.partial")
        with pytest.raises(DpgramError, match=f"made with another schema or other options.*{words}"):
            merged([other])

    def test_another_schema_of_the_same_width(self, tmp_path: Path) -> None:
        mine, theirs = Schema(numeric("a", -1, 1)), Schema(numeric("a", -1, 1.5))
        path = partial_gram(SITES[0], theirs).save(tmp_path / "some.partial")
        with pytest.raises(DpgramError, match="another schema"):
            PartialsEngine().add_up(Partials(files=[path]), gram_pass(Encoder(mine)))

    def test_nothing(self) -> None:
        with pytest.raises(DpgramError, match="no partial"):
            merged([])

    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(DpgramError, match="there is no partial"):
            merged([tmp_path / "absent"])

    def test_another_version(self, tmp_path: Path) -> None:
        (path, *_) = saved(tmp_path)
        path.write_bytes(path.read_bytes().replace(b"version 1\n", b"version 2\n", 1))
        with pytest.raises(DpgramError, match="another version"):
            merged([path])

    def test_data_that_is_no_partial(self) -> None:
        with pytest.raises(SourceError, match="partial sums only"):
            PartialsEngine().add_up(TABLE, gram_pass(Encoder(SCHEMA)))

    def test_an_error_charges_nothing(self, tmp_path: Path) -> None:
        first, *_ = saved(tmp_path)
        ledger = Ledger.create(tmp_path / "some.ledger", name="some", epsilon=1, delta=1e-5)
        with pytest.raises(DpgramError, match="counted twice"):
            publish(
                Partials(files=[first, first]), SCHEMA, epsilon=1, delta=1e-6, ledger=ledger, adaptive=False
            )
        assert ledger.history() == ()


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("altered")
    return partial_gram(SITES[0], Schema(numeric("a", -1, 1))).save(folder / "some.partial")


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_every_altered_byte_is_noticed(small: Path, data: st.DataObject) -> None:
    raw = bytearray(small.read_bytes())
    place = data.draw(st.integers(0, len(raw) - 1))
    raw[place] ^= data.draw(st.integers(1, 255))
    altered = small.with_name("altered.partial")
    altered.write_bytes(bytes(raw[: data.draw(st.sampled_from([len(raw), len(raw) - 1, place + 1]))]))
    with pytest.raises(DpgramError):
        Partial.load(altered)


def test_a_partial_does_not_print_its_sums() -> None:
    made = partial_gram(SITES[0], SCHEMA)
    assert str(made.sums[0].cells[1, 1]) not in repr(made)
    assert "words" not in repr(Partials(files=[], passphrase="three words"))
    assert replace(made, site="north").site == "north"


class TestCommands:
    @pytest.fixture
    def folder(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        monkeypatch.chdir(tmp_path)
        SCHEMA.to_file("joint.toml")
        for number, rows in enumerate(SITES):
            pq.write_table(rows, f"{number}.parquet")
        Path("secret").write_text("three words\n")
        return tmp_path

    def test_three_sites_and_a_centre(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        pytest.importorskip("cryptography", reason="the extra 'federated' is not installed")
        for number in range(3):
            site = ["--site", f"s{number}", "--passphrase-file", "secret"]
            command = ["gram", f"{number}.parquet", "-s", "joint.toml", "--partial", f"{number}.partial"]
            assert run([*command, *site]) == 0
        assert "NOT PRIVATE" in capsys.readouterr().err
        files = [f"{number}.partial" for number in range(3)]
        ask = ["--schema", "joint.toml", "--epsilon", "1", "--delta", "1e-6", "--no-ledger"]
        ask += ["-o", "joint.dpgram.json"]
        joint = ["publish", "--partials", *files, *ask, "--passphrase-file", "secret"]
        assert run(joint) == 2
        assert "adaptive" in capsys.readouterr().err
        assert run([*joint, "--no-adaptive"]) == 0
        assert Path("joint.dpgram.json").exists()
        assert "900" in capsys.readouterr().out  # the curator's count of rows read

    def test_an_open_partial_is_said_to_be_one(
        self, folder: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        command = ["gram", "0.parquet", "-s", "joint.toml", "--partial", "0.partial"]
        assert run(command) == 0
        assert "NOT LOCKED" in capsys.readouterr().err
        assert run(command) == 2
        assert "exists already" in capsys.readouterr().err

    def test_json(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        command = ["gram", "0.parquet", "1.parquet", "-s", "joint.toml", "--partial", "0.partial", "--json"]
        assert run(command) == 0
        assert '"locked": false' in capsys.readouterr().out

    def test_options_of_partials_only(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        ask = ["--schema", "joint.toml", "--epsilon", "1", "--delta", "0", "--no-ledger"]
        ask += ["-o", "out.dpgram.json", "--disjoint-units"]
        assert run(["publish", "0.parquet", *ask]) == 2
        assert "are for --partials" in capsys.readouterr().err

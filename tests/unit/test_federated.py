"""Partial sums of several sites: the same integers as one table, and everything that must be refused."""

from __future__ import annotations

import os
import stat
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.flat import partial as partial_gram
from tests.flat import publish

from dpgram.cli import run
from dpgram.core.noise import SeededEntropy
from dpgram.core.units import PolicyCounts
from dpgram.engines import local
from dpgram.engines.federated import Partial, Partials
from dpgram.engines.partials import PartialsEngine
from dpgram.engines.passes import gram_pass
from dpgram.errors import DpgramError, DpgramWarning, SourceError
from dpgram.mechanisms import InverseWishart
from dpgram.privacy.ledger import Ledger
from dpgram.rows.encoder import Encoder
from dpgram.schema import Schema, numeric
from dpgram.sums.exact_gram import MAX_ROWS, ExactGram
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


PAIR = Schema(numeric("a", 0, 1), numeric("b", 0, 1))
LATTICE = 2**30


def pair() -> Partial:
    """300 rows of two columns, the second twice the first."""
    numbers = np.random.default_rng(0).uniform(size=300) / 2
    return partial_gram({"a": numbers, "b": numbers * 2}, PAIR, site="honest")


def wrong(gram: ExactGram, **counts: int) -> tuple[ExactGram, ...]:
    return (replace(gram, counts=replace(gram.counts, **counts)),)


def with_cells(gram: ExactGram, cells: Any) -> tuple[ExactGram, ...]:
    return (replace(gram, cells=np.asarray(cells, np.int64)),)


def lowered(gram: ExactGram, by: int) -> tuple[ExactGram, ...]:
    """The last square lowered."""
    cells = gram.cells.copy()
    cells[2, 2] -= by
    return with_cells(gram, cells)


FORGED = {
    "minus the sums": lambda g: with_cells(g, -g.cells),
    "beside squares of zero": lambda g: with_cells(
        g, [[0, 300 * LATTICE, 0], [300 * LATTICE, 0, 0], [0, 0, 0]]
    ),
    "squares longer than the rows": lambda g: with_cells(g, np.full((3, 3), 300 * LATTICE)),
    "squares longer than the rows together": lambda g: with_cells(g, np.diag([300 * LATTICE] * 3)),
    "squares beyond 64 bits together": lambda g: (
        ExactGram(
            np.diag([MAX_ROWS * LATTICE] * 3), MAX_ROWS, PolicyCounts(rows_read=MAX_ROWS, rows_used=MAX_ROWS)
        ),
    ),
    "three columns against each other": lambda g: with_cells(
        g, 100 * LATTICE * np.array([[10, -9, -9], [-9, 10, -9], [-9, -9, 10]]) // 10
    ),
    "more rows used than there are": lambda g: wrong(g, rows_used=1 << 62),
    "fewer rows used": lambda g: wrong(g, rows_used=5),
    "rows neither used nor dropped": lambda g: wrong(g, rows_read=301),
    "more rows clipped than used": lambda g: wrong(g, rows_clipped=301),
    "more rows without a unit than dropped": lambda g: wrong(g, rows_without_unit=1),
    "more units than rows": lambda g: wrong(g, units_read=301),
    "too wide": lambda g: with_cells(g, np.zeros((5, 5))),
    "no columns": lambda g: with_cells(g, np.zeros((0, 0))),
    "two sums": lambda g: (g, g),
}


class TestForged:
    """Whoever can write an unlocked file can forge it: refused before the charge, in one line."""

    @pytest.fixture
    def ledger(self, tmp_path: Path) -> Ledger:
        return Ledger.create(
            tmp_path / "some.ledger", name="some", epsilon=5, delta=1e-4, delta_reserved=1e-5
        )

    @pytest.mark.parametrize("beside", [False, True], ids=["alone", "beside a good one"])
    @pytest.mark.parametrize("name", FORGED)
    def test_before_the_charge(self, name: str, beside: bool, tmp_path: Path, ledger: Ledger) -> None:
        honest = pair()
        good = honest.save(tmp_path / "good.partial")
        forged = replace(honest, id="0" * 32, site="forged", sums=FORGED[name](honest.sums[0]))
        files = [forged.save(tmp_path / "forged.partial"), *([good] if beside else [])]
        asked: dict[str, Any] = {"epsilon": 1, "delta": 1e-6, "ledger": ledger, "adaptive": False}
        asked |= {"mechanism": InverseWishart(degrees=200)}
        with pytest.raises(DpgramError, match=r"forged\.partial.*Nothing was spent") as refusal:
            publish(Partials(files=files), PAIR, **asked)
        assert "\n" not in str(refusal.value)
        assert ledger.history() == ()
        assert not list(tmp_path.glob("*unfinished*"))
        publish(Partials(files=[good]), PAIR, **asked)
        assert len(ledger.history()) == 1

    def test_by_less_than_floats_tell(self, tmp_path: Path) -> None:
        """One unit too little, of 2^56: exact arithmetic tells it from a sum of collinear rows."""
        rows = np.array([[10_000, 8_000, 18_000]] * 200 + [[10_000, 1_000, 11_000]] * 100)
        times, count = 10**6, 300 * 10**6
        counts = PolicyCounts(rows_read=count, rows_used=count)
        honest = ExactGram(rows.T @ rows * times, count, counts)
        for sums, possible in [((honest,), True), (lowered(honest, 1), False)]:
            path = tmp_path / f"{possible}.partial"
            replace(pair(), sums=sums).save(path)
            work = gram_pass(Encoder(PAIR))
            if possible:
                assert Partials(files=[path]).merged(work) == sums
            else:
                with pytest.raises(DpgramError, match="together are not those of any rows"):
                    Partials(files=[path]).merged(work)

    def test_groups_and_blocks_have_their_number_of_sums(self, tmp_path: Path) -> None:
        made = partial_gram(SITES[0], SCHEMA, by=BY)
        path = replace(made, sums=made.sums[:-1]).save(tmp_path / "short.partial")
        with pytest.raises(DpgramError, match=f"{len(made.sums)} sums of width"):
            publish(Partials(files=[path]), SCHEMA, epsilon=1, delta=1e-6, by=BY)

    def test_the_words_hold_no_sum(self, tmp_path: Path) -> None:
        made = pair()
        path = replace(made, sums=lowered(made.sums[0], LATTICE)).save(tmp_path / "some.partial")
        with pytest.raises(DpgramError) as refusal:
            Partials(files=[path]).merged(gram_pass(Encoder(PAIR)))
        assert not {str(cell) for cell in made.sums[0].cells.ravel()} & set(str(refusal.value).split())


@settings(deadline=None, max_examples=60)
@given(st.data())
def test_no_sum_of_rows_is_refused(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Whatever the rows: few, equal, collinear, zeros, as many as there may be."""
    width = data.draw(st.integers(2, 7))
    most = int(2**15 / width**0.5)
    cell = st.one_of(st.sampled_from([0, 0, 1, -1, most, -most]), st.integers(-most, most))
    one = st.lists(cell, min_size=width, max_size=width)
    rows = np.array(data.draw(st.lists(one, min_size=1, max_size=8)), np.int64)
    kept = data.draw(st.lists(st.integers(0, width - 1), min_size=width, max_size=width))
    times = data.draw(st.sampled_from([1, 3, 10**6, 10**9]))
    lattice = rows[:, kept] if data.draw(st.booleans()) else rows
    count = len(rows) * times
    lattice = lattice[(lattice**2).sum(axis=1) <= LATTICE]
    gram = ExactGram(lattice.T @ lattice * times, count, PolicyCounts(rows_read=count, rows_used=count))
    schema = Schema(*(numeric(f"x{k}", 0, 1) for k in range(width - 1)))
    made = replace(partial_gram({name: [0.5] for name in schema.source_columns}, schema), sums=(gram,))
    path = tmp_path_factory.mktemp("honest") / "some.partial"
    assert Partials(files=[made.save(path)]).merged(gram_pass(Encoder(schema))) == (gram,)


class TestMistakes:
    @pytest.mark.parametrize("files", [[None], 5, [5], ["a\0b"], "abc", b"abc", Path("abc"), [["a"]], None])
    def test_files(self, files: Any) -> None:
        with pytest.raises(DpgramError, match=r"; got .*; limit: .*path"):
            merged(files)

    @pytest.mark.parametrize("path", [None, 5, "a\0b", b"a"])
    def test_a_path(self, path: Any) -> None:
        for act in (pair().save, Partial.load):
            with pytest.raises(DpgramError, match="a partial is a file; got "):
                act(path)

    @pytest.mark.parametrize("passphrase", ["secret\udc80", 5, b"secret"])
    def test_passphrases(self, passphrase: Any, tmp_path: Path) -> None:
        path = tmp_path / "some.partial"
        with pytest.raises(DpgramError, match="a passphrase is text") as refusal:
            pair().save(path, passphrase=passphrase)
        assert "secret" not in str(refusal.value)
        assert refusal.value.__context__ is None
        assert not path.exists()
        pair().save(path)
        with pytest.raises(DpgramError, match="a passphrase is text"):
            Partial.load(path, passphrase=passphrase)

    @pytest.mark.parametrize("site", ["\udc80", 5, None])
    def test_sites(self, site: Any) -> None:
        """Before a row is read."""
        with pytest.raises(DpgramError, match="the name of a site is text; got "):
            partial_gram("no-such-file.parquet", SCHEMA, site=site)
        with pytest.raises(DpgramError, match="the name of a site is text; got "):
            replace(pair(), site=site)

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(DpgramError, match=r"cannot be written to .*; got No such file"):
            pair().save(tmp_path / "absent" / "some.partial")


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

"""What fuzzing and fault injection found, each once."""

from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from assurance.fuzz_targets.releases import sealed
from assurance.fuzz_targets.series import seeds
from tests.flat import publish

from dpgram import cli
from dpgram.analysis import Moments
from dpgram.analysis.sampling import two_valued_skewness
from dpgram.core.noise import SeededEntropy
from dpgram.engines.federated import Partial, partial_gram
from dpgram.errors import AnalysisError, DpgramError, LedgerError, ReleaseError, SourceError
from dpgram.models import logistic
from dpgram.planning.planner import plan
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.ledger import _file as ledger_file
from dpgram.publishing import publish_with
from dpgram.release import Release, load
from dpgram.rows import Rows
from dpgram.schema import Schema, boolean, categorical, numeric
from dpgram.series.stream import Stream
from dpgram.sources import open_source
from dpgram.sources.base import DeclaredKind

GOLDEN = Path(__file__).resolve().parents[1] / "golden" / "insurance-gaussian-v1.dpgram.json"


def test_a_plan_for_one_column_says_that_there_is_nothing_to_regress_on() -> None:
    with pytest.raises(AnalysisError, match="something to regress on"):
        plan(Schema(numeric("age", 18, 90)), epsilon=1.0, delta=1e-6, rows=Rows(expected=1000))


@pytest.mark.parametrize("rest", [b"y", b",y", b"\r\n", b'"'])
def test_a_carriage_return_after_a_closing_quote_must_end_the_line(rest: bytes, tmp_path: Path) -> None:
    """Readers disagreed on where the record ends."""
    path = tmp_path / "x.csv"
    path.write_bytes(b'a,t\n"1"\r' + rest + b"\n2,z\n")
    with pytest.raises(SourceError, match="a quote in line 2"):
        list(open_source(path, ("a", "t"), kinds={"a": "number"}).batches())


@pytest.mark.parametrize("end", [b"\r\n2,z\r\n", b"\r\n", b"\r", b""])
def test_line_ends_after_a_closing_quote_are_read(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'a,t\n1,"x"' + end)
    batches = open_source(path, ("a", "t"), kinds={"a": "number"}).batches()
    assert next(iter(batches)).to_pylist()[0] == {"a": 1.0, "t": "x"}


@pytest.mark.parametrize("cell", [b"1", b"one"])
def test_a_column_may_have_quotes_in_its_name(cell: bytes, tmp_path: Path) -> None:
    """Such a file was called damaged."""
    path = tmp_path / "x.csv"
    kinds: dict[str, DeclaredKind] = {'size "in"': "number", 't"': "text"}
    path.write_bytes(b'"t""",z,"size ""in"""\ny,0,' + cell + b"\n")
    (batch,) = open_source(path, tuple(kinds), kinds=kinds).batches()
    assert batch.to_pylist() == [{'size "in"': 1.0 if cell == b"1" else math.inf, 't"': "y"}]


@pytest.mark.parametrize("blank", [" ", "\v", "\x1c", "\x1f", "\x1f \x1f", "\x85", "\u2003"])
def test_what_is_blank_is_blank_in_every_source(blank: str, tmp_path: Path) -> None:
    """A CSV file called four control characters unreadable which in memory were nothing."""
    path = tmp_path / "x.csv"
    numbers: dict[str, DeclaredKind] = {"a": "number", "t": "text"}
    path.write_text(f'a,t\n"{blank}",x\n"{blank}z",y\n', encoding="utf-8", newline="")
    table = pa.table({"a": [blank, f"{blank}z"], "t": ["x", "y"]})
    read = [
        [
            cell
            for batch in open_source(source, ("a", "t"), kinds=numbers).batches()
            for cell in batch["a"].to_pylist()
        ]
        for source in (path, table)
    ]
    assert read == [[None, math.inf]] * 2


def test_a_creation_cut_short_can_be_repeated(tmp_path: Path) -> None:
    """It leaves an empty ledger and an empty journal; the error said to delete it and create it again."""
    path, journal = tmp_path / "a.ledger", tmp_path / "a.ledger-journal"
    path.touch()
    journal.touch()
    with pytest.raises(LedgerError, match="delete it and create it again"):
        Ledger.open(path)
    path.unlink()
    assert Ledger.create(path, name="a", epsilon=1.0, delta=1e-6).history() == ()
    assert not journal.exists()


def test_a_creation_that_fails_leaves_nothing_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The journal stayed, and so the next try was refused; and a second failure hid the first."""

    def fail(folder: Path) -> None:
        (tmp_path / "a.ledger-journal").write_bytes(b"hot")
        raise OSError(5, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(ledger_file, "sync_folder", fail)
        with pytest.raises(LedgerError, match=r"cannot be created here.*Input/output error"):
            Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-6)
    assert list(tmp_path.iterdir()) == []
    Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-6)


def test_a_paid_release_that_can_be_written_nowhere_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The error named the folder for temporary files and did not say that the budget was spent."""

    def full(self: Release, path: object, *, overwrite: bool = False) -> Path:
        raise ReleaseError("no space left")

    monkeypatch.setattr(Release, "save", full)
    (tmp_path / "a.csv").write_text("age\n30\n40\n")
    Schema(numeric("age", 18, 90)).to_file(tmp_path / "a.toml")
    Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-6)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    words = ["publish", "a.csv", "-s", "a.toml", "--epsilon", "0.5", "--delta", "1e-7", "-l", "a.ledger"]
    assert cli.run([*words, "-o", "x.json", "--json"]) == 2
    assert "was paid for (entry 1 of its ledger)" in capsys.readouterr().err


def test_a_save_that_fails_says_that_nothing_is_lost(tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="nothing need be published again"):
        load(GOLDEN).save(tmp_path / "missing" / "x.json")


@pytest.fixture
def partial(tmp_path: Path) -> Path:
    schema = Schema(numeric("age", 18, 90))
    made = partial_gram(pa.table({"age": [30.0, 40.0]}), schema, progress=False)
    return made.save(tmp_path / "site.partial")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (b'"lock":null', b'"lock":true'),
        (b'"lock":null', b'"lock":{}'),
        (b'"site":""', b'"site":[]'),
        (b'"terms":{', b'"terms":{"x":NaN,'),
        (b"version 1\n", b"version 1\n\xff\xff"),
    ],
)
def test_a_forged_partial_is_refused_in_words(old: bytes, new: bytes, partial: Path) -> None:
    """Only damage was: a file with another content and a digest that fits raised whatever it met first."""
    body = partial.read_bytes()[:-32]
    assert old in body
    forged = body.replace(old, new, 1)
    partial.write_bytes(forged + hashlib.sha256(forged).digest())
    with pytest.raises(DpgramError, match=r"partial.*(format|version|locked)"):
        Partial.load(partial, passphrase="x")


def test_a_partial_that_cannot_be_written_whole_leaves_nothing(
    partial: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Half a file stayed, and the next try was refused because of it."""
    made = Partial.load(partial)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("os.fsync", full)
        with pytest.raises(DpgramError, match="No space left"):
            made.save(tmp_path / "again.partial")
    assert not (tmp_path / "again.partial").exists()
    made.save(tmp_path / "again.partial")


def test_a_folder_is_no_partial(tmp_path: Path) -> None:
    with pytest.raises(DpgramError, match="cannot be read"):
        Partial.load(tmp_path)


@pytest.mark.parametrize("name", ["a\nb", "a\rb", "\u2028", "\u202eb", "\x1b[31m"])
def test_a_refusal_is_one_line_of_plain_text_whatever_the_file_says(name: str) -> None:
    """A forged field name broke the message into two lines, and could have turned or coloured it."""
    content = json.loads(GOLDEN.read_bytes())
    content["noise"][name] = 1
    with pytest.raises(ReleaseError, match="unknown field") as refusal:
        Release.from_json(sealed(json.dumps(content).encode()))
    assert str(refusal.value).isprintable()
    assert "b" not in name or "b`" in str(refusal.value)


@pytest.mark.parametrize("header", [b"t\r,b,t", b"t\rb", b"a,t\r1,x"])
def test_a_carriage_return_within_the_header_is_refused(header: bytes, tmp_path: Path) -> None:
    """The check of names took it for the end of the line, and the reader of rows did not."""
    path = tmp_path / "x.csv"
    path.write_bytes(header + b"\ne25\n")
    with pytest.raises(SourceError):
        list(open_source(path, ("t",), kinds={"t": "text"}).batches())


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_header_may_hold_quoted_line_ends(end: bytes, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b'"two\nlines",t' + end + b"1,x" + end)
    (batch,) = open_source(path, ("two\nlines", "t"), kinds={"two\nlines": "number", "t": "text"}).batches()
    assert batch.to_pylist() == [{"two\nlines": 1.0, "t": "x"}]


@pytest.mark.parametrize("index", [-1, 4, 127])
@pytest.mark.parametrize("unit", [None, "t"])
def test_a_damaged_dictionary_is_refused_by_the_name_of_its_column(index: int, unit: str | None) -> None:
    """A Parquet file with one byte changed gave such indices, and a traceback."""
    indices = pa.Array.from_buffers(pa.int8(), 3, [None, pa.py_buffer(bytes([0, index % 256, 1]))])
    cells = pa.DictionaryArray.from_arrays(indices, pa.array(["x", "y", "z", "w"]), safe=False)
    table = pa.table({"a": [0.1, 0.2, 0.3], "t": cells})
    texts = [categorical("t", ["x", "y"], other="z")] if unit is None else []
    schema = Schema(numeric("a", 0, 1), *texts)
    with pytest.raises(SourceError, match="'t' is damaged"):
        publish(table, schema, epsilon=1.0, delta=1e-6, unit=unit, progress=False, adaptive=False)


def test_forged_measurements_that_no_release_has_are_refused_at_load() -> None:
    """Histograms of no column divided by zero; noise so large that its square is no number overflowed."""
    generator = np.random.default_rng(1)
    x = generator.normal(size=2_000)
    (release,) = publish_with(
        {"x": x, "t": x > generator.logistic(size=2_000)},
        Schema(numeric("x", -5, 5), boolean("t")),
        epsilon=2.0,
        delta=1e-6,
        models=[logistic("t")],
        entropy=SeededEntropy(1),
        progress=False,
    )
    honest = json.loads(release.to_json())
    for kind, changed in (("histograms", {"columns": []}), ("step", {"score_sigma": 1e250})):
        forged = json.loads(release.to_json())
        (place, *_) = [i for i, each in enumerate(honest["measurements"]) if each["kind"] == kind]
        forged["measurements"][place] |= changed
        with pytest.raises(ReleaseError, match="does not follow the format"):
            Release.from_json(sealed(json.dumps(forged).encode()))
    # What is within the limits of each number may still be too large together.
    forged = json.loads(release.to_json())
    for each in forged["measurements"]:
        if each["kind"] == "step":
            each.update(score_sigma=1e99, radius=1e49, limit=1e49)
    found = Release.from_json(sealed(json.dumps(forged).encode()))
    with pytest.raises(AnalysisError):
        found.regress("t", family="logistic").conf_int(0.95)


def test_half_a_surrogate_pair_in_a_series_is_no_clean_json() -> None:
    """It has no bytes, and so no digest: `UnicodeEncodeError`."""
    head = json.loads(seeds()[0][1:].splitlines()[0])
    head["library"] = "\ud800"
    with pytest.raises(ReleaseError, match="not a series: it is not clean JSON; got a text that no UTF-8"):
        Stream.of(json.dumps(head).encode() + b"\n")


@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_more_rows_than_floats_can_tell_apart_divide_nothing_by_zero() -> None:
    """1 − 1/n was 1, and the skewness of a column of two values 1/0."""
    (release,) = publish_with(
        {"sex": ["female", "male"] * 30, "smoker": [True, False, False] * 20},
        Schema(categorical("sex", ["female", "male"]), boolean("smoker")),
        epsilon=1.0,
        delta=1e-6,
        mechanism="sketch-adaptive",
        entropy=SeededEntropy(1),
        progress=False,
    )
    content = json.loads(release.to_json())
    cells = content["matrix"]["cells"]
    cells[1] = "4" + "0" * 28
    forged = Release.from_json(sealed(json.dumps(content).encode()))
    assert (Moments.of(forged).rows or 0.0) > 2.0**53
    skewness = two_valued_skewness(Moments.of(forged), np.array([1.0, 1.0, 0.0, 1.0]))
    assert np.isfinite(skewness[1:]).all()

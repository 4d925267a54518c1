"""Options that would be ignored or overwritten are refused, and so is what cannot be used, before any row."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.unit.series.streams import people, seeded

import dpgram as dg
from dpgram import cli
from dpgram.errors import DpgramError

SCHEMA = dg.Schema(dg.numeric("x", 0, 30), dg.numeric("y", 0, 60))
TABLE = {"x": np.arange(200) % 30.0, "y": np.arange(200) % 60.0}
ASK = ["--epsilon", "1", "--delta", "1e-6", "--ledger", "own.ledger", "-o", "out.json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    SCHEMA.to_file("own.toml")
    SCHEMA.with_blocks([["x"], ["y"]]).to_file("blocks.toml")
    pq.write_table(pa.table(TABLE), "own.parquet")
    dg.Ledger.create("own.ledger", name="own", epsilon=10, delta=1e-4)
    Path("secret").write_bytes("drei Wörter\n".encode("latin-1"))
    return tmp_path


def test_an_option_that_would_be_ignored(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = ["publish", "own.sqlite", "--query", "SELECT x, y FROM t", "-s", "own.toml", *ASK]
    for beside in (["--partials"], ["--disjoint-units"], ["--passphrase-file", "secret"]):
        assert cli.run([*query, *beside]) == 2
        told = capsys.readouterr().err
        assert "are for sums of several sites; got --query" in told
        assert told.rstrip().endswith("Nothing was spent")


def test_a_passphrase_that_is_no_text(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    gram = ["gram", "own.parquet", "-s", "own.toml", "--partial", "own.partial", "--site", "here"]
    for command in (gram, ["publish", "own.partial", "-s", "own.toml", *ASK, "--partials"]):
        assert cli.run([*command, "--passphrase-file", "secret"]) == 2
        told = capsys.readouterr().err
        assert "the passphrase file 'secret' is not UTF-8 text" in told
        assert "drei" not in told


def test_blocks_are_not_replaced(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["publish", "own.parquet", "-s", "blocks.toml", *ASK, "--blocks", "x,y"]) == 2
    assert "the schema has blocks of its own" in capsys.readouterr().err
    assert dg.Ledger.open("own.ledger").history() == ()


@pytest.mark.parametrize("text", ["linear:y;share=0.1;share=0.3", "poisson:y;steps=1; steps=1"])
def test_a_model_says_nothing_twice(text: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["publish", "own.parquet", "-s", "own.toml", *ASK, "--model", text]) == 2
    assert "twice; got" in capsys.readouterr().err


@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
@pytest.mark.parametrize(
    "options", [["--plot", "x.png"], ["--on", "x"], ["--running"], ["--every", "2"], ["--of", "x"]]
)
def test_options_of_a_trend(options: list[str], folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seeded(folder / "own.series", [people(0, 50)])
    assert cli.run(["series", "show", "own.series"]) == 0
    capsys.readouterr()
    assert cli.run(["series", "show", "own.series", *options]) == 2
    out, told = capsys.readouterr()
    assert "wrote" not in out
    assert "these options are about a trend" in told
    assert options[0] in told


def unread() -> Iterator[Any]:
    raise AssertionError("a row was read")
    yield


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"note": "\ud800"}, "a note is not usable"),
        ({"note": 123}, "a note is not usable"),
        ({"report": "x.html"}, "report must be a function"),
        ({"epsilon": 10**400}, "epsilon must be a positive number"),
        ({"delta": 10**400}, "delta must be a small probability"),
        ({"rows": dg.Rows(radius=10**400)}, "the clip radius is out of range"),
    ],
    ids=["note", "no text", "report", "epsilon", "delta", "radius"],
)
@pytest.mark.parametrize("pays", [True, False])
def test_publish(options: dict[str, Any], words: str, pays: bool, folder: Path) -> None:
    asked = {"epsilon": 1.0, "delta": 1e-6, "adaptive": False, "ledger": "own.ledger" if pays else None}
    before = sorted(folder.iterdir())
    with pytest.raises(DpgramError, match=words):
        dg.publish(unread(), SCHEMA, **asked | options)
    assert sorted(folder.iterdir()) == before
    assert dg.Ledger.open("own.ledger").history() == ()


def test_the_note_of_a_series(folder: Path) -> None:
    before = sorted(folder.iterdir())
    with pytest.raises(DpgramError, match="a note is not usable"):
        dg.Series.create(
            "own.series", SCHEMA, epsilon=1, delta=1e-6, periods=3, ledger="own.ledger", note="\ud800"
        )
    assert sorted(folder.iterdir()) == before

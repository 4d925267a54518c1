"""What commands say fits into 80 columns, and whoever is stopped is told what was spent."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import dpgram as dg
from dpgram.cli import run
from dpgram.demo import insurance

Typed = Callable[[str], int]
JOB = """
[data]
file = "people.csv"
schema = "people.toml"
[rows]
expected = 5000
[privacy]
epsilon = 1
delta = 1e-6
ledger = "people.ledger"
reason = "the policy of the house for yearly tables, as the board decided in the spring of last year"
[outputs]
release = "job.dpgram.json"
report = "report.html"
"""
ASKED = "-s people.toml --epsilon 1 --delta 1e-6"
SAID = [
    "--help",
    "schema people.csv",
    "schema people.csv -o new.toml",
    f"check people.csv {ASKED}",
    f"check messy.csv {ASKED}",
    f"check people.csv {ASKED} --unit id --by smoker",
    "ledger create new.ledger --name insurance-of-the-whole-country --epsilon 3 --delta 1e-5",
    f"plan {ASKED} --rows 5000 --ledger people.ledger",
    f"plan {ASKED} --rows 5000 --target charges",
    f"publish people.csv {ASKED} --ledger people.ledger -o new.json",
    "ledger show people.ledger",
    "ledger show people.ledger --verbose",
    "ledger left people.ledger --verbose",
    "ledger verify people.ledger people.json",
    "ledger plan --per-year 12 --years 5 --each-epsilon 0.3",
    "show people.json",
    "codebook people.toml",
    "regress people.json charges",
    "correlation people.json",
    "pca people.json",
    "run job.toml --dry-run",
    "run job.toml --yes",
    "diff job.toml other.toml",
    "iv people.json charges --endogenous bmi --instruments age --controls smoker",
    "within people.json charges --on age,bmi --group region",
    "discriminant people.json smoker=yes --on age,charges",
]
STOPPED = [
    "publish people.csv -s people.toml --epsilon 1 --ledger people.ledger -o new.json",
    f"publish people.csv {ASKED} -o new.json",
    "publish people.csv -s people.toml --epsilon 9 --delta 1e-6 --ledger people.ledger -o new.json",
    f"publish people.csv {ASKED} --ledger people.ledger -o new.json --unit id",
    f"publish none.csv {ASKED} --ledger people.ledger -o new.json",
    f"publish people.csv {ASKED} --ledger people.ledger -o people.json",
    f"publish people.csv {ASKED} --ledger people.ledger -o new.json --mechanism gausian",
    f"publish people.csv {ASKED} --ledger people.ledger -o new.json --levels-share 2",
    f"publish people.csv {ASKED} --ledger people.ledger -o new.json --engine sparc",
    "publish people.csv -s wide.toml --epsilon 1 --delta 1e-6 --ledger people.ledger -o new.json",
    f"publish people.csv {ASKED} --ledger people.ledger -o new.json --sign no.key",
    "run job.toml",
    "run broken.toml --yes",
    "run none.toml --yes",
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    people = pl.from_arrow(insurance.table(5_000)).with_row_index("id")
    people.write_csv("people.csv")
    people.with_columns(pl.col("charges").map_elements("{:,.2f}".format, pl.String)).write_csv("messy.csv")
    insurance.schema().to_file("people.toml")
    dg.Schema(*insurance.schema().columns, dg.numeric("not in the table", 0, 1)).to_file("wide.toml")
    ledger = dg.Ledger.create("people.ledger", name="people", epsilon=3.0, delta=1e-5)
    release = dg.publish(
        people, insurance.schema(), epsilon=1, delta=1e-6, ledger=ledger, note="spring", progress=False
    )
    release.save("people.json")
    Path("job.toml").write_text(JOB)
    Path("other.toml").write_text(JOB.replace("epsilon = 1", "epsilon = 0.5"))
    Path("broken.toml").write_text(JOB.replace("epsilon", "epsylon"))


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Typed:
    """A command in a terminal, where errors are folded."""

    def typed(line: str) -> int:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        return run(line.split())

    return typed


def too_wide(text: str) -> list[str]:
    plain = re.sub(r"\x1b\[[?\d;]*[A-Za-z]", "", text)  # colours and bars
    return [line for line in plain.replace("\r", "\n").split("\n") if len(line) > 80]


@pytest.mark.parametrize("line", SAID)
@pytest.mark.filterwarnings("ignore::dpgram.errors.DpgramWarning")
def test_what_is_said(line: str, terminal: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    assert terminal(line) == (3 if "messy" in line else 0)
    told = capsys.readouterr()
    assert told.out
    assert not too_wide(told.out)
    assert not too_wide(told.err)


@pytest.mark.parametrize("line", STOPPED)
def test_what_stops(line: str, terminal: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    before = Path("people.ledger").read_bytes()
    assert terminal(line) == 2
    told = capsys.readouterr().err
    assert not too_wide(told)
    assert "othing was spent" in " ".join(told.split())
    assert Path("people.ledger").read_bytes() == before


def test_a_stop_that_cost_something_says_what(terminal: Typed, capsys: pytest.CaptureFixture[str]) -> None:
    """Noisy counts show that a column is lost: they were paid for, which is not nothing."""
    assert terminal(f"publish messy.csv {ASKED} --ledger people.ledger -o new.json") == 2
    told = capsys.readouterr().err
    assert not too_wide(told)
    words = " ".join(told.split())
    assert "othing was spent" not in words
    assert "the budget was spent on noisy counts alone, Gaussian, μ = " in words
    assert ", not on the whole release, and the rest is given back)" in words
    assert 'thousands = ","' in words
    assert len(dg.Ledger.open("people.ledger").history()) == 2


def test_wide_tables_go_on_below(capsys: pytest.CaptureFixture[str]) -> None:
    from dpgram.cli.console import print_table

    print_table([["row", *(f"{i:>12}" for i in range(12))]], ["", *(f"column {i}" for i in range(12))])
    told = capsys.readouterr().out
    assert not too_wide(told)
    assert [told.count(f"column {i}\n") + told.count(f"column {i} ") for i in range(12)] == [1] * 12
    assert told.count("row") == 3

"""The demonstration: it runs, tells the truth about itself, and leaves what it says it leaves."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest

from dpgram.demo import insurance
from dpgram.demo import run as demo
from dpgram.demo.run import Outcome
from dpgram.privacy.ledger import Ledger
from dpgram.release import load


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> tuple[Outcome, str, Path]:
    folder = tmp_path_factory.mktemp("demo")
    lines: list[str] = []
    outcome = demo.run(folder, people=20_000, say=lines.append)
    return outcome, "\n".join(lines), folder


def test_files_are_there_and_agree(told: tuple[Outcome, str, Path]) -> None:
    outcome, _, folder = told
    release, ledger = load(outcome.release), Ledger.open(outcome.ledger)
    assert ledger.verify([release]).unclaimed == ()
    assert len(ledger.history()) == 1  # that of the first release; the refused one left no trace
    assert outcome.figure is not None
    assert outcome.figure.read_bytes().startswith(b"\x89PNG")
    assert {path.name for path in folder.iterdir()} == {
        "insurance.toml", "insurance.ledger", "insurance.dpgram.json", "coefficients.png", "insurance.html",
    }  # fmt: skip


def test_several_targets_beside_the_truth(told: tuple[Outcome, str, Path]) -> None:
    outcome, text, _ = told
    assert {answer.target for answer in outcome.answers} == {"charges", "blood_pressure", "bmi"}
    exact = {(a.target, a.name): a.exact for a in outcome.answers}
    # The effects written in dpgram.demo.insurance; 20,000 people tell them to within a few percent.
    assert exact["charges", "smoker=yes"] == pytest.approx(11_000, rel=0.03)
    assert exact["blood_pressure", "age"] == pytest.approx(0.36, rel=0.03)
    assert exact["bmi", "exercise"] == pytest.approx(-0.25, rel=0.1)
    for answer in outcome.answers:
        assert np.isfinite([answer.private, answer.low, answer.high]).all()
        assert answer.name in text


def test_the_private_answers_are_near(told: tuple[Outcome, str, Path]) -> None:
    """Real noise, so a wide gate: misses by more than three half-widths have probability below 1e-8 each."""
    outcome, _, _ = told
    for answer in outcome.answers:
        half = (answer.high - answer.low) / 2
        assert abs(answer.exact - (answer.low + answer.high) / 2) < 3 * half


def test_overspending_is_refused_in_words(told: tuple[Outcome, str, Path]) -> None:
    outcome, text, _ = told
    assert "Nothing was spent" in outcome.refusal
    assert "The budget cannot be overspent" in text


def test_real_patients_are_few_and_the_intervals_say_so(told: tuple[Outcome, str, Path]) -> None:
    outcome, text, _ = told
    assert [answer.name for answer in outcome.patients] == ["(intercept)", "bmi", "bp"]
    assert all(answer.low < answer.private < answer.high for answer in outcome.patients)
    assert "The intervals are wide, and say so" in text


def test_it_reads_well(told: tuple[Outcome, str, Path]) -> None:
    _, text, folder = told
    prose = text.replace(str(folder), "demo")
    assert max(map(len, prose.splitlines())) <= 100
    assert re.findall(r"^(\d)\. ", prose, re.MULTILINE) == list("1234567")
    for word in ("None", "nan", "Traceback", "{", "}"):
        assert word not in prose


def test_it_can_run_twice_in_one_folder(tmp_path: Path) -> None:
    for _ in range(2):
        again = demo.run(tmp_path, people=2_000, say=lambda _: None)
    assert len(Ledger.open(again.ledger).history()) == 1


def test_without_matplotlib_it_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("matplotlib", "matplotlib.figure", "matplotlib.backends.backend_agg"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.delitem(sys.modules, "dpgram.demo._figure", raising=False)
    lines: list[str] = []
    outcome = demo.run(tmp_path, people=2_000, say=lines.append)
    assert outcome.figure is None
    assert "dpgram[plot]" in "\n".join(lines)


class TestInsurance:
    def test_the_same_table_for_the_same_seed(self) -> None:
        assert insurance.table(500).equals(insurance.table(500))
        assert not insurance.table(500).equals(insurance.table(500, seed=1))

    def test_columns_are_those_of_the_schema_and_within_its_bounds(self) -> None:
        table, schema = insurance.table(20_000), insurance.schema()
        assert set(table.column_names) == set(schema.source_columns)
        numbers = {c.name: c for c in schema.encoded if c.kind == "numeric"}
        for name, column in numbers.items():
            values = table[name].drop_null().to_numpy()
            outside = np.abs(values - column.centre) > column.half_width
            assert outside.mean() < 0.001, name
        assert set(table["region"].to_pylist()) == set(insurance.REGIONS)

    def test_a_few_values_are_missing(self) -> None:
        assert insurance.table(20_000)["bmi"].null_count == pytest.approx(80, abs=40)

"""`dpgram audit`: what it prints, how it ends, and that it continues its file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dpgram import Schema, cli, numeric

QUICK = ("--epsilon", "8", "--delta", "1e-4", "--columns", "2", "--runs", "600", "--seed", "1")
OWN = """
from dataclasses import dataclass

from dpgram.mechanisms import CalibratedGaussian, CalibratedMechanism, Gaussian, Mechanism


class Quiet(Mechanism):
    name = "quiet"
    semidefinite = False

    def calibrated(self, guarantee, facts):
        return CalibratedQuiet(Gaussian().calibrated(guarantee, facts))

    @classmethod
    def keeps_promise(cls, stated):
        return False


@dataclass(frozen=True)
class CalibratedQuiet(CalibratedMechanism):
    inner: CalibratedGaussian
    kind = Quiet

    def curve(self, facts):
        return self.inner.curve(facts)

    def event(self, facts):
        return self.inner.event(facts)

    def expected(self, values):
        return self.inner.expected(values)

    def draw(self, gram, entropy):
        return CalibratedGaussian(sigma=0.5 * self.inner.sigma).draw(gram, entropy)


class Another:
    pass
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Any:
    def call(*arguments: object) -> tuple[int, str, str]:
        code = cli.run(["audit", *map(str, arguments)])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_a_sound_mechanism(run: Any) -> None:
    code, out, err = run("--mechanism", "gaussian", *QUICK)
    assert (code, err) == (0, "")
    for word in ("draws of gaussian", "add-remove of one row", "ε = 8", "confidence", "nothing found"):
        assert word in out


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("person", [None, 3])
def test_both_relations_rows_and_persons(run: Any, relation: str, person: int | None) -> None:
    more = () if person is None else ("--person", person)
    code, out, _ = run("--mechanism", "gaussian", *QUICK, "--adjacency", relation, *more, "--json")
    found = json.loads(out)
    assert code == 0
    assert relation in found["audited"]
    assert len(found["pairs"]) == (2 if person is None else 3)
    assert 0.5 < found["mu_at_least"] < 1.85
    assert found["violated"] is False


def test_a_promise_that_is_refuted(run: Any) -> None:
    code, out, _ = run("--mechanism", "gaussian", *QUICK, "--claim-epsilon", "1")
    assert code == 1
    assert "VIOLATION" in out
    assert "ε = 1, δ = 0.0001" in out


def test_a_mechanism_of_ones_own(run: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mine_for_audit.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    code, out, _ = run("--mechanism", "mine_for_audit:Quiet", *QUICK)
    assert code == 1
    assert "draws of quiet" in out
    for wrong in ("mine_for_audit:Another", "mine_for_audit:Nobody", "no_such_module:X", ":"):
        code, _, err = run("--mechanism", wrong, *QUICK)
        assert code == 2
        assert err.count("\n") == 1
    code, _, err = run("--mechanism", "mine_for_audit:Quiet", "--publish", *QUICK)
    assert code == 2
    assert "publish draws with the mechanisms of dpgram only" in err


def test_a_file_of_scores_is_continued(run: Any, tmp_path: Path) -> None:
    path = tmp_path / "scores"
    base = ("--mechanism", "gaussian", "--epsilon", 8, "--delta", 1e-4, "--columns", 2, "--seed", 1)
    _, once, _ = run(*base, "--runs", 1000, "--json")
    run(*base, "--runs", 500, "--output", path)
    first = path.stat().st_size
    _, out, _ = run(*base, "--runs", 1000, "--output", path)
    assert path.stat().st_size > first
    assert "continues them" in out
    _, again, _ = run(*base, "--runs", 1000, "--output", path, "--json")
    found, whole = json.loads(again), json.loads(once)
    assert found["scores"] == str(path)
    assert {**found, "scores": None} == whole
    code, _, err = run("--mechanism", "gaussian", *QUICK, "--output", path, "--rows", 5)
    assert code == 2
    assert "another audit" in err


def test_the_whole_pipeline(run: Any, tmp_path: Path) -> None:
    Schema(numeric("x", -1, 1)).to_file(tmp_path / "s.toml")
    whole = ("--publish", "--schema", tmp_path / "s.toml", "--source", "csv", "--engine", "local")
    code, out, err = run(*whole, "--epsilon", 4, "--runs", 100, "--seed", 1)
    assert (code, err) == (0, "")
    assert "publish from a csv with matrix-laplace, 2 columns" in out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--epsilon", "-1"), "epsilon"),
        (("--epsilon", "1", "--mechanism", "nobody"), "unknown mechanism"),
        (("--epsilon", "1", "--mechanism", "gaussian"), "pure guarantee"),
        (("--epsilon", "1", "--delta", "1e-6", "--mechanism", "sketch", "--person", "3"), "one row only"),
        (("--epsilon", "1", "--schema", "s.toml"), "--publish"),
        (("--epsilon", "1", "--publish", "--rows", "3"), "--rows"),
        (("--epsilon", "1", "--runs", "10"), "--runs"),
        (("--epsilon", "1", "--confidence", "2"), "confidence"),
        (("--epsilon", "1", "--output", "no/such/folder/x"), "cannot be written"),
        ((), "--epsilon"),
    ],
)
def test_one_clear_line_for_what_makes_no_sense(run: Any, arguments: tuple[str, ...], told: str) -> None:
    code, out, err = run(*arguments)
    assert code == 2
    assert out == ""
    assert told in err
    assert err.count("\n") == 1

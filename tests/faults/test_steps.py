"""A fault at every change publishing makes to the disk: the short form of assurance.faults."""

from __future__ import annotations

from pathlib import Path

import pytest
from assurance.faults import FLOWS, WORDS, played
from assurance.system_calls import Fate, watched, why_not

pytestmark = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
refusing = pytest.mark.skipif(why_not("full") is not None, reason=str(why_not("full")))


def judged(flow: str, every: int, *fates: Fate) -> list[dict[str, object]]:
    tallies = played(flow, every, fates)
    problems = [problem for tally in tallies for problem in tally["problems"]]
    assert not problems, "\n".join(problems)
    return tallies


def test_kill_nine_at_every_step_of_publish() -> None:
    (tally,) = judged("publish and save", 1, "kill")
    steps = tally["steps"]
    assert isinstance(steps, list)
    assert tally["plays"] == len(steps) + 1 > 20
    # The journal's end is the charge; the rename is the release. In between: charged, and nothing half there.
    assert tally["charged"] == len(steps) - steps.index("unlink a.ledger-journal")
    assert tally["released"] == 1


@refusing
def test_a_disk_that_fills_up() -> None:
    """The command keeps a paid release elsewhere, and says so; before the charge it is refused."""
    (tally,) = judged("dpgram publish --overwrite", 6, "full from here")
    assert tally["released"] == tally["charged"]
    assert tally["refused"]


@refusing
@pytest.mark.parametrize(("flow", "every"), [("publish and save", 2), ("publish with learnt bounds", 12)])
def test_a_full_disk_is_told_in_one_line(flow: str, every: int) -> None:
    """Also where only what is kept for a repeated call cannot be written, and after the charge."""
    (tally,) = judged(flow, every, "full")
    assert tally["refused"]


@pytest.mark.full
@refusing
@pytest.mark.parametrize("flow", FLOWS)
def test_every_fault_at_every_step(flow: str) -> None:
    for tally in judged(flow, 1, *WORDS):
        assert tally["plays"] == len(list(tally["steps"])) + 1


@refusing
def test_the_watch_sees_tears_and_refuses(tmp_path: Path) -> None:
    """The watch has power: what it says it does to a child happens to it."""

    def write() -> int:
        place = tmp_path / "x"
        try:
            with place.open("wb", buffering=0) as file:
                file.write(b"0123456789")
                file.write(b"abc")
        except OSError as problem:
            return problem.errno or 1
        return 0

    calm = watched(write, tmp_path, "count", 0)
    assert calm.steps == ("openat x", "write x", "write x")
    assert calm.code == 0
    assert watched(write, tmp_path, "kill", 2).code is None
    assert (tmp_path / "x").read_bytes() == b"0123456789"
    assert watched(write, tmp_path, "torn", 1).code is None
    assert (tmp_path / "x").read_bytes() == b"01234"
    assert watched(write, tmp_path, "full", 1).code == 28
    assert (tmp_path / "x").read_bytes() == b""
    (tmp_path / "y").mkdir()
    assert watched(write, tmp_path / "y", "kill", 0).code == 0, "other folders are left alone"

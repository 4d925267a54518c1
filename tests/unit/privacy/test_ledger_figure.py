"""The picture of a ledger: one bar a charge, as tall as what was spent until then."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpgram.cli import run
from dpgram.privacy.events import GaussianEvent
from dpgram.privacy.ledger import Ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "x.ledger", name="x", epsilon=3, delta=1e-5)


def test_bars_add_up_to_what_is_spent(ledger: Ledger) -> None:
    for mu in (0.2, 0.3, 0.1):
        ledger.charge(GaussianEvent(mu=mu), adjacency="add-remove", unit=None)
    (axis,) = ledger.plot().axes
    below, own = axis.containers
    tops = [low.get_height() + bar.get_height() for low, bar in zip(below, own, strict=True)]
    assert tops[-1] == pytest.approx(float(ledger.spent / ledger.total))
    assert (np.diff(tops) > 0).all()
    assert "spent" in axis.get_title(loc="left")


@pytest.mark.parametrize(("name", "start"), [("b.png", b"\x89PNG"), ("b.svg", b"<?xml"), ("b.pdf", b"%PDF")])
def test_an_empty_ledger_is_drawn_from_the_command_line(
    ledger: Ledger, tmp_path: Path, name: str, start: bytes
) -> None:
    assert run(["ledger", "plot", str(ledger.path), "-o", str(tmp_path / name), "--dark"]) == 0
    assert (tmp_path / name).read_bytes().startswith(start)
    assert run(["ledger", "plot", str(ledger.path), "-o", str(tmp_path / name)]) == 2

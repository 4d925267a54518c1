"""The whole price is reserved before the first draw, and what was not used comes back when all is over.

A kill before every write, flush, statement and draw; ten publications at once; a journal that is put back.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpgram as dg
from dpgram.core.noise import SystemEntropy
from dpgram.errors import BudgetExceeded, DpgramError, DpgramWarning, LearningError, LedgerError
from dpgram.privacy.accountant import GaussianEvent
from dpgram.privacy.ledger import Ledger
from dpgram.publishing import publication
from dpgram.publishing.measurements.gram import FirstGram
from dpgram.series import Series

from .test_resuming import check, runs_of

TABLE = {"x": [float(i % 10) for i in range(900)]}
SCHEMA = dg.Schema(dg.numeric("x", 0, 10))
ASKED: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6, "progress": False}


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "some.ledger", name="some", epsilon=3.0, delta=1e-5)


@pytest.mark.skipif(os.name != "posix", reason="forks and signals of POSIX")
def test_killed_before_every_write_flush_and_draw(tmp_path: Path) -> None:
    """Before one is after the one before it: each part charged once, each draw published once."""
    runs = runs_of(tmp_path, 0)
    assert len(runs) > 30
    for run in runs:
        check(run)
    stages = {sum("stage" in line for line in run["between"]["kept"]) for run in runs}
    assert stages >= {0, 1, 2, 3, 4}
    states = {tuple(run["between"]["closed"]) for run in runs}
    assert states == {(), (False,), (True,)}
    assert sum("refused" in run["release"] for run in runs) >= 1


PLAY = """
import json, os, sys
import numpy as np
import dpgram as dg
from dpgram.core.noise import SystemEntropy
from dpgram.errors import BudgetExceeded
from dpgram.publishing import publish

def play(number):
    table = {"x": np.arange(900.0) % 10}
    schema = dg.Schema(dg.numeric("x", 0, 10))
    try:
        found = publish(
            table, schema, epsilon=1, delta=1e-6, ledger=sys.argv[1], note=str(number), progress=False
        )
        return found.receipt.receipt_id
    except BudgetExceeded as refused:
        return str(refused)

children = []
for number in range(10):
    child = os.fork()
    if child == 0:
        os.write(1, json.dumps(play(number)).encode() + b"\\n")
        os._exit(0)
    children.append(child)
for child in children:
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(os.name != "posix", reason="forks of POSIX")
def test_ten_publications_at_once(tmp_path: Path) -> None:
    """As many as fit are published; the others pay nothing, and nobody pays for a part."""
    ledger = Ledger.create(tmp_path / "some.ledger", name="some", epsilon=2.0, delta=1e-5)
    done = subprocess.run(
        [sys.executable, "-c", PLAY, str(ledger.path)],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
    )
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(told) == 10
    history = ledger.history()
    price = history[0].amount
    fit = int(ledger.total / price)
    assert 2 <= fit <= 8
    assert {entry.amount for entry in history} == {price}
    assert sorted(entry.receipt_id for entry in history) == sorted(each for each in told if " " not in each)
    assert len(history) == fit
    assert sum("Nothing was spent" in each for each in told) == 10 - fit
    assert all(entry.closed and 0 <= entry.given_back < price / 1000 for entry in history)
    assert [each.name for each in tmp_path.iterdir()] == ["some.ledger"]


def _plain(ledger: Ledger) -> object:
    return dg.publish(TABLE, SCHEMA, ledger=ledger, adaptive=False, **ASKED)


def _adaptive(ledger: Ledger) -> object:
    return dg.publish(TABLE, SCHEMA, ledger=ledger, **ASKED)


def _series(ledger: Ledger) -> object:
    path = ledger.path.with_name("some.series")
    return Series.create(path, SCHEMA, epsilon=1.0, delta=1e-6, periods=4, ledger=ledger)


def _fit(ledger: Ledger) -> object:
    from dpgram.estimators import SSP

    draw = np.random.default_rng(1)
    rows = draw.uniform(-0.5, 0.5, (200, 2))
    model = SSP(epsilon=1.0, delta=1e-6, x_norm=1.0, y_bound=1.0, ledger=ledger)
    return model.fit(rows, rows[:, 0])


@pytest.mark.parametrize("call", [_plain, _adaptive, _series, _fit])
def test_a_journal_put_back_after_the_end_is_refused(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, call: Callable[[Ledger], object]
) -> None:
    """Also one that was copied before anything was drawn: it would have drawn once more under one charge."""
    copies: list[tuple[Path, bytes]] = []
    honest = publication._charged

    def charged(*args: Any) -> Any:
        receipt = honest(*args)
        (path,) = ledger.path.parent.glob("*.unfinished-*")
        copies.append((path, path.read_bytes()))
        return receipt

    monkeypatch.setattr(publication, "_charged", charged)
    call(ledger)
    ((path, raw),) = copies
    assert not path.exists()
    (entry,) = ledger.history()
    assert entry.closed
    for beside in ledger.path.parent.glob("some.series*"):
        beside.unlink()
    path.touch(mode=0o600)
    path.write_bytes(raw)
    before = ledger.path.read_bytes()
    with pytest.raises(DpgramError, match=rf"{path.name} is of a publication that is over: entry 1 "):
        call(ledger)
    assert ledger.path.read_bytes() == before
    path.unlink()
    call(ledger)
    assert [entry.number for entry in ledger.history()] == [1, 3]


def test_what_somebody_else_leaves_too_little_for_draws_nothing(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look at the ledger and the charge: nothing was drawn, and nothing is spent."""
    whole, honest = float(ledger.total) ** 0.5, publication._charged

    def late(*args: Any) -> Any:
        ledger.charge(GaussianEvent(mu=0.99 * whole), adjacency="add-remove", unit=None)
        drawn.clear()  # the generator was tried out before
        return honest(*args)

    drawn: list[object] = []
    monkeypatch.setattr(publication, "_charged", late)
    monkeypatch.setattr(SystemEntropy, "discrete_gaussian", lambda self, *_: drawn.append(self))
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        _adaptive(ledger)
    assert drawn == []
    assert [entry.amount > ledger.total / 2 for entry in ledger.history()] == [True]
    assert [each.name for each in ledger.path.parent.iterdir()] == ["some.ledger"]


def test_any_other_failure_keeps_the_reservation(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> None:
        raise DpgramError("the noise is broken")

    with monkeypatch.context() as patch:
        patch.setattr(FirstGram, "record", broken)
        with pytest.raises(DpgramError, match="is broken"):
            _adaptive(ledger)
    (entry,) = ledger.history()
    assert (entry.closed, entry.cost) == (False, entry.amount)
    with pytest.warns(DpgramWarning, match="interrupted"):
        _adaptive(ledger)
    (entry,) = ledger.history()
    assert entry.closed


def test_a_stop_that_noisy_results_decide_gives_the_rest_back(ledger: Ledger) -> None:
    lost = {"x": ["?"] * 900}
    with pytest.raises(LearningError, match=r"spent on noisy counts alone, .* the rest is given back"):
        dg.publish(lost, SCHEMA, ledger=ledger, **ASKED)
    (entry,) = ledger.history()
    assert entry.closed
    assert 0.09 < float(entry.cost / entry.amount) < 0.11  # the share of histograms
    assert [each.name for each in ledger.path.parent.iterdir()] == ["some.ledger"]


def test_a_ledger_that_cannot_be_closed_costs_no_release(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away(*_: object, **__: object) -> None:
        raise LedgerError("the ledger is away")

    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "give_back", away)
        with pytest.warns(DpgramWarning, match="could not be closed .the ledger is away.: the same call"):
            first = dg.publish(TABLE, SCHEMA, ledger=ledger, **ASKED)
    with pytest.warns(DpgramWarning, match="interrupted"):
        again = dg.publish(TABLE, SCHEMA, ledger=ledger, **ASKED)
    assert again == first
    assert [entry.closed for entry in ledger.history()] == [True]

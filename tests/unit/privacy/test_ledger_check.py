"""Asking whether a charge would fit: as strict as the charge itself, in work that does not grow."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from dpgram.errors import BudgetExceeded, LedgerError
from dpgram.privacy.accountant import GaussianEvent
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.ledger import _file as ledger_file

SMALL = GaussianEvent(1e-4)


def pay(ledger: Ledger, times: int = 1) -> None:
    for _ in range(times):
        ledger.charge(SMALL, adjacency="add-remove", unit=None)


def ask(ledger: Ledger, event: GaussianEvent = SMALL) -> None:
    ledger.check(event, adjacency="add-remove", unit=None)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=1e-5)


@pytest.mark.parametrize("entries", [1, 40])
def test_the_work_does_not_grow_with_the_history(
    entries: int, ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    pay(ledger, entries)
    fetched = 0
    honest = ledger_file.query

    def counted(
        connection: sqlite3.Connection, sql: str, values: Sequence[object] = ()
    ) -> list[tuple[Any, ...]]:
        nonlocal fetched
        rows = honest(connection, sql, values)
        fetched += len(rows)
        return rows

    monkeypatch.setattr(ledger_file, "query", counted)
    ask(ledger)
    pay(ledger)
    assert 0 < fetched <= 40, fetched


def test_charges_of_others_are_counted(ledger: Ledger) -> None:
    half = GaussianEvent(0.19)
    ask(ledger, half)
    Ledger.open(ledger.path).charge(half, adjacency="add-remove", unit=None)
    with pytest.raises(BudgetExceeded, match="Nothing was spent"):
        ask(ledger, half)


def test_an_older_copy_and_another_ledger_are_noticed(ledger: Ledger, tmp_path: Path) -> None:
    pay(ledger)
    shutil.copy(ledger.path, tmp_path / "old")
    pay(ledger, 2)
    shutil.copy(tmp_path / "old", ledger.path)
    with pytest.raises(LedgerError, match="no longer holds entries that were seen"):
        ask(ledger)
    Ledger.create(tmp_path / "b.ledger", name="b", epsilon=1.0, delta=1e-5)
    shutil.copy(tmp_path / "b.ledger", ledger.path)
    with pytest.raises(LedgerError, match="another ledger lies at this path"):
        ask(ledger)


@pytest.mark.parametrize(("column", "value"), [("record", "'{}'"), ("head", "'0'")])
def test_what_others_wrote_is_verified(column: str, value: str, ledger: Ledger) -> None:
    """An entry that came after the last look is followed link by link, in a check as in a charge."""
    other = Ledger.open(ledger.path)
    pay(other, 2)
    with sqlite3.connect(ledger.path) as connection:
        connection.execute("DROP TRIGGER entries_stay")
        connection.execute(f"UPDATE entries SET {column} = {value} WHERE number = 1")
        connection.execute(
            "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries "
            "BEGIN SELECT RAISE(ABORT, 'append-only'); END"
        )
    connection.close()
    for call in (ask, pay):
        with pytest.raises(LedgerError, match="the chain breaks at entry 1"):
            call(ledger)

"""What was reserved and not used comes back, once, in a record that closes the receipt."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpgram.errors import BudgetExceeded, LedgerError
from dpgram.privacy.accountant import ApproximateEvent, Balance, Event, GaussianEvent, PureEvent, composed
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.ledger import _file as ledger_file
from dpgram.privacy.ledger.history import ledger_history
from dpgram.privacy.receipt import Receipt


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "some.ledger", name="some", epsilon=3.0, delta=1e-5, delta_reserved=1e-6)


def pay(ledger: Ledger, event: Event, receipt_id: str | None = None) -> Receipt:
    return ledger.charge(event, adjacency="add-remove", unit=None, receipt_id=receipt_id)


class TestClosing:
    @pytest.mark.parametrize(
        ("paid", "used", "left"),
        [
            (GaussianEvent(mu=0.4), GaussianEvent(mu=0.3), Fraction(0.3) ** 2),
            (GaussianEvent(mu=0.4), None, Fraction(0)),
            (GaussianEvent(mu=0.4), GaussianEvent(mu=0.4), Fraction(0.4) ** 2),
            (GaussianEvent(mu=0.4), GaussianEvent(mu=0.5), Fraction(0.4) ** 2),  # never more than was paid
        ],
    )
    def test_what_was_not_used_comes_back(
        self, ledger: Ledger, paid: Event, used: Event | None, left: Fraction
    ) -> None:
        before = ledger.spent
        receipt = pay(ledger, paid)
        ledger.give_back(receipt.receipt_id, used=used)
        assert 0 <= ledger.spent - before - left < Fraction(1, 2**119)
        (entry,) = ledger.history()
        assert entry.closed
        assert entry.cost == ledger.spent
        assert Ledger.open(ledger.path).spent == ledger.spent
        (line,) = ledger_history(ledger)
        assert line.left == pytest.approx(float(ledger.total - left))

    def test_of_the_reserve_too(self, ledger: Ledger) -> None:
        paid = composed([PureEvent(epsilon=0.2), ApproximateEvent(epsilon=0.0, delta=1e-7)])
        receipt = pay(ledger, paid)
        before = ledger.left().delta
        ledger.give_back(receipt.receipt_id, used=PureEvent(epsilon=0.2))
        assert 0 <= ledger.left().delta - before - Fraction(1e-7) < Fraction(1, 2**119)
        (entry,) = ledger.history()
        assert (entry.given_back, entry.delta_given_back) == (0, entry.delta)

    def test_once(self, ledger: Ledger) -> None:
        receipt = pay(ledger, GaussianEvent(mu=0.4))
        ledger.give_back(receipt.receipt_id, used=GaussianEvent(mu=0.3))
        spent = ledger.spent
        ledger.give_back(receipt.receipt_id, used=None)
        assert (ledger.spent, ledger.entries) == (spent, 2)

    def test_of_no_charge(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="no charge with this number"):
            ledger.give_back("0" * 32, used=None)
        assert ledger.entries == 0

    def test_a_receipt_is_charged_once(self, ledger: Ledger) -> None:
        receipt = pay(ledger, GaussianEvent(mu=0.1))
        for _ in range(2):
            with pytest.raises(LedgerError, match=r"in the ledger already.*Nothing was spent"):
                pay(ledger, GaussianEvent(mu=0.1), receipt.receipt_id)
            ledger.give_back(receipt.receipt_id, used=None)
        assert len(ledger.history()) == 1

    def test_what_did_not_fit_beside_it_fits_now(self, ledger: Ledger) -> None:
        half = GaussianEvent(mu=float(ledger.total) ** 0.5 * 0.8)
        receipt = pay(ledger, half)
        with pytest.raises(BudgetExceeded):
            pay(ledger, half)
        ledger.give_back(receipt.receipt_id, used=GaussianEvent(mu=0.01))
        pay(ledger, half)

    def test_a_note_that_looks_like_one_is_none(self, ledger: Ledger) -> None:
        receipt = ledger.charge(
            GaussianEvent(mu=0.4), adjacency="add-remove", unit=None, note='"closes":"' + "0" * 32 + '"'
        )
        with pytest.raises(LedgerError, match="no charge"):
            ledger.give_back("0" * 32, used=None)
        ledger.give_back(receipt.receipt_id, used=None)
        assert [entry.closed for entry in ledger.history()] == [True]

    def test_receipts_still_verify_and_closings_are_no_charges(self, ledger: Ledger) -> None:
        receipts = [pay(ledger, GaussianEvent(mu=0.1)) for _ in range(3)]
        ledger.give_back(receipts[0].receipt_id, used=None)
        found = ledger.verify([receipts[0], receipts[2]])
        assert (found.entries, found.unclaimed) == (3, (2,))
        forged = Receipt(
            ledger_name=receipts[0].ledger_name,
            ledger_id=receipts[0].ledger_id,
            entry=4,
            receipt_id=receipts[0].receipt_id,
            event=receipts[0].event,
            head=receipts[0].head,
        )
        with pytest.raises(LedgerError, match="another charge there"):
            ledger.verify([forged])


def _more(record: dict[str, Any]) -> None:
    record["amount"] = str(2 * int(record["amount"]) + 10**40)


def _delta(record: dict[str, Any]) -> None:
    record["delta"] = "1"


def _other(record: dict[str, Any]) -> None:
    record["charge"] = 2


def _itself(record: dict[str, Any]) -> None:
    record["charge"] = 3


def _nobody(record: dict[str, Any]) -> None:
    record["closes"] = "0" * 32


@pytest.mark.parametrize("change", [_more, _delta, _other, _itself, _nobody, None])
def test_a_closing_that_gives_back_what_was_not_charged_is_refused(
    ledger: Ledger, change: Callable[[dict[str, Any]], None] | None
) -> None:
    """With right hashes: somebody has written the chain again. None: the same charge is closed twice."""
    receipt = pay(ledger, GaussianEvent(mu=0.4))
    pay(ledger, GaussianEvent(mu=0.1))
    seen = Ledger.open(ledger.path)
    ledger.give_back(receipt.receipt_id, used=GaussianEvent(mu=0.3))
    connection = sqlite3.connect(ledger.path)
    ((text, head),) = connection.execute("SELECT record, head FROM entries WHERE number = 3").fetchall()
    ((before,),) = connection.execute("SELECT head FROM entries WHERE number = 2").fetchall()
    record = json.loads(text)
    if change is None:
        record["entry"], number, before = 4, 4, head
    else:
        change(record)
        number = 3
        connection.execute("DROP TRIGGER entries_last")
        connection.execute("DELETE FROM entries WHERE number = 3")
        connection.execute(next(each for each in ledger_file._SCHEMA if "entries_last" in each))
    text = json.dumps(record, separators=(",", ":"))
    head = ledger_file._next_head(before, text)
    connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (number, text, head))
    connection.execute("UPDATE tip SET entries = ?, head = ?", (number, head))
    connection.commit()
    connection.close()
    for refused in (
        lambda: Ledger.open(ledger.path),
        lambda: seen.check(GaussianEvent(mu=0.1), adjacency="add-remove", unit=None),
    ):
        with pytest.raises(LedgerError, match="gives back what was not charged"):
            refused()


def _play(path: Path, seed: int, log: Path) -> None:
    """Charges of random size, each closed some time later; every refusal is written down as it was made."""
    dice, open_ones, lines = random.Random(seed), [], []
    refuse = Ledger._refuse_excess

    def watched(self: Ledger, event: Event, cost: Any, balance: Balance) -> None:
        try:
            refuse(self, event, cost, balance)
        except BudgetExceeded:
            lines.append([str(cost.amount), str(balance.spent)])
            raise

    Ledger._refuse_excess = watched  # type: ignore[method-assign]
    ledger = Ledger.open(path)
    for _ in range(20):
        event = GaussianEvent(mu=dice.uniform(0.05, 0.3))
        with contextlib.suppress(BudgetExceeded):
            open_ones.append((pay(ledger, event), event))
        if open_ones and dice.random() < 0.8:
            receipt, event = open_ones.pop(dice.randrange(len(open_ones)))
            ledger.give_back(receipt.receipt_id, used=GaussianEvent(mu=event.mu * dice.uniform(0.1, 0.4)))
    log.write_text(json.dumps(lines), encoding="utf-8")


@pytest.mark.skipif(os.name != "posix", reason="forks of POSIX")
def test_ten_processes_on_one_ledger(ledger: Ledger, tmp_path: Path) -> None:
    """Never over, and no charge refused that fits beside what was reserved at that moment."""
    logs, children = [tmp_path / f"{number}.json" for number in range(10)], []
    for seed, log in enumerate(logs):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                _play(ledger.path, seed, log)
                status = 0
            finally:
                os._exit(status)
        children.append(child)
    assert {os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children} == {0}
    _, links, tip = ledger_file.read(ledger.path, timeout=60.0)
    sums, at = {Fraction(0)}, ledger_file.Tip(0, "")
    for link in links:
        at = at.after(link)
        assert 0 <= at.amount <= ledger.total
        sums.add(at.amount)
    assert at.amount == tip.amount
    refused = [tuple(map(Fraction, each)) for log in logs for each in json.loads(log.read_text())]
    closings = [link for link in links if isinstance(link.record, ledger_file.Closing)]
    assert min(len(refused), len(closings), len(links) - len(closings)) >= 10
    for cost, spent in refused:
        assert spent in sums
        assert spent + cost > ledger.total

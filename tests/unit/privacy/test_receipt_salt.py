"""What a receipt hides: its head commits to note, second and budget, and must not confirm guesses."""

from __future__ import annotations

import json
import shutil
import sqlite3
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec
import pytest

from dpgram.errors import LedgerError
from dpgram.privacy.accountant import GaussianEvent, capacity, price
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger
from dpgram.privacy.ledger import _file as ledger_file
from dpgram.privacy.receipt import Receipt
from dpgram.release import load

FIRST = Path(__file__).resolve().parents[2] / "golden" / "first_ledger"
"""A ledger and its two releases, written by dpgram 0.1.0 before records had a salt; never made again."""
MADE = datetime(2026, 11, 16, 13, 26, 0, tzinfo=UTC)


def guessed_head(receipt: Receipt, time: str, note: str, salt: str | None) -> str:
    """The head of a first entry, by somebody who has the receipt and guesses everything else rightly."""
    terms = ledger_file.LedgerTerms(
        ledger_id=receipt.ledger_id,
        name=receipt.ledger_name,
        epsilon=3.0,
        delta=1e-5,
        adjacency="add-remove",
        unit=None,
        currency="mu2",
        reserve=0.0,
        capacity=ledger_file.to_units(capacity(Guarantee(3.0, 1e-5), "mu2")),
    )
    record = ledger_file.Record(
        entry=1,
        receipt_id=receipt.receipt_id,
        time=time,
        event=receipt.event,
        amount=ledger_file.to_units(price(receipt.event, "mu2").amount),
        delta="0",
        note=note,
        salt=salt,
    )
    first, after = (msgspec.json.encode(part).decode() for part in (terms, record))
    return ledger_file._next_head(ledger_file._first_head(first), after.replace(',"salt":null', ""))


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "visits.ledger", name="visits", epsilon=3.0, delta=1e-5)


def charged(ledger: Ledger, note: str) -> Receipt:
    return ledger.charge(GaussianEvent(0.1), adjacency="add-remove", unit=None, note=note)


def salts(path: Path) -> list[str]:
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT record FROM entries ORDER BY number").fetchall()
    connection.close()
    return [json.loads(text)["salt"] for (text,) in rows]


def test_the_dictionary_had_power_over_receipts_without_a_salt() -> None:
    """The attack on a release of the first form: 600 guesses find the note, the second and the budget."""
    receipt = load(FIRST / "visits-1.dpgram.json").receipt
    assert receipt is not None
    notes = ["", "for the board, part 1", "monthly"]
    seconds = [(MADE + timedelta(seconds=n)).isoformat(timespec="seconds") for n in range(200)]
    found = [
        (time, note)
        for note in notes
        for time in seconds
        if guessed_head(receipt, time, note, salt=None) == receipt.head
    ]
    assert found == [("2026-11-16T13:26:11+00:00", "for the board, part 1")]


def test_a_receipt_does_not_confirm_a_right_guess(ledger: Ledger) -> None:
    receipt = charged(ledger, "for the board")
    (entry,) = ledger.history()
    assert guessed_head(receipt, entry.time, entry.note, salt=None) != receipt.head
    # The guess is right in all but the salt: with it the head is found again.
    (salt,) = salts(ledger.path)
    assert guessed_head(receipt, entry.time, entry.note, salt) == receipt.head


def test_every_record_has_a_salt_of_its_own_that_stays_in_the_ledger(ledger: Ledger) -> None:
    receipts = [charged(ledger, "") for _ in range(5)]
    found = salts(ledger.path)
    assert len(set(found)) == 5
    assert all(len(bytes.fromhex(salt)) == 16 for salt in found)
    told = msgspec.json.encode(receipts).decode() + repr(ledger.history()) + repr(ledger)
    assert not any(salt in told for salt in found)
    assert not set(found) & {receipt.receipt_id for receipt in receipts}


def test_an_altered_salt_is_seen(ledger: Ledger) -> None:
    receipt = charged(ledger, "")
    (salt,) = salts(ledger.path)
    connection = sqlite3.connect(ledger.path, isolation_level=None)
    (trigger,) = connection.execute("SELECT sql FROM sqlite_master WHERE name = 'entries_stay'").fetchone()
    connection.execute("DROP TRIGGER entries_stay")
    other = format(int(salt, 16) ^ 1, "032x")
    connection.execute("UPDATE entries SET record = replace(record, ?, ?)", (salt, other))
    connection.execute(trigger)
    connection.close()
    with pytest.raises(LedgerError, match="chain breaks at entry 1"):
        ledger.verify([receipt])


def test_a_ledger_of_the_first_form_verifies_and_can_be_charged(tmp_path: Path) -> None:
    path = tmp_path / "visits.ledger"
    shutil.copy(FIRST / "visits.sqlite", path)
    releases = [load(FIRST / f"visits-{number}.dpgram.json") for number in (1, 2)]
    ledger = Ledger.open(path)
    assert ledger.verify(releases).unclaimed == ()
    assert [entry.note for entry in ledger.history()] == ["for the board, part 1", "for the board, part 2"]
    receipt = charged(ledger, "now with a salt")
    assert Ledger.open(path).verify([*releases, receipt]).entries == 3

"""The ledger's file: SQLite, append-only, every row chained by SHA-256 to the one before.

A charge is one transaction under a rollback journal with synchronous=EXTRA, so it is wholly on the disk
before it is acknowledged, or wholly absent.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Final, Literal, TypeVar, final

import msgspec
from msgspec import Meta

from dpgram.errors import DpgramError, LedgerError
from dpgram.files import LEDGER
from dpgram.privacy.events import Event
from dpgram.privacy.exact_sums import UNITS
from dpgram.privacy.ledger._sqlite import (
    ALTERED,
    connected,
    identity,
    query,
    snapshot,
    sync_folder,
    transaction,
)

VERSION: Final = 1
_SCHEMA: Final = (
    "CREATE TABLE terms (number INTEGER PRIMARY KEY CHECK (number = 0), record TEXT NOT NULL)",
    "CREATE TABLE entries (number INTEGER PRIMARY KEY, record TEXT NOT NULL, head TEXT NOT NULL)",
    "CREATE TABLE tip (number INTEGER PRIMARY KEY CHECK (number = 0), entries INTEGER, head TEXT)",
    "CREATE TRIGGER terms_stay BEFORE UPDATE ON terms BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER terms_last BEFORE DELETE ON terms BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER entries_stay BEFORE UPDATE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
    "CREATE TRIGGER entries_last BEFORE DELETE ON entries BEGIN SELECT RAISE(ABORT, 'append-only'); END",
)

Hexadecimal = Annotated[str, Meta(pattern=r"^[0-9a-f]{32}$")]
Units = Annotated[str, Meta(pattern=r"^[0-9]{1,400}$")]
"""A whole number of units of 2⁻¹²⁰ in decimal digits: SQLite's own integers end at 2⁶³."""


@final
class LedgerTerms(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a ledger is for: fixed when it is created, and the first link of its chain."""

    ledger_id: Hexadecimal
    name: str
    epsilon: float
    delta: float
    adjacency: Literal["add-remove", "replace-one"]
    unit: str | None
    currency: Literal["mu2", "rho", "epsilon"]
    reserve: float
    capacity: Units


@final
class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One charge, as it is written and hashed."""

    entry: int
    receipt_id: Hexadecimal
    time: str
    event: Event
    amount: Units
    delta: Units
    note: str
    salt: Hexadecimal | None = None
    """128 random bits that are never published. A receipt carries the head, which hashes this record: without
    them, whoever guesses the note, the second and the budget could check the guess. None: an entry written
    before there were salts."""


@final
class Closing(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What was left of a charge when it was done with: nothing is drawn under its receipt any more."""

    closes: Hexadecimal
    """The receipt of the charge. First of all fields: by it a closing is told from a charge."""
    charge: int
    """The entry of the charge."""
    entry: int
    time: str
    amount: Units
    """What is given back, at most what was charged."""
    delta: Units
    salt: Hexadecimal


@final
@dataclass(frozen=True, slots=True)
class Link:
    """A record and the head of the chain right after it."""

    record: Record | Closing
    head: str


@final
@dataclass(frozen=True, slots=True)
class Tip:
    """Where the chain stands: how many entries, their head, and what they add up to.

    The sums are whole numbers of units: a long chain is followed twice as fast as with fractions.
    """

    entries: int
    head: str
    units: int = 0
    delta_units: int = 0

    @property
    def amount(self) -> Fraction:
        """What the entries cost together, in the ledger's currency."""
        return Fraction(self.units, UNITS)

    @property
    def delta(self) -> Fraction:
        """What they took out of the reserve."""
        return Fraction(self.delta_units, UNITS)

    def after(self, link: Link) -> Tip:
        record = link.record
        sign = -1 if isinstance(record, Closing) else 1
        return Tip(
            self.entries + 1,
            link.head,
            self.units + sign * int(record.amount),
            self.delta_units + sign * int(record.delta),
        )


def to_units(amount: Fraction) -> str:
    """A multiple of 2⁻¹²⁰ as the whole number that is written."""
    units = amount * UNITS
    if units.denominator != 1:
        raise ValueError("not a whole number of units")
    return str(units.numerator)


def from_units(units: str) -> Fraction:
    return Fraction(int(units), UNITS)


def create(path: Path, terms: LedgerTerms, *, timeout: float) -> None:
    """A new file at `path`, durable when this returns. Never replaces anything."""
    journal = path.with_name(path.name + "-journal")
    # One without content undoes nothing: SQLite takes it for absent, and a creation cut short leaves one.
    if journal.exists() and journal.stat().st_size > 0:
        raise LedgerError(
            "the journal of another ledger lies where this ledger's would be",
            got=str(journal),
            remedy="Move it back to the ledger it belongs to, or choose another name",
        )
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666))
    except FileExistsError:
        raise LedgerError(
            "there is already a file at the ledger's path; a ledger is never replaced",
            got=str(path),
            remedy="Open it with Ledger.open, or choose another path",
        ) from None
    except OSError as error:
        raise LedgerError("the ledger cannot be created here", got=f"{path}: {error.strerror}") from error
    try:
        with connected(path, timeout) as connection, transaction(connection, path):
            connection.execute(f"PRAGMA application_id = {LEDGER}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
            for statement in _SCHEMA:
                connection.execute(statement)
            text = _encode(terms)
            connection.execute("INSERT INTO terms VALUES (0, ?)", (text,))
            connection.execute("INSERT INTO tip VALUES (0, 0, ?)", (_first_head(text),))
        sync_folder(path.parent)
    except BaseException as error:
        # Nothing was ever charged to it: what is left of it, and of its journal, is in nobody's way.
        for left in (path, journal):
            with suppress(OSError):
                left.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise LedgerError("the ledger cannot be created here", got=f"{path}: {error.strerror}") from error
        raise


def read(path: Path, *, timeout: float) -> tuple[LedgerTerms, tuple[Link, ...], Tip]:
    """Everything in the file, after checking all of it: pages, tables, chain."""
    with connected(path, timeout) as connection, snapshot(connection):
        _check_kind(connection, path)
        damage = query(connection, "PRAGMA quick_check(1)")
        if damage != [("ok",)]:
            raise _corrupted(path, str(damage[0][0]))
        terms, text = _read_terms(connection, path)
        links, tip = _follow(connection, path, Tip(0, _first_head(text)))
        return terms, links, tip


def follow(path: Path, terms: LedgerTerms, known: Tip, *, timeout: float) -> Tip:
    """The tip of the ledger with these terms, checked as `writing` checks it: from `known` on."""
    with connected(path, timeout) as connection, snapshot(connection):
        _check_kind(connection, path)
        _check_terms(connection, path, terms)
        return _follow(connection, path, known)[1]


@final
@dataclass(frozen=True, slots=True)
class Writing:
    """One open transaction: the verified tip, and the way to append to it."""

    connection: sqlite3.Connection
    tip: Tip
    path: Path

    def charged(self, receipt_id: str) -> Link | None:
        """The charge with this receipt."""
        return self._holding(f'"receipt_id":"{receipt_id}"')

    def closing(self, receipt_id: str) -> Link | None:
        """What closed it."""
        return self._holding(f'"closes":"{receipt_id}"')

    def _holding(self, field: str) -> Link | None:
        """The first entry with this field: within a text, quotation marks would be escaped."""
        found = query(
            self.connection,
            "SELECT record, head FROM entries WHERE instr(record, ?) > 0 ORDER BY number LIMIT 1",
            (field,),
        )
        return Link(_record(_text(found[0][0], self.path), self.path), found[0][1]) if found else None

    def append(self, record: Record | Closing) -> Link:
        """Add one record. It is durable once the transaction has ended, not before."""
        text = _encode(record)
        link = Link(record, _next_head(self.tip.head, text))
        self.connection.execute("INSERT INTO entries VALUES (?, ?, ?)", (record.entry, text, link.head))
        self.connection.execute("UPDATE tip SET entries = ?, head = ?", (record.entry, link.head))
        return link


@contextmanager
def writing(path: Path, terms: LedgerTerms, known: Tip, *, timeout: float) -> Iterator[Writing]:
    """One durable transaction on the ledger with these terms, which must still hold everything `known`."""
    before = identity(path)
    with connected(path, timeout) as connection, transaction(connection, path):
        _check_kind(connection, path)
        _check_terms(connection, path, terms)
        _, tip = _follow(connection, path, known)
        yield Writing(connection, tip, path)
    if identity(path) != before:
        raise LedgerError(
            "the ledger file was replaced while it was being charged",
            got=str(path),
            remedy="Find out which copy is the right one; treat the charge as spent in both",
        )


_Struct = TypeVar("_Struct", LedgerTerms, Record, Closing)


def _encode(struct: LedgerTerms | Record | Closing) -> str:
    return msgspec.json.encode(struct).decode("utf-8")


def _decode(kind: type[_Struct], text: str, path: Path) -> _Struct:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, DpgramError) as error:
        raise LedgerError(
            f"an entry of the ledger {path} cannot be understood",
            got=error,
            remedy="It was altered, or written by a newer dpgram: update dpgram before charging it",
        ) from error


def _record(text: str, path: Path) -> Record | Closing:
    if text.startswith('{"closes":'):
        return _decode(Closing, text, path)
    return _decode(Record, text, path)


def _text(cell: object, path: Path) -> str:
    """SQLite lets any cell hold any type; ours hold text."""
    if not isinstance(cell, str):
        raise _altered(path, f"a cell holds {type(cell).__name__}")
    return cell


def _first_head(text: str) -> str:
    return hashlib.sha256(b"dpgram-ledger/1\n" + text.encode("utf-8")).hexdigest()


def _next_head(head: str, text: str) -> str:
    return hashlib.sha256(head.encode("ascii") + b"\n" + text.encode("utf-8")).hexdigest()


def _read_terms(connection: sqlite3.Connection, path: Path) -> tuple[LedgerTerms, str]:
    rows = query(connection, "SELECT record FROM terms")
    if len(rows) != 1:
        raise _altered(path, f"{len(rows)} sets of terms")
    text = _text(rows[0][0], path)
    return _decode(LedgerTerms, text, path), text


def _check_terms(connection: sqlite3.Connection, path: Path, terms: LedgerTerms) -> None:
    found, _ = _read_terms(connection, path)
    if found != terms:
        raise LedgerError(
            "another ledger lies at this path than the one that was opened",
            got=f"{path} holds {found.name!r} ({found.ledger_id})",
            limit=f"{terms.name!r} ({terms.ledger_id})",
            remedy="Put the right file back. Nothing was spent",
        )


def _follow(connection: sqlite3.Connection, path: Path, known: Tip) -> tuple[tuple[Link, ...], Tip]:
    """The links after `known` and the tip they lead to, each checked against the hash before it."""
    stored = query(connection, "SELECT entries, head FROM tip")
    rows = query(
        connection,
        "SELECT number, record, head FROM entries WHERE number >= ? ORDER BY number",
        (known.entries or -(1 << 63),),
    )
    if known.entries:
        if not rows or rows[0][0] != known.entries or rows[0][2] != known.head:
            raise LedgerError(
                f"the ledger {path} no longer holds entries that were seen in it",
                got=f"entry {known.entries} is missing or another one",
                remedy=f"It was replaced by an older copy or altered. {ALTERED}",
            )
        rows = rows[1:]
    links: list[Link] = []
    closed: set[str] = set()
    tip = known
    for number, cell, head in rows:
        text = _text(cell, path)
        if number != tip.entries + 1 or head != _next_head(tip.head, text):
            raise _altered(path, f"the chain breaks at entry {tip.entries + 1}")
        record = _record(text, path)
        if record.entry != number:
            raise _altered(path, f"entry {number} calls itself {record.entry}")
        if isinstance(record, Closing):
            _check_closing(connection, path, record, closed)
        links.append(Link(record, head))
        tip = tip.after(links[-1])
    if stored != [(tip.entries, tip.head)]:
        raise _altered(path, f"{tip.entries} entries are not what was written last: some were cut off")
    return tuple(links), tip


def _check_closing(connection: sqlite3.Connection, path: Path, closing: Closing, closed: set[str]) -> None:
    """Only a charge that stands before it is closed, once, and gives back at most what it took.

    Proof: proofs/filters.md#filters-back.
    """
    rows = query(connection, "SELECT record FROM entries WHERE number = ?", (closing.charge,))
    charge = _record(_text(rows[0][0], path), path) if rows and closing.charge < closing.entry else None
    if (
        not isinstance(charge, Record)
        or charge.receipt_id != closing.closes
        or closing.closes in closed
        or int(closing.amount) > int(charge.amount)
        or int(closing.delta) > int(charge.delta)
    ):
        raise _altered(path, f"entry {closing.entry} gives back what was not charged")
    closed.add(closing.closes)


def _check_kind(connection: sqlite3.Connection, path: Path) -> None:
    """A ledger of a version we know, with our tables and nothing else (no foreign trigger, no view)."""
    if query(connection, "PRAGMA page_count") == [(0,)]:
        raise LedgerError(
            "this ledger is empty: its creation was cut short, or it was truncated",
            got=str(path),
            remedy="If nothing was ever charged to it, delete it and create it again",
        )
    (application,) = query(connection, "PRAGMA application_id")[0]
    if application != LEDGER:
        raise LedgerError("this file is not a dpgram ledger", got=str(path), remedy="Check the path")
    (version,) = query(connection, "PRAGMA user_version")[0]
    if version != VERSION:
        raise LedgerError(
            "this ledger was written by a newer dpgram",
            got=f"version {version}",
            limit=f"version {VERSION}",
            remedy="Update dpgram; nothing was changed",
        )
    found = {row[0] for row in query(connection, "SELECT sql FROM sqlite_master WHERE sql IS NOT NULL")}
    if found != set(_SCHEMA):
        raise _altered(path, "its tables are not those of a ledger")


def _altered(path: Path, got: str) -> LedgerError:
    return LedgerError(f"the ledger {path} was altered", got=got, remedy=ALTERED)


def _corrupted(path: Path, got: str) -> LedgerError:
    return LedgerError(f"the ledger {path} is damaged", got=got, remedy=ALTERED)

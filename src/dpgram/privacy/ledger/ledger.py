"""Budgets on disk: Σ cost ≤ capacity, checked and written in one durable transaction before noise is drawn.

A ledger belongs to one data set, by a name the curator gives it, and fixes the neighbouring relation, the
privacy unit and the currency. However the charges are chosen, everything released together is (ε, δ)-DP
(proofs/filters.md). It stays with the curator and holds no data and no digest of data.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, final

from dpgram.core.noise import SystemEntropy
from dpgram.errors import BudgetExceeded, GuaranteeError, LedgerError
from dpgram.privacy.accountant import (
    Balance,
    Currency,
    Event,
    Price,
    capacity,
    describe,
    guarantee_of,
    price,
)
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.adjacency import adjacency as adjacency_named
from dpgram.privacy.guarantee import Guarantee, as_number
from dpgram.privacy.ledger import _file as ledger_file
from dpgram.privacy.ledger._verify import (
    PaidRelease,
    ReleaseOrReceipt,
    Verification,
    unit_words,
    verification,
)
from dpgram.privacy.ledger.remaining import Left, advice, in_distinct_digits, largest_release
from dpgram.privacy.receipt import Receipt, next_receipt_id

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["Entry", "Ledger", "Left", "PaidRelease", "Receipt", "Verification"]

TIMEOUT: Final = 60.0
"""Seconds a charge waits for others to finish theirs."""
_LONGEST_TEXT: Final = 1000


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One charge of the history, and what came back of it."""

    number: int
    time: str
    """When it was charged, in UTC."""
    event: Event
    amount: Fraction
    """What was charged, in the ledger's currency."""
    delta: Fraction
    """What was charged of the reserve."""
    note: str
    receipt_id: str
    head: str
    """The head of the chain right after it."""
    closed: bool = False
    """Whether the publication that it paid for is over: nothing more is drawn under its receipt."""
    given_back: Fraction = Fraction(0)
    """What was reserved and not used, in the ledger's currency."""
    delta_given_back: Fraction = Fraction(0)

    @property
    def cost(self) -> Fraction:
        """What it takes of the ledger for good, or until it is closed."""
        return self.amount - self.given_back


@final
class Ledger:
    """One budget for one data set. Safe to use from many threads and processes at once."""

    def __init__(
        self, path: Path, terms: ledger_file.LedgerTerms, tip: ledger_file.Tip, timeout: float
    ) -> None:
        """Not for callers: use `Ledger.create` or `Ledger.open`."""
        self._path = path
        self._terms = terms
        self._tip = tip
        self._timeout = timeout
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, in this process or another, is the same file opened again: there is one budget."""
        return partial(Ledger.open, timeout=self._timeout), (self._path,)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        *,
        name: str,
        epsilon: float,
        delta: float,
        adjacency: str | Adjacency = "add-remove",
        unit: str | None = None,
        currency: Currency | None = None,
        delta_reserved: float = 0.0,
        timeout: float = TIMEOUT,
    ) -> Self:
        """A new ledger with a total budget of (epsilon, delta), warned of if large. Never replaces a file.

        `currency` is "mu2" where delta > 0 and "epsilon" where it is 0, unless given; `delta_reserved`,
        a probability below `delta`, is set aside for good for releases that are only known to be (ε, δ)-DP.

        >>> ledger = dg.Ledger.create("clinic.ledger", name="clinic", epsilon=3, delta=1e-6)
        >>> ledger.guarantee
        Guarantee(epsilon=3.0, delta=1e-06)
        """
        guarantee = Guarantee.checked(as_number("epsilon", epsilon), as_number("delta", delta))
        chosen: Currency = currency or ("mu2" if guarantee.delta > 0.0 else "epsilon")
        terms = ledger_file.LedgerTerms(
            ledger_id=_random_hex(),
            name=_checked_text("the name of a ledger", name, empty=False),
            epsilon=guarantee.epsilon,
            delta=guarantee.delta,
            adjacency=_relation(adjacency).name,
            unit=None if unit is None else _checked_text("the unit", unit, empty=False),
            currency=chosen,
            reserve=float(delta_reserved),
            capacity=ledger_file.to_units(capacity(guarantee, chosen, float(delta_reserved))),
        )
        place = Path(path).absolute()
        ledger_file.create(place, terms, timeout=timeout)
        return cls.open(place, timeout=timeout)

    @classmethod
    def open(cls, path: str | os.PathLike[str], *, timeout: float = TIMEOUT) -> Self:
        """The ledger at `path`, after checking all of it.

        >>> dg.Ledger.open(ledger.path).name
        'people'
        """
        place = Path(path).absolute()
        terms, _, tip = ledger_file.read(place, timeout=timeout)
        allowed = capacity(Guarantee(terms.epsilon, terms.delta), terms.currency, terms.reserve)
        # A later dpgram may compute the last digits of a capacity differently; more than that is a forgery.
        if ledger_file.from_units(terms.capacity) > allowed * (1 + Fraction(1, 10**9)):
            raise LedgerError(
                f"the ledger {place} was altered",
                got=f"a capacity of {float(ledger_file.from_units(terms.capacity)):g}",
                limit=f"{float(allowed):g}, what its epsilon and delta allow",
            )
        return cls(place, terms, tip, timeout)

    @property
    def path(self) -> Path:
        """Where the file is."""
        return self._path

    @property
    def name(self) -> str:
        """The curator's name for the data set."""
        return self._terms.name

    @property
    def ledger_id(self) -> str:
        """The random identity every receipt repeats."""
        return self._terms.ledger_id

    @property
    def guarantee(self) -> Guarantee:
        """What everything charged here satisfies together."""
        return Guarantee(self._terms.epsilon, self._terms.delta)

    @property
    def adjacency(self) -> str:
        """The relation all releases must be made under."""
        return self._terms.adjacency

    @property
    def unit(self) -> str | None:
        """The privacy unit all releases must be made for; None: one row."""
        return self._terms.unit

    @property
    def currency(self) -> Currency:
        """What is added up."""
        return self._terms.currency

    @property
    def delta_reserved(self) -> float:
        """The part of δ set aside for releases that may fail with some probability."""
        return self._terms.reserve

    @property
    def total(self) -> Fraction:
        """The capacity, in the ledger's currency."""
        return ledger_file.from_units(self._terms.capacity)

    @property
    def spent(self) -> Fraction:
        """What has been charged so far, by anybody, less what was given back."""
        return self._read()[1].amount

    @property
    def entries(self) -> int:
        """How many entries this object has seen so far, without looking again: charges and closings."""
        with self._lock:
            return self._tip.entries

    def left(self) -> Left:
        """What can still be charged.

        >>> print(ledger.left())
        100% of the budget is left: enough for one release of ε = 2 at δ = 1e-06
        """
        links, tip = self._read()
        balance = self._balance(tip)
        found, history = self._left(balance), _history(links)
        if not history:
            return found
        last = _last_release(history)
        cost = Price(
            sum((part.amount for part in last), Fraction(0)), sum((part.delta for part in last), Fraction(0))
        )
        like = "the last release" if len(last) > 1 or last[0].closed else found.like
        return replace(found, more=_times(cost, balance), like=like)

    def left_after(self, receipts: Sequence[Receipt]) -> Left:
        """What can still be charged, in releases like the one that these receipts paid for.

        >>> release = dg.publish(table, schema, epsilon=1, delta=1e-6, ledger=ledger)
        >>> print(ledger.left_after(release.receipts))
        72% of the budget is left: enough for 2 more like this one, or for one release of ε = 1.673 ...
        """
        balance = self._balance(self._read()[1])
        costs = [price(receipt.event, self.currency) for receipt in receipts]
        whole = Price(
            sum((cost.amount for cost in costs), Fraction(0)),
            sum((cost.delta for cost in costs), Fraction(0)),
        )
        return replace(self._left(balance), more=_times(whole, balance), like="this one")

    def history(self) -> tuple[Entry, ...]:
        """Every charge, oldest first, with what was given back of it.

        >>> from dpgram.privacy import GaussianEvent
        >>> receipt = ledger.charge(GaussianEvent(mu=0.2), adjacency="add-remove", unit=None, note="first")
        >>> ledger.give_back(receipt.receipt_id, used=GaussianEvent(mu=0.1))
        >>> [(entry.number, entry.note, entry.closed, float(entry.cost)) for entry in ledger.history()]
        [(1, 'first', True, 0.010000000000000002)]
        """
        return _history(self._read()[0])

    def check(self, event: Event, *, adjacency: str | Adjacency, unit: str | None, note: str = "") -> None:
        """Raise what `charge` would raise now. Spends nothing and promises nothing: others may come first.

        Like `charge` it checks what was written since this object last looked, in time that does not grow
        with the history; `history` and `verify` check all of it.

        >>> from dpgram.privacy import GaussianEvent
        >>> ledger.check(GaussianEvent(mu=0.2), adjacency="add-remove", unit=None)
        >>> ledger.check(GaussianEvent(mu=0.2), adjacency="replace-one", unit=None)
        Traceback (most recent call last):
            ...
        dpgram.errors.LedgerError: the ledger 'people' counts add-remove neighbours; costs ...
        """
        _checked_text("a note", note, empty=True)
        cost = self._quote(event, adjacency, unit)
        with self._lock:
            known = self._tip
        tip = ledger_file.follow(self._path, self._terms, known, timeout=self._timeout)
        self._remember(tip)
        self._refuse_excess(event, cost, self._balance(tip))

    def charge(
        self,
        event: Event,
        *,
        adjacency: str | Adjacency,
        unit: str | None,
        note: str = "",
        receipt_id: str | None = None,
    ) -> Receipt:
        """Spend what `event` costs, durably, and return the single-use receipt. Draw noise only after this.

        A charge that does not fit is refused with `BudgetExceeded` and changes nothing. `note` is for the
        curator; it stays in the ledger and must say nothing about the data. `receipt_id` is 128 bits in
        hexadecimal, drawn anew where they are not given: with them a charge can be found again (`receipt`).

        >>> from dpgram.privacy import GaussianEvent
        >>> receipt = ledger.charge(GaussianEvent(mu=0.2), adjacency="add-remove", unit=None)
        >>> receipt.entry, round(float(ledger.spent), 4)
        (1, 0.04)
        """
        cost = self._quote(event, adjacency, unit)
        note = _checked_text("a note", note, empty=True)
        with self._lock:
            known = self._tip
        with ledger_file.writing(self._path, self._terms, known, timeout=self._timeout) as book:
            self._refuse_excess(event, cost, self._balance(book.tip))
            if receipt_id is not None and book.charged(receipt_id) is not None:
                raise LedgerError(
                    "a charge with this number is in the ledger already",
                    got=receipt_id,
                    remedy="Leave receipt_id out. Nothing was spent",
                )
            record = ledger_file.Record(
                entry=book.tip.entries + 1,
                receipt_id=_random_hex() if receipt_id is None else receipt_id,
                time=_now(),
                event=event,
                amount=ledger_file.to_units(cost.amount),
                delta=ledger_file.to_units(cost.delta),
                note=note,
                salt=_random_hex(),
            )
            link = book.append(record)
        self._remember(book.tip.after(link))
        return Receipt(
            ledger_name=self.name,
            ledger_id=self.ledger_id,
            entry=record.entry,
            receipt_id=record.receipt_id,
            event=event,
            head=link.head,
        )

    def give_back(self, receipt_id: str, *, used: Event | None) -> None:
        """Close a charge, durably, and give back what it reserved beyond `used` (None: all of it).

        For a publication that is over: nothing may be drawn under this receipt any more. One that is closed
        already stays as it is.

        Proof: proofs/filters.md#filters-back.

        >>> from dpgram.privacy import GaussianEvent
        >>> receipt = ledger.charge(GaussianEvent(mu=0.2), adjacency="add-remove", unit=None)
        >>> ledger.give_back(receipt.receipt_id, used=None)
        >>> float(ledger.spent)
        0.0
        """
        cost = Price(Fraction(0), Fraction(0)) if used is None else price(used, self.currency)
        with self._lock:
            known = self._tip
        with ledger_file.writing(self._path, self._terms, known, timeout=self._timeout) as book:
            charge = book.charged(receipt_id)
            if charge is None or not isinstance(charge.record, ledger_file.Record):
                raise LedgerError("there is no charge with this number in the ledger", got=receipt_id)
            if book.closing(receipt_id) is not None:
                return
            amount, delta = (
                ledger_file.from_units(each) for each in (charge.record.amount, charge.record.delta)
            )
            link = book.append(
                ledger_file.Closing(
                    closes=receipt_id,
                    charge=charge.record.entry,
                    entry=book.tip.entries + 1,
                    time=_now(),
                    amount=ledger_file.to_units(max(amount - cost.amount, Fraction(0))),
                    delta=ledger_file.to_units(max(delta - cost.delta, Fraction(0))),
                    salt=_random_hex(),
                )
            )
        self._remember(book.tip.after(link))

    def is_closed(self, receipt_id: str) -> bool:
        """Whether the publication that was charged under this number is over.

        >>> release = dg.publish(table, schema, epsilon=1, delta=1e-6, ledger=ledger)
        >>> ledger.is_closed(release.receipt.receipt_id)
        True
        """
        return any(entry.closed for entry in self.history() if entry.receipt_id == receipt_id)

    def receipt(self, receipt_id: str) -> Receipt | None:
        """The receipt of the charge with this number; None where there is none.

        >>> release = dg.publish(table, schema, epsilon=1, delta=1e-6, ledger=ledger)
        >>> ledger.receipt(release.receipt.receipt_id) == release.receipt
        True
        """
        for entry in self.history():
            if entry.receipt_id == receipt_id:
                return Receipt(
                    ledger_name=self.name,
                    ledger_id=self.ledger_id,
                    entry=entry.number,
                    receipt_id=receipt_id,
                    event=entry.event,
                    head=entry.head,
                )
        return None

    def verify(self, releases: Iterable[ReleaseOrReceipt] | Mapping[str, ReleaseOrReceipt]) -> Verification:
        """Check the whole ledger against releases (or bare receipts); `LedgerError` lists what disagrees.

        Finds entries that were edited or cut off, an older copy put back, receipts of another ledger,
        releases that were never charged, and two releases on one receipt. A mapping gives its releases names.

        >>> release = dg.publish(table, schema, epsilon=1, delta=1e-6, ledger=ledger)
        >>> ledger.verify([release])
        Verification(releases=1, entries=1, unclaimed=())
        """
        return verification(self._terms, self._read()[0], releases)

    def plot(self, path: str | os.PathLike[str] | None = None, *, dark: bool = False) -> Figure:
        """The history as a matplotlib figure; written to `path` when given.

        >>> figure = ledger.plot("budget.png")
        """
        from dpgram.privacy.ledger._figure import ledger_plot

        return ledger_plot(self, path=None if path is None else Path(path), dark=dark)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Nothing to close: no operation leaves the file open."""

    def __repr__(self) -> str:
        return f"Ledger({str(self._path)!r}, name={self.name!r}, {self.guarantee})"

    def _read(self) -> tuple[tuple[ledger_file.Link, ...], ledger_file.Tip]:
        terms, links, tip = ledger_file.read(self._path, timeout=self._timeout)
        with self._lock:
            known = self._tip
        held = known.entries == 0 or (
            len(links) >= known.entries and links[known.entries - 1].head == known.head
        )
        if terms != self._terms or not held:
            raise LedgerError(
                f"the ledger {self._path} is not the one that was opened, or an older copy of it",
                got=f"{terms.name!r} with {tip.entries} entries",
                limit=f"{self.name!r} with at least {known.entries}",
                remedy="Put the newest copy back",
            )
        self._remember(tip)
        return links, tip

    def _remember(self, tip: ledger_file.Tip) -> None:
        with self._lock:
            if tip.entries > self._tip.entries:
                self._tip = tip

    def _quote(self, event: Event, adjacency: str | Adjacency, unit: str | None) -> Price:
        relation = _relation(adjacency).name
        if relation != self.adjacency:
            raise LedgerError(
                f"the ledger {self.name!r} counts {self.adjacency} neighbours; costs under another adjacency "
                "cannot be added to it",
                got=f"adjacency = {relation!r}",
                limit=f"adjacency = {self.adjacency!r}",
                remedy=f"Publish with adjacency={self.adjacency!r}",
            )
        if unit != self.unit:
            raise LedgerError(
                f"the ledger {self.name!r} protects {unit_words(self.unit)}; a release that protects "
                f"{unit_words(unit)} cannot be added to it",
                got="no unit" if unit is None else f"unit={unit!r}",
                limit="no unit" if self.unit is None else f"unit={self.unit!r}",
                remedy=f"{_with_unit('Publish', self.unit, rows=True)}, or "
                f"{_with_unit('create a ledger', unit, rows=False)}",
            )
        return price(event, self.currency)

    def _balance(self, tip: ledger_file.Tip) -> Balance:
        reserve = Fraction(self.delta_reserved)
        return Balance(total=self.total, reserve=reserve, spent=tip.amount, spent_delta=tip.delta)

    def _refuse_excess(self, event: Event, cost: Price, balance: Balance) -> None:
        if balance.fits(cost):
            return
        if cost.amount > balance.left:
            need, rest = in_distinct_digits(100 * cost.amount / self.total, 100 * balance.left / self.total)
            raise BudgetExceeded(
                f"this release ({self._in_epsilon(event)}) would take {need}% of the budget of the ledger "
                f"{self.name!r}, which has {rest}% left",
                remedy=f"Nothing was spent. {advice(self._left(balance).largest)}",
            )
        need, rest = in_distinct_digits(cost.delta, balance.left_delta)
        raise BudgetExceeded(
            f"this release may fail with probability δ = {need}, but the ledger {self.name!r} has {rest} "
            f"left of its reserve of {self.delta_reserved:g}",
            remedy="Nothing was spent. Use a mechanism without such a δ (gaussian, matrix-laplace), a "
            "smaller δ, or, for a new data set, a ledger created with a larger delta_reserved",
        )

    def _in_epsilon(self, event: Event) -> str:
        try:
            guarantee = guarantee_of(event, self._terms.delta)
        except GuaranteeError:
            return describe(event)
        at = f" at δ = {guarantee.delta:g}" if guarantee.delta else ""
        return f"{describe(event)}: ε = {guarantee.epsilon:.4g}{at}"

    def _left(self, balance: Balance) -> Left:
        delta = Fraction(self._terms.delta) - balance.reserve
        return Left(
            currency=self.currency,
            amount=balance.left,
            total=self.total,
            delta=balance.left_delta,
            largest=largest_release(balance.left, self.currency, delta),
        )


def _history(links: Sequence[ledger_file.Link]) -> tuple[Entry, ...]:
    """The charges, each with what closed it."""
    closings = {
        link.record.closes: link.record for link in links if isinstance(link.record, ledger_file.Closing)
    }
    found = []
    for link in links:
        record = link.record
        if isinstance(record, ledger_file.Record):
            closing = closings.get(record.receipt_id)
            back = ("0", "0") if closing is None else (closing.amount, closing.delta)
            found.append(
                Entry(
                    number=record.entry,
                    time=record.time,
                    event=record.event,
                    amount=ledger_file.from_units(record.amount),
                    delta=ledger_file.from_units(record.delta),
                    note=record.note,
                    receipt_id=record.receipt_id,
                    head=link.head,
                    closed=closing is not None,
                    given_back=ledger_file.from_units(back[0]),
                    delta_given_back=ledger_file.from_units(back[1]),
                )
            )
    return tuple(found)


def _last_release(records: Sequence[Entry]) -> list[Entry]:
    """The last charge and those before it that paid for the same release; others may stand between them."""
    before = {next_receipt_id(record.receipt_id): record for record in records}
    found = [records[-1]]
    while (part := before.get(found[-1].receipt_id)) is not None:
        found.append(part)
    return found


def _times(cost: Price, balance: Balance) -> int | None:
    """How often a cost fits into what is left; None where it costs nothing."""
    fits = [
        left // part for left, part in ((balance.left, cost.amount), (balance.left_delta, cost.delta)) if part
    ]
    return min(fits, default=None)


def _with_unit(what: str, unit: str | None, *, rows: bool) -> str:
    if unit is None:
        return f"{what} without a unit"
    return f"{what} with Rows(unit={unit!r})" if rows else f"{what} with unit={unit!r}"


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _random_hex() -> str:
    return SystemEntropy().random_bytes(16).hex()


def _relation(adjacency: str | Adjacency) -> Adjacency:
    return adjacency if isinstance(adjacency, Adjacency) else adjacency_named(adjacency)


def _checked_text(what: str, text: str, *, empty: bool) -> str:
    fine = isinstance(text, str) and (empty or text.strip()) and len(text) <= _LONGEST_TEXT
    if not fine or any("\ud800" <= character <= "\udfff" for character in text):
        limit = f"{'at most' if empty else '1 to'} {_LONGEST_TEXT} characters of text"
        raise LedgerError(f"{what} is not usable", got=repr(text)[:60], limit=limit)
    return text

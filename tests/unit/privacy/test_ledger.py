"""The ledger in ordinary use: charging, refusing, looking back, comparing with releases, many at once."""

from __future__ import annotations

import copy
import json
import math
import pickle
import shutil
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpgram.errors import BudgetExceeded, DpgramWarning, GuaranteeError, LedgerError
from dpgram.lattice import ROW_NORM_SQUARED
from dpgram.mechanisms import MatrixLaplace, PublicFacts
from dpgram.privacy.accountant import (
    ApproximateEvent,
    Currency,
    Event,
    GaussianEvent,
    PureEvent,
    ZcdpEvent,
    capacity,
    composed,
    price,
)
from dpgram.privacy.adjacency import AddRemove, ReplaceOne
from dpgram.privacy.curves.calibrate import discrete_gaussian_sigma, discrete_mu_at_most
from dpgram.privacy.guarantee import Guarantee
from dpgram.privacy.ledger import Ledger, budget_for, release_for
from dpgram.privacy.ledger import _file as ledger_file
from dpgram.privacy.ledger.history import ledger_history
from dpgram.privacy.receipt import Receipt, next_receipt_id


def pay(ledger: Ledger, event: Event, note: str = "") -> Receipt:
    return ledger.charge(event, adjacency=ledger.adjacency, unit=ledger.unit, note=note)


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    return Ledger.create(tmp_path / "insurance.ledger", name="insurance", epsilon=3.0, delta=1e-5)


@dataclass(frozen=True)
class Published:
    """As much of a release as `verify` looks at."""

    receipt: Receipt | None
    adjacency: str = "add-remove"
    unit: str | None = None
    cells: int = 0
    part: str | None = None

    @property
    def receipts(self) -> tuple[Receipt, ...]:
        return () if self.receipt is None else (self.receipt,)


class TestTerms:
    def test_are_kept(self, tmp_path: Path) -> None:
        made = Ledger.create(
            tmp_path / "a",
            name="visits 2024",
            epsilon=2.0,
            delta=1e-6,
            adjacency="replace-one",
            unit="person",
            currency="rho",
            delta_reserved=1e-7,
        )
        for ledger in (made, Ledger.open(tmp_path / "a"), Ledger.open(str(tmp_path / "a"))):
            assert (ledger.name, ledger.adjacency, ledger.unit) == ("visits 2024", "replace-one", "person")
            assert (ledger.currency, ledger.delta_reserved) == ("rho", 1e-7)
            assert ledger.guarantee == Guarantee(2.0, 1e-6)
            assert ledger.total == capacity(Guarantee(2.0, 1e-6), "rho", 1e-7)
            assert ledger.spent == 0
            assert ledger.ledger_id == made.ledger_id
            assert "visits 2024" in repr(ledger)

    @pytest.mark.parametrize(("delta", "currency"), [(1e-6, "mu2"), (0.0, "epsilon")])
    def test_default_currency(self, tmp_path: Path, delta: float, currency: Currency) -> None:
        assert Ledger.create(tmp_path / "a", name="x", epsilon=1.0, delta=delta).currency == currency

    def test_relation_may_be_an_object(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "a", name="x", epsilon=1.0, delta=0.0, adjacency=ReplaceOne())
        ledger.charge(PureEvent(0.5), adjacency=ReplaceOne(), unit=None)
        with pytest.raises(LedgerError, match="replace-one"):
            ledger.charge(PureEvent(0.5), adjacency=AddRemove(), unit=None)

    @pytest.mark.parametrize(
        ("changed", "error"),
        [
            ({"epsilon": 0.0}, GuaranteeError),
            ({"epsilon": math.nan}, GuaranteeError),
            ({"delta": -1e-6}, GuaranteeError),
            ({"delta": 1.0}, GuaranteeError),
            ({"name": "  "}, LedgerError),
            ({"name": "x" * 1001}, LedgerError),
            ({"name": "\ud800"}, LedgerError),
            ({"unit": ""}, LedgerError),
            ({"adjacency": "substitute"}, GuaranteeError),
            ({"currency": "gold"}, LedgerError),
            ({"delta": 0.0, "currency": "mu2"}, LedgerError),
            ({"delta_reserved": 1e-6}, LedgerError),
            ({"delta_reserved": -1.0}, GuaranteeError),
        ],
    )
    def test_nonsense_is_refused_before_a_file_is_made(
        self, tmp_path: Path, changed: dict[str, object], error: type[Exception]
    ) -> None:
        terms: dict[str, object] = {"name": "x", "epsilon": 1.0, "delta": 1e-6, **changed}
        with pytest.raises(error):
            Ledger.create(tmp_path / "a", **terms)
        assert not list(tmp_path.iterdir())

    @pytest.mark.parametrize(
        ("epsilon", "delta", "words"),
        [(11.0, 1e-6, "values above 10 protect little"), (1.0, 1e-3, "values above 1e-4 are rarely wanted")],
    )
    def test_a_large_budget_is_warned_of_where_it_is_set(
        self, tmp_path: Path, epsilon: float, delta: float, words: str
    ) -> None:
        with pytest.warns(DpgramWarning, match=words) as told:
            Ledger.create(tmp_path / "a", name="x", epsilon=epsilon, delta=delta)
        assert [warning.filename for warning in told] == [__file__]
        assert Ledger.open(tmp_path / "a").guarantee == Guarantee(epsilon, delta)  # without another word

    def test_two_ledgers_have_two_identities(self, tmp_path: Path) -> None:
        ids = {Ledger.create(tmp_path / n, name="x", epsilon=1.0, delta=0.0).ledger_id for n in "abc"}
        assert len(ids) == 3


class TestCharging:
    def test_history_and_spent(self, ledger: Ledger) -> None:
        events = [GaussianEvent(0.1), PureEvent(0.01), composed([GaussianEvent(0.05), PureEvent(0.02)])]
        receipts = [pay(ledger, event, f"note {k}") for k, event in enumerate(events)]
        history = ledger.history()
        assert [entry.event for entry in history] == events
        assert [entry.note for entry in history] == ["note 0", "note 1", "note 2"]
        assert [entry.number for entry in history] == [1, 2, 3]
        assert [entry.amount for entry in history] == [price(event, "mu2").amount for event in events]
        assert ledger.spent == sum(price(event, "mu2").amount for event in events)
        assert [r.receipt_id for r in receipts] == [entry.receipt_id for entry in history]
        assert [r.head for r in receipts] == [entry.head for entry in history]
        assert len({r.receipt_id for r in receipts}) == 3
        assert Ledger.open(ledger.path).history() == history

    def test_entries_are_those_this_object_has_seen(self, ledger: Ledger) -> None:
        assert ledger.entries == 0
        other = Ledger.open(ledger.path)
        pay(other, GaussianEvent(0.05))
        assert (other.entries, ledger.entries) == (1, 0)
        pay(ledger, GaussianEvent(0.05))
        assert (other.entries, ledger.entries) == (1, 2)
        assert Ledger.open(ledger.path).entries == 2

    def test_nine_gaussians_and_no_tenth(self, ledger: Ledger) -> None:
        event = GaussianEvent(discrete_mu_at_most(1.0, 1e-6))
        for _ in range(9):
            pay(ledger, event)
        before, history = ledger.path.read_bytes(), ledger.history()
        with pytest.raises(BudgetExceeded) as caught:
            pay(ledger, event)
        message = str(caught.value)
        assert "would take 10.83% of the budget of the ledger 'insurance', which has 2.489% left" in message
        assert "μ²" not in message
        assert "Nothing was spent" in message
        assert "epsilon=0.3908 at delta=1e-05 still fits" in message
        assert ledger.path.read_bytes() == before
        assert ledger.history() == history
        advised = discrete_mu_at_most(0.3908, 1e-5)
        pay(ledger, GaussianEvent(advised))

    def test_exact_to_the_last_unit(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "a", name="x", epsilon=1.0, delta=0.0)
        for _ in range(4):
            pay(ledger, PureEvent(0.25))
        assert ledger.left().amount == 0
        assert ledger.left().largest is None
        assert "nothing more fits" in str(ledger.left())
        with pytest.raises(BudgetExceeded, match="used up"):
            pay(ledger, PureEvent(5e-324))

    def test_one_unit_too_much_is_too_much(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "a", name="x", epsilon=1.0, delta=0.0)
        with pytest.raises(BudgetExceeded, match="slightly less than 100% left"):
            pay(ledger, PureEvent(math.nextafter(1.0, 2.0)))
        pay(ledger, PureEvent(1.0))

    @pytest.mark.parametrize("epsilon", [0.01, 0.3, 1.0, 7.0])
    @pytest.mark.parametrize("delta", [1e-9, 1e-6])
    @pytest.mark.parametrize("relation", [AddRemove(), ReplaceOne()])
    def test_a_release_at_the_whole_budget_fits(
        self, tmp_path: Path, epsilon: float, delta: float, relation: AddRemove | ReplaceOne
    ) -> None:
        """The calibration's slack is larger than the ledger's."""
        ledger = Ledger.create(tmp_path / "a", name="x", epsilon=epsilon, delta=delta, adjacency=relation)
        sensitivity = relation.gram_frobenius(float(ROW_NORM_SQUARED))
        sigma = discrete_gaussian_sigma(epsilon=epsilon, delta=delta, sensitivity=sensitivity)
        pay(ledger, GaussianEvent(math.nextafter(sensitivity / sigma, math.inf)))

    @pytest.mark.parametrize(("total", "parts"), [(0.3, [0.1] * 3), (0.3, [0.25, 0.05]), (1.0, [0.1] * 10)])
    def test_decimal_shares_fill_a_pure_ledger(
        self, tmp_path: Path, total: float, parts: list[float]
    ) -> None:
        """0.1 + 0.1 + 0.1 is above 0.3 in floats; a curator may well expect it to fit, and it does."""
        ledger = Ledger.create(tmp_path / "a", name="x", epsilon=total, delta=0.0)
        facts = PublicFacts(width=4, adjacency=AddRemove())
        for part in parts:
            pay(ledger, MatrixLaplace().calibrated(Guarantee(part), facts).event(facts))
        assert 0 <= ledger.left().amount < Fraction(1, 10**14)

    def test_reserve(self, tmp_path: Path) -> None:
        ledger = Ledger.create(
            tmp_path / "a", name="x", epsilon=3.0, delta=1e-5, currency="rho", delta_reserved=2e-6
        )
        pay(ledger, ApproximateEvent(0.2, 1e-6))
        pay(ledger, ZcdpEvent(0.01))
        assert ledger.left().delta == Fraction(2e-6) - ledger.history()[0].delta
        assert "of the reserve" in ledger.left().exact
        pay(ledger, ApproximateEvent(0.0, 0.999e-6))
        with pytest.raises(BudgetExceeded, match="left of its reserve of 2e-06"):
            pay(ledger, ApproximateEvent(0.2, 1e-6))
        assert len(ledger.history()) == 3

    def test_no_reserve(self, ledger: Ledger) -> None:
        with pytest.raises(BudgetExceeded, match="reserve of 0"):
            pay(ledger, ApproximateEvent(0.01, 1e-12))

    def test_other_relation_or_unit_is_refused(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match="Publish with adjacency='add-remove'"):
            ledger.charge(PureEvent(0.01), adjacency="replace-one", unit=None)
        with pytest.raises(LedgerError, match="protects one row; a release that protects one 'person'"):
            ledger.charge(PureEvent(0.01), adjacency="add-remove", unit="person")
        with pytest.raises(GuaranteeError):
            ledger.charge(PureEvent(0.01), adjacency="both", unit=None)
        with pytest.raises(LedgerError, match='currency="rho"'):
            pay(ledger, ZcdpEvent(0.001))
        assert ledger.history() == ()

    def test_check_spends_nothing(self, ledger: Ledger) -> None:
        ledger.check(GaussianEvent(0.1), adjacency="add-remove", unit=None)
        for event, unit, error in [
            (GaussianEvent(9.0), None, BudgetExceeded),
            (GaussianEvent(0.1), "person", LedgerError),
        ]:
            with pytest.raises(error):
                ledger.check(event, adjacency="add-remove", unit=unit)
        assert ledger.history() == ()

    @pytest.mark.parametrize("note", [3, None, "\udfff", "x" * 1001])
    def test_notes_are_short_text(self, ledger: Ledger, note: object) -> None:
        with pytest.raises(LedgerError, match="note"):
            pay(ledger, PureEvent(0.01), note)
        assert ledger.history() == ()

    def test_strange_names_and_notes(self, tmp_path: Path) -> None:
        path = tmp_path / "a b#?%&'\"é.ledger"
        ledger = Ledger.create(path, name="'; DROP TABLE entries; --", epsilon=1.0, delta=0.0)
        pay(ledger, PureEvent(0.5), "line\nbreak, \0, ünïcode 🙂")
        again = Ledger.open(path)
        assert again.name == "'; DROP TABLE entries; --"
        assert again.history()[0].note == "line\nbreak, \0, ünïcode 🙂"
        assert [p.name for p in tmp_path.iterdir()] == [path.name]

    def test_context_manager_and_receipt_as_json(self, ledger: Ledger) -> None:
        with Ledger.open(ledger.path) as again:
            receipt = pay(again, GaussianEvent(0.1))
        assert msgspec.json.decode(msgspec.json.encode(receipt), type=Receipt) == receipt
        assert (receipt.ledger_name, receipt.entry) == ("insurance", 1)

    @settings(max_examples=5, deadline=None, derandomize=True)
    @given(st.lists(st.floats(1e-4, 0.5), min_size=1, max_size=12))
    def test_a_charge_fits_exactly_when_the_sum_does(
        self, tmp_path_factory: pytest.TempPathFactory, epsilons: list[float]
    ) -> None:
        ledger = Ledger.create(tmp_path_factory.mktemp("sum") / "a", name="x", epsilon=1.0, delta=0.0)
        spent = Fraction(0)
        for epsilon in epsilons:
            if spent + Fraction(epsilon) <= 1:
                pay(ledger, PureEvent(epsilon))
                spent += Fraction(epsilon)
            else:
                with pytest.raises(BudgetExceeded):
                    pay(ledger, PureEvent(epsilon))
        assert ledger.spent == spent

    def test_holds_no_more_than_it_says(self, ledger: Ledger) -> None:
        """The file's text is the terms, the records and the tables: no path, host, user or data."""
        pay(ledger, GaussianEvent(0.1), "first look")
        connection = sqlite3.connect(ledger.path)
        terms = json.loads(connection.execute("SELECT record FROM terms").fetchone()[0])
        record = json.loads(connection.execute("SELECT record FROM entries").fetchone()[0])
        tables = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        connection.close()
        assert set(terms) == set(ledger_file.LedgerTerms.__struct_fields__)
        assert set(record) == {"entry", "receipt_id", "time", "event", "amount", "delta", "note", "salt"}
        assert tables == {"terms", "entries", "tip"}


class TestLeft:
    def test_fresh_ledgers_offer_their_own_budget(self, tmp_path: Path) -> None:
        for k, (epsilon, delta) in enumerate([(1.0, 1e-6), (0.1, 0.0), (0.3, 1e-9), (8.0, 1e-5)]):
            ledger = Ledger.create(tmp_path / str(k), name="x", epsilon=epsilon, delta=delta)
            assert ledger.left().largest == Guarantee(epsilon, delta)
            assert ledger.left().amount == ledger.total

    @settings(max_examples=25, deadline=None, derandomize=True)
    @given(st.floats(0.01, 0.71), st.sampled_from(["mu2", "rho"]))
    def test_what_is_offered_fits_and_more_does_not(
        self, tmp_path_factory: pytest.TempPathFactory, mu: float, currency: Currency
    ) -> None:
        path = tmp_path_factory.mktemp("left") / "a"
        ledger = Ledger.create(path, name="x", epsilon=3.0, delta=1e-5, currency=currency)
        if price(GaussianEvent(mu), currency).amount > ledger.total:
            return
        pay(ledger, GaussianEvent(mu))
        offered = ledger.left().largest
        if offered is None:
            assert ledger.left().amount < Fraction(1, 10**6)
            return
        more = GaussianEvent(discrete_mu_at_most(offered.epsilon * 1.002, offered.delta))
        with pytest.raises(BudgetExceeded):
            ledger.check(more, adjacency="add-remove", unit=None)
        pay(ledger, GaussianEvent(discrete_mu_at_most(offered.epsilon, offered.delta)))

    def test_words(self, ledger: Ledger) -> None:
        assert str(ledger.left()) == (
            "100% of the budget is left: enough for one release of ε = 3 at δ = 1e-05"
        )
        assert ledger.left().exact == "μ² = 0.5171 of 0.5171 left"
        event = GaussianEvent(discrete_mu_at_most(1.0, 1e-6))
        receipt = ledger.charge(event, adjacency="add-remove", unit=None)
        assert ledger.left().more == 8
        assert "8 more like the last charge" in str(ledger.left())
        assert "8 more like this one" in str(ledger.left_after([receipt]))
        assert ledger.left_after([receipt, receipt]).more == 4
        for _ in range(8):
            pay(ledger, event)
        assert "but for none more like the last charge" in str(ledger.left())

    def test_a_release_in_two_charges_counts_as_one(self, tmp_path: Path) -> None:
        """Whatever else was charged in between; a charge that stands alone is counted alone."""
        ledger = Ledger.create(tmp_path / "b", name="b", epsilon=3.0, delta=1e-5, currency="mu2")
        small, large = GaussianEvent(0.05), GaussianEvent(0.2)
        first = ledger.charge(small, adjacency="add-remove", unit=None)
        pay(ledger, GaussianEvent(0.1))
        second = ledger.charge(
            large, adjacency="add-remove", unit=None, receipt_id=next_receipt_id(first.receipt_id)
        )
        assert ledger.left().more == ledger.left_after([first, second]).more
        assert ledger.left().more != ledger.left_after([second]).more
        assert "more like the last release" in str(ledger.left())
        pay(ledger, small)
        assert ledger.left().more == int(ledger.left().amount / Fraction(0.05) ** 2)
        assert "more like the last charge" in str(ledger.left())

    def test_words_at_the_end(self, tmp_path: Path) -> None:
        ledger = Ledger.create(tmp_path / "a", name="x", epsilon=1.0, delta=0.0)
        pay(ledger, PureEvent(1.0))
        assert str(ledger.left()) == "the budget is used up: nothing more fits"


class TestHistoryLines:
    def test_lines(self, tmp_path: Path) -> None:
        ledger = Ledger.create(
            tmp_path / "a", name="x", epsilon=3.0, delta=1e-5, currency="rho", delta_reserved=5e-6
        )
        pay(ledger, GaussianEvent(0.2), "first")
        pay(ledger, ApproximateEvent(0.1, 1e-6))
        first, second = ledger_history(ledger)
        assert (first.number, first.release, first.note) == (1, "Gaussian, μ = 0.2", "first")
        assert first.guarantee.startswith("ε = 0.7")
        assert (first.cost, first.sign) == (pytest.approx(0.02), "ρ")
        assert first.share == pytest.approx(0.02 / float(ledger.total))
        assert second.left == pytest.approx(float(ledger.left().amount))
        assert str(first).startswith("1. 20")
        assert "first" in str(first)
        assert "cost ρ = 0.02" in str(first)

    def test_pure_and_unbounded(self, tmp_path: Path) -> None:
        pure = Ledger.create(tmp_path / "a", name="x", epsilon=1.0, delta=0.0)
        pay(pure, PureEvent(0.5))
        assert ledger_history(pure)[0].guarantee == "ε = 0.5"
        leaky = Ledger.create(
            tmp_path / "b", name="x", epsilon=1.0, delta=1e-6, currency="epsilon", delta_reserved=1e-6
        )
        pay(leaky, composed([ApproximateEvent(0.1, 0.5e-6), ApproximateEvent(0.1, 0.4e-6)]))
        assert ledger_history(leaky)[0].guarantee.startswith("ε = 0.")


def rewrite(path: Path, *statements: str) -> None:
    """Edit the file as somebody with SQLite at hand would, putting the triggers back afterwards."""
    connection = sqlite3.connect(path, isolation_level=None)
    triggers = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'trigger'").fetchall()
    for name, _ in triggers:
        connection.execute(f"DROP TRIGGER {name}")
    for statement in statements:
        connection.execute(statement)
    for _, sql in triggers:
        connection.execute(sql)
    connection.close()


def content(path: Path) -> list[str]:
    """All that SQLite can tell of the file."""
    connection = sqlite3.connect(path)
    told = list(connection.iterdump())
    connection.close()
    return told


def rehash(path: Path, change: dict[int, dict[str, object]], terms: dict[str, object] | None = None) -> None:
    """A forger who knows the format: alter records (or the terms) and make the chain whole again."""
    connection = sqlite3.connect(path)
    text = connection.execute("SELECT record FROM terms").fetchone()[0]
    rows = connection.execute("SELECT number, record FROM entries ORDER BY number").fetchall()
    connection.close()
    if terms:
        text = json.dumps(json.loads(text) | terms, separators=(",", ":"))
    statements = [f"UPDATE terms SET record = '{text}'"]
    head = ledger_file._first_head(text)
    for number, record in rows:
        forged = json.dumps(json.loads(record) | change.get(number, {}), separators=(",", ":"))
        head = ledger_file._next_head(head, forged)
        statements.append(f"UPDATE entries SET record = '{forged}', head = '{head}' WHERE number = {number}")
    rewrite(path, *statements, f"UPDATE tip SET head = '{head}'")


class TestVerify:
    @pytest.fixture
    def receipts(self, ledger: Ledger) -> list[Receipt]:
        return [pay(ledger, GaussianEvent(0.05 + 0.01 * k)) for k in range(4)]

    def test_all_is_well(self, ledger: Ledger, receipts: list[Receipt]) -> None:
        found = ledger.verify(receipts)
        assert (found.releases, found.entries, found.unclaimed) == (4, 4, ())
        assert ledger.verify(receipts[1:3]).unclaimed == (1, 4)
        assert ledger.verify([]).unclaimed == (1, 2, 3, 4)
        one = Published(receipts[0])
        assert ledger.verify([one, one, Published(receipts[1])]).unclaimed == (3, 4)

    def test_no_receipt(self, ledger: Ledger) -> None:
        with pytest.raises(LedgerError, match=r"a\.json carries no receipt: it was never charged"):
            ledger.verify({"a.json": Published(None)})

    def test_two_releases_on_one_receipt(self, ledger: Ledger, receipts: list[Receipt]) -> None:
        with pytest.raises(LedgerError, match=r"b\.json uses the receipt of a\.json"):
            ledger.verify(
                {"a.json": Published(receipts[0], cells=1), "b.json": Published(receipts[0], cells=2)}
            )
        with pytest.raises(LedgerError, match="release 2 uses the receipt of release 1"):
            ledger.verify([receipts[0], receipts[0]])

    def test_one_receipt_pays_for_every_portion_once(self, ledger: Ledger, receipts: list[Receipt]) -> None:
        north, south = (Published(receipts[0], part=f"region = {r}") for r in ("north", "south"))
        assert ledger.verify([north, south, south]).unclaimed == (2, 3, 4)
        with pytest.raises(LedgerError, match="release 3 uses the receipt of release 1"):
            ledger.verify([north, south, Published(receipts[0], part="region = north", cells=1)])
        with pytest.raises(LedgerError, match="release 2 uses the receipt of another release"):
            ledger.verify([north, Published(receipts[0])])

    def test_foreign_receipt(self, ledger: Ledger, tmp_path: Path) -> None:
        other = Ledger.create(tmp_path / "other", name="insurance", epsilon=3.0, delta=1e-5)
        with pytest.raises(LedgerError, match="charged to another ledger"):
            ledger.verify([pay(other, GaussianEvent(0.1))])

    @pytest.mark.parametrize(
        "change",
        [
            {"head": "0" * 64},
            {"receipt_id": "0" * 32},
            {"entry": 2},
            {"event": GaussianEvent(0.01)},
            {"ledger_name": "other"},
        ],
    )
    def test_edited_receipt(self, ledger: Ledger, receipts: list[Receipt], change: dict[str, object]) -> None:
        with pytest.raises(LedgerError, match="holds another charge there"):
            ledger.verify([msgspec.structs.replace(receipts[0], **change)])

    @pytest.mark.parametrize("change", [{"adjacency": "replace-one"}, {"unit": "person"}])
    def test_release_under_other_terms(
        self, ledger: Ledger, receipts: list[Receipt], change: dict[str, str]
    ) -> None:
        with pytest.raises(LedgerError, match="not as charged"):
            ledger.verify([replace(Published(receipts[0]), **change)])

    def test_older_copy(self, ledger: Ledger, tmp_path: Path) -> None:
        receipts = [pay(ledger, GaussianEvent(0.1))]
        shutil.copy(ledger.path, tmp_path / "backup")
        receipts.append(pay(ledger, GaussianEvent(0.2)))
        shutil.copy(tmp_path / "backup", ledger.path)
        with pytest.raises(LedgerError, match="older copy"):
            pay(ledger, GaussianEvent(0.1))
        restored = Ledger.open(ledger.path)
        assert restored.verify(receipts[:1]).entries == 1
        with pytest.raises(LedgerError, match="release 2 is entry 2, but the ledger ends at 1"):
            restored.verify(receipts)
        again = pay(restored, GaussianEvent(0.2))
        with pytest.raises(LedgerError, match="release 2 is entry 2, but the ledger holds another charge"):
            restored.verify([*receipts, again])
        with pytest.raises(LedgerError, match="not the one that was opened, or an older copy"):
            ledger.history()

    def test_every_problem_is_listed(self, ledger: Ledger, receipts: list[Receipt]) -> None:
        with pytest.raises(LedgerError) as caught:
            ledger.verify({"a": Published(None), "b": Published(receipts[0], unit="person")})
        assert "a carries no receipt" in str(caught.value)
        assert "b was made for" in str(caught.value)

    @pytest.mark.parametrize(
        "statement",
        [
            "UPDATE entries SET record = replace(record, '0.06', '0.01') WHERE number = 2",
            "UPDATE entries SET head = (SELECT head FROM entries WHERE number = 1) WHERE number = 2",
            "UPDATE entries SET head = upper(head) || 'x' WHERE number = 2",
            "DELETE FROM entries WHERE number = 2",
            "DELETE FROM entries WHERE number = 4",
            "DELETE FROM entries",
            "UPDATE entries SET number = 9 WHERE number = 4",
            "INSERT INTO entries SELECT 5, record, head FROM entries WHERE number = 4",
            "INSERT INTO entries SELECT 0, record, head FROM entries WHERE number = 4",
            "UPDATE entries SET record = CAST(record AS BLOB) WHERE number = 3",
            "UPDATE terms SET record = replace(record, '3.0', '9.0')",
            "UPDATE terms SET record = 'nothing'",
            "DELETE FROM terms",
            "UPDATE tip SET entries = 3",
            "UPDATE tip SET head = 'x'",
            "DELETE FROM tip",
            "CREATE TABLE notes (x)",
            "CREATE TRIGGER quiet BEFORE INSERT ON entries BEGIN SELECT RAISE(IGNORE); END",
            "DROP TABLE tip",
        ],
    )
    def test_edits_are_seen_on_opening(self, ledger: Ledger, receipts: list[Receipt], statement: str) -> None:
        del receipts
        before = content(ledger.path)
        rewrite(ledger.path, statement)
        assert content(ledger.path) != before, "the edit is one, whatever the random hashes are"
        with pytest.raises(LedgerError):
            Ledger.open(ledger.path)
        with pytest.raises(LedgerError):
            ledger.history()

    def test_the_file_itself_refuses_edits(self, ledger: Ledger, receipts: list[Receipt]) -> None:
        del receipts
        connection = sqlite3.connect(ledger.path, isolation_level=None)
        for statement in ("DELETE FROM entries", "UPDATE entries SET record = ''", "DELETE FROM terms"):
            with pytest.raises(sqlite3.IntegrityError, match="append-only"):
                connection.execute(statement)
        connection.close()
        assert len(ledger.history()) == 4

    def test_a_forged_chain_does_not_match_the_receipts(
        self, ledger: Ledger, receipts: list[Receipt]
    ) -> None:
        rehash(ledger.path, {})
        assert Ledger.open(ledger.path).verify(receipts).unclaimed == ()
        rehash(ledger.path, {2: {"amount": "1"}})
        forged = Ledger.open(ledger.path)  # whole in itself
        assert forged.verify(receipts[:1]).entries == 4
        for receipt in receipts[1:]:
            with pytest.raises(LedgerError, match="holds another charge"):
                forged.verify([receipt])

    def test_a_raised_capacity_is_seen(self, ledger: Ledger, receipts: list[Receipt]) -> None:
        del receipts
        rehash(ledger.path, {}, terms={"capacity": ledger_file.to_units(2 * ledger.total)})
        with pytest.raises(LedgerError, match="altered; got a capacity of"):
            Ledger.open(ledger.path)

    def test_an_unknown_event_fails_closed(self, ledger: Ledger, receipts: list[Receipt]) -> None:
        del receipts
        rehash(ledger.path, {3: {"event": {"event": "gaussian/2", "mu": 0.1}}})
        with pytest.raises(LedgerError, match="written by a newer dpgram"):
            Ledger.open(ledger.path)


HAMMER = """
import sys
from dpgram.errors import BudgetExceeded
from dpgram.privacy.accountant import GaussianEvent
from dpgram.privacy.ledger import Ledger
import msgspec
ledger = Ledger.open(sys.argv[1])
event = GaussianEvent(float(sys.argv[2]))
def charge():
    receipt = ledger.charge(event, adjacency="add-remove", unit=None)
    print(msgspec.json.encode(receipt).decode(), flush=True)
charge()
sys.stdin.readline()
try:
    while True:
        charge()
except BudgetExceeded:
    pass
"""


@pytest.fixture
def hammering(ledger: Ledger) -> Iterator[list[subprocess.Popen[str]]]:
    """Eight processes, each with its own size of release: one charge, then a line to wait for, then all."""
    crowd = [
        subprocess.Popen(
            [sys.executable, "-c", HAMMER, str(ledger.path), repr(0.05 + 0.004 * k)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for k in range(8)
    ]
    yield crowd
    for process in crowd:
        process.kill()
        process.communicate()


def test_eight_processes_until_it_refuses(ledger: Ledger, hammering: list[subprocess.Popen[str]]) -> None:
    first = [process.stdout.readline() for process in hammering if process.stdout is not None]
    for process in hammering:  # each has charged and will charge again: they meet, however they are scheduled
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    rest = [process.communicate()[0] for process in hammering]
    outputs = [one + more for one, more in zip(first, rest, strict=True)]
    assert [process.returncode for process in hammering] == [0] * 8
    decoder = msgspec.json.Decoder(Receipt)
    receipts = [decoder.decode(line) for output in outputs for line in output.splitlines()]
    history = ledger.history()
    assert ledger.spent <= ledger.total
    assert ledger.spent == sum(price(entry.event, "mu2").amount for entry in history)
    assert ledger.spent + price(GaussianEvent(0.05), "mu2").amount > ledger.total
    told = {(r.entry, r.receipt_id, r.head, r.event.mu) for r in receipts}
    written = {(entry.number, entry.receipt_id, entry.head, entry.event.mu) for entry in history}
    assert told == written
    assert len(receipts) == len(history) > 60
    assert ledger.verify(receipts).unclaimed == ()


def test_eight_threads_share_one_object(ledger: Ledger) -> None:
    event = GaussianEvent(0.12)
    receipts: list[Receipt] = []
    faults: list[Exception] = []

    def work() -> None:
        try:
            while True:
                receipts.append(pay(ledger, event))
        except BudgetExceeded:
            pass
        except LedgerError as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults
    assert len(receipts) == math.floor(ledger.total / price(event, "mu2").amount)
    assert sorted(receipt.entry for receipt in receipts) == list(range(1, len(receipts) + 1))
    assert ledger.verify(receipts).unclaimed == ()


class TestCalculator:
    @pytest.mark.parametrize(
        ("releases", "epsilon", "delta"), [(1, 1.0, 1e-6), (12, 0.5, 1e-7), (60, 0.3, 1e-6)]
    )
    def test_the_budget_pays_for_all_and_no_more(
        self, tmp_path: Path, releases: int, epsilon: float, delta: float
    ) -> None:
        total = budget_for(releases, epsilon=epsilon, delta=delta)
        event = GaussianEvent(discrete_mu_at_most(epsilon, delta))
        for name, share, paid in (("enough", 1.0, releases), ("less", 0.998, releases - 1)):
            ledger = Ledger.create(
                tmp_path / name, name=name, epsilon=share * total.epsilon, delta=total.delta
            )
            for _ in range(paid):
                pay(ledger, event)
            with pytest.raises(BudgetExceeded):
                pay(ledger, event)

    def test_each_release_fits_so_many_times(self, tmp_path: Path) -> None:
        each = release_for(12, epsilon=3.0, delta=1e-6)
        ledger = Ledger.create(tmp_path / "a", name="a", epsilon=3.0, delta=1e-6)
        for _ in range(12):
            pay(ledger, GaussianEvent(discrete_mu_at_most(each.epsilon, each.delta)))
        assert ledger.left().amount < ledger.total / 100

    def test_pure_releases_add_up(self) -> None:
        assert budget_for(3, epsilon=0.1, delta=0) == Guarantee(0.3)
        assert release_for(3, epsilon=0.3, delta=0) == Guarantee(0.1)

    @pytest.mark.parametrize("releases", [0, -1, 2.5, True, "3", 10**7])
    def test_releases_are_counted(self, releases: object) -> None:
        with pytest.raises(GuaranteeError, match="whole number"):
            budget_for(releases, epsilon=1.0, delta=1e-6)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda ledger: pickle.loads(pickle.dumps(ledger))])
def test_a_copy_is_the_same_budget(tmp_path: Path, copied: Callable[[Ledger], Ledger]) -> None:
    """Estimators are cloned and sent to other processes with what they were given."""
    ledger = Ledger.create(tmp_path / "a.ledger", name="a", epsilon=1.0, delta=0.0)
    other = copied(ledger)
    other.charge(PureEvent(epsilon=0.75), adjacency=ledger.adjacency, unit=None)
    with pytest.raises(BudgetExceeded):
        ledger.charge(PureEvent(epsilon=0.5), adjacency=ledger.adjacency, unit=None)
    assert len(ledger.history()) == len(other.history()) == 1

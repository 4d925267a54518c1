"""What stands around the core's order (`dpgram.core.run`): tables, ledgers, files, programs, messages.

A *program* is a generator of stages. Each says which measurements are drawn in one pass; what it gets back is
published, and the next stage may depend on it and on public facts alone. Nothing else in dpgram charges a
ledger or draws noise (tests/unit/test_one_path.py).

    read the table             an error, a limit: nothing was spent
    charge the whole price     refused: nothing was spent
    draw, keep on disk         a crash from here on: the same call goes on from what was kept
    go on to the next stage    may read the table again
    give back, close           what was not drawn; only once the release is safe, or noisy results stopped it

Everything a person can get wrong is found before the charge. No decision looks at the exact sums: what
goes on and what is said in a release follows from public facts and published results.
"""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar, final

from dpgram.core.accounting import Price, keeps
from dpgram.core.run import Measure, carry_out
from dpgram.engines.passes import Pass
from dpgram.errors import (
    BudgetExceeded,
    DpgramError,
    LearningError,
    LedgerError,
    MechanismError,
    tell_caller,
)
from dpgram.privacy.accountant import describe
from dpgram.privacy.adjacency import Adjacency
from dpgram.privacy.sampling.bars import late_bar, on_terminal
from dpgram.privacy.sampling.directions import WATCHED
from dpgram.publishing._journal import Journal, Kept, open_journal, read_back
from dpgram.publishing.measurements.base import cost_of, event_of
from dpgram.rows.floats import as_numpy_begins

if TYPE_CHECKING:
    from pathlib import Path

    from dpgram.core.noise import Entropy
    from dpgram.engines.base import Engine
    from dpgram.engines.passes import Sums
    from dpgram.engines.threads import Progress
    from dpgram.privacy.events import Event
    from dpgram.privacy.guarantee import Guarantee
    from dpgram.privacy.ledger import Ledger
    from dpgram.privacy.receipt import Receipt
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.rows.rules import RowRules
    from dpgram.sums.base import Statistic

T = TypeVar("T")


@final
@dataclass(frozen=True, kw_only=True)
class Stage:
    """One pass over the table, and what is drawn of its sums."""

    rules: RowRules
    measurements: tuple[Measurement, ...]
    shown: bool = False
    """Whether its counts are those that the curator sees when all is drawn."""
    beside: tuple[Statistic, ...] = ()
    """What is added up too, for the curator's own file: nothing is drawn of it."""

    @property
    def work(self) -> Pass:
        """One statistic for each measurement, in order: what is priced is what is added up."""
        statistics = tuple(one.statistic for one in self.measurements)
        return Pass(rules=self.rules, statistics=(*statistics, *self.beside))

    @cached_property
    def wanted(self) -> list[Measure | Measurement]:
        """What the core draws, and measurements with a law of their own."""
        return [one.measure(self.rules) or one for one in self.measurements]

    def record(self, drawn: Sequence[Any]) -> tuple[Any, ...]:
        """What is published of it."""
        found = zip(self.measurements, self.wanted, drawn, strict=True)
        return tuple(one.record(each) if isinstance(own, Measure) else each for one, own, each in found)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a program gets for a stage: everything in it is published, or public anyway."""

    published: tuple[Any, ...]
    """What each measurement gave."""
    receipt: Receipt | None = None
    """Of the charge; None without a ledger."""
    drawn: Event | None = None
    """What all that was drawn so far costs together."""
    public_rows: int | None = None
    """Rows, or units, of the first pass: under replace-one that number is public."""


Program: TypeAlias = Generator[Stage, Answer, T]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """Who pays, and for what: the ledger, and what it is told."""

    ledger: Ledger
    adjacency: Adjacency
    unit: str | None = None
    note: str = ""
    request: Mapping[str, object] = field(default_factory=dict)
    """All public facts that were asked for."""

    @property
    def key(self) -> Mapping[str, object]:
        """What finds an interrupted publication again."""
        return key_of(self.ledger, self.request)

    @property
    def path(self) -> Path:
        """Beside which what was drawn is kept."""
        return self.ledger.path

    def check(self, event: Event) -> None:
        """Raise what the charge would raise now."""
        self.ledger.check(event, adjacency=self.adjacency, unit=self.unit, note=self.note)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Prepaid:
    """A charge that was made before for all periods of a series: for one of them nothing more is paid."""

    receipt: Receipt | None
    """None where no ledger was charged."""
    path: Path
    """The file of the series, beside which what was drawn is kept."""
    key: Mapping[str, object]
    """Which series, and which of its periods."""
    carry: Callable[[Stage, tuple[Sums, ...]], tuple[Any, ...]]
    """What is drawn of, for each measurement of a stage: the exact sums of earlier periods are added, and
    those of this one are kept, durably."""


def key_of(ledger: Ledger, request: Mapping[str, object]) -> dict[str, object]:
    """The same facts on the same ledger: one that was made anew in its place has paid for nothing."""
    return {**request, "ledger": ledger.ledger_id}


@contextlib.contextmanager
def paid_before(account: Account, price: Event) -> Iterator[tuple[Receipt, Path]]:
    """The charge for everything that is drawn later, and the file by which a repeated call finds it again.

    That file is there until the block ends: whoever draws later must first see that it is gone.

    Proof: proofs/series.md#series-once.
    """
    with open_journal(account.path, account.key) as journal:
        paid = _paid(account, journal)
        if paid is None:
            journal.refuse_unpaid()
            try:
                with journal.dropped_on_error():
                    account.check(price)
                paid = _charged(account, price, journal.receipt_id)
            except BudgetExceeded:
                journal.finish()
                raise
        yield paid, journal.path
        _close(account, journal, paid, price)


def _paid(account: Account, journal: Journal) -> Receipt | None:
    """What an interrupted run has paid. One may have left its journal without having paid anything."""
    paid = account.ledger.receipt(journal.receipt_id) if journal.resumed else None
    if paid is not None and account.ledger.is_closed(paid.receipt_id):
        raise journal.is_over(paid.entry)
    return paid


def _close(account: Account, journal: Journal, receipt: Receipt, used: Event | None) -> None:
    """The last draw is durable, and what it gave is safe: give back the rest, close the receipt, forget.

    In this order: a journal that outlives its charge, or is put back later, is refused.

    Proof: proofs/measurements.md#measurements-reserve.
    """
    try:
        account.ledger.give_back(receipt.receipt_id, used=used)
    except LedgerError as problem:
        tell_caller(
            f"entry {receipt.entry} of the ledger could not be closed ({problem.what}): the same call gives "
            "the same result again and tries once more"
        )
        return
    journal.finish()


def _charged(account: Account, event: Event, receipt_id: str) -> Receipt:
    """Durable when this returns."""
    return account.ledger.charge(
        event,
        adjacency=account.adjacency,
        unit=account.unit,
        note=account.note,
        receipt_id=receipt_id,
    )


@contextlib.contextmanager
def publication(
    program: Program[T],
    *,
    data: object,
    engine: Engine,
    entropy: Entropy,
    adjacency: Adjacency,
    price: Event,
    account: Account | Prepaid | None = None,
    progress: Progress = None,
    promise: Guarantee | None = None,
    public: Callable[[int], None] | None = None,
    rows_at_most: RowsAtMost | None = None,
    report: Callable[[T, Sums], None] | None = None,
) -> Iterator[T]:
    """Carry a program out. What was paid for is kept on disk until the block ends without an error.

    `price` is that of everything it may draw: refused before a row is read where the ledger has less, or
    where noise that costs it would not keep what is promised, and charged whole before the first draw. Under
    replace-one `public` receives the number of rows, or units, which is public there: whatever it raises
    costs nothing. `report` receives the result and the sums of the stage that is shown, after the last draw.

    Proofs: proofs/measurements.md#measurements-order, proofs/measurements.md#measurements-reserve.
    """
    refuse_seeded(entropy, account)
    promised = cost_of(price)
    if promise is not None and not promised.own and not keeps(promised, promise.epsilon, promise.delta):
        raise MechanismError(
            "the parts of this publication cost more than its guarantee",
            got=describe(price),
            limit=f"epsilon = {promise.epsilon:g}, delta = {promise.delta:g}",
            remedy="This is a bug: please report it. Nothing was read",
        )
    # A broken installation must be found before the charge, not after it.
    entropy.rehearse()
    with contextlib.ExitStack() as stack:
        journal, begun = None, False
        if account is not None:
            # A period is paid for already: no version of the library may draw it a second time.
            once = isinstance(account, Prepaid)
            journal = stack.enter_context(open_journal(account.path, account.key, once=once))
            begun = journal.resumed
            if isinstance(account, Account) and _paid(account, journal) is None:
                begun = False
                journal.refuse_unpaid()
                with journal.dropped_on_error():
                    account.check(price)
        run = _Run(
            program=program,
            data=data,
            engine=engine,
            adjacency=adjacency,
            price=price,
            account=account,
            journal=journal,
            progress=progress,
            public=public,
            rows_at_most=rows_at_most,
        )
        try:
            with as_numpy_begins(), run.watched():
                carry_out(run, promised=promised, relation=adjacency.name, entropy=entropy)
            result: T = run.result
        except DpgramError as stopped:
            # Noise hid what was needed, or nothing was charged, now or by a run before this one: there is
            # nothing to go on with.
            over = isinstance(stopped, LearningError) and stopped.final
            stopped.charged = run.paying or begun
            if over or not stopped.charged:
                run.finish()
            raise
        if report is not None and run.shown is not None:
            report(result, run.shown)
        yield result
        run.finish()


def refuse_seeded(entropy: Entropy, account: Account | Prepaid | None) -> None:
    """A ledger pays for noise that nobody can remove."""
    paid = isinstance(account, Account) or (account is not None and account.receipt is not None)
    if paid and entropy.label != "system":
        raise MechanismError(
            "seeded noise can be removed by whoever knows the seed, so no ledger pays for it",
            remedy="Leave entropy out; or, for an experiment, leave the ledger out",
        )


def measured(measurement: Measurement, exact: Any, rules: RowRules, entropy: Entropy) -> Any:
    """What is published of exact sums of rows that were read by these rules."""
    measure = measurement.measure(rules)
    if measure is None:
        return measurement.draw(exact, entropy)
    return measurement.record(measure.draw([one.cells for one in exact], entropy))


class Drawable(Protocol):
    """A mechanism: anything that puts noise on exact sums."""

    def draw(self, exact: Any, entropy: Entropy, /) -> Any:
        """One draw."""


def drawn(source: Drawable, exact: Any, entropy: Entropy) -> Any:
    """One draw from sums that are no secret, as in an audit: there is nothing to charge."""
    return source.draw(exact, entropy)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class RowsAtMost:
    """For more rows the arithmetic of this mechanism is not proven: a limit that is public and far away."""

    mechanism: str
    rows: int

    def check(self, rows: int) -> None:
        """Like the overflow of the sums (docs/limits.md)."""
        if rows > self.rows:
            raise MechanismError(
                f"{self.mechanism} needs eigenvalues or an inverse, whose error is bounded for fewer rows",
                limit=f"{self.rows:,} rows",
                remedy="Use gaussian or matrix-laplace, which need neither",
            )


@final
@dataclass(slots=True, kw_only=True)
class _Run(Generic[T]):
    """One publication under way, around the core's loop.

    Proofs: proofs/measurements.md#measurements-order, proofs/measurements.md#measurements-resume.
    """

    program: Program[T]
    data: object
    engine: Engine
    adjacency: Adjacency
    price: Event
    account: Account | Prepaid | None
    journal: Journal | None
    progress: Progress
    public: Callable[[int], None] | None
    rows_at_most: RowsAtMost | None
    result: Any = None
    spent: Price = Price()  # noqa: RUF009  (it is frozen)
    receipt: Receipt | None = None
    public_rows: int | None = None
    shown: Sums | None = None
    reserved: bool = False
    """Whether the whole price was charged, where anything is."""
    paying: bool = False
    """Whether a charge may have been made."""
    reading: Path | None = None
    """The file from which the stage at hand was read back."""
    recalled: bool = False
    """Whether the caller knows that a result comes from the file of an interrupted run."""

    def following(self, published: tuple[Any, ...] | None, spent: Price) -> Stage | None:
        """What the program yields next, or its result."""
        if published is None:
            return next(self.program)
        self.spent = spent
        answer = Answer(
            published=published,
            receipt=self.receipt,
            drawn=event_of(spent),
            public_rows=self.public_rows,
        )
        with contextlib.nullcontext() if self.reading is None else read_back(self.reading):
            try:
                return self.program.send(answer)
            except StopIteration as end:
                self.result = end.value
        return None

    def finish(self) -> None:
        """Nothing more is drawn: the release is safe, noisy results have stopped it, or nothing was paid."""
        if self.journal is None:
            return
        if self.receipt is not None and isinstance(self.account, Account):
            _close(self.account, self.journal, self.receipt, event_of(self.spent))
        else:
            self.journal.finish()

    def kept(self, number: int, stage: Stage) -> tuple[Any, ...] | None:
        """What an interrupted run of the same publication has drawn already."""
        kept = None if self.journal is None else self.journal.kept(number)
        self.reading = None
        if self.journal is None or kept is None:
            return None
        self.reading = self.journal.path
        self.pay()
        if not self.recalled:
            self.recalled = True
            place = self.reading.name
            tell_caller(f"what an interrupted run has drawn, of the table that it read, comes from {place}")
        self.public_rows = kept.public_rows
        with read_back(self.reading):
            found = zip(stage.measurements, kept.published, strict=True)
            return tuple(measurement.from_json(plain) for measurement, plain in found)

    def read(self, number: int, stage: Stage) -> tuple[Any, ...]:
        """The exact sums of every measurement; whatever is wrong so far has cost nothing."""
        work = stage.work
        sums = self._added_up(work)
        if number == 0:
            self._check_rows(work, sums)
        if stage.shown:
            self.shown = sums
        exact: tuple[Any, ...] = work.by_statistic(sums)
        if isinstance(self.account, Prepaid):
            # From here on sums may be on disk: only a journal tells what was interrupted from an old copy.
            self.paying = True
            exact = self.account.carry(stage, exact)
        found = zip(stage.wanted, exact[: len(stage.measurements)], strict=True)
        return tuple([each.cells for each in one] if isinstance(own, Measure) else one for own, one in found)

    def _check_rows(self, work: Pass, sums: Sums) -> None:
        if self.rows_at_most is not None:
            self.rows_at_most.check(work.rows_read(sums))
        if self.adjacency.name == "replace-one":
            units = work.rules.unit is not None
            self.public_rows = work.units_read(sums) if units else work.rows_read(sums)
            if self.public is not None and not self.reserved:
                self.public(self.public_rows)

    def keep(self, number: int, stage: Stage, published: tuple[Any, ...]) -> None:
        """Durable before anybody can act on it, so that no second noise is ever drawn for it."""
        if self.journal is not None:
            plain = [m.to_json(each) for m, each in zip(stage.measurements, published, strict=True)]
            self.journal.keep(number, Kept(published=plain, public_rows=self.public_rows))

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Directions of many columns take minutes: a bar on a terminal counts them, where rows have one."""
        if self.progress is not None or not on_terminal():
            yield
            return
        with late_bar("drawing directions") as show:
            before = WATCHED.set(show)
            try:
                yield
            finally:
                WATCHED.reset(before)

    def _added_up(self, work: Pass) -> Sums:
        """The exact sums of one pass. After the charge nothing but the source itself may make it fail."""
        progress = harmless(self.progress) if self.reserved and callable(self.progress) else self.progress
        with warnings.catch_warnings(record=True) as cautions:
            warnings.simplefilter("always")
            try:
                sums = self.engine.add_up(self.data, work, progress=progress)
            except DpgramError as problem:
                if not self.reserved or self.account is None:
                    raise
                raise self._interrupted(problem) from problem
        for caution in cautions:
            tell_caller(str(caution.message))
        return sums

    def _interrupted(self, problem: DpgramError) -> LearningError:
        """A table that can no longer be read after the charge: the message says what that has cost."""
        return LearningError(
            "the table could not be read again after the charge",
            got=problem,
            remedy="Repair the source and publish again with the same options and ledger: that "
            "continues from here and charges nothing twice",
            spent=self.price,
            cost=f"and its whole price, {describe(self.price)}, stays reserved until it is finished",
            final=False,
        )

    def pay(self) -> None:
        """The whole price, durable when this returns. What an interrupted run has paid is not paid again."""
        if self.reserved:
            return
        if isinstance(self.account, Prepaid):
            self.paying = True
            self.receipt = self.account.receipt
        elif self.account is not None and self.journal is not None:
            paid = _paid(self.account, self.journal)
            self.paying = True
            if paid is None:
                paid = self._pay(self.account, self.journal.receipt_id)
            else:
                tell_caller(
                    f"a publication with these options was interrupted after entry {paid.entry} of the "
                    "ledger was charged: this call continues it, and charges nothing for what was drawn"
                    + (f", which it takes from {self.journal.path.name}" if self.journal.kept(0) else "")
                )
                self.recalled = True
            self.receipt = paid
        self.reserved = True

    def _pay(self, account: Account, receipt_id: str) -> Receipt:
        try:
            return _charged(account, self.price, receipt_id)
        except BudgetExceeded:
            self.paying = False
            raise


def warn_of_delta(delta: float, rows: int, unit: str | None = None) -> None:
    """For a number of rows, or units, that is public."""
    if delta * rows > 1.0:
        tell_caller(
            f"delta = {delta:g} is more than one in {rows} {'rows' if unit is None else 'units'}: "
            "with it one person in the table may be revealed"
        )


def harmless(progress: Callable[[int], None]) -> Callable[[int], None]:
    """A bar that breaks must not cost what was paid for: it is left alone from then on."""
    broken = False

    def show(rows: int) -> None:
        nonlocal broken
        if not broken:
            try:
                progress(rows)
            except Exception:  # noqa: BLE001  (whatever it is, it is not worth a release)
                broken = True

    return show

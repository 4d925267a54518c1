"""The order that is the guarantee, written once: read → charge → draw → publish, stage after stage.

A *program* is a generator of stages. Each says what is added up in one pass and which measurements are drawn
of it; what it gets back is published, and the next stage may depend on it and on public facts alone. Nothing
else in dpgram charges a ledger or draws noise (tests/unit/test_one_path.py).

    read the table             an error, a report that fails, a limit: nothing was spent
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
from collections import Counter
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, TypeVar, final

from dpgram.core.accounting import Price, keeps
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
from dpgram.privacy.events import ApproximateEvent, Event, GaussianEvent, Part, PureEvent, composed, parts_of
from dpgram.privacy.exact_sums import float_up, root_up
from dpgram.privacy.sampling.bars import late_bar, on_terminal
from dpgram.privacy.sampling.directions import WATCHED
from dpgram.publishing._journal import Journal, Kept, open_journal, read_back
from dpgram.rows.floats import as_numpy_begins

if TYPE_CHECKING:
    from pathlib import Path

    from dpgram.core.noise import Entropy
    from dpgram.engines.base import Engine
    from dpgram.engines.passes import Pass, Sums
    from dpgram.engines.threads import Progress
    from dpgram.privacy.guarantee import Guarantee
    from dpgram.privacy.ledger import Ledger
    from dpgram.privacy.receipt import Receipt
    from dpgram.publishing.measurements.base import Measurement
    from dpgram.rows.rules import RowRules

T = TypeVar("T")

_ROUNDING: Final = Fraction(1, 10**12)
"""By which the prices of parts, each rounded up, may exceed the price of the whole."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One pass over the table, and what is drawn of its sums."""

    work: Pass
    measurements: tuple[Measurement, ...]
    """One for each statistic of the pass, in order."""
    inspect: Callable[[Sums], None] | None = None
    """For the curator's eyes, after reading and before the charge: whatever it raises costs nothing."""
    carry: Callable[[tuple[Sums, ...]], tuple[Any, ...]] | None = None
    """What is drawn of, made of the sums and of what the curator has kept; one for each measurement.

    In a series: the exact sums of earlier periods are added, and those of this one are kept, durably."""
    look: Callable[[Sums], None] | None = None
    """For the curator's eyes, after the draw: must not raise."""


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
) -> Iterator[T]:
    """Carry a program out. What was paid for is kept on disk until the block ends without an error.

    `price` is that of everything it may draw: refused before a row is read where the ledger has less, or
    where noise that costs it would not keep what is promised, and charged whole before the first draw.

    Proofs: proofs/measurements.md#measurements-order, proofs/measurements.md#measurements-reserve.
    """
    refuse_seeded(entropy, account)
    if promise is not None and not _keeps(price, promise):
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
            data=data,
            engine=engine,
            entropy=entropy,
            adjacency=adjacency,
            price=price,
            account=account,
            journal=journal,
            progress=progress,
        )
        try:
            with as_numpy_begins():
                result = run.carry_out(program)
        except DpgramError as stopped:
            # Noise hid what was needed, or nothing was charged, now or by a run before this one: there is
            # nothing to go on with.
            over = isinstance(stopped, LearningError) and stopped.final
            stopped.charged = run.paying or begun
            if over or not stopped.charged:
                run.finish()
            raise
        yield result
        run.finish()


def _keeps(price: Event, promise: Guarantee) -> bool:
    """Whether noise of this price keeps the promise, by the core's own curve.

    Mechanisms with a law of their own have a curve of their own, by which they were calibrated.
    """
    spent = Price()
    for part in parts_of(price):
        match part:
            case GaussianEvent(mu=mu):
                spent += Price(mu_squared=Fraction(mu) ** 2)
            case PureEvent(epsilon=epsilon):
                spent += Price(epsilon=Fraction(epsilon))
            case ApproximateEvent(epsilon=0.0, delta=delta):
                spent += Price(delta=Fraction(delta))
            case _:
                return True
    return keeps(spent, promise.epsilon, promise.delta)


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
@dataclass(slots=True, kw_only=True)
class _Run:
    """One publication under way.

    Proofs: proofs/measurements.md#measurements-order, proofs/measurements.md#measurements-resume.
    """

    data: object
    engine: Engine
    entropy: Entropy
    adjacency: Adjacency
    price: Event
    account: Account | Prepaid | None
    journal: Journal | None
    progress: Progress
    receipt: Receipt | None = None
    public_rows: int | None = None
    allowance: Allowance = field(default_factory=lambda: Allowance())  # noqa: PLW0108  (it is defined below)
    reserved: bool = False
    """Whether the whole price was charged, where anything is."""
    drawn: list[Event | Price] = field(default_factory=list)
    paying: bool = False
    """Whether a charge may have been made."""
    recalled: bool = False
    """Whether the caller knows that a result comes from the file of an interrupted run."""

    def carry_out(self, program: Program[T]) -> T:
        number, stage = 0, next(program)
        while True:
            published, reading = self._published(number, stage)
            answer = Answer(
                published=published,
                receipt=self.receipt,
                drawn=together(self.drawn),
                public_rows=self.public_rows,
            )
            try:
                with reading:
                    stage = program.send(answer)
            except StopIteration as end:
                result: T = end.value
                return result
            number += 1

    def finish(self) -> None:
        """Nothing more is drawn: the release is safe, noisy results have stopped it, or nothing was paid."""
        if self.journal is None:
            return
        if self.receipt is not None and isinstance(self.account, Account):
            _close(self.account, self.journal, self.receipt, together(self.drawn))
        else:
            self.journal.finish()

    def _published(
        self, number: int, stage: Stage
    ) -> tuple[tuple[Any, ...], contextlib.AbstractContextManager[None]]:
        """What this stage gives, and what goes around whoever takes it: it may be read back from a file."""
        kept = None if self.journal is None else self.journal.kept(number)
        if self.journal is None or kept is None:
            return self._measured(number, stage), contextlib.nullcontext()
        return self._recalled(stage, kept, self.journal.path), read_back(self.journal.path)

    def _measured(self, number: int, stage: Stage) -> tuple[Any, ...]:
        """Read, charge, draw, keep: in this order."""
        sums = self._read(stage)
        if number == 0 and self.adjacency.name == "replace-one":
            units = stage.work.rules.unit is not None
            self.public_rows = stage.work.units_read(sums) if units else stage.work.rows_read(sums)
        if stage.inspect is not None and not self.reserved:
            stage.inspect(sums)
        exact: tuple[Any, ...] = stage.work.by_statistic(sums)
        if stage.carry is not None:
            # From here on sums may be on disk: only a journal tells what was interrupted from an old copy.
            self.paying = self.paying or isinstance(self.account, Prepaid)
            exact = stage.carry(exact)
        self._use(stage)
        with self._watched():
            published = tuple(
                measured(measurement, found, stage.work.rules, self.entropy)
                for measurement, found in zip(stage.measurements, exact, strict=True)
            )
        if self.journal is not None:
            plain = [m.to_json(each) for m, each in zip(stage.measurements, published, strict=True)]
            # Durable before anybody can act on it, so that no second noise is ever drawn for it.
            self.journal.keep(number, Kept(published=plain, public_rows=self.public_rows))
        if stage.look is not None:
            stage.look(sums)
        return published

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
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

    def _recalled(self, stage: Stage, kept: Kept, journal: Path) -> tuple[Any, ...]:
        """What an interrupted run of the same publication has drawn already."""
        self._use(stage)
        if not self.recalled:
            self.recalled = True
            tell_caller(
                f"what an interrupted run has drawn, of the table that it read, comes from {journal.name}"
            )
        self.public_rows = kept.public_rows
        with read_back(journal):
            found = zip(stage.measurements, kept.published, strict=True)
            return tuple(measurement.from_json(plain) for measurement, plain in found)

    def _read(self, stage: Stage) -> Sums:
        """The exact sums of one pass. After the charge nothing but the source itself may make it fail."""
        progress = harmless(self.progress) if self.reserved and callable(self.progress) else self.progress
        with warnings.catch_warnings(record=True) as cautions:
            warnings.simplefilter("always")
            try:
                sums = self.engine.add_up(self.data, stage.work, progress=progress)
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

    def _use(self, stage: Stage) -> None:
        """Before a draw: the charge, if it was not made, and whether it covers this.

        What the core draws, it prices itself.
        """
        if not self.reserved:
            self._charge()
        for measurement in stage.measurements:
            measure = measurement.measure(stage.work.rules)
            cost = measurement.event if measure is None else measure.price(self.adjacency.name)
            self.allowance.use(cost)
            self.drawn.append(cost)

    def _charge(self) -> None:
        """The whole price, durable when this returns. What an interrupted run has paid is not paid again."""
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
        self.allowance.add(self.price)
        self.reserved = True

    def _pay(self, account: Account, receipt_id: str) -> Receipt:
        try:
            return _charged(account, self.price, receipt_id)
        except BudgetExceeded:
            self.paying = False
            raise


@final
class Allowance:
    """What was charged and is not yet drawn. A defence in depth: no draw that its charge does not cover.

    Proof: proofs/measurements.md#measurements-composition.
    """

    def __init__(self) -> None:
        self._squares, self._epsilons, self._deltas = Fraction(0), Fraction(0), Fraction(0)
        self._others: Counter[Part] = Counter()
        self._most = Fraction(0)

    def add(self, event: Event) -> None:
        """A charge was made."""
        self._move(event, 1)
        self._most = max(self._most, self._squares, self._epsilons)

    def use(self, what: Event | Price) -> None:
        """Something is about to be drawn: refuse what no charge covers."""
        if isinstance(what, Price):
            self._squares -= what.mu_squared
            self._epsilons -= what.epsilon
            self._deltas -= what.delta
        else:
            self._move(what, -1)
        slack = self._most * _ROUNDING
        short = min(self._squares, self._epsilons, self._deltas) < -slack
        if short or any(count < 0 for count in self._others.values()):
            raise MechanismError(
                "a measurement would cost more than was charged for it",
                got=what if isinstance(what, Price) else describe(what),
                remedy="This is a bug: please report it. Nothing was drawn",
            )

    def _move(self, event: Event, sign: int) -> None:
        for part in parts_of(event):
            match part:
                case GaussianEvent(mu=mu):
                    self._squares += sign * Fraction(mu) ** 2
                case PureEvent(epsilon=epsilon):
                    self._epsilons += sign * Fraction(epsilon)
                case ApproximateEvent(epsilon=0.0, delta=delta):
                    self._deltas += sign * Fraction(delta)
                case _:
                    self._others[part] += sign


def together(drawn: Iterable[Event | Price]) -> Event | None:
    """What was drawn as one event: sums of μ², ε and δ, and beside them what cannot be added.

    Proof: proofs/measurements.md#measurements-reserve.
    """
    spent, others = Price(), list[Event]()
    for each in drawn:
        if isinstance(each, Price):
            spent += each
            continue
        for part in parts_of(each):
            match part:
                case GaussianEvent(mu=mu):
                    spent += Price(mu_squared=Fraction(mu) ** 2)
                case PureEvent(epsilon=epsilon):
                    spent += Price(epsilon=Fraction(epsilon))
                case ApproximateEvent(epsilon=0.0, delta=delta):
                    spent += Price(delta=Fraction(delta))
                case _:
                    others.append(part)
    parts: list[Event] = []
    if spent.mu_squared:
        parts.append(GaussianEvent(mu=root_up(spent.mu_squared)))
    if spent.epsilon:
        parts.append(PureEvent(epsilon=float_up(spent.epsilon)))
    if spent.delta:
        parts.append(ApproximateEvent(epsilon=0.0, delta=float_up(spent.delta)))
    return composed([*parts, *others]) if parts or others else None


def warn_of_delta(delta: float, work: Pass, sums: Sums) -> None:
    """Only under replace-one: there the number of rows is public, so that this depends on no row."""
    unit = work.rules.unit
    rows = work.rows_read(sums) if unit is None else work.units_read(sums)
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

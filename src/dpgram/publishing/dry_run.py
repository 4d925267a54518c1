"""check(): what a request would do to a table, before anything is spent. Its counts are exact, so secret."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, Unpack, final

from dpgram.core.units import PolicyCounts
from dpgram.engines.find import find_engine
from dpgram.privacy.accountant import describe, price
from dpgram.privacy.guarantee import Guarantee
from dpgram.publishing._adaptive_prices import adaptive_family, calibrate_adaptive
from dpgram.publishing._learning import calibrate_learning
from dpgram.publishing.causes import Cause
from dpgram.publishing.column_checks import ColumnCheck
from dpgram.publishing.losses import Losses, losses_of, row_warnings
from dpgram.publishing.publisher import form_of
from dpgram.publishing.request import Asked, Request, check_rows, check_schema, open_ledger, requested
from dpgram.publishing.terms import matrix_terms, plain_price
from dpgram.rows.encoder import Encoder
from dpgram.rows.rules import EVERY_ROW, RowRules, row_rules
from dpgram.sources.headers import NO_HEADER, look_like_cells
from dpgram.sources.workbooks import odd_rows
from dpgram.sums.grams import GramStatistic

if TYPE_CHECKING:
    from dpgram.engines.base import Engine
    from dpgram.engines.threads import Progress
    from dpgram.publishing.request import LedgerLike
    from dpgram.schema import Schema

EVERYTHING: Final = (-1e150, 1e150)
"""Bounds of a column whose own are to be learnt: no value is clamped by them."""

ANY_BUDGET: Final = Guarantee(1.0, 1e-30)
"""In place of one that was not given, to check the rest: nothing is refused or warned about because of it."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """What `publish` would use and charge."""

    mechanism: str
    reason: str
    charge: str
    share: float | None = None
    """Of the whole budget of the ledger; None where none was named."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """For the curator's eyes only: the counts are exact, so they must not leave the house.

    A schema that is changed because of them is no longer made of public facts alone.
    """

    columns: tuple[tuple[str, str, str], ...]
    """Name, declared kind and type in the data of each column."""
    encoded_columns: int
    radius: float | None
    """The longest row the schema allows, or the public radius; None where bounds are still to be learnt."""
    counts: Mapping[str, PolicyCounts]
    """By group or block; "all" where there is one matrix."""
    price: Price | None
    """None where no epsilon was given."""
    seconds: float
    undecided: tuple[str, ...] = ()
    """Columns of a schema file that nobody has filled in: `publish` refuses them."""
    odd_rows: str | None = None
    """What a workbook seems to hold beside the table, in words."""
    losses: Losses | None = None
    """What becomes of the cells of each column; None for a stream, which can be read only once."""

    @property
    def table(self) -> tuple[ColumnCheck, ...]:
        """The cells of each column that is read, counted."""
        return () if self.losses is None else self.losses.columns

    @property
    def causes(self) -> tuple[Cause, ...]:
        """Guesses why cells are lost, each with the line for the schema."""
        return () if self.losses is None else self.losses.causes

    @property
    def warnings(self) -> tuple[str, ...]:
        """What would go wrong, in words; see `much_is_lost`."""
        found = () if self.losses is None else self.losses.warnings
        return (*self.header_warnings, *self.schema_warnings, *self.row_warnings, *found)

    @property
    def schema_warnings(self) -> tuple[str, ...]:
        """What nobody has filled in, which stops a publication; and rows that seem to be none."""
        odd = () if self.odd_rows is None else (self.odd_rows,)
        if not self.undecided:
            return odd
        said = (
            f"not filled in, so that publish will refuse the schema: {', '.join(map(repr, self.undecided))}. "
            "Give public bounds or levels, delete the column, or write learn = true below it"
        )
        return (*odd, said)

    @property
    def header_warnings(self) -> tuple[str, ...]:
        """Where the names of the columns look like cells: a release publishes names."""
        return (NO_HEADER,) if look_like_cells(name for name, _, _ in self.columns) else ()

    @property
    def row_warnings(self) -> tuple[str, ...]:
        """Where no row can be used, or far fewer than there are."""
        return tuple(row_warnings(self.counts))

    @property
    def much_is_lost(self) -> bool:
        """Whether to stop and think: over 5% of a column's cells or 20% of the rows cannot be used."""
        return bool(self.row_warnings) or (self.losses is not None and self.losses.much)

    def summary(self) -> str:
        """All of it as text, for a screen: counts in per cent, a picture of each column, what to write.

        >>> found = dg.check(table, schema)
        >>> print(found.summary().splitlines()[0])
        column      readable   missing  unreadable  unknown  below  above
        """
        return "" if self.losses is None else self.losses.summary()


def check(
    data: object,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    ledger: LedgerLike | None = None,
    engine: str | Engine = "auto",
    progress: Progress = None,
    **asked: Unpack[Asked],
) -> Check:
    """Dry run of `publish`, which takes the same: read and count everything, spend and write nothing.

    Refuses whatever `publish` would refuse, a ledger with too little left among it. Without `epsilon` the
    rows are counted and nothing is priced; all else that was given is checked all the same.

    >>> found = dg.check(table, schema, epsilon=1, delta=1e-6, ledger=ledger)
    >>> found.counts["all"].rows_used, ledger.entries
    (20000, 0)
    """
    check_schema(schema, data)
    rows = asked.get("rows", EVERY_ROW)
    check_rows(rows)
    chosen = find_engine(engine, data)
    rules = row_rules(schema, rows)
    cost = None
    if epsilon is None:
        requested(schema, epsilon=ANY_BUDGET.epsilon, delta=delta or ANY_BUDGET.delta, **asked)
        open_ledger(ledger)
    else:
        request = requested(schema, epsilon=epsilon, delta=delta, beside=form_of(data, chosen), **asked)
        cost = price_of(request, ledger)
    open_bounds, open_levels = rules.schema.unbounded, rules.schema.without_levels
    known = rules.schema.with_bounds(dict.fromkeys(open_bounds, EVERYTHING))
    known = known.with_levels(dict.fromkeys(open_levels, ()))
    encoders = [
        Encoder(one, clip=rows.radius, missing=rows.missing, strict=rows.strict) for one in known.in_blocks()
    ]
    types = _types(data, chosen, schema)
    started = time.perf_counter()
    losses = losses_of(data, chosen, rules)
    counts = _counted(data, chosen, replace(rules, schema=known), encoders, progress)
    return Check(
        columns=tuple((one.name, one.kind, types.get(one.name, "computed")) for one in schema.columns),
        encoded_columns=known.width,
        radius=None if open_bounds or open_levels else max(encoder.radius for encoder in encoders),
        counts=counts,
        price=cost,
        seconds=time.perf_counter() - started,
        undecided=schema.undecided,
        odd_rows=odd_rows(data, schema.layout),
        losses=losses,
    )


def price_of(request: Request, ledger: LedgerLike | None) -> Price:
    """What a request would charge, from public facts; refused where the ledger has too little left."""
    book = open_ledger(ledger)
    currency = None if book is None else book.currency
    family = adaptive_family(request, currency)
    if family is not None:
        adaptive = calibrate_adaptive(request, family)
        mechanism = "gaussian" if family == "gaussian" else "matrix-laplace"
        reason, event = "histograms and a first matrix come before the last one", adaptive.price
    elif request.split:
        calibration = calibrate_learning(request, currency)
        mechanism, reason = calibration.mechanism.name, "what is learnt comes first"
        event = calibration.price
    else:
        terms = matrix_terms(request, currency)
        mechanism, reason = terms[0].mechanism.name, terms[0].reason
        event = plain_price(request, terms)
    share = None
    if book is not None:
        book.check(event, adjacency=request.adjacency, unit=request.rules.unit, note=request.note)
        share = float(price(event, book.currency).amount / book.total)
    return Price(mechanism=mechanism, reason=reason, charge=describe(event), share=share)


def _types(data: object, engine: Engine, schema: Schema) -> dict[str, str]:
    """Types of the data's columns, where this machine reads them."""
    from dpgram.sources import column_types, read_once

    return {} if engine.name != "local" or read_once(data) else dict(column_types(data, schema.layout))


def _counted(
    data: object, engine: Engine, rules: RowRules, encoders: list[Encoder], progress: Progress
) -> dict[str, PolicyCounts]:
    from dpgram.engines.passes import Pass

    work = Pass(rules=rules, statistics=tuple(GramStatistic(encoder) for encoder in encoders))
    sums = engine.add_up(data, work, progress=progress)
    if len(encoders) > 1:
        names = [f"block {number}" for number in range(1, len(encoders) + 1)]
    else:
        names = ["all" if level is None else level for level in rules.groups]
    return {name: found.counts for name, found in zip(names, sums, strict=True)}

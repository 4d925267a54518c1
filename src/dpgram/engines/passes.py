"""One pass over a table, and what a worker on any machine does with its part of it: open, read, add up.

Everything here can be sent to another process and depends on its arguments alone, so a task that is lost, run
twice or run elsewhere gives the same bits. An error of the data travels as a value (`Failed`): running such a
task again could not mend it, and a worker's own traceback could quote a row.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, final

from dpgram.core import sums as core
from dpgram.core.units import PolicyCounts
from dpgram.document.fields import SurveyWeight, UnitRule
from dpgram.errors import DataError, DpgramError, MissingExtra, SchemaError, SourceError, tell_caller
from dpgram.rows.encoder import CHUNK_ROWS, Encoder
from dpgram.rows.rules import RowRules
from dpgram.sums.base import Accumulator, CoreAccumulator, CoreStatistic, Statistic, Sum
from dpgram.sums.each_group import members_of
from dpgram.sums.grams import GramStatistic

if TYPE_CHECKING:
    import pyarrow as pa

    from dpgram.rows.batch import Reader, RowBatch
    from dpgram.schema.columns import Categorical
    from dpgram.schema.reading import Reading
    from dpgram.sources import DeclaredKind, Source

Numbered: TypeAlias = "tuple[int, pa.RecordBatch]"
"""A batch with the number of its first row."""

_KINDS: Final = {
    kind.__name__: kind for kind in (DpgramError, SchemaError, SourceError, DataError, MissingExtra)
}


@final
@dataclass(frozen=True, slots=True)
class Failed:
    """An error of the data as plain words, so that any engine can carry it to the driver."""

    kind: str
    message: str
    facts: Mapping[str, str | int | None]

    @classmethod
    def of(cls, error: DpgramError, part: int | None = None) -> Self:
        """`part` is the number of a part whose place in the table nobody knows: rows are counted in it."""
        facts = {name: _fact(value) for name, value in vars(error).items()}
        message = str(error)
        if part is not None and isinstance(error, DataError) and error.row is not None:
            facts["what"] = f"{error.what} of part {part}"
            message = message.replace(error.what, f"{error.what} of part {part}", 1)
        known = next(kind.__name__ for kind in type(error).__mro__ if kind.__name__ in _KINDS)
        return cls(known, message, facts)

    def error(self) -> DpgramError:
        kind = _KINDS[self.kind]
        error = kind.__new__(kind, self.message)
        vars(error).update(self.facts)
        return error


def _fact(value: object) -> str | int | None:
    return value if value is None or isinstance(value, str | int) else str(value)


Sums: TypeAlias = tuple[Sum, ...]
"""What a pass gives: for each statistic its sum, or one for each group; see `Pass.by_statistic`."""
Outcome: TypeAlias = Sums | Failed

BATCH_CELLS: Final = 1 << 21
"""Most cells of a batch (16 MB of floats): few enough that memory does not depend on the table."""
BATCH_CHUNKS: Final = 16
"""Most chunks of a batch: few enough that workers end together."""


@final
@dataclass(frozen=True, slots=True)
class Bucket:
    """Rows of one part of a table whose units belong together; as sensitive as the table itself."""

    batches: tuple[pa.RecordBatch, ...]
    without_unit: int = 0
    failed: Failed | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pass:
    """Which rows count and how, and what is added up of them. Public facts only, sent to every worker."""

    rules: RowRules
    statistics: tuple[Statistic, ...]

    @property
    def by_unit(self) -> bool:
        """Whether all rows of a unit must come together before any of them is counted."""
        return self.rules.unit_rule is not None

    @property
    def strict(self) -> bool:
        """Whether a value outside the schema stops the pass."""
        return self.rules.strict

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read of the table, in order."""
        return self.rules.columns

    @property
    def kinds(self) -> dict[str, DeclaredKind]:
        """How cells without a type of their own are read."""
        from dpgram.rows.batch import kinds_of

        return kinds_of(self.rules)

    @property
    def readings(self) -> dict[str, Reading]:
        """The reading rules of the columns that have some."""
        from dpgram.rows.batch import readings_of

        return readings_of(self.rules)

    @property
    def batch_rows(self) -> int:
        """Rows of a batch: whole chunks of the encoders, in memory that does not depend on the table."""
        every = [one for each in self.statistics for one in members_of(each)]
        encoders = [each.encoder for each in every if isinstance(each, GramStatistic)]
        rows = min((encoder.chunk_rows for encoder in encoders), default=CHUNK_ROWS)
        return rows * min(BATCH_CHUNKS, max(1, BATCH_CELLS // (rows * len(self.columns))))

    def open(self, data: object) -> Source:
        """Anything that can be read on this machine."""
        from dpgram.sources import open_source

        return open_source(
            data,
            self.columns,
            kinds=self.kinds,
            readings=self.readings,
            layout=self.rules.schema.layout,
            batch_rows=self.batch_rows,
        )

    def reader(self) -> Reader:
        """Turns batches into rows; for one thread."""
        from dpgram.rows.batch import Reader

        return Reader(self.rules)

    def adder(self) -> Adder:
        """Adds rows up; for one thread."""
        return Adder(self)

    def zero(self) -> Sums:
        return tuple(found for each in self.statistics for found in each.zero(self.rules))

    def by_statistic(self, sums: Sums) -> tuple[Sums, ...]:
        left = iter(sums)
        return tuple(tuple(islice(left, each.count(self.rules))) for each in self.statistics)

    def sums(self, batches: Iterable[Numbered], part: int | None = None) -> Outcome:
        """The sums of one part of the table, where rows count one by one."""
        try:
            reader, adder = self.reader(), self.adder()
            for first_row, batch in batches:
                adder.add(reader.read(batch, first_row=first_row))
            return adder.result()
        except DpgramError as error:
            return Failed.of(error, part)

    def rows_read(self, outcome: Outcome) -> int:
        """How many rows of the table these sums have seen."""
        if isinstance(outcome, Failed):
            return 0
        # Every statistic sees every row, so the first one tells.
        return sum(found.counts.rows_read for found in self.by_statistic(outcome)[0])

    def units_read(self, sums: Sums) -> int:
        """How many units these sums have seen."""
        return sum(found.counts.units_read for found in self.by_statistic(sums)[0])

    def rows(self, batches: Iterable[Numbered], part: int | None = None) -> Iterator[RowBatch | Failed]:
        """The rows of one part of the table with their units; an error of the data comes last."""
        reader = self.reader()
        try:
            for first_row, batch in batches:
                yield reader.read(batch, first_row=first_row)
        except DpgramError as error:
            yield Failed.of(error, part)

    def split(self, batches: Iterable[Numbered], buckets: int, part: int | None = None) -> list[Bucket]:
        """The rows of one part of the table by unit; all rows of a unit are in the same bucket everywhere."""
        parts: list[list[pa.RecordBatch]] = [[] for _ in range(buckets)]
        without = 0
        for rows in self.rows(batches, part):
            if isinstance(rows, Failed):
                return [Bucket((), failed=rows)] * buckets
            without += rows.without_unit
            for bucket, found in zip(parts, rows.split(buckets), strict=True):
                bucket.append(found.to_batch())
        return [Bucket(tuple(bucket), without if number == 0 else 0) for number, bucket in enumerate(parts)]

    def join(self, buckets: Iterable[Bucket]) -> Outcome:
        """The sums of one bucket, given what every part of the table has of it."""
        from dpgram.rows.batch import RowBatch

        batches: list[pa.RecordBatch] = []
        without = 0
        for bucket in buckets:
            if bucket.failed is not None:
                return bucket.failed
            batches += bucket.batches
            without += bucket.without_unit
        adder = self.adder()
        try:
            if batches:
                adder.add(RowBatch.from_batches(batches, without_unit=without))
            elif without:
                adder.add(RowBatch.none(self.rules, without_unit=without))
        except DpgramError as error:
            return Failed.of(error)
        return adder.result()


@final
class Adder:
    """Rows → sums. Where there are units, each `add` must bring all rows of every unit in it."""

    def __init__(self, work: Pass) -> None:
        self._rules = work.rules
        inside = [each for each in work.statistics if isinstance(each, CoreStatistic)]
        adders = iter(core.adders([each.what(work.rules) for each in inside]))
        self._accumulators: list[Accumulator] = [
            CoreAccumulator(each, next(adders))
            if isinstance(each, CoreStatistic)
            else each.accumulator(work.rules)
            for each in work.statistics
        ]

    def add(self, rows: RowBatch) -> None:
        """Count the rows into every sum."""
        from dpgram.rows.batch import CountedRows

        counted = CountedRows(rows, self._rules)
        for accumulator in self._accumulators:
            accumulator.add(counted)

    def result(self) -> Sums:
        return tuple(found for each in self._accumulators for found in each.result())


def gram_pass(
    whole: Encoder,
    blocks: Sequence[Encoder] = (),
    *,
    unit: str | None = None,
    rule: UnitRule | None = None,
    by: Categorical | None = None,
    weight: SurveyWeight | None = None,
) -> Pass:
    """The Gram matrix of `whole`, or one for each of `blocks` of its columns; groups, units and weights."""
    rules = RowRules(
        schema=whole.schema,
        missing=whole.missing,
        strict=whole.strict,
        unit=unit,
        unit_rule=rule,
        by=by,
        weight=weight,
    )
    return Pass(rules=rules, statistics=tuple(map(GramStatistic, blocks or (whole,))))


def numbered(batches: Iterable[Any], first_row: int = 0) -> Iterator[Numbered]:
    for batch in batches:
        yield first_row, batch
        first_row += batch.num_rows


def merge(outcomes: Sequence[Outcome]) -> Outcome:
    """The sums of all, of which there is at least one; the error of the first that failed."""
    return reduce(_merged, outcomes)


def _merged(left: Outcome, right: Outcome) -> Outcome:
    if isinstance(left, Failed):
        return left
    if isinstance(right, Failed):
        return right
    return tuple(a | b for a, b in zip(left, right, strict=True))


def sums_or_raise(outcome: Outcome, work: Pass) -> Sums:
    """The sums that came out, or the error of the first part that failed.

    Warns the curator loudly (in strict mode: stops) where no row was usable. A warning and not an error:
    whether a release succeeds must not depend on a single row.
    """
    if isinstance(outcome, Failed):
        raise outcome.error()
    if all(found.counts.rows_used == 0 for found in outcome):
        remedy = _why_nothing_counts(outcome[0].counts)
        if work.strict:
            raise DataError("no row of the data was usable", remedy=remedy)
        tell_caller(f"no row of the data was usable: the release will hold noise alone. {remedy}")
    return outcome


def _why_nothing_counts(counts: PolicyCounts) -> str:
    """For the curator's screen; with exact counts."""
    usual = "Check the column names, types, levels and missing values against the schema"
    if not counts.rows_left_out:
        return usual
    people = (
        f"{counts.rows_left_out:,} of {counts.rows_read:,} rows are of persons who have counted already and "
        "may not count in this period: is this the right file?"
    )
    return people if counts.rows_left_out == counts.rows_read else f"{people} {usual}"

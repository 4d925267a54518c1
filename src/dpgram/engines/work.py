"""What a worker on any machine does with its part of a table: open it, encode it, add it up.

Everything here can be sent to another process and depends on its arguments alone, so a task that is lost, run
twice or run elsewhere gives the same bits. An error of the data travels as a value (`Failed`): running such a
task again could not mend it, and a worker's own traceback could quote a row.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TYPE_CHECKING, Any, Final, Self, TypeAlias, final

from dpgram.encoding import Encoder, Missing
from dpgram.engines.base import batch_rows, gram_of
from dpgram.errors import DataError, DpgramError, MissingExtra, SchemaError, SourceError
from dpgram.gram import ExactGram
from dpgram.schema import Schema

if TYPE_CHECKING:
    import pyarrow as pa

    from dpgram.engines.threads import Progress
    from dpgram.portions import Portions, Rows
    from dpgram.sources import Kind, Source

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
        """The error, to be raised by the driver."""
        kind = _KINDS[self.kind]
        error = kind.__new__(kind, self.message)
        vars(error).update(self.facts)
        return error


def _fact(value: object) -> str | int | None:
    return value if value is None or isinstance(value, str | int) else str(value)


Sums: TypeAlias = tuple[ExactGram, ...]
"""One matrix for each block and, in it, for each group; a single one where nothing is split."""
Outcome: TypeAlias = Sums | Failed


@final
@dataclass(frozen=True, slots=True)
class Lot:
    """Rows of one table part whose units fall into one lot; as sensitive as the table itself."""

    batches: tuple[pa.RecordBatch, ...]
    nameless: int = 0
    failed: Failed | None = None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One pass over a table. Public facts only, sent to every worker once.

    Without a plan: one matrix of all rows, by the shortest way.
    """

    encoder: Encoder
    plan: Portions | None = None

    @classmethod
    def of_gram(cls, schema: Schema, clip: float | None, *, missing: Missing, strict: bool) -> Self:
        """The pass of `gram`."""
        return cls(encoder=Encoder(schema, clip=clip, missing=missing, strict=strict))

    @classmethod
    def of_portions(cls, plan: Portions) -> Self:
        """The pass of `portions`."""
        return cls(encoder=plan.whole, plan=plan)

    @property
    def by_unit(self) -> bool:
        """Whether all rows of a unit must come together before any of them is encoded."""
        return self.plan is not None and self.plan.rule is not None

    @property
    def columns(self) -> tuple[str, ...]:
        """What is read of the table, in order."""
        return self.encoder.schema.source_columns if self.plan is None else self.plan.columns

    @property
    def kinds(self) -> dict[str, Kind]:
        """How cells without a type of their own are read."""
        from dpgram.sources import declared_kinds

        return declared_kinds(self.encoder.schema) if self.plan is None else self.plan.kinds

    def open(self, data: object) -> Source:
        """Anything that can be read on this machine."""
        from dpgram.sources import open_source

        columns = self.columns
        rows = batch_rows(self.encoder, len(columns))
        return open_source(data, columns, kinds=self.kinds, batch_rows=rows)

    def zero(self) -> Sums:
        """The sums of no rows."""
        return (ExactGram.zero(self.encoder.schema.width),) if self.plan is None else self.plan.zero()

    def sums(self, batches: Iterable[Numbered], part: int | None = None) -> Outcome:
        """The sums of one part of the table, where rows count one by one."""
        try:
            if self.plan is None:
                return (gram_of(self.encoder, batches),)
            reader, settler = self.plan.reader(), self.plan.settler()
            for first_row, batch in batches:
                settler.add(reader.read(batch, first_row=first_row))
            return settler.result()
        except DpgramError as error:
            return Failed.of(error, part)

    def rows_read(self, outcome: Outcome) -> int:
        """How many rows of the table these sums have seen; for a progress bar only."""
        groups = 1 if self.plan is None else len(self.plan.groups)
        # Every block sees every row, so the first one tells.
        return 0 if isinstance(outcome, Failed) else sum(gram.counts.rows_read for gram in outcome[:groups])

    def rows(self, batches: Iterable[Numbered], part: int | None = None) -> Iterator[Rows | Failed]:
        """The rows of one part of the table with their units; an error of the data comes last."""
        assert self.plan is not None  # noqa: S101  `by_unit` says so
        reader = self.plan.reader()
        try:
            for first_row, batch in batches:
                yield reader.read(batch, first_row=first_row)
        except DpgramError as error:
            yield Failed.of(error, part)

    def split(self, batches: Iterable[Numbered], lots: int, part: int | None = None) -> list[Lot]:
        """The rows of one part of the table by lot; all rows of a unit are in the same lot of every part."""
        parts: list[list[pa.RecordBatch]] = [[] for _ in range(lots)]
        nameless = 0
        for rows in self.rows(batches, part):
            if isinstance(rows, Failed):
                return [Lot((), failed=rows)] * lots
            nameless += rows.nameless
            for lot, found in zip(parts, rows.split(lots), strict=True):
                lot.append(found.to_batch())
        return [Lot(tuple(lot), nameless if number == 0 else 0) for number, lot in enumerate(parts)]

    def settle(self, lots: Iterable[Lot]) -> Outcome:
        """The sums of one lot, given what every part of the table has of it."""
        assert self.plan is not None  # noqa: S101  `by_unit` says so
        from dpgram.portions import Rows

        batches: list[pa.RecordBatch] = []
        nameless = 0
        for lot in lots:
            if lot.failed is not None:
                return lot.failed
            batches += lot.batches
            nameless += lot.nameless
        settler = self.plan.settler()
        if batches:
            try:
                settler.add(replace(Rows.from_batches(batches), nameless=nameless))
            except DpgramError as error:
                return Failed.of(error)
        return settler.result()


def numbered(batches: Iterable[Any], first_row: int = 0) -> Iterator[Numbered]:
    """The batches of one part, each with the number of its first row."""
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


def settled(outcome: Outcome, *, strict: bool) -> Sums:
    """The sums that came out, or the error of the first part that failed."""
    from dpgram.engines.base import some_row_used

    if isinstance(outcome, Failed):
        raise outcome.error()
    some_row_used(outcome, strict=strict)
    return outcome


class WorkEngine(ABC):
    """An engine that has `Work` done elsewhere: all it must say is how."""

    __slots__ = ()

    @abstractmethod
    def _run(self, data: Any, work: Work, progress: Progress) -> Sums:
        """The sums of all parts of the table, merged and settled."""

    @final
    def gram(
        self,
        data: object,
        schema: Schema,
        clip: float | None = None,
        *,
        missing: Missing = "drop",
        strict: bool = False,
        progress: Progress = None,
    ) -> ExactGram:
        """The exact Gram matrix of the encoded table. **Not private.**"""
        (found,) = self._run(data, Work.of_gram(schema, clip, missing=missing, strict=strict), progress)
        return found

    @final
    def portions(self, data: object, plan: Portions, *, progress: Progress = None) -> tuple[ExactGram, ...]:
        """The matrices of every block and group. **Not private.**"""
        return self._run(data, Work.of_portions(plan), progress)

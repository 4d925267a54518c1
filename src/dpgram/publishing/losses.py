"""What is lost of a table, column by column, told to the curator before anything is spent.

The counts are exact: they are shown on the curator's screen, decide nothing, and go into no release.
"""

from __future__ import annotations

import contextlib
import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final, final

from dpgram.core.units import PolicyCounts
from dpgram.document.terminal import printable
from dpgram.publishing.causes import Cause, causes
from dpgram.publishing.column_checks import ColumnCheck, check_columns
from dpgram.rows.rules import RowRules
from dpgram.schema import SourceColumn
from dpgram.sources.workbooks import odd_rows

if TYPE_CHECKING:
    from dpgram.engines.base import Engine
    from dpgram.engines.passes import Pass, Sums
    from dpgram.engines.threads import Progress

MOST_CELLS_LOST: Final = 0.05
"""Share of a column's cells that hold something which cannot be used, above which the curator is warned."""
MOST_CLAMPED: Final = 0.05
"""The same for cells that are moved to a bound."""
MOST_MISSING: Final = 0.5
"""The same for cells that are missing."""
MOST_ROWS_LOST: Final = 0.2
ROWS_LOOKED_AT: Final = 20_000
"""By `publish`, which only warns; `check` reads all."""
BLOCKS: Final = " ▁▂▃▄▅▆▇█"
LEVELS_SHOWN: Final = 6
WIDEST_NAME: Final = 24
SCREEN: Final = 80
"""Letters in a line."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Losses:
    """What becomes of the cells of each column. Exact, hence not private."""

    columns: tuple[ColumnCheck, ...]
    causes: tuple[Cause, ...]
    counts: Mapping[str, PolicyCounts]
    """The rows that were looked at, and those that can be used; by block, "all" where there is one."""
    rows: str = ""
    """Which rows were looked at, where these are not all."""

    @property
    def much(self) -> bool:
        """Whether more cells of a column are unreadable or unknown than the curator can have meant."""
        return any(column.lost > MOST_CELLS_LOST for column in self.columns)

    @property
    def warnings(self) -> tuple[str, ...]:
        """One for each column of which much is lost, clamped or missing, with the guesses at its cause."""
        return tuple(self._warnings())

    @property
    def row_warnings(self) -> tuple[str, ...]:
        """The same of rows: of columns with gaps in different rows few rows are left."""
        return tuple(row_warnings(self.counts, self.rows))

    def _warnings(self) -> Iterator[str]:
        for column in self.columns:
            facts = [
                f"{share:.1%} of its cells{self.rows} {what}"
                for share, limit, what in (
                    (_share(column.unreadable, column), MOST_CELLS_LOST, "cannot be read"),
                    (_share(column.unknown, column), MOST_CELLS_LOST, f"are {_unknown(column)}"),
                    (_share(column.below, column), MOST_CLAMPED, "lie below the lower bound"),
                    (_share(column.above, column), MOST_CLAMPED, "lie above the upper bound"),
                    (_share(column.missing, column), MOST_MISSING, "are missing"),
                )
                if share > limit
            ]
            guesses = [cause for cause in self.causes if cause.column == column.name]
            said = [f"{cause.looks_like}; {cause.advice}" for cause in guesses]
            if facts or said:
                yield f"column {column.name!r}: " + "; ".join([", ".join(facts), *said] if facts else said)

    def summary(self) -> str:
        """A table in per cent, a picture of each column between its bounds, and the warnings."""
        return "\n".join([*self._table(), "", *self._pictures(), *self._told()])

    def _table(self) -> Iterator[str]:
        width = max(6, *(min(WIDEST_NAME, len(column.name)) for column in self.columns))
        heads = ("readable", "missing", "unreadable", "unknown", "below", "above")
        yield f"{'column':<{width}}  " + "  ".join(f"{head:>{max(6, len(head))}}" for head in heads)
        for column in self.columns:
            name = printable(column.name)
            name = name if len(name) <= width else name[: width - 1] + "…"
            cells = [_per_cent(getattr(column, head), column).rjust(max(6, len(head))) for head in heads]
            yield f"{name:<{width}}  " + "  ".join(cells)

    def _pictures(self) -> Iterator[str]:
        width = max(6, *(min(WIDEST_NAME, len(column.name)) for column in self.columns))
        for column in self.columns:
            name = printable(column.name)[:width]
            if column.levels and sum(column.bins):
                yield f"{name:<{width}}  {_levels(column)}"
            elif column.bounds is not None:
                low, high = column.bounds_shown
                yield f"{name:<{width}}  {low} |{bars(column.bins)}| {high}"

    def _told(self) -> Iterator[str]:
        if self.warnings:
            yield ""
        for text in self.warnings:
            yield from textwrap.wrap(
                f"! {text}", SCREEN, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False
            )


def row_warnings(counts: Mapping[str, PolicyCounts], looked_at: str = "") -> Iterator[str]:
    """Where no row can be used, or far fewer than there are."""
    for name, each in counts.items():
        where = ("" if name == "all" else f" of {name}") + looked_at
        if each.rows_used == 0 and not looked_at:
            yield f"no row{where} can be used: a release would hold noise alone"
        elif each.rows_used < (1.0 - MOST_ROWS_LOST) * each.rows_read:
            yield f"{1.0 - each.rows_used / each.rows_read:.1%} of the rows{where} are dropped"


def losses_of(
    data: object, engine: Engine, rules: RowRules, *, most_rows: int | None = None
) -> Losses | None:
    """The losses of a table; None where nobody can read it beside its own pass."""
    readable = _readable(data, engine, rules, most_rows)
    if readable is None:
        return None
    table, said = readable
    found, counts = check_columns(table, rules, most_rows=most_rows)
    declared: dict[str, SourceColumn] = {
        column.name: column for column in (*rules.extra, *rules.schema.columns_read)
    }
    utf8 = any(_beyond_ascii(word) for one in found for word, _ in ((one.name, 0), *one.read_words))
    whole = not said or (most_rows is not None and all(one.cells < most_rows for one in found))
    guesses = [
        cause
        for one in found
        if one.name in declared
        for cause in causes(one, declared[one.name], utf8=utf8, whole=whole)
    ]
    return Losses(columns=found, causes=tuple(guesses), counts=counts, rows="" if whole else said)


def _beyond_ascii(word: str) -> bool:
    return not word.isascii() and "\ufffd" not in word


def _readable(data: Any, engine: Engine, rules: RowRules, most_rows: int | None) -> tuple[object, str] | None:
    """The data as this machine can read it: of a table on a cluster the first rows."""
    from dpgram.sources import is_known, read_once

    first = most_rows or ROWS_LOOKED_AT
    if getattr(engine, "passes", None) is not None or read_once(data):
        return None
    if is_known(data):
        return data, "" if most_rows is None else f" (in the first {first:,} rows)"
    said = f" (in the first {first:,} rows)"
    if hasattr(data, "toPandas"):  # Spark
        return data.select(*(f"`{name.replace('`', '``')}`" for name in rules.columns)).limit(
            first
        ).toPandas(), said
    if hasattr(data, "npartitions") and hasattr(data, "head"):  # a Dask frame
        return data[list(rules.columns)].head(first, npartitions=-1), said
    return None


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyStop:
    """When noisy counts of what was lost stop a publication: public facts, known before a row is read."""

    at_most: float
    """The part of a column that may be lost."""
    doubt: float
    """By how many rows the noisy count must exceed that part of all."""

    def may_miss(self, lost: float, rows: int) -> bool:
        """Whether the rows are too few for a loss that is too large."""
        return lost > self.at_most and (lost - self.at_most) * rows <= self.doubt


@final
@dataclass(slots=True, kw_only=True)
class WatchedEngine:
    """An engine that tells the curator of losses after its first pass: before anything was charged.

    What it tells decides nothing: whatever goes wrong with the telling is kept quiet.
    """

    engine: Engine
    rules: RowRules
    tell: Callable[[str], None]
    stop: NoisyStop | None = None
    """None where nothing is counted before the matrix."""
    told: bool = False

    @property
    def name(self) -> str:
        return self.engine.name

    @property
    def passes(self) -> int | None:
        return self.engine.passes

    def accepts(self, data: object) -> bool:
        return self.engine.accepts(data)

    def add_up(self, data: object, work: Pass, *, progress: Progress = None) -> Sums:
        sums = self.engine.add_up(data, work, progress=progress)
        if not self.told:
            self.told = True
            for warning in (*self._odd_rows(data), *self._warnings(data, work, sums)):
                self.tell(warning)
        return sums

    def _odd_rows(self, data: object) -> Iterator[str]:
        with contextlib.suppress(Exception):  # as below
            said = odd_rows(data, self.rules.schema.layout)
            if said is not None:
                yield said

    def _warnings(self, data: object, work: Pass, sums: Sums) -> Iterator[str]:
        read = work.rows_read(sums)
        if _little(work, sums):
            return
        try:
            found = losses_of(data, self.engine, self.rules, most_rows=ROWS_LOOKED_AT)
            few = found is not None and not (found.warnings or found.row_warnings)
            if few and read > ROWS_LOOKED_AT and _much(work, sums):
                found = losses_of(data, self.engine, self.rules)
        except Exception:  # noqa: BLE001  (a look that fails must not stop what it looks at)
            return
        if any(each.counts.rows_used for each in sums):  # else the pass itself has said so
            yield from row_warnings(_by_matrices(work, sums)) if found is None else found.row_warnings
        if found is not None:
            yield from found.warnings
            yield from self._unstopped(found, work.units_read(sums) if self.rules.unit else read)

    def _unstopped(self, found: Losses, rows: int) -> Iterator[str]:
        """Where a curator might rely on the noisy counts, and must not."""
        lost = max((_share(column.cells - column.readable, column) for column in found.columns), default=0.0)
        if self.stop is None and lost > MOST_MISSING:
            yield f"nothing is counted before the matrix that could stop this publication: {_GOES_ON}"
        elif self.stop is not None and self.stop.may_miss(lost, rows):
            yield f"with so few rows noisy counts cannot tell this loss from their noise: {_GOES_ON}"


_GOES_ON: Final = "it goes on, and all of it is charged"


def _much(work: Pass, sums: Sums) -> bool:
    """Whether many rows, or cells of a column, were lost: then the first rows need not tell why."""
    used = max((found.counts.rows_used for found in sums), default=0)
    lost = [lost for lost, _ in _by_histograms(work, sums)]
    rows = used < (1 - MOST_ROWS_LOST) * work.rows_read(sums) or sum(lost) > MOST_ROWS_LOST
    return rows or max(lost, default=0.0) > MOST_CELLS_LOST


def _by_matrices(work: Pass, sums: Sums) -> dict[str, PolicyCounts]:
    """Rows read and used, where matrices were added up; without those that a unit has beyond its limit."""
    from dpgram.sums.grams import GramStatistic

    found = [
        sum((each.counts for each in groups), PolicyCounts())
        for statistic, groups in zip(work.statistics, work.by_statistic(sums), strict=True)
        if isinstance(statistic, GramStatistic)
    ]
    names = ["all"] if len(found) == 1 else [f"block {number}" for number in range(1, len(found) + 1)]
    return {
        name: replace(each, rows_read=each.rows_read - each.rows_over_unit_limit)
        for name, each in zip(names, found, strict=True)
    }


def _by_histograms(work: Pass, sums: Sums) -> Iterator[tuple[float, float]]:
    """The parts of each column that were lost and clamped, where histograms were counted."""
    from dpgram.sums.counts import ExactCounts
    from dpgram.sums.histograms import HistogramsStatistic

    for statistic, found in zip(work.statistics, work.by_statistic(sums), strict=True):
        if not isinstance(statistic, HistogramsStatistic) or not isinstance(found[0], ExactCounts):
            continue
        for column, line in zip(statistic.columns, found[0].cells, strict=True):
            losses = line[column.cells : column.cells + column.losses]
            total = max(int(line.sum()), 1)
            yield int(losses[:2].sum()) / total, int(losses[2:].sum()) / total


def _little(work: Pass, sums: Sums) -> bool:
    """Whether exact counts show that no column, and not many rows, can have been lost: a look is saved."""
    from dpgram.sums.grams import GramStatistic

    parts = list(_by_histograms(work, sums))
    if parts:
        few = all(lost <= MOST_CELLS_LOST and clamped <= MOST_CLAMPED for lost, clamped in parts)
        return few and sum(lost for lost, _ in parts) <= MOST_ROWS_LOST
    if not all(isinstance(each, GramStatistic) for each in work.statistics):
        return False
    counts = [found.counts for found in sums]
    touched = sum(each.cells_missing + each.cells_unknown + each.cells_clamped for each in counts)
    return touched <= min(MOST_CELLS_LOST, MOST_CLAMPED) * sum(each.rows_read for each in counts)


def bars(counts: tuple[int, ...]) -> str:
    """A letter for each count, as high as its share of the largest; none at all only for none."""
    letters = BLOCKS if _shows(BLOCKS) else " .:-=+*#@"
    most = max(counts, default=0)
    if not most:
        return " " * len(counts)
    return "".join(letters[-(-count * (len(letters) - 1) // most)] for count in counts)


def _shows(text: str) -> bool:
    try:
        text.encode(getattr(sys.stdout, "encoding", None) or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _levels(column: ColumnCheck) -> str:
    total = sum(column.bins)
    ordered = sorted(zip(column.bins, column.levels, strict=True), key=lambda pair: -pair[0])
    shown = [
        f"{printable(level)[:WIDEST_NAME]} {count / total:.1%}" for count, level in ordered[:LEVELS_SHOWN]
    ]
    none = sum(count == 0 for count in column.bins)
    more = f"; without a row: {none}" if none else ""
    return ", ".join(shown) + (", …" if len(ordered) > LEVELS_SHOWN else "") + more


def _share(count: int, column: ColumnCheck) -> float:
    return count / column.cells if column.cells else 0.0


def _per_cent(count: int, column: ColumnCheck) -> str:
    return "–" if not column.cells else f"{100 * count / column.cells:.1f}"


def _unknown(column: ColumnCheck) -> str:
    return "neither true nor false" if column.role == "boolean" else "none of the declared levels"

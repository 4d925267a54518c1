"""`Series`: a table that grows, published period after period under one charge.

A curator creates it and publishes; an analyst opens the public file and asks it for windows and trends.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, final

import msgspec

from dpgram.errors import AnalysisError, require_publish, shown, whole
from dpgram.series.stream import Stream, secret_path

if TYPE_CHECKING:
    from dpgram.analysis import Trend
    from dpgram.analysis.estimand import Kind
    from dpgram.core.units import PolicyCounts
    from dpgram.engines.base import Engine
    from dpgram.engines.threads import Progress
    from dpgram.publishing.request import LedgerLike
    from dpgram.publishing.split import Adaptive
    from dpgram.release import Release
    from dpgram.rows.rules import Rows
    from dpgram.schema import Schema
    from dpgram.series.plan import SeriesPlan


@final
class Series:
    """A series of periods under one guarantee: every running total, window and period of it is a `Release`.

    Made by `Series.create` or `Series.open`.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._stream = Stream.read(self.path)

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        schema: Schema,
        *,
        epsilon: float,
        delta: float,
        periods: int,
        rows: Rows | None = None,
        participations: int = 1,
        apart: int = 1,
        adaptive: bool | Adaptive = True,
        ledger: LedgerLike | None = None,
        note: str = "",
    ) -> Self:
        """A new series of at most `periods` periods; `ledger` is charged once, now, for all of them.

        `path` is the public file; beside it the curator's file, with `.NOT-PRIVATE` at the end of its name,
        will hold exact sums and must be kept as secret as the table. With `rows=Rows(unit=…)` a person counts
        in at most `participations` periods, at least `apart` periods from each other; whoever comes more
        often is left out. `adaptive` has the shares of what is counted in every period and of what the first
        one measures, by which the coordinates of all periods are fixed.

        >>> series = dg.Series.create("clinic.series", schema, epsilon=1, delta=1e-6, periods=12)
        >>> series
        <Series: 0 of 12 periods, 5 columns, epsilon=1, delta=1e-06>
        """
        require_publish()
        from dpgram.rows.rules import EVERY_ROW
        from dpgram.series import _curate

        _curate.create(
            Path(path),
            schema,
            epsilon=epsilon,
            delta=delta,
            periods=periods,
            rows=EVERY_ROW if rows is None else rows,
            participations=participations,
            apart=apart,
            adaptive=adaptive,
            ledger=ledger,
            note=note,
        )
        return cls(path)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The series in a public file: all an analyst needs.

        >>> dg.Series.open("months.series").labels
        ('2026-01', '2026-02', '2026-03')
        """
        return cls(path)

    @staticmethod
    def plan(
        *,
        periods: int,
        participations: int = 1,
        apart: int = 1,
        window: int = 12,
        epsilon: float | None = None,
        delta: float | None = None,
    ) -> SeriesPlan:
        """The noise of totals, periods and windows of a series, beside a release for every period.

        >>> print(dg.Series.plan(periods=60).advice)
        Totals and windows: 2.4 times the noise of one release for the total at the end, where adding up 60...
        """
        from dpgram.series.plan import plan_series

        return plan_series(
            periods=periods,
            participations=participations,
            apart=apart,
            window=window,
            epsilon=epsilon,
            delta=delta,
        )

    def publish(
        self,
        data: object,
        period: str,
        *,
        engine: str | Engine = "auto",
        progress: Progress = None,
        report: Callable[[PolicyCounts], None] | None = None,
    ) -> Release:
        """Publish the rows of one more period: the release of everything up to now.

        `data` holds the new rows alone; None is a period of which there are none. A period that was
        published comes back as it was, with a warning, and so does one that was interrupted after its noise
        was drawn; `data` is not read again: late or corrected rows go into a later period. `report` gets
        what the curator may know and nobody else: how many rows were read, dropped and left out.

        >>> series = dg.Series.create("ward.series", schema, epsilon=1, delta=1e-6, periods=12)
        >>> series.publish(table, "2026-11")
        <Release: 5 columns, gaussian, epsilon=1, delta=1e-06, add-remove>
        >>> series.labels
        ('2026-11',)
        """
        require_publish()
        from dpgram.series import _curate

        self._stream = _curate.publish(
            self.path, data, period, engine=engine, progress=progress, report=report
        )
        return self._stream.release(1, self._stream.number(period))

    def published_before(self, period: str) -> bool:
        """Whether `publish` would read no table for this name, as the period is out already.

        A period that was interrupted is not: `publish` completes it.

        >>> series.published_before("2026-02"), series.published_before("2026-11")
        (True, False)
        """
        require_publish()
        from dpgram.series import _curate

        return _curate.published_before(self.path, self._stream, period)

    def restore(self, tables: Mapping[str, object], *, engine: str | Engine = "auto") -> None:
        """Make the curator's file again from the tables of all published periods, by their names.

        They must hold the ids that they held then: whoever is missing could count once more. What can be read
        of the old file is kept. A period that was drawn and interrupted needs its table too.

        >>> series = dg.Series.create("lost.series", schema, epsilon=1, delta=1e-6, periods=12)
        >>> release = series.publish(table, "2026-11")
        >>> import os
        >>> os.remove("lost.series.NOT-PRIVATE")
        >>> series.restore({"2026-11": table})
        """
        require_publish()
        from dpgram.series import _restore

        _restore.restore(self.path, tables, engine=engine)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of the periods that were published, in order."""
        return self._stream.labels

    @property
    def periods(self) -> int:
        """The horizon: for how many periods the charge was."""
        return self._stream.head.periods

    def window(self, first: str | int, last: str | int) -> Release:
        """The release of the rows of all periods from `first` to `last`, by name or counted from 1.

        >>> series.window("2026-02", "2026-03").part
        '2026-02 to 2026-03 of a series'
        """
        return self._stream.release(self._stream.number(first), self._stream.number(last))

    def period(self, period: str | int) -> Release:
        """The release of the rows of one period.

        >>> series.period("2026-02").part
        '2026-02 of a series'
        """
        return self.window(period, period)

    def total(self, last: str | int | None = None) -> Release:
        """The release of the rows of all periods up to `last`; of all there are where none is given.

        >>> series.total().part
        '2026-01 to 2026-03 of a series'
        """
        return self.window(1, len(self.labels) if last is None else last)

    def trend(
        self,
        target: str,
        on: Sequence[str] | None = None,
        *,
        every: int = 1,
        running: bool = False,
        kind: Kind = "population",
        reference: Mapping[str, str] | None = None,
    ) -> Trend:
        """Coefficients over time, in windows of `every` periods or, `running`, in all periods up to each.

        Changes and slopes know how the noise of one window goes with that of another. Periods that do not
        fill a window are left out.

        >>> trend = series.trend("charges", ["age"], every=1)
        >>> trend.labels
        ('2026-01', '2026-02', '2026-03')
        """
        from dpgram.analysis import trend

        count = len(self.labels)
        length = whole(every)
        if length is None or not 1 <= length <= max(count, 1):
            raise AnalysisError(
                "every, how many periods make a window, must be a whole number",
                got=shown(every),
                limit=f"1 to {count}",
            )
        ends = range(length, count + 1, length)
        windows = [self.window(1 if running else last - length + 1, last) for last in ends]
        return trend(windows, target, on, kind=kind, reference=reference)

    def explore(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> Path:
        """Write one HTML file in which anybody can ask this series questions; no server, no network.

        It has all views of the running total, and trends: coefficients over time, with intervals. Another
        file that is there is not replaced unless `overwrite` says so.

        >>> series.explore("months.html").name
        'months.html'
        """
        from dpgram.files import written
        from dpgram.series.show import explorer_page

        if not self.labels:
            raise AnalysisError("no period of this series was published yet", remedy="Publish one first")
        self._refuse_own(Path(path))
        return written(path, explorer_page(self._stream).encode("utf-8"), overwrite=overwrite)

    def _refuse_own(self, target: Path) -> None:
        """A page must not replace the series, or what its curator keeps beside it."""
        own, there = self.path.resolve(), target.resolve()
        beside = (secret_path(own).name, f"{own.name}.unfinished-")
        if there == own or (there.parent == own.parent and there.name.startswith(beside)):
            raise AnalysisError(
                f"{target} is a file of the series itself",
                remedy=f"Give the page another name, such as {self.path.stem}.html",
            )

    def departures(self, schema: Schema, **facts: object) -> list[str]:
        """In which public facts the series differs from these, in words: for whoever would go on with it.

        `facts` may be what `create` takes, how rows count, and the shares of the budget.

        >>> series.departures(schema, epsilon=2.0, periods=12, missing="midpoint", first=0.25)
        ['epsilon is 1.0 there, 2.0 here', 'missing is drop there, midpoint here']
        """
        head = self._stream.head
        there = {
            "epsilon": head.guarantee.epsilon,
            "delta": head.guarantee.delta,
            "periods": head.periods,
            "participations": head.participations,
            "apart": head.apart,
            **msgspec.structs.asdict(head.rows),
            **msgspec.structs.asdict(head.shares),
        }
        found = [
            f"{name} is {_shown(there[name])} there, {_shown(here)} here"
            for name, here in facts.items()
            if there[name] != here
        ]
        return found if head.given == schema.to_dict() else [*found, "the columns are others"]

    def summary(self) -> str:
        """What was published so far, period by period, and what the clip took of each.

        >>> print(series.summary().splitlines()[0])
        A series of 3 out of 12 periods, 5 encoded columns
        """
        from dpgram.series.show import summary

        return summary(self._stream)

    def __repr__(self) -> str:
        head = self._stream.head
        seeded = ", SEEDED" if head.entropy == "seeded" else ""
        return (
            f"<Series: {len(self.labels)} of {head.periods} periods, {self._stream.schema.width} columns, "
            f"epsilon={head.guarantee.epsilon:g}, delta={head.guarantee.delta:g}{seeded}>"
        )

    def __str__(self) -> str:
        return self.summary()


def _shown(value: object) -> str:
    return "not given" if value is None else str(value)

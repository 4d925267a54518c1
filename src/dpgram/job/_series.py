"""A job that publishes one period of a series: the section [series] of a job file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

import msgspec

from dpgram.errors import JobError

if TYPE_CHECKING:
    from dpgram.engines.base import Engine
    from dpgram.engines.threads import Progress
    from dpgram.job.job import Job
    from dpgram.publishing.split import BudgetSplit
    from dpgram.release import Release
    from dpgram.series import Series


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Growing:
    """Which series a job adds a period to; the first such job creates it, and that is charged."""

    file: Path
    period: str
    periods: int
    participations: int = 1
    apart: int = 1

    @property
    def files(self) -> tuple[Path, Path]:
        """The public one, and the curator's."""
        from dpgram.series.stream import files_of

        return files_of(self.file)

    def refuse_beside(self, job: Job) -> None:
        """What a plain publication may ask for and a series may not."""
        name = job.mechanism if isinstance(job.mechanism, str) else job.mechanism.name
        for what, given in (
            (f"mechanism = {name!r}", name not in ("auto", "gaussian")),
            ("[[models]]", bool(job.models)),
            ("stop_if_check_fails = true", job.stop_if_check_fails),
            (f"adjacency = {job.adjacency!r}", job.adjacency != "add-remove"),
        ):
            if given:
                raise JobError(f"{what} does not go with [series]", remedy="Leave one of them out")

    def published_before(self) -> bool:
        """Whether the series has this period already, so that no table would be read."""
        from dpgram.series import Series

        return self.file.exists() and Series.open(self.file).published_before(self.period)

    def open(self, job: Job, note: str) -> Series:
        """The series, created and charged where it is not there yet; refused where it is another one."""
        from dpgram.series import Series

        if not self.file.exists():
            return Series.create(
                self.file,
                job.schema,
                **self._terms(job),
                ledger=job.ledger,
                note=note,
            )
        self.refuse_another(job)
        return Series.open(self.file)

    def refuse_another(self, job: Job) -> None:
        """A series that is there must be the one that this job would create."""
        others = self.departures(job) if self.file.exists() else []
        if others:
            raise JobError(
                f"the series {self.file} was created with other terms",
                got="; ".join(others),
                remedy="What a series is cannot be changed: write what it was created with, or name another",
            )

    def departures_of(self, release: Release, job: Job) -> list[str]:
        """The same for a release of this very series that was made before."""
        from dpgram.series.stream import Stream

        if not self.file.exists() or release.series is None:
            return []
        return self.departures(job) if Stream.read(self.file).head.series == release.series.series else []

    def departures(self, job: Job) -> list[str]:
        """In what the series that is there differs from what this job says, in words."""
        from dpgram.series import Series
        from dpgram.series.stream import GivenRows

        shares = self._shares(job)
        others = Series.open(self.file).departures(
            job.schema,
            epsilon=job.epsilon,
            delta=job.delta,
            periods=self.periods,
            participations=self.participations,
            apart=self.apart,
            **msgspec.structs.asdict(GivenRows.of(job.rows)),
            histograms=shares.histograms,
            first=shares.first,
            clip=shares.clip,
        )
        return others + self._otherwise_paid(job)

    def _otherwise_paid(self, job: Job) -> list[str]:
        from dpgram.privacy.ledger import Ledger
        from dpgram.series.stream import Stream

        paid = Stream.read(self.file).head.receipt
        if paid is None or job.ledger is None:
            by = "no ledger" if paid is None else "a ledger"
            return [] if paid is None and job.ledger is None else [f"it was paid for by {by}"]
        book = Ledger.open(job.ledger)
        return (
            []
            if book.receipt(paid.receipt_id) == paid
            else [f"the ledger {book.name!r} has no charge for it"]
        )

    def _shares(self, job: Job) -> BudgetSplit:
        """What of the budget is for histograms, the first matrix and the clip, as `create` takes it."""
        from dpgram.publishing.series import series_terms

        return series_terms(job.schema, **self._terms(job)).request.split

    def _terms(self, job: Job) -> dict[str, Any]:
        """What a series is created with, beside its columns and who pays."""
        return {
            "epsilon": job.epsilon,
            "delta": job.delta,
            "periods": self.periods,
            "rows": job.rows,
            "participations": self.participations,
            "apart": self.apart,
            "adaptive": True if job.adaptive is None else job.adaptive,
        }

    def publish(self, job: Job, table: object, *, engine: Engine, note: str, progress: Progress) -> Release:
        """The release of everything up to this period."""
        return self.open(job, note).publish(table, self.period, engine=engine, progress=progress)

    def explore(self, release: Release, path: Path) -> Path:
        """The page of a running total, with trends up to its period."""
        from dpgram.files import written
        from dpgram.series.show import explorer_page
        from dpgram.series.stream import Stream

        stream = Stream.read(self.file)
        if release.series is None or release.series.series != stream.head.series:
            raise JobError(
                f"the release of this job is not of the series {self.file.name}",
                remedy="Put back the file of the series that it was made with",
            )
        return written(path, explorer_page(stream, release).encode("utf-8"))

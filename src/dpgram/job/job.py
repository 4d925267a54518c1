"""`Job`: a publication as a file, from the check of the table to the pages made of the release.

check → plan → a person decides → publish → explorer, report, signature. The file holds public facts and
decisions alone; what the check has found, and whether somebody hesitated, appears in nothing that is written.
"""

from __future__ import annotations

import contextlib
import os
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, final

import msgspec

from dpgram.errors import CheckError, DpgramError, JobError, LedgerError, ReleaseError, require_publish
from dpgram.job import _file
from dpgram.job._meaning import job_fields
from dpgram.job._outputs import Outputs, refuse_inputs, refuse_taken, taken
from dpgram.job._series import Growing
from dpgram.job._stated import stated_otherwise
from dpgram.job.databases import address_of
from dpgram.job.words import as_key, reworded
from dpgram.mechanisms import Auto, Mechanism, MechanismLike, as_mechanism
from dpgram.models import Model
from dpgram.publishing.split import Adaptive
from dpgram.release import Release, load
from dpgram.rows.rules import EVERY_ROW, Rows, row_rules
from dpgram.schema import Schema

if TYPE_CHECKING:
    from dpgram.document.fields import AdjacencyName
    from dpgram.engines.base import Engine
    from dpgram.engines.threads import Progress
    from dpgram.planning import Plan
    from dpgram.privacy.ledger import Ledger
    from dpgram.publishing import Check
    from dpgram.publishing.dry_run import Price
    from dpgram.publishing.request import Asked, Request
    from dpgram.release.signing import SigningKey

State: TypeAlias = Literal["published", "finished", "declined"]
Announce: TypeAlias = Callable[[str], None]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """What a person decides on, before anything is spent. For the curator's eyes only: counts are exact."""

    check: Check
    plan: Plan | None
    """None without `expected` below [rows], or where the table is split into groups or blocks."""
    continued: bool
    """Whether this goes on with an earlier publication: what that has paid is not paid again."""
    published_before: bool = False
    """Whether the series has this period already: the run would not read the table."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a job."""

    state: State
    """published; finished: it was published before; declined: the review was not accepted."""
    releases: tuple[Release, ...] = ()
    written: tuple[Path, ...] = ()
    """What this run has written."""
    published_before: bool = False
    """Whether the series had this period already: the table was not read."""


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One publication, with everything that was decided about it.

    `Job.from_file` reads it from a TOML file with the sections [data], [rows], [privacy], [outputs] and
    [about], the columns of a schema and [[models]]: docs/how-to/job-file.md has every key.
    """

    data: str | list[str]
    """Files; or, with `query`, a database: a file, or `env:NAME` for the address that a variable holds."""
    schema: Schema
    epsilon: float
    delta: float
    ledger: Path | None
    outputs: Outputs
    query: str | None = None
    """The SELECT whose result is read; it goes into nothing that is written."""
    rows: Rows = EVERY_ROW
    adaptive: bool | Adaptive | None = None
    """None: as `publish` does by itself."""
    mechanism: MechanismLike = "auto"
    adjacency: AdjacencyName = "add-remove"
    models: tuple[Model, ...] = ()
    """What is declared beforehand, and measured after the matrix."""
    engine: str = "auto"
    threads: int | None = None
    reason: str = ""
    """Why this ε; it goes into the note of the ledger."""
    approved_by: str = ""
    note: str = ""
    stop_if_check_fails: bool = False
    """Whether nothing is published if much of the table cannot be used: a public fact, in the release too."""
    about: Mapping[str, str] = field(default_factory=dict)
    series: Growing | None = None
    """The series to which this adds a period; None: a release by itself."""
    path: Path | None = field(default=None, compare=False)
    """The file it was read from."""

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Self:
        """The job in a TOML file; paths in it are relative to its folder.

        >>> schema.to_file("people.toml")
        >>> text = '''
        ... [data]
        ... file = "people.parquet"
        ... schema = "people.toml"
        ... [privacy]
        ... epsilon = 1
        ... delta = 1e-6
        ... ledger = "people.ledger"
        ... [outputs]
        ... release = "people.dpgram.json"
        ... '''
        >>> from pathlib import Path
        >>> _ = Path("job.toml").write_text(text)
        >>> dg.Job.from_file("job.toml").schema == schema
        True
        """
        place = Path(path)
        return cls.from_form(_file.read_sections(place), place)

    @classmethod
    def from_form(cls, form: Mapping[str, Any], path: Path) -> Self:
        """The job that the checked sections of the file at `path` mean.

        >>> from pathlib import Path
        >>> form = {
        ...     "data": {"file": "people.parquet"}, "columns": schema.to_dict()["columns"],
        ...     "privacy": {"epsilon": 1, "delta": 1e-6, "ledger": False},
        ...     "outputs": {"release": "people.dpgram.json"},
        ... }
        >>> dg.Job.from_form(form, Path("job.toml")).ledger is None
        True
        """
        with _in_words_of_the_file(path):
            return cls(path=path, **job_fields(form, path.parent))

    def check(self, *, progress: Progress = None) -> Check:
        """What the publication would do to the table: reads every row, spends and writes nothing.

        >>> import pyarrow.parquet
        >>> pyarrow.parquet.write_table(table, "people.parquet")
        >>> from pathlib import Path
        >>> from dpgram.job import Outputs
        >>> job = dg.Job(
        ...     data="people.parquet", schema=schema, epsilon=1, delta=1e-6, ledger=None,
        ...     outputs=Outputs(release=Path("people.dpgram.json")),
        ... )
        >>> job.check().counts["all"].rows_used
        20000
        """
        require_publish()
        from dpgram.publishing import check

        with _in_words_of_the_file(self.path):
            return check(
                self._table(),
                self.schema,
                epsilon=self.epsilon,
                delta=self.delta,
                ledger=self._payer(),
                engine=self._engine(),
                progress=progress,
                **self._asked(),
            )

    def price(self) -> Price:
        """What the publication would charge, from public facts: no row is read.

        >>> from pathlib import Path
        >>> from dpgram.job import Outputs
        >>> job = dg.Job(
        ...     data="people.parquet", schema=schema, epsilon=1, delta=1e-6, ledger=ledger.path,
        ...     outputs=Outputs(release=Path("people.dpgram.json")),
        ... )
        >>> job.price().mechanism, round(job.price().share, 2)
        ('gaussian', 0.28)
        """
        require_publish()
        from dpgram.publishing.dry_run import price_of

        with _in_words_of_the_file(self.path):
            return price_of(self._request(), self._payer())

    def plan(self) -> Plan | None:
        """The forecast, from public facts; None where no number of rows is expected or there are parts.

        >>> from pathlib import Path
        >>> from dpgram.job import Outputs
        >>> job = dg.Job(
        ...     data="people.parquet", schema=schema, epsilon=1, delta=1e-6, ledger=None,
        ...     rows=dg.Rows(expected=20_000), mechanism="gaussian",
        ...     outputs=Outputs(release=Path("people.dpgram.json")),
        ... )
        >>> job.plan().recommended.verdict
        'usable'
        """
        return self._forecast(as_mechanism(self.mechanism))

    def _forecast(self, asked: Mechanism | Auto) -> Plan | None:
        if (
            self.series is not None
            or self.rows.expected is None
            or self.rows.by is not None
            or self.schema.blocks is not None
        ):
            return None
        from dpgram.planning import plan

        with _in_words_of_the_file(self.path):
            payer = self._payer()
        with _in_words_of_the_file(self.path):
            return plan(
                self._published_columns(),
                epsilon=self.epsilon,
                delta=self.delta,
                rows=self.rows,
                adaptive=True if self.adaptive is None else self.adaptive,
                adjacency=self.adjacency,
                mechanisms=asked if isinstance(asked, Auto) else [asked],
                models=self.models,
                ledger=payer,
            )

    def review(self, *, progress: Progress = None) -> Review:
        """What `run` shows before it spends anything: the check, and the forecast for what would be used.

        >>> import pyarrow.parquet
        >>> pyarrow.parquet.write_table(table, "people.parquet")
        >>> from pathlib import Path
        >>> from dpgram.job import Outputs
        >>> job = dg.Job(
        ...     data="people.parquet", schema=schema, epsilon=1, delta=1e-6, ledger=ledger.path,
        ...     rows=dg.Rows(expected=20_000),
        ...     outputs=Outputs(release=Path("people.dpgram.json")),
        ... )
        >>> review = job.review()
        >>> review.check.price.mechanism, review.plan.recommended.verdict
        ('gaussian', 'usable')
        """
        require_publish()
        with _in_words_of_the_file(self.path):
            book = self._open_ledger()
            _, done = self._checked_before(book)
            continued = book is not None and (done is not None or self._interrupted(book))
            repeated = self._published_before()
        found = self.check(progress=progress)
        asked, price = as_mechanism(self.mechanism), found.price
        used = as_mechanism(price.mechanism) if isinstance(asked, Auto) and price is not None else asked
        return Review(
            check=found,
            plan=self._forecast(used),
            continued=continued,
            published_before=repeated,
        )

    def run(
        self,
        *,
        accept: Callable[[Review], bool] | None = None,
        announce: Announce | None = None,
        progress: Progress = None,
    ) -> Outcome:
        """Check, plan, publish, and write all outputs; a finished job does nothing.

        `accept` is shown the review and decides before anything is spent; without it the call itself is the
        decision, so look at `check` first. `announce` is told each step in words. A run that was interrupted
        after its charge is continued by the next one, which pays nothing again.

        >>> import pyarrow.parquet
        >>> pyarrow.parquet.write_table(table, "people.parquet")
        >>> from pathlib import Path
        >>> from dpgram.job import Outputs
        >>> job = dg.Job(
        ...     data="people.parquet", schema=schema, epsilon=1, delta=1e-6, ledger=ledger.path,
        ...     outputs=Outputs(release=Path("people.dpgram.json"), report=Path("people.html")),
        ... )
        >>> job.run().state, job.run().state
        ('published', 'finished')
        >>> len(ledger.history())
        1
        """
        require_publish()
        from dpgram.publishing.request import refuse_undecided

        say = announce or _silent
        with _in_words_of_the_file(self.path):
            book, key = self._open_ledger(), self._open_key()
            parts, done = self._checked_before(book)
            if done is not None:
                return Outcome(
                    state="finished",
                    releases=done,
                    written=self._signed_later(done, parts, key) + self._pages(done, parts, book, say),
                )
            refuse_undecided(self.schema)
        say(f"checking {self._named}: every row is read, nothing is spent")
        review = self.review(progress=progress)
        if self.stop_if_check_fails and review.check.much_is_lost:
            with _in_words_of_the_file(self.path):
                raise CheckError(
                    "much of the table would be lost, and the job says to stop then",
                    limit="5% of a column's cells that cannot be used, 20% of the rows that are dropped",
                    remedy="See what is lost with dpgram run --dry-run",
                )
        if accept is not None and not accept(review):
            return Outcome(state="declined")
        with _in_words_of_the_file(self.path):
            return self._publish(parts, book, key, say, progress)

    def _publish(
        self,
        parts: tuple[Outputs, ...],
        book: Ledger | None,
        key: SigningKey | None,
        say: Announce,
        progress: Progress,
    ) -> Outcome:
        from dpgram.core.noise import SystemEntropy
        from dpgram.publishing import published

        if self.series is not None:
            where, repeated = f"{self.series.period} of {self.series.file.name}", self._published_before()
            say(
                f"period {where} was published before: {self._named} is not read, and nothing changes there"
                if repeated
                else f"publishing {self._named} as period {where}"
            )
            release = self.series.publish(
                self, self._table(), engine=self._engine(), note=self._ledger_note(), progress=progress
            )
            found = (self._finishing(release, key),)
            saved = (found[0].save(parts[0].release),)
            say(f"wrote {saved[0]}")
            return Outcome(
                state="published",
                releases=found,
                written=saved + self._pages(found, parts, book, say),
                published_before=repeated,
            )
        say(f"publishing {self._named} with ε = {self.epsilon:g}, δ = {self.delta:g}")
        with published(
            self._table(),
            self._request(),
            engine=self._engine(),
            ledger=book,
            entropy=SystemEntropy(),
            progress=progress,
        ) as drawn:
            # Until the files are written, what was paid for stays beside the ledger.
            releases = tuple(self._finishing(release, key) for release in drawn)
            written = tuple(release.save(part.release) for release, part in zip(releases, parts, strict=True))
        for path in written:
            say(f"wrote {path}")
        return Outcome(
            state="published",
            releases=releases,
            written=written + self._pages(releases, parts, book, say),
        )

    def _finishing(self, release: Release, key: SigningKey | None) -> Release:
        if self.stop_if_check_fails:
            policy = msgspec.structs.replace(release.policy, stop_if_check_fails=True)
            release = msgspec.structs.replace(release, policy=policy)
        described = release.described(**self.about) if self.about else release
        return described if key is None else described.sign(key)

    def _signed_later(
        self, releases: tuple[Release, ...], parts: tuple[Outputs, ...], key: SigningKey | None
    ) -> tuple[Path, ...]:
        """For a finished job that shall be signed and is not yet."""
        if key is None:
            return ()
        return tuple(
            release.sign(key).save(part.release, overwrite=True)
            for release, part in zip(releases, parts, strict=True)
            if release.signature is None
        )

    def _pages(
        self,
        releases: tuple[Release, ...],
        parts: tuple[Outputs, ...],
        book: Ledger | None,
        say: Announce,
    ) -> tuple[Path, ...]:
        """The pages and papers that are not there yet."""
        written: list[Path] = []
        for release, part in zip(releases, parts, strict=True):
            ledger = None if book is None else book.path
            writers: dict[str, Callable[[Path], Path]] = {
                "explorer": release.explore if self.series is None else partial(self.series.explore, release),
                "report": partial(release.report, ledger=ledger),
                "registry": release.registry,
                "evaluation": partial(release.evaluation, ledger=ledger),
            }
            for kind, path in part.pages.items():
                if not path.exists():
                    written.append(writers[kind](path))
                    say(f"wrote {path}")
        return tuple(written)

    def _checked_before(self, book: Ledger | None) -> tuple[tuple[Outputs, ...], tuple[Release, ...] | None]:
        """What it writes, unless something is in the way; and what an earlier run has made of it."""
        if self.series is not None:
            self.series.refuse_beside(self)
        parts = self.outputs.for_parts(self.schema, self._by)
        outputs = [path for part in parts for path in (part.release, *part.pages.values())]
        refuse_inputs(outputs, self._inputs())
        continued = book is not None and self._interrupted(book)
        done = None if continued else self._finished(parts, book)
        if done is None and not continued:
            refuse_taken(outputs)
        if done is None and self.series is not None:
            self.series.refuse_another(self)
        return parts, done

    def _finished(self, parts: tuple[Outputs, ...], book: Ledger | None) -> tuple[Release, ...] | None:
        """What an earlier run has made of this job; refused where the files are of another job."""
        if not all(part.release.exists() for part in parts):
            return None
        found = []
        for part in parts:
            try:
                release = load(part.release)
            except ReleaseError as problem:
                raise taken(part.release, "not a release") from problem
            others = self._departures(release, book)
            if others:
                raise taken(part.release, f"a release of another job: {'; '.join(others)}")
            found.append(release)
        return tuple(found)

    def _departures(self, release: Release, book: Ledger | None) -> list[str]:
        """In which public facts a release differs from what this job asks for, in words."""
        stated = release.guarantee if release.block is None else release.block.joint
        about = release.about
        told = {} if about is None else {name: getattr(about, name) for name in self.about}
        compared = {
            "epsilon": (stated.epsilon, float(self.epsilon)),
            "adjacency": (release.adjacency, self.adjacency),
            "unit": (release.unit, self.rows.unit),
            "missing": (release.policy.missing, self.rows.missing),
            "strict": (release.policy.strict, self.rows.strict),
            "stop_if_check_fails": (release.policy.stop_if_check_fails, self.stop_if_check_fails),
            "period": (
                None if release.series is None else release.series.labels[1],
                None if self.series is None else self.series.period,
            ),
            **{name: (told.get(name, ""), text) for name, text in self.about.items()},
        }
        found = [
            f"{name} is {there} there, {here} here"
            for name, there, here in (
                *((name, *both) for name, both in compared.items() if both[0] != both[1]),
                *stated_otherwise(release, self._request()),
            )
        ]
        if self.series is not None:
            found += [each for each in self.series.departures_of(release, self) if each not in found]
        paid = release.receipt
        if (paid is None) != (book is None):
            found.append(f"it was paid for by {'no ledger' if paid is None else 'a ledger'}")
        elif paid is not None and book is not None and book.receipt(paid.receipt_id) != paid:
            found.append(f"the ledger {book.name!r} has no charge for it")
        return found

    def _published_before(self) -> bool:
        return self.series is not None and self.series.published_before()

    def _published_columns(self) -> Schema:
        """Without the columns that group or weigh rows."""
        return row_rules(self.schema, self.rows).schema

    def _table(self) -> str | list[str] | tuple[str, str]:
        """What is read; the address of a database comes out of its variable here and is kept nowhere."""
        if self.query is None or isinstance(self.data, list):
            return self.data
        return address_of(self.data), self.query

    def _inputs(self) -> list[Path]:
        """The files that it reads, as far as they are known by name."""
        from dpgram.sources.files import files_named

        series = () if self.series is None else self.series.files
        named = (self.path, self.ledger, self.outputs.key, *series)
        return [each for each in named if each is not None] + files_named(self.data)

    @property
    def _named(self) -> str:
        if isinstance(self.data, list):
            return f"{len(self.data)} files"
        name = self.data if "://" in self.data else Path(self.data).name
        return name if self.query is None else f"the query on {name}"

    @property
    def _by(self) -> str | None:
        return None if self.rows.by is None else str(self.rows.by)

    def _asked(self) -> Asked:
        asked: Asked = {
            "rows": self.rows,
            "mechanism": self.mechanism,
            "adjacency": self.adjacency,
            "note": self._ledger_note(),
            "models": self.models,
        }
        if self.adaptive is not None:
            asked["adaptive"] = self.adaptive
        return asked

    def _ledger_note(self) -> str:
        reason = f"reason: {self.reason}" if self.reason else ""
        approval = f"approved by: {self.approved_by}" if self.approved_by else ""
        return "; ".join(part for part in (self.note, reason, approval) if part)[:1000]

    def _request(self) -> Request:
        from dpgram.publishing import requested
        from dpgram.publishing.publisher import form_of

        beside = form_of(self._table(), self._engine())
        return requested(self.schema, epsilon=self.epsilon, delta=self.delta, beside=beside, **self._asked())

    def _interrupted(self, book: Ledger) -> bool:
        from dpgram.publishing import interrupted

        return interrupted(self._request(), book)

    def _engine(self) -> Engine:
        from dpgram.engines.find import find_engine

        return find_engine(self.engine, self._table(), threads=self.threads)

    def _open_ledger(self) -> Ledger | None:
        from dpgram.privacy.ledger import Ledger

        if self.ledger is None:
            return None
        if not self.ledger.exists():
            unit = "" if self.rows.unit is None else f" --unit {shlex.quote(str(self.rows.unit))}"
            other = "" if self.adjacency == "add-remove" else f" --adjacency {self.adjacency}"
            raise LedgerError(
                f"there is no ledger {self.ledger}",
                remedy=f"Create it once: dpgram ledger create {shlex.quote(str(self.ledger))} --name NAME "
                f"--epsilon TOTAL --delta TOTAL{unit}{other}, or write ledger = false to keep no count",
            )
        return Ledger.open(self.ledger)

    def _payer(self) -> Ledger | None:
        """The ledger, unless it was charged for this before: that must not be refused for lack of budget."""
        book = self._open_ledger()
        if self.series is not None and self.series.file.exists():
            return None  # a series was charged for when it was created
        return None if book is None or self._paid(book) else book

    def _paid(self, book: Ledger) -> bool:
        """Whether an earlier run was charged for this, be it interrupted afterwards or finished."""
        if self._interrupted(book):
            return True
        with contextlib.suppress(JobError):
            return self._finished(self.outputs.for_parts(self.schema, self._by), book) is not None
        return False

    def _open_key(self) -> SigningKey | None:
        """A key that cannot be used is found before the charge."""
        if self.outputs.key is None:
            return None
        from dpgram.release.signing import SigningKey

        return SigningKey.open(self.outputs.key)


@contextlib.contextmanager
def _in_words_of_the_file(path: Path | None) -> Iterator[None]:
    """What goes wrong is told in the keys of the job file, and which file that is."""
    try:
        yield
    except DpgramError as problem:
        if path is not None:
            problem.reword(lambda text: reworded(text, as_key))
            _file.in_file(path, problem)
        raise


def _silent(_: str) -> None:
    pass

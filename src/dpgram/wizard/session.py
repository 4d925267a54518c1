"""What one person has decided so far: the form of the job file, and what stays on this screen.

The job file on disk is the form, written after every step that was in order; what is beside it here (typed
mistakes, a preview, exact counts) is gone with the process.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, final

from dpgram.errors import JobError
from dpgram.job.draft import draft_job, draft_text, read_draft, write_draft
from dpgram.privacy.ledger import Ledger
from dpgram.publishing.starter import StarterColumn
from dpgram.schema import Schema
from dpgram.schema.reading import LAYOUT_FORMS
from dpgram.wizard.folder import Folder
from dpgram.wizard.posted import Posted
from dpgram.wizard.work import Work

if TYPE_CHECKING:
    from dpgram.job import Job, Outcome, Review
    from dpgram.publishing import Check

Form = dict[str, Any]


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """What step 1 has read of the file: for this screen only."""

    columns: tuple[StarterColumn, ...]
    preview: tuple[tuple[str, ...], ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class NewLedger:
    """A ledger that will be made right before the charge. Until then it costs nothing to change it."""

    name: str
    epsilon: float
    delta: float

    def create(self, path: Path, unit: str | None, adjacency: str) -> Ledger:
        return Ledger.create(
            path, name=self.name, epsilon=self.epsilon, delta=self.delta, unit=unit, adjacency=adjacency
        )


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Typed:
    """What was typed into a step and not accepted, with the message for each field."""

    posted: Posted | None
    """None: the page shows what holds."""
    errors: Mapping[str, str]


def relative(place: Path, job: Path) -> str:
    """A path as the job file in `job` writes it."""
    return Path(os.path.relpath(place, job.parent)).as_posix()


@final
@dataclass(slots=True, kw_only=True)
class Session:
    """The state of the wizard. One person uses it, perhaps in several tabs."""

    folder: Folder
    path: Path | None = None
    """The job file; None before there is one."""
    suggested: str = ""
    """The file that the wizard was started with."""
    form: Form = field(default_factory=dict)
    table: Table | None = None
    """None: step 1 has not read the file."""
    typed: dict[str, Typed] = field(default_factory=dict)
    new_ledger: NewLedger | None = None
    new_key: bool = False
    checked: tuple[str, Check] | None = None
    """The check of the columns, and the state that it is about."""
    reviewed: tuple[str, Review] | None = None
    forecast: tuple[str, dict[str, Any] | None, str] | None = None
    """The last forecast, or why there is none, and the facts that it follows from."""
    work: Work | None = None
    spent: bool = False
    """Whether the publication of this job was begun and may have been paid for."""
    outcome: Outcome | None = None
    """Once it is there, the decisions stay as they were published."""
    lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def started(cls, folder: Folder, what: Path | None) -> Session:
        """With a table to begin with, or a job file to go on with."""
        if what is None:
            return cls(folder=folder)
        place = folder.file(str(what))
        if place.suffix.lower() != ".toml":
            return cls(folder=folder, suggested=folder.shown(place))
        form = read_draft(place)
        made = cls(folder=folder, path=place, form=form)
        made.suggested = made.refuse_foreign(form)
        return made

    def refuse_foreign(self, form: Form) -> str:
        """The table that a job reads, as it is shown; refused where the pages could not show the job."""
        data = form.get("data", {})
        file = data.get("file", "")
        elsewhere = data.get("query") or data.get("schema") or not isinstance(file, str)
        if elsewhere or file.startswith("env:") or "series" in form:
            raise JobError(
                f"{self.job_path.name} reads a database, several files or a schema file, or belongs to a "
                "series, which the pages do not show",
                remedy=f"Use dpgram run {self.job_path.name}",
            )
        self.refuse_outside(form)
        return self.folder.shown(self.folder.place(str(self.job_path.parent / file))) if file else ""

    def refuse_outside(self, form: Form) -> None:
        """No file that a job reads, writes or charges lies outside of the folder, links followed."""
        named = (
            form.get("data", {}).get("file"),
            form.get("privacy", {}).get("ledger"),
            *form.get("outputs", {}).values(),
        )
        for text in named:
            if isinstance(text, str) and text:
                self.folder.place(str(self.job_path.parent / text))

    @property
    def job_path(self) -> Path:
        if self.path is None:
            raise JobError("there is no job file yet", remedy="Begin with step 1")
        return self.path

    @property
    def state(self) -> str:
        """Changes with every decision: what was seen in one tab is compared with it."""
        text = f"{draft_text(self.form)}\n{self.new_ledger}\n{self.new_key}"
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    def section(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = self.form.get(name, {})
        return found

    def changed(self, **sections: Any) -> Form:
        """A copy of the form with these sections in place of its own; empty ones are left out."""
        form = deepcopy(self.form) | sections
        return {name: value for name, value in form.items() if value or value is False}

    def accept(self, form: Form) -> None:
        """These are the decisions from now on; the file has them before anybody is told."""
        write_draft(form, self.job_path)
        self.form = form

    def start_over(self, path: Path, form: Form) -> None:
        """Another job in another file: nothing that was decided, typed or done for the one before is kept."""
        write_draft(form, path)
        fresh = Session(folder=self.folder, path=path, form=form, lock=self.lock)
        for each in fields(Session):
            setattr(self, each.name, getattr(fresh, each.name))

    # Paths in a job file are relative to it; on the pages, to the folder.

    def in_job(self, place: Path) -> str:
        return relative(place, self.job_path)

    def shown(self, text: object) -> str:
        """A path of the job file, as the pages show it; empty for none."""
        if not isinstance(text, str) or not text:
            return ""
        return self.folder.shown(Path(os.path.normpath(self.job_path.parent / text)))

    @property
    def data(self) -> str:
        return str(self.job_path.parent / self.section("data")["file"])

    def schema(self, form: Form | None = None) -> Schema:
        """The columns that are declared so far; raises what is wrong with them."""
        own = self.form if form is None else form
        form_of_schema: Form = {"columns": own.get("columns", [])}
        form_of_schema |= {key: own[key] for key in ("constant", "blocks") if key in own}
        return Schema.from_dict(
            form_of_schema | {key: own["data"][key] for key in LAYOUT_FORMS if key in own["data"]}
        )

    def job(self, form: Form | None = None) -> Job:
        """The job as `dpgram run` would read it; raises what is missing or wrong."""
        return draft_job(self.form if form is None else form, self.job_path)

    @contextmanager
    def payable(self, job: Job, new: NewLedger | None) -> Iterator[Job]:
        """The job with a ledger that can be asked: its own, or one like it for as long as there is none."""
        if job.ledger is None or new is None:
            yield job
            return
        with tempfile.TemporaryDirectory(prefix="dpgram-wizard-") as place:
            rehearsal = Path(place) / job.ledger.name
            new.create(rehearsal, job.rows.unit, job.adjacency)
            yield replace(job, ledger=rehearsal)

    def begin(self, title: str, then: str, do: Callable[[Work], Any]) -> None:
        """Start a piece of work, unless one is under way."""
        if self.work is None or self.work.done:
            self.work = Work(title, then, do).start()

    @property
    def busy(self) -> bool:
        return self.work is not None and not self.work.done

    @property
    def found(self) -> Check | None:
        """The check of the columns as they are declared now."""
        return None if self.checked is None or self.checked[0] != self.columns_state else self.checked[1]

    @property
    def columns_state(self) -> str:
        parts = {name: self.form.get(name) for name in ("data", "columns", "rows")}
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    @property
    def review(self) -> Review | None:
        return None if self.reviewed is None or self.reviewed[0] != self.state else self.reviewed[1]

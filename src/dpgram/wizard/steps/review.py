"""Step 6, the review and the last click: what will be written, said and charged; then it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, final

from dpgram.analysis.display import guarantee_in_words
from dpgram.document.statement import in_words
from dpgram.errors import DpgramError, JobError
from dpgram.job import Job, Outcome, Outputs
from dpgram.job.draft import draft_text
from dpgram.job.terms import terms
from dpgram.privacy.ledger import Ledger
from dpgram.release.report import SUSPICIONS, suspicion_at_most
from dpgram.release.signing import SigningKey
from dpgram.schema.columns.categorical import SHOWN_LEVELS
from dpgram.wizard.own_form import shown_bound
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import Session
from dpgram.wizard.steps.columns import BOUNDS, KIND_NAMES, kind_of
from dpgram.wizard.words import as_field, told
from dpgram.wizard.work import Work


def values(session: Session) -> dict[str, Any]:
    del session
    return {}


def view(session: Session) -> dict[str, Any]:
    found: dict[str, Any] = {
        "text": draft_text(session.form),
        "job": session.folder.shown(session.job_path),
        "review": session.review,
        "as_field": as_field,
        "incomplete": "",
    }
    if session.outcome is not None:
        return found
    try:
        job = _complete(session)
    except DpgramError as problem:
        return found | {"incomplete": told(problem)}
    return found | {
        "asked": job,
        "terms": {
            name: text.replace(f"{session.folder.root}/", "")
            for name, text in terms(job, ledger=_pending(session, job)).items()
        },
        "columns": _columns(session, job),
        "promise": in_words(
            epsilon=job.epsilon, delta=job.delta, adjacency=job.adjacency, unit=job.rows.unit
        ),
        "suspicions": [(before, suspicion_at_most(job.epsilon, before)) for before in SUSPICIONS],
        "left": _left(session, job),
    }


def _complete(session: Session) -> Job:
    """The job, inside of the folder, with a ledger and a key that are there or about to be made."""
    session.refuse_outside(session.form)
    job = session.job()
    waiting = (
        ("ledger", job.ledger, session.new_ledger is not None, "name and total in step 4"),
        ("key", job.outputs.key, session.new_key, "it in step 5"),
    )
    for what, path, new, where in waiting:
        if path is not None and not new and not path.exists():
            raise JobError(
                f"the {what} {session.folder.shown(path)} is not there, and the job file does not say how to "
                "make it",
                remedy=f"Decide on {where}",
            )
    return job


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnLine:
    """One column of the file, or one that is computed, and what becomes of it."""

    name: str
    kind: str
    values: str
    """Its bounds or levels, in the form of the file."""
    source: str
    """Where these come from."""


def _columns(session: Session, job: Job) -> list[ColumnLine]:
    """All of them, those that are left out too."""
    declared = {entry.get("name"): entry for entry in session.form.get("columns", [])}
    lines = [
        _left_out(column.name, job)
        if column.name not in declared
        else _declared(declared[column.name], column.waiting)
        for column in (session.table.columns if session.table else ())
    ]
    return lines + [
        ColumnLine(name=one.name, kind="computed", values="", source=f"from {', '.join(one.factors)}")
        for one in job.schema.columns_derived
    ]


def _left_out(name: str, job: Job) -> ColumnLine:
    unit = "left out: it says whose row it is" if name == job.rows.unit else "left out"
    return ColumnLine(name=name, kind=unit, values="", source="")


def _declared(entry: Mapping[str, Any], waiting: Mapping[str, Any]) -> ColumnLine:
    kind, learnt = kind_of(entry, waiting), entry.get("learn") is True
    source = "" if kind == "boolean" else "not stated"
    return ColumnLine(
        name=entry["name"],
        kind=KIND_NAMES[kind],
        values="to be learnt" if learnt else _values(entry, kind),
        source="a part of the budget" if learnt else entry.get("source", source),
    )


def _values(entry: Mapping[str, Any], kind: str) -> str:
    if "low" in entry:
        return " to ".join(shown_bound(entry[key], kind, entry) for key in BOUNDS)
    levels = [str(level) for level in entry.get("levels", ())]
    more = f", … ({len(levels)} in all)" if len(levels) > SHOWN_LEVELS else ""
    rest = f"; all others: {entry['other']}" if "other" in entry else ""
    return ", ".join(levels[:SHOWN_LEVELS]) + more + rest


def _pending(session: Session, job: Job) -> str | None:
    new = session.new_ledger
    if new is None or job.ledger is None:
        return None
    return (
        f"{session.folder.shown(job.ledger)}, new: ε = {new.epsilon:g}, δ = {new.delta:g} "
        "for all releases together"
    )


def _left(session: Session, job: Job) -> float | None:
    """The share of the budget that stays for later."""
    review = session.review
    price = None if review is None else review.check.price
    if price is None or price.share is None or job.ledger is None:
        return None
    before = 1.0 if session.new_ledger is not None else Ledger.open(job.ledger).left().share
    return max(before - (0.0 if review is not None and review.continued else price.share), 0.0)


def start_review(session: Session) -> None:
    """Read every row once more and price it all, as `dpgram run --dry-run` does."""
    state, job, new = session.state, _complete(session), session.new_ledger

    def do(work: Work) -> None:
        work.say("every row is read; nothing is spent and nothing is written")
        with session.payable(job, new) as paid:
            session.reviewed = (state, paid.review(progress=work.progress))

    session.begin("Checking the whole job", "review", do)


def take(session: Session, posted: Posted) -> dict[str, str]:
    """Look again, or publish what was looked at."""
    if posted.text("do") != "publish":
        try:
            start_review(session)
        except DpgramError as problem:
            return {"job": told(problem)}
        return {}
    if session.outcome is not None or session.busy:
        return {}
    if session.review is None or posted.text("seen") != session.state:
        return {
            "job": "something was changed since this page was shown, perhaps in another tab. "
            "Look at the review again"
        }
    start_publication(session)
    return {}


def start_publication(session: Session) -> None:
    """Carry the job out as `dpgram run` does, from the file. What was charged is never charged again."""
    path, new, new_key = session.job_path, session.new_ledger, session.new_key

    def do(work: Work) -> None:
        session.refuse_outside(session.form)
        session.accept(session.form)  # whatever happened to the file since, it holds what was reviewed
        job = Job.from_file(path)
        if new is not None and job.ledger is not None and not job.ledger.exists():
            new.create(job.ledger, job.rows.unit, job.adjacency)
            session.new_ledger = None
            work.say(f"made the ledger {session.folder.shown(job.ledger)}")
        if new_key and job.outputs.key is not None and not job.outputs.key.exists():
            SigningKey.create(job.outputs.key)
            session.new_key = False
            work.say(f"made the key {session.folder.shown(job.outputs.key)}")
        before = _traces(job)
        try:
            session.outcome = job.run(announce=work.say, progress=work.progress)
        finally:
            session.spent = session.spent or session.outcome is not None or _traces(job) > before

    session.begin("Publishing", "done", do)


def _traces(job: Job) -> int:
    """What a publication leaves first: entries in the ledger, or the release where none pays."""
    if job.ledger is not None:
        return Ledger.open(job.ledger).entries
    return sum(part.release.exists() for part in _parts(job))


def _parts(job: Job) -> tuple[Outputs, ...]:
    return job.outputs.for_parts(job.schema, None if job.rows.by is None else str(job.rows.by))


def finished(session: Session, outcome: Outcome) -> dict[str, Any]:
    """For the last page: the files, the public key, what is left; promise and key as the release has them."""
    job, release = session.job(), outcome.releases[0]
    left = ""
    if job.ledger is not None and job.ledger.exists():
        book = Ledger.open(job.ledger)
        left = f"{book.name}: {book.left_after(release.receipts)}"
    return {
        "outcome": outcome,
        "files": {kind: session.folder.shown(path) for kind, path in made(session).items()},
        "public": None if release.signature is None else release.signature.public_key,
        "left": left,
        "promise": guarantee_in_words(release, None if release.block is None else release.block.joint),
    }


def made(session: Session) -> dict[str, Path]:
    """What there is to hand out, by its kind; of several releases the first."""
    if session.outcome is None:
        return {}
    first = _parts(session.job())[0]
    return {"release": first.release, **first.pages, "job": session.job_path}

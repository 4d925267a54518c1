"""What a person agrees to with a job, in a few words each: for a terminal and for a page."""

from __future__ import annotations

from dpgram.job.job import Job


def terms(job: Job, *, ledger: str | None = None) -> dict[str, str]:
    """Whom the publication protects, what it promises, who agreed, what it writes.

    `ledger` says what pays where the ledger of the job is not made yet.
    """
    rows = job.rows
    stops = {"stops": "if the check finds that much of the table cannot be used; the release says so"}
    return {
        "protects": "one row" if rows.unit is None else f"all rows of one {rows.unit!r}",
        "guarantee": f"ε = {job.epsilon:g}, δ = {job.delta:g}, {job.adjacency}",
        **(stops if job.stop_if_check_fails else {}),
        "reason": job.reason or "not stated",
        "approved by": job.approved_by or "not stated",
        "ledger": ledger or _ledger(job),
        "writes": ", ".join(map(str, [job.outputs.release, *job.outputs.pages.values()])),
        "signed": "no" if job.outputs.key is None else f"with the key in {job.outputs.key}",
    }


def _ledger(job: Job) -> str:
    if job.ledger is None:
        return "none: nothing keeps count of what this data set has spent"
    from dpgram.privacy.ledger import Ledger

    return f"{job.ledger}: {Ledger.open(job.ledger).left()}"

"""What differs between two jobs, in words: for whoever has to approve the second."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields

from dpgram.job._outputs import Outputs
from dpgram.job._series import Growing
from dpgram.job.job import Job
from dpgram.publishing.split import Adaptive
from dpgram.rows.rules import Rows
from dpgram.schema import Schema


def differences(one: Job, other: Job) -> tuple[str, ...]:
    """One line for each thing that is not the same, in the order of the file.

    >>> from dataclasses import replace
    >>> from pathlib import Path
    >>> from dpgram.job import Outputs, differences
    >>> job = dg.Job(
    ...     data="people.parquet", schema=schema, epsilon=1, delta=1e-6, ledger=None,
    ...     outputs=Outputs(release=Path("people.dpgram.json")),
    ... )
    >>> differences(job, replace(job, epsilon=0.5, rows=dg.Rows(unit="id")))
    ('rows: unit was not given, is now id', 'privacy: epsilon was 1, is now 0.5')
    """
    return (
        *_told("about", one.about, other.about),
        *_told("data", *({"file": job.data, "query": job.query} for job in (one, other))),
        *_columns(one.schema, other.schema),
        *_told("rows", _plain(one.rows), _plain(other.rows)),
        *_told("privacy", _privacy(one), _privacy(other)),
        *_told("models", _models(one), _models(other)),
        *_told("series", *({} if job.series is None else _plain(job.series) for job in (one, other))),
        *_told("outputs", _plain(one.outputs), _plain(other.outputs)),
    )


def _models(job: Job) -> dict[str, object]:
    """Each by its family and target, with its features, share, steps and limit."""
    return {
        f"{each.family} {each.target} ({number})": [each.on, each.share, each.steps, each.limit]
        for number, each in enumerate(job.models, start=1)
    }


def _told(section: str, one: Mapping[str, object], other: Mapping[str, object]) -> Iterator[str]:
    for key in dict.fromkeys([*one, *other]):
        was, now = one.get(key), other.get(key)
        if was != now:
            yield f"{section}: {key} was {_shown(was)}, is now {_shown(now)}"


def _columns(one: Schema, other: Schema) -> Iterator[str]:
    before, after = ({c.name: c.to_dict() for c in schema.columns} for schema in (one, other))
    for name in dict.fromkeys([*before, *after]):
        if name not in after:
            yield f"columns: {name} is left out"
        elif name not in before:
            yield f"columns: {name} is new ({_declared(after[name])})"
        else:
            yield from _told(f"column {name}", before[name], after[name])
    kept = [name for name in before if name in after]
    if kept != [name for name in after if name in before]:
        yield "columns: they are in another order"
    rest = ({k: v for k, v in schema.to_dict().items() if k != "columns"} for schema in (one, other))
    yield from _told("columns", *rest)


def _declared(form: Mapping[str, object]) -> str:
    """A new column in a few words."""
    return ", ".join(f"{key} {_shown(value)}" for key, value in form.items() if key != "name")


def _plain(value: Rows | Outputs | Adaptive | Growing) -> dict[str, object]:
    return {each.name: getattr(value, each.name) for each in fields(value)}


def _privacy(job: Job) -> dict[str, object]:
    names = (
        "epsilon",
        "delta",
        "ledger",
        "reason",
        "approved_by",
        "note",
        "mechanism",
        "adjacency",
        "stop_if_check_fails",
    )
    found = {name: getattr(job, name) for name in (*names, "engine", "threads")}
    adaptive = job.adaptive
    shares = _plain(adaptive) if isinstance(adaptive, Adaptive) else {}
    return {**found, "adaptive": bool(shares) or adaptive} | {f"share of {k}": v for k, v in shares.items()}


def _shown(value: object) -> str:
    if value is None or value == "":
        return "not given"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(_shown, value)) + "]"
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)

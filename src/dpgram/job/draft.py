"""A job file that is still being written: read as far as it goes, and written back as TOML.

The same sections and keys as of a finished one, each known and of its kind, but none of them required. What
is written holds decisions and public facts alone, as every job file; comments of a file that is read are not
kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, time
from pathlib import Path
from typing import Any, Final

from dpgram.files import write_whole
from dpgram.job import _file
from dpgram.job.job import Job
from dpgram.schema.toml_form import toml_value

TOP: Final = ("constant", "blocks")
"""Keys that stand in no section."""
ORDER: Final = ("about", "data", "columns", "rows", "privacy", "models", "outputs")
"""How people read a job; whatever else there is comes after it."""


def read_draft(path: Path) -> dict[str, Any]:
    """The sections that are there.

    >>> from pathlib import Path
    >>> from dpgram.job.draft import read_draft
    >>> _ = Path("begun.toml").write_text('[data]\\nfile = "people.parquet"')
    >>> read_draft(Path("begun.toml"))
    {'data': {'file': 'people.parquet'}}
    """
    return _file.read_sections(path, complete=False)


def draft_job(form: Mapping[str, Any], path: Path) -> Job:
    """The job that the file at `path` will hold once the form is written there: as `Job.from_file` reads it.

    Raises what is missing or wrong.

    >>> from pathlib import Path
    >>> from dpgram.job.draft import draft_job
    >>> form = {
    ...     "data": {"file": "people.parquet"}, "columns": schema.to_dict()["columns"],
    ...     "privacy": {"epsilon": 1, "delta": 1e-6, "ledger": False},
    ...     "outputs": {"release": "people.dpgram.json"},
    ... }
    >>> draft_job(form, Path("job.toml")).schema == schema
    True
    """
    _file.check_form(form, path)
    return Job.from_form(form, path)


def write_draft(form: Mapping[str, Any], path: Path) -> None:
    """Whole or not at all, in place of what was there."""
    write_whole(path, draft_text(form).encode())


def draft_text(form: Mapping[str, Any]) -> str:
    """The form as TOML: facts about the columns first, as TOML wants it, then section by section.

    >>> from dpgram.job.draft import draft_text
    >>> print(draft_text({"data": {"file": "people.parquet"}, "privacy": {"epsilon": 1.0, "ledger": False}}))
    [data]
    file = "people.parquet"
    <BLANKLINE>
    [privacy]
    epsilon = 1
    ledger = false
    <BLANKLINE>
    """
    return "\n".join(_parts(form))


def _parts(form: Mapping[str, Any]) -> Iterator[str]:
    top = {name: form[name] for name in TOP if name in form}
    if top:
        yield _lines(top)
    for name in (*ORDER, *(name for name in form if name not in (*ORDER, *TOP))):
        found = form.get(name)
        if isinstance(found, Mapping) and found:
            yield f"[{name}]\n{_lines(found)}"
        elif isinstance(found, list):
            yield from (f"[[{name}]]\n{_lines(one)}" for one in found)


def _lines(entries: Mapping[str, Any]) -> str:
    return "".join(f"{key} = {_value(value)}\n" for key, value in entries.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{key} = {_value(inner)}" for key, inner in value.items()) + " }"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_value, value))}]"
    return value.isoformat() if isinstance(value, date | time) else toml_value(value)

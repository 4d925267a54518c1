"""Step 2, the columns: kind, bounds, levels, words, how cells are written, and the check beside each."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, Final, final

from dpgram.errors import DpgramError, SchemaError
from dpgram.publishing import check
from dpgram.publishing.causes import Cause
from dpgram.publishing.losses import bars
from dpgram.rows.rules import Rows
from dpgram.schema import KINDS, Schema
from dpgram.wizard.own_form import read_bound, shown_bound
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import Session
from dpgram.wizard.words import told
from dpgram.wizard.work import Work

KIND_NAMES: Final[Mapping[str, str]] = {
    "": "leave it out",
    "number": "a number",
    "date": "a date",
    "categorical": "one of a few words (levels)",
    "ordinal": "levels in an order",
    "boolean": "yes or no",
}
"""What a column may be, as the page calls it; numbers and dates are both `numeric` in a schema."""
LISTS: Final = ("levels", "level_labels", "missing", "true", "false")
"""Fields with a text on each line."""
FLAGS: Final = ("trim", "learn")
BOUNDS: Final = ("low", "high")
NOT_OF: Final = (("number", "format"), ("date", "learn"))
"""What a schema knows of `numeric`, and one of the two does not have."""
FIRST: Final[Mapping[str, str]] = {
    "number": "low",
    "date": "low",
    "categorical": "levels",
    "ordinal": "levels",
    "boolean": "true",
}
"""The field that a message about the column is put beside, unless it names another."""
REMEDIES: Final[Mapping[str, str]] = {
    "missing": "take {} for a missing value",
    "trim": "leave out blanks around the text",
    "decimal": "read {} as the decimal mark",
    "thousands": "read {} as the mark between thousands",
    "prefix": "leave out {} before the number",
    "suffix": "leave out {} after the number",
    "format": "read dates as {}",
    "true": "read {} as yes",
    "false": "read {} as no",
    "levels": "write the levels as {}",
    "encoding": "read the file as {} text",
    "kind": "take the column for {}",
    "case": "make all letters alike, {}",
}
"""What a rule that the check proposes does, in words."""
FIELDS: Final = (
    *BOUNDS,
    *("levels", "level_labels", "other", "true", "false", "format", "decimal", "thousands"),
    *("prefix", "suffix", "missing", "trim", "case", "label", "units", "source"),
    "learn",
)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnView:
    """One column of the file, for the page."""

    number: int
    name: str
    why: str
    counts: tuple[tuple[str, str], ...]
    picture: str
    causes: tuple[tuple[int, Cause, str], ...]
    """Each with its number, and the remedy in words; none where a person has to fill something in."""


def values(session: Session) -> dict[str, Any]:
    declared = {entry.get("name"): entry for entry in session.form.get("columns", [])}
    found: dict[str, Any] = {}
    for number, column in enumerate(session.table.columns if session.table else ()):
        entry = declared.get(column.name)
        kind = found[f"c{number}.kind"] = "" if entry is None else kind_of(entry, column.waiting)
        shown = {} if entry is None else {**column.waiting, **entry}
        for key in FIELDS:
            own = key in BOUNDS and key in shown
            found[f"c{number}.{key}"] = (
                shown_bound(shown[key], kind, shown) if own else _shown(key, shown.get(key, ""))
            )
    return found


def _shown(key: str, value: Any) -> str | bool:
    if key in FLAGS:
        return value is True
    return "\n".join(map(str, value)) if key in LISTS else str(value)


def kind_of(entry: Mapping[str, Any], waiting: Mapping[str, Any]) -> str:
    if entry["kind"] != "numeric":
        return str(entry["kind"])
    low = entry.get("low")
    dates = "format" in entry or "format" in waiting or not (low is None or isinstance(low, int | float))
    return "date" if dates else "number"


def view(session: Session) -> dict[str, Any]:
    found = session.found
    counted = {} if found is None else {each.name: each for each in found.table}
    causes = () if found is None else tuple(enumerate(found.causes))
    columns = []
    for number, column in enumerate(session.table.columns if session.table else ()):
        each = counted.get(column.name)
        columns.append(
            ColumnView(
                number=number,
                name=column.name,
                why=column.why,
                counts=() if each is None else tuple(_counts(each)),
                picture="" if each is None or not sum(each.bins) else bars(each.bins),
                causes=tuple(
                    (place, cause, _remedy(cause)) for place, cause in causes if cause.column == column.name
                ),
            )
        )
    return {
        "columns": columns,
        "kinds": KIND_NAMES,
        "check": found,
        "computed": [entry for entry in session.form.get("columns", []) if "name" not in entry],
    }


def _remedy(cause: Cause) -> str:
    said = [
        REMEDIES[key].format(_quoted(value))
        for key, value in (cause.entries or {}).items()
        if key in REMEDIES
    ]
    return "; ".join(said)


def _quoted(value: object) -> str:
    many = value if isinstance(value, list) else [KIND_NAMES.get(str(value), value)]
    return ", ".join(f"“{each}”" for each in many)


def _counts(each: Any) -> Iterator[tuple[str, str]]:
    for name in ("readable", "missing", "unreadable", "unknown", "below", "above"):
        count = getattr(each, name)
        if count or name == "readable":
            yield name, f"{100 * count / each.cells:.3g}%" if each.cells else "0%"


def take(session: Session, posted: Posted) -> dict[str, str]:
    """The columns as declared on the page; then what was asked for beside: a check, a remedy."""
    entries, errors = _entries(session, posted)
    if errors:
        return errors
    if not entries:
        return {"columns": "every column is left out. Choose a kind for at least two of them"}
    form = session.changed(columns=entries)
    remedy = posted.text("remedy")
    if remedy:
        form = _mended(session, form, remedy)
    try:
        undecided = session.schema(form).undecided
    except DpgramError as problem:
        return {"columns": told(problem)}
    if undecided and not remedy and posted.text("do") != "check":
        return _undecided(session, posted, undecided)
    session.accept(form)
    if remedy or posted.text("do") == "check":
        start_check(session)
    return {}


def _undecided(session: Session, posted: Posted, names: tuple[str, ...]) -> dict[str, str]:
    """Beside each column that nobody has filled in."""
    found = {}
    for number, column in enumerate(session.table.columns if session.table else ()):
        if column.name in names:
            kind = posted.text(f"c{number}.kind")
            learn = "" if kind == "date" else ", or tick that a part of the budget learns it"
            found[f"c{number}.{FIRST[kind]}"] = (
                f"{column.name!r} is not filled in. Say what is publicly known, leave the column out{learn}"
            )
    return found


def start_check(session: Session) -> None:
    """Read every row and count, in the background. Nothing is spent or written."""
    state, schema, rows, data = session.columns_state, session.schema(), session.section("rows"), session.data

    def do(work: Work) -> None:
        work.say("every row is read; nothing is spent and nothing is written")
        session.checked = (state, check(data, schema, rows=Rows(**rows), progress=work.progress))

    session.begin("Checking the columns", "columns", do)


def _entries(session: Session, posted: Posted) -> tuple[list[dict[str, Any]], dict[str, str]]:
    before = {entry.get("name"): entry for entry in session.form.get("columns", [])}
    found, errors = [], {}
    for number, column in enumerate(session.table.columns if session.table else ()):
        kind = posted.text(f"c{number}.kind")
        if kind not in KIND_NAMES:
            errors[f"c{number}.kind"] = "this is no kind of column. Choose one from the list"
        if not kind or kind not in KIND_NAMES:
            continue
        entry = _entry(column.name, kind, number, posted, before.get(column.name, {}))
        try:
            entry |= _bounds(entry, kind, number, posted, before.get(column.name, {}))
        except _NoBound as problem:
            errors[f"c{number}.{problem.key}"] = str(problem)
            continue
        try:
            Schema.from_dict({"columns": [entry]})
        except SchemaError as problem:
            errors[f"c{number}.{_field(problem, kind)}"] = told(problem)
        found.append(entry)
    found += [entry for entry in session.form.get("columns", []) if "name" not in entry]
    return found, errors


def _entry(name: str, kind: str, number: int, posted: Posted, before: Mapping[str, Any]) -> dict[str, Any]:
    declared = "numeric" if kind in ("number", "date") else kind
    known = KINDS[declared].form
    kept = {
        key: value
        for key, value in before.items()
        if key in (*known.keys, *known.optional) and key not in FIELDS
    }
    entry: dict[str, Any] = {"kind": declared, "name": name, **kept}
    entry |= dict.fromkeys(key for key in BOUNDS if key in known.keys)
    for key in FIELDS[len(BOUNDS) :]:
        if key in (*known.keys, *known.optional) and (kind, key) not in NOT_OF:
            value = _posted(posted, f"c{number}.{key}", key)
            if value is not None and value is not False and value not in ("", []):
                entry[key] = value
    return entry


class _NoBound(ValueError):
    """What stands in a field is no bound, in words."""

    def __init__(self, key: str, words: str) -> None:
        self.key = key
        super().__init__(words)


def _bounds(
    entry: dict[str, Any], kind: str, number: int, posted: Posted, before: Mapping[str, Any]
) -> dict[str, Any]:
    """The bounds, read by the rules that are typed beside them; as they were, where nobody changed them."""
    found: dict[str, Any] = {}
    for key in [key for key in BOUNDS if key in entry]:
        text, old = posted.text(f"c{number}.{key}"), before.get(key)
        same = old is not None and isinstance(old, str) == (kind == "date")
        if not text:
            del entry[key]
        elif same and text == shown_bound(old, kind, before):
            found[key] = old
        else:
            try:
                found[key] = read_bound(text, kind, entry)
            except ValueError as problem:
                raise _NoBound(key, str(problem)) from None
    return found


def _posted(posted: Posted, field: str, key: str) -> object:
    if key in LISTS:
        lines = posted.lines(field)
        return [line.strip() for line in lines] if key != "levels" else lines
    if key in FLAGS:
        return field in posted
    return posted.raw(field) if key in ("prefix", "suffix", "thousands") else posted.text(field)


def _field(problem: SchemaError, kind: str) -> str:
    """The field that a message names in `backticks`, or else the first of its kind."""
    words = set(re.findall(r"`(\w+)`|\b(format|labels)\b", problem.what.replace("bounds", "`low`")))
    named = {one or other for one, other in words}
    if "labels" in named:
        return "level_labels"
    return next((key for key in FIELDS if key in named), FIRST[kind])


def _mended(session: Session, form: dict[str, Any], remedy: str) -> dict[str, Any]:
    """The form with what one cause proposes: a rule of a column, or of the whole file."""
    causes = () if session.found is None else session.found.causes
    cause = causes[int(remedy)] if remedy.isdecimal() and int(remedy) < len(causes) else None
    proposed = None if cause is None else cause.entries
    if cause is None or proposed is None:
        return form
    mended = deepcopy(form)
    if cause.of_the_file:
        mended["data"] |= proposed
        return mended
    for entry in mended["columns"]:
        if entry.get("name") == cause.column:
            if "kind" in proposed:  # what was said of another kind goes
                label = {key: entry[key] for key in ("label", "source") if key in entry}
                entry.clear()
                entry.update(name=cause.column, **label)
            entry.update(proposed)
    return mended

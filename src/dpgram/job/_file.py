"""The job file, strictly read: every section and key is known, and each value is of the kind it must be.

One literal table says what may stand where. A message names the file, the section, the key, what was got and
the nearest key there is.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, TypeAlias

from dpgram.errors import DpgramError, JobError
from dpgram.schema.reading import SHEET_ROWS
from dpgram.schema.toml_form import read_toml

LONGEST_WORDS: Final = 400
"""Characters of a reason, an approval or a note: all three go into one note of the ledger."""

Check: TypeAlias = Callable[[object], str | None]
"""What is wrong with a value, as "must be …"; None where nothing is."""


def _text(value: object) -> str | None:
    return None if isinstance(value, str) and value.strip() else "must be a text"


def _words(value: object) -> str | None:
    if isinstance(value, str) and value.strip() and len(value) <= LONGEST_WORDS:
        return None
    return f"must be a text of at most {LONGEST_WORDS} characters"


def _number(value: object) -> str | None:
    return None if isinstance(value, int | float) and not isinstance(value, bool) else "must be a number"


def _whole(value: object) -> str | None:
    return None if isinstance(value, int) and not isinstance(value, bool) else "must be a whole number"


def _truth(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _files(value: object) -> str | None:
    many = value if isinstance(value, list) and value else [value]
    return None if all(_text(one) is None for one in many) else "must be a path, or a list of paths"


def _path_or_false(value: object) -> str | None:
    return None if value is False or _text(value) is None else "must be a path, or false for none"


def _table_or(single: Check, words: str) -> Check:
    def wrong(value: object) -> str | None:
        return None if isinstance(value, dict) or single(value) is None else f"must be {words}"

    return wrong


SECTIONS: Final[Mapping[str, Mapping[str, Check]]] = {
    "about": {"title": _text, "description": _text, "contact": _text, "licence": _text},
    "data": {
        "file": _files,
        "query": _text,
        "schema": _text,
        "encoding": _text,
        "separator": _text,
        "sheet": _text,
        **dict.fromkeys(SHEET_ROWS, _whole),
    },
    "rows": {
        "unit": _text,
        "unit_rows": _whole,
        "weight": _text,
        "by": _text,
        "missing": _text,
        "strict": _truth,
        "radius": _number,
        "expected": _whole,
    },
    "privacy": {
        "epsilon": _number,
        "delta": _number,
        "ledger": _path_or_false,
        "reason": _words,
        "approved_by": _words,
        "note": _words,
        "adaptive": _table_or(_truth, "true, false or a table of shares such as { bounds = 0.2 }"),
        "mechanism": _table_or(_text, 'a name, or a table such as { name = "sketch", degrees = 400 }'),
        "adjacency": _text,
        "engine": _text,
        "threads": _whole,
        "stop_if_check_fails": _truth,
    },
    "outputs": {
        "release": _text,
        "explorer": _text,
        "report": _text,
        "registry": _text,
        "evaluation": _text,
        "key": _text,
    },
    "series": {
        "file": _text,
        "period": _text,
        "periods": _whole,
        "participations": _whole,
        "apart": _whole,
    },
}
"""Every section and its keys; `constant`, `blocks` and `[[columns]]` stand beside them, as in a schema."""

REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "data": ("file",),
    "privacy": ("epsilon", "delta", "ledger"),
    "outputs": ("release",),
}
BESIDE: Final = ("constant", "blocks", "columns")


def _names(value: object) -> str | None:
    many = isinstance(value, list) and value and all(_text(one) is None for one in value)
    return None if many else "must be a list of columns"


MODEL_KEYS: Final[Mapping[str, Check]] = {
    "family": _text,
    "target": _text,
    "on": _names,
    "share": _number,
    "steps": _whole,
    "limit": _number,
}
"""Of each of [[models]]."""
EXAMPLES: Final[Mapping[str, str]] = {
    "file": '"visits.csv"',
    "epsilon": "1",
    "delta": "1e-6, or 0 for a pure guarantee",
    "ledger": '"visits.ledger", or false to keep no count',
    "release": '"visits.dpgram.json"',
}


def read_sections(path: Path, *, complete: bool = True) -> dict[str, Any]:
    """The sections of the file at `path`, each key known and each value of its kind.

    Unless it must be `complete`, required keys may be missing: somebody is still writing it.
    """
    form = read_toml(path, "job", JobError, remedy="Check the path and the working folder")
    check_form(form, path, complete=complete)
    return form


def check_form(form: Mapping[str, Any], path: Path, *, complete: bool = True) -> None:
    """Every section and key is known, each value of its kind, and nothing that is required is missing."""
    try:
        _check(form)
        if complete:
            _check_complete(form)
    except JobError as problem:
        raise JobError(
            f"{path.name}: {problem.what}", got=problem.got, limit=problem.limit, remedy=problem.remedy
        ) from None


def _check(form: Mapping[str, object]) -> None:
    for name, section in form.items():
        if name in BESIDE:
            continue
        if name == "models":
            _check_models(section)
            continue
        if name not in SECTIONS:
            raise JobError(
                f"there is no section or key {name!r}",
                limit=", ".join([*SECTIONS, *BESIDE, "models"]),
                remedy=_misplaced(name) or nearest(name, [*SECTIONS, *BESIDE, "models"]),
            )
        if not isinstance(section, dict):
            raise JobError(f"{name!r} is a section", got=repr(section)[:100], remedy=f"Write [{name}]")
        _check_section(name, section)


def _check_complete(form: Mapping[str, object]) -> None:
    series = form.get("series")
    if isinstance(series, dict):
        required_of_series(series)
    for name, keys in REQUIRED.items():
        given = form.get(name, {})
        for key in keys:
            if not isinstance(given, dict) or key not in given:
                raise JobError(
                    f"the key {key!r} of [{name}] is missing",
                    remedy=f"Write below [{name}]: {key} = {EXAMPLES[key]}",
                )


def required_of_series(section: Mapping[str, object]) -> None:
    """A series needs its file, its horizon and the period that this job publishes."""
    for key, example in (("file", '"clinic.series"'), ("period", '"2026-11"'), ("periods", "60")):
        if key not in section:
            raise JobError(
                f"the key {key!r} of [series] is missing", remedy=f"Write below [series]: {key} = {example}"
            )


def _check_models(section: object) -> None:
    if not isinstance(section, list) or not all(isinstance(one, dict) for one in section):
        raise JobError(
            "every declared model is a table of its own",
            got=_shown(section),
            remedy='Write [[models]], and below it family = "logistic", target = "readmitted", on = ["age"]',
        )
    for one in section:
        check_table("[[models]]", one, MODEL_KEYS)
        for key in ("family", "target"):
            if key not in one:
                raise JobError(f"the key {key!r} of [[models]] is missing", limit=", ".join(MODEL_KEYS))


def _check_section(name: str, section: Mapping[str, object]) -> None:
    known = SECTIONS[name]
    for key, value in section.items():
        if key not in known:
            raise JobError(
                f"[{name}] has no key {key!r}",
                limit=", ".join(known),
                remedy=_misplaced(key, but=name) or nearest(key, known),
            )
        wrong = known[key](value)
        if wrong is not None:
            raise JobError(f"{key!r} of [{name}] {wrong}", got=_shown(value), remedy=_mended(key, value))


def _shown(value: object) -> str:
    return f"the text {value!r}"[:100] if isinstance(value, str) else repr(value)[:100]


def _mended(key: str, value: object) -> str | None:
    """For a number in quotes: the same without them."""
    try:
        number = float(str(value))
    except ValueError:
        return None
    return f"Write {key} = {number:g}, without quotes" if isinstance(value, str) else None


def _misplaced(key: str, but: str = "") -> str | None:
    """Where a known key belongs that stands elsewhere."""
    homes = [name for name, keys in SECTIONS.items() if key in keys and name != but]
    return f"It belongs below [{homes[0]}]" if homes else None


def nearest(name: str, known: Iterable[str]) -> str:
    names = list(known)
    near = difflib.get_close_matches(str(name), names, n=1)
    return f"Did you mean {near[0]!r}?" if near else f"Leave it out, or use one of {', '.join(names)}"


def check_table(where: str, given: Mapping[str, Any], known: Mapping[str, Check]) -> dict[str, Any]:
    """An inline table such as `adaptive = { bounds = 0.2 }`, its keys known and its values of their kind."""
    for key, value in given.items():
        if key not in known:
            raise JobError(f"{where} has no key {key!r}", limit=", ".join(known), remedy=nearest(key, known))
        wrong = known[key](value)
        if wrong is not None:
            raise JobError(f"{key!r} of {where} {wrong}", got=_shown(value), remedy=_mended(key, value))
    return dict(given)


def number(value: object) -> str | None:
    """The check of a key that is a number, for tables whose keys another module knows."""
    return _number(value)


def in_file(path: Path | None, problem: DpgramError) -> None:
    """Let a message of another part of dpgram begin with the job file it is about."""
    if path is not None and path.name not in problem.what:
        problem.reword(lambda text: text, before=f"{path.name}: ")

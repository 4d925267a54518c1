"""Step 3, who is protected: a row or a person, and which rows count."""

from __future__ import annotations

from typing import Any

from dpgram.errors import DpgramError
from dpgram.publishing.request import check_rows
from dpgram.rows.rules import Rows, row_rules
from dpgram.sums.exact_gram import MAX_ROWS
from dpgram.wizard.posted import Posted
from dpgram.wizard.session import Session
from dpgram.wizard.words import beside


def values(session: Session) -> dict[str, Any]:
    rows = session.section("rows")
    return {
        "who": "person" if rows.get("unit") else "row" if rows or not _ids(session) else "",
        "unit": rows.get("unit", ""),
        "count": "rows" if rows.get("unit_rows") else "one",
        "unit_rows": str(rows.get("unit_rows", "")),
        "missing": rows.get("missing", "drop"),
        "expected": str(rows.get("expected", "")),
    }


def _ids(session: Session) -> tuple[str, ...]:
    """Columns that look as if they said whose row it is: then a row need not be a person."""
    columns = session.table.columns if session.table else ()
    return tuple(column.name for column in columns if column.looks_like_id)


def view(session: Session) -> dict[str, Any]:
    ids = _ids(session)
    published = {entry.get("name") for entry in session.form.get("columns", [])}
    names = session.table.names if session.table else ()
    return {
        "options": [
            (
                name,
                f"{name} (declared in step 2)"
                if name in published
                else f"{name} (looks like an id)"
                if name in ids
                else name,
            )
            for name in names
        ],
        "ids": ids,
        "kept": {
            key: value
            for key, value in session.section("rows").items()
            if key in ("weight", "by", "strict", "radius")
        },
    }


def take(session: Session, posted: Posted) -> dict[str, str]:
    hidden = ("unit", "unit_rows", "missing", "expected")
    rows = {key: value for key, value in session.section("rows").items() if key not in hidden}
    if posted.text("who") not in ("row", "person"):
        return {"who": "it is not said who is protected. Choose whether a person may have several rows"}
    if posted.text("who") == "person":
        unit = posted.text("unit")
        if not unit:
            return {"unit": "no column is chosen. Choose the one that says whose row it is"}
        rows["unit"] = unit
        if posted.text("count") == "rows":
            most = posted.number("unit_rows")
            if most is None:
                return {"unit_rows": "no number of rows is given. Type a whole number, such as 5"}
            rows["unit_rows"] = most
    if posted.text("missing") != "drop":
        rows["missing"] = posted.text("missing")
    expected = posted.number("expected")
    if expected is None:
        return {"expected": "it is not said about how many there are. Type a public guess, such as 10000"}
    rows["expected"] = expected
    places = {
        "unit_rows": "unit_rows",
        "at most": "unit_rows",
        "expected": "expected",
        "number of rows": "expected",
        "missing": "missing",
        "column": "unit",
    }
    try:
        asked = Rows(**rows)
        check_rows(asked)
        if not isinstance(expected, int) or not 1 <= expected <= MAX_ROWS:
            return {
                "expected": f"got {posted.text('expected')[:50]}. Type a whole number above zero and up to "
                f"{MAX_ROWS:,}, such as 10000"
            }
        row_rules(session.schema(), asked)
    except DpgramError as problem:
        return beside(problem, places, "unit")
    session.accept(session.changed(rows=rows))
    return {}
